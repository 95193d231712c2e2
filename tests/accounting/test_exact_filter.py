"""A ledger with composition="exact" is a filter: whoever chooses by what came out so far stays within its promise.

All adaptive strategies over small menus are enumerated in fractions: any order of the slots, any stop, any use of a
divisible budget. The same enumeration with half of what is spent left out is above the promise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import pytest

from oracle import composition as oracle
from userdp import LogRatio
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution
from userdp.exceptions import PrivacyBudgetError

F = Fraction
PLD = PrivacyLossDistribution
NEAR = F(51, 50)
"""Unlike slots are composed on a grid: a promise so far above what they amount to has a quick verdict."""

Menu = Mapping[str, oracle.Pair]
Allowed = Callable[[tuple[str, ...]], bool]


def ratio(level: Fraction | int) -> LogRatio:
    return LogRatio(*F(level).as_integer_ratio())


def reached(menu: Menu, allowed: Allowed, multiplier: Fraction, depth: int, *, ordered: bool = True) -> Fraction:
    """The largest divergence of all strategies; unlike the oracle's, what is allowed may depend on the order."""
    ask = lru_cache(maxsize=None)(allowed)

    @cache
    def best(x: Fraction, spent: tuple[str, ...]) -> Fraction:
        """From masses 1 and x on."""
        value = max(F(0), 1 - multiplier * x)
        if len(spent) < depth:
            for name, pair in menu.items():
                after = (*spent, name) if ordered else tuple(sorted((*spent, name)))
                if ask(after):
                    value = max(value, sum((a * best(x * b / a, after) for a, b in pair if a), F(0)))
        return value

    return best(F(1), ())


def asks(make: Callable[[], PrivacyLedger], items: Mapping[str, Any], *, every: int = 1) -> Allowed:
    """Whether a new ledger allows all of these one after the other; `every=2` charges each other one only."""
    ledger = make()
    # To certify the same promise for every path would take minutes.
    nothing = ledger._spent, ledger._used

    @cache
    def after(names: tuple[str, ...]) -> Any:
        """What is spent after all of these; None where one of them was refused."""
        before = after(names[:-1]) if names else nothing
        if not names or before is None:
            return before
        ledger._spent, ledger._used = before
        ledger._entries = []
        try:
            ledger.spend(items[names[-1]])
        except PrivacyBudgetError:
            return None
        return ledger._spent, ledger._used

    return lambda names: after(names[every - 1 :: every]) is not None


def masses(pair: oracle.Pair) -> tuple[list[Fraction], list[Fraction]]:
    return [p for p, _ in pair], [q for _, q in pair]


def swapped(pair: oracle.Pair) -> oracle.Pair:
    return tuple((q, p) for p, q in pair)


def garbled(pair: oracle.Pair, rng: random.Random) -> oracle.Pair:
    """What a random channel makes of the outcome: any pair that is dominated by a pair is such a one."""
    outputs = rng.randint(2, 3)
    rows = [[rng.randint(0, 4) for _ in range(outputs)] for _ in pair]
    rows = [row if any(row) else [1] * outputs for row in rows]
    return tuple(
        (
            sum((p * F(row[y], sum(row)) for (p, _), row in zip(pair, rows, strict=True)), F(0)),
            sum((q * F(row[y], sum(row)) for (_, q), row in zip(pair, rows, strict=True)), F(0)),
        )
        for y in range(outputs)
    )


def mirrored(rng: random.Random) -> oracle.Pair:
    """A pair whose curves are equal in both orders, so that it is its own maximum."""
    weights = [rng.randint(1, 8) for _ in range(3)]
    total = sum(weights)
    return tuple((F(p, total), F(q, total)) for p, q in zip(weights, reversed(weights), strict=True))


SLOTS: dict[str, Sequence[tuple[oracle.Pair, int]]] = {
    "two responses": [(oracle.response(F(2)), 1), (oracle.response(F(4)), 1)],
    "three responses": [(oracle.response(F(2)), 2), (oracle.response(F(3)), 1)],
    "with a leak": [(oracle.response(F(2), F(1, 20)), 1), (oracle.response(F(3, 2)), 2)],
    "pairs 1": [(mirrored(random.Random(1)), 1), (mirrored(random.Random(2)), 1)],
    "pairs 2": [(mirrored(random.Random(3)), 2), (oracle.response(F(2)), 1)],
    "pairs 3": [(mirrored(random.Random(4)), 1), (mirrored(random.Random(5)), 1), (mirrored(random.Random(6)), 1)],
}


