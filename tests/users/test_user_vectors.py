"""Vectors of users: their integers against fractions, what one user changes, and that nobody else matters."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from oracle import vectors as oracle
from userdp import BudgetError
from userdp.means.winsorized import padded
from userdp.users import GivenVectors, MeanVectors, UserTable, UserVectors

CASES = json.loads((Path(__file__).parents[1] / "data/mean_erm_sco/vectors.json").read_text())
ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0]


def people_data(people: list[list[list[float]]], columns: int, order: npt.NDArray[np.intp] | None = None) -> UserTable:
    """Rows of users, in an order that keeps each one's own."""
    rows = [(user, row) for user, person in enumerate(people) for row in person]
    if order is not None:
        rows = [rows[place] for place in order]
    X = np.array([row for _, row in rows], dtype=np.float64).reshape(len(rows), columns)
    users = np.array([user for user, _ in rows], dtype=np.uint32)
    return UserTable(X, np.zeros(len(rows), dtype=np.uint8), users, len(people), 1)


def some_people(seed: int, n: int, columns: int, scale: float = 1.0) -> list[list[list[float]]]:
    """Users with 0 to 4 rows, some of whose numbers are not in any range."""
    rng = np.random.default_rng(seed)
    people = []
    for _ in range(n):
        rows = rng.normal(size=(rng.integers(0, 5), columns)) * scale
        odd = rng.random(rows.shape) < 0.05
        rows[odd] = rng.choice(ODD, size=odd.sum())
        people.append(rows.tolist())
    return people


def shuffled(people: list[list[list[float]]], seed: int) -> npt.NDArray[np.intp]:
    """A random order of all rows in which everybody's own keep theirs."""
    users = np.repeat(np.arange(len(people)), [len(person) for person in people])
    mixed = np.random.default_rng(seed).permutation(users)
    places = {user: iter(np.flatnonzero(users == user)) for user in range(len(people))}
    return np.array([next(places[user]) for user in mixed], dtype=np.intp)


def signs_like(columns: int) -> npt.NDArray[np.int8]:
    return np.where(np.arange(padded(columns)) % 3 == 1, -1, 1).astype(np.int8)


def nearly(ours: npt.NDArray[np.integer], exact: list[int]) -> None:
    """Equal, but for one number that is within rounding of an integer."""
    difference = np.abs(ours.astype(np.int64) - np.array(exact))
    assert difference.sum() <= 1, (ours, exact)


def one(vectors: UserVectors, user: int) -> list[list[int]]:
    """The integers of one user, of every kind."""
    own, d = vectors.subset([user]), vectors.dimension
    return [
        own.clipped_sum(0.01, 0.7, 2.0**-20).tolist(),
        [*(moments := own.clipped_moments(0.01, 0.7, 2.0**-20, 2**20))[0].tolist(), moments[1]],
        np.concatenate(own.clipping_excess(0.01, 0.2, 4.0, 2.0**-20, 3)).tolist(),
        own.filled().clipped_sum(0.01, 0.7, 2.0**-20).tolist(),
        own.winsorized_sum(np.linspace(-0.5, 0, d), 3000, 2.0**-12).tolist(),
        own.bin_counts(37, 0.9).ravel().tolist(),
        own.counts_within(0.0, [0.1, 0.5, 1.0]).tolist(),
        [int(x) for bins, counts in own.occupied_bins(2**62, 1.0) for x in (*bins, *counts)],
    ]


@pytest.mark.parametrize("norm", ["l2", "max"])
@pytest.mark.parametrize("rotate", [False, True])
def test_integers_are_those_of_fractions(norm: str, rotate: bool) -> None:
    columns, bound, center = 5, 0.9, [0.25, -0.5, 0.0, 1.0, 0.125]
    people = some_people(3, 40, columns)
    signs = signs_like(columns) if rotate else None
    vectors = MeanVectors(people_data(people, columns), bound, norm, center, signs)
    d = vectors.dimension
    assert d == (8 if rotate else 5)
    low, radii = np.linspace(-0.5, -0.25, d), [0.2, 0.4, 0.8]
    for user, person in enumerate(people):
        own = vectors.subset([user])
        clipped, winsorized = own.clipped_sum(0.03125, 0.5, 2.0**-16), own.winsorized_sum(low, 4001, 2.0**-13)
        again, second = own.clipped_moments(0.03125, 0.5, 2.0**-16, 2**20)
        assert again.tolist() == clipped.tolist()
        counts, near = own.bin_counts(11, 0.75), own.counts_within(0.03125, radii)
        if not person:
            assert not clipped.any()
            assert second == 0
            middle = own.filled().clipped_sum(0.03125, 0.5, 2.0**-16)
            assert middle.tolist() == oracle.clip([Fraction(0)] * d, [0.03125] * d, 0.5, 2.0**-16)
            assert (winsorized == 2000).all()
            assert not counts.any()
            assert not near.any()
            continue
        mean = oracle.user_mean(person, bound, norm, center)
        mean = mean if signs is None else oracle.rotated(mean, signs.tolist())
        nearly(clipped, oracle.clip(mean, [0.03125] * d, 0.5, 2.0**-16))
        assert oracle.squared([int(y) for y in clipped]) <= 2**30
        # The squared distance in units of the squared diameter, 1.
        assert abs(second - min(oracle.squared([x - Fraction(1, 32) for x in mean]), 1) * 2**20) <= 1
        nearly(winsorized, oracle.winsorized(mean, low.tolist(), 4001, 2.0**-13))
        assert counts.sum(axis=1).tolist() == [1] * d
        nearly(counts.argmax(axis=1), [oracle.bin_of(x, 11, 0.75) for x in mean])
        assert near.tolist() == [oracle.within(mean, [0.03125] * d, radius) for radius in radii]


