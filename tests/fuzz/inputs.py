"""What devices, files and people send: messages and descriptions of protocols, ledgers, schemas and questions."""

from __future__ import annotations

import datetime
import hashlib
import json
import random
import re
import sqlite3
import tempfile
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any
from zlib import crc32

import numpy as np

from fuzz.mutations import altered, as_bytes, as_text, refused
from fuzz.reports import around
from userdp import durable_log
from userdp.accounting import PrivacyLedger, PrivacyLossDistribution
from userdp.cli.arguments import UsageError
from userdp.cli.table import aggregate, condition, read_schema
from userdp.durable_log import DurableLog
from userdp.protocols import local, shuffle

F = Fraction
ROUND: dict[str, Any] = {"epsilon": "1/2", "n_users": 6, "round_id": "a"}
DESCRIBED = (local.LocalProtocol, shuffle.NegativeBinomialSum, shuffle.Histogram, shuffle.Mode)


# --- messages


@cache
def protocols() -> list[Any]:
    return [
        local.KRandomizedResponse(n_items=4, **ROUND),
        local.SubsetSelection(n_items=11, subset_size=3, **ROUND),
        local.HadamardResponse(n_items=5, **ROUND),
        local.BitwiseMajority(n_bits=3, **ROUND),
        shuffle.NegativeBinomialSum(delta="1/100", **ROUND),
        shuffle.Histogram(n_items=3, delta="1/100", default=0, **ROUND),
    ]


def expected(place: int, protocol: Any, messages: list[bytes]) -> tuple[list[bool], list[int], dict[str, int]]:
    """Which messages count, what they add up to, and why the others do not: byte by byte."""
    of_round = b"udp1" + (protocol.format if place < 4 else protocol._format).fingerprint
    width = (28, 26, 28, 28, 21, 24)[place]
    counts, taken, kept, rejected = [0] * (4, 11, 8, 6, 1, 3)[place], set[int](), list[bool](), dict[str, int]()
    for message in messages:
        slot = int.from_bytes(message[20:24], "little")
        symbol = int.from_bytes(message[24:] if place < 4 else message[20:], "little")
        items = [symbol]
        if place == 1:
            items = [item for item in range(16) if symbol >> item & 1]
            possible = len(items) == 3 and max(items) < 11
        elif place == 3:
            items, possible = [slot % 3 * 2 + symbol], symbol < 2
        elif place == 4:
            items, possible = [0], symbol == 1
        else:
            possible = symbol < len(counts)
        reason = None
        if len(message) != width:
            reason = "wrong length"
        elif message[:20] != of_round:
            reason = "another round" if message[:4] == b"udp1" else "not a message"
        elif not possible or (place < 4 and slot >= 6):
            reason = "out of range"
        elif place < 4 and slot in taken:
            reason = "slot taken"
        kept.append(reason is None)
        if reason is None:
            taken.add(slot)
            for item in items:
                counts[item] += 1
        else:
            rejected[reason] = rejected.get(reason, 0) + 1
    return kept, counts, rejected


def run_messages(data: bytes) -> bool:
    """A round of messages, one by one and in a table; or, as JSON, the description of a protocol."""
    if data[:1] == b"{":
        return run_description(data)
    place, messages, at = (data[0] if data else 0) % 6, list[bytes](), 1
    while at < len(data):
        messages.append(data[at + 1 : at + 1 + data[at]])
        at += 1 + data[at]
    protocol = protocols()[place]
    server, many = protocol.server(), protocol.server()
    kept, counts, rejected = expected(place, protocol, messages)
    assert [server.receive(message) for message in messages] == kept
    assert server.counts.ravel().tolist() == counts
    assert server.rejected == rejected
    assert server.accepted == sum(kept)
    if crc32(data) % 4:
        return any(kept)
    width = server._format.width
    whole = [message for message in messages if len(message) == width]
    assert many.receive_many(np.frombuffer(b"".join(whole), dtype=np.uint8).reshape(-1, width)) == sum(kept)
    assert many.counts.tolist() == server.counts.tolist()
    assert many.rejected == {reason: n for reason, n in rejected.items() if reason != "wrong length"}
    for message in [message for message, good in zip(messages, kept, strict=True) if good and place < 4]:
        symbol = np.frombuffer(message[24:], dtype=np.uint8).reshape(1, -1)
        assert protocol._encoded(protocol._symbol(symbol)).tobytes() == message[24:]
    return any(kept)


