"""500 calibrated settings of keys, as they were: what a faster account must leave as it is, or make better.

``python -m support.calibrated_keys`` compares all of them with tests/data/calibrated_keys.json in two minutes of a
processor, and with ``--freeze`` writes them anew. A threshold that rises, or a certified delta that does, is worse.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from userdp.mechanisms import SetUnion, SparseHistogram

FROZEN = Path(__file__).parents[1] / "data" / "calibrated_keys.json"
Setting = tuple[str, str, str, int, str, str]
"""The mechanism, epsilon, delta, the number of keys, the relation of neighbors, and the method or the sums."""


def settings() -> Iterator[Setting]:
    """All of them, in one order."""
    epsilons, deltas, relations = (
        ("1/10", "1/2", "1", "ln(3)", "8"),
        ("1e-3", "1e-5", "1e-9"),
        ("add-remove", "replace"),
    )
    for epsilon, delta, keys, relation in itertools.product(epsilons, deltas, (1, 2, 5, 16), relations):
        yield "histogram", epsilon, delta, keys, relation, "auto"
    for epsilon, keys, relation, method in itertools.product(epsilons, (64,), relations, ("laplace", "gaussian")):
        yield "histogram", epsilon, "1e-6", keys, relation, method
    for epsilon, keys, relation, sums in itertools.product(epsilons, (1, 2), relations, ("0 1", "-5 5", "0 1,0 100")):
        yield "histogram", epsilon, "1e-6", keys, relation, f"sums {sums}"
    for epsilon, delta, keys, relation, method in itertools.product(
        epsilons, deltas, (1, 2, 4, 8), relations, ("two-round", "one-round")
    ):
        yield "union", epsilon, delta, keys, relation, method
    for epsilon, delta, keys, relation in itertools.product(epsilons, ("1e-5", "1e-9"), (1, 3), relations):
        yield "union", epsilon, delta, keys, relation, "policy"
    for epsilon, keys, relation in itertools.product(epsilons, (16, 64), relations):
        yield "union", epsilon, "1e-5", keys, relation, "two-round"


def calibrated(setting: Setting) -> Any:
    """What a setting comes to: its thresholds, all numbers that make it, and the certified delta."""
    kind, epsilon, delta, keys, relation, method = setting
    asked: dict[str, Any] = {"neighbors": relation}
    try:
        if kind == "union":
            made: Any = SetUnion.calibrated(epsilon, delta, keys, **asked, method=method)
            thresholds = [threshold for _, threshold in made.rounds]
        else:
            if method.startswith("sums "):
                parts = (part.split() for part in method.removeprefix("sums ").split(","))
                asked["sums"] = [(int(low), int(high)) for low, high in parts]
            elif method != "auto":
                asked["method"] = method
            made = SparseHistogram.calibrated(epsilon, delta, keys, **asked)
            thresholds = [made.threshold]
    except ValueError as error:
        return type(error).__name__
    return [thresholds, repr(made), str(made.certified_delta)]


def worse(now: Any, known: Any) -> str:
    """In what a setting is worse than it was; nothing where it is as good."""
    if isinstance(known, str) or isinstance(now, str):
        return "" if now == known or isinstance(known, str) else f"it is refused now: {now}"
    if any(one > other for one, other in zip(now[0], known[0], strict=True)):
        return f"a threshold rises: {now[0]} from {known[0]}"
    same = now[1] == known[1]
    return f"its delta rises: {now[2]} from {known[2]}" if same and Fraction(now[2]) > Fraction(known[2]) else ""


def main() -> int:
    """Compare, or write."""
    found = {json.dumps(setting): calibrated(setting) for setting in settings()}
    if "--freeze" in sys.argv:
        lines = (f"{json.dumps(name)}: {json.dumps(result)}" for name, result in found.items())
        FROZEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    known = json.loads(FROZEN.read_text())
    faults = {name: fault for name, result in found.items() if (fault := worse(result, known[name]))}
    equal = sum(result == known[name] for name, result in found.items())
    print(f"{len(found)} settings: {equal} equal, {len(found) - equal - len(faults)} better, {len(faults)} worse")
    for name, fault in faults.items():
        print(name, fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
