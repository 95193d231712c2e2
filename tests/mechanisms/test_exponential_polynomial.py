"""The polynomial behind the weights of the exponential mechanism, proved in fractions to be within 2^-49 of 2^-x.

The method: around the middle c of each short piece of [0, 1], 2^-x = 2^-c e^(-L (x - c)) with L = ln 2, and the Taylor
polynomial of the exponential has the degree of ours. The difference of the two polynomials is bounded coefficient by
coefficient, with enclosures of 2^-c from integer square roots and of L from a series.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from oracle.divergence import exp_bounds
from oracle.exponential import COEFFICIENTS
from userdp import Pmf
from userdp.algorithms import SummedScoreEM

F = Fraction
SCALE = 2**160  # of the enclosures
PIECES = 256
BOUND = F(1, 2**49)
MAX_CANDIDATES = 2**24
RESERVE = F(1, 2**36)

Enclosure = tuple[Fraction, Fraction]


# --- enclosures


@functools.cache
def ln_two() -> Enclosure:
    """Fractions around ln 2 = sum 1 / (n 2^n)."""
    terms = 200
    low = sum(SCALE // (n * 2**n) for n in range(1, terms))
    # Each of the floors loses less than one unit, and the rest of the series is less than 2^-(terms - 1).
    return F(low, SCALE), F(low + terms, SCALE) + F(1, 2 ** (terms - 1))


@functools.cache
def powers_of_half() -> list[Enclosure]:
    """Fractions around 2^-(i / (2 PIECES)) for i = 0, ..., 2 PIECES."""
    # The root by repeated square roots of 1/2: floors below, ceilings above.
    low = high = SCALE // 2
    for _ in range((2 * PIECES).bit_length() - 1):
        low, high = math.isqrt(low * SCALE), math.isqrt(high * SCALE - 1) + 1
    found = [(SCALE, SCALE)]
    for _ in range(2 * PIECES):
        below, above = found[-1]
        found.append((below * low // SCALE, -(-above * high // SCALE)))
    return [(F(below, SCALE), F(above, SCALE)) for below, above in found]


def test_the_enclosures_enclose_and_are_narrow() -> None:
    low, high = ln_two()
    # e^low < 2 < e^high, by partial sums of e^x with and without a bound of the rest.
    assert sum(low**n / math.factorial(n) for n in range(50)) + F(2, math.factorial(50)) < 2
    assert sum(high**n / math.factorial(n) for n in range(50)) > 2
    assert high - low < F(1, 2**150)
    for i, (below, above) in enumerate(powers_of_half()):
        assert above - below < F(1, 2**140)
        if i % 64 == 0:
            steps = 2 * PIECES // 64  # below^steps <= 2^-(i / 64) <= above^steps, all to integer powers
            assert below**steps <= F(1, 2 ** (i // 64)) <= above**steps


# --- the certificate


def horner(coefficients: Sequence[int], fraction: int) -> int:
    """The integer evaluation, at x = fraction / 2^64; a negative intermediate result is an error."""
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = coefficient - (value * fraction >> 64)
        assert 0 <= value < 2**64
    return value


def evaluation_error(coefficients: Sequence[int]) -> int:
    """A bound of |horner(c, 2^64 x) - (c_0 - x (c_1 - x (c_2 - ...)))| on [0, 1)."""
    # Step j cuts off e_j in [0, 1), so that the result has sum_j (-x)^j e_j too much: all even j, or all odd ones.
    return (len(coefficients) - 1 + 1) // 2


def never_underflows(coefficients: Sequence[int]) -> bool:
    """Whether 0 <= value_j <= c_j in every step of `horner`, for every fraction below 2^64.

    By induction from the last step: value_{j+1} <= c_{j+1} <= c_j, and a product with x < 1 is no larger.
    """
    return coefficients[0] < 2**64 and coefficients[-1] >= 0 and all(b <= a for a, b in pairwise(coefficients))


def around(coefficients: Sequence[int], center: Fraction) -> list[Fraction]:
    """The coefficients in h of c_0 - x c_1 + x^2 c_2 - ... at x = center + h."""
    found = [F((-1) ** j * c) for j, c in enumerate(coefficients)]
    for first in range(len(found) - 1):
        for j in range(len(found) - 2, first - 1, -1):
            found[j] += center * found[j + 1]
    return found


@functools.cache
def exponential_around(piece: int, degree: int) -> tuple[list[Enclosure], Fraction]:
    """Enclosures of the Taylor coefficients of 2^63 2^-x around the middle of a piece, and a bound of the rest."""
    (low, high), (power_low, power_high) = ln_two(), powers_of_half()[2 * piece + 1]
    taylor = []
    for k in range(degree + 1):
        scale = F(2**63, math.factorial(k))
        below, above = scale * power_low * low**k, scale * power_high * high**k
        taylor.append((below, above) if k % 2 == 0 else (-above, -below))
    # What is left is at most its first term times e^(L |h|) < 2.
    radius = F(1, 2 * PIECES)
    rest = 2 * 2**63 * power_high * (high * radius) ** (degree + 1) / math.factorial(degree + 1)
    return taylor, rest


def relative_error(coefficients: Sequence[int]) -> Fraction:
    """A bound of |horner(c, 2^64 x) / 2^63 - 2^-x| / 2^-x on [0, 1], proved piece by piece."""
    degree, radius, worst = len(coefficients) - 1, F(1, 2 * PIECES), F(0)
    for piece in range(PIECES):
        taylor, error = exponential_around(piece, degree)
        ours = around(coefficients, F(2 * piece + 1, 2 * PIECES))
        for k, (coefficient, (below, above)) in enumerate(zip(ours, taylor, strict=True)):
            error += max(above - coefficient, coefficient - below) * radius**k
        least = 2**63 * powers_of_half()[2 * piece + 2][0]  # 2^-x falls: its end is its least value
        worst = max(worst, (error + evaluation_error(coefficients)) / least)
    return worst


def test_the_polynomial_is_within_its_bound() -> None:
    worst = relative_error(COEFFICIENTS)
    print(f"relative error at most 2^{math.log2(worst):.3f}")
    assert worst <= BOUND
    assert never_underflows(COEFFICIENTS)


@pytest.mark.parametrize("changed", range(len(COEFFICIENTS)))
@pytest.mark.parametrize("by", [-(2**14), 2**14])
def test_no_coefficient_can_be_wrong(changed: int, by: int) -> None:
    # At x = 1 a unit of any coefficient is a unit of the value, and the bound is 2^13 of them.
    mutant = [c + by if j == changed else c for j, c in enumerate(COEFFICIENTS)]
    assert relative_error(mutant) > BOUND


def test_the_order_of_the_coefficients_is_needed() -> None:
    mutant = list(COEFFICIENTS)
    mutant[9], mutant[10] = mutant[10], mutant[9]
    assert not never_underflows(mutant)
    with pytest.raises(AssertionError):
        horner(mutant, 2**64 - 1)


def test_the_bound_is_not_loose() -> None:
    # Single points come near to it, so that it is a bound of what is meant.
    worst = relative_error(COEFFICIENTS)
    attained = F(0)
    for i, (below, above) in enumerate(powers_of_half()[:-1]):
        value = F(horner(COEFFICIENTS, i * 2**64 // (2 * PIECES)), 2**63)
        attained = max(attained, (value - above) / above, (below - value) / above)
    print(f"a relative error of 2^{math.log2(attained):.3f} is attained")
    assert worst * F(4, 5) < attained <= worst


def test_the_horner_steps_lose_what_they_are_said_to_lose() -> None:
    source = random.Random(3)
    fractions = [0, 1, 127, 2**63, 2**64 - 1, *(source.randrange(2**64) for _ in range(2000))]
    for fraction in fractions:
        x = F(fraction, 2**64)
        exact = sum(c * (-x) ** j for j, c in enumerate(COEFFICIENTS))
        assert abs(horner(COEFFICIENTS, fraction) - exact) < evaluation_error(COEFFICIENTS)


# --- what the bound is for


def test_the_coefficients_are_the_ones_that_are_compiled() -> None:
    core = Path(__file__).parents[2] / "rust" / "core" / "src"
    lists = [
        [int(word.replace("_", "")) for word in re.findall(r"[\d_]+", found)]
        for path in sorted(core.rglob("*.rs"))
        for found in re.findall(r"\bPOLYNOMIAL: \[u64; 11\] = \[([^\]]*)\]", path.read_text(encoding="utf-8"))
    ]
    assert lists == [COEFFICIENTS]


def weight_of(gap: int, selection: SummedScoreEM) -> int:
    """The integer weight of a candidate at this gap, read off the exact pmf beside a candidate at gap 0."""
    pmf = selection.pmf((((0, gap),),))
    assert isinstance(pmf, Pmf)
    numerator = pmf.weights[1]
    # The lower candidate weighs 2^103. N = 2^128 - ceil(2^231 / W), and W moves N by more than 1 a unit.
    low = -(-(2**231) // (2**128 - numerator))
    weight = low - 2**103
    assert 2**128 - -(-(2**231) // low) == numerator
    return weight


@pytest.mark.parametrize("epsilon", ["0.001", 1, "87.9"])
def test_compiled_weights_are_within_the_bounds_of_the_proof(epsilon: int | str) -> None:
    sensitivity = 2**20
    selection = SummedScoreEM((0, 1), lambda user: user[0], epsilon=epsilon, sensitivity=sensitivity)
    rate = selection.core().bits_per_unit
    high = (1 + BOUND) * (1 + F(1, 2**57))
    low = 1 - BOUND - F(1, 2**38)
    source = random.Random(str(epsilon))
    for gap in (0, 1, sensitivity, *(source.randrange(sensitivity + 1) for _ in range(300))):
        bits = rate * gap
        below, above = 1 / exp_bounds(bits * ln_two()[1])[1], 1 / exp_bounds(bits * ln_two()[0])[0]
        found = F(weight_of(gap, selection), 2**103)
        assert low * below <= found <= high * above


def test_the_reserve_covers_everything_that_is_rounded() -> None:
    high = (1 + BOUND) * (1 + F(1, 2**57))
    low = 1 - BOUND - F(1, 2**38)
    selection = F(MAX_CANDIDATES, 2**64) * high / low
    # ln(1 + t) <= t and -ln(1 - t) <= t / (1 - t).
    spent = 2 * (high / low - 1) + selection + selection / (1 - selection)
    print(f"spent {float(spent):.4g} of the reserve {float(RESERVE):.4g}")
    assert spent < RESERVE
