"""Learners whose users vote, and how their votes become one in the central, local and shuffle model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from userdp.algorithms.finite import BOTTOM
from userdp.estimators import fields
from userdp.estimators.base import UserLevelClassifier
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ExactEpsilon, ReleasePlan
from userdp.exact.numbers import Delta, parse_delta, short_repr
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.mechanisms.base import SupportsDraw
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.protocols import local, shuffle
from userdp.protocols.rounds import LocalRound, ShuffledRound
from userdp.public_randomness import PublicSeed
from userdp.stability import StableLearner
from userdp.users.table import UserTable

Model: TypeAlias = Literal["central-approx", "central-pure", "local", "shuffle"]
MODELS: tuple[Model, ...] = get_args(Model)

NEED_DELTA = ("central-approx", "shuffle")

IN_PROCESS = "in one process"
"""The name of every simulated round: its messages go nowhere else."""


Election: TypeAlias = Callable[[Sequence[Any]], AdaptiveMechanism]
"""From the votes of all users, one for each, to the draw that selects a common one, or BOTTOM: private for lists of
votes that differ in one."""


def election(
    mechanism: SupportsDraw,
    argument: Callable[[Sequence[Any]], Any] = tuple,
    vote: Callable[[Any], Hashable] | None = None,
) -> Election:
    """Make an election of a mechanism, its argument from the votes, and the vote that its outcome stands for."""

    def from_votes(votes: Sequence[Any]) -> AdaptiveMechanism:
        counted = argument(votes)
        return lambda draw: draw(mechanism, counted) if vote is None else vote(draw(mechanism, counted))

    return from_votes


def check_model(model: Any, delta: Fraction) -> None:
    """Refuse models that do not exist, and deltas that do not fit them."""
    if model not in MODELS:
        raise ValueError(f"model must be one of {MODELS}; got {short_repr(model)}")
    if model in NEED_DELTA and not 0 < delta < 1:
        raise ValueError(
            f"delta must be in (0, 1), ends excluded, for model={model!r}; got {float(delta):g}. The models "
            "'central-pure' and 'local' need no delta"
        )
    if model not in NEED_DELTA and delta:
        raise ValueError(f"delta must be 0 for model={model!r}, which is purely private; got {float(delta):g}")


def item_election(
    model: str, *, epsilon: ExactEpsilon, delta: Fraction, n_items: int, n_users: int, default: int
) -> Election:
    """Elect one of n_items by the votes of n_users, with the whole of the budget; any other vote is the default."""
    if model == "central-approx":
        approximate = ApproximatePrivateMode(epsilon=epsilon, delta=delta, default=default)
        return election(approximate, approximate.tally)
    if model == "central-pure":
        pure = PurePrivateMode(epsilon=epsilon, n_items=n_items, default=default)
        return election(pure, pure.tally)
    if model == "local":
        parties = local.for_items(
            epsilon=epsilon, n_items=n_items, n_users=n_users, round_id=IN_PROCESS, default=default
        )
        return election(LocalRound(parties, range(n_items)))
    mixed = shuffle.Mode(
        epsilon=epsilon, delta=delta, n_items=n_items, n_users=n_users, round_id=IN_PROCESS, default=default
    )
    return election(ShuffledRound(mixed))


@estimator
class VotingClassifier(UserLevelClassifier):
    """Users run one stable learner with the same public seed, and a private selection finds a common vote.

    A subclass says what users run (`_learner`), how a vote is selected (`_election`), which can come out
    (`_selected`), what stands for none of them (`_default`) and which fitted attribute a vote is (`_vote_name`).
    """

    _vote_name: ClassVar[str]

    delta: Delta = fields.delta(default=0, doc='In (0, 1) for model="central-approx" and "shuffle"; 0 for the others.')
    model: str = fields.choice(MODELS, default="central-approx", doc="Who is trusted with the votes.")
    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        default=None,
        check=fields.or_none(lambda value, name: PublicSeed(value)),
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="""
        Public randomness, fixed before there are data: a seed that depends on them voids the guarantee. None draws a
        fresh one from the operating system in each fit. It is not secret; `public_seed_` is the one that was used.
        """,
    )

    @abstractmethod
    def _learner(self) -> StableLearner:
        """What every user runs."""

    @abstractmethod
    def _election(self, n_users: int) -> Election:
        """How a common vote is selected, with the whole of the budget."""

    @abstractmethod
    def _selected(self) -> Sequence[Hashable]:
        """All votes that can be selected; refused when there are too many to list."""

    @property
    @abstractmethod
    def _default(self) -> Any:
        """The public vote that is kept when nothing is selected."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_model(self.model, parse_delta(self.delta))

    def _seed(self) -> PublicSeed:
        """The public seed of this fit: given, or fixed now, before anybody's rows are looked at."""
        if self.public_seed is not None:
            return PublicSeed(self.public_seed)
        if self.random_state is None:
            return PublicSeed.random()
        # Reproducible, as is all else then; by a hash, so that noise of the same state has nothing to do with it.
        return PublicSeed(blake2b(str(self.random_state).encode(), digest_size=32, person=b"public seed").digest())

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        budget = Budget.of(self.epsilon, {"selection": 1}, parse_delta(self.delta))
        seed, elected, learner = self._seed(), self._election(n_users), self._learner()

        def program(table: UserTable) -> AdaptiveMechanism:
            return elected(list(learner.items(table, seed)))

        def outcomes() -> Sequence[Hashable]:
            if self.public_seed is None:
                raise ValueError(
                    "public_seed must be given for an exact distribution: it is the distribution for one fixed seed"
                )
            return (*self._selected(), BOTTOM)

        def fitted(vote: Any) -> dict[str, Any]:
            selected = vote is not BOTTOM
            item = vote if selected else self._default
            return {"public_seed_": seed.hex, "selected_": selected, self._vote_name: item}

        return ReleasePlan(budget, program, outcomes, fitted)
