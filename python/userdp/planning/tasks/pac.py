"""Planning the choice of a hypothesis from a finite class, with labels that one of them explains or that none does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from userdp.dimensions import users_implied
from userdp.exact.numbers import check_count, parse_exact, short_repr
from userdp.exceptions import BudgetError
from userdp.learners.tolerance import candidates_for_t
from userdp.mechanisms import ApproximatePrivateMode
from userdp.mechanisms.mode import binomial_window
from userdp.planning import packings
from userdp.planning.bounds import MOST_COLUMNS, named_count, size
from userdp.planning.chances import (
    FLIPPED,
    Floats,
    binomial,
    draws_for,
    miss_of_score,
    misses,
    of_one_record,
    of_records,
    rate_row,
    rounded_up,
    selection_users,
    term,
    users_for,
    usual_ways,
)
from userdp.planning.fano import MOST_USERS as MOST_BOUNDED
from userdp.planning.hard_tasks import (
    Term,
    expected,
    finite_class_errors,
    finite_class_terms,
    larger,
    merged,
    packed,
)
from userdp.planning.least_error import proved_surrogate
from userdp.planning.problem import (
    Asked,
    AskedError,
    Bound,
    Method,
    NotPlanned,
    NotSimulated,
    Parameter,
    Problem,
    Task,
    between,
    counts_from,
)

FARTHER = 2
"""Hypotheses of the reference data are worse than the best one by so many times alpha."""
SEEDS, SEED = 512, 7
MOST_DRAWN = 512
"""Of more hypotheses than that, so many are drawn, and each stands for several."""
NEEDS_DELTA = "it needs delta > 0, as votes are selected by a threshold"
MOST_RACED = 2**14
"""Hypotheses whose races for users' votes are drawn."""
MOST_ROWS = 2**12


def disagreement(alpha: float, eta: float = 0.0) -> float:
    """On which part of the examples of the reference data a bad hypothesis says something else than the best one."""
    part = FARTHER * alpha / (1 - 2 * eta)
    if part >= 1:
        raise NotSimulated(
            f"simulated for alpha below {(1 - 2 * eta) / FARTHER:g} only, where hypotheses can be so bad"
        )
    return part


def rows_that_count(m: int, alpha: float) -> int:
    """Of each user: see `userdp.learners.RealizablePACClassifier`."""
    return min(m, math.floor(1 / alpha))


# Realizable: the best hypothesis fails nobody, and each of the others fails users independently.


@lru_cache(maxsize=64)
def _laguerre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    return nodes, weights


def realizable_failure(n: int, candidates: int, epsilon: float, failing: float) -> float:
    """The probability that one of the bad hypotheses is drawn, each of which fails Bin(n, failing) users."""
    if candidates <= FLIPPED:
        # The integral of (1 - h + h u)^(k - 1) over u is what the best one has, with h a bad one's mean coin.
        heads = math.exp(n * math.log1p(failing * math.expm1(-epsilon / 2)))
        log_tails = math.log1p(-heads) if heads < 1 else -math.inf
        return 1 + math.expm1(candidates * log_tails) / (candidates * heads)
    # 1 / (1 + sum W) is the integral of exp(-s) exp(-s sum W), and the W are independent.
    failed, masses = (np.array([float(n)]), np.ones(1)) if failing >= 1 else binomial_window(n, 1 - failing)
    nodes, weights = _laguerre()
    lost = np.expm1(-nodes[:, None] * np.exp(-epsilon / 2 * failed)) @ masses
    return float(1 - np.exp((candidates - 1) * np.log1p(np.maximum(lost, -1 + 1e-15))) @ weights)


def users_of_realizable(problem: Problem) -> float:
    """Users for which `RealizablePACClassifier` draws a bad hypothesis with probability beta, on reference data."""
    size, wrong = problem["n_hypotheses"], disagreement(problem.alpha)
    failing = 1 - (1 - wrong) ** rows_that_count(problem.m, problem.alpha)
    return users_for(lambda n: realizable_failure(n, size, problem.rate, failing), problem.beta)


