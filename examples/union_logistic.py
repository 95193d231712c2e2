"""Union membership by logistic regression, private for each of 545 men with all of his eight years.

The wage panel of Vella and Verbeek (1998). `UserLevelLogisticRegression` clips one gradient per man, not per row, so
more years make a man's gradient more certain and cost no budget. The table has its solvers beside each other, and
beside the same descent with a budget for rows that is eight times smaller (group privacy).

Run with ``python examples/union_logistic.py``; it needs ``pip install 'userdp[demo,learn]'``, and for
``--plot union.png`` also ``userdp[plot]``. Only what a single fit releases is private. Losses on the panel, averages
over fits and comparisons are there to explain; showing them for private data would cost a budget of its own.

With 545 men and an answer that is no three times in four there is little to learn, and the losses say so. They say too
what a wrong promise costs: men differ, their years repeat each other, and a solver that takes eight years for eight
independent rows clips too much: then group privacy may do as well.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from userdp.accounting import group_privacy
from userdp.datasets import load_wage_panel
from userdp.optimization import UserLevelLogisticRegression

YEARS = (1, 2, 4, 8)
EPSILONS = (1, 4)
DELTA = 1e-5
REPEATS = 10
SOLVERS = ("clipped", "winsorized", "phased")
# Who is in a union this year mostly is in the next: eight years of a man say about as much as two of independent rows.
# That is common knowledge, and `m` is a public promise about it; privacy does not depend on it.
AS_GOOD_AS = 2
# Public ranges, which nobody looked up in the data: years of a working life, years that schools offer, and yes or no.
FEATURES = {"exper": (0, 40), "educ": (0, 20), "black": (0, 1), "hisp": (0, 1), "married": (0, 1)}
BOUNDS = (np.array([low for low, _ in FEATURES.values()]), np.array([high for _, high in FEATURES.values()]))

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def panel(years: int) -> tuple[Floats, Integers, Integers]:
    """The last years of everybody: features, whether a union sets the wage, and who each row is about."""
    wages = load_wage_panel()
    columns = [wages.column(name)[:, -years:].ravel() for name in FEATURES]
    union = wages.column("union")[:, -years:].ravel().astype(np.int64)
    return np.column_stack(columns).astype(float), union, np.repeat(np.array(wages.person_ids), years)


def loss(intercept: float, coefficients: Floats, X: Floats, y: Integers) -> float:
    """The mean logistic loss of all rows."""
    predictions = X @ coefficients + intercept
    return float(np.mean(np.logaddexp(0, predictions) - y * predictions))


def private_loss(epsilon: float, delta: float, years: int, solver: str, m: int, groups: bool = True) -> list[float]:
    """Losses on all eight years of private fits to the last so many, which are taken to say as much as m rows."""
    X, y, people = panel(years)
    everything, answers, _ = panel(YEARS[-1])
    model = UserLevelLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        feature_bounds=BOUNDS,
        classes=(0, 1),
        solver=solver,
        m=m,
        require_groups=groups,
    )
    found = []
    for _ in range(REPEATS):
        model.fit(X, y, groups=people if groups else None)
        found.append(loss(float(model.intercept_[0]), model.coef_[0], everything, answers))
    return found


def by_group_privacy(epsilon: float, years: int) -> list[float]:
    """The same descent, private for rows, with a budget that protects all rows of a man together."""
    delta = DELTA / years / np.exp(epsilon)
    assert float(group_privacy(epsilon / years, delta, years).delta) <= DELTA
    return private_loss(epsilon / years, delta, years, "clipped", 1, groups=False)


def without_privacy() -> float:
    """The loss of the best linear rule."""
    X, y, _ = panel(YEARS[-1])
    model = LogisticRegression(C=np.inf, max_iter=10_000).fit((X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]), y)
    coefficients = model.coef_[0] / (BOUNDS[1] - BOUNDS[0])
    return loss(float(model.intercept_[0] - coefficients @ BOUNDS[0]), coefficients, X, y)


def ways(epsilon: float, years: int) -> dict[str, list[float]]:
    """Losses of all solvers, of the first with a better m, and by group privacy."""
    found = {solver: private_loss(epsilon, DELTA, years, solver, years) for solver in SOLVERS}
    few = min(years, AS_GOOD_AS)
    return {
        **found,
        f"clipped, m <= {AS_GOOD_AS}": private_loss(epsilon, DELTA, years, "clipped", few),
        "group privacy": by_group_privacy(epsilon, years),
    }


def table(years: Sequence[int], best: float) -> None:
    """Excess losses."""
    print(f"Loss above the best linear rule's, x 1000: mean of {REPEATS} fits and its standard error")
    for number, (epsilon, m) in enumerate(product(EPSILONS, years)):
        found = ways(epsilon, m)
        if not number:
            print(f"{'epsilon':>7} {'years':>6} " + " ".join(f"{name:>15}" for name in found))
        cells = [
            f"{1000 * (np.mean(losses) - best):.1f} ({1000 * np.std(losses, ddof=1) / np.sqrt(len(losses)):.1f})"
            for losses in found.values()
        ]
        print(f"{epsilon:>7} {m:>6} " + " ".join(f"{cell:>15}" for cell in cells))


def plot(path: str) -> None:
    """Excess loss against the number of years of each man."""
    import matplotlib.pyplot as plt

    best = without_privacy()
    figure, axes = plt.subplots(1, len(EPSILONS), figsize=(9, 4), layout="constrained", sharey=True)
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        found = [ways(epsilon, m) for m in YEARS]
        for name in found[0]:
            ax.plot(YEARS, [np.mean(losses[name]) - best for losses in found], "o-", label=name)
        ax.set(title=f"epsilon = {epsilon}", xlabel="years of each man", ylabel="loss above the best", yscale="log")
        ax.legend()
    figure.savefig(path)
    print(f"Wrote {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, one release, and the plot when it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE", help="draw loss against years into this file")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # that more men would be better
    X, y, people = panel(8)
    best, rate = without_privacy(), float(y.mean())
    always = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    print(f"{len(y)} rows of {len(set(people.tolist()))} men")
    print(f"Loss of the best linear rule {best:.4f}, of the best constant {always:.4f}\n")
    table((1, 8), best)
    model = UserLevelLogisticRegression(epsilon=4, delta=DELTA, feature_bounds=BOUNDS, classes=(0, 1), m=8)
    model.fit(X, y, groups=people)
    coefficients = ", ".join(f"{name} {value:.3f}" for name, value in zip(FEATURES, model.coef_[0], strict=True))
    print(f"One release at epsilon = 4: {coefficients}; private for each man: {model.is_private_}")
    if asked.plot:
        plot(asked.plot)


if __name__ == "__main__":
    main()
