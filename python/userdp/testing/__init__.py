"""Privacy in tests: assertions that audit, strategies for Hypothesis, and options for pytest.

The assertions run the audits of `userdp.audit` and fail with what was found, in a form that can be run again. pytest
finds the options ``--userdp-seconds``, ``--userdp-alpha`` and ``--userdp-reports`` by itself. Hypothesis is needed by
`neighboring_tables` alone.
"""

from __future__ import annotations

from userdp.runtime import loader
from userdp.testing.assertions import assert_sensitivity, assert_user_private, check_user_level_learner

__all__ = ["NeighboringTables", "assert_sensitivity", "assert_user_private", "check_user_level_learner"]
__all__ += ["neighboring_tables"]

__getattr__ = loader(
    __name__,
    {"NeighboringTables": "strategies", "neighboring_tables": "strategies"},
    needs="hypothesis",
    distribution="hypothesis",
    extra="testing",
)
