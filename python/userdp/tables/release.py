"""What a query released: numbers, how wrong they may be, and a card that says all that is public of it."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from userdp.accounting import PrivacyCost
from userdp.display import Fact, Section, Shown, Table
from userdp.display.frames import Frame, frame_of
from userdp.display.numbers import level_text, number_text, rounded
from userdp.display.pages import version
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import open_unit_interval, parse_level, short_repr
from userdp.means.accuracy import NoiseTerm
from userdp.mechanisms import DiscreteGaussian, PartitionSelection
from userdp.mechanisms.set_union import SetUnion
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables.aggregates import Cdf, Histogram, Mean, Quantile
from userdp.tables.compiled import BOUNDED, USERS, Answer, Compiled, Statistic, limits
from userdp.tables.curves import band, shares_below
from userdp.tables.noise import Allotment, KeyFinder, Noise, deviation, off_by
from userdp.tables.quantiles import WEIGHT
from userdp.tables.ratios import ratio_interval
from userdp.tables.rows import KeyValue, bins_of

Kind = TypeVar("Kind", Quantile, Histogram, Cdf)
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

IN_COMMON = (
    "The groups have a part of their noise in common, which makes each count, and differences of counts, more exact. "
    "The errors of groups go together, so in a sum over many groups they do not cancel."
)
HALF = 0.5
LEVEL = 0.95
"""Of the intervals of bins in frames."""
MOST_SHOWN = 40
"""Rows on a card."""


@dataclass(frozen=True)
class Drawn:
    """What came out of the mechanisms: all of it public from now on."""

    keys: tuple[KeyValue, ...]
    numbers: Mapping[Statistic, Integers]
    chosen: Mapping[str, tuple[tuple[float, ...], ...]]  # quantiles, for each key
    bins: Mapping[str, tuple[tuple[int, ...], ...]]  # histograms and CDFs, for each key, in units of 1 / WEIGHT


class Release(Shown):
    """The answer to a query, with privacy for users.

    Attributes
    ----------
    cost : PrivacyCost
        What the release costs, exactly.
    frame : data frame
        A row for each key in the order of keys, or one row, and a row for each bin of histograms; of the library that
        the table was of.
    threshold : int or None
        Where keys were unknown: from which noisy count of users on a key is shown.

    Notes
    -----
    Numbers are as they were drawn: counts may be negative or, for means, lead to the ends of the range. Everything that
    is done with them afterwards is as private as they are.
    """

    def __init__(
        self,
        query: Compiled,
        noise: Allotment,
        drawn: Drawn,
        facts: Mapping[str, str],
        neighbors: str,
        caveats: Sequence[str] = (),
        backend: str | None = None,
    ) -> None:
        self._query = query
        self._noise = noise
        self._drawn = drawn
        self._facts = dict(facts)
        self._caveats = tuple(caveats)
        self._backend = backend
        self.neighbors = neighbors
        self.cost: PrivacyCost = noise.cost

    @property
    def threshold(self) -> int | None:
        """From which noisy count of users on a key is shown; None where keys were known."""
        keyed = self._noise.keyed
        return None if keyed is None or keyed.sparse is None else keyed.sparse.threshold

    @property
    def keys(self) -> tuple[KeyValue, ...]:
        """The keys of the answer, in their order."""
        return self._drawn.keys

    @property
    def frame(self) -> Frame:
        """The numbers as a data frame."""
        return self.to_frame()

    def column(self, name: str) -> Floats:
        """One column of numbers, with shape (keys,).

        Raises
        ------
        ValueError
            For a name that is none of agg's, and for quantiles, histograms and CDFs.
        """
        return self._values(self._answer(name))

    def _answer(self, name: str) -> Answer:
        for answer in self._query.answers:
            if answer.name == _name(name) and answer.aggregate.of_keys:
                return answer
        raise ValueError(f"{name!r} is no column of numbers by key; there are {', '.join(self._query.names)}")

    def _values(self, answer: Answer) -> Floats:
        assert answer.total is not None
        total = self._drawn.numbers[answer.total].astype(np.float64)
        if answer.count is None:
            unit = 1.0 if answer.total.value is None else answer.total.value.unit
            return total * unit
        value = answer.total.value
        assert value is not None
        users = self._drawn.numbers[answer.count].astype(np.float64)
        with np.errstate(all="ignore"):
            middle = value.offset + value.unit * (answer.total.shift + total / users)
        low, high = _ends(answer)
        return np.where(users >= 1, np.clip(middle, low, high), np.nan)

    def _columns(self, most: int | None = None) -> dict[str, Sequence[Any]]:
        """The columns of all keys, or of the first ones."""
        columns = self._key_columns(most)
        for answer in self._query.answers:
            if answer.aggregate.of_keys:
                whole = answer.count is None and (answer.total is None or answer.total.value is None)
                values = self._values(answer)[:most]
                columns[answer.name] = (values.astype(np.int64) if whole else values).tolist()
            elif isinstance(answer.aggregate, Quantile):
                columns.update(self._quantile_columns(answer, most))
            elif isinstance(answer.aggregate, Cdf):
                columns.update(zip(answer.columns, self._curves(answer, most).T.tolist(), strict=True))
        return self._whole(columns, 1 - LEVEL)

    def _whole(self, columns: dict[str, Sequence[Any]], failure: float) -> dict[str, Sequence[Any]]:
        """With the bins of histograms as rows of their own, after that of their key, and what the numbers are of."""
        binned = [answer for answer in self._query.answers if isinstance(answer.aggregate, Histogram)]
        names, several = [*columns, *(name for answer in binned for name in answer.columns)], len(columns)
        if binned:
            group, rows = self._query.group, []
            keys = self._drawn.keys[: max(map(len, columns.values()), default=len(self._drawn.keys))]
            for place, key in enumerate(keys):
                if several > len(group):
                    rows.append({name: values[place] for name, values in columns.items()})
                for answer in binned:
                    made = zip(*self._bin_rows(answer, place, failure), strict=True)
                    rows += [dict(zip((*group, *answer.columns), (*key, *row), strict=True)) for row in made]
            columns = {name: [row.get(name) for row in rows] for name in names}
        if self._query.bounding:
            columns[BOUNDED] = [self._query.bounding] * max(map(len, columns.values()))
        return columns

    def _bin_rows(self, answer: Answer, place: int, failure: float) -> tuple[Sequence[float], ...]:
        """Of the bins of a key: their edges, their counts, and intervals of these."""
        assert isinstance(answer.aggregate, Histogram)
        part = next(part for part in self._noise.binned if part.answer == answer)
        counts = np.array(self._drawn.bins[answer.name][place], dtype=np.float64) / WEIGHT
        off, edges = part.margin(failure), answer.aggregate.edges
        return edges[:-1], edges[1:], counts.tolist(), (counts - off).tolist(), (counts + off).tolist()

    def _rows(self, most: int | None = None) -> Sequence[Mapping[str, Any]]:
        columns = self._columns(most)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _key_columns(self, most: int | None = None) -> dict[str, Sequence[Any]]:
        keys = self._drawn.keys[:most]
        return {name: [key[place] for key in keys] for place, name in enumerate(self._query.group)}

    def _quantile_columns(self, answer: Answer, most: int | None = None) -> dict[str, Sequence[Any]]:
        # Sorted: what is done with released numbers costs nothing, and quantiles rise.
        rows = [sorted(values) for values in self._drawn.chosen[answer.name][:most]]
        return {name: [row[place] for row in rows] for place, name in enumerate(answer.columns)}

    def _bins(self, answer: Answer, most: int | None = None) -> Integers:
        """The noisy bins of a CDF, with shape (keys, bins)."""
        listed = self._drawn.bins[answer.name][:most]
        bins = len(self._points(answer)) + 1
        return np.array(listed, dtype=np.int64).reshape(len(listed), bins)

    def _points(self, answer: Answer) -> tuple[float, ...]:
        """Where a CDF is not known by the bounds of its column."""
        assert isinstance(answer.aggregate, Cdf)
        return answer.aggregate.inner(*limits(self._query.types[answer.aggregate.column])[:2])

    def _curves(self, answer: Answer, most: int | None = None) -> Floats:
        """The shares of a CDF at all its points, with shape (keys, points)."""
        return self._at_all_points(answer, shares_below(self._bins(answer, most), WEIGHT))

    def _at_all_points(self, answer: Answer, inner: Floats) -> Floats:
        """With the points at which the share is 0 or 1 by the bounds of the column."""
        assert isinstance(answer.aggregate, Cdf)
        edges, points = answer.aggregate.edges, self._points(answer)
        below = edges.index(points[0])
        found: Floats = np.zeros((len(inner), len(edges)))
        found[:, below : below + len(points)] = inner
        found[:, below + len(points) :] = 1
        return found

    def to_frame(self, backend: str | None = None) -> Frame:
        """The numbers as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Whose data frame; by default that of the table, otherwise the first of these that is installed.

        Returns
        -------
        data frame
            A column for each key and each aggregate; several quantiles have one for each share, such as ``wage_0.25``,
            and CDFs one for each point, such as ``wage_20``. A histogram has a row for each bin, below that of the
            other numbers of the key: from ``wage_from`` to ``wage_to`` there are ``wage`` users, between ``wage_low``
            and ``wage_high`` at level 0.95. Where users have bounds, the column ``bounded`` says of what the numbers
            are: in how many groups, with how many rows and to which total a user counts.
        """
        return frame_of(self._columns(), backend or self._backend)

    def quantiles(self, name: str, key: Any = None) -> dict[Fraction, float]:
        """The quantiles of an aggregate, by their shares.

        Parameters
        ----------
        name : str
            The name of the aggregate.
        key : optional
            Where there are groups: which one, a value or a tuple of one value for each column.

        Raises
        ------
        ValueError
            For a name that is no quantile, and a key that is not in the answer.
        """
        _, aggregate = self._of_kind(name, Quantile, "quantile")
        return dict(zip(aggregate.shares, sorted(self._drawn.chosen[name][self._place(key)]), strict=True))

    def histogram(self, name: str, key: Any = None) -> tuple[Floats, tuple[float, ...]]:
        """The counts of a histogram and its edges.

        Parameters
        ----------
        name : str
            The name of the aggregate.
        key : optional
            Where there are groups: which one, a value or a tuple of one value for each column.

        Raises
        ------
        ValueError
            For a name that is no histogram, and a key that is not in the answer.
        """
        _, aggregate = self._of_kind(name, Histogram, "histogram")
        return np.array(self._drawn.bins[name][self._place(key)], dtype=np.float64) / WEIGHT, aggregate.edges

    def cdf(self, name: str, key: Any = None) -> dict[float, float]:
        """The cumulative distribution of an aggregate: at each point the share of users' weight at or below it.

        Parameters
        ----------
        name : str
            The name of the aggregate.
        key : optional
            Where there are groups: which one, a value or a tuple of one value for each column.

        Returns
        -------
        dict of float
            By the points; they rise from 0 to 1. NaN where the noisy weight of all users together is below that of one.

        Raises
        ------
        ValueError
            For a name that is no CDF, and a key that is not in the answer.
        """
        answer, aggregate = self._of_kind(name, Cdf, "CDF")
        place = self._place(key)
        inner = shares_below(self._bins(answer)[place : place + 1], WEIGHT)
        return dict(zip(aggregate.edges, self._at_all_points(answer, inner)[0].tolist(), strict=True))

    def _of_kind(self, name: str, kind: type[Kind], called: str) -> tuple[Answer, Kind]:
        """The answer of a name and its aggregate, which is of a kind."""
        for answer in self._query.answers:
            if answer.name == _name(name) and isinstance(answer.aggregate, kind):
                return answer, answer.aggregate
        raise ValueError(f"{name!r} is no {called} of this release")

    def _place(self, key: Any) -> int:
        """Of a key in the answer."""
        if not self._query.group:
            if key is not None:
                raise ValueError(f"key is for answers by group, and this one has none; got {short_repr(key)}")
            return 0
        whole = key if isinstance(key, tuple) else (key,)
        # Of arrays and series an equality is no bool.
        plain = all(isinstance(part, Hashable) for part in whole)
        if key is None or not plain or whole not in self._drawn.keys:
            raise ValueError(f"key must be one of the answer's, as in `keys`; got {short_repr(key)}")
        return self._drawn.keys.index(whole)

    # --- how wrong

    def intervals(self, level: float = 0.95, *, backend: str | None = None) -> Frame:
        """Intervals for what the numbers would be without noise.

        Parameters
        ----------
        level : float
            In (0, 1): each interval contains the number that the users who count add up to at least so often, over the
            noise; where keys are unknown, among the times that the key is shown. Intervals of different rows and
            columns are each at this level, not together, but for CDFs: the whole curve of a key is within the intervals
            of all its points together at least so often.
        backend : {"pandas", "polars", "pyarrow"}, optional

        Returns
        -------
        data frame
            The columns of keys, and for each aggregate (of CDFs each point) its value, ``name_low`` and ``name_high``.
            Histograms have rows as in `frame`, at this level. For quantiles, where ``count_users(column)`` of their
            column is in the same agg, the value with ``name_share_low`` and ``name_share_high``: there is a share
            between them of which the value is a quantile. ``bounded`` says, as in `frame`, what the numbers are of.

        Notes
        -----
        They are about noise, and about the rounding of values to their grid where that can be said. What bounding
        leaves out they do not cover: keys beyond max_keys, rows beyond max_rows, totals beyond max_total, values beyond
        the bounds of their column. Nor do they cover that the users are a sample of others.
        """
        failure = 1 - open_unit_interval(level, "level")
        columns = self._key_columns()
        asked = len(columns)
        for answer in self._query.answers:
            if isinstance(answer.aggregate, Quantile) and answer.count in self._query.statistics:
                columns.update(self._quantile_columns(answer))
                columns.update(self._share_columns(answer, failure))
            elif isinstance(answer.aggregate, Cdf):
                columns.update(self._band_columns(answer, failure))
            elif answer.aggregate.of_keys:
                low, high = self._interval(answer, failure)
                columns[answer.name] = self._values(answer).tolist()
                columns[f"{answer.name}_low"] = low.tolist()
                columns[f"{answer.name}_high"] = high.tolist()
        if self._noise.finder is not None:
            raise ValueError("intervals are for numbers, and keys_only() has none")
        if len(columns) == asked and not any(isinstance(one.aggregate, Histogram) for one in self._query.answers):
            raise ValueError(
                "intervals are for counts, sums, means, histograms and CDFs, and for quantiles where count_users(...) "
                "of their column is in the same agg: the error of a quantile is one in its share of users"
            )
        return frame_of(self._whole(columns, failure), backend or self._backend)

    def _share_columns(self, answer: Answer, failure: float) -> dict[str, Sequence[Any]]:
        """For each quantile, between which shares its value is one: half of the failure is that of the count."""
        users = answer.count
        assert users is not None
        fewest = np.maximum(self._of_total(users, failure / 2, 1.0)[0], 0)
        part = next(part for part in self._noise.selected if part.answer == answer)
        assert isinstance(answer.aggregate, Quantile)
        errors = part.rank_errors(failure / 2)
        columns: dict[str, Sequence[Any]] = {}
        for name, share, (off, piece) in zip(answer.columns, answer.aggregate.shares, errors, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                wide = np.where(fewest > 0, off / fewest + piece, 1.0)
            columns[f"{name}_share_low"] = np.clip(float(share) - wide, 0, 1).tolist()
            columns[f"{name}_share_high"] = np.clip(float(share) + wide, 0, 1).tolist()
        return columns

    def _band_columns(self, answer: Answer, failure: float) -> dict[str, Sequence[Any]]:
        """For each point of a CDF its share and both ends of the band."""
        part = next(part for part in self._noise.binned if part.answer == answer)
        bins = self._bins(answer)
        shares = shares_below(bins, WEIGHT)
        ends = band(bins, part.noise, part.step, failure, shares)
        values, low, high = (self._at_all_points(answer, one).T.tolist() for one in (shares, *ends))
        columns: dict[str, Sequence[Any]] = {}
        for place, name in enumerate(answer.columns):
            columns.update({name: values[place], f"{name}_low": low[place], f"{name}_high": high[place]})
        return columns

    def _interval(self, answer: Answer, failure: float) -> tuple[Floats, Floats]:
        if isinstance(answer.aggregate, Mean):
            return self._of_mean(answer, failure)
        assert answer.total is not None
        return self._of_total(answer.total, failure, 1.0 if answer.total.value is None else answer.total.value.unit)

    def _of_total(self, statistic: Statistic, failure: float, unit: float) -> tuple[Floats, Floats]:
        """Of a sum over users."""
        keyed = self._noise.keyed
        assert keyed is not None
        drawn = self._drawn.numbers[statistic]
        if keyed.sparse is not None and statistic == USERS:
            level = Fraction(1 - failure).limit_denominator(10**9)
            # Keys of the public list come first; they are shown whatever their noise is.
            width = NoiseTerm.of(keyed.of(statistic), 1.0).quantile(failure)
            always, beyond = drawn[: self._query.listed].astype(np.float64), drawn[self._query.listed :].tolist()
            pairs = {count: keyed.sparse.interval(count, level) for count in set(beyond)}
            ends = np.array([pairs[count] for count in beyond], dtype=np.float64).reshape(len(beyond), 2)
            return np.append(always - width, ends[:, 0]), np.append(always + width, ends[:, 1])
        if keyed.correlated is not None:
            off = keyed.correlated.error(Fraction(1 - failure))
            return (drawn - off).astype(np.float64), (drawn + off).astype(np.float64)
        step = keyed.step(statistic)
        width = NoiseTerm.of(keyed.of(statistic), step).quantile(failure) + off_by(step)
        middle = drawn.astype(np.float64)
        return (middle - width) * unit, (middle + width) * unit

    def _of_mean(self, answer: Answer, failure: float) -> tuple[Floats, Floats]:
        assert answer.total is not None
        assert answer.count is not None
        assert self._noise.keyed is not None
        value = answer.total.value
        assert value is not None
        low, high = _ends(answer)
        # In steps of the grid, from the middle of the range.
        bottom, top = -answer.total.shift, value.high - answer.total.shift
        if self._noise.keyed.sparse is not None:
            least, most = self._rectangle(answer, failure, bottom, top)
        else:
            least, most = ratio_interval(
                self._drawn.numbers[answer.total].astype(np.float64),
                self._drawn.numbers[answer.count].astype(np.float64),
                self._noise.keyed.of(answer.total),
                self._noise.keyed.of(answer.count),
                failure,
                (bottom, top),
                steps=(self._noise.keyed.step(answer.total), self._noise.keyed.step(answer.count)),
            )
        # Rows are off by half a step, and a user's mean by another half.
        below = value.offset + value.unit * (answer.total.shift + least - 1)
        above = value.offset + value.unit * (answer.total.shift + most + 1)
        return np.clip(below, low, high), np.clip(above, low, high)

    def _rectangle(self, answer: Answer, failure: float, bottom: float, top: float) -> tuple[Floats, Floats]:
        """All ratios of a sum and a count that are both within intervals, each at half the failure."""
        assert answer.total is not None
        assert answer.count is not None
        sums = self._of_total(answer.total, failure / 2, 1.0)
        counts = self._of_total(answer.count, failure / 2, 1.0)
        fewest, most = np.maximum(counts[0], 0), np.maximum(counts[1], 1)
        with np.errstate(all="ignore"):
            low = np.where(fewest > 0, np.minimum(sums[0] / fewest, sums[0] / most), -np.inf)
            high = np.where(fewest > 0, np.maximum(sums[1] / fewest, sums[1] / most), np.inf)
        return np.clip(low, bottom, top), np.clip(high, bottom, top)

    # --- what is public of it

    def card(self, format: str = "markdown") -> str:
        """A page that says what was released and what it promises, for colleagues.

        Parameters
        ----------
        format : {"markdown", "html", "text"}

        Returns
        -------
        str
            Of public numbers only: nothing in it comes from the rows but the released numbers.
        """
        section = self._section()
        if format == "text":
            return section.text()
        if format == "markdown":
            return _markdown(section)
        if format == "html":
            return f"<article>\n{_html(section)}\n</article>"
        raise ValueError(f"format must be 'markdown', 'html' or 'text'; got {short_repr(format)}")

    def to_json(self) -> str:
        """The numbers, the noise and the cost, as JSON."""
        content = {
            "userdp": "table release",
            "schema_version": 1,
            "neighbors": self.neighbors,
            "cost": _cost_texts(self.cost),
            "threshold": self.threshold,
            "query": self._facts,
            **({} if self._noise.finder is None else {"mechanism": repr(self._noise.finder)}),
            "columns": {name: [_finite(value) for value in column] for name, column in self._columns().items()},
        }
        return json.dumps(content, indent=1, allow_nan=False, default=_plain)

    def __str__(self) -> str:
        return self._section().text()

    def __repr__(self) -> str:
        return f"Release of {', '.join(self._query.names)}: {len(self._drawn.keys)} rows"

    def _sections(self) -> Sequence[Section]:
        return [self._section()]

    def _section(self) -> Section:
        promise = cost_facts(self.cost)
        facts = [Fact(label, text) for label, text in self._facts.items()]
        rows = self._rows(MOST_SHOWN + 1)
        shown = [[_cell(value) for value in row.values()] for row in rows[:MOST_SHOWN]]
        more = "and more rows: see frame" if len(rows) > MOST_SHOWN else ""
        tables = [
            Table("Released", tuple(rows[0]) if rows else self._query.names, shown, note=more),
            Table("Noise", ("number", "one user changes it by", "noise", "typical error"), self._noise_rows()),
        ]
        notes = list(self._caveats)
        if self.threshold is not None:
            group = "A group beyond the public list" if self._query.listed else "A group"
            notes.append(
                f"{group} is shown if its noisy count of users is {self.threshold} or more. Groups of fewer users are "
                "usually not shown, and a group that is not shown may exist."
            )
        if self._noise.keyed is not None and self._noise.keyed.correlated is not None:
            notes.append(IN_COMMON)
        if self._noise.finder is not None:
            facts += finder_facts(self._noise.finder)
            notes.append("A group that is not shown may exist. Of a group that is shown nothing else is told.")
        notes += [
            "Not in the errors: what bounding leaves out (keys, rows, totals and values beyond their public bounds), "
            "rows without an id or a key, that users may be a sample, and ids that are not people.",
            "The types of the table's columns are taken as public. Time and memory of a release depend on the rows.",
        ]
        return Section(
            "Private release", facts=[("", [*promise, *facts])], tables=tables, notes=notes, headline=promise
        )

    def _noise_rows(self) -> list[tuple[str, str, str, str]]:
        return noise_rows(self._query, self._noise)


def cost_facts(cost: PrivacyCost) -> list[Fact]:
    """What a release costs, for people."""
    facts = []
    if cost.epsilon is not None:
        facts += [Fact("Epsilon", *level_text(parse_level(cost.epsilon))), Fact("Delta", *number_text(cost.delta))]
    if cost.rho is not None:
        facts.append(Fact("Rho (zero-concentrated)", *number_text(cost.rho)))
    if cost.mu2 is not None:
        facts.append(Fact("Mu^2 (Gaussian)", *number_text(cost.mu2)))
    if cost.added_delta:
        beside = "mu^2" if cost.rho is None else "rho"
        facts.append(Fact(f"Delta beside {beside}", *number_text(cost.added_delta)))
    return facts


def finder_facts(finder: KeyFinder) -> list[Fact]:
    """How keys are found, for people."""
    one = finder.users_for("1/2"), finder.users_for("0.95")
    if not isinstance(finder, SetUnion):
        how = "noisy counts of users and a threshold (SparseHistogram)"
        if isinstance(finder, PartitionSelection):
            how = "counts of users, each with the largest probability that privacy allows (PartitionSelection)"
        return [
            Fact("Keys are found by", how),
            Fact("Shown with 50 % (95 %)", f"groups of {one[0]} ({one[1]}) users who count in them"),
        ]
    most = finder.users_for("1/2", finder.max_keys), finder.users_for("0.95", finder.max_keys)
    how = "users raise sums one after the other" if finder.cap is not None else f"rounds: {len(finder.rounds)}"
    return [
        Fact("Keys are found by", f"weights of users, {how} (SetUnion)"),
        Fact("Shown with 50 % (95 %)", f"groups of about {one[0]} ({one[1]}) users who count in no other group"),
        Fact(
            "or", f"of about {most[0]} ({most[1]}) users who count in {finder.max_keys} groups that are not shown yet"
        ),
    ]


def noise_rows(query: Compiled, noise: Allotment) -> list[tuple[str, str, str, str]]:
    """What noise each number has, for people."""
    rows = []
    # Of what numbers are, where groups of users are left out.
    each = f", {query.groups_of_a_user}" if query.groups_of_a_user else ""
    users = f"; users {query.groups_of_a_user}" if each else ""
    for sigma_squared, threshold in noise.finder.rounds if isinstance(noise.finder, SetUnion) else ():
        assert isinstance(noise.finder, SetUnion)
        weight = noise.finder.weight
        noisy = noise_text(DiscreteGaussian(sigma_squared=sigma_squared), 1 / weight)
        rows.append(
            ("weights of groups", "1 in length", noisy, f"shown from a sum of {rounded(threshold / weight)} on")
        )
    if isinstance(noise.finder, SparseHistogram):
        noisy = noise_text(noise.finder.noise, 1.0)
        shown = f"not told; shown from a count of {noise.finder.threshold} on"
        rows.append((f"users{each}", _of_user(query, USERS, 1.0), noisy, shown))
    if noise.keyed is not None and noise.keyed.correlated is not None:
        error = rounded(noise.keyed.spread(USERS))
        rows.append(
            (f"users{each}", _of_user(query, USERS, 1.0), f"discrete Gaussian, partly in common, sigma {error}", error)
        )
    for statistic, drawn in noise.keyed.noise if noise.keyed else ():
        assert noise.keyed is not None
        unit = 1.0 if statistic.value is None else statistic.value.unit
        step = noise.keyed.step(statistic)
        column = "" if statistic.value is None else statistic.value.column
        of = "" if statistic.of is None else f" with a value in {statistic.of.column}"
        what = {
            "users": f"users{of}",
            "rows": f"rows{of}, at most {statistic.max_rows} of a user",
            "sum": f"sum of {column}, {statistic.limits}",
            "mean": f"sum of users' means of {column}, from mid-range",
            "weighted": f"sum of {column}, from mid-range, at most {statistic.max_rows} rows of a user",
            "unreadable": f"users with unreadable {statistic.column}",
        }[statistic.kind]
        rows.append(
            (
                f"{what}{each}" if statistic.kind == "users" else f"{what}{users}",
                _of_user(query, statistic, unit),
                noise_text(drawn, unit * step),
                rounded(noise.keyed.spread(statistic) * unit),
            )
        )
    each_of = "" if query.max_keys == 1 else f" in each of {query.max_keys} keys"
    for part in noise.selected:
        off = max(users for users, _ in part.rank_errors(HALF))
        error = f"within {rounded(off)} users in rank, one time in two"
        rows.append((f"{part.answer.name}{users}", f"the weight of 1 in all{each_of}", "exponential mechanism", error))
    for binned in noise.binned:
        unit = binned.step / WEIGHT
        error = rounded(deviation(binned.noise) * unit)
        if isinstance(binned.answer.aggregate, Cdf):
            # At its middle: half of what all bins have, in one direction below and in the other above.
            bins = bins_of(binned.answer, query.types).count
            error = f"{rounded(deviation(binned.noise) * unit * math.sqrt(bins) / 2)} users at the middle"
        rows.append((f"{binned.answer.name}{users}", f"1 in all bins{each_of}", noise_text(binned.noise, unit), error))
    return rows


def _of_user(query: Compiled, statistic: Statistic, unit: float) -> str:
    keys = "" if query.max_keys == 1 else f" in {query.max_keys} keys"
    return f"{rounded(statistic.largest * unit)}{keys}"


def noise_text(noise: Noise, unit: float) -> str:
    """A noise distribution in words."""
    if isinstance(noise, DiscreteGaussian):
        return f"discrete Gaussian, sigma {rounded(math.sqrt(float(noise.sigma_squared)) * unit)}"
    return f"discrete Laplace, scale {rounded(float(noise.scale) * unit)}"


def _name(name: Any) -> str:
    """Of an aggregate: arrays of names are none."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of an aggregate, a str; got {short_repr(name)}")
    return name


