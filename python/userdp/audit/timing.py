"""Audits of time: what a clock tells about which of two inputs a function or a command was given."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms.finite import mechanism_name
from userdp.audit.fresh import fresh
from userdp.audit.samples import Question, guess_coins, read_alphas
from userdp.exact.numbers import Delta, PrivacyLevel, short_repr
from userdp.report.guesses import GuessReport
from userdp.runtime import Progress

TIMEOUT = 60.0
"""Seconds that a command may take."""


def audit_time(
    target: Callable[[Any], Any] | Sequence[str],
    *,
    inputs: tuple[Any, Any],
    draws: int = 20_000,
    training: int = 4_000,
    alpha: Delta = "1e-9",
    estimate_alpha: Delta = "0.05",
    control: bool = True,
    random_state: int | None = None,
    name: str | None = None,
    progress: Progress = None,
) -> GuessReport:
    """Return what the time of a function or a command proves about which of two inputs it was given.

    Parameters
    ----------
    target : callable or sequence of str
        ``target(value)``, which is given a value of its own and whose result is thrown away, or a command, which reads
        the input from its standard input. A command is started anew for each draw, and must end within a minute.
    inputs : pair
        The two inputs; of a command two texts or two byte strings of the same length, as reading takes time too.
    draws, training : int
        As for `audit_samples`.
    alpha, estimate_alpha : float, int, Fraction or decimal string
        As for `audit_samples`.
    control : bool
        First time the first input against itself: what is found there is the clock's fault or the caller's.
    random_state : int, optional
        Seeds the coins, for tests.
    name : str, optional
        What the report calls the target.
    progress : bool, callable or None
        See `audit_user_level`.

    Returns
    -------
    GuessReport
        About the claim that time tells nothing: epsilon 0 and delta 0. ``holds`` is False when a guess by time is
        right too often, and None otherwise: a clock never shows that a function takes constant time. ``advantage`` is
        a lower bound of how much better than a coin such guesses are.

    Raises
    ------
    TypeError, ValueError
        For arguments that are out of range, a command that fails, and a control that is not alike.

    Notes
    -----
    A coin chooses the input of each draw, so that a drifting clock and other programs cost power and not soundness.

    Examples
    --------
    >>> report = audit_time(lambda n: sum(range(n)), inputs=(10, 20_000), draws=2_000, training=400)
    >>> report.holds, report.advantage > 0.5
    (False, True)
    """
    if not isinstance(inputs, (tuple, list)) or len(inputs) != 2:
        raise TypeError(f"inputs must be a pair; got {short_repr(inputs)}")
    timed: _Function | _Command
    if callable(target):
        timed, called = _Function(target), mechanism_name(target)
    else:
        timed = _Command(target, inputs)
        called = " ".join(timed.command)
    alphas = read_alphas(alpha, estimate_alpha)
    question = Question(
        "time", "inputs", PrivacyLevel(Fraction(1), Fraction(0)), Fraction(0), called if name is None else name
    )
    coins = np.random.default_rng(random_state)
    timed([fresh(inputs[0]), fresh(inputs[1])] * 3)  # what only the first call does
    if control:
        alike = guess_coins(
            timed,
            [(inputs[0], inputs[0])],
            question,
            draws=max(1, draws // 4),
            training=training,
            alphas=alphas,
            event=None,
            coins=coins,
            progress=False,
        )
        if alike.holds is False:
            raise ValueError(
                "control: the time tells one input from itself, so that it says nothing about two of them; is target "
                "changing what it is given?"
            )
    return guess_coins(
        timed,
        [(inputs[0], inputs[1])],
        question,
        draws=draws,
        training=training,
        alphas=alphas,
        event=None,
        coins=coins,
        progress=progress,
    )


class _Function:
    """Nanoseconds of calls."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, values: Sequence[Callable[[], Any]]) -> Iterator[float]:
        function, clock = self._function, time.perf_counter_ns
        found = []
        for make in values:
            value = make()
            start = clock()
            function(value)
            found.append(float(clock() - start))
        return iter(found)


class _Command:
    """Nanoseconds of a command, from its start to its end."""

    def __init__(self, command: Any, inputs: Sequence[Any]) -> None:
        if isinstance(command, str) or not all(isinstance(word, str) for word in command):
            raise TypeError(f"target must be callable or a sequence of str; got {short_repr(command)}")
        self.command = list(command)
        if not all(isinstance(value, (str, bytes)) for value in inputs):
            raise TypeError("inputs of a command must be str or bytes, which it reads from its standard input")
        texts = [value.encode() if isinstance(value, str) else value for value in inputs]
        if len(texts[0]) != len(texts[1]):
            raise ValueError(
                "inputs must have the same length, as reading takes time too; got "
                f"{len(texts[0])} and {len(texts[1])} bytes"
            )

    def __call__(self, values: Sequence[Callable[[], Any]]) -> Iterator[float]:
        return (self._one(make()) for make in values)

    def _one(self, value: Any) -> float:
        text = value.encode() if isinstance(value, str) else value
        start = time.perf_counter_ns()
        ended = subprocess.run(
            self.command,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=False,
        )
        took = float(time.perf_counter_ns() - start)
        if ended.returncode:
            raise ValueError(f"target ended with the exit code {ended.returncode}")
        return took
