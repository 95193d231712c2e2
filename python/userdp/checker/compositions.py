"""Checking that composed releases are (epsilon, delta)-DP: the whole composition again, from their parameters alone.

Every step moves mass of P to a larger loss or rounds a survival sum up, and both raise delta at every epsilon
(docs/proofs/exact_composition.md, Theorems 2 and 3), so that what comes out bounds delta from above, whatever
enclosures, cuts and precision were taken. Products are exact: the digits of one `Decimal` hold all masses, and the
standard library multiplies such numbers by a number-theoretic transform.
"""

from __future__ import annotations

import decimal
import inspect
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from userdp.checker import work
from userdp.checker.enclosures import Near, exponential
from userdp.checker.releases import (
    KINDS,
    FixedSampleGaussian,
    Grid,
    Level,
    Levels,
    Masses,
    Release,
    SampledGaussian,
    Work,
    read_level,
    short,
)
from userdp.checker.running import Checked, checks
from userdp.checker.values import count, need

MOST_BITS = 2048
"""Of masses, over 2^bits."""
MOST_DIGITS = 2**26
"""Decimal digits of a product."""
MOST_PLAIN = 2**14
"""Terms of a product where Python has no compiled decimal module, whose multiplication takes quadratic time."""
MOST_COUNT = 2**40
MOST_EXACT = 2**16
"""Bits of a power that is not rounded."""
MOST_RELEASES = 2**12
FINEST = Fraction(1, 2**48)

_EXACT = decimal.Context(
    prec=decimal.MAX_PREC,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow],
)
_COMPILED = not inspect.isfunction(decimal.Decimal.__add__)


