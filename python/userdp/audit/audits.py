"""Exact audits: is this mechanism private here, for a user, and if not, who and what shows it.

Each audit evaluates the mechanism's own pmf on every dataset of a stated set, compares the output distributions of all
neighboring pairs in both directions, and returns an `AuditReport` that can be verified without the compiled core.
Audits are diagnostics: they look at the data they are given, and their reports contain it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from userdp.algorithms.distributions import read_universe
from userdp.algorithms.finite import form_of, is_symmetric, outputs_of, read_users
from userdp.audit.datasets import (
    MAX_SUMS,
    Additive,
    Labeled,
    Moves,
    Neighborhood,
    Pair,
    Replacements,
    Symmetric,
    user_values,
)
from userdp.audit.engine import CHEAPER, MAX_DATASETS, MAX_USERS, check_work, run_audit
from userdp.exact.encoding import key_of
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    capped_power,
    check_count,
    check_neighbors,
    parse_delta,
    parse_level,
)
from userdp.report import AuditReport
from userdp.runtime import Progress

Engine = Literal["auto", "labeled", "symmetric", "additive"]


def audit_pair(
    mechanism: Any,
    x: Sequence[Any],
    x2: Sequence[Any],
    *,
    epsilon: Epsilon,
    delta: Delta,
    progress: Progress = None,
) -> AuditReport:
    """Audit one pair of datasets.

    Parameters
    ----------
    mechanism : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)``.
    x, x2 : dataset
        Sequences of users, each a tuple of examples of plain types: the mechanism is shown their canonical values, see
        `userdp.exact.encoding`. Whether they are neighbors is the caller's affair.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.
    progress : bool, callable or None
        See `audit_user_level`.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> from userdp.algorithms import finite_algorithm
    >>> @finite_algorithm(outputs=("no", "yes"))
    ... def answer(dataset):
    ...     return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]
    >>> audit_pair(answer, [(0,)], [(1,)], epsilon=1, delta="0.05").holds
    False
    """
    first, second = read_users(x, "x"), read_users(x2, "x2")
    return run_audit(
        mechanism,
        Pair(first, second),
        kind="pair",
        neighbors="replace",
        engine="labeled",
        structure={"x": first, "x2": second},
        epsilon=epsilon,
        delta=delta,
        budget=None,
        progress=progress,
    )


def audit_dataset(
    mechanism: Any,
    dataset: Sequence[Any],
    *,
    records: Iterable[Any],
    epsilon: Epsilon,
    delta: Delta,
    engine: Engine = "auto",
    budget: int | None = None,
    progress: Progress = None,
) -> AuditReport:
    """Audit one dataset against every replacement of one of its users by any of the given records.

    Parameters
    ----------
    mechanism : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)``.
    dataset : sequence of users
        The n users, each a tuple of examples; as for `audit_pair`.
    records : iterable of users
        What a replaced user may have given: tuples of examples.
    epsilon, delta
        As for `audit_pair`.
    engine : {"auto", "labeled", "symmetric", "additive"}
        "symmetric" replaces one user of each distinct value (for a `SymmetricAlgorithm`), "additive" one of each
        distinct statistic (for an `AdditiveAlgorithm`); "auto" takes the cheapest that the mechanism's type allows.
    budget, progress
        See `audit_user_level`.

    Returns
    -------
    AuditReport
        Certifies the privacy of this dataset's users only; other datasets may be worse.

    Notes
    -----
    Neighbors: replace one user. The pairs are (dataset, replacement), in both directions.

    References
    ----------
    [GKKMMZ23, Definition 1].

    Examples
    --------
    >>> from fractions import Fraction
    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> count = AdditiveAlgorithm(
    ...     ("low", "high"), sum, lambda total, n: [Fraction(4 - total, 4), Fraction(total, 4)], statistic_range=(0, 1)
    ... )
    >>> report = audit_dataset(count, [(1,), (0,), (1,)], records=[(0,), (1,)], epsilon=0, delta="1/4")
    >>> report.holds, report.datasets
    (True, 5)
    """
    users = read_users(dataset, "dataset")
    candidates = read_users(records, "records")
    if not users or not candidates:
        raise ValueError("dataset and records must not be empty")
    chosen = _engine(mechanism, engine)
    keys: list[Any] = list(range(len(users)))
    if chosen == "symmetric":
        keys = list(map(key_of, users))  # 1 and True are different records
    elif chosen == "additive":
        keys = [mechanism.statistic_of(user) for user in users]
    structure: dict[str, Any] = {"dataset": users, "records": candidates}
    if chosen == "additive":
        structure["statistics"] = tuple(keys)
    replaceable = sorted({key: position for position, key in reversed(list(enumerate(keys)))}.values())
    return run_audit(
        mechanism,
        Replacements(users, candidates, replaceable),
        kind="dataset",
        neighbors="replace",
        engine=chosen,
        structure={**structure, "replaceable": tuple(replaceable)},
        epsilon=epsilon,
        delta=delta,
        budget=budget,
        progress=progress,
    )


def audit_user_level(
    mechanism: Any,
    *,
    universe: Iterable[Any],
    n_users: int,
    n_examples: int,
    epsilon: Epsilon,
    delta: Delta,
    neighbors: Neighbors = "replace",
    engine: Engine = "auto",
    budget: int | None = None,
    progress: Progress = None,
) -> AuditReport:
    """Audit all datasets over a small universe and all pairs that differ in one user.

    Parameters
    ----------
    mechanism : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)``.
    universe : iterable
        The possible values of one example, distinct, of plain types: the mechanism is shown their canonical values, see
        `userdp.exact.encoding`.
    n_users : int
        Number of users n >= 1.
    n_examples : int
        Number of examples m >= 1 of every user, fixed.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.
    neighbors : {"replace", "add-remove"}
        Replace one user's whole data (n stays), or remove one user from the n.
    engine : {"auto", "labeled", "symmetric", "additive"}
        Go over sequences of users, over multisets (for a `SymmetricAlgorithm`) or over attainable totals (for an
        `AdditiveAlgorithm`); "auto" takes the cheapest that the mechanism's type allows.
    budget : int, optional
        Refuse when pairs times outputs exceed this; 10**13 by default. Two million datasets and two hundred
        million pairs are refused whatever the budget.
    progress : bool, callable or None
        None shows a bar on a terminal for work over two seconds (with tqdm); a callable gets (done, total).

    Returns
    -------
    AuditReport
        ``holds`` is decided: True or False, or None within the mechanism's declared ``pmf_error``.

    Raises
    ------
    RuntimeError
        Naming the dataset, when the mechanism itself raises.
    BudgetError
        When there are too many datasets or pairs, with the count and the cheaper option.

    Notes
    -----
    User-level (epsilon, delta)-DP of [GKKMMZ23, Definition 2], on this universe: a certificate for these n, m and
    universe, not for others. The certificate is about the pmf the mechanism states.

    References
    ----------
    [LSAKKMS21, Definition 1].

    Examples
    --------
    >>> from userdp.algorithms import finite_algorithm
    >>> from userdp import LogRatio
    >>> @finite_algorithm(outputs=(0, 1))
    ... def respond(dataset):
    ...     return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]
    >>> report = audit_user_level(respond, universe=(0, 1), n_users=2, n_examples=1, epsilon=LogRatio(3, 1), delta=0)
    >>> report.holds, report.datasets, report.pairs
    (True, 4, 4)
    """
    return _audit_universe(
        mechanism,
        "user-level",
        universe,
        n_users,
        n_examples,
        epsilon,
        delta,
        neighbors,
        engine,
        budget,
        progress,
    )


def audit_item_level(
    mechanism: Any,
    *,
    universe: Iterable[Any],
    n_users: int,
    n_examples: int = 1,
    epsilon: Epsilon,
    delta: Delta,
    engine: Engine = "auto",
    budget: int | None = None,
    progress: Progress = None,
) -> AuditReport:
    """Audit all datasets over a small universe and all pairs that differ in one example.

    Parameters
    ----------
    mechanism, universe, n_users, epsilon, delta, engine, budget, progress
        As for `audit_user_level`.
    n_examples : int
        Number of examples m >= 1 of every user; with 1, item level and user level agree.

    Returns
    -------
    AuditReport

    Notes
    -----
    Neighbors: replace one example of one user. Item-level DP says little about a user: changing all m examples of one
    costs up to m times the epsilon (`userdp.accounting.group_privacy`).

    References
    ----------
    [LWY24, Definition 2.1].

    Examples
    --------
    >>> from userdp.algorithms import finite_algorithm
    >>> @finite_algorithm(outputs=(0, 1))
    ... def first_example(dataset):
    ...     return ["1/3", "2/3"] if dataset[0][0] else ["2/3", "1/3"]
    >>> audit_item_level(first_example, universe=(0, 1), n_users=1, n_examples=2, epsilon=0.7, delta=0).holds
    True
    """
    return _audit_universe(
        mechanism,
        "item-level",
        universe,
        n_users,
        n_examples,
        epsilon,
        delta,
        "replace",
        engine,
        budget,
        progress,
    )


def _audit_universe(
    mechanism: Any,
    kind: str,
    universe: Iterable[Any],
    n_users: int,
    n_examples: int,
    epsilon: Epsilon,
    delta: Delta,
    neighbors: str,
    engine: Engine,
    budget: int | None,
    progress: Progress,
) -> AuditReport:
    examples = read_universe(universe)
    users, per_user = check_count(n_users, "n_users"), check_count(n_examples, "n_examples")
    check_neighbors(neighbors)
    parse_level(epsilon), parse_delta(delta)  # before any work
    outputs = outputs_of(mechanism)
    chosen = _engine(mechanism, engine)
    _check_size(mechanism, (len(examples), users, per_user), chosen, len(outputs), budget)
    values = user_values(examples, per_user)
    steps = Moves(len(examples), per_user, item_level=kind == "item-level")
    add_remove = neighbors == "add-remove"
    structure: dict[str, Any] = {"universe": examples, "n_users": users, "n_examples": per_user}
    space: Neighborhood
    if chosen == "additive":
        statistics = tuple(mechanism.statistic_of(value) for value in values)
        space = Additive(statistics, values, users, steps, add_remove=add_remove)
        structure["statistics"] = statistics
    else:
        make = Symmetric if chosen == "symmetric" else Labeled
        space = make(values, users, steps, add_remove=add_remove)
    return run_audit(
        mechanism,
        space,
        kind=kind,
        neighbors=neighbors,
        engine=chosen,
        structure=structure,
        epsilon=epsilon,
        delta=delta,
        budget=budget,
        progress=progress,
    )


def _engine(mechanism: Any, engine: Engine) -> str:
    if engine not in ("auto", "labeled", "symmetric", "additive"):
        raise ValueError(f"engine must be 'auto', 'labeled', 'symmetric' or 'additive'; got {engine!r}")
    additive, symmetric = form_of(mechanism) == "additive", is_symmetric(mechanism)
    if engine == "additive" and not additive:
        raise TypeError("engine='additive' needs an AdditiveAlgorithm, with the pmf of that class")
    if engine == "symmetric" and not symmetric:
        raise TypeError("engine='symmetric' needs a SymmetricAlgorithm, or symmetric = True beside its own pmf")
    if engine != "auto":
        return engine
    return "additive" if additive else "symmetric" if symmetric else "labeled"


def _check_size(mechanism: Any, sizes: tuple[int, int, int], engine: str, outputs: int, budget: int | None) -> None:
    """Refuse what is too large before any power is computed or anything is enumerated."""
    universe, n_users, n_examples = sizes
    values = capped_power(universe, n_examples, ENORMOUS)
    # Every dataset is a tuple of n users, and every value a tuple of m examples.
    advice = "fewer examples or a coarser universe; or audit_dataset for one dataset"
    check_work(max(values * n_examples, n_users), values, outputs, budget, advice)
    if engine == "additive":
        low, high = mechanism.statistic_range
        totals = min(n_users * (high - low) + 1, capped_power(values, n_users, ENORMOUS))
        work = n_users * totals * min(values, high - low + 1)
        sums = work * MAX_DATASETS // MAX_SUMS
        check_work(max(totals, sums), totals, outputs, budget, f"a narrower statistic_range; {advice}")
        return
    count = min(n_users, values - 1)
    if engine == "symmetric":
        datasets = math.comb(n_users + values - 1, count) if count < 64 else ENORMOUS
    else:
        datasets = capped_power(values, n_users, ENORMOUS)
    cells = datasets * n_users * MAX_DATASETS // MAX_USERS
    check_work(max(datasets, cells), datasets, outputs, budget, f"{CHEAPER[engine]}; {advice}")


ENORMOUS = 10**30
