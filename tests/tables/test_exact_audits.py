"""Whole releases on small worlds: what is drawn is within the promise over all neighbors, and not with less noise."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from userdp import LogRatio, tables
from userdp.accounting import largest_mu2, largest_rho
from userdp.audit import audit_user_level
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables import Query, Schema, Session, category, count_rows, count_users, integer, key, mean, number
from userdp.tables import noise as noise_module
from userdp.tables.audits import TableAlgorithm
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.noise import Allotment, Budget, allot, gaussian_noise

F = Fraction

KNOWN = Schema(town=category(["a", "b"]), x=number(0, 1, steps=2), n=integer(-1, 1))
UNKNOWN = Schema(town=key(str), x=number(0, 1, steps=2), n=integer(-1, 1))
COUNTS = {"people": count_users()}
ASKED: dict[str, dict[str, Any]] = {
    "users": COUNTS,
    "rows": {"rows": count_rows(2)},
    "users and rows": {"people": count_users(), "rows": count_rows(2)},
    "mean": {"x": mean("x")},
    "sum": {"total": tables.sum("n", max_total=1)},
}


def budget_of(epsilon: Any, delta: Any) -> Budget:
    return Budget("basic", epsilon, F(delta))


def audited(
    query: Compiled, noise: Allotment, neighbors: Any, epsilon: Any, delta: Any, *, n_users: int, rows: int
) -> bool:
    """Whether the release keeps a promise on all small worlds."""
    schema = UNKNOWN if query.unknown else KNOWN
    towns = [("a",), ("b",)]
    algorithm = TableAlgorithm(query, noise, schema, n_users=n_users, keys=towns if query.unknown else None)
    values = {"town": ("a", "b"), "x": (0.0, 0.5, 1.0), "n": (-1, 0, 1)}
    examples = [None, *itertools.product(*(values[name] for name in algorithm.columns))]
    report = audit_user_level(
        algorithm,
        universe=examples,
        n_users=n_users,
        n_examples=rows,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )
    assert report.holds is not None
    return report.holds


def with_noise(noise: Allotment, change: Callable[[Any], Any]) -> Allotment:
    """The same with other noise."""
    assert noise.keyed is not None
    changed = tuple((statistic, change(each)) for statistic, each in noise.keyed.noise)
    correlated = copy.copy(noise.keyed.correlated)
    if correlated is not None:
        correlated._noise, correlated._users_noise = map(change, correlated.noises)
    return replace(noise, keyed=replace(noise.keyed, noise=changed, correlated=correlated))


def halved(noise: Any) -> Any:
    """Half of the noise."""
    if isinstance(noise, DiscreteGaussian):
        return DiscreteGaussian(sigma_squared=noise.sigma_squared / 4)
    return DiscreteLaplace(scale=F(noise.scale) / 2, bounds=(-(2**61), 2**61))


SETTINGS = [
    (asked, max_keys, neighbors) for asked in ASKED for max_keys in (1, 2) for neighbors in ("add-remove", "replace")
]


@pytest.mark.parametrize(("asked", "max_keys", "neighbors"), SETTINGS)
def test_known_keys_withlaplace_noise(asked: str, max_keys: int, neighbors: Any) -> None:
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(**ASKED[asked]), KNOWN, largest=4)
    epsilon = LogRatio(2)
    noise = allot(meant, neighbors, budget_of(epsilon, 0))
    size: dict[str, int] = {"n_users": 2 if asked in ("users", "rows") else 1, "rows": 2}
    assert audited(meant, noise, neighbors, epsilon, 0, **size)
    assert not audited(meant, with_noise(noise, halved), neighbors, epsilon, 0, **size)


STEPPED: dict[str, dict[str, Any]] = {
    "rows": {"rows": count_rows(2)},
    "sum": {"total": tables.sum("n", max_total=2)},
    "two sums": {"a": tables.sum("n", max_total=2), "b": tables.sum("n", max_total=(-2, -1))},
    "weighted": {"x": mean("x", weighting="rows", max_rows=2)},
}


@pytest.mark.parametrize("asked", STEPPED)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("stepped", [False, True])
def test_totals_in_steps(asked: str, neighbors: Any, stepped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals that are rounded before wide noise, with ranges of both signs, of one, and weighted means."""
    if stepped:
        monkeypatch.setattr(noise_module, "LARGEST_LAPLACE", 1)
    meant = compiled(Query().group_by("town", max_keys=1).agg(**STEPPED[asked]), KNOWN, largest=4)
    epsilon = LogRatio(2)
    noise = allot(meant, neighbors, budget_of(epsilon, 0))
    assert noise.keyed is not None
    assert (max(noise.keyed.steps) > 1) == stepped
    assert audited(meant, noise, neighbors, epsilon, 0, n_users=1, rows=2)
    # Ranges that are no multiples of a step get somewhat more noise than they need.
    less = with_noise(noise, lambda each: halved(halved(each)) if stepped else halved(each))
    assert not audited(meant, less, neighbors, epsilon, 0, n_users=1, rows=2)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("planned", [1, 2])
