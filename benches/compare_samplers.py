"""Draws of the samplers beside numpy, OpenDP and diffprivlib, in one process and one run.

Prints markdown tables (or JSON with ``--json``); see benches/README.md for the method. A library that is not installed
loses its column.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rounds import Candidate, described, environment, expect, human, progress, table, take_turns
from sampler_peers import (
    EPSILON,
    LIMITS,
    PROFILES,
    VALUE,
    Noise,
    Peers,
    Selector,
    make_scores,
    numpy_gaussian,
    numpy_geometric,
    numpy_selectors,
    numpy_table,
    permute_and_flip_pmf,
)

from userdp.mechanisms import (
    BiasedCoin,
    Categorical,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Geometric,
    NegativeBinomial,
    PermuteAndFlip,
    RandomSubset,
    TruncatedDiscreteLaplace,
    UnboundedDiscreteLaplace,
    UniformInteger,
)

ANCHOR = "numpy Gumbel"
BATCH = 1_000_000

Result = dict[str, Any]


# --- agreement: everybody draws from the distribution that is claimed for it ---------------------------------


def check_selector(selector: Selector, draws: int = 4000) -> None:
    scores = np.array([3, 0, 1, 2], dtype=np.int64)
    argument = selector.ready(scores)
    counts = Counter(int(selector.draw(argument)) for _ in range(draws))
    for i, mass in enumerate(selector.pmf(scores)):
        deviation = abs(counts[i] - draws * mass) / math.sqrt(draws * mass * (1 - mass))
        expect(deviation < 6, f"{selector.name}: candidate {i} drawn {counts[i]} times of {draws}, expected {mass:.4f}")


def check_noise(noise: Noise, scale: int) -> None:
    """Mean distance to the value, which is 2 q / (1 - q^2) for q = e^(-1 / scale)."""
    if noise.draws == 1:
        return  # a second and more a draw
    q = math.exp(-1.0 / scale)
    distances = np.abs(np.asarray(noise.draw()) - VALUE)
    deviation = abs(distances.mean() - 2 * q / (1 - q * q)) / math.sqrt(2 * q / (1 - q) ** 2 / len(distances))
    expect(deviation < 6, f"{noise.name}: mean distance {distances.mean():.4g} at scale {scale}")


# --- measurements -----------------------------------------------------------------------------------


def single_selections(k: int, peers: Peers, options: argparse.Namespace) -> Result:
    """One draw of one candidate; both score profiles take turns in the same rounds."""
    progress(f"one selection, k = {k}")
    mechanism = ExponentialMechanism(epsilon=EPSILON, sensitivity=1)
    flips = PermuteAndFlip(epsilon=EPSILON, sensitivity=1)
    ours = [
        Selector("userdp", lambda scores: scores, mechanism.sample),
        Selector("userdp, permute-and-flip", lambda scores: scores, flips.sample, permute_and_flip_pmf),
    ]
    selectors = [*numpy_selectors(), *ours, *peers.selectors()]
    candidates = []
    for selector in selectors:
        check_selector(selector)
        for profile in PROFILES:
            rows = [(selector.ready(scores),) for scores in make_scores(k, profile)]
            candidates.append(Candidate(f"{selector.name}, {profile}", selector.draw, rows))
    times = take_turns(candidates, 7 if k > 100_000 else options.rounds, options.seconds)
    names = [selector.name for selector in selectors]
    return {
        "k": k,
        "seconds": {p: {n: times.median(f"{n}, {p}") for n in names} for p in PROFILES},
        "ratio": {p: {n: times.ratio(f"{n}, {p}", f"{ANCHOR}, {p}") for n in names} for p in PROFILES},
        "peaked_over_equal": {n: times.ratio(f"{n}, peaked", f"{n}, equal") for n in names},
    }


def many_selections(k: int, draws: int, options: argparse.Namespace) -> Result:
    """Many draws for the same scores."""
    progress(f"{draws} selections, k = {k}")
    random = np.random.default_rng()
    mechanism = ExponentialMechanism(epsilon=EPSILON, sensitivity=1)
    flips = PermuteAndFlip(epsilon=EPSILON, sensitivity=1)
    scores = make_scores(k, "peaked")

    def gumbel(utilities: Any) -> Any:
        return np.argmax(utilities + random.gumbel(size=(draws, k)), axis=1)

    def inverse(utilities: Any) -> Any:
        sums = np.cumsum(np.exp(utilities - utilities.max()))
        return np.searchsorted(sums, random.random(draws) * sums[-1], side="right")

    utilities = [(-row * EPSILON / 2,) for row in scores]
    candidates = [
        Candidate(ANCHOR, gumbel, utilities),
        Candidate("numpy inverse", inverse, utilities),
        Candidate("userdp", lambda row: mechanism.sample(row, draws), [(row,) for row in scores]),
        Candidate("userdp, permute-and-flip", lambda row: flips.sample(row, draws), [(row,) for row in scores]),
    ]
    times = take_turns(candidates, options.rounds, options.seconds)
    return {
        "k": k,
        "draws": draws,
        "seconds": {name: times.median(name) for name in times.rows},
        "ratio": {name: times.ratio(name, ANCHOR) for name in times.rows},
    }


def batches(title: str, noises: Sequence[Noise], options: argparse.Namespace) -> Result:
    """Draws a second in batches; ratios are of times per draw to numpy's."""
    progress(title)
    times = take_turns([Candidate(noise.name, noise.draw, [()]) for noise in noises], options.rounds, options.seconds)
    draws = {noise.name: noise.draws for noise in noises}
    return {
        "pmf": title,
        "draws_per_second": {name: draws[name] / times.median(name) for name in draws},
        "ratio": {name: times.ratio(name, "numpy") * draws["numpy"] / draws[name] for name in draws},
    }


