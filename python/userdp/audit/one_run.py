"""Audits by one run: fair coins put canary users in or out, and what comes out is used to guess the coins."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms.finite import mechanism_name
from userdp.audit.guesses import GRID, MOST_GUESSES, Counts, Test, best_stop, claim_refuted, epsilon_below, rejected
from userdp.audit.samples import level_float, read_alpha
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    Neighbors,
    check_count,
    check_neighbors,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.report.guesses import Guesses, GuessReport

VERDICT, ESTIMATE = Fraction(1, 10**9), Fraction(1, 20)


def one_run_epsilon(
    n_canaries: int, n_guesses: int, n_right: int, *, delta: Delta = 0, alpha: Delta = "0.05"
) -> LogRatio:
    """Return the epsilon that a mechanism exceeds whose one run let so many coins be guessed right.

    Parameters
    ----------
    n_canaries : int
        Users for whom a coin was tossed, at least 1 and at most 200,000.
    n_guesses : int
        How many coins were guessed; the number was fixed before the run.
    n_right : int
        How many guesses were right.
    delta : float, int, Fraction or decimal string
        Of the claim, in [0, 1].
    alpha : float, int, Fraction or decimal string
        The probability of an error, in [1e-100, 1/2]. It must be above ``n_canaries * delta``.

    Returns
    -------
    LogRatio
        Below the epsilon of every mechanism that is (epsilon, delta)-DP for users, except with probability alpha; 0
        where the guesses show nothing. Rounded down by less than 1e-6 for up to 10,000 canaries.

    Raises
    ------
    TypeError, ValueError
        For counts that do not fit together, and an alpha that delta uses up.

    Notes
    -----
    The probability of v or more right guesses among r is at most that of v or more successes among r of probability
    e^epsilon / (1 + e^epsilon), plus ``n_canaries * delta`` (docs/proofs/guesses.md). How many rows a canary has does
    not matter.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023).

    Examples
    --------
    >>> round(float(one_run_epsilon(100, 100, 100)), 5)
    3.49297
    """
    canaries, counts = _read_counts(n_canaries, n_guesses, n_right)
    left = _left(read_alpha(alpha, "alpha"), canaries, parse_delta(delta), "alpha")
    found = epsilon_below("fixed", counts, left)
    return LogRatio(found.ratio.numerator, found.ratio.denominator)


def audit_one_run(
    run: Callable[[list[Any]], Any],
    *,
    canaries: Sequence[Any],
    score: Callable[[Any], Sequence[float]],
    epsilon: Epsilon,
    delta: Delta = 0,
    others: Sequence[Any] | None = None,
    neighbors: Neighbors = "replace",
    background: Sequence[Any] = (),
    test: Test = "fixed",
    n_guesses: int | None = None,
    alpha: Delta | None = None,
    estimate_alpha: Delta | None = None,
    random_state: int | None = None,
    name: str | None = None,
) -> GuessReport:
    """Return what one run with canary users proves about a mechanism.

    Parameters
    ----------
    run : callable
        ``run(users)`` runs the mechanism on a list of users and returns what it releases. It is called once.
    canaries : sequence of users
        Users for whom coins are tossed, up to 200,000. A user is whatever `run` takes, with any number of rows.
    score : callable
        ``score(output)`` returns a number for each canary, larger where the canary is more likely to be in. It may use
        the data of all canaries, and must not see the coins. NaN stands for no opinion.
    epsilon, delta
        The claim, as for `audit_samples`.
    others : sequence of users, optional
        For ``neighbors="replace"``: who takes the place of each canary when the coin says so.
    neighbors : {"replace", "add-remove"}
        "add-remove" leaves a canary out instead; this refutes claims for adding or removing a user.
    background : sequence of users
        Users who are there in any case, before the canaries. They are fixed before the coins are tossed.
    test : {"fixed", "anytime"}
        "fixed" guesses the `n_guesses` coins of the highest and the lowest scores. "anytime" guesses one after the
        other, by falling distance from the median score, and takes the best moment to stop; a gambler pays for the
        choice.
    n_guesses : int, optional
        For "fixed": how many coins are guessed, fixed before the run. Half of them are guessed to be in. By default
        ``n - 3 * sqrt(n)``, and n / 2 at least: there are rarely so many more coins of one side that a guess must be
        wrong.
    alpha : float, int, Fraction or decimal string, optional
        Most probability of a wrong verdict; by default the larger of 1e-9 and ``2 * n * delta`` for n canaries.
    estimate_alpha : float, int, Fraction or decimal string, optional
        The same for the printed bound; by default the larger of 0.05 and ``2 * n * delta``.
    random_state : int, optional
        Seeds the coins, for tests. A mechanism that uses the same seed sees the coins.
    name : str, optional
        What the report calls the mechanism.

    Returns
    -------
    GuessReport
        ``holds`` is False when the claim is refuted, and None otherwise. More runs until one refutes are more looks:
        their alphas add up.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit together, and an alpha of ``n * delta`` or less: so many users may be shown whole
        with a probability of ``n * delta``, so that no outcome proves anything at that level.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023);
    docs/proofs/guesses.md has the proof for users and for delta > 0.

    Examples
    --------
    Each row is clipped, and the user is not:

    >>> import numpy as np
    >>> rng = np.random.default_rng(5)
    >>> def noisy_totals(users):
    ...     totals = np.zeros(128)
    ...     for rows in users:
    ...         for place, value in rows:
    ...             totals[place] += min(value, 1)
    ...     return totals + rng.laplace(size=128)
    >>> report = audit_one_run(
    ...     noisy_totals,
    ...     canaries=[[(i, 1)] * 16 for i in range(128)],
    ...     others=[[]] * 128,
    ...     score=lambda totals: totals,
    ...     epsilon=1,
    ... )
    >>> report.holds
    False
    """
    level, most = parse_level(epsilon), parse_delta(delta)
    people, stand_ins = _read_canaries(canaries, others, neighbors)
    n = len(people)
    if test not in ("fixed", "anytime"):
        raise ValueError(f"test must be 'fixed' or 'anytime'; got {short_repr(test)}")
    if test == "anytime" and n_guesses is not None:
        raise ValueError(f"n_guesses goes with test='fixed'; got {short_repr(n_guesses)}")
    guesses = max(n - 3 * math.isqrt(n), (n + 1) // 2) if n_guesses is None else check_count(n_guesses, "n_guesses")
    if guesses > n:
        raise ValueError(f"n_guesses must be at most the number of canaries, {n}; got {guesses}")
    least = min(Fraction(1, 2), 2 * n * most)
    alphas = [
        max(default, least) if value is None else read_alpha(value, argument)
        for argument, value, default in (("alpha", alpha, VERDICT), ("estimate_alpha", estimate_alpha, ESTIMATE))
    ]
    if alphas[1] < alphas[0]:
        raise ValueError(f"estimate_alpha must be at least alpha; got {short_repr(estimate_alpha)}")
    left = [_left(number, n, most, word) for number, word in zip(alphas, ("alpha", "estimate_alpha"), strict=True)]

    coins = np.random.default_rng(random_state).integers(0, 2, size=n).astype(bool)
    placed = [canary if coin else other for canary, other, coin in zip(people, stand_ins, coins, strict=True)]
    output = run(
        [*background, *(user for user, coin in zip(placed, coins, strict=True) if coin or neighbors == "replace")]
    )
    scores = _read_scores(score(output), n)
    rights = _guessed(scores, coins)
    if test == "fixed":
        right = int(_extremes(scores, guesses, coins))
        found = [Counts(right, guesses - right)] * 2
    else:
        claim = level_float(level)
        stops = [
            best_stop(rights, functools.partial(claim_refuted, test, level=level, alpha=left[0]), claim),
            _best_bound(rights, left[1]),
        ]
        found = [Counts(sum(rights), n - sum(rights)) if stop is None else stop for stop in stops]
    verdict, estimate = (
        Guesses(
            alpha=alpha_,
            right=counts.right,
            wrong=counts.wrong,
            none=0,
            epsilon=epsilon_below(test, counts, error),
        )
        for alpha_, counts, error in zip(alphas, found, left, strict=True)
    )
    return GuessReport(
        mechanism=mechanism_name(run) if name is None else name,
        access="one-run",
        neighbors=neighbors,
        test=test,
        epsilon_level=level,
        delta=most,
        canaries=n,
        sides=2,
        runs=1,
        raised=0,
        holds=False if claim_refuted(test, found[0], level, left[0]) else None,
        verdict=verdict,
        estimate=estimate,
        about="scores of the canaries, the highest and the lowest"
        if test == "fixed"
        else "scores of the canaries, those far from the median first",
    )


def _read_counts(n_canaries: int, n_guesses: int, n_right: int) -> tuple[int, Counts]:
    canaries = check_count(n_canaries, "n_canaries")
    guesses, right = check_count(n_guesses, "n_guesses"), check_count(n_right, "n_right", 0)
    if canaries > MOST_GUESSES:
        raise ValueError(f"n_canaries must be at most {MOST_GUESSES:,}; got {canaries:,}")
    if not right <= guesses <= canaries:
        raise ValueError(
            f"n_right <= n_guesses <= n_canaries must hold; got {right:,} right of {guesses:,} guesses about "
            f"{canaries:,} canaries"
        )
    return canaries, Counts(right, guesses - right)


def _left(alpha: Fraction, canaries: int, delta: Fraction, name: str) -> Fraction:
    """What delta leaves of an error probability."""
    if alpha <= canaries * delta:
        raise ValueError(
            f"{name} must be above the number of canaries times delta, {canaries} * {float(delta):g} = "
            f"{float(canaries * delta):g}; got {float(alpha):g}. A mechanism may show everybody with probability "
            "delta, so that no outcome proves more: take fewer canaries"
        )
    return alpha - canaries * delta


def _read_canaries(canaries: Any, others: Any, neighbors: str) -> tuple[list[Any], list[Any]]:
    check_neighbors(neighbors)
    try:
        people = list(canaries)
        stand_ins = [None] * len(people) if others is None else list(others)
    except TypeError:
        raise TypeError("canaries and others must be sequences of users") from None
    if not 1 <= len(people) <= MOST_GUESSES:
        raise ValueError(f"canaries must be 1 to {MOST_GUESSES:,} users; got {len(people):,}")
    if neighbors == "replace" and others is None:
        raise ValueError(
            "neighbors='replace' needs others=, the user who takes the place of each canary; "
            "neighbors='add-remove' leaves canaries out instead"
        )
    if neighbors == "add-remove" and others is not None:
        raise ValueError("others goes with neighbors='replace'; 'add-remove' leaves canaries out")
    if len(stand_ins) != len(people):
        raise ValueError(f"others must be as many as canaries, {len(people)}; got {len(stand_ins)}")
    return people, stand_ins


def _read_scores(scores: Any, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        numbers = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"score must return a number for each of the {n} canaries; got {short_repr(scores)}") from None
    if numbers.shape != (n,):
        raise ValueError(f"score must return a number for each of the {n} canaries; got the shape {numbers.shape}")
    known = numbers[~np.isnan(numbers)]
    return np.where(np.isnan(numbers), np.median(known) if known.size else 0.0, numbers)


def _extremes(scores: np.ndarray[Any, Any], guesses: int, coins: np.ndarray[Any, Any]) -> int:
    """Right guesses where the highest scores are guessed to be in and the lowest to be out."""
    order = np.argsort(scores, kind="stable")
    low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int(np.sum(coins[high]) + np.sum(~coins[low]))


def _guessed(scores: np.ndarray[Any, Any], coins: np.ndarray[Any, Any]) -> list[bool]:
    """Whether each guess is right, the surest first: above the median is in, the others are out."""
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    order = np.argsort(-np.abs(2 * ranks - (len(scores) - 1)), kind="stable")
    inside = 2 * ranks > len(scores) - 1
    return list(map(bool, (inside == coins)[order]))


def _best_bound(rights: Sequence[bool], alpha: Fraction) -> Counts | None:
    """The counts at the moment that gives the largest bound: bisection in E, as less is refuted whenever more is."""
    low, high, best = Fraction(1), None, None
    for _ in range(60):
        middle = 2 * low if high is None else (low + high) / 2
        middle = Fraction(math.floor(middle * GRID), GRID)
        if high is not None and (high - low) * 256 < low:  # the counts are hardly better further on
            break
        stop = best_stop(rights, functools.partial(_refutes, multiplier=middle, alpha=alpha), float(middle))
        if stop is None:
            high = middle
        else:
            low, best = middle, stop
        if low > 2**60:
            break
    return best


def _refutes(counts: Counts, multiplier: Fraction, alpha: Fraction) -> bool:
    return rejected("anytime", counts, multiplier, alpha)
