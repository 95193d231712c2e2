"""Errors of the tested mean against those of no clipping, with their exact noise, over a grid of problems.

    python benches/mean_grid.py [--runs 40] [--users 500,1000,10000] [--records 1,16,256] [--epsilons 0.5,1,2]
                                [--battery usual,adversarial] [--columns 64] [--only signs,line]
    python benches/mean_grid.py --promise [--runs 12] [--columns 1,2,4,8,16,32,64]

Vectors are in the unit ball of 64 columns. What is drawn for a user is the mean of the user's m records, or, in the
adversarial battery, a vector whose distribution has nothing to do with the hint 1/sqrt(m). Errors are root mean squares
of the L2 distance from the mean of the *users' vectors*; the ratio is to the error of noise for the whole range, whose
expectation is exact. A cell is a distribution at one n, m, epsilon. With --promise users' rows are independent draws
and this is promised: "auto" against the best of "iterated", "tested" and whole-range noise, each measured.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from userdp.means.combined import CombinedMean, plan_combined
from userdp.means.iterated import plan_iterated
from userdp.means.methods import choose, whole_range
from userdp.means.problem import MeanProblem
from userdp.mechanisms.composed import run
from userdp.runtime import source_of
from userdp.users.vectors import GivenVectors

DELTA = Fraction(1, 10**6)

Vectors = np.ndarray
Distribution = Callable[[int, int, int, float, np.random.Generator], Vectors]
"""Of n users' vectors in d columns, for m records each; A, how many users move the mean by the noise, is public."""


