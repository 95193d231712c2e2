"""Tables as they are kept, read batch by batch: frames, lazy frames, datasets on disk, relations of databases.

What a table *is* decides how it is read: its kind, the names and the declared types of its columns. Each part is read
by its own types, and nothing is cast to those of another part, which could fail on a value. Batches are a matter of
memory only: no result depends on where one ends.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from userdp.exact.numbers import short_repr
from userdp.users.values import Column, Marks, family_of_arrow, gone, head, of_arrow, of_native, of_objects

Batch: TypeAlias = "Mapping[str, Column]"

BATCH_ROWS = 2**20
ACCEPTED = (
    "a frame of pandas, polars (lazy ones too), pyarrow (tables, datasets, lists of batches) or Dask, a relation of "
    "DuckDB, a table of Ibis, a file by userdp.tables.read_csv, or a dict of columns"
)


class Table(ABC):
    """A table that can be read as often as it is asked for."""

    names: tuple[str, ...]
    """Of its columns; a name that stands twice is there twice."""

    backend: str | None = None
    """The library whose frames answers come in: that of the table, where it makes frames in memory."""

    dialect: str | None = None
    """What is public of how the table is read, in a sentence."""

    marks: Marks | None = None
    """How its texts write numbers, where that is not the usual way."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns, batch by batch."""

    @abstractmethod
    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """The same without rows, for all parts, whose types may differ; no column that a part lacks."""


class Heads(Table):
    """A table without its rows: what can be known of how it is read before it is."""

    def __init__(self, heads: Sequence[Batch]) -> None:
        self._heads = heads
        self.names = tuple(dict.fromkeys(name for one in heads for name in one))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """One of no rows for each head."""
        yield from ({name: one[name] if name in one else gone(0) for name in columns} for one in self._heads)

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return them."""
        return [{name: one[name] for name in columns if name in one} for one in self._heads]


def table_of(container: Any, name: str = "frame") -> Table:
    """A table of any accepted kind; refused by its kind and the names of its columns."""
    if isinstance(container, Table):
        return container
    if isinstance(container, (list, tuple)):
        if not container:
            raise ValueError(f"{name} is an empty list; give at least one batch, which may have no rows")
        return _Parts([table_of(part, name) for part in container])
    if isinstance(container, dict):
        return _Dict(container, name)
    owners = {base.__module__.partition(".")[0]: base for base in type(container).__mro__}
    if "pyspark" in owners:
        raise TypeError(
            f"{name} is a frame of Spark, which would be collected on the driver: write it as Parquet and pass "
            f"pyarrow.dataset.dataset(path), or pass {name}.toArrow() if it fits in memory"
        )
    for owner, maker in _MAKERS.items():
        if owner in owners and (made := maker(container, name)) is not None:
            return made
    return _other(container, name)


def _other(container: Any, name: str) -> Table:
    """A frame in memory of another library that narwhals knows, as one of pyarrow."""
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    kind = type(container)
    try:
        frame = nw.from_native(container, pass_through=True)
    except DuplicateError:
        raise ValueError(f"{name} has several columns of one name; rename them") from None
    if isinstance(frame, nw.DataFrame) and not isinstance(container, nw.DataFrame):
        return _Arrow(frame.to_arrow(), name)
    if isinstance(container, (nw.DataFrame, nw.LazyFrame)):
        return table_of(container.to_native(), name)
    raise TypeError(f"{name} must be {ACCEPTED}; got a {kind.__module__}.{kind.__qualname__}")


class _Frame(Table):
    """A frame in memory."""

    @abstractmethod
    def _column(self, place: int) -> Any:
        """The column at a place."""

    @abstractmethod
    def _rows(self) -> int:
        """How many rows there are."""

    def _slice(self, column: Any, start: int, stop: int) -> Any:
        return column[start:stop]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Slices."""
        chosen = {name: self._column(self.names.index(name)) for name in columns}
        for start in range(0, self._rows(), BATCH_ROWS):
            stop = start + BATCH_ROWS
            yield {name: self._read(self._slice(column, start, stop)) for name, column in chosen.items()}

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return its head of no rows."""
        return [{name: self._read(self._slice(self._column(self.names.index(name)), 0, 0)) for name in columns}]

    def _read(self, column: Any) -> Column:
        return of_native(column)


class _Pandas(_Frame):
    """A frame of pandas. Of columns that are not named by texts nothing is asked."""

    backend = "pandas"

    def __init__(self, frame: Any, name: str) -> None:
        import pandas

        if isinstance(frame.columns, pandas.MultiIndex):
            raise ValueError(f"{name} has columns on several levels; give each one name")
        self._frame = frame
        # A label that is no text keeps its place, and no schema can mean it.
        self.names = tuple(label if isinstance(label, str) else f"\0{short_repr(label)}" for label in frame.columns)

    def _column(self, place: int) -> Any:
        return self._frame.iloc[:, place]

    def _slice(self, column: Any, start: int, stop: int) -> Any:
        return column.iloc[start:stop]

    def _rows(self) -> int:
        return len(self._frame)


class _Polars(_Frame):
    """A frame of polars."""

    backend = "polars"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(frame.columns)

    def _column(self, place: int) -> Any:
        return self._frame.to_series(place)

    def _rows(self) -> int:
        return int(self._frame.height)


class _LazyPolars(Table):
    """A lazy frame of polars, which is run anew for each reading."""

    backend = "polars"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(frame.collect_schema().names())

    def _chosen(self, columns: Sequence[str]) -> Any:
        import polars

        # By place: polars takes some names for patterns.
        return self._frame.select(polars.nth([self.names.index(name) for name in columns]))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """What comes from its streaming engine."""
        chosen = self._chosen(columns)
        if not hasattr(chosen, "collect_batches"):
            yield from _Polars(chosen.collect()).batches(columns)
            return
        for batch in chosen.collect_batches(maintain_order=False):
            yield from _Polars(batch).batches(columns)

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return its head of no rows."""
        return _Polars(self._chosen(columns).head(0).collect()).heads(columns)


