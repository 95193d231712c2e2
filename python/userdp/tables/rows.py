"""From a table's rows to the integers of the core: whose row it is, which key it belongs to, and what it adds.

Everything here is a matter of one row: nothing depends on other rows, on their order or on where a batch ends. No value
raises. What cannot be read is left out, or stands for a public default.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.mechanisms.set_union import KeysOfUsers
from userdp.tables.aggregates import Cdf, Histogram, Quantile, whole_unit
from userdp.tables.compiled import Answer, Compiled, Kind, Statistic, Step, limits
from userdp.tables.per_user import apply_per_user, rows_of
from userdp.tables.quantiles import WEIGHT
from userdp.tables.reading import Batch, Table
from userdp.tables.schema import Category, Cells, ColumnType, Key
from userdp.users.values import UNREADABLE, VALUE, Mask, Spelling, of_objects

Codes: TypeAlias = npt.NDArray[np.uint32]
Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
KeyValue: TypeAlias = "tuple[int | str, ...]"

MOST_BINS = 2**16
SKIPPED = 2**32 - 1
"""The place of keys that are not on the public list."""


@dataclass(frozen=True)
class UserColumns:
    """What says whose row it is."""

    columns: tuple[str, ...]  # of the table: an id, or the parts of one
    spelling: Spelling = "doubles"


@dataclass(frozen=True)
class Sums:
    """What all users add up to, without noise: private."""

    keys: list[KeyValue]  # in their order; those of the public list, or those that occur
    columns: Mapping[Statistic, Integers]  # for each key
    splits: Mapping[str, Split]  # of other answers, by name
    users: int = 0  # who have a row that counts, in whatever key


@dataclass(frozen=True)
class Split:
    """Users' weight by bins, for each key: private."""

    bins: int
    starts: Integers  # where the cells of each key begin among all of them, and where the last ones end
    places: Integers  # the bin of each cell; a bin that is not listed has no weight
    weights: Integers

    def of(self, key: int) -> Integers:
        """The weights of all bins, for the key at a place."""
        found = np.zeros(self.bins, dtype=np.int64)
        cells = slice(self.starts[key], self.starts[key + 1])
        found[self.places[cells]] = self.weights[cells]
        return found


@dataclass(frozen=True)
class Bins:
    """A public partition of a column's values for a quantile, a histogram or a CDF."""

    answer: Answer
    column: str
    count: int
    unit: float  # of quantiles: what a bin is worth
    offset: float
    points: tuple[float, ...] = ()  # of CDFs: the last value of each bin but the last one


def bins_of(answer: Answer, types: Mapping[str, ColumnType]) -> Bins:
    """The bins of an answer: a grid for quantiles, and for CDFs what is between points within the bounds."""
    aggregate: Any = answer.aggregate
    if isinstance(aggregate, Histogram):
        return Bins(answer, aggregate.column, len(aggregate.edges) - 1, 0.0, 0.0)
    if isinstance(aggregate, Cdf):
        points = aggregate.inner(*limits(types[aggregate.column])[:2])
        return Bins(answer, aggregate.column, len(points) + 1, 0.0, 0.0, points)
    low, high, steps = limits(types[aggregate.column])
    wanted = MOST_BINS // 2 if steps is None else min(steps, MOST_BINS // 2)
    exponent = whole_unit(high - low, wanted)
    if steps is None:
        exponent = max(exponent, 0)
    unit = float(np.ldexp(1.0, exponent))
    return Bins(answer, aggregate.column, int(np.ceil((high - low) / unit)) + 1, unit, low)


