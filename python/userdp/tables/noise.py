"""How much noise each number of an answer gets, from public numbers, and what the whole release costs.

Neighbors, sensitivities and the split of the budget are stated in docs/proofs/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

from userdp.accounting import (
    PrivacyCost,
    bounded_range_to_mu2,
    gaussian_delta,
    largest_mu2,
    largest_rho,
    zcdp_delta,
)
from userdp.exact.epsilon import rational_below, shortened
from userdp.exact.numbers import LogRatio, Neighbors, least
from userdp.exceptions import BudgetError
from userdp.means.accuracy import NoiseTerm
from userdp.mechanisms import (
    CorrelatedCounts,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    PartitionSelection,
)
from userdp.mechanisms.discrete_gaussian import SMOOTHED_WITHIN, SMOOTHING
from userdp.mechanisms.key_bounds import key_changes, keyed_rho
from userdp.mechanisms.key_sums import KeySum
from userdp.mechanisms.set_union import MOST_OCCURRING, SetUnion
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables.aggregates import Mean, Quantile
from userdp.tables.compiled import USERS, Answer, Compiled, Statistic
from userdp.tables.quantiles import WEIGHT, levels_of, losses_of, pieces_of, rank_errors, rate_of, sensitivity_of
from userdp.tables.rows import bins_of

Noise: TypeAlias = "DiscreteGaussian | DiscreteLaplace"
KeyFinder: TypeAlias = "PartitionSelection | SparseHistogram | SetUnion"
"""What shows keys alone."""

LARGEST_TOTAL = 2**61
MOST_WORK = 2**32
"""Candidates of the quantiles of all keys."""
NO_NOISE = 1e-300
"""For the standard deviation of noise that is 0 in doubles."""
LARGEST_LAPLACE = 2**22
"""Wider discrete Laplace noise is added to totals that are rounded to coarser steps, so that its tables are small."""
FEW_KEYS = 4
"""From more keys of a user on, weights show a key of fewer users than counts do."""
LARGEST_CHOICE = Fraction(87)
"""Of one choice of the exponential mechanism, which takes an epsilon below 88: more is charged, and not used."""
RANGE_UNIT = bounded_range_to_mu2(1)
"""The mu2 of a bounded range of 1; that of a range grows with its square."""
A_LITTLE_LESS = 1 - Fraction(1, 2**20)
"""Of a budget, so that noise of a few million steps, which is accounted as smoothed continuous noise, is within it."""


@dataclass(frozen=True)
class Budget:
    """What one release may cost, in the currency of its ledger."""

    composition: str
    epsilon: Fraction | LogRatio | None  # with "basic"
    delta: Fraction  # with "basic" of the release; otherwise what may be beside rho or mu2
    rho: Fraction | None = None  # with "zcdp"
    distance: Fraction | None = None  # but with "basic": what is left; None for as much as it takes
    mu2: Fraction | None = None  # with "exact"


@dataclass(frozen=True)
class Keyed:
    """Numbers by key: each statistic with its noise, and, where keys are unknown, the threshold."""

    noise: tuple[tuple[Statistic, Noise], ...]
    sparse: SparseHistogram | None
    cost: PrivacyCost
    steps: tuple[int, ...] = ()  # of each noise, in units of its statistic; all 1 if there are none
    correlated: CorrelatedCounts | None = None  # in place of the noise, of users alone

    def step(self, statistic: Statistic) -> int:
        """To multiples of what a total is rounded before it gets its noise, which is in these steps."""
        return next((step for (one, _), step in zip(self.noise, self.steps, strict=False) if one == statistic), 1)

    def of(self, statistic: Statistic) -> Noise:
        """The noise of a statistic, where each key has its own."""
        return dict(self.noise)[statistic]

    def spread(self, statistic: Statistic) -> float:
        """The standard deviation of a statistic's noise, in its units."""
        if self.correlated is None:
            return deviation(self.of(statistic)) * self.step(statistic)
        # Multiples of 1 / q are rounded to integers, ties to even.
        q = self.correlated.theta.denominator
        return math.sqrt(self.correlated.variance + 1 / 12 + 1 / (6 * q**2))

    @property
    def spreads(self) -> list[tuple[Statistic, float]]:
        """Of all statistics."""
        listed = [one for one, _ in self.noise] if self.correlated is None else [USERS]
        return [(one, self.spread(one)) for one in listed]


