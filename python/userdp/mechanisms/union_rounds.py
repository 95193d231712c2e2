"""The delta of keys shown by weights: what one user changes in a round, and in rounds that see what was shown before.

A user has the length 1 in a round, spread over their keys. The part of it that is on keys which nobody else has says
how likely these are shown; the other part moves the sums of other keys. Old and new keys share one length, and the
worst share is searched (docs/proofs/set_union.md).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate, pairwise

from userdp.exact.epsilon import enclosure, shortened, value_enclosure
from userdp.exact.numbers import Neighbors, PrivacyLevel
from userdp.mechanisms.discrete_gaussian import SMOOTHED_WITHIN, SMOOTHING, DiscreteGaussian
from userdp.mechanisms.noisy_threshold import NoisyThreshold
from userdp.mechanisms.vanishing_keys import gaussian_hockey_stick

WEIGHT = 2**20
"""The length of a user's weights where nothing else is said: sums of integers are in units of 1 / WEIGHT."""
BITS = 128
"""Of shares, probabilities and levels, rounded against the claim."""
SINGLE = 32
"""Up to so many keys of a user all shares of keys are looked at, one by one; above it on a grid."""
SHARES = 512
NEARER = 1.02
"""Between the numbers of keys for which probabilities are computed, from the largest of 32 on."""
TOLERANCE = Fraction(3, 1000)
"""By how much more than the largest value ranges of shares may have."""
LOOKED_AT = 8
SMALL = 384
LARGE = Fraction(1, 2**12)
"""From such a probability on it is counted that new keys are hidden on one side only."""
STEPS_PER_WIDTH = 4
MOST_STEPS = 2**11
"""Of the first round's loss; only where one round's noise is more than fifty times as wide are there so many."""
NARROW = 2**-10
"""Steps of loss for such widths are taken from a finer grid."""
VAST = 2**14
"""From this mu^2 on neighbors are told apart but for 2^-700, at any level at which distances leave a delta below 1."""
WIDTHS = 8
"""The losses of a first round are listed up to so many of its standard deviations."""
NEGLIGIBLE = Fraction(1, 10**7)
"""Losses with such a part of the delta as their probability count as infinite."""


