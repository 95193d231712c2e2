"""The certificate of an optimal mechanism: `userdp.optimal` makes it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from userdp.checker import values
from userdp.display import Fact, Section
from userdp.display.numbers import bounded, in_digits, level_text, number_text
from userdp.exact.numbers import PrivacyLevel, nearest_float
from userdp.report.base import COUNT, FRACTION, LEVEL, Codec, Report, many, one_of, optional, row
from userdp.report.composition import WHOLE


def _world(code: Any) -> dict[str, Any]:
    values.need(isinstance(code, dict) and isinstance(code.get("kind"), str), f"{code!r:.60} is no world")
    return copy.deepcopy(code)


@dataclass(frozen=True, kw_only=True, repr=False)
class OptimalityCertificate(Report):
    """The claims that a table is a private mechanism with a loss, and that no private mechanism has one below a bound.

    Attributes
    ----------
    world : dict
        What the claims are about, from which all datasets and neighbors are listed again: `kind` is "users",
        "selection" or "sum", beside its parameters.
    epsilon : PrivacyLevel
    below, above : Fraction
        Numbers around e^epsilon, equal where it is a fraction: the table is private at `below`, the bound holds at
        `above`.
    delta : Fraction
    objective : {"worst", "bayes"}
        Whether `value` and `lower_bound` are about the worst dataset or about the mean under a prior.
    prior : tuple of Fraction or None
        For "bayes", the prior of each orbit of datasets.
    total : int
        What the masses of every dataset sum to.
    table : tuple of int
        The mass of an output, for each class of equal outputs of each orbit of datasets.
    scale : int
    mu : tuple of int or None
        For "worst", weights of the orbits, which sum to `scale`.
    y : tuple of (int, int)
        Constraints of the world by their place, and their weights over `scale`.
    value : Fraction
        What the table loses.
    lower_bound : Fraction
        What every mechanism with this privacy loses at least, by `mu` and `y`.
    """

    world: Mapping[str, Any]
    epsilon: PrivacyLevel
    below: Fraction
    above: Fraction
    delta: Fraction
    objective: str
    prior: tuple[Fraction, ...] | None
    total: int
    table: tuple[int, ...]
    scale: int
    mu: tuple[int, ...] | None
    y: tuple[tuple[int, int], ...]
    value: Fraction
    lower_bound: Fraction

    KIND: ClassVar[str] = "optimality"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "world": Codec(lambda world: copy.deepcopy(dict(world)), _world),
        "epsilon": LEVEL,
        "below": FRACTION,
        "above": FRACTION,
        "delta": FRACTION,
        "objective": one_of("worst", "bayes"),
        "prior": optional(many(FRACTION)),
        "total": WHOLE,
        "table": many(WHOLE),
        "scale": WHOLE,
        "mu": optional(many(WHOLE)),
        "y": many(row(COUNT, WHOLE)),
        "value": FRACTION,
        "lower_bound": FRACTION,
    }

    @property
    def holds(self) -> bool:
        """That the claims hold is what a certificate says; whether they do, `verify` finds."""
        return True

    @property
    def gap(self) -> float:
        """How far `value` may be above the optimum, relative to `lower_bound`; inf for a bound of 0 below it."""
        if self.value == self.lower_bound:
            return 0.0
        if self.lower_bound <= 0:
            return float("inf")
        return nearest_float((self.value - self.lower_bound) / self.lower_bound)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("epsilon", "delta", "objective", "value", "lower_bound", "gap")
        return [{"world": self._about()} | {name: getattr(self, name) for name in names}]

    def _about(self) -> str:
        """The world, in a few words."""
        world = self.world
        named = [
            f"{name}={world[name]!r:.40}" for name in ("n_users", "n_items", "n_examples", "loss") if name in world
        ]
        return f"{world['kind']!s:.20} ({', '.join(named)})" if named else f"{world['kind']!s:.20}"

    def _sections(self) -> Sequence[Section]:
        claim = [
            Fact("Loss of the mechanism, at most", bounded(self.value)),
            Fact("Loss of every mechanism, at least", bounded(max(self.lower_bound, Fraction(0)), "down")),
            Fact("Relative gap, at most", bounded(Fraction(self.gap)) if self.gap < float("inf") else "unbounded"),
        ]
        asked = [
            Fact("World", self._about()),
            Fact("Objective", "the worst dataset" if self.objective == "worst" else "the mean under a prior"),
            Fact("Epsilon", *level_text(self.epsilon)),
            Fact("Delta", *number_text(self.delta)),
            Fact("Unknowns", in_digits(len(self.table))),
        ]
        return [
            Section(
                "Optimal mechanism",
                "CLAIMED",
                "The table is a private mechanism with this loss, and no mechanism with the same privacy is better by "
                "more than the gap.",
                facts=[("Claim", claim), ("Question", asked)],
                headline=claim,
            )
        ]
