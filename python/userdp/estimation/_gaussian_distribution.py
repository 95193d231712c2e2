"""A normal distribution with a bounded covariance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp._numbers import Epsilon, parse_positive, positive, shown
from userdp.estimation._base import DistributionEstimator, listed
from userdp.estimation._covers import gaussian_cover_size
from userdp.estimation._gaussian import MARGIN, read_numbers
from userdp.estimation._projections import Projections, Selected
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget, split_budget
from userdp.learners._program import Program

__all__ = ["GaussianDistribution"]

Floats = npt.NDArray[np.float64]


class GaussianDistribution(DistributionEstimator):
    """Mean and covariance of normal examples, with pure privacy for users.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget.
    radius : float
        Public bound of the Euclidean norm of the mean, > 0 and finite.
    kappa : float
        Public bound of the covariance, >= 1 and finite: its eigenvalues are in [1, kappa]. Rescale the columns by
        public numbers for this. Without bounds nothing can be learned with pure privacy.
    n_columns : int
        d, the dimension, public.
    m : int
        The most examples of a user that count: the first m.
    alpha : float in (0, 1)
        The accuracy in total variation.
    beta : float in (0, 1)
        The failure probability in `users_needed`.
    on_invalid, require_groups, enrolled, random_state
        As for `GaussianMean`.

    Attributes
    ----------
    mean_ : ndarray with shape (d,)
        Released.
    covariance_ : ndarray with shape (d, d)
        Symmetric, with eigenvalues in [1, kappa]. Released.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For lines of more than 2**20 candidates.

    Notes
    -----
    *Method.* The cover of GKKMMZ23 has a candidate for every cell of a grid of means and covariances; it cannot be
    enumerated (`joint_cover_size` tells how large it is) and the probabilities of its Scheffe sets have no closed form.
    Instead, one-dimensional projections are learned: the location and then the scale of each column, and the scale of
    (x_j + x_k) / sqrt(2) for each pair of columns about the mean that is known by then. With v these variances,
    v_jk - (v_jj + v_kk) / 2 is the covariance of columns j and k. Eigenvalues of the resulting matrix are clipped to
    [1, kappa].

    *Privacy.* As for `GaussianMean`; the parts of epsilon of all searches sum to epsilon, exactly. Arithmetic on
    examples is done entry by entry.

    *Utility.* With a = alpha / 2 for d = 1 and alpha / (4 kappa d) otherwise as the accuracy of every search, the
    result is within alpha in total variation for alpha <= 0.3, with probability 1 - beta, for `users_needed()` users:

    - `Location` leaves |mean_j - mu_j| <= 1.66 a sigma_j, and `Scale` variances within a factor of 1 +- 3.3 a
      for a <= 0.04.
    - For d = 1 the mean then costs 0.66 a. Normal distributions with the same mean and logarithms of variances u apart
      are within 0.242 u, so the variance costs 0.8 a: together 1.46 a <= 0.73 alpha.
    - For d >= 2 entries of the matrix are within 6.6 kappa a. Clipping eigenvalues is the Euclidean projection onto a
      convex set which has the truth in it, so the result is within 6.6 kappa d a in Frobenius norm, and half of that in
      total variation, by Pinsker's inequality (as Sigma >= I): 0.83 alpha. The mean costs
      0.66 a sqrt(d kappa) <= 0.12 alpha.

    A search has a share of about epsilon / d**2, so the number of users grows as
    kappa d**3 / (epsilon alpha sqrt(m)) + kappa**2 d**2 / (alpha**2 m), for a cover of everything as
    d**2 / (epsilon alpha sqrt(m)) + d**2 / (alpha**2 m), up to logarithms.

    References
    ----------
    GKKMMZ23, Theorem 46: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few
    Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> examples = rng.multivariate_normal([1, 0], [[2, 0.5], [0.5, 1.5]], size=40000)
    >>> learner = GaussianDistribution(epsilon=4, radius=2, kappa=3, n_columns=2, m=8, alpha=0.5)
    >>> covariance = learner.fit(examples, groups=np.arange(40000) // 8).covariance_
    >>> bool(np.abs(covariance - [[2, 0.5], [0.5, 1.5]]).max() < 1)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("mean_", "covariance_")

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        radius: float,
        kappa: float,
        n_columns: int = 1,
        m: int | None = None,
        alpha: float = 0.1,
        beta: float = 0.1,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.radius = radius
        self.kappa = kappa
        self.n_columns = n_columns
        self.m = m
        self.alpha = alpha
        self.beta = beta
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.n_columns, "n_columns")
        parse_positive(self.radius, "radius")
        if parse_positive(self.kappa, "kappa") < 1:
            raise ValueError(f"kappa must be at least 1; got {shown(self.kappa)}")
        self._searches()

    def _searches(self) -> Projections:
        d, kappa, radius = int(self.n_columns), float(self.kappa), float(self.radius)
        accuracy = float(self.alpha) / (2 if d == 1 else 4 * kappa * d)
        return Projections(d, radius, math.sqrt(kappa), accuracy)

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, self._searches().shares)

    def _program(self, data: UserData) -> Program:
        searches, budget = self._searches(), self._budget()
        return lambda draw: searches.draw(draw, budget, data)

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        searches = self._searches()
        return listed(searches.outcomes(), searches.n_outcomes())

    def _accept(self, outcome: Selected) -> None:
        where, own, both = outcome
        searches = self._searches()
        self.mean_ = np.array(searches.mean(where))
        self.covariance_ = searches.covariance(own, both)

    def joint_cover_size(self) -> int:
        """The size of the cover of means and covariances together, which is not enumerated."""
        self._check_parameters()
        return gaussian_cover_size(int(self.n_columns), float(self.radius), float(self.kappa), float(self.alpha))

    def _read_X(self, X: Any) -> Floats:
        bound = float(self.radius) + MARGIN * math.sqrt(float(self.kappa))
        return read_numbers(super()._read_X(X), np.full(int(self.n_columns), bound))

    def _users_needed(self, m: int) -> int:
        return self._searches().users_needed(self._budget(), float(self.beta), m)
