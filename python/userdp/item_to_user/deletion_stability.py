"""How stable algorithms are under deletions of users: proved from item-level privacy, and measured on drawn data.

The proved numbers are plans: they say how many users are enough, and no privacy claim rests on them. They are computed
with 60 decimal digits, each result moved outwards by one part in 10^30, which is far more than the roundings can add up
to. Statement and proof: docs/proofs/perfect_generalization.md.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Literal

from userdp.algorithms.distributions import read_distribution
from userdp.algorithms.finite import pmf_error_of
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    clopper_pearson,
    parse_delta,
    parse_level,
    round_down,
    round_up,
)
from userdp.lddp import check_lddp
from userdp.runtime import Progress, progress_bar

Route = Literal["best", "concentration", "group"]

_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_UP, _DOWN = Decimal(f"1.{'0' * 29}1"), Decimal(f"0.{'9' * 30}")
"""More and less than 1 by 10^-30, as texts: a sum has the 28 digits of whatever context there is, and would be 1."""
_PI = Decimal("3.1415926535897932384626433832795028841972")  # rounded up
_LEAST = Decimal("1e-400")  # below all floats; stands for anything smaller
_TINY, _HUGE = Decimal("1e-12"), 10**6
PARTS = 4
_CLOSE = Decimal("1.0000001")


@dataclass(frozen=True, slots=True)
class StabilityLevel:
    """An (epsilon, delta) level that holds with probability 1 - beta over the data.

    Attributes
    ----------
    epsilon, delta : float
        Rounded upwards; delta is at most 1.
    route : {"concentration", "group"}
        How it was obtained. Group privacy holds for all data.
    """

    epsilon: float
    delta: float
    route: Literal["concentration", "group"]


def generalization_level(
    epsilon: Epsilon,
    delta: Delta,
    *,
    n_items: int,
    beta: Delta,
    slack: Delta | None = None,
    route: Route = "best",
) -> StabilityLevel:
    """The level at which item-level privacy makes two independent samples indistinguishable, with high probability.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the algorithm, item level (replace one of its n items).
    n_items : int
        Number n >= 1 of independent items, all from one distribution, whatever it is.
    beta : number in (0, 1]
        Probability, over the two samples, with which the level may fail.
    slack : number in (0, 1), optional
        The free parameter delta_0 of the concentration bound: a smaller one gives a larger epsilon and a smaller delta.
        Default: delta, or 1e-12 for delta = 0.
    route : {"best", "concentration", "group"}
        Concentration, group privacy (n epsilon, for all data), or the one with the smaller epsilon.

    Returns
    -------
    StabilityLevel
        The algorithm is (beta, epsilon', delta')-sample perfectly generalizing.

    Notes
    -----
    [GKKMMZ23, Theorem 13], with explicit constants and without its assumption that the parameters are small. No privacy
    rests on it.

    References
    ----------
    [GKKMMZ23, Lemma 14], [GKKMMZ23, Theorem 15], [GKKMMZ23, Lemma 26], [GKKMMZ23, Lemma 27], [GKKMMZ23, Lemma 32],
    [GKKMMZ23, Lemma 33], [GKKMMZ23, Lemma 34] and [GKKMMZ23, Lemma 35].

    Examples
    --------
    >>> level = generalization_level(0.001, 0, n_items=10_000, beta=0.01)
    >>> level.route, round(level.epsilon, 2)
    ('concentration', 3.35)
    >>> generalization_level(0.001, 0, n_items=100, beta=0.01).route
    'group'
    """
    with decimal.localcontext(_CONTEXT):
        e, d, failure = (
            _log(parse_level(epsilon)) * _UP,
            _decimal(parse_delta(delta)) * _UP,
            positive_probability(beta, "beta"),
        )
        return _level(e, d, check_count(n_items, "n_items"), _ln(1 / failure) * _UP, slack, route)


def deletion_level(
    epsilon: Epsilon,
    delta: Delta,
    *,
    n_users: int,
    deletions: int,
    m: int,
    beta: Delta,
    slack: Delta | None = None,
    route: Route = "best",
) -> StabilityLevel:
    """The level at which an item-level private algorithm is stable under deletions of users, with high probability.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the algorithm, item level. The algorithm must not depend on the order of the users.
    n_users, deletions : int
        Number of users n >= 1, and number r of those deleted, 0 <= r <= n.
    m : int
        Number of items of every user, >= 1; items are independent, all from one distribution.
    beta : number in (0, 1]
        Probability, over the data, with which the level may fail.
    slack, route
        As for `generalization_level`.

    Returns
    -------
    StabilityLevel
        With probability at least 1 - beta the algorithm is (r, epsilon', delta')-LDDP at the data.

    Notes
    -----
    [GKKMMZ23, Theorem 17], through `generalization_level` with q m items, q = min(r, n - r), and beta over the number
    of unordered pairs of deletion sets. No privacy rests on it.

    Examples
    --------
    >>> deletion_level(0.0001, 0, n_users=1000, deletions=100, m=5, beta=0.01).route
    'group'
    >>> deletion_level(0.0001, 0, n_users=1000, deletions=100, m=100, beta=0.01).route
    'concentration'
    """
    with decimal.localcontext(_CONTEXT):
        e, d, failure = (
            _log(parse_level(epsilon)) * _UP,
            _decimal(parse_delta(delta)) * _UP,
            positive_probability(beta, "beta"),
        )
        differing, log_pairs = _deletion_pairs(n_users, deletions, m)
        return _level(e, d, differing, log_pairs + _ln(1 / failure) * _UP, slack, route)


def largest_item_epsilon(
    *, epsilon: Epsilon, delta: Delta, item_delta: Delta, n_users: int, deletions: int, m: int, beta: Delta
) -> float:
    """The largest item-level epsilon that makes an algorithm stable under deletions, with high probability.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        The LDDP level wanted, epsilon > 0.
    item_delta : number in [0, 1]
        The item-level delta of the algorithm.
    n_users, deletions, m, beta
        As for `deletion_level`.

    Returns
    -------
    float
        An (epsilon', item_delta)-DP algorithm with this epsilon', symmetric in users, is (r, epsilon, delta)-LDDP with
        probability at least 1 - beta. It is close to the largest that `deletion_level` certifies over all slacks (to
        1e-6 for item_delta = 0); infinite when nothing can differ (r = 0 or r = n); 0 when item_delta is too large
        for any.

    Examples
    --------
    By group privacy, an epsilon for 192 users of 4 items each; by concentration for 10^4 items each.

    >>> level = dict(epsilon="1/3", delta=1.8e-7, item_delta=0, n_users=1000, deletions=192, beta=0.01)
    >>> round(largest_item_epsilon(**level, m=4) * 4 * 192, 4)
    0.3333
    >>> largest_item_epsilon(**level, m=10_000) * 10_000 * 192 > 7
    True
    """
    with decimal.localcontext(_CONTEXT):
        wanted = _log(parse_level(epsilon)) * _DOWN
        threshold, d = _decimal(parse_delta(delta)) * _DOWN, _decimal(parse_delta(item_delta, "item_delta")) * _UP
        failure = positive_probability(beta, "beta")
        if wanted <= 0:
            raise ValueError(f"epsilon must be > 0; got {epsilon!r}")
        differing, log_pairs = _deletion_pairs(n_users, deletions, m)
        if differing == 0:
            return math.inf
        moves = _moves(differing, log_pairs + _ln(1 / failure) * _UP)

        def serves(e: Decimal) -> bool:
            if differing * e <= wanted and _group_delta(e, d, differing) <= threshold:
                return True
            proxy, left = _proxy(e, differing), (wanted - moves * e) / 2 * _DOWN
            # All that is left of epsilon goes to the concentration, unless delta grows too much with it.
            return any(
                half > proxy and _concentration_delta(e, d, differing, moves, half, _slack_of(half, proxy)) <= threshold
                for half in (left * part / PARTS for part in range(PARTS, 0 if d else PARTS - 1, -1))
            )

        low, high = wanted / differing * _DOWN, wanted  # group privacy, if item_delta is small enough for it
        if not serves(low):
            low /= 2**20
        if not serves(low):
            return 0.0
        if serves(high):
            return round_down(Fraction(high))
        while high > low * _CLOSE:
            middle = (low * high).sqrt()
            low, high = (middle, high) if serves(middle) else (low, middle)
        return round_down(Fraction(low))


def _level(e: Decimal, d: Decimal, n: int, log_failure: Decimal, slack: Delta | None, route: Route) -> StabilityLevel:
    """[GKKMMZ23, Theorem 13] for n differing items and failure probability e^-log_failure."""
    if route not in ("best", "concentration", "group"):
        raise ValueError(f"route must be 'best', 'concentration' or 'group'; got {route!r}")
    group = StabilityLevel(_float(n * e), min(1.0, _float(_group_delta(e, d, n))), "group")
    if route == "group" or n == 0:
        return group
    free = _decimal(positive_probability(slack, "slack")) if slack is not None else d or Decimal("1e-12")
    if not 0 < free < 1:
        raise ValueError(f"slack must be in (0, 1); got {slack if slack is not None else float(free)!r}")
    proxy, moves = _proxy(e, n), _moves(n, log_failure)
    half = (proxy + (2 * proxy * (-free.ln() + proxy / 2 + _gaussian_term(proxy))).sqrt()) * _UP
    delta = _concentration_delta(e, d, n, moves, half, free)
    concentration = StabilityLevel(_float(2 * half + moves * e), min(1.0, _float(delta)), "concentration")
    if route == "concentration":
        return concentration
    return concentration if concentration.epsilon < group.epsilon else group


def _proxy(e: Decimal, n: int) -> Decimal:
    """The variance proxy v = 4 n epsilon^2 of the log-ratio martingale."""
    return 4 * n * e * e * _UP


def _gaussian_term(proxy: Decimal) -> Decimal:
    return max(Decimal(0), (_PI * proxy / 2).ln() / 2) if proxy > 0 else Decimal(0)


def _slack_of(half: Decimal, proxy: Decimal) -> Decimal:
    """The delta_0 that the concentration at e^half gives; at most 1."""
    if proxy == 0:
        return _LEAST
    exponent = (half - proxy) ** 2 / (2 * proxy) - proxy / 2 - _gaussian_term(proxy)
    return Decimal(1) if exponent <= 0 else max(_LEAST, (-exponent).exp() * _UP) if exponent < _HUGE else _LEAST


def _moves(n: int, log_failure: Decimal) -> int:
    """McDiarmid: with this many items changed, in both samples together, a pair gets into a set of probability 1/2."""
    return int((((n * Decimal(2).ln()).sqrt() + (n * log_failure).sqrt()) * _UP).to_integral_value(decimal.ROUND_FLOOR))


def _concentration_delta(e: Decimal, d: Decimal, n: int, moves: int, half: Decimal, free: Decimal) -> Decimal:
    """e^(2a) delta_t + 4 e^(t epsilon) delta'', delta'' of [GKKMMZ23, Lemma 14]; 1 when that is far above 1."""
    if max(half, moves * e) > _HUGE:
        return Decimal(1)
    lemma = (1 + half.exp()) * free + (1 + (2 * half).exp()) * (1 + (-e).exp()) * n * d
    return ((2 * half).exp() * _group_delta(e, d, moves) + 4 * (moves * e).exp() * lemma) * _UP


def _group_delta(e: Decimal, d: Decimal, k: int) -> Decimal:
    """At or above delta (1 + e^epsilon + ... + e^((k-1) epsilon)); 1 when that may be far above 1."""
    if d == 0 or k == 0:
        return Decimal(0)
    if k * e > _HUGE:
        return Decimal(1)
    total = k * (k * e).exp() if e < _TINY else ((k * e).exp() - 1) / (e.exp() - 1)
    return d * total * _UP


def _deletion_pairs(n_users: int, deletions: int, m: int) -> tuple[int, Decimal]:
    """How many items two deletions can make differ, and the logarithm of the number of pairs of deletions."""
    users, removed, per_user = (
        check_count(n_users, "n_users"),
        check_count(deletions, "deletions", 0),
        check_count(m, "m"),
    )
    if removed > users:
        raise ValueError(f"deletions must be at most n_users = {users}; got {removed}")
    differing = min(removed, users - removed) * per_user
    low_removed, low_kept = _log_factorial(removed)[0], _log_factorial(users - removed)[0]
    subsets = max(Decimal(0), _log_factorial(users)[1] - low_removed - low_kept)
    return differing, max(Decimal(0), 2 * subsets - Decimal(2).ln() * _DOWN)


def _log_factorial(n: int) -> tuple[Decimal, Decimal]:
    """Bounds on ln n!: exact for small n, Robbins' form of Stirling's formula above."""
    if n <= 64:
        value = Decimal(math.factorial(n)).ln()
        return value * _DOWN, value * _UP
    stirling = (2 * _PI * n).ln() / 2 + n * Decimal(n).ln() - n
    return (stirling + 1 / Decimal(12 * n + 1)) * _DOWN, (stirling + 1 / Decimal(12 * n)) * _UP


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _ln(ratio: Fraction) -> Decimal:
    """Ln of a number >= 1. Near 1 its digits are in ratio - 1: ln(a/b) = 2 (z + z^3/3 + ...) for z = (a-b)/(a+b)."""
    a, b = ratio.numerator, ratio.denominator
    z = _decimal(Fraction(a - b, a + b))
    if z > Decimal("1e-6"):
        return _decimal(ratio).ln()
    return 2 * z * (1 + z * z / 3 + z**4 / 5 + z**6 / 7) if z else z


def _log(level: PrivacyLevel) -> Decimal:
    return _decimal(level.exponent) + _ln(level.ratio)


def positive_probability(value: Delta, name: str) -> Fraction:
    """Read a probability above 0."""
    probability = parse_delta(value, name)
    if probability == 0:
        raise ValueError(f"{name} must be > 0; got {value!r}")
    return probability


def _float(value: Decimal) -> float:
    """The float above; infinite beyond all floats."""
    if value > Decimal("1e308"):
        return math.inf
    return round_up(Fraction(max(value, _LEAST))) if value > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class EmpiricalStability:
    """How often an algorithm was stable under deletions, on data drawn from one distribution.

    Attributes
    ----------
    samples, stable : int
        Datasets drawn, and those at which the algorithm is (deletions, epsilon, delta)-LDDP, decided exactly.
    probability : Bounds
        Clopper-Pearson interval for the probability of stability under this distribution.
    confidence : float
        Of the interval.
    n_users, deletions : int
    """

    samples: int
    stable: int
    probability: Bounds
    confidence: float
    n_users: int
    deletions: int

    @property
    def fraction(self) -> Fraction:
        """The observed fraction of stable datasets."""
        return Fraction(self.stable, self.samples)

    def __str__(self) -> str:
        return (
            f"stable on {self.stable} of {self.samples} datasets of {self.n_users} users with {self.deletions} "
            f"deleted: probability between {self.probability.lower:.4g} and {self.probability.upper:.4g} "
            f"(confidence {self.confidence:g})"
        )


def empirical_stability(
    algorithm: Any,
    *,
    distribution: Mapping[Any, Any],
    n_users: int,
    m: int,
    deletions: int,
    epsilon: Epsilon,
    delta: Delta,
    samples: int = 100,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Progress = None,
) -> EmpiricalStability:
    """How often an algorithm is stable under deletions when the data come from a given distribution.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        On datasets of n_users - deletions users, for instance a `SubsampledAlgorithm`.
    distribution : mapping
        From item to weight, exact; weights are divided by their sum. Public: an assumption, not the data.
    n_users, m, deletions : int
        Users, items of each, and users deleted, 0 <= deletions <= n_users.
    epsilon, delta : privacy parameters
        The LDDP level.
    samples : int
        Datasets to draw.
    confidence : float
        Of the interval, in (0, 1).
    random_state : int
        Seed of the simulation.
    progress : bool, callable or None
        See `userdp.audit.audit_user_level`.

    Returns
    -------
    EmpiricalStability
        A statement about usefulness under this distribution. Privacy never rests on it.

    Raises
    ------
    BudgetError
        From `userdp.lddp.check_lddp`, for too many deletion sets; from the algorithm, for too many subsamples.

    Notes
    -----
    `userdp.lddp.check_lddp` decides at each dataset, exactly and over all pairs of deletions. The interval is Clopper
    and Pearson's, in float64.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> noisy = AdditiveAlgorithm(
    ...     (0, 1), sum, lambda total, n: [Fraction(1 + total, 6), Fraction(5 - total, 6)], statistic_range=(0, 1)
    ... )
    >>> result = empirical_stability(
    ...     noisy, distribution={0: 1, 1: 1}, n_users=5, m=1, deletions=1, epsilon=LogRatio(3, 2), delta=0
    ... )
    >>> result.probability.lower < 22 / 32 < result.probability.upper  # stable at 0, 2, 3 or 5 ones
    True
    """
    if pmf_error_of(algorithm) > 0:
        raise ValueError("algorithm declares a pmf_error; stability is decided on exact masses")
    users, per_user, removed = (
        check_count(n_users, "n_users"),
        check_count(m, "m"),
        check_count(deletions, "deletions", 0),
    )
    if removed > users:
        raise ValueError(f"deletions must be at most n_users = {users}; got {removed}")
    if not isinstance(distribution, Mapping):
        raise TypeError(f"distribution must be a mapping from item to weight; got {type(distribution).__name__}")
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1); got {confidence!r}")
    items, count = read_distribution(distribution, None, "distribution"), check_count(samples, "samples")
    parse_level(epsilon), parse_delta(delta)
    source, stable = Random(random_state), 0
    with progress_bar(progress, "drawing datasets") as callback:
        for done in range(count):
            drawn = items.sample(source, users * per_user)
            dataset = [tuple(drawn[start : start + per_user]) for start in range(0, len(drawn), per_user)]
            stable += bool(check_lddp(algorithm, dataset, r=removed, epsilon=epsilon, delta=delta, progress=False))
            callback(done + 1, count)
    return EmpiricalStability(
        samples=count,
        stable=stable,
        probability=clopper_pearson(stable, count, confidence),
        confidence=confidence,
        n_users=users,
        deletions=removed,
    )
