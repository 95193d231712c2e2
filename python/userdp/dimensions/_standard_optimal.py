"""The standard optimal algorithm, and the lists of all that it may end with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp._progress import Progress, progress_bar
from userdp.dimensions._matrix import Matrix, budget_of, matrix_of
from userdp.exceptions import BudgetError

__all__ = ["ListLearner", "LittlestoneListLearner", "StandardOptimalAlgorithm", "VersionSpaceListLearner"]

MAX_LIST_SIZE = 10**6


@runtime_checkable
class ListLearner(Protocol):
    """A learner that gives a list of hypotheses instead of one.

    Attributes
    ----------
    n_points : int
        The number of points, 0, ..., n_points - 1.
    max_list_size : int
        No list is longer. Public.
    """

    n_points: int
    max_list_size: int

    def lists(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> Sequence[bytes]:
        """The hypotheses for a sample, each one byte (0 or 1) for each point, in increasing order; perhaps none."""


def _sample(points: Any, labels: Any, n_points: int) -> list[tuple[int, bool]]:
    """Read a sample.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    columns, bits = np.asarray(points), np.asarray(labels)
    for name, values in (("points", columns), ("labels", bits)):
        if values.ndim != 1:
            raise ValueError(f"{name} must have one axis; got the shape {values.shape}")
    if len(columns) != len(bits):
        raise ValueError(f"points and labels must have one length; got {len(columns)} and {len(bits)}")
    if not len(columns):
        return []
    if columns.dtype.kind not in "iu":
        raise TypeError(f"points must be ints; got dtype {columns.dtype}")
    if bits.dtype.kind not in "biu":
        raise TypeError(f"labels must be 0 and 1, or bools; got dtype {bits.dtype}")
    if columns.min() < 0 or columns.max() >= n_points:
        raise ValueError(f"points must be in 0, ..., {n_points - 1}")
    if bits.min() < 0 or bits.max() > 1:
        raise ValueError("labels must be 0 and 1")
    return list(zip(columns.tolist(), bits.astype(bool).tolist(), strict=True))


