"""Predict union membership from schooling and experience, private for each of 545 men with all of his eight years.

The wage panel of Vella and Verbeek (1998): in every year from 1980 to 1987 each man says whether a union sets his wage.
Two private learners choose a rule: a threshold on years of experience, and a decision stump on experience or schooling.
Half of the men are for learning, the others for measuring how good the rules are.

Run with ``python examples/union_membership.py``; it needs ``pip install 'userdp[demo,learn]'``. Only what a single fit
releases is private. The averages over many fits and all comparisons with the best rule are there to explain; showing
them for private data would cost a budget of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.datasets import load_wage_panel
from userdp.learners import AgnosticPACClassifier, DecisionStumps, ThresholdClassifier

YEARS = 8
EPSILONS = (1, 4)
REPEATS = 30
# Public ranges, which nobody looked up in the data: a working life, and the years that schools offer.
EXPERIENCE = range(0, 50)
SCHOOLING = range(0, 25)

Arrays = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def people(first: int) -> Arrays:
    """Every other man: his years as rows (experience, schooling), his answers, and who he is."""
    panel = load_wage_panel()
    columns = [panel.column(name)[first::2].ravel() for name in ("exper", "educ")]
    ids = np.repeat(np.array(panel.person_ids[first::2]), YEARS)
    return np.column_stack(columns).astype(float), panel.column("union")[first::2].ravel(), ids


def learners(epsilon: float) -> Iterator[tuple[str, Any]]:
    """What can be fitted: the budget is for a man, the eight rows of a man count."""
    yield "threshold on experience", ThresholdClassifier(epsilon=epsilon, domain_size=EXPERIENCE[-1], m=YEARS)
    yield "threshold on schooling", ThresholdClassifier(epsilon=epsilon, domain_size=SCHOOLING[-1], m=YEARS, feature=1)
    stumps = DecisionStumps(thresholds=[EXPERIENCE, SCHOOLING])
    yield "stump on either", AgnosticPACClassifier(epsilon=epsilon, concepts=stumps, m=YEARS)


def best_accuracy(learning: Arrays, measuring: Arrays, columns: dict[int, range], signs: tuple[bool, ...]) -> float:
    """The accuracy of the rule with the fewest mistakes on the men for learning: no privacy at all."""
    candidates = [
        (np.mean(((learning[0][:, column] > cut) == sign) == learning[1]), column, cut, sign)
        for column, cuts in columns.items()
        for cut in cuts
        for sign in signs
    ]
    _, column, cut, sign = max(candidates)
    return float(np.mean(((measuring[0][:, column] > cut) == sign) == measuring[1]))


def main() -> None:
    """The table, and one release."""
    learning, measuring = people(0), people(1)
    X, y, ids = learning
    print(f"{len(set(ids))} men to learn from, {len(set(measuring[2]))} to measure on, {YEARS} years of each")
    print(f"predict that nobody is a member: accuracy {np.mean(measuring[1] == 0):.3f}")
    best = {
        "threshold on experience": best_accuracy(learning, measuring, {0: EXPERIENCE}, (True,)),
        "threshold on schooling": best_accuracy(learning, measuring, {1: SCHOOLING}, (True,)),
        "stump on either": best_accuracy(learning, measuring, {0: EXPERIENCE, 1: SCHOOLING}, (True, False)),
    }
    print(f"\n{'learner':<24} {'epsilon':>7}  accuracy (mean of {REPEATS} fits, least, most)  without privacy")
    for epsilon in EPSILONS:
        for name, learner in learners(epsilon):
            fits = [learner.fit(X, y, groups=ids).score(*measuring[:2]) for _ in range(REPEATS)]
            print(f"{name:<24} {epsilon:>7}  {np.mean(fits):.3f} {min(fits):.3f} {max(fits):.3f} {best[name]:>32.3f}")
    released = ThresholdClassifier(epsilon=1, domain_size=EXPERIENCE[-1], m=YEARS).fit(X, y, groups=ids)
    print(f"\nOne release at epsilon = 1: member if experience > {released.threshold_}")
    print(f"Spent: {', '.join(f'{float(part):g} on {what}' for what, part in released.privacy_.budget.items())}")


if __name__ == "__main__":
    main()