@dataclass(frozen=True)
class Selected:
    """Quantiles by the exponential mechanism: one for each level of halving, which all keys and choices share."""

    answer: Answer
    mechanisms: tuple[ExponentialMechanism, ...]
    pieces: int  # of each bin
    epsilon: Fraction  # of each level, for a key that both versions of a user are in
    cost: PrivacyCost
    bins: int
    rates: tuple[tuple[Fraction, int], ...]  # of each level: epsilon and sensitivity of the mechanism

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """What is asked for."""
        assert isinstance(self.answer.aggregate, Quantile)
        return self.answer.aggregate.shares

    def rank_errors(self, failure: float) -> list[tuple[float, float]]:
        """How far in rank each quantile is off, but for this probability: users, and a part of all users."""
        return rank_errors(self.shares, self.rates, self.bins, self.pieces, failure)


@dataclass(frozen=True)
class Binned:
    """A histogram or a CDF, with the same noise in every bin."""

    answer: Answer
    noise: Noise
    cost: PrivacyCost
    step: int = 1  # as of numbers by key

    def margin(self, failure: float) -> float:
        """How far a bin is from the true one at most but for this probability, in users."""
        return (NoiseTerm.of(self.noise, self.step).quantile(failure) + off_by(self.step)) / WEIGHT


@dataclass(frozen=True)
class Allotment:
    """All noise of one release."""

    keyed: Keyed | None
    selected: tuple[Selected, ...]
    binned: tuple[Binned, ...]
    cost: PrivacyCost
    finder: KeyFinder | None = None  # where only keys are asked for

    @property
    def method(self) -> str:
        """Which account the noise follows."""
        if self.keyed is not None and self.keyed.correlated is not None:
            return "gaussian"
        laplace = [part.noise for part in self.binned] + [
            noise for _, noise in (self.keyed.noise if self.keyed else ())
        ]
        return "laplace" if all(isinstance(noise, DiscreteLaplace) for noise in laplace) else "gaussian"


