"""The plans for Algorithms 1 and 3: the numbers known, and the inequalities that they rest on."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from fractions import Fraction as F
from typing import Any

import pytest

from oracle.agreement import darts_agreement, race_agreement
from userdp.stability import (
    filter_examples,
    list_parameters,
    representation_parameters,
    version_space_examples,
)


def test_known_numbers_of_representations() -> None:
    wanted: dict[str, Any] = {"alpha": 0.1, "beta": 0.1, "eta": 0.9}
    paper = representation_parameters(16, **wanted, calibration="paper")
    assert paper.m == pytest.approx(9.8e15, rel=0.01)
    assert paper.gamma == pytest.approx(2 * (4 + math.log(10) + 10) / 0.1)
    tight = representation_parameters(16, **wanted)
    assert tight.gamma == pytest.approx(20 * math.log(320))
    # Twice the failures counted and tanh(gamma Delta) would need 3.46e9, tanh(gamma Delta / 2) alone 8.7e8.
    assert 0.9 * 8.7e8 < tight.m < 8.7e8
    # Theorems 25, 29 and 30 ask for (0.9, 1 - beta / 3).
    assert representation_parameters(16, alpha=0.1, beta=1 / 30).m == pytest.approx(tight.m * 12, rel=0.35)
    realizable = representation_parameters(16, **wanted, realizable=True)
    assert realizable.gamma == pytest.approx(10 * math.log(160))
    assert realizable.m < tight.m / 3
    # The printed m is 0 for one hypothesis.
    assert representation_parameters(1, **wanted, calibration="paper").m == 1


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(("alpha", "beta", "eta", "nu"), [(0.1, 0.1, 0.9, None), (0.3, 0.01, 0.99, 0.5)])
def test_rows_are_enough(size: int, alpha: float, beta: float, eta: float, nu: float | None) -> None:
    """Some z meets the inequality for m, and none does for 2 % fewer rows."""
    plan = representation_parameters(size, alpha=alpha, beta=beta, eta=eta, nu=nu)
    budget = (1 - plan.nu) * (1 - plan.eta)

    def failure(m: float, z: float) -> float:
        deviation = math.sqrt(math.log(2 * size / z) / (2 * m))
        distance = math.tanh(plan.gamma * deviation / 2)
        return z + 2 * distance / (1 + distance)

    shares = [budget * 10 ** (-k / 500) for k in range(1, 3000)]
    assert min(failure(plan.m, z) for z in shares) <= budget * (1 + 1e-9)
    assert min(failure(plan.m * 0.98, z) for z in shares) > budget
    # Accuracy: |H| e^(-gamma alpha / 2) <= beta / 2.
    assert size * math.exp(-plan.gamma * alpha / 2) <= beta / 2 * (1 + 1e-9)


def test_perturbed_weights_move_the_pmf_by_the_hyperbolic_tangent() -> None:
    source = random.Random(4)
    closest = 0.0
    for _ in range(3000):
        size = source.randrange(2, 5)
        steps = source.choice([1, 2, 4, 9])
        base = F(source.choice([11, 13, 20, 40]), 10)
        weights = [F(2) ** source.randrange(-6, 7) for _ in range(size)]
        moves = [base ** source.choice([-steps, steps, source.randrange(-steps, steps + 1)]) for _ in range(size)]
        p = {x: weight / sum(weights) for x, weight in enumerate(weights)}
        moved = [weight * move for weight, move in zip(weights, moves, strict=True)]
        q = {x: weight / sum(moved) for x, weight in enumerate(moved)}
        distance = sum(abs(p[x] - q[x]) for x in p) / 2
        # tanh(g / 2) = (e^g - 1) / (e^g + 1) for log-weights that move by at most g.
        most = base**steps
        assert distance <= (most - 1) / (most + 1)
        closest = max(closest, float(distance / ((most - 1) / (most + 1))))
        for agreement in (race_agreement(p, q), darts_agreement(p, q)):
            assert 1 - agreement <= 2 * distance / (1 + distance) <= 1 - 1 / most
    assert closest > 0.95


def binomial(k: int, p: float, counts: Iterable[int]) -> float:
    """The probability that the number of successes in k is among counts."""
    logs = (
        math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) + i * math.log(p) + (k - i) * math.log1p(-p)
        for i in counts
    )
    return math.fsum(map(math.exp, logs))


@pytest.mark.parametrize("list_eta", [1, 0.5, "1/10"])
@pytest.mark.parametrize("list_size", [1, 50, 10**6])
def test_blocks_are_enough(list_size: int, list_eta: Any) -> None:
    plan = list_parameters(list_size, list_eta=list_eta, eta=0.9, nu=0.9)
    tau, budget = float(F(list_eta)) / 2, 0.01
    assert plan.listed_failure == pytest.approx(0.9 * tau)
    # Candidates are sandwiched: by exact binomial tails, with less than what the Chernoff bound in the plan allows.
    least = math.ceil(tau * plan.k1)
    missing = list_size / (1.1 * tau) * binomial(plan.k1, 1.1 * tau, range(least))
    extra = (list_size / (0.45 * tau) + 1) * binomial(plan.k1, 0.9 * tau, range(least, plan.k1 + 1))
    # What is left out, and what the frequencies miss.
    left_out = list_size / (0.9 * tau) * math.exp(-0.9 * plan.gamma * tau)

    def failure(s: float) -> float:
        deviation = math.sqrt(math.log(2 * list_size / (tau * s)) / (2 * plan.k2))
        distance = left_out + math.tanh(plan.gamma * deviation / 2)
        return missing + extra + s + 2 * distance / (1 + distance)

    assert min(failure(budget * 10 ** (-k / 100)) for k in range(600)) <= budget
    assert plan.k1 * tau >= 1


def test_the_printed_numbers_of_lists_are_enough() -> None:
    paper = list_parameters(10, list_eta="1/20", eta="9/10", nu="9/10", calibration="paper")
    log, tau = math.log(10 / (0.025 * 0.1)), 0.025
    assert paper.gamma == pytest.approx(1e6 * log / tau)
    assert paper.k1 == math.ceil(1e6 * log / tau**2)
    assert paper.k2 == pytest.approx(1e6 * paper.gamma**2 * log / 1e-4, rel=1e-9)
    tight = list_parameters(10, list_eta="1/20")
    assert tight.k1 < paper.k1 / 1000
    assert tight.k2 < paper.k2 / 10**10


def test_examples_of_a_block() -> None:
    for size, alpha in ((1, F(1, 2)), (100, F(1, 10)), (7, F(1, 100)), (10**6, F(1, 3))):
        m = version_space_examples(size, alpha)
        assert size * (1 - alpha) ** m < F(9, 20)
        assert m == 1 or size * (1 - alpha) ** (m - 1) >= F(9, 20)
    assert filter_examples(100, 0.1, 0.01) == math.ceil(200 * math.log(20000))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: representation_parameters(0, alpha=0.1, beta=0.1), "size must be at least 1"),
        (lambda: representation_parameters(2, alpha=0, beta=0.1), "alpha must be strictly between 0 and 1"),
        (lambda: representation_parameters(2, alpha=0.1, beta=1), "beta must be strictly between 0 and 1"),
        (lambda: representation_parameters(2, alpha=0.1, beta=0.1, eta=1), "eta must be strictly between 0 and 1"),
        (lambda: representation_parameters(2, alpha=0.1, beta=0.1, nu=0), "nu must be strictly between 0 and 1"),
        (lambda: representation_parameters(2, alpha=0.1, beta=0.1, calibration="loose"), "calibration must be"),  # type: ignore[arg-type]
        (lambda: list_parameters(0, list_eta=1), "list_size must be at least 1"),
        (lambda: list_parameters(2, list_eta=0), "list_eta must be in"),
        (lambda: list_parameters(2, list_eta=1, eta=1), "eta must be strictly between 0 and 1"),
        (lambda: list_parameters(2, list_eta=1, nu=1.5), "nu must be strictly between 0 and 1"),
        (lambda: list_parameters(2, list_eta=1, eta=0.8, calibration="paper"), "needs eta = nu"),
        (lambda: version_space_examples(2, 1), "alpha must be strictly between 0 and 1"),
        (lambda: filter_examples(2, 0.1, 0), "zeta must be strictly between 0 and 1"),
    ],
)
def test_bad_plans(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
