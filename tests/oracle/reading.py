"""Slow reference for how a cell of a table is read: by its own type and value, and by nothing else of its table.

Cells that only NumPy, pandas, Arrow or polars can hold are a `Cell(tag, value)`, which says what is there physically:
integers, texts, bytes. Nothing of these libraries is imported, and nothing of the package.

`read(kind, cell)` is the canonical value, or None. `exact` says how a column is read: False (numbers are doubles), True
(all digits count: columns of declared types), or "written" (a text is itself, as its owner has promised).
"""

from __future__ import annotations

import math
import re
import unicodedata
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

KINDS = ("number", "integer", "boolean", "text", "key_int", "day", "time", "id")
LARGEST_WHOLE = 2**53
"""Doubles tell whole numbers below it apart."""
DAY = 86_400_000_000
EPOCH = date(1970, 1, 1).toordinal()
FIRST = (1 - EPOCH) * DAY
LAST = (date.max.toordinal() - EPOCH + 1) * DAY
"""Microseconds of the years 1 to 9999: from FIRST to below LAST."""

Exact: TypeAlias = "bool | str"
Plain: TypeAlias = "tuple[Any, ...]"


class Cell(NamedTuple):
    """What is physically in a column of a library: a tag, and integers, texts or bytes."""

    tag: str
    value: Any


