"""What a notebook shows as a table, what data frames hold, and where plots are drawn."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from userdp.display.pages import Section, has_templates, render_fragment
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BACKENDS = ("pandas", "polars", "pyarrow")
LARGEST_INTEGER = 2**63
"""Columns of data frames hold smaller integers; larger ones are given as floats."""


class Frame(Protocol):
    """A data frame of pandas, polars or pyarrow: what they have in common is named, all else is theirs."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def __getitem__(self, name: str, /) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __len__(self) -> int: ...


class Shown(ABC):
    """A result with a table: `to_frame`, and what notebooks show."""

    @abstractmethod
    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows of `to_frame`, by column."""

    @abstractmethod
    def _sections(self) -> Sequence[Section]:
        """What a notebook and a page show."""

    def to_frame(self, backend: str | None = None) -> Frame:
        """The numbers as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Whose data frame; by default the first of these that is installed. Any name that narwhals knows will do.

        Returns
        -------
        data frame
            Exact numbers as floats, and integers from 2**63 on too. What is unknown is missing. But for pandas a column
            of numbers and texts is one of texts.
        """
        rows = [dict(row) for row in self._rows()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return frame_of({name: [_cell(row.get(name)) for row in rows] for name in names}, backend)

    def _repr_html_(self) -> str:
        # A notebook shows what it is given, and an exception here would hide the result.
        if not has_templates():
            return f"<pre>{html.escape(str(self))}</pre>"
        return render_fragment(self._sections())


class Told(Shown):
    """One that is printed, too: its text is that of its sections."""

    def summary(self) -> str:
        """Describe the result in a few lines of plain text."""
        return "\n".join(section.text() for section in self._sections())

    def __str__(self) -> str:
        return self.summary()


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise ImportError("plots need matplotlib: pip install 'userdp[plot]'") from None
    _, made = plt.subplots(layout="constrained")
    return made


def frame_of(columns: Mapping[str, Sequence[Any]], backend: str | None) -> Frame:
    """A data frame of these columns."""
    import narwhals

    for name in BACKENDS if backend is None else (backend,):
        # Columns of pandas hold anything, those of others values of one type.
        given = columns if name == "pandas" else {key: _of_one_type(values) for key, values in columns.items()}
        try:
            return narwhals.from_dict(given, backend=name).to_native()  # type: ignore[arg-type]
        except ModuleNotFoundError:
            continue
        except (TypeError, ValueError, AttributeError) as error:
            if backend in BACKENDS:
                raise
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; got {short_repr(backend)}") from error
    needed = BACKENDS[0] if backend is None else backend
    raise ImportError(f"to_frame needs a library of data frames, such as {needed}: pip install 'userdp[frame]'")


def _of_one_type(values: Sequence[Any]) -> Sequence[Any]:
    """The values, or where there are texts among others, texts."""
    texts = sum(isinstance(value, str) for value in values)
    if texts in (0, len(values)):
        return values
    return [value if value is None else str(value) for value in values]


def _cell(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST_INTEGER else _float(value)
    return _float(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
