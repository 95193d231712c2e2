"""The privacy of discrete Gaussian noise, on the pmfs that are drawn: exact audits, each failed by half the noise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from oracle.divergence import exp_bounds, hockey_stick
from userdp.accounting import zcdp_delta
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.mechanisms import DiscreteGaussian, Pmf

F = Fraction


def probabilities(noise: DiscreteGaussian, value: int, outputs: range) -> list[Fraction]:
    """The distribution of the release of a value, on outputs that may reach beyond it."""
    pmf = noise.pmf(value)
    distribution, total = dict(zip(pmf.outputs, pmf.weights, strict=True)), pmf.total
    return [F(distribution.get(output, 0), total) for output in outputs]


def half_as_wide(noise: DiscreteGaussian) -> DiscreteGaussian:
    return DiscreteGaussian(sigma_squared=noise.sigma_squared / 4)


# --- Renyi divergences: rho-zCDP, but for what is cut off


def renyi_holds(noise: DiscreteGaussian, shift: int, order: int, rho: Fraction) -> bool:
    """Whether the sum of P^order Q^(1 - order), over what both pmfs reach, is at most e^((order - 1) order rho).

    For integers the ideal sum over all integers equals the bound, so that a part in 2^70 is left for the distribution's
    distance to the ideal one.
    """
    reach = noise.support
    outputs = range(shift - reach, reach + 1)
    pairs = zip(probabilities(noise, 0, outputs), probabilities(noise, shift, outputs), strict=True)
    found = sum(p**order / q ** (order - 1) for p, q in pairs)
    return found <= exp_bounds((order - 1) * order * rho)[1] * (1 + F(1, 2**70))


@pytest.mark.parametrize(("sigma_squared", "shift"), [(F(2), 1), (F(9), 1), (F(9), 2), (F(50), 3), (F(41, 3), 2)])
def test_renyi_divergences_are_those_of_zcdp(sigma_squared: Fraction, shift: int) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    rho = noise.rho(shift)
    assert rho == F(shift**2) / (2 * sigma_squared)
    for order in (2, 3, 4, 5):
        assert renyi_holds(noise, shift, order, rho)
        assert not renyi_holds(half_as_wide(noise), shift, order, rho)
        assert not renyi_holds(noise, shift, order, rho * F(999, 1000))


# --- (epsilon, delta) of vectors


@pytest.mark.parametrize(
    ("sigma_squared", "shifts"), [(F(4), (1,)), (F(30), (3,)), (F(1), (1, 1)), (F(2), (1, 0)), (F(2), (2, -1))]
)
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
def test_hockey_sticks_are_below_the_claim(sigma_squared: Fraction, shifts: tuple[int, ...], epsilon: Fraction) -> None:
    noise, dimension = DiscreteGaussian(sigma_squared=sigma_squared), len(shifts)
    rho = F(sum(shift**2 for shift in shifts)) / (2 * sigma_squared)
    claim = zcdp_delta(rho, epsilon, distance=dimension * noise.distance)

    def divergence(noise: DiscreteGaussian) -> Fraction:
        reach = noise.support
        ranges = [range(min(shift, 0) - reach, max(shift, 0) + reach + 1) for shift in shifts]
        before = itertools.product(*(probabilities(noise, 0, outputs) for outputs in ranges))
        after = itertools.product(
            *(probabilities(noise, x, outputs) for x, outputs in zip(shifts, ranges, strict=True))
        )
        # In units of 2^-300 rounded against the claim, so that fractions stay short.
        scale = 2**300
        p = [F(math.ceil(math.prod(row) * scale), scale) for row in before]
        q = [F(math.floor(math.prod(row) * scale), scale) for row in after]
        return hockey_stick(p, q, exp_bounds(epsilon)[0])

    found = divergence(noise)
    print(f"delta {float(found):.3g}, claim {float(claim):.3g}")
    assert found <= claim
    assert divergence(half_as_wide(noise)) > claim


# --- users with several records, through the auditor


def audited(algorithm: Any, universe: Any, epsilon: Any, delta: Any) -> Any:
    return audit_user_level(algorithm, universe=universe, n_users=2, n_examples=2, epsilon=epsilon, delta=delta)


def test_counts_of_users() -> None:
    def count(noise: DiscreteGaussian) -> AdditiveAlgorithm:
        outputs = range(-noise.support, noise.support + 5)

        def distribution(total: int, _: int) -> Pmf:
            pmf = noise.pmf(total)
            weights = dict(zip(pmf.outputs, pmf.weights, strict=True))
            return Pmf(tuple(outputs), tuple(weights.get(output, 0) for output in outputs))

        return AdditiveAlgorithm(outputs, lambda user: sum(user), distribution, statistic_range=(0, 2))

    noise = DiscreteGaussian(rho="1/8", sensitivity=2)
    assert noise.sigma_squared == 16
    for epsilon in (F(1, 2), F(1), F(2)):
        delta = zcdp_delta("1/8", epsilon, distance=noise.distance)
        report = audited(count(noise), (0, 1), epsilon, delta)
        print(f"worst delta {report.worst_delta.upper:.3g} of {float(delta):.3g}")
        assert report.holds
        failed = audited(count(half_as_wide(noise)), (0, 1), epsilon, delta)
        print(f"half the noise: worst delta {failed.worst_delta.lower:.3g}")
        assert not failed.holds


def test_sums_of_vectors() -> None:
    # Each user adds one of two unit vectors, that of the first record: replacing a user moves the sum by sqrt(2).
    def sums(noise: DiscreteGaussian) -> SymmetricAlgorithm:
        outputs = tuple(itertools.product(range(-noise.support, noise.support + 3), repeat=2))

        def distribution(dataset: Any) -> Pmf:
            ones = sum(user[0] for user in dataset)
            pmf = noise.pmf((ones, len(dataset) - ones))
            weights = dict(zip(pmf.outputs, pmf.weights, strict=True))
            return Pmf(outputs, tuple(weights.get(output, 0) for output in outputs))

        return SymmetricAlgorithm(outputs, distribution)

    noise = DiscreteGaussian(sigma_squared=2)
    rho = F(2) / (2 * noise.sigma_squared)
    for epsilon in (F(1), F(3)):
        delta = zcdp_delta(rho, epsilon, distance=2 * noise.distance)
        report = audited(sums(noise), (0, 1), epsilon, delta)
        print(f"worst delta {report.worst_delta.upper:.3g} of {float(delta):.3g}")
        assert report.holds
        assert not audited(sums(half_as_wide(noise)), (0, 1), epsilon, delta).holds
