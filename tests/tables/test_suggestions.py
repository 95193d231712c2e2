"""Suggested bounds: users between candidates by brute force, what one user moves, exact audits, and what is charged."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import LogRatio, tables
from userdp.accounting import PrivacyCost, largest_mu2, largest_rho
from userdp.audit import audit_user_level
from userdp.exact.epsilon import rational_below
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.runtime import source_of
from userdp.tables import Query, Schema, Session, category, count_rows, count_users, integer, mean, number
from userdp.tables.audits import merged
from userdp.tables.compiled import compiled
from userdp.tables.noise import Budget
from userdp.tables.reading import table_of
from userdp.tables.rows import UserColumns, add_up
from userdp.tables.suggestions import bound_of, noise_of, search_of

F = Fraction
SCHEMA = Schema(paid=integer(0, 10), off=integer(-1, 1), town=category(["a"]), spent=number(0, 8, steps=2**3))
ROWS = Query().agg(rows=count_rows(64))
ROWS_OF_FOUR = Query().agg(rows=count_rows(4))
TOTAL = Query().agg(total=tables.sum("paid", max_total=1000))
SPENT = Query().agg(total=tables.sum("spent", max_total=50))


def table(world: Any) -> pd.DataFrame:
    """Users are lists of what they paid in each row."""
    rows = [(who, paid) for who, user in enumerate(world) for paid in user]
    frame = pd.DataFrame(rows, columns=["who", "paid"]).astype({"who": int})
    return frame.assign(off=0, town="a", spent=frame["paid"] / 2)


def between(query: Query, world: Any) -> Any:
    search = search_of(query, SCHEMA)
    sums = add_up(search.query, table_of(table(world)), UserColumns(("who",)), SCHEMA, memory=2**26, directory=None)
    return search, search.users_between(sums)


def above(query: Query, world: Any) -> Any:
    search = search_of(query, SCHEMA)
    sums = add_up(search.query, table_of(table(world)), UserColumns(("who",)), SCHEMA, memory=2**26, directory=None)
    return search, search.users_above(sums)


def test_users_above_are_counted() -> None:
    rng = np.random.default_rng(0)
    world = [rng.integers(0, 11, rng.geometric(0.05)).tolist() for _ in range(200)]
    for query, measure in ((ROWS, len), (TOTAL, sum)):
        search, counts = above(query, world)
        assert list(counts) == [sum(measure(user) > candidate for user in world) for candidate in search.candidates]
    search, counts = above(SPENT, world)
    assert search.unit == 1.0
    assert list(counts) == [
        sum(sum(round(paid / 2) for paid in user) > candidate for user in world) for candidate in search.candidates
    ]


def test_users_above_are_counted_where_sums_of_totals_are_beyond_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 users of 2**53 have 2**64.5 together: both sums of clamped totals were 2**63 - 1, and nobody was above."""
    monkeypatch.setattr("userdp.tables.suggestions.compiled", partial(compiled, largest=2**53))
    schema = Schema(paid=integer(0, 2**53 - 1))
    search = search_of(Query().agg(total=tables.sum("paid", max_total=2**53 - 2)), schema)
    frame = pd.DataFrame({"who": range(4000), "paid": [2**63 - 1] * 3000 + [2**51] * 1000})
    sums = add_up(search.query, table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None)
    want = [3000 + 1000 * (candidate < 2**51) for candidate in search.candidates]
    assert search.users_above(sums).tolist() == want
    assert search.users_between(sums).sum() == 4000 - 1000 * (search.candidates[0] >= 2**51)


def test_candidates_are_public() -> None:
    assert search_of(ROWS, SCHEMA).candidates == (1, 2, 4, 5, 8, 11, 16, 22, 32, 45, 64)
    assert search_of(TOTAL, SCHEMA).candidates[:5] == (1, 2, 4, 5, 8)
    assert search_of(TOTAL, SCHEMA).candidates[-1] == 1000
    fine = Schema(paid=number(0, 100))
    search = search_of(Query().agg(total=tables.sum("paid", max_total=10**6)), fine)
    assert search.candidates[0] * search.unit == pytest.approx(100 / 16, rel=1e-4)
    assert search.candidates[-1] * search.unit == pytest.approx(10**6, rel=1e-4)


