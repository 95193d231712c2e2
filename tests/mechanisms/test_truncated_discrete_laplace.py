"""Truncated discrete Laplace noise and refusal tables against fractions, exact audits, and refusals of bad input."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections import Counter
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import samplers as oracle
from oracle.divergence import exp_bounds, hockey_stick
from oracle.statistics import chi_square, chi_square_limit
from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.audit import audit_pair, audit_user_level
from userdp.divergence import LogRatio
from userdp.exact.epsilon import level_of
from userdp.exact.numbers import parse_level
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import Pmf, TruncatedDiscreteLaplace, tdlap_half_width
from userdp.runtime import source_of
from userdp.testing import assert_user_private

F = Fraction
WHOLE = 2**128
CASES = json.loads((Path(__file__).parents[1] / "data" / "truncated_discrete_laplace_cases.json").read_text())["cases"]

PARAMETERS: list[tuple[Any, Any]] = [
    (1, "1e-6"),
    (0.1, 1e-6),
    ("0.5", "1e-9"),
    (F(1, 3), "5e-7"),
    (20, "1e-9"),
    (3, "1e-30"),
    ("0.01", "1e-4"),
    (LogRatio(2), "1/8"),
    (LogRatio(4, 3), "1/46"),
    (LogRatio(3, 2), "1e-12"),
    (LogRatio(2), F(1, 46)),
    (LogRatio(10**100), "1/10"),
    (1, "0.999"),
]


def reference_level(epsilon: Any) -> oracle.Level:
    level = parse_level(epsilon)
    return oracle.Level(level.ratio, level.exponent)


def log_ratio(text: str) -> LogRatio:
    return LogRatio(F(text).numerator, F(text).denominator)


# --- kappa


@pytest.mark.parametrize("case", [c for c in CASES if c["kind"].startswith("kappa")], ids=lambda case: case["id"])
def test_kappa_cases(case: dict[str, Any]) -> None:
    given = case["input"]
    epsilon: Any = log_ratio(given["exp_eps"]) if "exp_eps" in given else F(given["eps"])
    if "error" in case["expected"]:
        with pytest.raises(ValueError, match="epsilon"):
            tdlap_half_width(epsilon, given["delta"])
    else:
        assert tdlap_half_width(epsilon, F(given["delta"])) == case["expected"]["kappa"]


def test_kappa_against_powers() -> None:
    source = random.Random(1)
    for _ in range(300):
        denominator = source.randrange(1, 10 ** source.randrange(1, 4))
        ratio = F(denominator + source.randrange(1, 10**3), denominator)
        delta = F(1, source.randrange(2, 10 ** source.randrange(1, 60)))
        assert tdlap_half_width(LogRatio(ratio.numerator, ratio.denominator), delta) == oracle.kappa(
            oracle.Level(ratio), delta
        )
        exponent = F(source.randrange(1, 10**6), 10 ** source.randrange(4, 7))
        assert tdlap_half_width(exponent, delta) == oracle.kappa(oracle.Level(exponent=exponent), delta)


@pytest.mark.parametrize("ratio", [F(2), F(3, 2), F(20), F(10**6 + 1, 10**6), F(2**40 + 1, 2**40)])
@pytest.mark.parametrize("power", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("gap", [F(0), F(1, 10**13), F(1, 10**300), F(1, 10**1000)])
def test_kappa_at_ties(ratio: Fraction, power: int, gap: Fraction) -> None:
    epsilon = LogRatio(ratio.numerator, ratio.denominator)
    exact = 1 / ratio**power
    assert tdlap_half_width(epsilon, exact) == 1 + power
    if gap:  # smaller than ratio - 1, so that only one power is in question
        assert tdlap_half_width(epsilon, exact * (1 - gap)) == 2 + power
        assert tdlap_half_width(epsilon, exact * (1 + gap)) == 1 + power


def test_kappa_near_powers_of_e() -> None:
    # Fractions on either side of e^-5, closer than any float.
    low, high = exp_bounds(F(5), 3000)
    assert tdlap_half_width(1, 1 / low) == 6
    assert tdlap_half_width(1, 1 / high) == 7


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        *[(1, "1e-2", 20), (1, "1e-4", 34), (1, "1e-6", 48), (2, "1e-2", 11), (2, "1e-4", 18), (2, "1e-6", 25)],
        *[(4, "1e-2", 7), (4, "1e-4", 11), (4, "1e-6", 14), (8, "1e-2", 5), (8, "1e-4", 7), (8, "1e-6", 9)],
    ],
)
def test_kappa_of_algorithm_1(epsilon: int, delta: str, expected: int) -> None:
    # Its delta / (e^(2 epsilon / 3) + e^(epsilon / 3) + 2), from both sides.
    for z in exp_bounds(F(epsilon, 3)):
        assert tdlap_half_width(F(epsilon, 3), F(delta) / (z * z + z + 2)) == expected


def test_kappa_far_out() -> None:
    assert tdlap_half_width(1, F(1, 10**300)) == 692
    assert tdlap_half_width(F(1, 10**12), F(1, 10**300)) == oracle.kappa(
        oracle.Level(exponent=F(1, 10**12)), F(1, 10**300)
    )
    assert tdlap_half_width("1e99999", "1e-99999") == 2
    assert tdlap_half_width(LogRatio(2), F(1, 2**100_000)) == 100_001
    beyond: list[tuple[Any, Any]] = [(5e-324, "1e-300"), ("1e-99999", "0.5"), (LogRatio(2**100 + 1, 2**100), "1e-9")]
    for epsilon, delta in beyond:
        with pytest.raises(BudgetError, match=r"2\^60"):
            tdlap_half_width(epsilon, delta)
    # Too near to a power of 2 for the precision that is spent, and said so.
    with pytest.raises(BudgetError, match="fewer digits"):
        tdlap_half_width(LogRatio(2), F(1, 32) * (1 - F(1, 2**70_000)))


# --- the table


@pytest.mark.parametrize("case", [c for c in CASES if c["kind"] == "tdlap"], ids=lambda case: case["id"])
def test_pmf_cases(case: dict[str, Any]) -> None:
    ratio, width = F(case["input"]["exp_eps"]), case["input"]["kappa"]
    expected = [F(mass) for mass in case["expected"]["pmf"]]
    assert oracle.ideal(ratio, width) == expected
    # A delta between the ends of this kappa and of the one before gives this kappa.
    delta = expected[0] * F(10**9 + 1, 10**9)
    epsilon = log_ratio(case["input"]["exp_eps"])
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=max(delta, F(1, 2**127)), half_width="tight")
    assert noise.half_width == width
    assert noise.ideal_pmf().fractions() == expected
    distance = sum(abs(a - b) for a, b in zip(noise.pmf().fractions(), expected, strict=True))
    # Ratios are cut at 2^64: the distribution with a ratio of 10^100 is wider than the ideal one.
    assert distance < (F(1, 2**120) if ratio < 2**64 else F(1, 2**61))


@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_table_is_the_references(epsilon: Any, delta: Any, rule: Any) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    level, probability = reference_level(epsilon), F(delta)
    pmf = noise.pmf()
    if rule == "paper":
        assert noise.half_width == oracle.kappa(level, probability) == tdlap_half_width(epsilon, delta)
    else:
        assert oracle.end_of_ladder(level, noise.half_width) <= probability
        assert noise.half_width == 1 or oracle.end_of_ladder(level, noise.half_width - 1) > probability
        assert noise.half_width < tdlap_half_width(epsilon, delta)
    assert list(pmf.weights) == oracle.ladder(level, noise.half_width)
    assert pmf.outputs == tuple(range(2 * noise.half_width + 1))
    assert pmf.total == WHOLE
    assert pmf.weights == pmf.weights[::-1]
    assert oracle.is_certified(pmf.weights, level, probability)
    assert noise.certified_delta == F(pmf.weights[0], WHOLE) <= probability
    ratio = max(F(max(a, b), min(a, b)) for a, b in zip(pmf.weights, pmf.weights[1:], strict=False))
    assert noise._core_sampler.largest_ratio == ratio
    # certified_epsilon encloses ln(ratio) from above and does not exceed epsilon by more than its rounding.
    assert exp_bounds(F(noise.certified_epsilon))[1] >= ratio
    assert noise.certified_epsilon <= math.nextafter(float(parse_level(epsilon)), math.inf)


@pytest.mark.parametrize(("a", "b", "delta"), [(2, 1, "1/8"), (4, 3, "1e-6"), (11, 10, "1e-9"), (101, 100, "1e-3")])
def test_table_is_next_to_the_ideal(a: int, b: int, delta: str) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=LogRatio(a, b), delta=delta)
    expected = oracle.ideal(F(a, b), noise.half_width)
    assert noise.ideal_pmf().fractions() == expected
    ratios = [mass / exact for mass, exact in zip(noise.pmf().fractions(), expected, strict=True)]
    assert max(abs(ratio - 1) for ratio in ratios) < F(1, 2**80)


def test_mutants_are_refused_by_the_certificate() -> None:
    level = reference_level(1)
    table = oracle.ladder(level, 15)
    assert oracle.is_certified(table, level, F(1, 10**6))
    half_the_noise = TruncatedDiscreteLaplace(epsilon=2, delta="1e-6").pmf().weights
    assert not oracle.is_certified(half_the_noise, level, F(1, 10**6))
    assert not oracle.is_certified(oracle.ladder(level, 13), level, F(1, 10**6))  # ends too likely
    moved = [table[0] + 1, *table[1:15], table[15] - 2, *table[16:30], table[30] + 1]
    assert sum(moved) == WHOLE
    assert oracle.is_certified(moved, level, F(1, 10**6))  # a unit is within the slack of the floors here, ...
    moved[1], moved[29], moved[15] = moved[1] - 2**60, moved[29] - 2**60, moved[15] + 2**61
    assert not oracle.is_certified(moved, level, F(1, 10**6))  # ... 2^60 units are not


# --- exact audits


def noisy_total(noise: TruncatedDiscreteLaplace, most: int) -> AdditiveAlgorithm:
    weights = noise.pmf().weights
    outputs = tuple(range(most + len(weights)))

    def pmf(total: int, _: int) -> Pmf:
        return Pmf(outputs, (*(0,) * total, *weights, *(0,) * (most - total)))

    return AdditiveAlgorithm(outputs, lambda user: sum(user), pmf, statistic_range=(0, 1))


@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (F(1, 2), F(1, 1000)), (LogRatio(2), F(1, 8))])
def test_audit_of_a_noisy_count(epsilon: Any, delta: Any, rule: Any) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    end = noise.certified_delta
    count = noisy_total(noise, 3)
    arguments: dict[str, Any] = {"universe": (0, 1), "n_users": 3, "n_examples": 1, "epsilon": epsilon}
    report = audit_user_level(count, delta=end, **arguments)
    print(f"epsilon={epsilon} {rule}: worst delta {report.worst_delta}, end mass {float(end):.17g}, claimed {delta}")
    assert report.holds
    assert F(report.worst_delta.lower) <= end <= F(report.worst_delta.upper)
    assert not audit_user_level(count, delta=end * (1 - F(1, 10**30)), **arguments).holds
    assert_user_private(count, delta=delta, **arguments)
    # The same by the definition.
    p, q = ([F(weight, WHOLE) for weight in pmf] for pmf in ((*noise.pmf().weights, 0), (0, *noise.pmf().weights)))
    lower = reference_level(epsilon).power(1)[0]
    assert hockey_stick(p, q, lower) == hockey_stick(q, p, lower) == end


def test_audit_with_half_the_noise_fails() -> None:
    count = noisy_total(TruncatedDiscreteLaplace(epsilon=2, delta="1e-6"), 1)
    report = audit_pair(count, ((0,),), ((1,),), epsilon=1, delta="1e-6")
    print(f"half the noise: worst delta {report.worst_delta} against 1e-6")
    assert not report.holds
    assert report.worst_delta.lower > 0.1


# --- draws


@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-3"), (LogRatio(2), "1/8")])
def test_draws_follow_the_pmf(epsilon: Any, delta: Any, rule: Any) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    draws = 200_000
    with pytest.warns(InsecureRandomnessWarning):
        values = noise.sample(draws, random_state=20)
    assert values.dtype == np.int64
    counts = np.bincount(values, minlength=2 * noise.half_width + 1).tolist()
    statistic, degrees = chi_square(counts, noise.pmf().fractions())
    print(f"chi-square {statistic:.1f} at {degrees} degrees, limit {chi_square_limit(degrees):.1f}")
    assert statistic < chi_square_limit(degrees)
    # The test can fail: the same draws against a distribution of twice the width.
    wide = oracle.ideal(F(13, 10), noise.half_width) if epsilon != "0.1" else oracle.ideal(F(11, 9), noise.half_width)
    statistic, degrees = chi_square(counts, wide)
    assert statistic > chi_square_limit(degrees)


def test_draws_are_the_inverse_of_the_distribution_function() -> None:
    noise = TruncatedDiscreteLaplace(epsilon="0.3", delta="1e-4")
    cumulative = list(accumulate(noise.pmf().weights))
    source = _core.Source(7)
    expected = [sum(entry <= bits for entry in cumulative) for bits in (source.bits() for _ in range(3000))]
    one_by_one = _core.Source(7)
    assert [noise._core_sampler.sample(one_by_one) for _ in range(3000)] == expected
    assert noise._core_sampler.sample_many(_core.Source(7), 3000).tolist() == expected
    with pytest.warns(InsecureRandomnessWarning):
        assert noise.sample((30, 100), random_state=7).tolist() == np.reshape(expected, (30, 100)).tolist()
    with pytest.warns(InsecureRandomnessWarning):
        assert noise.sample(random_state=7) == expected[0]


def test_shapes() -> None:
    noise = TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
    assert type(noise.sample()) is int
    assert noise.sample(0).shape == (0,)
    assert noise.sample((2, 0, 3)).shape == (2, 0, 3)
    assert noise.sample(()).shape == ()
    assert noise.sample(np.int64(5)).shape == (5,)
    values = noise.sample(1000)
    assert values.min() >= 0
    assert values.max() <= 2 * noise.half_width
    assert len(set(noise.sample(1000).tolist())) > 1


def test_an_integer_random_state_warns_about_the_callers_line() -> None:
    noise = TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noise.sample()
        noise.sample(3)
        assert not caught
        noise.sample(3, random_state=1)
    assert [(warning.category, warning.filename) for warning in caught] == [(InsecureRandomnessWarning, __file__)]


# --- random sources


def test_seeded_bits_are_the_chacha20_stream() -> None:
    # The key stream of a zero key, nonce and counter: RFC 8439, A.1, test vectors 1 and 2.
    source = _core.Source(0)
    first = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28")
    assert source.bits() == int.from_bytes(first, "little")
    for _ in range(3):
        source.bits()
    assert source.bits() == int.from_bytes(bytes.fromhex("9f07e7be5551387a98ba977c732d080d"), "little")


@pytest.mark.statistical
def test_integers_below_a_bound() -> None:
    source = _core.Source(3)
    for bound in (1, 2, 3, 10, 2**32, 2**64 + 1, 2**200 - 1, 10**50):
        values = [source.below(bound) for _ in range(200)]
        assert 0 <= min(values) <= max(values) < bound
        assert bound < 2**100 or max(values) > bound // 2
    for bound in (1, 5, 6, 7, 16, 17):
        counts = Counter(source.index_below(bound) for _ in range(30_000))
        assert set(counts) == set(range(bound))
        statistic = sum((counts[value] - 30_000 / bound) ** 2 for value in range(bound)) * bound / 30_000
        assert statistic < chi_square_limit(bound - 1)
    # Every bit of a rejection draw counts: a bound of 3 * 2^62 has no draw of its last quarter.
    assert {source.below(3 * 2**62) >> 62 for _ in range(200)} == {0, 1, 2}


@pytest.mark.statistical
def test_subsets_are_uniform() -> None:
    source = _core.Source(4)
    for population, size in [(5, 2), (6, 3), (4, 4), (7, 1), (5, 0), (0, 0)]:
        draws = 30_000
        counts = Counter(tuple(source.subset(population, size)) for _ in range(draws))
        subsets = list(combinations(range(population), size))
        assert set(counts) == set(subsets)
        expected = draws / len(subsets)
        statistic = sum((counts[subset] - expected) ** 2 / expected for subset in subsets)
        assert statistic < chi_square_limit(len(subsets) - 1)
    many = source.subset(10_000, 5000)
    assert many == sorted(set(many))
    assert len(many) == 5000


@pytest.mark.statistical
def test_weighted_draws() -> None:
    source = _core.Source(5)
    weights = [0, 3, 0, 1, 2**3, 0]
    counts = Counter(source.weighted(weights) for _ in range(36_000))
    assert set(counts) == {1, 3, 4}
    statistic = sum((counts[i] - 3000 * w) ** 2 / (3000 * w) for i, w in enumerate(weights) if w)
    assert statistic < chi_square_limit(2)
    assert {source.weighted([0, 10**60, 0]) for _ in range(20)} == {1}


def test_the_system_is_the_default() -> None:
    assert len({_core.Source().bits() for _ in range(100)}) == 100
    assert source_of(None).bits() != source_of(None).bits()


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_share_no_noise() -> None:
    script = """
