"""A query with a schema: what is read of each row, what each user adds to each key, and what answers are made of it.

All of it is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from userdp.exact.numbers import short_repr
from userdp.mechanisms.key_bounds import check_keys
from userdp.tables.aggregates import (
    Aggregate,
    Cdf,
    CountRows,
    CountUnreadable,
    CountUsers,
    Histogram,
    Mean,
    Quantile,
    Sum,
    whole_unit,
)
from userdp.tables.expressions import Expression, Program
from userdp.tables.queries import Grouping, KeySet, PerUser, Query
from userdp.tables.schema import (
    DEFAULT_STEPS,
    Boolean,
    Category,
    ColumnType,
    Integer,
    Key,
    Number,
    check_spelled,
    key_cell,
)
from userdp.tables.values import kind_of, places_in

LARGEST_ROW = 2**53
"""Of a row's integer."""
LARGEST = 2**40
"""Of a user's integer: those of 2**21 users add up to less than any clamp of totals."""
MOST_KNOWN = 2**22
BOUNDED = "bounded"
"""The column that says what numbers are of, where users have bounds."""

Kind = Literal["users", "rows", "sum", "mean", "weighted", "unreadable"]


@dataclass(frozen=True)
class RowValue:
    """An integer of each row: (value - offset) / 2**exponent, rounded to the nearest, halves to even."""

    column: str
    exponent: int
    offset: float  # 0 for sums, the lower bound for means
    low: int
    high: int

    @property
    def unit(self) -> float:
        """What one step is worth."""
        return math.ldexp(1.0, self.exponent)


@dataclass(frozen=True)
class Statistic:
    """An integer of each user in each of the user's keys, with public bounds."""

    kind: Kind
    low: int  # of the integer, after the shift
    high: int
    value: RowValue | None = None
    max_rows: int | None = None
    shift: int = 0
    ends: tuple[int, int] = (0, 0)  # of sums: what a user's total is clamped to
    column: str | None = None  # of the table: whose unreadable cells are counted
    of: RowValue | None = None  # 1 of each row with a value in a column, where rows without one count for others

    @property
    def limits(self) -> str:
        """Of sums: what a user's total is clamped to, in words."""
        unit = 1.0 if self.value is None else self.value.unit
        return f"a user's total within {self.ends[0] * unit:g} and {self.ends[1] * unit:g}"

    @property
    def largest(self) -> int:
        """How far the integer is from 0 at most."""
        return max(abs(self.low), abs(self.high))


USERS = Statistic("users", 1, 1)


