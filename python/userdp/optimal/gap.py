"""How far a finite algorithm is from the best that its privacy allows, in a small world."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.algorithms.finite import Dataset, evaluate_datasets, is_symmetric, outputs_of, pmf_error_of
from userdp.audit import audit_user_level
from userdp.exact.numbers import Delta, Epsilon, nearest_float, short_repr
from userdp.exact.pmf import fractions_of
from userdp.optimal.mechanism import Loss, optimal_mechanism
from userdp.optimal.worlds import MOST_CONSTRAINTS, datasets_of, types_of
from userdp.report import OptimalityCertificate


@dataclass(frozen=True)
class OptimalityGap:
    """What an algorithm loses beside the best that its privacy allows; made by `optimality_gap`.

    Attributes
    ----------
    value : Fraction
        The algorithm's largest expected loss over all datasets; with a `pmf_error`, an upper bound of it.
    lower_bound : Fraction
        What every mechanism with the same privacy loses at least on some dataset.
    dataset : tuple
        A dataset on which the algorithm loses most.
    certificate : OptimalityCertificate
        The proof of `lower_bound`, with a mechanism that is as good.
    """

    value: Fraction
    lower_bound: Fraction
    dataset: Dataset
    certificate: OptimalityCertificate

    @property
    def ratio(self) -> float:
        """The algorithm is within this factor of the best; 1 for two losses of 0, inf above a bound of 0."""
        if self.value == 0:
            return 1.0
        return nearest_float(self.value / self.lower_bound) if self.lower_bound > 0 else float("inf")


def optimality_gap(
    algorithm: Any,
    loss: Loss,
    *,
    universe: Iterable[Hashable],
    n_users: int,
    n_examples: int = 1,
    epsilon: Epsilon,
    delta: Delta = 0,
    symmetries: Any = "auto",
    max_constraints: int = MOST_CONSTRAINTS,
) -> OptimalityGap:
    """Compare an algorithm's worst loss with the least that any mechanism with its privacy has, certified.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        Such as `userdp.estimators.as_finite_algorithm` of a learner. It is asked for its distribution on every dataset
        of the world.
    loss : callable
        ``(dataset, output) -> number``, as for `optimal_mechanism`; outputs are the algorithm's.
    universe, n_users, n_examples
        The world, as for `optimal_mechanism`.
    epsilon, delta : privacy parameters
        Those that the algorithm promises. It is audited first: at a level at which it is not private in this world, the
        bound would be about other mechanisms.
    symmetries, max_constraints
        As for `optimal_mechanism`.

    Returns
    -------
    OptimalityGap

    Raises
    ------
    ValueError
        When the algorithm is not (epsilon, delta)-DP in this world, and for what `optimal_mechanism` refuses.
    BudgetError
        For worlds that are too large.

    Notes
    -----
    The bound is about this number of users, and about the worst dataset. It says nothing of how accuracy grows with the
    number of users.

    Examples
    --------
    >>> from userdp import LogRatio, SymmetricAlgorithm
    >>> coin = SymmetricAlgorithm((0, 1), lambda dataset: ["3/4", "1/4"] if dataset[0][0] == 0 else ["1/4", "3/4"])
    >>> found = optimality_gap(
    ...     coin, lambda dataset, output: int(dataset[0][0] != output), universe=(0, 1), n_users=1, epsilon=LogRatio(3)
    ... )
    >>> found.ratio
    1.0
    """
    members = tuple(universe) if isinstance(universe, Iterable) and not isinstance(universe, (str, bytes)) else universe
    outputs, error = outputs_of(algorithm), pmf_error_of(algorithm)
    best = optimal_mechanism(
        loss,
        universe=members,
        outputs=outputs,
        n_users=n_users,
        n_examples=n_examples,
        epsilon=epsilon,
        delta=delta,
        symmetries=symmetries,
        max_constraints=max_constraints,
    )
    report = audit_user_level(
        algorithm, universe=best.universe, n_users=n_users, n_examples=n_examples, epsilon=epsilon, delta=delta
    )
    if report.holds is not True:
        raise ValueError(
            f"epsilon={short_repr(epsilon)} and delta={short_repr(delta)}: the algorithm is not shown to be private at "
            "this level in this world, so that the bound would not be about it; accepted: the level that it promises"
        )
    if not is_symmetric(algorithm):
        raise ValueError(
            "algorithm must be one that depends on the multiset of users only, such as a SymmetricAlgorithm; got "
            f"{type(algorithm).__name__}"
        )
    types = types_of(len(best.universe), n_examples)
    datasets = [
        tuple(tuple(best.universe[place] for place in types[kind]) for kind in kinds)
        for kinds in datasets_of(len(types), n_users)
    ]
    found = evaluate_datasets(algorithm, outputs, datasets, len(datasets), lambda done, total: None)
    pmfs = [fractions_of(masses) for masses in found.masses]
    losses = best.certificate.world["losses"]
    worst, place = max(
        (sum((mass * Fraction(part) for mass, part in zip(pmfs[index], losses[at], strict=True)), Fraction(0)), -at)
        for at, index in enumerate(found.index_of)
    )
    return OptimalityGap(worst * (1 + error), best.lower_bound, datasets[-place], best.certificate)
