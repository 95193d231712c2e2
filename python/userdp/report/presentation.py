"""A report in words and as a page."""

from __future__ import annotations

import html
import math
import reprlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from userdp.algorithms.finite import ASSUMPTIONS
from userdp.exact.encoding import fraction_text, printable
from userdp.exact.numbers import Bounds, PrivacyLevel

if TYPE_CHECKING:
    from userdp.report.audit_report import AuditReport

MANY_USERS = 6
"""Datasets with more users are not written out."""

_short = reprlib.Repr()
_short.maxtuple = _short.maxlist = _short.maxset = _short.maxfrozenset = 12
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 4


def number_text(value: Fraction) -> str:
    """Write a number so that short exact values, floats and other fractions can be told apart."""
    try:
        nearest = float(value)
    except OverflowError:
        return "more than any float"
    decimal, text = f"{nearest:.6g}", fraction_text(value)
    if Fraction(decimal) == value:
        return decimal
    if Fraction(nearest) == value:
        return f"{nearest!r} (float)"
    return f"{text} (about {decimal})" if len(text) <= 24 else f"about {decimal}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def level_text(level: PrivacyLevel) -> str:
    """Write epsilon, exactly when that is short."""
    if level.ratio == 1:
        return number_text(level.exponent)
    log = f"ln({fraction_text(level.ratio)})" + (f" + {fraction_text(level.exponent)}" if level.exponent else "")
    return f"{log if len(log) <= 40 else 'ln(...)'} (about {float(level):.6g})"


def _bounds_text(bounds: Bounds) -> str:
    same = bounds.lower == bounds.upper
    return f"{bounds.lower!r}" if same else f"between {bounds.lower!r} and {bounds.upper!r}"


def verdict(report: AuditReport) -> tuple[str, str]:
    """Return one word and one sentence for the verdict."""
    claim = f"at epsilon = {level_text(report.epsilon_level)}, delta = {number_text(report.delta)}"
    if report.holds is None:
        error = number_text(report.pmf_error)
        return "UNDETERMINED", f"The pmfs are known only within {error}, too little to decide {claim}."
    if report.holds:
        return "HOLDS", f"Every audited pair of neighbors is indistinguishable {claim}."
    return "VIOLATED", f"Some audited neighbors can be told apart {claim}."


def _scope(report: AuditReport) -> str:
    structure = report.structure
    if report.kind == "pair":
        return "one pair of datasets"
    if report.kind == "dataset":
        users, records = _plural(len(structure["dataset"]), "user"), _plural(len(structure["records"]), "record")
        return f"one dataset of {users}, against every replacement of a user by one of {records}"
    users, examples = _plural(structure["n_users"], "user"), _plural(structure["n_examples"], "example")
    change = "one example of one user" if report.kind == "item-level" else "one user"
    change = f"replacing {change}" if report.neighbors == "replace" else "adding or removing one user"
    return (
        f"all datasets of {users} with {examples} each "
        f"from {_plural(len(structure['universe']), 'value')}; neighbors by {change}"
    )


def facts(report: AuditReport) -> list[tuple[str, str]]:
    """Return what the audit asked and found, as labels and texts."""
    least = report.exp_epsilon
    no_finite = "infinite: no epsilon reaches this delta"
    lines = [
        ("Audited", _scope(report)),
        ("Claim", f"epsilon = {level_text(report.epsilon_level)}, delta = {number_text(report.delta)}"),
        ("Worst delta at epsilon", _bounds_text(report.worst_delta)),
        (
            "Epsilon at delta",
            no_finite if least is None else f"{_bounds_text(report.epsilon)}, ln({number_text(least)})",
        ),
        ("Datasets", f"{report.datasets:,}"),
        ("Pairs of neighbors", f"{report.pairs:,} ({_plural(len(report.pmf_pairs), 'distinct pair')} of pmfs)"),
        ("Engine", report.engine),
    ]
    if report.verification == "sampled":
        lines[5] = (
            "Pairs of neighbors",
            f"{report.pairs:,} (a written report holds a drawn sample of them, which cannot establish the claim)",
        )
    if report.pmf_error:
        lines.append(("Relative error of the pmfs", number_text(report.pmf_error)))
    lines += [("Assumed", ASSUMPTIONS[name]) for name in report.assumptions]
    return [(label, printable(text)) for label, text in lines]


