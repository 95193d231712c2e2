"""Evaluating a mechanism on many datasets: validated pmfs, the equal ones stored once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms.finite import Dataset, FiniteAlgorithm, goes_with, relative_error
from userdp.exact.numbers import short_repr
from userdp.exact.pmf import Masses, Pmf, aligned, distinct_masses, masses_of
from userdp.runtime import ProgressCallback

BATCH = 1024
FLOAT_TOTAL_TOLERANCE = 1e-9


def _declared(mechanism: Any, name: str, default: Any) -> Any:
    """What a mechanism says of itself, before any dataset is looked at; a property that raises is bad input."""
    try:
        return getattr(mechanism, name, default)
    except Exception as error:
        raise ValueError(f"mechanism.{name} cannot be read: {type(error).__name__}: {error}") from error


def outputs_of(mechanism: Any) -> tuple[Any, ...]:
    """The mechanism's outputs, checked."""
    declared = _declared(mechanism, "outputs", None)
    if declared is None or not isinstance(mechanism, FiniteAlgorithm):
        raise TypeError(
            f"mechanism must be a FiniteAlgorithm, with .outputs and .pmf(dataset); got {type(mechanism).__name__}. "
            "userdp.algorithms.finite_algorithm makes one of a function"
        )
    if isinstance(declared, (str, bytes)):
        raise TypeError("mechanism.outputs must be a tuple of outputs; got a string")
    try:
        outputs = tuple(declared)
        distinct = len(set(outputs))
    except TypeError:
        raise TypeError(f"mechanism.outputs must be a tuple of hashable outputs; got {short_repr(declared)}") from None
    except Exception as error:
        raise ValueError(f"mechanism.outputs cannot be listed: {type(error).__name__}: {error}") from error
    if not outputs or distinct != len(outputs):
        raise ValueError("mechanism.outputs must be a non-empty tuple of distinct outputs")
    return outputs


def pmf_error_of(mechanism: Any) -> Fraction:
    """The mechanism's declared relative pmf error, 0 by default."""
    return relative_error(_declared(mechanism, "pmf_error", 0))


def mechanism_name(mechanism: Any) -> str:
    """A name for reports."""
    name = _declared(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    return name if isinstance(name, str) else type(mechanism).__name__


class Totals(str):
    """Where an additive mechanism was asked, in words."""

    __repr__ = str.__str__


@dataclass
class DistinctPmfs:
    """Pmfs in order of first appearance, and for every dataset the index of its own."""

    outputs: tuple[Any, ...]
    masses: list[Masses] = field(default_factory=list)
    index_of: list[int] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)

    def add(self, returned: Any, dataset: Any) -> None:
        """Validate what a mechanism returned on a dataset and record it."""
        where = f"the pmf that the mechanism returned on the dataset {short_repr(dataset)}"
        masses = checked_masses(returned, self.outputs, where)
        key = distinct_masses(masses)
        index = self._known.setdefault(key, len(self.masses))
        if index == len(self.masses):
            self.masses.append(masses)
        self.index_of.append(index)


def checked_masses(returned: Any, outputs: tuple[Any, ...], where: str) -> Masses:
    """Validate what a mechanism returned as a pmf over its outputs."""
    if isinstance(returned, Pmf):
        try:
            returned = aligned(returned, outputs)
        except ValueError as error:
            raise ValueError(f"{where} {error}") from None
    masses = masses_of(returned, where)
    size = len(masses) if isinstance(masses, np.ndarray) else len(masses[0])
    if size != len(outputs):
        raise ValueError(f"{where} has {size} masses for {len(outputs)} outputs")
    if isinstance(masses, np.ndarray):
        entries = masses.tolist()
        if not all(0.0 <= mass < math.inf for mass in entries):
            raise ValueError(f"{where} has a mass that is not a finite number >= 0: {short_repr(entries)}")
        if abs(math.fsum(entries) - 1.0) > FLOAT_TOTAL_TOLERANCE:
            raise ValueError(f"{where} sums to {math.fsum(entries)!r}; float masses must sum to 1 within 1e-9")
    return masses


def evaluate_datasets(
    mechanism: Any,
    outputs: tuple[Any, ...],
    datasets: Iterable[Dataset],
    count: int,
    progress: ProgressCallback,
    name_of: Callable[[int], Any] | None = None,
) -> DistinctPmfs:
    """Evaluate the mechanism on every dataset, in order."""
    found = DistinctPmfs(outputs)
    # A subclass with another pmf does not inherit the blocks of the old one.
    known = goes_with(mechanism, "pmf_batch", "pmf")
    batch: Callable[[list[Dataset]], Any] | None = mechanism.pmf_batch if known else None
    source = iter(datasets)
    done = 0
    while block := list(itertools.islice(source, BATCH)):
        names: Sequence[Any] = block if name_of is None else [name_of(done + index) for index in range(len(block))]
        for name, pmf in zip(names, _ask(mechanism, batch, block, names), strict=True):
            found.add(pmf, name)
        if done == 0:
            again = DistinctPmfs(outputs)
            again.add(_ask(mechanism, batch, block[:1], names)[0], names[0])
            if distinct_masses(again.masses[0]) != distinct_masses(found.masses[0]):
                raise ValueError(
                    f"the mechanism returned two different pmfs on the dataset {short_repr(names[0])}; "
                    "pmf must be deterministic"
                )
        done += len(block)
        progress(done, count)
    return found


def _ask(
    mechanism: Any, batch: Callable[[list[Dataset]], Any] | None, block: list[Dataset], names: Sequence[Any]
) -> list[Any]:
    """What the mechanism returns on each dataset of a block."""
    if batch is None:
        return [call_on(mechanism.pmf, dataset, name) for dataset, name in zip(block, names, strict=False)]
    rows = list(call_on(batch, block, names[0]))
    if len(rows) != len(block):
        raise ValueError(f"mechanism.pmf_batch returned {len(rows)} rows for {len(block)} datasets")
    return rows


def call_on(function: Callable[..., Any], argument: Any, dataset: Any) -> Any:
    """Call the mechanism; an exception of its own is reported with the dataset."""
    try:
        return function(argument)
    except Exception as error:
        raise RuntimeError(
            f"the mechanism raised {type(error).__name__} ({error}) on the dataset {short_repr(dataset)}"
        ) from error
