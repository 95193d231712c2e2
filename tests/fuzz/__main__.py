"""Fuzz one parser, guided by coverage: `python -m fuzz NAME RUNS FOLDER`. It needs atheris."""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import atheris

MODULES = {
    "reports": ["userdp.checker", "userdp.report", "userdp.exact.encoding"],
    "certificates": ["userdp.checker", "userdp.report.base", "userdp.report.certificate", "userdp.exact.encoding"],
    "messages": ["userdp.protocols", "userdp.users.containers", "userdp.exact.numbers"],
    "ledgers": ["userdp.accounting", "userdp.durable_log", "userdp.exact.encoding", "userdp.exact.numbers"],
    "schemas": ["userdp.tables.schema", "userdp.cli", "userdp.tables.aggregates", "userdp.tables.expressions"],
}
SECONDS = 1.0
"""Of a processor, for one input."""


def main(name: str, runs: int, folder: Path) -> None:
    """Run, and say for each kind of defect which input showed it first."""
    with atheris.instrument_imports(include=MODULES[name]):
        from fuzz.corpus import TARGETS, read

    target, kept = TARGETS[name], folder / name
    (kept / "corpus").mkdir(parents=True, exist_ok=True)
    (kept / "found").mkdir(exist_ok=True)
    seeds = read(name)
    for place, seed in enumerate(seeds):
        (kept / "corpus" / f"seed-{place}").write_bytes(seed)
    found: Counter[str] = Counter()
    done, past, slowest, began = 0, 0, 0.0, time.monotonic()

    def once(data: bytes) -> None:
        nonlocal done, past, slowest
        start, problem = time.process_time(), ""
        try:
            past += target.run(data)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # also the panics of the core
            places = traceback.extract_tb(error.__traceback__)[-3:]
            problem = f"{type(error).__name__}: " + " < ".join(f"{Path(p.filename).name}:{p.lineno}" for p in places[::-1])
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

    def altered(data: bytes, size: int, seed: int) -> bytes:
        source = random.Random(seed)
        try:
            made = target.alter(data if source.random() < 0.9 else source.choice(seeds), source)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):  # what is no JSON any more
            made = target.alter(source.choice(seeds), random.Random(seed + 1)) if source.random() < 0.97 else data[:size]
        return made[:size]

    options = ["-max_len=12000", "-len_control=0", f"-runs={runs}", f"-artifact_prefix={kept}/", "-timeout=60", "-rss_limit_mb=3000"]
    atheris.Setup([sys.argv[0], *options, str(kept / "corpus")], once, custom_mutator=altered)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
