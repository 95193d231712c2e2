"""Public randomness: shared random bits by which users with similar data draw the same answer.

Source: GKM21 (Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling", NeurIPS 2021).
"""

from __future__ import annotations

from userdp.public_randomness.agreement import disagreement_probability, joint_distribution
from userdp.public_randomness.rounding import SharedOffsetRounding
from userdp.public_randomness.sampling import CorrelatedSampler
from userdp.public_randomness.seed import PublicSeed

__all__ = [
    "CorrelatedSampler",
    "PublicSeed",
    "SharedOffsetRounding",
    "disagreement_probability",
    "joint_distribution",
]
