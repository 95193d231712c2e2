"""Lists of hypotheses that often have one in common, and [GKM21, Algorithm 1], which votes for it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass, DomainClass
from userdp.concepts.errors import ClassErrors, check_work
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import (
    COUNTED,
    check_count,
    check_kind,
    open_unit_fraction,
    parse_delta,
    short_repr,
    within_floats,
)
from userdp.exact.pmf import Pmf
from userdp.public_randomness import PublicSeed
from userdp.public_randomness.sampling import CorrelatedSampler
from userdp.stability.learner import Labels, StableLearner
from userdp.stability.representation import positive_float, power_pmf, rational_base
from userdp.users.table import UserTable

Listed: TypeAlias = "int | bytes"
"""A hypothesis of the class, by index; or any function on the points of a domain, as one byte 0 or 1 for each."""


class ListLearner(ABC):
    """Turns examples into a list of hypotheses ([GKM21, Definition 16]).

    It is (L, eta)-list globally stable under a distribution when lists have at most L hypotheses and some accurate
    hypothesis is on the list with probability at least eta.

    Attributes
    ----------
    hypotheses : ConceptClass
        The class to be learned; its `points` reads rows.
    list_size : int
        L, public: longer lists are cut to their first L hypotheses in ascending order.
    lists_indices : bool
        Whether lists are of indices of hypotheses, the default, or of functions as bytes.
    """

    hypotheses: ConceptClass
    list_size: int
    lists_indices: bool = True

    @abstractmethod
    def lists(self, points: npt.NDArray[Any], labels: Labels) -> Sequence[Listed]:
        """The list for some examples: a function of these alone.

        Parameters
        ----------
        points : ndarray
            As ``hypotheses.points`` gives them.
        labels : ndarray of uint8
            0 or 1.

        Returns
        -------
        sequence of int or of bytes
            Indices of hypotheses; or, for functions outside the class, what they say about the points of the domain in
            ascending order, one byte 0 or 1 for each. One kind throughout; repetitions do not count.
        """

    def first_hypothesis(self) -> Listed:
        """The hypothesis with index 0, in the form in which hypotheses are listed."""
        if self.lists_indices:
            return 0
        if not isinstance(self.hypotheses, DomainClass):
            raise TypeError(f"lists of bytes need a class over a finite domain; got {short_repr(self.hypotheses)}")
        domain = np.arange(self.hypotheses.first, self.hypotheses.first + self.hypotheses.domain_size)
        return self.hypotheses.predict(domain, 0, 1)[:, 0].astype(np.uint8).tobytes()

    def frequencies(self, X: npt.NDArray[Any], labels: Labels, blocks: int) -> Mapping[Listed, int]:
        """On how many lists a hypothesis is, of the lists for consecutive blocks of equal length.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
        labels : ndarray of uint8 with shape (rows,)
        blocks : int
            A divisor of the number of rows.
        """
        points, size = self.hypotheses.points(X), len(labels) // blocks
        counts: Counter[Listed] = Counter()
        for start in range(0, blocks * size, size):
            block = slice(start, start + size)
            counts.update(sorted(set(self.lists(points[block], labels[block])))[: self.list_size])
        return counts

    def mistakes(self, listed: Sequence[Listed], points: npt.NDArray[Any], labels: Labels) -> npt.NDArray[np.int64]:
        """How many examples each listed hypothesis gets wrong, shape (listed,)."""
        wrong = [np.count_nonzero(self.predict(one, points) != labels.astype(np.bool_)) for one in listed]
        return np.array(wrong, dtype=np.int64)

    def predict(self, one: Listed, points: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a listed hypothesis says about points."""
        if not isinstance(one, bytes):
            return self.hypotheses.predict(points, one, one + 1)[:, 0]
        if not isinstance(self.hypotheses, DomainClass):
            raise TypeError(f"lists of bytes need a class over a finite domain; got {short_repr(self.hypotheses)}")
        return np.frombuffer(one, dtype=np.bool_)[points - self.hypotheses.first]


@saved_as_parameter
class VersionSpace(ListLearner):
    """All hypotheses of a class without a mistake.

    When the target is in the class it is on every list: (size, 1)-list globally stable with error 0, the simplest
    instance of [GKM21, Definition 16], and on finite classes as good as any up to a factor log(domain size).

    Parameters
    ----------
    hypotheses : ConceptClass

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.concepts import Thresholds
    >>> list(VersionSpace(Thresholds(10)).lists(np.array([3, 7]), np.array([0, 1], dtype=np.uint8)))
    [3, 4, 5, 6]
    """

    def __init__(self, hypotheses: ConceptClass) -> None:
        check_kind(hypotheses, ConceptClass, "hypotheses")
        self.hypotheses = hypotheses

    @property
    def list_size(self) -> int:  # type: ignore[override]
        """The number of hypotheses: lists are never cut."""
        return self.hypotheses.size

    def __repr__(self) -> str:
        return f"VersionSpace({self.hypotheses!r})"

    def lists(self, points: npt.NDArray[Any], labels: Labels) -> list[int]:
        """The indices of hypotheses without a mistake; see `ListLearner.lists`."""
        right = self.hypotheses.predict(points) == labels.astype(np.bool_)[:, None]
        return np.flatnonzero(right.all(axis=0)).tolist()

    def frequencies(self, X: npt.NDArray[Any], labels: Labels, blocks: int) -> dict[Listed, int]:
        """See `ListLearner.frequencies`: the same, all blocks at once."""
        size = len(labels) // blocks
        check_work(self.hypotheses, blocks, size)
        owners = np.repeat(np.arange(blocks, dtype=np.uint32), size)
        data = UserTable(X[: blocks * size], labels[: blocks * size], owners, blocks, size)
        counts = np.count_nonzero(ClassErrors(self.hypotheses, data).mistakes() == 0, axis=1)
        return {int(index): int(counts[index]) for index in np.flatnonzero(counts)}


