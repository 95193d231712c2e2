"""Numbers that are drawn as far as a program asks: the same laws as by counting all values, and the same answers."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import random
import secrets
from bisect import bisect
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.audit import audit_sampler_law
from userdp.audit.exhaustion import Draws, Exhaustion, Outputs
from userdp.audit.lazy import LazyFloat, settled, uniform_integer
from userdp.audit.stand_ins import STAND_INS, Randomness

F = Fraction
BITS, EXPRESSIONS = 12, 100
SIZE = 1 << BITS
ONE_USER: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1}

# Programs of one uniform number of 12 bits, made at random -----------------------------------------------------------

Program = Callable[[Any], Any]
EDGES = np.array([0.0, 0.1, 0.3, 0.55, 0.9, 1.0])


def arithmetic(source: random.Random) -> Program:
    """A step that moves or scales a number, sometimes to where it raises."""
    c = source.choice([0.25, -0.7, 3, 1e-3, np.float64(1.7), -2, 0.0, 0, 10**20, np.int64(3), 1e300, math.inf])
    return source.choice(
        [
            lambda v: v + c,
            lambda v: c + v,
            lambda v: v - c,
            lambda v: c - v,
            lambda v: v * c,
            lambda v: c * v,
            lambda v: v / c,
            lambda v: c / v,
            lambda v: -v,
            abs,
            lambda v: np.add(v, 0.5),
            lambda v: np.subtract(c, v),
            lambda v: np.multiply(v, -3.5),
            lambda v: np.true_divide(v, 0.3),
            lambda v: np.maximum(v, 0.2),
            lambda v: np.minimum(c, v),
            np.negative,
            lambda v: v if v < c else v + 1,
            lambda v: min(v, c),
            lambda v: round(v, 2),
        ]
    )


def conclusion(source: random.Random) -> Program:
    """What a program returns: few different things."""
    c, k = source.uniform(-3, 3), source.randrange(SIZE) / SIZE
    return source.choice(
        [
            lambda v: v < c,
            lambda v: v <= k,
            lambda v: v > k,
            lambda v: k >= v,
            lambda v: v == k,
            lambda v: v != k,
            lambda v: bool(v),
            lambda v: int(v * 5),
            lambda v: math.floor(v * 3 + c),
            lambda v: math.ceil(c - v),
            lambda v: round(4 * v),
            lambda v: math.trunc(v * -3),
            lambda v: int(np.argmax(v < EDGES)),
            lambda v: tuple((v >= EDGES[1:3]).tolist()),
            lambda v: bool(np.any(v >= EDGES)),
            lambda v: bool(np.isclose(v, k)),
            lambda v: math.isclose(v, k, rel_tol=1e-2),
            lambda v: abs(v - k) < 0.01,
            lambda v: bisect(EDGES.tolist(), v),
            lambda v: int(np.searchsorted(EDGES, v)),
            lambda v: float(np.floor(v * 2)),
            lambda v: float(np.rint(v * 2)),
            lambda v: 1 if math.log(v) < c else 0,
            lambda v: v < Fraction(1, 3),
            lambda v: v > Decimal("0.2"),
            lambda v: v == None,  # noqa: E711
            lambda v: v < "x",
            lambda v: v == math.nan or v < math.nan,
            lambda v: int(v * 8) % 3,
            lambda v: f"{v * 2:.0f}",
            lambda v: max(min(v, k), 0.25) == k,
            lambda v: (v > 0.5) + (v > 0.25),
            lambda v: isinstance(v, float) and isinstance(v * 2, float),
            lambda v: np.isnan(v) or not np.isfinite(v + 1),
            lambda v: np.searchsorted(EDGES, v, side="right").item(),
            lambda v: divmod(v, 0.25)[0],
            lambda v: v**2 < 0.5,
            lambda v: v // 0.3,
            lambda v: copy.deepcopy(v) < c,
            lambda v: v.is_integer(),
        ]
    )


def scaled(k: int) -> float:
    return k * 2.0**-BITS


def outcome(program: Program, number: Any) -> Any:
    try:
        return settled(program(number))
    except Exception as error:
        return type(error).__name__, str(error)


def random_program(seed: int) -> Program:
    source = random.Random(seed)
    steps = [arithmetic(source) for _ in range(source.randrange(4))]
    end = conclusion(source)

    def program(v: Any) -> Any:
        for step in steps:
            v = step(v)
        return end(v)

    return program


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("block", range(10))
def test_laws_are_those_of_all_values(block: int) -> None:
    """Random expressions: the law by intervals is the count over all 4096 values. 500 of them agreed once."""
    runs = 0
    for seed in range(block, EXPRESSIONS, 10):
        runs += compare_with_counts(random_program(seed), seed)
    assert runs


def compare_with_counts(program: Program, name: Any) -> int:
    """Compare a program's law with the count over all values, where it has few outputs; the runs it took."""
    counted = Counter(repr(outcome(program, scaled(k))) for k in range(SIZE))
    if len(counted) > 60:
        return 0
    outputs = Outputs()
    law = Exhaustion(
        lambda draws: repr(outcome(program, LazyFloat(draws.source(SIZE), (scaled,)))),
        outputs,
    )
    while not law.finished:
        law.step()
    found = {outputs.values[place]: part for place, part in law.masses.items()}
    assert found == {text: F(times, SIZE) for text, times in counted.items()}, name
    return law.runs


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "program",
    [
        lambda v: (v * 1e308 * 10 * 0) == 0,
        lambda v: (v * 1e308 * 10 - 1e308 * 10) < 1,
        lambda v: 1 / (v - 0.5) < 3,
        lambda v: np.true_divide(1.0, v - 0.5) < 3,
        lambda v: -2 / (0.25 - v) > -9,
        lambda v: abs(v - 0.5) < 0.125,
        lambda v: np.absolute(0.75 - v) >= 0.5,
        lambda v: 1 / v > 100,
        lambda v: v * math.inf > 1,
        lambda v: v / math.inf == 0,
        lambda v: (v * 0.0, v < 0.5),
        lambda v: 1e-320 / (v + 1) < 6e-321,
        lambda v: v * 5e-324 > 0,
        lambda v: math.log(v - 0.25) < -1,
        lambda v: np.log(v) < -1,
        lambda v: math.copysign(1, v * -0.0),
        lambda v: v < np.array([[0.25, 0.5], [0.75, 1.0]]),
        lambda v: v == np.array([0.25, 0.5]),
        lambda v: np.float64(0.3) > v,
        lambda v: bool(np.where(v < 0.5, 1, 0)),
        lambda v: np.clip(v, 0.4, 0.4).item(),
        lambda v: sorted([0.5, v, 0.25]).index(0.5),
    ],
)
def test_where_monotony_ends(program: Program) -> None:
    """Infinities, poles, signs of zero and logarithms: the same laws, by more runs."""
    assert compare_with_counts(program, "special")


