"""The study of other libraries: its one-liners against counts, and its page against the form that the script writes."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
GRID = 2**53
OPEN = {f"opendp#{number}" for number in (2936, 2938, 2939, 2940, 2944, 2945, 2949)}


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benches" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    cases = loaded("audit_others_cases")
    found = loaded("audit_others")
    found.cases = cases
    yield found
    for name in ("audit_others", "audit_others_cases"):
        sys.modules.pop(name)


@pytest.fixture(scope="module")
def kept(script: Any) -> dict[str, Any]:
    """What is kept of all one-liners but one, which takes a second."""
    cases = [case for case in script.cases.CASES["NumPy"]() if "geometric(0.1)" not in case.what]
    assert len(cases) == 15
    return {case.what: script.audit(case, "NumPy 0") for case in cases}


def one(script: Any, kept: dict[str, Any], words: str) -> Any:
    (name,) = (name for name in kept if words in name)
    return script.read(kept[name])


@pytest.mark.parametrize(
    ("words", "holds", "change"),
    [
        ("rows counted for users", False, 2),
        ("users counted", True, 1),
        ("np.clip(x, 0, 1).sum()", False, math.inf),
        ("np.nan_to_num", True, 1),
        ("each record clipped: np", False, 2),
        ("each user clipped", True, 1),
        ("today's number", False, 1),
        ("divided by a public 3", True, Fraction(1, 3)),
    ],
)
def test_statistics_before_noise(script: Any, kept: dict[str, Any], words: str, holds: bool, change: Any) -> None:
    names = [name for name in kept if words in name and "canary" not in name]
    if words == "np.clip(x, 0, 1).sum()":
        names = [name for name in names if name == words]
    (name,) = names
    found = script.read(kept[name])
    assert found.holds is holds
    assert abs(found.report.worst.l1 - change) <= Fraction(1, 2**50) if change != math.inf else True
    assert (found.report.worst.l1 == math.inf) is (change == math.inf)
    assert not found.problem


@pytest.mark.parametrize("gap", [36, 72])
def test_laws_of_choice(script: Any, kept: dict[str, Any], gap: int) -> None:
    """A multiple u of 2^-53 falls to the first candidate whose cumulative sum is above it."""
    found = one(script, kept, f"behind by {gap} or")
    for value in (0, 1):
        weights = np.exp(np.array([0.0, value - gap, 0.0, 0.0]) / 2)
        sums = np.cumsum(weights / weights.sum())
        ends = [0, *(math.ceil(Fraction(float(edge)) * GRID) for edge in sums / sums[-1])]
        counts = {place: high - low for place, (low, high) in enumerate(itertools.pairwise(ends)) if high > low}
        assert {output: mass * GRID for output, mass in found.report.law([(value,)])} == counts
    assert found.holds is (gap == 36)
    assert ("least ε ∞" in script.cells(found)["found"]) is (gap == 72)


def test_randomized_response(script: Any, kept: dict[str, Any]) -> None:
    """Whether the multiples of 2^-53 below the float keep the ratio; four integers do."""
    found = one(script, kept, "e / (1 + e)")
    honest = math.ceil(Fraction(math.e / (1 + math.e)) * GRID)
    assert dict(found.report.law([(1,)]))[1] == Fraction(honest, GRID)
    # 80 digits of e are more than enough to compare with.
    e = sum(Fraction(1, math.factorial(k)) for k in range(60))
    assert found.holds is (Fraction(honest, GRID - honest) <= e)
    assert found.holds is False
    assert script.cells(found)["size"] == "numerical"
    assert one(script, kept, "integers(4)").holds is True


def test_what_draws_and_guesses_show(script: Any, kept: dict[str, Any]) -> None:
    for words, holds in (
        ("rng.laplace", False),
        ("each record clipped: 128", False),
        ("each user clipped: 128", None),
    ):
        found = one(script, kept, words)
        assert found.holds is holds
        assert (
            ("practical" in script.found_line(found)) is True
            if holds is False
            else "no violation" in (script.quiet_line(found))
        )


def test_a_row_is_made_of_what_is_kept(script: Any, kept: dict[str, Any]) -> None:
    """Through the text of a file; and a report that was changed is refused."""
    for content in kept.values():
        again = json.loads(json.dumps(content, allow_nan=False))
        assert script.tables([script.read(again)], {}) == script.tables([script.read(content)], {})
    (name,) = (name for name in kept if "e / (1 + e)" in name)
    forged = json.loads(json.dumps(kept[name]))
    forged["report"]["holds"] = True
    with pytest.raises(ValueError, match="the report is wrong"):
        script.read(forged)


def test_claims_of_accountants_are_kept(script: Any) -> None:
    """Randomized response of 0.1, a thousand times: the least epsilon at 1e-14 is 28.4475 in sixty digits."""
    from userdp.accounting import PrivacyLossDistribution, check_claims

    whole = PrivacyLossDistribution.pure("0.1").self_compose(1000)
    case = script.cases.Case("dp_accounting", "given", lambda: check_claims(whole, [("28.2003", "1e-14")])[0])
    found = script.read(json.loads(json.dumps(script.audit(case, "none"))))
    assert found.holds is False
    at = script.cells(found)
    assert at["claim"] == "ε = 28.2003 at δ = 1e-14"
    assert at["found"].startswith("least ε 28.4475")
    assert at["size"] == "numerical"


def test_what_is_not_installed_or_stops_is_a_row(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(script.cases.MODULES, "OpenDP", "no_such_library")
    script.run_library("OpenDP", tmp_path)
    (written,) = tmp_path.iterdir()
    assert written.name == "OpenDP.missing"

    def stops() -> Any:
        raise RuntimeError("a | b")

    stopped = script.read(script.audit(script.cases.Case("NumPy", "stops", stops), "NumPy 0"))
    text = script.tables([stopped], {"OpenDP": written.read_text()})
    assert text.startswith("0 audits: 0 claims are not kept, 0 raised no alarm.")
    assert "| OpenDP | all | not installed: No module named 'no_such_library' |" in text
    assert "| NumPy 0 | stops | RuntimeError: a \\| b |" in text


# --- the page


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")]


def test_the_page_is_as_the_script_writes_it(script: Any) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    text = page[page.index(script.BEGIN) + len(script.BEGIN) : page.index(script.END)].strip()
    summary, _, rest = text.partition("\n\n### Claims that are not kept\n\n")
    broken, _, rest = rest.partition("\n\n### No alarm\n\n")
    quiet = rest.partition("\n\n### Not run\n\n")[0]
    tables: list[list[list[str]]] = []
    for block, head in ((broken, script.FOUND_HEAD), (quiet, script.QUIET_HEAD)):
        lines = block.splitlines()
        assert tuple(lines[:2]) == head
        tables.append([cells_of(line) for line in lines[2:]])
        assert all(len(row) == len(cells_of(head[0])) for row in tables[-1])
    found, calm = tables
    assert summary == (
        f"{len(found) + len(calm)} audits: {len(found)} claims are not kept, {len(calm)} raised no alarm."
    )
    assert {row[6] for row in found} == {"practical", "numerical"}
    assert {row[5] for row in found} == {"sensitivity", "law", "law, monotone", "samples", "one-run", "accountant"}
    assert {row[8] for row in found} >= OPEN
    plans = [row for row in calm if "Polars" in row[0] and row[6] == "sensitivity" and "transformation" not in row[1]]
    assert len(plans) >= 12
    assert all(row[4] == "holds on all of them" for row in plans)
    for library in ("OpenDP 0.16.0", "diffprivlib 0.6.6", "dp_accounting 0.6.0", "PipelineDP", "NumPy"):
        assert any(row[0].startswith(library) for row in calm)
        assert any(row[0].startswith(library) for row in found)
