"""Planning distributions that users' examples come from: of symbols, of independent symbols, and normal ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr
from userdp.exceptions import BudgetError
from userdp.planning import packings
from userdp.planning.bounds import DIMENSION, MOST_COLUMNS, by_packings, named_count, real
from userdp.planning.chances import (
    MOST_CANDIDATES,
    MOST_CELLS,
    Floats,
    Line,
    clipping,
    distance_of_normals,
    draws,
    misses,
    nearest_distributions,
    of_one_record,
    of_records,
    rate_row,
    rounded_up,
    term,
    users_for,
    usual_ways,
)
from userdp.planning.problem import (
    BASELINES,
    Asked,
    Bound,
    Method,
    NotPlanned,
    NotSimulated,
    Parameter,
    Problem,
    Task,
    counts_from,
    positive,
)

DRAWS, SEED = 4000, 13
"""The law of noise and sampling together is drawn so often, and less often for more than 64 numbers."""
MOST_SYMBOLS = 64
MOST_MEMBERS = 4096
"""Of a cover: `max_candidates` by default."""
QUARTER = 0.6744897501960817
"""Half of all normal numbers are so many standard deviations or less from their mean."""
MARGIN = 3.0
"""Standard deviations beyond the bound of the mean where records are cut in the usual ways."""


# --- the usual ways: a mean with Laplace noise for the whole range


@lru_cache(maxsize=16)
def _drawn(width: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng([SEED, width])
    size = (min(DRAWS, max(512, 2**18 // width)), width)
    return rng.standard_normal(size), rng.laplace(size=size)


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
        raise NotSimulated("simulated for n_symbols up to 256 only")
    # The reference examples are even over the symbols; a user moves two counts by 1.
    spread = math.sqrt((1 - 1 / size) / size / problem.m)
    return users_of_noise(problem, size, spread, 2 / problem.rate, distance_of_shares)


def _users_of_means(problem: Problem) -> float:
    d = problem["n_columns"]
    if d > 64:
        raise NotSimulated("simulated for n_columns up to 64 only")
    noise = 2 * (problem["mean_bound"] + MARGIN) * d / problem.rate
    return users_of_noise(problem, d, 1 / math.sqrt(problem.m), noise, distance_of_means)


# --- the classes of `userdp.distributions`


def _users_by_symbol(problem: Problem) -> float:
    """Of `DiscreteDistribution` one symbol at a time, on examples that are even over the symbols."""
    size = problem["n_symbols"]
    if size > MOST_SYMBOLS:
        raise NotSimulated(f"simulated for n_symbols up to {MOST_SYMBOLS} only")
    alpha = min(2 * problem.alpha / size, problem.alpha)
    unit = math.ceil(5 / alpha)  # as its cover of a probability has
    if unit * size > MOST_CANDIDATES:
        raise NotSimulated(f"simulated for up to {MOST_CANDIDATES} candidates only: take a larger alpha")
    points = np.arange(unit + 1) / unit
    line = Line.of(np.full(unit + 1, 1 / size), points, problem.m, clipping(alpha, problem.m))
    normal, uniform = draws(size)

    def failure(n: int) -> float:
        epsilon = problem.rate / size
        chosen = [line.nearest_point(n, epsilon, *each) / unit for each in zip(normal, uniform, strict=True)]
        errors = nearest_distributions(np.stack(chosen, axis=1)) - 1 / size
        return float((np.abs(errors).sum(axis=1) / 2 > problem.alpha).mean())

    return users_for(failure, problem.beta)


@dataclass(frozen=True)
class Cover:
    """A selection among distributions on 2 or 3 symbols, where examples are even."""

    line: Line
    members: npt.NDArray[np.int64]
    bad: npt.NDArray[np.bool_]
    rate: float

    def failure(self, n: int, normal: Floats) -> Floats:
        """How likely a bad member is selected, for each draw of sampling errors by symbol."""
        # Two members are told apart by one symbol, or by all but one.
        scores = np.zeros((normal.shape[1], len(self.members)))
        for errors, masses in zip(normal, self.members.T, strict=True):
            np.maximum(scores, np.abs(self.line.totals(n, errors)[:, masses]), out=scores)
        return misses(scores, self.rate, self.bad)


def _members(size: int, unit: int) -> npt.NDArray[np.int64]:
    """Masses that sum to a unit."""
    first = np.arange(unit + 1)
    if size == 2:
        return np.column_stack([first, unit - first])
    grid = np.stack(np.meshgrid(first, first, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.column_stack([grid, unit - grid.sum(axis=1)])[grid.sum(axis=1) <= unit]


def _users_by_cover(in_rounds: bool, problem: Problem) -> float:
    """Of `DiscreteDistribution` by one selection from a cover, or by rounds at half the accuracy each."""
    size, m = problem["n_symbols"], problem.m
    if size > 3:
        raise NotSimulated("simulated for n_symbols 2 and 3 only")
    doublings = (math.ceil(1 / problem.alpha) - 1).bit_length() - 1 if in_rounds else 0
    coarsest = math.ceil(2.5 * size / (problem.alpha * 2**doublings))
    covers = []
    for r in range(doublings + 1):
        alpha, unit = problem.alpha * 2 ** (doublings - r), coarsest << r
        if unit > MOST_CANDIDATES or unit ** (size - 1) > MOST_CELLS:
            raise NotSimulated("simulated for covers of fewer candidates only: take a larger alpha")
        members = _members(size, unit)
        distances = np.abs(members / unit - 1 / size).sum(axis=1) / 2
        if r:  # what is near the member of the round before, taken to be the truth
            members, distances = members[distances <= 1.5 * alpha], distances[distances <= 1.5 * alpha]
        if len(members) > MOST_MEMBERS:
            raise NotSimulated(f"covers of more than {MOST_MEMBERS} members are refused by default")
        line = Line.of(np.full(unit + 1, 1 / size), np.arange(unit + 1) / unit, m, clipping(alpha, m))
        share = 1.5**r / sum(1.5**each for each in range(doublings + 1))
        # From 5/4 of a round's accuracy on, nothing near its member is near enough to the truth.
        bad = distances > (alpha if r == doublings else 1.25 * alpha)
        covers.append(Cover(line, members, bad, problem.rate * share / (2 * line.sensitivity)))
    normal = draws(size)[0]
    # Shares sum to 1, and so their errors to 0.
    normal = (normal - normal.mean(axis=0)) * math.sqrt(size / (size - 1))

    def failure(n: int) -> float:
        kept = [1 - cover.failure(n, normal) for cover in covers]
        return float(1 - np.prod(kept, axis=0).mean())

    return users_for(failure, problem.beta)


def _search(bound: float, scale: float, alpha: float) -> Any:
    """The search of a mean, whose last round decides."""
    try:
        from userdp.distributions.line_selection import LocationSearch
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    try:
        return LocationSearch("column", bound, scale, alpha)
    except ValueError as error:
        raise NotPlanned(str(error)) from None


@dataclass(frozen=True)
class Location:
    """The last round of the search of a mean."""

    line: Line
    points: Floats
    """In units of the standard deviation, from the true mean."""
    share: float
    """Of epsilon, among what one column has."""

    @classmethod
    def of(cls, bound: float, mean: float, scale: float, limit: float, alpha: float, m: int) -> Location:
        """For a true mean and standard deviation; `limit` is the largest standard deviation there may be."""
        search = _search(bound, limit, alpha)
        last = search.rounds[-1]
        if last.n_points > MOST_CANDIDATES:
            raise NotSimulated(f"simulated for up to {MOST_CANDIDATES} candidates only: take a larger alpha")
        # The rounds before are taken to be right: the line is about the point that is nearest to the mean.
        middle = mean if len(search.rounds) > 1 else 0.0
        points = (np.arange(last.n_points) - (last.n_points - 1) / 2) * last.step + middle
        thresholds = ((points[1:] + points[:-1]) / 2 - mean) / scale
        beyond = np.array([math.erfc(each / math.sqrt(2)) / 2 for each in thresholds])
        line = Line.of(beyond, np.full(len(thresholds), 0.5), m, clipping(alpha, m))
        return cls(line, (points - mean) / scale, 2 / (len(search.rounds) + 1))

    def errors(self, n: int, epsilon: float, normal: Floats, uniform: Floats) -> Floats:
        """How far off the mean is, in standard deviations."""
        cells = self.line.median_cell(n, epsilon * self.share, normal, uniform)
        return self.points[cells.astype(np.int64)]


def _users_of_location(problem: Problem) -> float:
    """Of `GaussianMean`, a column at a time."""
    d, bound = problem["n_columns"], problem["mean_bound"]
    if d > MOST_SYMBOLS:
        raise NotSimulated(f"simulated for n_columns up to {MOST_SYMBOLS} only")
    column = Location.of(bound, bound / 2 / math.sqrt(d), 1.0, 1.0, problem.alpha / math.sqrt(d), problem.m)
    normal, uniform = draws(d)

    def failure(n: int) -> float:
        errors = [column.errors(n, problem.rate / d, *each) for each in zip(normal, uniform, strict=True)]
        return float((distance_of_means(np.stack(errors, axis=1)) > problem.alpha).mean())

    return users_for(failure, problem.beta)


def _users_of_normal(problem: Problem) -> float:
    """Of `GaussianDistribution` in one column: a location and a scale."""
    if problem["n_columns"] > 1:
        raise NotSimulated("simulated for one column only")
    limit, alpha, m = math.sqrt(problem["kappa"]), problem.alpha / 2, problem.m
    scale = math.sqrt(max(problem["kappa"] / 2, 1))
    place = Location.of(problem["mean_bound"], problem["mean_bound"] / 2, scale, limit, alpha, m)
    if limit <= 1:
        raise NotSimulated("simulated for kappa above 1 only")
    # Candidates are powers of a ratio; a half of all examples is within 0.674 standard deviations of the mean.
    n_points = max(2, math.ceil(10 * math.log(limit) / alpha) + 1)
    if n_points > MOST_CANDIDATES:
        raise NotSimulated(f"simulated for up to {MOST_CANDIDATES} candidates only: take a larger alpha")
    ratio = math.log(limit) / (n_points - 1)
    within = QUARTER * np.exp((np.arange(n_points - 1) + 0.5) * ratio) / scale
    beyond = np.array([math.erfc(each / math.sqrt(2)) for each in within])
    width = Line.of(beyond, np.full(len(within), 0.5), m, clipping(alpha, m))
    (first, second), (one, two) = draws(2)
    half = 2 / (2 + 2 / place.share)  # the shares are 2 for a last round and for a scale, 1 for each round before
    epsilon = problem.rate

    def failure(n: int) -> float:
        shifts = place.errors(n, epsilon * half / place.share, first, one)
        ratios = np.exp(width.median_cell(n, epsilon * half, second, two) * ratio) / scale
        return float((distance_of_normals(shifts, ratios) > problem.alpha).mean())

    return users_for(failure, problem.beta)


def _proved(name: str, **given: Callable[[Problem], Any]) -> Callable[[Problem], int]:
    """The number of the class's `users_needed`."""

    def proved(problem: Problem) -> int:
        try:
            kind = getattr(import_module("userdp.distributions"), name)
        except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
            raise NotPlanned(str(error)) from None
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


