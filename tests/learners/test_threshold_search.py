"""The search for a threshold by bisection: known distributions and worst ratios, its draws, and its parameters."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from oracle import private_threshold as oracle
from oracle.statistics import surprises
from support.bisection_cases import NEAR, cases, level, near, sweep_of, worst_ratios
from support.program_paths import largest_change
from userdp import LogRatio, Pmf, _core
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.learners.threshold import ThreeWayChoice, median_tolerances, rounds_of_search, search, t_of_error
from userdp.mechanisms import ExponentialMechanism, GroupedExponentialMechanism
from userdp.mechanisms.composed import output_distribution, run
from userdp.testing import assert_user_private

F = Fraction


def audit(mechanism: Any, universe: Any, users: int, epsilon: Any, n_examples: int = 1) -> Any:
    return audit_user_level(
        mechanism, universe=universe, n_users=users, n_examples=n_examples, epsilon=epsilon, delta=0
    )


def searched(given: dict[str, Any], choice: Any, base: str) -> Pmf:
    m = max(len(user) for user in given["users"])
    median = GroupedExponentialMechanism(epsilon=level(base, 2), sensitivity=1)
    sweep = sweep_of(given["users"], m, given["N"])
    program = lambda draw: search(  # noqa: E731
        draw, sweep, domain_size=given["N"], t=given["t"], tolerances=given["s"], median=median, choice=choice
    )
    return output_distribution(program, range(given["N"] + 1))


@pytest.mark.parametrize(("given", "expected"), cases("private_threshold"))
def test_known_pmfs_of_the_search(given: dict[str, Any], expected: dict[str, Any]) -> None:
    choice = ThreeWayChoice(level(given["dlap_base_b"], 3), len(given["users"]))
    assert near(searched(given, choice, given["em_base_a"]), expected["pmf_u"])
    m = max(len(user) for user in given["users"])
    base, noise = F(given["em_base_a"]), oracle.noisy_choice(F(given["dlap_base_b"]))
    reference = oracle.pmf_of_search(given["users"], m, given["N"], given["t"], given["s"], base, noise)
    assert all(abs(a - F(b)) < NEAR for a, b in zip(reference, expected["pmf_u"], strict=True))


class ExponentialChoice:
    """One draw in place of three noisy counts."""

    def __init__(self, epsilon: Any) -> None:
        self._mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=1)

    def pmf(self, *counts: int | None) -> Pmf:
        sides = [side for side, count in zip(("left", "middle", "right"), counts, strict=True) if count is not None]
        return Pmf(tuple(sides), self._mechanism.pmf([count for count in counts if count is not None]).weights)


@pytest.mark.parametrize(("given", "expected"), cases("private_threshold_em3"))
def test_known_pmf_of_the_search_with_another_choice(given: dict[str, Any], expected: dict[str, Any]) -> None:
    choice = ExponentialChoice(level(given["choice_base"], 2))
    assert near(searched(given, choice, given["em_base_a"]), expected["pmf_u"])


@pytest.mark.parametrize(("given", "expected"), worst_ratios("PrivateThreshold"))
def test_known_worst_ratios_of_the_search(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """At a budget of ln 256 for each round: far below it, since most of what is drawn is not seen."""
    n_users, text = given["n"], given["mechanism"]
    size, m, rounds, t = (int(re.search(rf"{name}=(\d+)", text)[1]) for name in (r"\|X\|", "m", "T", "t"))  # type: ignore[index]
    choice = ExponentialChoice(level("1/8", 2)) if "em3" in text else ThreeWayChoice(level("1/4", 3), n_users)

    def pmf(dataset: Any) -> Pmf:
        return searched({"users": dataset, "N": size, "t": t, "s": [0] * rounds}, choice, "1/2")

    algorithm, rows = SymmetricAlgorithm(range(size + 1), pmf), list(product(range(1, size + 1), (0, 1)))
    claimed = LogRatio(256**rounds)
    report: Any = assert_user_private(algorithm, universe=rows, n_users=n_users, n_examples=m, epsilon=claimed)
    assert report.epsilon.lower == pytest.approx(math.log(F(expected["worst_ratio_replace"])), abs=1e-7)


def test_rounds_and_tolerances_of_the_search() -> None:
    assert [rounds_of_search(F(alpha)) for alpha in ("0.1", "0.9", "4/9", "8/9", "0.001")] == [8, 2, 4, 2, 19]
    assert all((F(2, 3) ** rounds_of_search(F(1, k)) <= F(1, 2 * k)) for k in range(2, 200))
    assert median_tolerances(1, 8) == [0] * 8
    assert median_tolerances(64, 3)[0] > 0
    assert t_of_error(16, F(19, 20), F(1, 2)) is None
    assert t_of_error(16, F(7, 8), F(3, 10)) is not None


def test_arguments_of_draws_change_by_one_at_most() -> None:
    def program_of(dataset: Any) -> Any:
        median = GroupedExponentialMechanism(epsilon=F(1, 8), sensitivity=1)
        sweep = sweep_of(dataset, 2, 3)
        choice = ThreeWayChoice(F(3, 8), len(dataset))
        return lambda draw: search(draw, sweep, domain_size=3, t=1, tolerances=(1, 0), median=median, choice=choice)

    rows = list(product((1, 2, 3), (0, 1)))
    users = [(a, b) for a in rows for b in rows if a <= b][::3]
    pairs = [((a, c), (b, c)) for a in users for b in users for c in users[::4] if a < b]
    change, spent = largest_change(program_of, pairs)
    assert change == 1
    assert spent == pytest.approx(1)


@pytest.mark.statistical
def test_drawn_like_the_pmf() -> None:
    users = [[(1, 0), (3, 1)], [(2, 1), (2, 0)], [(3, 1), (3, 0)]]
    sweep, choice = sweep_of(users, 2, 3), ThreeWayChoice(1, 3)
    median = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    program = lambda draw: search(  # noqa: E731
        draw, sweep, domain_size=3, t=0, tolerances=(1, 0), median=median, choice=choice
    )
    pmf, source = output_distribution(program, range(4)), _core.Source(5)
    drawn = [run(program, source) for _ in range(3000)]
    found, limit = surprises([drawn.count(u) for u in pmf.outputs], pmf.fractions())
    assert found < limit
