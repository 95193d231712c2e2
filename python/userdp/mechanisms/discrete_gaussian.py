"""Discrete Gaussian noise on integers: integer weights, drawn by rejection in constant-time trials."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Neighbors, check_count, is_integer, parse_positive, short_repr, stated_neighbors
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import AdditiveNoise

if TYPE_CHECKING:
    from userdp.accounting import PrivacyLossDistribution

Integers: TypeAlias = npt.NDArray[Any]

OUTPUTS_LIMIT = 2**20
"""The most outputs of a listed distribution."""
LISTED_SHIFT, LISTED_VARIANCE = 2**16, 2**22
"""The most for which losses of the noise on one integer are listed."""
SMOOTHING, SMOOTHED_WITHIN = 4, Fraction(1, 2**112)
"""Of the variance, what a random rounding to integers takes, and how near the result is to discrete noise."""
SIGNIFICANT_BITS = 64
"""A variance that is computed from rho is rounded up to this many."""


class DiscreteGaussian(AdditiveNoise):
    """Integers plus noise with P[x] near e**(-x**2 / (2 sigma_squared)): zero-concentrated DP.

    The noise has a distribution of integer weights, which is what is drawn and what `pmf` returns. It is within
    `distance` of the ideal discrete Gaussian on all integers, in total variation.

    Parameters
    ----------
    sigma_squared : int, float, Fraction or decimal string, optional
        The parameter of the noise in units of value squared, from 1/100 to 2**112; next to its variance, unless it is
        small. A float is the dyadic number it is.
    rho : int, float, Fraction or decimal string, optional
        Privacy parameter of zCDP, positive: sigma_squared is sensitivity**2 / (2 rho), rounded up to 64 significant
        bits. Exactly one of sigma_squared and rho is given.
    sensitivity : int, optional
        With rho, and only then: how far the vector of integers moves at most, in Euclidean length, between neighbors;
        at least 1.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that its loss is about. None does not say.

    Notes
    -----
    *Neighbors and sensitivity.* The vector of integers that is released moves by at most `sensitivity` in Euclidean
    length between neighbors, whichever these are. The ideal release is then `rho` (sensitivity)-zCDP
    (Canonne, Kamath and Steinke 2020, Theorem 14), and that of D integers is within D * `distance` of it in total
    variation: `userdp.accounting.zcdp_delta` computes the (epsilon, delta) of both together. The whole of rho is spent
    on the one release, and none is claimed without the distance. Proof: docs/proofs/discrete_gaussian.md.

    *Sums.* Values are clamped to [-2**62, 2**62] and the noise is below 2**60: nothing wraps.

    *Time.* A draw makes 1.2 to 1.4 trials on average (up to 2 for a sigma below 1), each of 40 random bytes and always
    of the same instructions and addresses. Their number is independent of the noise and the value. That holds for
    arrays of int64; other types are converted first, and Python's own integers are not constant time.

    References
    ----------
    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020).

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.accounting import zcdp_delta
    >>> noise = DiscreteGaussian(rho="1/50", sensitivity=2)
    >>> noise.sigma_squared
    Fraction(100, 1)
    >>> noise.sample(np.array([[3, 5], [0, 1000]])).shape
    (2, 2)
    >>> float(zcdp_delta(noise.rho(2), 1, distance=4 * noise.distance))  # doctest: +ELLIPSIS
    8.825...e-08
    >>> sum(noise.pmf(17).fractions())
    Fraction(1, 1)
    """

    _range = (-(2**62), 2**62)  # as in the core: with noise below 2**60 nothing wraps

    def __init__(
        self,
        *,
        sigma_squared: float | Fraction | str | None = None,
        rho: float | Fraction | str | None = None,
        sensitivity: int | None = None,
        neighbors: Neighbors | None = None,
    ) -> None:
        if (sigma_squared is None) == (rho is None):
            raise TypeError(
                "DiscreteGaussian takes either sigma_squared, or rho and sensitivity; got "
                + ("neither sigma_squared nor rho" if rho is None else "both sigma_squared and rho")
            )
        if sigma_squared is not None:
            if sensitivity is not None:
                raise TypeError("sensitivity belongs to rho; with sigma_squared leave it out")
            self._sigma_squared = parse_positive(sigma_squared, "sigma_squared")
        else:
            if sensitivity is None:
                raise TypeError(
                    "rho needs sensitivity: how far one user moves the integers in Euclidean length, an int >= 1"
                )
            squared = Fraction(check_count(sensitivity, "sensitivity") ** 2)
            least = squared / (2 * parse_positive(rho, "rho", printed=True))
            self._sigma_squared = _rounded_up(least)
        relation = stated_neighbors(neighbors)
        super().__init__(sigma_squared=sigma_squared, rho=rho, sensitivity=sensitivity, neighbors=relation)
        self._core_noise  # noqa: B018  refuses what is out of range

    @cached_property
    def _core_noise(self) -> _core.DiscreteGaussian:

        return _core.DiscreteGaussian(self._sigma_squared)

    @cached_property
    def _sums(self) -> list[int]:
        """The weights of x and all above, for x = 0, ..., support + 1."""
        if self.support > OUTPUTS_LIMIT // 2:
            raise BudgetError(f"the noise has {2 * self.support + 1} outputs, above {OUTPUTS_LIMIT}")
        return list(itertools.accumulate([0, *self._core_noise.weights()[::-1]]))[::-1]

    @property
    def _weight_of_zero(self) -> int:
        return self._sums[0] - self._sums[1]

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter of the ideal distribution, exactly."""
        return self._sigma_squared

    @property
    def support(self) -> int:
        """The noise is from -support to support."""
        return self._core_noise.support

    @property
    def distance(self) -> Fraction:
        """A proved bound of the total variation between the noise of one integer and the ideal one on all integers."""
        return self._core_noise.distance

    def rho(self, sensitivity: int) -> Fraction:
        """The zCDP parameter of ideal noise, for integers that move by at most `sensitivity` in Euclidean length."""
        return Fraction(check_count(sensitivity, "sensitivity") ** 2) / (2 * self._sigma_squared)

    def privacy_loss(self, sensitivity: int | None = None, dimension: int = 1) -> PrivacyLossDistribution:
        """The privacy loss of the release of a vector of integers.

        Parameters
        ----------
        sensitivity : int, optional
            How far the vector moves at most, in Euclidean length, between neighbors; at least 1. By default the one
            that the noise was made with.
        dimension : int
            How many integers are released.

        Returns
        -------
        PrivacyLossDistribution
            For one integer that of discrete Gaussian noise, where `PrivacyLossDistribution.discrete_gaussian` takes it.
            Else that of continuous noise with ``mu^2 = sensitivity**2 / (sigma_squared - 4)``, which is a little worse.
            In both cases `distance` says how far the noise that is drawn is from it, for each integer.

        Raises
        ------
        ValueError
            For several integers and a sigma_squared of at most 4.

        Notes
        -----
        Continuous noise of variance sigma_squared - 4 on integers, followed by a random rounding, is within 2**-112 of
        the ideal noise: docs/proofs/gaussian_budget.md.

        Examples
        --------
        >>> noise = DiscreteGaussian(sigma_squared=100)
        >>> noise.privacy_loss(2, dimension=5)  # doctest: +ELLIPSIS
        PrivacyLossDistribution(Gaussian noise (mu^2 = 0.0416667), within ...)
        """
        from userdp.accounting import PrivacyLossDistribution
        from userdp.accounting.cost import PrivacyCost
        from userdp.accounting.privacy_loss import loss_of_cost

        moved = sensitivity if sensitivity is not None else self._arguments.get("sensitivity")
        if moved is None:
            raise TypeError("sensitivity is missing: how far one user moves the integers in Euclidean length")
        length, count = check_count(moved, "sensitivity"), check_count(dimension, "dimension")
        variance = self._sigma_squared
        if count == 1 and length <= LISTED_SHIFT and variance <= LISTED_VARIANCE:
            once = PrivacyLossDistribution.discrete_gaussian(variance, length, neighbors=self.neighbors)
            return once.within(self.distance)
        if variance <= SMOOTHING:
            raise ValueError(
                f"dimension={count}: several integers need a sigma_squared above {SMOOTHING}; "
                f"it is {float(variance):.6g}"
            )
        mu2, distance = Fraction(length**2) / (variance - SMOOTHING), count * (self.distance + SMOOTHED_WITHIN)
        return loss_of_cost(PrivacyCost(mu2=mu2, distance=min(distance, Fraction(1)), neighbors=self.neighbors))

    def tail(self, x: int) -> Fraction:
        """The probability that the noise of one integer is x or more, exactly as it is drawn.

        Raises
        ------
        BudgetError
            Where the distribution has more than 2**20 outputs.
        """
        if not is_integer(x):
            raise TypeError(f"x must be an int; got {short_repr(x)}")
        whole = self._sums[0]
        if x > self.support:
            return Fraction(0)
        above = self._sums[x] if x >= 0 else 2 * whole - self._weight_of_zero - self._sums[min(1 - x, self.support + 1)]
        return Fraction(above, 2 * whole - self._weight_of_zero)

    def pmf(self, value: int | Integers | tuple[int, ...]) -> Pmf:
        """The distribution of the release of an integer or of several integers, exactly as it is drawn.

        Parameters
        ----------
        value : int, tuple of int, or ndarray of an integer type
            Clamped to [-2**62, 2**62].

        Returns
        -------
        Pmf
            Over ints; for several integers over tuples of as many: a product of independent distributions.

        Raises
        ------
        BudgetError
            For more than 2**20 outputs.
        """
        if isinstance(value, np.ndarray):
            value = tuple(self._int64(value).reshape(-1).tolist())
        centers = [self._clamped(center) for center in (value if isinstance(value, tuple) else (value,))]
        width = 2 * self.support + 1
        if width ** min(len(centers), 21) > OUTPUTS_LIMIT:
            raise BudgetError(
                f"the distribution of {len(centers)} integers has {width}**{len(centers)} outputs, "
                f"above {OUTPUTS_LIMIT}; list "
                "the distribution of fewer integers, or of a smaller sigma_squared"
            )
        weights = self._weights
        if not isinstance(value, tuple):
            start = centers[0] - self.support
            return Pmf(tuple(range(start, start + width)), weights)
        ranges = [range(center - self.support, center + self.support + 1) for center in centers]
        products = itertools.product(weights, repeat=len(centers))
        return Pmf(tuple(itertools.product(*ranges)), tuple(map(math.prod, products)))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        """Of all outputs around a value, from the least on; an audit asks for them on every path."""
        half = self._core_noise.weights()
        return (*half[:0:-1], *half)

    def _draw(self, source: _core.Source, values: int | Integers | tuple[int, ...]) -> int | tuple[int, ...]:
        """A release that can be hashed, from a source that several mechanisms share: a tuple for arrays and tuples."""
        if isinstance(values, tuple):
            values = np.array([self._clamped(value) for value in values], dtype=np.int64)
        if isinstance(values, np.ndarray):
            return tuple(self._release_many(self._int64(values).reshape(-1), source).tolist())
        return super()._draw(source, values)


def _rounded_up(x: Fraction) -> Fraction:
    """The least number of SIGNIFICANT_BITS bits that is not below x > 0."""
    places = SIGNIFICANT_BITS - (x.numerator.bit_length() - x.denominator.bit_length())
    unit = Fraction(2) ** -places
    return math.ceil(x / unit) * unit