def signs(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """Columns are -1/sqrt(d) or 1/sqrt(d), this with probability 0.675."""
    return (2 * rng.binomial(m, 0.675, size=(n, d)) - m) / (m * math.sqrt(d))


def zipf(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """One of d unit vectors, number k with probability proportional to 1/k."""
    pmf = 1 / np.arange(1, d + 1)
    return rng.multinomial(m, pmf / pmf.sum(), size=n) / m


def line(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """A fixed unit vector with a random sign: all variation is in one direction."""
    return np.outer((2 * rng.binomial(m, 0.5, size=n) - m) / m, np.full(d, 1 / math.sqrt(d)))


def skewed_line(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """The same with a sign that is 1 with probability 0.9."""
    return np.outer((2 * rng.binomial(m, 0.9, size=n) - m) / m, np.full(d, 1 / math.sqrt(d)))


def sparse(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """The origin with probability 0.9, or one of four unit vectors."""
    pmf = np.zeros(d + 1)
    pmf[:4], pmf[-1] = 0.025, 0.9
    return rng.multinomial(m, pmf, size=n)[:, :d] / m


def different(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """Signs whose probabilities differ from user to user and column to column."""
    return (2 * rng.binomial(m, 0.675 + np.where(rng.random((n, d)) < 0.5, 0.05, -0.05)) - m) / (m * math.sqrt(d))


def corner(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    """Signs of which 5 % of the users have the opposite ones."""
    odd = rng.random((n, 1)) < 0.05
    return (2 * rng.binomial(m, np.where(odd, 0.325, 0.675), size=(n, d)) - m) / (m * math.sqrt(d))


def share(p: float) -> Distribution:
    """Signs that are constant within users, 1 with probability p."""

    def constant(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
        return (2.0 * (rng.random((n, d)) < p) - 1) / math.sqrt(d)

    return constant


USUAL: dict[str, Distribution] = {
    "signs": signs,
    "zipf": zipf,
    "line": line,
    "sparse": sparse,
    "skewed_line": skewed_line,
    "different": different,
    "corner": corner,
    "share 0.01": share(0.01),
    "share 0.1": share(0.1),
    "share 0.5": share(0.5),
}


def _in_ball(vectors: Vectors) -> Vectors:
    return vectors / np.maximum(1, np.linalg.norm(vectors, axis=1))[:, None]


def _bulk(n: int, d: int, width: float, place: float, rng: np.random.Generator) -> Vectors:
    vectors = width * rng.normal(size=(n, d)) / math.sqrt(d)
    vectors[:, 0] += place
    return vectors


def far(number: float, distance: float, place: float, width: float = 0.03, sides: int = 1) -> Distribution:
    """So many times A users at a distance from a tight bulk: on one side, on two, or (3) in random directions."""

    def drawn(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
        vectors, k = _bulk(n, d, width, place, rng), round(number * users)
        if sides == 1:
            vectors[:k, 0] -= distance
        elif sides == 2:
            vectors[: k // 2, 0] -= distance
            vectors[k // 2 : k, 0] += min(distance / 3, 1 - place)
        else:
            vectors[:k] += distance * _sphere(len(vectors[:k]), d, m, users, rng)
        return _in_ball(vectors)

    return drawn


def _sphere(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
    vectors = rng.normal(size=(n, d))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def identical(place: float) -> Distribution:
    """All users at one point."""
    return lambda n, d, m, users, rng: _bulk(n, d, 0.0, place, rng)


def two(part: float, distance: float) -> Distribution:
    """Two tight clusters."""

    def drawn(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
        vectors = _bulk(n, d, 0.02, 0.0, rng)
        vectors[:, 0] += np.where(rng.random(n) < part, distance / 2, -distance / 2)
        return vectors

    return drawn


def ladder(part: float, least: float) -> Distribution:
    """A part of the users at distances with a Pareto tail, on one side."""

    def drawn(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
        vectors, k = _bulk(n, d, 0.02, 0.0, rng), int(part * n)
        vectors[:k, 0] += np.minimum(least / np.maximum(rng.random(k), 1e-9), 1.0)
        return vectors

    return drawn


def exponential(scale: float) -> Distribution:
    """One exponential factor for all columns."""
    return lambda n, d, m, users, rng: _in_ball(
        np.outer(rng.standard_exponential(n) * scale, np.ones(d) / math.sqrt(d))
    )


def aside(distance: float, part: float) -> Distribution:
    """A part of the users aside, at one distance."""

    def drawn(n: int, d: int, m: int, users: float, rng: np.random.Generator) -> Vectors:
        vectors = _bulk(n, d, 0.03, 0.0, rng)
        vectors[: int(part * n), 0] += distance
        return vectors

    return drawn


def adversarial() -> dict[str, Distribution]:
    """Vectors whose spread and skew the hint says nothing about."""
    made: dict[str, Distribution] = {}
    for place, distance in ((-1.0, -2.0), (0.4, 1.4), (-0.5, -1.0), (0.4, 0.5), (0.2, 0.3)):
        for number in (0.5, 0.8, 1.0, 1.3, 2.0):
            made[f"far D={abs(distance)} at {place} K={number}"] = far(number, distance, place)
    for number in (0.8, 1.5):
        made[f"two-sided K={number}"] = far(number, 1.4, 0.4, sides=2)
        made[f"random directions K={number}"] = far(number, 0.9, 0.0, sides=3)
        made[f"far, wide bulk K={number}"] = far(number, 1.4, 0.4, width=0.12)
    made |= {"identical 0": identical(0.0), "identical 1": identical(1.0), "sphere": _sphere}
    made |= {f"vertices {p}": share(p) for p in (0.5, 0.1, 0.01)}
    clusters = ((0.5, 2.0), (0.5, 0.3), (0.11, 1.0), (0.05, 0.4), (0.3, 0.6))
    made |= {f"two {part} D={distance}": two(part, distance) for part, distance in clusters}
    made |= {f"ladder {part}": ladder(part, least) for part, least in ((0.05, 0.05), (0.3, 0.03))}
    made |= {f"exponential {scale}": exponential(scale) for scale in (0.05, 0.15, 0.4)}
    sides = ((0.2, 0.1), (0.15, 0.05), (0.15, 0.2), (0.3, 0.03))
    return made | {f"aside {part} at {distance}": aside(distance, part) for distance, part in sides}


def method_of(n: int, d: int, m: int, epsilon: str, hint: bool = True) -> CombinedMean:
    """The plan for a hint of 1/sqrt(m), or for none."""
    problem = MeanProblem(
        n_users=n,
        dimension=d,
        max_norm=1.0,
        norm="l2",
        concentration=m**-0.5 if hint else None,  # type: ignore[arg-type]
        epsilon=Fraction(epsilon),
        delta=DELTA,
        beta=0.01,
    )
    planned = plan_combined(problem)
    assert isinstance(planned, CombinedMean)
    return planned


def promised(runs: int, columns: list[int]) -> None:
    """Errors under a promise that is true."""
    source, started, cells = source_of(None), time.process_time(), []
    laws = {"signs": 0.5, "skewed": 0.05}
    sizes = ((500, 16, 4), (1000, 256, 1), (4000, 16, 1), (4000, 64, 1), (20_000, 4, 1), (20_000, 256, Fraction(1, 2)))
    for (law, p), d, (n, m, epsilon) in itertools.product(laws.items(), columns, sizes):
        problem = MeanProblem(
            n_users=n,
            dimension=d,
            max_norm=1.0,
            norm="max",
            concentration=math.sqrt(d / m),
            epsilon=epsilon,
            delta=DELTA,
            beta=0.01,
            promise="independent",
        )
        rng, errors, chosen = np.random.default_rng([n, m, d, len(law)]), dict[str, float](), choose(problem)
        whole = whole_range(problem)
        for method in (whole, plan_iterated(problem), plan_combined(problem)):
            squares = []
            for _ in range(runs):
                vectors = 2 * rng.binomial(m, p, size=(n, d)) / m - 1
                outcome = run(method.program(GivenVectors(vectors, np.ones(n, bool))), source)
                squares.append(float(((np.clip(method.mean(outcome), -1, 1) - vectors.mean(0)) ** 2).sum()))
            errors[method.name] = math.sqrt(np.mean(squares))
        best = min(errors.values())
        cells.append((errors[chosen.name] / best, errors[chosen.name] / whole.predicted_error(), law, d, n, m, epsilon))
        shown = ", ".join(f"{name} {1000 * error:.3g}" for name, error in errors.items())
        print(f"{law} d={d} n={n} m={m} epsilon={epsilon}: {shown}; auto {chosen.name}", flush=True)
    over, of_whole = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
    print(f"{len(cells)} cells, {time.process_time() - started:.0f} s. Over the best: median {np.median(over):.2f},")
    print(f"above 1.1 in {np.mean(over > 1.1):.0%}, worst {max(cells)}; of whole range: {np.median(of_whole):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--users", default="500,1000,10000")
    parser.add_argument("--records", default="1,16,256")
    parser.add_argument("--epsilons", default="0.5,1,2")
    parser.add_argument("--battery", default="usual,adversarial")
    parser.add_argument("--columns", default="64")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-hint", action="store_true")
    parser.add_argument("--promise", action="store_true")
    given = parser.parse_args()
    if given.promise:
        promised(given.runs, list(map(int, given.columns.split(","))))
        return
    distributions: dict[str, Distribution] = {}
    for battery in given.battery.split(","):
        distributions |= {"usual": USUAL, "adversarial": adversarial()}[battery]
    chosen = given.only.split(",") if given.only else list(distributions)
    d, source, started, cells = int(given.columns), source_of(None), time.process_time(), []
    sizes = itertools.product(
        map(int, given.users.split(",")), map(int, given.records.split(",")), given.epsilons.split(",")
    )
    for n, m, epsilon in sizes:
        method = method_of(n, d, m, epsilon, not given.no_hint)
        whole = method.users / n
        if not method.worth_it:
            print(f"n={n} m={m} epsilon={epsilon}: no clipping, by the public rule", flush=True)
            continue
        for name in chosen:
            rng = np.random.default_rng([n, m, d, len(name)])
            squares, clipped = [], 0
            for _ in range(given.runs):
                vectors = distributions[name](n, d, m, method.users, rng)
                outcome = run(method.program(GivenVectors(vectors, np.ones(n, bool))), source)
                squares.append(float(((method.inside(method.mean(outcome)) - vectors.mean(0)) ** 2).sum()))
                clipped += method.clipped(outcome)
            error = math.sqrt(np.mean(squares))
            ratio, off = error / whole, float(np.std(squares)) / 2 / error / whole / math.sqrt(given.runs)
            cells.append((ratio, off, name, n, m, epsilon))
            print(
                f"n={n} m={m} epsilon={epsilon} {name:26s} {1000 * error:8.3g} of {1000 * whole:8.3g}: "
                f"ratio {ratio:.3f} +- {off:.3f}, clipped {clipped / given.runs:.2f}",
                flush=True,
            )
    if cells:
        above = sum(ratio > 1.1 for ratio, *_ in cells)
        print(f"{len(cells)} cells, {above} above 1.1; {time.process_time() - started:.0f} s. Worst:")
        for ratio, off, *cell in sorted(cells, reverse=True)[:12]:
            print(f"  {ratio:.3f} +- {off:.3f}", *cell)


if __name__ == "__main__":
    main()
