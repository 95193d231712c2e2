"""All noise of a release, drawn on what users add up to: the last step, after which everything is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.exceptions import BudgetError
from userdp.mechanisms.base import draw_from, release_from
from userdp.mechanisms.set_union import KeysOfUsers, SetUnion, coins_of
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables.compiled import USERS, Compiled, Statistic, limits
from userdp.tables.noise import Allotment, Binned, Keyed, KeyFinder, Selected, nearest
from userdp.tables.quantiles import Integers, choose, law_of
from userdp.tables.release import Drawn
from userdp.tables.rows import KeyValue, Sums, bins_of
from userdp.tables.schema import date_of, time_of

MOST_OUTCOMES = 2**20


def draw(query: Compiled, noise: Allotment, sums: Sums, source: Any) -> Drawn:
    """All noise of a release, on the numbers that users add up to."""
    places: Sequence[int] = range(len(sums.keys))
    numbers: dict[Statistic, Any] = {}
    keyed = noise.keyed
    if keyed is not None and keyed.sparse is not None:
        # What follows is of the keys that are shown, and of no others.
        places, numbers = _shown(query, keyed, sums, source)
    elif keyed is not None and keyed.correlated is not None:
        counts, _ = draw_from(keyed.correlated, source, sums.columns[USERS], sums.users)
        numbers[USERS] = np.rint(counts).astype(np.int64)
    elif keyed is not None:
        for statistic, each in keyed.noise:
            step = keyed.step(statistic)
            numbers[statistic] = release_from(each, source, _whole(nearest(sums.columns[statistic], step))) * step
    chosen: dict[str, tuple[tuple[float, ...], ...]] = {}
    for part in noise.selected:
        split = sums.splits[part.answer.name]
        chosen[part.answer.name] = tuple(
            values_of(part, query, choices(part, split.of(place), source)) for place in places
        )
    binned: dict[str, tuple[tuple[int, ...], ...]] = {}
    for each_bin in noise.binned:
        split = sums.splits[each_bin.answer.name]
        binned[each_bin.answer.name] = tuple(_noisy(each_bin, split.of(place), source) for place in places)
    keys = tuple(key_of(query, sums.keys[place]) for place in places)
    return Drawn(keys, numbers, chosen, binned)


def key_of(query: Compiled, key: KeyValue) -> tuple[Any, ...]:
    """What the parts of a key stand for."""
    read = {"date": date_of, "timestamp": time_of}
    parts: list[Any] = []
    for name, part in zip(query.group, key, strict=True):
        kind = getattr(query.types[name], "cell_kind", None)
        # A listed text is shown as it is listed.
        parts.append(read[kind](part) if kind in read else query.shown.get(name, {}).get(str(part), part))
    return tuple(parts)


def _in_order(key: KeyValue) -> list[tuple[bool, int | str]]:
    """What keys are sorted by: a category may list both integers, which come first, and texts."""
    return [(isinstance(part, str), part) for part in key]


def draw_keys(query: Compiled, finder: KeyFinder, held: KeysOfUsers, keys: Sequence[KeyValue], source: Any) -> Drawn:
    """Which keys are shown, in the order of their values."""
    if isinstance(finder, SetUnion):
        found = list(finder.shown(held, source))
    else:
        chosen = held.chosen(finder.max_keys, coins_of(source))
        codes, (counts,) = held.rows.bounded(**chosen, rule="random", columns=[("users",)])
        drawn = draw_from(finder, source, _whole(counts))
        # Of noisy counts only the places are told.
        found = [codes[drawn[0] if isinstance(finder, SparseHistogram) else drawn]]
    shown = [keys[code] for codes in found for code in codes.tolist()]
    return Drawn(tuple(key_of(query, key) for key in sorted(shown, key=_in_order)), {}, {}, {})


def _whole(totals: Any) -> Any:
    return np.ascontiguousarray(totals, dtype=np.int64)


def _shown(query: Compiled, keyed: Keyed, sums: Sums, source: Any) -> tuple[list[int], dict[Any, Any]]:
    assert keyed.sparse is not None
    steps = [keyed.step(one) for one in query.statistics]
    totals = [_whole(nearest(sums.columns[one], step)) for one, step in zip(query.statistics, steps, strict=True)]
    shown, *drawn = draw_from(keyed.sparse, source, totals[0], totals[1:], range(query.listed))
    return shown.tolist(), {
        one: numbers * step for one, numbers, step in zip(query.statistics, drawn, steps, strict=True)
    }


def _noisy(part: Binned, weights: Integers, source: Any) -> tuple[int, ...]:
    """The bins of one key with noise."""
    return tuple((release_from(part.noise, source, _whole(nearest(weights, part.step))) * part.step).tolist())


# --- quantiles of one key


def choices(part: Selected, weights: Integers, source: Any) -> list[int]:
    """The bins of quantiles, drawn."""

    def drawn(level: int, costs: Integers) -> int:
        return int(draw_from(part.mechanisms[level], source, costs))

    return choose(weights, part.shares, drawn, part.pieces)


def law_of_choices(part: Selected, weights: Integers) -> Mapping[tuple[int, ...], Fraction]:
    """The exact probabilities of what `choices` returns.

    Raises
    ------
    BudgetError
        Where there are too many ways to choose.
    """
    ways = (len(weights) * part.pieces) ** len(part.shares)
    if ways > MOST_OUTCOMES:
        raise BudgetError(
            f"{part.answer.name}: there are about {ways} ways to choose its quantiles, above 2**20: take fewer shares, "
            "or a column with fewer steps"
        )

    def pmf(level: int, costs: Integers) -> Sequence[Fraction]:
        return list(part.mechanisms[level].pmf(costs).fractions())

    return law_of(weights, part.shares, pmf, part.pieces)


def values_of(part: Selected, query: Compiled, places: Sequence[int]) -> tuple[float, ...]:
    """What bins stand for."""
    bins = bins_of(part.answer, query.types)
    top = limits(query.types[bins.column])[1]
    return tuple(min(bins.offset + bins.unit * place, top) for place in places)
