"""How often users agree: measured on samples of a distribution that somebody can draw from."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Delta, check_count, check_kind, clopper_pearson, parse_delta, short_repr
from userdp.exceptions import BudgetError
from userdp.public_randomness.seed import PublicSeed
from userdp.report import AgreementEstimate
from userdp.stability.learner import StableLearner
from userdp.users.table import UserTable

Sampler: TypeAlias = "Callable[[np.random.Generator, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]"

MAX_ROWS = 2**28
"""Rows of all samples together."""
BLOCK = 2**22
"""Rows that are held at a time."""


def measure_agreement(
    learner: StableLearner,
    sampler: Sampler,
    *,
    m: int,
    trials: int = 1000,
    seed: PublicSeed | None = None,
    confidence: float = 0.99,
    random_state: int = 0,
) -> AgreementEstimate:
    """Measure how often two users of one distribution get the same item.

    **Never on users' data.** The result is about the samples it was given: on users' rows it would be an output that
    no privacy budget pays for, and so would a choice of gamma by it. Use a synthetic distribution, or public data.

    Parameters
    ----------
    learner : StableLearner
    sampler : callable
        From a NumPy generator and a number of rows to fresh independent rows: X with shape (rows, features) and labels
        0 and 1 with shape (rows,). Synthetic or public.
    m : int
        Rows of each user, >= 1.
    trials : int
        Pairs of users, >= 1.
    seed : PublicSeed, optional
        One seed for all trials: the agreement under this seed. By default a fresh one for each trial: the agreement
        over public randomness too, which `AgreementEstimate.nu` needs.
    confidence : float
        Of the interval, in (0, 1).
    random_state : int
        Seed of the simulation.

    Raises
    ------
    BudgetError
        For more than 2**28 rows in all.

    Notes
    -----
    Trials are independent and agree with probability rho each, so the interval of Clopper and Pearson holds with the
    confidence stated, whatever the learner and the distribution are. A learner that is stable on a synthetic
    distribution need not be on the users'; privacy does not depend on it.

    Examples
    --------
    >>> from userdp.concepts import Thresholds
    >>> from userdp.stability import RepresentationLearner
    >>> def sampler(generator, rows):
    ...     x = generator.integers(1, 11, size=(rows, 1))
    ...     return x, (x[:, 0] > 6).astype(np.uint8)
    >>> estimate = measure_agreement(RepresentationLearner(Thresholds(10), gamma=100), sampler, m=50, trials=200)
    >>> estimate.probability.lower > 0.8
    True
    """
    check_kind(learner, StableLearner, "learner")
    if not callable(sampler):
        raise TypeError(f"sampler must be a callable (generator, rows); got {short_repr(sampler)}")
    check_kind(seed, (PublicSeed, type(None)), "seed", "a PublicSeed or None")
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1); got {short_repr(confidence)}")
    size, count = check_count(m, "m"), check_count(trials, "trials")
    if 2 * size * count > MAX_ROWS:
        raise BudgetError(f"{2 * size * count:,} rows in all, and at most {MAX_ROWS:,} are drawn; use fewer trials")
    generator = np.random.default_rng(random_state)
    step = 1 if seed is None else max(1, BLOCK // (2 * size))
    agreed = defaults = 0
    for first in range(0, count, step):
        pairs = min(step, count - first)
        trial_seed = PublicSeed(generator.bytes(32)) if seed is None else seed
        items = learner.items(_users(sampler, generator, 2 * pairs, size), trial_seed)
        agreed += sum(items[user] == items[user + 1] for user in range(0, 2 * pairs, 2))
        defaults += sum(item == learner.default for item in items)
    return AgreementEstimate(
        agreed=agreed,
        trials=count,
        defaults=defaults,
        probability=clopper_pearson(agreed, count, confidence),
        confidence=float(confidence),
    )


def _users(sampler: Sampler, generator: np.random.Generator, users: int, m: int) -> UserTable:
    X, labels = map(np.asarray, sampler(generator, users * m))
    if X.ndim != 2 or len(X) != users * m:
        raise ValueError(f"sampler must return X with shape ({users * m}, features); got {X.shape}")
    if labels.shape != (users * m,) or not np.all((labels == 0) | (labels == 1)):
        raise ValueError(f"sampler must return {users * m} labels 0 and 1")
    owners = np.repeat(np.arange(users, dtype=np.uint32), m)
    return UserTable(X, labels.astype(np.uint8), owners, users, m)


def stability_from_agreement(agreement: Delta, eta: Delta) -> Fraction:
    """How much of the public randomness is stable, from how often two users agree.

    Parameters
    ----------
    agreement : number in [0, 1]
        rho, the probability that two users of independent samples agree, over samples and public randomness; or a lower
        bound on it.
    eta : number in [0, 1)
        The stability asked for.

    Returns
    -------
    Fraction
        nu: with probability at least nu over the public randomness r, some hypothesis h_r is what a user gets with
        probability at least eta.

    Notes
    -----
    nu = 1 - (1 - rho) / max(1 - eta, 2 eta (1 - eta)), or 0, the best such bound for eta >= 1/2. Proof:
    docs/proofs/stability.md.

    Examples
    --------
    >>> stability_from_agreement("0.99", "0.9")
    Fraction(17, 18)
    """
    rho, threshold = parse_delta(agreement, "agreement"), parse_delta(eta, "eta")
    if threshold == 1:
        return Fraction(int(rho == 1))
    return max(Fraction(0), 1 - (1 - rho) / ((1 - threshold) * max(Fraction(1), 2 * threshold)))


def agreement_from_stability(eta: Delta, nu: Delta) -> Fraction:
    """How often two users agree at least, from (eta, nu)-pseudo-global stability: nu eta**2.

    Parameters
    ----------
    eta, nu : numbers in [0, 1]

    Examples
    --------
    >>> agreement_from_stability("0.9", "0.9")
    Fraction(729, 1000)
    """
    return parse_delta(nu, "nu") * parse_delta(eta, "eta") ** 2
