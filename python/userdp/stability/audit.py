"""Stability as exact numbers: a learner on every sample of a small distribution, with the sample's probability."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypedDict

from userdp.algorithms.evaluation import mechanism_name
from userdp.concepts.classes import ConceptClass
from userdp.exact.numbers import Delta, check_count, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.runtime import Progress, ProgressCallback, progress_bar
from userdp.stability.outcomes import Errors, Outcome, Samples, read_masses, read_pmf, runner
from userdp.stability.parameters import PRECISION, Method, pair_agreement, stability_from_agreement
from userdp.stability.report import Enclosed, ItemStability, SeedStability, StabilityReport

DEFAULT_BUDGET = 10**8
"""Pairs of distributions times items: some minutes."""
ONE = 1 << PRECISION
DISTRIBUTION_BITS = PRECISION + 64
"""Bits of the sum of a distribution's weights when distributions are compared."""


def audit_stability(
    learner: Any,
    distribution: Mapping[Any, Any],
    *,
    m: int,
    alpha: Delta = 1,
    eta: Delta = "9/10",
    method: Method = "race",
    seeds: Mapping[Any, Any] | Sequence[Any] | None = None,
    errors: Callable[[Any], Any] | None = None,
    concepts: ConceptClass | None = None,
    canonical: Pmf | Mapping[Any, Any] | None = None,
    symmetric: bool = True,
    budget: int | None = None,
    progress: Progress = None,
) -> StabilityReport:
    """How stable a learner is under a distribution, exactly, by running it on every sample.

    Parameters
    ----------
    learner : RepresentationLearner, ListStabilityLearner, ListLearner, StableLearner or callable
        A callable takes a sample, a tuple of m examples, and returns the distribution of its outcome (a `Pmf` or a
        mapping from item to probability), which users draw from with public randomness; or one item; or a set of items,
        the list of a list learner. With `seeds` it takes a sample and a seed.
    distribution : mapping
        D, from example to probability; exact, with the sum 1. For learner objects an example is (x, y) with y in
        {0, 1} and x a row of features, as a tuple, or a number for a row of one. Synthetic or public: the report is
        not private.
    m : int
        Examples of a sample, >= 1.
    alpha : number in [0, 1]
        The error that counts as accurate; 1 asks for none.
    eta : number in [0, 1]
        The probability that counts as stable in pseudo-global stability.
    method : {"race", "darts"}
        How distributions are drawn from with public randomness.
    seeds : mapping or sequence, optional
        All values of the public randomness, with their probabilities or equally likely. For learners with finitely much
        of it, and for looking at some seeds of a `StableLearner`, each a `PublicSeed`.
    errors : callable, optional
        From item to its exact error under D. By default from what the learner object says that items predict.
    concepts : ConceptClass, optional
        The class by which D has to be realizable when accuracy is asked for; by default the class of the learner.
    canonical : Pmf or mapping, optional
        A distribution that does not depend on the sample, from which the hypothesis in common is drawn; by default the
        mixture of the distributions of all samples.
    symmetric : bool
        The outcome does not depend on the order of examples (which is tried out on a few samples): multisets of
        examples are enough. False goes over all sequences, as `ListStabilityLearner` needs.
    budget : int, optional
        Refuse when pairs of distinct distributions times items exceed this; 10**8 by default.
    progress : bool, callable or None
        See `userdp.audit.audit_user_level`.

    Returns
    -------
    StabilityReport
        For distributions: the probability of every item, the agreement of two users, the distance to the canonical
        distribution and what these say about pseudo-global stability. For lists: the longest, and the probability of
        every item to be listed. With seeds: every seed's likeliest item, and pseudo-global stability itself.

    Raises
    ------
    BudgetError
        For over 2,000,000 runs or 2**26 examples of all samples, and for too many pairs of distinct distributions.

    Notes
    -----
    [GKM21, Definition 14], [GKM21, Definition 15] and [GKM21, Definition 16], for finite domains. Probabilities are
    exact: fractions where samples alone decide, otherwise enclosed within about 2**-250. Proofs:
    docs/proofs/stability.md.

    Examples
    --------
    Thresholds on two points, the target in the middle: users vote with probabilities proportional to 2**-errors.

    >>> import math
    >>> from userdp.concepts import FiniteClass
    >>> from userdp.stability import RepresentationLearner
    >>> learner = RepresentationLearner(FiniteClass([[0, 0], [1, 0], [1, 1]]), gamma=2 * math.log(2))
    >>> report = audit_stability(learner, {(0, 1): "1/2", (1, 0): "1/2"}, m=2, alpha=0)
    >>> print(report)
    Stability of RepresentationLearner
      3 samples of m=2 from 2 examples, 3 distinct outcomes
      the likeliest item of error at most 0 has probability 0.472222
      two users agree with probability 0.825 (race)
      a user misses the canonical draw with probability 0.130987
      9/10-stable and accurate for a fraction between 0 and 0.524691 of the public randomness
        1: 0.472222, error 0
        0: 0.263889, error 1/2
        2: 0.263889, error 1/2
    """
    atoms, size = read_masses(distribution, "distribution"), check_count(m, "m")
    accurate, stable = parse_delta(alpha, "alpha"), parse_delta(eta, "eta")
    if not stable:
        raise ValueError("eta must be in (0, 1]; got 0")
    if method not in ("race", "darts"):
        raise ValueError(f"method must be 'race' or 'darts'; got {short_repr(method)}")
    limit = DEFAULT_BUDGET if budget is None else check_count(budget, "budget")
    public = {None: Fraction(1)} if seeds is None else read_masses(seeds, "seeds")
    if isinstance(canonical, (set, frozenset)):
        raise TypeError(f"canonical must be a Pmf or a mapping to probabilities; got {short_repr(canonical)}")
    center = None if canonical is None else read_pmf(canonical, "canonical")
    samples = Samples(atoms, size, symmetric=bool(symmetric), runs=len(public))
    errors_of = Errors(learner, atoms, errors, concepts, accurate)
    run = runner(learner, atoms, () if seeds is None else public)
    with progress_bar(progress, "running the learner") as callback:
        found = {seed: samples.outcomes(run, seed, callback) for seed in public}
    distinct = {outcome for weighted in found.values() for outcome in weighted}
    if len({outcome.is_list for outcome in distinct}) > 1:
        raise TypeError("learner must return distributions or items for all samples, or sets for all samples")
    is_list = next(iter(distinct)).is_list
    if is_list and seeds is not None:
        raise TypeError("learner must not return sets where there are seeds")
    per_seed = {seed: _probabilities(weighted, samples.total) for seed, weighted in found.items()}
    items = _rated(_mean(per_seed, public), errors_of)
    report = _Parts(
        learner=mechanism_name(learner),
        distribution=tuple(atoms.items()),
        m=size,
        alpha=accurate,
        eta=stable,
        samples=samples.count,
        outcomes=len(distinct),
        items=items,
        global_stability=_best(items, errors_of),
    )
    if is_list:
        return StabilityReport(**report, list_size=max(len(outcome.weights) for outcome in distinct))
    if seeds is not None:
        rated = {seed: _rated(probabilities, errors_of) for seed, probabilities in per_seed.items()}
        rows = tuple(_seed(seed, public[seed], own, errors_of, stable) for seed, own in rated.items())
        return StabilityReport(**report, nu=_joint(rows), seeds=rows)
    (weighted,) = found.values()
    with progress_bar(progress, "comparing distributions") as callback:
        agreement, distance = _agreements(weighted, samples.total, center, method, limit, callback)
    return StabilityReport(
        **report,
        method=method,
        agreement=agreement,
        distance=distance,
        nu=_implied(agreement, distance, items, errors_of, stable),
    )


