"""PAC learning of a finite class with pure DP: where some hypothesis is right on all examples, and agnostically."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.concepts.classes import ConceptClass
from userdp.concepts.errors import MAX_M, ClassErrors, check_work, surrogate_scores
from userdp.estimators.base import UserLevelClassifier
from userdp.estimators.privacy import Budget, split_budget
from userdp.exact.numbers import open_unit_fraction, open_unit_interval, positive, shown
from userdp.exceptions import BudgetError
from userdp.learners.clipped_pairwise import clipping_bound
from userdp.learners.min_error import estimate_min_error, one_comparison
from userdp.learners.scores import clipped_pairwise_scores
from userdp.learners.threshold import t_of_error
from userdp.learners.tolerance import choose_t, t_shares
from userdp.mechanisms import ExponentialMechanism
from userdp.mechanisms.composed import Draw, Program
from userdp.users.contributions import UserData

MAX_LISTED = 2**16
"""The most outcomes of an exact law."""


class ConceptClassifier(UserLevelClassifier):
    """A classifier that predicts by one hypothesis of a representation, or of the class itself."""

    released: ClassVar[tuple[str, ...]] = ("concept_",)

    concepts: Any
    representation: Any
    alpha: Any

    @property
    def hypotheses(self) -> ConceptClass:
        """What is chosen from: the representation, or else the class."""
        hypotheses: ConceptClass = self.concepts if self.representation is None else self.representation
        return hypotheses

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.concepts, ConceptClass):
            raise TypeError(f"concepts must be a concept class, such as FiniteClass(...); got {shown(self.concepts)}")
        if self.representation is not None:
            if not isinstance(self.representation, ConceptClass):
                raise TypeError(f"representation must be a concept class or None; got {shown(self.representation)}")
            domains = self.concepts.domain_size, self.representation.domain_size
            if domains[0] != domains[1]:
                raise ValueError(f"concepts and representation must be over as many points; got {domains}")
        open_unit_interval(self.alpha, "alpha")

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        return self._listed()

    def _listed(self) -> range:
        """The hypotheses, when they are few enough for an exact law."""
        if self.hypotheses.size > MAX_LISTED:
            raise BudgetError(
                f"the law over {self.hypotheses.size} hypotheses is not listed (limit {MAX_LISTED}); audit a smaller "
                "class"
            )
        return range(self.hypotheses.size)

    def _accept(self, outcome: Any) -> None:
        self.concept_ = outcome

    def describe(self) -> str:
        """When the chosen hypothesis predicts the second class, in words."""
        check_is_fitted(self)
        return self.hypotheses.describe(self.concept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict classes by the chosen hypothesis.

        Parameters
        ----------
        X : array-like with shape (rows, features)

        Returns
        -------
        ndarray with shape (rows,)
            Entries of `classes_`.
        """
        check_is_fitted(self)
        rows = self._numbers(X, reset=False)
        second = self.hypotheses.predict(self.hypotheses.points(rows), self.concept_, self.concept_ + 1)[:, 0]
        predictions: npt.NDArray[Any] = self.classes_[second.astype(np.intp)]
        return predictions


Self = TypeVar("Self", bound=ConceptClassifier)


