"""Seeded draws and exact answers are what they were: see frozen_cases.py."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")

from support.frozen_cases import CASES, FROZEN, result_of

KNOWN = json.loads(FROZEN.read_text())


def test_every_case_is_frozen() -> None:
    assert KNOWN.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_draws_are_what_they_were(name: str) -> None:
    assert result_of(name) == KNOWN[name]
