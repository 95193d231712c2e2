"""Exact distributions to draw from: categories, coins, integers in a range, subsets, negative binomial, geometric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import (
    Bounds,
    Delta,
    capped_binomial,
    check_count,
    parse_delta,
    parse_exact,
    round_down,
    round_up,
    short_repr,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import Distribution, IntegerDistribution, TableDistribution
from userdp.runtime import number_of

SIZE_LIMIT = 2**20
"""The most weights, as in the core."""


class Categorical(IntegerDistribution):
    """The index i with probability exactly weights[i] / (weights[0] + ... + weights[k - 1]).

    Parameters
    ----------
    weights : sequence of int, Fraction or decimal string, int array of shape (k,), or Pmf
        Public, exact, non-negative weights. As integers without a common factor their total is at most 2**128; k is at
        most 2**20. Floats are refused: `exact_pmf` says what they become. Of a Pmf, indices of its outputs are drawn.

    Raises
    ------
    BudgetError
        For more than 2**20 weights.

    Notes
    -----
    *Distribution.* A uniform integer below the total, as in `UniformInteger`, is compared with all sums weights[0] +
    ... + weights[i]; the number of sums that are at most the integer is the index.

    *Time.* The whole table is read whatever the index is. Only the number of rejected words shows, which does not
    depend on the index. The weights are public.

    Examples
    --------
    >>> answer = Categorical(weights=["1/2", "1/3", "1/6"])
    >>> answer.pmf().weights
    (3, 2, 1)
    >>> answer.sample() in (0, 1, 2)
    True
    """

    def __init__(self, *, weights: Iterable[int | Fraction | str] | Pmf) -> None:
        if isinstance(weights, (str, bytes, Mapping, Set)):
            raise TypeError(f"weights must be a sequence of exact numbers or a Pmf; got {short_repr(weights)}")
        if isinstance(weights, np.ndarray) and weights.ndim != 1:
            raise ValueError(f"weights must be one-dimensional; got the shape {weights.shape}")
        try:
            given = weights.weights if isinstance(weights, Pmf) else tuple(weights)
        except TypeError:
            raise TypeError(
                f"weights must be a sequence of exact numbers or a Pmf; got {short_repr(weights)}"
            ) from None
        if len(given) > SIZE_LIMIT:
            raise BudgetError(
                f"weights has {len(given)} entries, and every draw reads them all; at most {SIZE_LIMIT} are accepted: "
                "split the outcomes into groups and draw a group first"
            )
        integers = Pmf.from_weights(given).weights
        factor = math.gcd(*integers)
        self._pmf = Pmf(tuple(range(len(integers))), tuple(weight // factor for weight in integers), positional=True)
        if self._pmf.total > 2**128:
            raise ValueError(
                f"weights: without common factors their total is about 2**{math.log2(self._pmf.total):.1f}, and a draw "
                "compares numbers of 128 bits; round them to a total of at most 2**128"
            )
        super().__init__(weights=list(given))

        self._core_sampler = _core.Categorical(self._pmf.weights)

    def pmf(self) -> Pmf:
        """The distribution, over the indices, with weights in lowest terms."""
        return self._pmf


VANISHING = 2**10
"""e^-x is below the least positive float from here on."""


class BiasedCoin(Distribution[bool, np.bool_]):
    """True with an exact probability: a rational one, or e**-x for a rational x.

    Parameters
    ----------
    probability : float, int, Fraction or decimal string, optional
        A probability in [0, 1]. A float is the dyadic number it is: write ``"0.1"`` or ``Fraction(1, 10)`` for a tenth.
    log_probability : float, int, Fraction or decimal string, optional
        The natural logarithm of the probability, at most 0: ``-x`` for e**-x. Exactly one of the two is given.

    Notes
    -----
    *Distribution.* A toss is True exactly when U < p for a uniform U in [0, 1). 128 bits of U are compared with the
    leading bits of p; if they are the same (probability 2**-128), the comparison goes on with 128 more bits of each.
    Bits of e**-x come from certified enclosures; e**-x is irrational for x > 0, so that the comparison is always
    decided.

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
            self._rational = parse_delta(probability, "probability", printed=False)
        else:
            accepted = "a float, int, Fraction or decimal string, at most 0"
            self._minus_log = -parse_exact(log_probability, "log_probability", accepted)
            if self._minus_log < 0:
                raise ValueError(f"log_probability must be at most 0; got {short_repr(log_probability)}")

        coin = _core.Coin
        self._core_coin = coin.exp_of_minus(self._minus_log) if self._minus_log else coin.rational(self._rational)

    @property
    def probability(self) -> Fraction | Bounds:
        """The probability of True: the Fraction, or floats around an irrational one."""
        if not self._minus_log:
            return self._rational
        if self._minus_log >= VANISHING:
            return Bounds(0.0, 5e-324)

        low, high = _core.exp_bounds(_core.Level(Fraction(1), self._minus_log), 128)
        return Bounds(round_down(1 / high), round_up(1 / low))

    def pmf(self) -> Pmf:
        """The distribution, over the outputs False and True."""
        if self._minus_log:
            raise ValueError(f"{self!r} has an irrational probability, and no Pmf holds it; see probability")
        p = self._rational
        return Pmf((False, True), (p.denominator - p.numerator, p.numerator))

    def _draw(self, source: _core.Source) -> bool:
        return bool(self._core_coin.sample(source))

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        return self._core_coin.sample_many(source, number_of(shape)).reshape(shape).astype(np.bool_)


