"""Who is the same user, and bounding contributions: one code for each id of whatever kind, against dictionaries."""

from __future__ import annotations

import datetime
import enum
import itertools
import random
import uuid
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from userdp.users import UserTable, bound_contributions, canonical_id, id_bytes
from userdp.users.table import encode_users, read_ids

NAN = float("nan")


class ByIdentity:
    """Two of these are never equal."""


class Number(enum.IntEnum):
    """An int of a class of its own."""

    ONE = 1


class Pair(NamedTuple):
    """An id of two parts with names."""

    number: int
    name: str


class OddText(str):
    """A text that is equal to all others."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def in_order(user: Any) -> Any:
    """Ids by the name of their type, then by themselves."""
    return type(user).__name__, user


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
        (object, [5, "2", (1, "1"), 2**70, b"x", True, datetime.date(2024, 2, 29), uuid.UUID(int=7)]),
    ]
    for _ in range(2000):
        dtype, pool = source.choice(pools)
        rows = [source.choice(pool) for _ in range(source.randrange(1, 9))]
        ids = objects(*rows) if dtype is object else np.array(rows, dtype=dtype)
        users = encode_users(ids, len(rows))
        code_of = {user: code for code, user in enumerate(sorted(set(rows), key=in_order if dtype is object else None))}
        assert users.codes.tolist() == [code_of[user] for user in rows]
        assert (users.n_users, users.codes.dtype) == (len(code_of), np.uint32)
        enrolled = source.sample(list(dict.fromkeys(pool)), len(set(pool)))
        listed = encode_users(ids, len(rows), enrolled)
        assert listed.codes.tolist() == [enrolled.index(user) for user in rows]
        assert listed.n_users == len(enrolled)


def test_ids_of_several_types_in_a_list_stay_what_they_are() -> None:
    assert encode_users([1, "a", 1, "2"], 4).codes.tolist() == [0, 2, 0, 1]
    assert encode_users((b"1", "2"), 2).n_users == 2
    _, _, kept = bound_contributions([5, 6, 7], None, [1, "2", 1], m=1)
    assert kept == [1, "2"]


@pytest.mark.parametrize(
    "ids",
    [["a", NAN], [NAN, "a"], [b"a", NAN], ["a", None], ["a", ""], [1, None], [1, NAN], objects(1, NAN),
     objects("a", pd.NA), objects("a", pd.NaT), objects("a", np.datetime64("NaT")), objects("a", ()), [b"a", b""],
     np.array(["2024-02-29", "NaT"], dtype="M8[D]"), pd.Series([1, None]), pd.Series([1, None], dtype="Int64"),
     pd.Series(["a", None], dtype="str"), pl.Series([1, None]), pa.array(["a", None])],
)  # fmt: skip
def test_rows_without_an_id_are_refused_and_not_given_to_somebody(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"^groups: row . has no user id$"):
        encode_users(ids, 2)


def test_what_is_no_id_is_refused() -> None:
    for ids, error, text in [
        ([ByIdentity(), ByIdentity()], TypeError, "the id in row 0 is a ByIdentity"),
        (objects("a", np.arange(2)), TypeError, "the id in row 1 is a ndarray"),
        ([frozenset({1}), frozenset({1})], TypeError, "the id in row 0 is a frozenset"),
        ([7, Number.ONE], TypeError, "the id in row 1 is a Number"),
        (["a", OddText("b")], TypeError, "the id in row 1 is a OddText"),
        ([Fraction(1), Fraction(1)], TypeError, "the id in row 0 is a Fraction"),
        (
            [1, datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)],
            TypeError,
            "row 1 is a time with a time zone",
        ),
        ([1, 2**4096], TypeError, "row 1 is an integer of more than 4096 bits"),
        ([((((((1,),),),),),), 1], TypeError, "the id in row 0 is a tuple of too many parts"),
        ([1.5, 2.0], TypeError, r"no whole number below 2\*\*53"),
        (np.array([2.0**53, 1.0]), TypeError, r"not whole numbers below 2\*\*53"),
        (np.array([(1, 2), (1, 2)]), ValueError, "the shape"),
        ({1, 2}, TypeError, "groups must be a NumPy array, a list"),
        (iter([1, 2]), TypeError, "groups must be a NumPy array, a list"),
        ("ab", TypeError, "groups must be a NumPy array, a list"),
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
        ([1, [2]], TypeError, "enrolled: the id in entry 1 is a list"),
        ([1, None], ValueError, "enrolled: entry 1 has no user id"),
        ([NAN, 1], ValueError, "enrolled: entry 0 has no user id"),
        ([1, 2, 1.0], ValueError, "twice"),
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
            assert kept == labels == sorted(kept)
            assert groups == [ids[row] for row in kept]
            assert Counter(groups) == {user: min(m, ids.count(user)) for user in set(ids)}
            if rule == "first":
                seen: Counter[int] = Counter()
                expected = []
                for row, user in enumerate(ids):
                    seen[user] += 1
                    expected += [row] * (seen[user] <= m)
                assert kept == expected


# --- one identity


SAME: list[list[Any]] = [
    [7, np.int8(7), np.uint64(7), np.longlong(7), 7.0, np.float32(7)],
    ["ann", np.str_("ann")],
    [b"ann", np.bytes_(b"ann")],
    [True, np.True_],
    [(7, "ann"), (np.int64(7), "ann"), (7.0, np.str_("ann")), Pair(7, "ann")],
    [datetime.date(2024, 2, 29), np.datetime64("2024-02-29")],
    [
        datetime.datetime(2024, 2, 29, 5),
        pd.Timestamp(2024, 2, 29, 5),
        np.datetime64("2024-02-29T05:00:00", "s"),
        np.datetime64("2024-02-29T05:00:00", "ns"),
    ],
    [uuid.UUID(int=7)],
    [(7, ("ann",))],
    [((7, "ann"),)],
    [pd.Timestamp("2024-02-29 05:00:00.000000001"), np.datetime64("2024-02-29T05:00:00.000000001")],
    ["7"],
    [b"7"],
]
"""Ids of one user in a row; those of different rows are different users."""


def test_an_id_has_one_form_whatever_holds_it() -> None:
    for one, other in itertools.product(SAME, repeat=2):
        for a, b in itertools.product(one, other):
            assert (canonical_id(a) == canonical_id(b)) == (one is other)
            assert (id_bytes(a) == id_bytes(b)) == (one is other)
    assert hash(canonical_id((7, "ann")))


def test_forms_of_tuples_are_told_apart() -> None:
    """Every two trees of three leaves or fewer, over leaves that could be taken for parts of others."""
    leaves: list[Any] = ["", "1:a", "3:str1:a", b"1:a", 1, 11, "a", "aa"]
    trees: list[Any] = [leaf for leaf in leaves if leaf != ""]
    trees += [(a,) for a in trees[:7]] + list(itertools.product(trees[:7], repeat=2))
    trees += [((a, b), c) for a, b, c in itertools.product(trees[:4], repeat=3)]
    trees += [(a, (b, c)) for a, b, c in itertools.product(trees[:4], repeat=3)]
    assert len({id_bytes(tree) for tree in trees}) == len(set(trees)) == len(trees)


@pytest.mark.parametrize("missing", [None, NAN, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), "", b"", ()])
def test_a_missing_part_makes_an_id_missing(missing: Any) -> None:
    """(1, nan) is equal to no other (1, nan), so that everybody without a second part would be a user of every row."""
    for user in (missing, (1, missing), (missing, 1), (1, ("a", missing))):
        with pytest.raises(ValueError, match="a user id is missing"):
            canonical_id(user)
        with pytest.raises(ValueError, match=r"^groups: row 1 has no user id$"):
            encode_users([(1, 2), user], 2)


def test_ids_of_two_columns_however_they_are_put_together() -> None:
    """As users make one id of two columns, where one has a missing value: refused each time, with the row."""
    frame = pd.DataFrame({"site": [1, 1, 2, 2], "number": [1.0, np.nan, np.nan, 4.0]})
    made = {
        "MultiIndex": pd.MultiIndex.from_frame(frame),
        "zip": list(zip(frame["site"], frame["number"], strict=True)),
        "itertuples": list(frame.itertuples(index=False)),
        "apply": frame.apply(tuple, axis=1),
        "tuples": pd.Series(list(frame.itertuples(index=False, name=None))),
        "objects": objects(*frame.itertuples(index=False, name=None)),
        "polars": pl.from_pandas(frame).rows(),
    }
    for name, ids in made.items():
        with pytest.raises(ValueError, match=r"^groups: row 1 has no user id$"):
            encode_users(ids, 4)
        whole = (
            ids[[0, 3, 3, 0]] if isinstance(ids, (np.ndarray, pd.Index)) else [list(ids)[row] for row in (0, 3, 3, 0)]
        )
        assert encode_users(whole, 4).codes.tolist() == [0, 1, 1, 0], name


@pytest.mark.parametrize(
    "ids",
    [
        [7, "7"],
        [7, b"7"],
        ["7", b"7"],
        [True, 1],
        [False, "False"],
        [uuid.UUID(int=7), str(uuid.UUID(int=7))],
        [uuid.UUID(int=7), uuid.UUID(int=7).hex.upper()],
        [datetime.date(2024, 2, 29), "2024-02-29"],
        [datetime.datetime(2024, 2, 29), datetime.date(2024, 2, 29)],
        [datetime.datetime(2024, 2, 29, 5), "2024-02-29T05:00:00"],
        [(1, "a"), ("1", "a")],
        [(True,) * 12, (1,) * 12],
        *([7, text] for text in ("007", " 7", "7 ", "+7", "7.", "7.00", "\uff17", b"07")),
        *([0, text] for text in ("-0", "00", "0.0")),
        [-7, "-07"],
        [2**64, "0" + str(2**64)],
        [True, "TRUE"],
        [True, "1.0"],
        [7, (7,)],
        ["a", ("a",)],
        [((7,), "a"), (7, "a")],
        [uuid.UUID(int=7), f"{{{uuid.UUID(int=7)}}}"],
        [uuid.UUID(int=7), uuid.UUID(int=7).urn],
        *(
            [datetime.datetime(2024, 2, 29, 5, 0, 0, 500), text]
            for text in ("2024-02-29 05:00:00.0005", "2024-02-29T05:00:00.000500Z", "2024-02-29 05:00:00.000500+00:00")
        ),
        [datetime.datetime(2024, 2, 29, 5), "2024-02-29 05:00"],
        [datetime.datetime(2024, 2, 29), "2024-02-29T00:00Z"],
        pd.Series([7, "7"], dtype=object),
        objects(7, "7"),
    ],
    ids=repr,
)
def test_ids_that_read_alike_are_refused_unless_they_are_enrolled(ids: Any) -> None:
    with pytest.raises(ValueError, match="the ids in rows 0 and 1 read alike and are of different types: convert"):
        encode_users(ids, 2)
    assert encode_users(ids, 2, list(ids)).codes.tolist() == [0, 1]
    with pytest.raises(ValueError, match="row 1 is not among those enrolled"):
        encode_users(ids, 2, [ids[0], "somebody else"])


def test_ids_of_one_type_that_read_alike_are_different_users() -> None:
    for ids in (["7", "07", " 7", "7.0", "True", "1"], [("a", "b"), ("ab", ""[:0] or "c")], [b"7", b"07"]):
        assert encode_users(ids, len(ids)).n_users == len(ids)


def test_categories_are_the_ids_that_they_stand_for() -> None:
    """An arrow dictionary of integers is a column of integers, as it is for pandas; unused categories are nobody."""
    numbers, texts = pa.array([7, 9, 7]).dictionary_encode(), pa.array(["7", "9", "7"]).dictionary_encode()
    for ids, kind in [
        (numbers, int),
        (pa.table({"who": numbers})["who"], int),
        (pd.Series(numbers, dtype=pd.ArrowDtype(numbers.type)), int),
        (pd.Series([7, 9, 7]).astype("category"), int),
        (pd.Series(pd.Categorical([7, 9, 7], categories=[9, 8, 7])), int),
        (texts, str),
        (pd.Series(["7", "9", "7"]).astype("category"), str),
        (pl.Series(["7", "9", "7"], dtype=pl.Categorical), str),
        (pl.Series(["7", "9", "7"], dtype=pl.Enum(["9", "8", "7"])), str),
    ]:
        users = encode_users(ids, 3, [kind(9), kind(7)])
        assert (users.codes.tolist(), users.n_users) == ([1, 0, 1], 2)
        assert encode_users(ids, 3).n_users == 2


def test_ids_may_be_in_columns_of_any_fixed_width() -> None:
    given = uuid.UUID(int=7)
    for ids, user in [
        (pl.Series([7, 2**100], dtype=pl.Int128), 7),
        (pa.array([given.bytes] * 2, type=pa.binary(16)), given.bytes),
        (pa.array([0, 1], type=pa.timestamp("us")), datetime.datetime(1970, 1, 1)),
        (pd.Index([7, 9]), 7),
        (pd.date_range("1970-01-01", periods=2), datetime.datetime(1970, 1, 1)),
    ]:
        assert encode_users(ids, 2).n_users == len(set(ids.tolist() if isinstance(ids, pd.Index) else ids))
        assert canonical_id(user) in read_ids(ids, 2)[1]


def test_a_lazy_frame_is_collected_once() -> None:
    """Each time its rows may come in another order: ids, and which rows are kept, would be of different orders."""
    orders = itertools.cycle([["ann", "ann", "ben", "ann"], ["ann", "ann", "ann", "ben"], ["ann", "ben", "ann", "ann"]])
    content = pl.DataFrame({"who": ["", "", "", ""]}).lazy()
    frame = content.map_batches(lambda _: pl.DataFrame({"who": next(orders)}), schema={"who": pl.String})
    for _ in range(6):
        kept, labels, groups = bound_contributions(frame, None, "who", m=1)
        assert isinstance(kept, pl.LazyFrame)
        assert (labels, groups) == (None, "who")
        bounded = bound_contributions(frame.with_columns(hours=1), None, "who", m=1, enrolled=["ben", "ann"])[
            0
        ].collect()
        assert sorted(bounded["who"].to_list()) == ["ann", "ben"]
    y = pl.LazyFrame({"y": [1, 2, 3, 4]})
    assert bound_contributions(range(4), y, ["a", "a", "b", "a"], m=1)[1].collect()["y"].to_list() == [1, 3]


def test_columns_may_be_named_by_numbers() -> None:
    """As those of a pandas frame are that was made of an array."""
    frame = pd.DataFrame({0: [1, 2], 1: [3, 4], "who": ["ann", "ben"]})
    assert UserTable.read(frame, groups="who", m=1).X.tolist() == [[1, 3], [2, 4]]
    assert UserTable.read(pd.DataFrame([[1, 3], [2, 4]]), [0, 1], groups=frame["who"], m=1).X.tolist() == [
        [1, 3],
        [2, 4],
    ]


def test_codes_are_in_the_order_of_ids_wherever_their_rows_are() -> None:
    source = random.Random(3)
    pool = [9, 4, "b", "a", (2, "x"), (2, "w"), b"z", uuid.UUID(int=9), datetime.date(2020, 1, 1)]
    first = None
    for _ in range(50):
        rows = source.sample(pool * 2, len(pool) * 2)
        users = encode_users(rows, len(rows))
        codes = dict(zip(rows, users.codes.tolist(), strict=True))
        first = first or codes
        assert codes == first


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "lazy"])
def test_groups_may_name_a_column_of_a_frame(library: str) -> None:
    """That column is no feature."""
    content = {"hours": [1, 2, 3, 4], "who": ["ann", "ben", "ann", "ben"]}
    frame: Any = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "lazy": pl.LazyFrame,
    }[library](content)
    table = UserTable.read(frame, groups="who", m=2)
    assert (table.X.tolist(), table.users.tolist(), table.n_users) == ([[1], [2], [3], [4]], [0, 1, 0, 1], 2)
    X, _, groups = bound_contributions(frame, None, "who", m=1)
    assert groups == "who"
    assert UserTable.read(X, groups=groups, m=1).X.tolist() == [[1], [2]]
    for bad in ("hour", "Who", ""):
        with pytest.raises(ValueError, match="is no column of X, whose columns are 'hours', 'who'"):
            UserTable.read(frame, groups=bad, m=2)
    with pytest.raises(TypeError, match="groups='who' names a column, and X is a ndarray"):
        UserTable.read(np.ones((4, 1)), groups="who", m=2)


def test_columns_of_one_name_are_refused_by_the_name_of_the_argument() -> None:
    with pytest.raises(ValueError, match="X has several columns of one name"):
        UserTable.read(pd.DataFrame(np.eye(2), columns=["a", "a"]), groups=[1, 2], m=1)


def test_a_frame_with_columns_of_one_name_has_no_column_of_ids() -> None:
    frame = pd.DataFrame([[0.0, 1, 1], [1.0, 2, 2]], columns=["x", "user", "user"])
    with pytest.raises(ValueError, match="X has several columns of one name"):
        UserTable.read(frame, groups="user", m=1)
    with pytest.raises(ValueError, match="X has several columns of one name"):
        bound_contributions(frame, None, "user", m=1)