def _loud(text: str) -> bool:
    """Whether there would be much noise: up to 2^20 values of it are computed by design, which takes seconds."""
    with suppress(ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        r, p = (F(json.loads(text)[name]) for name in "rp")
        return not 0 <= r * p / (1 - p) < 3000
    return False


def run_description(data: bytes) -> bool:
    """A description that is read is written so again, and its guarantee is true."""
    text = as_text(data)
    if _loud(text):
        return False
    for kind in DESCRIBED:
        try:
            protocol = kind.from_json(text)
        except ValueError as error:
            refused(error)
            continue
        assert type(protocol).from_json(protocol.to_json()) == protocol
        said, given = json.loads(protocol.to_json()), json.loads(text)
        for name in given:
            wanted = given[name]
            if name in ("delta", "r", "p", "dropout", "ratio", "exponent") and wanted is not None:
                assert F(said[name]) == F(wanted), name
            elif name not in ("epsilon", "beta", "neighbors", "max_messages") and wanted is not None:
                assert said[name] == wanted, name
        if kind is local.LocalProtocol:
            level = said["epsilon"]
            ratio, exponent = F(level["ratio"]), F(level["exponent"])
            assert exponent > 10**4 or protocol.certified_ratio <= around(ratio, exponent)[1]
        else:
            assert protocol.certified_delta <= protocol.delta
        return True
    return False


def alter_messages(data: bytes, source: random.Random) -> bytes:
    """Other messages of a round, most of which are some; seldom a description, which takes longer to read."""
    if data[:1] == b"{" and source.random() < 0.1:
        return altered(data, source, lambda document, _: document)
    place = source.randrange(6)
    protocol, found = protocols()[place], bytes([place])
    width = protocol.server()._format.width
    for _ in range(source.randrange(1, 5)):
        slot, n_users = source.choice((0, 1, 2, 3, 5, 6, 2**32 - 1)), min(6, source.randrange(1, 9))
        symbol = source.choice((0, 1, 2, 3, 4, 7, 8, n_users, 2**32 - 1, 0b10101, 0b111, 1 << 10 | 3, 1 << 12 | 3, 255))
        payload = slot.to_bytes(4, "little") if place < 4 else b""
        rest = width - 20 - len(payload)
        server = protocol.server()
        message = bytearray(server._format._header + payload + (symbol % 256**rest).to_bytes(rest, "little"))
        if source.random() < 0.2:
            message[source.randrange(len(message))] ^= 1 << source.randrange(8)
        if source.random() < 0.1:
            message = message[: source.randrange(len(message) + 1)] + b"\0" * source.randrange(3)
        found += bytes([len(message)]) + message
    return found


# --- ledgers


def _real(amount: Any) -> float:
    """An amount as a float; what is none, or beyond all floats, is infinite."""
    with suppress(OverflowError):
        return float("inf") if amount is None else float(amount)
    return float("inf")


def run_ledgers(data: bytes) -> bool:
    """A ledger or its file: what is read was spent, within limits that keep the promise."""
    text = as_text(data)
    if text.startswith('{"rows"'):
        return run_log(json.loads(text))
    try:
        ledger = PrivacyLedger.from_json(text)
    except ValueError as error:
        refused(error)
        try:
            losses = PrivacyLossDistribution.from_json(text)
        except ValueError as second:
            return refused(second)
        assert PrivacyLossDistribution.from_json(losses.to_json()).to_json() == losses.to_json()
        return True
    content = json.loads(text)
    if crc32(data) % 4 == 0:
        again = PrivacyLedger.from_json(ledger.to_json())
        assert again.to_json() == ledger.to_json()
        assert again.spent == ledger.spent
    assert len(ledger.entries) == len(content["entries"])
    assert [entry.name for entry in ledger.entries] == [str(entry["name"]) for entry in content["entries"]]
    spent, limits = ledger.spent, ledger.limits
    near = 1 + 1e-9
    for name, amount in spent.items():
        assert _real(amount) <= _real(limits[name]) * near
    costs = [entry.cost for entry in ledger.entries]
    if content["composition"] == "basic":
        assert _real(limits["epsilon"]) <= _real(ledger.epsilon) * near
        assert limits["delta"] <= ledger.delta
        assert (
            sum(min(_real(cost.epsilon), _real(cost.bounded_range)) for cost in costs) <= _real(spent["epsilon"]) * near
        )
        assert sum(cost.delta for cost in costs if cost.bounded_range is None) <= spent["delta"]
    elif content["composition"] == "zcdp":
        known = [
            (
                _real(c.rho),
                _real(c.mu2) / 2,
                min(_real(c.bounded_range), 1e99) ** 2 / 8,
                min(_real(c.epsilon), 1e99) ** 2 / 2,
            )
            for c in costs
        ]
        assert sum(map(min, known)) <= _real(spent["rho"]) * near
        mu, epsilon, cdf = (2 * _real(limits["rho"])) ** 0.5, _real(ledger.epsilon), NormalDist().cdf
        if 0 < mu < 1e99 and epsilon < 700:
            level = float(around(F(1), F(epsilon))[1])
            assert (
                cdf(mu / 2 - epsilon / mu) - level * cdf(-mu / 2 - epsilon / mu) <= float(ledger.delta) * near + 1e-12
            )
    else:
        slots = [entry.slot for entry in ledger.entries]
        assert [slot.used for slot in ledger.slots] == [slots.count(place) for place in range(len(ledger.slots))]
        assert all(slot.used <= slot.count for slot in ledger.slots)
    return True


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)


