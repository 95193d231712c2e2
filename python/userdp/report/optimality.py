"""The certificate of an optimal mechanism: `userdp.optimal` makes it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from userdp.checker import values
from userdp.display import Fact, Section
from userdp.display.numbers import bounded, in_digits
from userdp.exact.numbers import PrivacyLevel, nearest_float
from userdp.report.base import Report, level_facts, report
from userdp.report.fields import (
    COUNT,
    FRACTION,
    LEVEL,
    POSITIVE,
    SHARE,
    VALUE,
    WHOLE,
    Codec,
    Schema,
    many,
    members,
    object_of,
    one_of,
    optional,
    row,
    written,
)


def _world(code: Any) -> dict[str, Any]:
    values.need(isinstance(code, dict) and isinstance(code.get("kind"), str), f"{code!r:.60} is no world")
    return copy.deepcopy(code)


_LOSSES = many(many(SHARE, 1), 1).named("losses", "A row for each dataset, a loss for each output.")
_PLACES = many(COUNT, 1).named("relabeling")
_FEW, _VALUES = POSITIVE.within(maximum=1000), many(VALUE, 1)
_WORLDS: Mapping[str, Mapping[str, Schema]] = {
    "selection": {
        "n_users": _FEW.schema,
        "n_items": POSITIVE.schema,
        "loss": one_of("regret", "error", "agreement").schema,
        "agreement": optional(SHARE).schema,
    },
    "sum": {
        "lowest": {"type": "integer"},
        "reach": POSITIVE.schema,
        "outputs": _VALUES.schema,
        "losses": _LOSSES.schema,
    },
    "users": {
        "universe": _VALUES.schema,
        "n_users": _FEW.schema,
        "n_examples": _FEW.schema,
        "outputs": _VALUES.schema,
        "losses": _LOSSES.schema,
        "symmetries": many(members(dict, {"examples": _PLACES, "outputs": _PLACES})).schema,
    },
}
_WORLD = Codec(
    lambda world: copy.deepcopy(dict(world)),
    _world,
    {"oneOf": [object_of({"kind": {"const": kind}, **parts}) for kind, parts in _WORLDS.items()]},
).named("world", "What datasets there are, who is whose neighbor, and what outputs lose.")


@report("optimality")
class OptimalityCertificate(Report):
    """The claims that a table is a private mechanism with a loss, and that no private one loses less than a bound."""

    world: Mapping[str, Any] = written(
        _WORLD,
        'What the claims are about, from which all datasets and neighbors are listed again: `kind` is "users", '
        '"selection" or "sum", beside its parameters.',
    )
    epsilon: PrivacyLevel = written(LEVEL)
    below: Fraction = written(SHARE)
    above: Fraction = written(
        SHARE,
        "Numbers around e^epsilon, equal where it is a fraction: the table is private at `below`, the bound holds at "
        "`above`.",
    )
    delta: Fraction = written(SHARE)
    objective: str = written(
        one_of("worst", "bayes"),
        "Whether `value` and `lower_bound` are about the worst dataset or about the mean under a prior.",
    )
    prior: tuple[Fraction, ...] | None = written(
        optional(many(SHARE, 1)), 'For "bayes", the prior of each orbit of datasets.'
    )
    total: int = written(WHOLE, "What the masses of every dataset sum to.")
    table: tuple[int, ...] = written(
        many(WHOLE, 1), "The mass of an output, for each class of equal outputs of each orbit of datasets."
    )
    scale: int = written(WHOLE)
    mu: tuple[int, ...] | None = written(
        optional(many(WHOLE, 1)), 'For "worst", weights of the orbits, which sum to `scale`.'
    )
    y: tuple[tuple[int, int], ...] = written(
        many(row(COUNT, WHOLE)), "Constraints of the world by their place, and their weights over `scale`."
    )
    value: Fraction = written(SHARE, "What the table loses.")
    lower_bound: Fraction = written(FRACTION, "What every mechanism with this privacy loses at least, by `mu` and `y`.")

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
            *level_facts(self.epsilon, self.delta),
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
