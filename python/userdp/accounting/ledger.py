"""A ledger of what is spent on the same users, which refuses what would be too much before it runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, TypeVar

from userdp.accounting.budget_hook import charging
from userdp.accounting.cost import (
    CHARGES,
    FIELDS,
    Amount,
    Amounts,
    Composition,
    PrivacyCost,
    ShownAmounts,
    added,
    shown_amounts,
    within,
)
from userdp.accounting.ledger_files import KIND, LedgerInFile
from userdp.accounting.privacy_loss import PrivacyLossDistribution
from userdp.accounting.slots import (
    Gaussian,
    Kind,
    LedgerSlot,
    Slots,
    certified_mu2,
    forms_of,
    kinds_of,
    loss_text,
    one_release,
    read_loss,
    ways_of,
    what_would_do,
)
from userdp.accounting.zcdp import distance_cost, largest_rho, zcdp_delta
from userdp.display import Fact, Section, Table
from userdp.display.numbers import apart, level_text, number_text
from userdp.exact.encoding import fraction_text, read_fraction
from userdp.exact.epsilon import as_epsilon, enclosure, rational_below, shortened, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    agreed_neighbors,
    check_neighbors,
    is_integer,
    nonzero_level,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exceptions import PrivacyBudgetError

SCHEMA_VERSION = 4
WIDTH = 11
_PROMISE = ("epsilon", "delta", "composition", "unit", "neighbors")


class _Spending(NamedTuple):
    """An entry as text has it."""

    name: str
    item: PrivacyCost | PrivacyLossDistribution
    slot: int | None


def _read(text: str) -> tuple[dict[str, Any], Amounts, list[_Spending], list[int]]:
    """The arguments, limits and entries of what `to_json` wrote, and how many slots of each kind are used."""
    try:
        content = json.loads(text)
        if content["userdp"] != KIND or content["schema_version"] != SCHEMA_VERSION:
            raise ValueError("not a ledger of this version")
        arguments = {name: content[name] for name in _PROMISE}
        arguments |= {"epsilon": _amount(content["epsilon"]), "delta": _amount(content["delta"])}
        limits = {name: _amount(value) for name, value in content["limits"].items()}
        if content["composition"] != "basic":
            arguments |= {"added_delta": limits["delta"], "distance": limits["distance"]}
        used = []
        if content["composition"] == "exact":
            slots = [(read_loss(slot["loss"]), slot["count"]) for slot in content["slots"]]
            arguments |= {"slots": slots, "gaussian": limits["mu2"]}
            used = [slot["used"] for slot in content["slots"]]
        entries = [_spending(entry, content["composition"]) for entry in content["entries"]]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the text is not a ledger as to_json writes it: {error}") from None
    return arguments, {name: parse_level(value) for name, value in limits.items()}, entries, used


def _spending(entry: Mapping[str, Any], composition: str) -> _Spending:
    name, slot = str(entry["name"]), None
    if composition == "exact":
        slot = entry["slot"]
        if "loss" in entry:
            return _Spending(name, read_loss(entry["loss"]), slot)
    return _Spending(name, _cost(entry["cost"]), slot)


def _cost(content: Mapping[str, Any]) -> PrivacyCost:
    words = {name: content[name] for name in FIELDS}
    given = {name: word if word is None or name == "neighbors" else _amount(word) for name, word in words.items()}
    return PrivacyCost(**given)  # type: ignore[arg-type]


def _written(value: Amount | str | None) -> str | None:
    if isinstance(value, LogRatio):
        return f"ln({fraction_text(value.ratio)})"
    return fraction_text(value) if isinstance(value, Fraction) else value


def _amount(text: str) -> Amount:
    """A fraction, or the logarithm of one."""
    logarithm = text.startswith("ln(") and text.endswith(")")
    value = read_fraction(text[3:-1] if logarithm else text)
    return LogRatio(value.numerator, value.denominator) if logarithm else value


DISTANCE_PART = 1000
LARGEST_EPSILON = 2**20


def zcdp_limits(level: PrivacyLevel, delta: Fraction, beside: Fraction, distance: Delta | None) -> Amounts:
    """Limits that keep the promise: as much rho as certified beside what is set aside for deltas and distances."""
    noise = delta - beside
    if noise <= 0:
        raise ValueError(
            "delta must be above added_delta for composition='zcdp', which has no pure guarantee; 'basic' has"
        )
    far = _distance_beside(level, noise, distance)
    rho = largest_rho(as_epsilon(level), noise, distance=far)
    return {"rho": parse_level(rho), "delta": parse_level(beside), "distance": parse_level(far)}


def _distance_beside(level: PrivacyLevel, noise: Fraction, distance: Delta | None) -> Fraction:
    """The limit of all distances: as given, or what costs a small part of the delta that there is for noise."""
    if distance is not None:
        return parse_delta(distance, "distance")
    if level.exponent >= LARGEST_EPSILON:
        return Fraction(0)
    return shortened(noise / (DISTANCE_PART * (1 + enclosure(level, "epsilon")[1])), up=False)


def exact_limits(
    level: PrivacyLevel,
    delta: Fraction,
    kinds: Sequence[Kind],
    gaussian: Gaussian,
    beside: Fraction,
    distance: Delta | None,
) -> Amounts:
    """Limits that keep the promise beside slots: as much mu2 as is certified, or as much as is given."""
    noise = delta - beside
    if noise < 0:
        raise ValueError("delta must be at least added_delta")
    far = _distance_beside(level, noise, distance)
    if distance is None:
        far = min(far + sum((kind.loss.distance * kind.count for kind in kinds), Fraction(0)), Fraction(1))
    left = noise - distance_cost(level, far)
    mu2 = certified_mu2(kinds, gaussian, level, delta=delta, added_delta=beside, distance=far, noise=left)
    return {"mu2": parse_level(mu2), "delta": parse_level(beside), "distance": parse_level(far)}


def keeps_promise(ledger: PrivacyLedger, limits: Amounts) -> bool:
    """Whether spending up to the limits is within the promise."""
    if ledger.composition == "basic":
        return within(limits, {"epsilon": parse_level(ledger.epsilon), "delta": parse_level(ledger.delta)})
    if ledger.composition == "exact":
        # The ledger was made with these and has certified them.
        return limits == ledger._limits
    if any(level.ratio != 1 for level in limits.values()):
        return False
    rho, beside, distance = (limits[name].exponent for name in ("rho", "delta", "distance"))
    return zcdp_delta(rho, ledger.epsilon, distance=distance) + beside <= ledger.delta


def difference(limit: PrivacyLevel, spent: PrivacyLevel) -> Amount:
    """What is left, rounded down where it is not a fraction or the logarithm of one."""
    left = PrivacyLevel(limit.ratio / spent.ratio, limit.exponent - spent.exponent)
    if left.ratio == 1:
        return max(left.exponent, Fraction(0))
    if left.exponent == 0 and left.ratio > 1:
        return as_epsilon(left)
    return max(value_enclosure(left)[0], Fraction(0))


Estimator = TypeVar("Estimator")

COMPOSITIONS = (*CHARGES, "exact")
UNITS = ("user", "record")


@dataclass(frozen=True)
class LedgerEntry:
    """One release.

    Attributes
    ----------
    name : str
    cost : PrivacyCost or PrivacyLossDistribution
        All that is known of it, or what dominates it.
    charged : mapping from str to Fraction or LogRatio
        What it took, in the ledger's currency.
    slot : int or None
        The slot that it took, with composition="exact".
    """

    name: str
    cost: PrivacyCost | PrivacyLossDistribution
    charged: Mapping[str, Amount]
    slot: int | None = None


class _Way(NamedTuple):
    """How something may be charged."""

    slot: int | None
    charged: Amounts


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit, or a session, that a ledger is asked for; each is itself only."""

    session: bool


