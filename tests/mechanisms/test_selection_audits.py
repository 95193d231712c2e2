"""Selections through the library's own exact auditor, over all data of small numbers of users.

Each is repeated with half the noise and with mistakes that are easily made, and must fail then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from oracle.selection import Rule, above_threshold, neighbors, noisy_pmf, truncated_laplace, worst_excess
from support.selection_cases import approximate, audited, cases, noise_of
from userdp import LogRatio
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode

F = Fraction


def squared(epsilon: Any) -> Any:
    return LogRatio(epsilon.numerator**2, epsilon.denominator**2) if isinstance(epsilon, LogRatio) else 2 * F(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(LogRatio(2), "0.11"), (LogRatio(3, 2), "0.2"), (1, "0.03"), (0.7, 0.1), (3, "1e-4")]
)
def test_adding_and_removing(epsilon: Any, delta: Any) -> None:
    selection = ApproximatePrivateMode(epsilon=epsilon, delta=delta, neighbors="add-remove")
    half = ApproximatePrivateMode(epsilon=squared(epsilon), delta=delta, neighbors="add-remove")
    worst, failed = [], []
    for n in range(1, 2 * selection.half_width + 4):
        report = audited(selection, "abc", n, epsilon, delta, "add-remove")
        assert report.holds
        worst.append(report.worst_delta)
        failed.append(audited(half, "abc", n, epsilon, delta, "add-remove").holds)
    reached = max(bounds.lower for bounds in worst)
    print(f"t = {selection.half_width}: worst delta {reached:.6g}, certified {float(selection.certified_delta):.6g}")
    # The bound is attained, to the last of the 128 bits.
    assert reached == pytest.approx(float(selection.certified_delta), rel=1e-15)
    exact = F(selection.certified_delta)
    assert not all(
        audited(selection, "ab", n, epsilon, exact * (1 - F(1, 10**30)), "add-remove").holds for n in range(1, 4)
    )
    assert not all(failed)


@pytest.mark.parametrize(("epsilon", "delta"), [(LogRatio(4), "0.21"), (2, "0.2"), (LogRatio(3), "0.25"), (1.5, "0.3")])
def test_replacing(epsilon: Any, delta: Any) -> None:
    selection = ApproximatePrivateMode(epsilon=epsilon, delta=delta)
    half = ApproximatePrivateMode(epsilon=squared(epsilon), delta=delta)
    other_relation = ApproximatePrivateMode(epsilon=epsilon, delta=delta, neighbors="add-remove")
    worst, failed, wrong = [], [], []
    for n in range(1, 4 * selection.half_width + 3):
        report = audited(selection, "ab", n, epsilon, delta, "replace")
        assert report.holds
        worst.append(report.worst_delta.upper)
        failed.append(audited(half, "ab", n, epsilon, delta, "replace").holds)
        wrong.append(audited(other_relation, "ab", n, epsilon, delta, "replace").holds)
    certified = float(selection.certified_delta)
    print(f"t = {selection.half_width}: worst delta {max(worst):.6g}, certified {certified:.6g}")
    assert 0.8 * certified < max(worst) <= certified
    assert not all(failed)
    assert not all(wrong), "noise for one changed item does for two"
    assert audited(selection, "abc", 6, epsilon, delta, "replace").holds


@pytest.mark.parametrize(("t", "worst"), [(1, F(7, 16)), (2, F(9, 50)), (3, F(10, 121))])
def test_two_items_nearly_add_up(t: int, worst: Fraction) -> None:
    selection = approximate(F(1, 2), t, "replace")
    found = max(
        audited(selection, (0, 1), n, LogRatio(4), 1, "replace").worst_delta.upper for n in range(1, 8 * t + 11)
    )
    print(f"t = {t}: worst delta {found:.6f}, two items apart {2 * float(truncated_laplace(F(1, 2), t)[0]):.6f}")
    assert found == pytest.approx(float(worst), abs=1e-15)
    assert worst < selection.certified_delta + F(1, 10**20)
    pmf = {}

    def ideal(counts: tuple[int, ...]) -> list[Fraction]:
        if counts not in pmf:
            pmf[counts] = noisy_pmf(counts, truncated_laplace(F(1, 2), t), above_threshold(t))
        return pmf[counts]

    assert max(worst_excess(ideal, neighbors(n, 2, "replace"), F(4)) for n in range(1, 4 * t + 3)) == worst


@pytest.mark.parametrize(("t", "worst"), [(2, 0.3), (3, 0.21900826446)])
def test_noise_for_adding_is_too_little_for_replacing(t: int, worst: float) -> None:
    selection = approximate(F(1, 2), t, "add-remove")
    found = max(audited(selection, (0, 1), n, LogRatio(2), 1, "replace").worst_delta.lower for n in range(1, 4 * t + 4))
    print(f"t = {t}: delta {found:.6f}, promised {float(selection.certified_delta):.6f}")
    assert found > 2.9 * selection.certified_delta
    assert found == pytest.approx(worst, abs=1e-10)


def test_shared_case() -> None:
    for case in cases("approx_select_delta"):
        given = case["input"]
        selection = approximate(F(given["q"]), given["t"])
        level = LogRatio(F(given["exp_eps"]).numerator, F(given["exp_eps"]).denominator)
        found = max(
            audited(selection, range(given["k"]), n, level, 1, given["relation"]).worst_delta.upper
            for n in range(1, given["nmax"] + 1)
        )
        assert found == pytest.approx(float(F(case["expected"]["delta"])), abs=1e-15)


# --- mistakes


def _shared_noise(t: int) -> Rule:
    """One draw for all items."""
    rule = above_threshold(t)
    return lambda counts, noises: rule(counts, [noises[0]] * len(counts))


def _ties_by_count(t: int) -> Rule:
    """Of equal values the one with more users."""

    def rule(counts: Sequence[int], noises: Sequence[int]) -> int | None:
        values = [(c + x - t - 1 if c else 0) for c, x in zip(counts, noises, strict=True)]
        best = max(range(len(counts)), key=lambda i: (values[i], counts[i]))
        return best if values[best] >= 1 else None

    return rule


def _without_a_minimum(t: int) -> Rule:
    """The largest noisy count of those that somebody has."""

    def rule(counts: Sequence[int], noises: Sequence[int]) -> int | None:
        values = [(c + x if c else -9) for c, x in zip(counts, noises, strict=True)]
        return values.index(max(values)) if any(counts) else None

    return rule


def _ties_to_the_last(t: int) -> Rule:
    """Not a mistake: any order does that is public."""
    rule = above_threshold(t)

    def reversed_rule(counts: Sequence[int], noises: Sequence[int]) -> int | None:
        found = rule(counts[::-1], noises[::-1])
        return None if found is None else len(counts) - 1 - found

    return reversed_rule


@pytest.mark.parametrize(
    ("make", "private"),
    [
        (lambda t: above_threshold(t), True),
        (_ties_to_the_last, True),
        (lambda t: above_threshold(t, subtract=t - 1), False),
        (lambda t: above_threshold(t, subtract=0), False),
        (_shared_noise, False),
        (_ties_by_count, False),
        (_without_a_minimum, False),
    ],
    ids=[
        "as built",
        "ties to the last",
        "threshold 2 lower",
        "no threshold",
        "shared noise",
        "ties by count",
        "no minimum",
    ],
)
def test_mistakes(make: Callable[[int], Rule], private: bool) -> None:
    selection = approximate(F(1, 2), 2)
    delta = selection.certified_delta

    def pmf(counts: list[int]) -> list[Fraction]:
        return noisy_pmf(counts, noise_of(selection), make(2))

    reports = [audited(selection, "ab", n, LogRatio(2), delta, "add-remove", pmf) for n in range(1, 11)]
    print(f"worst delta {max(report.worst_delta.lower for report in reports):.6f}, promised {float(delta):.6f}")
    assert all(report.holds for report in reports) == private


# --- pure selection


@pytest.mark.parametrize("epsilon", [LogRatio(4), LogRatio(3), 1, 0.3, "2.5"])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_pure(epsilon: Any, relation: Any) -> None:
    def report(selection: PurePrivateMode, n: int) -> Any:
        def pmf(data: Any) -> Any:
            return selection.pmf(selection.tally([user[0] for user in data]))

        algorithm = SymmetricAlgorithm(range(3), pmf)
        return audit_user_level(
            # The fourth value is no item.
            algorithm, universe=(0, 1, 2, 3), n_users=n, n_examples=1, epsilon=epsilon, delta=0, neighbors=relation
        )  # fmt: skip

    selection = PurePrivateMode(epsilon=epsilon, n_items=3, neighbors=relation)
    reports = [report(selection, n) for n in (1, 2, 5, 12)]
    print(f"epsilon {max(r.epsilon.upper for r in reports):.6f} of {float(epsilon):.6f}, worst delta", end=" ")
    print(max(r.worst_delta.upper for r in reports))
    assert all(r.holds and r.worst_delta.upper == 0 for r in reports)
    assert max(r.epsilon.upper for r in reports) <= selection.certified_epsilon <= float(epsilon)
    half = PurePrivateMode(epsilon=squared(epsilon), n_items=3, neighbors=relation)
    assert not report(half, 12).holds
    if relation == "replace":
        assert not report(PurePrivateMode(epsilon=epsilon, n_items=3, neighbors="add-remove"), 12).holds
