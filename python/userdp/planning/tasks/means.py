"""Planning the mean of users' records, by the plans with which `userdp.means.WinsorizedMean` runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

from userdp.exact.numbers import parse_level
from userdp.means.methods import METHODS, NEED_A_PROMISE
from userdp.means.problem import MeanMethod, MeanProblem
from userdp.planning.bounds import DIMENSION, MAX_NORM, Known, known_for, known_of
from userdp.planning.fano import MARGIN
from userdp.planning.hard_tasks import Term, few_users, mean_terms
from userdp.planning.problem import (
    MOST_USERS,
    Asked,
    AskedError,
    Bound,
    ErrorsAsked,
    Method,
    NotPlanned,
    NotSimulated,
    Parameter,
    Problem,
    Task,
    choice,
    counts_from,
    flag,
    positive,
    record_delta,
    users_there,
)
from userdp.planning.rates import rate
from userdp.report import Comparison, Prediction

FULL_RANGE = ("gaussian", "laplace")
"""The methods that do not think of users: full noise for the whole range."""
SEEN = 1 / 16
"""Of less noise, in units of where records are, nothing is cut off that could be seen."""
PROMISES = {"none": "nothing", "at most": "user_std", "independent": "homogeneous=True"}


def mean_problem(problem: Problem, n_users: int) -> MeanProblem:
    """The public problem that `WinsorizedMean` has for these numbers; without a promise users may be anywhere."""
    size = problem["max_norm"]
    made = MeanProblem(
        n_users=n_users,
        dimension=problem["dimension"],
        max_norm=size,
        norm=problem["norm"],
        concentration=size,
        epsilon=problem.epsilon,
        delta=problem.delta,
        beta=problem.beta,
        promise="none",
    )
    if problem["user_std"] is not None:
        return replace(made, promise="at most", concentration=problem["user_std"])
    if problem["homogeneous"]:
        return alike(made, problem.m)
    return replace(made, concentration=made.ball)


def alike(problem: MeanProblem, m: int) -> MeanProblem:
    """The same where the records of all users come from one distribution."""
    return replace(problem, promise="independent", concentration=problem.ball / math.sqrt(m))


@lru_cache(maxsize=4096)
def plan_of(method: str, problem: MeanProblem) -> MeanMethod:
    """The plan of a method, or why there is none."""
    try:
        return METHODS[method](problem)
    except ValueError as error:  # it needs a positive delta, or cannot be certified at this one
        raise NotPlanned(str(error)) from None


def noise_of(method: str, problem: MeanProblem) -> float:
    """The root mean square of the L2 noise of a method, from its exact distribution."""
    plan = plan_of(method, problem)
    # How much noise "tested" has, hangs on what is drawn.
    return plan.predicted_error() if plan.name == "tested" else math.sqrt(problem.dimension) * plan.accuracy().noise()


class MeanErrors(NamedTuple):
    """Root mean squares of the L2 error of a method."""

    noise: float
    """What is left of the noise about the middle of where records are."""
    worst: float
    """With the most that clipping and rounding can move: against the mean of the users at hand."""
    rounding: float
    """The most that rounding moves a vector."""


@lru_cache(maxsize=4096)
def errors_of(method: str, problem: MeanProblem) -> MeanErrors:
    """The errors of a method, from the plan by which it runs."""
    accuracy = plan_of(method, problem).accuracy()
    noise, worst = noise_of(method, problem), accuracy.worst(problem.dimension)
    rounding = math.sqrt(problem.dimension) * accuracy.rounding
    if worst < math.inf:
        # Noise has mean 0, given all that is rounded and clipped.
        alone = math.sqrt(problem.dimension) * accuracy.noise()
        moved = math.sqrt(max(worst**2 - alone**2, 0.0)) + rounding
        worst = min(math.hypot(alone, moved), farthest(problem, accuracy.bias is None) + rounding)
    return MeanErrors(projected(noise, problem), worst, rounding)


def farthest(problem: MeanProblem, symmetric: bool) -> float:
    """The largest root mean square error of a release that was projected to where records are, whatever the noise."""
    # Within a ball of radius R no two points are farther apart than 2 R. Let the noise Z be symmetric, P be the
    # projection to a convex set with -P(y) = P(-y), and x in it. P is monotone: P(x + Z) + P(x - Z), which is
    # P(x + Z) - P(Z - x), has no negative product with (x + Z) - (Z - x) = 2 x. So the mean of <P(x + Z), x> is not
    # negative, and that of |P(x + Z) - x|^2 at most R^2 + |x|^2 <= 2 R^2.
    return problem.ball * (math.sqrt(2) if symmetric else 2.0)


def projected(noise: float, problem: MeanProblem) -> float:
    """What is left of noise of that root mean square by projecting to where records are, about the middle of it."""
    if noise <= problem.ball * SEEN:
        return noise
    d = problem.dimension
    # Of each column for a box, and of the length for a ball, as if the noise were Gaussian.
    degrees = 1 if problem.norm == "max" else d
    variance, square = noise**2 / d, problem.max_norm**2
    inside = variance * degrees * lower_gamma(degrees / 2 + 1, square / (2 * variance))
    outside = square * (1 - lower_gamma(degrees / 2, square / (2 * variance)))
    return math.sqrt((inside + outside) * d / degrees)


def lower_gamma(a: float, x: float) -> float:
    """The regularized lower incomplete gamma function, for a > 0 and x >= 0, to about 1e-12."""
    if x <= 0:
        return 0.0
    if x > a + 12 * math.sqrt(a) + 60:
        return 1.0
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total, k = term, 0
    while term > total * 1e-17 and k < 10**6:
        k += 1
        term *= x / (a + k)
        total += term
    return min(total, 1.0)


def asked_of(method: str, problem: MeanProblem, m: int) -> MeanProblem:
    """The problem as a method takes it: what needs a promise has one, and a hint is none."""
    promised = problem if problem.promise != "none" else alike(problem, m)
    # A hint for "tested" is no promise; the others of these do not use it.
    return promised if method in NEED_A_PROMISE or method == "auto" else replace(promised, promise="none")


def per_record(problem: MeanProblem, m: int, *, group: bool) -> MeanProblem:
    """The mean of all records: at epsilon / m for groups of m, or at epsilon, which does not protect users."""
    records = replace(problem, n_users=problem.n_users * m, promise="none", concentration=problem.ball)
    if not group:
        return records
    level = Fraction(float(parse_level(problem.epsilon)))
    part = record_delta(level, problem.delta, m)
    if problem.delta and not part:
        raise NotPlanned(f"no delta is left for a record, as a group of {m} at epsilon {float(level):g} takes it all")
    return replace(records, epsilon=level / m, delta=part)


def full_range(problem: MeanProblem) -> float:
    """The least noise of the methods that do not think of users, as projected."""
    return min(errors_of(method, problem).noise for method in FULL_RANGE if problem.delta or method == "laplace")


def full_range_worst(problem: MeanProblem) -> MeanErrors:
    """The errors of the one of them whose largest error is least."""
    # What is left of noise about the middle is no bound: at the border of where records are it may be more.
    known = (errors_of(method, problem) for method in FULL_RANGE if problem.delta or method == "laplace")
    return min(known, key=lambda errors: errors.worst)


def sampling(problem: Problem) -> float:
    """The largest root mean square distance of one user's mean from the mean that users are drawn from."""
    return mean_problem(problem, 2).possible_concentration


