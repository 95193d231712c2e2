"""Quantiles: costs and sensitivities by brute force, whole releases of several shares on small worlds, and answers."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp.mechanisms import ExponentialMechanism
from userdp.tables import Query, Schema, Session, category, histogram, integer, quantile, quantiles
from userdp.tables.quantiles import WEIGHT, choose, costs_of, levels_of, sensitivity_of, unit_of

F = Fraction
CASES = Path(__file__).parents[1] / "data" / "table_cases.json"


def weights_of(user: tuple[int, ...], bins: int, weight: int) -> np.ndarray:
    """A user's weight by bins: row i of m in order has floor(W (i + 1) / m) - floor(W i / m)."""
    found = np.zeros(bins, dtype=np.int64)
    for i, row in enumerate(sorted(user)):
        found[row] += weight * (i + 1) // len(user) - weight * i // len(user)
    return found


def test_published_costs() -> None:
    """Cases of an independent derivation, with values as bins."""
    cases = [case for case in json.loads(CASES.read_text()) if case["kind"] == "quantile_cost"]
    assert len(cases) == 3
    for case in cases:
        given = case["given"]
        values = sorted({row for user in given["users"] for row in user} | {given["x"]})
        users = [tuple(values.index(row) for row in user) for user in given["users"]]
        whole = sum(weights_of(user, len(values), given["W"]) for user in users)
        share = F(given["q"])
        costs = costs_of(whole, len(users) * given["W"], share, share.denominator)
        assert costs[values.index(given["x"])] == case["want"]


def test_published_sensitivities() -> None:
    cases = [case for case in json.loads(CASES.read_text()) if case["kind"] == "quantile_sensitivity"]
    assert len(cases) == 2
    for case in cases:
        given = case["given"]
        level = levels_of([F(given["q"])])[0]
        # In weights of 2**20, and of W there.
        assert F(sensitivity_of(level, given["neighbours"]), WEIGHT) * given["W"] == case["want"]["brute"]


@pytest.mark.parametrize("share", [F(1, 2), F(1, 4), F(9, 10), F(2, 3)])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_user_moves_a_cost_by_its_sensitivity(share: Fraction, neighbors: Any) -> None:
    """All worlds of two users with up to two rows in three bins, with a weight of 12 in place of 2**20."""
    weight, bins = 12, 3
    users = [user for m in range(1, 3) for user in itertools.combinations_with_replacement(range(bins), m)]
    level = levels_of([share])[0]

    def costs(world: tuple[Any, ...]) -> np.ndarray:
        whole = sum((weights_of(user, bins, weight) for user in world), np.zeros(bins, dtype=np.int64))
        return costs_of(whole, len(world) * weight, share, unit_of(level)).astype(object)

    worst = 0
    for first in users:
        for second in users:
            changed = [(first,)] if neighbors == "add-remove" else [(first, other) for other in users]
            for world in changed:
                worst = max(worst, int(abs(costs((first, second)) - costs(world)).max()))
    assert worst == sensitivity_of(level, neighbors) * weight // WEIGHT


def test_levels_halve() -> None:
    shares = [F(j, 8) for j in range(1, 8)]
    levels = levels_of(shares)
    assert [[node.place for node in level] for level in levels] == [[3], [1, 5], [0, 2, 4, 6]]
    assert all(node.share == F(1, 2) for level in levels for node in level)
    for neighbors, users in (("add-remove", 1), ("replace", 2)):
        assert all(sensitivity_of(level, neighbors) == users * WEIGHT for level in levels[1:])  # type: ignore[arg-type]
    for count in range(1, 40):
        assert len(levels_of([F(j, count + 1) for j in range(1, count + 1)])) == math.ceil(math.log2(count + 1))
    odd = levels_of([F(1, 10), F(9, 10)])
    assert sorted(node.place for level in odd for node in level) == [0, 1]


