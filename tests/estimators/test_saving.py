"""JSON of estimators: every kind of parameter comes back, and hostile text is refused."""

from __future__ import annotations

import json
import uuid
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.concepts import Thresholds
from userdp.estimators.saving import _read, _written
from userdp.exact import LogRatio
from userdp.learners import ThresholdClassifier
from userdp.public_randomness import PublicSeed
from userdp.stability import (
    AccurateLists,
    DecisionListQueries,
    ListStabilityLearner,
    LittlestoneLists,
    MarginPerceptronQueries,
    RepresentationLearner,
    TournamentLearner,
    VersionSpace,
)

PARAMETERS = [
    None, True, 1, -(2**70), 0.1, float("inf"), 5e-324, "a", "", Fraction(1, 3), LogRatio(3, 2), uuid.UUID(int=7),
    b"", b"\x00\xff", range(2, 9, 3), (), (1, (2, "a")), [1, [None]], {"a": 1, 2: Fraction(1)}, np.float32(0.1),
    np.int64(-3), np.uint64(2**64 - 1), np.bool_(True), np.str_("a"), np.arange(3, dtype=">i2"),
    np.array(3.5), np.zeros((0, 2)),
    np.array([2**64 - 1], dtype=np.uint64), np.array([[True], [False]]), np.array(["a", "bcd"]),
    np.array([b"a", b"\xff\x00b"]),
    np.array([1, "a", None], dtype=object), np.array([0.1, np.inf], dtype=np.float32),
]  # fmt: skip


@pytest.mark.parametrize("value", PARAMETERS, ids=repr)
def test_every_kind_of_parameter_comes_back(value: Any) -> None:
    again = _read(json.loads(json.dumps(_written(value), allow_nan=False)))
    if isinstance(value, np.ndarray):
        assert (again.dtype, again.shape, again.tolist()) == (value.dtype, value.shape, value.tolist())
    else:
        assert again == value
        assert isinstance(value, np.generic) or type(again) is type(value)


@pytest.mark.parametrize(
    "value", [{1, 2}, bytearray(b"a"), 1j, np.array([1j]), np.array(["2020-01-01"], dtype="M8[D]"), object()]
)
def test_other_kinds_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be saved as JSON; use pickle"):
        _written(value)


@pytest.mark.parametrize(
    "value",
    [
        PublicSeed(bytes(range(32))),
        RepresentationLearner(Thresholds(5), gamma=0.3, default=2),
        ListStabilityLearner(VersionSpace(Thresholds(5)), eta="2/3", k1=3, k2=4, gamma=7, default=1),
        AccurateLists(LittlestoneLists(Thresholds(3)), alpha="1/7", holdout=2),
        TournamentLearner(Thresholds(3), block_length=2, max_examples=9, default=1),
        DecisionListQueries(2, alpha=0.2, tolerance=0.1),
        MarginPerceptronQueries(2, margin=0.2, alpha=0.1, max_rounds=4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_users_run_comes_back(value: Any) -> None:
    again = _read(json.loads(json.dumps(_written(value), allow_nan=False)))
    assert type(again) is type(value)
    assert _written(again) == _written(value)


def test_classes_are_told_apart_by_more_than_their_names() -> None:
    impostor = type("Thresholds", (), {"_arguments": lambda self: {}})
    with pytest.raises(TypeError, match="cannot be saved"):
        _written(impostor())
    assert repr(_read(_written(Thresholds(5)))) == "Thresholds(domain_size=5, feature=0)"


HOSTILE = [
    {"fraction": "1e99999999"}, {"fraction": "1/0"}, {"fraction": [1]}, {"float": "0x1p99999"}, {"float": 1},
    {"int": "9" * 5000}, {"log_ratio": ["1", "0"]}, {"log_ratio": ["1"] * 9}, {"uuid": "x"},
    {"bytes": "0"}, {"bytes": 7}, {"range": [1, 2, 0]},
    {"array": {"dtype": "V2147483647", "shape": [3], "entries": [1, 2, 3]}},
    {"array": {"dtype": "M8[s]", "shape": [1], "entries": [1]}},
    {"array": {"dtype": "i1", "shape": [1], "entries": [1000]}},
    {"array": {"dtype": "u8", "shape": [1], "entries": [{"int": str(2**70)}]}},
    {"array": {"dtype": "i1", "shape": {"a": 1}, "entries": [1]}},
    {"array": {"dtype": "S1", "shape": [1], "entries": ["\u00e9"]}},
    {"array": {"dtype": "i1", "shape": [2], "entries": [1], "more": 0}},
    {"mapping": [[[1], 2]]}, {"privacy": [1]}, {"object": ["os.system", {"x": "ls"}]}, {"object": [["a"], {}]},
    {"object": ["Thresholds", {"domain_size": 10**15}]}, {"eval": "1"}, {}, {"int": "1", "float": "1"},
]  # fmt: skip


def fitted() -> Any:
    learner = ThresholdClassifier(epsilon=1, m=2, domain_size=5, classes=(0, 1))
    return learner.fit([[1], [2], [3]], [0, 1, 1], groups=[0, 1, 2])


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: json.dumps(value)[:40])
def test_hostile_values_are_refused(value: Any) -> None:
    content = json.loads(fitted().to_json())
    content["parameters"]["epsilon"] = value
    with pytest.raises(ValueError, match="the text is not a ThresholdClassifier as to_json writes it"):
        ThresholdClassifier.from_json(json.dumps(content))


def test_a_short_text_asks_for_little_memory() -> None:
    array = _read({"array": {"dtype": "<U300000000", "shape": [1], "entries": ["a"]}})
    assert array.nbytes == 4


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "NaN", "{}", "[" * 10**5, '{"userdp":' * 10**5, "9" * 5000, None, b"\xff"]
)
def test_text_that_is_no_estimator_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="the text is not a ThresholdClassifier"):
        ThresholdClassifier.from_json(text)


@pytest.mark.parametrize("name", ["predict", "_x_", "__dict__", "__class__"])
def test_attributes_that_are_not_fitted_are_refused(name: str) -> None:
    content = json.loads(fitted().to_json())
    content["fitted"][name] = 1
    with pytest.raises(ValueError, match="is not a fitted attribute"):
        ThresholdClassifier.from_json(json.dumps(content))
