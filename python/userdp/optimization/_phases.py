"""Public plans of phased minimisation: how many rounds, how many users and how much regularisation in each.

Source: LSAKKMS21, Algorithm 4, with a number of rounds that leaves every round enough users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from userdp.stability import PublicSeed

__all__ = ["Phases", "blocks_of", "default_least_users", "phase_steps", "phases"]


@dataclass(frozen=True)
class Phases:
    """What the rounds of a phased minimisation are made of.

    Attributes
    ----------
    printed_rounds : int
        T as Algorithm 4 has it: its late rounds may have no users at all.
    users : tuple of int
        n_t = floor(n / 2**t) for t = 1, 2, ..., as many as leave `least_users` in the last round.
    regularizations : tuple of float
        lambda_t = 4**t lambda.
    """

    printed_rounds: int
    users: tuple[int, ...]
    regularizations: tuple[float, ...]

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
    """Plan the rounds.

    Parameters
    ----------
    n_users : int
        n.
    lipschitz : float
        G.
    sub_gaussian : float
        sigma of a row's gradient.
    dimension, m : int
        d, and how many rows a user is expected to have.
    epsilon : float
    radius : float
        R.
    least_users : int
        The fewest users that a round after the first may have.

    Notes
    -----
    lambda = sqrt(G min(G, sigma sqrt(d)) / (n m) + sigma^2 d^2 / (n^2 m epsilon^2)) / R. The printed number of rounds
    is ceil(log2(G n sqrt(m) epsilon / (sigma d))), whose last round has about sigma d / (G sqrt(m) epsilon) users:
    fewer than the sqrt(d) / epsilon for which a private gradient is better than none. Here rounds end at
    floor(log2(n / least_users)). The last round then regularises less than the proof of the rate needs: no such rate is
    claimed.
    """
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


def phase_steps(
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
    """Steps of a round: LSAKKMS21, Corollary 2 at mu = lambda_t, and at most so many."""
    precision = n_users**2 * m * lipschitz * regularization * radius * epsilon**2 / (sub_gaussian * dimension) ** 2
    condition = (smoothness + regularization) / regularization
    return max(1, min(most, math.ceil(condition * math.log(max(math.e, precision)))))


def blocks_of(n_users: int, users: tuple[int, ...], seed: PublicSeed | None) -> list[npt.NDArray[np.uint32]]:
    """Disjoint blocks of users for the rounds: a function of public numbers only, never of anybody's rows.

    Users are taken in the order in which they are enrolled, or in a public random order. Those whom the sizes leave
    over are in the first block.
    """
    order = np.arange(n_users, dtype=np.uint32)
    if seed is not None:
        order = np.argsort(seed.race_keys("userdp phases", 0, n_users), kind="stable").astype(np.uint32)
    first = n_users - sum(users[1:])
    ends = np.cumsum([first, *users[1:]])
    return [np.sort(block) for block in np.split(order, ends[:-1])]
