"""The local model: public descriptions, what randomizers lose and draw, clients, servers, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import pickle
import runpy
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import local as oracle
from support.distribution_draws import fits
from userdp import LogRatio, _core
from userdp.algorithms import finite_algorithm
from userdp.audit import audit_user_level
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

LN3 = LogRatio(3)
ITEMS = (KRandomizedResponse, SubsetSelection, HadamardResponse)


def small(epsilon: Any = LN3, n_users: int = 2) -> Iterator[LocalProtocol]:
    """Every randomizer of 2 to 6 items, subsets of every size."""
    public: dict[str, Any] = {"epsilon": epsilon, "n_users": n_users, "round_id": "test"}
    for k in range(2, 7):
        yield KRandomizedResponse(n_items=k, **public)
        yield HadamardResponse(n_items=k, **public)
        for w in range(1, k):
            yield SubsetSelection(n_items=k, subset_size=w, **public)


def bits(epsilon: Any = LN3, n_bits: int = 2, n_users: int = 2) -> BitwiseMajority:
    return BitwiseMajority(epsilon=epsilon, n_bits=n_bits, n_users=n_users, round_id="test")


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
    masked = np.ma.masked_array([1, 2], mask=[False, True])  # type: ignore[no-untyped-call]
    for odd, codes in ((masked, [1, -1]), (np.array([1, 2], "m8[s]"), [-1, -1]), (np.array(["1", "x"]), [1, -1])):
        assert in_range(protocol._read(odd, "items"), protocol) == codes


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


CASES = json.loads((Path(__file__).parents[1] / "data" / "correlated_sampling" / "local.json").read_text())["cases"]
E = Fraction(3)
ROUNDING = Fraction(1, 2**120)
"""More than a coin of 128 bits differs from the ideal one here."""
PROTOCOLS = list(small())


def distribution(protocol: LocalProtocol, item: Any, slot: int = 0) -> dict[Any, Fraction]:
    pmf = protocol.pmf(item, slot)
    return dict(zip(pmf.outputs, pmf.fractions(), strict=True))


def channel(protocol: Any) -> oracle.Channel:
    return [distribution(protocol, item) for item in range(protocol.n_items)]


def ideal(protocol: Any, e: Fraction) -> oracle.Channel:
    if isinstance(protocol, HadamardResponse):
        return oracle.hadamard_response(protocol.n_items, e)
    if isinstance(protocol, SubsetSelection):
        return oracle.subset_selection(protocol.n_items, protocol.subset_size, e)
    return oracle.randomized_response(protocol.n_items, e)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_pmfs_are_the_definitions_up_to_the_last_bits_of_a_coin(protocol: Any) -> None:
    for stated, defined in zip(channel(protocol), ideal(protocol, E), strict=True):
        assert list(stated) == list(defined)
        assert all(abs(stated[y] - defined[y]) <= ROUNDING for y in stated)


def test_shared_cases() -> None:
    kinds = Counter(case["kind"] for case in CASES)
    assert kinds == {"hadamard_response": 2, "rappor": 1}
    for case in CASES:
        expected = case["expected"]
        if case["kind"] == "rappor":
            # Symmetric unary coding is one binary response of half the epsilon for each bit of an item.
            half = Fraction(case["input"]["exp_half_eps"])
            bit = KRandomizedResponse(epsilon=LogRatio(int(half)), n_items=2, n_users=1, round_id="case")
            unary = oracle.symmetric_unary(case["input"]["k"], half)
            assert oracle.largest_ratio(unary) == Fraction(expected["max_ratio"])
            for key, mass in expected["row0"].items():
                drawn = math.prod(distribution(bit, int(place == 0))[int(y)] for place, y in enumerate(key))
                assert abs(drawn - Fraction(mass)) <= ROUNDING
                assert unary[0][tuple(map(int, key))] == Fraction(mass)
            continue
        k, e = case["input"]["k"], Fraction(case["input"]["exp_eps"])
        protocol = HadamardResponse(epsilon=LogRatio(int(e)), n_items=k, n_users=1, round_id="case")
        assert protocol.n_symbols == expected["K"]
        for u, row in enumerate(expected["rows"]):
            stated = distribution(protocol, u)
            assert all(abs(stated[y] - Fraction(mass)) <= ROUNDING for y, mass in enumerate(row))
        assert 0 <= Fraction(expected["max_ratio"]) - protocol.certified_ratio <= ROUNDING
        debias = 1 / (2 * protocol.keep_probability - 1)
        assert abs(debias - Fraction(expected["debias"])) <= ROUNDING


# --- privacy


@pytest.mark.parametrize("epsilon", ["0.001", "1/2", 1, LogRatio(2), LogRatio(7, 3), 5, 40])
def test_the_largest_ratio_is_e_to_the_epsilon_and_never_above(epsilon: Any) -> None:
    worst = Fraction(0)
    for protocol in small(epsilon):
        ratio = oracle.largest_ratio(channel(protocol))
        assert ratio == protocol.certified_ratio
        worst = max(worst, ratio)
        exact = protocol._level
        slack = 1 - Fraction(1, 10**9)
        if exact.exponent == 0:
            assert exact.ratio * slack <= ratio <= exact.ratio
        else:
            low, high = _core.exp_bounds(_core.Level(Fraction(1), exact.exponent), 400)
            assert high * slack <= ratio <= low
    assert bits(epsilon).certified_ratio <= worst


def transcript_of(protocol: LocalProtocol) -> Any:
    """What two users send, as one algorithm of the audit."""
    outputs = list(product(protocol.pmf(0).outputs, repeat=2))

    @finite_algorithm(outputs=outputs)
    def send(dataset: Any) -> list[Fraction]:
        first, second = (distribution(protocol, user[0], slot) for slot, user in enumerate(dataset))
        return [first[a] * second[b] for a, b in outputs]

    return send


AUDITED = [
    KRandomizedResponse(epsilon=LogRatio(3), n_items=4, n_users=2, round_id="audit"),
    SubsetSelection(epsilon=LogRatio(3), n_items=4, n_users=2, round_id="audit", subset_size=2),
    HadamardResponse(epsilon=LogRatio(3), n_items=4, n_users=2, round_id="audit"),
    bits(),
]


@pytest.mark.parametrize("protocol", AUDITED, ids=repr)
def test_two_users_transcript_is_private_and_that_of_twice_the_epsilon_is_not(protocol: Any) -> None:
    universe = list(product((0, 1), repeat=2)) if isinstance(protocol, BitwiseMajority) else [*range(4)]
    asked: dict[str, Any] = {"universe": universe, "n_users": 2, "n_examples": 1, "delta": 0}
    report = audit_user_level(transcript_of(protocol), epsilon=LogRatio(3), **asked)
    assert report.holds
    print(f"worst delta {report.worst_delta} of {report.pairs} pairs")
    # Nothing is wasted: a little less than epsilon fails.
    assert not audit_user_level(transcript_of(protocol), epsilon=LogRatio(2999, 1000), **asked).holds
    parameters: dict[str, Any] = {**protocol._parameters, "n_users": 2, "round_id": "audit"}
    weak = type(protocol)(epsilon=LogRatio(9), **parameters)
    assert not audit_user_level(transcript_of(weak), epsilon=LogRatio(3), **asked).holds


def test_bits_of_ranks_lose_more_and_bits_of_slots_do_not() -> None:
    """User "a" is replaced by user "z". As ranks of sorted ids, slots of all others move, and with them their bits."""
    e, n_bits = Fraction(5, 2), 3
    bit = oracle.randomized_response(2, e)
    others = {"b": (0, 1, 0), "c": (0, 0, 1), "d": (1, 0, 0)}
    before, after = {"a": (1, 0, 0), **others}, {"z": (0, 0, 0), **others}

    def ratio(slots: Callable[[Iterable[str]], dict[str, int]]) -> Fraction:
        pmfs = []
        for users in (before, after):
            of_slot = {slot: users[user][slot % n_bits] for user, slot in slots(users).items()}
            pmfs.append(oracle.transcripts([bit] * 4, [of_slot[slot] for slot in range(4)]))
        return max(max(pmfs[0][y] / pmfs[1][y], pmfs[1][y] / pmfs[0][y]) for y in pmfs[0])

    def ranks(users: Iterable[str]) -> dict[str, int]:
        return {user: rank for rank, user in enumerate(sorted(users))}

    enrolled = {"a": 0, "b": 1, "c": 2, "d": 3, "z": 0}
    assert ratio(lambda users: {user: enrolled[user] for user in users}) == e
    assert ratio(ranks) == e**4


# --- unbiasedness and variance, by listing all symbols


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_estimates_are_exactly_unbiased_with_the_stated_variance(protocol: Any) -> None:
    pmfs, k = channel(protocol), protocol.n_items
    p, q = protocol.keep_probability, protocol.other_probability
    matrix = oracle.support_matrix(pmfs, protocol.supports)
    estimates = [[(entry - q) / (p - q) for entry in row] for row in matrix]
    assert estimates == [[Fraction(u == v) for v in range(k)] for u in range(k)]
    for u, v in product(range(k), repeat=2):
        variance = oracle.variance_of_support(pmfs, protocol.supports, u, v) / (p - q) ** 2
        assert variance == protocol.variance(int(u == v), 1)
    assert protocol.squared_error == sum(protocol.variance(int(u == 0), 1) for u in range(k))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_the_separation_of_two_items_is_what_users_needed_takes_it_for(protocol: Any) -> None:
    pmfs, k = channel(protocol), protocol.n_items
    plus, minus, neither = protocol.separation()

    def mass(holder: int, yes: int, no: int) -> Fraction:
        return sum(
            (p for y, p in pmfs[holder].items() if protocol.supports(y, yes) and not protocol.supports(y, no)),
            Fraction(0),
        )

    for h, v in combinations(range(k), 2):
        assert (mass(h, h, v), mass(h, v, h)) == (plus, minus)
        for other in set(range(k)) - {h, v}:
            assert mass(other, h, v) == mass(other, v, h) <= neither


# --- drawing


def rows_of(protocol: Any) -> list[Any]:
    return [*range(protocol.n_items)] if hasattr(protocol, "n_items") else [(0, 1), (1, 0)]


@pytest.mark.statistical
@pytest.mark.parametrize("protocol", [*PROTOCOLS, bits()], ids=repr)
def test_drawing_equals_the_pmf(protocol: Any) -> None:
    """Seeded draws of every item: chi-square, with a false-alarm rate of 1e-6 for each."""
    draws = 4000
    for item in rows_of(protocol):
        stated = distribution(protocol, item)
        value = np.repeat(protocol._value(item, 0), draws)
        encoded = protocol._encode(protocol._core_randomizer.report_many(_core.Source(7), value))
        counts = Counter(protocol._symbol(row) for row in encoded)
        assert set(counts) <= set(stated)
        assert fits([counts[y] for y in stated], list(stated.values()), draws)


def test_chi_square_sees_half_the_noise() -> None:
    protocol = KRandomizedResponse(epsilon=LogRatio(3), n_items=4, n_users=2, round_id="weak")
    weak = KRandomizedResponse(epsilon=LogRatio(9), n_items=4, n_users=2, round_id="weak")
    draws = weak._core_randomizer.report_many(_core.Source(7), np.zeros(4000, dtype=np.int64))
    stated = distribution(protocol, 0)
    assert not fits(np.bincount(draws, minlength=4).tolist(), list(stated.values()), 4000)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_every_outcome_of_the_coin_and_of_the_uniform_draw(k: int) -> None:
    """Listed bytes: a symbol for each pair of one side of the coin and one uniform value; their masses are the pmf."""
    public: dict[str, Any] = {"epsilon": LogRatio(3), "n_items": k, "n_users": 1, "round_id": "listed"}
    response, hadamard = KRandomizedResponse(**public), HadamardResponse(**public)
    for protocol, values in ((response, k - 1), (hadamard, hadamard.n_symbols)):
        keep = protocol._core_randomizer.favor
        sides = {0: keep, keep - 1: 0, keep: 2**128 - keep, 2**128 - 1: 0}
        for item in range(k):
            masses: Counter[int] = Counter()
            for (coin, weight), value in product(sides.items(), range(values)):
                # The middle of the words that stand for a value; a column is in the low bits.
                word = value if protocol is hadamard else (2 * value + 1) * 2**127 // values
                bytes_ = coin.to_bytes(16, "little") + word.to_bytes(16, "little")
                source = _core.Source.listed(bytes_)
                masses[protocol._draw(source, item)] += weight
            assert {y: Fraction(m, values * 2**128) for y, m in masses.items()} == distribution(protocol, item)


@pytest.mark.parametrize(("k", "w"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 4)])
def test_every_outcome_of_the_coin_and_of_a_subset(k: int, w: int) -> None:
    protocol = SubsetSelection(epsilon=LogRatio(3), n_items=k, n_users=1, round_id="listed", subset_size=w)
    keep = protocol._core_randomizer.favor
    bounds = range(k - 1, 0, -1)
    each = Fraction(1, math.factorial(k - 1) * 2**128)
    for item in range(k):
        masses: Counter[tuple[int, ...]] = Counter()
        for (coin, weight), values in product(((0, keep), (2**128 - 1, 2**128 - keep)), product(*map(range, bounds))):
            words = [(2 * value + 1) * 2**31 // bound for value, bound in zip(values, bounds, strict=True)]
            bytes_ = coin.to_bytes(16, "little") + b"".join(word.to_bytes(4, "little") for word in words)
            masses[protocol._draw(_core.Source.listed(bytes_), item)] += weight
        assert {y: m * each for y, m in masses.items()} == distribution(protocol, item)


def test_rejected_words_of_a_subset_are_replaced_together() -> None:
    protocol = SubsetSelection(epsilon=LogRatio(3), n_items=4, n_users=1, round_id="listed", subset_size=2)
    coin = bytes(16)
    # 2^32 mod 3 = 1: of three others, the word 0 is rejected.
    rejected = bytes(12)
    accepted = b"".join(word.to_bytes(4, "little") for word in (2**31, 2**31, 0))
    with_rejection = protocol._draw(_core.Source.listed(coin + rejected + accepted), 1)
    assert with_rejection == protocol._draw(_core.Source.listed(coin + accepted), 1)
    with pytest.raises(OSError, match="used up"):
        protocol._draw(_core.Source.listed(coin + rejected), 1)


@pytest.mark.parametrize("k", [63, 64, 65, 127, 128, 129, 200])
def test_subsets_of_several_words_hold_the_item_as_often_as_the_coin_says(k: int) -> None:
    protocol = SubsetSelection(epsilon=LogRatio(3), n_items=k, n_users=1, round_id="words")
    always, never = bytes(16), b"\xff" * 16
    for item in (0, 1, 62, 63, 64, 65, 126, 127, 128, k - 1):
        if item < k:
            words = _core.Source(item).below(2 ** (32 * (k - 1))).to_bytes(4 * (k - 1), "little")
            with_it = protocol._draw(_core.Source.listed(always + words), item)
            without = protocol._draw(_core.Source.listed(never + words), item)
            assert item in with_it
            assert item not in without
            assert len(with_it) == len(without) == protocol.subset_size


# --- items that are none


@pytest.mark.parametrize("kind", [KRandomizedResponse, SubsetSelection, HadamardResponse])
def test_what_is_no_item_is_the_default(kind: Any) -> None:
    protocol = kind(epsilon=LogRatio(3), n_items=5, n_users=1, round_id="bad", default=3)
    odd: list[Any] = [
        -1,
        5,
        2**63,
        -(2**70),
        1.5,
        float("nan"),
        None,
        "two",
        b"",
        1j,
        np.complex64(2 + 1j),
        [1],
        object(),
        np.array([1, 2]),
    ]
    for item in odd:
        assert protocol.pmf(item) == protocol.pmf(3)
    for item in (1, 1.0, True, np.bool_(1), np.int8(1), np.float16(1), "1", b"01", "true", np.complex64(1)):
        assert protocol.pmf(item) == protocol.pmf(1) != protocol.pmf(3)
    numbers = np.array([-1, 5, 2**62, -(2**63)])
    for source in (3, 4):
        drawn = protocol._core_randomizer.report_many(_core.Source(source), numbers)
        default = protocol._core_randomizer.report_many(_core.Source(source), np.full(4, 3))
        assert np.array_equal(drawn, default)


def test_what_is_no_sequence_of_bits_is_zeros() -> None:
    protocol = bits(n_bits=2, n_users=20)
    odd: list[Any] = [None, 1, [1], [1, 2], [1, -1], [1, 0.5], "11", [[1], [1, 1]], [None, 1], object(), {1: 1, 0: 1}]
    fine: list[Any] = [[0, 1], (True, True), np.array([1, 1], dtype=np.uint8), [1.0, 1.0], [0, 1, 1]]
    for item, bit in [*((item, 0) for item in odd), *((item, 1) for item in fine)]:
        assert protocol._value(item, 1).tolist() == [bit]
    assert chosen(protocol, odd + fine, np.ones(16)) == [0] * len(odd) + [1] * len(fine)
    rows = np.array([[0, 1], [1, 1], [2, 1], [1, 0]])
    for same in (
        rows,
        rows.tolist(),
        np.asfortranarray(rows),
        rows.astype(np.float32),
        rows.astype(">i2"),
        rows[:, ::1],
    ):
        assert chosen(protocol, same, np.array([1, 1, 1, 0])) == [1, 1, 0, 1]
    assert chosen(protocol, np.array([[-1, 1], [2**40, 1], [2**63 - 1, 1]]), np.ones(3)) == [0, 0, 0]
    assert chosen(protocol, rows.astype(str), np.array([1, 1, 1, 0])) == [1, 1, 0, 1]
    assert chosen(protocol, rows.astype(complex), np.array([1, 1, 1, 0])) == [1, 1, 0, 1]
    for wrong in (np.ones((2, 3), dtype=int), np.ones(2)):
        with pytest.raises(ValueError, match=r"items"):
            protocol.report_many(wrong, slots=[0, 1])


def chosen(protocol: Any, items: Any, slots: Any) -> list[int]:
    """The bits that the users in these slots randomize."""
    found: list[int] = protocol._values_of_slots(protocol._read(items, "items"), slots.astype(np.int64)).tolist()
    return found


@pytest.mark.parametrize("n_bits", [1, 3, 64, 2**22 + 1])
def test_bits_of_many_blocks_are_those_of_their_rows(n_bits: int) -> None:
    users = 7
    rows = np.random.default_rng(n_bits).integers(0, 2, (users, n_bits))
    rows[3, n_bits // 2] = 2
    slots = np.random.default_rng(5).integers(0, 2**32, users)
    expected = [0 if user == 3 else int(rows[user, slots[user] % n_bits]) for user in range(users)]
    assert chosen(bits(n_bits=n_bits, n_users=2**24), rows, slots) == expected


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
