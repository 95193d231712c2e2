"""Votes are total and pure functions of one user's rows and the seed, and have the pmfs they are said to have."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from userdp import BudgetError
from userdp.concepts import FiniteClass, Intervals, PointFunctions, Thresholds
from userdp.public_randomness import CorrelatedSampler, PublicSeed
from userdp.stability import (
    AccurateLists,
    ListLearner,
    ListStabilityLearner,
    LittlestoneLists,
    RepresentationLearner,
    StableLearner,
    VersionSpace,
    measure_agreement,
)
from userdp.stability import representation as _representation
from userdp.users import UserTable

SEED = PublicSeed(bytes(range(32)))


def people(generator: np.random.Generator, n_users: int, m: int, domain: int) -> UserTable:
    """Users of 0 to m rows, in any order."""
    sizes = generator.integers(0, m + 1, size=n_users)
    users = generator.permutation(np.repeat(np.arange(n_users, dtype=np.uint32), sizes))
    X = generator.integers(1, domain + 1, size=(len(users), 1)).astype(np.float64)
    return UserTable(X, generator.integers(0, 2, size=len(users)).astype(np.uint8), users, n_users, m)


def own_rows(data: UserTable, user: int) -> tuple[Any, Any]:
    return data.X[data.users == user], data.labels[data.users == user]


def learners() -> list[StableLearner]:
    thresholds = Thresholds(8)
    return [
        RepresentationLearner(thresholds, gamma=20, default=3),
        RepresentationLearner(Intervals(6), gamma=5),
        ListStabilityLearner(VersionSpace(thresholds), eta=1, k1=2, k2=3, gamma=10, default=7),
        ListStabilityLearner(
            AccurateLists(VersionSpace(thresholds), alpha="0.4", holdout=1), eta="2/3", k1=3, k2=1, gamma=3
        ),
        ListStabilityLearner(LittlestoneLists(thresholds), eta=1, k1=2, k2=3, gamma=4, default=bytes(8)),
        ListStabilityLearner(Tables(), eta=1, k1=2, k2=2, gamma=2, default=bytes(8)),
    ]


class Tables(ListLearner):
    """Lists any functions: the labels seen, with 0 or 1 elsewhere; and one that is never among the first two."""

    lists_indices = False

    def __repr__(self) -> str:
        return "Tables()"

    def __init__(self) -> None:
        self.hypotheses = Thresholds(8)
        self.list_size = 2

    def lists(self, points: Any, labels: Any) -> Sequence[bytes]:
        table = np.zeros(8, dtype=np.uint8)
        table[points - 1] = labels
        other = 1 - table
        other[points - 1] = labels
        return [own.tobytes() for own in (table, other, np.full(8, 1, dtype=np.uint8))]


@pytest.mark.parametrize("learner", learners(), ids=str)
def test_a_user_votes_alone_as_among_others(learner: StableLearner, monkeypatch: pytest.MonkeyPatch) -> None:
    data = people(np.random.default_rng(5), 60, 12, 8)
    votes = list(learner.items(data, SEED))
    for user in range(data.n_users):
        X, labels = own_rows(data, user)
        alone = UserTable(X, labels, np.zeros(len(labels), dtype=np.uint32), 1, 12)
        assert list(learner.items(alone, SEED)) == [votes[user]]
        if len(labels):
            assert learner.item(X, labels, SEED) == votes[user]
        else:
            assert votes[user] == learner.default
    assert len(set(votes)) > 3
    # Another block of users at a time, another seed.
    monkeypatch.setattr(_representation, "CELLS", 20)
    assert list(learner.items(data, SEED)) == votes
    assert list(learner.items(data, PublicSeed(bytes(32)))) != votes


@pytest.mark.parametrize("learner", learners(), ids=str)
def test_replacing_a_user_changes_no_other_vote(learner: StableLearner) -> None:
    generator = np.random.default_rng(6)
    data = people(generator, 20, 12, 8)
    votes = list(learner.items(data, SEED))
    for rows in (
        np.zeros((0, 1)),
        np.full((12, 1), np.nan),
        np.array([[np.inf], [-np.inf], [1e300], [-0.0], [2.5]]),
        generator.integers(1, 9, size=(12, 1)).astype(np.float64),
    ):
        others = data.users != 4
        changed = UserTable(
            np.concatenate([data.X[others], rows]),
            np.concatenate([data.labels[others], np.ones(len(rows), dtype=np.uint8)]),
            np.concatenate([data.users[others], np.full(len(rows), 4, dtype=np.uint32)]),
            data.n_users,
            data.m,
        )
        again = list(learner.items(changed, SEED))
        assert [vote for user, vote in enumerate(again) if user != 4] == [
            vote for user, vote in enumerate(votes) if user != 4
        ]
        hash(again[4])


def test_votes_of_representations_one_by_one() -> None:
    generator = np.random.default_rng(7)
    data = people(generator, 50, 9, 8)
    learner = RepresentationLearner(Thresholds(8), gamma="12.5", default=2)
    keys = SEED.race_keys("representation", 0, 9).tolist()
    votes = learner.items(data, SEED)
    for user in range(data.n_users):
        X, labels = own_rows(data, user)
        if len(labels) == 0:
            assert votes[user] == 2
            continue
        scores = []
        for u in range(9):
            errors = sum((x > u) != bool(y) for x, y in zip(X[:, 0].tolist(), labels.tolist(), strict=True))
            scores.append(-(12.5 * errors) / len(labels) + keys[u])
        assert votes[user] == scores.index(max(scores))


def test_ties_go_to_the_lowest_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublicSeed, "race_keys", lambda self, label, i, count: np.zeros(count))
    data = UserTable(np.array([[1], [3]]), np.array([0, 1], dtype=np.uint8), np.zeros(2, dtype=np.uint32), 1, 2)
    assert RepresentationLearner(Thresholds(4), gamma=1).items(data, SEED) == [1]


def pmf_by_hand(learner: Any, X: Any, labels: Any, base: F) -> dict[int, F]:
    weights = {
        h: base
        ** -sum(
            bool(said) != bool(y)
            for said, y in zip(
                learner.hypotheses.predict(learner.hypotheses.points(X), h, h + 1)[:, 0], labels, strict=True
            )
        )
        for h in range(learner.hypotheses.size)
    }
    total = sum(weights.values())
    return {h: weight / total for h, weight in weights.items()}


def test_pmfs_of_representations() -> None:
    generator = np.random.default_rng(8)
    for hypotheses in (Thresholds(5), PointFunctions(4), FiniteClass([[0, 1, 1], [1, 1, 0]])):
        learner = RepresentationLearner(hypotheses, gamma=4)
        for rows in (1, 3, 6):
            X, labels = generator.integers(0, 5, size=(rows, 1)), generator.integers(0, 2, size=rows).astype(np.uint8)
            for base in (F(2), F(7, 5), None):
                pmf = learner.pmf(X, labels, base=base)
                exact = pmf_by_hand(learner, X, labels, F(math.exp(4 / rows)) if base is None else base)
                assert dict(zip(pmf.outputs, pmf.fractions(), strict=True)) == exact
    assert learner.pmf(np.zeros((0, 1)), np.zeros(0, dtype=np.uint8)).outputs == (0,)
    with pytest.raises(ValueError, match="base must be given"):
        RepresentationLearner(Thresholds(5), gamma=1e4).pmf(X[:1], labels[:1])


@pytest.mark.parametrize("kind", ["representation", "lists"])
def test_votes_follow_their_pmf(kind: str) -> None:
    """Over 6,000 seeds; Hoeffding: a frequency is off by 0.04 with probability below 2 exp(-19.2) < 1e-8 each."""
    learner: Any
    if kind == "representation":
        learner = RepresentationLearner(Thresholds(3), gamma=5)
        X, labels = np.array([[1], [2], [3], [3], [1]]), np.array([0, 1, 1, 0, 0], dtype=np.uint8)
    else:
        learner = ListStabilityLearner(VersionSpace(Thresholds(3)), eta="1/2", k1=4, k2=4, gamma=3)
        X, labels = np.array([[1], [2], [3], [3], [1], [2], [3], [2]]), np.array([0, 1, 1, 1, 0, 1, 0, 0])
        labels = labels.astype(np.uint8)
    pmf = learner.pmf(X, labels)
    count = 6_000
    votes = Counter(learner.item(X, labels, PublicSeed(k.to_bytes(32, "big"))) for k in range(count))
    for item, mass in zip(pmf.outputs, pmf.fractions(), strict=True):
        assert abs(votes[item] / count - float(mass)) < 0.04
    # It would notice half of gamma.
    rounds = len(labels) if kind == "representation" else 4
    half = learner.pmf(X, labels, base=F(math.exp(learner.gamma / rounds / 2)))
    assert max(abs(a - b) for a, b in zip(pmf.fractions(), half.fractions(), strict=True)) > F(8, 100)


def lists_by_hand(learner: ListStabilityLearner, X: Any, labels: Any) -> dict[Any, int]:
    """Candidates and on how many of the last lists they are."""
    size = len(labels) // (learner.k1 + learner.k2)
    inner, lists = learner.list_learner, []
    for block in range(learner.k1 + learner.k2) if size else ():
        own = slice(block * size, (block + 1) * size)
        lists.append(sorted(set(inner.lists(inner.hypotheses.points(X[own]), labels[own])))[: inner.list_size])
    heavy = Counter(one for listed in lists[: learner.k1] for one in listed)
    candidates = [one for one, times in heavy.items() if 2 * times >= learner.eta * learner.k1]
    return {one: sum(one in listed for listed in lists[learner.k1 :]) for one in sorted(candidates)}


@pytest.mark.parametrize("learner", learners()[2:], ids=str)
def test_votes_of_lists_one_by_one(learner: ListStabilityLearner) -> None:
    generator = np.random.default_rng(9)
    seen = Counter[bool]()
    for _ in range(150):
        rows = int(generator.integers(1, 25))
        X = generator.integers(1, 9, size=(rows, 1))
        labels = ((X[:, 0] > 4) ^ (generator.random(rows) < 0.1)).astype(np.uint8)
        expected = lists_by_hand(learner, X, labels)
        vote, pmf = learner.item(X, labels, SEED), learner.pmf(X, labels, base=F(3))
        seen[bool(expected)] += 1
        if not expected:
            assert vote == learner.default
            assert pmf.outputs == (learner.default,)
            continue
        drawn = CorrelatedSampler(SEED, label="list stability").sample(
            log_weights=[learner.gamma * times / learner.k2 for times in expected.values()],
            items=[one if isinstance(one, bytes) else one.to_bytes(8, "little") for one in expected],
        )
        assert vote == list(expected)[drawn]
        total = sum(F(3) ** times for times in expected.values())
        assert dict(zip(pmf.outputs, pmf.fractions(), strict=True)) == {
            one: F(3) ** times / total for one, times in expected.items()
        }
    assert seen[True]
    assert seen[False]


def test_predictions_of_votes() -> None:
    X = np.array([[0], [1], [4], [9]])
    assert RepresentationLearner(Thresholds(8), gamma=1).predict(3, X).tolist() == [False, False, True, True]
    tables = ListStabilityLearner(Tables(), eta=1, k1=2, k2=2, gamma=2, default=bytes(8))
    assert tables.predict(bytes([1, 0, 0, 1, 0, 0, 0, 1]), X).tolist() == [True, True, True, True]
    assert tables.predict(bytes([0, 0, 0, 1, 0, 0, 0, 0]), X).tolist() == [False, False, True, False]
    with pytest.raises(NotImplementedError, match="Failing"):
        Failing(lambda X: 0).predict(0, X)


class Failing(StableLearner):
    default = "nothing"

    def __init__(self, work: Any) -> None:
        self.work = work

    def item(self, X: Any, labels: Any, seed: Any) -> Any:
        return self.work(X)


def test_failures_are_the_default() -> None:
    def raising(X: Any) -> Any:
        raise RuntimeError("about a user")

    def overflowing(X: Any) -> Any:
        return int((X * 1e308)[0, 0] > 0) * int(X[0, 0])

    X = np.array([[5.0], [6.0]])
    data = UserTable(X, np.zeros(2, dtype=np.uint8), np.array([0, 2], dtype=np.uint32), 3, 1)
    before = list(warnings.filters)
    with np.errstate(all="raise"):
        assert list(Failing(raising).items(data, SEED)) == ["nothing"] * 3
        assert list(Failing(lambda X: [1]).items(data, SEED)) == ["nothing"] * 3
        assert list(Failing(lambda X: 1 // 0).items(data, SEED)) == ["nothing"] * 3
        assert list(Failing(overflowing).items(data, SEED)) == [5, "nothing", 6]
        assert next(iter(Failing(lambda X: tuple(warnings.filters)).items(data, SEED))) == tuple(before)


def test_public_coins_by_position_are_not_private() -> None:
    """Dropping repeated rows before drawing from a stream: one user moves everybody's coins. By address, none."""

    class Stream(StableLearner):
        """Draws as many coins as the user has distinct rows, from where the last user stopped."""

        default = "none"

        def items(self, data: UserTable, seed: PublicSeed) -> list[str]:
            generator, found = seed.generator("stream"), []
            for user in range(data.n_users):
                distinct = np.unique(data.X[data.users == user])
                found.append("AB"[generator.permutation(2 * len(distinct))[0] % 2])
            return found

        def item(self, X: Any, labels: Any, seed: PublicSeed) -> str:
            raise NotImplementedError

    class Addressed(Stream):
        """The same draw, from a fresh generator for each user."""

        def items(self, data: UserTable, seed: PublicSeed) -> list[Any]:
            return list(StableLearner.items(self, data, seed))

        def item(self, X: Any, labels: Any, seed: PublicSeed) -> str:
            return "AB"[seed.generator("stream").permutation(2 * len(np.unique(X)))[0] % 2]

    users = np.repeat(np.arange(9, dtype=np.uint32), 2)
    X = np.ones((18, 1))
    changed = X.copy()
    changed[1] = 2.0
    labels = np.zeros(18, dtype=np.uint8)
    moved = {Stream: 0, Addressed: 0}
    for k in range(50):
        seed = PublicSeed(bytes([k]) * 32)
        for kind in (Stream, Addressed):
            before, after = (kind().items(UserTable(rows, labels, users, 9, 2), seed) for rows in (X, changed))
            moved[kind] = max(moved[kind], sum(a != b for a, b in zip(before[1:], after[1:], strict=True)))
    assert moved[Addressed] == 0
    assert moved[Stream] >= 4


