"""Gaussian noise under a claim of (epsilon, delta): its exact curve, and the most of it that a claim allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from userdp import _core
from userdp.accounting.calibration import RESULT_BITS, largest_within
from userdp.accounting.losses import MOST_MU_SQUARED
from userdp.accounting.privacy_loss import MAX_TERMS, PrivacyLossDistribution
from userdp.accounting.zcdp import CLOSEST_TO_ONE, distance_cost, largest_rho, parse_rho
from userdp.exact.epsilon import LEAST_BOUND, core_level, ln_float, shortened, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    nearest_float,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exceptions import BudgetError

MOST_EPSILON = 2**10
"""The curve of larger ones takes numbers of thousands of bits."""
FINER = 4
"""How much finer each grid is than the one before."""
NEAR = Fraction(1, 2**16)
"""With slots, how far results may be from what the finest grid would give, as a share of them."""
GRIDS = 12
MOST_WORK = 2**19
"""Of one composition, as losses times the square of the words of their masses; a second or so."""
STEPS = 24
LEAST_MU = Fraction(1, 2**20)
"""As `PrivacyLossDistribution.gaussian` takes it."""


def gaussian_delta(mu2: Delta, epsilon: Epsilon, *, distance: Delta = 0) -> Fraction:
    """The delta of Gaussian noise at an epsilon.

    Parameters
    ----------
    mu2 : float, int, Fraction or decimal string
        (L2-sensitivity / standard deviation)^2 of continuous Gaussian noise, summed over all releases; non-negative.
    epsilon : privacy parameter
        Of the claim, at most 1024.
    distance : float, int, Fraction or decimal string
        Proved bound of the total variation between what is drawn and what such noise dominates, on every dataset.

    Returns
    -------
    Fraction
        Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu) + (1 + e^epsilon) distance, at most 1,
        rounded up by a part in 2^158 or so; below 2^-4096 by that much.

    Notes
    -----
    Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022), Corollary 2.13. The exact delta, where `zcdp_delta` of
    mu2 / 2 is a bound that is about four times as large. The mu2 of releases add up, and each may be chosen in the
    light of those before as long as all of them stay within a sum that is fixed in advance. Discrete Gaussian noise
    with `sigma_squared` above 4 on integers costs sensitivity^2 / (sigma_squared - 4), at a distance of 2^-112 for each
    integer. Proof: docs/proofs/gaussian_budget.md.

    Examples
    --------
    >>> float(gaussian_delta("0.056", 1))  # doctest: +ELLIPSIS
    9.946...e-07
    """
    exact, level = parse_rho(mu2, "mu2"), parse_level(epsilon)
    far = distance_cost(level, parse_delta(distance, "distance"))
    _within_reach(level)
    return min(Fraction(1), _core.gaussian_delta_above(exact, core_level(level)) + far)


def largest_mu2(
    epsilon: Epsilon,
    delta: Delta,
    *,
    slots: Iterable[tuple[PrivacyLossDistribution, int]] = (),
    distance: Delta = 0,
    added_delta: Delta = 0,
) -> Fraction:
    """The most Gaussian noise budget that a claim of (epsilon, delta)-DP leaves beside other releases.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the claim; epsilon at most 1024 and delta in (0, 1).
    slots : iterable of (PrivacyLossDistribution, int)
        Other releases under the same claim, each a number of times.
    distance : float, int, Fraction or decimal string
        How far in total variation all that is drawn is from what the slots and Gaussian noise dominate, at most; what
        slots say of theirs is added.
    added_delta : float, int, Fraction or decimal string
        Deltas of releases that hold up to an event of such a probability; they are taken from delta.

    Returns
    -------
    Fraction
        mu2, positive and certified: the slots and N(0, 1) against N(mu, 1) together have, in both orders, a delta of at
        most delta - added_delta - (1 + e^epsilon) distance at epsilon. Below the largest such number by a part in 2^39
        or so; with slots, which are composed on a grid, by a part in 2^16 or so, and in 2^9 where delta is so small
        that a finer grid would take minutes.

    Raises
    ------
    ValueError
        Naming the argument; where nothing is left beside the slots, the distance and the added delta.

    Notes
    -----
    Releases with discrete Gaussian noise may be chosen adaptively, and so may the order in which slots are used, as
    long as the mu2 of all stay within this number: docs/proofs/gaussian_budget.md. A slot may be used by any release
    that it dominates. Where releases on replaced users are chosen adaptively a slot has to dominate both orders, as
    those of all kinds but `PrivacyLossDistribution.from_pmfs` do.

    Examples
    --------
    14 % more than in zero-concentrated differential privacy, where mu2 / 2 is rho:

    >>> from userdp.accounting import largest_rho
    >>> mu2 = largest_mu2(1, "1e-6")
    >>> round(float(mu2 / 2), 7), round(float(largest_rho(1, "1e-6")), 7)
    (0.0280145, 0.024356)
    >>> search = PrivacyLossDistribution.bounded_range("0.07646")
    >>> round(float(largest_mu2(1, "1e-6", slots=[(search, 1)])), 6)
    0.054185
    """
    level, target = parse_level(epsilon), parse_delta(delta)
    far, added = parse_delta(distance, "distance"), parse_delta(added_delta, "added_delta")
    listed = _slots(slots)
    far += sum((slot.distance * count for slot, count in listed), Fraction(0))
    if target == 1:
        raise ValueError("delta must be below 1: every mu2 serves at delta = 1")
    lower = _within_reach(level)
    left = target - added - distance_cost(level, far)
    if left < LEAST_BOUND:
        raise ValueError(
            f"delta={float(target):.3g} is too small: added_delta={float(added):.3g} and a distance of "
            f"{float(far):.3g}, which costs 1 + e^epsilon times itself, leave nothing of it; take a larger delta"
        )
    left = min(left, CLOSEST_TO_ONE)
    if not listed:
        return _largest(lower, left)
    return _beside(PrivacyLossDistribution.composed(listed), level, lower, left)


def _within_reach(level: PrivacyLevel) -> Fraction:
    """Epsilon, or just below it."""
    lower = value_enclosure(level)[0]
    if lower > MOST_EPSILON:
        raise ValueError(f"epsilon must be at most {MOST_EPSILON} here; got {nearest_float(lower):.6g}")
    return lower


def _slots(slots: Iterable[tuple[PrivacyLossDistribution, int]]) -> list[tuple[PrivacyLossDistribution, int]]:
    if isinstance(slots, (str, bytes)) or not isinstance(slots, Iterable):
        raise TypeError(f"slots must be pairs of a PrivacyLossDistribution and an int; got {short_repr(slots)}")
    listed = []
    for slot in slots:
        if not isinstance(slot, (tuple, list)) or len(slot) != 2 or not isinstance(slot[0], PrivacyLossDistribution):
            raise TypeError(f"slots must be pairs of a PrivacyLossDistribution and an int; got {short_repr(slot)}")
        if check_count(slot[1], "slots: a count", 0):
            listed.append((slot[0], int(slot[1])))
    return listed


def _root(x: Fraction) -> Fraction:
    """Just below the square root."""
    return Fraction(math.isqrt(math.floor(x * 2**256)), 2**128)


@lru_cache(maxsize=256)
def _largest(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu2 without slots."""
    level = _core.Level(Fraction(1), epsilon)

    def cost(mu2: Fraction) -> Fraction:
        return _core.gaussian_delta_above(mu2, level)

    # N(0, 1) and N(mu, 1) are (mu2 / 2)-zCDP, whose delta at epsilon is above theirs.
    low = shortened(2 * largest_rho(epsilon, delta), up=False, bits=RESULT_BITS)
    while cost(low) > delta:
        low /= 2
    high = 2 * low
    while cost(high) <= delta:
        low, high = high, 2 * high
    return largest_within(cost, low, high, delta)


