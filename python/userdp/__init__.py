"""User-level differential privacy: exact certified verdicts when one person gives several records.

The public modules:

* `userdp.divergence`: certified divergences of two finite distributions, decided comparisons
* `userdp.algorithms`: finite algorithms, the things that can be audited exactly
* `userdp.lddp`: exact checks of stability under deletion of users
* `userdp.delstab`: any finite algorithm made private for users
* `userdp.audit`: exact audits over neighbouring datasets, with witness and certificate
* `userdp.report`: audit reports; they can be read and verified without the compiled core
* `userdp.mechanisms`: noise with an exactly known distribution, exact pmfs
* `userdp.selection`: the item that most people have, chosen privately
* `userdp.dimensions`: VC, Littlestone and representation dimensions of finite classes, exactly
* `userdp.learners`: classifiers and selectors for people who give several examples each
* `userdp.estimation`: distributions from people's examples
* `userdp.stability`: public randomness by which users with similar data draw the same answer
* `userdp.protocols`: the local and the shuffle model, with clients and servers on different machines
* `userdp.reduction`: from item level to user level: subsampled laws, plans, stability
* `userdp.accounting`: composition, zero-concentrated privacy, ledgers, group privacy, subsampling
* `userdp.datasets`: real people's data for examples

The names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from userdp._numbers import Bounds, LogRatio
    from userdp._pmf import Pmf, exact_pmf
    from userdp.algorithms import (
        AdditiveAlgorithm,
        FiniteAlgorithm,
        ScoreSelection,
        SymmetricAlgorithm,
        finite_algorithm,
    )
    from userdp.audit import (
        audit_dataset,
        audit_item_level,
        audit_pair,
        audit_perfect_generalization,
        audit_stability,
        audit_user_level,
    )
    from userdp.delstab import BOTTOM, DelStab
    from userdp.divergence import hockey_stick, is_indistinguishable
    from userdp.exceptions import BudgetError, InsecureRandomnessWarning, PrivacyBudgetError
    from userdp.lddp import (
        LDDPResult,
        PairwiseResult,
        check_lddp,
        pairwise_indistinguishable,
        pairwise_max_divergence,
    )
    from userdp.mechanisms import TruncatedDiscreteLaplace
    from userdp.report import AuditReport

_HOME = {
    "Bounds": "userdp._numbers",
    "LogRatio": "userdp._numbers",
    "Pmf": "userdp._pmf",
    "exact_pmf": "userdp._pmf",
    "AdditiveAlgorithm": "userdp.algorithms",
    "FiniteAlgorithm": "userdp.algorithms",
    "ScoreSelection": "userdp.algorithms",
    "SymmetricAlgorithm": "userdp.algorithms",
    "finite_algorithm": "userdp.algorithms",
    "audit_dataset": "userdp.audit",
    "audit_item_level": "userdp.audit",
    "audit_pair": "userdp.audit",
    "audit_perfect_generalization": "userdp.audit",
    "audit_stability": "userdp.audit",
    "audit_user_level": "userdp.audit",
    "BOTTOM": "userdp.delstab",
    "DelStab": "userdp.delstab",
    "hockey_stick": "userdp.divergence",
    "is_indistinguishable": "userdp.divergence",
    "BudgetError": "userdp.exceptions",
    "InsecureRandomnessWarning": "userdp.exceptions",
    "PrivacyBudgetError": "userdp.exceptions",
    "LDDPResult": "userdp.lddp",
    "PairwiseResult": "userdp.lddp",
    "check_lddp": "userdp.lddp",
    "pairwise_indistinguishable": "userdp.lddp",
    "pairwise_max_divergence": "userdp.lddp",
    "TruncatedDiscreteLaplace": "userdp.mechanisms",
    "AuditReport": "userdp.report",
}
_MODULES = (
    "accounting",
    "algorithms",
    "audit",
    "datasets",
    "delstab",
    "dimensions",
    "divergence",
    "estimation",
    "exceptions",
    "lddp",
    "learners",
    "mechanisms",
    "optimization",
    "protocols",
    "reduction",
    "report",
    "selection",
    "stability",
)

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
    "PairwiseResult",
    "Pmf",
    "PrivacyBudgetError",
    "ScoreSelection",
    "SymmetricAlgorithm",
    "TruncatedDiscreteLaplace",
    "audit_dataset",
    "audit_item_level",
    "audit_pair",
    "audit_perfect_generalization",
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
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"userdp.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("userdp")
    raise AttributeError(f"module 'userdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
