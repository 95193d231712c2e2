"""The noise that all users add up to, and what it hides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import core_level, level_of
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    LogRatio,
    check_count,
    check_flag,
    nearest_float,
    parse_delta,
    parse_level,
    parse_positive,
    round_down,
    round_up,
    short_repr,
    split_text,
)

USERS_LIMIT = 2**32


class Theorem39Parameters(NamedTuple):
    """The parameters of a negative binomial distribution: P[k] = C(k + r - 1, k) (1 - p)**r p**k."""

    r: Fraction
    p: Fraction


def theorem_39_parameters(epsilon: Epsilon, delta: Delta) -> Theorem39Parameters:
    """The noise of [GKM21, Theorem 39]: p = e**(-0.2 epsilon) and r = 3 (1 + ln(1 / delta)), as fractions.

    Much more noise than needed, see the example: `NegativeBinomialSum` finds less for itself. They are here for
    comparison.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Above 0, at most 1.
    delta : float, int, Fraction or decimal string
        Strictly between 0 and 1.

    Returns
    -------
    Theorem39Parameters
        p is at most e**(-0.2 epsilon) and within 2**-60 of it; r is at least what the theorem says, by a few units
        in the last place of a float.

    Examples
    --------
    >>> r, p = theorem_39_parameters(1, 1e-3)
    >>> round(float(r), 4), round(float(p), 4)
    (23.7233, 0.8187)
    >>> f"{negative_binomial_divergence(r, p, 1).upper:.4g}"  # half a billion times less than asked for
    '1.541e-12'
    """
    level = parse_level(epsilon)
    probability = parse_delta(delta)
    if not 0 < float(level) <= 1:
        raise ValueError(f"epsilon must be above 0 and at most 1 in Theorem 39; got {short_repr(epsilon)}")
    if not 0 < probability < 1:
        raise ValueError(f"delta must be in (0, 1) here, ends excluded; got {short_repr(delta)}")
    exponent = level.exponent or Fraction(_core.ln_bounds(level.ratio)[1])
    _, upper = _core.exp_bounds(_core.Level(Fraction(1), exponent / 5), 80)
    p = Fraction(math.floor(2**64 / upper), 2**64)
    return Theorem39Parameters(3 * (1 + Fraction(_core.ln_bounds(1 / probability)[1])), p)


def negative_binomial_divergence(r: Delta, p: Delta, epsilon: Epsilon, *, two_counts: bool = False) -> Bounds:
    """What NB(r, p) noise hides, exactly: the least delta for neighboring counts at this epsilon.

    The larger hockey-stick divergence, over both directions, of Y and Y + 1 for Y ~ NB(r, p), or, with `two_counts`,
    of (Y1 + 1, Y2) and (Y1, Y2 + 1) for independent Y1 and Y2: one user is replaced and moves from one count to
    another.

    Parameters
    ----------
    r : float, int, Fraction or decimal string
        Above 1. For r <= 1 the likelihood ratios that the calculation rests on do not fall.
    p : float, int, Fraction or decimal string
        Strictly between 0 and 1: P[Y = k] = C(k + r - 1, k) (1 - p)**r p**k. NumPy and SciPy call 1 - p what is p here.
    epsilon : float, int, Fraction, decimal string or LogRatio
        At least 0, at most 64.
    two_counts : bool

    Returns
    -------
    Bounds
        Outward-rounded floats around the exact number, usually equal or adjacent.

    Raises
    ------
    BudgetError
        For a distribution with more than 2**20 values that matter.

    Notes
    -----
    Finite sums of outward-rounded numbers; which terms count is decided by exact comparisons. Formulas and proofs:
    docs/proofs/shuffle.md.

    Examples
    --------
    >>> exact = negative_binomial_divergence(3, "1/2", LogRatio(2, 1))
    >>> exact.lower <= 1 / 8 <= exact.upper
    True
    >>> negative_binomial_divergence("4.046", 0.904837418, 1, two_counts=True).upper < 1.4325e-4
    True
    """
    exact_p = parse_delta(p, "p", printed=False)
    level = parse_level(epsilon)
    if float(level) > 64:
        raise ValueError(f"epsilon must be at most 64 here; got {short_repr(epsilon)}")
    both = check_flag(two_counts, "two_counts")
    lower, upper = _core.negative_binomial_divergence(parse_positive(r, "r"), exact_p, core_level(level), both)
    return Bounds(round_down(lower), round_up(upper))


class SharedNoise:
    """Noise NB(r, p) that the honest users of a round add up to, and its certificate."""

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta,
        n_users: int,
        counts: int,
        dropout: Delta,
        beta: Delta | None,
        r: Delta | None,
        p: Delta | None,
    ) -> None:
        self.level = parse_level(epsilon)
        if not 0 < float(self.level) <= 64:
            raise ValueError(f"epsilon must be above 0 and at most 64 here; got {short_repr(epsilon)}")
        self.delta = parse_delta(delta)
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be in (0, 1) here, ends excluded; got {short_repr(delta)}")
        self.n_users = check_count(n_users, "n_users")
        if self.n_users > USERS_LIMIT:
            raise ValueError(f"n_users must be at most 2**32; got {short_repr(n_users)}")
        self.dropout = parse_delta(dropout, "dropout")
        if self.dropout == 1:
            raise ValueError("dropout must be below 1: somebody has to add the noise")
        self.honest = self.n_users - math.floor(self.dropout * self.n_users)
        if (r is None) != (p is None):
            raise ValueError("give both r and p, or none of them to have them calibrated")
        level = core_level(self.level)
        if r is None or p is None:
            goal = None if beta is None else parse_beta(beta)
            self.core = _core.ShuffleNoise.calibrated(level, self.delta, self.honest, self.n_users, counts == 2, goal)
        else:
            shape, ratio = parse_positive(r, "r"), parse_delta(p, "p", printed=False)
            self.core = _core.ShuffleNoise(shape, ratio, self.honest, counts == 2)
        self.r, self.p = self.core.r, self.core.p
        self.certified_delta = self.core.delta(level)[1]
        if self.certified_delta > self.delta:
            raise ValueError(
                f"r={short_repr(r)} with p={short_repr(p)} is certified for "
                f"delta={nearest_float(self.certified_delta):.3g} "
                f"only, above {nearest_float(self.delta):.3g}; choose a larger r, or neither to have both calibrated"
            )

    @cached_property
    def mean(self) -> float:
        """The mean of the noise in one count when all users take part."""
        return float(self.r * self.n_users / self.honest * self.p / (1 - self.p))

    @property
    def epsilon(self) -> Fraction | LogRatio:
        """Epsilon, exactly."""
        if self.level.ratio == 1:
            return self.level.exponent
        return LogRatio(self.level.ratio.numerator, self.level.ratio.denominator)

    def quantile(self, beta: Fraction) -> int:
        """A number that the noise in one count exceeds with probability at most beta when all users take part."""
        quantile = self.core.quantile(beta, self.n_users)
        if quantile is None:
            raise ValueError(f"beta={nearest_float(beta):.3g} is too small to tell here; choose a larger one")
        return quantile

    def profile(self, epsilons: Sequence[Epsilon] | npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Certified delta at each epsilon, rounded up."""
        epsilons = split_text(epsilons)
        if isinstance(epsilons, LogRatio) or np.ndim(np.asarray(epsilons, dtype=object)) != 1:
            raise TypeError("epsilons must be a one-dimensional sequence of privacy parameters")
        levels: list[Any] = [level_of(epsilon, "epsilons") for epsilon in epsilons]  # type: ignore[union-attr]
        return np.array([round_up(self.core.delta(level)[1]) for level in levels], dtype=np.float64)


def parse_beta(beta: Delta) -> Fraction:
    """Read a probability of failure in (0, 1)."""
    value = parse_delta(beta, "beta")
    if not 0 < value < 1:
        raise ValueError(f"beta must be in (0, 1), ends excluded; got {short_repr(beta)}")
    return value