@lru_cache(maxsize=256)
def _beside(slots: PrivacyLossDistribution, level: PrivacyLevel, lower: Fraction, delta: Fraction) -> Fraction:
    """The largest mu2 beside slots, on finer and finer grids until they give the same."""
    if slots._verdict(level, delta, MAX_TERMS) is False:
        raise ValueError(f"slots alone cost more than the {float(delta):.3g} of delta that is left for them")
    most = min(_largest(lower, delta), Fraction(MOST_MU_SQUARED))
    # The curve is about e^(-epsilon^2 / (2 mu2)), whose slope is the logarithm of 1 / delta.
    best, proposed, steps, slope = Fraction(0), most, 0, max(4.0, -ln_float(delta))
    for _ in range(GRIDS):
        grid = _Grid(slots, core_level(level), delta, steps)
        try:
            if steps and not best and grid.delta(2 * LEAST_MU) > delta:
                found = Fraction(0)
            else:
                found, slope = grid.largest(proposed, most, slope)
        except BudgetError:
            break
        # Each grid leaves about a sixteenth of what the one before was off by.
        if found and found - best <= 15 * NEAR * found:
            return max(best, found)
        best, proposed, steps = max(best, found), found or proposed, FINER * grid.steps
        if grid.work > (MOST_WORK if best else 8 * MOST_WORK):
            break
    if not best:
        raise ValueError(f"slots leave next to nothing of delta={float(delta):.3g}, or too little to be certified")
    return best


