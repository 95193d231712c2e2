"""Leaky mechanisms by position of the user and by record, and as many right ones: all of the former are found."""

from __future__ import annotations

import functools
import itertools
import random
from functools import partial
from typing import Any

import pytest

from support.leaky_functions import (
    DATASETS,
    KINDS,
    SEEN,
    UNIVERSE,
    WITHOUT_FRAMES,
    Case,
    Secret,
    as_expected,
    by_bits,
    cases,
    outcome,
    stated,
)
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_samples, audit_sensitivity, neighboring_pairs
from userdp.audit.fresh import remade
from userdp.audit.neighbors import read_sizes
from userdp.report import GuessReport, Report
from userdp.testing import assert_user_private


def some(number: int, seed: int, datasets: Any = DATASETS) -> list[Secret]:
    return random.Random(seed).sample([secret for secret in KINDS if secret.varies(datasets)], number)


CASES = [case for case in cases() if case.memory is None and case.output in WITHOUT_FRAMES]


@pytest.mark.parametrize("audit", SEEN)
def test_leaks_are_found_and_no_right_code_is_blamed(audit: str) -> None:
    """Some, so that each position, record, condition and output occurs; `support.leaky_functions` runs them all."""
    every = [case for case in CASES if case.audit == audit]
    seen = set[str]()
    for case in random.Random(1).sample(every, len(every)):
        if not seen.issuperset(case.kinds):
            seen.update(case.kinds)
            assert not as_expected(case), case
            assert not as_expected(case._replace(right=True)), case


def remembering() -> Any:
    """A function that keeps the first dataset in its closure."""
    kept: list[Any] = []

    def mechanism(users: Any, bits: Any) -> int:
        kept.append(users)
        return int(("bb",) in kept[0])

    return mechanism


def passing(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(users: Any, bits: Any) -> Any:
        return function(users, bits)

    return wrapper


@pytest.mark.parametrize("wrapped", [remembering, lambda: passing(remembering()), lambda: partial(remembering())])
@pytest.mark.parametrize("sizes", [1, (0, 1)])
def test_memory_of_a_mechanism_that_is_wrapped_is_found_without_processes(wrapped: Any, sizes: Any) -> None:
    """As for users of several numbers of examples, which wrap it."""
    assert outcome(wrapped(), "replace", 2, sizes, processes=0) == "remembers"


@pytest.mark.fresh
def test_a_mechanism_for_several_numbers_of_examples_is_written_without_cloudpickle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    case = Case("bits", None, "number", Secret("first", "first", "always"), right=True)
    options: dict[str, Any] = {"universe": UNIVERSE, "n_users": 2, "n_examples": (0, 1), "epsilon": "ln(3)"}
    report: Any = assert_user_private(partial(by_bits, case), **options)
    assert report.memory == "none on 9 datasets in 2 fresh processes"


def test_copies_of_functions_that_refer_to_themselves_end() -> None:
    def down(number: int) -> int:
        return down(number - 1) if number else 0

    again = remade(down)
    assert again(3) == 0
    assert again.__closure__[0].cell_contents is again


def test_a_declared_symmetry_is_tried_in_other_orders_and_refused() -> None:
    """A mechanism that declares it wrongly is refused, and one that declares it rightly is audited."""
    for secret in some(40, seed=3):
        wrong = outcome(stated(secret, 1, SymmetricAlgorithm), "replace")
        assert wrong == ("kept" if secret.symmetric else "refused"), secret


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_record_of_any_user_may_not_be_published(place: int, neighbors: Any) -> None:
    def published(users: Any, rng: Any) -> Any:
        return users[place] if place < len(users) else None

    options: dict[str, Any] = {"epsilon": 5, "training": 2000, "random_state": 1, "neighbors": neighbors}
    with pytest.raises(AssertionError, match="published breaks its claim"):
        assert_user_private(published, universe=(0, 1), n_users=3, n_examples=2, **options)


def _changed(pair: Any) -> set[int]:
    """The positions of the user in which the pair may differ: one, or several for a removal among equal users."""
    first, second = pair
    if len(first) == len(second):
        return {place for place in range(len(first)) if first[place] != second[place]}
    return {place for place in range(len(first)) if (*first[:place], *first[place + 1 :]) == second}


SPACES = [
    # universe, users, examples: all pairs, all multisets with drawn orders, and a drawn sample
    ((0, 1), 3, 1),
    ((0, 1), 3, (0, 1, 2)),
    ((0, 1), 9, 1),
    ((0, 1), 40, 1),
    (range(5), 4, 3),
    (range(100), 6, (0, 1, 40)),
]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(("universe", "n", "sizes"), SPACES)
def test_pairs_differ_in_a_user_of_any_position_and_in_nothing_else(
    universe: Any, n: int, sizes: Any, neighbors: Any
) -> None:
    pairs = neighboring_pairs(universe, n_users=n, n_examples=sizes, neighbors=neighbors, random_state=1)
    changed = [_changed(pair) for pair in pairs]
    assert set().union(*changed) == set(range(n))
    if neighbors == "replace":
        assert all(len(places) == 1 for places in changed)
    assert all(changed)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) <= 1000
    lengths = {len(user) for pair in pairs for side in pair for user in side}
    assert lengths == set(read_sizes(sizes))


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(("universe", "n", "sizes"), SPACES[:4])
def test_all_multisets_of_others_are_there_with_all_changes(universe: Any, n: int, sizes: Any, neighbors: Any) -> None:
    """What was exhaustive when only the last user changed."""
    values = [user for size in read_sizes(sizes) for user in itertools.product(universe, repeat=size)]
    changes = [(a,) for a in values] if neighbors == "add-remove" else list(itertools.combinations(values, 2))
    wanted = {
        (tuple(sorted(rest)), tuple(sorted(change)))
        for rest in itertools.combinations_with_replacement(values, n - 1)
        for change in changes
    }
    found = set()
    for first, second in neighboring_pairs(universe, n_users=n, n_examples=sizes, neighbors=neighbors):
        (place, *_) = _changed((first, second))
        rest = (*first[:place], *first[place + 1 :])
        change = (first[place],) if neighbors == "add-remove" else (first[place], second[place])
        found.add((tuple(sorted(rest)), tuple(sorted(change))))
    assert found == wanted


