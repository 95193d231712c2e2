"""The best of finitely many candidates by their mean losses: private selection from private means."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ReleasePlan, check_listed, equal_part
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import exact_number, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.means.methods import METHODS, planned_method
from userdp.means.problem import MeanMethod, MeanProblem
from userdp.mechanisms import PrivateBestOf, UniformInteger
from userdp.mechanisms.composed import AdaptiveMechanism, output_distribution, run
from userdp.optimization.constraints import LEAST, finite, optional_length
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors, UserVectors, rows_of_users

if TYPE_CHECKING:
    from userdp import _core


MOST_WORK = 2**31
"""The most users that may be expected to be looked at in all measurements together: some minutes of work."""
PER_HOUR = 7 * 10**9
"""About as many users are looked at in an hour."""
LEAST_WORK = 2**12
"""A measurement takes no less time than looking at so many users."""


@estimator
class FiniteMinimizer(UserLevelEstimator):
    """Choose the candidate with the least mean loss over users, with pure privacy, by noisy means and random stopping.

    Again and again a candidate is drawn uniformly, and its mean loss is measured privately; after every measurement the
    search ends with a fixed probability. The least measurement is released, with its candidate. All measurements
    together cost three times what one costs, however many there are.

    Attributes
    ----------
    index_ : int
        Released: the candidate, a column of the losses.
    value_ : float
        Released: its measurement. As the least of many noisy ones it is biased downwards.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbors differ in all the records of one user; the number of records of each
    user is private. *Proof.* Each candidate's measurement is epsilon/3-DP on the data of all users, hence so is one of
    a candidate that is drawn uniformly. `PrivateBestOf` releases the best of a random number of such runs at three
    times the price: docs/proofs/private_selection.md. Measurements are ordered by value, and equal ones by candidate,
    an order that is fixed in advance. How many measurements there were is secret; it is never kept or shown, and there
    is no progress bar.

    *Utility.* With the noise of a measurement at epsilon/3: at LSAKKMS21's tau its scale is 24 tau / (n epsilon), 36
    for intervals that contain all users (docs/errata.md). The excess loss is at most twice the largest noise of about
    (5 K / alpha) ln(5 / alpha) measurements, with probability 1 - alpha.

    References
    ----------
    [LSAKKMS21, Algorithm 5] and [LSAKKMS21, Theorem 6]. Liu, Talwar, "Private Selection from Private Candidates" (STOC
    2019).

    Examples
    --------
    Which of four thresholds has the fewest errors:

    >>> import numpy as np
    >>> from userdp.optimization import FiniteMinimizer
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(2000), 20)
    >>> errors = rng.random((40_000, 4)) < [0.5, 0.4, 0.1, 0.3]
    >>> found = FiniteMinimizer(epsilon=1, m=20, loss_bounds=(0, 1)).fit(errors, groups=users)
    >>> found.index_ in range(4)  # it is 2, unless that is never measured: with a probability of alpha / 5 at most
    True
    """

    released: ClassVar[tuple[str, ...]] = ("index_", "value_")
    caps_rows: ClassVar[bool] = False
    without_rows: ClassVar[str] = (
        "Users without rows count with losses in the middle of `loss_bounds`, and so draw all candidates together."
    )

    loss_bounds: tuple[float, float] = fields.parameter(
        check=lambda value, name: _ends(value, name),
        kind="pair of floats",
        doc="(low, high): losses are clamped to these public numbers.",
    )
    concentration: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="""
        A promise: the expected distance of a user's mean loss from the mean of all users, public. Users who are
        farther away may be clipped. By default nobody is.
        """,
    )
    method: str = fields.choice(
        METHODS,
        default="auto",
        doc="How a mean is measured, as in `userdp.means.WinsorizedMean`, with pure differential privacy.",
    )
    alpha: float = fields.open_unit(
        default=0.1, doc="The failure probability that stopping_probability and the search for ranges are planned for."
    )
    stopping_probability: float | Fraction | str | None = fields.parameter(
        default=None,
        kind="float, int, Fraction or decimal string, optional",
        doc="""
        gamma, in (0, 1]. By default alpha / (5 K) for K candidates, so that 5 K / alpha measurements are expected and
        the best candidate is missed with probability alpha / 5 at most.
        """,
    )
    most_runs: int | None = fields.count(
        default=None, doc="The number of measurements is drawn given that it is at most this. It costs no privacy."
    )
    hide_time: bool = fields.flag(
        default=False,
        doc="""
        True makes all of `most_runs` measurements and ignores those after the last that counts. **Otherwise the time
        of fit tells how many there were**, which is secret.
        """,
    )
    grid_resolution: int | None = fields.parameter(
        default=None,
        check=fields.power_of_two,
        kind="int, optional",
        doc="Steps of the public grid of a measurement, a power of two.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._selection(_Unplanned(), 1)

    def _selection(self, candidate: Any, n_candidates: int) -> PrivateBestOf:
        gamma = (
            (exact_number(self.alpha) or Fraction(0)) / (5 * n_candidates)
            if self.stopping_probability is None
            else parse_delta(self.stopping_probability, "stopping_probability")
        )
        return PrivateBestOf(candidate, stopping_probability=gamma, most_runs=self.most_runs, hide_time=self.hide_time)

    def _method(self, n_users: int, n_candidates: int) -> MeanMethod:
        """How one candidate is measured."""
        low, high = _ends(self.loss_bounds, "loss_bounds")
        half = high / 2 - low / 2
        alpha = float(self.alpha)
        runs = 5 * n_candidates / alpha * math.log(5 / alpha)
        problem = MeanProblem(
            n_users=n_users,
            dimension=1,
            max_norm=half,
            norm="max",
            concentration=float(self.concentration or half / math.sqrt(self.m or 1)),
            epsilon=equal_part(self.epsilon, 3),
            delta=Fraction(0),
            # The range is missed in no run, but with probability alpha / 5.
            beta=alpha / (5 * max(1.0, runs)),
            grid_resolution=None if self.grid_resolution is None else int(self.grid_resolution),
            promise="none" if self.concentration is None else "expected",
        )
        return planned_method(METHODS[self.method], problem)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        low, high = _ends(self.loss_bounds, "loss_bounds")
        method = self._method(n_users, n_features)
        selection = self._selection(NoisyCandidate(method, n_features), n_features)
        expected = math.ceil(1 / selection.stopping_probability)
        most = selection.most_runs or expected
        runs = most if selection.hide_time else min(most, expected)
        work = runs * (LEAST_WORK + n_users)
        if work > MOST_WORK:
            raise BudgetError(
                f"about {runs} measurements of {n_users} users are expected, which take about "
                f"{Decimal(work) / PER_HOUR:.1e} hours; at most {MOST_WORK // (LEAST_WORK + n_users)} are made of so "
                "many users: raise stopping_probability or alpha, set most_runs, or leave out candidates"
            )

        def program(table: UserTable) -> AdaptiveMechanism:
            rows = rows_of_users(table.users, table.n_users)
            programs = tuple(
                method.program(CachedUserVectors(_losses_of(table, rows, index, low, high)))
                for index in range(n_features)
            )
            return lambda draw: draw(selection, programs)

        def outcomes() -> Sequence[Hashable]:
            check_listed(n_features * method.n_outcomes(), "audit fewer users or a coarser grid")
            values = {_value(method, outcome) for outcome in method.outcomes()}
            return [(value, index) for value in sorted(values) for index in range(n_features)]

        def fitted(drawn: tuple[float, int]) -> dict[str, Any]:
            value, index = drawn
            return {"index_": index, "value_": min(max(low / 2 + high / 2 + value, low), high)}

        budget = Budget.of(self.epsilon, {"selection": 1})
        warnings = list(method.warnings())
        # The largest of 1 / gamma measurements of scale 3 range / (n epsilon) is about ln(1 / gamma) scales.
        needed = math.ceil(30 / float(positive_epsilon(self.epsilon)) * math.log(1 / selection.stopping_probability))
        if self.concentration is None and n_users < needed:
            warnings.append(
                f"{n_users} users are too few for {n_features} candidates at "
                f"epsilon={float(positive_epsilon(self.epsilon)):.3g}: noise decides; about {needed:,} users have a "
                "tenth of loss_bounds"
            )
        return ReleasePlan(budget, program, outcomes, fitted, warnings=tuple(warnings))


def _ends(bounds: Any, name: str) -> tuple[float, float]:
    """Two finite numbers, the first clearly below the second."""
    try:
        low, high = (finite(end, name) for end in bounds)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not high / 2 - low / 2 >= LEAST:
        raise ValueError(f"{name} must be two finite numbers (low, high); got {short_repr(bounds)}")
    return low, high


class NoisyCandidate:
    """A measurement of a candidate that is drawn uniformly: (value, index), from the programs of all candidates."""

    def __init__(self, method: MeanMethod, n_candidates: int) -> None:
        self.method = method
        self.index = UniformInteger(low=0, high=n_candidates - 1)

    def _draw(self, source: _core.Source, programs: Sequence[AdaptiveMechanism]) -> tuple[float, int]:
        index = self.index._draw(source)
        return _value(self.method, run(programs[index], source)), index

    def pmf(self, programs: Sequence[AdaptiveMechanism]) -> Pmf:
        """The distribution of a measurement."""
        outcomes = tuple(self.method.outcomes())
        masses: dict[Hashable, Fraction] = {}
        for index, program in enumerate(programs):
            distribution = output_distribution(program, outcomes)
            for outcome, mass in zip(distribution.outputs, distribution.fractions(), strict=True):
                at = (_value(self.method, outcome), index)
                masses[at] = masses.get(at, Fraction(0)) + mass
        return Pmf.from_weights(masses.values(), masses)


def _losses_of(data: UserTable, rows: _core.RowsOfUsers, index: int, low: float, high: float) -> UserVectors:
    """Users' mean losses of one candidate, less the middle."""
    column = replace(data, X=data.X[:, index : index + 1])
    return MeanVectors(column, bound=high / 2 - low / 2, norm="max", center=[low / 2 + high / 2], rows=rows)


