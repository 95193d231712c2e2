"""Numbers of users below which nobody solves a task privately: the terms of a lower bound, each with its theorem.

Statements and proofs: docs/proofs/lower_bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from userdp import _core
from userdp.accounting import group_privacy
from userdp.exact.epsilon import as_epsilon, core_level, value_enclosure
from userdp.exact.numbers import PrivacyLevel, round_down
from userdp.planning.fano import (
    MARGIN,
    MOST_USERS,
    Level,
    two_point_square,
    users_by_affinity,
    users_by_information,
    users_to_tell_apart,
    users_to_tell_two_apart,
    users_until,
    users_who_differ,
)
from userdp.planning.packings import Packing, mean_coordinates, means

Packings = Callable[[float], Iterable[Packing]]
"""Packings for an accuracy."""

MOST_COUNTED = 4096
"""Groups whose sets are counted exactly."""
EVALUATED = 4
"""How many packings, those that promise most, are evaluated in full."""
POWER_BITS = 2**16
VANISHES = 750
"""e^-750 is below half of the smallest float."""
LARGEST_GAP = 0.85
"""Distributions of the packing are further apart than their divergence allows for, from 0.858 on."""
CLIPPED = 1.6e-24
"""Twice E(g - 10)_+ of a standard normal g, and more: what clipping moves, in standard deviations of a column."""
MARKOV = (1.02, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
"""Multiples of an expected error at which its tail is bounded."""


@dataclass(frozen=True)
class Term:
    """A part of a lower bound: a number of users, its theorem, and the hard distributions."""

    users: int
    source: str

    @classmethod
    def of(cls, users: int, theorem: str, packing: Packing) -> Term:
        """A term by a packing."""
        return cls(users, f"{theorem}: {packing.name}")


def larger(terms: dict[str, Term], name: str, term: Term) -> None:
    """Keep the larger of two terms of a name, of those that say something."""
    if term.users > 1 and (name not in terms or term.users > terms[name].users):
        terms[name] = term


FANO = "[GKKMMZ23, Lemma 39]"
TWO_POINTS = "[LSAKKMS21, Theorem 8]"


def packed(packings: Iterable[Packing], level: Level, beta: float) -> dict[str, Term]:
    """The terms of packings: few users, users who differ, and what holds without privacy.

    "few users": whatever m is. "private": by how much the records of a user say. "sampling": also without privacy.
    """
    terms: dict[str, Term] = {}
    listed = list(packings)
    for packing in listed:
        users = users_by_information(packing.log_size, beta, packing.kl)
        larger(terms, "sampling", Term.of(users, f"{FANO}, by information", packing))
        if packing.is_pair:
            users = users_by_affinity(packing.failure(beta), packing.log_affinity)
            larger(terms, "sampling", Term.of(users, _theorem(packing), packing))
    found = [packing for packing in listed if not packing.lost]
    most = max(found, key=lambda packing: packing.log_size, default=None)
    if most is not None:
        if most.is_pair:
            larger(terms, "few users", Term.of(users_to_tell_two_apart(level, beta, 1.0), TWO_POINTS, most))
        else:
            larger(terms, "few users", Term.of(users_to_tell_apart(most.log_size, level, beta)[0], FANO, most))
            pair = next((packing for packing in found if packing.is_pair), None)
            if pair is not None:
                larger(terms, "few users", Term.of(users_to_tell_two_apart(level, beta, 1.0), TWO_POINTS, pair))
    for packing in _promising(listed, level, beta):
        if min(packing.pair, packing.center) < 1:
            theorem = f"{FANO} on Assouad's cube" if packing.lost else FANO
            larger(terms, "private", Term.of(_private(packing, level, beta), theorem, packing))
    return terms


def _theorem(packing: Packing) -> str:
    return "Assouad's cube" if packing.lost else "Le Cam's two points"


def _promising(listed: list[Packing], level: Level, beta: float) -> list[Packing]:
    """The packings that promise most: of many distributions, and of two."""
    chosen: list[Packing] = []
    for part in ([p for p in listed if not p.is_pair], [p for p in listed if p.is_pair]):
        chosen += sorted(part, key=lambda packing: -_promise(packing, level, beta))[:EVALUATED]
    return chosen


def _promise(packing: Packing, level: Level, beta: float) -> float:
    """About how many users a packing asks for, times epsilon."""
    failure = packing.failure(beta)
    lost = math.log((1 - failure) / failure) if failure > 0 else math.inf
    if packing.is_pair:
        return lost / max(packing.pair, 1e-300)
    return max((packing.log_size + lost) / max(packing.pair, 1e-300), packing.log_size / max(packing.center, 1e-300))


def _private(packing: Packing, level: Level, beta: float) -> int:
    if packing.is_pair:
        failure = packing.failure(beta)
        return users_to_tell_two_apart(level, failure, packing.pair) if failure < 0.5 else 1
    pair, center = packing.pair, packing.center
    return max(users_to_tell_apart(packing.log_size, level, beta, pair=pair, center=center))


def expected(packings: Packings, level: Level, alpha: float, *, power: int = 1) -> dict[str, Term]:
    """The terms of an expected error of at most alpha, or of a root of an expected power, by Markov's inequality."""
    terms: dict[str, Term] = {}
    for multiple in MARKOV:
        beta = multiple**-power * (1 + MARGIN)
        if beta < 1:
            for name, term in packed(packings(alpha * multiple), level, beta).items():
                larger(terms, name, term)
    return terms