def geometric_noise(scale: int, peers: Peers, options: argparse.Namespace) -> Result:
    mechanism = DiscreteLaplace(scale=scale, bounds=LIMITS)
    ours = Noise("userdp", lambda: mechanism.sample(VALUE, BATCH), BATCH)
    noises = [numpy_geometric(scale, BATCH), ours, *peers.geometric_noise(scale)]
    for noise in noises:
        check_noise(noise, scale)
    return batches(f"scale {scale}", noises, options)


def gaussian_noise(sigma: int, peers: Peers, options: argparse.Namespace) -> Result:
    mechanism, values = DiscreteGaussian(sigma_squared=sigma**2), np.full(BATCH, VALUE)
    ours = Noise("userdp", lambda: mechanism.sample(values), BATCH)
    noises = [numpy_gaussian(sigma, BATCH), ours, *peers.gaussian_noise(sigma)]
    for noise in noises:
        errors = (np.asarray(noise.draw()) - VALUE) / sigma
        # A variance of sigma^2, and 1/12 more for normal draws that are rounded.
        allowed = 6 * math.sqrt(2 / len(errors)) + 1 / (6 * sigma**2)
        expect(abs(errors.var() - 1) < allowed, f"{noise.name}: variance {errors.var():.4g} at sigma {sigma}")
    return batches(f"σ = {sigma}", noises, options)


def truncated_noise(epsilon: str, delta: str, options: argparse.Namespace) -> Result:
    mechanism = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta)
    probabilities = mechanism.pmf().probabilities.tolist()
    ours = Noise("userdp", lambda: mechanism.sample(BATCH), BATCH)
    title = f"ε = {epsilon}, δ = {delta} ({len(probabilities)} values)"
    return batches(title, [numpy_table(probabilities, BATCH), ours], options)


def other_pmfs(options: argparse.Namespace) -> list[Result]:
    """The pmfs without a peer that claims more than floats, in batches of the size that both sides are given."""
    random = np.random.default_rng()
    weights = list(range(1, 101))
    sums = np.cumsum(weights) / sum(weights)
    pmfs: list[tuple[str, int, Callable[[int], Any], Callable[[int], Any]]] = [
        ("coin, p = 1/3", BATCH, BiasedCoin(probability="1/3").sample, lambda n: random.random(n) < 1 / 3),
        ("coin, p = e^-1", BATCH, BiasedCoin(log_probability=-1).sample, lambda n: random.random(n) < math.exp(-1)),
        ("integers 0 to 999", BATCH, UniformInteger(low=0, high=999).sample, lambda n: random.integers(1000, size=n)),
        (
            "100 weights",
            BATCH,
            Categorical(weights=weights).sample,
            lambda n: np.searchsorted(sums, random.random(n), side="right"),
        ),
        (
            "negative binomial, r = 7/2, p = 9/10",
            BATCH,
            NegativeBinomial(r="3.5", p="0.9").sample,
            lambda n: random.negative_binomial(3.5, 0.1, n),
        ),
        ("geometric, p = 1/3", 10_000, Geometric(p="1/3").sample, lambda n: random.geometric(1 / 3, n) - 1),
        (
            "unbounded discrete Laplace, scale 10",
            10_000,
            UnboundedDiscreteLaplace(scale=10).sample,
            lambda n: random.geometric(-math.expm1(-0.1), n) - random.geometric(-math.expm1(-0.1), n),
        ),
        (
            "5 of 52",
            10_000,
            RandomSubset(population=52, subset_size=5).sample,
            lambda n: random.permuted(np.tile(np.arange(52), (n, 1)), axis=1)[:, :5],
        ),
    ]
    found = []
    for title, draws, ours, theirs in pmfs:
        mine, its = (np.abs(sample(4000).astype(np.float64)) for sample in (ours, theirs))
        spread = math.sqrt((mine.var() + its.var()) / 4000)
        expect(abs(mine.mean() - its.mean()) < 6 * spread, f"{title}: mean size {mine.mean()}, numpy's {its.mean()}")
        noises = [
            Noise("numpy", lambda f=theirs, n=draws: f(n), draws),
            Noise("userdp", lambda f=ours, n=draws: f(n), draws),
        ]
        found.append(batches(title, noises, options))
    return found


