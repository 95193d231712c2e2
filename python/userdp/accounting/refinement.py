"""Answers about compositions: grids and masses that are refined until both bounds are as near as was asked."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

from userdp import _core
from userdp.accounting.closed_forms import Enclosed, closed_form
from userdp.accounting.losses import ReleaseLoss
from userdp.accounting.tail_bounds import Tails, tails_of
from userdp.checker.enclosures import Near
from userdp.exact.epsilon import core_level, value_enclosure
from userdp.exact.numbers import PrivacyLevel, printed_up
from userdp.exceptions import BudgetError
from userdp.runtime import progress_bar

Parts: TypeAlias = "tuple[tuple[ReleaseLoss, int], ...]"

MOST_LIMBS = 18
FIRST_GRID = Fraction(1, 64)
"""Number of releases times the squared resolution, at first: it tells how fine the grid has to be."""
FIRST_CERTIFIED = Fraction(1, 1000)
"""The same for certificates, which take the first grid: the two bounds are within about 0.003 then."""
MARGIN = 1.15
"""By how much a grid is made finer than coarser ones say it needs to be: it is less often too coarse again."""
LATTICE_SHARE = Fraction(1, 10**12)
"""How far bounds of delta are apart, as a share of it, where nothing is moved to a grid."""
FINEST = 2**40
"""The most levels for a unit of loss."""
WIDER = Fraction(1, 2**192)
"""Where masses are too narrow for a lattice, they are made as wide as for a delta that is so much smaller."""
LEAST_TAIL = Fraction(1, 2**120)
"""For bounds by moments, and estimates."""
TOO_LONG = 2
"""How many times as many losses as are allowed are not tried: estimates are up to about so much too large."""
EXACT_BITS = 2**16
"""Of a product of masses that are not infinite; a longer one is enclosed."""
LEAST_DELTA = Fraction(1, 2**1000)
"""Of smaller ones, answers may say no more than that."""
REMEMBERED_BYTES = 2**28
"""Of compositions that are kept for the next question."""


Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True, slots=True)
class Found(Generic[Number]):
    """Bounds that were found."""

    lower: Number
    upper: Number
    deep: bool = True
    """Whether masses are wide enough for an answer of this size."""


@dataclass(frozen=True, slots=True)
class End:
    """Where all losses together end."""

    infinity: Enclosed
    """The mass at infinity."""
    releases: list[_core.Release]
    counts: list[int]
    """What has the largest finite losses, or larger ones."""
    clipped: bool
    """Whether some of them have larger ones: no level is below 1."""
    whole: Fraction | None
    """All of them together, where they are no logarithms."""

    @property
    def largest(self) -> tuple[float, float]:
        """Around the largest finite loss."""
        lower, upper = _core.largest_loss(self.releases, self.counts) or (0.0, math.inf)
        return (0.0 if self.clipped else lower), _outward(upper) if self.whole is None else printed_up(self.whole)

    def is_at_most(self, level: PrivacyLevel) -> bool:
        """Whether delta is the mass at infinity there, for certain."""
        return _core.largest_loss_at_most(self.releases, self.counts, core_level(level))


def _outward(upper: float) -> float:
    """A bound from above also as the decimal that it prints as."""
    return upper if math.isinf(upper) else printed_up(Fraction(upper))


class Refined:
    """What computes bounds for a list of releases."""

    __slots__ = ()

    _parts: Parts

    @property
    def releases(self) -> int:
        """How many releases there are; Gaussian ones count as one together."""
        return sum(count for _, count in self._parts)

    def _private(self, level: PrivacyLevel, delta: Fraction, max_terms: int) -> bool | None:
        """Whether the pairs together are (epsilon, delta)-DP."""
        verdicts = self._both(lambda backwards: self._decided(level, delta, backwards, max_terms))
        if False in verdicts:
            return False
        return None if None in verdicts else True

    def _end(self, backwards: bool) -> End | None:
        """Masses at infinity and largest losses of all releases; none where a release's losses have no end."""
        least = most = Fraction(1)
        releases, counts, clipped = [], [], False
        whole: Fraction | None = Fraction(0)
        for part, count in self._parts:
            end = part.end(backwards)
            if end is None:
                return None
            infinite, largest = end
            low, high = _power(1 - infinite, count)
            least, most = least * low, most * high
            if largest.ratio < 1 or largest.exponent < 0:
                clipped, largest = True, PrivacyLevel(Fraction(1), Fraction(0))
            releases.append(_core.Release.pure(core_level(largest), Fraction(0), 2))
            counts.append(count * part.units)
            whole = whole + count * part.units * largest.exponent if whole is not None and largest.ratio == 1 else None
        return End((1 - most, 1 - least), releases, counts, clipped, whole)

    def _known(self, level: PrivacyLevel, backwards: bool, wanted: Fraction | None = None) -> Enclosed | None:
        """Delta at a level without a composition: of one release, or from the largest finite loss on."""
        end = self._end(backwards)
        if end is not None and end.is_at_most(level):
            return end.infinity
        (part, count), *more = self._parts
        return closed_form(part, level, backwards, wanted) if count == 1 and not more else None

    def _both(self, answer: Any) -> list[Any]:
        """The answers for both orders of the pair, where these differ."""
        orders = (False,) if all(part.symmetric for part, _ in self._parts) else (False, True)
        return [answer(backwards) for backwards in orders]

    def _first_steps(self, first: Fraction = FIRST_GRID) -> int:
        return math.isqrt(math.ceil(self.releases / first)) + 1

    def _larger_delta(self, level: PrivacyLevel, relative: Fraction, max_terms: int) -> tuple[Fraction, Fraction]:
        """Bounds of the larger delta of both orders."""
        searches = self._both(lambda backwards: self._deltas(level, backwards, relative, max_terms))
        near = lambda lower, upper: upper - lower <= relative * upper  # noqa: E731
        tail = lambda place: self._delta_by_tail(level, bool(place), LEAST_TAIL)  # noqa: E731
        return larger(searches, near, "delta", Found(Fraction(0), Fraction(1)), tail)

    def _larger_epsilon(self, delta: Fraction, width: Fraction, max_terms: int) -> tuple[float, float]:
        """Bounds of the larger epsilon of both orders."""
        searches = self._both(lambda backwards: self._epsilons(delta, backwards, width, max_terms))
        near = lambda lower, upper: upper - lower <= width  # noqa: E731
        tail = lambda place: self._epsilon_by_tail(delta, bool(place))  # noqa: E731
        return larger(searches, near, "epsilon", Found(0.0, math.inf), tail)

    def _delta(
        self, level: PrivacyLevel, backwards: bool, relative: Fraction, max_terms: int
    ) -> tuple[Fraction, Fraction]:
        """Bounds of delta for one order."""
        search = self._deltas(level, backwards, relative, max_terms)
        return larger([search], lambda _lower, _upper: False, "delta", Found(Fraction(0), Fraction(1)))

    def _tails(self, delta: Fraction, backwards: bool) -> Tails | None:
        limbs, cut, _ = self._rounding(delta)
        return tails_of(self._parts, backwards, limbs, cut)

    def _delta_by_tail(self, level: PrivacyLevel, backwards: bool, least: Fraction) -> Fraction:
        """An upper bound of delta that takes no composition."""
        known = self._known(level, backwards)
        if known is not None:
            return known[1]
        tails = self._tails(least, backwards)
        return Fraction(1) if tails is None else tails.delta_above(value_enclosure(level)[0])

    def _epsilon_by_tail(self, delta: Fraction, backwards: bool) -> float:
        """An upper bound of epsilon that takes no composition."""
        tails = self._tails(delta, backwards)
        return math.inf if tails is None else tails.epsilon_above(delta)

    def _epsilon(self, delta: Fraction, backwards: bool, width: Fraction, max_terms: int) -> tuple[float, float]:
        """Bounds of epsilon for one order."""
        search = self._epsilons(delta, backwards, width, max_terms)
        return larger([search], lambda _lower, _upper: False, "epsilon", Found(0.0, math.inf))

    def _deltas(
        self, level: PrivacyLevel, backwards: bool, relative: Fraction, max_terms: int
    ) -> Iterator[Found[Fraction]]:
        """Bounds of delta for one order, each time with more work, until they are near each other."""
        known = self._known(level, backwards)
        if known is not None:
            yield Found(*known)
            return
        best = Fraction(0), Fraction(1)
        core = core_level(level)
        for target in targets():
            steps, last = self._first_steps(), None
            while True:
                composed = self._attempt(backwards, target, steps, max_terms)
                lower, upper = composed.delta(core)
                best = max(best[0], lower), min(best[1], upper)
                share = min(relative, LATTICE_SHARE) if composed.on_lattice else relative
                deep_enough = composed.charge <= share * best[1] / 16
                yield Found(best[0], best[1], deep_enough)
                tight = best[1] - best[0] <= relative * best[1]
                if tight or composed.on_lattice or not deep_enough:
                    break
                width = float((best[1] - best[0]) / best[1])
                steps, last = _finer(steps, width, float(relative), last)
            if deep_enough and tight:
                return
        if best[1] > LEAST_DELTA:
            raise BudgetError("masses of 1,144 bits do not do")

    def _decided(self, level: PrivacyLevel, delta: Fraction, backwards: bool, max_terms: int) -> bool | None:
        end, known = self._end(backwards), self._known(level, backwards, delta)
        if known is not None and (known[1] <= delta or known[0] > delta):
            return known[1] <= delta
        if end is not None and end.infinity[0] > delta:
            return False
        if not delta:
            return False if end is None or not _at_most(end.largest[0], level) else None
        core, steps, last, target = core_level(level), self._first_steps(), None, delta
        while True:
            try:
                composed = self._attempt(backwards, target, steps, max_terms)
            except BudgetError:
                return True if self._delta_by_tail(level, backwards, delta) <= delta else None
            lower, upper = composed.delta(core)
            if upper <= delta:
                return True
            if lower > delta:
                return False
            if composed.on_lattice:
                # Only wider masses tell more there; no width tells a tie.
                target *= WIDER
                if target < LEAST_DELTA:
                    return None
                continue
            width = float((upper - lower) / upper)
            steps, last = _finer(steps, width, width / 16, last)

    def _epsilons(self, delta: Fraction, backwards: bool, width: Fraction, max_terms: int) -> Iterator[Found[float]]:
        """Bounds of epsilon for one order, each time with more work, until they are near each other."""
        if delta == 1:
            yield Found(0.0, 0.0)
            return
        best, end = (0.0, math.inf), self._end(backwards)
        if (delta if end is None else delta - end.infinity[0]) <= 0:
            # At exactly the mass at infinity it is the largest finite loss, and infinite below.
            exact = end is not None and end.infinity == (delta, delta)
            yield Found(*end.largest) if end is not None and exact else Found(math.inf, math.inf)
            return
        if end is not None and end.infinity[1] <= delta:
            best = 0.0, end.largest[1]
        (part, count), *more = self._parts
        if count == 1 and not more and closed_form(part, PrivacyLevel(Fraction(1), Fraction(1)), backwards, delta):
            self._rounding(delta)  # refuses what is too small
            yield self._halved(delta, backwards, best[1])
            return
        if width < best[1] < math.inf:
            yield Found(*best)  # the other order may be the larger one anyway
        steps, last, target = self._first_steps(), None, delta
        while True:
            composed = self._attempt(backwards, target, steps, max_terms)
            lower, upper = composed.epsilon(delta)
            best = max(best[0], lower), min(best[1], _outward(upper))
            yield Found(best[0], best[1])
            # An infinite upper bound is the mass at infinity, which no finer grid changes.
            if math.isinf(upper) or best[1] - best[0] <= width:
                return
            if composed.on_lattice:
                target *= WIDER
                if target < LEAST_DELTA:
                    raise BudgetError("masses of 1,144 bits do not do")
                continue
            steps, last = _finer(steps, min(best[1] - best[0], 1.0), float(width), last)

    def _halved(self, delta: Fraction, backwards: bool, most: float) -> Found[float]:
        """Floats around the epsilon of a release whose deltas are known."""

        def delta_at(epsilon: float) -> Enclosed:
            known = self._known(PrivacyLevel(Fraction(1), Fraction(epsilon)), backwards, delta)
            return known or (Fraction(0), Fraction(1))

        lower, upper = 0.0, 1.0
        if delta_at(0.0)[1] <= delta:
            return Found(0.0, 0.0)
        while upper < most and delta_at(upper)[1] > delta:
            upper *= 2
        upper = below = min(upper, most)
        while lower < (middle := (lower + below) / 2) < below:
            lower, below = (middle, below) if delta_at(middle)[0] > delta else (lower, middle)
        if delta_at(below)[1] <= delta:
            return Found(lower, _outward(below))
        # Of floats in between, an enclosure does not tell on which side they are.
        above = lower
        while above < (middle := (above + upper) / 2) < upper:
            above, upper = (middle, upper) if delta_at(middle)[1] > delta else (above, middle)
        return Found(lower, _outward(upper))

    def _releases(self, limbs: int, backwards: bool) -> tuple[list[_core.Release], list[int]]:
        return _releases(self._parts, limbs, backwards)

    def _rounding(self, delta: Fraction) -> tuple[int, int, int]:
        """Words of masses, units to cut and bits of 1 / delta, for answers of about such a delta."""
        bits = max(delta.denominator.bit_length() - delta.numerator.bit_length(), 0) + 1
        limbs = max(2, -(-(bits + 72 + self.releases.bit_length()) // 64))
        if limbs > MOST_LIMBS:
            raise ValueError("delta must be 0 or at least 1e-300; smaller ones need masses of more than 1,144 bits")
        # All cuts together cost at most delta / 2^59.
        return limbs, int(delta * 2 ** (64 * limbs - 8)) // (2**61 * self.releases), bits

    def _attempt(self, backwards: bool, delta: Fraction, steps: int, max_terms: int) -> _core.Composed:
        """The same as `_composed`, or a refusal at once where far too many losses are to be expected."""
        if self.releases * steps > max_terms // 64:
            tails = self._tails(max(delta, LEAST_TAIL), backwards)
            length = 0.0 if tails is None else tails.length(steps)
            if length > TOO_LONG * max_terms:
                raise BudgetError(
                    f"max_terms: a product has about {length:.3g} losses, where {max_terms} are allowed; a coarser "
                    "resolution has fewer"
                )
        return self._composed(backwards, delta, steps, max_terms)

    def _composed(self, backwards: bool, delta: Fraction, steps: int, max_terms: int) -> _core.Composed:
        """All releases on a grid of 1 / steps, for answers of about such a delta."""
        limbs, cut, bits = self._rounding(delta)
        if steps > FINEST:
            raise BudgetError(f"a resolution of 1/{FINEST} does not do")
        return _composition(self._parts, backwards, limbs, steps, cut, bits, max_terms)


def _releases(parts: Parts, limbs: int, backwards: bool) -> tuple[list[_core.Release], list[int]]:
    return [part.release(limbs, backwards) for part, _ in parts], [count for _, count in parts]


def _power(base: Fraction, count: int) -> Enclosed:
    """A number from 0 to 1 to a power, exactly where that is short."""
    if base.denominator == 1 or count * base.denominator.bit_length() <= EXACT_BITS:
        return base**count, base**count
    near = Near.of(base, 512).power(count, 512)
    if near.places > EXACT_BITS:
        return Fraction(0), Fraction(1, 2**1000)
    return Fraction(near.low, 1 << near.places), min(Fraction(near.high, 1 << near.places), Fraction(1))


class Remembered:
    """The compositions that were asked last, as many as fit into some bytes."""

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0
        self._kept: OrderedDict[Any, tuple[_core.Composed, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> _core.Composed | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Any, composed: _core.Composed, size: int) -> None:
        """Keep it, and forget the oldest ones in its place; what is too large alone is not kept."""
        with self._lock:
            if size > self.most or key in self._kept:
                return
            self._kept[key] = composed, size
            self.bytes += size
            while self.bytes > self.most:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed

    def __len__(self) -> int:
        return len(self._kept)


remembered = Remembered(REMEMBERED_BYTES)


def _composition(
    parts: Parts, backwards: bool, limbs: int, steps: int, cut: int, bits: int, max_terms: int
) -> _core.Composed:
    key = parts, backwards, limbs, steps, cut, bits, max_terms
    composed = remembered.get(key)
    if composed is None:
        with progress_bar(None, "composition") as progress:
            composed = _core.Composed(
                *_releases(parts, limbs, backwards),
                limbs=limbs,
                resolution=Fraction(1, steps),
                cut=cut,
                max_terms=max_terms,
                reach=(bits + 8) * math.log(2),
                progress=progress,
            )
        # Two sums of words for each level.
        remembered.put(key, composed, 16 * limbs * composed.terms)
    return composed


def targets() -> Iterable[Fraction]:
    """Deltas for which masses are made wide enough, one after the other until the answer is of that size."""
    return (Fraction(1, 2**bits) for bits in (40, 120, 360, 1000))


def _finer(steps: int, width: float, wanted: float, last: tuple[int, float] | None) -> tuple[int, tuple[int, float]]:
    """How many steps a unit needs for a little less than the width that is wanted, by what the last two widths did."""
    order = 2.0
    if last and last[1] > width > 0:
        order = min(max(math.log(last[1] / width) / math.log(steps / last[0]), 0.5), 2.0)
    factor = (MARGIN * width / wanted) ** (1 / order)
    return math.ceil(steps * min(max(factor, MARGIN), 64.0)), (steps, width)


def larger(
    searches: Sequence[Iterator[Found[Number]]],
    near: Callable[[Number, Number], bool],
    name: str,
    nothing: Found[Number],
    tail: Callable[[int], Number] | None = None,
) -> tuple[Number, Number]:
    """Bounds of the larger of several numbers: only the one with the largest upper bound is searched for further.

    Where the search ends without an answer, `tail` bounds one from above.
    """
    found = [nothing for _ in searches]
    try:
        for place, search in enumerate(searches):
            found[place] = next(search)
        while True:
            place = max(range(len(found)), key=lambda place: found[place].upper)
            lower, largest = max(one.lower for one in found), found[place]
            if near(lower, largest.upper) and largest.deep:
                return lower, largest.upper
            found[place] = next(searches[place], largest)
            if found[place] is largest:
                return lower, largest.upper
    except BudgetError as error:
        low, high = float(max(one.lower for one in found)), 0.0
        for place, one in enumerate(found):
            if one.upper > high:
                high = max(high, float(one.upper if tail is None else min(one.upper, tail(place))))
        raise BudgetError(f"{error}; found so far: {name} from {low:.6g} to {high:.6g}") from None


def _at_most(loss: float, level: PrivacyLevel) -> bool:
    """Whether a loss is at most a level, or within its rounding."""
    logarithm = Fraction(_core.ln_bounds(level.ratio)[1]) if level.ratio != 1 else 0
    return Fraction(loss) <= logarithm + level.exponent
