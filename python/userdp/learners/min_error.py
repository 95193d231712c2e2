"""The error of the best hypothesis, estimated privately by bisection.

Source: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024): PrivateCompare, [LWY24,
Lemma C.1], and PrivateMinError, [LWY24, Algorithm 2]. The algorithm as printed has its branches the wrong way round: a
comparison that finds the least error above a guess must raise the lower end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from userdp.estimators.plan import check_listed, equal_part
from userdp.exact.numbers import Epsilon, open_unit_fraction, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.learners.tolerance import ComposedMechanism, Counts, check_n_users, read_minimal_errors, separation
from userdp.mechanisms import DiscreteLaplace
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp import _core

MAX_STEPS = 2**12
"""The most outcomes that are listed for an exact distribution."""


class NoisyComparison:
    """Whether a count of sensitivity 1 plus noise is above a public limit; both are in 0, ..., n_users."""

    def __init__(self, epsilon: Epsilon, n_users: int) -> None:
        self.n_users = n_users
        # Clamping the noisy count to 0, ..., n + 1 does not move it across a limit in 0, ..., n.
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=1, bounds=(0, n_users + 1))

    def _draw(self, source: _core.Source, count: int, limit: int) -> int:
        return int(self._noise._draw(source, count) > limit)

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the privacy loss of one comparison."""
        return self._noise.certified_epsilon

    def pmf(self, count: int, limit: int) -> Pmf:
        """The distribution of the answer, 0 or 1."""
        weights = self._noise.pmf(count).weights
        # The values are 0, ..., n + 1.
        below = sum(weights[: limit + 1])
        return Pmf((0, 1), (below, sum(weights) - below))


def compare(
    draw: Sampler, comparison: NoisyComparison, minimal_errors: Counts, guess: Fraction, alpha: Fraction
) -> int:
    """Compare the least error with a guess, as a part of a program; see `PrivateCompare`."""
    if guess + alpha / 2 > 1:
        return 0
    t, gap, tail = separation(len(minimal_errors), float(guess), float(guess + alpha / 2))
    # An integer limit: a part of n that is a multiple of 2^-32.
    part = min(max(round((tail + gap / 2) * 2**32), 0), 2**32)
    return draw(comparison, int(minimal_errors[t]), comparison.n_users * part >> 32)


def rounds_of(alpha: Fraction) -> int:
    """Return how often bisection of [0, 1] must halve it for a length of at most alpha / 2."""
    return (math.ceil(2 / alpha) - 1).bit_length()


def one_comparison(epsilon: Epsilon, alpha: Fraction, n_users: int) -> NoisyComparison:
    """Return what `estimate_min_error` draws from in each of its rounds, at an equal part of epsilon."""
    return NoisyComparison(equal_part(epsilon, rounds_of(alpha)), n_users)