def test_orders_are_fresh_and_equal_users_frequent() -> None:
    one, other = (neighboring_pairs((0, 1), n_users=40) for _ in range(2))
    assert [pair for pair in one if pair in other] != list(one)
    large = neighboring_pairs(range(1000), n_users=4, n_examples=3, random_state=2)
    assert sum(len(set(first)) < 4 for first, _ in large) > 200
    assert large == neighboring_pairs(range(1000), n_users=4, n_examples=3, random_state=2)


def test_the_share_of_the_pairs_is_said() -> None:
    def silent(users: Any) -> int:
        return 0

    def about(universe: Any, n: int, m: int) -> str:
        pairs = neighboring_pairs(universe, n_users=n, n_examples=m, neighbors="add-remove")
        report = audit_samples(silent, pairs, epsilon=1, training=2000, draws=10)
        assert isinstance(report, GuessReport)
        assert Report.from_json(report.to_json()) == report
        return report.summary()

    assert "all 6 pairs of datasets of 2 users with 1 example each from {0, 1}" in about((0, 1), 2, 1)
    # 125 values; runs of equal users count once: 125^3 + 2 (125^3 - 125^2)
    assert f"1,000 drawn ones of {3 * 125**3 - 2 * 125**2:,} pairs of datasets of 3 users" in about(range(5), 3, 3)


@pytest.mark.parametrize("sizes", [(), [0], (-1, 2), 0, True, "2", 1.5])
def test_numbers_of_examples_that_are_none(sizes: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="n_examples"):
        neighboring_pairs((0, 1), n_users=2, n_examples=sizes)


def test_a_symmetry_that_a_palindrome_hides() -> None:
    """The user in the middle of three: reversing the users, as was tried before, never moves him."""

    def middle(users: Any) -> list[str]:
        return ["3/4", "1/4"] if users[1] > max(users[0], users[2]) else ["1/4", "3/4"]

    with pytest.raises(ValueError, match="declared symmetric, but its pmf changes"):
        assert_user_private(SymmetricAlgorithm((0, 1), middle), universe=(0, 1, 2), n_users=3, n_examples=1, epsilon=0)


@pytest.mark.parametrize(("n", "share"), [(2, "10 of 10 datasets"), (20, "1,024 of 1,771 datasets")])
def test_on_how_many_datasets_a_symmetry_was_tried_is_said(n: int, share: str) -> None:
    constant = SymmetricAlgorithm((0,), lambda users: ["1"])
    report = assert_user_private(constant, universe=range(4), n_users=n, epsilon=0)
    assert f"other orders of the users, drawn ones, on {share}" in " ".join(report.summary().split())


def test_every_order_of_small_tables_is_tried_and_the_number_of_tables_is_said() -> None:
    """One order of one table of four rows in all is told."""

    def telling(table: Any) -> int:
        return 5 * ([row["x"] for row in table] == [3, 1, 0, 2])

    asked: dict[str, Any] = {"schema": {"x": (0, 1, 2, 3)}, "null": False, "total_rows": 4, "max_users": 4, "l1": 1}
    assert audit_sensitivity(telling, **asked).holds is False
    report = audit_sensitivity(len, **asked)
    # Of five letters (one is no category): 126 tables, less those with one kind of row: 1 + 4 * 5.
    assert report.tables == 126
    assert "others were tried on 105 tables" in " ".join(report.summary().split())
