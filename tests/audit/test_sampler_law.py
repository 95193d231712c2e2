"""Audits of samplers by all of their bits: closed forms, bounds at every size of the unexplored, and refusals."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.audit import audit_sampler_law, audit_samples, audit_user_level
from userdp.audit.exhaustion import Bits as Given
from userdp.audit.exhaustion import Exhaustion, Outputs
from userdp.checker import values
from userdp.exceptions import BudgetError
from userdp.report import Report, SamplerLawReport

F = Fraction
Bits = Callable[[int], int]
ONE_BIT: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 1}
TWO_QUERIES: dict[str, Any] = {"universe": ((0, 1), (1, 0)), "n_users": 1, "n_examples": 1}


def tails(bits: Bits) -> int:
    """Failures before the first success of fair coins."""
    failures = 0
    while bits(1) == 0:
        failures += 1
    return failures


def noise(bits: Bits) -> int:
    """z with probability 2^-|z| / 3."""
    return tails(bits) - tails(bits)


def count(dataset: Any) -> int:
    return sum(user[0] for user in dataset)


def mass(z: int) -> Fraction:
    return F(1, 3 * 2 ** abs(z))


def divergence(p: dict[Any, Fraction], q: dict[Any, Fraction], level: Fraction) -> Fraction:
    return sum((max(p[o] - level * q.get(o, F(0)), F(0)) for o in p), F(0))


def sparse_vector(noisy_answers: bool) -> Callable[[Any, Bits], Any]:
    """Two counting queries against the noisy threshold 1; a right one has noise on answers and ends at the first."""

    def mechanism(dataset: Any, bits: Bits) -> Any:
        threshold, said = 1 + noise(bits), []
        for query in range(2):
            value = sum(user[0][query] for user in dataset)
            said.append(value + (noise(bits) if noisy_answers else 0) >= threshold)
            if noisy_answers and said[-1]:
                return query
        return None if noisy_answers else tuple(said)

    return mechanism


def test_a_threshold_alone_does_not_hide_the_queries() -> None:
    """(no, yes) needs a threshold of exactly 1, and is possible on one side only: [Lyu, Su, Li 2017, algorithm 5]."""
    report = audit_sampler_law(sparse_vector(False), **TWO_QUERIES, epsilon=LogRatio(4), delta=0)
    assert report.holds is False
    assert report.severity == "practical"
    assert report.witness is not None
    assert [report.outputs[place] for place in report.witness.event] == [(False, True)]
    assert report.worst_delta.lower <= F(1, 3) <= report.worst_delta.upper


def test_above_threshold_is_private() -> None:
    """ln 2 for the threshold and ln 4 for the answer."""
    report = audit_sampler_law(sparse_vector(True), **TWO_QUERIES, epsilon=LogRatio(8), delta="1/20")
    assert report.holds is True
    assert report.severity is None
    assert report.unexplored <= F(1, 20)


def redrawn(dataset: Any, bits: Any) -> int:
    noisy = count(dataset) + noise(bits)
    return noisy if 0 <= noisy <= 2 else bits.restart()


def in_range(total: int) -> dict[int, Fraction]:
    weights = {o: mass(o - total) for o in range(3)}
    return {o: weight / sum(weights.values()) for o, weight in weights.items()}


def test_noise_drawn_again_depends_on_the_count() -> None:
    """1 / (1 + 1/2 + 1/4) against (1/2) / 2: the ratio at 0 is 16/7, above 2."""
    truth = divergence(in_range(0), in_range(1), F(2))
    assert in_range(0)[0] / in_range(1)[0] == F(16, 7)
    assert truth == F(1, 14)
    report = audit_sampler_law(redrawn, **ONE_BIT, epsilon=LogRatio(2), delta=0)
    assert report.holds is False
    assert report.worst_delta.lower <= truth <= report.worst_delta.upper
    assert audit_sampler_law(redrawn, **ONE_BIT, epsilon=LogRatio(2), delta="1/13").holds is True
    assert audit_sampler_law(redrawn, **ONE_BIT, epsilon=LogRatio(2), delta="1/15").holds is False


def test_a_restart_and_a_loop_have_one_law() -> None:
    def looped(dataset: Any, bits: Bits) -> int:
        while True:
            if (die := bits(3)) < 6:
                return die

    def restarted(dataset: Any, bits: Any) -> int:
        die = bits(3)
        return die if die < 6 else bits.restart()

    world: dict[str, Any] = {"universe": (0,), "n_users": 1, "n_examples": 1, "epsilon": 0}
    exact = audit_sampler_law(restarted, **world, delta=0, neighbors="add-remove")
    assert exact.holds is True
    assert exact.unexplored == 0
    assert dict(exact.law([(0,)])) == dict.fromkeys(range(6), F(1, 6))
    near = audit_sampler_law(looped, **world, delta="1/1000", neighbors="add-remove")
    assert near.holds is True
    assert all(F(1, 6) - near.unexplored <= part <= F(1, 6) for _, part in near.law([(0,)]))


def clamped(dataset: Any, bits: Bits) -> int:
    return min(max(count(dataset) + noise(bits), 0), 2)


def test_clamped_noise_is_private_and_half_of_it_is_not() -> None:
    report = audit_sampler_law(clamped, **ONE_BIT, epsilon=LogRatio(2), delta="1/1000")
    assert report.holds is True
    assert audit_sampler_law(clamped, **ONE_BIT, epsilon="0.69314718055994530", delta="1/1000").holds is True
    assert audit_sampler_law(clamped, **ONE_BIT, epsilon=LogRatio(3, 2), delta="1/1000").holds is False
    one = dict(report.law([(1,), (0,)]))  # 2/3 of the noise is >= 0, so 1/3 is below it, and as much above
    assert all(truth - report.unexplored <= one[o] <= truth for o, truth in enumerate([F(1, 3), F(1, 3), F(1, 3)]))


def test_a_pure_claim_is_open_while_anything_is() -> None:
    report = audit_sampler_law(clamped, **ONE_BIT, epsilon=LogRatio(2), delta=0, max_runs=2000)
    assert report.holds is None
    assert 0 < report.unexplored < F(1, 100)
    assert report.worst_delta.lower == 0
    assert "without a delta cannot be confirmed" in report.summary()
    again = audit_sampler_law(clamped, **ONE_BIT, epsilon=LogRatio(2), delta=report.worst_delta.upper)
    assert again.holds is True
    with pytest.raises(ValueError, match="undetermined: up to"):
        bool(report)
    with pytest.raises(ValueError, match="there is no pmf"):
        report.algorithm()


def laws_at_every_size(mechanism: Any, dataset: Any, runs: int) -> Iterator[tuple[dict[Any, Fraction], Fraction]]:
    outputs = Outputs()
    law = Exhaustion(lambda draws: mechanism(dataset, Given(draws)), outputs)
    for _ in range(runs):
        law.step()
        masses = {outputs.values[place]: part for place, part in law.law().items()}
        assert sum(masses.values()) + law.unexplored == 1
        yield masses, law.unexplored


@pytest.mark.parametrize("mechanism", [redrawn, clamped])
def test_bounds_hold_the_truth_at_every_size(mechanism: Any) -> None:
    """Masses never exceed the true ones, and both bounds enclose the true divergence, after every run."""

    def truth(total: int) -> dict[int, Fraction]:
        if mechanism is redrawn:
            return in_range(total)
        inside = {o: mass(o - total) for o in (1,)}
        below = sum(mass(z) for z in range(-200, 1 - total)) + F(1, 3 * 2**200)  # the rest of a geometric series
        return {0: below, **inside, 2: 1 - below - inside[1]}

    pair, level = (((0,), (0,)), ((0,), (1,))), F(3, 2)
    p, q = truth(0), truth(1)
    exact = divergence(p, q, level)
    lowers, uppers = [], []
    for (found, left), (other, unknown) in zip(*(laws_at_every_size(mechanism, x, 400) for x in pair), strict=True):
        assert all(part <= p[o] for o, part in found.items())
        assert all(part <= q[o] for o, part in other.items())
        apart = divergence(found, other, level)
        lowers.append(max(F(0), apart - level * unknown))
        uppers.append(min(F(1), apart + left))
        assert lowers[-1] <= exact <= uppers[-1]
    assert lowers[-1] > 0
    assert uppers[-1] < 1
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize("level", [LogRatio(1), LogRatio(3, 2), LogRatio(2), LogRatio(16, 7)])
def test_reported_bounds_hold_the_truth_at_every_size(level: LogRatio) -> None:
    """The worst divergence of a report, whenever it ends, encloses that of closed forms, and comes near to it."""
    pairs = [(in_range(a), in_range(b)) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))]
    truth = max(divergence(p, q, level.ratio) for p, q in pairs)
    for max_runs in (*range(8, 400, 9), 4000):
        report = audit_sampler_law(redrawn, **ONE_BIT, epsilon=level, delta=0, complete=True, max_runs=max_runs)
        assert report.worst_delta.lower <= truth <= report.worst_delta.upper
        assert report.holds is (False if report.worst_delta.lower else None)
        assert report.verify().finding == "consistent"
    assert report.worst_delta.upper - report.worst_delta.lower < 0.01


def test_random_programs_have_their_laws() -> None:
    """Trees of up to three draws of up to 3 bits, with tables as outputs: masses by going over all bits."""
    source = np.random.default_rng(5)
    for _ in range(40):
        table = source.integers(0, 4, size=(2, 8, 8))
        sizes = source.integers(0, 4, size=(2, 8))

        def mechanism(dataset: Any, bits: Bits, table: Any = table, sizes: Any = sizes) -> int:
            first = bits(3)
            return int(table[dataset[0][0], first, bits(int(sizes[dataset[0][0], first]))])

        report = audit_sampler_law(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta="1/2")
        laws = []
        for x in (0, 1):
            law = dict.fromkeys(range(4), F(0))
            for first in range(8):
                for second in range(2 ** int(sizes[x, first])):
                    law[int(table[x, first, second])] += F(1, 8 * 2 ** int(sizes[x, first]))
            laws.append(law)
        high = max(divergence(*pair, F(math.e)) for pair in (laws, laws[::-1]))
        assert report.holds is (high <= F(1, 2))
        assert report.worst_delta.lower - 1e-12 <= high <= report.worst_delta.upper + 1e-12
        whole = audit_sampler_law(
            mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0, complete=True
        )
        assert whole.unexplored == 0
        assert whole.holds is (high == 0)
        for x in (0, 1):
            assert dict(whole.law([(x,)])) == {o: part for o, part in laws[x].items() if part}


def respond(dataset: Any, bits: Bits) -> bool:
    """Says the bit with probability 3/4."""
    return (bits(2) > 0) == bool(dataset[0][0])


def test_a_law_in_full_is_a_finite_algorithm() -> None:
    world: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 1}
    report = audit_sampler_law(respond, **world, epsilon=LogRatio(3), delta=0)
    assert report.holds is True
    assert report.unexplored == 0
    assert report.runs <= 2 * 16
    certificate = audit_user_level(report.algorithm(), **world, epsilon=LogRatio(3), delta=0)
    assert certificate.holds is True
    assert certificate.exp_epsilon == 3
    assert audit_sampler_law(respond, **world, epsilon=LogRatio(299, 100), delta=0).holds is False
    with pytest.raises(ValueError, match="2 is not in the universe"):
        report.law([(2,), (0,)])
    with pytest.raises(ValueError, match="must have 2 users; got 1"):
        report.law([(0,)])


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("n_examples", [1, 2])
def test_verdicts_are_those_of_exact_audits(neighbors: Any, n_examples: int) -> None:
    """On a mechanism that ends, the worst divergence is that of the house's audit of its pmf."""

    def mechanism(dataset: Any, bits: Bits) -> int:
        return sum(map(sum, dataset)) + bits(2)

    world: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": n_examples, "neighbors": neighbors}
    for epsilon, delta in product((0, 1, LogRatio(2)), ("1/4", "1/3", "1/2")):
        report = audit_sampler_law(mechanism, **world, epsilon=epsilon, delta=delta, max_runs=5000)
        totals = 2 * n_examples
        truth = F(n_examples, 4)  # a user moves the window of four values by so much
        assert report.holds is (truth <= F(delta))
        assert len(report.law([(1,) * n_examples] * 2)) <= 4
        assert max(o for o in report.outputs) <= totals + 3