def least_users(error: Callable[[int], float], accuracy: float, start: int) -> int:
    """The n at which a falling error comes to the accuracy, from a start: few evaluations, as it is nearly a power."""
    low, high = start, start
    above = below = error(start) / accuracy
    while below > 1:
        if high >= MOST_USERS:
            raise _too_many()
        low, above = high, below
        # It falls like 1 / n where noise dominates.
        high = min(max(math.ceil(high * 1.01 * min(below, 2.0**20)), high + 1), MOST_USERS)
        below = error(high) / accuracy
    while high - low > 1:
        middle, margin = (low + high) // 2, (high - low) // 16
        if margin and below < above < math.inf:
            guess = low * (high / low) ** (math.log(above) / math.log(above / below))
            middle = min(max(round(guess), low + margin), high - margin)
        at = error(middle) / accuracy
        if at > 1:
            low, above = middle, at
        else:
            high, below = middle, at
    return high


def _too_many() -> NotPlanned:
    return NotPlanned(f"more than 2**{MOST_USERS.bit_length() - 1} users would be needed; raise alpha or epsilon")


SHIFT = 0.3
"""The mean of a column of the reference users, in units of its bound."""
REFERENCE = (
    "all records of all users are independent draws; each column is the largest value that fits in the norm, or minus "
    "that, with mean 0.3 times it"
)


