"""PAC learning where some hypothesis is right on everybody's examples (GKKMMZ23, Theorem 4)."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from userdp.learners._class_errors import ClassErrors, check_work
from userdp.learners._concept_class import ConceptClass
from userdp.learners._concept_classifier import ConceptClassifier
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget, split_budget
from userdp.learners._program import Program
from userdp.learners._ranges import open_unit_interval
from userdp.mechanisms import ExponentialMechanism

__all__ = ["RealizablePACClassifier"]

Self = TypeVar("Self", bound="RealizablePACClassifier")


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
    >>> from userdp.learners import RealizablePACClassifier, Thresholds
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
