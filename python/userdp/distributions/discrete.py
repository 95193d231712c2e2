"""Distributions on symbols: covers of the simplex, plans of selections over them, and the estimator."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.distributions.base import DistributionEstimator
from userdp.distributions.covers import (
    LARGEST_LINE,
    Masses,
    grid_of,
    grid_size,
    members,
    near,
    near_size,
    refuse_beyond,
)
from userdp.distributions.line_selection import Proportion
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ExactEpsilon, Parts, ReleasePlan, listed, split_budget
from userdp.exact.numbers import counted, short_repr
from userdp.learners.clipped_pairwise import ScheffeEM, Symbols, clipping_bound, read_symbols, users_needed
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import Grid

METHODS = ("auto", "joint", "coarse-to-fine", "symbols")


class SelectionPlan(ABC):
    """A way to learn a distribution, from public parameters."""

    shares: Mapping[str, Fraction]
    """What the budget is for, and its shares."""

    @abstractmethod
    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        """What draws an outcome from users' symbols."""

    @abstractmethod
    def outcomes(self) -> Iterable[Hashable]:
        """All that can be drawn."""

    @abstractmethod
    def n_outcomes(self) -> int:
        """How many there are."""

    @abstractmethod
    def probabilities(self, outcome: Any) -> npt.NDArray[np.float64]:
        """The distribution that an outcome stands for."""

    @abstractmethod
    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        """Users for which the guarantee is proved."""


