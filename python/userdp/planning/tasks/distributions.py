"""Planning distributions that users' examples come from: of symbols, of independent symbols, and normal ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from userdp.exact.epsilon import positive_epsilon
from userdp.exceptions import BudgetError
from userdp.learners.clipped_pairwise import clipping_bound
from userdp.planning.chances import Floats, of_one_record, of_records, rate_row, rounded_up, term, users_for
from userdp.planning.problem import Method, NotPlanned, Parameter, Problem, Task, counts_from, positive

DRAWS, SEED = 4000, 13
"""The law of noise and sampling together is drawn so often."""
MARGIN = 3.0
"""Standard deviations beyond the bound of the mean where records are cut in the usual ways."""


# --- the usual ways: a mean with Laplace noise for the whole range


@lru_cache(maxsize=16)
def _drawn(width: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng([SEED, width])
    return rng.standard_normal((DRAWS, width)), rng.laplace(size=(DRAWS, width))


def users_of_noise(
    problem: Problem, width: int, spread: float, noise: float, error: Callable[[Floats], Floats]
) -> float:
    """Users for which errors are above alpha with probability beta: sampling of a spread, and Laplace noise, of n = 1.

    Both are of one number of `width`; an error is a function of such numbers in rows.
    """
    normal, laplace = _drawn(width)

    def failure(n: int) -> float:
        found = error(normal * (spread / math.sqrt(n)) + laplace * (noise / n))
        return float((found > problem.alpha).mean())

    return users_for(failure, problem.beta)


def distance_of_shares(shares: Floats) -> Floats:
    """Total variation, for errors of shares by symbol."""
    # What all symbols have too much of is taken off again, as shares sum to 1.
    return np.abs(shares - shares.mean(axis=1, keepdims=True)).sum(axis=1) / 2


def distance_of_means(means: Floats) -> Floats:
    """Total variation of normal distributions with variances 1, for errors of means."""
    lengths = np.linalg.norm(means, axis=1)
    return np.array([math.erf(each / math.sqrt(8)) for each in lengths])


def _users_of_shares(problem: Problem) -> float:
    size = problem["n_symbols"]
    if size > 256:
        raise NotPlanned("simulated for n_symbols up to 256 only")
    # The reference examples are even over the symbols; a user moves two counts by 1.
    spread = math.sqrt((1 - 1 / size) / size / problem.m)
    return users_of_noise(problem, size, spread, 2 / problem.rate, distance_of_shares)


def _users_of_means(problem: Problem) -> float:
    d = problem["n_columns"]
    if d > 64:
        raise NotPlanned("simulated for n_columns up to 64 only")
    noise = 2 * (problem["mean_bound"] + MARGIN) * d / problem.rate
    return users_of_noise(problem, d, 1 / math.sqrt(problem.m), noise, distance_of_means)


def usual(runs: tuple[str, str, str], users: Callable[[Problem], float]) -> tuple[Method, ...]:
    """The usual ways. Counts of m records at epsilon / m have the noise of a user's mean at epsilon."""
    names = ("one record per person", "group privacy", "per-user clipping")
    needs = (of_one_record(users), of_records(users), users)
    return tuple(
        Method(name, each, terms=term(needed), baseline=name)
        for name, each, needed in zip(names, runs, needs, strict=True)
    )


# --- the classes of `userdp.distributions`


@dataclass(frozen=True)
class Selection:
    """The selections that decide how good an estimate is: what each of them has."""

    alpha: float
    epsilon: float


def selection_terms(of: Callable[[Problem], Selection]) -> Callable[[Problem], Mapping[str, float]]:
    """Users for the noise of clipped scores, with and without ln(1 / beta), and for sampling."""

    def terms(problem: Problem) -> Mapping[str, float]:
        each = of(problem)
        tau = float(clipping_bound(each.alpha, problem.m, 1))
        noise = tau / (each.epsilon * each.alpha * problem.m)
        return {
            "tau / (epsilon alpha m)": noise,
            "tau ln(1 / beta) / (epsilon alpha m)": noise * math.log(1 / problem.beta),
            "ln(1 / beta) / (alpha^2 m)": math.log(1 / problem.beta) / (each.alpha**2 * problem.m),
        }

    return terms


