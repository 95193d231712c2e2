"""Audits of mechanisms that can only be run: a lower bound of epsilon from coins, valid at any moment."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from userdp.algorithms.finite import mechanism_name
from userdp.algorithms.outputs import class_name, raised
from userdp.audit.events import Event, Guess, Raised, learn_event
from userdp.audit.fresh import fresh, refuse_generators, seed_libraries
from userdp.audit.guesses import Counts, claim_refuted, epsilon_below
from userdp.audit.neighbors import MOST_PAIRS, NeighboringPairs
from userdp.exact.epsilon import ln_float, upper
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    check_neighbors,
    parse_delta,
    parse_exact,
    parse_level,
    short_repr,
)
from userdp.report.guesses import Access, Guesses, GuessReport
from userdp.runtime import Progress, progress_bar

Generator: TypeAlias = Literal["random", "numpy"]
Draws: TypeAlias = Callable[[Sequence[Callable[[], Any]]], Iterator[Any]]
"""Runs something on each of some datasets, which are made for the run, and gives the outputs in their order."""

BATCH = 256
"""Draws between two looks at the wealth; looks cost nothing but time."""
MOST_DRAWS = 10**8
LEAST_ALPHA = Fraction(1, 10**100)


def audit_samples(
    mechanism: Callable[..., Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    epsilon: Epsilon,
    delta: Delta = 0,
    draws: int = 200_000,
    training: int = 20_000,
    alpha: Delta = "1e-9",
    estimate_alpha: Delta = "0.05",
    event: Guess | None = None,
    rng: Generator | None = None,
    neighbors: Literal["replace", "add-remove"] = "replace",
    random_state: int | None = None,
    executor: Executor | None = None,
    name: str | None = None,
    progress: Progress = None,
) -> GuessReport:
    """Return what guesses about neighboring datasets prove about a mechanism that is only run.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(dataset)``, or ``mechanism(dataset, rng)`` if `rng` is given. It may return anything. What it
        raises is an output: its class, its text and those of what it came from. The report counts the runs that
        raised. Each run is given a dataset of its own.
    pairs : iterable of pairs
        Neighboring datasets ``(x, x2)``, at most 1,000 pairs. Whether they are neighbors is the caller's affair.
    epsilon : float, int, Fraction, decimal string or LogRatio
        The claim, taken exactly.
    delta : float, int, Fraction or decimal string
        In [0, 1], taken exactly.
    draws : int
        Most draws of the test, in [1, 10^8]. It ends early when the claim is refuted.
    training : int
        Draws by which the pair and the event are chosen, before the test and never in it.
    alpha : float, int, Fraction or decimal string
        Most probability of a wrong verdict, in [1e-100, 1/2].
    estimate_alpha : float, int, Fraction or decimal string
        The same for the printed bound of epsilon, in [alpha, 1/2].
    event : callable, optional
        How to guess, in place of what training finds: from an output to True for the first dataset, False for the
        second, None for no guess. It must not have seen the draws of the test. Needs a single pair.
    rng : {"random", "numpy"}, optional
        Give the mechanism a `random.Random` or a `numpy.random.Generator`, seeded by the system.
    neighbors : {"replace", "add-remove"}
        What the pairs differ by; for the report only.
    random_state : int, optional
        Seeds the coins and `rng`, for tests. A mechanism that uses the same seed sees the coins.
    executor : concurrent.futures.Executor, optional
        Where the mechanism is run; for processes it must be picklable, and hold no generator, which each would copy.
    name : str, optional
        What the report calls the mechanism.
    progress : bool, callable or None
        See `audit_user_level`.

    Returns
    -------
    GuessReport
        ``holds`` is False when the claim is refuted, and otherwise None: draws never show that a claim holds.

    Raises
    ------
    TypeError
        For arguments of other types.
    ValueError
        For arguments that are out of range, and when every run of the training raises, or every run where there is no
        training: then nothing was audited.

    Notes
    -----
    A fair coin chooses one of the two datasets for each draw. If the mechanism is (epsilon, delta)-DP, no guess is
    right too often, whatever was seen before, also for mechanisms that remember. The wealth of a gambler who stakes on
    the guesses is a supermartingale, so that the test may be looked at after any draw (docs/proofs/guesses.md).

    Examples
    --------
    Noise of scale 1 on a count of rows, sold as private for users with two rows each:

    >>> def noisy_rows(dataset, rng):
    ...     return sum(map(len, dataset)) + rng.geometric(0.632) - rng.geometric(0.632)
    >>> pair = ([(1, 1), (1, 1)], [(1, 1), ()])
    >>> report = audit_samples(noisy_rows, [pair], epsilon=1, rng="numpy", random_state=7)
    >>> report.holds
    False
    """
    level, most = parse_level(epsilon), parse_delta(delta)
    listed = _read_pairs(pairs)
    if event is not None and len(listed) != 1:
        raise ValueError(f"event goes with a single pair; got {len(listed)} pairs")
    if rng not in (None, "random", "numpy"):
        raise ValueError(f"rng must be None, 'random' or 'numpy'; got {short_repr(rng)}")
    check_neighbors(neighbors)
    run = _Runs(mechanism, rng, random_state, executor)
    scope = f"; chosen from {pairs.scope}" if isinstance(pairs, NeighboringPairs) else ""
    return guess_coins(
        run,
        listed,
        Question("samples", neighbors, level, most, mechanism_name(mechanism) if name is None else name, scope),
        draws=draws,
        training=training,
        alphas=read_alphas(alpha, estimate_alpha),
        event=event,
        coins=np.random.default_rng(random_state),
        progress=progress,
    )


@dataclass(frozen=True)
class Question:
    """What an audit by guesses asks."""

    access: Access
    neighbors: str
    level: PrivacyLevel
    delta: Fraction
    name: str
    scope: str = ""


def guess_coins(
    run: Draws,
    pairs: Sequence[tuple[Any, Any]],
    question: Question,
    *,
    draws: int,
    training: int,
    alphas: tuple[Fraction, Fraction],
    event: Guess | None,
    coins: np.random.Generator,
    progress: Progress,
) -> GuessReport:
    """Choose a pair and an event by training draws, toss coins, guess them, and report."""
    draws = check_count(draws, "draws")
    if draws > MOST_DRAWS:
        raise ValueError(f"draws must be at most {MOST_DRAWS:,}; got {draws:,}")
    datasets: dict[int, Callable[[], Any]] = {}
    for side in (side for pair in pairs for side in pair):
        if id(side) not in datasets:
            datasets[id(side)] = fresh(side)
    # One dataset of several pairs is drawn once for all of them. A control compares one with itself, by other draws.
    pairs = [(datasets[id(one)], fresh(other) if one is other else datasets[id(other)]) for one, other in pairs]
    least = len({id(side) for pair in pairs for side in pair})
    training = 0 if event is not None else check_count(training, "training", least)
    counted = _Counted(run)
    with progress_bar(progress, "audit by samples") as show:
        pair, guess = pairs[0], event
        if guess is None:
            pair, guess = _trained(counted, pairs, question, training, coins, lambda done: show(done, training + draws))
            counted.require_an_answer()
        asked = _Counted(counted)
        sides = guess.sides if isinstance(guess, Event) else 2
        margin = sides * question.delta
        counts = [0, 0, 0]
        done = 0
        while done < draws:
            tossed = coins.integers(0, 2, size=min(BATCH, draws - done)).tolist()
            for coin, output in zip(tossed, asked([pair[1 - coin] for coin in tossed]), strict=True):
                guessed = guess(output)
                counts[2 if guessed is None else int(guessed != bool(coin))] += 1
            done += len(tossed)
            show(training + done, training + draws)
            if claim_refuted("anytime", Counts(*counts), question.level, alphas[0], margin):
                break
    asked.require_an_answer(f" on this pair: first {short_repr(pair[0]())}, second {short_repr(pair[1]())}")
    found = Counts(*counts)
    parts = [
        Guesses(
            alpha=alpha,
            right=found.right,
            wrong=found.wrong,
            none=found.none,
            epsilon=epsilon_below("anytime", found, alpha, margin),
        )
        for alpha in alphas
    ]
    return GuessReport(
        mechanism=question.name,
        access=question.access,
        neighbors=question.neighbors,
        test="anytime",
        epsilon_level=question.level,
        delta=question.delta,
        canaries=0,
        sides=sides,
        runs=counted.runs,
        raised=counted.raised,
        holds=False if claim_refuted("anytime", found, question.level, alphas[0], margin) else None,
        verdict=parts[0],
        estimate=parts[1],
        about=_about(guess, pair) + question.scope,
    )


class _Counted:
    """Runs, of which those that raised are counted."""

    def __init__(self, run: Draws) -> None:
        self.runs, self.raised = 0, 0
        self._run, self._errors = run, dict[Raised, Raised]()

    def __call__(self, datasets: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        for output in self._run(datasets):
            self.runs += 1
            if isinstance(output, Raised):
                self.raised += 1
                self._errors.setdefault(output, output)
            yield output

    def require_an_answer(self, where: str = "") -> None:
        """Refuse a mechanism that only raised, one error: it was called in a wrong way, and its answers are unknown."""
        if self.raised == self.runs and len(self._errors) == 1:
            (error,) = self._errors
            raise ValueError(
                f"the mechanism raises in all of {self.runs:,} runs{where}, {error.text[:200]}; is it meant "
                "for these datasets, and for rng=?"
            )


def _about(guess: Guess, pair: tuple[Any, Any]) -> str:
    """What was guessed by, and which two datasets or inputs were told apart."""
    event = str(guess) if isinstance(guess, Event) else "a given event"
    return f"{event}; first {short_repr(pair[0]())}, second {short_repr(pair[1]())}"


def read_alphas(alpha: Delta, estimate_alpha: Delta) -> tuple[Fraction, Fraction]:
    """Read the probabilities of a wrong verdict and of a wrong bound."""
    verdict, estimate = read_alpha(alpha, "alpha"), read_alpha(estimate_alpha, "estimate_alpha")
    if estimate < verdict:
        raise ValueError(f"estimate_alpha must be at least alpha; got {short_repr(estimate_alpha)}")
    return verdict, estimate


def read_alpha(alpha: Delta, name: str) -> Fraction:
    """Read a probability of an error."""
    number = parse_exact(alpha, name, "a float, int, Fraction or decimal string in [1e-100, 1/2]")
    if not LEAST_ALPHA <= number <= Fraction(1, 2):
        raise ValueError(f"{name} must be in [1e-100, 1/2]; got {short_repr(alpha)}")
    return number


def _read_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    try:
        listed = [tuple(pair) for pair in pairs]
    except TypeError:
        raise TypeError(f"pairs must be an iterable of pairs (x, x2) of datasets; got {short_repr(pairs)}") from None
    if not listed or any(len(pair) != 2 for pair in listed):
        raise ValueError("pairs must be one or more pairs (x, x2) of datasets")
    if len(listed) > MOST_PAIRS:
        raise ValueError(f"pairs must be at most {MOST_PAIRS:,}; got {len(listed):,}: list the likeliest ones")
    return [(pair[0], pair[1]) for pair in listed]


def _trained(
    run: Draws,
    pairs: Sequence[tuple[Any, Any]],
    question: Question,
    training: int,
    coins: np.random.Generator,
    show: Callable[[int], object],
) -> tuple[tuple[Any, Any], Event]:
    """The best pair and event: half of the draws go to all pairs, the rest to the best quarter and its quarters."""
    claim = level_float(question.level)
    delta = float(question.delta)
    datasets = list({id(side): side for pair in pairs for side in pair}.values())
    place_of = {id(dataset): place for place, dataset in enumerate(datasets)}
    sides = [(place_of[id(one)], place_of[id(other)]) for one, other in pairs]
    samples: list[list[Any]] = [[] for _ in datasets]
    rounds = 1 + math.ceil(math.log2(len(pairs)) / 2)
    left, done = list(range(len(pairs))), 0
    found: dict[int, Event] = {}
    for number in range(rounds):
        share = training if rounds == 1 else training // 2 if number == 0 else training // (2 * rounds - 2)
        places = sorted({place for pair in left for place in sides[pair]})
        each = max(1, share // len(places))
        # In a random order, so that what a mechanism remembers does not stand for a dataset.
        order = coins.permutation(np.repeat(places, each)).tolist()
        for place, output in zip(order, run([datasets[place] for place in order]), strict=True):
            samples[place].append(output)
        done += len(order)
        show(done)
        for pair in left:
            both = samples[sides[pair][0]], samples[sides[pair][1]]
            found[pair] = learn_event(*both, claim, delta)
            if not found[pair].growth:  # no violation is in sight: a bound at least
                found[pair] = _weaker(both, delta)
            outputs = set(map(_told, both[0] + both[1]))
            if len(outputs) == 1 and None not in outputs:  # nothing but one error: any other pair says more
                found[pair] = replace(found[pair], growth=-math.inf)
        left.sort(key=lambda pair: found[pair].growth, reverse=True)
        if number < rounds - 1:
            left = left[: (len(left) + 3) // 4]
    return pairs[left[0]], found[left[0]]


def _told(output: Any) -> str | None:
    """The error of a run that raised."""
    return output.error if isinstance(output, Raised) else None


def _weaker(samples: tuple[list[Any], list[Any]], delta: float) -> Event:
    """The event for the claim epsilon = 0; its growth counts as less than that of all that refute."""
    event = learn_event(*samples, 1.0, delta)
    return replace(event, growth=event.growth - 1e3)


def level_float(level: PrivacyLevel) -> float:
    """About e^epsilon."""
    return math.exp(min(ln_float(upper(level)), 300.0))


class _Runs:
    """The mechanism on one dataset after the other, here or elsewhere."""

    def __init__(
        self, mechanism: Any, rng: Generator | None, random_state: int | None, executor: Executor | None
    ) -> None:
        if not callable(mechanism):
            raise TypeError(f"mechanism must be callable; got {short_repr(mechanism)}")
        if executor is not None and not isinstance(executor, ThreadPoolExecutor):
            refuse_generators(mechanism)
        self._one = _One(mechanism, rng, random_state)
        self._executor = executor

    def __call__(self, datasets: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        if self._executor is None:
            return map(self._one, datasets)
        parts = [datasets[start : start + 32] for start in range(0, len(datasets), 32)]
        return (output for part in self._executor.map(self._one.many, parts) for output in part)


class _One:
    """One run; a worker process makes a generator of its own."""

    def __init__(self, mechanism: Any, rng: Generator | None, random_state: int | None) -> None:
        self._mechanism, self._rng, self._home = mechanism, rng, os.getpid()
        seed = None if random_state is None else random_state + 1
        self._made = _generator(rng, seed)

    def __getstate__(self) -> dict[str, Any]:
        return {"_mechanism": self._mechanism, "_rng": self._rng, "_home": self._home, "_made": None}

    def __call__(self, dataset: Callable[[], Any]) -> Any:
        given = dataset()
        if self._rng is not None and self._made is None:
            self._made = _generator(self._rng, None)
        try:
            return self._mechanism(given) if self._rng is None else self._mechanism(given, self._made)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also what ends a program or a task: whoever waits for an answer sees it
            return Raised(class_name(type(error)), raised(error).looks[0][1])

    def many(self, datasets: Sequence[Callable[[], Any]]) -> list[Any]:
        seed_libraries(self._home)
        return list(map(self, datasets))


def _generator(rng: Generator | None, seed: int | None) -> Any:
    return None if rng is None else random.Random(seed) if rng == "random" else np.random.default_rng(seed)
