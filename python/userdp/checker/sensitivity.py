"""Audits of sensitivity: whether the witness is a pair of neighbors, how far its outputs are apart, and what follows.

What the function gives on other tables is not in the report, so that no check of it alone says that a claim holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from userdp.checker import work
from userdp.checker.running import Checked, checks
from userdp.checker.values import count, decode, fraction, need, summed, text_of

KINDS = ("float", "int", "str", "bool", "date", "datetime", "any")
LAYOUTS = ("rows", "tuples", "pandas", "polars", "lazy", "arrow")
MOST_USERS = 64
MOST_COUNTED_ROWS = 64
"""Users, and rows in all, of tables that are counted again."""
KEYED = ("mapping", "set", "frame")
EMPTY = "other an empty part"
"""An entry that is 0 where what is not there is."""
_WITNESS = {"first", "second", "user", "first_output", "second_output", "change"}


class Limits(NamedTuple):
    """The size of tables."""

    users: int
    rows: int
    total: int
    named: bool


def _size(code: Any) -> Fraction | float:
    if code == "infinite":
        return math.inf
    number = fraction(code)
    need(number >= 0, "a change is negative")
    return number


def _sizes(codes: Any, name: str) -> list[Fraction | float]:
    need(isinstance(codes, list) and len(codes) == 4, f"{name} has not four numbers")
    found = [_size(code) for code in codes]
    need(len({size == math.inf for size in found}) == 1, f"{name} is infinite in some norms alone")
    l0, l1, _, linf = found
    need(l0 == math.inf or (Fraction(l0).denominator == 1 and linf <= l1 <= l0 * linf), f"{name}: norms do not agree")
    return found


def _text(value: Any, name: str) -> str:
    need(isinstance(value, str), f"{name} is not a text")
    return str(value)


def _flag(value: Any, name: str) -> bool:
    need(isinstance(value, bool), f"{name} is not true or false")
    return bool(value)


def _codes(values: Any, name: str, *, distinct: bool = True) -> list[str]:
    """Values, by their codes as text."""
    need(isinstance(values, list), f"{name} is not a list")
    for value in values:
        decode(value)
    texts = [text_of(value) for value in values]
    need(not distinct or len(set(texts)) == len(texts), f"{name} names one value twice")
    return texts


@checks(
    "sensitivity",
    "holds witness worst claim slack function neighbors user ids columns layout keys missing_is_zero max_users "
    "max_rows total_rows order complete form_dependent restricted tables all_tables excluded pairs random_tables "
    "checked calls libraries compare memory outputs needed_seconds left_out would_finish",
)
def check_sensitivity(report: dict[str, Any]) -> Checked:
    """Whether everything that the report says follows from its outputs, as far as they go."""
    claim = _claim(report)
    slack = fraction(report["slack"])
    need(slack >= 0, "slack must be >= 0")
    _text(report["function"], "function")
    need(report["neighbors"] in ("replace", "add-remove"), "neighbors are 'replace' or 'add-remove'")
    need(report["layout"] in LAYOUTS, "unknown layout")
    need(report["order"] in ("checked", "all", "kept"), "unknown order")
    keys = report["keys"]
    need(keys is None or (isinstance(keys, list) and all(isinstance(key, str) for key in keys)), "keys are no texts")
    for name in ("missing_is_zero", "complete", "form_dependent", "restricted"):
        _flag(report[name], name)
    need(report["compare"] in ("form", "values"), "compare is 'form' or 'values'")
    need(_text(report["memory"], "memory").startswith(("none on ", "assumed")), "memory is none, or assumed")
    for name in ("outputs", "tables", "all_tables", "excluded", "pairs", "random_tables", "checked", "calls"):
        count(report[name], name)
    if report["needed_seconds"] is not None:
        count(report["needed_seconds"], "needed_seconds")
        need(not report["complete"], "what is complete needs no more time")
    if report["would_finish"] is not None:
        need(isinstance(report["would_finish"], list) and len(report["would_finish"]) == 4, "would_finish is no size")
        for number in report["would_finish"]:
            count(number, "would_finish", 1)
        need(not report["complete"], "what is complete would finish")
    libraries = report["libraries"]
    need(isinstance(libraries, list), "libraries is not a list")
    for entry in libraries:
        need(isinstance(entry, list) and len(entry) == 2 and all(isinstance(one, str) for one in entry), "no library")
    need(report["calls"] >= report["tables"], "there are fewer calls than tables")
    limits, letters, ids = _limits(report)
    total = _tables(math.prod(map(len, letters)), limits)
    need(report["all_tables"] == total, f"there are {total} tables")
    done = report["tables"] + report["excluded"]
    need(done <= total and (not report["complete"] or done == total), "tables do not add up to all tables")
    worst = _sizes(report["worst"], "worst")
    holds = report["holds"]
    need(holds is None or isinstance(holds, bool), "holds is not true, false or null")
    violated = _exceeds(worst, claim, slack)
    decided = any(one is not None for one in claim) and report["complete"] and not report["form_dependent"]
    decided = decided and report["pairs"] > 0
    need(holds is (False if violated else True if decided else None), "holds is not what was found")
    witness = report["witness"]
    need((witness is None) == (worst[0] == 0), "a witness is needed exactly where something changed")
    need(report["outputs"] > (witness is not None), "there are fewer outputs")
    if witness is not None:
        need(isinstance(witness, dict) and set(witness) == _WITNESS, "the witness has other fields")
        change = _witness(report, witness, limits, letters, ids)
        need(all(step <= most for step, most in zip(change, worst, strict=True)), "the witness is worse than the worst")
        need(not violated or _exceeds(change, claim, slack), "the witness does not violate the claim")
    return Checked("consistent", 0, 1 if witness is not None else 0)


def _claim(report: dict[str, Any]) -> list[Fraction | None]:
    codes = report["claim"]
    need(isinstance(codes, list) and len(codes) == 4, "claim has not four numbers")
    claim = [None if code is None else fraction(code) for code in codes]
    need(all(one is None or one >= 0 for one in claim), "a claim is negative")
    return claim


def _exceeds(change: Sequence[Any], claim: Sequence[Fraction | None], slack: Fraction) -> bool:
    return any(most is not None and step > most * (1 + slack) for step, most in zip(change, claim, strict=True))


def _limits(report: dict[str, Any]) -> tuple[Limits, list[set[str]], list[str]]:
    """The size of tables, the letters of columns, and the names of users."""
    named = report["user"] is not None
    if named:
        _text(report["user"], "user")
    limits = Limits(
        count(report["max_users"], "max_users", 1),
        count(report["max_rows"], "max_rows", 1),
        count(report["total_rows"], "total_rows", 1),
        named,
    )
    work.afford(
        limits.users <= MOST_USERS and min(limits.total, limits.users * limits.rows) <= MOST_COUNTED_ROWS,
        "the tables are too large to be checked",
    )
    need(named or limits.rows == 1, "without names each row is a user")
    ids = _codes(report["ids"], "ids")
    need(len(ids) == (limits.users if named else 0), "ids are not one name for each user")
    columns = report["columns"]
    need(isinstance(columns, list), "columns is not a list")
    letters, names = [], []
    for column in columns:
        need(isinstance(column, list) and len(column) == 3, "a column is not its name, kind and letters")
        names.append(_text(column[0], "the name of a column"))
        need(column[1] in KINDS, "unknown kind of column")
        letters.append(set(_codes(column[2], "letters")))
        need(len(letters[-1]) > 0, "a column has no letters")
    need(len({*names, report["user"]}) == len(names) + 1, "two columns have one name")
    need(isinstance(report["left_out"], list), "left_out is not a list")
    for entry in report["left_out"]:
        need(isinstance(entry, list) and len(entry) == 2 and entry[0] in names, "left_out is of no column")
        codes = _codes(entry[1], "left_out")
        need(
            bool(codes) and not letters[names.index(entry[0])].intersection(codes),
            "left_out has no letters, or own ones",
        )
    return limits, letters, ids


def _tables(rows: int, limits: Limits) -> int:
    """How many tables there are of so many different rows."""
    work.afford(rows.bit_length() <= 1024, "too many different rows")
    most = min(limits.total, limits.users * limits.rows)

    multisets = [math.comb(rows + size - 1, size) for size in range(most + 1)]
    if not limits.named:
        return sum(multisets)
    work.spend(limits.users * most**2 / 2 * work.product(most * rows.bit_length() // 6))
    ways = {0: 1}
    for _ in range(limits.users):
        more: Counter[int] = Counter()
        for size, number in ways.items():
            for own in range(min(limits.rows, most - size) + 1):
                more[size + own] += number * multisets[own]
        ways = dict(more)
    return sum(ways.values())


def _witness(
    report: dict[str, Any], witness: dict[str, Any], limits: Limits, letters: list[set[str]], ids: list[str]
) -> list[Fraction | float]:
    """The change of the witness, which is a pair of neighbors."""
    change = _sizes(witness["change"], "the change")
    one, other = _output(witness["first_output"]), _output(witness["second_output"])
    found = _change(one[:2], other[:2], bool(report["missing_is_zero"]))
    if report["compare"] == "form" and _forms_differ(one, other):
        found = [math.inf] * 4
    need(change == found, "change is not what the outputs say")
    decode(witness["user"])
    who = text_of(witness["user"])
    tables = [_table(witness[name], limits, letters, ids, report["random_tables"] > 0) for name in ("first", "second")]
    if limits.named:
        need(who in ids, "who changes has no name of the list")
        others = [Counter(row for row in table if row[0] != who) for table in tables]
        need(others[0] == others[1], "the tables differ in more than one user")
        own = [sum(row[0] == who for row in table) for table in tables]
    else:
        need(witness["user"] is None, "users have no names")
        counted = [Counter(table) for table in tables]
        own = [sum((counted[0] - counted[1]).values()), sum((counted[1] - counted[0]).values())]
        need(max(own) <= 1, "the tables differ in more than one user")
    same = Counter(tables[0]) == Counter(tables[1])
    need(not same or report["order"] == "all", "the tables are the same")
    need(same or report["neighbors"] == "replace" or min(own) == 0, "nobody is added or removed")
    return change


def _table(
    rows: Any, limits: Limits, letters: list[set[str]], ids: list[str], other_letters: bool
) -> list[tuple[str, ...]]:
    need(isinstance(rows, list), "a table is not a list of rows")
    made = []
    for row in rows:
        need(isinstance(row, list) and len(row) == len(letters) + limits.named, "a row has other columns")
        texts = _codes(row, "a row", distinct=False)
        cells = texts[1:] if limits.named else texts
        known = all(cell in own for cell, own in zip(cells, letters, strict=True))
        need(known or other_letters, "a row has a value that is no letter")
        need(not limits.named or texts[0] in ids, "a row is of nobody")
        made.append(tuple(texts))
    users = Counter(row[0] for row in made) if limits.named else Counter(range(len(made)))
    fits = len(users) <= limits.users and max(users.values(), default=0) <= limits.rows
    need(fits and (other_letters or len(made) <= limits.total), "a table is larger than is said")
    return made


Seen = tuple[str, dict[str, "Fraction | str"], dict[str, str]]


def _forms_differ(one: Seen, other: Seen) -> bool:
    """Whether what both outputs have is in another order, or looks different."""
    if one[0] != other[0]:
        return False  # that is an infinite change in any case
    keys, others, looks, shown = one[1].keys(), other[1].keys(), one[2], other[2]
    paths = looks.keys() | shown.keys() if keys == others else looks.keys() & shown.keys()
    ordered = [key for key in keys if key in others] == [key for key in others if key in keys]
    return not ordered or any(looks.get(path) != shown.get(path) for path in paths)


def _output(code: Any) -> Seen:
    """An output: its form, and by the texts of keys numbers or what stands in place of them, and how they look."""
    need(isinstance(code, dict) and set(code) == {"form", "entries", "looks"}, "an output is its form and its entries")
    form, entries = _text(code["form"], "a form"), code["entries"]
    need(isinstance(entries, list), "entries are not a list")
    found: dict[str, Fraction | str] = {}
    for entry in entries:
        need(isinstance(entry, list) and len(entry) == 2, "an entry is its key and its number")
        key, number = entry
        decode(key, str)
        if isinstance(number, dict):
            need(set(number) == {"other"} and isinstance(number["other"], str), "an entry is no number and no text")
            value: Fraction | str = "other " + number["other"]
        else:
            value = fraction(number)
        text = text_of(key)
        need(text not in found, "an output has one key twice")
        found[text] = value
    looks: dict[str, str] = {}
    need(isinstance(code["looks"], list), "looks are not a list")
    for look in code["looks"]:
        need(isinstance(look, list) and len(look) == 2, "a look is of a key")
        decode(look[0], str)
        looks[text_of(look[0])] = _text(look[1], "a look")
    return form, found, looks


def _change(
    one: tuple[str, dict[str, Fraction | str]], other: tuple[str, dict[str, Fraction | str]], missing_is_zero: bool
) -> list[Fraction | float]:
    infinite: list[Fraction | float] = [math.inf] * 4
    (form, first), (second_form, second) = one, other
    if form != second_form or form == "raises":
        return [Fraction(0)] * 4 if one == other else infinite
    if first.keys() != second.keys():
        if not (missing_is_zero and form in KEYED):
            return infinite
        first, second = (
            {key: Fraction(0) if entry == EMPTY else entry for key, entry in side.items()} for side in (first, second)
        )
    steps: list[Fraction] = []
    for key in {*first, *second}:
        a, b = first.get(key, Fraction(0)), second.get(key, Fraction(0))
        if a != b:
            if isinstance(a, str) or isinstance(b, str):
                return infinite
            steps.append(abs(a - b))
    squares = summed(step * step for step in steps)
    return [Fraction(len(steps)), summed(steps), squares, max(steps, default=Fraction(0))]
