"""Public lists of keys for the command `table`: values with commas between them, or files, by the schema's types."""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from userdp.cli.arguments import UsageError, read_text
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from userdp.tables import KeySet, Schema

ENDINGS = (".csv", ".txt", ".json", ".parquet")
"""Of words that are files and no keys."""
YES_OR_NO = {"true": 1, "false": 0, "1": 1, "0": 0}
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
    """How a value of a column is read: texts by the column's type, other values if they are of it."""
    cells = kind.cell_kind if kind.kind == "key" else kind.kind

    def refused(value: Any, needed: str) -> ValueError:
        return ValueError(f"{short_repr(value)} is {needed}, as the schema says of {name!r}")

    def of_category(value: Any) -> Any:
        if type(value) is not str:
            same = [one for one in kind.values if type(one) is type(value) and one == value]
        else:
            same = [one for one in kind.values if str(one) == value]
        if len(same) > 1:
            raise ValueError(f"{value!r} is both a number and a text of the category {name!r}: give a .json file")
        if not same:
            raise refused(value, f"none of {short_repr(kind.values)}")
        return same[0]

    def of_bool(value: Any) -> Any:
        found = YES_OR_NO.get(str(value).lower()) if isinstance(value, (str, bool, int)) else None
        if found is None:
            raise refused(value, "neither true nor false")
        return found

    def of_int(value: Any) -> Any:
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,40}\s*", value):
            return int(value)
        if type(value) is not int:
            raise refused(value, "no whole number")
        return value

    def of_text(value: Any) -> Any:
        if not isinstance(value, str):
            raise refused(value, "no text")
        return value

    def of_date(value: Any) -> Any:
        if isinstance(value, str):
            try:
                return datetime.date.fromisoformat(value.strip())
            except ValueError:
                raise refused(value, "no date such as 2024-01-31") from None
        if not isinstance(value, datetime.date):
            raise refused(value, "no date")
        return value

    def of_time(value: Any) -> Any:
        if isinstance(value, str):
            try:
                return datetime.datetime.fromisoformat(value.strip())
            except ValueError:
                raise refused(value, "no time such as 2024-01-31 09:30") from None
        if not isinstance(value, datetime.date):
            raise refused(value, "no date or time")
        return value

    readers: dict[str, Callable[[Any], Any]] = {
        "category": of_category,
        "boolean": of_bool,
        "integer": of_int,
        "text": of_text,
        "date": of_date,
        "timestamp": of_time,
    }
    return readers.get(cells, lambda value: value)  # group_by refuses the column itself
