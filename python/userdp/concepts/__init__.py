"""Concept classes: public, finite lists of hypotheses, their representations, and their errors on users' rows."""

from __future__ import annotations

from userdp.concepts.classes import (
    ConceptClass,
    DecisionStumps,
    FiniteClass,
    Intervals,
    Parities,
    PointFunctions,
    Thresholds,
)
from userdp.concepts.representations import BoostedSize, HashedPointFunctions, MajorityVotes, boosted_size

__all__ = [
    "BoostedSize",
    "ConceptClass",
    "DecisionStumps",
    "FiniteClass",
    "HashedPointFunctions",
    "Intervals",
    "MajorityVotes",
    "Parities",
    "PointFunctions",
    "Thresholds",
    "boosted_size",
]
