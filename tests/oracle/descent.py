"""Slow reference for descents on noisy gradients: exact moments of linear recursions, and all paths of coin flips."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction


def quadratic_excess(
    curvatures: Sequence[Fraction],
    start: Sequence[Fraction],
    variances: Sequence[Fraction],
    sizes: Sequence[Fraction],
    weights: Sequence[Fraction],
) -> Fraction:
    """The expected F of the weighted average of theta_1, ..., theta_T for F = sum_j c_j theta_j**2 / 2, exactly.

    theta_{t+1} = theta_t - eta_t (c theta_t + noise): the average is a constant plus a weighted sum of all noises.
    """
    excess = Fraction(0)
    for c, x, variance in zip(curvatures, start, variances, strict=True):
        # How much of theta_{t+1} is left in theta_s, summed with the weights of s > t: from the last back.
        effect = Fraction(0)
        noise = Fraction(0)
        for size, weight in zip(reversed(sizes), reversed(weights), strict=True):
            effect += weight
            noise += (size * effect) ** 2 * variance
            effect *= 1 - size * c
        mean = effect * x
        excess += c * (mean**2 + noise) / 2
    return excess


def expected_over_signs(
    value: Callable[[float], float],
    slope: Callable[[float], float],
    project: Callable[[float], float],
    start: float,
    noise: float,
    sizes: Sequence[float],
) -> list[float]:
    """The expectation of a value at theta_0, ..., theta_T on a line, over all noises of +-noise: 2**T paths."""
    totals = [value(start)] + [0.0] * len(sizes)
    for signs in itertools.product((-1, 1), repeat=len(sizes)):
        theta = start
        for t, (sign, size) in enumerate(zip(signs, sizes, strict=True), 1):
            theta = project(theta - size * (slope(theta) + sign * noise))
            totals[t] += value(theta) / 2 ** len(sizes)
    return totals
