"""Scores over finite classes: shared cases, definitions, every kernel, and how much one user moves them."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import user_scores as oracle
from userdp import _core
from userdp.exceptions import BudgetError
from userdp.learners import clipped_pairwise_scores, user_level_errors
from userdp.learners import scores as _scores

Row = tuple[int, int]
User = tuple[Row, ...]


def table(hypotheses: Sequence[Sequence[int]]) -> npt.NDArray[np.uint8]:
    return np.array(hypotheses, dtype=np.uint8)


def rows_of(users: Sequence[User], m: int) -> tuple[npt.NDArray[np.uint8], Any]:
    """Labels, and the rows as the core takes them; points are numbered from 0."""
    flat = [(point, label, code) for code, user in enumerate(users) for point, label in user]
    points, labels, codes = (np.array([row[part] for row in flat], dtype=np.uint32) for part in range(3))
    return labels.astype(np.uint8), (points, codes, len(users), m)


def surrogate(users: Sequence[User], concepts: Any, scored: Any, t: int, s: int, m: int) -> list[int]:
    labels, rows = rows_of(users, m)
    return _core.surrogate_scores(table(concepts), table(scored), labels, rows, t, s).tolist()


def above(users: Sequence[User], hypotheses: Any, t: int, m: int) -> list[int]:
    labels, rows = rows_of(users, m)
    return _core.user_errors_above(table(hypotheses), labels, rows, t).tolist()


def named(hypotheses: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    return [dict(enumerate(values)) for values in hypotheses]


F = Fraction
DATA = Path(__file__).parents[1] / "data"


def cases(file: str, kind: str) -> list[Any]:
    listed = [case for case in json.loads((DATA / file).read_text())["cases"] if case["kind"] == kind]
    assert listed
    return [pytest.param(case, id=case["id"]) for case in listed]


# --- shared cases -----------------------------------------------------------------------------------


def from_one(users: Any) -> list[User]:
    """Points of the cases are numbered from 1."""
    return [tuple((point - 1, label) for point, label in user) for user in users]


@pytest.mark.parametrize("case", cases("agnostic_threshold_cases.json", "surrogate_user"))
def test_surrogate_scores_of_the_shared_cases(case: Any) -> None:
    given, expected = case["input"], case["expect"]
    users = from_one(given["users"])
    m, t, s = max(map(len, users)), given["t"], given["s"]
    assert surrogate(users, given["C_tables"], [given["h_table"]], t, s, m) == [expected["nq"]]
    assert above(users, given["C_tables"], t, m) == expected["errK_by_c"]
    # Disagreements with h are mistakes where h gives the labels.
    relabeled = [tuple((point, given["h_table"][point]) for point, _ in user) for user in users]
    assert above(relabeled, given["C_tables"], s, m) == expected["disK_by_c"]


@pytest.mark.parametrize("case", cases("agnostic_threshold_cases.json", "em_minsum_tight"))
def test_two_is_the_sensitivity_of_surrogate_scores(case: Any) -> None:
    given, expected, base = case["input"], case["expect"], F(case["input"]["em_base"])

    def mass(users: Any) -> Fraction:
        first, second = surrogate(from_one(users), given["C_tables"], given["H_tables"], 0, 0, 1)
        return base**first / (base**first + base**second)

    assert mass(given["z"]) == F(expected["P_h1_z"])
    assert mass(given["z_prime"]) == F(expected["P_h1_z_prime"])


def agnostic_counts(given: Any) -> tuple[list[str], npt.NDArray[Any]]:
    """The names of the hypotheses, and everybody's mistakes."""
    names, users = list(given["hypotheses"]), given["users"]
    flat = [(point, label, code) for code, user in enumerate(users) for point, label in user]
    said = [[given["hypotheses"][name][str(point)] for point, _, _ in flat] for name in names]
    labels, ids = [label for _, label, _ in flat], [code for _, _, code in flat]
    return names, user_level_errors(said, labels, groups=ids, m=max(map(len, users)))


@pytest.mark.parametrize("case", cases("user_score_cases.json", "clipped_pairwise"))
def test_clipped_scores_of_the_shared_cases(case: Any) -> None:
    names, counts = agnostic_counts(case["input"])
    scores = clipped_pairwise_scores(counts, int(case["input"]["tau"])).tolist()
    assert dict(zip(names, scores, strict=True)) == {k: int(v) for k, v in case["expected"]["scores"].items()}


