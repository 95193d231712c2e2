"""The distribution of a release: exactly, or between certified bounds."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from userdp.delstab.calibration import TOTAL, Calibration
from userdp.delstab.engines import AnyStability, Plan
from userdp.delstab.kept import Stability
from userdp.exact.numbers import round_down, round_up
from userdp.exact.pmf import Pmf
from userdp.runtime import ProgressCallback

EXACT_ROWS = 2000
"""Kept sets up to which "auto" gives the exact distribution."""


@dataclass(frozen=True)
class PmfBounds:
    """Certified bounds of the probabilities of a release.

    Attributes
    ----------
    outputs : tuple
        The k + 1 outputs, `BOTTOM` last.
    lower, upper : ndarray of float64, shape (k + 1,)
        Around the exact probabilities; the widths sum to at most 1e-12.
    layer_sizes : tuple of int
        The number of stable sets of each size 0, 1, ..., exactly.
    engine, relation : str
        What ran: see `DelStab.plan`.
    smallest_stable_size : int or None
        r*; None if it is so large that the refusal is sure.
    """

    outputs: tuple[Hashable, ...]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    layer_sizes: tuple[int, ...]
    engine: str
    relation: str
    smallest_stable_size: int | None


def exact_distribution(found: AnyStability, calibration: Calibration, outputs: tuple[Hashable, ...]) -> Pmf:
    """The exact distribution of the release."""
    mixture = calibration.mixture(found.smallest)
    if not any(mixture):
        return Pmf(outputs, (0,) * (len(outputs) - 1) + (1,))
    weights, total = found.distribution(mixture, TOTAL)
    whole = [*weights, total - sum(weights)]
    divisor = math.gcd(*whole)
    return Pmf(outputs, tuple(weight // divisor for weight in whole))


def bounded_pmf(
    found: AnyStability,
    calibration: Calibration,
    outputs: tuple[Hashable, ...],
    chosen: Plan,
    *,
    forced: bool,
    report: ProgressCallback,
) -> PmfBounds | None:
    """Bounds of the pmf of the release, where they are cheaper than itself; None where they are not."""
    if not isinstance(found, Stability) or found.smallest is None or found.vectors is None:
        return None
    if not forced and len(found.vectors) <= EXACT_ROWS:
        return None
    mixture = calibration.mixture(found.smallest)
    lower, upper = found.bounds(mixture, TOTAL, report)
    refusal = Fraction(TOTAL - sum(mixture), TOTAL)
    return PmfBounds(
        outputs=outputs,
        lower=np.append(lower, round_down(refusal)),
        upper=np.append(upper, round_up(refusal)),
        layer_sizes=found.layer_sizes(calibration.largest),
        engine=chosen.engine,
        relation=chosen.relation,
        smallest_stable_size=found.smallest,
    )
