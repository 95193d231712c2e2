"""Clients and servers of the local model: messages, slots, estimates, selections and what is refused."""

from __future__ import annotations

import copy
import math
import pickle
import runpy
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.local_cases import ITEMS, bits, small
from userdp import LogRatio
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.protocols import local
from userdp.protocols.local import (
    BitwiseMajority,
    HadamardResponse,
    KRandomizedResponse,
    LocalProtocol,
    SubsetSelection,
)
from userdp.protocols.local import protocol as local_protocol
from userdp.runtime import source_of

PUBLIC: dict[str, Any] = {"epsilon": 1, "n_items": 10, "n_users": 500, "round_id": "r"}


def reports(protocol: LocalProtocol, items: Any, seed: int = 1, **slots: Any) -> Any:
    with pytest.warns(InsecureRandomnessWarning):
        return protocol.report_many(items, random_state=seed, **slots)


# --- messages


@pytest.mark.parametrize("protocol", [*small(n_users=40), bits(n_users=40)], ids=repr)
def test_one_by_one_is_the_same_as_at_once(protocol: LocalProtocol) -> None:
    item: Any = (1, 0) if isinstance(protocol, BitwiseMajority) else 1
    clients = [protocol.client(slot) for slot in range(40)]
    with pytest.warns(InsecureRandomnessWarning):
        single = [client.report(item, random_state=client.slot) for client in clients]
    together = np.stack([reports(protocol, [item], slot, slots=[slot])[0] for slot in range(40)])
    assert b"".join(single) == together.tobytes()
    one, many = protocol.server(), protocol.server()
    assert all(one.receive(message) for message in single)
    assert many.receive_many(together) == 40
    assert np.array_equal(one.counts, many.counts)
    assert (one.accepted, one.rejected) == (many.accepted, many.rejected) == (40, {})
    assert one.counts.sum() == 40 * getattr(protocol, "subset_size", 1)


@pytest.mark.serial
def test_of_two_threads_one_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(local_protocol, "source_of", lambda state: (together.wait(), source_of(state))[1])
    client = KRandomizedResponse(**PUBLIC).client(3)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(client.report, 1) for _ in range(2)]
    outcomes = [future.exception() for future in both]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "RuntimeError"]


