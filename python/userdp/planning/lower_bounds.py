"""What no mechanism can do better, and how much heterogeneous users cost.

Statements and proofs: docs/proofs/lower_bounds.md. Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from userdp import _core
from userdp.accounting import group_privacy
from userdp.dimensions import users_implied
from userdp.display import Fact, Section, Shown
from userdp.exact.epsilon import as_epsilon, core_level, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    PrivacyLevel,
    check_count,
    open_unit_fraction,
    open_unit_interval,
    parse_delta,
    parse_exact,
    parse_level,
    parse_positive,
    round_down,
    short_repr,
    within_floats,
)
from userdp.planning import packings
from userdp.planning.fano import MOST_USERS, Level, fano_users, users_from_item_level
from userdp.planning.hard_tasks import (
    FANO,
    Term,
    expected,
    finite_class_terms,
    group_terms,
    larger,
    mean_terms,
    merged,
    packed,
    two_items_users,
)
from userdp.planning.packings import Packing
from userdp.planning.selections import selection_users

Number = TypeVar("Number", int, Fraction)

TASKS = ("testing", "mean", "finite-class", "sco")
"""Those with an error at a number of users."""
LARGEST = 1e100
POWER_BITS = 2**16
VANISHES = 750
"""e^-750 is below half of the smallest float."""

LARGEST_GAP = 0.85
"""Distributions of the packing are further apart than their divergence allows for, from 0.858 on."""
CLIPPED = 1.6e-24
"""Twice E(g - 10)_+ of a standard normal g, and more: what clipping moves, in standard deviations of a column."""
LEAST_ALPHA = 1e-9
"""Packings of smaller accuracies would be closer than floats can tell."""
LARGEST_PRDIM = 2**12
MOST_ROWS = 2**53
"""More records of a user count as so many: that is a bound for fewer, which would need no fewer users."""

IN_A_BALL = "all estimates of the mean of all distributions in the ball (or in the cube, for norm='max')"
COUNTED = "all releases of such counts or sums of all datasets of n users, at any n"
LABELS = "all learners, of any hypotheses, of all distributions of examples"
WITHIN = "all learners, of any distribution, of all distributions"


@dataclass(frozen=True)
class Task:
    """What a task needs besides privacy and accuracy, and what its bound is about."""

    holds_for: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    mean: bool = False
    """Whether an expected error can be asked for."""


USER_TASKS = {
    "mean": Task(IN_A_BALL, mean=True),
    "count": Task(COUNTED, takes=("neighbors",)),
    "sum": Task(COUNTED, takes=("neighbors",)),
    "group_by": Task(COUNTED, ("n_keys",), ("max_keys", "neighbors")),
    "quantile": Task("all releases of a value of the grid, of all distributions on it", ("domain_size",)),
    "threshold": Task(
        "all learners that answer with a threshold, of all distributions of labeled points", ("domain_size",)
    ),
    "pac": Task(f"{LABELS} that a concept of the class labels", takes=("vc_dimension", "prdim", "n_hypotheses")),
    "agnostic": Task(f"{LABELS} and labels", takes=("vc_dimension", "prdim", "n_hypotheses")),
    "hypothesis-selection": Task(
        "all selections that work for every family of so many candidates, when the truth is one of them",
        ("n_hypotheses",),
    ),
    "finite-class": Task(
        "all choices of a hypothesis that work for every class of so many of them, with losses in [-max_loss, "
        "max_loss]",
        ("n_hypotheses",),
        mean=True,
    ),
    "discrete": Task(f"{WITHIN} on so many symbols", ("n_symbols",)),
    "product": Task(f"{WITHIN} that are products of so many columns of symbols", ("n_symbols",)),
    "gaussian-mean": Task(f"{WITHIN} that are normal with covariance 1 and a mean in the ball", ("mean_bound",)),
    "gaussian": Task(
        f"{WITHIN} that are normal with a mean in the ball and a covariance from I to kappa I", ("mean_bound", "kappa")
    ),
    "regression": Task("all learners of parameters, of all distributions of features and targets within the bounds"),
    "sco": Task(
        "all learners of parameters in the ball that work for every convex loss with such gradients, of all "
        "distributions of records",
        mean=True,
    ),
    "selection": Task(
        "all selections, whatever items those who do not have the common one have", ("n_items", "agreement")
    ),
    "finite": Task(
        "all algorithms that solve the task for all the distributions that are told apart",
        takes=("n_told_apart", "kl", "tv", "item_users"),
    ),
}
WITHOUT_ALPHA = ("selection", "finite")
ALL_TASKS = (*TASKS, *(task for task in USER_TASKS if task not in TASKS))
TASK_ARGUMENTS = {name for task in USER_TASKS.values() for name in (*task.needs, *task.takes)} | {"sigma"}
"""Those that are None where they are not given."""


@dataclass(frozen=True)
class LowerBound(Shown):
    """A lower bound; made by `lower_bound`.

    Attributes
    ----------
    task : str
    value : float
        The largest of the terms that are proved with all their constants: an error, 0 when none applies, or a number of
        users, at least 1.
    measures : str
        What is at least `value`; "users" where an accuracy was given.
    terms : mapping from str to float
        The parts, by name; those whose side conditions fail, or that say nothing, are absent.
    n_users : int or None
        The number of users that every private algorithm needs at least, where an accuracy was given.
    sources : mapping from str to str
        Which theorem each term is by, and on which distributions.
    holds_for : str
        Which algorithms the bound is about, and which distributions it is over.
    """

    task: str
    value: float
    measures: str
    terms: Mapping[str, float]
    n_users: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    holds_for: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: no error, or a single user."""
        return self.value <= (0 if self.n_users is None else 1)

    @property
    def obstacle(self) -> str | None:
        """The name of the term that is `value`; None for a bound that is vacuous."""
        return next((name for name, term in self.terms.items() if term == self.value and not self.vacuous), None)

    def summary(self) -> str:
        """What it says, in a line for the bound and one for each term."""
        if self.vacuous:
            return f"{self.task}: vacuous, no bound is proved for these numbers"
        if self.n_users is None:
            lines = [f"{self.task}: {self.measures} of at least {self.value:.4g}"]
        else:
            lines = [f"{self.task}: at least {self.n_users:,} users"]
        for name, term in self.terms.items():
            mark = " (the obstacle)" if name == self.obstacle else ""
            source = f": {self.sources[name]}" if name in self.sources else ""
            lines.append(f"  {name} {term:,.6g}{mark}{source}")
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"term": name, "value": term, "measures": self.measures, "source": self.sources.get(name, "")}
            for name, term in self.terms.items()
        ]

    def _sections(self) -> Sequence[Section]:
        first, *rest = self.summary().splitlines()
        facts = [Fact(name, f"{term:,.6g}") for name, term in self.terms.items()]
        return [Section(f"Lower bound: {first}", facts=[("", facts)] if rest else [])]


