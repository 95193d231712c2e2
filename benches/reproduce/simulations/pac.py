"""Users needed to choose a hypothesis of a finite class: users are drawn, and the distribution of the release computed.

Bad hypotheses of the reference data say something else than the best one on their own random part of the examples. So
users' mistakes are binomial numbers, which are drawn in place of examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from benches.reproduce.simulation import Floats, Point, between, ends, whole
from benches.reproduce.simulations.thresholds import learner_point

from userdp.learners import clipped_pairwise_scores
from userdp.learners.tolerance import candidates_for_t
from userdp.mechanisms import ApproximatePrivateMode
from userdp.planning.chances import FLIPPED, binomial, miss_of_score, misses
from userdp.planning.tasks.pac import (
    disagreement,
    gamma_of,
    rows_that_count,
    tau_of,
)

NEVER = 1e-12
"""Less likely votes are left out."""
FEW = 4
"""Users with equally many mistakes are drawn one by one up to so many."""
OF_ONE = 2**16
"""Hypotheses of all repetitions of a run with one record of each user."""
RIVALS = 16
"""The hypotheses with the fewest mistakes, with which all are compared: no other sets a score."""
MANY, FEWER = 10**4, 2**7
"""The most hypotheses, and of the method that compares all pairs of them."""


def sizes(rng: np.random.Generator, most: int) -> int:
    """How many hypotheses."""
    return int(ends(rng, 4, most, lambda: whole(rng, 4, most)))


@dataclass(frozen=True)
class Realizable:
    """`userdp.learners.RealizablePACClassifier`, for all records or with one of each user."""

    method: str
    task: str = "pac"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        return learner_point(rng) | {"n_hypotheses": sizes(rng, MANY)}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        m, rate, n, size = point["m"], float(point["epsilon"]), n_users, point["n_hypotheses"]
        if self.method == "one record per person":
            m = 1
        elif self.method != "realizable":
            m, rate, n = 1, rate / m, n * m
        failing = 1 - (1 - disagreement(point["alpha"])) ** rows_that_count(m, point["alpha"])
        scores = np.zeros((runs, size))
        scores[:, 1:] = rng.binomial(n, failing, size=(runs, size - 1))
        return misses(scores, rate / 2, np.arange(size) > 0, flips=size <= FLIPPED)


@dataclass(frozen=True)
class Correlated:
    """`userdp.learners.CorrelatedSamplingClassifier`."""

    method: str = "correlated sampling"
    task: str = "pac"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        point = learner_point(rng) | {
            "delta": ends(rng, 1e-10, 1e-4, lambda: between(rng, 1e-10, 1e-4)),
            "n_hypotheses": sizes(rng, MANY),
        }
        # With fewer records users do not agree, whatever their number is.
        least = math.ceil(5 * math.log(10 * point["n_hypotheses"]) / point["alpha"])
        return point | {"m": whole(rng, least, max(least, 2**11))}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        size, m = point["n_hypotheses"], point["m"]
        mode = ApproximatePrivateMode(epsilon=point["epsilon"], delta=point["delta"])
        wrong = disagreement(point["alpha"])
        # Pr[fewer than so many mistakes].
        likely = np.append(0.0, np.cumsum(binomial(m, wrong)))
        found = np.empty(runs)
        for run in range(runs):
            race = np.log(rng.exponential(size=size))
            # Others take a vote only if they are ahead in the race, and then with fewer mistakes than these.
            fewer = np.ceil((race[0] - race) * m / gamma_of(size, point["alpha"])).astype(np.int64)
            near = np.append(0, np.flatnonzero(likely[np.clip(fewer, 0, m + 1)] > NEVER))
            missed = rng.binomial(m, wrong, size=(n_users, len(near)))
            missed[:, 0] = 0
            votes = near[np.argmax(-gamma_of(size, point["alpha"]) / m * missed - race[near], axis=1)]
            items, numbers = np.unique(votes, return_counts=True)
            released = mode.pmf(dict(zip(items.tolist(), numbers.tolist(), strict=True)))
            chances = dict(zip(released.outputs, released.probabilities, strict=True))
            found[run] = 1 - chances.get(0, 0.0)
        return found


def scores_of_pairs(counts: npt.NDArray[np.int64], tau: int) -> npt.NDArray[np.int64]:
    """As `userdp.learners.clipped_pairwise_scores`, where the rivals have the largest sums."""
    if len(counts) <= 2 * RIVALS:
        return clipped_pairwise_scores(counts, tau)
    small = counts.astype(np.int16)
    rivals = np.argsort(counts.sum(axis=1))[:RIVALS]
    found = np.full(len(counts), np.iinfo(np.int64).min)
    for rival in rivals:
        sums = np.clip(small - small[rival], -tau, tau).sum(axis=1, dtype=np.int64)
        sums[rival] = found[rival]
        np.maximum(found, sums, out=found)
    return found


@dataclass(frozen=True)
class Agnostic:
    """`userdp.learners.AgnosticPACClassifier`."""

    method: str
    task: str = "agnostic"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        return learner_point(rng) | {
            "n_hypotheses": sizes(rng, FEWER if self.method == "pairwise" else MANY),
            "eta": ends(rng, 0, 0.3, lambda: round(float(rng.uniform(0, 0.3)), 3)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        m, rate, n, size = point["m"], float(point["epsilon"]), n_users, point["n_hypotheses"]
        if self.method == "one record per person":
            m = 1
        elif self.method not in ("score", "pairwise"):
            m, rate, n = 1, rate / m, n * m
        part, flips, bad = disagreement(point["alpha"], point["eta"]), size <= FLIPPED, np.arange(size) > 0
        if self.method == "pairwise" and m > 1:
            return self._pairwise(point, n, runs, part, rng)
        if m == 1:
            # Where failures are all or nothing it takes many; these are cheap.
            times = min(max(OF_ONE // size, 1), 16)
            best = rng.binomial(n, point["eta"], size=(runs * times, 1))
            others = best - rng.binomial(best, part, size=(runs * times, size - 1))
            others += rng.binomial(n - best, part, size=(runs * times, size - 1))
            missed = misses(np.concatenate([best, others], axis=1), rate / 2, bad, flips=flips)
            return missed.reshape(runs, times).mean(axis=1)
        found = np.empty(runs)
        tolerated = np.array(candidates_for_t(m))
        # How many mistakes a bad hypothesis makes for a user, by the number that the best one makes.
        chances = np.array([np.convolve(binomial(y, 1 - part), binomial(m - y, part)) for y in range(m + 1)])
        edges = [0, *(tolerated + 1).tolist(), m + 1]
        between_ts = np.add.reduceat(chances, edges[:-1], axis=1)
        between_ts /= between_ts.sum(axis=1, keepdims=True)
        below = np.cumsum(between_ts, axis=1)[:, :-1]
        for run in range(runs):
            users = rng.multinomial(n, binomial(m, point["eta"]))
            scores = np.zeros((len(tolerated), size))
            for y in np.flatnonzero(users):
                scores[:, 0] += users[y] * (y > tolerated)
                if users[y] <= FEW:
                    # How many candidates for t a user's mistakes are above.
                    above = np.searchsorted(below[y], rng.random((users[y], size - 1)), side="right")
                    for place in range(len(tolerated)):
                        scores[place, 1:] += (above > place).sum(axis=0)
                    continue
                drawn = rng.multinomial(users[y], between_ts[y], size=size - 1)
                scores[:, 1:] += (users[y] - np.cumsum(drawn, axis=1)[:, :-1]).T
            found[run] = miss_of_score(scores, n, rate, np.arange(size) > 0, log_sizes=np.zeros(size), flips=flips)
        return found

    def _pairwise(self, point: Point, n: int, runs: int, part: float, rng: np.random.Generator) -> Floats:
        m, size, tau = point["m"], point["n_hypotheses"], tau_of(point["alpha"], point["m"])
        found = np.empty(runs)
        for run in range(runs):
            best = rng.binomial(m, point["eta"], size=n)
            others = best - rng.binomial(best, part, size=(size - 1, n)) + rng.binomial(m - best, part, (size - 1, n))
            counts = np.concatenate([best[None], others]).astype(np.int64)
            scores = counts.sum(axis=1) if tau >= m else scores_of_pairs(counts, tau)
            sensitivity = m if tau >= m else 2 * tau
            rate = float(point["epsilon"]) / (2 * sensitivity)
            found[run] = misses(scores, rate, np.arange(size) > 0, flips=size <= FLIPPED)
        return found


USUAL = ("one record per person", "group privacy", "per-user clipping")
SIMULATIONS = (
    *(Realizable(method) for method in ("realizable", *USUAL)),
    Correlated(),
    *(Agnostic(method) for method in ("score", "pairwise", *USUAL)),
)
