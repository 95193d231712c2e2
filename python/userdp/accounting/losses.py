"""What bounds the privacy loss of one release: a pair of distributions, by its kind and exact parameters.

The compiled core puts these on a grid and composes them; `PrivacyLossDistribution` holds them with their numbers. For
releases on a secret sample of the users see docs/proofs/exact_composition.md, section 7.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from userdp import _core
from userdp.exact.epsilon import core_level, enclosure, level_root, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    nonzero_level,
    parse_delta,
    parse_level,
    parse_positive,
    short_repr,
)
from userdp.exact.pmf import fractions_of, masses_of, whole_multiples
from userdp.exceptions import BudgetError

MOST_LINES = 2**18
"""Pieces of curves of which a maximum is taken."""
CHORDS = 512
"""Pieces of the curve of a bounded range, where finitely many losses are needed."""
STEPS = 32
"""Of discrete noise in the place of continuous noise, where finitely many losses are needed."""
MOST_BITS = 2**26
"""Of all powers of a ratio together."""
MOST_SHIFT = 2**16
MOST_MU_SQUARED = 2**8


class ReleaseLoss(ABC):
    """A release, by what bounds its privacy loss: immutable, hashable, shown as words.

    Kinds that callers give by parameters have `checked`, which refuses those that are out of range.
    """

    __slots__ = ()

    @property
    def attained(self) -> bool:
        """Whether the pair is that of a real release, and not one above several."""
        return True

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the pair have the same curve."""
        return True

    @abstractmethod
    def release(self, limbs: int, backwards: bool) -> _core.Release:
        """For the core, with masses of so many words; backwards is the pair in the other order."""

    def finite(self, *, above: bool) -> PairLoss | None:
        """The pair by integer weights, where it has finitely many losses.

        Where e^loss is irrational: a pair that dominates it, or one that it dominates, with e^loss of about 190 bits.
        """
        return None

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel] | None:
        """The mass at infinity, and e^loss for the largest finite loss or one of `units` of it; none without end."""
        return None

    @property
    def units(self) -> int:
        """How many times what `end` says the largest loss is."""
        return 1


@dataclass(frozen=True, slots=True)
class PairLoss(ReleaseLoss):
    """Two distributions by integer weights."""

    p: tuple[int, ...]
    q: tuple[int, ...]
    attained: bool = True
    symmetric: bool = False

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        p, q = (self.q, self.p) if backwards else (self.p, self.q)
        return _core.Release.from_weights(p, q, limbs)

    def finite(self, *, above: bool) -> PairLoss:
        return self

    def both_orders(self) -> PairLoss:
        """The least pair above this one in either order."""
        if self.symmetric or same_curves(self.p, self.q):
            return replace(self, symmetric=True)
        p, q = largest_pair([(self.p, self.q), (self.q, self.p)])
        return PairLoss(p, q, attained=False, symmetric=True)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        p, q = (self.q, self.p) if backwards else (self.p, self.q)
        total_p, total_q = sum(p), sum(q)
        infinite = Fraction(sum(x for x, y in zip(p, q, strict=True) if not y), total_p)
        ratios = [Fraction(x * total_q, y * total_p) for x, y in zip(p, q, strict=True) if x and y]
        return infinite, PrivacyLevel(max(ratios, default=Fraction(1)), Fraction(0))

    def __str__(self) -> str:
        return f"a pair of {len(self.p)} outcomes"


