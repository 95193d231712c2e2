"""Private selection of the item that most users have.

Everybody has one item. `ApproximatePrivateMode` takes the item of most users with (epsilon, delta)-DP, from a universe
of any size; `PurePrivateMode` with pure epsilon-DP, from a public range of up to 2**64 integers. Both are made for one
of two neighbor relations, replacing a user or adding and removing one, and are calibrated for it.
"""

from __future__ import annotations

from userdp.selection.approximate import ApproximatePrivateMode
from userdp.selection.pure import PurePrivateMode

__all__ = ["ApproximatePrivateMode", "PurePrivateMode"]
