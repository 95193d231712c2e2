"""Learning by statistical queries: users answer them from their own rows, and vote for what comes of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ExactEpsilon, check_listed
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import parse_delta
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.learners.voting import IN_PROCESS, Election, VotingClassifier, election
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.protocols.local import BitwiseMajority
from userdp.protocols.rounds import LocalRound
from userdp.stability import StatisticalQueryAlgorithm, StatisticalQueryLearner

if TYPE_CHECKING:
    from userdp import _core

PURE_BITS = 64
"""The most bits of a hypothesis among all of which `PurePrivateMode` chooses."""
PMF_BITS = 12
PMF_USERS = 2**10
"""Limits of the exact distribution of a majority of every bit."""

Bits = npt.NDArray[np.uint8]


@estimator
class StatisticalQueryClassifier(VotingClassifier):
    """Let every user run a statistical-query algorithm on their own rows, and select a common hypothesis privately.

    Users whose rows come from one distribution mostly get the same hypothesis, because their answers are rounded by the
    same public offsets (`userdp.stability.StatisticalQueryLearner`). Nobody lists the hypotheses: the class may be far
    too large for that, as decision lists and halfspaces are.

    Attributes
    ----------
    item_ : bytes
        The hypothesis that was selected, as the algorithm encodes it; `hypothesis` decodes it, `describe` says it in
        words.
    selected_ : bool
        False when no hypothesis had enough votes ("central-approx" only); `item_` is then the algorithm's default.
    public_seed_ : str
        The public seed, as hexadecimal digits.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the rows of one user; n and the list of users are
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
    GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling" (NeurIPS 2021): [GKM21,
    Theorem 5], [GKM21, Algorithm 5] and [GKM21, Corollary 33]. docs/proofs/statistical_queries.md.

    Examples
    --------
    Decision lists from 120 users with 400 rows each:

    >>> import numpy as np
    >>> from userdp.learners import StatisticalQueryClassifier
    >>> from userdp.stability import DecisionListQueries
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(120), 400)
    >>> X = rng.integers(0, 2, size=(48_000, 5))
    >>> y = np.where(X[:, 3] == 1, 0, X[:, 1])
    >>> lists = DecisionListQueries(5, alpha=0.1, length=2, tolerance=0.04)
    >>> model = StatisticalQueryClassifier(epsilon=1, delta=1e-6, algorithm=lists, m=400, classes=(0, 1))
    >>> model.fit(X, y, groups=users).describe()
    'if not x1: 0; else if x3: 0; else 1'
    >>> float(model.privacy_.epsilon), float(model.privacy_.delta)
    (1.0, 1e-06)
    """

    released: ClassVar[tuple[str, ...]] = ("item_", "selected_")
    without_rows: ClassVar[str] = "Users without rows vote for the default of the algorithm."
    _vote_name: ClassVar[str] = "item_"

    algorithm: StatisticalQueryAlgorithm = fields.parameter(
        kind="StatisticalQueryAlgorithm",
        doc="""
        Public, such as `userdp.stability.DecisionListQueries` or `userdp.stability.MarginPerceptronQueries`. For one of
        your own read there what it must keep to.
        """,
    )
    model: str = fields.choice(
        ("central-approx", "central-pure", "local"),
        default="central-approx",
        doc="""
        Who is trusted with the votes.

        * "central-approx": a curator, who releases a common one by `userdp.mechanisms.ApproximatePrivateMode`.
        * "central-pure": the same by `userdp.mechanisms.PurePrivateMode`, with pure differential privacy, among all
          numbers of `hypothesis_bits` bits, at most 64.
        * "local": nobody. Every user sends one randomized bit of the vote, to the server of
          `userdp.protocols.local.BitwiseMajority`; both are simulated here in one process. It takes at least as many
          users as a hypothesis has bits, and many more to be of use.

        There is no "shuffle": its selection sends messages for each possible hypothesis.
        """,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        # As many users as bits: whether there are enough shows when there are data.
        self._election(max(2, self._learner().algorithm.hypothesis_bits))

    def _columns(self) -> int:
        return int(self.algorithm.n_features)

    def _learner(self) -> StatisticalQueryLearner:
        return StatisticalQueryLearner(self.algorithm)

    def _election(self, n_users: int) -> Election:
        return hypothesis_election(
            self.model,
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
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

    @property
    def hypothesis(self) -> Any:
        """The hypothesis that was selected."""
        check_is_fitted(self)
        return self.algorithm.decode(self.item_)

    def describe(self) -> str:
        """When the selected hypothesis predicts the second class, in words."""
        return self.algorithm.describe(self.hypothesis)

    def _predicts_second(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        return np.asarray(self.algorithm.predict(self.hypothesis, rows), dtype=np.bool_)


def hypothesis_election(
    model: str, *, epsilon: ExactEpsilon, delta: Fraction, n_bits: int, n_users: int, default: bytes
) -> Election:
    """Elect a hypothesis by votes that are numbers of so many bits, as big-endian bytes."""
    width = len(default)

    def bytes_of(number: int) -> bytes:
        return int(number).to_bytes(width, "big")

    if model == "central-approx":
        approximate = ApproximatePrivateMode(epsilon=epsilon, delta=delta, default=_word(default))
        return election(approximate, lambda votes: approximate.tally([*map(_word, votes)]), _vote)
    if model == "central-pure":
        if n_bits > PURE_BITS:
            raise BudgetError(
                f"hypothesis_bits={n_bits} is above {PURE_BITS}, the most for model='central-pure': it gives every "
                "possible hypothesis its chance. Use model='central-approx', which takes any number of bits, or an "
                "algorithm with shorter hypotheses"
            )
        pure = PurePrivateMode(epsilon=epsilon, n_items=2**n_bits, default=_number(default))
        return election(pure, lambda votes: pure.tally([*map(_number, votes)], exact_integers=True), bytes_of)
    if model == "local":
        if n_users < n_bits:
            raise ValueError(
                f"model='local' needs a user for every bit of a hypothesis at least, {n_bits}; got {n_users} users"
            )
        protocol = BitwiseMajority(epsilon=epsilon, n_bits=n_bits, n_users=n_users, round_id=IN_PROCESS)
        return election(ReportedBits(protocol), lambda votes: _bits(votes, n_bits), bytes_of)
    raise ValueError(
        "model='shuffle' is not for statistical queries: every user would send messages for each possible hypothesis, "
        f"2**{n_bits} of them. Use model='local', in which every user sends one message, or "
        "CorrelatedSamplingClassifier(model='shuffle') with a small class"
    )


class ReportedBits(LocalRound):
    """What the server of `BitwiseMajority` selects, as a number, when every user has reported once."""

    protocol: BitwiseMajority

    def __init__(self, protocol: BitwiseMajority) -> None:
        super().__init__(protocol, range(2**protocol.n_bits))

    def _draw(self, source: _core.Source, items: Any) -> int:
        return int("".join(map(str, super()._draw(source, items).tolist())), 2)

    def pmf(self, items: Any) -> Pmf:
        """The distribution of a draw, in which bits are independent, since every user reports one."""
        n_bits, n_users = self.protocol.n_bits, self.protocol.n_users
        if n_bits > PMF_BITS or n_users > PMF_USERS:
            raise BudgetError(
                f"the exact distribution of a majority of {n_bits} bits among {n_users} users is not "
                f"listed (limits {PMF_BITS} "
                f"and {PMF_USERS}); audit a smaller algorithm"
            )
        weights = [1]
        for place in range(n_bits):
            one, zero = self._bit(items[place::n_bits, place])
            weights = [weight * side for weight in weights for side in (zero, one)]
        return Pmf(tuple(self.outputs), tuple(weights))

    def _bit(self, votes: Bits) -> tuple[int, int]:
        """In proportion to the probabilities that a bit is selected as 1 and as 0: a tie is a 0."""
        keep = self.protocol.keep_probability
        distribution = np.array([1], dtype=object)
        for vote in votes.tolist():
            p = keep.numerator if vote else keep.denominator - keep.numerator
            distribution = np.convolve(distribution, np.array([keep.denominator - p, p], dtype=object))
        most_zeros = len(votes) // 2
        zero, one = (sum(map(int, part)) for part in (distribution[: most_zeros + 1], distribution[most_zeros + 1 :]))
        common = math.gcd(zero, one)
        return one // common, zero // common


def _word(vote: bytes) -> str:
    """A vote as an item, which is a text that says nothing else."""
    return f"h{vote.hex()}"


def _vote(item: Any) -> Hashable:
    return bytes.fromhex(item[1:]) if isinstance(item, str) else item


def _number(vote: bytes) -> int:
    return int.from_bytes(vote, "big")


def _bits(votes: Sequence[bytes], n_bits: int) -> Bits:
    """A row of bits for every vote, the highest bit first."""
    table = np.frombuffer(b"".join(votes), dtype=np.uint8).reshape(len(votes), -1)
    return np.unpackbits(table, axis=1)[:, -n_bits:]


def listed_votes(n_bits: int, width: int) -> list[Any]:
    """Return all votes."""
    check_listed(2**n_bits, "audit a smaller algorithm", 2**PMF_BITS)
    return [number.to_bytes(width, "big") for number in range(2**n_bits)]
