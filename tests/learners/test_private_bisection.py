"""Comparisons, least errors, medians and choices of t: known distributions, their own audits, and what they find."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from oracle import private_threshold as oracle
from oracle.statistics import surprises
from oracle.thresholds import minimal_errors
from support.bisection_cases import cases, level, near, sweep_of, worst_ratios
from userdp import LogRatio, Pmf, _core
from userdp.accounting import PrivacyCost
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.learners import (
    PrivateCompare,
    PrivateMedian,
    PrivateMinError,
    PrivateMistakeTolerance,
    candidates_for_t,
)
from userdp.learners import min_error as min_error_module
from userdp.learners.min_error import NoisyComparison
from userdp.learners.threshold import ThreeWayChoice
from userdp.learners.tolerance import first_crossing_scores
from userdp.mechanisms import DiscreteLaplace, GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.composed import output_distribution

F = Fraction


# --- the choice of the least of three counts


@pytest.mark.parametrize(("given", "expected"), cases("three_way"))
def test_known_choices_of_three(given: dict[str, Any], expected: dict[str, str]) -> None:
    choice = ThreeWayChoice(level(given["b"], 3), 5)
    pmf = choice.pmf(given["K_left"], given["K_mid"], given["K_right"])
    assert near(pmf, [expected[side] for side in ("left", "mid", "right")])


def test_choices_of_three_against_the_reference() -> None:
    choice, reference = ThreeWayChoice(level("1/3", 3), 4), oracle.noisy_choice(F(1, 3))
    for left, middle, right in product((None, 0, 1, 4), (0, 2, 4), (None, 0, 3)):
        assert near(choice.pmf(left, middle, right), reference(left, middle, right))


@pytest.mark.statistical
@pytest.mark.parametrize("counts", [(0, 0, 0), (3, 1, 2), (None, 2, 1), (0, 1, None)])
def test_choices_of_three_are_drawn_from_their_pmf(counts: tuple[Any, Any, Any]) -> None:
    choice = ThreeWayChoice(1, 3)
    pmf, source = choice.pmf(*counts), _core.Source(1)
    drawn = [choice._draw(source, *counts) for _ in range(4000)]
    found, limit = surprises([drawn.count(side) for side in pmf.outputs], pmf.fractions())
    assert found < limit


def three_counts(choice: Any) -> SymmetricAlgorithm:
    """Each user counts 0 or 1 on each side."""

    def distribution(dataset: Any) -> Pmf:
        pmf: Pmf = choice.pmf(*(sum(user[0][side] for user in dataset) for side in range(3)))
        return pmf

    return SymmetricAlgorithm(("left", "middle", "right"), distribution)


def audit(mechanism: Any, universe: Any, users: int, epsilon: Any) -> Any:
    return audit_user_level(mechanism, universe=universe, n_users=users, n_examples=1, epsilon=epsilon, delta=0)


RECORDS = list(product((0, 1), repeat=3))


@pytest.mark.parametrize("epsilon", [1, F(1, 2), LogRatio(8)])
def test_choice_of_three_audited(epsilon: Any) -> None:
    report = audit(three_counts(ThreeWayChoice(epsilon, 3)), RECORDS, 3, epsilon)
    print(f"exact epsilon {report.epsilon} of {float(epsilon):.3f}")
    assert report.holds
    assert report.worst_delta.upper == 0
    # Who sees the choice only sees less than three noisy counts. Half the noise exceeds what is lost here.
    half = ThreeWayChoice(LogRatio(64) if isinstance(epsilon, LogRatio) else 2 * epsilon, 3)
    assert not audit(three_counts(half), RECORDS, 3, report.epsilon.upper).holds


def test_noise_of_the_wrong_scale_fails_the_audit() -> None:
    """Lap(1 / n eps) read as a scale of eps / n: on counts, eps in place of 1 / eps."""
    epsilon = F(1, 4)

    class Misread(ThreeWayChoice):
        def __init__(self) -> None:
            super().__init__(epsilon, 3)
            low, high = self._noise.bounds
            self._noise = DiscreteLaplace(scale=epsilon / 3, bounds=(low, high))

    assert audit(three_counts(ThreeWayChoice(epsilon, 3)), RECORDS, 3, epsilon).holds
    assert not audit(three_counts(Misread()), RECORDS, 3, epsilon).holds


# --- comparisons and the least error


@pytest.mark.parametrize(("given", "expected"), cases("private_compare"))
def test_known_comparisons(given: dict[str, Any], expected: dict[str, str]) -> None:
    pmf = NoisyComparison(level(given["b"]), 9).pmf(given["min_K"], given["floor_n_theta"])
    assert near(pmf, [expected["prob_sigma_0"], 1 - F(expected["prob_sigma_0"])])


def test_comparisons_are_those_of_unbounded_noise() -> None:
    comparison = NoisyComparison(level("1/2"), 6)
    for count, limit in product(range(7), repeat=2):
        assert near(
            comparison.pmf(count, limit),
            [1 - oracle.noise_tail(F(1, 2), limit - count), oracle.noise_tail(F(1, 2), limit - count)],
        )


@pytest.mark.parametrize("limit", [0, 2, 5])
def test_comparison_audited(limit: int) -> None:
    def algorithm(epsilon: Any) -> AdditiveAlgorithm:
        comparison = NoisyComparison(epsilon, 5)
        return AdditiveAlgorithm((0, 1), sum, lambda count, _: comparison.pmf(count, limit), statistic_range=(0, 1))

    report = audit(algorithm(1), (0, 1), 5, 1)
    assert report.holds
    assert report.epsilon.lower > 0.49
    assert not audit(algorithm(2), (0, 1), 5, report.epsilon.upper).holds


def noiseless(error: Fraction, m: int, users: int) -> list[int]:
    """The least errors of users of whom exactly the expected numbers make more than t mistakes."""
    tail = lambda t: sum(  # noqa: E731
        (F(math.comb(m, k)) * error**k * (1 - error) ** (m - k) for k in range(t + 1, m + 1)), F(0)
    )
    return [round(users * tail(t)) for t in range(m)]


@pytest.mark.parametrize("error", [F(0), F(1, 20), F(3, 10), F(1, 2), F(9, 10)])
@pytest.mark.parametrize("m", [1, 5, 16])
def test_the_least_error_is_found(error: Fraction, m: int) -> None:
    counts = noiseless(error, m, 10**6)
    found = [PrivateMinError(n_users=10**6, epsilon=2, alpha=0.1).sample(counts) for _ in range(3)]
    assert all(abs(value - error) <= F(1, 10) for value in found)
    assert all(value.denominator <= 32 for value in found)


def test_the_printed_branches_find_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = noiseless(F(3, 10), 1, 10**6)
    assert abs(PrivateMinError(n_users=10**6, epsilon=2, alpha=0.1).sample(counts) - F(3, 10)) <= F(1, 10)
    right = min_error_module.compare
    monkeypatch.setattr(min_error_module, "compare", lambda *arguments: 1 - right(*arguments))
    assert PrivateMinError(n_users=10**6, epsilon=2, alpha=0.1).sample(counts) == F(31, 32)


def test_guesses_near_1_are_not_compared() -> None:
    pmf = PrivateCompare(n_users=5, epsilon=1, alpha=0.1).pmf([5], 0.96)
    assert pmf.fractions() == [1, 0]
    assert PrivateCompare(n_users=5, epsilon=1, alpha=0.1).pmf([5], 0.9).fractions()[0] < 1


def counted(pmf: Any, m: int) -> SymmetricAlgorithm:
    """Users who add a vector of 0 and 1 to the least errors, which never rise with t."""
    return SymmetricAlgorithm(
        pmf([0] * m).outputs,
        lambda dataset: pmf([sum(user[0][t] for user in dataset) for t in range(m)]),
    )


def falling(m: int) -> list[tuple[int, ...]]:
    return [tuple(int(t < k) for t in range(m)) for k in range(m + 1)]


def test_least_error_audited() -> None:
    def algorithm(epsilon: Any) -> SymmetricAlgorithm:
        return counted(lambda errors: PrivateMinError(n_users=3, epsilon=epsilon, alpha=0.3).pmf(errors), 2)

    report = audit(algorithm(1), falling(2), 3, 1)
    print(f"exact epsilon {report.epsilon}")
    assert report.holds
    assert report.epsilon.lower > 0.49
    assert not audit(algorithm(2), falling(2), 3, report.epsilon.upper).holds
    assert not audit(algorithm(4), falling(2), 3, 1).holds


def test_all_of_epsilon_for_each_comparison_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def pmf(errors: Any) -> Pmf:
        return PrivateMinError(n_users=3, epsilon=1, alpha=0.3).pmf(errors)

    assert audit(counted(pmf, 2), falling(2), 3, 1).holds
    monkeypatch.setattr(min_error_module, "equal_part", lambda epsilon, parts: epsilon)
    assert not audit(counted(pmf, 2), falling(2), 3, 1).holds


# --- the choice of t


@pytest.mark.parametrize(("given", "expected"), cases("private_t"))
def test_known_scores_of_t(given: dict[str, Any], expected: dict[str, Any]) -> None:
    errors = minimal_errors(given["users"], given["m"], given["N"])
    assert errors == expected["min_K_by_t"]
    # The case wants at most a third of the users over, here it is two fifths: 1 of 3 users both times.
    scores = first_crossing_scores(np.array(errors), len(given["users"]))
    assert scores.tolist() == [int(score) for score in expected["score_by_t"]]


def test_scores_of_t_change_by_one_at_most_also_when_a_user_comes() -> None:
    worst = 0
    for n in range(1, 4):
        for users in combinations_with_replacement(falling(3), n):
            errors = np.sum(users, axis=0)
            scores = first_crossing_scores(errors, n)
            for user in falling(3):
                replaced = first_crossing_scores(errors - users[0] + user, n)
                more = first_crossing_scores(errors + user, n + 1)
                worst = max(worst, np.abs(scores - replaced).max(), np.abs(scores - more).max())
    assert worst == 1


def test_scores_of_t_are_zero_at_the_first_crossing_only() -> None:
    # Nobody is failed at any t: a two-sided score would tie everywhere.
    assert first_crossing_scores(np.array([0, 0, 0]), 100).tolist() == [0, 40, 40]
    assert first_crossing_scores(np.array([90, 41, 40, 0]), 100).tolist() == [50, 1, 0, 0]
    assert first_crossing_scores(np.array([90, 60, 50]), 100).tolist() == [50, 20, 10]


def test_choice_of_t_audited() -> None:
    m = 4
    assert candidates_for_t(m) == (0, 1)

    def algorithm(epsilon: Any) -> SymmetricAlgorithm:
        return SymmetricAlgorithm(
            candidates_for_t(m),
            lambda dataset: PrivateMistakeTolerance(n_users=5, epsilon=epsilon).pmf(
                np.sum([user[0] for user in dataset], axis=0)
            ),
        )

    report = audit(algorithm(1), falling(m), 5, 1)
    print(f"exact epsilon {report.epsilon}")
    assert report.holds
    assert report.epsilon.lower > 0.38
    assert not audit(algorithm(2), falling(m), 5, report.epsilon.upper).holds
    assert not audit(algorithm(3), falling(m), 5, 1).holds


@pytest.mark.parametrize("m", [1, 2, 3, 4, 10, 64, 1000, 10**6])
def test_candidates_for_t(m: int) -> None:
    candidates = candidates_for_t(m)
    assert candidates[0] == 0
    assert list(candidates) == sorted(set(candidates))
    assert candidates[-1] <= m / 2
    assert len(candidates) <= 1.1 * math.sqrt(m)
    assert (len(candidates) == 1) == (m < 4)


def test_nothing_is_drawn_where_there_is_one_t() -> None:
    assert PrivateMistakeTolerance(n_users=9, epsilon=1).sample([3, 0, 0]) == 0
    assert PrivateMistakeTolerance(n_users=9, epsilon=1).pmf([3, 0, 0]).weights == (1,)


# --- medians


@pytest.mark.parametrize(("given", "expected"), cases("private_median"))
def test_known_pmfs_of_medians(given: dict[str, Any], expected: dict[str, Any]) -> None:
    sweep = sweep_of(given["users"], 3, 10)
    mechanism = GroupedExponentialMechanism(epsilon=level(given["em_base"], 2), sensitivity=1)
    starts, scores = sweep.median_groups(given["l"], given["r"], given["s"])
    points = range(given["l"], given["r"] + 1)
    pmf = output_distribution(lambda draw: draw(mechanism, GroupedScores(starts, scores, given["r"])), points)
    assert near(pmf, expected["pmf"])


def medians(epsilon: Any, m: int, domain_size: int, mass: Any = 1) -> SymmetricAlgorithm:
    def pmf(dataset: Any) -> Pmf:
        rows = [(x, user) for user, points in enumerate(dataset) for x in points]
        points, groups = zip(*rows, strict=True)
        return PrivateMedian(epsilon=epsilon, m=m, domain_size=domain_size, mass=mass).pmf(points, groups)

    return SymmetricAlgorithm(range(domain_size + 1), pmf)


@pytest.mark.parametrize(("given", "expected"), worst_ratios("PrivateMedian"))
def test_known_worst_ratios_of_medians(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Weights 2**-K at a budget of ln 4."""
    report = audit(medians(LogRatio(4), 1, 3), (1, 2, 3), given["n"], LogRatio(4))
    assert report.holds
    assert report.epsilon.lower == pytest.approx(math.log(F(expected["worst_ratio_replace"])), abs=1e-8)


