"""What audits find in other libraries and in one-liners, as markdown made of the audits' reports.

    python benches/audit_others.py [--modules LIBRARY=FOLDER[:FOLDER]] [--only LIBRARY] [--reports FOLDER] [--write]
    python benches/audit_others.py --reports FOLDER --again [--write]

Every library is run in a process of its own: --modules names folders that are put in front of its module path, for
libraries that want other versions of Polars or scikit-learn. What is not installed gets a row that says so. --reports
keeps the reports, one file for each audit, and --again makes the page of kept ones, where nothing is audited again.
--write puts the tables into docs/other_libraries.md.

The cases are in audit_others_cases.py. Whether a row is a finding is decided by its report and by nothing else.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from userdp import Bounds
from userdp.accounting.peer_accountants import ClaimCheck
from userdp.exact.epsilon import upper
from userdp.report import Report

HERE = Path(__file__).resolve()
PAGE = HERE.parents[1] / "docs" / "other_libraries.md"
BEGIN, END = "<!-- tables: begin. Written by benches/audit_others.py -->\n", "<!-- tables: end -->\n"
FOUND_HEAD = (
    "| library | audited | its claim | found | shown by | way | size | seconds | issue |",
    "|---|---|---|---|---|---|---|--:|---|",
)
QUIET_HEAD = (
    "| library | audited | its claim | found | verdict | looked at | way | seconds |",
    "|---|---|---|---|---|---|---|--:|",
)
PRACTICAL = 1e-9
"""From which delta on, or which share of a sensitivity, a violation is called practical: as in reports of laws."""
GRID = 2**53
NAMES = {"l0": "L0", "l1": "L1", "l2_squared": "L2²", "linf": "L∞"}
SHOWN = 60
"""Characters of a value in a table."""


@dataclass(frozen=True)
class Found:
    """One audit: what the case says about itself, and what came out."""

    library: str
    what: str
    issue: str
    version: str
    seconds: float
    report: Any = field(repr=False)
    problem: str = ""

    @property
    def holds(self) -> bool | None:
        return None if self.report is None else self.report.holds


# --- what a report says, in cells


def number(value: Any) -> str:
    """Up to twelve digits, or what a number exceeds a simpler one by."""
    if value == math.inf:
        return "∞"
    exact = Fraction(value)
    if exact.denominator == 1:
        return f"{exact.numerator:,}"
    near = round(exact)
    if near and 0 < abs(exact - near) < Fraction(1, 10**5):
        sign = "+" if exact > near else "-"
        return f"{near:,} {sign} {float(abs(exact - near)):.1e}"
    return f"{float(exact):.6g}"


def beside(value: float, claimed: Any) -> str:
    """A number, or by how much it is above the claim where that is little."""
    above = float(Fraction(value) - Fraction(claimed))
    if 0 < above < 1e-5 * abs(value):
        return f"{float(claimed):.8g} + {above:.1g}"
    return f"{value:.8g}" if value > 1 else f"{value:.3g}"


def power(value: float) -> str:
    """A small probability."""
    if not value:
        return "0"
    return f"{value:.4g}" if value >= 1e-6 else f"2^{math.log2(value):.1f}"


def cell(text: str) -> str:
    """Text in a table, whatever it holds."""
    return " ".join(str(text).split()).replace("|", "\\|")


def value_text(value: Any) -> str:
    text = "NaN" if isinstance(value, float) and math.isnan(value) else "null" if value is None else repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def table_text(rows: Sequence[Sequence[Any]]) -> str:
    """The rows of a small table: single cells as they are."""
    shown = [value_text(row[0]) if len(row) == 1 else "(" + ", ".join(map(value_text, row)) + ")" for row in rows]
    return "{" + ", ".join(shown) + "}"


def cells(found: Found) -> dict[str, str]:
    """What a report claims, what it found, by what, how large that is, and what was looked at."""
    report = found.report
    if isinstance(report, ClaimCheck):
        return _of_accountant(report)
    return {"sensitivity": _of_sensitivity, "law": _of_law, "guesses": _of_guesses}[report.KIND](report)


def _of_sensitivity(report: Any) -> dict[str, str]:
    claims = [(norm, one) for norm, one in zip(NAMES, report.claim, strict=True) if one is not None]
    worst = {norm: getattr(report.worst, norm) for norm, _ in claims}
    excess = max((one_excess(worst[norm], one) for norm, one in claims), default=0.0)
    witness = ""
    if report.witness is not None:
        witness = f"{table_text(report.witness.first)} / {table_text(report.witness.second)}"
    looked = f"{report.tables:,} of {report.all_tables:,} tables, {report.pairs:,} pairs"
    return {
        "claim": ", ".join(f"{NAMES[norm]} ≤ {number(one)}" for norm, one in claims) + f", {report.neighbors}",
        "found": ", ".join(f"{NAMES[norm]} = {number(worst[norm])}" for norm, _ in claims),
        "witness": witness,
        "way": "sensitivity",
        "size": "practical" if excess >= PRACTICAL else "numerical",
        "verdict": "holds on all of them" if report.holds else "no violation shown",
        "looked": looked,
    }


def one_excess(worst: Any, claimed: Fraction) -> float:
    """By what share of a claim it is exceeded."""
    if worst == math.inf:
        return math.inf
    if not claimed:
        return math.inf if worst else 0.0
    return float(Fraction(worst) / claimed - 1)


def _of_law(report: Any) -> dict[str, str]:
    low, high = report.worst_delta.lower, report.worst_delta.upper
    bounds = f"δ = {power(low)}" if high <= low * 1.001 else f"δ from {power(low)} to {power(high)}"
    least, witness = least_epsilon(report), ""
    if report.witness is not None:
        first, second = (report.laws[report.law_of[rank]] for rank in report.witness.ranks)
        event = report.witness.event
        masses = [sum((law[place] for place in event), Fraction(0)) for law in (first, second)]
        named = f"output {value_text(report.outputs[event[0]])}" if len(event) == 1 else f"{len(event)} outputs"
        witness = f"{named}: {mass_text(masses[0])} / {mass_text(masses[1])}"
    return {
        "claim": f"ε = {number(float(report.epsilon))}, δ = {power(float(report.delta))}, {report.neighbors}",
        "found": f"{bounds} there" + (f"; least ε {least}" if least else ""),
        "witness": witness,
        "way": "law, monotone" if report.monotone else "law",
        "size": str(report.severity),
        "verdict": "holds" if report.holds else f"undecided: {power(float(report.unexplored))} of a law is unexplored",
        "looked": f"{report.runs:,} runs, {len(report.outputs):,} outputs",
    }


def least_epsilon(report: Any) -> str:
    """The pure epsilon of laws that are known in full, over all their pairs."""
    if report.unexplored:
        return ""
    ratio = Fraction(1)
    for first in report.laws:
        for second in report.laws:
            for mass, other in zip(first[:-1], second[:-1], strict=True):
                if mass and not other:
                    return "∞"
                if mass:
                    ratio = max(ratio, mass / other)
    claimed = float(report.epsilon)
    # About the difference of logarithms, where floats would not show it.
    above = float(ratio / upper(report.epsilon) - 1)
    return f"{claimed:g} + {above:.1g}" if 0 < above < 1e-6 else f"{math.log(ratio):.6g}"


def mass_text(mass: Fraction) -> str:
    whole = mass * GRID
    return f"{whole.numerator:,} of 2^53" if whole.denominator == 1 and mass.denominator > 1000 else number(mass)


def _of_guesses(report: Any) -> dict[str, str]:
    verdict, estimate = report.verdict, report.estimate
    shown = [(float(part.epsilon), float(part.alpha)) for part in (estimate, verdict)]
    bounds = ", ".join(f"ε > {epsilon:.3f} (error {alpha:g})" for epsilon, alpha in shown if epsilon)
    counts = f"{estimate.right:,} guesses right, {estimate.wrong:,} wrong"
    number_of = estimate.right + estimate.wrong + estimate.none
    return {
        "claim": f"ε = {number(float(report.epsilon_level))}, δ = {power(float(report.delta))}, {report.neighbors}",
        "found": bounds or "no bound of ε above 0",
        "witness": f"{report.about}: {counts}" if report.access == "samples" else counts,
        "way": report.access,
        "size": "practical",
        "verdict": "no violation shown",
        "looked": f"{report.canaries:,} canary users" if report.canaries else f"{number_of:,} draws",
    }


def _of_accountant(check: ClaimCheck) -> dict[str, str]:
    least, there = check.least_epsilon, check.delta_there
    return {
        "claim": f"ε = {float(check.epsilon):.8g} at δ = {float(check.delta):.3g}",
        "found": f"least ε {beside(least.lower, check.epsilon)}; δ at its ε {beside(there.lower, check.delta)}",
        "witness": "exact composition",
        "way": "accountant",
        "size": "practical" if there.lower - float(check.delta) >= PRACTICAL else "numerical",
        "verdict": "holds",
        "looked": f"least ε {least.lower:.8g} to {least.upper:.8g}",
    }


# --- tables


def tables(found: Sequence[Found], missing: Mapping[str, str]) -> str:
    """The page's tables: what is not kept, what raised no alarm, and what was not run."""
    audited = [one for one in found if one.report is not None]
    broken = [one for one in audited if one.holds is False]
    quiet = [one for one in audited if one.holds is not False]
    lines = [
        f"{len(audited)} audits: {len(broken)} claims are not kept, {len(quiet)} raised no alarm.",
        "",
        "### Claims that are not kept",
        "",
        *FOUND_HEAD,
        *(found_line(one) for one in broken),
        "",
        "### No alarm",
        "",
        *QUIET_HEAD,
        *(quiet_line(one) for one in quiet),
    ]
    unrun = [(name, "", reason) for name, reason in sorted(missing.items())]
    unrun += [(one.version, one.what, one.problem) for one in found if one.report is None]
    if unrun:
        lines += ["", "### Not run", "", "| library | audit | why |", "|---|---|---|"]
        lines += [f"| {cell(library)} | {cell(what) or 'all'} | {cell(reason)} |" for library, what, reason in unrun]
    return "\n".join(lines) + "\n"


