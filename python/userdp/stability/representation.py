"""[GKM21, Algorithm 3]: vote for a hypothesis with few errors on one's own rows, drawn with shared randomness."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass
from userdp.concepts.errors import ClassErrors, check_work
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import nearest_float, parse_positive, short_repr
from userdp.exact.pmf import Pmf
from userdp.public_randomness.seed import PublicSeed
from userdp.stability.learner import ClassLearner, Labels
from userdp.users.table import UserTable

RACE = "representation"
"""The label of the race in the public seed."""

LARGEST_EXPONENT = 709.0

CELLS = 2**22
"""Hypotheses times users that race at a time."""


@saved_as_parameter
class RepresentationLearner(ClassLearner):
    """Every user votes for a hypothesis with few errors on their own rows: [GKM21, Algorithm 3].

    The user's vote is drawn with probability proportional to exp(-gamma err(h)), err the fraction of the user's rows
    that h gets wrong, by the exponential race of the public seed. So users of one distribution, whose errors are about
    the same, mostly vote for the same hypothesis.

    Parameters
    ----------
    hypotheses : ConceptClass
        H, fixed without a look at the data: a draw from a probabilistic representation with public coins, or simply the
        concept class itself, which on finite classes costs nothing (the target is in it).
    gamma : float, int, Fraction or decimal string
        How much errors count, > 0. Public: `representation_parameters` has values with guarantees; any value is as
        private.
    default : int
        The index of the hypothesis that users without rows vote for.

    Notes
    -----
    *Purity.* The number of errors e is an exact integer; the weight -gamma e / r, with r the user's own number of rows,
    and the race are correctly rounded operations on this user's numbers and the seed's keys: the vote is the same alone
    and among a million users. Rounding moves the probabilities of a vote by parts in 2**50, which matters to
    no claim: privacy rests on the vote being a function of the user's rows and the seed, whatever function it is.

    *Stability.* docs/proofs/stability.md has the theorem and its constants; `userdp.stability.audit_stability`
    computes the agreement of two users exactly on small domains.

    References
    ----------
    [GKM21, Algorithm 3], [GKM21, Theorem 26] and, by [GKM21, Lemma 10], [GKM21, Corollary 27].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.concepts import Thresholds
    >>> from userdp.public_randomness import PublicSeed
    >>> learner = RepresentationLearner(Thresholds(10), gamma=200)
    >>> X = np.arange(1, 11)[:, None]
    >>> learner.item(X, (X[:, 0] > 6).astype(np.uint8), PublicSeed(bytes(32)))
    6
    """

    def __init__(self, hypotheses: ConceptClass, *, gamma: float | Fraction | str, default: int = 0) -> None:
        super().__init__(hypotheses, default)
        self.gamma = positive_float(gamma, "gamma")

    def __repr__(self) -> str:
        return f"RepresentationLearner({self.hypotheses!r}, gamma={self.gamma:g})"

    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> int:
        """The index that one user votes for; see `StableLearner.item`."""
        return self.items(_alone(X, labels), seed)[0]

    def items(self, data: UserTable, seed: PublicSeed) -> list[int]:
        """The index that every user votes for; see `StableLearner.items`.

        Raises
        ------
        BudgetError
            For too large a class, number of users or m, which are public.
        """
        check_work(self.hypotheses, data.n_users, data.m)
        keys = PublicSeed(seed).race_keys(RACE, 0, self.hypotheses.size)[:, None]
        order = np.argsort(data.users, kind="stable")
        X, labels, users = data.X[order], data.labels[order], data.users[order]
        rows = np.bincount(users, minlength=data.n_users)
        ends = np.concatenate([[0], np.cumsum(rows)])
        votes = np.full(data.n_users, self.default, dtype=np.int64)
        step = max(1, CELLS // self.hypotheses.size)
        for first in range(0, data.n_users, step):
            last = min(first + step, data.n_users)
            span = slice(ends[first], ends[last])
            if span.start == span.stop:
                continue
            block = UserTable(X[span], labels[span], users[span] - np.uint32(first), last - first, data.m)
            errors = ClassErrors(self.hypotheses, block).mistakes()
            voting = rows[first:last] > 0
            with np.errstate(over="ignore"):  # a warning would tell that somebody has many errors
                weights = -(self.gamma * errors[:, voting]) / rows[first:last][voting]
            # argmax takes the first of equal numbers: ties go to the lowest index.
            votes[first:last][voting] = np.argmax(weights + keys, axis=0)
        return votes.tolist()

    def pmf(self, X: npt.NDArray[Any], labels: Labels, *, base: Fraction | None = None) -> Pmf:
        """The distribution of one user's vote over the public seed, exactly.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
        labels : ndarray of uint8 with shape (rows,)
        base : Fraction, optional
            The weight of a hypothesis with e errors is base**-e, base > 1. By default the float nearest to
            e**(gamma / rows), taken as the rational number that it is.

        Returns
        -------
        Pmf
            Over the indices of hypotheses.
        """
        rows = len(labels)
        if rows == 0:
            return Pmf((self.default,), (1,))
        errors = ClassErrors(self.hypotheses, _alone(X, labels)).mistakes()[:, 0]
        return power_pmf(
            range(self.hypotheses.size), (-errors.astype(np.int64)).tolist(), rational_base(base, self.gamma / rows)
        )


def power_pmf(outputs: Iterable[Hashable], exponents: Sequence[int], base: Fraction) -> Pmf:
    """Probabilities proportional to base**exponent, exactly."""
    least, most = min(exponents), max(exponents)
    up, down = base.numerator, base.denominator
    return Pmf(tuple(outputs), tuple(up ** (power - least) * down ** (most - power) for power in exponents))


def rational_base(base: Any, exponent: float) -> Fraction:
    """The base that is given, or the float nearest to e**exponent as a rational number."""
    if base is None and exponent > LARGEST_EXPONENT:
        raise ValueError(
            f"base must be given where e**{exponent:g} is no float: gamma is large for so few rows or blocks"
        )
    return Fraction(math.exp(exponent)) if base is None else parse_positive(base, "base")


def _alone(X: npt.NDArray[Any], labels: Labels) -> UserTable:
    """One user's rows."""
    return UserTable(X, labels, np.zeros(len(labels), dtype=np.uint32), 1, max(1, len(labels)))


def positive_float(value: Any, name: str) -> float:
    """Read a number above 0 as a float."""
    number = nearest_float(parse_positive(value, name))
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a positive number in the range of floats; got {short_repr(value)}")
    return number
