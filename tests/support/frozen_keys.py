"""Calibrated settings of keys: what noise and thresholds were chosen, and for which delta, before an account changed.

``python tests/support/frozen_keys.py`` compares all of them with tests/data/frozen_keys.json, which takes minutes, and
``--freeze`` writes it anew. An account may get tighter: thresholds and deltas may fall, and never rise.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Literal

from userdp.mechanisms import PartitionSelection, SetUnion, SparseHistogram

RESULTS = Path(__file__).parents[1] / "data" / "frozen_keys.json"
BITS = 192
"""Of deltas, which are rounded up: a part in 2**BITS of 2**-64 or so is not told apart."""


def settings() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every setting by its name, as a class's maker and arguments."""
    listed: list[tuple[str, dict[str, Any]]] = []
    sides = ("add-remove", "replace")

    def union(epsilon: str, delta: str, keys: int, neighbors: str, method: str, **more: str) -> None:
        arguments = {"epsilon": epsilon, "delta": delta, "max_keys": keys, "neighbors": neighbors, "method": method}
        listed.append(("union", arguments | more))

    for epsilon, delta, keys, neighbors, method in product(
        ("1/4", "1", "3"), ("1e-4", "1e-8"), (1, 2, 5), sides, ("one-round", "two-round", "policy")
    ):
        union(epsilon, delta, keys, neighbors, method)
    for epsilon, delta, keys, neighbors in product(("1/50", "1/2", "10"), ("1e-3", "1e-6", "1e-12"), (1, 3, 4), sides):
        union(epsilon, delta, keys, neighbors, "one-round")
    for epsilon, keys, method in product(("1/2", "2"), (16, 33, 64), ("one-round", "two-round", "policy")):
        union(epsilon, "1e-6", keys, "add-remove", method)
    for share, keys in product(("1/20", "1/3", "1/2"), (1, 3, 8)):
        union("1", "1e-5", keys, "replace", "two-round", first_share=share)
    for keys in (300, 4096):
        union("1", "1e-5", keys, "add-remove", "one-round")
    for rho, added, keys, neighbors, method in product(
        ("1/100", "1/2"), ("1e-4", "1e-9"), (1, 6), sides, ("one-round", "two-round", "policy")
    ):
        arguments = {"rho": rho, "added_delta": added, "max_keys": keys, "neighbors": neighbors, "method": method}
        listed.append(("union within", arguments))
    for epsilon, delta, keys, neighbors, method in product(
        ("1/8", "1/2", "1", "4"), ("1e-4", "1e-6", "1e-10"), (1, 2, 4, 9), sides, ("laplace", "gaussian")
    ):
        arguments = {"epsilon": epsilon, "delta": delta, "max_keys": keys, "neighbors": neighbors, "method": method}
        listed.append(("histogram", arguments))
    for keys, sums in product((1, 3), ([(0, 1)], [(-3, 5)], [(-1, 1), (0, 10)])):
        listed.append(("histogram", {"epsilon": "1", "delta": "1e-5", "max_keys": keys, "sums": sums}))
    for keys in (40, 300, 1000):
        listed.append(
            ("histogram", {"epsilon": "1", "delta": "1e-5", "max_keys": keys, "method": "gaussian"}),
        )
    for epsilon, delta, neighbors in product(
        ("1/10", "1/2", "1", "2", "5"), ("1e-2", "1e-4", "1e-5", "1e-6", "1e-9", "1e-15"), sides
    ):
        listed.append(("partition", {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}))
    return {_name(kind, arguments): (kind, arguments) for kind, arguments in listed}


def _name(kind: str, arguments: dict[str, Any]) -> str:
    return " ".join([kind, *(f"{name}={value}" for name, value in arguments.items())])


def chosen(kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What is chosen: noise, thresholds, and deltas rounded up; or that it is refused."""
    try:
        if kind == "partition":
            selection = PartitionSelection(**arguments)
            return {"numerators": _digest(selection.numerators)}
        if kind == "histogram":
            made = SparseHistogram.calibrated(**arguments)
            noise = [str(made._arguments.get(name)) for name in ("sigma_squared", "scale", "epsilon_per_unit")]
            noise += map(str, made._arguments.get("sums", ()))
            return {"noise": noise, "thresholds": [made.threshold], "delta": _up(made.certified_delta)}
        found = (SetUnion.within if kind == "union within" else SetUnion.calibrated)(**arguments)
        variances, thresholds = zip(*found.rounds, strict=True)
        delta = found.vanishing_delta if kind == "union within" else found.certified_delta
        return {"noise": list(map(str, variances)), "thresholds": list(thresholds), "delta": _up(delta)}
    except ValueError:
        return {"refused": True}


def _digest(numbers: tuple[int, ...]) -> list[str]:
    return [str(len(numbers)), *(hex(numbers[place]) for place in sorted({1, len(numbers) // 2, len(numbers) - 1}))]


def _up(delta: Fraction) -> str:
    return hex(-(-(delta.numerator << BITS + 64) // delta.denominator))


def compared(before: dict[str, Any], now: dict[str, Any]) -> Literal["equal", "better", "worse"]:
    """How a setting is now: worse as soon as a threshold is larger, or the delta at the same noise and thresholds."""
    if before == now:
        return "equal"
    if "refused" in before:
        return "better"
    if "refused" in now or "numerators" in now:
        return "worse"
    pairs = list(zip(before["thresholds"], now["thresholds"], strict=True))
    if any(after > earlier for earlier, after in pairs):
        return "worse"
    if all(after == earlier for earlier, after in pairs) and int(now["delta"], 16) > int(before["delta"], 16):
        return "worse"
    return "better"


def main() -> None:
    cases = settings()
    if "--freeze" in sys.argv:
        found = {name: chosen(*case) for name, case in cases.items()}
        lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    frozen = json.loads(RESULTS.read_text())
    counts: Counter[str] = Counter()
    began = time.process_time()
    for name, case in cases.items() if "--freeze" not in sys.argv else ():
        verdict = compared(frozen[name], chosen(*case))
        counts[verdict] += 1
        if verdict != "equal":
            print(verdict, name)
    print(len(cases), "settings:", dict(counts), f"in {time.process_time() - began:.0f} processor seconds")


if __name__ == "__main__":
    main()
