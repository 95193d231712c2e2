"""Whether draws follow a distribution, with proven false-alarm rates. No import of userdp.

`surprises` is rigorous at every sample size. `chi_square` is the familiar statistic beside it; its limit is a proven
tail of the chi-square distribution, which the statistic has in the limit of many draws in every cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

ALARM = 1e-6
"""The probability with which a true distribution fails a test of this file, at most."""


def surprise(count: int, draws: int, mass: Fraction) -> float:
    """n KL(count / n || p) in nats: n = `draws` independent draws hit a set of probability p `count` times.

    By Chernoff's bound, P[as much surprise or more] <= 2 e^-surprise for every n and p: e^-surprise on either side.
    """
    if mass in (0, 1):
        return 0.0 if count == mass * draws else math.inf
    return _surprise(count, draws, mass.numerator, mass.denominator)


def _surprise(count: int, draws: int, mass: int, whole: int) -> float:
    """That of a mass over a denominator, not 0 and not 1."""
    excess = count * whole - draws * mass  # exact: what follows cancels to first order
    hits = count * math.log1p(excess / (draws * mass)) if count else 0.0
    misses = (draws - count) * math.log1p(-excess / (draws * (whole - mass))) if count < draws else 0.0
    return max(0.0, hits + misses)


def over_one_denominator(masses: Sequence[Fraction]) -> tuple[list[int], int]:
    """Numerators of the masses, and a denominator of all."""
    whole = math.lcm(*(mass.denominator for mass in masses))
    return [mass.numerator * (whole // mass.denominator) for mass in masses], whole


def surprises(counts: Sequence[int], masses: Sequence[Fraction], alarm: float = ALARM) -> tuple[float, float]:
    """The largest surprise over all outcomes and all tails {0, ..., i}, and its limit by a union bound."""
    draws, (units, whole) = sum(counts), over_one_denominator(masses)
    assert sum(units) == whole, "masses must sum to 1 exactly"
    tails = list(zip(accumulate(counts), accumulate(units), strict=True))[:-1]
    sets = [*zip(counts, units, strict=True), *tails]
    worst = 0.0
    for count, mass in sets:
        if mass in (0, whole):
            worst = max(worst, 0.0 if count * whole == mass * draws else math.inf)
        else:
            worst = max(worst, _surprise(count, draws, mass, whole))
    return worst, math.log(2 * len(sets) / alarm)


def ratio_surprises(counts: Sequence[int], ratios: Sequence[Fraction], alarm: float = ALARM) -> tuple[float, float]:
    """The same for counts[i] given counts[i] + counts[i + 1], where the masses have the ratio ratios[i]."""
    pairs = zip(counts, counts[1:], ratios, strict=False)
    found = [surprise(a, a + b, ratio / (1 + ratio)) for a, b, ratio in pairs if a + b]
    return max(found), math.log(2 * len(ratios) / alarm)


def mean_and_width(
    values: Sequence[Fraction], masses: Sequence[Fraction], draws: int, alarm: float = ALARM
) -> tuple[Fraction, float]:
    """The mean of a function of one draw, and how far the mean of `draws` may be from it (Bernstein's inequality)."""
    units, whole = over_one_denominator(masses)
    mean = sum((v * p for v, p in zip(values, units, strict=True)), Fraction(0)) / whole
    variance = sum((v * v * p for v, p in zip(values, units, strict=True)), Fraction(0)) / whole - mean**2
    reach = max(abs(v - mean) for v in values)
    # 2 exp(-n t^2 / (2 (variance + reach t / 3))) = alarm, solved for t.
    nats = math.log(2 / alarm) / draws
    linear = float(reach) * nats / 3
    return Fraction(mean), linear + math.sqrt(linear**2 + 2 * float(variance) * nats)


def chi_square_limit(degrees: int) -> float:
    """Laurent and Massart (2000), Lemma 1: exceeded with probability at most e^-14 < 1e-6."""
    return degrees + 2 * math.sqrt(14 * degrees) + 28


def chi_square(counts: Sequence[int], masses: Sequence[Fraction], least: float = 20) -> tuple[float, int]:
    """The statistic and its degrees, over cells that expect `least` or more, small neighbors put together."""
    draws = sum(counts)
    cells: list[list[float]] = [[0.0, 0.0]]
    for count, mass in zip(counts, masses, strict=True):
        if cells[-1][1] >= least:
            cells.append([0.0, 0.0])
        cells[-1][0] += count
        cells[-1][1] += mass.numerator * draws / mass.denominator
    if len(cells) > 1 and cells[-1][1] < least:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    return sum((seen - expected) ** 2 / expected for seen, expected in cells), len(cells) - 1


def hoeffding_slack(trials: int, false_alarm: float = 1e-7) -> float:
    """How far the frequency of an event in independent trials is from its probability, except with that probability."""
    return math.sqrt(math.log(2 / false_alarm) / (2 * trials))
