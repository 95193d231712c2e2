"""Certified divergences of two finite distributions.

Every function takes two pmfs `p` and `q` over the same k outputs: array-likes of shape (k,), or of shape (N, k), which
are then taken row by row. Float masses are the exact dyadic numbers they are (and must sum to 1 within 1e-9); ints,
Fractions and decimal strings are exact (and must sum to exactly 1), and so is a `Pmf`. A text lists exact masses, as on
the command line: "1/2, 1/4, 1/4".

The results are exact mathematics: a returned float is the one nearest to the exact value, bounds are rounded outwards,
and comparisons with delta are always decided, in exact arithmetic where floats cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import level_of
from userdp.exact.numbers import Bounds, Delta, Epsilon, LogRatio, parse_delta, parse_exact, short_repr, split_text
from userdp.exact.pmf import Masses, Pmf, PmfLike, is_table, masses_of, rows_of

__all__ = [
    "Bounds",
    "LogRatio",
    "Verdict",
    "chi2_divergence",
    "epsilon_at_delta",
    "hockey_stick",
    "hockey_stick_bounds",
    "is_indistinguishable",
    "kl_divergence",
    "max_divergence",
    "privacy_profile",
    "renyi_divergence",
    "total_variation",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two distributions are (epsilon, delta)-indistinguishable, decided.

    Attributes
    ----------
    holds : bool
        True when the hockey-stick divergences in both directions are at most delta. ``bool(verdict)`` is this.
    lower, upper : float
        Enclose the larger of the two divergences.
    event : tuple of int or None
        When the verdict fails: the 0-based outputs, sorted, on which the worse direction exceeds delta.
    direction : {"p||q", "q||p"} or None
        When the verdict fails: the worse direction. "p||q" means P(event) - e^epsilon Q(event) > delta.
    decided_by : {"float64", "exact"}
        Whether the certified float pass settled it, or exact arithmetic had to.
    """

    holds: bool
    lower: float
    upper: float
    event: tuple[int, ...] | None
    direction: Literal["p||q", "q||p"] | None
    decided_by: Literal["float64", "exact"]

    def __bool__(self) -> bool:
        return self.holds


Floats = npt.NDArray[np.float64]
OnePmf: TypeAlias = "Pmf | Sequence[Fraction | str | int | float]"
"""One pmf for sure; an array may have a row for each of several."""


def _pairs(p: Any, q: Any, evaluate: Callable[[Masses, Masses], T]) -> T | list[T]:
    """Apply `evaluate` to the pair, or to each pair of rows."""
    p, q = split_text(p), split_text(q)
    table_p, table_q = is_table(p), is_table(q)
    if table_p != table_q:
        raise ValueError("p and q must both be 1-D, or both be 2-D with the same number of rows")
    if not table_p:
        return evaluate(masses_of(p, "p"), masses_of(q, "q"))
    rows_p, rows_q = rows_of(p, "p"), rows_of(q, "q")
    if len(rows_p) != len(rows_q):
        raise ValueError(f"q has {len(rows_q)} rows where p has {len(rows_p)}; they must match")
    return [_evaluate_row(index, *rows, evaluate) for index, rows in enumerate(zip(rows_p, rows_q, strict=True))]


def _evaluate_row(index: int, p: Any, q: Any, evaluate: Callable[[Masses, Masses], T]) -> T:
    try:
        return evaluate(masses_of(p, "p"), masses_of(q, "q"))
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"row {index}: {error}") from None


def _floats(p: Any, q: Any, evaluate: Callable[[Masses, Masses], float]) -> float | Floats:
    values = _pairs(p, q, evaluate)
    return np.array(values, dtype=np.float64) if isinstance(values, list) else values


@overload
def hockey_stick(p: OnePmf, q: OnePmf, epsilon: Epsilon) -> float: ...
@overload
def hockey_stick(p: PmfLike, q: PmfLike, epsilon: Epsilon) -> float | Floats: ...
def hockey_stick(p: PmfLike, q: PmfLike, epsilon: Epsilon) -> float | Floats:
    """Hockey-stick divergence of p from q, sum over o of max(0, p_o - e^epsilon q_o), correctly rounded.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value, from 0 to 1 (and 1e-9 more for floats whose total is that much above 1).
        One direction only: see `is_indistinguishable` for both.

    Notes
    -----
    Decides (epsilon, delta)-indistinguishability in one direction (Definition of approximate DP in GKKMMZ23, section
    2). epsilon = 0 gives total variation when both pmfs have the same total. Proof: docs/proofs/hockey_stick.md.

    Examples
    --------
    >>> hockey_stick([0.5, 0.25, 0.25], [0.25, 0.5, 0.25], 0)
    0.25
    >>> hockey_stick(["3/4", "1/4"], ["1/4", "3/4"], LogRatio(3, 1))
    0.0
    """
    value = _core.hockey_stick_float64(p, q, epsilon)
    if value is not None:
        return value
    level = level_of(epsilon)
    return _floats(p, q, lambda p, q: _core.hockey_stick(p, q, level))


