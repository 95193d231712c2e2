"""Compositions that are kept for the next question: by their bytes, the oldest forgotten first."""

from __future__ import annotations

from typing import Any, cast

import pytest

from userdp.accounting import PrivacyLossDistribution, refinement
from userdp.accounting.refinement import REMEMBERED_BYTES, Remembered


def test_the_oldest_are_forgotten_for_room() -> None:
    kept = Remembered(100)
    things = [cast(Any, object()) for _ in range(4)]
    kept.put("a", things[0], 40)
    kept.put("b", things[1], 40)
    assert kept.get("a") is things[0]
    kept.put("c", things[2], 40)  # b was asked for longest ago
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (things[0], None, things[2])
    assert kept.bytes == 80
    kept.put("d", things[3], 101)  # too large at all
    assert kept.get("d") is None
    assert len(kept) == 2
    kept.put("c", things[3], 10)  # known already
    assert kept.get("c") is things[2]
    kept.put("e", things[3], 100)
    assert len(kept) == 1
    assert kept.bytes == 100


def test_questions_about_one_composition_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Remembered(REMEMBERED_BYTES)
    monkeypatch.setattr(refinement, "remembered", kept)
    whole = PrivacyLossDistribution.pure("1/10").self_compose(50)
    first = whole.epsilon("1e-6")
    assert len(kept) == 1
    # 51 levels, two sums of two words each.
    assert kept.bytes == 51 * 2 * 2 * 8
    assert whole.epsilon("1e-6") == first
    assert len(kept) == 1


def test_large_compositions_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Remembered(2**14)
    monkeypatch.setattr(refinement, "remembered", kept)
    for count in range(100, 600, 50):
        PrivacyLossDistribution.pure("1/10").self_compose(count).epsilon("1e-6")
        assert kept.bytes <= 2**14
