"""PAC learning of a finite class with pure DP: where some hypothesis is right on all examples, and agnostically."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.concepts.classes import ConceptClass
from userdp.concepts.errors import MAX_M, ClassErrors, check_work, surrogate_scores
from userdp.estimators import fields
from userdp.estimators.base import PointReader, UserLevelClassifier, check_rising
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ReleasePlan, check_listed
from userdp.estimators.selection import FITTED_DOC, ScoreSelector, check_likely_enough, choice_by_scores, drawn_by
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import check_kind, open_unit_fraction, open_unit_interval
from userdp.exceptions import BudgetError
from userdp.learners.clipped_pairwise import clipping_bound
from userdp.learners.scores import clipped_pairwise_scores
from userdp.learners.threshold import t_of_least_error
from userdp.learners.tolerance import PrivateMistakeTolerance, t_shares
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.table import UserTable

MAX_LISTED = 2**16
"""The most outcomes of an exact distribution."""


def _concepts(value: Any, name: str) -> None:
    check_kind(value, ConceptClass, name, "a concept class, such as FiniteClass(...)")


@estimator
class ConceptClassifier(PointReader, ScoreSelector, UserLevelClassifier):
    """A classifier that predicts by one hypothesis of a representation, or of the class itself."""

    released: ClassVar[tuple[str, ...]] = ("concept_",)
    without_rows: ClassVar[str] = "Users without rows make no mistake under any hypothesis, and so favor none."

    concepts: ConceptClass = fields.parameter(
        check=_concepts,
        kind="ConceptClass",
        doc="""
        The public class of hypotheses. Where one holds, the second of `classes` is predicted, which must be the larger
        one where these are numbers: (1, 0) would turn the hypotheses around in silence.
        """,
    )
    representation: ConceptClass | None = fields.parameter(
        default=None,
        check=fields.or_none(_concepts),
        kind="ConceptClass, optional",
        doc="""
        What to choose from instead, such as `HashedPointFunctions` for `PointFunctions`; public, over as many points.
        It can as well be given as `concepts`.
        """,
    )
    alpha: float = fields.open_unit(default=0.1, doc="The error that is aimed at, in (0, 1).")

    _fitted_doc = FITTED_DOC | UserLevelClassifier._fitted_doc

    @property
    def hypotheses(self) -> ConceptClass:
        """What is chosen from: the representation, or else the class."""
        return self.concepts if self.representation is None else self.representation

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_rising(self.classes, "and a class of the opposite hypotheses if they are to hold of the smaller label")
        if self.representation is not None:
            domains = self.concepts.domain_size, self.representation.domain_size
            if domains[0] != domains[1]:
                raise ValueError(f"concepts and representation must be over as many points; got {domains}")

    def _n_candidates(self) -> int:
        return self.hypotheses.size

    def _largest_point(self) -> int:
        return max(self.concepts.largest_point, self.hypotheses.largest_point)

    def _columns(self) -> int:
        return max(self.concepts.n_columns, self.hypotheses.n_columns)

    def _listed(self) -> range:
        """The hypotheses, when they are few enough for an exact distribution."""
        check_listed(self.hypotheses.size, "audit a smaller class", MAX_LISTED)
        return range(self.hypotheses.size)

    def describe(self) -> str:
        """When the chosen hypothesis predicts the second class, in words."""
        check_is_fitted(self)
        return self.hypotheses.describe(self.concept_)

    def _predicts_second(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        return self.hypotheses.predict(self.hypotheses.points(rows), self.concept_, self.concept_ + 1)[:, 0]


@estimator
class RealizablePACClassifier(ConceptClassifier):
    """Choose a hypothesis that errs on few users at all: pure-DP PAC learning in the realizable case.

    A hypothesis is scored by the number of users with any mistake among their first min(m, floor(1 / alpha)) rows, and
    one is drawn by `mechanism`. For labels that no hypothesis of the class explains use
    `AgnosticPACClassifier`.

    Attributes
    ----------
    concept_ : int
        The index of the hypothesis that was drawn: all that depends on the data. `describe` says it in words.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbors differ in all the rows of one user; n and the list of users are
    public. *Budget.* All of it is spent on one selection. *Proof.* Whether a user has a mistake among the first rows
    depends on this user's rows only, so replacing one user changes every score by at most 1, the sensitivity that
    `PermuteAndFlip` or `ExponentialMechanism` is given. Each weighs every hypothesis of the public list. Users with
    fewer rows are counted in the same way, and those without rows not at all. See docs/proofs/user_level_scores.md.

    *Utility.* See `users_needed`: about log K / (epsilon alpha m) users suffice, where for m = 1 the item-level rate
    log K / (epsilon alpha) is paid.

    References
    ----------
    GKKMMZ23: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per
    User" (NeurIPS 2023): [GKKMMZ23, Theorem 4] and [GKKMMZ23, Lemma 22].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.learners import RealizablePACClassifier
    >>> from userdp.concepts import Thresholds
    >>> X = np.tile([[2], [4], [5], [9]], (300, 1))
    >>> y, users = (X[:, 0] > 4).astype(int), np.repeat(np.arange(300), 4)
    >>> model = RealizablePACClassifier(epsilon=1, concepts=Thresholds(10), m=4, classes=(0, 1)).fit(X, y, groups=users)
    >>> model.describe(), model.predict([[3], [7]]).tolist()
    ('x > 4', [0, 1])
    >>> model.privacy_.is_private, model.privacy_.released
    (True, ('concept_',))
    """

    alpha: float = fields.open_unit(
        default=0.1,
        doc="""
        The error that is aimed at, in (0, 1): only the first floor(1 / alpha) rows of a user count, because with more a
        hypothesis of error alpha errs on almost everybody.
        """,
    )
    beta: float = fields.open_unit(default=0.1, doc="The probability of failure in `users_needed`, in (0, 1).")

    def users_needed(self) -> int:
        """How many users suffice, by the theorem with explicit constants. Public.

        Returns
        -------
        int
            With so many users the hypothesis that is drawn has an error of at most alpha with probability at least
            1 - beta, if the users' rows are independent draws and some hypothesis has an error of at most alpha / 100.
            A representation adds the probability that it lacks such a hypothesis.

        Raises
        ------
        ValueError
            For a beta that is too small for weights of 64 bits, however many users there are.
        """
        self._check_parameters()
        size, failure = self.hypotheses.size, open_unit_interval(self.beta, "beta") / 3
        epsilon = float(positive_epsilon(self.epsilon))
        check_likely_enough(float(self.beta), size, positive_epsilon(self.epsilon))
        # The best hypothesis looks bad; some bad one looks good; the mechanism is far off: beta / 3 each.
        tail = size / (2 * failure) if self._flips() else size / failure  # docs/proofs/permute_and_flip.md
        users = max(37.5 * math.log(1 / failure), 4.5 * math.log(size / failure), 40 / epsilon * math.log(tail))
        return math.ceil(users / (float(self.alpha) * self._rows_that_count(1 if self.m is None else self.m)))

    def _rows_that_count(self, m: int) -> int:
        return min(m, math.floor(1 / float(self.alpha)))

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        flips, hypotheses = self._flips(), self.hypotheses
        budget = self._budget_of({"selection": 1}, "selection", flips)
        mechanism = choice_by_scores(epsilon=budget["selection"], sensitivity=1, flips=flips)
        rows = math.floor(1 / float(self.alpha))

        def program(table: UserTable) -> AdaptiveMechanism:
            counted = table.first(min(table.m, rows))
            check_work(hypotheses, counted.n_users, counted.m)
            scores = ClassErrors(hypotheses, counted).above(0)
            return lambda draw: draw(mechanism, scores)

        outcomes = self._listed_if(flips, self._listed)
        return ReleasePlan(budget, program, outcomes, lambda drawn: {"concept_": drawn, **drawn_by(flips)})


METHODS = ("score", "pairwise", "surrogate")

FIXED = 0
"""The hypothesis that is taken where all are as good: public, not what is best on the data."""


@estimator
class AgnosticPACClassifier(ConceptClassifier):
    """Choose nearly the best hypothesis of a class with pure DP, whatever the labels are.

    Attributes
    ----------
    concept_ : int
        The index of the hypothesis that was drawn: all that depends on the data. `describe` says it in words.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, where neighbors differ in all the rows of one user; n and the list of users are
    public. The last step is always one draw by `mechanism` over every hypothesis of the public list, on integer scores
    (lower is better); what was drawn before it is not released. Proofs of the sensitivities, which rest on every score
    being made of one term for each user: docs/proofs/user_level_scores.md.

    *"score".* K(h; t) counts the users with more than t mistakes in m; a user with r < m rows and w mistakes counts as
    ceil(w m / r) in m. Sensitivity 1. Budget: 3/10 for t, by the exponential mechanism on first-crossing scores of the
    least K(h; t) over h, and 7/10 for the selection; all for the selection up to m = 3, where t is 0.

    *"pairwise".* score(h) = max over g != h of sum_i clip(w_i(h) - w_i(g), -tau, tau), with w_i the mistakes on user
    i's rows, not scaled. (The paper prints the difference with the opposite sign, which would choose the worst.)
    Sensitivity 2 min(tau, m). All of the budget is for the selection. The default tau is the least integer above
    alpha m / 2 + sqrt(2 m max(1/2, ln(20 / (alpha sqrt(m))))), at most m. Where that is m, as it is for few rows, it
    would clip nothing, and the score is the number of mistakes on all rows in place of that: sensitivity m, and never
    worse at the same epsilon. A tau that is given is used as in the paper.

    *"surrogate".* For m = 1 all of the budget is for the selection, at t = 0. Else half is for an estimate e of the
    least error of the class by `PrivateMinError` with accuracy alpha / 6; t separates errors of e + alpha / 6 from
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
    User" (NeurIPS 2023): [GKKMMZ23, Theorem 40]. LWY24: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic
    Learning" (ICML 2024): [LWY24, Theorem 3.4] and [LWY24, Theorem 4.6].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.learners import AgnosticPACClassifier
    >>> from userdp.concepts import Thresholds
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(500), 8)
    >>> X = rng.integers(1, 11, size=(4000, 1))
    >>> y = (X[:, 0] > 4) ^ (rng.random(4000) < 0.2)
    >>> model = AgnosticPACClassifier(epsilon=2, concepts=Thresholds(10), m=8, classes=(False, True))
    >>> model = model.fit(X, y, groups=users)
    >>> model.describe()
    'x > 4'
    >>> {part: float(spent) for part, spent in model.privacy_.budget.items()}
    {'choice of t': 0.6, 'selection': 1.4}
    """

    method: str = fields.choice(
        METHODS,
        default="score",
        doc="""
        How hypotheses are compared.

        * "score", the practical default: by the number of users on whom a hypothesis makes more than t mistakes in m,
          for a t that is chosen privately first.
        * "pairwise" ([GKKMMZ23, Theorem 40]): by how many more mistakes it makes than any other hypothesis, where a
          user counts for at most tau.
        * "surrogate" ([LWY24, Theorem 3.4] and [LWY24, Theorem 4.6]): as "score", with t from a private estimate of the
          least error, and for a representation by way of the concepts near it.
        """,
    )
    alpha: float = fields.open_unit(
        default=0.1, doc='The error in excess of the least that is aimed at, in (0, 1). "score" does not need it.'
    )
    tau: int | None = fields.count(
        default=None,
        doc='For "pairwise": the clipping bound, >= 1. By default a function of alpha and m, see the notes.',
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.tau is not None and self.method != "pairwise":
            raise ValueError(f"tau is for method='pairwise'; got tau={self.tau} and method={self.method!r}")
        if self.method == "surrogate":
            # A sixth of it is the accuracy of the estimate of the least error.
            open_unit_fraction(self.alpha, "alpha", bits=20)
        if self.method != "pairwise" and self.m is not None and self.m > MAX_M:
            raise BudgetError(f"m must be at most {MAX_M} for method={self.method!r}; got {self.m}: keep fewer rows")

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        # Without user ids one row counts, whatever m is, and the parts for choosing t are not spent.
        m = 1 if self.m is None else int(self.m)
        shares: dict[str, Fraction] = {"selection": Fraction(1)}
        if self.method == "score":
            shares = t_shares(m, "selection")
        elif self.method == "surrogate" and m > 1:
            shares = {"least error": Fraction(1, 2), "selection": Fraction(1, 2)}
        # The comparisons of an estimate are of noisy counts: pure, and of no bounded range.
        flips = self._flips()
        budget = self._budget_of(shares, "selection", flips, others={"least error"} & shares.keys())
        programs = {"score": self._by_score, "pairwise": self._by_pairs, "surrogate": self._by_surrogate}
        program = partial(programs[self.method], budget, flips)
        outcomes = self._listed_if(flips, self._listed)
        return ReleasePlan(budget, program, outcomes, lambda drawn: {"concept_": drawn, **drawn_by(flips)})

    def _by_score(self, budget: Budget, flips: bool, table: UserTable) -> AdaptiveMechanism:
        check_work(self.hypotheses, table.n_users, table.m)
        errors = ClassErrors(self.hypotheses, table)
        # Without a share there is one candidate for t, and nothing is drawn.
        part = budget.parts.get("choice of t", budget["selection"])
        tolerance = PrivateMistakeTolerance(epsilon=part, n_users=table.n_users)
        selection = choice_by_scores(epsilon=budget["selection"], sensitivity=1, flips=flips)
        # The exact distribution follows many paths that ask for the same counts.
        least, above = cache(errors.least), cache(errors.above)

        def program(draw: Sampler) -> int:
            t = tolerance.choose(draw, table.m, least)
            return draw(selection, above(t))

        return program

    def _by_pairs(self, budget: Budget, flips: bool, table: UserTable) -> AdaptiveMechanism:
        check_work(self.hypotheses, table.n_users, table.m)
        tau = math.ceil(clipping_bound(float(self.alpha), table.m)) if self.tau is None else int(self.tau)
        mistakes = ClassErrors(self.hypotheses, table).mistakes()
        if self.tau is None and tau >= table.m:
            # Nothing would be clipped: totals order hypotheses alike, at half of the sensitivity.
            scores, sensitivity = mistakes.sum(axis=1, dtype=np.int64), table.m
        else:
            scores, sensitivity = clipped_pairwise_scores(mistakes, tau), 2 * min(tau, table.m)
        selection = choice_by_scores(epsilon=budget["selection"], sensitivity=sensitivity, flips=flips)
        return lambda draw: draw(selection, scores)

    def _by_surrogate(self, budget: Budget, flips: bool, table: UserTable) -> AdaptiveMechanism:
        proper = self.representation is None
        check_work(self.concepts, table.n_users, table.m)
        if not proper:
            check_work(self.hypotheses, table.n_users, table.m, times=self.concepts.size)
        errors = ClassErrors(self.concepts, table)
        selection = choice_by_scores(epsilon=budget["selection"], sensitivity=1 if proper else 2, flips=flips)
        least = cache(errors.least)
        scores = cache(errors.above if proper else partial(surrogate_scores, self.concepts, self.hypotheses, table))
        alpha = open_unit_fraction(self.alpha, "alpha")

        def program(draw: Sampler) -> int:
            t = t_of_least_error(draw, budget, table, least, alpha)
            if t is None:  # every hypothesis is good enough
                return FIXED
            return draw(selection, scores(t))

        return program
