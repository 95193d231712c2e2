"""Comparisons of counts by group, beside formulas, published thresholds and the plans of sessions."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from userdp.accounting import largest_mu2
from userdp.planning import Comparison, compare_methods
from userdp.tables import Schema, Session, category, count_users, key


def by_group(**given: Any) -> Comparison:
    return compare_methods("group_by", **{"n_users": 1000, "epsilon": 1, "delta": "1e-5", **given})


def test_noise_is_that_of_the_formulas() -> None:
    """Laplace noise of scale k / epsilon; Gaussian of variance k / mu^2, twice that where keys are replaced."""
    table = by_group(n_keys=100, max_keys=10)
    decay = math.exp(-1 / 10)
    assert table["laplace"].noise == pytest.approx(math.sqrt(2 * decay) / (1 - decay), rel=1e-6)
    mu2 = float(largest_mu2(1, "1e-5"))
    assert table["gaussian"].noise == pytest.approx(math.sqrt(10 / mu2 + 4), rel=1e-4)
    replaced = by_group(n_keys=100, max_keys=10, neighbors="replace")
    assert replaced["gaussian"].noise == pytest.approx(math.sqrt(20 / mu2 + 4), rel=1e-4)
    assert "correlated" not in {row.method for row in replaced.rows}
    # The published gain where each user may have all keys: (1 + 1 / sqrt k)^2 / 4 of the variance.
    whole = by_group(n_keys=64)
    assert whole.best == "correlated"
    ratio = (whole["correlated"].noise / whole["gaussian"].noise) ** 2
    assert ratio == pytest.approx((1 + 1 / 8) ** 2 / 4, rel=0.02)


def test_thresholds_are_the_published_ones() -> None:
    for keys, threshold in ((1, 12), (10, 58)):
        row = by_group(max_keys=keys)["threshold"]
        shown = int(row.note.split()[5])
        assert shown <= threshold + 1
        assert row.worst_error is None
    assert by_group(max_keys=10).best == "threshold"


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0, "1e-5"])
def test_the_best_is_what_a_session_plans(neighbors: Any, delta: Any) -> None:
    frame = pd.DataFrame({"who": [1], "town": ["a"], "shop": ["x"]})
    schema = Schema(town=category(list("abcdefgh")), shop=key(str))
    people = Session(frame, user="who", schema=schema, epsilon=1, delta=delta, neighbors=neighbors, composition="basic")
    for keys in (1, 4, 8):
        query = people.query().group_by("town", max_keys=keys).agg(n=count_users())
        table = by_group(n_keys=8, max_keys=keys, delta=delta, neighbors=neighbors)
        assert table[table.best].noise == pytest.approx(people.plan(query).standard_error("n"), rel=2e-3)
        assert table[table.best].worst_error == table[table.best].noise
        assert table[table.best].needs.startswith("the list of groups")
        if delta:
            unknown = people.query().group_by("shop", max_keys=keys).agg(n=count_users())
            plan = people.plan(unknown)
            assert table["threshold"].noise == pytest.approx(plan.standard_error("n"))
            assert f"from {plan.threshold} users on" in table["threshold"].note


def test_fewer_groups_of_a_user_have_less_noise() -> None:
    for keys in (None, 100):
        table = by_group(n_keys=keys, max_keys=10)
        names = [row.method for row in table.rows if "of a user" in row.method]
        assert sorted(int(name.split(", ")[1].split()[0]) for name in names) == [1, 2, 5]
        assert max(table[name].noise for name in names) < table[table.best].noise
        assert all(
            f"no user in more than {name.split(', ')[1].split()[0]} group" in table[name].needs for name in names
        )
    assert str(table).startswith("Methods for: group_by")


def test_bad_questions_name_the_argument() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "max_keys is needed"),
        ({"max_keys": 3, "delta": 0}, "delta must be > 0 where n_keys is None"),
        ({"max_keys": 0}, "max_keys"),
        ({"n_keys": 0}, "n_keys"),
        ({"n_keys": 3, "neighbors": "any"}, "neighbors"),
        ({"n_keys": 3, "m": 2}, "m and beta are for means"),
    ]
    for given, message in wrong:
        with pytest.raises((TypeError, ValueError), match=message):
            by_group(**given)
    with pytest.raises(TypeError, match="max_keys is no parameter of task"):
        compare_methods("mean", n_users=100, m=2, epsilon=1, max_keys=2)
    with pytest.raises(TypeError, match="m is needed"):
        compare_methods("mean", n_users=100, epsilon=1)
