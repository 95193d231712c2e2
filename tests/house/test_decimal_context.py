"""A caller's decimal context changes no report, cost or bound: what is computed in decimals has contexts of its own."""

from __future__ import annotations

import decimal
import json

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("highspy")

from support.every_report import EVERY_REPORT
from support.frozen_cases import FROZEN, alike, result_of
from userdp.item_to_user import deletion_stability

KNOWN = json.loads(FROZEN.read_text())


@pytest.mark.parametrize("name", ["reports", "costs", "keys_by_weights", "selections_by_score"])
@pytest.mark.parametrize("digits", [3, 90])
def test_no_result_has_the_digits_of_the_caller(name: str, digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "reports":  # made anew, not as they were kept
        for kind, make in EVERY_REPORT.items():
            monkeypatch.setitem(EVERY_REPORT, kind, make.__wrapped__)  # type: ignore[attr-defined]
    with decimal.localcontext(decimal.Context(prec=digits, rounding=decimal.ROUND_UP)):
        now = result_of(name)
    if isinstance(now, dict):
        assert not [key for key in KNOWN[name] if not alike(name, now.get(key), KNOWN[name][key])]
    assert alike(name, now, KNOWN[name])


def test_factors_that_round_outwards_are_not_one() -> None:
    assert deletion_stability._UP - 1 == 1 - deletion_stability._DOWN == decimal.Decimal("1e-30")
