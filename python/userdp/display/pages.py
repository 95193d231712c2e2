"""Pages and fragments of HTML, by the Jinja2 templates of this folder. Everything is escaped; nothing is fetched."""

from __future__ import annotations

import datetime
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from userdp.display.numbers import bounded, rounded
from userdp.exact.encoding import printable

if TYPE_CHECKING:
    import jinja2

Tone = Literal["good", "bad", "open", "plain"]

MOST_SHOWN = 2000
"""Characters of an exact number on a page; the JSON report has all of them."""


@dataclass(frozen=True)
class Fact:
    """A label and what it says; `exact` stands behind a disclosure."""

    label: str
    text: str
    exact: str = ""

    def __str__(self) -> str:
        if not self.exact or len(self.exact) > 60:
            return self.text
        return f"{self.text} ({'' if self.exact.startswith('between') else 'exactly '}{self.exact})"


@dataclass(frozen=True)
class Table:
    """A table with a heading; `note` stands below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """Delta against epsilon, on a logarithmic axis whose floor stands for 0.

    `end` is the least drawn epsilon from which on delta is 0, and `claim` the claimed (epsilon, delta).
    """

    points: Sequence[tuple[float, float]]
    claim: tuple[float, float] | None
    end: float | None
    label: str


@dataclass(frozen=True)
class Lines:
    """Lines against a common axis, both axes logarithmic; the first line is the thick one.

    `level` is a horizontal line, and what it says.
    """

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    level: tuple[float, str] | None = None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """One result: a title, a verdict, facts by heading, tables and a curve."""

    title: str
    word: str = ""
    sentence: str = ""
    tone: Tone = "plain"
    facts: Sequence[tuple[str, Sequence[Fact]]] = ()
    tables: Sequence[Table] = ()
    curve: Callable[[], Curve] | None = None
    """Makes the curve when a page is made, and raises ValueError where there is none to draw."""
    curve_note: str = ""
    notes: Sequence[str] = ()
    how: str = ""
    commands: Sequence[str] = ()
    """On pages only: how the result is checked, and what to type."""
    subtitle: str = ""
    headline: Sequence[Fact] = ()
    """The numbers that a summary shows."""
    lines: Lines | None = None

    def text(self) -> str:
        """The section as lines of plain text."""
        lines = [printable(f"{self.title}: {self.word}" if self.word else self.title)]
        if self.sentence:
            lines.append(f"  {printable(self.sentence)}")
        rows = [(printable(fact.label), printable(str(fact))) for _, facts in self.facts for fact in facts]
        width = max((len(label) for label, _ in rows), default=0)
        lines += [f"  {label:<{width}}  {text}" for label, text in rows]
        for table in self.tables:
            cells = [[printable(cell) for cell in row] for row in (table.columns, *table.rows)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += [f"  {printable(table.title)}"] if table.title else []
            lines += ["    " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
            lines += [f"    {printable(table.note)}"] if table.note else []
        return "\n".join([*lines, *(f"  {printable(note)}" for note in self.notes)])


def has_templates() -> bool:
    """Whether Jinja2 is installed."""
    return importlib.util.find_spec("jinja2") is not None


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise ImportError("pages need Jinja2: pip install 'userdp[report]'") from None
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("userdp.display", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=safe,
    )
    made.filters["cut"] = lambda text: text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… (cut)"
    made.globals |= {"drawn": drawn, "curve_of": curve_of, "drawn_lines": drawn_lines}
    return made


def curve_of(section: Section) -> tuple[Curve | None, str]:
    """The curve of a section, and the note below it; or why there is none."""
    if section.curve is None:
        return None, section.curve_note
    try:
        return section.curve(), section.curve_note
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of a part, or of a report that is wrong
        return None, f"There is no curve: {error}."


def version() -> str:
    """The installed version of userdp."""
    import importlib.metadata

    try:
        return importlib.metadata.version("userdp")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


AUDITED = "This page shows data that was audited. It is a diagnostic, not a private release."


def render_page(
    sections: Sequence[Section],
    title: str,
    introduction: str = "",
    date: datetime.date | None = None,
    closing: str = AUDITED,
) -> str:
    """A self-contained page: a summary of the verdicts, if there are several, then a section for each result.

    `date` is that of the page, today by default; nothing that is verified holds it. `closing` says what the page is.
    """
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            introduction=introduction,
            sections=sections,
            closing=closing,
            version=version(),
            date=(datetime.date.today() if date is None else date).isoformat(),
        )
    )


def render_fragment(sections: Sequence[Section]) -> str:
    """The sections as HTML to stand in another page."""
    return _environment().get_template("fragment.html").render(sections=sections)


# The drawing has its own units, 480 x 300. Its letters are larger on narrow screens: see style.css.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480.0, 300.0, 62.0, 18.0, 36.0, 52.0


@dataclass(frozen=True)
class Drawn:
    """A curve in the units of the drawing."""

    ticks_x: Sequence[tuple[float, str]]
    ticks_y: Sequence[tuple[float, str]]
    path: str
    ends: Sequence[tuple[float, float, str, str]]
    claim: tuple[float, float, str, str] | None


def _steps(top: float, most: int) -> float:
    """A round step by which at most so many ticks reach the top."""
    raw = top / most
    size = 10.0 ** math.floor(math.log10(raw))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999999)


def drawn(curve: Curve) -> Drawn | None:
    """Where things are in the drawing; None where delta is 0 everywhere."""
    claimed = curve.claim
    positive = [delta for _, delta in curve.points if delta > 0]
    if claimed is not None and claimed[1] > 0:
        positive.append(claimed[1])
    if not positive:
        return None
    top = math.ceil(math.log10(max(positive)) - 1e-9)
    # The floor is a decade below everything that is drawn, and stands for 0.
    bottom = min(math.floor(math.log10(min(positive)) + 1e-9), top) - 1
    reach = curve.points[-1][0]
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x_of(epsilon: float) -> float:
        return LEFT + (right - LEFT) * min(epsilon / reach, 1.0)

    def y_of(delta: float) -> float:
        share = (math.log10(delta) - bottom) / (top - bottom) if delta > 0 else 0.0
        return floor - (floor - TOP) * share

    points = [(x_of(epsilon), y_of(delta)) for epsilon, delta in curve.points if delta > 0]
    ends = []
    if points:
        ends.append((*points[0], f"δ = {bounded(curve.points[0][1])}", "start"))
        if curve.end is not None:
            x = x_of(curve.end)
            points += [(x, points[-1][1]), (x, floor)]
            ends.append((x, floor, f"0 from ε = {bounded(curve.end)}", "end" if x > WIDTH / 2 else "start"))
        else:
            last = next(delta for _, delta in reversed(curve.points) if delta > 0)
            ends.append((*points[-1], f"δ = {bounded(last)}", "end"))
    step = _steps(reach, 5)
    ticks_x = [(x_of(n * step), rounded(n * step)) for n in range(int(reach / step * 1.000001) + 1)]
    decades = range(top, bottom, -max(1, -(-(top - bottom) // 5)))
    # The lowest one would run into the floor's.
    ticks_y = [(y_of(10.0**decade), _power(decade)) for decade in decades if decade > -308]
    ticks_y = [(y, text) for y, text in ticks_y if y < floor - 18]
    mark = None
    if claimed is not None and claimed[0] <= reach:
        x = x_of(claimed[0])
        mark = (x, y_of(claimed[1]), "claimed", "start" if x < WIDTH / 2 else "end")
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""
    return Drawn(ticks_x, [*ticks_y, (floor, "0")], path, ends, mark)


def _power(decade: int) -> str:
    raised = str(decade).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", -1: "0.1", -2: "0.01"}.get(decade, f"10{raised}")


@dataclass(frozen=True)
class DrawnLines:
    """Lines in the units of the drawing."""

    ticks_x: Sequence[tuple[float, str]]
    ticks_y: Sequence[tuple[float, str]]
    paths: Sequence[str]
    dots: Sequence[Sequence[tuple[float, float]]]
    names: Sequence[tuple[float, str]]
    """Where the legend's lines are, and what they say."""
    level: float | None


