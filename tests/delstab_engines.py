"""The engines of DelStab under any relation, deletions and law of R1: what the public class fixes by calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from oracle import delstab as reference
from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.delstab.compatibility import InnerLaws
from userdp.delstab.engines import AnyStability, Plan, check_arguments, find_stability, plan
from userdp.delstab.windows import TotalLaws, certified

F = Fraction


def inner_laws(outputs: Sequence[Any], multiplier: Fraction, delta: Fraction, *, strict: bool = False) -> InnerLaws:
    return InnerLaws(tuple(outputs), _core.Level(F(multiplier), F(0)), F(delta), strict)


def stability(
    algorithm: Any,
    users: Sequence[Any],
    deletions: int,
    inner: InnerLaws,
    *,
    limit: int | None = None,
    relation: Any = "auto",
    max_types: int | None = None,
    covered: bool = False,
    totals: TotalLaws | None = None,
) -> AnyStability:
    check_arguments(algorithm, relation, max_types)
    largest = deletions if limit is None else limit
    chosen: Plan = plan(algorithm, len(users), deletions, largest, relation, max_types)
    if covered:
        chosen = replace(chosen, steps=1)

    def certified_totals() -> TotalLaws:
        assert isinstance(algorithm, AdditiveAlgorithm)
        return totals or certified(algorithm, len(users) - deletions, deletions, inner)

    return find_stability(
        algorithm,
        tuple(users),
        chosen,
        deletions,
        largest,
        inner,
        certified_totals,
        lambda done, total: None,
    )


def law_of(found: AnyStability, outputs: Sequence[Any], sizes: Mapping[int, Fraction]) -> reference.Law:
    """The law of a release with |S| of the given law, as the reference writes it."""
    usable = {size: F(mass) for size, mass in sizes.items() if found.smallest is not None and size >= found.smallest}
    if not any(usable.values()):
        return {reference.BOTTOM: F(1)}
    total = math.lcm(*(mass.denominator for mass in usable.values()))
    mixture = [int(usable.get(size, F(0)) * total) for size in range(max(usable) + 1)]
    weights, scale = found.law(mixture, total)
    law: reference.Law = {output: F(weight, scale) for output, weight in zip(outputs, weights, strict=True)}
    law[reference.BOTTOM] = 1 - sum(law.values(), F(0))
    return law


def same_law(first: reference.Law, second: reference.Law) -> bool:
    return all(first.get(output, 0) == second.get(output, 0) for output in first.keys() | second.keys())
