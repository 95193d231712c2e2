"""Which keys exist, where a user has one key: each is shown with the largest probability that privacy allows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from userdp import _core
from userdp.exact.epsilon import enclosure, level_root, shortened
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    PrivacyLevel,
    check_count,
    check_neighbors,
    open_unit_fraction,
    parse_delta,
    short_repr,
)
from userdp.exact.numbers import nonzero_level as positive_level
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import BudgetError
from userdp.mechanisms.distributions import Categorical
from userdp.mechanisms.key_counts import Integers, KeyMechanism, read_counts
from userdp.runtime import source_of

BITS = 128
WHOLE = 1 << BITS
LEVEL_BITS = 192
LEAST_DELTA = Fraction(1, 2**100)
MOST_USERS = 2**16
"""The longest table: every draw reads all of it."""
OUTPUTS_LIMIT = 2**20
"""The most outputs of a listed distribution."""


class PartitionSelection(KeyMechanism):
    """Show the keys that many users have, without counts, where each user has one key: optimal for every count.

    A key of c users is shown with a probability that depends on c alone and is as large as the promise allows, for
    every c at once. A key that nobody has is never shown.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, positive.
    delta : float, int, Fraction or decimal string
        From 2**-100 to 1, ends excluded above: with 0 no key could be shown.
    neighbors : {"add-remove", "replace"}
        Whether one user is added or removed, or replaced by another or none. Replacing moves two keys by a user each,
        so that each key is shown at (epsilon / 2, delta / 2).

    Raises
    ------
    BudgetError
        Where more than 2**16 users are needed for certainty.

    Notes
    -----
    *Privacy.* (epsilon, delta)-DP for the neighbors that were chosen, for users who have one key each. The
    probabilities are integers over 2**128. For all counts c and c + 1 four inequalities hold, decided in integers: of
    being shown and of being hidden, both ways. Proof: docs/proofs/partition_selection.md.

    *What may be a key* is as for `SparseHistogram`, which is for users of several keys, and is better than this class
    applied to each key from about four keys on.

    *Time.* A draw for a key reads a table whose length is public. The number of keys that somebody has shows.

    References
    ----------
    Desfontaines, Voss, Gipson, Mandayam, "Differentially Private Partition Selection" (PoPETs 2022), Theorem 1.

    Examples
    --------
    >>> keys = PartitionSelection(epsilon=1, delta="1e-5")
    >>> keys.users_for("1/2"), keys.users_for("0.95")
    (12, 14)
    >>> keys.sample({"tea": 100, "milk": 90})
    ['milk', 'tea']
    >>> float(keys.release_probability(1))
    1e-05
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon", "delta": "delta"}

    def __init__(self, *, epsilon: Epsilon, delta: Delta, neighbors: Neighbors = "add-remove") -> None:
        level, exact = positive_level(epsilon), parse_delta(delta)
        if not LEAST_DELTA <= exact < 1:
            raise ValueError(f"delta must be at least 2**-100 and below 1; got {short_repr(delta)}")
        super().__init__(epsilon=epsilon, delta=delta, neighbors=check_neighbors(neighbors))
        if neighbors == "replace":
            level, exact = level_root(level, 2), exact / 2
        self._probabilities = largest_probabilities(level, exact)
        steps = [after - before for before, after in itertools.pairwise(self._probabilities)]
        # A key is shown if a draw of how many users it takes is at most its count.
        self._needed = Categorical(weights=steps)

    @property
    def numerators(self) -> tuple[int, ...]:
        """The probabilities of being shown with 0, 1, ... users, over 2**128; the last one is certainty."""
        return self._probabilities

    def release_probability(self, count: int) -> Fraction:
        """The probability that a key of so many users is shown, exactly as it is drawn."""
        users = min(check_count(count, "count", 0), len(self._probabilities) - 1)
        return Fraction(self._probabilities[users], WHOLE)

    def users_for(self, probability: float | Fraction | str) -> int:
        """The least number of users whose key is shown with this probability, in (0, 1)."""
        wanted = open_unit_fraction(probability, "probability") * WHOLE
        return next(users for users, shown in enumerate(self._probabilities) if shown >= wanted)

    def pmf(self, counts: Mapping[Any, int] | Sequence[int] | Integers) -> Pmf:
        """The distribution of a release, exactly as it is drawn.

        Parameters
        ----------
        counts
            As for `sample`.

        Returns
        -------
        Pmf
            Over tuples of the keys that are shown, in canonical order; a sequence has its places as keys.

        Raises
        ------
        BudgetError
            For more than 2**20 outputs.
        """
        keys, numbers = read_counts(counts)
        cells = []
        for key, users in zip(keys, numbers.tolist(), strict=True):
            shown = self.release_probability(max(users, 0))
            cells.append(
                [((key,), shown), ((), 1 - shown)] if 0 < shown < 1 else [((key,) if shown else (), Fraction(1))]
            )
        if math.prod(map(len, cells)) > OUTPUTS_LIMIT:
            raise BudgetError(f"the distribution has more than {OUTPUTS_LIMIT} outputs; take fewer keys")
        outcomes = [
            (
                tuple(itertools.chain.from_iterable(part for part, _ in one)),
                math.prod((mass for _, mass in one), start=Fraction(1)),
            )
            for one in itertools.product(*cells)
        ]
        return Pmf(tuple(outcome for outcome, _ in outcomes), tuple(whole_multiples([mass for _, mass in outcomes])))

    def sample(
        self, counts: Mapping[Any, int] | Sequence[int] | Integers, random_state: int | None = None
    ) -> list[Any] | Integers:
        """Release the keys that are shown.

        Parameters
        ----------
        counts : mapping from keys to int, or array-like of int with shape (n,)
            How many users have each key; in an array, for keys in a public or canonical order.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        list of keys in canonical order; for an array an int64 array of places
        """
        return self._draw(source_of(random_state), counts)

    def _draw(self, source: _core.Source, counts: Any) -> list[Any] | Integers:
        keys, numbers = read_counts(counts)
        places = np.flatnonzero(numbers >= 1)
        needed = 1 + self._needed._draw_many(source, (places.size,))
        shown = places[numbers[places] >= needed].astype(np.int64)
        return [keys[place] for place in shown.tolist()] if isinstance(counts, Mapping) else shown


