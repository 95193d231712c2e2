"""CDFs: exact audits, fits and shares by brute force, coverage of bands by exact laws, and what a release shows."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import LogRatio
from userdp.accounting import largest_rho
from userdp.audit import audit_user_level
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.tables import (
    Query,
    Schema,
    Session,
    audits,
    boolean,
    category,
    cdf,
    count_users,
    integer,
    key,
    number,
    quantiles,
    release,
    rows,
)
from userdp.tables import noise as noise_module
from userdp.tables.audits import TableAlgorithm, merged
from userdp.tables.compiled import compiled
from userdp.tables.curves import band, isotonic, reaches, shares_below
from userdp.tables.noise import Budget, allot, gaussian_noise

F = Fraction
SCHEMA = Schema(town=category(["a", "b"]), x=integer(0, 2))
WIDE = (-(2**40), 2**40)


# --- privacy


def holds(meant: Any, noise: Any, neighbors: Any, epsilon: Any, delta: Any) -> bool:
    """Whether a release keeps a promise on all worlds of one user and two rows."""
    report = audit_user_level(
        TableAlgorithm(meant, noise, SCHEMA, n_users=1),
        universe=[None, *itertools.product("ab", (0, 1, 2))],
        n_users=1,
        n_examples=2,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )
    assert report.holds is not None
    return report.holds


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("max_keys", [1, 2])
def test_whole_releases_keep_the_promise_and_half_of_the_noise_does_not(
    neighbors: Any, max_keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the exact law of the noisy bins that curves are made of, for users with a weight of 3."""
    for module in (quantiles, rows, noise_module, audits, release):
        monkeypatch.setattr(module, "WEIGHT", 3)
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(x=cdf("x", [0, 2, 5])), SCHEMA)
    noise = allot(meant, neighbors, Budget("basic", LogRatio(2), F(0)))
    (part,) = noise.binned
    assert holds(meant, noise, neighbors, LogRatio(2), 0)
    less = DiscreteLaplace(scale=F(part.noise.scale) / 2, bounds=WIDE)  # type: ignore[union-attr]
    assert not holds(meant, replace(noise, binned=(replace(part, noise=less),)), neighbors, LogRatio(2), 0)
    delta = F(1, 20)
    noise = gaussian_noise(meant, neighbors, largest_rho(1, delta) * F(999, 1000), F(0), (F(1), delta))
    (part,) = noise.binned
    assert holds(meant, noise, neighbors, 1, delta)
    few = DiscreteGaussian(sigma_squared=part.noise.sigma_squared / 8)  # type: ignore[union-attr]
    assert not holds(meant, replace(noise, binned=(replace(part, noise=few),)), neighbors, 1, delta)


# --- shares


def test_the_fit_is_the_nearest_rising_sequence() -> None:
    """Against the formula of means: the largest over beginnings of the least over ends, in fractions."""
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 8):
        for _ in range(40):
            values = rng.integers(-6, 7, size)
            exact = [
                max(
                    min(F(int(values[first : end + 1].sum()), end + 1 - first) for end in range(place, size))
                    for first in range(place + 1)
                )
                for place in range(size)
            ]
            found = isotonic(values.astype(float))
            assert found == pytest.approx([float(one) for one in exact], abs=1e-12)
            assert (np.diff(found) >= 0).all()


def test_shares_are_those_of_users() -> None:
    """At epsilon 4000 a bin is off by 0.01 users with a probability below e**-20; values at points count as below."""
    rng = np.random.default_rng(1)
    world = {who: rng.integers(0, 21, rng.integers(1, 6)).tolist() for who in range(300)}
    frame = pd.DataFrame(
        [(who, "ab"[who % 2], value) for who, own in world.items() for value in own], columns=["who", "town", "x"]
    )
    schema = Schema(town=category(["a", "b"]), x=integer(0, 20))
    points = [-3, 0, 4, 5, 12, 19, 20, 30]
    people = Session(frame, user="who", schema=schema, epsilon=16000)
    whole = people.release(people.query().agg(x=cdf("x", points)), epsilon=4000)
    grouped = people.release(people.query().group_by("town", max_keys=1).agg(x=cdf("x", points)), epsilon=8000)

    def truth(who: list[int], point: float) -> float:
        return float(np.mean([np.mean([value <= point for value in world[one]]) for one in who]))

    for found, who in (
        (whole.cdf("x"), list(world)),
        (grouped.cdf("x", "a"), list(world)[::2]),
        (grouped.cdf("x", ("b",)), list(world)[1::2]),
    ):
        assert list(found) == points
        assert list(found.values()) == pytest.approx([truth(who, point) for point in points], abs=1e-3)
        assert found[-3] == 0
        assert found[20] == found[30] == 1
    frame = grouped.to_frame("pandas")
    assert frame.columns.tolist() == ["town", *(f"x_{point}" for point in points), "bounded"]
    assert frame["x_5"].tolist() == [grouped.cdf("x", town)[5] for town in "ab"]
    ends = grouped.intervals(backend="pandas")
    assert (ends["x_5_low"] <= frame["x_5"]).all()
    assert (ends["x_5"] <= ends["x_5_high"]).all()
    assert (ends["x_-3_high"] == 0).all()
    assert (ends["x_30_low"] == 1).all()
    assert json.loads(grouped.to_json())["columns"]["x_12"] == frame["x_12"].tolist()
    assert "| town | x_-3 | x_0 |" in grouped.card()
    assert "users at the middle" in grouped.card()


