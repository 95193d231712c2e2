"""Public lists of keys for the command `table`: values with commas between them, or files, by the schema's types."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from userdp.cli.arguments import UsageError, read_text
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from userdp.tables import KeySet, Schema

ENDINGS = (".csv", ".txt", ".json", ".parquet")
"""Of words that are files and no keys."""
Places: TypeAlias = "Iterator[tuple[str, Sequence[Any]]]"
"""Keys, and where they stand."""


def read_keys(words: Sequence[str], columns: Sequence[str], schema: Schema) -> KeySet:
    """The public keys of a group-by.

    Parameters
    ----------
    words : sequence of str
        A file with a key in each row, or for each column a list with commas between its values, of which all
        combinations are keys.
    columns : sequence of str
        Those of the group-by, in their order.
    schema : Schema
        Its types say how texts are read.

    Raises
    ------
    UsageError
        Naming the option and the place.
    """
    from userdp.tables import KeySet

    unknown = next((name for name in columns if name not in schema), None)
    if unknown is not None:
        raise UsageError(f"--group-by: {unknown!r} is no column of the schema, which has {', '.join(schema)}")
    readers = [_reader(name, schema[name]) for name in columns]
    files = [word for word in words if Path(word).suffix.lower() in ENDINGS]
    try:
        if files:
            if len(words) > 1:
                raise UsageError(f"--keys: give one file, or a list for each column of --group-by; got {len(words)}")
            return KeySet.from_values([_read(place, row, readers) for place, row in _rows(Path(files[0]), columns)])
        if len(words) != len(columns):
            each = f"a list for each column of --group-by in their order, that is {len(columns)}"
            raise UsageError(f"--keys: give {each}, or one file with all columns; got {len(words)}")
        lists = [_listed(word) for word in words]
        return KeySet.product(*([read(text) for text in texts] for texts, read in zip(lists, readers, strict=True)))
    except OSError as error:
        raise UsageError(f"--keys: {files[0]}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"--keys: {error}") from None


def _listed(word: str) -> list[str]:
    """The values of a list, where one with a comma is in double quotes."""
    try:
        texts = next(csv.reader([word], skipinitialspace=True, strict=True), [])
    except csv.Error:  # a quote that does not end, or a line that does
        texts = []
    if not texts or "" in texts:
        raise ValueError(f"{short_repr(word)} is no list of values with commas between them, such as north,south")
    return texts


# --- files


def _rows(path: Path, columns: Sequence[str]) -> Places:
    """The rows of a file, with where each stands, and their values in the order of columns."""
    ending = path.suffix.lower()
    if ending == ".txt":
        lines = [line.removesuffix("\r") for line in read_text(path).removeprefix("\ufeff").split("\n")]
        # As in .csv files an empty line is none.
        return ((f"{path}, line {number}", [line]) for number, line in enumerate(lines, 1) if line)
    if ending == ".csv":
        return _of_csv(path, columns)
    if ending == ".json":
        try:
            found = json.loads(read_text(path).removeprefix("\ufeff"))
        except RecursionError:
            raise ValueError(f"{path} is not JSON that can be read") from None
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}") from None
        if not isinstance(found, list):
            raise ValueError(f"{path}: expected a JSON list of keys: values, lists of them, or objects by column")
        return _of_objects(path, found, columns)
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UsageError(f"--keys: {path}: .parquet files need pyarrow (pip install pyarrow)") from None
    return _of_objects(path, pyarrow.parquet.read_table(path).to_pylist(), columns)


def _of_csv(path: Path, columns: Sequence[str]) -> Places:
    from userdp.tables import read_csv

    table = read_csv(path)
    _check_names(path, table.names, columns)
    return ((f"{path}, line {line}", cells) for line, cells in table.public_rows(columns))


def _check_names(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    if sorted(names) != sorted(columns):
        raise ValueError(
            f"{path}: the columns must be those of --group-by, {', '.join(columns)}, named in the first row; got "
            f"{short_repr(', '.join(names))}"
        )


def _of_objects(path: Path, found: Iterable[Any], columns: Sequence[str]) -> Places:
    for number, row in enumerate(found, 1):
        place = f"{path}, key {number}"
        if isinstance(row, dict):
            if set(row) != set(columns):
                raise ValueError(f"{place}: the columns must be those of --group-by; got {short_repr(', '.join(row))}")
            yield place, [row[name] for name in columns]
        else:
            yield place, row if isinstance(row, list) else [row]


def _read(place: str, row: Sequence[Any], readers: Sequence[Callable[[Any], Any]]) -> tuple[Any, ...]:
    if len(row) != len(readers):
        raise ValueError(f"{place}: expected a value for each of {len(readers)} columns; got {len(row)}")
    try:
        return tuple(read(value) for read, value in zip(readers, row, strict=True))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


# --- values


def _reader(name: str, kind: Any) -> Callable[[Any], Any]:
    """How a value of a column is read: as a cell of the table would be, but that nothing is clamped or left out."""
    from userdp.tables import boolean, key
    from userdp.tables.values import kind_of, plain_values, words
    from userdp.users.values import of_objects

    of = kind_of(kind)
    as_read = {"boolean": boolean()}.get(of, kind)
    if of == "integer":
        as_read = key(int, decimal=kind.decimal or ".", thousands=kind.thousands)
    if of == "category":
        as_read = replace(kind, default=None)

    def read(value: Any) -> Any:
        found = plain_values(as_read.read(of_objects([value]), name), as_read)[0]
        if found is None:
            raise ValueError(f"{short_repr(value)} is not read as {words(kind)}, which the schema says of {name!r}")
        if of == "text" and not isinstance(value, str):
            raise ValueError(f"{short_repr(value)} is no text, as the schema says of {name!r}")
        return found is True if of == "boolean" else value if of == "text" else found

    return read
