"""Users' data: the one reader of it, who gave which rows, and one vector of each user.

`UserTable.read` takes what users have: NumPy arrays, lists and other sequences, frames and series of pandas, polars or
pyarrow. One rule says what a value is and whose a row is, whatever holds it: docs/reading.md. Learners of your own take
a `UserTable`, or the `UserVectors` made of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.runtime import loader
from userdp.users.table import UserTable, bound_contributions, canonical_id, id_bytes

if TYPE_CHECKING:
    from userdp.users.vectors import GivenVectors, MeanVectors, UserVectors

__all__ = [
    "GivenVectors",
    "MeanVectors",
    "UserTable",
    "UserVectors",
    "bound_contributions",
    "canonical_id",
    "id_bytes",
]

# The compiled core is loaded where it is needed.
_VECTORS = {"GivenVectors": "vectors", "MeanVectors": "vectors", "UserVectors": "vectors"}

__getattr__ = loader(__name__, _VECTORS, needs="numpy", distribution="numpy", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
