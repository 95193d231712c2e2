"""Phased ERM: regularized problems in turn, each on users of its own.

Source: [LSAKKMS21, Algorithm 4], with a number of rounds that leaves every round enough users.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.accounting.cost import PrivacyCost
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Delta, counted, parse_level
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.descent import DescentProblem, PrivateDescent, number_of_rounds
from userdp.optimization.losses import GradientRows
from userdp.optimization.winsorized import GradientOptions, PrivateGradientDescent, gradient_options, winsorized_descent
from userdp.public_randomness import PublicSeed


@dataclass(frozen=True)
class Phases:
    """What the rounds of a phased minimization are made of."""

    printed_rounds: int  # T as Algorithm 4 has it: its late rounds may have no users at all
    users: tuple[int, ...]  # n_t = floor(n / 2**t), t = 1, 2, ..., as many as leave `least_users` in the last round
    regularizations: tuple[float, ...]  # lambda_t = 4**t lambda

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.users)


def phases(
    *,
    n_users: int,
    lipschitz: float,
    sub_gaussian: float,
    dimension: int,
    m: int,
    epsilon: float,
    radius: float,
    least_users: int,
) -> Phases:
    """Plan the rounds, of which each after the first has `least_users` at least."""
    # lambda = sqrt(G min(G, sigma sqrt(d)) / (n m) + sigma^2 d^2 / (n^2 m epsilon^2)) / R. The printed number of rounds
    # is ceil(log2(G n sqrt(m) epsilon / (sigma d))), whose last round has about sigma d / (G sqrt(m) epsilon) users:
    # fewer than the sqrt(d) / epsilon for which a private gradient is better than none. Here rounds end at
    # floor(log2(n / least_users)). The last round then regularizes less than the proof of the rate needs: no such rate
    # is claimed.
    ratio = lipschitz * n_users * math.sqrt(m) * epsilon / (sub_gaussian * dimension)
    printed = max(1, math.ceil(math.log2(ratio)))
    rounds = max(1, min(printed, (n_users // least_users).bit_length() - 1))
    statistical = lipschitz * min(lipschitz, sub_gaussian * math.sqrt(dimension)) / (n_users * m)
    private = (sub_gaussian * dimension / (n_users * epsilon)) ** 2 / m
    least = math.sqrt(statistical + private) / radius
    numbers = range(1, rounds + 1)
    return Phases(printed, tuple(n_users >> t for t in numbers), tuple(4.0**t * least for t in numbers))


def default_least_users(dimension: int, epsilon: float, delta: float) -> int:
    """Four times as many as make the noise of one private mean in a ball as long as the ball is, roughly."""
    noise = math.sqrt(8 * dimension * math.log(1 / delta)) if delta else 8 * dimension
    return max(2, math.ceil(4 * noise / epsilon))


def phase_iterations(
    *,
    smoothness: float,
    regularization: float,
    n_users: int,
    m: int,
    lipschitz: float,
    sub_gaussian: float,
    dimension: int,
    epsilon: float,
    radius: float,
    most: int,
) -> int:
    """Iterations of a round: [LSAKKMS21, Corollary 2] at mu = lambda_t, and at most so many."""
    precision = n_users**2 * m * lipschitz * regularization * radius * epsilon**2 / (sub_gaussian * dimension) ** 2
    condition = (smoothness + regularization) / regularization
    return max(1, min(most, math.ceil(condition * math.log(max(math.e, precision)))))


def blocks_of(n_users: int, users: tuple[int, ...], seed: PublicSeed | None) -> list[npt.NDArray[np.uint32]]:
    """Disjoint blocks of users for the rounds: a function of public numbers only, never of anybody's records."""
    # Users are taken in the order in which they are enrolled, or in a public random order. Those whom the sizes leave
    # over are in the first block.
    order = np.arange(n_users, dtype=np.uint32)
    if seed is not None:
        order = np.argsort(seed.race_keys("userdp phases", 0, n_users), kind="stable").astype(np.uint32)
    first = n_users - sum(users[1:])
    ends = np.cumsum([first, *users[1:]])
    return [np.sort(block) for block in np.split(order, ends[:-1])]