def estimate_min_error(draw: Sampler, comparison: NoisyComparison, minimal_errors: Counts, alpha: Fraction) -> Fraction:
    """Bisect as a part of a program; see `PrivateMinError`."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(rounds_of(alpha)):
        middle = (low + high) / 2
        if compare(draw, comparison, minimal_errors, middle, alpha):
            low = middle
        else:
            high = middle
    return low


class PrivateCompare(ComposedMechanism):
    """Decide whether the error of the best hypothesis is above a guess: epsilon-DP.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, > 0.
    n_users : int
        The number of users n, from 1 to 2**62 - 1; public.
    alpha : float, Fraction or decimal string
        The accuracy wanted, from 2**-30 to below 1.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave. *Proof.* t and the limit, a part of n
    half way between Pr[Bin(m, guess) > t] and Pr[Bin(m, guess + alpha / 2) > t] and rounded to an integer, depend on
    public numbers only. Replacing one user changes minimal_errors[t] by at most 1, for which `DiscreteLaplace` adds
    noise with all of epsilon; the answer is a function of the sum. Where guess + alpha / 2 > 1 the answer is 0 without
    a look at the data.

    The exact minimum matters: one that is found by a search in the data may change by more than 1.

    References
    ----------
    Li, Wang, Ye (2024): [LWY24, Lemma C.1].

    Examples
    --------
    >>> minimal_errors = [590, 180, 27, 2]  # of 1000 users with 4 examples each and the least error 1 / 5
    >>> above = PrivateCompare(epsilon=1, n_users=1000, alpha=0.1)
    >>> above.sample(minimal_errors, 0.1), above.sample(minimal_errors, 0.4)
    (1, 0)
    """

    def __init__(self, *, epsilon: Epsilon, n_users: int, alpha: Any) -> None:
        super().__init__(epsilon=epsilon, n_users=n_users, alpha=alpha)
        self.n_users, self.alpha = check_n_users(n_users), accuracy(alpha)
        self._comparison = NoisyComparison(epsilon, self.n_users)

    def sample(self, minimal_errors: npt.ArrayLike, guess: Any, random_state: int | None = None) -> int:
        """Draw the answer.

        Parameters
        ----------
        minimal_errors : array-like of int with shape (m,)
            For t = 0, ..., m - 1 the exact minimum over all hypotheses h of the number of users on whom h makes more
            than t mistakes. Private. Values outside 0, ..., n_users are clamped.
        guess : float, int, Fraction or decimal string
            Public, in [0, 1].
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible, for
            tests only, and warns.

        Returns
        -------
        int
            1 when the least error seems to be above the guess, 0 when it seems to be at most guess + alpha / 2. With
            enough users the answer is right, with high probability; between the two either is.
        """
        return int(self._sample(random_state, minimal_errors, guess))

    def pmf(self, minimal_errors: npt.ArrayLike, guess: Any) -> Pmf:
        """Return the exact distribution of `sample` over 0 and 1. **Not private**: for audits."""
        return self._pmf(minimal_errors, guess)

    def _program(self, minimal_errors: Any, guess: Any) -> tuple[AdaptiveMechanism, Callable[[], Sequence[int]]]:
        errors, at = read_minimal_errors(minimal_errors, self.n_users), parse_delta(guess, "guess")
        return lambda draw: compare(draw, self._comparison, errors, at, self.alpha), lambda: (0, 1)


class PrivateMinError(ComposedMechanism):
    """Estimate the error of the best hypothesis up to alpha: epsilon-DP.

    Parameters
    ----------
    epsilon, n_users, alpha
        As for `PrivateCompare`.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave: T comparisons at epsilon / T each,
    which compose to epsilon; the guesses depend on the answers before them only.

    *Branches.* An answer of 1, an error above the guess, raises the lower end. [LWY24, Algorithm 2] as printed lowers
    the upper end, which is as private and estimates an error of 0.3 as nearly 1.

    References
    ----------
    Li, Wang, Ye (2024): [LWY24, Algorithm 2] and [LWY24, Lemma 4.5].

    Examples
    --------
    >>> minimal_errors = [59000, 18000, 2700, 200]  # of 100000 users with 4 examples each and the least error 1 / 5
    >>> estimate = PrivateMinError(epsilon=1, n_users=100_000, alpha=0.1).sample(minimal_errors)
    >>> abs(estimate - 0.2) <= 0.1
    True
    """

    def __init__(self, *, epsilon: Epsilon, n_users: int, alpha: Any) -> None:
        super().__init__(epsilon=epsilon, n_users=n_users, alpha=alpha)
        self.n_users, self.alpha = check_n_users(n_users), accuracy(alpha)
        self._comparison = one_comparison(epsilon, self.alpha, self.n_users)

    def sample(self, minimal_errors: npt.ArrayLike, random_state: int | None = None) -> Fraction:
        """Draw the estimate.

        Parameters
        ----------
        minimal_errors, random_state
            As for `PrivateCompare.sample`.

        Returns
        -------
        Fraction
            A multiple of 2**-T in [0, 1), with T = ceil(log2(2 / alpha)): the lower end of the interval that bisection
            arrives at. With enough users it is within alpha of the least error, with high probability.
        """
        return Fraction(self._sample(random_state, minimal_errors))

    def pmf(self, minimal_errors: npt.ArrayLike) -> Pmf:
        """Return the exact distribution of `sample`. **Not private**: for audits.

        Raises
        ------
        BudgetError
            For more than 2**12 outcomes.
        """
        return self._pmf(minimal_errors)

    def _program(self, minimal_errors: Any) -> tuple[AdaptiveMechanism, Callable[[], Sequence[Fraction]]]:
        errors = read_minimal_errors(minimal_errors, self.n_users)
        return lambda draw: estimate_min_error(draw, self._comparison, errors, self.alpha), self._outcomes

    def _outcomes(self) -> Sequence[Fraction]:
        steps = 2 ** rounds_of(self.alpha)
        check_listed(steps, f"raise alpha = {short_repr(self._arguments['alpha'])}", MAX_STEPS)
        return tuple(Fraction(step, steps) for step in range(steps))


def accuracy(alpha: Any) -> Fraction:
    """Read alpha, from 2**-30 to below 1: finer estimates would need more users than there are."""
    return open_unit_fraction(alpha, "alpha", bits=30)
