"""Which share of the budget DelStab should spend on comparing kept sets: a choice made before there are data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.algorithms import AdditiveAlgorithm
from userdp.delstab.delstab import INNER_BUDGET, InnerBudget, QuietDelStab, parse_inner_budget
from userdp.display.frames import Shown
from userdp.display.pages import Fact, Section, Table
from userdp.exact.numbers import Delta, Epsilon, check_count, parse_exact, round_down, short_repr
from userdp.exceptions import BudgetError

SHARES = tuple(Fraction(1, parts) for parts in (4, 5, 7, 10, 14, 20, 40, 100))
"""Shares of epsilon that are compared: more than a quarter costs deletions faster than it buys likeness."""


@dataclass(frozen=True)
class InnerBudgetChoice:
    """What one inner budget does; made by `compare_inner_budgets`.

    Attributes
    ----------
    inner_budget : (Fraction, Fraction)
        The argument of `DelStab`.
    deletions, kept : int
        D, and n - D, the users that the algorithm runs on.
    inner_epsilon : float
        The epsilon at which kept sets are compared, rounded down.
    smoothness : float
        If one replaced user moves the algorithm's probabilities by a factor of at most e^smoothness, data of at most
        `kinds` distinct users are never refused, if its `pmf_error` is 0. Rounded down.
    kinds : int or None
        How many distinct users may remain; None for any number. See `DelStab.plan`.
    widest : Fraction or None
        For an `AdditiveAlgorithm` compared by distances: if all users' statistics lie in an interval of this length,
        the data are never refused. Below 0 if even equal users are refused.
    """

    inner_budget: tuple[Fraction, Fraction]
    deletions: int
    kept: int
    inner_epsilon: float
    smoothness: float
    kinds: int | None
    widest: Fraction | None


@dataclass(frozen=True, repr=False)
class InnerBudgetComparison(Shown):
    """Inner budgets side by side; made by `compare_inner_budgets`. It prints as a table.

    Attributes
    ----------
    n_users : int
        n.
    rows : tuple of InnerBudgetChoice
        From the fewest deletions to the most.
    best : InnerBudgetChoice
        The recommended one.
    reason : str
        Why.
    """

    n_users: int
    rows: tuple[InnerBudgetChoice, ...]
    best: InnerBudgetChoice
    reason: str

    def __repr__(self) -> str:
        return "\n".join(section.text() for section in self._sections())

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "share_of_epsilon": row.inner_budget[0],
                "share_of_delta": row.inner_budget[1],
                "deletions": row.deletions,
                "kept": row.kept,
                "inner_epsilon": row.inner_epsilon,
                "smoothness": row.smoothness,
                "kinds": row.kinds,
                "widest": row.widest,
                "best": row is self.best,
            }
            for row in self.rows
        ]

    def _sections(self) -> Sequence[Section]:
        columns = ("share of epsilon", "left out", "kept", "never refused: smoothness", "kinds", "or users within")
        cells = [
            (
                str(row.inner_budget[0]),
                str(row.deletions),
                str(row.kept),
                f"{row.smoothness:.3g}",
                "any" if row.kinds is None else str(row.kinds),
                "–" if row.widest is None else f"{float(row.widest):.4g}",
            )
            for row in self.rows
        ]
        best = Fact("Recommended", f"inner_budget {_text(self.best.inner_budget)} ({self.reason})")
        return [
            Section(
                f"Inner budgets of DelStab for {self.n_users} users",
                facts=[("", [best])],
                tables=[Table("What each does", columns, cells)],
                headline=[best],
            )
        ]


def compare_inner_budgets(
    algorithm: Any,
    *,
    epsilon: Epsilon,
    delta: Delta,
    n_users: int,
    width: Delta | None = None,
    smoothness: Delta | None = None,
    inner_budgets: Iterable[InnerBudget] | None = None,
) -> InnerBudgetComparison:
    """Compare the shares of the budget that `DelStab` can spend on comparing kept sets; no data are read.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        As for `DelStab`. All totals of an `AdditiveAlgorithm` are evaluated for every share.
    epsilon, delta : privacy parameters
        Of the release.
    n_users : int
        n, public.
    width : number, optional
        For an `AdditiveAlgorithm`: how far apart users' statistics may be expected to lie, >= 0.
    smoothness : number, optional
        For other algorithms: by how much one replaced user may be expected to move the logarithm of a probability.
        Neither is a promise: a wrong one costs refusals, never privacy.
    inner_budgets : iterable of (number, number), optional
        What to compare; by default shares of epsilon from 1/4 to 1/100, and half of delta.

    Returns
    -------
    InnerBudgetComparison
        Its ``best`` leaves out the fewest users among those that never refuse data of this width or smoothness. If none
        is enough, or nothing was expected, it is the one that never refuses the widest data.

    Raises
    ------
    ValueError, TypeError
        For too few users, no inner budgets, and a width for an algorithm without totals.
    BudgetError
        For more totals than can be evaluated.

    References
    ----------
    The inner budget is public, and every one is private: docs/proofs/delstab_optimal.md.

    Examples
    --------
    A noisy majority of 1,000 voters, of whom one moves the logarithm of its probabilities by 1/1000:

    >>> from userdp.algorithms import SymmetricAlgorithm
    >>> vote = SymmetricAlgorithm((0, 1), lambda kept: ["1/2", "1/2"])
    >>> compared = compare_inner_budgets(vote, epsilon=1, delta="1e-6", n_users=1000, smoothness="1/1000")
    >>> compared.best.deletions, compared.best.inner_budget
    (64, (Fraction(1, 14), Fraction(1, 2)))
    """
    n = check_count(n_users, "n_users")
    additive = isinstance(algorithm, AdditiveAlgorithm)
    expected = _expected(width, smoothness, additive)
    budgets = [(share, INNER_BUDGET[1]) for share in SHARES] if inner_budgets is None else list(inner_budgets)
    if not budgets:
        raise ValueError("inner_budgets must hold at least one pair of shares; it is empty")
    rows, refusals = [], []
    for budget in budgets:
        try:
            rows.append(_choice(algorithm, epsilon, delta, n, budget))
        except BudgetError as error:
            refusals.append(error)
    if not rows:
        raise refusals[0]
    able = sorted((row for row in rows if row.kept > 0), key=lambda row: (row.deletions, row.inner_epsilon))
    if not able:
        least = min(row.deletions for row in rows) + 1
        raise ValueError(f"n_users={n} are too few: {least} are needed to keep anyone at this epsilon and delta")
    best, reason = _best(able, expected, additive)
    return InnerBudgetComparison(n, tuple(able), best, reason)


def _expected(width: Any, smoothness: Any, additive: bool) -> Fraction | None:
    given, name = (smoothness, "smoothness") if width is None else (width, "width")
    if width is not None and smoothness is not None:
        raise TypeError("give width or smoothness, not both")
    if given is None:
        return None
    if (name == "width") != additive:
        kind = (
            "an AdditiveAlgorithm takes width"
            if additive
            else "width is for an AdditiveAlgorithm; others take smoothness"
        )
        raise TypeError(f"{name}={short_repr(given)}: {kind}")
    value = parse_exact(given, name, "a float, int, Fraction or decimal string >= 0")
    if value < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(given)}")
    return value


def _choice(algorithm: Any, epsilon: Epsilon, delta: Delta, n_users: int, budget: Any) -> InnerBudgetChoice:
    made = QuietDelStab(algorithm, epsilon=epsilon, delta=delta, inner_budget=budget)
    level = made.calibration.level
    kept = n_users - made.deletions
    widest = kinds = None
    if kept > 0:
        plan = made.plan(n_users)
        if plan.engine == "additive":
            widest = made.certified_distance(n_users)
        elif plan.engine == "multiset" and plan.max_distinct_users < n_users:
            kinds = plan.max_distinct_users
    # Two kept sets of one dataset differ in at most this many users, or positions where these count.
    swaps = max(1, min(kept, made.deletions) if made.symmetric else kept)
    inner = made.calibration.inner_level
    # The logarithm of a float is off by less than the factor; what is shown promises nothing.
    epsilon_bar = inner.exponent or Fraction(math.log1p(float(inner.ratio - 1)) * (1 - 1e-12))
    return InnerBudgetChoice(
        parse_inner_budget(budget, level),
        made.deletions,
        kept,
        round_down(epsilon_bar),
        round_down(epsilon_bar / swaps),
        kinds,
        None if widest is None else Fraction(widest, swaps),
    )


def _best(
    rows: Sequence[InnerBudgetChoice], expected: Fraction | None, additive: bool
) -> tuple[InnerBudgetChoice, str]:
    def allows(row: InnerBudgetChoice) -> Fraction:
        if not additive:
            return Fraction(row.smoothness)
        return Fraction(-1) if row.widest is None else row.widest

    widest = max(rows, key=allows)
    if expected is None:
        return widest, "it never refuses the widest data"
    enough = [row for row in rows if allows(row) >= expected]
    if enough:
        few = "" if enough[0].kinds is None else f" of at most {enough[0].kinds} kinds of users"
        return enough[0], f"the fewest are left out, and data as expected{few} are never refused"
    return widest, "none is sure to answer data as expected; this one comes nearest"


def _text(budget: tuple[Fraction, Fraction]) -> str:
    return f"({budget[0]}, {budget[1]})"
