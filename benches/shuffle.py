"""Times of the shuffle model: calibration, and whole rounds of many simulated clients.

python benches/shuffle.py
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from userdp.protocols.shuffle import Histogram, NegativeBinomialSum


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def calibrations() -> None:
    """The search and its certificate, for one count and for two."""
    print("\n| ε | δ | one count | mean noise | two counts | mean noise |\n|---|---|---|---|---|---|")
    for epsilon in (0.01, 0.1, 1, 4):
        for delta in (1e-3, 1e-6, 1e-12):
            cells = []
            for make, more in ((NegativeBinomialSum, {}), (Histogram, {"n_items": 2})):
                common: Any = {"epsilon": epsilon, "delta": delta, "n_users": 1000, "round_id": "bench", **more}
                spent = seconds(lambda make=make, common=common: make(**common))  # type: ignore[misc]
                cells += [f"{1000 * spent:.1f} ms", f"{make(**common).mean_noise:.1f}"]
            print(f"| {epsilon} | {delta:g} | " + " | ".join(cells) + " |")


def rounds() -> None:
    """Clients, shuffler and server in one process, with encoded messages and without."""
    print(
        "\n| clients | items | messages | drawing only | with encoding, shuffling and counting |\n|---|---|---|---|---|"
    )
    for n_users, n_items in ((10**4, 10), (10**4, 100), (10**5, 10)):
        protocol = Histogram(
            epsilon=1, delta=1e-6, n_items=n_items, n_users=n_users, round_id="bench", estimates="at_least"
        )
        items = np.arange(n_users) % n_items

        def everything(protocol: Histogram = protocol, items: Any = items) -> int:
            shuffler, server = protocol.shuffler(), protocol.server()
            shuffler.collect(protocol.report_many(items))
            return server.receive_many(shuffler.release())

        drawing = seconds(lambda protocol=protocol, items=items: protocol.release(items), 3)  # type: ignore[misc]
        print(f"| {n_users:,} | {n_items} | {everything():,} | {drawing:.2f} s | {seconds(everything, 3):.2f} s |")


if __name__ == "__main__":
    print(f"{platform.processor() or platform.machine()}, python {platform.python_version()}, numpy {np.__version__}")
    calibrations()
    rounds()
