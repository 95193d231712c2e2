"""The command `table`: private counts, sums, means and more of a file with a column of user ids."""

from __future__ import annotations

import argparse
import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from userdp.cli.arguments import UsageError, read_text, require_writable, whole
from userdp.cli.csv_files import CSV_OPTIONS, csv_table, is_csv, refuse_csv_options
from userdp.cli.keys import read_keys
from userdp.cli.rows import Answer, Commands, option
from userdp.exact.numbers import parse_delta

MOST_TEXT = 10_000
"""Characters of a question on the command line."""
MOST_DEPTH = 50
"""Of its parts in parts."""
KINDS = ("number", "integer", "boolean", "category", "key", "timestamp")
AGGREGATES = ("count_users", "count_rows", "sum", "mean", "quantile", "histogram", "cdf")
COMPARISONS = {ast.Eq: "__eq__", ast.NotEq: "__ne__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__"}
COMPARISONS |= {ast.GtE: "__ge__"}


COMMANDS = Commands()


@COMMANDS.add(
    "table",
    "private counts, sums, means, quantiles and CDFs of a table",
    "Answer a question about a file of rows with a column of user ids, with privacy for users. The "
    "file is .parquet, .feather or .arrow, or CSV: .csv, .tsv or .txt, perhaps with .gz, or - for standard input. "
    "The schema is a .toml or .json file that says what "
    'is public of each column: [wage] with type = "number", low = 0, high = 50; or type = "integer", "boolean", '
    '"category" with values = [...], "timestamp" with low and high, or "key" with kind = "str", "int", "date" or '
    '"datetime". Nothing of the schema may be taken from the data. '
    "Each run spends its budget again: add up the epsilons of all runs on the same people.",
    "userdp table people.parquet --user nr --schema schema.toml --epsilon 1 \\\n"
    "    --group-by occupation --max-keys 3 people=count_users 'wage=mean(lwage)'\n"
    "userdp table people.parquet --user nr --schema schema.toml --epsilon 1 \\\n"
    "    --group-by town,year --keys north,south --keys 2019,2020 people=count_users\n"
    "userdp table people.parquet --user nr --schema schema.toml --epsilon 1 \\\n"
    "    --where 'union == 1 and hours > 1000' 'median=quantile(lwage, \"1/2\")' --plan --n-users 500",
    option("file", Path, "the rows: .parquet, .feather, .arrow, .csv, .tsv, .txt (.gz), or -"),
    option(
        "answers",
        None,
        f"what is asked: {', '.join(AGGREGATES)}, as in the examples",
        nargs="*",
        default=[],
        metavar="name=aggregate",
    ),
    option("--user", None, "the column of user ids", required=True),
    option("--schema", Path, ".toml or .json file of public types and bounds", required=True),
    option("--epsilon", None, "privacy parameter: a decimal, a fraction, or ln(fraction)", required=True),
    option("--delta", None, "probability; positive where groups are not known (default 0)", default="0"),
    option("--neighbors", ("add-remove", "replace"), default="add-remove"),
    option("--where", None, "which rows count, such as 'union == 1 and hours > 1000'", metavar="CONDITION"),
    option("--group-by", None, "columns of keys, with commas between them", metavar="COLUMNS"),
    option(
        "--keys",
        None,
        "the public list of groups, all of which are in the answer: values with commas between them, once for "
        "each column of --group-by (then all combinations are groups); or a .csv or .parquet file with these "
        "columns, a .txt file with a value in each line, or a .json list. Do not take it from the data",
        action="append",
        metavar="LIST|FILE",
    ),
    option("--others", bool, "with --keys: show other groups too, those of many users; needs --delta"),
    option("--max-keys", whole(1), "in how many groups a user counts at most"),
    option(
        "--keys-only",
        ("two-round", "policy", "one-round"),
        "in place of answers: which groups there are, and how to find out (default two-round)",
        nargs="?",
        const="two-round",
    ),
    option("--plan", bool, "say what it costs and how wrong it is, and read no row"),
    option("--n-users", whole(1), "with --plan: about how many users there are"),
    option("--card", Path, "write the card as .md or .html", metavar="FILE"),
    option("--output", Path, "write the numbers as .csv or .parquet", metavar="FILE"),
    "--json",
    CSV_OPTIONS,
)
def table(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.tables import Session

    schema = read_schema(options.schema)
    delta = parse_delta(options.delta)
    for name, path, endings in (
        ("card", options.card, (".md", ".html")),
        ("output", options.output, (".csv", ".parquet")),
    ):
        if path is not None and path.suffix.lower() not in endings:
            raise UsageError(f"--{name}: {path}: the ending must be {' or '.join(endings)}")
        if path is not None:
            _writable(path, name)
    session = Session(
        read_rows(options.file, options),
        user=options.user,
        schema=schema,
        epsilon=options.epsilon,
        delta=delta,
        neighbors=options.neighbors,
        composition="basic",
    )
    query = session.query()
    if options.where is not None:
        query = query.filter(condition(options.where))
    if options.group_by is not None:
        columns = [name.strip() for name in options.group_by.split(",")]
        keys = None if options.keys is None else read_keys(options.keys, columns, schema)
        query = query.group_by(*columns, keys=keys, max_keys=options.max_keys, others=options.others)
    else:
        for name in ("keys", "others", "max_keys"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} goes with --group-by")
    if options.keys_only is not None:
        if options.answers or options.group_by is None:
            raise UsageError("--keys-only goes with --group-by, and without answers such as name=count_users")
        query = query.keys_only(options.keys_only)
    elif not options.answers:
        raise UsageError("nothing is asked for: give answers such as name=count_users, or --keys-only")
    else:
        query = query.agg(**dict(aggregate(text) for text in options.answers))
    if options.plan:
        return Answer(str(session.plan(query, n_users=options.n_users)))
    if options.n_users is not None:
        raise UsageError("--n-users goes with --plan")
    release = session.release(query)
    lost = []
    for path, write in ((options.card, _write_card), (options.output, _write_numbers)):
        try:
            if path is not None:
                write(release, path)
        except Exception as error:  # a full disk, or texts that the format cannot hold: the numbers are still shown
            lost.append(f"{path} was not written: {type(error).__name__}: {error}")
    answer = Answer(str(release), release)
    if lost:
        print(answer.shown(as_json=options.json))
        raise UsageError("; ".join(lost) + ". The release has been made, and its numbers are what is printed")
    return answer


# --- files


def _writable(path: Path, option: str) -> None:
    """Refuse what cannot be written before a release is made that could not be kept."""
    require_writable(path, option)
    needed = {"card": (), "output": ("pandas", "pyarrow") if path.suffix.lower() == ".parquet" else ("pandas",)}[option]
    missing = next((name for name in needed if find_spec(name) is None), None)
    if missing is not None:
        raise UsageError(f"--{option}: {path.suffix} files need {missing} (pip install {missing})")


def _write_card(release: Any, path: Path) -> None:
    form = "html" if path.suffix.lower() == ".html" else "markdown"
    path.write_text(release.card(form), encoding="utf-8", errors="backslashreplace")


def _write_numbers(release: Any, path: Path) -> None:
    frame = release.to_frame("pandas")
    if path.suffix.lower() == ".csv":
        frame.to_csv(path, index=False, errors="backslashreplace")
    else:
        frame.to_parquet(path)


def read_rows(path: Path, options: argparse.Namespace) -> Any:
    """A table on disk or on standard input, of which nothing is read yet where the format allows it."""
    if is_csv(path):
        return csv_table(path, options)
    refuse_csv_options(path, options)
    ending = path.suffix.lower()
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    formats = {".parquet": "parquet", ".feather": "feather", ".arrow": "ipc"}
    if ending not in formats:
        raise UsageError(f"{path}: the ending must be .parquet, .feather, .arrow, .csv, .tsv or .txt")
    try:
        import pyarrow.dataset
    except ModuleNotFoundError:
        raise UsageError(f"{path}: {ending} files need pyarrow (pip install pyarrow)") from None
    try:
        return pyarrow.dataset.dataset(path, format=formats[ending])
    except (OSError, ValueError):
        raise UsageError(f"{path} is no {ending} file that can be read") from None


def read_schema(path: Path) -> Any:
    """A schema from a file."""
    import datetime

    from userdp import tables

    try:
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise UsageError(f"--schema: {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--schema: {error}") from None
    if path.suffix.lower() == ".toml":
        try:
            import tomllib  # type: ignore[import-not-found, unused-ignore]
        except ModuleNotFoundError:
            raise UsageError(f"{path}: .toml files need Python 3.11; write the schema as .json") from None
        try:
            content = tomllib.loads(text)
        except RecursionError:
            raise UsageError(f"{path} is not TOML that can be read") from None
        except ValueError as error:  # also an integer of more digits than Python reads
            raise UsageError(f"{path}: {error}") from None
    else:
        try:
            content = json.loads(text)
        except RecursionError:
            raise UsageError(f"{path} is not JSON that can be read") from None
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(column, dict) for column in content.values()):
        raise UsageError(f"{path}: a schema has an entry for each column, such as [wage] with type, low and high")
    types = {"str": str, "int": int, "date": datetime.date, "datetime": datetime.datetime}
    columns = {}
    for name, column in content.items():
        given = dict(column)
        kind = given.pop("type", None)
        if kind not in KINDS:
            raise UsageError(f"{path}: the type of {name!r} must be {', '.join(KINDS)}; got {kind!r}")
        if kind == "key" and isinstance(given.get("kind"), str):
            given["kind"] = types.get(given["kind"], given["kind"])
        if kind == "timestamp":
            given |= {name: _time(given[name], path) for name in ("low", "high", "default") if name in given}
        try:
            columns[name] = getattr(tables, kind)(**given)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{path}: {name!r}: {error}") from None
    try:
        return tables.Schema(columns)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def _time(value: Any, path: Path) -> Any:
    """A time in a schema: TOML has such, and in JSON it is a text."""
    import datetime

    try:
        return datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise UsageError(f"{path}: {value!r} is no time such as 2024-01-31T09:30") from None