@pytest.mark.parametrize("case", cases("user_score_cases.json", "realizable_scores"))
def test_any_error_scores_of_the_shared_cases(case: Any) -> None:
    names, counts = agnostic_counts(case["input"])
    assert dict(zip(names, (counts > 0).sum(axis=1).tolist(), strict=True)) == case["expected"]["scores"]


@pytest.mark.parametrize("case", cases("user_score_cases.json", "clipped_pairwise_scheffe"))
def test_scheffe_scores_of_the_shared_cases(case: Any) -> None:
    given, unit = case["input"], 4
    names, symbols = list(given["dists"]), list(given["dists"]["P"])
    masses = [[int(F(given["dists"][name][symbol]) * unit) for symbol in symbols] for name in names]
    histograms = [[user.count(symbol) for symbol in symbols] for user in given["users"]]
    scores = _core.scheffe_scores(
        np.array(masses, dtype=np.int64), np.array(histograms, dtype=np.uint32), int(F(given["tau"]) * unit)
    )
    found = {name: F(int(score), unit) for name, score in zip(names, scores, strict=True)}
    assert found == {name: F(score) for name, score in case["expected"]["scores"].items()}


# --- definitions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8"])
@pytest.mark.parametrize("candidates", [1, 2, 17])
def test_clipped_scores_are_the_definition(dtype: str, candidates: int) -> None:
    source = np.random.default_rng(candidates)
    ends = np.iinfo("i4" if dtype == "i8" else dtype)
    for users, tau in itertools.product((1, 63, 64, 65, 200), (1, 5, 127, 128, 300, 2**16, 2**40)):
        for low, high in ((0, 16), (ends.min, ends.max)):
            counts = source.integers(low, high, (candidates, users), dtype=dtype, endpoint=True)
            assert clipped_pairwise_scores(counts, tau).tolist() == oracle.clipped_pairwise(counts.tolist(), tau)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 255, "u1"), (-1, 127, "i1"), (-1, 128, "i2"), (0, 256, "i2"), (0, 65535, "u2"), (-(2**31), 2**31 - 1, "i4"),
     (-1, 65535, "i4"), (0, 2**32 - 1, "u4")],
)  # fmt: skip
def test_counts_are_compared_in_the_fewest_bits_that_hold_them(low: int, high: int, dtype: str) -> None:
    counts = np.array([[low], [high]])
    assert _scores._narrow(counts).dtype == dtype
    assert clipped_pairwise_scores(counts, 2**40).tolist() == [low - high, high - low]


def test_strides_and_byte_orders_do_not_matter() -> None:
    counts = np.random.default_rng(0).integers(0, 17, (6, 20))
    expected = oracle.clipped_pairwise(counts[::2, ::-1].tolist(), 3)
    for dtype in ("i1", ">i2", "<u4"):
        assert clipped_pairwise_scores(counts.astype(dtype)[::2, ::-1], 3).tolist() == expected


