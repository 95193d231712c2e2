"""Checking reports of deletions, perfect generalization and stability again; see `check` and `audits`.

The last of these holds no distributions of a learner, so that only what follows from its own numbers is computed again.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from userdp.checker import values, work
from userdp.checker.divergences import Level, Pmf, Value, positive_part, ratio_cap
from userdp.checker.running import (
    Asked,
    Checked,
    check_bounds,
    check_orders,
    checks,
    distinct,
    run,
    slack,
    within_error,
)
from userdp.checker.spaces import samples_of
from userdp.checker.values import count, decode, fraction, hex_float, need, summed, text_of

WORDS = {
    "engine": ("general", "symmetric", "additive", "score"),
    "method": ("race", "darts"),
}
_NARROW = Fraction(1, 2**200)
"""Enclosures of stability are about 2**-250 wide."""


def _share(value: Any, name: str) -> Fraction:
    number = fraction(value)
    need(0 <= number <= 1, f"{name} must be in [0, 1]")
    return number


def _list(value: Any, name: str, length: int | None = None) -> list[Any]:
    need(
        isinstance(value, list) and length in (None, len(value)),
        f"{name} must be a list" + f" of {length}" * bool(length),
    )
    return list(value)


def _only(value: Any, names: set[str], name: str) -> Mapping[str, Any]:
    need(isinstance(value, dict) and set(value) == names, f"{name} has missing or unknown fields")
    return dict(value)


def _level(value: Any) -> tuple[Fraction, Fraction]:
    parts = _only(value, {"ratio", "exponent"}, "epsilon")
    ratio, exponent = fraction(parts["ratio"]), fraction(parts["exponent"])
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    return ratio, exponent


def _outputs(value: Any, name: str = "outputs") -> list[str]:
    """Codes as text, all different."""
    codes = _list(value, name)
    need(bool(codes), f"{name} must not be empty")
    decode(codes, str)
    distinct(codes, name)
    return list(map(text_of, codes))


def _event(value: Any, outputs: Sequence[str]) -> list[int]:
    """The positions of an event's outputs."""
    event = list(map(text_of, _list(value, "an event")))
    need(event == sorted(set(event)) and set(event) <= set(outputs) and bool(event), "the event is no set of outputs")
    places = {text: place for place, text in enumerate(outputs)}
    return [places[text] for text in event]


def _verdict(value: Any) -> bool | None:
    need(value is None or isinstance(value, bool), "holds must be true, false or null")
    return None if value is None else bool(value)


# Deletions ---------------------------------------------------------------------------------------------------


