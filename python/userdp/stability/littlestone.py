"""Learners made from the standard optimal algorithm: lists that hold the target, and the tournament of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import DomainClass
from userdp.dimensions import StandardOptimalAlgorithm
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, check_kind, is_integer, short_repr
from userdp.exceptions import BudgetError
from userdp.public_randomness import PublicSeed
from userdp.stability.learner import Labels, StableLearner
from userdp.stability.lists import ListLearner

MAX_LIST_SIZE = 10**6

COINS = "tournament"
"""The label of the coins in the public seed."""

_Example = tuple[int, int]


def _check_class(hypotheses: Any) -> None:
    check_kind(hypotheses, DomainClass, "hypotheses", "a class on a finite domain, such as FiniteClass")


@saved_as_parameter
class LittlestoneLists(ListLearner):
    """Lists of what the standard optimal algorithm may end with, among which is every concept that explains the sample.

    Parameters
    ----------
    hypotheses : ConceptClass on a finite domain
        The class to be learned: `FiniteClass`, `Thresholds`, ...
    budget : int, optional
        As of `userdp.dimensions.littlestone_dimension`.

    Attributes
    ----------
    littlestone_dimension : int
    list_size : int
        The sum of p**i for i = 0, ..., LDim, p the number of points that are neither constant nor repeat another.

    Raises
    ------
    BudgetError
        When `list_size` is above a million, or the budget does not suffice. `VersionSpace` has lists of at most as many
        hypotheses as the class.

    Notes
    -----
    Whatever sample the labels of a concept give, this concept is on the list: (list_size, 1)-list globally stable with
    error 0. Others on the list may be inaccurate or outside the class: `AccurateLists` drops those that are. On a
    finite class `VersionSpace` serves as well and has shorter lists as a rule; these do not grow with the number of
    concepts. Stands in for [GKM21, Theorem 18], whose construction is not in the paper; docs/proofs/dimensions.md.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.concepts import Thresholds
    >>> learner = LittlestoneLists(Thresholds(3))
    >>> listed = learner.lists(np.array([3]), np.array([1]))
    >>> learner.mistakes(listed, np.array([1, 2, 3]), np.array([0, 0, 1])).tolist()
    [0, 1, 2]
    """

    lists_indices = False

    def __init__(self, hypotheses: DomainClass, *, budget: int | None = None) -> None:
        _check_class(hypotheses)
        self.hypotheses: DomainClass = hypotheses
        self._budget = budget
        self._algorithm = StandardOptimalAlgorithm(hypotheses, budget=budget)
        self.littlestone_dimension: int = self._algorithm.littlestone_dimension
        self.list_size: int = self._algorithm.max_explanations
        if self.list_size > MAX_LIST_SIZE:
            raise BudgetError(
                f"lists for a Littlestone dimension of {self.littlestone_dimension} may have {self.list_size} "
                "hypotheses here, and at most a million are listed; use VersionSpace"
            )

    def _arguments(self) -> dict[str, Any]:
        return {"hypotheses": self.hypotheses, "budget": self._budget}

    def __repr__(self) -> str:
        return f"LittlestoneLists({self.hypotheses!r})"

    def lists(self, points: npt.NDArray[Any], labels: Labels) -> list[bytes]:
        """One byte 0 or 1 for each point; see `ListLearner.lists`."""
        return list(self._algorithm.explanations(points - self.hypotheses.first, labels))


class _NoMoreExamples(Exception):
    """The sample is used up."""


@saved_as_parameter
class TournamentLearner(StableLearner):
    """A globally stable learner: samples compete, and an invented label that divides two of them forces a mistake.

    A research feature. Its stability on a given class is to be measured, by `audit_stability` or `measure_agreement`;
    what is proved for it is doubly exponentially small in the Littlestone dimension.

    Parameters
    ----------
    hypotheses : ConceptClass on a finite domain
        The class to be learned: `FiniteClass`, `Thresholds`, ...
    block_length : int
        How many fresh examples follow each sample before its predictions are compared, at least 1.
    max_examples : int
        No more rows of a user are read.
    default : int
        The index of the hypothesis that is learned when a user's rows do not suffice.
    budget : int, optional
        As of `userdp.dimensions.littlestone_dimension`.

    Attributes
    ----------
    littlestone_dimension : int
    default : bytes
        What that hypothesis says about the points in order, one byte 0 or 1 for each. All items are such tables.

    Notes
    -----
    Sample by sample, mistakes of the standard optimal algorithm are forced until a random number of them is reached;
    some hypothesis then has probability at least 4^-(2^d - 1) / (d + 1) for d = LDim. The tournament, and how long
    blocks have to be for an error of alpha: docs/proofs/dimensions.md.

    All coins are of the public seed, the same for all users, from a generator that is fresh for every user.

    Source: the structure is of Bun, Livni, Moran, "An Equivalence Between Private Classification and Online Prediction"
    (FOCS 2020), used in [GKM21, Theorem 17].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.concepts import Thresholds
    >>> from userdp.public_randomness import PublicSeed
    >>> learner = TournamentLearner(Thresholds(3), block_length=2, max_examples=1000)
    >>> X = np.arange(900)[:, None] % 3 + 1
    >>> item = learner.item(X, (X[:, 0] > 1).astype(np.uint8), PublicSeed("01" * 32))
    >>> learner.predict(item, np.array([[1], [2], [3]])).tolist()
    [False, True, True]
    """

    default: bytes

    def __init__(
        self,
        hypotheses: DomainClass,
        *,
        block_length: int,
        max_examples: int,
        default: int = 0,
        budget: int | None = None,
    ) -> None:
        _check_class(hypotheses)
        self.hypotheses = hypotheses
        self.block_length = check_count(block_length, "block_length")
        self.max_examples = check_count(max_examples, "max_examples")
        if not is_integer(default) or not 0 <= default < hypotheses.size:
            raise ValueError(f"default must be an index in 0, ..., {hypotheses.size - 1}; got {short_repr(default)}")
        self._default, self._budget = int(default), budget
        self._algorithm = StandardOptimalAlgorithm(hypotheses, budget=budget)
        self.littlestone_dimension: int = self._algorithm.littlestone_dimension
        domain = np.arange(hypotheses.first, hypotheses.first + hypotheses.domain_size)
        table = hypotheses.predict(domain, int(default), int(default) + 1)[:, 0]
        self.default = table.astype(np.uint8).tobytes()

    def _arguments(self) -> dict[str, Any]:
        return {
            "hypotheses": self.hypotheses,
            "block_length": self.block_length,
            "max_examples": self.max_examples,
            "default": self._default,
            "budget": self._budget,
        }

    def __repr__(self) -> str:
        sizes = f"block_length={self.block_length}, max_examples={self.max_examples}"
        return f"TournamentLearner({self.hypotheses!r}, {sizes})"

    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> bytes:
        """The hypothesis that one user votes for, one byte 0 or 1 for each point; see `StableLearner.item`."""
        points = self.hypotheses.points(X[: self.max_examples]) - self.hypotheses.first
        sample = list(zip(points.tolist(), labels.tolist(), strict=False))
        run = _Run(self._algorithm, self.block_length, sample, seed.generator(COINS))
        try:
            return run.predictions()
        except _NoMoreExamples:
            return self.default

    def predict(self, item: bytes, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a hypothesis says about rows; see `StableLearner.predict`."""
        return np.frombuffer(item, dtype=np.bool_)[self.hypotheses.points(X) - self.hypotheses.first]


