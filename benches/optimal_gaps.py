"""How far shipped algorithms are from the best that privacy allows, certified: the table of docs/optimal.md.

Every choice by scores is measured by the exponential mechanism and by permute-and-flip, in one run.
``python benches/optimal_gaps.py`` prints the table as Markdown, and ``--write`` puts it and the picture into docs. It
needs the extras learn and optimal, and plot for the picture, and takes about a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from userdp import SymmetricAlgorithm, mechanisms
from userdp.concepts import PointFunctions, Thresholds
from userdp.estimators import as_finite_algorithm
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    CorrelatedSamplingClassifier,
    HypothesisSelector,
    PrivateMedian,
    RealizablePACClassifier,
    StatisticalQueryClassifier,
    ThresholdClassifier,
)
from userdp.mechanisms import PurePrivateMode
from userdp.optimal import OptimalSelection, optimality_gap
from userdp.stability import DecisionListQueries

MECHANISMS = ("exponential", "permute-and-flip")
SEED = bytes(32)
Loss = Callable[[Any, Any], int]


class Row(NamedTuple):
    """An algorithm in a world: what none is below, and its worst loss by each mechanism, if it can be drawn by it."""

    algorithm: str
    world: str
    epsilon: str
    bound: float
    exponential: float
    flips: float | None

    def line(self) -> str:
        """As Markdown."""
        cells = [f"`{self.algorithm}`", self.world, self.epsilon, f"{self.bound:.4f}"]
        for value in (self.exponential, self.flips):
            cells += ["–", "–"] if value is None else [f"{value:.4f}", f"{value / self.bound:.3f}"]
        return f"| {' | '.join(cells)} |"


class World(NamedTuple):
    """A world of users with so many rows each, and what an output loses on a dataset."""

    name: str
    universe: list[Any]
    n_users: int
    m: int
    loss: Loss

    def found(self, algorithm: Any) -> tuple[float, float]:
        """What none is below, and the algorithm's worst loss, at epsilon = 1."""
        gap = optimality_gap(
            algorithm, self.loss, universe=self.universe, n_users=self.n_users, n_examples=self.m, epsilon=1
        )
        return float(gap.lower_bound), float(gap.value)

    def row(self, name: str, learner: Callable[[str], Any]) -> Row:
        """Of a learner that is made for each mechanism."""
        both = [self.found(as_finite_algorithm(learner(mechanism), n_users=self.n_users)) for mechanism in MECHANISMS]
        return Row(name, self.name, "1", both[0][0], both[0][1], both[1][1])

    def only(self, name: str, algorithm: Any) -> Row:
        """Of an algorithm that has no choice of mechanism."""
        return Row(name, self.name, "1", *self.found(algorithm), None)


def of_users(n_users: int, m: int) -> str:
    """Users and rows in words."""
    return f"{n_users} users" if m == 1 else f"{n_users} users of {m} rows"


def mistakes(labels: Callable[[Any, int], bool], hypotheses: list[Any]) -> Loss:
    """The loss of a hypothesis: how many more rows it gets wrong than the best one."""

    @cache
    def wrong(dataset: Any) -> dict[Any, int]:
        rows = [row for user in dataset for row in user]
        return {h: sum(labels(h, x) != y for x, y in rows) for h in hypotheses}

    return lambda dataset, chosen: wrong(dataset)[chosen] - min(wrong(dataset).values())


def threshold(t: int, x: int) -> bool:
    """Whether a point is above a threshold."""
    return x > t


def regret(dataset: Any, chosen: int) -> int:
    """How many more rows have the most frequent item than the chosen one."""
    items = [row for user in dataset for row in user]
    return max(map(items.count, items)) - items.count(chosen)


