"""Noise and threshold of sparse histograms, proposed in floats: the exact account decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Neighbors, parse_positive
from userdp.mechanisms.key_sums import KeySum

Floats: TypeAlias = npt.NDArray[np.float64]
_Proposal: TypeAlias = "tuple[float, int, Callable[[], dict[str, Any]]]"

DIGITS = 4
"""Decimal digits of the noise's parameters, which are public and read by people."""
LEAST_VARIANCE = Fraction(1, 100)
"""Of discrete Gaussian noise."""
STEP = 1.004
"""Between the widths that are tried, up to twice the least one."""
ATTEMPTS = 4
"""So many widths are tried for a threshold."""
MORE_USERS = 6
"""So many larger numbers of users than predicted are tried one by one, or by a part in a thousand where these are many;
then by doubling, up to a quarter more."""
SPLITS = 33
"""So many splits of keys are looked at for a prediction."""


def proposals(
    epsilon: float,
    delta: float,
    keys: int,
    neighbors: Neighbors,
    ranges: list[tuple[int, int]],
    shares: list[float],
    method: str,
    probability: float,
) -> Iterator[dict[str, Any]]:
    """Noise and thresholds as arguments of `SparseHistogram`, those that show keys of fewer users first."""
    problem = _Problem(epsilon, delta, keys, neighbors, ranges, shares)
    kinds: list[list[_Proposal]] = []
    if method != "laplace":
        kinds.append(_candidates(problem, _Gaussian(problem), probability))
    if method != "gaussian":
        kinds.append(_candidates(problem, _Laplace(problem), probability))
    yield from _in_order([one for kind in kinds for one in kind])
    # What is best by prediction may not be had: beside a large epsilon drawn Gaussian noise is too far off the ideal.
    if len(kinds) > 1:
        for kind in kinds:
            yield from _in_order(kind)


class _Problem:
    """What is asked for, in floats."""

    def __init__(
        self,
        epsilon: float,
        delta: float,
        keys: int,
        neighbors: Neighbors,
        ranges: list[tuple[int, int]],
        shares: list[float],
    ) -> None:
        self.epsilon, self.delta, self.keys, self.ranges, self.shares = epsilon, delta, keys, ranges, shares
        self.moved = 2 * keys if neighbors == "replace" else keys
        # What a key in common is worth beside one's own, at most: sums alone move there.
        widths = [((high - low) / max(-low, high)) for low, high in ranges] if neighbors == "replace" else []
        self.common = [share * width**2 for share, width in zip(shares[1:], widths, strict=False)]
        self.splits = sorted({round(x) for x in np.linspace(0, keys, min(keys + 1, SPLITS))})

    def threshold(self, hidden: Callable[[int], float], rest: Callable[[int], float]) -> int | None:
        """The least threshold, by the probability that one user's key is shown and the delta of what moves."""
        moves = [rest(split) for split in self.splits]

        def delta(threshold: int) -> float:
            shown = hidden(threshold)
            left = math.log1p(-min(shown, 1 - 1e-16))
            return max(
                -math.expm1(split * left) + math.exp(split * left) * move
                for split, move in zip(self.splits, moves, strict=True)
            )

        high = 2
        while delta(high) > self.delta:
            high *= 2
            if high > 2**30:
                return None
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if delta(middle) <= self.delta else (middle, high)
        return high


class _Gaussian:
    """Gaussian noise: continuous where a prediction will do."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        most = max(problem.moved, problem.keys * sum(problem.common))
        self.least = _least(lambda x: gaussian_float(math.sqrt(most / x), problem.epsilon), problem.delta)

    def width(self, variance: float) -> float:
        """The standard deviation of a count's noise."""
        return math.sqrt(variance / self.problem.shares[0])

    def quantile(self, variance: float, probability: float) -> float:
        """How many users above the threshold a key needs."""
        return self.width(variance) * NormalDist().inv_cdf(probability)

    def threshold(self, variance: float) -> int | None:
        problem, sigma = self.problem, self.width(variance)
        return problem.threshold(
            lambda threshold: 0.5 * math.erfc((threshold - 1.5) / sigma / math.sqrt(2)),
            lambda split: gaussian_float(math.sqrt((problem.moved - split) / variance), problem.epsilon),
        )

    def arguments(self, variance: float) -> dict[str, Any]:
        """Of the class."""
        shares = self.problem.shares
        sums = [
            KeySum(low, high, sigma_squared=max(_rounded(variance * max(-low, high) ** 2 / share), LEAST_VARIANCE))
            for (low, high), share in zip(self.problem.ranges, shares[1:], strict=True)
        ]
        return {"sigma_squared": max(_rounded(variance / shares[0]), LEAST_VARIANCE), "sums": sums}


