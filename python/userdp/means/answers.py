"""Several means of the same users under one account, of which each spends a part."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget, equal_part, split_budget
from userdp.means.methods import METHODS
from userdp.means.plan import Floats, MeanMethod, MeanProblem
from userdp.means.rotation import padded, rotated_back, signs_of
from userdp.mechanisms.composed import Sampler
from userdp.public_randomness import PublicSeed

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

DISTANCE_OF_ANSWER = Fraction(1, 2**86)
"""A coordinate of an answer is drawn in fewer than 2**4 rounds, whose noise is within 2**-90 of an ideal pmf each."""


@dataclass(frozen=True)
class Answers:
    """So many means, each by the same method with the same part of one account.

    Attributes
    ----------
    method : MeanMethod
        Planned for one of them.
    problem : MeanProblem
        Of one of them.
    number : int
        K.
    budget : Budget
        Of all.
    """

    method: MeanMethod
    problem: MeanProblem
    number: int
    budget: Budget

    def draw(self, vectors: UserVectors, seed: PublicSeed | None, index: int, draw: Sampler) -> Hashable:
        """What is drawn for one of the means, from vectors that are not rotated."""
        if self.method.rotated():
            vectors = vectors.rotated(self._signs(seed, index))
        return self.method.program(vectors)(draw)

    def mean(self, outcome: Any, seed: PublicSeed | None, index: int) -> Floats:
        """What was released, in the ball of all vectors; post-processing."""
        mean = self.method.mean(outcome)
        if self.method.rotated():
            mean = rotated_back(mean, self._signs(seed, index), self.problem.dimension)
        if self.problem.norm == "max":
            return np.clip(mean, -self.problem.bound, self.problem.bound)
        nearest: Floats = mean * (self.problem.ball / max(self.problem.ball, float(np.linalg.norm(mean))))
        return nearest

    def _signs(self, seed: PublicSeed | None, index: int) -> Any:
        assert seed is not None
        # Of its own for each answer, so that a question cannot be made for the signs of those before.
        return signs_of(PublicSeed(seed.block("userdp answers", index)), self.problem.dimension)


@lru_cache(maxsize=256)
def plan_answers(method: str, problem: MeanProblem, number: int) -> Answers:
    """Plan K means under the account of a problem: its epsilon and delta are those of all together.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    problem : MeanProblem
    number : int
        K.

    Notes
    -----
    With delta = 0 each mean is epsilon / K-DP. Otherwise all draws of all means share one rho: zCDP adds up over
    adaptive releases, so each mean gets rho / K, where rho is the largest that implies (epsilon, delta)-DP after paying
    for how far noise is from its ideal distributions. With a delta the pure account is taken all the same where its
    predicted error is less, as it is for few means of few columns. See docs/proofs/adaptive_queries.md.
    """
    if not problem.delta or method == "laplace":
        return _pure(method, problem, number)
    if method not in ("auto", "iterated", "practical"):
        return _concentrated(method, problem, number)
    plans = []
    # In rho there is none where the distance of the noise from the ideal distribution would take all of delta.
    for account in (_concentrated, _pure):
        with suppress(ValueError):
            plans.append(account(method, problem, number))
    if not plans:
        return _pure(method, problem, number)  # which says what is wrong
    return min(plans, key=lambda answers: answers.method.predicted_error())


def _pure(method: str, problem: MeanProblem, number: int) -> Answers:
    one = replace(problem, epsilon=equal_part(problem.epsilon, number), delta=Fraction(0))
    return Answers(METHODS[method](one), one, number, problem.budget(split_budget(problem.epsilon, {"answers": 1})))


def _concentrated(method: str, problem: MeanProblem, number: int) -> Answers:
    distance = number * padded(problem.dimension) * DISTANCE_OF_ANSWER
    one = replace(problem, rho=problem.largest_rho(distance) / number)
    chosen = METHODS[method](one)
    spent = chosen.budget().cost
    rho, off = (spent.rho or Fraction(0)) * number, spent.distance * number
    if spent.rho is None or spent.rho > one.largest_rho(Fraction(0)) or off > distance:
        raise AssertionError(f"method {method!r} spends more than its part of the account")
    budget = problem.budget({"answers": rho}, delta=problem.delta, rho=rho, distance=off, unit="rho")
    return Answers(chosen, one, number, budget)
