"""Expressions over the columns of one row: a closed language, with public types and bounds, and no data in it.

An expression is what a query does with each row before anything is counted. It says nothing of other rows: there are
no ranks, no sorts, no aggregates and no functions of Python, so a user's results depend on the user's own rows alone.
Types and bounds are checked without data, and no value can raise.

Rows without a value in an operand have none in the result. NaN is no value, and neither is what has no number as its
result, such as x / 0. `Expression.default` puts a public value there; queries leave out the rows that still have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from userdp.exact.numbers import short_repr
from userdp.tables import arithmetic, choices, parts
from userdp.tables.patterns import Pattern
from userdp.tables.schema import Cells, ColumnType, Integer, Number
from userdp.tables.values import (
    Plain,
    Rule,
    canonical,
    canonical_value,
    constant,
    declaration,
    literal,
    literals,
    settled,
    steps_of,
)

MOST_OPERATIONS = 10_000
DEEPEST = 200

_RULES: dict[str, Callable[..., Rule]] = {
    **dict.fromkeys(("+", "-", "*", "/"), arithmetic.arithmetic),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), choices.compare),
    **dict.fromkeys(("&", "|", "^", "~"), choices.logic),
    **dict.fromkeys(("year", "month", "day", "weekday", "hour"), parts.part),
    "abs": arithmetic.absolute,
    "floor": arithmetic.floor,
    "log1p": arithmetic.log1p,
    "clip": arithmetic.clip,
    "cut": arithmetic.cut,
    "is_in": choices.is_in,
    "is_missing": choices.is_missing,
    "is_unreadable": choices.is_unreadable,
    "when": choices.when,
    "default": choices.default,
    "cast": choices.cast,
    "lower": parts.lower,
    "strip": parts.strip,
    "slice": parts.cut_out,
    "match": parts.match,
}
_NAMED = {"year", "month", "day", "weekday", "hour"}  # rules of several operations, which are told which
# How tightly Python binds them; the rest are calls.
_LEVELS = {"|": 1, "^": 2, "&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "~": 6}
_LEVELS |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 0)
_CALL = 9


@dataclass(frozen=True, eq=False)
class Program:
    """An expression that has been checked against a schema.

    Attributes
    ----------
    type : ColumnType
        The public type of its values, with their bounds or their list.
    columns : tuple of str
        The columns that it reads.
    """

    type: ColumnType
    columns: tuple[str, ...]
    _vector: Callable[[Mapping[str, Cells], int], Cells]
    _scalar: Callable[[Mapping[str, Plain | None]], Plain | None]

    def evaluate(self, cells: Mapping[str, Cells], n_rows: int) -> Cells:
        """Return the values of all rows of a batch.

        Parameters
        ----------
        cells : mapping from str to Cells
            The columns, as the schema's types read them; each of `n_rows` rows.
        n_rows : int
            How many rows there are.

        Returns
        -------
        Cells
            Of `n_rows` rows. A row's value has the same bits whatever other rows there are, and no value raises.
        """
        with np.errstate(all="ignore"):
            return self._vector(cells, n_rows)

    def scalar(self, row: Mapping[str, Plain | None]) -> Plain | None:
        """Return the value of one row: what the expression means, in plain Python.

        Parameters
        ----------
        row : mapping from str to value or None
            The values of the columns, as the schema's types have read them: float, int, bool, str, date or datetime,
            and an entry of the list for categories. None stands for no value.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, number
        >>> hourly = (col("pay") / col("hours")).clip(0, 100).compile(Schema(pay=number(0, 9e3), hours=number(0, 80)))
        >>> hourly.scalar({"pay": 900.0, "hours": 40.0}), hourly.scalar({"pay": 900.0, "hours": 0.0})
        (22.5, None)
        """
        return self._scalar(row)


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """A value made of one row's columns; `col`, `lit` and `when` begin one.

    Operators and methods make larger expressions. Nothing is computed until a query is released.

    * ``+ - * /`` and unary ``-`` of numbers. Integers stay integers, unless divided; their public bounds must stay
      below 2**53. There is no value where the divisor is 0.
    * ``== != < <= > >=`` of two values of one kind, ``& | ^ ~`` of bools. Brackets are needed around comparisons:
      ``(col("age") >= 18) & (col("age") < 65)``. Categories are compared by their values, and have no order.
    * The methods below.

    ``and``, ``or``, ``not``, ``in`` and chains such as ``0 < x < 1`` ask Python for one bool, which an expression is
    not: they raise TypeError. As ``==`` makes an expression, expressions are no keys of dicts.

    Rows without a value in an operand have none in the result. This holds for ``|`` too, and for ``is_in``.

    Examples
    --------
    >>> adult = (col("age") >= 18) & ~col("job").is_in(["pupil", "student"])
    >>> adult
    (col('age') >= 18) & ~col('job').is_in(['pupil', 'student'])
    >>> adult.columns
    ('age', 'job')
    """

    operation: str
    operands: tuple[Expression, ...] = ()
    options: tuple[Any, ...] = ()
    _size: int = 0
    _depth: int = 0

    # NumPy and pandas leave operators with what is theirs to this class, which reads numbers and refuses the rest.
    __array_ufunc__ = None
    __pandas_priority__ = 10_000

    def __post_init__(self) -> None:
        size = 1 + sum(operand._size for operand in self.operands)
        depth = 1 + max((operand._depth for operand in self.operands), default=0)
        if size > MOST_OPERATIONS or depth > DEEPEST:
            raise ValueError(
                f"an expression may have {MOST_OPERATIONS} operations, {DEEPEST} within each other; "
                f"this one has {size}, {depth} within each other"
            )
        object.__setattr__(self, "_size", size)
        object.__setattr__(self, "_depth", depth)

    # --- what is public of it

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it reads, in the order of their first use."""
        if self.operation == "col":
            return (str(self.options[0]),)
        return tuple(dict.fromkeys(name for operand in self.operands for name in operand.columns))

    def typed(self, schema: Mapping[str, ColumnType]) -> ColumnType:
        """Return the public type of the values, with bounds that follow from those of the columns.

        Numbers have as many steps between their bounds as the finest grid among the operands; `Expression.cast` states
        others.

        Parameters
        ----------
        schema : Schema
            The types of the columns.

        Raises
        ------
        TypeError
            If an operation does not take values of this kind.
        ValueError
            If a column is not in the schema, or bounds are missing or too wide.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, integer, number
        >>> schema = Schema(pay=number(0, 1000), age=integer(0, 120))
        >>> (col("age") * 2 - 1).typed(schema)
        Integer(low=-1, high=239, default=None)
        >>> (col("pay") / 10).typed(schema).high
        100.0
        >>> col("age").cut([18, 65]).typed(schema).values
        ('(-inf, 18)', '[18, 65)', '[65, inf)')
        """
        return self.compile(schema).type

    def compile(self, schema: Mapping[str, ColumnType]) -> Program:
        """Check the expression against a schema, and return what evaluates it; it raises as `Expression.typed`."""
        kind, vector, scalar = self._compiled(schema)
        return Program(self._public(kind), self.columns, vector, scalar)

    def _public(self, kind: ColumnType) -> ColumnType:
        """A type with finite bounds that are two."""
        if isinstance(kind, Number):
            low, high = kind.low, kind.high
            if low == high:  # a number that is public
                low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
            if not math.isfinite(high - low):
                raise ValueError(
                    f"{self!r} has no finite bounds, here from {low:g} to {high:g}: state them with .clip(low, high)"
                )
            return kind if (low, high) == (kind.low, kind.high) else Number(low, high, steps_of(kind))
        if isinstance(kind, Integer) and kind.low == kind.high:
            return Integer(min(kind.low, 0), max(kind.high, 0)) if kind.low else Integer(0, 1)
        return kind

    def _compiled(
        self, schema: Mapping[str, ColumnType]
    ) -> tuple[
        ColumnType,
        Callable[[Mapping[str, Cells], int], Cells],
        Callable[[Mapping[str, Plain | None]], Plain | None],
    ]:
        if self.operation == "col":
            name = self.options[0]
            if name not in schema:
                raise ValueError(f"the schema has no column {name!r}; it has {', '.join(map(repr, schema))}")
            declared = schema[name]
            return (
                declared,
                lambda cells, n_rows: canonical(cells[name], declared),
                lambda row: canonical_value(row[name]),
            )
        if self.operation == "lit":
            value: Plain = self.options[0]
            known = literal(value, "lit")
            assert known is not None
            kind = known[1]
            return kind, lambda cells, n_rows: constant(value, kind, n_rows), lambda row: value
        below = [operand._compiled(schema) for operand in self.operands]
        rule = self._rule([kind for kind, _, _ in below])
        vectors = [vector for _, vector, _ in below]
        scalars = [scalar for _, _, scalar in below]

        def vector(cells: Mapping[str, Cells], n_rows: int) -> Cells:
            operands = [one(cells, n_rows) for one in vectors]
            made = rule.vector(*operands)
            valid = made.valid
            if rule.strict:
                for operand in operands:
                    valid = valid & operand.valid
            return settled(made.values, valid, made.texts)

        def scalar(row: Mapping[str, Plain | None]) -> Plain | None:
            values = [one(row) for one in scalars]
            if rule.strict and None in values:
                return None
            return canonical_value(rule.scalar(*values))

        return rule.type, vector, scalar

    def _rule(self, kinds: list[ColumnType]) -> Rule:
        named = (self.operation in _LEVELS and self.operation in _RULES) or self.operation in _NAMED
        options = (self.operation,) if named else self.options
        try:
            return _RULES[self.operation](kinds, *options)
        except (TypeError, ValueError) as error:
            if str(error).startswith("in "):
                raise
            shown = repr(self)
            shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
            raise type(error)(f"in {shown}: {error}") from None

    # --- how it is written

    def __repr__(self) -> str:
        text, _ = self._written()
        return text

    def _written(self) -> tuple[str, int]:
        """Return the expression as Python, and how tightly that is bound."""
        operation, options = self.operation, self.options
        if operation in ("col", "lit"):
            return f"{operation}({options[0]!r})", _CALL
        if operation == "when":
            condition, first, *others = self.operands
            other = others[0]._as_argument() if others else "None"
            return f"when({condition!r}).then({first._as_argument()}).otherwise({other})", _CALL
        level = _LEVELS.get(operation)
        if level is None:
            if operation == "default":
                arguments = [self.operands[1]._as_argument()]
            elif operation == "is_in":
                arguments = [repr(list(options[0]))]
            elif operation == "cast":
                arguments = [declaration(options[0])]
            elif operation == "cut":
                arguments = [repr(list(options[0]))] + ([] if options[1] is None else [repr(list(options[1]))])
                arguments += [] if options[2] is None else [f"default={options[2]!r}"]
            else:
                arguments = [repr(option) for option in options]
            return f"{self.operands[0]._inside(_CALL)}.{operation}({', '.join(arguments)})", _CALL
        if operation == "~":
            return f"~{self.operands[0]._inside(level)}", level
        first, second = self.operands
        right = second._as_argument() if second.operation == "lit" else second._inside(level + 1)
        # Comparisons do not chain, so both sides of one need brackets around another.
        return f"{first._inside(level + (level == 0))} {operation} {right}", level

    def _inside(self, level: int) -> str:
        text, own = self._written()
        return text if own >= level else f"({text})"

    def _as_argument(self) -> str:
        return repr(self.options[0]) if self.operation == "lit" else repr(self)

    # --- operators

    def _binary(self, operation: str, other: Any, *, swapped: bool = False) -> Expression:
        read = operand(other, operation)
        return Expression(operation, (read, self) if swapped else (self, read))

    def __add__(self, other: Any) -> Expression:
        return self._binary("+", other)

    def __radd__(self, other: Any) -> Expression:
        return self._binary("+", other, swapped=True)

    def __sub__(self, other: Any) -> Expression:
        return self._binary("-", other)

    def __rsub__(self, other: Any) -> Expression:
        return self._binary("-", other, swapped=True)

    def __mul__(self, other: Any) -> Expression:
        return self._binary("*", other)

    def __rmul__(self, other: Any) -> Expression:
        return self._binary("*", other, swapped=True)

    def __truediv__(self, other: Any) -> Expression:
        return self._binary("/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._binary("/", other, swapped=True)

    def __neg__(self) -> Expression:
        return self._binary("-", 0, swapped=True)

    def __abs__(self) -> Expression:
        return self.abs()

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        return self._binary("==", other)

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        return self._binary("!=", other)

    def __lt__(self, other: Any) -> Expression:
        return self._binary("<", other)

    def __le__(self, other: Any) -> Expression:
        return self._binary("<=", other)

    def __gt__(self, other: Any) -> Expression:
        return self._binary(">", other)

    def __ge__(self, other: Any) -> Expression:
        return self._binary(">=", other)

    def __and__(self, other: Any) -> Expression:
        return self._binary("&", other)

    def __rand__(self, other: Any) -> Expression:
        return self._binary("&", other, swapped=True)

    def __or__(self, other: Any) -> Expression:
        return self._binary("|", other)

    def __ror__(self, other: Any) -> Expression:
        return self._binary("|", other, swapped=True)

    def __xor__(self, other: Any) -> Expression:
        return self._binary("^", other)

    def __rxor__(self, other: Any) -> Expression:
        return self._binary("^", other, swapped=True)

    def __invert__(self) -> Expression:
        return Expression("~", (self,))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{short_repr(self)} is an expression, with a bool for each row: use & for and, | for or, ~ for not, with "
            "brackets around comparisons; (low < x) & (x < high) for chains; and .is_in([...]) for in"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{short_repr(self)} is an expression, and has a value for each row: nothing can be iterated")

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"{short_repr(self)} is an expression: use .is_in([...]), or .match(pattern) for texts")

    def __hash__(self) -> int:
        raise TypeError(
            f"{short_repr(self)} is an expression, and == makes another one of it: keep expressions in lists, or in "
            "dicts by name"
        )

    # --- numbers

    def abs(self) -> Expression:
        """Return the absolute value."""
        return Expression("abs", (self,))

    def floor(self) -> Expression:
        """Return the greatest integer that is not above."""
        return Expression("floor", (self,))

    def log1p(self) -> Expression:
        """Return ln(1 + x), and no value where x is -1 or below.

        The logarithm is computed by additions, multiplications and divisions alone, to within 4 units of the last
        place. So a row has the same bits on every machine, and wherever it lies in a batch.
        """
        return Expression("log1p", (self,))

    def clip(self, low: float, high: float) -> Expression:
        """Return the nearest value between two public bounds.

        Parameters
        ----------
        low, high : number
            With integers for both, integers stay integers.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, number
        >>> (col("pay") / col("hours")).clip(0, 200).typed(Schema(pay=number(0, 9e3), hours=number(0, 80))).high
        200.0
        """
        return Expression("clip", (self,), arithmetic.read_ends(low, high))

    def cut(self, edges: Any, labels: Any = None, *, default: int | str | None = None) -> Expression:
        """Return the bin that a number is in, as a category.

        Parameters
        ----------
        edges : list of number
            Public and increasing. k edges make k + 1 bins, the first and the last of which are open. A number on an
            edge is in the bin that begins there.
        labels : list of int or str, optional
            k + 1 distinct names of the bins. By default texts such as "[18, 65)".
        default : int or str, optional
            The label for rows that have no number: one of the labels, or one more. By default these have no label.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, integer
        >>> age = col("age").cut([18, 65], ["young", "middle", "old"], default="unknown")
        >>> program = age.compile(Schema(age=integer(0, 120)))
        >>> [program.scalar({"age": age}) for age in (17, 18, 64, 65, None)]
        ['young', 'middle', 'middle', 'old', 'unknown']
        """
        return Expression("cut", (self,), arithmetic.read_cut(edges, labels, default))

    # --- any values

    def is_in(self, values: Any) -> Expression:
        """Return whether the value is one of a public list.

        Parameters
        ----------
        values : list of values
            Of the kind of this expression; for a category, of its list.
        """
        return Expression("is_in", (self,), (literals(values, "is_in: values"),))

    def is_missing(self) -> Expression:
        """Return whether a column of the table has nothing in the row: None, NaN, an empty text, and the like.

        For conditions: a filter by it counts the users whose cells are missing. `Program.scalar`, which knows of no
        cells, calls every row without a value missing.
        """
        return Expression("is_missing", (self._of_table("is_missing"),))

    def is_unreadable(self) -> Expression:
        """Return whether a column of the table has something in the row that its declared type does not read.

        As of `is_missing`: ``filter(col("wage").is_unreadable())``, and then ``count_users()``, says how many users
        have such cells, with noise. `Program.scalar`, which knows of no cells, finds none.
        """
        return Expression("is_unreadable", (self._of_table("is_unreadable"),))

    def _of_table(self, method: str) -> Expression:
        if self.operation != "col":
            raise TypeError(f"{method} is of a column, such as col('wage').{method}(); got {short_repr(self)}")
        return self

    def default(self, value: Any) -> Expression:
        """Return the same, with a public value in rows that have none.

        Parameters
        ----------
        value : number, str, bool, date or datetime
            Of the same kind. Bounds, and lists of categories, are extended by it.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, category
        >>> col("job").default("unknown").typed(Schema(job=category(["clerk", "cook"]))).values
        ('clerk', 'cook', 'unknown')
        """
        read = operand(value, "default")
        if read.operation != "lit":
            raise TypeError(f"default: value must be public, and no expression; got {read!r}")
        return Expression("default", (self, read))

    def cast(self, declared: ColumnType) -> Expression:
        """Return the value as a column of another type would have it.

        What the type cannot hold becomes its default, or no value: texts that are no numbers, numbers that are not
        whole where integers are wanted (use `Expression.floor` to round), and what is not in a category's list.

        Parameters
        ----------
        declared : ColumnType
            Made by number, integer, boolean, category, key or timestamp.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, integer, key
        >>> program = col("code").cast(integer(0, 99, default=0)).compile(Schema(code=key(str)))
        >>> [program.scalar({"code": code}) for code in ("7", "x", "1000", None)]
        [7, 0, 99, 0]
        """
        if not isinstance(declared, ColumnType):
            raise TypeError(
                "cast: declared must be made by number, integer, boolean, category, key or timestamp; got "
                f"{short_repr(declared)}"
            )
        return Expression("cast", (self,), (declared,))

    # --- texts

    def lower(self) -> Expression:
        """Return the text in lower case, by Python's version of Unicode."""
        return Expression("lower", (self,))

    def strip(self) -> Expression:
        """Return the text without white space at its ends."""
        return Expression("strip", (self,))

    def slice(self, start: int | None = None, stop: int | None = None) -> Expression:
        """Return the characters from one place to before another, as Python's slices do.

        Of the text as it is read: a code of digits has its zeros with ``key(str, width=5)``, or with ``written=True``.

        Parameters
        ----------
        start, stop : int, optional
            Places from 0; negative ones count from the end.
        """
        return Expression("slice", (self,), parts.read_slice(start, stop))

    def match(self, pattern: str) -> Expression:
        r"""Return whether the whole text is as a public pattern says.

        As it is read: see `slice`.

        Parameters
        ----------
        pattern : str
            A regular expression of a small kind, for which the time is linear in the text: characters, ``.``, sets,
            ``\d \w \s`` of ASCII, ``|``, brackets, and ``* + ? {2,5}``.

        Examples
        --------
        >>> from userdp.tables.schema import Schema, key
        >>> program = col("code").match("[A-Z]{2}[0-9]+").compile(Schema(code=key(str)))
        >>> program.scalar({"code": "AB12"}), program.scalar({"code": "AB12 "})
        (True, False)
        """
        Pattern(pattern)
        return Expression("match", (self,), (str(pattern),))

    # --- times

    def year(self) -> Expression:
        """Return the year of a date or time."""
        return Expression("year", (self,))

    def month(self) -> Expression:
        """Return the month of a date or time, from 1 to 12."""
        return Expression("month", (self,))

    def day(self) -> Expression:
        """Return the day of the month of a date or time, from 1 to 31."""
        return Expression("day", (self,))

    def weekday(self) -> Expression:
        """Return the day of the week of a date or time, from 0 for Monday to 6."""
        return Expression("weekday", (self,))

    def hour(self) -> Expression:
        """Return the hour of a time, from 0 to 23."""
        return Expression("hour", (self,))


