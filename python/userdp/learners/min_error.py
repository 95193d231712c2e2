"""The error of the best hypothesis, estimated privately by bisection.

Source: Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024): PrivateCompare, [LWY24,
Lemma C.1], and PrivateMinError, [LWY24, Algorithm 2].
The algorithm as printed has its branches the wrong way round: a comparison that finds the least error above a guess
must raise the lower end.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import equal_part
from userdp.exact.numbers import Epsilon, check_count, open_unit_fraction, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.learners.tolerance import read_minimal_errors, separation
from userdp.mechanisms import DiscreteLaplace
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler, output_distribution, run
from userdp.runtime import source_of

if TYPE_CHECKING:
    from userdp import _core

MAX_STEPS = 2**12
"""The most outcomes that are listed for an exact distribution."""


class NoisyComparison:
    """Whether a count plus noise is above a public limit: the mechanism that is both drawn and audited.

    Parameters
    ----------
    epsilon : Epsilon
        All of it is spent on one comparison of a count of sensitivity 1.
    n_users : int
        Counts and limits are in 0, ..., n_users.
    """

    def __init__(self, epsilon: Epsilon, n_users: int) -> None:
        self.n_users = n_users
        # Clamping the noisy count to 0, ..., n + 1 does not move it across a limit in 0, ..., n.
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=1, bounds=(0, n_users + 1))

    def _draw(self, source: _core.Source, count: int, limit: int) -> int:
        return int(self._noise._draw(source, count) > limit)

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss; at most epsilon."""
        return self._noise.certified_epsilon

    def pmf(self, count: int, limit: int) -> Pmf:
        """The distribution of the answer, 0 or 1."""
        weights = self._noise.pmf(count).weights
        # The values are 0, ..., n + 1.
        below = sum(weights[: limit + 1])
        return Pmf((0, 1), (below, sum(weights) - below))


def compare(
    draw: Sampler,
    comparison: NoisyComparison,
    minimal_errors: npt.NDArray[np.int64],
    guess: Fraction,
    alpha: Fraction,
) -> int:
    """The comparison as a part of a program; see `private_compare`."""
    if guess + alpha / 2 > 1:
        return 0
    t, gap, tail = separation(len(minimal_errors), float(guess), float(guess + alpha / 2))
    # An integer limit: a part of n that is a multiple of 2^-32.
    part = min(max(round((tail + gap / 2) * 2**32), 0), 2**32)
    sigma: int = draw(comparison, int(minimal_errors[t]), comparison.n_users * part >> 32)
    return sigma


def rounds_of(alpha: Fraction) -> int:
    """How often bisection of [0, 1] must halve it for a length of at most alpha / 2."""
    return (math.ceil(2 / alpha) - 1).bit_length()


def one_comparison(epsilon: Epsilon, alpha: Fraction, n_users: int) -> NoisyComparison:
    """What `estimate_min_error` draws from in each of its rounds, at an equal part of epsilon."""
    return NoisyComparison(equal_part(epsilon, rounds_of(alpha)), n_users)