def test_mistakes_are_the_definition_whoever_has_few_rows() -> None:
    source = np.random.default_rng(3)
    for m in (1, 4, 300):
        users: list[User] = [
            tuple((int(point), int(label)) for point, label in source.integers(0, [5, 2], (rows, 2)))
            for rows in (m, m, m // 2, 1, m - 1)
        ]
        hypotheses = source.integers(0, 2, (70, 5)).tolist()
        order = [(code, *row) for code, user in enumerate(users) for row in user]
        source.shuffle(order)
        ids, points, labels = (list(part) for part in zip(*order, strict=True))
        said = np.array(hypotheses)[:, points]
        wanted = [[oracle.mistakes(user, h, m) for user in users] for h in named(hypotheses)]
        plain = [[sum(h[point] != label for point, label in user) for user in users] for h in named(hypotheses)]
        present = [code for code, user in enumerate(users) if user]
        counts = user_level_errors(said, labels, groups=ids, m=m)
        assert counts.dtype == ("uint8" if m < 256 else "uint16")
        assert counts.tolist() == [[row[code] for code in present] for row in wanted]
        unscaled = user_level_errors(said, labels, groups=ids, m=m, scaled=False)
        assert unscaled.tolist() == [[row[code] for code in present] for row in plain]
        coded, rows = rows_of(users, m)
        least = _core.least_errors_above(table(hypotheses), coded, rows).tolist()
        for t in range(m):
            counted = above(users, hypotheses, t, m)
            assert counted == [sum(count > t for count in row) for row in wanted]
            assert least[t] == min(counted)


def test_tables_of_comparisons_are_the_definition() -> None:
    source = np.random.default_rng(4)
    for candidates, grid in ((1, 3), (2, 3), (17, 100), (5, 2**45)):
        psi = source.integers(-grid, grid, (candidates, candidates, 6), dtype=np.int64, endpoint=True)
        users = [source.integers(0, 6, rows).tolist() for rows in (3, 0, 1, 3, 3)]
        _, rows = rows_of([tuple((point, 0) for point in user) for user in users], 3)
        for tau in (1, grid, 2 * grid, 2**62):
            assert _core.psi_scores(psi, rows, tau).tolist() == oracle.by_table(psi.tolist(), users, tau)


def test_scheffe_scores_are_the_definition() -> None:
    source = np.random.default_rng(5)
    for candidates, symbols in ((1, 3), (2, 1), (9, 4), (5, 64), (4, 65), (3, 300)):
        masses = source.multinomial(30, np.ones(symbols) / symbols, candidates)
        users = [source.integers(0, symbols, rows).tolist() for rows in (3, 0, 1, 3, 2)]
        histograms = np.array([np.bincount(user, minlength=symbols) for user in users], dtype=np.uint32)
        pmfs = [{symbol: F(int(mass), 30) for symbol, mass in enumerate(row)} for row in masses]
        for tau in (1, 15, 30, 10**6):
            found = _core.scheffe_scores(masses.astype(np.int64), histograms, tau)
            expected = oracle.scheffe(pmfs, users, F(tau, 30))
            assert [F(int(score), 30) for score in found] == expected


@pytest.mark.parametrize("kernel", ["scalar", "baseline", "avx2", "avx512"])
def test_every_kernel_gives_the_same_scores(kernel: str) -> None:
    script = textwrap.dedent(
        """
        import numpy as np
        from userdp import _core
        source = np.random.default_rng(5)
        for users in (1, 64, 4097, 8191):
            for dtype in ("i1", "u1", "i2", "u2", "i4"):
                ends = np.iinfo(dtype)
                counts = source.integers(ends.min, ends.max, (9, users), dtype=dtype, endpoint=True)
                print([_core.clipped_pairwise_scores(counts, tau).tolist() for tau in (1, 9, 1000)])
            points, codes = (source.integers(0, size, 3 * users, dtype=np.uint32) for size in (7, users))
            rows = (points, codes, users, int(np.bincount(codes).max()))
            said, labels = (source.integers(0, 2, shape, dtype=np.uint8) for shape in ((300, 7), 3 * users))
            print(_core.user_errors(said, labels, rows, True).sum(axis=1).tolist())
            print(_core.user_errors_above(said, labels, rows, 1).tolist())
            print(_core.psi_scores(source.integers(-9, 9, (18, 18, 7)), rows, 11).tolist())
            histograms = source.integers(0, 3, (users, 7), dtype=np.uint32)
            print(_core.scheffe_scores(source.multinomial(20, np.ones(7) / 7, 12), histograms, 30).tolist())
        """
    )

    def run(name: str) -> str:
        environment = {**os.environ, "USERDP_KERNEL": name}
        return subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout

    assert run(kernel) == run("")


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "tau", "error", "message"),
    [
        ([1, 2], 1, ValueError, "counts must be a matrix"),
        (np.zeros((0, 3), dtype=np.int8), 1, ValueError, "counts must be a matrix"),
        ([[0.5]], 1, TypeError, "counts must be integers"),
        ([[True]], 1, TypeError, "counts must be integers"),
        ([[1], [2**40]], 1, ValueError, "counts must all fit 32 bits"),
        ([[1], [1, 2]], 1, ValueError, "counts must be an array; got rows of different lengths"),
        (np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), 1, TypeError, "counts is a masked array"),
        ([[1]], 0, ValueError, "tau"),
        ([[1]], 1.5, TypeError, "tau"),
    ],
)
def test_bad_counts_are_refused(counts: Any, tau: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clipped_pairwise_scores(counts, tau)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"predictions": [[0, 1, 2]]}, ValueError, "predictions must be zeros and ones"),
        ({"predictions": [0, 1, 1]}, ValueError, "predictions must be a matrix"),
        ({"predictions": [["a", "b", "c"]]}, TypeError, "predictions must be zeros and ones"),
        ({"predictions": [[0, 1]]}, ValueError, "2 columns for 3 labels"),
        ({"y": ["0", "1", "1"], "predictions": [[0, 1]]}, ValueError, "2 columns for 3 labels"),
        ({"groups": [1, 2]}, ValueError, "groups has 2 user ids for 3 rows"),
        ({"m": 0}, ValueError, "m"),
        ({"m": 1}, ValueError, "more than m = 1 rows"),
        ({"m": 2**31}, ValueError, "m must be below"),
        ({"scaled": 1}, TypeError, "scaled must be a bool"),
    ],
)
def test_bad_rows_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"predictions": [[0, 1, 1]], "y": [0, 1, 0], "groups": [5, 5, 7], "m": 2}
    with pytest.raises(error, match=message):
        user_level_errors(**{**given, **changes})


