"""The examples run, and what they print is true."""

from __future__ import annotations

import importlib.util
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from userdp.datasets import load_wage_panel

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_panel = pytest.mark.skipif(importlib.util.find_spec("linearmodels") is None, reason="needs the wage panel")


def smallest_stable(members: int, others: int, deletions: int) -> int:
    """r* of the majority by its definition: on every way to go on from S, the kept users answer the same."""
    kept = members + others - deletions

    def stable(m: int, o: int) -> bool:
        answers = {2 * total > kept for total in range(max(0, kept - o), min(m, kept) + 1)}
        return len(answers) == 1

    return min(
        size
        for size in range(deletions + 1)
        for gone in range(max(0, size - others), min(size, members) + 1)
        if stable(members - gone, others - size + gone)
    )


@needs_panel
def test_private_vote(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "private_vote.py"), run_name="__main__")
    out = capsys.readouterr().out
    people = load_wage_panel().users("union")
    members = sum(1 in person for person in people)
    assert f"{members} of {len(people)} men" in out
    table = re.findall(r"^ +([\d,]+)  (\w+) +(\d+) +(\d+)  (\S+)$", out, re.MULTILINE)
    assert len(table) == 15
    for crowd, calibration, deletions, smallest, refusal in table:
        copies = int(crowd.replace(",", "")) // len(people)
        assert int(deletions) == {"optimal": 68, "tight": 160, "paper": 192}[calibration]
        expected = smallest_stable(copies * members, copies * (len(people) - members), int(deletions))
        assert int(smallest) == expected
        assert (float(refusal) == 0) == (expected == 0)
        # The refusal's distribution is symmetric around a quarter of the deletions.
        assert (float(refusal) > 0.5) == (4 * expected > int(deletions))
    # One refusal in 4,446 draws is no refusal: the line for the panel itself is not asserted.
    assert "Release for 2,725 users: yes" in out
    assert "Its distribution there: no 0, yes 1, BOTTOM 0" in out
    assert "the bare majority: violated, worst delta 1\n" in out
    assert "DelStab of it: holds" in out


@needs_panel
def test_union_membership(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    runpy.run_path(str(EXAMPLES / "union_membership.py"), run_name="__main__")
    out = capsys.readouterr().out
    rows = re.findall(r"^(\w[\w ]+\w) +([14]) +(\d\.\d+) (\d\.\d+) (\d\.\d+) +(\d\.\d+)$", out, re.MULTILINE)
    assert len(rows) == 12
    panel = load_wage_panel()
    for name, column, domain in (("experience", "exper", 49), ("schooling", "educ", 24)):
        best = {}
        for question, answers in (("union", panel.column("union")), ("wage", panel.column("lwage") > np.log(5))):
            x, y = panel.column(column), answers.astype(bool)
            mistakes = {cut: int(((x[::2] > cut) != y[::2]).sum()) for cut in range(domain + 1)}
            # Of equally good cuts the example takes the largest.
            cut = max(mistakes, key=lambda u: (-mistakes[u], u))
            best[question] = float(((x[1::2] > cut) == y[1::2]).mean())
        printed = [float(row[5]) for row in rows if row[0] == f"threshold on {name}"]
        assert printed == [pytest.approx(best[question], abs=6e-4) for question in ("union", "union", "wage", "wage")]
    # Nothing beats the more frequent answer of the first question, and private rules are never better than it allows.
    always = [float(found) for found in re.findall(r"^always \w+: accuracy (\S+)$", out, re.MULTILINE)]
    assert always[0] == pytest.approx(1 - panel.column("union")[1::2].mean(), abs=6e-4)
    assert all(float(row[2]) <= always[0] + 6e-4 for row in rows[:6])
    assert re.search(r"if schooling > \d+ years", out)
    assert "Spent: 0.3 on choice of t, 0.7 on threshold" in out


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn")
def test_decision_lists(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "decision_lists.py"), run_name="__main__")
    out = capsys.readouterr().out
    # 21 terms, of which each is unused or joins in one of three rounds with one of two labels.
    assert f"{7.0**21:.0e} possible lists; at most {2 * (21 + 20) + 3} queries" in out
    agreed = int(re.search(r"agreed in (\d+) of 300 pairs", out)[1])  # type: ignore[index]
    assert agreed > 270
    # Whatever the seed: a wrong rule errs on 1/16 of the rows at least, and joins for a user below 1/25, which is 2.9
    # standard deviations away. So fewer than 78 of 100 have the common list with probability below 1e-9 at most, and
    # others would need 24 votes for one and the same other list besides.
    assert "81 users are enough" in out
    assert "if x7: 0; else if not x2: 1; else if x5: 1; else 0" in out
    assert "right on 100.0% of fresh rows" in out
    assert "epsilon = 1.0, delta = 1e-06" in out


