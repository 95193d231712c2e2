"""Schedules of descents against exact moments: the bounds hold, are not far off, and fail for a step that is wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from oracle import descent as oracle
from userdp.means.concentration import gradient_radius
from userdp.optimization.schedules import (
    Schedule,
    averaged_bound,
    convex_bound,
    convex_schedule,
    nonconvex_bound,
    nonconvex_schedule,
    strongly_convex_bound,
    strongly_convex_schedule,
    tail_bound,
    tail_schedule,
)

F = Fraction


def excess(schedule: Schedule, curvatures: list[float], radius: float, noise: float) -> float:
    """With the start and the noise shared evenly by the coordinates."""
    d = len(curvatures)
    side = F(radius) / F(math.isqrt(d) if math.isqrt(d) ** 2 == d else math.sqrt(d))
    return float(
        oracle.quadratic_excess(
            [F(c) for c in curvatures],
            [side] * d,
            [F(noise) ** 2 / d] * d,
            [F(size) for size in schedule.step_sizes],
            [F(weight) for weight in schedule.weights],
        )
    )


def test_reference_against_all_paths() -> None:
    sizes, weights = [0.25, 0.5, 0.125], [0.25, 0.25, 0.5]
    exact = oracle.quadratic_excess([F(2)], [F(3)], [F(1, 4)], [F(s) for s in sizes], [F(w) for w in weights])
    total = F(0)
    for signs in itertools.product((-1, 1), repeat=3):
        theta, average = F(3), F(0)
        for sign, size, weight in zip(signs, sizes, weights, strict=True):
            theta -= F(size) * (2 * theta + F(sign, 2))
            average += F(weight) * theta
        total += average**2 / 8
    assert exact == total


@pytest.mark.parametrize("steps", [1, 2, 10, 60])
@pytest.mark.parametrize("noise", [0.0, 0.25, 4.0])
@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize(("made", "bounded"), [(convex_schedule, convex_bound), (tail_schedule, tail_bound)])
def test_convex_bound(
    made: Callable[..., Schedule], bounded: Callable[..., float], steps: int, noise: float, radius: float
) -> None:
    schedule = made(steps, smoothness=2.0, radius=radius, noise=noise)
    assert len(schedule.step_sizes) == steps
    assert math.isclose(math.fsum(schedule.weights), 1)
    bound = bounded(steps, smoothness=2.0, radius=radius, noise=noise)
    worst = max(excess(schedule, [c], radius, noise) for c in (2.0, 1.0, 0.25, 1 / 16, 1 / 64))
    print(f"T={steps}: {worst:.4g} of at most {bound:.4g}")
    assert worst <= bound
    size, counted = schedule.step_sizes[0], sum(weight > 0 for weight in schedule.weights)
    tighter = averaged_bound(steps, counted, size=size, radius=radius, noise=noise)
    assert worst <= tighter <= bound * (1 + 1e-9)
    # The bound is of the right size: a hundredth of it would be false.
    assert noise or steps == 1 or worst > bound / 100


def test_a_step_that_is_too_long_breaks_the_convex_bound() -> None:
    bound = convex_bound(40, smoothness=2.0, radius=1.0, noise=4.0)
    schedule = convex_schedule(40, smoothness=2.0, radius=1.0, noise=4.0)
    longer = Schedule(tuple(40 * size for size in schedule.step_sizes), schedule.weights)
    assert excess(longer, [2.0], 1.0, 4.0) > bound


@pytest.mark.parametrize("steps", [1, 2, 9, 60])
@pytest.mark.parametrize("noise", [0.0, 0.25, 4.0])
@pytest.mark.parametrize("mu", [2.0, 1.0, 0.125])
def test_strongly_convex_bound(steps: int, noise: float, mu: float) -> None:
    schedule = strongly_convex_schedule(steps, smoothness=2.0, strong_convexity=mu)
    assert len(schedule.step_sizes) == steps
    assert math.isclose(math.fsum(schedule.weights), 1)
    assert all(size <= 0.5 for size in schedule.step_sizes)
    bound = strongly_convex_bound(steps, smoothness=2.0, strong_convexity=mu, radius=1.0, noise=noise)
    spectra = [[mu], [mu, 2.0, 2.0, 2.0], [mu, mu, mu, 2.0], [2.0]]
    worst = max(excess(schedule, spectrum, 1.0, noise) for spectrum in spectra)
    print(f"T={steps}, mu={mu}: {worst:.4g} of at most {bound:.4g}")
    assert worst <= bound
    assert noise < 1 or steps < 60 or worst > bound / 100


def test_no_restart_breaks_the_strongly_convex_bound() -> None:
    # Falling steps from the beginning forget the start too slowly.
    kappa, steps = 64, 1200
    bound = strongly_convex_bound(steps, smoothness=1.0, strong_convexity=1 / kappa, radius=1.0, noise=0.0)
    schedule = strongly_convex_schedule(steps, smoothness=1.0, strong_convexity=1 / kappa)
    assert excess(schedule, [1 / kappa], 1.0, 0.0) <= bound
    whole = strongly_convex_schedule(1, smoothness=1.0, strong_convexity=1 / kappa)
    assert whole.step_sizes == (1.0,)
    sizes = tuple(2 * kappa / (k + 2 * kappa) for k in range(steps))
    weights = tuple((k + 2 * kappa - 1) / sum(j + 2 * kappa - 1 for j in range(steps)) for k in range(steps))
    assert excess(Schedule(sizes, weights), [1 / kappa], 1.0, 0.0) > bound


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_nonconvex_bound(steps: int, noise: float) -> None:
    # F(x) = 1 - cos(x) on [-3, 2]: two stationary points, the constraint binds at both ends.
    start, smoothness = 1.9, 1.0
    gap = 1 - math.cos(start)

    def project(x: float) -> float:
        return min(max(x, -3.0), 2.0)

    def mapping(x: float) -> float:
        return (smoothness * (x - project(x - math.sin(x) / smoothness))) ** 2

    schedules = [nonconvex_schedule(steps, smoothness=smoothness, gap=gap, noise=noise, index=i) for i in range(steps)]
    assert schedules[0].step_sizes == (0.0,)
    assert schedules[0].weights == (1.0,)
    values = []
    for index, schedule in enumerate(schedules):
        assert len(schedule.step_sizes) == max(index, 1)
        assert schedule.weights[-1] == 1
        values.append(oracle.expected_over_signs(mapping, math.sin, project, start, noise, schedule.step_sizes)[-1])
    bound = nonconvex_bound(steps, smoothness=smoothness, gap=gap, noise=noise)
    print(f"T={steps}, nu={noise}: {sum(values) / steps:.4g} of at most {bound:.4g}")
    assert bound / 200 < sum(values) / steps <= bound


def test_gradient_radius() -> None:
    given: dict[str, Any] = {
        "sub_gaussian": 0.5, "dimension": 8, "n_users": 1000, "m": 100, "smoothness": 0.25, "radius": 2.0, "gamma": 0.01
    }  # fmt: skip
    mesh = min(1, math.sqrt(2) * 0.5 / (4 * 0.25) * math.sqrt(8 / 100))
    expected = 4 * 0.5 * math.sqrt(2 / 100 * (8 * math.log(5 + 10 * 2 / mesh) + math.log(1000 / 0.01)))
    assert math.isclose(gradient_radius(**given), expected)
    assert gradient_radius(**{**given, "m": 400}) < 0.6 * expected
