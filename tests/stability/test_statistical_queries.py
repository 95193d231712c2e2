"""Statistical-query algorithms made stable: the pmf of one answer, the hypotheses of an oracle, one user at a time."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import public_randomness
from oracle import statistical_queries as oracle
from support.query_people import ALGORITHMS, OneMean, data_of, lists
from userdp.public_randomness import PublicSeed
from userdp.stability import MarginPerceptronQueries, StatisticalQueryLearner
from userdp.users import UserTable

CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/rounding.json").read_text())


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A public seed with the offsets that are listed."""

    def seed(*offsets: Fraction) -> PublicSeed:
        monkeypatch.setattr(PublicSeed, "offset", lambda self, label, i=0: offsets[i])
        return PublicSeed(bytes(32))

    return seed


def offset_of(seed: PublicSeed, i: int) -> Fraction:
    return Fraction(int.from_bytes(public_randomness.block(bytes(seed), "statistical query", i), "little"), 2**256)


# --- one answer


@pytest.mark.parametrize("case", CASES)
def test_shared_offsets_disagree_as_the_closed_form_says(case: Any, listed: Any) -> None:
    intervals = case["input"]["I"]
    means = [Fraction(case["input"][name]) for name in "uv"]
    algorithm = OneMean(intervals)
    people = [[((1,), 0)] * mean.numerator + [((0,), 0)] * (mean.denominator - mean.numerator) for mean in means]
    # All ends of pieces are multiples of this.
    pieces = math.lcm(*((intervals * mean).denominator for mean in means))
    differ, pmfs = Fraction(0), ({}, {})
    for piece in range(pieces):
        seed = listed(Fraction(piece, pieces))
        answers = [algorithm.decode(item) for item in StatisticalQueryLearner(algorithm).items(data_of(people), seed)]
        differ += Fraction(answers[0] != answers[1], pieces)
        for pmf, answer in zip(pmfs, answers, strict=True):
            pmf[str(answer)] = pmf.get(str(answer), Fraction(0)) + Fraction(1, pieces)
    assert differ == Fraction(case["expected"]["disagree"]) == oracle.disagreement(*means, intervals)
    for pmf, name in zip(pmfs, "uv", strict=True):
        assert pmf == {answer: Fraction(weight) for answer, weight in case["expected"][f"{name}_pmf"].items()}


def test_the_disagreement_of_one_query_is_the_mean_of_the_distance(listed: Any) -> None:
    m, intervals, u = 4, 5, Fraction(1, 3)
    learner = StatisticalQueryLearner(OneMean(intervals))
    # Means are k/4 and u: pieces of 1/12 hold all ends.
    pieces, total = 12, Fraction(0)
    for piece in range(pieces):
        seed = listed(Fraction(piece, pieces))
        whole = math.floor(intervals * u + Fraction(piece, pieces))
        for ones in range(m + 1):
            rows = [((float(row < ones),), 0) for row in range(m)]
            weight = math.comb(m, ones) * u**ones * (1 - u) ** (m - ones)
            item = learner.items(data_of([rows]), seed)[0]
            total += weight * Fraction(item != learner.algorithm.encode(Fraction(whole, intervals)), pieces)
    expected = sum(
        math.comb(m, ones) * u**ones * (1 - u) ** (m - ones) * min(1, intervals * abs(Fraction(ones, m) - u))
        for ones in range(m + 1)
    )
    assert total == expected
    assert expected**2 <= intervals**2 * Fraction(1, 4) / m


@pytest.mark.parametrize("value", [-1, 1, -0.5, 0.25, 7, -7, math.inf, -math.inf, math.nan])
def test_answers_are_on_the_grid_and_below_one_interval_away(value: float, listed: Any) -> None:
    inside = Fraction(0) if math.isnan(value) else Fraction(max(-1.0, min(1.0, value)))
    for intervals in (1 + 1, 7, 10):
        learner = StatisticalQueryLearner(OneMean(intervals))
        for offset in (Fraction(0), Fraction(1, 2), 1 - Fraction(1, 2**256)):
            seed = listed(offset)
            answer = learner.algorithm.decode(learner.items(data_of([[((value,), 0)]]), seed)[0])
            assert answer == oracle.rounded(inside, intervals, offset)
            assert -1 <= answer <= 1
            assert abs(answer - inside) < Fraction(1, intervals)


# --- whole algorithms are those of the oracle, user by user


