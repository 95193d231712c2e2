"""ThresholdClassifier: what it learns, what it reads, and what it says about itself."""

from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from oracle.permute_and_flip import by_orders
from oracle.statistics import surprises
from oracle.thresholds import errors, minimal_errors
from userdp import Pmf
from userdp.concepts.points import points_of
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.learners import ThresholdClassifier, candidates_for_t
from userdp.learners.tolerance import first_crossing_scores
from userdp.mechanisms import ExponentialMechanism, GroupedExponentialMechanism, GroupedScores

F = Fraction
LARGEST = 2**64 - 1


def people(n: int, m: int, best: int, domain_size: int, noise: float = 0.1, seed: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(1, domain_size, n * m, dtype=np.uint64, endpoint=True)
    return x[:, None], ((x > best) ^ (rng.random(n * m) < noise)).astype(int), np.repeat(np.arange(n), m)


@pytest.mark.parametrize("m", [1, 3, 8, 64])
@pytest.mark.parametrize("domain_size", [100, 2**40, LARGEST])
def test_a_good_threshold_is_found(m: int, domain_size: int) -> None:
    best = domain_size // 3
    X, y, groups = people(2000, m, best, domain_size)
    learner = ThresholdClassifier(epsilon=2, domain_size=domain_size, m=m, exact_integers=True, classes=(0, 1))
    fitted = learner.fit(X, y, groups=groups)
    assert abs(fitted.threshold_ - best) <= 0.12 * domain_size
    assert np.mean(fitted.predict(X) == y) > 0.75


def test_the_search_finds_a_good_threshold() -> None:
    X, y, groups = people(60_000, 4, 700, 1000)
    learner = ThresholdClassifier(epsilon=4, domain_size=1000, m=4, method="median", alpha=0.5, classes=(0, 1))
    assert abs(learner.fit(X, y, groups=groups).threshold_ - 700) <= 400
    assert np.mean(learner.predict(X) == y) > 0.5


def rows_of(users: Any) -> tuple[Any, Any, Any]:
    rows = [(x, y, name) for name, user in users.items() for x, y in user]
    x, y, names = zip(*rows, strict=True)
    return np.array(x)[:, None], np.array(y), np.array(names)


USERS = {
    "ann": ((1, 0), (2, 1), (2, 1), (3, 1)),
    "bob": ((3, 1), (1, 0)),
    "cem": ((2, 0),),
    "dan": ((4, 1), (1, 1), (2, 0), (2, 0)),
    "eve": ((1, 0), (1, 0), (4, 1)),
}


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_pmf_is_that_of_the_reference(mechanism: str) -> None:
    """Both draws from their definitions, on users of whom some gave fewer rows."""
    m, size, n = 4, 4, len(USERS)
    learner = ThresholdClassifier(epsilon=1, domain_size=size, m=m, mechanism=mechanism, classes=(0, 1))
    X, y, names = rows_of(USERS)
    pmf = learner.output_distribution(X, y, groups=names)
    users = list(USERS.values())
    least = [minimal_errors(users, m, size)[t] for t in candidates_for_t(m)]
    choice = ExponentialMechanism(epsilon=F(3, 10), sensitivity=1).pmf(first_crossing_scores(np.array(least), n))
    expected = [0.0] * (size + 1)
    for t, mass in zip(candidates_for_t(m), choice.probabilities, strict=True):
        counts = [errors(users, u, t, m) for u in range(size + 1)]
        weights = [math.exp(-0.7 / 2 * (count - min(counts))) for count in counts]
        masses = [weight / sum(weights) for weight in weights]
        if mechanism == "permute-and-flip":
            masses = [float(part) for part in by_orders([F(weight) for weight in weights])]
        for u, part in enumerate(masses):
            expected[u] += mass * part
    assert pmf.outputs == tuple(range(size + 1))
    assert pmf.probabilities == pytest.approx(expected, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["score", "median"])
def test_fits_follow_the_pmf(method: str) -> None:
    learner = ThresholdClassifier(
        epsilon=8, domain_size=4, m=4, method=method, alpha=0.9, random_state=0, classes=(0, 1)
    )
    X, y, names = rows_of(USERS)
    pmf = learner.output_distribution(X, y, groups=names)
    assert isinstance(pmf, Pmf)
    drawn = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        for seed in range(600):
            drawn.append(learner.set_params(random_state=seed).fit(X, y, groups=names).threshold_)
    found, limit = surprises([drawn.count(u) for u in pmf.outputs], pmf.fractions())
    assert found < limit


def test_ids_and_orders_do_not_matter() -> None:
    X, y, names = rows_of(USERS)
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=4, classes=(0, 1))
    pmf = learner.output_distribution(X, y, groups=names)
    order = np.random.default_rng(3).permutation(len(y))
    numbers = {name: 1000 - code for code, name in enumerate(USERS)}
    again = learner.output_distribution(X[order], y[order], groups=[numbers[names[row]] for row in order])
    assert again == pmf
    assert learner.output_distribution(X + 0.0, y, groups=names) == pmf
    assert learner.output_distribution(X - 0.5, y, groups=names) == pmf


