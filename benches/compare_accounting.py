"""Composition beside dp_accounting: the numbers, and the time they take. Prints a markdown table.

Needs ``pip install dp-accounting``, which is one of this project's bench dependencies.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable

from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant

from userdp.accounting import optimal_delta_of_groups, zcdp_delta, zcdp_epsilon

INTERVAL = 1e-5
GROUPS = [
    ([(0.01, 64)], 0.30656),
    ([(0.1, 64)], 2.0),
    ([(0.5, 20)], 4.0),
    ([(0.008382, 800)], 1.0),
    ([(1.0, 50)], 20.0),
    ([(0.0105675, 64), (0.0317025, 64)], 1.0),
    ([(0.1, 10), (0.3, 5)], 2.0),
]
RHOS = [(0.02, 1.0), (0.02435, 1.0), (0.5, 4.0), (0.001, 0.1), (2.0, 10.0)]
ORDERS = [1 + x / 200 for x in range(1, 4000)] + list(range(22, 2000))


def loss_distribution(groups: list[tuple[float, int]], epsilon: float) -> float:
    """Their delta: privacy losses on a grid, rounded up."""
    whole = None
    for each, k in groups:
        parameters = common.DifferentialPrivacyParameters(each, 0)
        part = privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=INTERVAL)
        part = part.self_compose(k)
        whole = part if whole is None else whole.compose(part)
    return float(whole.get_delta_for_epsilon(epsilon))


def timed(call: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def row(what: str, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
    (a, seconds), (b, their_seconds) = timed(ours), timed(theirs)
    print(f"| {what} | {a:.6e} | {b:.6e} | {b / a - 1:+.1e} | {1e3 * seconds:.1f} ms | {1e3 * their_seconds:.1f} ms |")


def main() -> None:
    version = importlib.metadata.version("dp-accounting")
    print(f"| what | userdp | dp_accounting {version} | theirs above | userdp | dp_accounting |")
    print("|---|---|---|---|---|---|")
    for groups, epsilon in GROUPS:
        row(
            f"δ of {groups} at ε = {epsilon}",
            lambda groups=groups, epsilon=epsilon: float(optimal_delta_of_groups(groups, epsilon)),
            lambda groups=groups, epsilon=epsilon: loss_distribution(groups, epsilon),
        )
    for rho, epsilon in RHOS:
        moments = [rho * order for order in ORDERS]
        row(
            f"δ of {rho}-zCDP at ε = {epsilon}",
            lambda rho=rho, epsilon=epsilon: float(zcdp_delta(rho, epsilon)),
            lambda moments=moments, epsilon=epsilon: rdp_privacy_accountant.compute_delta(ORDERS, moments, epsilon)[0],
        )
        row(
            f"ε of {rho}-zCDP at δ = 1e-6",
            lambda rho=rho: float(zcdp_epsilon(rho, 1e-6)),
            lambda moments=moments: rdp_privacy_accountant.compute_epsilon(ORDERS, moments, 1e-6)[0],
        )


if __name__ == "__main__":
    main()