class Multiplier:
    """Exact products, rounded upwards."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.width = grid, grid.width

    def times(self, x: Masses, y: Masses) -> Masses:
        terms = len(x.finite) + len(y.finite) - 1
        digits = terms * self.width
        work.afford(_COMPILED or terms <= MOST_PLAIN, f"over {MOST_PLAIN} terms need Python's compiled decimal module")
        work.afford(
            digits <= MOST_DIGITS,
            f"a product has {terms} terms, too many to be checked; a coarser resolution has fewer",
        )
        self.grid.work.spend(digits)
        first = self._packed(x.finite)
        text = str(_EXACT.multiply(first, first if y is x else self._packed(y.finite))).zfill(digits)
        bits = self.grid.bits
        whole = 1 << bits
        total = (whole << bits) - (whole - x.infinity) * (whole - y.infinity)
        infinity = -(-total >> bits)
        # The digits begin with the term of the largest loss.
        width = self.width
        terms_down = [int(text[start : start + width]) for start in range(0, digits, width)]
        sums = list(itertools.accumulate(terms_down, initial=total))
        assert sums[-1] == whole << bits, "masses of a product do not sum to one"
        survival = [-(-total >> bits) for total in reversed(sums[1:])]
        return self.grid.masses(x.low + y.low, survival, infinity)

    def _packed(self, masses: Sequence[int]) -> decimal.Decimal:
        return decimal.Decimal("".join([f"{mass:0{self.width}d}" for mass in reversed(masses)]))

    def power(self, base: Masses, exponent: int) -> Masses:
        result = base
        for bit in f"{exponent:b}"[1:]:
            result = self.times(result, result)
            if bit == "1":
                result = self.times(result, base)
        return result

    def product(self, factors: list[Masses]) -> Masses:
        """The two shortest first."""
        while len(factors) > 1:
            factors.sort(key=lambda factor: -len(factor.finite))
            first, second = factors.pop(), factors.pop()
            factors.append(self.times(first, second))
        return factors[0]


def delta_above(masses: Masses, levels: Levels, epsilon: Level, bits: int) -> Fraction:
    """At least sum of m_j (1 - E / E_j) over E_j > E, plus the mass at infinity.

    That is the largest of the lines A_i - (E / E_i) B_i, with the masses A_i from i on and B_i = sum of m_j
    step^(i - j): the one at the least i with E_i >= E. Beyond the last level it is the mass at infinity; below the
    first, its line.
    """
    low, top = masses.low, masses.low + len(masses.finite) - 1
    wide = bits + 64

    def quotient(index: int) -> Near:
        """E_i / E."""
        return levels.near(index, wide, over=epsilon)

    one = Near(1, 1, 0)
    # The first index whose level is certainly above E, by halving; the line sought is there or just before it.
    least, most = low, top + 1
    while least < most:
        middle = (least + most) // 2
        if one.at_most(quotient(middle)):
            most = middle
        else:
            least = middle + 1
    start = least
    # Lines at levels that are not above E are below that of the next level, or equal to it.
    if least > low and not quotient(least - 1).at_most(one):
        start -= 1
        need(start == low or quotient(start - 1).at_most(one), "levels are too close to epsilon to be told from it")
    shrink = levels.step.near(wide).inverse(wide).units(wide)[0]
    total, weight, best = masses.infinity, 0, masses.infinity
    for index in range(top, start - 1, -1):
        mass = masses.finite[index - low]
        total += mass
        # B from below, with as many bits behind the point.
        weight = (weight * shrink >> wide) + (mass << 64)
        if index <= least:
            share = quotient(index).inverse(wide).units(wide)[0]
            best = max(best, total - (weight * share >> wide + 64))
    return min(Fraction(best, 1 << bits), Fraction(1))


def composed_delta(releases: Sequence[tuple[Release, int]], grid: Grid, epsilon: Level) -> Fraction:
    """A bound of the least delta at epsilon of releases, each so many times: the larger of both orders."""
    symmetric = all(release.is_symmetric() for release, _ in releases)
    need(grid.resolution is not None or len(releases) == 1, "several kinds of releases need a resolution")
    orders = [list(releases)]
    if not symmetric:
        orders.append([(release.reversed(), times) for release, times in releases])
    return max(_one_order(order, grid, epsilon) for order in orders)


def delta_beyond(releases: Sequence[tuple[Release, int]], epsilon: Level, bits: int) -> Fraction | None:
    """The mass at infinity, if no finite loss of all releases together is above epsilon.

    Losses are at most the sum of the largest ones, where these are finite; a grid has some beyond that.
    """
    ends = [(release.end(), times) for release, times in releases]
    exponent, ratio, finite, exact = Fraction(0), Near(1, 1, 0), Near(1, 1, 0), Fraction(1)
    rational = epsilon.ratio != 1
    for end, times in ends:
        if end is None:
            return None
        exponent += end.largest.exponent * times
        if end.largest.ratio != 1:
            rational = True
            ratio = ratio.times(Near.of(end.largest.ratio, bits + 96).power(times, bits + 16), bits + 8)
        if end.infinity:
            kept = 1 - end.infinity
            finite = finite.times(Near.of(kept, bits + 96).power(times, bits + 16), bits + 8)
            # What releases have together is a claim that is often made, and is rounded only where it is long.
            length = times * kept.denominator.bit_length() + exact.denominator.bit_length()
            exact = exact * kept**times if length <= MOST_EXACT else Fraction(0)
    if rational:
        # Differences of exponents cancel exactly.
        below = ratio.times(Near.of(1 / epsilon.ratio, bits + 8), bits + 8)
        inside = below.at_most(exponential(epsilon.exponent - exponent, bits + 8))
    else:
        inside = exponent <= epsilon.exponent
    return 1 - (exact or Fraction(finite.units(bits)[0], 1 << bits)) if inside else None


def _one_order(releases: Sequence[tuple[Release, int]], grid: Grid, epsilon: Level) -> Fraction:
    beyond = delta_beyond(releases, epsilon, grid.bits)
    if beyond is not None:
        return beyond
    multiplier, powers = Multiplier(grid), []
    levels = None if grid.resolution is None else Levels(Level(Fraction(1), grid.resolution))
    found = levels
    for release, times in releases:
        leaf, own = release.masses(grid, levels)
        powers.append(multiplier.power(leaf, times))
        found = levels or Levels(own.step, own.offset, times * own.times)
    assert found is not None
    return delta_above(multiplier.product(powers), found, epsilon, grid.bits)


def _release(stated: Any) -> tuple[Release, int]:
    need(isinstance(stated, dict) and isinstance(stated.get("kind"), str), "a release must be an object with a kind")
    need(stated["kind"] in KINDS, f"a release has an unknown kind {stated['kind']!r:.40}")
    read, names = KINDS[stated["kind"]]
    need(set(stated) == names | {"kind", "count"}, f"a release has missing or unknown fields: {sorted(stated)!r:.200}")
    times = count(stated["count"], "the count of a release", 1)
    work.afford(times <= MOST_COUNT, "the count of a release is too large to be checked")
    return read(stated), times


def bound_of(report: Mapping[str, Any]) -> Fraction:
    """A bound of the least delta at the epsilon of a certificate, from its other fields alone."""
    stated = report["releases"]
    need(isinstance(stated, list) and len(stated) >= 1, "releases must be a list of at least one")
    work.afford(len(stated) <= MOST_RELEASES, f"over {MOST_RELEASES} releases are too many to be checked")
    releases = [_release(release) for release in stated]
    for kind, neighbors in ((SampledGaussian, "add-remove"), (FixedSampleGaussian, "replace")):
        fits = report["neighbors"] == neighbors or not any(isinstance(release, kind) for release, _ in releases)
        need(fits, f"what is said of such samples is about other neighbors than {report['neighbors']!r:.40}")
    bits = count(report["bits"], "bits", 8)
    work.afford(bits <= MOST_BITS, f"bits must be at most {MOST_BITS}")
    resolution = None
    if report["resolution"] is not None:
        resolution = short(report["resolution"], "resolution")
        need(FINEST <= resolution <= 1, "resolution must be from 2^-48 to 1")
    cut = short(report["cut"], "cut")
    need(cut.denominator == 1 and 0 <= cut < 1 << bits - 2, "cut must be an integer >= 0 below 2^(bits - 2)")
    epsilon = read_level(report["epsilon"], "epsilon")
    return composed_delta(releases, Grid(bits, resolution, cut.numerator, Work()), epsilon)


@checks("composition", "neighbors releases epsilon delta bits resolution cut", certain=True)
def check_composition(report: Mapping[str, Any]) -> Checked:
    """Compose the releases again, and compare with the claim; no other number is believed."""
    need(report["neighbors"] in ("replace", "add-remove", None), "neighbors must be 'replace', 'add-remove' or null")
    delta = short(report["delta"], "delta")
    need(0 <= delta <= 1, "delta must be in [0, 1]")
    bound = bound_of(report)
    shown = "" if bound <= delta else _rounded_up(bound)
    need(bound <= delta, f"the releases are not shown to have this delta together: the bound at epsilon is {shown}")
    return Checked("established")


def _rounded_up(x: Fraction) -> str:
    """Four digits of it, upwards."""
    context = decimal.Context(prec=4, rounding=decimal.ROUND_UP)
    return str(context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator)))