def _always(value: Any) -> Callable[[Problem], Any]:
    return lambda problem: value


WITHIN = "all learners, of any distribution, of all distributions"
SYMBOLS = named_count("n_symbols", "symbols of a record, or of each of its columns", 2, MOST_COLUMNS)
DISCRETE_ROW = "GKKMMZ23: Table 1, discrete distributions, users, this paper"
COVERS = "[GKKMMZ23, Theorem 41] with explicit constants: DiscreteDistribution.users_needed"
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
                proved=_proved("DiscreteDistribution", n_symbols=_value("n_symbols"), method=_always(name)),
                terms=term(users),
            )
            for name, users in (
                ("joint", partial(_users_by_cover, False)),
                ("coarse-to-fine", partial(_users_by_cover, True)),
                ("symbols", _users_by_symbol),
            )
        ),
        *usual_ways(
            (
                "counts of one record of each user, with Laplace noise (userdp.tables)",
                "counts of records at epsilon / m, with Laplace noise",
                "each user's shares of the symbols, summed with Laplace noise",
            ),
            "",
            _users_of_shares,
        ),
    ),
    data="examples are even over the symbols, independently",
    bound=Bound(
        f"{WITHIN} on so many symbols",
        by_packings(lambda asked: packings.discrete(asked["n_symbols"], asked.alpha, asked.m)),
        (SYMBOLS,),
    ),
)


