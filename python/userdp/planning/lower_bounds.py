"""What no mechanism can do better, and how much heterogeneous users cost.

Statements and proofs: docs/proofs/lower_bounds.md. Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeVar

from userdp import _core
from userdp.accounting import group_privacy
from userdp.exact.epsilon import as_epsilon, core_level, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    parse_delta,
    parse_level,
    parse_positive,
    round_down,
    short_repr,
)

Number = TypeVar("Number", int, Fraction)

TASKS = ("testing", "mean", "finite-class", "sco")
LARGEST = 1e100
POWER_BITS = 2**16
VANISHES = 750
"""e^-750 is below half of the smallest float."""

LARGEST_GAP = 0.85
"""Distributions of the packing are further apart than their divergence allows for, from 0.858 on."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound; made by `lower_bound`.

    Attributes
    ----------
    task : str
    value : float
        The largest of the terms that are proved with all their constants; 0 when none applies.
    measures : str
        What is at least `value`.
    terms : mapping from str to float
        The parts, by name; those whose side conditions fail are absent.
    """

    task: str
    value: float
    measures: str
    terms: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))


def lower_bound(
    task: str,
    *,
    n_users: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    m: int = 1,
    max_norm: float = 1.0,
    max_loss: float = 1.0,
    lipschitz: float = 1.0,
    n_hypotheses: int | None = None,
    dimension: int = 1,
    sigma: float | None = None,
    radius: float = 1.0,
) -> LowerBound:
    """The error that every user-level private algorithm has on some distribution.

    Parameters
    ----------
    task : {"testing", "mean", "finite-class", "sco"}
        "testing": to tell two distributions apart that one record tells apart, by a number in [0, 1].
        "mean": the mean of records. "finite-class": to choose the best of finitely many hypotheses.
        "sco": to minimize the expected loss over the L2 ball of a radius.
    n_users : int
        n >= 1.
    epsilon, delta : privacy parameters
        Epsilon > 0. For users; neighbors replace one.
    m : int
        Records of each user. The bounds for testing and means do not depend on it: few users stay few.
    max_norm : float
        B, for "mean": the largest L2 norm of a record.
    max_loss : float
        B, for "finite-class": the largest absolute value of a loss.
    lipschitz : float
        G, for "sco": the largest L2 norm of a gradient.
    n_hypotheses : int
        K, for "finite-class".
    dimension, sigma : int, float
        d, and the sub-Gaussian constant of gradients, for the second term of "sco".
    radius : float
        R of the ball, for "sco".

    Returns
    -------
    LowerBound
        With the terms, where they apply, of

        * few users: [LSAKKMS21, Theorem 8], "as printed", with the "group" delta in place of n e^(n epsilon) delta, and
          "sharper": the exact least error of the test when delta is 0. Times 4 B^2 for the mean squared error of a
          mean, and times 2 G R for an excess risk.
        * "statistical" and "private" of "finite-class": [LSAKKMS21, Theorem 7] with repaired constants, for pure
          privacy.
        * "private, leading order" of "sco": [LSAKKMS21, Theorem 5], without its exponentially small correction, which
          the paper leaves open. It is not counted in `value`.

    Raises
    ------
    ValueError
        For "finite-class" with delta > 0, for which the theorem is not proved.

    References
    ----------
    [LSAKKMS21, Theorem 5], [LSAKKMS21, Theorem 7] and [LSAKKMS21, Theorem 8].

    Examples
    --------
    >>> least = lower_bound("mean", n_users=5, epsilon=0.5, max_norm=1)
    >>> [(name, round(value, 4)) for name, value in least.terms.items()]
    [('few users, as printed', 0.0759), ('few users, group', 0.0759), ('few users, sharper', 0.2804)]
    >>> least.measures
    'mean squared error'
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {short_repr(task)}")
    n, rows = _size(check_count(n_users, "n_users"), "n_users"), _size(check_count(m, "m"), "m")
    level, slack = parse_level(epsilon), parse_delta(delta)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError(f"epsilon must be > 0; got {short_repr(epsilon)}")
    # Of a larger epsilon the bounds are lower, and floats are as small as this.
    rate = max(float(level), 1 / LARGEST)
    name, scale = {"mean": ("max_norm", max_norm), "finite-class": ("max_loss", max_loss)}.get(
        task, ("lipschitz", lipschitz)
    )
    size = _size(parse_positive(scale, name), name)
    if task == "finite-class":
        if n_hypotheses is None:
            raise ValueError("n_hypotheses must be given for 'finite-class'; got None")
        if slack:
            raise ValueError(
                f"delta must be 0 for 'finite-class', which is proved for pure privacy; got {short_repr(delta)}"
            )
        terms = _finite_class(check_count(n_hypotheses, "n_hypotheses", 2), n, rows, rate, float(size))
        return LowerBound(task, max(terms.values(), default=0.0), "excess risk", terms)
    reach = _size(parse_positive(radius, "radius"), "radius")
    factor = {"testing": Fraction(1), "mean": 4 * size * size, "sco": 2 * size * reach}[task]
    terms = {f"few users, {name}": round_down(part * factor) for name, part in _testing(n, level, slack).items()}
    value = max(terms.values())
    if task == "sco" and sigma is not None:
        width = float(_size(parse_positive(sigma, "sigma"), "sigma"))
        d = _size(check_count(dimension, "dimension"), "dimension")
        terms |= _linear_losses(n, rows, d, rate, slack, width, float(size), float(reach))
    return LowerBound(task, value, "excess risk" if task == "sco" else "mean squared error", terms)