def random_lists(rng: np.random.Generator, n_users: int, d: int = 3) -> list[list[tuple[Any, int]]]:
    people = []
    for _ in range(n_users):
        rows = rng.integers(0, 2, size=(int(rng.integers(0, 30)), d))
        labels = np.where(rng.random(len(rows)) < 0.2, rng.integers(0, 2, len(rows)), rows[:, 0] | rows[:, -1])
        people.append([(tuple(row), int(label)) for row, label in zip(rows.tolist(), labels.tolist(), strict=True)])
    return people


@pytest.mark.parametrize(("width", "length"), [(1, 3), (1, 1), (2, 4), (1, 7)])
def test_every_user_has_the_list_of_the_oracle(width: int, length: int) -> None:
    algorithm = lists(width=width, length=length)
    learner, seed = StatisticalQueryLearner(algorithm), PublicSeed(bytes(range(32)))
    people = random_lists(np.random.default_rng(4), 40)
    found = learner.items(data_of(people, 30), seed)
    assert len(set(found)) > (1 if length == 1 else 5)
    for rows, item in zip(people, found, strict=True):
        if not rows:
            assert item == learner.default
            continue
        offsets = iter(range(10**6))
        rules, asked = oracle.decision_list(
            oracle.pmf_of_rows(rows),
            3,
            width,
            length,
            algorithm.tolerance,
            lambda u, offsets=offsets: oracle.rounded(u, algorithm.intervals, offset_of(seed, next(offsets))),
        )
        assert asked <= algorithm.max_queries
        points = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
        predicted = algorithm.predict(algorithm.decode(item), np.array(points))
        assert predicted.tolist() == [bool(oracle.predict_list(rules, point)) for point in points]


def random_halves(rng: np.random.Generator, n_users: int) -> list[list[tuple[Any, int]]]:
    """Rows with entries that are eighths, within the unit ball, so that floats are exact."""
    people = []
    for _ in range(n_users):
        rows = rng.integers(-4, 5, size=(int(rng.integers(1, 12)), 3)) / 8
        labels = (rows @ np.array([1, 2, -1]) > 0).astype(int)
        people.append([(tuple(row), label) for row, label in zip(rows.tolist(), labels.tolist(), strict=True)])
    return people


def test_every_user_has_the_weights_of_the_oracle() -> None:
    algorithm = MarginPerceptronQueries(3, margin="0.2", alpha="0.3", tolerance="0.1", max_rounds=6)
    learner, seed = StatisticalQueryLearner(algorithm), PublicSeed("07" * 32)
    people = random_halves(np.random.default_rng(8), 25)
    found = learner.items(data_of(people, 12), seed)
    assert len(set(found)) > 10
    for rows, item in zip(people, found, strict=True):
        offsets = iter(range(10**6))
        exact = [(tuple(map(Fraction, x)), y) for x, y in rows]
        w, asked, _ = oracle.perceptron(
            oracle.pmf_of_rows(exact),
            3,
            algorithm.alpha,
            algorithm.tolerance,
            6,
            lambda u, offsets=offsets: oracle.rounded(u, algorithm.intervals, offset_of(seed, next(offsets))),
        )
        assert [Fraction(weight, algorithm.intervals) for weight in algorithm.decode(item)] == w
        assert asked <= algorithm.max_queries


# --- one user at a time


HARD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.5, 0.3]


