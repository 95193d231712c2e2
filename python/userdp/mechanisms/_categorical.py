"""Indices with probabilities proportional to public integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from fractions import Fraction

import numpy as np

from userdp._numbers import shown
from userdp._pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms._law import IntegerLaw

__all__ = ["Categorical"]

SIZE_LIMIT = 2**20
"""The most weights, as in the core."""


class Categorical(IntegerLaw):
    """The index i with probability exactly weights[i] / (weights[0] + ... + weights[k - 1]).

    Parameters
    ----------
    weights : sequence of int, Fraction or decimal string, int array of shape (k,), or Pmf
        Public, exact, non-negative weights. As integers without a common factor their total is at most 2**128; k is at
        most 2**20. Floats are refused: `exact_pmf` says what they become. Of a Pmf, indices of its outputs are drawn.

    Raises
    ------
    TypeError, ValueError
        For other weights, all of them zero, or a total above 2**128.
    BudgetError
        For more than 2**20 weights.

    Notes
    -----
    *Law.* A uniform integer below the total, as in `UniformInteger`, is compared with all sums weights[0] + ... +
    weights[i]; the number of sums that are at most the integer is the index.

    *Time.* The whole table is read whatever the index is. Only the number of rejected words of the uniform integer
    shows, and that is independent of the index. The weights are public.

    Examples
    --------
    >>> law = Categorical(weights=["1/2", "1/3", "1/6"])
    >>> law.pmf().weights
    (3, 2, 1)
    >>> law.sample() in (0, 1, 2)
    True
    """

    def __init__(self, *, weights: Iterable[int | Fraction | str] | Pmf) -> None:
        if isinstance(weights, (str, bytes, Mapping, Set)):
            raise TypeError(f"weights must be a sequence of exact numbers or a Pmf; got {shown(weights)}")
        if isinstance(weights, np.ndarray) and weights.ndim != 1:
            raise ValueError(f"weights must be one-dimensional; got the shape {weights.shape}")
        try:
            given = weights.weights if isinstance(weights, Pmf) else tuple(weights)
        except TypeError:
            raise TypeError(f"weights must be a sequence of exact numbers or a Pmf; got {shown(weights)}") from None
        if len(given) > SIZE_LIMIT:
            raise BudgetError(
                f"weights has {len(given)} entries, and every draw reads them all; at most {SIZE_LIMIT} are accepted: "
                "split the outcomes into groups and draw a group first"
            )
        integers = Pmf.from_weights(given).weights
        factor = math.gcd(*integers)
        self._pmf = Pmf(tuple(range(len(integers))), tuple(weight // factor for weight in integers))
        if self._pmf.total > 2**128:
            raise ValueError(
                f"weights: without common factors their total is about 2**{math.log2(self._pmf.total):.1f}, and a draw "
                "compares numbers of 128 bits; round them to a total of at most 2**128"
            )
        super().__init__(weights=list(given))
        from userdp import _core

        self._core_law = _core.Categorical(self._pmf.weights)

    def pmf(self) -> Pmf:
        """The law, over the indices, with weights in lowest terms."""
        return self._pmf
