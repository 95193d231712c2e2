"""The mechanism DelStab [GKKMMZ23, Algorithm 1]: what it promises, how it releases, and its diagnostics.

First come the calibrations: from a promise (epsilon, delta) to the pmf of the refusal, the inner level and deletions.
Then comes the mechanism. Last comes what it tells about a dataset, and **not privately**: the distribution of a
release, and why it is refused. Proofs: docs/proofs/delstab_*.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.algorithms import AdditiveAlgorithm, Dataset
from userdp.algorithms.finite import (
    BOTTOM,
    goes_with,
    is_symmetric,
    mechanism_name,
    outputs_of,
    private_users,
    read_users,
)
from userdp.delstab.engines import (
    AnyStability,
    Compatibility,
    EngineChoice,
    PrivateUsers,
    check_arguments,
    choose_engine,
    find_stability,
    kinds_of_users,
    most_kinds,
    removals,
)
from userdp.delstab.stable_sets import InnerPmfs, Stability, TotalPmfs, WindowStability, certified_totals
from userdp.exact.epsilon import ROOT_BITS, as_epsilon, core_level, level_root
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    check_count,
    parse_delta,
    parse_exact,
    parse_level,
    round_down,
    round_up,
    short_repr,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError, SureRefusalWarning
from userdp.report import Certificate, Explanation
from userdp.report.certificate import certified, table_factor
from userdp.runtime import Progress, ProgressCallback, progress_bar, source_of, warn

# --- calibrations: from a promise to the pmf of the refusal, the inner level and deletions
#
# Every number here is public and rational, and every rounding makes the promise easier to keep.

CalibrationName: TypeAlias = Literal["optimal", "tight", "paper"]
InnerBudget: TypeAlias = tuple[Delta, Delta]
TOTAL = 1 << 128
"""The denominator of every tabulated probability."""
PROOF_BITS = 512
"""Precision of the enclosures of e^epsilon in which a calibration is checked."""


@dataclass(frozen=True)
class Calibration:
    """What the privacy proof of one calibration needs, checked when it is made."""

    name: CalibrationName  # "optimal", "tight" or "paper"
    level: PrivacyLevel  # the promise, with delta
    delta: Fraction
    # (epsilon_T, delta_T): what hiding the smallest stable size costs.
    noise_level: PrivacyLevel
    noise_delta: Fraction
    # (epsilon_L, delta_L): kept sets count as compatible when they are indistinguishable at this level.
    inner_level: PrivacyLevel
    inner_delta: Fraction
    deletions: int  # D, the number of users left out of every run of the inner algorithm
    kappa: int | None  # Half the largest value of R1 in Algorithm 1; None for "optimal", which draws no R1
    # q_0, ..., q_M over 2^128: the probability of refusing when the smallest stable size is r, and q_M = 1.
    refusal: tuple[int, ...]
    _table: _core.TruncatedDiscreteLaplaceTable | _core.RefusalTable = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_levels(self)
        _check_refusal(self)

    @property
    def largest(self) -> int:
        """The largest size that a set S may have without a sure refusal."""
        return len(self.refusal) - 2

    @property
    def proof(self) -> str:
        """The page with the privacy proof."""
        return f"docs/proofs/delstab_{self.name}.md"

    def certificate(self) -> Certificate:
        """The numbers of the privacy proof as a certificate, which `verify` and Coq check: docs/certificates.md."""
        return certified(
            subject=self.name,
            epsilon=self.level,
            delta=self.delta,
            factor=table_factor(self.noise_level),
            total=TOTAL,
            table=self.refusal if self.kappa is None else tuple(b - a for a, b in itertools.pairwise(self.refusal)),
            second=None,
            parts={
                "noise_delta": self.noise_delta,
                "inner_ratio": self.inner_level.ratio,
                "inner_exponent": self.inner_level.exponent,
                "inner_delta": self.inner_delta,
                "deletions": Fraction(self.deletions),
            },
        )

    def refusal_numerator(self, smallest: int | None) -> int:
        """Probability, over 2^128, of refusing when the smallest stable set has this size (None: there is none)."""
        return self.refusal[-1] if smallest is None or smallest > self.largest else self.refusal[smallest]

    def mixture(self, smallest: int | None) -> list[int]:
        """Probability, over 2^128, of releasing with |S| = 0, ..., `largest`; the refusal has the rest."""
        if smallest is None:
            return [0] * (self.largest + 1)
        if isinstance(self._table, _core.RefusalTable):
            released = TOTAL - self.refusal_numerator(smallest)
            return [released if size == smallest else 0 for size in range(self.largest + 1)]
        numerators = [after - before for before, after in itertools.pairwise(self.refusal)]
        return [mass if size >= smallest else 0 for size, mass in enumerate(numerators)]

    def draw_size(self, smallest: int | None, source: _core.Source) -> int | None:
        """Draw |S|, or None for a refusal."""
        if isinstance(self._table, _core.RefusalTable):
            rank = self.largest + 1 if smallest is None else min(smallest, self.largest + 1)
            return None if self._table.refuses(rank, source) else smallest
        drawn = self._table.sample(source)
        return drawn if smallest is not None and drawn >= smallest else None


INNER_BUDGET = (Fraction(1, 10), Fraction(1, 2))
"""The shares of epsilon and of delta that "optimal" spends on comparing kept sets, unless told."""
MOST_ROOTS = 1000
"""Denominator of a share of an epsilon whose exponential is a fraction: that root is taken of it."""


def calibrate(
    name: CalibrationName,
    epsilon: Epsilon,
    delta: Fraction | float | int | str,
    inner_budget: InnerBudget | None = None,
) -> Calibration:
    """Calibrate DelStab."""
    if name not in get_args(CalibrationName):
        raise ValueError(f"calibration must be 'optimal', 'tight' or 'paper'; got {short_repr(name)}")
    level, promised = parse_level(epsilon), parse_delta(delta)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError("epsilon must be > 0: telling stable datasets from others costs some epsilon")
    if promised == 0:
        raise ValueError("delta must be > 0: a refusal that some datasets never meet cannot be hidden at delta = 0")
    if promised == 1:
        raise ValueError("delta must be < 1: at delta = 1 every algorithm is private and nothing is promised")
    if name == "optimal":
        return _optimal(level, promised, parse_inner_budget(inner_budget, level))
    if inner_budget is not None:
        raise ValueError(
            f"inner_budget is for calibration='optimal'; {name!r} shares epsilon in three, as its proof says"
        )
    return _tight(level, promised) if name == "tight" else _paper(level, promised)


def parse_inner_budget(inner_budget: Any, level: PrivacyLevel) -> tuple[Fraction, Fraction]:
    """The two shares, exactly."""
    if inner_budget is None:
        return INNER_BUDGET
    accepted = "two shares, of epsilon in (0, 1/2) and of delta in (0, 1), such as ('1/10', '1/2')"
    if not isinstance(inner_budget, (tuple, list)) or len(inner_budget) != 2:
        raise TypeError(f"inner_budget must be {accepted}; got {short_repr(inner_budget)}")
    of_epsilon, of_delta = (parse_exact(share, "inner_budget", accepted) for share in inner_budget)
    if not (0 < of_epsilon < Fraction(1, 2) and 0 < of_delta < 1):
        raise ValueError(f"inner_budget must be {accepted}; got {short_repr(inner_budget)}")
    if not level.exponent and of_epsilon.denominator > MOST_ROOTS:
        raise ValueError(
            f"inner_budget={short_repr(inner_budget)}: where epsilon is the logarithm of a fraction, its share must be "
            f"a fraction with a denominator of at most {MOST_ROOTS}, such as '1/10' or Fraction(1, 20)"
        )
    return of_epsilon, of_delta


def _paper(level: PrivacyLevel, delta: Fraction) -> Calibration:
    """Algorithm 1 as printed: epsilon / 3 for everything, delta-bar = delta / (e^2eb + e^eb + 2), 4 kappa deletions."""
    inner = level_root(level, 3)
    low, high = _enclosed(inner)
    return _from_laplace("paper", level, delta, inner, _rounded_down(delta / (high * high + high + 2), low == high))


def _tight(level: PrivacyLevel, delta: Fraction) -> Calibration:
    """Algorithm 1 with delta-bar = delta / (2 + e^eb) and the least kappa whose table has ends of at most delta-bar."""
    inner = level_root(level, 3)
    low, high = _enclosed(inner)
    return _from_laplace("tight", level, delta, inner, _rounded_down(delta / (2 + high), low == high))


def _from_laplace(
    name: CalibrationName, level: PrivacyLevel, delta: Fraction, inner: PrivacyLevel, inner_delta: Fraction
) -> Calibration:
    try:
        table = _core.TruncatedDiscreteLaplaceTable(core_level(inner), inner_delta, name == "tight")
    except BudgetError:
        raise
    except ValueError as error:
        raise ValueError(
            f"calibration={name!r} draws noise at a third of epsilon and at delta={float(inner_delta):.3g}, and for "
            f"these {error}; calibration='optimal' draws none"
        ) from None
    cumulative = [0]
    for numerator in table.numerators:
        cumulative.append(cumulative[-1] + numerator)
    return Calibration(
        name=name,
        level=level,
        delta=delta,
        noise_level=inner,
        noise_delta=inner_delta,
        inner_level=inner,
        inner_delta=inner_delta,
        deletions=4 * table.kappa,
        kappa=table.kappa,
        refusal=tuple(cumulative),
        _table=table,
    )


def _optimal(level: PrivacyLevel, delta: Fraction, shares: tuple[Fraction, Fraction]) -> Calibration:
    """The fastest rise of refusals that there is with what comparing kept sets leaves of epsilon and delta."""
    of_epsilon, of_delta = shares
    power = of_epsilon.numerator
    inner = level_root(PrivacyLevel(level.ratio**power, level.exponent * power), of_epsilon.denominator)
    noise = PrivacyLevel(level.ratio / inner.ratio**2, level.exponent - 2 * inner.exponent)
    low, high = _enclosed(inner)
    noise_delta = delta * (1 - of_delta)
    table = _core.RefusalTable(core_level(noise), noise_delta)
    refusal = tuple(table.numerators)
    return Calibration(
        name="optimal",
        level=level,
        delta=delta,
        noise_level=noise,
        noise_delta=noise_delta,
        inner_level=inner,
        inner_delta=_rounded_down((delta - noise_delta) / (1 + high), low == high),
        deletions=2 * (len(refusal) - 1) - 2,
        kappa=None,
        refusal=refusal,
        _table=table,
    )


def _enclosed(level: PrivacyLevel) -> tuple[Fraction, Fraction]:
    """Fractions around e^epsilon, equal when it is rational."""
    if not level.exponent:
        return level.ratio, level.ratio
    return _core.exp_bounds(core_level(level), PROOF_BITS)


def _rounded_down(value: Fraction, exact: bool) -> Fraction:
    """The value itself if it is exact, else its first `ROOT_BITS` significant bits."""
    if exact:
        return value
    shift = ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    return value * Fraction(2) ** shift // 1 / Fraction(2) ** shift


def _check_levels(calibration: Calibration) -> None:
    """The inequalities between levels that the proofs start from, in rationals."""
    noise, inner, level = calibration.noise_level, calibration.inner_level, calibration.level
    (noise_low, _), (low, high) = _enclosed(noise), _enclosed(inner)
    holds = (
        min(noise_low, low) >= 1  # the proofs use that a larger mass pays for a smaller one
        and noise.ratio * inner.ratio**2 <= level.ratio
        and noise.exponent + 2 * inner.exponent <= level.exponent
        and min(calibration.inner_delta, calibration.noise_delta) > 0
        and (1 + high) * calibration.inner_delta + calibration.noise_delta <= calibration.delta
        and calibration.deletions >= 2 * calibration.largest
    )
    if not holds:
        raise ArithmeticError("the calibration does not keep its promise; please report this")


def _check_refusal(calibration: Calibration) -> None:
    """What the proofs use of the tabulated probabilities, in integers over 2^128."""
    chain = calibration.refusal
    low, _ = _enclosed(calibration.noise_level)
    slack = calibration.noise_delta * TOTAL
    steps = list(itertools.pairwise(chain))
    if calibration.kappa is None:
        holds = all(
            before <= after <= low * before + slack and TOTAL - before <= low * (TOTAL - after) + slack
            for before, after in steps
        )
    else:
        sizes = [after - before for before, after in steps]
        pairs = list(itertools.pairwise(sizes))
        holds = all(0 < a <= low * b and b <= low * a for a, b in pairs) and max(sizes[0], sizes[-1]) <= slack
    if not (holds and chain[0] == 0 and chain[-1] == TOTAL):
        raise ArithmeticError("the table does not keep its promise; please report this")


# --- the mechanism


class DelStab:
    """A user-level private version of any finite algorithm.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        What to run on the n - D users that are kept. It needs no privacy, symmetry or accuracy for DelStab to be
        private, but its pmf must be deterministic: the same kept users, the same masses, whatever was asked before. An
        audit or a diagnostic may notice a pmf that is not; a release cannot. It is asked for one dataset at a time
        (``pmf_batch`` is never used, since batches change the last bits of floats), and float masses are divided by
        their exact sum. Where it raises or returns what is no pmf, nothing is compatible.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Promised epsilon, > 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Promised delta, in (0, 1), taken exactly.
    calibration : {"optimal", "tight", "paper"}
        "paper" is Algorithm 1 as printed, "tight" the same with the delta-bar and kappa that its proof needs,
        "optimal" (default) has refusal probabilities that rise fastest, at four fifths of epsilon, and so leaves out
        fewer users than the others (68 instead of 192 at epsilon = 1, delta = 1e-6). All are proved: see Notes.
    compatibility : {"auto", "exact", "distance"}
        When two kept sets are compatible. "exact": their distributions are indistinguishable at the inner level.
        "distance", for an `AdditiveAlgorithm` and its default: their totals are within a distance at which all totals
        of the public range are. It may refuse more often and takes no time.
    max_distinct_users : int, optional
        For symmetric algorithms: how many distinct users (statistics, scores) may remain when S is removed, public.
        More count as unstable, so that S removes all but the best ones. How many distinct users a dataset has is
        private, so no limit of the engine may depend on it: give the number of values that a user can have, and sizes
        are refused by n and D alone. By default all, for few users, or as many as n and D allow: see `plan`. So users
        who all differ may be refused for sure, which a warning says.
    inner_budget : (number, number), optional
        For "optimal": the shares of epsilon, in (0, 1/2), and of delta, in (0, 1), at which kept sets are compared;
        public. By default (1/10, 1/2). A smaller share of epsilon leaves out fewer users, down to 54 instead of 68 at
        epsilon = 1, delta = 1e-6, and asks for kept sets that are more alike: `compare_inner_budgets` says what a
        share does for an algorithm, before there are data.

    Attributes
    ----------
    outputs : tuple
        The algorithm's outputs and `BOTTOM`.
    calibration : Calibration
        The numbers of the privacy proof, with the page that holds it.

    Warns
    -----
    SureRefusalWarning
        Where users who all differ are refused for sure, however many they are.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the replacement of one user's whole data; n is public and the algorithm may
    use it. Budget: (epsilon_T, delta_T) hides the smallest stable size and (epsilon_L, delta_L) bounds what a kept set
    shows, with epsilon_T + 2 epsilon_L <= epsilon and delta_T + (1 + e^epsilon_L) delta_L <= delta, checked in
    rationals when a DelStab is made. Proof: docs/proofs/delstab_optimal.md, delstab_tight.md, delstab_paper.md.

    *What is private.* `release` only. `smallest_stable_size`, `refusal_probability`, `output_distribution`, `pmf` and
    `explain` are diagnostics: they show the data.

    *Users* are read as the canonical values of plain types, see `userdp.exact.encoding`; the algorithm is shown these
    and nothing else. *Errors of a release* depend on n and the arguments only. Who is no tuple of such values is
    compatible with nobody, like one on whom a statistic fails; diagnostics raise, so try one on data of your own first.
    **Its running time depends on the data**; publish no timings, and do not let a time limit decide whether there is an
    answer.

    *Engines.* "labeled" takes any algorithm and users in index order: 25 users, or 73 of whom one is kept; "multiset"
    takes a `SymmetricAlgorithm` or `SummedScoreEM` and counts equal users (equal scores); "additive" takes windows of
    the sorted statistics, for thousands of users. Which one runs depends on the algorithm's type and n.

    *Bounded work.* A release that `plan` admits ends with an answer or `BOTTOM` for every dataset of n users: the plan
    states how much is computed at most, from n, D and the arguments alone, and refuses what would be more (decision
    0022). Memory is eight bytes for each of ``plan.cells`` cells, and as much for each of ``plan.kept_sets`` times the
    outputs (of float masses; up to 2^24 such numbers are remembered beside).

    References
    ----------
    [GKKMMZ23, Lemma 18], [GKKMMZ23, Algorithm 1] and [GKKMMZ23, Observation 36].

    Examples
    --------
    Nine users vote on whether to keep a shared calendar. The majority of five of them protects nobody, DelStab does:

    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> def majority(total, n_users):
    ...     return ["0.99", "0.01"] if 2 * total < n_users else ["0.01", "0.99"]
    >>> votes = AdditiveAlgorithm(("no", "yes"), lambda user: user[0], majority, statistic_range=(0, 1))
    >>> release = DelStab(votes, epsilon=8, delta="0.01", compatibility="exact")
    >>> release.deletions, release.outputs
    (4, ('no', 'yes', BOTTOM))
    >>> users = ((1,),) * 8 + ((0,),)
    >>> release.refusal_probability(users)
    Fraction(0, 1)
    >>> release.output_distribution(users).fractions()
    [Fraction(1, 100), Fraction(99, 100), Fraction(0, 1)]
    >>> release.release(users) in release.outputs
    True
    >>> print(str(release.explain(users)).splitlines()[1].strip())
    Probability of a refusal  0 exactly
    """

    def __init__(
        self,
        algorithm: Any,
        *,
        epsilon: Epsilon,
        delta: Delta,
        calibration: CalibrationName = "optimal",
        compatibility: Compatibility = "auto",
        max_distinct_users: int | None = None,
        inner_budget: InnerBudget | None = None,
    ) -> None:
        inner_outputs = outputs_of(algorithm)
        if any(output is BOTTOM for output in inner_outputs):
            raise ValueError("algorithm: BOTTOM is among its outputs; it stands for a refusal here")
        check_arguments(algorithm, compatibility, max_distinct_users)
        self._arguments: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "calibration": calibration,
            "compatibility": compatibility,
            "max_distinct_users": max_distinct_users,
            "inner_budget": inner_budget,
        }
        self.algorithm = algorithm
        self.calibration = calibrate(calibration, epsilon, delta, inner_budget)
        # Levels that cannot be compared are refused here.
        InnerPmfs.of(algorithm, self.calibration.inner_level, self.calibration.inner_delta)
        self.compatibility, self.max_distinct_users = compatibility, max_distinct_users
        self.outputs: tuple[Hashable, ...] = (*inner_outputs, BOTTOM)
        self.name = f"DelStab of {mechanism_name(algorithm)}"
        self._totals: dict[int, TotalPmfs] = {}
        self._choices: dict[int, EngineChoice] = {}
        self._told: set[int] = set()
        with suppress(BudgetError):  # which `plan` raises, where more users need not be too many
            if self.is_sure_to_refuse(self.min_users):
                self._warn(f"any {self.min_users:,} users or more", self.min_users)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(DelStab, self.algorithm, **self._arguments), ()

    def __repr__(self) -> str:
        promised = ", ".join(f"{name}={value!r}" for name, value in list(self._arguments.items())[:3])
        return f"<{self.name}: {promised}, {self.deletions} deletions>"

    @property
    def symmetric(self) -> bool:
        """Whether the output distribution depends on the multiset of users only, as for a `SymmetricAlgorithm`.

        A subclass with a computation of its own says so anew, with ``symmetric = True`` beside it.
        """
        return is_symmetric(self.algorithm) and all(goes_with(self, "symmetric", name) for name in _COMPUTED_BY)

    @property
    def deletions(self) -> int:
        """D, the number of users left out."""
        return self.calibration.deletions

    @property
    def min_users(self) -> int:
        """D + 1, the least number of users of whom anyone is kept. With D users the algorithm runs on nobody."""
        return self.calibration.deletions + 1

    @property
    def kappa(self) -> int | None:
        """Half the largest R1 of Algorithm 1; None for "optimal", which draws none."""
        return self.calibration.kappa

    @property
    def epsilon_bar(self) -> Fraction | LogRatio:
        """The inner level epsilon_L, rounded down where e^epsilon is a fraction with no rational root."""
        return as_epsilon(self.calibration.inner_level)

    @property
    def delta_bar(self) -> Fraction:
        """The inner delta_L."""
        return self.calibration.inner_delta

    @property
    def cost(self) -> PrivacyCost:
        """What every release costs; give it to a ledger before a release."""
        return PrivacyCost(as_epsilon(self.calibration.level), self.calibration.delta, neighbors="replace")

    def plan(self, n_users: int) -> EngineChoice:
        """The engine and the compatibility for datasets of n users; public.

        Parameters
        ----------
        n_users : int
            n.

        Returns
        -------
        EngineChoice
            With ``engine``, ``compatibility`` and ``max_distinct_users``, and what a release takes at most, whatever
            the data: ``choices``, ``kept_sets``, ``work``, ``cells`` and ``steps``.

        Raises
        ------
        ValueError
            For fewer users than deletions.
        BudgetError
            For more than any engine can handle, with an estimate and the way out.

        Warns
        -----
        SureRefusalWarning
            Where n users who all differ are refused for sure: until as many kinds of them are left as a stable pool may
            have, more must go than S may have. Once for each n.

        Examples
        --------
        >>> from userdp.algorithms import SymmetricAlgorithm
        >>> constant = SymmetricAlgorithm((0, 1), lambda kept: ["1/2", "1/2"])
        >>> choice = DelStab(constant, epsilon=1, delta="1e-6").plan(70)
        >>> choice.max_distinct_users, choice.choices, choice.kept_sets
        (5, 73815, 15)
        """
        choice = self._choice(n_users)
        if n_users not in self._told:
            self._told.add(n_users)
            if self.is_sure_to_refuse(n_users):
                self._warn(f"{n_users:,} users", n_users)
        return choice

    def is_sure_to_refuse(self, n_users: int) -> bool:
        """Whether n users who all differ, as far as the algorithm can tell them apart, are refused for sure; public.

        Parameters
        ----------
        n_users : int
            n, for which `plan` has an engine.

        Returns
        -------
        bool
            True where so many of them must go, until at most ``plan(n).max_distinct_users`` kinds are left, that no S
            is as large.

        Examples
        --------
        >>> from userdp.algorithms import SymmetricAlgorithm
        >>> constant = SymmetricAlgorithm((0, 1), lambda kept: ["1/2", "1/2"])
        >>> [DelStab(constant, epsilon=8, delta="0.01").is_sure_to_refuse(n) for n in (12, 100)]
        [False, True]
        """
        return self._refuses(n_users, self._choice(n_users).max_distinct_users)

    def _refuses(self, n_users: int, kinds: int) -> bool:
        if self._choice(n_users).engine != "multiset" or n_users == self.deletions:
            return False
        return removals(n_users, kinds_of_users(self.algorithm), kinds) > self.calibration.largest

    def _warn(self, who: str, n_users: int) -> None:
        """Warn that these are refused for sure, if they all differ, and say what would do."""
        kinds, largest = self._choice(n_users).max_distinct_users, self.calibration.largest
        ways = [
            f"an algorithm of users' data in at most {_kinds(kinds)}",
            "an AdditiveAlgorithm with compatibility='distance', which takes any number of kinds",
        ]
        # A larger epsilon or delta is no way: it lets S be smaller, which is what refuses.
        told_apart = kinds_of_users(self.algorithm)
        differ = "who all differ" if told_apart >= n_users else f"of all {_kinds(told_apart)}, as many of each"
        more = most_kinds(self.algorithm, n_users, self.deletions, largest)
        if not self._refuses(n_users, more):
            ways.insert(0, f"max_distinct_users={more}")
        warn(
            f"{self.name} is sure to refuse {who} {differ}: it decides for at most {_kinds(kinds)} of users, and "
            f"leaves out at most {largest:,} users until so few are left. What would do: {'; '.join(ways)}. With few "
            "kinds of users nothing is lost",
            SureRefusalWarning,
        )

    def _choice(self, n_users: int) -> EngineChoice:
        n_users = check_count(n_users, "n_users", 0)
        if n_users < self.deletions:
            raise ValueError(
                f"dataset has n_users={n_users}; at this epsilon and delta {self.deletions} users are left out, so at "
                f"least {self.deletions} are needed, and {self.min_users} to keep anyone"
            )
        if n_users not in self._choices:
            self._choices[n_users] = choose_engine(
                self.algorithm,
                n_users,
                self.deletions,
                self.calibration.largest,
                self.compatibility,
                self.max_distinct_users,
            )
        return self._choices[n_users]

    def certified_distance(self, n_users: int) -> int:
        """The distance within which all totals of n - D users are indistinguishable at the inner level; public.

        Parameters
        ----------
        n_users : int
            n, for which an `AdditiveAlgorithm` is compared by distances: see `plan`.

        Returns
        -------
        int
            -1 if not even an algorithm's distribution and itself are, as where its `pmf_error` is large.

        Raises
        ------
        ValueError, BudgetError
            Where no distances are compared.
        RuntimeError
            Where the algorithm fails on a total.
        """
        if self.plan(n_users).engine != "additive":
            raise ValueError(
                f"n_users={n_users}: only an AdditiveAlgorithm with compatibility='distance' has distances"
            )
        inner = InnerPmfs.of(self.algorithm, self.calibration.inner_level, self.calibration.inner_delta)
        return self._certified(n_users, inner).distance

    def release(self, dataset: Any, random_state: int | None = None) -> Hashable:
        """Release an output, privately.

        Parameters
        ----------
        dataset : sequence of users
            n >= D users, each a tuple of examples.
        random_state : int, optional
            For tests only: makes the draw reproducible, and void of privacy.

        Returns
        -------
        hashable
            One of `outputs`; `BOTTOM` is a refusal.

        Raises
        ------
        ValueError, BudgetError
            For too few or too many users.
        TypeError
            For a dataset that is no sequence, such as a set.

        Warns
        -----
        InsecureRandomnessWarning
            For an integer `random_state`.

        Notes
        -----
        (epsilon, delta)-DP for the replacement of one user; see the class. Two releases on the same users cost twice.
        """
        source = source_of(random_state)
        users = private_users(dataset, "dataset")
        stability = self._stability(users, self.calibration.largest, strict=False, progress=False)
        size = self.calibration.draw_size(stability.smallest, source)
        if size is None:
            return BOTTOM
        return self.outputs[stability.draw(size, source)]

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The exact distribution of `release` over `outputs`; **not private**. So a DelStab can be audited."""
        users = read_users(dataset, "dataset")
        stability = self._stability(users, self.calibration.largest, strict=True, progress=False)
        return exact_distribution(stability, self.calibration, self.outputs)

    def smallest_stable_size(self, dataset: Any, *, progress: Progress = None) -> int | None:
        """The size r* of the smallest stable set of users; **not private**.

        Parameters
        ----------
        dataset : sequence of users
            n >= D users.
        progress : bool, callable or None
            A progress bar; see `userdp.audit.audit_user_level`.

        Returns
        -------
        int or None
            None if no set of at most D users will do, because the algorithm fails.
        """
        return self._stability(read_users(dataset, "dataset"), self.deletions, strict=True, progress=progress).smallest

    def refusal_probability(self, dataset: Any, *, progress: Progress = None) -> Fraction:
        """The probability of `BOTTOM`, exactly; **not private**. Arguments as for `smallest_stable_size`."""
        smallest = self._stability(
            read_users(dataset, "dataset"), self.calibration.largest, strict=True, progress=progress
        ).smallest
        return Fraction(self.calibration.refusal_numerator(smallest), TOTAL)

    def output_distribution(
        self, dataset: Any, *, exact: bool | Literal["auto"] = "auto", progress: Progress = None
    ) -> Pmf | PmfBounds:
        """The distribution of `release` on a dataset; **not private**.

        Parameters
        ----------
        dataset : sequence of users
            n >= D users.
        exact : bool or "auto"
            True for the exact distribution, False for certified bounds; "auto" gives the exact distribution up to a
            size that takes seconds, then bounds.
        progress : bool, callable or None
            A progress bar; see `userdp.audit.audit_user_level`.

        Returns
        -------
        Pmf or PmfBounds
            Over `outputs`.

        Raises
        ------
        BudgetError
            For an exact distribution that is too large.
        ValueError, RuntimeError, TypeError
            Where the pmf is not deterministic, or a user's statistic or scores fail.
        """
        if exact not in (True, False, "auto"):
            raise ValueError(f"exact must be True, False or 'auto'; got {short_repr(exact)}")
        users = read_users(dataset, "dataset")
        with progress_bar(progress, "deciding stability") as callback:
            stability = self._stability(users, self.calibration.largest, strict=True, progress=callback)
            bounds = None
            if exact is not True:
                bounds = bounded_pmf(
                    stability,
                    self.calibration,
                    self.outputs,
                    self.plan(len(users)),
                    forced=exact is False,
                    report=callback,
                )
            return exact_distribution(stability, self.calibration, self.outputs) if bounds is None else bounds

    def explain(self, dataset: Any, *, progress: Progress = None) -> Explanation:
        """An explanation, to be printed, why this dataset is refused or not; **not private**."""
        users = read_users(dataset, "dataset")
        with progress_bar(progress, "deciding stability") as callback:
            stability = self._stability(users, self.deletions, strict=True, progress=callback)
            return explained(
                self.algorithm,
                self.calibration,
                self.plan(len(users)),
                users,
                stability,
                lambda: QuietDelStab(
                    self.algorithm, **{**self._arguments, "calibration": "optimal"}
                ).refusal_probability(users, progress=False),
                callback,
            )

    def _stability(self, users: PrivateUsers, limit: int, *, strict: bool, progress: Progress) -> AnyStability:
        """The smallest stable sets of canonical users, of at most `limit` users each."""
        choice = self.plan(len(users))
        calibration = self.calibration
        inner = InnerPmfs.of(self.algorithm, calibration.inner_level, calibration.inner_delta, strict=strict)
        with progress_bar(progress, "deciding stability") as callback:
            totals = self._certified(len(users), inner) if choice.engine == "additive" else None
            return find_stability(self.algorithm, users, choice, self.deletions, limit, inner, totals, callback)

    def _certified(self, n_users: int, inner: InnerPmfs) -> TotalPmfs:
        """The certified totals for n users; data independent, so kept."""
        if n_users not in self._totals:
            kept = n_users - self.deletions
            self._totals[n_users] = certified_totals(self.algorithm, kept, self.deletions, inner)
        return self._totals[n_users]


