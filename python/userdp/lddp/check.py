"""Local deletion DP: whether an algorithm's output distribution is stable when r users are deleted, whichever they are.

An algorithm A is (r, epsilon, delta)-LDDP at a dataset x when the distributions of A on x without S and on x without S'
are (epsilon, delta)-indistinguishable for all sets S, S' of r users ([GKKMMZ23, Definition 16]: Ghazi, Kamath, Kumar,
Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User", NeurIPS 2023). `check_lddp`
decides it exactly. It is a diagnostic: it looks at the data it is given, and its witness names users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms import Dataset
from userdp.algorithms.evaluation import DistinctPmfs, mechanism_name, outputs_of, pmf_error_of
from userdp.algorithms.finite import assumptions_of, read_users
from userdp.audit.engine import DEFAULT_BUDGET, in_digits
from userdp.checker.divergences import Level, Value
from userdp.exact.numbers import Delta, Epsilon, PrivacyLevel, parse_delta, parse_level, short_repr
from userdp.exact.pmf import fractions_of
from userdp.exceptions import BudgetError
from userdp.lddp.deletions import Deletions, engine_for
from userdp.lddp.search import Question, search, search_in_shards
from userdp.runtime import Progress

MAX_CALLS = 2_000_000
"""Of the algorithm, in Python."""
MAX_USERS_LISTED = 100_000_000
"""Users of all the datasets that are built for these calls."""

LDDPWitness = tuple[tuple[int, ...], tuple[int, ...], frozenset[Any]]


@dataclass(frozen=True, kw_only=True)
class LDDPResult:
    """Whether an algorithm is (r, epsilon, delta)-LDDP at a dataset, decided.

    Attributes
    ----------
    holds : bool or None
        The verdict; None when undetermined within the algorithm's declared ``pmf_error``. ``bool(result)`` is this,
        and raises for None.
    lower, upper : float
        Enclose the worst divergence over all ordered pairs of deletion sets.
    witness : (S, S2, event) or None
        Where the worst divergence is attained: P(event) - e^epsilon P2(event) for the distribution P after deleting S
        and P2 after deleting S2. Deletion sets are sorted tuples of 0-based positions, the event is a frozenset of
        outputs. None when all distributions are so close that the worst divergence is 0.
    subsets : int
        Number of deletion sets, n choose r.
    pairs : int
        Number of unordered pairs of deletion sets, each looked at in both directions.
    pairs_evaluated : int
        Ordered pairs of pmfs whose divergence was computed; all others were bounded or stand for the same
        distributions.
    engine : {"general", "symmetric", "additive", "score"}
        What was enumerated: deletion sets, count vectors of distinct users, reachable totals, or count vectors of
        users with distinct scores, inside the core.
    algorithm : str
        The algorithm's name.
    epsilon : PrivacyLevel
    delta, pmf_error : Fraction
        The question, exactly.
    r, n_users : int
    """

    holds: bool | None
    lower: float
    upper: float
    witness: LDDPWitness | None
    subsets: int
    pairs: int
    pairs_evaluated: int
    engine: str
    algorithm: str
    epsilon: PrivacyLevel
    delta: Fraction
    pmf_error: Fraction
    r: int
    n_users: int

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the verdict rests on, as `userdp.algorithms.finite.ASSUMPTIONS` explains it."""
        return assumptions_of(self.engine)

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError(
                f"undetermined within pmf_error={self.pmf_error}: the worst divergence is between {self.lower!r} and "
                f"{self.upper!r}, which does not decide about the claimed delta {float(self.delta)!r}; "
                "a smaller pmf_error, or pmfs given exactly, would settle it"
            )
        return self.holds

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """The result in a few words.

        Returns
        -------
        str
        """
        verdict = "UNDETERMINED" if self.holds is None else "HOLDS" if self.holds else "VIOLATED"
        lines = [
            f"LDDP of {self.algorithm}: {verdict} for all {in_digits(self.subsets)} ways to delete {self.r} of "
            f"{self.n_users} users, at epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g}",
            f"worst divergence between {self.lower!r} and {self.upper!r} ({self.engine} engine, "
            f"{in_digits(self.pairs_evaluated)} pairs of distributions computed)",
        ]
        if self.witness is not None:
            first, second, event = self.witness
            lines.append(f"attained by deleting {first} against {second}, on {short_repr(event)}")
        return "\n".join(lines)

    def verify(self, algorithm: Any, dataset: Sequence[Any]) -> bool:
        """Decide the witness again, in pure fractions and without the compiled core's search.

        Parameters
        ----------
        algorithm : FiniteAlgorithm
        dataset : sequence of users
            Those of the check.

        Returns
        -------
        bool
            True when the witness's divergence, from the pmfs that the algorithm states now, lies between `lower` and
            `upper` and on the stated side of delta. For a failed verdict this is a proof that it fails; a verdict
            that holds is about all other pairs too, which this does not look at.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            As `check_lddp`.
        """
        users, outputs = read_users(dataset, "dataset"), outputs_of(algorithm)
        if len(users) != self.n_users:
            return False
        if self.witness is None:
            return self.holds is not False and self.lower == 0.0
        engine = engine_for(algorithm, users, self.r, outputs)
        *sets, event = self.witness
        if not event <= set(outputs):
            return False
        masses: list[Fraction] = []
        bits = 2
        for deleted in sets:
            found = DistinctPmfs(outputs)
            found.add(engine.pmf(deleted), f"left by deleting {deleted}")
            pmf = dict(zip(outputs, fractions_of(found.masses[0]), strict=True))
            masses.append(sum((pmf[output] for output in event), Fraction(0)))
            bits += masses[-1].denominator.bit_length()
        value = Value(masses[0], masses[1], Level(self.epsilon.ratio, self.epsilon.exponent, bits))
        if not (value.compare(Fraction(self.lower)) >= 0 >= value.compare(Fraction(self.upper))):
            return False
        return self.holds is None or (value.compare(self.delta) <= 0) == self.holds


