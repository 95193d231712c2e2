"""Releases of a composition, and the masses of their losses on a grid, rounded up.

Every step moves mass of P to a larger loss or rounds a survival sum up, and both raise delta at every epsilon
(docs/proofs/exact_composition.md, Theorems 2 and 3).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from userdp.checker import work
from userdp.checker.enclosures import Logarithm, Near, Normal, NormalTable, ceil_units, exponential, square_root
from userdp.checker.values import count, fraction, need

MOST_TERMS = 2**20
"""Losses of a release."""
MOST_WORK = 2**29
"""Decimal digits of all products together, and what takes as long: about a minute."""
STEPS = 30
"""Of `work` for such a digit."""
COARSER = "a coarser resolution has fewer terms"
MOST_LOSS = 2**20
MOST_LENGTH = 2**14
"""Characters of a parameter, and of a weight."""


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


class End(NamedTuple):
    """At least the largest finite loss of a release, as a level, and the mass at infinity."""

    largest: Level
    infinity: Fraction


class Work:
    """What a check may cost, so that no certificate keeps it busy for ever."""

    def __init__(self) -> None:
        self.left = MOST_WORK

    def spend(self, digits: int) -> None:
        self.left -= digits
        work.spend(STEPS * digits, COARSER)
        work.afford(self.left >= 0, f"the composition is too large to be checked; {COARSER}")


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
        work.afford(high - low < MOST_TERMS, f"a release has over {MOST_TERMS} losses at this resolution")
        self.work.spend((high - low + 1) * 2 * self.width)
        return high - low + 1

    def points(self, points: int, bits: int) -> None:
        """Count the values of a curve of Gaussian noise."""
        self.work.spend(points * (1 + bits // 256) << 11)
        work.spend(points * (10_000 + bits * bits), COARSER)

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
        work.afford(abs(place) < 2**50, "a loss is too large for this resolution")
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
    work.afford(step_low > 1 << 2 * bits, "the resolution is too fine to be checked")
    for cell, atom in kept:
        # (1 - E_i / E) G / (G - 1) of an atom at E goes up.
        ratio = table.near(cell).times(atom.level.inverse(bits + 8), bits + 8).units(bits)[0]
        share = -(-max((1 << bits) - ratio, 0) * step_high // (step_low - (1 << 2 * bits)))
        given = min(atom.mass, -(-atom.mass * share >> bits))
        at[cell - low] += atom.mass
        rising[cell + 1 - low] += given
    return grid.spread(low, at, rising, infinity, bits)


class Release(ABC):
    """A pair of distributions that bounds the privacy loss of a release."""

    def reversed(self) -> Release:
        """The pair in the other order."""
        return self

    def is_symmetric(self) -> bool:
        """Whether both orders have one law of losses."""
        return True

    def end(self) -> End | None:
        """Where its losses end; none where they do not, or where that is not known."""
        return None

    @abstractmethod
    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        """Its masses on a grid, and the levels of their indices: those given, or those of its own lattice."""


@dataclass(frozen=True)
class Pair(Release):
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

    def _ratios(self) -> tuple[dict[str, int], int]:
        """P's weight at every ratio of P to Q, as text, whose hashes nobody can choose, and where Q has none."""
        total_p, total_q = sum(self.p), sum(self.q)
        found, infinity = dict[str, int](), 0
        for x, y in zip(self.p, self.q, strict=True):
            if x and y:
                ratio = "{:x}/{:x}".format(*Fraction(x * total_q, y * total_p).as_integer_ratio())
                found[ratio] = found.get(ratio, 0) + x
            elif x:
                infinity += x
        return found, infinity

    def is_symmetric(self) -> bool:
        (ratios, infinity), (back, other) = self._ratios(), self.reversed()._ratios()
        total_p, total_q = sum(self.p), sum(self.q)
        first = {ratio: weight * total_q for ratio, weight in ratios.items()}
        second = {ratio: weight * total_p for ratio, weight in back.items()}
        return infinity * total_q == other * total_p and first == second

    def end(self) -> End | None:
        ratios, infinity = self._ratios()
        largest = max(map(_of_text, ratios), default=Fraction(1))
        return End(Level(largest, Fraction(0)), Fraction(infinity, sum(self.p)))

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        grid.work.spend(sum(1024 + weight.bit_length() ** 2 // 2**13 for weight in (*self.p, *self.q)))
        weights, infinite = self._ratios()
        bits, total = grid.working_bits(len(weights)), sum(self.p)
        by_ratio = sorted((_of_text(ratio), weight) for ratio, weight in weights.items())
        ratios = [ratio for ratio, _ in by_ratio]
        atoms = [Atom(-((-weight << bits) // total), Near.of(ratio, bits + 8)) for ratio, weight in by_ratio]
        infinity = -((-infinite << bits) // total)
        if levels is not None:
            return _on_grid(Law(atoms, infinity, []), levels, grid, bits), levels
        found, indices = _lattice_of(ratios)
        return _on_lattice(Law(atoms, infinity, indices), grid, bits), found


def _of_text(ratio: str) -> Fraction:
    top, bottom = (int(part, 16) for part in ratio.split("/"))
    return Fraction(top, bottom)


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
class Pure(Release):
    """All (epsilon, delta)-DP releases: losses epsilon and -epsilon, and infinity [KOV15]."""

    epsilon: Level
    delta: Fraction

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Pure:
        delta = short(stated["delta"], "delta of a release")
        need(0 <= delta < 1, "delta of a release must be in [0, 1)")
        return cls(read_level(stated["epsilon"], "epsilon of a release"), delta)

    def end(self) -> End | None:
        return End(self.epsilon, self.delta)

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
class DiscreteLaplace(Release):
    """Noise x with probability proportional to e^(-rate |x|), on integers that are `shift` apart."""

    rate: Level
    shift: int

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> DiscreteLaplace:
        rate = read_level(stated["epsilon_per_unit"], "epsilon_per_unit of a release")
        need(rate != ONE, "epsilon_per_unit of a release must be above 0")
        return cls(rate, _shift(stated["shift"]))

    def end(self) -> End | None:
        return End(self.rate.to_the(self.shift), Fraction(0)) if self.rate.ratio == 1 else None

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
class DiscreteGaussian(Release):
    """Noise x with probability proportional to e^(-x^2 / (2 sigma^2)), on integers that are `shift` apart."""

    sigma_squared: Fraction
    shift: int

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> DiscreteGaussian:
        sigma_squared = short(stated["sigma_squared"], "sigma_squared of a release")
        need(Fraction(1, 100) <= sigma_squared <= 2**22, "sigma_squared of a release must be from 1/100 to 2^22")
        return cls(sigma_squared, _shift(stated["shift"]))

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
        work.afford(falling < one, "sigma_squared of a release is too large to be checked")
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
class BoundedRange(Release):
    """All releases whose losses lie in an interval of a width, wherever it is."""

    range: Level

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> BoundedRange:
        width = read_level(stated["range"], "the range of a release")
        need(width != ONE, "the range of a release must be above 0")
        return cls(width)

    def end(self) -> End | None:
        return End(self.range, Fraction(0))

    def value(self, rest: int, least: int, *, up: bool) -> int:
        """The curve from 1 - sqrt(E t) and 1 - t, rounded up or down."""
        return -(-(rest**2) // least) if up else rest**2 // least

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        """By a curve that is (1 - sqrt(E t))^2 / (1 - t) between t = e^-range and 1 / t, 1 - E and 0 outside."""
        need(levels is not None, "releases of a bounded range are on no lattice; they need a resolution")
        assert levels is not None
        assert grid.resolution is not None
        bits = grid.working_bits(2**20)
        place = self.range.near(64).ln() / float(grid.resolution)
        work.afford(place < MOST_TERMS / 2 - 4, f"a release has over {MOST_TERMS} losses at this resolution")
        high = int(place) + 2
        grid.room(-high, high)
        work.spend(2 * high * (30_000 + bits * bits), COARSER)
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
                upper.append(self.value(one - s_low, one - t_high, up=True))
            inside = s_low >= t_high and s_high <= one
            lower.append(max(one - e_high, self.value(one - s_high, one - t_low, up=False) if inside else 0, 0))
        return _by_curve(-high, upper, lower, levels, grid, bits), levels


@dataclass(frozen=True)
class Laplace(BoundedRange):
    """Continuous Laplace noise, whose losses are at most sensitivity / scale: g(E) = 1 - sqrt(E t), t = e^-range."""

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Laplace:
        largest = read_level(stated["epsilon"], "epsilon of a release")
        need(largest != ONE, "epsilon of a release must be above 0")
        return cls(largest)

    def value(self, rest: int, least: int, *, up: bool) -> int:
        return rest


class NoiseCurve:
    """g(E) = Phi(mu / 2 - l / mu) - E Phi(-mu / 2 - l / mu) for E = e^l: of Gaussian noise, in units of 2^-bits."""

    def __init__(self, mu_squared: Fraction, bits: int, normal: Normal) -> None:
        self.bits, self.normal = bits, normal
        self.inverse = square_root(mu_squared, bits + 64).inverse(bits + 64).units(bits)
        half = mu_squared.numerator << bits
        self.half = half // (2 * mu_squared.denominator), -(-half // (2 * mu_squared.denominator))

    def at(self, loss: tuple[int, int], level: tuple[int, int]) -> tuple[int, int]:
        """Enclose it, from enclosures of l and E."""
        bits = self.bits
        first = self.normal.below(*self._over_mu(self.half[0] - loss[1], self.half[1] - loss[0]))
        second = self.normal.below(*self._over_mu(-self.half[1] - loss[1], -self.half[0] - loss[0]))
        return first[0] + (-level[1] * second[1] >> bits), first[1] - (level[0] * max(second[0], 0) >> bits)

    def _over_mu(self, low: int, high: int) -> tuple[int, int]:
        bits, (less, more) = self.bits, self.inverse
        return low * (less if low >= 0 else more) >> bits, -(-high * (more if high >= 0 else less) >> bits)


def _reach(mu_squared: Fraction, grid: Grid) -> tuple[float, float, int]:
    """Losses of Gaussian noise beyond which P has about the mass of the cut, and bits for levels up to there."""
    depth = grid.bits + 10 - grid.cut.bit_length()
    middle, reach = float(mu_squared) / 2, math.sqrt(float(mu_squared) * 2 * math.log(2) * depth)
    finer = int(1 / grid.resolution).bit_length() if grid.resolution else 0
    # Phi is multiplied by E, and its arguments are losses over mu.
    fine = max(mu_squared.denominator.bit_length() - mu_squared.numerator.bit_length(), 0) // 2
    return middle - reach, middle + reach, grid.bits + 40 + finer + fine + math.ceil(1.45 * (middle + reach + 1))


@dataclass(frozen=True)
class Gaussian(Release):
    """Continuous Gaussian noise, by the square of the distance of the means over the standard deviation."""

    mu_squared: Fraction

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> Gaussian:
        return cls(_mu_squared(stated))

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        need(levels is not None, "Gaussian releases are on no lattice; they need a resolution")
        assert levels is not None
        assert grid.resolution is not None
        below, above, bits = _reach(self.mu_squared, grid)
        width = float(grid.resolution)
        work.afford(above / width < MOST_TERMS / 2, f"a release has over {MOST_TERMS} losses at this resolution")
        low, high = math.floor(below / width) - 1, math.ceil(above / width) + 1
        grid.room(low, high)
        grid.points(high - low, bits)
        table, curve, one = Table(levels, bits), NoiseCurve(self.mu_squared, bits, NormalTable(bits)), 1 << bits
        upper, lower = [], []
        for index in range(low - 1, high + 1):
            loss = (index * grid.resolution.numerator << bits) // grid.resolution.denominator
            level = table.near(index).units(bits)
            least, most = curve.at((loss, loss + 1), level)
            upper.append(min(most, one))
            lower.append(max(least, one - level[1], 0))
        return _by_curve(low, upper, lower, levels, grid, bits), levels


@dataclass(frozen=True)
class SampledGaussian(Release):
    """Gaussian noise on a Poisson sample of users at a rate, one user less or, where `added`, one more.

    The curve g of the noise becomes q g((E - 1 + q) / q) for E > 1 - q, and 1 - E below; that of the other order
    follows from it.
    """

    mu_squared: Fraction
    rate: Fraction
    added: bool = False
    known: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)
    """Values of the first curve at indices, for so many bits: both orders need them."""

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> SampledGaussian:
        return cls(_mu_squared(stated), _rate(stated))

    def reversed(self) -> SampledGaussian:
        return replace(self, added=not self.added)

    def is_symmetric(self) -> bool:
        return False

    def _range(self, grid: Grid) -> tuple[int, int]:
        """The first and last index of losses of the first order."""
        assert grid.resolution is not None
        below, above, _ = _reach(self.mu_squared, grid)
        rate, width = float(self.rate), float(grid.resolution)
        # Without the user, the noise's loss is around -mu^2 / 2.
        ends = (-above, -below) if self.added else (below, above)
        low, high = (_sampled_loss(rate, loss) / width for loss in ends)
        work.afford(high - low < MOST_TERMS / 2, f"a release has over {MOST_TERMS} losses at this resolution")
        return math.floor(low) - 1, math.ceil(high) + 1

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        need(levels is not None, "sampled Gaussian releases are on no lattice; they need a resolution")
        assert levels is not None
        bits = _reach(self.mu_squared, grid)[2] + self.rate.denominator.bit_length()
        low, high = self._range(grid)
        grid.room(low, high)
        grid.points(high - low, bits)
        curve = SampledCurve(self.mu_squared, self.rate, levels, bits, self.known)
        if not self.added:
            values = [curve.removed(index) for index in range(low - 1, high + 1)]
            first = low
        else:
            values = [curve.added(-index) for index in range(high + 1, low - 2, -1)]
            first = -high
        return _by_curve(
            first, [most for _, most in values], [least for least, _ in values], levels, grid, bits
        ), levels


@dataclass(frozen=True)
class FixedSampleGaussian(Release):
    """Gaussian noise on a sample of a fixed size, of which a user is replaced.

    For E >= 1 its curve is that of a Poisson sample of one user less, below 1 that of one more.
    """

    mu_squared: Fraction
    rate: Fraction

    @classmethod
    def read(cls, stated: Mapping[str, Any]) -> FixedSampleGaussian:
        return cls(_mu_squared(stated), _rate(stated))

    def masses(self, grid: Grid, levels: Levels | None) -> tuple[Masses, Levels]:
        need(levels is not None, "sampled Gaussian releases are on no lattice; they need a resolution")
        assert levels is not None
        assert grid.resolution is not None
        _, above, bits = _reach(self.mu_squared, grid)
        bits += self.rate.denominator.bit_length()
        most = _sampled_loss(float(self.rate), above) / float(grid.resolution)
        work.afford(most < MOST_TERMS / 2 - 4, f"a release has over {MOST_TERMS} losses at this resolution")
        high = math.ceil(most) + 1
        grid.room(-high, high)
        grid.points(2 * high, bits)
        curve = SampledCurve(self.mu_squared, self.rate, levels, bits, {})
        values = [curve.removed(i) if i >= 0 else curve.added(i) for i in range(-high - 1, high + 1)]
        return _by_curve(
            -high, [most for _, most in values], [least for least, _ in values], levels, grid, bits
        ), levels


class SampledCurve:
    """The curve of Gaussian noise on a sample, at the levels of a grid, in units of 2^-bits."""

    def __init__(
        self,
        mu_squared: Fraction,
        rate: Fraction,
        levels: Levels,
        bits: int,
        known: dict[tuple[int, int], tuple[int, int]],
    ) -> None:
        self.rate, self.bits, self.known = rate, bits, known
        self.noise = NoiseCurve(mu_squared, bits, NormalTable(bits))
        self.table, self.logarithm = Table(levels, bits), Logarithm(bits)

    def removed(self, index: int) -> tuple[int, int]:
        """Q g((E - 1 + q) / q), or 1 - E where that is larger."""
        if (index, self.bits) not in self.known:
            self.known[index, self.bits] = self._removed(index)
        return self.known[index, self.bits]

    def _removed(self, index: int) -> tuple[int, int]:
        one, (low, high) = 1 << self.bits, self.table.near(index).units(self.bits)
        top, bottom = self.rate.numerator, self.rate.denominator
        # (E - 1) / q + 1
        inner = one + (low - one) * bottom // top, one - (one - high) * bottom // top
        if inner[0] <= 0:
            # At most max(1 - E, q) near 1 - q, which is the curve there to the width of an enclosure.
            return max(one - high, 0), min(max(one - low, -(-(top << self.bits) // bottom) if inner[1] > 0 else 0), one)
        least, most = self.noise.at(self.logarithm.of(*inner), inner)
        return max(least * top // bottom, one - high, 0), min(max(-(-most * top // bottom), one - low), one)

    def added(self, index: int) -> tuple[int, int]:
        """The other order: 1 - E + E times the curve at 1 / E."""
        one, (low, high) = 1 << self.bits, self.table.near(index).units(self.bits)
        least, most = self.removed(-index)
        return (
            max(one + (-high * (one - least) >> self.bits), one - high, 0),
            min(one - (low * (one - most) >> self.bits), one),
        )


def _sampled_loss(rate: float, loss: float) -> float:
    """ln(1 - q + q e^loss), roughly."""
    if rate < 1:
        larger = max(math.log(rate) + loss, math.log1p(-rate))
        return larger + math.log(math.exp(math.log(rate) + loss - larger) + math.exp(math.log1p(-rate) - larger))
    return loss


def _rate(stated: Mapping[str, Any]) -> Fraction:
    rate = short(stated["rate"], "the rate of a release")
    need(Fraction(1, 2**40) <= rate <= 1, "the rate of a release must be from 2^-40 to 1")
    return rate


def _mu_squared(stated: Mapping[str, Any]) -> Fraction:
    mu_squared = short(stated["mu_squared"], "mu_squared of a release")
    need(Fraction(1, 2**40) <= mu_squared <= 2**8, "mu_squared of a release must be from 2^-40 to 2^8")
    return mu_squared


def _by_curve(low: int, upper: Sequence[int], lower: Sequence[int], levels: Levels, grid: Grid, bits: int) -> Masses:
    """The chords of a curve between levels, from enclosures of it in units of 2^-bits, at low - 1 and all above it."""
    step_low, step_high = levels.step.near(2 * bits).units(2 * bits)
    work.afford(step_low > 1 << 2 * bits, "the resolution is too fine to be checked")
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
    "laplace": (Laplace.read, {"epsilon"}),
    "gaussian": (Gaussian.read, {"mu_squared"}),
    "sampled-gaussian": (SampledGaussian.read, {"mu_squared", "rate"}),
    "fixed-sample-gaussian": (FixedSampleGaussian.read, {"mu_squared", "rate"}),
}


def short(text: Any, name: str) -> Fraction:
    need(isinstance(text, str), f"{name} is no fraction")
    work.afford(len(text) <= MOST_LENGTH, f"{name} is too long to be checked")
    return fraction(text)


def _shift(value: Any) -> int:
    shift = count(value, "the shift of a release", 1)
    need(shift <= 2**16, "the shift of a release must be at most 2^16")
    return shift


def read_level(value: Any, name: str) -> Level:
    need(isinstance(value, dict) and set(value) == {"ratio", "exponent"}, f"{name} has missing or unknown fields")
    level = Level(short(value["ratio"], name), short(value["exponent"], name))
    need(level.ratio >= 1 and level.exponent >= 0, f"{name} must be >= 0")
    work.afford(level.exponent <= MOST_LOSS, f"{name} is too large to be checked")
    return level


def _weights(texts: Any, name: str) -> tuple[int, ...]:
    need(isinstance(texts, list), f"{name} of a pair must be a list")
    weights = [short(text, f"a weight in {name} of a pair") for text in texts]
    need(
        all(weight.denominator == 1 and weight >= 0 for weight in weights), f"{name} of a pair must hold integers >= 0"
    )
    return tuple(weight.numerator for weight in weights)