def test_no_candidate_is_above_the_given_bound() -> None:
    """A sixteenth of the column's largest value, the lowest candidate otherwise, may be above it."""
    search = search_of(Query().agg(total=tables.sum("paid", max_total="0.5")), Schema(paid=number(0, 9)))
    assert [candidate * search.unit for candidate in search.candidates] == [0.5]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_user_is_in_one_bin(neighbors: Any) -> None:
    """All pairs of some users beside two others: a bin moves by 1 for one user, and two bins for two."""
    users: list[Any] = [[], [3], [10], [10, 10], [10] * 40, [10] * 200]
    beside = [[5], [10, 10, 10]]
    found = [between(TOTAL, [*beside, user])[1] for user in users]
    pairs = itertools.combinations(found, 2) if neighbors == "replace" else ((found[0], one) for one in found)
    moved = [np.abs(one - two).sum() for one, two in pairs]
    assert max(moved) == (2 if neighbors == "replace" else 1)


@pytest.mark.parametrize(("query", "row", "times"), [(ROWS_OF_FOUR, 1, 9), (TOTAL, 10, 200)])
def test_users_beyond_the_given_bound_are_counted(query: Query, row: int, times: int) -> None:
    """Where everybody has more than the largest bound that is considered, it is the best one."""
    search, counts = between(query, [[row] * times] * 30 + [[row]] * 2)
    assert counts[-1] == 30
    noise = noise_of(search, "add-remove", Budget("basic", F(100), F(0)))
    assert bound_of(search, counts, noise, 1.0) == len(search.candidates) - 1


class Bins:
    """The noisy numbers of users between candidates, merged beyond what they may be, as a finite algorithm."""

    symmetric = True

    def __init__(self, search: Any, noise: Any, n_users: int) -> None:
        self.search, self.noise, self.n_users = search, noise, n_users
        self.outputs = tuple(itertools.product(range(n_users + 1), repeat=search.bins))

    def pmf(self, dataset: Any) -> Pmf:
        world = [[1] * user[0] for user in dataset if user[0]]
        counts = between(ROWS_OF_FOUR, world)[1]
        laws = [merged(self.noise.noise, int(count), 0, self.n_users) for count in counts]
        return Pmf(self.outputs, tuple(whole_multiples([math.prod(each) for each in itertools.product(*laws)])))


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
def test_the_law_of_noisy_bins_keeps_the_promise(neighbors: Any, composition: str) -> None:
    """All worlds of two users with up to four rows, by the exact law of what is drawn; half of the noise fails."""
    search = search_of(ROWS_OF_FOUR, SCHEMA)
    gaussian = composition != "basic"
    epsilon: Any = F(1) if gaussian else LogRatio(2)
    delta = F(1, 20) if gaussian else F(0)
    budget = Budget("basic", epsilon, F(0))
    if composition == "zcdp":
        budget = Budget(composition, None, F(0), rho=largest_rho(1, delta) * F(999, 1000))
    elif composition == "exact":
        budget = Budget(composition, None, F(0), mu2=largest_mu2(1, delta) * F(999, 1000))
    noise = noise_of(search, neighbors, budget)
    assert gaussian or noise.cost == PrivacyCost(rational_below(epsilon), neighbors=neighbors)
    if gaussian:
        moved = 1 if neighbors == "add-remove" else 2
        variance = noise.noise.sigma_squared  # type: ignore[union-attr]
        if composition == "zcdp":
            assert noise.cost.rho == F(moved) / (2 * variance) <= budget.rho  # type: ignore[operator]
        else:
            assert noise.cost.mu2 == F(moved) / (variance - 4) <= budget.mu2  # type: ignore[operator]
            assert noise.cost.distance > search.bins * (noise.noise.distance + F(1, 2**113))  # type: ignore[union-attr]
        less: Any = DiscreteGaussian(sigma_squared=variance / 16)
    else:
        less = DiscreteLaplace(scale=F(noise.noise.scale) / 2, bounds=(-(2**40), 2**40))  # type: ignore[union-attr]
    for each, holds in ((noise, True), (replace(noise, noise=less), False)):
        report = audit_user_level(
            Bins(search, each, 2),  # type: ignore[arg-type]
            universe=range(5),
            n_users=2,
            n_examples=1,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
        )
        assert report.holds is holds


def test_without_noise_the_best_candidate_is_found() -> None:
    """Where noise is next to nothing, the choice is the candidate with the least error, by brute force."""
    rng = np.random.default_rng(3)
    search = search_of(Query().agg(rows=count_rows(4096)), SCHEMA)
    tiny = noise_of(search, "add-remove", Budget("basic", F(80), F(0)))
    for values in (rng.geometric(0.1, 5000), np.full(300, 8), np.minimum(rng.zipf(1.7, 4000), 4096), [2] * 10):
        users = np.asarray(values)
        above_each = np.array([(users > candidate).sum() for candidate in search.candidates])
        for deviation in (1.0, 30.0):
            left_out = [
                sum(
                    (min(search.candidates[j + 1], 10**9) - search.candidates[j]) * above_each[j]
                    for j in range(i, len(search.candidates) - 1)
                )
                for i in range(len(search.candidates))
            ]
            errors = np.hypot(left_out, deviation * np.array(search.candidates))
            chosen = bound_of(search, -np.diff(above_each), tiny, deviation)
            assert errors[chosen] <= 1.1 * errors.min() + deviation