def proved_realizable(problem: Problem) -> int:
    """The number of `RealizablePACClassifier.users_needed`."""
    try:
        from userdp.concepts import Thresholds
        from userdp.learners import RealizablePACClassifier
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None

    model = RealizablePACClassifier(
        epsilon=problem.epsilon,
        concepts=Thresholds(problem["n_hypotheses"] - 1),
        m=problem.m,
        alpha=problem.alpha,
        beta=problem.beta,
        classes=(0, 1),
    )
    try:
        return model.users_needed()
    except ValueError as error:
        raise NotPlanned(str(error)) from None


def _grouped_realizable(problem: Problem) -> float:
    return of_records(lambda each: float(proved_realizable(each)))(problem)


# Correlated sampling: users vote with the exponential race of one public seed, and a mode is selected.


def gamma_of(size: int, alpha: float) -> float:
    """The default of `CorrelatedSamplingClassifier`, whose own beta is 0.1 by default."""
    return math.log(size / 0.1) / alpha


@lru_cache(maxsize=256)
def _agreements(size: int, m: int, alpha: float) -> Floats:
    """For seeds drawn once: how likely a user votes for the best hypothesis."""
    rng = np.random.default_rng(SEED)
    race = np.log(rng.exponential(size=(SEEDS, size)))
    # A bad hypothesis with c mistakes loses where -gamma c / m - ln E < -ln E of the best one.
    needed = (race[:, :1] - race[:, 1:]) * m / gamma_of(size, alpha)
    tails = np.cumsum(binomial(m, disagreement(alpha))[::-1])[::-1]
    least = np.clip(np.floor(needed).astype(np.int64) + 1, 0, m + 1)
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.append(np.minimum(tails, 1.0), 0.0))
    agreed: Floats = np.exp(logarithms[least].sum(axis=1))
    return np.round(agreed, 3)


def users_of_correlated(problem: Problem) -> float:
    """Users for which `CorrelatedSamplingClassifier` misses the best hypothesis with probability beta."""
    if not problem.delta:
        raise NotPlanned(NEEDS_DELTA)
    if problem.m > MOST_ROWS:
        raise NotSimulated(f"simulated for m up to {MOST_ROWS} only")
    size = problem["n_hypotheses"]
    if size > MOST_RACED:
        raise NotSimulated(f"simulated for n_hypotheses up to {MOST_RACED} only")
    agreed = _agreements(size, problem.m, problem.alpha)
    if (agreed < 0.5).mean() > problem.beta / 2:
        raise NotPlanned("users with so few records do not agree: raise m, or take a method that scores hypotheses")
    try:
        half_width = ApproximatePrivateMode(epsilon=problem.epsilon, delta=problem.delta).half_width
    except (ValueError, BudgetError) as error:
        raise NotPlanned(str(error)) from None
    noise = np.arange(-half_width, half_width + 1)
    chances = np.exp(-problem.rate / 2 * np.abs(noise))
    chances /= chances.sum()

    parts, numbers = np.unique(agreed, return_counts=True)

    def failure(n: int) -> float:
        below = np.empty(len(parts))
        for place, part in enumerate(parts):
            votes = np.cumsum(binomial(n, float(part)))
            most = half_width + 1 - noise
            below[place] = np.where(most < 0, 0.0, votes[np.clip(most, 0, n)]) @ chances
        return float(np.average(below, weights=numbers))

    return users_for(failure, problem.beta, 2**13)


# Agnostic: a part eta of the labels is wrong. A user's mistakes by the best hypothesis are Y ~ Bin(m, eta). A bad one
# has Y - Bin(Y, p) + Bin(m - Y, p) of them, independently given Y.


def changes(y: int, m: int, p: float) -> Floats:
    """The probabilities of Bin(m - y, p) - Bin(y, p), from -y to m - y."""
    return np.convolve(binomial(y, p)[::-1], binomial(m - y, p))


