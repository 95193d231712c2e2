"""What checks of every kind do: run a mechanism again, try orders of users, compare bounds with exact numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeVar

from userdp.checker import values
from userdp.checker.divergences import Level, Pmf, Value, ratio_cap, worst_divergence
from userdp.checker.spaces import Pair, Space
from userdp.checker.values import Problem, need, text_of

Finding = Literal["wrong", "refused", "consistent", "spot-checked", "established"]
Mechanism = Callable[[tuple[Any, ...]], Sequence[Fraction]]
Worst = tuple[Value, Value, Value]
"""The worst divergence of the stated pmfs, and bounds of it for pmfs within pmf_error."""


class Checked(NamedTuple):
    """How much was checked, of a report in which nothing was wrong."""

    finding: Finding
    datasets: int = 0
    pairs: int = 0
    refuted: bool = False


@dataclass(frozen=True)
class Declared:
    """What a mechanism declares beyond its pmfs; a report's engine and pmf_error rest on it.

    With `by_construction` its class computes the pmf from what the engine assumes, so that nobody has to try it.
    """

    symmetric: bool = False
    statistic_of: Callable[[Any], int] | None = None
    pmf_error: Fraction = Fraction(0)
    by_construction: bool = False


@dataclass(frozen=True)
class Asked:
    """What a report is checked with, besides itself; and what was found to be wrong already."""

    mechanism: Mechanism | None = None
    declared: Declared | None = None
    dataset: tuple[Any, ...] | None = None
    problems: list[str] = field(default_factory=list)


class Kind(NamedTuple):
    """A kind of report: its fields besides the three that every report has, and how it is checked."""

    fields: frozenset[str]
    check: Callable[[Any, Asked], Checked]
    certain: bool
    """Whether every report of it says that its claim holds."""


KINDS: dict[str, Kind] = {}
Check = TypeVar("Check", bound=Callable[..., Checked])


def checks(kind: str, fields: str, *, alone: bool = True, certain: bool = False) -> Callable[[Check], Check]:
    """Register what checks a kind of report (decorator): a function of the report, and unless `alone` of `Asked`."""

    def registered(check: Check) -> Check:
        KINDS[kind] = Kind(frozenset(fields.split()), (lambda report, _: check(report)) if alone else check, certain)
        return check

    return registered


def distinct(encoded: Sequence[Any], name: str) -> None:
    need(len(set(map(text_of, encoded))) == len(encoded), f"{name} names the same object twice")


def run(mechanism: Mechanism, what: str, dataset: tuple[Any, ...], outputs: int) -> Pmf:
    """The pmf on a dataset, exactly."""
    try:
        pmf = Pmf.of([Fraction(mass) for mass in mechanism(dataset)])
    except Exception as error:  # whatever the mechanism raises, the report stays unconfirmed
        raise Problem(f"the mechanism fails on {what}: {type(error).__name__}: {error}") from error
    need(len(pmf.weights) == outputs and pmf.is_pmf(), f"the mechanism gives {what} no pmf")
    return pmf


def check_orders(
    mechanism: Mechanism,
    outputs: int,
    space: Space,
    real: Mapping[str, Any],
    stated: Callable[[int], Pmf | None],
    *,
    complete: bool,
) -> tuple[bool, int]:
    """Run the mechanism on datasets in other orders than the listed ones; whether these are all, and how many."""
    every = complete and space.all_orders() <= values.ALL_ORDERS
    draw = random.SystemRandom().randrange
    some = (space.in_some_order(real, draw) for _ in range(values.SAMPLE_SIZE))
    tried, known = 0, dict[int, Pmf]()
    for rank, dataset in space.in_every_order(real) if every else some:
        pmf, expected = run(mechanism, f"dataset {rank}", dataset, outputs), stated(rank)
        if expected is None:
            if rank not in known:
                known[rank] = run(mechanism, f"dataset {rank}", space.dataset(rank, real), outputs)
            expected = known[rank]
        need(pmf == expected, f"the mechanism's pmf changes with the order of users, on those of dataset {rank}")
        tried += 1
    return every, tried


def within_error(
    pmfs: Mapping[int, Pmf], edges: Sequence[Pair], level: tuple[Fraction, Fraction], error: Fraction
) -> Worst:
    """The worst divergence over pairs of pmfs, and its bounds for pmfs within a relative error of them."""
    cap, (ratio, exponent) = ratio_cap(pmfs.values()), level

    def worst_at(factor: Fraction) -> Value:
        return worst_divergence(pmfs, edges, Level(ratio * factor, exponent, cap))

    worst = worst_at(Fraction(1))
    if not error:
        return worst, worst, worst
    # Masses within the relative error eta move E by (1 + eta)/(1 - eta) and the value by 1 +- eta.
    spread = (1 + error) / (1 - error)
    at_most, at_least = worst_at(1 / spread), worst_at(spread)
    most = Value(at_most.a, at_most.b, at_most.level, 1 + error)
    return worst, Value(at_least.a, at_least.b, at_least.level, 1 - error), most


def slack(bound: float) -> Fraction:
    """How far a bound may be from the exact number before it is vacuous."""
    return Fraction(bound) / 10**6 + Fraction(1, 10**12)


def check_upper(high: float, most: Value) -> None:
    right = math.isfinite(high) and most.compare(Fraction(high)) <= 0
    need(right, "worst_delta.upper is below the worst divergence")


def check_bounds(bounds: tuple[float, float], holds: bool | None, least: Value, most: Value, delta: Fraction) -> None:
    """Bounds and a verdict against least <= worst divergence <= most."""
    low, high = bounds
    check_upper(high, most)
    need(least.compare(Fraction(low)) >= 0, "worst_delta.lower is above the worst divergence")
    need(low >= 0, "worst_delta.lower is below 0")
    tight = least.compare(Fraction(low) + slack(low)) <= 0 and most.compare(Fraction(high) - slack(high)) >= 0
    need(tight, "worst_delta encloses the worst divergence but is too wide to say anything")
    decided = True if most.compare(delta) <= 0 else False if least.compare(delta) > 0 else None
    need(holds is decided, "holds is not what the pmfs decide")
