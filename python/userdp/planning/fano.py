"""How many users it takes to tell distributions apart privately: Fano's inequality for users, with all constants.

Statements and proofs: docs/proofs/lower_bounds.md. Numbers of users are floats' work and are rounded down; nothing here
sees data, and no privacy rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import float_above
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    check_count,
    nonzero_level,
    open_unit_interval,
    parse_delta,
    parse_exact,
    short_repr,
)

Floats = npt.NDArray[np.float64]

MARGIN = 1e-9
"""Distances and sizes of packings are moved by this part of them to the safe side, far more than they are rounded."""
MOST_USERS = 2**60
MOST_VARIANCE = 1e8
"""Beyond it the number of users who differ is not summed over, but bounded by its tail."""
MOST_COUPLED = 2**40
"""Records of a user, up to which two coins are compared exactly."""
TINY = 1e-300


@dataclass(frozen=True)
class Level:
    """The privacy of an algorithm, as floats that are rounded toward less of it."""

    rate: float  # epsilon, > 0
    delta: float

    @classmethod
    def of(cls, epsilon: Epsilon, delta: Delta) -> Level:
        """Read privacy parameters."""
        slack = parse_delta(delta)
        # A larger epsilon or delta gives a lower bound that is lower.
        rate = max(float_above(nonzero_level(epsilon)), TINY)
        return cls(min(rate, 1e300), min(math.nextafter(float(slack), 1), 1.0) if slack else 0.0)

    def grouped(self, changes: Floats) -> Floats:
        """An upper bound of delta for so many changed users."""
        if not self.delta:
            return np.zeros_like(changes)
        exponents = self.rate * changes
        # (e^(h epsilon) - 1) / (e^epsilon - 1), and h for the smallest epsilon.
        with np.errstate(over="ignore"):
            ratio = np.expm1(np.minimum(exponents, 700.0)) / math.expm1(min(self.rate, 700.0))
        ratio = np.where(exponents > 700.0, math.inf, np.maximum(ratio, changes > 0))
        return np.minimum(self.delta * ratio * (1 + MARGIN), 1.0)


def log_least_mass(n: int, tv: float, level: Level, beta: float) -> float:
    """A lower bound of the logarithm of the probability of a good answer for a distribution that it is not.

    An answer is good for one distribution of n users with probability 1 - beta, and users of the other one can be had
    by replacing each of them with probability at most tv, independently. -inf where nothing is bounded.
    """
    changes, masses, margin = users_who_differ(n, tv)
    # Where the answer is good, the fewest users differ, but for the beta that is lost: the worst that can be.
    cumulative = np.cumsum(masses)
    good = np.clip(cumulative - beta - margin, 0.0, masses)
    if not level.delta:
        with np.errstate(divide="ignore"):
            parts = np.log(good) - level.rate * changes
        top = float(parts.max())
        if top == -math.inf:
            return -math.inf
        return top + math.log(float(np.exp(parts - top).sum())) + math.log1p(-margin)
    # e^(-h epsilon) (a - delta_h), summed up to the best h.
    decay = np.exp(-level.rate * changes)
    lost = masses * np.minimum(decay * level.grouped(changes), level.delta / math.expm1(min(level.rate, 700.0)))
    least = float(np.cumsum(decay * good * (1 - margin) - lost * (1 + margin)).max())
    return math.log(least) if least > 0 else -math.inf


def two_point_error(n: int, tv: float, level: Level) -> float:
    """A lower bound of the mean failure of every private test of two distributions, as `log_least_mass`."""
    changes, masses, margin = users_who_differ(n, tv)
    kept = 1 - level.grouped(changes)
    return float((masses * kept / (1 + np.exp(np.minimum(level.rate * changes, 700.0)))).sum()) * (1 - margin)


def two_point_square(n: int, tv: float, level: Level) -> float:
    """A lower bound of the mean square error of every private guess of which of two it is, 0 or 1."""
    changes, masses, margin = users_who_differ(n, tv)
    odds = np.exp(-np.minimum(level.rate * changes, 700.0))
    return float((masses * (1 - level.grouped(changes)) * odds / (1 + odds) ** 2).sum()) * (1 - margin)


def users_who_differ(n: int, tv: float) -> tuple[Floats, Floats, float]:
    """Numbers of users who differ, their probabilities, and by which part of them these may be too large."""
    if tv >= 1 or tv <= 0:
        return np.array([float(n) if tv >= 1 else 0.0]), np.ones(1), 1e-12
    mean = n * tv
    variance = mean * (1 - tv)
    if variance > MOST_VARIANCE:
        # All but e^-40 of them, at once; Bernstein: t^2 = 80 (v + t / 3).
        most = min(float(n), math.ceil(mean + 27 + math.sqrt(80 * variance)))
        return np.array([most]), np.ones(1), 1e-12
    # All others have less than 2 e^-80; Bernstein: t^2 >= 160 (v + t / 3).
    reach = 54 + math.sqrt(160 * variance)
    changes = np.arange(max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach)) + 1, dtype=np.float64)
    steps = np.log((n - changes[:-1]) / (changes[:-1] + 1)) + (math.log(tv) - math.log1p(-tv))
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    masses = np.exp(logarithms - logarithms.max())
    # A step is a sum of two logarithms below 100, each good to an ulp.
    return changes, masses / masses.sum(), 1e-12 + 6e-14 * len(changes)


def users_until(impossible: Callable[[int], bool], guess: float = 1.0) -> int:
    """One more than the largest number of users that was found to be impossible; numbers below it are, too."""
    if not impossible(1):
        return 1
    low, high = 1, 2
    if 2 < guess < MOST_USERS / 4 and impossible(int(guess)):
        low, high = int(guess), math.ceil(1.1 * guess) + 1
    while impossible(high):
        if high >= MOST_USERS:
            return MOST_USERS
        low, high = high, min(2 * high, MOST_USERS)
    while high - low > max(1, low >> 30):
        middle = (low + high) // 2
        low, high = (middle, high) if impossible(middle) else (low, middle)
    return low + 1


def users_to_tell_apart(
    log_size: float, level: Level, beta: float, *, pair: float = 1.0, center: float = 1.0
) -> tuple[int, int]:
    """Users needed for many distributions by [GKKMMZ23, Lemma 39], against one another and against a common center.

    `log_size` is the logarithm of their number, rounded down; `pair` and `center` are total variations of a user's
    records, rounded up: of any two of them, and of any of them and one distribution. The larger number counts.
    """
    others = log_size + math.log1p(-math.exp(-log_size)) if log_size < 36 else log_size - 1e-15
    return (
        _users(others - 1e-12, math.log(beta), level, beta, pair),
        _users(log_size, 0.0, level, beta, center),
    )


def _users(log_others: float, log_allowed: float, level: Level, beta: float, tv: float) -> int:
    allowed = log_allowed + 1e-12
    guess = max(log_others - log_allowed, 0.0) / (level.rate * max(tv, TINY))
    return users_until(lambda n: log_others + log_least_mass(n, tv, level, beta) > allowed, guess)


def users_to_tell_two_apart(level: Level, beta: float, tv: float) -> int:
    """Users needed for a private test of two distributions, each with probability 1 - beta at least."""
    guess = max(math.log((1 - beta) / beta), 0.0) / (level.rate * max(tv, TINY)) if beta > 0 else 1.0
    return users_until(lambda n: two_point_error(n, tv, level) > beta * (1 + 1e-12), guess)


def users_by_information(log_size: float, beta: float, kl: float) -> int:
    """Users without whom a user's `kl` nats about which of many it is are too few, also without privacy."""
    if not 0 < beta < 1:
        return 1
    wrong = -beta * math.log(beta) - (1 - beta) * math.log1p(-beta)
    needed, kl = (log_size * (1 - beta) - wrong) * (1 - MARGIN) - 1e-12, max(kl, TINY)
    return _ceil(needed / kl) if kl < math.inf and needed > 0 else 1


