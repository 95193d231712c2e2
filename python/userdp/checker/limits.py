"""The sizes that a report may have: those that audits have, so that no report is written that cannot be checked.

`userdp.audit` has the same numbers in its own code; tests/checker/test_checker_limits.py compares them.
"""

from __future__ import annotations

MAX_DATASETS = 2_000_000
"""Datasets of an audit, users of a dataset, and examples of all values of a user."""
MAX_PAIRS = 200_000_000
"""Unordered pairs of neighboring datasets."""
MAX_PMF_PAIRS = 5_000_000
"""Distinct pairs of pmfs that neighbors have."""
MAX_USERS = 20 * MAX_DATASETS
"""Users of all datasets together, for the engines that list them."""
MAX_SUMS = 50 * MAX_DATASETS
"""Additive engine: sums of a total and a statistic, for all numbers of users."""
MAX_STEPS = 100_000_000
"""Additive engine: steps between values of a user, and totals times pairs of statistics that a step connects."""
MOST_BITS = 2048
"""Of an integer, and of both parts of a Fraction, among users' values and outputs."""
MOST_DEPTH = 32
"""Of tuples in tuples there."""
MOST_SIZE = 1 << 20
"""Of one value of a user: parts and characters."""
COMPLETE_PAIRS = 1_000_000
"""Reports on more pairs hold a sample of them."""
SAMPLE_SIZE = 2_000
"""Pairs of a sample, and pairs that a check with the mechanism draws for itself."""
ALL_DATASETS = 100_000
"""With at most so many datasets, the digests of a sample are computed again from the mechanism."""
ALL_ORDERS = 10_000
"""Datasets in every order of their users: with more, a declared symmetry is tried on drawn ones."""