def witness_facts(report: AuditReport) -> list[tuple[str, str]]:
    """Return the witness as labels and texts; for large datasets only the user who changes."""
    return [(label, printable(text)) for label, text in _witness_lines(report)]


def _witness_lines(report: AuditReport) -> list[tuple[str, str]]:
    witness = report.witness
    if witness is None:
        return [("Witness", "none: all neighbors have equal output distributions")]
    if report.worst_delta.upper == 0:
        return [("Witness", "none: no event is more than e^epsilon times as likely on any neighbor")]
    event = ", ".join(_short.repr(report.outputs[o]) for o in witness.event_indices) or "(empty)"
    lines = [("Event", event)]
    if witness.changed_user is not None and len(witness.x) == len(witness.x2):
        position = witness.changed_user
        lines.append(("Changed user", f"position {position} of {len(witness.x)}"))
        if report.kind == "dataset" or len(witness.x) > MANY_USERS:
            lines.append(("More likely with", _short.repr(witness.x[position])))
            lines.append(("Less likely with", _short.repr(witness.x2[position])))
            return lines
    lines.append(("More likely on", _short.repr(witness.x)))
    lines.append(("Less likely on", _short.repr(witness.x2)))
    return lines


def summarize(report: AuditReport) -> str:
    """Return the whole report as lines of plain text."""
    word, sentence = verdict(report)
    lines = [f"{printable(report.mechanism)}: {word}", f"  {sentence}"]
    rows = [*facts(report), *witness_facts(report)]
    width = max(len(label) for label, _ in rows)
    return "\n".join(lines + [f"  {label:<{width}}  {text}" for label, text in rows])


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --page: #ffffff; --panel: #f4f6f8;
  --line: #d5dbe1; --curve: #1f5fae; --claim: #b3471b; --holds: #14663a; --violated: #a31d2a;
  --open: #80590a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #a2adba; --page: #14181d;
  --panel: #1d232a; --line: #3a444f; --curve: #7db3f5; --claim: #f2a071; --holds: #2c8a57;
  --violated: #c94552; --open: #a87a1c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto;
  max-width: 46rem; padding: 2rem 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