class _Laplace:
    """Discrete Laplace noise: a key is worth a part of epsilon."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        # The scale for a unit of a key's whole part; basic composition always does.
        high = 1 / (problem.epsilon / problem.moved)
        self.least = min(high, _least(lambda x: _laplace_delta(1 / x, problem.moved, problem.epsilon), problem.delta))

    def quantile(self, scale: float, probability: float) -> float:
        rate = self.problem.shares[0] / scale
        ratio = math.exp(-rate)
        if probability > 0.5:
            return max(0.0, -math.log((1 - probability) * (1 + ratio)) / rate - 1)
        return min(0.0, math.log(probability * (1 + ratio)) / rate)

    def threshold(self, scale: float) -> int | None:
        problem, rate = self.problem, self.problem.shares[0] / scale
        return problem.threshold(
            lambda threshold: math.exp(-rate * (threshold - 1)) / (1 + math.exp(-rate)) if threshold > 1 else 0.9,
            lambda split: _laplace_delta(1 / scale, problem.moved - split, problem.epsilon),
        )

    def arguments(self, scale: float) -> dict[str, Any]:
        shares = self.problem.shares
        sums = [
            KeySum(low, high, scale=_rounded(scale * max(-low, high) / share))
            for (low, high), share in zip(self.problem.ranges, shares[1:], strict=True)
        ]
        return {"scale": _rounded(scale / shares[0]), "sums": sums}


def _candidates(problem: _Problem, noise: _Gaussian | _Laplace, probability: float) -> list[_Proposal]:
    """Predicted users, the threshold, and what makes the class's arguments but for it: noise is made if it is tried."""
    found: list[_Proposal] = []
    power = 2 if isinstance(noise, _Gaussian) else 1
    for index in range(1 + math.ceil(math.log(2) / math.log(STEP))):
        size = noise.least * STEP ** (power * index) * (1.0 + 1e-9)
        threshold = noise.threshold(size)
        if threshold is None:
            continue
        found.append((threshold + noise.quantile(size, probability), threshold, partial(noise.arguments, size)))
    return found


def _in_order(proposed: list[_Proposal]) -> Iterator[dict[str, Any]]:
    """What to try: by users that are needed, a few widths of noise for each number."""
    if not proposed:
        return
    fewest = math.ceil(min(users for users, *_ in proposed))
    step = max(1, fewest // 1000)
    more_users = [-1, *(step * times for times in range(MORE_USERS))]
    while (larger := 2 * more_users[-1]) <= fewest // 4:
        more_users.append(larger)
    for users in (fewest + more for more in more_users):
        spare = [
            (users - math.ceil(predicted - 1e-9), threshold, arguments) for predicted, threshold, arguments in proposed
        ]
        # Predictions are a little off: one user less may do.
        fitting = [
            (arguments, threshold + more)
            for more, threshold, arguments in spare
            if more >= 0 or (users < fewest and more == -1)
        ]
        places = sorted({round(x) for x in np.linspace(0, len(fitting) - 1, min(len(fitting), ATTEMPTS))})
        yield from (
            {**arguments(), "threshold": threshold} for arguments, threshold in map(fitting.__getitem__, places)
        )


def read_shares(weights: Sequence[Any] | None, sums: int) -> list[float]:
    """Shares of the count and of each sum, which add up to 1."""
    if weights is None:
        return [0.5, *[0.5 / sums] * sums] if sums else [1.0]
    read = [parse_positive(weight, "weights") for weight in weights]
    if len(read) != 1 + sums:
        raise ValueError(f"weights must be {1 + sums}, of the count and of each sum; got {len(read)}")
    return [float(weight / sum(read)) for weight in read]


def _rounded(x: float) -> Fraction:
    """At or just above x, with few digits."""
    power = DIGITS - 1 - math.floor(math.log10(x))
    return math.ceil(Fraction(x) * Fraction(10) ** power) / Fraction(10) ** power


def _least(delta: Callable[[float], float], limit: float) -> float:
    """About the least x with a delta of at most the limit: it falls as x grows."""
    low, high = -60.0, 80.0  # of ln x
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(math.exp(middle)) <= limit else (middle, high)
    return math.exp(high)


def gaussian_float(mu: float, epsilon: float) -> float:
    """The delta of Gaussian noise whose means are mu standard deviations apart."""
    if mu <= 0:
        return 0.0
    root = math.sqrt(2)
    above = 0.5 * math.erfc((epsilon / mu - mu / 2) / root)
    below = 0.5 * math.erfc((epsilon / mu + mu / 2) / root)
    return max(0.0, above - math.exp(min(epsilon, 700.0)) * below)


def _laplace_delta(rate: float, times: int, epsilon: float) -> float:
    """The delta of so many randomized responses."""
    if rate * times <= epsilon:
        return 0.0
    if rate > 50:
        return 1.0
    i, choose = _log_binomials(times)
    loss = (times - 2 * i) * rate
    masses = np.exp(choose + (times - i) * rate - times * math.log1p(math.exp(rate)))
    return float(np.sum(masses * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 700.0)))))


@lru_cache(maxsize=SPLITS + 1)
def _log_binomials(times: int) -> tuple[Floats, Floats]:
    """0, ..., times, and the logarithms of their binomial coefficients."""
    factorials = np.array([math.lgamma(x + 1) for x in range(times + 1)])
    return np.arange(times + 1.0), factorials[-1] - factorials - factorials[::-1]