@overload
def hockey_stick_bounds(p: OnePmf, q: OnePmf, epsilon: Epsilon) -> Bounds: ...
@overload
def hockey_stick_bounds(p: PmfLike, q: PmfLike, epsilon: Epsilon) -> Bounds | list[Bounds]: ...
def hockey_stick_bounds(p: PmfLike, q: PmfLike, epsilon: Epsilon) -> Bounds | list[Bounds]:
    """Floats that enclose the hockey-stick divergence of p from q.

    Parameters
    ----------
    p, q, epsilon
        As for `hockey_stick`.

    Returns
    -------
    Bounds, or list of N Bounds for 2-D input
        ``lower <= exact <= upper``, equal or adjacent floats.

    Examples
    --------
    >>> hockey_stick_bounds(["1/2", "1/2"], ["1/6", "5/6"], 0)
    Bounds(lower=0.3333333333333333, upper=0.33333333333333337)
    """
    ends = _core.hockey_stick_bounds_float64(p, q, epsilon)
    if ends is not None:
        return Bounds(*ends)
    level = level_of(epsilon)
    return _pairs(p, q, lambda p, q: Bounds(*_core.hockey_stick_bounds(p, q, level)))


@overload
def is_indistinguishable(p: OnePmf, q: OnePmf, *, epsilon: Epsilon, delta: Delta) -> Verdict: ...
@overload
def is_indistinguishable(p: PmfLike, q: PmfLike, *, epsilon: Epsilon, delta: Delta) -> Verdict | list[Verdict]: ...
def is_indistinguishable(p: PmfLike, q: PmfLike, *, epsilon: Epsilon, delta: Delta) -> Verdict | list[Verdict]:
    """Decide whether p and q are (epsilon, delta)-indistinguishable, in both directions.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.

    Returns
    -------
    Verdict, or list of N Verdicts for 2-D input
        Always decided: a divergence equal to delta holds, the smallest excess fails.

    Examples
    --------
    >>> verdict = is_indistinguishable([0.75, 0.25], [0.25, 0.75], epsilon=1, delta=0.05)
    >>> verdict.holds, verdict.event, verdict.direction
    (False, (0,), 'p||q')
    >>> bool(is_indistinguishable([0.75, 0.25], [0.25, 0.75], epsilon=LogRatio(3, 1), delta=0))
    True
    """
    parts = _core.is_indistinguishable_float64(p, q, epsilon, delta)
    if parts is not None:
        return _verdict(*parts)
    level, threshold = level_of(epsilon), parse_delta(delta)
    return _pairs(p, q, lambda p, q: _verdict(*_core.is_indistinguishable(p, q, level, threshold)))


def _verdict(holds: bool, lower: float, upper: float, event: list[int] | None, reversed_: bool, exact: bool) -> Verdict:
    return Verdict(
        holds=holds,
        lower=lower,
        upper=upper,
        event=None if event is None else tuple(event),
        direction=None if holds else ("q||p" if reversed_ else "p||q"),
        decided_by="exact" if exact else "float64",
    )