def laws(
    world: tuple[Any, ...], shares: list[Fraction], levels: Any, epsilon: Fraction, neighbors: Any, pieces: int
) -> Any:
    """The exact distribution of all chosen bins, level by level; weights of 12."""
    weight, bins = 12, 5 - pieces
    whole = sum((weights_of(user, bins, weight) for user in world), np.zeros(bins, dtype=np.int64))
    found: dict[tuple[int, ...], float] = {}

    def follow(script: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
        """All continuations of a script of choices."""
        asked: list[tuple[int, Any]] = []

        def draw(level: int, costs: Any) -> int:
            if len(asked) < len(script):
                asked.append((level, costs))
                return script[len(asked) - 1]
            raise StopAsking(level, costs)

        try:
            chosen = choose(whole, shares, draw, pieces)
            yield tuple(chosen), 1.0
        except StopAsking as question:
            mechanism = ExponentialMechanism(
                epsilon=epsilon,
                sensitivity=sensitivity_of(levels[question.level], neighbors, pieces) * weight // WEIGHT,
            )
            for place, mass in enumerate(mechanism.pmf(question.costs).fractions()):
                for outcome, rest in follow((*script, place)):
                    yield outcome, float(mass) * rest

    for outcome, mass in follow(()):
        found[outcome] = found.get(outcome, 0.0) + mass
    return found


class StopAsking(Exception):
    """The next choice."""

    def __init__(self, level: int, costs: Any) -> None:
        super().__init__()
        self.level, self.costs = level, costs


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("shares", [["1/4", "1/2", "3/4"], ["1/10", "1/2"], ["1/3", "2/3"]])
@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.parametrize("pieces", [1, 2])
def test_levels_together_cost_epsilon_each(
    neighbors: Any, shares: list[str], spoilt: bool, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All worlds of two users with up to two rows in four bins, or three in halves; a quarter of the noise fails."""
    monkeypatch.setattr(quantiles, "WEIGHT", 12)
    exact = [F(share) for share in shares]
    levels, epsilon = levels_of(exact), F(4)
    users: list[Any] = [
        user for m in range(3) for user in itertools.combinations_with_replacement(range(5 - pieces), m)
    ]
    if spoilt:
        plain = quantiles.sensitivity_of
        monkeypatch.setitem(globals(), "sensitivity_of", lambda *given: plain(*given) // 4)
    monkeypatch.setitem(globals(), "WEIGHT", 12)
    second = (1, 2)
    # A user without rows is in no weight; who is there is public for "replace".
    worlds = {
        user: laws((user, second) if user else (second,), exact, levels, epsilon, neighbors, pieces) for user in users
    }
    worst = 0.0
    for first, other in itertools.permutations(users, 2):
        if neighbors == "replace" or not (first and other):
            one, two = worlds[first], worlds[other]
            worst = max(worst, *(math.log(mass / two[outcome]) for outcome, mass in one.items()))
    allowed = len(levels) * float(epsilon)
    assert (worst <= allowed * (1 + 1e-9)) == (not spoilt)
    assert worst > 0.25 * allowed


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_quantiles_of_equal_values(composition: str) -> None:
    """Nine tenths of the users have the value 3: all quartiles are 3, whichever is chosen first.

    A wrong bin is 90 users or more off what is asked, so at epsilon 10 or more for each level a choice misses with a
    probability below 2**15 exp(-10 * 90 / 2) < 1e-190.
    """
    frame = pd.DataFrame({"who": range(2000), "age": [3] * 1800 + [60] * 200})
    delta = 0 if composition == "basic" else "1e-6"
    people = Session(
        frame, user="who", schema=Schema(age=integer(0, 100)), epsilon=200, delta=delta, composition=composition
    )
    found = people.release(Query().agg(age=quantile("age", ["1/4", "1/2", "3/4", "99/100"])), epsilon=100)
    assert list(found.quantiles("age").values()) == [3, 3, 3, 60]


def test_shares_and_keys_that_are_arrays() -> None:
    """Arrays of shares are read as lists are; what is no share, no key and no name is refused by what it is for."""
    assert quantile("v", np.array([0.25, 0.5])) == quantile("v", ["1/4", "1/2"])
    assert quantile("v", np.array(["1/4", "1/2"])) == quantile("v", ["1/4", "1/2"])
    assert quantile("v", np.array(0.5)) == quantile("v", 0.5)
    for shares in (np.array([[0.5]]), pd.Series([0.5]), {0.5}, range(1), [[0.5]], None, [None], np.array([None])):
        with pytest.raises(TypeError, match="shares must be a fraction between 0 and 1, or a list"):
            quantile("v", shares)
    with pytest.raises(ValueError, match="shares must be from 1 to"):
        quantile("v", np.array([]))
    frame = pd.DataFrame({"who": range(9), "v": [0, 1, 2] * 3, "k": [0, 1, 0] * 3})
    people = Session(frame, user="who", schema=Schema(v=integer(0, 3), k=category([0, 1])), epsilon=1)
    query = people.query().group_by("k").agg(v=quantile("v"), bins=histogram("v", [0, 1, 3]))
    release = people.release(query)
    assert list(release.quantiles("v", 1)) == [F(1, 2)]
    assert list(release.quantiles("v", np.int64(1))) == [F(1, 2)]
    for wrong in (np.array([0, 1]), pd.Series([0, 1]), [1], {1}, (np.array([1]),)):
        with pytest.raises(ValueError, match="key must be one of the answer's"):
            release.quantiles("v", wrong)
        with pytest.raises(ValueError, match="key must be one of the answer's"):
            release.histogram("bins", wrong)
    for name in (np.array(["v", "v"]), ["v"], None, 3):
        for call in (release.column, release.quantiles, release.histogram):
            with pytest.raises(TypeError, match="name must be the name of an aggregate"):
                call(name)  # type: ignore[arg-type]
