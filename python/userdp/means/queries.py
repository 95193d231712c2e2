"""Adaptive questions about the same users, answered under one account: [LSAKKMS21, Theorem 10]."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.accounting.budget_hook import charges_of, counted_in_rho
from userdp.estimators import fields
from userdp.estimators.base import UserLevelMechanism
from userdp.estimators.fields import estimator
from userdp.estimators.plan import PrivacyRecord, Promise, exact_distribution, listed
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Delta, counted, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import PrivacyBudgetError
from userdp.means.methods import METHODS, NEED_A_PROMISE, Answers, noise_warnings, plan_answers
from userdp.means.problem import Floats, MeanProblem
from userdp.mechanisms.composed import Sampler
from userdp.public_randomness import PublicSeed
from userdp.runtime import Progress, progress_bar
from userdp.users.containers import read_targets
from userdp.users.table import UserTable
from userdp.users.vectors import GivenVectors, aligned

Query: TypeAlias = Callable[..., Any]
"""From one user's rows, and targets where there are some, to a vector."""


class _Rows(NamedTuple):
    """Users' rows, sorted by user."""

    rows: npt.NDArray[Any]
    targets: npt.NDArray[Any] | None
    ends: list[int]


@dataclass(frozen=True)
class QueryPlan(Promise):
    """What a session of questions will draw and cost, from parameters and the number of users only."""

    interactive: ClassVar[bool] = True
    """Other releases may come between its questions, so that a ledger does not take it for one release."""

    answers: Answers  # all of them, planned
    seed: PublicSeed  # of public rotations
    seed_is_fixed: bool  # whether the seed is a parameter, and not fresh

    def outcomes(self) -> Sequence[Hashable]:
        """All transcripts of K answers; a ValueError where they are rotated by a fresh seed."""
        method, number = self.answers.method, self.answers.number
        if method.rotated() and not self.seed_is_fixed:
            raise ValueError(
                "public_seed must be given for an exact distribution: without one, each fit rotates differently"
            )
        return listed(
            lambda: product(method.outcomes(), repeat=number),
            counted((method.n_outcomes(), number)),
            "audit fewer questions, fewer users or a coarser grid",
        )


class QuerySession:
    """Questions about users' rows until the budget is spent: what `WinsorizedQueries.open` returns.

    One question at a time, and none inside of another, which would depend on a user's rows; copies and other processes,
    which would have a budget each, are refused.
    """

    interactive: ClassVar[bool] = True

    def __init__(
        self,
        data: UserTable,
        labeled: bool,
        plan: QueryPlan,
        draw: Sampler,
        record: PrivacyRecord,
        progress: Progress,
    ) -> None:
        order = np.argsort(data.users, kind="stable")
        ends = np.concatenate(([0], np.cumsum(np.bincount(data.users, minlength=data.n_users)))).tolist()
        targets = data.labels[order].astype(np.float64) if labeled else None
        self._data: _Rows | None = _Rows(data.X[order].astype(np.float64), targets, ends)
        self._labeled = labeled
        self._columns = data.n_columns
        self._answers = plan.answers
        self._seed = plan.seed
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
    def noise(self) -> float:
        """Root mean square of the noise in each entry of an answer, from its exact distribution: public."""
        return self._answers.method.accuracy().noise()

    @property
    def worst_error(self) -> float:
        """The same with the most that clipping can move, under what was promised; `noise` where nobody is clipped."""
        return self._answers.method.accuracy().worst()

    @property
    def public_seed(self) -> str:
        """The public seed of the rotations."""
        return self._seed.hex

    def release(self, query: Query) -> Floats:
        """Answer a question: the mean over users of a vector made of each user's records, with noise.

        Parameters
        ----------
        query : callable
            ``query(rows)``, or ``query(rows, targets)`` when `open` got y, with one user's rows of shape (k, columns),
            k >= 1. Returns a vector of shape (d,), or a number for d = 1. See the notes of `WinsorizedQueries`.

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
        """The same while no other question is being asked: one inside of it would depend on a user's records."""
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
        with np.errstate(all="ignore"):
            vectors = self._vectors(data, query)
        outcome = self._answers.draw(vectors, self._seed, index, self._draw)
        return outcome, self._answers.mean(outcome, self._seed, index)

    def _check(self, query: Query) -> None:
        if not callable(query):
            raise TypeError(f"query must be a callable of one user's rows; got {short_repr(query)}")
        zeros = np.zeros((1, self._columns))
        try:
            value = np.asarray(query(zeros, np.zeros(1)) if self._labeled else query(zeros))
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
                    arrays = [aligned(part[start:end]) for part in (data.rows, data.targets) if part is not None]
                    vectors[user] = vector_of(query, arrays, d)
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