@pytest.mark.parametrize("label", [math.nan, None, "a secret", 2, -1, 1j, [0, 1], 10**400])
def test_rows_without_a_label_do_not_count(label: Any) -> None:
    """User 7 has none then, and so no mistakes; user 5 has one mistake of two rows, or of the one that is left."""
    given: dict[str, Any] = {"predictions": [[0, 1, 1], [1, 1, 0]], "groups": [5, 5, 7], "m": 2}
    assert user_level_errors(y=[1, 0, label], **given).tolist() == [[2, 0], [1, 0]]
    assert user_level_errors(y=[1, label, 1], **given).tolist() == [[2, 0], [0, 2]]


def test_too_much_work_is_refused_up_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scores, "MAX_COMPARISONS", 20)
    monkeypatch.setattr(_scores, "MAX_BYTES", 5)
    assert clipped_pairwise_scores([[1] * 20, [2] * 20], 1).tolist() == [-20, 20]
    with pytest.raises(BudgetError, match="take fewer candidates"):
        clipped_pairwise_scores([[1] * 21, [2] * 21], 1)
    with pytest.raises(BudgetError, match="take fewer hypotheses"):
        user_level_errors([[1, 0, 1], [1, 1, 1]], [1, 0, 0], groups=[1, 2, 3], m=1)
    # The same counts take four times the memory for a large m.
    monkeypatch.setattr(_scores, "MAX_BYTES", 400)
    said = np.zeros((40, 5), dtype=np.uint8)
    assert user_level_errors(said, [0] * 5, groups=range(5), m=255).dtype == np.uint8
    for m in (2**8, 2**16):
        assert user_level_errors(said[:20], [0] * 5, groups=range(5), m=m).shape == (20, 5)
    with pytest.raises(BudgetError, match="8e\\+02 bytes, more than 4e\\+02"):
        user_level_errors(said, [0] * 5, groups=range(5), m=2**16)


def largest_change(score: Callable[[list[User]], Sequence[int]], universe: Sequence[User], users: int) -> int:
    """Over all datasets, up to order, and all replacements of one user."""
    largest = 0
    for others in itertools.combinations_with_replacement(universe, users - 1):
        found = np.array([score([*others, user]) for user in universe])
        largest = max(largest, int((found.max(axis=0) - found.min(axis=0)).max()))
    return largest


def people(points: int, m: int) -> list[User]:
    """All users with up to m rows."""
    rows = list(itertools.product(range(points), (0, 1)))
    return [user for size in range(m + 1) for user in itertools.combinations_with_replacement(rows, size)]


ALL = list(itertools.product((0, 1), repeat=2))


@pytest.mark.parametrize(("m", "t"), [(1, 0), (2, 0), (2, 1), (3, 1)])
def test_one_user_moves_a_number_of_users_by_one(m: int, t: int) -> None:
    assert largest_change(lambda users: above(users, ALL, t, m), people(2, m), 2) == 1


@pytest.mark.parametrize(("m", "t"), [(2, 0), (2, 1)])
def test_one_user_moves_a_sum_over_rows_by_more(m: int, t: int) -> None:
    # The planted bug: mistakes are added up over rows, where users should be counted.
    def rows_wrong(users: Sequence[User]) -> list[int]:
        return [sum(h[point] != label for user in users for point, label in user) for h in named(ALL)]

    assert largest_change(rows_wrong, people(2, m), 2) == m


