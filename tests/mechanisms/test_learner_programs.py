"""Programs that draw, their exact distributions, and how a budget is split and recorded."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio, Pmf, _core
from userdp.accounting import PrivacyCost
from userdp.estimators import PrivacyRecord
from userdp.estimators.plan import equal_part, split_budget
from userdp.exceptions import BudgetError
from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism
from userdp.mechanisms.composed import Sampler, output_distribution

F = Fraction
ONE = F(1)


class Doubled(ExponentialMechanism):
    """A user's mechanism, whose constructor takes other arguments than it passes on."""

    def __init__(self, *, epsilon: int) -> None:
        super().__init__(epsilon=2 * epsilon, sensitivity=1)
        self.label = ["kept"]


class Small(DiscreteLaplace):
    """A user's mechanism, whose constructor takes no keyword of its base."""

    def __init__(self, level: int) -> None:
        super().__init__(epsilon=level, sensitivity=1, bounds=(0, 3))
        self.label = ["kept"]


@pytest.mark.parametrize(
    ("mechanism", "data", "cost"),
    [(Doubled(epsilon=1), [0, 1], PrivacyCost(bounded_range=2)), (Small(2), 3, PrivacyCost(2))],
)
def test_copies_of_a_users_own_mechanism_promise_what_it_promises(mechanism: Any, data: Any, cost: Any) -> None:
    expected = mechanism.pmf(data)  # fills caches, which do not travel
    for twin in (pickle.loads(pickle.dumps(mechanism)), copy.copy(mechanism), copy.deepcopy(mechanism)):
        assert type(twin) is type(mechanism)
        assert twin.cost == mechanism.cost == cost
        assert twin.pmf(data) == expected
        assert twin.label == ["kept"]


# --- budgets


def test_budgets_split_exactly() -> None:
    parts = split_budget("0.1", {"first": Fraction(1, 3), "second": 1, "none": 0})
    assert dict(parts) == {"first": Fraction(1, 40), "second": Fraction(3, 40)}
    assert dict(split_budget(0.1, {"all": 7})) == {"all": Fraction(1, 10)}
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
    record = PrivacyRecord(PrivacyCost(1), "user", {"all": Fraction(1)}, ("concept_",))
    assert record.is_private
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(TypeError):
        record.budget["all"] = Fraction(2)  # type: ignore[index]
    with pytest.raises(AttributeError):
        record.epsilon = Fraction(2)  # type: ignore[misc]
    assert not PrivacyRecord(PrivacyCost(1), "user", {}, (), ("a reason",)).is_private


def test_parts_sum_to_the_budget() -> None:
    source = random.Random(2)
    epsilons: list[Any] = [1, 0.1, "0.3", F(7, 3), 5e-324, 1e300, LogRatio(3, 2), LogRatio(10**400 + 1, 10**400)]
    for _ in range(2000):
        epsilon = source.choice(epsilons)
        shares = {str(part): source.choice((0, 1, F(1, 3), 7)) for part in range(source.randrange(1, 5))}
        shares["last"] = F(2, 7)
        parts = split_budget(epsilon, shares)
        assert list(parts) == [name for name, share in shares.items() if share]
        if len(parts) == 1:
            assert list(parts.values()) == [epsilon if isinstance(epsilon, LogRatio) else F(str(epsilon))]
            continue
        whole = sum(parts.values())  # type: ignore[arg-type]
        for name, part in parts.items():
            assert part / whole == shares[name] / sum(shares.values())  # type: ignore[operator]
        if isinstance(epsilon, LogRatio):
            # ln r is between these.
            assert 0 < whole <= epsilon.ratio - 1
            assert whole >= (1 - 1 / epsilon.ratio) * (1 - F(1, 2**51))
        else:
            assert whole == F(str(epsilon))


def test_shares_that_would_exceed_the_budget_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shares must be >= 0, .* got -1 for 'b'"):
        split_budget(1, {"a": 2, "b": -1})
    for shares in ({}, {"a": 0}):
        with pytest.raises(ValueError, match="shares must have a positive one"):
            split_budget(1, shares)
    with pytest.raises(ValueError, match="shares must be >= 0"):
        equal_part(1, 0)