def test_exceptions_are_outputs() -> None:
    def fragile(dataset: Any, bits: Bits) -> float:
        return 1 / bits(2) if dataset[0][0] else float(bits(2) > 0)

    report = audit_sampler_law(fragile, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta="0.9", max_runs=100)
    law = dict(report.law([(1,)]))
    assert {str(output): part for output, part in law.items()}["raises ZeroDivisionError: division by zero"] == F(1, 4)
    again = Report.from_json(report.to_json())
    assert again == report
    assert again.verify().finding == "consistent"
    with pytest.raises(RuntimeError, match="raises in all runs: TypeError"):
        audit_sampler_law(lambda dataset: 0, **ONE_BIT, epsilon=1, delta=0)  # type: ignore[misc]


def test_messages_may_hold_drawn_numbers() -> None:
    def mechanism(dataset: Any, bits: Any) -> int:
        raise KeyError(bits(2))

    class Unreadable(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def unreadable(dataset: Any, bits: Any) -> int:
        if bits(1):
            raise Unreadable
        return 0

    world: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "epsilon": 0, "delta": 0}
    with pytest.raises(RuntimeError, match="raises in all runs: KeyError"):
        audit_sampler_law(mechanism, **world, randomness="lazy-bits")
    report = audit_sampler_law(unreadable, **world)
    zero, error = map(str, report.outputs)
    assert zero == "0"
    assert error.endswith(".Unreadable: with a message that cannot be read")


