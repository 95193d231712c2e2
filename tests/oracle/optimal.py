"""Optimal mechanisms, slowly: no symmetries, an exact simplex, and closed forms. Fractions and the standard library."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

F = Fraction
ZERO = F(0)


def least(cost: Sequence[Fraction], rows: Sequence[tuple[dict[int, Fraction], str, Fraction]]) -> Fraction:
    """The least cost x over x >= 0 with the rows, each (coefficients, "<=" or "=", right side >= 0).

    The simplex method in two phases, with Bland's rule, on a dense tableau of fractions.
    """
    n = len(cost)
    slack = sum(kind == "<=" for _, kind, _ in rows)
    width = n + slack + len(rows)
    table, basis, at = [], [], n
    for i, (row, kind, right) in enumerate(rows):
        line = [F(0)] * (width + 1)
        for j, value in row.items():
            line[j] = F(value)
        if kind == "<=":
            line[at] = F(1)
            at += 1
        line[n + slack + i], line[-1] = F(1), F(right)
        table.append(line)
        basis.append(n + slack + i)

    def run(z: list[Fraction], columns: int) -> None:
        while True:
            enter = next((j for j in range(columns) if z[j] < 0), None)
            if enter is None:
                return
            ratios = [(line[-1] / line[enter], basis[i], i) for i, line in enumerate(table) if line[enter] > 0]
            _, _, i = min(ratios)
            pivot = table[i][enter]
            table[i] = [value / pivot for value in table[i]]
            for other in (*range(len(table)), None):
                line = z if other is None else table[other]
                factor = line[enter]
                if other != i and factor:
                    for j, value in enumerate(table[i]):
                        if value:
                            line[j] -= factor * value
            basis[i] = enter

    # First only that the artificial unknowns vanish.
    first = [-sum(line[j] for line in table) if j < n + slack or j == width else F(0) for j in range(width + 1)]
    run(first, n + slack)
    assert first[-1] == 0
    for i, j in enumerate(basis):
        if j >= n + slack:
            enter = next((c for c in range(n + slack) if table[i][c]), None)
            if enter is not None:
                pivot = table[i][enter]
                table[i] = [value / pivot for value in table[i]]
                for other, line in enumerate(table):
                    if other != i and line[enter]:
                        factor = line[enter]
                        table[other] = [a - factor * b for a, b in zip(line, table[i], strict=True)]
                basis[i] = enter
    z = [*map(F, cost), *[F(0)] * (width + 1 - n)]
    for i, j in enumerate(basis):
        if j < n and z[j]:
            factor = z[j]
            z = [a - factor * b for a, b in zip(z, table[i], strict=True)]
    run(z, n + slack)
    return -z[-1]


def optimum(
    losses: Sequence[Sequence[Fraction]],
    near: Sequence[tuple[int, int]],
    ratio: Fraction,
    delta: Fraction = ZERO,
    prior: Sequence[Fraction] | None = None,
) -> Fraction:
    """The least loss of a table on states, one unknown for each state and output; pairs of neighbors are unordered."""
    states, k = len(losses), len(losses[0])
    rows: list[tuple[dict[int, Fraction], str, Fraction]] = []
    size = states * k + 1
    for a, b in (pair for one, two in near for pair in ((one, two), (two, one))):
        slacks = {}
        for o in range(k):
            row = {a * k + o: F(1), b * k + o: -F(ratio)}
            if delta:
                row[size] = F(-1)
                slacks[size] = F(1)
                size += 1
            rows.append((row, "<=", F(0)))
        if delta:
            rows.append((slacks, "<=", F(delta)))
    for s in range(states):
        rows.append(({s * k + o: F(1) for o in range(k)}, "=", F(1)))
        if prior is None:
            rows.append(({**{s * k + o: F(losses[s][o]) for o in range(k)}, states * k: F(-1)}, "<=", F(0)))
    cost = [F(0)] * size
    if prior is None:
        cost[states * k] = F(1)
    else:
        for s in range(states):
            for o in range(k):
                cost[s * k + o] = F(prior[s]) * F(losses[s][o])
    return least(cost, rows)


def sequences(universe: Sequence[Any], n_users: int, n_examples: int) -> tuple[list[Any], list[tuple[int, int]]]:
    """All datasets in order, and who is whose neighbor by one replaced user."""
    users = list(itertools.product(universe, repeat=n_examples))
    datasets = list(itertools.product(users, repeat=n_users))
    near = [
        (i, j)
        for (i, one), (j, other) in itertools.combinations(enumerate(datasets), 2)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    ]
    return datasets, near


def of_users(
    loss: Callable[[Any, Any], Any],
    universe: Sequence[Any],
    outputs: Sequence[Any],
    n_users: int,
    n_examples: int,
    ratio: Fraction,
    delta: Fraction = ZERO,
) -> Fraction:
    """The optimum over all mechanisms, those that see the order of users and examples included."""
    datasets, near = sequences(universe, n_users, n_examples)
    return optimum([[F(loss(dataset, o)) for o in outputs] for dataset in datasets], near, ratio, delta)


def two_items(n: int, root: Fraction) -> Fraction:
    """The least worst regret for two items, with root = e^(epsilon / 2)."""
    if n % 2 == 0:
        return max(F(j) / (2 * root**j) for j in range(0, n + 1, 2))
    return max(F(j) / (root ** (j - 1) * (1 + root**2)) for j in range(1, n + 1, 2))


def randomized_response(k: int, ratio: Fraction, delta: Fraction = ZERO) -> Fraction:
    """The least probability of error for one user with one of k items."""
    return (1 - delta) * (k - 1) / (ratio + k - 1)


def clamped_geometric(n: int, ratio: Fraction) -> list[list[Fraction]]:
    """Two-sided geometric noise on 0..n, clamped."""
    a = 1 / F(ratio)
    rows = []
    for s in range(n + 1):
        row = [(1 - a) / (1 + a) * a ** abs(s - o) for o in range(n + 1)]
        row[0], row[n] = a**s / (1 + a), a ** (n - s) / (1 + a)
        rows.append(row)
    return rows


def best_remap(n: int, ratio: Fraction, prior: Sequence[Fraction], power: int = 1) -> Fraction:
    """The least mean of |output - count|^power that is made of the clamped geometric mechanism's output."""
    noisy = clamped_geometric(n, ratio)
    return sum(
        (
            min(sum(prior[s] * noisy[s][o] * abs(s - t) ** power for s in range(n + 1)) for t in range(n + 1))
            for o in range(n + 1)
        ),
        F(0),
    )


def regret(dataset: Sequence[Sequence[Any]], output: Any) -> int:
    """How many more users have the winner, where each has one item."""
    items = [user[0] for user in dataset]
    return max(map(items.count, items)) - items.count(output)
