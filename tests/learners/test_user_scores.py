"""Scores over finite classes: shared cases, definitions, every kernel."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import user_scores as oracle
from support.scored_users import User, above, named, rows_of, surrogate, table
from userdp import _core
from userdp.exceptions import BudgetError
from userdp.learners import scores as _scores
from userdp.learners.scores import clipped_pairwise_scores, user_level_errors

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
        ({"y": np.array(["0", "1", "1"])}, TypeError, "y is of dtype <U1"),
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
def test_what_is_no_label_counts_as_0(label: Any) -> None:
    given: dict[str, Any] = {"predictions": [[0, 1, 1], [1, 1, 0]], "groups": [5, 5, 7], "m": 2}
    assert user_level_errors(y=[1, 0, label], **given).tolist() == user_level_errors(y=[1, 0, 0], **given).tolist()


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
