"""The exponential mechanism over up to 2^64 candidates that share scores in groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Epsilon, Neighbors, is_integer, is_listed, parse_positive, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import PMF_CANDIDATES, ChoiceByScore
from userdp.runtime import number_of

MOST = 2**64 - 1


@dataclass(frozen=True, eq=False, repr=False)
class GroupedScores:
    """A score for each integer of a range, in groups of neighbors: group j is starts[j], ..., starts[j + 1] - 1.

    Parameters
    ----------
    starts : array-like of int with shape (g,)
        Where each of g >= 1 groups begins, from 0 to 2**64 - 1, never falling. A group that begins where the next one
        does is empty: it has no candidate, whatever its score. So vectors of one public length can hold groups
        whose number is private.
    scores : array-like of int with shape (g,)
        The score of every candidate of a group, from -2**63 to 2**63 - 1.
    last : int
        The last candidate, at most 2**64 - 1, where the last group ends. That group is empty when it begins at
        ``last + 1``. At least one group is not empty.

    Attributes
    ----------
    starts : ndarray of uint64 with shape (g,)
    scores : ndarray of int64 with shape (g,)
        Read-only views. Contiguous arrays of these types are not copied: who changes them changes the groups.

    Notes
    -----
    Arrays of uint64 and int64 are checked in constant time, except that it shows whether they are groups at all; other
    types are not converted in constant time.

    Examples
    --------
    >>> groups = GroupedScores([0, 1000, 1001], [7, 2, 40], 2**64 - 1)
    >>> groups.n_candidates == 2**64
    True
    >>> list(GroupedScores([0, 10, 10, 20], [5, -3, 4, 6], 29))
    [(0, 9, 5), (10, 19, 4), (20, 29, 6)]
    """

    starts: npt.NDArray[np.uint64]
    scores: npt.NDArray[np.int64]
    last: int

    def __post_init__(self) -> None:

        if not is_integer(self.last):
            raise TypeError(f"last must be an int from 0 to 2**64 - 1; got {short_repr(self.last)}")
        if not 0 <= self.last <= MOST:
            raise ValueError(f"last must be an int from 0 to 2**64 - 1; got {short_repr(self.last)}")
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "starts", _vector(self.starts, "starts", np.dtype(np.uint64)))
        set_field(self, "scores", _vector(self.scores, "scores", np.dtype(np.int64)))
        set_field(self, "last", int(self.last))
        _core.check_groups(self.starts, self.scores, self.last)

    def __reduce__(self) -> tuple[Any, ...]:
        return GroupedScores, (self.starts, self.scores, self.last)

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[int, int, int]]) -> GroupedScores:
        """Make groups from (start, end, score), both ends included, each beginning right after the one before.

        Raises
        ------
        TypeError, ValueError
            For triples that are not of integers, are empty, or leave a gap or overlap.

        Examples
        --------
        >>> GroupedScores.from_triples([(0, 9, 5), (10, 19, 4)])
        GroupedScores(2 groups, last=19)
        """
        starts: list[int] = []
        scores: list[int] = []
        expected = None
        try:
            listed = [tuple(triple) for triple in triples]
        except TypeError:
            raise TypeError(f"groups must be triples (start, end, score); got a {type(triples).__name__}") from None
        for index, triple in enumerate(listed):
            if len(triple) != 3 or not all(is_integer(number) for number in triple):
                raise TypeError(f"groups: entry {index} must be three ints (start, end, score)")
            start, end, score = (int(number) for number in triple)
            if start > end:
                raise ValueError(f"groups: entry {index} ends before it begins")
            if expected is not None and start != expected:
                raise ValueError(f"groups: entry {index} must begin right after the one before ends")
            starts.append(start)
            scores.append(score)
            expected = end + 1
        if expected is None:
            raise ValueError("groups is empty; there must be a candidate to choose")
        return cls(starts, scores, expected - 1)  # type: ignore[arg-type]  # lists become arrays

    def __repr__(self) -> str:
        return f"GroupedScores({len(self)} groups, last={self.last})"

    def __len__(self) -> int:
        """The number of groups, empty ones included."""
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(start, end, score) of every group that is not empty, both ends included."""
        starts = self.starts.tolist()
        for start, end, score in zip(starts, [*starts[1:], self.last + 1], self.scores.tolist(), strict=True):
            if start < end:
                yield start, end - 1, score

    @property
    def first(self) -> int:
        """The first candidate."""
        return int(self.starts[0])

    @property
    def n_candidates(self) -> int:
        """How many integers there are to choose from, up to 2**64."""
        return self.last - self.first + 1