def privacy_profile(p: PmfLike, q: PmfLike, epsilons: Sequence[Epsilon] | npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Privacy profile delta(epsilon): the larger of the two hockey-stick divergences, at each epsilon.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.
    epsilons : sequence of epsilon, length L
        Each as for `hockey_stick`.

    Returns
    -------
    ndarray of float64, shape (L,) or (N, L)
        The exact values rounded up to floats: certified upper bounds, 0 where the exact value is 0.

    Examples
    --------
    >>> privacy_profile([0.75, 0.25], [0.25, 0.75], [0, LogRatio(2, 1), 2])
    array([0.5 , 0.25, 0.  ])
    """
    epsilons = split_text(epsilons)
    if isinstance(epsilons, LogRatio) or np.ndim(np.asarray(epsilons, dtype=object)) != 1:
        raise TypeError("epsilons must be a one-dimensional sequence of privacy parameters")
    levels = [level_of(epsilon, "epsilons") for epsilon in epsilons]  # type: ignore[union-attr]
    return np.array(_pairs(p, q, lambda p, q: _core.privacy_profile(p, q, levels)), dtype=np.float64)


@overload
def epsilon_at_delta(p: OnePmf, q: OnePmf, delta: Delta) -> Bounds: ...
@overload
def epsilon_at_delta(p: PmfLike, q: PmfLike, delta: Delta) -> Bounds | list[Bounds]: ...
def epsilon_at_delta(p: PmfLike, q: PmfLike, delta: Delta) -> Bounds | list[Bounds]:
    """Smallest epsilon >= 0 at which p and q are (epsilon, delta)-indistinguishable.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.

    Returns
    -------
    Bounds, or list of N Bounds for 2-D input
        Enclose the exact epsilon (found at the breakpoints of the profile, not on a grid); (inf, inf) when no finite
        epsilon does.

    Notes
    -----
    Proof: docs/proofs/epsilon_at_delta.md.

    Examples
    --------
    >>> epsilon_at_delta([0.75, 0.25], [0.25, 0.75], 0)
    Bounds(lower=1.0986122886681096, upper=1.0986122886681098)
    >>> epsilon_at_delta([0.5, 0.5], [1.0, 0.0], "0.1")
    Bounds(lower=inf, upper=inf)
    """
    threshold = parse_delta(delta)

    def bounds(p: Masses, q: Masses) -> Bounds:
        lower, upper, _ = _core.epsilon_at_delta(p, q, threshold)
        return Bounds(lower, upper)

    return _pairs(p, q, bounds)


@overload
def max_divergence(p: OnePmf, q: OnePmf) -> float: ...
@overload
def max_divergence(p: PmfLike, q: PmfLike) -> float | Floats: ...
def max_divergence(p: PmfLike, q: PmfLike) -> float | Floats:
    """Max divergence of p from q in nats, the largest ln(p_o / q_o) over outputs with p_o > 0.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value; inf where q_o = 0 < p_o.

    Examples
    --------
    >>> max_divergence(["3/4", "1/4"], ["1/4", "3/4"]) == math.log(3)
    True
    """
    return _floats(p, q, _core.max_divergence)


@overload
def total_variation(p: OnePmf, q: OnePmf) -> float: ...
@overload
def total_variation(p: PmfLike, q: PmfLike) -> float | Floats: ...
def total_variation(p: PmfLike, q: PmfLike) -> float | Floats:
    """Total variation distance, half the sum of |p_o - q_o|.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value.

    Examples
    --------
    >>> total_variation([0.5, 0.5], [0.25, 0.75])
    0.25
    """
    return _floats(p, q, _core.total_variation)


@overload
def kl_divergence(p: OnePmf, q: OnePmf) -> float: ...
@overload
def kl_divergence(p: PmfLike, q: PmfLike) -> float | Floats: ...
def kl_divergence(p: PmfLike, q: PmfLike) -> float | Floats:
    """Kullback-Leibler divergence of p from q in nats, the sum of p_o ln(p_o / q_o).

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value, from certified enclosures of the logarithm; inf where q_o = 0 < p_o.

    Examples
    --------
    >>> kl_divergence([0.5, 0.5], [0.5, 0.5])
    0.0
    """
    return _floats(p, q, _core.kl_divergence)


@overload
def chi2_divergence(p: OnePmf, q: OnePmf) -> float: ...
@overload
def chi2_divergence(p: PmfLike, q: PmfLike) -> float | Floats: ...
def chi2_divergence(p: PmfLike, q: PmfLike) -> float | Floats:
    """Chi-square divergence of p from q, the sum of (p_o - q_o)^2 / q_o.

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value; inf where q_o = 0 < p_o.

    Examples
    --------
    >>> chi2_divergence([0.5, 0.5], [0.25, 0.75])
    0.3333333333333333
    """
    return _floats(p, q, _core.chi2_divergence)


@overload
def renyi_divergence(p: OnePmf, q: OnePmf, order: float | int | Fraction | str) -> float: ...
@overload
def renyi_divergence(p: PmfLike, q: PmfLike, order: float | int | Fraction | str) -> float | Floats: ...
def renyi_divergence(p: PmfLike, q: PmfLike, order: float | int | Fraction | str) -> float | Floats:
    """Rényi divergence of p from q in nats, ln(sum of p_o^a q_o^(1-a)) / (a - 1).

    Parameters
    ----------
    p, q : array-like of shape (k,) or (N, k), or Pmf
        Probability mass functions over the same outputs.
    order : float, int, Fraction or decimal string
        The order a, positive. 1 is the Kullback-Leibler divergence, inf the max divergence. At most 2**32.

    Returns
    -------
    float or ndarray of shape (N,)
        The float nearest to the exact value; inf where it is infinite.

    Examples
    --------
    >>> renyi_divergence([1.0, 0.0], [0.25, 0.75], 2) == math.log(4)
    True
    """
    if isinstance(order, (float, np.floating)) and math.isinf(order) and order > 0:
        return max_divergence(p, q)
    exact = parse_exact(order, "order", "a positive float, int, Fraction or decimal string")
    if not 0 < exact <= 2**32:
        raise ValueError(f"order must be positive and at most 2**32, or inf; got {short_repr(order)}")
    return _floats(p, q, lambda p, q: _core.renyi_divergence(p, q, exact))
