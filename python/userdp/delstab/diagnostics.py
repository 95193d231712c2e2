"""What DelStab tells about a dataset, and **not privately**: the distribution of a release, and why it is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import AdditiveAlgorithm, Dataset
from userdp.delstab.calibration import TOTAL, Calibration
from userdp.delstab.compatibility import InnerPmfs
from userdp.delstab.engines import AnyStability, EngineChoice
from userdp.delstab.stable_sets import Stability
from userdp.delstab.windows import WindowStability
from userdp.exact.numbers import Bounds, round_down, round_up
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.report import Explanation
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
    engine, compatibility : str
        What ran: see `DelStab.plan`.
    smallest_stable_size : int or None
        r*; None if it is so large that the refusal is sure.
    """

    outputs: tuple[Hashable, ...]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    layer_sizes: tuple[int, ...]
    engine: str
    compatibility: str
    smallest_stable_size: int | None


def exact_distribution(stability: AnyStability, calibration: Calibration, outputs: tuple[Hashable, ...]) -> Pmf:
    """The exact distribution of the release."""
    mixture = calibration.mixture(stability.smallest)
    if not any(mixture):
        return Pmf(outputs, (0,) * (len(outputs) - 1) + (1,))
    weights, total = stability.distribution(mixture, TOTAL)
    whole = [*weights, total - sum(weights)]
    divisor = math.gcd(*whole)
    return Pmf(outputs, tuple(weight // divisor for weight in whole))


def bounded_pmf(
    stability: AnyStability,
    calibration: Calibration,
    outputs: tuple[Hashable, ...],
    choice: EngineChoice,
    *,
    forced: bool,
    report: ProgressCallback,
) -> PmfBounds | None:
    """Bounds of the pmf of the release, where they are cheaper than itself; None where they are not."""
    if not isinstance(stability, Stability) or stability.smallest is None or stability.vectors is None:
        return None
    if not forced and len(stability.vectors) <= EXACT_ROWS:
        return None
    mixture = calibration.mixture(stability.smallest)
    lower, upper = stability.bounds(mixture, TOTAL, report)
    refusal = Fraction(TOTAL - sum(mixture), TOTAL)
    return PmfBounds(
        outputs=outputs,
        lower=np.append(lower, round_down(refusal)),
        upper=np.append(upper, round_up(refusal)),
        layer_sizes=stability.layer_sizes(calibration.largest),
        engine=choice.engine,
        compatibility=choice.compatibility,
        smallest_stable_size=stability.smallest,
    )


def explained(
    algorithm: Any,
    calibration: Calibration,
    choice: EngineChoice,
    users: Dataset,
    stability: AnyStability,
    optimal_refusal: Callable[[], Fraction],
    report: ProgressCallback,
) -> Explanation:
    """Explain the outcome on a dataset; `optimal_refusal` is the refusal probability of the optimal calibration."""
    refusal = Fraction(calibration.refusal_numerator(stability.smallest), TOTAL)
    spread = distance = None
    worst = divergence = None
    if isinstance(stability, WindowStability):
        assert isinstance(algorithm, AdditiveAlgorithm)
        values = sorted(map(algorithm.statistic_of, users))
        spread = sum(values[calibration.deletions :]) - sum(values[: len(values) - calibration.deletions])
        distance = stability.totals.distance
    elif isinstance(stability, Stability):
        worst, divergence = _worst_pair(InnerPmfs.of(algorithm, calibration), choice, stability, report)
    return Explanation(
        n_users=len(users),
        deletions=calibration.deletions,
        engine=choice.engine,
        compatibility=choice.compatibility,
        smallest_stable_size=stability.smallest,
        largest_size=calibration.largest,
        refusal_probability=refusal,
        worst=worst,
        worst_divergence=divergence,
        allowed_divergence=calibration.inner_delta,
        spread=spread,
        distance=distance,
        advice=_advice(calibration, choice, len(users), refusal, stability.smallest, optimal_refusal)
        if refusal
        else (),
    )


def _worst_pair(
    inner: InnerPmfs, choice: EngineChoice, stability: Stability, report: ProgressCallback
) -> tuple[str | None, Bounds | None]:
    """The two kept sets whose distributions differ most, in words."""
    if stability.pmfs is None or stability.vectors is None:
        return None, None
    if stability.pmfs.incompatible:
        vector = stability.vectors[stability.pmfs.incompatible[0]].tolist()
        return f"the algorithm fails without {_in_words(choice, stability, vector)}", Bounds(1.0, 1.0)
    pair = _core.pairwise_maximum(stability.pmfs.matrix, inner.level, Fraction(1), report)
    if pair is None:
        return None, None
    (first, second, _), lower, upper, *_ = pair
    words = [_in_words(choice, stability, stability.vectors[row].tolist()) for row in (first, second)]
    return f"without {words[0]} and without {words[1]}", Bounds(lower, upper)


def _in_words(choice: EngineChoice, stability: Stability, vector: list[int]) -> str:
    if choice.engine == "labeled":
        positions = [place for place, count in zip(stability.active, vector, strict=True) if count]
        return f"the users at positions {positions}"
    parts = [
        f"{n} of {of} of type {kind}"
        for kind, n, of in zip(stability.active, vector, stability.counts, strict=True)
        if n
    ]
    return ", ".join(parts) or "nobody"


def _advice(
    calibration: Calibration,
    choice: EngineChoice,
    n_users: int,
    refusal: Fraction,
    smallest: int | None,
    optimal_refusal: Callable[[], Fraction],
) -> tuple[str, ...]:
    """What would lower the probability of a refusal."""
    advice = [
        "more users: each one then weighs less in the algorithm, and the deletions stay as they are",
        "a larger epsilon or delta: fewer deletions, and kept sets may differ more",
        "an algorithm with more noise, or with a statistic that one user changes less",
    ]
    if smallest is None:
        advice.append(
            "an algorithm that answers with a pmf on every kept set: it fails on some, or its pmf_error is large"
        )
    if choice.compatibility == "distance":
        advice.append("compatibility='exact', which compares the totals that occur and not all of the public range")
    if choice.engine == "multiset" and choice.max_distinct_users < n_users:
        most = f"at most {choice.max_distinct_users} distinct users, as a pool with more counts as unstable"
        advice.append(f"{most}; max_distinct_users= admits more")
    if calibration.name != "optimal":
        try:
            probability = optimal_refusal()
        except BudgetError:
            return tuple(advice)
        if probability < refusal:
            advice.append(f"calibration='optimal': its probability of a refusal here is {float(probability):.6g}")
    return tuple(advice)
