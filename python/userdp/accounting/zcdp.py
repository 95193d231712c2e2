"""Zero-concentrated differential privacy: what it says about (epsilon, delta), and what a bounded range costs in it.

A mechanism is rho-zCDP when for all neighbors and all alpha > 1 its Renyi divergence of order alpha is at most
alpha rho, both ways. Floats propose an order or a root here; fractions and enclosures decide.
"""

from __future__ import annotations

import math
from fractions import Fraction

from userdp.exact.epsilon import LEAST_BOUND, exp_above, ln_enclosure, ln_float, shortened, upper, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    parse_delta,
    parse_exact,
    parse_level,
    short_repr,
)

PI_OVER_8 = Fraction(3927, 10000)
"""Just above it."""
FLOAT_RANGE = 1e300
MOST_EXPONENT = 2**20
PROPOSED_BITS = 40
CLOSEST_TO_ONE = 1 - Fraction(1, 2**20)


def parse_rho(value: Delta, name: str = "rho") -> Fraction:
    """Read a non-negative rho exactly."""
    rho = parse_exact(value, name, "a non-negative float, int, Fraction or decimal string", printed=True)
    if rho < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(value)}")
    return rho


def pure_to_zcdp(epsilon: Epsilon) -> Fraction:
    """The rho of an epsilon-DP mechanism.

    Parameters
    ----------
    epsilon : privacy parameter
        Of pure differential privacy, >= 0.

    Returns
    -------
    Fraction
        epsilon^2 / 2; rounded up for a LogRatio.

    Notes
    -----
    Bun and Steinke (2016), Proposition 1.4; also the case eta = 2 epsilon of `bounded_range_to_zcdp`, since log ratios
    in [-epsilon, epsilon] have a range of 2 epsilon. Proof: docs/proofs/composition.md.

    Examples
    --------
    >>> pure_to_zcdp("1/10")
    Fraction(1, 200)
    """
    return value_enclosure(parse_level(epsilon))[1] ** 2 / 2


def bounded_range_to_zcdp(epsilon: Epsilon) -> Fraction:
    """The rho of a mechanism with epsilon-bounded range: a quarter of what pure epsilon-DP costs.

    Parameters
    ----------
    epsilon : privacy parameter
        For all neighbors, ln P(o) / Q(o) lies in an interval of this length, which may depend on the pair of
        neighbors. So it is for the exponential mechanism at its epsilon, also in its monotone form.

    Returns
    -------
    Fraction
        epsilon^2 / 8; rounded up for a LogRatio.

    Notes
    -----
    Durfee and Rogers (2019); Cesar and Rogers (2021). Proof: let L = ln P/Q be of range at most eta and
    K(s) = ln E_Q[e^(s L)]. Then K(0) = K(1) = 0, and K''(s) is the variance of L under a tilted distribution, at most
    eta^2/4. So K(s) - (eta^2/8) s (s - 1) is concave and 0 at 0 and 1, hence at most 0 for s > 1, and the divergence of
    order s is K(s) / (s - 1) <= s eta^2/8.

    Examples
    --------
    >>> bounded_range_to_zcdp(1)
    Fraction(1, 8)
    """
    return value_enclosure(parse_level(epsilon))[1] ** 2 / 8


def bounded_range_to_mu2(epsilon: Epsilon) -> Fraction:
    """The Gaussian noise that dominates every mechanism with epsilon-bounded range.

    Parameters
    ----------
    epsilon : privacy parameter
        For all neighbors, ln P(o) / Q(o) lies in an interval of this length, which may depend on the pair of
        neighbors. So it is for the exponential mechanism at its epsilon, also in its monotone form.

    Returns
    -------
    Fraction
        mu2 = (pi / 8) epsilon^2, rounded up by a part in 10^6: on any two neighbors, in both orders, the mechanism is
        dominated by N(0, 1) and N(mu, 1).

    Notes
    -----
    The least such mu2 is below it by a part of about epsilon^2 / 110. So releases of bounded range may be chosen
    adaptively, and with Gaussian noise, as long as the mu2 of all stay within a sum that is fixed in advance. Proof:
    docs/proofs/gaussian_budget.md.

    Examples
    --------
    >>> bounded_range_to_mu2("1/10")
    Fraction(3927, 1000000)
    """
    return PI_OVER_8 * value_enclosure(parse_level(epsilon))[1] ** 2


def zcdp_group_privacy(rho: Delta, k: int) -> Fraction:
    """The rho against changing k users from the rho against changing one: k^2 rho.

    Parameters
    ----------
    rho : float, int, Fraction or decimal string
        Non-negative.
    k : int
        How many change, >= 0.

    Notes
    -----
    Bun and Steinke (2016), Proposition 1.9. A distance from an exactly rho-zCDP mechanism stays what it is: only the
    two ends of the chain of neighbors are moved to that mechanism.

    Examples
    --------
    >>> zcdp_group_privacy("1/100", 3)
    Fraction(9, 100)
    """
    return parse_rho(rho) * check_count(k, "k", 0) ** 2


