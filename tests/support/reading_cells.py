"""Cells for tests of reading: those of `tests/data/reading.json` with what they are read as, and drawn ones.

``python -m tests.support.reading_cells`` computes the values in that file anew, of the cells that it has.
"""

from __future__ import annotations

import json
import math
import random
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from oracle.reading import DAY, EPOCH, FAMILIES, FIRST, KINDS, LAST, Cell, declared, identity, read, status, text

FILE = Path(__file__).parents[1] / "data" / "reading.json"


def dump(x: Any) -> Any:
    """A cell or a value as JSON, exactly."""
    kind = type(x)
    if x is None or kind is bool:
        return x
    if kind is str:
        if any(0xD800 <= ord(one) < 0xE000 for one in x):
            return {"str_hex": x.encode("utf-8", "surrogatepass").hex()}
        return {"str": x}
    if kind is float:
        return {"float": x.hex() if math.isfinite(x) else str(x)}
    if kind is bytes:
        return {"bytes": x.hex()}
    if kind in (datetime, date, time):
        return {kind.__name__: x.isoformat()}
    if kind is timedelta:
        return {"timedelta_us": str(x // timedelta(microseconds=1))}
    if kind is Cell:
        return {"cell": x.tag, "of": dump(x.value)}
    if kind in (tuple, list):
        return {kind.__name__: [dump(part) for part in x]}
    if kind is dict:
        return {"dict": [[dump(a), dump(b)] for a, b in x.items()]}
    for plain in (int, Decimal, Fraction, uuid.UUID, complex):
        if kind is plain:
            return {plain.__name__.lower(): str(x)}
    return {"other": kind.__name__}


def load(written: Any) -> Any:
    """The cell or value that JSON is."""
    if written is None or type(written) is bool:
        return written
    kind, value = next(iter(written.items()))
    if kind == "cell":
        return Cell(value, load(written["of"]))
    if kind == "float":
        return float(value) if value in ("inf", "-inf", "nan") else float.fromhex(value)
    if kind in ("tuple", "list"):
        parts = [load(part) for part in value]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {load(a): load(b) for a, b in value}
    makers: dict[str, Any] = {
        "str": str,
        "str_hex": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
        "bytes": bytes.fromhex,
        "datetime": datetime.fromisoformat,
        "date": date.fromisoformat,
        "time": time.fromisoformat,
        "timedelta_us": lambda text: timedelta(microseconds=int(text)),
        "int": int,
        "decimal": Decimal,
        "fraction": Fraction,
        "uuid": uuid.UUID,
        "complex": complex,
        "other": lambda _: object(),
    }
    return makers[kind](value)


def case(cell: Any) -> dict[str, Any]:
    """What a cell is read as: by kind, and its texts and ids where all digits count, or texts are as written."""
    return {
        "cell": dump(cell),
        **{kind: dump(read(kind, cell)) for kind in KINDS},
        "text_exact": dump(text(cell, True)),
        "id_exact": dump(identity(cell, True)),
        "text_written": dump(text(cell, "written")),
        "id_written": dump(identity(cell, "written")),
        "status": "".join(status(kind, cell)[0] for kind in KINDS),
    }


def stored() -> dict[str, Any]:
    """The file: `cases`, further ones that are `held_out`, and which types are `declared` to be read as what."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def cells() -> list[Any]:
    """All cells of the file."""
    return [load(one["cell"]) for part in ("cases", "held_out") for one in stored()[part]]


def drawn(rng: random.Random) -> Any:
    """Another cell, near the edges of rules."""
    low, high = rng.choice([(0, 10), (0, 10**6), (2**52, 2**54), (0, 2**66)])
    n = rng.randrange(low, high) * rng.choice([1, 1, 1, -1])
    day = rng.randrange(FIRST // DAY, LAST // DAY)
    return rng.choice(_DRAWS)(rng, n, day)


def _number_as_text(rng: random.Random, n: int, _: int) -> str:
    ends = ["", ".", ".0", ".00", "e0", "e2", ".5", "x", " ", "\x00", "e400", "_0", ",5"]
    return rng.choice(["", " ", "\t"]) + rng.choice(["", "0", "+"] if n >= 0 else [""]) + str(n) + rng.choice(ends)


def _time_as_text(rng: random.Random, _: int, day: int) -> str:
    clock = f"{rng.randrange(26):02}:{rng.randrange(62):02}"
    ends = [
        "",
        f"T{clock}",
        f" {clock}:59",
        f"T{clock}:01.25Z",
        f" {clock}+05:30",
        f" {clock} UTC",
        f"T{clock}-23:59",
        "x",
    ]
    return rng.choice([date.fromordinal(day + EPOCH).isoformat() + rng.choice(ends), clock, clock + ":07.5"])


def _double(rng: random.Random, n: int, _: int) -> float:
    return rng.choice([float(n), n / 8, rng.gauss(0, 1), math.ldexp(rng.random(), rng.randrange(-1074, 1024))])


def _decimal(rng: random.Random, n: int, _: int) -> Any:
    return rng.choice([Decimal(n).scaleb(rng.randrange(-30, 30)), Fraction(n, rng.randrange(1, 99))])


def _instant(rng: random.Random, _: int, day: int) -> Cell:
    ticks = rng.choice([day * 86400, rng.randrange(-(2**63), 2**63), rng.randrange(10**18)])
    return Cell("timestamp", (rng.choice(["s", "ms", "us", "ns"]), ticks))


def _python_time(rng: random.Random, _: int, day: int) -> Any:
    since = datetime.combine(date.fromordinal(day + EPOCH), time())
    return rng.choice([since.date(), since + timedelta(microseconds=rng.randrange(DAY)), since])


def _physical(rng: random.Random, n: int, day: int) -> Cell:
    return rng.choice(
        [
            Cell("date32", rng.choice([day, rng.randrange(-(2**31), 2**31)])),
            Cell("date64", rng.randrange(-(2**50), 2**50)),
            Cell("pd.Period", (rng.choice(["D", "M", "Q-DEC", "h", "min"]), rng.randrange(-9999, 9999))),
            Cell("decimal", (n * rng.randrange(1, 10**9), rng.randrange(0, 38))),
            Cell("pd.Interval", (n, n + rng.choice([1, 0.5, 7]), rng.choice(["left", "right", "both", "neither"]))),
        ]
    )


def _word(rng: random.Random, _: int, __: int) -> str:
    return "".join(rng.choice("aB\u00e4a\u0308 1e.-") for _ in range(rng.randrange(1, 7)))


def _code(rng: random.Random, _: int, __: int) -> str:
    whole = uuid.UUID(int=rng.getrandbits(128))
    return rng.choice([whole.hex, str(whole).upper(), "{" + str(whole) + "}", f"{rng.getrandbits(16):04x}"])


def _interval_as_text(rng: random.Random, n: int, _: int) -> str:
    return f"{rng.choice('[(')}{n}{rng.choice(['', '.0'])},{rng.choice(['', ' '])}{abs(n) + 1}{rng.choice('])')}"


def _bytes(rng: random.Random, n: int, _: int) -> bytes:
    return rng.choice([rng.randbytes(rng.randrange(1, 4)), str(n).encode(), str(n).encode() + b"\0"])


def _several(rng: random.Random, n: int, _: int) -> tuple[Any, ...]:
    return (n, rng.choice(["a", " a", b"a", None, str(n), True]))


_DRAWS: list[Any] = [
    lambda rng, n, day: n,
    _number_as_text,
    _time_as_text,
    _double,
    _decimal,
    _instant,
    _python_time,
    _physical,
    _word,
    _code,
    _interval_as_text,
    _bytes,
    _several,
]


def main() -> None:
    kept = stored()
    parts = {part: [case(load(one["cell"])) for one in kept[part]] for part in ("cases", "held_out")}
    table = {family: {kind: declared(family, kind) for kind in KINDS} for family in FAMILIES}
    lines = [f'"kinds": {json.dumps(KINDS)}', f'"declared": {json.dumps(table)}']
    lines += [f'"{part}": [\n' + ",\n".join(map(json.dumps, found)) + "\n]" for part, found in parts.items()]
    FILE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