def bad_people(rng: np.random.Generator) -> list[list[tuple[Any, int]]]:
    people = [
        [(tuple(rng.choice(HARD, 3).tolist()), int(rng.integers(0, 2))) for _ in range(int(rng.integers(0, 6)))]
        for _ in range(20)
    ]
    return people + [[(tuple(row), int(row[0] > 0)) for row in rng.normal(size=(9, 3)).tolist()] for _ in range(20)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_together_and_alone_users_have_the_same_item(algorithm: Any) -> None:
    learner, seed = StatisticalQueryLearner(algorithm), PublicSeed("ab" * 32)
    rng = np.random.default_rng(1)
    people = bad_people(rng)
    together = learner.items(data_of(people, 9), seed)
    for rows, item in zip(people, together, strict=True):
        alone = learner.items(data_of([rows], 9), seed)[0] if rows else learner.default
        assert item == alone
        if rows:
            X, labels = np.array([x for x, _ in rows]), np.array([y for _, y in rows], dtype=np.uint8)
            assert item == learner.item(X, labels, seed)


@pytest.mark.parametrize("cells", [1, 10, 300])
def test_users_may_be_run_in_blocks(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, data = PublicSeed("ab" * 32), data_of(bad_people(np.random.default_rng(1)), 9)
    for algorithm in ALGORITHMS:
        together = StatisticalQueryLearner(algorithm).items(data, seed)
        with monkeypatch.context() as smaller:
            smaller.setattr("userdp.stability.statistical_queries.CELLS", cells)
            assert StatisticalQueryLearner(algorithm).items(data, seed) == together


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_replacing_a_user_changes_no_other_item(algorithm: Any) -> None:
    learner, seed = StatisticalQueryLearner(algorithm), PublicSeed("cd" * 32)
    rng = np.random.default_rng(2)
    people = bad_people(rng)
    before = learner.items(data_of(people, 9), seed)
    for user in (0, 7, 39):
        changed = list(people)
        changed[user] = bad_people(rng)[-1]
        after = learner.items(data_of(changed, 9), seed)
        assert [item for place, item in enumerate(after) if place != user] == [
            item for place, item in enumerate(before) if place != user
        ]


class Centered(OneMean):
    """Its query is not about one row: it depends on the rows that it is asked of together."""

    def run(self, ask: Any) -> Any:
        return ask(lambda X, labels: X[:, 0] - X[:, 0].max() / 2)


class CenteredTogether(Centered):
    rowwise = True


@pytest.mark.parametrize(("kind", "others_change"), [(Centered, False), (CenteredTogether, True)])
def test_only_what_says_it_is_row_by_row_is_asked_of_many_together(kind: Any, others_change: bool, listed: Any) -> None:
    seed = listed(Fraction(0))
    learner = StatisticalQueryLearner(kind(10))
    before = learner.items(data_of([[((0.5,), 0)], [((0.25,), 0)], [((0.5,), 0)]]), seed)
    after = learner.items(data_of([[((1.0,), 0)], [((0.25,), 0)], [((0.5,), 0)]]), seed)
    assert (before[1:] != after[1:]) == others_change


# --- whatever an algorithm does, everybody has an item


class Misbehaving(OneMean):
    """Misbehaves for those whose first entry is 1."""

    def __init__(self, how: str) -> None:
        super().__init__(10)
        self.how = how

    def points(self, X: Any) -> Any:
        if self.how == "points" and len(X) and X[0, 0] == 1:
            raise RuntimeError("private")
        return X

    def run(self, ask: Any) -> Any:
        bad = ask(lambda X, labels: self.value(X)) == 1
        if bad and self.how == "raise":
            raise RuntimeError("private")
        if bad and self.how in ("too many", "caught"):
            try:
                ask(lambda X, labels: X[:, 0])
            except Exception:
                if self.how == "too many":
                    raise
        return Fraction(1, 2) if bad else Fraction(1, 10)

    def value(self, X: Any) -> Any:
        if X[0, 0] == 1 and self.how == "shape":
            return np.zeros((len(X), 2))
        if X[0, 0] == 1 and self.how == "text":
            return np.array(["private"] * len(X))
        if X[0, 0] == 1 and self.how == "warning":
            np.log(X[:, 0] - 1)
            return X[:, 1]
        return X[:, 0]

    def encode(self, hypothesis: Any) -> bytes:
        item = super().encode(hypothesis)
        if hypothesis == Fraction(1, 2) and self.how == "long":
            return item + b"x"
        if hypothesis == Fraction(1, 2) and self.how == "type":
            return bytearray(item)  # type: ignore[return-value]
        return item


@pytest.mark.parametrize("how", ["points", "raise", "too many", "caught", "shape", "text", "warning", "long", "type"])
def test_only_the_user_on_whom_an_algorithm_fails_has_the_default(how: str, listed: Any) -> None:
    algorithm = Misbehaving(how)
    learner = StatisticalQueryLearner(algorithm)
    people = [[((0.0,), 1)] * 3, [((1.0,), 1)] * 3, [], [((0.0,), 0)]]
    seed = listed(Fraction(0), Fraction(0))
    other = algorithm.encode(Fraction(1, 10))
    assert learner.items(data_of(people), seed) == [other, learner.default, learner.default, other]
    assert learner.default != other


def test_nobody_has_rows() -> None:
    learner = StatisticalQueryLearner(lists())
    empty = UserTable(np.zeros((0, 3)), np.zeros(0, np.uint8), np.zeros(0, np.uint32), 4, 5)
    assert learner.items(empty, PublicSeed(bytes(32))) == [learner.default] * 4


def test_runs_are_the_same_in_every_version() -> None:
    people = random_lists(np.random.default_rng(0), 3)
    seed = PublicSeed(bytes(32))
    found = StatisticalQueryLearner(lists()).items(data_of(people), seed)
    assert [bytes(item).hex() for item in found] == PINNED_LISTS  # type: ignore[call-overload]


PINNED_LISTS = ["0575e0", "05f927", "05757e"]