@pytest.mark.parametrize(("given", "expected"), worst_ratios("BUG Delta=1/n0"))
def test_a_fixed_number_of_users_in_the_sensitivity_has_the_known_ratio(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Weights 2**(-4 K), sold as ln 4: scores K / n with the sensitivity 1 / n0, for n0 = 4 n."""
    report = audit(medians(LogRatio(4**4), 1, 3), (1, 2, 3), given["n"], LogRatio(4))
    assert not report.holds
    assert not expected["within_replace"]
    assert report.epsilon.lower == pytest.approx(math.log(F(expected["worst_ratio_replace"])), abs=1e-8)


def test_median_audited() -> None:
    report = audit(medians(1, 1, 3), (1, 2, 3), 4, 1)
    assert report.holds
    assert report.epsilon.lower > 0.4
    assert not audit(medians(2, 1, 3), (1, 2, 3), 4, report.epsilon.upper).holds
    assert not audit(medians(3, 1, 3), (1, 2, 3), 4, 1).holds


def test_median_of_many_people_is_in_the_middle() -> None:
    people = np.arange(3000)
    points = np.random.default_rng(2).integers(1, 1001, 3000)
    given: dict[str, Any] = {"epsilon": 1, "m": 1, "domain_size": 2**63, "exact_integers": True}
    found = [PrivateMedian(**given).sample(points, people) for _ in range(5)]
    assert all(250 <= u <= 750 for u in found)
    low = PrivateMedian(**given, low=600, high=900, mass=0.3).sample(points, people)
    assert 600 <= low <= 900


# --- arguments

DURATIONS = pytest.importorskip("pyarrow").array([1], type=pytest.importorskip("pyarrow").duration("s"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PrivateMistakeTolerance(n_users=3, epsilon=1).sample([]), ValueError, "minimal_errors"),
        (lambda: PrivateMistakeTolerance(n_users=3, epsilon=1).sample([[1]]), ValueError, "shape"),
        (lambda: PrivateMistakeTolerance(n_users=3, epsilon=1).sample([1.5, 0.5]), TypeError, "float64"),
        (lambda: PrivateMistakeTolerance(n_users=3, epsilon=1).sample([[1], [1, 2]]), TypeError, "vector"),
        (lambda: PrivateMistakeTolerance(n_users=0, epsilon=1).sample([1]), ValueError, "n_users"),
        (lambda: PrivateMistakeTolerance(n_users=2**62, epsilon=1).sample([1]), ValueError, "n_users"),
        (lambda: PrivateMistakeTolerance(n_users=3, epsilon=0).sample([1]), ValueError, "epsilon"),
        (lambda: PrivateCompare(n_users=3, epsilon=1, alpha=0.1).sample([1], 2), ValueError, "guess"),
        (lambda: PrivateCompare(n_users=3, epsilon=1, alpha=0.1).sample([1], None), TypeError, "guess"),
        (lambda: PrivateCompare(n_users=3, epsilon=1, alpha=1).sample([1], 0.5), ValueError, "alpha"),
        (lambda: PrivateCompare(n_users=3, epsilon=0, alpha=0.1).sample([1], 0.5), ValueError, "epsilon"),
        (lambda: PrivateMinError(n_users=3, epsilon=1, alpha=2**-31).sample([1]), ValueError, "alpha"),
        (lambda: PrivateMinError(n_users=3, epsilon=1, alpha="x").sample([1]), ValueError, "x"),
        (lambda: PrivateMinError(n_users=3, epsilon=1, alpha=1e-6).pmf([1]), BudgetError, "alpha"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=2**64).sample([1], [1]), ValueError, "domain_size"),
        (lambda: PrivateMedian(epsilon=1, m=0, domain_size=5).sample([1], [1]), ValueError, "m must"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5).sample([1], [1, 2]), ValueError, "groups"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5, low=3, high=2).sample([1], [1]), ValueError, "low"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5, low=0.5).sample([1], [1]), TypeError, "low"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5, mass=0).sample([1], [1]), ValueError, "mass"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5, mass="0.5x").sample([1], [1]), ValueError, "0.5x"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=5).sample(DURATIONS, [1]), TypeError, "points"),
        (lambda: PrivateMedian(epsilon=1, m=1, domain_size=2**12).pmf([1], [1]), BudgetError, "low..high"),
    ],
)
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_private_values_are_clamped() -> None:
    def pmf(errors: Any) -> Pmf:
        return PrivateMinError(n_users=3, epsilon=1, alpha=0.5).pmf(errors)

    assert pmf([2**63 - 1, -5]) == pmf([3, 0])
    assert pmf(np.array([2**64 - 1, 0], dtype=np.uint64)) == pmf([3, 0])
    assert pmf(np.array([100, -100], dtype=np.int8)) == pmf([3, 0])
    one = PrivateMedian(epsilon=1, m=1, domain_size=5).pmf([-1e300, math.nan, math.inf, 2.5], [0, 1, 2, 3])
    assert one == PrivateMedian(epsilon=1, m=1, domain_size=5).pmf([1, 1, 5, 3], [0, 1, 2, 3])


def test_seeded_draws_warn() -> None:
    with pytest.warns(InsecureRandomnessWarning):
        assert PrivateMistakeTolerance(n_users=9, epsilon=1).sample([9, 9, 9, 9], random_state=1) in (0, 1)
    with pytest.warns(InsecureRandomnessWarning):
        assert PrivateCompare(n_users=9, epsilon=1, alpha=0.1).sample([9], 0.5, random_state=1) in (0, 1)


def test_mechanisms_say_what_they_cost_and_are_made_again() -> None:
    data: dict[Any, tuple[Any, ...]] = {
        PrivateMistakeTolerance(epsilon=1, n_users=9): ([9, 5, 2, 1],),
        PrivateCompare(epsilon=F(1, 2), n_users=9, alpha="0.3"): ([9, 5], 0.25),
        PrivateMinError(epsilon=1, n_users=3, alpha=0.5): ([3, 1],),
        PrivateMedian(epsilon=LogRatio(3), m=2, domain_size=4, mass="1/2", enrolled=["a", "b"]): ([1, 4, 2], "aab"),
    }
    for mechanism, given in data.items():
        points = tuple(list(value) if isinstance(value, str) else value for value in given)
        again = pickle.loads(pickle.dumps(mechanism))
        assert repr(again) == repr(mechanism)
        assert again.cost == mechanism.cost == PrivacyCost(mechanism.cost.epsilon)
        pmf = mechanism.pmf(*points)
        assert again.pmf(*points) == pmf
        assert mechanism.sample(*points) in pmf.outputs
    assert repr(next(iter(data))) == "PrivateMistakeTolerance(epsilon=1, n_users=9)"


def test_the_list_of_users_is_what_it_was_when_it_was_given() -> None:
    enrolled = [0, 1, 2]
    median = PrivateMedian(epsilon=1, m=1, domain_size=3, enrolled=enrolled)
    before = median.pmf([1, 2, 3], [0, 1, 2])
    enrolled += [3, 4, 5, 6]
    assert median.pmf([1, 2, 3], [0, 1, 2]) == before
    assert pickle.loads(pickle.dumps(median)).pmf([1, 2, 3], [0, 1, 2]) == before


@pytest.mark.parametrize("enrolled", [iter([0, 1]), "ab", 7])
def test_a_list_of_users_that_cannot_be_read_twice_is_refused_at_once(enrolled: Any) -> None:
    with pytest.raises(TypeError, match="enrolled"):
        PrivateMedian(epsilon=1, m=1, domain_size=3, enrolled=enrolled)


@pytest.mark.parametrize("beyond", [2**63, 2**64, -(2**63) - 1, 10**400])
def test_counts_in_lists_are_clamped_however_long_they_are(beyond: int) -> None:
    choice = PrivateMinError(epsilon=1, n_users=9, alpha=0.3)
    assert choice.pmf([4, beyond]) == choice.pmf([4, 9 if beyond > 0 else 0])