class _Arrow(_Frame):
    """A table or a batch of pyarrow."""

    backend = "pyarrow"

    def __init__(self, table: Any, name: str) -> None:
        self._table = table
        self.names = tuple(table.schema.names)

    def _column(self, place: int) -> Any:
        return self._table.column(place)

    def _rows(self) -> int:
        return int(self._table.num_rows)


class _Stream(Table):
    """A query of a database, which hands over batches of Arrow and is run anew for each reading."""

    backend = "pyarrow"

    def __init__(
        self,
        names: Sequence[str],
        schema: Callable[[Sequence[str]], Any],
        run: Callable[[Sequence[str]], Iterator[Any]],
        families: Mapping[str, str] | None = None,
    ) -> None:
        self.names, self._schema, self._run, self._families = tuple(names), schema, run, families or {}

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The batches of its result."""
        for batch in self._run(columns):
            found = {name: of_arrow(batch.column(place)) for place, name in enumerate(columns)}
            yield {name: self._of_family(name, column) for name, column in found.items()}

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return the types of its result."""
        found = _heads(self._schema(columns), columns)
        return [{name: self._of_family(name, column) for name, column in found.items()}]

    def _of_family(self, name: str, column: Column) -> Column:
        """A column by what its owner says that it is, where that comes in another form."""
        if name not in self._families:
            return column
        return Column(column.cells.as_numbers(), column.dtype, self._families[name])


