"""Private second moments of users' rows, in units that are found first, and linear regression by them.

What is drawn, in this order: centers of all columns in a few rounds, a scale for each column, a radius that few users'
second moments exceed, and the second moments, summed over users, with noise. All else is arithmetic on these integers
and on public numbers. Sensitivities and the account: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.accounting import PrivacyCost, largest_rho
from userdp.estimators.plan import Budget
from userdp.exact.epsilon import planned_epsilon, positive_epsilon
from userdp.exact.numbers import Epsilon, counted
from userdp.means.problem import NOISE_DISTANCE
from userdp.mechanisms import DiscreteGaussian, ExponentialMechanism
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import JointRows

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

GRID_RESOLUTION = 2**28
"""Steps of a grid in the length that is clipped to, about."""
CENTER_ROUNDS = 4
"""Centers are found in so many rounds, each about the last and as wide as its noise."""
CENTER_WIDTH = 4.0
"""Half the width of a round in standard deviations of the noise of the round before."""
WITHIN_SCALE = Fraction(85, 100)
"""Share of the users whose rows are, in root mean square, within the scale of a column."""
WITHIN_RADIUS = Fraction(9, 10)
"""Share of the users whose second moments are not clipped."""
SHARES = {"centers": Fraction(5, 100), "scales": Fraction(10, 100), "radius": Fraction(2, 100)}
"""Of rho."""
WIDEST = 4.0
"""Where numbers in units are clamped, as in the core."""
COST = 8.0
"""Of a larger scale, over the epsilon of its search: one of many columns with a scale far too large would be lost."""
MOST_COST = 0.8
"""Of all candidates of a search together, in users over n."""
ENOUGH = 120
"""Users times the epsilon of a search below which scales are not found."""
LARGEST_EPSILON = Fraction(80)
"""Of one search: more is never needed."""


@dataclass(frozen=True)
class MomentProblem:
    """The public numbers of second moments of users' rows: equal problems have equal plans."""

    n_users: int
    n_features: int
    with_targets: bool  # whether targets are a column
    fit_intercept: bool  # whether rows have a last entry 1, and columns centers
    norm: str  # "max" or "l2": features are in the cube or the ball of radius 1
    epsilon: Epsilon
    delta: Fraction
    regularization: float = 0.0  # lambda of lambda |theta|^2 / 2, features in units of their public bounds
    grid_resolution: int = GRID_RESOLUTION
    scale_steps: int = 33
    radius_steps: int = 41

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", planned_epsilon(self.epsilon))

    @property
    def columns(self) -> int:
        """Features, and targets where they are a column."""
        return self.n_features + self.with_targets

    @property
    def dimension(self) -> int:
        """D: columns and the constant."""
        return self.columns + self.fit_intercept

    @property
    def noisy_integers(self) -> int:
        """How many integers get Gaussian noise, at most, before descents."""
        return CENTER_ROUNDS * self.columns + self.dimension * (self.dimension + 1) // 2

    def rho(self, more_integers: int = 0) -> tuple[Fraction, Fraction]:
        """The most that may be spent, and the distance of all noise from ideal noise, which is paid."""
        if not self.delta:
            raise ValueError("delta must be > 0 for solvers with Gaussian noise; got 0")
        distance = (self.noisy_integers + more_integers) * NOISE_DISTANCE
        return largest_rho(positive_epsilon(self.epsilon), self.delta, distance=distance), distance