# --- how expressions begin


def operand(value: Any, where: str) -> Expression:
    """Read an expression or a public value; the type of anything else is named, and nothing of what is in it."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, When):
        raise TypeError(f"{where}: when(...) needs .then(...).otherwise(...)")
    known = literal(value, where)
    if known is None:
        raise TypeError(f"{where} takes expressions, numbers, texts, bools, dates and datetimes; got {_foreign(value)}")
    return Expression("lit", (), (known[0],))


def condition(value: Any, where: str) -> Expression:
    """Read an expression that is to be a condition; texts are not read as one."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Expression("lit", (), (bool(value),))
    raise TypeError(f'{where} takes an expression such as col("age") >= 18; got {_foreign(value)}')


def _foreign(value: object) -> str:
    """What a value of another library is, and what to do instead."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, str):
        return "a text: SQL and other code as text are not read; write it with col, lit and when"
    if callable(value) and not isinstance(value, type):
        return f"a {name}: functions of columns are not read; write it with col, lit and when, or use map_users"
    return f"a {name}: write it with col, lit and when, so that what it does to one row can be checked without data"


def col(name: str) -> Expression:
    """Return the value of a column.

    Parameters
    ----------
    name : str
        As in the schema.

    Examples
    --------
    >>> col("age") / 10
    col('age') / 10
    """
    if not isinstance(name, str):
        raise TypeError(f"col: name must be a text; got {_foreign(name)}")
    return Expression("col", (), (str(name),))


def lit(value: Any) -> Expression:
    """Return a public value, the same for all rows.

    Parameters
    ----------
    value : number, str, bool, date or datetime
        Integers are below 2**53 in absolute value; other numbers are finite; datetimes are without a time zone.

    Examples
    --------
    >>> lit(1) / (lit(1) + col("x"))
    lit(1) / (lit(1) + col('x'))
    """
    if isinstance(value, Expression):
        raise TypeError(f"lit: value must be public, and no expression; got {value!r}")
    return operand(value, "lit")


@dataclass(frozen=True, eq=False)
class When:
    """A condition, and what is taken where it holds; `When.then` and `When.otherwise` complete it."""

    condition: Expression
    value: Expression | None = None

    def then(self, value: Any) -> When:
        """State the value of rows in which the condition holds.

        Parameters
        ----------
        value : Expression or public value
        """
        if self.value is not None:
            raise TypeError("when: .then(...) is stated already; for a second condition use .otherwise(when(...)...)")
        return replace(self, value=operand(value, "then"))

    def otherwise(self, value: Any) -> Expression:
        """Return the expression, with the value of rows in which the condition does not hold.

        Parameters
        ----------
        value : Expression, public value or None
            None for no value. Rows whose condition has no value have none either way: see `Expression.default`.
        """
        if self.value is None:
            raise TypeError("when: .then(...) comes before .otherwise(...)")
        others = () if value is None else (operand(value, "otherwise"),)
        return Expression("when", (self.condition, self.value, *others))


def when(condition_: Any) -> When:
    """Begin a choice between two values, by a condition on the row.

    Both have one kind; integers become numbers beside numbers, and lists of categories are joined.

    Parameters
    ----------
    condition_ : Expression
        A bool for each row.

    Examples
    --------
    >>> from userdp.tables.schema import Schema, number
    >>> program = when(col("pay") > 100).then("high").otherwise("low").compile(Schema(pay=number(0, 1000)))
    >>> program.type.values, program.scalar({"pay": 50.0})
    (('high', 'low'), 'low')
    """
    return When(condition(condition_, "when"))
