"""Distributions learned from covers: covers, exact audits, budgets, and what is found."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from sklearn.base import clone

from oracle.scheffe import grid_distributions, total_variation
from userdp.audit import audit_user_level
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.distributions import line_selection as _lines
from userdp.distributions.covers import grid_of, grid_size, members, near, near_size
from userdp.distributions.discrete import CoarseToFine, JointCover, SymbolBySymbol, selections_of
from userdp.distributions.gaussian import Projections, gaussian_cover_size
from userdp.distributions.line_selection import LocationSearch, ScaleSearch
from userdp.estimators import as_finite_algorithm
from userdp.estimators import selection as _selection
from userdp.mechanisms import ExponentialMechanism
from userdp.testing import assert_user_private

NORMAL = NormalDist()

# Covers.


@pytest.mark.parametrize(("n", "k"), [(1, 2), (5, 2), (4, 3), (6, 3), (3, 4), (2, 5)])
def test_members_are_all_grid_distributions(n, k):
    listed = list(members(n, k))
    assert listed == sorted(grid_distributions(n, k))
    assert len(listed) == grid_size(n, k)


@pytest.mark.parametrize(("k", "alpha"), [(2, Fraction(1, 3)), (2, Fraction(1, 10)), (3, Fraction(9, 10))])
def test_every_distribution_is_within_a_tenth_of_alpha_of_the_cover(k, alpha):
    n = grid_of(k, alpha)
    assert n == math.ceil(Fraction(5 * k, 2) / alpha)
    cover = [[Fraction(mass, n) for mass in masses] for masses in members(n, k)]
    fine = 4 * n + 1 if k == 2 else n + 4
    distances = [
        min(total_variation([Fraction(mass, fine) for mass in masses], member) for member in cover)
        for masses in grid_distributions(fine, k)
    ]
    assert 0 < max(distances) <= alpha / 10


@pytest.mark.parametrize(("k", "radius"), [(2, 3), (3, 1), (3, 2), (4, 2), (5, 1)])
def test_near_is_a_ball(k, radius):
    n = 4 * radius
    for center in ((n, *[0] * (k - 1)), tuple([n // k + 1] * (k - 1) + [n - (k - 1) * (n // k + 1)])):
        wanted = [
            masses
            for masses in grid_distributions(n, k)
            if sum(abs(a - b) for a, b in zip(masses, center, strict=True)) <= 2 * radius
        ]
        assert list(near(center, radius)) == sorted(wanted)
    inner = (radius + 1,) * k
    assert len(list(near(inner, radius))) == near_size(k, radius)


def test_rounds_reach_every_distribution():
    """From anything within 0.7 of a round's accuracy the next round has a member within a tenth of its own."""
    plan = CoarseToFine(3, Fraction(2, 10))
    assert [alpha for alpha, _ in plan.rounds] == [Fraction(8, 10), Fraction(4, 10), Fraction(2, 10)]
    for r in (1, 2):
        (before, n), (alpha, finer) = plan.rounds[r - 1 : r + 1]
        assert finer == 2 * n
        truth = [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]
        for center in members(n, 3):
            if total_variation(truth, [Fraction(mass, n) for mass in center]) <= Fraction(7, 10) * before:
                candidates = near(tuple(2 * mass for mass in center), plan._radius(r))
                distance = min(total_variation(truth, [Fraction(mass, finer) for mass in c]) for c in candidates)
                assert distance <= alpha / 10


def test_sizes_and_the_choice_of_a_method():
    assert JointCover(3, Fraction(1, 10)).size == math.comb(77, 2)
    assert CoarseToFine(2, Fraction(1, 100)).size < 100
    assert isinstance(selections_of("auto", 3, Fraction(1, 10), 4096), JointCover)
    assert isinstance(selections_of("auto", 3, Fraction(1, 100), 4096), CoarseToFine)
    assert isinstance(selections_of("auto", 50, Fraction(1, 10), 4096), SymbolBySymbol)
    # Means 0 and +-0.1 sqrt(2 pi) for alpha = 0.5, variances 1, 1 + step, ...
    step = 0.2 * 0.5 * 0.95
    means = math.ceil(2 / (0.05 * math.sqrt(2 * math.pi))) + 1
    assert gaussian_cover_size(1, 1, 2, 0.5) == means * (math.ceil(1 / step) + 1)
    learner = GaussianDistribution(epsilon=1, mean_bound=10, kappa=4, n_columns=3)
    assert learner.joint_cover_size() > 10**15


