"""What an audit takes on, its checker takes on: the two have their own code and the same values."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_item_level, audit_user_level
from userdp.audit import datasets as audited
from userdp.audit import engine as auditor
from userdp.checker import audits, spaces, values
from userdp.exact import encoding
from userdp.exceptions import BudgetError


def test_the_constants_are_the_same() -> None:
    for name in ("MAX_DATASETS", "MAX_PAIRS", "MAX_PMF_PAIRS", "MAX_USERS"):
        assert getattr(values, name) == getattr(auditor, name)
    for name in ("MAX_SUMS", "MAX_STEPS"):
        assert getattr(values, name) == getattr(audited, name)
    for name in ("MOST_BITS", "MOST_DEPTH", "MOST_SIZE"):
        assert getattr(values, name) == getattr(encoding, name)


class Asked(Exception):
    """The audit is not refused: it asks the mechanism."""


def ask(*_: Any) -> list[Fraction]:
    raise Asked


def audit_takes(engine: str, size: int, n: int, m: int, kind: str, neighbors: str) -> bool:
    """Whether an audit of this size is begun."""
    mechanism: Any = {
        "labeled": finite_algorithm((0, 1))(ask),
        "symmetric": SymmetricAlgorithm((0, 1), ask),
        "additive": AdditiveAlgorithm((0, 1), sum, ask, statistic_range=(0, m * (size - 1))),
    }[engine]
    claim: dict[str, Any] = {"universe": range(size), "n_users": n, "n_examples": m, "epsilon": 1, "delta": 0}
    claim |= {"budget": 10**30, "engine": engine}
    try:
        if kind == "item-level":
            audit_item_level(mechanism, **claim)
        else:
            audit_user_level(mechanism, **claim, neighbors=neighbors)
    except BudgetError:
        return False
    except RuntimeError as error:
        return isinstance(error.__cause__, Asked)
    return False


def checker_takes(engine: str, size: int, n: int, m: int, kind: str, neighbors: str) -> bool:
    """Whether a report of this size is enumerated."""
    structure: dict[str, Any] = {"universe": list(range(size)), "n_users": n, "n_examples": m}
    if engine == "additive":
        if size**m > values.MAX_DATASETS:
            return False
        structure["statistics"] = [sum(value) for value in itertools.product(range(size), repeat=m)]
    question = {"kind": kind, "neighbors": neighbors, "engine": engine, "structure": structure}
    try:
        spaces.space_of(question)
    except spaces.Problem:
        return False
    return True


LABELED = [(2, 16, 1), (2, 17, 1), (2, 20, 1), (2, 21, 1), (2000, 1, 1), (20_001, 1, 1), (19_990, 1, 1), (3, 12, 1)]
SYMMETRIC = [(2, 6320, 1), (2, 6330, 1), (3, 420, 1), (3, 450, 1), (70, 3, 1), (1, 1000, 3), (1, 3_000_000, 1)]
ADDITIVE = [
    (2, 3000, 1),
    (2, 7100, 1),
    (10, 300, 1),
    (40, 30, 1),
    (1001, 10, 1),
    (2, 40, 10),
    (2, 3, 17),
    (15_000, 1, 1),
]
SIZES = [
    *(("labeled", *size, "user-level", change) for size in LABELED for change in ("replace", "add-remove")),
    *(("symmetric", *size, "user-level", change) for size in SYMMETRIC for change in ("replace", "add-remove")),
    *(("additive", *size, "user-level", change) for size in ADDITIVE for change in ("replace", "add-remove")),
    *(("additive", *size, "item-level", "replace") for size in [(2, 40, 10), (40, 30, 1), (15_000, 1, 1), (50, 2, 2)]),
    *(
        (engine, *size, "item-level", "replace")
        for engine in ("labeled", "symmetric")
        for size in [(2, 2, 9), (3, 4, 3)]
    ),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_is_audited_can_be_checked(size: tuple[str, int, int, int, str, str]) -> None:
    assert audit_takes(*size) is checker_takes(*size)


def test_both_ways_occur() -> None:
    taken = [checker_takes(*size) for size in SIZES]
    assert 0.2 < sum(taken) / len(taken) < 0.8


def nested(depth: int) -> Any:
    """Tuples in tuples, so deep."""
    value: Any = 1
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize(
    ("largest", "larger"),
    [
        (2**2048 - 1, 2**2048),
        (-(2**2048) + 1, -(2**2048)),
        (Fraction(1, 2**2048 - 1), Fraction(1, 2**2048)),
        (nested(32), nested(33)),
        (frozenset([nested(31)]), frozenset([nested(32)])),
    ],
    ids=["integer", "negative", "fraction", "depth", "depth of a set"],
)
def test_values_of_people_have_the_same_sizes(largest: Any, larger: Any) -> None:
    assert values.decode(encoding.code_of(largest)) == largest
    with pytest.raises(TypeError):
        encoding.code_of(larger)

    def plain(value: Any) -> Any:
        """As it would be encoded if there were no values."""
        if isinstance(value, Fraction):
            return {"fraction": f"{value.numerator}/{value.denominator}"}
        if isinstance(value, frozenset):
            return {"set": list(map(plain, value))}
        return [plain(member) for member in value] if isinstance(value, tuple) else value

    assert plain(largest) == encoding.code_of(largest)
    with pytest.raises(values.Problem):
        values.decode(plain(larger))


@pytest.mark.parametrize(
    "make",
    [
        lambda size: "é" * (size - 1),
        lambda size: bytes(size - 1),
        lambda size: (None,) * (size - 1),
        lambda size: ("a" * (size - 4), 1, True),
        lambda size: (Decimal("1" * 1000),) * (size // 1001) + (0,) * (size % 1001 - 1),
    ],
    ids=["text", "bytes", "tuple", "both", "Decimals"],
)
def test_values_of_people_have_the_same_number_of_parts(make: Any) -> None:
    largest, larger = make(values.MOST_SIZE), make(values.MOST_SIZE + 1)
    objects = audits.objects_of({"universe": [encoding.code_of(largest)]})
    assert objects == {"universe": (largest,)}
    assert values.size_of(largest) == values.MOST_SIZE
    with pytest.raises(TypeError):
        encoding.code_of(larger)
    with pytest.raises(values.Problem, match="parts and characters"):
        audits.objects_of({"universe": [json.loads(json.dumps(encoding.encode(larger)))]})


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_ranks_of_multisets_are_their_places_in_a_list(neighbors: str) -> None:
    """Counted along runs of equal values; the list is of `itertools`."""
    for n, size in itertools.product(range(1, 6), range(1, 6)):
        structure = {"universe": list(range(size)), "n_users": n, "n_examples": 1}
        space: Any = spaces.space_of(
            {"kind": "user-level", "engine": "symmetric", "neighbors": neighbors, "structure": structure}
        )
        full = list(itertools.combinations_with_replacement(range(size), n))
        fewer = list(itertools.combinations_with_replacement(range(size), n - 1)) * (neighbors == "add-remove")
        places = {members: place for place, members in enumerate([*full, *fewer])}
        assert space.datasets == len(places)
        for members, rank in places.items():
            assert (space.members(rank), space.rank_of(members)) == (members, rank)
        for members in full:
            rests = [members[:i] + members[i + 1 :] for i in range(n)]
            others = set(rests) if fewer else {tuple(sorted((*rest, v))) for rest in rests for v in range(size)}
            rank = places[members]
            assert list(space.above(rank)) == sorted(places[one] for one in others if places[one] > rank)