@checks(
    "lddp",
    "holds lower upper witness pairs_evaluated engine algorithm outputs epsilon delta pmf_error r n_users",
    alone=False,
)
def check_lddp(report: Mapping[str, Any], asked: Asked) -> Checked:
    """Whether the numbers agree; with the algorithm and the dataset, whether they are right."""
    mechanism, declared, dataset, problems = asked.mechanism, asked.declared, asked.dataset, asked.problems
    n, r, holds = count(report["n_users"], "n_users"), count(report["r"], "r"), _verdict(report["holds"])
    need(r <= n, "more users are deleted than there are")
    work.afford(n <= values.MAX_USERS, "too many users to check")
    need(isinstance(report["algorithm"], str) and report["engine"] in WORDS["engine"], "algorithm or engine is unknown")
    count(report["pairs_evaluated"], "pairs_evaluated")
    ratio, exponent = _level(report["epsilon"])
    delta, error = _share(report["delta"], "delta"), _share(report["pmf_error"], "pmf_error")
    need(error < 1, "pmf_error must be below 1")
    low, high = hex_float(report["lower"]), hex_float(report["upper"])
    need(0 <= low <= high < math.inf, "lower and upper must satisfy 0 <= lower <= upper, and be finite")
    # Pmfs sum to 1 within 1e-9, and masses are within their declared error.
    need(low <= (1 + error) * (1 + Fraction(1, 10**8)), "a divergence is at most 1")
    tight = error > 0 or Fraction(high) - Fraction(low) <= slack(low) + slack(high)
    need(tight, "lower and upper are too far apart to say anything")
    may = {True: low <= delta, False: high > delta, None: error > 0 and low <= delta < high}
    need(may[holds], "holds is not what the bounds allow")
    outputs = _outputs(report["outputs"])
    witness, sets, event = report["witness"], list[tuple[int, ...]](), list[int]()
    # Within an error, equal stated pmfs have no witness, and may differ in truth.
    needed = high > 0 and not (error > 0 and witness is None)
    need((witness is not None) is needed, "a witness is needed exactly when the worst divergence is above 0")
    if witness is not None:
        first, second, found = _list(witness, "the witness", 3)
        for positions in (first, second):
            deleted = tuple(count(place, "a position") for place in _list(positions, "a deletion set", r))
            need(
                values.rising(deleted) and max(deleted, default=0) < n,
                "a deletion set is no set of positions",
            )
            sets.append(deleted)
        need(sets[0] != sets[1], "the witness compares one deletion set with itself")
        event = _event(found, outputs)
    if mechanism is None or dataset is None:
        return Checked("consistent")
    need(len(dataset) == n, f"the dataset has {len(dataset)} users, and the report is about {n}")
    if declared is not None and declared.pmf_error > error:
        problems.append("the mechanism declares a larger pmf_error than the report states")

    def left(deleted: Sequence[int]) -> Pmf:
        gone = set(deleted)
        kept = tuple(user for place, user in enumerate(dataset) if place not in gone)
        return run(mechanism, f"what deleting {tuple(deleted)} leaves", kept, len(outputs))

    refuted = False
    if sets:
        p, q = map(left, sets)
        level = Level(ratio, exponent, ratio_cap((p, q)))
        value = Value(p.mass(event), q.mass(event), level)
        inside = value.compare(Fraction(low)) >= 0 >= value.compare(Fraction(high))
        need(inside, "the witness has another divergence than the report states")
        need(holds is None or (value.compare(delta) <= 0) is holds, "the witness contradicts holds")
        # Within an error the stated pmfs may violate what the true ones do not.
        surely = within_error({0: p, 1: q}, [(0, 1)], (ratio, exponent), error)[1]
        refuted = holds is False and surely.compare(delta) > 0
    few = min(r, n - r)
    if few * n.bit_length() > 64 or math.comb(n, r) > values.ALL_DATASETS:
        return Checked("spot-checked", len(sets), len(sets) // 2, refuted)
    subsets = list(itertools.combinations(range(n), r))
    pmfs = dict.fromkeys(map(left, subsets))
    pairs = list(itertools.combinations(range(len(pmfs)), 2))
    if len(pairs) > values.COMPLETE_PAIRS:
        return Checked("spot-checked", len(subsets), len(sets) // 2, refuted)
    of = dict(enumerate(pmfs))
    # Within an error, one stated pmf of several deletion sets may be several in truth; other pairs are no better.
    edges = pairs or [(0, 0)] * (error > 0 and len(subsets) > 1)
    _, least, most = within_error(of, edges, (ratio, exponent), error)
    check_bounds((low, high), holds, least, most, delta)
    return Checked("established", len(subsets), len(subsets) * (len(subsets) - 1) // 2, refuted)


# Perfect generalization --------------------------------------------------------------------------------------


@checks(
    "generalization",
    "mechanism engine notion epsilon_level delta claimed_beta scope holds beta worst sample_perfect perfect universe "
    "distributions outputs simulator n_users n_examples datasets pmfs witness",
    alone=False,
)
def check_generalization(report: Mapping[str, Any], asked: Asked) -> Checked:
    """Whether the numbers agree; with the mechanism, whether every beta is right."""
    mechanism, declared, problems = asked.mechanism, asked.declared, asked.problems
    notion, scope, holds = report["notion"], report["scope"], _verdict(report["holds"])
    need(notion in ("sample", "simulator") and scope in ("all", "listed"), "notion or scope is unknown")
    need(isinstance(report["mechanism"], str), "the mechanism must have a name")
    level, delta = _level(report["epsilon_level"]), _share(report["delta"], "delta")
    claimed = None if report["claimed_beta"] is None else _share(report["claimed_beta"], "claimed_beta")
    outputs, universe = _outputs(report["outputs"]), _outputs(report["universe"], "universe")
    listed = [_distribution(masses, len(universe)) for masses in _list(report["distributions"], "distributions")]
    need(bool(listed), "there must be a distribution")
    stated = {
        name: [_share(beta, name) for beta in _list(report[name], name, len(listed))]
        for name in ("sample_perfect", "perfect")
    }
    betas, beta = stated["sample_perfect" if notion == "sample" else "perfect"], fraction(report["beta"])
    need(beta == max(betas), "beta is not the largest of its notion")
    worst = count(report["worst"], "worst")
    need(worst == betas.index(beta), "worst is not the first distribution with the largest beta")
    expected = None if claimed is None else False if beta > claimed else True if scope == "listed" else None
    need(holds is expected, "holds is not what beta and the claim say")
    given = None if report["simulator"] is None else Pmf.read(report["simulator"], len(outputs))
    space = samples_of(report)
    if report["datasets"] != space.datasets:
        problems.append(f"datasets is {report['datasets']!r:.40}, but the universe has {space.datasets}")
    distinct_pmfs = count(report["pmfs"], "pmfs", 1)
    need(distinct_pmfs <= space.datasets, "there are more pmfs than datasets")
    real = {"universe": tuple(decode(report["universe"]))}
    witness, refuted = report["witness"], False
    need((witness is None) == (beta == 0), "a witness is needed exactly when beta is above 0")
    event, divergence = list[int](), (0.0, 0.0)
    if witness is not None:
        witness = _only(witness, {"x", "x2", "event", "divergence", "reversed"}, "witness")
        event = _event(witness["event"], outputs)
        low, high = map(hex_float, _list(witness["divergence"], "divergence", 2))
        need(0 <= low <= high < math.inf and high > delta, "the witness has no divergence above delta")
        need(Fraction(high) - Fraction(low) <= slack(low) + slack(high), "the witness's divergence is too wide")
        divergence = low, high
        need(isinstance(witness["reversed"], bool), "reversed must be true or false")
        need((witness["x2"] is None) == (notion == "simulator"), "the witness does not fit the notion")
        for sample in [witness["x"]] + [witness["x2"]] * (notion == "sample"):
            need(_possible(sample, report, universe, listed[worst]), "the witness is no sample")
    if mechanism is None:
        return Checked("consistent")
    if declared is not None and declared.pmf_error:
        problems.append("the mechanism declares a pmf_error, and generalization is about exact masses")
    symmetric = report["engine"] == "symmetric"
    if symmetric and declared is not None and not declared.symmetric:
        problems.append("cannot confirm that the order of users does not matter: the mechanism does not declare it")

    def pmf_of(rank: int) -> Pmf:
        return run(mechanism, f"dataset {rank}", space.dataset(rank, real), len(outputs))

    if space.datasets > values.ALL_DATASETS or space.datasets * len(listed) > values.COMPLETE_PAIRS:
        tried = 0
        if witness is not None and notion == "sample":
            p, q = (run(mechanism, "the witness", decode(witness[name]), len(outputs)) for name in ("x", "x2"))
            _check_divergence(p.normalized(), q.normalized(), event, level, divergence, delta)
            tried = 2
        return Checked("spot-checked" if tried else "consistent", tried)
    by_rank = [pmf_of(rank) for rank in range(space.datasets)]
    pmfs = list(dict.fromkeys(pmf.normalized() for pmf in by_rank))
    if len(pmfs) * (len(pmfs) - 1) // 2 > values.COMPLETE_PAIRS:
        return Checked("spot-checked", space.datasets)
    place = {pmf: index for index, pmf in enumerate(pmfs)}
    of_rank = [place[pmf.normalized()] for pmf in by_rank]
    cap = ratio_cap(pmfs)
    clashing = [
        pair
        for pair in itertools.combinations(range(len(pmfs)), 2)
        if _differ(pmfs[pair[0]], pmfs[pair[1]], level, cap, delta)
    ]
    for position, distribution in enumerate(listed):
        weights = [Fraction(0)] * len(pmfs)
        for rank, index in enumerate(of_rank):
            weights[index] += _probability(space.members(rank), distribution, int(report["n_examples"]), symmetric)
        sample = sum((2 * weights[i] * weights[j] for i, j in clashing), Fraction(0))
        center = given.normalized() if given is not None else _mixture(pmfs, weights)
        cap = ratio_cap((*pmfs, center))
        far = sum(
            (w for pmf, w in zip(pmfs, weights, strict=True) if _differ(pmf, center, level, cap, delta)), Fraction(0)
        )
        for name, found in (("sample_perfect", sample), ("perfect", far)):
            need(stated[name][position] == found, f"the mechanism has another {name} under distribution {position}")
        if witness is not None and position == worst:
            p = run(mechanism, "the witness", decode(witness["x"]), len(outputs)).normalized()
            q = center
            if witness["x2"] is not None:
                q = run(mechanism, "the witness", decode(witness["x2"]), len(outputs)).normalized()
            _check_divergence(*((q, p) if witness["reversed"] else (p, q)), event, level, divergence, delta)
    # Floats may be different pmfs that normalizing makes one.
    counted = len(pmfs) <= distinct_pmfs <= len(set(by_rank))
    need(counted, f"the mechanism has {len(pmfs)} distinct pmfs, and the report states {distinct_pmfs}")
    refuted = holds is False
    datasets, finding = space.datasets, "established"
    if symmetric and not problems and not (declared is not None and declared.by_construction):
        every, tried = check_orders(mechanism, len(outputs), space, real, by_rank.__getitem__, complete=True)
        datasets, finding = datasets + tried, "established" if every else "spot-checked"
    return Checked(finding, datasets, len(pmfs) * (len(pmfs) - 1) // 2, refuted)  # type: ignore[arg-type]


def _distribution(masses: Any, length: int) -> list[Fraction]:
    found = [_share(mass, "a probability") for mass in _list(masses, "a distribution", length)]
    need(summed(found) == 1, "a distribution does not sum to 1")
    return found


def _possible(sample: Any, report: Mapping[str, Any], universe: list[str], distribution: Sequence[Fraction]) -> bool:
    """Whether a sample has users and examples of the stated numbers, all of positive probability."""
    likely = {example for example, mass in zip(universe, distribution, strict=True) if mass}
    users = _list(sample, "a sample", int(report["n_users"]))
    return all(
        text_of(example) in likely for user in users for example in _list(user, "a user", int(report["n_examples"]))
    )


def _probability(members: Sequence[int], distribution: Sequence[Fraction], m: int, symmetric: bool) -> Fraction:
    """Of a dataset, given by the ranks of its users' values; of all its orders, for multisets."""
    size, found = len(distribution), Fraction(1)
    for member in members:
        for place in range(m):
            found *= distribution[member // size**place % size]
    if symmetric and found:
        orders = math.factorial(len(members))
        found *= orders // math.prod(map(math.factorial, Counter(members).values()))
    return found


def _mixture(pmfs: Sequence[Pmf], weights: Sequence[Fraction]) -> Pmf:
    masses = [
        sum(
            (weight * Fraction(pmf.weights[o], pmf.total) for pmf, weight in zip(pmfs, weights, strict=True)),
            Fraction(0),
        )
        for o in range(len(pmfs[0].weights))
    ]
    return Pmf.of(masses)


def _differ(p: Pmf, q: Pmf, level: tuple[Fraction, Fraction], cap: int, delta: Fraction) -> bool:
    """Whether two pmfs are not (epsilon, delta)-indistinguishable."""
    multiplier = Level(*level, cap)
    return any(Value(*positive_part(a, b, multiplier), multiplier).compare(delta) > 0 for a, b in ((p, q), (q, p)))


def _check_divergence(
    p: Pmf,
    q: Pmf,
    event: Sequence[int],
    level: tuple[Fraction, Fraction],
    bounds: tuple[float, float],
    delta: Fraction,
) -> None:
    value = Value(p.mass(event), q.mass(event), Level(*level, ratio_cap((p, q))))
    inside = value.compare(Fraction(bounds[0])) >= 0 >= value.compare(Fraction(bounds[1]))
    need(inside, "the witness has another divergence than the report states")
    need(value.compare(delta) > 0, "the witness has no divergence above delta")


# Stability ---------------------------------------------------------------------------------------------------


def stable_share(rho: Fraction, eta: Fraction) -> Fraction:
    """For how much of the public randomness some item has probability at least eta, where users agree with rho."""
    if eta == 1:
        return Fraction(int(rho == 1))
    return max(Fraction(0), 1 - (1 - rho) / ((1 - eta) * max(Fraction(1), 2 * eta)))


Enclosed = tuple[Fraction, Fraction]


def _enclosed(value: Any, name: str, *, narrow: bool = True) -> Enclosed:
    low, high = (_share(end, name) for end in _list(value, name, 2))
    need(low <= high, f"{name} has its ends in the wrong order")
    need(not narrow or high - low <= _NARROW, f"{name} is too wide to say anything")
    return low, high


@checks(
    "stability",
    "learner distribution m alpha eta samples outcomes items global_stability list_size method agreement distance nu "
    "seeds",
)
def check_stability(report: Mapping[str, Any]) -> Checked:
    """Whether everything that follows from the items, the seeds and the agreement follows."""
    need(isinstance(report["learner"], str), "the learner must have a name")
    m, alpha, eta = count(report["m"], "m", 1), _share(report["alpha"], "alpha"), _share(report["eta"], "eta")
    need(eta > 0, "eta must be above 0")
    atoms = [_list(pair, "an example and its probability", 2) for pair in _list(report["distribution"], "distribution")]
    need(bool(atoms), "the distribution is empty")
    decode([code for code, _ in atoms], str)
    masses = [_share(mass, "a probability") for _, mass in atoms]
    need(summed(masses) == 1 and min(masses) > 0, "the distribution has no positive probabilities with the sum 1")
    samples, seeds = count(report["samples"], "samples", 1), _list(report["seeds"], "seeds")
    counts = (_binomial(m + len(atoms) - 1, len(atoms) - 1), _power(len(atoms), m))
    work.afford(samples <= values.MAX_DATASETS, "too many samples to check")
    need(samples in counts, f"there are {counts[0]} samples as multisets and {counts[1]} as sequences")
    outcomes = count(report["outcomes"], "outcomes", 1)
    need(outcomes <= samples * max(1, len(seeds)), "there are more outcomes than samples")
    items = [_item(item, alpha) for item in _list(report["items"], "items")]
    need(bool(items), "there is no item")
    lows = [low for (low, _), _ in items]
    need(lows == sorted(lows, reverse=True), "the items are not in the order of their probabilities")
    named = [item["item"] for item in report["items"] if not _has_text_only(item["item"])]
    distinct(named, "items")
    fine = [probability for probability, accurate in items if accurate]
    best = (max(low for low, _ in fine), max(high for _, high in fine)) if fine else (Fraction(0), Fraction(0))
    stated = _enclosed(report["global_stability"], "global_stability")
    need(stated == best, "global_stability is not that of the likeliest accurate item")
    total = summed(lows), summed(high for (_, high), _ in items)
    optional = ("method", "agreement", "distance", "nu")
    if report["list_size"] is not None:
        longest = count(report["list_size"], "list_size")
        need(not seeds and all(report[name] is None for name in optional), "lists have no method, agreement or nu")
        need(total[0] <= longest, "the items are listed more often than lists have places")
        return Checked("consistent")
    need(total[0] <= 1 <= total[1], "the probabilities of the items do not sum to 1")
    nu = _enclosed(report["nu"], "nu", narrow=False)
    if seeds:
        need(all(report[name] is None for name in optional[:3]), "listed seeds have no method, agreement or distance")
        found = [_seed(seed, alpha, eta) for seed in seeds]
        need(summed(weight for weight, _ in found) == 1, "the seeds do not have probabilities with the sum 1")
        low, high = (
            summed(weight for weight, accurate in found if accurate in kinds) for kinds in ((True,), (True, None))
        )
        need(nu == (low, high), "nu is not the weight of the seeds with a stable and accurate item")
        return Checked("consistent")
    need(report["method"] in WORDS["method"], "the method is unknown")
    agreement, distance = (_enclosed(report[name], name) for name in ("agreement", "distance"))
    missed = Fraction(int(distance[1] > 0)) if eta == 1 else distance[1] / (1 - eta)
    stable = max(stable_share(agreement[0], eta), 1 - missed)
    low, high = summed(low for low, _ in fine), summed(high for _, high in fine)
    inaccurate = Fraction(0) if len(fine) == len(items) else 1 - low
    implied = (max(Fraction(0), stable - inaccurate / eta), min(Fraction(1), agreement[1] / eta**2, high / eta))
    need(nu == implied, "nu is not what the agreement, the distance and the items say about it")
    return Checked("consistent")


def _has_text_only(code: Any) -> bool:
    """Whether a code, or one in it, is the text of an object; different objects may have the same text."""
    if isinstance(code, dict):
        return "repr" in code or any(map(_has_text_only, code.values()))
    return isinstance(code, list) and any(map(_has_text_only, code))


def _item(item: Any, alpha: Fraction) -> tuple[Enclosed, bool]:
    """The probability of an item, and whether it is accurate."""
    parts = _only(item, {"item", "probability", "error"}, "an item")
    decode(parts["item"], str)
    error = None if parts["error"] is None else _share(parts["error"], "an error")
    return _enclosed(parts["probability"], "a probability"), alpha == 1 or (error is not None and error <= alpha)


def _seed(seed: Any, alpha: Fraction, eta: Fraction) -> tuple[Fraction, bool | None]:
    """The weight of a seed, and whether it has a stable and accurate item."""
    parts = _only(seed, {"seed", "weight", "best", "stable", "accurate"}, "a seed")
    decode(parts["seed"], str)
    weight, ((low, high), fine) = _share(parts["weight"], "a weight"), _item(parts["best"], alpha)
    need(weight > 0, "a seed has no weight")
    stable, accurate = _verdict(parts["stable"]), _verdict(parts["accurate"])
    need((stable is True) == (low >= eta), "stable is not what the likeliest item says")
    need(stable is not False or high < eta, "stable is not what the likeliest item says")
    need(accurate is not True or stable is True, "a seed has an accurate stable item, but no stable one")
    need(accurate is False or stable is not False, "a seed may have an accurate stable item, but no stable one")
    need(not fine or stable is None or accurate is stable, "accurate is not what the likeliest item says")
    return weight, accurate


def _binomial(n: int, k: int) -> int:
    """The binomial coefficient, or any number above all limits when it is one."""
    found = 1
    for step in range(1, min(k, n - k) + 1):
        found = found * (n - step + 1) // step
        if found > values.MAX_DATASETS:
            break
    return found


def _power(base: int, exponent: int) -> int:
    """The power, or any number above all limits when it is one."""
    if base == 1:
        return 1
    return base**exponent if exponent < 64 else values.MAX_DATASETS + 1
