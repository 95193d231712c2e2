"""The simulations, one module for each family of tasks."""

from __future__ import annotations

from benches.reproduce.simulation import Simulation
from benches.reproduce.simulations import distributions, means, pac, quantiles, regressions, selection, thresholds

SIMULATIONS: tuple[Simulation, ...] = (
    *means.MEANS,
    *thresholds.SIMULATIONS,
    *pac.SIMULATIONS,
    *selection.SIMULATIONS,
    *distributions.SIMULATIONS,
    *quantiles.SIMULATIONS,
    *regressions.SIMULATIONS,
)