@dataclass(frozen=True, slots=True)
class PureLoss(ReleaseLoss):
    """All (epsilon, delta)-DP mechanisms."""

    epsilon: PrivacyLevel
    delta: Fraction

    @classmethod
    def checked(cls, epsilon: Epsilon, delta: Delta) -> PureLoss:
        level, exact = parse_level(epsilon), parse_delta(delta)
        if exact == 1:
            raise ValueError("delta must be below 1; a release with delta = 1 promises nothing")
        return cls(level, exact)

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.pure(core_level(self.epsilon), self.delta, limbs)

    def finite(self, *, above: bool) -> PairLoss | None:
        ratio = _multiplier(self.epsilon, above=above)
        if ratio is None:
            return None
        rest = (1 - self.delta) / (1 + ratio)
        weights = tuple(whole_multiples([rest * ratio, rest, self.delta, Fraction(0)]))
        return PairLoss(weights, (weights[1], weights[0], 0, weights[2]), symmetric=True)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        return self.delta, self.epsilon

    def __str__(self) -> str:
        return f"({float(self.epsilon):.6g}, {float(self.delta):.6g})-DP"


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLoss(ReleaseLoss):
    """Discrete Laplace noise: e^rate, and how far the values are apart."""

    rate: PrivacyLevel
    shift: int

    @classmethod
    def checked(cls, epsilon_per_unit: Epsilon, shift: int) -> DiscreteLaplaceLoss:
        return cls(nonzero_level(epsilon_per_unit, "epsilon_per_unit"), check_shift(shift))

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.discrete_laplace(core_level(self.rate), self.shift, limbs)

    def finite(self, *, above: bool) -> PairLoss | None:
        # Noise at a lower rate is noise at a higher one plus more of its own: the latter dominates.
        ratio = _multiplier(self.rate, above=above)
        if ratio is None or (ratio.numerator.bit_length() + 1) * self.shift**2 > MOST_BITS:
            return None
        # The losses -shift, -shift + 2, ..., shift, in units of the rate.
        between = [(ratio - 1) * ratio**j for j in range(self.shift - 1)]
        weights = tuple(whole_multiples([Fraction(1), *between, ratio**self.shift]))
        return PairLoss(weights, weights[::-1], symmetric=True)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        return Fraction(0), self.rate

    @property
    def units(self) -> int:
        return self.shift

    def __str__(self) -> str:
        return f"discrete Laplace noise (rate {float(self.rate):.6g}, shift {self.shift})"


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss(ReleaseLoss):
    """Discrete Gaussian noise in one column."""

    sigma_squared: Fraction
    shift: int

    @classmethod
    def checked(cls, sigma_squared: float | int | Fraction | str, shift: int) -> DiscreteGaussianLoss:
        exact = parse_positive(sigma_squared, "sigma_squared")
        if not Fraction(1, 100) <= exact <= 2**22:
            raise ValueError(f"sigma_squared must be from 1/100 to 2**22; got {short_repr(sigma_squared)}")
        return cls(exact, check_shift(shift))

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.discrete_gaussian(self.sigma_squared, self.shift, limbs)

    def __str__(self) -> str:
        return f"discrete Gaussian noise (sigma^2 = {float(self.sigma_squared):.6g}, shift {self.shift})"


@dataclass(frozen=True, slots=True)
class BoundedRangeLoss(ReleaseLoss):
    """All mechanisms of a bounded range."""

    range: PrivacyLevel

    @classmethod
    def checked(cls, range: Epsilon) -> BoundedRangeLoss:
        return cls(nonzero_level(range, "range"))

    @property
    def attained(self) -> bool:
        return False

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.bounded_range(core_level(self.range))

    def finite(self, *, above: bool) -> PairLoss | None:
        if not 2**-20 <= float(self.range) <= 64:
            return None
        if not above:
            # Two outcomes with losses +-range / 2.
            return PureLoss(level_root(self.range, 2), Fraction(0)).finite(above=False)
        whole = _multiplier(self.range, above=True)
        return None if whole is None else _chords(whole, lambda root: (1 - root) ** 2 / (1 - 1 / whole))

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        return Fraction(0), self.range

    def __str__(self) -> str:
        return f"bounded range {float(self.range):.6g}"


@dataclass(frozen=True, slots=True)
class LaplaceLoss(ReleaseLoss):
    """Continuous Laplace noise: e^(sensitivity / scale), its largest loss."""

    epsilon: PrivacyLevel

    @classmethod
    def checked(cls, epsilon: Epsilon) -> LaplaceLoss:
        return cls(nonzero_level(epsilon))

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.laplace(core_level(self.epsilon))

    def finite(self, *, above: bool) -> PairLoss | None:
        if not 2**-20 <= float(self.epsilon) <= 64:
            return None
        if above:
            whole = _multiplier(self.epsilon, above=True)
            return None if whole is None else _chords(whole, lambda root: 1 - root)
        # Discrete noise is below continuous noise whose largest loss is rate^2 / 4 larger than its own.
        least = value_enclosure(self.epsilon)[0]
        rate = least / (STEPS + least / (4 * STEPS))
        return DiscreteLaplaceLoss(PrivacyLevel(Fraction(1), rate), STEPS).finite(above=False)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        return Fraction(0), self.epsilon

    def __str__(self) -> str:
        return f"Laplace noise (sensitivity / scale = {float(self.epsilon):.6g})"


