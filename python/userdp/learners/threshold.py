"""Thresholds on one feature from users with several examples each: PrivateThreshold, [LWY24, Algorithm 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.concepts.points import PublicPoints, WholePoints, read_domain_size, read_points_parameter
from userdp.estimators import fields
from userdp.estimators.base import PointReader, UserLevelClassifier, check_rising
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ReleasePlan, check_listed, equal_part
from userdp.estimators.selection import FITTED_DOC, ScoreSelector, drawn_by
from userdp.exact.numbers import Epsilon, parse_level, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.learners.median import draw_median, tolerance_of_median
from userdp.learners.min_error import accuracy, estimate_min_error, one_comparison
from userdp.learners.tolerance import Counts, PrivateMistakeTolerance, separation, t_shares
from userdp.mechanisms import DiscreteLaplace, GroupedExponentialMechanism, GroupedScores, PermuteAndFlip
from userdp.mechanisms.base import SupportsDraw
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import Grid
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp import _core

Count = int | None
"""A count in 0, ..., n_users, or None for infinity: there is nothing on that side."""

MARGIN = 64
"""Noisy counts are clamped so many scales beyond 0 and n_users, which noise exceeds with probability e**-64."""


class ThreeWayChoice:
    """Choose the least of three counts in 0, ..., n_users after noise: the comparison of [LWY24, Algorithm 1]."""

    # The choice is the middle if v_middle is less than both others, else left if v_left < v_right, else right. A side
    # that is None is infinite; noise is drawn for it as well. Each noisy count is epsilon / 3 differentially private
    # where a user changes it by at most 1, and which sides are None is public; the choice is a function of the three.

    def __init__(self, epsilon: Epsilon, n_users: int) -> None:
        part = equal_part(epsilon, 3)
        margin = math.ceil(MARGIN / Fraction(float(parse_level(part))))
        self._noise = DiscreteLaplace(epsilon=part, sensitivity=1, bounds=(-margin, n_users + margin))
        try:
            # Up front, before anything is drawn.
            self.certified_epsilon = 3 * self._noise.certified_epsilon
        except BudgetError:
            raise BudgetError(
                f"epsilon leaves {float(part):.2g} for each noisy count, and there are {n_users} users: too little for "
                "exact noise; use a larger epsilon, or a method that draws once"
            ) from None
        self._width = n_users + 2 * margin + 1
        self._distribution = lru_cache(maxsize=None)(self._exact)

    def _draw(self, source: _core.Source, left: Count, middle: int, right: Count) -> str:
        noisy = [self._noise._draw(source, 0 if count is None else count) for count in (left, middle, right)]
        v_left, v_middle, v_right = (
            math.inf if count is None else value for count, value in zip((left, middle, right), noisy, strict=True)
        )
        if v_middle < min(v_left, v_right):
            return "middle"
        return "left" if v_left < v_right else "right"

    def pmf(self, left: Count, middle: int, right: Count) -> Pmf:
        """The exact distribution of the choice: "left", "middle" or "right"."""
        return self._distribution(left, middle, right)

    def _exact(self, left: Count, middle: int, right: Count) -> Pmf:
        at_left, above_left = self._noisy(left)
        at_middle, above_middle = self._noisy(middle)
        at_right, above_right = self._noisy(right)
        chosen_middle = sum(map(math.prod, zip(at_middle, above_left, above_right, strict=True)))
        # Left is chosen where v_left < v_right and v_left <= v_middle.
        from_middle = map(int.__add__, at_middle, above_middle)
        chosen_left = sum(map(math.prod, zip(at_left, above_right, from_middle, strict=True)))
        sides = ((at_left, above_left), (at_middle, above_middle), (at_right, above_right))
        whole = math.prod(at[0] + above[0] for at, above in sides)
        chosen_right = whole - chosen_left - chosen_middle
        return Pmf(("left", "middle", "right"), (chosen_left, chosen_middle, chosen_right))

    def _noisy(self, count: Count) -> tuple[list[int], list[int]]:
        """For each finite value in order, the weights of a noisy count equal to it and of one above it."""
        if count is None:
            return [0] * self._width, [1] * self._width
        weights = self._noise.pmf(count).weights
        total = sum(weights)
        return list(weights), [total - up_to for up_to in accumulate(weights)]


class Sweep:
    """A `ThresholdSweep` that answers a question once: a program is run again for each path of its distribution."""

    def __init__(self, sweep: _core.ThresholdSweep) -> None:
        self.minimal_errors = lru_cache(maxsize=None)(sweep.minimal_errors)
        self.groups = lru_cache(maxsize=None)(sweep.groups)
        self.median_groups = lru_cache(maxsize=None)(sweep.median_groups)


DECAY = Fraction(2, 3)
"""A round leaves at most this part of the examples that the one before it left."""


def rounds_of_search(alpha: Fraction) -> int:
    """Return how many rounds leave at most a part alpha / 2 of the examples: T = ceil(ln(2 / alpha) / ln(3 / 2))."""
    # The integer is what the budget is divided by. With the number before rounding up, the rounds would spend more than
    # there is.
    rounds, left = 0, Fraction(1)
    while left > alpha / 2:
        rounds, left = rounds + 1, left * DECAY
    return rounds


def median_tolerances(m: int, rounds: int) -> list[int]:
    """Return for each round how many samples of a user beside the median are no offence."""
    return [tolerance_of_median(m, float(DECAY**k)) for k in range(rounds)]


def t_of_error(m: int, error: Fraction, alpha: Fraction) -> int | None:
    """Return the t that tells a hypothesis near the least error from one that is worse by alpha; None where none is."""
    low, high = error + alpha / 6, min(error + alpha / 3, Fraction(1))
    if low >= 1:
        return None
    t, _, _ = separation(m, float(low), float(high))
    return t


def t_of_least_error(
    draw: Sampler, budget: Budget, table: UserTable, minimal_errors: Callable[[], Counts], alpha: Fraction
) -> int | None:
    """Return the t that follows from a private estimate of the least error; 0 where users have one row."""
    if table.m == 1:
        return 0
    comparison = one_comparison(budget["least error"], alpha / 6, table.n_users)
    return t_of_error(table.m, estimate_min_error(draw, comparison, minimal_errors(), alpha / 6), alpha)


def search(
    draw: Sampler,
    sweep: Sweep,
    *,
    domain_size: int,
    t: int,
    tolerances: Sequence[int],
    median: GroupedExponentialMechanism,
    choice: SupportsDraw,
) -> int:
    """Bisect 0, ..., N as a part of a program: `choice` says whether a drawn median, or one of its sides, is best."""
    # The range low..high is made of outcomes of draws, so which sides are empty (None) tells nothing more. A round's
    # four draws have scores of sensitivity 1: the median's, and minima over ranges that the earlier draws fix.
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


@estimator
class ThresholdClassifier(PointReader, ScoreSelector, UserLevelClassifier):
    """Predict by whether a feature is above a threshold that is chosen privately for users: pure DP.

    The points are public: the integers 1, ..., N (`domain_size`), or low, low + step, ..., high (`points`). Exactly one
    of the two is needed. The threshold u is in units of the data, and predicts the second class for x > u; with
    `decreasing`, for x <= u. The wrong direction fits no better than a constant, and nothing in the data may say so.

    Attributes
    ----------
    threshold_ : int or float
        u, the only output of the mechanism. With `domain_size` an integer from 0 to N; with `points` one of
        low - step/2, low + step/2, ..., high + step/2, halfway between points. Every x counts as above the first
        and none as above the last, those beyond the ends included.

    Notes
    -----
    *Neighbors.* Datasets are neighbors when they differ in all that one user gave; the list of users is public.

    *Scores.* A threshold fails a user on whom it makes more than t mistakes in m rows; its score K(u; t) is the number
    of users it fails. w mistakes in r < m rows count as ceil(w m / r). Replacing one user changes K(u; t) by at most 1
    for every u, and so every minimum over thresholds: docs/proofs/user_level_scores.md.

    *Method "score".* For m < 4, t = 0 and the whole budget goes to one draw over all N + 1 thresholds with the score
    K(u; t): by permute-and-flip for few thresholds, by the exponential mechanism for many, see `mechanism`. For larger
    m, 3/10 of the budget chooses t (`PrivateMistakeTolerance`) and 7/10 the threshold; the two compose to epsilon.
    These constants were chosen by simulation: docs/performance.md.

    *Method "median".* For m > 1, half of the budget estimates the least error (`PrivateMinError`), from which t
    follows; the other half is divided by 4 T, with T the number of rounds, each of which draws a median
    (`PrivateMedian`) and compares three noisy counts. For m = 1, t = 0 and all of the budget goes to the rounds. A
    search that ends early has still spent all of epsilon.

    *Time.* Computing the scores is not constant time, and neither is "median", whose number of rounds is drawn. The
    draw of "score" is. By permute-and-flip its time depends on the number of thresholds, and by the exponential
    mechanism not on how many rows there are, up to 2**26 of them (n times m).

    References
    ----------
    Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024), section 5. [LWY24, Theorem 5.2].

    Examples
    --------
    >>> import numpy as np
    >>> users = np.repeat(np.arange(500), 8)
    >>> hours = np.random.default_rng(1).integers(1, 101, size=4000)
    >>> passed = hours > 60
    >>> learner = ThresholdClassifier(epsilon=1, domain_size=100, m=8, classes=(False, True))
    >>> learner = learner.fit(hours[:, None], passed, groups=users)
    >>> 50 <= learner.threshold_ <= 70
    True
    >>> learner.predict([[5], [95]])
    array([False,  True])
    >>> {part: str(spent) for part, spent in learner.privacy_.budget.items()}
    {'choice of t': '3/10', 'threshold': '7/10'}

    Wages in steps of a tenth:

    >>> wages, rich = hours / 10, hours > 60
    >>> learner = ThresholdClassifier(epsilon=1, points=(0, 10, 0.1), m=8, classes=(False, True))
    >>> 5 < learner.fit(wages[:, None], rich, groups=users).threshold_ < 7
    True
    """

    released: ClassVar[tuple[str, ...]] = ("threshold_",)
    without_rows: ClassVar[str] = "Users without rows make no mistake under any threshold, and so favor none."

    domain_size: int | None = fields.parameter(
        default=None,
        check=fields.or_none(lambda value, name: read_domain_size(value)),
        kind="int, optional",
        doc="""
        N, from 1 to 2**64 - 1: the points are 1, ..., N. Public: choose it without looking at the data. A real number x
        counts as the point ceil(x), clamped to 1, ..., N, so that 0 and 1 are one point; what is no number counts as 1.
        """,
    )
    points: tuple[Any, Any, Any] | None = fields.parameter(
        default=None,
        check=fields.or_none(read_points_parameter),
        kind="triple of numbers, optional",
        doc="""
        (low, high, step), in place of `domain_size`: for columns with decimals, or from 0. Public, like it. The points
        are low, low + step, ..., high, exactly: 0.1 is a tenth. A number x counts as the nearest point, halfway as the
        smaller one, and beyond the ends as the end, so that rounding such as that of 0.1 + 0.2 moves no number to
        another point; what is no number counts as low. For uneven cuts see `userdp.concepts.DecisionStumps`.
        """,
    )
    method: str = fields.choice(
        ("score", "median"),
        default="score",
        doc="""
        "score", the practical one, draws from all thresholds at once. "median" is [LWY24, Algorithm 1], which divides
        its budget over many draws: it needs many times the users in all settings that were tried.
        """,
    )
    alpha: float = fields.parameter(
        default=0.1,
        check=lambda value, name: accuracy(value),
        kind="float",
        doc='For "median": how much worse than the best threshold the result may be, from 2**-30 to below 1.',
    )
    beta: float = fields.open_unit(
        default=0.1,
        doc="""
        For "median": the probability with which it may be worse than that, in (0, 1). It is a part of the paper's
        statement on how many users are needed, and changes nothing in what is computed.
        """,
    )
    feature: int = fields.count(default=0, least=0, doc="The column of X that is used, from 0.")
    decreasing: bool = fields.flag(
        default=False,
        doc="""
        False predicts the second class for points above the threshold, True for all others. Public, like the order of
        `classes`, which must not be falling where these are numbers: (1, 0) would turn the direction around in silence.
        """,
    )

    def _lacking(self, grouped: bool) -> dict[str, str]:
        facts = super()._lacking(grouped)
        if self.domain_size is None and self.points is None:
            facts["domain_size or points"] = "the points 1, ..., N or (low, high, step)"
        return facts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.domain_size is not None and self.points is not None:
            raise ValueError(
                "only one of domain_size (points 1, ..., N) and points (low, high, step) is taken; got "
                f"domain_size={short_repr(self.domain_size)} and points={short_repr(self.points)}"
            )
        check_rising(self.classes, "and decreasing=True if points above the threshold have the smaller label")
        if self.method != "score" and self.mechanism == "permute-and-flip":
            raise ValueError(
                "mechanism='permute-and-flip' is for method='score'; method='median' draws its medians by the "
                "exponential mechanism"
            )

    _fitted_doc = FITTED_DOC | UserLevelClassifier._fitted_doc

    def _n_candidates(self) -> int:
        return self._points().size + 1

    def _points(self) -> PublicPoints:
        """What numbers are read as."""
        if self.points is not None:
            return read_points_parameter(self.points, "points")
        return WholePoints(read_domain_size(self.domain_size))

    def _predicts_second(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        return (rows > np.uint64(self._points().place(self.threshold_))) != self.decreasing

    def _largest_point(self) -> int:
        return self._points().largest

    def _columns(self) -> int:
        return int(self.feature) + 1

    def _read_X(self, grid: Grid) -> npt.NDArray[np.uint64]:
        """The points: other columns are not needed."""
        rows = super()._read_X(grid)
        if self.feature >= rows.shape[1]:
            raise ValueError(f"feature is {self.feature}, and X has {rows.shape[1]} columns")
        return self._points().read(rows[:, self.feature])

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[np.uint8]:
        """Which rows have the label that is predicted above the threshold."""
        return super()._read_y(y, n_rows) ^ np.uint8(self.decreasing)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        m = 1 if self.m is None else int(self.m)
        flips = self.method == "score" and self._flips()
        if self.method == "score":
            budget = self._budget_of(t_shares(m, "threshold"), "threshold", flips)
            program = partial(self._by_score, budget, flips)
        else:
            budget = Budget.of(self.epsilon, {"least error": 0 if m == 1 else 4, "medians": 1, "comparisons": 3})
            program = partial(self._by_medians, budget)
        outcomes = self._listed_if(flips, self._listed)
        return ReleasePlan(budget, program, outcomes, lambda drawn: {"threshold_": drawn, **drawn_by(flips)})

    def _sweep(self, table: UserTable) -> Sweep:
        from userdp import _core

        size = self._points().size
        return Sweep(_core.ThresholdSweep(table.X, table.labels, table.users, table.n_users, table.m, size))

    def _by_score(self, budget: Budget, flips: bool, table: UserTable) -> AdaptiveMechanism:
        sweep, points = self._sweep(table), self._points()
        part = budget.parts.get("choice of t", budget["threshold"])  # without a share nothing is drawn
        tolerance = PrivateMistakeTolerance(epsilon=part, n_users=table.n_users)
        kind = PermuteAndFlip if flips else GroupedExponentialMechanism
        of_thresholds = kind(epsilon=budget["threshold"], sensitivity=1)

        # How many rows users have is private, and the time of a draw grows with the number of groups.
        most_rows = table.n_users * table.m
        slots = most_rows + 1 if most_rows <= PADDED_ROWS else 0

        def program(draw: Sampler) -> int | float:
            t = tolerance.choose(draw, table.m, sweep.minimal_errors)
            starts, scores = sweep.groups(t, slots)
            if flips:
                ends = np.append(starts[1:], np.uint64(points.size + 1))
                return points.threshold(draw(of_thresholds, np.repeat(scores, (ends - starts).astype(np.int64))))
            return points.threshold(draw(of_thresholds, GroupedScores(starts, scores, points.size)))

        return program

    def _by_medians(self, budget: Budget, table: UserTable) -> AdaptiveMechanism:
        sweep, points, alpha = self._sweep(table), self._points(), accuracy(self.alpha)
        rounds = rounds_of_search(alpha)
        median = GroupedExponentialMechanism(epsilon=equal_part(budget["medians"], rounds), sensitivity=1)
        choice = ThreeWayChoice(equal_part(budget["comparisons"], rounds), table.n_users)
        tolerances = median_tolerances(table.m, rounds)

        def program(draw: Sampler) -> int | float:
            t = t_of_least_error(draw, budget, table, sweep.minimal_errors, alpha)
            if t is None:
                return points.threshold(NO_THRESHOLD_IS_BETTER)
            return points.threshold(
                search(draw, sweep, domain_size=points.size, t=t, tolerances=tolerances, median=median, choice=choice)
            )

        return program

    def _listed(self) -> Sequence[Hashable]:
        points = self._points()
        check_listed(
            points.size + 1, "audit the same learner with a smaller domain_size, or fewer points", LISTED_THRESHOLDS
        )
        return [points.threshold(place) for place in range(points.size + 1)]
