"""The mechanism DelStab [GKKMMZ23, Algorithm 1]: what it promises, how it releases, and its diagnostics."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from userdp.accounting.cost import PrivacyCost
from userdp.algorithms import Dataset
from userdp.algorithms.evaluation import mechanism_name, outputs_of
from userdp.algorithms.finite import BOTTOM, goes_with, is_symmetric, private_users, read_users
from userdp.delstab.calibration import TOTAL, CalibrationName, calibrate
from userdp.delstab.compatibility import InnerPmfs
from userdp.delstab.diagnostics import PmfBounds, bounded_pmf, exact_distribution, explained
from userdp.delstab.engines import (
    AnyStability,
    Compatibility,
    EngineChoice,
    PrivateUsers,
    check_arguments,
    choose_engine,
    find_stability,
)
from userdp.delstab.windows import TotalPmfs, certified
from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import Delta, Epsilon, LogRatio, short_repr
from userdp.exact.pmf import Pmf
from userdp.report import Explanation
from userdp.runtime import Progress, progress_bar, source_of


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
        are refused by n and D alone. By default all, for few users, or as many as n and D allow: see `plan`.

    Attributes
    ----------
    outputs : tuple
        The algorithm's outputs and `BOTTOM`.
    calibration : Calibration
        The numbers of the privacy proof, with the page that holds it.

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
    >>> print(str(release.explain(users)).splitlines()[1])
    smallest stable set: 0; above 2 a refusal is sure
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
        }
        self.algorithm = algorithm
        self.calibration = calibrate(calibration, epsilon, delta)
        InnerPmfs.of(algorithm, self.calibration)  # refuses levels that cannot be compared
        self.compatibility, self.max_distinct_users = compatibility, max_distinct_users
        self.outputs: tuple[Hashable, ...] = (*inner_outputs, BOTTOM)
        self.name = f"DelStab of {mechanism_name(algorithm)}"
        self._totals: dict[int, TotalPmfs] = {}
        self._choices: dict[int, EngineChoice] = {}

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
        return PrivacyCost(as_epsilon(self.calibration.level), self.calibration.delta)

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

        Examples
        --------
        >>> from userdp.algorithms import SymmetricAlgorithm
        >>> constant = SymmetricAlgorithm((0, 1), lambda kept: ["1/2", "1/2"])
        >>> choice = DelStab(constant, epsilon=1, delta="1e-6").plan(70)
        >>> choice.max_distinct_users, choice.choices, choice.kept_sets
        (5, 73815, 15)
        """
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
        masses = stability.draw(size, source)
        scale = math.lcm(*(mass.denominator for mass in masses))
        return self.outputs[source.weighted([int(mass * scale) for mass in masses])]

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
                lambda: DelStab(self.algorithm, **{**self._arguments, "calibration": "optimal"}).refusal_probability(
                    users, progress=False
                ),
                callback,
            )

    def _stability(self, users: PrivateUsers, limit: int, *, strict: bool, progress: Progress) -> AnyStability:
        """The smallest stable sets of canonical users, of at most `limit` users each."""
        choice = self.plan(len(users))
        inner = InnerPmfs.of(self.algorithm, self.calibration, strict=strict)
        with progress_bar(progress, "deciding stability") as callback:
            totals = self._certified(len(users), inner) if choice.engine == "additive" else None
            return find_stability(self.algorithm, users, choice, self.deletions, limit, inner, totals, callback)

    def _certified(self, n_users: int, inner: InnerPmfs) -> TotalPmfs:
        """The certified totals for n users; data independent, so kept."""
        if n_users not in self._totals:
            kept = n_users - self.deletions
            self._totals[n_users] = certified(self.algorithm, kept, self.deletions, inner)
        return self._totals[n_users]


_COMPUTED_BY = ("plan", "_stability", "_certified")
"""The methods that `pmf` and `release` rest on, beside the calibration (decision 0021)."""
