"""Single checks of the readers that no other test makes: each one was noticed by a mutant that survived."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.users.containers import read_classes, read_column, read_features



@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("number", [10**400, Fraction(10**400, 3)])
def test_numbers_beyond_all_doubles_are_infinite_with_their_sign(number: Any, sign: int) -> None:
    assert real_of(sign * number) == sign * math.inf


def test_a_fraction_below_zero_by_its_denominator() -> None:
    number = Fraction(1, 3)
    number._numerator, number._denominator = 10**400, -1  # type: ignore[attr-defined]
    assert real_of(number) == -math.inf


@pytest.mark.parametrize("classes", [(math.nan, 1), (1, math.nan), (1, 1), (1, 1.0), ("a", "a"), (True, 1)])
def test_classes_are_two_numbers_that_differ(classes: Any) -> None:
    with pytest.raises(ValueError, match="two distinct labels"):
        read_classes(classes)


def test_an_array_with_one_column_is_a_vector() -> None:
    column = read_column(np.array([[3], [1], [2]]), "y")
    assert column.numbers().tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="1d array"):
        read_column(np.array([[3, 1], [1, 2]]), "y")


def test_categories_are_no_numbers() -> None:
    pd = pytest.importorskip("pandas")
    categories = pd.Series([7, 9, 7]).astype("category")
    with pytest.raises(TypeError, match="numbers are needed"):
        read_features(pd.DataFrame({"a": [1, 2, 3], "b": categories}), None)