def _ends(answer: Answer) -> tuple[float, float]:
    """The public range of a mean."""
    assert answer.total is not None
    assert answer.total.value is not None
    value = answer.total.value
    return value.offset, value.offset + value.unit * value.high


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    return rounded(value) if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _cost_texts(cost: PrivacyCost) -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for name in ("epsilon", "delta", "rho", "mu2", "added_delta", "distance"):
        value = getattr(cost, name)
        texts[name] = fraction_text(value) if isinstance(value, Fraction) else None if value is None else str(value)
    return texts


# --- cards


def _markdown(section: Section) -> str:
    lines = [f"# {section.title}", ""]
    lines += [f"* **{fact.label}**: {fact}" for _, facts in section.facts for fact in facts]
    for table in section.tables:
        lines += ["", f"## {table.title}", "", _row(table.columns), _row(["---"] * len(table.columns))]
        lines += [_row(row) for row in table.rows]
        lines += ["", table.note] if table.note else []
    lines += ["", *(f"* {note}" for note in section.notes), "", f"Made by userdp {version()}."]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _html(section: Section) -> str:
    escape = html.escape
    lines = [f"<h1>{escape(section.title)}</h1>", "<dl>"]
    lines += [
        f"<dt>{escape(fact.label)}</dt><dd>{escape(str(fact))}</dd>" for _, facts in section.facts for fact in facts
    ]
    lines.append("</dl>")
    for table in section.tables:
        head = "".join(f"<th>{escape(str(cell))}</th>" for cell in table.columns)
        lines += [f"<h2>{escape(table.title)}</h2>", f"<table><tr>{head}</tr>"]
        lines += ["<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in table.rows]
        lines += ["</table>", *([f"<p>{escape(table.note)}</p>"] if table.note else [])]
    lines += ["<ul>", *(f"<li>{escape(note)}</li>" for note in section.notes), "</ul>"]
    lines.append(f"<p>Made by userdp {version()}.</p>")
    return "\n".join(lines)