def test_a_client_reports_once() -> None:
    client = KRandomizedResponse(**PUBLIC).client(3)
    with pytest.raises(TypeError, match="random_state"):
        client.report(1, random_state="x")  # type: ignore[arg-type]
    client.report(object())
    with pytest.raises(RuntimeError, match="twice the epsilon"):
        client.report(1)
    for again in (copy.copy(client), copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
        assert (again.protocol, again.slot) == (client.protocol, 3)
        with pytest.raises(RuntimeError, match="twice the epsilon"):
            again.report(1)


def test_copies_of_a_client_share_its_report() -> None:
    client = KRandomizedResponse(**PUBLIC).client(3)
    with pytest.raises(TypeError, match="make the client where it reports"):
        pickle.dumps(client)
    copies = [copy.copy(client), copy.deepcopy(client), client]
    copies[1].report(1)
    for other in copies:
        with pytest.raises(RuntimeError, match="twice the epsilon"):
            other.report(1)


@pytest.mark.parametrize("slot", [-1, 500, 1.0, None, "1", True])
def test_slots_that_do_not_exist(slot: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="slot"):
        HadamardResponse(**PUBLIC).client(slot)
    with pytest.raises((TypeError, ValueError), match="slots"):
        HadamardResponse(**PUBLIC).report_many([1], slots=[slot])


def test_slots_of_many_reports() -> None:
    protocol = HadamardResponse(**PUBLIC)
    with pytest.raises(ValueError, match="distinct"):
        protocol.report_many([1, 2], slots=[4, 4])
    with pytest.raises(ValueError, match="one entry per slot"):
        protocol.report_many([1, 2])
    server = protocol.server()
    assert server.receive_many(protocol.report_many([1, 2], slots=np.array([499, 0], dtype=np.uint16))) == 2


@pytest.mark.parametrize("kind", ITEMS)
def test_strangers_messages_are_counted_and_never_raise(kind: Any) -> None:
    protocol = kind(**PUBLIC)
    server = protocol.server()
    good = protocol.client(7).report(2)
    slot = len(good) - protocol.symbol_bytes - 4
    other_round = type(protocol)(**{**PUBLIC, "round_id": "before"}).client(8).report(2)
    assert server.receive(good)
    bad = {
        "slot taken": [good, protocol.client(7).report(3)],
        "another round": [other_round],
        "wrong length": [b"", good + b"x", good[:-1]],
        "not a message": [b"x" * len(good)],
        "wrong type": [None, 3, "x", [1], np.zeros(len(good))],
        "out of range": [
            good[:slot] + (500).to_bytes(4, "little") + good[slot + 4 :],
            good[:slot] + b"\xff" * 4 + good[slot + 4 :],
            good[:slot] + (9).to_bytes(4, "little") + b"\xff" * protocol.symbol_bytes,
        ],
    }
    before = server.counts.copy()
    for messages in bad.values():
        for message in messages:
            assert not server.receive(message)
    assert server.rejected == {reason: len(messages) for reason, messages in bad.items()}
    assert server.accepted == 1
    assert np.array_equal(server.counts, before)
    for table in (None, np.zeros((3, 3)), np.zeros(4, dtype=np.uint8)):
        assert server.receive_many(table) == 0
    # A slot whose message was not valid is still free.
    assert server.receive(protocol.client(9).report(1))


def test_of_each_slot_the_first_valid_message_counts() -> None:
    protocol = KRandomizedResponse(**PUBLIC)
    table = np.concatenate([reports(protocol, [1, 2], 1, slots=[5, 6]), reports(protocol, [3, 4], 2, slots=[6, 7])])
    table = np.concatenate([table[2:3], table])
    table[0, -4:] = 255  # slot 6 with a symbol that does not exist
    one, many = protocol.server(), protocol.server()
    accepted = [one.receive(row.tobytes()) for row in table]
    assert accepted == [False, True, True, False, True]
    assert many.receive_many(table) == 3
    assert np.array_equal(one.counts, many.counts)
    assert one.rejected == many.rejected == {"out of range": 1, "slot taken": 1}


def test_subsets_of_another_size_and_beyond_the_items_are_rejected() -> None:
    protocol = SubsetSelection(**PUBLIC, subset_size=2)
    message = protocol.client(0).report(1)
    server = protocol.server()
    for bits_ in (0, 0b1, 0b111, 1 << 10 | 1):
        assert not server.receive(message[:-2] + bits_.to_bytes(2, "little"))
    assert server.rejected == {"out of range": 4}
    assert server.receive(message[:-2] + (0b11).to_bytes(2, "little"))
    assert server.counts.tolist() == [1, 1] + [0] * 8


def test_servers_are_merged() -> None:
    protocol = HadamardResponse(**PUBLIC)
    table = reports(protocol, np.arange(500) % 10)
    whole, left, right = (protocol.server() for _ in range(3))
    whole.receive_many(table)
    left.receive_many(table[:200])
    right.receive_many(table[200:])
    right.receive(b"")
    left.merge(right)
    assert np.array_equal(left.counts, whole.counts)
    assert left.accepted == 500
    assert left.rejected == {"wrong length": 1}
    with pytest.raises(ValueError, match="slots that have been counted"):
        left.merge(right)
    for other in (KRandomizedResponse(**PUBLIC).server(), None):
        with pytest.raises(ValueError, match="same protocol"):
            left.merge(other)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(left))
    assert again.receive_many(table) == left.receive_many(table) == 0
    assert np.array_equal(again.histogram(), whole.histogram())


# --- what comes out


@pytest.mark.parametrize("kind", ITEMS)
def test_supports_are_the_definition(kind: Any) -> None:
    protocol = kind(**PUBLIC)
    table = reports(protocol, np.arange(500) % 10)
    server = protocol.server()
    server.receive_many(table)
    symbols = [protocol._symbol(row[-protocol.symbol_bytes :]) for row in table]
    expected = [sum(protocol.supports(symbol, item) for symbol in symbols) for item in range(10)]
    assert protocol._supports(server.counts).tolist() == expected
    p, q = protocol.keep_probability, protocol.other_probability
    exact = [float((count - 500 * q) / (p - q)) for count in expected]
    assert server.histogram() == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert server.select() == int(np.argmax(expected))