def lower_bound(
    task: str,
    *,
    n_users: int | None = None,
    alpha: Delta | None = None,
    beta: Delta | None = None,
    epsilon: Epsilon,
    delta: Delta = 0,
    m: int = 1,
    max_norm: float = 1.0,
    max_loss: float = 1.0,
    lipschitz: float = 1.0,
    n_hypotheses: int | None = None,
    dimension: int = 1,
    sigma: float | None = None,
    radius: float = 1.0,
    norm: Literal["l2", "max"] = "l2",
    vc_dimension: int | None = None,
    prdim: Delta | None = None,
    n_told_apart: int | None = None,
    kl: Delta | None = None,
    tv: Delta | None = None,
    item_users: int | None = None,
    domain_size: int | None = None,
    share: Delta = "1/2",
    n_symbols: int | None = None,
    mean_bound: float | None = None,
    kappa: float | None = None,
    n_items: int | None = None,
    agreement: float | Fraction | str | None = None,
    certified: bool = False,
    n_keys: int | None = None,
    max_keys: int | None = None,
    neighbors: Neighbors | None = None,
    model: str = "linear",
    target_bound: float = 1.0,
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
    max_norm : float
        B: the largest L2 norm of a record for "mean", and of features for "regression".
    max_loss : float
        B, for "finite-class": the largest absolute value of a loss.
    lipschitz : float
        G, for "sco": the largest L2 norm of a gradient.
    n_hypotheses : int
        K, for "finite-class" and "hypothesis-selection". For "pac" and "agnostic" in place of vc_dimension: learners
        that work for every class of so many hypotheses.
    dimension, sigma : int, float
        d: columns of records. And the sub-Gaussian constant of gradients, for the second term of "sco" at n_users.
    radius : float
        R of the ball of parameters, for "sco" and "regression".
    norm : {"l2", "max"}
        For "mean": whether max_norm bounds the L2 norm of a record, or each column.
    vc_dimension : int
        For "pac" and "agnostic": so many points are shattered.
    prdim : float, int, Fraction or decimal string
        For "pac" and "agnostic", instead or beside: a lower bound of the probabilistic representation dimension for
        (alpha, 1/4), to base 2, such as of `userdp.dimensions.representation_dimension_bounds`.
    n_told_apart : int
        For "finite": how many distributions there are for which no answer is good twice.
    kl, tv : float
        For "finite": as for `fano_users`.
    item_users : int
        For "finite": how many users are needed with one record each, as for `users_from_item_level`.
    domain_size : int
        N: values on the grid for "quantile", or points 1, ..., N for "threshold".
    share : fraction
        For "quantile": which one, in (0, 1).
    n_symbols : int
        k, for "discrete", and of each of the d columns for "product".
    mean_bound : float
        R, for "gaussian-mean" and "gaussian": of the norm of the mean, in standard deviations.
    kappa : float
        For "gaussian": covariances are from I to kappa I.
    n_items : int
    agreement : float, int, Fraction or decimal string
        For "selection": each of the users has one item, and the common one with this probability in (1/2, 1].
    certified : bool
        For "selection": also solve for certified optima of small worlds, by `selection_users`, which takes seconds to
        minutes.
    n_keys, max_keys : int
        For "group_by": groups, and in how many of them a user counts at most, by default in all.
    neighbors : {"add-remove", "replace"}, optional
        For counts, sums and "group_by"; by default "add-remove", as of `userdp.tables.Session`.
    model : {"linear", "logistic"}
        For "regression": losses (s - y)^2 / 2 and ln(1 + e^(-y s)) of a prediction s.
    target_bound : float
        For linear "regression": the largest absolute value of a target.

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
    if task not in ALL_TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, ALL_TASKS))}; got {short_repr(task)}")
    given = dict(locals())
    if n_users is not None and alpha is not None:
        raise TypeError(
            "n_users and alpha are both given; n_users asks for the least error, alpha for the least number of users"
        )
    if alpha is None and (n_users is not None or task not in WITHOUT_ALPHA):
        if n_users is None:
            raise TypeError("n_users or alpha is needed: the one asks for an error, the other for a number of users")
        if task not in TASKS:
            raise ValueError(
                f"task must be one of {', '.join(map(repr, TASKS))} for the error at n_users; got {short_repr(task)}, "
                "for which alpha asks for the number of users"
            )
        if beta is not None:
            raise TypeError("beta goes with alpha; errors at n_users are expected ones")
        if unused := [name for name in _given(given) if name not in ("n_hypotheses", "sigma")]:
            raise TypeError(f"{unused[0]} goes with alpha, and not with n_users")
        return _error_at(
            task,
            n_users=n_users,
            epsilon=epsilon,
            delta=delta,
            m=m,
            max_norm=max_norm,
            max_loss=max_loss,
            lipschitz=lipschitz,
            n_hypotheses=n_hypotheses,
            dimension=dimension,
            sigma=sigma,
            radius=radius,
        )
    return _users_for(task, alpha, beta, epsilon, delta, check_count(m, "m"), given)


