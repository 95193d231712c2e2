"""Partition selection: copied cases, all pairs of neighboring counts in exact numbers, and draws."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.divergence import exp_bounds
from support.distribution_draws import fits
from userdp import LogRatio
from userdp.exceptions import BudgetError
from userdp.mechanisms import PartitionSelection

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "keyed_release_cases.json").read_text())


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "optimal_selection"])
def test_probabilities_are_the_largest(case: dict[str, Any]) -> None:
    given, want = case["given"], [F(mass) for mass in case["want"]]
    ratio = F(given["E"])
    made = PartitionSelection(epsilon=LogRatio(ratio.numerator, ratio.denominator), delta=given["delta"])
    for users, mass in enumerate(want):
        found = made.release_probability(users)
        assert mass * (1 - F(1, 2**90)) <= found <= mass


def test_real_levels() -> None:
    (case,) = (case for case in CASES if case["kind"] == "optimal_selection_real")
    made = PartitionSelection(epsilon=case["given"]["epsilon"], delta=case["given"]["delta"])
    assert made.users_for("1/2") == case["want"] == 12
    assert made.users_for("0.95") == 14
    assert round(float(made.release_probability(11)), 4) == 0.3484
    assert round(float(made.release_probability(12)), 4) == 0.7603
    assert made.release_probability(10**9) == 1


def above(p: list[Fraction], q: list[Fraction], level: Fraction) -> Fraction:
    return sum((max(F(0), x - level * y) for x, y in zip(p, q, strict=True)), F(0))


def law(*shown: Fraction) -> list[Fraction]:
    """Of which of the keys are shown."""
    laws = [F(1)]
    for one in shown:
        laws = [mass * part for mass in laws for part in (one, 1 - one)]
    return laws


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, F(1, 10**5)), (F(1, 2), F(1, 50)), (3, F(1, 1000))])
def test_all_neighboring_counts(neighbors: Any, epsilon: Any, delta: Fraction) -> None:
    made = PartitionSelection(epsilon=epsilon, delta=delta, neighbors=neighbors)
    level, most = exp_bounds(F(epsilon))[0], len(made.numerators)

    def worst(shown: Callable[[int], Fraction]) -> Fraction:
        if neighbors == "add-remove":
            pairs = [(law(shown(c)), law(shown(c + 1))) for c in range(most)]
        else:
            sizes = (
                range(most) if most < 30 else [*range(4), *range(most // 2 - 3, most // 2 + 4), *range(most - 3, most)]
            )
            pairs = [
                (law(shown(c), shown(d + 1)), law(shown(c + 1), shown(d))) for c, d in itertools.product(sizes, sizes)
            ]
        return max(max(above(p, q, level), above(q, p, level)) for p, q in pairs)

    assert worst(made.release_probability) <= delta
    # One user fewer would do for the same probability.
    assert worst(lambda users: made.release_probability(users + (users > 0))) > delta


def test_replacing_moves_two_keys() -> None:
    """What is private for adding a user is not for replacing one: counts (7, 6) and (6, 7)."""
    one = PartitionSelection(epsilon=LogRatio(3), delta="1/1000")
    both = PartitionSelection(epsilon=LogRatio(3), delta="1/1000", neighbors="replace")
    found = {}
    for made in (one, both):
        seven, six = made.release_probability(7), made.release_probability(6)
        found[made.neighbors] = above(law(seven, six), law(six, seven), F(3))
    assert round(float(found["add-remove"]), 3) == 0.27
    assert found["replace"] <= F(1, 1000)


def test_distribution_and_forms() -> None:
    made = PartitionSelection(epsilon=1, delta="1e-5")
    pmf = made.pmf({"b": 12, "a": 500, 3: 0, 4: -2})
    shown = made.release_probability(12)
    assert dict(zip(pmf.outputs, pmf.fractions(), strict=True)) == {("a", "b"): shown, ("a",): 1 - shown}
    assert made.sample({"b": 500, "a": 300, 9: 400, 10: 1000, "no": 0}) == [9, 10, "a", "b"]
    assert made.cost.delta == F(1, 10**5)
    assert pickle.loads(pickle.dumps(made)).numerators == made.numerators


@pytest.mark.statistical
def test_draws_are_of_the_distribution() -> None:
    made, number = PartitionSelection(epsilon=1, delta="1e-5"), 10**5
    for users in (11, 12, 13):
        places = made.sample(np.full(number, users))
        shown = made.release_probability(users)
        seen = [len(places), number - len(places)]
        assert fits(seen, [shown, 1 - shown], number)
        other = made.release_probability(users + 1)
        assert not fits(seen, [other, 1 - other], number)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PartitionSelection(epsilon=0, delta="0.1"), ValueError, "epsilon"),
        (lambda: PartitionSelection(epsilon=1, delta=0), ValueError, "delta"),
        (lambda: PartitionSelection(epsilon=1, delta=1), ValueError, "delta"),
        (lambda: PartitionSelection(epsilon=1, delta="0.1", neighbors="any"), ValueError, "neighbors"),  # type: ignore[arg-type]
        (lambda: PartitionSelection(epsilon="1e-9", delta="1e-9"), BudgetError, "larger epsilon"),
        (lambda: PartitionSelection(epsilon=1, delta="1e-5").pmf([9] * 30), BudgetError, "fewer keys"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
