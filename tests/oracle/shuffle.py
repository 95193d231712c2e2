"""Noise behind a shuffler by definition: decimals of 60 digits, all counts one by one. No import of userdp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
ZERO, ONE = Decimal(0), Decimal(1)


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def masses(r: Decimal, p: Decimal, size: int) -> list[Decimal]:
    """P[k] = C(k + r - 1, k) (1 - p)^r p^k for k < size."""
    found = [(r * (ONE - p).ln()).exp()]
    for k in range(1, size):
        found.append(found[-1] * p * (k + r - 1) / k)
    return found


def excess(first: Iterable[Decimal], second: Iterable[Decimal], e: Decimal) -> Decimal:
    """Sum of max(0, a - E b)."""
    return sum((max(ZERO, a - e * b) for a, b in zip(first, second, strict=True)), ZERO)


def shift_delta(r: Decimal, p: Decimal, e: Decimal, size: int = 900) -> Decimal:
    """The larger divergence between Y and Y + 1, up to what is beyond `size`."""
    f = masses(r, p, size)
    shifted = [ZERO, *f[:-1]]
    return max(excess(f, shifted, e), excess(shifted, f, e))


def moved_delta(r: float, p: float, e: float, size: int = 400) -> float:
    """The divergence between (Y1 + 1, Y2) and (Y1, Y2 + 1), in floats, all pairs below `size`."""
    f = [float(mass) for mass in masses(Decimal(r), Decimal(p), size)]
    before = [0.0, *f[:-1]]
    return sum(max(0.0, before[a] * f[b] - e * f[a] * before[b]) for a in range(size) for b in range(size))


def add_remove_delta(n: int, r: Decimal, p: Decimal, e: Decimal, size: int = 900) -> Decimal:
    """The worst divergence when one of n users with input 0 or 1 leaves and takes the noise NB(r / n, p) along."""
    f = masses(r, p, size)
    without = masses(r * (n - 1) / n, p, size) if n > 1 else [ONE] + [ZERO] * (size - 1)
    worst = ZERO
    for joined in (f, [ZERO, *f[:-1]]):
        worst = max(worst, excess(joined, without, e), excess(without, joined, e))
    return worst


def least(enough: Callable[[Decimal], bool], low: Decimal, high: Decimal) -> Decimal:
    """About the least number that is enough, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def convolved(pmfs: Sequence[Sequence[int]]) -> list[int]:
    """Weights of the sum of independent counts."""
    total = [1]
    for pmf in pmfs:
        longer = [0] * (len(total) + len(pmf) - 1)
        for i, a in enumerate(total):
            for j, b in enumerate(pmf):
                longer[i + j] += a * b
        total = longer
    return total


def count_pmf(table: Sequence[int], inputs: Sequence[int]) -> list[int]:
    """Weights of the number of messages when user i sends inputs[i] + Z, Z of the table; a common length."""
    pmf = convolved([[0] * x + list(table) + [0] * (1 - x) for x in inputs])
    return pmf


def integer_divergence(first: Sequence[int], second: Sequence[int], e: Fraction) -> Fraction:
    """Sum of max(0, p - E q) for weights of one total."""
    a, b = e.numerator, e.denominator
    return Fraction(sum(max(0, b * p - a * q) for p, q in zip(first, second, strict=True)), b * sum(first))


def products(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Weights of pairs of independent counts."""
    return [a * b for a in first for b in second]