def add_up(
    query: Compiled,
    table: Table,
    user: UserColumns,
    schema: Mapping[str, ColumnType],
    *,
    memory: int,
    directory: str | None,
    coins: bytes | None = None,
) -> Sums:
    """Read a table once, and add up what users add, each bounded. Keys are chosen by fresh coins, or by 32 bytes."""
    users = _core.TableIndex()
    keys = _Keys(query)
    sums = _core.TableSums(len(query.values), memory=memory, directory=directory)
    bins = [bins_of(answer, query.types) for answer in query.answers if not answer.aggregate.of_keys]
    splits = [_Splits(one, _core.TableSums(0, memory=memory, directory=directory), query) for one in bins]
    present, flags = Flags(), {one: Flags() for one in query.statistics if one.column is not None}
    for owners, chosen in _complete(query, table, user, schema, users, flags):
        present.mark(owners, len(users))
        of_keys = keys.codes(chosen, len(owners))
        if len(query.statistics) > len(flags):
            values = [_integers(chosen[value.column], value) for value in query.values]
            sums.add(owners, of_keys, values)
        for split in splits:
            split.add(owners, of_keys, chosen)
    drawn = secrets.token_bytes(32) if coins is None else coins
    found = _summed(query, users, keys, sums, splits, present.count, drawn)
    unreadable = {one: np.array([flag.count], dtype=np.int64) for one, flag in flags.items()}
    return replace(found, columns={**found.columns, **unreadable})


def keys_of_users(
    query: Compiled,
    table: Table,
    user: UserColumns,
    schema: Mapping[str, ColumnType],
    *,
    memory: int,
    directory: str | None,
) -> tuple[KeysOfUsers, list[KeyValue]]:
    """Read a table once: which users have which keys, and what the codes of keys stand for."""
    users, keys = _core.TableIndex(), _Keys(query)
    rows = _core.TableSums(0, memory=memory, directory=directory)
    for owners, chosen in _complete(query, table, user, schema, users):
        rows.add(owners, keys.codes(chosen, len(owners)), [])
    order, listed, places = keys.ordered()
    return KeysOfUsers(users, keys.index, rows, order), [listed[place] for place in places.tolist()]


class Flags:
    """A mark for each user, by number."""

    def __init__(self) -> None:
        self._marks = np.zeros(0, dtype=np.bool_)

    def mark(self, owners: Codes, users: int) -> None:
        """Mark some of so many users."""
        if users > len(self._marks):
            self._marks = np.append(self._marks, np.zeros(users, dtype=np.bool_))
        self._marks[owners] = True

    @property
    def count(self) -> int:
        """How many users are marked."""
        return int(self._marks.sum())


def _complete(
    query: Compiled,
    table: Table,
    user: UserColumns,
    schema: Mapping[str, ColumnType],
    users: Any,
    flags: Mapping[Statistic, Flags] | None = None,
) -> Iterator[tuple[Codes, dict[str, Cells]]]:
    """The users of the rows that count, and their values, batch by batch: those with a key that are of any use."""
    for codes, cells in _batches(query, table, user, schema, users, flags or {}):
        kept = np.ones(len(codes), dtype=np.bool_)
        for name in query.group:
            kept &= cells[name].valid
        if query.needs:
            kept &= np.any([cells[name].valid for name in query.needs], axis=0)
        yield codes[kept], {name: cells[name].taken(kept) for name in query.used}


def _summed(
    query: Compiled, users: Any, keys: _Keys, sums: Any, splits: Sequence[_Splits], present: int, coins: bytes
) -> Sums:
    order, listed, place_of = keys.ordered()
    # Which keys of a user count is the same for all parts of an answer.
    rule = {
        "users": users,
        "key_order": order,
        "max_keys": query.max_keys,
        "rule": query.rule,
        "key_digests": keys.index.digests(coins),
        "prf_key": coins,
    }
    columns: Sequence[Integers] = []
    counted = [one for one in query.statistics if one.column is None]
    if counted:
        occupied, columns = sums.bounded(**rule, columns=[_column(one, query) for one in counted])
        if query.unknown and query.keys is None:
            listed = [listed[place] for place in place_of[occupied].tolist()]
            place_of = np.full(len(place_of), -1, dtype=np.int64)
            place_of[occupied] = np.arange(len(occupied))
        else:
            # Keys that nobody has are in the answer too.
            places = place_of[occupied]
            columns = [_at(column, places, len(listed)) for column in columns]
    found = {split.bins.answer.name: split.split(rule, place_of, len(listed)) for split in splits}
    return Sums(listed, dict(zip(counted, columns, strict=True)), found, present)


