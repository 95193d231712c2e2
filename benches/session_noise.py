"""Noise of a session of ten releases, by how its ledger counts: a table for docs/tables.md.

Each release takes a tenth of what the ledger counts. What is printed are standard deviations of the noise that would be
drawn, from plans: no row is read, and nothing is measured twice.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd

from userdp import tables
from userdp.tables import (
    Plan,
    Query,
    Schema,
    Session,
    category,
    count_rows,
    count_users,
    histogram,
    key,
    mean,
    number,
    quantile,
)
from userdp.tables.noise import deviation
from userdp.tables.quantiles import WEIGHT

EPSILON, DELTA = 1, "1e-6"
LISTED = Schema(town=category(range(10)), wage=number(0, 100))
OPEN = Schema(town=key(int), wage=number(0, 100))
TEN = Fraction(1, 10)


def questions() -> dict[str, tuple[Schema, Query]]:
    """Ten of them; the last two are about groups that nobody listed."""
    by_town, of_three = Query().group_by("town"), Query().group_by("town", max_keys=3)
    return {
        "users": (LISTED, Query().agg(n=count_users())),
        "rows, at most 20 of a user": (LISTED, Query().agg(n=count_rows(20))),
        "sum of wages, at most 100 of a user": (LISTED, Query().agg(s=tables.sum("wage", max_total=100))),
        "mean wage of 1,000 users": (LISTED, Query().agg(m=mean("wage"))),
        "users by ten groups": (LISTED, by_town.agg(n=count_users())),
        "users by ten groups, three of a user": (LISTED, of_three.agg(n=count_users())),
        "rows by group, three of a user": (LISTED, of_three.agg(n=count_rows(20))),
        "histogram": (LISTED, Query().agg(h=histogram("wage", [0, 25, 50, 100]))),
        "median, in users": (LISTED, Query().agg(q=quantile("wage"))),
        "three quartiles, in users": (LISTED, Query().agg(q=quantile("wage", ["1/4", "1/2", "3/4"]))),
        "threshold of unlisted groups": (OPEN, of_three.agg(n=count_users())),
        "users that show a group, of its keys alone": (OPEN, of_three.keys_only()),
    }


def session(schema: Schema, how: str) -> Session:
    frame = pd.DataFrame({"who": [1], "town": [1], "wage": [1.0]})
    given: dict[str, Any] = {"delta": 0} if how == "pure" else {"delta": DELTA, "composition": how}
    return Session(frame, user="who", schema=schema, epsilon=EPSILON, n_users=1000, **given)


def planned(schema: Schema, query: Query, how: str) -> Plan:
    """A tenth of what is counted."""
    people = session(schema, how)
    if how in ("pure", "basic"):
        return people.plan(query, epsilon=EPSILON * TEN)
    name = {"zcdp": "rho", "exact": "mu2"}[how]
    return people.plan(query, **{name: Fraction(people.remaining()[name]) * TEN})


def error(schema: Schema, query: Query, how: str) -> float:
    """One number: the standard deviation, users in rank, or users that a group needs."""
    if schema is OPEN and how == "pure":
        return float("nan")
    plan = planned(schema, query, how)
    if plan.noise.finder is not None:
        return plan.noise.finder.users_for("1/2")
    if plan.threshold is not None:
        return plan.threshold
    if plan.noise.selected:
        return max(users for users, _ in plan.noise.selected[0].rank_errors(0.5))
    if plan.noise.binned:
        (part,) = plan.noise.binned
        return deviation(part.noise) * part.step / WEIGHT
    return plan.standard_error(plan.query.names[-1])


def main() -> None:
    ways = ("exact", "zcdp", "basic", "pure")
    print(f"| a tenth of ({EPSILON}, {DELTA}) | " + " | ".join(f'"{way}"' for way in ways) + " | exact / zcdp |")
    print("|---|" + "--:|" * (len(ways) + 1))
    for name, (schema, query) in questions().items():
        errors = {way: error(schema, query, way) for way in ways}
        shown = ["–" if errors[way] != errors[way] else f"{errors[way]:.4g}" for way in ways]
        print(f"| {name} | {' | '.join(shown)} | {errors['exact'] / errors['zcdp']:.3f} |")


if __name__ == "__main__":
    main()