import os, sys
from userdp import _core
source = _core.Source()
source.bits()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, str(source.bits()).encode())
    os._exit(0)
mine = source.bits()
os.wait()
sys.exit(int(os.read(read, 100)) == mine)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _core.Source(2**256), ValueError, "seed"),
        (lambda: _core.Source(1).below(0), ValueError, "bound"),
        (lambda: _core.Source(1).index_below(0), ValueError, "bound"),
        (lambda: _core.Source(1).subset(3, 4), ValueError, "size"),
        (lambda: _core.Source(1).weighted([]), ValueError, "weights"),
        (lambda: _core.Source(1).weighted([0, 0]), ValueError, "weights"),
        (lambda: source_of(-1), ValueError, "random_state"),
        (lambda: source_of(2**256), ValueError, "random_state"),
        (lambda: source_of(True), TypeError, "random_state"),
        (lambda: source_of(1.0), TypeError, "random_state"),
        (lambda: source_of("1"), TypeError, "random_state"),
        (lambda: source_of(np.random.default_rng(1)), TypeError, "random_state"),
    ],
)
def test_bad_sources(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# --- refusal tables

# (epsilon, delta): 4 kappa of a tight table and the deletions of a refusal table at (epsilon / 3, delta / 2), and the
# deletions at (4 epsilon / 5, delta / 2).
WIDTHS = [
    (1, "1e-2", 44, 44, 24),
    (1, "1e-4", 100, 98, 46),
    (1, "1e-6", 156, 154, 68),
    (2, "1e-2", 28, 26, 14),
    (2, "1e-4", 56, 54, 24),
    (2, "1e-6", 84, 82, 36),
    (4, "1e-2", 16, 16, 8),
    (4, "1e-4", 32, 30, 14),
    (4, "1e-6", 44, 44, 20),
    (8, "1e-2", 8, 8, 4),
    (8, "1e-4", 16, 16, 8),
    (8, "1e-6", 24, 24, 12),
]


@pytest.mark.parametrize(("epsilon", "delta", "tight", "third", "most"), WIDTHS)
def test_widths(epsilon: int, delta: str, tight: int, third: int, most: int) -> None:
    half = F(delta) / 2
    assert 4 * TruncatedDiscreteLaplace(epsilon=F(epsilon, 3), delta=half, half_width="tight").half_width == tight
    assert _core.RefusalTable(level_of(F(epsilon, 3)), half).deletions == third
    assert _core.RefusalTable(level_of(F(4 * epsilon, 5)), half).deletions == most


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        ("0.8", "5e-7"),
        (F(1, 3), "5e-3"),
        ("6.4", "5e-7"),
        (LogRatio(20), "0.02"),
        (LogRatio(3, 2), F(1, 3)),
        (LogRatio(10**100), "1e-30"),
        ("0.001", "0.01"),
        (1e-9, "0.3"),
        (1, "0.999"),
    ],
)
def test_refusals(epsilon: Any, delta: Any) -> None:
    table = _core.RefusalTable(level_of(epsilon), F(delta))
    level, probability = reference_level(epsilon), F(delta)
    numerators = table.numerators
    assert numerators == oracle.refusals(level, probability)
    assert table.certain_size == len(numerators) - 1
    assert table.deletions == 2 * len(numerators) - 4
    # The inequalities, in fractions, with E from below.
    q = [F(numerator, WHOLE) for numerator in numerators]
    lower = level.power(1)[0]
    assert [q[0], q[-1]] == [0, 1]
    for a, b in pairwise(q):
        assert a <= b <= lower * a + probability
        assert 1 - a <= lower * (1 - b) + probability
    assert 1 - q[-2] <= probability
    # No table rises faster, except for the roundings.
    ideal = oracle.ideal_refusals(min(level.power(1)[1], F(2**64)), probability)
    assert len(ideal) <= len(q) <= len(ideal) + 1
    for rounded, exact in zip(q, ideal, strict=False):
        assert abs(exact - rounded) <= exact * 4 * len(q) / (probability * WHOLE)


