"""Learning by agreement: all users run one stable learner with public randomness, and a private selection counts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from userdp.concepts.classes import ConceptClass
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import check_kind, is_integer, parse_delta, short_repr
from userdp.learners.pac import ConceptClassifier
from userdp.learners.voting import MODELS, Election, VotingClassifier, item_election
from userdp.stability import RepresentationLearner, StableLearner

DEFAULT = 0
"""The hypothesis when nothing is selected: public."""


@estimator
class CorrelatedSamplingClassifier(VotingClassifier, ConceptClassifier):
    """Let every user vote for one hypothesis with shared public randomness, and select a common vote privately.

    Users whose examples come from one distribution mostly vote for the *same* hypothesis, because they all draw by the
    same public seed (`RepresentationLearner`). So the private selection has an easy task: few users are needed, and
    what they are needed for does not grow with the class in the central model with delta > 0.

    Attributes
    ----------
    concept_ : int
        The index of the hypothesis that was selected. `describe` says it in words.
    selected_ : bool
        False when no hypothesis had enough votes ("central-approx" only); `concept_` is then the public default 0.
    public_seed_ : str
        The public seed, as hexadecimal digits.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the rows of one user; n and the list of users are
    public. Proof: for every fixed seed a user's vote is a function of this user's rows and the seed; so replacing a
    user replaces one vote, and the selection is (epsilon, delta)-DP for lists of votes that differ in one. Nothing else
    depends on the data: how many users agreed, or how many had no rows, is neither kept nor returned. This holds for
    every gamma, class and seed, and however badly users agree: then nothing, or a poor hypothesis, is selected. In the
    models "local" and "shuffle" what is private is not only the result: in "local" every single report, in "shuffle"
    the multiset of all messages. docs/proofs/selection.md, docs/proofs/local_protocols.md, docs/proofs/shuffle.md.

    *How many users.* ``userdp.mechanisms.ApproximatePrivateMode(...).users_needed(agreement=..., beta=...)`` and its
    counterparts say how many suffice when users agree with a given probability;
    `userdp.stability.measure_agreement` measures it on synthetic or public data.

    *A user without rows* votes for the public default.

    References
    ----------
    GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling" (NeurIPS 2021): [GKM21,
    Algorithm 2], [GKM21, Algorithm 3] and [GKM21, Algorithm 4], [GKM21, Theorem 25], [GKM21, Theorem 26], [GKM21,
    Theorem 29], [GKM21, Theorem 30] and [GKM21, Theorem 35]. [GKM21, Theorem 1], [GKM21, Theorem 2] and [GKM21, Theorem
    3].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.learners import CorrelatedSamplingClassifier
    >>> from userdp.concepts import Thresholds
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(200), 40)
    >>> X = rng.integers(1, 11, size=(8000, 1))
    >>> y = (X[:, 0] > 4).astype(int)
    >>> model = CorrelatedSamplingClassifier(
    ...     epsilon=1, delta=1e-6, concepts=Thresholds(10), gamma=300, m=40, classes=(False, True)
    ... )
    >>> model.fit(X, y, groups=users).describe()
    'x > 4'
    >>> float(model.privacy_.epsilon), float(model.privacy_.delta)
    (1.0, 1e-06)
    """

    released: ClassVar[tuple[str, ...]] = ("concept_", "selected_")
    without_rows: ClassVar[str] = "Users without rows vote for the public default, the hypothesis 0."

    _vote_name: ClassVar[str] = "concept_"

    model: str = fields.choice(
        MODELS,
        default="central-approx",
        doc="""
        Who is trusted with the votes.

        * "central-approx": a curator sees the votes, and releases a common one by
          `userdp.mechanisms.ApproximatePrivateMode`.
        * "central-pure": the same by `userdp.mechanisms.PurePrivateMode`, with pure differential privacy.
        * "local": nobody. Every user sends one randomized report (`userdp.protocols.local`).
        * "shuffle": a shuffler that hides who sent what (`userdp.protocols.shuffle`).

        The latter two are simulated here in one process, with the very clients and servers of `userdp.protocols`, which
        is where to find them for real deployments.
        """,
    )
    gamma: float | None = fields.positive_number(
        default=None,
        doc="""
        How much errors count in a vote, > 0: a user votes for h with probability proportional to exp(-gamma err(h)),
        err(h) the share of mistakes among the user's own examples. Larger values make votes more accurate and users
        agree less often. By default ln(size / beta) / alpha without a representation, and 2 ln(2 size / beta) / alpha
        with one. Privacy does not depend on it.
        """,
    )
    stable_learner: StableLearner | None = fields.parameter(
        default=None,
        kind="StableLearner, optional",
        doc="""
        What users run instead, such as `userdp.stability.ListStabilityLearner`. It votes for hypotheses by their index
        in the class (or representation); every other vote counts as one for the public default.
        """,
    )
    alpha: float = fields.open_unit(
        default=0.1, doc="The error that is aimed at, in (0, 1): only for the default of `gamma`."
    )
    beta: float = fields.open_unit(
        default=0.1, doc="The probability of failure, in (0, 1): only for the default of `gamma`."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.stable_learner is None:
            return
        check_kind(self.stable_learner, StableLearner, "stable_learner", "a StableLearner or None")
        if self.gamma is not None:
            raise ValueError("gamma is for the default learner; the stable_learner that is given has its own")
        if isinstance(self.stable_learner.default, bytes):
            raise TypeError(
                "stable_learner must vote for hypotheses by their index; the votes of "
                f"{short_repr(self.stable_learner)} are bytes, like its default, and would all count as one for the "
                "default"
            )
        hypotheses = getattr(self.stable_learner, "hypotheses", None)
        if isinstance(hypotheses, ConceptClass) and hypotheses.size != self.hypotheses.size:
            raise ValueError(
                f"stable_learner must vote for the {self.hypotheses.size} hypotheses of this classifier; its own class "
                f"has {hypotheses.size}"
            )

    def _learner(self) -> StableLearner:
        if self.stable_learner is not None:
            return self.stable_learner
        gamma = self._default_gamma() if self.gamma is None else self.gamma
        return RepresentationLearner(self.hypotheses, gamma=gamma, default=self._default)

    def _default_gamma(self) -> float:
        size, alpha, beta = self.hypotheses.size, float(self.alpha), float(self.beta)
        return math.log(size / beta) / alpha if self.representation is None else 2 * math.log(2 * size / beta) / alpha

    def _election(self, n_users: int) -> Election:
        elected = item_election(
            self.model,
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            n_items=self.hypotheses.size,
            n_users=n_users,
            default=self._default,
        )
        return lambda votes: elected([self._index(vote) for vote in votes])

    def _index(self, vote: Any) -> int:
        """A vote as the index of a hypothesis. Total: it is private."""
        return int(vote) if is_integer(vote) and 0 <= vote < self.hypotheses.size else self._default

    @property
    def _default(self) -> int:
        return DEFAULT

    def _selected(self) -> Sequence[Hashable]:
        return self._listed()