def _given(arguments: Mapping[str, Any]) -> list[str]:
    """Which arguments that only some tasks take are given."""
    return [name for name in arguments if name in TASK_ARGUMENTS and arguments[name] is not None]


def _users_for(
    task: str, alpha: Any, beta: Any, epsilon: Epsilon, delta: Delta, m: int, given: Mapping[str, Any]
) -> LowerBound:
    """The number of users for an accuracy."""
    if task not in USER_TASKS:
        raise ValueError(
            f"task must be one of {', '.join(map(repr, USER_TASKS))} for a number of users; got {short_repr(task)}, "
            "for which n_users asks for the error"
        )
    spec = USER_TASKS[task]
    for name in spec.needs:
        if given[name] is None:
            raise TypeError(f"{name} is needed for task={task!r}")
    if unused := [name for name in _given(given) if name not in (*spec.needs, *spec.takes)]:
        takers = [other for other, found in USER_TASKS.items() if unused[0] in (*found.needs, *found.takes)]
        where = f"of {', '.join(map(repr, takers))}" if takers else "of the error at n_users"
        raise TypeError(f"{unused[0]} is {where}, and not of task={task!r}")
    level = Level.of(epsilon, delta)
    if task in WITHOUT_ALPHA:
        if alpha is not None:
            raise TypeError(f"alpha is not of task={task!r}, where answers are right or wrong: beta says how often")
        accuracy = 0.0
    else:
        accuracy = _accuracy(alpha, task)
    failure = None if beta is None else open_unit_interval(beta, "beta")
    if failure is None and not spec.mean:
        raise TypeError(f"beta is needed for task={task!r}: how often the answer may be worse")
    found = _terms(task, accuracy, failure, level, min(m, MOST_ROWS), epsilon, delta, given)
    terms = {name: float(term.users) for name, term in sorted(found.items(), key=lambda item: -item[1].users)}
    users = max((term.users for term in found.values()), default=1)
    sources = {name: found[name].source for name in terms}
    return LowerBound(task, float(users), "users", terms, users, sources, spec.holds_for)