def _at(column: Integers, places: Integers, count: int) -> Integers:
    """A column with its values at their places, and 0 elsewhere."""
    whole = np.zeros(count, dtype=np.int64)
    whole[places] = column
    return whole


class _Splits:
    """The rows of a quantile, a histogram or a CDF by user, key and bin."""

    def __init__(self, bins: Bins, sums: Any, query: Compiled) -> None:
        self.bins = bins
        self._sums = sums
        self._by_key = bool(query.group)
        self._index: Any = _core.TableIndex()
        self._cells: list[Integers] = []  # keys and bins, in the order of their codes

    def add(self, owners: Codes, keys: Codes, cells: Mapping[str, Cells]) -> None:
        """Add rows."""
        places = _places(cells[self.bins.column], self.bins)
        inside = places >= 0
        if not self._by_key:
            self._sums.add(owners[inside], places[inside].astype(np.uint32), [])
            return
        # Rows outside have no weight, but their key is one of the user's.
        places = np.where(inside, places, self.bins.count)
        values = (keys.astype(np.int64) << 32) | places
        before = len(self._index)
        codes: Codes = self._index.integers(values)
        new = np.flatnonzero(codes >= before)
        if len(new):
            _, first = np.unique(codes[new], return_index=True)
            self._cells.append(values[new[first]])
        self._sums.add(owners, codes, [])

    def split(self, rule: Mapping[str, Any], place_of: Integers, count: int) -> Split:
        """Users' weight by bins, for the keys at so many places."""
        if not self._by_key:
            weights, _ = self._sums.split(self.bins.count, WEIGHT)
            every = np.arange(self.bins.count)
            return Split(self.bins.count, np.array([0, len(every)]), every, weights)
        cells = np.concatenate(self._cells) if self._cells else np.zeros(0, dtype=np.int64)
        keys, places = (cells >> 32) & (2**32 - 1), cells & (2**32 - 1)
        ranks = rule["key_order"][keys]
        order = np.lexsort((places, ranks))
        order = order[ranks[order] != SKIPPED]
        cell_order = np.full(len(cells), SKIPPED, dtype=np.uint32)
        cell_order[order] = np.arange(len(order), dtype=np.uint32)
        weights = self._sums.split_by_key(
            **rule,
            cell_order=cell_order,
            keys=np.ascontiguousarray(ranks[order]),
            inside=places[order] < self.bins.count,
            weight=WEIGHT,
        )[: len(order)]
        # Keys are in the order of their ranks, as their places are.
        of_key, places = place_of[keys[order]], places[order]
        shown = (of_key >= 0) & (places < self.bins.count)
        starts = np.searchsorted(of_key[shown], np.arange(count + 1))
        return Split(self.bins.count, starts, places[shown], weights[shown])


def _column(one: Statistic, query: Compiled) -> tuple[Any, ...]:
    """A statistic as the core takes it."""
    place = -1 if one.value is None else query.values.index(one.value)
    steps = 0 if one.value is None else one.value.high
    # Where not all rows count, rows with a value are told by a value of their own.
    of = () if one.of is None else (query.values.index(one.of),)
    columns: dict[Kind, tuple[Any, ...]] = {
        "users": ("sum", *of, 0, 1, 0) if of else ("users",),
        "rows": ("sum", *of, 0, one.max_rows, 0) if of else ("rows", one.max_rows),
        "sum": ("sum", place, *one.ends, one.shift, *of),
        "mean": ("mean", place, steps, one.shift, *of),
        "weighted": ("weighted", place, steps, one.max_rows, one.shift, *of),
    }
    return columns[one.kind]