def _proved(name: str, **given: Callable[[Problem], Any]) -> Callable[[Problem], int]:
    """The number of the class's `users_needed`."""

    def proved(problem: Problem) -> int:
        try:
            from userdp import distributions
        except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
            raise NotPlanned(str(error)) from None
        kind = getattr(distributions, name)
        try:
            values = {parameter: read(problem) for parameter, read in given.items()}
            model = kind(epsilon=problem.epsilon, m=problem.m, alpha=problem.alpha, beta=problem.beta, **values)
            found: int = model.users_needed()
        except (ValueError, BudgetError) as error:
            raise NotPlanned(str(error)) from None
        return found

    return proved


def _value(name: str) -> Callable[[Problem], Any]:
    return lambda problem: problem[name]


def _doublings(alpha: float) -> int:
    """Rounds of "coarse-to-fine" before the last."""
    return (math.ceil(1 / alpha) - 1).bit_length() - 1


def _in_rounds(problem: Problem) -> Selection:
    rounds = _doublings(problem.alpha) + 1
    last = 1.5 ** (rounds - 1) / sum(1.5**r for r in range(rounds))
    return Selection(problem.alpha, problem.rate * last)


def _by_symbol(problem: Problem) -> Selection:
    size = problem["n_symbols"]
    return Selection(min(2 * problem.alpha / size, problem.alpha), problem.rate / size)


DISCRETE_ROW = "GKKMMZ23: Table 1, discrete distributions, users, this paper"
COVERS = "[GKKMMZ23, Theorem 41] with explicit constants: DiscreteDistribution.users_needed"
SELECTIONS: Mapping[str, Callable[[Problem], Selection]] = {
    "joint": lambda problem: Selection(problem.alpha, problem.rate),
    "coarse-to-fine": _in_rounds,
    "symbols": _by_symbol,
}

DISCRETE = Task(
    name="discrete",
    question="the distribution of users' records on public symbols",
    measure="the total variation distance",
    parameters=(Parameter("n_symbols", "how many symbols there are", counts_from(2, 1024)),),
    methods=(
        *(
            Method(
                name,
                f"DiscreteDistribution(method={name!r})",
                row=DISCRETE_ROW if name == "joint" else "",
                rate=rate_row("discrete", n_symbols=_value("n_symbols")) if name == "joint" else None,
                theorem=COVERS,
                proved=_proved("DiscreteDistribution", n_symbols=_value("n_symbols"), method=lambda _, each=name: each),
                terms=selection_terms(of),
            )
            for name, of in SELECTIONS.items()
        ),
        *usual(
            (
                "counts of one record of each user, with Laplace noise (userdp.tables)",
                "counts of records at epsilon / m, with Laplace noise",
                "each user's shares of the symbols, summed with Laplace noise",
            ),
            _users_of_shares,
        ),
    ),
    data="examples are even over the symbols, independently",
)


def _columns_of_product(problem: Problem) -> Problem:
    """One column of a product: a discrete distribution with its part of alpha, epsilon and beta."""
    d = problem["n_columns"]
    return problem.at(alpha=problem.alpha / d, epsilon=positive_epsilon(problem.rate / d), beta=problem.beta / d)


def _users_of_columns(problem: Problem) -> float:
    return _users_of_shares(_columns_of_product(problem))


PRODUCT_ROW = "GKKMMZ23: Table 1, product distributions, users, this paper"

PRODUCT = Task(
    name="product",
    question="the distribution of users' records of several independent symbols",
    measure="the total variation distance",
    parameters=(
        Parameter("n_symbols", "how many symbols each column has", counts_from(2, 1024)),
        Parameter("n_columns", "how many columns", counts_from(1, 1024)),
    ),
    methods=(
        *(
            Method(
                name,
                f"ProductDistribution(method={name!r})",
                row=PRODUCT_ROW if name == "joint" else "",
                rate=rate_row("product", n_symbols=_value("n_symbols"), dimension=_value("n_columns"))
                if name == "joint"
                else None,
                theorem="[GKKMMZ23, Theorem 44] with explicit constants: ProductDistribution.users_needed",
                proved=_proved(
                    "ProductDistribution",
                    n_symbols=_value("n_symbols"),
                    n_columns=_value("n_columns"),
                    method=lambda _, each=name: each,
                ),
            )
            for name in ("joint", "coordinate")
        ),
        *usual(
            (
                "counts by column of one record of each user, with Laplace noise",
                "counts of records by column at epsilon / m, with Laplace noise",
                "each user's shares of the symbols by column, summed with Laplace noise",
            ),
            _users_of_columns,
        ),
    ),
    data="examples are even over the symbols, independently; a column has its part of alpha, epsilon and beta",
)


