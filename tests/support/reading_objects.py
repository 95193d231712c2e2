"""Python objects that are a cell of `oracle.reading`, among them hostile ones, and times in all kinds of zones."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import dateutil.tz
import numpy as np
import pandas as pd

from oracle.reading import EPOCH, FIRST, LAST, Cell, plain


class CannotBeMade(Exception):
    """No object of Python, NumPy or pandas is this cell."""


class AskedError(BaseException):
    """A method of a value was called, which reading must not do."""


def _asked(*_: Any, **__: Any) -> NoReturn:
    raise AskedError("a value was asked")


class _Hostile:
    """What a value can answer itself raises, and the class that it says it has is another one."""

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __bool__ = _asked  # type: ignore[assignment]
    __str__ = __repr__ = __format__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __getitem__ = _asked  # type: ignore[assignment]
    __contains__ = __add__ = __mod__ = __neg__ = __abs__ = __round__ = __trunc__ = __complex__ = __bytes__ = _asked


class HostileInt(_Hostile, int):
    """An integer."""


class HostileFloat(_Hostile, float):
    """A float."""

    is_integer = as_integer_ratio = hex = _asked  # type: ignore[assignment]


class HostileText(_Hostile, str):
    """A text."""

    encode = strip = lower = casefold = isascii = _asked  # type: ignore[assignment]


class HostileBytes(_Hostile, bytes):
    """Bytes."""

    decode = rstrip = strip = _asked  # type: ignore[assignment]


class HostileTuple(_Hostile, tuple):  # type: ignore[type-arg]
    """A tuple."""


class HostileTime(_Hostile, dt.datetime):
    """A time."""

    isoformat = timestamp = astimezone = toordinal = utcoffset = date = _asked  # type: ignore[assignment]


class HostileDate(_Hostile, dt.date):
    """A date."""

    isoformat = toordinal = timetuple = _asked  # type: ignore[assignment]


class HostileDecimal(_Hostile, Decimal):
    """A decimal."""

    as_tuple = is_nan = is_finite = as_integer_ratio = _asked  # type: ignore[assignment]


class HostileFraction(_Hostile, Fraction):
    """A fraction."""


class HostileUuid(_Hostile, uuid.UUID):
    """A UUID."""


class LyingText(str):
    """A text that says it is an integer."""

    __class__ = int  # type: ignore[assignment]


class LyingObject:
    """No text, which says that it is one."""

    __class__ = str  # type: ignore[assignment]

    def __str__(self) -> str:
        return "ann"


class Texts(str, enum.Enum):
    """Members are texts."""

    CODE = "05"
    NAME = "ann"


class Wholes(enum.IntEnum):
    """Members are integers."""

    FIVE = 5
    ONE = 1


class Plain(enum.Enum):
    """Members are neither."""

    FIVE = 5


class PlainText(str):
    """A class made from str, as parsers of XML give."""


class PlainFloat(float):
    """A class made from float."""


class PlainInt(int):
    """A class made from int."""


class PlainTuple(tuple):  # type: ignore[type-arg]
    """A class made from tuple."""


class PlainTime(dt.datetime):
    """A class made from datetime."""


class UnknownZone(dt.tzinfo):
    """A zone of a class that nobody knows."""

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(hours=1)

    def dst(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(0)

    def tzname(self, _: dt.datetime | None) -> str:
        return "Nowhere"

    def fromutc(self, time: dt.datetime) -> dt.datetime:
        return time + dt.timedelta(hours=1)


UNREADABLE = Cell("unknown", None)

SUBCLASSES: list[tuple[Any, Any]] = [
    (HostileInt(5), 5),
    (HostileFloat(1.5), 1.5),
    (HostileText("05"), "05"),
    (HostileText("ann"), "ann"),
    (HostileText("2024-01-31"), "2024-01-31"),
    (HostileBytes(b"ann"), b"ann"),
    (HostileTuple((5, "a")), (5, "a")),
    (HostileTime(2024, 1, 31, 9, 30), dt.datetime(2024, 1, 31, 9, 30)),
    (HostileDate(2024, 1, 31), dt.date(2024, 1, 31)),
    (HostileDecimal("1.5"), Decimal("1.5")),
    (HostileFraction(1, 2), Fraction(1, 2)),
    (LyingText("ann"), "ann"),
    (LyingObject(), UNREADABLE),
    (Texts.CODE, "05"),
    (Texts.NAME, "ann"),
    (Wholes.FIVE, 5),
    (Wholes.ONE, 1),
    (Plain.FIVE, UNREADABLE),
    (PlainText("05"), "05"),
    (PlainInt(5), 5),
    (PlainFloat(1.5), 1.5),
    (PlainTuple((5, "a")), (5, "a")),
    (PlainTime(2024, 1, 31, 9, 30), dt.datetime(2024, 1, 31, 9, 30)),
    (HostileUuid(int=5), uuid.UUID(int=5)),
]
"""Objects of classes that are made from plain ones, and the plain cells that they are."""


def zones() -> list[tuple[str, dt.tzinfo]]:
    """Zones of all classes that are known."""
    berlin = dateutil.tz.gettz("Europe/Berlin")
    found: list[tuple[str, dt.tzinfo]] = [
        ("timezone", dt.timezone(dt.timedelta(hours=5, minutes=30))),
        ("timezone with seconds", dt.timezone(-dt.timedelta(hours=5, seconds=15))),
        ("timezone.utc", dt.timezone.utc),
        ("ZoneInfo", zoneinfo.ZoneInfo("Europe/Berlin")),
        ("ZoneInfo UTC", zoneinfo.ZoneInfo("UTC")),
        ("dateutil tzutc", dateutil.tz.tzutc()),
        ("dateutil tzoffset", dateutil.tz.tzoffset("X", 3600)),
        ("dateutil tzlocal", dateutil.tz.tzlocal()),
        ("dateutil tzrange", dateutil.tz.tzrange("CET", 3600)),
        ("dateutil tzstr", dateutil.tz.tzstr("EST5EDT")),
    ]
    if berlin is not None:
        found.append(("dateutil tzfile", berlin))
    try:
        import pytz
    except ImportError:
        return found
    return [*found, ("pytz", pytz.timezone("Europe/Berlin")), ("pytz utc", pytz.utc), ("pytz", pytz.FixedOffset(90))]


INSTANTS = [
    dt.datetime(2024, 1, 31, 9, 30),
    dt.datetime(2024, 7, 1, 0, 30),
    dt.datetime(2024, 3, 31, 2, 30),
    dt.datetime(2024, 10, 27, 2, 30),
    dt.datetime(1883, 11, 18, 12),
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999),
]
"""Times by the clock of a zone, some of which are twice or not at all."""


def zoned() -> list[tuple[Any, Any]]:
    """Times in zones, and what they are in UTC; of an unknown class, they are nothing."""
    found: list[tuple[Any, Any]] = []
    for _, zone in zones():
        for local in INSTANTS:
            times = [local.replace(tzinfo=zone), local.replace(tzinfo=zone, fold=1)]
            if hasattr(zone, "localize"):
                times.append(zone.localize(local))
            for one in times:
                offset = one.utcoffset()
                assert offset is not None
                since = one.replace(tzinfo=None) - offset - dt.datetime(1970, 1, 1)
                found.append((one, Cell("timestamp", ("us", since // dt.timedelta(microseconds=1)))))
    for local in INSTANTS:
        found.append((local.replace(tzinfo=UnknownZone()), UNREADABLE))
    return found


def made(cell: Any) -> Any:
    """The object that a cell is, for columns of objects.

    Raises
    ------
    CannotBeMade
        Where there is none.
    """
    if type(cell) is not Cell:
        return cell
    tag, value = cell
    if tag == "subclass":
        return _of_subclass(value)
    if tag == "category":
        return made(value)
    maker = _MAKERS.get(tag)
    if maker is None:
        raise CannotBeMade(tag)
    return maker(value)


def _of_subclass(value: Any) -> Any:
    classes: dict[type, Any] = {int: PlainInt, str: PlainText, float: PlainFloat, tuple: PlainTuple}
    if type(value) is dt.datetime:
        return PlainTime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return classes[type(value)](value)


def _integer(value: int) -> Any:
    for kind in (np.int8, np.uint16, np.int32, np.int64, np.uint64):
        if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            return kind(value)
    raise CannotBeMade(value)


def _double(value: float) -> Any:
    return np.float32(value) if float(np.float32(value)) == value else np.float64(value)


def _datetime64(value: tuple[str, int | None]) -> Any:
    unit, ticks = value
    if unit == "generic":
        return np.datetime64(ticks)
    return np.datetime64("NaT", unit) if ticks is None else np.datetime64(ticks, unit)


def _timestamp(value: tuple[str, int]) -> Any:
    unit, ticks = value
    if ticks == -(2**63):
        return pd.NaT
    found = pd.Timestamp(np.datetime64(ticks, unit))
    if found.unit != unit or found.as_unit(unit).asm8.astype(np.int64) != ticks:
        raise CannotBeMade(value)
    return found


def _date(days: int) -> dt.date:
    if not FIRST <= days * 86_400_000_000 < LAST:
        raise CannotBeMade(days)
    return dt.date.fromordinal(days + EPOCH)


def _clock(value: tuple[str, int]) -> dt.time:
    form, *parts = plain(Cell("time64", value))
    if form != "clock" or (value[0] == "ns" and value[1] % 1000):
        raise CannotBeMade(value)
    return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=parts[0])).time()


def _decimal(value: tuple[int, int]) -> Decimal:
    digits, scale = value
    return Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -scale))


def _interval(value: tuple[Any, Any, str]) -> Any:
    return pd.Interval(made(value[0]), made(value[1]), closed=value[2])


_MAKERS: dict[str, Any] = {
    "pd.NA": lambda _: pd.NA,
    "pd.NaT": lambda _: pd.NaT,
    "null": lambda _: None,
    "np.bool": np.bool_,
    "np.int": _integer,
    "np.float": _double,
    "np.longdouble": np.longdouble,
    "np.complex": np.complex128,
    "np.str": np.str_,
    "np.bytes": np.bytes_,
    "np.void": np.void,
    "np.datetime64": _datetime64,
    "np.timedelta64": lambda value: np.timedelta64(value[1], value[0]),
    "timestamp": _timestamp,
    "pd.Timestamp": _timestamp,
    "pd.Timedelta": lambda value: pd.Timedelta(np.timedelta64(value[1], value[0])),
    "date32": _date,
    "date64": lambda ticks: _date(ticks // 86_400_000),
    "time64": _clock,
    "duration": lambda value: np.timedelta64(value[1], value[0]),
    "decimal": _decimal,
    "pd.Period": lambda value: pd.Period(ordinal=value[1], freq=value[0]),
    "pd.Interval": _interval,
    "list": lambda _: [1],
    "struct": lambda _: {"a": 1},
    "map": lambda _: {1: 2},
    "unknown": lambda _: object(),
}


def objects(cells: list[Any]) -> tuple[list[Any], list[Any]]:
    """Those of the cells that objects can be, and the cells."""
    found: list[Any] = []
    kept: list[Any] = []
    for cell in cells:
        try:
            found.append(made(cell))
        except (CannotBeMade, ValueError, OverflowError, TypeError):
            continue
        kept.append(cell)
    return found, kept
