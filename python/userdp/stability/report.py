"""The result of an audit of stability."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.exact.encoding import encode, fraction_text
from userdp.exact.numbers import Interval, short_repr
from userdp.exceptions import BudgetError
from userdp.stability.parameters import Method

MAX_TRADEOFFS = 2**16
SHOWN_ITEMS = 5


@dataclass(frozen=True, slots=True)
class ItemStability:
    """How likely an item is.

    Attributes
    ----------
    item : hashable
    probability : Interval
        Over samples, and the public randomness where there is any: of being the outcome, or on the list.
    error : Fraction or None
        The exact error of the hypothesis; None where it is not known.
    """

    item: Any
    probability: Interval
    error: Fraction | None


@dataclass(frozen=True, slots=True)
class SeedStability:
    """How stable a learner is for one value of the public randomness.

    Attributes
    ----------
    seed : object
    weight : Fraction
        Its probability.
    best : ItemStability
        The likeliest item, the accurate one where there are several.
    stable, accurate : bool or None
        Whether some item is likely enough; whether a stable item is accurate. None where the enclosure leaves it open.
    """

    seed: Any
    weight: Fraction
    best: ItemStability
    stable: bool | None
    accurate: bool | None


@dataclass(frozen=True, kw_only=True)
class StabilityReport:
    """The result of `audit_stability`: exact numbers for one distribution.

    Attributes
    ----------
    learner : str
    distribution : tuple of (example, Fraction)
    m : int
        Examples of a sample.
    alpha, eta : Fraction
        The error that counts as accurate, and the probability that counts as stable.
    samples, outcomes : int
        Samples (count vectors, or sequences), and the distinct outcomes on them.
    items : tuple of ItemStability
        All items that occur, the likeliest first.
    global_stability : Interval
        The largest probability of an accurate item ([GKM21, Definition 14]; for lists [GKM21, Definition 16]); 0
        without one.
    list_size : int or None
        The longest list, where outcomes are lists.
    method : {"race", "darts"} or None
        How distributions are drawn from with public randomness; None where outcomes are not distributions drawn from in
        this way.
    agreement : Interval or None
        The probability that two users of independent samples agree.
    distance : Interval or None
        The probability that a user's draw is not that from the canonical distribution, by the same randomness.
    nu : Interval or None
        The probability over public randomness that some accurate hypothesis is what a user gets with probability at
        least eta ([GKM21, Definition 15], both conditions jointly). For listed seeds the number itself, otherwise what
        the agreement, the distance and the items' probabilities say about it; see docs/proofs/stability.md.
    seeds : tuple of SeedStability
    """

    learner: str
    distribution: tuple[tuple[Any, Fraction], ...]
    m: int
    alpha: Fraction
    eta: Fraction
    samples: int
    outcomes: int
    items: tuple[ItemStability, ...]
    global_stability: Interval
    list_size: int | None = None
    method: Method | None = None
    agreement: Interval | None = None
    distance: Interval | None = None
    nu: Interval | None = None
    seeds: tuple[SeedStability, ...] = ()

    def tradeoffs(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """What [GKM21, Definition 15] allows, whose two conditions choose the hypotheses h_r for all seeds r.

        Returns
        -------
        tuple of (Fraction, Fraction)
            Pairs (1 - beta, nu) that no other pair exceeds in both: where every stable hypothesis of a seed is
            inaccurate, h_r is either stable or accurate, so that the seed counts for nu or for 1 - beta. An accurate
            hypothesis is assumed to exist, as it does for realizable distributions.

        Raises
        ------
        ValueError
            Without listed seeds.
        BudgetError
            For more than 2**16 pairs.
        """
        if not self.seeds:
            raise ValueError("tradeoffs are about listed seeds; give audit_stability its argument seeds")
        good = sum((own.weight for own in self.seeds if own.accurate), Fraction(0))
        contested = [own.weight for own in self.seeds if own.stable and own.accurate is False]
        sums = {Fraction(0)}
        for weight in contested:
            sums |= {weight + other for other in sums}
            if len(sums) > MAX_TRADEOFFS:
                raise BudgetError(f"over {MAX_TRADEOFFS} pairs; seeds of equal weight have fewer")
        total = sum(contested, Fraction(0))
        return tuple((1 - total + part, good + total - part) for part in sorted(sums))

    def summary(self) -> str:
        """The report in words."""
        alpha, best = _short(self.alpha), _text(self.global_stability)
        lines = [
            f"Stability of {self.learner}",
            f"  {self.samples:,} samples of m={self.m} from {len(self.distribution)} examples, "
            f"{self.outcomes:,} distinct outcomes",
            f"  the likeliest item of error at most {alpha} has probability {best}",
        ]
        if self.list_size is not None:
            lines.append(f"  lists have at most {self.list_size} items")
        if self.agreement is not None:
            lines.append(f"  two users agree with probability {_text(self.agreement)} ({self.method})")
        if self.distance is not None:
            lines.append(f"  a user misses the canonical draw with probability {_text(self.distance)}")
        if self.nu is not None:
            lines.append(
                f"  {_short(self.eta)}-stable and accurate for a fraction {_text(self.nu)} of the public randomness"
            )
        for own in itertools.islice(self.items, SHOWN_ITEMS):
            error = "" if own.error is None else f", error {_short(own.error)}"
            lines.append(f"    {short_repr(own.item)}: {_text(own.probability)}{error}")
        if len(self.items) > SHOWN_ITEMS:
            lines.append(f"    and {len(self.items) - SHOWN_ITEMS:,} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready content: numbers exact (fractions as text), examples and items as in the report format."""
        return {
            "kind": "stability",
            "learner": self.learner,
            "distribution": [[encode(example), fraction_text(mass)] for example, mass in self.distribution],
            "m": self.m,
            "alpha": fraction_text(self.alpha),
            "eta": fraction_text(self.eta),
            "samples": self.samples,
            "outcomes": self.outcomes,
            "items": [_item(own) for own in self.items],
            "global_stability": _pair(self.global_stability),
            "list_size": self.list_size,
            "method": self.method,
            "agreement": _pair(self.agreement),
            "distance": _pair(self.distance),
            "nu": _pair(self.nu),
            "seeds": [
                {
                    "seed": encode(own.seed),
                    "weight": fraction_text(own.weight),
                    "best": _item(own.best),
                    "stable": own.stable,
                    "accurate": own.accurate,
                }
                for own in self.seeds
            ],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, sort_keys=True)


def _item(own: ItemStability) -> dict[str, Any]:
    return {
        "item": encode(own.item),
        "probability": _pair(own.probability),
        "error": None if own.error is None else fraction_text(own.error),
    }


def _pair(value: Interval | None) -> list[str] | None:
    return None if value is None else [fraction_text(value.lower), fraction_text(value.upper)]


def _text(value: Interval) -> str:
    if value.lower == value.upper:
        return _short(value.lower)
    low, high = f"{float(value.lower):.6g}", f"{float(value.upper):.6g}"
    return low if low == high else f"between {low} and {high}"


def _short(value: Fraction) -> str:
    """A fraction, or its float when it is long."""
    text = fraction_text(value)
    return text if len(text) <= 24 else f"{float(value):.6g}"
