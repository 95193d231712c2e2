"""Audits by samples and by time: what is found, what is not, and what is refused."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import random
import re
import subprocess
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.audit import audit_samples, audit_time
from userdp.audit.events import Raised, features, learn_event
from userdp.audit.fresh import refuse_generators, seed_libraries
from userdp.report import GuessReport, Report

PAIR = (((0,), (0,)), ((1,), (0,)))
TENTH = "ln(10/9)"


def total(dataset: Any) -> int:
    return sum(sum(user) for user in dataset)


def float_noise(dataset: Any, rng: random.Random) -> float:
    """Laplace noise by the inverse transform: floats of some sizes are only reached from some totals."""
    size = -math.log(1.0 - rng.random()) * 10
    return total(dataset) + (size if rng.getrandbits(1) else -size)


def integer_noise(dataset: Any, rng: random.Random) -> int:
    sides = [0, 0]
    for side in (0, 1):
        while rng.randrange(10):
            sides[side] += 1
    return total(dataset) + sides[0] - sides[1]


def response(truth: Fraction) -> Any:
    """Randomized response with the ratio `truth` between the probabilities of the right and the wrong answer."""

    def run(dataset: Any, rng: random.Random) -> int:
        honest = rng.randrange(truth.numerator + truth.denominator) < truth.numerator
        return dataset[0][0] if honest else 1 - dataset[0][0]

    return run


def raising(dataset: Any, rng: random.Random) -> int:
    if total(dataset) and not rng.randrange(8):
        raise KeyError(dataset)
    return rng.randrange(3)


def keyed(dataset: Any, rng: random.Random) -> dict[str, int]:
    """Groups that nobody noised: a key is there with its user."""
    found = {"a": rng.randrange(5), "b": rng.randrange(5)}
    if total(dataset) and rng.randrange(2):
        found["c"] = rng.randrange(5)
    return found


def hidden_in_a_pair(dataset: Any, rng: random.Random) -> list[int]:
    mask = rng.randrange(1000)
    return [mask, mask + total(dataset) + (rng.randrange(4) == 0)]


def audited(mechanism: Any, **options: Any) -> GuessReport:
    arguments: dict[str, Any] = {
        "epsilon": TENTH,
        "rng": "random",
        "random_state": 3,
        "training": 6000,
        "draws": 40_000,
    }
    return audit_samples(mechanism, [PAIR], **arguments | options)


@pytest.mark.parametrize("mechanism", [float_noise, raising, keyed, hidden_in_a_pair, response(Fraction(3, 2))])
def test_violations_are_found_without_a_word_about_them(mechanism: Any) -> None:
    report = audited(mechanism)
    assert report.holds is False
    assert report.verdict.alpha == Fraction(1, 10**9)
    assert report.verify().finding == "consistent"
    assert Report.from_json(report.to_json()) == report


def test_the_event_is_named() -> None:
    assert "the low bits of the number" in audited(float_noise).about
    assert "KeyError" in audited(raising).about
    assert "member 0 less member 1" in audited(hidden_in_a_pair).about


def test_no_alarm_about_integers() -> None:
    for seed in range(5):
        assert audited(integer_noise, random_state=seed, draws=20_000).holds is None


@pytest.mark.statistical
def test_bounds_are_rarely_above_the_truth() -> None:
    """A bound is above the truth with probability 5 %, so that of 40 more than 16 are with probability below 1e-9."""
    truth = Fraction(3, 2)
    reports = [
        audited(response(truth), epsilon="ln(3/2)", random_state=seed, training=600, draws=3000) for seed in range(40)
    ]
    assert sum(report.lower.ratio > truth for report in reports) < 17
    assert all(report.holds is None for report in reports)
    assert sum(float(report.lower) > 0.2 for report in reports) > 28


def test_a_mechanism_that_remembers_does_not_fool_the_coins() -> None:
    """What comes out depends on all runs before, and not on this dataset: a test of two samples would see a change."""
    runs = iter(range(10**9))

    def drifting(dataset: Any) -> int:
        return next(runs) // 2000

    assert audited(drifting, rng=None).holds is None


def test_an_event_of_the_caller() -> None:
    report = audited(response(Fraction(3)), event=lambda output: output == 0, training=0)
    assert report.holds is False
    assert report.verdict.none == 0
    assert report.about == "a given event; first ((0,), (0,)), second ((1,), (0,))"
    never = audited(response(Fraction(3)), event=lambda output: None, draws=1000)
    assert (never.holds, never.verdict.none) == (None, 1000)


def test_delta_excuses_what_it_allows() -> None:
    """One in 50 datasets is shown whole."""

    def shown(dataset: Any, rng: random.Random) -> Any:
        return total(dataset) if not rng.randrange(50) else None

    assert audited(shown, epsilon=1).holds is False
    assert audited(shown, epsilon=1, delta="1/100").holds is False
    for delta in ("1/50", "1/10"):
        report = audited(shown, epsilon=1, delta=delta)
        assert report.holds is None
        assert float(report.lower) == 0 or float(report.lower) <= 1


def test_the_worst_of_several_pairs_is_found() -> None:
    pairs = [(((0,), (0,)), ((0,), (0,)))] * 6 + [PAIR]
    assert (
        audit_samples(response(Fraction(4)), pairs, epsilon=1, rng="random", random_state=0, training=8000).holds
        is False
    )


def test_executors_give_the_same_kind_of_report() -> None:
    with ThreadPoolExecutor(2) as executor:
        report = audited(response(Fraction(2)), executor=executor)
    assert report.holds is False
    assert report.verdict.right > report.verdict.wrong


def test_progress_ends_at_what_was_drawn() -> None:
    seen: list[tuple[int, int]] = []
    audited(integer_noise, draws=2000, training=400, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2400, 2400)
    assert seen == sorted(seen)


@pytest.mark.parametrize("output", [None, (), {}, float("nan"), -0.0, 1e308, 5e-324, 2**2000, "a", b"b", [[1], "x"]])
def test_features_of_anything(output: Any) -> None:
    found = dict(features(output))
    assert "the output" in found
    hash(tuple(found.values()))
    assert dict(features(output)).keys() == found.keys()


def test_features_tell_what_equality_does_not() -> None:
    def whole(output: Any) -> Any:
        return dict(features(output))["the output"]

    assert whole(0.0) != whole(-0.0)
    assert whole(1) != whole(True) != whole("True")
    assert whole(math.nan) == whole(float("nan"))
    assert whole(Raised("KeyError")) != whole("KeyError")
    frame = pytest.importorskip("pandas").DataFrame({"kind": ["a"], "n": [3]})
    assert dict(features(frame))["member n/0"] == 3.0
    assert dict(features(np.array([[1, 2]])))["the number of members"] == 2.0


def test_events_are_of_both_sides() -> None:
    source = random.Random(1)
    event = learn_event(
        [source.randrange(8) for _ in range(4000)], [source.randrange(4, 12) for _ in range(4000)], 1.1, 0.0
    )
    assert [event(value) for value in (0, 3, 5, 9, 11)] == [True, True, None, False, False]
    assert event.sides == 2


def test_labels_are_put_together_in_words() -> None:
    event = learn_event([float(x) for x in range(1000)], [float(x) for x in range(500, 1500)], 1.1, 0.0)
    assert "(-inf, " in str(event)
    assert ", inf]" in str(event)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rng": "secrets"}, ValueError, "rng must be"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 10**9}, ValueError, "draws must be at most"),
        ({"training": 1}, ValueError, "training must be at least"),
        ({"alpha": 0}, ValueError, "alpha must be in"),
        ({"alpha": "1e-3", "estimate_alpha": "1e-4"}, ValueError, "estimate_alpha must be at least alpha"),
        ({"neighbors": "x"}, ValueError, "neighbors must be"),
    ],
)
def test_arguments_that_do_not_fit(options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        audited(integer_noise, **options)


def sometimes(share: float) -> Any:
    """Raises in so large a share of its runs, whoever is there."""
    runs = [0, 0]

    def run(dataset: Any, rng: random.Random) -> int:
        raises = rng.random() < share
        runs[raises] += 1
        if raises:
            raise OverflowError("a sum of 1e400")
        return rng.randrange(3)

    run.runs = runs  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("event", [None, lambda output: None])
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.98, 1])
def test_runs_that_raise_are_counted(share: float, event: Any) -> None:
    """All of them: refused. With 600 runs or more, a share of 0.98 raises in all of them once in 180,000 seeds."""
    mechanism = sometimes(share)
    options: dict[str, Any] = {"epsilon": 1, "rng": "random", "random_state": 3, "draws": 600, "training": 600}
    if share == 1:
        with pytest.raises(ValueError, match=r"raises in all of 600 runs.*, OverflowError: a sum of 1e400"):
            audit_samples(mechanism, [PAIR], event=event, **options)
        assert mechanism.runs == [0, 600]
        return
    report = audit_samples(mechanism, [PAIR], event=event, **options)
    answered, raised = mechanism.runs
    assert (report.runs, report.raised) == (answered + raised, raised)
    assert report.holds is None
    assert (f"{raised:,} of {report.runs:,}" in report.summary()) == (raised > 0)
    assert Report.from_json(report.to_json()) == report
    assert report.verify().finding == "consistent"


def same_name(module: str) -> type[Exception]:
    return type("Error", (Exception,), {"__module__": module})


@pytest.mark.parametrize(
    "kinds",
    [
        (KeyError, TypeError),
        (SystemExit, ValueError),
        (asyncio.CancelledError, GeneratorExit),
        tuple(map(same_name, "ab")),
    ],
    ids=["builtins", "end of the program", "end of a task", "one name"],
)
def test_who_sees_which_error_it_is_sees_the_dataset(kinds: tuple[type[BaseException], ...]) -> None:
    def telling(dataset: Any) -> None:
        raise kinds[total(dataset) > 0]("no")

    report = audit_samples(telling, [PAIR], epsilon=1, training=200, draws=1000, random_state=1)
    assert report.holds is False
    assert report.raised == report.runs


@pytest.mark.parametrize("first", [False, True])
def test_a_pair_that_is_called_in_a_wrong_way(first: bool) -> None:
    """It is not chosen where another pair has answers, and refused where it is the only one."""

    def mechanism(dataset: Any, rng: random.Random) -> bool:
        if len(dataset) == 2:
            raise TypeError("shape")
        return rng.random() < (0.9 if dataset[0] else 0.1)

    malformed, sound = ((0, 0), (1, 0)), ((0,), (1,))
    pairs = [malformed, sound] if first else [sound, malformed]
    options: dict[str, Any] = {"epsilon": 1, "rng": "random", "random_state": 1, "draws": 1000, "training": 400}
    assert audit_samples(mechanism, pairs, **options).holds is False
    with pytest.raises(ValueError, match=r"raises in all of 400 runs, TypeError: shape"):
        audit_samples(mechanism, [malformed], **options)
    with pytest.raises(ValueError, match=r"raises in all of 1,000 runs on this pair: first \(0, 0\), second \(1, 0\)"):
        audit_samples(mechanism, [malformed], event=bool, **options)


def test_a_mechanism_that_raises_in_every_run_of_the_training_is_refused() -> None:
    def misused(dataset: Any, rng: Any) -> int:
        return int(rng.bits(8))

    with pytest.raises(ValueError, match=r"raises in all of 200 runs, AttributeError"):
        audit_samples(misused, [PAIR], epsilon=1, rng="random", training=200, draws=10)


def test_ctrl_c_ends_an_audit() -> None:
    def stopped(dataset: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_samples(stopped, [PAIR], epsilon=0, training=200, draws=1000)


def test_errors_without_a_text() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def silent(dataset: Any) -> None:
        raise Silent

    with pytest.raises(ValueError, match="Silent"):
        audit_samples(silent, [PAIR], epsilon=0, training=20, draws=10)


@pytest.mark.parametrize("pairs", [[], [(1,)], 7, [((0,), (1,), (2,))]])
def test_pairs_that_are_none(pairs: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="pairs must be"):
        audit_samples(integer_noise, pairs, epsilon=1, rng="random")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A clock that only the functions of these tests move."""
    now = [0]
    monkeypatch.setattr("time.perf_counter_ns", lambda: now[0])
    return now


