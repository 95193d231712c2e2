"""Programs that draw, their exact laws, and how a budget is split and recorded."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio
from userdp.exceptions import BudgetError
from userdp.learners import PrivacyRecord
from userdp.learners._privacy import split_budget
from userdp.learners._program import law_of
from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism

# --- budgets


def test_budgets_split_exactly() -> None:
    parts = split_budget("0.1", {"first": Fraction(1, 3), "second": 1, "none": 0})
    assert dict(parts) == {"first": Fraction(1, 40), "second": Fraction(3, 40)}
    assert dict(split_budget(0.1, {"all": 7})) == {"all": Fraction(0.1)}
    assert split_budget(LogRatio(3), {"all": 1})["all"] == LogRatio(3)
    halves = split_budget(LogRatio(3), {"a": 1, "b": 1})
    total = sum(halves.values())
    # At most ln 3, and next to it.
    assert halves["a"] == halves["b"]
    assert Fraction(10986122886681, 10**13) < total < Fraction(10986122886682, 10**13)
    with pytest.raises(TypeError):
        parts["first"] = 1  # type: ignore[index]
    for bad in (0, -1, math.nan, math.inf, "much"):
        with pytest.raises((TypeError, ValueError), match="epsilon"):
            split_budget(bad, {"all": 1})


def test_the_record_is_a_value() -> None:
    record = PrivacyRecord(Fraction(1), Fraction(0), "replace", "user", {"all": Fraction(1)}, ("concept_",), ())
    assert record.is_private
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(TypeError):
        record.budget["all"] = Fraction(2)  # type: ignore[index]
    with pytest.raises(AttributeError):
        record.epsilon = Fraction(2)  # type: ignore[misc]
    assert not PrivacyRecord(Fraction(1), Fraction(0), "replace", "user", {}, (), ("a reason",)).is_private


# --- programs


def two_steps(draw: Any) -> tuple[int, int]:
    first = draw(ExponentialMechanism(epsilon=1, sensitivity=1), [0, 1])
    second = draw(DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 2)), 2 * first)
    return first, second


def test_the_law_of_a_program_is_that_of_all_its_paths() -> None:
    outputs = list(itertools.product(range(2), range(3)))
    chosen = ExponentialMechanism(epsilon=1, sensitivity=1).pmf([0, 1]).fractions()
    noise = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 2))
    noisy = [noise.pmf(0).fractions(), noise.pmf(2).fractions()]
    wanted = [chosen[first] * noisy[first][second] for first, second in outputs]
    pmf = law_of(two_steps, outputs)
    assert pmf.outputs == tuple(outputs)
    assert pmf.fractions() == wanted
    # Outcomes that are reached by several paths, and some by none.
    summed = law_of(lambda draw: sum(two_steps(draw)), range(-1, 5))
    assert summed.fractions() == [
        sum((mass for (a, b), mass in zip(outputs, wanted, strict=True) if a + b == total), Fraction(0))
        for total in range(-1, 5)
    ]


def test_programs_with_many_paths_or_unknown_outcomes_are_refused() -> None:
    with pytest.raises(BudgetError, match="more than 5 paths"):
        law_of(two_steps, list(itertools.product(range(2), range(3))), max_paths=5)
    assert len(law_of(two_steps, list(itertools.product(range(2), range(3))), max_paths=6)) == 6
    with pytest.raises(RuntimeError, match="not among its public outputs"):
        law_of(two_steps, [(0, 0)])