def changing(first: Program, second: Program) -> Callable[[Any, Any], Any]:
    """A program that asks for other things from its second call on."""
    calls = [0]

    def mechanism(dataset: Any, source: Any) -> Any:
        calls[0] += 1
        return (first if calls[0] == 1 else second)(source)

    return mechanism


@pytest.mark.parametrize(
    "mechanism",
    [
        changing(lambda bits: bits(4) < 2, lambda bits: bits(4) < 3),
        changing(lambda bits: bits(4) < 2, lambda bits: bits(8) < 2),
        changing(lambda bits: bits(4) < 2, lambda bits: (bits(4), bits(4))[1] < 2),
        changing(lambda bits: bits(4) < 2, lambda bits: False),
        changing(lambda bits: int(bits(4)), lambda bits: int(bits(8))),
        changing(lambda bits: bits(1) == 0, lambda bits: True),
    ],
)
def test_programs_that_ask_for_other_things_are_refused(mechanism: Any) -> None:
    with pytest.raises(ValueError, match="it asked for others"):
        audit_sampler_law(mechanism, **ONE_USER, epsilon=1, delta=0, randomness="lazy-bits")


def test_programs_that_ask_for_longer_integers_are_refused() -> None:
    mechanism = changing(lambda bits: bits(4), lambda bits: bits(8))
    with pytest.raises(ValueError, match="it asked for others"):
        audit_sampler_law(mechanism, **ONE_USER, epsilon=1, delta=0)