def largest_probabilities(level: PrivacyLevel, delta: Fraction) -> tuple[int, ...]:
    """Over 2**128, rounded down: as large as the four inequalities with the count before allow, up to certainty."""
    lower = shortened(enclosure(level, "epsilon")[0], up=False, bits=LEVEL_BITS)
    ratio = max(lower, Fraction(1))
    up, down = ratio.numerator, ratio.denominator
    added = math.floor(delta * WHOLE)
    found = [0]
    while found[-1] < WHOLE:
        if len(found) > MOST_USERS:
            raise BudgetError(
                f"more than {MOST_USERS} users are needed for a key to be shown for certain; take a larger epsilon"
            )
        shown = found[-1]
        hidden = max(0, -(-(WHOLE - shown - added) * down // up))
        after = max(shown, min(WHOLE, up * shown // down + added, WHOLE - hidden))
        while not holds(shown, after, up, down, added):
            after -= 1  # roundings are towards the claim, so that this is not reached
        found.append(after)
        if after == shown:
            raise BudgetError("epsilon is too small for probabilities over 2**128")
    return tuple(found)


def holds(shown: int, after: int, up: int, down: int, added: int) -> bool:
    """The four inequalities between the probabilities for a count and one more."""
    pairs = ((shown, after), (after, shown), (WHOLE - shown, WHOLE - after), (WHOLE - after, WHOLE - shown))
    return all(down * (one - added) <= up * other for one, other in pairs)
