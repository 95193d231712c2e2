"""Thresholds on one feature, learnt from people who give several examples each.

Source: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024), PrivateThreshold (Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.concepts.points import points_of, read_domain_size
from userdp.estimators.base import UserLevelClassifier
from userdp.estimators.privacy import Budget, equal_part, split_budget
from userdp.exact.numbers import Epsilon, is_integer, open_unit_interval, positive, shown
from userdp.exceptions import BudgetError
from userdp.learners.median import draw_median, tolerance_of_median
from userdp.learners.min_error import accuracy, estimate_min_error, one_comparison
from userdp.learners.three_way import ThreeWayChoice
from userdp.learners.tolerance import choose_t, separation, t_shares
from userdp.mechanisms import ExponentialMechanism, GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.composed import Draw, Mechanism, Program
from userdp.users.contributions import UserData

if TYPE_CHECKING:
    from userdp import _core


class Sweep:
    """A `ThresholdSweep` that answers a question once: a program is run again for each path of its law."""

    def __init__(self, sweep: _core.ThresholdSweep) -> None:
        self.minimal_errors = lru_cache(maxsize=None)(sweep.minimal_errors)
        self.groups = lru_cache(maxsize=None)(sweep.groups)
        self.median_groups = lru_cache(maxsize=None)(sweep.median_groups)


DECAY = Fraction(2, 3)
"""A round leaves at most this part of the examples that the one before it left."""


def rounds_of_search(alpha: Fraction) -> int:
    """How many rounds leave at most a part alpha / 2 of the examples: T = ceil(ln(2 / alpha) / ln(3 / 2)).

    The integer is what the budget is divided by. With the number before rounding up, the rounds would spend more than
    there is.
    """
    rounds, left = 0, Fraction(1)
    while left > alpha / 2:
        rounds, left = rounds + 1, left * DECAY
    return rounds


def median_tolerances(m: int, rounds: int) -> list[int]:
    """For each round, how many samples of a user beside the median are no offence."""
    return [tolerance_of_median(m, float(DECAY**k)) for k in range(rounds)]


def t_of_error(m: int, error: Fraction, alpha: Fraction) -> int | None:
    """The t that tells a hypothesis near the least error from one that is worse by alpha; None where none is."""
    low, high = error + alpha / 6, min(error + alpha / 3, Fraction(1))
    if low >= 1:
        return None
    t, _, _ = separation(m, float(low), float(high))
    return t


def search(
    draw: Draw,
    sweep: Sweep,
    *,
    domain_size: int,
    t: int,
    tolerances: Sequence[int],
    median: GroupedExponentialMechanism,
    choice: Mechanism,
) -> int:
    """Bisection of 0, ..., N as a part of a program.

    Each round draws a median of the examples in low..high; then whether it, or something to its left or right, is best.

    Parameters
    ----------
    draw : callable
        As in all programs.
    sweep : Sweep
        The rows.
    domain_size : int
        N; public.
    t : int
        The score of a threshold is how many users it fails on more than t examples; public, or drawn before.
    tolerances : sequence of int
        One for each round: `median_tolerances`.
    median : GroupedExponentialMechanism
        Draws a median in each round.
    choice : Mechanism
        Draws "left", "middle" or "right" in each round, from the least score to the left of the median, its own, and
        the least one to its right, None standing for infinity on an empty side: a `ThreeWayChoice`.

    Returns
    -------
    int
        u in 0, ..., N.

    Notes
    -----
    The range low..high is made of outcomes of draws, so which sides are empty tells nothing more. A round's four draws
    have scores of sensitivity 1: the median's, and minima over ranges that the earlier draws fix.
    """
    from userdp import _core

    starts, scores = sweep.groups(t)

    def least(first: int, last: int) -> int | None:
        return None if first > last else _core.range_minimum(starts, scores, first, last)

    low, high = 0, domain_size
    for s in tolerances:
        if low == high:
            break
        middle = draw_median(draw, median, sweep.median_groups, low, high, s)
        side = draw(choice, least(low, middle - 1), least(middle, middle), least(middle + 1, high))
        if side == "middle":
            return middle
        if side == "left":
            high = middle - 1
        else:
            low = middle + 1
    return low


LISTED_THRESHOLDS = 2**12
"""The most thresholds whose exact probabilities are listed."""

PADDED_ROWS = 2**26
"""Up to so many possible rows the groups are padded to them, which takes 16 bytes for each."""

NO_THRESHOLD_IS_BETTER = 0
"""What the method "median" releases where the least error seems so high that no threshold is worth a search; fixed."""


class ThresholdClassifier(UserLevelClassifier):
    """Predict by whether a feature is above a threshold that is chosen privately for users: pure DP.

    Points are the integers 1, ..., N. The threshold u is one of 0, ..., N and predicts the second class for x > u.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole privacy budget of a fit, > 0.
    domain_size : int
        N, from 1 to 2**64 - 1. Public: choose it without looking at the data. A real number x counts as the point
        ceil(x), clamped to 1, ..., N; NaN counts as 1. Arrays of integers of 64 bits are kept
        exactly; numbers in lists are read as doubles, whatever is beside them.
    m : int
        The most rows of a user that count, below 2**31; the first m do. Public, and never guessed from the data. Of a
        user with fewer rows a mistake counts for more; see Notes.
    method : {"score", "median"}
        "score", the practical one, draws from all thresholds at once. "median" is Algorithm 1 of Li, Wang, Ye (2024),
        which divides its budget over many draws: it needs many times the users in all settings that were tried.
    alpha : float
        For "median": how much worse than the best threshold the result may be, from 2**-30 to below 1.
    beta : float
        For "median": the probability with which it may be worse than that, in (0, 1). It is a part of the paper's
        statement on how many users are needed, and changes nothing in what is computed.
    feature : int
        The column of X that is used, from 0.
    classes : tuple of two labels, or None
        The labels of x <= u and of x > u. Public; other labels count as the first. None takes them from y, which is not
        private.
    on_invalid : {"clamp", "raise"}
        "raise" refuses NaN, infinities and other labels, which tells something about private values.
    require_groups : bool
        Whether user ids must be given. Without them single rows are protected, which is a weaker promise.
    enrolled : sequence, optional
        The public list of all users, in which those without rows count too. By default the users who have rows.
    random_state : None or int
        None draws from the operating system's cryptographic generator. An integer makes fits reproducible, for tests
        only: it warns, and such a fit is not private.

    Attributes
    ----------
    threshold_ : int
        u, from 0 to N: the only output of the mechanism.
    classes_ : ndarray with shape (2,)
        As given.
    n_users_ : int
        Public.
    unit_ : {"user", "record"}
        Whose data is protected.
    privacy_ : PrivacyRecord
        The guarantee and how the budget was split.
    is_private_ : bool
        False where a setting voids the guarantee.

    Notes
    -----
    *Neighbours.* Datasets are neighbours when they differ in all that one user gave; the list of users is public.

    *Scores.* A threshold fails a user on whom it makes more than t mistakes in m rows; its score K(u; t) is the number
    of users it fails. w mistakes in r < m rows count as ceil(w m / r). Replacing one user changes K(u; t) by at most 1
    for every u, and so every minimum over thresholds: docs/proofs/user_level_scores.md.

    *Method "score".* For m < 4, t = 0 and the whole budget goes to one exponential mechanism over all N + 1 thresholds
    with the score K(u; t). For larger m, 3/10 of the budget chooses t (`private_t`) and 7/10 the threshold; the two
    compose to epsilon. These constants were chosen by simulation: docs/performance.md.

    *Method "median".* For m > 1, half of the budget estimates the least error (`private_min_error`), from which t
    follows; the other half is divided by 4 T, with T the number of rounds, each of which draws a median
    (`private_median`) and compares three noisy counts. For m = 1, t = 0 and all of the budget goes to the rounds. A
    search that ends early has still spent all of epsilon.

    *Time.* Computing the scores is not constant time, and neither is "median", whose number of rounds is drawn. The
    draw of "score" is, and up to 2**26 rows (n times m) it does not depend on how many rows there are.

    References
    ----------
    Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024), section 5.

    Examples
    --------
    >>> import numpy as np
    >>> people = np.repeat(np.arange(500), 8)
    >>> hours = np.random.default_rng(1).integers(1, 101, size=4000)
    >>> passed = hours > 60
    >>> learner = ThresholdClassifier(epsilon=1, domain_size=100, m=8, classes=(False, True))
    >>> learner = learner.fit(hours[:, None], passed, groups=people)
    >>> 50 <= learner.threshold_ <= 70
    True
    >>> learner.predict([[5], [95]])
    array([False,  True])
    >>> {part: str(spent) for part, spent in learner.privacy_.budget.items()}
    {'choice of t': '3/10', 'threshold': '7/10'}
    """

    released: ClassVar[tuple[str, ...]] = ("threshold_",)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        domain_size: int,
        m: int | None = None,
        method: str = "score",
        alpha: float = 0.1,
        beta: float = 0.1,
        feature: int = 0,
        classes: Sequence[Any] | None = (0, 1),
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Sequence[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain_size = domain_size
        self.m = m
        self.method = method
        self.alpha = alpha
        self.beta = beta
        self.feature = feature
        self.classes = classes
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> ThresholdClassifier:
        """Choose a threshold.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, features)
        y : array-like with shape (rows,)
            Labels.
        groups : array-like with shape (rows,)
            User ids: integers, strings, or hashable objects such as UUIDs.

        Returns
        -------
        ThresholdClassifier
            This object.

        Raises
        ------
        TypeError, ValueError
            For bad parameters, shapes and types, and for missing user ids.
        """
        return self._fit(X, y, groups)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The second class for rows above the threshold, the first for others.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, features)

        Returns
        -------
        ndarray with shape (rows,)
        """
        check_is_fitted(self)
        rows = self._numbers(X, reset=False)
        above = self._points(rows) > np.uint64(self.threshold_)
        predicted: npt.NDArray[Any] = self.classes_[above.astype(np.intp)]
        return predicted

    def _check_parameters(self) -> None:
        super()._check_parameters()
        read_domain_size(self.domain_size)
        if self.method not in ("score", "median"):
            raise ValueError(f"method must be 'score' or 'median'; got {shown(self.method)}")
        accuracy(self.alpha)
        open_unit_interval(self.beta, "beta")
        if not is_integer(self.feature) or self.feature < 0:
            raise ValueError(f"feature must be the number of a column of X, from 0; got {shown(self.feature)}")

    def _most(self) -> int:
        return 1 if self.m is None else positive(self.m, "m")

    def _budget(self) -> Budget:
        if self.method == "score":
            return split_budget(self.epsilon, t_shares(self._most(), "threshold"))
        least_error = 0 if self._most() == 1 else 4
        return split_budget(self.epsilon, {"least error": least_error, "medians": 1, "comparisons": 3})

    def _read_X(self, X: Any) -> npt.NDArray[np.uint64]:
        """The points: other columns are not needed."""
        return self._points(super()._read_X(X))

    def _points(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        if self.feature >= rows.shape[1]:
            raise ValueError(f"feature is {self.feature}, and X has {rows.shape[1]} columns")
        return points_of(rows[:, self.feature], read_domain_size(self.domain_size))

    def _program(self, data: UserData) -> Program:
        from userdp import _core

        rows = _core.ThresholdSweep(data.X, data.labels, data.users, data.n_users, data.m, self.domain_size)
        sweep = Sweep(rows)
        return self._score_program(sweep, data) if self.method == "score" else self._median_program(sweep, data)

    def _score_program(self, sweep: Sweep, data: UserData) -> Program:
        budget = self._budget()
        of_t = ExponentialMechanism(epsilon=budget.get("choice of t", budget["threshold"]), sensitivity=1)
        of_thresholds = GroupedExponentialMechanism(epsilon=budget["threshold"], sensitivity=1)

        # How many rows people have is private, and the time of a draw grows with the number of groups.
        most_rows = data.n_users * data.m
        slots = most_rows + 1 if most_rows <= PADDED_ROWS else 0

        def program(draw: Draw) -> int:
            t = choose_t(draw, of_t, data.m, sweep.minimal_errors, data.n_users)
            starts, scores = sweep.groups(t, slots)
            return int(draw(of_thresholds, GroupedScores(starts, scores, self.domain_size)))

        return program

    def _median_program(self, sweep: Sweep, data: UserData) -> Program:
        budget, alpha = self._budget(), accuracy(self.alpha)
        rounds = rounds_of_search(alpha)
        median = GroupedExponentialMechanism(epsilon=equal_part(budget["medians"], rounds), sensitivity=1)
        choice = ThreeWayChoice(equal_part(budget["comparisons"], rounds), data.n_users)
        tolerances = median_tolerances(data.m, rounds)

        def t_of(draw: Draw) -> int | None:
            if data.m == 1:
                return 0
            comparison = one_comparison(budget["least error"], alpha / 6, data.n_users)
            return t_of_error(data.m, estimate_min_error(draw, comparison, sweep.minimal_errors(), alpha / 6), alpha)

        def program(draw: Draw) -> int:
            t = t_of(draw)
            if t is None:
                return NO_THRESHOLD_IS_BETTER
            return search(
                draw,
                sweep,
                domain_size=self.domain_size,
                t=t,
                tolerances=tolerances,
                median=median,
                choice=choice,
            )

        return program

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        size = read_domain_size(self.domain_size)
        if size >= LISTED_THRESHOLDS:
            raise BudgetError(
                f"the exact law has {size + 1} thresholds, and at most {LISTED_THRESHOLDS} are listed; audit the same "
                "learner with a smaller domain_size"
            )
        return range(size + 1)

    def _accept(self, outcome: Any) -> None:
        self.threshold_ = int(outcome)
