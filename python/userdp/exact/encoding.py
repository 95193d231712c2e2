"""Values as JSON, the `enc` of docs/report-format.md: exact for Python's numbers, readable elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.exact.numbers import shown

BLOCK_DIGITS = 4000
"""Python refuses to read and write longer integers in decimal."""
_FRACTION = re.compile(r"(-?)([0-9]+)(?:/([0-9]+))?")


@dataclass(frozen=True)
class Unreadable:
    """Stands for an object of which a loaded report holds only the ``repr``."""

    text: str

    def __repr__(self) -> str:
        return self.text


def encode(value: Any) -> Any:
    """Turn a value into JSON; objects that JSON cannot hold become their ``repr``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, tuple):
        return [encode(member) for member in value]
    if isinstance(value, list):
        return {"list": [encode(member) for member in value]}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Fraction):
        return {"fraction": fraction_text(value)}
    return {"repr": repr(value)}


def decode(encoded: Any) -> Any:
    """Turn JSON back into the value; a stored ``repr`` becomes `Unreadable`."""
    if isinstance(encoded, list):
        return tuple(decode(member) for member in encoded)
    if not isinstance(encoded, dict):
        return encoded
    ((tag, content),) = encoded.items()
    if tag == "list":
        return [decode(member) for member in content]
    if tag == "float":
        return float.fromhex(content)
    if tag == "fraction":
        return read_fraction(content)
    if tag == "repr":
        return Unreadable(str(content))
    raise ValueError(f"unknown tag {tag!r} in an encoded value")


def text_key(value: Any) -> str:
    """The encoding as text, to tell values apart: True is not 1, 0.0 is not -0.0; objects by their ``repr``."""
    return json.dumps(encode(value), sort_keys=True)


def canonical(value: Any) -> Any:
    """The value as plain Python: NumPy scalars and subclasses of numbers and strings become what they stand for.

    Raises
    ------
    TypeError
        For anything but None, bools, ints, floats, strings, Fractions, and tuples and lists of these.
    """
    encoded = encode(value)
    if _has_repr(encoded):
        raise TypeError(
            f"cannot tell {shown(value)} from other values exactly; use None, bools, ints, floats, strings, Fractions, "
            "or tuples and lists of these"
        )
    return decode(encoded)


def exact_key(value: Any, name: str) -> str:
    """`text_key`, for values that it tells apart without fail.

    Raises
    ------
    TypeError
        Naming the argument, for what `canonical` refuses.
    """
    try:
        return text_key(canonical(value))
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _has_repr(encoded: Any) -> bool:
    if isinstance(encoded, list):
        return any(map(_has_repr, encoded))
    if isinstance(encoded, dict):
        return "repr" in encoded or any(map(_has_repr, encoded.values()))
    return False


def printable(text: str) -> str:
    """Escape what a terminal could take for a command, or a reader for another line: all but printable characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def read_fraction(text: object) -> Fraction:
    """Read what `fraction_text` writes.

    Raises
    ------
    ValueError
        For anything else.
    """
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
    block = 10**BLOCK_DIGITS
    while number >= block:
        number, last = divmod(number, block)
        blocks.append(f"{last:0{BLOCK_DIGITS}d}")
    return "".join([str(number), *reversed(blocks)])
