"""The pmf of what ThresholdClassifier releases, over all neighboring datasets of small universes; and planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.program_paths import largest_change
from userdp import LogRatio, _core
from userdp.accounting import PrivacyCost
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.estimators.plan import Budget, equal_part
from userdp.learners import ThresholdClassifier
from userdp.learners import threshold as threshold_module
from userdp.mechanisms import GroupedExponentialMechanism
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.report import AuditReport
from userdp.users import UserTable

F = Fraction
Dataset = tuple[tuple[tuple[int, int], ...], ...]


def universe(domain_size: int) -> list[tuple[int, int]]:
    return list(product(range(1, domain_size + 1), (0, 1)))


def audited(
    learner: ThresholdClassifier, n_users: int, epsilon: Any, rows: Any = None, m: int | None = None
) -> AuditReport:
    return audit_user_level(
        as_finite_algorithm(learner),
        universe=universe(learner.domain_size) if rows is None else rows,
        n_users=n_users,
        n_examples=m or learner.m,
        epsilon=epsilon,
        delta=0,
    )


# Parameters, number of users, rows of the universe, and the least part of epsilon that must be lost somewhere.
SCORE = [
    ({"domain_size": 3, "m": 1}, 3, None, 0.7),
    ({"domain_size": 2, "m": 2}, 2, None, 0.7),
    ({"domain_size": 2, "m": 4}, 2, [(1, 0), (2, 1)], 0.3),
    ({"domain_size": 1, "m": 3}, 5, None, 0.45),
]
MEDIAN = [
    ({"domain_size": 3, "m": 1, "alpha": 0.5}, 2, None),
    ({"domain_size": 2, "m": 2, "alpha": 0.9}, 2, [(1, 0), (2, 1)]),
    ({"domain_size": 1, "m": 3, "alpha": 0.9}, 2, None),
]


@pytest.mark.parametrize(
    ("given", "n_users", "rows", "least", "epsilon"),
    [*((*case, 1) for case in SCORE), *((*case, LogRatio(3, 2)) for case in SCORE[:2])],
)
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_scores_audited(
    given: dict[str, Any], n_users: int, rows: Any, least: float, epsilon: Any, mechanism: str
) -> None:
    given = given | {"mechanism": mechanism}
    report = audited(ThresholdClassifier(epsilon=epsilon, **given, classes=(0, 1)), n_users, epsilon, rows)
    print(f"exact epsilon {report.epsilon} of {float(epsilon):.3f}, {report.pairs} pairs")
    assert report.holds
    assert report.worst_delta.upper == 0
    assert report.epsilon.lower > least * float(epsilon)
    # Half the noise loses more than that, and with a little less noise still more than was promised.
    twice = LogRatio(9, 4) if isinstance(epsilon, LogRatio) else 2 * epsilon
    half = ThresholdClassifier(epsilon=twice, **given, classes=(0, 1))
    assert not audited(half, n_users, report.epsilon.upper, rows).holds
    if least > 0.5:
        assert not audited(half, n_users, epsilon, rows).holds


@pytest.mark.parametrize(("given", "n_users", "rows"), MEDIAN)
def test_search_audited(given: dict[str, Any], n_users: int, rows: Any) -> None:
    learner = ThresholdClassifier(epsilon=1, method="median", **given, classes=(0, 1))
    report = audited(learner, n_users, 1, rows)
    print(f"exact epsilon {report.epsilon}, {report.pairs} pairs")
    assert report.holds
    assert report.worst_delta.upper == 0
    # The outcome shows little of all that is drawn; half the noise still exceeds what it loses.
    half = ThresholdClassifier(epsilon=2, method="median", **given, classes=(0, 1))
    assert not audited(half, n_users, report.epsilon.upper, rows).holds


def test_more_rows_than_m_are_cut() -> None:
    # Users have two rows, of which the first counts: the order within a user matters then.
    learner = ThresholdClassifier(epsilon=1, domain_size=2, m=1, classes=(0, 1))
    assert audited(learner, 2, 1, m=2).holds


# --- all draws together: sharper than the distribution of the outcome


def program_of(learner: ThresholdClassifier) -> Callable[[Dataset], AdaptiveMechanism]:
    def program(dataset: Dataset) -> AdaptiveMechanism:
        rows = [(x, y, code) for code, user in enumerate(dataset) for x, y in user]
        points, labels, codes = (np.array(column) for column in zip(*rows, strict=True))
        arrays = points.astype(np.uint64), labels.astype(np.uint8), codes.astype(np.uint32)
        table = UserTable(*arrays, len(dataset), learner.m)
        return learner._plan(table.n_users, table.n_columns).program(table)

    return program


def pairs_of(domain_size: int, m: int, n_users: int) -> Iterator[tuple[Dataset, Dataset]]:
    """Neighbors: users of one repeated row, and some of different rows."""
    rows = universe(domain_size)
    users = [(row,) * m for row in rows] + [(a, *(b,) * (m - 1)) for a, b in zip(rows, reversed(rows), strict=True)]
    for others in combinations_with_replacement(sorted(set(users)), n_users - 1):
        for user, replacement in combinations_with_replacement(sorted(set(users)), 2):
            yield (user, *others), (replacement, *others)


# Learner, number of users, and what the longest path spends.
LEARNERS = [
    (ThresholdClassifier(epsilon=1, domain_size=3, m=1, classes=(0, 1)), 3, 1),
    (ThresholdClassifier(epsilon=1, domain_size=2, m=6, classes=(0, 1)), 3, 1),
    (ThresholdClassifier(epsilon=1, domain_size=2, m=1, method="median", alpha=0.9, classes=(0, 1)), 2, 1),
    # Bisection of two thresholds ends after one of two rounds.
    (ThresholdClassifier(epsilon=1, domain_size=1, m=2, method="median", alpha=0.9, classes=(0, 1)), 2, 0.75),
]


@pytest.mark.parametrize(("learner", "n_users", "expected"), LEARNERS)
def test_draws_compose_to_epsilon(learner: ThresholdClassifier, n_users: int, expected: float) -> None:
    pairs = list(pairs_of(learner.domain_size, learner.m, n_users))
    change, spent = largest_change(program_of(learner), pairs)
    assert change == 1
    assert spent == pytest.approx(expected)
    assert spent < 1 + 1e-12


def spend(monkeypatch: pytest.MonkeyPatch, parts: dict[str, Fraction]) -> None:
    """Split every budget so, whatever the epsilon and the shares."""
    monkeypatch.setattr(Budget, "of", lambda epsilon, shares: Budget(PrivacyCost(epsilon), parts))


def test_rounds_that_spend_more_than_their_part_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """epsilon / T for each of the four draws of T rounds, in place of epsilon / (4 T)."""
    learner = ThresholdClassifier(epsilon=1, domain_size=2, m=1, method="median", alpha=0.9, classes=(0, 1))
    spend(monkeypatch, {"medians": F(1), "comparisons": F(3)})
    change, spent = largest_change(program_of(learner), pairs_of(2, 1, 2))
    assert change == 1
    assert spent == pytest.approx(4)


def test_rounds_beyond_those_paid_for_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=2, m=1, method="median", alpha=0.9, classes=(0, 1))
    assert largest_change(program_of(learner), pairs_of(2, 1, 2))[1] == pytest.approx(1)
    # The three draws of a choice keep their thirds: it is the rounds that spend all of their budget each.
    monkeypatch.setattr(threshold_module, "equal_part", lambda e, parts: equal_part(e, parts) if parts == 3 else e)
    assert largest_change(program_of(learner), pairs_of(2, 1, 2))[1] == pytest.approx(2)


def test_a_search_with_the_budget_of_the_estimate_too_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of epsilon for the estimate of the least error and all of it, in place of the other half, for the search."""
    learner = ThresholdClassifier(epsilon=1, domain_size=2, m=2, method="median", alpha=0.9, classes=(0, 1))
    pairs = list(pairs_of(2, 2, 2))[:3]
    assert largest_change(program_of(learner), pairs) == pytest.approx((1, 1))
    spend(monkeypatch, {"least error": F(1, 2), "medians": F(1, 4), "comparisons": F(3, 4)})
    assert largest_change(program_of(learner), pairs) == pytest.approx((1, 1.5))