def run_log(content: dict[str, Any]) -> bool:
    """A file of rows, with flipped bytes: it is broken, or all of its rows are of one chain."""
    path = Path(folder().name) / "log"
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size=512", "synchronous=OFF", "journal_mode=OFF"):
        connection.execute(f"PRAGMA {setting}")
    for statement in durable_log.TABLE:
        connection.execute(statement)
    before, chained = hashlib.sha256(b"kind").digest(), True
    for place, (number, text, salt, fits) in enumerate(content["rows"]):
        salted, raw = bytes.fromhex(salt), as_bytes(text)
        digest = hashlib.sha256(before + salted + raw).digest() if fits else hashlib.sha256(raw).digest()
        before = digest
        chained = chained and fits is True and number == place
        connection.execute(
            "INSERT OR REPLACE INTO log VALUES (?, CAST(? AS TEXT), ?, ?)", (number, raw, salted, digest)
        )
    connection.close()
    if content["flips"]:
        raw = bytearray(path.read_bytes())
        for at, mask in content["flips"]:
            raw[at % len(raw)] ^= mask % 256
        path.write_bytes(raw)
    try:
        with DurableLog(path, "kind") as log:
            texts, receipt = [log.header, *log.entries], log.receipt
            log.check(receipt)
            log.append("one more")
    except (ValueError, OSError) as error:
        if chained and content["rows"] and not content["flips"]:
            raise AssertionError("a whole file was refused") from error
        return refused(error)
    assert texts == [text for _, text, _, _ in content["rows"]]
    assert chained or content["flips"]
    with DurableLog(path, "kind") as log:
        log.check(receipt)
        assert [log.header, *log.entries] == [*texts, "one more"]
    return True


def alter_ledgers(data: bytes, source: random.Random) -> bytes:
    """Another ledger; rows of a file have the types that SQLite takes."""
    if not data.startswith(b'{"rows"'):
        for slow, share in ((b'"composition": "exact"', 0.03), (b'"composition": "zcdp"', 0.2)):
            if slow in data and source.random() > share:
                raise ValueError("another one: this one takes long to read")
        return altered(data, source, lambda document, _: document)
    content = json.loads(data)
    rows, flips = content["rows"], [] if source.random() < 0.6 else [[source.randrange(4096), 1 << source.randrange(8)]]
    for _ in range(source.randrange(3)):
        row = source.choice(rows)
        place = source.randrange(5)
        if place == 4:
            rows.insert(source.randrange(len(rows) + 1), list(row))
        else:
            row[place] = source.choice(
                ((0, 1, 2, -1, 2**62), ("", "a", "é\0", "x" * 700), ("", "00", "ab" * 16), (False, True))[place]  # type: ignore[arg-type]
            )
    if source.random() < 0.7:
        for place, row in enumerate(rows):
            row[0], row[3] = place, True
    return json.dumps({"rows": rows[:9], "flips": flips}).encode()