def plan_of(method: str, n_symbols: int, alpha: Fraction, max_candidates: int) -> SelectionPlan:
    """The plan of a method; "auto" takes the first of joint, coarse-to-fine and symbols that is small enough."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {short_repr(method)}")
    if method in ("joint", "auto"):
        joint = JointCover(n_symbols, alpha)
        if method == "joint":
            refuse_beyond(joint.size, max_candidates, "the cover", "method='symbols' learns one symbol at a time")
        if joint.size <= max_candidates:
            return joint
    if method in ("coarse-to-fine", "auto"):
        rounds = CoarseToFine(n_symbols, alpha)
        if method == "coarse-to-fine":
            refuse_beyond(rounds.size, max_candidates, "a round", "method='symbols' learns one symbol at a time")
        if rounds.size <= max_candidates:
            return rounds
    return SymbolBySymbol(n_symbols, alpha)


class JointCover(SelectionPlan):
    """One selection from a cover of all distributions ([GKKMMZ23, Theorem 43]): within 0.7 alpha."""

    def __init__(self, n_symbols: int, alpha: Fraction) -> None:
        self.n_symbols, self.alpha = n_symbols, alpha
        self.unit = grid_of(n_symbols, alpha)
        self.size = grid_size(self.unit, n_symbols)
        self.shares = {"selection": Fraction(1)}

    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        cover = list(members(self.unit, self.n_symbols))
        return _selection(cover, self.unit, self.alpha, budget["selection"], symbols)

    def outcomes(self) -> Iterable[Masses]:
        return members(self.unit, self.n_symbols)

    def n_outcomes(self) -> int:
        return self.size

    def probabilities(self, outcome: Masses) -> npt.NDArray[np.float64]:
        return in_units(outcome, self.unit)

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return _users(self.size, self.alpha, budget["selection"], beta, m)


class CoarseToFine(SelectionPlan):
    """Rounds of selection at accuracies alpha 2**J, ..., 2 alpha, alpha, each near what the one before selected.

    After a round at accuracy a the truth is within 0.7 a of what was selected. The cover of the next round, at a / 2,
    has a member within 0.05 a of the truth, so within 0.75 a of what was selected: only such members are candidates.
    With the failure probability shared, the last round selects within 0.7 alpha, as from the whole cover. A round needs
    half the users of the next for small m, and as many for large m; its share of the budget is 2/3 of the next's. In
    all this needs 2 to 7 times the users of a joint cover (in the part that depends on epsilon).
    """

    def __init__(self, n_symbols: int, alpha: Fraction) -> None:
        self.n_symbols = n_symbols
        # The most doublings of alpha below 1.
        doublings = (math.ceil(1 / alpha) - 1).bit_length() - 1
        first = grid_of(n_symbols, alpha * (1 << doublings))
        self.rounds = [(alpha * (1 << (doublings - r)), first << r) for r in range(doublings + 1)]
        self.shares = {f"round {r}": Fraction(3, 2) ** r for r in range(doublings + 1)}
        sizes = [near_size(n_symbols, self._radius(r)) for r in range(1, doublings + 1)]
        self.size = max([grid_size(first, n_symbols), *sizes])

    def _radius(self, r: int) -> int:
        """Units of round r within 0.75 of the accuracy before."""
        return math.floor(Fraction(3, 4) * self.rounds[r - 1][0] * self.rounds[r][1])

    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        def selection(r: int, cover: Iterable[Masses]) -> Callable[[Sampler], Masses]:
            alpha, unit = self.rounds[r]
            return _selection(list(cover), unit, alpha, budget[f"round {r}"], symbols)

        first = selection(0, members(self.rounds[0][1], self.n_symbols))

        def refined(draw: Sampler) -> Masses:
            selected = first(draw)
            for r in range(1, len(self.rounds)):
                center = tuple(2 * mass for mass in selected)
                selected = selection(r, near(center, self._radius(r)))(draw)
            return selected

        return refined

    def outcomes(self) -> Iterable[Masses]:
        return members(self.rounds[-1][1], self.n_symbols)

    def n_outcomes(self) -> int:
        _, unit = self.rounds[-1]
        return grid_size(unit, self.n_symbols)

    def probabilities(self, outcome: Masses) -> npt.NDArray[np.float64]:
        return in_units(outcome, self.rounds[-1][1])

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        beta /= len(self.rounds)
        return max(_users(self.size, alpha, budget[f"round {r}"], beta, m) for r, (alpha, _) in enumerate(self.rounds))


class SymbolBySymbol(SelectionPlan):
    """The probability of each symbol on its own, then the nearest distribution.

    Each of k proportions is selected at accuracy 2 alpha / k, so within 1.4 alpha / k. The Euclidean projection onto
    distributions brings the vector no further from the truth, which is one: its Euclidean distance is at most
    sqrt(k) 1.4 alpha / k, the sum of absolute differences at most sqrt(k) times that, and the total variation half of
    it: 0.7 alpha, as for the joint cover. A proportion has epsilon / k, so the part of the need for users that depends
    on epsilon grows as k**2 / (epsilon alpha sqrt(m)), for a joint cover as k / (epsilon alpha sqrt(m)).
    """

    def __init__(self, n_symbols: int, alpha: Fraction) -> None:
        self.n_symbols = n_symbols
        self.alpha = min(2 * alpha / n_symbols, alpha)
        self.unit = grid_of(2, self.alpha)
        refuse_beyond(self.unit + 1, LARGEST_LINE, "the cover of a probability", "use a larger alpha")
        self.shares = {f"symbol {z}": Fraction(1) for z in range(n_symbols)}

    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        tau, histograms = clipping_bound(float(self.alpha), symbols.m, 1), symbols.histograms.astype(np.int64)
        sizes = histograms.sum(axis=1)
        steps = [Proportion(self.unit, epsilon=budget[name], m=symbols.m, tau=tau) for name in self.shares]
        scores = [step.scores(counts, sizes) for step, counts in zip(steps, histograms.T, strict=True)]
        return lambda draw: tuple(step.choose(draw, own) for step, own in zip(steps, scores, strict=True))

    def outcomes(self) -> Iterable[Masses]:
        return product(range(self.unit + 1), repeat=self.n_symbols)

    def n_outcomes(self) -> int:
        return counted((self.unit + 1, self.n_symbols))

    def probabilities(self, outcome: Masses) -> npt.NDArray[np.float64]:
        return _projected(in_units(outcome, self.unit))

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return _users(self.unit + 1, self.alpha, budget["symbol 0"], beta / self.n_symbols, m)


def _selection(
    cover: list[Masses], unit: int, alpha: Fraction, epsilon: ExactEpsilon, symbols: Symbols
) -> Callable[[Sampler], Masses]:
    tau = clipping_bound(float(alpha), symbols.m, 1)
    selection = ScheffeEM(np.array(cover, dtype=np.int64), epsilon=epsilon, m=symbols.m, tau=tau, unit=unit)
    scores = selection.scores(symbols)
    return lambda draw: cover[selection.choose(draw, scores)]


def in_units(masses: npt.ArrayLike, unit: int) -> npt.NDArray[np.float64]:
    """Integer masses as probabilities."""
    return np.asarray(masses, dtype=np.float64) / unit


def _users(size: int, alpha: Fraction, epsilon: ExactEpsilon, beta: float, m: int) -> int:
    tau = clipping_bound(float(alpha), m, 1)
    return users_needed(size, epsilon=epsilon, alpha=float(alpha), beta=beta, m=m, tau=tau)


def _projected(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest distribution: the same number is taken from all entries, and none is left below 0."""
    descending = np.sort(vector)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(vector) + 1)
    shift = excess[np.flatnonzero(descending > excess)[-1]]
    projected: npt.NDArray[np.float64] = np.maximum(vector - shift, 0)
    projected /= projected.sum()
    return projected


