"""What the comparison of samplers measures beside userdp: scores, and the peers' ways to draw, each with its pmf."""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

EPSILON = 1.0
SCORE_SCALE = 2.0 / EPSILON
"""The scores' unit of e: 2 sensitivity / epsilon, for a sensitivity of 1."""
PROFILES = ("equal", "peaked")
LIMITS = (0, 1_000_000)
VALUE = 500_000

Scores = npt.NDArray[np.int64]


def make_scores(k: int, profile: str) -> list[Scores]:
    """Ready-made score vectors: all equal, or one candidate 20 scales below all others, at changing places."""
    random = np.random.default_rng([k, 7])
    found = []
    for level in range(64 if k <= 1000 else 4):
        scores = np.full(k, level, dtype=np.int64)
        if profile == "peaked":
            scores[random.integers(k)] -= int(20 * SCORE_SCALE)
        found.append(scores)
    return found


# --- distributions, for the check before the times -----------------------------------------------------------


def exponential_pmf(scores: Scores) -> list[float]:
    """P[i] proportional to e^(-score / scale)."""
    weights = [math.exp(-int(score) / SCORE_SCALE) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_pmf(scores: Scores) -> list[float]:
    """Candidates in random order, each taken with probability e^(-(score - best) / scale) when it is reached."""
    chances = [math.exp(-(int(score) - int(min(scores))) / SCORE_SCALE) for score in scores]
    pmf = [0.0] * len(chances)
    orders = list(itertools.permutations(range(len(chances))))
    for order in orders:
        left = 1.0 / len(orders)
        for i in order:
            pmf[i] += left * chances[i]
            left *= 1.0 - chances[i]
    return pmf


# --- selection --------------------------------------------------------------------------------------


@dataclass
class Selector:
    """A way to draw one candidate: `ready` turns scores into what `draw` takes, before the clock runs."""

    name: str
    ready: Callable[[Scores], Any]
    draw: Callable[[Any], Any]
    pmf: Callable[[Scores], list[float]] = exponential_pmf


def numpy_selectors() -> list[Selector]:
    """Noise on every score, and the inverse of the distribution function."""
    random = np.random.default_rng()

    def gumbel(utilities: Any) -> int:
        return int(np.argmax(utilities + random.gumbel(size=utilities.size)))

    def inverse(utilities: Any) -> int:
        sums = np.cumsum(np.exp(utilities - utilities.max()))
        return int(np.searchsorted(sums, random.random() * sums[-1], side="right"))

    def utilities(scores: Scores) -> Any:
        return -scores / SCORE_SCALE

    return [Selector("numpy Gumbel", utilities, gumbel), Selector("numpy inverse", utilities, inverse)]


class Peers:
    """The other libraries, as far as they are installed."""

    def __init__(self) -> None:
        self.opendp: Any = None
        self.diffprivlib: Any = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ImportError):
                import opendp.prelude as opendp

                opendp.enable_features("contrib")
                self.opendp = opendp
            with contextlib.suppress(ImportError):
                import diffprivlib.mechanisms

                self.diffprivlib = diffprivlib.mechanisms

    def selectors(self) -> list[Selector]:
        """OpenDP's noisy max with pure differential privacy, and diffprivlib's exponential mechanism."""
        found = []
        if self.opendp is not None:
            dp = self.opendp
            space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
            select = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=SCORE_SCALE)
            expected = EPSILON
            if not math.isclose(select.map(1.0), expected):
                raise SystemExit(f"OpenDP calibrates differently: {select.map(1.0)} for {expected}")
            # An array of floats is the input that it takes fastest.
            found.append(Selector("OpenDP", lambda scores: -scores.astype(np.float64), select, permute_and_flip_pmf))
        if self.diffprivlib is not None:
            mechanism = self.diffprivlib.Exponential

            def draw(utilities: Any) -> Any:
                return mechanism(epsilon=EPSILON, sensitivity=1.0, utility=utilities).randomize()

            found.append(Selector("diffprivlib", lambda scores: (-scores).tolist(), draw))
        return found

    def geometric_noise(self, scale: int) -> list[Noise]:
        """Two-sided geometric noise of this scale on one value."""
        found = []
        if self.opendp is not None:
            dp = self.opendp
            space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
            values = [VALUE] * 10_000
            laplace = dp.m.make_laplace(*space, scale=float(scale))
            found.append(Noise("OpenDP make_laplace", lambda: laplace(values), len(values)))
            single = dp.atom_domain(T=int), dp.absolute_distance(T=int)
            bounded = dp.m.make_geometric(*single, scale=float(scale), bounds=LIMITS)
            found.append(Noise("OpenDP make_geometric, bounds", lambda: bounded(VALUE), 1))
        if self.diffprivlib is not None:
            lower, upper = LIMITS
            mechanism = self.diffprivlib.GeometricTruncated(
                epsilon=1.0 / scale, sensitivity=1, lower=lower, upper=upper
            )
            found.append(Noise("diffprivlib", lambda: [mechanism.randomize(VALUE) for _ in range(2000)], 2000))
        return found

    def gaussian_noise(self, sigma: int) -> list[Noise]:
        """Discrete Gaussian noise of this scale on integers."""
        if self.opendp is None:
            return []
        dp = self.opendp
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
        values = [VALUE] * 10_000
        gaussian = dp.m.make_gaussian(*space, scale=float(sigma))
        return [Noise("OpenDP make_gaussian", lambda: gaussian(values), len(values))]


# --- noise ------------------------------------------------------------------------------------------


@dataclass
class Noise:
    """A way to draw a batch."""

    name: str
    draw: Callable[[], Any]
    draws: int


def numpy_geometric(scale: int, draws: int) -> Noise:
    """The difference of two geometric draws on the value, clipped."""
    random = np.random.default_rng()
    success = -math.expm1(-1.0 / scale)

    def draw() -> Any:
        noise = random.geometric(success, draws) - random.geometric(success, draws)
        return np.clip(VALUE + noise, *LIMITS)

    return Noise("numpy", draw, draws)


def numpy_gaussian(sigma: int, draws: int) -> Noise:
    """Normal draws on the value, rounded to integers."""
    random = np.random.default_rng()
    return Noise("numpy", lambda: VALUE + np.rint(random.normal(0, sigma, draws)).astype(np.int64), draws)


def numpy_table(probabilities: list[float], draws: int) -> Noise:
    """The inverse of the distribution function of a finite distribution."""
    random = np.random.default_rng()
    sums = np.cumsum(probabilities)
    return Noise("numpy", lambda: np.searchsorted(sums, random.random(draws) * sums[-1], side="right"), draws)
