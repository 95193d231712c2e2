"""Noise under both accounts: exact audits of what is drawn, the choice between them, and ledgers that count rho."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from userdp.accounting import PrivacyLedger, gaussian_delta, largest_mu2, largest_rho, zcdp_delta
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.means.gaussian_account import (
    NOISE_DISTANCE,
    SMOOTHED_WITHIN,
    SMOOTHING,
    GaussianAccount,
    gaussian_account,
    gaussian_accounts,
)
from userdp.mechanisms import DiscreteGaussian
from userdp.optimization import ClippedGradientDescent, L2Ball, LogisticLoss

F = Fraction


def weights_of(noise: DiscreteGaussian) -> tuple[np.ndarray, int]:
    half = noise._core_noise.weights()
    weights = np.array(half[:0:-1] + half, dtype=object)
    return weights, int(weights.sum())


def shifted(weights: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    zeros = np.zeros(shift, dtype=object)
    return np.concatenate([weights, zeros]), np.concatenate([zeros, weights])


def delta_of(noise: DiscreteGaussian, shift: int, epsilon: float) -> Fraction:
    """Of one integer, as it is drawn."""
    weights, whole = weights_of(noise)
    p, q = shifted(weights, shift)
    # A level that is not above e^epsilon has no smaller delta.
    level = F(math.exp(epsilon)) * (1 - F(1, 2**40))
    above = level.denominator * p - level.numerator * q
    return F(int(above[above > 0].sum()), whole * level.denominator)


@pytest.mark.parametrize("mu2", [F(1, 20), F(1), F(6)])
@pytest.mark.parametrize("sensitivity", [1, 3, 40])
def test_what_is_drawn_is_dominated(mu2: Fraction, sensitivity: int) -> None:
    noise = GaussianAccount("mu2", mu2).noise(sensitivity)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        promised = gaussian_delta(mu2, epsilon, distance=NOISE_DISTANCE) * (1 + F(1, 2**30))
        for shift in {1, (sensitivity + 1) // 2, sensitivity}:
            assert delta_of(noise, shift, epsilon) <= promised


@pytest.mark.parametrize("mu2", [F(1, 20), F(1), F(6)])
def test_half_the_noise_is_not(mu2: Fraction) -> None:
    account = GaussianAccount("mu2", mu2)
    quiet = DiscreteGaussian(sigma_squared=account.sigma_squared(40) / 4)
    assert delta_of(quiet, 40, 1.0) > gaussian_delta(mu2, 1, distance=NOISE_DISTANCE)
    # Nor is the noise much more than it takes.
    less = DiscreteGaussian(sigma_squared=account.sigma_squared(40) * F(95, 100))
    assert delta_of(less, 40, 1.0) > gaussian_delta(mu2, 1, distance=NOISE_DISTANCE)


def test_two_integers_have_the_noise_of_their_length() -> None:
    mu2, epsilon = F(2), 1.0
    weights, whole = weights_of(GaussianAccount("mu2", mu2).noise(5))
    first, second = shifted(weights.astype(float) / whole, 3), shifted(weights.astype(float) / whole, 4)
    p, q = np.outer(first[0], second[0]), np.outer(first[1], second[1])
    worst = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    promised = float(gaussian_delta(mu2, epsilon, distance=2 * NOISE_DISTANCE))
    assert 0.7 * promised < worst <= promised * (1 + 1e-9)


def test_the_distance_of_the_channel_is_what_the_series_sums_to() -> None:
    # e_s = 2 (e^(-2 pi^2 s^2) + ..), with pi from below; what follows the first term is less than a part in 2^300.
    pi = F(314159265358979, 10**14)
    assert 2 * math.exp(-2 * pi**2 * SMOOTHING) * (1 + 1e-12) < SMOOTHED_WITHIN < 2 * SMOOTHED_WITHIN


@pytest.mark.parametrize(("unit", "per_square"), [("rho", 1 / 8), ("mu2", math.pi / 8)])
def test_searches_spend_what_they_cost(unit: str, per_square: float) -> None:
    account = GaussianAccount(unit, F(1, 100))  # type: ignore[arg-type]
    epsilon = account.search_epsilon()
    assert account.of_search(epsilon) <= account.amount
    assert float(epsilon) == pytest.approx(math.sqrt(0.01 / per_square), rel=1e-5)
    assert account.range_rho == pytest.approx(per_square * float(account.rho / account.amount), rel=1e-5)
    assert GaussianAccount(unit, F(10**9)).search_epsilon() == 64  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "ratio"), [("0.5", 0.929), (1, 0.932), (2, 0.937), (4, 0.941)])
def test_noise_is_less_by_the_exact_curve(epsilon: str | int, ratio: float) -> None:
    exact = gaussian_account(epsilon, F(1, 10**6), 10, sensitivity=2**10)
    in_rho = gaussian_account(epsilon, F(1, 10**6), 10, sensitivity=2**10, in_rho=True)
    assert (exact.unit, in_rho.unit) == ("mu2", "rho")
    sizes = [math.sqrt(account.noise(2**20).sigma_squared) for account in (exact, in_rho)]
    assert sizes[0] / sizes[1] == pytest.approx(ratio, abs=6e-4)
    assert exact.amount == largest_mu2(epsilon, F(1, 10**6), distance=10 * NOISE_DISTANCE)
    assert in_rho.amount == largest_rho(epsilon, F(1, 10**6), distance=10 * NOISE_DISTANCE)


def test_the_account_with_less_noise_is_taken() -> None:
    # sigma^2 is D^2 / mu^2 + 4 or D^2 / (2 rho): at (4, 1/10) they are equal for a D between 5 and 6.
    chosen = {}
    for sensitivity in (1, 2, 3, 4, 6, 8, 16):
        accounts = gaussian_accounts(4, F(1, 10), 2, sensitivity=sensitivity)
        assert len({account.unit for account in accounts}) == 2
        sizes = [account.sigma_squared(sensitivity) for account in accounts]
        assert sizes == sorted(sizes)
        chosen[sensitivity] = accounts[0].unit
    assert (chosen[1], chosen[16]) == ("rho", "mu2")
    assert sum(a != b for a, b in pairwise(chosen.values())) == 1


def test_an_epsilon_that_is_too_large_is_named() -> None:
    with pytest.raises(ValueError, match="epsilon must be at most"):
        gaussian_account(1000, F(1, 10**6), 2, sensitivity=2**10)


# Ledgers.

ROWS = np.zeros((400, 20))
USERS = np.arange(400)


@pytest.mark.parametrize("method", ["auto", "gaussian"])
def test_a_ledger_that_counts_rho_has_noise_planned_in_rho(method: str) -> None:
    mean = WinsorizedMean(epsilon="1/2", delta="1e-7", max_norm=1, m=1, method=method, user_std=0.1)
    free = mean.privacy_cost(n_users=400, n_features=20)
    ledger = PrivacyLedger(2, "1e-6", composition="zcdp")
    fitted = ledger.fit(mean, ROWS, groups=USERS)
    cost = fitted.privacy_.cost
    assert cost.mu2 is None
    assert fitted.privacy_.budget_unit == "rho"
    assert zcdp_delta(cost.rho, "1/2", distance=cost.distance) <= F("1e-7")
    assert ledger.spent["rho"] == cost.rho
    # Planned alone it has less noise, and would cost such a ledger more.
    assert free.mu2 is not None
    assert free.rho == free.mu2 / 2 > cost.rho
    assert mean.fit(ROWS, groups=USERS).privacy_.cost == free
    basic = PrivacyLedger(2, "1e-6")
    assert basic.fit(mean, ROWS, groups=USERS).privacy_.cost == free


def test_sessions_and_descents_in_a_ledger_that_counts_rho() -> None:
    ledger = PrivacyLedger(4, "1e-5", composition="zcdp")
    about = WinsorizedQueries(epsilon=1, delta="1e-6", n_queries=3, dimension=20, max_norm=1, m=1)
    with ledger.open_session(about, ROWS, groups=USERS) as session:
        assert session.privacy_.mu2 is None
    with about.open(ROWS, groups=USERS) as session:
        assert session.privacy_.mu2 is not None
    descent = ClippedGradientDescent(
        epsilon=1,
        delta="1e-6",
        loss=LogisticLoss(),
        constraint=L2Ball(1.0),
        max_norm=1.0,
        target_bounds=(-1, 1),
        m=1,
        n_iterations=2,
    )
    assert ledger.fit(descent, ROWS, np.ones(400), groups=USERS).privacy_.mu2 is None
    assert descent.fit(ROWS, np.ones(400), groups=USERS).privacy_.mu2 is not None


def test_a_record_says_what_it_costs_both_ways() -> None:
    plan = WinsorizedMean(epsilon=1, delta="1e-6", max_norm=1, m=1, method="gaussian").release_plan(
        n_users=10_000, n_features=64
    )
    text = plan._sections()[0].text()
    assert "Mu^2 (Gaussian)          0.05603" in text
    assert "Rho (zero-concentrated)  0.02802" in text
    assert "0.932 times that under zero-concentrated DP" in text
    in_epsilon = WinsorizedMean(epsilon=1, max_norm=1, m=1).release_plan(n_users=10_000, n_features=64)
    assert "Mu^2" not in in_epsilon._sections()[0].text()


def test_an_exact_ledger_charges_mu2_for_searches_and_noise_together() -> None:
    mean = WinsorizedMean(epsilon=1, delta="1e-7", max_norm=1, m=256, method="tested")
    ledger = PrivacyLedger(2, "1e-6", composition="exact")
    cost = ledger.fit(mean, ROWS, groups=USERS).privacy_.cost
    assert cost.mu2 is not None
    assert ledger.spent["mu2"] == cost.mu2
    assert ledger.remaining()["mu2"] == largest_mu2(2, "1e-6", distance=ledger.limits["distance"]) - cost.mu2  # type: ignore[arg-type, operator]
