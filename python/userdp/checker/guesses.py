"""Checking counts of guesses again: exact sums of binomial terms, and exact products of wealth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from userdp.checker import work
from userdp.checker.enclosures import exponential
from userdp.checker.running import Checked, checks
from userdp.checker.values import count, fraction, need

COUNTED = ("right", "wrong", "none")
STAKES = [Fraction(k, 16) for k in range(1, 16)] + [1 - Fraction(1, 2**k) for k in range(5, 13)]
MOST_GUESSES = 200_000
"""Of a number that was fixed before."""
MOST_DRAWS = 10**9
MOST_BITS = 96
"""Of the numerator and the denominator of a bound's e^epsilon."""
LARGEST = 100
"""Of a claimed epsilon that guesses may refute."""
PLACES = 256
"""Binary ones, of e^epsilon that is rounded up."""
LEAST_ALPHA = Fraction(1, 2**400)
WEALTH = 2**512
"""More than this is not counted."""


@checks(
    "guesses",
    "mechanism access neighbors test epsilon_level delta canaries sides runs raised holds verdict estimate about",
)
def check_guesses(report: Mapping[str, Any]) -> Checked:
    """Whether the counts refute what the report says that they refute."""
    for name, words in (
        ("access", ("samples", "one-run", "time")),
        ("neighbors", ("replace", "add-remove", "inputs")),
        ("test", ("fixed", "anytime")),
    ):
        need(report[name] in words, f"{name} is unknown")
    need(isinstance(report["mechanism"], str) and isinstance(report["about"], str), "names must be texts")
    access, fixed = report["access"], report["test"] == "fixed"
    delta, holds = fraction(report["delta"]), report["holds"]
    canaries, sides = count(report["canaries"], "canaries"), count(report["sides"], "sides", 1)
    runs, raised = count(report["runs"], "runs", 1), count(report["raised"], "raised")
    need(raised < runs, "a mechanism that only raises is not audited")
    need(access == "samples" or not raised, "runs that raise are counted for samples")
    need(holds is None or holds is False, "holds must be false or null: guesses acquit nobody")
    need(0 <= delta <= 1 and sides <= 2, "delta must be in [0, 1], and sides 1 or 2")
    need((canaries > 0) == (access == "one-run"), "canaries are users of one run")
    need(fixed <= (access == "one-run"), "only in one run the number of guesses is fixed before")
    need((report["neighbors"] == "inputs") == (access == "time"), "inputs are what is timed")
    need(access != "time" or delta == 0, "a claim about time has no delta")
    claim = _claim(report["epsilon_level"])
    alphas, found = [], []
    for name in ("verdict", "estimate"):
        part = report[name]
        need(isinstance(part, dict) and set(part) == {"alpha", "epsilon", *COUNTED}, f"{name} has other fields")
        alpha, counts = fraction(part["alpha"]), [count(part[field], field) for field in COUNTED]
        need(LEAST_ALPHA <= alpha <= Fraction(1, 2), "alpha must be at most 1/2, and not next to nothing")
        work.afford(sum(counts) <= (MOST_GUESSES if fixed else MOST_DRAWS), "too many guesses to check")
        need(runs == 1 if canaries else sum(counts) <= runs, "there are more guesses than runs")
        fits = access != "one-run" or (sum(counts[:2]) <= canaries and not counts[2])
        need(fits, "there are more guesses than canaries")
        # In one run delta takes its share of the error, in many draws its share of the stakes.
        left = alpha - canaries * delta
        margin = Fraction(0) if canaries else sides * delta
        need(left > 0, "alpha is used up by delta")
        bound = _bound(part["epsilon"])
        shown = bound == 1 or refuted_by(fixed, counts, bound, left, margin)
        need(shown, f"{name}: the counts do not refute that epsilon")
        if name == "verdict":
            refuted = claim is not None and refuted_by(fixed, counts, claim, left, margin)
            need((holds is False) == refuted, "holds is not what the counts say")
        alphas.append(alpha)
        found.append(counts)
    # Many draws are counted once; in one run with stops, both parts are beginnings of one row of guesses.
    earlier, later = sorted(found, key=sum)
    begins = all(a <= b for a, b in zip(earlier, later, strict=True))
    need(
        begins if access == "one-run" and not fixed else earlier == later, "the two counts are not of the same guesses"
    )
    need(alphas[0] <= alphas[1], "the verdict must be at least as sure as the estimate")
    return Checked("consistent")


def _multiplier(code: Any) -> tuple[Fraction, Fraction]:
    """The two parts of a level: a fraction, and what e is raised to."""
    need(isinstance(code, dict) and set(code) == {"ratio", "exponent"}, "epsilon has missing or unknown fields")
    ratio, exponent = fraction(code["ratio"]), fraction(code["exponent"])
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    return ratio, exponent