MISSING: Plain = ("missing",)
UNREADABLE: Plain = ("unreadable",)
WRITTEN_FOR_MISSING = ("", "nan", "NaN", "-nan", "-NaN", "NaT")
"""What libraries write for missing values when they make texts of a column."""
CLASSES = (bool, int, float, complex, str, bytes, Decimal, Fraction, datetime, date, time, uuid.UUID, tuple)
NANOSECONDS = {
    "D": DAY * 1000,
    "W": 7 * DAY * 1000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "s": 10**9,
    "ms": 10**6,
    "us": 1000,
    "ns": 1,
}
BLANKS = (
    "".join(map(chr, range(0x21)))
    + "\x7f\x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
TAGS_OF_MISSING = ("pd.NA", "pd.NaT", "null")
TAGS_OF_TIMES = ("timestamp", "np.datetime64", "pd.Timestamp")


# --- what a cell is


def plain(cell: Any) -> Plain:
    """What a cell is, by its class alone: a form and its parts.

    The forms: missing, unreadable, bool, number (exact), text, bytes, time (microseconds since 1970, UTC), clock
    (microseconds since midnight), period (frequency and ordinal), interval (ends and which are closed), tuple.
    """
    if cell is None:
        return MISSING
    if type(cell) is Cell:
        return _of_library(*cell)
    # A class that is made from one of these is read as that, and not by its own methods.
    kind = next((base for base in type.mro(type(cell)) if base in CLASSES), None)
    if kind is bool:
        return ("bool", cell)
    if kind is int:
        return ("number", int.__int__(cell))
    if kind is float:
        value = float.__float__(cell)
        return MISSING if math.isnan(value) else ("number", value)
    if kind is complex:
        # One complex number makes complex numbers of a whole column.
        value = complex.__complex__(cell)
        return UNREADABLE if value.imag != 0 else plain(value.real)
    if kind is str:
        return ("text", str.__str__(cell))
    if kind is bytes:
        return ("bytes", bytes.__getitem__(cell, slice(None)))
    if kind is Decimal:
        exact = Decimal(cell)
        if exact.is_nan():
            return MISSING
        return ("number", float(exact) if exact.is_infinite() else exact)
    if kind is Fraction:
        return ("number", Fraction(cell._numerator, cell._denominator))
    if kind is datetime:
        return _of_datetime(cell)
    if kind is date:
        return ("time", (date.toordinal(cell) - EPOCH) * DAY)
    if kind is time:
        return UNREADABLE if _field(time, cell, "tzinfo") is not None else ("clock", _of_clock(time, cell))
    if kind is uuid.UUID:
        return ("text", str(uuid.UUID(int=cell.int)))
    if kind is tuple:
        return ("tuple", tuple.__getitem__(cell, slice(None)))
    return UNREADABLE


def _field(kind: type, cell: Any, name: str) -> Any:
    """A field as the plain class has it, whatever a class made from it says."""
    return getattr(kind, name).__get__(cell)


def _of_clock(kind: type, cell: Any) -> int:
    """Microseconds since midnight."""
    seconds = _field(kind, cell, "hour") * 3600 + _field(kind, cell, "minute") * 60 + _field(kind, cell, "second")
    return int(seconds * 10**6 + _field(kind, cell, "microsecond"))


def _of_datetime(cell: datetime) -> Plain:
    offset = timedelta(0)
    zone = _field(datetime, cell, "tzinfo")
    if zone is not None:
        # Of the zones that are known only these need no other library.
        if type(zone) not in (timezone, ZoneInfo):
            return UNREADABLE
        found = datetime.utcoffset(cell)
        assert found is not None
        offset = found
    local = (date.toordinal(cell) - EPOCH) * DAY + _of_clock(datetime, cell)
    return _instant((local - offset // timedelta(microseconds=1)) * 1000)


def _of_library(tag: str, value: Any) -> Plain:
    """What a cell of NumPy, pandas, Arrow or polars is."""
    if tag in ("subclass", "category"):
        return plain(value)
    if tag in TAGS_OF_MISSING:
        return MISSING
    if tag == "np.bool":
        return ("bool", bool(value))
    if tag == "np.int":  # of any width, also the 128 bits of polars
        return ("number", int(value))
    if tag in ("np.float", "np.longdouble"):  # of any width; a float, or a text of one
        return plain(float(value))
    if tag == "np.complex":
        return plain(complex(value))
    if tag == "np.str":
        return ("text", value)
    if tag == "np.bytes":
        return ("bytes", value)
    if tag == "decimal":  # an integer, and how many of its digits are behind the point
        digits, scale = value
        return ("number", Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -scale)))
    if tag == "date32":
        return _instant(value * DAY * 1000)
    if tag == "date64":
        return _instant(value // 86_400_000 * DAY * 1000)
    if tag in TAGS_OF_TIMES:
        return _of_ticks(*value)
    if tag == "time64":
        unit, ticks = value
        nanoseconds = ticks * NANOSECONDS[unit]
        return ("clock", nanoseconds // 1000) if 0 <= nanoseconds < DAY * 1000 else UNREADABLE
    if tag == "pd.Period":
        return ("period", *value)
    if tag == "pd.Interval":
        return ("interval", *value)
    return UNREADABLE  # durations, lists, structs, maps, classes that nobody knows


def _of_ticks(unit: str, ticks: int | None) -> Plain:
    """A time by its unit and its integer, which is in UTC where there is a zone."""
    if ticks is None or ticks == -(2**63):
        return MISSING
    if unit in ("Y", "M"):
        months = ticks * 12 if unit == "Y" else ticks
        year = 1970 + months // 12
        if not 1 <= year <= 9999:
            return UNREADABLE
        return ("time", (date(year, months % 12 + 1, 1).toordinal() - EPOCH) * DAY)
    return _instant(ticks * NANOSECONDS[unit]) if unit in NANOSECONDS else UNREADABLE


def _instant(nanoseconds: int) -> Plain:
    """Cut down to microseconds; unreadable beyond the years 1 to 9999."""
    microseconds = nanoseconds // 1000
    return ("time", microseconds) if FIRST <= microseconds < LAST else UNREADABLE


def nearest_double(exact: Any) -> float:
    """The nearest double of an exact number; infinite beyond them."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# --- what a text says

NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?")
ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    r" ?(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?)?"
)
INTERVAL = re.compile(r"([\[(])\s*([^,\[\]()]+?)\s*,\s*([^,\[\]()]+?)\s*([\])])")
UUIDS = re.compile(
    r"(?:urn:uuid:)?\{?([0-9a-f]{8}(-?)[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12})\}?", re.IGNORECASE
)
WORDS_FOR_TRUE = {"true", "t", "yes", "y", "on"}
WORDS_FOR_FALSE = {"false", "f", "no", "n", "off"}
WORDS_OF_BOOLS = {"true": 1, "false": 0}


def bare(text: str) -> str:
    """In normal form C, without blanks at the ends."""
    return unicodedata.normalize("NFC", text).strip(BLANKS)


def text_in_bytes(raw: bytes) -> str | None:
    """The text that bytes are. NULs at the end are padding; other control characters make them packed numbers."""
    raw = raw.rstrip(b"\0")
    if any(byte < 32 and byte not in b"\t\n\r" for byte in raw):
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def number_in(text: str) -> re.Match[str] | None:
    """The sign, digits, fraction and exponent of a text that says a finite number."""
    found = NUMBER.fullmatch(text)
    return found if found and (found[2] or found[3]) else None


def infinity_in(text: str) -> float | None:
    """The infinity that a text says."""
    found = INFINITE.fullmatch(text)
    if not found:
        return None
    return -math.inf if found[1] == "-" else math.inf


def time_in(text: str) -> int | None:
    """Microseconds since 1970 in UTC of a text in the form of ISO 8601."""
    found = ISO.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - EPOCH
    except ValueError:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    offset = 0
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(6, "0")
        east = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        if east[0] > 23 or east[1] > 59 or east[2] > 59:
            return None
        offset = (east[0] * 3600 + east[1] * 60 + east[2]) * (1 if zone[0] == "+" else -1)
    since = days * DAY + (hours * 3600 + minutes * 60 + seconds - offset) * 10**6 + _microseconds(fraction)
    return since if FIRST <= since < LAST else None


def clock_in(text: str) -> int | None:
    """Microseconds since midnight of a text that says a time of day."""
    found = CLOCK.fullmatch(text)
    if not found:
        return None
    return (int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)) * 10**6 + _microseconds(found[4])


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))


# --- the one text of a cell


def text_of_clock(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 10**6)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def text_of_time(since: int) -> str:
    days, rest = divmod(since, DAY)
    day = date.fromordinal(days + EPOCH).isoformat()
    return day if rest == 0 else f"{day} {text_of_clock(rest)}"


def text_of_double(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if abs(value) < LARGEST_WHOLE and value == int(value) else repr(value + 0.0)


def text_of_digits(sign: str, digits: str, exponent: int) -> str:
    """One spelling of the digits times a power of ten: never rounded, never made longer than 40 digits."""
    short = digits.lstrip("0").rstrip("0")
    if not short:
        return "0"
    exponent += len(digits) - len(digits.rstrip("0"))
    sign = "-" if sign == "-" else ""
    if exponent >= 0 and len(short) + exponent <= 40:
        return sign + short + "0" * exponent
    if -40 <= exponent < 0:
        short = short.zfill(1 - exponent)
        return f"{sign}{short[:exponent]}.{short[exponent:]}"
    return f"{sign}{short}e{exponent}"


def _text_of_match(found: re.Match[str]) -> str:
    fraction = found[3] or ""
    return text_of_digits(found[1], found[2] + fraction, int(found[4] or 0) - len(fraction))


def _whole(value: Any) -> int | None:
    """The whole number that an exact number is; of decimals the digits are asked, as exponents may be large."""
    if type(value) is int:
        return value
    if type(value) is float and math.isfinite(value) and value == int(value):
        return int(value)
    if type(value) is Fraction and value.denominator == 1:
        return int(value)
    return None


def text_of_number(value: Any, exact: Exact) -> str:
    if not exact:
        return text_of_double(nearest_double(value))
    whole = _whole(value)
    if whole is not None:
        if whole.bit_length() > 13000:  # beyond 3,900 digits: infinite
            return text_of_double(nearest_double(whole))
        return text_of_digits("-" if whole < 0 else "", str(abs(whole)), 0)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        return text_of_digits("-" if sign else "", "".join(map(str, digits)), exponent)
    double = nearest_double(value)
    if math.isinf(double):
        return text_of_double(double)
    found = number_in(repr(double))
    assert found is not None
    return _text_of_match(found)


def text_of_text(given: str, exact: Exact) -> str | None:
    """The one spelling of a text; None for what stands for a missing value."""
    text = bare(given)
    if text in WRITTEN_FOR_MISSING:
        return None
    if exact == "written":
        return text
    if text.lower() in WORDS_OF_BOOLS:
        return str(WORDS_OF_BOOLS[text.lower()])
    number = number_in(text)
    if number:
        if exact:
            return _text_of_match(number)
        value = float(text)
        # The one exception: a number beyond doubles stays the text that it is.
        return text if math.isinf(value) else text_of_double(value)
    infinite = infinity_in(text)
    if infinite is not None:
        return text_of_double(infinite)
    since = time_in(text)
    if since is not None:
        return text_of_time(since)
    clock = clock_in(text)
    if clock is not None:
        return text_of_clock(clock)
    interval = INTERVAL.fullmatch(text)
    if interval:
        low, high = text_of_text(interval[2], exact), text_of_text(interval[3], exact)
        if low is not None and high is not None:
            return f"{interval[1]}{low}, {high}{interval[4]}"
    return text


def text_of_period(frequency: str, ordinal: int) -> str | None:
    base = frequency.partition("-")[0]
    if base in ("Y", "A", "YE"):
        return str(1970 + ordinal) if 1 <= 1970 + ordinal <= 9999 else None
    if base in ("Q", "QE"):
        year = 1970 + ordinal // 4
        return f"{year:04}Q{ordinal % 4 + 1}" if 1 <= year <= 9999 else None
    if base in ("M", "ME"):
        year = 1970 + ordinal // 12
        return f"{year:04}-{ordinal % 12 + 1:02}" if 1 <= year <= 9999 else None
    since = time_of_period(frequency, ordinal)
    return None if since is None else text_of_time(since)


def time_of_period(frequency: str, ordinal: int) -> int | None:
    """The beginning of a period; weeks, business days and years that do not end in December have none here."""
    base, _, end = frequency.partition("-")
    if end not in ("", "DEC"):
        return None
    if base in ("Y", "A", "YE", "Q", "QE", "M", "ME"):
        months = ordinal * {"Y": 12, "A": 12, "Q": 3, "M": 1}[base[0]]
        year = 1970 + months // 12
        if not 1 <= year <= 9999:
            return None
        return (date(year, months % 12 + 1, 1).toordinal() - EPOCH) * DAY
    unit = {"H": "h", "T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns"}.get(base, base)
    if unit not in NANOSECONDS or unit in ("W", "m"):
        return None
    found = _instant(ordinal * NANOSECONDS[unit])
    return None if found is UNREADABLE else int(found[1])


def text(cell: Any, exact: Exact = False) -> str | None:
    """The one text that a cell is, for categories and keys; None for what is none."""
    form, *parts = plain(cell)
    if form == "bytes":
        found = text_in_bytes(parts[0])
        if found is None:
            return None
        form, parts = "text", [found]
    if form == "bool":
        return str(int(parts[0]))
    if form == "number":
        return text_of_number(parts[0], exact)
    if form == "text":
        # A lone surrogate cannot be shown.
        return None if any(0xD800 <= ord(one) < 0xE000 for one in parts[0]) else text_of_text(parts[0], exact)
    if form == "time":
        return text_of_time(parts[0])
    if form == "clock":
        return text_of_clock(parts[0])
    if form == "period":
        return text_of_period(parts[0], parts[1])
    if form == "interval":
        low, high, closed = text(parts[0], exact), text(parts[1], exact), parts[2]
        if low is None or high is None:
            return None
        left, right = "[" if closed in ("left", "both") else "(", "]" if closed in ("right", "both") else ")"
        return f"{left}{low}, {high}{right}"
    return None


def identity(cell: Any, exact: Exact = False, depth: int = 0) -> Any:
    """Whose row it is; None for nobody's. Spellings of a UUID are one, and bytes that are no text count."""
    form, *parts = plain(cell)
    if form == "tuple":
        if not 1 <= len(parts[0]) <= 64 or depth > 4:
            return None
        several = tuple(identity(part, exact, depth + 1) for part in parts[0])
        if None in several:
            return None
        return several[0] if len(several) == 1 else several
    if form == "bytes":
        raw = parts[0].rstrip(b"\0")
        inside = text_in_bytes(raw)
        if inside is None and any(byte < 32 for byte in raw):
            return "bytes:" + raw.hex()
        found = text_of_text(raw.decode("utf-8", "surrogateescape") if inside is None else inside, exact)
    elif form == "text":
        found = text_of_text(parts[0], exact)
    else:
        return text(cell, exact)
    if found and exact != "written":
        spelled = UUIDS.fullmatch(found)
        if spelled:
            return text_of_text(spelled[1].replace("-", "").lower(), exact)
    return found


def same_person(first: Any, second: Any, exact: Exact = False) -> bool:
    """Whether two ids are one person's."""
    one, other = identity(first, exact), identity(second, exact)
    return one is not None and one == other


# --- the kinds


def number(cell: Any) -> float | None:
    """A double, perhaps infinite."""
    form, *parts = plain(cell)
    if form == "bytes":
        form, parts = "text", [text_in_bytes(parts[0])]
    if form == "bool":
        return float(parts[0])
    if form == "number":
        return nearest_double(parts[0]) + 0.0
    if form == "text" and parts[0] is not None:
        said = bare(parts[0])
        if said.lower() in WORDS_OF_BOOLS:
            return float(WORDS_OF_BOOLS[said.lower()])
        return float(said) + 0.0 if number_in(said) else infinity_in(said)
    return None


def boolean(cell: Any) -> bool | None:
    form, *parts = plain(cell)
    if form == "bytes":
        form, parts = "text", [text_in_bytes(parts[0])]
    if form == "text" and parts[0] is not None and bare(parts[0]).lower() in WORDS_FOR_TRUE | WORDS_FOR_FALSE:
        return bare(parts[0]).lower() in WORDS_FOR_TRUE
    value = number(cell)
    return bool(value) if value in (0.0, 1.0) else None


def when(cell: Any) -> int | None:
    """Microseconds since 1970, in UTC where there is an offset."""
    form, *parts = plain(cell)
    if form == "bytes":
        form, parts = "text", [text_in_bytes(parts[0])]
    if form == "time":
        return int(parts[0])
    if form == "period":
        return time_of_period(parts[0], parts[1])
    return time_in(bare(parts[0])) if form == "text" and parts[0] is not None else None


def read(kind: str, cell: Any, exact: Exact = False) -> Any:
    """The canonical value of a cell for one of KINDS, or None."""
    if kind == "number":
        return number(cell)
    if kind in ("integer", "key_int"):
        value = number(cell)
        if value is None or (math.isfinite(value) and value != int(value)):
            return None
        if kind == "key_int":
            return int(value) if abs(value) < LARGEST_WHOLE else None
        return int(min(max(value, -LARGEST_WHOLE), LARGEST_WHOLE))
    if kind == "boolean":
        return boolean(cell)
    if kind == "text":
        return text(cell, exact)
    if kind == "id":
        return identity(cell, exact)
    since = when(cell)
    if kind == "time" or since is None:
        return since
    assert kind == "day"
    return since // DAY


def status(kind: str, cell: Any) -> str:
    """Whether a cell has a "value", is "missing", or is "unreadable"."""
    if read(kind, cell) is not None:
        return "value"
    form, *parts = plain(cell)
    said = text_in_bytes(parts[0]) if form == "bytes" else parts[0] if form == "text" else None
    if said is not None:
        word = bare(said)
        of_numbers = kind not in ("text", "id") and word.lower() in ("nan", "+nan", "-nan")
        return "missing" if word in WRITTEN_FOR_MISSING or of_numbers else "unreadable"
    return "missing" if form == "missing" else "unreadable"


# --- declared types

_NUMBERS, _ALL = "number integer boolean text key_int id", " ".join(KINDS)
FAMILIES = {
    "bool": _NUMBERS,
    "int": _NUMBERS,
    "float": _NUMBERS,
    "decimal": _NUMBERS,
    "string": _ALL,
    "binary": _ALL,
    "date": "text day time id",
    "timestamp": "text day time id",
    "timestamp_zone": "text day time id",
    "clock": "text id",
    "duration": "",
    "uuid": "text id",
    "interval": "",
    "list": "",
    "struct": "",
    "map": "",
    "union": "",
    "null": _ALL,
    "object": _ALL,
    "unknown_extension": "",
}
"""Of Arrow, polars and databases: the kinds that are read of a type. All of pandas is read, whatever the kind."""


def declared(family: str, kind: str) -> bool:
    """Whether a declared type is read as a kind; otherwise it is refused when the session is made."""
    return kind in FAMILIES[family].split()
