"""How wrong ratios of noisy sums and noisy counts are: intervals of what was drawn, and margins before it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import least
from userdp.means.accuracy import NoiseTerm
from userdp.mechanisms import DiscreteGaussian
from userdp.tables.noise import Noise, off_by

Floats: TypeAlias = npt.NDArray[np.float64]

BISECTIONS = 60
NEGLIGIBLE = 1e-12
TOGETHER = 2**20
STEPS_OF_NORMAL = 2**10


def ratio_interval(
    sums: Floats,
    counts: Floats,
    of_sum: Noise,
    of_count: Noise,
    failure: float,
    ends: tuple[float, float],
    *,
    steps: tuple[int, int] = (1, 1),
) -> tuple[Floats, Floats]:
    """The ratios r of a sum and a count for which sums - r counts is not unlikely.

    sums - r counts is noise alone where r is the true ratio: that of the sum minus r times that of the count. An r is
    kept if so large a value has a probability of `failure` or more. The distribution is a sum over the outcomes of the
    count's noise, in doubles. Noise is in steps of the sum and of the count, to which they were rounded before.
    """
    outcomes, masses = _outcomes(of_count)
    scale = steps[0] / steps[1]
    sums, counts, ends = sums / steps[0], counts / steps[1], (ends[0] / scale, ends[1] / scale)
    rounding = [off_by(step) / step for step in steps]
    tail, together = _tail_of(of_sum), max(TOGETHER // len(outcomes), 1)

    def kept(ratio: Floats) -> npt.NDArray[np.bool_]:
        size = np.abs(sums - ratio * counts) - rounding[0] - np.abs(ratio) * rounding[1]
        likely = np.zeros(len(sums))
        for start in range(0, len(sums), together):
            some = slice(start, start + together)
            # The count's noise is symmetric, so both sides are as likely.
            likely[some] = 2 * tail(size[some, None] + ratio[some, None] * outcomes - 1) @ masses
        return likely >= failure - NEGLIGIBLE

    bottom, top = (np.full(len(sums), end, dtype=np.float64) for end in ends)
    with np.errstate(all="ignore"):
        middle = np.where(counts > 0, np.clip(sums / counts, bottom, top), (bottom + top) / 2)
    below, above = _boundary(kept, middle, bottom), _boundary(kept, middle, top)
    # Where the count may be 0, no ratio is excluded.
    open_ended = counts <= NoiseTerm.of(of_count, 1.0).quantile(failure) + rounding[1]
    return np.where(open_ended, bottom, below) * scale, np.where(open_ended, top, above) * scale


def _boundary(kept: Any, inside: Floats, end: Floats) -> Floats:
    """The last ratio that is kept on the way to an end of the range."""
    near, far = inside.copy(), end.copy()
    whole = kept(end)
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        keep = kept(middle)
        near, far = np.where(keep, middle, near), np.where(keep, far, middle)
    return np.where(whole, end, far)


def _outcomes(noise: Noise) -> tuple[Floats, Floats]:
    """The outcomes of a count's noise with nearly all of the probability; of wide noise in equal parts."""
    reach = math.ceil(NoiseTerm.of(noise, 1.0).quantile(NEGLIGIBLE))
    step = max(1, reach // 400)
    outcomes = np.arange(-reach // step, reach // step + 1, dtype=np.float64) * step
    if isinstance(noise, DiscreteGaussian):
        masses = np.exp(-(outcomes**2) / (2 * float(noise.sigma_squared)))
    else:
        masses = np.exp(-np.abs(outcomes) / float(noise.scale))
    return outcomes, masses / masses.sum()


def _tail_of(noise: Noise) -> Callable[[Floats], Floats]:
    """At least the probability that noise is a number or more."""
    if isinstance(noise, DiscreteGaussian):
        sigma = math.sqrt(float(noise.sigma_squared))
        return lambda least: _normal_tail((least - 0.5) / sigma)
    decay = 1 / float(noise.scale)
    share = 1 / (1 + math.exp(-decay))

    def tail(least: Floats) -> Floats:
        whole = np.ceil(least)
        with np.errstate(all="ignore"):
            return np.where(
                whole >= 1,
                np.exp(-decay * np.maximum(whole, 0)) * share,
                1 - np.exp(-decay * np.maximum(1 - whole, 0)) * share,
            )

    return tail


@cache
def _normal_table() -> tuple[Floats, Floats]:
    """Numbers from 0 on, and with which probability a standard normal variable is as large."""
    at = np.arange(40 * STEPS_OF_NORMAL + 1) / STEPS_OF_NORMAL
    return at, np.array([math.erfc(x / math.sqrt(2)) / 2 for x in at.tolist()])


def _normal_tail(x: Floats) -> Floats:
    """Slightly above the probability that a standard normal variable is x or more: lines are above what is convex."""
    upper = np.interp(np.abs(x), *_normal_table())
    # Below 0 the tail is concave: lines are below it, by x phi(x) / 8 times the square of a step at most.
    return np.where(x < 0, 1 - upper + 0.25 / 8 / STEPS_OF_NORMAL**2, upper)


# --- margins


def ratio_margin(
    of_sum: Noise, of_count: Noise, failure: float, count: int, most: float, steps: tuple[int, int]
) -> float:
    """How far a noisy ratio of so many is from the true one at most, whichever ratio of -most, ..., most that is.

    The ratio is off by more than m, upwards, if noise of the sum - (r + m) noise of the count is above m count, where
    r + m is at most `most` or cut to it; that is likeliest at `most`, and as likely downwards.
    """
    rounding = [off_by(step) for step in steps]
    if count <= NoiseTerm.of(of_count, steps[1]).quantile(failure) + rounding[1]:
        return math.inf
    outcomes, masses = _outcomes(of_count)
    tail, moved = _tail_of(of_sum), most * steps[1] / steps[0]
    near, far = 0.0, 2.0**62
    for _ in range(2 * BISECTIONS):
        middle = (near + far) / 2
        likely = 2 * float(tail(middle / steps[0] + moved * outcomes - 1) @ masses)
        near, far = (middle, far) if likely >= failure else (near, middle)
    return (far + rounding[0] + most * rounding[1]) / count


def shown_margin(noise: Noise, threshold: int, count: int, failure: float) -> int:
    """How far a noisy count is from the true one at most, but for this probability among the times that it is shown."""
    level, fewest = 1 - Fraction(failure), threshold - count
    shown = noise.tail(fewest)

    def within(off: int) -> bool:
        return off >= fewest and noise.tail(max(-off, fewest)) - noise.tail(off + 1) >= level * shown

    return least(within, -1, max(fewest, 1), math.inf)
