"""Leaky mechanisms by position of the user and by record, and as many right ones: all of the former are found."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from userdp.algorithms import SymmetricAlgorithm
from userdp.algorithms.finite import FunctionAlgorithm
from userdp.audit import audit_samples, neighboring_pairs
from userdp.audit.neighbors import read_sizes
from userdp.report import GuessReport, Report
from userdp.testing import assert_user_private

UNIVERSE = ("a", "bb")
USERS, SIZES = 3, (0, 1, 2)
SMALL = [(3, (0, 1)), (2, (0, 2))]
"""Users, and numbers of examples, of worlds with few pairs."""


def datasets_of(n: int, sizes: Any) -> list[Any]:
    return list(
        itertools.product([user for size in sizes for user in itertools.product(UNIVERSE, repeat=size)], repeat=n)
    )


DATASETS = datasets_of(USERS, SIZES)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(repr(value).encode()).digest()


POSITIONS: dict[str, Callable[[Any], Any]] = {
    "first": lambda users: users[0],
    "last": lambda users: users[-1],
    **{f"index {place}": lambda users, place=place: users[place % len(users)] for place in range(USERS)},
    "smallest": min,
    "largest": max,
    "middle": lambda users: sorted(users)[len(users) // 2],
    "by hash": lambda users: min(users, key=_digest),
    "by hash of all": lambda users: users[_digest(users)[0] % len(users)],
}
RECORDS: dict[str, Callable[[Any], bool]] = {
    "first": lambda user: user[:1] == ("bb",),
    "last": lambda user: user[-1:] == ("bb",),
    "longest": lambda user: max(user, key=len, default="") == "bb",
    "order": lambda user: user == ("bb", "a"),
    "count": lambda user: len(user) == 2,
    "empty": lambda user: not user,
}
CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "always": lambda users: True,
    "somebody is empty": lambda users: () in users,
    "two are equal": lambda users: len(set(users)) < len(users),
    "order of users": lambda users: users[0] < users[-1],
}


class Secret(NamedTuple):
    """A bit of a dataset: of one user's record, under a condition."""

    position: str
    record: str
    condition: str

    def __call__(self, users: Any) -> int:
        return int(CONDITIONS[self.condition](users) and RECORDS[self.record](POSITIONS[self.position](users)))

    @property
    def symmetric(self) -> bool:
        """By all orders of all datasets."""
        return all(self(order) == self(users) for users in DATASETS for order in itertools.permutations(users))

    def varies(self, datasets: Any) -> bool:
        return len(set(map(self, datasets))) > 1


KINDS = list(itertools.starmap(Secret, itertools.product(POSITIONS, RECORDS, CONDITIONS)))


def tossed(secret: Secret, lies: int) -> Any:
    """The bit, wrong with probability lies / 4: whatever the bit is, one lie is private at ln 3, and none is not."""
    return lambda users, bits: secret(users) ^ (bits(2) < lies)


def drawn(secret: Secret, lies: int) -> Any:
    return lambda users, rng: secret(users) ^ (rng.integers(4) < lies)


def stated(secret: Secret, lies: int, kind: Any = FunctionAlgorithm) -> Any:
    def pmf(users: Any) -> list[str]:
        right, wrong = f"{4 - lies}/4", f"{lies}/4"
        return [wrong, right] if secret(users) else [right, wrong]

    return kind((0, 1), pmf)


def outcome(mechanism: Any, neighbors: str, n: int = USERS, sizes: Any = SIZES, **options: Any) -> str:
    """What becomes of the claim: kept, broken, refused."""
    options |= {"neighbors": neighbors, "allow_undecided": True, "epsilon": "ln(3)"}
    try:
        report: Any = assert_user_private(mechanism, universe=UNIVERSE, n_users=n, n_examples=sizes, **options)
    except AssertionError:
        return "broken"
    except ValueError:
        return "refused"
    return "kept" if report.holds in (None, True) else "?"


def some(number: int, seed: int, datasets: Any = DATASETS) -> list[Secret]:
    return random.Random(seed).sample([secret for secret in KINDS if secret.varies(datasets)], number)


DRAWS: dict[str, Any] = {"training": 4000, "draws": 1000}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(("n", "sizes"), SMALL)
def test_leaks_are_found_by_draws_and_no_right_mechanism_is_blamed(n: int, sizes: Any, neighbors: str) -> None:
    for secret in some(6, n, datasets_of(n, sizes)):
        assert outcome(drawn(secret, 0), neighbors, n, sizes, **DRAWS) == "broken", secret
        assert outcome(drawn(secret, 1), neighbors, n, sizes, **DRAWS) == "kept", secret


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_leaks_are_found_exactly(neighbors: str) -> None:
    for secret in some(12, seed=2):
        for make in (tossed, stated):
            assert outcome(make(secret, 0), neighbors) == "broken", secret
            assert outcome(make(secret, 1), neighbors) == "kept", secret


def test_symmetry_that_is_declared_is_tried() -> None:
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
