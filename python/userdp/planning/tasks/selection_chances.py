"""Users for which selections miss the common item with probability beta, when the others share one other item."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from userdp.exceptions import BudgetError
from userdp.mechanisms import ApproximatePrivateMode
from userdp.mechanisms.mode import binomial_window
from userdp.planning.chances import Floats, binomial, users_for
from userdp.planning.problem import NotPlanned, NotSimulated, Problem
from userdp.protocols import local, shuffle

MOST_NOISE = 2**13
"""Noise of more values is not written out here."""
MOST_COUNTED = 2**10
"""More reports of a bit are taken to be normal."""
PHI = NormalDist().cdf


def agreement(problem: Problem) -> Fraction:
    """How often a user has the common item, when all others share one other item and the lead is alpha."""
    return (1 + Fraction(problem.alpha)) / 2


def share_of(problem: Problem) -> float:
    """The same as a float."""
    return float(agreement(problem))


def users_of_threshold(problem: Problem) -> float:
    """The same for `ApproximatePrivateMode`, with Laplace noise as wide as its own."""
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    try:
        half = ApproximatePrivateMode(epsilon=problem.epsilon, delta=problem.delta).half_width
    except (ValueError, BudgetError) as error:
        raise NotPlanned(str(error)) from None
    if half > MOST_NOISE:
        raise NotSimulated(f"its noise takes more than {2 * MOST_NOISE} values")
    noise = np.arange(-half, half + 1)
    chances = np.exp(-problem.rate / 2 * np.abs(noise))
    chances /= chances.sum()
    at_most = np.concatenate([[0.0], np.cumsum(chances)])
    # How likely the noise of the common item, in steps of the lead s, beats that of the other one.
    leads = np.arange(-2 * half - 1, 2 * half + 2)
    ahead = np.array([chances @ at_most[np.clip(noise + lead + half + 1, 0, len(noise))] for lead in leads])
    shown = np.cumsum(chances[::-1])  # how likely the noise is at least half - j
    others = 1 - share_of(problem)

    def failure(n: int) -> float:
        k, masses = binomial_window(n, others)
        lead = np.clip(2 * k - n, leads[0], leads[-1]).astype(np.int64) - leads[0]
        # Few users do not reach the threshold: k + z must be at least half + 2.
        room = np.clip(k - 2, -1, 2 * half).astype(np.int64)
        reached = np.where(room >= 0, shown[np.maximum(room, 0)], 0.0)
        return float(1 - masses @ np.minimum(ahead[lead], reached))

    return users_for(failure, problem.beta)


@lru_cache(maxsize=64)
def _differences(r: float, p: float) -> Floats:
    """How likely the difference of two noises NB(r, p) is at least 0, 1, 2, ..."""
    mean, spread = r * p / (1 - p), math.sqrt(r * p) / (1 - p)
    size = math.ceil(mean + 12 * spread + 60 / -math.log(p))
    if size > MOST_NOISE:
        raise NotSimulated(f"its noise takes more than {MOST_NOISE} values")
    z = np.arange(size)
    steps = np.log(p) + np.log((z[1:] - 1 + r) / z[1:])
    masses = np.exp(r * math.log1p(-p) + np.concatenate([[0.0], np.cumsum(steps)]))
    found = np.convolve(masses, masses[::-1])[size - 1 :]
    at_least: Floats = np.cumsum(found[::-1])[::-1]
    return at_least


def users_of_shuffling(problem: Problem) -> float:
    """The same for `protocols.shuffle.Mode`: the noise in the common item's count must be above the lead."""
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    try:
        # The noise of all users together does not hang on how many they are.
        noise = shuffle.Mode(
            epsilon=problem.epsilon, delta=problem.delta, n_items=problem["n_items"], n_users=2, round_id="planning"
        )
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    at_least = _differences(float(noise.r), float(noise.p))
    others = 1 - share_of(problem)

    def failure(n: int) -> float:
        k, masses = binomial_window(n, others)
        lead = (2 * k - n).astype(np.int64)
        inside = at_least[np.clip(np.abs(lead), 0, len(at_least) - 1)]
        behind = 1 - at_least[np.clip(1 - lead, 0, len(at_least) - 1)]
        return float(masses @ np.where(lead >= 0, inside, behind))

    return users_for(failure, problem.beta)


@lru_cache(maxsize=1)
def _hermite() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return nodes, weights / weights.sum()


def users_of_reports(protocol: type[local.ItemProtocol], problem: Problem) -> float:
    """The same for reports, as if the leads over all other items were normal, with correlation 1/2."""
    size, share = problem["n_items"], share_of(problem)
    try:
        made = protocol(n_users=1, round_id="planning", epsilon=problem.epsilon, n_items=size)
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    plus, minus, neither = (float(each) for each in made.separation())
    rival = (share * plus + (1 - share) * minus, share * minus + (1 - share) * plus)
    other = (share * plus + (1 - share) * neither, share * minus + (1 - share) * neither)
    nodes, weights = _hermite()

    def ahead(n: int, up: float, down: float) -> Floats:
        gap = up - down
        lead = n * gap / math.sqrt(n * max(up + down - gap**2, 1e-12))
        return np.array([PHI(math.sqrt(2) * lead + node) for node in nodes])

    def failure(n: int) -> float:
        chances = ahead(n, *rival)
        if size > 2:
            chances = chances * np.maximum(ahead(n, *other), 1e-300) ** (size - 2)
        return float(1 - weights @ chances)

    return users_for(failure, problem.beta)


def bits_of(n_items: int) -> int:
    """Bits that tell so many items apart."""
    return max(1, (n_items - 1).bit_length())


def users_of_bits(problem: Problem) -> float:
    """The same for `BitwiseMajority`, where the other item has all other bits."""
    bits, share = bits_of(problem["n_items"]), share_of(problem)
    keep = 1 / (1 + math.exp(-problem.rate))
    right = share * keep + (1 - share) * (1 - keep)

    def wrong(reports: int) -> float:
        """Of one bit; half of the ties are."""
        if reports > MOST_COUNTED:
            return PHI(-reports * (2 * right - 1) / math.sqrt(reports * 4 * right * (1 - right)))
        chances, half = binomial(reports, right), reports // 2
        return float(chances[: (reports + 1) // 2].sum() + (chances[half] / 2 if reports % 2 == 0 else 0.0))

    def failure(n: int) -> float:
        each, more = divmod(n, bits)
        surely = (bits - more) * math.log1p(-wrong(each)) + more * math.log1p(-wrong(each + 1))
        return -math.expm1(surely)

    return users_for(failure, problem.beta)
