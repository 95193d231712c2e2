"""The demonstration: two ways to publish the share of union members among 545 real users, audited exactly.

Users answered in eight years. A *vote* counts every user once; a *user-year count* counts every answer. Both
publish a band of the share by the exponential mechanism, calibrated to one vote and to one answer. Both claim
epsilon = 1, delta = 10^-6 for a user. The vote keeps the claim; the count of answers does not, and the audit
names the user, the other history and the band that show it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from userdp.algorithms import AdditiveAlgorithm, Dataset
from userdp.audit import audit_dataset, audit_user_level
from userdp.exact.pmf import Pmf
from userdp.report import AuditReport

__all__ = [
    "CLAIMED_DELTA",
    "CLAIMED_EPSILON",
    "COUNT",
    "VOTE",
    "DemoAudit",
    "person_year_count",
    "run_demo",
    "union_vote",
]

CLAIMED_EPSILON = 1
CLAIMED_DELTA = Fraction(1, 10**6)
BANDS = tuple(f"{low}-{low + 5}%" for low in range(0, 100, 5))
FARTHEST = 200
"""Distances are capped at this public number: it keeps the weights short, and the sensitivity at 1."""
BASE = Fraction(8, 5)
"""The weight ratio of distances that differ by 1. One step changes every weight, and their sum, by a factor of at most
BASE each, so epsilon = 2 ln(8/5) = ln 2.56 < 1."""


def _band_pmf(total: int, largest: int) -> Pmf:
    """Exponential mechanism over the bands of total / largest; the score is minus the distance of total to the band."""
    weights = []
    for low in range(0, 100, 5):
        first, last = -(-low * largest // 100), -(-(low + 5) * largest // 100) - 1
        if low == 95:
            last = largest
        distance = min(max(first - total, total - last, 0), FARTHEST)
        weights.append(BASE.denominator**distance * BASE.numerator ** (FARTHEST - distance))
    return Pmf(BANDS, tuple(weights))


def union_vote(years: int) -> AdditiveAlgorithm:
    """Each user votes once: member in at least half of the years. User-level private with epsilon = ln 2.56.

    Parameters
    ----------
    years : int
        Answers per user, public.

    Returns
    -------
    AdditiveAlgorithm
        Outputs are 5% bands of the share of votes. Neighbors: replace one user. Sensitivity of the count: 1. The
        distance to each band then changes by at most 1 and with it every weight by a factor in [5/8, 8/5], and so
        does their sum: e^epsilon <= (8/5)^2.
    """
    return AdditiveAlgorithm(
        BANDS,
        statistic=lambda user: int(2 * sum(user) >= years),
        pmf_of_total=_band_pmf,
        statistic_range=(0, 1),
        name="union vote, one per user",
    )


def person_year_count(years: int) -> AdditiveAlgorithm:
    """Each answer counts, with the noise of one answer: item-level private only.

    Parameters
    ----------
    years : int
        Answers per user, public.

    Returns
    -------
    AdditiveAlgorithm
        Outputs are 5% bands of the share of user-years. Neighbors for its calibration: replace one answer
        (sensitivity 1). Replacing one user changes the count by up to `years`.
    """
    return AdditiveAlgorithm(
        BANDS,
        statistic=sum,
        pmf_of_total=lambda total, n_users: _band_pmf(total, n_users * years),
        statistic_range=(0, years),
        name="union user-years, noise for one answer",
    )


@dataclass(frozen=True)
class DemoAudit:
    """One audit of the demonstration, and the verdict it should reach."""

    title: str
    report: AuditReport
    expected: bool
    mechanism: str
    """Where the mechanism is for the panel, as ``userdp verify --mechanism`` takes it."""
    suffix: str = ""
    """What the name of the certificate's file ends in."""

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.report.holds is self.expected


def run_demo(users: Dataset) -> list[DemoAudit]:
    """Audit the two releases on users' answers.

    Parameters
    ----------
    users : dataset
        n users, each a tuple of the same number of 0/1 answers.

    Returns
    -------
    list of DemoAudit
        The vote on these users, the vote on every dataset of as many users, and the count of answers on these
        users. Every audit replaces one user by any history of answers.

    Raises
    ------
    ValueError
        If the users do not all have the same number of answers, or an answer is not 0 or 1.

    Examples
    --------
    >>> users = ((0, 0), (1, 0), (1, 1), (0, 0), (0, 0))
    >>> [audit.report.holds for audit in run_demo(users)]
    [True, True, False]
    """
    years = len(users[0]) if users else 0
    if years == 0 or any(len(user) != years or not set(user) <= {0, 1} for user in users):
        raise ValueError("users must all have the same number of answers, each 0 or 1")
    histories = list(itertools.product((0, 1), repeat=years))
    vote, count = union_vote(years), person_year_count(years)

    def on_these_users(mechanism: AdditiveAlgorithm) -> AuditReport:
        return audit_dataset(mechanism, users, records=histories, epsilon=CLAIMED_EPSILON, delta=CLAIMED_DELTA)

    everywhere = audit_user_level(
        vote,
        universe=(0, 1),
        n_users=len(users),
        n_examples=years,
        epsilon=CLAIMED_EPSILON,
        delta=CLAIMED_DELTA,
    )
    return [
        DemoAudit("A vote per user, these users", on_these_users(vote), True, "userdp.demo:VOTE", "-vote"),
        DemoAudit(f"A vote per user, every dataset of {len(users)} users", everywhere, True, "userdp.demo:VOTE"),
        DemoAudit("Every answer counts, these users", on_these_users(count), False, "userdp.demo:COUNT", "-count"),
    ]


YEARS = 8
"""Answers of each user of the wage panel."""
VOTE, COUNT = union_vote(YEARS), person_year_count(YEARS)
"""The mechanisms of the demonstration, by which its certificates are verified."""