@lru_cache(maxsize=32)
def _agnostic(m: int, p: float, eta: float, tau: int) -> tuple[Floats, Floats, Floats, Floats]:
    """By Y: its probabilities; for each t, how likely a bad one fails; mean and variance of the clipped change."""
    tolerated = candidates_for_t(m)
    fails = np.zeros((m + 1, len(tolerated)))
    mean, variance = np.zeros(m + 1), np.zeros(m + 1)
    for y in range(m + 1):
        chances, change = changes(y, m, p), np.arange(-y, m - y + 1)
        above = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
        fails[y] = [above[t + 1] for t in tolerated]
        clipped = np.clip(change, -tau, tau)
        mean[y] = chances @ clipped
        variance[y] = chances @ (clipped - mean[y]) ** 2
    return binomial(m, eta), np.clip(fails, 0, 1), mean, np.maximum(variance, 0)


@lru_cache(maxsize=8)
def _normals(m: int, draws: int, drawn: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(SEED)
    return rng.standard_normal((draws, m + 1)), rng.standard_normal((draws, drawn))


def _histograms(n: int, chances: Floats, normal: Floats) -> Floats:
    """Users by Y: normal approximations of multinomial numbers."""
    roots = np.sqrt(chances)
    centered = normal * roots - (normal @ roots)[:, None] * chances
    return np.maximum(n * chances + math.sqrt(n) * centered, 0)


def _sizes(candidates: int) -> Floats:
    """Logarithms of what each drawn hypothesis stands for, the best one first."""
    drawn = min(candidates - 1, MOST_DRAWN)
    return np.concatenate([[0.0], np.full(drawn, math.log((candidates - 1) / drawn))])


def _check_rows(problem: Problem) -> None:
    if problem.m > MOST_ROWS:
        raise NotSimulated(f"simulated for m up to {MOST_ROWS} only")


def users_of_score(problem: Problem) -> float:
    """Users for which the method "score" draws a bad hypothesis with probability beta, on reference data."""
    _check_rows(problem)
    m, eta, size = problem.m, problem["eta"], problem["n_hypotheses"]
    by_y, fails, _, _ = _agnostic(m, disagreement(problem.alpha, eta), eta, m)
    sizes, tolerated = _sizes(size), candidates_for_t(m)
    normal, independent = _normals(m, draws_for(len(tolerated)), len(sizes) - 1)
    best = np.array([np.arange(m + 1) > t for t in tolerated], dtype=np.float64)

    def failure(n: int) -> float:
        users = _histograms(n, by_y, normal)
        scores = np.empty((len(tolerated), len(normal), len(sizes)), dtype=np.float32)
        for place in range(len(tolerated)):
            fail = fails[:, place]
            scores[place, :, 0] = users @ best[place]
            spread = np.sqrt(users @ (fail * (1 - fail)))
            scores[place, :, 1:] = (users @ fail)[:, None] + spread[:, None] * independent
        bad, flips = np.arange(len(sizes)) > 0, size <= FLIPPED
        clipped: Floats = np.clip(scores, 0, n)
        found = miss_of_score(clipped, n, problem.rate, bad, log_sizes=sizes, flips=flips)
        return float(found.mean())

    return users_for(failure, problem.beta)


def tau_of(alpha: float, m: int) -> int:
    """The default tau of the method "pairwise"."""
    try:
        from userdp.learners.clipped_pairwise import clipping_bound
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    return math.ceil(clipping_bound(alpha, m))


def users_of_pairwise(problem: Problem) -> float:
    """The same for the method "pairwise"; where nothing would be clipped, it compares totals."""
    _check_rows(problem)
    m, eta, size = problem.m, problem["eta"], problem["n_hypotheses"]
    tau = min(tau_of(problem.alpha, m), m)
    by_y, _, mean, variance = _agnostic(m, disagreement(problem.alpha, eta), eta, tau)
    sizes = _sizes(size)
    normal, independent = _normals(m, draws_for(1), len(sizes) - 1)
    bad = np.arange(len(sizes)) > 0

    def failure(n: int) -> float:
        users = _histograms(n, by_y, normal)
        totals = (users @ mean)[:, None] + np.sqrt(users @ variance)[:, None] * independent
        # Clipped, the best one's score is the largest of the negative totals, at twice the sensitivity.
        best = np.zeros(len(normal)) if tau >= m else -totals.min(axis=1)
        rate = problem.rate / (2 * (m if tau >= m else 2 * tau))
        scores = np.concatenate([best[:, None], totals], axis=1)
        return float(misses(scores, rate, bad, log_sizes=sizes, flips=size <= FLIPPED).mean())

    return users_for(failure, problem.beta)


def _proved_agnostic(problem: Problem) -> float:
    # Hoeffding's inequality for each hypothesis.
    size = problem["n_hypotheses"]
    return selection_users(problem, math.log(size), math.sqrt(math.log(4 * size / problem.beta) / 2))


def proved_queries(problem: Problem) -> int:
    """Users for `StatisticalQueryClassifier`, by the agreement that is proved for its algorithm."""
    queries, intervals = problem["queries"], problem["intervals"]
    if queries is None or intervals is None:
        raise NotPlanned(
            "its users depend on its algorithm: give queries= and intervals= of it, see query_parameters of "
            "userdp.stability; or measure_agreement says how many users agree"
        )
    if not problem.delta:
        raise NotPlanned(NEEDS_DELTA)
    # docs/proofs/statistical_queries.md: how likely a user's hypothesis is not the common one, over users and seeds.
    variance = 1.0 if problem["query_variance"] is None else problem["query_variance"]
    parted = queries * intervals * math.sqrt(variance / problem.m)
    # For a part of 2 beta / 3 of the seeds it may be more than this; for the others a third of beta is left.
    disagreeing = parted / (2 * problem.beta / 3)
    if disagreeing >= 0.5:
        least = (2 * queries * intervals / (2 * problem.beta / 3)) ** 2 * variance
        raise NotPlanned(f"that users agree is proved from m = {least:,.0f} on; measure_agreement of userdp.stability")
    try:
        mode = ApproximatePrivateMode(epsilon=problem.epsilon, delta=problem.delta)
        return mode.users_needed(agreement=1 - disagreeing, beta=problem.beta)
    except (ValueError, BudgetError) as error:
        raise NotPlanned(str(error)) from None


def _proved_surrogate(problem: Problem) -> int:
    # One record of each user leaves nothing to estimate: it is then the exponential mechanism on errors.
    return proved_surrogate(problem) if problem.m > 1 else rounded_up(_proved_agnostic)(problem)


# --- bounds: classes of so many hypotheses, or that shatter so many points

LARGEST_PRDIM = 2**12
LABELS = "all learners, of any hypotheses, of all distributions of examples"
VC_DIMENSION = named_count("vc_dimension", "so many points are shattered", most=MOST_COLUMNS, default=None)
CLASS_SIZE = named_count("n_hypotheses", "learners that work for every class of so many hypotheses", 2, default=None)


def _prdim(value: Any, name: str) -> int:
    """2 to the power of a dimension, rounded down."""
    dimension = parse_exact(value, name, "a number >= 0")
    if not 0 <= dimension <= LARGEST_PRDIM:
        raise ValueError(f"{name} must be from 0 to {LARGEST_PRDIM}; got {short_repr(value)}")
    whole = math.floor(dimension)
    size = int(2.0 ** float(dimension - whole) * (1 - 1e-12) * 2**52) * 2**whole // 2**52
    return 2**whole if dimension == whole else max(size, 2**whole)


PRDIM = Parameter(
    "prdim", "at most the probabilistic representation dimension for (alpha, 1/4), to base 2", _prdim, None
)


def _class_bound(
    task: str, family: Callable[[int, float, int], Iterable[packings.Packing]]
) -> Callable[[Asked], dict[str, Term]]:
    def terms(asked: Asked) -> dict[str, Term]:
        shattered = asked["vc_dimension"]
        if shattered is None and asked["n_hypotheses"] is not None:
            # Some class of so many has all labels of log2 of them points.
            shattered = asked["n_hypotheses"].bit_length() - 1
        if shattered is None and asked["prdim"] is None:
            raise TypeError(f"vc_dimension, n_hypotheses or prdim is needed for task={task!r}")
        listed = () if shattered is None else family(shattered, asked.alpha, asked.m)
        found = packed(listed, asked.level, asked.failure)
        if asked["prdim"] is not None:
            failure = min(asked.failure * (1 + 1e-12), math.nextafter(1, 0))
            given: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "beta": failure}
            users = users_implied(asked["prdim"], **given, failure="1/4")
            larger(found, "representation", Term(min(users, MOST_BOUNDED), "[GKM21, Lemma 4]"))
        return found

    return terms


