"""A threshold by private bisection.

Source: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024), PrivateThreshold (Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from userdp.learners._median import draw_median, tolerance_of_median
from userdp.learners._program import Draw, Mechanism
from userdp.learners._separation import separation
from userdp.mechanisms import GroupedExponentialMechanism

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["Sweep", "median_tolerances", "rounds_of_search", "search", "t_of_error"]


class Sweep:
    """A `ThresholdSweep` that answers a question once: a program is run again for each path of its law."""

    def __init__(self, sweep: _core.ThresholdSweep) -> None:
        self.minimal_errors = lru_cache(maxsize=None)(sweep.minimal_errors)
        self.groups = lru_cache(maxsize=None)(sweep.groups)
        self.median_groups = lru_cache(maxsize=None)(sweep.median_groups)


DECAY = Fraction(2, 3)
"""A round leaves at most this part of the examples that the one before it left."""


def rounds_of_search(alpha: Fraction) -> int:
    """How many rounds leave at most a part alpha / 2 of the examples: T = ceil(ln(2 / alpha) / ln(3 / 2)).

    The integer is what the budget is divided by. With the number before rounding up, the rounds would spend more than
    there is.
    """
    rounds, left = 0, Fraction(1)
    while left > alpha / 2:
        rounds, left = rounds + 1, left * DECAY
    return rounds


def median_tolerances(m: int, rounds: int) -> list[int]:
    """For each round, how many samples of a user beside the median are no offence."""
    return [tolerance_of_median(m, float(DECAY**k)) for k in range(rounds)]


def t_of_error(m: int, error: Fraction, alpha: Fraction) -> int | None:
    """The t that tells a hypothesis near the least error from one that is worse by alpha; None where none is."""
    low, high = error + alpha / 6, min(error + alpha / 3, Fraction(1))
    if low >= 1:
        return None
    t, _, _ = separation(m, float(low), float(high))
    return t


def search(
    draw: Draw,
    sweep: Sweep,
    *,
    domain_size: int,
    t: int,
    tolerances: Sequence[int],
    median: GroupedExponentialMechanism,
    choice: Mechanism,
) -> int:
    """Bisection of 0, ..., N as a part of a program.

    Each round draws a median of the examples in low..high; then whether it, or something to its left or right, is best.

    Parameters
    ----------
    draw : callable
        As in all programs.
    sweep : Sweep
        The rows.
    domain_size : int
        N; public.
    t : int
        The score of a threshold is how many users it fails on more than t examples; public, or drawn before.
    tolerances : sequence of int
        One for each round: `median_tolerances`.
    median : GroupedExponentialMechanism
        Draws a median in each round.
    choice : Mechanism
        Draws "left", "middle" or "right" in each round, from the least score to the left of the median, its own, and
        the least one to its right, None standing for infinity on an empty side: a `ThreeWayChoice`.

    Returns
    -------
    int
        u in 0, ..., N.

    Notes
    -----
    The range low..high is made of outcomes of draws, so which sides are empty tells nothing more. A round's four draws
    have scores of sensitivity 1: the median's, and minima over ranges that the earlier draws fix.
    """
    from userdp import _core

    starts, scores = sweep.groups(t)

    def least(first: int, last: int) -> int | None:
        return None if first > last else _core.range_minimum(starts, scores, first, last)

    low, high = 0, domain_size
    for s in tolerances:
        if low == high:
            break
        middle = draw_median(draw, median, sweep.median_groups, low, high, s)
        side = draw(choice, least(low, middle - 1), least(middle, middle), least(middle + 1, high))
        if side == "middle":
            return middle
        if side == "left":
            high = middle - 1
        else:
            low = middle + 1
    return low
