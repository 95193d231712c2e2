"""User-level differential privacy: exact certified verdicts when one user gives several records.

The public packages, from the ground up:

* `userdp.exact`: privacy levels and finite distributions, exactly
* `userdp.divergence`: certified divergences of two finite distributions, decided comparisons
* `userdp.algorithms`: finite algorithms, the things that can be audited exactly
* `userdp.report`: audit reports; they can be read and verified without the compiled core
* `userdp.audit`: exact audits over neighboring datasets, with witness and certificate
* `userdp.lddp`: exact checks of stability under deletion of users
* `userdp.delstab`: any finite algorithm made private for users
* `userdp.item_to_user`: from item level to user level: subsampled distributions, plans, stability
* `userdp.accounting`: composition, zero-concentrated privacy, ledgers, group privacy, subsampling
* `userdp.mechanisms`: noise, choices and the item that most users have, with exactly known distributions
* `userdp.users`: users' data: who gave which rows, and how they are read
* `userdp.optimal`: mechanisms of least loss in small worlds, with proofs that there are no better ones
* `userdp.estimators`: what all estimators share, and what a fit promises
* `userdp.public_randomness`: public randomness by which users with similar data draw the same answer
* `userdp.concepts`: concept classes and their representations
* `userdp.dimensions`: VC, Littlestone and representation dimensions of finite classes, exactly
* `userdp.stability`: learners that mostly agree, and how stable they are
* `userdp.protocols`: the local and the shuffle model, with clients and servers on different machines
* `userdp.learners`: classifiers and selectors for users who give several examples each
* `userdp.distributions`: distributions from users' examples
* `userdp.means`: means of users' vectors, and adaptive queries
* `userdp.optimization`: linear and logistic regression, descents, the best of finitely many candidates
* `userdp.tables`: counts, sums, means and quantiles of a data frame with a user-id column
* `userdp.planning`: predicted errors of methods, numbers of users, lower bounds
* `userdp.model_selection`: folds by public ids, for cross-validation
* `userdp.testing`: assertions and strategies for tests of privacy, and options for pytest
* `userdp.datasets`: real users' data for examples

The names below are loaded on first use.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers know the name; importing typing takes half of the time
if TYPE_CHECKING:
    from typing import Any

    from userdp.algorithms import (
        AdditiveAlgorithm,
        FiniteAlgorithm,
        SummedScoreEM,
        SymmetricAlgorithm,
        finite_algorithm,
    )
    from userdp.audit import audit_dataset, audit_item_level, audit_pair, audit_sensitivity, audit_user_level
    from userdp.delstab import BOTTOM, DelStab
    from userdp.divergence import hockey_stick, is_indistinguishable
    from userdp.exact import Bounds, LogRatio, Pmf, exact_pmf
    from userdp.exceptions import (
        BudgetError,
        InsecureRandomnessWarning,
        NoisyFitWarning,
        NotDeterministicError,
        PrivacyBudgetError,
        SureRefusalWarning,
        TooFewUsersWarning,
    )
    from userdp.item_to_user import audit_perfect_generalization
    from userdp.lddp import (
        LDDPResult,
        PairwiseResult,
        check_lddp,
        pairwise_indistinguishable,
        pairwise_max_divergence,
    )
    from userdp.mechanisms import TruncatedDiscreteLaplace
    from userdp.report import AuditReport
    from userdp.stability import audit_stability

_NAMES = {
    "algorithms": "AdditiveAlgorithm FiniteAlgorithm SummedScoreEM SymmetricAlgorithm finite_algorithm",
    "audit": "audit_dataset audit_item_level audit_pair audit_sensitivity audit_user_level",
    "delstab": "BOTTOM DelStab",
    "divergence": "hockey_stick is_indistinguishable",
    "exact": "Bounds LogRatio Pmf exact_pmf",
    "exceptions": "BudgetError InsecureRandomnessWarning NoisyFitWarning NotDeterministicError PrivacyBudgetError "
    "SureRefusalWarning TooFewUsersWarning",
    "item_to_user": "audit_perfect_generalization",
    "lddp": "LDDPResult PairwiseResult check_lddp pairwise_indistinguishable pairwise_max_divergence",
    "mechanisms": "TruncatedDiscreteLaplace",
    "report": "AuditReport",
    "stability": "audit_stability",
}
"""Which package has which of the names below."""
_PACKAGES = (
    *_NAMES,
    "accounting",
    "concepts",
    "datasets",
    "dimensions",
    "distributions",
    "estimators",
    "learners",
    "means",
    "model_selection",
    "optimal",
    "optimization",
    "planning",
    "protocols",
    "public_randomness",
    "tables",
    "testing",
    "users",
)
_HOME = {name: package for package, names in _NAMES.items() for name in names.split()}

__all__ = [
    "BOTTOM",
    "AdditiveAlgorithm",
    "AuditReport",
    "Bounds",
    "BudgetError",
    "DelStab",
    "FiniteAlgorithm",
    "InsecureRandomnessWarning",
    "LDDPResult",
    "LogRatio",
    "NoisyFitWarning",
    "NotDeterministicError",
    "PairwiseResult",
    "Pmf",
    "PrivacyBudgetError",
    "SummedScoreEM",
    "SureRefusalWarning",
    "SymmetricAlgorithm",
    "TooFewUsersWarning",
    "TruncatedDiscreteLaplace",
    "audit_dataset",
    "audit_item_level",
    "audit_pair",
    "audit_perfect_generalization",
    "audit_sensitivity",
    "audit_stability",
    "audit_user_level",
    "check_lddp",
    "exact_pmf",
    "finite_algorithm",
    "hockey_stick",
    "is_indistinguishable",
    "pairwise_indistinguishable",
    "pairwise_max_divergence",
]


def __getattr__(name: str) -> Any:
    # Lazy, so that reports can be verified where the compiled core cannot be imported.
    if name in _HOME:
        return getattr(importlib.import_module(f"userdp.{_HOME[name]}"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"userdp.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("userdp")
    raise AttributeError(f"module 'userdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__version__"])