class _Line(NamedTuple):
    """A line of the table: what it is, its name and its amounts."""

    line: str
    name: str
    amounts: Mapping[str, Amount]
    slot: int | None = None
    neighbors: str = ""


class PrivacyLedger(LedgerInFile):
    """Accounts for several fits and releases on the same users, and refuses the one that would overspend.

    The promise is fixed first: everything that is spent through the ledger is together (epsilon, delta)-DP. What comes
    next, and with which parameters, may be chosen in the light of all that was released before, as analysts do.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        The promise; epsilon > 0.
    composition : {"basic", "zcdp", "exact"}
        What is counted. "basic": epsilon and delta. "zcdp": rho, up to `largest_rho`, which is more for many releases
        and needs a delta; an (e, d)-DP release counts as e^2/2 and d. "exact": the mu^2 of Gaussian noise, up to what
        its exact composition allows, and slots for other releases; see the notes.
    unit : {"user", "record"}
        Whose data the promise protects. Releases with another unit are refused.
    neighbors : {"replace", "add-remove"}
        Likewise; for all estimators of this package it is "replace".
    added_delta : float, int, Fraction or decimal string
        With "zcdp" and "exact": the part of delta for the deltas of (e, d)-DP releases, and for those beside a rho or a
        mu2, which add up. 0 refuses them.
    distance : float, int, Fraction or decimal string, optional
        With "zcdp" and "exact": how far all releases together may be from exact zCDP, or from what their slots and mu2
        say, in total variation. By default what costs a thousandth of delta, which is ample for this package's noise,
        beside the distances that slots state.
    slots : iterable of (PrivacyLossDistribution, int)
        With "exact": of what, and how often, there may be a release beside Gaussian noise. Each is one release, about
        the ledger's neighbors. A pair of `from_pmfs` is replaced by the larger of both orders where users are replaced.
    gaussian : "rest", float, int, Fraction or decimal string
        With "exact": how large the sum of all mu2 may become. "rest" is as much as is certified beside the slots.

    Attributes
    ----------
    epsilon : Fraction or LogRatio
    delta : Fraction
    composition, unit, neighbors : str
    limits : mapping from str to Fraction or LogRatio
        What may be spent: of "epsilon" and "delta", of "rho", "delta" and "distance", or of "mu2", "delta" and
        "distance".
    slots : tuple of LedgerSlot
        Of each kind how many there are, and how many of them are used.

    Notes
    -----
    Nothing here looks at data: costs are public. A release counts from the moment it is allowed, whether or not it
    comes to an end. Ledgers cannot be copied or pickled, nor spent from in a forked process, as each copy would allow
    all that is left once more. `create` makes one in a file, for programs that end and for several at once; what
    `to_json` writes may be read twice, and to prevent that is up to you. So is one ledger for each group of users:
    releases on users of whom none is in two groups do not add up, and need a ledger each.

    **Why it holds.** Costs that add up below limits that were fixed in advance are a privacy filter, for pure and
    approximate DP (Rogers, Roth, Ullman and Vadhan 2016; Whitehouse, Ramdas, Rogers and Wu 2023) and for zCDP (Feldman
    and Zrnic 2021). docs/proofs/composition.md has a short proof for what is done here, all kinds of costs mixed.
    Optimal composition (`compose_optimal`) is none: it is a theorem about parameters that are fixed in advance, and
    somebody who chooses the next epsilon by what came out so far exceeds it. So it is not offered. For the same reason
    the limits of rho, delta and distance are three, each fixed, and not one of what they amount to together.

    **What composition="exact" promises.** The slots are a list that is fixed when the ledger is made. They may be used
    in any order, chosen by what came out so far, or left unused; each by one release that its pair dominates. Beside
    them there may be any number of releases with a mu2, or of bounded range (`bounded_range_to_mu2`), each with
    parameters chosen by what came out so far, as long as the mu2 sum to at most their limit. All of this together is
    within the composition of all slots and of N(0, 1) with N(mu, 1), which is certified when the ledger is made; deltas
    and (1 + e^epsilon) times distances add up on top (docs/proofs/exact_composition.md, section 11). Without slots it
    is what "zcdp" is for Gaussian noise, with about 15 % more of it at epsilon = 1, delta = 1e-6.

    Nothing more is promised, and the ledger refuses what would need more: a release of which only a rho is known; an
    (e, d)-DP release without a slot; slots that are added later; the questions of a session as one slot. A release that
    takes a slot is one release: between its first draw and its end nothing else may be asked of the same users, by
    other fits, threads or open sessions. What a ledger sees of that it refuses. With add-remove neighbors, the changed
    user is on the same side in all releases. Only the limits are promised: `spent` is what was counted, and there is no
    (epsilon, delta) of what was spent so far.

    Sums are exact, and a float is the shortest decimal that it prints as: ten times 0.1 are 1.

    Examples
    --------
    >>> ledger = PrivacyLedger(1, "1e-6", composition="zcdp")
    >>> ledger.spend(PrivacyCost(rho="1/50"), "mean of all")
    >>> ledger.can_spend(PrivacyCost(rho="1/100"))
    False
    >>> ledger.spend(PrivacyCost(bounded_range="1/10"), "choice of a model")
    >>> print(ledger)  # doctest: +ELLIPSIS
    PrivacyLedger(epsilon=1, delta=1e-06, composition='zcdp', unit='user', neighbors='replace')
      release                   rho      delta   distance
      mean of all              0.02          0          0
      choice of a model     0.00125          0          0
      spent                 0.02125          0          0
      limit                 0.02435...

    A choice of a model in a slot, and all the Gaussian noise that there may be beside it:

    >>> choice = PrivacyLossDistribution.bounded_range("0.08")
    >>> ledger = PrivacyLedger(1, "1e-6", composition="exact", slots=[(choice, 1)])
    >>> ledger.spend(PrivacyCost(mu2="1/50"), "mean of all")
    >>> ledger.spend(PrivacyCost(bounded_range="0.08"), "choice of a model")
    >>> [entry.slot for entry in ledger.entries], ledger.slots[0].used, ledger.spent["mu2"]
    ([None, 0], 1, Fraction(1, 50))
    """

    def __init__(
        self,
        epsilon: Epsilon,
        delta: Delta = 0,
        composition: Composition = "basic",
        *,
        unit: str = "user",
        neighbors: str = "replace",
        added_delta: Delta = 0,
        distance: Delta | None = None,
        slots: Slots = (),
        gaussian: Gaussian = "rest",
    ) -> None:
        level, threshold = nonzero_level(epsilon), parse_delta(delta)
        for name, value, accepted in (
            ("composition", composition, COMPOSITIONS),
            ("unit", unit, UNITS),
        ):
            if value not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {short_repr(value)}")
        check_neighbors(neighbors)
        beside = parse_delta(added_delta, "added_delta")
        kinds = kinds_of(slots, neighbors)
        if composition != "exact" and (kinds or not (isinstance(gaussian, str) and gaussian == "rest")):
            raise ValueError(f"slots and gaussian are for composition='exact'; got composition={composition!r}")
        if composition == "basic":
            if beside or distance is not None:
                raise ValueError(
                    "added_delta and distance are for composition='zcdp' and 'exact'; 'basic' counts every delta"
                )
            limits: Amounts = {"epsilon": level, "delta": parse_level(threshold)}
        elif composition == "zcdp":
            limits = zcdp_limits(level, threshold, beside, distance)
        else:
            limits = exact_limits(level, threshold, kinds, gaussian, beside, distance)
        self.epsilon = as_epsilon(level)
        self.delta = threshold
        self.composition: Composition = composition
        self.unit = unit
        self.neighbors = neighbors
        self._limits = limits
        self._spent: Amounts = dict.fromkeys(limits, PrivacyLevel(Fraction(1), Fraction(0)))
        self._kinds = kinds
        self._used = (0,) * len(kinds)
        # Fits that have been charged and have not ended, and the one of them that has taken a slot.
        self._fits: frozenset[_Fit] = frozenset()
        self._alone: _Fit | None = None
        self._entries: list[LedgerEntry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def _replay_text(self, text: str) -> None:
        self._replay(_spending(json.loads(text), self.composition))

    def _replay(self, spending: _Spending) -> None:
        """Count an entry that was allowed before."""
        cost, ways = self._ways(spending.item, spending.slot, None, None)
        way = self._first(ways)
        if way is None or way.slot != spending.slot:
            raise ValueError(f"what is no entry of this ledger: its promise does not allow {short_repr(spending.name)}")
        self._count(LedgerEntry(spending.name, cost, shown_amounts(way.charged), way.slot), way)

    def _count(self, entry: LedgerEntry, way: _Way) -> None:
        self._spent = added(self._spent, way.charged)
        self._used = tuple(number + (place == way.slot) for place, number in enumerate(self._used))
        self._entries.append(entry)

    @property
    def limits(self) -> Mapping[str, Amount]:
        """What may be spent in all."""
        return shown_amounts(self._limits)

    @property
    def slots(self) -> tuple[LedgerSlot, ...]:
        """The slots, with how many of each kind are used; none can be added."""
        with self._current():
            used = self._used
        return tuple(LedgerSlot(kind.loss, kind.count, number) for kind, number in zip(self._kinds, used, strict=True))

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """What was spent on, in order."""
        with self._current():
            return tuple(self._entries)

    @property
    def spent(self) -> Mapping[str, Amount]:
        """What is spent, by currency; exact, but rounded up where LogRatios and numbers were added."""
        with self._current():
            return shown_amounts(self._spent)

    def remaining(self) -> Mapping[str, Amount]:
        """What is left, by currency; exact, or rounded down.

        Examples
        --------
        >>> ledger = PrivacyLedger(1)
        >>> ledger.spend(PrivacyCost("3/4"))
        >>> ledger.remaining()["epsilon"]
        Fraction(1, 4)
        """
        with self._current():
            spent = self._spent
        return ShownAmounts({name: difference(limit, spent[name]) for name, limit in self._limits.items()})

    def can_spend(
        self,
        item: Any,
        *,
        slot: int | None = None,
        unit: str | None = None,
        neighbors: str | None = None,
    ) -> bool:
        """Whether `spend` would allow this now. Raises what it raises for what never can be spent here."""
        _, ways = self._ways(item, slot, unit, neighbors)
        with self._current():
            way = self._first(ways)
            return self._alone is None and way is not None and (way.slot is None or not self._fits)

    def spend(
        self,
        item: Any,
        name: str | None = None,
        *,
        slot: int | None = None,
        unit: str | None = None,
        neighbors: str | None = None,
    ) -> None:
        """Account for one release, before it is made.

        Parameters
        ----------
        item : PrivacyCost, PrivacyRecord, fitted estimator, or what has a PrivacyCost as its attribute `cost`
            What it costs: a mechanism of `userdp.mechanisms`, or a plan, before it is drawn from. A `PrivacyRecord` and
            an estimator are of a release that was made already; `fit` asks first. With composition="exact" also a
            PrivacyLossDistribution of one release, which is the claim that it dominates the release on all neighbors,
            up to its `distance`; `PrivacyLossDistribution.from_mechanism` makes those of mechanisms.
        name : str, optional
            For the table.
        slot : int, optional
            With composition="exact": the place in `slots` of the one to take. By default what has a mu2 is taken from
            the Gaussian budget while that lasts. All else takes the first free slot that dominates it, one of just its
            parameters before others; what is of bounded range goes to the Gaussian budget where there is none.
        unit, neighbors : str, optional
            Of a PrivacyCost, by default those of the ledger. What has its own is checked.

        Raises
        ------
        PrivacyBudgetError
            When it would cost more than is left. Nothing is spent then, and the release must not be made.
        ValueError
            For a release that is not private, or protects another unit or other neighbors; for a cost in rho only,
            where epsilon is counted or composition is exact; where there is no slot that is known to dominate it.
        RuntimeError
            In another process than the one that made the ledger; while a fit that has taken a slot has not ended;
            and for a slot while any fit has not ended.

        Examples
        --------
        >>> ledger = PrivacyLedger(1)
        >>> ledger.spend(PrivacyCost("2/3"), "first")
        >>> ledger.spend(PrivacyCost("2/3"), "second")
        Traceback (most recent call last):
        ...
        userdp.exceptions.PrivacyBudgetError: second needs epsilon 0.666667, delta 0, and 0.333333, 0 are left
        """
        self._spend(item, name, slot, unit, neighbors)

    def _spend(
        self,
        item: Any,
        name: str | None,
        slot: int | None = None,
        unit: str | None = None,
        neighbors: str | None = None,
        fit: _Fit | None = None,
    ) -> None:
        """The same, for a fit where one asks."""
        name = None if name is None else str(name)  # before a lock that it might ask for
        cost, ways = self._ways(item, slot, unit, neighbors)
        if (fit is not None and fit.session) or getattr(item, "interactive", False):
            ways = [way for way in ways if way.slot is None]
            if not ways:
                raise ValueError(
                    "the questions of a session are several releases, and one slot for all of them would be concurrent "
                    "composition, which this ledger does not promise: a session needs a mu2, or composition='zcdp'"
                )
        if os.getpid() != self._process:
            raise RuntimeError(
                "the ledger belongs to the process that made it: another one would spend the rest again; "
                "one that is in a file can be opened there"
            )
        with self._current():
            label = _label(name, item, len(self._entries) + 1)
            if self._alone is not None:
                raise RuntimeError(
                    f"{label}: a fit that has taken a slot has not ended, and nothing else may be released meanwhile; "
                    "spend this before it or after it"
                )
            way = self._first(ways)
            if way is None:
                raise PrivacyBudgetError(self._refusal(label, ways))
            if way.slot is not None and any(other is not fit for other in self._fits):
                raise RuntimeError(
                    f"{label} would take a slot while other fits have not ended, which is concurrent composition; "
                    "release it before them or after them"
                )
            entry = LedgerEntry(label, cost, shown_amounts(way.charged), way.slot)
            if self._log is not None:
                self._log.append(json.dumps(self._entry_text(entry), allow_nan=False))
            self._count(entry, way)
            if fit is not None:
                self._fits |= {fit}
                self._alone = None if way.slot is None else fit

    def _ways(
        self, item: Any, slot: int | None, unit: str | None, neighbors: str | None
    ) -> tuple[PrivacyCost | PrivacyLossDistribution, list[_Way]]:
        """What is known of a release, and how it may be charged; at least one way, or an error."""
        cost = self._cost(item, unit, neighbors)
        if self.composition != "exact":
            if slot is not None:
                raise ValueError(f"slot is for composition='exact'; got a ledger with {self.composition!r}")
            assert isinstance(cost, PrivacyCost)
            return cost, [_Way(None, CHARGES[self.composition](cost))]
        if slot is not None and (not is_integer(slot) or not 0 <= slot < len(self._kinds)):
            raise ValueError(f"slot must be the place of one of {len(self._kinds)} kinds; got {short_repr(slot)}")
        forms = forms_of(cost)
        ways = [
            _Way(place, {name: parse_level(amount) for name, amount in zip(self._limits, amounts, strict=True)})
            for place, *amounts in ways_of(forms, self._kinds, slot)
        ]
        if not ways:
            raise ValueError(f"the release cannot be spent here: {what_would_do(cost, forms, slot)}")
        return cost, ways

    def _first(self, ways: Sequence[_Way]) -> _Way | None:
        """The first way for which there is enough left, with the lock held."""
        for way in ways:
            free = way.slot is None or self._used[way.slot] < self._kinds[way.slot].count
            if free and within(added(self._spent, way.charged), self._limits):
                return way
        return None

    def _refusal(self, label: str, ways: Sequence[_Way]) -> str:
        """Why none of the ways is left, with the lock held."""
        if all(way.slot is not None and self._used[way.slot] >= self._kinds[way.slot].count for way in ways):
            places = sorted({way.slot for way in ways if way.slot is not None})
            return f"{label} needs a slot that dominates it, and all of them (slots {places}) are used"
        pairs = []
        for key, level in ways[0].charged.items():
            needed, left = value_enclosure(level)[1], difference(self._limits[key], self._spent[key])
            pairs.append((key, *apart(needed, rational_below(left))))
        needs = ", ".join(f"{key} {needed}" for key, needed, _ in pairs)
        return f"{label} needs {needs}, and {', '.join(left for *_, left in pairs)} are left"

    def fit(
        self,
        estimator: Estimator,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        name: str | None = None,
        slot: int | None = None,
    ) -> Estimator:
        """Fit an estimator of this package if its cost is within what is left.

        Parameters
        ----------
        estimator : UserLevelEstimator
        X, y, groups
            As for its `fit`.
        name : str, optional
            For the table.
        slot : int, optional
            As for `spend`. A fit that takes a slot is alone: until it has ended nothing else can be spent.

        Returns
        -------
        estimator
            Fitted.

        Raises
        ------
        PrivacyBudgetError
            When it would cost more than is left. Nothing was drawn then.
        RuntimeError
            When the fit ends without having asked: that of a subclass that draws in another way, or in another
            process. The estimator is then as it was.

        Notes
        -----
        Means, sessions of questions and descents have the noise that the exact curve of Gaussian noise asks for. Where
        composition="zcdp" they are planned in rho instead, with somewhat more noise, as their rho would be larger.

        Examples
        --------
        >>> import numpy as np
        >>> from userdp.learners import ThresholdClassifier
        >>> users, hours = np.repeat(np.arange(50), 4), np.arange(200) % 100 + 1
        >>> model = ThresholdClassifier(epsilon="1/2", domain_size=100, m=4, classes=(False, True))
        >>> ledger = PrivacyLedger(1)
        >>> model = ledger.fit(model, hours[:, None], hours > 60, groups=users, name="threshold")
        >>> [entry.name for entry in ledger.entries], ledger.remaining()["epsilon"]
        (['threshold'], Fraction(1, 2))
        """
        given = {key: value for key, value in (("y", y), ("groups", groups)) if value is not None}
        with self._charged(estimator, "fit", name, slot):
            estimator.fit(X, **given)  # type: ignore[attr-defined]
        return estimator

    def open_session(self, queries: Any, X: Any, y: Any = None, *, groups: Any = None, name: str | None = None) -> Any:
        """Open a session of questions if the budget of all of them is within what is left.

        Parameters
        ----------
        queries : WinsorizedQueries
        X, y, groups
            As for its `open`.
        name : str, optional
            For the table.

        Raises
        ------
        PrivacyBudgetError, TypeError, ValueError
            As `fit`.
        """
        with self._charged(queries, "open", name):
            return queries.open(X, y, groups)

    @contextmanager
    def _charged(self, estimator: Any, method: str, name: str | None, slot: int | None = None) -> Iterator[None]:
        """Charge what this estimator draws in the block."""
        if not hasattr(estimator, "privacy_cost") or not hasattr(estimator, method):
            raise TypeError(
                f"estimator must be one of this package's with a method {method}; got {short_repr(estimator)}. For "
                "anything"
                " else spend its PrivacyCost before it runs"
            )
        label = type(estimator).__name__ if name is None else name
        fit = _Fit(session=self.composition == "exact" and method == "open")
        # Fits that may take a slot, or go on while another takes one: each has the file until it ends.
        alone = self._log if self._kinds and self._log is not None else nullcontext()
        try:
            with alone, charging(estimator, lambda record: self._spend(record, label, slot, fit=fit), self.composition):
                yield
        finally:
            with self._lock:
                self._fits -= {fit}
                self._alone = None if self._alone is fit else self._alone

    def _cost(self, item: Any, unit: str | None, neighbors: str | None) -> PrivacyCost | PrivacyLossDistribution:
        """The cost of what may be spent here, or what dominates it; or an error."""
        # Of an estimator, of a plan, or what was given.
        record = next((own for name in ("privacy_", "record") if (own := getattr(item, name, None)) is not None), item)
        dominated = self.composition == "exact" and type(item) is PrivacyLossDistribution
        cost = item if dominated or isinstance(item, PrivacyCost) else getattr(record, "cost", None)
        # A cost of another class may say something else each time; and an entry of a ledger not whom it protects.
        if (not dominated and type(cost) is not PrivacyCost) or isinstance(item, LedgerEntry):
            hint = "; fit it with the ledger's fit" if hasattr(item, "privacy_cost") else ""
            if isinstance(item, PrivacyLossDistribution):
                hint = "; a PrivacyLossDistribution is for composition='exact'"
            raise TypeError(
                "item must be a PrivacyCost, PrivacyRecord or fitted estimator, or have a cost; got "
                f"{short_repr(item)}{hint}"
            )
        if not getattr(record, "is_private", True):
            raise ValueError(f"the release is not private: {'; '.join(record.caveats)}")
        assert cost is not None
        own_unit, stated = getattr(record, "unit", None), (getattr(record, "neighbors", None), cost.neighbors)
        own = agreed_neighbors(stated, "the item and its cost")
        for name, of_item, given, ours in (
            ("unit", own_unit, unit, self.unit),
            ("neighbors", own, neighbors, self.neighbors),
        ):
            if of_item is not None and given is not None:
                raise ValueError(f"{name} is for what does not say it; {type(item).__name__} has its own, {of_item!r}")
            theirs = of_item if given is None else given
            if theirs not in (None, ours):
                raise ValueError(
                    f"{name}: the release protects {theirs!r} and this ledger {ours!r}; they do not add up"
                    + (_for_ours(cost) if (theirs, ours) == ("add-remove", "replace") else "")
                )
        if dominated:
            # As the slots are: in one form, above both orders where a user is replaced.
            return one_release(item, "item")
        assert isinstance(cost, PrivacyCost)
        return cost if neighbors is None else replace(cost, neighbors=check_neighbors(neighbors))

    def to_json(self) -> str:
        """The promise and the entries, as JSON. Read it with `from_json`."""
        with self._current():
            entries, used = list(self._entries), self._used
        slots = [LedgerSlot(kind.loss, kind.count, number) for kind, number in zip(self._kinds, used, strict=True)]
        content = {
            "userdp": KIND,
            "schema_version": SCHEMA_VERSION,
            **{name: _written(getattr(self, name)) for name in _PROMISE},
            "limits": {name: _written(value) for name, value in self.limits.items()},
            **({"slots": [_slot_text(slot) for slot in slots]} if self.composition == "exact" else {}),
            "entries": [self._entry_text(entry) for entry in entries],
        }
        return json.dumps(content, allow_nan=False, indent=1)

    def _entry_text(self, entry: LedgerEntry) -> dict[str, Any]:
        content: dict[str, Any] = {"name": entry.name}
        if isinstance(entry.cost, PrivacyLossDistribution):
            content["loss"] = loss_text(entry.cost)
        else:
            content["cost"] = {name: _written(getattr(entry.cost, name)) for name in FIELDS}
        return content | ({"slot": entry.slot} if self.composition == "exact" else {})

    @classmethod
    def from_json(cls, text: str) -> PrivacyLedger:
        """The ledger that `to_json` wrote, with what was spent."""
        arguments, limits, entries, used = _read(text)
        try:
            ledger = cls(**arguments)
        except TypeError as error:
            raise ValueError(f"the text is not a ledger as to_json writes it: {error}") from None
        if limits.keys() != ledger._limits.keys() or not keeps_promise(ledger, limits):
            raise ValueError("the text is not a ledger as to_json writes it: its limits do not keep its promise")
        ledger._limits = limits
        for entry in entries:
            ledger._replay(entry)
        if list(ledger._used) != used:
            raise ValueError("the text is not a ledger as to_json writes it: its slots are not used by its entries")
        return ledger

    def _lines(self) -> list[_Line]:
        """The lines of the table."""
        with self._current():
            lines = [
                _Line("release", entry.name, entry.charged, entry.slot, entry.cost.neighbors or "not stated")
                for entry in self._entries
            ]
            spent, limit = shown_amounts(self._spent), shown_amounts(self._limits)
        return [*lines, _Line("spent", "spent", spent), _Line("limit", "limit", limit)]

    def __repr__(self) -> str:
        rows, slots = self._lines(), self.slots
        width = max(len(name) for name in ["release", *(row.name for row in rows)])
        lines = [
            f"{type(self).__name__}(epsilon={float(parse_level(self.epsilon)):.6g}, delta={float(self.delta):.6g},"
            f" composition={self.composition!r}, unit={self.unit!r}, neighbors={self.neighbors!r})",
            f"  {'release':<{width}}" + "".join(f"{name:>{WIDTH}}" for name in self._limits),
        ]
        for row in rows:
            numbers = (float(parse_level(row.amounts[key])) for key in self._limits)
            place = "" if row.slot is None else f"   in slot {row.slot}"
            lines.append(f"  {row.name:<{width}}" + "".join(f"{number:>{WIDTH}.4g}" for number in numbers) + place)
        lines += [
            f"  slot {place}: {slot.used} of {slot.count} used, {slot.loss._parts[0][0]}"
            for place, slot in enumerate(slots)
        ]
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        exact = self.composition == "exact"
        return [
            {"line": row.line, "name": row.name, **row.amounts, "neighbors": row.neighbors}
            | ({"slot": row.slot} if exact else {})
            for row in self._lines()
        ]

    def _sections(self) -> Sequence[Section]:
        lines = self._lines()
        promise = [
            Fact("Epsilon", *level_text(parse_level(self.epsilon))),
            Fact("Delta", *number_text(self.delta)),
            Fact("Composition", self.composition),
            Fact("Protects", f"a {self.unit}; neighbors: {self.neighbors}"),
        ]
        exact, slots = self.composition == "exact", self.slots
        rows = [
            (
                row.name,
                *(level_text(parse_level(value))[0] for value in row.amounts.values()),
                row.neighbors,
                *(["" if row.slot is None else str(row.slot)] if exact else []),
            )
            for row in lines
        ]
        tables = [Table("Releases", ("release", *self._limits, "neighbors", *(["slot"] if exact else [])), rows)]
        if slots:
            kinds = [
                (str(place), str(slot.loss._parts[0][0]), str(slot.used), str(slot.count))
                for place, slot in enumerate(slots)
            ]
            tables.append(Table("Slots", ("slot", "dominated by", "used", "of"), kinds))
        return [Section("Privacy ledger", facts=[("", promise)], tables=tables, headline=promise[:2])]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivacyLedger is not copied: each copy would allow once more what is left; see to_json")

    __copy__ = __reduce__

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()


def _for_ours(cost: PrivacyCost | PrivacyLossDistribution) -> str:
    """What a cost for adding and removing users is for replacing them."""
    if isinstance(cost, PrivacyCost):
        with suppress(ValueError):
            ours, names = cost.for_neighbors("replace"), ("epsilon", "delta", "rho", "mu2", "distance")
            amounts = {name: getattr(ours, name) for name in names if name == "delta" or getattr(ours, name)}
            told = ", ".join(f"{name} {float(parse_level(value)):.6g}" for name, value in amounts.items())
            return f". Spend its cost.for_neighbors('replace'), which adds up: {told}"
    return ""


def _slot_text(slot: LedgerSlot) -> dict[str, Any]:
    return {"loss": loss_text(slot.loss), "count": slot.count, "used": slot.used}


def _label(name: str | None, item: Any, number: int) -> str:
    if name is not None:
        return str(name)
    return type(item).__name__ if hasattr(item, "privacy_") else f"release {number}"