def allot(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """Split a budget between the numbers of an answer.

    Raises
    ------
    ValueError
        Where keys are unknown and delta is 0.
    """
    made = _allotted(query, neighbors, budget)
    return replace(made, cost=replace(made.cost, neighbors=neighbors))


def _allotted(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    if query.unknown and budget.delta == 0:
        raise ValueError(
            "group_by: which keys there are is private, so a positive delta is needed; or give the public list of keys "
            "as keys="
        )
    if query.query.union is not None:
        return _keys_only(query, neighbors, budget)
    if budget.composition == "zcdp":
        return _within_rho(query, neighbors, budget)
    if budget.composition == "exact":
        return _within_mu2(query, neighbors, budget)
    assert budget.epsilon is not None
    if query.unknown:
        return _unknown(query, neighbors, budget.epsilon, budget.delta)
    epsilon = budget.epsilon
    if budget.delta == 0:
        return _laplace(query, neighbors, epsilon)
    # What all noise may be off the ideal one costs next to nothing; it is set aside before rho is known.
    spare = budget.delta / 2**20
    promise, left = (epsilon, budget.delta), budget.delta - spare

    def by_rho() -> Allotment:
        return gaussian_noise(query, neighbors, largest_rho(epsilon, left), Fraction(0), promise)

    def by_curve() -> Allotment:
        half = largest_mu2(epsilon, left) / 2
        return gaussian_noise(query, neighbors, half, Fraction(0), promise, smoothed=True)

    ways = [lambda: _laplace(query, neighbors, epsilon), by_rho]
    if all(not isinstance(answer.aggregate, Quantile) for answer in query.answers):
        # By the exact curve of Gaussian noise: about 7 % less of it, but for noise of a few steps.
        ways.append(by_curve)
    # What one cannot do, such as Laplace noise for a tiny epsilon or Gaussian noise for a tiny delta, another may.
    return min(_accepted(ways), key=_error)


def _accepted(ways: Iterable[Callable[[], Allotment]]) -> list[Allotment]:
    """What comes of several ways; where all are refused, the first refusal."""
    found, refusals = [], []
    for way in ways:
        try:
            found.append(way())
        except ValueError as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    return found


def _within_rho(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """Gaussian noise, or, where what drawn noise is off the ideal one is not left, what has a pure epsilon."""
    assert budget.rho is not None
    gaussian = gaussian_noise(query, neighbors, budget.rho, budget.delta, None)
    if budget.distance is None or gaussian.cost.distance <= budget.distance:
        return gaussian
    try:
        return _without_distance(query, neighbors, epsilon_within(budget), budget.delta)
    except ValueError:
        raise ValueError(TOO_FAR) from None


def epsilon_within(budget: Budget) -> Fraction:
    """The epsilon of a release that has no distance, within a rho or a mu2."""
    if budget.mu2 is None:
        # It costs epsilon^2 / 2 in rho at most.
        assert budget.rho is not None
        return shortened(root_below(2 * budget.rho), up=False)
    # Losses from -epsilon to epsilon are a bounded range of 2 epsilon.
    return shortened(root_below(budget.mu2 / (4 * RANGE_UNIT)), up=False)


TOO_FAR = (
    "what drawn Gaussian noise is off the ideal one would cost more than the session has left for it beside so "
    "large an epsilon, and no other noise was found: make the session with composition='basic', or with a "
    "smaller epsilon or a larger delta"
)


def _without_distance(query: Compiled, neighbors: Neighbors, epsilon: Fraction, delta: Fraction) -> Allotment:
    return _unknown(query, neighbors, epsilon, delta) if query.unknown else _laplace(query, neighbors, epsilon)


def _within_mu2(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """Gaussian noise by its exact curve, or what has a pure epsilon, where that is less noise or what is left."""
    assert budget.mu2 is not None
    found = []
    gaussian = gaussian_noise(query, neighbors, budget.mu2 / 2, budget.delta, None, smoothed=True)
    if budget.distance is None or gaussian.cost.distance <= budget.distance:
        found.append(gaussian)
    if not found or not query.unknown:
        epsilon = epsilon_within(budget)
        try:
            pure = _without_distance(query, neighbors, epsilon, budget.delta)
        except ValueError:
            if not found:
                raise ValueError(TOO_FAR) from None
        else:
            beside = budget.delta if query.unknown else Fraction(0)
            found.append(replace(pure, cost=cost_as_range(epsilon, beside)))
    return min(found, key=_error)


def cost_as_range(epsilon: Fraction, delta: Fraction = Fraction(0)) -> PrivacyCost:
    """The cost of an (epsilon, delta)-DP release with its mu2: up to an event, its losses have a range of 2 epsilon."""
    return PrivacyCost(epsilon, delta, mu2=bounded_range_to_mu2(2 * epsilon), added_delta=delta)


def _unknown(query: Compiled, neighbors: Neighbors, epsilon: Fraction | LogRatio, delta: Fraction) -> Allotment:
    """One joint account of counts and thresholds, and beside it quantiles and bins of the keys that are shown."""
    # Which keys are shown is released first; what is then said of them is about at most so many keys of a user.
    share, _ = _parts(query)
    keyed = _unknown_jointly(query, neighbors, _exactly(share, epsilon), delta)
    return Allotment(keyed, *_pure_others(query, neighbors, epsilon), PrivacyCost(epsilon, delta))


def _keys_only(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """Which keys there are, and nothing else."""
    method: Any = query.query.union
    if method != "auto":
        return _by_weights(query, neighbors, budget, method)
    by_counts = partial(_by_counts, query, neighbors, budget)
    # Who has one key has nothing to spread in a second round.
    by_weights = partial(_by_weights, query, neighbors, budget, "two-round" if query.max_keys > 1 else "one-round")
    if query.max_keys > FEW_KEYS:
        try:
            return by_weights()
        except ValueError as error:
            try:
                return by_counts()
            except ValueError:
                raise error from None
    ways = [by_counts, by_weights]
    if query.max_keys == 1:
        ways.insert(0, partial(_by_probabilities, query, neighbors, budget))
    return min(_accepted(ways), key=lambda made: users_needed(made.finder))


def users_needed(finder: KeyFinder | None) -> tuple[float, float]:
    """How many users show a key with a probability of 1/2, and of 9/10: they have 1, ..., max_keys keys in equal parts.

    A user with d keys adds 1 / sqrt(d) of what one with a key adds to sums of weights, and counts as 1 in counts.
    """
    assert finder is not None
    share = 1.0
    if isinstance(finder, SetUnion):
        share = math.fsum(1 / math.sqrt(keys) for keys in range(1, finder.max_keys + 1)) / finder.max_keys
    return finder.users_for("1/2") / share, finder.users_for("9/10") / share


def _by_probabilities(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """The largest probabilities, for users of one key."""
    epsilon, cost = _jointly(budget)
    selection = PartitionSelection(epsilon=epsilon, delta=budget.delta, neighbors=neighbors)
    return Allotment(None, (), (), cost, selection)


def _by_counts(query: Compiled, neighbors: Neighbors, budget: Budget) -> Allotment:
    """The threshold that counts of users would have, without the counts."""
    counted = allot(replace(query, query=replace(query.query, union=None), statistics=(USERS,)), neighbors, budget)
    assert counted.keyed is not None
    return Allotment(None, (), (), counted.cost, counted.keyed.sparse)


def _by_weights(query: Compiled, neighbors: Neighbors, budget: Budget, method: Any) -> Allotment:
    """Weights of users, in rounds or by a policy."""
    if budget.epsilon is None:
        # Of rho all of it, and of mu2 so much that noise of a few million steps is within it.
        half = budget.rho if budget.mu2 is None else budget.mu2 / 2 * A_LITTLE_LESS
        assert half is not None
        union = SetUnion.within(half, budget.delta, query.max_keys, neighbors=neighbors, method=method)
        if budget.mu2 is None:
            cost = PrivacyCost(rho=union.rho, added_delta=union.vanishing_delta, distance=union.distance)
        else:
            # A mu2 is about one distribution for every table, so all sums count, not only those that one user moves.
            far = sum(MOST_OCCURRING * (_distance_of(variance) + SMOOTHED_WITHIN) for variance, _ in union.rounds)
            cost = PrivacyCost(mu2=union.mu2, added_delta=union.vanishing_delta, distance=min(far, Fraction(1)))
        if budget.distance is None or cost.distance <= budget.distance:
            return Allotment(None, (), (), cost, union)
    # As where numbers are asked for: what has no distance.
    epsilon, cost = _jointly(budget)
    try:
        union = _calibrated_union(epsilon, budget.delta, query.max_keys, neighbors, method)
    except ValueError:
        if budget.epsilon is not None:
            raise
        raise ValueError(TOO_FAR) from None
    return Allotment(None, (), (), cost, union)


def _jointly(budget: Budget) -> tuple[Fraction | LogRatio, PrivacyCost]:
    """The epsilon of a release by one joint account, and what it is charged."""
    if budget.epsilon is not None:
        return budget.epsilon, PrivacyCost(budget.epsilon, budget.delta)
    epsilon = epsilon_within(budget)
    return epsilon, PrivacyCost(epsilon, budget.delta) if budget.mu2 is None else cost_as_range(epsilon, budget.delta)


def _distance_of(variance: Fraction) -> Fraction:
    return DiscreteGaussian(sigma_squared=variance).distance


@lru_cache(maxsize=64)
def _calibrated_union(
    epsilon: Fraction | LogRatio, delta: Fraction, max_keys: int, neighbors: Neighbors, method: Any
) -> SetUnion:
    """A plan and its release ask for the same one."""
    return SetUnion.calibrated(epsilon, delta, max_keys, neighbors=neighbors, method=method)


def _error(allotment: Allotment) -> float:
    """The sum of the logarithms of relative errors, to compare two accounts of one query."""
    total = 0.0
    for statistic, error in allotment.keyed.spreads if allotment.keyed else ():
        total += math.log(max(error, NO_NOISE) / statistic.largest)
    total += sum(math.log(max(deviation(part.noise), NO_NOISE) * part.step / WEIGHT) for part in allotment.binned)
    for part in allotment.selected:
        total -= len(part.mechanisms) * math.log(float(part.epsilon))
    return total


def off_by(step: int) -> float:
    """How far a total may be from the nearest multiple of a step."""
    return 0.0 if step == 1 else step / 2


def deviation(noise: Noise) -> float:
    """The standard deviation of noise, in steps."""
    return math.sqrt(NoiseTerm.of(noise, 1.0).variance)


# --- shares


def _parts(query: Compiled) -> tuple[Fraction, list[tuple[Answer, Fraction]]]:
    """The share of the numbers by key, and of each of the others; a list of quantiles counts once for each."""
    others = [answer for answer in query.answers if not answer.aggregate.of_keys]
    weights = [_levels(answer) if isinstance(answer.aggregate, Quantile) else 1 for answer in others]
    whole = sum(weights) + (1 if query.statistics else 0)
    keyed = Fraction(1 if query.statistics else 0, whole)
    return keyed, [(answer, Fraction(weight, whole)) for answer, weight in zip(others, weights, strict=True)]


def importance(query: Compiled) -> list[float]:
    """How much the variance of each statistic, relative to its range squared, counts in the errors of all answers."""
    # A mean is S / N around the middle of its range. With |mean - middle| of half the largest, the noise of N counts a
    # quarter as much as that of S.
    asked = {answer.total for answer in query.answers}
    weights = []
    for statistic in query.statistics:
        weight = 1.0 if statistic in asked else 0.0
        weight += sum(
            0.25 for answer in query.answers if isinstance(answer.aggregate, Mean) and answer.count == statistic
        )
        weights.append(weight or 0.25)
    return weights


def _fractions(weights: Sequence[float]) -> list[Fraction]:
    whole = sum(weights)
    return [Fraction(weight / whole).limit_denominator(10**6) or Fraction(1, 10**6) for weight in weights]


def _count_first(shares: list[Fraction]) -> list[Fraction]:
    """At least half for the count, on which it depends whether a key is shown."""
    if len(shares) == 1 or shares[0] >= sum(shares) / 2:
        return shares
    rest = sum(shares[1:])
    return [Fraction(1, 2), *(share / rest / 2 for share in shares[1:])]


# --- Laplace noise


def _laplace(query: Compiled, neighbors: Neighbors, epsilon: Fraction | LogRatio) -> Allotment:
    whole = rational_below(epsilon)
    share, _ = _parts(query)
    keyed = None
    if query.statistics:
        shares = _fractions([weight ** (1 / 3) for weight in importance(query)])
        shapes = key_changes(query.n_keys, query.max_keys, neighbors)
        # A number that moves by up to twice what it was planned for costs up to twice: two steps of that length.
        widths = [math.ceil(Fraction(one.high - one.low, one.largest)) for one in query.statistics]
        cost = max(
            sum((common * width + own) * part for width, part in zip(widths, shares, strict=True))
            for common, own in shapes
        )
        scale = share * whole / cost
        made = [laplace_noise(part * scale, one.largest) for one, part in zip(query.statistics, shares, strict=True)]
        noise = tuple((one, each) for one, (each, _) in zip(query.statistics, made, strict=True))
        keyed = Keyed(noise, None, PrivacyCost(_exactly(share, epsilon)), tuple(step for _, step in made))
    return Allotment(keyed, *_pure_others(query, neighbors, epsilon), PrivacyCost(epsilon))


def _pure_others(
    query: Compiled, neighbors: Neighbors, epsilon: Fraction | LogRatio
) -> tuple[tuple[Selected, ...], tuple[Binned, ...]]:
    """Quantiles and histograms within their shares of epsilon."""
    whole = rational_below(epsilon)
    shapes = key_changes(query.n_keys, query.max_keys, neighbors)
    selected, binned = [], []
    for answer, part in _parts(query)[1]:
        cost_of = PrivacyCost(_exactly(part, epsilon))
        if isinstance(answer.aggregate, Quantile):
            loss, _ = losses_of(levels_of(answer.aggregate.shares), neighbors, shapes)
            selected.append(_selected(query, answer, neighbors, part * whole / loss, cost_of))
        else:
            # The bins of a key that both versions of a user have move by twice a weight.
            loss = Fraction(max(2 * common + own for common, own in shapes))
            each, step = laplace_noise(part * whole / loss, WEIGHT, _bins(query, answer))
            binned.append(Binned(answer, each, cost_of, step))
    return tuple(selected), tuple(binned)


def _bins(query: Compiled, answer: Answer) -> int:
    return bins_of(answer, query.types).count


def _exactly(share: Fraction, epsilon: Fraction | LogRatio) -> Fraction | LogRatio:
    return epsilon if share == 1 else share * rational_below(epsilon)


def _moved(sensitivity: int, totals: int, step: int) -> int:
    """By how many steps: totals that differ by d are rounded to multiples that are ceil(d / step) apart at most."""
    return (sensitivity + totals * (step - 1)) // step


def _step(epsilon: Fraction, sensitivity: int, totals: int = 1) -> int:
    """To multiples of what totals are rounded before Laplace noise, a power of two, so that its tables are small."""
    step = 1
    while _moved(sensitivity, totals, step) > epsilon * LARGEST_LAPLACE and 2 * step <= sensitivity:
        step *= 2
    return step


def laplace_noise(epsilon: Fraction, sensitivity: int, totals: int = 1) -> tuple[DiscreteLaplace, int]:
    """Noise for totals that together move by at most `sensitivity`, rounded to multiples of a step."""
    step = _step(epsilon, sensitivity, totals)
    try:
        noise = DiscreteLaplace(
            epsilon=shortened(epsilon, up=False),
            sensitivity=_moved(sensitivity, totals, step),
            bounds=(-(LARGEST_TOTAL // step), LARGEST_TOTAL // step),
        )
        noise.tail(0)  # makes its tables: what is refused is refused before anything is charged
    except (BudgetError, ValueError):
        raise ValueError(
            f"epsilon {float(epsilon):.3g} for one number is too little for exact Laplace noise: take a larger "
            "epsilon, fewer answers, or a positive delta"
        ) from None
    return noise, step


def nearest(totals: Any, step: int) -> Any:
    """Integers in steps: the nearest multiples, halves up."""
    return totals if step == 1 else totals // step + (totals % step >= step - step // 2)


# --- Gaussian noise


def gaussian_noise(
    query: Compiled,
    neighbors: Neighbors,
    rho: Fraction,
    beside: Fraction,
    promise: tuple[Fraction | LogRatio, Fraction] | None,
    *,
    smoothed: bool = False,
) -> Allotment:
    """Gaussian noise within rho, with a delta beside it for thresholds; `promise` is what it is shown to keep."""
    # Smoothed: noise of sigma^2 on integers stands for continuous noise of sigma^2 - SMOOTHING, and rho for mu^2 / 2.
    wider = SMOOTHING if smoothed else 0
    far = SMOOTHED_WITHIN if smoothed else Fraction(0)
    share, others = _parts(query)
    keyed = None
    spent, distance, vanishing = Fraction(0), Fraction(0), Fraction(0)
    if query.statistics:
        keyed = _gaussian_keyed(query, neighbors, share * rho, beside, wider, far)
        assert keyed.cost.rho is not None
        spent, distance, vanishing = keyed.cost.rho, keyed.cost.distance, keyed.cost.added_delta
    shapes = key_changes(query.n_keys, query.max_keys, neighbors)
    selected, binned = [], []
    for answer, part in others:
        if isinstance(answer.aggregate, Quantile):
            loss, squared_loss = losses_of(levels_of(answer.aggregate.shares), neighbors, shapes)
            # Bounded range eps costs eps^2 / 8 in rho, and pi / 8 eps^2 in mu^2; levels are chosen one after the other.
            unit = RANGE_UNIT / 2 if smoothed else Fraction(1, 8)
            each = shortened(root_below(part * rho / (unit * squared_loss)), up=False)
            cost = PrivacyCost(epsilon=loss * each, rho=squared_loss * each**2 * unit)
            selected.append(_selected(query, answer, neighbors, each, cost))
        else:
            # Bins of one user are not negative and add up to a weight, so their change is within its length, or the
            # square root of 2 times that in a key that both versions of a user have.
            squared = max(2 * common + own for common, own in shapes) * WEIGHT**2
            noise = DiscreteGaussian(sigma_squared=rounded_up(Fraction(squared) / (2 * part * rho)) + wider)
            own = squared / (2 * (noise.sigma_squared - wider))
            # Known keys all have a distribution near an ideal one; of others those that one user is in, but a mu2 is
            # about one distribution for every table.
            unlisted = MOST_OCCURRING if smoothed else 2 * query.max_keys
            keys = unlisted if query.n_keys is None else query.n_keys
            cost = PrivacyCost(rho=own, distance=keys * _bins(query, answer) * (noise.distance + far))
            binned.append(Binned(answer, noise, cost))
        assert cost.rho is not None
        spent, distance = spent + cost.rho, distance + cost.distance
    distance = min(distance, Fraction(1))
    if promise is None and smoothed:
        whole = PrivacyCost(mu2=2 * spent, added_delta=vanishing, distance=distance)
    elif promise is None:
        whole = PrivacyCost(rho=spent, added_delta=vanishing, distance=distance)
    else:
        epsilon, delta = promise
        if smoothed:
            needed = gaussian_delta(2 * spent, epsilon, distance=distance)
            whole = PrivacyCost(epsilon, delta, mu2=2 * spent, distance=distance)
        else:
            needed = zcdp_delta(spent, epsilon, distance=distance)
            whole = PrivacyCost(epsilon, delta, rho=spent, distance=distance)
        if needed > delta:
            raise ValueError(
                f"delta={float(delta):.3g} is below what the noise of {len(query.answers)} answers is off the "
                "ideal one; take a larger delta, or 0"
            )
    return Allotment(keyed, tuple(selected), tuple(binned), whole)


def _gaussian_keyed(
    query: Compiled, neighbors: Neighbors, rho: Fraction, beside: Fraction, wider: int = 0, far: Fraction = Fraction(0)
) -> Keyed:
    shares = _fractions([math.sqrt(weight) for weight in importance(query)])
    if query.unknown:
        shares = _count_first(shares)
    alone = _gaussian_alone(query, neighbors, rho, beside, wider, far, shares)
    if query.statistics != (USERS,) or query.unknown or query.n_keys == 1 or neighbors != "add-remove":
        return alone
    shared = _correlated(query, rho, wider)
    return alone if shared is None or shared.spread(USERS) >= alone.spread(USERS) else shared


def _correlated(query: Compiled, rho: Fraction, wider: int) -> Keyed | None:
    """Counts of users with noise in common, which no other neighbors and no other numbers gain by."""
    assert query.n_keys is not None
    budget = {"mu2": 2 * rho} if wider else {"rho": rho}
    try:
        counts = CorrelatedCounts(n_keys=query.n_keys, max_keys=query.max_keys, **budget)
    except ValueError:
        return None  # noise that is too small or too large to draw
    if not counts.theta:
        return None
    cost = counts.cost
    half = cost.rho if cost.mu2 is None else cost.mu2 / 2
    return Keyed((), None, PrivacyCost(rho=half, distance=cost.distance), correlated=counts)


def _gaussian_alone(
    query: Compiled,
    neighbors: Neighbors,
    rho: Fraction,
    beside: Fraction,
    wider: int,
    far: Fraction,
    shares: Sequence[Fraction],
) -> Keyed:
    """Gaussian noise of its own for each number of each key."""
    relative = [
        one.largest**2 / part for one, part in zip(query.statistics, shares, strict=True)
    ]  # of the variances, up to one factor
    ranges = [(one.low, one.high) for one in query.statistics]
    cost = keyed_rho(
        [(low, high, variance) for (low, high), variance in zip(ranges, relative, strict=True)],
        n_keys=query.n_keys,
        max_keys=query.max_keys,
        neighbors=neighbors,
    )
    factor = cost / rho
    noise = tuple(
        (one, DiscreteGaussian(sigma_squared=rounded_up(variance * factor) + wider))
        for one, variance in zip(query.statistics, relative, strict=True)
    )
    exact = keyed_rho(
        [(low, high, one.sigma_squared - wider) for (low, high), (_, one) in zip(ranges, noise, strict=True)],
        n_keys=query.n_keys,
        max_keys=query.max_keys,
        neighbors=neighbors,
    )
    of_a_key = sum((one.distance + far for _, one in noise), Fraction(0))
    if query.unknown:
        sparse = _thresholded(query, neighbors, noise, beside)
        # A mu2 is about one distribution for every table: all keys count that there may be.
        distance = min(MOST_OCCURRING * of_a_key, Fraction(1)) if wider else sparse.distance
        return Keyed(noise, sparse, PrivacyCost(rho=exact, added_delta=sparse.vanishing_delta, distance=distance))
    assert query.n_keys is not None
    return Keyed(noise, None, PrivacyCost(rho=exact, distance=min(query.n_keys * of_a_key, Fraction(1))))


def _thresholded(
    query: Compiled, neighbors: Neighbors, noise: Sequence[tuple[Statistic, DiscreteGaussian]], beside: Fraction
) -> SparseHistogram:
    """The least threshold at which keys that only one user has are shown with at most this probability in all."""

    def made(threshold: int) -> SparseHistogram:
        return SparseHistogram(
            max_keys=query.max_keys,
            threshold=threshold,
            epsilon=1,
            neighbors=neighbors,
            sigma_squared=noise[0][1].sigma_squared,
            sums=[KeySum(one.low, one.high, sigma_squared=each.sigma_squared) for one, each in noise[1:]],
        )

    return made(least(lambda threshold: made(threshold).vanishing_delta <= beside, 0, 2, math.inf))


def _unknown_jointly(query: Compiled, neighbors: Neighbors, epsilon: Fraction | LogRatio, delta: Fraction) -> Keyed:
    shares = _count_first(_fractions([math.sqrt(weight) for weight in importance(query)]))
    _, keys = max(key_changes(None, query.max_keys, neighbors), key=sum)
    of_a_key = rational_below(epsilon) / keys
    sums = query.statistics[1:]
    steps = [_step(share * of_a_key, one.largest) for one, share in zip(sums, shares[1:], strict=True)]
    sparse = SparseHistogram.calibrated(
        epsilon,
        delta,
        query.max_keys,
        neighbors=neighbors,
        # In steps a user moves a rounded sum by no more than from the floor of the least to the ceiling of the most.
        sums=[(one.low // step, -(-one.high // step)) for one, step in zip(sums, steps, strict=True)],
        weights=shares,
    )
    noises = [sparse.noise, *(one.noise for one in sparse.sums)]
    cost = PrivacyCost(epsilon, delta)
    return Keyed(tuple(zip(query.statistics, noises, strict=True)), sparse, cost, (1, *steps))


def rounded_up(variance: Fraction) -> Fraction:
    """A variance that discrete Gaussian noise can have, at least as large."""
    return max(shortened(variance, up=True), Fraction(1, 100))


def root_below(x: Fraction) -> Fraction:
    """Just below the square root."""
    bits = 80
    return Fraction(math.isqrt(x.numerator * 2 ** (2 * bits) // x.denominator), 2**bits)


# --- selections


def _levels(answer: Answer) -> int:
    assert isinstance(answer.aggregate, Quantile)
    return len(levels_of(answer.aggregate.shares))


def _selected(query: Compiled, answer: Answer, neighbors: Neighbors, each: Fraction, cost: PrivacyCost) -> Selected:
    assert isinstance(answer.aggregate, Quantile)
    levels = levels_of(answer.aggregate.shares)
    bins, by_key = _bins(query, answer), bool(query.group)
    pieces = pieces_of(bins, answer.aggregate.shares, by_key=by_key)
    if query.n_keys is not None and query.n_keys * bins * pieces > MOST_WORK:
        raise BudgetError(
            f"{answer.name}: {query.n_keys} keys times {bins} steps of {answer.aggregate.column!r} are above 2**32 "
            "candidates of quantiles: take fewer keys, or a column with fewer steps"
        )
    alone, each = len(levels) == 1 and not by_key, min(each, LARGEST_CHOICE)
    rates = tuple((rate_of(each, level, whole=alone), sensitivity_of(level, neighbors, pieces)) for level in levels)
    try:
        mechanisms = tuple(ExponentialMechanism(epsilon=rate, sensitivity=sensitivity) for rate, sensitivity in rates)
    except ValueError:
        raise ValueError(
            f"{answer.name}: epsilon {float(each):.3g} for one choice is too little for exact quantiles: take a larger "
            "epsilon, fewer shares, or fewer groups of a user (max_keys)"
        ) from None
    return Selected(answer, mechanisms, pieces, each, cost, bins, rates)
