"""Private second moments of users' rows, in units that are found first: what linear models begin with.

What is drawn, in this order: centers of all columns in a few rounds, a scale for each feature, how much of the rows is
far beyond it, a radius that few users' second moments exceed, and the second moments, summed over users, with noise.
All else is arithmetic on these integers and on public numbers. Sensitivities and the account: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget
from userdp.exact.epsilon import planned_epsilon, positive_epsilon
from userdp.exact.numbers import Epsilon, counted
from userdp.exceptions import BudgetError
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount, gaussian_account
from userdp.means.range_search import power_of_two_below
from userdp.mechanisms import DiscreteGaussian, ExponentialMechanism
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.vectors import SHARE_STEPS

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
MOST_CUT = 0.1
"""The share of the users who may be beyond what a search for a length finds, at most."""
WORTH = 0.5
"""Beyond the radius may be so many users of those whom the noise of second moments, clipped to it, is worth."""
SHARES = {
    "centers": Fraction(5, 100),
    "scales": Fraction(8, 100),
    "reaches": Fraction(12, 100),
    "radius": Fraction(2, 100),
}
"""Of the account."""
WIDEST = 4.0
"""The largest feature of a row in units, as in the core: rows with larger ones are shrunk."""
FARTHEST = 2.0
"""Within their bounds no two numbers are farther apart, in units of half the range."""
FEW = 0.01
"""Share of the rows that may be beyond the reach of a column."""
NOISY_FEW = 2.0
"""And so many standard deviations of its noisy sum over users, where that is more."""
MILD = 4
"""Slopes are doubtful only where a reach is narrower than the bounds by so many powers of two at least."""
LEAST_DOUBT = 1 / 160
"""Share of the rows that is never told from none, beyond such a reach: what varies less than 1/10 may be these."""
MORE = 2.0
"""Noisy sums of shares count for so many times what they surely are: rows that count at 4 may be 5 from all others."""
NARROW = 4
"""A deviation of the mean of noisy sums counts once for so many powers of two."""
UNSURE = 1.0
"""Of these more, where a reach was raised: it ends where sums happened to be small."""
RARE, RARE_DISTANCES = 0.04, 8
"""A warning says when rare rows, of this share, are not found among so many distances."""
MISTAKEN = 0.05
"""How likely a fit warns of rows beyond a reach where there are none."""
COST = 8.0
"""Of a larger scale, over the epsilon of its search: one of many columns with a scale far too large would be lost."""
MOST_COST = 0.8
"""Of all candidates of a search together, in users over n."""
ENOUGH = 120
"""Users times the epsilon of a search below which scales are not found."""
MOST_COLUMNS = 2**12 - 1
"""Of second moments, which are as many as half of its square; targets are one more."""


@dataclass(frozen=True)
class MomentProblem:
    """The public numbers of second moments of users' rows: equal problems have equal plans."""

    n_users: int
    n_features: int
    with_targets: bool  # whether targets have a center
    fit_intercept: bool  # whether rows have a last entry 1, and columns centers
    norm: str  # "max" or "l2": features are in the cube or the ball of radius 1
    epsilon: Epsilon
    delta: Fraction
    regularization: float = 0.0  # lambda of lambda |theta|^2 / 2, features in units of their public bounds
    grid_resolution: int = GRID_RESOLUTION
    scale_steps: int = 43
    radius_steps: int = 41
    length_steps: int = 97
    in_rho: bool = False  # whether noise is to be accounted for in zero-concentration, as a ledger asks that counts rho

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", planned_epsilon(self.epsilon))
        if self.dimension > MOST_COLUMNS:
            raise BudgetError(
                f"X has {self.n_features} columns, and second moments of more than {MOST_COLUMNS}, targets and the "
                "constant included, do not fit in memory: take fewer columns, or solver='clipped'"
            )

    @property
    def columns(self) -> int:
        """What has a center: features, and targets where there are any."""
        return self.n_features + self.with_targets

    @property
    def dimension(self) -> int:
        """D: features and the constant."""
        return self.n_features + self.fit_intercept

    @property
    def noisy_integers(self) -> int:
        """How many integers get Gaussian noise, at most, before descents."""
        reaches = self.n_features * (self.scale_steps // 2)
        joint, more = self.dimension + self.with_targets, self.with_targets * (self.dimension + 2)  # products and looks
        return CENTER_ROUNDS * self.columns + reaches + joint * (joint + 1) // 2 + more

    def account(self, more_integers: int = 0) -> tuple[GaussianAccount, Fraction]:
        """What may be spent, and the distance of all noise from ideal noise, which is paid."""
        if not self.delta:
            raise ValueError("delta must be > 0 for solvers with Gaussian noise; got 0")
        integers = self.noisy_integers + more_integers
        least = min(self.grid_resolution, SHARE_STEPS)
        account = gaussian_account(
            positive_epsilon(self.epsilon), self.delta, integers, sensitivity=least, in_rho=self.in_rho
        )
        return account, integers * NOISE_DISTANCE

    def shares(self, moments: Fraction, **more: Fraction) -> dict[str, Fraction]:
        """Shares of the account: of units, of moments that get this share of the rest, and more."""
        shares = dict(SHARES) if self.fit_intercept else {**SHARES, "centers": Fraction(0)}
        return shares | {"moments": moments * (1 - sum(shares.values(), Fraction(0)))} | more


class QuantileSearch:
    """The least of increasing candidates that enough users are within, by the exponential mechanism."""

    # A user is within all candidates from some point on, or within all without rows. So replacing a user moves all
    # counts one way, by at most 1, and all scores: their oscillation is at most 1, and the choice, with weights
    # e^(-epsilon score), has epsilon-bounded range. Larger candidates have a public cost, which sums to a part of n at
    # most: with few users a search must not end at the least candidate for its cost alone.

    # Shares of rows within candidates do not all move one way, but in an interval as wide as the share of all rows,
    # which is enough: docs/proofs/whitened_descent.md.

    def __init__(
        self,
        n_users: int,
        candidates: Floats,
        needed: int,
        epsilon: Fraction,
        cost: float,
        per_user: int = 1,  # what a user adds to a count at most
    ) -> None:
        self.candidates = candidates
        self.epsilon = float(epsilon)
        self.needed = per_user * needed
        step = per_user * min(cost / self.epsilon, MOST_COST * n_users / len(candidates))
        self.costs: Integers = np.array([round(step * place) for place in range(len(candidates))], dtype=np.int64)
        self.choice = ExponentialMechanism(epsilon=epsilon, sensitivity=per_user, monotone=True)

    def drawn(self, counts: Integers, draw: Sampler) -> int:
        """The place of a candidate, for the numbers of users within each, those without rows included."""
        return draw(self.choice, np.maximum(self.needed - counts, 0) + self.costs)


def needed_users(n_users: int, cut: float) -> int:
    """How many users must be within a length, where so many may be beyond; at most a tenth of them are."""
    return math.ceil(n_users - min(cut, MOST_CUT * n_users))


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


@dataclass(frozen=True)
class Reaches:
    """Distances from the center of a column for one scale, and the noise of how much is beyond each."""

    distances: tuple[float, ...]  # rising from that of the scale, all below 2: nothing is farther
    noise: DiscreteGaussian | None  # of the sums over users of shares of rows; None where there is no distance
    few: float  # the noisy sum that counts as nothing
    least: float  # the sum that is never told from nothing

    def place(self, beyond: Sequence[int]) -> int:
        """Where the least distance is that little is beyond, by noisy sums."""
        # True sums fall with distance. Where they cross is where the total of what is above is largest: the noise of
        # one sum moves that by a step, mostly.
        return int(np.argmax(np.cumsum([0.0, *(total - self.few for total in beyond)])))

    def distance(self, beyond: Sequence[int]) -> float:
        """That distance; 2 where there is none."""
        return (*self.distances, FARTHEST)[self.place(beyond)]

    def doubt(self, beyond: Sequence[int]) -> float:
        """What shares beyond that distance may sum to: the mean of noisy sums and more, and some deviations of it."""
        place = self.place(beyond)
        rest = beyond[place:]
        if self.noise is None or len(rest) <= MILD:
            return 0.0
        # The narrower the reach the more: a slope may be too large by as much as it is narrower than the bounds.
        deviation = math.sqrt(self.noise.sigma_squared / len(rest))
        deviations = (len(rest) - 1) / NARROW + (UNSURE if place else 0.0)
        return max(self.least, MORE * max(0.0, float(np.mean(rest)) - deviation) + deviations * deviation)


class UnitSearch:
    """Centers and scales of all columns, from a small part of the budget."""

    # Scales are those of most users. A column that is nearly always the same, such as a mark of few rows, has a tiny
    # one, and what is rare would be clamped to next to nothing: coefficients would be hundreds of times too large. So
    # rows beyond the reach of the scale, which is where they are clamped, are counted with noise, and the scale is
    # raised until they are few.

    def __init__(self, problem: MomentProblem, parts: Mapping[str, GaussianAccount]) -> None:
        self.problem = problem
        self.rounds = tuple(self._rounds(parts["centers"])) if problem.fit_intercept else ()
        each = Fraction(1, problem.n_features)
        epsilon = parts["scales"].part(each).search_epsilon()
        # Too few users for all candidates have the largest ones only: coefficients do not grow beyond all bounds.
        enough = min(1.0, problem.n_users * float(epsilon) / ENOUGH)
        self.steps = max(1, round(problem.scale_steps * enough))
        candidates = 2 * np.exp2(-np.arange(self.steps)[::-1] / 2)
        needed = math.ceil(WITHIN_SCALE * problem.n_users)
        self.scales = QuantileSearch(problem.n_users, candidates, needed, epsilon, COST)
        self._part = parts["reaches"].part(each)
        self.reaches = tuple(self._reaches(WIDEST * float(scale)) for scale in candidates)

    def ratios(self) -> tuple[float, float]:
        """By how much there are too few users for scales, and for rare rows to be found."""
        noise = math.sqrt(RARE_DISTANCES / (2 * self._part.rho))
        return ENOUGH / (self.scales.epsilon * self.problem.n_users), noise / (RARE * self.problem.n_users)

    def _reaches(self, least: float) -> Reaches:
        """From the reach of a scale on, by powers of two."""
        if least >= FARTHEST:
            return Reaches((), None, 0.0, 0.0)
        powers = [math.ldexp(FARTHEST, -k) for k in range(math.ceil(math.log2(FARTHEST / least)) - 1, 0, -1)]
        distances = (least, *(power for power in powers if power > least))
        # One user moves each of the sums by the whole of that user's share at most.
        noise = self._noise_of(len(distances))
        few = max(FEW * SHARE_STEPS * self.problem.n_users, NOISY_FEW * math.sqrt(noise.sigma_squared))
        return Reaches(distances, noise, few, LEAST_DOUBT * SHARE_STEPS * self.problem.n_users)

    @lru_cache(maxsize=64)  # noqa: B019  plans are few
    def _noise_of(self, length: int) -> DiscreteGaussian:
        return self._part.noise(math.isqrt(SHARE_STEPS**2 * length - 1) + 1)

    def _rounds(self, part: GaussianAccount) -> Iterator[CenterRound]:
        problem, half = self.problem, 1.0
        for _ in range(CENTER_ROUNDS):
            grid = power_of_two_below(2 * half / problem.grid_resolution)
            steps = 2 * math.ceil(half / grid)
            # One user moves the sum of each column by `steps` at most.
            noise = part.part(Fraction(1, CENTER_ROUNDS)).noise(math.isqrt(steps**2 * problem.columns - 1) + 1)
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
        size = self.problem.n_features
        levels = np.broadcast_to(self.scales.candidates, (size, self.steps))
        center = self.center(sums)[:size]
        # Users without rows are within all scales.
        counts = rows.spreads(center).filled().counts_at_most(levels)
        places = tuple(self.scales.drawn(column, draw) for column in counts)
        beyond: list[tuple[int, ...]] = []
        for column, reaches in enumerate(self.reaches[place] for place in places):
            if reaches.noise is None:
                beyond.append(())
            else:
                total = rows.shares_beyond(column, float(center[column]), reaches.distances)
                beyond.append(draw(reaches.noise, tuple(total.tolist())))
        return tuple(sums), places, tuple(beyond)

    def center(self, sums: Sequence[tuple[int, ...]]) -> Floats:
        """Where the rounds so far say that the columns are."""
        center = np.zeros(self.problem.columns)
        for this, total in zip(self.rounds, sums, strict=False):
            mean = np.array(total, dtype=np.float64) / self.problem.n_users
            center = np.clip(center - this.half + mean * this.grid, -1.0, 1.0)
        return center

    def units(self, drawn: tuple[Any, ...]) -> tuple[Floats, Floats]:
        """Centers of all columns, and scales of features, in units of public bounds."""
        centers, places, beyond = drawn
        scales = self.scales.candidates[list(places)]
        reached = [self.reaches[place].distance(sums) / WIDEST for place, sums in zip(places, beyond, strict=True)]
        return self.center(centers), np.maximum(scales, reached)

    def in_units(self, drawn: tuple[Any, ...], rows: JointRows) -> JointRows:
        """Rows in the units that were found: the constant behind features, and targets from their center."""
        center, scale = self.units(drawn)
        target = float(center[-1]) if self.problem.with_targets else 0.0
        return rows.in_units(
            center[: self.problem.n_features], scale, constant=self.problem.fit_intercept, target=target
        )

    def means(self, matrix: Floats) -> Floats:
        """The means of features in units, by noisy second moments: users without rows and shrunk rows count less."""
        size = self.problem.n_features
        if not self.problem.fit_intercept:
            return np.zeros(size)
        whole = max(float(matrix[-1, -1]), 1 / WIDEST**2)
        return np.clip(matrix[:size, -1] / whole, -WIDEST, WIDEST)

    def unsure(self, drawn: tuple[Any, ...], matrix: Floats) -> npt.NDArray[np.bool_]:
        """Features that vary, by their noisy second moments, by no more than rows beyond their reach would make them.

        They may be the same in all other rows.
        """
        _, places, beyond = drawn
        size = self.problem.n_features
        doubts = [self.reaches[place].doubt(sums) for place, sums in zip(places, beyond, strict=True)]
        by_few = WIDEST**2 * np.array(doubts) / (SHARE_STEPS * self.problem.n_users)
        means = self.means(matrix)
        return np.diag(matrix)[:size] - means**2 * matrix[-1, -1] < by_few

    def line(self, drawn: tuple[Any, ...], matrix: Floats, slopes: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for features in units of public bounds, of those in units that were found.

        Rows beyond the reach of an unsure feature may be as far off as the bounds are, and noise is then divided by
        next to nothing. Its slope is as if they were there.
        """
        center, scale = self.units(drawn)
        size = self.problem.n_features
        center, unsure = center[:size], self.unsure(drawn, matrix)
        coefficients = slopes[:size] / np.where(unsure, np.maximum(scale, (1 + np.abs(center)) / WIDEST), scale)
        if not self.problem.fit_intercept:
            return coefficients, 0.0
        # The line through the mean, by which nothing changes where nothing is unsure.
        means = self.means(matrix)
        return coefficients, float(slopes[size] + slopes[:size] @ means - coefficients @ (center + scale * means))

    def shares_missed(self, drawn: tuple[Any, ...]) -> Floats:
        """The share of rows beyond the reach of each feature, by the mean of its noisy sums; 0 where that is noise.

        With a probability of about .95 all are 0 where no row is beyond.
        """
        _, places, beyond = drawn
        whole, sure = SHARE_STEPS * self.problem.n_users, NormalDist().inv_cdf(1 - MISTAKEN / self.problem.n_features)
        shares = np.zeros(self.problem.n_features)
        for column, (reaches, sums) in enumerate(zip((self.reaches[place] for place in places), beyond, strict=True)):
            rest = sums[reaches.place(sums) :]
            if reaches.noise is not None and rest:
                mean = float(np.mean(rest))
                deviation = math.sqrt(reaches.noise.sigma_squared / len(rest))
                shares[column] = mean / whole if mean > sure * deviation else 0.0
        return shares

    def notes(self, drawn: tuple[Any, ...], unsure: npt.NDArray[np.bool_]) -> Iterator[str]:
        """What is to be said of features of which few rows are far from all others."""
        missed = self.shares_missed(drawn)
        for column in np.flatnonzero((missed > FEW) | unsure):
            about = f"about {missed[column]:.1%} of the rows" if missed[column] > FEW else "too few rows to be counted"
            yield (
                f"column {column} of X is far from where most of it is in {about}, which count less: its coefficient "
                "may be too small or noise; tighter bounds, or leaving it out, help"
            )

    def outcomes(self) -> Iterator[tuple[Any, ...]]:
        """All that can be drawn."""
        each = [
            product(
                range(-this.noise.support, self.problem.n_users * this.steps + this.noise.support + 1),
                repeat=self.problem.columns,
            )
            for this in self.rounds
        ]
        for sums in product(*each):
            for places in product(range(self.steps), repeat=self.problem.n_features):
                shares = [self._shares(self.reaches[place]) for place in places]
                for beyond in product(*(product(values, repeat=length) for values, length in shares)):
                    yield sums, places, beyond

    def _shares(self, reaches: Reaches) -> tuple[range, int]:
        """What a noisy sum of shares can be, and how many sums there are."""
        if reaches.noise is None:
            return range(0), 0
        most = SHARE_STEPS * self.problem.n_users + reaches.noise.support
        return range(-reaches.noise.support, most + 1), len(reaches.distances)

    def n_outcomes(self) -> list[tuple[int, int]]:
        """How many there are, as powers."""
        problem = self.problem
        rounds = [(problem.n_users * this.steps + 2 * this.noise.support + 1, problem.columns) for this in self.rounds]
        of_a_column = sum(counted((len(values), length)) for values, length in map(self._shares, self.reaches))
        return [*rounds, (of_a_column, problem.n_features)]


@dataclass(frozen=True)
class MatrixRelease:
    """Noisy sums of users' symmetric matrices, each clipped to one radius in Frobenius norm."""

    # Twice the variance on the diagonal: all entries together then cost the part for |Y - Y'|^2 <= 2 reach^2.

    n_users: int
    size: int
    steps: int  # the radius in steps of the grid
    grid: float
    reach: int  # the steps and what rounding adds
    part: GaussianAccount

    @classmethod
    def of(cls, problem: MomentProblem, size: int, radius: float, part: GaussianAccount) -> MatrixRelease:
        """Of a released radius."""
        grid = power_of_two_below(radius / problem.grid_resolution)
        steps = math.floor(radius / grid)
        # Matrices with a target behind features are put together from two parts, whose sum is rounded.
        return cls(problem.n_users, size, steps, grid, steps + 2 * size + (size > problem.dimension), part)

    @property
    def diagonal(self) -> DiscreteGaussian:
        """The noise of entries of the diagonal."""
        return self.part.part(Fraction(1, 2)).noise(self.reach)

    @property
    def others(self) -> DiscreteGaussian:
        """The noise of entries above it."""
        return self.part.noise(self.reach)

    @property
    def sigma(self) -> float:
        """The standard deviation of an entry of the diagonal of the mean; others have this over sqrt(2)."""
        return self.grid / self.n_users * math.sqrt(self.diagonal.sigma_squared)

    def drawn(self, triangle: Integers, draw: Sampler) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Noisy sums of an upper triangle: the diagonal, and all above it."""
        rows, columns = np.triu_indices(self.size)
        diagonal = draw(self.diagonal, tuple(triangle[rows == columns].tolist()))
        others = draw(self.others, tuple(triangle[rows != columns].tolist())) if self.size > 1 else ()
        return diagonal, others

    def matrix(self, drawn: tuple[tuple[int, ...], tuple[int, ...]]) -> Floats:
        """The noisy mean."""
        upper = np.zeros((self.size, self.size))
        upper[np.triu_indices(self.size, 1)] = np.array(drawn[1], dtype=np.float64)
        return (upper + upper.T + np.diag(np.array(drawn[0], dtype=np.float64))) * (self.grid / self.n_users)

    def outcomes(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """All that can be drawn."""
        diagonal, others = self._ranges()
        for entries in product(diagonal, repeat=self.size):
            for beside in product(others, repeat=self.size * (self.size - 1) // 2):
                yield entries, beside

    def n_outcomes(self) -> int:
        """How many there are."""
        diagonal, others = self._ranges()
        return counted((len(diagonal), self.size), (len(others), self.size * (self.size - 1) // 2))

    def _ranges(self) -> tuple[range, range]:
        total, diagonal, far = self.n_users * self.steps, self.diagonal.support, self.others.support
        return range(-diagonal, total + diagonal + 1), range(-total - far, total + far + 1)


class SecondMoments:
    """The mean over users of second moments of features in units, clipped to a radius that is found."""

    def __init__(self, problem: MomentProblem, *, radius: GaussianAccount, moments: GaussianAccount) -> None:
        self.problem = problem
        self.part = moments
        size = problem.dimension
        candidates = WIDEST**2 * size * np.exp2(-np.arange(problem.radius_steps)[::-1] / 4)
        # As many users count less, by their features alone, as the noise for all of them would be worth.
        cut = WORTH * size / (moments.mu / math.sqrt(2))
        needed = needed_users(problem.n_users, cut)
        self.radius = QuantileSearch(problem.n_users, candidates, needed, radius.search_epsilon(), 3.0)

    def release(self, index: int) -> MatrixRelease:
        """For one candidate radius."""
        return MatrixRelease.of(self.problem, self.problem.dimension, float(self.radius.candidates[index]), self.part)

    def drawn(self, rows: JointRows, draw: Sampler) -> tuple[Any, ...]:
        """A candidate radius, and noisy sums: the diagonal, and all above it."""
        index = self.radius.drawn(rows.norm_counts(self.radius.candidates), draw)
        release = self.release(index)
        return index, *release.drawn(rows.moment_sum(release.steps, release.grid), draw)

    def matrix(self, drawn: tuple[Any, ...]) -> tuple[Floats, float]:
        """The noisy mean of second moments, and the standard deviation of an entry of its diagonal."""
        release = self.release(drawn[0])
        return release.matrix(drawn[1:]), release.sigma

    def planned_noise(self) -> float:
        """The standard deviation of an entry of the diagonal where R is D / 2, as for rows of unit variance."""
        return self.problem.dimension / 2 / (self.problem.n_users * math.sqrt(self.part.rho))

    def outcomes(self) -> Iterator[tuple[Any, ...]]:
        """All that can be drawn."""
        for index in range(self.problem.radius_steps):
            yield from ((index, *sums) for sums in self.release(index).outcomes())

    def n_outcomes(self) -> int:
        """How many there are."""
        return sum(self.release(index).n_outcomes() for index in range(self.problem.radius_steps))


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


def regularizer(problem: MomentProblem, scale: Floats) -> Floats:
    """The matrix of the public regularizer, for theta in units: features in units of bounds, the constant as it is."""
    strength = problem.regularization / scale[: problem.n_features] ** 2
    return np.diag([*strength, *[problem.regularization] * problem.fit_intercept])


class MomentFit(Protocol):
    """A linear model in units of public bounds, and what is known of it."""

    @property
    def coefficients(self) -> Floats:
        """One for each column."""

    @property
    def intercept(self) -> float:
        """0 where there is none."""

    @property
    def noise_ratio(self) -> float:
        """Noise of the second moments over their least eigenvalue."""

    @property
    def converged(self) -> bool:
        """Whether noise is small beside what was to be found."""


class MomentSolver(ABC):
    """A plan that starts from private second moments, made before there are data."""

    problem: MomentProblem
    account: GaussianAccount
    shares: Mapping[str, Fraction]
    """Of the account, for each part."""
    _distance: Fraction

    def budget(self) -> Budget:
        """What a fit costs, and on what it is spent; looks are part of what is left for the end."""
        problem = self.problem
        return self.account.budget(self.shares, self._distance, positive_epsilon(problem.epsilon), problem.delta)

    @abstractmethod
    def program(self, rows: JointRows) -> AdaptiveMechanism:
        """What is drawn; the outcome is a transcript of integers."""

    @abstractmethod
    def outcomes(self) -> Iterable[Hashable]:
        """All transcripts that are possible."""

    @abstractmethod
    def n_outcomes(self) -> int:
        """The number of possible transcripts, or some number above what can be listed."""

    @abstractmethod
    def warnings(self) -> list[str]:
        """That there are too few users, from public numbers."""

    @abstractmethod
    def fit(self, outcome: Any) -> MomentFit:
        """The regression that a transcript stands for."""