.banner { color: #fff; border-radius: 6px; padding: .8rem 1rem; } .banner strong { letter-spacing: .05em; }
.holds { background: var(--holds); } .violated { background: var(--violated); }
.undetermined { background: var(--open); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; width: 32%; } td { overflow-wrap: anywhere; }
svg { width: 100%; height: auto; background: var(--panel); border-radius: 6px; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
code { background: var(--panel); padding: .1em .3em; border-radius: 3px; } footer { color: var(--soft); }
"""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 320, 70, 20, 20, 50


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th scope='row'>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
    return "<table>" + "".join(cells) + "</table>"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='var(--line)'/>"


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{html.escape(text)}</text>"


def _plot(report: AuditReport) -> str:
    """Draw delta against epsilon, delta on a logarithmic axis; values of 0 lie on the axis below it."""
    grid = [float(epsilon) for epsilon in report.plot_epsilons()]
    curve = [float(delta) for delta in report.profile(grid)]
    positive = [delta for delta in [*curve, float(report.delta)] if delta > 0]
    if not positive:
        return "<p>The divergence is 0 at every epsilon.</p>"
    top, bottom = math.ceil(math.log10(max(positive))), math.floor(math.log10(min(positive)))
    bottom = min(bottom, top - 1)

    def x_of(epsilon: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * epsilon / grid[-1]

    def y_of(delta: float) -> float:
        share = (math.log10(delta) - bottom) / (top - bottom) if delta > 0 else 0.0
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    parts = []
    for decade in range(bottom, top + 1, max(1, (top - bottom) // 6)):
        y = y_of(10.0**decade) if decade > -308 else _HEIGHT - _BOTTOM
        parts += [_line(_LEFT, y, _WIDTH - _RIGHT, y), _text(_LEFT - 8, y + 4, f"1e{decade}", "end")]
    for step in range(6):
        epsilon = grid[-1] * step / 5
        parts.append(_text(x_of(epsilon), _HEIGHT - _BOTTOM + 18, f"{epsilon:.3g}"))
    points = [f"{x_of(e):.1f},{y_of(d):.1f}" for e, d in zip(grid, curve, strict=True) if d > 0]
    parts.append(f"<polyline points='{' '.join(points)}' fill='none' stroke='var(--curve)' stroke-width='2'/>")
    claim = _claimed(report)
    if claim <= grid[-1]:
        x, y = x_of(claim), y_of(float(report.delta))
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='var(--claim)'/>")
        side = ("start", 9) if x < _WIDTH / 2 else ("end", -9)
        parts.append(_text(x + side[1], y - 8, "claimed" + (" (delta = 0)" if report.delta == 0 else ""), side[0]))
    parts.append(_text(_WIDTH / 2, _HEIGHT - 10, "epsilon"))
    parts.append(f"<g transform='translate(16 {_HEIGHT / 2:.0f}) rotate(-90)'>{_text(0, 0, 'worst delta')}</g>")
    label = html.escape(
        f"Worst delta against epsilon; claimed epsilon {level_text(report.epsilon_level)}, "
        f"delta {number_text(report.delta)}"
    )
    return f"<svg role='img' aria-label='{label}' viewBox='0 0 {_WIDTH} {_HEIGHT}'>{''.join(parts)}</svg>"


def _claimed(report: AuditReport) -> float:
    try:
        return float(report.epsilon_level)
    except OverflowError:
        return math.inf


def _section(report: AuditReport) -> str:
    word, sentence = verdict(report)
    try:
        plot = _plot(report)
    except ValueError as error:  # a sampled certificate does not hold every pmf
        plot = f"<p>{html.escape(str(error))}</p>"
    how = (
        "holds every output distribution as exact fractions, so that all pairs can be decided again"
        if report.verification == "complete"
        else "holds a sample of the pairs, drawn by hashing from its own digests. It shows what it shows on them, and "
        "cannot establish that the claim holds. The drawn pairs can be decided again"
    )
    return f"""<section>
<h2>{html.escape(printable(report.mechanism))}</h2>
<p class="banner {word.lower()}"><strong>{word}</strong><br>{html.escape(sentence)}</p>
<h3>Question and result</h3>
{_table(facts(report))}
<h3>Witness</h3>
{_table(witness_facts(report))}
<h3>Privacy profile</h3>
{plot}
<h3>Verification</h3>
<p>The certificate written by <code>to_json()</code> {how}, in pure Python:
<code>AuditReport.from_json(text).verify()</code>. Without the mechanism this shows only that the numbers are
consistent; <code>verify(mechanism)</code> computes the distributions again.</p>
</section>"""


def render_html(reports: Sequence[AuditReport], title: str, introduction: str = "") -> str:
    """Render several reports as one self-contained page.

    Parameters
    ----------
    reports : sequence of AuditReport
    title : str
    introduction : str
        A paragraph of plain text under the title.

    Returns
    -------
    str
        HTML.
    """
    title, introduction = printable(title), printable(introduction)
    opening = f"<p>{html.escape(introduction)}</p>" if introduction else ""
    sections = "\n".join(_section(report) for report in reports)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
{opening}
{sections}
<footer><p>This page shows data that was audited. It is a diagnostic, not a private release.</p></footer>
</body>
</html>
"""
