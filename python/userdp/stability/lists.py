"""Learners that give a short list of hypotheses, among which some hypothesis is often found."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass, DomainClass
from userdp.concepts.errors import ClassErrors, check_work
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, open_unit_fraction, short_repr
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp.stability.learner import Labels

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
        table: bytes = self.hypotheses.predict(domain, 0, 1)[:, 0].astype(np.uint8).tobytes()
        return table

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
        found: Counter[Listed] = Counter()
        for start in range(0, blocks * size, size):
            own = slice(start, start + size)
            found.update(sorted(set(self.lists(points[own], labels[own])))[: self.list_size])
        return found

    def mistakes(self, listed: Sequence[Listed], points: npt.NDArray[Any], labels: Labels) -> npt.NDArray[np.int64]:
        """How many examples each listed hypothesis gets wrong, shape (listed,)."""
        wrong = [np.count_nonzero(self.predict(one, points) != labels.astype(np.bool_)) for one in listed]
        return np.array(wrong, dtype=np.int64)

    def predict(self, one: Listed, points: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a listed hypothesis says about points."""
        if not isinstance(one, bytes):
            predictions: npt.NDArray[np.bool_] = self.hypotheses.predict(points, one, one + 1)[:, 0]
            return predictions
        if not isinstance(self.hypotheses, DomainClass):
            raise TypeError(f"lists of bytes need a class over a finite domain; got {short_repr(self.hypotheses)}")
        said: npt.NDArray[np.bool_] = np.frombuffer(one, dtype=np.bool_)[points - self.hypotheses.first]
        return said


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
        if not isinstance(hypotheses, ConceptClass):
            raise TypeError(f"hypotheses must be a ConceptClass; got {short_repr(hypotheses)}")
        self.hypotheses = hypotheses

    @property
    def list_size(self) -> int:  # type: ignore[override]
        """The number of hypotheses: lists are never cut."""
        return self.hypotheses.size

    def _arguments(self) -> dict[str, Any]:
        return {"hypotheses": self.hypotheses}

    def __repr__(self) -> str:
        return f"VersionSpace({self.hypotheses!r})"

    def lists(self, points: npt.NDArray[Any], labels: Labels) -> list[int]:
        """The indices of hypotheses without a mistake; see `ListLearner.lists`."""
        right = self.hypotheses.predict(points) == labels.astype(np.bool_)[:, None]
        consistent: list[int] = np.flatnonzero(right.all(axis=0)).tolist()
        return consistent

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
    With `filter_examples` many fresh examples, with probability 1 - zeta all L empirical errors are within alpha / 2 of
    the true ones. Then every hypothesis that stays has error at most 2 alpha, and one of error at most alpha stays; it
    may be dropped otherwise, so (L, eta)-list global stability becomes (L, eta - zeta).
    """

    def __init__(self, learner: ListLearner, *, alpha: float | Fraction | str, holdout: int) -> None:
        if not isinstance(learner, ListLearner):
            raise TypeError(f"learner must be a ListLearner; got {short_repr(learner)}")
        self.learner, self.hypotheses, self.list_size = learner, learner.hypotheses, learner.list_size
        self.lists_indices = learner.lists_indices
        self.alpha, self.holdout = open_unit_fraction(alpha, "alpha"), check_count(holdout, "holdout")

    def _arguments(self) -> dict[str, Any]:
        return {"learner": self.learner, "alpha": self.alpha, "holdout": self.holdout}

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
    return max(1, math.floor(math.log(count / 0.45) / -math.log1p(-float(error))) + 1)


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
    count = check_count(list_size, "list_size")
    error, failure = float(open_unit_fraction(alpha, "alpha")), float(open_unit_fraction(zeta, "zeta"))
    return math.ceil(2 * math.log(2 * count / failure) / error**2)
