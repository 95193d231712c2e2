"""A probabilistic representation from a private learner: what privacy says about how many hypotheses there can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp import _core
from userdp.dimensions.representation import parse_failure
from userdp.exact.epsilon import core_level, enclosure
from userdp.exact.numbers import (
    COUNTED,
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exceptions import BudgetError
from userdp.runtime import Progress, progress_bar

MAX_RUNS = 10**7
LARGEST_LEVEL = 64
"""Of a larger epsilon, e^epsilon is bounded from below by e^64 where it is compared with delta."""

_BITS = 128


@dataclass(frozen=True)
class LearnedRepresentation:
    """Hypotheses among which there is a good one, and what that means.

    Attributes
    ----------
    hypotheses : tuple
        Distinct, in the order in which they were found.
    runs : int
        How often the learner ran; log2 of it bounds the probabilistic representation dimension.
    alpha : Fraction
        The error of the learner.
    failure : Fraction
        For every concept of the learner's class and every distribution of points, with probability at least 1 - failure
        over the runs, one of the hypotheses has an error of at most alpha.
    """

    hypotheses: tuple[Hashable, ...]
    runs: int
    alpha: Fraction
    failure: Fraction


def representation_runs(*, n_users: int, epsilon: Epsilon, delta: Delta = 0, beta: Delta, failure: Delta) -> int:
    """How often a private learner must run on a fixed dataset to hit what it would learn from any other.

    Parameters
    ----------
    n_users, epsilon, delta, beta, failure
        As of `representation_from_learner`.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    BudgetError
        Above 10**7.

    References
    ----------
    [GKM21, Lemma 34].

    Examples
    --------
    >>> representation_runs(n_users=4, epsilon=1, beta="1/4", failure="1/4")
    101
    """
    n_users, level = check_count(n_users, "n_users", most=COUNTED), parse_level(epsilon)
    delta_exact, beta_exact = parse_delta(delta), parse_failure(beta, "beta")
    failure_exact = parse_failure(failure, "failure")
    if failure_exact == 0:
        raise ValueError(f"failure must be above 0; got {short_repr(failure)}")
    # Twice what is allowed is surely too much; the exact number is taken below.
    missed = _core.ln_bounds(1 / failure_exact)[1]
    log_runs = float(level) * n_users + math.log(missed) - _core.ln_bounds(1 - beta_exact)[1]
    if log_runs > math.log(2 * MAX_RUNS):
        raise BudgetError(_too_many(f"about e^{log_runs:.4g}", n_users))
    # e^(n epsilon), and the chance of a hypothesis that is good for a given target, from below.
    _, most = _core.exp_bounds(core_level(PrivacyLevel(level.ratio**n_users, level.exponent * n_users)), _BITS)
    least, _ = _core.exp_bounds(core_level(level), _BITS)
    lost = delta_exact * n_users if least <= 1 else delta_exact * (1 - 1 / most) / (least - 1)
    chance = (1 - beta_exact) / most - lost
    if chance <= 0:
        raise ValueError(
            f"delta={short_repr(delta)} is too large for {n_users} users: (epsilon, delta) for one user says nothing "
            "about all of them unless delta (e^(n epsilon) - 1)/(e^epsilon - 1) < 1 - beta"
        )
    runs = math.ceil(Fraction(missed) / chance)
    if runs > MAX_RUNS:
        raise BudgetError(_too_many(str(runs), n_users))
    return max(runs, 1)


def _too_many(runs: str, n_users: int) -> str:
    return (
        f"{runs} runs of the learner are needed, and at most 10**7 are made; their number grows like e^(n epsilon): "
        f"use fewer than {n_users} users or a smaller epsilon"
    )


def representation_from_learner(
    learner: Callable[[Any], Hashable],
    dataset: Any,
    *,
    n_users: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: Delta,
    beta: Delta,
    failure: Delta,
    progress: Progress = None,
) -> LearnedRepresentation:
    """Run a private learner often on one fixed dataset, and keep what it says: [GKM21, Algorithm 6].

    A learner that is (epsilon, delta)-DP for its n users cannot tell the fixed dataset from one that teaches it a
    concept by more than e^(n epsilon); what it would learn there it says here now and then.

    Parameters
    ----------
    learner : callable
        Gets `dataset` and returns a hypothesis, which can be hashed. Its coins must be fresh in every run.
    dataset : object
        Any fixed dataset with n_users users for learners whose neighbors replace one user; the dataset without users
        for those whose neighbors add or remove one. Never users' data: the hypotheses are not private.
    n_users : int
        The number of users from whom the learner learns.
    epsilon : float, int, Fraction, decimal string or LogRatio
    delta : float, int, Fraction or decimal string
        The privacy of the learner, per user.
    alpha, beta : float, int, Fraction or decimal string
        The accuracy of the learner, which is the caller's claim: for every concept and distribution its error is at
        most alpha with probability at least 1 - beta over samples and coins. alpha in [0, 1], beta in [0, 1).
    failure : float, int, Fraction or decimal string
        How rarely the result may have no hypothesis with error at most alpha, in (0, 1).
    progress : bool, callable or None
        A callable gets (runs done, runs in all); see the README.

    Raises
    ------
    BudgetError
        When more than 10**7 runs are needed.

    Notes
    -----
    By group privacy one run says something good for a given concept and distribution with a probability p, and
    ln(1 / failure) / p runs are enough: docs/proofs/dimensions.md. The paper's number is the one for failure = e^-10
    and a tenth of that p.

    References
    ----------
    [GKM21, Lemma 4] and [GKM21, Algorithm 6].

    Examples
    --------
    >>> import random
    >>> from userdp import LogRatio
    >>> def learner(dataset):  # forgets its data: 0-DP; on one point, right about it half the time
    ...     return (random.random() < 0.5,)
    >>> representation = representation_from_learner(
    ...     learner, None, n_users=3, epsilon=LogRatio(1), alpha=0, beta="1/2", failure="1e-9"
    ... )
    >>> representation.runs, sorted(representation.hypotheses)
    (42, [(False,), (True,)])
    """
    if not callable(learner):
        raise TypeError(f"learner must be callable; got {short_repr(learner)}")
    runs = representation_runs(n_users=n_users, epsilon=epsilon, delta=delta, beta=beta, failure=failure)
    error, missing = parse_delta(alpha, "alpha"), parse_delta(failure, "failure")
    hypotheses: dict[Hashable, None] = {}
    with progress_bar(progress, "representation from a learner") as report:
        for run in range(runs):
            hypotheses.setdefault(learner(dataset))
            report(run + 1, runs)
    return LearnedRepresentation(tuple(hypotheses), runs, error, missing)


def users_implied(size: int, *, epsilon: Epsilon, delta: Delta = 0, beta: Delta, failure: Delta) -> int:
    """How many users every private learner needs at least, when representations have at least a given size.

    Parameters
    ----------
    size : int
        A lower bound on `representation_size` of the class at (alpha, failure), such as that of
        `representation_size_bounds`.
    epsilon : float, int, Fraction, decimal string or LogRatio
        The privacy of the learner, above 0.
    delta : float, int, Fraction or decimal string
        With delta > 0 the number is never above about ln(1 + (e^epsilon - 1) / delta) / epsilon.
    beta : float, int, Fraction or decimal string
        Its probability of an error above alpha, in [0, 1).
    failure : float, int, Fraction or decimal string
        The failure probability of the representation, in (0, 1).

    Returns
    -------
    int
        Every (epsilon, delta)-DP learner of error alpha with probability 1 - beta has at least so many users, however
        many examples each of them gives.

    Notes
    -----
    All constants are proved (docs/proofs/dimensions.md); the bound is empty for small sizes, as the one of the paper is
    up to a dimension of 7.6. Rounded down where it is not exact.

    References
    ----------
    [GKM21, Lemma 4].

    Examples
    --------
    >>> users_implied(2**20, epsilon=1, beta="1/4", failure="1/4")
    14
    >>> users_implied(2**20, epsilon=1, delta="1e-4", beta="1/4", failure="1/4")
    10
    """
    size, level = check_count(size, "size"), parse_level(epsilon)
    wrong, missing = parse_failure(beta, "beta"), parse_failure(failure, "failure")
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError(f"epsilon must be above 0; got {short_repr(epsilon)}")
    if missing == 0:
        raise ValueError(f"failure must be above 0; got {short_repr(failure)}")
    if size == 1:
        return 0
    chance = Fraction(_core.ln_bounds(1 / missing)[1]) / (size - 1)
    # delta / (e^epsilon - 1), from above.
    slack = Fraction(0)
    if exact := parse_delta(delta):
        smaller = level if float(level) < LARGEST_LEVEL else PrivacyLevel(Fraction(1), Fraction(LARGEST_LEVEL))
        slack = exact / (enclosure(smaller, "epsilon")[0] - 1)
    ratio = (1 - wrong + slack) / (chance + slack)
    needed = Fraction(_core.ln_bounds(ratio)[0])
    highest = level.exponent + (Fraction(_core.ln_bounds(level.ratio)[1]) if level.ratio != 1 else 0)
    # n epsilon is above `needed`, strictly.
    return max(0, math.floor(needed / highest) + 1)
