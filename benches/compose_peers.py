"""Composition of many releases beside dp_accounting and prv_accountant: bounds of epsilon, and time, as markdown.

    python benches/compose_peers.py [--deep] [--growth]

Needs ``pip install dp-accounting prv-accountant``. With ``--deep`` it also asks dp_accounting at small deltas. What it
says there is compared with certified lower bounds of the true epsilon: "too small" is a claim that is false. With
``--growth`` it shows how time grows with the number of releases and outcomes, and with what is asked. Seconds of all
processors are printed beside the time that passed: they depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from dp_accounting.pld import common, privacy_loss_distribution

from userdp.accounting import PrivacyLossDistribution, refinement

RUNS = 3
NARROW = 1e-5
"""The width of the run whose upper bound stands for the truth: it is above it by about a thirtieth of that."""


def example(outcomes: int = 256) -> tuple[list[float], list[float]]:
    """Two pmfs with losses within 0.2, from a fixed seed."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(outcomes))
    q = p * np.exp(-rng.uniform(-0.2, 0.2, outcomes))
    return p.tolist(), (q / q.sum()).tolist()


def timed(call: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What a call returns, the least time that passed and the least seconds of all processors."""
    passed = used = math.inf
    for _ in range(RUNS):
        start, before = time.perf_counter(), time.process_time()
        result = call()
        passed = min(passed, time.perf_counter() - start)
        used = min(used, time.process_time() - before)
    return result, (passed, used)


def ours(make: Callable[[], PrivacyLossDistribution], k: int, delta: str, width: float) -> Callable[[], Any]:
    def ask() -> Any:
        refinement.remembered = refinement.Remembered(refinement.REMEMBERED_BYTES)
        return make().self_compose(k).epsilon(delta, width=width)

    return ask


def of_pair(p: list[float], q: list[float], k: int, delta: float, interval: float) -> float:
    whole = []
    for first, second in ((p, q), (q, p)):
        upper = {i: math.log(x) for i, x in enumerate(first)}
        lower = {i: math.log(x) for i, x in enumerate(second)}
        part = privacy_loss_distribution.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=interval
        )
        whole.append(part.self_compose(k).get_epsilon_for_delta(delta))
    return max(whole)


def sampled() -> PrivacyLossDistribution:
    return PrivacyLossDistribution.gaussian("0.8", neighbors="add-remove").poisson("0.01")


def of_samples(sigma: float, rate: float, k: int, delta: float, interval: float) -> float:
    part = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=interval
    )
    return float(part.self_compose(k).get_epsilon_for_delta(delta))


def of_pure(epsilon: float, k: int, delta: float, interval: float) -> float:
    parameters = common.DifferentialPrivacyParameters(epsilon, 0)
    part = privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=interval)
    return float(part.self_compose(k).get_epsilon_for_delta(delta))


def with_prv(epsilon: float, k: int, delta: float) -> Any:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PureDPMechanism

    accountant = PRVAccountant(
        prvs=[PureDPMechanism(epsilon)], max_self_compositions=[k], eps_error=0.01, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta=delta, num_self_compositions=[k])
    return low, high


def print_row(what: str, who: str, answer: Any, seconds: tuple[float, float], truth: float) -> None:
    upper = answer[1] if isinstance(answer, tuple) else answer
    text = f"{answer[0]:.9g} to {answer[1]:.9g}" if isinstance(answer, tuple) else f"at most {answer:.9g}"
    times = f"{1e3 * seconds[0]:.0f} ms | {1e3 * seconds[1]:.0f} ms"
    print(f"| {what} | {who} | {text} | {upper - truth:.1e} | {times} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    p, q = example()
    print(
        "| releases | by | ε | error of the upper bound | "
        f"time, dp_accounting {importlib.metadata.version('dp-accounting')} | of all processors |"
    )
    print("|---|---|---|--:|--:|--:|")
    what = "pair of 256 outcomes × 1000, δ = 1e-6"
    truth = ours(lambda: PrivacyLossDistribution.from_pmfs(p, q), 1000, "1e-6", NARROW)().upper
    for width in (2e-3, 4e-4, 1e-4, 3e-5):
        bounds, seconds = timed(ours(lambda: PrivacyLossDistribution.from_pmfs(p, q), 1000, "1e-6", width))
        print_row(what, f"userdp, width {width:g}", (bounds.lower, bounds.upper), seconds, truth)
    for interval in (1e-4, 1e-5):
        answer, seconds = timed(lambda interval=interval: of_pair(p, q, 1000, 1e-6, interval))
        print_row(what, f"dp_accounting, {interval:g}", answer, seconds, truth)
    what = "Gaussian noise of 0.8 on samples of 1 % × 10^4, δ = 1e-6"
    truth = ours(sampled, 10_000, "1e-6", 30 * NARROW)().upper
    for width in (1e-2, 3e-3):
        bounds, seconds = timed(ours(sampled, 10_000, "1e-6", width))
        print_row(what, f"userdp, width {width:g}", (bounds.lower, bounds.upper), seconds, truth)
    answer, seconds = timed(lambda: of_samples(0.8, 0.01, 10_000, 1e-6, 1e-4))
    print_row(what, "dp_accounting, 0.0001", answer, seconds, truth)
    for epsilon, k in ((0.1, 1000), (0.01, 10_000)):
        what = f"{epsilon}-DP × {k}, δ = 1e-6"
        truth = PrivacyLossDistribution.pure(str(epsilon)).self_compose(k).epsilon("1e-6").lower
        bounds, seconds = timed(ours(lambda e=epsilon: PrivacyLossDistribution.pure(str(e)), k, "1e-6", 1e-4))
        print_row(what, "userdp", (bounds.lower, bounds.upper), seconds, truth)
        for interval in (1e-4, 1e-5):
            answer, seconds = timed(lambda e=epsilon, k=k, i=interval: of_pure(e, k, 1e-6, i))
            print_row(what, f"dp_accounting, {interval:g}", answer, seconds, truth)
        try:
            answer, seconds = timed(lambda e=epsilon, k=k: with_prv(e, k, 1e-6))
            print_row(what, "prv_accountant, 0.01", answer, seconds, truth)
        except ImportError:
            print(f"| {what} | prv_accountant is not installed | | | |")
    if arguments.growth:
        print_growth()
    if arguments.deep:
        print("\n| releases | δ | userdp, ε | dp_accounting, ε | grid | δ at its ε | over δ | |")
        print("|---|--:|---|--:|--:|---|--:|---|")
        whole = PrivacyLossDistribution.from_pmfs(p, q).self_compose(1000)
        for delta in (1e-8, 1e-10, 1e-12, 1e-13, 1e-14, 1e-15):
            print_deep("the pair × 1000", delta, whole, of_pair(p, q, 1000, delta, 1e-5), 1e-5)
        whole = PrivacyLossDistribution.pure("0.1").self_compose(1000)
        for delta in (1e-10, 1e-12, 1e-13, 1e-14):
            for interval in (1e-4, 1e-5):
                print_deep("0.1-DP × 1000", delta, whole, of_pure(0.1, 1000, delta, interval), interval)
        whole = sampled().self_compose(10_000)
        for delta in (1e-12, 1e-13, 1e-14):
            theirs = of_samples(0.8, 0.01, 10_000, delta, 1e-4)
            print_deep("Gaussian noise of 0.8 on samples of 1 % × 10^4", delta, whole, theirs, 1e-4)


def print_growth() -> None:
    """Pairs with more outcomes, more releases, and bounds that are nearer to each other."""
    print("\n| outcomes | releases | width | ε | levels | time | of all processors |")
    print("|--:|--:|--:|---|--:|--:|--:|")
    several = [(outcomes, 1000, 1e-3) for outcomes in (16, 256, 4096)]
    several += [(256, k, 1e-3) for k in (10, 100, 10_000)]
    several += [(256, 1000, width) for width in (1e-2, 1e-4, 1e-5)]
    for outcomes, k, width in several:
        p, q = example(outcomes)
        make = lambda p=p, q=q: PrivacyLossDistribution.from_pmfs(p, q)  # noqa: E731
        bounds, seconds = timed(ours(make, k, "1e-6", width))
        levels = max(composed.terms for composed, _ in refinement.remembered._kept.values())
        print(
            f"| {outcomes} | {k} | {width:g} | {bounds.lower:.7g} to {bounds.upper:.7g} | {levels} | "
            f"{seconds[0]:.2g} s | {seconds[1]:.2g} s |",
            flush=True,
        )


def print_deep(
    what: str, delta: float, whole: PrivacyLossDistribution, theirs: float, interval: float, width: float = 1e-3
) -> None:
    """What is claimed at a small delta, and what delta is where it is claimed."""
    bounds, there = whole.epsilon(delta, width=width), whole.delta(theirs, relative=0.02)
    verdict = "too small" if theirs < bounds.lower else ""
    print(
        f"| {what} | {delta:g} | {bounds.lower:.7g} to {bounds.upper:.7g} | {theirs:.7g} | {interval:g} | "
        f"{there.lower:.5g} to {there.upper:.5g} | {there.lower / delta:.3g} | {verdict} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
