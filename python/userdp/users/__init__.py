"""People's data: who gave which rows, how they are read, and one vector of each user."""

from __future__ import annotations

from userdp.users.contributions import bound_contributions

__all__ = ["bound_contributions"]
