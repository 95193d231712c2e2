"""Public randomness, against its definition in plain Python."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from oracle import public_randomness as public
from oracle.statistics import hoeffding_slack
from userdp import BudgetError
from userdp.public_randomness import CorrelatedSampler, PublicSeed, SharedOffsetRounding

SEED = bytes(range(32))


def test_blocks_and_words_are_those_documented():
    seed = PublicSeed(SEED)
    for label, i, j in [("", 0, 0), ("a", 0, 1), ("a", 1, 0), ("größe", 2**64 - 1, 2**63), ("x" * 200, 7, 7)]:
        assert seed.block(label, i, j) == public.block(SEED, label, i, j)
    places = [0, 1, 7, 8, 63, 64, 1023, 1024, 2047, 65_535, 65_536, 65_543, 69_999]
    keys = seed.race_keys("race", 5, 70_000)
    for place in places:
        assert keys[place] == public.rounded_key(public.stream_word(SEED, "race", 5, place))


def test_chacha20_is_that_of_the_standard():
    # RFC 8439, appendix A.1: zero key and nonce, counters 0 and 1.
    first, second = (public.chacha20_block(bytes(32), counter) for counter in (0, 1))
    assert first.hex().startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert second.hex().startswith("9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed")


def test_addresses_are_told_apart():
    seed = PublicSeed(SEED)
    addresses = [("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("", 0, 0), ("a\0", 0, 0), ("aa", 0, 0), ("A", 0, 0)]
    assert len({seed.block(*address) for address in addresses}) == len(addresses)
    assert PublicSeed(bytes(32)).block("a") != seed.block("a")


def test_keys_are_pinned():
    keys = PublicSeed(SEED).race_keys("pinned", 3, 4)
    assert [key.hex() for key in keys.tolist()] == [
        "0x1.f0322119ba267p-1",
        "-0x1.26a2d5a0b650dp-2",
        "-0x1.4c1096ee7c3a8p-2",
        "-0x1.7b80f6839a6c3p-1",
    ]
    assert (
        PublicSeed(SEED).block("pinned", 3, 1).hex()
        == "40db07369e8439411adb3050652a4350d6ce3b27d06d3046ea794ca57abb84f9"
    )


def test_keys_do_not_depend_on_how_many_are_asked_for():
    seed = PublicSeed(SEED)
    many = seed.race_keys("r", 0, 150_000)
    for count in (0, 1, 9, 1024, 1025, 16_383, 16_384, 65_536, 65_537):
        np.testing.assert_array_equal(seed.race_keys("r", 0, count), many[:count])


def test_keys_mean_what_they_say():
    words = [0, 1, 2, 3, 2**32, 2**63, 2**64 - 1, 2**64 - 2, 0x4AFB0CCC06219B7B, *(3**k for k in range(1, 40, 3))]
    for word in words:
        assert public.rounded_key(word) == pytest.approx(public.exact_key(word), rel=2.0**-49, abs=2.0**-49)


@pytest.mark.statistical
def test_keys_have_the_pmf_of_minus_the_logarithm_of_an_exponential_variable():
    trials = 200_000
    keys = PublicSeed(SEED).race_keys("pmf", 0, trials)
    for cut in (-2.0, -1.0, 0.0, 1.0, 3.0, 6.0):
        # P[-ln E <= cut] = P[E >= e^-cut]
        assert abs(np.mean(keys <= cut) - math.exp(-math.exp(-cut))) < hoeffding_slack(trials)


def test_generators_and_offsets_are_addressed():
    seed = PublicSeed(SEED)
    draws = [seed.generator(label, i).integers(2**63) for label, i in [("a", 0), ("a", 1), ("b", 0), ("a", 0)]]
    assert draws[0] == draws[3]
    assert len(set(draws)) == 3
    offset = seed.offset("o", 9)
    assert offset == Fraction(int.from_bytes(public.block(SEED, "o", 9), "little"), 2**256)


def test_seeds_are_values():
    seed = PublicSeed(SEED)
    same = [PublicSeed(seed.hex), PublicSeed(seed), PublicSeed(bytearray(SEED)), pickle.loads(pickle.dumps(seed))]
    assert all(other == seed and hash(other) == hash(seed) for other in same)
    assert bytes(seed) == SEED
    assert eval(repr(seed)) == seed
    assert PublicSeed.random() != PublicSeed.random()
    assert seed != SEED


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (None, TypeError, "PublicSeed.random"),
        (b"short", ValueError, "32 bytes"),
        (bytes(33), ValueError, "32 bytes"),
        ("00", ValueError, "32 bytes"),
        ("xy" * 32, ValueError, "hexadecimal"),
        (17, TypeError, "32 bytes"),
    ],
)
def test_what_is_no_seed_is_refused(value, error, words):
    for make in (PublicSeed, CorrelatedSampler, lambda seed: SharedOffsetRounding(seed, intervals=3)):
        with pytest.raises(error, match=words):
            make(value)


@pytest.mark.parametrize(("i", "error"), [(-1, ValueError), (2**64, ValueError), (0.0, TypeError), (True, TypeError)])
def test_what_is_no_address_is_refused(i, error):
    seed = PublicSeed(SEED)
    for use in (seed.block, seed.offset, seed.generator, lambda label, i: seed.race_keys(label, i, 1)):
        with pytest.raises(error, match="i must be"):
            use("a", i)


@pytest.mark.parametrize(("label", "error"), [(b"a", TypeError), ("a\udc80", ValueError)])
def test_what_is_no_label_is_refused(label, error):
    seed = PublicSeed(SEED)
    for use in (
        seed.block,
        seed.generator,
        lambda label: seed.race_keys(label, 0, 1),
        lambda label: CorrelatedSampler(seed, label=label),
        lambda label: SharedOffsetRounding(seed, intervals=3, label=label),
    ):
        with pytest.raises(error, match="label must"):
            use(label)


def test_too_many_keys_are_refused():
    for count in (2**30 + 1, 2**70):
        with pytest.raises(BudgetError, match=r"count: .* no list of keys"):
            PublicSeed(SEED).race_keys("a", 0, count)
