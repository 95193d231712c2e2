"""Distributions of users' examples, learned with pure privacy for users.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, groups=user_ids)``. They select from
finite covers, after GKKMMZ23, and are within alpha of the truth in total variation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.distributions.discrete import DiscreteDistribution, ProductDistribution
    from userdp.distributions.gaussian import GaussianDistribution, GaussianMean

__all__ = [
    "DiscreteDistribution",
    "GaussianDistribution",
    "GaussianMean",
    "ProductDistribution",
]

_MODULES = {
    "DiscreteDistribution": "discrete",
    "GaussianDistribution": "gaussian",
    "GaussianMean": "gaussian",
    "ProductDistribution": "discrete",
}
"""Which module has which name."""

__getattr__ = loader(__name__, _MODULES, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
