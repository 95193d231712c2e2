"""Labels and the types of y: compared by their one text, and refused by declared types only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from userdp.learners import ThresholdClassifier

X, USERS = np.arange(1, 7)[:, None], np.repeat([0, 1, 2], 2)
CODES = np.array([0, 1, 0, 1, 1, 1])
WORDS = np.array(["no", "yes"])[CODES]


def pmf(classes: Any, y: Any, **options: Any) -> Any:
    learner = ThresholdClassifier(epsilon=1, domain_size=6, m=2, classes=classes, **options)
    return learner.output_distribution(X, y, groups=USERS)


WANTED = pmf((0, 1), CODES)

NUMBERS = [
    CODES,
    CODES.astype(float),
    CODES.astype(bool),
    pd.Series(CODES, dtype="Int64"),
    pd.Series(CODES, dtype="category"),
    pl.Series(CODES),
]
TEXTS = [
    WORDS,
    pd.Series(WORDS, dtype="str"),
    pd.Series(WORDS, dtype="string"),
    pd.Series(WORDS, dtype="category"),
    pl.Series(WORDS.tolist()),
    pl.Series(WORDS.tolist(), dtype=pl.Categorical),
]


NOBODY = ThresholdClassifier(epsilon=1, domain_size=6, m=2, classes=(0, 1), enrolled=range(3)).output_distribution(
    np.zeros((0, 1)), [], groups=[]
)
"""None of the rows counts."""
ONES = ThresholdClassifier(epsilon=1, domain_size=6, m=2, classes=(1, 2), enrolled=range(3)).output_distribution(
    X[CODES == 1], np.ones(4), groups=USERS[CODES == 1]
)
"""Rows of label 1 count, and for the first class."""


@pytest.mark.parametrize("on_invalid", ["clamp", "raise"])
@pytest.mark.parametrize("y", NUMBERS, ids=lambda y: str(y.dtype))
def test_numbers_are_the_texts_that_say_them(y: Any, on_invalid: str) -> None:
    for classes in ((0, 1), (False, True), (0.0, 1.0), ("0", "1"), (b"0", b"1"), ("00", "1.0"), ("false", "TRUE")):
        assert pmf(classes, y, on_invalid=on_invalid) == WANTED
    assert pmf(("no", "yes"), y) == NOBODY
    assert pmf((1, 2), y) == ONES


@pytest.mark.parametrize("y", TEXTS, ids=lambda y: str(y.dtype))
def test_texts_are_the_bytes_that_say_them(y: Any) -> None:
    for classes in (("no", "yes"), (b"no", b"yes"), ("no ", "\tyes")):
        assert pmf(classes, y) == WANTED
    for classes in ((0, 1), (False, True), ("No", "Yes")):
        assert pmf(classes, y) == NOBODY
    assert pmf(("no", "yes"), WORDS.astype("S")) == WANTED


def test_no_type_that_a_value_can_change_is_refused() -> None:
    times = pd.Series(pd.to_timedelta(CODES))
    for y in (times, times.to_numpy(), pd.Series(pa.array(CODES, type=pa.duration("s")), dtype="duration[s][pyarrow]")):
        assert pmf((0, 1), y) == NOBODY
    dates = pd.Series(pd.to_datetime(CODES, unit="D"))
    assert pmf(("1970-01-01", "1970-01-02"), dates) == WANTED


def test_declared_types_that_hold_no_label_are_refused() -> None:
    for y in (pa.array(CODES, type=pa.duration("s")), pl.Series([[code] for code in CODES.tolist()])):
        with pytest.raises(TypeError, match=r"^y is of type .*, and labels or items can be read of none of its values"):
            pmf((0, 1), y)


@pytest.mark.parametrize("container", [list, lambda y: np.array(y, dtype=object), lambda y: pd.Series(y, dtype=object)])
def test_objects_hold_anything_and_what_is_no_class_does_not_count(container: Any) -> None:
    assert pmf(("no", "yes"), container(WORDS.tolist())) == WANTED
    assert pmf((0, 1), container(CODES.tolist())) == WANTED
    for odd in (0, None, b"no", "No", float("nan"), object(), "maybe", ("yes", "yes")):
        assert pmf(("yes", "other"), container([word if word == "yes" else odd for word in WORDS.tolist()])) == ONES
    for one in (1, True, 1.0, "1", "01", b"1", np.int8(1)):
        assert pmf((0, 1), container([one if code else 0 for code in CODES.tolist()])) == WANTED
    assert pmf((0, 1), container(WORDS.tolist())) == NOBODY
    assert pmf(("no", "yes"), container(CODES.tolist())) == NOBODY


@pytest.mark.parametrize(
    "classes", [(0, "a"), ("1", 1), (True, "yes"), ("no", b"yes"), (0, None), (0, 2**60), "ab", ("", "a")]
)
def test_labels_of_two_types_are_no_classes(classes: Any) -> None:
    with pytest.raises(ValueError, match="classes must be two distinct labels of one type"):
        pmf(classes, CODES)


@pytest.mark.parametrize("classes", [("no", "no"), (1, True), ("1", "01"), (0.5, 0.5), ("no", "no ")])
def test_labels_that_read_alike_are_no_classes(classes: Any) -> None:
    with pytest.raises(ValueError, match=r"^classes: .* read alike"):
        pmf(classes, CODES)