@saved_as_parameter
class AccurateLists(ListLearner):
    """The lists of another learner, without the hypotheses that look inaccurate on fresh examples ([GKM21, Lemma 19]).

    Of each block the last `holdout` examples are kept from the other learner, and a hypothesis stays when it gets at
    most 3/2 alpha of them wrong.

    Parameters
    ----------
    learner : ListLearner
    alpha : float, Fraction or decimal string in (0, 1)
        The error that the learner promises of its stable hypothesis.
    holdout : int
        Fresh examples of each block, at least 1; see `filter_examples`.

    Notes
    -----
    With `filter_examples` many fresh examples, with probability 1 - zeta every hypothesis that stays has error at most
    2 alpha, and (L, eta)-list global stability becomes (L, eta - zeta): docs/proofs/stability.md.
    """

    def __init__(self, learner: ListLearner, *, alpha: float | Fraction | str, holdout: int) -> None:
        check_kind(learner, ListLearner, "learner")
        self.learner, self.hypotheses, self.list_size = learner, learner.hypotheses, learner.list_size
        self.lists_indices = learner.lists_indices
        self.alpha, self.holdout = open_unit_fraction(alpha, "alpha"), check_count(holdout, "holdout")

    def __repr__(self) -> str:
        return f"AccurateLists({self.learner!r}, alpha={float(self.alpha):g}, holdout={self.holdout})"

    def lists(self, points: npt.NDArray[Any], labels: Labels) -> list[Listed]:
        """The hypotheses that stay; none when there are no examples but fresh ones. See `ListLearner.lists`."""
        kept = len(labels) - self.holdout
        if kept <= 0:
            return []
        listed = sorted(set(self.learner.lists(points[:kept], labels[:kept])))[: self.list_size]
        wrong = self.mistakes(listed, points[kept:], labels[kept:])
        most = math.floor(self.alpha * 3 / 2 * self.holdout)
        return [one for one, errors in zip(listed, wrong.tolist(), strict=True) if errors <= most]

    def predict(self, one: Listed, points: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """As the other learner; see `ListLearner.predict`."""
        return self.learner.predict(one, points)


def version_space_examples(size: int, alpha: float | Fraction | str) -> int:
    """How many examples a block needs for `VersionSpace` to make `ListStabilityLearner` accurate.

    Parameters
    ----------
    size : int
        The number of hypotheses, at least 1.
    alpha : float, Fraction or decimal string in (0, 1)
        The error wanted.

    Returns
    -------
    int
        The least m with size (1 - alpha)**m < 9/20: then some hypothesis of error above alpha has no mistake with
        probability below 0.9 tau, where tau = 1/2 as the target is on every list. Computed with floats, for planning;
        see docs/proofs/stability.md.

    Examples
    --------
    >>> version_space_examples(100, 0.1)
    52
    """
    count, error = check_count(size, "size"), open_unit_fraction(alpha, "alpha")
    return max(1, math.floor((math.log(count) - math.log(0.45)) / -math.log1p(-float(error))) + 1)


def filter_examples(list_size: int, alpha: float | Fraction | str, zeta: float | Fraction | str) -> int:
    """How many fresh examples `AccurateLists` needs.

    Parameters
    ----------
    list_size : int
        L, at least 1.
    alpha, zeta : float, Fraction or decimal string in (0, 1)
        The error, and the probability that the filter fails.

    Returns
    -------
    int
        ceil(2 ln(2 L / zeta) / alpha**2), by Hoeffding's inequality for L hypotheses and deviations of alpha / 2.

    Examples
    --------
    >>> filter_examples(100, 0.1, 0.01)
    1981
    """
    count = check_count(list_size, "list_size", most=COUNTED)
    error, failure = within_floats(open_unit_fraction(alpha, "alpha"), "alpha"), float(open_unit_fraction(zeta, "zeta"))
    return math.ceil(2 * math.log(2 * count / failure) / error**2)


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
        check_kind(list_learner, ListLearner, "list_learner")
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

    def pmf(self, X: npt.NDArray[Any], labels: Labels, *, base: Fraction | None = None) -> Pmf:
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
