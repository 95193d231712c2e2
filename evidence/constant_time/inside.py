"""What runs under valgrind: every case on every class of secrets. It judges nothing; it writes down what it saw."""

from __future__ import annotations

import argparse
import ctypes
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from constant_time.cases import CASES, Case, Inputs, Integers, words
from constant_time.probe import CONTROL, Probe
from userdp import _core


def runner(case: Case, probe: Probe) -> Callable[[Inputs], Any]:
    """The draws of a case from given secrets, as the sampler returns them. It must use up the random ones."""
    sampler = case.make()

    def run(inputs: Inputs) -> Any:
        probe.feed(inputs.random)
        draws = case.draw(sampler, inputs.values)
        if probe.asked() != len(inputs.random):
            raise RuntimeError(f"{case.name} asked for {probe.asked()} random bytes, not for {len(inputs.random)}")
        return draws

    return run


def as_array(draws: Any) -> Integers:
    """Draws as one vector."""
    return np.asarray(draws, dtype=np.int64).reshape(-1)


def errors_of_conversion(draw: int, case: Case, probe: Probe) -> int:
    """How often memcheck reports the interpreter when this draw becomes an int without the library."""
    memory = np.array([draw], dtype=np.int64)
    number = ctypes.c_uint64.from_address(memory.ctypes.data)
    # ctypes asks the interpreter for it as the library does, and the int then goes the same way as a draw.
    convert = runner(replace(case, make=lambda: number, draw=lambda number, _: number.value), probe)
    probe.mark(memory)
    errors: int = probe.errors()
    convert(Inputs("", np.empty(0, dtype=np.int64), b""))
    after: int = probe.errors()
    return after - errors


def memcheck(
    name: str, inputs: Inputs, run: Callable[[Inputs], Any], probe: Probe, case: Case | None = None
) -> dict[str, Any]:
    """One run with public and one with secret inputs. What is reported of the first is the interpreter's own affair."""
    before = probe.errors()
    expected = as_array(run(inputs))
    own = probe.errors() - before
    # Copies: what was public once is not marked afterwards.
    secret = Inputs(inputs.label, inputs.values.copy(), bytes(bytearray(inputs.random)))
    probe.note(f"--- {name}: {inputs.label}")
    probe.mark(secret.values)
    probe.mark(secret.random)
    marked = probe.secret_bytes(secret.values) + probe.secret_bytes(secret.random)
    errors = probe.errors()
    released = run(secret)
    errors = probe.errors() - errors - own
    draws = as_array(released)
    of_conversion = errors_of_conversion(int(expected[0]), case, probe) if case and case.errors is None else 0
    secret_draws = sum(probe.secret_bytes(draw) > 0 for draw in np.split(draws, draws.size))
    for memory in (secret.values, secret.random, draws):
        probe.release(memory)
    return {
        "marked": marked,
        "draws": draws.size,
        "secret_draws": secret_draws,
        "errors": errors,
        "errors_of_conversion": of_conversion,
        "equal": bool(np.array_equal(draws, expected)),
    }


def callgrind(
    name: str, inputs: Inputs, run: Callable[[Inputs], Any], probe: Probe, case: Case | None = None
) -> dict[str, Any]:
    """One counted run, after one that is not, in which anything that is made on first use is made."""
    run(inputs)
    probe.zero()
    draws = run(inputs)
    probe.dump(f"{name}: {inputs.label}")
    return {"draws": np.size(draws)}


def main() -> None:
    """Run the cases that were asked for, and the control."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=["memcheck", "callgrind"])
    parser.add_argument("probe", type=Path)
    parser.add_argument("report", type=Path)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()

    probe = Probe(arguments.probe)
    if not probe.on_valgrind():
        raise SystemExit("this runs under valgrind only")
    observe = memcheck if arguments.tool == "memcheck" else callgrind
    runs: dict[str, dict[str, Any]] = {}
    # Everything is made before anything is counted.
    chosen = [case for case in CASES if case.name in arguments.cases]
    # Where the place of a report decides, it must be written down: memcheck lists the first of those that are alike.
    chosen.sort(key=lambda case: case.errors is not None)
    runners = [(case, runner(case, probe), list(case.inputs())) for case in chosen]
    control = [Inputs(label, np.empty(0, dtype=np.int64), random) for label, random in words(64, "123456")]
    if arguments.tool == "callgrind":
        probe.start()
    for case, run, classes in runners:
        run(classes[0])  # what is made on first use is made
        runs[case.name] = {inputs.label: observe(case.name, inputs, run, probe, case) for inputs in classes}
    leak = lambda inputs: probe.leaky_control(inputs.random)  # noqa: E731
    runs[CONTROL] = {inputs.label: observe(CONTROL, inputs, leak, probe) for inputs in control}
    report = {"loaded": str(Path(_core.__file__).resolve()), "runs": runs}
    arguments.report.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
