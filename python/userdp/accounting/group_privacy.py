"""Group privacy, the triangle inequality, and amplification by subsampling, with exact constants.

Every function takes privacy parameters exactly and returns a `PrivacyParameters` that is exact where the mathematics
stays rational, and rounded upwards (toward less privacy claimed) where it does not. Neighbors are replace-one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from userdp.accounting.privacy_loss import PrivacyLossDistribution
from userdp.exact.epsilon import BITS, as_epsilon, at_most, enclosure, is_rational, ln_enclosure, upper
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    check_count,
    parse_delta,
    parse_level,
    printed_up,
    short_repr,
)

MAX_POWER_BITS = 10**6


@dataclass(frozen=True, slots=True)
class PrivacyParameters:
    """An (epsilon, delta) guarantee.

    Attributes
    ----------
    epsilon : Fraction, LogRatio or float
        Exact, except that a float is at or above the exact value, by two units in the last place at most.
    delta : Fraction or float
        Exact, except that a float is the exact value rounded upwards; at most 1.
    """

    epsilon: Fraction | LogRatio | float
    delta: Fraction | float


def _delta(value: Fraction, *, exact: bool) -> Fraction | float:
    capped = min(value, Fraction(1))
    return capped if exact or capped == 1 else printed_up(capped)


def triangle_inequality(epsilon1: Epsilon, delta1: Delta, epsilon2: Epsilon, delta2: Delta) -> PrivacyParameters:
    """Indistinguishability of P and R from that of P, Q and of Q, R.

    Parameters
    ----------
    epsilon1, delta1 : privacy parameters
        P and Q are (epsilon1, delta1)-indistinguishable, both directions.
    epsilon2, delta2 : privacy parameters
        Q and R are (epsilon2, delta2)-indistinguishable.

    Returns
    -------
    PrivacyParameters
        epsilon1 + epsilon2 and max(delta1 + e^epsilon1 delta2, delta2 + e^epsilon2 delta1). A float epsilon arises only
        when a LogRatio and a non-zero number are added.

    Notes
    -----
    [GKKMMZ23, Lemma 5], in its tight form (the printed delta is the larger e^epsilon2 delta1 + e^epsilon1 delta2).
    Proof: P(U) <= e^epsilon1 Q(U) + delta1 <= e^(epsilon1 + epsilon2) R(U) + e^epsilon1 delta2 + delta1, and the
    other direction with the roles exchanged.

    Examples
    --------
    >>> triangle_inequality(LogRatio(2, 1), "1/100", LogRatio(3, 1), "1/50")
    PrivacyParameters(epsilon=LogRatio(6, 1), delta=Fraction(1, 20))
    """
    first, second = parse_level(epsilon1, "epsilon1"), parse_level(epsilon2, "epsilon2")
    d1, d2 = parse_delta(delta1, "delta1"), parse_delta(delta2, "delta2")
    first_factor = upper(first, "epsilon1") if d2 else Fraction(0)
    second_factor = upper(second, "epsilon2") if d1 else Fraction(0)
    delta = max(d1 + first_factor * d2, d2 + second_factor * d1)
    # The larger of the two is exact when the levels whose e^epsilon enters are rational.
    exact = (is_rational(first) or d2 == 0) and (is_rational(second) or d1 == 0)
    total = PrivacyLevel(first.ratio * second.ratio, first.exponent + second.exponent)
    mixed = total.ratio != 1 and total.exponent != 0
    epsilon: Fraction | LogRatio | float
    epsilon = _sum_upwards(total) if mixed else as_epsilon(total)
    return PrivacyParameters(epsilon, _delta(delta, exact=exact))


def _sum_upwards(level: PrivacyLevel) -> float:
    return printed_up(ln_enclosure(level.ratio)[1] + level.exponent)


def group_privacy(epsilon: Epsilon, delta: Delta, k: int) -> PrivacyParameters:
    """Privacy against changing k users (or records) from privacy against changing one.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the mechanism, for neighbors that differ in one.
    k : int
        How many change, >= 0.

    Returns
    -------
    PrivacyParameters
        k epsilon and delta (1 + e^epsilon + ... + e^((k-1) epsilon)), capped at 1.

    Notes
    -----
    [GKKMMZ23, Lemma 6], with the geometric sum written out, so that epsilon = 0 gives k delta. Proof: apply
    P_0(U) <= e^epsilon P_1(U) + delta along the chain of k changes.

    Examples
    --------
    >>> group_privacy(0, "1/1000", 5)
    PrivacyParameters(epsilon=Fraction(0, 1), delta=Fraction(1, 200))
    >>> group_privacy(LogRatio(2, 1), 0, 3)
    PrivacyParameters(epsilon=LogRatio(8, 1), delta=Fraction(0, 1))
    """
    level, threshold = parse_level(epsilon), parse_delta(delta)
    count = check_count(k, "k", 0)
    if level.ratio != 1 and count * level.ratio.numerator.bit_length() > MAX_POWER_BITS:
        raise ValueError(
            f"k={count} changes of {epsilon!r} need a LogRatio of too many digits; pass epsilon as a float"
        )
    grouped = PrivacyLevel(level.ratio**count, level.exponent * count)
    total = Fraction(count) if threshold == 0 or count <= 1 else _geometric_sum(level, count, 1 / threshold)
    exact = is_rational(level) or threshold == 0 or count <= 1
    return PrivacyParameters(as_epsilon(grouped), _delta(threshold * total, exact=exact))


def _geometric_sum(level: PrivacyLevel, count: int, cap: Fraction) -> Fraction:
    """1 + E + ... + E^(count-1), or anything at or above the cap once it is reached; rounded up for irrational E."""
    # Doubling: S_2n = S_n (1 + E^n) and S_(n+1) = S_n + E^n, along the binary digits of count.
    factor = upper(level)
    total, power = Fraction(0), Fraction(1)
    for digit in bin(count)[2:]:
        total, power = _trimmed(total * (1 + power), level), _trimmed(power * power, level)
        if digit == "1":
            total, power = total + power, _trimmed(power * factor, level)
        if total >= cap:
            break  # the sum only grows
    return total


def _trimmed(value: Fraction, level: PrivacyLevel) -> Fraction:
    """Keep irrational powers at a few hundred bits, rounding up; rational ones are exact."""
    if is_rational(level):
        return value
    scale = 1 << BITS
    return Fraction(math.ceil(value * scale), scale)


def user_epsilon(release: PrivacyLossDistribution, records: int, delta: Delta, *, width: float = 1e-4) -> Bounds:
    """The epsilon of a user with several records, from what releases lose about one record.

    Parameters
    ----------
    release : PrivacyLossDistribution
        Of the item-level mechanism, or of several releases by such.
    records : int
        The most records of a user, at least 1.
    delta : float, int, Fraction or decimal string
        In [0, 1], taken exactly.
    width : float
        How far the bounds may be apart.

    Returns
    -------
    Bounds
        Of the least epsilon at delta for the iterated power curve, which no item-level mechanism of this privacy loss
        exceeds for such a user.

    Notes
    -----
    `release.group(records).epsilon(delta)`. `group_privacy` instead takes one (epsilon, delta) of the item-level
    mechanism, and forgets the rest of its curve.

    Examples
    --------
    >>> from userdp.accounting import PrivacyLossDistribution
    >>> user_epsilon(PrivacyLossDistribution.discrete_laplace("1/10"), 20, "1/100").upper < 2
    True
    """
    if not isinstance(release, PrivacyLossDistribution):
        raise TypeError(f"release must be a PrivacyLossDistribution; got {short_repr(release)}")
    return release.group(check_count(records, "records")).epsilon(delta, width=width)


def subsampling_amplification(epsilon: Epsilon, delta: Delta, *, n_sampled: int, n_total: int) -> PrivacyParameters:
    """Privacy of a mechanism run on a uniform subset, drawn without replacement.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the mechanism on n_sampled records, replace-one.
    n_sampled, n_total : int
        Sizes n and n' of the subset and of the whole, 1 <= n <= n'; both public.

    Returns
    -------
    PrivacyParameters
        ln(1 + eta (e^epsilon - 1)) and eta delta with eta = n / n'. Epsilon is a LogRatio when e^epsilon is rational
        and a float rounded upwards otherwise.

    Notes
    -----
    [GKKMMZ23, Theorem 7] (subsampling without replacement, replace-one neighbors), for mechanisms that do not look at
    the order of their records, or get them in random order. A mechanism that is private for replacing a record and
    gets the subset in the order of the whole may exceed this: where one record replaces another in the subset, those
    between them move. docs/errata.md has an example. The size is fixed, as for the steps
    of a descent on batches of users: compose what this returns for one step. Accountants for Poisson sampling, where
    each record is drawn by a coin of its own, are about adding and removing a record and do not bound this; nor is
    there such a formula for rho.

    Examples
    --------
    >>> subsampling_amplification(LogRatio(20, 1), "1/100", n_sampled=10, n_total=190)
    PrivacyParameters(epsilon=LogRatio(2, 1), delta=Fraction(1, 1900))
    """
    level, threshold = parse_level(epsilon), parse_delta(delta)
    sampled = check_count(n_sampled, "n_sampled", 1)
    total = check_count(n_total, "n_total", 1)
    if total < sampled:
        raise ValueError(f"n_total must be at least n_sampled = {sampled}; got {total}")
    eta = Fraction(sampled, total)
    if eta == 1:
        return PrivacyParameters(as_epsilon(level), threshold)
    amplified = 1 + eta * (upper(level) - 1)
    if is_rational(level):
        return PrivacyParameters(as_epsilon(PrivacyLevel(amplified, Fraction(0))), eta * threshold)
    return PrivacyParameters(printed_up(ln_enclosure(amplified)[1]), eta * threshold)


def subsampling_population(
    epsilon: Epsilon,
    *,
    n_sampled: int,
    target: Epsilon | Callable[[int], Epsilon],
    multiple_of: int = 1,
    limit: int = 10**15,
) -> int:
    """The population size at which subsampling reaches a target epsilon.

    Parameters
    ----------
    epsilon : privacy parameter
        Of the mechanism on n_sampled records, replace-one.
    n_sampled : int
        Size n of the subset, >= 1.
    target : privacy parameter, or callable
        The epsilon wanted; a callable is given N and returns it.
    multiple_of : int
        N must be a multiple of this (records per user).
    limit : int
        With a callable target, the largest N to try.

    Returns
    -------
    int
        N >= n_sampled, a multiple of multiple_of, with 1 + (n/N)(e^epsilon - 1) <= e^target; decided exactly where
        e^epsilon and e^target are rational, and otherwise with e^epsilon rounded up and e^target down to 190 bits. For
        a constant target it is the smallest such N. For a callable one N serves and the next smaller multiple does not,
        so it is the smallest whenever the sizes that serve have no gaps.

    Notes
    -----
    Proof of [GKKMMZ23, Theorem 10], with N >= n made explicit. The size is rounded up to a multiple after the maximum
    with n is taken. A callable target is searched by doubling and then halving between a size that fails and one that
    serves.

    Examples
    --------
    >>> subsampling_population(LogRatio(20, 1), n_sampled=10, target=LogRatio(2, 1), multiple_of=7)
    196
    """
    level = parse_level(epsilon)
    sampled, step = check_count(n_sampled, "n_sampled", 1), check_count(multiple_of, "multiple_of", 1)
    least = -(-sampled // step) * step
    if not callable(target):
        wanted = parse_level(target, "target")
        if at_most(level, wanted):
            return least
        goal = enclosure(wanted, "target")[0] - 1
        if goal == 0:
            raise ValueError("target: epsilon 0 cannot be reached by subsampling a mechanism with epsilon > 0")
        return max(least, -(-math.ceil(sampled * (upper(level) - 1) / goal) // step) * step)
    most = check_count(limit, "limit")

    def serves(multiple: int) -> bool:
        size = multiple * step
        wanted = parse_level(target(size), "target")
        gain = Fraction(sampled, size) * (upper(level) - 1)
        return at_most(level, wanted) or gain <= enclosure(wanted, "target")[0] - 1

    fails, found = least // step - 1, least // step  # in multiples of the step
    while found * step <= most and not serves(found):
        fails, found = found, 2 * found
    if found * step > most:
        found = most // step
        if found <= fails or not serves(found):
            raise ValueError(f"target: no N up to limit={most} was found to serve")
    while found - fails > 1:
        middle = (fails + found) // 2
        fails, found = (fails, middle) if serves(middle) else (middle, found)
    return found * step
