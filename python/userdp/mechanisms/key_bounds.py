"""What one user changes in numbers by key, where a user has a bounded number of keys, and a bounded number in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from userdp.exact.numbers import (
    Delta,
    Neighbors,
    check_count,
    check_neighbors,
    is_integer,
    parse_delta,
    parse_positive,
    short_repr,
)
from userdp.exceptions import BudgetError

MOST_KEYS = 2**20
"""Of one user."""
MOST_LAPLACE_KEYS = 2**12
"""With discrete Laplace noise, whose account composes so many losses."""


def check_keys(max_keys: object, *, laplace: bool = False) -> int:
    """Read how many keys of a user count, before anything is planned for them."""
    keys, most = check_count(max_keys, "max_keys"), MOST_LAPLACE_KEYS if laplace else MOST_KEYS
    if keys > most:
        gaussian = f"take Gaussian noise, of which up to {MOST_KEYS} are accounted, or " if laplace else ""
        noise = "discrete Laplace noise" if laplace else "noise"
        raise BudgetError(
            f"max_keys must be at most {most}, as the {noise} of all keys of a user is accounted jointly; got "
            f"{short_repr(max_keys)}: {gaussian}let users count in {most} keys at most, which are chosen at random"
        )
    return keys


def threshold_delta(delta: Delta) -> Fraction:
    """Read the delta of a promise that a threshold on unknown keys is to keep."""
    exact = parse_delta(delta)
    if not 0 < exact < 1:
        raise ValueError(f"delta must be in (0, 1) here, ends excluded: unknown keys need one; got {short_repr(delta)}")
    return exact


def check_range(low: object, high: object) -> tuple[int, int]:
    """Read the bounds of an integer."""
    accepted = "low and high must be ints with low <= high, both within +-2**62"
    if not (is_integer(low) and is_integer(high)):
        raise TypeError(f"{accepted}; got {short_repr((low, high))}")
    ends = int(low), int(high)  # type: ignore[call-overload]
    if not -(2**62) <= ends[0] <= ends[1] <= 2**62:
        raise ValueError(f"{accepted}; got {short_repr((low, high))}")
    return ends


@dataclass(frozen=True, slots=True)
class KeyedSensitivity:
    """How far numbers by key move at most between neighbors.

    Attributes
    ----------
    l1 : int
        The sum of the absolute changes over all keys.
    l2_squared : int
        The sum of their squares.
    linf : int
        The largest of them.
    """

    l1: int
    l2_squared: int
    linf: int


def keyed_sensitivity(
    *, n_keys: int | None = None, max_keys: int, low: int, high: int, neighbors: Neighbors
) -> KeyedSensitivity:
    """How far sums by key move at most, where a user has at most `max_keys` keys and a number in [low, high] in each.

    Parameters
    ----------
    n_keys : int, optional
        How many keys there are, at least 1; None where that is not known.
    max_keys : int
        How many keys a user has at most, at least 1.
    low, high : int
        What a user's number in a key is from and to, within +-2**62. A key that a user does not have counts as 0,
        whether 0 is in the range or not. Users per key are low = high = 1.
    neighbors : {"replace", "add-remove"}
        Replace one user's numbers by any others, or by none; or add or remove one user.

    Returns
    -------
    KeyedSensitivity
        Integers, each attained by two neighbors.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    With M = max(abs(low), abs(high)) and W = high - low, a key that only one of the two neighbors' user has moves by M
    at most, and one that both have by W. Where values have both signs W may be 2 M, so that the squared length is up to
    k (2 M)**2 and not 2 k M**2. Proof: docs/proofs/sparse_histogram.md.

    Examples
    --------
    >>> keyed_sensitivity(max_keys=3, low=-5, high=5, neighbors="replace")
    KeyedSensitivity(l1=30, l2_squared=300, linf=10)
    >>> keyed_sensitivity(max_keys=3, low=-5, high=5, neighbors="add-remove")
    KeyedSensitivity(l1=15, l2_squared=75, linf=5)
    """
    bottom, top = check_range(low, high)
    largest, width = max(abs(bottom), abs(top)), top - bottom
    shapes = key_changes(n_keys, max_keys, neighbors)
    return KeyedSensitivity(
        max(common * width + own * largest for common, own in shapes),
        max(common * width**2 + own * largest**2 for common, own in shapes),
        max(largest, width) if check_neighbors(neighbors) == "replace" else largest,
    )


def key_changes(n_keys: int | None, max_keys: int, neighbors: Neighbors) -> list[tuple[int, int]]:
    """How many keys both users have and how many only one has: the ends between which every maximum is attained."""
    keys = check_count(max_keys, "max_keys")
    if n_keys is not None:
        keys = min(keys, check_count(n_keys, "n_keys"))
    if check_neighbors(neighbors) == "add-remove":
        return [(0, keys)]
    # With c keys in common at most 2 (k - c) and n_keys - c are left: linear in c but for one corner.
    corner = 0 if n_keys is None else max(0, 2 * keys - n_keys)
    return [
        (common, 2 * (keys - common) if n_keys is None else min(2 * (keys - common), n_keys - common))
        for common in sorted({0, corner, keys})
    ]


def keyed_rho(
    statistics: Iterable[tuple[int, int, Fraction | str]],
    *,
    n_keys: int | None = None,
    max_keys: int,
    neighbors: Neighbors,
) -> Fraction:
    """The zCDP parameter of several numbers by key that are released together, each with Gaussian noise of its own.

    Parameters
    ----------
    statistics : iterable of (low, high, sigma_squared)
        For each number its range as in `keyed_sensitivity`, and the parameter of its noise in every key.
    n_keys, max_keys, neighbors
        As in `keyed_sensitivity`; the keys are the same for all numbers.

    Returns
    -------
    Fraction
        Of ideal noise. For "replace" it is less than the sum over the numbers, as no key can be in common for one of
        them and not for another.

    Examples
    --------
    A count and a sum that is centered:

    >>> both = [(1, 1, Fraction(50)), (-1, 1, Fraction(50))]
    >>> keyed_rho(both, max_keys=1, neighbors="replace")
    Fraction(1, 25)
    >>> sum(keyed_rho([one], max_keys=1, neighbors="replace") for one in both)
    Fraction(3, 50)
    """
    own = common = Fraction(0)
    for low, high, sigma_squared in statistics:
        bottom, top = check_range(low, high)
        double = 2 * parse_positive(sigma_squared, "sigma_squared")
        own += max(abs(bottom), abs(top)) ** 2 / double
        common += (top - bottom) ** 2 / double
    return max(both * common + single * own for both, single in key_changes(n_keys, max_keys, neighbors))