def _duckdb(relation: Any, name: str) -> Table | None:
    if not hasattr(relation, "columns") or not hasattr(relation, "project"):
        return None
    # The largest integers would come as negative ones: they are taken as texts of their digits.
    types = zip(relation.columns, map(str, relation.types), strict=True)
    wide = {column: "integer" for column, kind in types if kind == "UHUGEINT"}

    def chosen(columns: Sequence[str]) -> Any:
        own = {column: _quoted(column) for column in columns}
        casts = {column: f"CAST({own[column]} AS VARCHAR) AS {own[column]}" for column in columns if column in wide}
        return relation.project(", ".join((own | casts).values()))

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        rows = chosen(columns)
        reader = rows.to_arrow_reader if hasattr(rows, "to_arrow_reader") else rows.fetch_arrow_reader
        yield from reader(BATCH_ROWS)

    def schema(columns: Sequence[str]) -> Any:
        rows = chosen(columns).limit(0)
        return (rows.to_arrow_table if hasattr(rows, "to_arrow_table") else rows.arrow)().schema

    return _Stream(relation.columns, schema, batches, wide)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ibis(table: Any, name: str) -> Table | None:
    if not hasattr(table, "to_pyarrow_batches"):
        return None
    backend = table.get_backend()
    if backend.name == "duckdb":  # by the relation itself, as versions of both do not always agree on streams
        return _duckdb(backend.con.sql(str(backend.compile(table))), name)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        yield from table.select(*columns).to_pyarrow_batches(chunk_size=BATCH_ROWS)

    return _Stream(table.columns, lambda columns: table.select(*columns).schema().to_pyarrow(), batches)


class _Dataset(Table):
    """A dataset of pyarrow: each file by its own types."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.names = tuple(dataset.schema.names)
        self._fragments()

    def _fragments(self) -> Iterator[Any]:
        import pyarrow.dataset

        try:
            found = self._dataset.get_fragments()
        except ValueError:
            raise ValueError(
                "frame is a dataset with a filter, whose files would be cast to one type, which can fail on a value: "
                "pass the dataset itself, and filter by the query"
            ) from None
        guessing = (pyarrow.dataset.CsvFileFormat, getattr(pyarrow.dataset, "JsonFileFormat", ()))
        for fragment in found:
            if isinstance(getattr(fragment, "format", None), guessing):
                raise TypeError(
                    "frame is a dataset of text files, whose types would be guessed from their first rows, and fail at "
                    "a later one: read .csv files by userdp.tables.read_csv, and write others as Parquet"
                )
            yield fragment

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Its record batches, of one file and one row group after the other."""
        for fragment in self._fragments():
            held = set(fragment.physical_schema.names)
            folders = _folders(fragment)
            own = [name for name in columns if name in held]
            # A scan reads up to a GiB ahead of who takes its batches, whatever it is told: one row group at a time.
            pieces = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
            for piece in pieces:
                for batch in piece.to_batches(columns=own, batch_size=BATCH_ROWS, schema=fragment.physical_schema):
                    found = {name: of_arrow(batch.column(name)) for name in own}
                    yield found | self._beside(columns, held, folders, batch.num_rows)

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return the schema of each file, once."""
        heads: dict[Any, Batch] = {}
        for fragment in self._fragments():
            schema, folders = fragment.physical_schema, _folders(fragment)
            label = (str(schema.remove_metadata()), tuple(folders))
            if label not in heads:
                own = _heads(schema, [name for name in columns if name in schema.names])
                beside = [name for name in columns if name in folders and name not in own]
                heads[label] = own | {name: head("folder names", "text") for name in beside}
        return list(heads.values()) or [_heads(self._dataset.schema, columns)]

    @staticmethod
    def _beside(columns: Sequence[str], held: set[str], folders: Mapping[str, Any], rows: int) -> dict[str, Column]:
        """Columns that a file has not: of what its folder says, or missing."""
        found = {}
        for name in columns:
            if name not in held:
                found[name] = (
                    of_objects([folders[name]] * rows, "folder names", "text") if name in folders else gone(rows)
                )
        return found


def _heads(schema: Any, columns: Sequence[str]) -> dict[str, Column]:
    """Columns of a schema of Arrow without rows: some types have no empty arrays."""
    types = {name: schema.field(name).type for name in columns}
    return {name: head(str(kind), family_of_arrow(kind)) for name, kind in types.items()}


def _folders(fragment: Any) -> Mapping[str, Any]:
    """What the names of a file's folders say of its columns."""
    import pyarrow.dataset

    return pyarrow.dataset.get_partition_keys(fragment.partition_expression)


