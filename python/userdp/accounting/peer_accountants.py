"""Privacy losses from and for the package dp_accounting, and a verdict on what an accountant claims.

That package is not needed: objects are read by what they hold, and it is imported where one is made for it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp import _core
from userdp.accounting.losses import LossTable, TableLoss
from userdp.accounting.privacy_loss import MAX_TERMS, PrivacyLossDistribution
from userdp.exact.epsilon import as_epsilon, core_level
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    LogRatio,
    Neighbors,
    PrivacyLevel,
    parse_delta,
    parse_level,
    parse_positive,
    round_up,
    short_repr,
)
from userdp.exact.pmf import whole_multiples
from userdp.exceptions import BudgetError

FAR_FROM_ONE = 1e-6
"""Masses that sum to 1 but for more than this are no distribution."""
MOST_LOSSES = 2**20
MOST_POINTS = 2**17
"""Of a table that is made: each is one question."""


def from_dp_accounting(pld: Any, *, neighbors: Neighbors = "add-remove") -> PrivacyLossDistribution:
    """The privacy loss that an object of dp_accounting holds, to be composed exactly.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Of one release, best before it is composed: its own compositions are rounded.
    neighbors : {"add-remove", "replace"}
        What it was made for; the object does not say.

    Returns
    -------
    PrivacyLossDistribution
        Of its masses, at its losses, for removing and for adding a user, or for one order where it has only one. Floats
        are the dyadic numbers they are, divided by their exact sum; negative ones, which its convolutions leave, are 0.

    Raises
    ------
    TypeError
        For objects without such masses.
    ValueError
        For optimistic estimates, and for masses that are far from a distribution.

    Notes
    -----
    What is composed is what the object says. That its masses are above those of the release is that package's claim,
    and holds up to the errors of doubles: deltas below about 1e-15 times the number of releases are not certified.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution  # doctest: +SKIP
    >>> theirs = privacy_loss_distribution.from_laplace_mechanism(10)  # doctest: +SKIP
    >>> from_dp_accounting(theirs).self_compose(100).epsilon("1e-6")  # doctest: +SKIP
    """
    try:
        pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        read = [_table(pmf.to_dense_pmf()) for pmf in pmfs]
        steps = {parse_positive(float(pmf._discretization), "pld: the discretization") for pmf in pmfs}
    except AttributeError as error:
        raise TypeError(
            f"pld must be a PrivacyLossDistribution of dp_accounting; got a {type(pld).__name__} ({error})"
        ) from None
    if neighbors == "replace" and read[0] != read[-1]:
        raise ValueError(
            "neighbors='replace' has no sides, and the orders of this pld differ: a user is added or removed"
        )
    if len(steps) > 1:
        raise ValueError("pld: both orders must have the same discretization")
    part = TableLoss(steps.pop(), read[0], read[-1])
    part.release(2, False), part.release(2, True)  # refuses losses that are out of range
    return PrivacyLossDistribution._of([(part, 1)], neighbors)


def _table(pmf: Any) -> LossTable:
    if not pmf._pessimistic_estimate:
        raise ValueError("pld: an optimistic estimate bounds nothing from above")
    masses = [float(mass) for mass in (*pmf._probs, pmf._infinity_mass)]
    if len(masses) > MOST_LOSSES:
        raise BudgetError(f"pld has {len(masses)} losses, where {MOST_LOSSES} are allowed; take a coarser one")
    if not all(math.isfinite(mass) and mass >= -FAR_FROM_ONE for mass in masses):
        raise ValueError("pld: its masses are not all finite numbers >= 0")
    if abs(math.fsum(masses) - 1) > FAR_FROM_ONE:
        raise ValueError(f"pld: its masses must sum to 1 within {FAR_FROM_ONE}; they sum to {math.fsum(masses)!r}")
    weights = whole_multiples([Fraction(max(mass, 0.0)) for mass in masses])
    return LossTable(int(pmf._lower_loss), tuple(weights[:-1]), weights[-1])


def to_dp_accounting(losses: PrivacyLossDistribution, *, discretization: float = 1e-3, tail: Delta = "1e-15") -> Any:
    """The privacy loss as an object of dp_accounting, for what is composed there.

    Parameters
    ----------
    losses : PrivacyLossDistribution
        Releases, composed or not.
    discretization : float
        The distance of losses in the object; what is composed with it there must have the same.
    tail : float, int, Fraction or decimal string
        Losses with less mass than this count as infinite.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic estimate: the chords of the certified upper curve, as doubles.

    Raises
    ------
    ImportError
        Where dp_accounting is not installed.
    BudgetError
        Where losses are beyond 2**16 times the discretization.

    Notes
    -----
    A double has 53 bits, so that the object certifies nothing below about 1e-15.
    """
    if not isinstance(losses, PrivacyLossDistribution):
        raise TypeError(f"losses must be a PrivacyLossDistribution; got {short_repr(losses)}")
    if losses.distance:
        raise ValueError("losses: a distance has no place in an object of dp_accounting; add what it is worth to delta")
    step, end = parse_positive(discretization, "discretization"), parse_delta(tail, "tail")
    if not end:
        raise ValueError("tail must be > 0; got 0")
    theirs = importlib.import_module("dp_accounting.pld.privacy_loss_distribution").PrivacyLossDistribution
    orders = (False,) if all(part.symmetric for part, _ in losses._parts) else (False, True)
    tables = [_chords(losses, backwards, step, end) for backwards in orders]
    if len(tables) == 1:
        return theirs.create_from_rounded_probability(*tables[0], float(step))
    return theirs.create_from_rounded_probability(
        *tables[0],
        float(step),
        rounded_probability_mass_function_add=tables[1][0],
        infinity_mass_add=tables[1][1],
        symmetric=False,
    )


def _chords(
    losses: PrivacyLossDistribution, backwards: bool, step: Fraction, tail: Fraction
) -> tuple[dict[int, float], float]:
    """Masses at multiples of a step, and at infinity, whose curve is the chords of the upper one."""
    # Finer than for a first look: chords are differences, which a step of the table divides.
    steps = 16 * losses._first_steps()
    here, there = (losses._composed(order, tail, steps, MAX_TERMS) for order in (backwards, not backwards))
    # Beyond what is left of delta at enormous losses there is less mass than the tail.
    infinite = [order.delta(core_level(PrivacyLevel(Fraction(1), Fraction(2**12))))[1] for order in (here, there)]
    ends = [
        order.epsilon(min(mass + tail, Fraction(1)))[1] for order, mass in zip((here, there), infinite, strict=True)
    ]
    if not all(map(math.isfinite, ends)):
        raise BudgetError("losses: more mass than the tail is at losses that are too large")
    reach = [math.ceil(Fraction(end) / step) + 1 for end in ends]
    if sum(reach) > MOST_POINTS:
        raise BudgetError(
            f"losses from {-reach[1]} to {reach[0]} times the discretization are too many; take a coarser one"
        )

    def curve(index: int) -> Fraction:
        """h_E at E = e^(index step), from above; below 1 by that of the other order."""
        level = PrivacyLevel(Fraction(1), abs(index) * step)
        if index >= 0:
            return here.delta(core_level(level))[1]
        inverse = 1 / enclosed_exponential(level)
        return min(1 - inverse + inverse * there.delta(core_level(level))[1], Fraction(1))

    growth = enclosed_exponential(PrivacyLevel(Fraction(1), step))
    values = [curve(index) for index in range(-reach[1] - 1, reach[0] + 1)]
    infinity = values[-1]
    masses, above = {}, infinity
    for index in range(reach[0], -reach[1], -1):
        place = index + reach[1] + 1
        survival = (growth * values[place - 1] - values[place]) / (growth - 1)
        survival = min(max(survival, above), Fraction(1))
        masses[index], above = round_up(survival - above), survival
    masses[-reach[1]] = round_up(1 - above)
    return {index: mass for index, mass in sorted(masses.items()) if mass}, round_up(infinity)


def enclosed_exponential(level: PrivacyLevel) -> Fraction:
    """Just above e^epsilon, to 256 bits: a table's masses divide by far less than that."""
    return _core.exp_bounds(core_level(level), 256)[1]


