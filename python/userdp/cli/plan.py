"""``userdp plan``: how many people a question needs, by which method, and what would need fewer."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import UsageError, delta, epsilon, require_writable, whole
from userdp.cli.rows import EXIT_HOLDS, EXIT_UNDETERMINED, EXIT_VIOLATED, Answer, Commands, option
from userdp.display.numbers import rounded
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from userdp.planning import Plan

WORDS = {"yes": True, "true": True, "no": False, "false": False, "none": None}
MOST_TEXT = 300
"""Characters of a value."""


COMMANDS = Commands()


@COMMANDS.add(
    "plan",
    "plan how many people a question needs",
    "How many people a question needs, by which method, what no method can do with fewer, and what "
    "would halve the number. No data are read. Without a task, the tasks and their parameters are listed. With "
    "--n-users: whether so many are enough, or without --alpha, for which accuracy. Exit code 1: the people there "
    "are, are not enough; 4: no method can be planned, and the table says why.",
    "userdp plan\n"
    "userdp plan mean --m 16 --epsilon 1 --alpha 0.01 homogeneous=yes\n"
    "userdp plan selection --epsilon 1 --n-users 40 n_items=100 --output plan.html\n"
    "userdp plan finite --m 64 --epsilon 1 --delta 1e-6 n_records=1000 item_epsilon=0.1 --json",
    option("task", None, "what is asked; without it, the tasks are listed", nargs="?"),
    option(
        "parameters",
        None,
        "public numbers of the task, as the list of tasks has them; promises take yes or no",
        nargs="*",
        default=[],
        metavar="name=value",
    ),
    option("--m", whole(1), "records of each person (default 1)", default=1),
    option("--epsilon", epsilon, "strength of the protection: 0.5, 1/2 or ln(3/2); needed"),
    option("--delta", delta, "chance that it may fail: 0 (default), 1e-6", default="0"),
    option("--alpha", None, "accuracy that is wanted"),
    option("--beta", None, "chance that the accuracy may be missed"),
    option("--n-users", whole(2), "how many people there are"),
    option("--output", Path, "write the plan as one page of HTML", metavar="FILE"),
    "--json",
)
def plan(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.planning import plan as make_plan

    if options.task is None:
        return _tasks()
    if options.output is not None:
        require_writable(options.output, "output")
    if options.epsilon is None:
        raise UsageError("--epsilon is needed: how strong the protection is, such as 1")
    made = make_plan(
        options.task,
        m=options.m,
        epsilon=options.epsilon,
        delta=options.delta,
        alpha=options.alpha,
        beta=options.beta,
        n_users=options.n_users,
        **_parameters(options.parameters),
    )
    if options.output is not None:
        options.output.write_text(made.to_html(), encoding="utf-8")
    code = EXIT_UNDETERMINED if made.best is None else EXIT_VIOLATED if made.enough is False else EXIT_HOLDS
    return Answer("\n".join(_lines(made)), as_json(made), code)


RESERVED = ("task", "m", "epsilon", "delta", "alpha", "beta", "n_users")


def _parameters(words: list[str]) -> dict[str, Any]:
    """What name=value words say: whole numbers, yes or no, and other numbers and words as they are written."""
    found: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name.isidentifier() or len(text) > MOST_TEXT:
            raise UsageError(f"{short_repr(word)} is not name=value, such as dimension=3")
        if name in RESERVED:
            raise UsageError(f"{name} is an option: --{name.replace('_', '-')} {short_repr(text)}")
        if name in found:
            raise UsageError(f"{name} is given twice")
        digits = text.replace("_", "")
        if text.lower() in WORDS:
            found[name] = WORDS[text.lower()]
        elif digits.isascii() and digits.removeprefix("-").isdigit():
            found[name] = int(digits)
        else:
            found[name] = text
    return found


def _tasks() -> Answer:
    """The tasks and their parameters."""
    from userdp.planning.problem import REQUIRED
    from userdp.planning.tasks import TASKS

    lines, listed = [], []
    for task in TASKS.values():
        lines.append(f"{task.name}: {task.question}")
        for each in task.parameters:
            default = "needed" if each.default is REQUIRED else f"default {_shown(each.default)}"
            lines.append(f"    {each.name}: {each.what} ({default})")
        parameters = [
            {"name": each.name, "what": each.what, "required": each.default is REQUIRED} for each in task.parameters
        ]
        listed.append(
            {"task": task.name, "question": task.question, "accuracy": task.measure, "parameters": parameters}
        )
    return Answer("\n".join(lines), {"tasks": listed})


def _shown(value: Any) -> str:
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


def _lines(made: Plan) -> Iterator[str]:
    """The plan as lines of text."""
    records = made.sizes["m"]
    yield f"{made.question}, {records:,} record{'' if records == 1 else 's'} of each person"
    if made.best is None:
        yield "no method can be planned here"
    else:
        yield f"people needed: {made.best.n_users:,} ({made.best.basis}), by {made.best.method}; {made.measure}"
        if made.n_users is not None:
            yield f"people there are: {made.n_users:,}, {'enough' if made.enough else 'not enough'}"
        if made.reached is not None:
            yield f"accuracy that they are enough for: about {made.reached:.3g} ({made.reached_kind})"
    yield _bound_line(made)
    width = max(len(line.method) for line in made.ways.rows)
    for line in made.ways.rows:
        users = "-" if line.users is None else f"{line.users:,}"
        notes = [f"promise: {line.needs}"] * (line.needs != "nothing") + [line.note] * bool(line.note)
        yield f"  {line.method:<{width}}  {users:>13}  {'; '.join(notes)}".rstrip()
    if made.changes:
        yield "what would halve it:"
        for change in made.changes:
            yield f"  {change.text}"


def _bound_line(made: Plan) -> str:
    known = f"not known ({made.no_bound})" if made.least is None else f"{made.least:,} (proved)"
    if made.least is not None and made.best is not None and made.best.basis not in ("proved", "exact"):
        known += ", whoever the people are; the number above is for people as simulated"
    return f"no method can do with fewer than: {known}"


def as_json(made: Plan) -> dict[str, Any]:
    """The plan as one JSON object."""
    return {
        "task": made.task,
        "question": made.question,
        "measure": made.measure,
        "sizes": {name: _plain(value) for name, value in made.sizes.items()},
        "n_users": made.n_users,
        "enough": made.enough,
        "reached": made.reached,
        "needed": None if made.best is None else made.best.n_users,
        "method": None if made.best is None else made.best.method,
        "basis": None if made.best is None else made.best.basis,
        "reached_kind": made.reached_kind,
        "lower_bound": made.least,
        "lower_bound_kind": "" if made.least is None else "proved",
        "ways": [
            {
                "method": line.method,
                "protects": line.protects,
                "users": line.users,
                "rate": _plain(line.rate),
                "proved": line.proved,
                "calibrated": line.calibrated,
                "needs": line.needs,
                "note": line.note,
            }
            for line in made.ways.rows
        ],
        "halves": [
            {
                "what": change.what,
                "value": _plain(change.value),
                "users": change.n_users,
                "kind": change.kind,
                "text": change.text,
            }
            for change in made.changes
        ],
        "by_records": {name: [list(point) for point in points] for name, points in made.lines.items()},
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    number = float(value)
    return number if math.isfinite(number) else rounded(number)
