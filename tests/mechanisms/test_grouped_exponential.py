"""The exponential mechanism on groups: a slow reference's integers, exact ratios, a supremum, and the auditor."""

from __future__ import annotations

import functools
import itertools
import json
import math
import pickle
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import exponential as listed_oracle
from oracle import grouped_exponential as oracle
from oracle.divergence import exp_bounds
from support.drawing import assert_follows, follows, seeded, with_a_bias
from userdp import LogRatio, _core
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.exact.epsilon import level_of
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import ExponentialMechanism, GroupedExponentialMechanism, GroupedScores

F = Fraction
WHOLE = 2**384
TOP = 2**64 - 1
CASES = json.loads((Path(__file__).parents[1] / "data" / "grouped_exponential_cases.json").read_text())
LOWEST, HIGHEST = -(2**63), 2**63 - 1
exp_of = functools.cache(exp_bounds)


def rho(choice: GroupedExponentialMechanism) -> Fraction:
    return choice._rate.bits_per_unit


def listed(bits: list[int]) -> _core.Source:
    return _core.Source.listed(b"".join(u.to_bytes(48, "little") for u in bits))


def encoded(source: random.Random, function: list[int], first: int = 0) -> GroupedScores:
    """Groups of a score function on neighbors, cut where it changes and at random elsewhere, with empty groups."""
    starts, scores = [], []
    for place, score in enumerate(function):
        if place == 0 or score != function[place - 1] or source.random() < 0.3:
            for _ in range(source.choice((0, 0, 0, 1, 2))):
                starts.append(first + place)
                scores.append(source.choice((LOWEST, HIGHEST, score)))
            starts.append(first + place)
            scores.append(score)
    for _ in range(source.choice((0, 0, 1, 2))):
        starts.append(first + len(function))
        scores.append(source.choice((LOWEST, HIGHEST)))
    return GroupedScores(starts, scores, first + len(function) - 1)


def output_distribution(choice: GroupedExponentialMechanism, groups: GroupedScores) -> tuple[int, ...]:
    return choice.pmf(groups).weights


# --- the reference's integers


SHAPES = {
    "one group": ([0], [5], TOP),
    "one point": ([TOP], [HIGHEST], TOP),
    "ends": ([0, 1, TOP], [0, 3, 1], TOP),
    "all equal": ([3, 10, 2**40, 2**63], [-7] * 4, TOP),
    "extremes": ([0, 2**20, 2**21], [HIGHEST, LOWEST, HIGHEST], 2**62),
    "extremes, far": ([0, 2**63, 2**63 + 1], [HIGHEST, LOWEST, HIGHEST], TOP),
    "empty first": ([0, 0, 0, 7], [LOWEST, -1, 2, 1], 99),
    "empty last": ([0, 7, 100, 100], [2, 1, LOWEST, HIGHEST], 99),
    "empty in the middle": ([0, 7, 7, 7, 50], [2, LOWEST, -5, 1, 2], 99),
    "empty but one": ([0, 0, 0], [LOWEST, -5, 1], TOP),
    "many": (list(range(0, 7000, 7)), [(i * i) % 101 - 50 for i in range(1000)], 6999),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [F(1, 10**6), F(1), F(80)])
