"""Noise and thresholds of sparse histograms, from what the core proposes: the exact account decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from userdp import _core
from userdp.exact.numbers import Neighbors, parse_positive
from userdp.mechanisms.key_bounds import MOST_LAPLACE_KEYS
from userdp.mechanisms.key_sums import KeySum

DIGITS = 4
"""Decimal digits of the noise's parameters, which are public and read by people."""
LEAST_VARIANCE = Fraction(1, 100)
"""Of discrete Gaussian noise."""
ATTEMPTS = 4
"""So many widths are tried for a threshold."""
MORE_USERS = 6
"""So many larger numbers of users than predicted are tried one by one, or by a part in a thousand where these are many;
then by doubling, up to a quarter more."""


def proposals(
    epsilon: float,
    delta: float,
    keys: int,
    neighbors: Neighbors,
    ranges: list[tuple[int, int]],
    shares: list[float],
    method: str,
    probability: float,
) -> Iterator[dict[str, Any]]:
    """Noise and thresholds as arguments of `SparseHistogram`, those that show keys of fewer users first."""
    replace = neighbors == "replace"
    # What a key in common is worth beside one's own, at most: sums alone move there.
    widths = [(high - low) / max(-low, high) for low, high in ranges] if replace else []
    common = sum(share * width**2 for share, width in zip(shares[1:], widths, strict=False))
    kinds = [kind for kind in ("gaussian", "laplace") if method in (kind, "auto")]
    if keys > MOST_LAPLACE_KEYS and method == "auto":
        kinds = ["gaussian"]
    listed = [
        [
            (kind, *one)
            for one in _core.propose_histogram(
                keys,
                replace=replace,
                laplace=kind == "laplace",
                epsilon=epsilon,
                delta=delta,
                share=shares[0],
                common=common,
                probability=probability,
            )
        ]
        for kind in kinds
    ]
    # What is best by prediction may not be had: beside a large epsilon drawn Gaussian noise is too far off the ideal.
    for chosen in ([one for kind in listed for one in kind], *(listed if len(listed) > 1 else [])):
        for kind, size, threshold in _in_order(chosen):
            yield {**_arguments(kind, size, ranges, shares), "threshold": threshold}


def _arguments(kind: str, size: float, ranges: list[tuple[int, int]], shares: list[float]) -> dict[str, Any]:
    """Of the class, by the variance or the scale of a key's whole part."""
    sums = [(low, high, max(-low, high), share) for (low, high), share in zip(ranges, shares[1:], strict=True)]
    if kind == "laplace":
        return {
            "scale": _rounded(size / shares[0]),
            "sums": [KeySum(low, high, scale=_rounded(size * most / share)) for low, high, most, share in sums],
        }
    return {
        "sigma_squared": max(_rounded(size / shares[0]), LEAST_VARIANCE),
        "sums": [
            KeySum(low, high, sigma_squared=max(_rounded(size * most**2 / share), LEAST_VARIANCE))
            for low, high, most, share in sums
        ],
    }


def _in_order(proposed: list[tuple[str, float, int, float]]) -> Iterator[tuple[str, float, int]]:
    """What to try: by users that are needed, a few widths of noise for each number."""
    if not proposed:
        return
    fewest = math.ceil(min(users for _, users, *_ in proposed))
    step = max(1, fewest // 1000)
    more_users = [-1, *(step * times for times in range(MORE_USERS))]
    while (larger := 2 * more_users[-1]) <= fewest // 4:
        more_users.append(larger)
    for users in (fewest + more for more in more_users):
        spare = [
            (users - math.ceil(predicted - 1e-9), kind, threshold, size)
            for kind, predicted, threshold, size in proposed
        ]
        # Predictions are a little off: one user less may do.
        fitting = [
            (kind, size, threshold + more)
            for more, kind, threshold, size in spare
            if more >= 0 or (users < fewest and more == -1)
        ]
        places = sorted({round(x) for x in np.linspace(0, len(fitting) - 1, min(len(fitting), ATTEMPTS))})
        yield from map(fitting.__getitem__, places)


def read_shares(weights: Sequence[Any] | None, sums: int) -> list[float]:
    """Shares of the count and of each sum, which add up to 1."""
    if weights is None:
        return [0.5, *[0.5 / sums] * sums] if sums else [1.0]
    read = [parse_positive(weight, "weights") for weight in weights]
    if len(read) != 1 + sums:
        raise ValueError(f"weights must be {1 + sums}, of the count and of each sum; got {len(read)}")
    return [float(weight / sum(read)) for weight in read]


def _rounded(x: float) -> Fraction:
    """At or just above x, with few digits."""
    power = DIGITS - 1 - math.floor(math.log10(x))
    return math.ceil(Fraction(x) * Fraction(10) ** power) / Fraction(10) ** power
