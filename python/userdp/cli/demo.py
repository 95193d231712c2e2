"""``userdp demo``: two releases audited on the wage panel."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from userdp.cli.rows import EXIT_HOLDS, EXIT_VIOLATED, Answer, Commands, holds_word, option

if TYPE_CHECKING:
    from userdp.demo import DemoAudit

INTRODUCTION = (
    "545 men told in each of eight years whether a union had set their wage (Vella and Verbeek 1998). Two releases "
    "publish in which 5% band the share of members lies; both claim epsilon = 1, delta = 0.000001 for a user. The "
    "first lets every user vote once. The second counts every answer and adds the noise that hides one answer. Each "
    "audit compares the exact output distributions on these users with those after replacing any one of them by any "
    "history."
)


COMMANDS = Commands()


@COMMANDS.add(
    "demo",
    "audit two releases on real users' data",
    "Audit a private vote and an item-level count on the wage panel of 545 users (needs the extra: "
    "pip install 'userdp[demo]'). Exit code 0 when every verdict is the expected one, the refutation included.",
    "userdp demo\nuserdp demo --output panel.html --certificates certificates",
    option("--output", Path, "page to write (default report.html)", default=Path("report.html")),
    option("--certificates", Path, "folder of the JSON certificates (by default the page's)"),
    "--json",
)
def demo(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.datasets import load_wage_panel
    from userdp.demo import run_demo
    from userdp.report import render_html

    panel = load_wage_panel()
    audits = run_demo(panel.users("union"))
    findings = [_finding(audit, panel.person_ids) for audit in audits if audit.report.holds is False]
    introduction = "\n\n".join([INTRODUCTION, *findings])
    folder = options.output.parent if options.certificates is None else options.certificates
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{options.output.stem}{audit.suffix}.json" for audit in audits]
    for audit, file in zip(audits, files, strict=True):
        file.write_text(audit.report.to_json(), encoding="utf-8")
    written = [*map(str, files)]
    try:
        page = render_html(
            [audit.report for audit in audits],
            "Two releases from one panel, audited",
            introduction,
            titles=[audit.title for audit in audits],
            commands=[
                f"userdp verify {shlex.quote(file.name)} --mechanism {audit.mechanism}"
                for audit, file in zip(audits, files, strict=True)
            ],
        )
        options.output.write_text(page, encoding="utf-8")
        written.insert(0, str(options.output))
    except ImportError as error:  # the certificates say the same, and more
        print(f"userdp: no page: {error}", file=sys.stderr)
    succeeded = all(audit.as_expected for audit in audits)
    parts = [{"title": audit.title, "expected": audit.expected, "report": audit.report.to_dict()} for audit in audits]
    told = [
        f"{audit.title}: {holds_word(audit.report.holds)} (expected: {holds_word(audit.expected)})\n"
        f"{audit.report.summary()}\n"
        for audit in audits
    ]
    text = "\n".join([*told, *(f"{finding}\n" for finding in findings), f"Wrote {', '.join(written)}"])
    return Answer(text, {"as_expected": succeeded, "audits": parts}, EXIT_HOLDS if succeeded else EXIT_VIOLATED)


def _finding(audit: DemoAudit, person_ids: Sequence[int]) -> str:
    """Name the user and the event of a refutation."""
    report, witness = audit.report, audit.report.witness
    if witness is None or witness.changed_user is None:
        return f"{audit.title}: the claim is refuted."
    position = witness.changed_user
    # The release on the real data is one side of the pair; either may be the one on which the event is likelier.
    real_first = witness.ranks[0] == 0
    before, after = (witness.x, witness.x2) if real_first else (witness.x2, witness.x)
    events = " or ".join(sorted(map(str, witness.event)))
    likelier = "less" if real_first else "more"
    return (
        f"{audit.title}: the claim is refuted by user {person_ids[position]} of the panel. Had this user "
        f"answered {after[position]} instead of {before[position]}, the band {events} would be {likelier} likely by "
        f"more than e^epsilon allows: the worst delta is {report.worst_delta.lower:.3g}, not {float(report.delta):.3g}."
    )
