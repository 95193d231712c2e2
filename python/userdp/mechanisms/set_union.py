"""Which keys exist, where users have several: noisy sums of weights with a threshold, in one round or two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.zcdp import distance_cost
from userdp.exact.epsilon import as_epsilon, planned_epsilon
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    check_count,
    check_neighbors,
    is_listed,
    nonzero_level,
    open_unit_fraction,
    parse_delta,
    parse_level,
    parse_positive,
    short_repr,
)
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import BudgetError
from userdp.mechanisms.discrete_gaussian import SMOOTHING, DiscreteGaussian
from userdp.mechanisms.key_bounds import check_keys, threshold_delta
from userdp.mechanisms.key_counts import Integers, KeyMechanism
from userdp.mechanisms.noisy_threshold import NoisyThreshold
from userdp.mechanisms.union_calibration import proposals, proposals_within
from userdp.mechanisms.union_rounds import WEIGHT, Rounds, weight_of
from userdp.runtime import source_of
from userdp.users.table import Identity, canonical_id, key_bytes, order_of, plain_key

Codes: TypeAlias = npt.NDArray[np.uint32]
Method: TypeAlias = Literal["two-round", "one-round", "policy"]
Number: TypeAlias = "float | int | Fraction | str"

MOST_WEIGHT = 2**48
MOST_USERS = MOST_OCCURRING = 2**32
"""The core numbers users and keys in 32 bits."""
MOST_THRESHOLD = 2**61
SMALL_EPSILON = 0.01
"""Below it a refusal is not for what drawn noise is off the ideal one."""
OUTPUTS_LIMIT = 2**20
SKIPPED = 2**32 - 1
"""The place of a key whose rows are left out."""


@dataclass
class KeysOfUsers:
    """Who has which keys, in the core: all rows are there, and nothing is added up."""

    users: _core.TableIndex
    keys: _core.TableIndex  # what hashes of keys are of
    rows: _core.TableSums
    order: Codes  # the place of each key in the canonical order, by its code
    found: list[Codes] = field(default_factory=list)

    def chosen(self, max_keys: int, coins: bytes) -> dict[str, Any]:
        """The arguments by which coins choose at most so many keys of each user."""
        return {
            "users": self.users,
            "key_order": self.order,
            "max_keys": max_keys,
            "key_digests": self.keys.digests(coins),
            "prf_key": coins,
        }

    def drop(self, codes: Codes) -> None:
        """Leave keys out from now on."""
        self.order = self.order.copy()
        self.order[codes] = SKIPPED
        self.found.append(codes)


class SetUnion(KeyMechanism):
    """Show the keys that many users have, without counts, where a user has several: set union.

    Each user has one unit of weight, spread over at most `max_keys` of their keys. Noise is added to the sum of each
    key that somebody has, and the key is shown if the result is a threshold or more. With a second round, users leave
    out what the first one showed, and spread their weight over the rest.

    Parameters
    ----------
    max_keys : int
        How many keys a user counts in at most, from 1 to 2**20. Which ones is drawn, in every round anew.
    rounds : sequence of (sigma_squared, threshold)
        One round or two: the parameter of the discrete Gaussian noise and the threshold, an int of at least 1. Both are
        in units in which a user has `weight`.
    epsilon : float, int, Fraction, decimal string or LogRatio
        The level for which `certified_delta` is; positive. It does not change what is released.
    neighbors : {"add-remove", "replace"}
        Whether one user is added or removed, where the number of users is private, or replaced by another or none,
        where it is public.
    weight : int
        The length of a user's weights: who has d keys adds isqrt(weight**2 // d) to each. From 1 to 2**48.
    cap : int, optional
        With it, and one round, users do not spread their weight evenly: one after the other, in an order that is drawn,
        they raise the sums of their keys towards this cap, by `weight` in Euclidean length at most. The policy needs a
        large weight, as rounding grows with the number of users.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    *Privacy.* The release of what every round shows is (epsilon, certified_delta)-DP for the neighbors that were
    chosen, and so is the union. A user's part of the sums has a length of at most `weight`, or sqrt(2) times as much
    between two users. What of it is on keys that nobody else has decides how likely these are shown; only the rest
    moves other sums. The account pays for both together, takes the worst share, and in a second round the worst one for
    each outcome of the first. Proof: docs/proofs/set_union.md.

    *What may be a key* is as for `SparseHistogram`. Users and keys are told apart by their one spelling
    (docs/reading.md), and a key is shown in it, whoever gave it: as an int if it is the digits of one, otherwise as a
    text. Keys are shown in their canonical order: integers by size, then texts, then tuples.

    *Time.* Noise is drawn in constant time for a given number of keys that occur. That number shows.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (WWW 2009); Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially
    Private Set Union" (ICML 2020), for weights and the policy; Chen, Cohen-Addad, Epasto, Zadimoghaddam, "Scalable
    Private Partition Selection via Adaptive Weighting" (2025), for the second round.

    Examples
    --------
    >>> union = SetUnion.calibrated(1, "1e-5", max_keys=10)
    >>> baskets = [["milk", "tea"]] * 200 + [["gin"], []]
    >>> union.sample(baskets)
    ['milk', 'tea']
    >>> float(union.certified_delta) <= 1e-5
    True
    """

    def __init__(
        self,
        *,
        max_keys: int,
        rounds: Sequence[tuple[Number, int]],
        epsilon: Epsilon,
        neighbors: Neighbors = "add-remove",
        weight: int = WEIGHT,
        cap: int | None = None,
    ) -> None:
        check_keys(max_keys)
        if check_count(weight, "weight") > MOST_WEIGHT:
            raise ValueError(f"weight must be at most 2**48; got {short_repr(weight)}")
        self._level = nonzero_level(epsilon)
        listed = _read_rounds(rounds)
        if cap is not None:
            if len(listed) != 1:
                raise ValueError(f"a cap goes with one round; got {len(listed)}")
            if check_count(cap, "cap") > MOST_THRESHOLD or int(cap) ** 2 * int(max_keys) >= 2**127:
                raise ValueError(f"cap**2 * max_keys must be below 2**127; got cap={short_repr(cap)}")
        super().__init__(
            max_keys=int(max_keys),
            rounds=tuple((sigma_squared, int(threshold)) for sigma_squared, threshold in rounds),
            epsilon=epsilon,
            neighbors=check_neighbors(neighbors),
            weight=int(weight),
            cap=None if cap is None else int(cap),
        )
        self._thresholds = listed

    @classmethod
    def calibrated(
        cls,
        epsilon: Epsilon,
        delta: Delta,
        max_keys: int,
        *,
        neighbors: Neighbors = "add-remove",
        method: Method = "two-round",
        first_share: Number = "1/10",
    ) -> SetUnion:
        """Choose noise and thresholds that are as low as a promise allows.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio
            Of the promise, positive.
        delta : float, int, Fraction or decimal string
            Of the promise, in (0, 1).
        max_keys, neighbors
            As for the class.
        method : {"two-round", "one-round", "policy"}
            Two rounds show more where many users share some keys, and the policy where users have many keys of one
            kind: docs/tables.md has figures. Which one is better cannot be asked of the data.
        first_share : float, int, Fraction or decimal string
            Of "two-round": the part of the budget for the first round, in (0, 1).

        Returns
        -------
        SetUnion
            With ``certified_delta <= delta``, decided on exact numbers.

        Raises
        ------
        ValueError
            Where an argument is out of range, or no noise was found.

        Examples
        --------
        >>> SetUnion.calibrated(1, "1e-5", max_keys=30, method="one-round").users_for("1/2")
        19
        """
        level, exact, keys = nonzero_level(epsilon), threshold_delta(delta), check_keys(max_keys)
        relation = check_neighbors(neighbors)
        planned_epsilon(epsilon)
        for arguments in proposals(float(level), float(exact), keys, relation, method, first_share):
            made = cls(epsilon=epsilon, **arguments)
            # What the distance costs is a part of the delta that takes seconds to find.
            if distance_cost(level, made.distance) <= exact and made.certified_delta <= exact:
                return made
        repair = (
            "take a larger epsilon, or an account in rho (SetUnion.within; composition='zcdp' of a session): that of "
            "epsilon and delta together loses too much where epsilon is as small as delta"
            if float(level) < SMALL_EPSILON
            else "take a larger delta or another epsilon: drawn noise is off the ideal one by e**epsilon times 2**-112 "
            "and more"
        )
        raise ValueError(
            f"no noise and threshold were found for epsilon={short_repr(epsilon)}, delta={short_repr(delta)} and "
            f"max_keys={keys}; {repair}"
        )

    @classmethod
    def within(
        cls,
        rho: Number,
        added_delta: Delta,
        max_keys: int,
        *,
        neighbors: Neighbors = "add-remove",
        method: Method = "two-round",
        first_share: Number = "1/10",
    ) -> SetUnion:
        """Choose noise within a zCDP parameter, and thresholds within a delta beside it.

        Parameters
        ----------
        rho : float, int, Fraction or decimal string
            Positive: what `rho` of the mechanism may be.
        added_delta : float, int, Fraction or decimal string
            In (0, 1): what `vanishing_delta` may be.
        max_keys, neighbors, method, first_share
            As for `calibrated`.

        Examples
        --------
        >>> union = SetUnion.within("1/50", "1e-6", max_keys=10)
        >>> float(union.rho) <= 0.02, float(union.vanishing_delta) <= 1e-6
        (True, True)
        """
        limit, beside = parse_positive(rho, "rho", printed=True), open_unit_fraction(added_delta, "added_delta")
        keys, relation = check_keys(max_keys), check_neighbors(neighbors)
        if not 2.0**-300 <= limit <= 2.0**300:
            raise ValueError(f"rho must be from 2**-300 to 2**300; got {short_repr(rho)}")
        for arguments in proposals_within(float(limit), float(beside), keys, relation, method, first_share):
            made = cls(epsilon=1, **arguments)
            if made.rho <= limit and made.vanishing_delta <= beside:
                return made
        raise ValueError(
            f"no noise and threshold were found for rho={short_repr(rho)}, added_delta={short_repr(added_delta)} and "
            f"max_keys={keys}; take larger ones"
        )

    @property
    def weight(self) -> int:
        """The length of a user's weights."""
        return self._arguments["weight"]

    @property
    def cap(self) -> int | None:
        """What users raise sums to, one after the other; None where they spread their weight evenly."""
        return self._arguments.get("cap")

    @property
    def rounds(self) -> tuple[tuple[Fraction, int], ...]:
        """The parameter of the noise and the threshold of every round."""
        return tuple((one.noise.sigma_squared, one.threshold) for one in self._thresholds)

    @cached_property
    def _account(self) -> Rounds:
        walk = self.cap is not None
        # Each user after the one that changed adds less than sqrt(max_keys) + sqrt(2), rounded up.
        slack = MOST_USERS * (math.isqrt(self.max_keys - 1) + 3) if walk else 0
        moved = MOST_OCCURRING if walk else (2 if self.neighbors == "replace" else 1) * self.max_keys
        return Rounds(self._thresholds, self.weight, self.max_keys, self.neighbors, walk, slack, moved)

    def delta(self, epsilon: Epsilon) -> Fraction:
        """A delta for another epsilon: at or above the least one that the account shows."""
        return self._account.delta(parse_level(epsilon))

    @cached_property
    def certified_delta(self) -> Fraction:
        """The delta at `epsilon`, rounded up."""
        return self._account.delta(self._level)

    def is_private(self, epsilon: Epsilon, delta: Delta) -> bool:
        """Whether the release is shown to be (epsilon, delta)-DP."""
        return self._account.delta(parse_level(epsilon)) <= parse_delta(delta)

    @property
    def vanishing_delta(self) -> Fraction:
        """The probability that any of a user's keys is shown that nobody else has, at most: the delta beside rho."""
        return 1 - self._account.hidden

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter of all sums; beside it there is `vanishing_delta`."""
        return self._account.rho

    @property
    def mu2(self) -> Fraction:
        """The mu^2 of all sums, by exact curves of Gaussian noise; beside it there is `vanishing_delta`."""
        return self._account.mu2

    @property
    def distance(self) -> Fraction:
        """How far the sums that one user moves are from ideal ones, in total variation."""
        return self._account.distance

    @property
    def cost(self) -> PrivacyCost:
        """What a release costs: epsilon and `certified_delta`, and rho with the delta beside it."""
        return PrivacyCost(
            as_epsilon(self._level),
            self.certified_delta,
            rho=self.rho,
            added_delta=self.vanishing_delta,
            distance=self.distance,
            neighbors=self.neighbors,
        )

    def users_for(self, probability: Number, keys: int = 1) -> int:
        """About how many users show a key, each with so many keys to spread their weight over.

        Parameters
        ----------
        probability : float, int, Fraction or decimal string
            In (0, 1), that the last round shows it. With a cap, what a sum of the cap is shown with at most.
        keys : int
            How many keys each of these users has that were not shown before; those above `max_keys` are as `max_keys`.
        """
        wanted = float(open_unit_fraction(probability, "probability"))
        each = weight_of(self.weight, min(check_count(keys, "keys"), self.max_keys))
        if not each:
            raise ValueError(f"keys={keys}: a weight of {self.weight} is nothing when it is spread over so many")
        last = self._thresholds[-1]
        reach = last.threshold + math.sqrt(float(last.noise.sigma_squared)) * NormalDist().inv_cdf(wanted)
        if self.cap is not None and reach > self.cap:
            raise ValueError(
                f"probability={short_repr(probability)}: sums are raised to the cap of {self.cap} at most, which is "
                "shown less often, whatever the number of users"
            )
        return max(1, math.ceil(reach / each))

    # --- draws

    def sample(self, users: Any, random_state: int | None = None) -> list[Any]:
        """Release the keys that are shown.

        Parameters
        ----------
        users : mapping from user ids to keys, or sequence
            The keys of every user, each an iterable. A key that a user has twice counts once, and a user may have none.
            A sequence has its places as users: who is removed leaves an empty place, and those after keep theirs.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        list of keys in canonical order

        Raises
        ------
        TypeError
            By types alone, and for keys that are none.
        """
        return self._draw(source_of(random_state), users)

    def _draw(self, source: _core.Source, users: Any) -> list[Any]:
        listed = _read_users(users)
        names = sorted({key for _, keys in listed for key in keys}, key=order_of)
        place = {key: number for number, key in enumerate(names)}
        held = _held(listed, place)
        shown = np.sort(np.concatenate([np.zeros(0, dtype=np.uint32), *self.shown(held, source)]))
        return [plain_key(names[code]) for code in shown.tolist()]

    def shown(self, held: KeysOfUsers, source: _core.Source) -> Iterator[Codes]:
        """The codes of the keys that each round shows, from a source that several mechanisms may share."""
        for one in self._thresholds:
            codes, sums = self._sums(held, coins_of(source))
            places, _ = one.shown(sums, source)
            held.drop(codes[places])
            yield codes[places]

    def _sums(self, held: KeysOfUsers, coins: bytes) -> tuple[Codes, Integers]:
        """The keys that occur, and what users add to them."""
        common = held.chosen(self.max_keys, coins)
        if self.cap is None:
            codes, (sums,) = held.rows.bounded(**common, rule="random", columns=[("weight", self.weight)])
        else:
            codes, (sums,) = held.rows.walked(**common, length=self.weight, cap=self.cap)
        return codes, np.ascontiguousarray(sums)

    # --- distributions

    def pmf(self, users: Any) -> Pmf:
        """The distribution of a release, exactly as it is drawn.

        Parameters
        ----------
        users
            As for `sample`.

        Returns
        -------
        Pmf
            Over tuples of what every round shows, each a tuple of keys in canonical order. What is released is their
            union, so that this says more.

        Raises
        ------
        BudgetError
            For more than 2**20 choices of keys, orders of users and outcomes, and for noise that is too wide to list.
        """
        listed = _read_users(users)
        laws = self._law([frozenset(keys) for _, keys in listed], 0)
        outcomes = [tuple(tuple(map(plain_key, sorted(shown, key=order_of))) for shown in outcome) for outcome in laws]
        return Pmf(tuple(outcomes), tuple(whole_multiples(list(laws.values()))))

    def _law(self, users: Sequence[frozenset[Any]], number: int) -> dict[tuple[frozenset[Any], ...], Fraction]:
        """What rounds show from one on, by what users have left."""
        if number == len(self._thresholds):
            return {(): Fraction(1)}
        found: dict[tuple[frozenset[Any], ...], Fraction] = {}
        shown = self._law_of_round(users, number)
        for first, mass in shown.items():
            for rest, part in self._law([keys - first for keys in users], number + 1).items():
                found[(first,) + rest] = mass * part  # noqa: RUF005  as Python 3.10 reads it
        return found

    def _law_of_round(self, users: Sequence[frozenset[Any]], number: int) -> dict[frozenset[Any], Fraction]:
        threshold = self._thresholds[number]
        sums = self._law_of_sums(users)
        found: dict[frozenset[Any], Fraction] = {}
        if len(sums) * 2 ** len({key for keys in users for key in keys}) > OUTPUTS_LIMIT:
            raise BudgetError(f"the distribution has more than {OUTPUTS_LIMIT} outcomes; take fewer keys or users")
        for total, mass in sums.items():
            laws = {frozenset[Any](): mass}
            for key, value in total:
                part = threshold.probability(value)
                laws = {
                    shown: weight
                    for before, whole in laws.items()
                    for shown, weight in ((before | {key}, whole * part), (before, whole * (1 - part)))
                    if weight
                }
            for shown, weight in laws.items():
                found[shown] = found.get(shown, Fraction(0)) + weight
        return found

    def _law_of_sums(self, users: Sequence[frozenset[Any]]) -> dict[tuple[tuple[Any, int], ...], Fraction]:
        """The sums by key, over all choices of keys and, with a cap, all orders of users."""
        choices = [
            [tuple(one) for one in itertools.combinations(sorted(keys, key=order_of), min(len(keys), self.max_keys))]
            for keys in users
            if keys
        ]
        orders = math.factorial(len(choices)) if self.cap is not None else 1
        if math.prod(map(len, choices)) * orders > OUTPUTS_LIMIT:
            raise BudgetError(f"there are more than {OUTPUTS_LIMIT} choices of keys; take fewer keys or users")
        found: dict[tuple[tuple[Any, int], ...], Fraction] = {}
        for choice in itertools.product(*choices):
            for order in itertools.permutations(choice) if self.cap is not None else [choice]:
                total = tuple(sorted(self._added(order).items(), key=lambda entry: order_of(entry[0])))
                found[total] = found.get(total, Fraction(0)) + 1
        whole = sum(found.values())
        return {total: mass / whole for total, mass in found.items()}

    def _added(self, users: Sequence[tuple[Any, ...]]) -> dict[Any, int]:
        """What users add to their keys, one after the other."""
        if self.cap is not None:
            return dict(_walked(tuple(users), self.weight, self.cap))
        sums: dict[Any, int] = {}
        for keys in users:
            for key in keys:
                sums[key] = sums.get(key, 0) + weight_of(self.weight, len(keys))
        return sums


def coins_of(source: _core.Source) -> bytes:
    """What chooses keys: 32 bytes of a source."""
    return b"".join(source.below(2**32).to_bytes(4, "little") for _ in range(8))


def _walked(users: tuple[tuple[Any, ...], ...], weight: int, cap: int) -> Iterable[tuple[Any, int]]:
    names = sorted({key for keys in users for key in keys}, key=order_of)
    place = {key: number for number, key in enumerate(names)}
    starts = np.cumsum([0, *map(len, users)], dtype=np.int64)
    codes = np.array([place[key] for keys in users for key in keys], dtype=np.uint32)
    sums = _core.walked_sums(starts, codes, len(names), length=weight, cap=cap)
    return zip(names, sums.tolist(), strict=True)


def _read_rounds(rounds: Any) -> tuple[NoisyThreshold[DiscreteGaussian], ...]:
    wanted = "rounds must be one or two pairs (sigma_squared, threshold)"
    if not is_listed(rounds, Sequence):
        raise TypeError(f"{wanted}; got {short_repr(rounds)}")
    if not 1 <= len(rounds) <= 2 or not all(isinstance(one, Sequence) and len(one) == 2 for one in rounds):
        raise ValueError(f"{wanted}; got {short_repr(rounds)}")
    made = []
    for sigma_squared, threshold in rounds:
        if parse_positive(sigma_squared, "sigma_squared") <= SMOOTHING:
            raise ValueError(f"sigma_squared must be above {SMOOTHING}; got {short_repr(sigma_squared)}")
        if check_count(threshold, "threshold") > MOST_THRESHOLD:
            raise ValueError(f"threshold must be at most 2**61; got {short_repr(threshold)}")
        made.append(NoisyThreshold(DiscreteGaussian(sigma_squared=sigma_squared), int(threshold)))
    return tuple(made)


def _read_users(users: Any) -> list[tuple[Identity, list[Identity]]]:
    """Users and the keys of each, by their one spelling: whoever gave a key, it is shown alike."""
    if isinstance(users, Mapping):
        items: Iterable[tuple[Any, Any]] = users.items()
    elif not is_listed(users, (Sequence, np.ndarray)):
        raise TypeError(f"users must be a mapping or a sequence of the keys of each; got a {type(users).__name__}")
    else:
        items = enumerate(users)
    found: dict[Identity, dict[Identity, None]] = {}
    for user, keys in items:
        if not is_listed(keys):
            raise TypeError(f"users: the keys of each must be an iterable; one is a {type(keys).__name__}")
        own = found.setdefault(_canonical(user, "user ids"), {})
        for key in keys:
            own[_canonical(key, "keys")] = None
    return [(user, list(own)) for user, own in found.items()]


def _canonical(value: Any, what: str) -> Identity:
    try:
        return canonical_id(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"users: {what} must be texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these"
        ) from None


def _held(listed: Sequence[tuple[Identity, list[Identity]]], place: Mapping[Any, int]) -> KeysOfUsers:
    """Users and keys in the core; codes of keys are their places."""
    users, keys, rows = _core.TableIndex(), _core.TableIndex(), _core.TableSums(0)
    keys.texts([key_bytes(key) for key in place])
    codes = users.texts([key_bytes(user) for user, _ in listed])
    owners = np.repeat(codes, [len(own) for _, own in listed])
    rows.add(owners, np.array([place[key] for _, own in listed for key in own], dtype=np.uint32), [])
    return KeysOfUsers(users, keys, rows, np.arange(len(place), dtype=np.uint32))