def test_users_without_rows_count() -> None:
    X, y, names = rows_of(USERS)
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=4, enrolled=[*USERS, "fay", "gus"], classes=(0, 1))
    assert learner.fit(X, y, groups=names).n_users_ == 7


def test_columns() -> None:
    X, y, groups = people(3000, 1, 30, 100, noise=0)
    wide = np.column_stack([np.zeros(len(X)), X[:, 0], np.ones(len(X))])
    fitted = ThresholdClassifier(epsilon=4, domain_size=100, m=1, feature=1, classes=(0, 1)).fit(wide, y, groups=groups)
    assert 25 <= fitted.threshold_ <= 35
    assert fitted.n_features_in_ == 3
    assert fitted.predict([[99, 1, 99], [0, 100, 0]]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="feature is 3"):
        ThresholdClassifier(epsilon=4, domain_size=100, m=1, feature=3, classes=(0, 1)).fit(wide, y, groups=groups)


def test_private_values_are_never_refused() -> None:
    X = np.array([[math.nan], [math.inf], [-math.inf], [-3.0], [1e300], [2.0]])
    y = np.array([0, 1, 7, -1, 1, 0])
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=2, classes=(0, 1))
    pmf = learner.output_distribution(X, y, groups=[0, 0, 1, 1, 2, 2])
    clean = np.array([[1], [4], [1], [1], [4], [2]])
    listed, counts = clone(learner).set_params(enrolled=range(3)), np.isin(y, (0, 1))
    assert pmf == listed.output_distribution(clean[counts], y[counts], groups=np.array([0, 0, 1, 1, 2, 2])[counts])
    assert learner.fit(X, y, groups=[0, 0, 1, 1, 2, 2]).is_private_
    strict = ThresholdClassifier(epsilon=1, domain_size=4, m=2, on_invalid="raise", classes=(0, 1))
    with pytest.raises(ValueError, match="NaN"):
        strict.fit(X, y, groups=[0, 0, 1, 1, 2, 2])
    assert not strict.fit(clean, [0, 1, 0, 0, 1, 0], groups=[0, 0, 1, 1, 2, 2]).is_private_


@pytest.mark.parametrize("u", [0, 1, 2, 7, 2**53, LARGEST - 1])
def test_points_keep_what_is_above_a_threshold(u: int) -> None:
    size = LARGEST
    floats = np.array([u + 0.5, float(u), np.nextafter(float(u), np.inf), 1.5, 2.0**63, 2.0**64, 1e19])
    for x, point in zip(floats, points_of(floats, size).tolist(), strict=True):
        if 1 <= u < LARGEST - 2**11:
            assert (point > u) == (F(x) > u)
        assert 1 <= point <= size


def test_points_of_all_types() -> None:
    assert points_of(np.array([0, 1, 2**63], np.uint64), LARGEST).tolist() == [1, 1, 2**63]
    assert points_of(np.array([-(2**63), 5, 2**63 - 1]), 2**62).tolist() == [1, 5, 2**62]
    assert points_of(np.array([True, False]), 5).tolist() == [1, 1]
    assert points_of(np.array([3.2, 300], np.float32), 255).tolist() == [4, 255]
    assert points_of(np.array([7, 200], np.uint8), 2**40).tolist() == [7, 200]
    assert points_of(np.array([0.3]), 1).tolist() == [1]


