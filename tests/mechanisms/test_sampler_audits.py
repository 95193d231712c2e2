"""The samplers' stated distributions through the library's own exact auditor, over all inputs of small ranges.

Each audit goes over every pair of neighboring inputs, and each is repeated with half the noise, which must fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio, Pmf
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism, TruncatedDiscreteLaplace
from userdp.testing import assert_user_private

F = Fraction


def one_number(pmf: Any, outputs: Sequence[int], most: int) -> AdditiveAlgorithm:
    """A distribution for each total 0, ..., most, as a mechanism on `most` users who count 0 or 1 each."""
    return AdditiveAlgorithm(outputs, lambda user: sum(user), lambda total, _: pmf(total), statistic_range=(0, 1))


def audited(mechanism: Any, universe: Any, users: int, epsilon: Any, delta: Any, neighbors: Any = "replace") -> Any:
    return audit_user_level(
        mechanism, universe=universe, n_users=users, n_examples=1, epsilon=epsilon, delta=delta, neighbors=neighbors
    )


# --- the exponential mechanism, over all score vectors


def selection(mechanism: ExponentialMechanism, candidates: int) -> SymmetricAlgorithm:
    """Choose by the sum of the users' score vectors."""

    def pmf(dataset: Any) -> Pmf:
        return mechanism.pmf([sum(user[0][i] for user in dataset) for i in range(candidates)])

    return SymmetricAlgorithm(range(candidates), pmf)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "candidates", "users"),
    [(1, 1, 3, 3), (F(1, 2), 1, 2, 8), ("0.3", 2, 2, 3), (LogRatio(3), 1, 3, 2), (20, 1, 2, 4), ("1e-6", 1, 3, 2)],
)
def test_all_score_vectors(epsilon: Any, sensitivity: int, candidates: int, users: int) -> None:
    # All scores from 0 to users * sensitivity, and all changes of each by at most the sensitivity.
    records = list(itertools.product(range(sensitivity + 1), repeat=candidates))
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    report: Any = assert_user_private(
        selection(mechanism, candidates), universe=records, n_users=users, epsilon=epsilon
    )
    print(f"worst delta {report.worst_delta.upper}, epsilon {report.epsilon}, pairs {report.pairs}")
    assert report.worst_delta.upper == 0
    assert report.epsilon.upper <= mechanism.certified_epsilon
    # Two candidates with nearly the same probability whose scores move apart spend at least half of epsilon.
    assert report.epsilon.lower > mechanism.certified_epsilon * 0.49
    half = ExponentialMechanism(epsilon=_twice(epsilon), sensitivity=sensitivity)
    failed = audited(selection(half, candidates), records, users, epsilon, 0)
    print(f"half the noise: worst delta {failed.worst_delta.lower:.3g}")
    assert not failed.holds
    assert failed.worst_delta.lower > 0


def _twice(epsilon: Any) -> Any:
    return LogRatio(epsilon.numerator**2, epsilon.denominator**2) if isinstance(epsilon, LogRatio) else 2 * F(epsilon)


def test_scores_that_move_in_one_direction() -> None:
    records = list(itertools.product(range(2), repeat=3))
    chosen = selection(ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True), 3)
    # Removing a user lowers no score by less than 0: monotone. Replacing one is not, and costs up to twice as much.
    assert audited(chosen, records, 3, 1, 0, "add-remove").holds
    assert not audited(chosen, records, 3, 1, 0).holds
    assert audited(chosen, records, 3, 2, 0).holds
    half = selection(ExponentialMechanism(epsilon=2, sensitivity=1, monotone=True), 3)
    assert not audited(half, records, 3, 1, 0, "add-remove").holds


# --- truncated discrete Laplace, over all shifts


def shifted(noise: TruncatedDiscreteLaplace, most: int) -> AdditiveAlgorithm:
    weights = noise.pmf().weights
    outputs = tuple(range(most + len(weights)))

    def pmf(total: int) -> Pmf:
        return Pmf(outputs, (*(0,) * total, *weights, *(0,) * (most - total)))

    return one_number(pmf, outputs, most)


@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1, "1e-6"),
        ("0.1", "1e-4"),
        (4, "1e-12"),
        (LogRatio(2), "1/8"),
        (F(1, 3), "5e-7"),
        (12, "1e-30"),
        ("0.02", "1e-3"),
    ],
)
def test_all_shifts_of_truncated_noise(epsilon: Any, delta: str, rule: Any) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    total = shifted(noise, 4)
    report = audited(total, (0, 1), 4, epsilon, delta)
    print(f"worst delta {report.worst_delta.upper:.6g} of {F(delta)} asked, kappa {noise.half_width}")
    assert report.holds
    # The end of the table is attained exactly, and nothing below it holds.
    end = noise.certified_delta
    assert F(report.worst_delta.lower) <= end <= F(report.worst_delta.upper)
    assert audited(total, (0, 1), 4, epsilon, end).holds
    assert not audited(total, (0, 1), 4, epsilon, end - F(1, 2**128)).holds
    half = TruncatedDiscreteLaplace(epsilon=_twice(epsilon), delta=delta, half_width=rule)
    failed = audited(shifted(half, 4), (0, 1), 4, epsilon, delta)
    print(f"half the noise: worst delta {failed.worst_delta.lower:.3g}")
    assert not failed.holds


# --- discrete Laplace, over all values and outputs


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "width"),
    [(1, 1, 40), ("0.1", 1, 60), (2, 3, 30), (LogRatio(3), 1, 20), (5, 1, 1), ("1e-3", 1, 25), (10, 1, 12)],
)
def test_all_values_of_discrete_laplace(epsilon: Any, sensitivity: int, width: int) -> None:
    def audit(claimed: Any) -> Any:
        noise = DiscreteLaplace(epsilon=claimed, sensitivity=sensitivity, bounds=(0, width))
        outputs = range(width + 1)
        # Users who count up to the sensitivity reach every value, and every change of it that they may cause.
        algorithm = AdditiveAlgorithm(
            outputs,
            lambda user: sum(user),
            lambda value, _: noise.pmf(value),
            statistic_range=(0, sensitivity),
        )
        universe = range(sensitivity + 1)
        return noise, audited(algorithm, universe, -(-width // sensitivity), epsilon, 0)

    noise, report = audit(epsilon)
    print(f"worst delta {report.worst_delta.upper}, epsilon {report.epsilon}, pairs {report.pairs}")
    assert report.holds
    assert report.worst_delta.upper == 0
    assert report.epsilon.upper <= noise.certified_epsilon
    _, failed = audit(_twice(epsilon))
    print(f"half the noise: worst delta {failed.worst_delta.lower:.3g}")
    assert not failed.holds
    assert failed.worst_delta.lower > 0
