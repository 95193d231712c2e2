"""Why a dataset is refused, in words and numbers. A diagnostic: it shows the data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from userdp import _core
from userdp.algorithms import AdditiveAlgorithm, Dataset
from userdp.delstab.calibration import TOTAL
from userdp.delstab.compatibility import InnerPmfs
from userdp.delstab.engines import AnyStability, Plan
from userdp.delstab.kept import Stability
from userdp.delstab.windows import WindowStability
from userdp.exact.numbers import Bounds
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

if TYPE_CHECKING:
    from userdp.delstab.delstab import DelStab


@dataclass(frozen=True)
class Explanation:
    """Why a dataset is refused or not; **not private**. Its ``str`` is meant to be read.

    Attributes
    ----------
    n_users, deletions : int
        n and D.
    engine, relation : str
        What ran: see `DelStab.plan`.
    smallest_stable_size : int or None
        r*; None if no set of at most D users will do.
    largest_size : int
        Sizes above this one are refused surely.
    refusal_probability : Fraction
        Of `BOTTOM`, exactly.
    worst : str or None
        The pair of kept sets that the algorithm tells apart best, in words.
    worst_divergence : Bounds or None
        Their divergence at the inner level, larger direction; comparable with `allowed_divergence`.
    allowed_divergence : Fraction
        The inner delta_L.
    spread, distance : int or None
        For the "additive" engine: how far the totals of kept sets are apart, and how far they may be.
    advice : tuple of str
        What would lower the probability of a refusal.
    """

    n_users: int
    deletions: int
    engine: str
    relation: str
    smallest_stable_size: int | None
    largest_size: int
    refusal_probability: Fraction
    worst: str | None
    worst_divergence: Bounds | None
    allowed_divergence: Fraction
    spread: int | None
    distance: int | None
    advice: tuple[str, ...]

    def __str__(self) -> str:
        smallest = self.smallest_stable_size
        size = "none of at most that many users" if smallest is None else str(smallest)
        lines = [
            f"{self.n_users} users, {self.deletions} left out, {self.n_users - self.deletions} kept "
            f"(engine {self.engine!r}, relation {self.relation!r})",
            f"smallest stable set: {size}; above {self.largest_size} a refusal is sure",
            f"probability of a refusal: {float(self.refusal_probability):.6g}",
        ]
        if self.spread is not None:
            lines.append(f"totals of kept sets are up to {self.spread} apart, and {self.distance} is tolerated")
        if self.worst is not None and self.worst_divergence is not None:
            lines.append(
                f"most different kept sets: {self.worst}, divergence {self.worst_divergence.upper:.6g} where "
                f"{float(self.allowed_divergence):.6g} is tolerated"
            )
        lines.extend(f"to be refused less often: {advice}" for advice in self.advice)
        return "\n".join(lines)


def explained(delstab: DelStab, users: Dataset, found: AnyStability, report: ProgressCallback) -> Explanation:
    """Explain the outcome on a dataset."""
    calibration = delstab.calibration
    chosen = delstab.plan(len(users))
    refusal = Fraction(calibration.refusal_numerator(found.smallest), TOTAL)
    spread = distance = None
    worst, divergence = None, None
    if isinstance(found, WindowStability):
        assert isinstance(delstab.algorithm, AdditiveAlgorithm)
        values = sorted(map(delstab.algorithm.statistic_of, users))
        spread = sum(values[delstab.deletions :]) - sum(values[: len(values) - delstab.deletions])
        distance = found.totals.distance
    elif isinstance(found, Stability):
        worst, divergence = _worst_pair(delstab, chosen, found, report)
    return Explanation(
        n_users=len(users),
        deletions=delstab.deletions,
        engine=chosen.engine,
        relation=chosen.relation,
        smallest_stable_size=found.smallest,
        largest_size=calibration.largest,
        refusal_probability=refusal,
        worst=worst,
        worst_divergence=divergence,
        allowed_divergence=calibration.inner_delta,
        spread=spread,
        distance=distance,
        advice=_advice(delstab, users, chosen, refusal, found.smallest) if refusal else (),
    )


def _worst_pair(
    delstab: DelStab, chosen: Plan, found: Stability, report: ProgressCallback
) -> tuple[str | None, Bounds | None]:
    """The two kept sets whose distributions differ most, in words."""
    if found.pmfs is None or found.vectors is None:
        return None, None
    if found.pmfs.incompatible:
        vector = found.vectors[found.pmfs.incompatible[0]].tolist()
        return f"the algorithm fails without {_in_words(chosen, found, vector)}", Bounds(1.0, 1.0)
    level = InnerPmfs.of(delstab.algorithm, delstab.calibration, strict=True).level
    pair = _core.pairwise_maximum(found.pmfs.matrix, level, Fraction(1), report)
    if pair is None:
        return None, None
    (first, second, _), lower, upper, *_ = pair
    words = [_in_words(chosen, found, found.vectors[row].tolist()) for row in (first, second)]
    return f"without {words[0]} and without {words[1]}", Bounds(lower, upper)


def _in_words(chosen: Plan, found: Stability, vector: list[int]) -> str:
    if chosen.engine == "labeled":
        positions = [place for place, count in zip(found.active, vector, strict=True) if count]
        return f"the users at positions {positions}"
    parts = [f"{n} of {of} of type {kind}" for kind, n, of in zip(found.active, vector, found.counts, strict=True) if n]
    return ", ".join(parts) or "nobody"


def _advice(delstab: DelStab, users: Dataset, chosen: Plan, refusal: Fraction, smallest: int | None) -> tuple[str, ...]:
    from userdp.delstab.delstab import DelStab

    advice = [
        "more users: each one then weighs less in the algorithm, and the deletions stay as they are",
        "a larger epsilon or delta: fewer deletions, and kept sets may differ more",
        "an algorithm with more noise, or with a statistic that one user changes less",
    ]
    if smallest is None:
        advice.append(
            "an algorithm that answers with a pmf on every kept set: it fails on some, or its pmf_error is large"
        )
    if chosen.relation == "distance":
        advice.append("relation='exact', which compares the totals that occur and not all of the public range")
    if chosen.engine == "types" and chosen.max_types < len(users):
        most = f"at most {chosen.max_types} distinct users, as a pool with more counts as unstable"
        advice.append(f"{most}; max_types= admits more")
    arguments: dict[str, Any] = dict(delstab._arguments)
    if arguments["calibration"] != "optimal":
        try:
            other = DelStab(delstab.algorithm, **{**arguments, "calibration": "optimal"})
            probability = other.refusal_probability(users, progress=False)
        except BudgetError:
            return tuple(advice)
        if probability < refusal:
            advice.append(f"calibration='optimal': its probability of a refusal here is {float(probability):.6g}")
    return tuple(advice)
