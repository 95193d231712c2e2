"""Predict union membership from schooling and experience, private for each of 545 men with all of his eight years.

The wage panel of Vella and Verbeek (1998): in every year from 1980 to 1987 each man says whether a union sets his wage.
Private learners choose a rule: a threshold on years of experience or of schooling, and a decision stump on either. Half
of the men are for learning, the others for measuring how good the rules are. Three quarters of the answers are no, and
no such rule does better than "nobody is a member", private or not. So there is a second question to which schooling and
experience have something to say: whether a man earns more than five dollars an hour.

Run with ``python examples/union_membership.py``; it needs ``pip install 'userdp[demo,learn]'``. Only what a single fit
releases is private. The averages over many fits and all comparisons with the best rule are there to explain; showing
them for private data would cost a budget of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts import DecisionStumps
from userdp.datasets import load_wage_panel
from userdp.learners import AgnosticPACClassifier, ThresholdClassifier

YEARS = 8
EPSILONS = (1, 4)
REPEATS = 30
QUESTIONS = ("member of a union", "above 5 dollars an hour")
# Public ranges, which nobody looked up in the data: a working life, and the years that schools offer.
EXPERIENCE = range(0, 50)
SCHOOLING = range(0, 25)

Arrays = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def people(question: str, first: int) -> Arrays:
    """Every other man: his years as rows (experience, schooling), his answers, and who he is."""
    panel = load_wage_panel()
    columns = [panel.column(name)[first::2].ravel() for name in ("exper", "educ")]
    answers = panel.column("union") if question == "member of a union" else panel.column("lwage") > np.log(5)
    ids = np.repeat(np.array(panel.person_ids[first::2]), YEARS)
    return np.column_stack(columns).astype(float), answers[first::2].ravel().astype(np.int64), ids


def learners(epsilon: float) -> Iterator[tuple[str, Any]]:
    """What can be fitted: the budget is for a man, the eight rows of a man count."""
    yield (
        "threshold on experience",
        ThresholdClassifier(epsilon=epsilon, domain_size=EXPERIENCE[-1], m=YEARS, classes=(0, 1)),
    )
    yield (
        "threshold on schooling",
        ThresholdClassifier(epsilon=epsilon, domain_size=SCHOOLING[-1], m=YEARS, feature=1, classes=(0, 1)),
    )
    stumps = DecisionStumps(thresholds=[EXPERIENCE, SCHOOLING])
    yield "stump on either", AgnosticPACClassifier(epsilon=epsilon, concepts=stumps, m=YEARS, classes=(0, 1))


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


def compare(question: str) -> None:
    """One table: private fits beside the best rule and beside the more frequent answer."""
    learning, measuring = people(question, 0), people(question, 1)
    X, y, ids = learning
    often = int(2 * y.sum() > len(y))
    print(
        f"\n{question}: {len(set(ids))} men to learn from, {len(set(measuring[2]))} to measure on, {YEARS} years each"
    )
    print(f"always {'yes' if often else 'no'}: accuracy {np.mean(measuring[1] == often):.3f}")
    best = {
        "threshold on experience": best_accuracy(learning, measuring, {0: EXPERIENCE}, (True,)),
        "threshold on schooling": best_accuracy(learning, measuring, {1: SCHOOLING}, (True,)),
        "stump on either": best_accuracy(learning, measuring, {0: EXPERIENCE, 1: SCHOOLING}, (True, False)),
    }
    print(f"{'learner':<24} {'epsilon':>7}  accuracy: mean of {REPEATS} fits, least, most  without privacy")
    for epsilon in EPSILONS:
        for name, learner in learners(epsilon):
            fits = [learner.fit(X, y, groups=ids).score(*measuring[:2]) for _ in range(REPEATS)]
            print(
                f"{name:<24} {epsilon:>7}  {np.mean(fits):>10.3f} {min(fits):.3f} {max(fits):.3f} {best[name]:>28.3f}"
            )


def main() -> None:
    """Both tables, and one release."""
    for question in QUESTIONS:
        compare(question)
    X, y, ids = people(QUESTIONS[1], 0)
    released = ThresholdClassifier(epsilon=1, domain_size=SCHOOLING[-1], m=YEARS, feature=1, classes=(0, 1)).fit(
        X, y, groups=ids
    )
    print(f"\nOne release at epsilon = 1: {QUESTIONS[1]} if schooling > {released.threshold_} years")
    print(f"Spent: {', '.join(f'{float(part):g} on {what}' for what, part in released.privacy_.budget.items())}")


if __name__ == "__main__":
    main()
