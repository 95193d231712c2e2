"""How likely methods fail on the data that calibrated numbers are for, and the numbers of users that follow.

First what all tasks share, then selections on a line, and then the selection of an item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.epsilon import positive_epsilon
from userdp.exceptions import BudgetError
from userdp.learners.tolerance import LEFT_OVER, T_SHARE
from userdp.mechanisms import ApproximatePrivateMode
from userdp.mechanisms.mode import binomial_window
from userdp.planning.problem import BASELINES, MOST_USERS, Method, NotPlanned, NotSimulated, Problem, Terms
from userdp.planning.rates import rate
from userdp.protocols import local, shuffle

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]

FLIPPED = 64
"""Up to so many candidates learners draw by permute-and-flip, see `userdp.estimators.selection`."""


def misses(
    scores: npt.ArrayLike, rate: float, bad: Bits, *, log_sizes: Floats | None = None, flips: bool = False
) -> Floats:
    """The probability that a bad candidate is drawn, for scores with the shape (..., candidates), lower ones better.

    A score that is larger by s is less likely by exp(-rate s): rate is epsilon / (2 sensitivity). A candidate may stand
    for many with the same score.
    """
    gaps = np.asarray(scores, dtype=np.float64)
    logarithms = -rate * (gaps - gaps.min(axis=-1, keepdims=True))
    if not flips:
        if log_sizes is not None:
            logarithms = logarithms + log_sizes
            logarithms -= logarithms.max(axis=-1, keepdims=True)
        weights = np.exp(logarithms)
        return (weights * bad).sum(axis=-1) / weights.sum(axis=-1)
    # Permute-and-flip takes one of the successes, each equally likely: an integral over u in [0, 1] of polynomials of a
    # degree below the number of candidates, which Gauss's rule has without error.
    heads, total = np.exp(logarithms), np.zeros(gaps.shape[:-1])
    for node, weight in zip(*_rule(gaps.shape[-1] // 2 + 1), strict=True):
        kept = 1 - heads * (1 - node)
        total += weight * np.exp(np.log(kept).sum(axis=-1)) * (heads / kept * bad).sum(axis=-1)
    return total


@lru_cache(maxsize=256)
def _rule(n: int) -> tuple[list[float], list[float]]:
    """Gauss's nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


@lru_cache(maxsize=4096)
def _log_binomials(n: int) -> Floats:
    steps = np.log(np.arange(1, n + 1))
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    return logarithms[-1] - logarithms - logarithms[::-1]


def binomial(n: int, p: float) -> Floats:
    """The probabilities of 0, ..., n successes."""
    k = np.arange(n + 1)
    if p in (0.0, 1.0):
        return (k == n * p).astype(np.float64)
    return np.exp(_log_binomials(n) + k * math.log(p) + (n - k) * math.log1p(-p))


def users_for(failure: Callable[[int], float], beta: float, largest: int = MOST_USERS) -> float:
    """Where a falling probability of failure comes to beta: a number of users, with decimals."""
    low, high, above, below = 0, 1, 1.0, failure(1)
    while below > beta:
        if high >= largest:
            raise NotPlanned(f"more than {largest} users would be needed; raise alpha or epsilon")
        low, above, high = high, below, min(2 * high, largest)
        below = failure(high)
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        at = failure(middle)
        if at > beta:
            low, above = middle, at
        else:
            high, below = middle, at
    if below <= 0 or above <= below:
        return float(high)
    return low + (high - low) * math.log(above / beta) / math.log(above / below)