@pytest.mark.parametrize("level", [F(3, 2), F(3)], ids=str)
@pytest.mark.parametrize("slots", SLOTS.values(), ids=SLOTS)
def test_slots_are_a_filter(slots: Sequence[tuple[oracle.Pair, int]], level: Fraction) -> None:
    rng = random.Random(len(slots) * 100 + int(4 * level))
    truth = oracle.composed_delta([pair for pair, count in slots for _ in range(count)], level)
    assert truth > 0
    given = [(PLD.from_pairs([masses(pair)]), count) for pair, count in slots]
    with pytest.raises(ValueError, match="slots and gaussian"):
        PrivacyLedger(ratio(level), truth / NEAR, "exact", slots=given, gaussian=0, distance=0)

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), truth * NEAR, "exact", slots=given, gaussian=0, distance=0)

    menu = {str(index): pair for index, (pair, _) in enumerate(slots)}
    menu |= {f"{name} garbled": garbled(pair, rng) for name, pair in list(menu.items())[:2]}
    menu |= {"0 swapped": swapped(menu["0 garbled"])}
    items = {name: PLD.from_pmfs(*masses(pair)) for name, pair in menu.items()}
    depth = sum(count for _, count in slots) + 1
    # All slots in any order is what the promise is made of: it is reached, and never exceeded.
    assert reached(menu, asks(ledger, items), level, depth) == truth
    assert reached(menu, asks(ledger, items, every=2), level, depth) > truth * NEAR


def test_slots_of_epsilons_are_used_by_what_is_so_private() -> None:
    """Pure and bounded range, by their parameters, with a tie of the promise."""
    level = F(2)
    responses = [oracle.response(F(2)), oracle.response(F(4))]
    promise = F(2, 5)
    assert oracle.composed_delta(responses, level) == promise
    slots = [(PLD.pure(ratio(2)), 1), (PLD.pure(ratio(4)), 1)]

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), promise, "exact", slots=slots, gaussian=0, distance=0)

    menu = {"2": oracle.response(F(2)), "4": oracle.response(F(4)), "3/2": oracle.response(F(3, 2))}
    items = {name: PrivacyCost(ratio(F(name))) for name in menu}
    allowed = asks(ledger, items)
    # The strategy of docs/proofs/composition.md: after a lie it asks three times at ln 2. No slot is left for that.
    assert allowed(("2", "4"))
    assert allowed(("4", "2"))
    assert allowed(("2", "3/2"))
    assert not allowed(("2", "2", "2"))
    assert not allowed(("2", "2", "2", "2"))
    assert not allowed(("4", "4"))
    assert reached(menu, allowed, level, depth=4) == promise
    assert reached(menu, asks(ledger, items, every=2), level, depth=4) >= F(182, 405) > promise
    # Of a bounded range there is a slot for twice a pure epsilon; and in a pure slot for a range.
    ranged = PrivacyLedger(2, "1e-3", "exact", slots=[(PLD.bounded_range(ratio(4)), 1)], gaussian=0)
    assert ranged.can_spend(PrivacyCost(ratio(2)))
    assert ranged.can_spend(PrivacyCost(bounded_range=ratio(4)))
    assert not ranged.can_spend(PrivacyCost(bounded_range=ratio(F(401, 100))))
    with pytest.raises(ValueError, match="no slot is known to dominate"):
        ranged.can_spend(PrivacyCost(ratio(F(201, 100))))
    assert ledger().can_spend(PrivacyCost(bounded_range=ratio(4)))


P, Q = (F(30, 31), F(1, 31)), (F(14, 41), F(27, 41))


