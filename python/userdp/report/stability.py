"""The report of an audit of stability: `userdp.stability.audit_stability` makes it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from userdp.display import Fact, Section, Table
from userdp.display.numbers import Toward, enclosed_text, number_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import Interval, short_repr
from userdp.exceptions import BudgetError
from userdp.report.base import Report, exact_text, report
from userdp.report.fields import (
    COUNT,
    ENCLOSED,
    FLAG,
    POSITIVE,
    SHARE,
    TEXT,
    VALUE,
    many,
    of,
    one_of,
    optional,
    part,
    row,
    written,
)

MAX_TRADEOFFS = 2**16
SHOWN_ITEMS = 5
"""Items and seeds that a summary and a page list."""


@part
class ItemStability:
    """How likely an item is."""

    item: Any = written(VALUE)
    probability: Interval = written(
        ENCLOSED, "Over samples, and the public randomness where there is any: of being the outcome, or on the list."
    )
    error: Fraction | None = written(optional(SHARE), "The exact error of the hypothesis; None where it is not known.")


@part
class SeedStability:
    """How stable a learner is for one value of the public randomness."""

    seed: Any = written(VALUE)
    weight: Fraction = written(SHARE, "Its probability.")
    best: ItemStability = written(
        of(ItemStability, "item"), "The likeliest item, the accurate one where there are several."
    )
    stable: bool | None = written(optional(FLAG), "Whether some item is likely enough; None where that is open.")
    accurate: bool | None = written(optional(FLAG), "Whether a stable item is accurate; None where that is open.")


@report("stability")
class StabilityReport(Report):
    """The result of `audit_stability`: exact numbers for one distribution."""

    learner: str = written(TEXT)
    distribution: tuple[tuple[Any, Fraction], ...] = written(many(row(VALUE, SHARE), 1))
    m: int = written(POSITIVE, "Examples of a sample.")
    alpha: Fraction = written(SHARE, "The error that counts as accurate.")
    eta: Fraction = written(SHARE, "The probability that counts as stable.")
    samples: int = written(COUNT, "Samples, as count vectors or sequences.")
    outcomes: int = written(COUNT, "The distinct outcomes on them.")
    items: tuple[ItemStability, ...] = written(
        many(of(ItemStability, "item"), 1), "All items that occur, the likeliest first."
    )
    global_stability: Interval = written(
        ENCLOSED,
        "The largest probability of an accurate item ([GKM21, Definition 14]; for lists [GKM21, Definition 16]); 0 "
        "without one.",
    )
    list_size: int | None = written(optional(COUNT), "The longest list, where outcomes are lists.", default=None)
    method: Literal["race", "darts"] | None = written(
        optional(one_of("race", "darts")),
        "How output distributions are drawn from with public randomness; None where outcomes are not distributions "
        "drawn from in this way.",
        default=None,
    )
    agreement: Interval | None = written(
        optional(ENCLOSED), "The probability that two users of independent samples agree.", default=None
    )
    distance: Interval | None = written(
        optional(ENCLOSED),
        "The probability that a user's draw is not that from the canonical distribution, by the same randomness.",
        default=None,
    )
    nu: Interval | None = written(
        optional(ENCLOSED),
        "The probability over public randomness that some accurate hypothesis is what a user gets with probability at "
        "least eta ([GKM21, Definition 15], both conditions jointly). For listed seeds the number itself, otherwise "
        "what the agreement, the distance and the items' probabilities say about it; see docs/proofs/stability.md.",
        default=None,
    )
    seeds: tuple[SeedStability, ...] = written(many(of(SeedStability)), default=())

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
