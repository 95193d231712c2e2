"""Messages of protocols: what belongs to a round is read back, everything else is counted and dropped."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.protocols.messages import MessageFormat, Tally, as_bytes, canonical_json, described_epsilon

HOSTILE = [None, 3, "text", [b"x"], b"", b"udp1", b"\xff" * 22, object(), np.zeros(22), float("nan")]


def reports(**changes: object) -> MessageFormat:
    arguments = {"kind": "vote", "parameters": {"epsilon": 1.0, "n_users": 3}, "round_id": "a", "payload_bytes": 2}
    return MessageFormat(**(arguments | changes))  # type: ignore[arg-type]


def test_what_is_sent_is_read_back() -> None:
    tally = Tally()
    assert reports().decode(reports().encode(b"\x00\xff"), tally) == b"\x00\xff"
    assert tally.rejected == {}


def test_one_by_one_and_many_at_once_are_the_same() -> None:
    payloads = np.arange(12, dtype=np.uint8).reshape(6, 2)
    messages = reports().encode_many(payloads)
    assert [bytes(message) for message in messages] == [reports().encode(bytes(payload)) for payload in payloads]
    np.testing.assert_array_equal(reports().decode_many(messages, Tally()), payloads)


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "survey"},
        {"round_id": "b"},
        {"parameters": {"epsilon": 2.0, "n_users": 3}},
        {"parameters": {"epsilon": 1.0, "n_users": 4}},
        {"parameters": {"epsilon": LogRatio(3), "n_users": 3}},
        {"parameters": {"epsilon": 1.0}},
    ],
)
def test_messages_of_another_round_are_rejected(other: dict[str, object]) -> None:
    tally = Tally()
    assert reports().decode(reports(**other).encode(b"ab"), tally) is None
    both = np.concatenate(
        [reports(**other).encode_many(np.zeros((2, 2), np.uint8)), reports().encode_many(np.ones((1, 2), np.uint8))]
    )
    np.testing.assert_array_equal(reports().decode_many(both, tally), [[1, 1]])
    assert tally.rejected == {"another round": 3}


def test_anything_else_is_rejected_and_counted() -> None:
    tally = Tally()
    assert [reports().decode(message, tally) for message in HOSTILE] == [None] * len(HOSTILE)
    assert tally.rejected == {"wrong type": 7, "wrong length": 2, "not a message": 1}
    tables = [
        None,
        "text",
        np.zeros((2, 22)),
        np.zeros(22, np.uint8),
        np.zeros((3, 7), np.uint8),
        np.zeros((2, 22), np.uint8),
    ]
    tally = Tally()
    assert [len(reports().decode_many(table, tally)) for table in tables] == [0] * len(tables)
    assert tally.rejected == {"wrong type": 4, "wrong length": 3, "not a message": 2}


class Claims:
    """Says that it is of a type that it is not of."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @property
    def __class__(self) -> Any:
        return self.kind


class Raises(bytes):
    """Bytes that raise when they are looked at."""

    def __bytes__(self) -> bytes:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


class RaisingTable(np.ndarray[Any, Any]):
    """A table that raises when it is looked at."""

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        raise RuntimeError

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError

    def __eq__(self, other: object) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    __hash__ = None


def test_hostile_objects_are_counted_and_never_raise() -> None:
    good = reports().encode(b"ab")
    released = memoryview(good)
    released.release()
    tally = Tally()
    for message in (released, Claims(bytes), Claims(np.ndarray), RaisingTable((2, 22), np.uint8)):
        assert reports().decode(message, tally) is None
    assert tally.rejected == {"wrong type": 4}
    row = np.frombuffer(good, dtype=np.uint8)
    shapes = [good, bytearray(good), memoryview(good), memoryview(row.reshape(2, 11)), memoryview(row.repeat(2))[::2]]
    for message in (*shapes, Raises(good)):
        assert reports().decode(message, tally) == b"ab"
    assert as_bytes(memoryview(np.zeros(3, dtype="i4,u1"))) == bytes(15)

    table = np.tile(row, (3, 1))
    tally = Tally()
    for messages in (Claims(np.ndarray), released, table.astype(bool), table.astype(np.int8), table.view("V1")):
        assert len(reports().decode_many(messages, tally)) == 0
    assert tally.rejected == {"wrong type": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = table.view(np.matrix)
    masked = np.ma.masked_array(table, mask=np.eye(3, 22))  # type: ignore[no-untyped-call]
    for messages in (table[::-1], np.asfortranarray(table), matrix, masked, table.view(RaisingTable)):
        found = reports().decode_many(messages, tally)
        assert type(found) is np.ndarray
        assert found.tolist() == [[97, 98]] * 3


@pytest.mark.parametrize(
    ("ratio", "exponent"),
    [("2", "1"), ("1/2", "0"), ("x", "0"), (True, "1"), (None, "1"), (float("inf"), "0"), ("1", "1e99999999")],
)
def test_a_described_epsilon_is_one_number(ratio: object, exponent: object) -> None:
    assert described_epsilon("3/2", 0) == LogRatio(3, 2)
    assert described_epsilon(1, "1/3") == Fraction(1, 3)
    with pytest.raises((TypeError, ValueError)):
        described_epsilon(ratio, exponent)


def test_equal_parameters_are_one_round_however_they_are_written() -> None:
    same = [
        {"epsilon": 1, "n_users": 3},
        {"n_users": np.int64(3), "epsilon": Fraction(1)},
        {"epsilon": np.float64(1), "n_users": 3},
    ]
    assert {reports(parameters=parameters).fingerprint for parameters in same} == {reports().fingerprint}


def test_different_values_have_different_canonical_forms() -> None:
    values = [
        None,
        True,
        1,
        "1",
        b"1",
        [1],
        {"1": 1},
        LogRatio(2),
        Fraction(1, 2),
        [],
        {},
        "",
        [["1", 1]],
        {"rational": "1"},
    ]
    assert len({canonical_json(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    ("round_id", "error"), [("", ValueError), (None, TypeError), (3, TypeError), (b"a", TypeError)]
)
def test_a_round_has_a_name(round_id: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="round_id"):
        reports(round_id=round_id)


def test_parameters_without_a_canonical_form_are_refused() -> None:
    with pytest.raises(TypeError, match="public parameter"):
        reports(parameters={"items": {1, 2}})


def test_a_payload_has_its_length() -> None:
    with pytest.raises(ValueError, match="2 bytes"):
        reports().encode(b"abc")
