"""Planning logistic and linear regression, by the excess of the loss on fresh records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from statistics import NormalDist

from userdp.means.gaussian_account import gaussian_account
from userdp.planning import packings
from userdp.planning.bounds import DIMENSION, MAX_NORM, RADIUS, Known, by_packings, known_for, size
from userdp.planning.problem import (
    Asked,
    Bound,
    ErrorsAsked,
    Method,
    NotPlanned,
    NotSimulated,
    Parameter,
    Problem,
    Task,
    Terms,
    choice,
    counts_from,
    flag,
    positive,
)
from userdp.planning.tasks.convex import NEEDS_DELTA, ROW, Descent, of_record_level, theorem_4
from userdp.report import Comparison

SIGNAL = 3.0
"""The norm of the reference coefficients times that of rows: labels of a logistic model are then not all certain."""
INTEGERS = 100
"""About how many get noise for each column, of which the account hardly depends."""
ALONE = 0.03
"""The least alpha simulated with one record of a user: clipped gradients are skew there, for an excess up to .01."""
NOISE = 1 / 12
"""The variance of what targets of the reference users have beside their mean, in units of target_bound squared."""


def _account(problem: Problem) -> float:
    """The rho of zero-concentration that the noise of a whole fit may cost, nearly."""
    if not problem.delta:
        raise NotPlanned(NEEDS_DELTA)
    integers = INTEGERS * problem["dimension"]
    try:
        return float(gaussian_account(problem.epsilon, problem.delta, integers, sensitivity=2**28).rho)
    except ValueError as error:  # a delta that is too small for the distance
        raise NotPlanned(str(error)) from None


def _quantile(problem: Problem) -> float:
    """What the sum of the squares of `dimension` standard normal numbers exceeds with probability beta, nearly."""
    d = problem["dimension"]
    spread = 2 / (9 * d)
    return float(d * max(1 - spread + NormalDist().inv_cdf(1 - problem.beta) * math.sqrt(spread), 0.1) ** 3)


def _by_moments(model: str, problem: Problem) -> Terms:
    """Of what begins with private second moments: the defaults of both regressions."""
    d, rho, square = problem["dimension"], _account(problem), _quantile(problem)
    alpha = problem.alpha if model == "logistic" else problem.alpha / problem["target_bound"] ** 2
    # How large what the noise is multiplied with is, squared: common to all users, and a user's own.
    loss = 1.0 if model == "logistic" else 1 / (4 * d) + NOISE
    common, own = (1.0, d) if model == "logistic" else (d, d**2)
    found = {
        "records": (1.0 if model == "logistic" else NOISE) * square / (2 * problem.m * alpha),
        "noise of what users share": math.sqrt(loss * square * common / (rho * alpha)),
        "noise of what users differ in": math.sqrt(loss * square * own / (rho * alpha * problem.m)),
        "search of units": math.log(1 / problem.beta) / problem.rate,
    }
    if model == "logistic":
        if problem.m == 1 and alpha < ALONE:
            raise NotSimulated(f"simulated for one record at a time for alpha from {ALONE:g} only")
        return found
    # As large as the noise in a direction, whatever is drawn: of coefficients whose part of the targets falls with d.
    return found | {"ridge": math.sqrt(1 / (rho * alpha))}


def _by_steps(problem: Problem) -> Terms:
    """Of descents in the units of the bounds, which take steps enough."""
    square = _quantile(problem)
    # Nobody's mean gradient is clipped, so that noise does not fall with the rows of a user.
    spread = square * problem["dimension"] / (_account(problem) * problem.alpha)
    return {"records": square / (2 * problem.m * problem.alpha), "noise": math.sqrt(spread)}


def _of_one(terms: Callable[[Problem], Terms]) -> Callable[[Problem], Terms]:
    return lambda problem: terms(problem.at(m=1))


def _of_records(terms: Callable[[Problem], Terms]) -> Callable[[Problem], Terms]:
    """Of records that count as users, at a part of epsilon and delta."""

    def grouped(problem: Problem) -> Terms:
        return {name: users / problem.m for name, users in terms(of_record_level(problem)).items()}

    return grouped


def reach(problem: Problem) -> float:
    """The largest norm of coefficients, as the estimators have it by default."""
    unit = problem["target_bound"] if problem.task == LINEAR_NAME else 1.0
    if problem["radius"] is None:
        return float(4 * math.sqrt(problem["dimension"]) * unit / problem["max_norm"])
    return float(problem["radius"])


def _standard(problem: Problem) -> Problem:
    """In units of the bounds of features and targets."""
    unit = problem["target_bound"] if problem.task == LINEAR_NAME else 1.0
    least = (SIGNAL if problem.task == LOGISTIC_NAME else unit / 2) / problem["max_norm"]
    if reach(problem) < least:
        raise NotSimulated(f"simulated for coefficients of norm {least:.3g}, which are beyond this radius")
    found = problem.at(alpha=problem.alpha / unit**2, max_norm=1.0, radius=None)
    # Solvers that find units first do as well where bounds are wide.
    return found.at(tight_bounds=True) if problem.task == LOGISTIC_NAME else found.at(target_bound=1.0)


def _standard_of_steps(problem: Problem) -> Problem:
    """The same for descents, whose steps are made for the radius."""
    if abs(reach(problem) / reach(problem.at(radius=None)) - 1) > 0.01:
        raise NotSimulated("simulated for the radius that is the default only")
    return _standard(problem)


def _proved(problem: Problem) -> int:
    # The loss changes by no more than predictions do: sup |F - F_N| has a mean of 2 R max_norm / sqrt(N) at most.
    longest, radius = problem["max_norm"], reach(problem)
    descent = Descent(
        epsilon=problem.epsilon,
        delta=problem.delta,
        m=problem.m,
        dimension=problem["dimension"],
        lipschitz=longest,
        smoothness=longest**2 / 4,
        radius=radius,
        uniform=2 * longest * radius,
        accepted=problem.alpha * problem.beta,  # Markov's inequality
    )
    return descent.users()


def _packings(asked: Asked) -> Iterable[packings.Packing]:
    scale, target = float(asked["max_norm"]) * float(asked["radius"]), float(asked["target_bound"])
    return packings.regressions(asked["model"], asked["dimension"], asked.alpha, scale, target, asked.m)


REGRESSION = Task(
    name="regression",
    question="the coefficients of a linear or of a logistic regression",
    measure="the excess risk",
    bound=Bound(
        "all learners of parameters, of all distributions of features and targets within the bounds",
        by_packings(_packings),
        (
            Parameter("model", "losses (s - y)^2 / 2, or ln(1 + e^(-y s))", choice("linear", "logistic"), "linear"),
            DIMENSION,
            MAX_NORM,
            RADIUS,
            Parameter("target_bound", "of linear ones: the largest absolute value of a target", size, Fraction(1)),
        ),
        share=False,
    ),
)
"""Both models by the name that bounds and rates have for them; it has no methods of its own."""


def _hard(task: Callable[[], Task], model: str) -> Callable[[Problem], Known]:
    def hard(problem: Problem) -> Known:
        given = {"model": model, "radius": reach(problem)}
        return known_for(task(), problem, bound=REGRESSION.bound, name=REGRESSION.name, **given)

    return hard


def _descents(asked: ErrorsAsked) -> Comparison:
    # They need scikit-learn, which other plans do not.
    from userdp.planning.descents import compare_descents

    return compare_descents(asked)


DESCENT = Task(
    name="descent", question="the coefficients of a logistic regression, by the descents there are", errors=_descents
)

TIGHT = "tight_bounds=True, as steps are in units of the bounds"
LOGISTIC_NAME, LINEAR_NAME = "logistic-regression", "linear-regression"


def _parameters(unit: str) -> tuple[Parameter, ...]:
    return (
        Parameter("dimension", "coefficients; an intercept counts as one", counts_from(1, 2**13), 1),
        Parameter("max_norm", "the largest L2 norm of a row of features", positive, 1.0),
        Parameter(
            "radius",
            f"the largest L2 norm of coefficients; None for 4 sqrt(dimension) {unit}/ max_norm",
            positive,
            None,
        ),
    )


def _ways(model: str, runs: str, default: str) -> tuple[Method, ...]:
    """The default estimator, and the usual ways by it."""
    terms = partial(_by_moments, model)
    return (
        Method(default, runs, terms=terms, standard=_standard),
        Method(
            "one record per person",
            f"{runs} on the first record of each user",
            terms=_of_one(terms),
            standard=_standard,
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            f"{runs} at epsilon / m where each record is a user",
            terms=_of_records(terms),
            standard=_standard,
            baseline="group privacy",
        ),
    )


_SPHERE = (
    "fits have no intercept; rows are evenly on the sphere of radius max_norm, independently of each other and of "
    "whose they are; "
)

LOGISTIC: Task = Task(
    name=LOGISTIC_NAME,
    question="the coefficients of a logistic regression",
    measure="the excess of the mean loss ln(1 + exp(-y s)) on fresh records over that of the best coefficients",
    parameters=(
        *_parameters(""),
        Parameter(
            "tight_bounds", "a promise: rows are about as long as max_norm, and alike in all directions", flag, False
        ),
    ),
    methods=(
        *_ways("logistic", "UserLevelLogisticRegression()", "preconditioned"),
        Method(
            "clipped",
            "UserLevelLogisticRegression(solver='clipped')",
            needs=lambda problem: TIGHT,
            kept=lambda problem: bool(problem["tight_bounds"]),
            terms=_by_steps,
            standard=_standard_of_steps,
        ),
        Method(
            "winsorized",
            "UserLevelLogisticRegression(solver='winsorized')",
            needs=lambda problem: TIGHT,
            kept=lambda problem: bool(problem["tight_bounds"]),
            row=ROW,
            rate=theorem_4(lambda problem: problem["max_norm"], reach),
        ),
        Method("phased", "UserLevelLogisticRegression(solver='phased')"),
        Method(
            "per-user clipping",
            "ClippedGradientDescent(clip=max_norm, average='all', n_iterations=T), which clips nobody's mean gradient, "
            "with T = (radius max_norm)^2 / (2 alpha beta)",
            theorem="[LSAKKMS21, Proposition 4] with constants, uniform convergence, and Markov's inequality",
            proved=_proved,
            baseline="per-user clipping",
        ),
    ),
    hard=_hard(lambda: LOGISTIC, "logistic"),
    data=_SPHERE + f"labels are of a logistic model whose coefficients have norm {SIGNAL:g} / max_norm",
)

LINEAR: Task = Task(
    name=LINEAR_NAME,
    question="the coefficients of a linear regression",
    measure="the excess of the mean of (s - y)^2 / 2 on fresh records over that of the best coefficients",
    parameters=(
        *_parameters("target_bound "),
        Parameter("target_bound", "targets are from -target_bound to it", positive, 1.0),
    ),
    methods=_ways("linear", "UserLevelLinearRegression()", "moments"),
    hard=_hard(lambda: LINEAR, "linear"),
    data=_SPHERE + "targets are half of target_bound times a coordinate of the row in some direction, over max_norm, "
    "and half of it times an even number from -1 to 1",
    largest_alpha=math.inf,
    scale=lambda problem: problem["target_bound"] ** 2,
    missing={"per-user clipping": "'moments' is that: a user's second moments are clipped"},
)
