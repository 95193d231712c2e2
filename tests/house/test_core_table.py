"""The benchmarks of the core: their groups, that the tests run them, and the table made of what they leave."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benches import core_table

ROOT = Path(__file__).resolve().parents[2]


def left_behind(
    results: Path, group: str, what: str, size: str | None, elements: int | None, nanoseconds: float
) -> None:
    """The files of one benchmark, as criterion writes them."""
    folder = results / group / what / (size or "") / "new"
    folder.mkdir(parents=True)
    bench = {"function_id": what, "value_str": size, "throughput": elements and {"Elements": elements}}
    (folder / "benchmark.json").write_text(json.dumps(bench))
    (folder / "estimates.json").write_text(json.dumps({"median": {"point_estimate": nanoseconds}}))


def test_each_group_of_the_benches_has_rows() -> None:
    benches = (ROOT / "rust" / "core" / "benches").glob("*.rs")
    groups = {name for path in benches for name in re.findall(r'benchmark_group\("(.*?)"\)', path.read_text())}
    assert groups == set(core_table.GROUPS)
    written = core_table.PAGE.read_text().partition(core_table.BEGIN)[2].partition(core_table.END)[0]
    for group in groups:
        assert written.count(f"\n| {group} | ") >= 3
    assert all(written.count(f"\n| {clause} | ") >= 15 for clause in ("divergences", "enumeration", "samplers"))


def test_the_tests_run_every_benchmark_once() -> None:
    assert re.search(
        r"^cargo-test:.*\n(\t.*\n)*\tcargo test --locked --benches\n", (ROOT / "Makefile").read_text(), re.M
    )


def test_the_table_divides_by_the_merge_of_the_same_size(tmp_path: Path) -> None:
    left_behind(tmp_path, "enumeration", core_table.LIMIT, "32", 64, 6400)
    left_behind(tmp_path, "enumeration", core_table.LIMIT, "8", 64, 1600)
    left_behind(tmp_path, "enumeration", "labeled, r*", "32", 1000, 2.5e9)
    left_behind(tmp_path, "enumeration", "subsets alone", None, 8, 4)
    left_behind(tmp_path, "samplers", "noise", "32", 1, 0.5)
    left_behind(tmp_path, "accounts", "a group", "7", None, 3000)
    left_behind(tmp_path, "patterns", "reading", "(a|b)", None, 2)
    rows = [line.strip("| ").split(" | ") for line in core_table.table(tmp_path).splitlines()[2:]]
    assert rows == [
        ["accounts", "a group", "7", "3 µs"],
        ["enumeration", "labeled, r*", "32", "2.5 s", "2.5 ms", "2.5e+04"],
        ["enumeration", core_table.LIMIT, "8", "1.6 µs", "25 ns", "1"],
        ["enumeration", core_table.LIMIT, "32", "6.4 µs", "100 ns", "1"],
        ["enumeration", "subsets alone", "", "4 ns", "0.5 ns"],
        ["samplers", "noise", "32", "0.5 ns", "0.5 ns"],
        ["patterns", "reading", r"`(a\|b)`", "2 ns"],
    ]
