"""Plausible versions of DelStab that are wrong: each fails on a named pair of neighbors, and the package does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from oracle import delstab as reference
from support.delstab_engines import distribution_of, inner_pmfs, stability
from userdp import LogRatio
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_pair
from userdp.delstab import BOTTOM, DelStab
from userdp.delstab.delstab import calibrate
from userdp.exact.numbers import PrivacyLevel

F = Fraction
Compatible = Callable[[int, int], bool]
Test = Callable[[list[int], int], bool]
"""Whether a window counts as stable, given how many of it are kept."""

NOISE = reference.laplace(F(20), 1)
INNER, INNER_DELTA = F(20), F(1, 10**6)
EPSILON, BOUND = LogRatio(8000, 1), NOISE[0] + 21 * INNER_DELTA
"""What Algorithm 1 promises with this noise, this inner level and 4 deletions."""


def occurring(compatible: Compatible) -> Test:
    """All totals of kept users that occur are compatible."""

    def test(window: list[int], kept: int) -> bool:
        totals = {sum(chosen) for chosen in itertools.combinations(window, kept)}
        return all(compatible(a, b) for a in totals for b in totals)

    return test


def extremes(compatible: Compatible) -> Test:
    """The smallest and the largest total are compatible."""
    return lambda window, kept: compatible(sum(window[:kept]), sum(window[len(window) - kept :]))


def first_window(values: Sequence[int], removed: int, kept: int, test: Test) -> list[int] | None:
    """The lowest window of the sorted values, with so many removed, that passes the test."""
    ordered, size = sorted(values), len(values) - removed
    windows = (ordered[start : start + size] for start in range(removed + 1))
    return next((window for window in windows if test(window, kept)), None)


def removed_by(values: Sequence[int], deletions: int, test: Test) -> int | None:
    """What the windows take for the smallest stable size."""
    kept = len(values) - deletions
    return next((r for r in range(deletions + 1) if first_window(values, r, kept, test) is not None), None)


def windowed(test: Callable[[Sequence[int]], Test], pmf: Callable[[int], reference.Distribution]) -> Any:
    """Algorithm 1 with 4 deletions and windows for S, under any test: wrong unless the test is the distance's."""

    @finite_algorithm((0, 1, BOTTOM))
    def released(dataset: Any) -> list[Fraction]:
        values = [user[0] for user in dataset]
        masses: dict[Any, Fraction] = {0: F(0), 1: F(0), BOTTOM: F(0)}
        for size, probability in enumerate(NOISE):
            window = first_window(values, size, len(values) - 4, test(values))
            if window is None:
                masses[BOTTOM] += probability
                continue
            kept = list(itertools.combinations(window, len(values) - 4))
            for chosen in kept:
                for output, mass in pmf(sum(chosen)).items():
                    masses[output] += probability * mass / len(kept)
        return [masses[output] for output in (0, 1, BOTTOM)]

    return released


def by_values(algorithm: AdditiveAlgorithm) -> Any:
    """The package's engine for the exact relation, with the same noise and deletions."""

    @finite_algorithm((0, 1, BOTTOM))
    def released(dataset: Any) -> list[Fraction]:
        found = stability(algorithm, dataset, 4, inner_pmfs((0, 1), INNER, INNER_DELTA), limit=2, compatibility="exact")
        pmf = distribution_of(found, (0, 1), dict(enumerate(NOISE)))
        return [pmf.get(output, F(0)) for output in (0, 1, reference.BOTTOM)]

    return released


def of_predicate(predicate: Callable[[int], bool]) -> tuple[AdditiveAlgorithm, Callable[[int], reference.Distribution]]:
    """The algorithm that tells whether the total has a property, and its distribution."""

    def pmf_of_total(total: int, n_users: int) -> list[Fraction]:
        return [F(not predicate(total)), F(predicate(total))]

    algorithm = AdditiveAlgorithm((0, 1), lambda user: user[0], pmf_of_total, statistic_range=(0, 2))
    return algorithm, lambda total: {int(predicate(total)): F(1)}


