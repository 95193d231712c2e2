"""The exponential mechanism on sums of per-user integer scores, as a finite algorithm."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms.finite import Dataset, Form, SymmetricAlgorithm, User, integer_of
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import Epsilon, parse_level, short_repr
from userdp.exact.pmf import Pmf

MAX_TOTAL = 2**61


class SummedScoreEM(SymmetricAlgorithm):
    """The exponential mechanism on sums of per-user integer scores: the lowest total is the best.

    A subclass that overrides ``pmf``, ``score_table``, ``scores_of`` or ``core`` is audited like any other algorithm.

    Parameters
    ----------
    outputs : iterable of hashable
        The k distinct candidates, at most 2**24.
    scores : callable
        ``user -> k integers``: what each candidate costs this user; lower is better (errors, not hits). Every integer
        is clamped to [0, sensitivity].
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, 2**-35 < epsilon < 88, taken exactly.
    sensitivity : int
        The public range of one user's scores, 1 <= sensitivity < 2**61.
    name : str, optional
        For reports.

    Attributes
    ----------
    epsilon : PrivacyLevel
        As given, exactly.
    sensitivity : int

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of one user's whole data (and so for the replacement of one
    example), with the number of users public: user-level DP at all of epsilon, no budget is split. *Proof.* Scores are
    clamped to [0, sensitivity], so replacing one user changes no total by more than `sensitivity`, whatever ``scores``
    returns. The integer weights 2**(-rho * gap), with rho = epsilon / (2 * sensitivity * ln 2) rounded down after
    reserving 2**-36 of epsilon for all other roundings, then have ratios within e**epsilon: docs/proofs/
    exponential_mechanism.md. The ideal weights are those of [GKKMMZ23, Theorem 9] of Ghazi, Kamath, Kumar, Manurangsi,
    Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User" (NeurIPS 2023). An exception from
    ``scores`` is an output that this proof does not cover: make it total.

    Examples
    --------
    Three users vote against the candidates they dislike:

    >>> vote = SummedScoreEM(
    ...     outputs=("tea", "coffee"), scores=lambda user: user[0], epsilon=1, sensitivity=1
    ... )
    >>> pmf = vote.pmf((((0, 1),), ((0, 1),), ((1, 0),)))
    >>> pmf.outputs, pmf.total == 2**128
    (('tea', 'coffee'), True)
    >>> pmf.probabilities.round(4)
    array([0.6225, 0.3775])
    """

    _form: ClassVar[Form] = Form("score", ("pmf", "score_table", "scores_of", "core"))

    def __init__(
        self,
        outputs: Iterable[Hashable],
        scores: Callable[[User], Sequence[int] | npt.NDArray[np.integer[Any]]],
        *,
        epsilon: Epsilon,
        sensitivity: int,
        name: str | None = None,
    ) -> None:
        label = name or getattr(scores, "__name__", "score selection")
        super().__init__(outputs, self.pmf, name=label)
        self.__doc__ = getattr(scores, "__doc__", None)
        self.scores = scores
        self.epsilon = parse_level(epsilon)
        self.sensitivity = integer_of(sensitivity, "sensitivity")
        if not 1 <= self.sensitivity < MAX_TOTAL:
            raise ValueError(f"sensitivity must be an integer from 1 to 2**61 - 1; got {short_repr(sensitivity)}")
        self._selection: _core.ScoreSelection | None = None
        self.core()

    def __getstate__(self) -> dict[str, Any]:
        # The compiled core's object is made again where it is needed.
        return self.__dict__ | {"_selection": None}

    def core(self) -> _core.ScoreSelection:
        """The mechanism in the compiled core."""
        if self._selection is None:
            self._selection = _core.ScoreSelection(core_level(self.epsilon), self.sensitivity)
        return self._selection

    def scores_of(self, user: User) -> npt.NDArray[np.int64]:
        """The user's scores, clamped to [0, sensitivity], shape (k,).

        Raises
        ------
        RuntimeError
            Naming the user, from whatever ``scores`` raised.
        """
        try:
            returned = self.scores(user)
        except Exception as error:
            raise RuntimeError(
                f"scores raised {type(error).__name__} ({error}) on the user {short_repr(user)}"
            ) from error
        where = f"scores of the user {short_repr(user)}"
        if isinstance(returned, np.ndarray):
            if returned.dtype.kind not in "iub" or returned.ndim != 1:
                raise TypeError(f"{where} must be a vector of integers; got {short_repr(returned)}")
            values = returned.tolist()
        elif isinstance(returned, (str, bytes, set, frozenset, dict)) or not isinstance(returned, Iterable):
            raise TypeError(f"{where} must be a sequence of integers; got {short_repr(returned)}")
        else:
            values = [integer_of(value, where) for value in returned]
        if len(values) != len(self.outputs):
            raise ValueError(f"{where} are {len(values)} integers for {len(self.outputs)} outputs")
        return np.array([min(max(int(value), 0), self.sensitivity) for value in values], dtype=np.int64)

    def score_table(self, dataset: Dataset) -> npt.NDArray[np.int64]:
        """The clamped scores of every user, shape (n, k)."""
        if len(dataset) * self.sensitivity > MAX_TOTAL:
            raise ValueError(
                f"{len(dataset)} users with sensitivity {self.sensitivity} may have totals beyond 2**61; "
                "use coarser scores"
            )
        table = np.zeros((len(dataset), len(self.outputs)), dtype=np.int64)
        for row, user in enumerate(dataset):
            table[row] = self.scores_of(user)
        return table

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The exact distribution of the output on a dataset, a `Pmf` with total 2**128."""
        weights, _ = self.core().pmf(self.score_table(dataset).sum(axis=0))
        return Pmf(self.outputs, tuple(weights))
