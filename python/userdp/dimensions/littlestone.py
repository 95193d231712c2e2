"""The Littlestone dimension, with a tree to show for it."""

from __future__ import annotations

from dataclasses import dataclass

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