def users(values: Sequence[int]) -> tuple[tuple[int], ...]:
    return tuple((value,) for value in values)


def test_windows_are_not_exact_for_a_general_relation() -> None:
    """Totals in [2, 4] are alike and nothing else: dropping a middle user helps, no window does."""

    def pmf(total: int, n_users: int) -> list[Fraction]:
        return [F(output == (2 if 2 <= total <= 4 else total)) for output in range(9)]

    def compatible(a: int, b: int) -> bool:
        return a == b or {a, b} <= {2, 3, 4}

    algorithm = AdditiveAlgorithm(range(9), lambda user: user[0], pmf, statistic_range=(0, 2))
    values = (0, 0, 1, 2, 2)
    found = stability(algorithm, users(values), 2, inner_pmfs(range(9), INNER, INNER_DELTA), compatibility="exact")
    assert removed_by(values, 2, occurring(compatible)) == 2
    assert found.smallest == reference.smallest_stable_size_of_totals(values, 2, compatible) == 1


def odd(total: int) -> bool:
    return total % 2 == 1


@pytest.mark.parametrize(
    ("test", "x", "x2"),
    [
        (extremes, (0, 0, 1, 1, 1, 1), (0, 1, 1, 1, 1, 2)),
        (occurring, (0, 0, 0, 0, 2, 2), (0, 0, 0, 1, 2, 2)),
    ],
)
def test_windows_under_a_parity_break_the_promise(test: Callable[[Compatible], Test], x: Any, x2: Any) -> None:
    algorithm, pmf = of_predicate(odd)
    wrong = windowed(lambda values: test(lambda a, b: odd(a) == odd(b)), pmf)
    verdict = audit_pair(wrong, users(x), users(x2), epsilon=EPSILON, delta=BOUND)
    assert not verdict.holds
    assert verdict.worst_delta.lower > 0.9
    assert audit_pair(by_values(algorithm), users(x), users(x2), epsilon=EPSILON, delta=BOUND).holds


def test_a_distance_from_the_totals_that_occur_breaks_the_promise() -> None:
    algorithm, pmf = of_predicate(lambda total: total >= 3)

    def within_data(values: Sequence[int]) -> Test:
        totals = sorted({sum(chosen) for chosen in itertools.combinations(values, len(values) - 4)})
        distance = max(
            t
            for t in range(totals[-1] - totals[0] + 1)
            if all((a >= 3) == (b >= 3) for a in totals for b in totals if abs(a - b) <= t)
        )
        return lambda window, kept: reference.spread(window, kept) <= distance

    x, x2 = (0, 0, 0, 0, 1, 1), (0, 0, 0, 1, 1, 2)
    assert [removed_by(values, 4, within_data(values)) for values in (x, x2)] == [0, 3]
    assert not audit_pair(windowed(within_data, pmf), users(x), users(x2), epsilon=EPSILON, delta=BOUND).holds
    assert audit_pair(by_values(algorithm), users(x), users(x2), epsilon=EPSILON, delta=BOUND).holds
    # The package's distance is that of all totals of the public range: nothing but equal totals is near here.
    delstab = DelStab(algorithm, epsilon=EPSILON, delta="0.06")
    sizes = [delstab.smallest_stable_size(users(values)) for values in (x, x2)]
    assert all(size is not None for size in sizes)
    assert abs(sizes[0] - sizes[1]) <= 1  # type: ignore[operator]
    assert delstab._totals[6].distance == 0


PMFS: dict[Any, tuple[int, ...]] = {
    0: (0, 3, 3),
    1: (2, 4, 0),
    2: (3, 2, 1),
    3: (0, 3, 3),
    4: (1, 1, 4),
    5: (0, 6, 0),
    6: (0, 3, 3),
}
"""In sixths: at most 1/2 apart in total variation, but for the pairs (1, 4), (2, 5) and (4, 5)."""


