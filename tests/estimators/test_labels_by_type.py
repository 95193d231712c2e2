"""Labels and the types of y: what can hold no class is refused by its type, and values decide nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
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


@pytest.mark.parametrize("on_invalid", ["clamp", "raise"])
@pytest.mark.parametrize("y", NUMBERS, ids=lambda y: str(y.dtype))
def test_numbers_are_no_texts(y: Any, on_invalid: str) -> None:
    for classes in (("no", "yes"), (b"no", b"yes"), ("0", "1")):
        with pytest.raises(TypeError, match=r"values are numbers, and classes=.*pass classes as numbers, or y as"):
            pmf(classes, y, on_invalid=on_invalid)
    for classes in ((0, 1), (False, True), (0.0, 1.0)):
        assert pmf(classes, y, on_invalid=on_invalid) == WANTED


@pytest.mark.parametrize("y", TEXTS, ids=lambda y: str(y.dtype))
def test_texts_are_no_numbers_and_no_bytes(y: Any) -> None:
    for classes, wanted in (((0, 1), "numbers"), ((False, True), "numbers"), ((b"no", b"yes"), "bytes")):
        with pytest.raises(TypeError, match=f"values are texts, and classes=.* are {wanted}.*classes as texts"):
            pmf(classes, y)
    assert pmf(("no", "yes"), y) == WANTED


def test_bytes_are_no_texts() -> None:
    with pytest.raises(TypeError, match=r"values are bytes, and classes=.* are texts.*classes as bytes, or y as texts"):
        pmf(("no", "yes"), WORDS.astype("S"))
    assert pmf((b"no", b"yes"), WORDS.astype("S")) == WANTED


def test_dates_are_neither() -> None:
    for classes in ((0, 1), ("no", "yes")):
        with pytest.raises(TypeError, match="neither numbers nor texts"):
            pmf(classes, pd.Series(pd.to_datetime(CODES)))


@pytest.mark.parametrize("container", [list, lambda y: np.array(y, dtype=object), lambda y: pd.Series(y, dtype=object)])
def test_objects_hold_anything_and_what_is_no_class_is_the_first(container: Any) -> None:
    assert pmf(("no", "yes"), container(WORDS.tolist())) == WANTED
    assert pmf((0, 1), container(CODES.tolist())) == WANTED
    for odd in (0, None, b"no", "No", float("nan"), object()):
        assert pmf(("no", "yes"), container([word if word == "yes" else odd for word in WORDS.tolist()])) == WANTED
    nobody = pmf((0, 1), np.zeros(6))
    assert pmf((0, 1), container(WORDS.tolist())) == nobody
    assert pmf(("no", "yes"), container(CODES.tolist())) == nobody


@pytest.mark.parametrize(
    "classes", [(0, "a"), ("1", 1), (True, "yes"), ("no", b"yes"), (0, None), (0, 2**60), ("no", "no"), "ab", (1, True)]
)
def test_labels_of_two_types_are_no_classes(classes: Any) -> None:
    with pytest.raises(ValueError, match="classes must be two distinct labels of one type"):
        pmf(classes, CODES)
