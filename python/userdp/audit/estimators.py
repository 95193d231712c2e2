"""One-run audits of estimators: canary users in directions of their own, with one label or the other."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from userdp.audit.guesses import Test
from userdp.audit.one_run import audit_one_run
from userdp.exact.numbers import Delta, Epsilon, check_count, short_repr
from userdp.report.guesses import GuessReport

MOST_NUMBERS = 10**8
"""Of the table of features."""
_OF_USERS = re.compile(
    r"(sample_|row_)?(group|user|owner|person|people|subject|client|unit)(s|_?ids?|_labels?|_indices|_index)?"
)


def audit_estimator(
    estimator: Any,
    *,
    n_canaries: int,
    n_rows: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    size: float = 1.0,
    targets: tuple[Any, Any] = (0, 1),
    groups: str | None = "auto",
    test: Test = "fixed",
    n_guesses: int | None = None,
    alpha: Delta | None = None,
    estimate_alpha: Delta | None = None,
    random_state: int | None = None,
) -> GuessReport:
    """Return what one fit with canary users proves about a classifier or regressor.

    Canary i has `n_rows` equal rows, which are 0 but for feature i, and a fair coin gives all of them one target or the
    other. A fitted estimator that predicts the targets of some canaries better than its epsilon allows has broken it.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y)`` and one of ``decision_function``, ``predict_proba`` and ``predict``. A copy is fitted, once,
        on `n_canaries` features.
    n_canaries : int
        Users, and features. 200 or more are needed to refute an epsilon of 1 at the default alpha.
    n_rows : int
        Rows of every user.
    epsilon, delta
        The claim for users, as for `audit_samples`. Neighbors: replace one user.
    size : float
        Value of a canary's feature; the largest that the estimator does not clip shows most.
    targets : pair
        What the coins choose from.
    groups : str, optional
        The argument of ``fit`` that takes the user of each row; None for estimators that take no users. "auto" is the
        one argument that is called groups, users, user_ids or the like.
    test, n_guesses, alpha, estimate_alpha, random_state
        As for `audit_one_run`.

    Returns
    -------
    GuessReport

    Raises
    ------
    TypeError, ValueError
        For arguments that are out of range, and estimators without such methods or such an argument of ``fit``.

    Notes
    -----
    Other data may be worse: canaries in orthogonal directions disturb each other least, and are what a linear model
    remembers best. For other models use `audit_one_run` with canaries and scores of your own.

    Examples
    --------
    A least squares fit without any noise:

    >>> import numpy as np
    >>> class LeastSquares:
    ...     def fit(self, X, y):
    ...         self.coef_ = np.linalg.lstsq(X, y, rcond=None)[0]
    ...         return self
    ...     def predict(self, X):
    ...         return X @ self.coef_
    >>> audit_estimator(LeastSquares(), n_canaries=200, n_rows=3, epsilon=1, groups=None).holds
    False
    """
    n, rows = check_count(n_canaries, "n_canaries"), check_count(n_rows, "n_rows")
    if n * n * rows > MOST_NUMBERS:
        raise ValueError(
            f"n_canaries={n} users with {rows} rows of as many features are {n * n * rows:,} numbers, more than "
            f"{MOST_NUMBERS:,}; take fewer canaries or rows"
        )
    length = float(size)
    if not np.isfinite(length) or length == 0:
        raise ValueError(f"size must be finite and not 0; got {short_repr(size)}")
    if not isinstance(targets, (tuple, list)) or len(targets) != 2:
        raise TypeError(f"targets must be a pair; got {short_repr(targets)}")
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must have a method fit; got {short_repr(estimator)}")
    prediction, taken = _prediction(estimator), groups_name(estimator.fit) if groups == "auto" else groups
    points = np.eye(n) * length

    def run(users: list[tuple[int, Any]]) -> Any:
        places = np.repeat([place for place, _ in users], rows)
        y = np.repeat(np.array([target for _, target in users]), rows)
        given = {} if taken is None else {taken: places}
        return copy.deepcopy(estimator).fit(points[places], y, **given)

    def score(fitted: Any) -> Sequence[float]:
        found = np.asarray(getattr(fitted, prediction)(points), dtype=np.float64)
        return list(found[:, -1] if found.ndim == 2 else found)

    return audit_one_run(
        run,
        canaries=[(place, targets[1]) for place in range(n)],
        others=[(place, targets[0]) for place in range(n)],
        score=score,
        epsilon=epsilon,
        delta=delta,
        test=test,
        n_guesses=n_guesses,
        alpha=alpha,
        estimate_alpha=estimate_alpha,
        random_state=random_state,
        name=type(estimator).__name__,
    )


def groups_name(fit: Callable[..., Any]) -> str:
    """What `fit` calls the users of the rows."""
    parameters = inspect.signature(fit).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    found = [name for name in names if _OF_USERS.fullmatch(name.lower())]
    if not found and any(one.kind is one.VAR_KEYWORD for one in parameters):
        return "groups"
    if len(found) != 1:
        raise ValueError(
            f"groups: {' and '.join(found) or 'none'} of the arguments of fit, {', '.join(names)}, may say whose row "
            "it is; name the one that does, groups=..., or pass groups=None for an estimator that takes no users"
        )
    return found[0]


def _prediction(estimator: Any) -> str:
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, name):
            return name
    raise TypeError(
        f"estimator must have decision_function, predict_proba or predict; got {short_repr(estimator)}: use "
        "audit_one_run with a score of your own"
    )