def test_pmfs_and_draws_are_the_references(shape: str, epsilon: Fraction) -> None:
    starts, scores, last = SHAPES[shape]
    choice = GroupedExponentialMechanism(epsilon=epsilon, sensitivity=2)
    groups = GroupedScores(starts, scores, last)
    triples = oracle.triples(starts, scores, last)
    assert list(groups) == triples
    expected = oracle.group_numerators(triples, rho(choice))
    assert sum(expected) == WHOLE
    probabilities = choice.group_probabilities(groups)
    assert [p * WHOLE for p in probabilities if p] == expected
    assert len(probabilities) == len(starts)
    assert choice.group_probabilities(triples) == tuple(F(n, WHOLE) for n in expected)
    if groups.n_candidates <= 10**4:
        pmf = choice.pmf(groups)
        assert pmf.outputs == tuple(range(groups.first, last + 1))
        assert list(pmf.weights) == oracle.numerators(triples, rho(choice))

    # At the ends of the groups' shares, and next to them.
    ends = list(itertools.accumulate(expected))
    bits = {u for end in ends[:: 1 + len(ends) // 20] for u in (end - 1, end, end + 1) if 0 <= u < WHOLE}
    bits |= {0, WHOLE - 1} | {random.Random(3).randrange(WHOLE) for _ in range(20)}
    points = oracle.draws(triples, rho(choice), bits)
    rate, arrays = choice._rate, (groups.starts, groups.scores, last)
    many = rate.sample_many(*arrays, listed(list(bits)), len(bits))
    assert many.dtype == np.uint64
    assert many.tolist() == points
    singles = listed(list(bits))
    assert [rate.sample(*arrays, singles) for _ in bits] == points


def test_draws_at_the_ends_of_points() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    groups = GroupedScores([2, 2, 5, 9], [9, 1, 0, 3], 12)
    ends = list(itertools.accumulate(output_distribution(choice, groups)))
    bits, expected = [0], [2]
    for point, end in zip(range(2, 13), ends, strict=True):
        bits.append(end - 1)
        expected.append(point)
        if end < WHOLE:
            bits.append(end)
            expected.append(point + 1)
    found = choice._rate.sample_many(groups.starts, groups.scores, groups.last, listed(bits), len(bits))
    assert found.tolist() == expected


def test_a_range_of_2_to_64_points_is_uniform_when_scores_are_equal() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    source = random.Random(1)
    bits = [source.randrange(WHOLE) for _ in range(200)] + [(i << 320) - 1 for i in (1, 2, TOP, 2**64)]
    for cuts in ([0], [0, 5], [0, 2**63, TOP], [0, 0, 0]):
        arrays = GroupedScores(cuts, [4] * len(cuts), TOP)
        found = choice._rate.sample_many(arrays.starts, arrays.scores, TOP, listed(bits), len(bits))
        assert found.tolist() == [u >> 320 for u in bits]


@pytest.mark.parametrize("case", CASES["cases"])
def test_ideal_pmfs_of_huge_ranges(case: dict[str, Any]) -> None:
    base = F(case["base"])
    # 2 sensitivity ln(1 / base) per unit of score.
    choice = GroupedExponentialMechanism(epsilon=LogRatio(base.denominator**2, base.numerator**2), sensitivity=1)
    groups = GroupedScores.from_triples(case["groups"])
    assert groups.n_candidates == 2**64
    for found, expected in zip(choice.group_probabilities(groups), case["group_probabilities"], strict=True):
        assert abs(found / F(expected) - 1) < F(1, 10**8)


# --- groups are only an encoding


def test_the_cutting_of_groups_changes_nothing() -> None:
    source = random.Random(2)
    for _ in range(200):
        epsilon = source.choice((F(1, 100), F(1), F(20)))
        choice = GroupedExponentialMechanism(epsilon=epsilon, sensitivity=source.choice((1, 3, 10**6)))
        spread = source.choice((1, 5, choice._rate.largest_gap + 2))
        function = [source.randrange(-spread, spread + 1) for _ in range(source.randrange(1, 9))]
        first = source.choice((0, 17, 2**64 - 9))
        one, other = encoded(source, function, first), encoded(source, function, first)
        assert choice.pmf(one) == choice.pmf(other)
        singles = GroupedScores([first + i for i in range(len(function))], function, one.last)
        assert choice.pmf(one) == choice.pmf(singles)


def test_the_pmf_is_that_of_listed_candidates() -> None:
    source = random.Random(4)
    near = far = 0
    for _ in range(300):
        arguments: Any = {"epsilon": source.choice((F(1, 10), F(1), F(9))), "sensitivity": source.choice((1, 5))}
        many, few = GroupedExponentialMechanism(**arguments), ExponentialMechanism(**arguments)
        assert many._rate.bits_per_unit == few._rate.bits_per_unit
        spread = source.choice((2, 20, 4000))
        function = [source.randrange(spread) for _ in range(source.randrange(1, 40))]
        p, q = many.pmf(encoded(source, function)).fractions(), few.pmf(function).fractions()
        if max(function) - min(function) <= few._rate.largest_gap:
            # The same weights; only the shares of the draws are rounded, by less than k 2^-63 of each.
            assert all(abs(a / b - 1) < F(len(function), 2**62) for a, b in zip(p, q, strict=True))
            near += 1
        else:
            # Candidates that are clamped weigh less than 2^(rho - 64) of the best.
            distance = sum(abs(a - b) for a, b in zip(p, q, strict=True))
            assert 0 < distance < F(len(function) * 2 ** math.ceil(rho(many)), 2**62)
            far += 1
    assert min(near, far) >= 20


# --- exact ratios of neighbors


def largest_excess(source: random.Random, *, halved: bool, monotone: bool, instances: int) -> tuple[Fraction, int]:
    """The largest N_x / (e^epsilon N'_x) over random neighboring score functions, and how many ratios that is over."""
    worst, compared = F(0), 0
    while compared < instances:
        epsilon = source.choice((F(1, 100), F(1, 10), F(1), F(5, 2), F(8), F(40)))
        sensitivity = source.choice((1, 2, 3, 17, 10**6))
        choice = GroupedExponentialMechanism(
            epsilon=2 * epsilon if halved else epsilon, sensitivity=sensitivity, monotone=monotone
        )
        count = source.randrange(2, 9)
        spread = source.choice((1, 2 * sensitivity, choice._rate.largest_gap + sensitivity))
        values = [source.randrange(-spread, spread + 1) for _ in range(3)]
        function = [source.choice(values) for _ in range(count)]
        steps = [0 if monotone else -sensitivity, 0, sensitivity]
        moved = [score + source.choice(steps) for score in function]
        # Each is cut in its own way: the groups depend on the data.
        p, q = (
            output_distribution(choice, encoded(source, function)),
            output_distribution(choice, encoded(source, moved)),
        )
        for a, b in itertools.chain(zip(p, q, strict=True), zip(q, p, strict=True)):
            worst = max(worst, F(a, b) / exp_of(epsilon)[0])
            compared += 1
    return worst, compared


@pytest.mark.parametrize("monotone", [False, True])
def test_neighbors_are_within_epsilon_and_half_the_noise_is_not(monotone: bool) -> None:
    worst, compared = largest_excess(random.Random(5), halved=False, monotone=monotone, instances=12_000)
    print(f"{compared} exact ratios, the largest {float(worst - 1):.3g} above e^epsilon")
    assert compared >= 10_000
    assert 1 - F(1, 10**3) < worst <= 1
    assert largest_excess(random.Random(5), halved=True, monotone=monotone, instances=1000)[0] > 1


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(F(1), 1), (F(1, 2), 2), (F(1, 10), 1), (F(3), 4)])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_worst_ratio_over_all_scores_is_within_epsilon(epsilon: F, sensitivity: int, monotone: bool) -> None:
    def worst(epsilon: F, one_direction: bool) -> Fraction:
        rate = _core.GroupedExponentialRate(level_of(epsilon), sensitivity, monotone)
        gaps = range(rate.largest_gap + 2 * sensitivity + 2)
        weights = [oracle.weight(gap, rate.bits_per_unit) for gap in gaps]
        # For any number of candidates up to 2^64.
        theta = F(2**64 * max(weights), min(weights) * WHOLE)
        ratio = listed_oracle.worst_ratio(weights, sensitivity, 0, one_direction)
        return ratio * (1 + theta) / (1 - theta)

    limit = exp_of(epsilon)[0]
    assert limit * (1 - F(15, 10**12)) < worst(epsilon, monotone) <= limit
    assert worst(2 * epsilon, monotone) > limit
    if monotone:
        assert worst(epsilon, False) > limit