@dataclass(frozen=True)
class ClaimCheck:
    """What exact composition says of a claim.

    Attributes
    ----------
    epsilon : Fraction or LogRatio
    delta : Fraction
        The claim: the releases are (epsilon, delta)-DP.
    holds : bool or None
        False where the claim is below the truth, for certain; None where bounds do not decide.
    least_epsilon : Bounds
        The least epsilon at delta.
    delta_there : Bounds
        The least delta at the claimed epsilon.
    """

    epsilon: Fraction | LogRatio
    delta: Fraction
    holds: bool | None
    least_epsilon: Bounds
    delta_there: Bounds

    def __str__(self) -> str:
        word = {True: "holds", False: "is below the truth", None: "is undecided"}[self.holds]
        claimed = float(parse_level(self.epsilon))
        times = ""
        if self.holds is False and self.delta:
            times = f", where delta is at least {self.delta_there.lower / float(self.delta):.3g} times as large"
        low, high = self.least_epsilon.lower, self.least_epsilon.upper
        return (
            f"epsilon {claimed:.8g} at delta {float(self.delta):.3g} {word}{times}: "
            f"the least is from {low:.8g} to {high:.8g}"
        )


def check_claims(
    losses: PrivacyLossDistribution,
    claims: Iterable[tuple[Epsilon, Delta]] | Any,
    deltas: Sequence[Delta] = (),
    *,
    width: float = 1e-4,
) -> tuple[ClaimCheck, ...]:
    """Whether what an accountant claims about releases is true, and by how much it is not.

    Parameters
    ----------
    losses : PrivacyLossDistribution
        The same releases here, exactly.
    claims : iterable of (epsilon, delta), or an object with ``get_epsilon_for_delta``
        What is claimed: pairs of numbers; or an object of dp_accounting, which is asked at `deltas`.
    deltas : sequence of float, int, Fraction or decimal string
        With such an object, and only then.
    width : float
        How far bounds of the least epsilon may be apart.

    Returns
    -------
    tuple of ClaimCheck
        One for each claim. A claim that is False promises more privacy than there is; where `losses.attained` is False
        too, that is about the pair that dominates the releases.

    Examples
    --------
    dp_accounting 0.6.0 claims an epsilon of 28.2003 for a thousand 0.1-DP releases at a delta of 1e-14:

    >>> releases = PrivacyLossDistribution.pure("0.1").self_compose(1000)
    >>> refuted, true = check_claims(releases, [("28.2003", "1e-14"), ("28.5", "1e-14")])
    >>> print(true)
    epsilon 28.5 at delta 1e-14 holds: the least is from 28.447532 to 28.447532
    >>> refuted.holds, refuted.delta_there.lower > 1.7e-14
    (False, True)
    """
    if not isinstance(losses, PrivacyLossDistribution):
        raise TypeError(f"losses must be a PrivacyLossDistribution; got {short_repr(losses)}")
    asked = getattr(claims, "get_epsilon_for_delta", None)
    if callable(asked):
        if isinstance(deltas, (str, bytes)) or not len(deltas):
            raise ValueError("deltas: an accountant is asked at deltas, of which there must be at least one")
        claims = [(float(asked(float(parse_delta(delta)))), delta) for delta in deltas]
    elif len(deltas):
        raise TypeError("deltas go with an object that has get_epsilon_for_delta; claims are pairs (epsilon, delta)")
    found = []
    for epsilon, delta in _pairs(claims):
        if isinstance(epsilon, (float, np.floating)) and math.isinf(epsilon) and epsilon > 0:
            epsilon = MOST_EPSILON  # an accountant that gives up claims nothing false
        level, exact = parse_level(epsilon), parse_delta(delta)
        found.append(
            ClaimCheck(
                as_epsilon(level),
                exact,
                losses.is_private(as_epsilon(level), exact),
                losses.epsilon(exact, width=width),
                losses.delta(as_epsilon(level)),
            )
        )
    return tuple(found)


MOST_EPSILON = 2**20
"""What stands for an infinite claim."""


def _pairs(claims: Any) -> list[tuple[Any, Any]]:
    if isinstance(claims, (str, bytes)) or not isinstance(claims, Iterable):
        raise TypeError(f"claims must be pairs (epsilon, delta), or an accountant; got {short_repr(claims)}")
    listed = list(claims)
    for claim in listed:
        if not isinstance(claim, (tuple, list)) or len(claim) != 2:
            raise TypeError(f"claims must be pairs (epsilon, delta); got {short_repr(claim)}")
    return [(epsilon, delta) for epsilon, delta in listed]
