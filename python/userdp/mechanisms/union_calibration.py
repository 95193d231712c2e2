"""Noise and thresholds of set unions in integers, from what the core proposes: the exact account decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from userdp import _core
from userdp.exact.numbers import Neighbors, open_unit_fraction, short_repr
from userdp.mechanisms.union_rounds import WEIGHT

NEARLY = 0.9995
"""Of a delta beside rho, for the rounding of floats."""
HIGHER = Fraction(1003, 1000)
ATTEMPTS = 24
REACH = 3
"""The policy's cap is so many standard deviations of the noise above the threshold."""
WALK_WEIGHTS = tuple(2**bits for bits in (48, 46, 44, 42, 40))
"""Of the policy: rounding is a smaller part of larger ones."""
Proposal = tuple[float, float]
"""The noise's standard deviation and the threshold of a round, in units of a user's weight."""


def proposals(
    epsilon: float, delta: float, keys: int, neighbors: Neighbors, method: Any, first_share: Any
) -> Iterator[dict[str, Any]]:
    """Rounds as arguments of `SetUnion`, at a delta that is about as wanted and then a little smaller."""
    parts, walk = _parts(method, first_share), method == "policy"
    replace = neighbors == "replace"
    rounds = _core.propose_union(keys, replace=replace, walk=walk, epsilon=epsilon, delta=delta, parts=parts)
    return iter(()) if rounds is None else _attempts(keys, neighbors, walk, rounds)


def proposals_within(
    rho: float, added_delta: float, keys: int, neighbors: Neighbors, method: Any, first_share: Any
) -> Iterator[dict[str, Any]]:
    """The same within a rho, with thresholds for a delta beside it."""
    parts, lengths = _parts(method, first_share), 2 if neighbors == "replace" else 1
    least = math.sqrt(lengths / (2 * rho)) * (1 + 1e-12)
    sigmas, shown = [least / math.sqrt(part) for part in parts], added_delta / len(parts) * NEARLY
    rounds = [(sigma, _core.union_threshold(keys, sigma=sigma, shown=shown)) for sigma in sigmas]
    return _attempts(keys, neighbors, method == "policy", rounds, wider=True)


def _parts(method: Any, first_share: Any) -> list[float]:
    """What each round has of the budget."""
    if not isinstance(method, str) or method not in ("two-round", "one-round", "policy"):
        raise ValueError(f"method must be 'two-round', 'one-round' or 'policy'; got {short_repr(method)}")
    share = float(open_unit_fraction(first_share, "first_share"))
    return [share, 1 - share] if method == "two-round" else [1.0]


def _attempts(
    keys: int, neighbors: Neighbors, walk: bool, rounds: list[Proposal], *, wider: bool = False
) -> Iterator[dict[str, Any]]:
    """Rounds in integers, each with thresholds that are a little higher than those before."""
    factor = Fraction(1)
    for _ in range(ATTEMPTS):
        arguments = _in_integers(keys, walk, rounds, factor, wider)
        if arguments is not None:
            yield {"max_keys": keys, "neighbors": neighbors, **arguments}
        factor *= HIGHER


def _in_integers(keys: int, walk: bool, rounds: list[Proposal], factor: Fraction, wider: bool) -> dict[str, Any] | None:
    # Within a rho nothing is left unused; otherwise the parameters are public numbers that people read.
    bits = 48 if wider else 16
    variances = [_rounded(sigma * sigma, bits) * (factor if wider else 1) for sigma, _ in rounds]
    thresholds = [Fraction(threshold) * factor for _, threshold in rounds]
    if not walk:
        listed = [
            (variance * WEIGHT**2, math.ceil(threshold * WEIGHT))
            for variance, threshold in zip(variances, thresholds, strict=True)
        ]
        return {"rounds": listed}
    ((variance, threshold),) = zip(variances, thresholds, strict=True)
    reach = threshold + REACH * Fraction(math.sqrt(variance))
    for weight in WALK_WEIGHTS:
        cap = math.ceil(reach * weight)
        if variance * weight**2 <= 2**112 and cap**2 * keys < 2**127 and cap < 2**61:
            listed = [(variance * weight**2, math.ceil(threshold * weight))]
            return {"rounds": listed, "weight": weight, "cap": cap}
    return None


def _rounded(x: float, bits: int) -> Fraction:
    """At or just above x, with few binary digits."""
    unit = Fraction(2) ** (math.frexp(x)[1] - bits)
    return math.ceil(Fraction(x) / unit) * unit
