"""What each command does: its options, its call of the library, its text, JSON and exit code."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from userdp.checker import check, work
from userdp.checker.coq import compared
from userdp.cli.arguments import UsageError, content, distribution, load_mechanism, universe, users, whole
from userdp.cli.rows import (
    DATASET,
    EXIT_BUDGET,
    EXIT_HOLDS,
    EXIT_NOT_ESTABLISHED,
    EXIT_VIOLATED,
    EXIT_WRONG_REPORT,
    MECHANISM,
    NOT_PRIVATE,
    Answer,
    Commands,
    ends,
    exit_code,
    group,
    holds_word,
    named,
    option,
)

COMMANDS = Commands()

# --- userdp divergence: two distributions compared


@COMMANDS.add(
    "divergence",
    "compare two distributions",
    "Hockey-stick divergences of two distributions in both directions, and with --delta a decided "
    "verdict. A distribution is a list such as 1/2,1/4,1/4 (decimals and fractions are exact) or a .json, .csv, "
    ".txt or .npy file of numbers (.npy floats are taken as the exact numbers they are).",
    "userdp divergence 3/4,1/4 1/4,3/4 --epsilon 'ln(2)' --delta 1/4\n"
    "userdp divergence p.npy q.npy --epsilon 0.5 --json",
    option("p", distribution, "first distribution: a list, or a file"),
    option("q", distribution, "second distribution: a list, or a file"),
    "--epsilon! --delta --json",
)
def divergence(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.divergence import epsilon_at_delta, hockey_stick_bounds, is_indistinguishable, total_variation

    p, q, epsilon, delta = options.p, options.q, options.epsilon, options.delta
    if len(p) != len(q):
        raise ValueError(f"the first distribution has {len(p)} masses and the second {len(q)}; they must match")
    result: dict[str, Any] = {
        "epsilon": epsilon,
        "hockey_stick_p_q": ends(hockey_stick_bounds(p, q, epsilon)),
        "hockey_stick_q_p": ends(hockey_stick_bounds(q, p, epsilon)),
        "total_variation": total_variation(p, q),
    }
    code = EXIT_HOLDS
    if delta is not None:
        verdict = is_indistinguishable(p, q, epsilon=epsilon, delta=delta)
        result |= {
            "delta": delta,
            "holds": verdict.holds,
            "event": None if verdict.event is None else list(verdict.event),
            "direction": verdict.direction,
            "decided_by": verdict.decided_by,
            "epsilon_at_delta": ends(epsilon_at_delta(p, q, delta)),
        }
        code = exit_code(verdict.holds)
    lines = [
        f"hockey-stick p||q   {_interval(result['hockey_stick_p_q'])}",
        f"hockey-stick q||p   {_interval(result['hockey_stick_q_p'])}",
        f"total variation     {result['total_variation']}",
    ]
    if delta is not None:
        lines.append(f"epsilon at delta    {_interval(result['epsilon_at_delta'])}")
        lines.append(f"({epsilon}, {delta})-indistinguishable: {holds_word(result['holds'])}")
        if not result["holds"]:
            lines.append(f"shown by outputs    {result['event']} ({result['direction']})")
    return Answer("\n".join(lines), result, code)


def _interval(bounds: list[Any]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"between {bounds[0]} and {bounds[1]}"


# --- userdp audit: an exact audit of a mechanism that the user names


@COMMANDS.add(
    "audit",
    "audit a mechanism over all neighboring datasets",
    "Audit a finite algorithm exactly: over all datasets of a small universe (--universe, --n-users, "
    "--n-examples), or one dataset against every replacement of one user (--dataset, --records). Exit code 0: the "
    "claim holds, and the report holds all pmfs; 1: it is violated; 4: undetermined within pmf_error; 5: no "
    "violation, but more than a million pairs, of which a report is a sample that establishes nothing.",
    "userdp audit vote.py:vote --universe 0,1 --n-users 3 --epsilon 'ln(3)' --delta 0\n"
    "userdp audit vote.py:vote --dataset users.json --records records.json --epsilon 1 --delta 1e-6 \\\n"
    "    --html report.html --certificate report.json",
    "mechanism --epsilon! --delta! --json",
    group(
        "all datasets of a universe",
        option("--universe", universe, "possible examples: 0,1 or a JSON list such as [[0, 1], [1, 1]]"),
        "--n-users",
        option("--n-examples", whole(1), "examples per user (default 1)", default=1),
        option("--level", ("user", "item"), "what neighbors differ in", default="user"),
        "--neighbors",
    ),
    group(
        "one dataset",
        "--dataset",
        option("--records", users, "JSON file: what a replaced user may have given, a list of users", metavar="FILE"),
    ),
    option("--engine", ("auto", "labeled", "symmetric", "additive"), default="auto"),
    "--budget --html --certificate",
)
def audit(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.audit import audit_dataset, audit_item_level, audit_user_level

    common = named(options, "epsilon delta engine budget")
    if options.dataset is not None:
        if options.records is None or options.universe is not None:
            raise ValueError("--dataset goes with --records, and not with --universe")
        if options.n_users is not None or options.level != "user" or options.neighbors != "replace":
            raise ValueError("--n-users, --level item and --neighbors add-remove go with --universe")
        mechanism = load_mechanism(options.mechanism)
        report = audit_dataset(mechanism, options.dataset, records=options.records, **common)
    else:
        if options.universe is None or options.n_users is None:
            raise ValueError("give --universe and --n-users, or --dataset and --records")
        common |= named(options, "universe n_users n_examples")
        mechanism = load_mechanism(options.mechanism)
        if options.level == "item":
            if options.neighbors != "replace":
                raise ValueError("--neighbors add-remove goes with --level user")
            report = audit_item_level(mechanism, **common)
        else:
            report = audit_user_level(mechanism, neighbors=options.neighbors, **common)
    answer = Answer.of(report)
    sampled = report.verification == "sampled" and answer.code == EXIT_HOLDS
    return replace(answer, code=EXIT_NOT_ESTABLISHED) if sampled else answer


# --- userdp verify: an audit certificate checked, without the compiled core


@COMMANDS.add(
    "verify",
    "check a report in pure Python",
    "Decide a verdict again from a report (a JSON file written by userdp audit --certificate or "
    "to_json), in pure Python, and with --mechanism compute its pmfs again. Exit code "
    "0: the claim is established; 1: it is refuted; 4: undetermined within pmf_error; 5: not established, since "
    "nothing (no --mechanism) or only a part was computed again; 6: the report is wrong. The certificate of a "
    "composition needs no mechanism.",
    "userdp verify report.json\nuserdp verify report.json --mechanism vote.py:vote",
    option("certificate", content, "the JSON file"),
    option("--mechanism", help=f"{MECHANISM}; it is run"),
    option("--dataset", users, f"for a check of deletions: {DATASET}", metavar="FILE"),
    option("--coq", Path, "a .v file: it must be the one that the report gives", metavar="FILE"),
    option(
        "--proofs",
        Path,
        "--coq: the compiled folder proofs of the source, with which coqc checks the file too",
        metavar="DIR",
    ),
    option("--seconds", whole(1), "allow a check of so many seconds, by count (default 8)", metavar="S"),
    "--json",
)
def verify(options: argparse.Namespace) -> Answer:
    """Run the command; what needs no mechanism is done by the checker alone, which loads the standard library only."""
    with work.at_most(options.seconds):
        report = check.read(options.certificate)
        kind = check.kind_of(report)
        if options.coq is not None and kind != "certificate":
            raise UsageError("--coq: only a certificate of a table has a file for Coq")
        if options.proofs is not None and options.coq is None:
            raise UsageError("--proofs goes with --coq")
        if options.mechanism is not None:
            found = _run_again(options)
        elif options.dataset is not None and kind != "lddp":
            raise UsageError("--dataset: only a check of deletions needs it, other reports hold their data")
        else:
            found = check.check(report)
    coq = None
    if options.coq is not None and not found.problems:
        coq = compared(report, options.coq, options.proofs)
        if coq.state in ("different", "refused"):
            found = check.Verification("wrong", (coq.words,))
    holds = check.holds_of(report)
    lines = [str(found)]
    if not found.problems:
        lines += [*([] if coq is None else [coq.words]), "The report says:", *check.said_by(report)]
    said = {
        "schema_version": 2,
        "finding": found.finding,
        "explanation": found.explanation,
        "problems": list(found.problems),
        "datasets": found.datasets,
        "pairs": found.pairs,
        "holds": holds,
        "refuted": found.refuted,
        "coq": None if coq is None else coq.state,
        "assumptions": report.get("assumptions", []),
    }
    return Answer("\n".join(lines), said, _verification_code(found, holds))


def _run_again(options: argparse.Namespace) -> check.Verification:
    """What is found with the mechanism."""
    from userdp.report import LDDPResult, Report

    report, mechanism = Report.from_json(options.certificate), load_mechanism(options.mechanism)
    if isinstance(report, LDDPResult):
        return report.verify(mechanism, options.dataset)
    if options.dataset is not None:
        raise UsageError("--dataset: only a check of deletions needs it, other reports hold their data")
    return report.verify(mechanism)


def _verification_code(found: check.Verification, holds: bool | None) -> int:
    """0 for what is established and holds, and for nothing else."""
    if found.finding == "wrong":
        return EXIT_WRONG_REPORT
    if found.finding == "refused":
        return EXIT_BUDGET
    if found.refuted:
        return EXIT_VIOLATED
    return exit_code(holds) if found.finding == "established" else EXIT_NOT_ESTABLISHED


# --- userdp lddp: whether an algorithm is stable when users are deleted from one dataset


@COMMANDS.add(
    "lddp",
    "check stability under deletion of users",
    "Decide exactly whether the distributions of a finite algorithm are within (epsilon, delta) of "
    "each other whichever r users are deleted from a dataset (local deletion DP).",
    "userdp lddp vote.py:vote --dataset users.json -r 2 --epsilon 0.5 --delta 1e-6",
    "algorithm --dataset!",
    option("--deletions -r", whole(0), "users to delete", required=True, metavar="R"),
    "--epsilon! --delta! --json --budget",
)
def lddp(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.lddp import check_lddp

    asked = named(options, "epsilon delta budget")
    return Answer.of(check_lddp(load_mechanism(options.algorithm), options.dataset, r=options.deletions, **asked))


# --- userdp delstab: what DelStab does on one dataset, or one private release from it


@COMMANDS.add(
    "delstab",
    "make an algorithm private for users: explain a dataset, or release one output",
    "DelStab makes any finite algorithm (epsilon, delta)-DP for the replacement of a user: it leaves "
    "users out, checks that nobody's presence matters on the rest, and answers or refuses. By default it explains "
    "what would happen on this dataset, and why. Only --release is private; the explanation and "
    "--distribution show the data. Exit code 0 whether it answers or refuses.",
    "userdp delstab vote.py:vote --dataset users.json --epsilon 1 --delta 1e-6\n"
    "userdp delstab vote.py:vote --dataset users.json --epsilon 1 --delta 1e-6 --release",
    "algorithm --dataset! --epsilon! --delta! --json",
    option("--calibration", ("optimal", "tight", "paper"), "default optimal", default="optimal"),
    option("--compatibility", ("auto", "exact", "distance"), "between kept sets (default auto)", default="auto"),
    option("--max-distinct-users", whole(1), "public bound on the distinct users of a stable pool"),
    group(
        None,
        option("--explain", bool, "say why it refuses or not; NOT private (the default)"),
        option("--release", bool, "draw one output, privately; BOTTOM is a refusal"),
        option("--distribution", bool, "the probabilities of all outputs; NOT private"),
    ),
)
def delstab(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.delstab import DelStab

    asked = named(options, "epsilon delta calibration compatibility max_distinct_users")
    private = DelStab(load_mechanism(options.algorithm), **asked)
    action = _release if options.release else _distribution if options.distribution else _explain
    return action(private, options)


def _release(private: Any, options: argparse.Namespace) -> Answer:
    from userdp.delstab import BOTTOM

    # All outputs are put into words before the draw, so that none of them can fail afterwards.
    words = {output: _output(output) if options.json else str(output) for output in private.outputs}
    drawn = private.release(options.dataset)
    return Answer(words[drawn], {"private": True, "refused": drawn is BOTTOM, "output": words[drawn]})


def _explain(private: Any, options: argparse.Namespace) -> Answer:
    explanation = private.explain(options.dataset)
    found = {each.name: getattr(explanation, each.name) for each in fields(explanation) if each.name[0] != "_"}
    worst = explanation.worst_divergence
    found |= {"worst_divergence": None if worst is None else ends(worst)}
    about = {"private": False, "algorithm": private.name, "calibration": private.calibration.name}
    return Answer(f"{NOT_PRIVATE}\n{explanation}", about | found)


def _distribution(private: Any, options: argparse.Namespace) -> Answer:
    from userdp.delstab import PmfBounds

    pmf = private.output_distribution(options.dataset)
    exact: Sequence[Fraction] | None = None
    if isinstance(pmf, PmfBounds):
        bounds = list(zip(pmf.lower.tolist(), pmf.upper.tolist(), strict=True))
    else:
        exact = pmf.fractions()
        bounds = [(float(mass), float(mass)) for mass in exact]
    lines = [NOT_PRIVATE]
    for output, (lower, upper) in zip(private.outputs, bounds, strict=True):
        between = "" if exact is not None else f" (between {lower!r} and {upper!r})"
        lines.append(f"{output}: {upper:.6g}{between}")
    found = {
        "private": False,
        "algorithm": private.name,
        "exact": exact is not None,
        "outputs": list(map(_output, private.outputs)) if options.json else [],
        "probabilities": bounds if exact is None else exact,
    }
    return Answer("\n".join(lines), found)


def _output(output: Any) -> Any:
    """An output as JSON; a refusal is null, and told from an output None by its place or by `refused`."""
    from userdp.delstab import BOTTOM
    from userdp.exact.encoding import encode

    return None if output is BOTTOM else encode(output)
