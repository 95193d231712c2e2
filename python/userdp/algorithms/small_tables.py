"""Small tables of rows, made in the form that a function under audit reads: rows, tuples or data frames."""

from __future__ import annotations

import datetime
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = "tuple[Any, ...]"
"""The cells of a row, in the order of the columns; the user first where there is a column of users."""
LAYOUTS = ("rows", "tuples", "pandas", "polars", "lazy", "arrow")
KINDS = ("float", "int", "str", "bool", "date", "datetime", "any")


@dataclass(frozen=True)
class TableMaker:
    """Makes tables of these columns.

    Attributes
    ----------
    columns : tuple of str
    kinds : tuple of str
        Of `KINDS`: every column keeps its type, also where all of its cells are missing.
    layout : str
        Of `LAYOUTS`: dicts by column, tuples, a pandas frame, a polars frame (also lazy), or a pyarrow table.
    """

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    layout: str

    @property
    def package(self) -> str | None:
        """What tables of this form need."""
        return {"pandas": "pandas", "polars": "polars", "lazy": "polars", "arrow": "pyarrow"}.get(self.layout)

    def require(self) -> None:
        """Refuse a form of tables whose package is not installed."""
        if self.package is not None:
            try:
                importlib.import_module(self.package)
            except ModuleNotFoundError:
                raise ImportError(f"frame={self.layout!r} needs {self.package}: pip install 'userdp[frame]'") from None

    def table(self, rows: Sequence[Row]) -> Any:
        """The table of these rows, in this order, made anew."""
        if self.layout == "rows":
            columns = self.columns
            return [dict(zip(columns, row)) for row in rows]  # noqa: B905 - strict takes a third of the time
        if self.layout == "tuples":
            return list(rows)
        return self._frame(rows)

    def _cells(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        return {name: [row[place] for row in rows] for place, name in enumerate(self.columns)}

    def _frame(self, rows: Sequence[Row]) -> Any:
        cells = self._cells(rows)
        if self.layout == "arrow":
            import pyarrow

            types = arrow_types()
            return pyarrow.table(
                {
                    name: pyarrow.array(cells[name], type=types.get(kind), from_pandas=False)
                    for name, kind in zip(self.columns, self.kinds, strict=True)
                }
            )
        if self.layout == "pandas":
            import pandas

            return pandas.DataFrame(
                {
                    name: pandas.Series(cells[name], dtype=_pandas_type(kind, cells[name]))
                    for name, kind in zip(self.columns, self.kinds, strict=True)
                }
            )
        import polars

        types = polars_types()
        schema = {name: types.get(kind) for name, kind in zip(self.columns, self.kinds, strict=True)}
        frame = polars.DataFrame(cells, schema=schema)
        return frame.lazy() if self.layout == "lazy" else frame

    def other_forms(self, rows: Sequence[Row]) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The same rows in the same order, stored in another way, with what was done in words."""
        half = len(rows) // 2
        if "any" in self.kinds and self.layout != "pandas":
            return  # a part of such a column may be of another type
        if self.layout in ("polars", "lazy"):
            import polars

            def chunks() -> Any:
                parts = [self._frame(rows[:half]), self._frame(rows[half:])]
                return polars.concat(parts, rechunk=False)

            yield "in two chunks", chunks
        elif self.layout == "arrow":
            import pyarrow

            yield "in two chunks", lambda: pyarrow.concat_tables([self._frame(rows[:half]), self._frame(rows[half:])])
        elif self.layout == "pandas":
            number = len(rows)

            def indexed(labels: list[Any]) -> Callable[[], Any]:
                return lambda: self._frame(rows).set_axis(labels, axis=0)

            yield "with an index that runs backwards", indexed(list(range(number))[::-1])
            yield "with an index of one label", indexed([7] * number)
            yield "with an index of texts", indexed([f"row {place}" for place in range(number)])


def same_content(maker: TableMaker, table: Any, rows: Sequence[Row]) -> bool:
    """Whether a table that a function was given still is what it was."""
    made = maker.table(rows)
    if maker.layout == "rows":
        return len(table) == len(made) and all(
            type(one) is dict and list(one) == list(two) and _same(list(one.values()), list(two.values()))
            for one, two in zip(table, made, strict=True)
        )
    if maker.layout == "tuples":
        return len(table) == len(made) and all(
            type(one) is tuple and _same(one, two) for one, two in zip(table, made, strict=True)
        )
    if maker.layout == "pandas":
        return bool(list(table.columns) == list(made.columns) and table.index.equals(made.index) and table.equals(made))
    return True  # what polars and pyarrow hold cannot be written to


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        a is b or (type(a) is type(b) and (a == b or (a != a and b != b))) for a, b in zip(one, other, strict=True)
    )


def polars_types() -> dict[str, Any]:
    """The type of each kind of column in polars."""
    import polars

    return {
        "float": polars.Float64,
        "int": polars.Int64,
        "str": polars.String,
        "bool": polars.Boolean,
        "date": polars.Date,
        "datetime": polars.Datetime("us"),
    }


def arrow_types() -> dict[str, Any]:
    """The type of each kind of column in Arrow."""
    import pyarrow

    return {
        "float": pyarrow.float64(),
        "int": pyarrow.int64(),
        "str": pyarrow.string(),
        "bool": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "datetime": pyarrow.timestamp("us"),
    }


def _pandas_type(kind: str, cells: Sequence[Any]) -> str:
    # With a missing cell, plain integers and bools would become floats and objects, for all other rows as well.
    known = {"float": "float64", "int": "Int64", "bool": "boolean", "datetime": "datetime64[us]", "str": _text_type()}
    return known.get(kind, "object")


@functools.cache
def _text_type() -> str:
    """What pandas makes of texts: from its version 3 on a type of their own, which columns without rows have too."""
    import pandas

    return "str" if int(pandas.__version__.partition(".")[0]) >= 3 else "object"


def kind_of(values: Sequence[Any]) -> str:
    """The kind of column that these values are of, "any" where they are of several."""
    kinds = {type(value) for value in values if value is not None}
    names = {float: "float", int: "int", str: "str", bool: "bool", datetime.date: "date", datetime.datetime: "datetime"}
    return names.get(kinds.pop(), "any") if len(kinds) == 1 else "any"


def code_of_rows(maker: TableMaker, rows: Sequence[Row]) -> str:
    """Python that makes the table, to be pasted."""
    listed = "[" + ", ".join(map(_row_code, rows)) + "]"
    names = f"[{', '.join(map(repr, maker.columns))}]"
    if maker.layout == "tuples":
        return listed
    if maker.layout == "rows":
        parts = (
            "{" + ", ".join(f"{name!r}: {cell_code(cell)}" for name, cell in zip(maker.columns, row, strict=True)) + "}"
            for row in rows
        )
        return "[" + ", ".join(parts) + "]"
    if maker.layout == "pandas":
        types = {
            name: _pandas_type(kind, [row[place] for row in rows])
            for place, (name, kind) in enumerate(zip(maker.columns, maker.kinds, strict=True))
        }
        return f"pandas.DataFrame({listed}, columns={names}).astype({types})"
    if maker.layout == "arrow":
        listed_types = ", ".join(
            f"({name!r}, pyarrow.{_ARROW_CODE[kind]})"
            for name, kind in zip(maker.columns, maker.kinds, strict=True)
            if kind in _ARROW_CODE
        )
        cells = maker._cells(rows)
        columns = ", ".join(f"{name!r}: [{', '.join(map(cell_code, cells[name]))}]" for name in maker.columns)
        return f"pyarrow.table({{{columns}}}, schema=pyarrow.schema([{listed_types}]))"
    schema = ", ".join(
        f"{name!r}: {_POLARS_CODE.get(kind, 'None')}" for name, kind in zip(maker.columns, maker.kinds, strict=True)
    )
    kind = "LazyFrame" if maker.layout == "lazy" else "DataFrame"
    return f"polars.{kind}({listed}, schema={{{schema}}}, orient='row')"


_POLARS_CODE = {
    "float": "polars.Float64",
    "int": "polars.Int64",
    "str": "polars.String",
    "bool": "polars.Boolean",
    "date": "polars.Date",
    "datetime": "polars.Datetime('us')",
}
_ARROW_CODE = {
    "float": "float64()",
    "int": "int64()",
    "str": "string()",
    "bool": "bool_()",
    "date": "date32()",
    "datetime": "timestamp('us')",
}


def _row_code(row: Row) -> str:
    return "(" + ", ".join(map(cell_code, row)) + ("," if len(row) == 1 else "") + ")"


def cell_code(cell: Any) -> str:
    """A cell as Python writes it, also where its repr is no Python."""
    if isinstance(cell, float) and (cell != cell or cell in (float("inf"), float("-inf"))):
        return f"float('{cell!r}')"
    # Letters that look alike are told apart.
    return ascii(cell)
