"""Every learner and estimator, small; as a program, what each says of pmfs that are too large to list."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from support.frozen_cases import SEED, classifiers, flipping
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.estimators.base import UserLevelMechanism
from userdp.learners import ClippedPairwiseEM, HypothesisSelector
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.optimization import (
    ClippedGradientDescent,
    FiniteMinimizer,
    L2Ball,
    PhasedERM,
    SquaredLoss,
    UserLevelLinearRegression,
    WinsorizedGradientDescent,
)

LABELS = [0, 1, 0, 0, 1, 1, 1, 0]


def estimators() -> dict[str, UserLevelMechanism]:
    """Every learner and estimator, with one column of X."""
    ball = L2Ball(2.0)
    return {
        **classifiers(),
        **{name: flipping()[name] for name in ("threshold, flips", "agnostic totals")},
        "pairwise selector": ClippedPairwiseEM(epsilon=1, psi=[[[0] * 3, [1, -1, 0]], [[-1, 1, 0], [0] * 3]], m=8),
        "selector": HypothesisSelector(epsilon=1, candidates=[[0.5, 0.5], [0.9, 0.1]], m=8),
        "discrete": DiscreteDistribution(epsilon=2, n_symbols=3, m=8, alpha=0.4),
        "product": ProductDistribution(epsilon=2, n_symbols=3, n_columns=1, m=8, alpha=0.5),
        "gaussian mean": GaussianMean(epsilon=1, mean_bound=10, n_columns=1, m=8),
        "gaussian": GaussianDistribution(epsilon=4, mean_bound=2, kappa=3, n_columns=1, m=8, alpha=0.5),
        "mean": WinsorizedMean(epsilon=4, delta="1e-3", max_norm=1, m=8, public_seed=SEED),
        "mean, laplace": WinsorizedMean(epsilon=4, max_norm=1, m=8, method="laplace"),
        "queries": WinsorizedQueries(epsilon=2, n_queries=1, dimension=1, max_norm=2, m=8),
        "clipped": ClippedGradientDescent(
            epsilon=4,
            delta=1e-3,
            loss=SquaredLoss(),
            constraint=ball,
            max_norm=2.0,
            m=8,
            target_bounds=(-1, 1),
        ),
        "winsorized": WinsorizedGradientDescent(
            epsilon=4,
            delta=1e-3,
            loss=SquaredLoss(),
            constraint=ball,
            max_norm=2.0,
            m=8,
            public_seed=SEED,
            target_bounds=(-1, 1),
        ),
        "phased": PhasedERM(
            epsilon=4,
            delta=1e-3,
            loss=SquaredLoss(),
            constraint=ball,
            m=8,
            max_iterations=5,
            public_seed=SEED,
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
        "finite": FiniteMinimizer(epsilon=2, m=8, alpha=0.3, loss_bounds=(0, 1)),
        "linear": UserLevelLinearRegression(
            epsilon=4, delta=1e-3, max_feature_norm=10, target_bounds=(0, 1), m=8, public_seed=SEED
        ),
    }


def labels_for(learner: UserLevelMechanism) -> list[int] | None:
    return LABELS if hasattr(learner, "classes") or hasattr(learner, "target_bounds") else None


NAMES = ("mean, laplace", "queries", "clipped", "winsorized", "phased", "finite", "linear")
N_USERS, M = 200, 2


def asked(made: Any, columns: int) -> str:
    """The error, or how many outputs there are."""
    X = np.random.default_rng(0).integers(1, 4, size=(N_USERS * M, columns))
    given: dict[str, Any] = {"groups": np.repeat(np.arange(N_USERS), M)}
    if isinstance(made, WinsorizedQueries):
        given["analyst"] = lambda answers: lambda rows: rows.mean(axis=0)[:1]
    try:
        return f"{len(made.output_distribution(X, labels_for(made) and X[:, 0] % 2, **given).outputs)} outputs"
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    warnings.simplefilter("ignore")
    for name in NAMES:
        for columns in (1, 30):
            made = estimators()[name]
            parameters = made.get_params()
            made.set_params(**{key: None for key in ("n_features", "random_state") if key in parameters})
            print(f"{name}, {columns}: {asked(made, columns)}", flush=True)