class _Run:
    """One run through one user's sample."""

    def __init__(
        self,
        algorithm: StandardOptimalAlgorithm,
        block_length: int,
        sample: list[_Example],
        coins: np.random.Generator,
    ) -> None:
        self._algorithm = algorithm
        self._block_length = block_length
        self._fresh = iter(sample)
        self._coins = coins

    def predictions(self) -> bytes:
        level = int(self._coins.integers(self._algorithm.littlestone_dimension + 1))
        return self._predicted(self._sample(level) + self._block())

    def _block(self) -> list[_Example]:
        examples = [example for _, example in zip(range(self._block_length), self._fresh, strict=False)]
        if len(examples) < self._block_length:
            raise _NoMoreExamples
        return examples

    def _predicted(self, sample: list[_Example]) -> bytes:
        points, labels = zip(*sample, strict=True)
        return self._algorithm.hypothesis(points, labels)

    def _sample(self, level: int) -> list[_Example]:
        """A draw from D_level."""
        if level == 0:
            return []
        while True:
            rivals = [self._sample(level - 1) + self._block() for _ in range(2)]
            first, second = (self._predicted(rival) for rival in rivals)
            if first != second:
                point = next(x for x in range(self._algorithm.n_points) if first[x] != second[x])
                label = int(self._coins.integers(2))
                return rivals[0 if first[point] != label else 1] + [(point, label)]
