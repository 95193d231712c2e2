"""Assertions about privacy: they audit, and fail with what was found."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from userdp.algorithms import Dataset, SymmetricAlgorithm
from userdp.algorithms.distributions import read_universe
from userdp.algorithms.finite import FunctionAlgorithm, is_symmetric, mechanism_name, pmf_error_of
from userdp.audit import (
    audit_estimator,
    audit_sampler_law,
    audit_samples,
    audit_sensitivity,
    audit_user_level,
    neighboring_pairs,
)
from userdp.audit.estimators import groups_name
from userdp.audit.neighbors import Counts, read_sizes, values_of_users
from userdp.exact.encoding import printable
from userdp.exact.numbers import Delta, Epsilon, short_repr
from userdp.report import GuessReport, Report
from userdp.report.sensitivity import SensitivityReport


@dataclass
class Settings:
    """What the assertions take where a test says nothing.

    Attributes
    ----------
    seconds : float or None
        Time for the search of an audit of sensitivity; None leaves it to the audit.
    alpha : Fraction
        Probability of a wrong verdict, for audits by draws.
    reports : Path or None
        A folder into which every report is written.
    """

    seconds: float | None = None
    alpha: Fraction = Fraction(1, 10**9)
    reports: Path | None = None


CURRENT = Settings()

How = Literal["auto", "pmf", "bits", "samples"]


def assert_user_private(
    mechanism: Any,
    *,
    universe: Iterable[Any],
    n_users: int,
    n_examples: Counts = 1,
    epsilon: Epsilon,
    delta: Delta = 0,
    neighbors: Literal["replace", "add-remove"] = "replace",
    how: How = "auto",
    allow_undecided: bool = False,
    **options: Any,
) -> Report:
    """Assert that a mechanism is private for users, on all datasets of a small universe.

    Parameters
    ----------
    mechanism : FiniteAlgorithm or callable
        With ``pmf``, it is audited exactly (`userdp.audit.audit_user_level`). A function with a second argument named
        ``bits`` is run on all of its random bits (`userdp.audit.audit_sampler_law`). Any other is run again and again
        (`userdp.audit.audit_samples`), with a generator if it has a second argument ``rng``.
    universe : iterable
        The possible values of one example.
    n_users : int
        Users.
    n_examples : int or sequence of int
        Examples of every user, fixed; or the numbers of examples that users may have, such as ``(0, 1, 2)``. The report
        is then about a universe of whole users with one example each.
    epsilon, delta
        The claim, taken exactly.
    neighbors : {"replace", "add-remove"}
        Replace one user's whole data, or remove one user.
    how : {"auto", "pmf", "bits", "samples"}
        In which of these ways; by default the strongest that there is.
    allow_undecided : bool
        Pass where the claim is neither shown nor refuted. Draws never show a claim, so that "samples" needs this.
    **options
        Further arguments of the audit, such as ``draws`` or ``max_runs``.

    Returns
    -------
    Report
        Of the audit.

    Raises
    ------
    AssertionError
        When the claim is refuted, with what refutes it, or undecided.
    TypeError, ValueError
        For arguments that do not fit.

    Examples
    --------
    >>> from userdp.algorithms import finite_algorithm
    >>> @finite_algorithm(outputs=("no", "yes"))
    ... def answer(dataset):
    ...     return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]
    >>> assert_user_private(answer, universe=(0, 1), n_users=1, epsilon="ln(3)").holds
    True
    """
    if how not in ("auto", "pmf", "bits", "samples"):
        raise ValueError(f"how must be 'auto', 'pmf', 'bits' or 'samples'; got {short_repr(how)}")
    way = _way(mechanism) if how == "auto" else how
    claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    sizes, subject = read_sizes(n_examples), mechanism
    world: dict[str, Any] = {"universe": universe, "n_users": n_users, "n_examples": sizes[0]}
    if way == "samples":
        world["n_examples"] = sizes
    elif len(sizes) > 1:
        world |= {"universe": values_of_users(read_universe(universe), sizes), "n_examples": 1}
        subject = _of_whole_users(mechanism, way)
    started = time.perf_counter()
    report: Report
    if way == "pmf":
        report = audit_user_level(subject, **world, **claim, **options)
    elif way == "bits":
        report = audit_sampler_law(subject, **world, **claim, **options)
    else:
        given = {"alpha": CURRENT.alpha, "estimate_alpha": max(CURRENT.alpha, Fraction(1, 20))} | options
        if "rng" not in given and "rng" in _parameters(mechanism):
            given["rng"] = "numpy"
        pairs = neighboring_pairs(**world, neighbors=neighbors, random_state=given.get("random_state"))
        report = audit_samples(mechanism, pairs, **claim, **given)
    return _judged(report, mechanism, allow_undecided, time.perf_counter() - started)


def assert_sensitivity(
    function: Callable[[Any], Any], *, allow_undecided: bool = False, **options: Any
) -> SensitivityReport:
    """Assert that one user changes a function of a table by no more than is claimed, over all small tables.

    Parameters
    ----------
    function : callable
        What is computed before noise is added; see `userdp.audit.audit_sensitivity`.
    allow_undecided : bool
        Pass where not all tables were tried and no violation was found.
    **options
        The arguments of `userdp.audit.audit_sensitivity`: ``schema=``, ``user=``, and what is claimed as ``l1=``,
        ``l2=``, ``linf=`` or ``l0=``.

    Returns
    -------
    SensitivityReport

    Raises
    ------
    AssertionError
        When two neighboring tables violate the claim, which the text shows as Python to be pasted; or undecided.

    Examples
    --------
    >>> def visitors(rows):
    ...     return len({row["person"] for row in rows})
    >>> assert_sensitivity(visitors, schema={"town": str}, user="person", l1=1, letters=2).holds
    True
    """
    if not any(name in options for name in ("l0", "l1", "l2", "l2_squared", "linf")):
        raise TypeError("assert_sensitivity needs a claim: l1=, l2=, l2_squared=, linf= or l0=")
    if CURRENT.seconds is not None:
        options.setdefault("max_seconds", CURRENT.seconds)
    started = time.perf_counter()
    report = audit_sensitivity(function, **options)
    _judged(report, function, allow_undecided, time.perf_counter() - started)
    return report


def check_user_level_learner(
    estimator: Any,
    *,
    epsilon: Epsilon,
    delta: Delta = 0,
    n_canaries: int = 200,
    n_rows: int = 8,
    groups: str = "auto",
    targets: tuple[Any, Any] = (0, 1),
    **options: Any,
) -> GuessReport:
    """Check an estimator that claims to protect users: what it must refuse, and one run with canary users.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y, groups=...)``. Copies of it are fitted.
    epsilon, delta
        The claim for users.
    n_canaries, n_rows : int
        Users of the run, and rows of each, as for `userdp.audit.audit_estimator`.
    groups : str
        The argument of ``fit`` that says whose row it is; found as by `userdp.audit.audit_estimator`.
    targets : pair
        Two targets.
    **options
        Further arguments of `userdp.audit.audit_estimator`.

    Returns
    -------
    GuessReport
        Of the run. A run refutes, and never shows that a claim holds.

    Raises
    ------
    AssertionError
        When ``fit`` has no such argument, takes users for fewer rows than there are, or keeps users' rows as an
        attribute; and when the run refutes the claim.

    Examples
    --------
    >>> from userdp.optimization import UserLevelLogisticRegression
    >>> model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), m=8, classes=(0, 1))
    >>> report = check_user_level_learner(model, epsilon=1, delta=1e-6, n_canaries=60)  # warns: 60 users are few
    >>> report.holds is None
    True
    """
    name = type(estimator).__name__
    parameters = inspect.signature(estimator.fit).parameters
    if groups == "auto":
        try:
            groups = groups_name(estimator.fit)
        except ValueError as error:
            raise AssertionError(f"{name}: {error}") from None
    if groups not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise AssertionError(f"{name}.fit has no argument {groups!r}: it cannot tell whose rows it is given")
    started = time.perf_counter()
    fitted: list[Any] = []
    report = audit_estimator(
        _Kept(estimator, fitted),
        epsilon=epsilon,
        delta=delta,
        n_canaries=n_canaries,
        n_rows=n_rows,
        groups=groups,
        targets=targets,
        **{"alpha": None, **options},
    )
    shape = (n_canaries * n_rows, n_canaries)
    for attribute, value in sorted(vars(fitted[0]).items()):
        if isinstance(value, np.ndarray) and value.shape in (shape, shape[:1]):
            raise AssertionError(f"{name}: the fitted attribute {attribute!r} has a number for each row of the users")
    _judged(report, estimator, True, time.perf_counter() - started)
    return report


class _Kept:
    """An estimator whose fitted copy can be looked at."""

    def __init__(self, estimator: Any, fitted: list[Any]) -> None:
        self._estimator, self._fitted = estimator, fitted

    def __deepcopy__(self, memo: Any) -> _Kept:
        return self

    def fit(self, X: Any, y: Any, **given: Any) -> Any:
        import copy

        short = {name: values[:-1] for name, values in given.items()}
        try:
            copy.deepcopy(self._estimator).fit(X, y, **short)
        except (TypeError, ValueError):
            pass
        else:
            raise AssertionError(f"{type(self._estimator).__name__}.fit took users for {len(y) - 1} of {len(y)} rows")
        self._fitted.append(copy.deepcopy(self._estimator).fit(X, y, **given))
        return self._fitted[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)


def _parameters(mechanism: Any) -> list[str]:
    try:
        return list(inspect.signature(mechanism).parameters)
    except (TypeError, ValueError):
        return []


def _of_whole_users(mechanism: Any, way: How) -> Any:
    """The mechanism on users whose one example is all that they have."""
    if way == "bits":
        return functools.update_wrapper(functools.partial(_on_whole_users, mechanism), mechanism)
    kind = SymmetricAlgorithm if is_symmetric(mechanism) else FunctionAlgorithm
    name, error = mechanism_name(mechanism), pmf_error_of(mechanism)
    return kind(mechanism.outputs, lambda dataset: mechanism.pmf(_unpacked(dataset)), pmf_error=error, name=name)


def _on_whole_users(mechanism: Any, dataset: Dataset, bits: Any) -> Any:
    return mechanism(_unpacked(dataset), bits)


def _unpacked(dataset: Dataset) -> Dataset:
    return tuple(user[0] for user in dataset)


def _way(mechanism: Any) -> How:
    """The strongest audit that a mechanism allows."""
    if hasattr(mechanism, "pmf"):
        return "pmf"
    if not callable(mechanism):
        raise TypeError(f"mechanism must have pmf or be callable; got {short_repr(mechanism)}")
    return "bits" if "bits" in _parameters(mechanism) else "samples"


def _judged(report: Report, subject: Any, allow_undecided: bool, seconds: float) -> Report:
    """Write the report where pytest's options say, and raise unless the claim holds."""
    name = mechanism_name(subject)
    if CURRENT.reports is not None:
        CURRENT.reports.mkdir(parents=True, exist_ok=True)
        path = CURRENT.reports / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[:60]}-{report.digest[7:19]}.json"
        path.write_text(report.to_json(), encoding="utf-8")
    holds: bool | None = report.holds  # type: ignore[attr-defined]
    if holds or (holds is None and allow_undecided):
        return report
    lines = [
        f"{printable(name)} {'is undecided' if holds is None else 'breaks its claim'} ({seconds:.1f} s)",
        "",
        report.summary(),
    ]
    if holds is None:
        lines += ["", _way_out(report)]
    elif isinstance(report, SensitivityReport):
        lines += ["", "Run it again:", "", report.witness_code()]
    raise AssertionError("\n".join(lines))


def _way_out(report: Report) -> str:
    if isinstance(report, GuessReport) and report.doubtful:
        return (
            "Draw more (draws=, training=): a claim that is right looks like this with the probability of that error."
        )
    if isinstance(report, GuessReport):
        return (
            "Draws never show that a claim holds: pass allow_undecided=True to assert that none was seen to break it."
        )
    return "Allow more work (max_calls=, max_seconds=, max_runs=), take a smaller world, or pass allow_undecided=True."