@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, "1e-9", 700, 2**17])
def test_levels_at_the_edges(epsilon: Any) -> None:
    """Verdicts at levels next to 1, and beyond all floats: equal laws hold, and different ones do not."""
    world: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "epsilon": epsilon, "delta": 0}
    same = audit_sampler_law(lambda dataset, bits: bits(3), **world)
    assert same.holds is True
    other = audit_sampler_law(lambda dataset, bits: bits(3) + 8 * dataset[0][0], **world)
    assert other.holds is False
    near = audit_sampler_law(lambda dataset, bits: bits(3) >= 3 + dataset[0][0], **world)
    assert near.holds is (float(epsilon) > 1)
    assert all(report.verify().finding == "consistent" for report in (same, other, near))


def test_types_of_outputs_are_kept_apart() -> None:
    def typed(dataset: Any, bits: Bits) -> Any:
        return (1, True, 1.0, np.int64(1))[bits(2)] if dataset[0][0] else (0.0, -0.0)[bits(1)]

    report = audit_sampler_law(typed, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=1, complete=True)
    assert report.unexplored == 0
    assert sorted((repr(output), part) for output, part in report.law([(1,)])) == [
        ("1", F(1, 2)),
        ("1.0", F(1, 4)),
        ("True", F(1, 4)),
    ]
    assert [str(output) for output, _ in report.law([(0,)])] == ["0.0", "-0.0"]
    with pytest.raises(TypeError, match=r"mechanism: an output is of the type dict; accepted are"):
        audit_sampler_law(lambda dataset, bits: {bits(1): 1}, **ONE_BIT, epsilon=1, delta=0)


