"""Exceptions and warnings of userdp beside ValueError and TypeError."""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "InsecureRandomnessWarning",
    "LabelsOutsideClassesWarning",
    "NoisyFitWarning",
    "NotDeterministicError",
    "PrivacyBudgetError",
    "SureRefusalWarning",
    "TooFewUsersWarning",
]


class BudgetError(ValueError):
    """The work asked for is larger than the budget; the message has an estimate and a cheaper option."""


class InsecureRandomnessWarning(UserWarning):
    """Draws are reproducible from an integer ``random_state``: for tests, and private for nobody."""


class LabelsOutsideClassesWarning(UserWarning):
    """Many labels are neither of the two classes: a function of a noisy share that the fit released, after the fit."""


class NoisyFitWarning(UserWarning):
    """What was released says that a fit may be noise, or misses something; the message says what, and what helps.

    It comes after the fit, and is a function of released numbers and public ones: it tells nothing more.
    """


class NotDeterministicError(ValueError):
    """A function under audit gives different outputs on the same table; the message names the table and both."""


class PrivacyBudgetError(ValueError):
    """A release would cost more than is left of what was promised to users; it has not run."""


class SureRefusalWarning(UserWarning):
    """DelStab is sure to refuse users who all differ, by public numbers; the message says why, and what would do."""


class TooFewUsersWarning(UserWarning):
    """There are too few users for a useful answer at this privacy, by public numbers; the message says how many do."""