def test_too_much_work_is_refused_before_it_starts() -> None:
    data = UserTable(np.ones((1, 1)), np.ones(1, dtype=np.uint8), np.zeros(1, dtype=np.uint32), 2**22, 2**20)
    with pytest.raises(BudgetError, match="comparisons"):
        RepresentationLearner(Thresholds(2**10), gamma=1).items(data, SEED)
    with pytest.raises(BudgetError, match="comparisons"):
        ListStabilityLearner(VersionSpace(Thresholds(2**10)), eta=1, k1=2, k2=1, gamma=1).items(data, SEED)
    flat = UserTable(np.ones((1, 0)), np.ones(1, dtype=np.uint8), np.zeros(1, dtype=np.uint32), 1, 1)
    for learner in learners():
        with pytest.raises(ValueError, match="must have a column 0"):
            learner.items(flat, SEED)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RepresentationLearner([[0, 1]], gamma=1), TypeError, "hypotheses must be a ConceptClass"),
        (lambda: RepresentationLearner(Thresholds(2), gamma=0), ValueError, "gamma must be > 0"),
        (lambda: RepresentationLearner(Thresholds(2), gamma=math.inf), ValueError, "gamma must be finite"),
        (lambda: RepresentationLearner(Thresholds(2), gamma="1e400"), ValueError, "range of floats"),
        (lambda: RepresentationLearner(Thresholds(2), gamma=1, default=3), ValueError, "default must be an index"),
        (lambda: RepresentationLearner(Thresholds(2), gamma=1, default=0.5), TypeError, "default must be the index"),
        (lambda: ListStabilityLearner(3, eta=1, k1=2, k2=1, gamma=1), TypeError, "list_learner must be"),
        (lambda: lists(eta=0), ValueError, "eta must be in"),
        (lambda: lists(eta=1.5), ValueError, "eta must be in"),
        (lambda: lists(k1=1), ValueError, "k1 must be at least 2 / eta"),
        (lambda: lists(k2=0), ValueError, "k2 must be at least 1"),
        (lambda: lists(gamma=-1), ValueError, "gamma must be > 0"),
        (lambda: lists(default=1.0), TypeError, "default must be an int or None"),
        (lambda: lists(default=bytes(2)), TypeError, "default must be an int or None"),
        (lambda: VersionSpace([[0]]), TypeError, "hypotheses must be a ConceptClass"),
        (lambda: AccurateLists(VersionSpace(Thresholds(2)), alpha=1, holdout=1), ValueError, "alpha must be strictly"),
        (lambda: AccurateLists(VersionSpace(Thresholds(2)), alpha=0.5, holdout=0), ValueError, "holdout must be"),
        (lambda: AccurateLists(3, alpha=0.5, holdout=1), TypeError, "learner must be a ListLearner"),
        (lambda: measure(learner=3), TypeError, "learner must be a StableLearner"),
        (lambda: measure(sampler=3), TypeError, "sampler must be"),
        (lambda: measure(sampler=lambda g, n: (np.ones(n), np.ones(n))), ValueError, "sampler must return X"),
        (lambda: measure(sampler=lambda g, n: (np.ones((n, 1)), np.full(n, 2))), ValueError, "labels 0 and 1"),
        (lambda: measure(confidence=1), ValueError, "confidence must be in"),
        (lambda: measure(seed=3), TypeError, "seed must be a PublicSeed"),
        (lambda: measure(trials=2**40), BudgetError, "use fewer trials"),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def lists(**change: Any) -> ListStabilityLearner:
    return ListStabilityLearner(VersionSpace(Thresholds(2)), **({"eta": 1, "k1": 2, "k2": 1, "gamma": 1} | change))


