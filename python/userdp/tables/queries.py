"""Questions about a table, without a table: which rows, by which keys, and what of each group."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from userdp.exact.numbers import check_count, short_repr
from userdp.tables.aggregates import Aggregate
from userdp.tables.expressions import Expression, operand
from userdp.tables.expressions import condition as read_condition
from userdp.tables.schema import Schema, first_twice, key_value, key_values

MOST_KEYS = 2**22
RULES = ("random", "first")
METHODS = ("auto", "two-round", "policy", "one-round")
"""Of `keys_only`: the best one, and those of set unions, as `SetUnion.calibrated` takes them."""


class KeySet:
    """A public list of keys, each a value or, for several columns, a tuple of values.

    Every key of the list is in the answer, also those that nobody has. Do not take it from the data. Values are
    integers, texts, dates, and times without a zone, of plain Python, NumPy, pandas, polars or pyarrow.

    Examples
    --------
    >>> KeySet.from_values(["north", "south"]).keys
    (('north',), ('south',))
    >>> len(KeySet.product([1, 2, 3], ["a", "b"]))
    6
    >>> import numpy as np
    >>> KeySet.from_values(np.arange("2024-01-31", "2024-02-02", dtype="M8[D]")).keys
    ((datetime.date(2024, 1, 31),), (datetime.date(2024, 2, 1),))
    """

    def __init__(self, keys: Sequence[tuple[Any, ...]]) -> None:
        self.keys = tuple(keys)
        if not 1 <= len(self.keys) <= MOST_KEYS:
            raise ValueError(f"a KeySet has from 1 to 2**22 keys; got {len(self.keys)}")
        if len(set(self.keys)) < len(self.keys):
            raise ValueError(f"a KeySet has distinct keys; got {short_repr(first_twice(self.keys))} twice")
        if len(set(map(len, self.keys))) > 1:
            raise ValueError("the keys of a KeySet have as many values as there are columns; got several lengths")

    @classmethod
    def from_values(cls, values: Sequence[Any]) -> KeySet:
        """Of values of one column, or of tuples for several columns."""
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise TypeError(f"values must be a sequence of keys; got {short_repr(values)}")
        listed = list(values)
        if listed and all(isinstance(value, tuple) for value in listed):
            if len({len(value) for value in listed}) == 1 and listed[0]:
                return cls([tuple(key_value(part, "values") for part in value) for value in listed])
            raise ValueError("the keys of a KeySet have as many values as there are columns; got several lengths")
        return cls([(value,) for value in key_values(listed, "values")])

    @classmethod
    def product(cls, *values: Sequence[Any]) -> KeySet:
        """All combinations of values, one list for each column."""
        lists = [key_values(column, "values") for column in values]
        many = math.prod(map(len, lists))
        if many > MOST_KEYS:  # before they are made
            raise ValueError(f"a KeySet has from 1 to 2**22 keys; got {many}")
        return cls(list(itertools.product(*lists)))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.keys)

    def __repr__(self) -> str:
        return f"KeySet of {len(self.keys)} keys"


@dataclass(frozen=True)
class Grouping:
    """By which columns, and how many keys of a user count."""

    columns: tuple[str, ...]
    keys: KeySet | None  # None: those of the columns' categories, where all have them; otherwise unknown
    max_keys: int | None  # None: as many as there are known keys
    rule: Literal["random", "first"]
    others: bool = False  # whether keys beyond those are shown too, from a threshold on


@dataclass(frozen=True)
class Query:
    """A question about a table: it holds no data, and each method returns a new one.

    A query is built from `Session.query`, or from ``Query()``. The order of `filter` and `with_columns` is that of the
    calls. All of them are about one row. What a user adds to an answer is bounded after them, so nothing that comes
    later can undo it.

    Examples
    --------
    >>> from userdp.tables import col, count_users, mean
    >>> query = Query().filter(col("year") >= 1985).group_by("job", max_keys=3).agg(
    ...     people=count_users(), wage=mean("wage"))
    >>> query.grouping.columns, list(query.aggregates)
    (('job',), ['people', 'wage'])
    """

    table: str | None = None
    steps: tuple[Any, ...] = ()  # expressions to filter by, (name, expression), and functions of users
    grouping: Grouping | None = None
    answers: tuple[tuple[str, Aggregate], ...] = ()
    union: str | None = None  # how to find which keys there are, where nothing else is asked

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """What is asked of each group, by name."""
        return dict(self.answers)

    def filter(self, condition: Expression) -> Query:
        """Keep the rows where a condition holds; a missing condition does not hold.

        Parameters
        ----------
        condition : expression
            A boolean one, such as ``col("union") == 1``.
        """
        self._open("filter")
        return replace(self, steps=(*self.steps, read_condition(condition, "filter")))

    def with_columns(self, **columns: Expression) -> Query:
        """Add columns, or replace them, by what expressions say of each row.

        Parameters
        ----------
        **columns : expressions
        """
        self._open("with_columns")
        added = tuple((name, operand(value, name)) for name, value in columns.items())
        return replace(self, steps=(*self.steps, *added))

    def map_users(self, function: Any, *, returns: Schema) -> Query:
        """Replace each user's rows by what a function makes of them.

        Parameters
        ----------
        function : callable
            It gets the list of one user's rows, dicts of plain values, and returns such a dict, a list of them, or
            None for no rows. It is trusted to remember nothing from one user to the next.
        returns : Schema
            The columns of what it returns, which later steps see instead of the table's own.
        """
        self._open("map_users")
        if not callable(function):
            raise TypeError(f"function must be callable; got {short_repr(function)}")
        if not isinstance(returns, Schema):
            raise TypeError(f"returns must be a Schema; got {short_repr(returns)}")
        if any(isinstance(step, PerUser) for step in self.steps):
            raise ValueError("a query has one map_users; do all in one function")
        return replace(self, steps=(*self.steps, PerUser(function, returns)))

    def group_by(
        self,
        *columns: str,
        keys: Any = None,
        max_keys: int | None = None,
        rule: str = "random",
        others: bool = False,
    ) -> Query:
        """Ask for each group of rows with the same key.

        Parameters
        ----------
        *columns : str
            Columns of categories, integers, texts or dates.
        keys : KeySet or sequence, optional
            The public list of keys: all of them are in the answer. By default all categories, where every column has
            them; otherwise keys are unknown, those with too few users are not shown, and delta must be positive.
        max_keys : int, optional
            In how many groups a user counts at most: the noise grows with it, and what a user has in others is left
            out. Unknown keys need it; by default all known keys.
        rule : {"random", "first"}
            Which ones, for users with more: drawn anew for each release, or the first in the order of keys.
        others : bool
            With keys: whether other groups are in the answer too, those with so many users that they pass a threshold.
            Then max_keys is needed, which is of listed and other groups together, and so is a positive delta.
        """
        self._open("group_by")
        if not columns or not all(isinstance(column, str) for column in columns):
            raise TypeError(f"group_by takes names of columns; got {short_repr(columns)}")
        if len(set(columns)) < len(columns):
            raise ValueError(f"group_by takes each column once; got {short_repr(columns)}")
        if rule not in RULES:
            raise ValueError(f"rule must be 'random' or 'first'; got {short_repr(rule)}")
        known = keys if keys is None or isinstance(keys, KeySet) else KeySet.from_values(keys)
        if known is not None and len(known.keys[0]) != len(columns):
            raise ValueError(f"keys have {len(known.keys[0])} values each, and there are {len(columns)} columns")
        most = None if max_keys is None else check_count(max_keys, "max_keys")
        if not isinstance(others, bool):
            raise TypeError(f"others must be True or False; got {short_repr(others)}")
        if others and known is None:
            raise ValueError(
                "others is for keys=: without a list, groups are all known or all unknown by their columns"
            )
        return replace(self, grouping=Grouping(tuple(columns), known, most, rule, others))  # type: ignore[arg-type]

    def agg(self, **aggregates: Aggregate) -> Query:
        """Say what is asked of each group, or of all rows where there are no groups.

        Parameters
        ----------
        **aggregates
            Of `count_users`, `count_rows`, `sum`, `mean`, `quantile`, `histogram` and `cdf`, by the names of the
            answer's columns.
        """
        if self.union is not None:
            raise ValueError("the query ends with keys_only(): which keys there are is all that it asks for")
        if self.answers:
            raise ValueError("the query has its agg already: ask for all in one, so that they share the privacy budget")
        if not aggregates:
            raise ValueError("agg needs at least one aggregate, such as people=count_users()")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise TypeError(
                    f"{name} must be one of count_users(), count_rows(...), sum(...), mean(...), quantile(...), "
                    f"histogram(...) and cdf(...); got {short_repr(aggregate)}"
                )
        return replace(self, answers=tuple(aggregates.items()))

    def keys_only(self, method: str = "auto") -> Query:
        """Ask which groups there are, and nothing else of them: more of them are found than where they are counted.

        Parameters
        ----------
        method : {"auto", "two-round", "policy", "one-round"}
            How it is found out. "auto" takes what shows a group of the fewest users with a probability of 1/2, where
            these have 1, ..., max_keys groups in equal parts: of `PartitionSelection` (for `max_keys=1`),
            `SparseHistogram` (up to 4) and `SetUnion` (two rounds; one for `max_keys=1`). Only public numbers decide,
            and the plan says which it is. The others are those of `userdp.mechanisms.SetUnion`. Two rounds found most
            in all data that were tried but some where users have many keys: there the policy did (docs/tables.md).

        Examples
        --------
        >>> Query().group_by("shop", max_keys=10).keys_only().union
        'auto'
        """
        if self.answers or self.union is not None:
            raise ValueError("keys_only() goes in place of agg, once")
        if self.grouping is None:
            raise ValueError("keys_only() comes after group_by, which says what the groups are")
        if self.grouping.rule != "random":
            raise ValueError("keys_only() draws which groups of a user count: leave rule= of group_by out")
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(f"method must be 'auto', 'two-round', 'policy' or 'one-round'; got {short_repr(method)}")
        return replace(self, union=method)

    def _open(self, method: str) -> None:
        if self.grouping is not None or self.answers:
            raise ValueError(f"{method} comes before group_by and agg: bounding is the last step of each user's rows")


@dataclass(frozen=True)
class PerUser:
    """A step that makes new rows of each user's rows."""

    function: Any
    returns: Schema