LEGEND = 17.0
"""The height of a line of the legend."""


def drawn_lines(lines: Lines) -> DrawnLines:
    """Where things are in a drawing of lines."""
    points = [point for series in lines.series.values() for point in series]
    marks = [y for _, y in points] + ([lines.level[0]] if lines.level else [])
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades(marks)
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x_of(x: float) -> float:
        return LEFT + (right - LEFT) * (math.log10(x) - x_low) / (x_high - x_low)

    def y_of(y: float) -> float:
        return floor - (floor - TOP) * (math.log10(y) - y_low) / (y_high - y_low)

    names = [*lines.series, *([lines.level[1]] if lines.level else [])]
    dots = [[(x_of(x), y_of(y)) for x, y in series] for series in lines.series.values()]
    return DrawnLines(
        ticks_x=[(x_of(10.0**decade), _count(decade)) for decade in _ticks(x_low, x_high)],
        ticks_y=[(y_of(10.0**decade), _count(decade)) for decade in _ticks(y_low, y_high)],
        paths=["M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in series) for series in dots],
        dots=dots,
        names=[(HEIGHT + LEGEND * (line + 0.6), name) for line, name in enumerate(names)],
        level=None if lines.level is None else y_of(lines.level[0]),
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Whole decades around positive numbers."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    return low, max(low + 1, math.ceil(math.log10(max(values)) - 1e-9))


def _ticks(low: int, high: int) -> Sequence[int]:
    return range(low, high + 1, max(1, -(-(high - low) // 6)))


def _count(decade: int) -> str:
    return f"{10**decade:,}" if 0 <= decade <= 6 else _power(decade)
