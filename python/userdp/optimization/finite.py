"""The best of finitely many candidates by their mean losses: private selection from private means."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from userdp.distributions.base import listed
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.privacy import Budget, equal_part, split_budget
from userdp.exact.numbers import Epsilon, exact_number, open_unit_interval, parse_delta, positive, shown
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.means.methods import METHODS
from userdp.means.plan import MeanMethod, MeanProblem
from userdp.mechanisms import RepeatedSelection, UniformInteger
from userdp.mechanisms.composed import Draw, Program, law_of, run
from userdp.optimization.constraints import LEAST, finite, length
from userdp.optimization.gradients import RememberedVectors
from userdp.users.contributions import UserData
from userdp.users.vectors import MeanVectors, UserVectors, rows_of_users

if TYPE_CHECKING:
    from userdp import _core

Self = TypeVar("Self", bound="FiniteMinimizer")

MOST_WORK = 2**40
"""The most users that may be expected to be looked at in all runs together."""


class FiniteMinimizer(UserLevelEstimator):
    """Find the candidate with the least mean loss over users, with pure privacy, by noisy means and random stopping.

    Again and again a candidate is drawn uniformly, and its mean loss is measured privately; after every measurement the
    search ends with a fixed probability. The least measurement is released, with its candidate. All measurements
    together cost three times what one costs, however many there are.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget; a third of it is what each measurement is made with.
    loss_bounds : tuple of two float
        (low, high): losses are clipped to it. Public.
    m : int
        How many rows a user is expected to have; public. All rows of a user count, whatever their number is.
    radius : float, optional
        The expected distance of a user's mean loss from the mean of all users, public. By default half the length of
        loss_bounds over sqrt(m). It is a promise about utility only.
    method : {"auto", "iterated", "gaussian", "practical", "paper", "laplace"}
        How a mean is measured, as in `userdp.means.WinsorizedMean`, with pure differential privacy.
    alpha : float in (0, 1)
        The failure probability that stopping_probability and the search for ranges are planned for.
    stopping_probability : float, int, Fraction or decimal string, optional
        gamma, in (0, 1]. By default alpha / (5 K) for K candidates, so that 5 K / alpha measurements are expected and
        the best candidate is missed with probability alpha / 5 at most.
    most_runs : int, optional
        The number of measurements is drawn given that it is at most this. It costs no privacy.
    hide_time : bool
        True makes all of `most_runs` measurements and ignores those after the last that counts. **Otherwise the time
        of fit tells how many there were**, which is secret.
    steps : int, optional
        Steps of the public grid of a measurement, a power of two.
    on_invalid : {"clamp", "raise"}
        NaN counts as the middle of loss_bounds and what is out of range as the nearest end; "raise" is not private.
    require_groups : bool
        False takes every row for a user when `fit` gets no groups.
    enrolled : sequence, optional
        The public list of all users. Those without rows count as if all their losses were in the middle.
    random_state : None or int
        None draws from the operating system; an int is for tests and voids privacy.

    Attributes
    ----------
    index_ : int
        Released: the candidate, a column of the losses.
    value_ : float
        Released: its measurement. As the least of many noisy ones it is biased downwards.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbours differ in all the rows of one user; the number of rows of each user
    is private. *Proof.* Each candidate's measurement is epsilon/3-DP on the data of all users, hence so is one of a
    candidate that is drawn uniformly. `RepeatedSelection` releases the best of a random number of such runs at three
    times the price: docs/proofs/private_selection.md. Measurements are ordered by value, and equal ones by candidate,
    an order that is fixed in advance. How many measurements there were is secret; it is never kept or shown, and there
    is no progress bar.

    *Utility.* With the noise of a measurement at epsilon/3: at LSAKKMS21's tau its scale is 24 tau / (n epsilon), 36
    for intervals that contain all users (docs/errata.md). The excess loss is at most twice the largest noise of about
    (5 K / alpha) ln(5 / alpha) measurements, with probability 1 - alpha.

    References
    ----------
    LSAKKMS21, Algorithm 5 and Theorem 6. Liu, Talwar, "Private Selection from Private Candidates" (STOC 2019).

    Examples
    --------
    Which of four thresholds has the fewest errors:

    >>> import numpy as np
    >>> from userdp.optimization import FiniteMinimizer
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(2000), 20)
    >>> errors = rng.random((40_000, 4)) < [0.5, 0.4, 0.1, 0.3]
    >>> FiniteMinimizer(epsilon=1, m=20).fit(errors, groups=people).index_
    2
    """

    released: ClassVar[tuple[str, ...]] = ("index_", "value_")
    caps_rows: ClassVar[bool] = False

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        loss_bounds: tuple[float, float] = (0.0, 1.0),
        m: int | None = None,
        radius: float | None = None,
        method: str = "auto",
        alpha: float = 0.1,
        stopping_probability: Any = None,
        most_runs: int | None = None,
        hide_time: bool = False,
        steps: int | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss_bounds = loss_bounds
        self.m = m
        self.radius = radius
        self.method = method
        self.alpha = alpha
        self.stopping_probability = stopping_probability
        self.most_runs = most_runs
        self.hide_time = hide_time
        self.steps = steps
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the candidate with the least mean loss.

        Parameters
        ----------
        X : array-like with shape (rows, candidates)
            The loss of every candidate on every row.
        y : None
            Not used.
        groups : array-like with shape (rows,)
            The user id of every row.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad parameters and shapes, naming the argument; never for what is in a row, unless on_invalid="raise".
        BudgetError
            For work that is too large, with an estimate.
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._ends()
        if self.radius is not None:
            length(self.radius, "radius")
        if self.method not in tuple(METHODS):
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {shown(self.method)}")
        open_unit_interval(self.alpha, "alpha")
        if self.steps is not None and (steps := positive(self.steps, "steps")) & (steps - 1):
            raise ValueError(f"steps must be a power of two; got {shown(self.steps)}")
        self._selection(_Unplanned(), 1)

    def _ends(self) -> tuple[float, float]:
        try:
            low, high = (finite(end, "loss_bounds") for end in self.loss_bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not high / 2 - low / 2 >= LEAST:
            raise ValueError(f"loss_bounds must be two finite numbers (low, high); got {shown(self.loss_bounds)}")
        return low, high

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, {"selection": 1})

    def _selection(self, candidate: Any, n_candidates: int) -> RepeatedSelection:
        gamma = (
            (exact_number(self.alpha) or Fraction(0)) / (5 * n_candidates)
            if self.stopping_probability is None
            else parse_delta(self.stopping_probability, "stopping_probability")
        )
        return RepeatedSelection(
            candidate, stopping_probability=gamma, most_runs=self.most_runs, hide_time=self.hide_time
        )

    def _plan(self, n_users: int, n_candidates: int) -> MeanMethod:
        low, high = self._ends()
        bound = high / 2 - low / 2
        alpha = float(self.alpha)
        runs = 5 * n_candidates / alpha * math.log(5 / alpha)
        problem = MeanProblem(
            n_users=n_users,
            dimension=1,
            bound=bound,
            norm="max",
            spread=bound / math.sqrt(self.m or 1) if self.radius is None else float(self.radius),
            epsilon=equal_part(self.epsilon, 3),
            delta=Fraction(0),
            # The range is missed in no run, but with probability alpha / 5.
            beta=alpha / (5 * max(1.0, runs)),
            steps=None if self.steps is None else int(self.steps),
        )
        return _planned(self.method, problem)

    def _program(self, data: UserData) -> Program:
        low, high = self._ends()
        n_candidates = data.n_columns
        plan = self._plan(data.n_users, n_candidates)
        selection = self._selection(NoisyCandidate(plan, n_candidates), n_candidates)
        expected = math.ceil(1 / selection.stopping_probability)
        most = selection.most_runs or expected
        runs = most if selection.hide_time else min(most, expected)
        if runs * data.n_users > MOST_WORK:
            raise BudgetError(
                f"about {runs} measurements of {data.n_users} users are expected, and at most {MOST_WORK} users are "
                "looked at; raise stopping_probability or alpha, or set most_runs"
            )
        rows = rows_of_users(data.users, data.n_users)
        programs = tuple(
            plan.program(RememberedVectors(_losses_of(data, rows, index, low, high))) for index in range(n_candidates)
        )

        def best(draw: Draw) -> Hashable:
            outcome: Hashable = draw(selection, programs)
            return outcome

        return best

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        plan = self._plan(n_users, n_features)
        listed((), n_features * plan.n_outcomes())
        values = {_value(plan, outcome) for outcome in plan.outcomes()}
        return [(value, index) for value in sorted(values) for index in range(n_features)]

    def _accept(self, outcome: Any) -> None:
        for warning in self._plan(self.n_users_, self.n_features_in_).warnings():
            warnings.warn(warning, UserWarning, stacklevel=4)
        value, self.index_ = outcome
        low, high = self._ends()
        self.value_ = min(max(low / 2 + high / 2 + value, low), high)


class NoisyCandidate:
    """A measurement of a candidate that is drawn uniformly: (value, index), from the programs of all candidates."""

    def __init__(self, plan: MeanMethod, n_candidates: int) -> None:
        self.plan = plan
        self.index = UniformInteger(low=0, high=n_candidates - 1)

    def _draw(self, source: _core.Source, programs: Sequence[Program]) -> tuple[float, int]:
        index = self.index._draw(source)
        return _value(self.plan, run(programs[index], source)), index

    def pmf(self, programs: Sequence[Program]) -> Pmf:
        """The law of a measurement."""
        outcomes = tuple(self.plan.outcomes())
        masses: dict[Hashable, Fraction] = {}
        for index, program in enumerate(programs):
            law = law_of(program, outcomes)
            for outcome, mass in zip(law.outputs, law.fractions(), strict=True):
                at = (_value(self.plan, outcome), index)
                masses[at] = masses.get(at, Fraction(0)) + mass
        return Pmf.from_weights(masses.values(), masses)


def _losses_of(data: UserData, rows: _core.RowsOfUsers, index: int, low: float, high: float) -> UserVectors:
    """Users' mean losses of one candidate, less the middle."""
    column = replace(data, X=data.X[:, index : index + 1])
    return MeanVectors(column, bound=high / 2 - low / 2, norm="max", center=[low / 2 + high / 2], rows=rows)


class _Unplanned:
    """A mechanism for the sake of checking parameters before there are candidates."""

    def _draw(self, source: _core.Source, /, *arguments: Any) -> Any:
        raise NotImplementedError

    def pmf(self, *arguments: Any) -> Pmf:
        raise NotImplementedError


def _value(plan: MeanMethod, outcome: Any) -> float:
    value: npt.NDArray[np.float64] = plan.mean(outcome)
    return float(value[0])


@lru_cache(maxsize=64)
def _planned(method: str, problem: MeanProblem) -> MeanMethod:
    return METHODS[method](problem)