def test_what_it_says_about_itself() -> None:
    X, y, groups = people(50, 8, 30, 100)
    fitted = ThresholdClassifier(epsilon=1, domain_size=100, m=8, classes=(0, 1)).fit(X, y, groups=groups)
    assert fitted.privacy_.budget == {"choice of t": F(3, 10), "threshold": F(7, 10)}
    assert fitted.privacy_.released == ("threshold_",)
    assert (fitted.unit_, fitted.n_users_, fitted.is_private_) == ("user", 50, True)
    fitted_names = {name for name in vars(fitted) if name.endswith("_")}
    assert fitted_names == {
        "threshold_", "mechanism_", "classes_", "n_users_", "unit_", "privacy_", "is_private_", "n_features_in_",
    }  # fmt: skip
    for m, budget in (
        (1, {"threshold": 1}),
        (3, {"threshold": 1}),
        (4, {"choice of t": F(3, 10), "threshold": F(7, 10)}),
    ):
        assert parts_of(ThresholdClassifier(epsilon=1, domain_size=9, m=m, classes=(0, 1))) == budget
    for m, budget in (
        (1, {"medians": F(1, 4), "comparisons": F(3, 4)}),
        (2, {"least error": F(1, 2), "medians": F(1, 8), "comparisons": F(3, 8)}),
    ):
        assert parts_of(ThresholdClassifier(epsilon=1, domain_size=9, m=m, method="median", classes=(0, 1))) == budget


def parts_of(learner: ThresholdClassifier) -> dict[str, Fraction]:
    return dict(learner.release_plan(n_users=50, n_features=1).budget.parts)


def test_nothing_of_the_data_is_kept() -> None:
    X, y, groups = people(50, 8, 30, 100)
    fitted = ThresholdClassifier(epsilon=1, domain_size=100, m=8, classes=(0, 1)).fit(X, y, groups=groups)
    assert len(pickle.dumps(fitted)) < 2000
    again = ThresholdClassifier.from_json(fitted.to_json())
    assert again.threshold_ == fitted.threshold_
    assert again.privacy_ == fitted.privacy_
    assert (again.predict(X) == fitted.predict(X)).all()


def test_a_threshold_beyond_signed_integers_is_kept() -> None:
    X = np.full((400, 1), LARGEST, dtype=np.uint64)
    learner = ThresholdClassifier(epsilon=9, domain_size=LARGEST, m=1, exact_integers=True, classes=(0, 1))
    fitted = learner.fit(X, np.zeros(400, int), groups=np.arange(400))
    assert fitted.threshold_ == LARGEST
    again = ThresholdClassifier.from_json(fitted.to_json())
    assert again.threshold_ == LARGEST
    assert again.predict(X[:1]).tolist() == [0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": -1}, ValueError, "epsilon"),
        ({"domain_size": 0}, ValueError, "domain_size"),
        ({"domain_size": 2**64}, ValueError, "domain_size"),
        ({"domain_size": 2.0}, TypeError, "domain_size"),
        ({"m": 0}, ValueError, "m must"),
        ({"m": None}, ValueError, "^m, the public number of rows that count of each user, must be given"),
        ({"m": 2**31}, ValueError, "m must"),
        ({"method": "laplace"}, ValueError, "method"),
        ({"alpha": 0}, ValueError, "alpha"),
        ({"alpha": 1}, ValueError, "alpha"),
        ({"beta": 1}, ValueError, "beta"),
        ({"feature": -1}, ValueError, "feature"),
        ({"feature": "age"}, TypeError, "feature"),
        ({"classes": (1, 1)}, ValueError, "classes"),
        ({"on_invalid": "ignore"}, ValueError, "on_invalid"),
    ],
)
def test_bad_parameters(given: dict[str, Any], error: type[Exception], message: str) -> None:
    learner = clone(ThresholdClassifier(epsilon=1, domain_size=9, m=2, classes=(0, 1))).set_params(**given)
    with pytest.raises(error, match=message):
        learner.fit([[1], [2]], [0, 1], groups=[0, 1])