def vector_of(query: Query, arrays: Sequence[npt.NDArray[Any]], dimension: int) -> Floats:
    """A user's vector, 0 for whatever goes wrong: an error would tell something about that user's rows."""
    try:
        vector = np.array(query(*arrays), dtype=np.float64)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return np.zeros(dimension)
    if vector.shape not in ((dimension,), () if dimension == 1 else (dimension,)) or not np.all(np.isfinite(vector)):
        return np.zeros(dimension)
    return vector.reshape(dimension)


Analyst: TypeAlias = Callable[[tuple[Floats, ...]], Query]
"""From all answers so far to the next question."""


@estimator
class WinsorizedQueries(UserLevelMechanism[QueryPlan]):
    """Ask up to K questions about the same users, each chosen after the answers before it.

    A question is a function of one user's records that returns a vector; the answer is the mean of these vectors over
    all users, with noise. All answers come out of one budget, which refuses
    the K+1st question.

    Notes
    -----
    *Guarantee.* All answers together are (epsilon, delta)-DP, where neighbors differ in all the records of one user,
    however the questions are chosen. *Proof.* Given what was released before, a question is public, and each user's
    vector is a function of that user's records. One mean of vectors spends a K-th of mu^2, rho or (for delta = 0)
    epsilon, which add up over adaptive releases. See docs/proofs/adaptive_queries.md. LSAKKMS21's own accounts are
    nested: 2 K D mechanisms within K within one, which costs a factor of more than 50 in noise at K = 100, d = 8.

    *Questions* are called once for every user with records, with a copy of that user's rows only, in their order, as
    doubles whatever the type of X is. One that raises an error, or returns another shape or numbers that are not
    finite, on a user's rows gives the vector 0 for that user. Whether it works at all shows on a public row of zeros,
    on which it is tried first. **A question must
    not keep anything from one user to the next**, nor look at other users' data, the clock or anything that is not
    public: then a user's vector would not be a function of that user's rows. What it prints, and how long it takes, is
    not protected.

    References
    ----------
    [LSAKKMS21, Theorem 10]. [LSAKKMS21, Definition 3].

    Examples
    --------
    The mean, and then the mean square distance from it, of 8000 users' measurements:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(8000), 9)
    >>> heights = rng.normal(0.3, 0.2, size=(72_000, 1))
    >>> about = WinsorizedQueries(epsilon=1, delta=1e-6, n_queries=2, dimension=1, max_norm=1, m=9)
    >>> with about.open(heights, groups=users) as session:
    ...     mean = session.release(lambda rows: rows.mean(axis=0))
    ...     variance = session.release(lambda rows: ((rows - mean) ** 2).mean(axis=0))
    >>> bool(abs(mean[0] - 0.3) < 0.02), bool(abs(variance[0] - 0.04) < 0.02), session.remaining
    (True, True, 0)
    """

    caps_rows: ClassVar[bool] = False
    without_rows: ClassVar[str] = "Users without rows count with a vector of zeros."
    released: ClassVar[tuple[str, ...]] = ("answers",)

    delta: Delta = fields.delta(
        default=0, doc="In [0, 1); 0 for pure differential privacy, whose noise grows with K and not with its root."
    )
    n_queries: int = fields.count(default=1, doc="K >= 1.")
    dimension: int = fields.count(default=1, doc="d >= 1, the length of all answers.")
    max_norm: float = fields.positive_number(
        doc="Vectors that are longer in L2 are scaled to this norm, by the method. Public."
    )
    user_std: float | None = fields.positive_number(
        default=None,
        doc="A promise, for all questions: the root mean square L2 distance of users' vectors from their mean is at"
        " most this. Users who are farther away may be clipped. By default nobody is clipped within max_norm.",
    )
    method: str = fields.choice(METHODS, default="auto", doc="As in `WinsorizedMean`, the same for all answers.")
    beta: float = fields.open_unit(default=0.01, doc="How likely a range may be missed, in any of the answers.")
    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        default=None,
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="For public rotations; None draws a fresh one in `open`.",
    )

    def open(self, X: Any, y: Any = None, groups: Any = None, *, progress: Progress = None) -> QuerySession:
        """Open a session of questions about users' records, and charge for all of its answers.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, columns)
        y : array-like of numbers with shape (rows,), optional
            Given to questions beside the rows.
        groups : array-like with shape (rows,)
            The user id of every row.
        progress : bool, callable or None
            Given how many users a question has been asked of, and how many there are: both are public.

        Returns
        -------
        QuerySession
            Use it in a ``with`` statement, or close it: then the data are dropped.

        Raises
        ------
        TypeError, ValueError
            For bad parameters and shapes, never for what is in a record, unless on_invalid="raise".

        Warns
        -----
        UserWarning
            When the number of users is too small for the method, with the number that it needs.
        """
        _, table, plan, source = self._begun(X, y, groups)

        def drawn(mechanism: Any, /, *arguments: Any) -> Any:
            return mechanism._draw(source, *arguments)

        record = plan.charge(charges_of(self))
        return QuerySession(table, y is not None, plan, drawn, record, progress)

    def output_distribution(self, X: Any, y: Any = None, *, groups: Any = None, analyst: Analyst | None = None) -> Pmf:
        """The exact pmf of all that is drawn when an analyst asks all K questions. **Not private**: for audits.

        Parameters
        ----------
        X, y, groups
            As for `open`.
        analyst : callable
            From the tuple of the answers so far to the next question.

        Returns
        -------
        Pmf
            Over transcripts of integers, of which the answers are functions; it comes from what `release` runs.

        Raises
        ------
        BudgetError
            When there are too many outcomes, or too many paths to them.
        """
        if not callable(analyst):
            raise TypeError(f"analyst must be a callable from answers to the next question; got {short_repr(analyst)}")
        _, table, plan = self._prepared(X, y, groups)
        outcomes, record = plan.outcomes(), plan.charge(())

        def interaction(draw: Sampler) -> Hashable:
            session = QuerySession(table, y is not None, plan, draw, record, False)
            released: list[Floats] = []
            transcript: list[Hashable] = []
            while session.remaining:
                outcome, answer = session._answer(analyst(tuple(released)))
                transcript.append(outcome)
                released.append(answer)
            return tuple(transcript)

        return exact_distribution(lambda _: interaction, outcomes, table)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method in NEED_A_PROMISE and self.user_std is None:
            raise TypeError(f"method={self.method!r} clips users, and needs a promise of how near they are: user_std")

    def _plan(self, n_users: int, n_features: int) -> QueryPlan:
        answers = plan_answers(self.method, self._problem(n_users), int(self.n_queries))
        seed = PublicSeed.random() if self.public_seed is None else PublicSeed(self.public_seed)
        fixed = self.public_seed is not None
        noise = math.sqrt(int(self.dimension)) * answers.method.accuracy().noise() / float(self.max_norm)
        few = noise_warnings(n_users, self.epsilon, noise, "max_norm")
        return QueryPlan(answers.budget, answers, seed, fixed, warnings=(*answers.method.warnings(), *few))

    def _problem(self, n_users: int) -> MeanProblem:
        max_norm = float(self.max_norm)
        return MeanProblem(
            n_users=n_users,
            dimension=int(self.dimension),
            max_norm=max_norm,
            norm="l2",
            concentration=None if self.user_std is None else float(self.user_std),
            promise="none" if self.user_std is None else "at most",
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta) / int(self.n_queries),
            in_rho=counted_in_rho(self),
        )

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        if y is None:
            return np.zeros(n_rows)
        numbers = read_targets(y, n_rows)
        if self.on_invalid == "raise" and not np.all(np.isfinite(numbers)):
            raise ValueError("y has entries that are no finite numbers")
        return numbers
