"""Whatever a learner draws on the way loses at most epsilon, also with short and absent users."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from program_paths import worst_loss
from userdp.estimation import (
    DiscreteDistribution,
    GaussianDistribution,
    GaussianMean,
    ProductDistribution,
    _lines,
)
from userdp.learners import (
    AgnosticPACClassifier,
    FiniteClass,
    HypothesisSelector,
    PairwiseScoreSelector,
    RealizablePACClassifier,
    ThresholdClassifier,
    Thresholds,
)
from userdp.learners._program import Program

Dataset = tuple[tuple[Any, ...], ...]

LABELLED = [(1.0, 0), (1.0, 1), (2.0, 0), (2.0, 1)]
SYMBOLS = [(0.0,), (1.0,), (7.0,)]
NUMBERS = [(-3.0,), (0.2,), (np.inf,)]

# A learner, and what an example is.
LEARNERS: dict[str, tuple[Any, list[Any]]] = {
    "thresholds": (ThresholdClassifier(epsilon=1, domain_size=2, m=2), LABELLED),
    "thresholds, t is drawn": (ThresholdClassifier(epsilon=1, domain_size=2, m=5), LABELLED[:2]),
    "thresholds, median": (
        ThresholdClassifier(epsilon=1, domain_size=2, m=1, method="median", alpha=0.9),
        LABELLED,
    ),
    "realizable": (RealizablePACClassifier(epsilon=1, concepts=Thresholds(2), m=2, alpha=0.4), LABELLED),
    "score": (AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=2), LABELLED),
    "score, t is drawn": (AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=5), LABELLED[:2]),
    "clipped pairs": (AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=2, method="pairwise"), LABELLED),
    "surrogate": (
        AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=2, method="surrogate", alpha=0.9),
        LABELLED[:2],
    ),
    "surrogate, improper": (
        AgnosticPACClassifier(
            epsilon=1,
            concepts=FiniteClass([[0, 1, 1], [1, 0, 0]]),
            representation=FiniteClass([[0, 0, 1], [0, 0, 0]]),
            m=2,
            method="surrogate",
            alpha=0.9,
        ),
        LABELLED[1:3],
    ),
    "psi": (
        PairwiseScoreSelector(
            epsilon=1, m=2, psi=lambda a, b: [1 if z == a else -1 for z in range(2)], n_hypotheses=2, tau=2
        ),
        SYMBOLS,
    ),
    "hypotheses": (HypothesisSelector(epsilon=1, m=2, candidates=[[0.5, 0.5], [0.1, 0.9]]), SYMBOLS),
    "joint": (DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.9, method="joint"), SYMBOLS),
    "coarse-to-fine": (
        DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.3, method="coarse-to-fine"),
        SYMBOLS[:2],
    ),
    "symbols": (DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.9, method="symbols"), SYMBOLS),
    "columns": (
        ProductDistribution(epsilon=1, n_symbols=2, n_columns=2, m=1, alpha=0.95, method="coordinate"),
        [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
    ),
    "mean": (GaussianMean(epsilon=1, radius=1, m=2, alpha=0.9), NUMBERS),
    "mean in rounds": (GaussianMean(epsilon=1, radius=4, m=2, alpha=0.9), NUMBERS),
    "normal": (GaussianDistribution(epsilon=1, radius=0.5, kappa=1.5, m=2, alpha=0.9), NUMBERS),
}


def program_of(learner: Any, dataset: Dataset, example: tuple[Any, ...]) -> Program:
    """What fit runs on users who are all enrolled, whatever rows they have."""
    enrolled = clone(learner).set_params(enrolled=range(len(dataset)))
    enrolled._check_parameters()
    groups = np.array([user for user, rows in enumerate(dataset) for _ in rows], dtype=np.int64)
    rows = np.array([row for user in dataset for row in user], dtype=np.float64).reshape(len(groups), len(example))
    X, y = (rows[:, :1], rows[:, 1]) if hasattr(learner, "classes") else (rows, None)
    return enrolled._program(enrolled._read(X, y, groups))


def neighbours(universe: list[Any], m: int) -> Iterator[tuple[Dataset, Dataset]]:
    """Pairs of two users, of whom one has any rows, up to one more than m, or none, and the other all m or none."""
    lengths = range(m + 2) if m <= 2 else (0, 1, m)
    users = [rows for length in lengths for rows in combinations_with_replacement(universe, length)]
    others = [(row,) * length for row in universe for length in (0, m)]
    for other, (user, replacement) in product(dict.fromkeys(others), combinations_with_replacement(users, 2)):
        yield (user, other), (replacement, other)


LESS_NOISE = {"thresholds, median": 4}
"""How much less noise is planted: twice, but where not all draws lose at the same time."""


def loss(name: str, epsilon: float) -> float:
    learner, universe = LEARNERS[name]
    learner = clone(learner).set_params(epsilon=epsilon)
    return worst_loss(lambda dataset: program_of(learner, dataset, universe[0]), neighbours(universe, learner.m))


@pytest.mark.parametrize("name", LEARNERS)
def test_all_that_is_drawn_loses_epsilon_at_most(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lines, "FINE_POINTS", 4)
    monkeypatch.setattr(_lines, "COARSE_POINTS", 5)
    assert loss(name, 1) <= 1 + 1e-12
    # Less noise would be found.
    assert loss(name, LESS_NOISE.get(name, 2)) > 1 + 1e-9