class Greedy:
    """A sweep whose minimum is what a walk to the right finds, which stops where the errors rise."""

    def __init__(self, *arguments: Any) -> None:
        self._sweep, self._m = SWEEP(*arguments), arguments[4]
        self.groups, self.median_groups = self._sweep.groups, self._sweep.median_groups

    def minimal_errors(self) -> npt.NDArray[np.int64]:
        least = []
        for t in range(self._m):
            best, *others = self._sweep.groups(t)[1].tolist()
            for score in others:
                if score > best:
                    break
                best = score
            least.append(best)
        return np.array(least)


SWEEP = _core.ThresholdSweep


def test_minima_of_a_walk_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=4, classes=(0, 1))
    users = [(row,) * 4 for row in universe(4)]
    pairs = [
        ((user, *others), (replacement, *others))
        for others in combinations_with_replacement(users, 3)
        for user, replacement in combinations_with_replacement(users, 2)
    ][::5]
    only_t = [pair for pair in pairs if pair[0] != pair[1]]
    assert changes_of_t(learner, only_t) == 1
    monkeypatch.setattr(_core, "ThresholdSweep", Greedy)
    assert changes_of_t(learner, only_t) > 1


def changes_of_t(learner: ThresholdClassifier, pairs: list[tuple[Dataset, Dataset]]) -> float:
    """The largest change of the scores that the first draw is made from."""

    def first_draw(dataset: Dataset) -> npt.NDArray[np.int64]:
        seen: list[Any] = []

        class Stop(Exception):
            pass

        def draw(mechanism: Any, /, *arguments: Any) -> Any:
            seen.extend(arguments)
            raise Stop

        with pytest.raises(Stop):
            program_of(learner)(dataset)(draw)
        scores: npt.NDArray[np.int64] = seen[0]
        return scores

    known = {dataset: first_draw(dataset) for pair in pairs for dataset in pair}
    return max(float(np.abs(known[x] - known[x2]).max()) for x, x2 in pairs)


def test_a_fixed_number_of_users_in_the_sensitivity_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores K / n with a sensitivity of 1 / n0, for n0 = 4 n: four times the rate."""

    def four_times(*, epsilon: Any, sensitivity: int) -> GroupedExponentialMechanism:
        return GroupedExponentialMechanism(epsilon=4 * epsilon, sensitivity=sensitivity)

    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=1, mechanism="exponential", classes=(0, 1))
    assert audited(learner, 2, 1).holds
    monkeypatch.setattr(threshold_module, "GroupedExponentialMechanism", four_times)
    assert not audited(learner, 2, 1).holds
    assert not audited(learner, 2, 2).holds


def test_classes_taken_from_the_labels_are_no_output_of_the_pmf() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=1, m=1, classes=None)
    learner.fit(np.array([[1], [1]]), ["a", "b"], groups=[0, 1])
    assert not learner.is_private_