# --- batches


def _batches(
    query: Compiled,
    table: Table,
    user: UserColumns,
    schema: Mapping[str, ColumnType],
    users: Any,
    flags: Mapping[Statistic, Flags],
) -> Iterator[tuple[Codes, dict[str, Cells]]]:
    """The users and the cells of the rows that the steps leave, batch by batch."""
    steps = query.steps
    place = next((place for place, step in enumerate(steps) if step.per_user is not None), None)
    first = steps if place is None else steps[:place]
    batches = (
        _stepped(*_read(batch, user, query.columns, schema, users, flags), first)
        for batch in table.batches(list(dict.fromkeys((*query.columns, *user.columns))))
    )
    if place is None:
        yield from batches
        return
    yield _stepped(*_per_user(batches, steps[place]), steps[place + 1 :])


def _read(
    batch: Batch,
    user: UserColumns,
    columns: Sequence[str],
    schema: Mapping[str, ColumnType],
    users: Any,
    flags: Mapping[Statistic, Flags],
) -> tuple[Codes, dict[str, Cells]]:
    """The rows that are somebody's, and marks on the users who have unreadable cells."""
    codes, owned = user_codes(batch, user, users)
    cells = {name: schema[name].read(batch[name], name).taken(owned) for name in columns}
    codes = codes[owned]
    for one, marks in flags.items():
        status = cells[str(one.column)].status
        assert status is not None
        marks.mark(codes[status == UNREADABLE], len(users))
    return codes, cells


def _stepped(codes: Codes, cells: dict[str, Cells], steps: Sequence[Step]) -> tuple[Codes, dict[str, Cells]]:
    """Filters and new columns, in their order."""
    for step in steps:
        assert step.program is not None
        found = step.program.evaluate(cells, len(codes))
        if step.name is None:
            kept = found.valid & found.values.astype(np.bool_)
            codes, cells = codes[kept], {name: column.taken(kept) for name, column in cells.items()}
        else:
            cells = {**cells, step.name: found}
    return codes, cells


def _per_user(batches: Iterator[tuple[Codes, dict[str, Cells]]], step: Step) -> tuple[Codes, dict[str, Cells]]:
    """New rows, from each user's rows."""
    assert step.per_user is not None
    rows: dict[int, list[dict[str, Any]]] = {}
    for codes, cells in batches:
        # In the schema's order, whichever of them were read.
        columns = {name: cells[name] for name in step.types}
        for code, row in zip(codes.tolist(), rows_of(columns, step.types), strict=True):
            rows.setdefault(code, []).append(row)
    owners: list[int] = []
    made: list[Mapping[str, Any]] = []
    for code, own in rows.items():
        results = apply_per_user(step.per_user.function, step.per_user.returns, own)
        owners += [code] * len(results)
        made += results
    cells = {}
    for name, kind in step.per_user.returns.items():
        cells[name] = kind.read(of_objects([row.get(name) for row in made]), name)
    return np.array(owners, dtype=np.uint32), cells


# --- users


def user_codes(batch: Batch, user: UserColumns, users: Any) -> tuple[Codes, Mask]:
    """Return a number for each row's user, and which rows have one."""
    columns = [batch[name].cells for name in user.columns]
    codes, status = _core.owner_codes(users, columns, [user.spelling] * len(columns))
    return codes, status == VALUE


# --- keys