class RealizablePACClassifier(ConceptClassifier):
    """Choose a hypothesis that errs on few users at all: pure-DP PAC learning in the realizable case.

    A hypothesis is scored by the number of users with any mistake among their first min(m, floor(1 / alpha)) rows, and
    one is drawn by the exponential mechanism. For labels that no hypothesis of the class explains use
    `AgnosticPACClassifier`.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, above 2**-35 and below 88.
    concepts : ConceptClass
        The public class of hypotheses.
    representation : ConceptClass, optional
        What to choose from instead, such as `HashedPointFunctions` for `PointFunctions`; public, over as many points.
        It can as well be given as `concepts`.
    m : int
        The most rows of a user that count, the first m; public. Needed with `groups`.
    alpha : float
        The error that is aimed at, in (0, 1): only the first floor(1 / alpha) rows of a user count, because with more a
        hypothesis of error alpha errs on almost everybody.
    beta : float
        The probability of failure in `users_needed`, in (0, 1).
    classes : pair of labels, or None
        The public labels; hypotheses say False for the first and True for the second. None takes them from y, which is
        not private.
    on_invalid : {"clamp", "raise"}
        What to do about values that are no numbers and labels outside `classes`: "clamp" maps them to a public default
        (the point that the class gives NaN; the first class), "raise" raises errors, which is not private.
    require_groups : bool
        True refuses to fit without user ids. False then protects single rows.
    enrolled : sequence, optional
        The public list of all users, those without rows included.
    random_state : None or int
        None draws from the operating system's generator. An integer is for tests: it warns and voids privacy.

    Attributes
    ----------
    concept_ : int
        The index of the hypothesis that was drawn: all that depends on the data. `describe` says it in words.
    classes_ : ndarray with shape (2,)
    n_users_ : int
    unit_ : {"user", "record"}
    privacy_ : PrivacyRecord
    is_private_ : bool

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbours differ in all the rows of one user; n and the list of users are
    public. *Budget.* All of it is spent on one selection. *Proof.* Whether a user has a mistake among the first rows
    depends on this user's rows only, so replacing one user changes every score by at most 1, the sensitivity that
    `ExponentialMechanism` is given. It weighs every hypothesis of the public list. Users with fewer rows are counted in
    the same way, and those without rows not at all. See docs/proofs/user_level_scores.md.

    *Utility.* See `users_needed`: about log K / (epsilon alpha m) users suffice, where for m = 1 the item-level rate
    log K / (epsilon alpha) is paid.

    References
    ----------
    GKKMMZ23: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per
    User" (NeurIPS 2023), Theorem 4 and Lemma 22.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.learners import RealizablePACClassifier
    >>> from userdp.concepts import Thresholds
    >>> X = np.tile([[2], [4], [5], [9]], (300, 1))
    >>> y, users = X[:, 0] > 4, np.repeat(np.arange(300), 4)
    >>> model = RealizablePACClassifier(epsilon=1, concepts=Thresholds(10), m=4).fit(X, y.astype(int), groups=users)
    >>> model.describe(), model.predict([[3], [7]]).tolist()
    ('x > 4', [0, 1])
    >>> model.privacy_.is_private, model.privacy_.released
    (True, ('concept_',))
    """

    def __init__(
        self,
        *,
        epsilon: Any,
        concepts: ConceptClass,
        representation: ConceptClass | None = None,
        m: int | None = None,
        alpha: float = 0.1,
        beta: float = 0.1,
        classes: Any = (0, 1),
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.concepts = concepts
        self.representation = representation
        self.m = m
        self.alpha = alpha
        self.beta = beta
        self.classes = classes
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any, groups: Any = None) -> Self:
        """Draw a hypothesis.

        Parameters
        ----------
        X : array-like with shape (rows, features)
        y : array-like with shape (rows,)
            Labels. Those outside `classes` count as the first class.
        groups : array-like with shape (rows,)
            User ids: integers, strings or hashable objects. None protects rows, if `require_groups` is False.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad parameters, shapes and user ids; never for a private value, unless on_invalid="raise".
        BudgetError
            When the class is too large for so many users.
        """
        return self._fit(X, y, groups)

    def users_needed(self) -> int:
        """How many users suffice, by the theorem with explicit constants. Public.

        Returns
        -------
        int
            With so many users the hypothesis that is drawn has an error of at most alpha with probability at least
            1 - beta, if the users' rows are independent draws and some hypothesis has an error of at most alpha / 100.
            A representation adds the probability that it lacks such a hypothesis.
        """
        self._check_parameters()
        size, failure = self.hypotheses.size, open_unit_interval(self.beta, "beta") / 3
        epsilon = float(self._budget()["selection"])
        # The best hypothesis looks bad; some bad one looks good; the mechanism is far off: beta / 3 each.
        users = max(
            37.5 * math.log(1 / failure), 4.5 * math.log(size / failure), 40 / epsilon * math.log(size / failure)
        )
        return math.ceil(users / (float(self.alpha) * self._rows_that_count(1 if self.m is None else self.m)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        open_unit_interval(self.beta, "beta")

    def _rows_that_count(self, m: int) -> int:
        return min(m, math.floor(1 / float(self.alpha)))

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, {"selection": 1})

    def _program(self, data: UserData) -> Program:
        kept = data.first(self._rows_that_count(data.m))
        check_work(self.hypotheses, kept.n_users, kept.m)
        scores = ClassErrors(self.hypotheses, kept).above(0)
        mechanism = ExponentialMechanism(epsilon=self._budget()["selection"], sensitivity=1)
        return lambda draw: draw(mechanism, scores)


METHODS = ("score", "pairwise", "surrogate")

FIXED = 0
"""The hypothesis that is taken where all are as good: public, not what is best on the data."""


class AgnosticPACClassifier(ConceptClassifier):
    """Choose nearly the best hypothesis of a class with pure DP, whatever the labels are.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, above 2**-35 and below 88.
    concepts : ConceptClass
        The public class of hypotheses.
    method : {"score", "pairwise", "surrogate"}
        How hypotheses are compared.

        * "score", the practical default: by the number of users on whom a hypothesis makes more than t mistakes in m,
          for a t that is chosen privately first.
        * "pairwise" (GKKMMZ23, Theorem 40): by how many more mistakes it makes than any other hypothesis, where a user
          counts for at most tau.
        * "surrogate" (LWY24, Theorems 3.4 and 4.6): as "score", with t from a private estimate of the least error, and
          for a representation by way of the concepts near it.
    representation : ConceptClass, optional
        What to choose from instead, such as `HashedPointFunctions` for `PointFunctions`; public, over as many points.
        For methods other than "surrogate" it can as well be given as `concepts`.
    m : int
        The most rows of a user that count, the first m; public. Needed with `groups`.
    alpha : float
        The error in excess of the least that is aimed at, in (0, 1). "score" does not need it.
    tau : int, optional
        For "pairwise": the clipping bound, >= 1. By default a function of alpha and m, see the notes.
    classes : pair of labels, or None
        The public labels; hypotheses say False for the first and True for the second. None takes them from y, which is
        not private.
    on_invalid : {"clamp", "raise"}
        What to do about values that are no numbers and labels outside `classes`: "clamp" maps them to a public default
        (the point that the class gives NaN; the first class), "raise" raises errors, which is not private.
    require_groups : bool
        True refuses to fit without user ids. False then protects single rows.
    enrolled : sequence, optional
        The public list of all users, those without rows included.
    random_state : None or int
        None draws from the operating system's generator. An integer is for tests: it warns and voids privacy.

    Attributes
    ----------
    concept_ : int
        The index of the hypothesis that was drawn: all that depends on the data. `describe` says it in words.
    classes_ : ndarray with shape (2,)
    n_users_ : int
    unit_ : {"user", "record"}
    privacy_ : PrivacyRecord
    is_private_ : bool

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbours differ in all the rows of one user; n and the list of users are
    public. The last step is always one draw of `ExponentialMechanism` over every hypothesis of the public list, on
    integer scores (lower is better); what was drawn before it is not released. Proofs of the sensitivities, which rest
    on every score being made of one term for each user: docs/proofs/user_level_scores.md.

    *"score".* K(h; t) counts the users with more than t mistakes in m; a user with r < m rows and w mistakes counts as
    ceil(w m / r) in m. Sensitivity 1. Budget: 3/10 for t, by the exponential mechanism on first-crossing scores of the
    least K(h; t) over h, and 7/10 for the selection; all for the selection up to m = 3, where t is 0.

    *"pairwise".* score(h) = max over g != h of sum_i clip(w_i(h) - w_i(g), -tau, tau), with w_i the mistakes on user
    i's rows, not scaled. (The paper prints the difference with the opposite sign, which would choose the worst.)
    Sensitivity 2 min(tau, m). All of the budget is for the selection. The default tau is the least integer above
    alpha m / 2 + sqrt(2 m max(1/2, ln(20 / (alpha sqrt(m))))), at most m.

    *"surrogate".* For m = 1 all of the budget is for the selection, at t = 0. Else half is for an estimate e of the
    least error of the class by `private_min_error` with accuracy alpha / 6; t separates errors of e + alpha / 6 from
    e + alpha / 3; and half is for the selection. The score is min over concepts c of K(c; t) + D(c, h), with D(c, h)
    the number of users on whose rows c and h differ at all: sensitivity 2. Without a representation h is one of the c,
    the score is K(h; t), and the sensitivity 1. If e + alpha / 6 >= 1, every hypothesis is good enough: the one with
    index 0 is taken.

    *Cost.* All hypotheses are evaluated on all rows, "pairwise" compares all pairs of them on all users, and
    "surrogate" with a representation all concepts with all hypotheses on all rows. Too much work is refused, with an
    estimate.

    References
    ----------
    GKKMMZ23: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per
    User" (NeurIPS 2023), Theorem 40. LWY24: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning"
    (ICML 2024), Theorems 3.4 and 4.6.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.learners import AgnosticPACClassifier
    >>> from userdp.concepts import Thresholds
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(500), 8)
    >>> X = rng.integers(1, 11, size=(4000, 1))
    >>> y = (X[:, 0] > 4) ^ (rng.random(4000) < 0.2)
    >>> model = AgnosticPACClassifier(epsilon=2, concepts=Thresholds(10), m=8).fit(X, y.astype(int), groups=users)
    >>> model.describe()
    'x > 4'
    >>> {part: float(spent) for part, spent in model.privacy_.budget.items()}
    {'choice of t': 0.6, 'selection': 1.4}
    """

    def __init__(
        self,
        *,
        epsilon: Any,
        concepts: ConceptClass,
        method: str = "score",
        representation: ConceptClass | None = None,
        m: int | None = None,
        alpha: float = 0.1,
        tau: int | None = None,
        classes: Any = (0, 1),
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.concepts = concepts
        self.method = method
        self.representation = representation
        self.m = m
        self.alpha = alpha
        self.tau = tau
        self.classes = classes
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any, groups: Any = None) -> Self:
        """Draw a hypothesis.

        Parameters
        ----------
        X : array-like with shape (rows, features)
        y : array-like with shape (rows,)
            Labels. Those outside `classes` count as the first class.
        groups : array-like with shape (rows,)
            User ids: integers, strings or hashable objects. None protects rows, if `require_groups` is False.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad parameters, shapes and user ids; never for a private value, unless on_invalid="raise".
        BudgetError
            When the class is too large for so many users.
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}; got {shown(self.method)}")
        if self.tau is not None:
            positive(self.tau, "tau")
            if self.method != "pairwise":
                raise ValueError(f"tau is for method='pairwise'; got tau={self.tau} and method={self.method!r}")
        if self.method == "surrogate":
            # A sixth of it is the accuracy of the estimate of the least error.
            open_unit_fraction(self.alpha, "alpha", bits=20)
        if self.method != "pairwise" and self.m is not None and self.m > MAX_M:
            raise BudgetError(f"m must be at most {MAX_M} for method={self.method!r}; got {self.m}: keep fewer rows")

    def _budget(self) -> Budget:
        # Without user ids one row counts, whatever m is, and the parts for choosing t are not spent.
        m = 1 if self.m is None else int(self.m)
        shares: dict[str, Fraction] = {"selection": Fraction(1)}
        if self.method == "score":
            shares = t_shares(m, "selection")
        elif self.method == "surrogate" and m > 1:
            shares = {"least error": Fraction(1, 2), "selection": Fraction(1, 2)}
        return split_budget(self.epsilon, shares)

    def _program(self, data: UserData) -> Program:
        programs = {"score": self._by_score, "pairwise": self._by_pairs, "surrogate": self._by_surrogate}
        return programs[self.method](data)

    def _selection(self, sensitivity: int) -> ExponentialMechanism:
        return ExponentialMechanism(epsilon=self._budget()["selection"], sensitivity=sensitivity)

    def _by_score(self, data: UserData) -> Program:
        check_work(self.hypotheses, data.n_users, data.m)
        errors, budget = ClassErrors(self.hypotheses, data), self._budget()
        # Without a share there is one candidate for t, and nothing is drawn.
        choice = ExponentialMechanism(epsilon=budget.get("choice of t", budget["selection"]), sensitivity=1)
        selection = self._selection(1)
        # The exact law follows many paths that ask for the same counts.
        least, above = cache(errors.least), cache(errors.above)

        def program(draw: Draw) -> int:
            t = choose_t(draw, choice, data.m, least, data.n_users)
            chosen: int = draw(selection, above(t))
            return chosen

        return program

    def _by_pairs(self, data: UserData) -> Program:
        check_work(self.hypotheses, data.n_users, data.m)
        tau = math.ceil(clipping_bound(float(self.alpha), data.m)) if self.tau is None else int(self.tau)
        scores = clipped_pairwise_scores(ClassErrors(self.hypotheses, data).mistakes(), tau)
        selection = self._selection(2 * min(tau, data.m))
        return lambda draw: draw(selection, scores)

    def _by_surrogate(self, data: UserData) -> Program:
        proper = self.representation is None
        check_work(self.concepts, data.n_users, data.m)
        if not proper:
            check_work(self.representation, data.n_users, data.m, times=self.concepts.size)
        errors = ClassErrors(self.concepts, data)
        selection = self._selection(1 if proper else 2)
        least = cache(errors.least)
        scores = cache(errors.above if proper else partial(surrogate_scores, self.concepts, self.representation, data))

        def program(draw: Draw) -> int:
            t = self._good_t(draw, least, data) if data.m > 1 else 0
            if t is None:
                return FIXED
            chosen: int = draw(selection, scores(t))
            return chosen

        return program

    def _good_t(self, draw: Draw, least: Callable[[], npt.NDArray[np.int64]], data: UserData) -> int | None:
        """The t that best separates errors that are good enough from those that are not; None if all are."""
        alpha = open_unit_fraction(self.alpha, "alpha")
        comparison = one_comparison(self._budget()["least error"], alpha / 6, data.n_users)
        return t_of_error(data.m, estimate_min_error(draw, comparison, least(), alpha / 6), alpha)