def test_large_pmfs_are_refused() -> None:
    with pytest.raises(BudgetError, match="domain_size"):
        ThresholdClassifier(epsilon=1, domain_size=2**12, m=1, classes=(0, 1)).output_distribution(
            [[1], [2]], [0, 1], groups=[0, 1]
        )


def test_too_little_epsilon_for_a_search_is_refused() -> None:
    learner = ThresholdClassifier(epsilon=1e-6, domain_size=4, m=8, method="median", classes=(0, 1))
    with pytest.raises(BudgetError, match=r"epsilon leaves 1.6e-08 for each noisy count"):
        learner.fit([[1], [2]], [0, 1], groups=[0, 1])


def test_enrolled_users_need_groups() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=4, require_groups=False, enrolled=[1, 2], classes=(0, 1))
    with pytest.raises(ValueError, match="enrolled lists users, but groups is missing"):
        learner.fit([[1], [2]], [0, 1])


def test_groups_are_required() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=9, m=2, classes=(0, 1))
    with pytest.raises(ValueError, match="groups is missing"):
        learner.fit([[1], [2]], [0, 1])
    records = ThresholdClassifier(epsilon=1, domain_size=9, require_groups=False, classes=(0, 1)).fit(
        [[1], [2]], [0, 1]
    )
    assert records.unit_ == "record"


def test_the_number_of_groups_says_nothing_about_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def watched(mechanism: GroupedExponentialMechanism, source: Any, groups: GroupedScores) -> int:
        drawn.append(len(groups.starts))
        return 0

    monkeypatch.setattr(GroupedExponentialMechanism, "_draw", watched)
    learner = ThresholdClassifier(
        epsilon=1, domain_size=10, m=4, enrolled=range(3), mechanism="exponential", classes=(0, 1)
    )
    for ids in ([0, 1], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], [2] * 9):
        learner.fit(np.arange(1, len(ids) + 1)[:, None], np.zeros(len(ids)), groups=ids)
    assert drawn == [13, 13, 13]


def test_rows_that_are_users_of_their_own_have_no_others() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=4, require_groups=False, classes=(0, 1))
    with pytest.raises(ValueError, match="m is 4, but groups is missing"):
        learner.fit([[1], [2]], [0, 1])
    for m in (None, 1):
        learner.set_params(m=m).fit([[1], [2]], [0, 1])
        assert dict(learner.privacy_.budget) == {"threshold": 1}


@pytest.mark.parametrize("method", ["score", "median"])
def test_a_decreasing_threshold_is_an_increasing_one_of_the_other_label(method: str) -> None:
    X, y, groups = rows_of(USERS)
    given: dict[str, Any] = {"epsilon": 2, "domain_size": 3, "m": 4, "method": method, "alpha": 0.9, "classes": (0, 1)}
    up, down = ThresholdClassifier(**given), ThresholdClassifier(decreasing=True, **given)
    assert down.output_distribution(X, 1 - y, groups=groups) == up.output_distribution(X, y, groups=groups)
    learner = ThresholdClassifier(epsilon=4, domain_size=10, m=4, classes=("far", "near"), decreasing=True)
    points = np.tile(np.arange(1, 11), 400)
    learner.fit(points[:, None], np.where(points <= 5, "near", "far"), groups=np.arange(4000) // 4)
    assert learner.predict([[1], [10]]).tolist() == ["near", "far"]
    assert clone(learner).decreasing
    assert ThresholdClassifier.from_json(learner.to_json()).predict([[1], [10]]).tolist() == ["near", "far"]


@pytest.mark.parametrize("classes", [(1, 0), (True, False), (0.5, -0.5)])
def test_falling_classes_are_refused_before_data_are_read(classes: Any) -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=1, classes=classes)
    with pytest.raises(ValueError, match=r"smaller label first.*decreasing=True"):
        learner.fit([["not looked at"]], [None], groups=[1])