def test_windows_jump_by_two_where_the_exact_size_does_not() -> None:
    bad = [{1, 4}, {2, 5}, {4, 5}]
    algorithm = AdditiveAlgorithm(
        range(3),
        lambda user: user[0],
        lambda total, n_users: [F(mass, 6) for mass in PMFS[total]],
        statistic_range=(0, 2),
    )
    compatible = reference.relation(
        lambda total: {output: F(mass, 6) for output, mass in enumerate(PMFS[total])}, F(1), F(1, 2)
    )
    assert [{a, b} for a, b in itertools.combinations(range(7), 2) if not compatible(a, b)] == bad
    x, x2 = (0, 0, 0, 0, 2, 2, 2), (0, 0, 0, 1, 2, 2, 2)
    assert [removed_by(values, 4, occurring(compatible)) for values in (x, x2)] == [0, 2]
    inner = inner_pmfs(range(3), F(1), F(1, 2))
    sizes: dict[tuple[int, ...], int | None] = {}
    for values in itertools.combinations_with_replacement(range(3), 7):
        sizes[values] = stability(algorithm, users(values), 4, inner, compatibility="exact").smallest
        assert sizes[values] == reference.smallest_stable_size_of_totals(values, 4, compatible)
    capped = {values: 5 if size is None else size for values, size in sizes.items()}
    for values, size in capped.items():
        for place, value in itertools.product(range(7), range(3)):
            other = tuple(sorted((*values[:place], value, *values[place + 1 :])))
            assert abs(size - capped[other]) <= 1


def test_codes_by_rank_break_the_promise() -> None:
    """Users coded by rank among the values present: a value that nobody keeps changes what the kept ones are called."""

    def pmf(kept: Any) -> list[Fraction]:
        return [F((2,) not in kept), F((2,) in kept)]

    def ranked(dataset: Any) -> Any:
        rank = {value: place for place, value in enumerate(sorted(set(dataset)))}
        return tuple((rank[user],) for user in dataset)

    algorithm = SymmetricAlgorithm((0, 1), pmf)
    x, x2 = users((0, 0, 0, 0, 2, 2)), users((0, 0, 0, 1, 2, 2))
    inner = inner_pmfs((0, 1), INNER, INNER_DELTA)
    assert [stability(algorithm, ranked(dataset), 4, inner).smallest for dataset in (x, x2)] == [0, 2]
    assert [stability(algorithm, dataset, 4, inner).smallest for dataset in (x, x2)] == [2, 2]


def test_a_memo_by_equality_answers_for_the_wrong_user() -> None:
    """True == 1, but an algorithm may tell them apart; so do the engines, whoever else is in the dataset."""

    def pmf(kept: Any) -> list[Fraction]:
        odd_one = any(user[0] is True for user in kept)
        return [F(not odd_one), F(odd_one)]

    inner = inner_pmfs((0, 1), INNER, INNER_DELTA)
    dataset = ((1,), (1,), (True,), (1,), (1,), (1,))
    without = ((1,), (1,), (1,), (1,), (1,), (1,))
    for algorithm in (SymmetricAlgorithm((0, 1), pmf), finite_algorithm((0, 1))(pmf)):
        assert stability(algorithm, dataset, 4, inner).smallest == 1
        assert stability(algorithm, dataset[::-1], 4, inner).smallest == 1
        assert stability(algorithm, without, 4, inner).smallest == 0

    # The memo that is not used: the first of two equal kept sets answers for both.
    memo: dict[Any, list[Fraction]] = {}
    confused = SymmetricAlgorithm((0, 1), lambda kept: memo.setdefault(tuple(sorted(kept)), pmf(kept)))
    assert stability(finite_algorithm((0, 1))(confused.pmf), dataset, 4, inner).smallest == 0


