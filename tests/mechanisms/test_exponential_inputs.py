"""The exponential mechanism's arguments: scores on a grid, bad input, draws in all shapes, copies, entropy."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio, _core
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import ExponentialMechanism

F = Fraction
TINY = 5e-324


def mechanism(**arguments: Any) -> ExponentialMechanism:
    return ExponentialMechanism(**{"epsilon": 1, "sensitivity": 1, **arguments})


# --- scores on the grid


def floats(source: random.Random, exponent: int) -> float:
    """Floats of all sizes, near the grid 2^exponent and far from it."""
    magnitude = source.choice(
        [
            0.0,
            TINY,
            2.2250738585072014e-308,
            source.random(),
            math.ldexp(source.random(), source.randrange(-1080, 1024)),
        ]
        + [math.ldexp(source.randrange(2**53), max(min(exponent + source.randrange(-60, 12), 960), -1074))] * 4
    )
    return source.choice((-1, 1)) * magnitude


def test_floats_are_rounded_down_exactly() -> None:
    source, inside, outside = random.Random(3), 0, 0
    for _ in range(20_000):
        exponent = source.choice((0, -1, 1, -20, 20, -1074, 1023, source.randrange(-1074, 1024)))
        granularity, x, negate = F(2) ** exponent, floats(source, exponent), source.random() < 0.5
        grid = _core.Granularity(granularity)
        expected = math.floor((-F(x) if negate else F(x)) / granularity)
        if -(2**63) <= expected < 2**63:
            assert grid.of_floats(np.array([x]), negate).tolist() == [expected]
            inside += 1
        else:
            with pytest.raises(ValueError, match=r"scores: the score at index 1 is .* steps"):
                grid.of_floats(np.array([0.0, x]), negate)
            outside += 1
    assert inside > 10_000
    assert outside > 500


def test_integers_are_rounded_down_exactly() -> None:
    source = random.Random(4)
    edges = [0, 1, -1, 2**63 - 1, -(2**63), 2**62, -(2**62) - 1]
    for _ in range(5000):
        exponent = source.choice((0, -1, 1, -62, -63, 62, 63, 64, 200, -200, source.randrange(-70, 70)))
        x = source.choice([*edges, source.randrange(-(2 ** source.randrange(1, 64)), 2 ** source.randrange(1, 63))])
        negate = source.random() < 0.5
        expected = math.floor(F(-x if negate else x) / F(2) ** exponent)
        if -(2**63) <= expected < 2**63:
            assert _core.Granularity(F(2) ** exponent).of_integers(np.array([x]), negate).tolist() == [expected]
        else:
            with pytest.raises(ValueError, match="at index 0"):
                _core.Granularity(F(2) ** exponent).of_integers(np.array([x]), negate)


def test_tiny_negative_floats_are_below_zero() -> None:
    for granularity in (1, 2.0**-20, 2.0**1023, F(1, 2**1073)):
        grid = _core.Granularity(F(granularity))
        assert grid.of_floats(np.array([-TINY, TINY, -0.0, 0.0]), False).tolist() == [-1, 0, 0, 0]
        assert grid.of_floats(np.array([-TINY, TINY, -0.0, 0.0]), True).tolist() == [0, -1, 0, 0]


def test_sensitivities_are_rounded_up_to_the_grid() -> None:
    source = random.Random(5)
    for _ in range(2000):
        granularity = F(2) ** source.randrange(-100, 100)
        sensitivity = granularity * F(source.randrange(1, 10**12), source.randrange(1, 10**6))
        steps = _core.Granularity(granularity).sensitivity(sensitivity)
        assert (steps - 1) * granularity < sensitivity <= steps * granularity
    assert mechanism(sensitivity="0.1", granularity=0.25).certified_epsilon == mechanism().certified_epsilon


def test_a_grid_gives_the_pmf_of_its_integers() -> None:
    scores = [0.1, -0.3, 2.49, 2.5, -1e-300]
    coarse = mechanism(sensitivity=F(3, 4), granularity=0.5)
    fine = mechanism(sensitivity=2)
    assert coarse.pmf(scores) == fine.pmf([0, -1, 4, 5, -1])
    assert mechanism(sensitivity=F(3, 4), granularity=0.5, maximize=True).pmf(scores) == fine.pmf([-1, 0, -5, -5, 0])
    assert mechanism(sensitivity=1, granularity=2).pmf([7, -7, 0]) == mechanism().pmf([3, -4, 0])
    assert mechanism(granularity=2, maximize=True).pmf([7, -7, 0]) == mechanism().pmf([-4, 3, 0])
    assert mechanism(granularity=2, maximize=True).pmf([-(2**63), 0]) == mechanism().pmf([2**62, 0])


SAME = [3, 0, -2, 7, 7, -(2**31)]


@pytest.mark.parametrize(
    "scores",
    [
        tuple(SAME),
        range(0),
        np.array(SAME, dtype=np.int64)[::-1][::-1],
        np.array([SAME, SAME]).T[:, 0],
        np.array(SAME, dtype=np.int32),
        np.array(SAME, dtype=">i8"),
        np.array(SAME, dtype=np.float64),
        np.array(SAME, dtype=np.float32),
        [float(score) for score in SAME],
        [*SAME[:-1], float(SAME[-1])],
        memoryview(np.array(SAME)),
    ],
    ids=lambda scores: type(scores).__name__,
)
def test_scores_in_all_forms(scores: Any) -> None:
    if isinstance(scores, range):
        scores, expected = range(5), [0, 1, 2, 3, 4]
    else:
        expected = SAME
    for maximize in (False, True):
        choice = mechanism(maximize=maximize)
        assert choice.pmf(scores) == choice.pmf(np.array(expected))
        assert 0 <= choice.sample(scores) < len(expected)


def test_small_and_unsigned_integers() -> None:
    expected = mechanism().pmf([0, 100, 27])
    for kind in (np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64):
        assert mechanism().pmf(np.array([0, 100, 27], dtype=kind)) == expected
    read_only = np.array([0, 100, 27])
    read_only.flags.writeable = False
    assert mechanism().pmf(read_only) == expected
    assert mechanism().sample(read_only, 3).shape == (3,)
    unaligned = np.frombuffer(b"\0" + np.array([0, 100, 27]).tobytes(), dtype=np.int64, offset=1)
    assert mechanism().pmf(unaligned) == expected
    assert mechanism().pmf([2**63 - 1, -(2**63)]).weights[0] < 2**65


def test_maximizing_is_minimizing_complements() -> None:
    source = random.Random(6)
    for _ in range(300):
        scores = np.array([source.randrange(-(2**63), 2**63) >> source.randrange(64) for _ in range(5)])
        assert mechanism(maximize=True).pmf(scores) == mechanism().pmf(~scores)
    # The negatives of small scores have the same gaps.
    assert mechanism(maximize=True).pmf([1, 5, 3]) == mechanism().pmf([-1, -5, -3])
    assert mechanism(maximize=True).pmf([2**63 - 1, -(2**63)]).weights[0] > 2**127


def test_one_candidate_is_certain() -> None:
    assert mechanism().pmf([-(2**63)]).weights == (2**128,)
    assert mechanism().sample([17]) == 0
    assert mechanism().sample([17], 4).tolist() == [0, 0, 0, 0]


# --- bad input

FLOAT = {"granularity": 0.5}


@pytest.mark.parametrize(
    ("arguments", "scores", "error", "message"),
    [
        ({}, [], ValueError, "scores: is empty"),
        ({}, np.array([], dtype=np.int64), ValueError, "scores: is empty"),
        ({}, [[1, 2]], ValueError, r"shape \(1, 2\)"),
        ({}, 3, ValueError, r"shape \(\)"),
        ({}, [1, [2, 3]], TypeError, "vector of numbers"),
        ({}, [1.0, 0.5], ValueError, "index 1 is 0.5; it must be an integer; give a granularity"),
        ({}, [0.0, math.nan], ValueError, "index 1 is NaN; it must be finite"),
        (FLOAT, [0.0, 1.0, math.nan], ValueError, "index 2 is NaN"),
        (FLOAT, [math.inf, math.nan], ValueError, "index 0 is inf"),
        (FLOAT, [0.0, -math.inf], ValueError, "index 1 is -inf"),
        ({}, [2**63], ValueError, "index 0 must be at most"),
        ({}, np.array([0, 2**64 - 1], dtype=np.uint64), ValueError, "index 1 must be at most"),
        ({}, [0, 2**64], TypeError, "object"),
        ({}, [2.0**63], ValueError, "index 0"),
        ({}, [-(2.0**63) - 2048], ValueError, "index 0"),
        (FLOAT, [2.0**62], ValueError, "index 0 is .* steps of the granularity"),
        (FLOAT, [0, 2**62], ValueError, "index 1 is .* steps of the granularity"),
        ({}, [2**53 + 1, 1.0], ValueError, "at index 0 would be rounded"),
        ({}, deque([1.0, 2**53 + 1]), ValueError, "at index 1 would be rounded"),
        ({}, [np.array(2**53 + 1), 1.0], ValueError, "at index 0 would be rounded"),
        (FLOAT, [np.uint64(2**53 + 1), np.int64(-1)], ValueError, "at index 0 would be rounded"),
        ({}, [True, False], TypeError, "bool"),
        ({}, np.array([1, 2], dtype=object), TypeError, "object"),
        ({}, [F(1), F(2)], TypeError, "object"),
        ({}, ["1", "2"], TypeError, "scores must be integers"),
        ({}, [1j], TypeError, "complex"),
        ({}, None, ValueError, "vector"),
        ({}, np.array([1, 2], dtype="m8[s]"), TypeError, "timedelta"),
        ({}, np.ma.masked_array([1, 2], [0, 1]), TypeError, "masked"),
    ],
)
def test_bad_scores(arguments: dict[str, Any], scores: Any, error: type[Exception], message: str) -> None:
    choice = mechanism(**arguments)
    with pytest.raises(error, match=message):
        choice.sample(scores)
    with pytest.raises(error, match=message):
        choice.sample(scores, 2)
    with pytest.raises(error, match=message):
        choice.pmf(scores)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, r"epsilon: must be above 2\^-35.*; got 0"),
        ({"epsilon": Fraction(1, 2**35)}, ValueError, r"epsilon: must be above 2\^-35"),
        ({"epsilon": 88}, ValueError, "below 88 .*; got 88"),
        ({"epsilon": LogRatio(10**39)}, ValueError, "below 88"),
        ({"epsilon": -1}, ValueError, "epsilon must be >= 0"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be finite"),
        ({"epsilon": None}, TypeError, "epsilon must be"),
        ({"sensitivity": 0}, ValueError, "sensitivity must be > 0; got 0"),
        ({"sensitivity": -1}, ValueError, "sensitivity must be > 0"),
        ({"sensitivity": 0.5}, ValueError, "sensitivity: must be an integer.*granularity.*; got 0.5"),
        ({"sensitivity": 2**62}, ValueError, r"sensitivity: .* below 2\^62; got 4611686018427387904"),
        ({"sensitivity": 1, "granularity": 2.0**-62}, ValueError, "steps of the granularity; got 1 with"),
        ({"sensitivity": math.inf}, ValueError, "sensitivity must be finite"),
        ({"sensitivity": True}, TypeError, "sensitivity must be"),
        ({"sensitivity": None}, TypeError, "sensitivity must be"),
        ({"granularity": 0.3}, ValueError, "granularity: must be a power of two .*; got 0.3"),
        ({"granularity": 3}, ValueError, "power of two"),
        ({"granularity": F(2) ** 1024}, ValueError, "power of two"),
        ({"granularity": F(1, 2**1075)}, ValueError, "power of two"),
        ({"granularity": 0}, ValueError, "granularity must be > 0"),
        ({"granularity": -0.5}, ValueError, "granularity must be > 0"),
        ({"granularity": True}, TypeError, "granularity must be"),
        ({"granularity": "fine"}, ValueError, "granularity='fine'"),
        ({"maximize": 1}, TypeError, "maximize must be a bool; got 1"),
        ({"monotone": None}, TypeError, "monotone must be a bool"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mechanism(**arguments)


@pytest.mark.parametrize("epsilon", [1, 1.0, F(1), "1", "1.0", Decimal(1), np.float64(1), np.int8(1)])
@pytest.mark.parametrize("sensitivity", [2, 2.0, F(2), "2", Decimal(2), np.float32(2), np.uint8(2)])
def test_parameters_in_all_forms(epsilon: Any, sensitivity: Any) -> None:
    assert mechanism(epsilon=epsilon, sensitivity=sensitivity).pmf([0, 3]) == mechanism(sensitivity=2).pmf([0, 3])


def test_levels_at_the_ends_of_the_range() -> None:
    for epsilon in (math.nextafter(2.0**-35, 1), math.nextafter(88.0, 0), LogRatio(10**38)):
        for sensitivity in (1, 2**62 - 1):
            pmf = mechanism(epsilon=epsilon, sensitivity=sensitivity).pmf([0, 2**62, -(2**62)])
            assert pmf.total == 2**128
            assert min(pmf.weights) > 0


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), ((2, -1), ValueError), (1.0, TypeError), (True, TypeError), ("3", TypeError), ([3], TypeError)],
)
def test_bad_sizes(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="size must be"):
        mechanism().sample([1, 2], size)


def test_what_is_too_large() -> None:
    with pytest.raises(BudgetError, match="draw in parts"):
        mechanism().sample([1, 2], 2**27 + 1)
    with pytest.raises(ValueError, match=r"scores: has 16777217 entries, above .* 2\^24"):
        mechanism().sample(np.zeros(2**24 + 1, dtype=np.int64))
    with pytest.raises(BudgetError, match="gigabytes"):
        mechanism().pmf(np.zeros(2**22 + 1, dtype=np.int64))
    assert 0 <= mechanism().sample(np.zeros(2**22 + 1, dtype=np.int64)) <= 2**22


# --- draws


def test_shapes_and_seeds() -> None:
    choice, scores = mechanism(epsilon="0.5"), np.arange(50)
    assert type(choice.sample(scores)) is int
    assert choice.sample(scores, 0).shape == (0,)
    assert choice.sample(scores, (2, 0, 3)).shape == (2, 0, 3)
    assert choice.sample(scores, ()).shape == ()
    values = choice.sample(scores, (20, 30))
    assert values.dtype == np.int64
    assert len(set(values.ravel().tolist())) > 1
    with pytest.warns(InsecureRandomnessWarning):
        first = choice.sample(scores, (2, 3), random_state=8)
    with pytest.warns(InsecureRandomnessWarning):
        again = choice.sample(scores, 6, random_state=8)
    with pytest.warns(InsecureRandomnessWarning):
        single = choice.sample(scores, random_state=8)
    assert first.ravel().tolist() == again.tolist()
    assert single == again[0]


def test_an_integer_random_state_warns_about_the_callers_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism().sample([1, 2])
        assert not caught
        mechanism().sample([1, 2], random_state=1)
    assert [(warning.category, warning.filename) for warning in caught] == [(InsecureRandomnessWarning, __file__)]


@pytest.mark.parametrize(("candidates", "draws"), [(30, 300_000), (5000, 50_000)])
def test_draws_follow_the_pmf(candidates: int, draws: int) -> None:
    choice = mechanism()
    scores = np.arange(candidates) * 7919 % 31
    with pytest.warns(InsecureRandomnessWarning):
        values = choice.sample(scores, draws, random_state=9)
    # Candidates by their score: 31 or fewer cells, the rare ones together.
    found = np.bincount(scores[values], minlength=31)
    masses = [F(0)] * 31
    for score, mass in zip(scores, choice.pmf(scores).weights, strict=True):
        masses[score] += F(mass, 2**128)

    def statistic(pmf: list[Fraction]) -> tuple[float, int]:
        cells = [(0, F(0))]
        for count, mass in zip(found.tolist(), pmf, strict=True):
            cells[-1] = (cells[-1][0] + count, cells[-1][1] + mass)
            if cells[-1][1] * draws > 30:
                cells.append((0, F(0)))
        rest = cells.pop()
        cells[-1] = (cells[-1][0] + rest[0], cells[-1][1] + rest[1])
        return sum(float((count - draws * mass) ** 2 / (draws * mass)) for count, mass in cells), len(cells) - 1

    # P[chi-square of d degrees > d + 2 sqrt(20 d) + 40] < e^-20 (Laurent and Massart).
    value, degrees = statistic(masses)
    print(f"chi-square {value:.1f} at {degrees} degrees")
    assert value < degrees + 2 * math.sqrt(20 * degrees) + 40
    flatter = [mass**2 / sum(m**2 for m in masses) for mass in masses]
    value, degrees = statistic(flatter)
    assert value > degrees + 2 * math.sqrt(20 * degrees) + 40


def test_entropy_that_fails_is_an_error() -> None:
    rate, scores = mechanism()._rate, np.array([1, 2, 3])
    for few in (b"", b"\0" * 15):
        with pytest.raises(OSError, match="used up"):
            rate.sample(scores, _core.Source.listed(few), False)
    with pytest.raises(OSError, match="used up"):
        rate.sample_many(scores, _core.Source.listed(b"\0" * 47), 3, False)
    assert rate.sample_many(scores, _core.Source.listed(b"\0" * 48), 3, False).tolist() == [0, 0, 0]


# --- the class


def test_copies_and_words() -> None:
    choice = ExponentialMechanism(epsilon="0.5", sensitivity=F(1, 3), granularity=2.0**-9, maximize=True)
    assert repr(choice) == (
        "ExponentialMechanism(epsilon='0.5', sensitivity=Fraction(1, 3), granularity=0.001953125, maximize=True)"
    )
    assert repr(mechanism(monotone=np.True_)) == "ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)"
    before = pickle.dumps(choice)
    choice.sample([0.25, 1])
    assert pickle.dumps(choice) == before  # nothing of the scores is kept
    for twin in (copy.deepcopy(choice), pickle.loads(before)):
        assert repr(twin) == repr(choice)
        assert twin.pmf([0.1, 3]) == choice.pmf([0.1, 3])
        assert twin.certified_epsilon == choice.certified_epsilon


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_share_no_draws() -> None:
    # 20 draws from 4096 equal candidates agree by chance with probability 2^-240.
    script = """
import os
import numpy as np
from userdp.mechanisms import ExponentialMechanism
choice, scores = ExponentialMechanism(epsilon=1, sensitivity=1), np.zeros(4096, dtype=np.int64)
choice.sample(scores)
found = []
for child in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        draws = [choice.sample(scores) for _ in range(20)] + choice.sample(scores, 20).tolist()
        os.write(write, repr(draws).encode())
        os._exit(0)
    os.wait()
    found.append(eval(os.read(read, 10000)))
first, second = found
assert len(first) == 40 and first[:20] != second[:20] and first[20:] != second[20:]
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
