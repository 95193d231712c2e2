"""How much one user's rows change a deterministic function of a table: an audit over all small tables.

The function is what a release computes before it adds noise. A pair of neighboring tables that changes it by more than
the noise is made for is a fault, whatever the noise; the audit finds it, makes it small, and shows it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import math
import random
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from userdp.algorithms.outputs import COMPARED, NORMS, Change, worse
from userdp.algorithms.processes import PROCESSES, Fresh, NotAsked, check_processes
from userdp.algorithms.small_tables import LAYOUTS, Row, TableMaker, kind_of
from userdp.audit.alphabets import Letters, constants_of, letters_of_columns, read_schema
from userdp.audit.runner import Again, Runner, run_watched
from userdp.audit.search import Found, OrderMatters, Pair, Search, always_raises
from userdp.audit.shrinking import shrunk
from userdp.audit.worlds import Entries, Limits, Rows
from userdp.display.numbers import plural
from userdp.exact.encoding import UnknownValue, code_of
from userdp.exact.numbers import check_count, is_integer, parse_exact, short_repr
from userdp.exceptions import BudgetError
from userdp.report.sensitivity import SensitivityReport, SensitivityWitness, storable
from userdp.runtime import Progress, progress_bar

Layout = Literal["rows", "tuples", "pandas", "polars", "lazy", "arrow"]

PART = 2 / 3
"""Of the budget for larger tables, where nobody says a size and a smaller one needs at most the rest."""
SMALLER = ((3, 3), (2, 3), (2, 2))
"""Users, and rows in all, of these."""
MOST_USERS = 64
MOST_ROWS = 64
LETTERS = 6
MOST_LETTERS = 12
"""Letters of a column, where nobody says how many: as many as the budget allows, between these."""


def audit_sensitivity(
    function: Callable[[Any], Any],
    *,
    schema: Any,
    user: str | None = None,
    l1: Any = None,
    l2: Any = None,
    l2_squared: Any = None,
    linf: Any = None,
    l0: Any = None,
    neighbors: Literal["replace", "add-remove"] = "replace",
    frame: Layout = "rows",
    keys: str | Sequence[str] | None = None,
    missing: Literal[0] | None = None,
    domain: Callable[[list[dict[str, Any]]], bool] | None = None,
    invariant: Callable[[list[dict[str, Any]]], Hashable] | None = None,
    bounds: Any = None,
    alphabets: Any = None,
    constants: Sequence[Any] | Literal["harvest"] = "harvest",
    null: bool | Sequence[str] = True,
    nan: bool | Sequence[str] = True,
    order: Literal["any", "all", "kept"] = "any",
    ids: Sequence[Any] | None = None,
    letters: int | None = None,
    max_users: int | None = None,
    max_rows: int | None = None,
    total_rows: int | None = None,
    max_calls: int = 20_000,
    max_seconds: float = 60.0,
    call_seconds: float | None = 10.0,
    random_tables: int = 0,
    random_state: int = 0,
    float_slack: Any = 0,
    compare: Literal["form", "values"] = "form",
    processes: int | None = None,
    progress: Progress = None,
) -> SensitivityReport:
    """Audit how much one user changes a function of a table, over all small tables of plain and hostile values.

    Parameters
    ----------
    function : callable
        Takes a table and returns a number, or a mapping, sequence, set, array, series or data frame of numbers: what a
        release computes before its noise. An exception is an output too, with its text, which neighbors must not tell
        apart.
    schema : mapping from str to kind
        The columns besides that of users. A kind is float, int, str, bool, datetime.date, datetime.datetime, or a list
        of the column's public categories.
    user : str, optional
        The column that says whose row it is. Without it each row is a user.
    l1, l2, l2_squared, linf, l0 : float, int, Fraction or decimal string, optional
        What is claimed, >= 0, taken exactly: the largest sum of changes over all keys, their Euclidean length (or its
        square, which needs no root), the largest one, and how many keys change. Without any the changes are measured.
    neighbors : {"replace", "add-remove"}
        One user's rows become any others, perhaps none; or a user comes or goes.
    frame : {"rows", "tuples", "pandas", "polars", "lazy", "arrow"}
        What the function is given: a list of dicts, a list of tuples (the user first), or a data frame.
    keys : str or sequence of str, optional
        For output frames, the columns that name a row. Frames are never compared by position.
    missing : {0}, optional
        Says that keys which are not there count as 0, as with a public list of keys. Otherwise a key that appears or
        vanishes is an infinite change.
    domain : callable, optional
        From a list of dicts to bool: tables outside are not looked at.
    invariant : callable, optional
        From a list of dicts to what is public of a table: only tables that agree in it are neighbors.
    bounds : mapping from column to (low, high), optional
        Public bounds, of which both ends and what is beyond become values.
    alphabets : mapping from column to sequence, optional
        Exactly these values of a column.
    constants : sequence or "harvest"
        Values that columns of their type have too, with their neighbors; by default those found in the function.
    null, nan : bool or sequence of str
        Whether columns (or which) may hold None and NaN. A claim about columns without them is audited without.
    order : {"any", "all", "kept"}
        Rows have no order: other orders are tried on some tables and, when one changes an output, on all ("any"); all
        orders of both tables of each pair ("all"); or the order is kept by promise ("kept").
    ids : sequence, optional
        Names of users, one for each of `max_users`; 0, 1, ... by default.
    letters : int, optional
        Values of a column; by default as many of up to 12 as `max_calls` allows, and at least 6. Categories and
        `alphabets` are taken whole.
    max_users, max_rows, total_rows : int
        The largest tables: users (3 by default), rows of one user (2; 1 without a column of users), and rows in all
        (4). Where none of these and no `letters` are given and these are too many tables, smaller ones are tried first:
        of 3 users and 3 rows, 2 and 3, or 2 and 2. The verdict is about them where the budget ends before the others
        were tried, among which violations are looked for as well.
    max_calls : int
        Calls of the function, at most; beyond it the verdict is None.
    max_seconds, call_seconds : float
        Time for the search, and for one call; a call that takes longer is refused. ``call_seconds=None`` runs the
        function in the calling thread, without that limit.
    random_tables : int
        Pairs that are drawn at random besides. They can show a violation, and nothing else.
    random_state : int
        The seed of that.
    float_slack : number
        By what share of itself a claim may be exceeded, for sums of floats, which round.
    compare : {"form", "values"}
        Whether neighbors may be told apart by how an output looks: the order of keys, rows and columns, names, types,
        attributes, texts of exceptions. "values" leaves this out, and assumes that nobody is shown it.
    processes : int, optional
        Fresh processes, 2 by default, that are asked for a share of the tables again, and for those of the largest
        changes, each in an order of its own; 0 assumes that calls leave nothing behind.
    progress : bool, callable or None
        None shows a bar on a terminal for work over two seconds (with tqdm); a callable gets (done, total).

    Returns
    -------
    SensitivityReport
        ``holds`` is False with a `witness` that can be run again, or True when all listed tables were tried, which
        says nothing of larger ones and is no proof of privacy, or None.

    Raises
    ------
    NotDeterministicError
        When the function gives two outputs on one table.
    BudgetError
        When a call takes longer than `call_seconds`, or when not even the smallest tables fit into `max_calls`.
    ValueError
        When the function writes to its input, raises on every table, or returns nothing on all of them.

    Notes
    -----
    Differences are exact: floats are the dyadic numbers they are. NaN, infinities and None differ infinitely from
    everything else, since noise hides nothing of them.

    Examples
    --------
    >>> def visits(rows):
    ...     return {town: sum(row["town"] == town for row in rows) for town in ("a", "b")}
    >>> report = audit_sensitivity(visits, schema={"town": str}, user="person", l1=1, neighbors="add-remove")
    >>> report.holds, report.worst.l1
    (False, Fraction(2, 1))
    >>> print(report.witness_code())
    # the rows of person 0: L1 2 where 1 is claimed
    first = [{'person': 0, 'town': 'a'}, {'person': 0, 'town': 'a'}]
    second = []
    print(visits(first))  # {'a': 2, 'b': 0}
    print(visits(second))  # {'a': 0, 'b': 0}
    """
    if not callable(function):
        raise TypeError(f"function must be callable with a table; got a {type(function).__name__}")
    question = _Question.read(
        user, ids, frame, keys, missing, neighbors, order, max_users, max_rows, total_rows, letters
    )
    claim = _claim(l0, l1, l2, l2_squared, linf)
    slack = parse_exact(float_slack, "float_slack", "a number >= 0, a share of the claim")
    if slack < 0:
        raise ValueError(f"float_slack must be >= 0; got {short_repr(float_slack)}")
    calls, seconds = check_count(max_calls, "max_calls"), _seconds(max_seconds, "max_seconds")
    each = None if call_seconds is None else _seconds(call_seconds, "call_seconds")
    drawn = check_count(random_tables, "random_tables", 0)
    if compare not in COMPARED:
        raise ValueError(f"compare must be 'form' or 'values'; got {short_repr(compare)}")
    number = check_processes(processes, PROCESSES)
    if not is_integer(random_state):
        raise TypeError(f"random_state must be an int; got {short_repr(random_state)}")
    columns = read_schema(schema, question.user)
    if isinstance(constants, str) and constants != "harvest":
        raise ValueError(f"constants must be 'harvest' or a sequence of values; got {short_repr(constants)}")
    found_constants = (
        constants_of(function, (*columns, *((question.user,) if question.user else ())))
        if isinstance(constants, str)
        else tuple(constants)
    )
    alphabet = letters_of_columns(
        columns, alphabets=alphabets, bounds=bounds, null=null, nan=nan, constants=found_constants
    )
    audit = _Audit(function, question, alphabet, calls, domain, invariant, compare, number)
    deadline = time.perf_counter() + seconds
    with progress_bar(progress, "tables") as shown:
        pair, found, search = run_watched(
            lambda: audit.searched(claim, slack, deadline, drawn, int(random_state), shown), audit.runner, each
        )
    memory = audit.memory(pair, search, each)
    return audit.report(pair, found, search, claim, slack, memory, seconds)


@dataclass(frozen=True)
class _Question:
    """What tables there are, and how they are given and compared."""

    user: str | None
    ids: tuple[Any, ...]
    layout: str
    keys: tuple[str, ...] | None
    missing_is_zero: bool
    neighbors: str
    order: str
    limits: Limits
    letters: int | None
    any_size: bool

    @staticmethod
    def read(
        user: Any,
        ids: Any,
        frame: Any,
        keys: Any,
        missing: Any,
        neighbors: Any,
        order: Any,
        max_users: Any,
        max_rows: Any,
        total_rows: Any,
        letters: Any,
    ) -> _Question:
        if user is not None and not isinstance(user, str):
            raise TypeError(f"user must be the name of a column or None; got {short_repr(user)}")
        for value, name, accepted in (
            (frame, "frame", LAYOUTS),
            (neighbors, "neighbors", ("replace", "add-remove")),
            (order, "order", ("any", "all", "kept")),
        ):
            if not isinstance(value, str) or value not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {short_repr(value)}")
        if missing is not None and (not is_integer(missing) or missing != 0):
            raise ValueError(f"missing must be None or 0; got {short_repr(missing)}")
        if keys is not None:
            keys = (keys,) if isinstance(keys, str) else tuple(keys)
            if not keys or not all(isinstance(key, str) for key in keys):
                raise TypeError(f"keys must be names of columns of the output; got {short_repr(keys)}")
        users = check_count(3 if max_users is None else max_users, "max_users")
        rows = check_count(max_rows, "max_rows") if max_rows is not None else 2 if user is not None else 1
        total = min(check_count(4 if total_rows is None else total_rows, "total_rows"), users * rows)
        if user is None and rows != 1:
            raise ValueError(
                f"max_rows={rows} needs user=, the column of users: without it each row is a user, and a claim about "
                "users with several rows would be audited in the wrong unit"
            )
        if users > MOST_USERS or total > MOST_ROWS:
            raise BudgetError(
                f"tables of {users} users and {total} rows are too large; take at most {MOST_USERS} "
                f"users and {MOST_ROWS} rows, of which a few already are millions of tables"
            )
        names = _names(ids, users) if user is not None else ()
        if user is None and ids is not None:
            raise ValueError("ids are names in the column of users, user=, and there is none")
        number = None if letters is None else check_count(letters, "letters")
        return _Question(
            user,
            names,
            frame,
            keys,
            missing is not None,
            neighbors,
            order,
            Limits(users, rows, total, user is not None),
            number,
            all(one is None for one in (max_users, max_rows, total_rows, letters)),
        )


def _names(ids: Any, users: int) -> tuple[Any, ...]:
    if ids is None:
        return tuple(range(users))
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        raise TypeError(f"ids must be a sequence of names; got {short_repr(ids)}")
    names = tuple(ids)
    if len(names) != users:
        raise ValueError(f"ids must have max_users={users} names; got {len(names)}")
    try:
        codes = [str(code_of(name)) for name in names]
    except UnknownValue as error:
        raise TypeError(f"ids: a name {error}") from None
    if len(set(codes)) < users:
        raise ValueError(f"ids must be distinct; got {short_repr(names)}")
    return names


def _seconds(value: Any, name: str) -> float:
    number = parse_exact(value, name, "a number of seconds above 0")
    if number <= 0:
        raise ValueError(f"{name} must be a number of seconds above 0; got {short_repr(value)}")
    return float(min(number, Fraction(10**9)))


def _claim(l0: Any, l1: Any, l2: Any, l2_squared: Any, linf: Any) -> tuple[Fraction | None, ...]:
    """What is claimed, in the order of `NORMS`."""
    accepted = "a finite number >= 0"
    read = {
        name: None if value is None else parse_exact(value, name, accepted)
        for name, value in (("l0", l0), ("l1", l1), ("l2", l2), ("l2_squared", l2_squared), ("linf", linf))
    }
    for name, number in read.items():
        if number is not None and number < 0:
            raise ValueError(f"{name} must be {accepted}; got {number}")
    if read["l0"] is not None and read["l0"].denominator != 1:
        raise ValueError(f"l0 is a number of keys, an integer; got {read['l0']}")
    root, square = read.pop("l2"), read["l2_squared"]
    if root is not None:
        if square is not None and square != root**2:
            raise ValueError(f"l2={root} and l2_squared={square} are two claims about one norm; give one of them")
        read["l2_squared"] = root**2
    return tuple(read[norm] for norm in NORMS)


class _Audit:
    """One audit: its function, its letters, and the searches that it takes."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        question: _Question,
        alphabet: tuple[Letters, ...],
        max_calls: int,
        domain: Callable[[Any], Any] | None,
        invariant: Callable[[Any], Hashable] | None,
        compare: str,
        processes: int,
    ) -> None:
        self.function, self.question, self.alphabet, self.max_calls = function, question, alphabet, max_calls
        limits = question.limits
        number = question.letters
        if number is None:
            number = LETTERS
            while number < MOST_LETTERS and limits.worlds(_rows(alphabet, number + 1)) <= max_calls:
                number += 1
        self.limits = limits
        self.letters = tuple(one.first(number) for one in alphabet)
        self.total = limits.worlds(_rows(alphabet, number))
        self.rows = Rows(tuple(map(len, self.letters)))
        smallest = limits.worlds(1)
        if smallest > max_calls:
            raise BudgetError(
                f"there are {smallest} tables of one value, above max_calls={max_calls}; take fewer users"
            )
        self._cells = _Cells(alphabet, self.rows, question.ids)
        names = tuple(one.name for one in alphabet)
        kinds = tuple(one.kind for one in alphabet)
        if question.user is not None:
            names, kinds = (question.user, *names), (kind_of(question.ids), *kinds)
        self.maker = TableMaker(names, kinds, question.layout)
        self.maker.require()
        plain = TableMaker(names, kinds, "rows")
        self.compare = compare
        self.runner = Runner(function, self.maker, self.rows_of, question.keys, question.missing_is_zero, compare)
        self._fresh = Fresh(processes, Again(function, self.maker, question.keys), function, self.maker.package)
        self._domain = None if domain is None else _about(domain, plain, self.rows_of, bool, "domain")
        self._invariant = None if invariant is None else _about(invariant, plain, self.rows_of, _hashable, "invariant")

    def rows_of(self, entries: Entries) -> list[Row]:
        """The cells of the rows of a table."""
        return list(map(self._cells.__getitem__, entries))

    def searched(
        self,
        claim: tuple[Fraction | None, ...],
        slack: Fraction,
        deadline: float,
        drawn: int,
        seed: int,
        progress: Callable[[int, int], object],
    ) -> tuple[Pair | None, Found, Search]:
        """The search, again in all orders of rows where the order matters; and the witness, made small."""
        rows, most = math.prod(self.rows.sizes), self.max_calls * (1 - PART)
        smaller = (self._sized(*size) for size in SMALLER) if self.question.any_size and self.total > most else ()
        small = next((one for one in smaller if one.worlds(rows) <= most), None)
        search = self._ended(small or self.limits, claim, slack, deadline, self.max_calls, progress, drawn, seed)
        if small is not None and search.found.complete:
            until, calls = time.perf_counter() + (deadline - time.perf_counter()) * PART, self.runner.calls
            larger = self._ended(
                self.limits, claim, slack, until, self.max_calls - calls, progress, 0, seed, ordered=search.ordered
            )
            search.found.form_dependent = search.found.form_dependent or larger.found.form_dependent
            larger.found.random_tables = search.found.random_tables
            if larger.found.complete or larger.found.violation is not None:
                search = larger
        found = search.found
        self._refuse_what_says_nothing()
        if found.violation is not None:
            pair = shrunk(search, found.violation, search.exceeds, lambda: time.perf_counter() > deadline + 30)
            for side in (pair.first, pair.second):
                self.runner.require_same(side, "when it was called again")
            return pair, found, search
        for norm, one in zip(NORMS, claim, strict=True):
            if one is not None and norm in found.worst_pairs:
                return found.worst_pairs[norm], found, search
        return found.worst_pairs.get("l1"), found, search

    def _sized(self, users: int, total: int) -> Limits:
        limits = self.question.limits
        users = min(users, limits.max_users)
        return dataclasses.replace(limits, max_users=users, total_rows=min(total, users * limits.max_rows))

    def _ended(
        self,
        limits: Limits,
        claim: tuple[Fraction | None, ...],
        slack: Fraction,
        deadline: float,
        calls: int,
        progress: Callable[[int, int], object],
        drawn: int,
        seed: int,
        *,
        ordered: bool = False,
    ) -> Search:
        """A search that has ended, again in all orders of rows where the order matters."""
        ordered = ordered or self.question.order == "all"
        started = time.perf_counter()
        search = self._search(limits, claim, slack, deadline, calls, progress, ordered=ordered)
        with contextlib.suppress(OrderMatters):
            self._finish(search, drawn, seed)
        if search.found.order_dependent:  # not while the exception is handled, which those of the function would name
            search = self._search(limits, claim, slack, deadline, calls, progress, ordered=True)
            self._finish(search, drawn, seed)
        done = max(1, search.found.tables + search.found.excluded)
        search.needed_seconds = math.ceil((time.perf_counter() - started) / done * search.total)
        return search

    def _search(
        self,
        limits: Limits,
        claim: tuple[Fraction | None, ...],
        slack: Fraction,
        deadline: float,
        calls: int,
        progress: Callable[[int, int], object],
        *,
        ordered: bool,
    ) -> Search:
        return Search(
            self.runner,
            self.rows,
            limits,
            neighbors=self.question.neighbors,
            claim=claim,
            slack=slack,
            ordered=ordered,
            check_order=not ordered and self.question.order != "kept",
            domain=self._domain,
            invariant=self._invariant,
            max_calls=calls,
            deadline=deadline,
            progress=progress,
            total=limits.worlds(math.prod(self.rows.sizes)),
        )

    def _finish(self, search: Search, drawn: int, seed: int) -> None:
        found = search.run()
        if found.violation is None:
            search.check_some()
        if found.violation is None and drawn:
            search.at_random(drawn, random.Random(seed), tuple(len(one.letters) for one in self.alphabet))

    def _refuse_what_says_nothing(self) -> None:
        runner = self.runner
        if not runner.outputs:
            raise ValueError("domain: no table is in it, so that there is nothing to audit")
        if always_raises(runner):
            error = runner.first_error
            raise ValueError(
                f"the function raises on every table that was tried, {type(error).__name__}: {error}; is it meant for "
                f"frame={self.question.layout!r} and these columns?"
            ) from error
        if not runner.says_something:
            raise ValueError(
                "the function returns nothing (None, or an empty collection) on every table that was tried, so that "
                "there is nothing to audit"
            )

    def memory(self, pair: Pair | None, search: Search, call_seconds: float | None) -> str:
        """What is known of memory between calls: tables of the largest changes and a share are run again elsewhere."""
        pairs = [pair, *search.found.worst_pairs.values()]
        tables = {side: None for one in pairs if one is not None for side in (one.first, one.second)}
        tables |= dict.fromkeys(search.share())
        try:
            self.runner.compared_in(self._fresh, list(tables), call_seconds)
        except NotAsked as error:
            return f"assumed ({error})"
        return f"none on {plural(len(tables), 'table')} in {self._fresh}"

    def report(
        self,
        pair: Pair | None,
        found: Found,
        search: Search,
        claim: tuple[Fraction | None, ...],
        slack: Fraction,
        memory: str,
        seconds: float,
    ) -> SensitivityReport:
        """What was found, as a report."""
        question, limits, witness, worst = self.question, search.limits, None, found.worst
        if pair is not None:
            witness = self._witness(pair)
            worst = worse(worst, witness.change)
        violated = found.violation is not None
        decided = any(one is not None for one in claim) and found.complete and not found.form_dependent and found.pairs
        ordered, open_still = search.ordered, not found.complete and not violated
        number = max(map(len, self.letters), default=0)
        left_out = ((one.name, one.left_out(len(kept))) for one, kept in zip(self.alphabet, self.letters, strict=True))
        return SensitivityReport(
            holds=False if violated else True if decided else None,
            witness=witness,
            worst=_exact(worst),
            claim=claim,
            slack=slack,
            function=_name_of(self.function),
            neighbors=question.neighbors,
            user=question.user,
            ids=tuple(question.ids[: limits.max_users]),
            columns=tuple(
                (one.name, one.kind, letters) for one, letters in zip(self.alphabet, self.letters, strict=True)
            ),
            left_out=tuple((name, letters) for name, letters in left_out if letters),
            layout=question.layout,
            keys=question.keys,
            missing_is_zero=question.missing_is_zero,
            compare=self.compare,
            memory=memory,
            outputs=len(self.runner.outputs),
            max_users=limits.max_users,
            max_rows=limits.max_rows,
            total_rows=limits.total_rows,
            order="all" if ordered else "kept" if question.order == "kept" else "checked",
            complete=found.complete,
            needed_seconds=search.needed_seconds if open_still else None,
            would_finish=self._would_finish(limits, number, search, seconds) if open_still else None,
            form_dependent=bool(found.form_dependent),
            restricted=self._domain is not None or self._invariant is not None,
            tables=found.tables,
            all_tables=search.total,
            excluded=found.excluded,
            pairs=found.pairs,
            random_tables=found.random_tables,
            checked=found.checked,
            calls=self.runner.calls,
            libraries=() if (name := self.maker.package) is None else ((name, importlib.metadata.version(name)),),
        )

    def _would_finish(
        self, limits: Limits, letters: int, search: Search, seconds: float
    ) -> tuple[int, int, int, int] | None:
        """The largest tables, of users, rows and letters, that a search like this one ends with; None for none."""
        most = min(self.max_calls, search.total * seconds / max(1, search.needed_seconds or 1)) * (1 - PART)
        for size in SMALLER:
            smaller = self._sized(*size)
            for number in range(letters, 1, -1):
                if smaller.worlds(_rows(self.alphabet, number)) <= most and (smaller, number) != (limits, letters):
                    return smaller.max_users, smaller.max_rows, smaller.total_rows, number
        return None

    def _witness(self, pair: Pair) -> SensitivityWitness:
        outputs = [self.runner.outputs[self.runner.output(side)] for side in (pair.first, pair.second)]
        change = self.runner.change(*(self.runner.output(side) for side in (pair.first, pair.second)))
        first, second = (tuple(self.rows_of(side)) for side in (pair.first, pair.second))
        return SensitivityWitness(
            first=first,
            second=second,
            user=self.question.ids[pair.who] if self.question.limits.named else None,
            first_output=storable(outputs[0]),
            second_output=storable(outputs[1]),
            change=_exact(change),
        )


