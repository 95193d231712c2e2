"""Adaptive questions about the same people, answered under one account."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.accounting.budget_hook import announce
from userdp.distributions.base import listed
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.privacy import PrivacyRecord, Spending, exact_epsilon
from userdp.exact.numbers import Delta, Epsilon, open_unit_interval, parse_delta, parse_positive, positive, shown
from userdp.exact.pmf import Pmf
from userdp.exceptions import PrivacyBudgetError
from userdp.means.answers import Answers, plan_answers
from userdp.means.methods import METHODS
from userdp.means.plan import Floats, MeanProblem
from userdp.mechanisms.composed import Draw, Program, law_of
from userdp.public_randomness import PublicSeed
from userdp.runtime import Progress, progress_bar, source_of
from userdp.users.contributions import UserData
from userdp.users.sanitize import numbers_of, one_by_one, silence
from userdp.users.vectors import GivenVectors

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


Analyst: TypeAlias = Callable[[tuple[Floats, ...]], Query]
"""From all answers so far to the next question."""


class WinsorizedQueries(UserLevelEstimator):
    """Ask up to K questions about the same people, each chosen after the answers before it.

    A question is a function of one user's rows that returns a vector; the answer is the mean of these vectors over all
    users, with noise that shrinks with how concentrated they are. All answers come out of one budget, which refuses the
    K+1st question.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, of all answers together.
    delta : float, int, Fraction or decimal string
        In [0, 1); 0 for pure differential privacy, whose noise grows with K and not with its root.
    n_queries : int
        K >= 1.
    dimension : int
        d >= 1, the length of all answers.
    bound : float
        Vectors are taken into the ball of this L2 radius, by the method. Public.
    m : int
        How many rows a user is expected to have; public.
    radius : float, optional
        The expected L2 distance of a user's vector from the mean of all users', public. By default bound / sqrt(m).
    method : {"auto", "iterated", "gaussian", "practical", "paper", "laplace"}
        As in `WinsorizedMean`, the same for all answers.
    beta : float in (0, 1)
        How likely a range may be missed, in any of the answers.
    public_seed : PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional
        For public rotations; None draws a fresh one in `open`.
    on_invalid : {"clamp", "raise"}
        What is no number in X and y is NaN for questions, or raises an error when the data are read, which is not
        private.
    require_groups : bool
        False takes every row for a user when `open` gets no groups.
    enrolled : sequence, optional
        The public list of all users. The vector of those without rows is 0.
    random_state : None or int
        None draws from the operating system; an int is for tests and voids privacy.

    Notes
    -----
    *Guarantee.* All answers together are (epsilon, delta)-DP, where neighbours differ in all the rows of one user,
    however the questions are chosen. *Proof.* Given what was released before, a question is public, and each user's
    vector is a function of that user's rows. One mean of vectors is rho / K-zCDP (epsilon / K-DP for delta = 0), which
    adds up over adaptive releases. See docs/proofs/adaptive_queries.md. LSAKKMS21's own accounts are nested: 2 K D
    mechanisms within K within one, which costs a factor of more than 50 in noise at K = 100, d = 8.

    *Questions* are called once for every user with rows, with a copy of that user's rows only, in their order, as
    doubles whatever the type of X is. One that
    raises an error, or returns another shape or numbers that are not finite, on somebody's rows gives the vector 0 for
    that user. Whether it works at all shows on a public row of zeros, on which it is tried first. **A question must
    not keep anything from one user to the next**, nor look at other users' data, the clock or anything that is not
    public: then a user's vector would not be a function of that user's rows. What it prints, and how long it takes, is
    not protected.

    References
    ----------
    LSAKKMS21, Theorem 10.

    Examples
    --------
    The mean, and then the mean square distance from it, of 2000 people's measurements:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(2000), 9)
    >>> heights = rng.normal(0.3, 0.2, size=(18_000, 1))
    >>> about = WinsorizedQueries(epsilon=1, delta=1e-6, n_queries=2, dimension=1, bound=1, m=9)
    >>> with about.open(heights, groups=people) as session:
    ...     mean = session.ask(lambda rows: rows.mean(axis=0))
    ...     variance = session.ask(lambda rows: ((rows - mean) ** 2).mean(axis=0))
    >>> bool(abs(mean[0] - 0.3) < 0.02), bool(abs(variance[0] - 0.04) < 0.02), session.remaining
    (True, True, 0)
    """

    caps_rows: ClassVar[bool] = False
    released: ClassVar[tuple[str, ...]] = ("answers",)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta = 0,
        n_queries: int = 1,
        dimension: int = 1,
        bound: float = 1.0,
        m: int | None = None,
        radius: float | None = None,
        method: str = "auto",
        beta: float = 0.01,
        public_seed: PublicSeed | bytes | str | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_queries = n_queries
        self.dimension = dimension
        self.bound = bound
        self.m = m
        self.radius = radius
        self.method = method
        self.beta = beta
        self.public_seed = public_seed
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def open(self, X: Any, y: Any = None, groups: Any = None, *, progress: Progress = None) -> QuerySession:
        """Start asking about people's rows.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, columns)
        y : array-like of numbers with shape (rows,), optional
            Given to questions beside the rows.
        groups : array-like with shape (rows,)
            The user id of every row.
        progress : bool, callable or None
            How many users a question has been asked of, and how many there are: both are public.

        Returns
        -------
        QuerySession
            Use it in a ``with`` statement, or close it: then the data are dropped.

        Raises
        ------
        TypeError, ValueError
            For bad parameters and shapes, naming the argument; never for what is in a row, unless on_invalid="raise".

        Warns
        -----
        UserWarning
            When the number of users is too small for the method, with the number that it needs.
        """
        self._check_parameters()
        data = self._read(X, y, groups)
        answers = self._answers(data.n_users)
        for warning in answers.method.warnings():
            warnings.warn(warning, UserWarning, stacklevel=2)
        source = source_of(self.random_state)
        record = self._record(answers.spending, "record" if groups is None else "user")
        announce(record)

        def drawn(mechanism: Any, /, *arguments: Any) -> Any:
            return mechanism._draw(source, *arguments)

        return QuerySession(data, y is not None, answers, self._seed(), drawn, record, progress)

    def output_distribution(self, X: Any, y: Any = None, *, groups: Any = None, analyst: Analyst | None = None) -> Pmf:
        """The exact law of all that is drawn when an analyst asks all K questions. **Not private**: for audits.

        Parameters
        ----------
        X, y, groups
            As for `open`.
        analyst : callable
            From the tuple of the answers so far to the next question.

        Returns
        -------
        Pmf
            Over transcripts of integers, of which the answers are functions; it comes from the code that `ask` runs.

        Raises
        ------
        TypeError, ValueError
            As `open`.
        BudgetError
            When there are too many outcomes, or too many paths to them.
        """
        if not callable(analyst):
            raise TypeError(f"analyst must be a callable from answers to the next question; got {shown(analyst)}")
        self._check_parameters()
        data = self._read(X, y, groups)
        answers, seed = self._answers(data.n_users), self._seed(exact=True)
        record = self._record(answers.spending, "user")

        def interaction(draw: Draw) -> Hashable:
            session = QuerySession(data, y is not None, answers, seed, draw, record, False)
            released: list[Floats] = []
            transcript: list[Hashable] = []
            while session.remaining:
                outcome, answer = session._answer(analyst(tuple(released)))
                transcript.append(outcome)
                released.append(answer)
            return tuple(transcript)

        return law_of(interaction, self._outcomes(data.n_users, data.n_columns))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if parse_delta(self.delta) == 1:
            raise ValueError(f"delta must be below 1; got {shown(self.delta)}")
        positive(self.n_queries, "n_queries")
        positive(self.dimension, "dimension")
        parse_positive(self.bound, "bound")
        if self.radius is not None:
            parse_positive(self.radius, "radius")
        if self.method not in tuple(METHODS):
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {shown(self.method)}")
        open_unit_interval(self.beta, "beta")

    def _answers(self, n_users: int) -> Answers:
        return plan_answers(self.method, self._problem(n_users), int(self.n_queries))

    def _problem(self, n_users: int) -> MeanProblem:
        bound = float(self.bound)
        return MeanProblem(
            n_users=n_users,
            dimension=int(self.dimension),
            bound=bound,
            norm="l2",
            spread=bound / math.sqrt(self.m or 1) if self.radius is None else float(self.radius),
            epsilon=exact_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta) / int(self.n_queries),
        )

    def _seed(self, *, exact: bool = False) -> PublicSeed:
        if self.public_seed is not None:
            return PublicSeed(self.public_seed)
        # What is not rotated needs no seed, but which it is depends on the number of users.
        return PublicSeed(bytes(32)) if exact and int(self.dimension) == 1 else PublicSeed.random()

    def _spending(self, n_users: int, n_features: int) -> Spending:
        return self._answers(n_users).spending

    def _program(self, data: UserData) -> Program:
        raise NotImplementedError  # there is none before there are questions

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        answers = self._answers(n_users)
        if answers.method.rotated() and self.public_seed is None:
            raise ValueError("public_seed must be given for an exact law: without one, each fit rotates differently")
        each, number = answers.method.n_outcomes(), answers.number
        listed((), each**number)
        return tuple(product(tuple(answers.method.outcomes()), repeat=number))

    def _accept(self, outcome: Any) -> None:
        raise NotImplementedError  # a session hands its answers out

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        if y is None:
            return np.zeros(n_rows)
        targets = np.asarray(one_by_one(y))
        if targets.shape != (n_rows,):
            raise ValueError(f"y must be a vector with a number for each of {n_rows} rows; got shape {targets.shape}")
        numbers = numbers_of(targets)
        if self.on_invalid == "raise" and not np.all(np.isfinite(numbers)):
            raise ValueError("y has entries that are no finite numbers")
        return numbers