class QuietDelStab(DelStab):
    """One that is made for its numbers alone, and warns of nothing."""

    def _warn(self, who: str, n_users: int) -> None:
        pass


_COMPUTED_BY = ("plan", "_choice", "_stability", "_certified")
"""The methods that `pmf` and `release` rest on, beside the calibration (decision 0021)."""


# --- diagnostics, which are not private: the distribution of a release, and why it is refused

EXACT_ROWS = 2000
"""Kept sets up to which "auto" gives the exact distribution."""


@dataclass(frozen=True)
class PmfBounds:
    """Certified bounds of the probabilities of a release.

    Attributes
    ----------
    outputs : tuple
        The k + 1 outputs, `BOTTOM` last.
    lower, upper : ndarray of float64, shape (k + 1,)
        Around the exact probabilities; the widths sum to at most 1e-12.
    layer_sizes : tuple of int
        The number of stable sets of each size 0, 1, ..., exactly.
    engine, compatibility : str
        What ran: see `DelStab.plan`.
    smallest_stable_size : int or None
        r*; None if it is so large that the refusal is sure.
    """

    outputs: tuple[Hashable, ...]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    layer_sizes: tuple[int, ...]
    engine: str
    compatibility: str
    smallest_stable_size: int | None


def exact_distribution(stability: AnyStability, calibration: Calibration, outputs: tuple[Hashable, ...]) -> Pmf:
    """The exact distribution of the release."""
    mixture = calibration.mixture(stability.smallest)
    if not any(mixture):
        return Pmf(outputs, (0,) * (len(outputs) - 1) + (1,))
    weights, total = stability.distribution(mixture, TOTAL)
    whole = [*weights, total - sum(weights)]
    divisor = math.gcd(*whole)
    return Pmf(outputs, tuple(weight // divisor for weight in whole))


def bounded_pmf(
    stability: AnyStability,
    calibration: Calibration,
    outputs: tuple[Hashable, ...],
    choice: EngineChoice,
    *,
    forced: bool,
    report: ProgressCallback,
) -> PmfBounds | None:
    """Bounds of the pmf of the release, where they are cheaper than itself; None where they are not."""
    if not isinstance(stability, Stability) or stability.smallest is None or stability.vectors is None:
        return None
    if not forced and len(stability.vectors) <= EXACT_ROWS:
        return None
    mixture = calibration.mixture(stability.smallest)
    lower, upper = stability.bounds(mixture, TOTAL, report)
    refusal = Fraction(TOTAL - sum(mixture), TOTAL)
    return PmfBounds(
        outputs=outputs,
        lower=np.append(lower, round_down(refusal)),
        upper=np.append(upper, round_up(refusal)),
        layer_sizes=stability.layer_sizes(calibration.largest),
        engine=choice.engine,
        compatibility=choice.compatibility,
        smallest_stable_size=stability.smallest,
    )


def explained(
    algorithm: Any,
    calibration: Calibration,
    choice: EngineChoice,
    users: Dataset,
    stability: AnyStability,
    optimal_refusal: Callable[[], Fraction],
    report: ProgressCallback,
) -> Explanation:
    """Explain the outcome on a dataset; `optimal_refusal` is the refusal probability of the optimal calibration."""
    refusal = Fraction(calibration.refusal_numerator(stability.smallest), TOTAL)
    spread = distance = None
    worst = divergence = None
    if isinstance(stability, WindowStability):
        assert isinstance(algorithm, AdditiveAlgorithm)
        values = sorted(map(algorithm.statistic_of, users))
        spread = sum(values[calibration.deletions :]) - sum(values[: len(values) - calibration.deletions])
        distance = stability.totals.distance
    elif isinstance(stability, Stability):
        inner = InnerPmfs.of(algorithm, calibration.inner_level, calibration.inner_delta)
        worst, divergence = _worst_pair(inner, choice, stability, report)
    return Explanation(
        n_users=len(users),
        deletions=calibration.deletions,
        engine=choice.engine,
        compatibility=choice.compatibility,
        smallest_stable_size=stability.smallest,
        largest_size=calibration.largest,
        refusal_probability=refusal,
        worst=worst,
        worst_divergence=divergence,
        allowed_divergence=calibration.inner_delta,
        spread=spread,
        distance=distance,
        advice=_advice(algorithm, calibration, choice, len(users), refusal, stability.smallest, optimal_refusal)
        if refusal
        else (),
    )


def _worst_pair(
    inner: InnerPmfs, choice: EngineChoice, stability: Stability, report: ProgressCallback
) -> tuple[str | None, Bounds | None]:
    """The two kept sets whose distributions differ most, in words."""
    if stability.pmfs is None or stability.vectors is None:
        return None, None
    if stability.pmfs.incompatible:
        vector = stability.vectors[stability.pmfs.incompatible[0]].tolist()
        return f"the algorithm fails without {_in_words(choice, stability, vector)}", Bounds(1.0, 1.0)
    pair = _core.pairwise_maximum(stability.pmfs.matrix, inner.level, Fraction(1), report)
    if pair is None:
        return None, None
    (first, second, _), lower, upper, *_ = pair
    words = [_in_words(choice, stability, stability.vectors[row].tolist()) for row in (first, second)]
    return f"without {words[0]} and without {words[1]}", Bounds(lower, upper)


def _in_words(choice: EngineChoice, stability: Stability, vector: list[int]) -> str:
    if choice.engine == "labeled":
        positions = [place for place, count in zip(stability.active, vector, strict=True) if count]
        return f"the users at positions {positions}"
    parts = [
        f"{n} of {of} of type {kind}"
        for kind, n, of in zip(stability.active, vector, stability.counts, strict=True)
        if n
    ]
    return ", ".join(parts) or "nobody"


def _advice(
    algorithm: Any,
    calibration: Calibration,
    choice: EngineChoice,
    n_users: int,
    refusal: Fraction,
    smallest: int | None,
    optimal_refusal: Callable[[], Fraction],
) -> tuple[str, ...]:
    """What would lower the probability of a refusal."""
    advice = [
        "more users: each one then weighs less in the algorithm, and the deletions stay as they are",
        "an algorithm with more noise, or with a statistic that one user changes less",
    ]
    kinds = choice.max_distinct_users
    # Of users of too many kinds fewer deletions refuse more.
    if choice.engine != "multiset" or removals(n_users, kinds_of_users(algorithm), kinds) <= calibration.largest:
        advice.insert(1, "a larger epsilon or delta: fewer deletions, and kept sets may differ more")
    if smallest is None:
        advice.append(
            "an algorithm that answers with a pmf on every kept set: it fails on some, or its pmf_error is large"
        )
    if choice.compatibility == "distance":
        advice.append("compatibility='exact', which compares the totals that occur and not all of the public range")
    if choice.engine == "multiset" and choice.max_distinct_users < n_users:
        most = f"at most {choice.max_distinct_users} distinct users, as a pool with more counts as unstable"
        more = most_kinds(algorithm, n_users, calibration.deletions, calibration.largest)
        larger = f"max_distinct_users={more} admits more" if more > choice.max_distinct_users else "that is the limit"
        advice.append(f"{most}; {larger}")
    if calibration.name != "optimal":
        try:
            probability = optimal_refusal()
        except BudgetError:
            return tuple(advice)
        if probability < refusal:
            advice.append(f"calibration='optimal': its probability of a refusal here is {float(probability):.6g}")
    return tuple(advice)


def _kinds(number: int) -> str:
    return f"{number:,} kind{'' if number == 1 else 's'}"