def test_nobody_has_a_low_bound() -> None:
    """All bins are noise: a bound far above the lowest would need users beyond doubt in some run of bins."""
    search = search_of(Query().agg(rows=count_rows(2**20)), SCHEMA)
    nobody = np.zeros(search.bins, dtype=np.int64)
    for neighbors in ("add-remove", "replace"):
        for budget in (Budget("basic", F(1, 10), F(0)), Budget("zcdp", None, F(0), F(1, 200))):
            noise = noise_of(search, neighbors, budget)  # type: ignore[arg-type]
            with pytest.warns(InsecureRandomnessWarning):
                source = source_of(5)
            bounds = [
                search.candidates[bound_of(search, noise.released(nobody, source), noise, 10.0)] for _ in range(60)
            ]
            assert sum(bound > 16 for bound in bounds) <= 12


def test_the_choice_is_charged_and_near_the_data() -> None:
    """Three thousand users of at most 8 rows: the bound is from 4 to 16 with this noise."""
    world = [[1] * (1 + i % 8) for i in range(3000)]
    people = Session(table(world), user="who", schema=SCHEMA, epsilon=3)
    with pytest.warns(InsecureRandomnessWarning):
        suggestion = people.suggest_bound(people.query().agg(rows=count_rows(4096)), epsilon=1, then=1, random_state=0)
    assert 4 <= suggestion.bound <= 16
    assert suggestion.cost == PrivacyCost(1, neighbors="add-remove")
    assert people.remaining()["epsilon"] == 2
    release = people.release(people.query().agg(rows=count_rows(suggestion.bound)), epsilon=1)
    assert release.cost.epsilon == 1
    zcdp = Session(table(world), user="who", schema=SCHEMA, epsilon=3, delta="1e-6")
    before = zcdp.remaining()["rho"]
    cost = zcdp.suggest_bound(ROWS, rho="1/100", then=1).cost
    assert cost.rho == before - zcdp.remaining()["rho"]
    assert cost.rho is not None
    assert F(99, 10_000) < cost.rho <= F(1, 100)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query().agg(n=count_users()), "one count_rows"),
        (Query().agg(x=mean("paid")), "one count_rows"),
        (Query().agg(a=count_rows(2), b=count_rows(3)), "one count_rows"),
        (Query().group_by("town").agg(a=count_rows(2)), "without groups"),
        (Query().agg(a=tables.sum("off", max_total=3)), "never negative"),
    ],
)
def test_what_has_no_bound_is_refused(query: Query, message: str) -> None:
    people = Session(table([[1]]), user="who", schema=SCHEMA, epsilon=1)
    with pytest.raises(ValueError, match=message):
        people.suggest_bound(query, epsilon="1/2", then=1)
    with pytest.raises(ValueError, match="then"):
        people.suggest_bound(ROWS, epsilon="1/2", then=0)
    assert people.remaining()["epsilon"] == 1


@pytest.mark.parametrize("composition", ["zcdp", "exact"])
def test_a_large_epsilon_takes_what_has_no_distance(composition: str) -> None:
    """Beside e^1000 no distance is left: noise of a pure epsilon, as for a release."""
    people = Session(table([[1]] * 50), user="who", schema=SCHEMA, epsilon=1000, delta="1e-6", composition=composition)
    found = people.suggest_bound(Query().agg(rows=count_rows(64)), epsilon=200, then=1)
    assert found.cost.epsilon is not None
    assert found.cost.epsilon > 1
    assert found.cost.distance == 0
    entry = people.ledger.entries[0]
    assert entry.charged["distance"] == 0
    plan = people.plan(Query().agg(people=count_users()), epsilon=200)
    assert plan.cost.epsilon is not None
    assert people.ledger.can_spend(plan.cost)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
def test_beside_a_tiny_epsilon_the_lowest_bound_is_best(composition: str) -> None:
    """No total of 50 users is as large as such noise, whatever was drawn; doubles do not reach it."""
    frame = pd.DataFrame({"who": range(50), "x": 1.0})
    for then in ("1e-400", "1e-310", "1e-200"):
        people = Session(
            frame, user="who", schema=Schema(x=number(0, 1)), epsilon=1, delta="1e-6", composition=composition
        )
        assert people.suggest_bound(Query().agg(n=count_rows(2**32)), epsilon="1/2", then=then).bound == 1
