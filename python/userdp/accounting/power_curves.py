"""Groups: what a release that is known for one record, or one user, loses about several of them together.

The largest mass under P of a test with a mass under Q, as a function of the latter, is the power curve of a pair. Along
a chain of neighbors tests gain at most one curve a step, so that a group has the iterate: docs/proofs/
exact_composition.md, section 8.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from userdp.accounting.losses import (
    MOST_BITS,
    MOST_LINES,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    same_curves,
)
from userdp.exact.numbers import PrivacyLevel
from userdp.exact.pmf import whole_multiples
from userdp.exceptions import BudgetError

Points: TypeAlias = "list[tuple[Fraction, Fraction]]"
"""Corners (mass under Q, mass under P) of a concave, increasing function on [0, 1]."""

KEPT_BITS = 1200
"""Corners with longer denominators are rounded, so that the function rises by at most 2^-1200 a step."""
LONGEST = 4096


def group_of(part: ReleaseLoss, size: int, *, one_sided: bool) -> ReleaseLoss | None:
    """Of a release in which so many records, or users, change; none where nothing is known.

    One-sided neighbors (with a record, without) keep their order along a chain; others may come in any.
    """
    if size == 1:
        return part
    if isinstance(part, GaussianLoss):
        return replace(part, mu_squared=part.mu_squared * size**2)
    if isinstance(part, (DiscreteLaplaceLoss, DiscreteGaussianLoss)):
        return replace(part, shift=part.shift * size)
    if isinstance(part, BoundedRangeLoss):
        return BoundedRangeLoss(_times(part.range, size))
    if isinstance(part, LaplaceLoss):
        return LaplaceLoss(_times(part.epsilon, size))
    if isinstance(part, PureLoss) and not part.delta:
        # The iterate of randomized response is discrete Laplace noise.
        return (
            part if part.epsilon == PrivacyLevel(Fraction(1), Fraction(0)) else DiscreteLaplaceLoss(part.epsilon, size)
        )
    if not isinstance(part, (PairLoss, PureLoss)):
        return None
    pair = part.finite(above=True)
    if pair is None:
        return None
    if not one_sided:
        pair = pair.both_orders()
    if len(pair.p) * size > MOST_LINES:
        raise BudgetError(
            f"a group of {size} has up to {len(pair.p) * size} outcomes, where {MOST_LINES} are allowed; merge outputs "
            "or give the release by its parameters"
        )
    p, q = pair_of(iterated(power_curve(pair.p, pair.q), size))
    return PairLoss(p, q, attained=False, symmetric=same_curves(p, q))


def _times(level: PrivacyLevel, size: int) -> PrivacyLevel:
    if level.ratio != 1 and size * level.ratio.numerator.bit_length() > MOST_BITS // 64:
        raise ValueError(f"a group of {size} needs a LogRatio of too many digits; give the range as a number")
    return PrivacyLevel(level.ratio**size, level.exponent * size)


def power_curve(p: Sequence[int], q: Sequence[int]) -> Points:
    """The corners of the power curve of a pair by integer weights, from 0 to 1."""
    total_p, total_q = sum(p), sum(q)
    atoms = sorted(((Fraction(x, y), x, y) for x, y in zip(p, q, strict=True) if x and y), reverse=True)
    found, a, b = [], sum(x for x, y in zip(p, q, strict=True) if not y), 0
    for x, y in [(0, 0), *((x, y) for _, x, y in atoms)]:
        a, b = a + x, b + y
        found.append((Fraction(b, total_q), Fraction(a, total_p)))
    return _corners([*found, (Fraction(1), Fraction(1))])


def value(curve: Points, alpha: Fraction) -> Fraction:
    """The largest mass under P of a randomized test with a mass under Q."""
    index = bisect_right(curve, alpha, key=lambda corner: corner[0])
    (a, below), (b, above) = curve[index - 1], curve[min(index, len(curve) - 1)]
    return below if a == b else below + (above - below) * (alpha - a) / (b - a)


def iterated(curve: Points, size: int) -> Points:
    """The curve applied so often, by doubling; rounded upwards where its corners would get too long."""
    last = curve
    for digit in f"{size:b}"[1:]:
        last = _after(last, last)
        if digit == "1":
            last = _after(curve, last)
    return last


def _after(outer: Points, inner: Points) -> Points:
    """One curve applied to the values of another."""
    places = {alpha for alpha, _ in inner}
    places.update(_inverse(inner, alpha) for alpha, _ in outer if alpha > inner[0][1])
    last = _corners([(alpha, value(outer, value(inner, alpha))) for alpha in sorted(places)])
    if any(max(a.denominator, b.denominator).bit_length() > LONGEST for a, b in last):
        last = _rounded(last)
    return last


def _inverse(curve: Points, beta: Fraction) -> Fraction:
    """The least alpha at which the curve is at a value."""
    index = bisect_left(curve, beta, key=lambda corner: corner[1])
    (a, below), (b, above) = curve[index - 1], curve[index]
    return a + (b - a) * (beta - below) / (above - below)


def _rounded(curve: Points) -> Points:
    """A concave function above: corners move to the left and up, and then their hull is taken."""
    unit = 1 << KEPT_BITS
    moved = [(Fraction(math.floor(a * unit), unit), Fraction(math.ceil(b * unit), unit)) for a, b in curve]
    return _corners([*moved, (Fraction(1), Fraction(1))])


def _corners(points: Points) -> Points:
    """The corners of the least concave function above points."""
    kept: Points = []
    for a, b in sorted(points):
        if kept and kept[-1][0] == a:
            kept.pop()  # the last of these is the highest
        while len(kept) > 1:
            (a0, b0), (a1, b1) = kept[-2:]
            if (b1 - b0) * (a - a1) > (b - b1) * (a1 - a0):
                break
            kept.pop()
        kept.append((a, b))
    return kept


def pair_of(curve: Points) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pair with this power curve, by integer weights."""
    p = [curve[0][1], *(b1 - b0 for (_, b0), (_, b1) in pairwise(curve))]
    q = [Fraction(0), *(a1 - a0 for (a0, _), (a1, _) in pairwise(curve))]
    return tuple(whole_multiples(p)), tuple(whole_multiples(q))
