"""What every report is: something that is written as JSON, read back, verified where it can be, and shown.

A kind of report is a frozen dataclass that derives from `Report` and says in `WRITTEN` how each field is written. No
report needs the compiled core to be loaded, verified, printed or drawn.
"""

from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, TypeVar

from userdp.algorithms.finite import form_of, relative_error
from userdp.checker import check as checker
from userdp.checker import values, work
from userdp.checker.check import Verification
from userdp.display import Shown, render_page
from userdp.display.numbers import Toward, bounded, plural
from userdp.display.pages import version
from userdp.exact.encoding import Unreadable, encode, fraction_text, printable
from userdp.exact.numbers import Bounds, PrivacyLevel, short_repr
from userdp.exact.pmf import Pmf, aligned, fractions_of, masses_of
from userdp.exceptions import BudgetError

Self = TypeVar("Self", bound="Report")

MALFORMED = checker.MALFORMED
ENVELOPE = ("format", "userdp_version", "digest")
"""The fields that every report has."""
NAMED = 80
"""Characters of a universe that is written out."""


class Codec(NamedTuple):
    """How one field is written as JSON, and read from it: strictly, so that every value has one spelling."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _is(kind: type, name: str) -> Codec:
    def read(value: Any) -> Any:
        values.need(type(value) is kind, f"{value!r:.60} is not {name}")
        return value

    return Codec(lambda value: value, read)


TEXT, FLAG = _is(str, "a text"), _is(bool, "true or false")
COUNT = Codec(int, lambda value: values.count(value, "a number"))
FRACTION = Codec(fraction_text, values.fraction)
FLOAT = Codec(lambda value: (float(value) + 0.0).hex(), values.hex_float)  # + 0.0 is without a sign
VALUE = Codec(encode, lambda code: values.decode(code, Unreadable))


def optional(of: Codec) -> Codec:
    """None, or what the codec writes."""
    return Codec(
        lambda value: None if value is None else of.write(value),
        lambda code: None if code is None else of.read(code),
    )


def many(of: Codec) -> Codec:
    """A tuple of any length."""

    def read(codes: Any) -> tuple[Any, ...]:
        values.need(isinstance(codes, list), f"{codes!r:.60} is not a list")
        return tuple(map(of.read, codes))

    return Codec(lambda members: list(map(of.write, members)), read)


def row(*of: Codec) -> Codec:
    """A tuple with one codec for each place."""

    def read(codes: Any) -> tuple[Any, ...]:
        values.need(isinstance(codes, list) and len(codes) == len(of), f"{codes!r:.60} is not a list of {len(of)}")
        return tuple(codec.read(code) for codec, code in zip(of, codes, strict=True))

    return Codec(lambda members: [codec.write(member) for codec, member in zip(of, members, strict=True)], read)


def named(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict of names and values; no name may be there twice, as one of the two would be lost."""
    found = dict(pairs)
    values.need(len(found) == len(pairs), f"{list(found)!r:.60} are names of which one is there twice")
    return found


def one_of(*accepted: str) -> Codec:
    """One of some words."""

    def read(value: Any) -> Any:
        values.need(isinstance(value, str) and value in accepted, f"{value!r:.60} is not one of {', '.join(accepted)}")
        return value

    return Codec(str, read)


def members(make: Callable[..., Any], **of: Codec) -> Codec:
    """An object with the attributes of something that `make` makes of them."""

    def read(code: Any) -> Any:
        values.need(isinstance(code, dict) and set(code) == set(of), f"fields missing or unknown in {code!r:.60}")
        return make(**{name: codec.read(code[name]) for name, codec in of.items()})

    return Codec(lambda value: {name: codec.write(getattr(value, name)) for name, codec in of.items()}, read)


def _level(ratio: Fraction, exponent: Fraction) -> PrivacyLevel:
    values.need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    return PrivacyLevel(ratio, exponent)


BOUNDS = Codec(
    lambda bounds: list(map(FLOAT.write, (bounds.lower, bounds.upper))),
    lambda code: Bounds(*row(FLOAT, FLOAT).read(code)),
)
LEVEL = members(_level, ratio=FRACTION, exponent=FRACTION)


def _output_set(codes: Any) -> frozenset[Any]:
    found = frozenset(many(VALUE).read(codes))
    texts = list(map(values.text_of, codes))
    values.need(texts == sorted(set(texts)), f"{codes!r:.60} is no set of outputs, each once and in order")
    return found


