"""How many rows people need for a statistical-query algorithm to give most of them the same hypothesis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.learners._ranges import open_unit_fraction
from userdp.stability._queries import StatisticalQueryAlgorithm, check_algorithm

__all__ = ["QueryParameters", "query_parameters"]


@dataclass(frozen=True)
class QueryParameters:
    """What a statistical-query algorithm needs to be stable.

    Attributes
    ----------
    intervals : int
        I: answers are multiples of 1/I.
    queries : int
        q, the most there are.
    rows : int
        Rows of each user that are enough.
    fresh_rows : int
        As many where every query has rows of its own, as GKM21's Algorithm 5 has it: q times as many.
    """

    intervals: int
    queries: int
    rows: int

    @property
    def fresh_rows(self) -> int:
        """Rows of each user where every query has its own."""
        return self.queries * self.rows


def query_parameters(algorithm: StatisticalQueryAlgorithm, *, agreement: Any, failure: Any) -> QueryParameters:
    """Rows of each user with which an algorithm is (agreement, 1 - failure)-pseudo-globally stable.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
    agreement : float, Fraction or decimal string
        eta in (0, 1): the part of users who get the hypothesis that is the canonical one for the public seed.
    failure : float, Fraction or decimal string
        v in (0, 1): the part of public seeds for which that may not be so.

    Returns
    -------
    QueryParameters
        With rows = ceil(variance (I q / (v (1 - eta)))^2).

    Notes
    -----
    The chance that a user's hypothesis is not the one that the means of the distribution give is at most
    q I sqrt(variance / rows) <= v (1 - eta), and Markov's inequality says for how many seeds it is at most 1 - eta.
    This is for every distribution, and most are far kinder: measure the agreement on synthetic data before you believe
    that so many rows are needed. Privacy needs none of it. Proof: docs/proofs/statistical_queries.md.

    Examples
    --------
    >>> from userdp.stability import DecisionListQueries
    >>> query_parameters(DecisionListQueries(3, alpha="0.1", length=2), agreement="0.8", failure="0.5")
    QueryParameters(intervals=140, queries=17, rows=8092000)
    """
    check_algorithm(algorithm)
    eta, v = open_unit_fraction(agreement, "agreement"), open_unit_fraction(failure, "failure")
    ratio: Fraction = algorithm.intervals * algorithm.max_queries / (v * (1 - eta))
    return QueryParameters(algorithm.intervals, algorithm.max_queries, math.ceil(algorithm.variance * ratio**2))
