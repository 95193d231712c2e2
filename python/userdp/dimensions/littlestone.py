"""The Littlestone dimension, with a tree to show for it, and the standard optimal algorithm that attains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.dimensions.matrix import Matrix, matrix_of, spaces_budget, spaces_of
from userdp.exact.numbers import is_integer
from userdp.runtime import Progress, progress_bar


def littlestone_dimension(matrix: Matrix, *, budget: int | None = None, progress: Progress = None) -> int:
    """The Littlestone dimension of a finite class: the mistakes that no deterministic online learner can avoid.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat. A class of `userdp.learners` on a finite domain stands for its matrix.
    budget : int, optional
        The most version spaces to look at. Each of them is remembered, in about 100 bytes and a bit for every concept;
        by default as many as take a gigabyte, which are 10**7 for small classes.
    progress : bool, callable or None
        A callable gets (version spaces looked at, budget); see the README.

    Returns
    -------
    int
        From the VC dimension to log2 of the number of distinct concepts.

    Raises
    ------
    BudgetError
        When the budget does not suffice. The message has bounds that are proved by then.

    See Also
    --------
    mistake_tree : a tree that shows that it is not smaller.
    StandardOptimalAlgorithm : the learner that shows that it is not larger.

    Notes
    -----
    The dimension of one concept is 0, and otherwise the largest 1 + min(LDim(V0), LDim(V1)) over the points, where V0
    and V1 are the concepts labeled 0 and 1 there. What is decided about a set of concepts is remembered, and points
    that leave fewer than 2**(k - 1) concepts on one side are not tried for a depth of k: docs/proofs/dimensions.md. The
    time grows with the number of version spaces, in the worst case exponentially.

    Examples
    --------
    >>> import numpy as np
    >>> littlestone_dimension(np.tri(8, 7, -1))  # the thresholds on 7 points
    3
    """
    spaces = spaces_of(matrix)
    with progress_bar(progress, "Littlestone dimension") as report:
        return spaces.littlestone(spaces_budget(budget, spaces), report)


@dataclass(frozen=True)
class ShatteredTree:
    """A complete binary tree of points of which a class realizes every path: so deep is its LDim at least.

    Attributes
    ----------
    points : tuple of int
        A column of the matrix for each of the 2**depth - 1 inner nodes, in heap order: the node i has the children
        2i + 1, for the label 0, and 2i + 2, for the label 1.
    concepts : tuple of int
        For each of the 2**depth leaves, left to right, a row of the matrix with the labels on the path to it.
    """

    points: tuple[int, ...]
    concepts: tuple[int, ...]

    @property
    def depth(self) -> int:
        """The number of points on every path."""
        return len(self.concepts).bit_length() - 1

    def verify(self, matrix: Matrix) -> bool:
        """Whether the rows of a matrix have the labels that the tree says: one look at each node of each path.

        Parameters
        ----------
        matrix : array-like with shape (concepts, points), or ConceptClass
            Any class; usually the one that the tree was made from.

        Returns
        -------
        bool
            True means that the Littlestone dimension of `matrix` is at least `depth`. Nothing of the search is used.
        """
        table = matrix_of(matrix)
        leaves, inner = len(self.concepts), len(self.points)
        if leaves != inner + 1 or leaves != 2**self.depth:
            return False
        if not all(is_integer(row) and 0 <= row < table.shape[0] for row in self.concepts):
            return False
        if not all(is_integer(column) and 0 <= column < table.shape[1] for column in self.points):
            return False
        for leaf, row in enumerate(self.concepts):
            node = leaf + inner
            while node:
                parent = (node - 1) // 2
                if table[row, self.points[parent]] != (node == 2 * parent + 2):
                    return False
                node = parent
        return True


def mistake_tree(matrix: Matrix, *, budget: int | None = None, progress: Progress = None) -> ShatteredTree:
    """A deepest tree that a finite class shatters: asked along it, any online learner makes a mistake at every point.

    Parameters
    ----------
    matrix, budget, progress
        As of `littlestone_dimension`.

    Returns
    -------
    ShatteredTree
        Its `depth` is the Littlestone dimension.

    Examples
    --------
    >>> tree = mistake_tree([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> tree.points, tree.concepts
    ((1, 0, 2), (0, 1, 2, 3))
    >>> tree.verify([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    True
    """
    spaces = spaces_of(matrix)
    with progress_bar(progress, "mistake tree") as report:
        points, concepts = spaces.mistake_tree(spaces_budget(budget, spaces), report)
    return ShatteredTree(tuple(points), tuple(concepts))


def _sample(points: Any, labels: Any, n_points: int) -> list[tuple[int, bool]]:
    """Read a sample."""
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
        The most version spaces to look at for the dimension of the class; see `littlestone_dimension`.
    progress : bool, callable or None
        See `littlestone_dimension`.

    Attributes
    ----------
    n_points : int
    littlestone_dimension : int

    Notes
    -----
    A version space V is what is left of the class when some points are labeled. The prediction at x is 1 when LDim of
    the part of V labeled 1 is larger than that of the part labeled 0, where the dimension of nothing is -1; ties are
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
        self._table = matrix_of(matrix)
        self.n_points: int = self._table.shape[1]
        self._spaces = _core.VersionSpaces(self._table)
        with progress_bar(progress, "Littlestone dimension") as report:
            self.littlestone_dimension: int = self._spaces.littlestone(spaces_budget(budget, self._spaces), report)

    def __repr__(self) -> str:
        concepts, points = self._table.shape
        return f"<StandardOptimalAlgorithm of a {concepts} x {points} matrix>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_spaces"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._spaces = _core.VersionSpaces(self._table)

    @property
    def max_explanations(self) -> int:
        """The most that `explanations` may list: the sum of p**i for i = 0, ..., LDim.

        p is the number of points without those that are constant or repeat another.
        """
        points = self._spaces.distinct_columns
        return sum(points**mistakes for mistakes in range(self.littlestone_dimension + 1))

    def predict(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """What is predicted everywhere after a sample.

        Parameters
        ----------
        points : array-like of int with shape (examples,)
            Columns of the matrix, in the order of the sample.
        labels : array-like of 0 and 1 with shape (examples,)
        """
        return np.array(list(self.hypothesis(points, labels)), dtype=np.uint8)

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
        """
        return self._spaces.standard_optimal(_sample(points, labels, self.n_points))[1]

    def explanations(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> list[bytes]:
        """What may be predicted in the end for a concept that explains a sample, among which is every such concept.

        The predictions on the version space of the sample, and on each version space that mistakes lead to from there.

        Parameters
        ----------
        points, labels
            As of `predict`; the order does not matter.

        Returns
        -------
        list of bytes
            As of `hypothesis`; in increasing order, without repetition, at most `max_explanations`. Empty when no
            concept explains the sample. Hypotheses outside the class may be among them.

        Notes
        -----
        While the predictions differ from a concept, some label of it leads to a version space of smaller dimension that
        still has it; at dimension 0 it is predicted everywhere. docs/proofs/dimensions.md.

        Examples
        --------
        >>> algorithm = StandardOptimalAlgorithm([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
        >>> [list(row) for row in algorithm.explanations([0], [1])]
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        """
        return self._spaces.explanations(_sample(points, labels, self.n_points))
