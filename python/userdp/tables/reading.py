"""Tables as they are kept, read batch by batch: frames, lazy frames, datasets on disk, and frames in partitions.

What a table *is* decides how it is read: its kind, the names and the declared types of its columns. Batches are a
matter of memory only: no result depends on where one ends.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from userdp.exact.numbers import short_repr

BATCH_ROWS = 2**20
ACCEPTED = (
    "a frame of pandas, polars (lazy ones too), pyarrow (tables, datasets, lists of batches) or Dask, or a callable "
    "that returns one"
)


class Table(ABC):
    """A table that can be read as often as it is asked for."""

    names: tuple[str, ...]
    """Of its columns."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Frames of narwhals with these columns."""

    @abstractmethod
    def empty(self, columns: Sequence[str]) -> Any:
        """Return a frame without rows, with the types of the columns."""

    @property
    def backend(self) -> str | None:
        """The library whose frames answers come in: that of the table, where it makes frames in memory."""
        name: str = self.empty(self.names[:1]).implementation.value
        return name if name in ("pandas", "polars", "pyarrow") else None

    def heads(self, columns: Sequence[str]) -> list[Any]:
        """Return such frames for all parts, whose types may differ."""
        return [self.empty(columns)]


def table_of(container: Any, name: str = "frame") -> Table:
    """A table of any accepted kind; refused by its kind and the names of its columns."""
    if isinstance(container, Table):
        return container
    if isinstance(container, (list, tuple)):
        if not container:
            raise ValueError(f"{name} is an empty list; give at least one batch, which may have no rows")
        return _Parts([table_of(part, name) for part in container])
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(container, dataset.Dataset):
        return _Dataset(container)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        if isinstance(container, arrow.RecordBatchReader):
            raise TypeError(
                f"{name} is a reader of batches, which can be read once only: pass a table, a dataset, or a list of "
                "its batches"
            )
        if isinstance(container, arrow.RecordBatch):
            return _Frame(arrow.table(container), name)
    return _Frame(container, name) if _partitions(container) is None else _Partitioned(container)


def _partitions(container: Any) -> Any:
    """The partitions of a Dask frame, otherwise None."""
    dask = sys.modules.get("dask.dataframe")
    if dask is None or not isinstance(container, dask.DataFrame):
        return None
    return container.partitions


def _narwhals(container: Any, name: str) -> Any:
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(container, pass_through=True)
    except DuplicateError:
        raise ValueError(f"{name} has several columns of one name; rename them") from None
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        kind = type(container)
        raise TypeError(f"{name} must be {ACCEPTED}; got a {kind.__module__}.{kind.__qualname__}")
    return frame


class _Frame(Table):
    """A frame in memory, or a lazy one, which is run anew for each reading."""

    def __init__(self, container: Any, name: str) -> None:
        import narwhals.stable.v2 as nw

        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(container, pandas.DataFrame):
            if isinstance(container.columns, pandas.MultiIndex):
                raise ValueError(f"{name} has columns on several levels; give each one name")
            odd = next((label for label in container.columns if not isinstance(label, str)), None)
            if odd is not None:
                raise ValueError(f"{name} has the column {short_repr(odd)}, which is no text; rename it")
        self._frame = _narwhals(container, name)
        self._lazy = isinstance(self._frame, nw.LazyFrame)
        self.names = tuple(self._frame.collect_schema().names())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Slices; of lazy frames of polars what comes from its streaming engine."""
        chosen = self._frame.select(*columns)
        if not self._lazy:
            for start in range(0, len(chosen), BATCH_ROWS):
                yield chosen[start : start + BATCH_ROWS]
            return
        native = chosen.to_native()
        if hasattr(native, "collect_batches"):
            for batch in native.collect_batches(maintain_order=False):
                yield _narwhals(batch, "frame")
        else:
            whole = chosen.collect()
            for start in range(0, len(whole), BATCH_ROWS):
                yield whole[start : start + BATCH_ROWS]

    def empty(self, columns: Sequence[str]) -> Any:
        """Return its head of no rows."""
        head = self._frame.select(*columns).head(0)
        return head.collect() if self._lazy else head


class _Dataset(Table):
    """A dataset of pyarrow."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.names = tuple(dataset.schema.names)
        if len(set(self.names)) < len(self.names):
            raise ValueError("frame has several columns of one name; rename them")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Its record batches, of one file and one row group after the other."""
        import pyarrow

        for part in self._parts():
            # A fragment has the types and the order of its own file.
            given = {} if part is self._dataset else {"schema": self._dataset.schema}
            for batch in part.to_batches(columns=list(columns), batch_size=BATCH_ROWS, **given):
                yield _narwhals(pyarrow.table(batch), "frame")

    def _parts(self) -> Iterator[Any]:
        """What is scanned at a time: a scan reads up to a GiB ahead of who takes its batches, whatever it is told."""
        try:
            fragments = iter(self._dataset.get_fragments())
        except ValueError:  # a dataset with a filter has none
            yield self._dataset
            return
        for fragment in fragments:
            yield from fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]

    def empty(self, columns: Sequence[str]) -> Any:
        """Return its schema as a table."""
        return _narwhals(self._dataset.schema.empty_table().select(list(columns)), "frame")


class _Parts(Table):
    """A list of tables with the same columns, one after another."""

    def __init__(self, parts: Sequence[Table]) -> None:
        self._parts = parts
        self.names = parts[0].names
        for part in parts[1:]:
            if set(part.names) != set(self.names):
                raise ValueError("frame is a list of batches with different columns")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Those of all parts."""
        for part in self._parts:
            yield from part.batches(columns)

    def empty(self, columns: Sequence[str]) -> Any:
        """Return the first one's."""
        return self._parts[0].empty(columns)

    def heads(self, columns: Sequence[str]) -> list[Any]:
        """Return each one's."""
        return [head for part in self._parts for head in part.heads(columns)]


class _Partitioned(Table):
    """A Dask frame: one partition at a time comes to this process."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._head = _Frame(frame._meta, "frame")
        self.names = self._head.names

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Slices of each partition."""
        chosen = self._frame[list(columns)]
        for partition in chosen.partitions:
            yield from _Frame(partition.compute(), "frame").batches(columns)

    def empty(self, columns: Sequence[str]) -> Any:
        """Return the frame of its types."""
        return self._head.empty(columns)
