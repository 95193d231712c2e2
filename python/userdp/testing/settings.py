"""What pytest's options say about all audits of a test run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path


@dataclass
class Settings:
    """What the assertions take where a test says nothing.

    Attributes
    ----------
    seconds : float or None
        Time for the search of an audit of sensitivity; None leaves it to the audit.
    alpha : Fraction
        Probability of a wrong verdict, for audits by draws.
    reports : Path or None
        A folder into which every report is written.
    """

    seconds: float | None = None
    alpha: Fraction = Fraction(1, 10**9)
    reports: Path | None = None


CURRENT = Settings()
