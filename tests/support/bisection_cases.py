"""What tests of private bisection share: known cases, rational bases, and near distributions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio, Pmf, _core
from userdp.learners.threshold import Sweep

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]

NEAR = F(1, 2**30)
"""The library's distributions are next to the ideal ones: epsilon is lowered by 2^-36."""


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expect"], id=case["id"]) for case in CASES if case["kind"] == kind]


def worst_ratios(mechanism: str) -> list[Any]:
    """Cases of the largest ratio of a mechanism's probabilities between neighbors."""
    return [case for case in cases("exact_epsilon") if mechanism in case.values[0]["mechanism"]]


def level(base: str, power: int = 1) -> LogRatio:
    """The epsilon whose e^-epsilon is a power of a base."""
    inverse = (1 / F(base)) ** power
    return LogRatio(inverse.numerator, inverse.denominator)


def sweep_of(users: Sequence[Any], m: int, domain_size: int) -> Sweep:
    rows = [(x, y, code) for code, user in enumerate(users) for x, y in user]
    points, labels, codes = (np.array(column) for column in zip(*rows, strict=True))
    arrays = points.astype(np.uint64), labels.astype(np.uint8), codes.astype(np.uint32)
    return Sweep(_core.ThresholdSweep(*arrays, len(users), m, domain_size))


def near(found: Pmf, expected: Sequence[Fraction | str]) -> bool:
    return all(abs(a - F(b)) < NEAR for a, b in zip(found.fractions(), expected, strict=True))
