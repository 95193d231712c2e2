"""Noise and thresholds of set unions, proposed in floats: the exact account decides."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Neighbors, open_unit_fraction, short_repr
from userdp.mechanisms.sparse_calibration import gaussian_float
from userdp.mechanisms.union_rounds import WEIGHT, groups_of, listed_singly, shares_of

Floats = npt.NDArray[np.float64]

WIDER = (1.003, 1.01, 1.02, 1.035, 1.06, 1.1)
"""How much wider noise is tried than the least that pays for keys which are not new."""
SPARE = 0.985
"""Of the delta, for what predictions are off."""
NEARLY = 0.9995
"""Of a delta beside rho, for the rounding of floats."""
HIGHER = Fraction(1003, 1000)
ATTEMPTS = 24
SHARES = 48
POINTS = 65
"""Of losses."""
REACH = 3
"""The policy's cap is so many standard deviations of the noise above the threshold."""
WALK_WEIGHTS = tuple(2**bits for bits in (48, 46, 44, 42, 40))
"""Of the policy: rounding is a smaller part of larger ones."""


@dataclass(frozen=True)
class _Problem:
    """What users may have, in floats and units of a user's weight."""

    keys: int
    neighbors: Neighbors
    walk: bool

    @property
    def lengths(self) -> int:
        return 2 if self.neighbors == "replace" else 1

    @cached_property
    def shares(self) -> list[Fraction]:
        found = shares_of(self.keys, self.walk, SHARES)
        if len(found) <= 2 * SHARES:
            return found
        return [found[round(place)] for place in np.linspace(0, len(found) - 1, 2 * SHARES)]

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        return list(groups_of(self.keys))

    @cached_property
    def new_keys(self) -> Floats:
        """How many new keys a user of each group has with each share, at most."""
        rows = []
        for share in self.shares:
            part, whole = share.as_integer_ratio()
            # With "policy" a user's keys need not be whole.
            row = [last * part / whole if self.walk else last * part // whole for _, last in self.groups]
            rows.append([number if number >= 1 else 0 for number in row])
        return np.array(rows, dtype=np.float64)

    def tails(self, sigma: float, threshold: float) -> Floats:
        """How likely one key of a user of each group is shown."""
        wide = sigma * math.sqrt(2)
        return np.array([0.5 * math.erfc((threshold - 1 / math.sqrt(first)) / wide) for first, _ in self.groups])

    def threshold(self, sigma: float, shown: float) -> float:
        """The least threshold at which a user's new keys are shown with at most this probability."""
        rarest = [max(shown / last, sys.float_info.min) for _, last in self.groups]
        heights = [
            1 / math.sqrt(first) - sigma * NormalDist().inv_cdf(rare)
            for (first, _), rare in zip(self.groups, rarest, strict=True)
        ]
        return max(0.0, *heights)

    def curve(self, sigma: float, threshold: float) -> Callable[[float], float]:
        """The curve of one round."""
        mus, shown = self.split(sigma, threshold)

        def at(epsilon: float) -> float:
            def kept(place: int) -> float:
                one = shown[place]
                return (1 - one) * gaussian_float(mus[place], epsilon - math.log1p(-one))

            # What is kept falls, and what is shown rises: from a place to another it is at most the sum of both ends.
            last = len(mus) - 1
            best, ranges = shown[last] + kept(last), [(0, last, kept(0))]
            while ranges:
                low, high, most = ranges.pop()
                best = max(best, shown[low] + most)
                if high - low > 1 and shown[high - 1] + most > best:
                    middle = (low + high) // 2
                    ranges += [(low, middle, most), (middle, high, kept(middle))]
            return best

        return at

    def split(self, sigma: float, threshold: float) -> tuple[list[float], list[float]]:
        shown = np.minimum(np.max(self.new_keys * self.tails(sigma, threshold), axis=1), 1 - 1e-12).tolist()
        mus = [math.sqrt(self.lengths - float(share)) / sigma for share in self.shares]
        if not listed_singly(self.keys, self.walk):  # a range of shares has the ends of both
            mus, shown = mus[:-1], shown[1:]
        return mus, shown

    def both(self, first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
        """The delta of two rounds, of (sigma, threshold) each."""
        curve = self.curve(*second)
        widest = math.sqrt(self.lengths) / first[0]
        away = 8 * widest + widest**2
        # New keys of the first round move the level by ln(1 - shown), which is next to nothing.
        away += min(0.01, away)
        grid = np.linspace(epsilon - away, epsilon + away, POINTS)
        values = np.array([curve(x) for x in grid])
        normal = np.linspace(-8, 8, POINTS)
        masses = np.exp(-(normal**2) / 2)
        masses /= masses.sum()
        mus, shown = self.split(*first)
        step = max(1, len(mus) // 16)
        found = 0.0
        for mu, one in [*zip(mus[::step], shown[::step], strict=True), (mus[-1], shown[-1])]:
            losses = epsilon - math.log1p(-one) - mu * normal - mu * mu / 2
            found = max(found, one + (1 - one) * float(masses @ np.interp(losses, grid, values)))
        return found


def proposals(
    epsilon: float, delta: float, keys: int, neighbors: Neighbors, method: Any, first_share: Any
) -> Iterator[dict[str, Any]]:
    """Rounds as arguments of `SetUnion`, at a delta that is about as wanted and then a little smaller."""
    share = _read(method, first_share)
    problem = _Problem(keys, neighbors, method == "policy")
    rounds = _proposed(problem, epsilon, delta, method, share)
    return iter(()) if rounds is None else _attempts(problem, rounds)


def proposals_within(
    rho: float, added_delta: float, keys: int, neighbors: Neighbors, method: Any, first_share: Any
) -> Iterator[dict[str, Any]]:
    """The same within a rho, with thresholds for a delta beside it."""
    share = _read(method, first_share)
    problem = _Problem(keys, neighbors, method == "policy")
    least = math.sqrt(problem.lengths / (2 * rho)) * (1 + 1e-12)
    sigmas = [least / math.sqrt(part) for part in _parts(method, share)]
    rounds = [(sigma, problem.threshold(sigma, added_delta / len(sigmas) * NEARLY)) for sigma in sigmas]
    return _attempts(problem, rounds, wider=True)


def _read(method: Any, first_share: Any) -> float:
    if not isinstance(method, str) or method not in ("two-round", "one-round", "policy"):
        raise ValueError(f"method must be 'two-round', 'one-round' or 'policy'; got {short_repr(method)}")
    return float(open_unit_fraction(first_share, "first_share"))


def _parts(method: str, share: float) -> list[float]:
    return [share, 1 - share] if method == "two-round" else [1.0]


def _proposed(
    problem: _Problem, epsilon: float, delta: float, method: str, share: float
) -> list[tuple[float, float]] | None:
    """Noise and threshold of each round, with the lowest threshold of the last one."""
    root = math.sqrt(problem.lengths)
    least = _bisected(lambda sigma: gaussian_float(root / sigma, epsilon) <= delta, 1e-3, 1e9)
    best: list[tuple[float, float]] | None = None
    for wider in WIDER:
        sigmas = [least * wider / math.sqrt(part) for part in _parts(method, share)]

        def rounds(shown: float, sigmas: list[float] = sigmas) -> list[tuple[float, float]]:
            return [(sigma, problem.threshold(sigma, shown / len(sigmas))) for sigma in sigmas]

        def fits(more: float, rounds: Any = rounds) -> bool:
            made = rounds(min(delta / more, 0.9))
            if len(made) == 2:
                return problem.both(made[0], made[1], epsilon) <= delta * SPARE
            return problem.curve(*made[0])(epsilon) <= delta * SPARE

        if not fits(1e6):
            continue
        found = rounds(min(delta / _bisected(fits, 0.05, 1e6, steps=14), 0.9))
        if best is None or found[-1][1] < best[-1][1]:
            best = found
    return best


def _attempts(problem: _Problem, rounds: list[tuple[float, float]], *, wider: bool = False) -> Iterator[dict[str, Any]]:
    """Rounds in integers, each with thresholds that are a little higher than those before."""
    factor = Fraction(1)
    for _ in range(ATTEMPTS):
        arguments = _in_integers(problem, rounds, factor, wider)
        if arguments is not None:
            yield {"max_keys": problem.keys, "neighbors": problem.neighbors, **arguments}
        factor *= HIGHER


def _in_integers(
    problem: _Problem, rounds: list[tuple[float, float]], factor: Fraction, wider: bool
) -> dict[str, Any] | None:
    # Within a rho nothing is left unused; otherwise the parameters are public numbers that people read.
    bits = 48 if wider else 16
    variances = [_rounded(sigma * sigma, bits) * (factor if wider else 1) for sigma, _ in rounds]
    thresholds = [Fraction(threshold) * factor for _, threshold in rounds]
    if not problem.walk:
        listed = [
            (variance * WEIGHT**2, math.ceil(threshold * WEIGHT))
            for variance, threshold in zip(variances, thresholds, strict=True)
        ]
        return {"rounds": listed}
    ((variance, threshold),) = zip(variances, thresholds, strict=True)
    reach = threshold + REACH * Fraction(math.sqrt(variance))
    for weight in WALK_WEIGHTS:
        cap = math.ceil(reach * weight)
        if variance * weight**2 <= 2**112 and cap**2 * problem.keys < 2**127 and cap < 2**61:
            listed = [(variance * weight**2, math.ceil(threshold * weight))]
            return {"rounds": listed, "weight": weight, "cap": cap}
    return None


def _rounded(x: float, bits: int) -> Fraction:
    """At or just above x, with few binary digits."""
    unit = Fraction(2) ** (math.frexp(x)[1] - bits)
    return math.ceil(Fraction(x) / unit) * unit


def _bisected(fits: Callable[[float], bool], low: float, high: float, steps: int = 60) -> float:
    """About the least x that fits, on a logarithmic scale."""
    low, high = math.log(low), math.log(high)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(math.exp(middle)) else (middle, high)
    return math.exp(high)
