"""Coins, uniform integers, indices, counts, subsets: listed bits against definitions, laws, refusals of bad input."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, combinations
from typing import Any

import numpy as np
import pytest

from oracle import laws as oracle
from userdp import _core
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import (
    BiasedCoin,
    Categorical,
    Geometric,
    NegativeBinomial,
    Pmf,
    RandomSubset,
    UniformInteger,
)

F = Fraction
WORD = 2**128


def listed(words: Sequence[int]) -> _core.Source:
    return _core.Source.listed(b"".join(word.to_bytes(16, "little") for word in words))


def words_of(seed: int, count: int) -> list[int]:
    source = _core.Source(seed)
    return [source.bits() for _ in range(count)]


def seeded(law: Any, size: int | tuple[int, ...] | None, seed: int) -> Any:
    with pytest.warns(InsecureRandomnessWarning):
        return law.sample(size, random_state=seed)


def chi_square_limit(degrees: int) -> float:
    """Laurent and Massart (2000), Lemma 1: exceeded with probability at most e^-14 < 1e-6."""
    return degrees + 2 * math.sqrt(14 * degrees) + 28


def chi_square(counts: Sequence[int], masses: Sequence[Fraction | float], draws: int) -> tuple[float, int]:
    """The statistic over cells of expectation 20 or more, the last being what is left."""
    cells: list[list[float]] = [[0.0, 0.0]]
    for count, mass in zip(counts, masses, strict=True):
        if cells[-1][1] >= 20:
            cells.append([0.0, 0.0])
        cells[-1][0] += count
        cells[-1][1] += float(mass) * draws
    if cells[-1][1] < 20:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    rest = draws - sum(expected for _, expected in cells)
    cells[-1] = [draws - sum(seen for seen, _ in cells[:-1]), cells[-1][1] + rest]
    return sum((seen - expected) ** 2 / expected for seen, expected in cells), len(cells) - 1


def fits(counts: Sequence[int], masses: Sequence[Fraction | float], draws: int) -> bool:
    statistic, degrees = chi_square(counts, masses, draws)
    print(f"chi-square {statistic:.1f} at {degrees} degrees, limit {chi_square_limit(degrees):.1f}")
    return statistic < chi_square_limit(degrees)


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
    law = UniformInteger(low=low, high=low + bound - 1)
    source = random.Random(bound)
    values = {0, bound - 1, *(source.randrange(bound) for _ in range(20))}
    firsts = [-(-value * WORD // bound) for value in values]
    words = [0, WORD - 1, *(source.getrandbits(128) for _ in range(20))]
    words += [first + step for first in firsts for step in (-1, 0, 1) if 0 <= first + step < WORD]
    spare = [WORD - 1, 5]  # the last word is never void
    for word in words:
        assert law._draw(listed([word, *spare])) == low + oracle.uniform(bound, iter([word, *spare]))
    # In an array a void word is replaced by words behind its block.
    behind = spare * len(words)
    more = iter(behind)
    expected = [low + oracle.uniform(bound, iter([word]) if is_accepted(bound, word) else more) for word in words]
    assert law._draw_many(listed([*words, *behind]), (len(words),)).tolist() == expected


def is_accepted(bound: int, word: int) -> bool:
    try:
        oracle.uniform(bound, iter([word]))
    except AssertionError:
        return False
    return True


def test_void_words_are_skipped() -> None:
    # 2^128 = 1 modulo 3: one word is void, the first of the value 0.
    law = UniformInteger(low=0, high=2)
    assert law._draw(listed([0, 0, 0, WORD - 1])) == 2
    with pytest.raises(OSError, match="used up"):
        law._draw(listed([0, 0]))
    assert law._draw(listed([1])) == 0


def test_uniform_draws() -> None:
    for low, high in [(1, 6), (-3, 3), (0, 999)]:
        law = UniformInteger(low=low, high=high)
        counts = np.bincount(seeded(law, 1_000_000, 11) - low).tolist()
        assert fits(counts, law.pmf().fractions(), 1_000_000)
        uneven = [mass * (F(9, 10) if i % 2 else F(11, 10)) for i, mass in enumerate(law.pmf().fractions())]
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
    law = Categorical(weights=weights)
    pmf = law.pmf()
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
        assert law._draw(listed([word, *spare])) == expected


def test_weights_of_other_kinds() -> None:
    assert Categorical(weights=np.array([2, 0, 4])).pmf() == Pmf((0, 1, 2), (1, 0, 2))
    assert Categorical(weights=["0.5", "1/6"]).pmf().weights == (3, 1)
    named = Categorical(weights=Pmf(("a", "b"), (10, 30)))
    assert named.pmf() == Pmf((0, 1), (1, 3))
    # A common factor may be larger than 2^128.
    assert Categorical(weights=[3 * 2**200, 2**200]).pmf().weights == (3, 1)


def test_index_draws() -> None:
    law = Categorical(weights=[5, 0, 1, 2, 4])
    counts = np.bincount(seeded(law, 1_000_000, 12), minlength=5).tolist()
    assert counts[1] == 0
    masses = [mass for mass in law.pmf().fractions() if mass]
    counts.pop(1)
    assert fits(counts, masses, 1_000_000)
    assert not fits(counts, [F(1, 4)] * 4, 1_000_000)


# --- negative binomial counts

COUNTS: list[tuple[Any, Any]] = [
    (1, "0.5"),
    (3, F(1, 3)),
    ("23.7233", "0.8187"),
    (F(237233, 10**4 * 50), "0.8187"),
    (F(1, 10**6), F(9, 10)),
    (0.5, 0.25),
    ("1e-30", "1e-30"),
    (10**9, F(1, 10**9)),
    (1000, F(1, 2)),
    (F(1, 7), F(99, 100)),
]


@pytest.mark.parametrize(("r", "p"), COUNTS)
def test_counts_are_within_the_certified_distance(r: Any, p: Any) -> None:
    law = NegativeBinomial(r=r, p=p)
    weights = law.pmf().weights
    assert sum(weights) == WORD
    assert law.pmf().outputs == tuple(range(len(weights)))
    ideal = oracle.negative_binomial(F(r), F(p), len(weights) + 1)
    with localcontext() as context:
        context.prec = oracle.DIGITS
        masses = [Decimal(weight) / WORD for weight in weights]
        excess = [max(mass - exact, Decimal(0)) for mass, exact in zip(masses, ideal, strict=False)]
        certified = Decimal(law.certified_distance.numerator) / law.certified_distance.denominator
        slack = Decimal("1e-90")
        # Only the first of the largest entries is above the ideal mass, and by no more than was certified.
        largest = weights.index(max(weights))
        assert [k for k, above in enumerate(excess) if above > slack] in ([largest], [])
        assert sum(excess) <= certified + slack
        # Floors: every other entry is within one unit, and what follows the table is at most one.
        for k, (weight, exact) in enumerate(zip(weights, ideal, strict=False)):
            if k != largest:
                assert math.floor((exact - slack) * WORD) <= weight <= math.floor((exact + slack) * WORD)
        assert ideal[len(weights)] * WORD <= 1
    assert law.certified_distance <= F(len(weights) * 2, WORD) + F(1, 2**110)
    assert law.certified_distance < F(1, 2**108)


@pytest.mark.parametrize(("r", "p"), [(1, F(1, 2)), (2, F(1, 3)), (7, F(9, 10)), (40, F(1, 100))])
def test_counts_of_whole_r(r: int, p: Fraction) -> None:
    law = NegativeBinomial(r=r, p=p)
    fractions = law.pmf().fractions()
    ideal = oracle.negative_binomial_exactly(r, p, len(fractions))
    distance = sum(max(mass - exact, F(0)) for mass, exact in zip(fractions, ideal, strict=True))
    assert distance <= law.certified_distance
    # The other half of the same distance, with the tail beyond the table.
    below = sum(max(exact - mass, F(0)) for mass, exact in zip(fractions, ideal, strict=True)) + 1 - sum(ideal)
    assert below == distance


def test_convention_of_p() -> None:
    # Mean r p / (1 - p), not numpy's r (1 - p) / p: 4 rather than 1 here.
    law = NegativeBinomial(r=2, p=F(2, 3))
    mean = sum(k * mass for k, mass in enumerate(law.pmf().fractions()))
    assert abs(mean - 4) < F(1, 2**100)


def test_shares_sum_to_the_whole() -> None:
    users, r, p = 5, F(7, 2), F(1, 4)
    share = NegativeBinomial(r=r / users, p=p)
    whole = NegativeBinomial(r=r, p=p)
    total = [1]
    for _ in range(users):
        total = convolved(total, share.pmf().weights)
    ideal = oracle.negative_binomial(r, p, len(total))
    with localcontext() as context:
        context.prec = oracle.DIGITS
        distance = sum(
            (abs(Decimal(weight) / Decimal(WORD**users) - exact) for weight, exact in zip(total, ideal, strict=True)),
            Decimal(0),
        )
        bound = users * share.certified_distance
        assert distance / 2 <= Decimal(bound.numerator) / bound.denominator
        assert distance > 0
    assert whole.certified_distance < F(1, 2**110)


def convolved(a: Sequence[int], b: Sequence[int]) -> list[int]:
    result = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


def test_count_draws() -> None:
    law = NegativeBinomial(r="2.5", p="0.8")
    draws = seeded(law, 1_000_000, 13)
    cumulative = list(accumulate(law.pmf().weights))
    expected = [sum(edge <= word for edge in cumulative) for word in words_of(13, 500)]
    assert draws[:500].tolist() == expected
    counts = np.bincount(draws, minlength=len(cumulative)).tolist()
    assert fits(counts, law.pmf().fractions(), 1_000_000)
    other = NegativeBinomial(r="2.5", p="0.79").pmf().fractions()
    other += [F(0)] * (len(counts) - len(other))
    assert not fits(counts, other, 1_000_000)


def test_too_many_counts() -> None:
    for r, p in [(2**22, "0.5"), ("1e300", "0.5"), ("0.1", 1 - F(1, 2**30)), (1, 1 - F(1, 10**300))]:
        with pytest.raises(BudgetError, match="entries; choose a smaller r or p"):
            NegativeBinomial(r=r, p=p).pmf()


# --- geometric counts

SUCCESSES = [F(1, 2), F(1, 3), F(9, 10), 1 - F(1, 10**30), F(1, 1000), F(0.1), F(1, 10**9), F(1, 2**52)]


@pytest.mark.parametrize("p", SUCCESSES, ids=str)
def test_geometric_draws_of_listed_bits(p: Fraction) -> None:
    law, q = Geometric(p=p), 1 - p
    source = random.Random(5)
    cases = [[source.getrandbits(128) >> shift, source.getrandbits(128)] for shift in (0, 0, 0, 1, 30, 64, 100, 127)]
    cases += [[WORD - 1, 7], [0, 5], [0, 0, 9], [1, 0]]
    if q.denominator <= 1000:
        # Next to q^k, where the first 128 bits and even 256 do not decide.
        for k in (1, 2, 5, 20):
            for count in (1, 2):
                edge = math.floor(q**k * WORD**count)
                words = [edge // WORD ** (count - 1 - i) % WORD for i in range(count)]
                cases += [[*words, 0, 1], [*words, WORD - 1, WORD - 2]]
    powers = oracle.rational_powers(q) if q.denominator <= 10 else powers_by_logarithm(q)
    for words in cases:
        spare = [source.getrandbits(128) for _ in range(3)]
        assert law._draw(listed([*words, *spare])) == oracle.geometric(powers, [*words, *spare]), words


def powers_by_logarithm(q: Fraction) -> oracle.Powers:
    """Around q^k for a q of many digits, from 300-digit decimals."""

    def powers(k: int, _: int) -> tuple[Fraction, Fraction]:
        with localcontext() as context:
            context.prec = 400
            context.Emin = -(10**17)
            power = F(((Decimal(q.numerator) / Decimal(q.denominator)).ln() * k).exp())
        return power * (1 - F(1, 10**360)), power * (1 + F(1, 10**360))

    return powers


def test_geometric_ties_need_more_bits() -> None:
    # q = 1/3: U = 0.0101... is q itself, as far as its words are all the same.
    third, law = WORD // 3, Geometric(p=F(2, 3))
    for ties in (1, 2, 3):
        assert law._draw(listed([third] * ties + [0, 0])) == 1
        assert law._draw(listed([third] * ties + [WORD - 1, 0])) == 0
        with pytest.raises(OSError, match="used up"):
            law._draw(listed([third] * ties))


def test_geometric_draws() -> None:
    law = Geometric(p=F(1, 5))
    draws = seeded(law, 300_000, 14)
    powers = oracle.rational_powers(F(4, 5))
    assert draws[:300].tolist() == [oracle.geometric(powers, [word]) for word in words_of(14, 300)]
    size = 200
    counts = np.bincount(draws, minlength=size)[:size].tolist()
    assert fits(counts, [law.probability(x) for x in range(size)], 300_000)
    assert not fits(counts, [F(19, 100) * F(81, 100) ** x for x in range(size)], 300_000)


def test_geometric_probabilities() -> None:
    law = Geometric(p="1/3")
    assert [law.probability(x) for x in range(3)] == [F(1, 3), F(2, 9), F(4, 27)]
    assert [Geometric(p=1).probability(x) for x in (0, 1, 10**9)] == [1, 0, 0]
    assert Geometric(p=1).sample(4).tolist() == [0, 0, 0, 0]
    with pytest.raises(BudgetError, match="bits"):
        Geometric(p=0.1).probability(10**7)


# --- subsets


def test_subset_draws() -> None:
    law = RandomSubset(population=6, subset_size=3)
    draws = seeded(law, 400_000, 15)
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

LAWS: list[Any] = [
    BiasedCoin(probability="1/3"),
    BiasedCoin(log_probability=F(-1, 3)),
    UniformInteger(low=-2, high=9),
    Categorical(weights=[1, F(1, 2), 3]),
    NegativeBinomial(r=F(7, 3), p="0.4"),
    Geometric(p=0.25),
    RandomSubset(population=10, subset_size=4),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_copies_shapes_and_words(law: Any) -> None:
    drawn = seeded(law, 50, 21).tolist()
    namespace = {kind.__name__: kind for kind in map(type, LAWS)} | {"Fraction": F}
    for twin in (copy.deepcopy(law), pickle.loads(pickle.dumps(law)), eval(repr(law), namespace)):
        assert repr(twin) == repr(law)
        assert seeded(twin, 50, 21).tolist() == drawn
    last = law.sample().shape if isinstance(law, RandomSubset) else ()
    for size in (0, 3, (), (2, 0, 3), (4, 2), np.int64(5)):
        shape = size if isinstance(size, tuple) else (int(size),)
        assert law.sample(size).shape == shape + last
    assert law.sample(3).dtype == (np.bool_ if isinstance(law, BiasedCoin) else np.int64)
    one = seeded(law, None, 21)
    assert (one.tolist() if last else one) == drawn[0]
    if not last:
        assert type(one) is (bool if isinstance(law, BiasedCoin) else int)
    assert law.sample(1000).tolist() != law.sample(1000).tolist()
    with pytest.raises(TypeError, match="random_state"):
        law.sample(random_state="1")
    with pytest.raises(ValueError, match="size must be"):
        law.sample(-1)
    with pytest.raises(BudgetError, match="draw in parts"):
        law.sample(2**40)


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
        (lambda: Categorical(weights=3), TypeError, "weights must be a sequence"),  # type: ignore[arg-type]
        (lambda: Categorical(weights=[2**128, 1]), ValueError, r"2\*\*128"),
        (lambda: Categorical(weights=[1] * (2**20 + 1)), BudgetError, "split the outcomes"),
        (lambda: NegativeBinomial(r=0, p=0.5), ValueError, "r must be > 0"),
        (lambda: NegativeBinomial(r="many", p=0.5), ValueError, "r='many'"),
        (lambda: NegativeBinomial(r=None, p=0.5), TypeError, "r must be"),  # type: ignore[arg-type]
        (lambda: NegativeBinomial(r=1, p=0), ValueError, r"p must be in \(0, 1\)"),
        (lambda: NegativeBinomial(r=1, p=1), ValueError, r"p must be in \(0, 1\)"),
        (lambda: NegativeBinomial(r=1, p=2), ValueError, r"p must be in \[0, 1\]"),
        (lambda: Geometric(p=0), ValueError, r"p must be from 2\*\*-52"),
        (lambda: Geometric(p="1e-16"), ValueError, r"p must be from 2\*\*-52"),
        (lambda: Geometric(p=1.5), ValueError, "p must be in"),
        (lambda: Geometric(p=None), TypeError, "p must be"),  # type: ignore[arg-type]
        (lambda: Geometric(p=0.5).probability(-1), ValueError, "x must be at least 0"),
        (lambda: Geometric(p=0.5).probability(0.5), TypeError, "x must be an int"),  # type: ignore[arg-type]
        (lambda: RandomSubset(population=3, subset_size=4), ValueError, "subset_size must be at most"),
        (lambda: RandomSubset(population=-1, subset_size=0), ValueError, "population must be at least 0"),
        (lambda: RandomSubset(population=2**63, subset_size=0), ValueError, r"population must be below 2\*\*63"),
        (lambda: RandomSubset(population=3.0, subset_size=1), TypeError, "population must be an int"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
