"""Stability by public randomness: users who learn alone, on their own rows, and mostly agree.

Users who run the same stable learner with the same public seed vote for one hypothesis, which a private selection then
finds (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling", NeurIPS 2021). Everything
here is about how often users agree. Privacy never rests on it: see `userdp.selection` and `userdp.protocols` for what
protects them.
"""

from __future__ import annotations

from userdp.stability._learner import ClassLearner, StableLearner
from userdp.stability._representation import RepresentationLearner
from userdp.stability._seed import PublicSeed

__all__ = ["ClassLearner", "PublicSeed", "RepresentationLearner", "StableLearner"]
