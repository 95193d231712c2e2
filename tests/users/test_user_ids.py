"""Who is the same user: one identity for all spellings of an id, codes against dictionaries, and rows of nobody."""

from __future__ import annotations

import datetime
import enum
import itertools
import random
import uuid
import warnings
import zoneinfo
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from userdp.means import WinsorizedMean
from userdp.users import UserTable, bound_contributions, canonical_id, id_bytes
from userdp.users.table import encode_users, key_bytes, read_ids

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
    """A text that says that it is equal to all others, and cannot be read by its own methods."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        raise ValueError("a value raises")

    __hash__ = None  # type: ignore[assignment]


def objects(*ids: Any) -> np.ndarray[Any, Any]:
    return np.fromiter(ids, dtype=object, count=len(ids))


def test_codes_are_those_of_a_dictionary() -> None:
    """Pools are in the order of ids: integers by size, then all others by their bytes."""
    source = random.Random(1)
    mixed = [True, "2", 5, datetime.date(2024, 2, 29), b"x", 2**70, (1, "1")]
    pools: list[tuple[Any, list[Any]]] = [
        (np.uint64, [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]),
        (np.int64, [-(2**63), -1, 0, 1, 2**63 - 1]),
        (np.uint64, [2**63 + i for i in range(5)]),
        (np.int8, [-128, 0, 127]),
        (">i4", [-1, 3, 4]),
        (np.float32, [-7.0, -0.0, 5.0]),
        (np.float64, [5.0, -1.5, 0.25]),
        (np.complex128, [-7.0, 5.0]),
        (None, ["1", "a", "b", "ab"]),
        (None, [b"a", b"b"]),
        ("M8[D]", ["2024-02-28", "2024-02-29"]),
        (object, [uuid.UUID(int=i) for i in range(4)]),
        (object, mixed),
    ]
    for _ in range(2000):
        dtype, pool = source.choice(pools)
        rows = [source.choice(pool) for _ in range(source.randrange(1, 9))]
        ids = objects(*rows) if dtype is object else np.array(rows, dtype=dtype)
        users = encode_users(ids, len(rows), exact_ids=True)
        code_of = {user: code for code, user in enumerate(sorted(set(rows), key=pool.index))}
        assert users.codes.tolist() == [code_of[user] for user in rows]
        assert (users.n_users, users.codes.dtype, users.owned) == (len(code_of), np.uint32, None)
        enrolled = source.sample(pool, len(pool))
        listed = encode_users(ids, len(rows), enrolled, exact_ids=True)
        assert listed.codes.tolist() == [enrolled.index(user) for user in rows]
        assert listed.n_users == len(enrolled)


def test_ids_of_several_types_in_a_list_stay_what_they_are() -> None:
    assert encode_users([1, "a", 1, "2"], 4).codes.tolist() == [0, 2, 0, 1]
    assert encode_users((b"1", "2", 1), 3).n_users == 2
    _, _, kept = bound_contributions([5, 6, 7], None, [1, "2", 1], m=1)
    assert kept == [1, "2"]


@pytest.mark.parametrize(
    "ids",
    [["a", NAN], [b"a", NAN], ["a", None], ["a", ""], ["a", " "], ["a", "nan"], [1, None], [1, NAN], objects(1, NAN),
     objects("a", pd.NA), objects("a", pd.NaT), objects("a", np.datetime64("NaT")), objects("a", ()), [b"a", b""],
     np.array(["2024-02-29", "NaT"], dtype="M8[D]"), pd.Series([1, None]), pd.Series([1, None], dtype="Int64"),
     pd.Series(["a", None], dtype="str"), pl.Series([1, None]), pa.array(["a", None]), np.ma.array([1, 2], mask=[0, 1]),
     [1, ByIdentity()], objects("a", np.arange(2)), [1, frozenset({1})], [1, datetime.timedelta(1)], [1, [2]],
     [1, enum.Enum("Odd", "a").a], [1, ((((((2, 3), 4), 5), 6), 7), 8)], [1, (2,) * 65], [1, (2, None)]],
)  # fmt: skip
def test_rows_without_an_id_are_nobodys_everywhere(ids: Any) -> None:
    users = encode_users(ids, 2)
    assert (users.codes.tolist(), users.n_users) == ([0], 1)
    assert users.owned is not None
    assert users.owned.tolist() == [True, False]
    assert encode_users(ids, 2, [1, "a", "2024-02-29"]).n_users == 3
    kept = bound_contributions(np.arange(2), [5, 6], ids, m=2)
    assert (kept[0].tolist(), kept[1], len(kept[2])) == ([0], [5], 1)
    table = UserTable.read(np.array([[1.0], [2.0]]), [1, 1], groups=ids, m=2, classes=(0, 1))
    assert (table.X.tolist(), table.labels.tolist(), table.users.tolist(), table.n_users) == ([[1]], [1], [0], 1)
    assert read_ids(ids, 2)[1] == [id_bytes(ids[0] if not isinstance(ids, pa.Array) else ids[0].as_py())]


def test_what_can_hold_no_id_is_refused_by_its_declared_type_alone() -> None:
    seconds = pa.array([1, 2], type=pa.duration("s"))
    for ids, label in [
        (seconds, r"duration\[s\]"),
        (pl.Series([datetime.timedelta(1), None]), r"Duration"),
        (pa.array([[1], None]), "list<"),
        (pl.Series([{"a": 1}, None]), "Struct"),
    ]:
        wanted = rf"groups is of type {label}.*, and user ids can be read of none of its values: it reads texts, bytes"
        with pytest.raises(TypeError, match=wanted):
            encode_users(ids, 2)
    for unstable in (np.array([1, 2], dtype="m8[s]"), pd.Series(pd.to_timedelta([1, 2])), pd.Series([[1], {}])):
        assert encode_users(unstable, 2).n_users == 0
    held = pd.Series(seconds, dtype=pd.ArrowDtype(seconds.type))
    assert encode_users(held, 2).n_users == 0


def test_containers_of_no_known_kind_or_shape_are_refused() -> None:
    for ids, error, text in [
        (np.array([(1, 2), (1, 2)]), ValueError, "the shape"),
        ({1, 2}, TypeError, "groups must be a NumPy array, a list"),
        (iter([1, 2]), TypeError, "groups must be a NumPy array, a list"),
        ("ab", TypeError, "groups must be a NumPy array, a list"),
        ([1, 2, 3], ValueError, "3 user ids for 2 rows"),
    ]:
        with pytest.raises(error, match=text):
            encode_users(ids, 2)


@pytest.mark.parametrize(
    ("given", "plain"),
    [(Number.ONE, 1), (OddText("ann"), "ann"), (Pair(7, "ann"), (7, "ann")), (type("Mine", (float,), {})(1.5), 1.5)],
)
def test_classes_made_from_plain_ones_are_read_as_these(given: Any, plain: Any) -> None:
    assert canonical_id(given) == canonical_id(plain)
    assert encode_users([plain, given, "other"], 3).codes.tolist() in ([0, 0, 1], [1, 1, 0])


def test_what_is_no_list_of_users_is_refused() -> None:
    for enrolled, error, text in [
        ("ab", TypeError, "enrolled must be a sequence of user ids; got 'ab'"),
        (np.array(3), TypeError, "enrolled must be a sequence"),
        (3, TypeError, "enrolled must be a sequence"),
        ([1, [2]], ValueError, "enrolled: entry 1 has no user id"),
        ([1, None], ValueError, "enrolled: entry 1 has no user id"),
        ([NAN, 1], ValueError, "enrolled: entry 0 has no user id"),
        ([1, 2, 1.0], ValueError, "twice, in entries 0 and 2"),
        ([1, 2, "02"], ValueError, "twice, in entries 1 and 2"),
        ([1, 2, 2**60, 2**60 + 1], ValueError, "twice, in entries 2 and 3.*with exact_ids=True"),
        (pa.array([1, 2], type=pa.duration("s")), TypeError, "enrolled must be a sequence"),
        ([2, 3], ValueError, "row 1 is not among those enrolled"),
    ]:
        with pytest.raises(error, match=text):
            encode_users([2, 1], 2, enrolled)
    assert encode_users([], 0, ["a", "b"]).n_users == 2
    assert encode_users([1, 2], 2, np.array([2, 1, 9])).codes.tolist() == [1, 0]
    assert encode_users([1, 2**60], 2, [2**60 + 1, 2**60, 1], exact_ids=True).codes.tolist() == [2, 1]
    assert encode_users(["07", "7"], 2, ["7", "07"], written_ids=True).codes.tolist() == [1, 0]


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


GIVEN = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
SAME: list[list[Any]] = [
    [7, np.int8(7), np.uint64(7), np.longlong(7), 7.0, np.float32(7), "7", b"7", "007", " 7", "+7", "7.", "7.00", "7e0",
     Decimal("7.0"), Fraction(7), 7 + 0j, (7,), uuid.UUID(int=7)],
    ["ann", np.str_("ann"), b"ann", np.bytes_(b"ann"), "ann ", ("ann",), OddText("ann")],
    ["Ann"],
    [True, np.True_, 1, "1", "TRUE", "true", 1.0, Number.ONE],
    [1.5, "1.50", Decimal("1.5"), Fraction(3, 2), np.float16(1.5)],
    [(7, "ann"), (np.int64(7), "ann"), (7.0, np.str_("ann")), Pair(7, "ann"), ("07", b"ann"), (7, ("ann",))],
    [("ann", 7)],
    [((7, "ann"), 1)],
    ["K\u00f6ln", "Ko\u0308ln", "K\u00f6ln".encode()],
    [GIVEN, str(GIVEN), GIVEN.hex, GIVEN.hex.upper(), f"{{{GIVEN}}}", GIVEN.urn, str(GIVEN).encode()],
    [datetime.date(2024, 2, 29), np.datetime64("2024-02-29"), "2024-02-29", datetime.datetime(2024, 2, 29),
     "2024-02-29T00:00Z", pd.Timestamp(2024, 2, 29)],
    [
        datetime.datetime(2024, 2, 29, 5),
        pd.Timestamp(2024, 2, 29, 5),
        np.datetime64("2024-02-29T05:00:00", "s"),
        np.datetime64("2024-02-29T05:00:00", "ns"),
        pd.Timestamp("2024-02-29 05:00:00.000000001"),
        "2024-02-29 05:00",
        datetime.datetime(2024, 2, 29, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        pd.Timestamp("2024-02-29 06:00", tz="Europe/Berlin"),
        datetime.datetime(2024, 2, 29, 6, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    ],
    [datetime.time(9, 30), "09:30", "09:30:00"],
    [2**53, float(2**53), 2**53 + 1, str(2**53 + 1)],
    ["\ud800"],
    [b"\xff\x00a"],
    [b"\xff\x00b"],
]  # fmt: skip
"""Ids of one user in a row; those of different rows are different users."""


def test_an_id_has_one_form_whatever_holds_it() -> None:
    for one, other in itertools.product(SAME, repeat=2):
        for a, b in itertools.product(one, other):
            assert (canonical_id(a) == canonical_id(b)) == (one is other), (a, b)
            assert (id_bytes(a) == id_bytes(b)) == (one is other)
    assert hash(canonical_id((7, "ann")))
    assert canonical_id((7, (b"ann", 1.0))) == ("7", ("ann", "1"))
    for group in SAME:
        assert id_bytes(group[0]) == key_bytes(canonical_id(group[0]))


def test_the_same_in_one_array_of_objects_is_one_person_in_every_door() -> None:
    for number, one in enumerate(SAME):
        ids = objects(*one, "somebody else", *one)
        wanted = [0] * len(one) + [1] + [0] * len(one)
        for groups in (ids, list(ids), pd.Series(ids, dtype=object), pl.Series("who", list(ids), dtype=pl.Object)):
            codes = encode_users(groups, len(ids)).codes.tolist()
            assert codes in (wanted, [1 - code for code in wanted]), number
        assert encode_users(ids, len(ids), [one[-1], "somebody else"]).codes.tolist() == wanted
        kept = bound_contributions(np.arange(len(ids)), None, ids, m=1)[0]
        assert kept.tolist() == [0, len(one)]
        table = UserTable.read(np.zeros((len(ids), 1)), groups=ids, m=1)
        assert (table.n_users, len(table.users)) == (2, 2)
        learner = WinsorizedMean(epsilon=1, delta=1e-3, max_norm=1, m=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert learner.fit(np.zeros((len(ids), 1)), groups=ids).n_users_ == 2


def test_promises_tell_more_apart() -> None:
    """All digits where no value can change the type, or by promise; texts as they are by promise only."""
    long, texts = [2**60, 2**60 + 1, 2**60], ["7", "07", "7.0"]
    for ids in (long, np.array(long), pd.Series(long), objects(*long), list(map(str, long))):
        assert encode_users(ids, 3).n_users == 1
        assert encode_users(ids, 3, exact_ids=True).codes.tolist() == [0, 1, 0]
        assert bound_contributions(np.arange(3), None, ids, m=1, exact_ids=True)[0].tolist() == [0, 1]
        read = UserTable.read(np.zeros((3, 1)), groups=ids, m=2, exact_ids=True)
        assert read.users.tolist() == [0, 1, 0]
        for exact in (False, True):
            learner = WinsorizedMean(epsilon=1, delta=1e-3, max_norm=1, m=2, exact_ids=exact, enrolled=None)
            if exact:
                assert learner._read(np.zeros((3, 1)), None, ids)[0].n_users == 2
            else:
                with pytest.raises(ValueError, match="at least 2 users are needed"):
                    learner._read(np.zeros((3, 1)), None, ids)
    for ids in (pa.array(long), pl.Series(long), pa.array(list(map(str, long)))):
        assert encode_users(ids, 3).codes.tolist() == [0, 1, 0]
    for ids in (texts, pa.array(texts), pd.Series(texts)):
        assert encode_users(ids, 3).n_users == 1
        assert encode_users(ids, 3, written_ids=True).n_users == 3
        assert UserTable.read(np.zeros((3, 1)), groups=ids, m=2, written_ids=True).n_users == 3
        assert len(bound_contributions(np.arange(3), None, ids, m=1, written_ids=True)[0]) == 3
        assert (
            WinsorizedMean(epsilon=1, delta=1e-3, max_norm=1, m=2, written_ids=True)
            ._read(np.zeros((3, 1)), None, ids)[0]
            .n_users
            == 3
        )
    for bad in ("yes", 1, None):
        with pytest.raises(TypeError, match="written_ids must be a bool"):
            UserTable.read(np.zeros((3, 1)), groups=texts, m=2, written_ids=bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="exact_ids must be a bool"):
            bound_contributions(np.zeros((3, 1)), None, texts, m=2, exact_ids=bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="exact_ids must be a bool"):
            WinsorizedMean(epsilon=1, delta=1e-3, max_norm=1, m=2, exact_ids=bad).fit(np.eye(3), groups=texts)


def test_forms_of_tuples_are_told_apart() -> None:
    """Every two trees of three leaves or fewer, over leaves that could be taken for parts of others."""
    leaves: list[Any] = ["1:a", "1:s1:a", "1:t6:1:s1:a", 1, 11, "a", "aa"]
    trees: list[Any] = list(leaves)
    trees += list(itertools.product(trees[:7], repeat=2))
    trees += [((a, b), c) for a, b, c in itertools.product(trees[:4], repeat=3)]
    trees += [(a, (b, c)) for a, b, c in itertools.product(trees[:4], repeat=3)]
    assert len({id_bytes(tree) for tree in trees}) == len(set(trees)) == len(trees)


@pytest.mark.parametrize("missing", [None, NAN, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), "", b"", ()])
def test_a_missing_part_makes_an_id_none(missing: Any) -> None:
    """(1, nan) is equal to no other (1, nan), so that everybody without a second part would be a user of every row."""
    for user in (missing, (1, missing), (missing, 1), (1, ("a", missing))):
        with pytest.raises((ValueError, TypeError), match="a user id is "):
            canonical_id(user)
        assert encode_users([(1, 2), user], 2).codes.tolist() == [0]


def test_ids_of_two_columns_however_they_are_put_together() -> None:
    """As users make one id of two columns, where one has a missing value: those rows are left out each time."""
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
        users = encode_users(ids, 4)
        assert users.owned is not None
        assert (users.codes.tolist(), users.owned.tolist()) == ([0, 1], [True, False, False, True]), name
        assert encode_users(ids, 4, [("01", 1), (2, "4")]).codes.tolist() == [0, 1], name


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
        users = encode_users(ids, 3, [kind(9), 7])
        assert (users.codes.tolist(), users.n_users) == ([1, 0, 1], 2)
        assert encode_users(ids, 3).n_users == 2


def test_ids_may_be_in_columns_of_any_fixed_width() -> None:
    given = uuid.UUID(int=7)
    for ids, user in [
        (pl.Series([7, 2**100], dtype=pl.Int128), 7),
        (pa.array([given.bytes] * 2, type=pa.binary(16)), given.bytes),
        (pa.array([7, 8], type=pa.decimal128(38, 2)), Decimal("7.00")),
        (pd.Series(["2024-02-29T06:00", "2024-03-01"], dtype="datetime64[ns, Europe/Berlin]"), "2024-02-29T05:00Z"),
        (pa.array([0, 1], type=pa.timestamp("us")), datetime.datetime(1970, 1, 1)),
        (pd.Index([7, 9]), 7),
        (pd.date_range("1970-01-01", periods=2), datetime.datetime(1970, 1, 1)),
    ]:
        assert encode_users(ids, 2).n_users == len(set(ids.tolist() if isinstance(ids, pd.Index) else ids))
        assert id_bytes(user) in read_ids(ids, 2)[1]


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
    pool = [9, 4, "b", "a", (2, "x"), (2, "w"), b"z", uuid.UUID(int=2**100), datetime.date(2020, 1, 1)]
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
