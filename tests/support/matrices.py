"""Classes as 0/1 matrices, and the known cases of their dimensions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import dimensions as oracle

CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/dimensions.json").read_text())["cases"]
Matrix = npt.NDArray[np.uint8]


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["name"]) for case in CASES if case["kind"] == kind]


def concepts_of(matrix: Any) -> oracle.Class:
    return frozenset(tuple(int(bit) for bit in row) for row in np.asarray(matrix))


def random_matrices(count: int, seed: int) -> list[Matrix]:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, (15, 7), size=(count, 2))
    return [(rng.random(tuple(shape)) < rng.choice([0.15, 0.3, 0.5])).astype(np.uint8) for shape in shapes]


def cube(points: int) -> Matrix:
    return np.array(list(itertools.product((0, 1), repeat=points)), dtype=np.uint8)


def thresholds(points: int) -> Matrix:
    return np.tri(points + 1, points, -1, dtype=np.uint8)


def parities(bits: int, weight: int) -> Matrix:
    points = range(2**bits)
    supports = [s for s in points if s.bit_count() == weight]
    return np.array([[(s & x).bit_count() % 2 for x in points] for s in supports], dtype=np.uint8)
