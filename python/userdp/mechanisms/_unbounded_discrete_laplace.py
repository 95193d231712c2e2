"""Discrete Laplace noise on all integers: an exact law, not drawn in constant time."""

from __future__ import annotations

from fractions import Fraction

from userdp._numbers import (
    Bounds,
    Delta,
    Epsilon,
    PrivacyLevel,
    _exact,
    is_integer,
    parse_level,
    positive,
    round_down,
    round_up,
    shown,
)
from userdp.mechanisms._law import IntegerLaw

__all__ = ["UnboundedDiscreteLaplace"]


class UnboundedDiscreteLaplace(IntegerLaw):
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
        The most by which the integer statistic changes between neighbours: 1 by default. Only with epsilon.

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges, for both a scale and an epsilon, or none.

    Notes
    -----
    *Neighbours and sensitivity.* Let s be an integer function of datasets that changes by at most ``sensitivity``
    between neighbours: datasets where all data of one user are replaced, or whichever pairs the sensitivity was proved
    for. Then s + noise is epsilon-differentially private with epsilon = sensitivity / scale, and delta = 0. Proof:
    P[y - s] / P[y - s'] = e**((|y - s'| - |y - s|) / scale) <= e**(|s - s'| / scale). The whole budget is spent on the
    one sum. See docs/proofs/unbounded_discrete_laplace.md.

    *Law.* A sign and a geometric magnitude, floor(-scale ln U) for a uniform U in (0, 1), whose bits are drawn until a
    certified enclosure decides; both are drawn again for -0. Magnitudes of 2**63 or more, which have probability below
    2**-2953, become 2**63 - 1: the one deviation from the law, worth a delta of at most (1 + e**epsilon) 2**-2953.

    *Sums.* Python's integers add noise without overflow; int64 sums may wrap.

    *Time.* How long a draw takes depends on the noise: on its size through logarithms of long integers, on its sign
    through the redrawn -0, and on rare refinements. The proof is about the value that is released, not about the time.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009), where the law is
    the two-sided geometric one.

    Examples
    --------
    >>> noise = UnboundedDiscreteLaplace(epsilon="0.5", sensitivity=2)
    >>> noise.probability(0)
    Bounds(lower=0.1243530017715962, upper=0.12435300177159621)
    >>> noise.sample(size=3).shape
    (3,)
    """

    def __init__(
        self, *, scale: Delta | None = None, epsilon: Epsilon | None = None, sensitivity: int | None = None
    ) -> None:
        if (scale is None) == (epsilon is None):
            raise TypeError("UnboundedDiscreteLaplace takes exactly one of scale and epsilon")
        super().__init__(scale=scale, epsilon=epsilon, sensitivity=sensitivity)
        # The rate 1 / scale is the level divided by the divisor.
        if scale is not None:
            if sensitivity is not None:
                raise TypeError("sensitivity goes with epsilon: a scale says everything")
            self._level = PrivacyLevel(Fraction(1), Fraction(1))
            self._divisor = _exact(scale, "scale", "a positive float, int, Fraction or decimal string")
            if self._divisor <= 0:
                raise ValueError(f"scale must be > 0; got {shown(scale)}")
        else:
            self._level = parse_level(epsilon)
            self._divisor = Fraction(1 if sensitivity is None else positive(sensitivity, "sensitivity"))
            if self._level == PrivacyLevel(Fraction(1), Fraction(0)):
                raise ValueError(f"epsilon must be > 0 here; got {shown(epsilon)}")
        from userdp import _core
        from userdp._levels import core_level

        self._core_law = _core.TwoSidedGeometric(core_level(self._level), self._divisor)

    @property
    def scale(self) -> Bounds:
        """Floats around the scale."""
        if self._level.ratio == 1:
            exact = self._divisor / self._level.exponent
            return Bounds(round_down(exact), round_up(exact))
        from userdp import _core

        low, high = (Fraction(bound) for bound in _core.ln_bounds(self._level.ratio))
        return Bounds(round_down(self._divisor / high), round_up(self._divisor / low))

    def probability(self, x: int) -> Bounds:
        """Certified floats around P[x] = (1 - q) / (1 + q) q**|x|, where q = e**(-1 / scale).

        Raises
        ------
        TypeError
            Unless x is an int.
        """
        if not is_integer(x):
            raise TypeError(f"x must be an int; got {shown(x)}")
        return Bounds(*self._core_law.probability(abs(int(x))))