def search_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon of 40 fraction bits with epsilon^2 / 8 <= rho: searches have bounded range."""
    return min(Fraction(math.isqrt(math.floor(8 * rho * 2**80)), 2**40), LARGEST_EPSILON)


def power_of_two_below(x: float) -> float:
    """The largest power of two that is not above x > 0."""
    return math.ldexp(0.5, math.frexp(x)[1])


def exact_noise(rho: Fraction, sensitivity: int) -> DiscreteGaussian:
    """Noise for integers that move by this L2 sensitivity, within the distance that is accounted for."""
    noise = DiscreteGaussian(rho=rho, sensitivity=sensitivity)
    if noise.distance > NOISE_DISTANCE:
        raise AssertionError("the noise is farther from the ideal than was accounted for")
    return noise


class QuantileSearch:
    """The least of increasing candidates that a share of the users is within, by the exponential mechanism."""

    # Replacing a user moves each count, and so each score, by at most 1. Larger candidates have a public cost, which
    # sums to a part of n at most: with few users a search must not end at the least candidate for its cost alone.

    def __init__(self, n_users: int, candidates: Floats, share: Fraction, epsilon: Fraction, cost: float) -> None:
        self.candidates = candidates
        self.epsilon = float(epsilon)
        self.needed = math.ceil(share * n_users)
        step = min(cost / self.epsilon, MOST_COST * n_users / len(candidates))
        self.costs: Integers = np.array([round(step * place) for place in range(len(candidates))], dtype=np.int64)
        self.choice = ExponentialMechanism(epsilon=epsilon, sensitivity=1)

    def drawn(self, counts: Integers, draw: Sampler) -> int:
        """The place of a candidate, for the numbers of users within each."""
        index: int = draw(self.choice, np.maximum(self.needed - counts, 0) + self.costs)
        return index


@dataclass(frozen=True)
class CenterRound:
    """One round of centers: means of users' means, clamped to an interval about the last center."""

    steps: int  # the length of an interval, even
    grid: float
    noise: DiscreteGaussian

    @property
    def half(self) -> float:
        """Half the length of an interval."""
        return self.steps * self.grid / 2


class UnitSearch:
    """Centers and scales of all columns, from a small part of the budget."""

    def __init__(self, problem: MomentProblem, rho: Mapping[str, Fraction]) -> None:
        self.problem = problem
        self.rounds = tuple(self._rounds(rho["centers"])) if problem.fit_intercept else ()
        epsilon = search_epsilon(rho["scales"] / problem.columns)
        # Too few users for all candidates have the largest ones only: coefficients do not grow beyond all bounds.
        enough = min(1.0, problem.n_users * float(epsilon) / ENOUGH)
        self.steps = max(1, round(problem.scale_steps * enough))
        candidates = 2 * np.exp2(-np.arange(self.steps)[::-1] / 2)
        self.scales = QuantileSearch(problem.n_users, candidates, WITHIN_SCALE, epsilon, COST)

    def _rounds(self, rho: Fraction) -> Iterator[CenterRound]:
        problem, half = self.problem, 1.0
        for _ in range(CENTER_ROUNDS):
            grid = power_of_two_below(2 * half / problem.grid_resolution)
            steps = 2 * math.ceil(half / grid)
            # One user moves the sum of each column by `steps` at most.
            noise = exact_noise(rho / CENTER_ROUNDS, math.isqrt(steps**2 * problem.columns - 1) + 1)
            yield CenterRound(steps, grid, noise)
            half = min(half, CENTER_WIDTH * grid * math.sqrt(noise.sigma_squared) / problem.n_users)

    def drawn(self, rows: JointRows, draw: Sampler) -> tuple[Any, ...]:
        """Noisy sums of each round, and a candidate for each column."""
        sums: list[tuple[int, ...]] = []
        means = rows.means()
        for this in self.rounds:
            low = self.center(sums) - this.half
            total = means.winsorized_sum(low, this.steps, this.grid)
            sums.append(draw(this.noise, tuple(total.tolist())))
        levels = np.broadcast_to(self.scales.candidates, (self.problem.columns, self.steps))
        counts = rows.spreads(self.center(sums)).counts_at_most(levels)
        return tuple(sums), tuple(self.scales.drawn(column, draw) for column in counts)

    def center(self, sums: Sequence[tuple[int, ...]]) -> Floats:
        """Where the rounds so far say that the columns are."""
        center = np.zeros(self.problem.columns)
        for this, total in zip(self.rounds, sums, strict=False):
            mean = np.array(total, dtype=np.float64) / self.problem.n_users
            center = np.clip(center - this.half + mean * this.grid, -1.0, 1.0)
        return center

    def units(self, drawn: tuple[Any, ...]) -> tuple[Floats, Floats]:
        """Centers and scales, in units of public bounds."""
        sums, places = drawn
        return self.center(sums), self.scales.candidates[list(places)]

    def outcomes(self) -> Iterator[tuple[Any, ...]]:
        """All that can be drawn."""
        columns = self.problem.columns
        each = [
            product(
                range(-this.noise.support, self.problem.n_users * this.steps + this.noise.support + 1), repeat=columns
            )
            for this in self.rounds
        ]
        return product(product(*each), product(range(self.steps), repeat=columns))

    def n_outcomes(self) -> list[tuple[int, int]]:
        """How many there are, as powers."""
        problem = self.problem
        rounds = [(problem.n_users * this.steps + 2 * this.noise.support + 1, problem.columns) for this in self.rounds]
        return [*rounds, (self.steps, problem.columns)]


