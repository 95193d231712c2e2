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
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from userdp.checker.enclosures import Near, Normal, ceil_units, exponential, square_root
from userdp.checker.running import Checked
from userdp.checker.values import count, fraction, need

FIELDS = {"neighbors", "releases", "epsilon", "delta", "bits", "resolution", "cut"}
MOST_BITS = 2048
"""Of masses, over 2^bits."""
MOST_TERMS = 2**20
"""Losses of a release."""
MOST_DIGITS = 2**26
"""Decimal digits of a product."""
MOST_WORK = 2**29
"""Decimal digits of all products together, and what takes as long: about a minute."""
MOST_PLAIN = 2**14
"""Terms of a product where Python has no compiled decimal module, whose multiplication takes quadratic time."""
MOST_COUNT = 2**40
MOST_LOSS = 2**20
MOST_RELEASES = 2**12
MOST_LENGTH = 2**14
"""Characters of a parameter, and of a weight."""
FINEST = Fraction(1, 2**48)

_EXACT = decimal.Context(
    prec=decimal.MAX_PREC,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow],
)
_COMPILED = not inspect.isfunction(decimal.Decimal.__add__)


class Level(NamedTuple):
    """ratio * e^exponent, exactly."""

    ratio: Fraction
    exponent: Fraction

    def near(self, bits: int) -> Near:
        if self.ratio == 1:
            return exponential(self.exponent, bits)
        ratio = Near.of(self.ratio, bits + 4)
        return ratio if self.exponent == 0 else ratio.times(exponential(self.exponent, bits + 4), bits + 4)

    def to_the(self, power: int) -> Level:
        return Level(self.ratio**power, self.exponent * power)


ONE = Level(Fraction(1), Fraction(0))


@dataclass(frozen=True)
class Levels:
    """e^loss at every index: offset^times * step^index."""

    step: Level
    offset: Level = ONE
    times: int = 1

    def near(self, index: int, bits: int, over: Level = ONE) -> Near:
        """The level at an index divided by another; exponents cancel exactly."""
        exponent = self.step.exponent * index + self.offset.exponent * self.times - over.exponent
        result = exponential(exponent, bits + 8)
        for ratio, power in ((self.step.ratio, index), (self.offset.ratio, self.times), (over.ratio, -1)):
            if ratio != 1 and power:
                more = bits + 2 * abs(power).bit_length() + 16
                result = result.times(Near.of(ratio, more).power(power, bits + 8), bits + 8)
        return result


class Table:
    """Enclosures of levels without an offset, for many indices: a far power times a near one, each made once."""

    def __init__(self, levels: Levels, bits: int) -> None:
        self.levels, self.bits, self.known = levels, bits + 8, dict[int, Near]()

    def _known(self, index: int) -> Near:
        if index not in self.known:
            self.known[index] = self.levels.near(index, self.bits)
        return self.known[index]

    def near(self, index: int) -> Near:
        far, close = divmod(index, 256)
        return self._known(256 * far).times(self._known(close), self.bits)


# Releases -----------------------------------------------------------------------------------------------------


class Masses(NamedTuple):
    """P's mass over 2^bits at indices from `low` on, and at infinity; they sum to 2^bits."""

    low: int
    finite: list[int]
    infinity: int


class Atom(NamedTuple):
    """P's mass, in units of 2^-bits and rounded up, and e^loss."""

    mass: int
    level: Near


class Law(NamedTuple):
    """P's law of losses: its atoms, the mass at infinity in the same units, and the atoms' indices on a lattice."""

    atoms: list[Atom]
    infinity: int
    indices: list[int]


class Work:
    """What a check may cost, so that no certificate keeps it busy for ever."""

    def __init__(self) -> None:
        self.left = MOST_WORK

    def spend(self, digits: int) -> None:
        self.left -= digits
        need(self.left >= 0, "the composition is too large to be checked; a coarser resolution has fewer terms")