def test_euclidean_projection():
    """The projection is the nearest distribution: no grid distribution is nearer."""
    plan = SymbolBySymbol(3, Fraction(3, 4))
    unit = plan.unit
    for outcome in [(0, 0, 0), (unit, unit, 0), (unit, 1, 0), (2, 3, 1), (unit, unit, unit)]:
        projected = plan.probabilities(outcome)
        assert projected.min() >= 0
        assert projected.sum() == pytest.approx(1, abs=1e-12)
        vector = np.array(outcome) / unit
        nearest = min(((np.array(masses) / 40 - vector) ** 2).sum() for masses in grid_distributions(40, 3))
        assert ((projected - vector) ** 2).sum() <= nearest + 1e-12


# The utility of lines, in the limit of many users.


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3, 0.5])
def test_a_location_is_within_its_bound(alpha):
    step = 0.2 * math.sqrt(2 * math.pi) * alpha
    reach = step / 2 + NORMAL.inv_cdf(0.5 + alpha / 2)
    assert 2 * NORMAL.cdf(reach / 2) - 1 <= 0.66 * alpha
    search = LocationSearch("x", 3.0, 1.0, alpha)
    (part,) = search.rounds
    points = [part.offset(index) for index in range(part.n_points)]
    assert np.diff(points) == pytest.approx(step)
    assert points[0] <= -3
    assert points[-1] >= 3


def test_a_location_below_0_9():
    for alpha in np.linspace(0.05, 0.9, 18):
        reach = 0.1 * math.sqrt(2 * math.pi) * alpha + NORMAL.inv_cdf(0.5 + alpha / 2)
        assert 2 * NORMAL.cdf(reach / 2) - 1 <= 0.8 * alpha


@pytest.mark.parametrize("accuracy", [0.005, 0.04, 0.15])
def test_a_scale_is_within_its_bound(accuracy):
    """Any cell that the quantiles 1/2 -+ 0.6 a of |x| meet has a variance within a factor of 1 +- 3.3 a."""

    def quantile(p):
        return NORMAL.inv_cdf(0.5 + p / 2)

    search = ScaleSearch("x", 2.0, accuracy)
    assert search.value(0) == 1
    assert search.value(search.n_points - 1) == pytest.approx(2)
    assert search.ratio <= 0.1 * accuracy
    reach = search.ratio / 2
    high = math.log(quantile(0.5 + 0.6 * accuracy) / quantile(0.5)) + reach
    low = math.log(quantile(0.5) / quantile(0.5 - 0.6 * accuracy)) + reach
    if accuracy <= 0.04:
        assert math.exp(2 * max(high, low)) - 1 <= 3.3 * accuracy
    assert 0.242 * 2 * max(high, low) <= 0.8 * accuracy


def test_total_variation_of_scales():
    """At most 0.242 times the difference of the logarithms of variances."""
    for ratio in (1.001, 1.1, 2, 10):
        edge = math.sqrt(ratio * math.log(ratio) / (ratio - 1))
        distance = 2 * (NORMAL.cdf(edge) - NORMAL.cdf(edge / math.sqrt(ratio)))
        assert distance <= 0.242 * math.log(ratio)


# Exact audits on tiny universes.


class CoarseGaussian(GaussianDistribution):
    """With few candidates on every line."""

    def _selections(self):
        return Projections(2, 0.3, 1.05, 0.9)


GAUSSIAN = [(-3.0,), (0.2,), (math.inf,)]
LEARNERS = {
    "joint": (lambda: DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.9, method="joint"), [0, 1, 7], 2),
    "joint-3": (lambda: DiscreteDistribution(epsilon=1, n_symbols=3, m=2, alpha=0.9), [0, 1, 2], 2),
    "coarse-to-fine": (
        lambda: DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.3, method="coarse-to-fine"),
        [0, 1],
        2,
    ),
    "symbols": (lambda: DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.9, method="symbols"), [0, 1, 9], 2),
    "product": (
        lambda: ProductDistribution(epsilon=1, n_symbols=2, n_columns=2, m=1, alpha=0.9, method="joint"),
        [(0, 0), (0, 1), (1, 0), (1, 1)],
        1,
    ),
    "product-columns": (
        lambda: ProductDistribution(epsilon=1, n_symbols=2, n_columns=2, m=1, alpha=0.95, method="coordinate"),
        [(0, 0), (0, 1), (1, 0), (1, 1)],
        1,
    ),
    "mean": (lambda: GaussianMean(epsilon=1, mean_bound=1, m=2, alpha=0.9), GAUSSIAN, 2),
    "mean-2": (
        lambda: GaussianMean(epsilon=1, mean_bound=1, n_columns=2, m=1, alpha=0.9, covariance=[[2.0, 0.5], [0.5, 1.0]]),
        [(-3.0, 1.0), (0.2, -2.0), (math.inf, 5.0)],
        1,
    ),
    "normal": (lambda: GaussianDistribution(epsilon=1, mean_bound=0.5, kappa=1.5, m=2, alpha=0.9), GAUSSIAN, 2),
    "normal-2": (
        lambda: CoarseGaussian(epsilon=1, mean_bound=0.3, kappa=1.1, n_columns=2, m=1, alpha=0.99),
        [(-9.0, -9.0), (0.1, 0.1), (0.6, math.inf)],
        1,
    ),
}


