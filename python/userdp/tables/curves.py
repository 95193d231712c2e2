"""Cumulative distributions from noisy bins: shares that rise, and a band that has the whole true curve.

All of it is done with released numbers, so it costs nothing. What is private, and the noise, are those of a histogram
whose bins are between the points of the curve (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.means.accuracy import SMOOTH, NoiseTerm
from userdp.tables.noise import Noise

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

RATIOS = 256
"""Intervals of the table of how far noise reaches at each share; between its points lines bound it from above."""
TILTS = 512
"""Points at which Chernoff's bound is looked at: each of them is a bound."""
BISECTIONS = 40


def isotonic(values: Floats) -> Floats:
    """The rising sequence with the least squared distance from the values, by pooling adjacent violators."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            before, many = means.pop(), sizes.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        means.append(mean)
        sizes.append(size)
    return np.repeat(np.array(means, dtype=np.float64), sizes)


def shares_below(bins: Integers, weight: int) -> Floats:
    """The shares at or below the points, with shape (keys, points), of noisy bins with shape (keys, points + 1).

    Where all bins together have less than the weight of one user nothing can be said: NaN.
    """
    upto = np.cumsum(bins.astype(np.float64), axis=1)
    found: Floats = np.full((len(bins), bins.shape[1] - 1), np.nan)
    for key in np.flatnonzero(upto[:, -1] >= weight).tolist():
        found[key] = np.clip(isotonic(upto[key, :-1] / upto[key, -1]), 0, 1)
    return found


def band(bins: Integers, noise: Noise, step: int, failure: float, shares: Floats) -> tuple[Floats, Floats]:
    """A band that has the true curve of a key at all points together, but for a probability of `failure`.

    A share F of the true curve makes what is at or below its point, minus F of all, noise alone. At each point the band
    has all F for which that is not larger than such noise is but for a probability of failure / points.

    Parameters
    ----------
    bins : array of int, (keys, points + 1)
        With noise.
    noise, step
        The noise of each bin in steps of so much, to which bins were rounded before.
    failure : float
        In (0, 1).
    shares : array of float, (keys, points)
        The fit, which is in the band too.

    Returns
    -------
    pair of array of float, (keys, points)
        The lower and the upper ends, both of which rise.
    """
    whole = bins.astype(np.float64) / step
    upto = np.cumsum(whole, axis=1)
    points = bins.shape[1] - 1
    reach = reaches(noise, points, failure / points, off=0.0 if step == 1 else 0.5)
    low = _end(upto[:, :-1], upto[:, -1:], reach, 0.0)
    high = _end(upto[:, :-1], upto[:, -1:], reach, 1.0)
    # The true curve rises: what it is above at one point it is above at all that follow.
    low, high = np.maximum.accumulate(low, axis=1), np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
    return np.fmin(low, shares), np.fmax(high, shares)


def reaches(noise: Noise, points: int, failure: float, *, off: float) -> Floats:
    """What (1 - F) times the noise up to a point, minus F times that beyond it, is above in size so rarely, in steps.

    A table with a row for each point and a column for each F in 0, 1 / RATIOS, ..., 1. It is convex in F, or above what
    is, so lines between its columns are above. `off` is how far each bin may be off besides.
    """
    ratios = np.linspace(0, 1, RATIOS + 1)
    before = np.arange(1, points + 1, dtype=np.float64)[:, None]
    beyond = points + 1 - before
    term = NoiseTerm.of(noise, 1.0)
    if term.kind == "gaussian":
        # Wide noise is within a step of a normal variable; all of it has a moment generating function below the normal.
        wide = term.scale >= SMOOTH
        times = -NormalDist().inv_cdf(failure / 2) if wide else math.sqrt(2 * math.log(2 / failure))
        size = times * term.scale * np.sqrt(before * (1 - ratios) ** 2 + beyond * ratios**2)
    else:
        size = term.scale * _of_laplace(ratios, before, beyond, math.log(1 / failure))
    found: Floats = size + (1 + off) * (before * (1 - ratios) + beyond * ratios)
    return found


def _of_laplace(ratios: Floats, before: Floats, beyond: Floats, exponent: float) -> Floats:
    """The same for Laplace noise of scale 1.

    Laplace noise is normal noise of a random variance V, so P[|X| > x] <= E[exp(-x^2 / (2 V))], which is at most
    exp(-t x) E[exp(t X)] for each t > 0: half of what Chernoff's bound of both sides is.
    """
    largest = np.maximum(1 - ratios, ratios)
    least = np.full(np.broadcast_shapes(ratios.shape, before.shape), np.inf)
    for part in np.geomspace(1e-4, 1, TILTS, endpoint=False).tolist():
        tilt = part / largest
        made = -before * np.log1p(-((tilt * (1 - ratios)) ** 2)) - beyond * np.log1p(-((tilt * ratios) ** 2))
        least = np.minimum(least, (made + exponent) / tilt)
    return least


def _end(upto: Floats, whole: Floats, reach: Floats, end: float) -> Floats:
    """The last share that is out of the question on the way from 0 or from 1, or that end itself."""

    def beyond(sign: Any, shares: Floats) -> Any:
        return sign * (upto - shares * whole) > _between(reach, shares)

    first, last = np.full(upto.shape, end), np.full(upto.shape, 1 - end)
    sign = np.sign(upto - first * whole)
    outside = beyond(sign, first)
    # Shares that are out of the question with one sign are all those between any two of them, as the reach is convex.
    # Where they are all, nothing is known.
    found = outside & ~beyond(sign, last)
    near, far = first.copy(), last
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        out = beyond(sign, middle)
        near, far = np.where(out, middle, near), np.where(out, far, middle)
    return np.where(found, near, first)


def _between(reach: Floats, shares: Floats) -> Floats:
    """The table between its columns, with shape (keys, points)."""
    place = np.minimum((shares * RATIOS).astype(np.int64), RATIOS - 1)
    part = shares * RATIOS - place
    rows = np.arange(len(reach))[None, :]
    found: Floats = reach[rows, place] * (1 - part) + reach[rows, place + 1] * part
    return found