def test_one_key_fewer_in_the_plan_fails(neighbors: Any, planned: int) -> None:
    """Noise for k - 1 keys, where users count in k; with four keys, so that a user may leave k and come to k."""
    schema = Schema(town=category(["a", "b", "c", "d"]))
    meant = compiled(Query().group_by("town", max_keys=2).agg(**COUNTS), schema)
    noise = allot(replace(meant, max_keys=planned), neighbors, budget_of(LogRatio(2), 0))
    algorithm = TableAlgorithm(meant, noise, schema, n_users=1)
    report = audit_user_level(
        algorithm,
        universe=[None, ("a",), ("b",), ("c",), ("d",)],
        n_users=1,
        n_examples=2,
        epsilon=LogRatio(2),
        delta=0,
        neighbors=neighbors,
    )
    assert report.holds == (planned == 2)


@pytest.mark.parametrize(
    ("asked", "max_keys"), [("users", 1), ("users", 2), ("users and rows", 1), ("users and rows", 2), ("sum", 1)]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_unknown_keys_with_one_joint_account(asked: str, max_keys: int, neighbors: Any) -> None:
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(**ASKED[asked]), UNKNOWN)
    epsilon, delta = F(1), F(1, 5)
    noise = allot(meant, neighbors, budget_of(epsilon, delta))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    size: dict[str, int] = {"n_users": 2 if len(meant.statistics) > 1 else 3, "rows": max_keys}
    assert audited(meant, noise, neighbors, epsilon, delta, **size)
    if (asked, neighbors) == ("users", "add-remove"):
        # Elsewhere worlds of two users do not reach what half of the noise would show.
        assert not audited(meant, with_noise(noise, halved), neighbors, epsilon, delta, **size)
    # A threshold of 1: every key that only one user has is shown with a probability above a half.
    lower = replace(noise.keyed, sparse=low_threshold(noise.keyed.sparse))
    assert not audited(meant, replace(noise, keyed=lower), neighbors, epsilon, delta, **size)


@pytest.mark.parametrize(("asked", "max_keys"), [("users", 1), ("users", 2), ("sum", 1)])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_keys_that_are_known_in_part(asked: str, max_keys: int, neighbors: Any) -> None:
    """Town "a" is listed and always shown, "b" only from a threshold on; half of the noise, or no threshold, fails."""
    query = Query().group_by("town", max_keys=max_keys, keys=["a"], others=True).agg(**ASKED[asked])
    meant = compiled(query, UNKNOWN)
    epsilon, delta = F(1), F(1, 5)
    noise = allot(meant, neighbors, budget_of(epsilon, delta))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    size: dict[str, int] = {"n_users": 2 if asked == "users" else 1, "rows": max_keys}
    assert audited(meant, noise, neighbors, epsilon, delta, **size)
    if asked == "users":
        assert not audited(
            meant, with_noise(noise, lambda each: halved(halved(each))), neighbors, epsilon, delta, **size
        )
    lower = replace(noise.keyed, sparse=low_threshold(noise.keyed.sparse))
    assert not audited(meant, replace(noise, keyed=lower), neighbors, epsilon, delta, **size)


