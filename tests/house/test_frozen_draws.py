"""Seeded draws and exact answers are what they were: see frozen_cases.py."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("highspy")

from support.frozen_cases import CASES, FROZEN, alike, result_of

KNOWN = json.loads(FROZEN.read_text())


def test_every_case_is_frozen() -> None:
    assert KNOWN.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_draws_are_what_they_were(name: str) -> None:
    now, known = result_of(name), KNOWN[name]
    if isinstance(known, dict):
        assert not [key for key in now.keys() | known.keys() if not alike(name, now.get(key), known.get(key))]
    assert alike(name, now, known), (now, known)


def test_only_the_last_bits_may_differ() -> None:
    known = {"theta_": {"values": [(0.1).hex(), (-3.0).hex()], "shape": 2}}
    near = {"theta_": {"values": [(0.1 + 1e-16).hex(), (-3.0).hex()], "shape": 2}}
    far = {"theta_": {"values": [(0.1 + 1e-8).hex(), (-3.0).hex()], "shape": 2}}
    assert alike("fits_of_means", near, known)
    assert not alike("fits_of_means", far, known)
    assert not alike("queries", near, known)
    assert not alike("fits_of_means", {"theta_": {"values": known["theta_"]["values"], "shape": 3}}, known)