def _reference_users(problem: Problem, m: int, noise: Callable[[int], float]) -> dict[str, float]:
    """The least n for which noise and the sampling of the reference users together are at most alpha."""
    if problem["user_std"] is not None:
        raise NotSimulated("simulated for users who are alike only, and not for a user_std")
    spread = mean_problem(problem, 2).ball * math.sqrt((1 - SHIFT**2) / m)
    least = (spread / problem.alpha) ** 2
    if least > MOST_USERS:
        raise _too_many()
    return {
        "users": least_users(
            lambda n: math.hypot(noise(n), spread / math.sqrt(n)), problem.alpha, max(2, math.ceil(least))
        )
    }


def _noise(method: str, problem: Problem, n: int) -> float:
    asked = asked_of(method, mean_problem(problem, n), problem.m)
    return errors_of(method, asked).noise


def _terms(method: str, problem: Problem) -> dict[str, float]:
    return _reference_users(problem, problem.m, lambda n: _noise(method, problem, n))


def _terms_clipped(problem: Problem) -> dict[str, float]:
    return _reference_users(problem, problem.m, lambda n: full_range(mean_problem(problem, n)))


def _terms_one(problem: Problem) -> dict[str, float]:
    one = problem.at(m=1)
    return _reference_users(one, 1, lambda n: full_range(mean_problem(one, n)))


def _terms_grouped(problem: Problem) -> dict[str, float]:
    return _reference_users(
        problem, problem.m, lambda n: full_range(per_record(mean_problem(problem, n), problem.m, group=True))
    )


def _standard(problem: Problem) -> Problem:
    """In units of the ball of all records."""
    return problem.at(alpha=problem.alpha / mean_problem(problem, 2).ball, max_norm=1.0, beta=MEAN.beta)


def _standard_pure(problem: Problem) -> Problem:
    """The same for Laplace noise, which uses no delta."""
    return replace(_standard(problem), delta=Fraction(0))


def _standard_with_beta(problem: Problem) -> Problem:
    """The same for what looks for a range, and may miss it with probability beta."""
    return replace(_standard(problem), beta=problem.beta)


def _rate(problem: Problem) -> dict[str, float]:
    """The paper's number of users, for records in the ball."""
    if not problem.delta:
        raise NotPlanned("the row is for delta > 0")
    ball = mean_problem(problem, 2).ball
    given: dict[str, Any] = {"m": problem.m, "epsilon": problem.epsilon, "delta": problem.delta, "alpha": problem.alpha}
    return dict(rate("mean", row=ROW, max_norm=ball, dimension=problem["dimension"], **given).terms)


def without_privacy(problem: Problem) -> int:
    """How many users are enough for sampling alone."""
    needed = sampling(problem) / problem.alpha
    if needed > MOST_USERS**0.5:
        raise _too_many()
    return max(1, math.ceil(needed**2))


Errors = Callable[[Problem, int], float]
"""Root mean square errors with so many users."""


def _users(error: Errors, problem: Problem) -> int:
    """The least n for which noise, clipping and sampling together are at most alpha, in root mean square."""
    return least_users(partial(error, problem), problem.alpha, max(2, without_privacy(problem)))


def _with_sampling(errors: MeanErrors, problem: Problem, n_users: int) -> float:
    """Against the mean that users are drawn from; users' rounded means spread a little more than their means."""
    return math.hypot(errors.worst, (sampling(problem) + errors.rounding) / math.sqrt(n_users))


def _by_method(method: str, problem: Problem, n_users: int) -> float:
    asked = asked_of(method, mean_problem(problem, n_users), problem.m)
    return _with_sampling(errors_of(method, asked), problem, n_users)


def _grouped(problem: Problem, n_users: int) -> float:
    records = per_record(mean_problem(problem, n_users), problem.m, group=True)
    return _with_sampling(full_range_worst(records), problem, n_users)


def _one_record(problem: Problem, n_users: int) -> float:
    return _clipped(_of_one_record(problem), n_users)


def _of_one_record(problem: Problem) -> Problem:
    """The same with the first records: of several, one is anywhere, however near their mean is promised to be."""
    return problem if problem.m == 1 else problem.at(m=1, user_std=None, homogeneous=False)