def check_lddp(
    algorithm: Any,
    dataset: Sequence[Any],
    *,
    r: int,
    epsilon: Epsilon,
    delta: Delta,
    progress: Progress = None,
    executor: Executor | None = None,
    budget: int | None = None,
) -> LDDPResult:
    """Decide whether an algorithm is (r, epsilon, delta)-LDDP at a dataset, over all pairs of deletion sets.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)``. Its class chooses the engine: a `SummedScoreEM`, an
        `AdditiveAlgorithm` and a `SymmetricAlgorithm` are much cheaper than a general algorithm, which is asked for
        every deletion set. A general algorithm sees the kept users in index order.
    dataset : sequence of users
        The n users, each a tuple of examples of plain types: the algorithm is shown their canonical values, see
        `userdp.exact.encoding`.
    r : int
        Number of users to delete, 0 <= r <= n. r = 0 holds trivially.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.
    progress : bool, callable or None
        None shows a bar on a terminal for work over two seconds (with tqdm); a callable gets (done, total).
    executor : concurrent.futures.Executor, optional
        Searches parts of the pairs, in other threads, processes or machines; the algorithm and the dataset must then
        be picklable where the executor needs that. The answer is the same.
    budget : int, optional
        Refuse when pairs of pmfs times outputs exceed this; 10**13 by default. Two million calls of the algorithm are
        the limit whatever the budget.

    Returns
    -------
    LDDPResult
        ``holds`` is decided: True or False, or None within the algorithm's declared ``pmf_error``.

    Raises
    ------
    TypeError, ValueError
        Naming the argument or, for a bad pmf, the deleted users; TypeError for examples of other types.
    RuntimeError
        Naming the deleted users, when the algorithm itself raises.
    BudgetError
        When there are too many pmfs or pairs, with the count and the cheaper option.

    Notes
    -----
    [GKKMMZ23, Definition 16], see the module. Every comparison is certified: float64 with a proven error radius
    first, exact arithmetic where that cannot decide.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> share = AdditiveAlgorithm(
    ...     outputs=("no", "yes"),
    ...     statistic=lambda user: user[0],
    ...     pmf_of_total=lambda total, n: [Fraction(n - total, n), Fraction(total, n)],
    ...     statistic_range=(0, 1),
    ... )
    >>> result = check_lddp(share, [(0,), (1,), (1,), (1,)], r=1, epsilon=0, delta="1/3")
    >>> result.holds, result.subsets, result.engine, result.verify(share, [(0,), (1,), (1,), (1,)])
    (True, 4, 'additive', True)
    >>> bool(check_lddp(share, [(0,), (1,), (1,), (1,)], r=1, epsilon=0, delta="0.33"))
    False
    """
    outputs, error = outputs_of(algorithm), pmf_error_of(algorithm)
    users = read_users(dataset, "dataset")
    size = _size(r, len(users))
    question = Question(parse_level(epsilon), parse_delta(delta), error)
    limit = _limit(budget)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor must be a concurrent.futures.Executor or None; got {short_repr(executor)}")
    engine = engine_for(algorithm, users, size, outputs)
    members = _members(engine, users, size, len(outputs), limit)
    engine.check()
    if executor is None:
        found = search(engine, [range(members)], question, progress)
    else:
        found = search_in_shards(engine, members, question, progress, executor)
    witness = None
    if found.pair is not None:
        first, second, event = found.pair
        witness = (engine.deleted(first), engine.deleted(second), frozenset(outputs[index] for index in event))
    subsets = math.comb(len(users), size)
    return LDDPResult(
        holds=found.holds,
        lower=found.lower,
        upper=found.upper,
        witness=witness,
        subsets=subsets,
        pairs=subsets * (subsets - 1) // 2,
        pairs_evaluated=found.evaluated,
        engine=engine.name,
        algorithm=mechanism_name(algorithm),
        epsilon=question.level,
        delta=question.delta,
        pmf_error=error,
        r=size,
        n_users=len(users),
    )


def _size(r: Any, n_users: int) -> int:
    if isinstance(r, (bool, np.bool_, np.timedelta64)) or not isinstance(r, (int, np.integer)):
        raise TypeError(f"r must be an int from 0 to the number of users, {n_users}; got {short_repr(r)}")
    if not 0 <= r <= n_users:
        raise ValueError(f"r must be from 0 to the number of users, {n_users}; got {short_repr(r)}")
    return int(r)


def _limit(budget: Any) -> int:
    if budget is None:
        return DEFAULT_BUDGET
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)):
        raise TypeError(f"budget must be an int, in pmf-pair-outputs; got {short_repr(budget)}")
    return int(budget)


def _members(engine: Deletions, users: Dataset, r: int, outputs: int, limit: int) -> int:
    """How many pmfs the engine compares, when that is affordable."""
    members = engine.members
    # Beyond 64 bits the number of deletion sets stands in; either is far beyond every limit.
    count = math.comb(len(users), r) if members is None else members
    work = count * (count - 1) // 2 * outputs
    calls = "" if engine.in_core else f" (limit {in_digits(MAX_CALLS)})"
    too_many = not engine.in_core and (count > MAX_CALLS or count * len(users) > MAX_USERS_LISTED)
    if members is None or too_many or work > limit:
        raise BudgetError(
            f"deleting {r} of {len(users)} users: {in_digits(count)} pmfs{calls} and {in_digits(work)} "
            f"pmf-pair-outputs (budget {in_digits(limit)}) for the {engine.name} engine. Cheaper: {engine.cheaper}"
        )
    return members