@dataclass(frozen=True)
class Answer:
    """A column of the released table: which statistics it is made of."""

    name: str
    aggregate: Aggregate
    total: Statistic | None  # of quantiles, histograms and CDFs there is none
    count: Statistic | None  # what a mean is divided by; of quantiles the users with a value, who may not be counted

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the released table."""
        return self.aggregate.columns(self.name)

    @property
    def ends(self) -> tuple[str, ...]:
        """The further columns of its intervals."""
        if isinstance(self.aggregate, Histogram):
            return ()
        middle = "_share" if isinstance(self.aggregate, Quantile) else ""
        return tuple(f"{name}{middle}_{end}" for name in self.columns for end in ("low", "high"))


@dataclass(frozen=True)
class Step:
    """A filter (no name), a new column, or a function of users, with the types of the columns before it."""

    types: Mapping[str, ColumnType]
    program: Program | None = None
    name: str | None = None
    per_user: PerUser | None = None


@dataclass(frozen=True)
class Compiled:
    """What a query means for a schema."""

    query: Query
    steps: tuple[Step, ...]
    types: Mapping[str, ColumnType]  # of all columns that there are after the steps
    columns: tuple[str, ...]  # what is read of the table
    used: tuple[str, ...]  # the columns of the last step that keys and values are made of
    group: tuple[str, ...]
    keys: KeySet | None  # the public list of keys; None where all are unknown, or where there are no groups
    unknown: bool  # whether which keys there are, or which beyond the list, is private
    max_keys: int
    n_keys: int | None  # None: unknown
    rule: str
    statistics: tuple[Statistic, ...]  # the users first, where they are counted
    values: tuple[RowValue, ...]
    answers: tuple[Answer, ...]
    shown: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # of columns of texts: how listed keys are shown
    needs: tuple[str, ...] = ()  # a row counts if it has a value in one of these; any row, if there are none

    @property
    def listed(self) -> int:
        """How many keys are always in the answer beside unknown ones; they are the first."""
        return len(self.keys) if self.unknown and self.keys is not None else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return (*self.group, *(name for answer in self.answers for name in answer.columns))

    @property
    def groups_of_a_user(self) -> str:
        """Of which of their groups users count, in words; empty where all count."""
        if not self.group or (self.n_keys is not None and self.max_keys >= self.n_keys):
            return ""
        return f"each in at most {self.max_keys} of their groups"

    @property
    def bounding(self) -> str:
        """What the numbers are of, in words, where users have bounds; empty where they have none."""
        found = [f"users {self.groups_of_a_user}"] if self.groups_of_a_user else []
        for answer in self.answers:
            total = answer.total
            if total is not None and total.max_rows is not None:
                found.append(f"{answer.name}: at most {total.max_rows} rows of a user")
            elif total is not None and total.kind == "sum":
                found.append(f"{answer.name}: {total.limits}")
        return "; ".join(found) if self.answers else ""


def compiled(query: Query, schema: Mapping[str, ColumnType], *, largest: int = LARGEST) -> Compiled:
    """What a query means for a schema, with grids so coarse that no user's integer is above `largest`.

    Raises
    ------
    TypeError, ValueError
        Naming the column or the aggregate.
    """
    if not isinstance(query, Query):
        raise TypeError(f"query must be a Query, as session.query() begins one; got {short_repr(query)}")
    if not query.answers and query.union is None:
        raise ValueError("the query asks for nothing yet: end it with agg(...)")
    types, steps = _steps(query, schema)
    grouping = query.grouping
    for name in grouping.columns if grouping else ():
        _known_column(name, types, "group_by")
    keys, unknown, max_keys, n_keys = _keys(grouping, types)
    shown = _shown(grouping, types) if grouping and grouping.keys is not None else {}
    needs = _needs(query, schema, types)
    made = _Builder(types, schema, grouping is not None, largest, needs)
    answers = tuple(made.answer(name, aggregate) for name, aggregate in query.answers)
    group = grouping.columns if grouping else ()
    columns = [*group, *(name for answer in answers for name in answer.columns)]
    both = {name for name in columns if columns.count(name) > 1}
    if both:
        raise ValueError(f"the answer would have two columns of the name {min(both)!r}; rename one in agg")
    ends = [name for answer in answers for name in answer.ends]
    both = {name for name in ends if name in columns or ends.count(name) > 1}
    if both:
        raise ValueError(f"{min(both)!r} is a column of the answer's intervals; rename the one in agg or group_by")
    if BOUNDED in columns:
        raise ValueError(f"{BOUNDED!r} is the column that says what numbers are of; rename the one in agg or group_by")
    if query.union is not None and (not unknown or keys is not None):
        raise ValueError(
            "keys_only: which groups there may be is public already, so there is nothing to find out; leave keys= out"
        )
    if unknown:
        check_keys(max_keys)
    if unknown and query.union is None:
        made.users()
    read = (value for one in made.statistics for value in (one.value, one.of))
    values = tuple(dict.fromkeys(value for value in read if value is not None))
    wanted = tuple(need for need in needs if need is not None) if None not in needs else ()
    used = tuple(dict.fromkeys((*group, *(value.column for value in values), *made.others, *wanted)))
    steps, needed = _needed(query, steps, used, schema)
    counted = {one.column for one in made.statistics}
    return Compiled(
        query,
        steps,
        types,
        tuple(name for name in schema if name in needed or name in counted),
        used,
        group,
        keys,
        unknown,
        max_keys,
        n_keys,
        grouping.rule if grouping else "first",
        tuple(sorted(made.statistics, key=lambda one: one != USERS)),
        values,
        answers,
        shown,
        wanted,
    )


# --- columns


def _needs(query: Query, schema: Mapping[str, ColumnType], types: Mapping[str, ColumnType]) -> set[str | None]:
    """In which columns answers need a value of a row; None where one needs none, or always has it by a default."""
    filled = {name for name, kind in schema.items() if getattr(kind, "default", None) is not None}
    for step in query.steps:
        if isinstance(step, PerUser):
            filled = {name for name, kind in step.returns.items() if getattr(kind, "default", None) is not None}
        elif not isinstance(step, Expression):
            filled.discard(step[0])
    asked = [aggregate for _, aggregate in query.answers if not isinstance(aggregate, CountUnreadable)]
    columns = [getattr(aggregate, "column", None) for aggregate in asked]
    return {column if isinstance(column, str) and column not in filled else None for column in columns}


def _steps(query: Query, schema: Mapping[str, ColumnType]) -> tuple[dict[str, ColumnType], tuple[Step, ...]]:
    """The types of the columns after all steps, and the steps."""
    types, steps = dict(schema), []
    for step in query.steps:
        before = dict(types)
        if isinstance(step, PerUser):
            steps.append(Step(before, per_user=step))
            types = dict(step.returns)
            continue
        name, expression = (None, step) if isinstance(step, Expression) else step
        kind = expression.typed(before)
        if name is None and not isinstance(kind, Boolean):
            raise TypeError(f"filter takes a condition, and {expression!r} is of kind {kind.kind!r}")
        steps.append(Step(before, expression.compile(before), name))
        if name is not None:
            types[name] = kind
    return types, tuple(steps)


def _known_column(name: str, types: Mapping[str, ColumnType], place: str) -> ColumnType:
    if name not in types:
        raise ValueError(f"{place}: {name!r} is no column of the schema, which has {', '.join(map(repr, types))}")
    return types[name]


def _needed(
    query: Query, steps: Sequence[Step], used: Sequence[str], schema: Mapping[str, ColumnType]
) -> tuple[tuple[Step, ...], set[str]]:
    """The steps without the columns that nothing uses, and which of the table's own columns the others need."""
    needed, kept = set(used), []
    for step, asked in zip(reversed(steps), reversed(query.steps), strict=True):
        if step.per_user is not None:
            needed = set(step.types)
        elif step.name is None:
            needed |= set(asked.columns)
        elif step.name in needed:
            needed = needed - {step.name} | set(asked[1].columns)
        else:
            continue
        kept.append(step)
    return tuple(reversed(kept)), needed