def first_draws(rounds: int) -> list[tuple[str, float]]:
    """Seconds from the constructor to the first draw, tables included."""
    makers: list[tuple[str, Callable[[], Any]]] = [
        (
            f"DiscreteLaplace, scale {scale}, 0 to 10^6",
            lambda s=scale: DiscreteLaplace(scale=s, bounds=LIMITS).sample(3),
        )
        for scale in (1, 10, 1000)
    ]
    makers += [
        (
            f"TruncatedDiscreteLaplace, ε = {epsilon}, δ = 10^-6",
            lambda e=epsilon: TruncatedDiscreteLaplace(epsilon=e, delta="1e-6").sample(),
        )
        for epsilon in ("1", "0.1", "0.01")
    ]
    found = []
    for name, make in makers:
        progress(name)
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            make()
            times.append(time.perf_counter() - start)
        found.append((name, statistics.median(times)))
    return found


# --- tables -----------------------------------------------------------------------------------------


def timed(row: Result, name: str) -> str:
    return f"{human(row['seconds'][name])} ({row['ratio'][name]:.3g})"


def per_second(row: Result, name: str) -> str:
    if name not in row["ratio"]:
        return "–"
    return f"{row['draws_per_second'][name]:.3g}/s ({row['ratio'][name]:.3g})"


def pmfs_table(head: str, rows: Sequence[Result]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row["ratio"]))
    return table([head, *names], [[row["pmf"], *(per_second(row, name) for name in names)] for row in rows])


def markdown(report: Result) -> str:
    singles = report["single"]
    names = list(singles[0]["peaked_over_equal"])
    profiles = [
        [str(row["k"]), profile, *(timed({f: row[f][profile] for f in ("seconds", "ratio")}, n) for n in names)]
        for row in singles
        for profile in PROFILES
    ]
    changes = [[str(row["k"]), *(f"{row['peaked_over_equal'][n]:.3g}" for n in names)] for row in singles]
    many = report["many"]
    return "\n".join(
        [
            described(report["environment"]),
            "",
            "### One selection, ε = 1: median time of a call, and in brackets the median ratio to numpy's Gumbel noise",
            "",
            *table(["k", "scores", *names], profiles),
            "",
            "Time with one candidate 20 scales ahead over the time with equal scores, medians over the rounds:",
            "",
            *table(["k", *names], changes),
            "",
            "### Many selections with the same scores",
            "",
            *table(
                ["k", "draws", *many[0]["ratio"]],
                [[str(row["k"]), str(row["draws"]), *(timed(row, name) for name in row["ratio"])] for row in many],
            ),
            "",
            "### Discrete Laplace noise on a value in 0 to 10^6: draws a second (time per draw over numpy's)",
            "",
            *pmfs_table("pmf", report["geometric"]),
            "",
            "### Truncated discrete Laplace noise, likewise",
            "",
            *pmfs_table("pmf", report["truncated"]),
            "",
            "### Discrete Gaussian noise, likewise",
            "",
            *pmfs_table("pmf", report["gaussian"]),
            "",
            "### Other distributions, likewise",
            "",
            *pmfs_table("pmf", report["pmfs"]),
            "",
            "### From the constructor to the first draw",
            "",
            *table(["what", "median"], [[name, human(seconds)] for name, seconds in report["first"]]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write JSON, to stdout without FILE")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 1000, 1_000_000], metavar="K")
    parser.add_argument("--rounds", type=int, default=11, help="rounds (7 at k = 10^6)")
    parser.add_argument("--seconds", type=float, default=0.02, help="least time of one batch")
    options = parser.parse_args()

    peers = Peers()
    report: Result = {
        "environment": environment(("userdp", "numpy", "opendp", "diffprivlib")),
        "single": [single_selections(k, peers, options) for k in options.sizes],
        "many": [many_selections(1000, 1000, options), many_selections(100_000, 16, options)],
        "geometric": [geometric_noise(scale, peers, options) for scale in (1, 10, 1000)],
        "truncated": [truncated_noise(*parameters, options) for parameters in (("1", "1e-6"), ("0.1", "1e-6"))],
        "gaussian": [gaussian_noise(sigma, peers, options) for sigma in (1, 10, 1000, 10**9)],
        "pmfs": other_pmfs(options),
        "first": first_draws(5),
    }
    text = json.dumps(report, indent=1)
    if options.json == "-":
        print(text)
        return
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print(markdown(report))


if __name__ == "__main__":
    main()
