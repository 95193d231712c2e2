"""Values as JSON, the `enc` of docs/report-format.md, and the one identity of what users give to finite algorithms.

The code of a value is JSON, and values of a closed set of plain types have a code each: two codes are equal exactly if
the values are the same in type and content. An algorithm is shown what is decoded from codes, and nothing else, so
whatever else an object carries cannot reach it. The table of types goes by the identity of `type(value)`: no method of
another class is ever called, and a subclass is another type.

*Same* means: True, 1 and 1.0 are three values, and so are 0.0 and -0.0, Decimal("1.0") and Decimal("1.00"). NumPy's
bools, numbers and texts are those of Python that they stand for, lists and arrays are tuples, and there is one NaN
among the floats and one among the Decimals.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

BLOCK_DIGITS = 4000
"""Python refuses to read and write longer integers in decimal."""
_BLOCK = 10**BLOCK_DIGITS
ACCEPTED = (
    "None, bools, ints, floats, texts, bytes, Fractions, Decimals, dates, times without a zone, UUIDs, NumPy's bools, "
    "numbers and texts, and tuples, lists, frozensets and arrays of these"
)
MOST_BITS = 2048
"""Of an integer: Python writes 617 digits whatever its settings are. And the largest exponent of a Decimal, since an
algorithm that makes an integer of 1E+999999999 does not end."""
MOST_DEPTH = 32
"""Of tuples in tuples."""
MOST_SIZE = 1 << 20
"""Of one value: its parts and characters. What a value refers to many times counts as often."""
NAN, DECIMAL_NAN = math.nan, Decimal("NaN")
"""One object each, since Python hashes a NaN by its address."""
INTEGER_TYPES = (
    *(np.byte, np.short, np.intc, np.int_, np.longlong, np.int8, np.int16, np.int32, np.int64, np.intp),
    *(np.ubyte, np.ushort, np.uintc, np.uint, np.ulonglong, np.uint8, np.uint16, np.uint32, np.uint64, np.uintp),
)
"""NumPy's integers. On every platform some of them are two classes of one size."""
_FRACTION = re.compile(r"(-?)([0-9]+)(?:/([0-9]+))?")
_type_name: Callable[[type], str] = type.__dict__["__name__"].__get__


@dataclass(frozen=True)
class Unreadable:
    """Stands for an object of which a loaded report holds only the ``repr``."""

    text: str

    def __repr__(self) -> str:
        return self.text


class UnknownValue(TypeError):
    """There is no code for a value."""


# --- from values to codes


def has_codes(dtype: np.dtype[Any]) -> bool:
    """Whether there are codes for what an array of this type holds; of objects, for some."""
    return dtype.kind in "biuUSO" or (dtype.kind == "f" and dtype.itemsize <= 8)


class _Writer:
    """Writes one value, up to a size."""

    def __init__(self, left: float, unknown: Callable[[Any, str], Any]) -> None:
        self.left, self.unknown = left, unknown

    def code(self, value: Any, depth: int = 0) -> Any:
        kind: Any = type(value)
        self.pay(1, value)
        write = _WRITERS.get(id(kind))
        if write is None or depth > MOST_DEPTH:
            too_deep = f"is nested over {MOST_DEPTH} deep"
            return self.unknown(value, too_deep if write else f"is of the type {_type_name(kind)}")
        return write(self, value, depth)

    def pay(self, size: int, value: Any) -> None:
        self.left -= size
        if self.left < 0:
            raise UnknownValue(f"is a {_type_name(type(value))} among over {MOST_SIZE:,} parts and characters")

    def of_plain(self, value: Any, depth: int) -> Any:
        return value

    def of_integer(self, value: Any, depth: int) -> Any:
        number = int(value)
        if number.bit_length() > MOST_BITS:
            return self.unknown(value, f"is an integer of over {MOST_BITS} bits")
        return number

    def of_float(self, value: Any, depth: int) -> Any:
        return {"float": float(value).hex()}

    def of_text(self, value: Any, depth: int) -> Any:
        text = str(value)
        self.pay(len(text), value)
        try:
            text.encode()
        except UnicodeEncodeError:
            # In JSON, two halves of a pair of surrogates would be the character that the pair stands for.
            return {"text": text.encode("utf-8", "surrogatepass").hex()}
        return text

    def of_bytes(self, value: Any, depth: int) -> Any:
        self.pay(len(value), value)
        return {"bytes": bytes(value).hex()}

    def of_fraction(self, value: Fraction, depth: int) -> Any:
        # The parts of a Fraction can be set to anything.
        top, bottom = getattr(value, "_numerator", None), getattr(value, "_denominator", None)
        if type(top) is not int or type(bottom) is not int or bottom == 0:
            return self.unknown(value, "is a Fraction that is no number")
        if max(top.bit_length(), bottom.bit_length()) > MOST_BITS:
            return self.unknown(value, f"is a Fraction of over {MOST_BITS} bits")
        return {"fraction": fraction_text(Fraction(top, bottom))}

    def of_decimal(self, value: Decimal, depth: int) -> Any:
        if value.is_nan():
            return {"decimal": "NaN"}
        sign, digits, exponent = value.as_tuple()
        self.pay(len(digits), value)
        if isinstance(exponent, int) and abs(exponent) > MOST_BITS:
            return self.unknown(value, f"is a Decimal with an exponent beyond {MOST_BITS}")
        size = "Infinity" if value.is_infinite() else f"{''.join(map(str, digits))}E{exponent}"
        return {"decimal": f"{'-' if sign else ''}{size}"}

    def of_date(self, value: datetime.date, depth: int) -> Any:
        return {"date": value.isoformat()}

    def of_datetime(self, value: datetime.datetime, depth: int) -> Any:
        if value.tzinfo is not None:
            return self.unknown(value, "is a time with a zone; use a time in UTC without one, or a text")
        return {"datetime": value.isoformat()}

    def of_uuid(self, value: UUID, depth: int) -> Any:
        number = getattr(value, "int", None)  # can be set to anything
        if type(number) is not int or not 0 <= number < 1 << 128:
            return self.unknown(value, "is a UUID without a number")
        return {"uuid": f"{number:032x}"}

    def of_tuple(self, value: Any, depth: int) -> Any:
        return [self.code(member, depth + 1) for member in value]

    def of_array(self, value: Any, depth: int) -> Any:
        if not has_codes(value.dtype):
            return self.unknown(value, f"is an array of dtype {value.dtype}")
        # Part by part: rows without columns, and one long text in many places, take no room in the array itself.
        try:
            return [self.code(part, depth + 1) for part in value] if value.ndim else self.code(value.item(), depth + 1)
        except (ValueError, SystemError):  # how NumPy meets characters that are none
            return self.unknown(value, "is an array with texts that are none")

    def of_frozenset(self, value: frozenset[Any], depth: int) -> Any:
        found = {_text(code): code for code in (self.code(member, depth + 1) for member in value)}
        codes = [found[text] for text in sorted(found)]
        if len(frozenset(map(decode, codes))) < len(codes):
            return self.unknown(value, "is a frozenset with members that Python takes for one")
        return {"set": codes}


