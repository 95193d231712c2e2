"""Certificates of tables: what is accepted, and that nothing in them can be changed for a better claim."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction as F
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from userdp import LogRatio
from userdp.checker import values
from userdp.checker.certificates import Level, check_numbers, lower, read_numbers, series, upper
from userdp.delstab.delstab import calibrate
from userdp.exact.numbers import PrivacyLevel
from userdp.exceptions import BudgetError
from userdp.mechanisms import ExponentialMechanism, TruncatedDiscreteLaplace
from userdp.report import Certificate, Report

PROOFS = Path(__file__).resolve().parents[2] / "proofs"
E_DIGITS = F(271828182845904523536028747135266249775724709369995, 10**50)
"""e to 50 places, rounded down."""

MAKERS: dict[str, Callable[[], Certificate]] = {
    "optimal": lambda: calibrate("optimal", 1, "1e-6").certificate(),
    "tight": lambda: calibrate("tight", 1, "1e-6").certificate(),
    "paper": lambda: calibrate("paper", 1, "1e-6").certificate(),
    "optimal at ln(3/2)": lambda: calibrate("optimal", LogRatio(3, 2), "1e-3", ("1/20", "1/3")).certificate(),
    "noise": lambda: TruncatedDiscreteLaplace(epsilon=1, delta="1e-6").certificate(),
    "noise at ln 2": lambda: TruncatedDiscreteLaplace(
        epsilon=LogRatio(2), delta="1e-9", half_width="tight"
    ).certificate(),
    "noise at 0.1": lambda: TruncatedDiscreteLaplace(epsilon=0.1, delta="1e-3").certificate(),
    "noise at 60": lambda: TruncatedDiscreteLaplace(epsilon=60, delta="1e-20").certificate(),
    "selection": lambda: ExponentialMechanism(epsilon=1, sensitivity=1).certificate(),
    "selection of 3": lambda: ExponentialMechanism(epsilon=8, sensitivity="0.5", granularity="0.25").certificate(3),
    "pair": lambda: Certificate.of_pair(["2/3", "1/3"], ["1/3", "2/3"], epsilon=LogRatio(2), delta=0),
    "pair at 1/10": lambda: Certificate.of_pair(
        ["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], epsilon="1/10", delta="1/4"
    ),
    "certain pair": lambda: Certificate.of_pair(["1", "0"], ["0.999", "0.001"], epsilon="1e-3", delta="1e-2"),
}
MAKERS = {name: cache(make) for name, make in MAKERS.items()}


def accepts(made: Certificate) -> bool:
    content = made._content()
    try:
        check_numbers(made.subject, read_numbers(content))
    except values.Problem:
        return False
    return True


def test_partial_sums_enclose_e() -> None:
    for terms in range(2, 60):
        below, above = lower(Level(F(1), F(1)), terms), upper(Level(F(1), F(1)), terms)
        assert below <= E_DIGITS + F(1, 10**50)
        assert above >= E_DIGITS
        assert lower(Level(F(3), F(1)), terms) == 3 * below
    assert upper(Level(F(1), F(1)), 45) - lower(Level(F(1), F(1)), 45) < F(1, 10**50)
    assert series(F(1, 2), 4, F(0)) == 1 + F(1, 2) + F(1, 8) + F(1, 48)
    # With too few terms the remainder is no bound: e^8 is above 1 + 2 * 8.
    with pytest.raises(values.Problem, match="too few"):
        upper(Level(F(1), F(8)), 1)


@pytest.mark.parametrize("name", MAKERS)
def test_certificates_are_established(name: str) -> None:
    made = MAKERS[name]()
    assert made.verify().finding == "established"
    again = Report.from_json(made.to_json())
    assert again == made
    assert again.verify().finding == "established"


def test_the_claim_is_the_one_asked() -> None:
    made = MAKERS["optimal"]()
    assert (made.epsilon, made.delta) == (PrivacyLevel(F(1), F(1)), F(1, 10**6))
    assert made.parts["deletions"] == 68  # as docs/guide.md states
    text = made.to_coq()
    assert "at epsilon = 1 and delta = 1/1000000" in text
    theorem = text[text.index("Theorem") :]
    assert "is_level (certificate.Level (1%num, 1%positive) (1%num, 1%positive)) E" in theorem
    assert "users.private E (certificate.value F (1%num, 1000000%positive))" in theorem
    assert "nat_of_bin 68%num" in theorem


SHARP = (
    "optimal",
    "tight",
    "paper",
    "optimal at ln(3/2)",
    "noise",
    "noise at ln 2",
    "noise at 0.1",
    "selection",
    "pair",
)
"""Those whose epsilon is spent to the last digits."""


@pytest.mark.parametrize("name", SHARP)
def test_a_smaller_epsilon_is_refused(name: str) -> None:
    made = MAKERS[name]()
    share = 1 - F(1, 10**12)
    ratio = 1 + (made.epsilon.ratio - 1) * share
    assert not accepts(replace(made, epsilon=PrivacyLevel(ratio, made.epsilon.exponent * share)))
    assert accepts(replace(made, epsilon=PrivacyLevel(made.epsilon.ratio * 2, made.epsilon.exponent * 2)))


def test_a_smaller_delta_is_refused() -> None:
    for name in ("optimal", "tight", "optimal at ln(3/2)"):
        made = MAKERS[name]()
        assert not accepts(replace(made, delta=made.delta * (1 - F(1, 10**6)))), name
    for name in ("noise", "noise at ln 2", "noise at 0.1", "noise at 60"):
        made = MAKERS[name]()
        ends = F(made.table[0], made.total)
        assert accepts(replace(made, delta=ends))
        assert not accepts(replace(made, delta=ends - F(1, 2**128)))
    # Total variation 1/4, and (1 + 1/10) / 4 less of it: max(0, 1/2 - E / 4) = 1/2 - e^(1/10) / 4 = 0.2237...
    made = MAKERS["pair at 1/10"]()
    assert accepts(
        replace(made, delta=F(1119, 5000), total=2**64 * 4, table=(2**65, 2**64, 2**64), second=(2**64, 2**65, 2**64))
    )
    assert not accepts(
        replace(made, delta=F(1118, 5000), total=2**64 * 4, table=(2**65, 2**64, 2**64), second=(2**64, 2**65, 2**64))
    )


@pytest.mark.parametrize("name", ["optimal", "tight", "noise", "selection", "pair"])
def test_entries_cannot_be_moved(name: str) -> None:
    """One unit more or less, in any entry but those that have room, is refused; a large change always is."""
    made, source = MAKERS[name](), random.Random(5)
    for place in source.sample(range(1, len(made.table)), min(10, len(made.table) - 1)):
        for change in (made.table[place] // 2, 2 * made.table[place] + 1, 0):
            table = (*made.table[:place], change, *made.table[place + 1 :])
            assert not accepts(replace(made, table=table)), (place, change)


def test_what_is_not_indistinguishable_has_no_certificate() -> None:
    with pytest.raises(ValueError, match="not indistinguishable at epsilon='1/2'"):
        Certificate.of_pair(["2/3", "1/3"], ["1/3", "2/3"], epsilon="1/2", delta=0)
    with pytest.raises(ValueError, match="p must sum to exactly 1"):
        Certificate.of_pair([0.1] * 10, [0.1] * 10, epsilon=1, delta=0)
    with pytest.raises(ValueError, match="delta must be < 1"):
        Certificate.of_pair([1], [1], epsilon=1, delta=1)
    with pytest.raises(ValueError, match="n_candidates must be at most"):
        ExponentialMechanism(epsilon=1, sensitivity=1).certificate(2**24 + 1)


def test_a_selection_of_more_than_4096_gaps_or_monotone_is_refused() -> None:
    assert len(ExponentialMechanism(epsilon=1, sensitivity=46).certificate().table) == 4082
    with pytest.raises(BudgetError, match=r"4170 gaps have weights of their own \(limit 4096\)"):
        ExponentialMechanism(epsilon=1, sensitivity=47).certificate()
    with pytest.raises(ValueError, match="monotone"):
        ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True).certificate()


@pytest.mark.parametrize("differs", ["nothing", "a file", "a verdict", "the constructor"])
def test_verdicts_of_both_checkers_and_of_the_constructor_are_compared(
    differs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `proofs/compare_certificates.py`, with stand-ins for Coq that agree, or that do not in one verdict."""
    spec: Any = importlib.util.spec_from_file_location("compare_certificates", PROOFS / "compare_certificates.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def stand_in(asked: list[Any], size: int, folder: Path, name: str) -> list[bool]:
        right = [script.python_verdict(one) if name == "tampered" else script.of_constructor(one) for one in asked]
        wrong = name == {"a verdict": "tampered", "the constructor": "exact"}.get(differs)
        return [right[0] ^ wrong, *right[1:]]

    drawn = script.cases
    said = SimpleNamespace(returncode=int(differs == "a file"), stdout="Closed under the global context")
    monkeypatch.setattr(script, "certificates", lambda: {"noise": MAKERS["noise"](), "pair": MAKERS["pair"]()})
    monkeypatch.setattr(script, "coq", lambda *given: said)
    monkeypatch.setattr(script, "term", lambda made: made)
    monkeypatch.setattr(script, "in_batches", stand_in)
    monkeypatch.setattr(script, "cases", lambda *given: [(*case[:4], (case, case)) for case in drawn(*given)])
    monkeypatch.setattr(sys, "argv", ["compare", "--tampered", "20", "--tables", "6"])
    assert script.main() == int(differs != "nothing")
    assert "20 compared" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["optimal", "selection", "pair"])