class _Cells(dict[tuple[int, int], Row]):
    """The cells of a row of a user, made when they are first asked for."""

    def __init__(self, alphabet: Sequence[Letters], rows: Rows, ids: Sequence[Any]) -> None:
        super().__init__()
        self._alphabet, self._rows, self._ids = alphabet, rows, ids

    def __missing__(self, entry: tuple[int, int]) -> Row:
        who, row = entry
        cells = (one.letters[place] for one, place in zip(self._alphabet, self._rows.letters[row], strict=True))
        made = self[entry] = (self._ids[who], *cells) if self._ids else tuple(cells)
        return made


def _rows(alphabet: Sequence[Letters], number: int) -> int:
    """How many different rows there are with so many letters of each column."""
    return math.prod(len(one.first(number)) for one in alphabet)


def _exact(change: Change) -> Change:
    return Change(*(step if step == math.inf else Fraction(step) for step in change))


def _about(
    asked: Callable[[Any], Any],
    maker: TableMaker,
    rows_of: Callable[[Entries], list[Row]],
    read: Callable[[Any], Any],
    name: str,
) -> Callable[[Entries], Any]:
    """The same function of a table of entries, each asked once."""
    known: dict[Entries, Any] = {}

    def answer(entries: Entries) -> Any:
        if entries not in known:
            known[entries], again = (read(asked(maker.table(rows_of(entries)))) for _ in range(2))
            if known[entries] != again:
                raise ValueError(
                    f"{name}: two answers about one table are not equal, {short_repr(known[entries])} and "
                    f"{short_repr(again)}; return numbers, texts or tuples of them, and no NaN"
                )
        return known[entries]

    return answer


def _hashable(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _name_of(function: Any) -> str:
    if isinstance(function, functools.partial):
        return f"partial of {_name_of(function.func)}"
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name).encode("utf-8", "backslashreplace").decode()
