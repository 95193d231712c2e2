"""Statistical-query algorithms: every sequence of bytes is a hypothesis, and bad public arguments are refused."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from support.query_people import ALGORITHMS, OneMean, data_of, lists
from userdp.exceptions import BudgetError
from userdp.public_randomness import PublicSeed
from userdp.stability import DecisionListQueries, MarginPerceptronQueries, StatisticalQueryLearner, query_parameters
from userdp.stability.statistical_queries import bits_of_digits, bytes_of_digits, digits_of_bytes
from userdp.users import UserTable

# --- hypotheses as bytes


def test_digits_are_numbers_and_back() -> None:
    for base, count in ((3, 4), (2, 8), (7, 2), (1, 3)):
        width = -(-bits_of_digits(count, base) // 8)
        seen = set()
        for number in range(base**count):
            digits = tuple(number // base**place % base for place in range(count))
            item = bytes_of_digits(digits, base)
            assert len(item) == width
            assert digits_of_bytes(item, count, base) == digits
            seen.add(item)
        assert len(seen) == base**count
        if base**count < 256**width:
            assert digits_of_bytes((base**count).to_bytes(width, "big"), count, base) is None


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_what_is_shown_makes_the_algorithm_again(algorithm: Any) -> None:
    for again in (eval(repr(algorithm)), pickle.loads(pickle.dumps(algorithm)), copy.deepcopy(algorithm)):
        for name in ("tolerance", "max_queries", "hypothesis_bits", "intervals", "default"):
            assert getattr(again, name) == getattr(algorithm, name)
    assert repr(DecisionListQueries(3, alpha=0.1)).startswith("DecisionListQueries(n_features=3, alpha=0.1, ")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_every_sequence_of_bytes_is_a_hypothesis(algorithm: Any) -> None:
    rng = np.random.default_rng(5)
    width = len(algorithm.encode(algorithm.default))
    assert width == -(-algorithm.hypothesis_bits // 8)
    X = rng.normal(size=(5, 3))
    for length in (0, 1, width - 1, width, width, width, width, width + 1):
        item = rng.bytes(length)
        hypothesis = algorithm.decode(item)
        assert len(algorithm.encode(hypothesis)) == width
        assert algorithm.decode(algorithm.encode(hypothesis)) == hypothesis
        assert algorithm.predict(hypothesis, X).shape == (5,)
        assert isinstance(algorithm.describe(hypothesis), str)
        if length != width:
            assert hypothesis == algorithm.default
    assert algorithm.decode(b"\xff" * width) == algorithm.default
    assert not algorithm.predict(algorithm.default, X).any()


# --- public arguments


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DecisionListQueries(0, alpha=0.1), ValueError, "n_features"),
        (lambda: DecisionListQueries(2.5, alpha=0.1), TypeError, "n_features"),  # type: ignore[arg-type]
        (lambda: DecisionListQueries(3, alpha=1), ValueError, "alpha"),
        (lambda: DecisionListQueries(3, alpha=math.nan), ValueError, "alpha"),
        (lambda: DecisionListQueries(3, alpha=0.1, width=4), ValueError, "width"),
        (lambda: DecisionListQueries(3, alpha=0.1, length=8), ValueError, "length"),
        (lambda: DecisionListQueries(3, alpha=0.1, tolerance=0), ValueError, "tolerance"),
        (lambda: DecisionListQueries(10**6, alpha=0.1), BudgetError, r"2\*\*12"),
        (lambda: DecisionListQueries(10**6, alpha=0.1, width=10**6), BudgetError, r"2\*\*12"),
        (
            lambda: MarginPerceptronQueries(10**9, margin=0.1, alpha=0.1),
            BudgetError,
            r"n_features must be at most 2\*\*14",
        ),
        (lambda: MarginPerceptronQueries(3, margin=0, alpha=0.1), ValueError, "margin"),
        (lambda: MarginPerceptronQueries(3, margin=0.1, alpha="x"), ValueError, "alpha"),
        (lambda: MarginPerceptronQueries(3, margin=0.1, alpha=0.1, tolerance=0.1), ValueError, "below alpha"),
        (lambda: MarginPerceptronQueries(3, margin=0.1, alpha=0.1, max_rounds=0), ValueError, "max_rounds"),
        (lambda: StatisticalQueryLearner(3), TypeError, "algorithm"),  # type: ignore[arg-type]
        (lambda: StatisticalQueryLearner(OneMean(2**29)), BudgetError, "tolerance"),
        (
            lambda: StatisticalQueryLearner(MarginPerceptronQueries(3, margin="1e-3", alpha="1e-2", tolerance="1e-3")),
            BudgetError,
            "max_queries",
        ),
        (lambda: query_parameters(lists(), eta=1), ValueError, "eta"),
        (lambda: query_parameters(lists(), nu=0), ValueError, "nu"),
    ],
)
def test_bad_public_arguments_are_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_public_shapes_and_too_much_work_are_refused() -> None:
    learner, seed = StatisticalQueryLearner(lists()), PublicSeed(bytes(32))
    with pytest.raises(ValueError, match="at least 3 columns"):
        learner.items(data_of([[((0.0, 1.0), 0)]]), seed)
    huge = UserTable(np.zeros((1, 3)), np.zeros(1, np.uint8), np.zeros(1, np.uint32), 10**6, 10**6)
    with pytest.raises(BudgetError, match="values of queries"):
        learner.items(huge, seed)
