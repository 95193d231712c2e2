"""Public grids against exact fractions: which point a number is, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.concepts.points import EvenPoints, read_points_parameter

F = Fraction

# A grid as it is declared, and its low end, step and number of points.
GRIDS: list[tuple[tuple[Any, Any, Any], Fraction, Fraction, int]] = [
    ((0, 1, 0.1), F(0), F(1, 10), 11),
    ((0.0, 1.0, 0.5), F(0), F(1, 2), 3),
    ((-3.3, 7.7, 0.1), F(-33, 10), F(1, 10), 111),
    (("0", "10", "1/3"), F(0), F(1, 3), 31),
    ((Decimal("0.05"), F(41, 20), 0.1), F(1, 20), F(1, 10), 21),
    ((np.float32(0.1), np.int64(1), np.float64(0.1)), F(1, 10), F(1, 10), 10),
    ((5, 5, 1), F(5), F(1), 1),
    ((1e-9, 1e-6, 1e-9), F(1, 10**9), F(1, 10**9), 1000),
    ((0, 1_000_000, 0.001), F(0), F(1, 1000), 10**9 + 1),
    ((-(2**40), 2**40, 1), F(-(2**40)), F(1), 2**41 + 1),
]


def points_of(given: tuple[Any, Any, Any]) -> EvenPoints:
    return read_points_parameter(given, "points")


def by_definition(x: float, low: Fraction, step: Fraction, size: int) -> int:
    """One more than the inner thresholds that are below x, each the nearest double of halfway between two points."""
    near = math.floor((F(x) - low) / step)
    first = min(max(near - 1, 1), size)
    inner = range(first, min(near + 3, size - 1) + 1)
    return first + sum(float(low + (k - F(1, 2)) * step) < x for k in inner)


@pytest.mark.parametrize(("given", "low", "step", "size"), GRIDS)
def test_every_number_is_the_nearest_point(given: Any, low: Fraction, step: Fraction, size: int) -> None:
    grid, rng = points_of(given), np.random.default_rng(7)
    assert grid.size == size
    places = {*range(-3, min(size, 40) + 3), size - 1, size, *map(int, rng.integers(0, size, 200))}
    on_grid = np.array([float(low + k * step) for k in sorted(places)])
    halfway = np.array([float(low + (k + F(1, 2)) * step) for k in sorted(places)])
    numbers = np.concatenate(
        [*(np.nextafter(part, end) for part in (on_grid, halfway) for end in (-np.inf, np.inf)), on_grid, halfway]
    )
    for x, point in zip(numbers.tolist(), grid.read(numbers).tolist(), strict=True):
        assert point == by_definition(x, low, step, size), x
    # The points themselves, whatever float is next to them.
    inside = [k for k in sorted(places) if 0 <= k < size]
    assert grid.read(np.array([float(low + k * step) for k in inside])).tolist() == [k + 1 for k in inside]


@pytest.mark.parametrize(("given", "low", "step", "size"), GRIDS)
def test_thresholds_are_halfway_and_known_again(given: Any, low: Fraction, step: Fraction, size: int) -> None:
    grid = points_of(given)
    for place in sorted({0, 1, size // 2, size - 1, size}):
        assert grid.threshold(place) == float(low + (place - F(1, 2)) * step)
        assert grid.place(grid.threshold(place)) == place


def test_steps_of_a_tenth_are_not_counted_in_floats() -> None:
    grid = points_of((0, 100, 0.1))
    tenths = np.arange(0, 1001)
    wanted = (tenths + 1).tolist()
    # As literals, by division, by products, by sums, and in single precision: 0.30000000000000004 is 0.3.
    for numbers in (tenths / 10, tenths * 0.1, np.arange(0, 100.05, 0.1), np.cumsum(np.full(1001, 0.1)) - 0.1):
        assert grid.read(numbers).tolist() == wanted
    assert grid.read((tenths / 10).astype(np.float32)).tolist() == wanted
    assert grid.read((tenths / 10).astype(np.float32).astype(np.float64)).tolist() == wanted


def test_a_point_depends_on_one_number() -> None:
    grid, numbers = points_of((-1, 1, 0.001)), np.random.default_rng(1).normal(size=500)
    together = grid.read(numbers)
    assert [int(grid.read(numbers[place : place + 1])[0]) for place in range(500)] == together.tolist()
    assert grid.read(numbers[::-1]).tolist() == together[::-1].tolist()


def test_what_is_outside_is_an_end_and_what_is_none_is_low() -> None:
    values = np.array([math.nan, -math.inf, math.inf, 1e308, -1e308, 0.75, 0.25])
    assert points_of((0.0, 1.0, 0.5)).read(values).tolist() == [1, 1, 3, 3, 1, 2, 1]
    assert points_of((5, 5, 1)).read(values).tolist() == [1] * 7
    assert points_of((0, 1, 1)).read(np.array([True, False])).tolist() == [2, 1]
    assert points_of((0, 9, 1)).read(np.arange(10)).tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((0, 1, 0.3), ValueError, "next to high are 0.9 and 1.2"),
        ((1, 0, 0.1), ValueError, "low <= high"),
        ((0, 1, 0), ValueError, "step > 0"),
        ((0, 1, -1), ValueError, "step > 0"),
        ((0, 1), TypeError, "three numbers"),
        (5, TypeError, "three numbers"),
        ((0, math.inf, 1), ValueError, "high must be finite"),
        ((math.nan, 1, 1), ValueError, "low must be finite"),
        ((0, 1, "x"), ValueError, "step='x'"),
        ((None, 1, 1), TypeError, "low must be a number"),
        ((False, True, 1), TypeError, "low must be a number"),
        ((0, "1e400", 1), ValueError, "2\\*\\*50"),
        ((0, 1, "1e-300"), ValueError, "2\\*\\*50"),
        ((0, 2**50, 1), ValueError, "2\\*\\*50"),
        ((0, "1e400", 3), ValueError, "next to high"),
    ],
)
def test_what_is_no_grid_is_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"points.*{message}"):
        points_of(given)
