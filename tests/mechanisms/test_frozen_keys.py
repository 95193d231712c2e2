"""Accounts of keys may get tighter, and never looser: a part of 500 settings that were calibrated before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.frozen_keys import RESULTS, chosen, compared, settings

SETTINGS = settings()
FROZEN: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text())


def test_every_setting_is_frozen() -> None:
    assert list(FROZEN) == list(SETTINGS)
    assert len(SETTINGS) == 500


@pytest.mark.parametrize("name", list(SETTINGS)[::13])
def test_a_setting_is_equal_or_better(name: str) -> None:
    assert compared(FROZEN[name], chosen(*SETTINGS[name])) != "worse"


def test_what_is_worse_is_called_so() -> None:
    before = {"noise": ["4"], "thresholds": [7, 9], "delta": "0x10"}
    assert compared(before, before) == "equal"
    for delta, thresholds, verdict in (
        ("0xf", [7, 9], "better"),
        ("0x11", [7, 9], "worse"),
        ("0x11", [7, 8], "better"),
        ("0xf", [8, 8], "worse"),
    ):
        assert compared(before, before | {"delta": delta, "thresholds": thresholds}) == verdict
    assert compared(before, {"refused": True}) == "worse"
    assert compared({"refused": True}, before) == "better"