def test_dyadic_numbers_are_exact() -> None:
    rng = np.random.default_rng(0)
    people = [(rng.integers(-64, 65, size=(m, 4)) / 64).tolist() for m in [1, 2, 4, 8] * 8]
    vectors = MeanVectors(people_data(people, 4), 1.0, "max")
    low, steps, grid = [-0.5, -0.25, -1.0, 0.0], 70, 2.0**-7
    exact = [oracle.user_mean(person, 1.0, "max", [0] * 4) for person in people]
    sums = np.sum([oracle.winsorized(mean, low, steps, grid) for mean in exact], axis=0)
    assert vectors.winsorized_sum(low, steps, grid).tolist() == sums.tolist()
    counts = np.zeros((4, 16), dtype=int)
    for mean in exact:
        for j, x in enumerate(mean):
            counts[j, oracle.bin_of(x, 16, 1.0)] += 1
    assert vectors.bin_counts(16, 1.0).tolist() == counts.tolist()
    assert vectors.clipped_sum(0.0, 2.0, 2.0**-10).tolist() == [int(sum(x) * 1024) for x in zip(*exact, strict=True)]


@pytest.mark.parametrize("case", CASES["hadamard"])
def test_rotation_is_the_hadamard_matrix(case: dict[str, list[int]]) -> None:
    vector, transformed = case["vector"], case["transformed"]
    assert oracle.hadamard(vector) == transformed
    size, grid = len(vector), 2.0**-20
    vectors = GivenVectors(np.array([vector], dtype=np.float64), np.array([True]), np.ones(size, dtype=np.int8))
    steps = vectors.clipped_sum(0.0, 64.0, grid)
    assert steps * (grid * math.sqrt(size)) == pytest.approx(transformed, abs=1e-5)


def test_rotated_vectors_are_padded() -> None:
    for d, size in CASES["padded"].items():
        vectors = MeanVectors(people_data([[[0.5] * int(d)]], int(d)), 1.0, "max", signs=signs_like(int(d)))
        assert vectors.dimension == len(vectors.clipped_sum(0.0, 1.0, 0.5)) == size


@pytest.mark.parametrize("case", CASES["winsorized"])
def test_winsorized_means(case: dict[str, str]) -> None:
    x, low, high = [Fraction(x) for x in case["x"]], Fraction(case["low"]), Fraction(case["high"])
    assert sum(oracle.clamped(y, low, high) for y in x) / len(x) == Fraction(case["mean"])
    grid = 2.0**-20
    steps = int((high - low) / Fraction(grid))
    vectors = MeanVectors(people_data([[[float(y)]] for y in x], 1), 8.0)
    total = int(vectors.winsorized_sum(float(low), steps, grid)[0])
    assert float(low) + grid * total / len(x) == pytest.approx(float(Fraction(case["mean"])), abs=grid)


def test_rounding_half_up_would_double_a_norm() -> None:
    vector = [0.5] * 64
    vectors = GivenVectors(np.array([vector]), np.array([True]))
    assert not vectors.clipped_sum(0.0, 4.0, 1.0).any()
    # The twin: rounded half up, the integers are of norm 8 although the vector's is 4.
    assert oracle.squared([math.floor(x + 0.5) for x in vector]) == 64


def test_the_integers_decide() -> None:
    """sqrt(R^2 + 1) is R in floating point."""
    steps = 2**30
    vectors = GivenVectors(np.array([[float(steps), 1.0]]), np.array([True]))
    assert vectors.clipped_sum(0.0, float(steps), 1.0).tolist() == [steps - 1, 0]
    assert math.sqrt(steps**2 + 1) == steps