@estimator
class DiscreteDistribution(DistributionEstimator):
    """The distribution of users' examples on symbols 0, ..., k - 1, with pure privacy for users.

    Attributes
    ----------
    probabilities_ : ndarray with shape (k,)
        Released.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For a cover with more than max_candidates members, with its size and what to do instead.

    Notes
    -----
    *Privacy.* Every selection is an exponential mechanism on clipped Scheffe scores, with sensitivity min(2 tau, m)
    when one user is replaced (see `HypothesisSelector`); their parts of epsilon sum to epsilon, exactly.

    *Utility.* Whatever the method, the result is within 0.7 alpha of the truth in total variation with probability
    1 - beta, for `users_needed()` users of m independent examples each. The methods differ in this number: as a
    function of epsilon it grows as k / (epsilon alpha sqrt(m)) for "joint", up to logarithms, 2 to 7 times
    that for "coarse-to-fine", and k**2 / (epsilon alpha sqrt(m)) for "symbols".

    References
    ----------
    [GKKMMZ23, Theorem 41] and [GKKMMZ23, Theorem 43]: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level
    Differential Privacy With Few Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> import numpy as np
    >>> visits = np.array([[0], [0], [1], [2]] * 3000)
    >>> people = np.repeat(np.arange(3000), 4)
    >>> learner = DiscreteDistribution(epsilon=2, n_symbols=3, m=4, alpha=0.4).fit(visits, groups=people)
    >>> bool(np.abs(learner.probabilities_ - [0.5, 0.25, 0.25]).max() < 0.3)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("probabilities_",)

    n_symbols: int = fields.count(least=2, doc="k >= 2, public.")
    method: str = fields.choice(
        "auto",
        METHODS,
        doc="""
        "joint" selects from a cover of all distributions, with C(N + k - 1, k - 1) members, N = 2.5 k / alpha rounded
        up. "coarse-to-fine" refines the selection in rounds at half the accuracy each. "symbols" selects the
        probability of each symbol and projects the vector. "auto" takes the first of these whose covers have at most
        `max_candidates` members; it depends on k, alpha and that number only.
        """,
    )
    max_candidates: int = fields.count(
        4096, least=2, doc="Larger covers are refused. Work grows as its square times the number of users."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._selections()

    def _selections(self) -> SelectionPlan:
        return plan_of(self.method, int(self.n_symbols), self._accuracy(), int(self.max_candidates))

    def _columns(self) -> int:
        return 1

    def _read_X(self, grid: Grid) -> npt.NDArray[np.int64]:
        return read_symbols(super()._read_X(grid), self.n_symbols, 1, self.on_invalid)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        selections, n_symbols = self._selections(), int(self.n_symbols)
        budget = Budget.of(self.epsilon, selections.shares)
        return ReleasePlan(
            budget,
            lambda table: selections.program(budget.parts, Symbols.of(table, table.X[:, 0], n_symbols)),
            lambda: listed(selections.outcomes, selections.n_outcomes(), "audit a larger alpha"),
            lambda drawn: {"probabilities_": selections.probabilities(drawn)},
        )

    def _users_needed(self, m: int) -> int:
        selections = self._selections()
        return selections.users_needed(split_budget(self.epsilon, selections.shares), float(self.beta), m)
