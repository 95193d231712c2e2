"""The report of an audit of stability: `userdp.stability.audit_stability` makes it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from userdp.display import Fact, Section, Table
from userdp.display.numbers import Toward, enclosed_text, number_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import Interval, short_repr
from userdp.exceptions import BudgetError
from userdp.report.base import (
    COUNT,
    FLAG,
    FRACTION,
    TEXT,
    VALUE,
    Codec,
    Report,
    exact_text,
    many,
    members,
    one_of,
    optional,
    row,
)

MAX_TRADEOFFS = 2**16
SHOWN_ITEMS = 5
"""Items and seeds that a summary and a page list."""


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


_ENCLOSED = Codec(
    lambda value: [fraction_text(value.lower), fraction_text(value.upper)],
    lambda code: Interval(*row(FRACTION, FRACTION).read(code)),
)
_ITEM = members(ItemStability, item=VALUE, probability=_ENCLOSED, error=optional(FRACTION))
_SEED = members(SeedStability, seed=VALUE, weight=FRACTION, best=_ITEM, stable=optional(FLAG), accurate=optional(FLAG))


@dataclass(frozen=True, kw_only=True, repr=False)
class StabilityReport(Report):
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
        How output distributions are drawn from with public randomness; None where outcomes are not distributions drawn
        from in this way.
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
    method: Literal["race", "darts"] | None = None
    agreement: Interval | None = None
    distance: Interval | None = None
    nu: Interval | None = None
    seeds: tuple[SeedStability, ...] = ()

    KIND: ClassVar[str] = "stability"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "learner": TEXT,
        "distribution": many(row(VALUE, FRACTION)),
        "m": COUNT,
        "alpha": FRACTION,
        "eta": FRACTION,
        "samples": COUNT,
        "outcomes": COUNT,
        "items": many(_ITEM),
        "global_stability": _ENCLOSED,
        "list_size": optional(COUNT),
        "method": optional(one_of("race", "darts")),
        "agreement": optional(_ENCLOSED),
        "distance": optional(_ENCLOSED),
        "nu": optional(_ENCLOSED),
        "seeds": many(_SEED),
    }

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
        """Describe the result in a few lines of plain text."""
        alpha, best = exact_text(self.alpha, 6), _text(self.global_stability)
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
            lines.append(f"  a user misses the canonical draw with probability {_text(self.distance, 'up')}")
        if self.nu is not None:
            eta = exact_text(self.eta, 6, "down")
            lines.append(f"  {eta}-stable and accurate for a fraction {_text(self.nu)} of the public randomness")
        for own in itertools.islice(self.items, SHOWN_ITEMS):
            error = "" if own.error is None else f", error {exact_text(own.error, 6)}"
            lines.append(f"    {short_repr(own.item)}: {_text(own.probability)}{error}")
        if len(self.items) > SHOWN_ITEMS:
            lines.append(f"    and {len(self.items) - SHOWN_ITEMS:,} more")
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "item": short_repr(own.item),
                "probability_lower": own.probability.bounds.lower,
                "probability_upper": own.probability.bounds.upper,
                "error": own.error,
            }
            for own in self.items
        ]

    def _sections(self) -> Sequence[Section]:
        found = [_fact("Likeliest accurate item", self.global_stability)]
        for label, value in (
            ("Two users agree", self.agreement),
            ("A user misses the canonical draw", self.distance),
            ("Stable and accurate public randomness", self.nu),
        ):
            found += [] if value is None else [_fact(label, value, "up" if value is self.distance else "down")]
        asked = [
            Fact("Samples", f"{self.samples:,} of m = {self.m} from {len(self.distribution)} examples"),
            Fact("Distinct outcomes", f"{self.outcomes:,}"),
            Fact("Accurate is an error of at most", *number_text(self.alpha)),
            Fact("Stable is a probability of at least", *number_text(self.eta, "down")),
        ]
        if self.list_size is not None:
            asked.append(Fact("Longest list", f"{self.list_size:,}"))
        if self.method is not None:
            asked.append(Fact("Public randomness is used by", self.method))
        rows = [
            (short_repr(own.item), _text(own.probability), "" if own.error is None else exact_text(own.error))
            for own in itertools.islice(self.items, SHOWN_ITEMS)
        ]
        more = len(self.items) - len(rows)
        items = Table("Items", ("item", "probability", "error"), rows, f"and {more:,} more" if more > 0 else "")
        return [
            Section(
                f"Stability of {self.learner}",
                facts=[("Result", found), ("Question", asked)],
                tables=[items],
                headline=found[:2],
            )
        ]


def _fact(label: str, value: Interval, toward: Toward = "down") -> Fact:
    if value.lower == value.upper:
        return Fact(label, *number_text(value.lower, toward))
    text = enclosed_text(value.lower, value.upper, toward)
    return Fact(label, text, f"between {fraction_text(value.lower)} and {fraction_text(value.upper)}")


def _text(value: Interval, toward: Toward = "down") -> str:
    if value.lower == value.upper:
        return exact_text(value.lower, 6, toward)
    return enclosed_text(value.lower, value.upper, toward, 6)
