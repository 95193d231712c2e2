"""Decision lists from users' own rows: one vote of each, and one common list.

A hundred users each have a thousand rows of ten yes-no features. What the label is follows a list of three rules,
which nobody knows. There are more than 10^17 lists that could be meant, so nobody can count votes for each; but users
who run the same statistical-query algorithm, with the same public offsets, mostly end with the same one, and that one
can be selected with (1, 10^-6)-DP for every user and all of their rows at once.

Run with ``python examples/decision_lists.py``; it needs scikit-learn: ``pip install 'userdp[learn]'``. Every number
that is printed is computed. Only what `fit` keeps is private; the agreement is measured on synthetic data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from userdp.learners import StatisticalQueryClassifier
from userdp.mechanisms import ApproximatePrivateMode
from userdp.public_randomness import PublicSeed
from userdp.stability import DecisionListQueries, StatisticalQueryLearner, measure_agreement

PEOPLE, ROWS, FEATURES = 100, 1000, 10
EPSILON, DELTA = 1, "1e-6"


def sample(rng: np.random.Generator, rows: int) -> tuple[Any, Any]:
    """If x7 then 0, else if not x2 then 1, else x5."""
    X = rng.integers(0, 2, size=(rows, FEATURES))
    return X, np.where(X[:, 7] == 1, 0, np.where(X[:, 2] == 0, 1, X[:, 5]))


def main() -> None:
    """The story, in the order in which somebody would meet it."""
    # The seed is drawn and published before anybody looks at data.
    seed = PublicSeed.random()
    lists = DecisionListQueries(FEATURES, alpha=0.1, length=3, tolerance=0.02)
    print(f"{2.0**lists.hypothesis_bits:.0e} possible lists; at most {lists.max_queries} queries of each user.")

    agreement = measure_agreement(StatisticalQueryLearner(lists), sample, m=ROWS, trials=300)
    print(f"Two users with {ROWS} rows agreed in {agreement.agreed} of {agreement.trials} pairs.")
    selection = ApproximatePrivateMode(epsilon=EPSILON, delta=DELTA)
    print(f"If 9 in 10 have the common list, {selection.users_needed(agreement='0.9', beta='0.1')} users are enough.")

    X, y = sample(np.random.default_rng(), PEOPLE * ROWS)
    ids = np.repeat(np.arange(PEOPLE), ROWS)
    model = StatisticalQueryClassifier(
        epsilon=EPSILON, delta=DELTA, algorithm=lists, m=ROWS, public_seed=seed, classes=(0, 1)
    )
    model.fit(X, y, groups=ids)
    print(f"\n{PEOPLE} users voted, and what was selected is:\n  {model.describe()}")
    X, y = sample(np.random.default_rng(), 10_000)
    print(f"It is right on {np.mean(model.predict(X) == y):.1%} of fresh rows.")
    print(f"Spent: epsilon = {float(model.privacy_.epsilon)}, delta = {float(model.privacy_.delta)}, for whole users.")


if __name__ == "__main__":
    main()
