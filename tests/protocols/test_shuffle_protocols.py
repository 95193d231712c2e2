"""Protocols behind a shuffler: parties, messages, one-sided estimates, hostile senders, refusals."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import runpy
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from userdp import LogRatio
from userdp.exceptions import BudgetError
from userdp.protocols.messages import OneReport
from userdp.protocols.shuffle import Histogram, Mode, NegativeBinomialSum

pytestmark = pytest.mark.filterwarnings("ignore::userdp.exceptions.InsecureRandomnessWarning")

PROTOCOLS = [NegativeBinomialSum, Histogram, Mode]
HOSTILE = [None, 3, "text", b"", b"udp1", b"\xff" * 24, bytes(10**4), object(), float("nan"), np.zeros(24)]


class Odd(int):
    """An integer in name."""

    def __int__(self) -> int:
        raise RuntimeError("no number")


NO_ITEMS = [None, "one", 1.5, float("nan"), -1, 7, 10**30, Odd(9), [], object(), np.float64(-2), np.timedelta64(1)]


def protocol_of(kind: Any, **changes: Any) -> Any:
    arguments = {"epsilon": 1, "delta": 1e-3, "n_users": 20, "round_id": "a"}
    if kind is not NegativeBinomialSum:
        arguments["n_items"] = 4
    return kind(**(arguments | changes))


def kinds(messages: Any, protocol: Any) -> Counter[int]:
    server = protocol.server()
    for message in messages:
        assert server.receive(bytes(message))
    return Counter({item: int(count) for item, count in enumerate(server.counts) if count})


def truth(items: Any, size: int) -> Any:
    return np.bincount(items, minlength=size)


@pytest.mark.parametrize("estimates", ["at_least", "at_most"])
def test_sums_are_one_sided(estimates: str) -> None:
    protocol = protocol_of(NegativeBinomialSum, estimates=estimates)
    for total in (0, 7, 20):
        for _ in range(30):
            found = protocol.release([1] * total + [0] * (20 - total))
            assert total <= found <= 20 if estimates == "at_least" else 0 <= found <= total


@pytest.mark.parametrize("estimates", ["at_least", "at_most"])
def test_histograms_are_one_sided(estimates: str) -> None:
    protocol = protocol_of(Histogram, estimates=estimates, n_users=200)
    items = [0] * 120 + [2] * 80
    for _ in range(30):
        found = protocol.release(items)
        assert (found >= truth(items, 4)).all() if estimates == "at_least" else (found <= truth(items, 4)).all()
        if estimates == "at_most":
            assert found[1] == found[3] == 0  # exactly, as Lemma 37 says


@pytest.mark.parametrize("estimates", ["at_least", "at_most"])
@pytest.mark.parametrize("beta", [None, 0.01])
def test_errors_keep_their_bound(estimates: str, beta: float | None) -> None:
    histogram = protocol_of(Histogram, estimates=estimates, n_users=300, beta=beta)
    items = np.repeat([0, 1, 2], 100)
    # A bound at 1e-9 fails in one of 50 rounds with probability at most 5e-8.
    bound = histogram.error_bound("1e-9")
    assert all(abs(histogram.release(items) - truth(items, 4)).max() <= bound for _ in range(50))
    selection = protocol_of(Mode, estimates=estimates, n_users=300, beta=beta)
    items = [3] * (150 + selection.error_bound("1e-9")) + [1] * 149
    items = (items + [0] * 300)[:300]
    gap = items.count(3) - items.count(1)
    assert gap > selection.error_bound("1e-9")
    assert all(selection.release(items) == 3 for _ in range(50))


def test_mean_and_quantile_are_those_of_the_noise() -> None:
    protocol = protocol_of(NegativeBinomialSum, n_users=50)
    rounds = 2000
    sent = protocol.report_many([0] * (50 * rounds), random_state=3)
    mean = len(sent) / rounds
    spread = math.sqrt(float(protocol.r * protocol.p / (1 - protocol.p) ** 2) / rounds)
    assert abs(mean - protocol.mean_noise) < 6 * spread  # false alarm below 1e-8
    assert protocol.messages_per_user == pytest.approx(1 + protocol.mean_noise / 50)


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("estimates", ["at_least", "at_most"])
def test_one_user_at_a_time_and_all_at_once_send_alike(kind: Any, estimates: str) -> None:
    protocol = protocol_of(kind, estimates=estimates, n_users=3)
    size = 2 if kind is NegativeBinomialSum else 4
    for item in range(size):
        one = protocol.client().report(item, random_state=5)
        many = protocol.report_many([item], random_state=5)
        assert [bytes(message) for message in many] == one
        assert all(len(message) == protocol.message_bytes for message in one)
    # Draws of the same bits differ by the input alone.
    reports = [kinds(protocol.client().report(item, random_state=5), protocol) for item in range(size)]
    if kind is NegativeBinomialSum:
        more, less = (1, 0) if estimates == "at_least" else (0, 1)
        assert reports[more][0] == reports[less][0] + 1
    else:
        up, down = (1, 2) if estimates == "at_least" else (2, 1)
        noise = reports[1].copy()
        noise.subtract(reports[2])
        assert {item: count for item, count in noise.items() if count} == {up: 1, down: -1}


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_messages_say_nothing_of_their_sender(kind: Any) -> None:
    protocol = protocol_of(kind)
    other = type(protocol).from_json(protocol.to_json())
    mine = {bytes(message) for message in protocol.report_many([1] * 400)}
    yours = {bytes(message) for message in other.report_many([1] * 400)}
    assert mine == yours
    assert len(mine) == (1 if kind is NegativeBinomialSum else 4)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_no_item_is_the_default_item(kind: Any) -> None:
    default = 0 if kind is NegativeBinomialSum else 2
    protocol = protocol_of(kind, **({} if kind is NegativeBinomialSum else {"default": 2}))
    expected = protocol.client().report(default, random_state=1)
    for item in NO_ITEMS:
        assert protocol.client().report(item, random_state=1) == expected
    many = protocol.report_many(NO_ITEMS, random_state=1)
    assert (many == protocol.report_many([default] * len(NO_ITEMS), random_state=1)).all()
    odd = np.array([-3, 100, 2**62])
    assert (protocol.report_many(odd, random_state=1) == protocol.report_many([default] * 3, random_state=1)).all()
    one, *others = (
        protocol.client().report(item, random_state=1) for item in (1, np.uint8(1), True, 1.0, "01", Odd(1))
    )
    assert others == [one] * 5
    assert one != expected


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_client_reports_once_unless_it_is_told_to_report_again(kind: Any) -> None:
    protocol = protocol_of(kind)
    client = protocol.client()
    with pytest.raises(TypeError, match="random_state"):
        client.report(1, random_state="x")
    for wrong in (1, None, "yes"):
        with pytest.raises(TypeError, match="again must be a bool"):
            client.report(1, again=wrong)
    copies = [copy.copy(client), copy.deepcopy(client)]
    with pytest.raises(TypeError, match="make the client where it reports"):
        pickle.dumps(client)
    first = client.report(object(), random_state=1)
    for used in (client, *copies, copy.copy(client), copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
        with pytest.raises(RuntimeError, match="has reported already"):
            used.report(1)
        assert used.report(object(), random_state=1, again=True) == first
    explicit = protocol.client()
    explicit.report(1, again=True)
    with pytest.raises(RuntimeError, match="has reported already"):
        explicit.report(1)


def test_of_two_threads_one_reports() -> None:
    client = protocol_of(Histogram).client()
    with ThreadPoolExecutor(8) as pool:
        outcomes = [future.exception() for future in [pool.submit(client.report, 1) for _ in range(8)]]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType"] + ["RuntimeError"] * 7


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_no_report_left() -> None:
    client = protocol_of(Histogram).client()
    child = os.fork()
    if child == 0:
        try:
            client.report(1)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    client.report(1)


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_during_a_report_does_not_wait_for_it() -> None:
    right = OneReport()
    with right._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # which ends the child if it waits
            os._exit(7 if not right.use() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert right.use()


def test_a_user_who_reports_twice_is_protected_as_two_users_are() -> None:
    """From the exact distributions of the counts: of three reports two are one user's."""
    protocol = protocol_of(NegativeBinomialSum, n_users=2, delta=1e-2)
    one = np.array([float(mass) for mass in protocol.user_noise().fractions()])
    noise = np.convolve(np.convolve(one, one), one)
    zeros, ones = (np.pad(noise, ends) for ends in ((0, 2), (2, 0)))
    for pmf, other in ((zeros, ones), (ones, zeros)):
        divergence = np.maximum(pmf - math.exp(2) * other, 0).sum()
        assert divergence <= 1e-2 * (1 + math.e)
    assert np.maximum(ones - math.e * zeros, 0).sum() > 0 < np.maximum(zeros - math.e * ones, 0).sum() - 1e-2


