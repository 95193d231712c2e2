"""Distributions on symbols."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp._numbers import Epsilon, positive
from userdp.estimation._base import DistributionEstimator, listed
from userdp.estimation._plans import Plan, plan_of
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget, split_budget
from userdp.learners._program import Program
from userdp.learners._symbols import Symbols, read_symbols

__all__ = ["DiscreteDistribution"]


class DiscreteDistribution(DistributionEstimator):
    """The distribution of people's examples on symbols 0, ..., k - 1, with pure privacy for users.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget.
    n_symbols : int
        k >= 2, public.
    m : int
        The most examples of a user that count: the first m.
    alpha : float in (0, 1)
        The accuracy in total variation.
    beta : float in (0, 1)
        The failure probability in `users_needed`.
    method : {"auto", "joint", "coarse-to-fine", "symbols"}
        "joint" selects from a cover of all distributions, with C(N + k - 1, k - 1) members, N = 2.5 k / alpha rounded
        up. "coarse-to-fine" refines the selection in rounds at half the accuracy each. "symbols" selects the
        probability of each symbol and projects the vector. "auto" takes the first of these whose covers have at most
        `max_candidates` members; it depends on k, alpha and that number only.
    max_candidates : int
        Larger covers are refused. Work grows as its square times the number of users.
    on_invalid : {"clamp", "raise"}
        What is no symbol counts as 0; "raise" is not private.
    require_groups : bool
        False takes every row for a user when `fit` gets no groups.
    enrolled : sequence, optional
        The public list of all users.
    random_state : None or int
        None draws from the operating system; an int is for tests and voids privacy.

    Attributes
    ----------
    probabilities_ : ndarray with shape (k,)
        Released.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For a cover with more than max_candidates members, with its size and what to do instead.

    Notes
    -----
    *Privacy.* Every selection is an exponential mechanism on clipped Scheffe scores, with sensitivity min(2 tau, m)
    when one user is replaced (see `HypothesisSelector`); their parts of epsilon sum to epsilon, exactly.

    *Utility.* Whatever the method, the result is within 0.7 alpha of the truth in total variation with probability
    1 - beta, for `users_needed()` users of m independent examples each. The methods differ in this number: as a
    function of epsilon it grows as k / (epsilon alpha sqrt(m)) for "joint", up to logarithms, 2 to 7 times
    that for "coarse-to-fine", and k**2 / (epsilon alpha sqrt(m)) for "symbols".

    References
    ----------
    GKKMMZ23, Theorems 41 and 43: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With
    Few Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> import numpy as np
    >>> visits = np.array([[0], [0], [1], [2]] * 3000)
    >>> people = np.repeat(np.arange(3000), 4)
    >>> learner = DiscreteDistribution(epsilon=2, n_symbols=3, m=4, alpha=0.4).fit(visits, groups=people)
    >>> bool(np.abs(learner.probabilities_ - [0.5, 0.25, 0.25]).max() < 0.3)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("probabilities_",)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        n_symbols: int,
        m: int | None = None,
        alpha: float = 0.1,
        beta: float = 0.1,
        method: str = "auto",
        max_candidates: int = 4096,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.n_symbols = n_symbols
        self.m = m
        self.alpha = alpha
        self.beta = beta
        self.method = method
        self.max_candidates = max_candidates
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.n_symbols, "n_symbols", 2)
        positive(self.max_candidates, "max_candidates", 2)
        self._plan()

    def _plan(self) -> Plan:
        return plan_of(self.method, int(self.n_symbols), self._accuracy(), int(self.max_candidates))

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, self._plan().shares)

    def _program(self, data: UserData) -> Program:
        return self._plan().program(self._budget(), Symbols.of(data, data.X[:, 0], int(self.n_symbols)))

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        plan = self._plan()
        return listed(plan.outcomes(), plan.n_outcomes())

    def _accept(self, outcome: Any) -> None:
        self.probabilities_ = self._plan().probabilities(outcome)

    def _read_X(self, X: Any) -> npt.NDArray[np.int64]:
        return read_symbols(super()._read_X(X), self.n_symbols, 1, self.on_invalid)

    def _users_needed(self, m: int) -> int:
        return self._plan().users_needed(self._budget(), float(self.beta), m)
