"""Distributions of people's examples, learned with pure privacy for users.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, groups=user_ids)``. They select from finite
covers of families of distributions, after GKKMMZ23, and are within alpha of the truth in total variation.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from userdp.estimation._discrete import DiscreteDistribution
    from userdp.estimation._gaussian import GaussianMean
    from userdp.estimation._gaussian_distribution import GaussianDistribution
    from userdp.estimation._product import ProductDistribution

__all__ = ["DiscreteDistribution", "GaussianDistribution", "GaussianMean", "ProductDistribution"]

_ESTIMATORS = {
    "DiscreteDistribution": "_discrete",
    "GaussianDistribution": "_gaussian_distribution",
    "GaussianMean": "_gaussian",
    "ProductDistribution": "_product",
}
"""Which module has which estimator."""


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_ESTIMATORS[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "sklearn":
            raise
        raise ImportError(f"userdp.estimation.{name} needs scikit-learn: pip install 'userdp[learn]'") from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