def test_one_user_changes_sums_by_what_is_stated() -> None:
    """All users of at most two rows over odd numbers, replaced by each other."""
    numbers = [0.0, 0.3, -0.7, 1e308, -math.inf, math.nan, 5e-324]
    rows = [list(row) for row in itertools.product(numbers, repeat=2)]
    people: list[list[list[float]]] = [[]]
    people += [[row] for row in rows] + [[a, b] for a, b in itertools.product(rows[::5], rows[::7])]
    for signs in (None, np.array([1, -1], dtype=np.int8)):
        vectors = MeanVectors(people_data(people, 2), 1.0, signs=signs)
        every = [vectors.subset([user]) for user in range(len(people))]
        clipped = np.array([own.clipped_sum([0.3, 0.0], 0.5, 0.125) for own in every])
        assert (clipped**2).sum(axis=1).max() <= 16
        change = clipped[:, None] - clipped[None]
        assert 8**2 * 0.7 < (change**2).sum(axis=2).max() <= 8**2
        winsorized = np.array([own.winsorized_sum([-0.5, 0.1], 5, 0.125) for own in every])
        assert np.ptp(winsorized, axis=0).tolist() == [5, 5]
        assert winsorized.min() == 0
        assert winsorized[0].tolist() == [2, 2]
        assert not clipped[0].any()
        counts = np.array([own.bin_counts(3, 1.0) for own in every]).astype(int)
        assert counts.sum(axis=2).tolist() == [[0, 0]] + [[1, 1]] * (len(people) - 1)
        near = np.array([own.counts_within(0.0, [0.0, 0.5, 1.0, 2.0]) for own in every])
        assert near.min() == 0
        assert near.max() == 1
        assert not near[0].any()
        # Sums over users are sums of their integers.
        assert vectors.clipped_sum([0.3, 0.0], 0.5, 0.125).tolist() == clipped.sum(axis=0).tolist()
        assert vectors.winsorized_sum([-0.5, 0.1], 5, 0.125).tolist() == winsorized.sum(axis=0).tolist()
        assert vectors.bin_counts(3, 1.0).tolist() == counts.sum(axis=0).tolist()
        assert vectors.counts_within(0.0, [0.0, 0.5, 1.0, 2.0]).tolist() == near.sum(axis=0).tolist()


def test_others_do_not_matter() -> None:
    """Everybody's integers, whoever else is there, in whatever order, with however many rows."""
    columns = 11
    people = some_people(5, 12, columns)
    signs = signs_like(columns)
    expected = [one(MeanVectors(people_data(people, columns), 1.0, signs=signs), user) for user in range(12)]
    for seed in range(3):
        data = people_data(people, columns, shuffled(people, seed))
        assert [one(MeanVectors(data, 1.0, signs=signs), user) for user in range(12)] == expected
    for left in range(0, 12, 5):
        for replacement in ([], [[1e300] * columns], people[left] * 3):
            changed = [*people[:left], replacement, *people[left + 1 :]]
            data = people_data(changed, columns, shuffled(changed, left))
            vectors = MeanVectors(data, 1.0, signs=signs)
            assert all(one(vectors, user) == expected[user] for user in range(12) if user != left)


def test_differences_of_cumulative_sums_would_let_others_matter() -> None:
    """The twin: means by differences of a cumulative sum change with somebody else's rows."""
    rows = np.random.default_rng(1).normal(size=(400, 1))
    sums = np.cumsum(rows, axis=0)
    without = np.cumsum(rows[1:], axis=0)
    assert (np.diff(sums, axis=0)[1:] != np.diff(without, axis=0)).any()