# --- keys


def _keys(grouping: Grouping | None, types: Mapping[str, ColumnType]) -> tuple[KeySet | None, bool, int, int | None]:
    """The public list, whether keys are unknown, how many of a user count, and how many there are."""
    if grouping is None:
        return None, False, 1, 1
    kinds = [types[name] for name in grouping.columns]
    for name, kind in zip(grouping.columns, kinds, strict=True):
        if not isinstance(kind, (Category, Key, Integer, Boolean)):
            raise TypeError(
                f"group_by: {name!r} is of kind {kind.kind!r}; group by categories, whole numbers, bools or keys, "
                "such as col('age').cut([18, 30, 65]), key(datetime.date), or col('day').year() and .month()"
            )
    keys = grouping.keys
    if keys is None and all(isinstance(kind, (Category, Boolean)) for kind in kinds):
        lists = [kind.values if isinstance(kind, Category) else (0, 1) for kind in kinds]
        if math.prod(map(len, lists)) > MOST_KNOWN:
            raise ValueError("group_by: there are more than 2**22 combinations of categories; pass keys=")
        keys = KeySet.product(*lists)
    if keys is not None:
        keys = key_cells(keys, grouping.columns, types)
        if grouping.others:
            if grouping.max_keys is None:
                raise ValueError(
                    "group_by: with others=True max_keys is needed: in how many groups a user counts at most, listed "
                    "and other ones together"
                )
            return keys, True, grouping.max_keys, None
        most = len(keys) if grouping.max_keys is None else min(grouping.max_keys, len(keys))
        return keys, False, most, len(keys)
    if grouping.max_keys is None:
        raise ValueError(
            "group_by: which keys there are is private, so max_keys is needed: in how many groups a user counts at "
            "most. Or give the public list of keys as keys="
        )
    return None, True, grouping.max_keys, None


