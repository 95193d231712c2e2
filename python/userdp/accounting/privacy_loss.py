"""Privacy loss distributions: what many releases cost together, as bounds of delta and epsilon that are proved.

A release is a pair of distributions, with the mass of the first at every loss. The core composes such masses in
integers, and knows what rounding has cost: docs/proofs/exact_composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.accounting.certificates import certified
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.domination import dominates
from userdp.accounting.losses import (
    MOST_MU_SQUARED,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    check_shift,
    fixed_size_sample,
    largest_pair,
    poisson_sample,
    weights_of,
)
from userdp.accounting.mechanism_losses import pairs_of_audit, release_of_cost, stated_cost
from userdp.accounting.power_curves import group_of
from userdp.accounting.refinement import Parts, Refined
from userdp.accounting.saved_losses import read, text_of
from userdp.exact.epsilon import enclosure
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    Neighbors,
    PrivacyLevel,
    agreed_neighbors,
    check_count,
    nearest_float,
    parse_delta,
    parse_exact,
    parse_level,
    parse_positive,
    printed_bounds,
    short_repr,
    stated_neighbors,
)
from userdp.exact.pmf import PmfLike
from userdp.report import AuditReport

MAX_TERMS = 2**22
CERTIFIED_TERMS = 2**20
FIXED_POINTS = 8
"""How often an interval is widened in which epsilon is looked for, where there is a distance."""
WORTH = Fraction(1, 2**30)
"""What must be left of delta beside a distance."""
MOST_RELEASES = 2**40
"""Of a kind, in a composition."""


@dataclass(frozen=True, slots=True, repr=False, init=False)
class PrivacyLossDistribution(Refined):
    """Privacy loss distributions of releases, to be composed, and asked for delta and epsilon.

    An object is a list of releases; nothing is computed before a question is asked. Answers are `Bounds`: floats at or
    below, and at or above, the exact number. Products of masses are exact in integers of 120 bits and more, so that
    a delta of 1e-300 is as reliable as one of 1e-6.

    Make one by `from_pmfs`, `from_pairs`, `pure`, `laplace`, `discrete_laplace`, `discrete_gaussian`, `bounded_range`
    or `gaussian`.

    Notes
    -----
    **What a composition covers.** `pure`, kinds of noise, `bounded_range` and `from_pairs` bound a
    release on *any* two neighbors, in both orders. Each release may then be chosen by what the ones before it released;
    number, order and parameters are fixed in advance (`PrivacyLedger` is for parameters that are chosen on the way).
    `from_pmfs` is one release on *two given datasets*: a composition of these is about the same two datasets all the
    time, in one order, and answers are the larger of both orders. With several pairs of neighbors, and for adaptive
    choices, use `from_pairs`.

    **Lower bounds** are those of the pairs that were composed. `attained` says whether these are pairs of real
    releases: for `pure`, of randomized response, which is as bad as any release of its epsilon and delta can be. For
    `bounded_range`, `from_pairs`, samples, and what a mechanism's cost says they need not be.

    **Distance.** Releases that are only within some total variation of what is bounded here, such as noise that is
    drawn with rounding, say so by `distance`, which every answer includes.

    Proofs and sources: docs/proofs/exact_composition.md.

    Examples
    --------
    >>> once = PrivacyLossDistribution.pure("0.1")
    >>> once.self_compose(1000).epsilon("1e-6")
    Bounds(lower=19.344671447993044, upper=19.34467144799305)
    """

    _parts: Parts
    neighbors: Neighbors | None
    """For which neighboring datasets; None is not stated, and every order of a pair is taken."""
    _only_above: bool = field(compare=False)
    """Whether releases are mechanisms that the pairs are known to dominate, and no more."""
    distance: Fraction
    """On every dataset all releases together are within this total variation of what their pairs are above."""

    def __init__(self) -> None:
        raise TypeError(
            "make a PrivacyLossDistribution by from_pmfs, from_pairs, pure, discrete_laplace, ... or gaussian"
        )

    @classmethod
    def _of(
        cls,
        parts: Iterable[tuple[ReleaseLoss, int]],
        neighbors: Any,
        distance: Fraction = Fraction(0),
        only_above: bool = False,
    ) -> PrivacyLossDistribution:
        relation = stated_neighbors(neighbors)
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
                f"{nearest_float(mu_squared):.6g}, whose epsilon is above {nearest_float(mu_squared / 2):.3g}"
            )
        if mu_squared:
            counts[GaussianLoss(mu_squared, gaussians)] = 1
        made = object.__new__(cls)
        object.__setattr__(made, "_parts", tuple(counts.items()))
        object.__setattr__(made, "neighbors", relation)
        object.__setattr__(made, "_only_above", only_above)
        object.__setattr__(made, "distance", min(distance, Fraction(1)))
        return made

    @classmethod
    def from_pmfs(cls, p: PmfLike, q: PmfLike, *, neighbors: Neighbors | None = None) -> PrivacyLossDistribution:
        """The privacy loss of one release on two given datasets.

        Parameters
        ----------
        p, q : array-like of shape (k,), or Pmf
            Its output distributions on the two datasets, over the same outputs. Floats are the dyadic numbers they are,
            divided by their exact sum.
        neighbors : {"replace", "add-remove"}, optional
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
        cls, pairs: Iterable[tuple[PmfLike, PmfLike]], *, neighbors: Neighbors | None = None
    ) -> PrivacyLossDistribution:
        """The least pair above all given ones, in both orders: of a release on any of several pairs of neighbors.

        Parameters
        ----------
        pairs : iterable of (p, q)
            Output distributions on all pairs of neighbors, each as for `from_pmfs`. One order of each will do.
        neighbors : {"replace", "add-remove"}, optional
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
    def pure(cls, epsilon: Epsilon, delta: Delta = 0, *, neighbors: Neighbors | None = None) -> PrivacyLossDistribution:
        """The privacy loss of every (epsilon, delta)-DP release: that of randomized response.

        Parameters
        ----------
        epsilon : float, int, Fraction, decimal string or LogRatio
            At least 0, taken exactly.
        delta : float, int, Fraction or decimal string
            In [0, 1), taken exactly.
        neighbors : {"replace", "add-remove"}, optional
            For which it is private.
        """
        return cls._of([(PureLoss.checked(epsilon, delta), 1)], neighbors)

    @classmethod
    def discrete_laplace(
        cls, epsilon_per_unit: Epsilon, shift: int = 1, *, neighbors: Neighbors | None = None
    ) -> PrivacyLossDistribution:
        """The privacy loss of discrete Laplace noise on an integer.

        Parameters
        ----------
        epsilon_per_unit : float, int, Fraction, decimal string or LogRatio
            The noise is x with probability proportional to e^(-epsilon_per_unit |x|), as `UnboundedDiscreteLaplace` has
            it.
        shift : int
            The sensitivity, from 1 to 2**16: smaller shifts are dominated.
        neighbors : {"replace", "add-remove"}, optional
            For which the shift is.
        """
        return cls._of([(DiscreteLaplaceLoss.checked(epsilon_per_unit, shift), 1)], neighbors)

    @classmethod
    def discrete_gaussian(
        cls, sigma_squared: float | int | Fraction | str, shift: int = 1, *, neighbors: Neighbors | None = None
    ) -> PrivacyLossDistribution:
        """The privacy loss of discrete Gaussian noise on one integer.

        Parameters
        ----------
        sigma_squared : float, int, Fraction or decimal string
            The noise is x with probability proportional to e^(-x^2 / (2 sigma_squared)); from 1/100 to 2**22.
        shift : int
            The sensitivity, from 1 to 2**16: smaller shifts are dominated.
        neighbors : {"replace", "add-remove"}, optional
            For which the shift is.

        Notes
        -----
        Of the ideal noise. What `DiscreteGaussian` draws is within 2**-90 of it in total variation.
        """
        return cls._of([(DiscreteGaussianLoss.checked(sigma_squared, shift), 1)], neighbors)

    @classmethod
    def bounded_range(cls, range: Epsilon, *, neighbors: Neighbors | None = None) -> PrivacyLossDistribution:
        """The privacy loss of every release of a bounded range, such as an exponential mechanism.

        Parameters
        ----------
        range : float, int, Fraction, decimal string or LogRatio
            The width of an interval that holds all losses, wherever it is: epsilon, for an exponential mechanism that
            is epsilon-DP.
        neighbors : {"replace", "add-remove"}, optional
            For which it is.
        """
        return cls._of([(BoundedRangeLoss.checked(range), 1)], neighbors)

    @classmethod
    def laplace(
        cls,
        scale: float | int | Fraction | str,
        sensitivity: float | int | Fraction | str = 1,
        *,
        neighbors: Neighbors | None = None,
    ) -> PrivacyLossDistribution:
        """The privacy loss of continuous Laplace noise on one number.

        Parameters
        ----------
        scale : float, int, Fraction or decimal string
            The noise has the density e^(-|x| / scale) / (2 scale).
        sensitivity : float, int, Fraction or decimal string
            The most by which the number changes; sensitivity / scale is at most 2**20.
        neighbors : {"replace", "add-remove"}, optional
            For which it is.

        Notes
        -----
        Of several numbers, each with noise, compose one for each. Noise on integers is `discrete_laplace`, which
        continuous noise of the same scale does not dominate.

        Examples
        --------
        >>> PrivacyLossDistribution.laplace(10).self_compose(100).epsilon("1e-5", width=0.01).upper < 4.4
        True
        """
        ratio = parse_positive(sensitivity, "sensitivity") / parse_positive(scale, "scale")
        if not Fraction(1, 2**200) <= ratio <= 2**20:
            raise ValueError(
                f"sensitivity / scale must be from 2**-200 to 2**20; got sensitivity={short_repr(sensitivity)} and "
                f"scale={short_repr(scale)}"
            )
        return cls._of([(LaplaceLoss(PrivacyLevel(Fraction(1), ratio)), 1)], neighbors)

    @classmethod
    def gaussian(
        cls,
        sigma: float | int | Fraction | str | None = None,
        sensitivity: float | int | Fraction | str = 1,
        *,
        mu2: float | int | Fraction | str | None = None,
        neighbors: Neighbors | None = None,
    ) -> PrivacyLossDistribution:
        """The privacy loss of continuous Gaussian noise, in any number of columns.

        Parameters
        ----------
        sigma : float, int, Fraction or decimal string
            The standard deviation of the noise in every column.
        sensitivity : float, int, Fraction or decimal string
            The L2-sensitivity.
        mu2 : float, int, Fraction or decimal string, optional
            In place of sigma: (sensitivity / sigma)^2, from 2**-40 to 2**8.
        neighbors : {"replace", "add-remove"}, optional
            For which it is.

        Notes
        -----
        Discrete Gaussian noise is not dominated by continuous noise of the same sigma.
        """
        if (sigma is None) == (mu2 is None):
            raise TypeError("gaussian takes exactly one of sigma and mu2")
        if mu2 is not None:
            return cls._of([(GaussianLoss.checked(mu2), 1)], neighbors)
        ratio = parse_positive(sensitivity, "sensitivity") / parse_positive(sigma, "sigma")
        if not Fraction(1, 2**20) <= ratio <= 16:
            raise ValueError(
                f"sensitivity / sigma must be from 2**-20 to 16; got sensitivity={short_repr(sensitivity)} and "
                f"sigma={short_repr(sigma)}"
            )
        return cls._of([(GaussianLoss(ratio * ratio), 1)], neighbors)

    @classmethod
    def from_mechanism(cls, mechanism: Any, **arguments: Any) -> PrivacyLossDistribution:
        """The privacy loss of one use of a mechanism of this package, or of what has a cost.

        Parameters
        ----------
        mechanism : Mechanism, PrivacyCost, or anything with ``privacy_loss`` or ``cost``
            Discrete Laplace and Gaussian noise, exponential mechanisms and others say more than their cost. A
            `PrivacyCost` is read as its bounded range, else its mu2 and distance, else its epsilon and delta.
        **arguments
            For the mechanism's `privacy_loss`: ``sensitivity`` of noise that was made without one, ``dimension`` of
            `DiscreteGaussian`.

        Returns
        -------
        PrivacyLossDistribution
            For the neighbors that the mechanism's `neighbors` or cost states, with every rounding of what is drawn: by
            pairs above it, or by `distance`.

        Raises
        ------
        TypeError
            For algorithms that are known by their output distributions only: audit them, and use `from_audit`.

        Examples
        --------
        >>> from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism
        >>> noise = DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 100))
        >>> PrivacyLossDistribution.from_mechanism(noise)
        PrivacyLossDistribution(discrete Laplace noise (rate 0.5, shift 2))
        >>> PrivacyLossDistribution.from_mechanism(ExponentialMechanism(epsilon=1, sensitivity=1))
        PrivacyLossDistribution(bounded range 1)
        """
        stated = getattr(mechanism, "privacy_loss", None)
        if not callable(stated):
            return loss_of_cost(stated_cost(mechanism, arguments))
        made = stated(**arguments)
        if not isinstance(made, PrivacyLossDistribution):
            raise TypeError(f"mechanism.privacy_loss must return a PrivacyLossDistribution; got {short_repr(made)}")
        return made

    @classmethod
    def from_audit(cls, report: AuditReport) -> PrivacyLossDistribution:
        """The privacy loss of an audited algorithm: the least pair above those of all neighbors that were audited.

        Parameters
        ----------
        report : AuditReport
            Of an audit of an algorithm with exact distributions; it holds all of them. One that was read back is taken
            at its word: verify it first.

        Returns
        -------
        PrivacyLossDistribution
            For the neighbors of the audit, in both orders: for its universe and numbers of users and examples, and for
            no others.

        Raises
        ------
        ValueError
            For reports of algorithms with a `pmf_error`, and for those that were read back with a sample only.
        BudgetError
            Where all pairs have more than 2**17 outcomes together.

        Examples
        --------
        >>> from userdp.algorithms import finite_algorithm
        >>> from userdp.audit import audit_user_level
        >>> @finite_algorithm(outputs=(0, 1))
        ... def respond(dataset):
        ...     return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]
        >>> report = audit_user_level(respond, universe=(0, 1), n_users=1, n_examples=1, epsilon=2, delta=0)
        >>> PrivacyLossDistribution.from_audit(report).self_compose(2).epsilon(0).upper
        2.1972245773362196
        """
        pairs = pairs_of_audit(report)
        if not pairs:
            return cls.pure(0, neighbors=report.neighbors)  # type: ignore[arg-type]
        return cls.from_pairs(pairs, neighbors=report.neighbors)  # type: ignore[arg-type]

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
        counts = [check_count(times, "count") for _, times in listed]
        flat = [
            (one, count * times)
            for (whole, _), times in zip(listed, counts, strict=True)
            for one, count in whole._parts
        ]
        distance = sum((whole.distance * times for (whole, _), times in zip(listed, counts, strict=True)), Fraction(0))
        relation = agreed_neighbors((whole.neighbors for whole, _ in listed), "parts")
        return cls._of(flat, relation, distance, any(whole._only_above for whole, _ in listed))

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
            For adding or removing a user. This object, one release for "add-remove", is taken as the claim that its
            pair (with the user, without) dominates the release on samples of all sizes, 0 included. For `gaussian` that
            is so where a user's part of the sum is within the sensitivity. `distance` stays what it is, and is not
            multiplied by the rate.

        Raises
        ------
        ValueError
            Where this is not one release for neighbors="add-remove", and for releases without a curve to sample from:
            discrete Gaussian noise, samples, ranges beyond 2**-20 to 64.

        Examples
        --------
        >>> step = PrivacyLossDistribution.gaussian("0.8", neighbors="add-remove").poisson("0.01")
        >>> step.self_compose(100).epsilon("1e-6", width=0.01).upper < 4
        True
        """
        exact = parse_exact(rate, "rate", "a float, int, Fraction or decimal string in (0, 1]")
        if not Fraction(1, 2**30) <= exact <= 1:
            raise ValueError(f"rate must be from 2**-30 to 1; got {short_repr(rate)}")
        sampled = poisson_sample(self._one("poisson(rate)", "add-remove", "(with a user, without)"), exact)
        return self._sampled(sampled, "poisson(rate)")

    def without_replacement(self, sampled: int, total: int) -> PrivacyLossDistribution:
        """The privacy loss on a secret sample of a fixed number of users, drawn anew in every release.

        Parameters
        ----------
        sampled, total : int
            How many of how many users are drawn, uniformly and without replacement; sampled / total is at least
            2**-30. Both are public.

        Returns
        -------
        PrivacyLossDistribution
            For replacing a user. This object, one release for "replace", is taken as the claim that its pair dominates
            the release on any two samples of this size that differ in one user, in both orders; a pair whose orders
            differ is replaced by the largest of both first. `distance` stays what it is.

        Raises
        ------
        ValueError
            Where this is not one release for neighbors="replace", and for releases without a curve to sample from:
            discrete Gaussian noise, samples, ranges beyond 2**-20 to 64.

        Notes
        -----
        The curve is q g(1 + (E - 1) / q) for E >= 1, with q = sampled / total (Balle, Barthe and Gaboardi 2018).
        Samples of coins, and other neighbors, have other theorems: `poisson` is for adding and removing a user. One
        sample that is used in several releases is composed first, where the releases are on the sample.

        Examples
        --------
        >>> step = PrivacyLossDistribution.gaussian("0.8", neighbors="replace").without_replacement(100, 10000)
        >>> step.self_compose(100).epsilon("1e-6", width=0.01).upper < 5
        True
        >>> PrivacyLossDistribution.pure("ln(20)", neighbors="replace").without_replacement(10, 190).epsilon(0).upper
        0.6931471805599454
        """
        most = check_count(total, "total")
        exact = Fraction(check_count(sampled, "sampled"), most)
        if not Fraction(1, 2**30) <= exact <= 1:
            raise ValueError(
                f"sampled must be at most total, and at least total / 2**30; got {short_repr(sampled)} of "
                f"{short_repr(total)}"
            )
        part = self._one("without_replacement(sampled, total)", "replace", "(one user replaced)")
        return self._sampled(fixed_size_sample(part, exact), "without_replacement(sampled, total)")

    def _one(self, name: str, neighbors: Neighbors, in_words: str) -> ReleaseLoss:
        """The one release that is to be sampled."""
        (part, count), *more = self._parts
        one = count == 1 and not more and (not isinstance(part, GaussianLoss) or part.count == 1)
        if not one or self.neighbors != neighbors:
            stated = "; this one states no neighbors" if self.neighbors is None else ""
            raise ValueError(
                f"{name} takes one release, for neighbors='{neighbors}' {in_words}{stated}; sample first, then "
                f"compose: {name}.self_compose(count)"
            )
        return part

    def _sampled(self, sampled: ReleaseLoss | None, name: str) -> PrivacyLossDistribution:
        if sampled is None:
            raise ValueError(
                f"{name} takes a release with finitely many losses, or gaussian; got {self._parts[0][0]}. "
                "What is above it will do, such as gaussian for several integers with noise"
            )
        # Laws of samples are mixtures: they are as far from mixtures of what the pair is above.
        return self._of([(sampled, 1)], self.neighbors, self.distance, self._only_above)

    def group(self, size: int) -> PrivacyLossDistribution:
        """The privacy loss about several records together, from that about one of them; or about users.

        Parameters
        ----------
        size : int
            How many records (or users) change together, at least 1.

        Returns
        -------
        PrivacyLossDistribution
            For neighbors that differ in so many. Additive noise has so many times the shift, a bounded range so many
            times the width; pairs and (epsilon, delta)-DP have the iterate of their power curve, which is exact where
            a chain of neighbors attains it. `distance` stays what it is: only the ends of a chain are real.

        Raises
        ------
        ValueError
            For samples: a group of users is another theorem there, and cannot be had from a sampled pair.
        BudgetError
            Where the group's pair would have more than 2**18 outcomes.

        Notes
        -----
        For a central mechanism, which is shown all records at once (Dong, Roth and Su 2022). Records that are each
        reported on their own, as in local models, are `self_compose(size)` of a record's report instead, which is
        **not** an answer for a central mechanism. For "add-remove" all `size` users are added, or all removed; a pair
        by `from_pmfs` is taken as the claim that it dominates each step. For "replace" steps have either order, and
        a pair whose orders differ is replaced by the largest of both first. Proof: docs/proofs/exact_composition.md,
        section 8.

        Examples
        --------
        >>> count = PrivacyLossDistribution.pure("1/10")
        >>> count.group(5)
        PrivacyLossDistribution(discrete Laplace noise (rate 0.1, shift 5))
        >>> count.group(5).epsilon("1/20").upper < 0.5
        True
        """
        many = check_count(size, "size")
        grouped = []
        for part, count in self._parts:
            found = group_of(part, many, one_sided=self.neighbors == "add-remove")
            if found is None:
                raise ValueError(f"size={many}: nothing is known about groups for {part}")
            if isinstance(found, (DiscreteLaplaceLoss, DiscreteGaussianLoss)):
                check_shift(found.shift)
            grouped.append((found, count))
        return self._of(grouped, self.neighbors, self.distance, self._only_above)

    def within(self, distance: float | int | Fraction | str) -> PrivacyLossDistribution:
        """The same for releases that are only near to what the pairs are above.

        Parameters
        ----------
        distance : float, int, Fraction or decimal string
            In [0, 1]: for *every* dataset there is a distribution within this total variation of the release's, and
            the pair is above those distributions on any two neighbors. A distance that is known for one pair of
            datasets does not do for samples and groups.

        Returns
        -------
        PrivacyLossDistribution
            With this added to `distance`. Bounds of delta become wider by (1 + e^epsilon) `distance`.
        """
        far = self.distance + parse_delta(distance, "distance")
        return self._of(self._parts, self.neighbors, far, self._only_above)

    def dominates(self, other: PrivacyLossDistribution) -> bool | None:
        """Whether the releases may stand for others: their divergence is nowhere smaller, at any level, in order.

        Parameters
        ----------
        other : PrivacyLossDistribution
            About the same neighbors.

        Returns
        -------
        bool or None
            Decided exactly for pairs of finitely many rational masses, for (epsilon, delta)-DP over anything, and for
            releases of one kind by their parameters. Of compositions: True where each release of `other` has one of
            its own here that dominates it. None where this, and bounds at a few levels, do not decide; and where only
            `other.distance` is larger.

        Notes
        -----
        The hockey-stick divergence of the pair (P, Q) is compared at e^epsilon from 0 on: not only at epsilon >= 0,
        where a pair can be above another whose square is above its own. What dominates may take the other's place in
        every composition. A pair by `from_pmfs` is compared in its order; use `from_pairs` for one that stands for
        both.

        Examples
        --------
        >>> half = PrivacyLossDistribution.pure("1/2")
        >>> half.dominates(PrivacyLossDistribution.bounded_range("1/2")), half.dominates(half.self_compose(2))
        (True, False)
        """
        if not isinstance(other, PrivacyLossDistribution):
            raise TypeError(f"other must be a PrivacyLossDistribution; got {short_repr(other)}")
        agreed_neighbors((self.neighbors, other.neighbors), "other")
        found = dominates(self, other)
        return None if found and other.distance > self.distance else found

    @property
    def attained(self) -> bool:
        """Whether lower bounds are those of releases that exist, and not of pairs above what is done."""
        return not self._only_above and all(part.attained for part, _ in self._parts)

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
        lower, upper = self._larger_delta(level, share, most)
        moved = self._moved(level)
        return printed_bounds(max(lower - moved, Fraction(0)), min(upper + moved, Fraction(1)))

    def _moved(self, level: PrivacyLevel) -> Fraction:
        """What the distance is worth of delta at most, in either direction."""
        if not self.distance or level.exponent > 2**10:
            return Fraction(1 if self.distance else 0)
        return min((1 + enclosure(level, "epsilon")[1]) * self.distance, Fraction(1))

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
        if not self.distance or exact == 1:
            return Bounds(*self._larger_epsilon(exact, share, most))
        lower, upper, end = 0.0, math.inf, self._larger_epsilon(exact, share, most)[1]
        for _ in range(FIXED_POINTS):
            # Up to this epsilon the distance is worth so much of delta at most.
            end += float(share)
            moved = self._moved(PrivacyLevel(Fraction(1), Fraction(end))) if math.isfinite(end) else Fraction(1)
            if exact + moved < 1:
                lower = max(lower, self._larger_epsilon(exact + moved, share, most)[0])
            if moved * (1 + WORTH) >= exact:
                break
            found = self._larger_epsilon(exact - moved, share, most)[1]
            if found <= end:
                upper = found
                break
            end = found
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
            delta. False is about the pair that was composed: see `attained`. Of mechanisms of which no more is known
            than what dominates them (`from_mechanism`) there is None in its place.
        """
        level, exact, most = parse_level(epsilon), parse_delta(delta), _most(max_terms)
        found = self._verdict(level, exact, most)
        return found if found or not self._only_above else None

    def _verdict(self, level: PrivacyLevel, exact: Fraction, most: int) -> bool | None:
        """The same of the pairs and the distance."""
        if not self.distance:
            return self._private(level, exact, most)
        moved = self._moved(level)
        if exact >= moved and self._private(level, exact - moved, most):
            return True
        if exact + moved < 1 and self._private(level, exact + moved, most) is False:
            return False
        return True if exact == 1 else None

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
            With privacy losses that were read from dp_accounting; where the claim is false; and where neither epsilon
            nor delta is given.
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
        if self.distance:
            raise ValueError(
                f"releases that are only within {float(self.distance):.3g} of what is composed have no certificate; "
                "certify what they are near to, and add (1 + e^epsilon) * distance to its delta"
            )
        if epsilon is None and delta is None:
            raise ValueError("give epsilon, delta, or both: there is nothing to certify")
        level = None if epsilon is None else parse_level(epsilon)
        exact = None if delta is None else parse_delta(delta)
        return certified(self, self.neighbors, level, exact, _most(max_terms)).to_json()

    def to_json(self) -> str:
        """The releases and their exact parameters as JSON, which `from_json` reads.

        Examples
        --------
        >>> both = PrivacyLossDistribution.pure("1/10").self_compose(3)
        >>> PrivacyLossDistribution.from_json(both.to_json()) == both
        True
        """
        return text_of(self._parts, self.neighbors, self.distance, self._only_above)

    @classmethod
    def from_json(cls, text: str) -> PrivacyLossDistribution:
        """The distribution that `to_json` wrote.

        Parameters
        ----------
        text : str
            From anywhere: every parameter is checked as its constructor does.

        Raises
        ------
        ValueError
            For anything else.
        """
        return read(text, cls._of)

    def __repr__(self) -> str:
        parts = ", ".join(f"{count} x {part}" if count > 1 else str(part) for part, count in self._parts)
        far = f", within {max(float(self.distance), 1e-300):.3g}" if self.distance else ""
        return f"PrivacyLossDistribution({parts}{far})"


def laplace_above(epsilon: Epsilon, neighbors: Neighbors | None) -> PrivacyLossDistribution:
    """Continuous Laplace noise with this largest loss, for what it is known to dominate."""
    return PrivacyLossDistribution._of([(LaplaceLoss.checked(epsilon), 1)], neighbors, only_above=True)


def loss_of_cost(cost: PrivacyCost) -> PrivacyLossDistribution:
    """The most that a cost says of the privacy loss, for the neighbors that it is about."""
    release, distance = release_of_cost(cost)
    return PrivacyLossDistribution._of([(release, 1)], cost.neighbors, distance, only_above=True)


def _share(value: Any, name: str) -> Fraction:
    share = parse_positive(value, name)
    if share > 1:
        raise ValueError(f"{name} must be in (0, 1]; got {short_repr(value)}")
    return share


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