def of_thresholds() -> Iterator[Row]:
    """Worst excess errors on all datasets, for thresholds."""
    for points, users, m in ((2, 4, 1), (2, 6, 1), (3, 4, 1), (2, 3, 2)):
        world = World(
            f"thresholds on {points} points, {of_users(users, m)}",
            [(x, y) for x in range(1, points + 1) for y in (0, 1)],
            users,
            m,
            mistakes(threshold, list(range(points + 1))),
        )

        def made(kind: Any, mechanism: str, m: int = m, points: int = points, **more: Any) -> Any:
            domain = {"domain_size": points} if kind is ThresholdClassifier else {"concepts": Thresholds(points)}
            return kind(epsilon=1, m=m, mechanism=mechanism, **domain, **more)

        yield world.row("ThresholdClassifier", partial(made, ThresholdClassifier))
        yield world.row("RealizablePACClassifier", partial(made, RealizablePACClassifier))
        yield world.row("AgnosticPACClassifier(score)", partial(made, AgnosticPACClassifier))
        pairs = partial(made, AgnosticPACClassifier, method="pairwise")
        yield world.row("AgnosticPACClassifier(pairwise)", pairs)
        yield world.row(f"AgnosticPACClassifier(pairwise, tau={m})", partial(pairs, tau=m))


def of_other_classes() -> Iterator[Row]:
    """Worst excess errors of learners of functions of a point, and of learners by agreement."""
    concepts = PointFunctions(3)
    functions = World(
        "functions of one point of 3, 4 users",
        [(x, y) for x in range(1, 4) for y in (0, 1)],
        4,
        1,
        mistakes(lambda h, x: x == h, list(range(concepts.size))),
    )
    for method in ("score", "pairwise"):
        yield functions.row(
            f"AgnosticPACClassifier({method})",
            lambda mechanism, method=method: AgnosticPACClassifier(
                epsilon=1, concepts=concepts, m=1, method=method, mechanism=mechanism
            ),
        )
    voting = CorrelatedSamplingClassifier(
        epsilon=1, concepts=Thresholds(2), model="central-pure", public_seed=SEED, gamma=30, m=1
    )
    thresholds = World(
        "thresholds on 2 points, 4 users",
        [(x, y) for x in (1, 2) for y in (0, 1)],
        4,
        1,
        mistakes(threshold, [0, 1, 2]),
    )
    yield thresholds.only(
        "CorrelatedSamplingClassifier(central-pure)", renamed(voting, {t: t for t in range(3)}, first=0)
    )
    queries = DecisionListQueries(1, alpha=0.3, length=1, tolerance=0.1)
    lists = StatisticalQueryClassifier(epsilon=1, algorithm=queries, model="central-pure", public_seed=SEED, m=1)
    columns = np.array([[0], [1]])
    codes = [number.to_bytes(1, "big") for number in range(2**queries.hypothesis_bits)]
    said = {code: tuple(map(int, queries.predict(queries.decode(code), columns))) for code in codes}
    functions_of_a_bit = [(a, b) for a in (0, 1) for b in (0, 1)]
    bits = World(
        "decision lists on 1 bit, 4 users",
        [(x, y) for x in (0, 1) for y in (0, 1)],
        4,
        1,
        mistakes(lambda h, x: bool(h[x]), functions_of_a_bit),
    )
    yield bits.only("StatisticalQueryClassifier(central-pure)", renamed(lists, said, first=(0, 0)))


def renamed(learner: Any, names: dict[Any, Any], first: Any) -> SymmetricAlgorithm:
    """A learner's fit with its outcomes by another name; what has none, and is never drawn, has the first one."""
    algorithm = as_finite_algorithm(learner, n_users=4)
    outputs = sorted({first, *names.values()})

    def distribution(dataset: Any) -> list[Fraction]:
        pmf = algorithm.pmf(dataset)
        masses = dict.fromkeys(outputs, Fraction(0))
        for outcome, mass in zip(pmf.outputs, pmf.fractions(), strict=True):
            masses[names.get(outcome, first)] += mass
        return list(masses.values())

    return SymmetricAlgorithm(tuple(outputs), distribution)


