"""Biased coins with an exact probability, rational or a power of e."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from userdp._numbers import Bounds, Delta, _exact, parse_delta, round_down, round_up, shown
from userdp._pmf import Pmf
from userdp._sizes import number_of
from userdp.mechanisms._law import Law

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["BiasedCoin"]

VANISHING = 2**10
"""e^-x is below the least positive float from here on."""


class BiasedCoin(Law[bool, np.bool_]):
    """True with an exact probability: a rational one, or e**-x for a rational x.

    Parameters
    ----------
    probability : float, int, Fraction or decimal string, optional
        A probability in [0, 1]. A float is the dyadic number it is: write ``"0.1"`` or ``Fraction(1, 10)`` for a tenth.
    log_probability : float, int, Fraction or decimal string, optional
        The natural logarithm of the probability, at most 0: ``-x`` for e**-x. Exactly one of the two is given.

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges, both, or none.

    Notes
    -----
    *Law.* A toss is True exactly when U < p for a uniform U in [0, 1). 128 bits of U are compared with the leading bits
    of p; if they are the same (probability 2**-128), the comparison goes on with 128 more bits of each. Bits of e**-x
    come from certified enclosures; e**-x is irrational for x > 0, so that the comparison is always decided.

    *Time.* A toss takes the same instructions whatever its result is. Only whether more than 128 bits were needed
    shows, and that has probability 2**-128 for every coin.

    *Privacy.* A coin is a part of mechanisms, and gives no guarantee by itself.

    Examples
    --------
    >>> coin = BiasedCoin(probability="1/3")
    >>> coin.probability
    Fraction(1, 3)
    >>> coin.sample() in (True, False)
    True
    >>> BiasedCoin(log_probability=-1).probability
    Bounds(lower=0.3678794411714423, upper=0.36787944117144233)
    """

    def __init__(self, *, probability: Delta | None = None, log_probability: Delta | None = None) -> None:
        if (probability is None) == (log_probability is None):
            raise TypeError("BiasedCoin takes exactly one of probability and log_probability")
        super().__init__(probability=probability, log_probability=log_probability)
        self._rational = Fraction(1)
        self._minus_log = Fraction(0)
        if probability is not None:
            self._rational = parse_delta(probability, "probability")
        else:
            accepted = "a float, int, Fraction or decimal string, at most 0"
            self._minus_log = -_exact(log_probability, "log_probability", accepted)
            if self._minus_log < 0:
                raise ValueError(f"log_probability must be at most 0; got {shown(log_probability)}")
        from userdp import _core

        coin = _core.Coin
        self._core_coin = coin.exp_of_minus(self._minus_log) if self._minus_log else coin.rational(self._rational)

    @property
    def probability(self) -> Fraction | Bounds:
        """The probability of True: the Fraction, or floats around an irrational one."""
        if not self._minus_log:
            return self._rational
        if self._minus_log >= VANISHING:
            return Bounds(0.0, 5e-324)
        from userdp import _core

        low, high = _core.exp_bounds(_core.Level(Fraction(1), self._minus_log), 128)
        return Bounds(round_down(1 / high), round_up(1 / low))

    def pmf(self) -> Pmf:
        """The law, over the outputs False and True.

        Raises
        ------
        ValueError
            For an irrational probability.
        """
        if self._minus_log:
            raise ValueError(f"{self!r} has an irrational probability, and no Pmf holds it; see probability")
        p = self._rational
        return Pmf((False, True), (p.denominator - p.numerator, p.numerator))

    def _draw(self, source: _core.Source) -> bool:
        return bool(self._core_coin.sample(source))

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        return self._core_coin.sample_many(source, number_of(shape)).reshape(shape).astype(np.bool_)
