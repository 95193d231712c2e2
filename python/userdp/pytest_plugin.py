"""The plugin of pytest: options for the assertions of `userdp.testing`, and a marker. Unused, it does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("userdp", "audits of privacy")
    group.addoption("--userdp-seconds", type=float, metavar="S", help="time for each search of an audit of sensitivity")
    group.addoption(
        "--userdp-alpha", metavar="A", help="probability of a wrong verdict of audits by draws (default 1e-9)"
    )
    group.addoption("--userdp-reports", type=Path, metavar="DIR", help="write the report of every audit as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and keep what the options say."""
    config.addinivalue_line("markers", "userdp: audits privacy; select by -m userdp")
    seconds, alpha, reports = (config.getoption(f"userdp_{name}") for name in ("seconds", "alpha", "reports"))
    if seconds is None and alpha is None and reports is None:
        return
    import pytest

    from userdp.audit.samples import read_alphas
    from userdp.testing.assertions import CURRENT

    if seconds is not None and not seconds > 0:
        raise pytest.UsageError(f"--userdp-seconds must be > 0; got {seconds}")
    if alpha is not None:
        try:
            CURRENT.alpha = read_alphas(alpha, "1/2")[0]
        except ValueError as error:
            raise pytest.UsageError(f"--userdp-alpha: {error}") from None
    CURRENT.seconds, CURRENT.reports = seconds, reports
