"""DelStab at real parameters: distributions, refusal probabilities, refusals for budget, and memory, in one run.

Prints a markdown table. epsilon = 1, delta = 1e-6, calibration "paper" (192 deletions). Inner algorithms: the
exponential mechanism on sums of random integer scores, one row of scores for each type of user, made by the core;
a yes/no vote on an integer statistic for the additive engine.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from userdp import AdditiveAlgorithm, BudgetError, DelStab, SummedScoreEM, SymmetricAlgorithm, check_lddp
from userdp.delstab import PmfBounds

SENSITIVITY = 4


def vote(counts: tuple[int, ...], outputs: int, epsilon: str) -> tuple[SummedScoreEM, tuple[tuple[int], ...]]:
    """An exponential mechanism and its users: counts[j] of them have the j-th row of scores."""
    table = np.random.default_rng(3).integers(0, SENSITIVITY + 1, (len(counts), outputs))
    algorithm = SummedScoreEM(
        tuple(range(outputs)), lambda user: table[user[0]], epsilon=epsilon, sensitivity=SENSITIVITY
    )
    return algorithm, tuple((kind,) for kind, count in enumerate(counts) for _ in range(count))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def pmfs(quick: bool) -> None:
    print(
        "| users by type | outputs | inner epsilon | kept multisets | r* | P[refuse] | distribution, "
        "certified | total width |"
    )
    print("|---|---|---|---|---|---|---|---|")
    cases = [((800, 700, 500), 8, rate) for rate in ("0.002", "0.004", "0.005", "0.006", "0.01")]
    if not quick:
        cases += [((600, 500, 500, 400), 4, rate) for rate in ("0.002", "0.003", "0.0035", "0.004", "0.005")]
        cases += [((600, 500, 500, 400), 8, rate) for rate in ("0.004", "0.005")]
    for counts, outputs, rate in cases:
        algorithm, users = vote(counts, outputs, rate)
        mechanism = DelStab(algorithm, epsilon=1, delta="1e-6", calibration="paper", max_distinct_users=len(counts))
        elapsed, pmf = timed(lambda: mechanism.output_distribution(users, exact=False))  # noqa: B023
        kept = math.comb(mechanism.deletions + len(counts) - 1, len(counts) - 1)
        bounds = isinstance(pmf, PmfBounds)
        width = f"{float((pmf.upper - pmf.lower).sum()):.1e}" if bounds else "exact"
        smallest = pmf.smallest_stable_size if bounds else None
        refusal = float(mechanism.refusal_probability(users)) if smallest is not None else 1.0
        print(
            f"| {counts} | {outputs} | {rate} | {kept:,} | {smallest} | {refusal:.3g} | {elapsed:.2f} s | {width} |",
            flush=True,
        )


def additive() -> None:
    print("\n| additive statistic, n = 100,000 | deletions | distance t and refusal probability | again, certified |")
    print("|---|---|---|---|")
    for high in (1, 4):
        scale = 3000.0

        def answer(total: int, n_users: int, high: int = high, scale: float = scale) -> list[float]:
            yes = 1.0 / (1.0 + math.exp(-(total - 0.4 * high * n_users) / scale))
            return [1.0 - yes, yes]

        algorithm = AdditiveAlgorithm(("no", "yes"), lambda user: user[0], answer, statistic_range=(0, high))
        values = np.random.default_rng(1).integers(0, high + 1, 100_000).tolist()
        users = tuple((value,) for value in values)
        mechanism = DelStab(algorithm, epsilon=1, delta="1e-6", calibration="paper")
        first, refusal = timed(lambda mechanism=mechanism, users=users: mechanism.refusal_probability(users))
        again, _ = timed(lambda mechanism=mechanism, users=users: mechanism.refusal_probability(users))
        row = (
            f"| 0..{high} | {mechanism.deletions} | {first:.2f} s (P[refuse] = {float(refusal):.3g}) | {again:.2f} s |"
        )
        print(row, flush=True)


def refusals() -> None:
    print("\n| refused for budget | after |\n|---|---|")

    def constant(dataset: Any) -> list[float]:
        return [0.5, 0.5]

    many = tuple((i,) for i in range(2000))
    labeled = type("Labeled", (), {"outputs": (0, 1), "pmf": staticmethod(constant)})()
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("check_lddp, 2,000 labeled users, r = 100", lambda: check_lddp(labeled, many, r=100, epsilon=1, delta=0)),
        (
            "check_lddp, 2,000 types, r = 100",
            lambda: check_lddp(SymmetricAlgorithm((0, 1), constant), many, r=100, epsilon=1, delta=0),
        ),
        ("DelStab, 2,000 labeled users", lambda: DelStab(labeled, epsilon=1, delta="1e-6").refusal_probability(many)),
        (
            "DelStab, 10 types admitted",
            lambda: DelStab(SymmetricAlgorithm((0, 1), constant), epsilon=1, delta="1e-6", max_distinct_users=10).plan(
                2000
            ),
        ),
    ]
    for name, call in cases:
        start = time.perf_counter()
        try:
            call()
        except BudgetError:
            print(f"| {name} | {1e3 * (time.perf_counter() - start):.1f} ms |")
        else:
            raise AssertionError(f"{name} was not refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no families of over a million kept multisets")
    quick = parser.parse_args().quick
    pmfs(quick)
    additive()
    refusals()
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
