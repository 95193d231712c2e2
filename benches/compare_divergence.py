"""Divergences beside what users use for the same job, in one process and one run.

Prints markdown tables (or JSON with ``--json``); see benches/README.md for the method. A library that is not
installed loses its column. Other kernels of this package run in child processes that take their turn in
every round, because a process chooses its kernel once; so does another build of it, with ``--other FOLDER``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
from fractions import Fraction
from typing import Any

from divergence_peers import (
    E_FLOAT,
    EPSILON,
    TARGET_DELTA,
    Exact,
    Pair,
    Peers,
    fraction_sum,
    logs,
    make_epsilons,
    make_pairs,
    numpy_bisection,
    numpy_new_epsilon,
    numpy_one_liner,
    numpy_verdict,
    pairs_for,
)
from rounds import Candidate, Rows, Runner, described, environment, expect, human, progress, table, take_turns

from userdp.divergence import epsilon_at_delta, hockey_stick, is_indistinguishable

ANCHOR = "numpy"
NEW_EPSILON = "hockey_stick, new epsilon"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# --- the ways to do the job -----------------------------------------------------------------------


def with_epsilons(pairs: list[Pair]) -> Rows:
    """Give every pair an epsilon of its own."""
    epsilons = make_epsilons(len(pairs[0][0]), len(pairs))
    return [(p, q, epsilon) for (p, q), epsilon in zip(pairs, epsilons, strict=True)]


def our_candidate(task: str, name: str, pairs: list[Pair], deltas: list[float]) -> Candidate:
    """Set up userdp on a task, in this process and in the children alike."""
    if task == "hockey_stick":
        return Candidate(name, lambda p, q: hockey_stick(p, q, EPSILON), list(pairs))
    if task == NEW_EPSILON:
        return Candidate(name, hockey_stick, with_epsilons(pairs))
    if task == "epsilon_at_delta":
        return Candidate(name, lambda p, q: epsilon_at_delta(p, q, TARGET_DELTA), list(pairs))
    rows: Rows = [(p, q, delta) for (p, q), delta in zip(pairs, deltas, strict=True)]
    return Candidate(name, lambda p, q, d: is_indistinguishable(p, q, epsilon=EPSILON, delta=d), rows)


def plain(task: str, result: Any) -> Any:
    """Turn a result of ours into what JSON can carry, bit for bit."""
    if task in ("hockey_stick", NEW_EPSILON):
        return float(result).hex()
    if task == "epsilon_at_delta":
        return [float(result.lower).hex(), float(result.upper).hex()]
    return result.holds


class Worker:
    """Another kernel or build of userdp, in a child process that works only when it is asked to."""

    def __init__(self, name: str, **variables: str) -> None:
        self.name = f"userdp, {name}"
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker"],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> Any:
        """Send a question to the child and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name}: the child process ended with code {self.process.wait()}")
        return json.loads(answer)

    def seconds(self, least: float) -> float:
        """Seconds per call, measured by the child."""
        return float(self.ask(do="time", least=least))

    def close(self) -> None:
        """End the child."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work() -> None:
    """Answer questions as a child: one JSON value a line, from stdin to stdout."""
    candidate, task = None, ""
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "prepare":
            task, k, deltas = question["task"], question["k"], question["deltas"]
            candidate = None
            candidate = our_candidate(task, "", make_pairs(k, pairs_for(task, k)), [float.fromhex(d) for d in deltas])
            answer: Any = [plain(task, result) for result in candidate.results(question["check"])]
        else:
            assert candidate is not None
            answer = candidate.seconds(question["least"])
        print(json.dumps(answer), flush=True)


def candidates(task: str, k: int, pairs: list[Pair], deltas: list[float], peers: Peers) -> list[Candidate]:
    """Everything of this process that does a task, the anchor first."""
    few = pairs[: 1 if k > 4096 else 2 if k > 256 else 8]
    ours = our_candidate(task, "userdp", pairs, deltas)
    if task == "hockey_stick":
        found = [Candidate(ANCHOR, numpy_one_liner, list(pairs)), ours]
        if peers.numba is not None:
            for name, compiled in zip(("numba fastmath", "numba in order"), peers.numba, strict=True):
                found.append(Candidate(name, lambda p, q, f=compiled: f(p, q, E_FLOAT), list(pairs)))
        if peers.flint is not None and k <= 4096:
            arb = peers.flint.arb
            e = arb(EPSILON).exp()
            rows: Rows = [([arb(x) for x in p.tolist()], [arb(x) for x in q.tolist()]) for p, q in few]
            found.append(Candidate("arb", lambda p, q: peers.arb_sum(p, q, e), rows))
        if k <= 4096:
            rows = [([Fraction(x) for x in p.tolist()], [Fraction(x) for x in q.tolist()]) for p, q in few]
            exact_e = Fraction(E_FLOAT)
            found.append(Candidate("Fraction", lambda p, q: fraction_sum(p, q, exact_e), rows))
        if peers.pld is not None:
            found.append(
                Candidate(
                    "dp_accounting",
                    lambda p, q: peers.distribution(p, q, one_direction=True).get_delta_for_epsilon(EPSILON),
                    [(logs(p), logs(q)) for p, q in few],
                )
            )
        return found
    if task == NEW_EPSILON:
        found = [Candidate(ANCHOR, numpy_new_epsilon, list(ours.rows)), ours]
        if peers.numba is not None:
            fast = peers.numba[0]
            found.append(Candidate("numba fastmath", lambda p, q, x: fast(p, q, math.exp(x)), list(ours.rows)))
        return found
    if task == "epsilon_at_delta":
        found = [Candidate(ANCHOR, numpy_bisection, list(pairs)), ours]
        if peers.pld is not None:
            found.append(
                Candidate(
                    "dp_accounting",
                    lambda p, q: peers.distribution(p, q, one_direction=False).get_epsilon_for_delta(TARGET_DELTA),
                    [(logs(p), logs(q)) for p, q in few],
                )
            )
        return found
    found = [Candidate(ANCHOR, numpy_verdict, list(ours.rows)), ours]
    if peers.numba is not None:
        fast = peers.numba[0]
        found.append(
            Candidate(
                "numba fastmath",
                lambda p, q, d: max(fast(p, q, E_FLOAT), fast(q, p, E_FLOAT)) <= d,
                list(ours.rows),
            )
        )
    if peers.pld is not None:
        found.append(
            Candidate(
                "dp_accounting",
                lambda p, q, d: bool(peers.distribution(p, q, one_direction=False).get_delta_for_epsilon(EPSILON) <= d),
                [(logs(p), logs(q), d) for (p, q), d in zip(few, deltas, strict=False)],
            )
        )
    return found


# --- agreement ------------------------------------------------------------------------------------


def check(task: str, k: int, found: list[Candidate], exact: list[Exact], deltas: list[float]) -> list[str]:
    """Compare all results with the exact ones; returns remarks for the table."""
    remarks = []
    by_name = {candidate.name: candidate.results(len(exact)) for candidate in found}
    ours = by_name["userdp"]
    if task in ("hockey_stick", NEW_EPSILON):
        epsilons = make_epsilons(k, len(exact)) if task == NEW_EPSILON else [EPSILON] * len(exact)
        truth = [e.nearest(epsilon) for e, epsilon in zip(exact, epsilons, strict=True)]
        for value, right in zip(ours, truth, strict=True):
            expect(value == right, f"k={k}: ours {value!r}, correctly rounded {right!r}")
        for name, values in by_name.items():
            if name == "arb":
                # The ball as exact fractions, so that containment is tested without rounding.
                for ball, e in zip(values, exact, strict=False):
                    lo, hi = e.enclose(Fraction(EPSILON), 256, both=False)
                    lower, upper = (
                        Fraction(int(end.man_exp()[0])) * Fraction(2) ** int(end.man_exp()[1])
                        for end in (ball.lower(), ball.upper())
                    )
                    expect(lower <= hi and lo <= upper, f"k={k}: arb ball misses the exact value")
                continue
            tolerance = 5e-3 if name == "dp_accounting" else 1e-9
            errors = [abs(float(v) / right - 1) for v, right in zip(values, truth, strict=False)]
            expect(max(errors) <= tolerance, f"k={k}: {name} is off by a factor of 1 + {max(errors):.1e}")
            if name == "dp_accounting":
                remarks.append(f"k = {k}: relative error of dp_accounting up to {max(errors):.1e}")
    elif task == "epsilon_at_delta":
        for bounds, e in zip(ours, exact, strict=True):
            expect(bounds.upper - bounds.lower <= 1e-12 * bounds.upper, f"k={k}: wide bounds {bounds}")
            expect(e.at_most(bounds.upper, TARGET_DELTA), f"k={k}: {bounds}: upper is too small")
            below = math.nextafter(bounds.lower, 0.0)
            expect(not e.at_most(below, TARGET_DELTA), f"k={k}: {bounds}: lower is too large")
        for name in by_name.keys() - {"userdp"}:
            tolerance = 1e-3 if name == "dp_accounting" else 1e-9
            errors = [abs(v - bounds.upper) for v, bounds in zip(by_name[name], ours, strict=False)]
            expect(max(errors) <= tolerance, f"k={k}: {name} is off by {max(errors):.1e}")
            if name == "dp_accounting":
                remarks.append(f"k = {k}: error of dp_accounting in epsilon up to {max(errors):.1e}")
    else:
        truths = [e.at_most(EPSILON, delta) for e, delta in zip(exact, deltas, strict=True)]
        for verdict, right in zip(ours, truths, strict=True):
            expect(verdict.holds is right, f"k={k}: ours says {verdict.holds}, exactly {right}")
        for name in by_name.keys() - {"userdp"}:
            wrong = sum(v is not right for v, right in zip(by_name[name], truths, strict=False))
            expect(wrong == 0 or task == "verdict, tie", f"k={k}: {name} has {wrong} wrong verdicts")
            if wrong:
                remarks.append(f"k = {k}: {name} decides {wrong} of {len(by_name[name])} ties wrongly")
    return sorted(remarks)


# --- rounds and tables ----------------------------------------------------------------------------


def measure(task: str, k: int, peers: Peers, workers: list[Worker], options: argparse.Namespace) -> dict[str, Any]:
    """Check, then time everything that does a task at one size."""
    progress(f"{task}, k = {k}")
    pairs = make_pairs(k, pairs_for(task, k))
    verdict = task.startswith("verdict")
    checked = len(pairs) if verdict else 1 if k > 4096 else 8
    exact = [Exact(p, q) for p, q in pairs[:checked]]
    deltas: list[float] = []
    if verdict:
        worst = [e.nearest(EPSILON, both=True) for e in exact]
        deltas = worst if task == "verdict, tie" else [1.1 * w for w in worst]

    found = candidates(task, k, pairs, deltas, peers)
    remarks = check(task, k, found, exact, deltas)
    ours = [plain(task, result) for result in found[1].results(checked)]
    hexes = [d.hex() for d in deltas]
    for worker in workers:
        theirs = worker.ask(do="prepare", task=task, k=k, deltas=hexes, check=checked)
        expect(theirs == ours, f"k={k}: {worker.name} differs from userdp")

    runners: list[Runner] = [*found[:2], *workers, *found[2:]]
    rounds = max(3, options.rounds // 2) if k > 100_000 else options.rounds
    times = take_turns(runners, rounds, options.seconds)
    ratios = {name: times.ratios(name, ANCHOR) for name in times.rows}
    return {
        "task": task,
        "k": k,
        "pairs": len(pairs),
        "seconds": {name: times.median(name) for name in times.rows},
        "ratio": {name: statistics.median(row) for name, row in ratios.items()},
        "ratio_range": {name: [min(row), max(row)] for name, row in ratios.items()},
        "remarks": remarks,
    }


def vector_kernels() -> list[str]:
    """List the kernels that this processor has and that a child can be told to use."""
    flags: set[str] = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((set(line.split()) for line in file if line.startswith("flags")), flags)
    return [*(["avx2"] if "avx2" in flags else []), "baseline"]


TITLES = {
    "hockey_stick": "Hockey-stick divergence of one pair, ε = 1/2",
    NEW_EPSILON: "Hockey-stick divergence of one pair, a new ε in every call",
    "verdict, clear": "Verdict in both directions, δ one tenth above the worst divergence",
    "verdict, tie": "Verdict in both directions, δ the float nearest to the worst divergence",
    "epsilon_at_delta": "Smallest ε at δ = 0.01, both directions (numpy: 60 bisection steps)",
}


def markdown(environment: dict[str, Any], results: list[dict[str, Any]]) -> str:
    lines = [
        described(environment),
        "",
        "Each cell: median time of a call, and in brackets the median ratio to numpy in the same round.",
    ]
    for task, title in TITLES.items():
        rows = [result for result in results if result["task"] == task]
        if not rows:
            continue
        names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
        cells = [
            [
                f"{human(row['seconds'][name])} ({row['ratio'][name]:.3g})" if name in row["seconds"] else "–"
                for name in names
            ]
            for row in rows
        ]
        lines += ["", f"### {title}", ""]
        lines += table(["k", *names], [[str(row["k"]), *line] for row, line in zip(rows, cells, strict=True)])
        remarks = [remark for row in rows for remark in row["remarks"]]
        if remarks:
            lines += ["", *(f"* {remark}" for remark in remarks)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write JSON, to stdout without FILE")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 256, 4096, 1_000_000], metavar="K")
    parser.add_argument("--rounds", type=int, default=11, help="rounds at each size (fewer at the largest)")
    parser.add_argument("--seconds", type=float, default=0.02, help="least time of one batch")
    parser.add_argument("--no-kernels", action="store_true", help="leave out the other kernels of this package")
    parser.add_argument("--other", metavar="FOLDER", help="another build of this package, a column of its own")
    parser.add_argument("--tasks", nargs="+", choices=list(TITLES), default=list(TITLES), help="which tables")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return

    about = environment(("userdp", "numpy", "numba", "python-flint", "dp-accounting"))
    peers = Peers()
    workers = [] if options.no_kernels else [Worker(kernel, USERDP_KERNEL=kernel) for kernel in vector_kernels()]
    if options.other:
        workers.append(Worker("other build", PYTHONPATH=options.other))
    results = []
    try:
        for task in options.tasks:
            for k in options.sizes:
                if task == "hockey_stick" or k <= 4096:
                    results.append(measure(task, k, peers, workers, options))
    finally:
        for worker in workers:
            worker.close()

    report = json.dumps({"environment": about, "results": results}, indent=1)
    if options.json == "-":
        print(report)
        return
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(report + "\n")
    print(markdown(about, results))


if __name__ == "__main__":
    main()
