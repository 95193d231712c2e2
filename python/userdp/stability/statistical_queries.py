"""Statistical-query algorithms, which see rows through averages only, and how users run one alike on their own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_kind, open_unit_fraction, short_repr
from userdp.exceptions import BudgetError
from userdp.public_randomness.rounding import SharedOffsetRounding
from userdp.public_randomness.seed import PublicSeed
from userdp.stability.learner import Labels, StableLearner, rows_by_user
from userdp.users.table import UserTable

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
    what = "a StatisticalQueryAlgorithm, such as DecisionListQueries(...)"
    check_kind(algorithm, StatisticalQueryAlgorithm, "algorithm", what)
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
        shape = X.shape[1] if X.ndim == 2 else f"{X.ndim} dimensions"
        raise ValueError(f"X must have at least {count} columns, n_features of the algorithm; got {shape}")
    return X[:, :count]


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


LABEL = "statistical query"
"""Where the offsets of the grids are, in the public seed."""

SCALE = 2**30
"""Values of queries are read as multiples of 1/SCALE, so that sums over at most 2**31 rows are exact in 64 bits."""

RATIO_LIMIT = 2**61
"""Below this `SharedOffsetRounding.round_ratios` is exact."""

CELLS = 2**26
"""Entries of points that are held at a time, or those of one user."""

MAX_WORK = 10**13
"""The most values of queries that are evaluated, rows times queries."""


class StatisticalQueryLearner(StableLearner):
    """Run a statistical-query algorithm on every user's own rows, with answers rounded by the same public offsets.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
        Public.

    Attributes
    ----------
    default : bytes
        The encoding of the algorithm's public default hypothesis.

    Notes
    -----
    Query number j is answered with the mean u of phi over all rows of the user, rounded to a multiple of 1/I with the
    offset s of query j, floor(I u + s) / I, where s is uniform in [0, 1) and public. Values of phi are clamped to
    [-1, 1] (NaN to 0) and read as multiples of 2**-30; means and roundings of those are exact.

    *Stability.* Users whose means are u and v give different answers with probability exactly min(1, I |u - v|) over s;
    `query_parameters` says how many rows make hypotheses agree. All rows answer all queries: [GKM21, Algorithm 5] takes
    fresh rows for each of the q queries, and so q times as many, which the proof does not need
    (docs/proofs/statistical_queries.md).

    *Items* are bytes, those of `StatisticalQueryAlgorithm.encode`. Whoever has no rows, makes the algorithm raise, or
    asks more than `max_queries` queries has the default item.

    *Cost.* Users who have learned the same so far are evaluated together if the algorithm is `rowwise`, so that time
    goes by rows times queries, and by how many different ways users go.

    References
    ----------
    [GKM21, Algorithm 5] and [GKM21, Lemma 32].

    Examples
    --------
    >>> import numpy as np
    >>> from collections import Counter
    >>> from userdp.users import UserTable
    >>> from userdp.stability import DecisionListQueries
    >>> from userdp.public_randomness import PublicSeed
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(60, dtype=np.uint32), 500)
    >>> X = rng.integers(0, 2, size=(30_000, 4))
    >>> labels = np.where(X[:, 2] == 0, 1, X[:, 0]).astype(np.uint8)
    >>> algorithm = DecisionListQueries(4, alpha=0.1, length=2, tolerance=0.05)
    >>> items = StatisticalQueryLearner(algorithm).items(UserTable(X, labels, users, 60, 500), PublicSeed(bytes(32)))
    >>> (item, votes), *_ = Counter(items).most_common()
    >>> algorithm.describe(algorithm.decode(item))
    'if x0: 1; else if not x2: 1; else 0'
    >>> votes >= 50
    True
    """

    default: bytes

    def __init__(self, algorithm: StatisticalQueryAlgorithm) -> None:
        check_algorithm(algorithm)
        self.algorithm = algorithm
        self.default = algorithm.encode(algorithm.default)
        if not self._is_item(self.default):
            raise ValueError(
                f"algorithm must encode its default in hypothesis_bits={short_repr(algorithm.hypothesis_bits)}, "
                f"rounded up to bytes; got {short_repr(self.default)}"
            )

    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> bytes:
        """The hypothesis of one user, as bytes."""
        user = _Users(np.zeros(1, np.intp), self.algorithm.points(X), labels, np.array([len(labels)]))
        return self._items_of(user, seed)[0]

    def predict(self, item: bytes, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a hypothesis says about rows; see `StableLearner.predict`."""
        return self.algorithm.predict(self.algorithm.decode(item), X)

    def items(self, data: UserTable, seed: PublicSeed) -> Sequence[Hashable]:
        """One item for every user slot; see `StableLearner.items`.

        Raises
        ------
        BudgetError
            When rows times queries are too many.
        """
        no_points = self.algorithm.points(data.X[:0])
        # Public: how many rows users have is not.
        work = data.n_users * data.m * self.algorithm.max_queries
        if work > MAX_WORK:
            raise BudgetError(
                f"{data.n_users} users with m = {data.m} rows and max_queries = {self.algorithm.max_queries} may take "
                f"{work:.2g} values of queries, above {MAX_WORK:.0e}: give a smaller m or fewer queries"
            )
        if not self.algorithm.rowwise:
            return super().items(data, seed)
        numbers = list(rows_by_user(data))
        counts = np.array([len(rows) for rows in numbers], dtype=np.intp)
        blocks = (np.cumsum(counts) - counts) * math.prod(no_points.shape[1:]) // CELLS
        items = [self.default] * data.n_users
        for block in np.unique(blocks[counts > 0]):
            users = np.flatnonzero((blocks == block) & (counts > 0))
            rows = np.concatenate([numbers[user] for user in users])
            group = _Users(users, self.algorithm.points(data.X[rows]), data.labels[rows], counts[users])
            for user, item in zip(users.tolist(), self._items_of(group, seed), strict=True):
                items[user] = item
        return items

    def _items_of(self, group: _Users, seed: PublicSeed) -> list[bytes]:
        """Each one's item, in their order; with those who answer differently on their own from there on."""
        items: dict[int, bytes] = {}
        waiting: list[tuple[_Users, list[Any]]] = [(group, [])]
        while waiting:
            ask = _Answers(self.algorithm, seed, *waiting.pop())
            item = self._outcome(ask)
            items.update(dict.fromkeys(ask.group.users.tolist(), item))
            waiting += ask.others
        return [items[user] for user in group.users.tolist()]

    def _outcome(self, ask: _Answers) -> bytes:
        try:
            with np.errstate(all="ignore"):
                item = self.algorithm.encode(self.algorithm.run(ask))
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a user's rows lead to, `sys.exit` included
            return self.default
        # An algorithm may catch what stops it.
        return item if self._is_item(item) and not ask.exceeded else self.default

    def _is_item(self, item: object) -> bool:
        """Whether it is a number below 2**hypothesis_bits, as big-endian bytes."""
        bits = self.algorithm.hypothesis_bits
        return type(item) is bytes and len(item) == -(-bits // 8) and int.from_bytes(item, "big") >> bits == 0


@dataclass(frozen=True)
class _Users:
    """Users with at least one row, and their rows one user after the other."""

    users: npt.NDArray[np.intp]
    points: npt.NDArray[Any]
    labels: Labels
    counts: npt.NDArray[np.intp]

    def totals(self, phi: StatisticalQuery) -> tuple[npt.NDArray[np.int64], int]:
        """Each user's sum of phi, and how many units of the sum are 1."""
        values = np.asarray(phi(self.points, self.labels))
        if values.shape != self.labels.shape:
            raise ValueError("a query must give one value for every row")
        starts = np.cumsum(self.counts) - self.counts
        if values.dtype == bool:
            return np.add.reduceat(values, starts, dtype=np.int64), 1
        inside = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), -1, 1)
        return np.add.reduceat(np.rint(inside * SCALE).astype(np.int64), starts), SCALE

    def subset(self, members: npt.NDArray[np.bool_]) -> _Users:
        rows = np.repeat(members, self.counts)
        return _Users(self.users[members], self.points[rows], self.labels[rows], self.counts[members])


