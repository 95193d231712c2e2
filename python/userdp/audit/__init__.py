"""Exact audits: is this mechanism private here, for a user, and if not, who and what shows it.

Exact audits evaluate the mechanism's own pmf on every dataset of a stated set, compare the output distributions of all
neighboring pairs in both directions, and return an `userdp.report.AuditReport` that can be verified without the
compiled core. Audits are diagnostics: they look at the data they are given, and their reports contain it.

What can only be run is audited by guesses of fair coins: `audit_samples`, `audit_one_run`, `audit_estimator` and
`audit_time` refute claims at a stated probability of an error, and acquit nobody.

`audit_sensitivity` is about functions that state no distribution: what other people's code computes before it adds
noise, on all small tables of plain and hostile values. Its tables are made up.

`audit_sampler_law` finds the output distributions of a program that draws its answer, by running it on all of its
random bits, and decides by what it knows of them.
"""

from __future__ import annotations

from userdp.audit.audits import audit_dataset, audit_item_level, audit_pair, audit_user_level
from userdp.audit.estimators import audit_estimator
from userdp.audit.neighbors import neighboring_pairs
from userdp.audit.one_run import audit_one_run, one_run_epsilon
from userdp.audit.sampler_law import audit_sampler_law
from userdp.audit.samples import audit_samples
from userdp.audit.sensitivity import audit_sensitivity
from userdp.audit.timing import audit_time

__all__ = [
    "audit_dataset",
    "audit_estimator",
    "audit_item_level",
    "audit_one_run",
    "audit_pair",
    "audit_sampler_law",
    "audit_samples",
    "audit_sensitivity",
    "audit_time",
    "audit_user_level",
    "neighboring_pairs",
    "one_run_epsilon",
]
