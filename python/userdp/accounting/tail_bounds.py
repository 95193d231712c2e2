"""Tails of the loss of a composition by its moments: a bound where a grid would have too many losses, and how many.

The pair of each release is put on a coarse grid, which raises its curve. For s > 0, delta at epsilon is at most
E[e^(s (L - epsilon))] s^s / (1 + s)^(1 + s), and expectations multiply: docs/proofs/exact_composition.md, section 12.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.accounting.losses import ReleaseLoss
from userdp.exact.numbers import printed_up
from userdp.exceptions import BudgetError

FINE_ENOUGH, MOST_LOSSES, FINER = 2**10, 2**14, 3
"""Losses of a release that are wanted, and that are taken; how many finer grids are tried."""
ORDERS = 2.0 ** np.arange(-12, 16, 1 / 16)
"""What s is tried, in floats."""
LEAST_EXPONENT = Decimal(-1000)
_UP = decimal.Context(prec=40, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_DOWN = decimal.Context(prec=40, rounding=decimal.ROUND_FLOOR, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


@dataclass(frozen=True)
class Tails:
    """Releases by the losses, or larger ones, that their masses are at, each so many times."""

    laws: tuple[tuple[list[float], list[int], int], ...]
    counts: tuple[int, ...]
    log_cut: float
    """Of the mass that may be moved at an end."""
    on_lattice: bool

    def logarithms(self) -> npt.NDArray[np.float64]:
        """About ln E[e^(s L)] of all releases together, for s in `ORDERS` and their negatives."""
        sums = np.zeros((2, len(ORDERS)))
        for (losses, masses, _), count in zip(self.laws, self.counts, strict=True):
            at = np.array(losses)
            # Only where there is mass; it may be below all floats.
            weights = np.array([math.log(mass) if mass else -math.inf for mass in masses])
            weights -= math.log(sum(masses))
            for place, sign in enumerate((1, -1)):
                exponents = sign * np.multiply.outer(ORDERS, at) + weights
                largest = exponents.max(axis=1)
                sums[place] += count * (largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
        return sums

    def length(self, steps: int) -> float:
        """About how many losses the last product has, on a grid of 1 / steps; only to say what work there is."""
        if self.on_lattice:
            return 0.0
        above, below = (self.logarithms() / 2 - self.log_cut) / ORDERS
        return float(2 * steps * (min(above) + min(below)))

    def epsilon_above(self, delta: Fraction) -> float:
        """At or above the least epsilon at a delta."""
        logarithm = math.log(delta.numerator) - math.log(delta.denominator)
        order, exponent, infinite = self._best((self._sums() - logarithm) / ORDERS)
        if infinite >= delta:
            return math.inf
        left = _down(_DOWN.ln(_quotient(delta - infinite, _DOWN)))
        return printed_up(max(Fraction(_UP.divide(_UP.subtract(exponent, left), order)), Fraction(0)))

    def delta_above(self, epsilon: Fraction) -> Fraction:
        """At or above the least delta at an epsilon."""
        order, exponent, infinite = self._best(self._sums() - ORDERS * min(float(epsilon), 1e300))
        exponent = _UP.subtract(exponent, _DOWN.multiply(order, _quotient(epsilon, _DOWN)))
        # Anything above 1 says nothing, and what is smaller is not told apart.
        within = max(min(exponent, Decimal(1)), LEAST_EXPONENT)
        return min(Fraction(_up(_UP.exp(within))) + infinite, Fraction(1))

    def _sums(self) -> npt.NDArray[np.float64]:
        sums: npt.NDArray[np.float64] = self.logarithms()[0] + ORDERS * np.log(ORDERS / (1 + ORDERS)) - np.log1p(ORDERS)
        return sums

    def _best(self, values: npt.NDArray[np.float64]) -> tuple[Decimal, Decimal, Fraction]:
        """The s whose value is the least, and what is certain of it."""
        order = Decimal(float(ORDERS[int(np.argmin(values))]))
        return order, *self._exponent(order)

    def _exponent(self, order: Decimal) -> tuple[Decimal, Fraction]:
        """Upper bounds of ln(E[e^(s L)] s^s / (1 + s)^(1 + s)), and of the mass at infinity."""
        more = _UP.add(order, Decimal(1))  # exact: an order has 53 bits
        whole = _UP.multiply(order, _up(_UP.ln(order)))
        whole = _UP.subtract(whole, _DOWN.multiply(more, _down(_DOWN.ln(more))))
        infinite = Fraction(0)
        for (losses, masses, beyond), count in zip(self.laws, self.counts, strict=True):
            total = sum(masses) + beyond
            moment = Decimal(0)
            for loss, mass in zip(losses, masses, strict=True):
                if mass:
                    grown = _up(_UP.exp(_UP.multiply(order, Decimal(loss))))
                    moment = _UP.add(moment, _UP.multiply(grown, _quotient(Fraction(mass), _UP)))
            logarithm = _up(_UP.ln(_UP.divide(moment, _quotient(Fraction(total), _DOWN))))
            whole = _UP.add(whole, _UP.multiply(logarithm, Decimal(count)))
            infinite += count * Fraction(beyond, total)
        return whole, infinite


def _up(x: Decimal) -> Decimal:
    """Exponentials and logarithms are rounded to the nearest, whatever a context says."""
    return _UP.next_plus(x)


def _down(x: Decimal) -> Decimal:
    return _DOWN.next_minus(x)


def _quotient(x: Fraction, context: decimal.Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


@lru_cache(maxsize=16)
def tails_of(parts: tuple[tuple[ReleaseLoss, int], ...], backwards: bool, limbs: int, cut: int) -> Tails | None:
    """Of releases whose pairs have not too many losses."""
    laws, on_lattice = [], False
    for part, _ in parts:
        release, steps = part.release(limbs, backwards), 1
        try:
            one = _law(release, limbs, cut, 1)
            for _ in range(FINER):
                if not one.on_lattice and one.terms < FINE_ENOUGH // 4:
                    steps = steps * FINE_ENOUGH // one.terms
                    one = _law(release, limbs, cut, steps)
        except BudgetError:
            return None
        laws.append(one.losses())
        on_lattice = len(parts) == 1 and one.on_lattice
    log_cut = -math.log(2) * (64 * limbs - 8 - cut.bit_length())
    return Tails(tuple(laws), tuple(count for _, count in parts), log_cut, on_lattice)


def _law(release: _core.Release, limbs: int, cut: int, steps: int) -> _core.Composed:
    return _core.Composed(
        [release], [1], limbs=limbs, resolution=Fraction(1, steps), cut=cut, max_terms=MOST_LOSSES, reach=0.0
    )