class StandardOptimalAlgorithm:
    """The online learner with the fewest mistakes: it predicts the label that leaves the larger Littlestone dimension.

    On labels of any one concept of the class it makes at most LDim mistakes, whatever the points and their order, and
    after LDim mistakes it predicts this concept everywhere.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat.
    budget : int, optional
        The most version spaces to look at for the dimension of the class, by default 10**7.
    progress : bool, callable or None
        See `littlestone_dimension`.

    Attributes
    ----------
    n_points : int
    littlestone_dimension : int

    Raises
    ------
    TypeError, ValueError, BudgetError
        As of `littlestone_dimension`.

    Notes
    -----
    A version space V is what is left of the class when some points are labelled. The prediction at x is 1 when LDim of
    the part of V labelled 1 is larger than that of the part labelled 0, where the dimension of nothing is -1; ties are
    0. An example that nothing in V explains leaves the last predictions as they are, but for the label at its own
    point, to the end of the sample (a sample that no concept explains). Dimensions of version spaces are remembered
    between calls: they are facts about the matrix, so that predictions depend on the sample alone.

    Source: Littlestone, "Learning Quickly When Irrelevant Attributes Abound: A New Linear-Threshold Algorithm" (Machine
    Learning 2, 1988); docs/proofs/dimensions.md.

    Examples
    --------
    >>> import numpy as np
    >>> learner = StandardOptimalAlgorithm(np.tri(8, 7, -1))  # label 1 below the threshold
    >>> learner.littlestone_dimension
    3
    >>> learner.predict([], []).tolist()
    [1, 1, 1, 0, 0, 0, 0]
    >>> learner.predict([3, 5], [1, 0]).tolist()
    [1, 1, 1, 1, 0, 0, 0]
    >>> learner.mistakes([3, 5, 4], [1, 0, 1])
    2
    """

    def __init__(self, matrix: Matrix, *, budget: int | None = None, progress: Progress = None) -> None:
        table = matrix_of(matrix)
        self.n_points: int = table.shape[1]
        self._spaces = _core.VersionSpaces(table)
        with progress_bar(progress, "Littlestone dimension") as report:
            self.littlestone_dimension: int = self._spaces.littlestone(budget_of(budget), report)

    def predict(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """What is predicted everywhere after a sample.

        Parameters
        ----------
        points : array-like of int with shape (examples,)
            Columns of the matrix, in the order of the sample.
        labels : array-like of 0 and 1 with shape (examples,)

        Returns
        -------
        ndarray of uint8 with shape (n_points,)

        Raises
        ------
        TypeError, ValueError
            Naming the argument.
        """
        row: npt.NDArray[np.uint8] = np.frombuffer(self.hypothesis(points, labels), dtype=np.uint8)
        return row.copy()

    def hypothesis(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> bytes:
        """The same as `predict` in canonical bytes: one byte, 0 or 1, for each point."""
        return self._spaces.standard_optimal(_sample(points, labels, self.n_points))[0]

    def mistakes(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> int:
        """On how many examples of a sample the prediction made just before was wrong.

        Parameters
        ----------
        points, labels
            As of `predict`.

        Returns
        -------
        int
            At most `littlestone_dimension` when some concept explains the sample.

        Raises
        ------
        TypeError, ValueError
            Naming the argument.
        """
        return self._spaces.standard_optimal(_sample(points, labels, self.n_points))[1]


class LittlestoneListLearner:
    """Lists of what the standard optimal algorithm may end with, among which is every concept that explains the sample.

    The list has the predictions on the version space of the sample, and on each version space that mistakes of the
    algorithm lead to from there. Whatever sample the labels of a concept give, this concept is in the list: the learner
    is list-globally stable with parameter 1 (GKM21, Definition 16).

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat.
    budget : int, optional
        As of `StandardOptimalAlgorithm`.

    Attributes
    ----------
    n_points : int
    littlestone_dimension : int
    max_list_size : int
        The sum of p**i for i = 0, ..., LDim, where p is the number of points without those that are constant or repeat
        or negate another.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    BudgetError
        When `max_list_size` is above a million. `VersionSpaceListLearner` has lists of at most as many hypotheses as
        the class.

    Notes
    -----
    A mistake lowers the dimension of the version space, so at most LDim of them follow each other, each at one of p
    points: this bounds the list. Following the mistakes on a concept c ends at {c} or at predictions equal to c:
    docs/proofs/dimensions.md. On a finite class the lists of `VersionSpaceListLearner` are mostly shorter; the two
    differ in what they list beside the target, hypotheses outside the class here.

    Examples
    --------
    >>> learner = LittlestoneListLearner([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> [list(row) for row in learner.lists([0], [1])]
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> learner.max_list_size
    13
    """

    def __init__(self, matrix: Matrix, *, budget: int | None = None) -> None:
        table = matrix_of(matrix)
        self.n_points: int = table.shape[1]
        self._spaces = _core.VersionSpaces(table)
        self.littlestone_dimension: int = self._spaces.littlestone(budget_of(budget))
        points = self._spaces.reduced_shape[1]
        self.max_list_size: int = sum(points**mistakes for mistakes in range(self.littlestone_dimension + 1))
        if self.max_list_size > MAX_LIST_SIZE:
            raise BudgetError(
                f"lists for {points} points and a Littlestone dimension of {self.littlestone_dimension} may have "
                f"{self.max_list_size} hypotheses, and at most a million are listed; use VersionSpaceListLearner"
            )

    def lists(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> Sequence[bytes]:
        """The list for a sample.

        Parameters
        ----------
        points : array-like of int with shape (examples,)
            Columns of the matrix. The order does not matter.
        labels : array-like of 0 and 1 with shape (examples,)

        Returns
        -------
        sequence of bytes
            Each one byte, 0 or 1, for each point; in increasing order, without repetition. Empty when no concept
            explains the sample.

        Raises
        ------
        TypeError, ValueError
            Naming the argument.
        """
        return self._spaces.explanations(_sample(points, labels, self.n_points))


class VersionSpaceListLearner:
    """Lists of all concepts that explain a sample.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat, and are listed once.

    Attributes
    ----------
    n_points : int
    max_list_size : int
        The number of distinct concepts.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    The target is in every list: list-globally stable with parameter 1 (GKM21, Definition 16), with lists of at most the
    size of the class.

    Examples
    --------
    >>> learner = VersionSpaceListLearner([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> [list(row) for row in learner.lists([1], [0])]
    [[0, 0, 0], [1, 0, 0]]
    """

    def __init__(self, matrix: Matrix) -> None:
        self._concepts = np.unique(matrix_of(matrix), axis=0)
        self.n_points: int = self._concepts.shape[1]
        self.max_list_size: int = len(self._concepts)

    def lists(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> Sequence[bytes]:
        """The list for a sample; see `LittlestoneListLearner.lists`."""
        sample = dict.fromkeys(_sample(points, labels, self.n_points))
        explains = np.ones(len(self._concepts), dtype=np.bool_)
        for point, label in sample:
            explains &= self._concepts[:, point] == label
        return [row.tobytes() for row in self._concepts[explains]]
