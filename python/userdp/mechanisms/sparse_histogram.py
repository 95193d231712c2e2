"""Counts of users by key where the keys are not known: noisy counts with a threshold, and sums for the keys shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.exact.epsilon import as_epsilon, enclosure, planned_epsilon
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    check_count,
    check_kind,
    check_neighbors,
    is_integer,
    is_listed,
    least,
    nonzero_level,
    open_unit_fraction,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import BudgetError
from userdp.mechanisms.discrete_gaussian import DiscreteGaussian
from userdp.mechanisms.key_bounds import check_keys, check_range, keyed_rho, threshold_delta
from userdp.mechanisms.key_counts import Integers, KeyMechanism, listed_integers, read_counts, read_integers
from userdp.mechanisms.key_sums import KeySum, Number, distance_of, noise_of, shift_of
from userdp.mechanisms.noisy_threshold import Noise, NoisyThreshold, tail_bounds
from userdp.mechanisms.sparse_calibration import proposals, read_shares
from userdp.mechanisms.vanishing_keys import Keys, Shift, moved_keys
from userdp.runtime import source_of

LARGEST_COUNT = 2**32
"""Counts with discrete Laplace noise are clamped to this: more users than there are people."""
LARGEST_THRESHOLD = 2**31
FINEST_DELTA = Fraction(1, 2**64)
"""No larger epsilon helps where a smaller delta is not reached."""
LISTED_KEYS, LISTED_VARIANCE = 256, 2**14
"""Of more keys, or of a larger variance, Gaussian noise is accounted for as smoothed continuous noise, whose sum has a
closed form: a variance v from 256 on counts as v - 4 then."""
OUTPUTS_LIMIT = 2**20
"""The most outputs of a listed distribution."""


class SparseHistogram(KeyMechanism):
    """Show the keys that many users have, with noisy counts of users and noisy sums, whatever keys there may be.

    For each key that somebody has, noise is added to its count of users, and the key is shown if the result is
    `threshold` or more. Keys that nobody has are never shown, and nothing is drawn for them; so the list of all
    possible keys need not be known. Sums are drawn for the keys that are shown. Where some keys are known, `listed`
    names them: they are always shown, also those that nobody has, and the threshold is for the others.

    Parameters
    ----------
    max_keys : int
        How many keys a user counts in, at most; from 1 to 2**20, and to 4096 with discrete Laplace noise. Whoever
        counts must see to it, user by user.
    threshold : int
        From which noisy count on a key is shown, at least 1.
    epsilon : float, int, Fraction, decimal string or LogRatio
        The level for which `certified_delta` is; positive. It does not change what is released.
    neighbors : {"add-remove", "replace"}
        Whether one user is added or removed, where the number of users is private, or replaced by another or none,
        where it is public. Nothing is converted from one to the other.
    scale : float, int, Fraction or decimal string, optional
        The scale of discrete Laplace noise on counts.
    epsilon_per_unit : float, int, Fraction, decimal string or LogRatio, optional
        1 / scale in its place, which may be the logarithm of a fraction.
    sigma_squared : float, int, Fraction or decimal string, optional
        In its place discrete Gaussian noise with this parameter, from 1/100 to 2**30.
    sums : sequence of KeySum
        What else is shown of a key, each with its own noise.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    *Privacy.* The release is (epsilon, certified_delta)-DP for the neighbors that were chosen: an exact account of what
    one user changes. Some of the user's keys nobody else has; these are shown with a small probability, and never
    without the user. The others move by what the user adds. No key is paid twice, the worst split of a user's keys is
    searched, and a key that vanishes takes its sums with it. Rounding is against the claim, and the distributions are
    those that are drawn. Proof: docs/proofs/sparse_histogram.md.

    *Listed keys* are public. A user's `max_keys` keys are chosen among all, listed or not, and the same account holds:
    a key that is always shown is one that moves.

    *What may be a key.* What may be a user id: texts, bytes, numbers, bools, dates, times, UUIDs, and tuples of these.
    Keys are shown in their canonical order, integers by size, then texts, then tuples, never in that of the data.

    *Counts* below 1 are of keys that do not occur. With discrete Laplace noise they are clamped to 2**32.

    *Time.* Noise is drawn in constant time for a given number of keys that occur. That number shows in time and memory:
    where it is not public, add keys to a public number of them, with count 0, and draw for all on your own account.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (WWW 2009); Bun, Nissim, Stemmer (ITCS 2016); Wilkins, Kifer, Zhang, Karrer
    (2022), who have the joint account for Gaussian noise.

    Examples
    --------
    >>> counts = SparseHistogram.calibrated(1, "1e-5", max_keys=10)
    >>> counts.threshold, counts.users_for("0.95")
    (58, 77)
    >>> float(counts.certified_delta) <= 1e-5
    True
    >>> sorted(counts.sample({"tea": 1000, "milk": 200, "gin": 1}))
    ['milk', 'tea']
    >>> counts.interval(60)  # conditional on being shown
    (1, 79)
    """

    def __init__(
        self,
        *,
        max_keys: int,
        threshold: int,
        epsilon: Epsilon,
        neighbors: Neighbors = "add-remove",
        scale: Number | None = None,
        epsilon_per_unit: Epsilon | None = None,
        sigma_squared: Number | None = None,
        sums: Sequence[KeySum] = (),
    ) -> None:
        check_keys(max_keys)
        if check_count(threshold, "threshold") > LARGEST_THRESHOLD:
            raise ValueError(f"threshold must be at most 2**31; got {short_repr(threshold)}")
        self._level = nonzero_level(epsilon)
        listed = tuple(sums)
        for one in listed:
            check_kind(one, KeySum, "sums", "KeySum objects")
        if sigma_squared is None or any(one.sigma_squared is None for one in listed):
            check_keys(max_keys, laplace=True)
        self._noise, self._rate = noise_of(scale, epsilon_per_unit, sigma_squared, (0, LARGEST_COUNT))
        super().__init__(
            max_keys=int(max_keys),
            threshold=int(threshold),
            epsilon=epsilon,
            neighbors=check_neighbors(neighbors),
            scale=scale,
            epsilon_per_unit=epsilon_per_unit,
            sigma_squared=sigma_squared,
            sums=listed or None,
        )
        self._sums = listed
        self._shown = NoisyThreshold(self._noise, int(threshold))

    @classmethod
    def calibrated(
        cls,
        epsilon: Epsilon,
        delta: Delta,
        max_keys: int,
        *,
        neighbors: Neighbors = "add-remove",
        method: Literal["auto", "laplace", "gaussian"] = "auto",
        sums: Sequence[tuple[int, int]] = (),
        weights: Sequence[Number] | None = None,
        target: Number = "1/2",
    ) -> SparseHistogram:
        """Choose noise and threshold so that keys of as few users as possible are shown.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio
            Of the promise, positive.
        delta : float, int, Fraction or decimal string
            Of the promise, in (0, 1): unknown keys need one.
        max_keys, neighbors
            As for the class.
        method : {"auto", "laplace", "gaussian"}
            The noise; "auto" takes what shows keys of fewer users: Laplace for one key and about two.
        sums : sequence of (low, high)
            What one user adds in a key to each of the sums that are shown.
        weights : sequence of numbers, optional
            Shares of the budget: that of the count and then that of each sum, positive. By default the count has half.
        target : float, int, Fraction or decimal string
            In (0, 1): users are as few as possible for this probability that their key is shown.

        Returns
        -------
        SparseHistogram
            With ``certified_delta <= delta``, decided on exact numbers.

        Raises
        ------
        ValueError
            Where an argument is out of range, or no noise of this kind was found.

        Examples
        --------
        >>> SparseHistogram.calibrated(1, "1e-5", max_keys=1)
        SparseHistogram(max_keys=1, threshold=13, epsilon=1, neighbors='add-remove', scale=Fraction(1, 1))
        """
        level, exact = nonzero_level(epsilon), threshold_delta(delta)
        keys = check_keys(max_keys, laplace=method == "laplace")
        if method not in ("auto", "laplace", "gaussian"):
            raise ValueError(f"method must be 'auto', 'laplace' or 'gaussian'; got {short_repr(method)}")
        enclosure(level, "epsilon")  # refuses what is too large
        planned_epsilon(epsilon)
        relation = check_neighbors(neighbors)
        ranges = [check_range(*one) for one in sums]
        shares = read_shares(weights, len(ranges))
        probability = float(open_unit_fraction(target, "target"))
        refused: BudgetError | None = None
        for arguments in proposals(float(level), float(exact), keys, relation, ranges, shares, method, probability):
            try:
                made = cls(max_keys=keys, epsilon=epsilon, neighbors=relation, **arguments)
                if made._keys.is_within(level, exact) and made._is_drawn:
                    return made
            except BudgetError as error:
                refused = error
            except ValueError:  # noise that is too narrow or too wide
                continue
        repair = (
            "take a larger delta or another epsilon, or another method"
            if exact >= FINEST_DELTA
            else "take a larger delta, such as 1e-19: at any epsilon, what is drawn is not near enough to ideal noise "
            "for one below about 1e-20 (1e-25 with method='gaussian')"
        )
        raise refused or ValueError(
            f"no noise and threshold were found for epsilon={short_repr(epsilon)}, delta={short_repr(delta)} and "
            f"max_keys={keys}; {repair}"
        )

    @property
    def threshold(self) -> int:
        """From which noisy count on a key is shown."""
        return self._arguments["threshold"]

    @property
    def sums(self) -> tuple[KeySum, ...]:
        """What is shown beside counts."""
        return self._sums

    @property
    def noise(self) -> Noise:
        """What is added to counts."""
        return self._noise

    @property
    def _is_drawn(self) -> bool:
        """Whether there are tables for all noise: those of discrete Laplace noise are made when they are needed."""
        try:
            for noise in (self._noise, *(one.noise for one in self._sums)):
                noise._core_noise  # noqa: B018
        except BudgetError:
            return False
        return True

    @property
    def _hidden(self) -> Fraction:
        """The probability that a key of a single user is not shown, at least."""
        return 1 - self._shown.probability_bounds(1)[1]

    @cached_property
    def _keys(self) -> Keys:
        replace = self.neighbors == "replace"
        wide = isinstance(self._noise, DiscreteGaussian) and self._noise.sigma_squared > LISTED_VARIANCE
        smooth = bool(self._sums) or self.max_keys > LISTED_KEYS or wide
        own = (
            shift_of(self._noise, self._rate, 1, smooth=smooth),
            *(one.shift(one.largest) for one in self._sums),
        )
        common = tuple(one.shift(one.high - one.low) for one in self._sums if replace and one.high > one.low)
        mosts = [[shift.most for shift in shifts if shift.most is not None] for shifts in (own, common)]
        if self._sums and len(mosts[0]) == len(own):
            # Losses of Laplace noise add up within a key; a key in common is then as one's own, and there is a lattice.
            own, common = (Shift.pure(max(sum(most, Fraction(0)) for most in mosts)),), ()
        noises = (self._noise, *(one.noise for one in self._sums))
        distance = sum((distance_of(noise) for noise in noises), Fraction(0))
        distance += sum((shift.distance for shift in own), Fraction(0))
        return Keys(self.max_keys, self.neighbors, self._hidden, own, common, distance)

    def delta(self, epsilon: Epsilon) -> Fraction:
        """A delta for another epsilon: at or just above the least one that the account shows."""
        return self._keys.delta(parse_level(epsilon))

    @cached_property
    def certified_delta(self) -> Fraction:
        """The delta at `epsilon`, rounded up; at most that of a variance less by 4, where noise is wide."""
        return self._keys.delta(self._level)

    def is_private(self, epsilon: Epsilon, delta: Delta) -> bool:
        """Whether the release is shown to be (epsilon, delta)-DP."""
        return self._keys.is_within(parse_level(epsilon), parse_delta(delta))

    @property
    def vanishing_delta(self) -> Fraction:
        """The probability that any of a user's keys is shown that nobody else has, at most: the delta beside rho."""
        return _core.vanishing_delta(self._hidden, self.max_keys)

    @property
    def distance(self) -> Fraction:
        """How far the numbers that one user moves are from ideal ones, in total variation."""
        noises = (self._noise, *(one.noise for one in self._sums))
        return moved_keys(self.max_keys, self.neighbors) * sum((distance_of(noise) for noise in noises), Fraction(0))

    @property
    def rho(self) -> Fraction | None:
        """The zCDP parameter of the numbers, where all noise is Gaussian; beside it there is `vanishing_delta`."""
        statistics = [(1, 1, self._noise), *((one.low, one.high, one.noise) for one in self._sums)]
        if not all(isinstance(noise, DiscreteGaussian) for *_, noise in statistics):
            return None
        return keyed_rho(
            [(low, high, noise.sigma_squared) for low, high, noise in statistics],  # type: ignore[union-attr]
            max_keys=self.max_keys,
            neighbors=self.neighbors,
        )

    @property
    def cost(self) -> PrivacyCost:
        """What a release costs: epsilon and `certified_delta`, and with Gaussian noise rho and the delta beside it."""
        epsilon = as_epsilon(self._level)
        if self.rho is None:
            return PrivacyCost(epsilon, self.certified_delta, neighbors=self.neighbors)
        return PrivacyCost(
            epsilon,
            self.certified_delta,
            rho=self.rho,
            added_delta=self.vanishing_delta,
            distance=self.distance,
            neighbors=self.neighbors,
        )

    def release_probability(self, count: int) -> Fraction:
        """The probability that a key of so many users is shown, exactly as it is drawn; refused for very wide noise."""
        return self._shown.probability(self._clamped(check_count(count, "count", 0)))

    def users_for(self, probability: Number) -> int:
        """The least number of users whose key is shown with this probability, in (0, 1); a few more for wide noise."""
        wanted = open_unit_fraction(probability, "probability")

        def shown(users: int) -> Fraction:
            return self._shown.probability_bounds(self._clamped(users))[0]

        refusal = ValueError(f"probability={short_repr(probability)} is too near to 1: no count has it")
        return least(lambda users: shown(users) >= wanted, 0, self.threshold, LARGEST_COUNT, refusal)

    def interval(self, count: int, level: Number = "0.95") -> tuple[int, int]:
        """The numbers of users for which a shown count is not unlikely, given that it is shown.

        Parameters
        ----------
        count : int
            A noisy count as it was shown, `threshold` or more.
        level : float, int, Fraction or decimal string
            In (0, 1): the interval has the number of users at least so often, among the times that the key is shown.

        Returns
        -------
        (low, high) : tuple of int
            Both included; low is at least 1. It has the shown count itself, too.

        Notes
        -----
        A key of few users is shown only where the noise is large. The interval inverts the distribution of the count
        that is left when hidden ones are taken out; count +- noise would be too high.
        """
        if not is_integer(count) or count < self.threshold:
            raise ValueError(f"count must be an int of threshold={self.threshold} or more; got {short_repr(count)}")
        side = (1 - open_unit_fraction(level, "level")) / 2
        shown = int(count)

        # Where noise is too wide to be listed these are upper bounds, and the interval is a little longer.
        def above(users: int) -> Fraction:
            """The probability of this count or more, among shown ones; 0 where the key cannot be shown."""
            whole, most = self._shown.probability_bounds(self._clamped(users))
            if not most:
                return Fraction(0)
            part = tail_bounds(self._noise, shown - self._clamped(users))[1]
            return min(part / whole, Fraction(1)) if whole else Fraction(1)

        def below(users: int) -> Fraction:
            _, whole = self._shown.probability_bounds(self._clamped(users))
            return 1 - tail_bounds(self._noise, shown + 1 - self._clamped(users))[0] / whole if whole else Fraction(1)

        low = least(lambda users: above(users) > side, 0, shown)  # P[Z >= 0] is above 1/2
        if self._rate is not None and below(LARGEST_COUNT) > side:
            return low, max(shown, LARGEST_COUNT)  # more users count as so many
        return low, shown + least(lambda more: below(shown + more) <= side, 0, 1, math.inf) - 1

    def pmf(
        self,
        counts: Mapping[Any, int] | Sequence[int] | Integers,
        sums: Sequence[Any] = (),
        *,
        largest: int | None = None,
        largest_sum: int | None = None,
        listed: Sequence[Any] = (),
        least: int | None = None,
    ) -> Pmf:
        """The distribution of a release, exactly as it is drawn.

        Parameters
        ----------
        counts, sums, listed
            As for `sample`.
        largest : int, optional
            Noisy counts above it are listed as this number, at least `threshold`: merged outcomes. None lists all.
        largest_sum : int, optional
            Noisy sums are clamped to +- this number; needed with sums.
        least : int, optional
            Noisy counts of listed keys below it are listed as this number; needed with listed keys.

        Returns
        -------
        Pmf
            Over tuples of (key, count) pairs, in order, or of (key, (count, sum, ...)) with sums: the items of what
            `sample` returns. A sequence has its positions as keys.

        Raises
        ------
        BudgetError
            For more than 2**20 outputs.
        """
        keys, numbers, totals, always = self._read(counts, sums, listed)
        bottom = 0 if least is None else int(least)
        if self._rate is not None:
            bottom = max(bottom, 0)  # noisy counts with discrete Laplace noise are clamped
        if always.any() and (least is None or largest is None or bottom > largest):
            raise ValueError("listed keys need least <= largest: their counts are listed from one to the other")
        if largest is not None and (not is_integer(largest) or largest < self.threshold):
            raise ValueError(f"largest must be an int of threshold={self.threshold} or more; got {short_repr(largest)}")
        if self._sums and largest_sum is None:
            raise TypeError("largest_sum is missing: sums are listed up to a public number")
        ends = 0 if largest_sum is None else check_count(largest_sum, "largest_sum")
        cells: list[list[tuple[Any, Fraction]]] = []
        size = 1
        for place, (key, users) in enumerate(zip(keys, numbers.tolist(), strict=True)):
            if users < 1 and not always[place]:
                continue
            top = self._greatest(users) if largest is None else int(largest)
            lowest = bottom if always[place] else self.threshold
            size *= (top - lowest + 1) * (2 * ends + 1) ** len(self._sums) + 1
            if size > OUTPUTS_LIMIT:
                raise BudgetError(
                    f"the distribution has more than {OUTPUTS_LIMIT} outputs; take fewer keys, or a smaller largest"
                )
            beside = [
                _clamped_masses(one.noise, int(total[place]), -ends, ends)
                for one, total in zip(self._sums, totals, strict=True)
            ]
            hidden = 0 if always[place] else 1
            shown = _clamped_masses(self._noise, self._clamped(max(users, 0)), lowest - hidden, top)
            row: list[tuple[Any, Fraction]] = [((), mass) for _, mass in shown[:hidden]]
            for number, mass in shown[hidden:]:
                if not self._sums:
                    row.append((((key, number),), mass))
                    continue
                for rest in itertools.product(*beside):
                    values = (number, *(value for value, _ in rest))
                    row.append((((key, values),), mass * math.prod((part for _, part in rest), start=Fraction(1))))
            cells.append(row)
        outcomes = [
            (tuple(itertools.chain.from_iterable(part for part, _ in one)), math.prod(mass for _, mass in one))
            for one in itertools.product(*cells)
        ]
        return Pmf(
            tuple(outcome for outcome, _ in outcomes), tuple(whole_multiples([Fraction(m) for _, m in outcomes]))
        )

    def sample(
        self,
        counts: Mapping[Any, int] | Sequence[int] | Integers,
        sums: Sequence[Any] = (),
        random_state: int | None = None,
        *,
        listed: Sequence[Any] = (),
    ) -> dict[Any, Any] | tuple[Integers, ...]:
        """Release the keys that are shown, with their noisy numbers.

        Parameters
        ----------
        counts : mapping from keys to int, or array-like of int with shape (n,)
            How many users have each key; in an array, for keys in a public or canonical order.
        sums : sequence of mappings, or of array-likes with shape (n,)
            For each of the sums its value by key, in the same form; a key that is missing has 0.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).
        listed : sequence
            Public keys, or places in an array, that are always shown; a key that is missing in counts has 0.

        Returns
        -------
        dict, or tuple of ndarray
            For a mapping the noisy counts by key in canonical order, or tuples (count, sum, ...) where there are sums.
            For an array (places, counts, ...): the places of the keys that are shown, and their numbers, all int64.

        Raises
        ------
        TypeError, ValueError
            By types and shapes alone, and for keys that are none.
        """
        return self._draw(source_of(random_state), counts, sums, listed)

    def _draw(self, source: _core.Source, counts: Any, sums: Sequence[Any] = (), listed: Sequence[Any] = ()) -> Any:
        keys, numbers, totals, always = self._read(counts, sums, listed)
        places, noisy = self._shown.shown(np.maximum(numbers, 0), source, always)
        released = [
            noisy,
            *(one.noise._release_many(total[places], source) for one, total in zip(self._sums, totals, strict=True)),
        ]
        if not isinstance(counts, Mapping):
            return (places.astype(np.int64), *released)
        columns = [column.tolist() for column in released]
        values = zip(*columns, strict=True) if self._sums else columns[0]
        return dict(zip((keys[place] for place in places.tolist()), values, strict=True))

    def _read(
        self, counts: Any, sums: Sequence[Any], listed: Sequence[Any] = ()
    ) -> tuple[Sequence[Any], Integers, list[Integers], npt.NDArray[np.bool_]]:
        """Keys in canonical order, their counts, the sums of each, and whether it is listed."""
        if len(sums) != len(self._sums):
            raise ValueError(f"sums must be {len(self._sums)} as those of this histogram; got {len(sums)}")
        if not is_listed(listed, (Sequence, np.ndarray)):
            raise TypeError(f"listed must be a sequence of keys; got {short_repr(listed)}")
        public = list(listed)
        if isinstance(counts, Mapping):
            counts = {**dict.fromkeys(public, 0), **counts}
        keys, numbers = read_counts(counts)
        always = np.zeros(len(numbers), dtype=np.bool_)
        if not isinstance(counts, Mapping):
            totals = [read_integers(one, "sums") for one in sums]
            if any(total.shape != numbers.shape for total in totals):
                raise ValueError("sums must have the shape of counts")
            if not all(is_integer(place) and 0 <= place < len(numbers) for place in public):
                raise ValueError(f"listed must be places in counts, from 0 to {len(numbers) - 1}, where it is an array")
            always[np.array(public, dtype=np.int64)] = True
            return keys, numbers, totals, always
        if public:
            known = set(public)
            always = np.array([key in known for key in keys], dtype=np.bool_)
        if not all(isinstance(one, Mapping) for one in sums):
            raise TypeError("sums must be mappings where counts is one")
        return keys, numbers, [listed_integers([one.get(key, 0) for key in keys]) for one in sums], always

    def _clamped(self, users: int) -> int:
        return min(users, LARGEST_COUNT) if self._rate is not None else users

    def _greatest(self, users: int) -> int:
        """The largest noisy count of so many users."""
        if isinstance(self._noise, DiscreteGaussian):
            return max(self.threshold, users + self._noise.support)
        return LARGEST_COUNT


def _clamped_masses(noise: Noise, value: int, low: int, high: int) -> list[tuple[int, Fraction]]:
    """The distribution of value + noise clamped to a range."""
    tails = [Fraction(1), *(noise.tail(x - value) for x in range(low + 1, high + 1)), Fraction(0)]
    return [(low + place, tails[place] - tails[place + 1]) for place in range(high - low + 1)]
