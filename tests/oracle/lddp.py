"""The worst divergence over all pairs of deletions, by definition. No import of userdp."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from oracle.divergence import hockey_stick

Distribution = Sequence[Fraction]


def kept(dataset: Sequence[Any], deleted: Sequence[int]) -> tuple[Any, ...]:
    """The users that are left, in index order."""
    return tuple(user for position, user in enumerate(dataset) if position not in deleted)


def worst(
    pmf: Callable[[tuple[Any, ...]], Distribution], dataset: Sequence[Any], r: int, multiplier: Fraction
) -> Fraction:
    """Largest divergence over ordered pairs of deletion sets; 0 when there is only one."""
    deletions = itertools.combinations(range(len(dataset)), r)
    # Of equal distributions one is enough: their divergence is 0, or at most that, and 0 is the least answer.
    pmfs = dict.fromkeys(tuple(pmf(kept(dataset, deleted))) for deleted in deletions)
    pairs = itertools.permutations(pmfs, 2)
    return max((hockey_stick(p, q, multiplier) for p, q in pairs), default=Fraction(0))