def of_selectors() -> Iterator[Row]:
    """How many more rows the winner has; for medians, how many more users are on the fuller side."""
    dice = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    # An example speaks against b and for a where it is a: psi[a, b].
    psi = [[[int(z == b) - int(z == a) for z in range(3)] for b in range(3)] for a in range(3)]
    for users, m in ((6, 1), (3, 2)):
        world = World(f"3 items, {of_users(users, m)}", list(range(3)), users, m, regret)
        if m == 1:
            yield world.row(
                "HypothesisSelector",
                lambda mechanism: HypothesisSelector(epsilon=1, candidates=dice, m=1, mechanism=mechanism),
            )
        yield world.row(
            "ClippedPairwiseEM",
            lambda mechanism, m=m: ClippedPairwiseEM(epsilon=1, psi=psi, m=m, mechanism=mechanism),
        )

    points = tuple(range(4))

    def beside(dataset: Any, u: int) -> int:
        rows = [row for user in dataset for row in user]
        return max(sum(x < u for x in rows), sum(x > u for x in rows))

    def excess(dataset: Any, u: int) -> int:
        return beside(dataset, u) - min(beside(dataset, v) for v in points)

    median = PrivateMedian(epsilon=1, m=1, domain_size=3)

    def distribution(dataset: Any) -> list[Fraction]:
        return median.pmf([user[0] for user in dataset], range(len(dataset))).fractions()

    for users in (4, 6):
        world = World(f"medians of 1, 2, 3; {users} users", [1, 2, 3], users, 1, excess)
        yield world.only("PrivateMedian", SymmetricAlgorithm(points, distribution))


def of_selections() -> Iterator[Row]:
    """Worst regrets over all counts."""

    def by_mode(mechanism: Any, epsilon: Any, counts: list[int]) -> list[Fraction]:
        made = PurePrivateMode(epsilon=epsilon, n_items=len(counts), mechanism=mechanism)
        return made.pmf({item: count for item, count in enumerate(counts) if count}).fractions()

    def by_scores(mechanism: str, epsilon: Any, counts: list[int]) -> list[Fraction]:
        kind = mechanisms.ExponentialMechanism if mechanism == "exponential" else mechanisms.PermuteAndFlip
        made = kind(epsilon=epsilon, sensitivity=1, maximize=True)
        return made.pmf(np.array(counts, dtype=np.int64)).fractions()

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
        for name, drawn in (("PurePrivateMode", by_mode), ("ExponentialMechanism, PermuteAndFlip", by_scores)):
            worst = dict.fromkeys(MECHANISMS, Fraction(0))
            for state in best._world.states:
                counts = [*state, *[0] * (items - len(state))]
                for mechanism in MECHANISMS:
                    masses = drawn(mechanism, epsilon, counts)
                    lost = sum(m * (counts[0] - c) for m, c in zip(masses, counts, strict=True))
                    worst[mechanism] = max(worst[mechanism], lost)
            bound = float(best.lower_bound)
            yield Row(name, f"{items} items, {users} users", epsilon, bound, *map(float, worst.values()))


def draw(rows: list[Row], path: str) -> None:
    """Two bars for each algorithm and world: how many times the best loss, by each mechanism."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "userdp"
    figure, axes = plt.subplots(figsize=(9, 0.3 * len(rows) + 1))
    places = np.arange(len(rows), 0, -1)
    old = [row.exponential / row.bound for row in rows]
    new = [(place, row.flips / row.bound) for place, row in zip(places, rows, strict=True) if row.flips is not None]
    axes.barh(places + 0.2, old, height=0.38, color="tab:orange", label="exponential mechanism")
    axes.barh(
        [place - 0.2 for place, _ in new],
        [ratio for _, ratio in new],
        height=0.38,
        color="tab:blue",
        label="permute-and-flip",
    )
    labels = [f"{row.algorithm}: {row.world}, ε = {row.epsilon}" for row in rows]
    axes.set_yticks(places, labels, fontsize=8)
    axes.set_ylim(0.2, len(rows) + 0.8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("worst loss, in times the certified least worst loss")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


PAGE = Path(__file__).resolve().parents[1] / "docs" / "optimal.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
HEAD = (
    "| algorithm | world | ε | none is below | exponential | ratio | permute-and-flip | ratio |",
    "|---|---|--:|--:|--:|--:|--:|--:|",
)


def main() -> None:
    """Print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table and the picture into docs")
    options = parser.parse_args()
    rows: list[Row] = []
    print("\n".join(HEAD))
    for source in (of_selections, of_thresholds, of_other_classes, of_selectors):
        for row in source():
            rows.append(row)
            print(row.line(), flush=True)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
        table = "\n".join([*HEAD, *(row.line() for row in rows)])
        PAGE.write_text(page[:before] + "\n" + table + "\n\n" + page[after:], encoding="utf-8")
        draw(rows, str(PAGE.parent / "images" / "optimal_gaps.svg"))


if __name__ == "__main__":
    main()
