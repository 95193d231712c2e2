"""What is asked of each group: counts, sums, means, quantiles, histograms and CDFs, by what a user adds to them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from userdp.exact.numbers import check_count, exact_number, is_integer, parse_exact, short_repr

MOST_ROWS = 2**32
MOST_QUANTILES = 64
MOST_EDGES = 2**20
MOST_POINTS = 2**10
WEIGHTINGS = ("users", "rows")


class Aggregate:
    """One column of an answer."""

    of_keys: ClassVar[bool] = True
    """Whether it is a sum over users of one bounded integer or two for each key, so that a query may have several."""

    def columns(self, name: str) -> tuple[str, ...]:
        """What its numbers are called in frames."""
        return (name,)


@dataclass(frozen=True)
class CountUsers(Aggregate):
    """How many users, or how many with a value in a column."""

    column: str | None = None


@dataclass(frozen=True)
class CountRows(Aggregate):
    """How many rows, of each user at most so many in a key."""

    max_rows: int


@dataclass(frozen=True)
class CountUnreadable(Aggregate):
    """How many users have a cell in a column that is there and is not read."""

    column: str


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum over users of a user's total in a key, which is clamped."""

    column: Any
    low: Fraction | None  # None: 0, or minus the other one, as the column's bounds ask for
    high: Fraction


@dataclass(frozen=True)
class Mean(Aggregate):
    """A mean: of users' means, or of rows."""

    column: Any
    weighting: Literal["users", "rows"] = "users"
    max_rows: int | None = None  # with "rows"


@dataclass(frozen=True)
class Quantile(Aggregate):
    """Values below which given shares of users' rows are, where every user has the same weight in all."""

    column: Any
    shares: tuple[Fraction, ...]
    several: bool  # whether a list was asked for
    of_keys: ClassVar[bool] = False

    def columns(self, name: str) -> tuple[str, ...]:
        """By the name, and where several were asked for by their shares."""
        return tuple(f"{name}_{float(share):g}" for share in self.shares) if self.several else (name,)


@dataclass(frozen=True)
class Histogram(Aggregate):
    """How many users are between public edges, where a user's rows in a group share the weight of one."""

    column: Any
    edges: tuple[float, ...]
    of_keys: ClassVar[bool] = False

    def columns(self, name: str) -> tuple[str, ...]:
        """Of rows, one for each bin: its edges, its count and the interval of that."""
        return (f"{name}_from", f"{name}_to", name, f"{name}_low", f"{name}_high")


@dataclass(frozen=True)
class Cdf(Aggregate):
    """Which share of users' weight is at or below public points, where a user's rows in a group share one weight."""

    column: Any
    edges: tuple[float, ...]
    of_keys: ClassVar[bool] = False

    def columns(self, name: str) -> tuple[str, ...]:
        """One for each point: the name and the point."""
        return tuple(f"{name}_{_text(edge)}" for edge in self.edges)

    def inner(self, low: float, high: float) -> tuple[float, ...]:
        """The points at which the share is not 0 or 1 by the bounds of the column."""
        return tuple(edge for edge in self.edges if low <= edge < high)


def _text(edge: float) -> str:
    short = f"{edge:g}"
    return short if float(short) == edge else repr(edge)


def count_users(column: str | None = None) -> CountUsers:
    """Count the users of each group: those with at least one row in it.

    Parameters
    ----------
    column : str, optional
        Count those with at least one value in this column. Beside a mean of the same column it costs nothing more, as
        it is what the mean is divided by.

    Examples
    --------
    >>> count_users("wage")
    CountUsers(column='wage')
    """
    if column is not None and not isinstance(column, str):
        raise TypeError(f"column must be the name of a column; got {short_repr(column)}")
    return CountUsers(None if column is None else str(column))


