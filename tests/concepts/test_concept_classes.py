"""Concept classes and representations against their definitions, one hypothesis and one point at a time."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.concepts import (
    ConceptClass,
    DecisionStumps,
    FiniteClass,
    HashedPointFunctions,
    Intervals,
    MajorityVotes,
    Parities,
    PointFunctions,
    Thresholds,
    boosted_size,
)
from userdp.concepts.points import points_of
from userdp.concepts.representations import PRIME, _multiply
from userdp.estimators.saving import _read, _written
from userdp.exceptions import BudgetError

CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]

TABLE = [[0, 0, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]]
SEED = bytes(range(32))


def of_domain(kind: ConceptClass, points: range) -> list[list[bool]]:
    """One row for each hypothesis."""
    return kind.predict(np.array(points)).T.tolist()


def one_by_one(says: Callable[[int, int], bool], hypotheses: int, points: range) -> list[list[bool]]:
    return [[says(h, x) for x in points] for h in range(hypotheses)]


@pytest.mark.parametrize(
    ("kind", "points", "says"),
    [
        (FiniteClass(TABLE), range(3), lambda h, x: bool(TABLE[h][x])),
        (Thresholds(5), range(1, 6), lambda h, x: x > h),
        (PointFunctions(5), range(1, 6), lambda h, x: x == h),
        (Parities(4), range(16), lambda h, x: bin(h & x).count("1") % 2 == 1),
        (Parities(1), range(2), lambda h, x: bool(h & x)),
    ],
)
def test_hypotheses_are_what_they_say(kind: ConceptClass, points: range, says: Any) -> None:
    assert of_domain(kind, points) == one_by_one(says, kind.size, points)
    # A part of the list is that part of the list.
    whole = kind.predict(np.array(points))
    for start, stop in itertools.combinations(range(kind.size + 1), 2):
        assert np.array_equal(kind.predict(np.array(points), start, stop), whole[:, start:stop])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_intervals_are_all_intervals_once(n: int) -> None:
    kind, points = Intervals(n), range(1, n + 1)
    wanted = {tuple(a <= x <= b for x in points) for a in points for b in range(a, n + 1)} | {(False,) * n}
    found = [tuple(row) for row in of_domain(kind, points)]
    assert len(found) == len(set(found)) == kind.size == n * (n + 1) // 2 + 1
    assert set(found) == wanted


def test_the_largest_intervals_are_numbered_right() -> None:
    kind = Intervals(5792)
    last = 5792 * 5793 // 2
    assert kind.size == last + 1 <= 2**24
    assert kind.describe(last) == "5792 <= x <= 5792"
    assert kind.describe(last - 5791) == "1 <= x <= 5792"
    assert kind.describe(last - 5792) == "5791 <= x <= 5791"


def test_stumps() -> None:
    cuts = [[2.0, -1.0], [], [0.5]]
    kind = DecisionStumps(thresholds=cuts)
    listed = [(f, c, sign) for f, of_feature in enumerate(cuts) for c in sorted(of_feature) for sign in (1, -1)]
    values = [-math.inf, -1.5, -1.0, 0.5, 0.6, 2.0, 2.5, math.inf]
    X = np.array(list(itertools.product(values, repeat=3)))
    wanted = np.array([[(row[f] > c) == (sign == 1) for f, c, sign in listed] for row in X])
    assert np.array_equal(kind.predict(kind.points(X)), wanted)
    assert kind.size == len(listed)
    assert kind.thresholds == ((-1.0, 2.0), (), (0.5,))


def test_descriptions_say_what_hypotheses_do() -> None:
    for kind, points in ((Thresholds(4), range(1, 5)), (Intervals(4), range(1, 5)), (PointFunctions(4), range(1, 5))):
        for h, row in enumerate(of_domain(kind, points)):
            condition = kind.describe(h).replace("never", "False").replace("x = ", "x == ")
            assert [eval(condition, {"x": x}) for x in points] == row
    for h, row in enumerate(of_domain(FiniteClass(TABLE), range(3))):
        listed = FiniteClass(TABLE).describe(h).removeprefix("x in {").removesuffix("}")
        assert [str(x) in listed.split(", ") for x in range(3)] == row
    for h, row in enumerate(of_domain(Parities(3), range(8))):
        bits = [int(bit) for bit in Parities(3).describe(h).replace(",", " ").split() if bit.isdigit()]
        assert [sum(x >> bit & 1 for bit in bits) % 2 == 1 for x in range(8)] == row
    stumps = DecisionStumps(thresholds=[[1.5], [0.0, 3.0]])
    X = np.array(list(itertools.product([0.0, 1.0, 2.0, 3.5], repeat=2)))
    for h in range(stumps.size):
        _, feature, relation, cut = stumps.describe(h).split()
        wanted = X[:, int(feature)] > float(cut) if relation == ">" else X[:, int(feature)] <= float(cut)
        assert np.array_equal(stumps.predict(stumps.points(X), h, h + 1)[:, 0], wanted)


def shattered(rows: list[list[bool]], points: int) -> int:
    """The most points that a table shatters."""
    return max(
        size
        for size in range(points + 1)
        for chosen in itertools.combinations(range(points), size)
        if len({tuple(row[x] for x in chosen) for row in rows}) == 2**size
    )


@pytest.mark.parametrize(
    ("kind", "points", "exact"),
    [
        (Thresholds(5), range(1, 6), True),
        (Intervals(1), range(1, 2), True),
        (Intervals(5), range(1, 6), True),
        (PointFunctions(5), range(1, 6), True),
        (Parities(1), range(2), True),
        (Parities(3), range(8), True),
        (FiniteClass(TABLE), range(3), False),
        (FiniteClass(list(itertools.product((0, 1), repeat=3))), range(3), True),
        (HashedPointFunctions(7, alpha=0.5, beta=0.2, seed=SEED), range(1, 8), False),
        (MajorityVotes([Thresholds(3)] * 3), range(1, 4), False),
    ],
)
def test_vc_dimension(kind: ConceptClass, points: range, exact: bool) -> None:
    found = shattered(of_domain(kind, points), len(points))
    assert found == kind.vc_dimension if exact else found <= kind.vc_dimension <= math.log2(kind.size)
    assert kind.log_size == math.log(kind.size)


# --- points


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [(FiniteClass(TABLE), 0, 2), (Thresholds(5), 1, 5), (Parities(2), 0, 3), (PointFunctions(1), 1, 1)],
)
def test_every_number_is_some_point(kind: ConceptClass, first: int, last: int) -> None:
    numbers = [-math.inf, -1e300, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 4.5, 5.0, 1e19, 1e300, math.inf]
    wanted = [first if x < first else last if x > last else min(math.ceil(x), last) for x in numbers]
    assert kind.points(np.array(numbers)[:, None]).tolist() == wanted
    assert kind.points(np.array([[math.nan]])).tolist() == [first]
    for dtype in (np.int8, np.int64, np.uint8, np.uint64, np.float32, np.bool_):
        info = None if dtype in (np.bool_, np.float32) else np.iinfo(dtype)
        integers = [0, 1] + ([] if info is None else [info.min, info.max, 2])
        X = np.array(integers, dtype=dtype)[:, None]
        assert kind.points(X).tolist() == [min(max(x, first), last) for x in integers]


def test_large_domains_have_no_rounding_at_their_ends() -> None:
    kind = HashedPointFunctions(2**61 - 2, alpha=0.5, beta=0.5, seed=SEED)
    ends = np.array([2**61 - 3, 2**61 - 2, 2**61 - 1, 2**63 - 1])[:, None]
    assert kind.points(ends).tolist() == [2**61 - 3, 2**61 - 2, 2**61 - 2, 2**61 - 2]
    # Floats near 2**61 are 256 or more apart.
    assert kind.points(ends.astype(float)).tolist() == [2**61 - 2] * 4
    assert kind.points(np.array([[2.0**61 - 256]])).tolist() == [2**61 - 256]
    # In single precision the domain's end is rounded to above it.
    assert points_of(np.array([2**24 + 4], dtype=np.float32), 2**24 + 3).tolist() == [2**24 + 3]


def test_stumps_take_a_missing_value_as_the_lowest() -> None:
    kind = DecisionStumps(thresholds=[[-1e300, 0.0]])
    X = np.array([[math.nan], [-math.inf]])
    assert kind.predict(kind.points(X)).tolist() == [[False, True, False, True]] * 2


def test_another_feature() -> None:
    kind = Thresholds(9, feature=2)
    assert kind.points(np.array([[1, 2, 3], [4, 5, 6]])).tolist() == [3, 6]
    with pytest.raises(ValueError, match="X must have a column 2"):
        kind.points(np.zeros((4, 2)))


# --- representations


def test_products_modulo_the_prime() -> None:
    rng = np.random.default_rng(5)
    edges = [0, 1, 2**29, 2**32 - 1, 2**32, 2**60, PRIME - 2, PRIME - 1]
    numbers = edges + rng.integers(0, PRIME, size=200).tolist()
    for multiplier in [*edges[1:], *rng.integers(1, PRIME, size=20).tolist()]:
        products = _multiply(multiplier, np.array(numbers, dtype=np.uint64))
        assert products.tolist() == [multiplier * number % PRIME for number in numbers]


def test_hashes_are_found_by_number() -> None:
    """Fewer hashes are the first of more, and other seeds give others."""
    points = np.arange(1, 200)
    many = HashedPointFunctions(10**6, alpha=0.25, beta=0.05, seed=SEED)
    few = HashedPointFunctions(10**6, alpha=0.25, beta=0.5, seed=SEED)
    assert (many.size, few.size) == (5 * 8, 8)
    assert np.array_equal(many.predict(points, 0, 8), few.predict(points))
    other = HashedPointFunctions(10**6, alpha=0.25, beta=0.5, seed=bytes(32))
    assert not np.array_equal(other.predict(points), few.predict(points))
    # The hypotheses of one hash part the points.
    assert np.array_equal(many.predict(points, 16, 24).sum(axis=1), np.ones(len(points)))


def test_hashed_point_functions_represent_point_functions() -> None:
    """Over 300 fixed seeds, on a skewed distribution: the failures are at most a part beta of them, with a margin.

    Each fails with probability at most beta = 1/4 by the proof, so more than 130 of 300 do with probability below 1e-11
    (Hoeffding); and with the hash missing (all points in one class) all of them would.
    """
    n, alpha, beta = 60, 0.2, 0.25
    points = np.arange(1, n + 1)
    masses = 1 / points
    masses /= masses.sum()
    concepts = PointFunctions(n).predict(points)
    failures = np.zeros(n + 1)
    for number in range(300):
        kind = HashedPointFunctions(n, alpha=alpha, beta=beta, seed=number.to_bytes(32, "big"))
        hypotheses = kind.predict(points)
        distances = np.array([masses @ (hypotheses != concepts[:, [v]]) for v in range(n + 1)])
        failures += distances.min(axis=1) > alpha
    assert failures.max() <= 130
    assert failures[0] == 0  # the zero function, always
    one_class = np.ones((n, 1), dtype=bool)
    assert all((masses @ (one_class != concepts[:, [v]])).min() > alpha for v in range(2, n + 1))


def test_boosted_sizes_by_definition() -> None:
    for alpha, beta in [(0.25, 0.25), (0.01, 0.25), (0.9, 0.9), (0.4, 0.001), (1e-6, 1e-9)]:
        size = boosted_size(alpha, beta, base_log_size=math.log(10))
        assert size.rounds % 2 == 1
        assert Fraction(3, 4) ** size.rounds <= Fraction(alpha) ** 2
        assert size.rounds == 1 or Fraction(3, 4) ** (size.rounds - 2) > Fraction(alpha) ** 2
        assert Fraction(1, 4) ** size.copies * size.rounds <= Fraction(beta)
        assert size.copies == 1 or Fraction(1, 4) ** (size.copies - 1) * size.rounds > Fraction(beta)
        assert size.log_size == pytest.approx(size.rounds * (math.log(10) + math.log(size.copies)))


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "boost_plan"], ids=lambda case: case["id"])
def test_boosted_sizes_by_cases(case: Any) -> None:
    size = boosted_size(case["input"]["alpha"], case["input"]["beta"], base_log_size=1)
    assert (size.rounds, size.copies) == (case["expect"]["rounds_T"], case["expect"]["copies_R"])


def test_majority_votes() -> None:
    classes = [Thresholds(3), PointFunctions(3), Intervals(3)]
    kind, points = MajorityVotes(classes), range(1, 4)
    tables = [of_domain(member, points) for member in classes]
    wanted = [[sum(votes) >= 2 for votes in zip(*chosen, strict=True)] for chosen in itertools.product(*tables)]
    assert kind.size == len(wanted) == 4 * 4 * 7
    assert of_domain(kind, points) == wanted
    chosen = list(itertools.product(range(4), range(4), range(7)))[53]
    described = "; ".join(member.describe(h) for member, h in zip(classes, chosen, strict=True))
    assert kind.describe(53) == f"most of: {described}"


def test_majority_votes_of_stumps_and_of_votes() -> None:
    stumps = DecisionStumps([[1, 2], [5]])
    X = np.array([[1.5, 6.0], [2.5, 0.0], [0.0, 9.0]])
    kind = MajorityVotes([stumps, MajorityVotes([stumps]), stumps])
    each = stumps.predict(stumps.points(X))
    wanted = [sum(votes) >= 2 for votes in zip(each[:, 0], each[:, 2], each[:, 4], strict=True)]
    assert kind.predict(kind.points(X))[:, (0 * 6 + 2) * 6 + 4].tolist() == wanted


# --- saving, and what is refused

ALL = [
    FiniteClass(TABLE, feature=1),
    Thresholds(7),
    Intervals(6, feature=2),
    PointFunctions(5),
    Parities(3),
    DecisionStumps(thresholds=[[1.5, 0.25], [], [3]]),
    HashedPointFunctions(1000, alpha=0.3, beta=0.2, seed=SEED),
    MajorityVotes([Thresholds(2), Thresholds(2), PointFunctions(2)]),
]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: type(kind).__name__)
def test_saved_and_read(kind: ConceptClass) -> None:
    X = np.random.default_rng(1).integers(0, 9, size=(40, 3)).astype(float)
    for again in (pickle.loads(pickle.dumps(kind)), _read(json.loads(json.dumps(_written(kind))))):
        assert type(again) is type(kind)
        assert repr(again) == repr(kind)
        assert np.array_equal(again.predict(again.points(X)), kind.predict(kind.points(X)))


def test_a_table_cannot_be_changed_afterwards() -> None:
    table = np.array(TABLE)
    kind = FiniteClass(table)
    table[0] = 1
    assert kind.matrix[0].tolist() == [False, False, True]
    with pytest.raises(ValueError, match="read-only"):
        kind.matrix[0, 0] = True


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FiniteClass([]), ValueError, r"got the shape \(0,\)"),
        (lambda: FiniteClass([[]]), ValueError, r"got the shape \(1, 0\)"),
        (lambda: FiniteClass([[0, 1]]), ValueError, "has 1 hypotheses; at least 2"),
        (lambda: FiniteClass([[0, 1], [1, 1], [0, 1]]), ValueError, "equal rows 0 and 2"),
        (lambda: FiniteClass([[0, 1], [1, 2]]), ValueError, "0 and 1 only"),
        (lambda: FiniteClass([[0, 1], [1]]), ValueError, "rows of one length"),
        (lambda: FiniteClass([["a"], ["b"]]), TypeError, "entries 0 and 1"),
        (lambda: FiniteClass([[0], [1]], feature=-1), ValueError, "feature must be at least 0"),
        (lambda: Thresholds(0), ValueError, "domain_size must be at least 1"),
        (lambda: Thresholds(2.5), TypeError, "domain_size must be an int"),  # type: ignore[arg-type]
        (lambda: Thresholds(2**24), BudgetError, "16777217 hypotheses.*use ThresholdClassifier"),
        (lambda: PointFunctions(2**40), BudgetError, "use HashedPointFunctions"),
        (lambda: Intervals(5793), BudgetError, "16782322 hypotheses.*coarser domain"),
        (lambda: Parities(0), ValueError, "n_bits must be at least 1"),
        (lambda: Parities(23), BudgetError, r"2\*\*23 hypotheses; at most 22 bits"),
        (lambda: DecisionStumps(thresholds=[]), ValueError, "0 hypotheses"),
        (lambda: DecisionStumps(thresholds=[[], []]), ValueError, "0 hypotheses"),
        (lambda: DecisionStumps(thresholds=[[1.0, 1]]), ValueError, r"thresholds\[0\] has equal cuts"),
        (lambda: DecisionStumps(thresholds=[[1.0], [math.nan]]), ValueError, r"thresholds\[1\] must be finite"),
        (lambda: DecisionStumps(thresholds=[[10**400]]), ValueError, r"thresholds\[0\] must be finite"),
        (lambda: DecisionStumps(thresholds=[1.0]), TypeError, r"thresholds\[0\] must be a sequence"),  # type: ignore[list-item]
        (lambda: DecisionStumps(thresholds=[[None]]), TypeError, r"thresholds\[0\] must be numbers"),  # type: ignore[list-item]
        (lambda: DecisionStumps(thresholds=[["x"]]), ValueError, r"thresholds\[0\]: 'x' is not"),  # type: ignore[list-item]
        (lambda: DecisionStumps(thresholds="12"), TypeError, "thresholds must have a sequence"),  # type: ignore[arg-type]
        (lambda: HashedPointFunctions(1, alpha=0.1, beta=0.1, seed=SEED), ValueError, "domain_size must be at least 2"),
        (lambda: HashedPointFunctions(2**61, alpha=0.1, beta=0.1, seed=SEED), ValueError, r"at most 2\*\*61 - 2"),
        (lambda: HashedPointFunctions(9, alpha=1, beta=0.1, seed=SEED), ValueError, "alpha must be strictly"),
        (lambda: HashedPointFunctions(9, alpha=0.1, beta=0, seed=SEED), ValueError, "beta must be strictly"),
        (lambda: HashedPointFunctions(9, alpha=0.1, beta=0.1, seed=b"short"), ValueError, "32 bytes; got 5"),
        (lambda: HashedPointFunctions(9, alpha=0.1, beta=0.1, seed=7), TypeError, "32 bytes; got 7"),  # type: ignore[arg-type]
        (lambda: HashedPointFunctions(9, alpha=1e-9, beta=0.1, seed=SEED), BudgetError, "raise alpha or beta"),
        (lambda: MajorityVotes([]), ValueError, "odd number of concept classes; got 0"),
        (lambda: MajorityVotes([Thresholds(2)] * 2), ValueError, "odd number of concept classes; got 2"),
        (lambda: MajorityVotes([Thresholds(2), Thresholds(2), Thresholds(3)]), ValueError, "different domains"),
        (
            lambda: MajorityVotes([Thresholds(2), Thresholds(2), Thresholds(2, feature=1)]),
            ValueError,
            "read from the same columns",
        ),
        (lambda: MajorityVotes([DecisionStumps([[c]]) for c in (1, 2, 3)]), ValueError, "with the same cuts"),
        (lambda: MajorityVotes([Thresholds(99)] * 5), BudgetError, "boosted_size gives sizes"),
        (lambda: MajorityVotes([1]), TypeError, "must be concept classes"),  # type: ignore[list-item]
        (lambda: boosted_size(0, 0.1, 1), ValueError, "alpha must be strictly"),
        (lambda: boosted_size(0.1, None, 1), TypeError, "beta must be a number"),  # type: ignore[arg-type]
        (lambda: boosted_size(0.1, 0.1, -1), ValueError, "base_log_size must be finite"),
        (lambda: Thresholds(3).predict(np.array([1]), 2, 9), ValueError, "start and stop"),
        (lambda: Thresholds(3).describe(4), ValueError, "index must be in 0, ..., 3"),
        (lambda: Thresholds(3).describe(1.0), TypeError, "index must be an int"),  # type: ignore[arg-type]
    ],
)
def test_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