class _Keys:
    """Numbers for the keys that occur, and what they stand for."""

    def __init__(self, query: Compiled) -> None:
        self._query = query
        self._kinds = [query.types[name] for name in query.group]
        self._columns = [_Values(kind) for kind in self._kinds]
        self._pairs: list[_Values] = [_Values(None) for _ in self._columns[1:]]
        self.index: Any = _core.TableIndex()

    def codes(self, cells: Mapping[str, Cells], count: int) -> Codes:
        """The number of each row's key."""
        if not self._columns:
            return np.zeros(count, dtype=np.uint32)
        parts = [values.codes(cells[name]) for name, values in zip(self._query.group, self._columns, strict=True)]
        joined = parts[0]
        for pairs, part in zip(self._pairs, parts[1:], strict=True):
            joined = pairs.of_integers((joined.astype(np.int64) << 32) | part.astype(np.int64))
        return joined

    def __len__(self) -> int:
        if not self._columns:
            return 1
        return len(self._pairs[-1] if self._pairs else self._columns[0])

    def ordered(self) -> tuple[Codes, list[KeyValue], Integers]:
        """Return the rank of each number's key, the keys in their order, and the place of each number's key in it."""
        parts = self._parts()
        columns = [column.values for column in self._columns]
        values: list[KeyValue] = [()]
        if columns:
            listed_parts = [[own[place] for place in part.tolist()] for own, part in zip(columns, parts, strict=True)]
            values = list(zip(*listed_parts, strict=True))
        # What decides which keys of a user count is the key itself, not its number.
        self._number(parts)
        public = self._query.keys
        if public is None:
            in_order = self._in_order(parts)
            listed = [values[code] for code in in_order.tolist()]
            places = np.empty(len(values), dtype=np.int64)
            places[in_order] = np.arange(len(values))
        else:
            listed = list(public)
            place_of = {value: place for place, value in enumerate(listed)}
            if self._query.unknown:
                # Others come after the list, in their order.
                beyond = [values[code] for code in self._in_order(parts).tolist() if values[code] not in place_of]
                place_of.update((value, len(listed) + place) for place, value in enumerate(beyond))
                listed += beyond
            places = np.array([place_of.get(value, -1) for value in values], dtype=np.int64)
            in_order = np.argsort(places, kind="stable")
            in_order = in_order[places[in_order] >= 0]
        ranks = np.full(len(values), SKIPPED, dtype=np.uint32)
        ranks[in_order] = np.arange(len(in_order), dtype=np.uint32)
        return ranks, listed, places

    def _parts(self) -> list[Integers]:
        """For each column the numbers of its values, key by key."""
        if not self._columns:
            return []
        codes, parts = np.arange(len(self), dtype=np.int64), []
        for pairs in reversed(self._pairs):
            whole = np.array(pairs.values, dtype=np.int64)[codes]
            parts.append(whole & (2**32 - 1))
            codes = whole >> 32
        return [codes, *reversed(parts)]

    def _in_order(self, parts: Sequence[Integers]) -> Integers:
        """The numbers of the keys in the order of their values."""
        if not parts:
            return np.zeros(1, dtype=np.int64)
        # The last one sorts first.
        ranks = [column.ranks()[part] for column, part in zip(self._columns, parts, strict=True)]
        return np.lexsort(ranks[::-1]).astype(np.int64)

    def _number(self, parts: Sequence[Integers]) -> None:
        """Put all keys into the index of what hashes are made of, injectively and in the order of their numbers."""
        if len(parts) == 1 and self._columns[0].of_one_type is int:
            self.index.integers(np.array(self._columns[0].values, dtype=np.int64))
        elif len(parts) == 1 and self._columns[0].of_one_type is str:
            self.index.texts([text.encode("utf-8", "surrogatepass") for text in self._columns[0].values])
        else:
            tables = [[_bytes_of(value) for value in column.values] for column in self._columns]
            joined = [[own[place] for place in part.tolist()] for own, part in zip(tables, parts, strict=True)]
            self.index.texts(list(map(b"".join, zip(*joined, strict=True))) if joined else [b""])


def _bytes_of(part: int | str) -> bytes:
    """A part of a key as bytes, injectively; an empty text is one."""
    content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else b"%d" % part
    return b"%s%d:%s" % (b"s" if isinstance(part, str) else b"i", len(content), content)