def _vector(values: Any, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Integers as a contiguous, aligned, read-only vector of one type, exactly."""
    limits = np.iinfo(dtype)
    accepted = f"{name} must be a vector of integers from {limits.min} to {limits.max}"
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill in the masked values first")
    if not isinstance(values, np.ndarray):
        if not is_listed(values):
            raise TypeError(f"{accepted}; got a {type(values).__name__}")
        values = list(values)
        if not all(is_integer(value) for value in values):
            raise TypeError(f"{accepted}; got a {type(values).__name__}")
        for value in values:
            if not limits.min <= value <= limits.max:
                raise ValueError(f"{accepted}; one is beyond")
        values = np.array([int(value) for value in values], dtype=dtype)
    if values.dtype.kind not in "iu":
        raise TypeError(f"{accepted}; got the dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"{accepted}; got the shape {values.shape}")
    if not np.can_cast(values.dtype, dtype) and values.size:
        for value in (int(values.min()), int(values.max())):
            if not limits.min <= value <= limits.max:
                raise ValueError(f"{accepted}; one is beyond")
    vector = np.require(values, dtype, ["C", "A"]).view(np.ndarray)
    vector.flags.writeable = False
    return vector


Groups: TypeAlias = "GroupedScores | Iterable[tuple[int, int, int]]"

WHOLE = 2**384


class GroupedExponentialMechanism(ChoiceByScore["_core.GroupedExponentialRate", Groups, np.uint64]):
    """Choose an integer of a range, the lower its score the likelier, where neighbors share scores in groups.

    The distribution is that of the exponential mechanism on every single integer of the range, P[x] near
    e**(-epsilon score(x) / (2 sensitivity)) up to a factor; it takes as long as there are groups, and there may be
    2**64 candidates. What is drawn, and what `pmf` returns, are exact integers over 2**384, which are epsilon-DP
    themselves.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88. A float is the decimal it prints as.
    sensitivity : int
        The most that any one candidate's score changes between neighbors, from 1 to 2**62 - 1.
    monotone : bool
        True promises that between neighbors all scores change in the same direction, and doubles the rate. They do
        not when a user is *replaced*: the loss would then be up to 2 epsilon.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that the cost is about. None does not say; with
        `monotone` it is "add-remove".

    Notes
    -----
    *Neighbors and sensitivity.* If no candidate's score changes by more than the sensitivity between neighbors,
    the draw is epsilon-DP (delta = 0) for a user. The groups only write the scores down: they may be cut differently
    for every dataset, as long as the range, from the first to the last candidate, is public. The proof covers every
    rounding, for up to 2**64 candidates: docs/proofs/exponential_mechanism.md. Replacing g users costs g epsilon.

    *Budget.* All of epsilon is spent on one draw; n draws cost n epsilon. `pmf` and `group_probabilities` are for
    audits: showing them for private data is not private.

    *Utility.* As for `ExponentialMechanism`, with 128 bits in place of 64.

    *Time.* For arrays of uint64 and int64 in a `GroupedScores`, the instructions of a draw and the addresses that they
    touch depend on the number of groups and draws and on the parameters, not on starts, scores, random bits or
    the result. So the *number* of groups must be public: fill up with empty groups. Python's int for a single
    result, and triples in place of a `GroupedScores`, are not constant time.

    References
    ----------
    McSherry, Talwar (FOCS 2007).

    Examples
    --------
    >>> groups = GroupedScores([0, 1000, 1001], [7, 2, 40], 2**64 - 1)
    >>> choice = GroupedExponentialMechanism(epsilon=5, sensitivity=1)
    >>> 0 <= choice.sample(groups) < 2**64
    True
    >>> [round(float(p), 4) for p in choice.group_probabilities(groups)]
    [0.0037, 0.9963, 0.0]
    >>> choice.pmf([(3, 4, 1), (5, 5, 0)]).probabilities.round(4).tolist()
    [0.0705, 0.0705, 0.859]
    >>> choice.certified_epsilon <= 5
    True
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        sensitivity: float | Fraction | str,
        monotone: bool = False,
        neighbors: Neighbors | None = None,
    ) -> None:
        if parse_positive(sensitivity, "sensitivity").denominator != 1:
            raise ValueError(f"sensitivity must be an integer, as the scores are; got {short_repr(sensitivity)}")
        super().__init__(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, neighbors=neighbors)

    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> _core.GroupedExponentialRate:

        return _core.GroupedExponentialRate(level, sensitivity, monotone)

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss for any number of candidates, all roundings included; at most epsilon."""
        return self._rate.certified_epsilon

    def pmf(self, groups: Groups) -> Pmf:
        """The distribution that is drawn from: outputs first, ..., last and integer weights of total 2**384.

        Not constant time, and not private: for audits.

        Parameters
        ----------
        groups : GroupedScores or iterable of triples
            As for `sample`.

        Raises
        ------
        BudgetError
            For more than 2**22 candidates.
        """
        given = _grouped(groups)
        if given.n_candidates > PMF_CANDIDATES:
            raise BudgetError(
                f"the pmf of {given.n_candidates} candidates would fill gigabytes (limit {PMF_CANDIDATES}); "
                "group_probabilities() takes any number in up to as many groups"
            )
        numerators = self._rate.numerators(given.starts, given.scores, given.last)
        return Pmf(tuple(range(given.first, given.last + 1)), tuple(numerators))

    def group_probabilities(self, groups: Groups) -> tuple[Fraction, ...]:
        """How likely a draw is to come from each group, exactly; 0 for an empty one.

        Not constant time, and not private: for audits.

        Parameters
        ----------
        groups : GroupedScores or iterable of triples
            As for `sample`.

        Raises
        ------
        BudgetError
            For more than 2**22 groups.
        """
        given = _grouped(groups)
        if len(given) > PMF_CANDIDATES:
            raise BudgetError(
                f"the probabilities of {len(given)} groups would fill gigabytes (limit {PMF_CANDIDATES}); audit fewer"
            )
        numerators = self._rate.group_numerators(given.starts, given.scores, given.last)
        return tuple(Fraction(numerator, WHOLE) for numerator in numerators)

    def _draw(self, source: _core.Source, scores: Groups) -> int:
        groups = _grouped(scores)
        return self._rate.sample(groups.starts, groups.scores, groups.last, source)

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...], scores: Groups) -> npt.NDArray[np.uint64]:
        groups = _grouped(scores)
        draws = self._rate.sample_many(groups.starts, groups.scores, groups.last, source, number_of(shape))
        return draws.reshape(shape)


def _grouped(groups: Groups) -> GroupedScores:
    return groups if isinstance(groups, GroupedScores) else GroupedScores.from_triples(groups)
