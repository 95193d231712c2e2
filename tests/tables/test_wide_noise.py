"""Wide Laplace noise: what is rounded for it, what it says of its error, and what is too wide."""

from __future__ import annotations

import pandas as pd
import pytest

from userdp import tables
from userdp.mechanisms import DiscreteLaplace
from userdp.tables import Query, Schema, Session, count_rows, count_users, histogram, mean, number

WIDE = {
    "total": tables.sum("spent", max_total=10_000),
    "rows": count_rows(10**6),
    "mean": mean("spent", weighting="rows", max_rows=10**6),
}


def test_rows_are_not_rounded_where_noise_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release at epsilon 1/100 without its noise is the sum, and not a sum of rows that were rounded to 0."""
    frame = pd.DataFrame({"who": [place // 10 for place in range(4000)], "spent": [1.0, 3.0] * 2000})
    schema = Schema(spent=number(0, 10))
    monkeypatch.setattr(DiscreteLaplace, "_release_many", lambda self, values, source: values)
    for name, want in (("total", 8000.0), ("rows", 4000.0), ("mean", 2.0)):
        people = Session(frame, user="who", schema=schema, epsilon=1)
        query = Query().agg(**{name: WIDE[name]})
        error = people.plan(query, epsilon="1/100", n_users=1).standard_error(name)
        found = people.release(query, epsilon="1/100").column(name)[0]
        # A total is off by half a step, of which there are 2**21 or more in the noise.
        assert abs(found - want) <= error / 2**20


def test_wide_noise_is_released_and_has_its_error() -> None:
    """The ends of 99.9999999 % intervals, of numbers that needed tables of 10**8 entries before."""
    frame = pd.DataFrame({"who": [place // 10 for place in range(4000)], "spent": [1.0, 3.0] * 2000})
    people = Session(frame, user="who", schema=Schema(spent=number(0, 10)), epsilon=1)
    found = people.release(Query().agg(**WIDE, bins=histogram("spent", [0, 2, 4])), epsilon="1/100")
    intervals = found.intervals(1 - 1e-9, backend="pandas").iloc[0]
    for name, want in (("total", 8000.0), ("rows", 4000.0), ("mean", 2.0)):
        assert intervals[f"{name}_low"] <= want <= intervals[f"{name}_high"]
    assert abs(found.histogram("bins")[0] - 200).max() < 50 * 200  # 50 times the scale at half of epsilon


def test_too_little_epsilon_is_refused_before_it_is_charged() -> None:
    people = Session(pd.DataFrame({"who": range(10), "x": 1.0}), user="who", schema=Schema(x=number(0, 1)), epsilon=1)
    with pytest.raises(ValueError, match="too little for exact Laplace noise"):
        people.release(Query().agg(people=count_users()), epsilon="1/1000000000000")
    assert people.remaining()["epsilon"] == 1
