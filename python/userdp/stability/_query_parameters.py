"""How many rows people need for a statistical-query algorithm to give most of them the same hypothesis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from userdp._numbers import Delta
from userdp.learners._ranges import open_unit_fraction
from userdp.stability._queries import StatisticalQueryAlgorithm, check_algorithm

__all__ = ["QueryParameters", "query_parameters"]


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
        As many where every query has rows of its own, as in GKM21's Algorithm 5: q times as many.
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

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    The chance that a user's hypothesis is not the one that the means of the distribution give is at most
    q I sqrt(variance / m) <= (1 - nu) (1 - eta), and by Markov's inequality it is above 1 - eta for at most 1 - nu of
    the seeds. A worst case over all distributions that the algorithm's `variance` is good for (`DecisionListQueries`:
    those which some list labels without error): far fewer rows are enough on most, see `measure_agreement`. Privacy
    needs none of it. Proof: docs/proofs/statistical_queries.md.

    References
    ----------
    GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling" (NeurIPS 2021), Lemma 32.

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
