"""docs/machine_checked.md is about what is there: theorems in Coq, pages, code and tests. None of this needs Coq."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "machine_checked.md"
PROOFS = ROOT / "docs" / "proofs"
COQ = ROOT / "proofs"
CITED = re.compile(r"\[(\w+), ((?:Algorithm|Theorem|Lemma|Definition|Observation) [\w.]+)\]")


class Row(NamedTuple):
    """A theorem in Coq, as docs/machine_checked.md has it."""

    theorem: str
    what: str
    page: str
    code: str
    test: str


def rows() -> list[Row]:
    table = PAGE.read_text().split("## The theorems")[1].split("\n## ")[0]
    found = [line for line in table.splitlines() if line.startswith("| `")]
    return [Row(*(cell.strip(" `") for cell in line.strip("| ").split(" | "))) for line in found]


ROWS = rows()


def results() -> dict[str, list[str]]:
    """The results of every file that `make check` asks Coq about, by the Makefile's own expression."""
    (line,) = re.findall(r"^RESULTS := (.*)$", (COQ / "Makefile").read_text(), re.MULTILINE)
    expression = re.compile(line.replace("[[:space:]]", r"\s"))
    return {
        file.stem: [match[3] for match in map(expression.match, file.read_text().splitlines()) if match]
        for file in COQ.glob("*.v")
        if file.name != "assumptions.v"  # which `make check` writes
    }


RESULTS = results()


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 35
    assert len({row.theorem for row in ROWS}) == len(ROWS)
    assert sum(map(len, RESULTS.values())) >= 124


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.theorem)
def test_what_a_row_names_exists(row: Row) -> None:
    file, name = row.theorem.split(".")
    assert RESULTS[file].count(name) == 1
    assert row.what
    for code in re.findall(r"[\w/]+\.(?:py|rs)", row.code) or [""]:
        assert row.code == "–" or (ROOT / code).is_file(), code
    if row.test != "–":
        path, _, test = row.test.partition("::")
        module = ast.parse((ROOT / path).read_text())
        assert test in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    if row.page != "–":
        match = re.fullmatch(r"\[(\w+)\]\(proofs/\1\.md#machine-checked\)", row.page)
        assert match
        # The page states the theorem beside its own statement, under the heading that the row links.
        _, _, section = (PROOFS / f"{match[1]}.md").read_text().partition("\n## Machine-checked\n")
        section = section.split("\n## ")[0]
        assert f"`{row.theorem}`" in section or (f"`proofs/{file}.v`" in section and f"`{name}`" in section)


@pytest.mark.parametrize("page", sorted(PROOFS.glob("*.md")), ids=lambda page: page.stem)
def test_theorems_that_a_proof_names_exist(page: Path) -> None:
    _, _, section = page.read_text().partition("\n## Machine-checked\n")
    for file, name in re.findall(r"`(\w+)\.(\w+)`", section.split("\n## ")[0]):
        assert name in RESULTS[file], (file, name)
    for file in re.findall(r"`proofs/(\w+)\.v`", page.read_text()):
        assert file in RESULTS, file


def test_the_rows_of_papers_are_marked() -> None:
    """Items that the table cites are marked in docs/papers.md, and no others."""
    key, marked = "", set()
    for line in (ROOT / "docs" / "papers.md").read_text().splitlines():
        key = line[3:] if line.startswith("## ") else key
        if "[Coq](machine_checked.md#the-theorems)" in line:
            marked.add((key, line.strip("| ").split(" | ")[0]))
    assert marked == {match for row in ROWS for match in CITED.findall(row.what)}


def test_all_files_are_compiled_and_nothing_is_assumed() -> None:
    """The same words as in the Makefile, for those who have no Coq."""
    (words,) = re.findall(r"^FORBIDDEN := (.*)$", (COQ / "Makefile").read_text(), re.MULTILINE)
    assert re.search(words, "Admitted.")
    assert re.search(words, "Axiom a : b.")
    for file in COQ.glob("*.v"):
        assert not re.search(words, file.read_text()), file


@pytest.mark.parametrize("file", sorted(COQ.glob("*.v")), ids=lambda file: file.stem)
def test_files_that_comments_name_exist(file: Path) -> None:
    for named in re.findall(r"\b(?:docs|python|rust|tests)/[\w/]+\.\w+", file.read_text()):
        assert (ROOT / named).is_file(), named
    for named in re.findall(r"(?<![\w/])(\w+\.md)", file.read_text()):
        assert (PROOFS / named).is_file(), named
