"""Whether the curve of one release is nowhere below that of another: what a budget for the one admits of the other.

Curves h_E(P, Q) are compared at all E >= 0 (docs/proofs/exact_composition.md, section 9). At E >= 1 alone it would
not be enough: products of pairs that dominate there need not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from userdp import _core
from userdp.accounting.losses import (
    MOST_LINES,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FixedSampleGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    SampledGaussianLoss,
    power,
)
from userdp.accounting.refinement import Parts, Refined
from userdp.accounting.zcdp import bounded_range_to_mu2
from userdp.exact.epsilon import as_epsilon, at_most
from userdp.exact.numbers import PrivacyLevel
from userdp.exceptions import BudgetError

MOST_TERMS = 2**18
LOOKED_AT = tuple(Fraction(1, 10**power) for power in (2, 6))
"""Levels with these deltas are looked at to see that a release is not dominated."""
NEAR = Fraction(1, 50)


def pair_dominates(above: PairLoss, below: PairLoss) -> bool:
    """Whether it does, exactly."""
    return _core.pair_dominates(above.p, above.q, below.p, below.q)


def release_dominates(above: ReleaseLoss, below: ReleaseLoss) -> bool | None:
    """Whether one release's curve is nowhere below another's; none where that is not decided."""
    if above == below:
        return True
    if (
        isinstance(above, PureLoss)
        and isinstance(below, PureLoss)
        and at_most(below.epsilon, above.epsilon)
        and below.delta <= above.delta
    ):
        return True
    if isinstance(above, BoundedRangeLoss):
        return _range_dominates(above.range, below)
    if isinstance(above, LaplaceLoss) and isinstance(below, LaplaceLoss):
        return _decided(below.epsilon, above.epsilon)
    if isinstance(above, (GaussianLoss, SampledGaussianLoss, FixedSampleGaussianLoss)):
        return _gaussian_dominates(above, below)
    if isinstance(above, DiscreteGaussianLoss) and isinstance(below, DiscreteGaussianLoss):
        return above.shift >= below.shift if above.sigma_squared == below.sigma_squared else None
    if (
        isinstance(above, DiscreteLaplaceLoss)
        and isinstance(below, DiscreteLaplaceLoss)
        and at_most(below.rate, above.rate)
        and below.shift <= above.shift
    ):
        return True
    if (
        isinstance(above, DiscreteLaplaceLoss)
        and isinstance(below, PureLoss)
        and not below.delta
        and at_most(below.epsilon, above.rate)
    ):
        # With a shift of 1 the noise is randomized response, and it dominates no less with a larger one.
        return True
    return _finite_dominates(above, below)


def _finite_dominates(above: ReleaseLoss, below: ReleaseLoss) -> bool | None:
    """By finite pairs: exactly where these are the releases' own, else by pairs from both sides."""
    for surely, up in ((True, False), (False, True)):
        high, low = above.finite(above=up), below.finite(above=not up)
        if high is None or low is None or len(high.p) + len(low.p) > MOST_LINES:
            return None
        # What is below the one dominates what is above the other, or not even the other way around.
        if pair_dominates(high, low) is surely:
            return surely
    return None


def _range_dominates(width: PrivacyLevel, below: ReleaseLoss) -> bool | None:
    if isinstance(below, PureLoss) and below.delta:
        return False
    span = _span(below)
    if isinstance(below, (BoundedRangeLoss, PureLoss)):
        # Of (epsilon, 0)-DP nothing else is below: at E = 1 the curves are tanh(width / 4) and tanh(epsilon / 2).
        return _decided(span, width)
    if isinstance(below, PairLoss) and _infinite(below):
        return False
    if _decided(span, width):
        return True
    unbounded = GaussianLoss, DiscreteGaussianLoss, SampledGaussianLoss, FixedSampleGaussianLoss
    return False if isinstance(below, unbounded) else None


def _span(part: ReleaseLoss) -> PrivacyLevel | None:
    """The width of an interval that holds all losses; none where there is none, or none that is known."""
    if isinstance(part, BoundedRangeLoss):
        return part.range
    if isinstance(part, PureLoss):
        return None if part.delta else power(part.epsilon, 2)
    if isinstance(part, LaplaceLoss):
        return power(part.epsilon, 2)
    if isinstance(part, DiscreteLaplaceLoss):
        return power(part.rate, 2 * part.shift)
    if not isinstance(part, PairLoss) or _infinite(part):
        return None
    total_p, total_q = sum(part.p), sum(part.q)
    ratios = [Fraction(x * total_q, y * total_p) for x, y in zip(part.p, part.q, strict=True) if x and y]
    return PrivacyLevel(max(ratios) / min(ratios), Fraction(0))


