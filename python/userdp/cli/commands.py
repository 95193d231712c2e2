"""What each command does: its options, its call of the library, its text, JSON and exit code."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.checker import check, work
from userdp.checker.coq import compared
from userdp.cli.arguments import (
    UsageError,
    add_json_option,
    add_privacy_options,
    add_users_option,
    content,
    distribution,
    load_mechanism,
    universe,
    whole,
)

if TYPE_CHECKING:
    from userdp.exact.numbers import Bounds
    from userdp.report import Report

EXIT_HOLDS, EXIT_VIOLATED, EXIT_USAGE, EXIT_BUDGET, EXIT_UNDETERMINED = 0, 1, 2, 3, 4
EXIT_NOT_ESTABLISHED, EXIT_WRONG_REPORT = 5, 6
EXIT_UNEXPECTED = 70  # an internal failure, as in sysexits.h
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell reports for a program that a closed pipe ended

NOT_PRIVATE = "Diagnostic, NOT private: what follows is computed from the data without noise. Do not publish it."
MECHANISM = "module:name or path/to/file.py:name of a FiniteAlgorithm"
DATASET = "JSON file: a list of users, each a list of examples"
BUDGET = "largest number of pmf-pair-outputs (default 10^13)"


def exit_code(holds: bool | None) -> int:
    """The exit code of a verdict."""
    return EXIT_UNDETERMINED if holds is None else EXIT_HOLDS if holds else EXIT_VIOLATED


def holds_word(holds: bool | None) -> str:
    """A verdict in a word."""
    return "UNDETERMINED" if holds is None else "HOLDS" if holds else "VIOLATED"


def json_float(value: float) -> float | str:
    """A float as JSON can carry it."""
    return value if math.isfinite(value) else str(value)


def json_bounds(bounds: Bounds) -> list[float | str]:
    """[lower, upper]."""
    return [json_float(bounds.lower), json_float(bounds.upper)]


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(result, indent=2, allow_nan=False))


def write_report(report: Report, options: argparse.Namespace) -> None:
    """Write what --certificate and --html ask for."""
    if options.certificate is not None:
        options.certificate.write_text(report.to_json(), encoding="utf-8")
    if options.html is not None:
        options.html.write_text(report.to_html(), encoding="utf-8")


# --- userdp divergence: two distributions compared


def add_divergence(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "divergence",
        help="compare two distributions",
        description="Hockey-stick divergences of two distributions in both directions, and with --delta a decided "
        "verdict. A distribution is a list such as 1/2,1/4,1/4 (decimals and fractions are exact) or a .json, .csv, "
        ".txt or .npy file of numbers (.npy floats are taken as the exact numbers they are).",
        epilog="examples:\n"
        "  userdp divergence 3/4,1/4 1/4,3/4 --epsilon 'ln(2)' --delta 1/4\n"
        "  userdp divergence p.npy q.npy --epsilon 0.5 --json",
    )
    parser.add_argument("p", type=distribution, help="first distribution: a list, or a file")
    parser.add_argument("q", type=distribution, help="second distribution: a list, or a file")
    add_privacy_options(parser, delta_required=False)
    parser.set_defaults(run=divergence)


def divergence(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.divergence import epsilon_at_delta, hockey_stick_bounds, is_indistinguishable, total_variation

    p, q, epsilon, delta = options.p, options.q, options.epsilon, options.delta
    if len(p) != len(q):
        raise ValueError(f"the first distribution has {len(p)} masses and the second {len(q)}; they must match")
    result: dict[str, Any] = {
        "schema_version": 1,
        "epsilon": epsilon,
        "hockey_stick_p_q": json_bounds(hockey_stick_bounds(p, q, epsilon)),
        "hockey_stick_q_p": json_bounds(hockey_stick_bounds(q, p, epsilon)),
        "total_variation": json_float(total_variation(p, q)),
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
            "epsilon_at_delta": json_bounds(epsilon_at_delta(p, q, delta)),
        }
        code = exit_code(verdict.holds)
    if options.json:
        print_json(result)
        return code
    print(f"hockey-stick p||q   {_interval(result['hockey_stick_p_q'])}")
    print(f"hockey-stick q||p   {_interval(result['hockey_stick_q_p'])}")
    print(f"total variation     {result['total_variation']}")
    if delta is not None:
        print(f"epsilon at delta    {_interval(result['epsilon_at_delta'])}")
        print(f"({epsilon}, {delta})-indistinguishable: {holds_word(result['holds'])}")
        if not result["holds"]:
            print(f"shown by outputs    {result['event']} ({result['direction']})")
    return code


def _interval(bounds: list[Any]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"between {bounds[0]} and {bounds[1]}"


# --- userdp audit: an exact audit of a mechanism that the user names


def add_audit(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="audit a mechanism over all neighboring datasets",
        description="Audit a finite algorithm exactly: over all datasets of a small universe (--universe, --n-users, "
        "--n-examples), or one dataset against every replacement of one user (--dataset, --records). Exit code 0: the "
        "claim holds, and the report holds all pmfs; 1: it is violated; 4: undetermined within pmf_error; 5: no "
        "violation, but more than a million pairs, of which a report is a sample that establishes nothing.",
        epilog="examples:\n"
        "  userdp audit vote.py:vote --universe 0,1 --n-users 3 --epsilon 'ln(3)' --delta 0\n"
        "  userdp audit vote.py:vote --dataset users.json --records records.json --epsilon 1 --delta 1e-6 \\\n"
        "      --html report.html --certificate report.json",
    )
    parser.add_argument("mechanism", help=MECHANISM)
    add_privacy_options(parser, delta_required=True)
    space = parser.add_argument_group("all datasets of a universe")
    space.add_argument(
        "--universe", type=universe, help="possible examples: 0,1 or a JSON list such as [[0, 1], [1, 1]]"
    )
    space.add_argument("--n-users", type=whole(1), help="number of users")
    space.add_argument("--n-examples", type=whole(1), default=1, help="examples per user (default 1)")
    space.add_argument("--level", choices=("user", "item"), default="user", help="what neighbors differ in")
    space.add_argument("--neighbors", choices=("replace", "add-remove"), default="replace")
    single = parser.add_argument_group("one dataset")
    add_users_option(single, "--dataset", required=False, help=DATASET)
    add_users_option(
        single, "--records", required=False, help="JSON file: what a replaced user may have given, a list of users"
    )
    parser.add_argument("--engine", choices=("auto", "labeled", "symmetric", "additive"), default="auto")
    parser.add_argument("--budget", type=whole(1), help=BUDGET)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write the report as JSON, for userdp verify")
    parser.set_defaults(run=audit)


def audit(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import audit_dataset, audit_item_level, audit_user_level

    common = {name: getattr(options, name) for name in ("epsilon", "delta", "engine", "budget")}
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
        common |= {name: getattr(options, name) for name in ("universe", "n_users", "n_examples")}
        mechanism = load_mechanism(options.mechanism)
        if options.level == "item":
            if options.neighbors != "replace":
                raise ValueError("--neighbors add-remove goes with --level user")
            report = audit_item_level(mechanism, **common)
        else:
            report = audit_user_level(mechanism, neighbors=options.neighbors, **common)
    write_report(report, options)
    if options.json:
        print_json(audit_summary(report))
    else:
        print(report.summary())
    code = exit_code(report.holds)
    return EXIT_NOT_ESTABLISHED if code == EXIT_HOLDS and report.verification == "sampled" else code


def audit_summary(report: Any) -> dict[str, Any]:
    """The parts of a report that scripts ask for."""
    from userdp.exact.encoding import fraction_text

    witness = report.witness
    return {
        "schema_version": 1,
        "mechanism": report.mechanism,
        "kind": report.kind,
        "engine": report.engine,
        "neighbors": report.neighbors,
        "delta": fraction_text(report.delta),
        "holds": report.holds,
        "verification": report.verification,
        "assumptions": list(report.assumptions),
        "worst_delta": json_bounds(report.worst_delta),
        "epsilon_at_delta": json_bounds(report.epsilon),
        "exp_epsilon": None if report.exp_epsilon is None else fraction_text(report.exp_epsilon),
        "datasets": report.datasets,
        "pairs": report.pairs,
        "event": None if witness is None else sorted(map(str, witness.event)),
        "changed_user": None if witness is None else witness.changed_user,
    }


# --- userdp verify: an audit certificate checked, without the compiled core


def add_verify(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "verify",
        help="check a report in pure Python",
        description="Decide a verdict again from a report (a JSON file written by userdp audit --certificate or "
        "to_json), in pure Python, and with --mechanism compute its pmfs again. Exit code "
        "0: the claim is established; 1: it is refuted; 4: undetermined within pmf_error; 5: not established, since "
        "nothing (no --mechanism) or only a part was computed again; 6: the report is wrong. The certificate of a "
        "composition needs no mechanism.",
        epilog="examples:\n  userdp verify report.json\n  userdp verify report.json --mechanism vote.py:vote",
    )
    parser.add_argument("certificate", type=content, help="the JSON file")
    parser.add_argument("--mechanism", help=f"{MECHANISM}; it is run")
    add_users_option(parser, "--dataset", required=False, help=f"for a check of deletions: {DATASET}")
    parser.add_argument("--coq", type=Path, metavar="FILE", help="a .v file: it must be the one that the report gives")
    parser.add_argument(
        "--proofs",
        type=Path,
        metavar="DIR",
        help="--coq: the compiled folder proofs of the source, with which coqc checks the file too",
    )
    parser.add_argument(
        "--seconds", type=whole(1), metavar="S", help="allow a check of so many seconds, by count (default 8)"
    )
    add_json_option(parser)
    parser.set_defaults(run=verify)


def verify(options: argparse.Namespace) -> int:
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
    if options.json:
        print_json(
            {
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
        )
    else:
        print(found)
        if not found.problems:
            print("\n".join([*([] if coq is None else [coq.words]), "The report says:", *check.said_by(report)]))
    return _verification_code(found, holds)


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


def add_lddp(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "lddp",
        help="check stability under deletion of users",
        description="Decide exactly whether the distributions of a finite algorithm are within (epsilon, delta) of "
        "each other whichever r users are deleted from a dataset (local deletion DP).",
        epilog="examples:\n  userdp lddp vote.py:vote --dataset users.json -r 2 --epsilon 0.5 --delta 1e-6",
    )
    parser.add_argument("algorithm", help=MECHANISM)
    add_users_option(parser, "--dataset", required=True, help=DATASET)
    parser.add_argument("--deletions", "-r", type=whole(0), required=True, metavar="R", help="users to delete")
    add_privacy_options(parser, delta_required=True)
    parser.add_argument("--budget", type=whole(1), help=BUDGET)
    parser.set_defaults(run=lddp)


def lddp(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.lddp import check_lddp

    result = check_lddp(
        load_mechanism(options.algorithm),
        options.dataset,
        r=options.deletions,
        epsilon=options.epsilon,
        delta=options.delta,
        budget=options.budget,
    )
    if options.json:
        print_json(_lddp_summary(result))
    else:
        print(result.summary())
    return exit_code(result.holds)


def _lddp_summary(result: Any) -> dict[str, Any]:
    from userdp.exact.encoding import encode, fraction_text
    from userdp.exact.numbers import Bounds

    witness = None
    if result.witness is not None:
        first, second, event = result.witness
        witness = {
            "deleted": [list(first), list(second)],
            "event": sorted((encode(output) for output in event), key=str),
        }
    return {
        "schema_version": 1,
        "algorithm": result.algorithm,
        "engine": result.engine,
        "n_users": result.n_users,
        "r": result.r,
        "delta": fraction_text(result.delta),
        "holds": result.holds,
        "worst_delta": json_bounds(Bounds(result.lower, result.upper)),
        "subsets": result.subsets,
        "pairs": result.pairs,
        "pairs_evaluated": result.pairs_evaluated,
        "witness": witness,
    }


# --- userdp delstab: what DelStab does on one dataset, or one private release from it


def add_delstab(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "delstab",
        help="make an algorithm private for users: explain a dataset, or release one output",
        description="DelStab makes any finite algorithm (epsilon, delta)-DP for the replacement of a user: it leaves "
        "users out, checks that nobody's presence matters on the rest, and answers or refuses. By default it explains "
        "what would happen on this dataset, and why. Only --release is private; the explanation and "
        "--distribution show the "
        "data. Exit code 0 whether it answers or refuses.",
        epilog="examples:\n"
        "  userdp delstab vote.py:vote --dataset users.json --epsilon 1 --delta 1e-6\n"
        "  userdp delstab vote.py:vote --dataset users.json --epsilon 1 --delta 1e-6 --release",
    )
    parser.add_argument("algorithm", help=MECHANISM)
    add_users_option(parser, "--dataset", required=True, help=DATASET)
    add_privacy_options(parser, delta_required=True)
    parser.add_argument(
        "--calibration", choices=("optimal", "tight", "paper"), default="optimal", help="default optimal"
    )
    parser.add_argument(
        "--compatibility",
        choices=("auto", "exact", "distance"),
        default="auto",
        help="between kept sets (default auto)",
    )
    parser.add_argument(
        "--max-distinct-users", type=whole(1), help="public bound on the distinct users of a stable pool"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--explain", action="store_true", help="say why it refuses or not; NOT private (the default)")
    action.add_argument("--release", action="store_true", help="draw one output, privately; BOTTOM is a refusal")
    action.add_argument("--distribution", action="store_true", help="the probabilities of all outputs; NOT private")
    parser.set_defaults(run=delstab)


def delstab(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.delstab import DelStab

    named = {
        name: getattr(options, name)
        for name in ("epsilon", "delta", "calibration", "compatibility", "max_distinct_users")
    }
    private = DelStab(load_mechanism(options.algorithm), **named)
    action = _release if options.release else _distribution if options.distribution else _explain
    action(private, options.dataset, as_json=options.json)
    return EXIT_HOLDS


def _release(private: Any, users: Any, *, as_json: bool) -> None:
    from userdp.delstab import BOTTOM

    # All outputs are put into words before the draw, so that none of them can fail afterwards.
    words = {output: _output(output) if as_json else str(output) for output in private.outputs}
    drawn = private.release(users)
    if as_json:
        print_json({"schema_version": 1, "private": True, "refused": drawn is BOTTOM, "output": words[drawn]})
    else:
        print(words[drawn])


def _explain(private: Any, users: Any, *, as_json: bool) -> None:
    from userdp.exact.encoding import fraction_text

    explanation = private.explain(users)
    if not as_json:
        print(f"{NOT_PRIVATE}\n{explanation}")
        return
    worst = explanation.worst_divergence
    print_json(
        {
            "schema_version": 1,
            "private": False,
            "algorithm": private.name,
            "calibration": private.calibration.name,
            "n_users": explanation.n_users,
            "deletions": explanation.deletions,
            "engine": explanation.engine,
            "compatibility": explanation.compatibility,
            "smallest_stable_size": explanation.smallest_stable_size,
            "largest_size": explanation.largest_size,
            "refusal_probability": json_float(float(explanation.refusal_probability)),
            "exact_refusal_probability": fraction_text(explanation.refusal_probability),
            "worst": explanation.worst,
            "worst_divergence": None if worst is None else json_bounds(worst),
            "allowed_divergence": fraction_text(explanation.allowed_divergence),
            "spread": explanation.spread,
            "distance": explanation.distance,
            "advice": list(explanation.advice),
        }
    )


def _distribution(private: Any, users: Any, *, as_json: bool) -> None:
    from userdp.delstab import PmfBounds
    from userdp.exact.encoding import fraction_text

    pmf = private.output_distribution(users)
    exact: list[str] | None = None
    if isinstance(pmf, PmfBounds):
        bounds = list(zip(pmf.lower.tolist(), pmf.upper.tolist(), strict=True))
    else:
        masses = pmf.fractions()
        exact = list(map(fraction_text, masses))
        bounds = [(float(mass), float(mass)) for mass in masses]
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "private": False,
                "algorithm": private.name,
                "exact": exact is not None,
                "outputs": list(map(_output, private.outputs)),
                "probabilities": [list(pair) for pair in bounds] if exact is None else exact,
            }
        )
        return
    print(NOT_PRIVATE)
    for output, (lower, upper) in zip(private.outputs, bounds, strict=True):
        between = "" if exact is not None else f" (between {lower!r} and {upper!r})"
        print(f"{output}: {upper:.6g}{between}")


def _output(output: Any) -> Any:
    """An output as JSON; a refusal is null, and told from an output None by its place or by `refused`."""
    from userdp.delstab import BOTTOM
    from userdp.exact.encoding import encode

    return None if output is BOTTOM else encode(output)
