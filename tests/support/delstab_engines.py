"""The engines of DelStab under any relation, deletions and pmf of R1: what the public class fixes by calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from oracle import delstab as reference
from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.delstab.engines import AnyStability, EngineChoice, check_arguments, choose_engine, find_stability
from userdp.delstab.stable_sets import InnerPmfs, TotalPmfs, certified_totals

F = Fraction


def inner_pmfs(outputs: Sequence[Any], multiplier: Fraction, delta: Fraction, *, strict: bool = False) -> InnerPmfs:
    return InnerPmfs(tuple(outputs), _core.Level(F(multiplier), F(0)), F(delta), strict)


def stability(
    algorithm: Any,
    users: Sequence[Any],
    deletions: int,
    inner: InnerPmfs,
    *,
    limit: int | None = None,
    compatibility: Any = "auto",
    max_distinct_users: int | None = None,
    covered: bool = False,
    totals: TotalPmfs | None = None,
) -> AnyStability:
    check_arguments(algorithm, compatibility, max_distinct_users)
    largest = deletions if limit is None else limit
    chosen: EngineChoice = choose_engine(algorithm, len(users), deletions, largest, compatibility, max_distinct_users)
    if covered:
        chosen = replace(chosen, steps=1)
    if chosen.engine == "additive" and totals is None:
        assert isinstance(algorithm, AdditiveAlgorithm)
        totals = certified_totals(algorithm, len(users) - deletions, deletions, inner)

    return find_stability(
        algorithm,
        tuple(users),
        chosen,
        deletions,
        largest,
        inner,
        totals if chosen.engine == "additive" else None,
        lambda done, total: None,
    )


def distribution_of(
    found: AnyStability, outputs: Sequence[Any], sizes: Mapping[int, Fraction]
) -> reference.Distribution:
    """The distribution of a release with |S| of the given distribution, as the reference writes it."""
    usable = {size: F(mass) for size, mass in sizes.items() if found.smallest is not None and size >= found.smallest}
    if not any(usable.values()):
        return {reference.BOTTOM: F(1)}
    total = math.lcm(*(mass.denominator for mass in usable.values()))
    mixture = [int(usable.get(size, F(0)) * total) for size in range(max(usable) + 1)]
    weights, scale = found.distribution(mixture, total)
    pmf: reference.Distribution = {output: F(weight, scale) for output, weight in zip(outputs, weights, strict=True)}
    pmf[reference.BOTTOM] = 1 - sum(pmf.values(), F(0))
    return pmf


def same_pmf(first: reference.Distribution, second: reference.Distribution) -> bool:
    return all(first.get(output, 0) == second.get(output, 0) for output in first.keys() | second.keys())
