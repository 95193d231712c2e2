"""The house as its code has it: folders on floors, who imports whom, where a call goes, and how long it all is.

`python evidence/architecture.py` draws docs/images/architecture.svg and writes the tables of docs/architecture.md anew,
`--measure` prints counts, and `--walks` the files that six calls pass through. Everything is read from the code; the
order of the folders (`FLOORS`) is the only thing said here. A test holds the code to that order, and the page to the
code.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import re
import statistics
import sys
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HOUSE = Path(__file__).resolve().parents[1]
PACKAGE = HOUSE / "python" / "userdp"
CORE = HOUSE / "rust" / "core" / "src"
PAGE = HOUSE / "docs" / "architecture.md"
PICTURE = HOUSE / "docs" / "images" / "architecture.svg"

FLOORS = """
    exceptions exact runtime durable_log display checker divergence algorithms report accounting audit lddp delstab
    item_to_user users mechanisms optimal estimators public_randomness concepts dimensions stability protocols learners
    distributions means optimization tables planning model_selection testing pytest_plugin datasets demo cli
""".split()  # noqa: SIM905
"""From the ground up. `userdp._core`, the compiled extension, is below all of them; the package's face above."""

COMPILED = "userdp._core"
FACES = ("userdp", "userdp.__main__")
"""The package's face shows all folders, and belongs to none."""


class Import(NamedTuple):
    """One module takes something from another."""

    module: str
    source: str
    names: tuple[str, ...]
    lazy: bool
    """Whether it is inside a function, or for type checkers only."""


# --- what imports what


