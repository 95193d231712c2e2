"""PurePrivateMode: its pmf against two stages in fractions and against every single item, groups, and bad input."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle.grouped_exponential import numerators
from oracle.selection import neighbors, pure_pmf, two_stages
from support.selection_cases import cases
from userdp import BudgetError, LogRatio, _core
from userdp.mechanisms import PurePrivateMode

F = Fraction
NEIGHBORS = ("replace", "add-remove")
CLOSE = F(1, 2**30)
"""The resolution that is stated for counts up to 63."""


def pure(a: Fraction, n_items: int, relation: Any = "replace", **arguments: Any) -> PurePrivateMode:
    """P[u] next to a^count / sum."""
    level = a**2 if relation == "replace" else a
    epsilon = LogRatio(level.numerator, level.denominator)
    return PurePrivateMode(epsilon=epsilon, n_items=n_items, neighbors=relation, **arguments)


def near(found: Fraction, expected: Fraction) -> bool:
    return abs(found / expected - 1) <= CLOSE


@pytest.mark.parametrize("relation", NEIGHBORS)
def test_shared_pmfs(relation: Any) -> None:
    for case in cases("pure_select"):
        counts, a = case["input"]["counts"], F(case["input"]["a"])
        expected = [F(mass) for mass in case["expected"]["pmf"]]
        assert pure_pmf(counts, a) == expected
        pmf = pure(a, len(counts), relation).pmf(dict(enumerate(counts)))
        assert pmf.outputs == tuple(range(len(counts)))
        assert all(map(near, pmf.fractions(), expected))
        half = pure(a**2, len(counts), relation).pmf(dict(enumerate(counts)))
        assert all(map(near, half.fractions(), expected)) == (not any(counts))
    for case in cases("pure_select_two_stage"):
        counts, size = {int(item): c for item, c in case["input"]["item_counts"].items()}, case["input"]["usize"]
        a, absent = F(case["input"]["a"]), F(case["expected"]["each_absent"])
        inside = {int(item): F(mass) for item, mass in case["expected"]["inside"].items()}
        assert two_stages(counts, size, a) == (inside, absent)
        selection = pure(a, size, relation)
        pmf = selection.pmf(counts)
        assert sum(pmf.weights) == pmf.total == 2**384
        for item in (*counts, 0, 6, 8, 10, size - 1):
            found = F(pmf.weights[item], 2**384)
            assert near(found, inside.get(item, absent))
            assert selection.probability(item, counts) == found


@pytest.mark.parametrize("relation", NEIGHBORS)
def test_the_pmf_is_that_of_single_items(relation: Any) -> None:
    # Integer for integer, with every item in a group of its own: how groups are cut and filled up changes nothing.
    for n_items, counts in itertools.chain(
        itertools.product((1, 2, 3, 7), [{}, {0: 3}, {0: 1, None: 4}]),
        [(3, {2: 5}), (4, {1: 2, 3: 2}), (7, {6: 1, 0: 3, 3: 2}), (5, dict.fromkeys(range(5), 1)), (6, {4: 40, 5: 1})],
    ):
        selection = pure(F(3, 2), n_items, relation)
        triples = [(item, item, -counts.get(item, 0)) for item in range(n_items)]
        expected = numerators(triples, selection._mechanism._rate.bits_per_unit)
        assert list(selection.pmf(counts).weights) == expected
        assert [selection.probability(item, counts) * 2**384 for item in range(n_items)] == expected


@pytest.mark.parametrize("last", [2**64 - 1, 2**63 + 5, 10**6])
def test_up_to_all_integers_of_64_bits(last: int) -> None:
    selection = pure(F(2), last + 1)
    for counts in ({last: 60, 0: 59}, {last // 2: 61, last // 2 + 1: 60}, {}, {0: 1, last: 1, last - 1: 62}):
        inside, absent = two_stages(counts, last + 1, F(2))
        for item in (0, 1, last // 3, last // 2, last // 2 + 1, last - 1, last):
            assert near(selection.probability(item, counts), inside.get(item, absent))
    assert selection.release([last] * 300, exact_integers=True) == last
    if last > 2**53:
        with pytest.warns(UserWarning, match="items may have whole numbers up to"):
            assert selection.tally([last] * 3) == {None: 3}
    assert selection.release([0] * 300, exact_integers=True) == 0


def test_the_draw_is_of_this_pmf() -> None:
    # The j-th item of those nobody has, present ones in order: [3, 2] and j = 2 gives 4.
    selection = pure(F(2), 9)
    for counts in ({3: 1, 2: 1}, {8: 4, 0: 2}, {}, {5: 3}):
        edges = [0, *itertools.accumulate(selection.pmf(counts).weights)]
        for item, (low, high) in enumerate(itertools.pairwise(edges)):
            for bits in (low, (low + high) // 2, high - 1):
                assert selection._draw(_core.Source.listed(bits.to_bytes(48, "little")), counts) == item


def test_padding() -> None:
    replace, add_remove = pure(F(2), 100), pure(F(2), 100, "add-remove")
    for items in ([5] * 4, [0, 99, 3, 4], [99] * 4, [None] * 4, [1, -1, 100, 99]):
        counts = replace.tally(items)
        groups = replace._groups(counts, padded=True)
        assert len(groups) == 2 * 4 + 1
        assert len(add_remove._groups(counts, padded=True)) <= 2 * len(counts) + 1
        assert list(groups) == list(add_remove._groups(counts)) == list(replace._groups(counts))
        # An audit lists no group for each user, and its pmf is that of the draw.
        assert replace._mechanism.pmf(groups).weights == replace.pmf(counts).weights


@pytest.mark.parametrize("relation", NEIGHBORS)
def test_likelihood_ratios(relation: Any) -> None:
    a, name = F(2), relation.replace("-", "_")
    for items, most in ((2, 12), (3, 5)):
        selection, doubled = pure(a, items, relation), pure(a**2, items, relation)

        def worst(of: PurePrivateMode, n: int, items: int = items) -> Fraction:
            return max(
                p / q
                for x, y in neighbors(n, items, name)
                for p, q in zip(*(of.pmf(dict(enumerate(c))).fractions() for c in (x, y)), strict=True)
            )

        bound = a**2 if relation == "replace" else a
        found = max(worst(selection, n) for n in range(1, most + 1))
        print(f"{relation}, {items} items: worst ratio {float(found):.6f}, bound {bound}")
        assert found <= bound
        assert math.log(found) <= selection.certified_epsilon <= math.log(bound) + 1e-15
        assert found > bound * F(7, 10)
        assert worst(doubled, most) > bound, "half the noise should not be private"


def test_shared_ratios() -> None:
    # The weights of add-remove under replacements: up to the square.
    for case in cases("pure_select_ratio"):
        given = case["input"]
        selection = pure(F(given["a"]), given["k"], "add-remove")
        worst = max(
            p / q
            for n in range(1, given["nmax"] + 1)
            for x, y in neighbors(n, given["k"], given["relation"])
            for p, q in zip(*(selection.pmf(dict(enumerate(c))).fractions() for c in (x, y)), strict=True)
        )
        assert near(worst, F(case["expected"]["max_ratio"]))
    beyond = [pure(F(2), 2, "add-remove").pmf({0: c, 1: 12 - c}).fractions() for c in (6, 7)]
    assert max(p / q for p, q in zip(*beyond, strict=True)) > F(3, 2)
    assert near(F(4097, 1025), max(p / q for p, q in _twelve()))


def _twelve() -> Any:
    first, second = (pure(F(2), 2, "add-remove").pmf({0: c, 1: 12 - c}).fractions() for c in (0, 1))
    return [*zip(first, second, strict=True), *zip(second, first, strict=True)]


@pytest.mark.parametrize(
    ("epsilon", "n_items", "beta"), [(1, 2**20, "0.01"), (0.1, 5, 0.1), (LogRatio(9), 2**64, 1e-9)]
)
@pytest.mark.parametrize("relation", NEIGHBORS)
def test_accuracy(epsilon: Any, n_items: int, beta: Any, relation: Any) -> None:
    selection = PurePrivateMode(epsilon=epsilon, n_items=n_items, neighbors=relation)
    within = selection.accuracy(beta)
    rate = float(epsilon) / (2 if relation == "replace" else 1)
    assert within == math.ceil(math.log(n_items / float(beta)) / rate) - 1
    # All items but one are worse than it by one more than that: the probability of them together, exactly.
    lost = 1 - selection.probability(3, {3: within + 1})
    print(f"{float(lost):.3g} of {float(beta):.3g}")
    assert lost <= F(beta)
    assert 1 - selection.probability(3, {3: max(within - math.ceil(1 / rate), 0)}) > F(beta) / 2


@pytest.mark.parametrize("relation", NEIGHBORS)
def test_items(relation: Any) -> None:
    bad = [None, -1, 10, 1.5, math.nan, "x", b"\xff", (1,), [1], object(), 2**70, np.int64(-3), np.float64(0.5), "1e2"]
    nothing, third = pure(F(2), 10, relation), pure(F(2), 10, relation, default=3)
    assert nothing.tally(bad) == {None: len(bad)}
    assert third.tally(bad) == {3: len(bad)}
    assert nothing.tally([np.uint8(4), 4, np.int64(9), 4.0, "04", b"4", True, "1"]) == {4: 5, 9: 1, 1: 2}
    assert nothing.pmf({None: 7}) == nothing.pmf({}) == nothing.pmf({2: 0})
    assert len(set(nothing.pmf({}).weights)) <= 2  # uniform but for the last of 384 bits
    assert third.release(bad * 40) == 3
    assert 0 <= nothing.release([]) < 10
    assert PurePrivateMode(epsilon=1, n_items=1, neighbors=relation).release(bad) == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 89}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"n_items": 0}, "n_items"),
        ({"n_items": 2**64 + 1}, "n_items"),
        ({"n_items": 2.0}, "n_items"),
        ({"n_items": True}, "n_items"),
        ({"neighbors": "remove"}, "neighbors"),
        ({"default": 10}, "default"),
        ({"default": -1}, "default"),
        ({"default": "a"}, "default"),
    ],
)
def test_bad_arguments(arguments: Any, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        PurePrivateMode(**{"epsilon": 1, "n_items": 10, **arguments})


def test_bad_questions() -> None:
    selection = PurePrivateMode(epsilon=1, n_items=2**40)
    with pytest.raises(BudgetError, match="probability"):
        selection.pmf({})
    for item in (-1, 2**40, None, 1.5, "x"):
        with pytest.raises(ValueError, match="item must be an int"):
            selection.probability(item, {})  # type: ignore[arg-type]
    for counts in (None, {1: -1}, {2**40: 1}, {1: "x"}):
        with pytest.raises((TypeError, ValueError), match="counts"):
            selection.probability(1, counts)  # type: ignore[arg-type]
    for beta in (0, 1, -1, "1e-60"):
        with pytest.raises(ValueError, match="beta"):
            selection.accuracy(beta)
    for items in (None, "12", 5, {1: 2}):
        with pytest.raises(TypeError, match="items must be"):
            selection.release(items)  # type: ignore[arg-type]


def test_copies() -> None:
    selection = PurePrivateMode(epsilon=LogRatio(3), n_items=5, neighbors="add-remove", default=2)
    assert repr(selection) == "PurePrivateMode(epsilon=LogRatio(3, 1), n_items=5, neighbors='add-remove', default=2)"
    copy = pickle.loads(pickle.dumps(selection))
    assert repr(copy) == repr(selection)
    assert copy.pmf({1: 2}) == eval(repr(selection)).pmf({1: 2}) == selection.pmf({1: 2})
    assert (copy.n_items, copy.neighbors, copy.default) == (5, "add-remove", 2)
