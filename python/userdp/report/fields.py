"""Fields of results, declared once: how a field is written as JSON and read back, its schema, and what it says.

``delta: Fraction = written(SHARE, "The question, exactly.")`` in a class with the decorator `result` or `part` is an
argument of the constructor, a member of the JSON, of its schema and of the data frame, and an entry of the class's
documentation. None of this needs the compiled core.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from userdp.checker import values
from userdp.display import Told, render_page
from userdp.exact.encoding import Unreadable, encode, fraction_text
from userdp.exact.numbers import Bounds, Interval, PrivacyLevel, short_repr

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """What type checkers need."""
        return lambda decorator: decorator


Kind = TypeVar("Kind")
Schema = dict[str, Any]

DEFINED: dict[str, Schema] = {}
"""What schemas refer to by a name."""


@dataclass(frozen=True)
class Codec:
    """How one field is written as JSON, and read from it: strictly, so that every value has one spelling."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    schema: Schema = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    """What ends the names of its columns in a data frame, which hold the attributes of these names; none for lists."""

    def within(self, **limits: Any) -> Codec:
        """The codec with more in its schema: limits that the checker has, too."""
        return replace(self, schema={**self.schema, **limits})

    def named(self, name: str, description: str = "") -> Codec:
        """The codec whose schema is known by a name."""
        DEFINED[name] = {**({"description": description} if description else {}), **self.schema}
        return replace(self, schema={"$ref": f"#/$defs/{name}"})


def object_of(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }


def _is(kind: type, name: str, schema: str) -> Codec:
    def read(value: Any) -> Any:
        values.need(type(value) is kind, f"{value!r:.60} is not {name}")
        return value

    return Codec(lambda value: value, read, {"type": schema}, ("",))


def _matching(write: Callable[[Any], str], read: Callable[[Any], Any], pattern: str) -> Codec:
    return Codec(write, read, {"type": "string", "pattern": pattern}, ("",))


def _whole(code: Any) -> int:
    number = values.fraction(code)
    values.need(number.denominator == 1 and number >= 0, f"{code!r:.60} is not an integer >= 0")
    return number.numerator


def _hex(value: float) -> str:
    return (float(value) + 0.0).hex()  # + 0.0 is without a sign


_DIGITS, _FLOAT = "(0|[1-9][0-9]*)", r"0x[01]\.[0-9a-f]{13}p[+-](0|[1-9][0-9]*)"
_SHARE = _DIGITS + "(/([2-9]|[1-9][0-9]+))?"

TEXT, FLAG = _is(str, "a text", "string"), _is(bool, "true or false", "boolean")
COUNT = Codec(int, lambda value: values.count(value, "a number"), {"type": "integer", "minimum": 0}, ("",))
COUNT = COUNT.named("count")
POSITIVE = COUNT.within(minimum=1)
MEMORY = TEXT.within(pattern="^(none on |assumed)")
"""What is known of memory between calls."""
WHOLE = _matching(lambda number: fraction_text(Fraction(number)), _whole, f"^{_DIGITS}$").named(
    "whole", "An integer >= 0 of any length."
)
FRACTION = _matching(fraction_text, values.fraction, f"^-?{_SHARE}$").named(
    "fraction", "A fraction in lowest terms, as n or n/d with d > 1."
)
SHARE = _matching(fraction_text, values.fraction, f"^{_SHARE}$").named("share", "A fraction >= 0 in lowest terms.")
FLOAT = _matching(_hex, values.hex_float, rf"^(-?{_FLOAT}|-?0x0\.0p\+0|-?inf|nan)$").named(
    "float", "A float as float.hex() writes it."
)
SIZE = _matching(_hex, values.hex_float, rf"^({_FLOAT}|0x0\.0p\+0|inf)$").named(
    "size", "A float >= 0 as float.hex() writes it."
)


def _coded(name: str, code: Schema) -> Schema:
    return object_of({name: code})


_VALUE: Schema = {
    "anyOf": [
        {"type": ["null", "boolean", "integer", "string"]},
        {"type": "array", "items": {"$ref": "#/$defs/value"}},
        _coded("float", FLOAT.schema),
        _coded("fraction", FRACTION.schema),
        *(
            _coded(name, {"type": "string", "pattern": f"^{pattern}$"})
            for name, pattern in {
                "text": "([0-9a-f]{2})+",
                "bytes": "([0-9a-f]{2})*",
                "decimal": f"(-?{_DIGITS}E(0|-?[1-9][0-9]*)|-?Infinity|NaN)",
                "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
                "datetime": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?",
                "uuid": "[0-9a-f]{32}",
            }.items()
        ),
        _coded("set", {"type": "array", "items": {"$ref": "#/$defs/value"}, "uniqueItems": True}),
        _coded("repr", {"description": "An output of another type, which is not read back.", "type": "string"}),
    ]
}
VALUE = Codec(encode, lambda code: values.decode(code, Unreadable), _VALUE).named(
    "value", "The code of a value: see docs/report-format.md."
)


def optional(of: Codec) -> Codec:
    """None, or what the codec writes."""
    return Codec(
        lambda value: None if value is None else of.write(value),
        lambda code: None if code is None else of.read(code),
        {"anyOf": [of.schema, {"type": "null"}]},
        of.columns,
    )


def many(of: Codec, least: int = 0, *, unique: bool = False) -> Codec:
    """A tuple of any length; the schema also says how many there are at least, and whether all differ."""

    def read(codes: Any) -> tuple[Any, ...]:
        values.need(isinstance(codes, list), f"{codes!r:.60} is not a list")
        return tuple(map(of.read, codes))

    limits = ({"minItems": least} if least else {}) | ({"uniqueItems": True} if unique else {})
    schema = {"type": "array", "items": of.schema, **limits}
    return Codec(lambda members: list(map(of.write, members)), read, schema)


def row(*of: Codec) -> Codec:
    """A tuple with one codec for each place."""

    def read(codes: Any) -> tuple[Any, ...]:
        values.need(isinstance(codes, list) and len(codes) == len(of), f"{codes!r:.60} is not a list of {len(of)}")
        return tuple(codec.read(code) for codec, code in zip(of, codes, strict=True))

    schema = {"type": "array", "prefixItems": [one.schema for one in of], "items": False, "minItems": len(of)}
    return Codec(lambda members: [one.write(member) for one, member in zip(of, members, strict=True)], read, schema)


def named(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict of names and values; no name may be there twice, as one of the two would be lost."""
    found = dict(pairs)
    values.need(len(found) == len(pairs), f"{list(found)!r:.60} are names of which one is there twice")
    return found


