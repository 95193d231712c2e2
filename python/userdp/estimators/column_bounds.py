"""Public bounds of columns, in the units of the data: one pair for all, a pair of arrays, or a pair for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr

Floats = npt.NDArray[np.float64]
Bounds: TypeAlias = "tuple[npt.ArrayLike, npt.ArrayLike] | Mapping[str, tuple[float, float]]"
"""As callers give them."""

KIND = "pair (low, high) of floats or arrays, or dict from column names to pairs"
LARGEST = 2.0**300
"""The largest end, whose inverse is the least half-range: squares are then ordinary floats."""


@dataclass(frozen=True)
class ColumnBounds:
    """The public range of every column."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def middle(self) -> Floats:
        """The middles of the ranges."""
        return np.array(self.low) / 2 + np.array(self.high) / 2

    @property
    def half(self) -> Floats:
        """Half the lengths of the ranges."""
        return np.array(self.high) / 2 - np.array(self.low) / 2


def check_column_bounds(value: Any, name: str) -> None:
    """Refuse what can be no bounds, whatever the columns are."""
    if value is not None:
        _ends(value, name)


def read_column_bounds(value: Any, name: str, n_columns: int, names: Sequence[str] | None = None) -> ColumnBounds:
    """The bounds of so many columns.

    Bounds by name must name every column of a frame, and nothing else. Where columns have no names the order of the
    dict counts: what a release costs does not depend on it.
    """
    low, high = _ends(value, name)
    if isinstance(value, Mapping):
        order = places_of_columns(value, name, n_columns, names)
        low, high = low[order], high[order]
    for end in (low, high):
        if end.shape not in ((), (1,), (n_columns,)):
            raise ValueError(f"{name} must have one number or {n_columns} for each end; got {len(end)}")
    return ColumnBounds(*(tuple(np.broadcast_to(end, (n_columns,)).tolist()) for end in (low, high)))


def places_of_columns(value: Mapping[str, Any], name: str, n_columns: int, names: Sequence[str] | None) -> list[int]:
    """Where a dict has every column: by name, or in its order where columns have no names."""
    if names is not None and set(names) != set(value):
        missing = [column for column in names if column not in value]
        unknown = [column for column in value if column not in names]
        problem = f"has nothing for {missing[0]!r}" if missing else f"names {unknown[0]!r}, which is no column"
        raise ValueError(f"{name} {problem}; columns are {', '.join(map(repr, names))}")
    if len(value) != n_columns:
        raise ValueError(f"{name} must name as many columns as there are, {n_columns}; got {len(value)}")
    return list(range(n_columns)) if names is None else [list(value).index(column) for column in names]


def _ends(value: Any, name: str) -> tuple[Floats, Floats]:
    """The lower and the upper ends, checked."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        if isinstance(value, Mapping):
            if not value or not all(isinstance(column, str) for column in value):
                raise TypeError
            pairs = np.array([_pair(pair) for pair in value.values()], dtype=np.float64)
            low, high = pairs.T
        else:
            first, second = value
            low, high = (np.array(end, dtype=np.float64) for end in (first, second))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a pair (low, high) of numbers or of arrays with a number for each column, or a dict such "
            f'as {{"wage": (0, 5)}}; got {short_repr(value)}'
        ) from None
    if low.ndim > 1 or high.ndim > 1:
        raise ValueError(f"{name}: ends must be numbers or have shape (columns,); got {low.shape} and {high.shape}")
    with np.errstate(all="ignore"):
        try:
            fit = (abs(low) <= LARGEST) & (abs(high) <= LARGEST) & (high / 2 - low / 2 >= 1 / LARGEST)
        except ValueError:
            raise ValueError(f"{name}: ends have unlike shapes {low.shape} and {high.shape}") from None
    if not np.all(fit):
        raise ValueError(
            f"{name} must be finite, at most 2**300 from 0, with low < high in every column; got {short_repr(value)}"
        )
    return low, high


def _pair(value: Any) -> tuple[Any, Any]:
    low, high = value
    return low, high