def test_time_that_tells_the_input(clock: list[int]) -> None:
    source = random.Random(4)

    def slow(value: int) -> None:
        clock[0] += 1000 + 40 * value + source.randrange(100)

    report = audit_time(slow, inputs=(0, 2), draws=3000, training=1000, random_state=1)
    assert report.holds is False
    # 20 of 100 places are in common: the total variation distance is 0.8.
    assert report.advantage is not None
    assert 0.6 < report.advantage <= 0.8
    assert report.verify().finding == "consistent"


def test_time_that_tells_nothing(clock: list[int]) -> None:
    source = random.Random(5)

    def even(value: int) -> None:
        clock[0] += 1000 + source.randrange(100)

    report = audit_time(even, inputs=(0, 2), draws=3000, training=1000, random_state=1)
    assert report.holds is None
    assert report.delta == 0


def test_a_control_that_finds_something(clock: list[int]) -> None:
    """A coin that the clock itself sees: here a function that was told the generator's state."""
    coins = iter(np.random.default_rng(2).permutation(np.repeat([0, 1], 500)).tolist())
    assert len(list(coins)) == 1000

    class Told:
        def __init__(self) -> None:
            self.calls = -6
            source = np.random.default_rng(2)
            self.sides = source.permutation(np.repeat([0, 1], 500)).tolist()
            for _ in range(2):
                self.sides += source.integers(0, 2, size=256).tolist()

        def __call__(self, value: int) -> None:
            clock[0] += 1000
            if 0 <= self.calls < len(self.sides):
                clock[0] += 50 * (self.sides[self.calls] ^ (self.calls < 1000))
            self.calls += 1

    with pytest.raises(ValueError, match="control: the time tells one input from itself"):
        audit_time(Told(), inputs=(0, 2), draws=3000, training=1000, random_state=2)


