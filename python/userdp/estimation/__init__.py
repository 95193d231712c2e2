"""Means and distributions of people's examples, learned with privacy for users.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, groups=user_ids)``. Those of distributions
select from finite covers with pure privacy, after GKKMMZ23, and are within alpha of the truth in total variation.
Means are after LSAKKMS21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp._optional import loader

if TYPE_CHECKING:
    from userdp.estimation._discrete import DiscreteDistribution
    from userdp.estimation._gaussian import GaussianMean
    from userdp.estimation._gaussian_distribution import GaussianDistribution
    from userdp.estimation._mean import WinsorizedMean
    from userdp.estimation._product import ProductDistribution
    from userdp.estimation._queries import WinsorizedQueries
    from userdp.estimation._radii import concentration_radius

__all__ = [
    "DiscreteDistribution",
    "GaussianDistribution",
    "GaussianMean",
    "ProductDistribution",
    "WinsorizedMean",
    "WinsorizedQueries",
    "concentration_radius",
]

_ESTIMATORS = {
    "DiscreteDistribution": "_discrete",
    "GaussianDistribution": "_gaussian_distribution",
    "GaussianMean": "_gaussian",
    "ProductDistribution": "_product",
    "WinsorizedMean": "_mean",
    "WinsorizedQueries": "_queries",
    "concentration_radius": "_radii",
}
"""Which module has which name."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