@dataclass(frozen=True)
class Grid:
    """How a composition is rounded: masses over 2^bits, cells of a width, mass that may move at each end."""

    bits: int
    resolution: Fraction | None
    cut: int
    work: Work

    @property
    def width(self) -> int:
        """Digits of a sum of products: masses sum to 2^bits, so that none is above 2^(2 bits)."""
        return len(str(1 << 2 * self.bits))

    def room(self, low: int, high: int) -> int:
        """How many indices there are, if so many are allowed."""
        need(high - low < MOST_TERMS, f"a release has over {MOST_TERMS} losses at this resolution")
        self.work.spend((high - low + 1) * 2 * self.width)
        return high - low + 1

    def working_bits(self, atoms: int) -> int:
        """So many that the widths of all enclosures together are well below one unit of mass."""
        finer = 0 if self.resolution is None else int(1 / self.resolution).bit_length()
        return self.bits + 64 + atoms.bit_length() + finer

    def masses(self, low: int, survival: Sequence[int], infinity: int) -> Masses:
        """From survival sums that do not rise, with at most the cut moved up from below, and up to infinity."""
        whole, first, last = 1 << self.bits, 0, len(survival) - 1
        while first < last and survival[first + 1] >= whole - self.cut:
            first += 1
        while last > first and survival[last] <= infinity + self.cut:
            last -= 1
        above = survival[last + 1] if last + 1 < len(survival) else infinity
        kept = [whole, *survival[first + 1 : last + 1], above]
        return Masses(low + first, [here - over for here, over in itertools.pairwise(kept)], above)

    def spread(self, low: int, at: list[int], rising: list[int], infinity: int, bits: int) -> Masses:
        """From masses at indices, and what cells give to the level above them, in units of 2^-bits."""
        drop, whole = bits - self.bits, 1 << self.bits
        total = infinity
        above = least = min(whole, -(-infinity >> drop))
        survival = []
        for mass, given in zip(reversed(at), reversed(rising), strict=True):
            total += mass
            least = max(least, min(whole, -(-(total + given) >> drop)))
            survival.append(least)
        survival.reverse()
        survival[0] = whole
        return self.masses(low, survival, above)


def _on_lattice(law: Law, grid: Grid, bits: int) -> Masses:
    low = min(law.indices)
    at = [0] * grid.room(low, max(law.indices))
    for index, atom in zip(law.indices, law.atoms, strict=True):
        at[index - low] += atom.mass
    return grid.spread(low, at, [0] * len(at), law.infinity, bits)