# --- schemas and questions


class Text:
    """A file in memory."""

    suffix = ".json"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_text(self, encoding: str) -> str:
        return self.data.decode(encoding)

    def __str__(self) -> str:
        return "schema.json"


def _written(column: Any) -> dict[str, Any]:
    """The declaration of a column, from what was made of it."""
    found: dict[str, Any] = {"type": column.kind}
    for name, value in vars(column).items():
        if name in ("marks", "spelling", "type") or (
            name in ("decimal", "thousands", "default", "format") and value is None
        ):
            continue
        found[name] = (
            value.isoformat()
            if isinstance(value, datetime.datetime)
            else list(value)
            if isinstance(value, tuple)
            else value
        )
    if column.kind == "key":
        found["kind"] = column.type.__name__
    if hasattr(column, "spelling"):
        found["written"] = column.spelling == "written"
    return found


def run_schemas(data: bytes) -> bool:
    """A schema, a condition or an aggregate: what is read is what was written."""
    first = data[:1]
    try:
        if first in (b"w", b"a"):
            text = as_text(data[1:])
            made = condition(text) if first == b"w" else aggregate(text)
            assert repr(made) == repr(condition(text) if first == b"w" else aggregate(text))
            return True
        schema = read_schema(Text(data))  # type: ignore[arg-type]
    except UsageError as error:
        return refused(error)
    content = json.loads(data)
    assert list(schema) == list(content)
    written = {name: _written(column) for name, column in schema.items()}
    assert dict(read_schema(Text(json.dumps(written).encode()))) == dict(schema)  # type: ignore[arg-type]
    for name, column in schema.items():
        given, said = content[name], written[name]
        assert given["type"] == said["type"]
        if column.kind in ("number", "integer", "timestamp"):
            assert column.low < column.high
            assert column.default is None or column.low <= column.default <= column.high
        for word in ("low", "high", "default", "steps", "values", "width", "kind"):
            if given.get(word) is not None and column.kind != "timestamp":
                assert (
                    F(said[word]) == F(float(F(given[word]))) if column.kind == "number" else said[word] == given[word]
                )
    return True


ALIKE = (
    ("x", "y", "1", "-1", "0.5", "'a'", "'1/2'", "1e999", "2 ** 9", "None", "lwage", "hours", "union"),
    ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is"),
    ("and", "or", "and not", "or not", "not"),
    ("[1, 2]", "['a', 'b']", "[0, 1.5]", "[]", "(1,)", "[[1]]", "[None]", "x", "{[]}"),
    ("mean", "sum", "mean", "sum", "quantile", "histogram", "cdf", "count_users", "open"),
    ("count_users", "count_rows", "count_users()"),
)
WORD = re.compile(r"\[[^\]]*\]|not in|[<>=!]+|'[^']*'|[-\w.*]+|\S")


def alter_schemas(data: bytes, source: random.Random) -> bytes:
    """Another schema; or a question with other words in it, mostly of the same kind."""
    if data[:1] not in (b"w", b"a"):
        return altered(data, source, lambda document, _: document)
    words = WORD.findall(as_text(data[1:]))
    for _ in range(source.choice((1, 1, 2))):
        place = source.choice(
            [at for at, word in enumerate(words) if word not in ("=", "(", ")", ",") and (at or data[:1] == b"w")]
        )
        like = [kind for kind in ALIKE if words[place] in kind] or ALIKE[:1]
        other = source.choice(like[0] if source.random() < 0.9 else source.choice(ALIKE))
        chance = source.random()
        if chance < 0.7:
            words[place] = other
        elif chance < 0.8:
            words[place + 1 : place + 1] = [source.choice(ALIKE[2][:2]), *words[: place + 1]]
        elif chance < 0.99:
            words[place : place + 1] = source.choice(
                ([], ["(", words[place], ")"], [words[place]] * 2, [other, words[place]])
            )
        else:
            words[place:place] = [source.choice((*ALIKE[2], "(", "-", "[", "x["))] * 300
    return data[:1] + as_bytes(" ".join(words)[:1500])