@pytest.mark.parametrize(
    "operation",
    [
        lambda v: v * 7 >> 4,
        lambda v: v // 900,
        lambda v: (v << 2) < 5000,
        lambda v: v & 3,
        lambda v: 5 | v % 2,
        lambda v: v ^ 1 == 3,
        lambda v: ~v > -100,
        lambda v: range(9)[v >> 9],
        lambda v: v / SIZE < 0.3,
        lambda v: v * 0.001 > 1.5,
        lambda v: 3 >> (v > 7),
        lambda v: (v == 17, v != 4000, v >= 4090),
        lambda v: isinstance(v, int),
        lambda v: round(v) < 10,
        lambda v: hash(v) % 2 if v < 20 else "many",
        lambda v: pickle.loads(pickle.dumps(v)) if v > 4090 else 0,
        lambda v: {**{1: "one"}}.get(v, "other"),
        lambda v: -v // 1000,
    ],
)
def test_integers_that_are_asked_for_in_part(operation: Program) -> None:
    counted = Counter(repr(operation(k)) for k in range(SIZE))
    outputs = Outputs()
    law = Exhaustion(lambda draws: repr(settled(operation(uniform_integer(draws.source(SIZE))))), outputs)
    while not law.finished:
        law.step()
    assert {outputs.values[place]: part for place, part in law.masses.items()} == {
        text: F(times, SIZE) for text, times in counted.items()
    }


def test_thresholds_have_the_rounding_of_the_expression() -> None:
    """u * 0.1 <= 0.03 in floats, not in numbers: the cut is where the float product changes sides."""

    def mechanism(dataset: Any, rng: random.Random) -> bool:
        return rng.random() * 0.1 <= 0.03

    report = audit_sampler_law(mechanism, **ONE_USER, epsilon=0, delta=0, randomness="random")
    cut = next(k for k in range(round(0.3 * 2**53) - 9, 2**53) if not k * 2.0**-53 * 0.1 <= 0.03)
    assert dict(report.law([(0,)]))[True] == F(cut, 2**53)
    assert report.runs < 10


# Mechanisms ----------------------------------------------------------------------------------------------------------

THREE: dict[str, Any] = {"universe": (0, 1, 2), "n_users": 3, "n_examples": 1}


def votes(dataset: Any) -> list[int]:
    return [sum(user[0] == item for user in dataset) for item in range(3)]


def float_selection(dataset: Any, bits: Any) -> int:
    """The exponential mechanism at epsilon 25 by cumulative sums of floats."""
    counts = votes(dataset)
    weights = [math.exp(12.5 * (votes - max(counts))) for votes in counts]
    edge, edges = 0.0, []
    for weight in weights:
        edge += weight / sum(weights)
        edges.append(edge)
    drawn = bits(53) * 2.0**-53
    return next((item for item, edge in enumerate(edges) if drawn <= edge), 2)


def integer_selection(dataset: Any, bits: Any) -> int:
    weights = [4**votes for votes in votes(dataset)]
    point = bits(53) * sum(weights) >> 53
    return sum(point >= edge for edge in (weights[0], weights[0] + weights[1]))


