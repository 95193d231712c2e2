"""The public plan of an iterated clipped mean: how many rounds, what each spends, and the radius of each.

Floats on public numbers only. They choose parameters, and what is drawn is private whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["NoiseSize", "RoundPlan", "one_round", "planned_rounds"]

Floats: TypeAlias = npt.NDArray[np.float64]

MOST_ROUNDS = 8
WORTH_A_ROUND = 0.97
"""A round more must cut the predicted error to this."""

KAPPAS = (1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
EARLY_SHARES = tuple(Fraction(round(2**20 * 2**-step), 2**20) for step in np.arange(1.75, 12, 0.25))
"""What each round but the last may spend, about 0.0003 to 0.3."""

SKEW = 0.1
"""Which part of the excess beyond the radius is taken to point to one side; see docs/proofs/iterated_mean.md."""


@dataclass(frozen=True)
class NoiseSize:
    """The squared error of the noise of one round: ``coefficient * radius**2 / share**power``."""

    coefficient: float
    power: int

    def squared(self, radius: Floats, share: Floats) -> Floats:
        """For rounds of these radii that spend these shares of the budget."""
        error: Floats = self.coefficient * radius**2 / share**self.power
        return error


@dataclass(frozen=True)
class RoundPlan:
    """Rounds of clipping, in order.

    Attributes
    ----------
    shares : tuple of Fraction
        Of the budget; they sum to 1.
    radii : tuple of float
    kappa : float
        Radii over the expected distance of a user's mean from the centre of the round.
    error : float
        The root mean square of the distance of the last centre from the mean of the users' means, predicted.
    """

    shares: tuple[Fraction, ...]
    radii: tuple[float, ...]
    kappa: float
    error: float


def one_round(ball: float, noise: NoiseSize) -> RoundPlan:
    """Nobody is clipped: the radius is that of a ball that has all rows."""
    error = noise.squared(np.array(ball), np.array(1.0))
    return RoundPlan((Fraction(1),), (ball,), 1.0, float(np.sqrt(error)))


def planned_rounds(dimension: int, ball: float, spread: float, noise: NoiseSize) -> RoundPlan:
    """The rounds with the least predicted error, for users at the distance `spread` from the mean of all.

    Parameters
    ----------
    dimension : int
    ball : float
        All rows are within this distance of 0.
    spread : float
        Root mean square of the distance of a user's mean from the mean of all, in L2; a promise.
    noise : NoiseSize
        Of a round.

    Notes
    -----
    Radii are ``kappa * sqrt(spread**2 + error**2)`` with the predicted error of the centre before. One search goes over
    kappa and over the share of the early rounds; how many there are matters only for where it ends.
    """
    best = one_round(ball, noise)
    kappa, share = (grid.ravel() for grid in np.meshgrid(KAPPAS, [float(share) for share in EARLY_SHARES]))
    squared = noise.squared(np.full(kappa.shape, ball), share)
    radii = [np.full(kappa.shape, ball)]
    for rounds in range(2, MOST_ROUNDS + 1):
        radius = np.minimum(kappa * np.sqrt(spread**2 + squared), 2 * ball)
        radii.append(radius)
        clipped = _shortfall(dimension, np.sqrt(squared), spread, radius) ** 2
        lean = (SKEW * spread * _excess(dimension, radius / spread)) ** 2
        rest = 1 - (rounds - 1) * share
        with np.errstate(all="ignore"):
            last = np.where(rest > 0, noise.squared(radius, rest), np.inf) + clipped + lean
        index = int(np.argmin(last))
        error = float(np.sqrt(last[index]))
        if error < WORTH_A_ROUND * best.error:
            early = EARLY_SHARES[index // len(KAPPAS)]
            shares = (*[early] * (rounds - 1), 1 - (rounds - 1) * early)
            best = RoundPlan(shares, tuple(float(radius[index]) for radius in radii), float(kappa[index]), error)
        squared = noise.squared(radius, share) + clipped
    return best


def _nodes(count: int) -> tuple[Floats, Floats]:
    """Points and weights for means over a standard normal variable."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def _chi(dimension: int, normal: Floats) -> Floats:
    """Root of a chi-squared variable over its degrees of freedom, after Wilson and Hilferty."""
    part = 2 / (9 * dimension)
    root: Floats = np.maximum(1 - part + normal * np.sqrt(part), 0) ** 1.5
    return root


def _shortfall(dimension: int, error: Floats, spread: float, radius: Floats) -> Floats:
    """How far the mean of clipped vectors stays short of their mean, for normal vectors and a centre that is off.

    The centre is off by `error`, the vectors are off their mean by `spread`, both in root mean square and with the same
    law in all directions. Along the direction in which the centre is off, what is beyond the radius is lost.
    """
    normal, weight = _nodes(9)
    e = error[:, None, None, None] * _chi(dimension, normal)[:, None, None]
    along = e + spread * normal[:, None] / np.sqrt(dimension)
    across = (
        spread * np.sqrt((dimension - 1) / dimension) * (_chi(dimension - 1, normal) if dimension > 1 else 0 * normal)
    )
    distance = np.sqrt(along**2 + across**2)
    kept = np.minimum(1, radius[:, None, None, None] / np.maximum(distance, np.finfo(float).tiny))
    lost = e[..., 0, 0] - ((along * kept) @ weight) @ weight
    shortfall: Floats = np.sqrt(lost**2 @ weight)
    return shortfall


def _excess(dimension: int, ratio: Floats) -> Floats:
    """The mean of what exceeds the ratio in the distance of a normal vector, in units of its root mean square."""
    normal, weight = _nodes(41)
    excess: Floats = np.maximum(_chi(dimension, normal) - ratio[:, None], 0) @ weight
    return excess
