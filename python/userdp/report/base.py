"""What every report is: a result that is written as JSON, read back, verified where it can be, and shown.

A kind of report is a subclass of `Report` with the decorator `report`, whose fields `userdp.report.fields` declares. No
report needs the compiled core to be loaded, verified, printed or drawn.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from userdp.algorithms.finite import form_of, relative_error
from userdp.checker import check as checker
from userdp.checker import values, work
from userdp.checker.check import Verification
from userdp.display import Fact, Tone, render_page
from userdp.display.numbers import Toward, bounded, level_text, number_text, plural
from userdp.display.pages import version
from userdp.exact.encoding import encode, fraction_text, printable
from userdp.exact.numbers import Bounds, PrivacyLevel
from userdp.exact.pmf import Pmf, aligned, fractions_of, masses_of
from userdp.exceptions import BudgetError
from userdp.report.fields import DEFINED, TEXT, Result, Schema, object_of, result, written

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    from userdp.report.fields import dataclass_transform

Self = TypeVar("Self", bound="Report")

MALFORMED = checker.MALFORMED
ENVELOPE = ("format", "userdp_version", "digest")
"""The fields that every report has."""
NAMED = 80
"""Characters of a universe that is written out."""


@dataclass(frozen=True, repr=False)
class Report(Result):
    """A result that travels: JSON that others read back, verify where it can be, and show.

    Notes
    -----
    The kinds are audits (`userdp.report.AuditReport`), checks of deletions (`userdp.lddp.LDDPResult`), perfect
    generalization (`userdp.item_to_user.GeneralizationReport`), stability (`userdp.stability.StabilityReport`),
    compositions (`userdp.report.CompositionCertificate`), optimal mechanisms
    (`userdp.report.OptimalityCertificate`), tables (`userdp.report.Certificate`), what guesses prove
    (`userdp.report.GuessReport`), sensitivity (`userdp.report.SensitivityReport`) and laws of samplers
    (`userdp.report.SamplerLawReport`). docs/report-format.md has their formats.
    """

    KIND: ClassVar[str] = ""
    _kinds: ClassVar[dict[str, type[Report]]] = {}

    # The JSON object that a loaded report came from: `verify` must check that, not a tidied copy.
    _source: dict[str, Any] | None = field(default=None, repr=False, compare=False, kw_only=True)

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
            Whose ``finding`` says how much was checked.
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

    @classmethod
    def _schema(cls) -> Schema:
        """The JSON Schema of this kind."""
        return object_of(envelope(cls.KIND) | {name: codec.schema for name, codec in cls.WRITTEN.items()})

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of all kinds of reports, as docs/report.schema.json has it."""
        kinds = {kind: Report._kinds[kind]._schema() | {"title": checker.format_of(kind)} for kind in Report._kinds}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://raw.githubusercontent.com/userdp/userdp/main/docs/report.schema.json",
            "title": f"Reports of userdp, format {checker.FORMAT}",
            "description": "The form of every kind of report. What a form cannot say (sums, neighbors, verdicts, one "
            "spelling of each value) is in docs/report-format.md, and checked by Report.from_json and Report.verify.",
            "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
            "$defs": DEFINED | kinds,
        }


def envelope(kind: str) -> dict[str, Schema]:
    """The schema of the fields that every report has."""
    return {
        "format": {"const": checker.format_of(kind)},
        "userdp_version": TEXT.schema,
        "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    }


Kind = TypeVar("Kind", bound=Report)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(written,))
def report(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Make of a subclass of `Report` (decorator) a kind of report; its fields are declared with `written`."""

    def made(kind: type[Kind]) -> type[Kind]:
        kind.KIND = name
        Report._kinds[name] = result(kind)
        return kind

    return made


VERDICTS: Mapping[bool | None, tuple[str, Tone]] = {
    True: ("HOLDS", "good"),
    False: ("VIOLATED", "bad"),
    None: ("UNDETERMINED", "open"),
}
"""The word and the color of each verdict, for all kinds."""


def verdict(
    holds: bool | None, sentences: Mapping[bool | None, str], words: Mapping[bool | None, str] = MappingProxyType({})
) -> dict[str, Any]:
    """What a section says first: the word of the verdict, or another for it, and its sentence."""
    word, tone = VERDICTS[holds]
    return {"word": words.get(holds, word), "sentence": sentences[holds], "tone": tone}


def level_facts(level: PrivacyLevel, delta: Fraction, toward: Toward = "up", claimed: str = "") -> list[Fact]:
    """The epsilon and the delta of a question or a claim."""
    names = (f"{claimed} epsilon", f"{claimed} delta") if claimed else ("Epsilon", "Delta")
    return [Fact(names[0], *level_text(level, toward)), Fact(names[1], *number_text(delta, toward))]


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
