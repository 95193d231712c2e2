"""Private selection of the item that most users have.

Everybody has one item. `ApproximateSelection` takes the item of most users with (epsilon, delta)-DP, from a universe
of any size; `PureSelection` with pure epsilon-DP, from a public range of up to 2**64 integers. Both are made for one of
two neighbor relations, replacing a user or adding and removing one, and are calibrated for it.
"""

from __future__ import annotations

from userdp.selection.approximate import ApproximateSelection
from userdp.selection.pure import PureSelection

__all__ = ["ApproximateSelection", "PureSelection"]
