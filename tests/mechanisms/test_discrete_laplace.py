"""Discrete Laplace noise against fractions: pmfs, privacy over all pairs, every boundary of the draws, bad input."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
import pytest

from oracle import discrete_laplace as oracle
from oracle.samplers import WHOLE, Level
from userdp import _core
from userdp.algorithms import finite_algorithm
from userdp.audit import audit_pair
from userdp.divergence import LogRatio
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import parse_level
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import DiscreteLaplace, Pmf

F = Fraction

# (epsilon of one unit, low, high, bits of the low digit or None for the core's choice)
PARAMETERS: list[tuple[Any, int, int, int | None]] = [
    (1, 0, 1, None),
    (1, 0, 2, None),
    (1, -3, 5, None),
    (1, 0, 67, None),
    (1, 0, 68, 0),
    (1, 0, 69, 0),
    (1, 0, 70, 0),
    (1, 0, 20, 2),
    (1, 0, 150, 3),
    (F(1, 10), -50, 100, None),
    (F(1, 10), 0, 40, 3),
    (F(1, 50), 0, 100, None),
    (LogRatio(2), 0, 200, 0),
    (LogRatio(2), 0, 200, 4),
    (LogRatio(4, 3), -7, 90, 1),
    (F(1, 3), 7, 220, None),
    (20, 0, 12, None),
    (1000, 0, 9, None),
    ("1e-6", 0, 30, None),
    ("1e-6", 0, 30, 2),
]


def tables_of(epsilon: Any, low: int, high: int, low_bits: int | None) -> _core.DiscreteLaplaceTables:
    return _core.DiscreteLaplaceTables(core_level(parse_level(epsilon)), low, high, low_bits)


def reference(epsilon: Any, width: int, tables: _core.DiscreteLaplaceTables) -> oracle.Digits:
    level = parse_level(epsilon)
    _, high, _, low, _ = tables.digits
    return oracle.digits(Level(level.ratio, level.exponent), width, len(low), len(high))


def distribution_of(tables: _core.DiscreteLaplaceTables, value: int) -> list[Fraction]:
    numerators, bits = tables.numerators(value)
    assert sum(numerators) == 2**bits
    return [F(numerator, 2**bits) for numerator in numerators]


def enclosure(epsilon: Any) -> Fraction:
    """At most e^epsilon, and within 2^-300 of it."""
    level = parse_level(epsilon)
    return Level(level.ratio, level.exponent).power(1)[0]


@pytest.mark.parametrize(("epsilon", "low", "high", "low_bits"), PARAMETERS)
def test_pmfs_are_the_references_and_private(epsilon: Any, low: int, high: int, low_bits: int | None) -> None:
    tables, width = tables_of(epsilon, low, high, low_bits), high - low
    expected = reference(epsilon, width, tables)
    assert tables.digits == (expected.center, expected.high, expected.rest, expected.low, expected.flat_bits)
    assert tables.bytes_per_draw == (16 if len(expected.low) == 1 and expected.flat_bits == 0 else 32)
    pmfs = [distribution_of(tables, value) for value in range(low, high + 1)]
    assert all(pmf == expected.distribution(offset, width) for offset, pmf in enumerate(pmfs))
    assert distribution_of(tables, low - 5) == pmfs[0]
    assert distribution_of(tables, 2**63 - 1) == pmfs[-1]
    assert pmfs[0] == pmfs[-1][::-1]
    if width % 2 == 0:
        assert pmfs[width // 2] == pmfs[width // 2][::-1]
    multiplier = enclosure(epsilon)
    assert oracle.is_private(pmfs, multiplier)
    # The certified bound covers all ratios, and does not exceed E; an epsilon a ten-thousandth smaller is not met.
    assert oracle.is_private(pmfs, tables.largest_ratio)
    assert tables.largest_ratio <= multiplier
    if multiplier < 2**64 and width > 1:
        assert not oracle.is_private(pmfs, 1 + (multiplier - 1) * F(9999, 10000))


@pytest.mark.parametrize(("epsilon", "high"), [(F(1, 4), 3000), (F(1, 40), 3000), (F(1, 1000), 3000)])
def test_long_ranges_are_private(epsilon: Any, high: int) -> None:
    tables = tables_of(epsilon, 0, high, None)
    multiplier = enclosure(epsilon)
    top, bottom = multiplier.numerator, multiplier.denominator
    before, _ = tables.numerators(0)
    # All pairs of neighboring values come down to these offsets and their mirror images, and a few more.
    for value in [*range(1, 40), *range(high // 2 - 20, high // 2 + 20), *range(high - 40, high + 1)]:
        one, _ = tables.numerators(value - 1)
        two, _ = tables.numerators(value)
        assert min(two) > 0
        assert all(p * bottom <= q * top and q * bottom <= p * top for p, q in zip(one, two, strict=True))
    assert tables.numerators(high)[0] == before[::-1]


@pytest.mark.parametrize(
    ("ratio", "high", "low_bits"),
    [(F(2), 40, None), (F(2), 300, 3), (F(11, 10), 300, None), (F(11, 10), 1200, None), (F(101, 100), 600, 3)],
)
def test_pmfs_are_next_to_the_ideal(ratio: Fraction, high: int, low_bits: int | None) -> None:
    tables = tables_of(LogRatio(ratio.numerator, ratio.denominator), 0, high, low_bits)
    worst = F(0)
    for value in (0, 1, high // 3, high // 2, high):
        pairs = zip(distribution_of(tables, value), oracle.ideal(ratio, value, high), strict=True)
        worst = max(worst, sum(abs(p - q) for p, q in pairs) / 2)
    print(f"E={ratio}, width {high}: total variation to the ideal 2^{math.log2(worst):.1f}")
    assert worst < F(1, 2**80)


# --- draws


def edges(numerators: Sequence[int], scale: int) -> list[int]:
    """The first and last draws of the shares of entries, of all of a few and some of many."""
    ends = [scale * end for end in accumulate(numerators)]
    chosen = ends if len(ends) <= 40 else [*ends[:10], *ends[len(ends) // 2 : len(ends) // 2 + 10], *ends[-10:]]
    return [0, 1, *(draw for end in chosen for draw in (end - 2, end - 1, end, end + 1) if draw < WHOLE)]


@pytest.mark.parametrize(("epsilon", "low", "high", "low_bits"), PARAMETERS)
def test_every_boundary_of_the_draws(epsilon: Any, low: int, high: int, low_bits: int | None) -> None:
    tables = tables_of(epsilon, low, high, low_bits)
    expected = reference(epsilon, high - low, tables)
    firsts = edges([expected.center, *expected.high, expected.rest], 2)
    seconds = [0, WHOLE - 1, WHOLE // 2, WHOLE // 2 - 1]
    if tables.bytes_per_draw == 16:
        seconds = [0]
    elif len(expected.low) > 1:
        seconds += edges(expected.low, 1)
    values = [low, high, (low + high) // 2, low - 1, high + 1, -(2**63), 2**63 - 1]
    draws = [(*pair, values[index % len(values)]) for index, pair in enumerate(product(firsts, seconds))]
    draws += [(bits, 0, value) for bits in firsts for value in values]
    wanted = [
        min(max(min(max(value, low), high) + expected.noise(bits, second), low), high) for bits, second, value in draws
    ]
    size = tables.bytes_per_draw - 16
    listed = b"".join(
        bits.to_bytes(16, "little") + (second.to_bytes(16, "little") if size == 16 else b"")
        for bits, second, _ in draws
    )
    given = np.array([value for *_, value in draws], dtype=np.int64)
    assert tables.release_many(given, _core.Source.listed(listed)).tolist() == wanted
    source = _core.Source.listed(listed)
    assert [tables.release(value, source) for *_, value in draws] == wanted
    assert given.tolist() == [value for *_, value in draws]  # what was passed is not written to
    with pytest.raises(OSError, match="used up"):
        tables.release(low, source)


def test_the_widest_ranges_do_not_overflow() -> None:
    for low, high in [(-(2**61), 2**61), (2**62, 2**63 - 1), (-(2**63), -(2**62)), (-(2**63), 1 - 2**63)]:
        for epsilon in (1, "0.01", "1e-6"):
            tables = tables_of(epsilon, low, high, None)
            expected = reference(epsilon, high - low, tables) if epsilon != "1e-6" else None
            source = random.Random(1)
            ends = [0, 1, WHOLE - 1, WHOLE - 2, WHOLE // 3]
            draws = [(bits, second) for bits in ends for second in ends]
            draws += [(source.randrange(WHOLE), source.randrange(WHOLE)) for _ in range(50)]
            for value in (low, high, (low + high) // 2, -(2**63), 2**63 - 1):
                for bits, second in draws:
                    listed = bits.to_bytes(16, "little") + second.to_bytes(16, "little")
                    release = tables.release(value, _core.Source.listed(listed))
                    assert low <= release <= high
                    if expected is not None:
                        noisy = min(max(value, low), high) + expected.noise(bits, second)
                        assert release == min(max(noisy, low), high)


def test_draws_follow_the_pmf() -> None:
    # Hoeffding: each of the 41 frequencies is further off than sqrt(11 / draws) with probability below 2 e^-22.
    noise, draws = DiscreteLaplace(scale=3, bounds=(0, 40)), 400_000
    with pytest.warns(InsecureRandomnessWarning):
        values = noise.sample(11, size=draws, random_state=3)
    seen = np.bincount(values, minlength=41) / draws
    limit = math.sqrt(11 / draws)
    assert abs(seen - noise.pmf(11).probabilities).max() < limit
    # The test can fail: half the noise.
    assert abs(seen - DiscreteLaplace(scale=1.5, bounds=(0, 40)).pmf(11).probabilities).max() > limit


# --- audits


def release(noise: DiscreteLaplace) -> Any:
    """The release of what one user holds."""
    low, high = noise.bounds
    return finite_algorithm(range(low, high + 1))(lambda users: noise.pmf(users[0][0]))


@pytest.mark.parametrize(
    ("arguments", "width"),
    [
        ({"epsilon": 1, "sensitivity": 1}, 9),
        ({"epsilon": LogRatio(3), "sensitivity": 2}, 7),
        ({"epsilon": "0.3", "sensitivity": 3}, 12),
    ],
)
def test_audit_of_all_values(arguments: dict[str, Any], width: int) -> None:
    noise = DiscreteLaplace(**arguments, bounds=(0, width))
    louder = DiscreteLaplace(scale=noise.scale / 2, bounds=(0, width))
    failures = 0
    for value in range(width + 1):
        for other in range(value + 1, min(value + arguments["sensitivity"], width) + 1):
            pair: Any = (((value,),), ((other,),))
            claim: Any = {"epsilon": arguments["epsilon"], "delta": 0}
            assert audit_pair(release(noise), *pair, **claim).holds
            failures += not audit_pair(release(louder), *pair, **claim).holds
    assert failures >= width - arguments["sensitivity"]
    assert noise.certified_epsilon <= math.nextafter(float(parse_level(arguments["epsilon"])), math.inf)
    assert noise.certified_epsilon_per_unit * arguments["sensitivity"] <= noise.certified_epsilon * (1 + 1e-15)


def test_the_root_of_a_ratio_is_rounded_toward_privacy() -> None:
    level = core_level(parse_level(LogRatio(10)))
    for degree in (1, 2, 3, 7, 1000):
        tables = _core.DiscreteLaplaceTables(level.root_below(degree), 0, 5)
        assert tables.largest_ratio**degree <= 10
        assert tables.largest_ratio**degree > F(99999, 10000)


# --- the class


def test_arrays_and_numbers() -> None:
    noise = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(-5, 5))
    assert type(noise.sample(3)) is int
    assert type(noise.sample(np.int8(3))) is int
    for dtype in (np.int8, np.uint8, np.int16, np.uint32, np.int64, ">i8"):
        values = noise.sample(np.zeros((2, 0, 3), dtype=dtype))
        assert (values.shape, values.dtype) == ((2, 0, 3), np.int64)
    assert noise.sample(np.arange(12).reshape(3, 4)[:, ::2]).shape == (3, 2)
    assert noise.sample(np.array(7)).shape == ()
    assert noise.sample(7, size=(2, 3)).shape == (2, 3)
    assert noise.sample(10**30, size=4).max() <= 5
    # Each entry has its own value, in order.
    sharp = DiscreteLaplace(scale="0.0001", bounds=(0, 10**6))
    given = np.random.default_rng(1).integers(0, 10**6, (5, 7))
    assert (sharp.sample(given) == given).all()
    assert (sharp.sample(given.T) == given.T).all()
    # Batches are the singles.
    with pytest.warns(InsecureRandomnessWarning):
        batch = noise.sample(2, size=1500, random_state=8)
    one_by_one = _core.Source(8)
    assert [noise._core_noise.release(2, one_by_one) for _ in range(1500)] == batch.tolist()
    assert len(set(noise.sample(0, size=100).tolist())) > 1


def test_pickle_repr_and_figures() -> None:
    noise = DiscreteLaplace(epsilon="0.5", sensitivity=3, bounds=(0, 10))
    assert repr(noise) == "DiscreteLaplace(epsilon='0.5', sensitivity=3, bounds=(0, 10))"
    assert repr(DiscreteLaplace(scale=2, bounds=(0, 1))) == "DiscreteLaplace(scale=2, bounds=(0, 1))"
    weights = noise.pmf(4)
    copy = pickle.loads(pickle.dumps(noise))
    assert "_tables" not in vars(copy)
    assert copy.pmf(4) == weights
    assert isinstance(weights, Pmf)
    assert weights.outputs == tuple(range(11))
    assert (noise.scale, noise.bounds) == (6.0, (0, 10))
    assert DiscreteLaplace(scale=2, bounds=(0, 1)).certified_epsilon_per_unit <= 0.5
    with pytest.raises(ValueError, match="certified_epsilon_per_unit"):
        _ = DiscreteLaplace(scale=2, bounds=(0, 1)).certified_epsilon


def test_figures_beyond_all_floats() -> None:
    least = DiscreteLaplace(scale="1e-400", bounds=(0, 10))
    assert 0 < least.certified_epsilon_per_unit < 45  # the noise is cut there
    assert least.scale == 0.0
    loose = DiscreteLaplace(epsilon="1e400", sensitivity=10**400, bounds=(0, 10))
    assert (loose.scale, loose.certified_epsilon) == (1.0, math.inf)
    for epsilon, sensitivity in [("1e-400", 1), (LogRatio(10**400 + 1, 10**400), 1), (LogRatio(3), 10**400)]:
        assert DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, bounds=(0, 10)).scale == math.inf


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({}, TypeError, "neither"),
        ({"scale": 1, "epsilon": 1}, TypeError, "both"),
        ({"scale": 1, "sensitivity": 1}, TypeError, "sensitivity"),
        ({"epsilon": 1}, TypeError, "sensitivity"),
        ({"epsilon": 0, "sensitivity": 1}, ValueError, "epsilon"),
        ({"epsilon": -1, "sensitivity": 1}, ValueError, "epsilon"),
        ({"epsilon": 1, "sensitivity": 0}, ValueError, "sensitivity"),
        ({"epsilon": 1, "sensitivity": 1.5}, TypeError, "sensitivity"),
        ({"scale": 0}, ValueError, "scale"),
        ({"scale": math.nan}, ValueError, "scale"),
        ({"scale": math.inf}, ValueError, "scale"),
        ({"scale": True}, TypeError, "scale"),
        ({"scale": "many"}, ValueError, "scale"),
        ({"scale": 1, "bounds": 3}, TypeError, "bounds"),
        ({"scale": 1, "bounds": (0, 1, 2)}, TypeError, "bounds"),
        ({"scale": 1, "bounds": (0, 1.0)}, TypeError, "bounds"),
        ({"scale": 1, "bounds": (False, 1)}, TypeError, "bounds"),
        ({"scale": 1, "bounds": (np.timedelta64(0, "ns"), np.timedelta64(1, "ns"))}, TypeError, "bounds"),
        ({"scale": 1, "bounds": (1, 1)}, ValueError, "bounds"),
        ({"scale": 1, "bounds": (2**63 - 1, 2**63)}, ValueError, "bounds"),
        ({"scale": 1, "bounds": (0, 2**62 + 1)}, ValueError, "bounds"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        DiscreteLaplace(**{"bounds": (0, 1), **arguments})


@pytest.mark.parametrize(
    "value",
    [
        *[1.0, math.nan, True, np.True_, None, "1", [1, 2], np.array([1.0]), np.array([True])],
        *[np.timedelta64(1, "ns"), np.timedelta64(1, "s"), np.timedelta64("NaT"), np.array([1], dtype="m8[s]")],
        *[np.array([1], dtype=np.uint64), np.array([1], dtype=object), np.ma.masked_array([1])],
    ],
)
def test_bad_values_are_refused_by_type(value: Any) -> None:
    with pytest.raises(TypeError, match="value"):
        DiscreteLaplace(scale=1, bounds=(0, 1)).sample(value)


def test_too_much_is_refused_up_front() -> None:
    with pytest.raises(ValueError, match="coarser"):
        DiscreteLaplace(scale=2**33, bounds=(0, 10)).sample(1)
    with pytest.raises(BudgetError, match="coarser"):
        DiscreteLaplace(scale=2**28, bounds=(0, 2**60)).sample(1)
    wide = DiscreteLaplace(scale=1, bounds=(0, 2**20))
    with pytest.raises(BudgetError, match="narrower"):
        wide.pmf(3)
    with pytest.raises(BudgetError, match="draws"):
        wide.sample(3, size=2**28)
    for kind in (np.int64, np.int8):  # a view of one number: a copy of it would not fit any memory
        with pytest.raises(BudgetError, match="draws"):
            wide.sample(np.broadcast_to(kind(3), (2**48,)))
    with pytest.raises(ValueError, match="size"):
        wide.sample(np.array([1]), size=3)


@pytest.mark.parametrize(("scale", "bounds"), [(2, (0, 5)), (10, (-300, 300)), (3, (0, 2000)), ("0.03", (0, 4))])
def test_tails_of_the_noise_are_those_of_releases(scale: Any, bounds: tuple[int, int]) -> None:
    noise = DiscreteLaplace(scale=scale, bounds=bounds)
    low, high = bounds
    for value in range(low, high + 1, max(1, (high - low) // 5)):
        pmf = noise.pmf(value)
        for place in range(1, high - low + 1, max(1, (high - low) // 9)):
            assert noise.tail(low + place - value) == Fraction(sum(pmf.weights[place:]), pmf.total)
    with pytest.raises(TypeError, match="x must be an int"):
        noise.tail(0.5)  # type: ignore[arg-type]
