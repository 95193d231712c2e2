"""A ledger of what is spent on the same users, which refuses what would be too much before it runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias, TypeVar

from userdp.accounting.budget_hook import charging
from userdp.accounting.cost import CHARGES, Amounts, Composition, PrivacyCost, added, within
from userdp.accounting.zcdp import largest_rho, zcdp_delta
from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import level_text, number_text
from userdp.exact.encoding import fraction_text, read_fraction
from userdp.exact.epsilon import as_epsilon, enclosure, epsilon_above, shortened, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    nonzero_level,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exceptions import PrivacyBudgetError

SCHEMA_VERSION = 3
WIDTH = 11
_COST = ("epsilon", "delta", "rho", "distance", "bounded_range", "mu2")
_PROMISE = ("epsilon", "delta", "composition", "unit", "neighbors")

Amount: TypeAlias = "Fraction | LogRatio"


def _read(text: str) -> tuple[dict[str, Any], Amounts, list[tuple[str, PrivacyCost]]]:
    """The arguments, limits and entries of what `to_json` wrote."""
    try:
        content = json.loads(text)
        if content["userdp"] != "privacy ledger" or content["schema_version"] != SCHEMA_VERSION:
            raise ValueError("not a ledger of this version")
        arguments = {name: content[name] for name in _PROMISE}
        arguments |= {"epsilon": _amount(content["epsilon"]), "delta": _amount(content["delta"])}
        limits = {name: _amount(value) for name, value in content["limits"].items()}
        if content["composition"] == "zcdp":
            arguments |= {"added_delta": limits["delta"], "distance": limits["distance"]}
        entries = [(str(entry["name"]), _cost(entry["cost"])) for entry in content["entries"]]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the text is not a ledger as to_json writes it: {error}") from None
    return arguments, {name: parse_level(value) for name, value in limits.items()}, entries


def _cost(content: Mapping[str, Any]) -> PrivacyCost:
    given = {name: None if content[name] is None else _amount(content[name]) for name in _COST}
    if given["epsilon"] == given["bounded_range"]:
        del given["epsilon"]
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
    if distance is not None:
        far = parse_delta(distance, "distance")
    elif level.exponent >= LARGEST_EPSILON:
        far = Fraction(0)
    else:
        far = shortened(noise / (DISTANCE_PART * (1 + enclosure(level, "epsilon")[1])), up=False)
    rho = largest_rho(as_epsilon(level), noise, distance=far)
    return {"rho": parse_level(rho), "delta": parse_level(beside), "distance": parse_level(far)}


def keeps_promise(ledger: PrivacyLedger, limits: Amounts) -> bool:
    """Whether spending up to the limits is within the promise."""
    if ledger.composition == "basic":
        return within(limits, {"epsilon": parse_level(ledger.epsilon), "delta": parse_level(ledger.delta)})
    if any(level.ratio != 1 for level in limits.values()):
        return False
    rho, beside, distance = (limits[name].exponent for name in ("rho", "delta", "distance"))
    return zcdp_delta(rho, ledger.epsilon, distance=distance) + beside <= ledger.delta


def shown_amounts(amounts: Amounts) -> Mapping[str, Amount]:
    return MappingProxyType({name: epsilon_above(level) for name, level in amounts.items()})


def difference(limit: PrivacyLevel, spent: PrivacyLevel) -> Amount:
    """What is left, rounded down where it is not a fraction or the logarithm of one."""
    left = PrivacyLevel(limit.ratio / spent.ratio, limit.exponent - spent.exponent)
    if left.ratio == 1:
        return max(left.exponent, Fraction(0))
    if left.exponent == 0 and left.ratio > 1:
        return as_epsilon(left)
    return max(value_enclosure(left)[0], Fraction(0))


Estimator = TypeVar("Estimator")

NEIGHBORS = ("replace", "add-remove")
UNITS = ("user", "record")


@dataclass(frozen=True)
class LedgerEntry:
    """One release.

    Attributes
    ----------
    name : str
    cost : PrivacyCost
        All that is known of it.
    charged : mapping from str to Fraction or LogRatio
        What it took, in the ledger's currency.
    """

    name: str
    cost: PrivacyCost
    charged: Mapping[str, Amount]


class PrivacyLedger(Shown):
    """Accounts for several fits and releases on the same users, and refuses the one that would overspend.

    The promise is fixed first: everything that is spent through the ledger is together (epsilon, delta)-DP. What comes
    next, and with which parameters, may be chosen in the light of all that was released before, as analysts do.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        The promise; epsilon > 0.
    composition : {"basic", "zcdp"}
        What is counted. "basic": epsilon and delta. "zcdp": rho, up to `largest_rho`, which is more for many releases
        and needs a delta; an (e, d)-DP release counts as e^2/2 and d.
    unit : {"user", "record"}
        Whose data the promise protects. Releases with another unit are refused.
    neighbors : {"replace", "add-remove"}
        Likewise; for all estimators of this package it is "replace".
    added_delta : float, int, Fraction or decimal string
        With "zcdp": the part of delta for the deltas of (e, d)-DP releases, which add up. 0 refuses them.
    distance : float, int, Fraction or decimal string, optional
        With "zcdp": how far all releases together may be from exact zCDP, in total variation. By default what costs a
        thousandth of delta, which is ample for this package's noise.

    Attributes
    ----------
    epsilon : Fraction or LogRatio
    delta : Fraction
    composition, unit, neighbors : str
    limits : mapping from str to Fraction or LogRatio
        What may be spent: of "epsilon" and "delta", or of "rho", "delta" and "distance".

    Notes
    -----
    Nothing here looks at data: costs are public. A release counts from the moment it is allowed, whether or not it
    comes to an end. Ledgers cannot be copied or pickled, nor spent from in a forked process, as each copy would allow
    all that is left once more; `to_json` is for keeping one, and keeping it from being used twice is up to you. So is
    one ledger for each group of users: releases on users of whom none is in two groups do not add up, and need a
    ledger each.

    **Why it holds.** Costs that add up below limits that were fixed in advance are a privacy filter, for pure and
    approximate DP (Rogers, Roth, Ullman and Vadhan 2016; Whitehouse, Ramdas, Rogers and Wu 2023) and for zCDP (Feldman
    and Zrnic 2021). docs/proofs/composition.md has a short proof for what is done here, all kinds of costs mixed.
    Optimal composition (`compose_optimal`) is none: it is a theorem about parameters that are fixed in advance, and
    somebody who chooses the next epsilon by what came out so far exceeds it. So it is not offered. For the same reason
    the limits of rho, delta and distance are three, each fixed, and not one of what they amount to together.

    Sums are exact: three times 0.1 as a float is more than 0.3 as a float. Write ``"0.1"`` or a Fraction.

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
    ) -> None:
        level, threshold = nonzero_level(epsilon), parse_delta(delta)
        for name, value, accepted in (
            ("composition", composition, tuple(CHARGES)),
            ("unit", unit, UNITS),
            ("neighbors", neighbors, NEIGHBORS),
        ):
            if value not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {short_repr(value)}")
        beside = parse_delta(added_delta, "added_delta")
        if composition == "basic":
            if beside or distance is not None:
                raise ValueError("added_delta and distance are for composition='zcdp'; 'basic' counts every delta")
            limits: Amounts = {"epsilon": level, "delta": parse_level(threshold)}
        else:
            limits = zcdp_limits(level, threshold, beside, distance)
        self.epsilon = as_epsilon(level)
        self.delta = threshold
        self.composition: Composition = composition
        self.unit = unit
        self.neighbors = neighbors
        self._limits = limits
        self._spent: Amounts = dict.fromkeys(limits, PrivacyLevel(Fraction(1), Fraction(0)))
        self._entries: list[LedgerEntry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def limits(self) -> Mapping[str, Amount]:
        """What may be spent in all."""
        return shown_amounts(self._limits)

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """What was spent on, in order."""
        with self._lock:
            return tuple(self._entries)

    @property
    def spent(self) -> Mapping[str, Amount]:
        """What is spent, by currency; exact, but rounded up where LogRatios and numbers were added."""
        with self._lock:
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
        with self._lock:
            spent = self._spent
        return MappingProxyType({name: difference(limit, spent[name]) for name, limit in self._limits.items()})

    def can_spend(self, item: Any, *, unit: str | None = None, neighbors: str | None = None) -> bool:
        """Whether `spend` would allow this now. Raises what it raises for what never can be spent here."""
        charged = CHARGES[self.composition](self._cost(item, unit, neighbors))
        with self._lock:
            return within(added(self._spent, charged), self._limits)

    def spend(
        self, item: Any, name: str | None = None, *, unit: str | None = None, neighbors: str | None = None
    ) -> None:
        """Account for one release, before it is made.

        Parameters
        ----------
        item : PrivacyCost, PrivacyRecord, fitted estimator, or what has a PrivacyCost as its attribute `cost`
            What it costs: a mechanism of `userdp.mechanisms`, or a plan, before it is drawn from. A `PrivacyRecord` and
            an estimator are of a release that was made already; `fit` asks first.
        name : str, optional
            For the table.
        unit, neighbors : str, optional
            Of a PrivacyCost, by default those of the ledger. What has its own is checked.

        Raises
        ------
        PrivacyBudgetError
            When it would cost more than is left. Nothing is spent then, and the release must not be made.
        ValueError
            For a release that is not private, or protects another unit or other neighbors; for a cost in rho only,
            where epsilon is counted.
        RuntimeError
            In another process than the one that made the ledger.

        Examples
        --------
        >>> ledger = PrivacyLedger(1)
        >>> ledger.spend(PrivacyCost("2/3"), "first")
        >>> ledger.spend(PrivacyCost("2/3"), "second")
        Traceback (most recent call last):
        ...
        userdp.exceptions.PrivacyBudgetError: second needs epsilon 0.666667, delta 0, and 0.333333, 0 are left
        """
        cost = self._cost(item, unit, neighbors)
        charged = CHARGES[self.composition](cost)
        if os.getpid() != self._process:
            raise RuntimeError("the ledger belongs to the process that made it: another one would spend the rest again")
        with self._lock:
            label = _label(name, item, len(self._entries) + 1)
            total = added(self._spent, charged)
            if not within(total, self._limits):
                left = [difference(limit, self._spent[key]) for key, limit in self._limits.items()]
                needs = ", ".join(f"{key} {float(level):.6g}" for key, level in charged.items())
                rest = ", ".join(f"{float(parse_level(value)):.6g}" for value in left)
                raise PrivacyBudgetError(f"{label} needs {needs}, and {rest} are left")
            self._spent = total
            self._entries.append(LedgerEntry(label, cost, shown_amounts(charged)))

    def fit(
        self, estimator: Estimator, X: Any, y: Any = None, *, groups: Any = None, name: str | None = None
    ) -> Estimator:
        """Fit an estimator of this package if its cost is within what is left.

        Parameters
        ----------
        estimator : UserLevelEstimator
        X, y, groups
            As for its `fit`.
        name : str, optional
            For the table.

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
        with self._charged(estimator, "fit", name):
            estimator.fit(X, **given)  # type: ignore[attr-defined]
        return estimator

    def open(self, queries: Any, X: Any, y: Any = None, *, groups: Any = None, name: str | None = None) -> Any:
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
    def _charged(self, estimator: Any, method: str, name: str | None) -> Iterator[None]:
        """Charge what this estimator draws in the block."""
        if not hasattr(estimator, "privacy_cost") or not hasattr(estimator, method):
            raise TypeError(
                f"estimator must be one of this package's with a method {method}; got {short_repr(estimator)}. For "
                "anything"
                " else spend its PrivacyCost before it runs"
            )
        label = type(estimator).__name__ if name is None else name
        with charging(estimator, lambda record: self.spend(record, label)):
            yield

    def _cost(self, item: Any, unit: str | None, neighbors: str | None) -> PrivacyCost:
        """The cost of what may be spent here, or an error."""
        # Of an estimator, of a plan, or what was given.
        record = next((own for name in ("privacy_", "record") if (own := getattr(item, name, None)) is not None), item)
        cost = item if isinstance(item, PrivacyCost) else getattr(record, "cost", None)
        # A cost of another class may say something else each time; and an entry of a ledger not whom it protects.
        if type(cost) is not PrivacyCost or isinstance(item, LedgerEntry):
            hint = "; fit it with the ledger's fit" if hasattr(item, "privacy_cost") else ""
            raise TypeError(
                "item must be a PrivacyCost, PrivacyRecord or fitted estimator, or have a cost; got "
                f"{short_repr(item)}{hint}"
            )
        if not getattr(record, "is_private", True):
            raise ValueError(f"the release is not private: {'; '.join(record.caveats)}")
        for name, given, ours in (("unit", unit, self.unit), ("neighbors", neighbors, self.neighbors)):
            own = getattr(record, name, None)
            if own is not None and given is not None:
                raise ValueError(f"{name} is for a PrivacyCost; {type(item).__name__} has its own")
            theirs = own if given is None else given
            if theirs not in (None, ours):
                raise ValueError(
                    f"{name}: the release protects {theirs!r} and this ledger {ours!r}; they do not add up"
                )
        return cost

    def to_json(self) -> str:
        """The promise and the entries, as JSON. Read it with `from_json`."""
        with self._lock:
            entries = list(self._entries)
        content = {
            "userdp": "privacy ledger",
            "schema_version": SCHEMA_VERSION,
            **{name: _written(getattr(self, name)) for name in _PROMISE},
            "limits": {name: _written(value) for name, value in self.limits.items()},
            "entries": [
                {"name": entry.name, "cost": {name: _written(getattr(entry.cost, name)) for name in _COST}}
                for entry in entries
            ],
        }
        return json.dumps(content, allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> PrivacyLedger:
        """The ledger that `to_json` wrote, with what was spent."""
        arguments, limits, entries = _read(text)
        try:
            ledger = cls(**arguments)
        except TypeError as error:
            raise ValueError(f"the text is not a ledger as to_json writes it: {error}") from None
        if limits.keys() != ledger._limits.keys() or not keeps_promise(ledger, limits):
            raise ValueError("the text is not a ledger as to_json writes it: its limits do not keep its promise")
        ledger._limits = limits
        for name, cost in entries:
            ledger.spend(cost, name)
        return ledger

    def _lines(self) -> list[tuple[str, str, Mapping[str, Amount]]]:
        """What each line of the table is, its name and its amounts."""
        with self._lock:
            lines = [("release", entry.name, entry.charged) for entry in self._entries]
            spent, limit = shown_amounts(self._spent), shown_amounts(self._limits)
        return [*lines, ("spent", "spent", spent), ("limit", "limit", limit)]

    def __repr__(self) -> str:
        rows = [(name, amounts) for _, name, amounts in self._lines()]
        width = max(len(name) for name in ["release", *(name for name, _ in rows)])
        lines = [
            f"{type(self).__name__}(epsilon={float(parse_level(self.epsilon)):.6g}, delta={float(self.delta):.6g},"
            f" composition={self.composition!r}, unit={self.unit!r}, neighbors={self.neighbors!r})",
            f"  {'release':<{width}}" + "".join(f"{name:>{WIDTH}}" for name in self._limits),
        ]
        for name, amounts in rows:
            numbers = (float(parse_level(amounts[key])) for key in self._limits)
            lines.append(f"  {name:<{width}}" + "".join(f"{number:>{WIDTH}.4g}" for number in numbers))
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{"line": line, "name": name, **amounts} for line, name, amounts in self._lines()]

    def _sections(self) -> Sequence[Section]:
        lines = self._lines()
        promise = [
            Fact("Epsilon", *level_text(parse_level(self.epsilon))),
            Fact("Delta", *number_text(self.delta)),
            Fact("Composition", self.composition),
            Fact("Protects", f"a {self.unit}; neighbors: {self.neighbors}"),
        ]
        rows = [
            (name, *(level_text(parse_level(value))[0] for value in amounts.values())) for _, name, amounts in lines
        ]
        spent = Table("Releases", ("release", *lines[-1][2]), rows)
        return [Section("Privacy ledger", facts=[("", promise)], tables=[spent], headline=promise[:2])]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivacyLedger is not copied: each copy would allow once more what is left; see to_json")

    __copy__ = __reduce__

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()


def _label(name: str | None, item: Any, number: int) -> str:
    if name is not None:
        return str(name)
    return type(item).__name__ if hasattr(item, "privacy_") else f"release {number}"