@pytest.mark.parametrize(("m", "tau"), [(1, 1), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_one_user_moves_a_clipped_score_by_twice_the_clip_and_that_is_attained(m: int, tau: int) -> None:
    def score(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, m)
        return clipped_pairwise_scores(_core.user_errors(table(ALL), labels, rows, False), tau).tolist()

    assert largest_change(score, people(2, m), 2) == 2 * min(tau, m)


def test_one_user_moves_more_where_sums_of_users_are_clipped_or_nothing_is() -> None:
    # The planted bugs: the clip is forgotten, or comes after summing over users, too late for a difference in one user.
    def forgotten(users: Sequence[User]) -> list[int]:
        mistakes = np.array([[sum(h[point] != label for point, label in user) for user in users] for h in named(ALL)])
        return [max(int((a - b).sum()) for b in np.delete(mistakes, i, axis=0)) for i, a in enumerate(mistakes)]

    def too_late(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, 3)
        totals = _core.user_errors(table(ALL), labels, rows, False).sum(axis=1, dtype=np.int64)
        return clipped_pairwise_scores(totals[:, None], 4).tolist()

    def right(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, 3)
        return clipped_pairwise_scores(_core.user_errors(table(ALL), labels, rows, False), 1).tolist()

    universe = people(2, 3)
    assert largest_change(right, universe, 2) == 2
    assert largest_change(forgotten, universe, 2) == 6
    # A clip of 4 for two users together is no stricter than one of 2 for each, by which scores would move by 4.
    assert largest_change(too_late, universe, 2) == 6


def test_a_minimum_over_concepts_that_fit_moves_a_surrogate_score_by_more() -> None:
    # The planted bug: only the concepts with the least errors are looked at, as a heuristic would.
    concepts, others = [(0, 0), (1, 1)], [(1, 1), (0, 1)]
    universe = [((point, label),) for point in range(2) for label in (0, 1)]

    def among_the_best(users: Sequence[User]) -> list[int]:
        errors = above(users, concepts, 0, 1)
        best = [concept for concept, error in zip(concepts, errors, strict=True) if error == min(errors)]
        return surrogate(users, best[:1], others, 0, 0, 1)

    assert largest_change(lambda users: surrogate(users, concepts, others, 0, 0, 1), universe, 3) == 2
    assert largest_change(among_the_best, universe, 3) > 2


def test_one_user_moves_a_surrogate_score_by_two_and_inside_the_class_by_one() -> None:
    concepts, others = [(0, 1, 1), (1, 0, 0)], [(0, 0, 1), (0, 0, 0)]
    universe = [((point, label),) for point in range(3) for label in (0, 1)]
    assert largest_change(lambda users: surrogate(users, concepts, others, 0, 0, 1), universe, 3) == 2
    assert largest_change(lambda users: surrogate(users, concepts, concepts, 0, 0, 1), universe, 3) == 1


@pytest.mark.parametrize("t", [0, 1])
def test_surrogate_scores_inside_the_class_are_numbers_of_users(t: int) -> None:
    for users in itertools.combinations_with_replacement(people(2, 2), 2):
        assert surrogate(users, ALL[1:], ALL[1:], t, 0, 2) == above(users, ALL[1:], t, 2)


def test_surrogate_scores_of_single_rows_count_mistakes_of_h_and_twice_what_c_adds() -> None:
    # A row that h gets wrong costs 1 whatever c says: LWY24, Theorem 3.4.
    rows = list(itertools.product(range(2), (0, 1)))
    for chosen in itertools.combinations_with_replacement(rows, 3):
        for concepts in itertools.combinations(ALL, 2):
            expected = [
                sum(h[x] != y for x, y in chosen) + 2 * min(sum(h[x] == y != c[x] for x, y in chosen) for c in concepts)
                for h in ALL
            ]
            assert surrogate([(row,) for row in chosen], concepts, ALL, 0, 0, 1) == expected


def test_surrogate_scores_are_the_definition_for_users_with_few_rows() -> None:
    concepts, scored = ALL[:2], ALL[1:]
    for users in itertools.combinations_with_replacement(people(2, 3), 2):
        for t, s in ((0, 0), (1, 1), (0, 2)):
            expected = [oracle.surrogate(users, h, named(concepts), t, s, 3) for h in named(scored)]
            assert surrogate(users, concepts, scored, t, s, 3) == expected
