"""The square of 2^18 masses of 120 bits beside python-flint's polynomials over the integers, as markdown.

    python benches/compose_square.py [--terms 262144]

Needs ``pip install python-flint``. userdp's time is that of a table composed twice less that of the table alone: the
product modulo primes, the masses from their remainders, rounding, two checks, and the sums for the longer curve. FLINT
squares the same masses, as they are rounded (their sum is 2^120), and numbers of the full 120 bits.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

from userdp import _core

RUNS = 5
BITS = 120


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """The least time that passed and the least seconds of all processors."""
    runs = []
    for _ in range(RUNS):
        start, before = time.perf_counter(), time.process_time()
        call()
        runs.append((time.perf_counter() - start, time.process_time() - before))
    return min(passed for passed, _ in runs), min(used for _, used in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--terms", type=int, default=2**18)
    terms = parser.parse_args().terms
    rng = random.Random(0)
    weights = [rng.getrandbits(BITS - terms.bit_length()) for _ in range(terms)]
    step = Fraction(1, 10**6)
    release = _core.Release.from_table(weights, 0, -terms // 2, step, 2)

    def composed(count: int) -> Any:
        return _core.Composed([release], [count], limbs=2, resolution=step, cut=0, max_terms=2**22, reach=20.0)

    once, twice = timed(lambda: composed(1)), timed(lambda: composed(2))
    ours = twice[0] - once[0], twice[1] - once[1]
    print(f"| square of {terms} terms | time | of all processors | over userdp |")
    print("|---|--:|--:|--:|")
    print(f"| userdp, {BITS} bits | {1e3 * ours[0]:.0f} ms | {1e3 * ours[1]:.0f} ms | 1 |")
    shift = BITS - sum(weights).bit_length()
    for what, values in (
        (f"the same masses, of {BITS} bits together", [weight << shift for weight in weights]),
        (f"{BITS} bits each", [rng.getrandbits(BITS) for _ in range(terms)]),
    ):
        polynomial = flint.fmpz_poly(values)
        theirs = timed(lambda polynomial=polynomial: polynomial * polynomial)
        ratios = " and ".join(f"{their / our:.2f}" for their, our in zip(theirs, ours, strict=True))
        print(f"| FLINT, {what} | {1e3 * theirs[0]:.0f} ms | {1e3 * theirs[1]:.0f} ms | {ratios} |")


if __name__ == "__main__":
    main()