SHARES = {"count", "sum", "group_by", "quantile", "threshold", "pac", "agnostic", "hypothesis-selection"} | {
    "discrete",
    "product",
    "gaussian-mean",
    "gaussian",
}
"""Tasks whose accuracies are probabilities or shares."""


def _accuracy(alpha: Any, task: str) -> float:
    exact = parse_positive(alpha, "alpha")
    if task in SHARES and exact >= 1:
        raise ValueError(f"alpha must be below 1 for task={task!r}, where it is a share; got {short_repr(alpha)}")
    value = float(_size(exact, "alpha"))
    if value < LEAST_ALPHA:
        raise ValueError(f"alpha must be at least {LEAST_ALPHA}; got {short_repr(alpha)}")
    return value


def _real(given: Mapping[str, Any], name: str) -> float:
    return float(_size(parse_positive(given[name], name), name))


def _word(given: Mapping[str, Any], name: str, *accepted: str) -> None:
    if not isinstance(given[name], str) or given[name] not in accepted:
        raise ValueError(f"{name} must be {' or '.join(map(repr, accepted))}; got {short_repr(given[name])}")


def _count(given: Mapping[str, Any], name: str, least: int = 1, most: int = 2**64) -> int:
    number = check_count(given[name], name, least)
    if number > most:
        raise ValueError(f"{name} must be at most {most}; got {short_repr(number)}")
    return number


