"""Predicted errors of the ways to count users by group, from public numbers: for `compare_methods("group_by", ...)`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from userdp.accounting import largest_mu2
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import (
    LogRatio,
    Neighbors,
    check_count,
    check_neighbors,
    parse_delta,
    parse_level,
)
from userdp.mechanisms import CorrelatedCounts
from userdp.mechanisms.discrete_gaussian import SMOOTHING
from userdp.mechanisms.key_bounds import keyed_rho
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.planning.problem import ErrorsAsked
from userdp.report import Comparison, Prediction
from userdp.tables import Query, Schema, count_users, integer, key
from userdp.tables.compiled import USERS, compiled
from userdp.tables.noise import Budget, allot

THRESHOLD = "threshold"
LISTED = "the list of groups"
MOST_EXACT = "the least noise of a count, for what is given"


def compare_groups(asked: ErrorsAsked) -> Comparison:
    """Standard deviations of the noise of one group's count of users, for each way to count."""
    if asked.m is not None or asked.beta is not None:
        raise ValueError("m and beta are for means; groups have max_keys")
    given = asked.known("group_by", n_keys=None, max_keys=None, neighbors="add-remove")
    users = check_count(asked.n_users, "n_users")
    relation = check_neighbors(given["neighbors"])
    n_keys, max_keys = given["n_keys"], given["max_keys"]
    keys = None if n_keys is None else check_count(n_keys, "n_keys")
    most = most_groups(keys, None if max_keys is None else check_count(max_keys, "max_keys"))
    level, exact = positive_epsilon(asked.epsilon), parse_delta(asked.delta)
    if keys is None and not exact:
        raise ValueError("delta must be > 0 where n_keys is None: which groups there are is private then; got 0")
    rows = list(ways(keys, most, level, exact, relation))
    best = min((row for row in rows if keys is None or row.method != THRESHOLD), key=_noise)
    fewer = most // 2
    while fewer >= 1:
        part = ways(keys, fewer, level, exact, relation)
        row = min((row for row in part if keys is None or row.method != THRESHOLD), key=_noise)
        rows.append(replace(row, method=f"{row.method}, {fewer} group{'' if fewer == 1 else 's'} of a user"))
        fewer //= 2
    sizes = {
        "n_users": users,
        "n_keys": "unknown" if keys is None else keys,
        "max_keys": most,
        "epsilon": float(parse_level(level)),
        "delta": float(exact),
        "neighbors": relation,
    }
    return Comparison(task="group_by", sizes=sizes, rows=tuple(rows), best=best.method, reason=MOST_EXACT)


def most_groups(n_keys: int | None, max_keys: int | None) -> int:
    """In how many groups a user counts at most."""
    given = [number for number in (n_keys, max_keys) if number is not None]
    if not given:
        raise ValueError(
            "max_keys is needed where no list of groups is public: in how many groups a user counts at most"
        )
    return min(given)


def _noise(row: Prediction) -> float:
    assert row.noise is not None
    return row.noise


def ways(
    keys: int | None, most: int, epsilon: Fraction | LogRatio, delta: Fraction, neighbors: Neighbors
) -> Iterator[Prediction]:
    """All ways that can be drawn, where a user counts in at most so many groups."""
    bounded = "" if most == keys else f"no user in more than {most} group{'' if most == 1 else 's'}"
    if keys is not None:
        needs = ", ".join(filter(None, (LISTED, bounded)))
        for name, noise, note in of_listed(keys, most, epsilon, delta, neighbors):
            yield Prediction(name, "user", noise, noise, needs, f"exact; {note}")
    if delta:
        noise, shown = of_unlisted(most, epsilon, delta, neighbors)
        note = f"exact; groups are shown from {shown.threshold} users on, with 95 % from {shown.users_for('0.95')}"
        yield Prediction(THRESHOLD, "user", noise, None, bounded or "nothing", note)


@lru_cache(maxsize=256)
def of_unlisted(
    most: int, epsilon: Fraction | LogRatio, delta: Fraction, neighbors: Neighbors
) -> tuple[float, SparseHistogram]:
    """The noise of a count where no list of groups is public, and what shows groups."""
    query = compiled(Query().group_by("g", max_keys=most).agg(n=count_users()), Schema(g=key(int)))
    keyed = allot(query, neighbors, Budget("basic", epsilon, delta)).keyed
    assert keyed is not None
    assert keyed.sparse is not None
    return keyed.spread(USERS), keyed.sparse


def of_listed(
    keys: int, most: int, epsilon: Fraction | LogRatio, delta: Fraction, neighbors: Neighbors
) -> Iterator[tuple[str, float, str]]:
    """The ways for a public list of groups, all of which are shown."""
    query = compiled(Query().group_by("g", keys=[0]).agg(n=count_users()), Schema(g=integer(0, 1)))
    query = replace(query, n_keys=keys, max_keys=most)  # a list of any length, without the list
    try:
        keyed = allot(query, neighbors, Budget("basic", epsilon, Fraction(0))).keyed
        assert keyed is not None
        yield "laplace", keyed.spread(USERS), "pure: needs no delta"
    except ValueError:  # noise that is too wide to draw
        pass
    if not delta:
        return
    try:
        mu2 = largest_mu2(epsilon, delta * (1 - Fraction(1, 2**20)))
        cost = keyed_rho([(1, 1, Fraction(1))], n_keys=keys, max_keys=most, neighbors=neighbors)
        yield "gaussian", math.sqrt(2 * cost / mu2 + SMOOTHING), "noise of its own for each group"
        if neighbors == "add-remove" and keys > 1:
            counts = CorrelatedCounts(n_keys=keys, max_keys=most, epsilon=epsilon, delta=delta)
            if counts.theta:
                note = "a part of the noise in common: errors of groups go together"
                yield "correlated", math.sqrt(counts.variance), note
    except ValueError:  # a delta below what drawn noise is off the ideal one
        return
