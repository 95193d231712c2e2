"""Discrete Laplace noise, bounded or on all integers, drawn in constant time."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from userdp import _core
from userdp.exact.epsilon import as_epsilon, core_level, value_enclosure
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    LogRatio,
    Neighbors,
    PrivacyLevel,
    check_count,
    is_integer,
    nearest_float,
    nonzero_level,
    parse_exact,
    parse_level,
    parse_positive,
    round_down,
    round_up,
    short_repr,
    stated_neighbors,
)
from userdp.exact.pmf import Pmf
from userdp.mechanisms.base import AdditiveNoise, IntegerDistribution

if TYPE_CHECKING:
    from userdp.accounting import PrivacyLossDistribution

LISTED_SHIFT = 2**16
"""The largest sensitivity for which losses of the noise are listed."""
FOLDED = Fraction(1, 2**2953)
"""More than the probability of noise beyond 64 bits."""


class DiscreteLaplace(AdditiveNoise):
    """Discrete Laplace noise added to integers in a public range, the sum clamped to that range: pure DP.

    The release of a value v is ``clamp(clamp(v) + X)`` with the ideal noise P[X = x] proportional to e**(-|x| / scale).
    What is drawn here, and what `pmf` returns, is an exact table of integers next to it.

    Parameters
    ----------
    scale : float, int, Fraction or decimal string, optional
        The scale of the noise in units of value, positive and at most about 2**32. A float is the dyadic number it is.
    epsilon : float, int, Fraction, decimal string or LogRatio, optional
        Privacy parameter, positive: the scale is sensitivity / epsilon. Exactly one of scale and epsilon is given.
    sensitivity : int, optional
        With epsilon, and only then: how much the value changes at most when one user is replaced; at least 1.
    bounds : tuple of two int
        (low, high) with low < high, both within int64 and at most 2**62 apart. Public. Values outside are clamped to
        it, silently and by design: an error would tell something about a private value.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that its loss is about. None does not say.

    Raises
    ------
    BudgetError
        When the tables are built, and they would have more than 2**16 entries: a scale above about 2**24 in a range
        that is wider still. Round the values to a coarser public grid.

    Notes
    -----
    *Neighbors and sensitivity.* The value changes by at most `sensitivity` between neighbors, whichever these are. One
    release is then epsilon-DP (pure) and spends the whole budget; the releases of an array add up, unless each user
    touches one entry only. The tables are certified in integers when they are built. Proof:
    docs/proofs/discrete_laplace.md.

    *The distribution.* `pmf` is exactly what is drawn. Privacy rests on it alone, not on how near it is to the ideal
    clamped distribution. That is measured, not proved: below 2**-80 in total variation in all cases of the tests
    (scales up to 100). e**(1 / scale) is cut at 2**64: for scales below 0.0225 the noise is that of 0.0225.

    *Time.* A draw takes 16 or 32 random bytes and reads its tables whole: no branch and no address depends on the value
    or the bits, for arrays of int64. Other types are converted first, and Python's own integers are not constant time.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (STOC 2009), the range-restricted geometric mechanism. [LWY24, Lemma 2.5].

    Examples
    --------
    >>> import numpy as np
    >>> noise = DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 1000))
    >>> noise.scale
    2.0
    >>> 0 <= noise.sample(17) <= 1000
    True
    >>> noise.sample(np.array([[3, 5], [0, 1000]])).shape
    (2, 2)
    >>> noise.certified_epsilon <= 1
    True
    >>> sum(noise.pmf(17).fractions())
    Fraction(1, 1)
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    def __init__(
        self,
        *,
        scale: float | Fraction | str | None = None,
        epsilon: Epsilon | None = None,
        sensitivity: int | None = None,
        bounds: tuple[int, int],
        neighbors: Neighbors | None = None,
    ) -> None:
        if (scale is None) == (epsilon is None):
            raise TypeError(
                "DiscreteLaplace takes either scale, or epsilon and sensitivity; got "
                + ("neither scale nor epsilon" if scale is None else "both scale and epsilon")
            )
        if scale is not None and sensitivity is not None:
            raise TypeError("sensitivity belongs to epsilon; with scale leave it out")
        if scale is not None:
            self._level, self._sensitivity = PrivacyLevel(Fraction(1), 1 / parse_positive(scale, "scale")), None
        else:
            if sensitivity is None:
                raise TypeError("epsilon needs sensitivity: how much one user changes the value, an int >= 1")
            self._level, self._sensitivity = nonzero_level(epsilon), check_count(sensitivity, "sensitivity")
        self._range = _bounds(bounds)
        super().__init__(
            scale=scale,
            epsilon=epsilon,
            sensitivity=sensitivity,
            bounds=self._range,
            neighbors=stated_neighbors(neighbors),
        )

    @cached_property
    def _core_noise(self) -> _core.DiscreteLaplaceTables:

        return _core.DiscreteLaplaceTables(core_level(self._level).root_below(self._sensitivity or 1), *self._range)

    @property
    def bounds(self) -> tuple[int, int]:
        """The public range (low, high)."""
        return self._range

    @property
    def scale(self) -> float:
        """The scale of the ideal noise in units of value, as a float: sensitivity / epsilon; inf above all floats."""
        epsilon = self._level.exponent if self._level.ratio == 1 else Fraction(float(self._level))
        # A LogRatio may be nearer to 0 than any float; no table holds that noise.
        return nearest_float((self._sensitivity or 1) / epsilon) if epsilon else math.inf

    @property
    def certified_epsilon_per_unit(self) -> float:
        """A bound, rounded up, of |ln P[z | v] - ln P[z | v + 1]| over all values v and outputs z.

        At most 1 / scale, rounded up to a float.
        """
        return min(_core.ln_bounds(self._core_noise.largest_ratio)[1], self._requested(self._sensitivity or 1))

    @property
    def certified_epsilon(self) -> float:
        """The same for values up to `sensitivity` apart; at most epsilon, rounded up to a float.

        Raises
        ------
        ValueError
            When the sensitivity was not given, that is with scale; see `certified_epsilon_per_unit`.
        """
        if self._sensitivity is None:
            raise ValueError(
                "certified_epsilon needs epsilon and sensitivity; with scale use certified_epsilon_per_unit"
            )
        of_the_tables = round_up(self._sensitivity * Fraction(self.certified_epsilon_per_unit))
        return min(of_the_tables, self._requested(1))

    def privacy_loss(self, sensitivity: int | None = None) -> PrivacyLossDistribution:
        """The privacy loss of the release of an integer: that of discrete Laplace noise without bounds.

        Parameters
        ----------
        sensitivity : int, optional
            How much the value changes between neighbors, at least 1. By default the one that the noise was made with.

        Returns
        -------
        PrivacyLossDistribution
            Clamping only takes from it, and ratios of the tables are at most those of the ideal noise for each unit:
            docs/proofs/exact_composition.md, section 8. Clamped values move by the width of the bounds at most. Beyond
            a sensitivity of 2**16 that of continuous noise, which is above it by a loss of rate**2 / 4.
        """
        from userdp.accounting import PrivacyLossDistribution
        from userdp.accounting.privacy_loss import laplace_above

        moved = sensitivity if sensitivity is not None else self._sensitivity
        if moved is None:
            raise TypeError("sensitivity is missing: how much one user changes the value")
        rate = rate_above(self._level, Fraction(self._sensitivity or 1))
        low, high = self._range
        length = min(check_count(moved, "sensitivity"), high - low)
        if length <= LISTED_SHIFT:
            return PrivacyLossDistribution.discrete_laplace(rate, length, neighbors=self.neighbors)
        above = value_enclosure(parse_level(rate))[1]
        return laplace_above(above * length + above**2 / 4, self.neighbors)

    def _requested(self, degree: int) -> float:
        """What was asked for, divided by `degree`, rounded up."""
        if self._level.ratio == 1:
            return round_up(self._level.exponent / degree)
        return round_up(Fraction(_core.ln_bounds(self._level.ratio)[1]) / degree)

    def tail(self, x: int) -> Fraction:
        """The probability that the noise, before the sum is clamped, is x or more, exactly as it is drawn."""
        if not is_integer(x):
            raise TypeError(f"x must be an int; got {short_repr(x)}")
        if x <= 0:
            return 1 - self.tail(1 - x)  # it is symmetric
        _, high, level, low, bits = self._core_noise.digits
        size, place = len(low), int(x) - 1
        if place >= len(high) * size:
            beyond = place - len(high) * size
            return Fraction(level * max(0, 2**bits - beyond), 2 ** (128 + bits))
        digit, rest = divmod(place, size)
        above = high[digit] * sum(low[rest:]) + sum(high[digit + 1 :]) * sum(low)
        return Fraction(above, 2**256) + Fraction(level, 2**128)

    def pmf(self, value: int) -> Pmf:
        """The distribution of the release of a value, exactly as it is drawn: outputs low, ..., high.

        Parameters
        ----------
        value : int
            Clamped to the bounds.

        Returns
        -------
        Pmf
            high - low + 1 outputs; integer weights whose total is a power of 2.

        Raises
        ------
        BudgetError
            For more than 2**20 outputs.
        """
        weights, _ = self._core_noise.numerators(self._clamped(value))
        low, high = self._range
        return Pmf(tuple(range(low, high + 1)), tuple(weights))