def _terms(
    task: str,
    alpha: float,
    beta: float | None,
    level: Level,
    m: int,
    epsilon: Epsilon,
    delta: Delta,
    given: Mapping[str, Any],
) -> dict[str, Term]:
    """The terms of a number of users."""
    d = _count(given, "dimension", most=MOST_COLUMNS)
    if task == "mean":
        _word(given, "norm", "l2", "max")
        cube = given["norm"] == "max"
        size = _real(given, "max_norm") * (math.sqrt(d) if cube else 1.0)
        return mean_terms(d, size, alpha, beta, m, level, cube=cube)
    if task == "finite-class":
        k, bound = _count(given, "n_hypotheses", 2), _real(given, "max_loss")
        if beta is not None:
            return packed(packings.finite_losses(k, alpha, bound, m), level, beta)
        terms = expected(lambda accuracy: packings.finite_losses(k, accuracy, bound, m), level, alpha)
        if not level.delta:
            terms = merged(terms, finite_class_terms(k, alpha, m, level.rate, bound, LARGEST_GAP))
        return terms
    if task == "sco":
        scale = _real(given, "lipschitz") * _real(given, "radius")
        if beta is not None:
            return packed(packings.linear_losses(d, alpha, scale, m), level, beta)
        return expected(lambda accuracy: packings.linear_losses(d, accuracy, scale, m), level, alpha)
    assert beta is not None
    if task in ("count", "sum", "group_by"):
        keys = _count(given, "n_keys") if task == "group_by" else 1
        most = keys if given["max_keys"] is None else min(keys, _count(given, "max_keys"))
        if given["neighbors"] is not None:
            _word(given, "neighbors", "add-remove", "replace")
        return group_terms(keys, most, alpha, beta, level, replace=given["neighbors"] == "replace")
    if task == "selection":
        return _selection(_count(given, "n_items", 2), beta, level, epsilon, delta, given)
    if task == "finite":
        return _finite(beta, level, m, epsilon, delta, given)
    found = packed(_packings(task, alpha, m, d, given), level, beta)
    if given["prdim"] is not None:
        found = merged(found, _representation(given["prdim"], beta, epsilon, delta))
    return found


MOST_COLUMNS = 2**20


def _packings(task: str, alpha: float, m: int, d: int, given: Mapping[str, Any]) -> Iterable[Packing]:
    """The packings of tasks that are told apart by packings alone."""
    if task in ("pac", "agnostic"):
        family = packings.realizable if task == "pac" else packings.agnostic
        if given["vc_dimension"] is not None:
            return family(_count(given, "vc_dimension", most=MOST_COLUMNS), alpha, m)
        if given["n_hypotheses"] is not None:
            # Some class of so many has all labels of log2 of them points.
            return family(_count(given, "n_hypotheses", 2).bit_length() - 1, alpha, m)
        if given["prdim"] is None:
            raise TypeError(f"vc_dimension, n_hypotheses or prdim is needed for task={task!r}")
        return ()
    if task == "threshold":
        return packings.thresholds(_count(given, "domain_size"), alpha, m)
    if task == "quantile":
        share = open_unit_interval(given["share"], "share")
        return packings.quantiles(_count(given, "domain_size", 2), share, alpha, m)
    if task == "hypothesis-selection":
        return packings.hypotheses(_count(given, "n_hypotheses", 2), alpha, m)
    if task == "discrete":
        return packings.discrete(_count(given, "n_symbols", 2, MOST_COLUMNS), alpha, m)
    if task == "product":
        k = _count(given, "n_symbols", 2, MOST_COLUMNS)
        if k * d > MOST_COLUMNS:
            raise ValueError(f"n_symbols * dimension must be at most {MOST_COLUMNS}; got {k} and {d}")
        return packings.product(k, d, alpha, m)
    if task == "gaussian-mean":
        return packings.gaussian_means(d, _real(given, "mean_bound"), alpha, m)
    if task == "gaussian":
        kappa = _real(given, "kappa")
        if kappa < 1:
            raise ValueError(f"kappa must be at least 1; got {short_repr(given['kappa'])}")
        return packings.gaussians(d, _real(given, "mean_bound"), kappa, alpha, m)
    assert task == "regression"
    _word(given, "model", "linear", "logistic")
    reach = _real(given, "max_norm") * _real(given, "radius")
    return packings.regressions(given["model"], d, alpha, reach, _real(given, "target_bound"), m)