@needs_panel
def test_panel_wages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["panel_wages.py"])
    runpy.run_path(str(EXAMPLES / "panel_wages.py"), run_name="__main__")
    out = capsys.readouterr().out
    mean = load_wage_panel().column("lwage").mean()
    assert f"4360 log wages of 545 men; the mean of their means is {mean:.3f}" in out
    rows = re.findall(r"^([\d.]+ to \d+) +([1248]) +(\d+\.\d) +(\d+\.\d) +(\d+\.\d) +(\d\.\d+)$", out, re.MULTILINE)
    assert len(rows) == 8
    for dollars, _, group, user, predicted, _ in rows:
        low, high = map(float, dollars.split(" to "))
        # Group privacy: Laplace noise for the whole range whatever the years. The mean of 200 squares is a factor of 2
        # off with probability below 1e-6.
        assert 0.5 < float(group) / (1000 * math.sqrt(2) * math.log(high / low) / 545) < 1.6
        assert float(user) < 2 * float(predicted)
        if dollars == "0.1 to 1000":
            # It is half of it. Two means of 200 squares have a ratio of four with a probability below 1e-7.
            assert float(user) < 0.9 * float(group)
    assert "Recommended  iterated" in out
    released = re.search(r"^One release: (\d\.\d+), by the method 'practical'", out, re.MULTILINE)
    assert released
    assert float(released[1]) == pytest.approx(mean, abs=0.2)
    assert list(tmp_path.iterdir()) == []


@needs_panel
def test_union_logistic(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    example = runpy.run_path(str(EXAMPLES / "union_logistic.py"))
    example["main"].__globals__.update(REPEATS=2)
    example["main"]([])
    out = capsys.readouterr().out
    rate = float(load_wage_panel().column("union").mean())
    entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    best, constant = map(float, re.search(r"linear rule (\S+), of the best constant (\S+)\n", out).groups())  # type: ignore[union-attr]
    assert constant == pytest.approx(entropy, abs=1e-4)
    assert best < constant
    rows = re.findall(r"^ +([14]) +([18]) +(.+)$", out, re.MULTILINE)
    assert len(rows) == 4
    for _, _, cells in rows:
        losses = re.findall(r"(-?\d+\.\d) \((\d+\.\d)\)", cells)
        assert len(losses) == 5
        # Nothing beats the best linear rule on the rows that it is best for; a fit may be as good to a digit.
        assert all(float(loss) >= 0 for loss, _ in losses)
    assert "private for each man: True" in out


@needs_panel
@pytest.mark.parametrize("name", ["panel_wages", "union_logistic"])
def test_plots_are_drawn_when_asked_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib").use("agg")
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    # Few fits at the ends of the axis: what they show is tested above.
    example["plot"].__globals__.update(REPEATS=2, YEARS=(1, 8))
    example["plot"](str(tmp_path / "drawn.png"))
    assert (tmp_path / "drawn.png").stat().st_size > 10_000
