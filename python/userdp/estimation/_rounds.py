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
    """The squared error of the noise of one round: ``coefficient * radius**2 / share**power``.

    Its length varies as that of a normal vector in `dimension` dimensions does, which for noise with heavier tails are
    fewer than there are columns.
    """

    coefficient: float
    power: int
    dimension: float

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
    normal, weight = _nodes(13)
    lengths = _chi(noise.dimension, normal)
    lengths /= np.sqrt(lengths**2 @ weight)
    radii = [np.full(kappa.shape, ball)]
    off = np.sqrt(noise.squared(radii[0], share))[:, None] * lengths
    for rounds in range(2, MOST_ROUNDS + 1):
        radius = np.minimum(kappa * np.sqrt(spread**2 + off**2 @ weight), 2 * ball)
        radii.append(radius)
        short = _shortfall(dimension, off, spread, radius)
        lean = SKEW * spread * _excess(dimension, radius / spread)
        rest = 1 - (rounds - 1) * share
        last = noise.squared(radius, np.where(rest > 0, rest, 1)) + short**2 @ weight + lean**2
        last[rest <= 0] = np.inf
        index = int(np.argmin(last))
        error = float(np.sqrt(last[index]))
        if error < WORTH_A_ROUND * best.error:
            early = EARLY_SHARES[index // len(KAPPAS)]
            shares = (*[early] * (rounds - 1), 1 - (rounds - 1) * early)
            best = RoundPlan(shares, tuple(float(radius[index]) for radius in radii), float(kappa[index]), error)
        elif rounds > len(best.radii) + 1:
            break
        # Where a round falls far short the next one starts far off: its noise does not help there.
        off = np.sqrt(short**2 + noise.squared(radius, share)[:, None] * lengths**2)
    return best


def _nodes(count: int) -> tuple[Floats, Floats]:
    """Points and weights for means over a standard normal variable."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def _chi(dimension: float, normal: Floats) -> Floats:
    """Root of a chi-squared variable over its degrees of freedom, after Wilson and Hilferty."""
    part = 2 / (9 * dimension)
    root: Floats = np.maximum(1 - part + normal * np.sqrt(part), 0) ** 1.5
    return root


def _shortfall(dimension: int, off: Floats, spread: float, radius: Floats) -> Floats:
    """How far the mean of clipped vectors stays short of their mean, for normal vectors and a centre that is `off`.

    Along the direction in which the centre is off, what is beyond the radius is lost. `off` has a row for each radius.
    """
    normal, weight = _nodes(7)
    e = off[:, :, None, None]
    along = e + spread * normal[:, None] / np.sqrt(dimension)
    across = spread * np.sqrt((dimension - 1) / dimension) * _chi(max(dimension - 1, 1), normal)
    distance = np.sqrt(along**2 + across**2)
    reach = radius[:, None, None, None]
    kept = reach / np.maximum(distance, reach)
    lost: Floats = off - ((along * kept) @ weight) @ weight
    return lost


def _excess(dimension: int, ratio: Floats) -> Floats:
    """The mean of what exceeds the ratio in the distance of a normal vector, in units of its root mean square."""
    normal, weight = _nodes(41)
    excess: Floats = np.maximum(_chi(dimension, normal) - ratio[:, None], 0) @ weight
    return excess
