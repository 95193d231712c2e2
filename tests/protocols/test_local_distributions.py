"""Local randomizers lose exactly what they certify, and draw from the distribution they state."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import local as oracle
from support.distribution_draws import fits
from support.local_cases import bits, small
from userdp import LogRatio, _core
from userdp.algorithms import finite_algorithm
from userdp.audit import audit_user_level
from userdp.protocols.local import (
    BitwiseMajority,
    HadamardResponse,
    KRandomizedResponse,
    LocalProtocol,
    SubsetSelection,
)

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
    plus, minus, neither = protocol._separation()

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
        "2",
        b"",
        1j,
        np.complex64(2),
        [1],
        object(),
        np.array([1, 2]),
    ]
    for item in odd:
        assert protocol.pmf(item) == protocol.pmf(3)
    for item in (1, 1.0, True, np.bool_(1), np.int8(1), np.float16(1)):
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
    for wrong in (np.ones((2, 3), dtype=int), np.ones(2), np.ones((2, 2), dtype=complex)):
        with pytest.raises(ValueError, match=r"items|Complex"):
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
