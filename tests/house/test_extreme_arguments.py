"""Whatever the arguments are, the compiled core answers, or refuses them with an error: never an abort or a panic."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import core_calls
from userdp import _core
from userdp.exceptions import BudgetError
from userdp.public_randomness import PublicSeed

NAMES = list(core_calls.CALLS)
PARTS = [NAMES[part::10] for part in range(10)]


def test_every_function_of_the_core_has_a_call() -> None:
    names = set()
    for name, value in vars(_core).items():
        if name.startswith("__"):
            continue
        if not inspect.isclass(value):
            names.add(name)
            continue
        methods = {method for method, member in vars(value).items() if callable(member) and method[0] != "_"}
        statics = {method for method in methods if isinstance(vars(value)[method], staticmethod)}
        names |= {f"{name}.{method}" for method in methods}
        if not methods or not statics or name in {"Source"}:
            names.add(name)
    # Nobody can make these two themselves.
    assert names <= set(core_calls.CALLS) | {"Rate", "UserVectors", "WhitenedRows"}, names - set(core_calls.CALLS)


@pytest.mark.parametrize("names", PARTS, ids=lambda names: names[0])
def test_extreme_arguments_are_answered_or_refused(names: list[str]) -> None:
    environment = {
        **os.environ,
        "RAYON_NUM_THREADS": "2",
        "RUST_BACKTRACE": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, str(Path(core_calls.__file__)), *names], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-2000:]}"
    assert "panicked" not in done.stderr


def test_exact_pmfs_are_refused_before_anything_is_listed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = str(Path(core_calls.__file__).with_name("every_estimator.py"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = done.stdout.splitlines()
    assert len(answers) == 14
    for answer in answers:
        assert re.search(r"BudgetError: there are .* outcomes, too many to list \(limit 262144\); audit fewer", answer)


@pytest.mark.parametrize("count", [2**28 + 1, 2**30, 2**31, 2**62, 2**64])
def test_keys_beyond_memory_are_refused_with_the_estimate(count: int) -> None:
    with pytest.raises(BudgetError, match=r"count: \d+ entries take .* GiB, .*; a race"):
        PublicSeed(bytes(32)).race_keys("label", 0, count)


def test_lists_that_claim_a_length_are_refused() -> None:
    class Claims(list[int]):
        def __len__(self) -> int:
            return 2**62

    with pytest.raises(BudgetError, match="items of a list"):
        _core.count_vectors_number(range(2**40), 1)
    with pytest.raises(BudgetError, match="items of a list"):
        _core.count_vectors_number(Claims([1, 2]), 1)
    # Longer than claimed, too.
    assert _core.count_vectors_number([1, 2], 1) == 2