FACTORS = {"coarse-to-fine": 4}
"""How much less noise is planted: twice, but where the draws of a learner do not all lose at the same time."""


def audited(name):
    make, universe, m = LEARNERS[name]
    algorithm = as_finite_algorithm(make())
    return audit_user_level(algorithm, universe=universe, n_users=2, n_examples=m, epsilon=1, delta=0)


@pytest.mark.parametrize("name", LEARNERS)
def test_exact_audit(name, monkeypatch):
    report = audited(name)
    assert report.holds
    monkeypatch.setattr(
        _selection,
        "ExponentialMechanism",
        lambda epsilon, sensitivity: ExponentialMechanism(
            epsilon=FACTORS.get(name, 2) * epsilon, sensitivity=sensitivity
        ),
    )
    assert not audited(name).holds


def test_rounds_of_a_line_are_audited(monkeypatch):
    monkeypatch.setattr(_lines, "FINE_POINTS", 4)
    monkeypatch.setattr(_lines, "COARSE_POINTS", 5)
    learner = GaussianMean(epsilon=1, mean_bound=4, m=1, alpha=0.9)
    assert len(learner.release_plan(n_users=2, n_features=1).budget.parts) == 2
    assert_user_private(as_finite_algorithm(learner), universe=GAUSSIAN, n_users=2, epsilon=1)


# Budgets and records.


@pytest.mark.parametrize("name", LEARNERS)
def test_parts_sum_to_epsilon(name):
    learner = LEARNERS[name][0]().set_params(epsilon=0.1, random_state=None)
    budget = learner.release_plan(n_users=100, n_features=learner._columns()).budget.parts
    assert sum(budget.values()) == Fraction(1, 10)
    assert all(part > 0 for part in budget.values())
    assert learner.users_needed() > 0


@pytest.mark.parametrize("name", LEARNERS)
def test_a_failure_below_all_weights_is_not_promised(name):
    """Weights have 64 bits: among two or more candidates no draw fails less often than by 2**-66."""
    learner = LEARNERS[name][0]().set_params(beta=2.0**-66)
    with pytest.raises(ValueError, match="beta is too small for weights of 64 bits"):
        learner.users_needed()


def test_the_methods_compare_in_users_as_stated():
    def needed(method):
        return DiscreteDistribution(epsilon=0.01, n_symbols=3, m=100, alpha=0.1, method=method)

    joint, rounds, symbols = (needed(method).users_needed() for method in ("joint", "coarse-to-fine", "symbols"))
    assert joint < rounds < 4 * joint
    assert joint < symbols


@pytest.mark.parametrize("name", LEARNERS)
def test_fit_save_and_clone(name):
    make, universe, m = LEARNERS[name]
    learner = make()
    X = np.array([x if isinstance(x, tuple) else (x,) for x in universe] * 4)
    groups = np.arange(len(X)) // m
    fitted = clone(learner).fit(X, groups=groups)
    assert fitted.privacy_.epsilon == 1
    assert fitted.privacy_.released == fitted.released
    assert fitted.is_private_
    again = type(learner).from_json(fitted.to_json())
    for attribute in fitted.released:
        assert np.array_equal(getattr(again, attribute), getattr(fitted, attribute))
    assert again.get_params() == learner.get_params()


