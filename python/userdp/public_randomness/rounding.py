"""Real answers rounded to a public grid by a shared offset, so that close answers become equal."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_count, check_flag, exact_number, is_integer, short_repr
from userdp.public_randomness.seed import BLOCK_VALUES, PublicSeed, parse_label


class SharedOffsetRounding:
    """Rounds numbers to multiples of 1 / intervals, up or down by a uniform offset that all users share.

    With the offset s of a query, u becomes floor(intervals * (u - low) + s) / intervals + low. The result is one of the
    two grid points next to u, of mean u over the seed and less than 1 / intervals from it; users with u and v get
    different results with probability exactly min(1, intervals * |u - v|). Where no grid point is between them, no
    other way of drawing from the same two distributions does better.

    Privacy does not depend on any of this.

    Parameters
    ----------
    public_seed : PublicSeed, bytes of length 32 or str of 64 hexadecimal digits
        Drawn before data are read, the same for all users.
    intervals : int
        Grid points lie 1 / intervals apart, >= 1.
    signed : bool
        Whether numbers are in [-1, 1], on 2 * intervals + 1 grid points, or in [0, 1], on intervals + 1 of them.
        Numbers beyond the ends count as the end.
    label : str
        What is rounded; roundings with different labels share no bits.

    Attributes
    ----------
    points : int
        Number of grid points.

    Notes
    -----
    [GKM21, Algorithm 5], with its grid and factor corrected (docs/errata.md), and one offset instead of correlated
    sampling, which would disagree up to twice as often between two grid points. Offsets are multiples of 2**-256, so
    that probabilities are those stated to within 2**-255. Proofs: docs/proofs/correlated_sampling.md.

    Examples
    --------
    >>> rounding = SharedOffsetRounding(bytes(32), intervals=10)
    >>> index = rounding.round(0.537)
    >>> index, rounding.value(index)
    (16, Fraction(3, 5))
    >>> rounding.rounding_distribution("0.537")
    {15: Fraction(63, 100), 16: Fraction(37, 100)}
    """

    def __init__(
        self,
        public_seed: PublicSeed | bytes | str,
        *,
        intervals: int,
        signed: bool = True,
        label: str = "rounding",
    ) -> None:
        self.public_seed = PublicSeed(public_seed)
        self.intervals = check_count(intervals, "intervals")
        self.signed = check_flag(signed, "signed")
        self.label = parse_label(label)
        self._low = -1 if signed else 0

    @property
    def points(self) -> int:
        """Number of grid points."""
        return self.intervals * (1 - self._low) + 1

    def round(self, value: Any, query: int = 0) -> int:
        """The index of the grid point that a number becomes.

        Parameters
        ----------
        value : float, int, Fraction or decimal string
            Taken exactly; beyond the ends of the range it counts as the end.
        query : int
            Which offset, in [0, 2**64).

        Returns
        -------
        int
            From 0 to points - 1; index j is the number `value(j)`.
        """
        scaled = self._scaled(value)
        offset = int.from_bytes(self.public_seed.block(self.label, query), "little")
        # In integers, which are several times faster than fractions: floor(scaled + offset / 2^256).
        below = scaled.denominator
        return (scaled.numerator * BLOCK_VALUES + offset * below) // (below * BLOCK_VALUES)

    def round_ratios(self, numerators: npt.ArrayLike, denominator: int, query: int = 0) -> npt.NDArray[np.int64]:
        """Indices of the grid points that many quotients of one denominator become, in integers throughout.

        Parameters
        ----------
        numerators : array-like of int, any shape
            The numbers are numerators / denominator, such as means of as many signs; beyond the ends of the range they
            count as the end.
        denominator : int
            The same for all, >= 1.
        query : int
            Which offset, in [0, 2**64).

        Returns
        -------
        ndarray of int64
            Of the numerators' shape, each as `round` gives it.
        """
        below = check_count(denominator, "denominator")
        if self.intervals * below >= 2**61:
            raise ValueError("denominator: intervals * denominator must be below 2**61; use round for single numbers")
        above = np.asarray(numerators)
        if above.size and above.dtype.kind not in "iu":
            raise TypeError(f"numerators must be ints; got dtype {above.dtype}")
        if above.dtype.kind == "u":
            above = np.minimum(above, np.uint64(below))
        shifted = np.clip(above.astype(np.int64), self._low * below, below) - self._low * below
        whole, rest = np.divmod(shifted * self.intervals, below)
        # rest / below + offset >= 1
        least = math.ceil(below * (1 - self.public_seed.offset(self.label, query)))
        return np.asarray(whole + (rest >= least), dtype=np.int64)

    def value(self, index: int) -> Fraction:
        """The grid point of an index.

        Parameters
        ----------
        index : int
            From 0 to points - 1.
        """
        if not is_integer(index) or not 0 <= index < self.points:
            raise ValueError(f"index must be an int from 0 to {self.points - 1}; got {short_repr(index)}")
        return Fraction(int(index), self.intervals) + self._low

    def rounding_distribution(self, value: Any) -> dict[int, Fraction]:
        """The exact distribution of `round` over a uniform offset.

        Parameters
        ----------
        value : float, int, Fraction or decimal string
            As for `round`.

        Returns
        -------
        dict from index to Fraction
            Of one or two neighboring grid points.
        """
        scaled = self._scaled(value)
        low = math.floor(scaled)
        up = scaled - low
        return {low: 1 - up, low + 1: up} if up else {low: Fraction(1)}

    def disagreement_probability(self, first: Any, second: Any) -> Fraction:
        """The exact probability, over a uniform offset, that two numbers become different grid points.

        Parameters
        ----------
        first, second : float, int, Fraction or decimal string
            As for `round`.

        Returns
        -------
        Fraction
            min(1, intervals * abs(first - second)), for numbers in the range.
        """
        return min(Fraction(1), abs(self._scaled(first) - self._scaled(second)))

    def _scaled(self, value: Any) -> Fraction:
        """Intervals times the distance of a number from the low end."""
        try:
            number = exact_number(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"value {short_repr(value)}: {error}") from None
        if number is None:
            raise ValueError(f"value must be finite; got {short_repr(value)}")
        above = number.numerator - self._low * number.denominator
        kept = min(max(above, 0), (1 - self._low) * number.denominator)
        return Fraction(self.intervals * kept, number.denominator)
