"""Public operations timed in two trees of this project in one run: medians and ratios, as markdown.

    python benches/compare_trees.py BEFORE AFTER [--rounds 31]

Each tree is a checkout with its compiled extension beside `python/userdp/__init__.py`. Each has a process of its own,
which waits on its pipe until it is asked, so that never two of them run at once. In a round every operation runs in
both, one right after the other, in an order that changes from round to round; a ratio is formed of two times of the
same round. Times are of the processor, all threads and children together, so that a busy machine does no harm. Names
that differ between trees are in `RENAMED` and `MOVED`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import inspect
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

RENAMED = {
    "compatibility": ("relation",),
    "max_norm": ("bound",),
    "max_feature_norm": ("feature_bound",),
    "n_iterations": ("steps",),
    "neighbors": ("neighbours",),
    "n_items": ("domain_size",),
}
"""Keyword arguments of one tree, by those of the other."""

MOVED: dict[str, tuple[str, ...]] = {
    "userdp.optimization:L2Ball": ("userdp.optimization:Ball",),
}
"""Other places of a public name."""

Operation = tuple[Callable[[], object], int]
"""A call, and how often it is repeated in a round."""


def public(place: str) -> Any:
    """A public class or function, wherever this tree has it."""
    for candidate in (place, *MOVED.get(place, ())):
        module, name = candidate.split(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"neither {place} nor {MOVED.get(place, ())}")


def made(place: str, *arguments: Any, **keywords: Any) -> Any:
    """The result of a public call, with the keywords that this tree knows."""
    function = public(place)
    known = inspect.signature(function).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    given = {}
    for name, value in keywords.items():
        found = next((other for other in (name, *RENAMED.get(name, ())) if other in known), None)
        if found is None and not open_ended:
            raise TypeError(f"{place} has no {name}")
        given[found or name] = value
    return function(*arguments, **given)


def operations() -> dict[str, Operation]:
    """The operations, ready to be called."""
    import numpy as np

    from userdp import LogRatio

    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(2000), 8)
    numbers = rng.uniform(-0.7, 0.7, size=(16000, 2))
    signs = np.where(numbers @ [3.0, -1.0] + rng.logistic(size=16000) > 0, 1, -1)
    points = rng.integers(1, 1001, size=(16000, 1))

    def respond(dataset: Any) -> list[Fraction]:
        ones = Fraction(1 + 3 * sum(user[0] for user in dataset), 2 + 3 * len(dataset))
        return [ones, 1 - ones]

    finite = public("userdp.algorithms:finite_algorithm")(outputs=(0, 1))(respond)
    audit = public("userdp.audit:audit_user_level")
    additive = public("userdp.algorithms:AdditiveAlgorithm")

    def majority(total: int, n_users: int) -> list[int]:
        return [int(2 * total <= n_users), int(2 * total > n_users)]

    votes = additive(("no", "yes"), lambda user: user[0], majority, statistic_range=(0, 1))
    voters = ((1,),) * 90 + ((0,),) * 10
    release = made("userdp:DelStab", votes, epsilon=8, delta="0.01")
    exponential = made("userdp.mechanisms:ExponentialMechanism", epsilon=1, sensitivity=1, maximize=True)
    scores = rng.integers(0, 100, size=1000)
    noise = made("userdp.mechanisms:DiscreteLaplace", epsilon=1, sensitivity=2, bounds=(0, 1000))
    threshold = made("userdp.learners:ThresholdClassifier", epsilon=1, domain_size=1000, m=8, classes=(False, True))
    mean = made("userdp.means:WinsorizedMean", epsilon=1, max_norm=1, m=8)
    ball, loss = public("userdp.optimization:L2Ball"), public("userdp.optimization:LogisticLoss")
    descent = made(
        "userdp.optimization:ClippedGradientDescent",
        epsilon=1,
        delta=1e-6,
        loss=loss(),
        constraint=ball(5.0),
        max_norm=1.0,
        m=8,
    )
    linear = made("userdp.optimization:UserLevelLogisticRegression", epsilon=1, delta=1e-6, max_feature_norm=1.0, m=8)
    lddp = public("userdp.lddp:check_lddp")
    ledger_of, cost = public("userdp.accounting:PrivacyLedger"), public("userdp.accounting:PrivacyCost")
    costs = [cost(rho=f"1/{10000 + number}") for number in range(50)]
    planned = public("userdp.item_to_user:plan_user_level")
    local = public("userdp.protocols.local:HadamardResponse")

    def spend() -> None:
        ledger = ledger_of(1, "1e-6", composition="zcdp")
        for one in costs:
            ledger.spend(one)

    def report() -> object:
        protocol = local(epsilon=1, n_items=100, n_users=20000, round_id="bench")
        return protocol.report_many([42] * 20000)

    def imported() -> None:
        subprocess.run([sys.executable, "-c", "import userdp"], check=True)

    return {
        "import userdp, a new process": (imported, 5),
        "audit_user_level, 6 users, 7 counts": (
            lambda: audit(finite, universe=(0, 1), n_users=6, n_examples=1, epsilon=LogRatio(4, 1), delta=0),
            5,
        ),
        "DelStab.release, 100 users": (lambda: release.release(voters), 20),
        "DelStab.refusal_probability, 100 users": (lambda: release.refusal_probability(voters), 20),
        "ExponentialMechanism.sample, 1000 scores": (lambda: exponential.sample(scores), 500),
        "DiscreteLaplace.sample, 10,000 draws": (lambda: noise.sample(np.full(10000, 17)), 20),
        "ThresholdClassifier.fit, 16,000 rows": (lambda: threshold.fit(points, points[:, 0] > 600, groups=ids), 5),
        "WinsorizedMean.fit, 16,000 rows": (lambda: mean.fit(numbers, groups=ids), 5),
        "ClippedGradientDescent.fit, 16,000 rows": (lambda: descent.fit(numbers, signs, groups=ids), 1),
        "UserLevelLogisticRegression.fit, 16,000 rows": (lambda: linear.fit(numbers, signs > 0, groups=ids), 1),
        "check_lddp, 100 users, r = 2": (lambda: lddp(votes, voters, r=2, epsilon=1, delta="1e-3"), 10),
        "plan_user_level": (
            lambda: planned(n_items=10000, item_epsilon=0.05, m=30, epsilon=1, delta=1e-6, beta=0.1),
            1,
        ),
        "PrivacyLedger, 50 releases": (spend, 5),
        "HadamardResponse.report_many, 20,000 users": (report, 3),
    }


def cpu_seconds() -> float:
    """What this process, its threads and its children have computed: other programs on the machine do not count."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def serve() -> None:
    """Answer names of operations with the seconds that one call takes of the processor."""
    warnings.simplefilter("ignore")
    ready = operations()
    print(json.dumps(list(ready)), flush=True)
    for line in sys.stdin:
        call, repeats = ready[line.strip()]
        gc.collect()
        gc.disable()
        started = cpu_seconds()
        for _ in range(repeats):
            call()
        print((cpu_seconds() - started) / repeats, flush=True)
        gc.enable()


