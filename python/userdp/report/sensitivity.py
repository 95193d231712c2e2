"""The result of an audit of sensitivity: `userdp.audit.audit_sensitivity` makes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from userdp.algorithms.outputs import (
    COMPARED,
    KEYED,
    NORMS,
    RAISES,
    Change,
    Entry,
    Output,
    form_differs,
    output_of,
    raised,
)
from userdp.algorithms.small_tables import KINDS, LAYOUTS, Row, TableMaker, cell_code, code_of_rows, kind_of
from userdp.checker import values
from userdp.checker.check import Verification
from userdp.display import Fact, Section
from userdp.display.numbers import as_float, bounded, in_digits, number_text, plural
from userdp.exact.encoding import decode, encode, fraction_text, printable
from userdp.exact.numbers import short_repr
from userdp.report.base import VERDICTS, Report, report, verdict
from userdp.report.fields import (
    COUNT,
    FLAG,
    FRACTION,
    MEMORY,
    POSITIVE,
    SHARE,
    TEXT,
    VALUE,
    Codec,
    many,
    members,
    named,
    object_of,
    of,
    one_of,
    optional,
    part,
    row,
    written,
)

NORM_NAMES = {"l0": "L0", "l1": "L1", "l2_squared": "L2 squared", "linf": "L-infinity"}

_STEP = Codec(
    lambda value: "infinite" if value == math.inf else fraction_text(Fraction(value)),
    lambda code: math.inf if code == "infinite" else values.fraction(code),
    {},
)
_STEPS, _INFINITE = row(*(_STEP for _ in NORMS)), Codec(str, str, {"const": "infinite"})
_CHANGE = Codec(
    _STEPS.write,
    lambda codes: Change(*_STEPS.read(codes)),
    {"oneOf": [row(*(one for _ in NORMS)).schema for one in (SHARE, _INFINITE)]},
).named("change", "Changes in L0, L1, L2 squared and L-infinity: fractions, or all infinite.")


def _read_entry(code: Any) -> Entry:
    if isinstance(code, dict):
        values.need(set(code) == {"other"} and isinstance(code["other"], str), f"{code!r:.60} is no entry")
        return str(code["other"])
    return values.fraction(code)


_ENTRY = Codec(
    lambda entry: {"other": entry} if isinstance(entry, str) else fraction_text(Fraction(entry)),
    _read_entry,
    {"oneOf": [FRACTION.schema, object_of({"other": TEXT.schema})]},
).named("entry", "A number of an output, or in words what stands there in place of one.")


def _read_output(
    form: str, entries: tuple[tuple[Hashable, Entry], ...], looks: tuple[tuple[Hashable, str], ...]
) -> Output:
    return Output(form, named(entries), looks)


_MADE = {"form": TEXT, "entries": many(row(VALUE, _ENTRY)), "looks": many(row(VALUE, TEXT))}
_OUTPUT = Codec(
    lambda output: {
        "form": output.form,
        "entries": _MADE["entries"].write(tuple(output.entries.items())),
        "looks": _MADE["looks"].write(output.looks),
    },
    members(_read_output, _MADE).read,
    members(_read_output, _MADE).schema,
).named("output")
_TABLE = many(many(VALUE))


@part
class SensitivityWitness:
    """Two neighboring tables, and what the function makes of them."""

    first: tuple[Row, ...] = written(_TABLE)
    second: tuple[Row, ...] = written(
        _TABLE, "The rows of the tables, in their order. With a column of users, each row begins with its user."
    )
    user: Any = written(VALUE, "The name of the user who changes; None where users have no names.")
    first_output: Output = written(_OUTPUT)
    second_output: Output = written(_OUTPUT)
    change: Change = written(_CHANGE, "From one output to the other: `l0`, `l1`, `l2_squared` and `linf`, exactly.")


_TABLE = many(many(VALUE))


@report("sensitivity")
class SensitivityReport(Report):
    """How much one user's rows change what a function makes of small tables."""

    holds: bool | None = written(
        optional(FLAG),
        "False: a pair of neighboring tables changes the output by more than is claimed; `witness` is that pair. "
        "True: no pair of the listed tables does, which says nothing of larger tables or of other values. None: not "
        "all were tried, nothing was claimed, or the output depends on how a table is stored.",
    )
    witness: SensitivityWitness | None = written(
        optional(of(SensitivityWitness)),
        "The violating pair, made small; without a violation the worst pair that was seen.",
    )
    worst: Change = written(_CHANGE, "The largest change that was seen in each norm.")
    claim: tuple[Fraction | None, ...] = written(
        row(*(optional(SHARE) for _ in NORMS)),
        "What was claimed in each of l0, l1, l2_squared and linf; None for a norm without a claim.",
    )
    slack: Fraction = written(SHARE, "By what share of itself a claim may be exceeded.")
    function: str = written(TEXT, "Its name.")
    neighbors: str = written(one_of("replace", "add-remove"))
    user: str | None = written(optional(TEXT), "The column of users; None where each row is a user.")
    ids: tuple[Any, ...] = written(
        many(VALUE), "Names of users; every assignment of rows to names is a table of its own."
    )
    columns: tuple[tuple[str, str, tuple[Any, ...]], ...] = written(
        many(row(TEXT, one_of(*KINDS), many(VALUE, 1))), "For each column its name, its kind and its letters."
    )
    left_out: tuple[tuple[str, tuple[Any, ...]], ...] = written(
        many(row(TEXT, many(VALUE, 1))),
        "By column, bounds and constants of the function that are no letters, since there were too many.",
    )
    layout: str = written(one_of(*LAYOUTS), "In what form the function was given tables.")
    keys: tuple[str, ...] | None = written(optional(many(TEXT)), "Columns of output frames that name their rows.")
    missing_is_zero: bool = written(FLAG, "Whether a key that is not there counts as 0.")
    compare: str = written(one_of(*COMPARED), "Whether how an output looks was compared too.")
    memory: str = written(MEMORY, 'What is known of memory between calls: "none on ...", or "assumed", and why.')
    outputs: int = written(POSITIVE, "Distinct outputs that were seen.")
    max_users: int = written(POSITIVE)
    max_rows: int = written(POSITIVE)
    total_rows: int = written(POSITIVE, "The size of tables.")
    order: str = written(
        one_of("checked", "all", "kept"),
        "Which orders of rows were compared: one for each table, with others tried on `checked` tables; all, on both "
        "sides of every pair; or one, since the order is kept by promise.",
    )
    complete: bool = written(FLAG, "Whether all tables were tried.")
    needed_seconds: int | None = written(optional(COUNT), "About how long all would take, where they were not.")
    would_finish: tuple[int, int, int, int] | None = written(
        optional(row(POSITIVE, POSITIVE, POSITIVE, POSITIVE)),
        "`max_users`, `max_rows`, `total_rows` and `letters` of smaller tables, all of which would be tried.",
    )
    form_dependent: bool = written(
        FLAG, "Whether the same rows in the same order, stored in another way, gave another output."
    )
    restricted: bool = written(
        FLAG, "Whether only tables of a domain, or with something in common that is public, were compared."
    )
    tables: int = written(COUNT)
    all_tables: int = written(COUNT)
    excluded: int = written(COUNT, "Tables that were tried, that there are, and that are not in the domain.")
    pairs: int = written(COUNT, "Pairs of neighbors that were compared.")
    random_tables: int = written(COUNT)
    checked: int = written(COUNT)
    calls: int = written(
        COUNT,
        "Pairs that were drawn at random besides; tables on which order, determinism and the like were tried; and "
        "calls of the function.",
    )
    libraries: tuple[tuple[str, str], ...] = written(many(row(TEXT, TEXT)), "Versions of what ran.")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an audit of sensitivity is no yes or no: compare .holds with True, False or None. True is about the "
            "listed tables alone, and is no proof of privacy"
        )

    @property
    def maker(self) -> TableMaker:
        """Makes tables as the function was given them."""
        names = tuple(name for name, _, _ in self.columns)
        kinds = tuple(kind for _, kind, _ in self.columns)
        if self.user is not None:
            names, kinds = (self.user, *names), (kind_of(self.ids), *kinds)
        return TableMaker(names, kinds, self.layout)

    def tables_of_witness(self) -> tuple[Any, Any]:
        """The two tables of the witness, in the form that the function was given."""
        witness = self._shown_witness()
        return self.maker.table(witness.first), self.maker.table(witness.second)

    def witness_code(self, name: str | None = None) -> str:
        """Python that runs the witness again, to be pasted into an issue.

        Parameters
        ----------
        name : str, optional
            How the code calls the function; by default by its own name.
        """
        witness = self._shown_witness()
        called = name or (self.function if self.function.isidentifier() else "function")
        module = self.maker.package
        lines = ["import datetime"] if self._has_dates(witness) else []
        lines += [f"import {module}"] if module is not None else []
        return "\n".join(
            [
                *lines,
                f"# {self._whose(witness)}: {self._exceeds(witness)}",
                f"first = {code_of_rows(self.maker, witness.first)}",
                f"second = {code_of_rows(self.maker, witness.second)}",
                f"print({called}(first))  # {_output_text(witness.first_output)}",
                f"print({called}(second))  # {_output_text(witness.second_output)}",
            ]
        )

    def verify(self, mechanism: Callable[[Any], Any] | None = None) -> Verification:
        """Check the report again.

        Parameters
        ----------
        mechanism : callable, optional
            The function, to be run on both tables of the witness, twice.

        Returns
        -------
        Verification
            Without the function, whether the numbers agree: "consistent". With it "spot-checked", and refuted where the
            witness violates the claim. That no other table does is never established so; audit the function again.
        """
        if mechanism is None:
            return self._checked()
        if not callable(mechanism):
            raise TypeError(f"mechanism must be the function of a table; got a {type(mechanism).__name__}")
        if self.witness is None:
            return self._checked()
        witness = self.witness
        problems: list[str] = []
        for rows, stated, which in (
            (witness.first, witness.first_output, "first"),
            (witness.second, witness.second_output, "second"),
        ):
            for _ in range(2):
                try:
                    output = output_of(mechanism(self.maker.table(rows)), self.keys)
                except (Exception, SystemExit) as error:
                    output = raised(error)
                if storable(output).identity(self.compare) != stated.identity(self.compare) and not problems:
                    problems.append(f"on the {which} table of the witness the function gives another output")
        found = self._checked(problems=problems)
        if found.finding == "wrong":
            return found
        return replace(found, finding="spot-checked", datasets=2, pairs=1, refuted=self.holds is False)

    def _shown_witness(self) -> SensitivityWitness:
        if self.witness is None:
            raise ValueError("there is no witness: no two neighboring tables gave different outputs")
        return self.witness

    def _has_dates(self, witness: SensitivityWitness) -> bool:
        cells = (cell for table in (witness.first, witness.second) for line in table for cell in line)
        return any("datetime." in cell_code(cell) for cell in cells)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "function": self.function,
                "norm": NORM_NAMES[norm],
                "claim": claim,
                "worst": worst,
                "holds": self.holds,
                "tables": self.tables,
                "pairs": self.pairs,
                "complete": self.complete,
            }
            for norm, claim, worst in zip(NORMS, self.claim, self.worst, strict=True)
        ]

    def _sections(self) -> Sequence[Section]:
        claimed = any(one is not None for one in self.claim)
        words = {True: "NO VIOLATION IN THESE SMALL TABLES", None: "UNDECIDED" if claimed else "MEASURED"}
        found = [
            Fact(
                NORM_NAMES[norm],
                _size_text(worst) + ("" if claim is None else f", claimed {_size_text(claim)}"),
                fraction_text(Fraction(worst)) if worst != math.inf and Fraction(worst).denominator > 10**6 else "",
            )
            for norm, claim, worst in zip(NORMS, self.claim, self.worst, strict=True)
        ]
        shown = []
        if self.witness is not None:
            witness = self.witness
            shown = [
                Fact("Who changes", self._whose(witness)),
                Fact("First table", code_of_rows(self._plain(), witness.first)),
                Fact("Its output", _output_text(witness.first_output)),
                Fact("Second table", code_of_rows(self._plain(), witness.second)),
                Fact("Its output", _output_text(witness.second_output)),
            ]
            if self.neighbors == "replace" and self._is_two_steps(witness):
                shown.append(
                    Fact("With add-remove", "no neighbors: one user goes and another comes. The claim may hold there")
                )
            if witness.change.l1 == math.inf:
                shown.append(
                    Fact(
                        "Why infinite", why_infinite(witness.first_output, witness.second_output, self.missing_is_zero)
                    )
                )
            if self.compare == "form" and witness.first_output.looks != witness.second_output.looks:
                sides = (witness.first_output, witness.second_output)
                shown += [Fact("Form", " ".join(look for _, look in side.looks)[:300]) for side in sides]
        asked = [
            Fact("Neighbors", self.neighbors),
            Fact("User", "each row is a user" if self.user is None else repr(self.user)),
            *(
                Fact(f"Letters of {name!r}", ", ".join(map(cell_code, letters[:40])))
                for name, _, letters in self.columns
            ),
            *(
                Fact(
                    f"Left out of {name!r}",
                    f"{', '.join(map(cell_code, letters[:40]))}; list what matters in alphabets",
                )
                for name, letters in self.left_out
            ),
            Fact("Tables", f"{in_digits(self.tables)} of {in_digits(self.all_tables)}; {in_digits(self.calls)} calls"),
            Fact("Pairs of neighbors", in_digits(self.pairs)),
        ]
        if self.random_tables:
            asked.append(Fact("Pairs at random", in_digits(self.random_tables)))
        if self.slack:
            asked.append(Fact("Rounding allowed", *number_text(self.slack)))
        return [
            Section(
                f"Sensitivity of {self.function}",
                **verdict(self.holds, dict.fromkeys(VERDICTS, self._sentence()), words),
                facts=[
                    ("Largest change", found),
                    ("Witness", shown),
                    ("Question", asked),
                    ("What the verdict means", self._meaning()),
                ],
                headline=found,
                notes=[
                    "The tables are made up, and hold no data of anybody. The audit is of the function before noise is "
                    "added, and is no proof of privacy."
                ],
            )
        ]

    def _is_two_steps(self, witness: SensitivityWitness) -> bool:
        """Whether a claim about adding or removing a user may hold where this one fails."""
        both = all(any(line[:1] == (witness.user,) for line in side) for side in (witness.first, witness.second))
        claimed = zip(NORMS, self.claim, witness.change, strict=True)
        twice = all(most is None or step <= (4 if norm == "l2_squared" else 2) * most for norm, most, step in claimed)
        return self.holds is False and self.user is not None and both and twice

    def _meaning(self) -> list[Fact]:
        """What was assumed, and what a reader may take for more than it is."""
        fixed = "; what is kept at a fixed path elsewhere is assumed to change nothing" * self.memory.startswith("none")
        found = [Fact("Memory between calls", self.memory + fixed)]
        if self.outputs == 1:
            found.append(Fact("The output", "one constant on all tables that were tried: do they have what it reads?"))
        if self.compare == "values":
            looks = "the order of keys, rows and columns, names, types, attributes and texts of exceptions"
            found.append(Fact("Assumed", f"nobody is shown the form of the output: {looks}"))
        return found

    def _sentence(self) -> str:
        tables = (
            f"tables of at most {plural(self.max_users, 'user')}, {plural(self.max_rows, 'row')} of a user and "
            f"{plural(self.total_rows, 'row')} in all, over the letters below"
            if self.user is not None
            else f"tables of at most {plural(self.total_rows, 'row')}, over the letters below"
        )
        orders = {
            "all": "in every order of the rows of both",
            "checked": f"with rows in one order (others were tried on {plural(self.checked, 'table')})",
            "kept": "with rows in one order, which is kept by promise",
        }[self.order]
        names = "" if self.user is None else f", for all assignments of the names {', '.join(map(repr, self.ids))}"
        within = ", of the stated domain" if self.restricted else ""
        scope = f"{tables}, {orders}{names}{within}"
        if self.holds is False:
            how = f": {self._exceeds(self.witness)}" if self.witness is not None else ""
            return f"One user changes it by more than is claimed{how}. Searched: {scope}."
        beyond = "Larger tables and other values were not tried"
        if not self.pairs:
            return f"No two of the tables are neighbors, so that nothing was compared. Searched: {scope}."
        if self.holds:
            memory = "" if self.memory.startswith("none") else " Memory between calls: assumed."
            constant = " The output is one constant." if self.outputs == 1 else ""
            names = " and ".join(repr(name) for name, _ in self.left_out)
            apart = f" Constants of the function were left out of {names}." if names else ""
            return f"No pair of neighbors exceeds the claim, of all {scope}. {beyond}.{apart}{memory}{constant}"
        if self.form_dependent:
            return f"The output depends on how a table is stored, so that no bound holds. Searched: {scope}."
        if not self.complete:
            share = f"{in_digits(self.tables)} of {in_digits(self.all_tables)}"
            needed = "" if self.needed_seconds is None else f" These sizes would finish in {self._needed()}."
            constant = " The output is one constant on these tables." if self.outputs == 1 else ""
            found = f"No violation was found, and only {share} tables were tried, of all {scope}.{constant}"
            return f"{found}{needed}{self._smaller()} {beyond}."
        return f"The largest changes, of all {scope}. {beyond}."

    def _needed(self) -> str:
        seconds = f"about {in_digits(self.needed_seconds or 0)} seconds"
        return f"{seconds}, with max_seconds and max_calls above that and {in_digits(self.all_tables)}"

    def _smaller(self) -> str:
        if self.would_finish is None:
            return " Fewer columns, or few values in alphabets, would."
        users, rows, total, letters = self.would_finish
        sizes = (
            f"max_users={users}, max_rows={rows}, total_rows={total}"
            if self.user is not None
            else f"total_rows={total}"
        )
        return f" So would {sizes}, letters={letters} in this time, or alphabets of the values that matter."

    def _plain(self) -> TableMaker:
        """Shows tables as tuples, whatever they were made as."""
        return replace(self.maker, layout="tuples")

    def _whose(self, witness: SensitivityWitness) -> str:
        if sorted(map(repr, witness.first)) == sorted(map(repr, witness.second)):
            return "nobody; the same rows are in another order"
        if self.user is None:
            return "one row"
        return f"the rows of {self.user} {cell_code(witness.user)}"

    def _exceeds(self, witness: SensitivityWitness) -> str:
        parts = []
        for norm, claim, step in zip(NORMS, self.claim, witness.change, strict=True):
            if claim is not None and step > claim * (1 + self.slack):
                claimed = f"{_size_text(claim)} is claimed{_by(step, claim)}"
                parts.append(f"{NORM_NAMES[norm]} {_size_text(step)} where {claimed}")
        text = "; ".join(parts) or ", ".join(
            f"{NORM_NAMES[norm]} {_size_text(step)}" for norm, step in zip(NORMS, witness.change, strict=True)
        )
        forms = self.compare == "form" and form_differs(witness.first_output, witness.second_output)
        return text + "; the form of the output differs" * forms


