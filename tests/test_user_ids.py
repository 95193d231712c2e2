"""Reading user ids and bounding contributions: one code for each id of whatever kind, against dictionaries."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

import numpy as np
import pytest

from userdp.users import bound_contributions
from userdp.users.contributions import encode_users

NAN = float("nan")


class ByIdentity:
    """Two of these are never equal."""


class OnlyWithItsOwn:
    """Compares itself with its own kind only."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, OnlyWithItsOwn)
        return self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)


class Unknown:
    """Like pandas' NA: whether it is equal to anything is unknown."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("ambiguous")

    def __hash__(self) -> int:
        return 3


def objects(*ids: Any) -> np.ndarray[Any, Any]:
    return np.fromiter(ids, dtype=object, count=len(ids))


def test_codes_are_those_of_a_dictionary() -> None:
    source = random.Random(1)
    pools: list[tuple[Any, list[Any]]] = [
        (np.uint64, [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]),
        (np.int64, [-(2**63), -1, 0, 1, 2**63 - 1]),
        (np.uint64, [2**63 + i for i in range(5)]),
        (np.int8, [-128, 0, 127]),
        (">i4", [3, -1, 4]),
        (np.float32, [-0.0, 0.0, 5.0, -7.0]),
        (None, ["a", "b", "ab", "1"]),
        (None, [b"a", b"b"]),
        (object, [uuid.UUID(int=i) for i in range(4)]),
        (object, [1, "1", (1, "1"), 2**70, -1.5]),
    ]
    for _ in range(2000):
        dtype, pool = source.choice(pools)
        rows = [source.choice(pool) for _ in range(source.randrange(1, 9))]
        ids = objects(*rows) if dtype is object else np.array(rows, dtype=dtype)
        users = encode_users(ids, len(rows))
        by = (lambda user: (type(user).__name__, repr(user))) if dtype is object else None
        code_of = {user: code for code, user in enumerate(sorted(set(rows), key=by))}
        assert users.codes.tolist() == [code_of[user] for user in rows]
        assert (users.n_users, users.codes.dtype) == (len(code_of), np.uint32)
        enrolled = source.sample(list(dict.fromkeys(pool)), len(set(pool)))
        listed = encode_users(ids, len(rows), enrolled)
        assert listed.codes.tolist() == [enrolled.index(user) for user in rows]
        assert listed.n_users == len(enrolled)


def test_ids_of_several_types_in_a_list_stay_what_they_are() -> None:
    assert encode_users([1, "a", 1, "1"], 4).codes.tolist() == [0, 2, 0, 1]
    assert encode_users((b"1", "1"), 2).n_users == 2
    _, _, kept = bound_contributions([5, 6, 7], None, [1, "1", 1], m=1)
    assert kept.tolist() == [1, "1"]
    assert encode_users([OnlyWithItsOwn(4), OnlyWithItsOwn(4)], 2).n_users == 1


@pytest.mark.parametrize(
    "ids",
    [["a", NAN], [NAN, "a"], [b"a", NAN], ["a", None], ["a", ""], [1, None], [1, NAN], objects(1, NAN),
     objects("a", Unknown()), objects("a", np.datetime64("NaT"))],
)  # fmt: skip
def test_rows_without_an_id_are_refused_and_not_given_to_somebody(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"^groups: row . has no user id$"):
        encode_users(ids, 2)


def test_what_is_no_id_is_refused() -> None:
    for ids, error, text in [
        ([ByIdentity(), ByIdentity()], TypeError, "row 0 has a user id that is equal to nothing but itself"),
        (objects("a", np.arange(2)), TypeError, "row 1 has a user id that is not hashable"),
        ([True, False], TypeError, "dtype bool"),
        ([1.5, 2.0], TypeError, r"not whole numbers below 2\*\*53"),
        ([2.0**53, 1.0], TypeError, r"not whole numbers below 2\*\*53"),
        ([(1, 2), (1, 2)], ValueError, "the shape"),
        ([(1, 2), (1,)], TypeError, "a vector of user ids"),
        (np.ma.array([1, 2]), TypeError, "masked"),
        ([1, 2, 3], ValueError, "3 user ids for 2 rows"),
    ]:
        with pytest.raises(error, match=text):
            encode_users(ids, 2)


def test_what_is_no_list_of_users_is_refused() -> None:
    for enrolled, error, text in [
        ("ab", TypeError, "enrolled must be a sequence of user ids; got 'ab'"),
        (np.array(3), TypeError, "enrolled must be a sequence"),
        (3, TypeError, "enrolled must be a sequence"),
        ([1, [2]], TypeError, "enrolled: entry 1 has a user id that is not hashable"),
        ([1, None], ValueError, "enrolled: entry 1 has no user id"),
        ([NAN, 1], ValueError, "enrolled: entry 0 has no user id"),
        ([1, 2, True], ValueError, "twice"),
        ([2, 3], ValueError, "row 1 is not among those enrolled"),
    ]:
        with pytest.raises(error, match=text):
            encode_users([2, 1], 2, enrolled)
    assert encode_users([], 0, ["a", "b"]).n_users == 2
    assert encode_users([1, 2], 2, np.array([2, 1, 9])).codes.tolist() == [1, 0]


@pytest.mark.parametrize("m", [1, 2, 3, 2**32, 2**70])
def test_at_most_m_rows_of_everybody_are_kept(m: int) -> None:
    source = random.Random(m)
    for rule in ("first", "random"):
        for _ in range(200):
            ids = [source.randrange(4) for _ in range(source.randrange(12))]
            rows = list(range(len(ids)))
            kept, labels, groups = bound_contributions(rows, rows, ids, m=m, rule=rule)  # type: ignore[arg-type]
            assert kept.tolist() == labels.tolist() == sorted(kept.tolist())  # type: ignore[union-attr]
            assert groups.tolist() == [ids[row] for row in kept]
            assert Counter(groups.tolist()) == {user: min(m, ids.count(user)) for user in set(ids)}
            if rule == "first":
                seen: Counter[int] = Counter()
                expected = []
                for row, user in enumerate(ids):
                    seen[user] += 1
                    expected += [row] * (seen[user] <= m)
                assert kept.tolist() == expected
