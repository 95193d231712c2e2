"""The documentation is about this code: what it names exists, and what must be documented is."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import userdp

pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROOFS = DOCS / "proofs"
PACKAGE = ROOT / "python" / "userdp"
CORE = ROOT / "rust" / "core" / "src"
PAGES = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
PRESENT = [page for page in PAGES if page.parent.name != "decisions" and page.name != "CHANGELOG.md"]
"""Those that speak of the code as it is, not as it was."""

KEYS = ("GKKMMZ23", "GKM21", "LSAKKMS21", "LWY24")
KIND = "Algorithm|Theorem|Lemma|Definition|Corollary|Proposition|Observation|Remark|Table"
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"
CITATION = re.compile(rf"\[({'|'.join(KEYS)}), ((?:{KIND}) {NUMBER})\]")
COQ = ", [Coq](machine_checked.md#the-theorems)"
"""Marks a row of docs/papers.md of which something is proved in Coq."""
LIST = re.compile(rf"({KIND})s? ({NUMBER}(?:(?:, | and |, and | to ){NUMBER})*)")


class Row(NamedTuple):
    """An item of a paper, as docs/papers.md has it."""

    key: str
    item: str
    what: str
    name: str
    core: str
    proof: str
    test: str
    errata: str


def rows() -> Iterator[Row]:
    key = ""
    for line in (DOCS / "papers.md").read_text().splitlines():
        if line.startswith("## "):
            key = line[3:]
        elif re.match(rf"\| (?:{KIND}) ", line):
            yield Row(key, *(cell.strip(" `") for cell in line.strip("| ").split(" | ")))


ROWS = list(rows())


def plain(text: str | None) -> str:
    return " ".join((text or "").split())


def found(name: str) -> Any:
    """What has a dotted name; a module only where no object of its package has the name."""
    parts = name.split(".")
    value: Any = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:end]))
    return value


@cache
def anchors(page: Path) -> dict[str, str]:
    """The sections of a page by the anchors of their headings, as GitHub makes them."""
    sections: dict[str, str] = {"": page.read_text()}
    anchor = ""
    for line in re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).splitlines():
        if line.startswith("#"):
            anchor = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            sections[anchor] = ""
        if anchor:
            sections[anchor] += line + "\n"
    return sections


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Files and anchors that a page links to."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            yield ((page.parent / path).resolve() if path else page), anchor


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text() for path in [*PACKAGE.rglob("*.py"), *CORE.rglob("*.rs")]}


@cache
def files() -> list[str]:
    folders = ("python", "rust/core/src", "rust/core/tests", "rust/python/src", "tests", "benches", "evidence", "docs")
    return [str(path) for folder in folders for path in (ROOT / folder).rglob("*.*")]


# --- docs/papers.md


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 130
    assert len({(row.key, row.item) for row in ROWS}) == len(ROWS)
    assert {row.key for row in ROWS} == set(KEYS)
    written = sum(line.startswith("| ") for line in (DOCS / "papers.md").read_text().splitlines())
    assert written == len(ROWS) + len(KEYS)  # with the headings


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.key} {row.item}")
def test_what_a_row_names_exists(row: Row) -> None:
    assert row.what
    value = found(row.name)
    assert inspect.isclass(value) or inspect.isfunction(value)
    # The class or function cites the item.
    assert f"[{row.key}, {row.item}]" in plain(value.__doc__)
    assert row.core == "–" or f"[{row.key}, {row.item}]" in (CORE / row.core).read_text()
    file, _, test = row.test.partition("::")
    (path,) = (ROOT / "tests").rglob(file)
    module = ast.parse(path.read_text())
    assert test in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    assert re.fullmatch(rf"(–|\[\w+\]\(proofs/\w+\.md(#[^)]+)?\))({re.escape(COQ)})?", row.proof)


NUMBERED = {
    "GKKMMZ23": """Definition 1, 2, 8, 12, 16, 20, 29; Theorem 4, 7, 9, 10, 11, 13, 15, 17, 24, 31, 37, 38, 40 to 46;
        Lemma 5, 6, 14, 18, 19, 21, 22, 23, 25, 26, 27, 30, 32 to 35, 39; Corollary 3; Observation 28, 36; Algorithm 1;
        Table 1, 2""",
    "GKM21": """Definition 6, 7, 9, 14, 15, 16, 31; Theorem 1, 2, 3, 5, 8, 17, 18, 20, 25, 26, 29, 30, 35, 39;
        Lemma 4, 10 to 13, 19, 22, 23, 24, 28, 32, 34, 36, 37, 38; Corollary 21, 27, 33, 40; Algorithm 1 to 8;
        Table 1""",
    "LSAKKMS21": """Definition 1 to 4; Theorem 1 to 10; Lemma 1, 2, 3; Corollary 1 to 6; Proposition 1 to 7;
        Remark 1, 2; Algorithm 1 to 7""",
    "LWY24": """Definition 2.1, 2.2, 2.3, A.1; Theorem 3.4, 4.6, 5.2; Lemma 2.4, 2.5, 2.6, 3.1, 3.2, 3.3, 4.1, 4.2, 4.3,
        4.4, 4.5, 5.1, A.2, C.1; Corollary D.1; Algorithm 1, 2; Table 1""",
}
"""All numbered items of the papers: what they state, draw or tabulate under a number of their own."""


def test_every_numbered_item_of_the_papers_has_a_row_or_a_reason() -> None:
    section = anchors(DOCS / "papers.md")["items-without-a-row"]
    listed = re.findall(rf"^\* ({'|'.join(KEYS)}), ((?:{KIND}) {NUMBER}): \S.{{20,}}$", section, re.MULTILINE)
    assert len(listed) == section.count("\n* ") == len(set(listed))
    for key, text in NUMBERED.items():
        numbered = items_of(plain(text))
        rowed = {row.item for row in ROWS if row.key == key}
        reasons = {item for paper, item in listed if paper == key}
        assert rowed | reasons == numbered, key
        assert not rowed & reasons, key


def test_citations_and_rows_are_the_same() -> None:
    cited = {match for path, text in sources().items() for match in CITATION.findall(plain(text))}
    assert cited == {(row.key, row.item) for row in ROWS}


def test_citations_have_one_form() -> None:
    loose = re.compile(rf"(?<!\[)\b({'|'.join(KEYS)}),? ({LIST.pattern})")
    for path, text in sources().items():
        assert not loose.search(plain(text)), path


def items_of(text: str) -> set[str]:
    """The items of a list such as "Lemmas 11 and 12, Algorithms 2 to 4"."""
    items = set()
    for kind, numbers in LIST.findall(text):
        listed = re.findall(NUMBER, numbers)
        for first, last in pairwise(listed):
            if f"{first} to {last}" in numbers:
                listed += map(str, range(int(first) + 1, int(last)))
        items |= {f"{kind} {number}" for number in listed}
    return items


def errata() -> Iterator[tuple[str, str, str]]:
    """The anchor, the key and the item of every erratum."""
    for anchor, section in anchors(DOCS / "errata.md").items():
        for line in section.splitlines() if anchor else ():
            place = re.match(rf"\| (?:P: )?({'|'.join(KEYS)}), (.*?) \|", line)
            for item in items_of(place[2]) if place else ():
                yield anchor, place[1], item  # type: ignore[index]


def test_rows_link_their_errata_and_no_others() -> None:
    linked = {(anchor, row.key, row.item) for row in ROWS for anchor in re.findall(r"errata\.md#([^)]+)", row.errata)}
    assert linked == set(errata())


# --- proofs


def test_every_proof_is_named_by_code_and_in_the_index() -> None:
    pages = {page.name for page in PROOFS.glob("*.md")} - {"README.md"}
    named = set(re.findall(r"(?<![\w-])\w+\.md", "".join(sources().values())))
    assert not pages - named
    index = [page.name for page, _ in links(PROOFS / "README.md") if page.parent == PROOFS]
    assert sorted(index) == sorted(pages)


@pytest.mark.parametrize("page", sorted(PROOFS.glob("*.md")), ids=lambda page: page.stem)
def test_files_that_a_proof_names_exist(page: Path) -> None:
    for named in re.findall(r"`([\w/.-]+\.(?:py|rs|json|md))`", page.read_text()):
        assert any(path.endswith(f"/{named}") for path in files()), named


# --- all pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), (target, anchor)


NAME = r"(?<![\w/.-])userdp(?:\.[A-Za-z]\w*)+(?![\w/])"


@pytest.mark.parametrize("page", PRESENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_and_files_on_pages_exist(page: Path) -> None:
    for name in re.findall(NAME, page.read_text()):
        found(name)
    for file in re.findall(r"\b(?:tests|rust|python|benches|evidence|examples)/[\w/.-]+\.\w+\b", page.read_text()):
        assert (ROOT / file).exists(), file


def test_names_in_docstrings_exist() -> None:
    for path, text in sources().items():
        for name in re.findall(f"`({NAME})`", text) if path.suffix == ".py" else ():
            assert found(name) is not None


def test_pages_that_code_names_exist() -> None:
    for path, text in sources().items():
        for page in re.findall(r"docs/[\w/-]+\.md", re.sub(r"/\n\s*(?://[/!] )?", "/", text)):
            assert (ROOT / page).is_file(), (path, page)


def test_every_decision_has_a_row() -> None:
    records = {path.name for path in (DOCS / "decisions").glob("0*.md")}
    assert records == {path.name for path, _ in links(DOCS / "decisions" / "README.md")}


# --- docstrings


FACES = [f"userdp.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "cli"]


@pytest.mark.parametrize("face", sorted(FACES))
def test_what_is_public_is_documented(face: str) -> None:
    module = importlib.import_module(face)
    assert module.__doc__
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        assert value.__doc__, name
        for method, member in vars(value).items() if inspect.isclass(value) else ():
            if not method.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(getattr(value, method)), f"{name}.{method}"


def test_the_face_of_the_package_names_its_folders() -> None:
    for name in dir(userdp):
        if (PACKAGE / name).is_dir():
            assert f"`userdp.{name}`" in str(userdp.__doc__), name