PMF_LIMIT = 2**20
"""The most outputs of a pmf that is written out."""


def _int64(value: int, name: str) -> int:
    number = check_count(value, name, -(2**63))
    if number >= 2**63:
        raise ValueError(f"{name} must be below 2**63; got {short_repr(value)}")
    return number


class UniformInteger(IntegerDistribution):
    """An integer from low to high, both included, each with exactly the same probability.

    Parameters
    ----------
    low, high : int
        Integers of 64 bits with low <= high.

    Notes
    -----
    *Distribution.* A word w of 128 random bits stands for low + floor(w n / 2**128), where n = high - low + 1. Words
    with w n mod 2**128 < 2**128 mod n are rejected and replaced, which leaves floor(2**128 / n) words for every
    integer.

    *Time.* A draw takes the same instructions whatever its result is. Only the number of rejections shows (each has
    probability below 2**-64), which does not depend on the integer.

    References
    ----------
    Lemire, "Fast random integer generation in an interval" (ACM TOMACS 29, 2019).

    Examples
    --------
    >>> die = UniformInteger(low=1, high=6)
    >>> die.pmf().fractions()[0]
    Fraction(1, 6)
    >>> 1 <= die.sample() <= 6
    True
    """

    def __init__(self, *, low: int, high: int) -> None:
        super().__init__(low=low, high=high)
        self.low, self.high = _int64(low, "low"), _int64(high, "high")
        if self.low > self.high:
            raise ValueError(f"low must be at most high; got low={self.low} and high={self.high}")

        self._core_sampler = _core.UniformInteger(self.low, self.high - self.low + 1)

    def pmf(self) -> Pmf:
        """The distribution: outputs low, ..., high of weight 1.

        Raises
        ------
        BudgetError
            For more than 2**20 of them.
        """
        count = self.high - self.low + 1
        if count > PMF_LIMIT:
            raise BudgetError(
                f"the pmf would have {count} outputs, and at most {PMF_LIMIT} are written out; each has probability "
                f"1 / {count}"
            )
        return Pmf(tuple(range(self.low, self.high + 1)), (1,) * count)