def zcdp_delta(rho: Delta, epsilon: Epsilon, *, distance: Delta = 0) -> Fraction:
    """A delta at which rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    rho : float, int, Fraction or decimal string
        Non-negative.
    epsilon : privacy parameter
        Of the claim.
    distance : float, int, Fraction or decimal string
        Proved bound of the total variation between the mechanism and one that is exactly rho-zCDP.

    Returns
    -------
    Fraction
        At most 1; rounded up, and never between 0 and 2^-4096.

    Notes
    -----
    The least over alpha > 1 of e^((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1) (Canonne, Kamath
    and Steinke 2020, Proposition 12), plus (1 + e^epsilon) distance. Any alpha is valid, so floats search for one,
    where the bound is convex on a log scale, and enclosures evaluate the bound there.

    Examples
    --------
    >>> float(zcdp_delta("1/50", 1))  # doctest: +ELLIPSIS
    8.825...e-08
    """
    concentration, level = parse_rho(rho), parse_level(epsilon)
    far = distance_cost(level, parse_delta(distance, "distance"))
    return min(Fraction(1), _delta(concentration, level) + far)


def zcdp_epsilon(rho: Delta, delta: Delta, *, distance: Delta = 0) -> Fraction:
    """An epsilon at which rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    rho : float, int, Fraction or decimal string
        Non-negative.
    delta : float, int, Fraction or decimal string
        Of the claim.
    distance : float, int, Fraction or decimal string
        As in `zcdp_delta`.

    Returns
    -------
    Fraction
        Certified: ``zcdp_delta(rho, epsilon, distance=distance) <= delta``; above the least such epsilon by a part in
        2^39, or by 2^-60, or so.

    Raises
    ------
    TypeError, ValueError
        Naming the argument; when no epsilon is certified at this delta, which must be well above twice the distance.

    Examples
    --------
    >>> float(zcdp_epsilon("1/50", "1e-6"))  # doctest: +ELLIPSIS
    0.8999...
    """
    concentration, target = parse_rho(rho), parse_delta(delta)
    far = parse_delta(distance, "distance")
    if zcdp_delta(concentration, 0, distance=far) <= target:
        return Fraction(0)
    if target <= 2 * far or target < LEAST_BOUND:
        raise _too_small(target, far, PrivacyLevel(Fraction(1), Fraction(0)))
    if concentration > FLOAT_RANGE:
        raise ValueError(f"rho must be at most {FLOAT_RANGE:.0e} here; got {short_repr(rho)}")
    # The least epsilon is a fixed point: what the distance takes from delta grows with epsilon.
    proposed = Fraction(0)
    for _ in range(64):
        left = target - distance_cost(PrivacyLevel(Fraction(1), proposed), far)
        if left <= 0:
            break
        found = Fraction(_proposed_epsilon(_as_float(concentration), ln_float(min(left, CLOSEST_TO_ONE))))
        if found <= proposed:
            break
        proposed = found
    # Certified where the bounds are a little above the floats that proposed it.
    step = shortened(max(proposed, Fraction(1, 1 << 60)), up=True, bits=1) / (1 << PROPOSED_BITS)
    for _ in range(PROPOSED_BITS):
        candidate = math.ceil(proposed / step) * step
        if zcdp_delta(concentration, candidate, distance=far) <= target:
            return candidate
        proposed, step = candidate, 2 * step
    raise ValueError(
        f"delta={float(target):.3g}: no epsilon is certified for rho={float(concentration):.3g}, as a distance of"
        f" {float(far):.3g} takes (1 + e^epsilon) times itself from delta; take a larger delta"
    )