class _TooManyQueries(Exception):
    """Stops an algorithm."""


class _Answers:
    """The oracle for users who have learned the same: when they would learn different things, they part."""

    def __init__(self, algorithm: StatisticalQueryAlgorithm, seed: PublicSeed, group: _Users, known: list[Any]) -> None:
        self.group = group  # those who have not left
        self.others: list[tuple[_Users, list[Any]]] = []  # those who have, each group with all that it has learned
        self.exceeded = False  # whether more was asked than may be
        self._known, self._asked, self._most = known, 0, algorithm.max_queries
        self._rounding = SharedOffsetRounding(seed, intervals=algorithm.intervals, label=LABEL)

    def __call__(self, phi: StatisticalQuery) -> Fraction:
        return Fraction(self._learn(phi, lambda places: places), self._rounding.intervals)

    def at_most(self, phi: StatisticalQuery, bound: Fraction) -> bool:
        last = bound * self._rounding.intervals // 1
        return bool(self._learn(phi, lambda places: [place <= last for place in places]))

    def _learn(self, phi: StatisticalQuery, learned: Callable[[list[int]], list[Any]]) -> Any:
        number, self._asked = self._asked, self._asked + 1
        if number >= self._most:
            self.exceeded = True
            raise _TooManyQueries
        if number == len(self._known):
            answers = learned(self._places(phi, number))
            here = np.array(answers)
            for answer in set(answers) - {answers[0]}:
                self.others.append((self.group.subset(here == answer), [*self._known, answer]))
            if not np.all(here == answers[0]):
                self.group = self.group.subset(here == answers[0])
            self._known.append(answers[0])
        return self._known[number]

    def _places(self, phi: StatisticalQuery, number: int) -> list[int]:
        """Each user's answer, in units of 1/intervals."""
        totals, unit = self.group.totals(phi)
        places = np.empty(len(totals), dtype=np.int64)
        # Mostly all users have as many rows.
        for count in np.unique(self.group.counts).tolist():
            here = self.group.counts == count
            if self._rounding.intervals * count * unit < RATIO_LIMIT:
                places[here] = self._rounding.round_ratios(totals[here], count * unit, number)
            else:
                means = (Fraction(total, count * unit) for total in totals[here].tolist())
                places[here] = [self._rounding.round(mean, number) for mean in means]
        return (places - self._rounding.intervals).tolist()