def test_files_for_coq_hold_digits_only(name: str) -> None:
    """Where a report says something else than numbers, nothing of it reaches the file."""
    report = json.loads(MAKERS[name]().to_json())
    evil = "1) . Axiom f : False. (*"
    for field in ("userdp_version", "digest"):
        text = json.dumps(report | {field: evil})
        assert "Axiom" not in Report.from_json(text).to_coq()  # type: ignore[attr-defined]
    for field in ("subject", "delta", "factor", "terms", "total", "table", "second", "parts", "epsilon"):
        for inside in (evil, [evil], {"ratio": evil, "exponent": "0"}, {evil: "1"}, {"noise_delta": evil}, True, 1.5):
            with pytest.raises(ValueError, match="not a userdp report"):
                Report.from_json(json.dumps(report | {field: inside}))


def test_words_of_a_certificate_are_its_numbers() -> None:
    """A report with other numbers has other words, in the summary and in the file."""
    made = replace(MAKERS["noise"](), epsilon=PrivacyLevel(F(1), F(1, 2)), delta=F(1, 7))
    assert made.verify().finding == "wrong"
    assert "at epsilon = 1/2 and delta = 1/7" in made.to_coq()
    assert "Epsilon" in made.summary()
    assert re.search(r"Epsilon +0\.5", made.summary())
    assert "certificate.value F (1%num, 7%positive)" in made.to_coq()
