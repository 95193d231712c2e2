"""Exact audits: is this mechanism private here, for a user, and if not, who and what shows it.

Each audit evaluates the mechanism's own pmf on every dataset of a stated set, compares the output distributions of all
neighboring pairs in both directions, and returns an `userdp.report.AuditReport` that can be verified without the
compiled core. Audits are diagnostics: they look at the data they are given, and their reports contain it.
"""

from __future__ import annotations

from userdp.audit.audits import audit_dataset, audit_item_level, audit_pair, audit_user_level

__all__ = ["audit_dataset", "audit_item_level", "audit_pair", "audit_user_level"]
