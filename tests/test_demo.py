"""The demonstration: expected verdicts on the wage panel, checked again in pure Python; and the README's examples."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from oracle import divergence as oracle
from userdp.cli import main
from userdp.datasets import load_wage_panel
from userdp.demo import BANDS, BASE, COUNT, FARTHEST, VOTE, person_year_count, run_demo, union_vote
from userdp.report import AuditReport

F = Fraction
ROOT = Path(__file__).parent.parent


def band_pmf(total: int, largest: int) -> list[F]:
    """The mechanism by its definition: weight (5/8)^distance, distances capped."""
    weights = []
    for low in range(0, 100, 5):
        inside = [
            t for t in range(largest + 1) if 100 * t >= low * largest and (100 * t < (low + 5) * largest or low == 95)
        ]
        distance = min(min(abs(total - t) for t in inside), FARTHEST)
        weights.append(1 / BASE**distance)
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("total", [0, 1, 26, 27, 28, 130, 272, 518, 544, 545])
def test_the_release_is_the_exponential_mechanism(total: int) -> None:
    users = ((1,) * 8,) * total + ((0,) * 8,) * (545 - total)
    assert union_vote(8).pmf(users).fractions() == band_pmf(total, 545)
    assert person_year_count(8).pmf(users).fractions() == band_pmf(8 * total, 8 * 545)


def test_expected_verdicts_and_witness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["demo", "--output", str(tmp_path / "r.html"), "--certificates", str(tmp_path / "c"), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert result["as_expected"] is True
    assert [audit["report"]["result"]["holds"] for audit in result["audits"]] == [True, True, False]
    names = ("r-vote.json", "r.json", "r-count.json")
    assert {path.name for path in (tmp_path / "c").iterdir()} == set(names)
    reports = [AuditReport.from_json((tmp_path / "c" / name).read_text()) for name in names]
    for name in names:
        assert f"userdp verify {name} --mechanism userdp.demo:" in (tmp_path / "r.html").read_text()
    assert reports[1].verify(VOTE).finding == "established"
    assert reports[2].verify(COUNT).refuted
    for report in reports:
        verification = report.verify()
        assert verification.finding == "consistent", verification.problems
        print(report.mechanism, report.worst_delta)
    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg") == 3
    refuted = reports[2]
    x, x2, event = refuted.witness
    users = load_wage_panel().users("union")
    assert users in (x, x2)
    assert sum(a != b for a, b in zip(x, x2, strict=True)) == 1
    # The witness by the mechanism's definition, against e^1 + 10^-6.
    totals = [sum(map(sum, dataset)) for dataset in (x, x2)]
    p, q = (band_pmf(total, 8 * 545) for total in totals)
    inside = [BANDS.index(band) for band in event]
    low, high = oracle.exp_bounds(F(1))
    assert sum(p[o] for o in inside) - high * sum(q[o] for o in inside) > F(1, 10**6)
    worst = oracle.hockey_stick(p, q, low)
    assert F(refuted.worst_delta.lower) <= worst


def test_the_vote_keeps_its_proved_epsilon_everywhere() -> None:
    vote = run_demo(load_wage_panel().users("union"))[1].report
    print(f"worst delta {vote.worst_delta}, exact epsilon at delta {vote.epsilon}")
    assert vote.datasets == 546
    assert F(vote.profile([0])[0]) > 0
    for i, j in vote.pmf_pairs:
        ratios = [a / b for a, b in zip(vote.pmfs[i], vote.pmfs[j], strict=True)]
        assert 1 / BASE**2 <= min(ratios) <= max(ratios) <= BASE**2


def test_bad_users_are_refused() -> None:
    for users in ((), ((0, 1), (1,)), ((0, 2),)):
        with pytest.raises(ValueError, match="users"):
            run_demo(users)


@pytest.mark.parametrize(("page", "blocks"), [("README.md", 3), ("docs/guide.md", 8)])
def test_the_examples_of_the_pages_run(page: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(found) == blocks
    names: dict[str, object] = {}  # a block may go on from those before
    for block in found:
        exec(compile(block, page, "exec"), names)


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) < 1200
    assert "make demo" in text
    assert "make test" in text


def test_links_of_the_readme_are_absolute_and_lead_to_files() -> None:
    # The page is also shown by package indexes, where relative links lead nowhere.
    targets = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())
    assert targets
    for target in targets:
        assert target.startswith("https://"), target
        inside = re.fullmatch(
            r"https://(?:github|raw\.githubusercontent)\.com/userdp/userdp/(?:blob/)?main/([^#]+)", target
        )
        assert inside is None or (ROOT / inside[1]).exists(), target