def module_of(path: Path) -> str:
    """A file's dotted name."""
    parts = ("userdp", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def folder_of(module: str) -> str:
    """The folder or top-level module that a module is in."""
    return module.split(".")[1] if "." in module else ""


@cache
def imports() -> tuple[Import, ...]:
    """All imports of the package from itself, wherever in a module they stand."""
    trees = {module: ast.parse(path.read_text()) for module, path in MODULES.items()}
    return tuple(found for module, tree in trees.items() for found in _imports_of(module, tree, lazy=False))


def _imports_of(module: str, node: ast.AST, *, lazy: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "userdp":
                yield Import(module, alias.name, (), lazy)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "userdp":
        source = str(node.module)
        for alias in node.names:
            whole = f"{source}.{alias.name}"
            if whole in MODULES or whole == COMPILED:
                yield Import(module, whole, (), lazy)
            else:
                yield Import(module, source, (alias.name,), lazy)
    typed = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for part in ast.iter_child_nodes(node):
        yield from _imports_of(module, part, lazy=lazy or typed or inside)


def of_folders() -> Iterator[Import]:
    """Imports between folders, but those of the package's face, and of the compiled core."""
    for found in imports():
        outside = found.module in FACES or found.source in (COMPILED, "userdp")
        if not outside and folder_of(found.module) != folder_of(found.source):
            yield found


Graph = dict[str, set[str]]


def graph_of_folders() -> Graph:
    """Which folders each folder imports from."""
    graph: Graph = {folder: set() for folder in {folder_of(module) for module in MODULES} - {"", "__main__"}}
    for found in of_folders():
        graph[folder_of(found.module)].add(folder_of(found.source))
    return graph


def graph_of_files(*, lazy: bool) -> Graph:
    """Which modules each module imports from; with or without what is imported later, or for types only."""
    graph: Graph = {module: set() for module in MODULES}
    for found in imports():
        if found.source in MODULES and found.source != found.module and (lazy or not found.lazy):
            graph[found.module].add(found.source)
    return graph


def graph_of_core() -> Graph:
    """Which modules of the Rust core each one uses; its tests may use any."""
    modules = sorted({path.stem if path.is_file() else path.name for path in CORE.iterdir()} - {"lib"})
    shown = {"Error": "error", "Result": "error"}  # names that the crate shows at its root
    graph: Graph = {module: set() for module in modules}
    for path in CORE.rglob("*.rs"):
        module = path.relative_to(CORE).parts[0].removesuffix(".rs")
        text = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]")[0])
        used = set(re.findall(r"\bcrate::(\w+)", text))
        for group in re.findall(r"\bcrate::\{(.*?)\};", text, re.DOTALL):
            while "{" in group:
                group = re.sub(r"\{[^{}]*\}", "", group)
            used |= {item.strip().split("::")[0] for item in group.split(",")}
        if module in graph:
            graph[module] |= ({shown.get(name, name) for name in used} & set(graph)) - {module}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of more than one that all reach each other."""
    reached = {start: _reached(graph, start) for start in graph}
    found = {frozenset(other for other in reached[start] if start in reached[other]) for start in graph}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        for other in graph[ahead.pop()] - seen:
            seen.add(other)
            ahead.append(other)
    return seen


def levels(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each: one above the highest that it stands on. Those in one circle do not count for each other."""
    known: dict[str, int] = {}
    graph = _without_circles(graph)

    def level(name: str) -> int:
        if name not in known:
            known[name] = 1 + max(map(level, graph[name]), default=-1)
        return known[name]

    for name in graph:
        level(name)
    return known


def _without_circles(graph: Mapping[str, set[str]]) -> Graph:
    tied: dict[str, set[str]] = {name: set() for name in graph}
    for circle in circles(graph):
        for name in circle:
            tied[name] = set(circle)
    return {name: below - tied[name] for name, below in graph.items()}


def direct(graph: Mapping[str, set[str]]) -> Graph:
    """The arrows that no way round says already."""
    graph = _without_circles(graph)
    return {
        name: {other for other in below if not any(other in _reached(graph, third) for third in below - {other})}
        for name, below in graph.items()
    }


# --- how long it is


class Measures(NamedTuple):
    """Counts of some files."""

    files: int
    lines: int
    code: int
    imports: int
    docs: int
    comments: int
    blank: int
    functions: int
    median_body: float


def measures(paths: Iterable[Path]) -> Measures:
    """Count files; a line is one of code, imports, docstrings, comments or blank."""
    kinds: Counter[str] = Counter()
    bodies: list[int] = []
    n_files = 0
    for path in paths:
        n_files += 1
        source = path.read_text()
        lines = source.splitlines()
        kind = ["code" if line.strip() else "blank" for line in lines]
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#"):
                kind[token.start[0] - 1] = "comments"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                _mark(kind, node, "imports")
            elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                documented = ast.get_docstring(node) is not None
                if documented:
                    _mark(kind, node.body[0], "docs")
                if not isinstance(node, (ast.Module, ast.ClassDef)):
                    body = node.body[documented:]
                    bodies.append(1 + (body[-1].end_lineno or 0) - body[0].lineno if body else 0)
        kinds.update(kind)
    return Measures(
        files=n_files,
        lines=sum(kinds.values()),
        code=kinds["code"] + kinds["imports"],
        imports=kinds["imports"],
        docs=kinds["docs"],
        comments=kinds["comments"],
        blank=kinds["blank"],
        functions=len(bodies),
        median_body=statistics.median(bodies) if bodies else 0,
    )


def _mark(kind: list[str], node: ast.stmt, name: str) -> None:
    for line in range(node.lineno - 1, node.end_lineno or node.lineno):
        kind[line] = name


def files_of(folder: str) -> list[Path]:
    """The Python files of a folder or top-level module."""
    return [path for module, path in MODULES.items() if folder_of(module) == folder]


def measured() -> str:
    """All counts, as markdown."""
    rows = ["| | files | lines | code | imports | docs | comments | functions per 1,000 lines of code | median body |"]
    rows.append("|---" * 9 + "|")
    faces = [MODULES[name] for name in FACES if name in MODULES]
    named = {folder: files_of(folder) for folder in graph_of_folders()} | {"(face)": faces}
    for name, paths in (*sorted(named.items()), ("**all**", list(MODULES.values()))):
        m = measures(paths)
        rows.append(
            f"| {name} | {m.files} | {m.lines:,} | {m.code:,} | {m.imports:,} | {m.docs:,} ({m.docs / m.lines:.0%}) | "
            f"{m.comments:,} ({m.comments / m.lines:.1%}) | {1000 * m.functions / max(1, m.code):.0f} | "
            f"{m.median_body:g} |"
        )
    m = measures(MODULES.values())
    sizes = [len(path.read_text().splitlines()) for path in MODULES.values()]
    folders = graph_of_folders()
    place = {folder: number for number, folder in enumerate(FLOORS)}
    up = sum(place[below] >= place[folder] for folder, others in folders.items() for below in others)
    rows += [
        "",
        f"{m.lines / m.files:.0f} lines a file; {sum(size < 100 for size in sizes)} files under 100 lines, "
        f"{sum(size < 60 for size in sizes)} under 60, {sum(size > 900 for size in sizes)} over 900. "
        f"Imports are {m.imports / m.code:.0%} of the code.",
        f"{len(folders)} folders on {1 + max(levels(folders).values())} floors, "
        f"{sum(map(len, folders.values()))} arrows, of which {up} go up; circles of folders: {len(circles(folders))}.",
        f"Arrows between files: {sum(map(len, graph_of_files(lazy=True).values()))}; "
        f"circles of files when the package is loaded: {circles(graph_of_files(lazy=False))}; "
        f"with later imports and those for types: {circles(graph_of_files(lazy=True))}.",
    ]
    return "\n".join(rows)


# --- where a call goes


def route(call: Callable[[], object]) -> dict[str, list[str]]:
    """The files whose functions run during a call, by folder, in the order in which they are first entered."""
    entered: dict[str, None] = {}

    def follow(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.setdefault(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(before)
    found: dict[str, list[str]] = defaultdict(list)
    for file in entered:
        parts = Path(file).relative_to(PACKAGE).parts
        found[parts[0].removesuffix(".py")].append("/".join(parts[1:]) or parts[0])
    return dict(found)


def calls() -> dict[str, Callable[[], Callable[[], object]]]:
    """Six calls, made ready and then made: what is built before the call is no part of its way."""
    import numpy as np

    from userdp import DelStab, tables
    from userdp.algorithms import AdditiveAlgorithm
    from userdp.audit import audit_dataset
    from userdp.learners import ThresholdClassifier
    from userdp.means import WinsorizedMean
    from userdp.planning import compare_methods

    def majority(total: int, n_users: int) -> list[int]:
        return [int(2 * total <= n_users), int(2 * total > n_users)]

    def votes() -> Any:
        return AdditiveAlgorithm(("no", "yes"), lambda user: user[0], majority, statistic_range=(0, 1))

    def audit() -> Callable[[], object]:
        algorithm = votes()
        users = [(1,), (0,), (1,)]
        return lambda: audit_dataset(algorithm, users, records=[(0,), (1,)], epsilon=1, delta="1/4")

    def delstab() -> Callable[[], object]:
        mechanism = DelStab(votes(), epsilon=8, delta="0.01")
        users = ((1,),) * 69 + ((0,),)
        return lambda: mechanism.release(users, random_state=1)

    ids = np.repeat(np.arange(500), 8)
    hours = np.random.default_rng(1).integers(1, 101, size=4000)

    def threshold() -> Callable[[], object]:
        learner = ThresholdClassifier(epsilon=1, domain_size=100, m=8, classes=(False, True), random_state=1)
        return lambda: learner.fit(hours[:, None], hours > 60, groups=ids)

    def mean() -> Callable[[], object]:
        learner = WinsorizedMean(epsilon=1, bounds=(0, 1), m=8, random_state=1)
        return lambda: learner.fit(hours[:, None] / 100, groups=ids)

    def release() -> Callable[[], object]:
        table = {"who": ids, "town": ids % 3, "hours": hours / 100}
        schema = tables.Schema(town=tables.category([0, 1, 2]), hours=tables.number(0, 1))
        session = tables.Session(table, user="who", schema=schema, epsilon=1)
        query = session.query().group_by("town", max_keys=1).agg(hours=tables.mean("hours"))
        return lambda: session.release(query, epsilon=1, random_state=1)

    def comparison() -> Callable[[], object]:
        return lambda: compare_methods("mean", n_users=1000, m=8, epsilon=1)

    return {
        "audit_dataset": audit,
        "DelStab.release": delstab,
        "ThresholdClassifier.fit": threshold,
        "WinsorizedMean.fit": mean,
        "Session.release": release,
        "compare_methods": comparison,
    }


def walks() -> dict[str, dict[str, list[str]]]:
    """The ways of the six calls; each is made twice, as the first time loads modules."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ready in calls().items():
            ready()()
            found[name] = route(ready())
    return found


# --- the page


def described(folder: str) -> str:
    """What a folder says of itself in the first paragraph of its docstring."""
    module = MODULES[f"userdp.{folder}"]
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def described_in_rust(module: str) -> str:
    """What a module of the core says of itself in its first sentence."""
    text = (CORE / f"{module}.rs").read_text()
    lines = []
    for line in text.splitlines():
        if not line.startswith("//!") or line == "//!":
            break
        lines.append(line.removeprefix("//!").strip())
    return re.split(r"(?<=\.)\s", " ".join(lines))[0]


def folder_table() -> str:
    """The folders from the top floor down, with what they are and what they stand on directly."""
    graph = graph_of_folders()
    level = levels(graph)
    rows = ["| floor | folder | what it is | stands directly on |", "|---|---|---|---|"]
    arrows = direct(graph)
    for folder in sorted(graph, key=lambda name: (-level[name], FLOORS.index(name))):
        below = ", ".join(f"`{name}`" for name in sorted(arrows[folder], key=FLOORS.index)) or "–"
        rows.append(f"| {level[folder]} | `{folder}` | {described(folder)} | {below} |")
    return "\n".join(rows)


def core_table() -> str:
    """The modules of the core by floors, from the top down."""
    graph = graph_of_core()
    level = levels(graph)
    rows = ["| floor | module | what it is | uses directly |", "|---|---|---|---|"]
    arrows = direct(graph)
    for module in sorted(graph, key=lambda name: (-level[name], name)):
        below = ", ".join(f"`{name}`" for name in sorted(arrows[module])) or "–"
        rows.append(f"| {level[module]} | `{module}` | {described_in_rust(module)} | {below} |")
    return "\n".join(rows)


def walk_lists() -> str:
    """The ways of the six calls, as lists."""
    parts = []
    for name, folders in walks().items():
        n_files = sum(map(len, folders.values()))
        parts.append(f"`{name}`: {n_files} files in {len(folders)} folders.\n")
        for number, (folder, files) in enumerate(folders.items(), start=1):
            listed = ", ".join(f"`{file}`" for file in files)
            parts.append(f"{number}. `{folder}`: {listed}" if files != [f"{folder}.py"] else f"{number}. `{folder}.py`")
        parts.append("")
    return "\n".join(parts).strip()


BLOCKS: dict[str, Callable[[], str]] = {"folders": folder_table, "walks": walk_lists, "core": core_table}


def rewritten(page: str) -> str:
    """The page with all its blocks made anew."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- {name}: begin -->\n\n", f"\n\n<!-- {name}: end -->"
        before, rest = page.split(begin)
        page = before + begin + make() + end + rest.split(end)[1]
    return page


# --- the picture

WIDTH, BOX, HIGH, STEP, MARGIN = 1060, 130, 30, 76, 24


def picture() -> str:
    """The folders on their floors, as SVG: an arrow to what a folder imports, unless a way round says it already."""
    graph = graph_of_folders()
    level = levels(graph)
    arrows = direct(graph)
    core = graph_of_core()
    core_level = levels(core)
    place = _places(level, arrows)
    top = max(level.values())
    base = MARGIN + (top + 1) * STEP
    core_rows = max(core_level.values()) + 1
    height = base + 40 + core_rows * 34 + MARGIN

    def y(row: int) -> float:
        return MARGIN + (top - row) * STEP

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Folders of userdp on their floors">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#7a8594"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number in range(top + 1):
        line = MARGIN + (top - number) * STEP + HIGH / 2
        parts.append(f'<text x="8" y="{line + 4:g}" fill="#9aa3af" font-size="11">{number}</text>')
    for name in sorted(graph, key=FLOORS.index):
        for below in sorted(arrows[name], key=FLOORS.index):
            parts.append(_arrow(name, below, level, place, y))
    for name in sorted(graph, key=FLOORS.index):
        x = place[name] - BOX / 2
        parts.append(
            f'<g><title>{_escaped(described(name))}</title><rect x="{x:g}" y="{y(level[name]):g}" width="{BOX}" '
            f'height="{HIGH}" rx="5" fill="#eef4fb" stroke="#3b6ea5"/>'
            f'<text x="{place[name]:g}" y="{y(level[name]) + 20:g}" text-anchor="middle" '
            f'fill="#12263a">{name}</text></g>'
        )
    parts.append(
        f'<rect x="{MARGIN}" y="{base}" width="{WIDTH - 2 * MARGIN}" height="{30 + core_rows * 34}" rx="5" '
        'fill="#fbf3ea" stroke="#a5713b"/>'
        f'<text x="{MARGIN + 12}" y="{base + 20}" fill="#3a2712">the compiled core (rust/core), which any folder may '
        "ask through userdp._core</text>"
    )
    for number in range(core_rows):
        row = sorted(name for name in core if core_level[name] == number)
        line = base + 30 + (core_rows - 1 - number) * 34
        width = (WIDTH - 4 * MARGIN) / len(row)
        for index, name in enumerate(row):
            x = 2 * MARGIN + (index + 0.5) * width
            parts.append(
                f'<g><title>{_escaped(described_in_rust(name))}</title><rect x="{x - 55:g}" y="{line}" width="110" '
                f'height="26" rx="4" fill="#ffffff" stroke="#a5713b"/><text x="{x:g}" y="{line + 17}" '
                f'text-anchor="middle" fill="#3a2712">{name}</text></g>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _stops(name: str, below: str, level: Mapping[str, int]) -> list[str]:
    """What an arrow passes on the floors between its ends."""
    return [f"{name}>{below}@{row}" for row in range(level[name] - 1, level[below], -1)]


def _arrow(
    name: str, below: str, level: Mapping[str, int], place: Mapping[str, float], y: Callable[[int], float]
) -> str:
    """An arrow from the foot of a box to the roof of another, straight down through the floors between."""
    stops = _stops(name, below, level)
    x, at = place[name], y(level[name]) + HIGH
    path = f"M{x:g} {at:g}"
    for row, stop in zip(range(level[name] - 1, level[below] - 1, -1), [*stops, below], strict=True):
        to, low = place[stop], y(row)
        middle = (at + low) / 2
        path += f"C{x:g} {middle:g} {to:g} {middle:g} {to:g} {low:g}"
        x, at = to, low
        if stop != below:
            at = low + HIGH
            path += f"V{at:g}"
    return f'<path d="{path}" fill="none" stroke="#7a8594" stroke-opacity="0.7" marker-end="url(#tip)"/>'


def _places(level: Mapping[str, int], arrows: Graph) -> dict[str, float]:
    """The middle of each box and of each stop of an arrow: near the middle of those it is tied to."""
    tied: dict[str, set[str]] = defaultdict(set)
    rows: list[list[str]] = [[] for _ in range(max(level.values()) + 1)]
    for name in sorted(level, key=FLOORS.index):
        rows[level[name]].append(name)
        for below in sorted(arrows[name], key=FLOORS.index):
            stops = _stops(name, below, level)
            for floor, stop in zip(range(level[name] - 1, level[below], -1), stops, strict=True):
                rows[floor].append(stop)
            for one, other in pairwise([name, *stops, below]):
                tied[one].add(other)
                tied[other].add(one)
    place = {name: WIDTH * (index + 0.5) / len(row) for row in rows for index, name in enumerate(row)}
    for sweep in range(60):
        for row in rows if sweep % 2 else rows[::-1]:
            wanted = {
                name: statistics.fmean(place[other] for other in sorted(tied[name])) if tied[name] else WIDTH / 2
                for name in row
            }
            row.sort(key=lambda name: (wanted[name], name))
            place.update(_spread(row, wanted))
    aside = (WIDTH - min(place.values()) - max(place.values())) / 2
    return {name: round(x + aside, 1) for name, x in place.items()}


def _spread(row: list[str], wanted: Mapping[str, float]) -> dict[str, float]:
    """Places in this order, as wanted but for gaps: half pushed to the right and half to the left."""
    half = [(BOX + 16) / 2 if "@" not in name else 9 for name in row]
    right: list[float] = []
    edge = float(MARGIN)
    for name, size in zip(row, half, strict=True):
        right.append(max(wanted[name], edge + size))
        edge = right[-1] + size
    left: list[float] = []
    edge = float(WIDTH - MARGIN)
    for name, size in zip(reversed(row), reversed(half), strict=True):
        left.append(min(wanted[name], edge - size))
        edge = left[-1] - size
    middle = [(a + b) / 2 for a, b in zip(right, reversed(left), strict=True)]
    over = max(0.0, middle[-1] + half[-1] - (WIDTH - MARGIN))
    under = max(0.0, MARGIN - (middle[0] - half[0]))
    return {name: x - over + under for name, x in zip(row, middle, strict=True)}


def main() -> None:
    """Draw and write, or print."""
    parser = argparse.ArgumentParser(prog="architecture", description=inspect.getdoc(sys.modules[__name__]))
    parser.add_argument("--measure", action="store_true", help="print counts of files, lines, arrows and circles")
    parser.add_argument("--walks", action="store_true", help="print where six calls go")
    arguments = parser.parse_args()
    if arguments.measure:
        print(measured())
    if arguments.walks:
        print(walk_lists())
    if not arguments.measure and not arguments.walks:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(picture())
        PAGE.write_text(rewritten(PAGE.read_text()))


if __name__ == "__main__":
    main()