def one_of(*accepted: str) -> Codec:
    """One of some words."""

    def read(value: Any) -> Any:
        values.need(isinstance(value, str) and value in accepted, f"{value!r:.60} is not one of {', '.join(accepted)}")
        return value

    return Codec(str, read, {"enum": list(accepted)}, ("",))


def members(make: Callable[..., Any], of: Mapping[str, Codec]) -> Codec:
    """An object with the attributes of something that `make` makes of them."""

    def read(code: Any) -> Any:
        values.need(isinstance(code, dict) and set(code) == set(of), f"fields missing or unknown in {code!r:.60}")
        return make(**{name: codec.read(code[name]) for name, codec in of.items()})

    return Codec(
        lambda value: {name: codec.write(getattr(value, name)) for name, codec in of.items()},
        read,
        object_of({name: codec.schema for name, codec in of.items()}),
    )


def _ends(codec: Codec, made: Callable[[Any, Any], Any]) -> Codec:
    """Two numbers around one that is not known exactly."""
    both = row(codec, codec)
    return Codec(
        lambda value: [codec.write(value.lower), codec.write(value.upper)],
        lambda code: made(*both.read(code)),
        both.schema,
        ("_lower", "_upper"),
    )


def _level(ratio: Fraction, exponent: Fraction) -> PrivacyLevel:
    values.need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    return PrivacyLevel(ratio, exponent)


PMF = many(SHARE, 1).named("pmf")
BOUNDS = _ends(SIZE, Bounds).named("bounds", "Two floats that enclose an exact number.")
ENCLOSED = _ends(SHARE, Interval).named("enclosed", "Two fractions that enclose an exact number.")
LEVEL = replace(
    members(_level, {"ratio": SHARE, "exponent": SHARE}).named("level", "epsilon = ln(ratio) + exponent."),
    columns=("",),
)


