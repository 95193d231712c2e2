"""Intervals cover as often as they say: summed over all outcomes of the noise, nothing is simulated."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.accounting import largest_rho
from userdp.mechanisms import DiscreteGaussian
from userdp.tables import Query, Schema, category, count_users, key, mean, number
from userdp.tables.audits import merged
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.noise import Allotment, Budget, allot, gaussian_noise
from userdp.tables.ratios import ratio_interval
from userdp.tables.release import Drawn, Release

F = Fraction
STEPS = 2**4
NEGLIGIBLE = 1e-7


def outcomes_of(noise: Any) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of noise and their exact probabilities, but for a negligible part."""
    reach = 1
    while float(noise.tail(reach)) > NEGLIGIBLE:
        reach *= 2
    masses = np.array([float(mass) for mass in merged(noise, 0, -reach, reach)])
    kept = masses > 1e-12
    return np.arange(-reach, reach + 1)[kept], masses[kept]


def released(query: Compiled, noise: Allotment, totals: dict[str, Any]) -> Release:
    """A release of these noisy numbers, with a row for each of them."""
    numbers = {statistic: totals[statistic.kind] for statistic in query.statistics}
    keys = tuple((place,) for place in range(len(totals["users"])))
    return Release(query, noise, Drawn(keys, numbers, {}, {}), {}, "add-remove")


def coverage(query: Compiled, noise: Allotment, users: int, sums: int, level: float) -> float:
    """How often the interval of the mean has the true one, among releases that show the key."""
    assert noise.keyed is not None
    (first, of_count), (second, of_sum) = noise.keyed.noise
    assert (first.kind, second.kind) == ("users", "mean")
    off_count, mass_count = outcomes_of(of_count)
    off_sum, mass_sum = outcomes_of(of_sum)
    shown = noise.keyed.sparse is None or users + off_count >= noise.keyed.sparse.threshold
    off_count, mass_count = off_count[shown].reshape(-1), mass_count[shown].reshape(-1)
    counts = np.repeat(users + off_count, len(off_sum))
    totals = np.tile(sums + off_sum, len(off_count))
    weights = np.outer(mass_count, mass_sum).reshape(-1)
    release = released(query, noise, {"users": counts, "mean": totals})
    frame = release.intervals(level, backend="pandas")
    value = second.value
    assert value is not None
    truth = value.offset + value.unit * (second.shift + sums / users)
    inside = (frame["x_low"] <= truth + 1e-12) & (truth - 1e-12 <= frame["x_high"])
    return float(weights[inside.to_numpy()].sum() / weights.sum())