def users_by_affinity(beta: float, log_affinity: float) -> int:
    """Users without whom two distributions are not told apart, also without privacy, by minus ln of their affinity."""
    if beta >= 0.5 or not 0 < log_affinity < math.inf:
        return 1
    return _ceil(-math.log(4 * beta * (1 - beta)) * (1 - MARGIN) / (2 * log_affinity))


def _ceil(users: float) -> int:
    return MOST_USERS if users > MOST_USERS else max(1, math.ceil(users))


def tv_of_user(m: int, *, kl: float = math.inf, tv: float = 1.0, log_affinity: float = math.inf) -> float:
    """An upper bound of the total variation of a user's m records, by distances of one record."""
    total = m * kl
    bounds = [1.0]
    if total < math.inf:
        bounds += [math.sqrt(total / 2), math.sqrt(-math.expm1(-total))]  # Pinsker; Bretagnolle and Huber
    if tv < 1:
        bounds.append(-math.expm1(m * math.log1p(-tv)))  # a coupling in which all m agree
    if m * log_affinity < math.inf:
        bounds.append(math.sqrt(-math.expm1(-2 * m * log_affinity)))  # by the Hellinger distance
    return min(1.0, min(bounds) * (1 + MARGIN))


def tv_of_coins(m: int, p: float, q: float) -> float:
    """The total variation of m tosses of a coin of probability p and of one of q > p, rounded up."""
    if m > MOST_COUPLED:
        return tv_of_user(m, log_affinity=log_affinity_of_coins(p, q))
    _, gap, _ = _core.separating_threshold(m, p, q)
    return min(1.0, gap * (1 + MARGIN) + 1e-12 * (gap > 0.01))