def _selection(
    n_items: int, beta: float, level: Level, epsilon: Epsilon, delta: Delta, given: Mapping[str, Any]
) -> dict[str, Term]:
    agreement = parse_delta(given["agreement"], "agreement")
    if not Fraction(1, 2) < agreement <= 1:
        raise ValueError(f"agreement must be in (1/2, 1]; got {short_repr(given['agreement'])}")
    if not isinstance(given["certified"], bool):
        raise TypeError(f"certified must be a bool; got {short_repr(given['certified'])}")
    share = float(agreement)
    terms = packed(packings.common_items(n_items, share), level, beta)
    if not level.delta:
        users = two_items_users(min(1.0, share + packings.ROUNDED), beta, level)
        larger(terms, "private", Term(users, "two items, with the least failure of every mechanism"))
    if given["certified"] and 3 * beta < 1:
        # It counts a third of its beta.
        accepted = open_unit_fraction(given["beta"], "beta")
        found = selection_users(n_items=n_items, agreement=agreement, epsilon=epsilon, delta=delta, beta=3 * accepted)
        larger(terms, "certified optimum", Term(found.n_users, "userdp.planning.selection_users"))
    return terms


def _finite(
    beta: float, level: Level, m: int, epsilon: Epsilon, delta: Delta, given: Mapping[str, Any]
) -> dict[str, Term]:
    terms: dict[str, Term] = {}
    if given["n_told_apart"] is None and given["item_users"] is None:
        raise TypeError("n_told_apart or item_users is needed for task='finite'")
    if given["n_told_apart"] is not None:
        size = _count(given, "n_told_apart", 2, 2**4096)
        few = fano_users(size, epsilon=epsilon, delta=delta, beta=given["beta"])
        larger(terms, "few users", Term(few, f"{FANO}: {short_repr(size)} distributions"))
        if given["kl"] is not None or given["tv"] is not None:
            users = fano_users(
                size, epsilon=epsilon, delta=delta, beta=given["beta"], m=m, kl=given["kl"], tv=given["tv"]
            )
            larger(terms, "private", Term(users, f"{FANO}: {short_repr(size)} distributions"))
    elif given["kl"] is not None or given["tv"] is not None:
        raise TypeError("kl and tv go with n_told_apart")
    if given["item_users"] is not None:
        users = users_from_item_level(given["item_users"], m=m)
        larger(terms, "one record each", Term(min(users, MOST_USERS), "[GKKMMZ23, Observation 28]"))
    return terms


def _representation(prdim: Any, beta: float, epsilon: Epsilon, delta: Delta) -> dict[str, Term]:
    dimension = parse_exact(prdim, "prdim", "a number >= 0")
    if not 0 <= dimension <= LARGEST_PRDIM:
        raise ValueError(f"prdim must be from 0 to {LARGEST_PRDIM}; got {short_repr(prdim)}")
    # 2^prdim, rounded down.
    whole = math.floor(dimension)
    size = int(2.0 ** float(dimension - whole) * (1 - 1e-12) * 2**52) * 2**whole // 2**52
    size = 2**whole if dimension == whole else max(size, 2**whole)
    terms: dict[str, Term] = {}
    failure = min(beta * (1 + 1e-12), math.nextafter(1, 0))
    users = users_implied(size, epsilon=epsilon, delta=delta, beta=failure, failure="1/4")
    larger(terms, "representation", Term(min(users, MOST_USERS), "[GKM21, Lemma 4]"))
    return terms


def _error_at(
    task: str,
    *,
    n_users: int,
    epsilon: Epsilon,
    delta: Delta,
    m: int,
    max_norm: float,
    max_loss: float,
    lipschitz: float,
    n_hypotheses: int | None,
    dimension: int,
    sigma: float | None,
    radius: float,
) -> LowerBound:
    """The least error with so many users."""
    n, rows = _size(check_count(n_users, "n_users"), "n_users"), _size(check_count(m, "m"), "m")
    level, slack = parse_level(epsilon), parse_delta(delta)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError(f"epsilon must be > 0; got {short_repr(epsilon)}")
    # Of a larger epsilon the bounds are lower, and floats are as small as this.
    rate = max(float(level), 1 / LARGEST)
    name, scale = {"mean": ("max_norm", max_norm), "finite-class": ("max_loss", max_loss)}.get(
        task, ("lipschitz", lipschitz)
    )
    size = _size(parse_positive(scale, name), name)
    if task == "finite-class":
        if n_hypotheses is None:
            raise ValueError("n_hypotheses must be given for 'finite-class'; got None")
        if slack:
            raise ValueError(
                f"delta must be 0 for 'finite-class', which is proved for pure privacy; got {short_repr(delta)}"
            )
        terms = _finite_class(check_count(n_hypotheses, "n_hypotheses", 2), n, rows, rate, float(size))
        return LowerBound(task, max(terms.values(), default=0.0), "excess risk", terms)
    reach = _size(parse_positive(radius, "radius"), "radius")
    factor = {"testing": Fraction(1), "mean": 4 * size * size, "sco": 2 * size * reach}[task]
    terms = {f"few users, {name}": round_down(part * factor) for name, part in _testing(n, level, slack).items()}
    value = max(terms.values())
    if task == "sco" and sigma is not None:
        width = float(_size(parse_positive(sigma, "sigma"), "sigma"))
        d = _size(check_count(dimension, "dimension"), "dimension")
        terms |= _linear_losses(n, rows, d, rate, slack, width, float(size), float(reach))
    return LowerBound(task, value, "excess risk" if task == "sco" else "mean squared error", terms)