def _bound(code: Any) -> Fraction:
    """e^epsilon of a bound, which is a fraction with few digits."""
    ratio, exponent = _multiplier(code)
    bits = max(ratio.numerator.bit_length(), ratio.denominator.bit_length())
    need(exponent == 0 and bits <= MOST_BITS, "a bound of epsilon must be the logarithm of a short fraction")
    return ratio


def _claim(code: Any) -> Fraction | None:
    """e^epsilon of a claim, rounded up; None beyond `LARGEST`, where no guess refutes anything."""
    ratio, exponent = _multiplier(code)
    if exponent > LARGEST or ratio > 2**LARGEST:
        return None
    if exponent:
        near = exponential(exponent, PLACES + 2 * LARGEST)
        ratio *= Fraction(near.high) / Fraction(2) ** near.places
    if max(ratio.numerator.bit_length(), ratio.denominator.bit_length()) <= PLACES:
        return ratio
    return Fraction(math.ceil(ratio * 2**PLACES), 2**PLACES)


def refuted_by(fixed: bool, counts: list[int], multiplier: Fraction, alpha: Fraction, margin: Fraction) -> bool:
    """Whether so many right guesses are that improbable where E is at most `multiplier`.

    `counts` are guesses that were right and wrong, and draws without a guess.
    """
    right, wrong, none = counts
    if fixed:
        # q on a grid of 2^-40, rounded up.
        chance = -(-multiplier * 2**40 // (1 + multiplier))
        if chance >= 2**40:
            return False
        return _tail(right + wrong, right, chance) <= alpha
    most, total = 2 * multiplier + margin, Fraction(0)
    length = sum(map(int.bit_length, (*most.as_integer_ratio(), *alpha.as_integer_ratio())))
    work.spend(len(STAKES) * (1e5 + 10 * work.product(length)), "a claim of fewer digits takes less")
    for stake in STAKES:
        gain, rest = 1 + stake * (2 - margin) / most, 1 - stake * margin / most
        total += min(_product(((gain, right), (1 - stake, wrong), (rest, none))), Fraction(WEALTH))
    return total >= len(STAKES) / alpha


def _product(powers: tuple[tuple[Fraction, int], ...]) -> Fraction:
    """A product of powers in units of 2^-640, rounded down by less than 2^-100 of itself unless next to nothing."""
    digits, place = 1, 0
    for base, times in powers:
        if not times or base == 1:
            continue
        shift = 512
        unit = (base.numerator << shift) // base.denominator
        value, lowest = 1, 0
        for bit in bin(times)[2:]:
            value, lowest = value * value, 2 * lowest
            if bit == "1":
                value, lowest = value * unit, lowest - shift
            cut = max(value.bit_length() - 512, 0)
            value, lowest = value >> cut, lowest + cut
        digits, place = digits * value, place + lowest
    size = digits.bit_length() + place
    if size > 520:
        return Fraction(WEALTH)
    return Fraction(0) if size < -640 else Fraction(digits) * Fraction(2) ** place


def _tail(trials: int, least: int, chance: int) -> Fraction:
    """At least the probability of `least` or more successes, where one has probability chance / 2^40.

    Below the mean it is taken for 1. The terms fall, and the sum ends when all that are left make no difference.
    """
    other = 2**40 - chance
    if least * 2**40 <= trials * chance:
        return Fraction(1)
    # Terms of `trials` bits and 512 more. Above the mean they fall by 2^-200 within 17 standard deviations.
    work.spend(
        min(trials - least + 1, 10 * math.isqrt(trials) + 300) * 4 * work.product(trials + 600, 64)
        + 20 * work.product(trials)
    )
    digits, place = math.comb(trials, least), -40 * trials
    for part, times in ((chance, least), (other, trials - least)):
        value, lowest = 1, 0
        for bit in bin(times)[2:] if times else "":
            value, lowest = value * value, 2 * lowest
            value *= part if bit == "1" else 1
            cut = max(value.bit_length() - 512, 0)
            value, lowest = -(-value >> cut), lowest + cut
        digits, place = digits * value, place + lowest
    term, total = digits << 512, 0
    place -= 512
    for k in range(least, trials + 1):
        total += term
        term = -(-term * (trials - k) * chance // ((k + 1) * other))
        if term << 200 < total:
            total += term * (trials - k)
            break
    size = total.bit_length() + place
    return Fraction(total) * Fraction(2) ** place if size > -1000 else LEAST_ALPHA / 2