def measure(**change: Any) -> Any:
    call = {
        "learner": RepresentationLearner(Thresholds(2), gamma=1),
        "sampler": lambda g, n: (np.ones((n, 1)), np.ones(n)),
        "m": 1,
    } | change
    return measure_agreement(call.pop("learner"), call.pop("sampler"), **call)


def test_a_large_gamma_finds_what_fits() -> None:
    intervals = Intervals(4)
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    labels = np.array([0, 1, 1, 0], dtype=np.uint8)
    vote = RepresentationLearner(intervals, gamma=1000).item(X, labels, SEED)
    assert intervals.describe(vote)
    assert np.array_equal(intervals.predict(intervals.points(X), vote, vote + 1)[:, 0], labels.astype(bool))


@pytest.mark.parametrize("learner", learners(), ids=str)
@pytest.mark.parametrize(("seed", "error"), [(None, TypeError), (b"short", ValueError), (3, TypeError)])
def test_a_public_seed_is_needed_whatever_people_have(
    learner: StableLearner, seed: Any, error: type[Exception]
) -> None:
    # An error about the seed inside one user's map would count as that user's failure: everybody would get the default.
    with pytest.raises(error, match="public_seed"):
        learner.items(people(np.random.default_rng(5), 3, 12, 8), seed)


def test_no_warning_tells_that_somebody_has_many_errors() -> None:
    X, labels, users = np.array([[8.0]] * 4), np.zeros(4, dtype=np.uint8), np.zeros(4, dtype=np.uint32)
    learner = RepresentationLearner(Thresholds(8), gamma=1e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.items(UserTable(X, labels, users, 1, 4), SEED)