def _output_set(codes: Any) -> frozenset[Any]:
    found = frozenset(many(VALUE).read(codes))
    texts = list(map(values.text_of, codes))
    values.need(texts == sorted(set(texts)), f"{codes!r:.60} is no set of outputs, each once and in order")
    return found


OUTPUT_SET = Codec(
    lambda outputs: sorted(map(encode, outputs), key=values.text_of), _output_set, many(VALUE, unique=True).schema
)
"""A frozenset of outputs, in the order of their codes."""


# Classes that are made of such fields ------------------------------------------------------------------------


def written(codec: Codec, says: str = "", *, default: Any = MISSING) -> Any:
    """Declare a field: how it is written, and what it says, in the words of the documentation."""
    return field(default=default, metadata={"codec": codec, "says": says})


def codecs_of(kind: Any) -> dict[str, Codec]:
    """How each of the declared fields is written."""
    return {each.name: each.metadata["codec"] for each in dataclasses.fields(kind) if "codec" in each.metadata}


def documented(made: type[Kind]) -> type[Kind]:
    """The class whose documentation lists its fields, before its first other section."""
    lines = ["", "    Attributes", "    ----------"]
    for each in dataclasses.fields(made):  # type: ignore[arg-type]
        if "codec" in each.metadata:
            words = each.metadata["codec"].schema.get("enum")
            kind = "{" + ", ".join(map(json.dumps, words)) + "}" if words else each.type
            lines += [f"    {each.name} : {kind}"]
            lines += textwrap.wrap(each.metadata["says"], 112, initial_indent=" " * 8, subsequent_indent=" " * 8)
    before, gap, after = (made.__doc__ or "").partition("\n\n    Notes\n")
    if not gap:
        before, gap, after = before.partition("\n\n    Examples\n")
    made.__doc__ = before.rstrip() + "\n" + "\n".join(lines) + (gap + after if gap else "\n    ")
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(written,))
def part(kind: type[Kind]) -> type[Kind]:
    """Make of a class (decorator) a part of results: its fields are declared with `written`."""
    return documented(dataclass(frozen=True, slots=True)(kind))


def of(kind: Callable[..., Any], name: str = "") -> Codec:
    """The codec of such a part."""
    codec = members(kind, codecs_of(kind))
    return codec.named(name) if name else codec


@dataclass(frozen=True, repr=False)
class Result(Told):
    """A result of declared fields: constructor, documentation, JSON, text, page and data frame follow from them."""

    WRITTEN: ClassVar[Mapping[str, Codec]] = {}

    def __repr__(self) -> str:
        parts = (f"{name}={_parts_text(getattr(self, name))}" for name in self.WRITTEN)
        return f"{type(self).__name__}({', '.join(parts)})"

    def _content(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {name: codec.write(getattr(self, name)) for name, codec in self.WRITTEN.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON object, numbers exactly: as docs/report-format.md spells them."""
        return self._content()

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as a text."""
        return json.dumps(self.to_dict(), indent=indent, sort_keys=True)

    def to_html(self, *, date: datetime.date | None = None) -> str:
        """Return a self-contained page; needs Jinja2 (``pip install 'userdp[report]'``).

        Parameters
        ----------
        date : datetime.date, optional
            The date of the page, today by default. The result itself has none.
        """
        sections = self._sections()
        return render_page(sections, sections[0].title, date=date)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        cells = {}
        for name, codec in self.WRITTEN.items():
            value = getattr(self, name)
            for end in codec.columns:
                cells[name + end] = getattr(value, end[1:]) if end and value is not None else value
        return [cells]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(written,))
def result(kind: type[Kind]) -> type[Kind]:
    """Make of a subclass of `Result` (decorator) one whose fields are declared with `written`."""
    made = documented(dataclass(frozen=True, kw_only=True, repr=False)(kind))
    made.WRITTEN = codecs_of(made)  # type: ignore[attr-defined]
    return made


def _parts_text(value: Any) -> str:
    """The repr, in full while Python writes it: exact fractions may be longer than that."""
    try:
        return repr(value)
    except ValueError:
        return f"({', '.join(map(_parts_text, value))})" if isinstance(value, tuple) else short_repr(value)