def test_of_bools_and_of_unknown_groups() -> None:
    """Of 400 users in a group a half is below; counts are off by 200 with a probability below e**-100."""
    frame = pd.DataFrame({"who": range(800), "town": ["Ulm", "Bonn"] * 400, "yes": [True, True, False, False] * 200})
    people = Session(
        frame, user="who", schema=Schema(town=key(str), yes=boolean()), epsilon=20, delta="1e-6", composition="basic"
    )
    query = people.query().group_by("town", max_keys=1).agg(n=count_users(), yes=cdf("yes", [0]))
    found = people.release(query)
    assert found.keys == (("Bonn",), ("Ulm",))
    for town in ("Bonn", "Ulm"):
        assert found.cdf("yes", town)[0] == pytest.approx(0.5, abs=0.2)
    with pytest.raises(ValueError, match="'n' is no CDF"):
        found.cdf("n")
    with pytest.raises(ValueError, match="key must be one of"):
        found.cdf("yes", "Rom")
    with pytest.raises(ValueError, match="no column of numbers by key"):
        found.column("yes")


def test_repeated_from_random_state_and_charged() -> None:
    people = Session(
        pd.DataFrame({"who": range(50), "x": range(50)}), user="who", schema=Schema(x=integer(0, 50)), epsilon=3
    )
    query = people.query().agg(x=cdf("x", [10, 20]))
    with pytest.warns(InsecureRandomnessWarning):
        first, second = (people.release(query, epsilon=1, random_state=7) for _ in range(2))
    assert first.cdf("x") == second.cdf("x")
    assert people.plan(query, epsilon=1).cost == first.cost
    assert people.remaining()["epsilon"] == 1


# --- bands


def test_nothing_is_said_of_nobody() -> None:
    bins = np.array([[0, 0, 0], [-5, 2, 1], [3, 3, -40], [2, 1, 0]])
    shares = shares_below(bins, 4)
    assert np.isnan(shares).all()
    low, high = band(bins[:3], DiscreteLaplace(scale=F(9), bounds=WIDE), 1, 0.05, shares[:3])
    assert (low == 0).all()
    assert (high[:2] == 1).all()