def swallows(dataset: Any, bits: Bits) -> int:
    with suppress(BaseException):
        return bits(1)
    return 2


def wraps(dataset: Any, bits: Bits) -> int:
    try:
        return bits(1)
    except BaseException as error:
        raise ValueError("no bits") from error


def remembers() -> Callable[[Any, Bits], int]:
    calls = [0]

    def mechanism(dataset: Any, bits: Bits) -> int:
        calls[0] += 1
        return bits(1) + calls[0]

    return mechanism


def remembers_halves() -> Callable[[Any, Bits], int]:
    calls = [0]

    def mechanism(dataset: Any, bits: Bits) -> int:
        half = bits(8) >> 7
        calls[0] += 1
        return half + 2 * (calls[0] > 500)

    return mechanism


def reads_less() -> Callable[[Any, Bits], int]:
    calls = [0]

    def mechanism(dataset: Any, bits: Bits) -> int:
        calls[0] += 1
        return bits(2) if calls[0] < 4 else bits(1) if calls[0] < 8 else 0

    return mechanism


def keeps_old_bits() -> Callable[[Any, Bits], int]:
    kept: list[Bits] = []

    def mechanism(dataset: Any, bits: Bits) -> int:
        kept.append(bits)
        return kept[0](1)

    return mechanism


