"""Reports: what was asked and found, as JSON that others read back, verify and show.

Audit reports are certificates: they say what was audited, what was decided, and how to decide it again. The other kinds
are made by the packages above this one. None needs the compiled core to be loaded, checked, printed or drawn.
"""

from __future__ import annotations

from userdp.checker.check import Verification
from userdp.report.audit_report import AuditReport, Witness
from userdp.report.base import Report, render_html
from userdp.report.certificate import Certificate
from userdp.report.composition import CompositionCertificate
from userdp.report.estimates import AgreementEstimate, Comparison, Explanation, Prediction
from userdp.report.generalization import GeneralizationReport, GeneralizationWitness
from userdp.report.guesses import Guesses, GuessReport
from userdp.report.lddp import LDDPResult
from userdp.report.optimality import OptimalityCertificate
from userdp.report.sampler_law import LawWitness, SamplerLawReport
from userdp.report.sensitivity import SensitivityReport, SensitivityWitness
from userdp.report.stability import ItemStability, SeedStability, StabilityReport

__all__ = [
    "AgreementEstimate",
    "AuditReport",
    "Certificate",
    "Comparison",
    "CompositionCertificate",
    "Explanation",
    "GeneralizationReport",
    "GeneralizationWitness",
    "GuessReport",
    "Guesses",
    "ItemStability",
    "LDDPResult",
    "LawWitness",
    "OptimalityCertificate",
    "Prediction",
    "Report",
    "SamplerLawReport",
    "SeedStability",
    "SensitivityReport",
    "SensitivityWitness",
    "StabilityReport",
    "Verification",
    "Witness",
    "render_html",
]
