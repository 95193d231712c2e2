"""The methods for means by name, the rule of method="auto", and several means under one account."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget, equal_part, split_budget
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Epsilon
from userdp.means.combined import CombinedMean, combined_by_default, plan_combined
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.iterated import LEAST_RESOLUTION, plan_gaussian, plan_iterated
from userdp.means.problem import Floats, MeanMethod, MeanProblem
from userdp.means.winsorized import padded, plan_laplace, plan_paper, plan_practical, rotated_back, signs_of
from userdp.mechanisms.composed import Sampler
from userdp.public_randomness import PublicSeed

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

DISTANCE_OF_ANSWER = Fraction(1, 2**86)
"""A coordinate of an answer is drawn in fewer than 2**4 rounds, whose noise is within 2**-90 of an ideal pmf each."""


def whole_range(problem: MeanProblem) -> MeanMethod:
    """Noise for the whole range, in which nobody is clipped: the lesser of Gaussian and Laplace noise."""
    if problem.part is not None:
        return plan_gaussian(problem)
    plans = [plan_laplace(problem)]
    if problem.delta:
        with suppress(ValueError):  # the distance of the noise from the ideal distribution would take all of delta
            plans.append(plan_gaussian(problem))
    return min(plans, key=lambda method: method.predicted_error())


def choose(problem: MeanProblem) -> MeanMethod:
    """The method to use when the user names none, from public numbers and what somebody vouches for.

    Nobody is clipped inside the public bounds unless released tests say that it moves the mean by little, or the caller
    promised how near users are. Under a promise it is the method with the least error to expect where it is true, or
    with the least of the largest errors that it allows for.
    """
    whole = whole_range(problem)
    if problem.promise == "expected":
        return min((whole, plan_iterated(problem)), key=lambda method: method.predicted_error())
    if problem.promise != "none":
        plans: list[tuple[float, MeanMethod]] = [(whole.predicted_error(), whole)]
        iterated, d = plan_iterated(problem), problem.dimension
        if iterated.accuracy().worst(d) < whole.accuracy().worst(d):
            plans.append((iterated.predicted_error(), iterated))
        if problem.objective == "worst":
            return plans[-1][1]
        if problem.delta or problem.part is not None:
            with suppress(ValueError):  # as in `whole_range`
                tested = CombinedMean.of(problem)
                if tested.worth_it:
                    plans.append((tested.expected_error(), tested))
        _, best = min(plans, key=lambda plan: plan[0])
        if best is not whole:
            return best
    return plan_combined(problem) if combined_by_default(problem) else whole


MOST_NOISE = 0.1
"""Of what an answer may be, half a range or a norm: more is warned of."""


def noise_warnings(n_users: int, epsilon: Epsilon, share: float, of: str) -> list[str]:
    """A warning where noise, in units of what an answer may be, is large: from public numbers."""
    if share <= MOST_NOISE:
        return []
    what = "the released number is noise" if share >= 1 else f"noise of {share:.2g} times {of}"
    needed = math.ceil(n_users * share / MOST_NOISE)
    return [
        f"{n_users} users are too few at epsilon={float(positive_epsilon(epsilon)):.3g}: {what}; about {needed:,} "
        f"users have {MOST_NOISE:g} times {of}"
    ]


METHODS: Mapping[str, Callable[[MeanProblem], MeanMethod]] = {
    "auto": choose,
    "tested": plan_combined,
    "iterated": plan_iterated,
    "gaussian": plan_gaussian,
    "practical": plan_practical,
    "paper": plan_paper,
    "laplace": plan_laplace,
}
"""Each plans a release from public numbers."""
NEED_A_PROMISE = ("iterated", "practical", "paper")
"""Methods that clip where users are expected to be."""


@lru_cache(maxsize=64)
def planned_method(plan: Callable[[MeanProblem], MeanMethod], problem: MeanProblem) -> MeanMethod:
    """A plan for a problem, kept while it is in use: it may take tenths of a second to search."""
    return plan(problem)


@dataclass(frozen=True)
class Answers:
    """Several means of the same users, each by the same method with the same part of one account."""

    method: MeanMethod  # planned for one of them
    problem: MeanProblem  # of one of them
    number: int  # K
    budget: Budget  # of all

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
            return np.clip(mean, -self.problem.max_norm, self.problem.max_norm)
        return mean * (self.problem.ball / max(self.problem.ball, float(np.linalg.norm(mean))))

    def _signs(self, seed: PublicSeed | None, index: int) -> Any:
        assert seed is not None
        # Of its own for each answer, so that a question cannot be made for the signs of those before.
        return signs_of(PublicSeed(seed.block("userdp answers", index)), self.problem.dimension)


@lru_cache(maxsize=256)
def plan_answers(method: str, problem: MeanProblem, number: int) -> Answers:
    """Plan K means under the account of a problem, whose epsilon and delta are those of all together."""
    # With delta = 0 each mean is epsilon / K-DP. Otherwise all draws of all means share one account of Gaussian noise:
    # rho and mu^2 add up over adaptive releases, so each mean gets 1 / K of the largest that implies
    # (epsilon, delta)-DP after paying for how far noise is from its ideal distributions. With a delta the pure account
    # is taken all the same where its predicted error is less, as for few means of few columns. See
    # docs/proofs/adaptive_queries.md.
    if not problem.delta or method == "laplace":
        return _pure(method, problem, number)
    or_pure = method in ("auto", "iterated", "practical")
    accounts: tuple[GaussianAccount, ...] = ()
    try:
        accounts = problem.accounts(number * _integers(problem), LEAST_RESOLUTION)
    except ValueError:  # the distance of the noise would take all of delta
        if not or_pure:
            raise
    plans = []
    for account in accounts:
        # Pure noise takes no part of an account of Gaussian noise.
        with suppress(*((ValueError,) if or_pure or account.unit == "mu2" else ())):
            plans.append(_concentrated(method, problem, number, account))
    if or_pure:
        with suppress(ValueError):
            plans.append(_pure(method, problem, number))
    if not plans:
        return _pure(method, problem, number)  # which says what is wrong
    return min(plans, key=lambda answers: answers.method.predicted_error())


def _integers(problem: MeanProblem) -> int:
    """How many integers of an answer get noise, at most, by the distance of all."""
    return math.ceil(padded(problem.dimension) * DISTANCE_OF_ANSWER / NOISE_DISTANCE)


def _pure(method: str, problem: MeanProblem, number: int) -> Answers:
    one = replace(problem, epsilon=equal_part(problem.epsilon, number), delta=Fraction(0))
    return Answers(METHODS[method](one), one, number, problem.budget(split_budget(problem.epsilon, {"answers": 1})))


def _concentrated(method: str, problem: MeanProblem, number: int, account: GaussianAccount) -> Answers:
    part = account.part(Fraction(1, number))
    one = replace(problem, part=part)
    planned = METHODS[method](one)
    cost = planned.budget().cost
    spent = cost.rho if account.unit == "rho" else cost.mu2
    if spent is None or spent > part.amount or cost.distance > _integers(problem) * NOISE_DISTANCE:
        raise AssertionError(f"method {method!r} spends more than its part of the account")
    share = spent * number / account.amount
    return Answers(planned, one, number, problem.gaussian_budget(account, {"answers": share}, cost.distance * number))
