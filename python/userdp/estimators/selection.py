"""The last draw of estimators that choose one of a public list by its score, and which mechanism it is made by.

Permute-and-flip is the better one at the same epsilon, and the exponential mechanism costs a quarter of the rho there.
So what is best depends on what a ledger counts, which is public (decision 0036).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from userdp.accounting.budget_hook import counted_beyond_epsilon
from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ExactEpsilon
from userdp.exceptions import BudgetError
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip
from userdp.mechanisms.permute_and_flip import EXACT_CANDIDATES, MOST_CANDIDATES

SELECTION_MECHANISMS = ("auto", "exponential", "permute-and-flip")

FITTED_DOC = {
    "mechanism_": ('{"exponential", "permute-and-flip"}', "What the choice was drawn by; it depends on public things.")
}


def choice_by_scores(*, epsilon: ExactEpsilon, sensitivity: int, flips: bool) -> ExponentialMechanism | PermuteAndFlip:
    """The mechanism that draws one candidate from a vector of integer scores, lower ones better."""
    if flips:
        return PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity)
    return ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)


@estimator
class ScoreSelector(UserLevelEstimator):
    """An estimator whose last draw chooses one candidate of a public list by a vector of their scores."""

    mechanism: str = fields.choice(
        SELECTION_MECHANISMS,
        default="auto",
        doc="""
        What the choice is drawn by. "permute-and-flip" is better at the same epsilon, for every loss that grows with
        the score (`PermuteAndFlip`). "exponential" has bounded range: where rho is counted it costs a quarter, and is
        better at the same rho. "auto" takes permute-and-flip for up to 64 candidates, whose exact distribution is
        known, unless the fit is through a ledger with composition "zcdp" or "exact". So it depends on the number of
        candidates and on the ledger, never on data. What is fitted first and charged to such a ledger afterwards, or
        planned for one, should say "exponential".
        """,
    )

    _fitted_doc: ClassVar[dict[str, tuple[str, str]]] = FITTED_DOC | UserLevelEstimator._fitted_doc

    @abstractmethod
    def _n_candidates(self) -> int:
        """From how many candidates the last draw chooses; public."""

    def _flips(self) -> bool:
        """Whether the last draw is by permute-and-flip: decided from parameters and from what ledgers count."""
        if self.mechanism == "auto":
            return self._n_candidates() <= EXACT_CANDIDATES and not counted_beyond_epsilon(self)
        if self.mechanism == "permute-and-flip" and self._n_candidates() > MOST_CANDIDATES:
            raise ValueError(
                "mechanism='permute-and-flip' tosses a coin for each candidate, of at most 2**24; got "
                f"{self._n_candidates()}: pass mechanism='exponential'"
            )
        return self.mechanism == "permute-and-flip"

    def _budget_of(
        self, shares: Mapping[str, Fraction | int], last: str, flips: bool, others: Collection[str] = ()
    ) -> Budget:
        """The budget in parts: draws of the exponential mechanism, but for the last one if it flips, and the others."""
        return Budget.of_choices(self.epsilon, shares, others={*others, last} if flips else others)

    def _listed_if(self, flips: bool, outcomes: Callable[[], Sequence[Hashable]]) -> Callable[[], Sequence[Hashable]]:
        """The outcomes, if their exact distribution is computed."""
        size = self._n_candidates()
        if not flips or size <= EXACT_CANDIDATES:
            return outcomes

        def refused() -> Sequence[Hashable]:
            raise BudgetError(
                f"the exact distribution of permute-and-flip is computed for up to {EXACT_CANDIDATES} candidates; got "
                f"{size}: audit mechanism='exponential', or fewer candidates"
            )

        return refused


WEIGHT_BITS = 64
"""A candidate that is so many bits of weight worse than the best one counts as just that much worse."""


def check_likely_enough(beta: float, n_candidates: int, epsilon: ExactEpsilon) -> None:
    """Refuse a probability of failure that no number of users brings about, as weights end somewhere."""
    # The worst weight is within a unit of score of 64 bits, a unit being epsilon / (2 ln 2) bits at most, and never
    # above 2**-32 (docs/proofs/exponential_mechanism.md); a bit is left for roundings. A third of beta is for the draw.
    bits = max(WEIGHT_BITS - float(epsilon) / (2 * math.log(2)), WEIGHT_BITS / 2) - 1
    least = 3 * n_candidates * 2**-bits
    if beta < least:
        raise ValueError(
            f"beta is too small for weights of {WEIGHT_BITS} bits: however many users there are, a choice among "
            f"{n_candidates} candidates needs {least:.3g} of it; got {beta:.3g}"
        )


def drawn_by(flips: bool) -> dict[str, Any]:
    """The fitted attribute that says what was drawn by."""
    return {"mechanism_": "permute-and-flip" if flips else "exponential"}