_WRITERS: dict[int, Callable[[_Writer, Any, int], Any]] = {
    **{id(kind): _Writer.of_plain for kind in (type(None), bool)},
    id(np.bool_): lambda writer, value, depth: bool(value),
    **{id(kind): _Writer.of_integer for kind in (int, *INTEGER_TYPES)},
    **{id(kind): _Writer.of_float for kind in (float, np.float16, np.float32, np.float64)},
    **{id(kind): _Writer.of_text for kind in (str, np.str_)},
    **{id(kind): _Writer.of_bytes for kind in (bytes, np.bytes_)},
    id(Fraction): _Writer.of_fraction,
    id(Decimal): _Writer.of_decimal,
    id(datetime.date): _Writer.of_date,
    id(datetime.datetime): _Writer.of_datetime,
    id(UUID): _Writer.of_uuid,
    **{id(kind): _Writer.of_tuple for kind in (tuple, list)},
    id(np.ndarray): _Writer.of_array,
    id(frozenset): _Writer.of_frozenset,
}


def _refuse(value: Any, why: str) -> Any:
    raise UnknownValue(why)


def code_of(value: Any) -> Any:
    """The code of a value of the closed set, equal for the same values only; UnknownValue for all others, unseen."""
    return _Writer(MOST_SIZE, _refuse).code(value)


def canonical(value: Any, name: str) -> Any:
    """The value that is decoded from the code: plain, immutable, and all that an algorithm is shown of it."""
    try:
        return decode(code_of(value))
    except UnknownValue as error:
        raise TypeError(f"{name} {error}; accepted are {ACCEPTED}") from None


def key_of(value: Any) -> str:
    """The code of a value as text: hashable, and in an order that depends on nothing else."""
    return _text(code_of(value))


def _text(code: Any) -> str:
    return json.dumps(code, sort_keys=True, separators=(",", ":"))


def encode(value: Any) -> Any:
    """The code of a value for a report; objects that have none become their ``repr``, for readers."""
    return _Writer(math.inf, lambda unknown, why: {"repr": repr(unknown)}).code(value)


# --- and back


def decode(code: Any) -> Any:
    """Turn JSON back into the value; a stored ``repr`` becomes `Unreadable`."""
    if isinstance(code, list):
        return tuple(map(decode, code))
    if not isinstance(code, dict):
        return code
    ((tag, content),) = code.items()
    if tag not in _READERS:
        raise ValueError(f"unknown tag {tag!r} in an encoded value")
    return _READERS[tag](content)


def _read_float(text: str) -> float:
    number = float.fromhex(text)
    return NAN if math.isnan(number) else number


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": _read_float,
    "fraction": lambda text: read_fraction(text),
    "text": lambda digits: bytes.fromhex(digits).decode("utf-8", "surrogatepass"),
    "bytes": bytes.fromhex,
    "decimal": lambda text: DECIMAL_NAN if text == "NaN" else Decimal(text),
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "uuid": lambda digits: UUID(hex=digits),
    "set": lambda codes: frozenset(map(decode, codes)),
    "repr": lambda text: Unreadable(str(text)),
}


def printable(text: str) -> str:
    """Escape what a terminal could take for a command, or a reader for another line: all but printable characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def read_fraction(text: object) -> Fraction:
    """Read what `fraction_text` writes."""
    match = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r:.60} is not a fraction written as 'n' or 'n/d'")
    sign, top, bottom = match.groups()
    value = Fraction(_number(top), _number(bottom or "1"))
    return -value if sign else value


def _number(digits: str) -> int:
    # In blocks, because int() refuses very long strings.
    value = 0
    for start in range(0, len(digits), BLOCK_DIGITS):
        block = digits[start : start + BLOCK_DIGITS]
        value = value * 10 ** len(block) + int(block)
    return value


def fraction_text(value: Fraction) -> str:
    """Write a fraction as ``n`` or ``n/d``, however long."""
    top = ("-" if value < 0 else "") + _digits(abs(value.numerator))
    return top if value.denominator == 1 else f"{top}/{_digits(value.denominator)}"


def _digits(number: int) -> str:
    # In blocks, because str() refuses very long integers and exact masses may be that long.
    blocks: list[str] = []
    while number >= _BLOCK:
        number, last = divmod(number, _BLOCK)
        blocks.append(f"{last:0{BLOCK_DIGITS}d}")
    return "".join([str(number), *reversed(blocks)])
