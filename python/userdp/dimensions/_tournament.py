"""The tournament learner: one hypothesis that comes out often, whatever the sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from userdp._numbers import positive, shown
from userdp.dimensions._matrix import Matrix
from userdp.dimensions._standard_optimal import StandardOptimalAlgorithm, _sample

__all__ = ["TournamentLearner"]

_Example = tuple[int, bool]


class _NoMoreExamples(Exception):
    """The sample is used up."""


class TournamentLearner:
    """A globally stable learner: samples compete, and an invented label that divides two of them forces a mistake.

    A research feature. Its stability on a given class is to be measured; the guarantee that is proved for it is doubly
    exponentially small in the Littlestone dimension, and so is the number of examples doubly exponentially large.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1; concepts may repeat.
    block_length : int
        How many fresh examples follow each sample before its predictions are compared, at least 1.
    max_examples : int
        No more examples of a sample are read.
    default : array-like of 0 and 1 with shape (n_points,), optional
        What is learned when the examples do not suffice: public, by default all 0.
    budget : int, optional
        As of `StandardOptimalAlgorithm`.

    Attributes
    ----------
    n_points, littlestone_dimension, block_length, max_examples : int
    default : bytes

    Raises
    ------
    TypeError, ValueError, BudgetError
        As of `StandardOptimalAlgorithm`.

    Notes
    -----
    D_0 is the empty sample. For D_k, draw S0 and S1 from D_(k-1) and a block of fresh examples after each, and predict
    by the standard optimal algorithm after either; while the predictions are equal, start again. At the first point
    where they differ toss a coin for a label, and keep the sample and block that predicted the other one, with the
    point and this label: there was a mistake. The learner draws k from 0, ..., LDim evenly, a sample from D_k and one
    more block, and outputs the predictions after them. Some hypothesis has probability at least b_d/(d + 1), where d =
    LDim and b_d = 4^-(2^d - 1), and with blocks of ceil(ln(1/b_d)/alpha) its error is at most alpha:
    docs/proofs/dimensions.md.

    Source: the structure is of Bun, Livni, Moran, "An Equivalence Between Private Classification and Online Prediction"
    (FOCS 2020), used in GKM21, Theorem 17.

    Examples
    --------
    >>> import numpy as np
    >>> learner = TournamentLearner(np.tri(4, 3, -1), block_length=2, max_examples=1000)
    >>> rng = np.random.default_rng(1)
    >>> points = rng.integers(3, size=1000)
    >>> np.frombuffer(learner.learn(points, points < 1, rng), np.uint8).tolist()
    [1, 0, 0]
    """

    def __init__(
        self,
        matrix: Matrix,
        *,
        block_length: int,
        max_examples: int,
        default: npt.ArrayLike | None = None,
        budget: int | None = None,
    ) -> None:
        self.block_length = positive(block_length, "block_length")
        self.max_examples = positive(max_examples, "max_examples")
        self._learner = StandardOptimalAlgorithm(matrix, budget=budget)
        self.n_points: int = self._learner.n_points
        self.littlestone_dimension: int = self._learner.littlestone_dimension
        row = np.zeros(self.n_points, dtype=np.uint8) if default is None else np.asarray(default)
        if row.shape != (self.n_points,) or row.dtype.kind not in "biu" or not np.all((row == 0) | (row == 1)):
            raise ValueError(f"default must be {self.n_points} labels, 0 or 1; got {shown(default)}")
        self.default: bytes = row.astype(np.uint8).tobytes()

    def learn(self, points: npt.ArrayLike, labels: npt.ArrayLike, coins: np.random.Generator) -> bytes:
        """Learn one hypothesis.

        Parameters
        ----------
        points : array-like of int with shape (examples,)
            Columns of the matrix, used in this order.
        labels : array-like of 0 and 1 with shape (examples,)
        coins : numpy.random.Generator
            Public coins; users who share them agree more often. Give every user a generator of its own in the same
            state.

        Returns
        -------
        bytes
            One byte, 0 or 1, for each point; `default` when the examples do not suffice.

        Raises
        ------
        TypeError, ValueError
            Naming the argument.
        """
        if not isinstance(coins, np.random.Generator):
            raise TypeError(f"coins must be a numpy.random.Generator; got {shown(coins)}")
        sample = _sample(points, labels, self.n_points)[: self.max_examples]
        run = _Run(self, sample, coins)
        try:
            return run.predictions(run.tournament(int(coins.integers(self.littlestone_dimension + 1))) + run.block())
        except _NoMoreExamples:
            return self.default

    def __repr__(self) -> str:
        sizes = f"block_length={self.block_length}, max_examples={self.max_examples}"
        return f"<TournamentLearner of {self.n_points} points, {sizes}>"


class _Run:
    """One run through one sample."""

    def __init__(self, learner: TournamentLearner, sample: list[_Example], coins: np.random.Generator) -> None:
        self._learner = learner
        self._fresh = iter(sample)
        self._coins = coins

    def block(self) -> list[_Example]:
        examples = [example for _, example in zip(range(self._learner.block_length), self._fresh, strict=False)]
        if len(examples) < self._learner.block_length:
            raise _NoMoreExamples
        return examples

    def predictions(self, sample: list[_Example]) -> bytes:
        points, labels = zip(*sample, strict=True)
        return self._learner._learner.hypothesis(points, labels)

    def tournament(self, level: int) -> list[_Example]:
        if level == 0:
            return []
        while True:
            rivals = [self.tournament(level - 1) + self.block() for _ in range(2)]
            first, second = (self.predictions(rival) for rival in rivals)
            if first != second:
                point = next(x for x in range(self._learner.n_points) if first[x] != second[x])
                label = bool(self._coins.integers(2))
                return rivals[0 if first[point] != label else 1] + [(point, label)]