def key_cells(keys: KeySet, names: Sequence[str], types: Mapping[str, ColumnType]) -> KeySet:
    """A list of keys for some columns, with what stands for dates and times in cells."""
    columns = [_key_cells(keys, place, name, types[name]) for place, name in enumerate(names)]
    cells = list(zip(*columns, strict=True))
    table: dict[Any, Any] = {}
    for given, cell in zip(keys, cells, strict=True):
        if table.setdefault(cell, given) is not given:
            one, other = (short_repr(key[0] if len(names) == 1 else key) for key in (table[cell], given))
            raise ValueError(
                f"keys must be distinct; {one} and {other} are one key of {', '.join(map(repr, names))}; leave one out"
            )
    return KeySet(cells)


def _key_cells(keys: KeySet, place: int, name: str, kind: ColumnType) -> list[int | str]:
    """One column of a list of keys, as cells have it."""
    values = [key[place] for key in keys]
    if isinstance(kind, Category):
        places = places_in(values, kind).tolist()
        odd = next((value for value, at in zip(values, places, strict=True) if at < 0), None)
        if odd is not None:
            raise ValueError(f"keys: {odd!r} is no category of {name!r}")
        return [kind.values[at] for at in places]
    of = kind.cell_kind if isinstance(kind, Key) else kind.kind
    cells = [key_cell(value, of, name) for value in values]
    if of != "text":
        return cells
    texts = _texts(kind, cells, name)
    return [texts[cell] for cell in cells]  # type: ignore[index]


def _texts(kind: ColumnType, values: Sequence[Any], name: str) -> Mapping[str, str]:
    """The one text of each listed text; two of them are never one."""
    assert isinstance(kind, Key)
    listed = list(dict.fromkeys(values))
    texts = check_spelled(listed, f"keys: {name!r}", kind.spelling, kind.width, kind.marks)
    return dict(zip(listed, texts, strict=True))


def _shown(grouping: Grouping, types: Mapping[str, ColumnType]) -> Mapping[str, Mapping[str, str]]:
    """How listed texts are shown: as they are listed."""
    assert grouping.keys is not None
    return {
        name: {text: value for value, text in _texts(types[name], [key[place] for key in grouping.keys], name).items()}
        for place, name in enumerate(grouping.columns)
        if kind_of(types[name]) == "text"
    }


# --- statistics