ASSIGNMENTS = ("random", "enrolled")


class PhasedDescent(PrivateDescent):
    """Strongly convex descents on disjoint blocks of users, each from where the one before ended."""

    # Parallel composition. A user is in one block, whatever anybody's records are. Replacing a user's records changes
    # what one round draws from; the rounds before have the same distribution, and those after are functions of what was
    # released and of users whose records are the same. So each round may spend all of the budget.

    def __init__(
        self,
        problem: DescentProblem,
        options: GradientOptions,
        seed: PublicSeed,
        *,
        least_users: int | None = None,
        max_iterations: int = 100,
        assignment: str = "random",
    ) -> None:
        self.problem = problem
        # The schedule of this rule counts on users who are as near as that, whether anybody promised it or not.
        self.options = options if options.promised else replace(options, sub_gaussian=options.sigma(problem))
        self.seed = seed
        self.max_iterations = max_iterations
        epsilon = float(parse_level(problem.epsilon))
        self.public: dict[str, Any] = {
            "lipschitz": problem.lipschitz,
            "sub_gaussian": options.sigma(problem),
            "dimension": problem.dimension,
            "m": problem.m,
            "epsilon": epsilon,
            "radius": problem.radius,
        }
        fewest = least_users or default_least_users(problem.dimension, epsilon, float(problem.delta))
        self.phases: Phases = phases(n_users=problem.n_users, least_users=fewest, **self.public)
        self.blocks = blocks_of(problem.n_users, self.phases.users, seed if assignment == "random" else None)
        self.draws = sum(self.round(t, self._start).draws for t in range(self.phases.rounds))

    @property
    def _start(self) -> npt.NDArray[np.float64]:
        return np.array(self.problem.start)

    def round(self, index: int, start: npt.NDArray[np.float64]) -> PrivateDescent:
        """The descent of a round, from 0, that starts at a public point."""
        regularization = self.phases.regularizations[index]
        problem = replace(
            self.problem,
            n_users=len(self.blocks[index]),
            start=tuple(start.tolist()),
            anchor=tuple(start.tolist()),
            regularization=regularization,
        )
        n_iterations = self.options.n_iterations or phase_iterations(
            smoothness=self.problem.smoothness,
            regularization=regularization,
            n_users=self.phases.users[index],
            most=self.max_iterations,
            **self.public,
        )
        # Rotations of a round are its own.
        seed = PublicSeed(self.seed.block("userdp phase", index))
        return winsorized_descent(problem, replace(self.options, n_iterations=n_iterations), seed)

    def budget(self) -> Budget:
        each = [self.round(index, self._start).budget().cost for index in range(self.phases.rounds)]
        name, epsilon = f"each of {len(each)} disjoint blocks", positive_epsilon(self.problem.epsilon)
        rhos = [cost.rho for cost in each if cost.rho is not None]
        delta = max(cost.delta for cost in each)
        if len(rhos) < len(each):
            return Budget(PrivacyCost(epsilon, delta), {name: epsilon})
        # Ideal distributions that all rounds are near at once; what their distance is in delta, each round has paid for
        # its own.
        distance = sum((cost.distance for cost in each), Fraction(0))
        mu2s = [cost.mu2 for cost in each if cost.mu2 is not None]
        if len(mu2s) < len(each):
            return Budget(PrivacyCost(epsilon, delta, rho=max(rhos), distance=distance), {name: max(rhos)}, "rho")
        cost = PrivacyCost(epsilon, delta, rho=max(rhos), distance=distance, mu2=max(mu2s))
        return Budget(cost, {name: max(mu2s)}, "mu2")

    def program(self, rows: GradientRows) -> AdaptiveMechanism:
        def transcript(draw: Sampler) -> Hashable:
            answers: list[Hashable] = []
            start = self._start
            for index, block in enumerate(self.blocks):
                descent = self.round(index, start)
                answers.append(descent.program(rows.of(block))(draw))
                start = descent.theta(answers[-1])
            return tuple(answers)

        return transcript

    def theta(self, outcome: Any) -> npt.NDArray[np.float64]:
        start = self._start
        for index, answer in enumerate(outcome):
            start = self.round(index, start).theta(answer)
        return start

    def outcomes(self) -> Iterator[Hashable]:
        return product(*(self.round(t, self._start).outcomes() for t in range(self.phases.rounds)))

    def n_outcomes(self) -> int:
        return counted(*((self.round(t, self._start).n_outcomes(), 1) for t in range(self.phases.rounds)))

    def warnings(self) -> list[str]:
        # The last round has the fewest users.
        return self.round(self.phases.rounds - 1, self._start).warnings()


