"""A normal distribution from one-dimensional projections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.estimation._lines import Location, People, Scale
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget
from userdp.learners._program import Draw

__all__ = ["Projections", "Selected"]

Floats = npt.NDArray[np.float64]
Selected: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]
"""What was selected for the locations of columns, the scales of columns, and the scales of pairs of columns."""


class Projections:
    """Location and scale of each column, and the scale of (x_j + x_k) / sqrt(2) for each pair of columns."""

    def __init__(self, d: int, radius: float, scale: float, alpha: float) -> None:
        self.scale = scale
        self.locations = [Location(f"column {j}", radius, scale, alpha) for j in range(d)]
        self.scales = [Scale(f"column {j}, scale", scale, alpha) for j in range(d)]
        self.pairs = list(combinations(range(d), 2))
        self.pair_scales = [Scale(f"columns {j} and {k}, scale", scale, alpha) for j, k in self.pairs]
        self.searches: list[Location | Scale] = [*self.locations, *self.scales, *self.pair_scales]
        self.shares: Mapping[str, Fraction] = {
            name: share for search in self.searches for name, share in search.shares.items()
        }

    def draw(self, draw: Draw, budget: Budget, data: UserData) -> Selected:
        """Search everything once."""

        def people(values: Floats) -> People:
            return People(values, data.users, data.n_users, data.m)

        columns = [people(column) for column in data.X.T]
        where = tuple(search.draw(draw, budget, column) for search, column in zip(self.locations, columns, strict=True))
        mean = self.mean(where)
        own = tuple(
            search.draw(draw, budget, center, column)
            for search, center, column in zip(self.scales, mean, columns, strict=True)
        )
        diagonal = math.sqrt(0.5)
        both = tuple(
            search.draw(draw, budget, diagonal * (mean[j] + mean[k]), people(diagonal * (data.X[:, j] + data.X[:, k])))
            for search, (j, k) in zip(self.pair_scales, self.pairs, strict=True)
        )
        return where, own, both

    def mean(self, where: tuple[tuple[int, ...], ...]) -> list[float]:
        """The mean that was selected."""
        return [search.value(selected) for search, selected in zip(self.locations, where, strict=True)]

    def covariance(self, own: tuple[int, ...], both: tuple[int, ...]) -> Floats:
        """The covariance that the scales stand for, with eigenvalues in [1, scale**2]."""
        variances = [search.value(selected) ** 2 for search, selected in zip(self.scales, own, strict=True)]
        covariance = np.diag(variances)
        for (j, k), search, selected in zip(self.pairs, self.pair_scales, both, strict=True):
            covariance[j, k] = covariance[k, j] = search.value(selected) ** 2 - (variances[j] + variances[k]) / 2
        eigenvalues, vectors = np.linalg.eigh(covariance)
        clipped: Floats = (vectors * np.clip(eigenvalues, 1, self.scale**2)) @ vectors.T
        symmetric: Floats = (clipped + clipped.T) / 2
        return symmetric

    def outcomes(self) -> Iterable[Selected]:
        where = product(*(search.outcomes() for search in self.locations))
        own = product(*(search.outcomes() for search in self.scales))
        both = product(*(search.outcomes() for search in self.pair_scales))
        return product(where, own, both)

    def n_outcomes(self) -> int:
        return math.prod([search.n_outcomes() for search in self.searches])

    def users_needed(self, budget: Budget, beta: float, m: int) -> int:
        return max(search.users_needed(budget, beta / len(self.searches), m) for search in self.searches)
