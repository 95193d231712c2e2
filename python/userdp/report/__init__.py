"""Audit reports: certificates that say what was audited, what was decided, and how to decide it again.

This package needs no compiled core: a report can be loaded, checked, printed and drawn without it.
"""

from __future__ import annotations

from userdp.checker.verification import Verification
from userdp.report.audit_report import AuditReport
from userdp.report.presentation import render_html
from userdp.report.witness import Witness

__all__ = ["AuditReport", "Verification", "Witness", "render_html"]