OUTPUT_SET = Codec(lambda outputs: sorted(map(encode, outputs), key=values.text_of), _output_set)
"""A frozenset of outputs, in the order of their codes."""


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A result that travels: JSON that others read back, verify where it can be, and show.

    Notes
    -----
    The kinds are audits (`userdp.report.AuditReport`), checks of deletions (`userdp.lddp.LDDPResult`), perfect
    generalization (`userdp.item_to_user.GeneralizationReport`), stability (`userdp.stability.StabilityReport`),
    compositions (`userdp.report.CompositionCertificate`), optimal mechanisms
    (`userdp.report.OptimalityCertificate`), what guesses prove (`userdp.report.GuessReport`), and three of which
    nothing is computed again: explanations of DelStab, comparisons of methods and measured agreement.
    docs/report-format.md has their formats.
    """

    KIND: ClassVar[str] = ""
    WRITTEN: ClassVar[Mapping[str, Codec]] = {}
    """How each field is written; every field of the JSON is one of these."""
    _kinds: ClassVar[dict[str, type[Report]]] = {}

    # The JSON object that a loaded report came from: `verify` must check that, not a tidied copy.
    _source: dict[str, Any] | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __init_subclass__(cls) -> None:
        if cls.KIND:
            Report._kinds[cls.KIND] = cls

    def __repr__(self) -> str:
        parts = (f"{name}={_parts_text(getattr(self, name))}" for name in self.WRITTEN)
        return f"{type(self).__name__}({', '.join(parts)})"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Describe the result in a few lines of plain text."""
        return "\n".join(section.text() for section in self._sections())

    def _content(self) -> dict[str, Any]:
        """The fields as JSON, without the envelope."""
        return {name: codec.write(getattr(self, name)) for name, codec in self.WRITTEN.items()}

    @classmethod
    def _read(cls: type[Self], source: Mapping[str, Any]) -> Self:
        """The report that the JSON object says, which has the form of one."""
        found = {name: codec.read(source[name]) for name, codec in cls.WRITTEN.items()}
        return cls(**found, _source=dict(source))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the JSON object of docs/report-format.md, digest included."""
        if self._source is not None:
            return copy.deepcopy(self._source)
        report = {"format": checker.format_of(self.KIND), "userdp_version": version(), **self._content()}
        return report | {"digest": "sha256:" + values.canonical_digest(report)}

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as JSON; ``Report.from_json(text).verify()`` checks it."""
        return json.dumps(self.to_dict(), indent=indent, sort_keys=True)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all else that the report holds: no date, no place, no name of a file."""
        return str(self.to_dict()["digest"])

    @classmethod
    def from_json(cls: type[Self], text: str) -> Self:
        """Load a report; loading is not checking, `verify` is.

        Parameters
        ----------
        text : str
            As `to_json` writes it. ``Report.from_json`` reads every kind, a kind's own ``from_json`` that kind.

        Returns
        -------
        Report
            Of the class that the text says.

        Raises
        ------
        ValueError
            When the text is no such report, and for reports of earlier formats, which say less than they should.
        BudgetError
            When reading it takes too long: docs/report-format.md says how long that is.
        """
        wanted = checker.format_of(cls.KIND) if cls.KIND else "userdp"
        try:
            with work.at_most():
                source = values.parsed(text)
                kind = Report._kinds[checker.kind_of(source)]
                values.need(issubclass(kind, cls), f"it is of the format {source['format']!r:.40}")
                checker.read_form(source)
                return kind._read(source)  # type: ignore[return-value]
        except work.TooMuch as error:
            raise BudgetError(str(error)) from None
        except MALFORMED as error:
            raise ValueError(f"not a {wanted} report: {type(error).__name__}: {error}") from error

    def verify(self, mechanism: Any = None) -> Verification:
        """Check what the report says again, without the compiled core.

        Parameters
        ----------
        mechanism : optional
            What the report is about, to be run again; for audits, generalization and checks of deletions only.

        Returns
        -------
        Verification
            Whose ``finding`` says how much was checked. Of explanations, comparisons and measured agreement nothing can
            be computed again from the report: they are "well-formed" at best.
        """
        if mechanism is not None:
            raise TypeError(
                f"{type(self).__name__}.verify computes nothing again from a mechanism; leave it out, and make the "
                "report anew to compare the two"
            )
        return self._checked()

    def _checked(self, **about: Any) -> Verification:
        """What the checker finds, of the JSON that was loaded or would be written."""
        found = checker.check(self.to_dict() if self._source is None else self._source, **about)
        if self._source is not None and not self._is_what_was_loaded():
            problems = ("the report was changed after it was loaded", *found.problems)
            return Verification("wrong", problems)
        return found

    def _is_what_was_loaded(self) -> bool:
        """Whether every field still is what the stored report says."""
        try:
            content = {name: value for name, value in (self._source or {}).items() if name not in ENVELOPE}
            return values.canonical_digest(self._content()) == values.canonical_digest(content)
        except MALFORMED:
            return False

    def to_html(self, *, date: datetime.date | None = None) -> str:
        """Return a self-contained page; needs Jinja2 (``pip install 'userdp[report]'``).

        Parameters
        ----------
        date : datetime.date, optional
            The date of the page, today by default. The report itself has none.
        """
        sections = self._sections()
        return render_page(sections, sections[0].title, date=date)


def render_html(
    reports: Sequence[Report],
    title: str,
    introduction: str = "",
    *,
    titles: Sequence[str] | None = None,
    commands: Sequence[str] | None = None,
    date: datetime.date | None = None,
) -> str:
    """Render several reports as one self-contained page; needs Jinja2 (``pip install 'userdp[report]'``).

    Parameters
    ----------
    reports : sequence of Report
    title : str
    introduction : str
        Plain text under the title; empty lines part paragraphs.
    titles : sequence of str, optional
        One for each report, to tell them apart; by default what the reports call themselves.
    commands : sequence of str, optional
        One for each report, that checks it; by default one for a file of another name.
    date : datetime.date, optional
        The date of the page, today by default. Reports have none.

    Returns
    -------
    str
        HTML: the verdicts, then a section for each report.
    """
    sections = []
    for place, report in enumerate(reports):
        for section in report._sections():
            if titles is not None:
                section = replace(section, title=titles[place], subtitle=section.title)
            if commands is not None:
                section = replace(section, commands=[commands[place]])
            sections.append(section)
    return render_page(sections, title, introduction, date)


def _parts_text(value: Any) -> str:
    """The repr, in full while Python writes it: exact fractions may be longer than that."""
    try:
        return repr(value)
    except ValueError:
        return f"({', '.join(map(_parts_text, value))})" if isinstance(value, tuple) else short_repr(value)


class ReadOnly(Mapping[str, Any]):
    """A mapping that nobody changes."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = dict(parts)

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return repr(self._parts)


