"""Boosting of representations: how large they get, and small ones.

Source: LWY24, Lemma 2.4, after Beimel, Nissim and Stemmer (2019).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp._numbers import shown
from userdp.learners._concept_class import Bits, ConceptClass, Points, check_size
from userdp.learners._ranges import open_unit_fraction
from userdp.learners._saving import saved_as_parameter

__all__ = ["BoostedSize", "MajorityVotes", "boosted_size"]


@dataclass(frozen=True)
class BoostedSize:
    """What boosting a representation takes; see `boosted_size`.

    Attributes
    ----------
    rounds : int
        T, odd: a hypothesis of the boosted class is a majority vote of T hypotheses of the base.
    copies : int
        R: each of them is from the union of R independent draws of the base.
    log_size : float
        T (base_log_size + ln R), the natural logarithm of the number of hypotheses.
    """

    rounds: int
    copies: int
    log_size: float


def boosted_size(alpha: float, beta: float, base_log_size: float) -> BoostedSize:
    """How large an (alpha, beta)-representation is that is boosted from a (1/4, 1/4)-representation.

    Parameters
    ----------
    alpha, beta : float, Fraction or decimal string
        Accuracy and failure probability that are wanted, in (0, 1).
    base_log_size : float
        The natural logarithm of the number of hypotheses of one draw of the base, >= 0.

    Returns
    -------
    BoostedSize

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    T is the least odd number with (sqrt(3) / 2)**T <= alpha and R the least with 4**-R <= beta / T; both are found in
    exact arithmetic.

    *Proof.* Boosting with the fixed weight ln(3) / 2 multiplies the potential by at most sqrt(3) / 2 in every round
    whose weak hypothesis errs at most 1/4. The union of R draws for round i is independent of the distribution that the
    first i - 1 hypotheses make, so it lacks such a hypothesis with probability at most 4**-R <= beta / T; a union bound
    over rounds remains.

    The classes are astronomical at the accuracies that theorems ask for, and then these numbers are all that there is;
    `MajorityVotes` enumerates small ones.

    Examples
    --------
    >>> size = boosted_size(0.01, 0.25, base_log_size=2.5)
    >>> size.rounds, size.copies, round(size.log_size)  # e**128 hypotheses
    (33, 4, 128)
    """
    accuracy, failure = open_unit_fraction(alpha, "alpha"), open_unit_fraction(beta, "beta")
    try:
        base = float(base_log_size)
    except (TypeError, ValueError):
        raise TypeError(f"base_log_size must be a number; got {shown(base_log_size)}") from None
    if not 0 <= base < math.inf:
        raise ValueError(f"base_log_size must be finite and >= 0; got {shown(base_log_size)}")
    rounds = 1
    while 3**rounds > accuracy**2 * 4**rounds:
        rounds += 2
    copies = 1
    while 4**copies * failure < rounds:
        copies += 1
    return BoostedSize(rounds, copies, rounds * (base + math.log(copies)))


@saved_as_parameter
class MajorityVotes(ConceptClass):
    """The majority votes of T hypotheses, one from each of T classes: a boosted representation that is enumerated.

    Parameters
    ----------
    classes : sequence of ConceptClass
        An odd number T of classes over the same points, which all read from the same columns. For boosting the i-th is
        the union of the draws for round i.

    Raises
    ------
    TypeError, ValueError
        For an even number of classes, and for classes over other points.
    BudgetError
        For more than 2**24 votes.

    Notes
    -----
    Several votes may be the same function; each counts as a hypothesis, which is as private and weighs that function
    more. `vc_dimension` is the bound log2(size).

    Examples
    --------
    >>> from userdp.learners import Thresholds
    >>> votes = MajorityVotes([Thresholds(2)] * 3)
    >>> votes.size, votes.describe(5)
    (27, 'most of: x > 0; x > 1; x > 2')
    """

    def __init__(self, classes: Iterable[ConceptClass]) -> None:
        self.classes = tuple(classes)
        for member in self.classes:
            if not isinstance(member, ConceptClass):
                raise TypeError(f"classes must be concept classes; got {shown(member)}")
        if len(self.classes) % 2 == 0:
            raise ValueError(f"classes must be an odd number of concept classes; got {len(self.classes)}")
        if len({member.reading for member in self.classes}) > 1:
            raise ValueError(
                "classes must be over the same points, read from the same columns (and for stumps with the same cuts); "
                "they have different domains"
            )
        self.domain_size = self.classes[0].domain_size
        check_size(self.size, "MajorityVotes", "boosted_size gives sizes only; take fewer rounds or smaller classes")

    @property
    def size(self) -> int:
        """The product of the sizes."""
        return math.prod(member.size for member in self.classes)

    @property
    def vc_dimension(self) -> int:
        """A bound: a class that shatters k points has at least 2**k hypotheses."""
        return self.size.bit_length() - 1

    def points(self, X: npt.NDArray[Any]) -> Points:
        """The points of rows, as the first class reads them."""
        return self.classes[0].points(X)

    @property
    def reading(self) -> Hashable:
        """That of all members."""
        return self.classes[0].reading

    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What votes say about points; see `ConceptClass.predict`."""
        hypotheses = self._range(start, stop)
        votes = np.zeros((len(points), len(hypotheses)), dtype=np.int32)
        for member, digits in zip(self.classes, self._digits(hypotheses), strict=True):
            votes += member.predict(points)[:, digits]
        return 2 * votes > len(self.classes)

    def describe(self, index: int) -> str:
        """What is voted on."""
        known = np.array([self._known(index)])
        chosen = (
            member.describe(int(digit[0])) for member, digit in zip(self.classes, self._digits(known), strict=True)
        )
        return f"most of: {'; '.join(chosen)}"

    def _digits(self, hypotheses: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """The hypothesis of each class; the last class varies fastest."""
        digits = []
        rest = hypotheses
        for member in reversed(self.classes):
            rest, digit = np.divmod(rest, member.size)
            digits.append(digit)
        return digits[::-1]

    def _arguments(self) -> dict[str, Any]:
        return {"classes": self.classes}
