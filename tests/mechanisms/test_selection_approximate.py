"""ApproximatePrivateMode: its distribution against all noises of all items, draws bit by bit, items of every kind."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle.selection import above_threshold, noisy_pmf, truncated_laplace
from support.distribution_draws import listed, words_of
from support.selection_cases import approximate, cases, noise_of
from userdp import BOTTOM, BudgetError, InsecureRandomnessWarning, LogRatio, Pmf, _core
from userdp.mechanisms import ApproximatePrivateMode
from userdp.mechanisms.composed import output_distribution

F = Fraction
NEIGHBORS = ("replace", "add-remove")


def distribution(selection: ApproximatePrivateMode, counts: Any) -> list[Fraction]:
    """Of the items in the order given, and of BOTTOM at last."""
    pmf = selection.pmf(counts)
    masses = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
    return [masses[item] for item, count in counts.items() if count] + [masses[BOTTOM]]


@pytest.mark.parametrize(
    ("epsilon", "delta", "neighbors", "half_width"),
    [
        (1, "1e-3", "add-remove", 7),
        (1, "1e-6", "add-remove", 14),
        ("0.5", "1e-6", "add-remove", 25),
        ("0.1", "1e-6", "add-remove", 109),
        (1, "1e-6", "replace", 27),
    ],
)
def test_half_widths(epsilon: Any, delta: Any, neighbors: Any, half_width: int) -> None:
    selection = ApproximatePrivateMode(epsilon=epsilon, delta=delta, neighbors=neighbors)
    assert selection.half_width == half_width
    assert selection.accuracy == 2 * half_width + 1
    # The least one: an ideal table that is narrower has more than delta at its ends.
    shares = 2 if neighbors == "replace" else 1
    q = math.exp(-float(epsilon) / shares)

    def ends(t: int) -> float:
        return q**t / (1 + 2 * sum(q**x for x in range(1, t + 1)))

    assert ends(half_width) < float(delta) / shares < ends(half_width - 1)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "1e-6"), (0.3, 0.01), (LogRatio(3), "1e-9"), (LogRatio(9, 4), "0.1")]
)
def test_certificates(epsilon: Any, delta: Any, neighbors: Any) -> None:
    selection = ApproximatePrivateMode(epsilon=epsilon, delta=delta, neighbors=neighbors)
    items, noise = (2, noise_of(selection)) if neighbors == "replace" else (1, noise_of(selection))
    assert selection.certified_epsilon <= math.nextafter(float(epsilon), math.inf)
    assert selection.certified_epsilon > 0.999 * float(epsilon)
    assert selection.certified_delta == 1 - (1 - noise[0]) ** items
    assert F(delta) / 3 < selection.certified_delta <= F(delta)
    # Several shares together never exceed the whole, decided in fractions where e^epsilon is one.
    ratio = max(max(a / b, b / a) for a, b in itertools.pairwise(noise))
    if isinstance(epsilon, LogRatio):
        assert ratio**items <= epsilon.ratio
    assert math.log(ratio) * items <= float(epsilon) * (1 + 1e-15)


def test_shared_cases() -> None:
    for case in cases("tdl_delta"):
        q, t = F(case["input"]["q"]), case["input"]["t"]
        assert truncated_laplace(q, t)[0] == F(case["expected"]["delta"])
        assert abs(approximate(q, t).certified_delta - F(case["expected"]["delta"])) < F(1, 2**100)
    for case in cases("approx_select"):
        counts, q, t = case["input"]["counts"], F(case["input"]["q"]), case["input"]["t"]
        expected = [F(case["expected"]["pmf"][key]) for key in (*map(str, range(len(counts))), "bot")]
        assert noisy_pmf(counts, truncated_laplace(q, t), above_threshold(t)) == expected
        found = distribution(approximate(q, t), dict(enumerate(counts)))
        assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) < F(1, 2**100)


COUNTS = [
    (), (1,), (2,), (3, 3), (1, 2, 1), (4, 4, 4), (2, 3, 4), (7, 6, 5), (6, 1), (5, 5, 3), (9, 9, 2),
    (3, 1, 3), (2, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("q", "t"), [(F(1, 2), 1), (F(1, 2), 2), (F(2, 3), 3), (F(4, 5), 2)])
@pytest.mark.parametrize("counts", COUNTS)
def test_the_pmf_is_that_of_all_noises(counts: tuple[int, ...], q: Fraction, t: int, neighbors: Any) -> None:
    selection = approximate(q, t, neighbors)
    exact = noisy_pmf(counts, noise_of(selection), above_threshold(t))
    assert distribution(selection, dict(enumerate(counts))) == exact
    if len(counts) > 1 and counts[0] == counts[-1] >= 2:
        # The order of items decides ties, which has to show here.
        assert exact[0] > exact[-2] >= 0


@pytest.mark.parametrize("counts", [(), (1,), (4, 3), (3, 3, 2), (2, 5, 5)])
def test_the_program_that_draws_has_this_pmf(counts: tuple[int, ...]) -> None:
    selection = approximate(F(1, 2), 2)
    entries = selection._present(dict(enumerate(counts)))
    outputs = (*range(len(counts)), BOTTOM)
    enumerated = output_distribution(
        lambda draw: selection._choose(entries, [draw(selection._noise) for _ in entries]), outputs
    )
    assert enumerated.fractions() == selection.pmf(dict(enumerate(counts))).fractions()


class _Noises:
    """In place of a distribution: draws given numbers."""

    def __init__(self, noises: list[int]) -> None:
        self.noises = iter(noises)
        self.half_width = 2

    def _draw_many(self, source: Any, shape: tuple[int]) -> Any:
        return np.array([next(self.noises) for _ in range(shape[0])], dtype=np.int64)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_a_release_of_each_noise(neighbors: Any) -> None:
    selection = approximate(F(1, 2), 2, neighbors)
    rule = above_threshold(2)
    items = ["b", "a", "c", "a", "b", "b"]
    for noises in itertools.product(range(5), repeat=3):
        padded = [*noises, 4, 4, 4] if neighbors == "replace" else list(noises)
        selection._noise = stand_in = _Noises(padded)  # type: ignore[assignment]
        winner = rule([2, 3, 1], [x - 2 for x in noises])
        assert selection.release(items) == (BOTTOM if winner is None else "abc"[winner])
        assert next(stand_in.noises, None) is None, "a noise is left over"


def test_draws_bit_by_bit() -> None:
    selection = approximate(F(2, 3), 3)
    cumulative = list(itertools.accumulate(selection._noise.pmf().weights))
    rule = above_threshold(3)
    counts = {"x": 4, "y": 3, "z": 5}
    seen = set()
    for seed in range(200):
        words = words_of(seed, 3)
        noises = [sum(bound <= word for bound in cumulative) - 3 for word in words]
        winner = rule(list(counts.values()), noises)
        drawn = selection._draw(listed(words), counts)
        assert drawn == (BOTTOM if winner is None else "xyz"[winner])
        seen.add(drawn)
    assert len(seen) == 4


def test_the_number_of_draws_shows_no_items() -> None:
    replace, add_remove = (approximate(F(1, 2), 2, neighbors) for neighbors in NEIGHBORS)
    for items in ([1] * 6, [1, 2, 3, 4, 5, 6], [None] * 6, [1, None, 2, [], 2, 7]):
        counts = replace.tally(items)
        replace._draw(_core.Source.listed(bytes(6 * 16)), counts)
        with pytest.raises(OSError, match="listed"):
            replace._draw(_core.Source.listed(bytes(6 * 16 - 1)), counts)
        distinct = len(add_remove._present(counts))
        add_remove._draw(_core.Source.listed(bytes(distinct * 16)), counts)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("t", [1, 2, 3])
def test_accuracy(t: int, neighbors: Any) -> None:
    selection = approximate(F(1, 2), t, neighbors)
    possible = 0
    for counts in itertools.product(range(2 * t + 4), repeat=3):
        pmf = selection.pmf(dict(enumerate(counts)))
        for outcome, weight in zip(pmf.outputs, pmf.weights, strict=True):
            count = 0 if outcome is BOTTOM else counts[outcome]
            if weight:
                assert count >= max(counts) - (2 * t if outcome is not BOTTOM else selection.accuracy)
                assert count != 1, "an item that one user has was chosen"
                possible += outcome is BOTTOM and max(counts) == selection.accuracy
        # The rule for users_needed: the common item surely wins.
        n, most = sum(counts), max(counts)
        if 2 * most > n + 2 * t and most >= 2 * t + 2:
            assert pmf.fractions()[pmf.outputs.index(counts.index(most))] == 1
    assert possible, "the bound is not attained"


# --- items


class Raises:
    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    @property
    def __class__(self) -> Any:
        raise RuntimeError("class")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class Equal(type):
    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 1


class OfEqual(metaclass=Equal):
    """Of a type that says that it is any other one."""


class Number(int):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]


BAD: list[Any] = [
    None, math.nan, np.float64("nan"), 1j, (), (1,), [1], {1: 2}, {1}, frozenset([1]), object(), Raises(), OfEqual(),
    np.timedelta64(3, "s"), int, BOTTOM, bytearray(b"x"), np.array(3), "", " ", "nan", "\ud800", b"\xff", b"\x01",
]  # fmt: skip


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_what_is_no_item_counts_as_the_default(neighbors: Any) -> None:
    nothing = approximate(F(1, 2), 2, neighbors)
    assert nothing.default is None
    assert nothing.tally(BAD) == {None: len(BAD)}
    assert nothing.release(BAD) is BOTTOM
    falls_back = ApproximatePrivateMode(epsilon=1, delta="0.1", neighbors=neighbors, default="nothing")
    assert falls_back.tally(BAD) == {"nothing": len(BAD)}
    assert falls_back.release(BAD * 5) == "nothing"


def test_items_have_one_form_and_one_order() -> None:
    selection = approximate(F(1, 2), 2)
    given = [np.int8(3), 3, np.uint64(3), "03", b"3", 3.0, F(3), np.str_("a"), "a", np.bytes_(b"a"), b"a ", -(2**40)]
    given += [True, np.True_, Number(1), 1.5, "1.50", np.datetime64("2020-01-01"), "2020-01-01T00:00", "1e999"]
    counts = selection.tally(given)
    assert counts == {3: 7, "a": 4, -(2**40): 1, 1: 3, "1.5": 2, "2020-01-01": 2, "1e999": 1}
    assert {type(item) for item in counts} == {int, str}
    order = [item for item, _ in selection._present(counts)]
    assert order == [-(2**40), 1, 3, "1.5", "1e999", "2020-01-01", "a"]
    assert selection.pmf(counts).outputs == (*order, BOTTOM)
    # Counts of others may have other spellings.
    assert selection.pmf({"03": 2, 3: 1, b"a": 4}) == selection.pmf({3: 3, "a": 4})
    assert selection.tally(np.array([2, 2, 5], dtype=np.uint8)) == {2: 2, 5: 1}
    assert selection.tally(np.array(["x", "y"])) == {"x": 1, "y": 1}
    # One missing value makes doubles of integers.
    assert selection.tally(np.array([1.0, 2.0, math.nan])) == selection.tally([1, 2.0, None]) == {1: 1, 2: 1, None: 1}
    assert selection.tally(np.array([1, "x", None, 2.5], dtype=object)) == {1: 1, "x": 1, None: 1, "2.5": 1}
    long = [2**60, 2**60 + 1]
    assert selection.tally(long) == {repr(2.0**60): 2} == selection.tally(np.array(long, dtype=float))
    assert selection.tally(long, exact_integers=True) == {2**60: 1, 2**60 + 1: 1}
    assert selection.pmf(selection.tally(long)).outputs == (repr(2.0**60), BOTTOM)
    assert selection.tally(np.array(["2020-01-01"], dtype="datetime64[ns]")) == {"2020-01-01": 1}
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match=r"items is of type duration\[s\], and labels or items can be read of none"):
        selection.tally(pa.array([1], type=pa.duration("s")))


def test_the_order_of_users_does_not_matter() -> None:
    selection = approximate(F(4, 5), 6)
    items = ["a"] * 9 + ["b"] * 8 + ["c"] * 9
    shuffled = items.copy()
    random.Random(1).shuffle(shuffled)
    for seed in range(20):
        with pytest.warns(InsecureRandomnessWarning):
            assert selection.release(items, seed) == selection.release(shuffled, seed)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_nobody(neighbors: Any) -> None:
    selection = approximate(F(1, 2), 2, neighbors)
    assert selection.release([]) is BOTTOM
    assert selection.pmf({}) == Pmf((BOTTOM,), (1,))
    with pytest.raises(TypeError, match="items must be a NumPy array, a list"):
        selection.release(iter(()))


def test_many_users() -> None:
    selection = ApproximatePrivateMode(epsilon=1, delta="1e-6")
    items = np.arange(2**20 + 5)  # more than are drawn at a time
    items[: 2 * selection.half_width + 2] = 7
    assert selection.release(items) == 7


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": LogRatio(1)}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "one"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"delta": "1e-60"}, "delta"),
        ({"neighbors": "add_remove"}, "neighbors"),
        ({"neighbors": None}, "neighbors"),
        ({"default": ""}, "default"),
        ({"default": (1,)}, "default"),
        ({"default": math.nan}, "default"),
    ],
)
def test_bad_arguments(arguments: Any, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        ApproximatePrivateMode(**{"epsilon": 1, "delta": "1e-6", **arguments})


@pytest.mark.parametrize("items", [None, 3, "abc", b"abc", {"a": 1}, np.zeros((2, 2), dtype=int), np.array(3)])
def test_what_has_no_items(items: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"items (must be|should be a 1d array)"):
        ApproximatePrivateMode(epsilon=1, delta="1e-6").release(items)


@pytest.mark.parametrize("counts", [None, [3], {"a": -1}, {"a": 1.5}, {"a": True}, {(1,): 2}, {"": 2}])
def test_bad_counts(counts: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="counts"):
        ApproximatePrivateMode(epsilon=1, delta="1e-6").pmf(counts)


def test_a_pmf_that_is_too_large() -> None:
    with pytest.raises(BudgetError, match="items that may win"):
        ApproximatePrivateMode(epsilon=1, delta="1e-6").pmf(dict.fromkeys(range(5000), 1))


def test_copies() -> None:
    def twins() -> Iterator[ApproximatePrivateMode]:
        for neighbors in NEIGHBORS:
            yield ApproximatePrivateMode(epsilon=LogRatio(5, 2), delta="0.01", neighbors=neighbors, default="x")

    for selection in twins():
        copy = pickle.loads(pickle.dumps(selection))
        assert repr(copy) == repr(selection)
        assert eval(repr(copy)).pmf({1: 4, 2: 3}) == selection.pmf({1: 4, 2: 3})
    assert repr(selection) == (
        "ApproximatePrivateMode(epsilon=LogRatio(5, 2), delta='0.01', neighbors='add-remove', default='x')"
    )