class Worker:
    """A process that imports one tree."""

    def __init__(self, tree: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": ""}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout
        self.names: list[str] = json.loads(self.process.stdout.readline())

    def time(self, name: str) -> float:
        """Seconds of one call."""
        assert self.process.stdin
        assert self.process.stdout
        print(name, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def shown(seconds: float) -> str:
    """A time with its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def main() -> None:
    """Time both trees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", action="append", default=[], help="operations with this in their name")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    workers = [Worker(arguments.before.resolve()), Worker(arguments.after.resolve())]
    names = [name for name in workers[0].names if not arguments.only or any(word in name for word in arguments.only)]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(arguments.rounds + 1):
        for name in names:
            order = (0, 1) if number % 2 else (1, 0)
            pair = {side: workers[side].time(name) for side in order}
            if number:  # the first round warms up
                times[name].append((pair[0], pair[1]))
    print("| operation | before | after | after / before | middle half of the ratios |\n|---|---|---|---|---|")
    for name, pairs in times.items():
        before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratios = sorted(b / a for a, b in pairs)
        low, _, high = statistics.quantiles(ratios, n=4)
        middle = statistics.median(ratios)
        print(f"| {name} | {shown(before)} | {shown(after)} | {middle:.2f} | {low:.2f} to {high:.2f} |")


if __name__ == "__main__":
    main()
