"""What the classifiers share whose users vote with public randomness: the seed, the model, and one draw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from userdp._delstab.bottom import BOTTOM
from userdp._numbers import parse_delta
from userdp.learners._base import UserLevelClassifier
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget, split_budget
from userdp.learners._program import Draw, Program
from userdp.learners._selection_models import SelectionModel, check_model
from userdp.stability import PublicSeed, StableLearner

__all__ = ["VotingClassifier"]


class VotingClassifier(UserLevelClassifier):
    """Users run one stable learner with the same public seed, and a private selection finds a common vote.

    A subclass says what users run (`_learner`), how votes are selected from (`_selection`), which can come out
    (`_selected`), what stands for none of them (`_default`) and where the selected vote goes (`_keep`).
    """

    delta: Any
    model: Any
    public_seed: Any

    public_seed_: str
    selected_: bool

    @abstractmethod
    def _learner(self) -> StableLearner:
        """What every user runs."""

    @abstractmethod
    def _selection(self, n_users: int) -> SelectionModel:
        """The draw that selects a common vote, with the whole of the budget."""

    @abstractmethod
    def _selected(self) -> Sequence[Hashable]:
        """All votes that can be selected; refused when there are too many to list."""

    @abstractmethod
    def _keep(self, vote: Any) -> None:
        """Set the fitted attribute that says what was selected."""

    @property
    @abstractmethod
    def _default(self) -> Any:
        """The public vote that is kept when nothing is selected."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_model(self.model, self._delta())
        if self.public_seed is not None:
            PublicSeed(self.public_seed)

    def _delta(self) -> Fraction:
        return parse_delta(self.delta)

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, {"selection": 1})

    def _seed(self) -> PublicSeed:
        """The public seed of this fit: given, or fixed now, before anybody's rows are looked at."""
        if self.public_seed is not None:
            return PublicSeed(self.public_seed)
        if self.random_state is None:
            return PublicSeed.random()
        # Reproducible, as is all else then; by a hash, so that noise of the same state has nothing to do with it.
        return PublicSeed(blake2b(str(self.random_state).encode(), digest_size=32, person=b"public seed").digest())

    def _program(self, data: UserData) -> Program:
        seed = self._seed()
        selection = self._selection(data.n_users)
        votes = selection.argument(self._learner().items(data, seed))

        def program(draw: Draw) -> tuple[str, Hashable]:
            return seed.hex, selection.vote(draw(selection.mechanism, votes))

        return program

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[tuple[str, Hashable]]:
        if self.public_seed is None:
            raise ValueError("public_seed must be given for an exact law: it is the law for one fixed seed")
        seed = PublicSeed(self.public_seed).hex
        return [(seed, vote) for vote in (*self._selected(), BOTTOM)]

    def _accept(self, outcome: Any) -> None:
        self.public_seed_, vote = outcome
        self.selected_ = vote is not BOTTOM
        self._keep(vote if self.selected_ else self._default)
