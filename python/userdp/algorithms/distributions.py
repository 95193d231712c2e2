"""Exact distributions over examples, as callers write them."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, TypeAlias

import numpy as np

from userdp.exact.encoding import canonical, key_of
from userdp.exact.numbers import capped_binomial, check_count, exact_number, short_repr
from userdp.exceptions import BudgetError

MAX_GRID = 200_000

DistributionLike: TypeAlias = "Mapping[Any, Any] | Sequence[Any]"
"""A mapping from example to weight, or weights in the order of a universe; weights of any positive total."""


@dataclass(frozen=True, slots=True)
class ExampleDistribution:
    """Examples with integer weights in lowest terms."""

    examples: tuple[Any, ...]
    weights: tuple[int, ...]

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    def fractions(self) -> tuple[Fraction, ...]:
        """The probabilities."""
        return tuple(Fraction(weight, self.total) for weight in self.weights)

    def sample(self, source: Random, size: int) -> list[Any]:
        """Independent draws; for simulations only."""
        steps = list(itertools.accumulate(self.weights))
        return [self.examples[bisect_right(steps, source.randrange(steps[-1]))] for _ in range(size)]


def read_universe(universe: Any, name: str = "universe") -> tuple[Any, ...]:
    """Read the distinct possible values of an example, as their canonical values."""
    if isinstance(universe, (str, bytes, Mapping, set, frozenset)) or not isinstance(universe, Iterable):
        raise TypeError(f"{name} must be a sequence of examples, in a definite order; got {short_repr(universe)}")
    examples = tuple(canonical(example, f"{name}: example {place}") for place, example in enumerate(universe))
    if not examples:
        raise ValueError(f"{name} is empty; it needs at least one example")
    first: dict[str, int] = {}
    for place, example in enumerate(examples):
        if first.setdefault(key_of(example), place) != place:
            raise ValueError(
                f"{name} must have distinct examples; examples {first[key_of(example)]} and {place} are both "
                f"{short_repr(example)}"
            )
    return examples


def read_distribution(value: Any, universe: tuple[Any, ...] | None, name: str) -> ExampleDistribution:
    """Read one distribution, exactly; weights are divided by their sum."""
    if isinstance(value, Mapping):
        examples = universe or read_universe(tuple(value), name)
        own = read_universe(tuple(value), name) if value else ()
        given = dict(zip(map(key_of, own), value.values(), strict=True))
        keys = list(map(key_of, examples))
        if strange := set(given) - set(keys):
            raise ValueError(f"{name}: the example {min(strange)} is not in the universe")
        entries = [given.get(key, 0) for key in keys]
    elif universe is not None and isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)):
        examples, entries = universe, list(value)
        if len(entries) != len(examples):
            raise ValueError(f"{name} has {len(entries)} weights for {len(examples)} examples")
    else:
        raise TypeError(f"{name} must be a mapping from example to weight; got {short_repr(value)}")
    weights = [_weight(entry, name) for entry in entries]
    common = math.lcm(*(weight.denominator for weight in weights))
    numerators = [weight.numerator * (common // weight.denominator) for weight in weights]
    divisor = math.gcd(*numerators)
    if divisor == 0:
        raise ValueError(f"{name}: all weights are zero; at least one must be positive")
    return ExampleDistribution(examples, tuple(number // divisor for number in numerators))


def _weight(entry: Any, name: str) -> Fraction:
    try:
        weight = exact_number(entry)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: the weight {short_repr(entry)}: {error}") from None
    if weight is None or weight < 0:
        raise ValueError(f"{name}: the weight {short_repr(entry)} is not a finite number >= 0")
    return weight


def simplex_grid(size: int, resolution: int) -> list[tuple[int, ...]]:
    """Distributions over a universe of the given size, all whose probabilities are multiples of 1 / resolution.

    Parameters
    ----------
    size : int
        Number of examples of the universe, >= 1.
    resolution : int
        The weights of each sum to this, >= 1.

    Returns
    -------
    list of tuples of int
        For the argument ``distributions`` of `audit_perfect_generalization`, a search for a violation.

    Raises
    ------
    BudgetError
        For over 200,000 of them.

    Examples
    --------
    >>> simplex_grid(2, 3)
    [(0, 3), (1, 2), (2, 1), (3, 0)]
    """
    examples, total = check_count(size, "size"), check_count(resolution, "resolution")
    if capped_binomial(total + examples - 1, examples - 1, MAX_GRID) > MAX_GRID:
        raise BudgetError(f"the grid has over {MAX_GRID:,} distributions; a smaller resolution is cheaper")
    bars = itertools.combinations(range(total + examples - 1), examples - 1)
    return [tuple(b - a - 1 for a, b in itertools.pairwise((-1, *cuts, total + examples - 1))) for cuts in bars]