def why_infinite(first: Output, second: Output, missing_is_zero: bool = False) -> str:
    """Why the change between two outputs is infinite, and what cures it."""
    if RAISES in (first.form, second.form):
        return "what is raised is an output too; return a value for every table"
    if first.form != second.form:
        return f"one output is a {first.form}, the other a {second.form}; return one form for every table"
    apart = [key for key in {**first.entries, **second.entries} if (key in first.entries) != (key in second.entries)]
    if apart and first.form in KEYED and not missing_is_zero:
        return (
            f"a key comes or goes, {printable(short_repr(apart[0]))}, which no noise hides. Return every key of a "
            "public list, with 0 where it has no rows; where the program does so before its noise, pass missing=0"
        )
    if apart and not (first.form in KEYED and missing_is_zero):
        return "the number of entries changes; return as many for every table"
    both = ((first.entries[key], second.entries[key]) for key in first.entries if key in second.entries)
    one, other = next((pair for pair in both if pair[0] != pair[1] and str in map(type, pair)), (None, None))
    if one is None:
        return (
            "the numbers are finite, and the form of the output differs; return one order, one set of names and one "
            "dtype for every table, or pass compare='values' where only values are released"
        )
    return f"an entry is {one} in one output and {other} in the other, which no noise hides; replace it by a number"


