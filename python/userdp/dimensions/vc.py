"""The Vapnik-Chervonenkis dimension and the growth function."""

from __future__ import annotations

from userdp.dimensions.matrix import Matrix, budget_of, spaces_of
from userdp.exact.numbers import check_count
from userdp.runtime import Progress, progress_bar


def vc_dimension(matrix: Matrix, *, budget: int | None = None, progress: Progress = None) -> int:
    """The Vapnik-Chervonenkis dimension of a finite class: how many points it labels in all ways.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat. A class of `userdp.learners` on a finite domain stands for its matrix.
    budget : int, optional
        The most sets of points to look at, by default 10**7.
    progress : bool, callable or None
        A callable gets (sets looked at, budget); see the README.

    Returns
    -------
    int
        From 0 to log2 of the number of distinct concepts.

    Raises
    ------
    BudgetError
        When the budget does not suffice. The message has bounds that are proved by then.

    See Also
    --------
    shattered_points : points that show it.
    littlestone_dimension : never smaller.

    Notes
    -----
    Sets of points are extended one by one. A set is left as soon as some pattern on it occurs too seldom to occur with
    all patterns on the points that are still to come; docs/proofs/dimensions.md.

    References
    ----------
    [LWY24, Definition A.1].

    Examples
    --------
    >>> vc_dimension([[0, 0], [0, 1], [1, 0], [1, 1]])
    2
    >>> vc_dimension([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    1
    """
    return len(shattered_points(matrix, budget=budget, progress=progress))


def shattered_points(matrix: Matrix, *, budget: int | None = None, progress: Progress = None) -> tuple[int, ...]:
    """A largest set of points that a finite class labels in all ways.

    Parameters
    ----------
    matrix, budget, progress
        As of `vc_dimension`.

    Returns
    -------
    tuple of int
        Columns of the matrix, in increasing order, as many as `vc_dimension` says. On them the rows show all 2**k
        patterns, which is quickly checked.

    Examples
    --------
    >>> shattered_points([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]])
    (0, 2)
    """
    spaces = spaces_of(matrix)
    with progress_bar(progress, "VC dimension") as report:
        return tuple(spaces.shattered(budget_of(budget), report))


def growth_function(matrix: Matrix, k: int, *, budget: int | None = None, progress: Progress = None) -> int:
    """The most patterns that a finite class shows on any k points.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        As of `vc_dimension`.
    k : int
        At least 0. A point may count more than once, so that k may be more than there are points.
    budget, progress
        As of `vc_dimension`.

    Returns
    -------
    int
        From 1 (k = 0) to the number of distinct concepts; 2**k as long as k is at most the VC dimension.

    Examples
    --------
    >>> [growth_function([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], k) for k in range(4)]
    [1, 2, 3, 4]
    """
    spaces = spaces_of(matrix)
    # From the number of points on, nothing changes.
    k = min(check_count(k, "k", least=0), spaces.reduced_shape[1])
    with progress_bar(progress, "growth function") as report:
        return spaces.growth(k, budget_of(budget), report)
