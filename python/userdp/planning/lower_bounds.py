"""What no mechanism can do better, and how much heterogeneous users cost.

Statements and proofs: docs/proofs/lower_bounds.md. Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from userdp.exact.numbers import Delta, Epsilon, check_count, parse_delta, parse_positive, short_repr, within_floats
from userdp.planning.bounds import Known, LowerBound, error_at_least, known_for, users_at_least
from userdp.planning.problem import Bound, Parameter, Problem
from userdp.planning.tasks import ALL_TASKS


def lower_bound(
    task: str,
    *,
    n_users: int | None = None,
    alpha: Delta | None = None,
    beta: Delta | None = None,
    epsilon: Epsilon,
    delta: Delta = 0,
    m: int = 1,
    **parameters: Any,
) -> LowerBound:
    """What no user-level private algorithm does: an error for n_users, or a number of users for an accuracy.

    Parameters
    ----------
    task : str
        With n_users, the least error of "testing" (to tell two distributions apart that one record tells apart, by a
        number in [0, 1]), "mean", "finite-class" (to choose the best of finitely many hypotheses) or "sco" (to minimize
        the expected loss over the L2 ball of a radius).

        With alpha, the least number of users for "mean", "count", "sum", "group_by", "quantile", "threshold", "pac",
        "agnostic", "hypothesis-selection", "finite-class", "discrete", "product", "gaussian-mean", "gaussian",
        "regression", "sco", "selection" or "finite".
    n_users : int, optional
        n >= 1. Either this or alpha is given.
    alpha : float, int, Fraction or decimal string, optional
        The accuracy, > 0: L2 distance for means; excess risk or error for learners, regression and sco; total variation
        for distributions; a share of the n users for counts, and of the n users times the width of the bounds for sums;
        a share of the distribution between the answer and the quantile. "selection" and "finite" have none.
    beta : float, int, Fraction or decimal string, optional
        In (0, 1): how often the answer may be worse than alpha. Without it, for "mean" the root mean square error is at
        most alpha, and for "finite-class" and "sco" the expected excess risk.
    epsilon, delta : privacy parameters
        Epsilon > 0. For users; neighbors replace one.
    m : int
        Records of each user. Terms called "few users" do not depend on it: few users stay few.
    **parameters
        Public numbers of the task:

        * `max_norm`: B: the largest L2 norm of a record for "mean", and of features for "regression".
        * `max_loss`: B, for "finite-class": the largest absolute value of a loss.
        * `lipschitz`: G, for "sco": the largest L2 norm of a gradient.
        * `n_hypotheses`: K, for "finite-class" and "hypothesis-selection". For "pac" and "agnostic" in place of
          vc_dimension: learners that work for every class of so many hypotheses.
        * `dimension`, `sigma`: d: columns of records. And the sub-Gaussian constant of gradients, for the second term
          of "sco" at n_users.
        * `radius`: R of the ball of parameters, for "sco" and "regression".
        * `norm`: For "mean": whether max_norm bounds the L2 norm of a record, or each column.
        * `vc_dimension`: For "pac" and "agnostic": so many points are shattered.
        * `prdim`: For "pac" and "agnostic", instead or beside: a lower bound of the probabilistic representation
          dimension for (alpha, 1/4), to base 2, such as of `userdp.dimensions.representation_dimension_bounds`.
        * `n_told_apart`: For "finite": how many distributions there are for which no answer is good twice.
        * `kl`, `tv`: For "finite": as for `fano_users`.
        * `item_users`: For "finite": how many users are needed with one record each, as for `users_from_item_level`.
        * `domain_size`: N: values on the grid for "quantile", or points 1, ..., N for "threshold".
        * `share`: For "quantile": which one, in (0, 1).
        * `n_symbols`: k, for "discrete", and of each of the d columns for "product".
        * `mean_bound`: R, for "gaussian-mean" and "gaussian": of the norm of the mean, in standard deviations.
        * `kappa`: For "gaussian": covariances are from I to kappa I.
        * `n_items`, `agreement`: For "selection": each of the users has one item, and the common one with this
          probability in (1/2, 1].
        * `certified`: For "selection": also solve for certified optima of small worlds, by `selection_users`, which
          takes seconds to minutes.
        * `n_keys`, `max_keys`: For "group_by": groups, and in how many of them a user counts at most, by default in
          all.
        * `neighbors`: For counts, sums and "group_by"; by default "add-remove", as of `userdp.tables.Session`.
        * `model`: For "regression": losses (s - y)^2 / 2 and ln(1 + e^(-y s)) of a prediction s.
        * `target_bound`: For linear "regression": the largest absolute value of a target.

    Returns
    -------
    LowerBound
        For n_users with the terms, where they apply, of

        * few users: [LSAKKMS21, Theorem 8], "as printed", with the "group" delta in place of n e^(n epsilon) delta, and
          "sharper": the exact least error of the test when delta is 0. Times 4 B^2 for the mean squared error of a
          mean, and times 2 G R for an excess risk.
        * "statistical" and "private" of "finite-class": [LSAKKMS21, Theorem 7] with repaired constants, for pure
          privacy.
        * "private, cited" of "sco", with `sigma`: [LSAKKMS21, Theorem 5] with another condition than that of
          [LSAKKMS21, Lemma 3], which is false. It is not counted in `value`: it rests on a lemma that is cited in a
          form nobody proves.

        For alpha with the terms, where they say something, of

        * "few users": whatever m is, by group privacy of all users.
        * "private": by how little the m records of a user say, [GKKMMZ23, Lemma 39] and packings.
        * "sampling": also without privacy.
        * "representation": [GKM21, Lemma 4]; "one record each": [GKKMMZ23, Observation 28]; "certified optimum".

    Raises
    ------
    TypeError
        When both n_users and alpha are given, or neither, or what a task needs is missing, or what it does not take is
        given.
    ValueError
        For tasks and numbers out of range, and for "finite-class" at n_users with delta > 0, for which the theorem is
        not proved.

    Notes
    -----
    A number of users is a statement about algorithms that are this accurate for *all* distributions of the class that
    `holds_for` names, when users' records are drawn independently from one of them. A method that is better on one
    distribution does not contradict it. Rounded down where it is not exact; 1 user, or an error of 0, says nothing.
    Packings and proofs: docs/proofs/lower_bounds.md.

    References
    ----------
    [LSAKKMS21, Theorem 5], [LSAKKMS21, Theorem 7] and [LSAKKMS21, Theorem 8].

    Examples
    --------
    >>> least = lower_bound("mean", n_users=5, epsilon=0.5, max_norm=1)
    >>> [(name, round(value, 4)) for name, value in least.terms.items()]
    [('few users, as printed', 0.0759), ('few users, group', 0.0759), ('few users, sharper', 0.2804)]
    >>> least.measures
    'mean squared error'
    >>> least = lower_bound("agnostic", alpha=0.05, beta="0.1", m=16, epsilon=0.5, vc_dimension=10)
    >>> least.n_users, least.obstacle
    (33, 'private')
    >>> lower_bound("pac", alpha=0.05, beta="0.1", epsilon=8, vc_dimension=1).vacuous
    True
    """
    stated = {name: each.bound for name, each in ALL_TASKS.items() if each.bound is not None}
    if not isinstance(task, str) or task not in stated:
        raise ValueError(f"task must be one of {', '.join(map(repr, stated))}; got {short_repr(task)}")
    if n_users is not None and alpha is not None:
        raise TypeError(
            "n_users and alpha are both given; n_users asks for the least error, alpha for the least number of users"
        )
    bound = stated[task]
    given = {name: value for name, value in parameters.items() if value is not None}
    if alpha is None and (n_users is not None or bound.has_alpha):
        if n_users is None:
            raise TypeError("n_users or alpha is needed: the one asks for an error, the other for a number of users")
        if bound.error is None:
            known = ", ".join(repr(name) for name, each in stated.items() if each.error is not None)
            raise ValueError(
                f"task must be one of {known} for the error at n_users; got {short_repr(task)}, for which alpha asks "
                "for the number of users"
            )
        if beta is not None:
            raise TypeError("beta goes with alpha; errors at n_users are expected ones")
        _check_known(task, given, bound.error_parameters, stated, "n_users")
        return error_at_least(task, bound, n_users=n_users, epsilon=epsilon, delta=delta, m=m, given=given)
    if bound.terms is None:
        known = ", ".join(repr(name) for name, each in stated.items() if each.terms is not None)
        raise ValueError(
            f"task must be one of {known} for a number of users; got {short_repr(task)}, for which n_users asks for "
            "the error"
        )
    _check_known(task, given, bound.parameters, stated, "alpha")
    return users_at_least(task, bound, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta, m=m, given=given)


def _check_known(
    task: str, given: Mapping[str, Any], takes: Sequence[Parameter], stated: Mapping[str, Bound], asked: str
) -> None:
    """Refuse what the bound of a task does not take, with the tasks that do."""
    for name in given:
        if name in {each.name for each in takes}:
            continue
        of_users = [other for other, each in stated.items() if name in {known.name for known in each.parameters}]
        of_errors = [other for other, each in stated.items() if name in {known.name for known in each.error_parameters}]
        if not of_users and not of_errors:
            raise TypeError(f"{name} is no parameter of a lower bound; got {short_repr(given[name])}")
        if asked == "n_users" and not of_errors:
            raise TypeError(f"{name} goes with alpha, and not with n_users")
        where = f"of {', '.join(map(repr, of_users))}" if of_users else "of the error at n_users"
        raise TypeError(f"{name} is {where}, and not of task={task!r}")


@lru_cache(maxsize=1024)
def bound_of(problem: Problem) -> Known:
    """A number of people below which no method can do, or why none is known; and what it is about."""
    task = ALL_TASKS[problem.task]
    return known_for(task, problem) if task.hard is None else task.hard(problem)


MOST_RECORDS = 10**300
"""Beyond them numbers are no floats."""


@dataclass(frozen=True)
class HeterogeneityBound:
    """Bounds of the expected excess loss for every user; made by `heterogeneity_bound`.

    Attributes
    ----------
    paper : float
        L + B (m n + 2) Delta.
    sharper : float
        L + B (1 - (1 - Delta)^(m n) + 2 Delta): never above `paper`, and never above L + B (1 + 2 Delta).
    """

    paper: float
    sharper: float


def heterogeneity_bound(
    excess: float, *, n_users: int, m: int, distance: Delta, max_loss: float = 1.0
) -> HeterogeneityBound:
    """The expected excess loss for every user, when users' distributions differ a little from a common one.

    Parameters
    ----------
    excess : float
        L >= 0: the expected excess loss that the algorithm is known to have when all records of all users are drawn
        from one distribution.
    n_users, m : int
        Users, and records of each.
    distance : number in [0, 1]
        Delta: every user's distribution is within this total variation of the common one. Public: an assumption.
    max_loss : float
        B: losses are in [0, B].

    Returns
    -------
    HeterogeneityBound
        For the loss of each user against the best for that user.

    Warns
    -----
    The bound is of use for differences below 1/(m n) only: nothing says that the algorithms are good for users who
    differ more. Privacy never rests on it. See docs/planning.md.

    Notes
    -----
    Proof. Records of a user and of the common distribution can be coupled to be equal with probability 1 - Delta,
    independently for all m n records; so the two data sets are equal but for probability 1 - (1 - Delta)^(m n), and
    what the algorithm returns with them. Where they are not, the loss differs by at most B. The loss of any parameter
    under a user's distribution and under the common one differ by at most B Delta, twice: for what was returned, and
    for the best.

    References
    ----------
    [LSAKKMS21, Theorem 9].

    Examples
    --------
    >>> bound = heterogeneity_bound(0.1, n_users=100, m=10, distance=0.0001)
    >>> round(bound.paper, 4), round(bound.sharper, 4)
    (0.2002, 0.1954)
    """
    try:
        risk = float(excess)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"excess must be a number >= 0; got {short_repr(excess)}") from None
    if not 0 <= risk < math.inf:
        raise ValueError(f"excess must be a finite number >= 0; got {short_repr(excess)}")
    rows = check_count(n_users, "n_users") * check_count(m, "m")
    if rows > MOST_RECORDS:
        raise ValueError(
            f"n_users * m must be at most {MOST_RECORDS:.0e}; got {short_repr(n_users)} and {short_repr(m)}"
        )
    shift = float(parse_delta(distance, "distance"))
    size = within_floats(parse_positive(max_loss, "max_loss"), "max_loss")
    differ = 1.0 if shift == 1 else -math.expm1(rows * math.log1p(-shift))
    return HeterogeneityBound(risk + size * (rows + 2) * shift, risk + size * (differ + 2 * shift))
