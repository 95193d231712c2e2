"""Learners whose outcome is stable, and how stable they are: what users have in common without sharing data.

Users who run the same stable learner on their own rows, with the same public randomness, mostly agree on one
hypothesis; a private selection then finds it (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via
Correlated Sampling", NeurIPS 2021).
"""

from __future__ import annotations

from userdp.stability._learner import ClassLearner, StableLearner

__all__ = ["ClassLearner", "StableLearner"]
