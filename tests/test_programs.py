"""The law of a program, by its paths; how a budget is split."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from userdp import Pmf, _core
from userdp._numbers import LogRatio
from userdp.exceptions import BudgetError
from userdp.learners._privacy import equal_part, split_budget
from userdp.learners._program import Draw, law_of

F = Fraction
ONE = F(1)


class Table:
    """A mechanism whose law is its argument, zero probabilities included."""

    def pmf(self, *arguments: Any) -> Pmf:
        (weights,) = arguments
        return Pmf(tuple(range(len(weights))), tuple(weights))

    def _draw(self, source: _core.Source, /, *arguments: Any) -> Any:
        raise AssertionError("laws draw nothing")


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


def test_laws_are_sums_over_trees_of_draws() -> None:
    source = random.Random(1)
    for _ in range(3000):
        tree = trees(source, 4)

        def program(draw: Draw, tree: Any = tree) -> int:
            while not isinstance(tree, int):
                weights, children = tree
                place = draw(TABLE, weights)
                assert weights[place] > 0, "an impossible outcome was drawn"
                tree = children[place]
            return int(tree)

        expected = [F(0)] * 4
        for outcome, mass in masses_of(tree):
            expected[outcome] += mass
        law = law_of(program, range(4))
        assert list(law.fractions()) == expected
        # As many paths as there are leaves that are possible, and no fewer.
        paths = sum(mass > 0 for _, mass in masses_of(tree))
        assert law_of(program, range(4), max_paths=paths) == law
        if paths > 1:
            with pytest.raises(BudgetError, match="too many paths"):
                law_of(program, range(4), max_paths=paths - 1)


def test_endless_programs_are_given_up() -> None:
    def program(draw: Draw) -> int:
        while draw(TABLE, (1, 1)):
            pass
        return 0

    with pytest.raises(BudgetError, match="too many paths"):
        law_of(program, [0], max_paths=1000)


def test_an_outcome_that_is_not_listed_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="not among its public outputs"):
        law_of(lambda draw: draw(TABLE, (1, 1)), [0])


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
            assert list(parts.values()) == [epsilon if isinstance(epsilon, LogRatio) else F(epsilon)]
            continue
        whole = sum(parts.values())  # type: ignore[arg-type]
        for name, part in parts.items():
            assert part / whole == shares[name] / sum(shares.values())  # type: ignore[operator]
        if isinstance(epsilon, LogRatio):
            # ln r is between these.
            assert 0 < whole <= epsilon.ratio - 1
            assert whole >= (1 - 1 / epsilon.ratio) * (1 - F(1, 2**51))
        else:
            assert whole == F(epsilon)


def test_shares_that_would_exceed_the_budget_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shares must be >= 0, .* got -1 for 'b'"):
        split_budget(1, {"a": 2, "b": -1})
    for shares in ({}, {"a": 0}):
        with pytest.raises(ValueError, match="shares must have a positive one"):
            split_budget(1, shares)
    with pytest.raises(ValueError, match="positive one"):
        equal_part(1, 0)