def _size(value: Number, name: str) -> Number:
    """The value, where floats are large enough for it."""
    if value > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:.0e}; got {short_repr(value)}")
    return value


def _testing(n: int, level: PrivacyLevel, delta: Fraction) -> dict[str, Fraction]:
    """[LSAKKMS21, Theorem 8]: at most max over theta of E(A - theta)^2, by group privacy of n users; rounded down."""
    names = ("as printed", "group", "sharper")
    if n * float(level) > VANISHES:
        return dict.fromkeys(names, Fraction(0))
    if level.ratio != 1 and n * level.ratio.numerator.bit_length() > POWER_BITS:
        # A little more epsilon is a little lower a bound, and short to write.
        level = PrivacyLevel(Fraction(1), value_enclosure(level)[1])
    grouped = PrivacyLevel(level.ratio**n, level.exponent * n)
    low, high = (grouped.ratio,) * 2 if not grouped.exponent else _core.exp_bounds(core_level(grouped), 192)
    apart = 1 - Fraction(group_privacy(as_epsilon(level), delta, n).delta)
    return {
        "as printed": max(Fraction(0), (1 - n * delta * high) / (4 * (1 + high))),
        "group": apart / (4 * (1 + high)),
        "sharper": apart * low / (1 + high) ** 2,
    }


def _finite_class(k: int, n: int, m: int, epsilon: float, bound: float) -> dict[str, float]:
    """[LSAKKMS21, Theorem 7] with repaired constants; empty for few hypotheses."""
    d = k.bit_length() - 1
    if d < 32 * math.log(2):
        return {}
    gaps = {"statistical": math.sqrt(d / (96 * m * n)), "private": d / (192 * n * math.sqrt(m) * epsilon)}
    return {name: bound / 64 * gap for name, gap in gaps.items() if gap <= LARGEST_GAP}


def _linear_losses(
    n: int, m: int, d: int, epsilon: float, delta: Fraction, sigma: float, lipschitz: float, radius: float
) -> dict[str, float]:
    """The private term of [LSAKKMS21, Theorem 5], for losses -<theta, z> of nearly normal z; or none."""
    # Wider gradients than the Lipschitz constant allows for are replaced by an easier problem.
    width = min(sigma, lipschitz / (20 * math.sqrt(d)))
    # How long the mean of z is, in units of a user's standard deviation.
    length = d / (512 * n * epsilon)
    inside = 100 * length * n / math.sqrt(d)
    if inside <= 1 or length > 10 * math.sqrt(d * m):
        return {}
    if delta > math.sqrt(d) / (48 * math.sqrt(2) * length * n * math.sqrt(math.log(inside))):
        return {}
    return {"private, leading order": radius * width * d / (20480 * n * math.sqrt(m) * epsilon)}


MOST_RECORDS = 10**300
"""Beyond them numbers are no floats."""


@dataclass(frozen=True)
class HeterogeneityBound:
    """Bounds of the expected excess loss for every user; made by `heterogeneity_bound`.

    Attributes
    ----------
    paper : float
        L + B (m n + 2) Delta.
    sharper : float
        L + B (1 - (1 - Delta)^(m n) + 2 Delta): never above `paper`, and never above L + B (1 + 2 Delta).
    """

    paper: float
    sharper: float


def heterogeneity_bound(
    excess: float, *, n_users: int, m: int, distance: Delta, max_loss: float = 1.0
) -> HeterogeneityBound:
    """The expected excess loss for every user, when users' distributions differ a little from a common one.

    Parameters
    ----------
    excess : float
        L >= 0: the expected excess loss that the algorithm is known to have when all records of all users are drawn
        from one distribution.
    n_users, m : int
        Users, and records of each.
    distance : number in [0, 1]
        Delta: every user's distribution is within this total variation of the common one. Public: an assumption.
    max_loss : float
        B: losses are in [0, B].

    Returns
    -------
    HeterogeneityBound
        For the loss of each user against the best for that user.

    Warns
    -----
    The bound is of use for differences below 1/(m n) only: nothing says that the algorithms are good for users who
    differ more. Privacy never rests on it. See docs/planning.md.

    Notes
    -----
    Proof. Records of a user and of the common distribution can be coupled to be equal with probability 1 - Delta,
    independently for all m n records; so the two data sets are equal but for probability 1 - (1 - Delta)^(m n), and
    what the algorithm returns with them. Where they are not, the loss differs by at most B. The loss of any parameter
    under a user's distribution and under the common one differ by at most B Delta, twice: for what was returned, and
    for the best.

    References
    ----------
    [LSAKKMS21, Theorem 9].

    Examples
    --------
    >>> bound = heterogeneity_bound(0.1, n_users=100, m=10, distance=0.0001)
    >>> round(bound.paper, 4), round(bound.sharper, 4)
    (0.2002, 0.1954)
    """
    try:
        risk = float(excess)
    except (TypeError, ValueError):
        raise TypeError(f"excess must be a number >= 0; got {short_repr(excess)}") from None
    if not 0 <= risk < math.inf:
        raise ValueError(f"excess must be a finite number >= 0; got {short_repr(excess)}")
    rows = check_count(n_users, "n_users") * check_count(m, "m")
    if rows > MOST_RECORDS:
        raise ValueError(
            f"n_users * m must be at most {MOST_RECORDS:.0e}; got {short_repr(n_users)} and {short_repr(m)}"
        )
    shift = float(parse_delta(distance, "distance"))
    size = float(parse_positive(max_loss, "max_loss"))
    differ = 1.0 if shift == 1 else -math.expm1(rows * math.log1p(-shift))
    return HeterogeneityBound(risk + size * (rows + 2) * shift, risk + size * (differ + 2 * shift))