def rate_above(level: PrivacyLevel, divisor: Fraction) -> Fraction | LogRatio:
    """An epsilon, divided; rounded up where it is a part of the logarithm of a fraction."""
    return as_epsilon(level) if divisor == 1 else value_enclosure(level)[1] / divisor


def _bounds(bounds: Any) -> tuple[int, int]:
    """Read the public range."""
    accepted = "bounds must be (low, high), two ints within int64 with low < high <= low + 2**62"
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"{accepted}; got {short_repr(bounds)}")
    if not all(is_integer(end) for end in bounds):
        raise TypeError(f"{accepted}; got {short_repr(bounds)}")
    low, high = int(bounds[0]), int(bounds[1])
    if not -(2**63) <= low < high < 2**63 or high - low > 2**62:
        raise ValueError(f"{accepted}; got {short_repr(bounds)}")
    return low, high


class UnboundedDiscreteLaplace(IntegerDistribution):
    """Noise with P[x] proportional to e**(-|x| / scale) on all integers, exactly; not drawn in constant time.

    **The time of a draw depends on the noise.** Wherever somebody who must not know the noise could measure how long a
    release takes, use `DiscreteLaplace` instead: bounded, and drawn in constant time. This one is for simulations, for
    tests, and for releases that nobody times.

    Parameters
    ----------
    scale : float, int, Fraction or decimal string, optional
        A positive number, at most 2**52. A float is the dyadic number it is.
    epsilon : float, int, Fraction, decimal string or LogRatio, optional
        Privacy parameter, positive. With the sensitivity, in place of the scale: scale = sensitivity / epsilon.
    sensitivity : int
        The most by which the integer statistic changes between neighbors: 1 by default. Only with epsilon.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that its loss is about. None does not say.

    Notes
    -----
    *Neighbors and sensitivity.* Let s be an integer function of datasets that changes by at most ``sensitivity``
    between neighbors (one replaced user, or whichever pairs the sensitivity was proved for). Then s + noise is
    epsilon-DP with epsilon = sensitivity / scale and delta = 0; the whole budget is spent on the one sum. Proof:
    docs/proofs/unbounded_discrete_laplace.md.

    *Distribution.* A sign and a geometric magnitude, floor(-scale ln U) for a uniform U in (0, 1), whose bits are drawn
    until a certified enclosure decides; both are drawn again for -0. Magnitudes of 2**63 or more, which have
    probability below 2**-2953, become 2**63 - 1: the one deviation from the distribution, worth a delta of at most (1 +
    e**epsilon) 2**-2953.

    *Sums.* Python's integers add noise without overflow; int64 sums may wrap.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (STOC 2009), where the distribution is the two-sided geometric one.

    Examples
    --------
    >>> noise = UnboundedDiscreteLaplace(epsilon="0.5", sensitivity=2)
    >>> noise.probability(0)
    Bounds(lower=0.1243530017715962, upper=0.12435300177159621)
    >>> noise.sample(size=3).shape
    (3,)
    """

    def __init__(
        self,
        *,
        scale: Delta | None = None,
        epsilon: Epsilon | None = None,
        sensitivity: int | None = None,
        neighbors: Neighbors | None = None,
    ) -> None:
        if (scale is None) == (epsilon is None):
            raise TypeError("UnboundedDiscreteLaplace takes exactly one of scale and epsilon")
        relation = stated_neighbors(neighbors)
        super().__init__(scale=scale, epsilon=epsilon, sensitivity=sensitivity, neighbors=relation)
        # The rate 1 / scale is the level divided by the divisor.
        if scale is not None:
            if sensitivity is not None:
                raise TypeError("sensitivity goes with epsilon: a scale says everything")
            self._level = PrivacyLevel(Fraction(1), Fraction(1))
            self._divisor = parse_exact(scale, "scale", "a positive float, int, Fraction or decimal string")
            if self._divisor <= 0:
                raise ValueError(f"scale must be > 0; got {short_repr(scale)}")
        else:
            self._level = nonzero_level(epsilon)
            self._divisor = Fraction(1 if sensitivity is None else check_count(sensitivity, "sensitivity"))

        self._core_sampler = _core.TwoSidedGeometric(core_level(self._level), self._divisor)

    @property
    def scale(self) -> Bounds:
        """Floats around the scale."""
        if self._level.ratio == 1:
            exact = self._divisor / self._level.exponent
            return Bounds(round_down(exact), round_up(exact))

        low, high = (Fraction(bound) for bound in _core.ln_bounds(self._level.ratio))
        return Bounds(round_down(self._divisor / high), round_up(self._divisor / low))

    def privacy_loss(self, sensitivity: int | None = None) -> PrivacyLossDistribution:
        """The privacy loss of an integer plus this noise, exactly but for a `distance` of 2**-2953.

        Parameters
        ----------
        sensitivity : int, optional
            The most by which the integer changes between neighbors, from 1 to 2**16. By default the one that the noise
            was made with, or 1.
        """
        from userdp.accounting import PrivacyLossDistribution

        moved = sensitivity if sensitivity is not None else self._arguments.get("sensitivity", 1)
        rate = rate_above(self._level, self._divisor)
        return PrivacyLossDistribution.discrete_laplace(rate, moved, neighbors=self.neighbors).within(FOLDED)

    def probability(self, x: int) -> Bounds:
        """Certified floats around P[x] = (1 - q) / (1 + q) q**|x|, where q = e**(-1 / scale)."""
        if not is_integer(x):
            raise TypeError(f"x must be an int; got {short_repr(x)}")
        return Bounds(*self._core_sampler.probability(abs(int(x))))