@pytest.mark.parametrize("asked", [{"randomness": "lazy-bits"}, {"monotone": True}])
def test_selections_by_one_draw(asked: Any) -> None:
    """A cell of a float table that is empty beside one of 3.7e-6; integer weights of at most 16 to 1."""
    wrong = audit_sampler_law(float_selection, **THREE, epsilon=25, delta=0, complete=True, **asked)
    assert wrong.unexplored == 0
    assert wrong.holds is False
    assert wrong.severity == "practical"
    assert 3.7e-6 < wrong.worst_delta.lower < 3.8e-6
    right = audit_sampler_law(integer_selection, **THREE, epsilon=LogRatio(1601, 100), delta=0, **asked)
    assert right.holds is True
    assert right.unexplored == 0
    assert right.monotone is ("monotone" in asked)
    assert audit_sampler_law(integer_selection, **THREE, epsilon=LogRatio(12), delta=0, **asked).holds is False
    sums = (16, 20, 21)  # two votes for the first, one for the second
    cells = [F(-(-(edge << 53) // 21), 2**53) for edge in (0, *sums)]
    assert [part for _, part in sorted(right.law([(0,), (1,), (0,)]))] == [b - a for a, b in pairwise(cells)]


def test_a_number_that_is_needed_itself_stays_unexplored() -> None:
    report = audit_sampler_law(
        lambda dataset, rng: rng.random(), **ONE_USER, epsilon=1, delta=0, randomness="random", max_runs=500
    )
    assert report.holds is None
    assert report.unexplored == 1
    assert report.outputs == ()
    assert report.verify().finding == "consistent"


def test_a_monotone_law_beside_another_draw() -> None:
    """With a draw after it, a number is known by halves again: the law is the same."""

    def mechanism(dataset: Any, bits: Any) -> int:
        return (bits(6) // 20) + 10 * bits(1)

    plain, monotone = (
        audit_sampler_law(mechanism, **ONE_USER, epsilon=0, delta=0, monotone=flag).law([(0,)])
        for flag in (False, True)
    )
    assert dict(plain) == dict(monotone)


# Stand-ins -----------------------------------------------------------------------------------------------------------


def whole(randomness: Randomness, draw: Callable[[Any], Any]) -> dict[Any, Fraction]:
    def mechanism(dataset: Any, source: Any) -> Any:
        return draw(source)

    report = audit_sampler_law(mechanism, **ONE_USER, epsilon=0, delta=0, randomness=randomness, max_runs=20_000)
    assert report.unexplored == 0, report
    assert report.holds is True
    return dict(report.law([(0,)]))


def test_the_methods_of_random() -> None:
    even = {o: F(1, 3) for o in "abc"}
    assert whole("random", lambda rng: rng.choice("abc")) == even
    assert whole("random", lambda rng: "abc"[rng.randrange(3)]) == even
    assert whole("random", lambda rng: rng.sample("abc", 1)[0]) == even
    assert whole("random", lambda rng: rng.randint(5, 7)) == dict.fromkeys((5, 6, 7), F(1, 3))
    assert whole("random", lambda rng: rng.getrandbits(2)) == dict.fromkeys(range(4), F(1, 4))
    assert len(whole("random", lambda rng: rng.randbytes(1))) == 256

    def shuffled(rng: random.Random) -> tuple[int, ...]:
        items = [1, 2, 3]
        rng.shuffle(items)
        return tuple(items)

    assert sorted(whole("random", shuffled).values()) == [F(1, 6)] * 6
    # floor(random() * 3) gives the first element one multiple of 2^-53 more or less than a third.
    thirds = whole("random", lambda rng: rng.choices("abc")[0])
    assert thirds["a"] * 2**53 == -(-(2**53) // 3)
    weighted = whole("random", lambda rng: rng.choices("ab", weights=[1, 3])[0])
    assert weighted == {"a": F(1, 4), "b": F(3, 4)}
    below = next(k for k in range(2**51 - 9, 2**51 + 9) if not 2 + 2 * (k * 2.0**-53) < 2.5)  # 2 + 2u is rounded
    assert below == 2**51 - 1
    assert whole("random", lambda rng: rng.uniform(2, 4) < 2.5)[True] == F(below, 2**53)
    assert whole("random", lambda rng: isinstance(rng, random.SystemRandom) and isinstance(rng, random.Random)) == {
        True: 1
    }


def test_the_functions_of_secrets() -> None:
    assert whole("secrets", lambda module: module.randbelow(6)) == dict.fromkeys(range(6), F(1, 6))
    assert whole("secrets", lambda module: module.choice([1, 2, 5])) == dict.fromkeys((1, 2, 5), F(1, 3))
    assert whole("secrets", lambda module: module.randbits(1)) == {0: F(1, 2), 1: F(1, 2)}
    assert len(whole("secrets", lambda module: module.token_hex(1))) == 256
    assert whole("secrets", lambda module: module.SystemRandom().random() < 0.25) == {True: F(1, 4), False: F(3, 4)}
    assert set(dir(secrets)) >= {"randbelow", "choice", "randbits", "token_hex", "SystemRandom", "compare_digest"}


def test_choices_of_numpy_follow_its_sums() -> None:
    """Counts of the multiples of 2^-53 in each cell of NumPy's own table, and the real generator's answers."""
    p = np.array([0.1, 0.2, 0.3, 0.4]) / np.sum([0.1, 0.2, 0.3, 0.4])
    sums = p.cumsum()
    sums /= sums[-1]
    counts = [math.ceil(F(edge) * 2**53) for edge in (0.0, *sums.tolist())]
    law = whole("numpy", lambda rng: rng.choice(4, p=p))
    assert [law[place] * 2**53 for place in range(4)] == [b - a for a, b in pairwise(counts)]
    for seed in range(50):
        drawn = np.random.default_rng(seed).random()
        assert np.random.default_rng(seed).choice(4, p=p) == np.searchsorted(sums, drawn, side="right")
    assert whole("numpy", lambda rng: rng.choice(["x", "y"]).item()) == {"x": F(1, 2), "y": F(1, 2)}
    assert whole("numpy", lambda rng: tuple(rng.choice(2, size=2).tolist())).keys() == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_the_methods_of_a_generator() -> None:
    assert whole("numpy", lambda rng: rng.integers(3)) == dict.fromkeys(range(3), F(1, 3))
    assert whole("numpy", lambda rng: rng.integers(1, 3, endpoint=True)) == dict.fromkeys((1, 2, 3), F(1, 3))
    assert whole("numpy", lambda rng: rng.integers(0, 2, size=2).sum()) == {0: F(1, 4), 1: F(1, 2), 2: F(1, 4)}
    assert whole("numpy", lambda rng: rng.random() < 0.75) == {True: F(3, 4), False: F(1, 4)}
    assert whole("numpy", lambda rng: rng.uniform(1, 3) >= 2) == {True: F(1, 2), False: F(1, 2)}
    assert len(whole("numpy", lambda rng: rng.bytes(1))) == 256
    for draw in (lambda rng: rng.laplace(), lambda rng: rng.choice(3, size=2, replace=False)):
        with pytest.raises(ValueError, match="the mechanism asks NumPy's generator for"):
            whole("numpy", draw)


def test_refusals_are_seen_through_handlers() -> None:
    def quiet(rng: Any) -> float:
        try:
            return rng.normal()
        except BaseException:
            return 0.0

    with pytest.raises(ValueError, match="'normal'"):
        whole("numpy", quiet)


@pytest.mark.parametrize("randomness", STAND_INS)
def test_every_stand_in_can_start_again(randomness: Any) -> None:
    def mechanism(dataset: Any, source: Any) -> Any:
        if randomness == "numpy":
            die = source.integers(4)
        else:
            die = {"random": "getrandbits", "secrets": "randbits"}.get(randomness, "__call__")
            die = getattr(source, die)(2)
        return die if die < 3 else source.restart()

    report = audit_sampler_law(mechanism, **ONE_USER, epsilon=0, delta=0, randomness=randomness)
    assert dict(report.law([(0,)])) == dict.fromkeys(range(3), F(1, 3))
    assert report.randomness == randomness


def test_operators_have_their_answers_at_single_values() -> None:
    """A number that is known in full answers every operator as the number itself."""
    for k in (1, 7):
        draws = Draws(())
        source = draws.source(8)
        source.low, source.high = k, k + 1
        number, value = uniform_integer(source), k
        for name in (
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "lshift",
            "rshift",
            "and_",
            "or_",
            "xor",
        ):
            apply = getattr(operator, name)
            assert settled(apply(number, 3)) == apply(value, 3)
            assert settled(apply(3, number)) == apply(3, value)
        assert (float(number), complex(number), str(number), repr(number), f"{number:03d}") == (
            *(float(k), complex(k), str(k), repr(k)),
            f"{k:03d}",
        )
        assert settled([number, (number,), frozenset([number])]) == [k, (k,), frozenset([k])]
        assert number.bit_length() == k.bit_length()
        assert isinstance(number, int)
        with pytest.raises(AttributeError, match="'int' object has no attribute 'nothing'"):
            number.nothing  # noqa: B018
