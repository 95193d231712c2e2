"""Every release that a plan admits ends within the public bounds of the plan, whatever the data are."""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from userdp import LogRatio, _core
from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, SymmetricAlgorithm, finite_algorithm
from userdp.delstab import DelStab, stable_sets
from userdp.delstab.engines import WorstCase
from userdp.delstab.stable_sets import most_choices
from userdp.exceptions import BudgetError, InsecureRandomnessWarning, PrivacyBudgetError

F = Fraction
EVEN, ODD = [F(1, 2), F(1, 2)], [F(1, 4), F(3, 4)]
MAX_LESSONS = 1024
"""Failures that a search looks into: each may take a grid for every type of a choice."""


def people(counts: Any) -> tuple[tuple[int], ...]:
    return tuple((kind,) for kind, count in enumerate(counts) for _ in range(count))


def of_types(pmf: Any) -> SymmetricAlgorithm:
    """An algorithm whose distribution depends on the set of distinct users who are kept."""
    return SymmetricAlgorithm((0, 1), lambda users: pmf(tuple(sorted({user[0] for user in users}))))


def at_random(share: float, seed: int) -> SymmetricAlgorithm:
    return of_types(lambda kinds: ODD if random.Random(f"{seed} {kinds}").random() < share else EVEN)


ALGORITHMS: dict[str, Any] = {
    "constant": of_types(lambda kinds: EVEN),
    "all apart": SymmetricAlgorithm(range(3), lambda users: [F(output == users[0][0] % 3) for output in range(3)]),
    "pairs of kinds": of_types(lambda kinds: ODD if len(kinds) > 1 else EVEN),
    "many kinds": of_types(lambda kinds: ODD if len(kinds) > 3 else EVEN),
    "sunflower": of_types(lambda kinds: ODD if 0 in kinds and len(kinds) > 2 else EVEN),
    "random": at_random(0.3, 1),
    "rare": at_random(0.01, 2),
    "failing": SymmetricAlgorithm((0, 1), lambda users: EVEN if len(set(users)) < 4 else None),
}
"""Few pairs of kept sets are compatible, or all, or it takes many kinds to tell them apart."""


