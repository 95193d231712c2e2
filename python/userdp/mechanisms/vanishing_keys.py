"""The delta of releases in which keys vanish with a user: what may vanish and what moves, accounted jointly.

A user's keys are of two kinds. Some nobody else has: their noisy counts are shown with a small probability, and never
without the user. The others move by what the user adds. Nothing is paid twice, and the worst split is searched
(docs/proofs/sparse_histogram.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import count

from userdp import _core
from userdp.accounting.privacy_loss import PrivacyLossDistribution
from userdp.accounting.zcdp import pure_to_zcdp, zcdp_delta
from userdp.exact.epsilon import as_epsilon, enclosure, shortened, value_enclosure
from userdp.exact.numbers import LogRatio, Neighbors, PrivacyLevel, parse_level
from userdp.exceptions import BudgetError
from userdp.mechanisms.discrete_gaussian import LISTED_SHIFT, LISTED_VARIANCE, SMOOTHED_WITHIN, SMOOTHING

MOST_LISTED = 2**5
"""Of numbers that move by more with discrete Laplace noise, only the largest loss is counted."""
WIDE_VARIANCE = 2**8
"""From here on, smoothed continuous noise is near enough for counts with sums."""
BITS = 256
"""Of powers and levels, rounded against the claim."""
LARGEST_LEVEL = 2**1024
MOST_NODES = 20_000
EXACT_KEYS = 16
"""Up to so many keys the largest delta is found to the last float, beyond that to a part in 10**6."""
SHARE = Fraction(1, 10**6)
GRID_SHARE = 0.01
NEGLIGIBLE = Fraction(1, 10**7)
"""As a part of the delta that is to be found."""


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
        return gaussian_hockey_stick(sum(continuous, Fraction(0)), level)
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


@lru_cache(maxsize=2**12)
def gaussian_hockey_stick(mu2: Fraction, level: Fraction) -> Fraction:
    """At or just above the sum of [P - level Q]_+ for N(mu, 1) and N(0, 1); the level may be below 1."""
    if level <= 0:
        return Fraction(1)
    if mu2 <= 0:
        return max(Fraction(0), 1 - level)
    above = min(max(level, 1 / level), Fraction(LARGEST_LEVEL))  # the curve falls
    return _at_level(_core.gaussian_delta_above(mu2, _core.Level(Fraction(above), Fraction(0))), level)


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
    _powers: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict, compare=False)

    @property
    def moved_keys(self) -> int:
        """How many keys differ between neighbors at most."""
        return moved_keys(self.max_keys, self.neighbors)

    def vanishing(self) -> Fraction:
        """The probability that a user's own keys are not all hidden, rounded up."""
        return vanishing(self.hidden, self.max_keys)

    def delta(self, level: PrivacyLevel) -> Fraction:
        """At or above the least delta at a level, by less than a part in 10**6."""
        return self._search(level, None)

    def is_within(self, level: PrivacyLevel, delta: Fraction) -> bool:
        """Whether that delta is shown to be at most this one."""
        return self._search(level, delta) <= delta

    def _search(self, level: PrivacyLevel, limit: Fraction | None) -> Fraction:
        """The largest value over all splits, best bound first; any number beside the limit that decides, with one."""
        low, high = enclosure(level, "epsilon")
        extra: Fraction = (1 + high) * self.moved_keys * self.distance
        if not self.hidden or extra >= 1:
            return Fraction(1)
        rational = shortened(low, up=False, bits=BITS)
        share = SHARE if self.max_keys > EXACT_KEYS else Fraction(0)
        order, best = count(), Fraction(0)
        nodes: list[tuple[Fraction, int, int, tuple[int, int], tuple[int, int]]] = []

        def add(common: int, a: tuple[int, int], b: tuple[int, int]) -> None:
            bound = self._bound(rational, common, a, b)
            heapq.heappush(nodes, (-bound, next(order), common, a, b))

        whole = (0, self.max_keys)
        if self.neighbors == "replace":
            for shared in range(self.max_keys + 1 if self.common else 1):
                ends = (0, self.max_keys - shared)
                add(shared, ends, ends)
        else:
            add(0, whole, (0, 0))
            add(0, (0, 0), whole)
        for _ in range(MOST_NODES):
            bound, _, common, a, b = heapq.heappop(nodes)
            largest: Fraction = min(Fraction(1), -bound + extra)
            if limit is not None and largest <= limit:
                return largest
            single = a[0] == a[1] and b[0] == b[1]
            if single or -bound <= best * (1 + share):
                return largest
            # A value that is taken, of the same composition as the bound.
            best = max(best, self._bound(rational, common, (a[0], a[0]), (b[0], b[0])))
            if limit is not None and best + extra > limit:
                return min(Fraction(1), best + extra)
            for one in _halves(a) if a[1] - a[0] >= b[1] - b[0] else [a]:
                for other in _halves(b) if b[1] - b[0] > a[1] - a[0] else [b]:
                    add(common, one, other)
        raise BudgetError(
            f"max_keys={self.max_keys} with these sums has too many splits of keys to search; use fewer keys or sums"
        )

    def _bound(self, level: Fraction, common: int, a: tuple[int, int], b: tuple[int, int]) -> Fraction:
        """At or above all values where the numbers of vanishing and of new keys are in these ranges."""
        fewest, most = a
        total = self.moved_keys - (2 * common if self.neighbors == "replace" else 0)
        rest = total - fewest - b[0]
        lowered = shortened(level * self._power(b[1])[0] / self._power(fewest)[1], up=False, bits=BITS)
        parts = [*((shift, rest) for shift in self.own), *((shift, common) for shift in self.common)]
        kept = self._power(fewest)[1] * hockey_stick(parts, lowered, NEGLIGIBLE * self.vanishing())
        return shortened(1 - self._power(most)[0] + kept, up=True, bits=BITS) if kept or most else kept

    def _power(self, exponent: int) -> tuple[Fraction, Fraction]:
        """Bounds of the probability that so many keys are all hidden."""
        if exponent not in self._powers:
            self._powers[exponent] = (
                _power(self.hidden, exponent, up=False),
                _power(self.hidden, exponent, up=True),
            )
        return self._powers[exponent]


def moved_keys(max_keys: int, neighbors: Neighbors) -> int:
    """How many keys differ between neighbors at most."""
    return 2 * max_keys if neighbors == "replace" else max_keys


def vanishing(hidden: Fraction, max_keys: int) -> Fraction:
    """The probability that a user's own keys, each hidden with this one, are not all hidden, rounded up."""
    if not hidden:
        return Fraction(1)
    return (
        shortened(1 - _power(hidden, max_keys, up=False, bits=2 * BITS), up=True, bits=BITS)
        if hidden < 1
        else Fraction(0)
    )


def _power(x: Fraction, exponent: int, *, up: bool, bits: int = BITS) -> Fraction:
    """A power of a positive number, by squares that are rounded to twice the bits."""
    found = Fraction(1)
    for digit in f"{exponent:b}":
        found = shortened(found * found * (x if digit == "1" else 1), up=up, bits=2 * bits)
    return shortened(found, up=up, bits=bits)


def _halves(ends: tuple[int, int]) -> list[tuple[int, int]]:
    if ends[0] == ends[1]:
        return [ends]
    middle = (ends[0] + ends[1]) // 2
    return [(ends[0], middle), (middle + 1, ends[1])]
