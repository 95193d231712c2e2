"""What fuzzing kept is run again, and so are changes of it that are drawn at random: no coverage, in seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from fuzz.corpus import TARGETS, read

CHANGED = 600


@cache
def accepted(name: str) -> list[bytes]:
    return [one for one in read(name) if TARGETS[name].run(one)]


def inputs(name: str) -> Iterator[bytes]:
    """Changes of kept inputs that are accepted, the same ones in every run."""
    source, kept = random.Random(name), accepted(name)
    while True:
        try:
            yield TARGETS[name].alter(source.choice(kept), source)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):  # no JSON, after earlier changes
            continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    assert len(accepted(name)) >= 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name: str) -> None:
    past = sum(map(TARGETS[name].run, itertools.islice(inputs(name), CHANGED)))
    assert 10 * past >= 2 * CHANGED


FAULTS = {
    "no level of a certificate": ("certificates", "userdp.checker.certificates._check_factor", None),
    "no table of noise": ("certificates", "userdp.checker.certificates._check_laplace", None),
    "no bound of refusals": ("certificates", "userdp.checker.certificates._check_refusal", None),
    "no verdict of an audit": ("reports", "userdp.checker.audits._check_delta", None),
    "no epsilon of an audit": ("reports", "userdp.checker.audits._check_epsilon", None),
    "no witness of an audit": ("reports", "userdp.checker.audits._check_witness", None),
    "no delta of a composition": ("reports", "userdp.checker.compositions.bound_of", Fraction(0)),
    "any set of items": ("messages", "userdp.protocols.local.items.SubsetSelection._valid", np.ones(1, dtype=np.bool_)),
    "any limits of a ledger": ("ledgers", "userdp.accounting.ledger.keeps_promise", True),
    "another chain": ("ledgers", "userdp.durable_log.DurableLog._next", b""),
    "any bounds of a column": ("schemas", "userdp.tables.schema._bounds", (0.0, -1.0)),
}
"""Faults that are planted: what answers so, whatever it is given, and by which inputs that has to be noticed."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, place, answer = FAULTS[fault]
    accepted(name)
    monkeypatch.setattr(place, lambda *_: answer)

    def noticed(data: bytes) -> bool:
        try:
            TARGETS[name].run(data)
        except AssertionError:
            return True
        return False

    assert any(map(noticed, itertools.islice(inputs(name), 20 * CHANGED)))
