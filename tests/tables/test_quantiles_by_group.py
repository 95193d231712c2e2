"""Quantiles and histograms by group: losses by brute force, whole releases on small worlds, coverage, and answers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import LogRatio
from userdp.accounting import PrivacyCost, largest_rho
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism
from userdp.mechanisms.key_bounds import key_changes
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables import (
    Query,
    Schema,
    Session,
    audits,
    category,
    count_users,
    drawing,
    histogram,
    integer,
    key,
    quantile,
    quantiles,
    release,
    rows,
)
from userdp.tables import (
    noise as noise_module,
)
from userdp.tables.audits import TableAlgorithm
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.noise import Allotment, Budget, allot, gaussian_noise
from userdp.tables.quantiles import levels_of, losses_of, rank_errors, rate_of

F = Fraction
TOWNS = [("a",), ("b",)]
KNOWN = Schema(town=category(["a", "b"]), x=integer(0, 2))
UNKNOWN = Schema(town=key(str), x=integer(0, 2))


@pytest.mark.parametrize("share", [F(1, 2), F(9, 10), F(1, 3)])
@pytest.mark.parametrize("max_keys", [1, 2, 5])
def test_one_quantile_in_each_of_some_keys(share: Fraction, max_keys: int) -> None:
    """By hand: k for users who come or go; for those who are replaced k, or 2 k max(q, 1 - q) where keys differ."""
    levels, far = levels_of([share]), max(share, 1 - share)
    added = losses_of(levels, "add-remove", key_changes(None, max_keys, "add-remove"))
    assert added == (max_keys, max_keys)
    replaced = losses_of(levels, "replace", key_changes(None, max_keys, "replace"))
    assert replaced == (2 * max_keys * far, max_keys * max(1, 2 * far**2))


def test_a_user_who_leaves_a_key_for_another_costs_more_than_epsilon() -> None:
    """Eighteen users at 0 in two keys, q = 9/10, as many candidates on the left as doubles hold: 1.8 times epsilon."""
    share, epsilon, weight, many = F(9, 10), 3.0, 10, 1e30
    level = levels_of([share])[0]
    sensitivity = quantiles.sensitivity_of(level, "replace") * weight // quantiles.WEIGHT

    def masses(users: list[int]) -> np.ndarray:
        """Of a candidate on each side of 0 where the side that all candidates are on decides the sum."""
        bins = np.bincount([1 + user for user in users], minlength=3).astype(np.int64) * weight
        costs = quantiles.costs_of(bins, int(bins.sum()), share, share.denominator)
        weights = np.exp(-epsilon * costs / (2 * sensitivity))
        return np.asarray(weights / (weights * [1.0, 1.0, many]).sum())

    def mirrored(users: list[int]) -> np.ndarray:
        bins = np.bincount([1 + user for user in users], minlength=3).astype(np.int64) * weight
        costs = quantiles.costs_of(bins, int(bins.sum()), share, share.denominator)
        weights = np.exp(-epsilon * costs / (2 * sensitivity))
        return np.asarray(weights / (weights * [many, 1.0, 1.0]).sum())

    base = [0] * 18
    # The user is on the right in one key, or on the left in the other.
    losses = [
        float(np.abs(np.log(one / two)).max())
        for of in (masses, mirrored)
        for moved in (-1, 1)
        for one, two in [(of([*base, moved]), of(base))]
    ]
    worst = sorted(losses)[-2:]
    assert sum(worst) > 1.5 * epsilon
    allowed, _ = losses_of([level], "replace", key_changes(None, 1, "replace"))
    assert sum(worst) <= float(allowed) * epsilon * (1 + 1e-9)
    assert allowed == F(9, 5)


# --- whole releases on small worlds


def audited(
    query: Compiled, noise: Allotment, neighbors: Any, epsilon: Any, delta: Any, *, n_users: int, rows: int
) -> bool:
    """Whether the release keeps a promise on all small worlds."""
    schema = UNKNOWN if query.unknown else KNOWN
    algorithm = TableAlgorithm(query, noise, schema, n_users=n_users, keys=TOWNS if query.unknown else None)
    report = audit_user_level(
        algorithm,
        universe=[None, *itertools.product("ab", (0, 1, 2))],
        n_users=n_users,
        n_examples=rows,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )
    assert report.holds is not None
    return report.holds


def spoilt(noise: Allotment, factor: int) -> Allotment:
    """The same with noise of quantiles that is so many times too little."""
    changed = tuple(
        replace(
            part,
            mechanisms=tuple(
                ExponentialMechanism(epsilon=factor * rate, sensitivity=sensitivity) for rate, sensitivity in part.rates
            ),
        )
        for part in noise.selected
    )
    return replace(noise, selected=changed)


ONE = {"x": quantile("x", "1/2")}
FAR = {"x": quantile("x", "9/10")}
TWO = {"x": quantile("x", ["1/4", "1/2"])}


WIDE = [None, ("a", 0), ("a", 1), ("a", 15), ("b", 1)]
BOTH = [None, ("a", 0), ("a", 1), ("a", 4), ("b", 1), ("b", 4)]
SMALL = [None, ("a", 0), ("a", 1), ("a", 2), ("b", 1)]
# What is asked, keys of a user, the largest value, rows, epsilon, users, and how much less noise is seen: a half for
# medians; more where small worlds do not reach what the bound allows, as with the pull of many bins on one side.
SETTINGS: list[tuple[dict[str, Any], int, int, list[Any], int, int, dict[str, int]]] = [
    (ONE, 1, 15, WIDE, 2, 3, {"add-remove": 2, "replace": 2}),
    (FAR, 1, 15, WIDE, 2, 3, {"add-remove": 2, "replace": 4}),
    (ONE, 2, 4, BOTH, 4, 2, {"add-remove": 2, "replace": 2}),
    (TWO, 1, 2, SMALL, 4, 3, {"add-remove": 4, "replace": 4}),
]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("setting", SETTINGS, ids=["median", "far", "two keys", "two quantiles"])
def test_known_keys(setting: Any, neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles, "MOST_PIECES", 2)
    asked, max_keys, top, examples, epsilon, users, less = setting
    schema = Schema(town=category(["a", "b"]), x=integer(0, top))
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(**asked), schema)
    noise = allot(meant, neighbors, Budget("basic", F(epsilon), F(0)))
    assert noise.cost == PrivacyCost(F(epsilon), neighbors=neighbors)
    for each, holds in ((noise, True), (spoilt(noise, less[neighbors]), False)):
        algorithm = TableAlgorithm(meant, each, schema, n_users=users)
        report = audit_user_level(
            algorithm,
            universe=examples,
            n_users=users,
            n_examples=max_keys,
            epsilon=epsilon,
            delta=0,
            neighbors=neighbors,
        )
        assert report.holds is holds


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_key_fewer_in_the_plan_fails(neighbors: Any) -> None:
    schema = Schema(town=category(["a", "b"]), x=integer(0, 4))
    meant = compiled(Query().group_by("town", max_keys=2).agg(**ONE), schema)
    planned = replace(meant, max_keys=1, n_keys=4)
    noise = allot(planned, neighbors, Budget("basic", F(4), F(0)))
    algorithm = TableAlgorithm(meant, noise, schema, n_users=2)
    report = audit_user_level(
        algorithm, universe=BOTH, n_users=2, n_examples=2, epsilon=4, delta=0, neighbors=neighbors
    )
    assert report.holds is False


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_unknown_keys(neighbors: Any) -> None:
    """Quantiles of the keys that a threshold shows: both parts of the account, each spoilt, fail."""
    meant = compiled(Query().group_by("town", max_keys=1).agg(n=count_users(), **ONE), UNKNOWN)
    epsilon, delta = F(8), F(1, 20)
    noise = allot(meant, neighbors, Budget("basic", epsilon, delta))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    assert noise.cost == PrivacyCost(epsilon, delta, neighbors=neighbors)
    size: dict[str, int] = {"n_users": 2, "rows": 1}
    assert audited(meant, noise, neighbors, epsilon, delta, **size)
    assert not audited(meant, spoilt(noise, 8), neighbors, epsilon, delta, **size)
    arguments = {**noise.keyed.sparse._arguments, "threshold": 1}
    shown = replace(noise, keyed=replace(noise.keyed, sparse=SparseHistogram(**arguments)))
    assert not audited(meant, shown, neighbors, epsilon, delta, **size)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("max_keys", [1, 2])
@pytest.mark.parametrize("stepped", [False, True])
def test_histograms(neighbors: Any, max_keys: int, stepped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of users with a weight of 3, and of totals that are rounded before the noise."""
    for module in (quantiles, rows, noise_module, audits, release):
        monkeypatch.setattr(module, "WEIGHT", 3)
    if stepped:
        monkeypatch.setattr(noise_module, "LARGEST_LAPLACE", 1)
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(x=histogram("x", [0, 1, 2])), KNOWN)
    epsilon = LogRatio(2)
    noise = allot(meant, neighbors, Budget("basic", epsilon, F(0)))
    assert (noise.binned[0].step > 1) == stepped
    size: dict[str, int] = {"n_users": 1, "rows": 2}
    assert audited(meant, noise, neighbors, epsilon, 0, **size)
    part = noise.binned[0]
    assert isinstance(part.noise, DiscreteLaplace)
    less = DiscreteLaplace(scale=F(part.noise.scale) / (3 if stepped else 2), bounds=(-(2**40), 2**40))
    assert not audited(meant, replace(noise, binned=(replace(part, noise=less),)), neighbors, epsilon, 0, **size)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_histograms_with_gaussian_noise(neighbors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (quantiles, rows, noise_module, audits, release):
        monkeypatch.setattr(module, "WEIGHT", 3)
    meant = compiled(Query().group_by("town", max_keys=1).agg(x=histogram("x", [0, 1, 2])), KNOWN)
    epsilon, delta = F(1), F(1, 20)
    noise = gaussian_noise(meant, neighbors, largest_rho(1, delta) * F(999, 1000), F(0), (epsilon, delta))
    size: dict[str, int] = {"n_users": 1, "rows": 2}
    assert audited(meant, noise, neighbors, epsilon, delta, **size)
    part = noise.binned[0]
    assert isinstance(part.noise, DiscreteGaussian)
    less = DiscreteGaussian(sigma_squared=part.noise.sigma_squared / 8)
    assert not audited(meant, replace(noise, binned=(replace(part, noise=less),)), neighbors, epsilon, delta, **size)


def test_rounded_bins_move_by_more_than_a_rounded_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with one step of weight in each of many bins may move each rounded bin by a step."""
    epsilon = F(1, 2)
    monkeypatch.setattr(noise_module, "LARGEST_LAPLACE", 2**6)
    weight, bins = 2**8, 2**8
    drawn, step = noise_module.laplace_noise(epsilon, weight, bins)
    moved = sum(
        abs(int(noise_module.nearest(base + 1, step)) - int(noise_module.nearest(base, step)))
        for base in [step - step // 2 - 1] * bins
    )
    assert step > 1
    assert moved == bins
    assert drawn.scale >= moved / epsilon


# --- how wrong


def exact_coverage(users: int, epsilon: Fraction, share: str, level: float, values: list[int], top: int) -> Any:
    """How often the shares around the released value have one of which it is a quantile, and the mean width."""
    schema = Schema(town=category(["a"]), x=integer(0, top))
    meant = compiled(Query().group_by("town", max_keys=1).agg(n=count_users("x"), x=quantile("x", share)), schema)
    noise = allot(meant, "add-remove", Budget("basic", epsilon, F(0)))
    part = noise.selected[0]
    weights = np.bincount(values, minlength=part.bins).astype(np.int64) * quantiles.WEIGHT
    law = drawing.law_of_choices(part, weights)
    assert noise.keyed is not None
    of_count = noise.keyed.of(audits.USERS)
    reach = 1
    while float(of_count.tail(reach)) > 1e-9:
        reach *= 2
    counts = users + np.arange(-reach, reach + 1)
    of_counts = np.array([float(mass) for mass in audits.merged(of_count, 0, -reach, reach)])
    places = np.array([place for (place,) in law])
    chosen = np.array([float(mass) for mass in law.values()])
    drawn = release.Drawn(
        tuple((str(count),) for count in counts),
        {audits.USERS: counts},
        {"x": tuple((0.0,) for _ in counts)},
        {},
    )
    frame = release.Release(meant, noise, drawn, {}, "add-remove").intervals(level, backend="pandas")
    low, high = frame["x_share_low"].to_numpy(), frame["x_share_high"].to_numpy()
    upto = np.cumsum(weights) / weights.sum()
    below = upto - weights / weights.sum()
    inside = (below[places][:, None] <= high + 1e-12) & (upto[places][:, None] >= low - 1e-12)
    return float(chosen @ inside @ of_counts), float(of_counts @ (high - low))


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(("users", "epsilon", "share"), [(40, F(2), "1/2"), (200, F(1, 2), "9/10"), (400, F(4), "1/4")])
def test_shares_cover(users: int, epsilon: Fraction, share: str, level: float) -> None:
    rng = np.random.default_rng(users)
    for values in (rng.integers(0, 100, users).tolist(), [7] * users, (rng.geometric(0.1, users) % 100).tolist()):
        covered, width = exact_coverage(users, epsilon, share, level, values, 99)
        assert covered >= level - 1e-7
    if users == 400:
        assert width < 0.2


def test_errors_of_several_quantiles_hold_in_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quartiles of ties and of spread values, by the exact law of all choices."""
    monkeypatch.setattr(quantiles, "MOST_PIECES", 2)
    shares = [F(1, 4), F(1, 2)]
    levels, pieces, bins = levels_of(shares), 2, 12
    rates = [(F(2), quantiles.sensitivity_of(level, "add-remove", pieces)) for level in levels]
    mechanisms = [ExponentialMechanism(epsilon=rate, sensitivity=moved) for rate, moved in rates]
    for values in ([3] * 30 + [9] * 10, list(range(12)) * 3):
        users = len(values)
        weights = np.bincount(values, minlength=bins).astype(np.int64) * quantiles.WEIGHT
        law = quantiles.law_of(
            weights, shares, lambda level, costs: list(mechanisms[level].pmf(costs).fractions()), pieces
        )
        assert sum(law.values()) == 1
        upto = np.cumsum(weights) / quantiles.WEIGHT
        below = upto - weights / quantiles.WEIGHT
        for failure in (0.5, 0.05):
            for place, (off, piece) in enumerate(rank_errors(shares, rates, bins, pieces, failure)):
                within = off + piece * users
                wanted = float(shares[place]) * users
                missed = sum(
                    mass
                    for chosen, mass in law.items()
                    if not (below[chosen[place]] - within <= wanted <= upto[chosen[place]] + within)
                )
                assert missed <= failure


# --- answers


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_quantiles_by_group_are_right_at_a_large_epsilon(neighbors: Any, known: bool, composition: str) -> None:
    """400 users in each of two towns, at epsilon 2 or more for a choice.

    A bin that is 50 users off has a probability below 2**18 e**-50, and so has a count of 400 below the threshold.
    """
    rng = np.random.default_rng(1)
    ages = {"Ulm": np.repeat([20, 40], 200), "Bonn": np.repeat([60, 80], [100, 300])}
    frame = pd.DataFrame(
        [(who, town, age) for town, values in ages.items() for who, age in enumerate(rng.permutation(values))],
        columns=["who", "town", "age"],
    )
    frame["who"] += frame["town"].eq("Bonn") * 1000
    schema = Schema(town=category(["Bonn", "Ulm"]) if known else key(str), age=integer(0, 100))
    delta: Any = "1e-6" if not known or composition == "zcdp" else 0
    whole = 60 if composition == "basic" else 20
    people = Session(
        frame, user="who", schema=schema, epsilon=whole, delta=delta, composition=composition, neighbors=neighbors
    )
    query = (
        people.query()
        .group_by("town", max_keys=1)
        .agg(
            n=count_users("age"),
            age=quantile("age", ["1/8", "7/8"]),
            low=quantile("age", "1/8"),
            bins=histogram("age", [0, 50, 100]),
        )
    )
    found = people.release(query)
    assert found.keys == (("Bonn",), ("Ulm",))
    assert list(found.quantiles("age", "Bonn").values()) == [60, 80]
    assert list(found.quantiles("age", ("Ulm",)).values()) == [20, 40]
    table = found.to_frame("pandas")
    bins = ["bins_from", "bins_to", "bins", "bins_low", "bins_high"]
    assert table.columns.tolist() == ["town", "n", "age_0.125", "age_0.875", "low", *bins, "bounded"]
    assert table["town"].tolist() == ["Bonn"] * 3 + ["Ulm"] * 3
    assert table["low"].dropna().tolist() == [60, 20]
    counts, edges = found.histogram("bins", "Bonn")
    assert edges == (0, 50, 100)
    assert np.abs(counts - [0, 400]).max() < 20
    assert table["bins"].dropna().tolist()[:2] == counts.tolist()
    shares = found.intervals(backend="pandas").dropna(subset=["n"])
    assert (shares["low_share_low"] <= 1 / 8).all()
    assert (shares["age_0.875_share_high"] >= 7 / 8).all()
    assert "in each of" not in found.card()
    for wrong in (None, "Rom", ("Bonn", 1)):
        with pytest.raises(ValueError, match="key must be one of"):
            found.quantiles("age", wrong)


def test_costs_are_those_of_the_keys_of_a_user() -> None:
    schema = Schema(town=category(list("abcdef")), x=integer(0, 9))
    for neighbors, losses in (("add-remove", (3, 3)), ("replace", (F(27, 5), F(243, 50)))):
        people = Session(
            pd.DataFrame({"who": [1], "town": ["a"], "x": [1]}),
            user="who",
            schema=schema,
            epsilon=2,
            delta="1e-6",
            neighbors=neighbors,  # type: ignore[arg-type]
        )
        query = people.query().group_by("town", max_keys=3).agg(x=quantile("x", "9/10"))
        plan = people.plan(query, rho="1/50")
        (part,) = plan.noise.selected
        assert plan.cost.rho == losses[1] * part.epsilon**2 / 8
        assert F(199, 200) * F(1, 50) < plan.cost.rho <= F(1, 50)
        assert part.cost.epsilon == losses[0] * part.epsilon
        (rate,) = part.rates
        assert rate[0] == rate_of(part.epsilon, levels_of([F(9, 10)])[0], whole=False) < part.epsilon
        assert "within" in str(plan)


def test_work_is_refused_before_it_is_charged() -> None:
    schema = Schema(n=integer(0, 10**6), x=integer(0, 10**6))
    people = Session(pd.DataFrame({"who": [1], "n": [1], "x": [1]}), user="who", schema=schema, epsilon=1)
    query = people.query().group_by("n", keys=list(range(2**18))).agg(x=quantile("x", "1/2"))
    with pytest.raises(BudgetError, match="fewer keys, or a column with fewer steps"):
        people.release(query)
    small = people.query().group_by("n", keys=[1, 2]).agg(x=quantile("x", "1/2"))
    with pytest.raises(ValueError, match="too little for exact quantiles"):
        people.plan(small, epsilon="1e-11")
    assert people.remaining()["epsilon"] == 1
    whole = compiled(people.query().agg(x=quantile("x", ["1/4", "1/2", "3/4"])), schema)
    noise = allot(whole, "add-remove", Budget("basic", F(1), F(0)))
    with pytest.raises(BudgetError, match="ways to choose"):
        drawing.law_of_choices(noise.selected[0], np.zeros(noise.selected[0].bins, dtype=np.int64))
    with pytest.raises(BudgetError, match="outputs"):
        people.as_finite_algorithm(people.query().agg(x=quantile("x", ["1/4", "1/2"])), n_users=1, epsilon=1)


def test_nobody_in_a_key() -> None:
    """All bins are as likely: the answer is there, and says nothing."""
    schema = Schema(town=category(["a", "b"]), x=integer(0, 2))
    meant = compiled(Query().group_by("town").agg(x=quantile("x", "1/2")), schema)
    noise = allot(meant, "add-remove", Budget("basic", F(1), F(0)))
    law = drawing.law_of_choices(noise.selected[0], np.zeros(3, dtype=np.int64))
    assert [abs(float(mass) - 1 / 3) < 1e-12 for mass in law.values()] == [True] * 3
    assert math.isclose(sum(map(float, law.values())), 1)
