"""The examples run, and what they print is true."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

from userdp.datasets import load_wage_panel

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.skipif(importlib.util.find_spec("linearmodels") is None, reason="needs the wage panel")


def smallest_stable(members: int, others: int, deletions: int) -> int:
    """r* of the majority by its definition: on every way to go on from S, the kept people answer the same."""
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
        # The refusal's law is symmetric around a quarter of the deletions.
        assert (float(refusal) > 0.5) == (4 * expected > int(deletions))
    # One refusal in 4,446 draws is no refusal: the line for the panel itself is not asserted.
    assert "Release for 2,725 people: yes" in out
    assert "Its law there: no 0, yes 1, BOTTOM 0" in out
    assert "the bare majority: violated, worst delta 1\n" in out
    assert "DelStab of it: holds" in out
