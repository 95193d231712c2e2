"""How far shipped algorithms are from the best that privacy allows, certified: the table of docs/optimal.md.

``python benches/optimal_gaps.py`` prints the table as Markdown, and ``--write`` puts it and the picture into docs. It
needs the extras learn and optimal, and plot for the picture, and takes 14 seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from userdp import mechanisms
from userdp.concepts import PointFunctions, Thresholds
from userdp.estimators import as_finite_algorithm
from userdp.learners import AgnosticPACClassifier, HypothesisSelector, RealizablePACClassifier, ThresholdClassifier
from userdp.mechanisms import PurePrivateMode
from userdp.optimal import OptimalSelection, optimality_gap


class Row(NamedTuple):
    """An algorithm in a world: its worst loss, what none is below, and the certified factor."""

    algorithm: str
    world: str
    epsilon: str
    value: float
    bound: float
    ratio: float


def mistakes(labels: Callable[[int, int], bool], hypotheses: int) -> Callable[[Any, int], int]:
    """The loss of a hypothesis: how many more rows it gets wrong than the best one."""

    def loss(dataset: Any, chosen: int) -> int:
        rows = [row for user in dataset for row in user]
        wrong = [sum(labels(h, x) != y for x, y in rows) for h in range(hypotheses)]
        return wrong[chosen] - min(wrong)

    return loss


def threshold(t: int, x: int) -> bool:
    """Whether a point is above a threshold."""
    return x > t


def learners() -> Iterator[tuple[str, Any, Callable[[Any, int], int], int, int, int]]:
    """Name, learner, loss, points, users, rows of each."""
    for points, users, m in ((2, 4, 1), (2, 6, 1), (3, 4, 1)):
        loss, known = mistakes(threshold, points + 1), {"epsilon": 1, "m": m}
        yield "ThresholdClassifier", ThresholdClassifier(domain_size=points, **known), loss, points, users, m
        for name, kind, more in (
            ("RealizablePACClassifier", RealizablePACClassifier, {}),
            ("AgnosticPACClassifier", AgnosticPACClassifier, {"method": "score"}),
            ("AgnosticPACClassifier", AgnosticPACClassifier, {"method": "pairwise"}),
        ):
            shown = f"{name}({more['method']})" if more else name
            yield shown, kind(concepts=Thresholds(points), **known, **more), loss, points, users, m


def of_learners() -> Iterator[Row]:
    """Worst excess errors on all datasets; for candidate distributions, how many more users the winner has."""
    for name, learner, loss, points, users, m in learners():
        universe = [(x, y) for x in range(1, points + 1) for y in (0, 1)]
        found = optimality_gap(
            as_finite_algorithm(learner, n_users=users),
            loss,
            universe=universe,
            n_users=users,
            n_examples=m,
            epsilon=1,
        )
        rows = f"{users} users" if m == 1 else f"{users} users of {m} rows"
        yield Row(name, f"thresholds on {points} points, {rows}", "1", *numbers(found))
    concepts = PointFunctions(3)
    hypotheses = concepts.size
    learner = AgnosticPACClassifier(epsilon=1, concepts=concepts, m=1)
    found = optimality_gap(
        as_finite_algorithm(learner, n_users=4),
        mistakes(lambda h, x: x == h, hypotheses),
        universe=[(x, y) for x in range(1, 4) for y in (0, 1)],
        n_users=4,
        epsilon=1,
    )
    yield Row("AgnosticPACClassifier", "functions of one point of 3, 4 users", "1", *numbers(found))

    def regret(dataset: Any, chosen: int) -> int:
        items = [user[0] for user in dataset]
        return max(map(items.count, items)) - items.count(chosen)

    selector = HypothesisSelector(epsilon=1, candidates=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], m=1)
    found = optimality_gap(as_finite_algorithm(selector, n_users=6), regret, universe=range(3), n_users=6, epsilon=1)
    yield Row("HypothesisSelector", "3 point masses, 6 users", "1", *numbers(found))


def numbers(found: Any) -> tuple[float, float, float]:
    """Loss, bound and factor."""
    return float(found.value), float(found.lower_bound), found.ratio


def selections() -> dict[str, Any]:
    """Shipped selections by score: from an epsilon and counts to a distribution over the items."""

    def mode(epsilon: Any, counts: list[int]) -> list[Fraction]:
        made = PurePrivateMode(epsilon=epsilon, n_items=len(counts))
        return made.pmf({item: count for item, count in enumerate(counts) if count}).fractions()

    def exponential(epsilon: Any, counts: list[int]) -> list[Fraction]:
        made = mechanisms.ExponentialMechanism(epsilon=epsilon, sensitivity=1, maximize=True)
        return made.pmf(np.array(counts, dtype=np.int64)).fractions()

    found = {"PurePrivateMode": mode, "ExponentialMechanism": exponential}
    if hasattr(mechanisms, "PermuteAndFlip"):

        def flips(epsilon: Any, counts: list[int]) -> list[Fraction]:
            made = mechanisms.PermuteAndFlip(epsilon=epsilon, sensitivity=1, maximize=True)
            return made.pmf(np.array(counts, dtype=np.int64)).fractions()

        found["PermuteAndFlip"] = flips
    return found


def of_selections() -> Iterator[Row]:
    """Worst regrets over all counts."""
    for users, items, epsilon in (
        (7, 2, "1"),
        (30, 3, "1/2"),
        (30, 3, "1"),
        (30, 3, "2"),
        (15, 4, "1"),
        (40, 4, "1"),
        (20, 5, "1"),
        (14, 7, "1"),
    ):
        best = OptimalSelection(n_items=items, n_users=users, epsilon=epsilon)
        bound = best.lower_bound
        for name, pmf in selections().items():
            worst = Fraction(0)
            for state in best._world.states:
                counts = [*state, *[0] * (items - len(state))]
                masses = pmf(epsilon, counts)
                worst = max(worst, sum(m * (counts[0] - c) for m, c in zip(masses, counts, strict=True)))
            yield Row(name, f"{items} items, {users} users", epsilon, float(worst), float(bound), float(worst / bound))


def draw(rows: list[Row], path: str) -> None:
    """A bar for each algorithm and world: how many times the best loss."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "userdp"
    figure, axes = plt.subplots(figsize=(9, 0.28 * len(rows) + 1))
    labels = [f"{row.algorithm}: {row.world}, ε = {row.epsilon}" for row in rows]
    names = sorted({row.algorithm for row in rows})
    colors = [plt.get_cmap("tab10")(names.index(row.algorithm)) for row in rows]
    places = range(len(rows), 0, -1)
    axes.barh(list(places), [row.ratio for row in rows], color=colors)
    axes.set_yticks(list(places), labels, fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("worst loss, in times the certified least worst loss")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


PAGE = Path(__file__).resolve().parents[1] / "docs" / "optimal.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def main() -> None:
    """Print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table and the picture into docs")
    options = parser.parse_args()
    rows, lines = (
        [],
        ["| algorithm | world | ε | worst loss | none is below | certified ratio |", "|---|---|--:|--:|--:|--:|"],
    )
    print("\n".join(lines))
    for source in (of_selections, of_learners):
        for row in source():
            rows.append(row)
            shown = f"{row.value:.4f} | {row.bound:.4f} | {row.ratio:.3f}"
            lines.append(f"| `{row.algorithm}` | {row.world} | {row.epsilon} | {shown} |")
            print(lines[-1], flush=True)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:before] + "\n" + "\n".join(lines) + "\n\n" + page[after:], encoding="utf-8")
        draw(rows, str(PAGE.parent / "images" / "optimal_gaps.svg"))


if __name__ == "__main__":
    main()