PRODUCT_ROW = "GKKMMZ23: Table 1, product distributions, users, this paper"


def _product(asked: Asked) -> Iterable[packings.Packing]:
    k, d = asked["n_symbols"], asked["dimension"]
    if k * d > MOST_COLUMNS:
        raise ValueError(f"n_symbols * dimension must be at most {MOST_COLUMNS}; got {k} and {d}")
    return packings.product(k, d, asked.alpha, asked.m)


PRODUCT = Task(
    name="product",
    question="the distribution of users' records of several independent symbols",
    measure="the total variation distance",
    parameters=(
        Parameter("n_symbols", "how many symbols each column has", counts_from(2, 1024)),
        Parameter("n_columns", "how many columns", counts_from(1, 1024), called="dimension"),
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
                    method=_always(name),
                ),
            )
            for name in ("joint", "coordinate")
        ),
    ),
    bound=Bound(
        f"{WITHIN} that are products of so many columns of symbols", by_packings(_product), (SYMBOLS, DIMENSION)
    ),
    missing=dict.fromkeys(BASELINES, "counts of every column with noise: nothing is proved, and nothing was simulated"),
)


def _at_least_one(value: Any, name: str) -> float:
    number = positive(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1; got {short_repr(value)}")
    return number


def _kappa(value: Any, name: str) -> float:
    number = real(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1; got {short_repr(value)}")
    return number


COLUMNS = Parameter("n_columns", "how many columns", counts_from(1, 1024), 1, "dimension")
LONGEST = Parameter("mean_bound", "R, of the norm of the mean, in standard deviations", real)
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
            terms=term(_users_of_location),
        ),
        *usual_ways(
            (
                "the mean of one record of each user, cut at the bound, with Laplace noise",
                "the mean of records at epsilon / m, cut at the bound, with Laplace noise",
                "the mean of users' means, cut at the bound, with Laplace noise (WinsorizedMean)",
            ),
            "",
            _users_of_means,
        ),
    ),
    bound=Bound(
        f"{WITHIN} that are normal with covariance 1 and a mean in the ball",
        by_packings(
            lambda asked: packings.gaussian_means(asked["dimension"], asked["mean_bound"], asked.alpha, asked.m)
        ),
        (LONGEST, DIMENSION),
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
        Parameter("kappa", "the eigenvalues of the covariance are from 1 to it", _at_least_one, 4.0),
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
            terms=term(_users_of_normal),
        ),
        Method(
            "one record per person",
            "GaussianDistribution() on the first record of each user",
            theorem="GaussianDistribution.users_needed",
            proved=_one_normal,
            terms=term(of_one_record(_users_of_normal)),
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            "GaussianDistribution(epsilon=epsilon / m) where each record is a user",
            theorem="GaussianDistribution.users_needed",
            proved=rounded_up(of_records(lambda problem: float(_proved_normal(problem)))),
            terms=term(of_records(_users_of_normal)),
            baseline="group privacy",
        ),
    ),
    bound=Bound(
        f"{WITHIN} that are normal with a mean in the ball and a covariance from I to kappa I",
        by_packings(
            lambda asked: packings.gaussians(
                asked["dimension"], asked["mean_bound"], asked["kappa"], asked.alpha, asked.m
            )
        ),
        (LONGEST, Parameter("kappa", "covariances are from I to kappa I", _kappa), DIMENSION),
    ),
    data="a mean of half the bound and a variance of half of kappa, but at least 1; one column",
    missing={
        "per-user clipping": "noise for second moments over the whole range is not shipped as an estimate of a "
        "distribution"
    },
)
