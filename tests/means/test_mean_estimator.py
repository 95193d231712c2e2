"""WinsorizedMean as an estimator: scikit-learn's checks, tables of all kinds, and copies."""

from __future__ import annotations

import pickle
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from userdp.exceptions import InsecureRandomnessWarning
from userdp.means import WinsorizedMean
from userdp.users import MeanVectors

SETTINGS: list[dict[str, Any]] = [
    {},
    {"delta": 1e-6},
    {"method": "practical"},
    {"method": "gaussian", "delta": 1e-6},
    {"method": "laplace"},
    {"delta": 1e-6, "private_concentration": True},
]


@pytest.mark.parametrize("given", SETTINGS, ids=str)
def test_all_checks_pass_without_privacy_settings(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        warnings.filterwarnings("ignore", message=".*users are too few for")
        learner = WinsorizedMean(epsilon=1, require_groups=False, on_invalid="raise", **given)
        results = list(check_estimator(learner, on_fail=None, on_skip=None))
    assert [result for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 35


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 1}, "delta must be below 1"),
        ({"method": ["auto"]}, "method must be one of"),
        ({"center": 2.0**301}, "center must be finite"),
        ({"grid_resolution": 2**31}, "grid_resolution must be at most"),
        ({"max_norm": 1e200}, "max_norm must be from"),
    ],
)
def test_bad_parameters_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WinsorizedMean(epsilon=1, m=1, **given).fit(np.array([[1.0], [2.0]]), groups=[1, 2])


def test_an_epsilon_in_an_array_is_a_number() -> None:
    learner = WinsorizedMean(epsilon=np.array(1.0), m=1).fit(np.array([[1.0], [2.0]]), groups=[1, 2])
    assert learner.privacy_.epsilon == 1


PEOPLE = np.repeat(np.arange(30), 2)
ROWS = np.random.default_rng(0).integers(-(2**20), 2**20, size=(60, 3)) / 2**21


def bits(X: Any, groups: Any = PEOPLE, **given: Any) -> list[list[int]]:
    """Every user's integers, as `fit` sums them."""
    learner = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=2, n_features=3, **given)
    assert np.all(np.isfinite(learner.fit(X, groups=groups).mean_))
    data, _ = learner._read(X, None, groups)
    vectors = MeanVectors(data, 1.0)
    return [vectors.subset([user]).clipped_sum(0.0, 1.0, 2.0**-30).tolist() for user in range(data.n_users)]


def read_only(rows: Any) -> Any:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


TABLES: dict[str, Any] = {
    "Fortran": np.asfortranarray(ROWS),
    "strided": np.repeat(ROWS, 2, axis=1)[:, ::2],
    "backwards": ROWS[:, ::-1].copy()[:, ::-1],
    "read-only": read_only(ROWS),
    "misaligned": np.frombuffer(b"x" + ROWS.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(ROWS.shape),
    "big-endian": ROWS.astype(">f8"),
    "long double": ROWS.astype(np.longdouble),
    "single": ROWS.astype(np.float32),
    "objects": ROWS.astype(object),
    "texts": ROWS.astype(str).astype(object),
    "lists": ROWS.tolist(),
    "fractions": [[Fraction(x) for x in row] for row in ROWS.tolist()],
    "decimals": np.array([[Decimal(x) for x in row] for row in ROWS.tolist()], dtype=object),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_read_the_same_whatever_holds_it(kind: str) -> None:
    assert bits(TABLES[kind]) == bits(ROWS)


@pytest.mark.parametrize("kind", ["float16", "uint8", "uint64", "int64", "bool"])
def test_narrow_and_wide_numbers(kind: str) -> None:
    X = (np.abs(ROWS) * 32).astype(kind)
    assert bits(X) == bits(X.astype(np.float64))


class Rude:
    def __float__(self) -> float:
        raise SystemError("of a user")


@pytest.mark.parametrize(
    "value", [np.nan, np.inf, -np.inf, 1e308, None, "x", 1j, 10**400, [1], Rude(), Decimal("sNaN")]
)
def test_no_value_raises_or_moves_anybody_else(value: Any) -> None:
    X = ROWS.astype(object)
    X[0, 0] = value
    assert bits(X)[1:] == bits(ROWS)[1:]


def test_users_with_very_different_numbers_of_rows() -> None:
    X = np.concatenate([ROWS, np.tile(ROWS[:1], (5000, 1))])
    groups = np.concatenate([PEOPLE, np.full(5000, 7)])
    assert [user for user, pair in enumerate(zip(bits(X, groups), bits(ROWS), strict=True)) if pair[0] != pair[1]] == [
        7
    ]
    assert bits(ROWS, enrolled=[99, *range(30)])[1:] == bits(ROWS)
    assert bits(ROWS, enrolled=[99, *range(30)])[0] == [0, 0, 0]


@pytest.mark.parametrize(
    "given", [*SETTINGS, {"center": [0.1, 0.2, 0.3], "norm": "max", "concentration": "0.1"}], ids=str
)
def test_copies_and_json(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*users are too few for")
        learner = WinsorizedMean(epsilon="0.5", max_norm=1, m=2, **given).fit(ROWS, groups=PEOPLE)
    for copied in (pickle.loads(pickle.dumps(learner)), WinsorizedMean.from_json(learner.to_json())):
        assert copied.get_params() == learner.get_params()
        assert copied.mean_.tolist() == learner.mean_.tolist()
        assert copied.privacy_ == learner.privacy_
        assert copied.public_seed_ == learner.public_seed_
    assert clone(learner).get_params() == learner.get_params()
    assert not hasattr(clone(learner), "mean_")


def test_frames_have_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    for table in (frame, frame.astype(object), frame.astype("Float64")):
        assert bits(table) == bits(ROWS)
    ids = pandas.Series(PEOPLE, index=np.arange(100, 160))
    learner = WinsorizedMean(epsilon=1, delta=1e-6, m=2).fit(frame, groups=ids)
    assert learner.feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_rule_leaves_out_methods_that_do_not_reach_the_epsilon() -> None:
    sizes = {"n_users": 100, "n_features": 3}
    with pytest.raises(ValueError, match="epsilon"):
        WinsorizedMean(epsilon="1e-6", m=4, method="practical").privacy_cost(**sizes)
    assert WinsorizedMean(epsilon="1e-6", m=4).privacy_cost(**sizes).epsilon == Fraction(1, 10**6)