def _finite_losses(asked: Asked) -> dict[str, Term]:
    k, bound, m = asked["n_hypotheses"], float(asked["max_loss"]), asked.m
    if asked.beta is not None:
        return packed(packings.finite_losses(k, asked.alpha, bound, m), asked.level, asked.beta)
    terms = expected(lambda accuracy: packings.finite_losses(k, accuracy, bound, m), asked.level, asked.alpha)
    if not asked.level.delta:
        terms = merged(terms, finite_class_terms(k, asked.alpha, m, asked.level.rate, bound))
    return terms


def _finite_risk(asked: AskedError) -> tuple[str, dict[str, float]]:
    if asked["n_hypotheses"] is None:
        raise ValueError("n_hypotheses must be given for 'finite-class'; got None")
    if asked.delta:
        raise ValueError(
            f"delta must be 0 for 'finite-class', which is proved for pure privacy; got {float(asked.delta):g}"
        )
    loss = float(asked["max_loss"])
    return "excess risk", finite_class_errors(asked["n_hypotheses"], asked.n, asked.m, asked.rate, loss)


def _any_count(value: Any, name: str) -> int:
    return check_count(value, name, 2)


MAX_LOSS = Parameter("max_loss", "the largest absolute value of a loss", size, Fraction(1))
FINITE_CLASS = Task(
    name="finite-class",
    question="nearly the best of finitely many hypotheses, whatever the losses are",
    measure="the excess risk",
    bound=Bound(
        "all choices of a hypothesis that work for every class of so many of them, with losses in [-max_loss, "
        "max_loss]",
        _finite_losses,
        (named_count("n_hypotheses", "hypotheses", 2), MAX_LOSS),
        mean=True,
        share=False,
        error=_finite_risk,
        error_parameters=(Parameter("n_hypotheses", "hypotheses", _any_count, None), MAX_LOSS),
    ),
)

