"""What coverage-guided fuzzing found, read as the slow reference says: `python -m support.reading_corpus FOLDER`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from oracle import reading as reference
from userdp.users.values import of_objects


def cells_of(folder: Path) -> list[str | bytes]:
    """The cells of a corpus: the first byte of a file chooses, and the rest is a text or bytes."""
    cells: list[str | bytes] = []
    for file in sorted(folder.iterdir()):
        raw = file.read_bytes()
        with contextlib.suppress(UnicodeDecodeError):
            cells.append(raw[1:].decode())
        cells.append(raw[1:])
    return cells


def differences(cells: list[Any]) -> list[tuple[str, Any, Any, Any]]:
    """The kind, the cell, what is read, and what the reference reads, where these differ."""
    column = of_objects(cells).cells
    read: dict[str, list[Any]] = {}
    for kind, (values, status) in (
        ("number", column.numbers()),
        ("boolean", column.booleans()),
        ("time", column.microseconds()),
    ):
        rows = zip(values.tolist(), status.tolist(), strict=True)  # type: ignore[attr-defined]
        read[kind] = [None if lack else value for value, lack in rows]
    places, status, texts = column.interned("doubles")
    rows = zip(places.tolist(), status.tolist(), strict=True)
    read["text"] = [None if lack else texts[place] for place, lack in rows]
    return [
        (kind, cell, found, wanted)
        for kind, values in read.items()
        for cell, found in zip(cells, values, strict=True)
        if repr(found) != repr(wanted := reference.read(kind, cell))
    ]


def main(folder: str) -> int:
    """Compare, and say how many."""
    cells = cells_of(Path(folder))
    wrong = differences(cells)
    for one in wrong[:20]:
        print(*map(repr, one))
    print(f"{len(cells)} cells of the corpus, 4 kinds: {len(wrong)} differ from the reference")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