KNOWN = Schema(town=category(["a"]), x=number(0, 1, steps=STEPS))
UNKNOWN = Schema(town=key(str), x=number(0, 1, steps=STEPS))
ASKED = Query().group_by("town", max_keys=1).agg(n=count_users("x"), x=mean("x"))


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize(("users", "share"), [(1, 1.0), (5, 0.0), (20, 0.25), (20, 1.0)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_means_cover(method: str, users: int, share: float, level: float) -> None:
    meant = compiled(ASKED, KNOWN)
    if method == "laplace":
        noise = allot(meant, "add-remove", Budget("basic", F(3), F(0)))
    else:
        noise = gaussian_noise(meant, "add-remove", largest_rho(4, F(1, 10**6)), F(0), None)
    sums = round(users * (share * STEPS - STEPS // 2))
    covered = coverage(meant, noise, users, sums, level)
    assert covered >= level


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_ratios_are_no_wider_than_they_have_to_be(level: float) -> None:
    """Without the step on both sides that is for rounding."""
    meant = compiled(ASKED, KNOWN)
    noise = allot(meant, "add-remove", Budget("basic", F(3), F(0))).keyed
    assert noise is not None
    (_, of_count), (statistic, of_sum) = noise.noise
    off_count, mass_count = outcomes_of(of_count)
    off_sum, mass_sum = outcomes_of(of_sum)
    counts = np.repeat(50.0 + off_count, len(off_sum))
    totals = np.tile(200.0 + off_sum, len(off_count))
    weights = np.outer(mass_count, mass_sum).reshape(-1)
    low, high = ratio_interval(totals, counts, of_sum, of_count, 1 - level, (statistic.low, statistic.high))
    covered = float(weights[(low <= 4 + 1e-9) & (high >= 4 - 1e-9)].sum())
    assert level <= covered < level + 0.25 * (1 - level) + 0.05


@pytest.mark.parametrize(("users", "share"), [(2, 1.0), (6, 0.0), (15, 0.9), (60, 0.25)])
def test_intervals_of_means_cover_where_keys_are_unknown(users: int, share: float) -> None:
    meant = compiled(ASKED, UNKNOWN)
    noise = allot(meant, "add-remove", Budget("basic", F(3), F(1, 100)))
    sums = round(users * (share * STEPS - STEPS // 2))
    assert coverage(meant, noise, users, sums, 0.9) >= 0.9


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
@pytest.mark.parametrize("off", range(-5, 6))
def test_intervals_of_shown_counts_cover_near_the_threshold(epsilon: Fraction, off: int) -> None:
    meant = compiled(Query().group_by("town", max_keys=2).agg(n=count_users()), UNKNOWN)
    noise = allot(meant, "add-remove", Budget("basic", epsilon, F(1, 1000)))
    assert noise.keyed is not None
    sparse = noise.keyed.sparse
    assert sparse is not None
    users = max(sparse.threshold + off, 1)
    off_count, masses = outcomes_of(sparse.noise)
    shown = users + off_count >= sparse.threshold
    counts, masses = users + off_count[shown], masses[shown]
    frame = released(meant, noise, {"users": counts}).intervals(0.95, backend="pandas")
    inside = ((frame["n_low"] <= users) & (users <= frame["n_high"])).to_numpy()
    covered = masses[inside].sum() / masses.sum()
    assert covered >= 0.95


@pytest.mark.parametrize("gaussian", [False, True])
def test_intervals_of_counts_cover(gaussian: bool) -> None:
    meant = compiled(Query().agg(n=count_users()), KNOWN)
    for epsilon in (F(1, 10), F(1), F(5)):
        if gaussian:
            noise = gaussian_noise(meant, "add-remove", epsilon**2 / 20, F(0), None)
            assert isinstance(noise.keyed.noise[0][1], DiscreteGaussian)  # type: ignore[union-attr]
        else:
            noise = allot(meant, "add-remove", Budget("basic", epsilon, F(0)))
        assert noise.keyed is not None
        off, masses = outcomes_of(noise.keyed.noise[0][1])
        frame = released(meant, noise, {"users": 100 + off}).intervals(0.95, backend="pandas")
        inside = ((frame["n_low"] <= 100) & (frame["n_high"] >= 100)).to_numpy()
        covered = masses[inside].sum()
        assert covered >= 0.95
        # One step less would not do.
        width = int(off[inside].max())
        assert masses[np.abs(off) < width - (1 if gaussian else 0)].sum() < 0.95


@pytest.mark.parametrize(("n_keys", "max_keys"), [(2, 2), (10, 10), (12, 10)])
@pytest.mark.parametrize("epsilon", [F(1, 5), F(1), F(6)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_counts_with_noise_in_common_cover(
    n_keys: int, max_keys: int, epsilon: Fraction, level: float
) -> None:
    """Summed over all outcomes of both noises, by their exact masses."""
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(n=count_users()), of_towns(n_keys))
    noise = gaussian_noise(meant, "add-remove", largest_rho(epsilon, F(1, 10**6)), F(0), None)
    assert noise.keyed is not None
    counts = noise.keyed.correlated
    assert counts is not None
    p, q = counts.theta.numerator, counts.theta.denominator
    (first, of_first), (second, of_second) = map(outcomes_of, counts.noises)
    # What a count is off by, in steps of 1 / q, and the count as it is released.
    off = np.arange(first[0] + p * second[0], first[-1] + p * second[-1] + 1)
    masses = np.zeros(len(off))
    for outcome, mass in zip(second, of_second, strict=True):
        masses[first + p * outcome - off[0]] += mass * of_first
    users = 1001
    shown = np.rint(users + off / q).astype(np.int64)
    frame = released(meant, noise, {"users": shown}).intervals(level, backend="pandas")
    inside = ((frame["n_low"] <= users) & (frame["n_high"] >= users)).to_numpy()
    covered = masses[inside].sum() / masses.sum()
    assert covered >= level - 1e-6
    # Two users less would not do: one is for ties, and for wide noise as good as normal.
    width = int(np.abs(shown[inside] - users).max())
    assert masses[np.abs(shown - users) < width - 1].sum() / masses.sum() < level
    predicted = float(np.sqrt((masses * (shown - users) ** 2).sum() / masses.sum()))
    assert noise.keyed.spread(meant.statistics[0]) == pytest.approx(predicted, rel=0.02)


def of_towns(count: int) -> Schema:
    """A schema with so many towns."""
    return Schema(town=category(range(count)))


@pytest.mark.parametrize("users", [0, 3, 40])
def test_intervals_of_listed_counts_beside_unknown_ones_cover(users: int) -> None:
    """They are shown whatever their noise is, so theirs are not conditional."""
    query = Query().group_by("town", keys=["a"], others=True, max_keys=2).agg(n=count_users())
    meant = compiled(query, UNKNOWN)
    noise = allot(meant, "add-remove", Budget("basic", F(1), F(1, 1000)))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    threshold = noise.keyed.sparse.threshold
    off, masses = outcomes_of(noise.keyed.sparse.noise)
    covered = 0.0
    for outcome, mass in zip(off, masses, strict=True):
        numbers = np.array([users + outcome, threshold + 5])
        frame = released(meant, noise, {"users": numbers}).intervals(0.95, backend="pandas")
        covered += mass * float(frame["n_low"][0] <= users <= frame["n_high"][0])
        assert (frame["n_low"][1], frame["n_high"][1]) == noise.keyed.sparse.interval(threshold + 5)
    assert 0.95 <= covered / masses.sum() < 0.99
