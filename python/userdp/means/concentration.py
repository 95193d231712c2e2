"""How far users' means can be from the truth, all of them at once: radii for clipping and for ranges."""

from __future__ import annotations

import math
from typing import Any

from userdp.exact.numbers import (
    COUNTED,
    check_count,
    open_unit_interval,
    parse_positive,
    short_repr,
    within_floats,
)

KINDS = ("scalar", "ball", "sub-gaussian", "gradients")


def concentration_radius(
    kind: str,
    *,
    m: int,
    n_users: int,
    gamma: float = 0.01,
    max_norm: float | None = None,
    sigma: float | None = None,
    dimension: int | None = None,
    queries: int = 1,
    smoothness: float | None = None,
    parameter_radius: float | None = None,
) -> float:
    """A distance from the truth that no user's mean exceeds, but with probability gamma.

    Parameters
    ----------
    kind : {"scalar", "ball", "sub-gaussian", "gradients"}
        Whose mean: of numbers in [-max_norm, max_norm]; of vectors in the L2 ball of radius `max_norm`; of vectors that
        are sigma-sub-Gaussian, in L2; of gradients with that property, at all parameters of a set at once, in L2.
    m, n_users : int
        Independent records of each user, and users.
    gamma : float in (0, 1)
        Probability that some user's mean is farther away.
    max_norm : float
        B, for "scalar" and "ball": the largest norm of a record.
    sigma : float
        For "sub-gaussian" and "gradients": E e^<u, x - E x> <= e^(sigma^2 |u|^2 / 2) for every vector u.
    dimension : int
        d, for "sub-gaussian" and "gradients".
    queries : int
        K, the number of means of each user, fixed in advance. A radius for gradients covers any number of queries.
    smoothness, parameter_radius : float
        For "gradients": gradients of records are `smoothness`-Lipschitz (H), and parameters are in a ball of this
        radius (R).

    Returns
    -------
    float

        * "scalar": B sqrt(2 ln(2 n K / gamma) / m);
        * "ball": B (1 + sqrt(2 ln(n K / gamma))) / sqrt(m), in any dimension;
        * "sub-gaussian": sigma sqrt((d + 2 sqrt(d s) + 2 s) / m) with s = ln(n K / gamma);
        * "gradients": 4 sigma sqrt(2 (d ln(5 + 10 R / r) + ln(n / gamma)) / m) with
          r = min(1, sqrt(2 d / m) sigma / (4 H)).

    Notes
    -----
    A plan from public numbers: privacy never rests on it. This is the half-width that keeps every user inside; the
    `concentration` of `WinsorizedMean` is the *expected* distance, which is smaller: B / sqrt(m) for a ball. Proofs:
    docs/proofs/lower_bounds.md, section "Radii". The constants that LSAKKMS21 prints are too small, see docs/errata.md.

    References
    ----------
    Repaired from [LSAKKMS21, Lemma 1], [LSAKKMS21, Proposition 1], [LSAKKMS21, Corollary 1]. [LSAKKMS21, Definition 2].

    Examples
    --------
    >>> round(concentration_radius("scalar", m=400, n_users=100, gamma=0.01, max_norm=1), 4)
    0.2225
    >>> round(concentration_radius("ball", m=256, n_users=1000, gamma=0.01, max_norm=1), 4)
    0.3624
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {short_repr(kind)}")
    records, users, means = (
        check_count(m, "m", most=COUNTED),
        check_count(n_users, "n_users", most=COUNTED),
        check_count(queries, "queries", most=COUNTED),
    )
    failure = open_unit_interval(gamma, "gamma")
    log_users = math.log(users) - math.log(failure)

    def needed(value: Any, name: str) -> float:
        if value is None:
            raise ValueError(f"{name} must be given for {kind!r}; got None")
        return within_floats(parse_positive(value, name), name)

    if kind == "scalar":
        return needed(max_norm, "max_norm") * math.sqrt(2 * (math.log(2 * means) + log_users) / records)
    if kind == "ball":
        return needed(max_norm, "max_norm") * (1 + math.sqrt(2 * (math.log(means) + log_users))) / math.sqrt(records)
    width = needed(sigma, "sigma")
    d = check_count(dimension, "dimension")
    if kind == "sub-gaussian":
        s = math.log(means) + log_users
        return width * math.sqrt((d + 2 * math.sqrt(d * s) + 2 * s) / records)
    return gradient_radius(
        sub_gaussian=width,
        dimension=d,
        n_users=users,
        m=records,
        smoothness=needed(smoothness, "smoothness"),
        radius=needed(parameter_radius, "parameter_radius"),
        gamma=failure,
    )


def gradient_radius(
    *,
    sub_gaussian: float,
    dimension: int,
    n_users: int,
    m: int,
    smoothness: float,
    radius: float,
    gamma: float,
) -> float:
    """How far users' mean gradients are from the expected ones, everywhere at once [LSAKKMS21, Proposition 1]."""
    # It holds but with probability gamma, and with the factor 4 that its proof loses:
    # tau = 4 sigma sqrt((2/m) (d ln(5 + 10 R/rho) + ln(n/gamma))), rho = min(1, sqrt(2) sigma/(4 H) sqrt(d/m)).
    mesh = min(1.0, math.sqrt(2 * dimension / m) * sub_gaussian / (4 * smoothness))
    exponent = dimension * math.log(5 + 10 * radius / mesh) + math.log(n_users / gamma)
    return 4 * sub_gaussian * math.sqrt(2 / m * exponent)
