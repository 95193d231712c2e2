"""Counts with correlated noise: copied cases, exact privacy losses of all users, and draws."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.distribution_draws import fits
from userdp.accounting import PrivacyLossDistribution, zcdp_delta
from userdp.mechanisms import CorrelatedCounts, DiscreteGaussian
from userdp.mechanisms.correlated_counts import largest_length

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "keyed_release_cases.json").read_text())


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["given"], case["want"]) for case in CASES if case["kind"] == kind]


@pytest.mark.parametrize(("given", "want"), cases("correlated"))
def test_largest_lengths(given: dict[str, Any], want: str) -> None:
    assert largest_length(given["D"], given["k"], F(given["theta"])) == F(want)


@pytest.mark.parametrize("share", [F(0), F(1, 8), F(1, 2), F(5, 7)])
def test_lengths_are_those_of_all_users(share: Fraction) -> None:
    for keys, most in itertools.product((1, 2, 4), (1, 2, 3, 6)):
        users = [user for user in itertools.product((0, 1), repeat=keys) if sum(user) <= most]
        assert largest_length(keys, most, share) == max(sum((x - share) ** 2 for x in user) for user in users)


@pytest.mark.parametrize(("given", "want"), cases("correlated_plan"))
def test_plans(given: dict[str, Any], want: dict[str, str]) -> None:
    made = CorrelatedCounts(n_keys=given["D"], max_keys=given["k"], rho=given["rho"])
    assert made.theta == F(want["theta"])
    assert math.isclose(made.variance, float(want["variance"]), rel_tol=1e-12)
    assert math.isclose(made.factor, float(want["ratio"]), rel_tol=1e-12)
    assert F(given["rho"]) * (1 - F(1, 10**15)) <= made.rho <= F(given["rho"])


def moved(made: CorrelatedCounts, keys: int, noises: tuple[DiscreteGaussian, ...]) -> PrivacyLossDistribution:
    """The loss of the numbers that a user with so many keys moves, exactly."""
    p, q = made.theta.numerator, made.theta.denominator
    each = noises[0].sigma_squared
    parts = [
        (PrivacyLossDistribution.discrete_gaussian(each, q - p), keys),
        (PrivacyLossDistribution.discrete_gaussian(each, p), made.n_keys - keys),
        (PrivacyLossDistribution.discrete_gaussian(noises[1].sigma_squared, 1), 1),
    ]
    return PrivacyLossDistribution.composed([part for part in parts if part[1]])


@pytest.mark.parametrize("arguments", [{"rho": "1/4"}, {"epsilon": 1, "delta": "1/1000"}])
def test_all_users_are_within_the_claim(arguments: dict[str, Any]) -> None:
    made = CorrelatedCounts(n_keys=4, max_keys=4, **arguments)
    assert made.theta == F(1, 2)
    cost = made.cost
    claim = F(1, 1000) if cost.epsilon else zcdp_delta(made.rho, 1, distance=made.distance)
    assert made.distance == 4 * made.noises[0].distance + made.noises[1].distance
    half = tuple(DiscreteGaussian(sigma_squared=noise.sigma_squared / 4) for noise in made.noises)
    for keys in range(made.max_keys + 1):
        found = moved(made, keys, made.noises).delta(1, relative=0.01)
        assert F(found.lower) <= claim
        assert F(moved(made, keys, half).delta(1, relative=0.01).lower) > claim
        if cost.epsilon:
            # Nothing to spare: all users move the numbers by one length here.
            assert F(found.upper) > claim / 2


def test_costs() -> None:
    made = CorrelatedCounts(n_keys=10, max_keys=10, epsilon=1, delta="1e-6")
    assert made.cost.delta == F(1, 10**6)
    assert made.cost.mu2 is not None
    assert made.cost.distance > 11 * F(1, 2**112)
    plain = CorrelatedCounts(n_keys=10, max_keys=2, rho="1/50")
    assert plain.cost.rho == plain.rho
    assert (
        CorrelatedCounts(n_keys=1000, max_keys=2, rho="1/50").distance
        == 2 * DiscreteGaussian(sigma_squared=50).distance
    )
    again = pickle.loads(pickle.dumps(made))
    assert again.cost == made.cost
    assert repr(again) == repr(made)


@pytest.mark.statistical
def test_draws_are_of_the_two_noises() -> None:
    keys = 20_000
    made = CorrelatedCounts(n_keys=keys, max_keys=keys, rho=2000)
    p, q = made.theta.numerator, made.theta.denominator
    counts, users = np.arange(keys) % 7, 9
    found, noisy = made.sample(counts, users)
    assert noisy is not None
    each = made.noises[0]
    noise = np.rint((found - counts) * q - p * (noisy - users)).astype(int)
    assert np.array_equal(noise, (found - counts) * q - p * (noisy - users))
    reach = each.support
    seen = np.bincount(noise + reach, minlength=2 * reach + 1).tolist()
    assert fits(seen, each.pmf(0).fractions(), keys)
    assert not fits(
        seen, DiscreteGaussian(sigma_squared=each.sigma_squared * F(5, 4)).pmf(0).fractions()[: len(seen)], keys
    )
    as_mapping, _ = made.sample(dict.fromkeys(range(keys), 3), users)
    assert list(as_mapping) == list(range(keys))


def test_independent_noise_where_nothing_is_gained() -> None:
    made = CorrelatedCounts(n_keys=3, max_keys=1, rho="1/50")
    assert made.theta == 0
    assert len(made.noises) == 1
    assert made.factor == 1
    _, users = made.sample([1, 2, 3], 4)
    assert users is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CorrelatedCounts(n_keys=0, max_keys=1, rho=1), "n_keys"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=0, rho=1), "max_keys"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=1), "either rho"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=1, rho=1, epsilon=1, delta="0.1"), "either rho"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=1, epsilon=1), "either rho"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=1, rho=0), "rho"),
        (lambda: CorrelatedCounts(n_keys=2, max_keys=1, rho=1).sample([1], 1), "n_keys=2"),
        (lambda: CorrelatedCounts(n_keys=1, max_keys=1, rho=1).sample([1], 1.5), "n_users"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()
