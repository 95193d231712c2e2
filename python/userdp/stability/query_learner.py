"""Statistical-query algorithms made stable: every user answers with the means of their own rows, rounded alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr
from userdp.exceptions import BudgetError
from userdp.public_randomness.rounding import SharedOffsetRounding
from userdp.public_randomness.seed import PublicSeed
from userdp.stability.learner import Labels, StableLearner, rows_by_user
from userdp.stability.queries import StatisticalQuery, StatisticalQueryAlgorithm, check_algorithm
from userdp.users.table import UserTable

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

    *Stability.* Users whose means are u and v give different answers with probability exactly min(1, I |u - v|) over s.
    With m rows of each user, the hypothesis differs from the one that the means of the distribution give with
    probability at most q I sqrt(variance / m): `query_parameters` says how many rows that takes. All rows answer all
    queries: [GKM21, Algorithm 5] takes fresh rows for each of the q queries, and so q times as many; the proof does not
    need them (docs/proofs/statistical_queries.md).

    *Items* are bytes, those of `StatisticalQueryAlgorithm.encode`. Whoever has no rows, makes the algorithm raise, or
    asks more than `max_queries` queries has the default item.

    *Cost.* Users who have learned the same so far are evaluated together if the algorithm is `rowwise`, so that time
    goes by rows times queries, and by how many different ways users go.

    References
    ----------
    GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling" (NeurIPS 2021): [GKM21,
    Algorithm 5] and [GKM21, Lemma 32].

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
                "rounded up "
                f"to bytes; got {short_repr(self.default)}"
            )

    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> bytes:
        """The hypothesis of one user, as bytes."""
        user = _People(np.zeros(1, np.intp), self.algorithm.points(X), labels, np.array([len(labels)]))
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
            people = _People(users, self.algorithm.points(data.X[rows]), data.labels[rows], counts[users])
            for user, item in zip(users.tolist(), self._items_of(people, seed), strict=True):
                items[user] = item
        return items

    def _items_of(self, people: _People, seed: PublicSeed) -> list[bytes]:
        """Each one's item, in their order; with those who answer differently on their own from there on."""
        items: dict[int, bytes] = {}
        waiting: list[tuple[_People, list[Any]]] = [(people, [])]
        while waiting:
            ask = _Answers(self.algorithm, seed, *waiting.pop())
            item = self._outcome(ask)
            items.update(dict.fromkeys(ask.people.users.tolist(), item))
            waiting += ask.others
        return [items[user] for user in people.users.tolist()]

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
class _People:
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

    def those(self, chosen: npt.NDArray[np.bool_]) -> _People:
        rows = np.repeat(chosen, self.counts)
        return _People(self.users[chosen], self.points[rows], self.labels[rows], self.counts[chosen])


class _TooManyQueries(Exception):
    """Stops an algorithm."""


class _Answers:
    """The oracle for users who have learned the same: when they would learn different things, they part."""

    # users: Those who have not left.
    # others: Those who have, each group with all that it has learned.
    # exceeded: Whether more was asked than may be.

    def __init__(
        self, algorithm: StatisticalQueryAlgorithm, seed: PublicSeed, people: _People, known: list[Any]
    ) -> None:
        self.people, self.others, self.exceeded = people, list[tuple[_People, list[Any]]](), False
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
                self.others.append((self.people.those(here == answer), [*self._known, answer]))
            if not np.all(here == answers[0]):
                self.people = self.people.those(here == answers[0])
            self._known.append(answers[0])
        return self._known[number]

    def _places(self, phi: StatisticalQuery, number: int) -> list[int]:
        """Each user's answer, in units of 1/intervals."""
        totals, unit = self.people.totals(phi)
        places = np.empty(len(totals), dtype=np.int64)
        # Mostly all users have as many rows.
        for count in np.unique(self.people.counts).tolist():
            here = self.people.counts == count
            if self._rounding.intervals * count * unit < RATIO_LIMIT:
                places[here] = self._rounding.round_ratios(totals[here], count * unit, number)
            else:
                means = (Fraction(total, count * unit) for total in totals[here].tolist())
                places[here] = [self._rounding.round(mean, number) for mean in means]
        answers: list[int] = (places - self._rounding.intervals).tolist()
        return answers
