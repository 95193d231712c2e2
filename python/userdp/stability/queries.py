"""What a statistical-query algorithm is: it sees rows only through averages of functions of one row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import open_unit_fraction, short_repr
from userdp.exceptions import BudgetError

StatisticalQuery: TypeAlias = Callable[[npt.NDArray[Any], npt.NDArray[np.uint8]], npt.NDArray[Any]]
"""A function of points and their labels (0 or 1) that gives every row a value in [-1, 1]."""

MAX_QUERIES = 2**24
MAX_INTERVALS = 2**28


class Oracle(Protocol):
    """What answers queries: the mean of a function over a distribution, up to the tolerance.

    Answers are multiples of 1/intervals in [-1, 1].

    [GKM21, Definition 31].
    """

    def __call__(self, phi: StatisticalQuery) -> Fraction:
        """The mean of phi."""

    def at_most(self, phi: StatisticalQuery, bound: Fraction) -> bool:
        """Whether the answer is at most a bound: one query, for algorithms that need to know no more.

        Users whose answers differ, and are all above the bound or all below, go on together.
        """


class StatisticalQueryAlgorithm(ABC):
    r"""A deterministic algorithm that asks for means and returns a hypothesis.

    Attributes
    ----------
    n_features : int
        The columns that are read, the first ones.
    tolerance : Fraction
        How far from the mean an answer may be, in (0, 1).
    max_queries : int
        The most queries. Those who ask for more are stopped and get `default`.
    hypothesis_bits : int
        Every hypothesis is encoded as a number of so many bits.
    default : hypothesis
        The public hypothesis of those from whom nothing is learned.
    rowwise : bool
        Whether `points` and all queries treat every row alone, never raise, and give the very same floats for a row
        whatever the other rows are (no products of matrices: their last bits depend on how many rows there are). The
        rows of many users are then evaluated together, which is much faster. False, the default, evaluates each user's
        rows apart. Privacy rests on it: do not say True of what you have not written with that in mind.
    variance : Fraction
        A number v such that what is learned of one answer from m rows differs with probability at most
        ``intervals * sqrt(v / m)`` from what the distribution would tell. 1 always will do, and 1/4 for queries with
        values 0 and 1; see docs/proofs/statistical_queries.md.

    Notes
    -----
    An algorithm keeps no state and draws nothing: what it asks is a function of the answers before, and the hypothesis
    a function of the answers. Its coins are public, fixed in its parameters.

    Examples
    --------
    >>> from fractions import Fraction
    >>> class MoreOnesThanZeros(StatisticalQueryAlgorithm):
    ...     n_features, max_queries, hypothesis_bits, default = 1, 1, 1, False
    ...     tolerance = Fraction(1, 10)
    ...
    ...     def run(self, ask):
    ...         return ask(lambda X, labels: 2.0 * labels - 1) > 0
    ...
    ...     def predict(self, hypothesis, X):
    ...         return np.full(len(X), hypothesis)
    ...
    ...     def encode(self, hypothesis):
    ...         return bytes([hypothesis])
    ...
    ...     def decode(self, item):
    ...         return item == b"\x01"
    >>> MoreOnesThanZeros().intervals
    10
    """

    n_features: int
    tolerance: Fraction
    max_queries: int
    hypothesis_bits: int
    default: Any
    rowwise: ClassVar[bool] = False
    variance: Fraction = Fraction(1)

    @property
    def intervals(self) -> int:
        """I = ceil(1 / tolerance): answers are multiples of 1/I.

        GKM21 has ceil(3 / tolerance), three times as fine and nine times the rows. It is not needed: the hypothesis
        that users agree on comes from means of the distribution, which rounding moves by less than 1/I.
        """
        return math.ceil(1 / self.tolerance)

    @abstractmethod
    def run(self, ask: Oracle) -> Any:
        """Ask queries, each of which may depend on the answers before, and return a hypothesis."""

    @abstractmethod
    def predict(self, hypothesis: Any, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a hypothesis says about rows: False for the first class, True for the second."""

    @abstractmethod
    def encode(self, hypothesis: Any) -> bytes:
        """A hypothesis as a number below 2**hypothesis_bits, big-endian in as few bytes as hold them all."""

    @abstractmethod
    def decode(self, item: bytes) -> Any:
        """The hypothesis of some bytes: a total function, `default` for bytes that `encode` never gives."""

    def points(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What queries see of rows, computed once. A total map: rows may hold anything, NaN and infinities included.

        Raises
        ------
        ValueError
            For too few columns, even when there are no rows: this is about the public shape.
        """
        return X

    def describe(self, hypothesis: Any) -> str:
        """When a hypothesis predicts the second class, in words."""
        return short_repr(hypothesis)

    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments that make the algorithm again."""
        return {}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={short_repr(value)}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({arguments})"


def check_algorithm(algorithm: Any) -> None:
    """Refuse what is no algorithm, and what asks for too much."""
    if not isinstance(algorithm, StatisticalQueryAlgorithm):
        raise TypeError(
            "algorithm must be a StatisticalQueryAlgorithm, such as DecisionListQueries(...); got "
            f"{short_repr(algorithm)}"
        )
    open_unit_fraction(algorithm.tolerance, "tolerance")
    if algorithm.intervals > MAX_INTERVALS:
        raise BudgetError(
            f"tolerance={float(algorithm.tolerance):.3g} needs 1/tolerance intervals, above 2**28: no number of rows "
            "that users have makes them agree on such answers; give a larger tolerance"
        )
    if algorithm.max_queries < 1:
        raise ValueError(f"max_queries must be at least 1; got {short_repr(algorithm.max_queries)}")
    if algorithm.max_queries > MAX_QUERIES:
        raise BudgetError(
            f"max_queries={short_repr(algorithm.max_queries)} is above 2**24; give a larger tolerance or fewer rounds"
        )


def first_columns(X: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """The first columns of a table."""
    if X.ndim != 2 or X.shape[1] < count:
        found = X.shape[1] if X.ndim == 2 else f"{X.ndim} dimensions"
        raise ValueError(f"X must have at least {count} columns, n_features of the algorithm; got {found}")
    columns: npt.NDArray[Any] = X[:, :count]
    return columns


def bits_of_digits(count: int, base: int) -> int:
    """The bits of the largest number with so many digits."""
    largest: int = base**count - 1
    return max(1, largest.bit_length())


def bytes_of_digits(digits: tuple[int, ...], base: int) -> bytes:
    """Digits as one number, the first the least, on as few bytes as hold the largest.

    Examples
    --------
    >>> bytes_of_digits((1, 0, 2), 3).hex()
    '13'
    """
    number = 0
    for digit in reversed(digits):
        number = number * base + digit
    return number.to_bytes(-(-bits_of_digits(len(digits), base) // 8), "big")


def digits_of_bytes(item: bytes, count: int, base: int) -> tuple[int, ...] | None:
    """The digits of `bytes_of_digits`; None for bytes that it never gives.

    Examples
    --------
    >>> digits_of_bytes(bytes([0x13]), 3, 3)
    (1, 0, 2)
    >>> digits_of_bytes(bytes([27]), 3, 3) is digits_of_bytes(b"", 3, 3) is None
    True
    """
    if not isinstance(item, bytes) or len(item) != -(-bits_of_digits(count, base) // 8):
        return None
    number, digits = int.from_bytes(item, "big"), []
    for _ in range(count):
        number, digit = divmod(number, base)
        digits.append(digit)
    return tuple(digits) if number == 0 else None
