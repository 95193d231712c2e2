"""What the privacy loss of a mechanism, a cost or an audited algorithm is taken from."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from userdp.accounting.cost import PrivacyCost
from userdp.accounting.losses import MOST_LINES, BoundedRangeLoss, GaussianLoss, PureLoss, ReleaseLoss
from userdp.exact.numbers import short_repr
from userdp.exceptions import BudgetError
from userdp.report import AuditReport

LEAST_MU_SQUARED = Fraction(1, 2**40)
"""Less noise budget than this is not told apart."""


def stated_cost(mechanism: Any, arguments: Mapping[str, Any]) -> PrivacyCost:
    """What a mechanism that says no more of its privacy loss says that it costs."""
    if arguments:
        raise TypeError(f"{type(mechanism).__name__} takes no {', '.join(arguments)} for its privacy loss")
    cost = mechanism if isinstance(mechanism, PrivacyCost) else getattr(mechanism, "cost", None)
    if not isinstance(cost, PrivacyCost):
        raise TypeError(
            "mechanism must have privacy_loss() or a cost; of algorithms with outputs and pmf make an audit, and take "
            f"from_audit(report); got {type(mechanism).__name__}"
        )
    return cost


def release_of_cost(cost: PrivacyCost) -> tuple[ReleaseLoss, Fraction]:
    """The most that a cost says of the privacy loss, and how far the release is from it."""
    if cost.bounded_range is not None:
        return BoundedRangeLoss.checked(cost.bounded_range), Fraction(0)
    # Nothing that a pair of distributions says has a delta beside it.
    if cost.mu2 is not None and not cost.added_delta:
        return GaussianLoss.checked(max(cost.mu2, LEAST_MU_SQUARED)), cost.distance
    if cost.epsilon is not None:
        return PureLoss.checked(cost.epsilon, cost.delta), Fraction(0)
    raise ValueError(
        "mechanism: a cost in rho alone, or with a delta beside it, says nothing of the privacy loss; it needs a mu2 "
        "without added_delta, or an epsilon"
    )


def pairs_of_audit(report: Any) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """The different pairs of distributions on neighbors that an audit found."""
    if not isinstance(report, AuditReport):
        raise TypeError(f"report must be an AuditReport; got {short_repr(report)}")
    if report.pmf_error:
        raise ValueError("report: the algorithm's distributions have a pmf_error; only exact ones are composed")
    if not report.pmfs:
        raise ValueError("report holds a sample of the distributions; make the audit again in this process")
    pairs = [(report.pmfs[i], report.pmfs[j]) for i, j in report.pmf_pairs]
    lines = 2 * sum(len(p) + 1 for p, _ in pairs)
    if lines > MOST_LINES:
        raise BudgetError(
            f"the audit's {len(pairs)} different pairs have {lines} pieces of curves in both orders, where "
            f"{MOST_LINES} are allowed; merge outputs, or audit fewer users"
        )
    return pairs