def test_a_pair_of_one_order_is_replaced_by_the_maximum_of_both() -> None:
    """Where a user is replaced, one release may see the datasets in one order and the next in the other."""
    level, one_order, mixed = F(60543, 8405), F(3582, 8405), F(5960448, 10682755)
    pair: oracle.Pair = tuple(zip(P, Q, strict=True))
    menu = {"there": pair, "back": swapped(pair)}
    assert oracle.composed_delta([pair, swapped(pair)], level) == mixed > one_order
    once = PLD.from_pmfs(P, Q)
    # Composed as it is, the pair would do.
    assert once.self_compose(2).is_private(ratio(level), one_order * NEAR)
    for promise in (one_order * NEAR, mixed / NEAR):
        with pytest.raises(ValueError, match="slots and gaussian"):
            PrivacyLedger(ratio(level), promise, "exact", slots=[(once, 2)], gaussian=0, distance=0)
    both = PLD.from_pairs([(P, Q)]).self_compose(2).delta(ratio(level))

    def ledger(neighbors: str, promise: Any) -> PrivacyLedger:
        slot = PLD.from_pmfs(P, Q, neighbors=neighbors)  # type: ignore[arg-type]
        return PrivacyLedger(
            ratio(level), promise, "exact", slots=[(slot, 2)], gaussian=0, distance=0, neighbors=neighbors
        )

    items = {name: PLD.from_pmfs(*masses(given)) for name, given in menu.items()}
    found = reached(menu, asks(lambda: ledger("replace", F(both.upper) * NEAR), items), level, 3)
    assert mixed <= found <= F(both.upper)
    # With a user or without: the side is the same in all releases, and only one order may take the slot.
    sided = {name: PLD.from_pmfs(*masses(given), neighbors="add-remove") for name, given in menu.items()}
    alone = ledger("add-remove", one_order * NEAR)
    alone.spend(sided["there"])
    with pytest.raises(ValueError, match="no slot is known to dominate"):
        alone.spend(sided["back"])
    alone.spend(sided["there"])
    assert not alone.can_spend(sided["there"])


# --- divisible budgets


