"""Parameters of stable learners: how agreement, stability and sample sizes depend on each other.

Plans in floating point: they say how many rows are enough, and no privacy claim rests on them. Statements and proofs:
docs/proofs/stability.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from userdp.exact.numbers import (
    COUNTED,
    Delta,
    check_count,
    least,
    open_unit_fraction,
    parse_delta,
    short_repr,
    within_floats,
)
from userdp.stability.statistical_queries import StatisticalQueryAlgorithm, check_algorithm

Calibration: TypeAlias = Literal["tight", "paper"]
Method: TypeAlias = Literal["race", "darts"]
"""How distributions are drawn from with public randomness."""

SHARES = 400
"""Splits of the failure budget that are tried."""


@dataclass(frozen=True, kw_only=True)
class RepresentationParameters:
    """What makes `RepresentationLearner` stable and accurate.

    Attributes
    ----------
    gamma : float
        For `RepresentationLearner`.
    m : int
        Rows of each user that are enough.
    alpha, beta : float
        With probability 1 - beta over the public seed (and the draw of H), the hypothesis in common has error at most
        alpha.
    eta, nu : float
        With probability nu over the public seed, a user votes for it with probability at least eta.
    """

    gamma: float
    m: int
    alpha: float
    beta: float
    eta: float
    nu: float


@dataclass(frozen=True, kw_only=True)
class ListParameters:
    """What makes `ListStabilityLearner` stable and accurate.

    Attributes
    ----------
    gamma : float
    k1, k2 : int
        For `ListStabilityLearner`, with the same list stability.
    listed_failure : float
        The hypothesis in common has error at most alpha, for every public seed, when the list learner lists some
        hypothesis of error above alpha with probability below this, 0.9 tau.
    eta, nu : float
        With probability nu over the public seed, a user votes for it with probability at least eta.
    """

    gamma: float
    k1: int
    k2: int
    listed_failure: float
    eta: float
    nu: float


def representation_parameters(
    size: int,
    *,
    alpha: Delta,
    beta: Delta,
    eta: Delta = 0.9,
    nu: Delta | None = None,
    realizable: bool = False,
    calibration: Calibration = "tight",
) -> RepresentationParameters:
    """The gamma and the number of rows with which `RepresentationLearner` is stable and accurate.

    Parameters
    ----------
    size : int
        The number of hypotheses |H|, at least 1.
    alpha, beta : number in (0, 1)
        The error wanted, and the probability over public randomness that it is missed.
    eta : number in (0, 1)
        How likely a user should vote for the hypothesis in common.
    nu : number in (0, 1), optional
        For how much of the public randomness; 1 - beta by default.
    realizable : bool
        Whether H contains the target itself, as when H is the class: then gamma = ln(|H| / beta) / alpha. Otherwise H
        is drawn from an (alpha / 2, beta / 2)-representation, and gamma = 2 ln(2 |H| / beta) / alpha.
    calibration : {"tight", "paper"}
        "paper" has the gamma and m printed in [GKM21, Theorem 26], for eta = nu = 1 - beta whatever is asked.

    Notes
    -----
    Both are worst cases over all distributions (proof of "tight": docs/proofs/stability.md). Far fewer rows are enough
    on most: see `measure_agreement`.

    References
    ----------
    [GKM21, Theorem 26]. [GKM21, Lemma 28].

    Examples
    --------
    >>> wanted = dict(alpha=0.1, beta=0.1, eta=0.9)
    >>> f"{representation_parameters(16, **wanted, calibration='paper').m:.3g}"
    '9.79e+15'
    >>> f"{representation_parameters(16, **wanted).m:.3g}"
    '8.07e+08'
    """
    count = check_count(size, "size", most=COUNTED)
    error, failure, threshold = (
        within_floats(open_unit_fraction(v, n), n) for v, n in ((alpha, "alpha"), (beta, "beta"), (eta, "eta"))
    )
    share = 1 - failure if nu is None else float(open_unit_fraction(nu, "nu"))
    _check_calibration(calibration)
    if calibration == "paper":
        d = math.log2(count)
        gamma = 2 * (d + math.log(1 / failure) + 10) / error
        m = max(1, math.ceil(1e6 * gamma**2 * d * math.log(1 / failure) / failure**4))
        threshold = share = 1 - failure
    else:
        gamma = math.log(count / failure) / error if realizable else 2 * math.log(2 * count / failure) / error
        budget = (1 - share) * (1 - threshold)

        def rows(z: float) -> float:
            return gamma**2 * math.log(2 * count / z) / (2 * math.log1p(z - budget) ** 2)

        m = math.ceil(min(map(rows, _shares(budget))))
    return RepresentationParameters(gamma=gamma, m=m, alpha=error, beta=failure, eta=threshold, nu=share)


def list_parameters(
    list_size: int,
    *,
    list_eta: Delta,
    eta: Delta = 0.9,
    nu: Delta = 0.9,
    calibration: Calibration = "tight",
) -> ListParameters:
    """The gamma and the numbers of blocks with which `ListStabilityLearner` is stable and accurate.

    Parameters
    ----------
    list_size : int
        The most hypotheses on a list, L >= 1.
    list_eta : number in (0, 1]
        The list stability: some accurate hypothesis is on a list with at least this probability; 1 for `VersionSpace`.
    eta : number in (0, 1)
        How likely a user should vote for the hypothesis in common.
    nu : number in (0, 1)
        For how much of the public randomness.
    calibration : {"tight", "paper"}
        "paper" has the numbers printed in [GKM21, Theorem 20], with k1 rounded up; they need eta = nu, which is the
        theorem's 1 - beta.

    Notes
    -----
    "tight" takes the least numbers that the proof in docs/proofs/stability.md allows, with the share of the failure
    budget (1 - nu) (1 - eta) that makes k1 + k2 least.

    References
    ----------
    [GKM21, Theorem 20]. [GKM21, Lemma 22], [GKM21, Lemma 23] and [GKM21, Lemma 24].

    Examples
    --------
    >>> plan = list_parameters(10, list_eta=1)
    >>> round(plan.gamma, 2), plan.k1, f"{plan.k2:.3g}"
    (25.96, 2397, '4.91e+07')
    """
    count, stability = check_count(list_size, "list_size", most=COUNTED), parse_delta(list_eta, "list_eta")
    if not stability:
        raise ValueError(f"list_eta must be in (0, 1]; got {short_repr(list_eta)}")
    threshold, share = float(open_unit_fraction(eta, "eta")), float(open_unit_fraction(nu, "nu"))
    _check_calibration(calibration)
    tau = within_floats(stability, "list_eta") / 2
    if calibration == "paper":
        if threshold != share:
            raise ValueError(
                f"calibration='paper' needs eta = nu (GKM21's 1 - beta); got {short_repr(eta)} and {short_repr(nu)}"
            )
        beta = 1 - threshold
        log = math.log(count / (tau * beta))
        gamma = 1e6 * log / tau
        k1, k2 = math.ceil(1e6 * log / tau**2), math.ceil(1e6 * gamma**2 * log / beta**4)
    else:
        budget = (1 - share) * (1 - threshold)

        def plan(s: float) -> tuple[float, int, float]:
            frequency = math.log(2 * count / (0.9 * tau * s)) / (0.9 * tau)
            distance = (budget - 2 * s) / (2 - (budget - 2 * s)) - s / 2
            if distance <= 0:
                return frequency, 0, math.inf
            deviation = 2 * math.atanh(distance) / frequency
            return frequency, _first_blocks(count, tau, s), math.log(2 * count / (tau * s)) / (2 * deviation**2)

        best = min(_shares(budget / 2), key=lambda s: sum(plan(s)[1:]))
        gamma, k1, blocks = plan(best)
        k2 = math.ceil(blocks)
    return ListParameters(gamma=gamma, k1=k1, k2=k2, listed_failure=0.9 * tau, eta=threshold, nu=share)


def _first_blocks(count: int, tau: float, share: float) -> int:
    """The least k1 with which the candidates are sandwiched with probability 1 - share."""
    above, below = _kl(tau, 1.1 * tau), _kl(tau, 0.9 * tau)

    def failure(k: int) -> float:
        return count / (1.1 * tau) * math.exp(-k * above) + (count / (0.45 * tau) + 1) * math.exp(-k * below)

    return max(least(lambda k: failure(k) <= share, 0, 1, math.inf), math.ceil(1 / tau))


def _kl(p: float, q: float) -> float:
    """The relative entropy of two coins, 0 < p, q < 1."""
    return p * math.log(p / q) + (1 - p) * math.log1p((q - p) / (1 - q))


def _shares(budget: float) -> list[float]:
    """Parts of a budget from a millionth to all of it, in equal ratios."""
    return [budget * 10 ** (-6 * step / SHARES) for step in range(1, SHARES + 1)]


def _check_calibration(calibration: str) -> None:
    if calibration not in ("tight", "paper"):
        raise ValueError(f"calibration must be 'tight' or 'paper'; got {short_repr(calibration)}")


@dataclass(frozen=True, kw_only=True)
class QueryParameters:
    """What makes `StatisticalQueryLearner` stable.

    Attributes
    ----------
    intervals : int
        I: answers are multiples of 1/I.
    queries : int
        q, the most there are.
    m : int
        Rows of each user that are enough.
    fresh_m : int
        As many where every query has rows of its own, as in [GKM21, Algorithm 5]: q times as many.
    eta, nu : Fraction
        With probability nu over the public seed, a user votes for the hypothesis in common with probability at least
        eta.
    """

    intervals: int
    queries: int
    m: int
    eta: Fraction
    nu: Fraction

    @property
    def fresh_m(self) -> int:
        """Rows of each user where every query has its own."""
        return self.queries * self.m


def query_parameters(algorithm: StatisticalQueryAlgorithm, *, eta: Delta = "0.9", nu: Delta = "0.9") -> QueryParameters:
    """The number of rows with which `StatisticalQueryLearner` is (eta, nu)-pseudo-globally stable.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
    eta : number in (0, 1)
        How likely a user should vote for the hypothesis in common.
    nu : number in (0, 1)
        For how much of the public randomness.

    Returns
    -------
    QueryParameters
        With m = ceil(variance (I q / ((1 - nu) (1 - eta)))^2), exactly.

    Notes
    -----
    A worst case over all distributions that the algorithm's `variance` is good for (`DecisionListQueries`: those which
    some list labels without error): far fewer rows are enough on most, see `measure_agreement`. Proof:
    docs/proofs/statistical_queries.md.

    References
    ----------
    [GKM21, Lemma 32].

    Examples
    --------
    >>> from userdp.stability import DecisionListQueries
    >>> parameters = query_parameters(DecisionListQueries(3, alpha="0.1", length=2), eta="0.8", nu="0.5")
    >>> parameters.intervals, parameters.queries, parameters.m
    (140, 17, 8092000)
    """
    check_algorithm(algorithm)
    agreed, share = open_unit_fraction(eta, "eta"), open_unit_fraction(nu, "nu")
    ratio: Fraction = algorithm.intervals * algorithm.max_queries / ((1 - share) * (1 - agreed))
    return QueryParameters(
        intervals=algorithm.intervals,
        queries=algorithm.max_queries,
        m=math.ceil(algorithm.variance * ratio**2),
        eta=agreed,
        nu=share,
    )