def mean_terms(
    dimension: int, norm: float, alpha: float, beta: float | None, m: int, level: Level, *, cube: bool
) -> dict[str, Term]:
    """Of means: within alpha but with probability beta, or within alpha in root mean square where beta is None."""
    if beta is not None:
        return packed(means(dimension, norm, alpha, m, cube=cube), level, beta)
    terms = expected(lambda accuracy: means(dimension, norm, accuracy, m, cube=cube), level, alpha, power=2)
    # The mean square is at least that of the signs of coordinates, whatever else happens.
    terms = merged(terms, packed(mean_coordinates(dimension, norm, alpha, m, cube=cube), level, 0.0))
    # The least maximal mean square error of a binomial probability, over all estimates: 1 / (4 (1 + sqrt(N))^2).
    records = (norm / alpha - 1) ** 2 * (1 - MARGIN) if norm > alpha else 0.0
    users = min(math.ceil(records / m), MOST_USERS)
    larger(terms, "sampling", Term(users, "Hodges and Lehmann (1950): records of two values"))
    for bias in (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.06, 0.04, 0.03, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-6):
        length = bias * norm
        if length <= alpha:
            break
        (packing,) = (found for found in means(1, norm, length * (1 - 1e-6), m) if found.is_pair)
        tv = 1.0 if bias == 1 else packing.pair
        # Twice the length apart: 4 length^2 times the square error of a guess.
        bound = (alpha / (2 * length * (1 - 2e-6))) ** 2 * (1 + MARGIN)
        users = users_until(lambda n, tv=tv, bound=bound: two_point_square(n, tv, level) > bound)  # type: ignore[misc]
        larger(terms, "few users" if bias == 1 else "private", Term.of(users, TWO_POINTS, packing))
    return terms


def group_terms(
    n_keys: int, max_keys: int, alpha: float, beta: float, level: Level, *, replace: bool
) -> dict[str, Term]:
    """Of counts by group, all within alpha n: datasets in which more than 2 alpha n users have the same groups."""
    if n_keys <= MOST_COUNTED:
        log_size = math.log(1 + math.comb(n_keys, max_keys)) * (1 - 1e-13)
    else:  # C(K, k) >= (K / k)^k
        log_size = max(math.log(2), max_keys * math.log(n_keys / max_keys)) * (1 - 1e-12)
    others = math.log(math.expm1(log_size)) - 1e-12 if log_size < 30 else log_size - 1e-12

    def impossible(n: int) -> bool:
        changed = min(n, math.floor(2 * alpha * n) + 1)
        # The dataset in which nobody has a group is as far from all; by adding users two others are twice as far.
        far = np.array([float(changed if replace else 2 * changed)])
        near = np.array([float(changed)])
        many = others - math.log(beta) + _log_mass(far, level, beta)
        center = log_size + _log_mass(near, level, beta)
        two = (1 - float(level.grouped(near)[0])) / (1 + math.exp(min(level.rate * changed, 700.0)))
        return many > 1e-12 or center > 1e-12 or two > beta * (1 + 1e-12)

    terms: dict[str, Term] = {}
    if 2 * alpha < 1:
        words = f"datasets of users with {max_keys} of {n_keys} groups"
        larger(terms, "few users", Term(users_until(impossible), f"{FANO}: {words}"))
    return terms


def _log_mass(changes: np.ndarray, level: Level, beta: float) -> float:
    """Ln of e^(-h epsilon) (1 - beta - delta_h), from below."""
    left = 1 - beta - float(level.grouped(changes)[0]) - 1e-12
    return -level.rate * float(changes[0]) + math.log(left) if left > 0 else -math.inf


def two_items_error(n: int, agreement: float, level: Level) -> float:
    """The least failure of a pure choice between two items that each of n users has with this probability or less."""
    users, masses, margin = users_who_differ(n, agreement)
    ahead = users - n / 2
    # At a tie both are as likely; from there on the loser's probability falls by e^epsilon with every user at most, and
    # of an odd number the first user is split evenly.
    loses = np.exp(-level.rate * np.abs(ahead)) / 2
    if n % 2:
        loses = np.exp(-level.rate * (np.abs(ahead) - 0.5)) / (1 + math.exp(min(level.rate, 700.0)))
    return float((masses * np.where(ahead >= 0, loses, 1 - loses)).sum()) * (1 - margin)