HYPOTHESES = Parameter("n_hypotheses", "how many hypotheses the class has", counts_from(2, 2**40))
EXPLAINED = "[GKKMMZ23, Lemma 22], the constants of RealizablePACClassifier.users_needed"
NEARLY_EXPLAINED = "labels that some hypothesis explains, but for alpha / 100 of the examples"
EXPLAINED_DATA = (
    "one hypothesis is right, and each of the others is wrong on 2 alpha of the examples, independently of each other"
)

PAC = Task(
    name="pac",
    question="the hypothesis of a finite class that explains all labels",
    measure="the error",
    parameters=(
        HYPOTHESES,
        Parameter("queries", "of an algorithm by statistical queries: the most that it asks", counts_from(1), None),
        Parameter("intervals", "of the same: into how many steps an answer is rounded", counts_from(1), None),
        Parameter("query_variance", "of the same: the largest variance of a query, by default 1", between(0, 1), None),
    ),
    methods=(
        Method(
            "realizable",
            "RealizablePACClassifier()",
            needs=lambda problem: NEARLY_EXPLAINED,
            row="GKKMMZ23: Table 1, PAC learning, users, this paper",
            rate=rate_row("pac", representation_dimension=lambda problem: math.log(problem["n_hypotheses"])),
            theorem=EXPLAINED,
            proved=proved_realizable,
            terms=term(users_of_realizable),
        ),
        Method(
            "correlated sampling",
            "CorrelatedSamplingClassifier()",
            needs=lambda problem: "labels that some hypothesis explains",
            terms=term(users_of_correlated),
        ),
        Method(
            "statistical queries",
            "StatisticalQueryClassifier(algorithm=...)",
            needs=lambda problem: "an algorithm by queries that finds a good hypothesis, and its queries and intervals",
            theorem="[GKM21, Lemma 32] with all records for each query, and ApproximatePrivateMode.users_needed",
            proved=proved_queries,
        ),
        *usual_ways(
            (
                "RealizablePACClassifier() on the first record of each user",
                "RealizablePACClassifier(epsilon=epsilon / m) where each record is a user",
                "a draw by sums of users' mean numbers of mistakes, each in [0, 1]",
            ),
            EXPLAINED,
            users_of_realizable,
            lambda problem: proved_realizable(problem.at(m=1)),
            rounded_up(_grouped_realizable),
            NEARLY_EXPLAINED,
        ),
    ),
    data=EXPLAINED_DATA,
    largest_alpha=0.5,
    bound=Bound(
        f"{LABELS} that a concept of the class labels",
        _class_bound("pac", packings.realizable),
        (VC_DIMENSION, PRDIM, CLASS_SIZE),
    ),
)


