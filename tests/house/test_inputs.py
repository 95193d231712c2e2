"""Bad input gets an error that names the argument; unusual input is converted, never misread."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio, Pmf, exact_pmf
from userdp.accounting import PrivacyCost, PrivacyLedger, compose_optimal, zcdp_delta
from userdp.delstab.delstab import calibrate
from userdp.divergence import (
    chi2_divergence,
    epsilon_at_delta,
    hockey_stick,
    hockey_stick_bounds,
    is_indistinguishable,
    kl_divergence,
    max_divergence,
    privacy_profile,
    renyi_divergence,
    total_variation,
)
from userdp.exact.numbers import parse_level
from userdp.protocols.local import KRandomizedResponse

GOOD = [0.5, 0.5]
CALLS = [
    lambda p, q: hockey_stick(p, q, 1),
    lambda p, q: hockey_stick_bounds(p, q, 1),
    lambda p, q: is_indistinguishable(p, q, epsilon=1, delta=0.1),
    lambda p, q: privacy_profile(p, q, [0, 1]),
    lambda p, q: epsilon_at_delta(p, q, 0.1),
    max_divergence,
    total_variation,
    kl_divergence,
    chi2_divergence,
    lambda p, q: renyi_divergence(p, q, 2),
]
BAD_PMFS = {
    "nan": [0.5, math.nan],
    "nan array": np.array([0.5, math.nan]),
    "infinite": [0.5, math.inf],
    "infinite array": np.array([math.inf, -math.inf]),
    "negative": [-0.5, 1.5],
    "negative array": np.array([-0.5, 1.5]),
    "tiny negative array": np.array([-1e-300, 1.0]),
    "float sum": [0.5, 0.5 + 1.1e-9],
    "float sum array": np.array([0.5, 0.5 + 1.1e-9]),
    "float sum below": np.array([0.5, 0.5 - 1.1e-9]),
    "exact sum": ["0.5", "0.5000000000000000000000001"],
    "fraction sum": [Fraction(1, 3), Fraction(2, 3) - Fraction(1, 10**40)],
    "integer sum": [1, 2],
    "integer array sum": np.array([1, 2]),
    "mixed is exact": [0.1, Fraction(9, 10)],
    "negative fraction": [Fraction(-1, 2), Fraction(3, 2)],
    "empty": [],
    "empty array": np.array([]),
    "0-d": np.array(1.0),
    "3-d": np.full((1, 1, 2), 0.5),
    "scalar": 0.5,
    "text": "0.5;0.5",
    "bytes": b"11",
    "None": None,
    "complex": np.array([0.5, 0.5j]),
    "complex list": [0.5, 0.5 + 0j],
    "bool array": np.array([True, False]),
    "bool list": [True, False],
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "object": np.array([object(), object()]),
    "None inside": [0.5, None],
    "nested ragged": [[0.5, 0.5], [1.0]],
    "word": ["half", "1/2"],
    "zero denominator": ["1/0", "1"],
    "dictionary": {"a": 0.5, "b": 0.5},
    "set": {0.25, 0.75},
    "masked": np.ma.masked_array([0.5, 0.5], [True, False]),
    "wide floats": np.array([0.5, 0.5], dtype=np.longdouble),
    "bytearray": bytearray([1, 0]),
    "durations": np.array([1, 0], dtype="m8[ns]"),
    "dates in a list": [np.datetime64(1, "ns"), 0],
    "signalling": [Decimal("sNaN"), 1],
    "huge exponent": ["1e-999999999", "1"],
    "huge decimal": [Decimal("1e-999999999"), 1],
    "many digits": [-(10**5000), 1],
    "structured": np.array([(0.5,), (0.5,)], dtype=[("x", float)]),
}


@pytest.mark.parametrize("bad", BAD_PMFS.values(), ids=BAD_PMFS.keys())
@pytest.mark.parametrize("call", CALLS)
def test_bad_pmfs(call: Any, bad: Any) -> None:
    if isinstance(bad, np.ndarray) and bad.dtype == np.longdouble and np.finfo(np.longdouble).bits == 64:
        pytest.skip("long double is float64 on this platform")
    with pytest.raises((ValueError, TypeError), match=r"\bp\b"):
        call(bad, GOOD)
    with pytest.raises((ValueError, TypeError), match=r"\bq\b|\bp and q\b"):
        call(GOOD, bad)


@pytest.mark.parametrize("call", CALLS)
def test_different_lengths(call: Any) -> None:
    for longer in ([0.5, 0.25, 0.25], np.array([0.5, 0.25, 0.25]), ["1/2", "1/4", "1/4"]):
        with pytest.raises(ValueError, match="q"):
            call(np.array(GOOD), longer)
    with pytest.raises(ValueError, match="rows"):
        call(np.array([GOOD, GOOD]), np.array([GOOD]))
    with pytest.raises(ValueError, match="p and q"):
        call(np.array([GOOD]), GOOD)


P = np.array([0.75, 0.125, 0.125])
Q = np.array([0.25, 0.25, 0.5])
SAME = {
    "list": P.tolist(),
    "tuple": tuple(P),
    "big-endian": P.astype(">f8"),
    "float32": P.astype(np.float32),
    "float16": P.astype(np.float16),
    "strided": np.repeat(P, 3)[::3],
    "reversed twice": P[::-1].copy()[::-1],
    "object floats": P.astype(object),
    "column of a table": np.column_stack([P, Q])[:, 0],
    "fractions": [Fraction(3, 4), Fraction(1, 8), Fraction(1, 8)],
    "decimals": [Decimal("0.75"), Decimal("0.125"), Decimal("0.125")],
    "strings": ["0.75", "1/8", "0.125"],
    "string array": np.array(["0.75", "0.125", "0.125"]),
    "numpy scalars": list(P),
    "generator": None,
    "read-only": None,
    "pmf": Pmf.from_weights([6, 1, 1]),
    "misaligned": None,
    "not-zero-signed": np.array([0.75, 0.125, 0.125]) + -0.0,
}


@pytest.mark.parametrize("kind", SAME)
def test_every_representation_means_the_same_numbers(kind: str) -> None:
    value: Any = SAME[kind]
    if kind == "generator":
        value = (x for x in P.tolist())
    if kind == "misaligned":
        value = np.zeros(25, dtype=np.uint8)[1:].view(np.float64)
        value[:] = P
    if kind == "read-only":
        value = P.copy()
        value.flags.writeable = False
    assert hockey_stick(value, Q, 0) == 0.5
    assert hockey_stick(value if kind != "generator" else iter(P.tolist()), list(Q), 0) == 0.5


def test_negative_zero_is_zero() -> None:
    assert hockey_stick(np.array([-0.0, 1.0]), np.array([0.0, 1.0]), 0) == 0.0
    assert hockey_stick(np.array([0.0, 1.0]), np.array([-0.0, 1.0]), 0) == 0.0


def test_integer_masses_zero_and_one() -> None:
    assert hockey_stick([1, 0], [0, 1], 5) == 1.0
    assert hockey_stick(np.array([1, 0]), np.array([0, 1], dtype=np.uint8), 5) == 1.0


DATES = [np.datetime64(1, "ns"), np.timedelta64(1, "ns")]
HUGE = ["1e999999999", Decimal("1e999999999"), Decimal("sNaN"), -(10**5000)]
BAD_EPSILONS = [
    *DATES,
    *HUGE,
    -1,
    -1e-300,
    math.nan,
    math.inf,
    "nan",
    "inf",
    "-1",
    "",
    "one",
    None,
    True,
    np.bool_(False),
    1j,
    [1],
    "1/0",
    "ln(1/2)",
    "ln(0)",
    "ln()",
    "ln(1/0)",
    "ln(inf)",
    "ln(3",
    "2ln(3)",
    "ln(ln(3))",
    "ln(1e999999999)",
]


@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=range(len(BAD_EPSILONS)))
def test_bad_epsilon(epsilon: Any) -> None:
    arrays = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    for p, q in ((GOOD, GOOD), arrays):
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            hockey_stick(p, q, epsilon)
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            is_indistinguishable(p, q, epsilon=epsilon, delta=0)
        with pytest.raises((ValueError, TypeError), match="epsilons"):
            privacy_profile(p, q, [epsilon])
    with pytest.raises(TypeError, match="epsilons"):
        privacy_profile(GOOD, GOOD, 1)


@pytest.mark.parametrize(
    "delta", [-1e-300, 1.0000001, "1.1", math.nan, math.inf, "x", None, True, LogRatio(2, 1)], ids=repr
)
def test_bad_delta(delta: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="delta"):
        is_indistinguishable(GOOD, GOOD, epsilon=1, delta=delta)
    with pytest.raises((ValueError, TypeError), match="delta"):
        epsilon_at_delta(GOOD, GOOD, delta)


@pytest.mark.parametrize(
    "epsilon", [1, 1.0, np.float64(1), np.float32(1), np.int64(1), "1", "1.0", Fraction(1), Decimal(1)]
)
def test_every_kind_of_epsilon(epsilon: Any) -> None:
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert hockey_stick(p, q, epsilon) == hockey_stick(p, q, 1)


@pytest.mark.parametrize("text", ["ln(3)", "ln(3/1)", " ln( 3 ) ", "ln(3.0)", "ln(6/2)"])
def test_logarithms_are_log_ratios(text: str) -> None:
    assert parse_level(text) == parse_level(LogRatio(3)) != parse_level(3)
    p, q = ["3/4", "1/4"], ["1/4", "3/4"]
    assert is_indistinguishable(p, q, epsilon=text, delta=0)
    assert compose_optimal(text, 2, 0) == LogRatio(9)
    assert PrivacyCost(text) == PrivacyCost(LogRatio(3))
    assert PrivacyLedger(text).epsilon == LogRatio(3)
    assert calibrate("optimal", text, "0.01") == calibrate("optimal", LogRatio(3), "0.01")
    described = [KRandomizedResponse(epsilon=e, n_items=3, n_users=9, round_id="r") for e in (text, LogRatio(3))]
    assert described[0].pmf(0) == described[1].pmf(0)
    # What is no privacy level takes no logarithm: of rho = ln 3 nothing may be left but 0.
    for wrong in (
        lambda: zcdp_delta(text, 1),
        lambda: PrivacyCost(rho=text),
        lambda: renyi_divergence(p, q, text),
        lambda: is_indistinguishable(p, q, epsilon=1, delta=text),
    ):
        with pytest.raises(ValueError, match="not a decimal number or a fraction"):
            wrong()


def test_a_text_lists_exact_numbers() -> None:
    p, q = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    assert hockey_stick("1/2, 1/3, 1/6", "1/6,1/3,1/2", "ln(2)") == hockey_stick(p, q, LogRatio(2))
    assert hockey_stick("1/2, 1/3, 1/6", q, 0) == hockey_stick(p, q, 0)
    assert (privacy_profile(p, q, "0, 0.5, ln(2)") == privacy_profile(p, q, [0, "1/2", LogRatio(2)])).all()
    for wrong in ("", "1/2,,1/2", "1/2 1/2", "1/2,1/3"):
        with pytest.raises(ValueError, match=r"\bp\b"):
            hockey_stick(wrong, q, 0)


@pytest.mark.parametrize("order", [0, -1, math.nan, -math.inf, "x", None, True, LogRatio(2, 1), "ln(3)", 2**33])
def test_bad_order(order: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="order"):
        renyi_divergence(GOOD, GOOD, order)


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(1, 2), (0, 1), (1, 0), (-1, -1), (1.5, 1), (True, 1), ("3", 1)]
)
def test_bad_log_ratio(numerator: Any, denominator: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="LogRatio"):
        LogRatio(numerator, denominator)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"weights": [1], "counts": [1]},
        {"weights": []},
        {"weights": [-1, 2]},
        {"weights": [math.nan, 1]},
        {"weights": [math.inf, 1]},
        {"weights": [0, 0]},
        {"weights": np.ma.array([1, 2], mask=[0, 1])},
        {"weights": np.array([1, 2], "m8[ns]")},
        {"weights": [-(10**400), 1]},
        {"weights": ["1e-999999999", 1]},
        {"weights": "12"},
        {"weights": [[1, 2]]},
        {"weights": [True, False]},
        {"counts": [1.5, 1]},
        {"counts": [-1, 2]},
        {"logits": [math.nan, 0]},
        {"logits": [math.inf, 0]},
        {"logits": [-math.inf]},
        {"logits": []},
        {"logits": [1j]},
        {"logits": [0.0], "bits": 0},
        {"logits": [0.0], "bits": 5000},
        {"logits": [0.0], "bits": 64.0},
        {"weights": [1, 2], "outputs": ["a"]},
        {"weights": [1, 2], "outputs": ["a", "a"]},
    ],
    ids=repr,
)
def test_bad_exact_pmf(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"weights|counts|logits|bits|outputs"):
        exact_pmf(**arguments)


def test_exact_pmf_of_logits_is_within_half_a_unit() -> None:
    logits = [0.0, -0.5, -3, Fraction(-1, 3), -math.inf, "-40"]
    pmf = exact_pmf(logits=logits, bits=64, outputs="abcdef")
    assert pmf.weights[0] == 2**64
    assert pmf.weights[4] == 0
    import decimal

    with decimal.localcontext(decimal.Context(prec=60)):
        for logit, weight in zip(logits, pmf.weights, strict=True):
            if logit == -math.inf:
                continue
            exact = Fraction(logit)
            scaled = (Decimal(exact.numerator) / exact.denominator).exp() * 2**64
            assert abs(scaled - weight) <= Decimal("0.5")


def test_pmf_of_weights_keeps_them_exactly() -> None:
    assert Pmf.from_weights(["0.1", Fraction(1, 3)]).fractions() == [Fraction(3, 13), Fraction(10, 13)]
    assert exact_pmf(weights=np.array([0.1, 0.2])).fractions()[0] == Fraction(0.1) / (Fraction(0.1) + Fraction(0.2))
    assert exact_pmf(counts=np.array([1, 2, 1])).probabilities.tolist() == [0.25, 0.5, 0.25]
    with pytest.raises(TypeError, match="exact_pmf"):
        Pmf.from_weights([0.1, 0.2])
