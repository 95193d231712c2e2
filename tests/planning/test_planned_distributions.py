"""Numbers of users for distributions and quantiles: recorded simulations, fits, formulas and bad input."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean
from userdp.exceptions import InsecureRandomnessWarning
from userdp.learners import HypothesisSelector
from userdp.mechanisms import ExponentialMechanism
from userdp.planning import compare_methods, user_complexity
from userdp.planning.chances import Line, distance_of_normals, nearest_distributions
from userdp.tables.quantiles import WEIGHT, costs_of, levels_of, sensitivity_of, unit_of

USUAL = ("one record per person", "group privacy", "per-user clipping")


def _misses(make: Any, draw: Any, wrong: Any, n: int, m: int, runs: int = 300) -> int:
    """How often fits of fresh users are wrong."""
    rng, users, missed = np.random.default_rng(3), np.repeat(np.arange(n), m), 0
    for run in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRandomnessWarning)
            missed += bool(wrong(make(run).fit(draw(rng, n * m), groups=users)))
    return missed


MOST_MISSES = 57
"""Of 300 fits with beta = 0.1: more have a probability below 9e-7."""


def test_fits_of_symbols_keep_the_stated_rate() -> None:
    n = user_complexity("discrete", method="symbols", m=8, epsilon=1, alpha=0.15, n_symbols=4).n_users
    assert (
        _misses(
            lambda run: DiscreteDistribution(
                epsilon=1, n_symbols=4, m=8, alpha=0.15, method="symbols", random_state=run
            ),
            lambda rng, size: rng.integers(0, 4, size)[:, None],
            lambda model: np.abs(model.probabilities_ - 0.25).sum() / 2 > 0.15,
            n,
            8,
        )
        <= MOST_MISSES
    )


def test_fits_of_means_keep_the_stated_rate() -> None:
    n = user_complexity("gaussian-mean", method="cover", m=8, epsilon=1, alpha=0.1, mean_bound=10).n_users
    assert (
        _misses(
            lambda run: GaussianMean(epsilon=1, mean_bound=10, m=8, alpha=0.1, random_state=run),
            lambda rng, size: 5 + rng.standard_normal((size, 1)),
            lambda model: math.erf(abs(model.mean_[0] - 5) / math.sqrt(8)) > 0.1,
            n,
            8,
        )
        <= MOST_MISSES
    )


def test_fits_of_normal_distributions_keep_the_stated_rate() -> None:
    n = user_complexity("gaussian", method="cover", m=8, epsilon=1, alpha=0.2, mean_bound=6, kappa=4).n_users
    assert (
        _misses(
            lambda run: GaussianDistribution(epsilon=1, mean_bound=6, kappa=4, m=8, alpha=0.2, random_state=run),
            lambda rng, size: 3 + math.sqrt(2) * rng.standard_normal((size, 1)),
            lambda model: (
                distance_of_normals((model.mean_ - 3) / math.sqrt(2), np.sqrt(model.covariance_[0] / 2))[0] > 0.2
            ),
            n,
            8,
        )
        <= MOST_MISSES
    )


def test_proved_numbers_are_those_of_the_theorem() -> None:
    """[GKKMMZ23, Theorem 41] with its constants written out, for a cover of 51 on two symbols at alpha = 0.1."""
    m, epsilon, alpha, beta = 16, 1.0, 0.1, 0.1
    logarithm = math.log(3 * 51 / beta)
    tau = alpha * m / 2 + math.sqrt(m * max(0.5, math.log(20 / (alpha * math.sqrt(m)))) / 2)
    needed = max(40 * tau * logarithm / (epsilon * alpha * m), 800 * logarithm / (alpha**2 * m))
    given: dict[str, Any] = {"m": m, "epsilon": epsilon, "alpha": alpha, "beta": beta}
    assert user_complexity("discrete", method="joint", n_symbols=2, **given).proved.value == math.ceil(needed)
    model = GaussianMean(epsilon=epsilon, mean_bound=10, m=m, alpha=alpha, beta=beta)
    found = user_complexity("gaussian-mean", method="cover", mean_bound=10, **given)
    assert found.proved.value == model.users_needed()
    # Half of 2 n_points / beta is for the draw, the other for sampling at all values of the grid.
    share = user_complexity("quantile", method="weights", n_points=500, neighbors="replace", **given).proved.value
    assert share is not None

    def rank(n: float) -> float:
        return 1.001 * 2 * math.log(1000 / beta) / (epsilon * n) + math.sqrt(math.log(2000 / beta) / (2 * n * m))

    assert rank(share) <= alpha < rank(share - 1)


def test_no_number_is_proved_for_a_quantile_beyond_the_weights_of_its_draw() -> None:
    """Weights end at e**-40 of the largest one."""
    given: dict[str, Any] = {"m": 4, "epsilon": 1, "alpha": 0.1, "n_points": 1000, "method": "weights"}
    assert user_complexity("quantile", beta=1e-13, **given).proved.value is not None
    beyond = user_complexity("quantile", beta=1e-15, **given).proved
    assert beyond.value is None
    assert "beta must be above 8.5e-15" in beyond.reason


@pytest.mark.parametrize("size", [5, 100])
def test_proved_numbers_of_hypotheses_are_those_of_the_class(size: int) -> None:
    """Up to 64 candidates are drawn by permute-and-flip, more by the exponential mechanism."""
    table = [[place / 256, 1 - place / 256] for place in range(size)]
    given: dict[str, Any] = {"epsilon": 1, "m": 16, "alpha": 0.1, "beta": 0.1}
    found = user_complexity("hypothesis-selection", method="scores", n_hypotheses=size, **given)
    assert found.proved.value == HypothesisSelector(candidates=table, **given).users_needed()
    assert found.rate.source.startswith("GKKMMZ23: Theorem 41")
    single = user_complexity("hypothesis-selection", method="one record per person", n_hypotheses=size, **given)
    assert (
        single.n_users
        == user_complexity("hypothesis-selection", method="scores", n_hypotheses=size, **given | {"m": 1}).n_users
    )


def test_laws_on_a_line_are_those_of_the_exponential_mechanism() -> None:
    """A total without sampling errors: places are as likely as integer scores make them."""
    line = Line(np.array([1.5, 0.5, -1.0]), np.zeros(3), 2.0)
    n, uniform = 4, (np.arange(20_000) + 0.5) / 20_000
    cells = line.median_cell(n, 0.8, np.zeros(len(uniform)), uniform)
    # Cell 0 has the total at its right end, 6; cells 1 and 2 the larger of 2, -6 and of -4, -2; cell 3 4 from below.
    exact = ExponentialMechanism(epsilon=0.8, sensitivity=2).pmf(np.array([6, 2, -2, 4])).probabilities
    assert np.bincount(cells.astype(int), minlength=4) / len(uniform) == pytest.approx(exact, abs=1e-4)
    points = line.nearest_point(n, 0.8, np.zeros(len(uniform)), uniform)
    nearest = ExponentialMechanism(epsilon=0.8, sensitivity=2).pmf(np.array([6, 2, 4])).probabilities
    assert np.bincount(points.astype(int), minlength=3) / len(uniform) == pytest.approx(nearest, abs=1e-4)


def test_distances() -> None:
    shifts = np.array([0.0, 0.5, 2.0])
    expected = [math.erf(shift / math.sqrt(8)) for shift in shifts]
    assert distance_of_normals(shifts, np.ones(3)) == pytest.approx(expected, abs=2e-3)
    # Where the densities of standard deviations 1 and 2 cross, |x| is c = sqrt(8 ln(2) / 3).
    cross = math.sqrt(8 * math.log(2) / 3)
    wider = math.erf(cross / math.sqrt(2)) - math.erf(cross / math.sqrt(8))
    assert distance_of_normals(np.zeros(1), np.full(1, 2.0))[0] == pytest.approx(wider, abs=2e-3)
    projected = nearest_distributions(np.array([[0.5, 0.7, -0.2], [0.2, 0.3, 0.5], [3.0, 0.0, 0.0]]))
    assert projected == pytest.approx(np.array([[0.4, 0.6, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_quantiles_are_simulated_by_the_law_that_tables_draw_from(neighbors: Any) -> None:
    """By the exact distribution of the shipped mechanism on the shipped costs."""
    from benches.reproduce.simulations.quantiles import Quantile

    point = {
        "m": 2, "epsilon": 0.5, "delta": 0, "alpha": 0.1, "beta": 0.1, "n_points": 16, "share": 0.3,
        "neighbors": neighbors,
    }  # fmt: skip
    n, rng = 12, np.random.default_rng(4)
    found = Quantile("weights").losses(point, n, 1, np.random.default_rng(4))[0]
    weights = rng.multinomial(2 * n, np.full(16, 1 / 16), size=1)[0] * (WEIGHT // 2)
    share = Fraction(3, 10)
    level = levels_of([share])[0]
    unit = unit_of(level)
    costs = costs_of(weights.astype(np.int64), n * WEIGHT, share, unit)
    chances = ExponentialMechanism(epsilon="0.5", sensitivity=sensitivity_of(level, neighbors)).pmf(costs).probabilities
    ends = np.arange(17) / 16
    bad = np.maximum(ends[:-1] - 0.3, 0.3 - ends[1:]) > 0.1
    assert float(found) == pytest.approx(float(chances[bad].sum()), rel=1e-6)


@pytest.mark.parametrize(
    "task", ["discrete", "product", "gaussian-mean", "gaussian", "quantile", "hypothesis-selection"]
)
def test_every_way_is_a_row_and_says_why_it_has_no_number(task: str) -> None:
    given: dict[str, Any] = {
        "discrete": {"n_symbols": 3},
        "product": {"n_symbols": 2, "n_columns": 2},
        "gaussian-mean": {"mean_bound": 5},
        "gaussian": {"mean_bound": 5},
        "quantile": {"n_points": 100},
        "hypothesis-selection": {"n_hypotheses": 9},
    }[task]
    table = compare_methods(task, m=4, epsilon=1, alpha=0.2, **given)
    rows = {row.method: row for row in table.rows}
    assert set(USUAL) <= set(rows)
    assert all(row.users is not None or row.note.startswith("not planned: ") for row in rows.values())
    assert rows[table.best].users is not None


@pytest.mark.parametrize(
    ("task", "change", "kind", "message"),
    [
        ("discrete", {}, TypeError, "n_symbols is needed"),
        ("discrete", {"n_symbols": 1}, ValueError, "n_symbols must be at least 2"),
        ("discrete", {"n_symbols": 3, "alpha": 1}, ValueError, "alpha must be below 1"),
        ("gaussian-mean", {"mean_bound": 0}, ValueError, "mean_bound must be > 0"),
        ("gaussian-mean", {"mean_bound": math.inf}, ValueError, "mean_bound"),
        ("gaussian", {"mean_bound": 1, "kappa": 0.5}, ValueError, "kappa must be"),
        ("quantile", {"n_points": 1}, ValueError, "n_points must be at least 2"),
        ("quantile", {"n_points": 9, "share": 0}, ValueError, "share must be"),
        ("quantile", {"n_points": 9, "share": "half"}, ValueError, "share"),
        ("quantile", {"n_points": 9, "neighbors": "swap"}, ValueError, "neighbors must be one of"),
        ("quantile", {"n_points": 9, "delta": 1}, ValueError, "delta must be below 1"),
    ],
)
def test_bad_input(task: str, change: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        compare_methods(task, **({"m": 4, "epsilon": 1, "alpha": 0.2} | change))