def laws(noise: Any, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """All outcomes of the noise of some bins, and their probabilities, but for a part below 1e-7 of each."""
    reach = 1
    while float(noise.tail(reach)) > 1e-7:
        reach += 1
    masses = np.array([float(mass) for mass in merged(noise, 0, -reach, reach)])
    outcomes = np.array(list(itertools.product(np.arange(-reach, reach + 1), repeat=bins)))
    return outcomes, np.prod(masses[outcomes + reach], axis=1)


def covered(noise: Any, truth: list[int], step: int, level: float) -> float:
    """How often the band has the whole true curve, by the exact law, for bins that are rounded to steps."""
    outcomes, masses = laws(noise, len(truth))
    drawn = (noise_module.nearest(np.array(truth), step) + outcomes) * step
    low, high = band(drawn, noise, step, 1 - level, shares_below(drawn, 1))
    curve = np.cumsum(truth)[:-1] / sum(truth)
    inside = ((low <= curve + 1e-12) & (curve <= high + 1e-12)).all(axis=1)
    return float(masses[inside].sum())


LAPLACE = DiscreteLaplace(scale=F(1), bounds=WIDE)
NARROW = DiscreteGaussian(sigma_squared=F(4))
NORMAL = DiscreteGaussian(sigma_squared=F(17**2))


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(
    ("noise", "truth", "step"),
    [
        (LAPLACE, [5, 0, 7], 1),
        (LAPLACE, [0, 1, 0], 1),
        (LAPLACE, [100, 3, 60], 1),
        (LAPLACE, [97, 31], 8),
        (NARROW, [5, 0, 7], 1),
        (NARROW, [40, 2, 0], 1),
        (NARROW, [11, 30], 4),
        (NORMAL, [40, 0], 1),
        (NORMAL, [300, 500], 1),
    ],
)
def test_bands_have_the_whole_curve(noise: Any, truth: list[int], step: int, level: float) -> None:
    assert covered(noise, truth, step, level) >= level - 1e-6


def test_bands_are_no_wider_than_they_have_to_be() -> None:
    """One point, and noise that is far above a step: nearly the level; with half of the noise far below it."""
    for share in (0.3, 0.5, 0.9):
        truth = [round(4000 * share), 4000 - round(4000 * share)]
        assert 0.95 <= covered(NORMAL, truth, 1, 0.95) < 0.965
        outcomes, masses = laws(NORMAL, 2)
        drawn = np.array(truth) + outcomes
        half = DiscreteGaussian(sigma_squared=F(17**2, 4))
        low, high = band(drawn, half, 1, 0.05, shares_below(drawn, 1))
        inside = (low[:, 0] <= truth[0] / 4000) & (truth[0] / 4000 <= high[:, 0])
        assert masses[inside].sum() < 0.87


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("users", [30, 2000])
def test_bands_of_many_points_cover(laplace: bool, users: int) -> None:
    """4,000 draws of 17 bins of real size: fewer than 3,725 at a true 0.95 have a probability below 1e-7."""
    rng = np.random.default_rng(users + laplace)
    scale = 9 * quantiles.WEIGHT
    truth = rng.multinomial(users, rng.dirichlet(np.full(17, 0.4))) * quantiles.WEIGHT
    if laplace:
        noise: Any = DiscreteLaplace(scale=F(scale), bounds=(-(2**61), 2**61))
        off = rng.laplace(0, scale, (4000, 17))
    else:
        noise = DiscreteGaussian(sigma_squared=F(scale**2))
        off = rng.normal(0, scale, (4000, 17))
    drawn = truth + np.rint(off).astype(np.int64)
    shares = shares_below(drawn, quantiles.WEIGHT)
    curve = np.cumsum(truth)[:-1] / truth.sum()

    def share_covered(times: int) -> float:
        less = (
            DiscreteLaplace(scale=F(scale, times), bounds=(-(2**61), 2**61))
            if laplace
            else DiscreteGaussian(sigma_squared=F(scale**2, times**2))
        )
        low, high = band(drawn, less, 1, 0.05, shares)
        assert (np.diff(low, axis=1) >= 0).all()
        assert (np.diff(high, axis=1) >= 0).all()
        assert ((np.isnan(shares)) | ((low <= shares) & (shares <= high))).all()
        return float(((low <= curve + 1e-12) & (curve <= high + 1e-12)).all(axis=1).mean())

    assert isinstance(noise, (DiscreteLaplace, DiscreteGaussian))
    assert share_covered(1) >= 3725 / 4000
    assert share_covered(3) < 0.8


def test_reaches_bound_the_tails_of_laplace_noise() -> None:
    """Two bins, one point: against the exact law of (1 - F) X - F Y, at the columns of the table and between them."""
    outcomes, masses = laws(LAPLACE, 2)
    for failure in (0.2, 0.01):
        table = reaches(LAPLACE, 1, failure, off=0.0)[0]
        for share in (0.0, 0.25, 0.5, 0.501, 1.0):
            place = min(int(share * 256), 255)
            part = share * 256 - place
            reach = table[place] * (1 - part) + table[place + 1] * part
            size = np.abs((1 - share) * outcomes[:, 0] - share * outcomes[:, 1])
            assert masses[size > reach].sum() <= failure
        # A hundred bins on each side are all but normal: the bound is wider, the less so the rarer what it bounds is.
        sigma = math.sqrt(200 * (2 * math.exp(-1) / (1 - math.exp(-1)) ** 2)) / 2
        normal = {0.2: 1.2816, 0.01: 2.5758}[failure] * sigma
        wide = {0.2: 1.5, 0.01: 1.25}[failure]
        assert normal < reaches(LAPLACE, 199, failure, off=0.0)[99, 128] - 100 < wide * normal


# --- arguments


@pytest.mark.parametrize(
    ("edges", "error"),
    [
        ([], "from 1 to 1024"),
        (5, "from 1 to 1024"),
        ("12", "from 1 to 1024"),
        (range(2000), "from 1 to 1024"),
        ([2, 1], "finite and rise"),
        ([1, 1], "finite and rise"),
        ([0.1, F(1, 10)], "finite and rise"),
        ([1, math.nan], "finite"),
        ([1, math.inf], "finite"),
        ([10**400], "finite and rise"),
        (["x"], "edges='x'"),
    ],
)
def test_edges_that_are_none(edges: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        cdf("x", edges)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="edges must be finite numbers"):
        cdf("x", [True])
    schema = Schema(x=number(0, 10), town=key(str), x_1=integer(0, 1))
    for query, error in (
        (Query().agg(x=cdf("x", [-1, 10, 11])), "from 0 to below 10"),
        (Query().agg(x=cdf("town", [1])), "numbers are needed"),
        (Query().agg(x=cdf("y", [1])), "'y' is no column"),
        (Query().group_by("x_1", max_keys=1).agg(x=cdf("x", [1]), n=count_users()), "'x_1'"),
        (Query().agg(x=cdf("x", [1]), x_1_low=count_users()), "'x_1_low'"),
    ):
        with pytest.raises((TypeError, ValueError), match=error):
            compiled(query, schema)
    assert cdf("x", [1e6, 1000001]).columns("x") == ("x_1e+06", "x_1000001.0")
    assert cdf("x", [-0.0]).columns("x") == ("x_0",)
