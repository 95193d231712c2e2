"""A small part of evidence/compositions.py: random compositions beside truths that do not come from the core."""

from __future__ import annotations

import json
import math
import random
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import compositions
from compositions import Lattice, Transformed, decided, enumerated, of_certificates, of_lattices, of_pairs, random_pair
from userdp.accounting import composition


def test_lattices() -> None:
    found = of_lattices(random.Random("a slice"), 40)
    assert (found["cases"], found["violations"]) == (40, 0)
    assert found["widest"] < 1e-6


def test_pairs() -> None:
    found = of_pairs(random.Random("a slice of pairs"), 1)
    assert (found["cases"], found["violations"]) == (1, 0)
    assert found["widest"] <= 1e-4


def test_stronger_claims_are_rejected() -> None:
    assert of_certificates(random.Random("a slice"), 100) == {"cases": 100, "violations": 0}


def test_the_truths_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, ratio, count = [3, 1, 2], Fraction(11, 10), 60
    offset = sum(Fraction(weight) / ratio**place for place, weight in enumerate(weights)) / sum(weights)
    q = [float(Fraction(weight) / (offset * ratio**place) / 6) for place, weight in enumerate(weights)]
    lattice = Lattice(weights, offset, ratio, count)
    for level in (Fraction(2), Fraction(7)):
        one_by_one = enumerated([(np.array(weights) / 6, np.array(q), count)], math.log(level))
        assert one_by_one == pytest.approx(float(lattice.delta(level)), rel=1e-11)
    responses = Lattice([1, 3], Fraction(1, 3), Fraction(9), 5)
    assert responses.delta(Fraction(9)) == composition.optimal_delta("ln(3)", 5, "ln(9)")
    crossing = lattice.crossing(Fraction(1, 1000))
    assert crossing is not None
    assert lattice.delta(crossing) == Fraction(1, 1000)
    # The evidence enumerates so few outcomes, as their transform may come back far out; here both ways are compared.
    monkeypatch.setattr(compositions, "FEWEST", 8)
    monkeypatch.setattr(compositions, "QUIET", 1)
    p, other = random_pair(np.random.default_rng(0), 8, 0.3)
    for epsilon in (0.1, 1.0):
        parts = [(p, other, 12)]
        found = Transformed(parts).deltas([epsilon, epsilon + 1e-4])
        expected = [enumerated(parts, near) for near in (epsilon, epsilon + 1e-4)]
        assert found == pytest.approx(expected, rel=1e-9)
    # Outcomes in order, and how often each comes.
    in_order = enumerated([(p, other, 3)], 0.2)
    monkeypatch.setattr(compositions, "MOST_TUPLES", 0)
    assert enumerated([(p, other, 3)], 0.2) == pytest.approx(in_order, rel=1e-12)


def test_doubles_do_not_decide_near_the_largest_loss() -> None:
    """The largest loss of six releases is 6 ln 2; a little below it the delta is 2^-6 (1 - e^-x)."""
    parts = [(np.array([0.5, 0.5]), np.array([0.25, 0.75]), 6)]
    epsilon = math.nextafter(6 * math.log(2), 0)
    exact = decided(parts, epsilon)
    assert exact is not None
    with localcontext(Context(prec=60)):
        truth = Decimal("0.5") ** 6 * (1 - (Decimal(epsilon) - 6 * Decimal(2).ln()).exp())
    assert exact > 0
    assert abs(exact / truth - 1) < Decimal("1e-30")
    in_doubles = enumerated(parts, epsilon)
    assert in_doubles is not None
    assert abs(Decimal(in_doubles) / truth - 1) > Decimal("1e-3")
    assert decided([*parts, *parts], 0.1) is None


def test_chunks_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, runs = tmp_path / "results", []

    def run(rng: random.Random, cases: int) -> dict[str, int]:
        runs.append(rng.random())
        return {"cases": cases, "violations": 0}

    monkeypatch.setitem(compositions.PARTS, "pairs", (run, 10))
    for cases in (15, 25):
        monkeypatch.setattr(sys, "argv", ["", "pairs", "--cases", str(cases), "--results", str(results)])
        with pytest.raises(SystemExit) as ended:
            compositions.main()
        assert not ended.value.code
    assert len(set(runs)) == len(runs) == 3
    assert sum(json.loads(line)["cases"] for line in results.read_text().splitlines()) == 30
    assert capsys.readouterr().out.splitlines()[-1] == "pairs cases: 30 violations: 0"
