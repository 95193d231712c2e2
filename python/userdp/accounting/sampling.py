"""Privacy losses of releases on a secret sample of the users: docs/proofs/exact_composition.md, section 7."""

from __future__ import annotations

from fractions import Fraction

from userdp.accounting.losses import (
    FixedSampleGaussianLoss,
    GaussianLoss,
    PairLoss,
    ReleaseLoss,
    SampledGaussianLoss,
)
from userdp.exact.pmf import whole_multiples


def poisson_sample(part: ReleaseLoss, rate: Fraction) -> ReleaseLoss | None:
    """Of a release on users who are each taken with a probability; none where it has no finite pair."""
    if isinstance(part, GaussianLoss):
        return SampledGaussianLoss(part.mu_squared, rate)
    pair = part.finite(above=True)
    if pair is None:
        return None
    p_total, q_total = sum(pair.p), sum(pair.q)
    mixed = [
        rate * Fraction(x, p_total) + (1 - rate) * Fraction(y, q_total) for x, y in zip(pair.p, pair.q, strict=True)
    ]
    # A mixture is not symmetric, even where the pair is.
    return PairLoss(tuple(whole_multiples(mixed)), pair.q, attained=False)


def fixed_size_sample(part: ReleaseLoss, rate: Fraction) -> ReleaseLoss | None:
    """Of a release on a share of the users, of whom one is replaced; none where it has no finite pair.

    The curve is rate g(1 + (E - 1) / rate) for E >= 1, for the curve g of the largest of both orders, and symmetric.
    """
    if isinstance(part, GaussianLoss):
        return FixedSampleGaussianLoss(part.mu_squared, rate)
    found = part.finite(above=True)
    if found is None:
        return None
    pair = found.both_orders()
    p_total, q_total = sum(pair.p), sum(pair.q)
    infinite = rate * Fraction(sum(x for x, y in zip(pair.p, pair.q, strict=True) if not y), p_total)
    p, q, rest = [infinite, Fraction(0)], [Fraction(0), infinite], 1 - infinite
    for x, y in zip(pair.p, pair.q, strict=True):
        if y and x * q_total > y * p_total:
            # The slope changes by as much, at a level that is nearer to 1.
            below = Fraction(y, q_total)
            above = (1 + rate * (Fraction(x * q_total, y * p_total) - 1)) * below
            p, q, rest = [*p, above, below], [*q, below, above], rest - above - below
    weights = whole_multiples([*p, rest, *q, rest])
    return PairLoss(tuple(weights[: len(p) + 1]), tuple(weights[len(p) + 1 :]), attained=False, symmetric=True)
