"""Stability by public randomness: users who draw from similar laws by the same public seed agree.

Everything here is about how often users agree. Privacy never rests on it.
"""

from __future__ import annotations

from userdp.stability._laws import disagreement_probability, joint_distribution
from userdp.stability._rounding import SharedOffsetRounding
from userdp.stability._sampling import CorrelatedSampler
from userdp.stability._seed import PublicSeed

__all__ = [
    "CorrelatedSampler",
    "PublicSeed",
    "SharedOffsetRounding",
    "disagreement_probability",
    "joint_distribution",
]