def test_the_smallest_kappa_needs_the_larger_denominator() -> None:
    """delta-bar = delta / (1 + z + 1/z) is right for the paper's kappa, and promises too much with the least one."""
    right = calibrate("tight", LogRatio(8000, 1), F(3, 50))
    z = F(20)
    wrong = F(3, 50) / (1 + z + 1 / z)
    assert right.inner_delta == F(3, 50) / (2 + z)
    assert (1 + z) * wrong + wrong > F(3, 50)
    with pytest.raises(ArithmeticError):
        replace(right, inner_delta=wrong, noise_delta=wrong)
    with pytest.raises(ArithmeticError):  # half of the deletions
        replace(right, deletions=right.deletions // 2)
    with pytest.raises(ArithmeticError):  # noise that is too weak
        replace(right, noise_level=calibrate("tight", LogRatio(27, 8), F(3, 50)).noise_level)


def test_levels_below_one_are_refused() -> None:
    """The proofs use E_T >= 1 and E_L >= 1. Each planted calibration passes everything else that is checked."""
    one, below, hair = (PrivacyLevel(F(*ratio), F(0)) for ratio in ((1, 1), (9, 10), (2**200 - 1, 2**200)))
    made = replace(calibrate("optimal", LogRatio(2**10, 1), F(9, 10)), level=PrivacyLevel(F(2**10), F(1)))
    # Two steps of a half: 1 <= (9/10) / 2 + 3/5, so that the inequalities of the table hold at 9/10 and above.
    halves = {"noise_delta": F(3, 5), "inner_delta": F(1, 100), "refusal": (0, 2**127, 2**128), "deletions": 2}
    replace(made, inner_level=one)
    replace(made, noise_level=one, **halves)
    # A ratio below 1 may belong to a level above 1: (99/100) e^(1/10).
    replace(made, noise_level=PrivacyLevel(F(99, 100), F(1, 10)), **halves)
    for level in below, hair, PrivacyLevel(F(9, 10), F(1, 100)):
        with pytest.raises(ArithmeticError, match="calibration does not keep"):
            replace(made, inner_level=level)
        with pytest.raises(ArithmeticError, match="calibration does not keep"):
            replace(made, noise_level=level, **halves)


@pytest.mark.parametrize("calibration", ["paper", "tight", "optimal"])
@pytest.mark.parametrize(
    ("ratio", "delta"), [((2, 1), F(1, 2)), ((8, 1), F(1, 2)), ((2**30, 1), F(1, 2)), ((3, 2), F(2, 3))]
)
def test_exact_ties_end(calibration: Any, ratio: tuple[int, int], delta: Fraction) -> None:
    """z^3 = 2 = 1/delta exactly, with an irrational z: enclosures of z would be refined for ever."""
    made = calibrate(calibration, LogRatio(*ratio), delta)
    assert made.deletions >= 2
    assert made.inner_level.ratio**2 * made.noise_level.ratio <= F(*ratio)


def test_batches_serve_no_release() -> None:
    """Batched float arithmetic changes last bits with the size of the batch, which depends on the other users."""

    def pmf(kept: Any) -> list[float]:
        return [0.25, 0.75] if any(user[0] for user in kept) else [0.5, 0.5]

    class Batched(SymmetricAlgorithm):
        def pmf_batch(self, datasets: Any) -> list[list[float]]:
            ulp = 2.0**-52 if len(datasets) > 3 else 0.0
            return [pmf(kept) if pmf(kept)[0] == 0.25 else [0.5 + ulp, 0.5 - ulp] for kept in datasets]

    algorithm = Batched((0, 1), pmf)
    x, x2 = users((0, 0, 0, 0, 1, 1)), users((0, 0, 0, 1, 1, 2))

    def in_one_batch(dataset: Any) -> int | None:
        kept = sorted({tuple(sorted(chosen)) for chosen in itertools.combinations(dataset, 2)})
        masses = dict(zip(kept, algorithm.pmf_batch(kept), strict=True))
        compatible = reference.relation(lambda kept: dict(enumerate(map(F, masses[kept]))), F(2), F(0))
        return reference.smallest_stable_size(dataset, 4, compatible)

    # 1/2 = 2 * 1/4 is just compatible, and one unit in the last place more is not.
    assert [in_one_batch(dataset) for dataset in (x, x2)] == [0, 2]
    inner = inner_pmfs((0, 1), F(2), F(0))
    assert [stability(algorithm, dataset, 4, inner).smallest for dataset in (x, x2)] == [0, 0]