class _Grid:
    """Slots and Gaussian noise on a grid of one resolution, at which a delta may not be above a target."""

    def __init__(self, slots: PrivacyLossDistribution, level: _core.Level, target: Fraction, steps: int) -> None:
        self.slots, self.level, self.target = slots, level, target
        self.steps = steps or slots._first_steps() + 1
        self.work = 0

    def delta(self, mu: Fraction) -> Fraction:
        """An upper bound for both orders."""
        noise = PrivacyLossDistribution.gaussian(1, mu, neighbors=self.slots.neighbors)
        together = self.slots.compose(noise)  # whose distance is out of the target

        def above(backwards: bool) -> Fraction:
            composed = together._composed(backwards, self.target, self.steps, MAX_TERMS)
            self.work = composed.terms * together._rounding(self.target)[0] ** 2
            return composed.delta(self.level)[1]

        deltas: list[Fraction] = together._both(above)
        return max(deltas)

    def largest(self, start: Fraction, most: Fraction, slope: float) -> tuple[Fraction, float]:
        """The largest mu2, or 0 where none is certified, and about how ln delta grows with ln mu2."""
        # Steps of the secant, from a slope that is known from the grid before; what is certified is kept.
        best, failed = Fraction(0), most * 2
        points: list[tuple[float, float]] = []
        mu2, aim = start, ln_float(self.target) + math.log1p(-float(NEAR) / 8)
        for _ in range(STEPS):
            mu = shortened(_root(mu2), up=False, bits=RESULT_BITS + 2)
            if mu < LEAST_MU:
                break
            mu2, delta = mu * mu, self.delta(mu)
            points.append((ln_float(mu2), ln_float(delta)))
            if delta <= self.target:
                best = max(best, mu2)
                if delta >= self.target * (1 - NEAR / 4) or mu2 >= most:
                    break
            else:
                failed = min(failed, mu2)
            if len(points) > 1 and points[-1][0] != points[-2][0]:
                slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
                slope = min(max(slope, 0.01), 1000.0)
            moved = mu2 * Fraction(math.exp(min(max((aim - points[-1][1]) / slope, -2.0), 2.0)))
            mu2 = moved if best < moved < failed else (max(best, failed / 16) + failed) / 2
            mu2 = min(mu2, most)
        return best, slope
