"""Calibrations of DelStab: from a promise (epsilon, delta) to the pmf of the refusal, the inner level and deletions.

Every number here is public and rational, and every rounding makes the promise easier to keep. Proofs:
docs/proofs/delstab_*.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from userdp import _core
from userdp.exact.epsilon import ROOT_BITS, core_level, level_root
from userdp.exact.numbers import Epsilon, PrivacyLevel, parse_delta, parse_level, short_repr
from userdp.exceptions import BudgetError

CalibrationName: TypeAlias = Literal["optimal", "tight", "paper"]
TOTAL = 1 << 128
"""The denominator of every tabulated probability."""
PROOF_BITS = 512
"""Precision of the enclosures of e^epsilon in which a calibration is checked."""


@dataclass(frozen=True)
class Calibration:
    """What the privacy proof of one calibration needs, checked when it is made."""

    name: CalibrationName  # "optimal", "tight" or "paper"
    level: PrivacyLevel  # the promise, with delta
    delta: Fraction
    # (epsilon_T, delta_T): what hiding the smallest stable size costs.
    noise_level: PrivacyLevel
    noise_delta: Fraction
    # (epsilon_L, delta_L): kept sets count as compatible when they are indistinguishable at this level.
    inner_level: PrivacyLevel
    inner_delta: Fraction
    deletions: int  # D, the number of users left out of every run of the inner algorithm
    kappa: int | None  # Half the largest value of R1 in Algorithm 1; None for "optimal", which draws no R1
    # q_0, ..., q_M over 2^128: the probability of refusing when the smallest stable size is r, and q_M = 1.
    refusal: tuple[int, ...]
    _table: _core.TruncatedDiscreteLaplaceTable | _core.RefusalTable = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_levels(self)
        _check_refusal(self)

    @property
    def largest(self) -> int:
        """The largest size that a set S may have without a sure refusal."""
        return len(self.refusal) - 2

    @property
    def proof(self) -> str:
        """The page with the privacy proof."""
        return f"docs/proofs/delstab_{self.name}.md"

    def refusal_numerator(self, smallest: int | None) -> int:
        """Probability, over 2^128, of refusing when the smallest stable set has this size (None: there is none)."""
        return self.refusal[-1] if smallest is None or smallest > self.largest else self.refusal[smallest]

    def mixture(self, smallest: int | None) -> list[int]:
        """Probability, over 2^128, of releasing with |S| = 0, ..., `largest`; the refusal has the rest."""
        if smallest is None:
            return [0] * (self.largest + 1)
        if isinstance(self._table, _core.RefusalTable):
            released = TOTAL - self.refusal_numerator(smallest)
            return [released if size == smallest else 0 for size in range(self.largest + 1)]
        numerators = [after - before for before, after in itertools.pairwise(self.refusal)]
        return [mass if size >= smallest else 0 for size, mass in enumerate(numerators)]

    def draw_size(self, smallest: int | None, source: _core.Source) -> int | None:
        """Draw |S|, or None for a refusal."""
        if isinstance(self._table, _core.RefusalTable):
            rank = self.largest + 1 if smallest is None else min(smallest, self.largest + 1)
            return None if self._table.refuses(rank, source) else smallest
        drawn = self._table.sample(source)
        return drawn if smallest is not None and drawn >= smallest else None


def calibrate(name: CalibrationName, epsilon: Epsilon, delta: Fraction | float | int | str) -> Calibration:
    """Calibrate DelStab."""
    if name not in get_args(CalibrationName):
        raise ValueError(f"calibration must be 'optimal', 'tight' or 'paper'; got {short_repr(name)}")
    level, promised = parse_level(epsilon), parse_delta(delta)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError("epsilon must be > 0: telling stable datasets from others costs some epsilon")
    if promised == 0:
        raise ValueError("delta must be > 0: a refusal that some datasets never meet cannot be hidden at delta = 0")
    if promised == 1:
        raise ValueError("delta must be < 1: at delta = 1 every algorithm is private and nothing is promised")
    makers: dict[str, Callable[[PrivacyLevel, Fraction], Calibration]] = {
        "optimal": _optimal,
        "tight": _tight,
        "paper": _paper,
    }
    return makers[name](level, promised)


def _paper(level: PrivacyLevel, delta: Fraction) -> Calibration:
    """Algorithm 1 as printed: epsilon / 3 for everything, delta-bar = delta / (e^2eb + e^eb + 2), 4 kappa deletions."""
    inner = level_root(level, 3)
    low, high = _enclosed(inner)
    return _from_laplace("paper", level, delta, inner, _rounded_down(delta / (high * high + high + 2), low == high))


def _tight(level: PrivacyLevel, delta: Fraction) -> Calibration:
    """Algorithm 1 with delta-bar = delta / (2 + e^eb) and the least kappa whose table has ends of at most delta-bar."""
    inner = level_root(level, 3)
    low, high = _enclosed(inner)
    return _from_laplace("tight", level, delta, inner, _rounded_down(delta / (2 + high), low == high))


def _from_laplace(
    name: CalibrationName, level: PrivacyLevel, delta: Fraction, inner: PrivacyLevel, inner_delta: Fraction
) -> Calibration:
    try:
        table = _core.TruncatedDiscreteLaplaceTable(core_level(inner), inner_delta, name == "tight")
    except BudgetError:
        raise
    except ValueError as error:
        raise ValueError(
            f"calibration={name!r} draws noise at a third of epsilon and at delta={float(inner_delta):.3g}, and for "
            f"these {error}; calibration='optimal' draws none"
        ) from None
    cumulative = [0]
    for numerator in table.numerators:
        cumulative.append(cumulative[-1] + numerator)
    return Calibration(
        name=name,
        level=level,
        delta=delta,
        noise_level=inner,
        noise_delta=inner_delta,
        inner_level=inner,
        inner_delta=inner_delta,
        deletions=4 * table.kappa,
        kappa=table.kappa,
        refusal=tuple(cumulative),
        _table=table,
    )


def _optimal(level: PrivacyLevel, delta: Fraction) -> Calibration:
    """The fastest rise of refusals that there is at (4 epsilon / 5, delta / 2), and a relation at epsilon / 10."""
    inner = level_root(level, 10)
    noise = PrivacyLevel(level.ratio / inner.ratio**2, level.exponent - 2 * inner.exponent)
    low, high = _enclosed(inner)
    noise_delta = delta / 2
    table = _core.RefusalTable(core_level(noise), noise_delta)
    refusal = tuple(table.numerators)
    return Calibration(
        name="optimal",
        level=level,
        delta=delta,
        noise_level=noise,
        noise_delta=noise_delta,
        inner_level=inner,
        inner_delta=_rounded_down((delta - noise_delta) / (1 + high), low == high),
        deletions=2 * (len(refusal) - 1) - 2,
        kappa=None,
        refusal=refusal,
        _table=table,
    )


def _enclosed(level: PrivacyLevel) -> tuple[Fraction, Fraction]:
    """Fractions around e^epsilon, equal when it is rational."""
    if not level.exponent:
        return level.ratio, level.ratio
    return _core.exp_bounds(core_level(level), PROOF_BITS)


def _rounded_down(value: Fraction, exact: bool) -> Fraction:
    """The value itself if it is exact, else its first `ROOT_BITS` significant bits."""
    if exact:
        return value
    shift = ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    return value * Fraction(2) ** shift // 1 / Fraction(2) ** shift


def _check_levels(calibration: Calibration) -> None:
    """The inequalities between levels that the proofs start from, in rationals."""
    noise, inner, level = calibration.noise_level, calibration.inner_level, calibration.level
    _, high = _enclosed(inner)
    holds = (
        noise.ratio * inner.ratio**2 <= level.ratio
        and noise.exponent + 2 * inner.exponent <= level.exponent
        and min(calibration.inner_delta, calibration.noise_delta) > 0
        and (1 + high) * calibration.inner_delta + calibration.noise_delta <= calibration.delta
        and calibration.deletions >= 2 * calibration.largest
    )
    if not holds:
        raise ArithmeticError("the calibration does not keep its promise; please report this")


def _check_refusal(calibration: Calibration) -> None:
    """What the proofs use of the tabulated probabilities, in integers over 2^128."""
    chain = calibration.refusal
    low, _ = _enclosed(calibration.noise_level)
    slack = calibration.noise_delta * TOTAL
    steps = list(itertools.pairwise(chain))
    if calibration.kappa is None:
        holds = all(
            before <= after <= low * before + slack and TOTAL - before <= low * (TOTAL - after) + slack
            for before, after in steps
        )
    else:
        sizes = [after - before for before, after in steps]
        pairs = list(itertools.pairwise(sizes))
        holds = all(0 < a <= low * b and b <= low * a for a, b in pairs) and max(sizes[0], sizes[-1]) <= slack
    if not (holds and chain[0] == 0 and chain[-1] == TOTAL):
        raise ArithmeticError("the table does not keep its promise; please report this")