def _clipped(problem: Problem, n_users: int) -> float:
    return _with_sampling(full_range_worst(mean_problem(problem, n_users)), problem, n_users)


def _needs(method: str, problem: Problem) -> str:
    return PROMISES[asked_of(method, mean_problem(problem, 2), problem.m).promise]


def _rests(problem: Problem) -> str:
    """What sampling rests on: users' means are near the mean that users are drawn from, or anywhere."""
    bare = problem.at(user_std=None, homogeneous=False)
    return "nothing" if sampling(problem) >= sampling(bare) else PROMISES[mean_problem(problem, 2).promise]


def _kept(method: str, problem: Problem) -> bool:
    return method not in NEED_A_PROMISE or mean_problem(problem, 2).promise != "none"


def _check(problem: Problem) -> None:
    if problem["user_std"] is not None and problem["homogeneous"]:
        raise ValueError("user_std and homogeneous=True promise the same thing: give one of them")


# --- errors with so many users

GROUP = "group privacy"
RECORDS = "records only"
KINDS_WHERE_TESTED = "noise exact where its tests pass as is hinted, worst error proved"
REASON = "what WinsorizedMean takes by itself for what is promised"


def kinds_of_errors(noise: float, problem: MeanProblem) -> str:
    """What the errors of a row are: of little noise nothing is cut off."""
    exact = noise <= problem.ball * SEEN
    return f"noise {'exact' if exact else 'approximated, as if normal'}, worst error proved"


def compare_means(asked: ErrorsAsked) -> Comparison:
    """All methods that can run at this privacy, the group-privacy baseline, and the mean that protects records."""
    if asked.m is None:
        raise TypeError("m is needed for task='mean': how many records a user has")
    users, m = users_there(asked.n_users), asked.m
    # Accuracies of means may be any: here they are what is asked for.
    given: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "beta": asked.beta}
    planned = MEAN.problem(m=m, **given, alpha=1, values=asked.values)
    problem = mean_problem(planned, users)
    automatic = plan_of("auto", replace(asked_of("auto", problem, m), promise=problem.promise)).name
    rows: list[Prediction] = []
    for method in METHODS:
        if method == "auto":
            continue
        taken = asked_of(method, problem, m)
        try:
            noise, worst, _ = errors_of(method, taken)
        except NotPlanned:  # it needs a positive delta, or cannot be certified at this one
            continue
        notes = [KINDS_WHERE_TESTED if method == "tested" else kinds_of_errors(noise, taken)]
        notes += ["too few users for it"] * bool(plan_of(method, taken).warnings())
        needs = PROMISES[taken.promise]
        rows.append(Prediction(method, "user", noise, worst if worst < math.inf else None, needs, "; ".join(notes)))
    try:
        records = per_record(problem, m, group=True)
        noise = full_range(records)
        note = f"{kinds_of_errors(noise, records)}; one record at epsilon / {m}" + " and less delta" * bool(
            problem.delta
        )
        rows.append(Prediction(GROUP, "user", noise, full_range_worst(records).worst, note=note))
    except NotPlanned as reason:
        rows.append(Prediction(GROUP, "user", None, None, note=f"not planned: {reason}"))
    records = per_record(problem, m, group=False)
    noise = full_range(records)
    note = f"{kinds_of_errors(noise, records)}; no guarantee for users"
    rows.append(Prediction(RECORDS, "record", noise, full_range_worst(records).worst, note=note))
    sizes = {
        "n_users": problem.n_users,
        "m": m,
        "dimension": problem.dimension,
        "max_norm": problem.max_norm,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "promise": PROMISES[problem.promise],
    }
    return Comparison(task="mean", sizes=sizes, rows=tuple(rows), best=automatic, reason=REASON)


# --- the bound

NORM = Parameter("norm", "'l2', or 'max' where max_norm bounds each column", choice("l2", "max"), "l2")
IN_A_BALL = "all estimates of the mean of all distributions in the ball (or in the cube, for norm='max')"
NEAR = "all estimates of the mean of users in the ball (or cube) whose means are within user_std of it (in RMS)"