@pytest.mark.parametrize(
    ("mechanism", "problem"),
    [
        (swallows, "goes on after the exception"),
        (wraps, "goes on after the exception"),
        (remembers(), "no function of the dataset and its random bits"),
        (reads_less(), "no function of the dataset and its random bits"),
        (keeps_old_bits(), "no function of the dataset and its random bits"),
        (remembers_halves(), "no function of the dataset and its random bits"),
        (lambda dataset, bits: bits.restart(), "starts again on every path"),
        (lambda dataset, bits: bits(10**9), "an integer of over 4096 bits at once"),
    ],
)
def test_what_is_no_sampler_is_refused(mechanism: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        audit_sampler_law(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0, max_runs=1200)


def test_a_monotone_program_that_remembers_is_refused() -> None:
    calls = [0]

    def mechanism(dataset: Any, bits: Bits) -> int:
        calls[0] += 1
        return (bits(8) >> 7) + (calls[0] > 10)  # on each dataset, one run asks, and four are at ends

    with pytest.raises(ValueError, match="gave another output"):
        audit_sampler_law(
            mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=9, delta=0, monotone=True, complete=True
        )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"mechanism": 3}, "mechanism must be a function"),
        ({"universe": "ab"}, "universe must be a sequence"),
        ({"universe": (1, 1)}, "universe must have distinct examples"),
        ({"n_users": 0}, "n_users must be at least 1"),
        ({"n_examples": True}, "n_examples must be an int"),
        ({"epsilon": -1}, "epsilon must be >= 0"),
        ({"epsilon": 2**21}, "epsilon"),
        ({"delta": 2}, r"delta must be in \[0, 1\]"),
        ({"neighbors": "both"}, "neighbors must be"),
        ({"randomness": "dice"}, "randomness must be one of bits"),
        ({"monotone": 1}, "monotone must be a bool"),
        ({"complete": None}, "complete must be a bool"),
        ({"max_runs": 0}, "max_runs must be at least 1"),
        ({"max_runs": 3}, "each is run at least twice"),
        ({"n_users": 40}, "each is run at least twice"),
        ({"n_examples": 10**9}, "each is run at least twice"),
        ({"n_users": 10**15}, "each is run at least twice"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, Any], problem: str) -> None:
    asked = {"mechanism": respond, **ONE_BIT, "epsilon": 1, "delta": 0} | wrong
    with pytest.raises((TypeError, ValueError), match=problem) as caught:
        audit_sampler_law(asked.pop("mechanism"), **asked)
    assert ("max_runs" in wrong and wrong["max_runs"] == 3) <= isinstance(caught.value, BudgetError)


def test_progress_and_the_limit_of_runs() -> None:
    seen: list[tuple[int, int]] = []
    report = audit_sampler_law(
        clamped, **ONE_BIT, epsilon=LogRatio(2), delta=0, max_runs=9000, progress=lambda *done: seen.append(done)
    )
    assert report.runs <= 9000
    assert seen
    assert all(done <= total == 9000 for done, total in seen)


def forged(report: SamplerLawReport, **changes: Any) -> str:
    content = {**report.to_dict(), **changes}
    del content["digest"]
    return json.dumps(content | {"digest": "sha256:" + values.canonical_digest(content)})


