"""The delta of keys shown by weights: what one user changes in a round, and in rounds that see what was shown before.

The core searches the worst share of a user's length on keys that nobody else has (docs/proofs/set_union.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from userdp import _core
from userdp.exact.epsilon import enclosure
from userdp.exact.numbers import Neighbors, PrivacyLevel
from userdp.mechanisms.discrete_gaussian import DiscreteGaussian
from userdp.mechanisms.noisy_threshold import NoisyThreshold

WEIGHT = 2**20
"""The length of a user's weights where nothing else is said: sums of integers are in units of 1 / WEIGHT."""


def weight_of(weight: int, keys: int) -> int:
    """What a user with so many keys adds to each: the squares add up to at most the weight's."""
    return math.isqrt(weight * weight // keys)


@dataclass(frozen=True)
class Rounds:
    """Rounds one after the other: what a user does in one may depend on what was shown before.

    With `walk` users raise sums one after the other, so that the weights of one user differ, and what a user does may
    spread: `slack` is how much longer than the weight a difference may get by rounding.
    """

    thresholds: tuple[NoisyThreshold[DiscreteGaussian], ...]
    weight: int
    max_keys: int
    neighbors: Neighbors
    walk: bool = False
    slack: int = 0
    moved: int = 0
    """How many numbers differ between neighbors at most."""

    @property
    def noises(self) -> list[DiscreteGaussian]:
        """The noise of each round."""
        return [one.noise for one in self.thresholds]

    @cached_property
    def _core_account(self) -> _core.UnionRounds:
        weights = [weight_of(self.weight, first) for first, _ in _core.key_groups(self.max_keys)]
        # With a walk new keys may weigh anything between.
        places = _core.key_groups_between(self.max_keys)[:-1] if self.walk else []
        between = [math.isqrt(self.weight * self.weight * 64 // place) for place in places]
        return _core.UnionRounds(
            [
                (
                    noise.sigma_squared,
                    noise.distance,
                    list(map(one.probability_at_most, weights)),
                    list(map(one.probability_at_most, between)),
                )
                for one, noise in zip(self.thresholds, self.noises, strict=True)
            ],
            weight=self.weight,
            max_keys=self.max_keys,
            replace=self.neighbors == "replace",
            walk=self.walk,
            slack=self.slack,
            moved=self.moved,
        )

    @property
    def hidden(self) -> Fraction:
        """The least probability that no new key of a user is shown in any round."""
        return self._core_account.hidden

    @property
    def mu2(self) -> Fraction:
        """Of the continuous noise of all rounds, for keys that are not new."""
        return sum(self._core_account.mu2, Fraction(0))

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter of ideal noise, for keys that are not new."""
        # 2 a slack + slack^2 with a of at most sqrt(2) < 3 / 2 weights; weights are not negative.
        part = Fraction(self.slack, self.weight)
        length = (2 if self.neighbors == "replace" else 1) + 3 * part + part * part
        return sum((length * self.weight**2 / (2 * noise.sigma_squared) for noise in self.noises), Fraction(0))

    @property
    def distance(self) -> Fraction:
        """How far the numbers that one user moves are from ideal ones, in total variation."""
        return sum((self.moved * noise.distance for noise in self.noises), Fraction(0))

    def delta(self, level: PrivacyLevel) -> Fraction:
        """At or above the least delta at a level."""
        return self._core_account.delta(*enclosure(level, "epsilon"))
