"""Certificates of optimality: that a table is a private mechanism, what it loses, and that no other loses less.

The world is built again from its parameters; no list of constraints in a file is believed. What is proved of either
side is in docs/proofs/optimal_mechanisms.md: a table that satisfies every constraint has its loss, and any weights of
the constraints, scaled, bound the loss of all tables from below.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from userdp.checker import work
from userdp.checker.enclosures import Near, exponential
from userdp.checker.running import Checked, checks
from userdp.checker.values import count, decode, fraction, need, summed, text_of

MOST_UNKNOWNS = 1_000_000
"""Outputs of all states together, of all multisets in a world of users."""
MOST_CONSTRAINTS = 4_000_000
"""Entries of all ordered pairs of neighbors."""
MOST_BITS = 2**14
"""Of a number in a certificate."""
MOST_EXPONENT = 2**10
ENTRY = 9 * work.KEPT
"""Of `work` for an entry, which is kept."""
MOST_AGREEMENT_BITS = 64
"""Of the denominator of an agreement, of which powers are taken."""
MOST_LISTED = 2**27
"""Users of all multisets together, and examples of all that a user can have."""
MOST_STEPS = 2**30
"""Users and outputs of all multisets together, once and for each relabeling: about a minute."""
MOST_UNKNOWN_BITS = 2**31
"""Of the numbers that every unknown of a bound is added to: minutes."""


Move = dict[tuple[int, int], int]


class World(NamedTuple):
    """What a certificate is about: unknowns with multiplicities and losses, state by state, and moves of one user."""

    states: list[list[tuple[int, Fraction]]]
    moves: Iterable[Move]
    """For ordered pairs of neighbors: how many outputs have this unknown here and that one there."""
    size: int
    """At least how many entries all moves have."""
    prior: list[Fraction] | None = None
    """Of the states, where the parameters say it."""


def _number(value: Any, name: str) -> Fraction:
    need(isinstance(value, str), f"{name} is no number as text")
    work.afford(len(value) <= MOST_BITS // 3, f"{name} is too long to be checked")
    return fraction(value)


def _whole(value: Any, name: str) -> int:
    number = _number(value, name)
    need(number.denominator == 1 and number >= 0, f"{name} must be an integer >= 0")
    return number.numerator


def _members(values: Any, name: str) -> int:
    need(isinstance(values, list) and len(values) > 0, f"{name} must be a list that is not empty")
    need(len(set(map(text_of, values))) == len(values), f"{name} names one member twice")
    for value in values:
        decode(value)
    return len(values)


def _losses(rows: Any, states: int, outputs: int) -> list[list[Fraction]]:
    need(isinstance(rows, list) and len(rows) == states, f"losses must have {states} rows")
    need(all(isinstance(row, list) and len(row) == outputs for row in rows), f"a row of losses has not {outputs}")
    losses = [[_number(loss, "a loss") for loss in row] for row in rows]
    need(all(loss >= 0 for row in losses for loss in row), "a loss is negative")
    return losses


# Users who each have one of K items -------------------------------------------------------------------------


def _partitions(n: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    if n == 0:
        yield ()
    elif parts:
        for first in range(min(n, most), -(-n // parts) - 1, -1):
            for rest in _partitions(n - first, parts - 1, first):
                yield (first, *rest)


def _selection(stated: Mapping[str, Any]) -> World:
    n, items, kind = count(stated["n_users"], "n_users", 1), count(stated["n_items"], "n_items", 1), stated["loss"]
    work.afford(n <= 1000 and items <= 2**64, "there are too many users or items to be checked")
    need(kind in ("regret", "error", "agreement"), f"unknown loss {kind!r:.40}")
    # Every state has a class for each distinct count, so that they are fewer than the partitions times sqrt(2 n) + 1.
    ways = [1] + [0] * n
    for part in range(1, min(items, n) + 1):
        for amount in range(part, n + 1):
            ways[amount] += ways[amount - part]
    work.afford(ways[n] * (math.isqrt(2 * n) + 1) <= MOST_UNKNOWNS, "there are too many datasets to be checked")
    listed = list(_partitions(n, items, n))
    counts = [state + (0,) * (items > len(state)) for state in listed]
    distinct = [sorted(set(state), reverse=True) for state in counts]
    starts = list(itertools.accumulate(map(len, distinct), initial=0))
    at = {state: place for place, state in enumerate(listed)}

    def size(place: int, c: int) -> int:
        return listed[place].count(c) if c else items - len(listed[place])

    def unknown(place: int, c: int) -> int:
        return starts[place] + distinct[place].index(c)

    prior, losses = None, [[Fraction(s[0] - c if kind == "regret" else s[0] != c) for c in d] for s, d in
                           zip(counts, distinct, strict=True)]  # fmt: skip
    if kind == "agreement":
        share = _number(stated["agreement"], "agreement")
        need(0 <= share <= 1 and items >= 2, "agreement must be in [0, 1], with two items at least")
        short = share.denominator.bit_length() <= MOST_AGREEMENT_BITS
        work.afford(short, f"agreement must have a denominator of at most {MOST_AGREEMENT_BITS} bits to be checked")
        prior, losses = _agreement(n, items, share, counts, distinct)
    else:
        need(stated["agreement"] is None, "agreement goes with the loss of that name")

    def moves() -> Iterator[Move]:
        for place, has in enumerate(distinct):
            for a, b in itertools.product(has, repeat=2):
                if a == 0 or (a == b and size(place, a) == 1):
                    continue
                after = [*listed[place]]
                after.remove(a)
                if b > 0:
                    after.remove(b)
                there = at[tuple(sorted([c for c in (*after, a - 1, b + 1) if c], reverse=True))]
                move = Counter({(unknown(place, a), unknown(there, a - 1)): 1})
                move[unknown(place, b), unknown(there, b + 1)] += 1
                for c in has:
                    stay = size(place, c) - (c == a) - (c == b)
                    if stay:
                        move[unknown(place, c), unknown(there, c)] += stay
                yield dict(move)

    states = [
        [(size(place, c), loss) for c, loss in zip(has, row, strict=True)]
        for place, (has, row) in enumerate(zip(distinct, losses, strict=True))
    ]
    entries = sum(len(has) ** 2 * (len(has) + len(state) // 8) for has, state in zip(distinct, listed, strict=True))
    return World(states, moves(), entries, prior)


def _agreement(
    n: int, items: int, share: Fraction, counts: list[tuple[int, ...]], distinct: list[list[int]]
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """The prior of states and the chance to miss the common item, which each user has with probability `share`.

    The common item is any, and all others agree on one other item, which is any other.
    """
    chance = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    prior, losses = [], []
    for state, has in zip(counts, distinct, strict=True):
        most = state[0]
        if sum(c > 0 for c in state) > 2:
            prior.append(Fraction(0))
            losses.append([Fraction(1)] * len(has))
            continue
        other = n - most
        total = chance[most] + (chance[other] if other != most else 0)
        prior.append(total)
        row = []
        for c in has:
            holders = 1 if c in (most, other) and c > 0 else items - 1
            # Of two items with equal counts either is the common one; of those that nobody has, any.
            share_of = chance[c] if c in (most, other) else Fraction(0)
            share_of = share_of / 2 if c == most == other else share_of / holders
            row.append(1 - share_of / total if total else Fraction(1))
        losses.append(row)
    return prior, losses


# Sums, and all multisets of users -----------------------------------------------------------------------------


def _sum(stated: Mapping[str, Any]) -> World:
    outputs, reach = _members(stated["outputs"], "outputs"), count(stated["reach"], "reach", 1)
    need(type(stated["lowest"]) is int, "lowest must be an integer")
    need(isinstance(stated["losses"], list), "losses must be a list")
    n = len(stated["losses"])
    work.afford(
        n * outputs <= MOST_UNKNOWNS and n * outputs * 2 * min(n, reach) <= MOST_CONSTRAINTS, "the world is too large"
    )
    losses = _losses(stated["losses"], n, outputs)

    def moves() -> Iterator[Move]:
        for a in range(n):
            for b in range(max(0, a - reach), min(n, a + reach + 1)):
                if a != b:
                    yield {(a * outputs + o, b * outputs + o): 1 for o in range(outputs)}

    return World([[(1, loss) for loss in row] for row in losses], moves(), n * outputs * 2 * min(n, reach))


def _users(stated: Mapping[str, Any]) -> World:
    size, k = _members(stated["universe"], "universe"), _members(stated["outputs"], "outputs")
    n, m = count(stated["n_users"], "n_users", 1), count(stated["n_examples"], "n_examples", 1)
    need(isinstance(stated["losses"], list), "losses must be a list")
    work.afford(n <= 1000 and m <= 1000, "there are too many users or examples to be checked")
    # Each factor of a binomial is at least 1, so that a partial product is at most it.
    kinds = _binomial(size + m - 1, m)
    total = _binomial(kinds + n - 1, n)
    need(total == len(stated["losses"]), f"losses must have a row for each of {total} datasets")
    work.afford(total * k <= MOST_UNKNOWNS, "the world is too large to be checked")
    work.afford(kinds * m <= MOST_LISTED and total * n <= MOST_LISTED, "the world is too large to be checked")
    need(isinstance(stated["symmetries"], list), "symmetries must be a list")
    steps = (1 + len(stated["symmetries"])) * (kinds * m + total * (n + k))
    work.afford(steps <= MOST_STEPS, "there are too many symmetries to be checked")
    work.spend(40 * steps, "fewer symmetries take less")
    types = list(itertools.combinations_with_replacement(range(size), m))
    datasets = list(itertools.combinations_with_replacement(range(kinds), n))
    losses = _losses(stated["losses"], total, k)
    at = {dataset: place for place, dataset in enumerate(datasets)}
    kind_at = {kind: place for place, kind in enumerate(types)}
    generators = []
    for symmetry in stated["symmetries"]:
        need(isinstance(symmetry, dict) and set(symmetry) == {"examples", "outputs"}, "a symmetry has other fields")
        for name, length in (("examples", size), ("outputs", k)):
            need(isinstance(symmetry[name], list) and all(type(i) is int for i in symmetry[name]), "no relabeling")
            need(sorted(symmetry[name]) == list(range(length)), f"a symmetry relabels no {name}")
        moved = [kind_at[tuple(sorted(symmetry["examples"][x] for x in kind))] for kind in types]
        there = [at[tuple(sorted(moved[t] for t in dataset))] for dataset in datasets]
        generators.append((there, symmetry["outputs"]))
        same = all(
            losses[place][o] == losses[image][to]
            for place, image in enumerate(there)
            for o, to in enumerate(symmetry["outputs"])
        )
        need(same, "the loss does not have a stated symmetry")
    # Orbits of (dataset, output) by walking along the generators, from the first pair on.
    orbit: dict[tuple[int, int], int] = {}
    chosen, members = [], Counter[int]()
    seen: set[int] = set()
    for place in range(total):
        if place in seen:
            continue
        chosen.append(place)
        for o in range(k):
            if (place, o) not in orbit:
                number, waiting = len(members), [(place, o)]
                members[number] = 0
                orbit[place, o] = number
                while waiting:
                    here, output = waiting.pop()
                    seen.add(here)
                    members[number] += here == place
                    for there, relabeled in generators:
                        image = there[here], relabeled[output]
                        if image not in orbit:
                            orbit[image] = number
                            waiting.append(image)
    listed = sum(len(set(datasets[place])) for place in chosen) * (kinds - 1) * k
    work.afford(listed <= 4 * MOST_CONSTRAINTS, "the world has too many constraints to be checked")
    states = []
    for place in chosen:
        loss_of = {orbit[place, o]: losses[place][o] for o in range(k)}
        states.append([(members[number], loss_of[number]) for number in sorted(loss_of)])

    def moves() -> Iterator[Move]:
        for place in chosen:
            for who, came in itertools.product(sorted(set(datasets[place])), range(kinds)):
                after = list(datasets[place])
                after.remove(who)
                there = at[tuple(sorted([*after, came]))]
                if there != place:
                    yield dict(Counter((orbit[place, o], orbit[there, o]) for o in range(k)))

    return World(states, moves(), listed + listed * n // (4 * k))


def _binomial(total: int, size: int) -> int:
    size, result = min(size, total - size), 1
    for step in range(1, size + 1):
        result = result * (total - step + 1) // step
        work.afford(result <= MOST_UNKNOWNS, "there are too many datasets to be checked")
    return result


WORLDS: dict[str, tuple[Callable[[Mapping[str, Any]], World], set[str]]] = {
    "selection": (_selection, {"n_users", "n_items", "loss", "agreement"}),
    "sum": (_sum, {"lowest", "reach", "outputs", "losses"}),
    "users": (_users, {"universe", "n_users", "n_examples", "outputs", "losses", "symmetries"}),
}


def world_of(stated: Any) -> World:
    """The world of a certificate, from its parameters."""
    need(isinstance(stated, dict) and isinstance(stated.get("kind"), str), "world must be an object with a kind")
    need(stated["kind"] in WORLDS, f"unknown world {stated['kind']!r:.40}")
    build, names = WORLDS[stated["kind"]]
    need(set(stated) == names | {"kind"}, "the world has missing or unknown fields")
    return build(stated)


def constraints(world: World) -> list[list[tuple[int, int, int]]]:
    """Each different move once, in order; an unknown beside itself asks for nothing."""
    found: set[tuple[tuple[int, int, int], ...]] = set()
    entries = 0
    work.spend(ENTRY * world.size, "a smaller world has fewer constraints")
    for move in world.moves:
        group = tuple(sorted((p, q, times) for (p, q), times in move.items() if p != q))
        if group and group not in found:
            found.add(group)
            entries += len(group)
            work.afford(entries <= MOST_CONSTRAINTS, "the world has too many constraints to be checked")
    return [list(group) for group in sorted(found)]


# The certificate ----------------------------------------------------------------------------------------------


def _enclosed(stated: Any, below: Fraction, above: Fraction) -> None:
    """Whether below <= e^epsilon <= above."""
    need(isinstance(stated, dict) and set(stated) == {"ratio", "exponent"}, "epsilon has missing or unknown fields")
    ratio, exponent = _number(stated["ratio"], "epsilon"), _number(stated["exponent"], "epsilon")
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    work.afford(exponent <= MOST_EXPONENT, "epsilon is too large to be checked")
    need(1 <= below <= above, "below and above must be at least 1, and in this order")
    if exponent == 0:
        need(below == ratio == above, "below and above are not e^epsilon, which is a fraction")
        return
    need(above - below <= below / 2**64, "below and above are too far apart")
    bits = 64 + max(x.bit_length() for x in (below.numerator, below.denominator, above.numerator, above.denominator))
    level = exponential(exponent, bits)
    inside = Near.of(below / ratio, bits).at_most(level) and level.at_most(Near.of(above / ratio, bits))
    need(inside, "e^epsilon is not certainly between below and above")


def _loss_of_table(
    world: World, groups: list[list[tuple[int, int, int]]], table: list[int], total: int, below: Fraction,
    delta: Fraction, prior: list[Fraction] | None,
) -> Fraction:  # fmt: skip
    """The loss of a table that is a mechanism and private; a problem if it is not."""
    place, losses = 0, []
    for classes in world.states:
        masses = table[place : place + len(classes)]
        place += len(classes)
        need(sum(m * mass for (m, _), mass in zip(classes, masses, strict=True)) == total, "a pmf has another total")
        losses.append(summed(m * mass * loss for (m, loss), mass in zip(classes, masses, strict=True)) / total)
    top, bottom = below.numerator, below.denominator
    allowed = delta * total * bottom
    if not delta:
        pairs = {(p, q) for group in groups for p, q, _ in group}
        private = all(table[p] * bottom <= table[q] * top for p, q in pairs)
    else:
        private = all(
            sum(times * max(0, table[p] * bottom - table[q] * top) for p, q, times in group) <= allowed
            for group in groups
        )
    need(private, "the table is not private at epsilon and delta")
    if prior is None:
        return max(losses)
    return summed(weight * loss for weight, loss in zip(prior, losses, strict=True))


def proved_bound(
    world: World, groups: list[list[tuple[int, int, int]]], weights: Sequence[Fraction], y: Mapping[int, int],
    scale: int, above: Fraction, delta: Fraction,
) -> Fraction:  # fmt: skip
    """What every private mechanism loses at least, by weak duality, for any y >= 0 and any weights of the states."""
    unknowns = sum(map(len, world.states))
    gain, used = [0] * unknowns, Fraction(0)
    if delta:
        place = 0
        for group in groups:
            most = Fraction(0)
            for p, q, times in group:
                units = y.get(place, 0)
                place += 1
                gain[p] += units * above.denominator
                gain[q] -= units * above.numerator
                most = max(most, Fraction(units, times))
            used += most
    else:
        for place, (p, q) in enumerate(sorted({(p, q) for group in groups for p, q, _ in group})):
            units = y.get(place, 0)
            gain[p] += units * above.denominator
            gain[q] -= units * above.numerator
    parts, place = [], 0
    for classes, weight in zip(world.states, weights, strict=True):
        gains = gain[place : place + len(classes)]
        place += len(classes)
        # One output's share of what a class of m outputs gains.
        parts.append(
            min(
                weight * loss + Fraction(own, m * above.denominator * scale)
                for (m, loss), own in zip(classes, gains, strict=True)
            )
        )
    return summed(parts) - delta * used / scale


@checks(
    "optimality",
    "world epsilon below above delta objective prior total table scale mu y value lower_bound",
    certain=True,
)
def check_optimality(report: Mapping[str, Any]) -> Checked:
    """Decide that the table is a private mechanism with the stated loss, and the bound below which no other is."""
    world = world_of(report["world"])
    unknowns = sum(map(len, world.states))
    need(isinstance(report["table"], list) and len(report["table"]) == unknowns, f"table must have {unknowns} masses")
    groups = constraints(world)
    entries = sum(map(len, groups))
    below, above = _number(report["below"], "below"), _number(report["above"], "above")
    _enclosed(report["epsilon"], below, above)
    delta = _number(report["delta"], "delta")
    need(0 <= delta < 1, "delta must be in [0, 1)")
    total, scale = _whole(report["total"], "total"), _whole(report["scale"], "scale")
    need(total > 0 and scale > 0, "total and scale must be above 0")
    width = scale.bit_length() + above.numerator.bit_length() + above.denominator.bit_length()
    work.afford(
        unknowns * width <= MOST_UNKNOWN_BITS, "scale and above are too long for so many unknowns to be checked"
    )
    work.spend(unknowns * (1e4 + 3 * work.product(width)) + entries * 200, "fewer digits of scale and above take less")
    table = [_whole(mass, "a mass") for mass in report["table"]]
    prior, weights = _weights(report, world, scale)
    rows = entries if delta else len({(p, q) for group in groups for p, q, _ in group})
    need(isinstance(report["y"], list), "y must be a list")
    y: dict[int, int] = {}
    last = -1
    for entry in report["y"]:
        need(isinstance(entry, list) and len(entry) == 2, "an entry of y must be a constraint and its weight")
        row, units = count(entry[0], "a constraint of y"), _whole(entry[1], "a weight of y")
        need(last < row < rows and units > 0, "y must be of constraints of the world, in order, with weights above 0")
        y[row], last = units, row
    value = _loss_of_table(world, groups, table, total, below, delta, prior)
    need(value == _exactly(report["value"], "value"), "value is not what the table loses")
    bound = proved_bound(world, groups, weights, y, scale, above, delta)
    need(bound == _exactly(report["lower_bound"], "lower_bound"), "lower_bound is not what mu and y prove")
    return Checked("established", 0, len(groups))


def _exactly(value: Any, name: str) -> Fraction:
    """A number that has as many digits as it needs."""
    need(isinstance(value, str), f"{name} is no number as text")
    work.afford(len(value) <= 2**20, f"{name} is too long to be checked")
    return fraction(value)


def _weights(report: Mapping[str, Any], world: World, scale: int) -> tuple[list[Fraction] | None, list[Fraction]]:
    """The prior, and what the dual program weighs the states with: that, or any probabilities."""
    states, objective = len(world.states), report["objective"]
    need(objective in ("worst", "bayes"), f"unknown objective {objective!r:.40}")
    if objective == "worst":
        need(report["prior"] is None and world.prior is None, "a prior goes with the objective 'bayes'")
        need(isinstance(report["mu"], list) and len(report["mu"]) == states, f"mu must have {states} weights")
        mu = [_whole(weight, "a weight of mu") for weight in report["mu"]]
        need(sum(mu) == scale, "mu must sum to the scale")
        return None, [Fraction(weight, scale) for weight in mu]
    need(report["mu"] is None, "mu is the prior where there is one")
    need(isinstance(report["prior"], list) and len(report["prior"]) == states, f"prior must have {states} weights")
    prior = [_exactly(weight, "a weight of the prior") for weight in report["prior"]]
    need(all(weight >= 0 for weight in prior) and summed(prior) == 1, "prior must be >= 0 and sum to 1")
    need(world.prior is None or prior == world.prior, "prior is not that of the world")
    return prior, prior