def test_the_shuffler_keeps_the_messages_and_loses_their_order() -> None:
    protocol = protocol_of(Histogram, n_users=500)
    shuffler = protocol.shuffler()
    sent = protocol.report_many(np.repeat([0, 3], 250))
    shuffler.collect(sent[:100])
    shuffler.collect([bytes(message) for message in sent[100:]])
    released = shuffler.release()
    assert sorted(map(bytes, released)) == sorted(map(bytes, sent))
    assert not (released == sent).all()
    assert shuffler.tally.accepted == len(sent)
    assert shuffler.release().shape == (0, protocol.message_bytes)  # forgotten
    shuffler.collect(sent)
    first = shuffler.release(random_state=1)
    shuffler.collect(sent)
    assert (shuffler.release(random_state=1) == first).all()


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_hostile_messages_are_counted_and_dropped(kind: Any) -> None:
    protocol = protocol_of(kind)
    # Every one of them is a message at least. Zeros are none in a sum, and once in 56,000 times there is no noise.
    good = protocol.report_many([1] * 20)
    shuffler, server = protocol.shuffler(), protocol.server()
    shuffler.collect(HOSTILE)
    for one in (b"", None, 3, "text", np.zeros((2, 3), dtype=np.uint8)):
        shuffler.collect(one)  # type: ignore[arg-type]
    foreign = protocol_of(kind, round_id="b").report_many([1] * 20)
    shuffler.collect(foreign)
    shuffler.collect(good)
    assert set(shuffler.tally.rejected) == {"wrong type", "wrong length"}
    server.receive_many(shuffler.release())
    assert server.accepted == len(good)
    assert server.rejected["another round"] == len(foreign)
    for message in HOSTILE:
        assert not server.receive(message)
        assert server.receive_many(message) == 0
    wrong = good[0].copy()
    wrong[-1] = 200
    assert not server.receive(wrong.tobytes())
    assert server.receive_many(wrong[None, :]) == 0
    assert server.rejected["out of range"] == 2
    assert server.accepted == len(good) == server.counts.sum()


