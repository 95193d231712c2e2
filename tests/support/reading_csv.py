"""CSV files with hostile lines of one user: a row is its writer's, and no other's, in each dialect."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.reading_adapter import Outcome, session, sums, watched
from support.reading_findings import FAILED, OTHERS, VISIBLE, Findings
from userdp import tables
from userdp.tables import Query, count_rows, count_users, key

HEADER = "u,x,y"
OTHERS_ROWS = [
    ("p1", "5", "a"),
    ("p2", "05", "b, c"),
    ("p2", "x", 'say "no"'),
    ("p3", "", "d"),
    ("p4", "K\u00f6ln", "e"),
]
DIALECTS = ("rfc", "line", "none")
PIECES = [
    "u",
    ",",
    ",",
    '"',
    '"',
    '""',
    "x",
    "5",
    " ",
    "\t",
    "\\",
    "\r",
    "\x00",
    ";",
    "p1",
    "p9",
    ",,",
    "\u00e9",
    "'",
    '",',
]
"""Of what lines and cells are made."""


def raw_lines(rng: random.Random) -> list[bytes]:
    """Lines that no writer made, some of which are no text."""
    lines = []
    for _ in range(rng.randrange(1, 4)):
        line = "u" * (rng.random() < 0.7) + "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 12)))
        lines.append(line.encode() + rng.choice([b"", b"", b"\xff", b"\r"]) + b"\n")
    return lines


def written(rows: Sequence[Sequence[str]], rng: random.Random) -> bytes:
    """Lines as a careful writer makes them: what needs quotes is in quotes."""
    held = io.StringIO(newline="")
    csv.writer(held, lineterminator=rng.choice(["\n", "\r\n"])).writerows(rows)
    return held.getvalue().encode()


def hostile_rows(rng: random.Random) -> list[tuple[str, str, str]]:
    """Rows of the user, whose cells may have quotes and line ends."""
    pieces = [*PIECES, "\n", "\r\n", "\np9,1,1\n"]

    def cell() -> str:
        return "".join(rng.choice(pieces) for _ in range(rng.randrange(0, 6))).replace("\x00", "")

    return [("u", cell(), cell()) for _ in range(rng.randrange(1, 4))]


def plain_line(row: Sequence[str], dialect: str) -> bytes:
    """A row of others as a line of the dialect."""
    quoted = [f'"{one.replace(chr(34), chr(34) * 2)}"' if {",", '"'} & set(one) else one for one in row]
    cells = [one.replace(",", ";") for one in row] if dialect == "none" else quoted
    return ",".join(cells).encode() + b"\n"


def judge_file(number_of: int, rng: random.Random, folder: Path, findings: Findings) -> None:
    """P1 and P2 of one file."""
    dialect, place = DIALECTS[number_of % 3], number_of // 3 % 3
    theirs = [plain_line(row, dialect) for row in OTHERS_ROWS]
    own = [written(hostile_rows(rng), rng)] if dialect == "rfc" else raw_lines(rng)
    cut = (0, 2, len(theirs))[place]
    header = HEADER.encode() + b"\n"
    files = {
        "others": header + b"".join(theirs),
        "both": header + b"".join([*theirs[:cut], *own, *theirs[cut:]]),
        "alone": header + b"".join(own),
    }
    found = {name: _read(folder / f"{name}.csv", data, dialect) for name, data in files.items()}
    findings.compare(f"CSV, {dialect}", "text", "files with a hostile user")
    example = f"{dialect}: {own!r}"
    if found["others"].seen != found["both"].seen:
        findings.add(VISIBLE, f"CSV, {dialect}", "text", f"{example}: {found['others'].seen}, {found['both'].seen}")
    elif any(one.raised or one.warned or one.printed for one in found.values()):
        findings.add(FAILED, f"CSV, {dialect}", "text", f"{example}: {[one.seen for one in found.values()]}")
    else:
        first, own_rows, both = (found[name].result for name in ("others", "alone", "both"))
        if {k: first.get(k, 0) + own_rows.get(k, 0) for k in {**first, **own_rows}} != both:
            findings.add(OTHERS, f"CSV, {dialect}", "text", f"{example}: {first} and {own_rows}, not {both}")


def _read(path: Path, data: bytes, dialect: str) -> Outcome:
    """How many rows there are of each key."""
    path.write_bytes(data)

    def call() -> Any:
        table: Any = tables.read_csv(path, quote=dialect)  # type: ignore[attr-defined]
        held = session(table, {"x": key(str)})
        query = Query().group_by("x", max_keys=30).agg(users=count_users(), n=count_rows(30))
        return sums(held, query, table)["rows"]

    return watched(call)
