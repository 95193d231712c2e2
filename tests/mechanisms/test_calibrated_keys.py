"""Calibrated settings of keys are as good as they were: see support/calibrated_keys.py, which compares all 500."""

from __future__ import annotations

import json

import pytest

from support.calibrated_keys import FROZEN, calibrated, settings, worse

KNOWN = json.loads(FROZEN.read_text())
SETTINGS = list(settings())


def test_500_settings_are_frozen() -> None:
    assert len(SETTINGS) == 500
    assert list(KNOWN) == [json.dumps(setting) for setting in SETTINGS]
    assert sum(isinstance(result, str) for result in KNOWN.values()) < 50


@pytest.mark.parametrize("setting", SETTINGS[3::24], ids=str)
def test_no_setting_is_worse(setting: tuple[str, str, str, int, str, str]) -> None:
    assert not worse(calibrated(setting), KNOWN[json.dumps(setting)])


def test_what_is_worse_is_seen() -> None:
    setting = SETTINGS[0]
    thresholds, words, delta = KNOWN[json.dumps(setting)]
    assert not worse([thresholds, words, delta], KNOWN[json.dumps(setting)])
    assert worse([[thresholds[0] + 1], words, delta], KNOWN[json.dumps(setting)])
    assert worse([thresholds, words, "1"], KNOWN[json.dumps(setting)])
    assert worse("BudgetError", KNOWN[json.dumps(setting)])
    assert not worse([[thresholds[0] - 1], words, delta], KNOWN[json.dumps(setting)])
