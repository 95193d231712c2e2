"""Composition: what k mechanisms on the same users cost together.

The mechanisms may be chosen adaptively, each in the light of what the others released. Their number and their privacy
parameters are fixed before; `PrivacyLedger` is for parameters that are chosen on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.group_privacy import PrivacyParameters
from userdp.exact.epsilon import (
    at_most,
    enclosure,
    epsilon_above,
    is_rational,
    ln_enclosure,
    root_above,
    shortened,
    value_enclosure,
)
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    agreed_neighbors,
    check_count,
    parse_delta,
    parse_level,
    short_repr,
)

Group: TypeAlias = "tuple[Epsilon, int] | tuple[Epsilon, int, Delta]"

POWER_BITS = 2**20
DELTA_BITS = 2**12


def compose_basic(*costs: PrivacyCost) -> PrivacyCost:
    """The cost of several releases together: epsilons, deltas, rhos, mu2s and distances add up.

    Parameters
    ----------
    *costs : PrivacyCost
        Of the releases, at least one.

    Returns
    -------
    PrivacyCost
        With epsilon and delta if all costs have them, with rho and distance if all are known in zCDP without a delta
        beside it, and with mu2 if all have one; the distance is then that of both. Exact; an epsilon is rounded up
        where a LogRatio and a number are added. A bounded range does not add up under adaptive choices, so there is
        none.

    Notes
    -----
    docs/proofs/composition.md. Deltas add up without a factor, as an (epsilon, delta)-DP mechanism is, for two given
    neighbors, epsilon-DP up to an event of probability delta.

    Examples
    --------
    >>> compose_basic(PrivacyCost("1/2"), PrivacyCost("1/4", "1e-6"))
    PrivacyCost(epsilon=Fraction(3, 4), delta=Fraction(1, 1000000))
    >>> compose_basic(PrivacyCost(bounded_range=1), PrivacyCost(1))
    PrivacyCost(epsilon=Fraction(2, 1), rho=Fraction(5, 8))
    """
    if not costs:
        raise ValueError("costs must have at least one")
    for cost in costs:
        if not isinstance(cost, PrivacyCost):
            raise TypeError(f"costs must be PrivacyCost; got {short_repr(cost)} of type {type(cost).__name__}")
    pairs = [cost.pair() for cost in costs]
    forms = [cost.zcdp() for cost in costs]
    epsilon: Fraction | LogRatio | None = None
    delta = rho = None
    if all(pairs):
        epsilon = epsilon_above(level_sum(pair[0] for pair in pairs if pair))
        delta = min(Fraction(1), sum((pair[1] for pair in pairs if pair), Fraction(0)))
    stated = any(cost.added_delta for cost in costs)
    if stated or not any(beside for _, beside, _ in forms):
        rho = sum((form[0] for form in forms), Fraction(0))
    if epsilon is None and rho is None:
        raise ValueError("costs: some have no epsilon and others have a delta and no rho, so nothing holds for all")
    distance = Fraction(0) if rho is None else sum((form[2] for form in forms), Fraction(0))
    known = [cost.mu2 for cost in costs if cost.mu2 is not None]
    mu2 = sum(known, Fraction(0)) if len(known) == len(costs) else None
    # Deltas beside rho add up like others; of a cost in epsilon and delta that is no news.
    added = sum((form[1] for form in forms), Fraction(0)) if stated else Fraction(0)
    if mu2 is not None:
        # What is best for rho may have no delta and no distance where mu2 has.
        distance = max(distance, sum((cost.distance for cost in costs), Fraction(0)))
        added = max(added, sum((cost.added_delta for cost in costs), Fraction(0)))
    far, beside = min(Fraction(1), distance), min(Fraction(1), added)
    relation = agreed_neighbors((cost.neighbors for cost in costs), "costs")
    return PrivacyCost(epsilon, delta or 0, rho, far, mu2=mu2, added_delta=beside, neighbors=relation)


def level_sum(epsilons: Iterable[Epsilon]) -> PrivacyLevel:
    """The sum of epsilons, exactly."""
    ratio, exponent = Fraction(1), Fraction(0)
    for epsilon in epsilons:
        level = parse_level(epsilon)
        ratio, exponent = ratio * level.ratio, exponent + level.exponent
    return PrivacyLevel(ratio, exponent)


def compose_advanced(epsilon: Epsilon, k: int, delta_slack: Delta, *, delta_each: Delta = 0) -> PrivacyParameters:
    """Advanced composition in closed form. It is never better than `compose_optimal`, and has no limit on k.

    Parameters
    ----------
    epsilon, delta_each : privacy parameters
        Of each mechanism.
    k : int
        How many, >= 1.
    delta_slack : float, int, Fraction or decimal string
        In (0, 1).

    Returns
    -------
    PrivacyParameters
        epsilon sqrt(2 k ln(1 / delta_slack)) + k epsilon (e^epsilon - 1), rounded up, and k delta_each + delta_slack.

    Notes
    -----
    Dwork, Rothblum and Vadhan (2010), Theorem III.3. It is proved for every epsilon >= 0 and says something where it is
    below k epsilon: not for large epsilon, nor for a k below about 2 ln(1 / delta_slack).

    Examples
    --------
    >>> float(compose_advanced("0.01", 64, "1e-6").epsilon)  # doctest: +ELLIPSIS
    0.4269538485144...
    """
    level, count = parse_level(epsilon), check_count(k, "k")
    slack, each = parse_delta(delta_slack, "delta_slack"), parse_delta(delta_each, "delta_each")
    if not 0 < slack < 1:
        raise ValueError(f"delta_slack must be in (0, 1); got {short_repr(delta_slack)}. compose_basic needs no slack")
    value = value_enclosure(level)[1]
    drift = count * value * (enclosure(level, "epsilon")[1] - 1)
    spread = value * root_above(2 * count * ln_enclosure(1 / slack)[1])
    return PrivacyParameters(drift + spread, min(Fraction(1), count * each + slack))


def compose_optimal(epsilon: Epsilon, k: int, delta: Delta, delta_each: Delta = 0) -> LogRatio | Fraction:
    """The epsilon of k mechanisms together, as small as any theorem can say from their privacy parameters alone.

    Parameters
    ----------
    epsilon, delta_each : privacy parameters
        Of each mechanism.
    k : int
        How many, >= 1; fixed before the first of them runs.
    delta : float, int, Fraction or decimal string
        Of all of them together.

    Returns
    -------
    LogRatio or Fraction
        The least epsilon such that every adaptive composition is (epsilon, delta)-DP: exactly for a LogRatio while that
        is short to write, and otherwise rounded up, by a part in 2^50 or so.

    Raises
    ------
    BudgetError
        For over 131072 mechanisms, or fewer at a large epsilon.

    Notes
    -----
    Kairouz, Oh and Viswanath (2015), Theorem 3.3: randomized response composes worst, and what it composes to is a sum
    of binomials. Here for every epsilon and not only for their k/2 values (`optimal_delta`). Not valid as a
    filter: k and epsilon are not to be chosen in the light of what was released.

    Examples
    --------
    >>> compose_optimal(LogRatio(3, 1), 3, "9/32")
    LogRatio(9, 1)
    >>> float(compose_optimal("0.01", 64, "1e-6"))  # doctest: +ELLIPSIS
    0.306562743260...
    """
    level, count = parse_level(epsilon), check_count(k, "k")
    noise = _without_each(parse_delta(delta), parse_delta(delta_each, "delta_each"), count)
    basic = PrivacyLevel(level.ratio**count, level.exponent * count) if _short(level, count) else None
    everything = epsilon_above(basic) if basic else value_enclosure(level)[1] * count
    if noise == 0 or everything == 0:
        return everything
    if noise == 1:
        return Fraction(0)
    responses = _responses(level, count)
    multiplier = Fraction(*responses.least_multiplier(noise.numerator, noise.denominator))
    if multiplier == 1:
        return Fraction(0)
    if responses.exact and is_rational(level):
        return LogRatio(multiplier.numerator, multiplier.denominator)
    return min(ln_enclosure(multiplier)[1], value_enclosure(level)[1] * count)


def _responses(level: PrivacyLevel, count: int) -> _core.Responses:
    """Randomized responses: every composition of mechanisms of these parameters is dominated by them together."""
    multiplier = enclosure(level, "epsilon")[1]
    if not is_rational(level):
        # More responses at a slightly larger epsilon cost slightly more, and short fractions are fast.
        multiplier = 1 + shortened(multiplier - 1, up=True, bits=96)
    return _core.Responses(multiplier.numerator, multiplier.denominator, count)


def _short(level: PrivacyLevel, count: int) -> bool:
    return count * max(level.ratio.numerator.bit_length() - 1, 0) <= POWER_BITS


def _without_each(delta: Fraction, each: Fraction, count: int) -> Fraction:
    """The delta that is left for the noise beside the deltas of the mechanisms: 1 - (1 - delta) / (1 - each)^k."""
    if each == 0:
        return delta
    kept = _power_below(1 - each, count)
    if delta == 1:
        return delta
    if 1 - delta > kept:
        raise ValueError(
            f"delta={float(delta):.3g} is below 1 - (1 - delta_each)^k = {float(1 - kept):.3g}, what the deltas of the"
            " mechanisms cost; take a larger delta or a smaller delta_each"
        )
    left = 1 - (1 - delta) / kept
    return left if left.denominator.bit_length() <= DELTA_BITS else max(Fraction(0), _floor(left))


def _floor(x: Fraction) -> Fraction:
    """X rounded down to a short fraction."""
    return Fraction(x.numerator * (1 << DELTA_BITS) // x.denominator, 1 << DELTA_BITS)


def _power_below(base: Fraction, exponent: int) -> Fraction:
    """base^exponent for a base in [0, 1], exactly or rounded down to hundreds of bits."""
    if exponent * base.denominator.bit_length() <= DELTA_BITS:
        return base**exponent
    result = Fraction(1)
    for digit in bin(exponent)[2:]:
        result = result * result * (base if digit == "1" else 1)
        if result == 0 or result.denominator.bit_length() - result.numerator.bit_length() > POWER_BITS:
            return Fraction(0)
        result = shortened(result, up=False, bits=512)
    return result


def optimal_delta(epsilon_each: Epsilon, k: int, epsilon: Epsilon, delta_each: Delta = 0) -> Fraction:
    """The delta of k mechanisms together at a given epsilon: the inverse of `compose_optimal`.

    Parameters
    ----------
    epsilon_each, delta_each : privacy parameters
        Of each mechanism.
    k : int
        How many, >= 1; fixed before the first of them runs.
    epsilon : privacy parameter
        Of all of them together.

    Returns
    -------
    Fraction
        1 - (1 - delta_each)^k (1 - sum_l C(k, l) [e^((k - l) e) - e^(epsilon + l e)]_+ / (1 + e^e)^k) for e standing
        for epsilon_each. Exact where both epsilons are LogRatio and k is in the hundreds; otherwise rounded up.

    Raises
    ------
    BudgetError
        As `compose_optimal`.

    Examples
    --------
    >>> optimal_delta(LogRatio(3, 1), 3, LogRatio(9, 1))
    Fraction(9, 32)
    """
    level, count = parse_level(epsilon_each, "epsilon_each"), check_count(k, "k")
    return _delta_of([(level, count, parse_delta(delta_each, "delta_each"))], parse_level(epsilon))


def optimal_delta_of_groups(groups: Iterable[Group], epsilon: Epsilon) -> Fraction:
    """The delta of mechanisms of several epsilons together: the optimal composition of unequal mechanisms.

    Parameters
    ----------
    groups : iterable of (epsilon, k) or (epsilon, k, delta_each)
        k mechanisms that are (epsilon, delta_each)-DP each.
    epsilon : privacy parameter
        Of all of them together.

    Returns
    -------
    Fraction
        Exact or rounded up, as `optimal_delta`.

    Raises
    ------
    BudgetError
        When the product of k + 1 over all groups but the largest is above 131072.

    Notes
    -----
    Kairouz, Oh and Viswanath (2015), Theorem 3.5.

    Examples
    --------
    64 ranges at a quarter of the budget and 64 sums at the rest cost more than 128 equal parts do:

    >>> unequal = optimal_delta_of_groups([("0.0105675", 64), ("0.0317025", 64)], 1)
    >>> unequal > optimal_delta("0.021135", 128, 1)
    True
    """
    read = []
    for group in groups:
        if not isinstance(group, tuple) or len(group) not in (2, 3):
            raise TypeError(f"groups must be tuples (epsilon, k) or (epsilon, k, delta_each); got {short_repr(group)}")
        each = parse_delta(group[2], "delta_each") if len(group) == 3 else Fraction(0)
        read.append((parse_level(group[0]), check_count(group[1], "k", 0), each))
    return _delta_of(read, parse_level(epsilon))


def _delta_of(groups: Iterable[tuple[PrivacyLevel, int, Fraction]], target: PrivacyLevel) -> Fraction:
    counts: dict[PrivacyLevel, int] = {}
    kept = Fraction(1)
    for level, count, each in groups:
        kept *= _power_below(1 - each, count)
        if count and not (level.ratio == 1 and level.exponent == 0):
            counts[level] = counts.get(level, 0) + count
    whole = PrivacyLevel(Fraction(1), Fraction(0))
    if all(_short(level, count) for level, count in counts.items()):
        for level, count in counts.items():
            whole = PrivacyLevel(whole.ratio * level.ratio**count, whole.exponent + level.exponent * count)
        if at_most(whole, target):
            return 1 - kept
    responses = [_responses(level, count) for level, count in counts.items()]
    multiplier = enclosure(target, "epsilon")[0]
    noise = Fraction(*_core.divergence_of_responses(responses, multiplier.numerator, multiplier.denominator))
    return 1 - kept * (1 - noise)