def found_line(one: Found) -> str:
    at = cells(one)
    row = (
        one.version, one.what, at["claim"], at["found"], at["witness"], at["way"], at["size"],
        f"{one.seconds:.2g}", one.issue or "–",
    )  # fmt: skip
    return "| " + " | ".join(map(cell, row)) + " |"


def quiet_line(one: Found) -> str:
    at = cells(one)
    what = f"{one.what} ({one.issue})" if one.issue else one.what
    row = (
        one.version, what, at["claim"], at["found"], at["verdict"], at["looked"], at["way"], f"{one.seconds:.2g}"
    )  # fmt: skip
    return "| " + " | ".join(map(cell, row)) + " |"


# --- audits, and what is kept of them


def audit(case: Any, version: str) -> dict[str, Any]:
    """Run one case; what stops it is a row, too."""
    start = time.perf_counter()
    kept: dict[str, Any] = {"library": case.library, "what": case.what, "issue": case.issue, "version": version}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = case.run()
    except Exception as error:
        return kept | {"seconds": time.perf_counter() - start, "problem": f"{type(error).__name__}: {error}"[:300]}
    kept["seconds"] = time.perf_counter() - start
    if isinstance(report, ClaimCheck):
        return kept | {"claim": claim_code(report)}
    return kept | {"report": json.loads(report.to_json())}


