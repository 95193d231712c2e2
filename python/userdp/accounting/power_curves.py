"""Groups: what a release that is known for one record, or one user, loses about several of them together.

The largest mass under P of a test with a mass under Q, as a function of the latter, is the power curve of a pair. Along
a chain of neighbors tests gain at most one curve a step, so that a group has the iterate: docs/proofs/
exact_composition.md, section 8.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from userdp import _core
from userdp.accounting.losses import (
    MOST_BITS,
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
    p, q = map(tuple, _core.grouped_pair(pair.p, pair.q, size))
    return PairLoss(p, q, attained=False, symmetric=same_curves(p, q))


def _times(level: PrivacyLevel, size: int) -> PrivacyLevel:
    if level.ratio != 1 and size * level.ratio.numerator.bit_length() > MOST_BITS // 64:
        raise ValueError(f"a group of {size} needs a LogRatio of too many digits; give the range as a number")
    return PrivacyLevel(level.ratio**size, level.exponent * size)
