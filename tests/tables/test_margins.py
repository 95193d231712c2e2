"""Margins of plans: numbers are that near so often, over all outcomes of noise, and printed intervals are as wide."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tables.test_intervals import KNOWN, UNKNOWN, outcomes_of, released
from userdp import tables
from userdp.accounting import largest_rho
from userdp.tables import Query, Schema, Session, category, count_users, histogram, mean, number
from userdp.tables.compiled import compiled
from userdp.tables.noise import Allotment, Budget, allot, gaussian_noise
from userdp.tables.plans import Plan

F = Fraction
ASKED = Query().group_by("town", max_keys=1).agg(n=count_users("x"), x=mean("x"))


def planned(noise_of: str, query: Query = ASKED, schema: Schema = KNOWN) -> Plan:
    meant = compiled(query, schema)
    if noise_of == "gaussian":
        noise: Allotment = gaussian_noise(meant, "add-remove", largest_rho(4, F(1, 10**6)), F(0), None)
    else:
        noise = allot(meant, "add-remove", Budget("basic", F(3), F(1, 100) if meant.unknown else F(0)))
    return Plan(meant, noise, None, "add-remove")


def near(plan: Plan, users: int, share: float, level: float) -> tuple[float, float, float]:
    """How often the mean is within its margin where it is shown, and half widths of intervals: the median, and ours."""
    keyed = plan.noise.keyed
    assert keyed is not None
    total = plan.query.answers[1].total
    assert total is not None
    assert total.value is not None
    sums = round(users * (total.low + share * (total.high - total.low)))
    off_count, mass_count = outcomes_of(keyed.of(plan.query.statistics[0]))
    off_sum, mass_sum = outcomes_of(keyed.of(total))
    shown = keyed.sparse is None or users + off_count >= keyed.sparse.threshold
    off_count, mass_count = off_count[shown].reshape(-1), mass_count[shown].reshape(-1)
    counts, totals = np.repeat(users + off_count, len(off_sum)), np.tile(sums + off_sum, len(off_count))
    weights = np.outer(mass_count, mass_sum).reshape(-1)
    release = released(plan.query, plan.noise, {"users": counts, "mean": totals})
    truth = total.value.offset + total.value.unit * (total.shift + sums / users)
    margin = plan.margin("x", level, users)
    inside = np.abs(release.column("x") - truth) <= margin + 1e-12
    if margin == 1.0:
        inside |= np.isnan(release.column("x"))  # of so few users there may be no mean
    frame = release.intervals(level, backend="pandas")
    typical = (counts == users) & (totals == sums)
    half = float((frame["x_high"] - frame["x_low"])[typical].iloc[0]) / 2 if typical.any() else np.nan
    return float(weights[inside].sum() / weights.sum()), half, margin


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(("users", "share"), [(1, 1.0), (6, 0.0), (30, 0.5), (30, 0.8), (300, 0.5), (300, 1.0)])
def test_means_are_within_their_margins(method: str, level: float, users: int, share: float) -> None:
    covered, half, margin = near(planned(method), users, share, level)
    assert covered >= level
    # The same laws: an interval around a mean in the middle is narrower, as the noise of the count moves it less.
    if share == 0.5 and margin < 0.2:
        assert margin / 2 <= half <= margin


@pytest.mark.parametrize(("users", "share"), [(3, 1.0), (8, 0.0), (15, 0.9), (100, 0.5)])
def test_means_of_groups_that_nobody_listed_are_within_their_margins(users: int, share: float) -> None:
    covered, _, _ = near(planned("joint", schema=UNKNOWN), users, share, 0.9)
    assert covered >= 0.9


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("off", range(-4, 30, 3))
def test_counts_that_are_shown_are_within_their_margins(level: float, off: int) -> None:
    plan = planned("joint", Query().group_by("town", max_keys=2).agg(n=count_users()), UNKNOWN)
    keyed = plan.noise.keyed
    assert keyed is not None
    assert keyed.sparse is not None
    users = max(keyed.sparse.threshold + off, 1)
    outcomes, masses = outcomes_of(keyed.sparse.noise)
    shown = users + outcomes >= keyed.sparse.threshold
    margin = plan.margin("n", level, users)

    def covered(width: float) -> float:
        return float(masses[shown & (np.abs(outcomes) <= width)].sum() / masses[shown].sum())

    assert covered(margin) >= level - 1e-9
    assert covered(margin - 1) < level + 1e-9


def test_releases_are_within_their_margins() -> None:
    """And within their intervals: of 300 numbers of a kind 48 or more misses would have a probability below 1e-10."""
    sizes = [20, 60, 200]
    towns = [town for town, size in enumerate(sizes) for _ in range(size)]
    pay = [(place * 37 % 101) / 100 for place in range(len(towns))]
    schema = Schema(town=category(range(3)), pay=number(0, 1))
    rows = {"who": list(range(len(towns))), "town": towns, "pay": pay}
    people = Session(rows, user="who", schema=schema, epsilon=10_000)
    asked = people.query().group_by("town", max_keys=1)
    query = asked.agg(n=count_users("pay"), pay=mean("pay"), all=tables.sum("pay", max_total=1))
    plan = people.plan(query, epsilon=1)
    means = np.array([np.mean([one for one, at in zip(pay, towns, strict=True) if at == town]) for town in range(3)])
    truth = {"n": np.array(sizes), "pay": means, "all": means * sizes}
    margins = {name: [plan.margin(name, 0.95, size) for size in sizes] for name in truth}
    hits, printed = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for _ in range(100):
        release = people.release(query, epsilon=1)
        frame = release.intervals(0.95, backend="pandas")
        for name, values in truth.items():
            hits[name] += int((np.abs(release.column(name) - values) <= margins[name]).sum())
            printed[name] += int(((frame[f"{name}_low"] <= values) & (values <= frame[f"{name}_high"])).sum())
    assert all(found > 252 for found in (*hits.values(), *printed.values())), (hits, printed)


def test_plans_say_of_which_size_of_group() -> None:
    schema = Schema(town=category(range(9)), pay=number(0, 100))
    people = Session({"who": [1], "town": [1], "pay": [1]}, user="who", schema=schema, epsilon=1, n_users=900)
    query = people.query().group_by("town", max_keys=1).agg(n=count_users("pay"), pay=mean("pay"))
    plan = people.plan(query)
    for size in (10, 100):
        line = next(one for one in str(plan).splitlines() if f"in a group of {size} users" in one)
        assert f"{plan.margin('pay', 0.95, size):.3g}"[:3] in line
    assert plan.margin("pay", 0.95, 10) > plan.margin("pay", 0.95, 100) > plan.margin("pay", 0.5, 100)
    assert plan.margin("pay", 0.95, 1) == pytest.approx(100)


def test_margins_of_other_numbers() -> None:
    people = Session({"who": [1], "x": [1]}, user="who", schema=Schema(x=number(0, 4)), epsilon=1)
    query = people.query().agg(n=count_users("x"), x=mean("x"), h=histogram("x", [0, 4]), q=tables.quantile("x"))
    plan = people.plan(query)
    release = people.release(query)
    bins = release.to_frame("pandas").dropna(subset=["h"])
    assert plan.margin("h") == pytest.approx(float(bins["h_high"].iloc[0] - bins["h"].iloc[0]))
    frame = release.intervals(0.8, backend="pandas")
    assert plan.margin("n", 0.8) == frame["n_high"][0] - frame["n"][0]
    with pytest.raises(ValueError, match="needs n_users"):
        plan.margin("x")
    for wrong in ("q", "y"):
        with pytest.raises(ValueError, match="no count, sum or mean"):
            plan.margin(wrong)
    wrongs: list[Any] = [0, 1, 2]
    for level in wrongs:
        with pytest.raises(ValueError, match="level"):
            plan.margin("n", level)