def claim_code(check: ClaimCheck) -> dict[str, Any]:
    return {
        "epsilon": str(Fraction(check.epsilon)),  # type: ignore[arg-type]
        "delta": str(check.delta),
        "holds": check.holds,
        "least_epsilon": [check.least_epsilon.lower, check.least_epsilon.upper],
        "delta_there": [check.delta_there.lower, check.delta_there.upper],
    }


def read(kept: Mapping[str, Any]) -> Found:
    """An audit that was kept; its report is checked again without what it is about."""
    report: Any = None
    if "claim" in kept:
        code = kept["claim"]
        report = ClaimCheck(
            Fraction(code["epsilon"]), Fraction(code["delta"]), code["holds"],
            Bounds(*code["least_epsilon"]), Bounds(*code["delta_there"]),
        )  # fmt: skip
    elif "report" in kept:
        report = Report.from_json(json.dumps(kept["report"]))
        checked = report.verify()
        if checked.finding == "wrong":
            raise ValueError(f"{kept['library']}, {kept['what']}: the report is wrong: {checked}")
    return Found(
        kept["library"], kept["what"], kept["issue"], kept["version"], kept["seconds"], report, kept.get("problem", "")
    )


def run_library(library: str, folder: Path) -> None:
    """All cases of a library, in this process, each into a file."""
    cases = importlib.import_module("audit_others_cases")
    try:
        version = cases.version_of(library)
    except ImportError as error:
        (folder / f"{library}.missing").write_text(f"not installed: {error}", encoding="utf-8")
        return
    for place, case in enumerate(cases.CASES[library]()):
        kept = audit(case, version)
        name = "".join(letter if letter.isalnum() else "-" for letter in case.what)[:60]
        path = folder / f"{library}-{place:02}-{name}.json"
        path.write_text(json.dumps(kept, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        print(f"{library}: {case.what}: {round(kept['seconds'], 2)} s {kept.get('problem', '')}", flush=True)


def run_all(libraries: Sequence[str], modules: Mapping[str, str], folder: Path) -> None:
    """Each library in a process of its own, with its own module path."""
    for library in libraries:
        for old in [*folder.glob(f"{library}-*.json"), *folder.glob(f"{library}.missing")]:
            old.unlink()
        paths = [*modules.get(library, "").split(os.pathsep), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, str(HERE), "--inside", library, "--reports", str(folder)]
        ended = subprocess.run(command, env=environment, check=False)
        if ended.returncode:
            (folder / f"{library}.missing").write_text(f"its process ended with {ended.returncode}", encoding="utf-8")


def kept_in(folder: Path, libraries: Sequence[str]) -> Iterator[Found]:
    for library in libraries:
        for path in sorted(folder.glob(f"{library}-*.json")):
            yield read(json.loads(path.read_text(encoding="utf-8")))


def main() -> None:
    """Run the audits, or read kept ones, and print the tables."""
    libraries = ["OpenDP", "diffprivlib", "dp_accounting", "PipelineDP", "NumPy"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="append", default=[], metavar="LIBRARY=FOLDER[:FOLDER]")
    parser.add_argument("--only", action="append", choices=libraries, help="run these, and read what is kept of others")
    parser.add_argument("--reports", type=Path, help="where reports are kept")
    parser.add_argument("--again", action="store_true", help="audit nothing: make the tables of what is kept")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    parser.add_argument("--inside", choices=libraries, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_library(options.inside, options.reports)
        return
    if (options.again or (options.only and options.write)) and options.reports is None:
        parser.error("--again, and --only with --write, take the other rows from kept reports: name them by --reports")
    modules = dict(one.split("=", 1) for one in options.modules if "=" in one)
    if len(modules) < len(options.modules) or not set(modules) <= set(libraries):
        parser.error(f"--modules takes LIBRARY=FOLDER, once for each library of {', '.join(libraries)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.reports or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not options.again:
            run_all(options.only or libraries, modules, folder)
        found = list(kept_in(folder, libraries))
        missing = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.missing")}
        text = tables(found, missing)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:before] + "\n" + text + "\n" + page[after:], encoding="utf-8")


if __name__ == "__main__":
    main()