class _Builder:
    """Collects the statistics that answers are made of; equal ones are one."""

    def __init__(
        self,
        types: Mapping[str, ColumnType],
        schema: Mapping[str, ColumnType],
        grouped: bool,
        largest: int,
        needs: Set[str | None],
    ) -> None:
        self._types, self._schema, self._grouped, self._needs = types, schema, grouped, needs
        self._largest = largest
        self.statistics: dict[Statistic, None] = {}
        self.others: list[str] = []  # columns of quantiles, histograms and CDFs

    def users(self) -> Statistic:
        return self._add(USERS)

    def _of(self, one: Statistic, column: str) -> Statistic:
        """A statistic of the rows with a value in a column: users without one add 0 to it, where others need none."""
        if column not in self._needs or len(self._needs) == 1:
            return one  # all rows that count have a value
        return replace(one, low=min(one.low, 0), high=max(one.high, 0), of=RowValue(column, 0, 0.0, 1, 1))

    def answer(self, name: str, aggregate: Aggregate) -> Answer:
        if isinstance(aggregate, CountUsers):
            if aggregate.column is None:
                return Answer(name, aggregate, self.users(), None)
            _known_column(aggregate.column, self._types, name)
            return Answer(name, aggregate, self._add(self._of(USERS, aggregate.column)), None)
        if isinstance(aggregate, CountRows):
            return Answer(name, aggregate, self._add(rows_of_a_user(aggregate.max_rows)), None)
        if isinstance(aggregate, CountUnreadable):
            _known_column(aggregate.column, self._schema, name)
            if self._grouped:
                raise ValueError(f"{name}: count_unreadable is of the whole table; ask for it without group_by")
            return Answer(name, aggregate, self._add(Statistic("unreadable", 0, 1, column=aggregate.column)), None)
        column = getattr(aggregate, "column", None)
        if not isinstance(column, str):
            raise TypeError(
                f"{name} must be about a column, by its name; got {short_repr(column)}. Name expressions by "
                "with_columns before"
            )
        kind = _known_column(column, self._types, name)
        if not isinstance(kind, (Number, Integer, Boolean)):
            raise TypeError(f"{name}: the column {column!r} is of kind {kind.kind!r}, and numbers are needed")
        if isinstance(aggregate, Sum):
            return Answer(name, aggregate, self._add(self._of(self._sum(name, aggregate, column, kind), column)), None)
        if isinstance(aggregate, Mean):
            total, count = self._mean(column, kind), USERS
            if aggregate.max_rows is not None:
                total = self._weighted(column, kind, aggregate.max_rows)
                count = rows_of_a_user(aggregate.max_rows)
            made = [self._add(self._of(one, column)) for one in (total, count)]
            return Answer(name, aggregate, *made)
        assert isinstance(aggregate, (Quantile, Histogram, Cdf))
        if isinstance(aggregate, Cdf) and not aggregate.inner(*limits(kind)[:2]):
            low, high, _ = limits(kind)
            raise ValueError(
                f"{name}: edges must have a point from {low:g} to below {high:g}, the bounds of {column!r}; at all of "
                f"{short_repr(aggregate.edges)} the share is 0 or 1 by these bounds"
            )
        self.others.append(column)
        return Answer(name, aggregate, None, self._of(USERS, column))

    def _add(self, statistic: Statistic) -> Statistic:
        self.statistics.setdefault(statistic)
        return statistic

    def _sum(self, name: str, aggregate: Sum, column: str, kind: ColumnType) -> Statistic:
        low, high, steps = limits(kind)
        top = float(aggregate.high)
        bottom = float(aggregate.low) if aggregate.low is not None else 0.0 if low >= 0 else -top
        if aggregate.low is None and high <= 0:
            bottom, top = -top, 0.0
        width = high - low
        exponent = 0 if steps is None else whole_unit(width, steps)
        reach = max(abs(low), abs(high))
        # The grid is as coarse as rows, and users' totals, need it to be.
        while (
            math.ldexp(reach, -exponent) > LARGEST_ROW
            or math.ldexp(max(abs(bottom), abs(top)), -exponent) > self._largest
        ):
            exponent += 1
        ends = math.ceil(math.ldexp(bottom, -exponent)), math.floor(math.ldexp(top, -exponent))
        if ends[0] >= ends[1]:
            raise ValueError(f"{name}: max_total is below a step of the grid of {column!r}; give the column more steps")
        value = RowValue(column, exponent, 0.0, round(math.ldexp(low, -exponent)), round(math.ldexp(high, -exponent)))
        return Statistic("sum", ends[0], ends[1], value, ends=ends)

    def _value(self, column: str, kind: ColumnType, times: int) -> RowValue:
        """A row's integer from the lower bound, on a grid that is coarse enough for so many times of it."""
        low, high, steps = limits(kind)
        exponent = whole_unit(high - low, DEFAULT_STEPS if steps is None else steps)
        if steps is None:
            exponent = min(exponent, 0)
        while math.ldexp(high - low, -exponent) * times > 2 * self._largest:
            exponent += 1
        return RowValue(column, exponent, low, 0, math.ceil(math.ldexp(high - low, -exponent)))

    def _mean(self, column: str, kind: ColumnType) -> Statistic:
        value = self._value(column, kind, 1)
        shift = value.high // 2
        return Statistic("mean", -shift, value.high - shift, value, shift=shift)

    def _weighted(self, column: str, kind: ColumnType, most: int) -> Statistic:
        value = self._value(column, kind, most)
        shift = value.high // 2
        return Statistic("weighted", -shift * most, (value.high - shift) * most, value, max_rows=most, shift=shift)


def rows_of_a_user(most: int) -> Statistic:
    """How many rows, at most so many."""
    return Statistic("rows", 1, most, max_rows=most)


def limits(kind: Any) -> tuple[float, float, int | None]:
    """The bounds of a numeric column, and its steps where it has a grid."""
    if isinstance(kind, Number):
        return kind.low, kind.high, kind.steps
    if isinstance(kind, Integer):
        return float(kind.low), float(kind.high), None
    return 0.0, 1.0, None