def log_affinity_of_coins(p: float, q: float) -> float:
    """Minus ln of the affinity of coins of these probabilities, rounded up, also where they are close."""
    # 1 less half of the squared Hellinger distance, whose parts are (q - p)^2 / (sqrt(p) + sqrt(q))^2.
    apart = (q - p) ** 2
    ends = apart / (math.sqrt(p) + math.sqrt(q)) ** 2 + apart / (math.sqrt(1 - p) + math.sqrt(1 - q)) ** 2
    return -math.log1p(-ends / 2) * (1 + MARGIN) if ends < 2 else math.inf


def fano_users(
    n_distributions: int,
    *,
    epsilon: Epsilon,
    beta: Delta,
    delta: Delta = 0,
    m: int = 1,
    kl: Delta | None = None,
    tv: Delta | None = None,
) -> int:
    """How many users every private algorithm needs at least to tell distributions apart.

    Parameters
    ----------
    n_distributions : int
        W >= 2 distributions of a record, for which no answer is good twice.
    epsilon, delta : privacy parameters
        Epsilon > 0. For users; neighbors replace one.
    beta : float, int, Fraction or decimal string
        In (0, 1): with n users whose records are drawn from any of the distributions, the answer is good for it with
        probability at least 1 - beta.
    m : int
        Records of each user, drawn independently.
    kl : float, int, Fraction or decimal string, optional
        >= 0: the largest Kullback-Leibler divergence of any two of the distributions, in nats, both ways.
    tv : float, int, Fraction or decimal string, optional
        In [0, 1]: the largest total variation of any two of them. Without both, users' records may say all at once.

    Returns
    -------
    int
        Every (epsilon, delta)-DP algorithm has at least so many users. 1 says nothing.

    Notes
    -----
    With h users who differ, of distribution Bin(n, gamma) where gamma bounds the total variation of m records, an
    answer that is good for one distribution has probability at least e^(-h epsilon) of that for every other, and all
    together beta at most. The sum over h is taken, not bounded; with delta = 0 the number is at least the larger one of

    * ln((W - 1)(1 - beta) / beta) / epsilon, whatever m is,
    * (ln((W - 1)(1/2 - beta) / beta) / epsilon - 1) / gamma,
    * ((1 - beta) ln W - ln 2) / (m kl), which also holds without privacy.

    Proof: docs/proofs/lower_bounds.md. Rounded down where it is not exact.

    References
    ----------
    [GKKMMZ23, Theorem 38] and [GKKMMZ23, Lemma 39], of which both hide all constants.

    Examples
    --------
    >>> fano_users(2**20, epsilon=1, beta="1/3")
    15
    >>> [fano_users(2**20, epsilon=1, beta="1/3", m=m, kl=0.01) for m in (1, 4, 16, 10**6)]
    [861, 216, 54, 15]
    """
    size, records = check_count(n_distributions, "n_distributions", 2), check_count(m, "m")
    level, failure = Level.of(epsilon, delta), open_unit_interval(beta, "beta")
    divergence, distance = math.inf, 1.0
    if kl is not None:
        exact = parse_exact(kl, "kl", "a number >= 0")
        if exact < 0:
            raise ValueError(f"kl must be >= 0; got {short_repr(kl)}")
        divergence = float(min(exact, Fraction(10**300))) * (1 + MARGIN)
    if tv is not None:
        distance = min(1.0, float(parse_delta(tv, "tv")) * (1 + MARGIN))
    records = min(records, 10**300)
    log_size = math.log(size) * (1 - 1e-15)
    if divergence == 0 or distance == 0:
        # One distribution, for which W answers cannot all be good.
        return MOST_USERS if (size - 1) * (1 - failure) > failure else 1
    user = tv_of_user(records, kl=divergence, tv=distance)
    users = users_to_tell_apart(log_size, level, failure, pair=user)[0]
    if size == 2:
        users = max(users, users_to_tell_two_apart(level, failure, user))
    return max(users, users_by_information(log_size, failure, records * divergence))


def users_from_item_level(item_users: int, *, m: int) -> int:
    """How many users with m records are needed, if with one record each `item_users` are.

    Parameters
    ----------
    item_users : int
        n_1 >= 0: no algorithm with this privacy for records solves the task with fewer records.
    m : int
        Records of each user.

    Returns
    -------
    int
        n_1 / m, rounded up: m records at a time can be given to an algorithm for users as those of one user.

    Notes
    -----
    The other half says that n_1 users are enough if they are with one record each: keep the first record of everybody.

    References
    ----------
    [GKKMMZ23, Observation 28].

    Examples
    --------
    >>> users_from_item_level(1000, m=16)
    63
    """
    return -(-check_count(item_users, "item_users", 0) // check_count(m, "m"))
