"""Rows of a .csv file for the command `table`, read by the schema's types.

A reader that finds out types by itself looks at values: whether a column is one of numbers, and so whether a command
fails, would depend on a single row. Here every cell is a text first, and what is no value of its type is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import UsageError

if TYPE_CHECKING:
    from userdp.tables import Schema

TIMES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M")
"""Of times, after a T between day and hour has become a space."""
WHOLE = r"^[+]?(-?)0*([0-9]+?)([.]0*)?$"


def read_csv(path: Path, user: str, schema: Schema) -> Any:
    """The rows of a file with a row of names, of which no value is looked at yet.

    Ids are texts, and whole numbers however they are written. Nothing in the file but the names of its columns can
    raise here; rows with too few cells have missing ones, and what is beyond the last column is left out.

    Raises
    ------
    UsageError
        For what is no file with a row of names.
    """
    try:
        import polars
    except ModuleNotFoundError:
        raise UsageError(f"{path}: .csv files need polars (pip install polars)") from None
    if path.is_dir():
        raise UsageError(f"{path} is a directory; give the name of a file")
    try:
        rows = polars.scan_csv(
            path, infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True, glob=False, low_memory=True
        )
        names = rows.collect_schema().names()
    except Exception:  # polars' own errors, of many classes, show what is in the file
        raise UsageError(f"{path}: there is no row of column names that can be read") from None
    typed = [_typed(polars.col(name), kind, polars).alias(name) for name, kind in schema.items() if name in names]
    if user in names and user not in schema:
        typed.append(_id(polars.col(user), polars).alias(user))
    return rows.with_columns(typed)


def _typed(column: Any, kind: Any, polars: Any) -> Any:
    """A column of texts as the schema's type reads it; None where it cannot be read."""
    text = column.str.strip_chars()
    of = kind.cell_kind if kind.kind == "key" else kind.kind
    if of in ("number", "integer") or (of == "category" and all(isinstance(value, int) for value in kind.values)):
        return text.cast(polars.Float64, strict=False)
    if of == "boolean":
        lower = text.str.to_lowercase()
        named = polars.when(lower == "true").then(1.0).when(lower == "false").then(0.0)
        return named.otherwise(text.cast(polars.Float64, strict=False))
    if of in ("date", "timestamp"):
        spaced = text.str.replace("T", " ", literal=True)
        times = [spaced.str.to_datetime(form, time_unit="us", strict=False, exact=True) for form in TIMES]
        days = text.str.to_date("%Y-%m-%d", strict=False, exact=True)
        both = polars.coalesce([*times, days.cast(polars.Datetime("us"))])
        return both if of == "timestamp" else both.cast(polars.Date)
    return column


def _id(column: Any, polars: Any) -> Any:
    """Ids as texts; a whole number is one id whether it is written 7, 07 or 7.0."""
    text = column.str.strip_chars().str.replace(WHOLE, "${1}${2}")
    return polars.when(text != "").then(text)
