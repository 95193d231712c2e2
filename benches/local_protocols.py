"""Local protocols with many simulated clients: time, beside plain numpy, and errors beside their theory.

Prints markdown. Times are of the processor (all threads of this process), since they do not depend on who else uses
the machine; reports are made on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from rounds import described, environment, human, table

from userdp.protocols.local import HadamardResponse, ItemProtocol, KRandomizedResponse, SubsetSelection

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PROTOCOLS: tuple[Callable[..., ItemProtocol], ...] = (KRandomizedResponse, HadamardResponse, SubsetSelection)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def plain_randomized_response(items: Integers, k: int, epsilon: float) -> Floats:
    """The same estimate from floats and a generator that is not cryptographic."""
    generator = np.random.default_rng(1)
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    other = (items + generator.integers(1, k, len(items))) % k
    reports = np.where(generator.random(len(items)) < keep, items, other)
    q = (1 - keep) / (k - 1)
    estimates: Floats = (np.bincount(reports, minlength=k) - len(items) * q) / (keep - q)
    return estimates


def plain_hadamard_response(items: Integers, k: int, epsilon: float) -> Floats:
    """The same, with the transform in numpy."""
    generator = np.random.default_rng(1)
    columns, rows = 1 << k.bit_length(), items + 1
    keep = np.exp(epsilon) / (np.exp(epsilon) + 1)
    column = generator.integers(0, columns, len(items))
    parity = rows & column
    for shift in (16, 8, 4, 2, 1):
        parity = parity ^ (parity >> shift)
    wrong = (parity & 1) == (generator.random(len(items)) < keep)
    sums = np.bincount(np.where(wrong, column ^ (rows & -rows), column), minlength=columns)
    half = 1
    while half < columns:
        pairs = sums.reshape(-1, 2, half)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    estimates: Floats = sums[1 : k + 1] / (2 * keep - 1)
    return estimates


def plain_subset_selection(items: Integers, k: int, epsilon: float) -> Floats:
    """The same, by sorting random keys, a thousand users at a time."""
    generator = np.random.default_rng(1)
    w = max(1, round(k / (np.exp(epsilon) + 1)))
    keep = np.exp(epsilon) * w / (np.exp(epsilon) * w + k - w)
    counts = np.zeros(k, dtype=np.int64)
    for block in np.array_split(items, max(1, len(items) // 1000)):
        keys = generator.random((len(block), k), dtype=np.float32)
        inside = generator.random(len(block)) < keep
        keys[np.arange(len(block)), block] = np.where(inside, -1, 2)
        counts += np.bincount(np.argpartition(keys, w - 1, axis=1)[:, :w].ravel(), minlength=k)
    q = (keep * (w - 1) + (1 - keep) * w) / (k - 1)
    estimates: Floats = (counts - len(items) * q) / (keep - q)
    return estimates


PLAIN = (plain_randomized_response, plain_hadamard_response, plain_subset_selection)


def times(n: int, k: int, epsilon: float) -> list[str]:
    """Reports, server and histogram of all clients at once."""
    items = np.random.default_rng(0).integers(0, k, n)
    rows = []
    for kind, plain in zip(PROTOCOLS, PLAIN, strict=True):
        protocol = kind(epsilon=epsilon, n_items=k, n_users=n, round_id="bench")
        clients, messages = timed(partial(protocol.report_many, items))
        server = protocol.server()
        received, _ = timed(partial(server.receive_many, messages))
        decoded, _ = timed(server.histogram)
        of_plain, _ = timed(partial(plain, items, k, epsilon))
        cells = [clients, received, decoded, of_plain]
        rows.append([type(protocol).__name__, str(protocol.format.width), *map(human, cells)])
    heads = ["protocol", "bytes", "clients", "server", "histogram", "all of it in numpy, floats"]
    return [f"### {n:,} clients, k = {k:,}, ε = {epsilon}", "", *table(heads, rows), ""]


def errors(n: int, k: int, epsilon: float, rounds: int) -> list[str]:
    """Mean squared errors beside the exact ones."""
    generator = np.random.default_rng(3)
    items = np.minimum(generator.geometric(3 / k, n) - 1, k - 1)
    truth = np.bincount(items, minlength=k)
    rows = []
    for kind in PROTOCOLS:
        protocol = kind(epsilon=epsilon, n_items=k, n_users=n, round_id="bench")
        squares, worst = [], []
        for _ in range(rounds):
            server = protocol.server()
            server.receive_many(protocol.report_many(items))
            off = server.histogram() - truth
            squares.append(float(np.mean(off**2)))
            worst.append(float(np.abs(off).max()))
        theory = float(protocol.squared_error) * n / k
        ratio, spread = np.mean(squares) / theory, np.std(squares, ddof=1) / np.sqrt(rounds) / theory
        bound = protocol.error_bound("0.05")
        rows.append(
            [
                type(protocol).__name__,
                f"{np.sqrt(theory):.1f}",
                f"{np.sqrt(np.mean(squares)):.1f}",
                f"{ratio:.3f} ± {2 * spread:.3f}",
                f"{np.mean(worst):.0f}",
                f"{bound:.0f}",
            ]
        )
    heads = ["protocol", "root of the exact mean squared error", "measured", "squares, measured / exact"]
    heads += ["largest error, mean", "bound at β = 0.05"]
    title = f"### Errors of {n:,} clients, k = {k:,}, ε = {epsilon}, {rounds} rounds"
    return [title, "", *table(heads, rows), ""]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer clients and rounds")
    quick = parser.parse_args().quick
    print(described(environment(["userdp", "numpy"])), end="\n\n")
    n = 10**5 if quick else 10**6
    for k in (10, 100, 1000):
        print("\n".join(times(n, k, 1.0)), flush=True)
    for k, epsilon in ((64, 1.0), (256, 2.0)):
        print("\n".join(errors(20_000, k, epsilon, 20 if quick else 100)), flush=True)


if __name__ == "__main__":
    main()
