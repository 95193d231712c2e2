"""Learning by statistical queries: people answer them from their own rows, and vote for what comes of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.learners.clipped_pairwise import hypothesis_votes, listed_votes
from userdp.learners.voting import SelectionModel, VotingClassifier
from userdp.stability import StatisticalQueryAlgorithm, StatisticalQueryLearner

Self = TypeVar("Self", bound="StatisticalQueryClassifier")


class StatisticalQueryClassifier(VotingClassifier):
    """Let every user run a statistical-query algorithm on their own rows, and select a common hypothesis privately.

    Users whose rows come from one distribution mostly get the same hypothesis, because their answers are rounded by the
    same public offsets (`userdp.stability.StatisticalQueryLearner`). Nobody lists the hypotheses: the class may be far
    too large for that, as decision lists and halfspaces are.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget.
    algorithm : StatisticalQueryAlgorithm
        Public, such as `userdp.stability.DecisionListQueries` or `userdp.stability.MarginPerceptronQueries`. For one of
        your own read there what it must keep to.
    delta : float, int, Fraction or decimal string
        In (0, 1) for model="central-approx"; 0 for the others.
    model : {"central-approx", "central-pure", "local"}
        Who is trusted with the votes.

        * "central-approx": a curator, who releases a common one by `userdp.selection.ApproximateSelection`.
        * "central-pure": the same by `userdp.selection.PureSelection`, with pure differential privacy, among all
          numbers of `hypothesis_bits` bits, at most 64.
        * "local": nobody. Every user sends one randomized bit of the vote, to the server of
          `userdp.protocols.local.BitwiseMajority`; both are simulated here in one process. It takes at least as many
          users as a hypothesis has bits, and many more to be of use.

        There is no "shuffle": its selection sends messages for each possible hypothesis.
    public_seed : PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional
        Public randomness, fixed before there are data: a seed that depends on them voids the guarantee. None draws a
        fresh one from the operating system in each fit. It is not secret; `public_seed_` is the one that was used.
    m : int
        The most rows of a user that count, the first m; public. Needed with `groups`.
    classes : pair of labels, or None
        The public labels; hypotheses say False for the first and True for the second. None takes them from y, which is
        not private.
    on_invalid : {"clamp", "raise"}
        What to do about values that are no numbers and labels outside `classes`: "clamp" maps them to a public default
        (what the algorithm takes NaN for; the first class), "raise" raises errors, which is not private.
    require_groups : bool
        True refuses to fit without user ids. False then protects single rows.
    enrolled : sequence, optional
        The public list of all users, those without rows included.
    random_state : None or int
        None draws noise from the operating system's generator. An integer is for tests: it warns and voids privacy. It
        has nothing to do with `public_seed`: public and private randomness are never mixed.

    Attributes
    ----------
    item_ : bytes
        The hypothesis that was selected, as the algorithm encodes it; `hypothesis` decodes it, `describe` says it in
        words.
    selected_ : bool
        False when no hypothesis had enough votes ("central-approx" only); `item_` is then the algorithm's default.
    public_seed_ : str
        The public seed, as hexadecimal digits.
    classes_ : ndarray with shape (2,)
    n_users_ : int
    unit_ : {"user", "record"}
    privacy_ : PrivacyRecord
    is_private_ : bool

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbours differ in all the rows of one user; n and the list of users are
    public. Proof: for every fixed seed a user's vote is a function of this user's rows and the seed, whatever the
    algorithm is. So replacing a user replaces one vote, and the selection is (epsilon, delta)-DP for lists of votes
    that differ in one. Decoding and predicting only use what was selected. How many users agreed, or failed, is neither
    kept nor returned. In the model "local" every single report is epsilon-DP.

    *Utility.* It needs agreement: `userdp.stability.query_parameters` says how many rows of each user are enough on
    every distribution, `userdp.stability.measure_agreement` what fewer do on one that you can sample from, and
    `users_needed` of the selections how many users that takes. If users disagree, nothing or anything is selected.

    *A user without rows* votes for the algorithm's default.

    References
    ----------
    GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling" (NeurIPS 2021), Theorem 5,
    Algorithm 5 and Corollary 33. docs/proofs/statistical_queries.md.

    Examples
    --------
    Decision lists from 120 people with 400 rows each:

    >>> import numpy as np
    >>> from userdp.learners import StatisticalQueryClassifier
    >>> from userdp.stability import DecisionListQueries
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(120), 400)
    >>> X = rng.integers(0, 2, size=(48_000, 5))
    >>> y = np.where(X[:, 3] == 1, 0, X[:, 1])
    >>> lists = DecisionListQueries(5, alpha=0.1, length=2, tolerance=0.04)
    >>> model = StatisticalQueryClassifier(epsilon=1, delta=1e-6, algorithm=lists, m=400)
    >>> model.fit(X, y, groups=users).describe()
    'if not x1: 0; else if x3: 0; else 1'
    >>> float(model.privacy_.epsilon), float(model.privacy_.delta)
    (1.0, 1e-06)
    """

    released: ClassVar[tuple[str, ...]] = ("item_", "selected_")

    def __init__(
        self,
        *,
        epsilon: Any,
        algorithm: StatisticalQueryAlgorithm,
        delta: Any = 0,
        model: str = "central-approx",
        public_seed: Any = None,
        m: int | None = None,
        classes: Any = (0, 1),
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.algorithm = algorithm
        self.delta = delta
        self.model = model
        self.public_seed = public_seed
        self.m = m
        self.classes = classes
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any, groups: Any = None) -> Self:
        """Select a common hypothesis.

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
            When there are too many queries of too many rows, or hypotheses are too long for the model.
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        # As many users as bits: whether there are enough shows when there are data.
        self._selection(max(2, self._learner().algorithm.hypothesis_bits))

    def _learner(self) -> StatisticalQueryLearner:
        return StatisticalQueryLearner(self.algorithm)

    def _selection(self, n_users: int) -> SelectionModel:
        return hypothesis_votes(
            self.model,
            epsilon=self._budget()["selection"],
            delta=self._delta(),
            n_bits=self.algorithm.hypothesis_bits,
            n_users=n_users,
            default=self._default,
        )

    def _symmetric(self) -> bool:
        # Which bit a user reports goes by the user's number.
        return bool(self.model != "local")

    def _selected(self) -> Sequence[Hashable]:
        return listed_votes(self.algorithm.hypothesis_bits, len(self._default))

    @property
    def _default(self) -> bytes:
        return self._learner().default

    def _keep(self, vote: bytes) -> None:
        self.item_ = vote

    @property
    def hypothesis(self) -> Any:
        """The hypothesis that was selected."""
        check_is_fitted(self)
        return self.algorithm.decode(self.item_)

    def describe(self) -> str:
        """When the selected hypothesis predicts the second class, in words."""
        return self.algorithm.describe(self.hypothesis)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict classes by the selected hypothesis.

        Parameters
        ----------
        X : array-like with shape (rows, features)

        Returns
        -------
        ndarray with shape (rows,)
            Entries of `classes_`.
        """
        hypothesis = self.hypothesis
        second = self.algorithm.predict(hypothesis, self._numbers(X, reset=False))
        predictions: npt.NDArray[Any] = self.classes_[np.asarray(second, dtype=np.intp)]
        return predictions