def weight_of(weight: int, keys: int) -> int:
    """What a user with so many keys adds to each: the squares add up to at most the weight's."""
    return math.isqrt(weight * weight // keys)


def listed_singly(max_keys: int, walk: bool) -> bool:
    """Whether all shares of new keys are listed, one by one."""
    return max_keys <= SINGLE and not walk


def shares_of(max_keys: int, walk: bool, steps: int) -> list[Fraction]:
    """Shares of a user's squared length that new keys may have: all of them, or a grid."""
    if listed_singly(max_keys, walk):
        return sorted({Fraction(t, d) for d in range(1, max_keys + 1) for t in range(d + 1)})
    return [Fraction(place, steps) for place in range(steps + 1)]


def groups_of(max_keys: int) -> Iterator[tuple[int, int]]:
    """Numbers of keys from ... to ..., of which the first has the largest weights."""
    first = 1
    while first <= max_keys:
        last = first if first < SINGLE else min(math.floor(first * NEARER) + 1, max_keys)
        yield first, last
        first = last + 1


def most_shown(groups: Sequence[tuple[int, Fraction]], shares: Sequence[Fraction], walk: bool) -> Iterator[Fraction]:
    """At or above the expected number of new keys that are shown, where new keys have at most each of these shares.

    A group is its largest number of keys, and the probability that a key of its largest weight is shown.
    """
    unit = math.lcm(*(shown.denominator for _, shown in groups))
    listed = [(last, shown.numerator * (unit // shown.denominator)) for last, shown in groups]
    for share in shares:
        part, whole = share.as_integer_ratio()
        if walk:
            # t new keys with the share s weigh sqrt(s / t) each, and t p(sqrt(s / t)) = s p(sqrt(x)) / x for x = s / t.
            # A group has the x from 1 / last to 1 / first.
            rate = max((last * shown for last, shown in listed if last * part >= whole), default=0)
            yield Fraction(rate * part, unit * whole)
        else:
            yield Fraction(max(last * part // whole * shown for last, shown in listed), unit)


@dataclass(frozen=True)
class Round:
    """One round: users of length `weight` at most, with what each may do of it.

    With `walk` users raise sums one after the other, so that the weights of one user differ, and what a user does may
    spread: `slack` is how much longer than the weight a difference may get by rounding.
    """

    threshold: NoisyThreshold
    weight: int
    max_keys: int
    neighbors: Neighbors
    walk: bool = False
    slack: int = 0
    moved: int = 0
    """How many numbers differ between neighbors at most."""

    @property
    def noise(self) -> DiscreteGaussian:
        assert isinstance(self.threshold.noise, DiscreteGaussian)
        return self.threshold.noise

    @property
    def lengths(self) -> int:
        """The squared length between neighbors, in squared weights: weights are not negative."""
        return 2 if self.neighbors == "replace" else 1

    @cached_property
    def _longer(self) -> Fraction:
        """What rounding adds to the squared length: 2 a slack + slack^2 with a of at most sqrt(2) < 3 / 2 weights."""
        part = Fraction(self.slack, self.weight)
        return 3 * part + part * part

    @cached_property
    def rho(self) -> Fraction:
        """The zCDP parameter of the ideal noise, for keys that are not new."""
        return (self.lengths + self._longer) * self.weight**2 / (2 * self.noise.sigma_squared)

    @property
    def distance(self) -> Fraction:
        """How far the numbers that one user moves are from ideal ones, in total variation."""
        return self.moved * self.noise.distance

    def mu2(self, share: Fraction) -> Fraction:
        """Of the continuous noise, where so much of a user's squared length is on new keys."""
        return (self.lengths - share + self._longer) * self.weight**2 / (self.noise.sigma_squared - SMOOTHING)

    # --- new keys

    @cached_property
    def _shares(self) -> tuple[list[Fraction], list[Fraction]]:
        """Shares of new keys, and the least probability that none of them is shown."""
        groups = []
        for first, last in groups_of(self.max_keys):
            shown = self.threshold.probability_at_most(weight_of(self.weight, first))
            groups.append((last, shortened(shown, up=True, bits=BITS) if shown else shown))
        found: tuple[list[Fraction], list[Fraction]] = ([], [])
        shares = shares_of(self.max_keys, self.walk, SHARES)
        for share, expected in zip(shares, most_shown(groups, shares, self.walk), strict=True):
            # (1 - p)^t is at least 1 - t p.
            hidden = max(Fraction(0), 1 - expected)
            # A larger share that hides as much is no worse than the smaller one.
            if not (found[1] and self._single and hidden >= found[1][-1]):
                found[0].append(share)
                found[1].append(hidden)
        return found

    @property
    def _single(self) -> bool:
        """Whether there are no shares but those that are listed."""
        return listed_singly(self.max_keys, self.walk)

    @property
    def hidden(self) -> Fraction:
        """The least probability that none of a user's new keys is shown."""
        return self._shares[1][-1]

    # --- curves

    def curve(self, level: Fraction) -> Fraction:
        """At or above the sum of [P - level Q]_+ of all neighbors, in both orders."""
        least = self.hidden
        if not least:
            return Fraction(1)
        # With "replace" the other side may have new keys of its own; they are counted as not taking of its length.
        other = level * least if self.neighbors == "replace" else level

        def kept(share: Fraction, hidden: Fraction) -> Fraction:
            return kept_apart(self.mu2(share), _down(other / hidden))

        # From the side without the user, and from the one with.
        without = kept_apart(self.mu2(Fraction(0)), _down(level * least))
        return min(Fraction(1), max(without, self.largest(kept)))

    def largest(self, kept: Callable[[Fraction, Fraction], Fraction]) -> Fraction:
        """At or above the largest 1 - q + q kept(share, q) over all shares, whose new keys are hidden with q at least.

        What is kept falls as shares and q grow. Ranges of shares that have all of them are as long as their bounds are
        not much above values that are taken.
        """
        shares, hidden = self._shares
        last, low, best = len(shares) - 1, 0, Fraction(0)

        @cache
        def value(place: int) -> Fraction:
            return kept(shares[place], Fraction(1))

        looked_at = sorted({last * place // LOOKED_AT for place in range(LOOKED_AT + 1)})
        top = max(1 - hidden[place] + hidden[place] * value(place) for place in looked_at)
        while low <= last:
            top = max(top, 1 - hidden[low] + hidden[low] * value(low))
            least = 1 - top * (1 + TOLERANCE) + value(low)
            # Probabilities fall: the last place that is not below.
            high = bisect_right(hidden, -least, key=lambda q: -q) - 1
            high = min(max(high, low if self._single else low + 1), last)
            q = hidden[high]
            best = max(best, 1 - q + q * (value(low) if q >= 1 - LARGE else kept(shares[low], q)))
            if high == last:
                break
            low = high + 1 if self._single else high
        return shortened(best, up=True, bits=BITS) if best else best


def _down(level: Fraction) -> Fraction:
    return shortened(level, up=False, bits=BITS)


def kept_apart(mu2: Fraction, level: Fraction) -> Fraction:
    """As `gaussian_hockey_stick`, with values below 2^-SMALL counted as that: smaller ones take many digits."""
    if level > 1 and mu2 > 0:
        loss = value_enclosure(PrivacyLevel(level, Fraction(0)))[0]
        over = loss - mu2 / 2
        # Phi(-x) <= e^(-x^2 / 2) / 2 with x = over / mu, and ln 2 < 0.7.
        if over > 0 and over * over >= 2 * mu2 * Fraction(7, 10) * SMALL:
            return Fraction(1, 2**SMALL)
    return gaussian_hockey_stick(mu2, level)


@dataclass(frozen=True)
class Rounds:
    """Rounds one after the other: what a user does in one may depend on what was shown before."""

    rounds: tuple[Round, ...]

    @property
    def hidden(self) -> Fraction:
        """The least probability that no new key of a user is shown in any round."""
        return math.prod((one.hidden for one in self.rounds), start=Fraction(1))

    def delta(self, level: PrivacyLevel) -> Fraction:
        """At or above the least delta at a level."""
        low, high = enclosure(level, "epsilon")
        far = sum((one.moved * (one.noise.distance + SMOOTHED_WITHIN) for one in self.rounds), Fraction(0))
        extra = (1 + high) * far
        # Then 1 is the answer, and the curves would take very long.
        if extra >= 1 or any(one.mu2(Fraction(0)) >= VAST for one in self.rounds):
            return Fraction(1)
        return min(Fraction(1), shortened(self._curve(_down(low)) + extra, up=True, bits=BITS))

    def _curve(self, level: Fraction) -> Fraction:
        """At or above the curve of all rounds."""
        first, *more = self.rounds
        if not more:
            return first.curve(level)
        (second,) = more
        if not first.hidden * second.hidden:
            return Fraction(1)
        # Of both sides of all neighbors, with new keys or without: the least level that may be left.
        steps = _Steps(first, second, _down(level * first.hidden), 1 - first.hidden * second.hidden)
        return first.largest(lambda share, _: steps.kept(first.mu2(share)))


class _Steps:
    """A first round's Gaussian noise in steps of loss, and what the second round makes of each."""

    def __init__(self, first: Round, second: Round, level: Fraction, floor: Fraction) -> None:
        self._second, self._level, self._least = second, level, floor * NEGLIGIBLE
        widths = [math.sqrt(float(one.mu2(Fraction(0)))) for one in (first, second)]
        # Up to rounding the powers of a number: levels and their inverses.
        # Coarser steps are worse and as true.
        reach = WIDTHS * widths[0] + widths[0] ** 2
        fine = max(min(widths) / STEPS_PER_WIDTH, reach / MOST_STEPS)
        unit = 2**20 if fine > NARROW / STEPS_PER_WIDTH else 2**52
        step = 1 + Fraction(max(1, round(fine * unit)), unit)
        count = math.ceil(reach / math.log1p(step - 1))
        self._powers = [Fraction(1)]
        for _ in range(count):
            self._powers.append(_down(self._powers[-1] * step))
        self._after = lru_cache(maxsize=None)(lambda ratio: second.curve(_down(level / ratio)))

    def kept(self, mu2: Fraction) -> Fraction:
        """At or above the curve of both, for Gaussian noise whose squared distance of means is mu2."""
        infinite, losses = chords(mu2, self._powers)
        total = infinite
        for ratio, mass in losses:
            # What is left of the level, given how much likelier this loss is with the user.
            total += mass if mass <= self._least else mass * self._after(ratio)
        return min(Fraction(1), total)


def chords(mu2: Fraction, powers: Sequence[Fraction]) -> tuple[Fraction, list[tuple[Fraction, Fraction]]]:
    """A finite pair above Gaussian noise: its mass at infinity, and masses at ratios.

    A convex curve is below its chords. Of values that are a little above the curve the convex hull is above it, too.
    """
    above = [kept_apart(mu2, power) for power in powers]
    points = [(Fraction(0), Fraction(1))]
    # The curve at 1 / E is 1 - 1 / E and 1 / E of that at E.
    points += [
        (1 / power, 1 - 1 / power + value / power) for power, value in zip(powers[:0:-1], above[:0:-1], strict=True)
    ]
    points += zip(powers, accumulate(above, min), strict=True)
    hull: list[tuple[Fraction, Fraction]] = []
    for point in points:
        while len(hull) > 1 and _slope(hull[-1], point) <= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    slopes = [*(_slope(a, b) for a, b in pairwise(hull)), Fraction(0)]
    masses = [
        (level, level * (after - before))
        for (level, _), (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
    ]
    return hull[-1][1], [(level, mass) for level, mass in masses if mass > 0]


def _slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])
