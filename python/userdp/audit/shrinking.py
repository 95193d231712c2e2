"""Making a pair of tables smaller while it still shows the same: fewer rows, and plainer letters.

Every step takes a row away or replaces a letter by an earlier one, so that it ends. What is left is smallest among the
pairs that one step reaches, and perhaps not among all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from userdp.algorithms.outputs import RAISES, Change
from userdp.audit.search import Pair, Search
from userdp.audit.worlds import Value, World

MOST_CALLS = 2_000


def shrunk(search: Search, pair: Pair, violates: Callable[[Change], bool], deadline: Callable[[], bool]) -> Pair:
    """The pair after all steps that leave it neighbors, admissible and violating in the same way."""
    start = search.runner.calls
    raising = _raising(search, pair)
    improved = True
    while improved:
        improved = False
        for smaller in _steps(search, pair):
            if search.runner.calls - start > MOST_CALLS or deadline():
                return pair
            measured = search.measured(smaller)
            if measured is None:
                continue
            change, made = measured
            if violates(change) and _raising(search, made) <= raising:
                pair, improved = made, True
                break
    return _plain_names(search, pair, violates)


def _raising(search: Search, pair: Pair) -> int:
    """How many of the two outputs are exceptions: a pair that comes to raise shows another fault."""
    outputs = search.runner.outputs
    return sum(outputs[search.runner.output(side)].form == RAISES for side in (pair.first, pair.second))


def _steps(search: Search, pair: Pair) -> Iterator[Pair]:
    mine, other, background = pair.mine, pair.other, pair.background
    for who, value in enumerate(background):
        if value:
            yield pair._replace(background=_put(background, who, (), search))
    for who, value in enumerate(background):
        if len(value) > 1:
            for less in _fewer(value):
                yield pair._replace(background=_put(background, who, less, search))
    # In both together first: a user of fewer rows on both sides.
    for less in _fewer(mine):
        for also in _fewer(other):
            yield pair._replace(mine=less, other=also)
    for less in _fewer(other):
        yield pair._replace(other=less)
    for less in _fewer(mine):
        yield pair._replace(mine=less)
    for who, value in enumerate(background):
        for plainer in _plainer(value, search):
            yield pair._replace(background=_put(background, who, plainer, search))
    for plainer in _plainer(mine, search):
        yield pair._replace(mine=plainer)
    for plainer in _plainer(other, search):
        yield pair._replace(other=plainer)


def _put(world: World, who: int, value: Value, search: Search) -> World:
    made = (*world[:who], value, *world[who + 1 :])
    return made if search.limits.named else tuple(sorted(one for one in made if one))


def _fewer(value: Value) -> Iterator[Value]:
    for place in range(len(value)):
        yield value[:place] + value[place + 1 :]


def _plainer(value: Value, search: Search) -> Iterator[Value]:
    """With one letter replaced by an earlier one."""
    for place, row in enumerate(value):
        letters = search.rows.letters[row]
        for column, letter in enumerate(letters):
            for earlier in range(letter):
                changed = search.rows.number((*letters[:column], earlier, *letters[column + 1 :]))
                yield tuple(sorted((*value[:place], changed, *value[place + 1 :])))


def _plain_names(search: Search, pair: Pair, violates: Callable[[Change], bool]) -> Pair:
    """The same pair with the first names, where that changes nothing."""
    if not search.limits.named:
        return pair
    present = [who for who in range(search.limits.max_users) if who == pair.who or pair.background[who]]
    background: list[Value] = [()] * search.limits.max_users
    for place, who in enumerate(present):
        background[place] = pair.background[who]
    renamed = pair._replace(who=present.index(pair.who), background=tuple(background))
    measured = search.measured(renamed)
    if measured is not None and violates(measured[0]) and _raising(search, measured[1]) <= _raising(search, pair):
        return measured[1]
    return pair