@dataclass(frozen=True, slots=True)
class GaussianLoss(ReleaseLoss):
    """Gaussian noise: (distance of the means / standard deviation)^2, summed over so many releases."""

    mu_squared: Fraction
    count: int = 1

    @classmethod
    def checked(cls, mu2: float | int | Fraction | str) -> GaussianLoss:
        exact = parse_positive(mu2, "mu2", printed=True)
        if not Fraction(1, 2**40) <= exact <= MOST_MU_SQUARED:
            raise ValueError(f"mu2 must be from 2**-40 to 2**8; got {short_repr(mu2)}")
        return cls(exact)

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.gaussian(self.mu_squared)

    def __str__(self) -> str:
        return f"Gaussian noise (mu^2 = {float(self.mu_squared):.6g})"


@dataclass(frozen=True, slots=True)
class SampledGaussianLoss(ReleaseLoss):
    """Gaussian noise on a Poisson sample of users; backwards is the pair of adding a user."""

    mu_squared: Fraction
    rate: Fraction

    @property
    def attained(self) -> bool:
        return False

    @property
    def symmetric(self) -> bool:
        return False

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.gaussian(self.mu_squared, self.rate, backwards)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel] | None:
        return (Fraction(0), PrivacyLevel(1 / (1 - self.rate), Fraction(0))) if backwards and self.rate < 1 else None

    def __str__(self) -> str:
        mu_squared, rate = float(self.mu_squared), float(self.rate)
        return f"Gaussian noise (mu^2 = {mu_squared:.6g}) on a sample at rate {rate:.6g}"


@dataclass(frozen=True, slots=True)
class FixedSampleGaussianLoss(ReleaseLoss):
    """Gaussian noise on a sample of a fixed size, of which a user is replaced."""

    mu_squared: Fraction
    rate: Fraction

    @property
    def attained(self) -> bool:
        return False

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        return _core.Release.gaussian(self.mu_squared, self.rate, False, True)

    def __str__(self) -> str:
        mu_squared, rate = float(self.mu_squared), float(self.rate)
        return f"Gaussian noise (mu^2 = {mu_squared:.6g}) on a fixed share {rate:.6g} of all"


@dataclass(frozen=True, slots=True)
class LossTable:
    """Integer weights at the losses low * step, (low + 1) * step, ..., and at infinity."""

    low: int
    weights: tuple[int, ...]
    infinity: int


@dataclass(frozen=True, slots=True)
class TableLoss(ReleaseLoss):
    """A release by its masses at equally spaced losses, in one order and in the other."""

    step: Fraction
    forward: LossTable
    backward: LossTable

    @property
    def attained(self) -> bool:
        return False

    @property
    def symmetric(self) -> bool:
        return self.forward == self.backward

    def release(self, limbs: int, backwards: bool) -> _core.Release:
        table = self.backward if backwards else self.forward
        return _core.Release.from_table(table.weights, table.infinity, table.low, self.step, limbs)

    def end(self, backwards: bool) -> tuple[Fraction, PrivacyLevel]:
        table = self.backward if backwards else self.forward
        last = max((index for index, weight in enumerate(table.weights) if weight), default=-table.low)
        largest = PrivacyLevel(Fraction(1), self.step * (table.low + last))
        return Fraction(table.infinity, sum(table.weights) + table.infinity), largest

    def __str__(self) -> str:
        return f"a table of {max(len(self.forward.weights), len(self.backward.weights))} losses"


def check_shift(shift: Any) -> int:
    """How far values with noise are apart, which is not too much to be listed."""
    if check_count(shift, "shift") > MOST_SHIFT:
        raise ValueError(f"shift must be at most 2**16; got {short_repr(shift)}")
    return int(shift)


def power(level: PrivacyLevel, times: int) -> PrivacyLevel | None:
    """So many times the loss; none where it is too long to be written out."""
    if level.ratio.numerator.bit_length() * times > 2**20:
        return None
    return PrivacyLevel(level.ratio**times, level.exponent * times)