def _pyarrow(container: Any, name: str) -> Table | None:
    import pyarrow

    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(container, dataset.Dataset):
        return _Dataset(container)
    if isinstance(container, pyarrow.RecordBatchReader):
        raise TypeError(
            f"{name} is a reader of batches, which can be read once only: pass a table, a dataset, or a list of its "
            "batches"
        )
    return _Arrow(container, name) if isinstance(container, (pyarrow.Table, pyarrow.RecordBatch)) else None


def _pandas(container: Any, name: str) -> Table | None:
    import pandas

    return _Pandas(container, name) if isinstance(container, pandas.DataFrame) else None


def _polars(container: Any, name: str) -> Table | None:
    import polars

    if isinstance(container, polars.DataFrame):
        return _Polars(container)
    return _LazyPolars(container) if isinstance(container, polars.LazyFrame) else None


class _Parts(Table):
    """A list of tables with the same columns, one after another."""

    def __init__(self, parts: Sequence[Table]) -> None:
        self._parts = parts
        self.names, self.backend = parts[0].names, parts[0].backend
        for part in parts[1:]:
            if set(part.names) != set(self.names):
                raise ValueError("frame is a list of batches with different columns")

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Those of all parts."""
        for part in self._parts:
            yield from part.batches(columns)

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return each one's."""
        return [head for part in self._parts for head in part.heads(columns)]


class _Partitioned(Table):
    """A Dask frame: one partition at a time comes to this process, and is read by the types that it has."""

    backend = "pandas"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._head = _Pandas(frame._meta, "frame")
        self.names = self._head.names

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Slices of each partition."""
        for partition in self._frame[list(columns)].partitions:
            yield from _Pandas(partition.compute(), "frame").batches(columns)

    def heads(self, columns: Sequence[str]) -> list[Batch]:
        """Return the frame of its types."""
        return self._head.heads(columns)


def _dask(container: Any, name: str) -> Table | None:
    return _Partitioned(container) if hasattr(container, "partitions") and hasattr(container, "_meta") else None


class _Dict(_Frame):
    """Columns by name: lists are read value by value, arrays and series by their type."""

    def __init__(self, columns: Mapping[Any, Any], name: str) -> None:
        odd = next((label for label in columns if not isinstance(label, str)), None)
        if odd is not None or not columns:
            raise TypeError(f"{name} is a dict, and its keys must be names of columns; got {short_repr(odd)}")
        self._columns = list(columns.values())
        self.names = tuple(columns)
        kinds = (list, tuple, np.ndarray)
        for label, column in columns.items():
            if not (isinstance(column, kinds) or _is_series(column)) or getattr(column, "ndim", 1) != 1:
                raise TypeError(
                    f"{name}: the columns of a dict are lists, or arrays or series of one dimension; got a "
                    f"{type(column).__name__} for {label!r}"
                )
        if len(set(map(len, self._columns))) > 1:
            raise ValueError(f"{name} is a dict of columns of several lengths")

    def _column(self, place: int) -> Any:
        return self._columns[place]

    def _slice(self, column: Any, start: int, stop: int) -> Any:
        return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]

    def _rows(self) -> int:
        return len(self._columns[0])

    def _read(self, column: Any) -> Column:
        return of_objects(column) if isinstance(column, (list, tuple)) else of_native(column)


def _is_series(column: Any) -> bool:
    return type(column).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(column, "__len__")


_MAKERS: dict[str, Callable[[Any, str], Table | None]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "dask": _dask,
    "duckdb": _duckdb,
    "_duckdb": _duckdb,
    "ibis": _ibis,
}
