"""The engines of DelStab against sets enumerated one by one: distributions, smallest stable sizes, and neighbors."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import delstab as reference
from support.delstab_engines import distribution_of, inner_pmfs, same_pmf, stability
from userdp import _core
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.delstab.stable_sets import Stability, TotalPmfs

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "delstab_cases.json").read_text(encoding="utf-8"))["cases"]
INSTANCES = 1000
WITH_NEIGHBORS = 200


def cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", [case for case in CASES if case["kind"] == kind], ids=lambda case: case["id"]
    )


def pmf_in(expected: dict[str, str], outputs: tuple[Any, ...]) -> reference.Distribution:
    return {(o if o in (*outputs, reference.BOTTOM) else int(o)): F(mass) for o, mass in expected.items()}


def count_pmf(kept: tuple[Any, ...]) -> list[F]:
    return [F(o == sum(user[0] for user in kept)) for o in range(3)]


def noisy_count_pmf(kept: tuple[Any, ...]) -> list[F]:
    weights = [F(1, 2 ** abs(o - sum(user[0] for user in kept))) for o in range(3)]
    return [weight / sum(weights) for weight in weights]


@cases("delstab_pmf")
def test_published_pmfs(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    pmf = count_pmf if given["alg"].startswith("exact count") else noisy_count_pmf
    users = tuple((value,) for value in given["x"])
    inner = inner_pmfs(range(3), F(given["exp_eps_L"]), F(given["delta_L"]))
    sizes = {size: F(mass) for size, mass in enumerate(given["R1_pmf"])}
    for algorithm in (finite_algorithm(range(3))(pmf), SymmetricAlgorithm(range(3), pmf)):
        for covered in (False, len(users) - given["deletions"] == 1):
            found = stability(algorithm, users, given["deletions"], inner, covered=covered)
            assert found.smallest == expected["r_star"]
            assert same_pmf(distribution_of(found, range(3), sizes), pmf_in(expected["pmf"], (0, 1, 2)))


@cases("delstab_typed_pmf")
def test_published_pmfs_of_types(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    inner_delta, kappa, sizes = reference.paper_parameters(F(given["exp_eps_bar"]), F(given["delta"]))
    users = tuple((value,) for value, count in enumerate(given["counts"]) for _ in range(count))

    def pmf(kept: tuple[Any, ...]) -> list[F]:
        return [F(999, 1000), F(1, 1000)] if kept[0] == (0,) else [F(1, 1000), F(999, 1000)]

    inner = inner_pmfs((0, 1), F(given["exp_eps_bar"]), inner_delta)
    if "error" in expected:
        assert len(users) < 4 * kappa  # refused by the public class; see test_delstab.py
        return
    found = stability(SymmetricAlgorithm((0, 1), pmf), users, 4 * kappa, inner)
    assert found.smallest == expected["r_star"]
    assert same_pmf(distribution_of(found, (0, 1), dict(enumerate(sizes))), pmf_in(expected["pmf"], (0, 1)))


@cases("r_star_additive")
def test_published_windows(case: dict[str, Any]) -> None:
    given = case["input"]
    found = _core.smallest_window(sorted(given["values"]), given["deletions"], given["t"], given["deletions"])
    assert found is not None
    assert found[0] == case["expected"]["r_star"]


@cases("approx")
def test_published_verdicts(case: dict[str, Any]) -> None:
    given = case["input"]
    outputs = sorted({*given["P"], *given["Q"]})
    pmfs = {value: [F(given[side].get(o, 0)) for o in outputs] for value, side in ((0, "P"), (1, "Q"))}
    inner = inner_pmfs(outputs, F(given["exp_eps"]), F(given["delta"]))
    algorithm = finite_algorithm(outputs)(lambda kept: pmfs[kept[0][0]])
    found = stability(algorithm, ((0,), (1,)), 1, inner)
    assert (found.smallest == 0) is case["expected"]["verdict"]


def random_pmfs(source: random.Random, outputs: int, failing: float) -> Any:
    """A few distributions, near and far apart; a dataset gets one of them, or None, at random and for good."""
    menu = [(5, 5, 0), (5, 4, 1), (4, 5, 1), (6, 4, 0), (0, 5, 5), (10, 0, 0)]
    chosen = source.sample(menu, source.randint(2, 4))
    known: dict[str, Any] = {}

    def pmf(kept: Any) -> Any:
        name = repr(kept)
        if name not in known:
            weights = source.choices(chosen, weights=[8, 3, 1, 1][: len(chosen)])[0]
            known[name] = None if source.random() < failing else [F(weight, 10) for weight in weights]
        return known[name]

    return pmf


def raising(distribution: Any, key: Any) -> Any:
    def pmf(kept: Any) -> Any:
        found = distribution(key(kept))
        if found is None:
            raise ArithmeticError("no distribution here")
        return found

    return pmf


def as_dict(pmf: Any) -> Any:
    return lambda kept: None if pmf(kept) is None else dict(enumerate(pmf(kept)))


LEVELS = [(F(3, 2), F(1, 20)), (F(1), F(1, 10)), (F(2), F(0)), (F(5, 4), F(1, 8))]
SIZES = [F(1, 5), F(3, 5), F(1, 5)]


def neighbors(users: tuple[Any, ...], values: range) -> Any:
    for place, value in itertools.product(range(len(users)), values):
        if users[place] != (value,):
            yield (*users[:place], (value,), *users[place + 1 :])


def lipschitz(first: int | None, second: int | None, deletions: int) -> bool:
    """Sizes differ by at most 1; "none of at most D" counts as D + 1."""
    sizes = [deletions + 1 if size is None else size for size in (first, second)]
    return abs(sizes[0] - sizes[1]) <= 1


def test_labeled_users_against_sets() -> None:
    source = random.Random(1)
    seen: set[int | None] = set()
    for instance in range(INSTANCES):
        n, values = source.randint(2, 5), range(source.randint(2, 3))
        deletions = source.randint(1, min(n, 3))
        multiplier, delta = source.choice(LEVELS)
        pmf = random_pmfs(source, 3, source.choice((0, 0, 0.05)))
        algorithm = finite_algorithm(range(3))(raising(pmf, lambda kept: kept))
        compatible = reference.relation(as_dict(pmf), multiplier, delta)
        users = tuple((source.choice(values),) for _ in range(n))
        inner = inner_pmfs(range(3), multiplier, delta)
        sizes = dict(enumerate(SIZES[: deletions + 1]))
        expected = reference.smallest_stable_size(users, deletions, compatible)
        seen.add(expected)
        found = stability(algorithm, users, deletions, inner)
        assert found.smallest == expected
        brute = reference.algorithm_1(users, as_dict(pmf), SIZES[: deletions + 1], deletions, compatible)
        assert same_pmf(distribution_of(found, range(3), sizes), brute)
        if isinstance(found, Stability) and found.smallest is not None:
            layers = [len(reference.stable_sets(users, size, deletions, compatible)) for size in range(deletions + 1)]
            assert found.layer_sizes(deletions) == tuple(layers)
        if n - deletions == 1:
            assert stability(algorithm, users, deletions, inner, covered=True).smallest == expected
        if instance < WITH_NEIGHBORS:
            for other in neighbors(users, values):
                size = stability(algorithm, other, deletions, inner).smallest
                assert lipschitz(expected, size, deletions)
    assert seen >= {None, 0, 1, 2}


def counts_of(kept: Any) -> tuple[int, ...]:
    values = [user[0] for user in kept]
    return tuple(map(values.count, range(3)))


def test_types_against_count_vectors() -> None:
    source = random.Random(2)
    seen: set[int | None] = set()
    for instance in range(INSTANCES):
        n = source.randint(2, 7)
        deletions = source.randint(1, min(n, 4))
        multiplier, delta = source.choice(LEVELS)
        pmf = random_pmfs(source, 3, source.choice((0, 0, 0.05)))
        algorithm = SymmetricAlgorithm(range(3), raising(pmf, counts_of))
        compatible = reference.relation(as_dict(pmf), multiplier, delta)
        users = tuple((source.choice((0, 0, 1, 2)),) for _ in range(n))
        inner = inner_pmfs(range(3), multiplier, delta)
        typed = reference.Typed(as_dict(pmf), n, deletions, compatible, SIZES)
        expected = typed.smallest_stable_size(counts_of(users))
        seen.add(expected)
        found = stability(algorithm, users, deletions, inner)
        assert found.smallest == expected
        sizes = dict(enumerate(SIZES[: deletions + 1]))
        assert same_pmf(distribution_of(found, range(3), sizes), typed.released(counts_of(users), sizes))
        if instance < WITH_NEIGHBORS:
            for other in neighbors(users, range(3)):
                size = stability(algorithm, other, deletions, inner).smallest
                assert size == typed.smallest_stable_size(counts_of(other))
                assert lipschitz(expected, size, deletions)
    assert seen >= {None, 0, 1, 2}


def test_pools_of_few_types_against_count_vectors() -> None:
    """A pool with more than `max_distinct_users` types counts as unstable."""
    source = random.Random(3)
    seen: set[int | None] = set()
    for instance in range(300):
        n, allowed = source.randint(3, 7), source.randint(1, 2)
        deletions = source.randint(1, min(n - 1, 4))
        multiplier, delta = source.choice(LEVELS)
        pmf = random_pmfs(source, 3, 0)
        algorithm = SymmetricAlgorithm(range(3), raising(pmf, counts_of))
        compatible = reference.relation(as_dict(pmf), multiplier, delta)
        users = tuple((source.choice((0, 0, 0, 1, 2)),) for _ in range(n))
        inner = inner_pmfs(range(3), multiplier, delta)

        class FewTypes(reference.Typed):
            limit = allowed

            def stable(self, pool: tuple[int, ...]) -> bool:
                return sum(map(bool, pool)) <= self.limit and super().stable(pool)

        typed = FewTypes(as_dict(pmf), n, deletions, compatible, SIZES)
        datasets = [users] if instance >= 50 else [users, *neighbors(users, range(3))]
        sizes = [
            stability(algorithm, other, deletions, inner, max_distinct_users=allowed).smallest for other in datasets
        ]
        assert sizes == [typed.smallest_stable_size(counts_of(other)) for other in datasets]
        assert all(lipschitz(sizes[0], size, deletions) for size in sizes)
        seen.add(sizes[0])
    assert seen >= {None, 0, 1, 2}


def test_statistics_by_their_values_against_sets() -> None:
    source = random.Random(4)
    seen: set[int | None] = set()
    for instance in range(INSTANCES):
        n = source.randint(2, 5)
        deletions = source.randint(1, min(n, 3))
        multiplier, delta = source.choice(LEVELS)
        pmf = random_pmfs(source, 3, source.choice((0, 0, 0.05)))
        algorithm = AdditiveAlgorithm(
            range(3),
            lambda user: user[0],
            lambda total, kept, pmf=pmf: raising(pmf, lambda key: key)(total),  # type: ignore[misc]
            statistic_range=(0, 2),
        )
        compatible = reference.relation(as_dict(pmf), multiplier, delta)
        inner = inner_pmfs(range(3), multiplier, delta)
        users = tuple((source.choice((0, 0, 1, 2)),) for _ in range(n))

        def of_dataset(kept: Any, pmf: Any = pmf) -> Any:
            return as_dict(pmf)(sum(user[0] for user in kept))

        def related(a: Any, b: Any, compatible: Any = compatible) -> bool:
            return bool(compatible(sum(user[0] for user in a), sum(user[0] for user in b)))

        expected = reference.smallest_stable_size(users, deletions, related)
        seen.add(expected)
        found = stability(algorithm, users, deletions, inner, compatibility="exact")
        assert found.smallest == expected
        sizes = SIZES[: deletions + 1]
        brute = reference.algorithm_1(users, of_dataset, sizes, deletions, related)
        assert same_pmf(distribution_of(found, range(3), dict(enumerate(sizes))), brute)
        if instance < WITH_NEIGHBORS:
            for other in neighbors(users, range(3)):
                size = stability(algorithm, other, deletions, inner, compatibility="exact").smallest
                assert lipschitz(expected, size, deletions)
    assert seen >= {None, 0, 1, 2}


def test_windows_against_sets() -> None:
    """Under the distance relation windows of sorted values are as good as any sets."""
    source = random.Random(5)
    seen: set[int | None] = set()
    for instance in range(INSTANCES):
        n, high = source.randint(2, 6), source.randint(1, 4)
        deletions = source.randint(1, min(n, 4))
        distance = source.choice((-1, 0, 0, 1, 1, 2, 3))
        pmfs = [[F(source.randint(1, 9), 10)] for _ in range(high * n + 1)]
        exact = [([int(10 * pmf[0]), 10 - int(10 * pmf[0])], 10) for pmf in pmfs]
        totals = TotalPmfs(0, _core.PmfMatrix.from_masses(exact), distance)
        algorithm = AdditiveAlgorithm((0, 1), lambda user: user[0], lambda total, kept: [], statistic_range=(0, high))
        inner = inner_pmfs((0, 1), F(2), F(1, 10))

        def sized(users: Any, algorithm: Any = algorithm, inner: Any = inner, totals: Any = totals) -> Any:
            return stability(algorithm, users, deletions, inner, totals=totals)  # noqa: B023

        def compatible(a: int, b: int, distance: int = distance) -> bool:
            return abs(a - b) <= distance

        def expected_of(users: Any, compatible: Any = compatible) -> int | None:
            values = [user[0] for user in users]
            return reference.smallest_stable_size_of_totals(values, deletions, compatible)  # noqa: B023

        users = tuple((source.randint(0, high),) for _ in range(n))
        found, expected = sized(users), expected_of(users)
        seen.add(expected)
        assert found.smallest == expected
        refusal = [F(0), F(1, 5), F(4, 5), F(1)]
        brute = reference.window_pmf(
            [user[0] for user in users],
            lambda total: {0: pmfs[total][0], 1: 1 - pmfs[total][0]},  # noqa: B023
            refusal,
            deletions,
            distance,
        )
        released = 1 - refusal[min(expected if expected is not None else 3, 3)]
        assert same_pmf(distribution_of(found, (0, 1), {} if expected is None else {expected: released}), brute)
        if instance < WITH_NEIGHBORS:
            for other in neighbors(users, range(high + 1)):
                assert lipschitz(expected, sized(other).smallest, deletions)
    assert seen >= {None, 0, 1, 2}