def test_whatever_is_collected_is_counted() -> None:
    protocol = protocol_of(Histogram)
    good = protocol.report_many([0])[0].tobytes()
    released = memoryview(good)
    released.release()
    shuffler = protocol.shuffler()
    for one in (good, bytearray(good), memoryview(good), [memoryview(good)]):
        shuffler.collect(one)
    assert (shuffler.tally.accepted, shuffler.tally.rejected) == (4, {})
    nothing = [released, [released], np.array(5), np.zeros(3), np.void(b"x"), memoryview(np.array(2.0)), len, "text"]
    for one in nothing:
        shuffler.collect(one)  # type: ignore[arg-type]
    assert sum(shuffler.tally.rejected.values()) == len(nothing)
    assert shuffler.release().shape == (4, len(good))


def test_items_of_narrow_types_fall_back_to_any_default() -> None:
    size = 300
    protocol = protocol_of(Histogram, n_items=size, default=299, n_users=3, estimates="at_least")
    for items in (np.array([255, 0, 7], np.uint8), np.array([-1, 5, 5], np.int8), np.array([0.5, np.nan, 3], "f2")):
        expected = [int(item) if item in range(size) else 299 for item in items.tolist()]
        many, same = (protocol.report_many(given, random_state=2) for given in (items, expected))
        assert many.tobytes() == same.tobytes()
        assert (protocol.release(items) >= truth(expected, size)).all()


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_protocols_and_servers_are_saved(kind: Any) -> None:
    protocol = protocol_of(kind, epsilon=LogRatio(3), max_messages=10**5)
    server = protocol.server()
    server.receive_many(protocol.report_many([1] * 20))
    again, server_again = pickle.loads(pickle.dumps((protocol, server)))
    assert again == protocol
    assert again.max_messages == 10**5
    assert (server_again.counts == server.counts).all()