def _check_dimension(problem: Problem) -> None:
    most, given = problem["n_hypotheses"].bit_length() - 1, problem["vc_dimension"]
    if given is not None and given > most:
        raise ValueError(
            f"vc_dimension must be at most log2 n_hypotheses, here {most}, as that many hypotheses are needed to label "
            f"the points in all ways; got {short_repr(given)}"
        )


THEOREM = "Hoeffding's inequality for every hypothesis, and the tail of the exponential mechanism"

AGNOSTIC = Task(
    name="agnostic",
    question="nearly the best hypothesis of a finite class, whatever the labels are",
    measure="the error in excess of the least one",
    parameters=(
        HYPOTHESES,
        Parameter("eta", "the least error, for calibrated numbers", between(0, 0.49), 0.1),
        Parameter(
            "vc_dimension", "of the class, for rates and bounds; by default log2 of its size", counts_from(1), None
        ),
    ),
    methods=(
        Method(
            "score",
            "AgnosticPACClassifier(method='score')",
            terms=term(users_of_score),
        ),
        Method(
            "pairwise",
            "AgnosticPACClassifier(method='pairwise')",
            terms=term(users_of_pairwise),
        ),
        Method(
            "surrogate",
            "AgnosticPACClassifier(method='surrogate')",
            row="LWY24: Table 1, arbitrary class",
            rate=rate_row(
                "agnostic",
                representation_dimension=lambda problem: math.log(problem["n_hypotheses"]),
                vc_dimension=lambda problem: (
                    problem["vc_dimension"] or max(1, math.floor(math.log2(problem["n_hypotheses"])))
                ),
            ),
            theorem="[LWY24, Theorem 4.6] with Massart's inequality and computed gaps, see userdp.planning.least_error",
            proved=_proved_surrogate,
        ),
        *usual_ways(
            (
                "AgnosticPACClassifier() on the first record of each user",
                "AgnosticPACClassifier(epsilon=epsilon / m) where each record is a user",
                "AgnosticPACClassifier(method='pairwise') where nothing is clipped: sums of users' mistakes",
            ),
            THEOREM,
            users_of_score,
            rounded_up(of_one_record(_proved_agnostic)),
            rounded_up(of_records(_proved_agnostic)),
        ),
    ),
    data=(
        "the best hypothesis is wrong on a part eta of the examples, and each of the others says something else on so "
        "many, independently of each other, that its error is larger by 2 alpha"
    ),
    largest_alpha=0.5,
    bound=Bound(f"{LABELS} and labels", _class_bound("agnostic", packings.agnostic), (VC_DIMENSION, PRDIM, CLASS_SIZE)),
    check=_check_dimension,
)
