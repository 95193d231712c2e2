"""Public descriptions of local protocols: JSON, fingerprints, parameters, and how items are read."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support.local_cases import ITEMS, bits, small
from userdp import LogRatio
from userdp.exceptions import BudgetError
from userdp.protocols.local import (
    BitwiseMajority,
    HadamardResponse,
    KRandomizedResponse,
    LocalProtocol,
    SubsetSelection,
)

PUBLIC: dict[str, Any] = {"epsilon": 1, "n_items": 10, "n_users": 500, "round_id": "r"}


@pytest.mark.parametrize("protocol", [*small(n_users=7), bits(), bits("0.3", 3, 7)], ids=repr)
def test_json_makes_the_same_protocol(protocol: LocalProtocol) -> None:
    again = LocalProtocol.from_json(protocol.to_json())
    assert type(again) is type(protocol)
    assert again == protocol
    assert hash(again) == hash(protocol)
    assert again.certified_ratio == protocol.certified_ratio
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert type(protocol).from_json(protocol.to_json()) == protocol


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"protocol": "local-hadamard-response"}',
        '{"protocol": "x", "epsilon": {"ratio": "2", "exponent": "0"}}',
        '{"protocol": "local-hadamard-response", "epsilon": {"ratio": "1", "exponent": "1e999999999"}}',
        '{"protocol": "local-hadamard-response", "epsilon": {"ratio": "2", "exponent": "1"}}',
        "[" * 10**5,
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="text"):
        LocalProtocol.from_json(text)


def test_json_of_another_class_is_refused() -> None:
    text = HadamardResponse(**PUBLIC).to_json()
    with pytest.raises(ValueError, match="no KRandomizedResponse"):
        KRandomizedResponse.from_json(text)
    with pytest.raises(ValueError, match="is not the JSON of HadamardResponse"):
        LocalProtocol.from_json(text.replace('"n_items"', '"n_things"'))


def test_every_public_parameter_is_in_the_fingerprint() -> None:
    base = HadamardResponse(**PUBLIC)
    others: list[LocalProtocol] = [
        HadamardResponse(**{**PUBLIC, **change})
        for change in ({"epsilon": 2}, {"n_items": 11}, {"n_users": 501}, {"round_id": "s"}, {"default": 1})
    ]
    others.append(KRandomizedResponse(**PUBLIC))
    assert len({protocol.format.fingerprint for protocol in [base, *others]}) == 7
    assert HadamardResponse(**{**PUBLIC, "epsilon": 1.0}) == base


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon: must be > 0"),
        ({"epsilon": "1e-50"}, "epsilon: is too small"),
        ({"epsilon": -1}, "epsilon must be >= 0"),
        ({"epsilon": None}, "epsilon must be"),
        ({"n_items": 1}, "n_items must be at least 2"),
        ({"n_items": 2**25}, "n_items must be at most"),
        ({"n_items": 2.0}, "n_items must be an int"),
        ({"default": 10}, "default must be one of the items"),
        ({"default": -1}, "default must be at least 0"),
        ({"n_users": 0}, "n_users must be at least 1"),
        ({"n_users": 2**33}, "n_users must be at most"),
        ({"round_id": ""}, "round_id"),
        ({"round_id": None}, "round_id"),
        ({"neighbors": "add-remove"}, "neighbors must be 'replace'.*is seen by everybody"),
    ],
)
def test_bad_public_parameters_are_refused(kind: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**{**PUBLIC, **change})


def test_bad_parameters_of_one_protocol() -> None:
    sizes: list[Any] = [0, 10, -1, 1.5]
    for size in sizes:
        with pytest.raises(ValueError, match="subset_size"):
            SubsetSelection(**PUBLIC, subset_size=size)
    common: dict[str, Any] = {"epsilon": 1, "n_users": 5, "round_id": "r"}
    for n_bits in (0, 6, 2**25):
        with pytest.raises(ValueError, match="n_bits"):
            BitwiseMajority(n_bits=n_bits, **common)
    with pytest.raises(BudgetError, match="pmf"):
        SubsetSelection(**{**PUBLIC, "n_items": 100}).pmf(1)


@pytest.mark.parametrize("kind", ITEMS)
def test_levels_of_any_size_are_taken_or_refused_by_name(kind: Any) -> None:
    assert kind(**PUBLIC | {"epsilon": 10**400}).certified_epsilon < 200
    for epsilon in (LogRatio(10**5000), LogRatio(10**5000 + 1, 10**5000), Fraction(1, 10**5000)):
        with pytest.raises(ValueError, match="epsilon must be of numbers below"):
            kind(**PUBLIC | {"epsilon": epsilon})


@pytest.mark.parametrize("kind", [KRandomizedResponse, HadamardResponse])
def test_parameters_of_other_protocols_are_refused(kind: Any) -> None:
    described = json.loads(kind(**PUBLIC).to_json()) | {"subset_size": 3}
    with pytest.raises(TypeError, match="subset_size"):
        kind(**PUBLIC, subset_size=3)
    with pytest.raises(ValueError, match="subset_size"):
        LocalProtocol.from_json(json.dumps(described))


@pytest.mark.parametrize("items", ["1" * 500, dict.fromkeys(range(500), 1), 1, None])
def test_many_reports_need_a_sequence_of_items(items: Any) -> None:
    with pytest.raises(TypeError, match="items must be a NumPy array, a list or another sequence"):
        HadamardResponse(**PUBLIC).report_many(items)


@pytest.mark.parametrize("kind", ITEMS)
def test_arrays_of_items_are_read_like_single_items(kind: Any) -> None:
    protocol = kind(**PUBLIC)
    for items in (
        np.array([-1, 2]),
        np.array([2**64 - 1, 3], np.uint64),
        np.array([1.0, 2.5, np.nan, 1e300]),
        np.array([True, False]),
        np.arange(9)[::2],
    ):
        single = [protocol._value(item, 0)[0] for item in items]
        together = protocol._read(items, "items")
        assert in_range(together, protocol) == in_range(single, protocol)
    with pytest.raises(TypeError, match="items is a masked array"):
        protocol.report_many(np.ma.masked_array([1, 2], mask=[False, True]), slots=[0, 1])  # type: ignore[no-untyped-call]
    with pytest.raises(TypeError, match=r"items is of dtype timedelta64"):
        protocol.report_many(np.array([1, 2], "m8[s]"), slots=[0, 1])


def in_range(codes: Any, protocol: Any) -> list[int]:
    """The items that numbers are, -1 for none."""
    return [int(code) if 0 <= code < protocol.n_items else -1 for code in codes]


def test_bits_are_one_sequence_of_the_right_length() -> None:
    protocol = BitwiseMajority(epsilon=1, n_bits=3, n_users=10, round_id="a")
    nothing: list[Any] = [range(10**12), [[1, 1, 1]], [[1], [1], [1]], np.ones((3, 1), int), np.array(1), 1, "111"]
    for none in (*nothing, [1, 1], [1, 1, 2]):
        assert [protocol._value(none, slot)[0] for slot in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("name", ["epsilon", "n_users", "n_items", "default", "round_id", "format", "another"])
def test_parameters_do_not_change(name: str) -> None:
    protocol = HadamardResponse(**PUBLIC)
    with pytest.raises(AttributeError, match=f"{name} of a protocol does not change"):
        setattr(protocol, name, 2)
    assert protocol == HadamardResponse(**PUBLIC)
