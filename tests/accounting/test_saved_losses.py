"""Privacy losses as JSON: read back as they were, and refused where somebody changed what must not be."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.accounting.losses import LossTable, TableLoss

TABLE = TableLoss(Fraction(1, 10), LossTable(-1, (1, 2, 1), 1), LossTable(-2, (1, 0, 3), 0))
LOSSES: dict[str, PLD] = {
    "pair": PLD.from_pmfs([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]),
    "pairs": PLD.from_pairs([(["1/2", "1/2"], ["1/3", "2/3"])]),
    "pure": PLD.pure("ln(3)", "1/1000"),
    "number": PLD.pure("1/10"),
    "laplace": PLD.discrete_laplace("0.1", 4),
    "discrete Gaussian": PLD.discrete_gaussian("7/3", 2),
    "range": PLD.bounded_range("ln(5/4)"),
    "Gaussian": PLD.gaussian("1.5").self_compose(3),
    "Poisson": PLD.gaussian(1, neighbors="add-remove").poisson("1/100"),
    "fixed size": PLD.gaussian(1, neighbors="replace").without_replacement(3, 100),
    "sampled pair": PLD.pure("1/2", neighbors="replace").without_replacement(3, 100),
    "group": PLD.pure("1/2", "1e-6").group(3),
    "table": PLD._of([(TABLE, 2)], "add-remove"),
    "near": PLD.pure(1).within("1/1000000"),
    "several": PLD.composed([(PLD.pure(1), 3), (PLD.gaussian(2), 4), (PLD.bounded_range("1/9"), 2**30)]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_was_written_is_read(name: str) -> None:
    losses = LOSSES[name]
    again = PLD.from_json(losses.to_json())
    assert again == losses
    assert hash(again) == hash(losses)
    assert repr(again) == repr(losses)
    assert again.attained == losses.attained
    assert again.to_json() == losses.to_json()


def test_answers_are_the_same() -> None:
    losses = LOSSES["pair"].compose(PLD.pure("1/10"))
    assert PLD.from_json(losses.to_json()).delta(1, relative=0.1) == losses.delta(1, relative=0.1)


def changed(name: str, **members: Any) -> str:
    content = json.loads(LOSSES[name].to_json())
    content["releases"][0]["release"].update(members)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # A pair that says it is symmetric would be asked in one order only.
        (changed("pair", p=["1", "2", "3"], q=["3", "3", "1"], symmetric=True), "not symmetric"),
        (changed("pair", p=["1"]), "different lengths"),
        (changed("pair", p=["0", "0", "0"]), "no mass"),
        (changed("pair", p=["-1", "1", "1"]), "not an integer >= 0"),
        (changed("pair", p=["1/2", "1", "1"]), "not an integer >= 0"),
        (changed("pair", p=[1, 1, 1]), "not a fraction"),
        (changed("pair", attained=1), "not true or false"),
        (changed("pure", delta="1"), "delta must be below 1"),
        (changed("pure", epsilon={"ratio": "1/2", "exponent": "0"}), "epsilon must be >= 0"),
        (changed("pure", epsilon={"ratio": "2", "exponent": "1"}), "a number, or a logarithm"),
        (changed("laplace", shift=10**9), "shift must be at most"),
        (changed("laplace", rate={"ratio": "1", "exponent": "0"}), "must be > 0"),
        (changed("discrete Gaussian", sigma_squared="0"), "sigma_squared must be"),
        (changed("range", range={"ratio": "1", "exponent": "0"}), "range must be > 0"),
        (changed("Gaussian", mu_squared="10000"), "mu2 must be from"),
        (changed("Gaussian", count=0), "at least once"),
        (changed("Poisson", rate="2"), "rate is from"),
        (LOSSES["Poisson"].to_json().replace("add-remove", "replace"), "neighbors='add-remove'"),
        (LOSSES["fixed size"].to_json().replace('"replace"', '"add-remove"'), "neighbors='replace'"),
        (LOSSES["pure"].to_json().replace("null", '"swap"'), "neighbors must be"),
        (LOSSES["table"].to_json().replace("add-remove", "replace"), "same losses in both orders"),
        (changed("table", step="0"), "step"),
        (changed("table", forward={"low": 0, "weights": ["0"], "infinity": "0"}), "no mass"),
        (changed("table", forward={"low": 2**63, "weights": ["1"], "infinity": "0"}), "62 bits"),
        (changed("table", forward={"low": 0, "weights": [], "infinity": "1"}), "no losses"),
        (LOSSES["near"].to_json().replace("1/1000000", "7/3"), "distance is not from 0 to 1"),
        (LOSSES["pure"].to_json().replace('"times":1', '"times":0'), "times must be"),
        (LOSSES["pure"].to_json().replace('"times":1', '"times":' + str(2**50)), "at most 2"),
        (LOSSES["pure"].to_json().replace("loss/1", "loss/2"), "its format is not"),
        (changed("pure", more=1), "fields missing or unknown"),
        (changed("pure", delta="1/" + "9" * 600_000), "a number of 600002 characters"),
        ("[]", "its format is not"),
    ],
)
def test_hostile_texts(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"not a privacy loss distribution as to_json writes it: .*{message}"):
        PLD.from_json(text)


def test_a_release_twice_is_refused() -> None:
    content = json.loads(LOSSES["pure"].to_json())
    content["releases"] *= 2
    with pytest.raises(ValueError, match="in its list twice"):
        PLD.from_json(json.dumps(content))
    with pytest.raises(TypeError, match="text must be a str"):
        PLD.from_json(b"{}")  # type: ignore[arg-type]
