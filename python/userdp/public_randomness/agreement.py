"""How often two users with different distributions draw the same item by shared randomness, exactly.

Distributions are lists of integer weights here, so that everything is exact whatever their totals. Proofs:
docs/proofs/correlated_sampling.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from userdp.exact.numbers import short_repr
from userdp.exact.pmf import Pmf, PmfLike, aligned, fractions_of, masses_of
from userdp.exceptions import BudgetError

Distribution: TypeAlias = "PmfLike | Mapping[Hashable, Any]"
Method: TypeAlias = Literal["race", "darts", "inverse-cdf"]
METHODS = ("race", "darts", "inverse-cdf")

MAX_BITS = 1 << 20
"""Bits of the common denominator of an exact agreement: beyond them arithmetic takes many seconds."""
MAX_PAIRS = 4_000_000


def disagreement_probability(p: Distribution, q: Distribution, *, method: Method = "race") -> Fraction:
    """The exact probability, over the public seed, that draws from p and from q by shared randomness differ.

    With d the total variation distance and sums over all items x:

    * ``"race"``: 1 - sum 1 / (sum_y max(p_y / p_x, q_y / q_x)) over x with p_x, q_x > 0; never more than by darts;
    * ``"darts"``: (2d - sum |p_x - q_x| min(p_x, q_x)) / (1 + d), at most 2d / (1 + d);
    * ``"inverse-cdf"``: one uniform number, and the item in whose part of [0, 1) it falls, in the order of the list: d
      for two items, up to (k - 1) d for k of them.

    No method can do better than d.

    Parameters
    ----------
    p, q : array-like of shape (k,), Pmf, or mapping from item to probability
        Distributions over the same items. Floats are the dyadic numbers they are, must sum to 1 within 1e-9, and are
        then divided by their exact sum; ints, Fractions and decimal strings are exact.
    method : {"race", "darts", "inverse-cdf"}
        How both users draw: see `CorrelatedSampler`.

    Returns
    -------
    Fraction
        From 0 to 1.

    Raises
    ------
    BudgetError
        For a race of so many different ratios p_x / q_x that the exact fraction has over 2**20 bits.

    Notes
    -----
    [GKM21, Theorem 8] (the bound 2d); the exact distributions, and the proof that the race is never worse than darts,
    are in docs/proofs/correlated_sampling.md. The result is of the ideal draws: 64 bits an item and rounding move the
    race by less than k * 2**-58 + 2**-38, and quantized weights move darts by less than 2 k / total.

    Examples
    --------
    >>> disagreement_probability(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
    Fraction(5, 12)
    >>> disagreement_probability({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}, method="darts")
    Fraction(0, 1)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {short_repr(method)}")
    _, a, b = read_pair(p, q)
    if method == "race":
        return 1 - _agreement_of_race(a, b)
    return disagreement_of_darts(a, b) if method == "darts" else _inverse_cdf(a, b)


def joint_distribution(p: Distribution, q: Distribution) -> dict[tuple[Any, Any], Fraction]:
    """The exact joint distribution of the two items that users with distributions p and q draw by shared darts.

    Parameters
    ----------
    p, q
        As for `disagreement_probability`.

    Returns
    -------
    dict from (x, y) to Fraction
        Positive probabilities only, of the item x drawn from p and y drawn from q: indices, or the keys of mappings and
        the outputs of a Pmf. The marginals are p and q exactly.

    Raises
    ------
    BudgetError
        For over 4,000,000 pairs.

    Examples
    --------
    >>> joint_distribution(["1/2", "1/2"], ["1", "0"])
    {(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 2)}
    """
    items, a, b = read_pair(p, q)
    total_a, total_b = sum(a), sum(b)
    p_more = {x: max(0, w * total_b - v * total_a) for x, (w, v) in enumerate(zip(a, b, strict=True))}
    q_more = {x: max(0, v * total_a - w * total_b) for x, (w, v) in enumerate(zip(a, b, strict=True))}
    if len(items) ** 2 > MAX_PAIRS:
        raise BudgetError(
            f"{len(items)} items have {len(items) ** 2:,} pairs, over {MAX_PAIRS:,}; disagreement_probability needs "
            "none of them"
        )
    # In units of 1 / (whole * some), where some / whole = 1 + d: first darts that only one user takes leave the other
    # one with a fresh draw.
    whole = total_a * total_b
    some = whole + sum(p_more.values())
    joint = {}
    for x, y in itertools.product(range(len(items)), repeat=2):
        weight = p_more[x] * b[y] * total_a + q_more[y] * a[x] * total_b
        if x == y:
            weight += min(a[x] * total_b, b[x] * total_a) * whole
        if weight:
            joint[items[x], items[y]] = Fraction(weight, whole * some)
    return joint


def read_pair(p: Distribution, q: Distribution) -> tuple[tuple[Any, ...], list[int], list[int]]:
    """Items in the order of p, and integer weights of both distributions."""
    if isinstance(p, Mapping) != isinstance(q, Mapping):
        raise TypeError("p and q must both be mappings from item to probability, or neither")
    items: tuple[Any, ...] | None = None
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        if p.keys() != q.keys():
            strange = next(iter(p.keys() ^ q.keys()))
            raise ValueError(
                f"p and q are distributions on different supports: only one of them has {short_repr(strange)} "
                "(an item that cannot happen needs the probability 0)"
            )
        items = tuple(p)
        p, q = list(p.values()), [q[item] for item in items]
    elif isinstance(p, Pmf) and isinstance(q, Pmf):
        items = p.outputs
        try:
            q = aligned(q, items)
        except ValueError:
            raise ValueError("p and q are distributions on different supports: their outputs differ") from None
    a, b = _integers(p, "p"), _integers(q, "q")
    if len(a) != len(b):
        raise ValueError(
            f"p and q are distributions on different supports: p has {len(a)} probabilities, q has {len(b)}"
        )
    return tuple(range(len(a))) if items is None else items, a, b


def _integers(distribution: Any, name: str) -> list[int]:
    masses = masses_of(distribution, name)
    if isinstance(masses, tuple):
        return masses[0]
    with np.errstate(invalid="ignore"):
        is_distribution = masses.size > 0 and abs(masses.sum() - 1) <= 1e-9 and masses.min() >= 0  # false for NaN
    if not is_distribution:
        raise ValueError(f"{name}: probabilities must be finite numbers >= 0 that sum to 1 within 1e-9")
    fractions = fractions_of(masses)
    scale = math.lcm(*{mass.denominator for mass in fractions})
    return [mass.numerator * (scale // mass.denominator) for mass in fractions]


def _agreement_of_race(a: Sequence[int], b: Sequence[int]) -> Fraction:
    terms = race_terms(a, b)
    bits = sum(bottom.bit_length() for _, bottom in terms)
    if bits > MAX_BITS:
        raise BudgetError(
            f"the exact agreement of a race of {len(terms):,} different ratios has about {bits:,} bits, over "
            f"{MAX_BITS:,}; method='darts' gives a bound by much shorter numbers"
        )
    return Fraction(*_sum(terms)) if terms else Fraction(0)


def race_terms(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Quotients whose sum is the probability that races of two lists of integer weights have the same winner."""
    # Sorted by a_x / b_x, the largest first, max(a_y / a_x, b_y / b_x) is a_y / a_x for all y up to x's class of equal
    # ratios and b_y / b_x behind it: prefix sums A and suffix sums B give every term a_x b_x / (A b_x + B a_x).
    # Different ratios differ by at least 2**-shift, so that rounding down keeps them apart and in order.
    classes: dict[int, tuple[int, int]] = {}
    prefix, shift = 0, 2 * max(b, default=0).bit_length()
    for weight, other in zip(a, b, strict=True):
        if not other:
            prefix += weight
        elif weight:
            ratio = (weight << shift) // other
            so_far = classes.get(ratio, (0, 0))
            classes[ratio] = so_far[0] + weight, so_far[1] + other
    suffix, terms = sum(b), []
    for ratio in sorted(classes, reverse=True):
        weight, other = classes[ratio]
        prefix, suffix = prefix + weight, suffix - other
        terms.append((weight * other, prefix * other + suffix * weight))
    return terms


def _sum(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """The sum of quotients, halves first, so that only few additions are of long numbers."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    (a, b), (c, d) = _sum(terms[:middle]), _sum(terms[middle:])
    return a * d + b * c, b * d


def disagreement_of_darts(a: Sequence[int], b: Sequence[int]) -> Fraction:
    """The probability that darts of two lists of integer weights hit different items first."""
    total_a, total_b = sum(a), sum(b)
    pairs = [(weight * total_b, other * total_a) for weight, other in zip(a, b, strict=True)]
    whole = total_a * total_b
    twice = sum(abs(x - y) for x, y in pairs)  # 2 d whole
    less = sum(abs(x - y) * min(x, y) for x, y in pairs)
    return Fraction(2 * (twice * whole - less), whole * (2 * whole + twice))


def _inverse_cdf(a: Sequence[int], b: Sequence[int]) -> Fraction:
    total_a, total_b = sum(a), sum(b)
    ends_a = [end * total_b for end in itertools.accumulate(a)]
    ends_b = [end * total_a for end in itertools.accumulate(b)]
    # Both draw x where its two parts of [0, 1) overlap.
    overlap, low = 0, 0
    for high_a, high_b in zip(ends_a, ends_b, strict=True):
        overlap += max(0, min(high_a, high_b) - low)
        low = max(high_a, high_b)
    return 1 - Fraction(overlap, total_a * total_b)
