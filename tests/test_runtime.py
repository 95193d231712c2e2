"""Long work: Ctrl-C, progress, forks and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from userdp import _core
from userdp.divergence import hockey_stick, is_indistinguishable
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import DiscreteLaplace

INTERRUPTED = {
    "pairs of a family": """
        pmfs = [([i + 1, 2000 - i], 2001) for i in range(2000)]
        pairs = [(i, j) for j in range(2000) for i in range(j)]
        call = lambda: [_core.family_worst(pmfs, pairs, level, Fraction(0), None) for _ in range(100)]
    """,
    "exact ties": """
        half = np.full(2**20, 2.0**-20)
        call = lambda: [is_indistinguishable(half, half, epsilon=5e-324, delta=0) for _ in range(50)]
    """,
    "logarithms": """
        rng = np.random.default_rng(0)
        p, q = rng.dirichlet(np.ones(10**6)), rng.dirichlet(np.ones(10**6))
        call = lambda: kl_divergence(p, q)
    """,
    "a large float pair, again and again": """
        p = np.full(2**22, 2.0**-22)
        call = lambda: [hockey_stick(p, p, 0.5) for _ in range(10**6)]
    """,
    "the distribution of a stable family": """
        family = _core.StableFamily([1] * 26, 20, 10)
        family.mark([1] * 20 + [0] * 6, [0] * 6 + [1] * 20)
        mixture = [int(size > 0) for size in family.layer_sizes()]
        call = lambda: [family.distribution(mixture, 11) for _ in range(100)]
    """,
}
SCRIPT = """
import os, signal, sys, threading
from fractions import Fraction
import numpy as np
from userdp import _core
from userdp.divergence import hockey_stick, is_indistinguishable, kl_divergence

level = _core.Level(Fraction(1), Fraction(1, 3))
{setup}
# A parent that ignores the signal, as shells make their background jobs do, passes that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    call()
except KeyboardInterrupt:
    sys.exit(0)
sys.exit("the work finished: nothing was interrupted")
"""


@pytest.mark.serial
@pytest.mark.parametrize("name", INTERRUPTED)
def test_control_c_is_answered(name: str) -> None:
    # Each call takes far longer than the half second until the signal; benches/interrupt_latency.py has the times.
    script = SCRIPT.replace("{setup}", textwrap.dedent(INTERRUPTED[name]))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def many_pairs() -> tuple[list[tuple[list[int], int]], list[tuple[int, int]]]:
    pmfs = [([i + 1, 700 - i], 701) for i in range(700)]
    return pmfs, [(i, j) for j in range(700) for i in range(j)]


def test_an_error_in_the_progress_callback_stops_the_work() -> None:
    pmfs, pairs = many_pairs()
    calls = []

    def progress(done: int, total: int) -> None:
        calls.append((done, total))
        raise LookupError("enough")

    level = _core.Level(Fraction(1), Fraction(1, 3))

    def work() -> None:
        for _ in range(1000):
            _core.family_worst(pmfs, pairs, level, Fraction(0), progress)

    with pytest.raises(LookupError, match="enough"):
        work()
    assert len(calls) == 1
    # The pool is still of use.
    assert _core.family_worst(pmfs[:2], [(0, 1)], level, Fraction(0), None) is not None


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_its_own_pool() -> None:
    script = textwrap.dedent(
        """
        import os, sys
        from fractions import Fraction
        from userdp import _core

        pmfs = [([i + 1, 300 - i], 301) for i in range(300)]
        pairs = [(i, j) for j in range(300) for i in range(j)]
        level = _core.Level(Fraction(1), Fraction(1, 3))
        call = lambda: [_core.family_worst(pmfs, pairs, level, Fraction(0), None) for _ in range(20)]
        mine = call()
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            same = call() == mine
            if grandchild:
                same = same and os.waitpid(grandchild, 0)[1] == 0
            os._exit(0 if same else 1)
        sys.exit(os.waitpid(child, 0)[1])
        """
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


@pytest.mark.serial
def test_threads_get_the_same_answers() -> None:
    source = np.random.default_rng(3)
    tables = [(source.dirichlet(np.ones(50)), source.dirichlet(np.ones(50))) for _ in range(200)]

    def answers(_: int) -> list[object]:
        return [(hockey_stick(p, q, 0.3), is_indistinguishable(p, q, epsilon=0.3, delta=0.1)) for p, q in tables]

    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(answers, range(8)))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("kernel", ["scalar", "baseline", "avx2", "avx512"])
def test_every_kernel_gives_the_same_answers(kernel: str) -> None:
    script = textwrap.dedent(
        """
        import numpy as np
        from userdp.divergence import hockey_stick
        source = np.random.default_rng(5)
        for size in (1, 2, 3, 5, 8, 9, 17, 1000, 5000):
            p, q = source.dirichlet(np.ones(size)), source.dirichlet(np.ones(size))
            print(size, hockey_stick(p, q, 0.25).hex())
        """
    )

    def run(name: str) -> str:
        environment = {**os.environ, "USERDP_KERNEL": name}
        return subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    # A correctly rounded result does not depend on the kernel; one that the machine lacks falls back to its best.
    assert run(kernel) == run("")


def test_warnings_show_the_line_of_the_user() -> None:
    with pytest.warns(InsecureRandomnessWarning) as caught:
        DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 3)).sample(1, random_state=0)
    assert [warning.filename for warning in caught] == [__file__]
