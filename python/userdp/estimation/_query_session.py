"""A session of questions about people's rows, until the budget is spent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp._numbers import shown
from userdp._progress import Progress, progress_bar
from userdp._vectors import GivenVectors
from userdp.estimation._answers import Answers
from userdp.estimation._mean_method import Floats
from userdp.exceptions import PrivacyBudgetError
from userdp.learners._contributions import UserData
from userdp.learners._privacy import PrivacyRecord
from userdp.learners._private_values import silence
from userdp.learners._program import Draw
from userdp.stability import PublicSeed

__all__ = ["Query", "QuerySession"]

Query: TypeAlias = Callable[..., Any]
"""Of one user's rows, and targets where there are some: a vector."""


class _Rows(NamedTuple):
    """People's rows, sorted by user."""

    rows: npt.NDArray[Any]
    targets: npt.NDArray[Any] | None
    ends: list[int]


class QuerySession:
    """Questions about people's rows until the budget is spent: what `WinsorizedQueries.open` returns.

    One question at a time, and none inside of another, which would depend on a user's rows; copies and other processes,
    which would have a budget each, are refused.
    """

    def __init__(
        self,
        data: UserData,
        labelled: bool,
        answers: Answers,
        seed: PublicSeed,
        draw: Draw,
        record: PrivacyRecord,
        progress: Progress,
    ) -> None:
        order = np.argsort(data.users, kind="stable")
        ends = np.concatenate(([0], np.cumsum(np.bincount(data.users, minlength=data.n_users)))).tolist()
        self._data: _Rows | None = _Rows(data.X[order], data.labels[order] if labelled else None, ends)
        self._labelled = labelled
        self._columns = data.n_columns
        self._answers = answers
        self._seed = seed
        self._draw = draw
        self._record = record
        self._progress = progress
        self._asked = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def remaining(self) -> int:
        """How many questions may still be asked."""
        return self._answers.number - self._asked

    @property
    def privacy_(self) -> PrivacyRecord:
        """The guarantee of all answers together, those that are not asked for included."""
        return self._record

    @property
    def predicted_error(self) -> float:
        """Root mean square of the L2 distance of an answer from the mean of the users' vectors, by noise: public."""
        return self._answers.method.predicted_error()

    @property
    def public_seed(self) -> str:
        """The public seed of the rotations."""
        return self._seed.hex

    def ask(self, query: Query) -> Floats:
        """The mean over users of a vector made of each user's rows, with noise.

        Parameters
        ----------
        query : callable
            ``query(rows)``, or ``query(rows, targets)`` when `open` got y, with one user's rows of shape (k, columns),
            k >= 1: a vector of shape (d,), or a number for d = 1. What the class says about questions holds.

        Returns
        -------
        ndarray of float64 with shape (d,)

        Raises
        ------
        PrivacyBudgetError
            When all questions have been asked.
        TypeError, ValueError
            For a query that is not callable, or that fails on a public row of zeros; the budget is then not touched.
        RuntimeError
            After `close`, in another process than the one that opened the session, and while another question is
            being asked.
        """
        return self._answer(query)[1]

    def _answer(self, query: Query) -> tuple[Hashable, Floats]:
        """What is drawn, and the answer that it stands for."""
        if os.getpid() != self._process:
            raise RuntimeError("the session belongs to the process that opened it: a second one would have its budget")
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("a question is being asked: others come after it, and questions ask none themselves")
        try:
            return self._answer_alone(query)
        finally:
            self._lock.release()

    def _answer_alone(self, query: Query) -> tuple[Hashable, Floats]:
        """The same while no other question is being asked: one inside of it would depend on a user's rows."""
        data = self._data
        if data is None:
            raise RuntimeError("the session is closed, and its data are gone")
        if not self.remaining:
            raise PrivacyBudgetError(
                f"all {self._answers.number} questions have been asked, and the budget is spent; a further one needs "
                "its own share: plan it with a larger n_queries"
            )
        self._check(query)
        # Whatever happens from here on, this share of the budget is gone.
        index, self._asked = self._asked, self._asked + 1
        with silence():
            vectors = self._vectors(data, query)
        outcome = self._answers.draw(vectors, self._seed, index, self._draw)
        return outcome, self._answers.mean(outcome, self._seed, index)

    def _check(self, query: Query) -> None:
        if not callable(query):
            raise TypeError(f"query must be a callable of one user's rows; got {shown(query)}")
        zeros = np.zeros((1, self._columns))
        try:
            value = np.asarray(query(zeros, np.zeros(1)) if self._labelled else query(zeros))
            if value.dtype.kind not in "biuf":
                raise TypeError(f"an answer is made of real numbers, not of {value.dtype}")
            got = value.shape
        except Exception as error:
            raise ValueError(f"query failed on a public row of {self._columns} zeros: {error!r}") from error
        d = self._answers.problem.dimension
        if got != (d,) and not (d == 1 and got == ()):
            raise ValueError(f"query must return a vector of shape ({d},); got shape {got} for a public row of zeros")

    def _vectors(self, data: _Rows, query: Query) -> GivenVectors:
        n_users, d = len(data.ends) - 1, self._answers.problem.dimension
        vectors, present = np.zeros((n_users, d)), np.zeros(n_users, dtype=np.bool_)
        with progress_bar(self._progress, "question") as show:
            for user, (start, end) in enumerate(zip(data.ends, data.ends[1:], strict=False)):
                present[user] = start < end
                if present[user]:
                    given = [data.rows[start:end].astype(np.float64, order="C")]
                    if data.targets is not None:
                        given.append(data.targets[start:end].astype(np.float64))
                    vectors[user] = vector_of(query, given, d)
                show(user + 1, n_users)
        return GivenVectors(vectors, present)

    def close(self) -> None:
        """Drop the data. No more questions can be asked."""
        self._data = None

    def __enter__(self) -> QuerySession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a QuerySession is not copied: each copy would have the whole budget")

    def __repr__(self) -> str:
        closed = ", closed" if self._data is None else ""
        return f"<QuerySession: {self.remaining} of {self._answers.number} questions left{closed}>"


def vector_of(query: Query, given: Sequence[npt.NDArray[Any]], dimension: int) -> Floats:
    """A user's vector, 0 for whatever goes wrong: an error would tell something about that user's rows."""
    try:
        vector = np.array(query(*given), dtype=np.float64)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return np.zeros(dimension)
    if vector.shape not in ((dimension,), () if dimension == 1 else (dimension,)) or not np.all(np.isfinite(vector)):
        return np.zeros(dimension)
    return vector.reshape(dimension)
