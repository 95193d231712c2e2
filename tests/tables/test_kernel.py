"""The compiled sums over users of a table, against their definition in ``support.table_reference``."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import table_reference as reference
from support.table_reference import Column, Row, Value
from userdp._core import TableIndex, TableSums
from userdp.exceptions import BudgetError

PRF_KEY = bytes(range(32))
LOW, HIGH = -(2**63), 2**63 - 1
SKIPPED = 2**32 - 1
LEAST_MEMORY = 2**16
COLUMNS: list[Column] = [
    ("users",),
    ("rows", 2),
    ("sum", 0, -5, 9, 2),
    ("mean", 0, 8, 4),
    ("weighted", 0, 8, 3, 4),
    ("weight", 1000),
    ("sum", 1, LOW, HIGH, 0),
    ("sum", 1, LOW, LOW + 7, LOW),
    ("mean", 1, HIGH, 2**62),
    ("weighted", 1, 2**40, 2**20, 2**39),
    ("rows", HIGH),
    ("sum", 0, 2, 9, 2, 1),
    ("mean", 0, 8, 4, 1),
    ("weighted", 0, 8, 3, 4, 1),
    ("mean", 1, 8, 4, 0),
]


def codes(index: TableIndex, values: Sequence[Value]) -> Any:
    """Codes of values in their order, some of them integers and some texts."""
    found = np.zeros(len(values), np.uint32)
    for place, value in enumerate(values):
        found[place : place + 1] = (
            index.texts([value]) if isinstance(value, bytes) else index.integers(np.array([value], np.int64))
        )
    return found


def key_order(index: TableIndex, keys: Sequence[Value], skipped: Sequence[Value] = ()) -> Any:
    """The rank of every code in the canonical order of the values."""
    distinct = sorted(set(keys), key=reference.canonical)
    order = np.zeros(len(distinct), np.uint32)
    order[codes(index, distinct)] = np.arange(len(distinct))
    order[codes(index, [value for value in skipped if value in set(keys)])] = SKIPPED
    return order


def batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


class Table:
    """Rows in the compiled core, with the values of the codes."""

    def __init__(self, rows: Sequence[Row], n_values: int, size: int = 10**9, **options: Any) -> None:
        self.users, self.keys = TableIndex(), TableIndex()
        self.sums = TableSums(n_values, **options)
        self.values: dict[int, Value] = {}
        self.listed = [row[1] for row in rows]
        for batch in batches(rows, size):
            users = codes(self.users, [row[0] for row in batch])
            keys = codes(self.keys, [row[1] for row in batch])
            self.values |= {int(code): row[1] for code, row in zip(keys, batch, strict=True)}
            columns = [np.array([row[2][j] for row in batch], np.int64) for j in range(n_values)]
            self.sums.add(users, keys, columns)

    def bounded(
        self,
        columns: Sequence[Column],
        max_keys: int | None,
        rule: str,
        skipped: Sequence[Value] = (),
        equal_digests: bool = False,
        prf_key: bytes = PRF_KEY,
    ) -> list[tuple[Value, list[int]]]:
        digests = self.keys.digests(prf_key)
        keys, sums = self.sums.bounded(
            users=self.users,
            key_order=key_order(self.keys, self.listed, skipped),
            max_keys=max_keys,
            rule=rule,
            columns=columns,
            key_digests=np.zeros_like(digests) if equal_digests else digests,
            prf_key=prf_key,
        )
        return [(self.values[int(key)], [int(column[place]) for column in sums]) for place, key in enumerate(keys)]


def random_rows(seed: int, rows: int, users: int, keys: int) -> list[Row]:
    """Users and keys of both kinds, some of them frequent; small values and any integers of 64 bits."""
    draw = random.Random(seed)

    def value(most: int) -> Value:
        number = min(draw.randrange(most), draw.randrange(most))
        return number - 3 if number % 3 else str(number).encode()

    extremes = [LOW, HIGH, LOW + 1, HIGH - 1, 0, 1, -1]
    return [
        (
            value(users),
            value(keys),
            (
                draw.randrange(9),
                draw.choice(extremes) if draw.random() < 0.3 else draw.getrandbits(64) - 2**63,
            ),
        )
        for _ in range(rows)
    ]


def test_the_reference_has_the_published_hashes() -> None:
    key = bytes(range(16))
    assert reference.siphash(key, bytes(range(15)), 64) == [0xA129CA6149BE45E5]
    empty = b"".join(word.to_bytes(8, "little") for word in reference.siphash(key, b"", 128))
    assert empty.hex() == "a3817f04ba25a8e66df67214c7550293"
    one = b"".join(word.to_bytes(8, "little") for word in reference.siphash(key, b"\0", 128))
    assert one.hex() == "da87c1d86b99af44347659119b22fc45"


VALUES: list[Value] = [
    *(7, b"7", b"", 0, b"\0", b"\0\0", b"a\0", b"a", LOW, HIGH, -1, b"\xff" * 8, (7).to_bytes(8, "little")),
    *(b"x" * length for length in (7, 8, 15, 16, 1000)),
]


def test_codes_are_of_whole_values_by_arrival() -> None:
    index = TableIndex()
    assert len(index) == 0
    assert index.digests(PRF_KEY).shape == (0, 2)
    assert codes(index, [*VALUES, *reversed(VALUES)]).tolist() == [
        *range(len(VALUES)),
        *reversed(range(len(VALUES))),
    ]
    assert len(index) == len(VALUES)
    assert index.integers(np.array([], np.int64)).tolist() == index.texts([]).tolist() == []


def test_many_values_in_one_call() -> None:
    numbers = np.random.default_rng(1).integers(-3000, 3000, 50_000) * 2**48
    first: dict[int, int] = {}
    expected = [first.setdefault(number, len(first)) for number in numbers.tolist()]
    index = TableIndex()
    assert index.integers(numbers).tolist() == expected
    texts = [b"%d" % number for number in numbers]
    ends = np.cumsum([0, *map(len, texts)])
    packed = np.frombuffer(b"".join(texts), np.uint8)
    more = [len(first) + code for code in expected]
    assert index.packed_texts(packed, ends).tolist() == more
    assert index.texts(texts).tolist() == more
    assert index.packed_texts(packed, ends[5:9]).tolist() == more[5:8]
    assert len(index) == 2 * len(first)


@pytest.mark.parametrize("offsets", [[-1, 2], [0, 4], [2, 1], [2**62, 2**63 - 1]])
def test_packed_texts_must_be_inside(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        TableIndex().packed_texts(np.zeros(3, np.uint8), np.array(offsets, np.int64))


def test_digests_are_of_values() -> None:
    for values in (VALUES, VALUES[::-1]):
        index = TableIndex()
        codes(index, values)
        found = [b"".join(int(word).to_bytes(8, "little") for word in row) for row in index.digests(PRF_KEY)]
        assert found == [reference.digest(PRF_KEY, value) for value in values]


@pytest.mark.parametrize("rule", ["random", "first"])
@pytest.mark.parametrize("max_keys", [None, 0, 1, 3, 100])
def test_sums_are_those_of_the_definition(rule: str, max_keys: int | None) -> None:
    for seed, (rows, users, keys) in enumerate([(40, 3, 9), (400, 30, 20), (400, 300, 5), (300, 1, 60)]):
        table = random_rows(seed, rows, users, keys)
        expected = reference.bounded(table, max_keys=max_keys, rule=rule, prf_key=PRF_KEY, columns=COLUMNS)
        assert Table(table, 2).bounded(COLUMNS, max_keys, rule) == expected


@pytest.mark.parametrize("rule", ["random", "first"])
def test_order_batches_and_disk_do_not_enter(rule: str, tmp_path: Path) -> None:
    # More rows than the memory holds, and more of the first users than are sorted at a time.
    table = random_rows(7, 12_000, 90, 40) + [(b"heavy", key % 400, (3, HIGH)) for key in range(6000)]
    expected = reference.bounded(table, max_keys=5, rule=rule, prf_key=PRF_KEY, columns=COLUMNS)
    for seed, (size, memory) in enumerate([(10**9, 2**30), (10**9, LEAST_MEMORY), (300, LEAST_MEMORY), (1, 2**17)]):
        random.Random(seed).shuffle(table)
        kernel = Table(table, 2, size, memory=memory, directory=str(tmp_path))
        assert not list(tmp_path.iterdir()), "the temporary file has a name"
        assert kernel.bounded(COLUMNS, 5, rule) == expected
        assert kernel.bounded(COLUMNS, 5, rule) == expected, "the second time"


def test_rows_can_be_added_after_an_answer() -> None:
    table = random_rows(3, 300, 20, 10)
    kernel = Table(table, 2, memory=LEAST_MEMORY)
    half = Table(table, 2)
    for part in (table, table):
        half.sums.add(
            codes(half.users, [row[0] for row in part]),
            codes(half.keys, [row[1] for row in part]),
            [np.array([row[2][j] for row in part], np.int64) for j in range(2)],
        )
        kernel.bounded(COLUMNS, 2, "first")
        kernel.sums.add(
            codes(kernel.users, [row[0] for row in part]),
            codes(kernel.keys, [row[1] for row in part]),
            [np.array([row[2][j] for row in part], np.int64) for j in range(2)],
        )
    expected = reference.bounded(table * 3, max_keys=2, rule="random", prf_key=PRF_KEY, columns=COLUMNS)
    assert kernel.bounded(COLUMNS, 2, "random") == half.bounded(COLUMNS, 2, "random") == expected


@pytest.mark.parametrize("rule", ["random", "first"])
def test_a_user_adds_the_same_among_other_users(rule: str) -> None:
    # Where sums over users are not clamped.
    columns = [column for column in COLUMNS if column[:2] not in [("sum", 1), ("mean", 1)]] + [COLUMNS[7]]
    keys = [5, b"5", 5, -1, b"", 12, b"\0", 12, 12]
    user: list[Row] = [(b"u", key, (place, LOW + place)) for place, key in enumerate(keys)]

    def added(others: Sequence[Row], first: bool) -> dict[Value, list[int]]:
        both = [*user, *others] if first else [*others, *user]
        with_user = dict(Table(both, 2).bounded(columns, 3, rule))
        without = dict(Table(others, 2).bounded(columns, 3, rule))
        difference = {
            key: [a - b for a, b in zip(sums, without.get(key, [0] * len(columns)), strict=True)]
            for key, sums in with_user.items()
        }
        return {key: sums for key, sums in difference.items() if any(sums)}

    alone = dict(Table(user, 2).bounded(columns, 3, rule))
    assert len(alone) == 3
    for seed in range(6):
        others = [row for row in random_rows(seed, 50 * seed, 10, 15) if row[0] != b"u"]
        assert added(others, first=True) == added(others, first=False) == alone


def test_the_coins_are_of_values_and_of_the_key() -> None:
    rows: list[Row] = [(user, key, ()) for user in range(40) for key in range(20)]
    kept = [Table(rows, 0).bounded([("users",)], 2, "random", prf_key=bytes([byte]) * 32) for byte in (1, 2)]
    assert kept[0] != kept[1]
    for found, byte in zip(kept, (1, 2), strict=True):
        key = bytes([byte]) * 32
        assert found == reference.bounded(rows, max_keys=2, rule="random", prf_key=key, columns=[("users",)])
        assert sum(sums[0] for _, sums in found) == 80


def test_equal_hashes_go_by_the_canonical_order() -> None:
    table = random_rows(11, 400, 15, 30)
    kernel = Table(table, 2)
    found = kernel.bounded(COLUMNS, 3, "random", equal_digests=True)
    assert found == kernel.bounded(COLUMNS, 3, "first")
    assert found == reference.bounded(
        table, max_keys=3, rule="random", prf_key=PRF_KEY, columns=COLUMNS, equal_digests=True
    )


@pytest.mark.parametrize("rule", ["random", "first"])
def test_keys_that_are_left_out_do_not_count(rule: str) -> None:
    table = random_rows(5, 500, 30, 12)
    skipped = [row[1] for row in table[:3]]
    expected = reference.bounded(table, max_keys=2, rule=rule, prf_key=PRF_KEY, columns=COLUMNS, skipped=skipped)
    assert Table(table, 2).bounded(COLUMNS, 2, rule, skipped) == expected
    assert Table(table, 2).bounded(COLUMNS, 2, rule, [row[1] for row in table]) == []


def test_values_never_raise_and_sums_are_clamped_once() -> None:
    columns: list[Column] = [("sum", 0, LOW, HIGH, 0), ("sum", 0, -1, 1, 0), ("mean", 0, 2**63, 1), ("mean", 0, 1, 0)]
    # What saturated on the way would not come back to the middle.
    rows: list[Row] = [(user, 0, (HIGH if user < 4 else LOW,)) for user in range(8) for _ in range(5)]
    found = Table(rows, 1).bounded(columns, None, "first")
    assert found == [(0, [4 * HIGH + 4 * LOW, 0, HIGH, 4])]
    assert found == reference.bounded(rows, max_keys=None, rule="first", prf_key=PRF_KEY, columns=columns)
    high = Table(rows[:20], 1).bounded(columns, None, "first")
    low = Table(rows[20:], 1).bounded(columns, None, "first")
    assert [sums[0][1][:2] for sums in (high, low)] == [[HIGH, 4], [LOW, -4]]


def test_tables_of_nobody_and_of_one() -> None:
    assert Table([], 2).bounded(COLUMNS, 3, "random") == []
    assert Table([(1, 1, ())], 0).bounded([("users",), ("rows", 9)], 3, "random") == [(1, [1, 1])]
    assert Table([(1, 1, ())], 0).bounded([], 3, "random") == [(1, [])]
    # A kept key whose integers are all 0 is there.
    assert Table([(1, 1, (0,))], 1).bounded([("sum", 0, -3, 3, 0)], 3, "first") == [(1, [0])]
    nobody = TableSums(0).split(3, 5)
    assert (nobody[0].tolist(), nobody[1]) == ([0, 0, 0], 0)


@pytest.mark.parametrize("weight", [0, 1, 6, 2**20, 2**31 - 1])
def test_weights_are_split_over_bins(weight: int) -> None:
    draw = random.Random(weight)
    for count, users, bins in [(1, 1, 1), (200, 9, 7), (6000, 40, 300)]:
        rows = [(draw.randrange(users), draw.randrange(bins)) for _ in range(count)]
        kernel = TableSums(0, memory=LEAST_MEMORY)
        kernel.add(*(np.array(column, np.uint32) for column in zip(*rows, strict=True)), values=[])
        sums, found = kernel.split(bins, weight)
        assert (sums.tolist(), found) == reference.split(rows, bins, weight)
        assert sums.sum() == weight * found


def split_by_key(
    rows: Sequence[tuple[Value, Value, int]], bins: int, weight: int, size: int = 10**9, **options: Any
) -> dict[tuple[Value, int], int]:
    """The same by the core, from cells of a key and a bin."""
    users, keys, cells = TableIndex(), TableIndex(), TableIndex()
    skipped = options.pop("skipped", ())
    kernel = TableSums(0, memory=LEAST_MEMORY)
    listed: dict[int, tuple[Value, int]] = {}
    of_cell: dict[int, tuple[int, int]] = {}
    for batch in batches(rows, size):  # type: ignore[arg-type]
        owners, of_keys = codes(users, [row[0] for row in batch]), codes(keys, [row[1] for row in batch])
        pairs = [(key << 32) | row[2] for key, row in zip(of_keys.tolist(), batch, strict=True)]  # type: ignore[operator]
        found = cells.integers(np.array(pairs, np.int64))
        for cell, key, row in zip(found.tolist(), of_keys.tolist(), batch, strict=True):
            listed[cell], of_cell[cell] = (row[1], row[2]), (key, row[2])  # type: ignore[assignment]
        kernel.add(owners, found, [])
    order = key_order(keys, [row[1] for row in rows], skipped)
    ranked = sorted(
        (cell for cell, (key, _) in of_cell.items() if order[key] != SKIPPED),
        key=lambda cell: (order[of_cell[cell][0]], of_cell[cell][1]),
    )
    cell_order = np.full(len(cells), SKIPPED, np.uint32)
    cell_order[ranked] = np.arange(len(ranked))
    sums = kernel.split_by_key(
        users=users,
        key_order=order,
        cell_order=cell_order,
        keys=np.array([order[of_cell[cell][0]] for cell in ranked], np.uint32),
        inside=np.array([of_cell[cell][1] < bins for cell in ranked], np.bool_),
        weight=weight,
        key_digests=keys.digests(options["prf_key"]),
        **options,
    )
    return {listed[cell]: int(total) for cell, total in zip(ranked, sums, strict=False) if total}


@pytest.mark.parametrize("rule", ["first", "random"])
@pytest.mark.parametrize("most", [None, 0, 1, 3])
def test_weights_are_split_by_key(rule: str, most: int | None) -> None:
    """Bins of which the last two have no weight, keys that are left out, small batches and parts on disk."""
    draw = random.Random(most)
    for count, users, bins, size in [(1, 1, 1, 9), (300, 7, 5, 40), (5000, 60, 30, 700)]:
        rows = [(row[0], row[1], draw.randrange(bins + 2)) for row in random_rows(count, count, users, 12)]
        skipped = [rows[0][1]] if count == 5000 else []
        for weight in (1, 2**20):
            given: dict[str, Any] = {"max_keys": most, "rule": rule, "prf_key": PRF_KEY, "skipped": skipped}
            expected = reference.split_by_key(rows, bins=bins, weight=weight, **given)
            assert split_by_key(rows, bins, weight, size, **given) == expected


def test_orders_of_cells_are_checked() -> None:
    users, keys = TableIndex(), TableIndex()
    codes(users, [1])
    codes(keys, [1, 2])
    kernel = TableSums(0)
    zero, order = np.zeros(1, np.uint32), np.arange(2, dtype=np.uint32)
    kernel.add(zero, np.array([1], np.uint32), [])
    valid: dict[str, Any] = {
        "users": users,
        "key_order": order,
        "max_keys": 1,
        "rule": "first",
        "cell_order": order,
        "keys": order,
        "inside": np.ones(2, np.bool_),
        "weight": 5,
    }
    assert kernel.split_by_key(**valid).tolist() == [0, 5]
    wrong: list[tuple[str, Any, str]] = [
        ("users", TableIndex(), "users"),
        ("key_order", np.zeros(2, np.uint32), "key_order"),
        ("cell_order", np.zeros(2, np.uint32), "cell_order"),
        ("cell_order", order[:1], "cell_order"),
        ("keys", order[::-1].copy(), "keys"),
        ("keys", order + np.uint32(1), "keys"),
        ("keys", order[:1], "keys"),
        ("inside", np.ones(1, np.bool_), "keys"),
        ("weight", 2**31, "weight"),
        ("rule", "random", "rule"),
    ]
    for name, value, match in wrong:
        with pytest.raises(ValueError, match=match):
            kernel.split_by_key(**{**valid, name: value})


def test_a_public_list_of_bins_is_checked() -> None:
    kernel = TableSums(0)
    kernel.add(np.array([0], np.uint32), np.array([3], np.uint32), [])
    with pytest.raises(ValueError, match="bins: must be above all keys"):
        kernel.split(3, 1)
    with pytest.raises(ValueError, match="weight"):
        kernel.split(4, 2**31)
    with pytest.raises(BudgetError, match="bins"):
        kernel.split(2**40, 1)


COLUMNS_REFUSED: list[tuple[Any, str]] = [
    (("sum", 2, 0, 1, 0), "n_values"),
    (("mean", 2, 1, 0), "n_values"),
    (("sum", 0, 1, 0, 0), "low = 1 must not be above high = 0"),
    (("sum", 0, LOW, HIGH, 1), "64 bits"),
    (("sum", 0, LOW, HIGH, -1), "64 bits"),
    (("mean", 0, 2**63, 0), "64 bits"),
    (("rows", 2**63), "64 bits"),
    (("weighted", 0, 2**32, 2**31, 0), "64 bits"),
    (("weighted", 0, 0, 2**64 - 1, HIGH), "64 bits"),
    (("weight", 2**63), "64 bits"),
    (("mean", 0, 8, 4, 2), "n_values"),
    (("sum", 0, 0, 1, 0, 0, 0), "no such kind"),
    (("users", 1), "no such kind"),
    (("median", 1), "no such kind"),
]


@pytest.mark.parametrize(("column", "match"), COLUMNS_REFUSED)
def test_columns_that_are_refused(column: Any, match: str) -> None:
    for rows in ([], [(1, 1, (0, 0))]):
        with pytest.raises(ValueError, match=match):
            Table(rows, 2).bounded([column], None, "first")


def test_arguments_that_do_not_fit_the_rows() -> None:
    kernel = Table(random_rows(1, 20, 5, 5), 2)
    order = key_order(kernel.keys, kernel.listed)
    valid = {
        "users": kernel.users,
        "key_order": order,
        "max_keys": 2,
        "rule": "random",
        "columns": COLUMNS,
        "key_digests": kernel.keys.digests(PRF_KEY),
        "prf_key": PRF_KEY,
    }
    kernel.sums.bounded(**valid)
    wrong: list[tuple[str, Any, str]] = [
        ("users", TableIndex(), "users"),
        ("key_order", order[:-1], "key_order|key_digests"),
        ("key_order", np.zeros_like(order), "key_order"),
        ("key_order", order + np.uint32(1), "key_order"),
        ("rule", "popular", "rule"),
        ("key_digests", None, "key_digests"),
        ("key_digests", np.zeros((1, 2), np.uint64), "key_digests"),
        ("prf_key", None, "prf_key"),
    ]
    for name, value, match in wrong:
        with pytest.raises(ValueError, match=match):
            kernel.sums.bounded(**{**valid, name: value})
    with pytest.raises(ValueError, match="key_order"):
        kernel.sums.bounded(**{**valid, "rule": "first", "key_order": order[:-1]})


def test_batches_that_do_not_fit_are_left_out_whole() -> None:
    kernel = TableSums(1)
    two, three = np.zeros(2, np.uint32), np.zeros(3, np.uint32)
    for users, keys, values in [
        (two, three, [np.zeros(2, np.int64)]),
        (two, two, []),
        (two, two, [np.zeros(3, np.int64)]),
        (two, two, [np.zeros(2, np.int64)] * 2),
    ]:
        with pytest.raises(ValueError, match=r"keys|values"):
            kernel.add(users, keys, values)
    assert kernel.split(1, 7)[1] == 0


@pytest.mark.parametrize(("n_values", "memory"), [(1025, 2**30), (1, LEAST_MEMORY - 1)])
def test_sizes_that_are_refused(n_values: int, memory: int) -> None:
    with pytest.raises(ValueError, match=r"n_values|memory"):
        TableSums(n_values, memory=memory)


def test_a_disk_that_fails_ends_the_table_without_data(tmp_path: Path) -> None:
    kernel = TableSums(1, memory=LEAST_MEMORY, directory=str(tmp_path / "missing"))
    rows = np.full(20_000, 12345, np.uint32)
    with pytest.raises(OSError, match="temporary file could not be made") as caught:
        kernel.add(rows, rows, [rows.astype(np.int64)])
    assert "12345" not in str(caught.value)
    # Some of the rows may be there: no answer is given any more.
    for call in (lambda: kernel.add(rows, rows, [rows.astype(np.int64)]), lambda: kernel.split(20_000, 1)):
        with pytest.raises(ValueError, match="start anew"):
            call()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files of Linux")
def test_the_temporary_file_is_ours_alone(tmp_path: Path) -> None:
    kernel = TableSums(0, memory=LEAST_MEMORY, directory=str(tmp_path))
    rows = np.arange(20_000, dtype=np.uint32)
    kernel.add(rows, rows, [])
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name, status = os.readlink(descriptor), os.stat(descriptor)
        except OSError:  # the descriptor of this listing itself
            continue
        if name.startswith(str(tmp_path)):
            found.append((name.endswith("(deleted)"), status.st_mode & 0o777, status.st_nlink, status.st_size > 0))
    assert found == [(True, 0o600, 0, True)]


def test_nothing_of_the_data_is_shown() -> None:
    kernel = Table([(b"secret", 123456, (1,))], 1)
    for shown in (repr(kernel.users), repr(kernel.sums), str(vars(type(kernel.sums)).keys())):
        assert "secret" not in shown
        assert "123456" not in shown