def test_refusals_are_drawn_from_the_table() -> None:
    table = _core.RefusalTable(level_of(1), F(1, 1000))
    source, same = _core.Source(9), _core.Source(9)
    sizes = [*range(table.certain_size + 2), 2**40] * 100
    for size in sizes:
        threshold = table.numerators[min(size, table.certain_size)]
        assert table.refuses(size, source) == (same.bits() < threshold)


def test_refusals_are_indistinguishable() -> None:
    # Neighboring sizes as a two-point mechanism, audited exactly at its level and below it.
    level, delta = level_of("0.8"), F(5, 10**7)
    q = [F(numerator, WHOLE) for numerator in _core.RefusalTable(level, delta).numerators]
    pmfs = [([n.numerator, n.denominator - n.numerator], n.denominator) for n in q]
    pairs = list(zip(range(len(q)), range(1, len(q)), strict=False))
    worst = _core.family_worst(pmfs, pairs, level, delta)
    assert worst is not None
    assert not worst[5]
    assert worst[4] == pytest.approx(5e-7, rel=1e-12)
    tighter = _core.family_worst(pmfs, pairs, level_of("0.79"), delta)
    assert tighter is not None
    assert tighter[5]


# --- the class


def test_copies_and_words() -> None:
    noise = TruncatedDiscreteLaplace(epsilon="0.5", delta="1e-5", half_width="tight")
    assert repr(noise) == "TruncatedDiscreteLaplace(epsilon='0.5', delta='1e-5', half_width='tight')"
    for twin in (copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        assert twin.pmf() == noise.pmf()
        assert repr(twin) == repr(noise)


def test_pmfs_can_be_imported_without_the_core() -> None:
    script = """
import sys
sys.modules["userdp._core"] = None
from userdp import Pmf, exact_pmf
from userdp.mechanisms import Pmf, TruncatedDiscreteLaplace, exact_pmf
TruncatedDiscreteLaplace(epsilon=1, delta=1e-6)
import userdp.report
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": LogRatio(1)}, ValueError, "epsilon must be > 0"),
        ({"epsilon": -1}, ValueError, "epsilon must be >= 0"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be finite"),
        ({"epsilon": "much"}, ValueError, "epsilon='much'"),
        ({"epsilon": None}, TypeError, "epsilon must be"),
        ({"delta": 0}, ValueError, r"delta must be in \(0, 1\)"),
        ({"delta": 1}, ValueError, r"delta must be in \(0, 1\)"),
        ({"delta": 1.5}, ValueError, r"delta must be in \[0, 1\]"),
        ({"delta": -1e-9}, ValueError, r"delta must be in \[0, 1\]"),
        ({"delta": b"1"}, TypeError, "delta must be"),
        ({"half_width": "exact"}, ValueError, "half_width must be 'paper' or 'tight'"),
        ({"half_width": 12}, ValueError, "half_width must be 'paper' or 'tight'"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TruncatedDiscreteLaplace(**{"epsilon": 1, "delta": "1e-6", **arguments})
    if "half_width" not in arguments:
        with pytest.raises(error, match=message):
            tdlap_half_width(**{"epsilon": 1, "delta": "1e-6", **arguments})


@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "error", "message"),
    [
        (1, "1e-40", ValueError, "2\\^-128"),
        (1e-6, "1e-9", BudgetError, "larger epsilon or delta"),
        (1e-300, "1e-7", ValueError, "what works is epsilon = 2\\^-10"),
        (5e-324, "0.5", ValueError, "what works is epsilon = 2\\^-10"),
        ("1e-37", "0.3", ValueError, "what works is epsilon = 2\\^-10|larger"),
    ],
)
def test_what_no_table_holds(epsilon: Any, delta: Any, rule: Any, error: type[Exception], message: str) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    with pytest.raises(error, match=message):
        noise.pmf()


def test_a_ladder_that_is_too_high() -> None:
    # e^120 > 2^128: four steps of e^30 from an end of 1 / 2^128 lead beyond 1; the tight table needs only three.
    with pytest.raises(ValueError, match="probabilities over 2\\^128"):
        TruncatedDiscreteLaplace(epsilon=30, delta="1e-38").pmf()
    assert TruncatedDiscreteLaplace(epsilon=30, delta="1e-38", half_width="tight").half_width == 3


def test_what_no_refusal_table_holds() -> None:
    with pytest.raises(BudgetError, match="refusal table"):
        _core.RefusalTable(level_of(1e-9), F(1, 10**9))
    with pytest.raises(ValueError, match="delta"):
        _core.RefusalTable(level_of(1), F(1, 2**129))
    for level, delta in [(0, F(1, 2)), (1, F(0)), (1, F(1)), (1, F(-1))]:
        with pytest.raises(ValueError, match=r"epsilon|delta"):
            _core.RefusalTable(level_of(level), delta)


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), ((2, -1), ValueError), (1.0, TypeError), (True, TypeError), ("3", TypeError), ([3], TypeError)],
)
def test_bad_sizes(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="size must be"):
        TruncatedDiscreteLaplace(epsilon=1, delta="1e-6").sample(size)


def test_too_many_draws() -> None:
    noise = TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
    for size in (2**27 + 1, 10**30, (10**10, 10**10)):
        with pytest.raises(BudgetError, match="draw in parts"):
            noise.sample(size)


def test_ideal_pmf_only_where_it_is_rational() -> None:
    with pytest.raises(ValueError, match="LogRatio"):
        TruncatedDiscreteLaplace(epsilon=1, delta="1e-6").ideal_pmf()
    with pytest.raises(BudgetError, match="larger"):
        TruncatedDiscreteLaplace(epsilon=LogRatio(10**30 + 10**26, 10**30), delta="1e-6").ideal_pmf()