def count_unreadable(column: str) -> CountUnreadable:
    """Count the users who have a cell in a column that is there, but that its declared type does not read.

    Of all rows that have an id, whatever filters leave; in queries without groups. One user changes the count by 1.

    Parameters
    ----------
    column : str
        A column of the schema.

    Examples
    --------
    >>> count_unreadable("wage")
    CountUnreadable(column='wage')
    """
    if not isinstance(column, str):
        raise TypeError(f"column must be the name of a column; got {short_repr(column)}")
    return CountUnreadable(str(column))


def count_rows(max_rows: int) -> CountRows:
    """Count rows, of each user at most `max_rows` in a group.

    Parameters
    ----------
    max_rows : int
        Public. The noise grows with it; rows beyond it do not count.

    Examples
    --------
    >>> count_rows(8)
    CountRows(max_rows=8)
    """
    return CountRows(_most_rows(max_rows))


def sum(column: Any, *, max_total: float | tuple[float, float]) -> Sum:
    """Sum a column, where a user's total in a group is clamped.

    Parameters
    ----------
    column : str or expression
        Numbers, whole numbers or bools.
    max_total : float, or pair of float
        A user's total is clamped to from -max_total to max_total, or from 0 where the column is never negative, or to
        0 where it is never positive; a pair gives both ends. Public: the noise grows with it, and what is clamped is
        missing in the sum.

    Examples
    --------
    >>> sum("amount", max_total=500).high
    Fraction(500, 1)
    """
    pair = isinstance(max_total, (tuple, list))
    ends: Sequence[Any] = max_total if pair else (0, max_total)  # type: ignore[assignment]
    if len(ends) != 2:
        raise ValueError(f"max_total must be a number or a pair of numbers; got {short_repr(max_total)}")
    low, high = (parse_exact(end, "max_total", "a finite number") for end in ends)
    if not low < high or not (pair or high > 0):
        wanted = "a pair (low, high) with low < high" if pair else "positive"
        raise ValueError(f"max_total must be {wanted}; got {short_repr(max_total)}")
    if max(abs(low), abs(high)) > 2**300:
        raise ValueError(f"max_total must be at most 2**300 from 0; got {short_repr(max_total)}")
    return Sum(column, low if pair else None, high)


def mean(column: Any, *, weighting: str = "users", max_rows: int | None = None) -> Mean:
    """Take a mean of a column.

    Parameters
    ----------
    column : str or expression
        Numbers, whole numbers or bools in public bounds. Nothing else is clipped.
    weighting : {"users", "rows"}
        "users": the mean of users' means, so that every user counts alike. "rows": the mean of rows, where a user
        counts as many times as they have rows in the group, at most `max_rows`, each time with their own mean.
    max_rows : int
        With "rows": public.

    Examples
    --------
    >>> mean("wage").weighting
    'users'
    """
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting must be 'users' or 'rows'; got {short_repr(weighting)}")
    if (weighting == "rows") != (max_rows is not None):
        raise ValueError(
            "weighting='rows' needs max_rows, how many rows of a user count at most"
            if max_rows is None
            else "max_rows is for weighting='rows'; with 'users' every user counts alike"
        )
    most = None if max_rows is None else _most_rows(max_rows)
    return Mean(column, weighting, most)  # type: ignore[arg-type]


def quantile(column: Any, shares: Any = "1/2") -> Quantile:
    """Find values below which given shares of the data are, where every user of a group has the same weight.

    Parameters
    ----------
    column : str or expression
        Numbers or whole numbers in public bounds. The answer is on the column's grid.
    shares : fraction, or list, tuple or 1-D array of fractions
        Strictly between 0 and 1: a float, a Fraction, or a text such as "1/2". The denominator is at most 1000.

    Examples
    --------
    >>> quantile("wage", ["1/4", "1/2", "3/4"]).shares
    (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    """
    if isinstance(shares, np.ndarray) and shares.ndim <= 1:
        shares = shares.tolist()
    several = isinstance(shares, (list, tuple))
    listed = list(shares) if several else [shares]
    if not 1 <= len(listed) <= MOST_QUANTILES:
        raise ValueError(f"shares must be from 1 to {MOST_QUANTILES} fractions; got {len(listed)}")
    exact = tuple(_share(share) for share in listed)
    if list(exact) != sorted(set(exact)):
        raise ValueError(f"shares must rise; got {short_repr(shares)}")
    return Quantile(column, exact, several)