def _on_grid(law: Law, levels: Levels, grid: Grid, bits: int) -> Masses:
    """Each atom split between two levels around it, so that P's mass and Q's stay what they are."""
    assert grid.resolution is not None
    table, width = Table(levels, bits), float(grid.resolution)
    cells = []
    grid.work.spend(len(law.atoms) << 10)
    for atom in law.atoms:
        place = atom.level.ln() / width
        need(abs(place) < 2**50, "a loss is too large for this resolution")
        # The least cell near there whose upper level is certainly not below the atom: a larger loss is sound.
        cell = next((c for c in range(int(place) - 3, int(place) + 5) if atom.level.at_most(table.near(c + 1))), None)
        need(cell is not None, "the cell of a loss was not found")
        assert cell is not None
        cells.append((cell, atom))
    cells.sort(key=lambda placed: placed[0])
    allowed = grid.cut << bits - grid.bits

    def leading(placed: Iterator[tuple[int, Atom]]) -> int:
        sums = itertools.accumulate(atom.mass for _, atom in placed)
        return sum(1 for _ in itertools.takewhile(lambda total: total <= allowed, sums))

    below = min(leading(iter(cells)), max(len(cells) - 1, 0))
    above = min(leading(reversed(cells)), max(len(cells) - below - 1, 0))
    kept = cells[below : len(cells) - above]
    infinity = law.infinity + sum(atom.mass for _, atom in cells[len(cells) - above :])
    if not kept:
        return grid.spread(0, [0], [0], infinity, bits)
    low = kept[0][0]
    room = grid.room(low, kept[-1][0] + 1)
    at, rising = [0] * room, [0] * room
    at[0] = sum(atom.mass for _, atom in cells[:below])
    step_low, step_high = levels.step.near(2 * bits).units(2 * bits)
    need(step_low > 1 << 2 * bits, "the resolution is too fine to be checked")
    for cell, atom in kept:
        # (1 - E_i / E) G / (G - 1) of an atom at E goes up.
        ratio = table.near(cell).times(atom.level.inverse(bits + 8), bits + 8).units(bits)[0]
        share = -(-max((1 << bits) - ratio, 0) * step_high // (step_low - (1 << 2 * bits)))
        given = min(atom.mass, -(-atom.mass * share >> bits))
        at[cell - low] += atom.mass
        rising[cell + 1 - low] += given
    return grid.spread(low, at, rising, infinity, bits)


@dataclass(frozen=True)
class Pair:
    """Two distributions by integer weights."""

    p: tuple[int, ...]
    q: tuple[int, ...]

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Pair:
        p, q = _weights(stated["p"], "p"), _weights(stated["q"], "q")
        need(len(p) == len(q), "p and q of a pair have different lengths")
        need(sum(p) > 0 and sum(q) > 0, "p or q of a pair has no mass")
        return cls(p, q)

    def reversed(self) -> Pair:
        return Pair(self.q, self.p)

    def _ratios(self) -> tuple[dict[tuple[int, int], int], int]:
        """P's weight at every ratio of P to Q in lowest terms, whose hash is cheap, and where Q has none."""
        total_p, total_q = sum(self.p), sum(self.q)
        found, infinity = dict[tuple[int, int], int](), 0
        for x, y in zip(self.p, self.q, strict=True):
            if x and y:
                ratio = Fraction(x * total_q, y * total_p).as_integer_ratio()
                found[ratio] = found.get(ratio, 0) + x
            elif x:
                infinity += x
        return found, infinity

    def is_symmetric(self) -> bool:
        """Whether both orders have one law of losses."""
        (ratios, infinity), (back, other) = self._ratios(), self.reversed()._ratios()
        total_p, total_q = sum(self.p), sum(self.q)
        first = {ratio: weight * total_q for ratio, weight in ratios.items()}
        second = {ratio: weight * total_p for ratio, weight in back.items()}
        return infinity * total_q == other * total_p and first == second

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        grid.work.spend(sum(1024 + weight.bit_length() ** 2 // 2**13 for weight in (*self.p, *self.q)))
        weights, infinite = self._ratios()
        bits, total = grid.working_bits(len(weights)), sum(self.p)
        by_ratio = sorted((Fraction(*ratio), weight) for ratio, weight in weights.items())
        ratios = [ratio for ratio, _ in by_ratio]
        atoms = [Atom(-((-weight << bits) // total), Near.of(ratio, bits + 8)) for ratio, weight in by_ratio]
        infinity = -((-infinite << bits) // total)
        if levels is not None:
            return _on_grid(Law(atoms, infinity, []), levels, grid, bits), levels
        found, indices = _lattice_of(ratios)
        return _on_lattice(Law(atoms, infinity, indices), grid, bits), found


def _lattice_of(ratios: Sequence[Fraction]) -> tuple[Levels, list[int]]:
    """The levels first * step^n of rising ratios, all of which must be such."""
    need(bool(ratios), "the pair has no finite loss, and is not on a lattice")
    first = Level(ratios[0], Fraction(0))
    if len(ratios) == 1:
        return Levels(Level(Fraction(2), Fraction(0)), first), [0]
    gaps = [b / a for a, b in itertools.pairwise(ratios)]
    step, indices = min(gaps), [0]
    size = _log(step)
    for gap in gaps:
        power = round(_log(gap) / size) if size else 1
        top, bottom = gap.numerator.bit_length(), gap.denominator.bit_length()
        near = (
            1 <= power <= MOST_TERMS
            and abs(top - power * step.numerator.bit_length()) <= power
            and abs(bottom - power * step.denominator.bit_length()) <= power
        )
        need(near and step**power == gap, "the losses of the pair are not a lattice")
        indices.append(indices[-1] + power)
    return Levels(Level(step, Fraction(0)), first), indices


def _log(ratio: Fraction) -> float:
    """The logarithm roughly, of a ratio above 1 however close."""
    excess = ratio - 1
    if excess < Fraction(1, 2**20):
        return float(excess)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


@dataclass(frozen=True)
class Pure:
    """All (epsilon, delta)-DP releases: losses epsilon and -epsilon, and infinity [KOV15]."""

    epsilon: Level
    delta: Fraction

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Pure:
        delta = _short(stated["delta"], "delta of a release")
        need(0 <= delta < 1, "delta of a release must be in [0, 1)")
        return cls(_level(stated["epsilon"], "epsilon of a release"), delta)

    def reversed(self) -> Pure:
        return self

    def is_symmetric(self) -> bool:
        return True

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        bits = grid.working_bits(2)
        infinity = ceil_units(self.delta, bits)
        if self.epsilon == ONE:
            # One loss: any step will do.
            atoms, indices = [Atom(ceil_units(1 - self.delta, bits), Near(1, 1, 0))], [0]
            own = Levels(Level(Fraction(2), Fraction(0)))
        else:
            above = self.epsilon.near(bits + 8)
            below = above.inverse(bits + 8)
            t_low, t_high = below.units(bits + 8)
            one, rest = 1 << bits + 8, 1 - self.delta
            # With t = 1 / E: (1 - delta) t / (1 + t) at -epsilon, (1 - delta) / (1 + t) at epsilon.
            less = -((-rest.numerator * t_high << bits) // (rest.denominator * (one + t_high)))
            more = -((-rest.numerator * one << bits) // (rest.denominator * (one + t_low)))
            atoms = [Atom(less, below), Atom(more, above)]
            indices = [0, 1]
            own = Levels(self.epsilon.to_the(2), self.epsilon.to_the(-1))
        if levels is not None:
            return _on_grid(Law(atoms, infinity, []), levels, grid, bits), levels
        return _on_lattice(Law(atoms, infinity, indices), grid, bits), own


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise x with probability proportional to e^(-rate |x|), on integers that are `shift` apart."""

    rate: Level
    shift: int

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> DiscreteLaplace:
        rate = _level(stated["epsilon_per_unit"], "epsilon_per_unit of a release")
        need(rate != ONE, "epsilon_per_unit of a release must be above 0")
        return cls(rate, _shift(stated["shift"]))

    def reversed(self) -> DiscreteLaplace:
        return self

    def is_symmetric(self) -> bool:
        return True

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        own = Levels(self.rate.to_the(2), self.rate.to_the(-1), self.shift)
        bits = grid.working_bits(self.shift + 1)
        wide = bits + 8
        one, a = 1 << wide, self.rate.near(wide).inverse(wide)
        low = a.units(wide)[0]
        atoms, table = [], Table(Levels(self.rate), wide)
        grid.work.spend(self.shift << 10)
        for index in range(self.shift + 1):
            x = self.shift - index
            # a^x / (1 + a), times 1 - a between the two ends.
            mass = (one if x == 0 else a.power(x, wide).units(wide)[1]) << wide
            mass = -(-mass // (one + low))
            if 0 < index < self.shift:
                mass = -(-mass * (one - low) >> wide)
            level = table.near(2 * index - self.shift) if levels is not None else Near(1, 1, 0)
            atoms.append(Atom(-(-mass >> 8), level))
        if levels is not None:
            return _on_grid(Law(atoms, 0, []), levels, grid, bits), levels
        return _on_lattice(Law(atoms, 0, list(range(self.shift + 1))), grid, bits), own


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise x with probability proportional to e^(-x^2 / (2 sigma^2)), on integers that are `shift` apart."""

    sigma_squared: Fraction
    shift: int

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> DiscreteGaussian:
        sigma_squared = _short(stated["sigma_squared"], "sigma_squared of a release")
        need(Fraction(1, 100) <= sigma_squared <= 2**22, "sigma_squared of a release must be from 1/100 to 2^22")
        return cls(sigma_squared, _shift(stated["shift"]))

    def reversed(self) -> DiscreteGaussian:
        return self

    def is_symmetric(self) -> bool:
        return True

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        """The noise at -last, ..., last; what is below has an infinite loss, what is above the least one."""
        unit, inverse = Fraction(1), 1 / self.sigma_squared
        last = 2 + math.isqrt(math.ceil(self.sigma_squared * 2 * (grid.bits + 16)))
        bits = grid.working_bits(2 * last + 1)
        wide = bits + 64
        grid.work.spend(last << 10)
        # e^(-x^2 / (2 sigma^2)) at 0, 1, ..., last + 1, each by the quotient to the one before.
        weight, quotient = Near(1, 1, 0), exponential(-inverse / 2, wide)
        further, weights = exponential(-inverse, wide), []
        for _ in range(last + 2):
            weights.append(weight.units(wide))
            weight, quotient = weight.times(quotient, wide), quotient.times(further, wide)
        one = 1 << wide
        total = 2 * sum(low for low, _ in weights[: last + 1]) - one
        # From last + 1 on quotients fall, so that the tail is below a geometric series.
        falling = exponential(-(2 * last + 3) * inverse / 2, wide).units(wide)[1]
        need(falling < one, "sigma_squared of a release is too large to be checked")
        tail = -((-weights[-1][1] << wide) // (one - falling))
        shares = [-((-high << bits) // total) for _, high in weights[: last + 1]]
        infinity = -((-tail << bits) // total)
        table = Table(Levels(Level(unit, self.shift * inverse / 2)), wide)
        atoms, indices = [], range(-last, last + 1)
        for index in indices:
            level = table.near(self.shift + 2 * index) if levels is not None else Near(1, 1, 0)
            atoms.append(Atom(shares[abs(index)], level))
        if levels is not None:
            return _on_grid(Law(atoms, infinity, []), levels, grid, bits), levels
        own = Levels(Level(unit, self.shift * inverse), Level(unit, self.shift**2 * inverse / 2))
        return _on_lattice(Law(atoms, infinity, list(indices)), grid, bits), own


@dataclass(frozen=True)
class BoundedRange:
    """All releases whose losses lie in an interval of a width, wherever it is."""

    range: Level

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> BoundedRange:
        width = _level(stated["range"], "the range of a release")
        need(width != ONE, "the range of a release must be above 0")
        return cls(width)

    def reversed(self) -> BoundedRange:
        return self

    def is_symmetric(self) -> bool:
        return True

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        """By the curve g(E) = (1 - sqrt(E t))^2 / (1 - t) for t = e^-range, between t and 1 / t."""
        need(levels is not None, "releases of a bounded range are on no lattice; they need a resolution")
        assert levels is not None
        assert grid.resolution is not None
        bits = grid.working_bits(2**20)
        place = self.range.near(64).ln() / float(grid.resolution)
        need(place < MOST_TERMS / 2 - 4, f"a release has over {MOST_TERMS} losses at this resolution")
        high = int(place) + 2
        grid.room(-high, high)
        one, t = 1 << bits, self.range.near(bits).inverse(bits)
        t_low, t_high = t.units(bits)
        need(t_high < one, "the range of a release is too small for this many bits")
        table = Table(levels, bits)
        upper, lower = [], []
        for index in range(-high - 1, high + 1):
            level = table.near(index)
            scaled = level.times(t, bits + 8).units(2 * bits)
            s_low, s_high = math.isqrt(scaled[0]), math.isqrt(scaled[1]) + 1
            e_low, e_high = level.units(bits) if index <= 0 else (one, one)
            # The formula is at least the curve everywhere; 1 - E is at most it.
            if s_low >= one:
                upper.append(0)
            elif s_high <= t_low:
                upper.append(one - e_low)
            else:
                upper.append(-(-((one - s_low) ** 2) // (one - t_high)))
            inside = s_low >= t_high and s_high <= one
            lower.append(max(one - e_high, (one - s_high) ** 2 // (one - t_low) if inside else 0, 0))
        return _by_curve(-high, upper, lower, levels, grid, bits), levels


@dataclass(frozen=True)
class Gaussian:
    """Continuous Gaussian noise, by the square of the distance of the means over the standard deviation."""

    mu_squared: Fraction

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Gaussian:
        mu_squared = _short(stated["mu_squared"], "mu_squared of a release")
        need(Fraction(1, 2**40) <= mu_squared <= 2**8, "mu_squared of a release must be from 2^-40 to 2^8")
        return cls(mu_squared)

    def reversed(self) -> Gaussian:
        return self

    def is_symmetric(self) -> bool:
        return True

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        """By the curve g(E) = Phi(mu / 2 - loss / mu) - E Phi(-mu / 2 - loss / mu), E = e^loss."""
        need(levels is not None, "Gaussian releases are on no lattice; they need a resolution")
        assert levels is not None
        assert grid.resolution is not None
        # What is beyond is about the cut; it goes to infinity, or up to the lowest level.
        depth = grid.bits + 10 - grid.cut.bit_length()
        mu, middle = math.sqrt(self.mu_squared), float(self.mu_squared) / 2
        reach, width = mu * math.sqrt(2 * math.log(2) * depth), float(grid.resolution)
        need((middle + reach) / width < MOST_TERMS / 2, f"a release has over {MOST_TERMS} losses at this resolution")
        low, high = math.floor((middle - reach) / width) - 1, math.ceil((middle + reach) / width) + 1
        bits = grid.working_bits(2**20)
        # Phi is multiplied by E.
        wide = bits + 16 + math.ceil(1.45 * (middle + reach + width))
        grid.room(low, high)
        grid.work.spend((high - low) * (1 + wide // 256) << 12)
        inverse = square_root(self.mu_squared, wide + 64).inverse(wide + 64)
        table, normal, one = Table(levels, wide), Normal(wide), 1 << wide
        upper, lower = [], []
        for index in range(low - 1, high + 1):
            twice = 2 * index * grid.resolution
            first = normal.below((self.mu_squared - twice) / 2, inverse)
            second = normal.below(-(self.mu_squared + twice) / 2, inverse)
            e_low, e_high = table.near(index).units(wide)
            most = first[1] - (e_low * max(second[0], 0) >> wide)
            least = first[0] + (-e_high * second[1] >> wide)
            upper.append(-(-min(most, one) >> wide - bits))
            lower.append(max(least, one - e_high, 0) >> wide - bits)
        return _by_curve(low, upper, lower, levels, grid, bits), levels


def _by_curve(low: int, upper: Sequence[int], lower: Sequence[int], levels: Levels, grid: Grid, bits: int) -> Masses:
    """The chords of a curve between levels, from enclosures of it in units of 2^-bits, at low - 1 and all above it."""
    step_low, step_high = levels.step.near(2 * bits).units(2 * bits)
    need(step_low > 1 << 2 * bits, "the resolution is too fine to be checked")
    drop, whole = bits - grid.bits, 1 << grid.bits
    infinity = least = min(whole, -(-max(upper[-1], 0) >> drop))
    survival = []
    for before, here in zip(reversed(upper[:-1]), reversed(lower[1:]), strict=True):
        # (G g(E_(i-1)) - g(E_i)) / (G - 1) is at or above level i.
        above = step_high * before - (here << 2 * bits)
        value = -(-max(above, 0) // (step_low - (1 << 2 * bits)))
        least = max(least, min(whole, -(-value >> drop)))
        survival.append(least)
    survival.reverse()
    survival[0] = whole
    return grid.masses(low, survival, infinity)


KINDS: dict[str, tuple[Callable[[Mapping[str, Any]], Release], set[str]]] = {
    "pair": (Pair.read, {"p", "q"}),
    "pure": (Pure.read, {"epsilon", "delta"}),
    "discrete-laplace": (DiscreteLaplace.read, {"epsilon_per_unit", "shift"}),
    "discrete-gaussian": (DiscreteGaussian.read, {"sigma_squared", "shift"}),
    "bounded-range": (BoundedRange.read, {"range"}),
    "gaussian": (Gaussian.read, {"mu_squared"}),
}
Release = Pair | Pure | DiscreteLaplace | DiscreteGaussian | BoundedRange | Gaussian


def _short(text: Any, name: str) -> Fraction:
    need(isinstance(text, str) and len(text) <= MOST_LENGTH, f"{name} is no fraction, or too long to be checked")
    return fraction(text)


def _shift(value: Any) -> int:
    shift = count(value, "the shift of a release", 1)
    need(shift <= 2**16, "the shift of a release must be at most 2^16")
    return shift


def _level(value: Any, name: str) -> Level:
    need(isinstance(value, dict) and set(value) == {"ratio", "exponent"}, f"{name} has missing or unknown fields")
    level = Level(_short(value["ratio"], name), _short(value["exponent"], name))
    need(level.ratio >= 1 and level.exponent >= 0, f"{name} must be >= 0")
    need(level.exponent <= MOST_LOSS, f"{name} is too large to be checked")
    return level


def _weights(texts: Any, name: str) -> tuple[int, ...]:
    need(isinstance(texts, list), f"{name} of a pair must be a list")
    weights = [_short(text, f"a weight in {name} of a pair") for text in texts]
    need(
        all(weight.denominator == 1 and weight >= 0 for weight in weights), f"{name} of a pair must hold integers >= 0"
    )
    return tuple(weight.numerator for weight in weights)


# Compositions -------------------------------------------------------------------------------------------------


class Multiplier:
    """Exact products, rounded upwards."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.width = grid, grid.width

    def times(self, x: Masses, y: Masses) -> Masses:
        terms = len(x.finite) + len(y.finite) - 1
        digits = terms * self.width
        need(_COMPILED or terms <= MOST_PLAIN, f"over {MOST_PLAIN} terms need Python's compiled decimal module")
        need(
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
        survival = []
        # The digits begin with the term of the largest loss.
        for start in range(0, digits, self.width):
            total += int(text[start : start + self.width])
            survival.append(-(-total >> bits))
        assert total == whole << bits, "masses of a product do not sum to one"
        survival.reverse()
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


def _one_order(releases: Sequence[tuple[Release, int]], grid: Grid, epsilon: Level) -> Fraction:
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
    need(times <= MOST_COUNT, "the count of a release is too large to be checked")
    return read(stated), times


def bound_of(report: Mapping[str, Any]) -> Fraction:
    """A bound of the least delta at the epsilon of a certificate, from its other fields alone."""
    stated = report["releases"]
    need(isinstance(stated, list) and 1 <= len(stated) <= MOST_RELEASES, f"releases must be 1 to {MOST_RELEASES}")
    releases = [_release(release) for release in stated]
    bits = count(report["bits"], "bits", 8)
    need(bits <= MOST_BITS, f"bits must be at most {MOST_BITS}")
    resolution = None
    if report["resolution"] is not None:
        resolution = _short(report["resolution"], "resolution")
        need(FINEST <= resolution <= 1, "resolution must be from 2^-48 to 1")
    cut = _short(report["cut"], "cut")
    need(cut.denominator == 1 and 0 <= cut < 1 << bits - 2, "cut must be an integer >= 0 below 2^(bits - 2)")
    epsilon = _level(report["epsilon"], "epsilon")
    return composed_delta(releases, Grid(bits, resolution, cut.numerator, Work()), epsilon)


def check_composition(report: Mapping[str, Any]) -> Checked:
    """Compose the releases again, and compare with the claim; no other number is believed."""
    need(report["neighbors"] in ("replace", "add-remove"), "neighbors must be 'replace' or 'add-remove'")
    delta = _short(report["delta"], "delta")
    need(0 <= delta <= 1, "delta must be in [0, 1]")
    bound = bound_of(report)
    shown = "" if bound <= delta else _rounded_up(bound)
    need(bound <= delta, f"the releases are not shown to have this delta together: the bound at epsilon is {shown}")
    return Checked("established")


def _rounded_up(x: Fraction) -> str:
    """Four digits of it, upwards."""
    context = decimal.Context(prec=4, rounding=decimal.ROUND_UP)
    return str(context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator)))
