"""Mutants: small faults, one at a time, in the code that the tests must notice."""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDERS = ("accounting", "audit", "delstab", "mechanisms", "users")
"""The folders of the package that carry the privacy guarantee; a mutant is planted in one of them."""

COMPARISONS = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNTOUCHED_DECORATORS = {"overload", "abstractmethod"}


@dataclass(frozen=True)
class Mutant:
    """One fault: the text from `start` to `end` of `file` becomes `new`."""

    file: str
    function: str
    """Qualified name of the function or class around it, or "" at the top of a module."""
    operator: str
    line: int
    last_line: int
    start: int
    end: int
    new: str
    text: str
    """The expression or statement that changes, as `ast.unparse` writes it."""
    statement: str
    """The statement around it (its head, when it has a body), likewise."""
    ordinal: int
    """Its place among those of the same function, operator and text."""

    @property
    def folder(self) -> str:
        """The folder of the package that it is planted in."""
        return Path(self.file).parts[2]

    @property
    def name(self) -> str:
        """What identifies it in one tree."""
        return f"{self.file}::{self.function}::{self.operator}::{self.text}::{self.ordinal}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Finder:
    """Finds the places of one module where a mutant can be planted."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.bytes = source.encode()
        self.starts = [0]
        for line in self.bytes.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.found: list[Mutant] = []

    def at(self, line: int, column: int) -> int:
        """A place as an offset in bytes."""
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)

    def token(self, symbol: str, start: int, end: int) -> tuple[int, int] | None:
        """Where the operator `symbol` stands between two operands, outside comments and brackets."""
        between = self.bytes[start:end].decode()
        words = symbol.split()
        offset = 0
        lines = [0]
        for line in between.splitlines(keepends=True):
            lines.append(lines[-1] + len(line.encode()))
        try:
            tokens = [
                token
                for token in tokenize.generate_tokens(io.StringIO(between).readline)
                if token.type in (tokenize.OP, tokenize.NAME)
            ]
        except (tokenize.TokenError, IndentationError):
            offset = between.find(symbol)
            return (start + offset, start + offset + len(symbol)) if offset >= 0 else None
        for place in range(len(tokens) - len(words) + 1):
            if [token.string for token in tokens[place : place + len(words)]] == words:
                first, last = tokens[place], tokens[place + len(words) - 1]
                return start + lines[first.start[0] - 1] + first.start[1], start + lines[last.end[0] - 1] + last.end[1]
        return None

    def add(self, node: ast.expr | ast.stmt, operator: str, start: int, end: int, new: str, around: Around) -> None:
        """Keep a mutant."""
        text = ast.unparse(node)
        key = (around.function, operator, text)
        self.seen[key] += 1
        self.found.append(
            Mutant(
                file=self.file,
                function=around.function,
                operator=operator,
                line=node.lineno,
                last_line=node.end_lineno or node.lineno,
                start=start,
                end=end,
                new=new,
                text=text,
                statement=around.statement,
                ordinal=self.seen[key],
            )
        )

    def expression(self, node: ast.expr, around: Around) -> None:
        """What can change in an expression, its parts included."""
        if isinstance(node, (ast.JoinedStr, ast.Lambda)) and isinstance(node, ast.JoinedStr):
            return  # text for people
        start, end = self.span(node)
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, sign, right in zip(operands, node.ops, operands[1:], strict=False):
                symbol, others = COMPARISONS[type(sign)]
                place = self.token(symbol, self.span(left)[1], self.span(right)[0])
                for other in others if place else ():
                    assert place
                    self.add(node, f"{symbol} -> {other}", *place, other, around)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not (is_text(node.left, node.right)):
            symbol, other = ARITHMETIC[type(node.op)]
            place = self.token(symbol, self.span(node.left)[1], self.span(node.right)[0])
            if place:
                self.add(node, f"{symbol} -> {other}", *place, other, around)
        elif isinstance(node, ast.BoolOp):
            symbol, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                place = self.token(symbol, self.span(left)[1], self.span(right)[0])
                if place:
                    self.add(node, f"{symbol} -> {other}", *place, other, around)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self.span(node.operand)[0]
            if b"(" not in self.bytes[start:operand]:
                self.add(node, "not x -> x", start, operand, "", around)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            self.add(node, f"{node.value} -> {not node.value}", start, end, str(not node.value), around)
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            self.add(node, "n -> n + 1", start, end, repr(node.value + 1), around)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            other = SWAPPED[node.func.id]
            self.add(node, f"{node.func.id} -> {other}", *self.span(node.func), other, around)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.expression(part, around)
            elif isinstance(part, ast.keyword):
                self.expression(part.value, around)
            elif isinstance(part, ast.comprehension):
                for inner in (part.target, part.iter, *part.ifs):
                    self.expression(inner, around)
            elif isinstance(part, ast.arguments):
                for default in (*part.defaults, *(value for value in part.kw_defaults if value)):
                    self.expression(default, around)

    def statements(self, body: list[ast.stmt], function: str) -> None:
        """What can change in a list of statements."""
        for node in body:
            self.one_statement(node, function)

    def one_statement(self, node: ast.stmt, function: str) -> None:
        """What can change in one statement."""
        around = Around(function, head(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{function}.{node.name}" if function else node.name
            if UNTOUCHED_DECORATORS & {ast.unparse(decorator) for decorator in node.decorator_list}:
                return
            if not isinstance(node, ast.ClassDef):
                defaults = (*node.args.defaults, *(value for value in node.args.kw_defaults if value))
                for default in defaults:
                    self.expression(default, Around(inner, head(node)))
            self.statements(node.body, inner)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)) or is_documentation(node):
            return
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and is_declaration(node):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
            start, end = self.span(node.body[0])
            self.add(node.body[0], "raise -> pass", start, end, "pass", around)
        if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
            self.add(node, "return x -> return None", *self.span(node.value), "None", around)
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            symbol, other = ARITHMETIC[type(node.op)]
            place = self.token(f"{symbol}=", self.span(node.target)[1], self.span(node.value)[0])
            if place:
                self.add(node, f"{symbol}= -> {other}=", *place, f"{other}=", around)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "type_comment"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.expr):
                    self.expression(part, around)
                elif isinstance(part, ast.stmt):
                    self.one_statement(part, function)
                elif isinstance(part, ast.withitem):
                    self.expression(part.context_expr, around)
                elif isinstance(part, (ast.ExceptHandler, ast.match_case)):
                    self.statements(part.body, function)


@dataclass(frozen=True)
class Around:
    """Where a mutant stands."""

    function: str
    statement: str


def head(node: ast.stmt) -> str:
    """A statement's first line, as `ast.unparse` writes it, without decorators."""
    text = ast.unparse(node)
    lines = [line for line in text.splitlines() if not line.startswith("@")]
    compound = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef, ast.Match)
    return lines[0] if isinstance(node, compound) else "\n".join(lines)


