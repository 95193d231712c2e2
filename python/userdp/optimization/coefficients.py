"""Coefficients that solve noisy normal equations, how far noise may have moved them, and what to say of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import open_unit_interval
from userdp.optimization.cutting import LOOKS, TargetClipping

Floats = npt.NDArray[np.float64]

KNOWN = 0.25
"""The noise of second moments over their least eigenvalue up to which its effect is taken to first order."""


@dataclass(frozen=True)
class NormalEquations:
    """Q b = q with Gaussian noise in both: E in Q, symmetric, with twice the variance on its diagonal, and g in q."""

    matrix: Floats  # Q, with noise
    products: Floats  # q, with noise
    entry: float  # the standard deviation of E off the diagonal
    product: float  # that of g
    ridge: float

    def eigen(self) -> tuple[Floats, Floats]:
        """Eigenvalues of Q, those below 0 raised to 0, plus the ridge, and eigenvectors."""
        values, vectors = np.linalg.eigh(self.matrix)
        return np.maximum(values, 0.0) + self.ridge, vectors

    def solution(self) -> Floats:
        """Q^-1 q where Q is known well, as its intervals have it; otherwise (Q made semidefinite + ridge)^-1 q."""
        if self.noise_ratio <= KNOWN:
            # The least eigenvalue of Q is then above 6 standard deviations of its noise.
            return np.asarray(np.linalg.solve(self.matrix, self.products), dtype=np.float64)
        values, vectors = self.eigen()
        return vectors @ ((vectors.T @ self.products) / values)

    @property
    def noise_ratio(self) -> float:
        """A bound of the noise of Q over its least eigenvalue, in standard deviations."""
        return 2 * self.entry * math.sqrt(len(self.products)) / float(self.eigen()[0][0])

    def spread(self, solution: Floats) -> Floats:
        """The covariance of E b - g."""
        # Var(E b) = s^2 (|b|^2 1 + b b^T), as entry (k, l) moves coordinate k by b_l and l by b_k.
        whole: Floats = (self.product**2 + self.entry**2 * (solution @ solution)) * np.eye(len(solution))
        return whole + self.entry**2 * np.outer(solution, solution)

    def of_predictions(self, *, constant: bool) -> tuple[float, float]:
        """How far noise moved predictions, and how large they are: both about their mean, where there is a constant."""
        values, vectors = self.eigen()
        metric = vectors * values @ vectors.T
        if constant:
            # Of the users with rows, whose share is the last entry.
            metric = metric / metric[-1, -1]
            metric = metric - np.outer(metric[-1], metric[-1]) / metric[-1, -1]
        found = self.solution()
        inverse = vectors / values @ vectors.T
        noise = float(np.sum(inverse @ self.spread(found) @ inverse * metric))
        return math.sqrt(max(noise, 0.0)), math.sqrt(max(float(found @ metric @ found), 0.0))

    def estimates(self, line: Floats, shift: Floats, unit: float, clipping: TargetClipping | None) -> CoefficientNoise:
        """Of line b + shift, where `unit` is that of q in the units of the data, of which a clipping is."""
        size = len(line)
        if self.noise_ratio > KNOWN:
            unknown = np.full(size, math.inf)
            return CoefficientNoise(shift, unknown, unknown.copy(), clipping)
        rows = np.linalg.solve(self.matrix, line.T).T
        found: Floats = np.asarray(np.linalg.solve(self.matrix, self.products), dtype=np.float64)
        deviations = np.sqrt(np.sum(rows @ self.spread(found) * rows, axis=1))
        pulls = np.linalg.norm(rows, axis=1) / unit
        return CoefficientNoise(line @ found + shift, deviations, pulls, clipping)


@saved_as_parameter
@dataclass(frozen=True)
class CoefficientNoise:
    """Coefficients without the ridge, the intercept last, and what is known of their errors.

    Attributes
    ----------
    centers : ndarray with shape (coefficients,)
    deviations : ndarray with shape (coefficients,)
        Of the noise, to first order; infinite where it is not known.
    pulls : ndarray with shape (coefficients,)
        By how much a bias of the products of features and targets, of length 1, moves each.
    clipping : TargetClipping or None
        What that bias may be; None where there is none.
    """

    centers: Floats
    deviations: Floats
    pulls: Floats
    clipping: TargetClipping | None

    def interval(self, level: float) -> Floats:
        """Ends for all coefficients together, which hold with probability `level`: shape (coefficients, 2)."""
        failure, moved = 1 - open_unit_interval(level, "level"), 0.0
        if self.clipping is not None:
            failure /= 2
            moved = self.clipping.bias(failure / LOOKS)
        known = max(1, int(np.count_nonzero(self.deviations)))
        width = -NormalDist().inv_cdf(failure / (2 * known)) * self.deviations
        if moved:
            width = width + self.pulls * moved
        return np.column_stack([self.centers - width, self.centers + width])