class _Unplanned:
    """A mechanism for the sake of checking parameters before there are candidates."""

    def _draw(self, source: _core.Source, /, *arguments: Any) -> Any:
        raise NotImplementedError

    def pmf(self, *arguments: Any) -> Pmf:
        raise NotImplementedError


def _value(method: MeanMethod, outcome: Any) -> float:
    value: npt.NDArray[np.float64] = method.mean(outcome)
    return float(value[0])


MOST_CACHED = 2**26
"""So many numbers are kept for one candidate; what comes later is computed each time."""


def _computed_once(name: str) -> Any:
    """A method of vectors whose answers are kept, by the same public arguments."""

    def method(self: CachedUserVectors, *arguments: npt.ArrayLike) -> Any:
        key = (name, *(np.asarray(each, dtype=np.float64).tobytes() for each in arguments))
        if key in self._cache:
            return self._cache[key]
        value = getattr(self._source, name)(*arguments)
        parts = [value] if isinstance(value, np.ndarray) else list(value)
        kept = value if isinstance(value, (np.ndarray, tuple)) else parts
        size = sum(int(np.size(part)) for part in parts)
        if size <= self._room:
            self._room -= size
            self._cache[key] = kept
        return kept

    return method


class CachedUserVectors(UserVectors):
    """The same sums as of other vectors, each computed once for the same public arguments."""

    def __init__(self, vectors: UserVectors) -> None:
        self.n_users = vectors.n_users
        self.dimension = vectors.dimension
        self._vectors = vectors._vectors
        self._source = vectors
        self._cache: dict[Any, Any] = {}
        self._room = MOST_CACHED

    clipped_sum = _computed_once("clipped_sum")
    clipped_moments = _computed_once("clipped_moments")
    clipping_excess = _computed_once("clipping_excess")
    winsorized_sum = _computed_once("winsorized_sum")
    bin_counts = _computed_once("bin_counts")
    occupied_bins = _computed_once("occupied_bins")
    counts_within = _computed_once("counts_within")

    def filled(self) -> UserVectors:
        return CachedUserVectors(self._source.filled())