class RandomSubset(Distribution[npt.NDArray[np.int64], np.int64]):
    """A subset of {0, ..., population - 1} of a given size, each with exactly the same probability.

    Parameters
    ----------
    population : int
        From 0 to 2**63 - 1.
    subset_size : int
        From 0 to the population; of at most 2**24 elements, and 2**27 in all the subsets of a call.

    Notes
    -----
    *Distribution.* Floyd's algorithm: elements are drawn below j + 1 for j = population - subset_size, ..., population
    - 1, and one that is there already is replaced by j. By induction the set is uniform among the subsets of {0, ...,
    j} of its size.

    *Time.* Not constant time: which elements are chosen shows in branches and addresses. Use it where the subset is not
    secret, or where nobody who must not know it can measure.

    Examples
    --------
    >>> hand = RandomSubset(population=52, subset_size=5)
    >>> hand.sample().shape, hand.sample(3).shape
    ((5,), (3, 5))
    """

    def __init__(self, *, population: int, subset_size: int) -> None:
        super().__init__(population=population, subset_size=subset_size)
        self.population = check_count(population, "population", 0)
        self.subset_size = check_count(subset_size, "subset_size", 0)
        if self.population >= 2**63:
            raise ValueError(f"population must be below 2**63; got {short_repr(population)}")
        if self.subset_size > self.population:
            raise ValueError(
                f"subset_size must be at most the population of {self.population}; got {short_repr(subset_size)}"
            )

    def pmf(self) -> Pmf:
        """The distribution over subsets as tuples in increasing order, each of weight 1.

        Raises
        ------
        BudgetError
            For more than 2**20 of them.
        """
        if capped_binomial(self.population, self.subset_size, PMF_LIMIT) > PMF_LIMIT:
            raise BudgetError(f"the pmf would have more than {PMF_LIMIT} outputs, all of the same probability")
        subsets = tuple(combinations(range(self.population), self.subset_size))
        return Pmf(subsets, (1,) * len(subsets))

    def _draw(self, source: _core.Source) -> npt.NDArray[np.int64]:
        return self._draw_many(source, ())

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:

        draws = _core.random_subsets(source, self.population, self.subset_size, number_of(shape))
        return draws.reshape((*shape, self.subset_size))


EXACT_BITS = 2**24
"""Exact probabilities are refused when they have more bits than this."""


class NegativeBinomial(TableDistribution):
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
        self._p = parse_delta(p, "p", printed=False)
        if not 0 < self._p < 1:
            raise ValueError(f"p must be in (0, 1) here, ends excluded; got {short_repr(p)}")

    @cached_property
    def _core_sampler(self) -> _core.NegativeBinomialTable:

        return _core.NegativeBinomialTable(self._r, self._p)

    @property
    def certified_distance(self) -> Fraction:
        """At least the total variation distance to the ideal distribution."""
        return Fraction(self._core_sampler.remainder, 2**128)


class Geometric(IntegerDistribution):
    """The number of failures before the first success: P[x] = (1 - p)**x p for x = 0, 1, ..., exactly.

    **NumPy's ``geometric`` counts the success as well** and is larger by 1.

    Parameters
    ----------
    p : float, int, Fraction or decimal string
        The probability of success, from 2**-52 to 1. A float is the dyadic number it is.

    Notes
    -----
    *Distribution.* floor(ln(U) / ln(1 - p)) for a uniform U in (0, 1), whose bits are drawn until a certified enclosure
    decides. A draw of 2**63 or more, which has probability below 2**-2954, is returned as 2**63 - 1.

    *Time.* **Not constant time**: how long a draw takes depends on its bits. Do not use it for noise where the time of
    a release can be measured.

    Examples
    --------
    >>> failures = Geometric(p="1/3")
    >>> failures.probability(2)
    Fraction(4, 27)
    >>> failures.sample() >= 0
    True
    """

    def __init__(self, *, p: Delta) -> None:
        super().__init__(p=p)
        self._p = parse_delta(p, "p", printed=False)
        if self._p < Fraction(1, 2**52):
            raise ValueError(f"p must be from 2**-52 to 1, so that draws fit into 64 bits; got {short_repr(p)}")

        self._core_sampler = _core.Geometric(self._p)

    def probability(self, x: int) -> Fraction:
        """P[x], exactly.

        Raises
        ------
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
