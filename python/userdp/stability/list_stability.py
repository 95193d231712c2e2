"""[GKM21, Algorithm 1]: from lists that often have a hypothesis in common to one vote that users have in common."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass
from userdp.concepts.errors import check_work
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.public_randomness.sampling import CorrelatedSampler
from userdp.stability.learner import Labels, StableLearner
from userdp.stability.lists import Listed, ListLearner
from userdp.stability.representation import positive_float, power_pmf, rational_base
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp.public_randomness import PublicSeed

RACE = "list stability"
"""The label of the race in the public seed."""


@saved_as_parameter
class ListStabilityLearner(StableLearner):
    """Every user votes for a hypothesis that is on many lists made from their own rows: [GKM21, Algorithm 1].

    A user's rows are split, by position, into k1 + k2 blocks of equal length, rows left over do not count, and the list
    learner runs on each block. Hypotheses on at least eta / 2 of the first k1 lists are candidates. One of them is
    drawn with probability proportional to exp(gamma q), q the fraction of the last k2 lists that have it, by the
    exponential race of the public seed.

    Parameters
    ----------
    list_learner : ListLearner
        For instance `VersionSpace`.
    eta : float, Fraction or decimal string in (0, 1]
        The list stability that is assumed: some hypothesis is on a list with at least this probability.
    k1, k2 : int
        Numbers of blocks, k1 eta / 2 >= 1 and k2 >= 1. `list_parameters` has values with guarantees, for gamma too.
    gamma : float, int, Fraction or decimal string
        How much frequency counts, > 0.
    default : int or bytes, optional
        What users vote for who have fewer than k1 + k2 rows or no candidates. Public, and of the kind that the list
        learner lists. By default the first hypothesis of its class.

    Notes
    -----
    The vote is an index where the list learner lists hypotheses of its class, and the bytes of a function where it
    lists any functions (see `ListLearner.lists`). The key of a hypothesis in the race is found in the seed by what
    the hypothesis is, not by its place in a list, so that users with different candidates share keys.

    All of eta, k1, k2 and gamma are public and free: they say how often users agree, and privacy does not depend on it.

    References
    ----------
    [GKM21, Algorithm 1] and [GKM21, Theorem 20]; docs/proofs/stability.md. [GKM21, Corollary 21].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.concepts import Thresholds
    >>> from userdp.public_randomness import PublicSeed
    >>> from userdp.stability import VersionSpace
    >>> learner = ListStabilityLearner(VersionSpace(Thresholds(10)), eta=1, k1=5, k2=20, gamma=30)
    >>> X = np.tile(np.arange(1, 11), 25)[:, None]
    >>> learner.item(X, (X[:, 0] > 6).astype(np.uint8), PublicSeed(bytes(32)))
    6
    """

    default: Listed

    def __init__(
        self,
        list_learner: ListLearner,
        *,
        eta: float | Fraction | str,
        k1: int,
        k2: int,
        gamma: float | Fraction | str,
        default: Listed | None = None,
    ) -> None:
        if not isinstance(list_learner, ListLearner):
            raise TypeError(f"list_learner must be a ListLearner; got {short_repr(list_learner)}")
        kind, name = (int, "an int") if list_learner.lists_indices else (bytes, "bytes")
        if default is None:
            default = list_learner.first_hypothesis()
        if isinstance(default, bool) or not isinstance(default, kind):
            raise TypeError(f"default must be {name} or None, as {list_learner!r} lists; got {short_repr(default)}")
        self.list_learner, self.default = list_learner, default
        self.eta, self.k1, self.k2 = parse_delta(eta, "eta"), check_count(k1, "k1"), check_count(k2, "k2")
        self.gamma = positive_float(gamma, "gamma")
        if not self.eta:
            raise ValueError("eta must be in (0, 1]; got 0")
        if self.k1 * self.eta < 2:
            raise ValueError(f"k1 must be at least 2 / eta = {float(2 / self.eta):g}; got {self.k1}")

    @property
    def hypotheses(self) -> ConceptClass:
        """The class to be learned."""
        return self.list_learner.hypotheses

    def _arguments(self) -> dict[str, Any]:
        return {
            "list_learner": self.list_learner,
            "eta": self.eta,
            "k1": self.k1,
            "k2": self.k2,
            "gamma": self.gamma,
            "default": self.default,
        }

    def __repr__(self) -> str:
        return (
            f"ListStabilityLearner({self.list_learner!r}, eta={float(self.eta):g}, k1={self.k1}, k2={self.k2}, "
            f"gamma={self.gamma:g})"
        )

    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> Listed:
        """What one user votes for; see `StableLearner.item`."""
        frequencies = self._frequencies(X, labels)
        candidates = sorted(frequencies)
        if not candidates:
            return self.default
        log_weights = np.array([self.gamma * frequencies[one] / self.k2 for one in candidates])
        sampler = CorrelatedSampler(seed, label=RACE)
        return candidates[sampler.sample(log_weights=log_weights, items=[_name(one) for one in candidates])]

    def items(self, data: UserTable, seed: PublicSeed) -> Sequence[Hashable]:
        """One vote for every user slot; see `StableLearner.items`.

        Raises
        ------
        BudgetError
            For too large a class, number of users or m, which are public.
        """
        self.list_learner.hypotheses.points(data.X[:0])
        check_work(self.list_learner.hypotheses, data.n_users, data.m)
        return super().items(data, seed)

    def predict(self, item: Listed, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a hypothesis says about rows; see `StableLearner.predict`."""
        return self.list_learner.predict(item, self.list_learner.hypotheses.points(X))

    def distribution(self, X: npt.NDArray[Any], labels: Labels, *, base: Fraction | None = None) -> Pmf:
        """The distribution of one user's vote over the public seed, exactly.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
        labels : ndarray of uint8 with shape (rows,)
        base : Fraction, optional
            The weight of a candidate on c of the last k2 lists is base**c, base > 1. By default the float nearest to
            e**(gamma / k2), taken as the rational number that it is.

        Returns
        -------
        Pmf
            Over the candidates.
        """
        frequencies = self._frequencies(X, labels)
        if not frequencies:
            return Pmf((self.default,), (1,))
        candidates = sorted(frequencies)
        ratio = rational_base(base, self.gamma / self.k2)
        return power_pmf(candidates, [frequencies[one] for one in candidates], ratio)

    def _frequencies(self, X: npt.NDArray[Any], labels: Labels) -> Mapping[Listed, int]:
        """For each candidate the number of the last k2 lists that have it; no candidates for too few rows."""
        size = len(labels) // (self.k1 + self.k2)
        if size == 0:
            return {}
        split, end = size * self.k1, size * (self.k1 + self.k2)
        first = self.list_learner.frequencies(X[:split], labels[:split], self.k1)
        least = math.ceil(self.eta / 2 * self.k1)
        last = self.list_learner.frequencies(X[split:end], labels[split:end], self.k2)
        return {one: last.get(one, 0) for one, lists in first.items() if lists >= least}


def _name(one: Listed) -> bytes:
    """What a hypothesis is, as bytes; different for different ones of one kind."""
    return one if isinstance(one, bytes) else one.to_bytes(8, "little")
