"""A program before its noise, with what its noise is made for: what adapters return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from userdp.audit.sensitivity import audit_sensitivity
from userdp.report.sensitivity import SensitivityReport


@dataclass(frozen=True)
class NoiseFree:
    """A program before its noise, and what its noise is made for.

    Attributes
    ----------
    function : callable
        From a table to what a release would add noise to.
    claim : mapping
        The claim as `userdp.audit.audit_sensitivity` takes it, exactly: `l1`, `l2_squared`, `linf`, `l0`.
    options : mapping
        How the function is given tables, and others of that audit's arguments that follow from it.
    source : object
        What it was made of; its constants are read from there.
    """

    function: Callable[[Any], Any]
    claim: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Any = field(default=None, repr=False)

    def __call__(self, table: Any) -> Any:
        return self.function(table)

    def audit(self, **asked: Any) -> SensitivityReport:
        """Audit the claim; the arguments are those of `userdp.audit.audit_sensitivity`, of which some are known."""
        return audit_sensitivity(self, **{**self.options, **self.claim, **asked})