class _Values:
    """Numbers for the values of one column of keys, in the order of arrival."""

    def __init__(self, kind: ColumnType | None) -> None:
        self._kind = kind
        self._index: Any = _core.TableIndex()
        self.values: list[Any] = []

    def __len__(self) -> int:
        return len(self.values)

    @property
    def of_one_type(self) -> type | None:
        """What all values are by the schema: a category may list both integers and texts."""
        if isinstance(self._kind, Category):
            return None
        return str if isinstance(self._kind, Key) and self._kind.type is str else int

    def ranks(self) -> Integers:
        """The rank of each value among all: integers come first, then texts."""
        if self.of_one_type is int:
            in_order = np.argsort(np.array(self.values, dtype=np.int64), kind="stable")
        elif self.of_one_type is str:
            in_order = np.array(sorted(range(len(self.values)), key=self.values.__getitem__), dtype=np.int64)
        else:
            keys = [(isinstance(value, str), value) for value in self.values]
            in_order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        ranks = np.empty(len(self.values), dtype=np.int64)
        ranks[in_order] = np.arange(len(self.values))
        return ranks

    def codes(self, cells: Cells) -> Codes:
        if isinstance(self._kind, Category):
            codes = self.of_integers(cells.values.astype(np.int64, copy=False), self._kind.values)
        elif cells.texts is not None:
            codes = self._of_texts(cells)
        else:
            codes = self.of_integers(cells.values.astype(np.int64, copy=False))
        return codes

    def of_integers(self, values: Integers, meaning: Sequence[Any] | None = None) -> Codes:
        codes: Codes = self._index.integers(np.ascontiguousarray(values))
        new = np.flatnonzero(codes >= len(self.values))
        if len(new):
            _, first = np.unique(codes[new], return_index=True)
            found = values[new[first]].tolist()
            self.values += found if meaning is None else [meaning[place] for place in found]
        return codes

    def _of_texts(self, cells: Cells) -> Codes:
        assert cells.texts is not None
        if not len(cells):
            return np.zeros(0, dtype=np.uint32)
        # Texts of rows that were left out have no number.
        used = np.unique(cells.values)
        texts = [cells.texts[place] for place in used.tolist()]
        codes = self._index.texts([text.encode("utf-8", "surrogatepass") for text in texts])
        for text, code in zip(texts, codes.tolist(), strict=True):
            if code == len(self.values):
                self.values.append(text)
        table = np.zeros(int(used[-1]) + 1, dtype=np.uint32)
        table[used] = codes
        numbered: Codes = table[cells.values]
        return numbered


# --- values


def _integers(cells: Cells, value: Any) -> Integers:
    """Rows' integers on a public grid, clamped to the column's range once more; 0 for rows without a value."""
    with np.errstate(all="ignore"):
        scaled = np.rint((_present(cells) - value.offset) / value.unit)
    whole: Integers = np.clip(scaled, value.low, value.high).astype(np.int64)
    return np.where(cells.valid, whole, 0)


def _present(cells: Cells) -> Floats:
    """Values as floats, and 0 where there is none: what stands there is not looked at, not even by a cast."""
    return np.where(cells.valid, cells.values, 0).astype(np.float64)


def _places(cells: Cells, bins: Bins) -> Integers:
    """The bin of each row; -1 outside of all, and without a value."""
    aggregate: Any = bins.answer.aggregate
    values = _present(cells)
    if isinstance(aggregate, Quantile):
        with np.errstate(all="ignore"):
            places = np.clip(np.rint((values - bins.offset) / bins.unit), 0, bins.count - 1)
    elif isinstance(aggregate, Cdf):
        places = np.searchsorted(np.array(bins.points), values, side="left")
    else:
        edges = np.array(aggregate.edges)
        places = np.searchsorted(edges, values, side="right") - 1
        places[values == edges[-1]] = bins.count - 1
    return np.where(cells.valid & (places >= 0) & (places < bins.count), places, -1).astype(np.int64)
