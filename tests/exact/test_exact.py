"""Enclosures from the compiled core against series in fractions, and its rounding against Python's integers."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from typing import Any

import pytest

from oracle import divergence as oracle
from userdp import _core
from userdp.exact import LogRatio
from userdp.exact.numbers import least, parse_delta, parse_level, round_down, round_up
from userdp.exceptions import BudgetError

F = Fraction


@pytest.mark.parametrize("bits", [16, 64, 192, 193, 1000])
@pytest.mark.parametrize("x", [0, F(1, 3), 1, 5e-324, 1e-9, 0.1, 20.5, 700, 1000, 12345])
def test_exp_encloses(x: Any, bits: int) -> None:
    low, high = _core.exp_bounds(_core.Level(F(1), F(x)), bits)
    below, above = oracle.exp_bounds(F(x), bits + 40)
    assert low <= above
    assert high >= below
    assert high - low <= high * F(1, 2 ** (bits - 2))


def test_exp_times_a_ratio() -> None:
    low, high = _core.exp_bounds(_core.Level(F(2, 3), F(1, 2)), 200)
    below, above = oracle.exp_bounds(F(1, 2), 240)
    assert low <= above * F(2, 3)
    assert high >= below * F(2, 3)


def test_ln_is_between_adjacent_floats() -> None:
    source = random.Random(1)
    for _ in range(300):
        x = 1 + F(
            source.randrange(1, 10 ** source.randrange(1, 30)), source.randrange(1, 10 ** source.randrange(1, 40))
        )
        low, high = _core.ln_bounds(x)
        assert oracle.exp_bounds(F(low), 400)[0] <= x
        assert oracle.exp_bounds(F(high), 400)[1] >= x
        assert high <= math.nextafter(low, math.inf)
    assert _core.ln_bounds(F(1)) == (0.0, 0.0)
    with pytest.raises(ValueError, match="positive"):
        _core.ln_bounds(F(0))


def test_weights_round_as_python_divides() -> None:
    # Python's int / int is correctly rounded; the core's hockey-stick at epsilon = 0 against mass 0 is just the mass.
    source = random.Random(2)
    zero = _core.Level(F(1), F(0))
    for _ in range(5000):
        total = source.randrange(1, 10 ** source.randrange(1, 400))
        weight = source.randrange(0, total + 1)
        p, q = ([weight, total - weight, 0], total), ([0, total - weight, weight], total)
        assert _core.hockey_stick(p, q, zero) == weight / total
        low, high = _core.hockey_stick_bounds(p, q, zero)
        assert low == round_down(F(weight, total))
        assert high == round_up(F(weight, total))


def test_subnormal_results() -> None:
    zero = _core.Level(F(1), F(0))
    for total_bits in (1070, 1074, 1075, 1076, 1080):
        for weight in (1, 3, 5, 7):
            total = 2**total_bits
            p, q = ([weight, total - weight, 0], total), ([0, total - weight, weight], total)
            assert _core.hockey_stick(p, q, zero) == weight / total


def test_levels() -> None:
    assert parse_level("0.1").exponent == F(1, 10)
    assert parse_level(0.1).exponent == F(1, 10)
    assert parse_level(LogRatio(6, 4)).ratio == F(3, 2)
    assert parse_delta("1e-6") == F(1, 10**6)
    assert parse_delta(1e-6) == F(1, 10**6)
    with pytest.raises(ValueError, match="level"):
        _core.Level(F(0), F(1))
    with pytest.raises(ValueError, match="level"):
        _core.Level(F(1), F(-1))
    with pytest.raises(ValueError, match="epsilon"):
        _core.exp_bounds(_core.Level(F(1), F(2**21)), 64)


@pytest.mark.parametrize(
    ("text", "ratio"), [("ln(3)", F(3)), (" ln( 3/2 ) ", F(3, 2)), ("ln(1.5)", F(3, 2)), ("ln(1)", F(1))]
)
def test_logarithms_as_text_are_exact_levels(text: str, ratio: F) -> None:
    level = parse_level(text)
    assert (level.ratio, level.exponent) == (ratio, 0)


@pytest.mark.parametrize("text", ["ln(0.5)", "ln(-3)", "ln(0)", "ln()", "ln(x)", "ln(1/0)", "ln(inf)", "ln(1e999999)"])
def test_texts_that_are_no_level_are_shown_whole(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"epsilon='{text}'")):
        parse_level(text)


@pytest.mark.parametrize("text", ["LN(3)", "2*ln(3)", "ln(3))", "ln(ln(3))", "ln 3"])
def test_only_the_logarithm_of_a_number_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        parse_level(text)


def test_no_probability_is_a_logarithm() -> None:
    with pytest.raises(ValueError, match="delta"):
        parse_delta("ln(2)")


# --- the least integer


@pytest.mark.parametrize("answer", [1, 2, 3, 7, 8, 9, 1000])
def test_least_is_where_a_predicate_begins_to_hold(answer: int) -> None:
    assert least(lambda n: n >= answer, 0, answer) == answer
    assert least(lambda n: n >= answer, 0, 2000) == answer
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n >= answer

    assert least(holds, 0, 1, 1024) == answer
    assert max(asked) <= max(1, 2 * answer)
    assert len(asked) <= 2 * answer.bit_length() + 2


def test_more_than_the_most_is_never_asked() -> None:
    with pytest.raises(BudgetError, match="too many"):
        least(lambda n: n > 100, 0, 1, 100, BudgetError("too many"))
    with pytest.raises(ValueError, match="up to 5"):
        least(lambda _: False, 0, 1, 5)
