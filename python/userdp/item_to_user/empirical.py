"""How often an algorithm is stable under deletions, on data drawn from an assumed distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from userdp.algorithms.distributions import read_distribution
from userdp.algorithms.evaluation import pmf_error_of
from userdp.exact.numbers import Bounds, Delta, Epsilon, check_count, clopper_pearson, parse_delta, parse_level
from userdp.lddp import check_lddp
from userdp.runtime import Progress, progress_bar


@dataclass(frozen=True, kw_only=True)
class EmpiricalStability:
    """How often an algorithm was stable under deletions, on data drawn from one distribution.

    Attributes
    ----------
    samples, stable : int
        Datasets drawn, and those at which the algorithm is (deletions, epsilon, delta)-LDDP, decided exactly.
    probability : Bounds
        Clopper-Pearson interval for the probability of stability under this distribution.
    confidence : float
        Of the interval.
    n_users, deletions : int
    """

    samples: int
    stable: int
    probability: Bounds
    confidence: float
    n_users: int
    deletions: int

    @property
    def fraction(self) -> Fraction:
        """The observed fraction of stable datasets."""
        return Fraction(self.stable, self.samples)

    def __str__(self) -> str:
        return (
            f"stable on {self.stable} of {self.samples} datasets of {self.n_users} users with {self.deletions} "
            f"deleted: probability between {self.probability.lower:.4g} and {self.probability.upper:.4g} "
            f"(confidence {self.confidence:g})"
        )


def empirical_stability(
    algorithm: Any,
    *,
    distribution: Mapping[Any, Any],
    n_users: int,
    m: int,
    deletions: int,
    epsilon: Epsilon,
    delta: Delta,
    samples: int = 100,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Progress = None,
) -> EmpiricalStability:
    """How often an algorithm is stable under deletions when the data come from a given distribution.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        On datasets of n_users - deletions users, for instance a `SubsampledAlgorithm`.
    distribution : mapping
        From item to weight, exact; weights are divided by their sum. Public: an assumption, not the data.
    n_users, m, deletions : int
        Users, items of each, and users deleted, 0 <= deletions <= n_users.
    epsilon, delta : privacy parameters
        The LDDP level.
    samples : int
        Datasets to draw.
    confidence : float
        Of the interval, in (0, 1).
    random_state : int
        Seed of the simulation.
    progress : bool, callable or None
        See `userdp.audit.audit_user_level`.

    Returns
    -------
    EmpiricalStability
        A statement about usefulness under this distribution. Privacy never rests on it.

    Raises
    ------
    BudgetError
        From `userdp.lddp.check_lddp`, for too many deletion sets; from the algorithm, for too many subsamples.

    Notes
    -----
    `userdp.lddp.check_lddp` decides at each dataset, exactly and over all pairs of deletions. The interval is Clopper
    and Pearson's, in float64.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> noisy = AdditiveAlgorithm(
    ...     (0, 1), sum, lambda total, n: [Fraction(1 + total, 6), Fraction(5 - total, 6)], statistic_range=(0, 1)
    ... )
    >>> result = empirical_stability(
    ...     noisy, distribution={0: 1, 1: 1}, n_users=5, m=1, deletions=1, epsilon=LogRatio(3, 2), delta=0
    ... )
    >>> result.probability.lower < 22 / 32 < result.probability.upper  # stable at 0, 2, 3 or 5 ones
    True
    """
    if pmf_error_of(algorithm) > 0:
        raise ValueError("algorithm declares a pmf_error; stability is decided on exact masses")
    users, per_user, removed = (
        check_count(n_users, "n_users"),
        check_count(m, "m"),
        check_count(deletions, "deletions", 0),
    )
    if removed > users:
        raise ValueError(f"deletions must be at most n_users = {users}; got {removed}")
    if not isinstance(distribution, Mapping):
        raise TypeError(f"distribution must be a mapping from item to weight; got {type(distribution).__name__}")
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1); got {confidence!r}")
    items, count = read_distribution(distribution, None, "distribution"), check_count(samples, "samples")
    parse_level(epsilon), parse_delta(delta)
    source, stable = Random(random_state), 0
    with progress_bar(progress, "drawing datasets") as callback:
        for done in range(count):
            drawn = items.sample(source, users * per_user)
            dataset = [tuple(drawn[start : start + per_user]) for start in range(0, len(drawn), per_user)]
            found = check_lddp(algorithm, dataset, r=removed, epsilon=epsilon, delta=delta, progress=False)
            stable += bool(found)
            callback(done + 1, count)
    return EmpiricalStability(
        samples=count,
        stable=stable,
        probability=clopper_pearson(stable, count, confidence),
        confidence=confidence,
        n_users=users,
        deletions=removed,
    )
