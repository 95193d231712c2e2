"""The delta of releases in which keys vanish with a user: what may vanish and what moves, accounted jointly.

A user's keys are of two kinds. Some nobody else has: their noisy counts are shown with a small probability, and never
without the user. The others move by what the user adds. Nothing is paid twice, and the worst split is searched
(docs/proofs/sparse_histogram.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from userdp import _core
from userdp.accounting.privacy_loss import PrivacyLossDistribution
from userdp.accounting.zcdp import pure_to_zcdp, zcdp_delta
from userdp.exact.epsilon import as_epsilon, enclosure, value_enclosure
from userdp.exact.numbers import LogRatio, Neighbors, PrivacyLevel, parse_level
from userdp.exceptions import BudgetError
from userdp.mechanisms.discrete_gaussian import LISTED_SHIFT, LISTED_VARIANCE, SMOOTHED_WITHIN, SMOOTHING

MOST_LISTED = 2**5
"""Of numbers that move by more with discrete Laplace noise, only the largest loss is counted."""
WIDE_VARIANCE = 2**8
"""From here on, smoothed continuous noise is near enough for counts with sums."""
LARGEST_LEVEL = 2**1024
GRID_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Shift:
    """A number with noise that one user moves, by what dominates it."""

    loss: PrivacyLossDistribution
    rho: Fraction
    """The zCDP parameter, at least."""
    distance: Fraction = Fraction(0)
    """How far the number is from what is dominated, in total variation."""
    most: Fraction | None = None
    """The largest loss, where it is bounded."""
    mu2: Fraction | None = None
    """Of continuous Gaussian noise."""

    @classmethod
    def laplace(cls, rate: PrivacyLevel, amount: int) -> Shift:
        """Discrete Laplace noise, of which a unit of value is worth the rate."""
        rho, most = pure_to_zcdp(as_epsilon(rate)) * amount**2, value_enclosure(rate)[1] * amount
        if amount <= MOST_LISTED:
            return cls(PrivacyLossDistribution.discrete_laplace(as_epsilon(rate), amount), rho, most=most)
        return cls.pure(most)

    @classmethod
    def pure(cls, epsilon: Fraction) -> Shift:
        """Numbers of one key whose losses are at most epsilon together."""
        return cls(PrivacyLossDistribution.pure(epsilon), epsilon**2 / 2, most=epsilon)

    @classmethod
    def gaussian(cls, sigma_squared: Fraction, amount: int, *, listed: bool = True) -> Shift:
        """Ideal discrete Gaussian noise: by itself, or as smoothed continuous noise where that is near enough."""
        rho = Fraction(amount**2) / (2 * sigma_squared)
        if listed and amount <= LISTED_SHIFT and sigma_squared <= LISTED_VARIANCE:
            return cls(PrivacyLossDistribution.discrete_gaussian(sigma_squared, amount), rho)
        mu2 = Fraction(amount**2) / (sigma_squared - SMOOTHING)
        return cls(PrivacyLossDistribution.gaussian(mu2=mu2), rho, distance=SMOOTHED_WITHIN, mu2=mu2)


def hockey_stick(parts: Sequence[tuple[Shift, int]], level: Fraction, negligible: Fraction = Fraction(0)) -> Fraction:
    """At or above the sum of [P - level Q]_+ for so many shifts of each kind; the level may be below 1.

    By a part in 100 at most where the shifts have no lattice in common, but for what is shown to be negligible.
    """
    parts = [(shift, times) for shift, times in parts if times]
    if not parts:
        return max(Fraction(0), 1 - level)
    if level <= 0:
        return Fraction(1)
    continuous = [shift.mu2 * times for shift, times in parts if shift.mu2 is not None]
    above = max(level, 1 / level)
    if len(continuous) == len(parts) and above < LARGEST_LEVEL:
        return _core.gaussian_hockey_stick(sum(continuous, Fraction(0)), level)
    epsilon = LogRatio(above.numerator, above.denominator)
    composed = PrivacyLossDistribution.composed([(shift.loss, times) for shift, times in parts])
    if len({shift.loss for shift, _ in parts}) == 1:
        found = Fraction(composed.delta(epsilon).upper)
    else:
        found = zcdp_delta(sum((shift.rho * times for shift, times in parts), Fraction(0)), epsilon)
        losses = [shift.most * times for shift, times in parts if shift.most is not None]
        if len(losses) == len(parts) and sum(losses, Fraction(0)) <= value_enclosure(parse_level(epsilon))[0]:
            found = Fraction(0)
        if found > negligible:
            found = negligible if composed.is_private(epsilon, negligible) else _on_grid(composed, epsilon, parts)
    return _at_level(found, level)


def _at_level(found: Fraction, level: Fraction) -> Fraction:
    """From the curve at the larger of a level and its inverse: all these pairs have equal curves in both orders."""
    if level < 1:
        found = 1 - level + level * found
    return min(Fraction(1), found)


def _on_grid(composed: PrivacyLossDistribution, epsilon: LogRatio, parts: Sequence[tuple[Shift, int]]) -> Fraction:
    """The delta of shifts without a common lattice; of their largest losses where a grid would be too fine."""
    try:
        return Fraction(composed.delta(epsilon, relative=GRID_SHARE).upper)
    except BudgetError:
        largest = [shift.most for shift, _ in parts if shift.most is not None]
        if len(largest) < len(parts):
            raise
    times = sum(times for _, times in parts)
    return Fraction(PrivacyLossDistribution.pure(max(largest)).self_compose(times).delta(epsilon).upper)


@dataclass(frozen=True, slots=True)
class Keys:
    """What one user changes: keys of their own, keys in common with who replaces them, and what hides a new key."""

    max_keys: int
    neighbors: Neighbors
    hidden: Fraction
    """The probability that a key of a single user is not shown."""
    own: tuple[Shift, ...]
    """The numbers of a key that one side's user has, and the other's has not."""
    common: tuple[Shift, ...] = ()
    """Those that move in a key that both have: sums, with "replace"."""
    distance: Fraction = Fraction(0)
    """How far the drawn numbers of one key are from those that the shifts are of, in total variation."""

    def delta(self, level: PrivacyLevel) -> Fraction:
        """At or above the least delta at a level, by less than a part in 10**6."""
        return self._search(level, None)

    def is_within(self, level: PrivacyLevel, delta: Fraction) -> bool:
        """Whether that delta is shown to be at most this one."""
        return self._search(level, delta) <= delta

    def _search(self, level: PrivacyLevel, limit: Fraction | None) -> Fraction:
        """The largest value over all splits; any number beside the limit that decides, with one."""
        low, high = enclosure(level, "epsilon")
        mu2 = [[shift.mu2 for shift in shifts if shift.mu2 is not None] for shifts in (self.own, self.common)]
        own, common = (sum(shifts, Fraction(0)) for shifts in mu2)
        continuous = [len(shifts) for shifts in mu2] == [len(self.own), len(self.common)]

        def curve(single: int, both: int, level: Fraction, negligible: Fraction) -> Fraction:
            parts = [*((shift, single) for shift in self.own), *((shift, both) for shift in self.common)]
            return hockey_stick(parts, level, negligible)

        return _core.keys_delta(
            max_keys=self.max_keys,
            replace=self.neighbors == "replace",
            hidden=self.hidden,
            distance=self.distance,
            low=low,
            high=high,
            limit=limit,
            own=own,
            common=common if self.common else None,
            curve=None if continuous else curve,
        )


def moved_keys(max_keys: int, neighbors: Neighbors) -> int:
    """How many keys differ between neighbors at most."""
    return 2 * max_keys if neighbors == "replace" else max_keys
