"""What one user's value is changes neither how others' values are read nor whether a fit ends."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from userdp.concepts import DecisionStumps, FiniteClass, Thresholds
from userdp.distributions import DiscreteDistribution, GaussianMean, ProductDistribution
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    HypothesisSelector,
    PrivateMedian,
    RealizablePACClassifier,
    ThresholdClassifier,
)

LEARNERS = [
    ThresholdClassifier(epsilon=1, domain_size=4, m=2, classes=(0, 1)),
    ThresholdClassifier(epsilon=1, domain_size=2, m=1, method="median", alpha=0.9, classes=(0, 1)),
    RealizablePACClassifier(epsilon=1, concepts=Thresholds(4), m=2, classes=(0, 1)),
    RealizablePACClassifier(epsilon=1, concepts=DecisionStumps([[1.0, 2.0]]), m=2, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(4), m=2, classes=(0, 1)),
    AgnosticPACClassifier(
        epsilon=1, concepts=FiniteClass([[0, 1, 1], [1, 0, 1]]), m=2, method="pairwise", classes=(0, 1)
    ),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(4), m=2, method="surrogate", alpha=0.5, classes=(0, 1)),
    ClippedPairwiseEM(epsilon=1, psi=[[[0, 0], [1, -1]], [[-1, 1], [0, 0]]], m=2),
    HypothesisSelector(epsilon=1, candidates=[[0.5, 0.5], [0.1, 0.9]], m=2),
    DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.9),
    ProductDistribution(epsilon=1, n_symbols=2, n_columns=1, m=2, alpha=0.9),
    GaussianMean(epsilon=1, mean_bound=2, m=2, alpha=0.9),
]

USERS = [0, 0, 1, 1, 2, 2, 3]
POINTS = [1, 3, 2, 2, 4, 1]
LABELS = [0, 1, 1, 1, 1, 0]


class Hostile:
    """Raises whatever it is asked."""

    __hash__ = None

    def __float__(self) -> float:
        raise RuntimeError("a secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("a secret")


# Values, and numbers that they count as.
NUMBERS = [
    ("a secret", math.nan),
    ("3", 3),
    (b"3", 3),
    (None, math.nan),
    (True, 1),
    (1j, math.nan),
    (np.complex128(2 + 1j), math.nan),
    ([3], math.nan),
    ({}, math.nan),
    (Hostile(), math.nan),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    (2**53 + 1, 2.0**53),
    (-(2**70), -(2.0**70)),
    (math.inf, math.inf),
    (Fraction(5, 2), 2.5),
    (Decimal("2.5"), 2.5),
    (np.longdouble("1e4000"), math.inf),
    (np.datetime64("2020-01-01"), math.nan),
]

# Labels, and those that they count as: 2 is none, as others are that are neither 0 nor 1.
OTHERS = [
    ("1", 1), ("a secret", 2), ("", 2), (b"1", 1), ("01", 1), ("true", 1), ("0", 0), (None, 2), (math.nan, 2),
    (math.inf, 2), (1j, 2), ([1], 1), (np.array([1, 0]), 2), (Hostile(), 2), (10**400, 2), (2, 2), (-1, 2), (True, 1),
    (1.0, 1), (Fraction(1), 1),
]  # fmt: skip


def as_list(values: list[Any]) -> Any:
    return values


def as_objects(values: list[Any]) -> Any:
    return np.fromiter(values, dtype=object, count=len(values))


def as_series(values: list[Any]) -> Any:
    return pytest.importorskip("pandas").Series(values, dtype=object)


FORMS = pytest.mark.parametrize("form", [as_list, as_objects, as_series])


def distribution(learner: Any, points: Any, labels: Any, form: Any) -> tuple[int, ...]:
    """The weights, where any warning is an error."""
    X = [[point] for point in points]
    if form is as_objects:
        X = as_objects(points).reshape(-1, 1)  # type: ignore[assignment]
    if form is as_series:
        X = as_series(points).to_frame("point")
    if form is np.asarray:
        X = np.array(X)  # type: ignore[assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pmf = clone(learner).output_distribution(X, form(labels), groups=USERS)
    return tuple(pmf.weights)


def named(learner: Any) -> str:
    return f"{type(learner).__name__}-{getattr(learner, 'method', 'any')}"


KNOWN: dict[tuple[int, str], Any] = {}


def of_numbers(learner: Any, point: Any, label: Any) -> Any:
    """The distribution on arrays of numbers; several values count as one number, in every form."""
    key = id(learner), repr((point, label))
    if key not in KNOWN:
        KNOWN[key] = distribution(learner, np.array([*POINTS, point]), np.array([*LABELS, label]), np.asarray)
    return KNOWN[key]


@FORMS
@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_a_persons_point_is_read_alone(learner: Any, form: Any) -> None:
    for point, like in NUMBERS:
        expected = of_numbers(learner, like, 0)
        assert distribution(learner, [*POINTS, point], [*LABELS, 0], form) == expected, repr(point)


@FORMS
@pytest.mark.parametrize("learner", LEARNERS[:7], ids=named)
def test_a_persons_label_is_read_alone(learner: Any, form: Any) -> None:
    for label, like in OTHERS:
        expected = of_numbers(learner, 2, like)
        assert distribution(learner, [*POINTS, 2], [*LABELS, label], form) == expected, type(label)


@pytest.mark.parametrize("other", [2**61, 0.5, None, "a secret", -1, 2**64])
def test_long_integers_of_others_are_read_alike(other: Any) -> None:
    """In columns of Arrow they are kept, and in others read as doubles, whatever is beside them."""
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    size = 2**60
    learner = ThresholdClassifier(epsilon=1, domain_size=2**61, m=1, n_features=1, classes=(0, 1))

    def points(X: Any, **given: Any) -> list[int]:
        made = clone(learner).set_params(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: list[int] = made._read(X, [0] * 3, [0, 1, 2])[0].X[:2].tolist()
        return found

    values = [size + 1, size + 1, other]
    whole = np.array([size + 1, size + 1, 1])[:, None]
    held = [[[value] for value in values], as_objects(values)[:, None], pandas.DataFrame({"x": values}), whole]
    if other is None:
        held.append(pandas.DataFrame({"x": pandas.array(values, dtype="Int64")}))
        assert points(arrow.table({"x": arrow.array(values)})) == [size + 1] * 2
    for X in held:
        assert points(X) == [size] * 2
        rounded = X is held[2] and other in (0.5, None)  # by pandas
        assert points(X, exact_integers=True) == [size if rounded else size + 1] * 2
    assert points(np.where([[False], [False], [True]], np.nan, whole)) == [size] * 2
    assert points([[str(value)] for value in values], exact_integers=True) == [size + 1] * 2


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_value_in_a_frame_changes_no_others(missing: bool) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    whole = pyarrow.array([2**60 + 1, 2**60 + 1, None if missing else 1])
    frame = {"amount": whole, "size": pyarrow.array([2.0, math.nan if missing else 1.0, 3.0])}
    learner = ThresholdClassifier(epsilon=1, domain_size=2**61, m=1, classes=(0, 1))
    for given in ({}, {"city": pyarrow.array(["a secret", "b", None]).dictionary_encode()}):
        table = learner._read(pyarrow.table(frame | given), [0] * 3, [0, 1, 2])[0]
        assert table.X.tolist() == [2**60 + 1] * 2 + [1]
    rounded = pandas.DataFrame({"amount": pandas.array([2**60 + 1, 2**60 + 1, None if missing else 1], dtype="Int64")})
    rounded["city"] = pandas.Categorical(["a secret", "b", None])
    with pytest.warns(UserWarning, match="X may have whole numbers up to"):
        assert learner._read(rounded, [0] * 3, [0, 1, 2])[0].X.tolist() == [2**60] * 2 + [1]


def test_rows_of_lists_may_be_of_any_kind() -> None:
    pandas = pytest.importorskip("pandas")
    learner = GaussianMean(epsilon=1, mean_bound=2, n_columns=2, m=1)
    rows = [[0.5, 1.0], [0.0, 2.0]]
    for kind in (tuple, np.array, pandas.Series):
        table, _ = learner._read([kind(row) for row in rows], None, [0, 1])
        assert table.X.tolist() == rows


def test_rows_beyond_m_and_none_at_all() -> None:
    for learner in LEARNERS:
        everybody = clone(learner).set_params(enrolled=range(4))
        many = everybody.output_distribution(np.ones((10**5, 1)), [0] * 10**5, groups=[3] * 10**5)
        few = everybody.output_distribution(np.ones((learner.m, 1)), [0] * learner.m, groups=[3] * learner.m)
        assert many.weights == few.weights
        nobody = everybody.output_distribution(np.empty((0, 1)), np.empty(0), groups=np.empty(0, dtype=int))
        assert sum(nobody.weights) > 0


@pytest.mark.parametrize("other", ["a secret", "2", None, 0.5, 1j, [1]])
def test_points_of_a_private_median_are_read_alone(other: Any) -> None:
    size, people = 2**60, range(4)

    def median(points: Any, **given: Any) -> tuple[int, ...]:
        ends = {"low": size - 64, "high": size + 64}
        distribution = PrivateMedian(epsilon=1, m=1, domain_size=size + 64, **ends, **given).pmf(points, people)
        return tuple(distribution.weights)

    like = 1 if isinstance(other, list) else {"2": 2, 0.5: 1}.get(other, 0)
    exact = [size + 5, size + 5, 1, other]
    promised = median(exact, exact_integers=True)
    assert promised == median(as_objects(exact), exact_integers=True)
    assert promised == median(np.array([size + 5, size + 5, 1, like]), exact_integers=True)
    for held in (exact, as_objects(exact), np.array([size, size, 1.0, like])):
        with pytest.warns(UserWarning, match="points may have whole numbers up to"):
            rounded = median(held)
        assert rounded == median(np.array([size, size, 1, like]), exact_integers=True) != promised


@pytest.mark.parametrize("on_invalid", ["clamp", "raise"])
@pytest.mark.parametrize("X", [np.array([777.5, 2.0]), np.array(777.5), 777.5])
def test_errors_about_shapes_show_no_data(X: Any, on_invalid: str) -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=1, on_invalid=on_invalid, classes=(0, 1))
    with pytest.raises((TypeError, ValueError), match=r"Expected 2D array|got a builtins.float") as caught:
        learner.fit(X, [0, 1], groups=[0, 1])
    assert "777" not in str(caught.value)
    learner.fit([[1.0], [2.0]], [0, 1], groups=[0, 1])
    with pytest.raises((TypeError, ValueError), match=r"Expected 2D array|got a builtins.float") as caught:
        learner.predict(X)
    assert "777" not in str(caught.value)


def test_one_complex_number_makes_complex_ones_of_all() -> None:
    """Refused where values are looked at, without them; otherwise the real parts of the others are what they were."""
    X, y, odd = np.array([[1.0], [2.0], [777j]]), np.array([0, 1, 777j]), [[1.0], [2.0], [None]]
    learner = ThresholdClassifier(epsilon=1, domain_size=4, m=1, n_features=1, classes=(0, 1))
    assert learner.output_distribution(X, y, groups=range(3)) == learner.output_distribution(
        odd, [0, 1, None], groups=range(3)
    )
    for given in ((X, [0, 1, 0]), ([*odd[:2], [1.0]], y)):
        with pytest.raises(ValueError, match="Complex data not supported") as caught:
            clone(learner).set_params(on_invalid="raise").fit(*given, groups=range(3))
        assert "777" not in str(caught.value)