def test_bad_values_count_as_defaults():
    values = np.array([[np.nan], [np.inf], [-np.inf], [3.0], [-1.0], [0.5]])
    groups = np.arange(6)
    discrete = LEARNERS["joint"][0]()
    zeros = discrete.output_distribution(np.zeros((6, 1)), groups=groups)
    assert discrete.output_distribution(values, groups=groups) == zeros
    mean = LEARNERS["mean"][0]()
    clamped = np.array([[0.0], [1e9], [-1e9], [3.0], [-1.0], [0.5]])
    assert mean.output_distribution(values, groups=groups) == mean.output_distribution(clamped, groups=groups)
    mean.fit(values, groups=groups)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        mean.set_params(on_invalid="raise").fit(values, groups=groups)


# What is found: on this data the exact distributions fail with probabilities below 1e-7.


@pytest.mark.parametrize("method", ["joint", "coarse-to-fine", "symbols"])
def test_a_distribution_is_found(method):
    rng = np.random.default_rng(5)
    truth = [0.6, 0.3, 0.1]
    X, groups = rng.choice(3, size=(20000, 1), p=truth), np.repeat(np.arange(2000), 10)
    learner = DiscreteDistribution(epsilon=20, n_symbols=3, m=10, alpha=0.4, method=method)
    found = learner.fit(X, groups=groups).probabilities_
    assert found.sum() == pytest.approx(1)
    assert np.abs(found - truth).sum() / 2 <= 0.4
    if method == "coarse-to-fine":  # its distribution has thousands of paths; 4e-18 when it was computed once
        return
    pmf = learner.output_distribution(X, groups=groups)
    distances = [np.abs(learner._selections().probabilities(outcome) - truth).sum() / 2 for outcome in pmf.outputs]
    missed = sum(weight for weight, distance in zip(pmf.weights, distances, strict=True) if distance > 0.4)
    assert Fraction(missed, pmf.total) < Fraction(1, 10**12)


@pytest.mark.parametrize("method", ["joint", "coordinate"])
def test_a_product_is_found(method):
    rng = np.random.default_rng(6)
    X = np.stack([rng.random(20000) < 0.8, rng.random(20000) < 0.3], axis=1).astype(int)
    learner = ProductDistribution(epsilon=20, n_symbols=2, n_columns=2, m=10, alpha=0.8, method=method)
    found = learner.fit(X, groups=np.arange(20000) // 10).probabilities_
    assert np.abs(found[:, 1] - [0.8, 0.3]).sum() <= 0.8


def test_a_mean_far_away_is_found():
    """A radius of 10**7 takes rounds."""
    rng = np.random.default_rng(7)
    covariance = np.array([[4.0, 1.0], [1.0, 2.0]])
    mean = np.array([3e6, -1e6])
    X = rng.multivariate_normal(mean, covariance, size=20000)
    learner = GaussianMean(epsilon=20, mean_bound=1e7, n_columns=2, covariance=covariance, m=10, alpha=0.2)
    learner.fit(X, groups=np.arange(20000) // 10)
    assert len(learner.privacy_.budget) > 4
    white = np.linalg.solve(np.linalg.cholesky(covariance), learner.mean_ - mean)
    assert 2 * NORMAL.cdf(np.linalg.norm(white) / 2) - 1 <= 0.2


def test_a_normal_distribution_is_found():
    rng = np.random.default_rng(8)
    covariance = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.2], [0.0, -0.2, 1.2]])
    X = rng.multivariate_normal([1.0, -1.0, 0.5], covariance, size=60000)
    learner = GaussianDistribution(epsilon=40, mean_bound=3, kappa=3, n_columns=3, m=20, alpha=0.3)
    learner.fit(X, groups=np.arange(60000) // 20)
    assert np.abs(learner.mean_ - [1.0, -1.0, 0.5]).max() < 0.1
    assert np.abs(learner.covariance_ - covariance).max() < 0.2
    assert np.linalg.eigvalsh(learner.covariance_).min() >= 1 - 1e-9


def test_rows_of_other_users_do_not_change_how_a_row_is_read():
    """Whitening is done entry by entry: a row has the same bits wherever it stands."""
    rng = np.random.default_rng(9)
    learner = GaussianMean(epsilon=1, mean_bound=5, n_columns=3, covariance=np.cov(rng.normal(size=(3, 9))), m=1)
    row = rng.normal(size=(1, 3))
    wanted = None
    for before in range(20):
        X = np.concatenate([rng.normal(size=(before, 3)), row, rng.normal(size=(37 - before, 3))])
        values = [column[before] for column in learner._whitened(X)]
        wanted = wanted or values
        assert values == wanted
