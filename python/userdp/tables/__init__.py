"""Tables: private counts, sums, means, quantiles and group-bys of a data frame with a user-id column.

A `Session` holds a table and a budget, a `Query` says what is asked, and a `Release` is the answer. What a user adds to
an answer is bounded last, in integers, so nothing in a query can undo it.
"""

from __future__ import annotations

from userdp.tables.aggregates import cdf, count_rows, count_unreadable, count_users, histogram, mean, quantile, sum
from userdp.tables.csv_files import read_csv
from userdp.tables.expressions import Expression, col, lit, when
from userdp.tables.plans import Plan
from userdp.tables.queries import KeySet, Query
from userdp.tables.release import Release
from userdp.tables.schema import Schema, boolean, category, integer, key, number, timestamp
from userdp.tables.session import Session
from userdp.tables.suggestions import Suggestion

__all__ = [
    "Expression",
    "KeySet",
    "Plan",
    "Query",
    "Release",
    "Schema",
    "Session",
    "Suggestion",
    "boolean",
    "category",
    "cdf",
    "col",
    "count_rows",
    "count_unreadable",
    "count_users",
    "histogram",
    "integer",
    "key",
    "lit",
    "mean",
    "number",
    "quantile",
    "read_csv",
    "sum",
    "timestamp",
    "when",
]