def is_text(*nodes: ast.expr) -> bool:
    """Whether one of them is a text."""
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in nodes
    )


def is_documentation(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, `...`, or a warning to people."""
    if not isinstance(node, ast.Expr):
        return False
    return isinstance(node.value, ast.Constant) or ast.unparse(node.value).startswith("warnings.warn")


def is_declaration(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> bool:
    """Whether a statement declares what is exported or a type."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(ast.unparse(target) in ("__all__", "__slots__") for target in targets):
        return True
    value = ast.unparse(node.value) if node.value else ""
    return value.startswith(("TypeVar(", "NewType(")) or (
        isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    )


def mutants_of(tree: Path, file: Path) -> list[Mutant]:
    """All mutants of a module."""
    source = file.read_text()
    finder = Finder(str(file.relative_to(tree)), source)
    finder.statements(ast.parse(source).body, "")
    return finder.found


def mutated(source: bytes, mutant: Mutant) -> bytes:
    """The source with the fault in it."""
    before, after = source[: mutant.start], source[mutant.end :]
    return before + mutant.new.encode() + after


def all_mutants(tree: Path, folders: tuple[str, ...] = FOLDERS) -> dict[str, list[Mutant]]:
    """All mutants of each folder, in the order of the code."""
    return {
        folder: [
            mutant
            for file in sorted((tree / "python" / "userdp" / folder).rglob("*.py"))
            for mutant in mutants_of(tree, file)
        ]
        for folder in folders
    }


def sample(found: dict[str, list[Mutant]], per_folder: int, seed: int) -> Iterator[Mutant]:
    """As many mutants of every folder, drawn without replacement, one folder after the other in turn."""
    drawn = {}
    for folder, mutants in sorted(found.items()):
        drawn[folder] = random.Random(f"{seed}:{folder}").sample(mutants, min(per_folder, len(mutants)))
    for place in range(per_folder):
        for mutants in drawn.values():
            if place < len(mutants):
                yield mutants[place]