def _gaussian_dominates(above: ReleaseLoss, below: ReleaseLoss) -> bool | None:
    gaussians = (GaussianLoss, SampledGaussianLoss, FixedSampleGaussianLoss)
    if not isinstance(above, gaussians):
        return None
    if not isinstance(below, gaussians):
        span = _span(below) if isinstance(above, GaussianLoss) else None
        # Losses in an interval have a Gaussian above them: docs/proofs/gaussian_budget.md.
        return True if span and bounded_range_to_mu2(as_epsilon(span)) <= above.mu_squared else None
    if isinstance(above, GaussianLoss) and isinstance(below, GaussianLoss):
        return above.mu_squared >= below.mu_squared
    if above.mu_squared < below.mu_squared:
        return None
    if isinstance(above, GaussianLoss):
        return True
    same = type(above) is type(below)
    return True if same and not isinstance(below, GaussianLoss) and above.rate >= below.rate else None


def _infinite(pair: PairLoss) -> bool:
    return any(pair.end(backwards)[0] for backwards in (False, True))


def _decided(level: PrivacyLevel | None, limit: PrivacyLevel) -> bool | None:
    """Whether a level is at most a limit; none where enclosures do not tell."""
    if level is None:
        return None
    if at_most(level, limit):
        return True
    return False if at_most(limit, level) else None


def dominates(above: Refined, below: Refined) -> bool | None:
    """Whether releases together dominate others together; none where that is not decided."""
    found = _matching(above._parts, below._parts)
    (part, count), *more = above._parts
    if found is None and count == 1 and not more and isinstance(part, PureLoss):
        # The curve of (epsilon, delta)-DP is the largest of all that are at most delta there.
        found = below._private(part.epsilon, part.delta, MOST_TERMS)
    return False if found is None and _refuted(above, below) else found


def _refuted(above: Refined, below: Refined) -> bool:
    """Whether one curve is below the other at one of a few levels, in either order."""
    try:
        for backwards in (False, True):
            levels = [0.0]
            levels += [below._epsilon(delta, backwards, Fraction(1, 10), MOST_TERMS)[0] for delta in LOOKED_AT]
            for epsilon in levels:
                if math.isfinite(epsilon):
                    level = PrivacyLevel(Fraction(1), Fraction(epsilon))
                    _, high = above._delta(level, backwards, NEAR, MOST_TERMS)
                    low, _ = below._delta(level, backwards, NEAR, MOST_TERMS)
                    if low > high:
                        return True
    except BudgetError:
        pass
    return False


def _matching(above: Parts, below: Parts) -> bool | None:
    """Whether each release has one above it, whatever is left over: then the product dominates."""
    if len(above) == len(below) == 1 and above[0][1] == below[0][1] == 1:
        return release_dominates(above[0][0], below[0][0])
    room, need = [count for _, count in above], [count for _, count in below]
    over = [[release_dominates(big, small) is True for big, _ in above] for small, _ in below]
    return True if _matched(over, room, need) else None


def _matched(over: Sequence[Sequence[bool]], room: list[int], need: list[int]) -> bool:
    """Whether all that is needed finds room, by paths that move what was placed before."""
    placed = [[0] * len(room) for _ in need]
    for first in range(len(need)):
        while need[first]:
            # A path from this kind to room: kinds are entered by what they may use, left by what they hold.
            came: dict[int, tuple[int, int] | None] = {first: None}
            queue, end = [first], None
            for kind in queue:
                for place, allowed in enumerate(over[kind]):
                    if not allowed:
                        continue
                    if room[place]:
                        end = (kind, place)
                        break
                    for other in range(len(need)):
                        if placed[other][place] and other not in came:
                            came[other] = kind, place
                            queue.append(other)
                if end:
                    break
            if end is None:
                return False
            path, kind = [end], end[0]
            while (step := came[kind]) is not None:
                path.append(step)
                kind = step[0]
            # Each kind on the path hands its place on and takes the next one.
            moved = [placed[child[0]][parent[1]] for child, parent in pairwise(path)]
            amount = min([need[first], room[end[1]], *moved])
            room[end[1]] -= amount
            need[first] -= amount
            for kind, place in path:
                placed[kind][place] += amount
            for child, parent in pairwise(path):
                placed[child[0]][parent[1]] -= amount
    return True