def largest_rho(epsilon: Epsilon, delta: Delta, *, distance: Delta = 0) -> Fraction:
    """The most that may be spent in rho under a claim of (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of the claim; delta in (0, 1).
    distance : float, int, Fraction or decimal string
        How far in total variation all that is released is from an exactly rho-zCDP mechanism, at most.

    Returns
    -------
    Fraction
        Positive and certified: ``zcdp_delta(rho, epsilon, distance=distance) <= delta``; below the largest such rho by
        a part in 2^39 or so.

    Examples
    --------
    >>> rho = largest_rho(1, "1e-6")
    >>> round(float(rho), 5), zcdp_delta(rho, 1) <= Fraction(1, 10**6)
    (0.02436, True)
    """
    level, target = parse_level(epsilon), parse_delta(delta)
    far = parse_delta(distance, "distance")
    if target == 1:
        raise ValueError("delta must be below 1: every rho serves at delta = 1")
    noise = target - distance_cost(level, far)
    if noise < LEAST_BOUND:
        raise _too_small(target, far, level)
    noise = min(noise, CLOSEST_TO_ONE)  # floats do not tell larger ones from 1
    proposed = Fraction(_proposed_rho(_value(level), ln_float(noise)))
    for lost in range(PROPOSED_BITS):
        kept = 1 - Fraction((1 << lost) - 1, 1 << PROPOSED_BITS)
        candidate = shortened(proposed * kept, up=False, bits=PROPOSED_BITS)
        if _delta(candidate, level) <= noise:
            return candidate
    raise ValueError(
        f"epsilon={float(level):.3g}, delta={float(target):.3g}: no rho above {1 / FLOAT_RANGE:.0e} serves; take a"
        " larger delta"
    )


def _too_small(delta: Fraction, distance: Fraction, level: PrivacyLevel) -> ValueError:
    least = 2 * (distance_cost(level, distance) + LEAST_BOUND)
    if least >= 1:
        return ValueError(f"distance={float(distance):.3g} is too large: at this epsilon no delta below 1 would do")
    would_do = f"{float(least):.3g}" if least > Fraction(1, 10**300) else "1e-300"
    return ValueError(
        f"delta={float(delta):.3g} is too small: zCDP proves no pure differential privacy, and a distance of"
        f" {float(distance):.3g} takes (1 + e^epsilon) times itself from delta; delta={would_do} would do"
    )


def distance_cost(level: PrivacyLevel, distance: Fraction) -> Fraction:
    """(1 + e^epsilon) distance, rounded up, at most 1."""
    if distance == 0:
        return Fraction(0)
    if level.exponent >= MOST_EXPONENT:
        return Fraction(1)
    cost: Fraction = (1 + upper(level)) * distance
    return min(Fraction(1), cost)


def _value(level: PrivacyLevel) -> float:
    return _as_float(value_enclosure(level)[0])


def _as_float(x: Fraction) -> float:
    """About x >= 0, within the floats whose products are finite."""
    return float(min(x, Fraction(FLOAT_RANGE)))


def _delta(rho: Fraction, level: PrivacyLevel) -> Fraction:
    """The bound of `zcdp_delta` without a distance, at the order that floats propose."""
    if rho == 0:
        return Fraction(0)
    order = _proposed_order(_as_float(rho), _value(level))
    return _delta_at(shortened(Fraction(order), up=False, bits=PROPOSED_BITS), rho, level)


def _delta_at(x: Fraction, rho: Fraction, level: PrivacyLevel) -> Fraction:
    """The bound at alpha = 1 + x: e^(x ((1 + x) rho - epsilon) - x ln(1 + 1/x) - ln(1 + x)), rounded up."""
    spread = x * ((1 + x) * rho - value_enclosure(level)[0])
    exponent = spread - x * ln_enclosure(1 + 1 / x)[0] - ln_enclosure(1 + x)[0]
    return Fraction(1) if exponent >= 0 else exp_above(exponent)


def _proposed_order(rho: float, epsilon: float) -> float:
    """About the x = alpha - 1 at which the exponent of `_delta_at` is least: where its growing derivative is 0."""
    # The derivative is (1 + 2x) rho - epsilon - ln(1 + 1/x).
    low, high = -690.0, 690.0  # of ln x
    for _ in range(60):
        middle = (low + high) / 2
        x = math.exp(middle)
        if (1 + 2 * x) * rho - epsilon - math.log1p(1 / x) < 0:
            low = middle
        else:
            high = middle
    return math.exp(low)


def _log_delta(rho: float, epsilon: float) -> float:
    """About the logarithm of `_delta`."""
    x = _proposed_order(rho, epsilon)
    return x * ((1 + x) * rho - epsilon) - x * math.log1p(1 / x) - math.log1p(x)


def _proposed_epsilon(rho: float, log_delta: float) -> float:
    """About the least epsilon with a `_log_delta` of at most this: it falls as epsilon grows."""
    # At alpha = 1 + sqrt(ln(1/delta) / rho) the bound is below delta at this epsilon.
    low, high = 0.0, rho + 2 * math.sqrt(rho) * math.sqrt(-log_delta) + 1e-9
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_delta(rho, middle) > log_delta else (low, middle)
    return high


def _proposed_rho(epsilon: float, log_delta: float) -> float:
    """About the largest rho with a `_log_delta` of at most this: it grows with rho."""
    low, high = -690.0, 690.0  # of ln rho
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_delta(math.exp(middle), epsilon) <= log_delta else (low, middle)
    return math.exp(low)