def least_enough(enough: Callable[[int], bool], start: int = 1, share: int = 0) -> int:
    """The least number of users that is enough, by doubling and halving; or one that is larger by 1 / share at most."""
    low, high = 1, start
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_USERS:
            raise NotPlanned(f"more than {MOST_USERS} users would be needed; raise alpha or epsilon")
    while high - low > max(1, high // share if share else 1):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def draws_for(candidates: int) -> int:
    """How many draws of sums over users failures are means of, where each has so many candidates for t."""
    return min(max(2**12 // candidates, 2**8), 2**11)


def of_records(users: Callable[[Problem], float]) -> Callable[[Problem], float]:
    """The same when all records are used as if each were of one user, at epsilon / m: group privacy."""

    def grouped(problem: Problem) -> float:
        return users(problem.at(m=1, epsilon=positive_epsilon(problem.rate / problem.m))) / problem.m

    return grouped


def of_one_record(users: Callable[[Problem], float]) -> Callable[[Problem], float]:
    """The same with one record of each user."""
    return lambda problem: users(problem.at(m=1))


def term(users: Callable[[Problem], float]) -> Callable[[Problem], Terms]:
    """A number of users as the one term of a method."""
    return lambda problem: {"users at which reference data fail with probability beta": users(problem)}


def rounded_up(users: Callable[[Problem], float]) -> Callable[[Problem], int]:
    """A proved number as an integer, or why there is none."""

    def proved(problem: Problem) -> int:
        number = users(problem)
        if number > MOST_USERS:
            raise NotPlanned(f"more than {MOST_USERS} users would be needed; raise alpha or epsilon")
        return max(1, math.ceil(number * (1 + 1e-9)))

    return proved


def likely_enough(problem: Problem, candidates: float, epsilon: float) -> None:
    """Whether a third of beta is above what the weights of a private draw can tell, or why there is no number."""
    try:
        from userdp.estimators.selection import check_likely_enough
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    try:
        check_likely_enough(problem.beta, math.ceil(candidates), positive_epsilon(epsilon))
    except (ValueError, OverflowError) as error:
        raise NotPlanned(str(error)) from None


def selection_users(problem: Problem, log_candidates: float, deviations: float) -> float:
    """Users with one record each for which a candidate is chosen within alpha of the best, with probability 1 - beta.

    The errors of all candidates are within deviations sqrt(1 / n) of the truth with probability 1 - beta / 2, and the
    exponential mechanism, on counts of errors, misses the least one by 2 (log_candidates + ln(2 / beta)) / epsilon
    with probability beta / 2 at most. Permute-and-flip is no worse.
    """
    # A third of this beta is for the draw there, and half of it is here.
    likely_enough(problem, math.exp(log_candidates), problem.rate)
    draw = 2 * (log_candidates + math.log(2 / problem.beta)) / problem.rate * 1.001
    root = (2 * deviations + math.sqrt(4 * deviations**2 + 4 * draw * problem.alpha)) / (2 * problem.alpha)
    return root**2


def usual_ways(
    runs: Sequence[str],
    theorem: str,
    users: Callable[[Problem], float],
    of_one: Callable[[Problem], int] | None = None,
    grouped: Callable[[Problem], int] | None = None,
    rests: str = "nothing",
) -> tuple[Method, ...]:
    """The three usual ways of what works by sums over users, for which clipping and groups are one distribution."""
    # A user's mean, as of mistakes, is in a range; at epsilon it says what m records at epsilon / m do.
    found = ((of_one_record(users), of_one), (of_records(users), grouped), (of_records(users), grouped))
    return tuple(
        Method(
            name,
            each,
            rests=lambda problem: rests,
            theorem=theorem,
            proved=proved,
            terms=term(needed),
            baseline=name,
        )
        for name, each, (needed, proved) in zip(BASELINES, runs, found, strict=True)
    )


def rate_row(task: str, row: str | None = None, **given: Callable[[Problem], Any]) -> Callable[[Problem], Terms]:
    """The papers' rate of a task at the numbers of a problem."""

    def terms(problem: Problem) -> Terms:
        values = {name: read(problem) for name, read in given.items()}
        values = {name: value for name, value in values.items() if value is not None}
        common: dict[str, Any] = {"m": problem.m, "epsilon": problem.rate, "alpha": problem.alpha, "beta": problem.beta}
        return rate(task, row=row, **common, **values).terms

    return terms


def draw_of_score(least: Floats, n_users: float, rate: float) -> Floats:
    """Probabilities of the candidates for t, the first axis, in the method "score"."""
    target = math.floor(n_users * LEFT_OVER)
    before = np.concatenate([np.full((1, *least.shape[1:]), n_users), least[:-1]])
    crossing = np.maximum(np.maximum(target - before, least - target), 0)
    chances = np.exp(-float(T_SHARE) * rate / 2 * (crossing - crossing.min(axis=0)))
    return chances / chances.sum(axis=0)


def miss_of_score(
    scores: Floats, n_users: float, rate: float, bad: Bits, *, log_sizes: Floats, flips: bool = False
) -> Floats:
    """The probability of a bad candidate by the method "score", for scores of shape (ts, ..., candidates).

    t is drawn first, for m >= 4, and then a candidate.
    """
    if len(scores) == 1:
        return misses(scores[0], rate / 2, bad, log_sizes=log_sizes, flips=flips)
    chances = draw_of_score(scores.min(axis=-1), n_users, rate)
    last = (1 - float(T_SHARE)) * rate / 2
    return (chances * misses(scores, last, bad, log_sizes=log_sizes, flips=flips)).sum(axis=0)


# --- selections on a line, as `userdp.distributions` makes them: by their law, as if sums were normal

LINE_DRAWS, LINE_SEED = 400, 17
MOST_LINE_RECORDS = 2**10
"""Of a user, of whom each number of examples on a side is looked at."""


def clipping(alpha: float, m: int) -> float:
    """Where a user's sum is clipped by default."""
    try:
        from userdp.learners.clipped_pairwise import clipping_bound
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    return float(clipping_bound(alpha, m, 1))


MOST_CELLS = 2**23
MOST_CANDIDATES = 2**14
"""Of all lines of a problem together, so that a plan takes seconds."""


@dataclass(frozen=True)
class Line:
    """Clipped totals at rising thresholds: mean and standard deviation for one user, falling from plus to minus."""

    means: Floats
    spreads: Floats
    sensitivity: float

    @classmethod
    def of(cls, chances: Floats, targets: Floats, m: int, tau: float) -> Line:
        """Of users' numbers of m examples beyond each threshold, which have a chance, above a target."""
        if m > MOST_LINE_RECORDS:
            raise NotSimulated(f"simulated for m up to {MOST_LINE_RECORDS} only")
        if len(chances) > MOST_CANDIDATES:
            raise NotSimulated(f"simulated for up to {MOST_CANDIDATES} candidates only: take a larger alpha")
        if len(chances) * (m + 1) > MOST_CELLS:
            raise NotSimulated(f"not simulated: {len(chances)} candidates of {m} records are too many to look at here")
        known, place = np.unique(np.round(chances, 9), return_inverse=True)
        rows = np.array([binomial(m, float(each)) for each in known])[place]
        sums = np.clip(np.arange(m + 1)[None, :] - m * targets[:, None], -tau, tau)
        means = (rows * sums).sum(axis=1)
        squares = (rows * (sums - means[:, None]) ** 2).sum(axis=1)
        return cls(means, np.sqrt(squares), min(2 * tau, m))

    def totals(self, n: int, normal: Floats) -> Floats:
        """For n users, as if the errors of sampling were normal and had one sign at all thresholds."""
        return n * self.means + math.sqrt(n) * normal[:, None] * self.spreads

    def median_cell(self, n: int, epsilon: float, normal: Floats, uniform: Floats) -> Floats:
        """The cell between two thresholds, or beyond one end, where the total changes its sign."""
        totals = self.totals(n, normal)
        # A cell is as bad as the total above 0 at its right end, or below 0 at its left one.
        inner = np.maximum(totals[:, 1:], -totals[:, :-1])
        return self._drawn(np.hstack([totals[:, :1], inner, -totals[:, -1:]]), epsilon, uniform)

    def nearest_point(self, n: int, epsilon: float, normal: Floats, uniform: Floats) -> Floats:
        """The threshold itself whose total is nearest to 0; at the ends nothing is known of what is beyond."""
        totals = self.totals(n, normal)
        scores = np.abs(totals)
        scores[:, 0], scores[:, -1] = totals[:, 0], -totals[:, -1]
        return self._drawn(scores, epsilon, uniform)

    def _drawn(self, scores: Floats, epsilon: float, uniform: Floats) -> Floats:
        weights = np.exp(-epsilon / (2 * self.sensitivity) * (scores - scores.min(axis=1, keepdims=True)))
        upto = np.cumsum(weights, axis=1)
        return (upto < uniform[:, None] * upto[:, -1:]).sum(axis=1).astype(np.float64)


@lru_cache(maxsize=8)
def draws(searches: int) -> tuple[Floats, Floats]:
    """Sampling errors and places in the law, of shape (searches, draws)."""
    rng = np.random.default_rng([LINE_SEED, searches])
    return rng.standard_normal((searches, LINE_DRAWS)), rng.random((searches, LINE_DRAWS))


def nearest_distributions(shares: Floats) -> Floats:
    """The nearest probabilities of each row: the same is taken from all entries, and none is left below 0."""
    falling = np.sort(shares, axis=1)[:, ::-1]
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    return np.maximum(shares - excess[np.arange(len(shares)), last][:, None], 0)


GRID = np.linspace(-12, 12, 481)


def distance_of_normals(shifts: Floats, ratios: Floats) -> Floats:
    """Total variation from the standard normal distribution, by the trapezoid rule."""
    others = np.exp(-(((GRID - shifts[:, None]) / ratios[:, None]) ** 2) / 2) / ratios[:, None]
    apart = np.abs(np.exp(-(GRID**2) / 2) - others).sum(axis=1) * ((GRID[1] - GRID[0]) / math.sqrt(8 * math.pi))
    return np.minimum(apart, 1.0)


# --- the selection of an item, when all who do not have the common one share another

MOST_NOISE = 2**13
"""Noise of more values is not written out here."""
MOST_COUNTED = 2**10
"""More reports of a bit are taken to be normal."""
PHI = NormalDist().cdf


def agreement(problem: Problem) -> Fraction:
    """How often a user has the common item, when all others share one other item and the lead is alpha."""
    return (1 + Fraction(problem.alpha)) / 2


def share_of(problem: Problem) -> float:
    """The same as a float."""
    return float(agreement(problem))


def users_of_threshold(problem: Problem) -> float:
    """The same for `ApproximatePrivateMode`, with Laplace noise as wide as its own."""
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    try:
        half = ApproximatePrivateMode(epsilon=problem.epsilon, delta=problem.delta).half_width
    except (ValueError, BudgetError) as error:
        raise NotPlanned(str(error)) from None
    if half > MOST_NOISE:
        raise NotSimulated(f"its noise takes more than {2 * MOST_NOISE} values")
    noise = np.arange(-half, half + 1)
    chances = np.exp(-problem.rate / 2 * np.abs(noise))
    chances /= chances.sum()
    at_most = np.concatenate([[0.0], np.cumsum(chances)])
    # How likely the noise of the common item, in steps of the lead s, beats that of the other one.
    leads = np.arange(-2 * half - 1, 2 * half + 2)
    ahead = np.array([chances @ at_most[np.clip(noise + lead + half + 1, 0, len(noise))] for lead in leads])
    shown = np.cumsum(chances[::-1])  # how likely the noise is at least half - j
    others = 1 - share_of(problem)

    def failure(n: int) -> float:
        k, masses = binomial_window(n, others)
        lead = np.clip(2 * k - n, leads[0], leads[-1]).astype(np.int64) - leads[0]
        # Few users do not reach the threshold: k + z must be at least half + 2.
        room = np.clip(k - 2, -1, 2 * half).astype(np.int64)
        reached = np.where(room >= 0, shown[np.maximum(room, 0)], 0.0)
        return float(1 - masses @ np.minimum(ahead[lead], reached))

    return users_for(failure, problem.beta)


@lru_cache(maxsize=64)
def _differences(r: float, p: float) -> Floats:
    """How likely the difference of two noises NB(r, p) is at least 0, 1, 2, ..."""
    mean, spread = r * p / (1 - p), math.sqrt(r * p) / (1 - p)
    size = math.ceil(mean + 12 * spread + 60 / -math.log(p))
    if size > MOST_NOISE:
        raise NotSimulated(f"its noise takes more than {MOST_NOISE} values")
    z = np.arange(size)
    steps = np.log(p) + np.log((z[1:] - 1 + r) / z[1:])
    masses = np.exp(r * math.log1p(-p) + np.concatenate([[0.0], np.cumsum(steps)]))
    found = np.convolve(masses, masses[::-1])[size - 1 :]
    return np.cumsum(found[::-1])[::-1]


def users_of_shuffling(problem: Problem) -> float:
    """The same for `protocols.shuffle.Mode`: the noise in the common item's count must be above the lead."""
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    try:
        # The noise of all users together does not hang on how many they are.
        noise = shuffle.Mode(
            epsilon=problem.epsilon, delta=problem.delta, n_items=problem["n_items"], n_users=2, round_id="planning"
        )
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    at_least = _differences(float(noise.r), float(noise.p))
    others = 1 - share_of(problem)

    def failure(n: int) -> float:
        k, masses = binomial_window(n, others)
        lead = (2 * k - n).astype(np.int64)
        inside = at_least[np.clip(np.abs(lead), 0, len(at_least) - 1)]
        behind = 1 - at_least[np.clip(1 - lead, 0, len(at_least) - 1)]
        return float(masses @ np.where(lead >= 0, inside, behind))

    return users_for(failure, problem.beta)


@lru_cache(maxsize=1)
def _hermite() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return nodes, weights / weights.sum()


def users_of_reports(protocol: type[local.ItemProtocol], problem: Problem) -> float:
    """The same for reports, as if the leads over all other items were normal, with correlation 1/2."""
    size, share = problem["n_items"], share_of(problem)
    try:
        made = protocol(n_users=1, round_id="planning", epsilon=problem.epsilon, n_items=size)
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    plus, minus, neither = (float(each) for each in made.separation())
    rival = (share * plus + (1 - share) * minus, share * minus + (1 - share) * plus)
    other = (share * plus + (1 - share) * neither, share * minus + (1 - share) * neither)
    nodes, weights = _hermite()

    def ahead(n: int, up: float, down: float) -> Floats:
        gap = up - down
        lead = n * gap / math.sqrt(n * max(up + down - gap**2, 1e-12))
        return np.array([PHI(math.sqrt(2) * lead + node) for node in nodes])

    def failure(n: int) -> float:
        chances = ahead(n, *rival)
        if size > 2:
            chances = chances * np.maximum(ahead(n, *other), 1e-300) ** (size - 2)
        return float(1 - weights @ chances)

    return users_for(failure, problem.beta)


def bits_of(n_items: int) -> int:
    """Bits that tell so many items apart."""
    return max(1, (n_items - 1).bit_length())


def users_of_bits(problem: Problem) -> float:
    """The same for `BitwiseMajority`, where the other item has all other bits."""
    bits, share = bits_of(problem["n_items"]), share_of(problem)
    keep = 1 / (1 + math.exp(-problem.rate))
    right = share * keep + (1 - share) * (1 - keep)

    def wrong(reports: int) -> float:
        """Of one bit; half of the ties are."""
        if reports > MOST_COUNTED:
            return PHI(-reports * (2 * right - 1) / math.sqrt(reports * 4 * right * (1 - right)))
        chances, half = binomial(reports, right), reports // 2
        return float(chances[: (reports + 1) // 2].sum() + (chances[half] / 2 if reports % 2 == 0 else 0.0))

    def failure(n: int) -> float:
        each, more = divmod(n, bits)
        surely = (bits - more) * math.log1p(-wrong(each)) + more * math.log1p(-wrong(each + 1))
        return -math.expm1(surely)

    return users_for(failure, problem.beta)