@estimator
class PhasedERM(PrivateGradientDescent):
    """Minimize the expected loss in rounds on disjoint blocks of users, each with the whole budget.

    Round t takes about n / 2**t users who were in no round before, and minimizes their mean loss plus
    lambda_t |theta - theta_{t-1}|^2 / 2, by a private descent from theta_{t-1}; lambda_t is four times that of the
    round before. For convex losses.

    Attributes
    ----------
    theta_ : ndarray with shape (d,)
        Released.
    public_seed_ : str
        Public.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the records of one user, by parallel composition:
    docs/proofs/phased_erm.md.

    *Rate.* With the printed number of rounds the last ones have no users (docs/errata.md). This one stops earlier, and
    loses the printed rate R sqrt(G min(G, sigma sqrt(d)) / (m n)) + R sigma d / (n sqrt(m) epsilon): the point of the
    last round is only as near to the minimizer as its lambda_T makes it, and no rate is claimed. On data, a single
    descent on all users is usually better.

    References
    ----------
    [LSAKKMS21, Algorithm 4] and [LSAKKMS21, Theorem 4].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.optimization import L2Ball, PhasedERM, SquaredLoss
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(4000), 16)
    >>> X = rng.uniform(-1, 1, size=(64_000, 1))
    >>> y = 0.5 * X[:, 0] + rng.uniform(-0.2, 0.2, size=64_000)
    >>> public = {"max_norm": 1.0, "target_bounds": (-1, 1), "constraint": L2Ball(1.0)}
    >>> phased = PhasedERM(epsilon=2, delta=1e-6, loss=SquaredLoss(), m=16, max_iterations=10, **public)
    >>> bool(abs(phased.fit(X, y, groups=users).theta_[0] - 0.5) < 0.3)
    True
    """

    delta: Delta = fields.delta(default=0, doc="In [0, 1).")
    least_users: int | None = fields.count(
        default=None,
        doc="""
        Rounds end before one would have fewer users. By default ceil(4 sqrt(8 d ln(1 / delta)) / epsilon), or
        ceil(32 d / epsilon) for delta = 0.
        """,
    )
    max_iterations: int = fields.parameter(
        default=100,
        check=number_of_rounds,
        kind="int",
        doc="""
        The most iterations of a round, where `n_iterations` is not given: those of [LSAKKMS21, Corollary 2] are very
        many.
        """,
    )
    assignment: str = fields.choice(
        ASSIGNMENTS,
        default="random",
        doc="""
        Who is in which round: by `public_seed`, or by the order of user ids, that of `enrolled` where it is given. Both
        are functions of the public list of users, and never of records: if they were, all rounds could depend on a
        user. Without `enrolled` the list of those who have records is public.
        """,
    )

    def _symmetric(self) -> bool:
        # Who is in which round goes by the user's number.
        return False

    def _descent(self, problem: DescentProblem, seed: PublicSeed | None) -> PrivateDescent:
        assert seed is not None
        return PhasedDescent(
            problem,
            gradient_options(self, variant="strongly-convex"),
            seed,
            least_users=self.least_users,
            max_iterations=int(self.max_iterations),
            assignment=self.assignment,
        )