def test_a_command_is_given_its_input(clock: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(6)

    def slow_on_b(command: list[str], *, input: bytes, **options: Any) -> Any:
        assert command == ["theirs", "-x"]
        clock[0] += 10**6 + source.randrange(1000) + 700 * (input == b"b")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("subprocess.run", slow_on_b)
    report = audit_time(["theirs", "-x"], inputs=("a", "b"), draws=2000, training=400, random_state=1)
    assert report.holds is False
    assert report.mechanism == "theirs -x"


def test_a_command_reads_and_ends() -> None:
    """A real one, a few times: what it does with its time is its own affair."""
    command = ["sh", "-c", 'read given; [ "$given" = a ] || [ "$given" = b ]']
    report = audit_time(command, inputs=("a\n", "b\n"), draws=4, training=4, control=False)
    assert report.verdict.right + report.verdict.wrong + report.verdict.none == 4


@pytest.mark.parametrize(
    ("target", "inputs", "error", "words"),
    [
        (len, (1, 2, 3), TypeError, "inputs must be a pair"),
        ("true", ("a", "b"), TypeError, "target must be callable or a sequence of str"),
        (["true"], ("a", "bb"), ValueError, "inputs must have the same length"),
        (["true"], (1, 2), TypeError, "inputs of a command must be"),
        (["false"], ("a", "b"), ValueError, "exit code 1"),
    ],
)
def test_targets_and_inputs_that_do_not_fit(target: Any, inputs: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        audit_time(target, inputs=inputs)


def test_the_blocks_of_the_chapter(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "audit_anything.md").read_text()
    chapter = text.partition("## What can only be run")[2].partition("## In tests")[0]
    blocks = re.findall(r"```(python|text)\n(.*?)```", chapter, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text", "python"]
    names: dict[str, Any] = {"model": Rows()}
    exec(blocks[0][1], names)
    assert capsys.readouterr().out == blocks[1][1]
    exec(blocks[2][1], names)
    assert names["report"].holds is False
    assert capsys.readouterr().out.startswith("3.49296")


class Rows:
    """An estimator that adds up what it is given."""

    def fit(self, X: Any, y: Any, groups: Any) -> Rows:
        self.sums = (2 * np.asarray(y) - 1) @ X
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.sums


# --- runs that are kept apart


def test_runs_that_write_to_their_dataset_do_not_give_it_to_the_next() -> None:
    """The sign of a mean with noise of scale 50 is private; were the noise kept, both means would walk away."""

    def in_place(dataset: Any, rng: Any) -> bool:
        dataset += 50 * rng.normal(size=3)
        return bool(dataset.mean() > 0)

    pair = (np.zeros(3), np.full(3, 0.01))
    for seed in range(4):
        report = audit_samples(
            in_place, [pair], epsilon=1, rng="numpy", random_state=seed, draws=8000, training=1000, progress=False
        )
        # Right in every second case, whatever the event: a tail of 6 standard deviations.
        found = report.estimate
        assert abs(found.right - found.wrong) < 6 * math.sqrt(found.right + found.wrong + 1)
    assert pair[0].tolist() == [0, 0, 0]


def test_times_are_of_inputs_that_no_earlier_call_has_changed() -> None:
    seen: list[int] = []

    def growing(value: list[int]) -> None:
        value.append(0)
        seen.append(len(value))

    audit_time(growing, inputs=([0], [0]), draws=50, training=20, random_state=1, progress=False)
    assert set(seen) == {2}


class HoldsGenerator:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __call__(self, dataset: Any) -> int:
        return int(self.generator.random() < 0.5)


GLOBAL = np.random.default_rng(1)


def uses_a_global_one(dataset: Any) -> int:
    return int(GLOBAL.random() < 0.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        HoldsGenerator(np.random.default_rng(1)),
        HoldsGenerator(np.random.RandomState(1)),
        HoldsGenerator(random.Random(1)),
        functools.partial(uses_a_global_one),
        uses_a_global_one,
    ],
)
def test_generators_are_not_copied_to_other_processes(mechanism: Any) -> None:
    """Each worker would draw the same numbers, so that 32 draws would be counted as all of them."""

    class Elsewhere(Executor):
        pass

    with pytest.raises(ValueError, match="holds a generator of random numbers"):
        audit_samples(mechanism, [PAIR], epsilon=1, executor=Elsewhere(), draws=10, training=2)
    with ThreadPoolExecutor(1) as executor:
        assert audit_samples(mechanism, [PAIR], epsilon=1, executor=executor, draws=10, training=2).holds is None


def test_generators_of_the_system_may_go_to_other_processes() -> None:
    refuse_generators(HoldsGenerator(random.SystemRandom()))
    refuse_generators(lambda: 0)  # cannot be written: the executor says so


def test_global_generators_are_seeded_anew_in_other_processes() -> None:
    before = np.random.get_state(), random.getstate()  # noqa: NPY002
    seed_libraries(os.getpid())
    assert repr(np.random.get_state()) == repr(before[0])  # noqa: NPY002
    assert random.getstate() == before[1]
    seed_libraries(-1)
    try:
        assert random.getstate() != before[1]
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])


def test_addresses_in_memory_are_no_outputs() -> None:
    class Result:
        pass

    one, other = ([Result()], {"a": Result()}), ([Result()], {"a": Result()})
    assert repr(one) != repr(other)
    assert list(features(one)) == list(features(other))
