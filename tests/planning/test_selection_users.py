"""How many users any private selection needs, beside published certified numbers and the shipped mechanisms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

pytest.importorskip("highspy")

from userdp.exceptions import BudgetError
from userdp.mechanisms import PurePrivateMode
from userdp.optimal import agreement_certificate
from userdp.planning import selection_users

F = Fraction
KNOWN = {
    (2, "0.9"): (8, 10),
    (2, "0.7"): (25, 29),
    (3, "0.9"): (9, 11),
    (16, "0.9"): (11, 15),
}
"""Items and agreement: what all need at epsilon = 1 and beta = 0.1, and what the exponential mechanism needs."""


@pytest.mark.parametrize(("n_items", "agreement"), KNOWN)
def test_numbers_that_were_computed_elsewhere(n_items: int, agreement: str) -> None:
    least, exponential = KNOWN[n_items, agreement]
    found = selection_users(n_items=n_items, agreement=agreement, epsilon=1, beta="0.1")
    assert (found.n_users, found.enough, found.failure) == (least, True, F(1, 30))
    assert found.certificate is not None
    assert found.certificate.world["n_users"] == least - 1
    assert found.certificate.lower_bound > F(1, 30)
    assert found.certificate.verify().finding == "established"
    shipped = PurePrivateMode(epsilon=1, n_items=n_items).users_needed(agreement=agreement, beta="0.1")
    assert found.n_users <= shipped <= exponential


def test_many_items() -> None:
    """With 23 users and 2^20 items every mechanism misses too often, where the exponential mechanism needs 40."""
    bound = agreement_certificate(23, 2**20, F(9, 10), 1)
    assert float(bound.lower_bound) == pytest.approx(0.043942, abs=1e-6)
    assert bound.lower_bound > F(1, 30)
    assert 24 <= PurePrivateMode(epsilon=1, n_items=2**20).users_needed(agreement="0.9", beta="0.1") <= 40


@pytest.mark.parametrize(
    ("n_users", "n_items", "agreement", "known"), [(88, 2, F(3, 5), 0.0347268), (24, 3, F(7, 10), 0.0384370)]
)
def test_one_user_fewer_is_too_few(n_users: int, n_items: int, agreement: Fraction, known: float) -> None:
    """Optima that were computed elsewhere, by programs without symmetries."""
    bound = agreement_certificate(n_users, n_items, agreement, 1)
    assert float(bound.lower_bound) == pytest.approx(known, abs=1e-7)
    assert bound.lower_bound > F(1, 30)
    assert bound.verify().finding == "established"


def test_one_user_is_enough_where_little_is_asked() -> None:
    found = selection_users(n_items=2, agreement="0.99", epsilon=5, beta="0.3")
    assert (found.n_users, found.enough, found.certificate) == (1, True, None)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n_items": 1}, ValueError, "n_items must be at least 2"),
    ({"n_items": 2**25}, ValueError, r"n_items must be at most 2\*\*24"),
    ({"agreement": "1/2"}, ValueError, r"agreement must be in \(1/2, 1\]; got '1/2'"),
    ({"agreement": F(2 * 3**60, 3**61)}, ValueError, r"agreement must|denominator"),
    ({"beta": 0}, ValueError, r"beta must be in \(0, 1\)"),
    ({"beta": 1}, ValueError, r"beta must be in \(0, 1\)"),
    ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
    ({"delta": "1e-10"}, ValueError, "delta must be 0 or at least 1e-8"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments = {"n_items": 2, "agreement": "0.9", "epsilon": 1, "beta": "0.1"} | change
    if change.get("agreement") == F(2, 3):
        arguments["agreement"] = F(2 * 3**60 + 1, 3**61)
    with pytest.raises(kind, match=message):
        selection_users(**arguments)


def test_what_is_too_large_says_how_far_it_came() -> None:
    with pytest.raises(BudgetError, match=r"misses the common item too often with up to \d+ users, and larger worlds"):
        selection_users(n_items=3, agreement="0.6", epsilon=1, beta="0.1", max_constraints=60)