# --- programs


def two_steps(draw: Any) -> tuple[int, int]:
    first = draw(ExponentialMechanism(epsilon=1, sensitivity=1), [0, 1])
    second = draw(DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 2)), 2 * first)
    return first, second


def test_the_pmf_of_a_program_is_that_of_all_its_paths() -> None:
    outputs = list(itertools.product(range(2), range(3)))
    chosen = ExponentialMechanism(epsilon=1, sensitivity=1).pmf([0, 1]).fractions()
    noise = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 2))
    noisy = [noise.pmf(0).fractions(), noise.pmf(2).fractions()]
    wanted = [chosen[first] * noisy[first][second] for first, second in outputs]
    pmf = output_distribution(two_steps, outputs)
    assert pmf.outputs == tuple(outputs)
    assert pmf.fractions() == wanted
    # Outcomes that are reached by several paths, and some by none.
    summed = output_distribution(lambda draw: sum(two_steps(draw)), range(-1, 5))
    assert summed.fractions() == [
        sum((mass for (a, b), mass in zip(outputs, wanted, strict=True) if a + b == total), Fraction(0))
        for total in range(-1, 5)
    ]


def test_programs_with_many_paths_or_unknown_outcomes_are_refused() -> None:
    with pytest.raises(BudgetError, match="more than 5 paths"):
        output_distribution(two_steps, list(itertools.product(range(2), range(3))), max_paths=5)
    assert len(output_distribution(two_steps, list(itertools.product(range(2), range(3))), max_paths=6)) == 6
    with pytest.raises(RuntimeError, match="not among its public outputs"):
        output_distribution(two_steps, [(0, 0)])


class Table:
    """A mechanism whose distribution is its argument, zero probabilities included."""

    def pmf(self, *arguments: Any) -> Pmf:
        (weights,) = arguments
        return Pmf(tuple(range(len(weights))), tuple(weights))

    def _draw(self, source: _core.Source, /, *arguments: Any) -> Any:
        raise AssertionError("distributions draw nothing")


TABLE = Table()


def trees(source: random.Random, depth: int) -> Any:
    """A random tree of draws: its leaves are outcomes."""
    if depth == 0 or source.random() < 0.2:
        return source.randrange(4)
    weights = [source.choice((0, 0, 1, 2, 5)) for _ in range(source.randrange(1, 4))]
    weights[source.randrange(len(weights))] += 1
    return weights, [trees(source, depth - 1) for _ in weights]


def masses_of(tree: Any, mass: Fraction = ONE) -> Iterator[tuple[int, Fraction]]:
    """The probabilities of all leaves."""
    if isinstance(tree, int):
        yield tree, mass
        return
    weights, children = tree
    for weight, child in zip(weights, children, strict=True):
        yield from masses_of(child, mass * F(weight, sum(weights)))


def test_pmfs_are_sums_over_trees_of_draws() -> None:
    source = random.Random(1)
    for _ in range(3000):
        tree = trees(source, 4)

        def program(draw: Sampler, tree: Any = tree) -> int:
            while not isinstance(tree, int):
                weights, children = tree
                place = draw(TABLE, weights)
                assert weights[place] > 0, "an impossible outcome was drawn"
                tree = children[place]
            return int(tree)

        expected = [F(0)] * 4
        for outcome, mass in masses_of(tree):
            expected[outcome] += mass
        pmf = output_distribution(program, range(4))
        assert list(pmf.fractions()) == expected
        # As many paths as there are leaves that are possible, and no fewer.
        paths = sum(mass > 0 for _, mass in masses_of(tree))
        assert output_distribution(program, range(4), max_paths=paths) == pmf
        if paths > 1:
            with pytest.raises(BudgetError, match=r"more than .* paths"):
                output_distribution(program, range(4), max_paths=paths - 1)


def test_endless_programs_are_given_up() -> None:
    def program(draw: Sampler) -> int:
        while draw(TABLE, (1, 1)):
            pass
        return 0

    with pytest.raises(BudgetError, match=r"more than .* paths"):
        output_distribution(program, [0], max_paths=1000)