def two_items_users(agreement: float, beta: float, level: Level) -> int:
    """Users needed to choose between two items, with the exact least failure."""
    return users_until(lambda n: two_items_error(n, agreement, level) > beta * (1 + 1e-9))


def finite_class_terms(k: int, alpha: float, m: int, rate: float, bound: float) -> dict[str, Term]:
    """[LSAKKMS21, Theorem 7] solved for the number of users, for an expected excess risk of alpha."""
    d = k.bit_length() - 1
    gap = 64 * alpha / bound
    if d < 32 * math.log(2) or gap > LARGEST_GAP or gap == 0:
        return {}
    terms: dict[str, Term] = {}
    for name, users in {"sampling": d / (96 * m * gap**2), "private": d / (192 * math.sqrt(m) * rate * gap)}.items():
        needed = min(math.ceil(users * (1 - MARGIN)), MOST_USERS)
        larger(terms, name, Term(needed, "[LSAKKMS21, Theorem 7], with repaired constants"))
    return terms


def merged(*parts: Mapping[str, Term]) -> dict[str, Term]:
    """The larger term of each name."""
    terms: dict[str, Term] = {}
    for part in parts:
        for name, term in part.items():
            larger(terms, name, term)
    return terms


# --- errors with so many users


def testing(n: int, level: PrivacyLevel, delta: Fraction) -> dict[str, Fraction]:
    """[LSAKKMS21, Theorem 8]: at most max over theta of E(A - theta)^2, by group privacy of n users; rounded down."""
    names = ("as printed", "group", "sharper")
    if n * float(level) > VANISHES:
        return dict.fromkeys(names, Fraction(0))
    if level.ratio != 1 and n * level.ratio.numerator.bit_length() > POWER_BITS:
        # A little more epsilon is a little lower a bound, and short to write.
        level = PrivacyLevel(Fraction(1), value_enclosure(level)[1])
    grouped = PrivacyLevel(level.ratio**n, level.exponent * n)
    low, high = (grouped.ratio,) * 2 if not grouped.exponent else _core.exp_bounds(core_level(grouped), 192)
    apart = 1 - Fraction(group_privacy(as_epsilon(level), delta, n).delta)
    return {
        "as printed": max(Fraction(0), (1 - n * delta * high) / (4 * (1 + high))),
        "group": apart / (4 * (1 + high)),
        "sharper": apart * low / (1 + high) ** 2,
    }


def finite_class_errors(k: int, n: int, m: int, epsilon: float, bound: float) -> dict[str, float]:
    """[LSAKKMS21, Theorem 7] with repaired constants; empty for few hypotheses."""
    d = k.bit_length() - 1
    if d < 32 * math.log(2):
        return {}
    gaps = {"statistical": math.sqrt(d / (96 * m * n)), "private": d / (192 * n * math.sqrt(m) * epsilon)}
    return {name: bound / 64 * gap for name, gap in gaps.items() if gap <= LARGEST_GAP}


def linear_loss_errors(
    n: int, m: int, d: int, epsilon: float, delta: Fraction, sigma: float, lipschitz: float, radius: float
) -> dict[str, float]:
    """The private term of [LSAKKMS21, Theorem 5] repaired, for losses -<theta, z> of nearly normal z; or none."""
    # Wider gradients than the Lipschitz constant allows for are replaced by an easier problem.
    width = min(sigma, lipschitz / (20 * math.sqrt(d)))
    # How long the mean of z is, in units of a user's standard deviation: at most ten of a record's, so that each
    # column, clipped at twenty, has ten to spare. Lemma 3 asks for 10 sqrt(d m): too much for means along one column.
    length = d / (512 * n * epsilon)
    inside = 100 * length * n / math.sqrt(d)
    if inside <= 1 or length > 10 * math.sqrt(m):
        return {}
    if delta > math.sqrt(d) / (48 * math.sqrt(2) * length * n * math.sqrt(math.log(inside))):
        return {}
    excess = radius * width * math.sqrt(d) * (math.sqrt(d) / (20480 * n * math.sqrt(m) * epsilon) - CLIPPED)
    return {"private, cited": excess} if excess > 0 else {}


def few_users(n: int, level: PrivacyLevel, delta: Fraction, factor: Fraction) -> dict[str, float]:
    """[LSAKKMS21, Theorem 8] in three forms, in the units of an error."""
    return {f"few users, {name}": round_down(part * factor) for name, part in testing(n, level, delta).items()}
