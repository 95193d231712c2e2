"""Certificates of compositions: claims that are checked again without the compiled core."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from userdp.accounting.losses import (
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
)
from userdp.accounting.refinement import FIRST_CERTIFIED, Refined, targets
from userdp.checker import work
from userdp.checker.compositions import bound_of
from userdp.checker.values import Problem
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import Neighbors, PrivacyLevel
from userdp.exceptions import BudgetError
from userdp.report.composition import (
    CertifiedRelease,
    CompositionCertificate,
    ContinuousLaplaceRelease,
    DiscreteGaussianRelease,
    FixedSampleGaussianRelease,
    GaussianRelease,
    LaplaceRelease,
    PairRelease,
    PureRelease,
    RangeRelease,
    SampledGaussianRelease,
)

DIGITS = 8
"""Of what a certificate rounds up by itself."""
FINER = 3
ATTEMPTS = 6
"""How many grids are tried, each so many times as fine as the one before."""


def release_of(part: ReleaseLoss, count: int) -> CertifiedRelease:
    """What a certificate says of a release."""
    if isinstance(part, PairLoss):
        return PairRelease(count=count, p=part.p, q=part.q)
    if isinstance(part, PureLoss):
        return PureRelease(count=count, epsilon=part.epsilon, delta=part.delta)
    if isinstance(part, DiscreteLaplaceLoss):
        return LaplaceRelease(count=count, epsilon_per_unit=part.rate, shift=part.shift)
    if isinstance(part, DiscreteGaussianLoss):
        return DiscreteGaussianRelease(count=count, sigma_squared=part.sigma_squared, shift=part.shift)
    if isinstance(part, BoundedRangeLoss):
        return RangeRelease(count=count, range=part.range)
    if isinstance(part, LaplaceLoss):
        return ContinuousLaplaceRelease(count=count, epsilon=part.epsilon)
    if isinstance(part, GaussianLoss):
        return GaussianRelease(count=count, mu_squared=part.mu_squared)
    if isinstance(part, SampledGaussianLoss):
        return SampledGaussianRelease(count=count, mu_squared=part.mu_squared, rate=part.rate)
    if isinstance(part, FixedSampleGaussianLoss):
        return FixedSampleGaussianRelease(count=count, mu_squared=part.mu_squared, rate=part.rate)
    raise ValueError(f"{part} has no certificate: it says what is to be composed by no parameters of a mechanism")


class _Answer(NamedTuple):
    """What the core says of a claim."""

    epsilon: PrivacyLevel
    on_lattice: bool
    upper: Fraction
    """A bound of delta there."""
    deep: bool
    """Whether masses are wide enough for a delta of this size."""


def certified(
    composition: Refined,
    neighbors: Neighbors | None,
    epsilon: PrivacyLevel | None,
    delta: Fraction | None,
    max_terms: int,
) -> CompositionCertificate:
    """A certificate of what is asked, which its checker has accepted."""
    releases = tuple(release_of(part, count) for part, count in composition._parts)
    steps, shown = composition._first_steps(FIRST_CERTIFIED), Fraction(1)
    for _ in range(ATTEMPTS):
        for target in targets() if delta is None else (delta,):
            answer = _answer(composition, epsilon, delta, target, steps, max_terms)
            if answer.deep:
                break
        if delta is None and answer.on_lattice and not answer.deep:
            target = Fraction(0)  # without any cut, delta may be 0
        shown = min(shown, answer.upper)
        if delta is None or answer.upper <= delta:
            resolution = None if answer.on_lattice else Fraction(1, steps)
            made = partial(CompositionCertificate, neighbors=neighbors, releases=releases, resolution=resolution)
            found = _accepted(made, composition, answer, epsilon, delta, target)
            if found is not None:
                return found
        if answer.on_lattice:
            break
        steps *= FINER
    raise BudgetError(
        f"only delta <= {float(shown):.8g} is shown at this epsilon, where {float(delta or 0):.8g} was asked; a larger "
        "epsilon or delta is shown more easily"
    )


def _accepted(
    made: Callable[..., CompositionCertificate],
    composition: Refined,
    answer: _Answer,
    epsilon: PrivacyLevel | None,
    delta: Fraction | None,
    target: Fraction,
) -> CompositionCertificate | None:
    """The certificate with the coarsest rounding that its checker accepts."""
    limbs, cut, _ = composition._rounding(target)
    wide, least = (64 * limbs - 8, cut), min(target, answer.upper)
    for bits, most in (_coarse(least, composition.releases), wide) if least else (wide,):
        made_so = partial(made, bits=bits, cut=most, delta=Fraction(1))
        for level in (answer.epsilon,) if epsilon is not None else (answer.epsilon, _next(answer.epsilon)):
            try:
                with work.at_most():
                    bound = bound_of(made_so(epsilon=level).to_dict())
            except Problem as problem:
                raise BudgetError(f"{problem}; max_terms would have to be more than a check takes") from None
            if delta is None:
                return replace(made_so(epsilon=level), delta=rounded_up(bound))
            if bound <= delta:
                return replace(made_so(epsilon=level), delta=delta)
    return None


def _coarse(target: Fraction, releases: int) -> tuple[int, int]:
    """Bits of masses, and units to cut, with which rounding costs less than 2^-36 of delta."""
    size = max(target.denominator.bit_length() - target.numerator.bit_length(), 0) + 1
    bits = size + releases.bit_length() + 40
    return bits, int(target * 2**bits) // (2**40 * releases)


def _next(epsilon: PrivacyLevel) -> PrivacyLevel:
    """The next number of as many digits, for a claim whose rounding leaves less than its check loses."""
    return PrivacyLevel(Fraction(1), rounded_up(epsilon.exponent * (1 + Fraction(1, 10**DIGITS))))


def _answer(
    composition: Refined,
    epsilon: PrivacyLevel | None,
    delta: Fraction | None,
    target: Fraction,
    steps: int,
    max_terms: int,
) -> _Answer:
    """What the core says at epsilon, or at the least one for the target, on a grid of 1 / steps."""
    composed = composition._both(lambda backwards: composition._composed(backwards, target, steps, max_terms))
    on_lattice = composed[0].on_lattice
    ends = composition._both(composition._end)
    if epsilon is None:
        # From the largest losses on delta is the mass at infinity, which a grid rounds up.
        last = [end.largest[1] if end and end.infinity[1] <= target else math.inf for end in ends]
        found = [order.epsilon(target)[1] if target else math.inf for order in composed]
        return _Answer(_claimed(max(map(min, found, last))), on_lattice, target, True)
    bounds = [order.delta(core_level(epsilon)) for order in composed]
    inside = [end.infinity if end and end.is_at_most(epsilon) else None for end in ends]
    bounds = [known or found for known, found in zip(inside, bounds, strict=True)]
    lower, upper = max(low for low, _ in bounds), max(high for _, high in bounds)
    if delta is not None and lower > delta:
        raise ValueError(
            f"epsilon and delta={float(delta):.6g} are not what the releases have together: their delta there is at "
            f"least {float(lower):.6g}"
        )
    deep = None not in inside or all(order.charge * 2**30 <= upper for order in composed)
    return _Answer(epsilon, on_lattice, upper, deep)


def _claimed(epsilon: float) -> PrivacyLevel:
    if math.isinf(epsilon):
        raise ValueError("no finite epsilon has this delta, so that there is nothing to certify")
    return PrivacyLevel(Fraction(1), rounded_up(Fraction(epsilon)))


def rounded_up(x: Fraction) -> Fraction:
    """A decimal number of a few digits at or above this one."""
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