@pytest.mark.parametrize(
    "changes", [{"epsilon": 2}, {"delta": 1e-4}, {"n_users": 21}, {"round_id": "b"}, {"dropout": 0.1}]
)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_other_parameters_are_another_round(kind: Any, changes: dict[str, Any]) -> None:
    message = protocol_of(kind).report_many([1] * 50)[0]
    assert protocol_of(kind).server().receive(message.tobytes())
    server = protocol_of(kind, **changes).server()
    assert not server.receive(message.tobytes())
    assert server.rejected == {"another round": 1}


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("epsilon", [0.1, Fraction(1, 3), LogRatio(3, 1)])
def test_descriptions_are_read_back(kind: Any, epsilon: Any) -> None:
    protocol = protocol_of(kind, epsilon=epsilon, dropout="0.25", estimates="at_least", beta=0.01)
    read = kind.from_json(protocol.to_json())
    assert read == protocol
    assert hash(read) == hash(protocol)
    assert read.certified_delta == protocol.certified_delta
    assert read.epsilon == protocol.epsilon
    assert repr(read) == repr(protocol)
    assert read != protocol_of(kind)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_descriptions_that_promise_too_much_are_refused(kind: Any) -> None:
    described = json.loads(protocol_of(kind).to_json())
    for changes in ({"r": "2"}, {"delta": "1/1000000"}, {"exponent": "1/10"}, {"ratio": "3"}, {"protocol": "other"}):
        with pytest.raises(ValueError, match=r"r=|text|delta"):
            kind.from_json(json.dumps(described | changes))
    with pytest.raises(ValueError, match="text describes the protocol"):
        kind.from_json(json.dumps(described | {"protocol": "shuffle-other"}))
    absurd = [described | {"ratio": "1e99999999"}, described | {"exponent": float("inf")}, described | {"bits": 3}]
    for text in (
        "",
        "[]",
        "{}",
        "[" * 10**5,
        json.dumps({"protocol": described["protocol"]}),
        *map(json.dumps, absurd),
    ):
        with pytest.raises(ValueError, match="text is not the JSON"):
            kind.from_json(text)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be above 0"),
        ({"epsilon": 65}, ValueError, "at most 64"),
        ({"epsilon": 10**400}, ValueError, "at most 64"),
        ({"epsilon": "a"}, ValueError, "epsilon"),
        ({"epsilon": 1e-9}, ValueError, "epsilon, delta: are too small"),
        ({"delta": 0}, ValueError, "delta must be in"),
        ({"delta": 1}, ValueError, "delta must be in"),
        ({"delta": Fraction(1, 2**125)}, ValueError, "delta: are too small"),
        ({"n_users": 0}, ValueError, "n_users"),
        ({"n_users": 2.0}, TypeError, "n_users"),
        ({"n_users": 10**400}, ValueError, "n_users must be at most"),
        ({"n_users": 2**70, "max_messages": 2**90}, ValueError, "n_users must be at most"),
        ({"round_id": ""}, ValueError, "round_id"),
        ({"round_id": 3}, TypeError, "round_id"),
        ({"dropout": 1}, ValueError, "dropout"),
        ({"dropout": -0.1}, ValueError, "dropout"),
        ({"beta": 0}, ValueError, "beta"),
        ({"beta": 1}, ValueError, "beta"),
        ({"r": 20}, ValueError, "both r and p"),
        ({"p": 0.5}, ValueError, "both r and p"),
        ({"r": 1, "p": 0.5}, ValueError, "r: must be > 1"),
        ({"r": 2, "p": 0.5}, ValueError, "choose a larger r"),
        ({"estimates": "below"}, ValueError, "estimates"),
        ({"estimates": None}, ValueError, "estimates"),
        ({"max_messages": 30}, BudgetError, "max_messages=30|at most 30"),
        ({"max_messages": 0}, ValueError, "max_messages"),
    ],
)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_refusals(kind: Any, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        protocol_of(kind, **changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_items": 1}, ValueError, "n_items"),
        ({"n_items": 2**40}, ValueError, "n_items must be at most"),
        ({"default": 4}, ValueError, "default must be an item"),
        ({"default": -1}, ValueError, "default"),
        ({"n_items": 10**5, "n_users": 10**5}, BudgetError, "estimates='at_least'"),
    ],
)
def test_refusals_of_items(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        protocol_of(Histogram, **changes)


def test_a_round_needs_all_its_users() -> None:
    with pytest.raises(ValueError, match="20 users; got 3"):
        protocol_of(Mode).release([0, 1, 2])


@pytest.mark.parametrize("items", ["1" * 20, b"1" * 20, dict.fromkeys(range(20), 1), 1, None])
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_round_needs_a_sequence_of_items(kind: Any, items: Any) -> None:
    for give in (protocol_of(kind).release, protocol_of(kind).report_many):
        with pytest.raises(TypeError, match="items must be a NumPy array, a list or another sequence"):
            give(items)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_types_are_refused_where_no_value_can_change_them(kind: Any) -> None:
    protocol = protocol_of(kind)
    for items in (pa.array([0] * 20, type=pa.duration("s")), pa.array([0] * 20, type=pa.date32())):
        for give in (protocol.release, protocol.report_many):
            with pytest.raises(TypeError, match=r"items is of type .*, and numbers can be read of none of its values"):
                give(items)
    default = protocol.report_many([None] * 20, random_state=1)
    masked = np.ma.masked_array([1] * 20, mask=1)  # type: ignore[no-untyped-call]
    for items in (np.array([1] * 20, "m8[s]"), masked):
        assert (protocol.report_many(items, random_state=1) == default).all()
    ones = protocol.report_many([1] * 20, random_state=1)
    for items in (np.array(["1"] * 20), pa.array(["1"] * 20)):
        assert (protocol.report_many(items, random_state=1) == ones).all()
    with pytest.raises(ValueError, match="items should be a 1d array"):
        protocol.report_many(np.zeros((20, 2)))


def test_missing_users_move_the_estimates_to_the_documented_side() -> None:
    for estimates in ("at_least", "at_most"):
        protocol = protocol_of(NegativeBinomialSum, estimates=estimates, dropout="0.25")
        server = protocol.server()
        server.receive_many(protocol.report_many([1] * 15))
        assert server.estimate() >= 15 if estimates == "at_least" else server.estimate() <= 15 + 5


def test_the_loopback_example(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "shuffle_loopback.py"
    runpy.run_path(str(path))["main"](240)
    out = capsys.readouterr().out
    assert "240 clients and 8 strangers" in out
    assert "the shuffler dropped {'wrong length': " in out
    assert "'not a message': " in out
    assert "'another round': 2" in out
    # 144 clients have item 3 for sure. Noise hides more than 96 of them with a probability below 1e-9; of the other 96
    # clients, 48 more have one other item than have item 3 with a probability below 1e-11.
    assert "selected: 3" in out