@pytest.mark.parametrize("asked", ["sum", "two sums", "weighted"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_totals_of_unknown_keys_in_steps(asked: str, neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sums are rounded before wide noise, too; where every group is shown, less noise of them is not enough."""
    monkeypatch.setattr(noise_module, "LARGEST_LAPLACE", 1)
    meant = compiled(Query().group_by("town", max_keys=1).agg(**STEPPED[asked]), UNKNOWN, largest=4)
    epsilon, delta = LogRatio(2), F(1, 5)
    noise = allot(meant, neighbors, budget_of(epsilon, delta))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    assert noise.keyed.steps[0] == 1
    assert max(noise.keyed.steps) > 1
    assert audited(meant, noise, neighbors, epsilon, delta, n_users=1, rows=2)
    if asked != "sum":
        return
    shown = low_threshold(noise.keyed.sparse)
    wide, claimed = replace(noise.keyed, sparse=shown), shown.delta(epsilon)
    assert audited(meant, replace(noise, keyed=wide), neighbors, epsilon, claimed, n_users=2, rows=1)
    users, *others = noise.keyed.noise
    less = replace(wide, noise=(users, *((one, halved(halved(halved(each)))) for one, each in others)))
    assert not audited(meant, replace(noise, keyed=less), neighbors, epsilon, claimed, n_users=2, rows=1)


def low_threshold(sparse: SparseHistogram) -> SparseHistogram:
    """The same with the threshold 1."""
    arguments = {**sparse._arguments, "threshold": 1}
    return SparseHistogram(**arguments)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("asked", ["users", "mean", "sum"])
@pytest.mark.parametrize("smoothed", [False, True])
def test_known_keys_with_gaussian_noise(asked: str, neighbors: Any, smoothed: bool) -> None:
    """Noisy numbers merged beyond what they can be: a function of the release, so the promise must hold for it."""
    meant = compiled(Query().group_by("town", max_keys=2).agg(**ASKED[asked]), KNOWN, largest=4)
    half = largest_mu2(1, F(1, 20)) / 2 if smoothed else largest_rho(1, F(1, 20))
    noise = gaussian_noise(meant, neighbors, half * F(999, 1000), F(0), (F(1), F(1, 20)), smoothed=smoothed)
    size: dict[str, int] = {"n_users": 2 if asked == "users" else 1, "rows": 2}
    assert audited(meant, noise, neighbors, 1, F(1, 20), **size)
    weak = with_noise(noise, lambda each: DiscreteGaussian(sigma_squared=each.sigma_squared / 16))
    assert not audited(meant, weak, neighbors, 1, F(1, 20), **size)


@pytest.mark.parametrize("smoothed", [False, True])
@pytest.mark.parametrize(("towns", "n_users", "rows"), [("abd", 2, 2), ("abcd", 1, 3)])
def test_counts_with_noise_in_common(towns: str, n_users: int, rows: int, smoothed: bool) -> None:
    """Users with all listed towns, with some, with "d" alone, which is not listed, and without rows."""
    schema = Schema(town=category(["a", "b", "c", "d"]))
    meant = compiled(Query().group_by("town", keys=list(towns[:-1])).agg(**COUNTS), schema)
    epsilon, delta = F(1), F(1, 50)
    half = largest_mu2(epsilon, delta) / 2 if smoothed else largest_rho(epsilon, delta)
    noise = gaussian_noise(meant, "add-remove", half * F(999, 1000), F(0), (epsilon, delta), smoothed=smoothed)
    assert noise.keyed is not None
    assert noise.keyed.correlated is not None
    assert noise.keyed.correlated.theta == F(1, 2)
    for each, expected in ((noise, True), (with_noise(noise, halved), False)):
        report = audit_user_level(
            TableAlgorithm(meant, each, schema, n_users=n_users),
            universe=[None, *((town,) for town in towns)],
            n_users=n_users,
            n_examples=rows,
            epsilon=epsilon,
            delta=delta,
            neighbors="add-remove",
        )
        assert report.holds is expected


def test_counts_with_noise_in_common_are_the_counts_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of users that is taken off is added again; users of no listed key and without rows do not disturb."""
    monkeypatch.setattr(DiscreteGaussian, "_release_many", lambda self, values, source: values)
    frame = pd.DataFrame({"who": [1, 1, 2, 3, 4, 5, None], "town": ["a", "b", "a", "d", None, "b", "a"]})
    schema = Schema(town=category(["a", "b", "c", "d"]))
    session = Session(frame.astype({"who": "Int64"}), user="who", schema=schema, epsilon=1, delta="1e-5")
    release = session.release(session.query().group_by("town", keys=["a", "b", "c"]).agg(**COUNTS))
    assert release._noise.keyed is not None
    assert release._noise.keyed.correlated is not None
    assert release.column("people").tolist() == [2, 2, 0]


def test_the_session_gives_the_algorithm() -> None:
    frame = pd.DataFrame({"who": [1], "town": ["a"], "x": [0.5], "n": [1]})
    session = Session(frame, user="who", schema=KNOWN, epsilon=LogRatio(3))
    query = session.query().group_by("town", max_keys=1).agg(people=count_users())
    algorithm = session.as_finite_algorithm(query, n_users=2)
    report = audit_user_level(
        algorithm,
        universe=[None, ("a",), ("b",)],
        n_users=2,
        n_examples=2,
        epsilon=LogRatio(3),
        delta=0,
        neighbors="add-remove",
    )
    assert report.holds
    assert session.remaining()["epsilon"] == LogRatio(3)