class CountedSearch:
    """A search whose work is added up in `done`."""

    done: dict[str, int]

    def __init__(self, *arguments: Any) -> None:
        self._search = _core.StableSearch(*arguments)

    def step(self, progress: Any) -> Any:
        question = self._search.step(progress)
        if question is None:
            grids, kept_sets, _ = self._search.work()
            self.done["grids"] += grids
            self.done["kept_sets"] = max(self.done["kept_sets"], kept_sets)
        return question

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many grids were decided, and how large the largest was."""
    done = {"grids": 0, "kept_sets": 0}
    monkeypatch.setattr(CountedSearch, "done", done, raising=False)
    counted = SimpleNamespace(**{**vars(_core), "StableSearch": CountedSearch})
    monkeypatch.setattr(stable_sets, "_core", counted)
    return done


# ------------------------------------------------------------------ datasets that had no end


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "counts"),
    [
        (1, "1e-6", (1,) * 41 + (29,)),
        (1, "1e-6", (1,) * 38 + (32,)),
        (1, "1e-6", (35, 35)),
        (1, "1e-6", (1,) * 70),
        (1, "1e-6", (2,) * 15 + (20, 20)),
        (1, "1e-6", (1,) * 37 + (60,)),
        (2, "1e-4", (1,) * 22 + (7,)),
        (2, "1e-4", (1,) * 17 + (2,) * 6),
        (2, "1e-4", (1,) * 8 + (7,) * 3),
    ],
    ids=lambda value: f"{sum(value)} of {len(value)} kinds" if isinstance(value, tuple) else str(value),
)
def test_releases_end(name: str, epsilon: int, delta: str, counts: Any, work: dict[str, int]) -> None:
    delstab = DelStab(ALGORITHMS[name], epsilon=epsilon, delta=delta)
    bound = delstab.plan(sum(counts))
    assert delstab.release(people(counts)) in delstab.outputs
    assert work["grids"] <= bound.choices + MAX_LESSONS * bound.max_distinct_users
    assert work["kept_sets"] <= bound.kept_sets


def test_covers_are_refused_before_they_take_too_long() -> None:
    one = finite_algorithm((0, 1))(lambda users: EVEN)
    # 130 users of whom one is kept: a vertex cover of a graph that is up to the data.
    delstab = DelStab(one, epsilon="0.55", delta="1e-6")
    assert delstab.min_users > 120
    with pytest.raises(BudgetError, match=r"one user kept, and up to [\d,]+ steps .* Cheaper: a SymmetricAlgorithm"):
        delstab.plan(delstab.min_users)
    with pytest.raises(BudgetError, match="kept sets"):
        delstab.plan(delstab.min_users + 1)


def test_many_types_are_refused_with_an_estimate_and_what_works() -> None:
    same = ALGORITHMS["constant"]
    with pytest.raises(
        BudgetError, match=r"max_distinct_users=8: .* 22,481,940 ways .* Cheaper: max_distinct_users=\d"
    ) as caught:
        DelStab(same, epsilon=1, delta="1e-6", max_distinct_users=8).release(people((35, 35)))
    cheaper = int(re.findall(r"Cheaper: max_distinct_users=(\d+)", str(caught.value))[0])
    delstab = DelStab(same, epsilon=1, delta="1e-6", max_distinct_users=cheaper)
    assert delstab.plan(70) == DelStab(same, epsilon=1, delta="1e-6").plan(70)
    with pytest.raises(BudgetError, match=f"max_distinct_users={cheaper + 1}"):
        DelStab(same, epsilon=1, delta="1e-6", max_distinct_users=cheaper + 1).plan(70)
    with pytest.raises(BudgetError, match="totals"):  # without looking at anybody
        DelStab(
            AdditiveAlgorithm((0,), lambda user: 0, lambda total, n: [1], statistic_range=(0, 10**9)),
            epsilon=1,
            delta="1e-6",
        ).plan(100)


# ------------------------------------------------------------------ the bounds, against enumeration


def partitions(total: int, parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(1, min(largest, total - parts + 1) + 1):
        for rest in partitions(total - first, parts - 1, first):
            yield (first, *rest)


@pytest.mark.parametrize("n", [5, 8, 11])
def test_the_bound_on_choices_is_attained_and_never_exceeded(n: int) -> None:
    for limit in range(1, (n + 1) // 2):
        for allowed in range(1, n + 1):
            most = 0
            for types in range(allowed, n + 1):
                for counts in partitions(n, types, n):
                    ways = sum(
                        sum(chosen) >= n - limit for chosen in itertools.combinations(counts, min(allowed, types))
                    )
                    most = max(most, ways)
            assert most <= most_choices(n, limit, allowed)
            if min(n, allowed + limit) >= 2 * allowed:
                assert most == most_choices(n, limit, allowed)


@pytest.mark.parametrize("n", [5, 8, 11])
def test_the_bound_on_kept_sets_of_all_choices_is_never_exceeded(n: int) -> None:
    for deletions in range(2, n, 2):
        limit, kept_users = deletions // 2, n - deletions
        for allowed in range(1, n):
            bound = WorstCase(n, deletions, limit).work(allowed)
            for types in range(1, n + 1):
                for counts in partitions(n, types, n):
                    ways = (
                        chosen
                        for chosen in itertools.combinations(counts, min(allowed, types))
                        if sum(chosen) >= n - limit
                    )
                    assert sum(vectors(chosen, kept_users) for chosen in ways) <= bound


@functools.cache
def vectors(counts: tuple[int, ...], total: int) -> int:
    """How many vectors up to the counts have that sum."""
    if not counts:
        return int(total == 0)
    return sum(vectors(counts[1:], total - own) for own in range(min(counts[0], total) + 1))


# ------------------------------------------------------------------ random datasets


def test_random_datasets_are_within_the_bound(work: dict[str, int]) -> None:
    """Of up to 80 users and 1 to 80 kinds, by data and by statistic; the two agree where they decide the same."""
    source = random.Random(10)
    levels = [(1, "1e-6"), (2, "1e-4"), (4, "1e-3"), (8, "0.01")]
    for instance in range(150):
        epsilon, delta = source.choice(levels)
        seed, share = instance, source.choice((0, 0.02, 0.3))

        def pmf(total: int, n_users: int, seed: int = seed, share: float = share) -> Any:
            return ODD if random.Random(f"{seed} {total}").random() < share else EVEN

        counted = AdditiveAlgorithm((0, 1), lambda user: user[0], pmf, statistic_range=(0, 80))
        listed = SymmetricAlgorithm((0, 1), lambda users: pmf(sum(user[0] for user in users), len(users)))
        made = [
            DelStab(each, epsilon=epsilon, delta=delta, compatibility=relation)
            for each, relation in ((counted, "exact"), (listed, "auto"))
        ]
        n = source.randint(made[0].min_users, 80)
        kinds = source.randint(1, n)
        weights = [source.random() ** source.choice((1, 4, 16)) for _ in range(kinds)]
        dataset = tuple((kind,) for kind in source.choices(range(kinds), weights=weights, k=n))
        bound = made[0].plan(n)
        assert bound == made[1].plan(n)
        work.update(grids=0, kept_sets=0)
        drawn = [_release(delstab, dataset, instance) for delstab in made]
        assert drawn[0] is drawn[1] or drawn[0] == drawn[1]
        assert work["grids"] <= 2 * (bound.choices + MAX_LESSONS * bound.max_distinct_users)
        assert work["kept_sets"] <= bound.kept_sets


def _release(delstab: DelStab, dataset: Any, seed: int) -> Any:
    with pytest.warns(InsecureRandomnessWarning):
        return delstab.release(dataset, random_state=seed)


def test_scores_end_too(work: dict[str, int]) -> None:
    table = {kind: (kind % 5, kind % 3) for kind in range(80)}
    votes = SummedScoreEM(("a", "b"), lambda user: table[user[0]], epsilon="0.5", sensitivity=4)
    delstab = DelStab(votes, epsilon=1, delta="1e-6")
    for counts in ((1,) * 41 + (29,), (1,) * 36 + (34,), (10,) * 7, (1,) * 70):
        assert delstab.release(people(counts)) in delstab.outputs
        assert work["kept_sets"] <= delstab.plan(70).kept_sets


# ------------------------------------------------------------------ cost


def test_a_ledger_is_charged_by_what_is_drawn_from() -> None:
    same = ALGORITHMS["constant"]
    for epsilon, delta in ((1, "1e-6"), ("0.1", "1e-3"), (LogRatio(8000, 1), "0.06")):
        delstab = DelStab(same, epsilon=epsilon, delta=delta)
        assert delstab.cost == PrivacyCost(epsilon, delta, neighbors="replace")
    ledger = PrivacyLedger(2, "1e-5")
    delstab = DelStab(same, epsilon=1, delta="1e-6")
    ledger.spend(delstab)
    ledger.spend(delstab, "again")
    assert [entry.cost for entry in ledger.entries] == [delstab.cost] * 2
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(delstab)


def test_optimal_leaves_out_fewer_users_than_the_others_but_another_split_even_fewer() -> None:
    for epsilon, delta in itertools.product(("0.3", 1, 4), ("0.1", "1e-6")):
        left_out = [
            DelStab(ALGORITHMS["constant"], epsilon=epsilon, delta=delta, calibration=name).deletions
            for name in ("optimal", "tight", "paper")
        ]
        assert left_out == sorted(left_out)
        assert left_out[0] < left_out[1]
    most = _core.RefusalTable(_core.Level(F(1), F(99, 100)), F(1, 2 * 10**6))
    assert 2 * (len(most.numerators) - 1) - 2 < 68
