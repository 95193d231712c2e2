"""Bounded sums of a table by their definition: values and not codes, dictionaries and not parts, Python's integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isqrt

Value = int | bytes
Row = tuple[Value, Value, tuple[int, ...]]
Column = tuple[str | int, ...]
Cell = tuple[int, list[int]]

MASK = 2**64 - 1


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & MASK


def siphash(key: bytes, message: bytes, bits: int) -> list[int]:
    """SipHash-2-4 of 64 or 128 bits, as words of 64 bits."""
    keys = [int.from_bytes(key[at : at + 8], "little") for at in (0, 8)]
    state = [
        word ^ keys[place % 2]
        for place, word in enumerate([0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573])
    ]
    long = bits == 128
    if long:
        state[1] ^= 0xEE

    def rounds(count: int) -> None:
        a, b, c, d = state
        for _ in range(count):
            a = (a + b) & MASK
            b = _rotated(b, 13) ^ a
            a = _rotated(a, 32)
            c = (c + d) & MASK
            d = _rotated(d, 16) ^ c
            a = (a + d) & MASK
            d = _rotated(d, 21) ^ a
            c = (c + b) & MASK
            b = _rotated(b, 17) ^ c
            c = _rotated(c, 32)
        state[:] = [a, b, c, d]

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        state[3] ^= word
        rounds(2)
        state[0] ^= word
    state[2] ^= 0xEE if long else 0xFF
    rounds(4)
    words = [state[0] ^ state[1] ^ state[2] ^ state[3]]
    if long:
        state[1] ^= 0xDD
        rounds(4)
        words.append(state[0] ^ state[1] ^ state[2] ^ state[3])
    return words


def digest(key: bytes, value: Value) -> bytes:
    """16 bytes of a value: a byte for the kind, and the value."""
    message = b"\1" + value if isinstance(value, bytes) else b"\0" + value.to_bytes(8, "little", signed=True)
    return b"".join(word.to_bytes(8, "little") for word in siphash(key[:16], message, 128))


def canonical(value: Value) -> tuple[bool, int, bytes]:
    """Integers by size before texts by their bytes."""
    return (True, 0, value) if isinstance(value, bytes) else (False, value, b"")


def cells_of_users(rows: Iterable[Row]) -> dict[Value, dict[Value, Cell]]:
    """For every user and key the number of rows and the sums of values."""
    users: dict[Value, dict[Value, Cell]] = defaultdict(dict)
    for user, key, values in rows:
        count, sums = users[user].get(key, (0, [0] * len(values)))
        users[user][key] = (count + 1, [a + b for a, b in zip(sums, values, strict=True)])
    return users


def integer(column: Column, cell: Cell, kept: int) -> int:
    """What a user adds to a key."""
    count, sums = cell
    kind, *numbers = column
    if len(numbers) > {"sum": 4, "mean": 3, "weighted": 4}.get(str(kind), 2):
        # The last one says how many of the rows count.
        count = max(0, min(count, sums[int(numbers.pop())]))
        if not count:
            return 0
    match kind, [int(number) for number in numbers]:
        case "users", []:
            return 1
        case "rows", [most]:
            return min(count, most)
        case "sum", [j, low, high, shift]:
            return max(low, min(high, sums[j])) - shift
        case "mean", [j, steps, shift]:
            return max(0, min(steps, (2 * sums[j] + count) // (2 * count))) - shift
        case "weighted", [j, steps, most, shift]:
            part = min(count, most)
            return max(0, min(part * steps, (2 * sums[j] * part + count) // (2 * count))) - part * shift
        case "weight", [weight]:
            return isqrt(weight**2 // kept)
    raise AssertionError(column)


def kept_keys(
    user: Value, keys: Iterable[Value], most: int | None, rule: str, prf_key: bytes, equal_digests: bool = False
) -> list[Value]:
    """The keys that a user keeps."""
    order = sorted(keys, key=canonical)
    if most is None or len(order) <= most:
        return order
    if rule == "random":
        of_user = digest(prf_key, user)
        of_keys = {key: bytes(16) if equal_digests else digest(prf_key, key) for key in order}
        order.sort(key=lambda key: siphash(prf_key[16:], of_user + of_keys[key], 64))
    return order[:most]


def bounded(
    rows: Iterable[Row],
    *,
    max_keys: int | None,
    rule: str,
    prf_key: bytes,
    columns: Sequence[Column],
    skipped: Iterable[Value] = (),
    equal_digests: bool = False,
) -> list[tuple[Value, list[int]]]:
    """The sums over users for every kept key, in the canonical order of keys."""
    left_out = set(skipped)
    totals: dict[Value, list[int]] = {}
    for user, cells in cells_of_users(row for row in rows if row[1] not in left_out).items():
        kept = kept_keys(user, cells, max_keys, rule, prf_key, equal_digests)
        for key in kept:
            total = totals.setdefault(key, [0] * len(columns))
            for place, column in enumerate(columns):
                total[place] += integer(column, cells[key], len(kept))
    clamped = {key: [max(-(2**63), min(2**63 - 1, x)) for x in total] for key, total in totals.items()}
    return sorted(clamped.items(), key=lambda item: canonical(item[0]))


def split(rows: Iterable[tuple[Value, int]], bins: int, weight: int) -> tuple[list[int], int]:
    """Every user's weight over the bins of the user's rows, and the number of users."""
    users: dict[Value, list[int]] = defaultdict(list)
    for user, place in rows:
        users[user].append(place)
    sums = [0] * bins
    for places in users.values():
        count = len(places)
        for row, place in enumerate(sorted(places)):
            sums[place] += weight * (row + 1) // count - weight * row // count
    return sums, len(users)


def split_by_key(
    rows: Iterable[tuple[Value, Value, int]],
    *,
    bins: int,
    weight: int,
    max_keys: int | None,
    rule: str,
    prf_key: bytes,
    skipped: Iterable[Value] = (),
) -> dict[tuple[Value, int], int]:
    """The weight that users have in each kept key, over the bins of the rows there; bins beyond have none."""
    left_out = set(skipped)
    users: dict[Value, dict[Value, list[int]]] = defaultdict(lambda: defaultdict(list))
    for user, key, place in rows:
        if key not in left_out:
            users[user][key].append(place)
    sums: dict[tuple[Value, int], int] = defaultdict(int)
    for user, keys in users.items():
        for key in kept_keys(user, keys, max_keys, rule, prf_key):
            places = sorted(place for place in keys[key] if place < bins)
            for row, place in enumerate(places):
                sums[key, place] += weight * (row + 1) // len(places) - weight * row // len(places)
    return {cell: total for cell, total in sums.items() if total}