@pytest.mark.parametrize("kind", ITEMS)
def test_an_empty_server_estimates_nothing(kind: Any) -> None:
    server = kind(**PUBLIC).server()
    assert server.histogram().tolist() == [0] * 10
    assert server.select() == 0
    assert server.standard_error.tolist() == [0] * 10
    assert server.error_bound(0.1) >= 0


def test_missing_reports_are_not_counted_as_somebodys() -> None:
    """Estimates are of those who reported: 300 of 500 here; off by 6 standard errors with probability below 1e-6."""
    protocol = HadamardResponse(**{**PUBLIC, "epsilon": 8})
    server = protocol.server()
    server.receive_many(reports(protocol, [4] * 300, slots=np.arange(300)))
    assert abs(server.histogram()[4] - 300) < 6 * server.standard_error[4] + 1
    assert server.select() == 4


def test_bits_are_counted_by_slot() -> None:
    protocol = bits(LogRatio(10**6), n_bits=3, n_users=7)
    server = protocol.server()
    server.receive_many(reports(protocol, [(1, 0, 1)] * 7))
    assert server.counts.tolist() == [[0, 3], [2, 0], [0, 2]]
    assert server.histogram() == pytest.approx([3, 0, 2], abs=1e-4)
    assert server.select().tolist() == [1, 0, 1]
    assert server.standard_error == pytest.approx([1e-3 * math.sqrt(n) for n in (3, 2, 2)], rel=1e-3)


# --- errors


@pytest.mark.parametrize("kind", ITEMS)
def test_the_mean_squared_error_is_that_of_theory(kind: Any) -> None:
    """40 rounds of 5,000 users, k = 64: within 10% of the exact sum of variances.

    The sum of 64 squared errors is a sum of as many nearly independent, nearly normal squares: its relative deviation
    over 40 rounds is about sqrt(2 / (64 * 40)) = 2.8%, for Hadamard response somewhat more. The seeds are fixed.
    """
    k, n, rounds = 64, 5000, 40
    protocol = kind(epsilon=1, n_items=k, n_users=n, round_id="mse")
    items = np.random.default_rng(5).integers(0, k, n) ** 2 // k
    truth = np.bincount(items, minlength=k)
    errors = []
    for seed in range(rounds):
        server = protocol.server()
        server.receive_many(reports(protocol, items, seed))
        errors.append(server.histogram() - truth)
    measured, theory = float(np.mean(np.square(errors))), float(protocol.squared_error) * n / k
    print(f"{kind.__name__}: {measured:.0f} measured, {theory:.0f} exact, ratio {measured / theory:.3f}")
    assert 0.9 < measured / theory < 1.1
    # Estimates with the probabilities of twice the epsilon are far off.
    other = kind(epsilon=2, n_items=k, n_users=n, round_id="mse")
    assert float(other.squared_error) * n / k < 0.5 * theory
    worst = np.abs(errors).max(axis=1)
    assert (worst > protocol.error_bound(0.05)).sum() <= 12  # Bin(40, 0.05) is above with probability below 1e-7


def test_error_bound_of_hadamard_response_is_the_closed_form() -> None:
    protocol = HadamardResponse(**{**PUBLIC, "n_items": 1000, "n_users": 10**5})
    closed = math.sqrt(2 * 10**5 * math.log(2 * 1000 / 0.01)) / math.tanh(0.5)
    assert protocol.error_bound(0.01) <= closed * (1 + 1e-12)
    assert protocol.error_bound(0.01) == pytest.approx(closed, rel=0.2)
    with pytest.raises(ValueError, match="beta"):
        protocol.error_bound(0)


def test_variance_outside_its_range() -> None:
    protocol = HadamardResponse(**PUBLIC)
    for count, n in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="count"):
            protocol.variance(count, n)


# --- choice and planning


