"""Certificates of tables: the checks that proofs/certificate.v proves to imply privacy, made again in fractions.

Each function below is the one of the same purpose in Coq, on the same numbers, and gives the same verdict. Of e^x only
its power series is used: it is above its partial sums, and what n terms leave out is at most twice the next one where
2 x <= n + 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from userdp.checker import work
from userdp.checker.running import Checked, checks
from userdp.checker.values import count, fraction, need

MOST_ENTRIES = 1 << 16
"""Of a table."""
MOST_BITS = 1 << 13
"""Of a number in a certificate."""
MOST_SERIES_BITS = 1 << 17
"""Of the common denominator of a partial sum."""
MOST_SENSITIVITY = 1 << 16
"""Of a selection: the powers of its witness are taken one by one."""

CALIBRATIONS = ("optimal", "tight", "paper")
PARTS = {
    **dict.fromkeys(CALIBRATIONS, ("noise_delta", "inner_ratio", "inner_exponent", "inner_delta", "deletions")),
    "noise": (),
    "selection": ("sensitivity", "candidates", "beta", "low", "high", "theta", "precision"),
    "pair": (),
}
"""What a certificate of each subject has beside the other fields."""
WHOLE_PARTS = frozenset(("deletions", "sensitivity", "candidates", "low", "high", "precision"))
"""Those that are integers."""


class Level(NamedTuple):
    """E = ratio e^exponent."""

    ratio: Fraction
    exponent: Fraction


class Numbers(NamedTuple):
    """What a certificate says."""

    level: Level
    delta: Fraction
    factor: Fraction
    terms: int
    total: int
    table: list[int]
    second: list[int] | None
    parts: dict[str, Fraction]


def _number(value: Any, name: str) -> Fraction:
    need(isinstance(value, str), f"{name} is no number as text")
    work.afford(len(value) <= MOST_BITS // 3, f"{name} is too long to be checked")
    number = fraction(value)
    need(number >= 0, f"{name} is negative")
    return number


def _whole(value: Any, name: str) -> int:
    number = _number(value, name)
    need(number.denominator == 1, f"{name} must be an integer")
    return number.numerator


def _entries(values: Any, name: str) -> list[int]:
    need(isinstance(values, list) and len(values) >= 1, f"{name} must have entries")
    work.afford(len(values) <= MOST_ENTRIES, f"{name} has over {MOST_ENTRIES} entries, too many to be checked")
    return [_whole(value, f"an entry of {name}") for value in values]


def _level(value: Any) -> Level:
    need(isinstance(value, dict) and set(value) == {"ratio", "exponent"}, "epsilon must have a ratio and an exponent")
    return Level(_number(value["ratio"], "the ratio of epsilon"), _number(value["exponent"], "the exponent of epsilon"))


def read_numbers(report: Mapping[str, Any]) -> Numbers:
    """Read the numbers of a certificate; that they fit each other is not looked at."""
    subject = report["subject"]
    need(isinstance(subject, str) and subject in PARTS, f"unknown subject {subject!r:.40}")
    stated = report["parts"]
    need(isinstance(stated, dict) and set(stated) == set(PARTS[subject]), "parts are missing or unknown")
    parts = {name: _number(value, name) for name, value in stated.items()}
    need(all(parts[name].denominator == 1 for name in WHOLE_PARTS & set(parts)), "a part that counts is no integer")
    second = report["second"]
    need((second is None) == (subject != "pair"), "a second table goes with a pair, and with nothing else")
    return Numbers(
        _level(report["epsilon"]),
        _number(report["delta"], "delta"),
        _number(report["factor"], "factor"),
        count(report["terms"], "terms", 1),
        _whole(report["total"], "total"),
        _entries(report["table"], "table"),
        None if second is None else _entries(second, "second"),
        parts,
    )


# Levels ------------------------------------------------------------------------------------------------------


def series(x: Fraction, terms: int, top: Fraction) -> Fraction:
    """1 + x + x^2 / 2! + ..., so many terms, and `top` times the next one."""
    size = (x.numerator.bit_length() + x.denominator.bit_length() + terms.bit_length()) * terms
    work.afford(size <= MOST_SERIES_BITS, "epsilon or terms are too long to be checked")
    total = top
    for n in range(terms, 0, -1):
        total = 1 + x / n * total
    return total


def lower(level: Level, terms: int) -> Fraction:
    """A number that E is not below."""
    return level.ratio * series(level.exponent, terms, Fraction(0))


def upper(level: Level, terms: int) -> Fraction:
    """A number that E is not above."""
    need(2 * level.exponent <= terms + 1, "terms are too few for a bound of e^epsilon from above")
    return level.ratio * series(level.exponent, terms, Fraction(2))


# Tables ------------------------------------------------------------------------------------------------------


def _check_refusal(table: Sequence[int], total: int, factor: Fraction, delta: Fraction) -> None:
    top, den = factor.numerator, factor.denominator
    slack = delta * total * den // 1
    for a, b in itertools.pairwise(table):
        need(a <= b <= total, "refusals fall, or are above 1")
        need(b * den <= top * a + slack, "refusals rise by more than the level allows")
        need((total - a) * den <= top * (total - b) + slack, "answers fall by more than the level allows")
    need(table[-1] == total, "the last size is not refused for certain")


def _check_laplace(table: Sequence[int], total: int, factor: Fraction, delta: Fraction) -> None:
    top, den = factor.numerator, factor.denominator
    for a, b in itertools.pairwise(table):
        need(a * den <= top * b and b * den <= top * a, "two neighboring probabilities differ by more than the level")
    need(max(table[0], table[-1]) * den <= delta * total * den // 1, "an end is more likely than delta allows")
    need(sum(table) == total, "the probabilities do not sum to 1")


def _check_calibration(numbers: Numbers, subject: str) -> None:
    parts = numbers.parts
    inner = Level(parts["inner_ratio"], parts["inner_exponent"])
    need(numbers.factor >= 1 and inner.ratio >= 1, "a factor is below 1")
    above = upper(inner, numbers.terms)
    need(numbers.factor * above**2 <= lower(numbers.level, numbers.terms), "the levels are more than epsilon together")
    need(parts["noise_delta"] + (1 + above) * parts["inner_delta"] <= numbers.delta, "the deltas are more than delta")
    largest = len(numbers.table) - 1
    if subject == "optimal":
        need(2 * largest <= parts["deletions"] + 2, "too few users are left out")
        _check_refusal(numbers.table, numbers.total, numbers.factor, parts["noise_delta"])
    else:
        need(2 * largest <= parts["deletions"], "too few users are left out")
        _check_laplace(numbers.table, numbers.total, numbers.factor, parts["noise_delta"])


def _check_factor(numbers: Numbers) -> None:
    need(numbers.factor <= lower(numbers.level, numbers.terms), "the factor is not certainly at most e^epsilon")


def _check_noise(numbers: Numbers, _: str) -> None:
    need(numbers.factor >= 1, "the factor is below 1")
    _check_factor(numbers)
    _check_laplace(numbers.table, numbers.total, numbers.factor, numbers.delta)


def _check_selection(numbers: Numbers, _: str) -> None:
    parts, total = numbers.parts, numbers.total
    beta, theta = parts["beta"], parts["theta"]
    sensitivity, candidates, low, high, precision = (
        int(parts[name]) for name in ("sensitivity", "candidates", "low", "high", "precision")
    )
    need(numbers.delta == 0, "a selection has no delta")
    need(min(precision, low) >= 1 and 0 < beta <= 1 and theta < 1, "a witness is out of its range")
    work.afford(sensitivity <= MOST_SENSITIVITY, "the sensitivity is too large to be checked")
    _check_factor(numbers)
    below = above = precision
    for weight in numbers.table:
        need(low * above <= weight * precision <= high * below, "a weight is not within the bounds of its power")
        need(candidates * high * theta.denominator <= theta.numerator * total * weight, "theta is too small")
        below, above = below * beta.numerator // beta.denominator, above * beta.numerator // beta.denominator + 1
    power = precision
    for _step in range(2 * sensitivity):
        power = power * beta.numerator // beta.denominator
    spent = (1 + theta) * high**2 * precision
    need(spent <= numbers.factor * (1 - theta) * low**2 * power, "the weights fall by more than the level allows")


def _check_pair(numbers: Numbers, _: str) -> None:
    _check_factor(numbers)
    p, q, total = numbers.table, numbers.second, numbers.total
    assert q is not None
    need(len(p) == len(q), "the two distributions have different numbers of outputs")
    need(sum(p) == total == sum(q), "the probabilities do not sum to 1")
    top, den, slack = numbers.factor.numerator, numbers.factor.denominator, numbers.delta * total // 1
    for first, second in ((p, q), (q, p)):
        excess = sum(max(0, den * a - top * b) for a, b in zip(first, second, strict=True))
        need(excess <= den * slack, "the divergence is above delta")


_CHECKS: dict[str, Callable[[Numbers, str], None]] = {
    **dict.fromkeys(CALIBRATIONS, _check_calibration),
    "noise": _check_noise,
    "selection": _check_selection,
    "pair": _check_pair,
}


def check_numbers(subject: str, numbers: Numbers) -> None:
    """Raise `Problem` unless the theorem about the subject follows from the numbers."""
    need(numbers.total >= 1, "total must be at least 1")
    entry = max(map(int.bit_length, (numbers.total, *numbers.table, *map(int, numbers.parts.values()))))
    exact = (numbers.factor, numbers.delta, *numbers.parts.values())
    wide = max(entry, *(part.bit_length() for number in exact for part in number.as_integer_ratio()))
    powers = 2 * min(int(numbers.parts.get("sensitivity", 0)), MOST_SENSITIVITY)
    work.spend((8 * len(numbers.table) + powers) * work.product(entry, 2 * wide), "a smaller table takes less")
    _CHECKS[subject](numbers, subject)


@checks("certificate", "subject epsilon delta factor terms total table second parts", certain=True)
def check_certificate(report: Mapping[str, Any]) -> Checked:
    """Check all numbers of a certificate; nothing else is needed for its theorem."""
    numbers = read_numbers(report)
    need(0 <= numbers.delta < 1, "delta must be in [0, 1)")
    need(numbers.level.ratio >= 1, "epsilon must be >= 0")
    check_numbers(report["subject"], numbers)
    return Checked("established")