def _chords(whole: Fraction, curve: Callable[[Fraction], Fraction]) -> PairLoss:
    """The chords of a curve that is a function of sqrt(E / whole), between levels where the root is rational."""
    width = math.log(whole)
    half = [Fraction(math.exp(-width * step / CHORDS)) for step in range(CHORDS // 2)]
    roots = [root for root in half if root * root * whole > 1]
    # 1 / E is a level for each E, so that both orders have the same chords.
    points = [(root * root * whole, curve(root)) for root in roots]
    points += [(1 / level, 1 - 1 / level + value / level) for level, value in reversed(points)]
    slopes = [(b - a) / (y - x) for (x, a), (y, b) in pairwise(points)]
    changes = [after - before for before, after in pairwise([Fraction(0), *(-slope for slope in slopes), Fraction(1)])]
    weights = whole_multiples([level * change for (level, _), change in zip(points, changes, strict=True)])
    other = whole_multiples(changes)
    return PairLoss(tuple(weights), tuple(other), attained=False, symmetric=True)


def _multiplier(level: PrivacyLevel, *, above: bool) -> Fraction | None:
    """e^epsilon, or a fraction next to it; none for one that is too long."""
    if level.exponent > 2**10:
        return None
    return enclosure(level, "epsilon")[1 if above else 0]


def same_curves(p: Sequence[int], q: Sequence[int]) -> bool:
    """Whether both orders of a pair have the same law of losses, and so the same curve."""
    laws: list[dict[Fraction | None, Fraction]] = []
    for one, other in ((p, q), (q, p)):
        total, total_other = sum(one), sum(other)
        law: dict[Fraction | None, Fraction] = {}
        for x, y in zip(one, other, strict=True):
            if x:
                loss = Fraction(x * total_other, y * total) if y else None
                law[loss] = law.get(loss, Fraction(0)) + Fraction(x, total)
        laws.append(law)
    return laws[0] == laws[1]


def hockey_stick_of(p: Sequence[int], q: Sequence[int], ratio: Fraction) -> Fraction:
    """The sum of [P - ratio Q]_+ by integer weights."""
    total_p, total_q = sum(p), sum(q)
    scaled_p, scaled_q = total_q * ratio.denominator, total_p * ratio.numerator
    above = sum(max(x * scaled_p - y * scaled_q, 0) for x, y in zip(p, q, strict=True))
    return Fraction(above, total_p * scaled_p)


def weights_of(masses: Any, name: str) -> tuple[int, ...]:
    read = masses_of(masses, name)
    if isinstance(read, np.ndarray) and not np.isfinite(read).all():
        index = int(np.flatnonzero(~np.isfinite(read))[0])
        raise ValueError(f"{name}: mass {float(read[index])!r} at index {index} is not a finite number >= 0")
    fractions = fractions_of(read)
    for index, mass in enumerate(fractions):
        if mass < 0:
            raise ValueError(f"{name}: mass {float(mass)!r} at index {index} is negative")
    total = sum(fractions, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError(f"{name}: masses must sum to 1 within 1e-9; they sum to {float(total)!r}")
    return tuple(whole_multiples(fractions))


def largest_pair(pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pair whose curve E -> sum [P - E Q]_+ is the largest of these at every E.

    A curve is the largest of its lines A - E B, with the masses at all ratios from one on: so is the largest curve.
    """
    count = sum(len(p) + 1 for p, _ in pairs)
    if count > MOST_LINES:
        raise BudgetError(
            f"pairs have {count} pieces of curves in both orders, where {MOST_LINES} are allowed; leave out pairs that "
            "others dominate, or merge outputs"
        )
    lines: dict[Fraction, Fraction] = {}
    for p, q in pairs:
        total_p, total_q = sum(p), sum(q)
        atoms = sorted(((Fraction(x, y), x, y) for x, y in zip(p, q, strict=True) if x and y), reverse=True)
        a, b = sum(x for x, y in zip(p, q, strict=True) if not y), 0
        for x, y in [(0, 0), *((x, y) for _, x, y in atoms)]:
            a, b = a + x, b + y
            value, slope = Fraction(a, total_p), Fraction(b, total_q)
            lines[slope] = max(value, lines.get(slope, value))
    # From E = infinity down: slopes rise, and each line is the largest from where it crosses the one before.
    largest: list[tuple[Fraction, Fraction]] = []
    corners: list[Fraction] = []
    for slope in sorted(lines):
        value = lines[slope]
        if largest and value <= largest[-1][0]:
            continue
        while largest:
            corner = (value - largest[-1][0]) / (slope - largest[-1][1])
            if not corners or corner < corners[-1]:
                corners.append(corner)
                break
            largest.pop()
            corners.pop()
        largest.append((value, slope))
    masses = [after[1] - before[1] for before, after in pairwise(largest)]
    above = [corner * mass for corner, mass in zip(corners, masses, strict=True)]
    zero = Fraction(0)
    return (
        tuple(whole_multiples([*above, largest[0][0], zero])),
        tuple(whole_multiples([*masses, zero, 1 - sum(masses, zero)])),
    )


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