@pytest.mark.parametrize(("epsilon", "k"), [("0.1", 4), (1, 2), (1, 30), (1, 1000), (4, 30), (4, 1000)])
def test_the_choice_has_the_least_squared_error(epsilon: Any, k: int) -> None:
    public: dict[str, Any] = {"epsilon": epsilon, "n_items": k, "n_users": 10, "round_id": "choice"}
    every = [kind(**public) for kind in ITEMS]
    every += [SubsetSelection(**public, subset_size=w) for w in range(1, min(k, 8))]
    chosen = local.for_items(**public)
    assert chosen.squared_error <= min(protocol.squared_error for protocol in every) * Fraction(1001, 1000)
    short = local.for_items(**public, max_message_bytes=28)
    assert not isinstance(short, SubsetSelection) or k <= 32
    assert short.squared_error == min(p.squared_error for p in every if p.format.width <= 28)


def test_choices_out_of_reach() -> None:
    with pytest.raises(ValueError, match="max_message_bytes must be at least 2"):
        local.for_items(**{**PUBLIC, "n_items": 1000}, max_message_bytes=10)
    with pytest.raises(ValueError, match="n_items must be at most"):
        local.for_items(**{**PUBLIC, "n_items": 2**30})


@pytest.mark.parametrize("kind", ITEMS)
def test_users_needed_are_enough(kind: Any) -> None:
    """200 rounds at beta = 0.05, of the worst distribution there is: one competitor.

    More than 29 failures: below 1e-6.
    """
    parameters: dict[str, Any] = {"epsilon": 1, "n_items": 20}
    n = kind.users_needed(agreement="0.7", beta="0.05", **parameters)
    assert kind.users_needed(agreement="0.7", beta="0.01", **parameters) > n > 10
    assert kind.users_needed(agreement="0.9", beta="0.05", **parameters) < n
    protocol = kind(n_users=n, round_id="planned", **parameters)
    failures = 0
    for seed in range(200):
        holders = np.random.default_rng(seed).random(n) < 0.7
        server = protocol.server()
        server.receive_many(reports(protocol, np.where(holders, 11, 3), seed))
        failures += server.select() != 11
    assert failures <= 29


@pytest.mark.parametrize("change", [{"epsilon": 1e-12}, {"agreement": Fraction(1, 2) + Fraction(1, 10**30)}])
@pytest.mark.parametrize("kind", [*ITEMS, BitwiseMajority])
def test_plans_for_too_many_users_are_refused(kind: Any, change: dict[str, Any]) -> None:
    size = "n_bits" if kind is BitwiseMajority else "n_items"
    for beta in (0.1, "0.99999999999999999999"):
        with pytest.raises(BudgetError, match=r"more than 2\*\*32 users"):
            kind.users_needed(**{"agreement": 0.9, "beta": beta, "epsilon": 1, size: 2} | change)


def test_extreme_parameters_have_estimates_and_bounds() -> None:
    for protocol in (*small(epsilon="1e-30"), bits(epsilon="1e-30")):
        server = protocol.server()
        server.receive(protocol.client(0).report([0, 1]))
        assert np.isfinite(server.histogram()).all()
        assert np.isfinite(server.standard_error).all()
        assert server.error_bound(0.1) < server.error_bound("1e-400") < 100 * server.error_bound(0.1)


def test_users_needed_of_bits() -> None:
    for epsilon, b, agreement, beta in ((1, 40, 0.9, 0.01), (0.5, 7, 0.75, 0.1)):
        group = 2 * math.log(b / beta) / ((2 * agreement - 1) * math.tanh(epsilon / 2)) ** 2
        needed = BitwiseMajority.users_needed(agreement=agreement, beta=beta, epsilon=epsilon, n_bits=b)
        assert needed == b * math.ceil(group)
    with pytest.raises(ValueError, match="agreement"):
        BitwiseMajority.users_needed(agreement=0.5, beta=0.1, epsilon=1, n_bits=3)
    with pytest.raises(ValueError, match="agreement"):
        HadamardResponse.users_needed(agreement=0.5, beta=0.1, epsilon=1, n_items=3)
    with pytest.raises(ValueError, match="epsilon"):
        BitwiseMajority.users_needed(agreement=0.9, beta=0.1, epsilon=0, n_bits=3)


def test_the_example_counts_what_was_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """2,000 of 4,000 like mate; tea is 1,000 and 20 standard errors behind."""
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "local_reports.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "4000 reports, rejected: {'slot taken': 1, 'wrong length': 1}" in printed
    assert printed.endswith("most liked: mate\n")