def estimate_min_error(
    draw: Sampler, comparison: NoisyComparison, minimal_errors: npt.NDArray[np.int64], alpha: Fraction
) -> Fraction:
    """Bisection as a part of a program; see `private_min_error`."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(rounds_of(alpha)):
        middle = (low + high) / 2
        if compare(draw, comparison, minimal_errors, middle, alpha):
            low = middle
        else:
            high = middle
    return low


def private_compare(
    minimal_errors: npt.ArrayLike,
    guess: Any,
    *,
    n_users: int,
    epsilon: Epsilon,
    alpha: Any,
    random_state: int | None = None,
) -> int:
    """Is the error of the best hypothesis above a guess? Epsilon-DP.

    Parameters
    ----------
    minimal_errors : array-like of int with shape (m,)
        For t = 0, ..., m - 1 the exact minimum over all hypotheses h of the number of users on whom h makes more than t
        mistakes. Private. Values outside 0, ..., n_users are clamped.
    guess : float, int, Fraction or decimal string
        Public, in [0, 1].
    n_users : int
        The number of users n, >= 1; public.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, > 0.
    alpha : float, Fraction or decimal string
        The accuracy wanted, from 2**-30 to below 1.
    random_state : None or int
        None draws from the operating system's cryptographic generator. An integer makes the draw reproducible, for
        tests only, and warns.

    Returns
    -------
    int
        1 when the least error seems to be above the guess, 0 when it seems to be at most guess + alpha / 2. With enough
        users the answer is right, with high probability; between the two either is.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

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
    Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024): [LWY24, Lemma C.1].

    Examples
    --------
    >>> minimal_errors = [590, 180, 27, 2]  # of 1000 users with 4 examples each and the least error 1 / 5
    >>> private_compare(minimal_errors, 0.1, n_users=1000, epsilon=1, alpha=0.1)
    1
    >>> private_compare(minimal_errors, 0.4, n_users=1000, epsilon=1, alpha=0.1)
    0
    """
    program = _compare_program(minimal_errors, guess, n_users, epsilon, alpha)
    return int(run(program, source_of(random_state)))


def private_compare_pmf(
    minimal_errors: npt.ArrayLike, guess: Any, *, n_users: int, epsilon: Epsilon, alpha: Any
) -> Pmf:
    """The exact distribution of `private_compare` on the same arguments. **Not private**: for audits."""
    return output_distribution(_compare_program(minimal_errors, guess, n_users, epsilon, alpha), (0, 1))


def private_min_error(
    minimal_errors: npt.ArrayLike, *, n_users: int, epsilon: Epsilon, alpha: Any, random_state: int | None = None
) -> Fraction:
    """Estimate the error of the best hypothesis up to alpha: epsilon-DP.

    Parameters
    ----------
    minimal_errors, n_users, epsilon, alpha, random_state
        As for `private_compare`.

    Returns
    -------
    Fraction
        A multiple of 2**-T in [0, 1), with T = ceil(log2(2 / alpha)): the lower end of the interval that bisection
        arrives at. With enough users it is within alpha of the least error, with high probability.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave: T comparisons at epsilon / T each,
    which compose to epsilon; the guesses depend on the answers before them only.

    *Branches.* An answer of 1, an error above the guess, raises the lower end. [LWY24, Algorithm 2] as printed lowers
    the upper end, which is as private and estimates an error of 0.3 as nearly 1.

    References
    ----------
    Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024): [LWY24, Algorithm 2] and [LWY24,
    Lemma 4.5].

    Examples
    --------
    >>> minimal_errors = [59000, 18000, 2700, 200]  # of 100000 users with 4 examples each and the least error 1 / 5
    >>> abs(private_min_error(minimal_errors, n_users=100_000, epsilon=1, alpha=0.1) - 0.2) <= 0.1
    True
    """
    return Fraction(run(_min_error_program(minimal_errors, n_users, epsilon, alpha), source_of(random_state)))


def private_min_error_pmf(minimal_errors: npt.ArrayLike, *, n_users: int, epsilon: Epsilon, alpha: Any) -> Pmf:
    """The exact distribution of `private_min_error` on the same arguments. **Not private**: for audits."""
    return output_distribution(_min_error_program(minimal_errors, n_users, epsilon, alpha), possible_min_errors(alpha))


def possible_min_errors(alpha: Any) -> tuple[Fraction, ...]:
    """All values that `private_min_error` may return.

    Raises
    ------
    BudgetError
        For more than 2**12 of them.
    """
    steps = 2 ** rounds_of(accuracy(alpha))
    if steps > MAX_STEPS:
        raise BudgetError(
            f"alpha = {short_repr(alpha)} makes {steps} outcomes, and at most {MAX_STEPS} are listed; raise alpha"
        )
    return tuple(Fraction(step, steps) for step in range(steps))


def _compare_program(minimal_errors: Any, guess: Any, n_users: Any, epsilon: Epsilon, alpha: Any) -> AdaptiveMechanism:
    n = check_count(n_users, "n_users")
    errors, at = read_minimal_errors(minimal_errors, n), parse_delta(guess, "guess")
    width, comparison = accuracy(alpha), NoisyComparison(epsilon, n)
    return lambda draw: compare(draw, comparison, errors, at, width)


def _min_error_program(minimal_errors: Any, n_users: Any, epsilon: Epsilon, alpha: Any) -> AdaptiveMechanism:
    n = check_count(n_users, "n_users")
    errors, width = read_minimal_errors(minimal_errors, n), accuracy(alpha)
    comparison = one_comparison(epsilon, width, n)
    return lambda draw: estimate_min_error(draw, comparison, errors, width)


def accuracy(alpha: Any) -> Fraction:
    """Read alpha; finer estimates would need more users than there are.

    Raises
    ------
    TypeError, ValueError
        Unless it is a number from 2**-30 to below 1.
    """
    return open_unit_fraction(alpha, "alpha", bits=30)