class _Parts(TypedDict):
    """What every report has."""

    learner: str
    distribution: tuple[tuple[Any, Fraction], ...]
    m: int
    alpha: Fraction
    eta: Fraction
    samples: int
    outcomes: int
    items: tuple[ItemStability, ...]
    global_stability: Enclosed


def _probabilities(weighted: Mapping[Outcome, int], total: int) -> dict[Hashable, Enclosed]:
    """The probability of every item, over samples; of being listed, for lists."""
    low: dict[Hashable, int] = {}
    high: dict[Hashable, int] = {}
    for outcome, weight in weighted.items():
        below = outcome.total
        for item, own in outcome.weights:
            # Certain items, and those of lists, are exact: own / below is 1.
            low[item] = low.get(item, 0) + weight * ((own << PRECISION) // below)
            high[item] = high.get(item, 0) - weight * (-(own << PRECISION) // below)
    scale = total << PRECISION
    return {item: Enclosed(Fraction(low[item], scale), Fraction(high[item], scale)) for item in low}


def _mean(
    per_seed: Mapping[Any, Mapping[Hashable, Enclosed]], public: Mapping[Any, Fraction]
) -> dict[Hashable, Enclosed]:
    """Probabilities over public randomness too."""
    if len(per_seed) == 1:
        return dict(next(iter(per_seed.values())))
    mean: dict[Hashable, Enclosed] = {}
    for seed, probabilities in per_seed.items():
        for item, own in probabilities.items():
            so_far = mean.get(item, _ZERO)
            mean[item] = Enclosed(so_far.lower + public[seed] * own.lower, so_far.upper + public[seed] * own.upper)
    return mean


def _rated(probabilities: Mapping[Hashable, Enclosed], errors_of: Errors) -> tuple[ItemStability, ...]:
    """Items with their errors, the likeliest first."""
    rated = [ItemStability(item, own, errors_of(item)) for item, own in probabilities.items()]
    return tuple(sorted(rated, key=lambda own: (-own.probability.lower, len(repr(own.item)), repr(own.item))))


def _best(items: Sequence[ItemStability], errors_of: Errors) -> Enclosed:
    """The largest probability of an accurate item."""
    fine = [own.probability for own in items if errors_of.accurate(own.error)]
    return Enclosed(max(own.lower for own in fine), max(own.upper for own in fine)) if fine else _ZERO


def _seed(
    seed: Any, weight: Fraction, items: Sequence[ItemStability], errors_of: Errors, eta: Fraction
) -> SeedStability:
    """What happens for one value of the public randomness."""
    best = max(items, key=lambda own: (own.probability.lower, errors_of.accurate(own.error)))
    fine = [own for own in items if errors_of.accurate(own.error)]
    return SeedStability(seed, weight, best, _reaches(items, eta), _reaches(fine, eta))


def _reaches(items: Sequence[ItemStability], eta: Fraction) -> bool | None:
    """Whether the likeliest item has probability at least eta; None where the enclosure leaves it open."""
    if any(own.probability.lower >= eta for own in items):
        return True
    return None if any(own.probability.upper >= eta for own in items) else False


def _joint(seeds: Sequence[SeedStability]) -> Enclosed:
    """The weight of seeds with a stable and accurate item."""
    return Enclosed(
        sum((own.weight for own in seeds if own.accurate), Fraction(0)),
        sum((own.weight for own in seeds if own.accurate is not False), Fraction(0)),
    )


def _agreements(
    weighted: Mapping[Outcome, int],
    total: int,
    center: Outcome | None,
    method: Method,
    limit: int,
    callback: ProgressCallback,
) -> tuple[Enclosed, Enclosed]:
    """How often two users agree, and how often one does not agree with the canonical distribution."""
    pmfs = [(_short(dict(outcome.weights)), weight) for outcome, weight in weighted.items()]
    pairs, width = len(pmfs) * (len(pmfs) + 1) // 2, max(len(outcome.weights) for outcome in weighted)
    if pairs * width > limit:
        raise BudgetError(
            f"{pairs:,} pairs of {len(pmfs):,} distinct distributions on up to {width:,} items; "
            f"budget {limit:,} pairs times "
            "items. Cheaper: a smaller m, fewer examples or hypotheses, or measure_agreement"
        )
    common = _short(_mixture(weighted) if center is None else dict(center.weights))
    low = high = near_low = near_high = 0
    for done, (output_distribution, weight) in enumerate(pmfs):
        low, high = low + weight * weight * ONE, high + weight * weight * ONE
        for other, others in pmfs[done + 1 :]:
            least, most = _pair(output_distribution, other, method)
            low, high = low + 2 * weight * others * least, high + 2 * weight * others * most
        least, most = _pair(output_distribution, common, method)
        near_low, near_high = near_low + weight * least, near_high + weight * most
        callback(done + 1, len(pmfs))
    scale, of_distance = total * total * ONE, total * ONE
    return (
        Enclosed(max(Fraction(0), Fraction(low, scale)), min(Fraction(1), Fraction(high, scale))),
        Enclosed(
            max(Fraction(0), 1 - Fraction(near_high, of_distance)),
            min(Fraction(1), 1 - Fraction(near_low, of_distance)),
        ),
    )


def _short(output_distribution: Mapping[Hashable, int]) -> tuple[dict[Hashable, int], int]:
    """A pmf with short weights, and by how much this moves agreements at most, in 2**-PRECISION."""
    # Rounding moves a distribution of k items by at most d = k * 2**-DISTRIBUTION_BITS in total variation, and draws
    # from it differ from those from the original with probability at most 2 d.
    total = sum(output_distribution.values())
    if total.bit_length() <= DISTRIBUTION_BITS:
        return dict(output_distribution), 0
    return {item: (own << DISTRIBUTION_BITS) // total for item, own in output_distribution.items()}, 1


def _pair(p: tuple[dict[Hashable, int], int], q: tuple[dict[Hashable, int], int], method: Method) -> tuple[int, int]:
    """The agreement of two distributions."""
    (a, moved), (b, also_moved) = p, q
    items = [*a, *(item for item in b if item not in a)]
    low, high = pair_agreement([a.get(item, 0) for item in items], [b.get(item, 0) for item in items], method)
    return low - moved - also_moved, high + moved + also_moved


def _mixture(weighted: Mapping[Outcome, int]) -> dict[Hashable, int]:
    """The mean pmf, rounded to about 2**-256: any that is free of the sample may be canonical."""
    mixed: dict[Hashable, int] = {}
    for outcome, weight in weighted.items():
        for item, own in outcome.weights:
            mixed[item] = mixed.get(item, 0) + weight * ((own << PRECISION) // outcome.total)
    return mixed


def _implied(
    agreement: Enclosed, distance: Enclosed, items: Sequence[ItemStability], errors_of: Errors, eta: Fraction
) -> Enclosed:
    """What is known of the public randomness for which an accurate item is eta-stable; docs/proofs/stability.md."""
    missed = Fraction(int(distance.upper > 0)) if eta == 1 else distance.upper / (1 - eta)
    stable = max(stability_from_agreement(agreement.lower, eta), 1 - missed)
    fine = [own.probability for own in items if errors_of.accurate(own.error)]
    low, high = sum((own.lower for own in fine), Fraction(0)), sum((own.upper for own in fine), Fraction(0))
    inaccurate = Fraction(0) if len(fine) == len(items) else 1 - low
    return Enclosed(max(Fraction(0), stable - inaccurate / eta), min(Fraction(1), agreement.upper / eta**2, high / eta))


_ZERO = Enclosed(Fraction(0), Fraction(0))
