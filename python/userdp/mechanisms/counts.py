"""Counts: negative binomial and geometric."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from userdp.exact.numbers import Delta, check_count, parse_delta, parse_exact, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import IntegerDistribution

if TYPE_CHECKING:
    from userdp import _core

EXACT_BITS = 2**24
"""Exact probabilities are refused when they have more bits than this."""


class NegativeBinomial(IntegerDistribution):
    """A table of integers over 2**128 next to P[k] = C(k + r - 1, k) (1 - p)**r p**k, k = 0, 1, ....

    The mean of that ideal distribution is r p / (1 - p) and its variance r p / (1 - p)**2. **NumPy and SciPy call the
    other probability p**: this distribution is ``numpy``'s ``negative_binomial(n=r, p=1 - p)``.

    Parameters
    ----------
    r : float, int, Fraction or decimal string
        Any positive number; ``Fraction(r) / n`` is the share of each of n users.
    p : float, int, Fraction or decimal string
        Strictly between 0 and 1. Floats are the dyadic numbers they are.

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges.
    BudgetError
        When the table is built: for more than 2**20 entries, or a mean above that.

    Notes
    -----
    *Distribution.* The entry of k is the floor of a certified lower bound of P[k] 2**128, as far as these are positive.
    What they lack to a total of 2**128 is put on the largest entry. Proof that the total variation distance to the
    ideal distribution is at most `certified_distance`, what was put there over 2**128: no other entry exceeds the ideal
    probability.

    *Shares.* In the ideal distribution the sum of n independent shares NB(r / n, p) is NB(r, p). The sum of n tables of
    r / n is within n times their `certified_distance` of it.

    *Privacy.* This distribution is a part of protocols, which say what it protects; a distance of d to the ideal
    distribution of an (epsilon, delta)-private release adds at most (1 + e**epsilon) d to delta.

    *Time.* A draw takes 128 random bits and reads the whole table, whatever the bits are. The table is built on first
    use.

    Examples
    --------
    >>> noise = NegativeBinomial(r="23.7233", p="0.8187")
    >>> noise.certified_distance < 2**-110
    True
    >>> noise.pmf().total == 2**128
    True
    >>> noise.sample() >= 0
    True
    """

    def __init__(self, *, r: Delta, p: Delta) -> None:
        super().__init__(r=r, p=p)
        self._r = parse_exact(r, "r", "a positive float, int, Fraction or decimal string")
        if self._r <= 0:
            raise ValueError(f"r must be > 0; got {short_repr(r)}")
        self._p = parse_delta(p, "p")
        if not 0 < self._p < 1:
            raise ValueError(f"p must be in (0, 1) here, ends excluded; got {short_repr(p)}")

    @cached_property
    def _core_pmf(self) -> _core.NegativeBinomialTable:
        from userdp import _core

        return _core.NegativeBinomialTable(self._r, self._p)

    @property
    def certified_distance(self) -> Fraction:
        """At least the total variation distance to the ideal distribution."""
        return Fraction(self._core_pmf.remainder, 2**128)

    def pmf(self) -> Pmf:
        """The distribution that is drawn from: outputs 0, 1, ... and integer weights of total 2**128."""
        numerators = self._core_pmf.numerators
        return Pmf(tuple(range(len(numerators))), tuple(numerators))


class Geometric(IntegerDistribution):
    """The number of failures before the first success: P[x] = (1 - p)**x p for x = 0, 1, ..., exactly.

    **NumPy's ``geometric`` counts the success as well** and is larger by 1.

    Parameters
    ----------
    p : float, int, Fraction or decimal string
        The probability of success, from 2**-52 to 1. A float is the dyadic number it is.

    Raises
    ------
    TypeError, ValueError
        For other numbers.

    Notes
    -----
    *Distribution.* floor(ln(U) / ln(1 - p)) for a uniform U in (0, 1), whose bits are drawn until a certified enclosure
    decides. A draw of 2**63 or more, which has probability below 2**-2954, is returned as 2**63 - 1.

    *Time.* **Not constant time**: how long a draw takes depends on its bits. Do not use it for noise where the time of
    a release can be measured.

    Examples
    --------
    >>> pmf = Geometric(p="1/3")
    >>> pmf.probability(2)
    Fraction(4, 27)
    >>> pmf.sample() >= 0
    True
    """

    def __init__(self, *, p: Delta) -> None:
        super().__init__(p=p)
        self._p = parse_delta(p, "p")
        if self._p < Fraction(1, 2**52):
            raise ValueError(f"p must be from 2**-52 to 1, so that draws fit into 64 bits; got {short_repr(p)}")
        from userdp import _core

        self._core_pmf = _core.Geometric(self._p)

    def probability(self, x: int) -> Fraction:
        """P[x], exactly.

        Raises
        ------
        TypeError, ValueError
            Unless x is an int >= 0.
        BudgetError
            When the fraction would have more than 2**24 bits.
        """
        count = check_count(x, "x", 0)
        failure = 1 - self._p
        if failure == 0:
            return Fraction(count == 0)
        bits = failure.denominator.bit_length() * (count + 1)
        if bits > EXACT_BITS:
            raise BudgetError(
                f"the exact P[x] at x={short_repr(count)} would have about 2**{math.log2(bits):.1f} bits, above "
                f"2**{math.log2(EXACT_BITS):.0f}; use a p of a smaller denominator or a smaller x"
            )
        return failure**count * self._p
