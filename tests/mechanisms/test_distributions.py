"""Coins, uniform integers, indices and subsets: listed bits against definitions, copies, refusals of bad input."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, combinations
from typing import Any

import numpy as np
import pytest

from oracle import distributions as oracle
from support.distribution_draws import fits, listed, seeded, words_of
from userdp import _core
from userdp.exceptions import BudgetError
from userdp.mechanisms import (
    BiasedCoin,
    Categorical,
    DiscreteLaplace,
    ExponentialMechanism,
    Geometric,
    NegativeBinomial,
    Pmf,
    RandomSubset,
    TruncatedDiscreteLaplace,
    UniformInteger,
)

F = Fraction
WORD = 2**128


# --- coins

COINS: list[tuple[dict[str, Any], Callable[[int], tuple[Fraction, Fraction]]]] = [
    ({"probability": 0}, lambda _: (F(0), F(0))),
    ({"probability": 1}, lambda _: (F(1), F(1))),
    ({"probability": "1/3"}, lambda _: (F(1, 3), F(1, 3))),
    ({"probability": 0.1}, lambda _: (F(0.1), F(0.1))),
    ({"probability": F(5, 8)}, lambda _: (F(5, 8), F(5, 8))),
    ({"probability": F(1, 2**200)}, lambda _: (F(1, 2**200), F(1, 2**200))),
    ({"probability": 1 - F(1, 3**200)}, lambda _: (1 - F(1, 3**200), 1 - F(1, 3**200))),
    ({"log_probability": 0}, lambda _: (F(1), F(1))),
    ({"log_probability": -1}, lambda bits: oracle.exp_of_minus(F(1), bits)),
    ({"log_probability": "-1000"}, lambda bits: oracle.exp_of_minus(F(1000), bits + 1500)),
    ({"log_probability": F(-1, 10**30)}, lambda bits: oracle.exp_of_minus(F(1, 10**30), bits)),
    ({"log_probability": -(2**-60)}, lambda bits: oracle.exp_of_minus(F(1, 2**60), bits)),
]


@pytest.mark.parametrize(("arguments", "power"), COINS, ids=[str(arguments) for arguments, _ in COINS])
def test_tosses_of_listed_bits(arguments: dict[str, Any], power: Any) -> None:
    coin = BiasedCoin(**arguments)
    source = random.Random(1)
    leading = [min(math.floor(power(128 * n + 300)[0] * 2 ** (128 * n)), 2 ** (128 * n) - 1) for n in (1, 2, 3)]
    cases = [[word] for word in (0, 1, WORD - 1, *(source.getrandbits(128) for _ in range(50)))]
    cases += [[0] * 12, [*[0] * 12, 1]]
    cases += [[leading[0] + step] for step in (-1, 1, 2)]
    # The same first 128 bits, then one side or the other, close to p and far from it; and 256 bits that are the same.
    cases += [[leading[0], word] for word in (0, WORD - 1, source.getrandbits(128))]
    cases += [[*divmod(leading[1] + step, WORD)] for step in (-1, 1)]
    cases += [[*divmod(leading[1], WORD), word] for word in (0, WORD - 1)]
    cases += [[leading[2] // WORD**2, leading[2] // WORD % WORD, (leading[2] + step) % WORD] for step in (-1, 1)]
    outcomes = set()
    for words in cases:
        if not all(0 <= word < WORD for word in words):
            continue
        expected = oracle.is_below(words, power(2000))
        # Bits that the definition needs no more are never read wrongly: more zeros and ones change nothing.
        for more in ([0, 0, 0], [WORD - 1, WORD - 1, 0]):
            if expected is None:
                continue
            assert coin._draw(listed([*words, *more])) is expected, words
            outcomes.add(expected)
    assert outcomes == ({True, False} if power(700)[1] > 0 and power(700)[0] < 1 else {power(700)[0] == 1})


def test_ties_are_carried_on() -> None:
    # 1/3 is 0.0101...: its leading words are all the same, and a tie lasts as long as they do.
    third = WORD // 3
    coin = BiasedCoin(probability="1/3")
    for ties in (1, 2, 5):
        assert coin._draw(listed([third] * ties + [third - 1])) is True
        assert coin._draw(listed([third] * ties + [third + 1])) is False
        with pytest.raises(OSError, match="used up"):
            coin._draw(listed([third] * ties))
    # What the first 128 bits decide needs no more.
    assert coin._draw(listed([third - 1])) is True
    assert coin._draw(listed([third + 1])) is False
    # In an array a tie takes its bits behind those of its block.
    tosses = coin._draw_many(listed([third, third - 1, third + 1, third, third + 1, third - 1]), (4,))
    assert tosses.tolist() == [False, True, False, True]


def test_certain_coins() -> None:
    assert set(seeded(BiasedCoin(probability=1), 1000, 1).tolist()) == {True}
    assert set(seeded(BiasedCoin(probability=0), 1000, 1).tolist()) == {False}
    assert BiasedCoin(probability=1)._draw(listed([WORD - 1, WORD - 1])) is True
    assert BiasedCoin(probability=0)._draw(listed([0, 0])) is False
    # e^-x of huge x: its leading bits are zeros.
    assert BiasedCoin(log_probability="-1e300")._draw(listed([1])) is False
    assert BiasedCoin(log_probability="-1e300")._draw(listed([0, 0, 1])) is False


def test_probabilities_of_coins() -> None:
    assert BiasedCoin(probability="0.25").probability == F(1, 4)
    assert BiasedCoin(probability=0.1).probability == F(0.1)
    assert BiasedCoin(probability="1/3").pmf() == Pmf((False, True), (2, 1))
    assert BiasedCoin(log_probability=0).pmf() == Pmf((False, True), (0, 1))
    for x in (F(1), F(1, 10**20), F(700), F(740), F(10**6)):
        bounds: Any = BiasedCoin(log_probability=-x).probability
        low, high = oracle.exp_of_minus(min(x, F(2000)), 4000)
        assert bounds.lower <= low
        assert high <= bounds.upper <= math.nextafter(bounds.lower, 1)


def test_tosses_factor() -> None:
    # P[U < e^-(x + y)] = e^-x e^-y: the leading bits of the sum lie within the product of enclosures.
    source = random.Random(3)
    for _ in range(50):
        x, y = (F(source.randrange(1, 10**6), 10 ** source.randrange(5, 9)) for _ in range(2))
        low, high = (a * b for a, b in zip(oracle.exp_of_minus(x, 300), oracle.exp_of_minus(y, 300), strict=True))
        coin = BiasedCoin(log_probability=-(x + y))
        first = math.floor(low * WORD)
        assert first == math.floor(high * WORD)
        assert coin._draw(listed([first - 1])) is True
        assert coin._draw(listed([first + 1])) is False


# --- uniform integers


def bounds_to_try() -> list[int]:
    source = random.Random(4)
    chosen = [1, 2, 3, 6, 7, 2**32, 2**63 + 1, 3 * 2**62, 2**64 - 1, 2**64]
    return [*chosen, *(source.randrange(1, 2**64) for _ in range(20))]


@pytest.mark.parametrize("bound", bounds_to_try())
def test_every_word_maps_as_defined(bound: int) -> None:
    low = -(2**63)
    distribution = UniformInteger(low=low, high=low + bound - 1)
    source = random.Random(bound)
    values = {0, bound - 1, *(source.randrange(bound) for _ in range(20))}
    firsts = [-(-value * WORD // bound) for value in values]
    words = [0, WORD - 1, *(source.getrandbits(128) for _ in range(20))]
    words += [first + step for first in firsts for step in (-1, 0, 1) if 0 <= first + step < WORD]
    spare = [WORD - 1, 5]  # the last word is never void
    for word in words:
        assert distribution._draw(listed([word, *spare])) == low + oracle.uniform(bound, iter([word, *spare]))
    # In an array a void word is replaced by words behind its block.
    behind = spare * len(words)
    more = iter(behind)
    expected = [low + oracle.uniform(bound, iter([word]) if is_accepted(bound, word) else more) for word in words]
    assert distribution._draw_many(listed([*words, *behind]), (len(words),)).tolist() == expected


def is_accepted(bound: int, word: int) -> bool:
    try:
        oracle.uniform(bound, iter([word]))
    except AssertionError:
        return False
    return True


def test_void_words_are_skipped() -> None:
    # 2^128 = 1 modulo 3: one word is void, the first of the value 0.
    distribution = UniformInteger(low=0, high=2)
    assert distribution._draw(listed([0, 0, 0, WORD - 1])) == 2
    with pytest.raises(OSError, match="used up"):
        distribution._draw(listed([0, 0]))
    assert distribution._draw(listed([1])) == 0


@pytest.mark.statistical
def test_uniform_draws() -> None:
    for low, high in [(1, 6), (-3, 3), (0, 999)]:
        distribution = UniformInteger(low=low, high=high)
        counts = np.bincount(seeded(distribution, 1_000_000, 11) - low).tolist()
        assert fits(counts, distribution.pmf().fractions(), 1_000_000)
        uneven = [mass * (F(9, 10) if i % 2 else F(11, 10)) for i, mass in enumerate(distribution.pmf().fractions())]
        assert not fits(counts, uneven, 1_000_000)
    whole = UniformInteger(low=-(2**63), high=2**63 - 1)
    values = seeded(whole, 1000, 1)
    assert [value + 2**63 for value in values.tolist()] == [word >> 64 for word in words_of(1, 1000)]
    assert seeded(UniformInteger(low=5, high=5), 3, 1).tolist() == [5, 5, 5]
    with pytest.raises(BudgetError, match="18446744073709551616"):
        whole.pmf()


# --- indices


@pytest.mark.parametrize(
    "weights",
    [
        [1],
        [3, 1],
        [0, 3, 0, 1, 2**3, 0],
        [0, 0, 1],
        [2**127, 2**127],
        [2**128 - 1, 1],
        [1, 2**128 - 1, 0, 0],
        [2**100 + 1, 3, 2**90],
        [F(1, 3), F(1, 7), F(2, 5)],
        [1] * 1000,
    ],
    ids=lambda weights: f"{len(weights)} from {str(weights[0])[:8]}",
)
def test_indices_of_listed_words(weights: list[Any]) -> None:
    distribution = Categorical(weights=weights)
    pmf = distribution.pmf()
    assert pmf.fractions() == [F(weight) / sum(map(F, weights)) for weight in weights]
    total, sums = pmf.total, list(accumulate(pmf.weights))
    source = random.Random(len(weights))
    ends = {value for edge in sums[:20] for value in (edge - 1, edge) if 0 <= value < total}
    words = [0, WORD - 1, *(source.getrandbits(128) for _ in range(50))]
    words += [min(-(-value * WORD // total) + 1, WORD - 1) for value in ends]
    for word in words:
        spare = [WORD - 1]
        value = oracle.uniform(total, iter([word, *spare]))
        expected = next(index for index, edge in enumerate(sums) if value < edge)
        assert distribution._draw(listed([word, *spare])) == expected


def test_weights_of_other_kinds() -> None:
    assert Categorical(weights=np.array([2, 0, 4])).pmf() == Pmf((0, 1, 2), (1, 0, 2))
    assert Categorical(weights=["0.5", "1/6"]).pmf().weights == (3, 1)
    named = Categorical(weights=Pmf(("a", "b"), (10, 30)))
    assert named.pmf() == Pmf((0, 1), (1, 3))
    # A common factor may be larger than 2^128.
    assert Categorical(weights=[3 * 2**200, 2**200]).pmf().weights == (3, 1)


@pytest.mark.statistical
def test_index_draws() -> None:
    distribution = Categorical(weights=[5, 0, 1, 2, 4])
    counts = np.bincount(seeded(distribution, 1_000_000, 12), minlength=5).tolist()
    assert counts[1] == 0
    masses = [mass for mass in distribution.pmf().fractions() if mass]
    counts.pop(1)
    assert fits(counts, masses, 1_000_000)
    assert not fits(counts, [F(1, 4)] * 4, 1_000_000)


# --- subsets


@pytest.mark.statistical
def test_subset_draws() -> None:
    distribution = RandomSubset(population=6, subset_size=3)
    draws = seeded(distribution, 400_000, 15)
    assert draws.shape == (400_000, 3)
    assert draws.dtype == np.int64
    codes = draws @ np.array([36, 6, 1])
    subsets = list(combinations(range(6), 3))
    counts = [int((codes == a * 36 + b * 6 + c).sum()) for a, b, c in subsets]
    assert sum(counts) == 400_000  # sorted, distinct, in range
    assert fits(counts, [F(1, 20)] * 20, 400_000)
    assert not fits(counts, [F(1, 21)] * 10 + [F(11, 210)] * 10, 400_000)
    source = _core.Source(15)
    assert draws[:50].tolist() == [source.subset(6, 3) for _ in range(50)]


@pytest.mark.parametrize(("population", "size"), [(4, 2), (3, 0), (5, 5), (0, 0)])
def test_pmf_of_subsets_is_listed(population: int, size: int) -> None:
    pmf = RandomSubset(population=population, subset_size=size).pmf()
    assert pmf.outputs == tuple(combinations(range(population), size))
    assert set(pmf.weights) == {1}


def test_pmf_of_many_subsets_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"more than 1048576 outputs"):
        RandomSubset(population=2**40, subset_size=2**20).pmf()


def test_subset_shapes() -> None:
    assert RandomSubset(population=5, subset_size=2).sample().shape == (2,)
    assert RandomSubset(population=5, subset_size=2).sample((2, 4)).shape == (2, 4, 2)
    assert RandomSubset(population=5, subset_size=0).sample(3).shape == (3, 0)
    assert RandomSubset(population=0, subset_size=0).sample().shape == (0,)
    assert RandomSubset(population=4, subset_size=4).sample().tolist() == [0, 1, 2, 3]
    assert RandomSubset(population=2**63 - 1, subset_size=3).sample().shape == (3,)
    with pytest.raises(BudgetError, match="draw in parts"):
        RandomSubset(population=2**40, subset_size=2**20).sample(2**8)


# --- all of them

PMFS: list[Any] = [
    BiasedCoin(probability="1/3"),
    BiasedCoin(log_probability=F(-1, 3)),
    UniformInteger(low=-2, high=9),
    Categorical(weights=[1, F(1, 2), 3]),
    NegativeBinomial(r=F(7, 3), p="0.4"),
    Geometric(p=0.25),
    RandomSubset(population=10, subset_size=4),
]


@pytest.mark.parametrize("distribution", PMFS, ids=repr)
def test_copies_shapes_and_words(distribution: Any) -> None:
    drawn = seeded(distribution, 50, 21).tolist()
    namespace = {kind.__name__: kind for kind in map(type, PMFS)} | {"Fraction": F}
    for twin in (
        copy.deepcopy(distribution),
        pickle.loads(pickle.dumps(distribution)),
        eval(repr(distribution), namespace),
    ):
        assert repr(twin) == repr(distribution)
        assert seeded(twin, 50, 21).tolist() == drawn
    last = distribution.sample().shape if isinstance(distribution, RandomSubset) else ()
    for size in (0, 3, (), (2, 0, 3), (4, 2), np.int64(5)):
        shape = size if isinstance(size, tuple) else (int(size),)
        assert distribution.sample(size).shape == shape + last
    assert distribution.sample(3).dtype == (np.bool_ if isinstance(distribution, BiasedCoin) else np.int64)
    one = seeded(distribution, None, 21)
    assert (one.tolist() if last else one) == drawn[0]
    if not last:
        assert type(one) is (bool if isinstance(distribution, BiasedCoin) else int)
    assert distribution.sample(1000).tolist() != distribution.sample(1000).tolist()
    with pytest.raises(TypeError, match="random_state"):
        distribution.sample(random_state="1")
    with pytest.raises(ValueError, match="size must be"):
        distribution.sample(-1)
    with pytest.raises(BudgetError, match="draw in parts"):
        distribution.sample(2**40)


@pytest.mark.statistical
def test_coin_draws() -> None:
    coin = BiasedCoin(log_probability=-1)
    tosses = seeded(coin, 1_000_000, 16)
    mass = oracle.exp_of_minus(F(1), 100)[0]
    assert tosses[:1000].tolist() == [word < mass * WORD for word in words_of(16, 1000)]
    seen = int(tosses.sum())
    assert fits([1_000_000 - seen, seen], [1 - mass, mass], 1_000_000)
    assert not fits([1_000_000 - seen, seen], [F(627, 1000), F(373, 1000)], 1_000_000)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BiasedCoin(), TypeError, "exactly one of probability and log_probability"),
        (lambda: BiasedCoin(probability=0.5, log_probability=-1), TypeError, "exactly one"),
        (lambda: BiasedCoin(probability=1.5), ValueError, r"probability must be in \[0, 1\]"),
        (lambda: BiasedCoin(probability=-0.1), ValueError, "probability must be"),
        (lambda: BiasedCoin(probability=math.nan), ValueError, "probability must be finite"),
        (lambda: BiasedCoin(probability=[0.5]), TypeError, "probability must be"),  # type: ignore[arg-type]
        (lambda: BiasedCoin(log_probability=1), ValueError, "log_probability must be at most 0"),
        (lambda: BiasedCoin(log_probability=-math.inf), ValueError, "log_probability must be finite"),
        (lambda: BiasedCoin(log_probability="e"), ValueError, "log_probability='e'"),
        (lambda: BiasedCoin(log_probability=True), TypeError, "log_probability must be"),
        (lambda: BiasedCoin(log_probability=-1).pmf(), ValueError, "irrational"),
        (lambda: UniformInteger(low=2, high=1), ValueError, "low must be at most high"),
        (lambda: UniformInteger(low=0, high=2**63), ValueError, r"high must be below 2\*\*63"),
        (lambda: UniformInteger(low=-(2**63) - 1, high=0), ValueError, "low must be at least"),
        (lambda: UniformInteger(low=0.0, high=1), TypeError, "low must be an int"),  # type: ignore[arg-type]
        (lambda: UniformInteger(low=0, high=True), TypeError, "high must be an int"),
        (lambda: Categorical(weights=[]), ValueError, "weights is empty"),
        (lambda: Categorical(weights=[0, 0]), ValueError, "weights are all zero"),
        (lambda: Categorical(weights=[1, -1]), ValueError, "at index 1"),
        (lambda: Categorical(weights=[0.5, 0.5]), TypeError, "exact_pmf"),  # type: ignore[list-item]
        (lambda: Categorical(weights=np.ones((2, 2), dtype=int)), ValueError, "one-dimensional"),
        (lambda: Categorical(weights=np.ones(2)), TypeError, "exact_pmf"),
        (lambda: Categorical(weights="12"), TypeError, "weights must be a sequence"),
        (lambda: Categorical(weights={1, 2}), TypeError, "weights must be a sequence"),
        (lambda: Categorical(weights=3), TypeError, "weights must be a sequence"),  # type: ignore[arg-type]
        (lambda: Categorical(weights=[2**128, 1]), ValueError, r"2\*\*128"),
        (lambda: Categorical(weights=[1] * (2**20 + 1)), BudgetError, "split the outcomes"),
        (lambda: RandomSubset(population=3, subset_size=4), ValueError, "subset_size must be at most"),
        (lambda: RandomSubset(population=3, subset_size=10**5000), ValueError, "subset_size must be at most"),
        (lambda: UniformInteger(low=0, high=1).sample(np.timedelta64(3, "s")), TypeError, "size must be"),
        (lambda: UniformInteger(low=0, high=1).sample(np.timedelta64(3, "ns")), TypeError, "size must be"),
        (lambda: UniformInteger(low=0, high=1).sample(3, np.timedelta64(3, "ns")), TypeError, "random_state must be"),
        (lambda: RandomSubset(population=-1, subset_size=0), ValueError, "population must be at least 0"),
        (lambda: RandomSubset(population=2**63, subset_size=0), ValueError, r"population must be below 2\*\*63"),
        (lambda: RandomSubset(population=3.0, subset_size=1), TypeError, "population must be an int"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda number: ExponentialMechanism(epsilon=number, sensitivity=1),
        lambda number: DiscreteLaplace(epsilon=number, sensitivity=1, bounds=(0, 9)),
        lambda number: DiscreteLaplace(scale=number, bounds=(0, 9)),
        lambda number: TruncatedDiscreteLaplace(epsilon=number, delta="1e-6"),
        lambda number: BiasedCoin(probability=number),
    ],
)
def test_a_changed_array_changes_nothing(make: Callable[[Any], Any]) -> None:
    number = np.array(0.5)
    sampler = make(number)
    shown = repr(sampler)
    number[...] = 0.75
    again = pickle.loads(pickle.dumps(sampler))
    assert repr(sampler) == repr(again) == shown
    assert "0.5" in shown
    if hasattr(sampler, "certified_epsilon_per_unit"):
        assert again.certified_epsilon_per_unit == sampler.certified_epsilon_per_unit
    elif hasattr(sampler, "certified_epsilon"):
        assert again.certified_epsilon == sampler.certified_epsilon <= 0.5
