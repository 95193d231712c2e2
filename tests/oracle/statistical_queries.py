"""Statistical-query learners in fractions, one row at a time, from the description alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

Row = Sequence[Fraction | int]
Distribution = Mapping[tuple[tuple[Fraction | int, ...], int], Fraction]
Answer = Callable[[Fraction], Fraction]
"""What is answered when the mean is this."""


def pmf_of_rows(rows: Sequence[tuple[tuple[Fraction | int, ...], int]]) -> Distribution:
    pmf: dict[tuple[tuple[Fraction | int, ...], int], Fraction] = {}
    for row in rows:
        pmf[row] = pmf.get(row, Fraction(0)) + Fraction(1, len(rows))
    return pmf


def mean(pmf: Distribution, value: Callable[[Row, int], Fraction | int | bool]) -> Fraction:
    return sum((weight * Fraction(value(x, y)) for (x, y), weight in pmf.items()), Fraction(0))


def rounded(u: Fraction, intervals: int, offset: Fraction) -> Fraction:
    return Fraction(math.floor(intervals * u + offset), intervals)


def disagreement(u: Fraction, v: Fraction, intervals: int) -> Fraction:
    """The measure of the offsets at which u and v are rounded to different numbers, piece by piece."""
    ends = {Fraction(0), Fraction(1)}
    for number in (u, v):
        ends.add(-(intervals * number) % 1)
    cuts = sorted(ends)
    return sum(
        (
            right - left
            for left, right in pairwise(cuts)
            if rounded(u, intervals, (left + right) / 2) != rounded(v, intervals, (left + right) / 2)
        ),
        Fraction(0),
    )


# --- decision lists


def terms(d: int, width: int) -> list[dict[int, int]]:
    found = [
        dict(zip(features, wanted, strict=True))
        for size in range(1, width + 1)
        for features in combinations(range(d), size)
        for wanted in product((1, 0), repeat=size)
    ]
    return [*found, {}]


def holds(term: Mapping[int, int], x: Row) -> bool:
    return all((x[feature] > Fraction(1, 2)) == bool(wanted) for feature, wanted in term.items())


def predict_list(rules: Sequence[tuple[Mapping[int, int], int]], x: Row) -> int:
    return next((label for term, label in rules if holds(term, x)), 0)


def decision_list(
    pmf: Distribution, d: int, width: int, length: int, tolerance: Fraction, answer: Answer
) -> tuple[list[tuple[dict[int, int], int]], int]:
    """The list that is learned, and the number of queries."""
    listed = terms(d, width)
    rules: list[tuple[dict[int, int], int]] = []
    asked = 0

    def reached(x: Row, before: int) -> bool:
        return not any(holds(term, x) for term, _ in rules[:before])

    def accepts(term: dict[int, int], label: int, before: int) -> bool:
        nonlocal asked
        asked += 1
        return answer(mean(pmf, lambda x, y: reached(x, before) and holds(term, x) and y != label)) <= tolerance

    for number in range(1, length + 1):
        before = len(rules)
        for label in (0, 1):
            if accepts({}, label, before):
                return [*rules, ({}, label)], asked
        if number == length:
            break
        for term in listed[:-1]:
            if any(term == used for used, _ in rules[:before]):
                continue
            for label in (0, 1):
                if accepts(term, label, before):
                    rules.append((term, label))
                    break
        if len(rules) == before:
            break
    before = len(rules)
    asked += 1
    ones_minus_zeros = mean(pmf, lambda x, y: (1 if y else -1) if reached(x, before) else 0)
    return [*rules, ({}, 0 if answer(ones_minus_zeros) <= 0 else 1)], asked


# --- margin perceptron


def perceptron(
    pmf: Distribution, d: int, alpha: Fraction, tolerance: Fraction, rounds: int, answer: Answer
) -> tuple[list[Fraction], int, bool]:
    """Weights, queries, and whether it stopped by itself. Rows are within the unit ball."""
    w = [Fraction(0)] * d
    asked = 0
    for _ in range(rounds):
        now = list(w)

        def wrong(x: Row, y: int, now: list[Fraction] = now) -> bool:
            side = sum(a * b for a, b in zip(now, x, strict=True))
            return (side if y else -side) <= 0

        asked += 1
        if answer(mean(pmf, wrong)) <= alpha - tolerance:
            return w, asked, True
        for j in range(d):
            asked += 1
            pull = mean(pmf, lambda x, y, j=j: (x[j] if y else -x[j]) if wrong(x, y) else 0)  # type: ignore[misc]
            w[j] += answer(pull)
    return w, asked, False