def exact_text(value: Fraction, digits: int = 4, toward: Toward = "up") -> str:
    """A short fraction itself, or some of its digits."""
    text = fraction_text(value)
    return text if len(text) <= 24 else bounded(value, toward, digits)


def undetermined(pmf_error: Fraction, worst: Bounds, delta: Fraction) -> str:
    """Why a verdict has no truth value."""
    return (
        f"undetermined within pmf_error={exact_text(pmf_error)}: the worst divergence is between {worst.lower!r} and "
        f"{worst.upper!r}, which does not decide about the claimed delta {float(delta)!r}; a smaller pmf_error, or "
        "pmfs given exactly, would settle it"
    )


def universe_text(universe: Sequence[Any]) -> str:
    """The values of a universe where that is short; otherwise how many they are, and the SHA-256 of their encoding."""
    code = values.text_of(encode(tuple(universe)))
    text = printable(", ".join(map(repr, universe))) if len(code) <= 4 * NAMED else code
    if len(text) <= NAMED:
        return f"{{{text}}}"
    return f"{plural(len(universe), 'value')} with the SHA-256 {values.canonical_digest(encode(tuple(universe)))}"


def confirmed_by(mechanism: Any, outputs: tuple[Any, ...]) -> tuple[checker.Mechanism, checker.Declared, list[str]]:
    """What the checker needs of a mechanism, given the outputs of a report, and the problems seen already."""
    problems, error = [], Fraction(0)
    try:
        own, pmf = getattr(mechanism, "outputs", None), getattr(mechanism, "pmf", mechanism)
        stated, form = getattr(mechanism, "pmf_error", 0), form_of(mechanism)
        order = outputs if own is None or isinstance(mechanism, type) else tuple(own)
        code = encode(order)
    except Exception as wrong:
        raise TypeError(f"mechanism: what it declares cannot be read: {type(wrong).__name__}: {wrong}") from wrong
    if isinstance(mechanism, type) or not callable(pmf):
        kind = f"the class {mechanism.__name__}" if isinstance(mechanism, type) else type(mechanism).__name__
        raise TypeError(
            "mechanism must be a FiniteAlgorithm, with .outputs and .pmf(dataset), or a function from datasets to "
            f"pmfs; got {kind}"
        )
    if code != encode(outputs):
        problems.append("the mechanism has other outputs than the report states")
    try:
        error = relative_error(stated)
    except (TypeError, ValueError) as wrong:
        problems.append(f"the mechanism's pmf_error is no relative error: {wrong}")
    declared = checker.Declared(
        symmetric=form != "labeled",
        statistic_of=mechanism.statistic_of if form == "additive" else None,
        pmf_error=error,
        by_construction=form in ("additive", "score"),
    )

    def masses(dataset: tuple[Any, ...]) -> list[Fraction]:
        """Read whatever a finite algorithm returns as a pmf, exactly, in the order of the outputs, as audits do."""
        result = pmf(dataset)
        if isinstance(result, Pmf):
            result = aligned(result, order)
        if hasattr(result, "fractions"):
            result = list(result.fractions())
        return list(fractions_of(masses_of(result, "the pmf")))

    return masses, declared, problems