def _bound(asked: Asked) -> dict[str, Term]:
    d, cube = asked["dimension"], asked["norm"] == "max"
    norm = float(asked["max_norm"]) * (math.sqrt(d) if cube else 1.0)
    return mean_terms(d, norm, asked.alpha, asked.beta, asked.m, asked.level, cube=cube)


def _least_square(asked: AskedError) -> tuple[str, dict[str, float]]:
    return "mean squared error", few_users(asked.n, asked.level, asked.delta, 4 * asked["max_norm"] ** 2)


BOUND = Bound(
    IN_A_BALL,
    _bound,
    (DIMENSION, MAX_NORM, NORM),
    mean=True,
    share=False,
    error=_least_square,
    error_parameters=(DIMENSION, MAX_NORM),
)


def _hard(problem: Problem) -> Known:
    """Of users who are near each other: by users whose records are all alike, which m does not help."""
    if problem["user_std"] is None:
        return known_for(MEAN, problem)
    # No user is farther from the middle of a smaller ball, or of a smaller cube, than user_std.
    corners = math.sqrt(problem["dimension"]) if problem["norm"] == "max" else 1.0
    size = min(problem["max_norm"], problem["user_std"] * (1 - MARGIN) / corners)
    given = {name: problem[name] for name in ("dimension", "norm", "max_norm")}
    near, none, _ = known_of(BOUND, "mean", problem.at(m=1), given | {"max_norm": size}, alpha=problem.alpha)
    # And a user at the mean is at no distance from it: what few users say, whatever they have, is by such ones.
    few, few_none, _ = known_of(BOUND, "mean", problem, given, term="few users", alpha=problem.alpha)
    least = max(near or 0, few or 0)
    return (least, "", NEAR) if least else (None, none or few_none, "")


STANDARDS = {"laplace": _standard_pure, "practical": _standard_with_beta, "paper": _standard_with_beta}
ROW = "LSAKKMS21: Corollary 1, bounded vectors, inverted to users"
THEOREM = "the exact distribution of the noise, the most that clipping can move, and sampling"
_WAYS = (
    Method(
        "one record per person",
        "WinsorizedMean on the first record of each user",
        rests=lambda problem: _rests(_of_one_record(problem)),
        theorem=THEOREM,
        proved=partial(_users, _one_record),
        reached=_one_record,
        terms=_terms_one,
        standard=_standard,
        baseline="one record per person",
    ),
    Method(
        "group privacy",
        "the mean of all records at epsilon / m",
        rests=_rests,
        theorem=THEOREM,
        proved=partial(_users, _grouped),
        reached=_grouped,
        terms=_terms_grouped,
        standard=_standard,
        baseline="group privacy",
    ),
    Method(
        "per-user clipping",
        "WinsorizedMean(method='gaussian' or 'laplace')",
        rests=_rests,
        theorem=THEOREM,
        proved=partial(_users, _clipped),
        reached=_clipped,
        terms=_terms_clipped,
        standard=_standard,
        baseline="per-user clipping",
    ),
)

MEAN = Task(
    name="mean",
    question="the mean of users' records",
    measure="the root mean square of the L2 error",
    parameters=(
        Parameter("dimension", "columns", counts_from(1, 2**24), 1),
        Parameter("max_norm", "the largest norm of a record", positive, 1.0),
        NORM,
        Parameter(
            "user_std", "a promise: how far users' means are from their mean, in root mean square", positive, None
        ),
        Parameter("homogeneous", "a promise: all users' records come from one distribution", flag, False),
    ),
    methods=(
        *(
            Method(
                name,
                f"WinsorizedMean(method={name!r})",
                needs=partial(_needs, name),
                rests=_rests,
                kept=partial(_kept, name),
                theorem=THEOREM,
                proved=partial(_users, partial(_by_method, name)),
                reached=partial(_by_method, name),
                row=ROW if name in NEED_A_PROMISE else "",
                rate=_rate if name in NEED_A_PROMISE else None,
                terms=None if name == "paper" else partial(_terms, name),
                standard=STANDARDS.get(name, _standard),
            )
            for name in METHODS
            if name != "auto"
        ),
        *_WAYS,
    ),
    data=REFERENCE,
    largest_alpha=math.inf,
    scale=lambda problem: mean_problem(problem, 2).ball,
    beta=0.01,
    accuracy="root mean square",
    check=_check,
    without_privacy=without_privacy,
    bound=BOUND,
    hard=_hard,
    errors=compare_means,
)