@pytest.mark.parametrize(
    "setting", [{"USERDP_KERNEL": "scalar"}, {"USERDP_KERNEL": "avx2"}, {"RAYON_NUM_THREADS": "3"}]
)
def test_kernels_and_threads_do_not_matter(setting: dict[str, str]) -> None:
    there = subprocess.run(
        [sys.executable, "-W", "error", "-c", "from test_user_vectors import integers; print(integers())"],
        cwd=Path(__file__).parent,
        env=os.environ | setting | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == str(integers())


def integers() -> list[object]:
    """Sums over many users."""
    people = some_people(7, 300, 70, 0.1)
    sums: list[object] = []
    for signs in (None, signs_like(70)):
        vectors = MeanVectors(people_data(people, 70), 1.0, signs=signs)
        sums.append(vectors.clipped_sum(0.003, 0.3, 2.0**-28).tolist())
        sums.append(vectors.winsorized_sum(-0.25, 2**30, 2.0**-31).tolist())
        sums.append(vectors.bin_counts(101, 0.5).tolist())
        sums.append(vectors.counts_within(0.0, np.linspace(0, 1, 30)).tolist())
    return sums


def test_layouts_and_types_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(-100, 100, size=(60, 6))
    users = rng.integers(0, 20, size=60).astype(np.uint32)

    def total(table: npt.NDArray[np.generic]) -> list[int]:
        return MeanVectors(UserTable(table, users, users, 20, 1), 50.0).clipped_sum(0.0, 40.0, 2.0**-20).tolist()

    expected = total(X.astype(np.float64))
    wide = np.zeros((120, 13))
    wide[::2, 1::2] = X
    tables: list[npt.NDArray[np.generic]] = [np.asfortranarray(X.astype(np.float64)), wide[::2, 1::2]]
    tables += [X.astype(kind) for kind in ("f4", "f2", "g", ">f8", ">i4", "i8", "i4", "i2", "i1")]
    tables += [X[::-1].astype(np.float32)[::-1]]
    for table in tables:
        assert total(table) == expected, table.dtype
    assert total((X + 128).astype(np.uint8)) == total((X + 128).astype(np.uint64))
    with pytest.raises(TypeError, match="X must be a matrix of real numbers"):
        total(X.astype(object))


def test_occupied_bins_are_those_with_people() -> None:
    columns = 7
    vectors = MeanVectors(people_data(some_people(9, 200, columns), columns), 1.0, "max")
    counts = vectors.bin_counts(50, 0.8)
    for (bins, occupied), row in zip(vectors.occupied_bins(50, 0.8), counts, strict=True):
        assert bins.tolist() == np.flatnonzero(row).tolist()
        assert occupied.tolist() == row[row > 0].tolist()
    numbers = MeanVectors(people_data([[[-0.5]], [[0.5]], [[0.5]], [[1.0]], [[-7.0]], []], 1), 1.0, "max")
    ((bins, occupied),) = numbers.occupied_bins(2**62, 1.0)
    assert bins.tolist() == [0, 2**60, 3 * 2**60, 2**62 - 1]
    assert occupied.tolist() == [1, 1, 2, 1]


def test_given_vectors() -> None:
    given = np.array([[1.0, 2.0, 3.0], [9.0, 9.0, 9.0], [math.nan, -math.inf, 0.5]])
    vectors = GivenVectors(given, np.array([True, False, True]))
    assert vectors.n_users == 3
    assert vectors.winsorized_sum(-4.0, 64, 0.125).tolist() == [40 + 32 + 32, 48 + 32 + 0, 56 + 32 + 36]
    assert vectors.subset([1]).clipped_sum(0.0, 1.0, 0.5).tolist() == [0, 0, 0]
    assert GivenVectors(given, np.zeros(3, dtype=bool)).clipped_sum(0.0, 1.0, 0.5).tolist() == [0, 0, 0]


def test_bad_public_numbers_are_refused() -> None:
    data = people_data([[[0.5, 0.5]], []], 2)
    vectors = MeanVectors(data, 1.0)
    for call, word in [
        (lambda: MeanVectors(data, -1.0).clipped_sum(0.0, 1.0, 0.5), "bound"),
        (lambda: MeanVectors(data, 1.0, center=[0.0]).clipped_sum(0.0, 1.0, 0.5), "center"),
        (lambda: MeanVectors(data, 1.0, signs=np.ones(4, dtype=np.int8)).clipped_sum(0.0, 1.0, 0.5), "signs"),
        (lambda: vectors.clipped_sum(math.nan, 1.0, 0.5), "center"),
        (lambda: vectors.clipped_sum(0.0, 1.0, 0.3), "grid"),
        (lambda: vectors.clipped_sum(0.0, 0.25, 0.5), "radius"),
        (lambda: vectors.clipped_sum(0.0, 2.0**31, 1.0), "radius"),
        (lambda: vectors.winsorized_sum(0.0, 0, 0.5), "steps"),
        (lambda: vectors.winsorized_sum(0.0, 2**31, 0.5), "steps"),
        (lambda: vectors.bin_counts(0, 1.0), "bins"),
        (lambda: vectors.counts_within(0.0, [math.nan]), "radii"),
        (lambda: vectors.subset([2]).clipped_sum(0.0, 1.0, 0.5), "users"),
        (lambda: vectors.subset([0, 0]).clipped_sum(0.0, 1.0, 0.5), "users"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()  # type: ignore[no-untyped-call]
    with pytest.raises(BudgetError, match="occupied"):
        vectors.bin_counts(2**40, 1.0)
    with pytest.raises(TypeError):
        vectors.winsorized_sum(0.0, 2.5, 0.5)  # type: ignore[arg-type]
