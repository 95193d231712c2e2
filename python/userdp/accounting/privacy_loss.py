"""Privacy loss distributions: what many releases cost together, as bounds of delta and epsilon that are proved.

A release is a pair of distributions, with the mass of the first at every loss. The core composes such masses in
integers, and knows what rounding has cost: docs/proofs/exact_composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from userdp import _core
from userdp.accounting.losses import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    SampledGaussianLoss,
    hockey_stick_of,
    largest_pair,
    weights_of,
)
from userdp.exact.epsilon import core_level, float_above
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    PrivacyLevel,
    check_count,
    nonzero_level,
    parse_delta,
    parse_exact,
    parse_level,
    parse_positive,
    round_down,
    round_up,
    short_repr,
)
from userdp.exact.pmf import PmfLike, whole_multiples
from userdp.exceptions import BudgetError
from userdp.runtime import progress_bar

Neighbors: TypeAlias = Literal["replace", "add-remove"]
NEIGHBORS = ("replace", "add-remove")

MAX_TERMS = 2**22
CERTIFIED_TERMS = 2**20
MOST_LIMBS = 18
START = Fraction(1, 1000)
"""Number of releases times the squared resolution, at first: the two bounds are within about 0.003 then."""
MOST_MU_SQUARED = 2**8
LATTICE_SHARE = Fraction(1, 10**12)
"""How far bounds of delta are apart, as a share of it, where nothing is moved to a grid."""
FINEST = 2**40
"""The most levels for a unit of loss."""
MOST_RELEASES = 2**40
"""Of a kind, in a composition."""
WIDER = Fraction(1, 2**192)
"""Where masses are too narrow for a lattice, they are made as wide as for a delta that is so much smaller."""
LEAST_DELTA = Fraction(1, 2**1000)
"""Of smaller ones, answers may say no more than that."""


@dataclass(frozen=True, slots=True, repr=False, init=False)
class PrivacyLossDistribution:
    """Privacy loss distributions of releases, to be composed, and asked for delta and epsilon.

    An object is a list of releases; nothing is computed before a question is asked. Answers are `Bounds`: floats at or
    below, and at or above, the exact number. Products of masses are exact in integers of 120 bits and more, so that
    a delta of 1e-300 is as reliable as one of 1e-6.

    Make one by `from_pmfs`, `from_pairs`, `pure`, `discrete_laplace`, `discrete_gaussian`, `bounded_range` or
    `gaussian`.

    Notes
    -----
    **What a composition covers.** `pure`, the discrete noises, `bounded_range`, `gaussian` and `from_pairs` bound a
    release on *any* two neighbors, in both orders. Each release may then be chosen by what the ones before it released;
    number, order and parameters are fixed in advance (`PrivacyLedger` is for parameters that are chosen on the way).
    `from_pmfs` is one release on *two given datasets*: a composition of these is about the same two datasets all the
    time, in one order, and answers are the larger of both orders. With several pairs of neighbors, and for adaptive
    choices, use `from_pairs`.

    **Lower bounds** are those of the pairs that were composed. `attained` says whether such a pair is that of a real
    release; for `bounded_range`, `from_pairs` and `poisson` it need not be.

    Proofs and sources: docs/proofs/exact_composition.md.

    Examples
    --------
    >>> once = PrivacyLossDistribution.pure("0.1")
    >>> once.self_compose(1000).epsilon("1e-6")
    Bounds(lower=19.344671447993044, upper=19.344671447993047)
    """

    _parts: tuple[tuple[ReleaseLoss, int], ...]
    neighbors: Neighbors

    def __init__(self) -> None:
        raise TypeError(
            "make a PrivacyLossDistribution by from_pmfs, from_pairs, pure, discrete_laplace, ... or gaussian"
        )

    @classmethod
    def _of(cls, parts: Iterable[tuple[ReleaseLoss, int]], neighbors: Any) -> PrivacyLossDistribution:
        if not isinstance(neighbors, str) or neighbors not in NEIGHBORS:
            raise ValueError(f"neighbors must be 'replace' or 'add-remove'; got {short_repr(neighbors)}")
        counts: dict[ReleaseLoss, int] = {}
        mu_squared, gaussians = Fraction(0), 0
        for part, count in parts:
            if isinstance(part, GaussianLoss):
                # Gaussian releases are one, with the sum of their mu^2.
                mu_squared, gaussians = mu_squared + count * part.mu_squared, gaussians + count * part.count
            else:
                counts[part] = counts.get(part, 0) + count
        if counts and max(counts.values()) > MOST_RELEASES:
            raise ValueError(
                f"count: there may be at most 2**40 releases of a kind; got {short_repr(max(counts.values()))}"
            )
        if mu_squared > MOST_MU_SQUARED:
            raise ValueError(
                f"Gaussian releases together must have sum((sensitivity / sigma)^2) <= {MOST_MU_SQUARED}; got "
                f"{float(mu_squared):.6g}, whose epsilon is above {float(mu_squared) / 2:.3g}"
            )
        if mu_squared:
            counts[GaussianLoss(mu_squared, gaussians)] = 1
        made = object.__new__(cls)
        object.__setattr__(made, "_parts", tuple(counts.items()))
        object.__setattr__(made, "neighbors", neighbors)
        return made

    @classmethod
    def from_pmfs(cls, p: PmfLike, q: PmfLike, *, neighbors: Neighbors = "replace") -> PrivacyLossDistribution:
        """The privacy loss of one release on two given datasets.

        Parameters
        ----------
        p, q : array-like of shape (k,), or Pmf
            Its output distributions on the two datasets, over the same outputs. Floats are the dyadic numbers they are,
            divided by their exact sum.
        neighbors : {"replace", "add-remove"}
            How the two datasets differ; for "add-remove" p is the one with the user.

        Raises
        ------
        ValueError
            For masses that are negative or do not sum to 1, and for different lengths.

        Examples
        --------
        >>> once = PrivacyLossDistribution.from_pmfs([0.75, 0.25], [0.25, 0.75])
        >>> once.delta(0)
        Bounds(lower=0.5, upper=0.5)
        """
        p_weights, q_weights = weights_of(p, "p"), weights_of(q, "q")
        if len(p_weights) != len(q_weights):
            raise ValueError(f"q has {len(q_weights)} masses where p has {len(p_weights)}; they must match")
        return cls._of([(PairLoss(p_weights, q_weights), 1)], neighbors)

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[PmfLike, PmfLike]], *, neighbors: Neighbors = "replace"
    ) -> PrivacyLossDistribution:
        """The least pair above all given ones, in both orders: of a release on any of several pairs of neighbors.

        Parameters
        ----------
        pairs : iterable of (p, q)
            Output distributions on all pairs of neighbors, each as for `from_pmfs`. One order of each will do.
        neighbors : {"replace", "add-remove"}
            How neighbors differ.

        Returns
        -------
        PrivacyLossDistribution
            Of a pair whose hockey-stick divergence is the largest of the given ones at every level. It need not be the
            pair of any two neighbors.

        Raises
        ------
        BudgetError
            Where all pairs have more than 2**17 outcomes together.

        Examples
        --------
        >>> one, other = (["1/2", "1/3", "1/6"], ["1/3", "1/2", "1/6"]), (["2/3", "1/3"], ["1/2", "1/2"])
        >>> PrivacyLossDistribution.from_pairs([one, other]).delta(0)
        Bounds(lower=0.16666666666666666, upper=0.16666666666666669)
        """
        listed = [(weights_of(p, "p"), weights_of(q, "q")) for p, q in _twos(pairs, "pairs", "pairs (p, q) of masses")]
        for index, (p, q) in enumerate(listed):
            if len(p) != len(q):
                raise ValueError(f"pairs: q has {len(q)} masses where p has {len(p)}, in the pair at index {index}")
        p, q = largest_pair([*listed, *((q, p) for p, q in listed)])
        return cls._of([(PairLoss(p, q, attained=False, symmetric=True), 1)], neighbors)

    @classmethod
    def pure(cls, epsilon: Epsilon, delta: Delta = 0, *, neighbors: Neighbors = "replace") -> PrivacyLossDistribution:
        """The privacy loss of every (epsilon, delta)-DP release: that of randomized response.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio
            At least 0, taken exactly.
        delta : float, int, Fraction or decimal string
            In [0, 1), taken exactly.
        neighbors : {"replace", "add-remove"}
            For which it is private.
        """
        level, exact = parse_level(epsilon), parse_delta(delta)
        if exact == 1:
            raise ValueError("delta must be below 1; a release with delta = 1 promises nothing")
        return cls._of([(PureLoss(level, exact), 1)], neighbors)

    @classmethod
    def discrete_laplace(
        cls, epsilon_per_unit: Epsilon, shift: int = 1, *, neighbors: Neighbors = "replace"
    ) -> PrivacyLossDistribution:
        """The privacy loss of discrete Laplace noise on an integer.

        Parameters
        ----------
        epsilon_per_unit : float, int, Fraction, decimal string or LogRatio
            The noise is x with probability proportional to e^(-epsilon_per_unit |x|), as `UnboundedDiscreteLaplace` has
            it.
        shift : int
            The sensitivity, from 1 to 2**16: smaller shifts are dominated.
        neighbors : {"replace", "add-remove"}
            For which the shift is.
        """
        rate = nonzero_level(epsilon_per_unit, "epsilon_per_unit")
        return cls._of([(DiscreteLaplaceLoss(rate, _shift(shift)), 1)], neighbors)

    @classmethod
    def discrete_gaussian(
        cls, sigma_squared: float | int | Fraction | str, shift: int = 1, *, neighbors: Neighbors = "replace"
    ) -> PrivacyLossDistribution:
        """The privacy loss of discrete Gaussian noise on one integer.

        Parameters
        ----------
        sigma_squared : float, int, Fraction or decimal string
            The noise is x with probability proportional to e^(-x^2 / (2 sigma_squared)); from 1/100 to 2**22.
        shift : int
            The sensitivity, from 1 to 2**16: smaller shifts are dominated.
        neighbors : {"replace", "add-remove"}
            For which the shift is.

        Notes
        -----
        Of the ideal noise. What `DiscreteGaussian` draws is within 2**-90 of it in total variation.
        """
        exact = parse_positive(sigma_squared, "sigma_squared")
        if not Fraction(1, 100) <= exact <= 2**22:
            raise ValueError(f"sigma_squared must be from 1/100 to 2**22; got {short_repr(sigma_squared)}")
        return cls._of([(DiscreteGaussianLoss(exact, _shift(shift)), 1)], neighbors)

    @classmethod
    def bounded_range(cls, range: Epsilon, *, neighbors: Neighbors = "replace") -> PrivacyLossDistribution:
        """The privacy loss of every release of a bounded range, such as an exponential mechanism.

        Parameters
        ----------
        range : float, int, Fraction, decimal string or LogRatio
            The width of an interval that holds all losses, wherever it is: epsilon, for an exponential mechanism that
            is epsilon-DP.
        neighbors : {"replace", "add-remove"}
            For which it is.
        """
        return cls._of([(BoundedRangeLoss(nonzero_level(range, "range")), 1)], neighbors)

    @classmethod
    def gaussian(
        cls,
        sigma: float | int | Fraction | str,
        sensitivity: float | int | Fraction | str = 1,
        *,
        neighbors: Neighbors = "replace",
    ) -> PrivacyLossDistribution:
        """The privacy loss of continuous Gaussian noise, in any number of columns.

        Parameters
        ----------
        sigma : float, int, Fraction or decimal string
            The standard deviation of the noise in every column.
        sensitivity : float, int, Fraction or decimal string
            The L2-sensitivity.
        neighbors : {"replace", "add-remove"}
            For which it is.

        Notes
        -----
        Discrete Gaussian noise is not dominated by continuous noise of the same sigma.
        """
        ratio = parse_positive(sensitivity, "sensitivity") / parse_positive(sigma, "sigma")
        if not Fraction(1, 2**20) <= ratio <= 16:
            raise ValueError(
                f"sensitivity / sigma must be from 2**-20 to 16; got sensitivity={short_repr(sensitivity)} and "
                f"sigma={short_repr(sigma)}"
            )
        return cls._of([(GaussianLoss(ratio * ratio), 1)], neighbors)

    @classmethod
    def composed(cls, parts: Iterable[tuple[PrivacyLossDistribution, int]]) -> PrivacyLossDistribution:
        """Several releases, each a number of times.

        Parameters
        ----------
        parts : iterable of (PrivacyLossDistribution, int)
            The releases, and how often each is made.

        Examples
        --------
        >>> once, twice = PrivacyLossDistribution.pure(1), PrivacyLossDistribution.pure("1/2")
        >>> PrivacyLossDistribution.composed([(once, 2), (twice, 4)])
        PrivacyLossDistribution(2 x (1, 0)-DP, 4 x (0.5, 0)-DP)
        """
        listed = _twos(parts, "parts", "pairs of a PrivacyLossDistribution and an int")
        for part, _ in listed:
            if not isinstance(part, PrivacyLossDistribution):
                raise TypeError(f"parts must be pairs of a PrivacyLossDistribution and an int; got {short_repr(part)}")
            if part.neighbors != listed[0][0].neighbors:
                raise ValueError("parts must be about the same neighbors; got 'replace' and 'add-remove'")
        flat = [(one, count * check_count(times, "count")) for whole, times in listed for one, count in whole._parts]
        return cls._of(flat, listed[0][0].neighbors)

    def compose(self, *others: PrivacyLossDistribution) -> PrivacyLossDistribution:
        """One after another: these releases and those of others."""
        return self.composed([(self, 1), *((other, 1) for other in others)])

    def self_compose(self, count: int) -> PrivacyLossDistribution:
        """So many times, one after another."""
        return self.composed([(self, count)])

    def poisson(self, rate: float | int | Fraction | str) -> PrivacyLossDistribution:
        """The privacy loss on a secret sample of users, each taken with a probability, anew in every release.

        Parameters
        ----------
        rate : float, int, Fraction or decimal string
            The probability, in (0, 1].

        Returns
        -------
        PrivacyLossDistribution
            For adding or removing a user. This object, one release by `from_pmfs`, `from_pairs` or `gaussian` for
            "add-remove", is taken as the claim that its pair (with the user, without) dominates the release on samples
            of all sizes, 0 included. For `gaussian` that is so where a user's part of the sum is within the
            sensitivity.

        Raises
        ------
        ValueError
            Where this is not one release by `from_pmfs`, `from_pairs` or `gaussian` for neighbors="add-remove".

        Examples
        --------
        >>> step = PrivacyLossDistribution.gaussian("0.8", neighbors="add-remove").poisson("0.01")
        >>> step.self_compose(100).epsilon("1e-6", width=0.01).upper < 4
        True
        """
        exact = parse_exact(rate, "rate", "a float, int, Fraction or decimal string in (0, 1]")
        if not Fraction(1, 2**30) <= exact <= 1:
            raise ValueError(f"rate must be from 2**-30 to 1; got {short_repr(rate)}")
        (part, count), *more = self._parts
        one = count == 1 and not more and (not isinstance(part, GaussianLoss) or part.count == 1)
        if not one or not isinstance(part, (PairLoss, GaussianLoss)) or self.neighbors != "add-remove":
            raise ValueError(
                "poisson takes one release by from_pmfs, from_pairs or gaussian, for neighbors='add-remove' "
                "(with a user, without); sample first, then compose: poisson(rate).self_compose(count)"
            )
        if isinstance(part, GaussianLoss):
            return self._of([(SampledGaussianLoss(part.mu_squared, exact), 1)], self.neighbors)
        p_total, q_total = sum(part.p), sum(part.q)
        mixed = [
            exact * Fraction(x, p_total) + (1 - exact) * Fraction(y, q_total)
            for x, y in zip(part.p, part.q, strict=True)
        ]
        # A mixture is not symmetric, even where the pair is.
        sampled = PairLoss(tuple(whole_multiples(mixed)), part.q, attained=False)
        return self._of([(sampled, 1)], self.neighbors)

    @property
    def attained(self) -> bool:
        """Whether lower bounds are those of a release that exists, and not of a pair above several."""
        return all(part.attained for part, _ in self._parts)

    @property
    def releases(self) -> int:
        """How many releases there are; Gaussian ones count as one together."""
        return sum(count for _, count in self._parts)

    def delta(self, epsilon: Epsilon, *, relative: float = 1e-3, max_terms: int = MAX_TERMS) -> Bounds:
        """The least delta at an epsilon, from both sides.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio
            At least 0, taken exactly.
        relative : float
            How far the bounds may be apart, as a share of the upper one. Compositions of one release whose losses are a
            lattice are far narrower.
        max_terms : int
            The most losses of a composition in memory.

        Returns
        -------
        Bounds
            The larger of both orders of the pair.

        Raises
        ------
        BudgetError
            Where `max_terms` do not do; its message has the bounds found.

        Examples
        --------
        >>> PrivacyLossDistribution.pure("0.1").self_compose(1000).delta(5)
        Bounds(lower=0.38299561563153134, upper=0.3829956156315314)
        """
        level, share, most = parse_level(epsilon), _share(relative, "relative"), _most(max_terms)
        once = self._once(level)
        if once is not None:
            return Bounds(round_down(once), round_up(once))
        found = self._both(lambda backwards: self._delta(level, backwards, share, most))
        return Bounds(round_down(max(lower for lower, _ in found)), round_up(max(upper for _, upper in found)))

    def epsilon(self, delta: Delta, *, width: float = 1e-4, max_terms: int = MAX_TERMS) -> Bounds:
        """The least epsilon at a delta, from both sides.

        Parameters
        ----------
        delta : float, int, Fraction or decimal string
            In [0, 1], taken exactly; from 1e-300 on, or 0 for the largest loss.
        width : float
            How far the bounds may be apart. Compositions of one release whose losses are a lattice are far narrower.
        max_terms : int
            The most losses of a composition in memory.

        Returns
        -------
        Bounds
            The larger of both orders of the pair; inf where no finite epsilon does.

        Raises
        ------
        BudgetError
            Where `max_terms` do not do; its message has the bounds found.

        Examples
        --------
        >>> noise = PrivacyLossDistribution.discrete_laplace("1/10", shift=2)
        >>> noise.self_compose(50).epsilon("1e-9")
        Bounds(lower=8.15334440836498, upper=8.153344408364982)
        """
        exact, share, most = parse_delta(delta), _share(width, "width"), _most(max_terms)
        found = self._both(lambda backwards: self._epsilon(exact, backwards, share, most))
        lower, upper = max(lower for lower, _ in found), max(upper for _, upper in found)
        if math.isinf(upper) and (single := self._single()) is not None:
            infinite, largest = single.end()
            if infinite <= exact:
                # From the largest finite loss on delta is exactly the mass at infinity.
                upper = float_above(largest)
        return Bounds(lower, upper)

    def is_private(self, epsilon: Epsilon, delta: Delta, *, max_terms: int = MAX_TERMS) -> bool | None:
        """Whether the releases together are (epsilon, delta)-DP.

        Parameters
        ----------
        epsilon, delta : float, int, Fraction, decimal string; LogRatio for epsilon
            Taken exactly.
        max_terms : int
            The most losses of a composition in memory.

        Returns
        -------
        bool or None
            Decided on exact numbers; None where `max_terms` do not decide, and where several releases have exactly this
            delta. False is about the pair that was composed: see `attained`.
        """
        level, exact, most = parse_level(epsilon), parse_delta(delta), _most(max_terms)
        once = self._once(level)
        if once is not None:
            return once <= exact
        verdicts = self._both(lambda backwards: self._decided(level, exact, backwards, most))
        if False in verdicts:
            return False
        return None if None in verdicts else True

    def certificate(
        self, *, epsilon: Epsilon | None = None, delta: Delta | None = None, max_terms: int = CERTIFIED_TERMS
    ) -> str:
        """A claim that the releases together are (epsilon, delta)-DP, to be checked without the compiled core.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio, optional
            At least 0, taken exactly. By default the least that is shown for `delta`, rounded up to eight digits.
        delta : float, int, Fraction or decimal string, optional
            In [0, 1], taken exactly. By default the least that is shown for `epsilon`, rounded up likewise.
        max_terms : int
            The most losses of a composition in memory. The check takes about ten times as long as the composition.

        Returns
        -------
        str
            JSON, which ``userdp verify`` and ``Report.from_json(text).verify()`` find *established*: they compose the
            listed releases again, in Python's standard library alone. The certificate was checked once already.

        Raises
        ------
        ValueError
            With Gaussian noise on a sample, which the checker does not know yet; where the claim is false; and where
            neither epsilon nor delta is given.
        BudgetError
            Where `max_terms`, or what a check may cost, do not do to show the claim.

        Notes
        -----
        The claim is about releases that the listed ones dominate: of `from_pairs` it lists the largest pair, and
        nothing of where that came from. The format is in docs/report-format.md.

        Examples
        --------
        >>> from userdp.report import Report
        >>> text = PrivacyLossDistribution.pure("0.1").self_compose(1000).certificate(delta="1e-6")
        >>> certificate = Report.from_json(text)
        >>> float(certificate.epsilon), float(certificate.delta), certificate.verify().finding
        (19.344672, 1e-06, 'established')
        """
        from userdp.accounting.certificates import certified

        if epsilon is None and delta is None:
            raise ValueError("give epsilon, delta, or both: there is nothing to certify")
        level = None if epsilon is None else parse_level(epsilon)
        exact = None if delta is None else parse_delta(delta)
        return certified(self, level, exact, _most(max_terms)).to_json()

    def _once(self, level: PrivacyLevel) -> Fraction | None:
        """The delta of a single release where it is a rational number: its ties are decided."""
        part = self._single()
        if isinstance(part, PairLoss) and not level.exponent:
            both = (part.p, part.q), (part.q, part.p)
            return max(hockey_stick_of(p, q, level.ratio) for p, q in both)
        if part is not None:
            infinite, largest = part.end()
            release = _core.Release.pure(core_level(largest), Fraction(0), 2)
            if _core.largest_loss_at_most([release], [1], core_level(level)):
                return infinite
        return None

    def _single(self) -> PairLoss | PureLoss | None:
        """The release, where it is one whose mass at infinity is known exactly."""
        (part, count), *more = self._parts
        return part if not more and count == 1 and isinstance(part, (PairLoss, PureLoss)) else None

    def _both(self, answer: Any) -> list[Any]:
        """The answers for both orders of the pair, where these differ."""
        orders = (False,) if all(part.symmetric for part, _ in self._parts) else (False, True)
        return [answer(backwards) for backwards in orders]

    def _first_steps(self) -> int:
        return math.isqrt(math.ceil(self.releases / START)) + 1

    def _delta(
        self, level: PrivacyLevel, backwards: bool, relative: Fraction, max_terms: int
    ) -> tuple[Fraction, Fraction]:
        best = Fraction(0), Fraction(1)
        core = core_level(level)
        for target in targets():
            steps, last = self._first_steps(), None
            while True:
                try:
                    composed = self._composed(backwards, target, steps, max_terms)
                except BudgetError as error:
                    raise _out_of_terms(error, "delta", best) from None
                lower, upper = composed.delta(core)
                best = max(best[0], lower), min(best[1], upper)
                share = min(relative, LATTICE_SHARE) if composed.on_lattice else relative
                deep_enough = composed.charge <= share * best[1] / 16
                tight = best[1] - best[0] <= relative * best[1]
                if tight or composed.on_lattice or not deep_enough:
                    break
                width = float((best[1] - best[0]) / best[1])
                steps, last = _finer(steps, width, float(relative), last)
            if deep_enough and tight:
                return best
        if best[1] > LEAST_DELTA:
            raise _out_of_terms(BudgetError("masses of 1,144 bits do not do"), "delta", best)
        return best

    def _decided(self, level: PrivacyLevel, delta: Fraction, backwards: bool, max_terms: int) -> bool | None:
        if not delta:
            releases, counts = self._releases(2, backwards)
            if _core.largest_loss_at_most(releases, counts, core_level(level)):
                return True
            largest = _core.largest_loss(releases, counts)
            return False if largest is None or not _at_most(largest[0], level) else None
        core, steps, last, target = core_level(level), self._first_steps(), None, delta
        while True:
            try:
                composed = self._composed(backwards, target, steps, max_terms)
            except BudgetError:
                return None
            lower, upper = composed.delta(core)
            if upper <= delta:
                return True
            if lower > delta:
                return False
            if composed.on_lattice:
                # Only wider masses tell more there; no width tells a tie.
                target *= WIDER
                if target < LEAST_DELTA:
                    return None
                continue
            width = float((upper - lower) / upper)
            steps, last = _finer(steps, width, width / 16, last)

    def _epsilon(self, delta: Fraction, backwards: bool, width: Fraction, max_terms: int) -> tuple[float, float]:
        if delta == 1:
            return 0.0, 0.0
        if not delta:
            return _core.largest_loss(*self._releases(2, backwards)) or (math.inf, math.inf)
        best, steps, last, target = (0.0, math.inf), self._first_steps(), None, delta
        while True:
            try:
                composed = self._composed(backwards, target, steps, max_terms)
            except BudgetError as error:
                raise _out_of_terms(error, "epsilon", best) from None
            lower, upper = composed.epsilon(delta)
            best = max(best[0], lower), min(best[1], upper)
            # An infinite upper bound is the mass at infinity, which no finer grid changes.
            if math.isinf(upper) or best[1] - best[0] <= width:
                return best
            if composed.on_lattice:
                target *= WIDER
                if target < LEAST_DELTA:
                    raise _out_of_terms(BudgetError("masses of 1,144 bits do not do"), "epsilon", best)
                continue
            steps, last = _finer(steps, min(best[1] - best[0], 1.0), float(width), last)

    def _releases(self, limbs: int, backwards: bool) -> tuple[list[_core.Release], list[int]]:
        return _releases(self._parts, limbs, backwards)

    def _rounding(self, delta: Fraction) -> tuple[int, int, int]:
        """Words of masses, units to cut and bits of 1 / delta, for answers of about such a delta."""
        bits = max(delta.denominator.bit_length() - delta.numerator.bit_length(), 0) + 1
        limbs = max(2, -(-(bits + 72 + self.releases.bit_length()) // 64))
        if limbs > MOST_LIMBS:
            raise ValueError("delta must be 0 or at least 1e-300; smaller ones need masses of more than 1,144 bits")
        # All cuts together cost at most delta / 2^59.
        return limbs, int(delta * 2 ** (64 * limbs - 8)) // (2**61 * self.releases), bits

    def _composed(self, backwards: bool, delta: Fraction, steps: int, max_terms: int) -> _core.Composed:
        """All releases on a grid of 1 / steps, for answers of about such a delta."""
        limbs, cut, bits = self._rounding(delta)
        if steps > FINEST:
            raise BudgetError(f"a resolution of 1/{FINEST} does not do")
        return _composition(self._parts, backwards, limbs, steps, cut, bits, max_terms)

    def __repr__(self) -> str:
        parts = ", ".join(f"{count} x {part}" if count > 1 else str(part) for part, count in self._parts)
        return f"PrivacyLossDistribution({parts})"


def _releases(
    parts: tuple[tuple[ReleaseLoss, int], ...], limbs: int, backwards: bool
) -> tuple[list[_core.Release], list[int]]:
    return [part.release(limbs, backwards) for part, _ in parts], [count for _, count in parts]


@lru_cache(maxsize=4)
def _composition(
    parts: tuple[tuple[ReleaseLoss, int], ...],
    backwards: bool,
    limbs: int,
    steps: int,
    cut: int,
    bits: int,
    max_terms: int,
) -> _core.Composed:
    with progress_bar(None, "composition") as progress:
        return _core.Composed(
            *_releases(parts, limbs, backwards),
            limbs=limbs,
            resolution=Fraction(1, steps),
            cut=cut,
            max_terms=max_terms,
            reach=(bits + 8) * math.log(2),
            progress=progress,
        )


def targets() -> Iterable[Fraction]:
    """Deltas for which masses are made wide enough, one after the other until the answer is of that size."""
    return (Fraction(1, 2**bits) for bits in (40, 120, 360, 1000))


def _finer(steps: int, width: float, wanted: float, last: tuple[int, float] | None) -> tuple[int, tuple[int, float]]:
    """How many steps a unit needs for half the width that is wanted, by what the last two widths did."""
    order = 2.0
    if last and last[1] > width > 0:
        order = min(max(math.log(last[1] / width) / math.log(steps / last[0]), 0.5), 2.0)
    factor = (2 * width / wanted) ** (1 / order)
    return math.ceil(steps * min(max(factor, 1.5), 64.0)), (steps, width)


def _out_of_terms(error: BudgetError, name: str, best: tuple[Any, Any]) -> BudgetError:
    lower, upper = (float(end) for end in best)
    return BudgetError(f"{error}; found so far: {name} from {lower:.6g} to {upper:.6g}")


def _at_most(loss: float, level: PrivacyLevel) -> bool:
    """Whether a loss is at most a level, or within its rounding."""
    logarithm = Fraction(_core.ln_bounds(level.ratio)[1]) if level.ratio != 1 else 0
    return Fraction(loss) <= logarithm + level.exponent


def _share(value: Any, name: str) -> Fraction:
    share = parse_positive(value, name)
    if share > 1:
        raise ValueError(f"{name} must be in (0, 1]; got {short_repr(value)}")
    return share


def _shift(shift: Any) -> int:
    if check_count(shift, "shift") > 2**16:
        raise ValueError(f"shift must be at most 2**16; got {short_repr(shift)}")
    return int(shift)


def _most(max_terms: Any) -> int:
    return min(check_count(max_terms, "max_terms", 2), 2**40)


def _twos(values: Any, name: str, wanted: str) -> list[tuple[Any, Any]]:
    """The pairs of an iterable, of which there is at least one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be an iterable of {wanted}; got {short_repr(values)}")
    listed = []
    for value in values:
        array = isinstance(value, np.ndarray) and value.ndim > 0
        if not array and (not isinstance(value, Sequence) or isinstance(value, (str, bytes))):
            raise TypeError(f"{name} must be {wanted}; got {short_repr(value)}")
        if len(value) != 2:
            raise ValueError(f"{name} must be {wanted}; got one of length {len(value)}")
        listed.append((value[0], value[1]))
    if not listed:
        raise ValueError(f"{name} must have at least one")
    return listed
