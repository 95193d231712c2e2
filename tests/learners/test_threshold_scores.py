"""Scores of thresholds and medians against their definitions, and by how much one user changes them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations_with_replacement, pairwise, product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from oracle import thresholds as oracle
from userdp import _core
from userdp.exceptions import BudgetError

Row: TypeAlias = tuple[int, int]
User: TypeAlias = tuple[Row, ...]

CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]
LARGEST = 2**64 - 1


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expect"], id=case["id"]) for case in CASES if case["kind"] == kind]


def sweep_of(
    users: Sequence[Sequence[Sequence[int]]], m: int, domain_size: int, order: random.Random | None = None
) -> _core.ThresholdSweep:
    rows = [(x, y, code) for code, user in enumerate(users) for x, y in user]
    if order is not None:
        order.shuffle(rows)
    points, labels, codes = zip(*rows, strict=True) if rows else ((), (), ())
    return _core.ThresholdSweep(
        np.array(points, dtype=np.uint64),
        np.array(labels, dtype=np.uint8),
        np.array(codes, dtype=np.uint32),
        len(users),
        m,
        domain_size,
    )


Groups: TypeAlias = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]


def expanded(groups: Groups, last: int) -> list[int]:
    """The score of every candidate."""
    starts, scores = (array.tolist() for array in groups)
    found = oracle.groups_of(starts, scores, last)
    assert all(b + 1 == a for (_, b, _), (a, _, _) in pairwise(found))
    return [score for a, b, score in found for _ in range(a, b + 1)]


def check_errors(users: Sequence[Any], m: int, domain_size: int, order: random.Random | None = None) -> None:
    """Profiles and least errors, through points at which scores change."""
    sweep = sweep_of(users, m, domain_size, order)
    rows = sorted(x for user in users for x, _ in user)
    assert sweep.rows == len(rows)
    assert sweep.minimal_errors().tolist() == oracle.minimal_errors(users, m, domain_size)
    for t in range(m):
        starts, scores = sweep.groups(t)
        assert starts.tolist() == [0, *rows]
        assert scores.tolist() == [oracle.errors(users, u, t, m) for u in starts.tolist()]
        padded = sweep.groups(t, m * len(users) + 1)
        assert len(padded[0]) == max(len(rows), m * len(users)) + 1
        missing = len(padded[0]) - len(starts)
        assert padded[0].tolist() == [0] * missing + starts.tolist()
        assert padded[1].tolist() == [int(scores[0])] * missing + scores.tolist()
        if domain_size <= 5:
            everywhere = [oracle.errors(users, u, t, m) for u in range(domain_size + 1)]
            assert expanded((starts, scores), domain_size) == everywhere
            assert sweep.minimal_errors()[t] == min(everywhere)


def check_medians(sweep: _core.ThresholdSweep, users: Sequence[Any], low: int, high: int, s: int) -> None:
    starts, scores = sweep.median_groups(low, high, s)
    assert len(starts) == 2 * len(users) + 1
    assert starts[0] == low
    assert (starts[1:] >= starts[:-1]).all()
    expected = [oracle.median_score(users, low, high, u, s) for u in range(low, high + 1)]
    assert expanded((starts, scores), high) == expected


@pytest.mark.parametrize(("given", "expected"), cases("threshold_profile"))
def test_known_profiles(given: dict[str, Any], expected: dict[str, Any]) -> None:
    m = max(len(user) for user in given["users"])
    sweep = sweep_of(given["users"], m, given["N"])
    starts, scores = sweep.groups(given["t"])
    found = oracle.groups_of(starts.tolist(), scores.tolist(), given["N"])
    assert found == [tuple(segment) for segment in expected["segments_start_end_K"]]
    assert sweep.minimal_errors()[given["t"]] == expected["min_K"]


@pytest.mark.parametrize(("given", "expected"), cases("private_median"))
def test_known_medians(given: dict[str, Any], expected: dict[str, Any]) -> None:
    m = max(len(user) for user in given["users"])
    points = (x for user in given["users"] for x, _ in user)
    groups = sweep_of(given["users"], m, max(given["r"], *points)).median_groups(given["l"], given["r"], given["s"])
    assert expanded(groups, given["r"]) == expected["K"]
    found = oracle.groups_of(groups[0].tolist(), groups[1].tolist(), given["r"])
    assert found == [tuple(group) for group in expected["groups"]]


@pytest.mark.parametrize(("given", "expected"), cases("private_t"))
def test_known_least_errors(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sweep_of(given["users"], given["m"], given["N"]).minimal_errors().tolist() == expected["min_K_by_t"]


def users_of(domain_size: int, m: int) -> list[User]:
    """All users with at most m rows."""
    rows = list(product(range(1, domain_size + 1), (0, 1)))
    return list(chain.from_iterable(combinations_with_replacement(rows, size) for size in range(m + 1)))


@pytest.mark.parametrize("m", [1, 2])
def test_all_small_data_sets(m: int) -> None:
    order = random.Random(m)
    for n in range(4):
        for users in combinations_with_replacement(users_of(3, m), n):
            check_errors(users, m, 3, order)


def test_medians_of_all_small_data_sets() -> None:
    for n in range(3):
        for users in combinations_with_replacement(users_of(3, 2), n):
            sweep = sweep_of(users, 2, 3)
            for low, high in ((0, 3), (0, 0), (3, 3), (1, 2), (2, 3)):
                for s in (0, 1):
                    check_medians(sweep, users, low, high, s)


def random_users(source: random.Random) -> tuple[list[User], int, int]:
    m = source.choice((1, 2, 3, 5, 8))
    domain_size = source.choice((1, 2, 5, 30, 1000))
    n = source.randint(0, 12)
    sizes = [source.choice((m, m, source.randint(0, m))) for _ in range(n)]
    row = lambda: (source.randint(1, domain_size), source.randint(0, 1))  # noqa: E731
    return [tuple(row() for _ in range(size)) for size in sizes], m, domain_size


def test_random_data_sets_with_ties_and_short_users() -> None:
    source = random.Random(3)
    for _ in range(400):
        users, m, domain_size = random_users(source)
        check_errors(users, m, domain_size, source)
        sweep = sweep_of(users, m, domain_size, source)
        low, high = sorted(source.choices(range(domain_size + 1), k=2))
        check_medians(sweep, users, low, high, source.randrange(m))
        starts, scores = sweep.groups(source.randrange(m))
        expected = min(expanded((starts, scores), domain_size)[low : high + 1])
        assert _core.range_minimum(starts, scores, low, high) == expected


@pytest.mark.parametrize("spread", [300, 10**6, LARGEST])
def test_long_data_sets(spread: int) -> None:
    """Many blocks of rows, against sums over users at some thresholds; half of the points are at one place."""
    generator = np.random.default_rng(4)
    n, m, rows = 3000, 60, 150_000
    users = np.sort(generator.integers(0, n, rows)).astype(np.uint32)
    kept, sizes = _core.first_rows(users, n, m)
    users = users[kept]
    points = generator.integers(1, spread, len(users), dtype=np.uint64, endpoint=True)
    points[generator.random(len(users)) < 0.5] = spread // 3
    labels = ((points > spread // 2) ^ (generator.random(len(users)) < 0.3)).astype(np.uint8)
    sweep = _core.ThresholdSweep(points, labels, users, n, m, spread)
    least = sweep.minimal_errors()
    for t in (0, 7, 20, 59):
        starts, scores = sweep.groups(t)
        assert least[t] == scores.min()
        for u in (0, spread // 3 - 1, spread // 3, spread // 2, spread):
            wrong = np.bincount(users, (points > np.uint64(u)) != labels, n).astype(np.int64)
            expected = int((wrong * m > t * sizes.astype(np.int64)).sum())
            assert _core.range_minimum(starts, scores, u, u) == expected
    low, high = spread // 5, spread // 5 * 4
    starts, scores = sweep.median_groups(low, high, 3)
    for u in (low, spread // 3 - 1, spread // 3, spread // 2, high):
        sides = [(points >= np.uint64(low)) & (points < np.uint64(u)), (points > np.uint64(u)) & (points <= high)]
        expected = max(int((np.bincount(users[side], minlength=n) > 3).sum()) for side in sides)
        assert _core.range_minimum(starts, scores, u, u) == expected


def test_charges_of_short_users_are_rounded_up() -> None:
    # One of three rows wrong, of at most seven: ceil(7 / 3) = 3 mistakes.
    sweep = sweep_of([((5, 1), (6, 1), (7, 1))], 7, 10)
    assert [int(sweep.groups(t)[1][1]) for t in range(7)] == [1, 1, 1, 0, 0, 0, 0]


def test_the_largest_domain_and_points_at_both_ends() -> None:
    users: list[User] = [((1, 0), (LARGEST, 1)), ((LARGEST, 0), (LARGEST, 1)), ((1, 1),), (), ((2**63, 0), (2**63, 0))]
    check_errors(users, 2, LARGEST)
    sweep = sweep_of(users, 2, LARGEST)
    for s in (0, 1):
        for low, high in ((0, LARGEST), (1, LARGEST), (LARGEST, LARGEST), (2**63 - 1, 2**63 + 1), (0, 0)):
            starts, scores = sweep.median_groups(low, high, s)
            ends = [*starts[1:].tolist(), high + 1]
            for u in {low, high, *(x for x in (1, 2, 2**63, 2**63 + 1, LARGEST - 1) if low <= x <= high)}:
                found = oracle.score_at(starts.tolist(), scores.tolist(), high, u)
                assert found == oracle.median_score(users, low, high, u, s)
            assert all(low <= end <= high + 1 for end in ends)
    starts, scores = sweep.groups(0)
    assert _core.range_minimum(starts, scores, LARGEST, LARGEST) == oracle.errors(users, LARGEST, 0, 2)
    assert _core.range_minimum(starts, scores, 0, LARGEST) == oracle.minimal_errors(users, 2, LARGEST)[0]


def test_empty_groups_have_the_score_of_the_next() -> None:
    users: list[User] = [((4, 0), (4, 0)), ((4, 1), (4, 1)), ((4, 0), (2, 0))]
    for groups in (sweep_of(users, 2, 9).groups(0), sweep_of(users, 2, 9).median_groups(0, 9, 0)):
        starts, scores = groups
        same = starts[:-1] == starts[1:]
        assert same.any()
        assert (scores[:-1][same] == scores[1:][same]).all()


def test_empty_groups_are_no_candidates() -> None:
    starts, scores = np.array([0, 3, 3, 5, 5], dtype=np.uint64), np.array([4, -9, 2, -9, 3], dtype=np.int64)
    found = [_core.range_minimum(starts, scores, a, b) for a, b in ((0, 2), (0, 3), (3, 4), (4, 9), (5, 5))]
    assert found == [4, 2, 2, 2, 3]


def test_no_users_and_no_rows() -> None:
    for users in ([], [()], [(), ()]):
        check_errors(users, 3, 5)
        check_medians(sweep_of(users, 3, 5), users, 0, 5, 0)


Scores: TypeAlias = Callable[[tuple[User, ...]], Iterator[int]]


def largest_change(scores: Scores, universe: Sequence[User], n: int) -> int:
    """The most any score changes when one of n users is replaced by any other, over all data sets."""
    table = {users: np.array(list(scores(users))) for users in product(universe, repeat=n)}
    return max(
        int(np.abs(vector - table[(*users[:place], other, *users[place + 1 :])]).max())
        for users, vector in table.items()
        for place in range(n)
        for other in universe
    )


def released(users: tuple[User, ...]) -> Iterator[int]:
    sweep = sweep_of(users, 2, 3)
    yield from sweep.minimal_errors().tolist()
    for t in (0, 1):
        yield from expanded(sweep.groups(t), 3)
        for low, high in ((0, 3), (1, 2)):
            yield from expanded(sweep.median_groups(low, high, t), high)


def rows_wrong(users: tuple[User, ...]) -> Iterator[int]:
    """Mistakes in all rows: what the scores would be without a limit for each user."""
    return (sum(oracle.charge(user, u, 2) for user in users) for u in range(4))


def first_local_minimum(users: tuple[User, ...]) -> Iterator[int]:
    """The least errors by walking up from 0 while they fall: not a minimum over all thresholds."""
    scores = [oracle.errors(users, u, 0, 2) for u in range(4)]
    u = 0
    while u < 3 and scores[u + 1] < scores[u]:
        u += 1
    yield scores[u]


def test_one_user_changes_each_score_by_one() -> None:
    universe = users_of(3, 2)
    assert largest_change(released, universe, 2) == 1


@pytest.mark.parametrize("scores", [rows_wrong, first_local_minimum])
def test_one_user_changes_other_scores_by_more(scores: Scores) -> None:
    assert largest_change(scores, users_of(3, 2), 2) > 1


Arguments: TypeAlias = dict[str, Any]
GOOD: Arguments = {"points": [1, 2], "labels": [0, 1], "users": [0, 1], "n_users": 2, "m": 1, "domain_size": 5}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"points": [0, 2]}, "points: must all be in 1..=5"),
        ({"points": [1, 6]}, "points: must all be in 1..=5"),
        ({"points": [1]}, "labels, users: "),
        ({"labels": [0]}, "labels, users: "),
        ({"labels": [0, 2]}, "labels: must all be 0 or 1"),
        ({"users": [0, 2]}, "users: must all be below n_users, 2"),
        ({"users": [1, 1]}, "users: must each have at most m = 1 rows"),
        ({"m": 0}, "m: is 0"),
        ({"m": 2**31}, "m: is 2147483648"),
        ({"n_users": 2**31}, "n_users: is 2147483648"),
    ],
)
def test_bad_rows(changed: Arguments, message: str) -> None:
    given = GOOD | changed
    points, labels = np.array(given["points"], dtype=np.uint64), np.array(given["labels"], dtype=np.uint8)
    users = np.array(given["users"], dtype=np.uint32)
    with pytest.raises(ValueError, match=f"^{message}"):
        _core.ThresholdSweep(points, labels, users, given["n_users"], given["m"], given["domain_size"])


def test_bad_questions() -> None:
    sweep = sweep_of([((1, 0),)], 2, 5)
    with pytest.raises(ValueError, match="t: is 2; it must be below m = 2"):
        sweep.groups(2)
    for low, high in ((3, 2), (0, 6)):
        with pytest.raises(ValueError, match="low, high: "):
            sweep.median_groups(low, high, 0)
    starts, scores = sweep.groups(0)
    for low, high in ((3, 2), (0, 0)):
        with pytest.raises(ValueError, match="low: "):
            _core.range_minimum(starts + 1, scores, low, high)
    with pytest.raises(ValueError, match="scores: "):
        _core.range_minimum(starts, scores[1:], 0, 0)


@pytest.mark.parametrize(("n", "m"), [(1, 2**26 + 1), (2**13 + 1, 2**25)])
def test_work_that_is_too_long_is_refused(n: int, m: int) -> None:
    sweep = sweep_of([((1, 0),)] * n, m, 5)
    assert sweep.groups(m - 1)[1].tolist()[0] == n
    with pytest.raises(BudgetError, match="use a smaller m"):
        sweep.minimal_errors()


def numbered(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    distinct = sorted(set(ids))
    return [distinct.index(one) for one in ids], distinct


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [7],
        [3, 3, 3],
        [1, 1, 2, 5, 5],
        [5, 1, 1, 5],
        [-(2**63), 2**63 - 1, 0, -1, -(2**63)],
        [2**63 - 1, -(2**63)],
    ],
)
def test_users_are_numbered_in_order_of_their_ids(ids: list[int]) -> None:
    codes, distinct = _core.user_codes(np.array(ids, dtype=np.int64))
    assert (codes.tolist(), distinct.tolist()) == numbered(ids)


def test_users_of_random_ids() -> None:
    source = random.Random(5)
    for spread in (3, 1000, 2**40, 2**62):
        for rows in (10, 300):
            ids = [source.randint(-spread, spread) * source.randint(0, 1) for _ in range(rows)]
            codes, distinct = _core.user_codes(np.array(ids, dtype=np.int64))
            assert (codes.tolist(), distinct.tolist()) == numbered(ids)


def test_many_rows_are_numbered_as_by_numpy() -> None:
    generator = np.random.default_rng(6)
    for ids in (
        generator.integers(-(2**62), 2**62, 200_000),
        generator.integers(0, 50, 200_000),
        np.where(generator.random(200_000) < 0.5, -(2**63), generator.integers(0, 9, 200_000)),
    ):
        expected_ids, expected = np.unique(ids, return_inverse=True)
        codes, distinct = _core.user_codes(ids.astype(np.int64))
        assert (codes == expected).all()
        assert (distinct == expected_ids).all()


def test_first_rows_of_each_user() -> None:
    source = random.Random(7)
    for _ in range(50):
        n, m = source.randint(1, 6), source.randint(0, 4)
        codes = [source.randrange(n) for _ in range(source.randint(0, 30))]
        kept, sizes = _core.first_rows(np.array(codes, dtype=np.uint32), n, m)
        assert kept.tolist() == [codes[:row].count(code) < m for row, code in enumerate(codes)]
        assert sizes.tolist() == [min(m, codes.count(code)) for code in range(n)]


def test_codes_of_no_user() -> None:
    with pytest.raises(ValueError, match="codes: every code must be below the number of users, 2"):
        _core.first_rows(np.array([0, 2], dtype=np.uint32), 2, 1)