def test_the_odds_of_one_point_against_all_the_others_change_by_epsilon() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    best, others = choice.group_probabilities([(0, 0, 0), (1, TOP, 89)])
    worse, better = choice.group_probabilities([(0, 0, 1), (1, TOP, 88)])
    limit = exp_of(F(1))[0]
    assert limit * (1 - F(1, 10**9)) < best / worse * better / others <= limit


@pytest.mark.parametrize("epsilon", [2.0**-34, 0.1, 1.0, 44.0, 87.9])
def test_certified_epsilon_covers_the_loss_and_is_below_what_was_asked(epsilon: float) -> None:
    digits = F(1, 10**100)
    for sensitivity, monotone in [(1, False), (3, False), (2**62 - 1, True)]:
        choice = GroupedExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        units = sensitivity if monotone else 2 * sensitivity
        loss = units * rho(choice) * F(listed_oracle.LN_TWO) + listed_oracle.slack(F(2**64, 2**192))
        exact = choice._rate.certified_epsilon_exact
        assert loss - digits <= exact <= F(choice.certified_epsilon) <= F(epsilon)
        few = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        assert exact < few._rate.certified_epsilon_exact


# --- through the auditor


def median_of_values(choice: GroupedExponentialMechanism, high: int) -> SymmetricAlgorithm:
    """Each user has one value from 0 to high; groups are cut at the values, so that they depend on the data."""

    def distribution(dataset: Any) -> Any:
        values = sorted(value for (value,) in dataset)
        starts = sorted({0, *values, *(value + 1 for value in values if value < high)})
        scores = [max(sum(v < start for v in values), sum(v > start for v in values)) for start in starts]
        return choice.pmf(GroupedScores(starts, scores, high))

    return SymmetricAlgorithm(range(high + 1), distribution)