def _location(problem: Problem) -> Selection:
    d = problem["n_columns"]
    return Selection(problem.alpha / math.sqrt(d), problem.rate / d)


def _moments(problem: Problem) -> Selection:
    """Of the normal distribution: locations, scales and scales of pairs share epsilon."""
    d = problem["n_columns"]
    parts = 2 * d + d * (d - 1) // 2
    return Selection(problem.alpha / (2 if d == 1 else 4 * problem["kappa"] * d), problem.rate / parts)


COLUMNS = Parameter("n_columns", "how many columns", counts_from(1, 1024), 1)
BOUND = Parameter("mean_bound", "no mean is longer than it, in units of the least standard deviation", positive)
MEAN_ROW = "GKKMMZ23: Table 1, Gaussian, known covariance, users, this paper"
NORMAL_ROW = "GKKMMZ23: Table 1, Gaussian, bounded covariance, users, this paper"

GAUSSIAN_MEAN = Task(
    name="gaussian-mean",
    question="the mean of normal records with a known covariance",
    measure="the total variation distance",
    parameters=(BOUND, COLUMNS),
    methods=(
        Method(
            "cover",
            "GaussianMean()",
            row=MEAN_ROW,
            rate=rate_row("gaussian-mean", dimension=_value("n_columns")),
            theorem="[GKKMMZ23, Theorem 45] with explicit constants: GaussianMean.users_needed",
            proved=_proved("GaussianMean", mean_bound=_value("mean_bound"), n_columns=_value("n_columns")),
            terms=selection_terms(_location),
        ),
        *usual(
            (
                "the mean of one record of each user, cut at the bound, with Laplace noise",
                "the mean of records at epsilon / m, cut at the bound, with Laplace noise",
                "the mean of users' means, cut at the bound, with Laplace noise (WinsorizedMean)",
            ),
            _users_of_means,
        ),
    ),
    data=(
        "each column has variance 1 and a mean of half the bound; in the usual ways records are cut 3 standard "
        "deviations beyond the bound"
    ),
)


def _one_normal(problem: Problem) -> int:
    return _proved_normal(problem.at(m=1))


_proved_normal = _proved(
    "GaussianDistribution",
    mean_bound=_value("mean_bound"),
    kappa=_value("kappa"),
    n_columns=_value("n_columns"),
)

GAUSSIAN = Task(
    name="gaussian",
    question="the mean and the covariance of normal records",
    measure="the total variation distance",
    parameters=(
        BOUND,
        Parameter("kappa", "the eigenvalues of the covariance are from 1 to it", positive, 4.0),
        COLUMNS,
    ),
    methods=(
        Method(
            "cover",
            "GaussianDistribution()",
            row=NORMAL_ROW,
            rate=rate_row("gaussian", dimension=_value("n_columns")),
            theorem="[GKKMMZ23, Theorem 46] with explicit constants: GaussianDistribution.users_needed",
            proved=_proved_normal,
            terms=selection_terms(_moments),
        ),
        Method(
            "one record per person",
            "GaussianDistribution() on the first record of each user",
            theorem="GaussianDistribution.users_needed",
            proved=_one_normal,
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            "GaussianDistribution(epsilon=epsilon / m) where each record is a user",
            theorem="GaussianDistribution.users_needed",
            proved=rounded_up(of_records(lambda problem: float(_proved_normal(problem)))),
            baseline="group privacy",
        ),
    ),
    data="a mean of half the bound and a variance of half of kappa, but at least 1; one column",
    missing={
        "per-user clipping": "noise for second moments over the whole range is not shipped as an estimate of a "
        "distribution"
    },
)
