"""Users needed to choose a hypothesis of a finite class: users are drawn, and the distribution of the release computed.

Bad hypotheses of the reference data say something else than the best one on their own random part of the examples. So
users' mistakes are binomial numbers, which are drawn in place of examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benches.reproduce.simulation import Floats, Point, between, whole

from userdp.learners import clipped_pairwise_scores
from userdp.learners.tolerance import candidates_for_t
from userdp.mechanisms import ApproximatePrivateMode
from userdp.planning.chances import FLIPPED, binomial, misses
from userdp.planning.tasks.pac import (
    disagreement,
    gamma_of,
    miss_of_score,
    rows_that_count,
    tau_of,
)


@dataclass(frozen=True)
class Realizable:
    """`userdp.learners.RealizablePACClassifier`, for all records or with one of each user."""

    method: str
    task: str = "pac"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        return {
            "m": whole(rng, 1, 256),
            "epsilon": between(rng, 0.25, 2 if self.method == "realizable" else 4),
            "delta": 0,
            "alpha": between(rng, 0.02, 0.2),
            "beta": between(rng, 0.03, 0.2),
            "n_hypotheses": whole(rng, 16, 4096),
        }

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
        alpha = between(rng, 0.05, 0.2)
        return {
            "m": whole(rng, round(7 / alpha), 512),
            "epsilon": between(rng, 0.25, 4),
            "delta": between(rng, 1e-8, 1e-4),
            "alpha": alpha,
            "beta": between(rng, 0.05, 0.2),
            "n_hypotheses": whole(rng, 4, 128),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        size, m = point["n_hypotheses"], point["m"]
        mode = ApproximatePrivateMode(epsilon=point["epsilon"], delta=point["delta"])
        found = np.empty(runs)
        for run in range(runs):
            race = np.log(rng.exponential(size=size))
            missed = np.zeros((n_users, size))
            missed[:, 1:] = rng.binomial(m, disagreement(point["alpha"]), size=(n_users, size - 1))
            votes = np.argmax(-gamma_of(size, point["alpha"]) / m * missed - race, axis=1)
            items, numbers = np.unique(votes, return_counts=True)
            released = mode.pmf(dict(zip(items.tolist(), numbers.tolist(), strict=True)))
            chances = dict(zip(released.outputs, released.probabilities, strict=True))
            found[run] = 1 - chances.get(0, 0.0)
        return found


@dataclass(frozen=True)
class Agnostic:
    """`userdp.learners.AgnosticPACClassifier`."""

    method: str
    task: str = "agnostic"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        of_users = self.method in ("score", "pairwise")
        return {
            "m": whole(rng, 1, 128 if of_users else 256),
            "epsilon": between(rng, 0.25, 4),
            "delta": 0,
            "alpha": between(rng, 0.02, 0.15),
            "beta": between(rng, 0.03, 0.2),
            "n_hypotheses": whole(rng, 4, 128 if of_users else 1024),
            "eta": round(float(rng.uniform(0, 0.25)), 3),
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
            best = rng.binomial(n, point["eta"], size=(runs, 1))
            others = best - rng.binomial(best, part, size=(runs, size - 1))
            others += rng.binomial(n - best, part, size=(runs, size - 1))
            return misses(np.concatenate([best, others], axis=1), rate / 2, bad, flips=flips)
        found = np.empty(runs)
        tolerated = np.array(candidates_for_t(m))
        # How many mistakes a bad hypothesis makes for a user, by the number that the best one makes.
        chances = np.array([np.convolve(binomial(y, 1 - part), binomial(m - y, part)) for y in range(m + 1)])
        edges = [0, *(tolerated + 1).tolist(), m + 1]
        between_ts = np.add.reduceat(chances, edges[:-1], axis=1)
        between_ts /= between_ts.sum(axis=1, keepdims=True)
        for run in range(runs):
            users = rng.multinomial(n, binomial(m, point["eta"]))
            scores = np.zeros((len(tolerated), size))
            for y in np.flatnonzero(users):
                scores[:, 0] += users[y] * (y > tolerated)
                drawn = rng.multinomial(users[y], between_ts[y], size=size - 1)
                scores[:, 1:] += (users[y] - np.cumsum(drawn, axis=1)[:, :-1]).T
            found[run] = miss_of_score(scores, n, rate, log_sizes=np.zeros(size), flips=flips)
        return found

    def _pairwise(self, point: Point, n: int, runs: int, part: float, rng: np.random.Generator) -> Floats:
        m, size, tau = point["m"], point["n_hypotheses"], tau_of(point["alpha"], point["m"])
        found = np.empty(runs)
        for run in range(runs):
            best = rng.binomial(m, point["eta"], size=n)
            others = best - rng.binomial(best, part, size=(size - 1, n)) + rng.binomial(m - best, part, (size - 1, n))
            counts = np.concatenate([best[None], others]).astype(np.int64)
            scores = counts.sum(axis=1) if tau >= m else clipped_pairwise_scores(counts, tau)
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
