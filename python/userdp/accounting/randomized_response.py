"""The distributions of randomized responses together: what the worst mechanisms of given privacy compose to.

k randomized responses at e^epsilon = E, true answer against the other one: l lies among them have mass
C(k, l) E^(k-l) / (1 + E)^k, and under the other answer that of k - l lies. Every composition of k mechanisms that are
epsilon-DP is dominated by this pair (Kairouz, Oh, Viswanath 2015). Masses are integers over a common total, exact while
that is cheap, and otherwise rounded so that the divergence of the pair can only grow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from userdp.exact.epsilon import ln_enclosure, ln_float
from userdp.exceptions import BudgetError

MOST_TERMS = 2**17
EXACT_BITS = 2**22
MOST_BITS = 2**29
PLACES = 512
MOST_PLACES = 2**13


@dataclass(frozen=True)
class Responses:
    """Randomized responses at one level."""

    level: Fraction  # E > 1
    count: int  # k >= 1
    # At l the sums of the first l masses, of 0 to l - 1 lies, in units of 1 / total: of the true answer, not below what
    # they are, and of the other one, not above.
    above: tuple[int, ...]
    below: tuple[int, ...]
    total: int
    exact: bool  # whether nothing was rounded

    @classmethod
    def of(cls, level: Fraction, count: int) -> Responses:
        """Masses of so many responses."""
        bits = level.numerator.bit_length() + level.denominator.bit_length()
        if count > MOST_TERMS or count * bits > MOST_BITS:
            raise _too_many(count)
        exact = count * count * bits <= EXACT_BITS
        if exact:
            upper = lower = _exact(level, count)
            total = (level.numerator + level.denominator) ** count
        else:
            places = PLACES + min(MOST_PLACES, math.ceil(1.5 * count * ln_float(level)))  # to tell E^-k from 0
            if count * (bits + places) > MOST_BITS:
                raise _too_many(count)
            upper, lower = _rounded(level, count, places)
            total = 1 << places
        above = tuple(itertools.accumulate(upper, initial=0))
        below = tuple(itertools.accumulate(reversed(lower), initial=0))
        return cls(level, count, above, below, total, exact)


def _too_many(count: int) -> BudgetError:
    return BudgetError(
        f"optimal composition of k={count} mechanisms at this epsilon has too many terms to add up (at most"
        f" {MOST_TERMS}); compose with zcdp_delta(k * pure_to_zcdp(epsilon), ...) or compose_advanced instead"
    )


def _exact(level: Fraction, count: int) -> list[int]:
    """C(k, l) a^(k-l) b^l for E = a/b; they sum to (a + b)^k."""
    top, bottom = level.numerator, level.denominator
    masses = [top**count]
    for lies in range(count):
        # Exact: C(k, l+1) = C(k, l) (k - l) / (l + 1), and a^(k-l) has a factor a left.
        masses.append(masses[-1] * (count - lies) * bottom // ((lies + 1) * top))
    return masses


def _rounded(level: Fraction, count: int, places: int) -> tuple[list[int], list[int]]:
    """Masses in units of 2^-places, rounded up and rounded down."""
    top, bottom = level.numerator, level.denominator
    # Ratios of neighboring masses are simple, so they are taken outwards from the largest, relative to it, where every
    # rounding is one of a unit and none grows; then divided by their sum.
    peak = int((count + 1) * bottom // (top + bottom))
    unit = 1 << places
    upper, lower = [0] * (count + 1), [0] * (count + 1)
    upper[peak] = lower[peak] = unit
    for lies in range(peak, count):
        factor, divisor = (count - lies) * bottom, (lies + 1) * top
        upper[lies + 1] = -(-upper[lies] * factor // divisor)
        lower[lies + 1] = lower[lies] * factor // divisor
    for lies in range(peak, 0, -1):
        factor, divisor = lies * top, (count - lies + 1) * bottom
        upper[lies - 1] = -(-upper[lies] * factor // divisor)
        lower[lies - 1] = lower[lies] * factor // divisor
    most, least = sum(upper), sum(lower)
    return [-(-mass * unit // least) for mass in upper], [mass * unit // most for mass in lower]


def divergence(groups: Sequence[Responses], multiplier: Fraction) -> Fraction:
    """The hockey-stick divergence of all the responses together at e^epsilon = multiplier, exactly or rounded up."""
    if not groups:
        return max(Fraction(0), 1 - multiplier)
    # The sum over all combinations of the positive part of P - multiplier Q. For a combination in all groups but the
    # longest, the positive terms are those with fewer lies in the longest than a threshold, so sums of its first masses
    # suffice. Enclosures of logarithms find the threshold; where they leave several, the largest sum is an upper bound.
    *others, longest = sorted(groups, key=lambda group: group.count)
    combinations = math.prod(group.count + 1 for group in others)
    if combinations > MOST_TERMS:
        raise BudgetError(
            f"groups of {[group.count for group in groups]} mechanisms have {combinations} combinations (at most"
            f" {MOST_TERMS}); account for them in zCDP, or with fewer different epsilons"
        )
    top, bottom = multiplier.numerator, multiplier.denominator
    logs = [ln_enclosure(group.level) for group in others]
    goal = ln_enclosure(multiplier)
    step = ln_enclosure(longest.level)
    total = 0
    for lies in itertools.product(*(range(group.count + 1) for group in others)):
        p, q = bottom, top
        low, high = goal
        for group, lied, (least, most) in zip(others, lies, logs, strict=True):
            p *= group.above[lied + 1] - group.above[lied]
            q *= group.below[lied + 1] - group.below[lied]
            truths = group.count - 2 * lied
            low, high = low - truths * (most if truths > 0 else least), high - truths * (least if truths > 0 else most)
        first, last = _threshold(longest.count, low, high, step)
        total += max(p * longest.above[t] - q * longest.below[t] for t in range(first, last + 1))
    scale = bottom * math.prod(group.total for group in groups)
    return min(Fraction(1), Fraction(total, scale))


def _threshold(count: int, low: Fraction, high: Fraction, step: tuple[Fraction, Fraction]) -> tuple[int, int]:
    """Around the number of l in 0..k with (k - 2l) ln E > x, for x in [low, high]: l < (k - x / ln E) / 2."""
    if step[0] == 0:
        return 0, count + 1
    least = low / step[1 if low > 0 else 0]
    most = high / step[0 if high > 0 else 1]
    first, last = math.ceil((count - most) / 2), math.ceil((count - least) / 2)
    return min(max(first, 0), count + 1), min(max(last, 0), count + 1)


def least_multiplier(responses: Responses, delta: Fraction) -> Fraction | None:
    """The least e^epsilon >= 1 at which the divergence is at most delta, exactly or rounded up; None where unknown."""
    # The divergence is the largest of above(t) - e^epsilon below(t), so each t asks for its own least e^epsilon.
    scale = delta.denominator
    allowed = delta.numerator * responses.total
    top = bottom = 1
    for p, q in zip(responses.above, responses.below, strict=True):
        excess, divisor = p * scale - allowed, q * scale
        if excess * bottom > top * divisor:
            if divisor == 0:
                return None
            top, bottom = excess, divisor
    return Fraction(top, bottom)