def quantile(mass: Fraction) -> Fraction:
    """A number x with Phi(x) >= mass, within 1e-25 of the least: by a series and halving, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        scale = 1 / (2 * Decimal("3.14159265358979323846264338327950288419716939937510582097")).sqrt()

        def phi(x: Decimal) -> Decimal:
            term = total = x
            n = 0
            while abs(term) > Decimal("1e-48"):
                n += 1
                term *= x * x / (2 * n + 1)
                total += term
            return Decimal("0.5") + (-x * x / 2).exp() * scale * total

        low, high = Decimal(0), Decimal(6)
        wanted = Decimal(mass.numerator) / Decimal(mass.denominator)
        while high - low > Decimal("1e-26"):
            middle = (low + high) / 2
            low, high = (middle, high) if phi(middle) < wanted else (low, middle)
        return F(high + Decimal("1e-25"))


def noise_of(level: Fraction) -> Fraction:
    """A mu^2 whose Gaussians dominate randomized response at e^epsilon = level.

    Told whether a draw of N(0, 1) or N(mu, 1) is below mu / 2, one has a response that is right with probability
    Phi(mu / 2).
    """
    return 4 * quantile(level / (1 + level)) ** 2


RESPONSES = {name: oracle.response(F(name)) for name in ("3/2", "2", "5/4")}
NOISES = {name: PrivacyCost(mu2=noise_of(F(name))) for name in RESPONSES}


@pytest.mark.parametrize(
    ("level", "delta"), [(F(2), F(3, 20)), (F(3), F(1, 10)), (F(2), F(2, 5)), (F(3), F(1, 5))], ids=str
)
def test_the_gaussian_budget_is_a_filter(level: Fraction, delta: Fraction) -> None:
    made = PrivacyLedger(ratio(level), delta, "exact")
    budget = made.limits["mu2"]

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), delta, "exact", gaussian=budget)  # type: ignore[arg-type]

    found = reached(RESPONSES, asks(ledger, NOISES), level, depth=6, ordered=False)
    assert delta / 3 < found <= delta
    halved = {name: PrivacyCost(mu2=cost.mu2 / 2) for name, cost in NOISES.items() if cost.mu2}
    assert reached(RESPONSES, asks(ledger, halved), level, depth=8, ordered=False) > delta
    # Losses within ln x of 0 are in an interval of 2 ln x, which goes to the Gaussian budget without a slot.
    ranges = {name: PrivacyCost(bounded_range=ratio(F(name) ** 2)) for name in RESPONSES}
    assert delta / 3 < reached(RESPONSES, asks(ledger, ranges), level, depth=6, ordered=False) <= delta


def test_slots_beside_a_gaussian_budget_with_deltas_and_distances_are_a_filter() -> None:
    level, leak, far = F(2), F(1, 50), F(1, 200)
    right, wrong = F(3, 5) + far, F(2, 5) - far
    menu = {
        "2": oracle.response(F(2)),
        "leaky": oracle.response(F(2), leak),
        "moved": ((right, F(2, 5) - far), (wrong, F(3, 5) + far)),
        "5/4": oracle.response(F(5, 4)),
    }
    items: dict[str, Any] = {
        "2": PrivacyCost(ratio(2)),
        "leaky": PrivacyCost(ratio(2), leak),
        "moved": PrivacyCost(mu2=noise_of(F(3, 2)), distance=far),
        "5/4": PrivacyCost(mu2=noise_of(F(5, 4))),
    }
    given: dict[str, Any] = {"slots": [(PLD.pure(ratio(2)), 1)], "added_delta": leak, "distance": far}
    mu2 = noise_of(F(3, 2)) + noise_of(F(5, 4))
    delta = next(
        F(promise, 100) for promise in range(20, 60) if accepted(level, F(promise, 100), gaussian=mu2, **given)
    )

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), delta, "exact", gaussian=mu2, **given)

    allowed = asks(ledger, items)
    assert allowed(("moved", "leaky", "5/4"))
    assert not allowed(("moved", "2", "leaky"))
    assert not allowed(("moved", "moved"))
    found = reached(menu, allowed, level, depth=4)
    assert delta / 2 < found <= delta
    assert reached(menu, asks(ledger, items, every=2), level, depth=4) > delta


def test_deltas_beside_gaussian_noise_are_within_the_promise() -> None:
    """Releases that show something only one neighbor has, with a small probability, and else are as Gaussian noise."""
    level, leak = F(2), F(1, 50)
    shown, hidden = leak, 1 - leak
    menu = {
        "leaky": oracle.response(F(3, 2), leak),
        # Of two neighbors only one can show a key, in either order; what follows moves.
        "with": ((hidden * F(3, 5), F(2, 5)), (hidden * F(2, 5), F(3, 5)), (shown, F(0))),
        "without": ((F(3, 5), hidden * F(2, 5)), (F(2, 5), hidden * F(3, 5)), (F(0), shown)),
        "5/4": oracle.response(F(5, 4)),
    }
    beside = PrivacyCost(mu2=noise_of(F(3, 2)), added_delta=leak)
    items = {"leaky": beside, "with": beside, "without": beside, "5/4": PrivacyCost(mu2=noise_of(F(5, 4)))}
    given: dict[str, Any] = {"added_delta": 2 * leak, "gaussian": 2 * noise_of(F(3, 2)) + noise_of(F(5, 4))}
    delta = next(F(promise, 100) for promise in range(5, 60) if accepted(level, F(promise, 100), **given))

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), delta, "exact", **given)

    allowed = asks(ledger, items)
    assert allowed(("with", "without", "5/4"))
    assert not allowed(("with", "leaky", "without"))
    found = reached(menu, allowed, level, depth=4)
    assert delta / 3 < found <= delta
    # Where deltas are forgotten, and more is allowed so.
    forgotten = {name: PrivacyCost(mu2=cost.mu2) for name, cost in items.items() if cost.mu2 is not None}
    small = {name: PrivacyCost(mu2=F(1, 10**6)) for name in forgotten}
    assert reached(menu, asks(ledger, small), level, depth=5) > delta
    assert reached({"with": ((hidden, F(1)), (shown, F(0)))}, asks(ledger, {"with": small["with"]}), level, 30) > delta


def accepted(level: Fraction, delta: Fraction, **given: Any) -> bool:
    try:
        PrivacyLedger(ratio(level), delta, "exact", **given)
    except ValueError:
        return False
    return True
