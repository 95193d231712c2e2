"""A fit as a finite algorithm, for audits."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, clone

from userdp.algorithms import Dataset, FiniteAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.estimators.base import TargetEstimator, UserLevelEstimator
from userdp.estimators.plan import ReleasePlan
from userdp.exact.numbers import short_repr
from userdp.exact.pmf import Pmf


def as_finite_algorithm(
    estimator: UserLevelEstimator, *, n_users: int = 2, n_features: int | None = None, name: str | None = None
) -> FiniteAlgorithm:
    """An estimator's fit as a finite algorithm, for `userdp.audit`.

    Parameters
    ----------
    estimator : UserLevelEstimator
        Not fitted, or fitted: it is cloned. Its outcomes must be few enough to list.
    n_users : int
        How many users the datasets have: what can come out of means and descents depends on it.
    n_features : int, optional
        How many columns they have: by default what the estimator's parameters say, or 1.
    name : str, optional
        For reports.

    Returns
    -------
    FiniteAlgorithm
        On datasets of users, each a tuple of examples. An example is a pair (x, y) for a classifier or regressor, and x
        otherwise; x is a number or a tuple of numbers. Its pmf is `output_distribution`, and so the distribution that
        `fit` draws from. A `SymmetricAlgorithm`, unless the order of users counts, as it does where each reports
        another bit of a hypothesis.

    Raises
    ------
    TypeError, ValueError
        For bad parameters. The pmf refuses rows of another length than `n_features`, which a fit would read as missing.
    BudgetError
        When there are too many outcomes.

    Notes
    -----
    All users of a dataset are enrolled, those without examples too.

    Examples
    --------
    >>> from userdp.audit import audit_user_level
    >>> from userdp.learners import ThresholdClassifier
    >>> from userdp.estimators import as_finite_algorithm
    >>> learner = ThresholdClassifier(epsilon=1, domain_size=2, m=1)
    >>> report = audit_user_level(
    ...     as_finite_algorithm(learner),
    ...     universe=[(1, 0), (1, 1), (2, 0), (2, 1)],
    ...     n_users=2,
    ...     n_examples=1,
    ...     epsilon=1,
    ...     delta=0,
    ... )
    >>> report.holds
    True
    """
    columns = estimator.n_features or estimator._columns() or 1 if n_features is None else n_features
    plan = estimator.release_plan(n_users=n_users, n_features=columns)
    assert isinstance(plan, ReleasePlan), "a fit draws all at once"
    labeled = isinstance(estimator, (ClassifierMixin, TargetEstimator))

    def distribution(dataset: Dataset) -> Pmf:
        fitted = clone(estimator).set_params(enrolled=tuple(range(len(dataset))), n_features=columns)
        examples = [(user, example) for user, rows in enumerate(dataset) for example in rows]
        points = [example[0] if labeled else example for _, example in examples]
        X = [point if isinstance(point, tuple) else (point,) for point in points]
        if (odd := next((row for row in X if len(row) != columns), None)) is not None:
            raise ValueError(f"examples must have n_features={columns} numbers; got {short_repr(odd)}")
        y = [example[1] for _, example in examples] if labeled else None
        pmf: Pmf = fitted.output_distribution(X, y, groups=np.array([user for user, _ in examples], dtype=np.int64))
        return pmf

    distribution.__name__ = name or type(estimator).__name__
    if not estimator._symmetric():
        return finite_algorithm(plan.outcomes())(distribution)
    return SymmetricAlgorithm(plan.outcomes(), distribution)
