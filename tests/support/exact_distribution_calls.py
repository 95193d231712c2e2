"""Asks estimators for exact distributions that are too large, with 8 GiB of addresses, and prints what comes."""

from __future__ import annotations

import resource
import warnings
from typing import Any

import numpy as np

from support.every_estimator import estimators, labels_for
from userdp.means import WinsorizedQueries

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
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    warnings.simplefilter("ignore")
    for name in NAMES:
        for columns in (1, 30):
            made = estimators()[name]
            parameters = made.get_params()
            made.set_params(**{key: None for key in ("n_features", "random_state") if key in parameters})
            print(f"{name}, {columns}: {asked(made, columns)}", flush=True)
