"""What one release costs, in every currency that is known of it, and how costs add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from userdp.accounting.zcdp import bounded_range_to_zcdp, parse_rho, pure_to_zcdp
from userdp.display.numbers import few_digits
from userdp.exact.epsilon import as_epsilon, at_most, enclosure, epsilon_above, is_rational, shortened, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    Neighbors,
    PrivacyLevel,
    check_neighbors,
    parse_delta,
    parse_level,
    stated_neighbors,
)


@dataclass(frozen=True, init=False)
class PrivacyCost:
    """Every guarantee that is known of one release on the same users.

    Parameters
    ----------
    epsilon, delta : privacy parameters, optional
        The release is (epsilon, delta)-DP.
    rho, distance : float, int, Fraction or decimal string, optional
        On any two neighbors the two distributions of the release are each within `distance` in total variation of two
        that are as those of a rho-zCDP mechanism. So it is for a mechanism that is within `distance` of one that is
        rho-zCDP on every dataset; then the distance is the same for groups of users, which it otherwise is not.
    bounded_range : privacy parameter, optional
        The release has bounded range: the log ratios of its masses on two neighbors lie in an interval of this
        length, as those of the exponential mechanism do at its epsilon. It is then also pure DP at this epsilon.
    mu2 : float, int, Fraction or decimal string, optional
        The release is within `distance` in total variation, on every dataset, of one whose output distributions on any
        two neighbors, in both orders, are dominated by N(0, 1) and N(mu, 1) with mu^2 = mu2: Gaussian noise of standard
        deviation sigma on what has sensitivity D in L2 costs D^2 / sigma^2.
    added_delta : float, int, Fraction or decimal string, optional
        A delta beside rho and mu2: approximate zCDP (Bun and Steinke 2016, Definition 8.1). On any two neighbors each
        of the two distributions has an event of probability at least 1 - added_delta, and given these events they are
        as those of a rho-zCDP mechanism, or of one that N(0, 1) and N(mu, 1) dominate, up to `distance`. So it is for a
        threshold on keys that only one user has (`SparseHistogram`). It is no distance: no rho-zCDP mechanism need be
        near.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets all of this holds: a user replaced, or a user added or removed. None is not
        stated: whoever spends the cost in a ledger says that it is about the ledger's.

    Attributes
    ----------
    epsilon, bounded_range : Fraction, LogRatio or None
        Exactly as given; an epsilon that is not given is `bounded_range`.
    delta, distance, added_delta : Fraction
    rho, mu2 : Fraction or None
    neighbors : str or None

    Notes
    -----
    All of these hold at the same time, each for the whole release, and whoever composes takes the one that is best for
    them. So a release's parts are composed before: a stage of bounded range eta followed by an eps'-DP stage is
    ``PrivacyCost(epsilon=eta + eps', rho=eta**2 / 8 + eps'**2 / 2)``. `distance` is one number for rho and mu2.

    A mu2 says more than a rho: it implies rho = mu2 / 2, and no rho implies a mu2. So mu2 is what is stated, never what
    is computed from rho.

    Examples
    --------
    >>> PrivacyCost(bounded_range="1/2").zcdp()
    (Fraction(1, 32), Fraction(0, 1), Fraction(0, 1))
    >>> PrivacyCost(1, "1e-6", rho="1/50")
    PrivacyCost(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000), rho=Fraction(1, 50))
    >>> PrivacyCost(mu2="1/25", distance="1e-29").zcdp()[0]
    Fraction(1, 50)
    """

    epsilon: Fraction | LogRatio | None
    delta: Fraction
    rho: Fraction | None
    distance: Fraction
    bounded_range: Fraction | LogRatio | None
    mu2: Fraction | None
    added_delta: Fraction
    neighbors: Neighbors | None

    def __init__(
        self,
        epsilon: Epsilon | None = None,
        delta: Delta = 0,
        rho: Delta | None = None,
        distance: Delta = 0,
        bounded_range: Epsilon | None = None,
        mu2: Delta | None = None,
        added_delta: Delta = 0,
        neighbors: Neighbors | None = None,
    ) -> None:
        span = None if bounded_range is None else as_epsilon(parse_level(bounded_range, "bounded_range"))
        exact = span if epsilon is None else as_epsilon(parse_level(epsilon))
        threshold, far = parse_delta(delta), parse_delta(distance, "distance")
        if exact is None and rho is None and mu2 is None:
            raise ValueError("a cost needs epsilon, rho, mu2 or bounded_range; got none of them")
        if epsilon is None and threshold:
            raise ValueError("delta belongs to an epsilon; epsilon is missing")
        if rho is None and mu2 is None and far:
            raise ValueError("distance belongs to a rho or a mu2; both are missing")
        beside = parse_delta(added_delta, "added_delta")
        if beside and rho is None and mu2 is None:
            raise ValueError("added_delta belongs to a rho or a mu2; both are missing")
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "delta", threshold)
        object.__setattr__(self, "rho", None if rho is None else parse_rho(rho))
        object.__setattr__(self, "distance", far)
        object.__setattr__(self, "bounded_range", span)
        object.__setattr__(self, "mu2", None if mu2 is None else parse_rho(mu2, "mu2"))
        object.__setattr__(self, "added_delta", beside)
        object.__setattr__(self, "neighbors", stated_neighbors(neighbors))

    def zcdp(self) -> tuple[Fraction, Fraction, Fraction]:
        """The release in zCDP: the smallest rho that is known, without a delta beside it if there is one such.

        Returns
        -------
        (rho, delta, distance) : tuple of Fraction
            For each two neighbors the two distributions are, up to a part of delta and a distance in total variation,
            as those of a rho-zCDP mechanism. From rho beside `added_delta`, from mu2 its half beside the same, from
            bounded range eta^2/8, from (epsilon, delta)-DP epsilon^2/2 beside its delta.
        """
        known = []
        if self.rho is not None:
            known.append((self.rho, self.added_delta, self.distance))
        if self.mu2 is not None:
            known.append((self.mu2 / 2, self.added_delta, self.distance))
        if self.bounded_range is not None:
            known.append((bounded_range_to_zcdp(self.bounded_range), Fraction(0), Fraction(0)))
        if self.epsilon is not None:
            known.append((pure_to_zcdp(self.epsilon), self.delta, Fraction(0)))
        # A delta is lost for good, rho is what is counted.
        return min(known, key=lambda form: (form[1] > 0, form))

    def pair(self) -> tuple[Fraction | LogRatio, Fraction] | None:
        """The release in (epsilon, delta)-DP; None when only rho or mu2 is known.

        Returns
        -------
        (epsilon, delta) : tuple, or None
            The bounded range with delta 0 when it is not above epsilon.
        """
        if self.epsilon is None or self.bounded_range is None:
            return None if self.epsilon is None else (self.epsilon, self.delta)
        span, given = parse_level(self.bounded_range), parse_level(self.epsilon)
        if value_enclosure(span)[1] <= value_enclosure(given)[0]:
            return self.bounded_range, Fraction(0)
        return self.epsilon, self.delta

    def for_neighbors(self, neighbors: Neighbors) -> PrivacyCost:
        """What the release costs for another neighbor relation.

        Parameters
        ----------
        neighbors : {"replace", "add-remove"}
            Of the cost that is returned.

        Returns
        -------
        PrivacyCost
            For "replace", from a cost for "add-remove": (2 epsilon, (1 + e^epsilon) delta), 4 rho, 4 mu2 and twice the
            bounded range, since to replace a user is to remove one and to add one. Rho and mu2 beside an `added_delta`
            are left out, and rho beside a distance.

        Raises
        ------
        ValueError
            Where the relation is not stated; for "add-remove", from a cost for "replace", which says nothing of it; and
            where nothing is left.

        Notes
        -----
        The release must be private for "add-remove" on the dataset in between too, which has a user less. Proof:
        docs/proofs/composition.md, section 6.

        Examples
        --------
        >>> PrivacyCost(1, neighbors="add-remove").for_neighbors("replace")
        PrivacyCost(epsilon=Fraction(2, 1), neighbors='replace')
        """
        if check_neighbors(neighbors) == self.neighbors:
            return self
        if self.neighbors is None:
            raise ValueError("the cost does not say for which neighbors it is: make it with neighbors=")
        if neighbors == "add-remove":
            raise ValueError(
                "neighbors: what replacing a user costs says nothing of adding or removing one; got 'add-remove'"
            )
        span, mu2 = self.bounded_range, None if self.added_delta else self.mu2
        # A distance that is of two neighbors only says nothing of a chain; that beside a mu2 is of every dataset.
        rho = None if self.added_delta or self.distance else self.rho
        if self.epsilon is None and mu2 is None and rho is None:
            raise ValueError(f"{self!r} says nothing of replacing a user: it needs an epsilon")
        return PrivacyCost(
            None if self.epsilon is None else _twice(self.epsilon),
            _delta_of_two(self.epsilon, self.delta) if self.delta and self.epsilon is not None else 0,
            None if rho is None else 4 * rho,
            0 if mu2 is None else self.distance,
            None if span is None else _twice(span),
            None if mu2 is None else 4 * mu2,
            neighbors=neighbors,
        )

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in FIELDS}
        if self.epsilon == self.bounded_range:
            del given["epsilon"]
        always = ("epsilon", "rho", "bounded_range", "mu2")
        named = (f"{key}={value!r}" for key, value in given.items() if value or (key in always and value is not None))
        return f"PrivacyCost({', '.join(named)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in FIELDS)


def _twice(epsilon: Fraction | LogRatio) -> Fraction | LogRatio:
    return 2 * epsilon if isinstance(epsilon, Fraction) else LogRatio(epsilon.numerator**2, epsilon.denominator**2)


def _delta_of_two(epsilon: Fraction | LogRatio, delta: Fraction) -> Fraction:
    """At or above (1 + e^epsilon) delta."""
    level = parse_level(epsilon)
    if level.exponent >= 2**10:
        return Fraction(1)
    of_two = (1 + enclosure(level, "epsilon")[1]) * delta
    return min(of_two if is_rational(level) else shortened(of_two, up=True), Fraction(1))


FIELDS = ("epsilon", "delta", "rho", "distance", "bounded_range", "mu2", "added_delta", "neighbors")
"""Of a cost, in the order of its arguments."""


Composition: TypeAlias = Literal["basic", "zcdp", "exact"]
Amount: TypeAlias = "Fraction | LogRatio"
Amounts: TypeAlias = "Mapping[str, PrivacyLevel]"
"""By name; a number x is the level e^x, so that sums with logarithms of fractions stay exact."""


LONGEST_SUM = 4096
"""More bits than this are not kept of a sum: of many fractions with large denominators it would grow without end."""


def added(amounts: Amounts, others: Amounts) -> Amounts:
    """Sums: exact up to `LONGEST_SUM` bits, and beyond that rounded up, by a factor below 1 + 2^-511."""
    return {
        name: PrivacyLevel(
            _bounded(level.ratio * others[name].ratio) if others[name].ratio != 1 else level.ratio,
            _bounded(level.exponent + others[name].exponent) if others[name].exponent else level.exponent,
        )
        for name, level in amounts.items()
    }


def _bounded(x: Fraction) -> Fraction:
    if x.numerator.bit_length() + x.denominator.bit_length() <= LONGEST_SUM:
        return x
    return shortened(x, up=True, bits=LONGEST_SUM // 8)


def within(amounts: Amounts, limits: Amounts) -> bool:
    """Whether no amount is above its limit, for certain."""
    return all(at_most(level, limits[name]) for name, level in amounts.items())


def _in_epsilon(cost: PrivacyCost) -> Amounts:
    pair = cost.pair()
    if pair is None:
        raise ValueError(
            "this ledger counts epsilon and delta, and the cost is in rho or mu2 only: give it an epsilon as well"
            " (PrivacyCost(zcdp_epsilon(rho, delta, distance=distance), delta)), or use composition='zcdp'"
        )
    return {"epsilon": parse_level(pair[0]), "delta": parse_level(pair[1])}


def _in_rho(cost: PrivacyCost) -> Amounts:
    rho, delta, distance = cost.zcdp()
    return {"rho": parse_level(rho), "delta": parse_level(delta), "distance": parse_level(distance)}


CHARGES: Mapping[str, Callable[[PrivacyCost], Amounts]] = {"basic": _in_epsilon, "zcdp": _in_rho}
"""What a cost takes of each thing that is counted, by the kind of composition; "exact" has slots besides."""


class ShownAmounts(Mapping[str, "Fraction | LogRatio"]):
    """Amounts by currency: exact, and in a few digits where they are printed."""

    def __init__(self, amounts: Mapping[str, Amount]) -> None:
        self._amounts = dict(amounts)

    def __getitem__(self, name: str) -> Amount:
        return self._amounts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def __repr__(self) -> str:
        numbers = ((name, value_enclosure(parse_level(amount))[0]) for name, amount in self.items())
        return "{" + ", ".join(f"{name!r}: {few_digits(number)}" for name, number in numbers) + "}"


def shown_amounts(amounts: Amounts) -> Mapping[str, Amount]:
    return ShownAmounts({name: epsilon_above(level) for name, level in amounts.items()})