def _size(value: Number, name: str) -> Number:
    """The value, where floats are large enough for it."""
    if value > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:.0e}; got {short_repr(value)}")
    return value


def _testing(n: int, level: PrivacyLevel, delta: Fraction) -> dict[str, Fraction]:
    """[LSAKKMS21, Theorem 8]: at most max over theta of E(A - theta)^2, by group privacy of n users; rounded down."""
    names = ("as printed", "group", "sharper")
    if n * float(level) > VANISHES:
        return dict.fromkeys(names, Fraction(0))
    if level.ratio != 1 and n * level.ratio.numerator.bit_length() > POWER_BITS:
        # A little more epsilon is a little lower a bound, and short to write.
        level = PrivacyLevel(Fraction(1), value_enclosure(level)[1])
    grouped = PrivacyLevel(level.ratio**n, level.exponent * n)
    low, high = (grouped.ratio,) * 2 if not grouped.exponent else _core.exp_bounds(core_level(grouped), 192)
    apart = 1 - Fraction(group_privacy(as_epsilon(level), delta, n).delta)
    return {
        "as printed": max(Fraction(0), (1 - n * delta * high) / (4 * (1 + high))),
        "group": apart / (4 * (1 + high)),
        "sharper": apart * low / (1 + high) ** 2,
    }


def _finite_class(k: int, n: int, m: int, epsilon: float, bound: float) -> dict[str, float]:
    """[LSAKKMS21, Theorem 7] with repaired constants; empty for few hypotheses."""
    d = k.bit_length() - 1
    if d < 32 * math.log(2):
        return {}
    gaps = {"statistical": math.sqrt(d / (96 * m * n)), "private": d / (192 * n * math.sqrt(m) * epsilon)}
    return {name: bound / 64 * gap for name, gap in gaps.items() if gap <= LARGEST_GAP}


def _linear_losses(
    n: int, m: int, d: int, epsilon: float, delta: Fraction, sigma: float, lipschitz: float, radius: float
) -> dict[str, float]:
    """The private term of [LSAKKMS21, Theorem 5] repaired, for losses -<theta, z> of nearly normal z; or none."""
    # Wider gradients than the Lipschitz constant allows for are replaced by an easier problem.
    width = min(sigma, lipschitz / (20 * math.sqrt(d)))
    # How long the mean of z is, in units of a user's standard deviation: at most ten of a record's, so that each
    # column, clipped at twenty, has ten to spare. Lemma 3 asks for 10 sqrt(d m): too much for means along one column.
    length = d / (512 * n * epsilon)
    inside = 100 * length * n / math.sqrt(d)
    if inside <= 1 or length > 10 * math.sqrt(m):
        return {}
    if delta > math.sqrt(d) / (48 * math.sqrt(2) * length * n * math.sqrt(math.log(inside))):
        return {}
    excess = radius * width * math.sqrt(d) * (math.sqrt(d) / (20480 * n * math.sqrt(m) * epsilon) - CLIPPED)
    return {"private, cited": excess} if excess > 0 else {}


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