def storable(output: Output) -> Output:
    """The output as a report keeps it: objects without a code are their texts."""
    return Output(
        output.form,
        {
            decode(encode(key)): entry if isinstance(entry, str) else Fraction(entry)
            for key, entry in output.entries.items()
        },
        tuple((decode(encode(key)), look) for key, look in output.looks),
    )


def _by(step: Any, claim: Fraction) -> str:
    """How small an excess is, where it may be rounding."""
    if step == math.inf or not claim:
        return ""
    share = (Fraction(step) - claim) / claim
    return f" (more by {bounded(share)} of it, which may be rounding)" if share < Fraction(1, 10**9) else ""


def _size_text(size: Any) -> str:
    if size == math.inf:
        return "infinite"
    exact = Fraction(size)
    if exact.denominator < 10**4 and abs(exact) < 10**16:
        return fraction_text(exact)
    nearest = as_float(exact)
    # A float is written as Python writes it, so that it is seen where two differ.
    return repr(nearest) if math.isfinite(nearest) and Fraction(nearest) == exact else bounded(exact)


def _output_text(output: Output) -> str:
    if output.form == RAISES:
        return f"raises {output.looks[0][1] if output.looks else output.entries.get((), 'an exception')}"[:300]
    shown = {key: entry if isinstance(entry, str) else _size_text(entry) for key, entry in output.entries.items()}
    if list(shown) == [()]:
        return str(shown[()])[:300]
    return ("{" + ", ".join(f"{key!r}: {entry}" for key, entry in shown.items()) + "}")[:300]