def test_audits_of_a_median_with_every_dataset() -> None:
    for epsilon, claimed, holds in [
        (1, 1, True),
        (2, 1, False),
        (F(1, 10), F(1, 10), True),
        (F(1, 5), F(1, 10), False),
    ]:
        algorithm = median_of_values(GroupedExponentialMechanism(epsilon=epsilon, sensitivity=1), 3)
        report = audit_user_level(algorithm, universe=(0, 1, 2, 3), n_users=4, n_examples=1, epsilon=claimed, delta=0)
        assert report.holds is holds


# --- draws


@pytest.mark.statistical
def test_draws_follow_the_pmf() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    points = GroupedScores([2, 2, 5, 9], [9, 1, 0, 6], 12)
    draws = seeded(choice.sample, points, size=1_000_000).astype(np.int64) - 2
    masses = choice.pmf(points).fractions()
    assert_follows(np.bincount(draws, minlength=11).tolist(), masses)
    assert not follows(np.bincount(with_a_bias(draws, 10), minlength=11).tolist(), masses)

    # A range of 2^64, where the last group is cut into 16 for the comparison.
    huge = GroupedScores([0, 2**62, 2**63, 2**63 + 2**60], [85, 83, 84, 86], TOP)
    draws = seeded(choice.sample, huge, size=1_000_000)
    *outer, rest = choice.group_probabilities(huge)
    first = int(huge.starts[-1])
    pieces = [first + (TOP - first + 1) * i // 16 for i in range(16)]
    counts = np.bincount(np.searchsorted(np.array([*huge.starts[:-1], *pieces], dtype=np.uint64), draws, side="right"))
    lengths = [b - a for a, b in itertools.pairwise([*pieces, TOP + 1])]
    masses = [*outer, *(rest * F(length, sum(lengths)) for length in lengths)]
    assert_follows(counts[1:].tolist(), masses)


def test_shapes_seeds_and_types_of_draws() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    groups = [(0, 9, 3), (10, TOP, 1)]
    assert type(choice.sample(groups)) is int
    assert choice.sample(groups, size=()).shape == ()
    assert choice.sample(groups, size=0).shape == (0,)
    assert choice.sample(iter(groups), size=(2, 3)).shape == (2, 3)
    assert choice.sample(groups, size=4).dtype == np.uint64
    with pytest.warns(InsecureRandomnessWarning):
        one = choice.sample(groups, random_state=7)
    with pytest.warns(InsecureRandomnessWarning):
        several = choice.sample(groups, size=3, random_state=7)
    assert one == several[0]
    assert len(set(several.tolist())) == 3
    assert len({choice.sample(groups) for _ in range(8)}) == 8
    with pytest.raises(TypeError, match="size must be None"):
        choice.sample(groups, size=1.5)  # type: ignore[call-overload]
    with pytest.raises(BudgetError, match="one call draws at most"):
        choice.sample(groups, size=2**27 + 1)


def test_draws_of_long_vectors_are_the_references() -> None:
    # Blocks and parts of them, many of them empty.
    g = 2**18 + 700
    place = np.arange(g, dtype=np.uint64)
    starts = np.where((place >= 300) & (place < 900), np.uint64(300_000), place * np.uint64(1000))
    scores = ((place.astype(np.int64) ** 2 * 7919) % 1009) - 500
    choice = GroupedExponentialMechanism(epsilon="0.1", sensitivity=1)
    groups = GroupedScores(starts, scores, TOP)
    bits = [random.Random(seed).randrange(WHOLE) for seed in range(20)] + [0, WHOLE - 1]
    triples = oracle.triples(starts.tolist(), scores.tolist(), TOP)
    found = choice._rate.sample_many(groups.starts, groups.scores, TOP, listed(bits), len(bits))
    assert found.tolist() == oracle.draws(triples, rho(choice), bits)
    assert (found[-2], found[-1]) == (0, TOP)


# --- arguments


def test_arguments_out_of_range_are_refused() -> None:
    make = GroupedExponentialMechanism
    for arguments, error, text in [
        ({"epsilon": 0, "sensitivity": 1}, ValueError, r"epsilon: must be above 2\^-35 and below 88.*got 0"),
        ({"epsilon": 88, "sensitivity": 1}, ValueError, "epsilon.*got 88"),
        ({"epsilon": "x", "sensitivity": 1}, ValueError, "epsilon='x'"),
        ({"epsilon": 1, "sensitivity": 0}, ValueError, "sensitivity must be > 0; got 0"),
        ({"epsilon": 1, "sensitivity": 0.5}, ValueError, "sensitivity must be an integer, as the scores are; got 0.5"),
        ({"epsilon": 1, "sensitivity": 2**62}, ValueError, "sensitivity.*got 4611686018427387904"),
        ({"epsilon": 1, "sensitivity": None}, TypeError, "sensitivity must be a positive"),
        ({"epsilon": 1, "sensitivity": 1, "monotone": 1}, TypeError, "monotone must be a bool; got 1"),
    ]:
        with pytest.raises(error, match=text):
            make(**arguments)  # type: ignore[arg-type]


def test_pmfs_of_too_many_points_are_refused() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    with pytest.raises(BudgetError, match=r"4194305 candidates .* group_probabilities\(\) takes any number"):
        choice.pmf([(0, 2**22, 0)])
    groups = GroupedScores([0], [0], 2**22)
    with pytest.raises(BudgetError, match="4194305 points"):
        choice._rate.numerators(groups.starts, groups.scores, groups.last)
    with pytest.raises(BudgetError, match="4194305 groups would fill gigabytes"):
        choice.group_probabilities(GroupedScores(np.zeros(2**22 + 1, np.uint64), np.zeros(2**22 + 1, np.int64), 5))


def test_nothing_of_the_scores_is_shown_and_pickles_are_the_same() -> None:
    groups = GroupedScores([0, 123], [456, 789], 1000)
    assert repr(groups) == "GroupedScores(2 groups, last=1000)"
    twin = pickle.loads(pickle.dumps(groups))
    assert (list(twin), twin.last, twin.starts.flags.writeable) == (list(groups), 1000, False)
    choice = GroupedExponentialMechanism(epsilon=0.5, sensitivity=3, monotone=True)
    assert repr(choice) == "GroupedExponentialMechanism(epsilon=0.5, sensitivity=3, monotone=True)"
    again = pickle.loads(pickle.dumps(choice))
    assert repr(again) == repr(choice)
    assert again.pmf(groups) == choice.pmf(groups)
    assert again.certified_epsilon == choice.certified_epsilon


def test_the_best_of_2_to_64_is_found_as_often_as_promised() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    for alpha in (1, 90, 100, 177, 178, 10**6):
        best, others = choice.group_probabilities([(0, 0, 0), (1, TOP, alpha)])
        # ln of the odds: epsilon alpha / 2, clamped at 128 bits, against 64 bits of candidates.
        odds = math.log(float(best / others)) + math.log(2.0**64)
        assert math.isclose(odds, min(alpha / 2, choice._rate.largest_gap / 2), rel_tol=1e-9)
