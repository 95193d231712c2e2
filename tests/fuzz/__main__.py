"""Fuzz one parser, guided by coverage: `python -m fuzz NAME RUNS FOLDER`. It needs atheris."""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import atheris

from fuzz.modules import MODULES

MOST = 2000
"""Accepted inputs that others are made of."""
SECONDS = 1.0
"""Of a processor, for one input."""


def main(name: str, runs: int, folder: Path) -> None:
    """Run, and say for each kind of defect which input showed it first."""
    package = find_spec("userdp")
    assert package is not None
    assert package.origin is not None
    root = Path(package.origin).parent
    every = {".".join(path.relative_to(root.parent).with_suffix("").parts) for path in root.rglob("*.py")}
    every = {module.removesuffix(".__init__") for module in every}
    watched = {f"userdp.{module}" for module in MODULES[name].split()}  # all of the package takes several times as long
    with atheris.instrument_imports(include=["userdp"], exclude=sorted(every - watched)):
        from fuzz.corpus import TARGETS, read

        for module in sorted(watched):  # also those that are loaded when they are first used
            import_module(module)

    target, kept = TARGETS[name], folder / name
    (kept / "corpus").mkdir(parents=True, exist_ok=True)
    (kept / "found").mkdir(exist_ok=True)
    seeds = read(name)
    for place, seed in enumerate(seeds):
        (kept / "corpus" / f"seed-{place}").write_bytes(seed)
    found: Counter[str] = Counter()
    accepted = [seed for seed in seeds if target.run(seed)]
    done, past, slowest, began = 0, 0, 0.0, time.monotonic()

    def once(data: bytes) -> None:
        nonlocal done, past, slowest
        start, problem = time.process_time(), ""
        try:
            if target.run(data):
                past += 1
                if len(accepted) < MOST:
                    accepted.append(data)
                elif past % 16 == 0:
                    accepted[past // 16 % MOST] = data
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also the panics of the core
            places = traceback.extract_tb(error.__traceback__)[-3:]
            problem = f"{type(error).__name__}: " + " < ".join(
                f"{Path(p.filename).name}:{p.lineno}" for p in places[::-1]
            )
        took = time.process_time() - start
        slowest = max(slowest, took)
        if not problem and took > SECONDS:
            problem = f"slow: {target.kind(data)}"
        if problem:
            found[problem] += 1
            if found[problem] == 1:
                (kept / "found" / str(len(found))).write_bytes(data)
                print(f"FOUND {len(found)}: {problem}", flush=True)
        done += 1
        if done % 50_000 == 0 or done == runs:
            rate = done / (time.monotonic() - began)
            line = {"runs": done, "past": round(past / done, 3), "slowest": round(slowest, 2), "rate": round(rate)}
            print(json.dumps(line | {"found": found}), flush=True)
            (kept / "numbers.json").write_text(json.dumps(line | {"found": found}))
        if done == runs and found:
            raise AssertionError(f"{len(found)} kinds of defects, in {kept / 'found'}")

    def altered(data: bytes, size: int, seed: int) -> bytes:
        source, base = random.Random(seed), data
        for _ in range(20):
            if source.random() < 0.7:
                base = source.choice(accepted)
            with suppress(ArithmeticError, LookupError, TypeError, ValueError, RecursionError):  # of no JSON any more
                return target.alter(base, source)[:size]
        return data[:size]

    options = [
        "-max_len=4000",
        "-len_control=0",
        "-mutate_depth=1",
        f"-runs={runs}",
        f"-artifact_prefix={kept}/",
        "-timeout=60",
        "-rss_limit_mb=3000",
    ]
    atheris.Setup([sys.argv[0], *options, str(kept / "corpus")], once, custom_mutator=altered)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