def test_the_checker_decides_again() -> None:
    report = audit_sampler_law(clamped, **ONE_BIT, epsilon=LogRatio(3, 2), delta="1/1000")
    content = report.to_dict()
    assert report.holds is False
    first = [*content["laws"][0]]
    swapped = [[first[1], first[0], *first[2:]], *content["laws"][1:]]
    more = [[first[0], first[1], first[2], "1/2"], *content["laws"][1:]]
    for changes, problem in (
        ({"holds": True}, "holds is not what the pmfs decide"),
        ({"holds": None}, "holds is not what the pmfs decide"),
        ({"delta": "9/10"}, "holds is not what the pmfs decide"),
        ({"laws": swapped}, "do not have the largest divergence"),
        ({"laws": more}, "do not sum to 1|does not sum to 1"),
        ({"law_of": [0, 0, 0, 0]}, "law_of does not name the laws"),
        ({"law_of": content["law_of"][:-1]}, "more datasets than the report holds|entries for 4 datasets"),
        ({"witness": None}, "a witness exactly if"),
        ({"witness": {**content["witness"], "event": [2]}}, "the event of the witness"),
        ({"witness": {**content["witness"], "ranks": [0, 3]}}, "not neighbors"),
        ({"witness": {**content["witness"], "ranks": [0, 0]}}, "not neighbors"),
        ({"worst_delta": [(0.0).hex(), content["worst_delta"][1]]}, "too wide"),
        ({"outputs": [*content["outputs"][:-1], content["outputs"][0]]}, "outputs names the same object twice"),
        ({"universe": [0, 0]}, "universe names the same object twice"),
        ({"runs": 3}, "fewer runs than datasets"),
    ):
        found = Report.from_json(forged(report, **changes)).verify()
        assert found.finding == "wrong"
        assert re.search(problem, found.problems[0]), found.problems


def test_a_law_of_draws_that_nobody_uses() -> None:
    """Bits that are drawn and not used do not change the law."""
    outputs = Outputs()
    law = Exhaustion(lambda draws: (draws.integer(8), draws.integer(3))[1], outputs)
    while not law.finished:
        law.step()
    assert law.law() == dict.fromkeys(range(3), F(1, 3))


# --- what would hide a difference between laws

HALF: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "epsilon": 0, "delta": 0}


@pytest.mark.parametrize(
    "texts", [("x" * 300 + "0", "x" * 300 + "1"), ("\ud800", "\\ud800")], ids=["long", "surrogate"]
)
def test_messages_are_told_apart_also_where_they_are_not_shown(texts: tuple[str, str]) -> None:
    """Half of the mass raises with a message that tells the user's value: the exact divergence is 1/2."""

    def mechanism(dataset: Any, bits: Any) -> int:
        if bits(1):
            return 0
        raise ValueError(texts[dataset[0][0]])

    report = audit_sampler_law(mechanism, **HALF)
    assert report.holds is False
    assert report.worst_delta.lower == 0.5
    assert Report.from_json(report.to_json()).verify().finding == "consistent"


def _of_a_name(bit: int) -> None:
    raise KeyError if bit else type("KeyError", (Exception,), {"__module__": "another"})


def _from_another(bit: int) -> None:
    raise LookupError from ZeroDivisionError(bit)


def _noted(bit: int) -> None:
    error = ValueError("no")
    error.__notes__ = [str(bit)]  # type: ignore[attr-defined]  # as add_note does, from Python 3.11 on
    raise error


def _with_arrows(bit: int) -> None:
    if bit:
        raise LookupError("0 <- ValueError: 1")
    raise LookupError("0") from ValueError(1)


@pytest.mark.parametrize("raising", [_of_a_name, _from_another, _noted, _with_arrows])
def test_all_that_is_printed_of_an_exception_is_compared(raising: Any) -> None:
    """Its class with the module, its notes, and what it came from; draws see it as well."""

    def mechanism(dataset: Any, bits: Any) -> int:
        return 0 if bits(1) else raising(dataset[0][0])

    report = audit_sampler_law(mechanism, **HALF)
    assert (report.holds, report.worst_delta.lower) == (False, 0.5)
    pairs, seeds = [(((0,),), ((1,),))], {"rng": "random", "random_state": 1}
    draws = audit_samples(lambda users, rng: mechanism(users, rng.getrandbits), pairs, epsilon=1, **seeds)
    assert draws.holds is False


