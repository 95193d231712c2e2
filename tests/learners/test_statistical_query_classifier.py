"""StatisticalQueryClassifier: its exact distribution is private, its draw is from that distribution, and it learns."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any
from uuid import UUID

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp import BOTTOM, LogRatio
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.learners import StatisticalQueryClassifier
from userdp.learners import statistical_queries as votes_module
from userdp.learners.statistical_queries import ReportedBits
from userdp.protocols.local import BitwiseMajority
from userdp.public_randomness import PublicSeed
from userdp.stability import DecisionListQueries, MarginPerceptronQueries, StatisticalQueryLearner

SEED = "5c" * 32
F = Fraction


def constants() -> DecisionListQueries:
    """Lists of one rule: 5 bits, of which few are ever used."""
    return DecisionListQueries(1, alpha="0.4", length=1, tolerance="0.3")


def classifier(**changes: Any) -> StatisticalQueryClassifier:
    arguments: dict[str, Any] = {"epsilon": 1, "algorithm": constants(), "m": 2, "public_seed": SEED, "classes": (0, 1)}
    return StatisticalQueryClassifier(**(arguments | changes))


def people(n_users: int = 90, m: int = 300, d: int = 4, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n_users * m, d))
    y = np.where(X[:, 2] == 1, 0, X[:, 0])
    return X, y, np.repeat(np.arange(n_users), m)


LISTS = DecisionListQueries(4, alpha="0.1", length=2, tolerance="0.05")


# --- audits of the distribution that is drawn from

UNIVERSE = [((0,), 0), ((0,), 1), ((1,), 1)]
AUDITED = [
    ({"model": "central-approx", "delta": F(1, 5)}, 7, F(1, 5), 0.0),
    ({"model": "central-pure"}, 8, F(0), 0.6),
    ({"model": "local"}, 6, F(0), 0.95),
]


@pytest.mark.parametrize(("given", "n_users", "delta", "least"), AUDITED)
def test_audited(given: dict[str, Any], n_users: int, delta: Fraction, least: float) -> None:
    epsilon = LogRatio(3)
    # In the local model users are not alike, each reports another bit: fewer rows keep its audit small.
    local = given["model"] == "local"
    size = {"universe": UNIVERSE[:2] if local else UNIVERSE, "n_users": n_users, "n_examples": 1}

    def audited(level: Any, given: dict[str, Any]) -> Any:
        learner = as_finite_algorithm(classifier(epsilon=level, m=1, **given), n_users=n_users)
        return audit_user_level(learner, epsilon=epsilon, delta=delta, **size)

    found = audited(epsilon, given)
    print(f"{given['model']}: worst delta {found.worst_delta}, exact epsilon {found.epsilon}, {found.pairs} pairs")
    assert found.holds
    assert found.engine == ("labeled" if local else "symmetric")
    half = audited(LogRatio(9), given | ({"delta": 2 * delta} if delta else {}))
    if delta:
        assert 0 < found.worst_delta.lower < found.worst_delta.upper < half.worst_delta.lower
    else:
        assert found.worst_delta.upper == 0
        assert least * math.log(3) < found.epsilon.lower <= found.epsilon.upper < half.epsilon.lower
        assert not half.holds


@pytest.mark.parametrize("kind", [int, str, lambda i: UUID(int=i), lambda i: i if i % 2 else str(i)])
def test_where_the_rows_of_a_user_are_moves_nobody(kind: Any) -> None:
    # Bits are reported by place: numbers by first appearance would give all others other bits.
    X, y = np.array([[1], [0], [1], [0], [1]]), np.array([1, 0, 1, 0, 0])
    learner = classifier(m=1, model="local")
    ids = [kind(i) for i in range(5)]
    before = learner.output_distribution(X, y, groups=ids)
    after = learner.output_distribution(np.roll(X, 1, axis=0), np.roll(y, 1), groups=ids[-1:] + ids[:-1])
    assert (before.outputs, before.weights) == (after.outputs, after.weights)


def test_an_audit_finds_votes_that_are_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    original = votes_module.PurePrivateMode

    class Twice(original):  # type: ignore[misc,valid-type]
        def tally(self, items: Any, **options: Any) -> Any:
            return Counter({item: 2 * count for item, count in super().tally(items, **options).items()})

    def holds() -> bool:
        learner = as_finite_algorithm(classifier(epsilon=LogRatio(3), m=1, model="central-pure"))
        found = audit_user_level(learner, universe=UNIVERSE, n_users=10, n_examples=1, epsilon=LogRatio(3), delta=0)
        return bool(found.holds)

    assert holds()
    monkeypatch.setattr(votes_module, "PurePrivateMode", Twice)
    assert not holds()


def majority_pmf(keep: Fraction, bits: list[tuple[int, ...]]) -> dict[int, Fraction]:
    """By listing all reports of all users."""
    n_bits, pmf = len(bits[0]), Counter[int]()
    for reports in product((0, 1), repeat=len(bits)):
        weight = math.prod(
            (keep if report == vote[slot % n_bits] else 1 - keep)
            for slot, (report, vote) in enumerate(zip(reports, bits, strict=True))
        )
        ones = [2 * sum(reports[place::n_bits]) > len(reports[place::n_bits]) for place in range(n_bits)]
        pmf[sum(1 << (n_bits - 1 - place) for place, one in enumerate(ones) if one)] += weight  # type: ignore[assignment]
    return dict(pmf)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_users", [3, 4, 6, 8])
def test_the_pmf_of_reported_bits_is_that_of_all_reports(n_users: int) -> None:
    protocol = BitwiseMajority(epsilon=LogRatio(2), n_bits=3, n_users=n_users, round_id="a")
    votes = [tuple(int(bit) for bit in f"{number % 8:03b}") for number in range(5, 5 + n_users)]
    pmf = ReportedBits(protocol).pmf(np.array(votes, dtype=np.uint8))
    expected = majority_pmf(protocol.keep_probability, votes)
    assert pmf.fractions() == [expected.get(number, F(0)) for number in range(8)]


def test_reported_bits_are_drawn_from_their_pmf() -> None:
    """5,000 draws, each of 4 outcomes within 6.2 standard deviations of its mean: false alarms below 1e-8."""
    from userdp.runtime import source_of

    protocol = BitwiseMajority(epsilon=1, n_bits=2, n_users=5, round_id="a")
    votes = np.array([[0, 1], [1, 1], [1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    mechanism = ReportedBits(protocol)
    with pytest.warns(InsecureRandomnessWarning):
        source = source_of(7)
    drawn = Counter(mechanism._draw(source, votes) for _ in range(5_000))
    for number, p in zip(range(4), mechanism.pmf(votes).probabilities.tolist(), strict=True):
        assert abs(drawn[number] - 5_000 * p) < 6.2 * math.sqrt(5_000 * p * (1 - p))


# --- fits


@pytest.mark.parametrize(
    ("given", "n_users"),
    [
        ({"model": "central-approx", "delta": 1e-6}, 120),
        ({"model": "central-pure"}, 120),
        ({"model": "local", "epsilon": 3}, 6000),
    ],
)
def test_it_learns_lists(given: dict[str, Any], n_users: int) -> None:
    m = 300 if n_users < 1000 else 60
    X, y, users = people(n_users, m)
    algorithm = LISTS if n_users < 1000 else DecisionListQueries(4, alpha="0.2", length=2, tolerance="0.04")
    model = classifier(algorithm=algorithm, m=m, public_seed="11" * 32, **given).fit(X, y, groups=users)
    assert model.selected_
    assert model.score(X, y) > (0.95 if n_users < 1000 else 0.8)
    assert (model.n_users_, model.unit_, model.is_private_) == (n_users, "user", True)
    assert model.privacy_.delta == F(str(given.get("delta", 0)))
    assert model.describe().startswith("if not x0: 0; else if x2: 0")
    for again in (pickle.loads(pickle.dumps(model)), StatisticalQueryClassifier.from_json(model.to_json())):
        assert again.item_ == model.item_
        assert np.array_equal(again.predict(X), model.predict(X))


def test_it_learns_halfspaces() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400_000, 2))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
    X = X[np.abs(X @ [0.8, -0.6]) > 0.3][:200_000]
    y = np.where(X @ [0.8, -0.6] > 0, "up", "down")
    users = np.repeat(np.arange(len(X) // 1000), 1000)
    algorithm = MarginPerceptronQueries(2, margin="0.3", alpha="0.2", tolerance="0.15", max_rounds=2)
    model = classifier(algorithm=algorithm, delta=1e-6, m=1000, classes=("down", "up"), public_seed="02" * 32)
    model.fit(X[: 1000 * len(set(users))], y[: 1000 * len(set(users))], groups=users)
    assert model.selected_
    assert model.score(X, y) > 0.9
    assert set(model.predict(X)) == {"down", "up"}


def test_nothing_about_votes_is_kept() -> None:
    X, y, users = people(90, 20)
    model = classifier(algorithm=LISTS, m=20, delta=1e-6).fit(X, y, groups=users)
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == {
        "item_", "selected_", "public_seed_", "classes_", "n_users_", "unit_", "privacy_", "is_private_",
        "n_features_in_",
    }  # fmt: skip
    assert model.public_seed_ == SEED
    assert json.loads(model.to_json())["estimator"] == "StatisticalQueryClassifier"


def test_people_who_disagree_get_the_public_default() -> None:
    X = np.zeros((8, 1))
    y = [0, 1] * 4
    model = classifier(delta=1e-6, m=1).fit(X, y, groups=range(8))
    assert not model.selected_
    assert model.hypothesis == model.algorithm.default
    assert not model.predict(X).any()
    assert model.describe() == "0"


def test_bad_rows_of_one_user_change_one_vote() -> None:
    X, y, users = people(5, 40)
    learner = classifier(algorithm=DecisionListQueries(1, alpha="0.4", length=1, tolerance="0.3"), m=40, delta="0.1")
    X = X[:, :1].astype(float)
    before = learner.output_distribution(X, y, groups=users)
    assert before.outputs[-1] == BOTTOM
    X[:40] = math.nan
    learner.output_distribution(X, y, groups=users)
    enrolled = learner.set_params(enrolled=[*range(5), "nobody"])
    assert enrolled.fit(X, y, groups=users).n_users_ == 6


def test_seeds_are_public_and_fresh() -> None:
    X, y, users = people(90, 20)
    fresh = [classifier(algorithm=LISTS, public_seed=None, m=20, delta=1e-6).fit(X, y, groups=users) for _ in range(2)]
    assert fresh[0].public_seed_ != fresh[1].public_seed_
    given = classifier(algorithm=LISTS, public_seed=PublicSeed(SEED), m=20, delta=1e-6).fit(X, y, groups=users)
    assert given.public_seed_ == SEED
    with pytest.raises(ValueError, match="public_seed must be given"):
        fresh[0].output_distribution(X, y, groups=users)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"delta": 0.1, "algorithm": 3}, TypeError, "algorithm"),
        ({"model": "shuffle", "delta": 0.1}, ValueError, "'central-pure', 'local'; got 'shuffle'"),
        ({"model": "mail"}, ValueError, "model must be one of"),
        ({"delta": 0}, ValueError, "delta must be in"),
        ({"delta": 0.1, "model": "local"}, ValueError, "delta must be 0"),
        ({"delta": 0.1, "public_seed": "zz"}, ValueError, "hexadecimal"),
        ({"delta": 0.1, "public_seed": b"short"}, ValueError, "32 bytes"),
        ({"delta": 0.1, "epsilon": 0}, ValueError, "epsilon"),
        (
            {"model": "central-pure", "algorithm": DecisionListQueries(20, alpha=0.1)},
            BudgetError,
            "hypothesis_bits=262 is above 64",
        ),
        ({"model": "local", "algorithm": LISTS}, ValueError, "a user for every bit"),
        ({"delta": 0.1, "algorithm": DecisionListQueries(2, alpha=0.1)}, ValueError, "at least 2 columns"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        classifier(**changes).fit(np.array([[0], [1], [0], [1]]), [0, 1, 0, 1], groups=[0, 0, 1, 1])


def test_pmfs_too_large_to_list_are_refused() -> None:
    X, y, users = people(40, 5)
    for model, delta in (("central-approx", "0.1"), ("local", 0)):
        with pytest.raises(BudgetError, match="too many to list"):
            classifier(algorithm=LISTS, m=5, model=model, delta=delta).output_distribution(X, y, groups=users)


@pytest.mark.parametrize("state", ["raise", "warn"])
def test_floating_point_errors_that_a_caller_asks_for(state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # They would tell of a user's values, and in common computations change the votes of others.
    votes, original = [], StatisticalQueryLearner.items

    def recorded(self: Any, data: Any, seed: Any) -> Any:
        votes.append(original(self, data, seed))
        return votes[-1]

    monkeypatch.setattr(StatisticalQueryLearner, "items", recorded)
    X, y, users = people(6, 20)
    halfspaces = MarginPerceptronQueries(4, margin=0.2, alpha=0.3, max_rounds=3)
    for entry in (1.0, 5e-324):
        X = np.where((users == 0)[:, None], [entry, 3.0, 0.0, 0.0], X)
        with np.errstate(all=state):
            classifier(algorithm=halfspaces, m=20, delta=0.1).fit(X, y, groups=users)
    assert votes[0][1:] == votes[1][1:]
    assert halfspaces.encode(halfspaces.default) not in votes[0]
