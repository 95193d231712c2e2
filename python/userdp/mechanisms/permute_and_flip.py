"""Permute-and-flip: one of k candidates by its score, better than the exponential mechanism at the same epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.pmf import Pmf
from userdp.mechanisms.exponential import ListedChoice, Scores

if TYPE_CHECKING:
    from userdp.accounting import PrivacyLossDistribution
    from userdp.accounting.cost import PrivacyCost


EXACT_CANDIDATES = 64
"""The most candidates whose exact distribution is computed."""
MOST_CANDIDATES = 2**24
"""The most candidates, with a coin each."""


class PermuteAndFlip(ListedChoice["_core.PermuteAndFlipRate"]):
    """Choose one of k candidates, the better its score the likelier: permute-and-flip.

    Candidate i has a coin that succeeds with probability q[i] near e**(-epsilon gap[i] / (2 sensitivity)), where gap[i]
    is how much worse it is than the best one, whose coin is sure to succeed. All coins are tossed, and one of the
    candidates whose coins succeed is returned, each equally likely. That is the first success in a random order.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88. A float is the decimal it prints as.
    sensitivity : int, float, Fraction or decimal string
        The most that any one candidate's score changes between neighbors, in units of the scores. Positive; without
        a granularity an integer below 2**62.
    granularity : float, int or Fraction, optional
        None takes integer scores only. A public power of two g takes any scores and rounds them down to multiples of
        g; the sensitivity is then rounded up to one. At most 2**62 of its steps may make up the sensitivity, and
        2**63 a score.
    maximize : bool
        False: lower scores are better. True: higher ones.
    monotone : bool
        True promises that between neighbors all scores change in the same direction, and doubles the rate: q[i] is near
        e**(-epsilon gap[i] / sensitivity). Counts do so when one user is added or removed. They do not when a user is
        *replaced*: the loss would then be up to 2 epsilon.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that the cost is about. None does not say; with
        `monotone` it is "add-remove".

    Notes
    -----
    *Neighbors and sensitivity.* If no candidate's score changes by more than the sensitivity between neighbors,
    the draw is epsilon-DP (delta = 0) for a user. This concerns all that the user contributes: clamp or average within
    a user first. The proof covers the integers that are drawn from, with every rounding:
    docs/proofs/permute_and_flip.md. Replacing g users costs g epsilon.

    *Beside the exponential mechanism.* At the same epsilon it is at least as good, for every loss that grows with the
    score and in every tail, up to roundings below 2**-37; and the exponential mechanism at 2 epsilon is at least as
    good as this one. For a single release, and where epsilons are added up, take this one. It has *no bounded range*:
    where the account is in rho, or many selections are composed exactly, the exponential mechanism costs a quarter of
    the rho at the same epsilon, and is better at the same rho.

    *The probabilities of coins* come from epsilon and the sensitivity, by the function that makes the weights of
    `ExponentialMechanism`. A list of probabilities cannot be given: one that is rounded without regard to its
    neighbors, or does not fall with the gap, is not private at the stated epsilon.

    *Budget.* All of epsilon is spent on one draw; n draws cost n epsilon. `pmf` and `pmf_bounds` are for audits:
    showing them for private data is not private.

    *Utility.* With c = 2 (1 if monotone), and scores and sensitivity on the grid, P[score > lowest + alpha] is at most
    1.001 (k - 1) / 2 e**(-(epsilon - 2**-36) alpha / (c sensitivity)) for alpha below about 44 c sensitivity / epsilon;
    a candidate that is worse than that counts as just that much worse. That is half of what the exponential mechanism
    promises.

    *Time.* Each draw takes about 13 k + 16 random bytes, and tosses the coins that are sure to succeed as well. For
    integer scores, the instructions of a draw and the addresses that they touch depend on the number of candidates and
    draws and on the parameters, not on scores, random bits or the result. Computing the scores, converting arrays of
    other types or with a granularity, and Python's int for the result are not constant time.

    *Errors.* An error about a score (NaN, say) tells something about the data. What computes scores from private
    data must map bad ones to a public value first, so that nothing is raised.

    References
    ----------
    McKenna, Sheldon, "Permute-and-Flip: A new mechanism for differentially private selection" (NeurIPS 2020).

    Examples
    --------
    >>> votes = [12, 30, 29]
    >>> choice = PermuteAndFlip(epsilon=1, sensitivity=1, maximize=True)
    >>> choice.sample(votes) in (0, 1, 2)
    True
    >>> choice.pmf(votes).probabilities.round(4).tolist()
    [0.0, 0.6967, 0.3033]
    >>> choice.certified_epsilon <= 1
    True
    >>> loss = PermuteAndFlip(epsilon="0.5", sensitivity=0.1, granularity=2**-20)
    >>> loss.sample([0.25, 0.375, 0.1], size=5).shape
    (5,)
    """

    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> _core.PermuteAndFlipRate:
        return _core.PermuteAndFlipRate(level, sensitivity, monotone)

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs, for data that a neighbor changes by the sensitivity at most. It has no bounded range."""
        from userdp.accounting.cost import PrivacyCost

        return PrivacyCost(self._arguments["epsilon"], neighbors=self.neighbors)

    def privacy_loss(self) -> PrivacyLossDistribution:
        """The privacy loss of one draw: at most that of Laplace noise that is epsilon-DP, roundings included.

        Returns
        -------
        PrivacyLossDistribution
            Of continuous noise whose largest loss is epsilon: docs/proofs/permute_and_flip.md.
        """
        from userdp.accounting.privacy_loss import laplace_above

        return laplace_above(self._arguments["epsilon"], self.neighbors)

    def pmf(self, scores: Scores) -> Pmf:
        """The distribution that is drawn from: outputs 0, ..., k-1 and integer weights of total 2**(103 k + 128).

        Not constant time, and not private: for audits.

        Parameters
        ----------
        scores : array-like with shape (k,)
            As for `sample`.

        Raises
        ------
        BudgetError
            For more than 64 candidates; `pmf_bounds` takes up to 4096.
        """
        integers, maximize = self._on_grid(scores)
        numerators = self._rate.numerators(integers, maximize)
        return Pmf(tuple(range(len(numerators))), tuple(numerators), positional=True)

    def pmf_bounds(self, scores: Scores) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Floats around the probabilities of the distribution that is drawn from.

        Not constant time, and not private: for audits. Time grows with the square of the number of candidates.

        Parameters
        ----------
        scores : array-like with shape (k,)
            As for `sample`.

        Returns
        -------
        lower, upper : ndarray of float64 with shape (k,)
            The probability of candidate i is at least ``lower[i]`` and at most ``upper[i]``. They are within a relative
            2e-11 of each other.

        Raises
        ------
        BudgetError
            For more than 4096 candidates.

        Examples
        --------
        >>> choice = PermuteAndFlip(epsilon=1, sensitivity=1)
        >>> lower, upper = choice.pmf_bounds(range(1000))
        >>> bool((lower <= upper).all()), bool((upper / lower - 1).max() < 2e-11)
        (True, True)
        """
        integers, maximize = self._on_grid(scores)
        return self._rate.bounds(integers, maximize)