def _seeded(dataset: Any, rng: Any) -> int:
    rng.seed(dataset[0][0])
    return int(rng.getrandbits(1))


def _of_its_class(dataset: Any, rng: Any) -> bool:
    return bool(type(rng)(dataset[0][0]).random() < 0.5)


def _copied(dataset: Any, rng: Any) -> float:
    return float(copy.deepcopy(rng).random())


def _token(dataset: Any, source: Any) -> Any:
    return source.token_urlsafe() if source.randbits(1) else dataset[0][0]


def _single(dataset: Any, rng: Any) -> Any:
    return float(rng.random(dtype=np.float32)) + dataset[0][0] if rng.integers(2) else 0


def _dumped(dataset: Any, rng: Any) -> Any:
    return 0 if rng.getrandbits(1) else (json.dumps(rng.random()), dataset[0][0])


def _by_type(dataset: Any, rng: Any) -> Any:
    return dataset[0][0] if type(rng.random()) is float else 0


@pytest.mark.parametrize(
    ("mechanism", "randomness"),
    [
        (_seeded, "random"),
        (_of_its_class, "random"),
        (_copied, "random"),
        (_token, "secrets"),
        (_single, "numpy"),
        (_dumped, "random"),
        (_by_type, "random"),
    ],
)
def test_what_a_stand_in_cannot_do_is_refused_and_no_output(mechanism: Any, randomness: Any) -> None:
    """Each gives away the user's value, by what would raise or be ignored with a stand-in."""
    with pytest.raises(
        ValueError, match=r"not known here|no function of the dataset|the stand-in for it|another dtype"
    ):
        audit_sampler_law(mechanism, **HALF, randomness=randomness, max_runs=2000)


def test_bounds_of_integers_are_those_of_numpy() -> None:
    """NumPy refuses them whatever is drawn."""
    with pytest.raises(RuntimeError, match="high is out of bounds"):
        audit_sampler_law(
            lambda dataset, rng: int(rng.integers(0, 300, dtype="uint8")), **HALF, randomness="numpy", max_runs=2000
        )


def _remembering() -> Any:
    known: dict[int, Any] = {}
    return lambda dataset, bits: known.setdefault(bits(1), dataset[0][0])


ANSWERS: dict[int, Any] = {}


def _remembering_globally(dataset: Any, bits: Any) -> Any:
    return ANSWERS.setdefault(bits(1), dataset[0][0])


@pytest.mark.parametrize("mechanism", [_remembering(), _remembering_globally])
def test_answers_that_are_kept_for_the_next_dataset(mechanism: Any) -> None:
    """As a first call each shows the user's value; after calls on the other dataset it answers for that one."""
    ANSWERS.clear()
    with pytest.raises(ValueError, match="keeps something between calls"):
        audit_sampler_law(mechanism, **HALF)


def test_numbers_that_are_drawn_in_full_end_early_with_what_to_do() -> None:
    def responses(dataset: Any, rng: Any) -> list[int]:
        return [int(user[0] ^ flip) for user, flip in zip(dataset, rng.random(len(dataset)) < 0.25, strict=True)]

    asked: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 1, "epsilon": LogRatio(3), "delta": 0}
    report = audit_sampler_law(responses, **asked, randomness="numpy", max_runs=40_000)
    assert report.holds is None
    assert report.runs <= 4 * 2**12 + 4
    said = " ".join(report.summary().split())
    assert "[rng.random() < p for _ in range(n)], or use audit_samples" in said

    def one_by_one(dataset: Any, rng: Any) -> list[int]:
        return [int(user[0] ^ (rng.random() < 0.25)) for user in dataset]

    assert audit_sampler_law(one_by_one, **asked, randomness="numpy").holds is True


def test_an_unknown_draw_says_what_to_do_instead() -> None:
    asked: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "epsilon": 1, "delta": 0}
    for randomness in ("numpy", "secrets"):
        with pytest.raises(ValueError, match=r"whose draws are not known here.*audit_sensitivity.*audit_samples"):
            audit_sampler_law(lambda dataset, rng: rng.exponential(), **asked, randomness=randomness)