# --- questions, in a part of Python's own grammar


def parsed(text: str, what: str) -> ast.expr:
    """An expression of Python, of which nothing is run, and that is not too deep for whoever walks it."""
    if len(text) > MOST_TEXT:
        raise UsageError(f"{what} has more than {MOST_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{what} cannot be read: {text!r}") from None
    level: list[ast.AST] = [tree]
    for _ in range(MOST_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise UsageError(f"{what} is nested over {MOST_DEPTH} deep")
    return tree


def aggregate(text: str) -> tuple[str, Any]:
    """A name and an aggregate, such as ``wage=mean(lwage)``."""
    from userdp import tables

    name, equals, what = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise UsageError(f"{text!r}: an answer is name=aggregate, such as people=count_users or wage=mean(lwage)")
    call = parsed(what, "an answer")
    function, arguments, named = call, [], {}
    if isinstance(call, ast.Call):
        function = call.func
        arguments = [_argument(one) for one in call.args]
        named = {one.arg: _argument(one.value) for one in call.keywords if one.arg is not None}
    if not isinstance(function, ast.Name) or function.id not in AGGREGATES:
        raise UsageError(f"{text!r}: the aggregates are {', '.join(AGGREGATES)}")
    try:
        return name.strip(), getattr(tables, function.id)(*arguments, **named)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{text!r}: {error}") from None


def _argument(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return node.id  # a column
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        raise UsageError(
            f"{ast.unparse(node)!r}: the arguments are columns, numbers, texts and lists of them"
        ) from None


def condition(text: str) -> Any:
    """A condition on rows, such as ``union == 1 and hours > 1000``."""
    try:
        return _condition(parsed(text, "--where"))
    except (TypeError, ValueError) as error:
        raise UsageError(f"--where: {error}") from None


def _condition(node: ast.expr) -> Any:
    from userdp.tables import col

    if isinstance(node, ast.BoolOp):
        parts = [_condition(value) for value in node.values]
        whole_of = parts[0]
        for part in parts[1:]:
            whole_of = whole_of & part if isinstance(node.op, ast.And) else whole_of | part
        return whole_of
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_condition(node.operand)
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        parts = [
            _comparison(left, operation, right)
            for left, operation, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        both = parts[0]
        for part in parts[1:]:
            both = both & part
        return both
    if isinstance(node, ast.Name):
        return col(node.id)
    raise ValueError(
        f"{ast.unparse(node)!r} is no condition; there are comparisons (== != < <= > >= in) of columns and values, "
        "and, or, not"
    )


def _comparison(left: ast.expr, operation: ast.cmpop, right: ast.expr) -> Any:
    from userdp.tables import Expression, lit

    first = _operand(left)
    first = first if isinstance(first, Expression) else lit(first)
    if isinstance(operation, (ast.In, ast.NotIn)):
        inside = first.is_in(ast.literal_eval(right))
        return ~inside if isinstance(operation, ast.NotIn) else inside
    if type(operation) not in COMPARISONS:
        raise ValueError("comparisons are == != < <= > >= and in")
    return getattr(first, COMPARISONS[type(operation)])(_operand(right))


def _operand(node: ast.expr) -> Any:
    from userdp.tables import col

    return col(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
