"""Rounding with shared offsets, against its definition in fractions."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from oracle import public_randomness as public
from oracle.statistics import hoeffding_slack
from userdp.public_randomness import SharedOffsetRounding

SEED = bytes(range(32))
CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/sampling.json").read_text())["cases"]


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "grid_offset"], ids=lambda c: c["name"])
def test_shared_cases_of_offsets(case):
    given, expected = case["input"], case["expected"]
    rounding = SharedOffsetRounding(SEED, intervals=given["I"], signed=False)
    assert rounding.disagreement_probability(given["u"], given["v"]) == Fraction(expected["disagree"])
    for value, pmf in (("u", "u_pmf"), ("v", "v_pmf")):
        found = {
            str(rounding.value(j)): str(share) for j, share in rounding.rounding_distribution(given[value]).items()
        }
        assert found == expected[pmf]


@pytest.mark.parametrize("signed", [True, False])
def test_pmfs_of_offsets_by_all_offsets_of_a_grid(signed):
    intervals, below = 3, 5
    rounding = SharedOffsetRounding(SEED, intervals=intervals, signed=signed)
    low = -1 if signed else 0
    values = [Fraction(k, below) for k in range(low * below, below + 1)]
    # Between multiples of 1/5 nothing happens, so that the middles of these intervals stand for all offsets.
    offsets = [Fraction(2 * k + 1, 2 * below) for k in range(below)]
    rounded = {value: [math.floor(intervals * (value - low) + s) for s in offsets] for value in values}
    for u in values:
        pmf = rounding.rounding_distribution(u)
        assert pmf == {j: Fraction(rounded[u].count(j), below) for j in sorted(set(rounded[u]))}
        assert sum(share * rounding.value(j) for j, share in pmf.items()) == u
        assert all(abs(rounding.value(j) - u) < Fraction(1, intervals) for j in pmf)
        assert set(pmf) <= set(range(rounding.points))
        for v in values:
            differ = sum(a != b for a, b in zip(rounded[u], rounded[v], strict=True))
            assert rounding.disagreement_probability(u, v) == Fraction(differ, below)
            assert rounding.disagreement_probability(u, v) == min(1, intervals * abs(u - v))


@pytest.mark.parametrize("signed", [True, False])
def test_values_are_rounded_exactly(signed):
    rounding = SharedOffsetRounding(SEED, intervals=30, signed=signed, label="x")
    low = -1 if signed else 0
    for query in range(50):
        offset = Fraction(int.from_bytes(public.block(SEED, "x", query), "little"), 2**256)
        for value in (0.37, -0.0, 1, -1, "1/3", Fraction(2, 7), 0.1 + 0.2, 5e-324, 2.5, -7):
            exact = min(max(Fraction(value), Fraction(low)), Fraction(1))
            assert rounding.round(value, query) == math.floor(30 * (exact - low) + offset)
        # The last number below a step and the first one above it.
        step = (1 - offset) / 30
        below, above = step - Fraction(1, 2**400), step
        assert rounding.round(below, query) + 1 == rounding.round(above, query)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64, np.uint16])
def test_many_ratios_are_rounded_like_one(signed, dtype):
    rounding = SharedOffsetRounding(SEED, intervals=7, signed=signed)
    low = 0 if np.dtype(dtype).kind == "u" else -60
    numerators = np.arange(low, 61).astype(dtype)
    for query, below in itertools.product(range(20), (1, 12, 50, 1000)):
        expected = [rounding.round(Fraction(int(k), below), query) for k in numerators]
        found = rounding.round_ratios(numerators.reshape(1, -1), below, query)
        assert found.dtype == np.int64
        assert found.tolist() == [expected]
    assert rounding.round_ratios([], 2).tolist() == []


@pytest.mark.statistical
def test_offsets_are_uniform_enough_to_agree_as_often_as_they_should():
    trials = 20_000
    rounding = SharedOffsetRounding(SEED, intervals=4)
    pairs = [(rounding.round(0.3, query), rounding.round(0.35, query)) for query in range(trials)]
    differ = np.mean([a != b for a, b in pairs])
    assert abs(differ - float(rounding.disagreement_probability(0.3, 0.35))) < hoeffding_slack(trials)
    assert abs(np.mean([a for a, _ in pairs]) - 4 * 1.3) < hoeffding_slack(trials)


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda r: r.round(math.nan), ValueError, "finite"),
        (lambda r: r.round(math.inf), ValueError, "finite"),
        (lambda r: r.round(None), TypeError, "value None"),
        (lambda r: r.round(0.5, -1), ValueError, "i must be"),
        (lambda r: r.value(7), ValueError, "0 to 6"),
        (lambda r: r.value(0.0), ValueError, "0 to 6"),
        (lambda r: r.round_ratios([0.5], 2), TypeError, "ints"),
        (lambda r: r.round_ratios([1], 0), ValueError, "denominator"),
        (lambda r: r.round_ratios([1], 2**60), ValueError, "2\\*\\*61"),
    ],
)
def test_bad_arguments_of_rounding_are_refused(use, error, words):
    with pytest.raises(error, match=words):
        use(SharedOffsetRounding(SEED, intervals=3))


def test_bad_options_of_rounding_are_refused():
    for options, error in (({"intervals": 0}, ValueError), ({"intervals": 2.0}, TypeError)):
        with pytest.raises(error, match="intervals"):
            SharedOffsetRounding(SEED, **options)
    with pytest.raises(TypeError, match="signed"):
        SharedOffsetRounding(SEED, intervals=2, signed=1)
