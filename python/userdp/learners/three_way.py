"""Left, middle or right: the choice of the least of three private counts.

Source: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024), the comparison of [LWY24,
Algorithm 1].
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from userdp.estimators.privacy import equal_part
from userdp.exact.numbers import Epsilon, parse_level
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms import DiscreteLaplace

if TYPE_CHECKING:
    from userdp import _core

Count = int | None
"""A count in 0, ..., n_users, or None for infinity: there is nothing on that side."""

MARGIN = 64
"""Noisy counts are clamped so many scales beyond 0 and n_users, which noise exceeds with probability e**-64."""


class ThreeWayChoice:
    """Choose the least of three counts after noise: the mechanism that is both drawn and audited.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, > 0; each of the three counts has a third of it.
    n_users : int
        Counts are in 0, ..., n_users; public.

    Attributes
    ----------
    certified_epsilon : float
        A proved bound of the loss; at most epsilon, up to the rounding of the sum of three floats.

    Raises
    ------
    BudgetError
        Where epsilon is too small for the tables of exact noise.

    Notes
    -----
    With fresh noise on all three, v_left, v_middle and v_right, the choice is the middle if v_middle is less than both
    others, else left if v_left < v_right, else right. A side that is None is infinite; noise is drawn for it as well.

    *Guarantee.* epsilon-DP, pure, for the replacement of one user where each count then changes by at most 1, and which
    sides are None is public. *Proof.* `DiscreteLaplace` releases each noisy count at epsilon / 3; they compose to
    epsilon; the choice is a function of them. The noisy counts themselves are not released.
    """

    def __init__(self, epsilon: Epsilon, n_users: int) -> None:
        part = equal_part(epsilon, 3)
        margin = math.ceil(MARGIN / Fraction(float(parse_level(part))))
        self._noise = DiscreteLaplace(epsilon=part, sensitivity=1, bounds=(-margin, n_users + margin))
        try:
            # Up front, before anything is drawn.
            self.certified_epsilon = 3 * self._noise.certified_epsilon
        except BudgetError:
            raise BudgetError(
                f"epsilon leaves {float(part):.2g} for each noisy count, and there are {n_users} users: too little for "
                "exact noise; use a larger epsilon, or a method that draws once"
            ) from None
        self._width = n_users + 2 * margin + 1
        self._distribution = lru_cache(maxsize=None)(self._exact)

    def _draw(self, source: _core.Source, left: Count, middle: int, right: Count) -> str:
        noisy = [self._noise._draw(source, 0 if count is None else count) for count in (left, middle, right)]
        v_left, v_middle, v_right = (
            math.inf if count is None else value for count, value in zip((left, middle, right), noisy, strict=True)
        )
        if v_middle < min(v_left, v_right):
            return "middle"
        return "left" if v_left < v_right else "right"

    def pmf(self, left: Count, middle: int, right: Count) -> Pmf:
        """The exact distribution of the choice: "left", "middle" or "right"."""
        return self._distribution(left, middle, right)

    def _exact(self, left: Count, middle: int, right: Count) -> Pmf:
        at_left, above_left = self._noisy(left)
        at_middle, above_middle = self._noisy(middle)
        at_right, above_right = self._noisy(right)
        chosen_middle = sum(map(math.prod, zip(at_middle, above_left, above_right, strict=True)))
        # Left is chosen where v_left < v_right and v_left <= v_middle.
        from_middle = map(int.__add__, at_middle, above_middle)
        chosen_left = sum(map(math.prod, zip(at_left, above_right, from_middle, strict=True)))
        sides = ((at_left, above_left), (at_middle, above_middle), (at_right, above_right))
        whole = math.prod(at[0] + above[0] for at, above in sides)
        chosen_right = whole - chosen_left - chosen_middle
        return Pmf(("left", "middle", "right"), (chosen_left, chosen_middle, chosen_right))

    def _noisy(self, count: Count) -> tuple[list[int], list[int]]:
        """For each finite value in order, the weights of a noisy count equal to it and of one above it."""
        if count is None:
            return [0] * self._width, [1] * self._width
        weights = self._noise.pmf(count).weights
        total = sum(weights)
        return list(weights), [total - up_to for up_to in accumulate(weights)]
