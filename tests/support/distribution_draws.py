"""Draws of listed and of seeded bits, and whether seeded ones fit a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from oracle.statistics import chi_square_limit
from userdp import _core
from userdp.exceptions import InsecureRandomnessWarning


def listed(words: Sequence[int]) -> _core.Source:
    return _core.Source.listed(b"".join(word.to_bytes(16, "little") for word in words))


def words_of(seed: int, count: int) -> list[int]:
    source = _core.Source(seed)
    return [source.bits() for _ in range(count)]


def seeded(pmf: Any, size: int | tuple[int, ...] | None, seed: int) -> Any:
    with pytest.warns(InsecureRandomnessWarning):
        return pmf.sample(size, random_state=seed)


def chi_square(counts: Sequence[int], masses: Sequence[Fraction | float], draws: int) -> tuple[float, int]:
    """The statistic over cells of expectation 20 or more, the last being what is left."""
    cells: list[list[float]] = [[0.0, 0.0]]
    for count, mass in zip(counts, masses, strict=True):
        if cells[-1][1] >= 20:
            cells.append([0.0, 0.0])
        cells[-1][0] += count
        cells[-1][1] += float(mass) * draws
    if cells[-1][1] < 20:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    rest = draws - sum(expected for _, expected in cells)
    cells[-1] = [draws - sum(seen for seen, _ in cells[:-1]), cells[-1][1] + rest]
    return sum((seen - expected) ** 2 / expected for seen, expected in cells), len(cells) - 1


def fits(counts: Sequence[int], masses: Sequence[Fraction | float], draws: int) -> bool:
    statistic, degrees = chi_square(counts, masses, draws)
    print(f"chi-square {statistic:.1f} at {degrees} degrees, limit {chi_square_limit(degrees):.1f}")
    return statistic < chi_square_limit(degrees)