def _share(value: Any) -> Fraction:
    wanted = "a fraction between 0 and 1, or a list, tuple or 1-D array of them"
    try:
        share = exact_number(value) if not isinstance(value, str) else parse_exact(value, "shares", "a fraction")
    except TypeError:
        raise TypeError(f"shares must be {wanted}; got {short_repr(value)}") from None
    if share is None:
        raise TypeError(f"shares must be {wanted}; got {short_repr(value)}")
    near = share.limit_denominator(1000)
    if not 0 < near < 1 or abs(near - share) > Fraction(1, 10**9):
        raise ValueError(f"shares must be fractions between 0 and 1 with denominators up to 1000; got {value!r}")
    return near


def histogram(column: Any, edges: Sequence[float]) -> Histogram:
    """Count users between public edges, where a user's rows in a group share the weight of one user.

    Parameters
    ----------
    column : str or expression
        Numbers or whole numbers.
    edges : sequence of float, rising
        Public; bin i is from edges[i], which belongs to it, to edges[i + 1], which does not but in the last bin.
        Values outside are in no bin and share no weight.

    Examples
    --------
    >>> histogram("wage", [0, 10, 20, 50]).edges
    (0.0, 10.0, 20.0, 50.0)
    """
    if isinstance(edges, (str, bytes)) or not hasattr(edges, "__len__") or not 2 <= len(edges) <= MOST_EDGES:
        raise ValueError(f"edges must be at least two rising numbers; got {short_repr(edges)}")
    return Histogram(column, _rising(edges))


def cdf(column: Any, edges: Sequence[float]) -> Cdf:
    """Ask which share of the data is at or below public points, where every user of a group has the same weight.

    The weight of users between the points is released with noise, as by `histogram`; the shares are made of it by an
    isotonic fit, so that they rise from 0 to 1.

    Parameters
    ----------
    column : str or expression
        Numbers or whole numbers in public bounds.
    edges : sequence of float, rising
        Public: from 1 to 1,024 points, of which one or more are from the column's lower bound, which may be one, to
        below the upper one. At points below the column's bounds the share is 0, and from the upper bound on it is 1.
        The noise grows with the square root of how many points there are, so take no more than you look at.

    Examples
    --------
    >>> cdf("wage", [10, 20, 50]).columns("wage")
    ('wage_10', 'wage_20', 'wage_50')
    """
    if isinstance(edges, (str, bytes)) or not hasattr(edges, "__len__") or not 1 <= len(edges) <= MOST_POINTS:
        raise ValueError(f"edges must be from 1 to {MOST_POINTS} rising numbers; got {short_repr(edges)}")
    return Cdf(column, _rising(edges))


def _rising(edges: Sequence[Any]) -> tuple[float, ...]:
    try:
        # As floats, which is what values are compared with.
        found = tuple(float(parse_exact(edge, "edges", "finite numbers")) for edge in edges)
    except OverflowError:
        found = (math.inf,)
    if not math.isfinite(found[0]) or any(not before < after for before, after in itertools.pairwise(found)):
        raise ValueError(f"edges must be finite and rise; got {short_repr(edges)}")
    return found


def _most_rows(value: Any) -> int:
    most = check_count(value, "max_rows")
    if not is_integer(value) or most > MOST_ROWS:
        raise ValueError(f"max_rows must be at most 2**32; got {short_repr(value)}")
    return most


def whole_unit(width: float, steps: int) -> int:
    """The exponent of the largest power of two of which at least so many steps fit in a width."""
    return max(math.frexp(width / steps)[1] - 1, -1000)