@dataclass(frozen=True)
class MomentNoise:
    """The noise of second moments clipped to one radius."""

    steps: int  # R in steps of the grid
    grid: float
    diagonal: DiscreteGaussian
    others: DiscreteGaussian


class SecondMoments:
    """The mean over users of second moments of rows in units, clipped to a radius that is found."""

    def __init__(self, problem: MomentProblem, *, radius: Fraction, moments: Fraction) -> None:
        self.problem = problem
        self.rho = moments
        size = problem.dimension
        candidates = WIDEST**2 * size * np.exp2(-np.arange(problem.radius_steps)[::-1] / 4)
        self.radius = QuantileSearch(problem.n_users, candidates, WITHIN_RADIUS, search_epsilon(radius), 3.0)
        self._rows, self._columns = np.triu_indices(size)
        self._diagonal = self._rows == self._columns

    @lru_cache(maxsize=64)  # noqa: B019  plans are few
    def noise(self, index: int) -> MomentNoise:
        """For one candidate radius."""
        radius = float(self.radius.candidates[index])
        grid = power_of_two_below(radius / self.problem.grid_resolution)
        steps = math.floor(radius / grid)
        # Twice the variance on the diagonal: all entries together then cost rho for |Y - Y'|^2 <= 2 (R + 2D)^2.
        reach = steps + 2 * self.problem.dimension
        return MomentNoise(steps, grid, exact_noise(self.rho / 2, reach), exact_noise(self.rho, reach))

    def drawn(self, rows: JointRows, draw: Sampler) -> tuple[Any, ...]:
        """A candidate radius, and noisy sums: the diagonal, and all above it."""
        constant = self.problem.fit_intercept
        index = self.radius.drawn(rows.norm_counts(self.radius.candidates, constant=constant), draw)
        noise = self.noise(index)
        total = rows.moment_sum(noise.steps, noise.grid, constant=constant)
        diagonal = draw(noise.diagonal, tuple(total[self._diagonal].tolist()))
        others = draw(noise.others, tuple(total[~self._diagonal].tolist())) if self.problem.dimension > 1 else ()
        return index, diagonal, others

    def matrix(self, drawn: tuple[Any, ...]) -> tuple[Floats, float]:
        """The noisy mean of second moments, and the standard deviation of an entry of its diagonal."""
        index, diagonal, others = drawn
        noise, size = self.noise(index), self.problem.dimension
        unit = noise.grid / self.problem.n_users
        upper = np.zeros((size, size))
        upper[self._rows[~self._diagonal], self._columns[~self._diagonal]] = np.array(others, dtype=np.float64)
        moments = (upper + upper.T + np.diag(np.array(diagonal, dtype=np.float64))) * unit
        return moments, unit * math.sqrt(noise.diagonal.sigma_squared)

    def planned_noise(self) -> float:
        """The standard deviation of an entry of the diagonal where R is D / 2, as for rows of unit variance."""
        return self.problem.dimension / 2 / (self.problem.n_users * math.sqrt(self.rho))

    def outcomes(self) -> Iterator[tuple[Any, ...]]:
        """All that can be drawn."""
        size = self.problem.dimension
        for index in range(self.problem.radius_steps):
            noise = self.noise(index)
            total = self.problem.n_users * noise.steps
            low, end = -noise.diagonal.support, total + noise.diagonal.support + 1
            far = total + noise.others.support
            for diagonal in product(range(low, end), repeat=size):
                for others in product(range(-far, far + 1), repeat=size * (size - 1) // 2):
                    yield index, diagonal, others

    def n_outcomes(self) -> int:
        """How many there are."""
        size, sizes = self.problem.dimension, 0
        for index in range(self.problem.radius_steps):
            noise = self.noise(index)
            total = self.problem.n_users * noise.steps
            diagonal, others = total + 2 * noise.diagonal.support + 1, 2 * (total + noise.others.support) + 1
            sizes += counted((diagonal, size), (others, size * (size - 1) // 2))
        return sizes


def solved(matrix: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Eigenvalues, those below 0 raised to 0, plus the ridge, and eigenvectors of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0) + ridge, vectors


def users_needed(n_users: int, *ratios: float) -> int:
    """How many users there must be for all of these, which fall as one over their number, to be at most 1."""
    return math.ceil(n_users * max(ratios))


def too_few(problem: MomentProblem, needed: int) -> list[str]:
    """A warning where more users are needed: a function of public numbers."""
    if needed <= problem.n_users:
        return []
    return [
        f"{problem.n_users} users are too few for {problem.n_features} columns at this epsilon and delta: "
        f"noise may hide what is to be learnt; about {needed} users are needed"
    ]


@dataclass(frozen=True)
class LinearFit:
    """A linear regression in units of public bounds, and what is known of it."""

    coefficients: Floats
    intercept: float
    noise_ratio: float

    @property
    def converged(self) -> bool:
        """Whether noise is small beside what is known least of the features."""
        return self.noise_ratio <= 0.5


class MomentRegression:
    """Least squares from private second moments."""

    def __init__(self, problem: MomentProblem) -> None:
        self.problem = problem
        self._rho, self._distance = problem.rho()
        shares = dict(SHARES) if problem.fit_intercept else {**SHARES, "centers": Fraction(0)}
        shares["moments"] = 1 - sum(shares.values(), Fraction(0))
        self.parts = {name: self._rho * share for name, share in shares.items()}
        self.search = UnitSearch(problem, self.parts)
        self.moments = SecondMoments(problem, radius=self.parts["radius"], moments=self.parts["moments"])

    def budget(self) -> Budget:
        """What a fit costs, and on what it is spent."""
        cost = PrivacyCost(
            positive_epsilon(self.problem.epsilon), self.problem.delta, rho=self._rho, distance=self._distance
        )
        return Budget(cost, {name: part for name, part in self.parts.items() if part}, "rho")

    def program(self, rows: JointRows) -> AdaptiveMechanism:
        """What is drawn; the outcome is a transcript of integers."""

        def transcript(draw: Sampler) -> Hashable:
            units = self.search.drawn(rows, draw)
            return units, self.moments.drawn(rows.in_units(*self.search.units(units)), draw)

        return transcript

    def outcomes(self) -> Iterable[Hashable]:
        """All transcripts that are possible."""
        moments = list(self.moments.outcomes())
        return ((units, drawn) for units in self.search.outcomes() for drawn in moments)

    def n_outcomes(self) -> int:
        """The number of possible transcripts."""
        return counted(*self.search.n_outcomes(), (self.moments.n_outcomes(), 1))

    def warnings(self) -> list[str]:
        """That there are too few users, from public numbers."""
        problem = self.problem
        searched = ENOUGH / (self.search.scales.epsilon * problem.n_users)
        noise = self.moments.planned_noise() * math.sqrt(2 * problem.dimension) / 0.15
        return too_few(problem, users_needed(problem.n_users, searched, noise))

    def fit(self, outcome: Any) -> LinearFit:
        """The regression that a transcript stands for."""
        problem = self.problem
        center, scale = self.search.units(outcome[0])
        matrix, sigma = self.moments.matrix(outcome[1])
        target = problem.n_features
        kept = [place for place in range(problem.dimension) if place != target]
        ridge = sigma * math.sqrt(problem.dimension)
        gram = matrix[np.ix_(kept, kept)] + regularizer(problem, scale)
        values, vectors = solved(gram, ridge)
        found = vectors @ ((vectors.T @ matrix[kept, target]) / values)
        coefficients = found[:target] * scale[target] / scale[:target]
        intercept = 0.0
        if problem.fit_intercept:
            intercept = float(center[target] + scale[target] * found[target] - coefficients @ center[:target])
        return LinearFit(coefficients, intercept, sigma * math.sqrt(2 * problem.dimension) / float(values[0]))


def regularizer(problem: MomentProblem, scale: Floats) -> Floats:
    """The matrix of the public regularizer, for theta in units: features in units of bounds, the constant as it is."""
    strength = problem.regularization / scale[: problem.n_features] ** 2
    return np.diag([*strength, *[problem.regularization] * problem.fit_intercept])


@lru_cache(maxsize=64)
def moment_regression(problem: MomentProblem) -> MomentRegression:
    """The plan of a linear regression."""
    return MomentRegression(problem)
