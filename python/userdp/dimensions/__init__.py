"""How complex a finite class of concepts is, exactly, and the learners that these dimensions stand for.

A class is a 0/1 matrix: rows are concepts, columns are points. Concepts may repeat, and constant, repeated or negated
points change no dimension: all of them are removed inside.
"""

from __future__ import annotations

from userdp.dimensions.learned import (
    LearnedRepresentation,
    representation_from_learner,
    representation_runs,
    users_implied,
)
from userdp.dimensions.littlestone import ShatteredTree, StandardOptimalAlgorithm, littlestone_dimension, mistake_tree
from userdp.dimensions.representation import (
    representation_dimension,
    representation_dimension_bounds,
    representation_size,
    representation_size_bounds,
)
from userdp.dimensions.vc import growth_function, shattered_points, vc_dimension

__all__ = [
    "LearnedRepresentation",
    "ShatteredTree",
    "StandardOptimalAlgorithm",
    "growth_function",
    "littlestone_dimension",
    "mistake_tree",
    "representation_dimension",
    "representation_dimension_bounds",
    "representation_from_learner",
    "representation_runs",
    "representation_size",
    "representation_size_bounds",
    "shattered_points",
    "users_implied",
    "vc_dimension",
]
