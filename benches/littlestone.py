"""How long the Littlestone dimension takes, beside the recursion of its definition in Python.

    python benches/littlestone.py

Prints Markdown tables. Single calls on an idle machine, the best of many, since a search has no randomness of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from rounds import described, environment, human

from userdp.dimensions import littlestone_dimension, mistake_tree

Matrix = npt.NDArray[np.uint8]
REPEATS = 100


def thresholds(points: int) -> Matrix:
    return np.tri(points + 1, points, -1, dtype=np.uint8)


def sparse_parities(bits: int, weight: int) -> Matrix:
    points = np.arange(2**bits)
    rows = [sum(points >> bit & 1 for bit in support) % 2 for support in combinations(range(bits), weight)]
    return np.array(rows, dtype=np.uint8)


def random_matrix(rows: int, columns: int, density: float) -> Matrix:
    return (np.random.default_rng(2).random((rows, columns)) < density).astype(np.uint8)


def by_definition(matrix: Matrix) -> int:
    """Version spaces as Python ints, all of them remembered, with the early stop at floor(log2 |V|)."""
    rows = np.unique(matrix, axis=0)
    columns = [sum(int(bit) << i for i, bit in enumerate(column)) for column in np.unique(rows, axis=1).T]

    @cache
    def dimension(version: int) -> int:
        size = version.bit_count()
        if size <= 1:
            return size - 1
        best, ceiling = 0, size.bit_length() - 1
        for column in columns:
            ones = version & column
            if ones and ones != version:
                best = max(best, 1 + min(dimension(ones), dimension(version & ~column)))
                if best == ceiling:
                    break
        return best

    return dimension((1 << len(rows)) - 1)


def best_time(call: Callable[[], int], repeats: int) -> tuple[float, int]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    print(described(environment(["numpy"])))
    print("\n| class | shape | LDim | size bound | time | with its tree |\n|---|---|---|---|---|---|")
    large = [
        ("thresholds", thresholds(1023)),
        ("parities of 3 of 12 bits", sparse_parities(12, 3)),
        *((f"random, density {density}", random_matrix(96, 24, density)) for density in (0.1, 0.25, 0.5)),
        ("random, density 0.1", random_matrix(1000, 100, 0.1)),
    ]
    for name, matrix in large:
        bound = len(np.unique(matrix, axis=0)).bit_length() - 1
        seconds, found = best_time(lambda m=matrix: littlestone_dimension(m), REPEATS)
        with_tree, depth = best_time(lambda m=matrix: mistake_tree(m).depth, REPEATS)
        assert depth == found
        assert mistake_tree(matrix).verify(matrix)
        rows, columns = matrix.shape
        print(f"| {name} | {rows} x {columns} | {found} | {bound} | {human(seconds)} | {human(with_tree)} |")
    print("\n| class | shape | LDim | userdp | definition, remembered | ratio |\n|---|---|---|---|---|---|")
    small = [
        ("thresholds", thresholds(63)),
        ("parities of 2 of 5 bits", sparse_parities(5, 2)),
        ("random, density 0.1", random_matrix(64, 14, 0.1)),
        ("random, density 0.25", random_matrix(64, 14, 0.25)),
        ("random, density 0.5", random_matrix(48, 12, 0.5)),
    ]
    for name, matrix in small:
        ours, found = best_time(lambda m=matrix: littlestone_dimension(m), REPEATS)
        theirs, defined = best_time(lambda m=matrix: by_definition(m), 1)
        assert found == defined
        rows, columns = matrix.shape
        print(f"| {name} | {rows} x {columns} | {found} | {human(ours)} | {human(theirs)} | {theirs / ours:.3g} |")


if __name__ == "__main__":
    main()
