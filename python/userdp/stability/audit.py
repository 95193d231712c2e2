"""Stability as exact numbers: a learner on every sample of a small distribution, with its probability."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.algorithms.finite import mechanism_name
from userdp.concepts.classes import ConceptClass
from userdp.exact.numbers import (
    Delta,
    Interval,
    capped_binomial,
    capped_power,
    check_count,
    check_kind,
    exact_number,
    is_listed,
    parse_delta,
    short_repr,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.public_randomness.agreement import disagreement_of_darts, race_terms
from userdp.public_randomness.seed import PublicSeed
from userdp.report import ItemStability, SeedStability, StabilityReport
from userdp.runtime import Progress, ProgressCallback, progress_bar
from userdp.stability.agreement import stability_from_agreement
from userdp.stability.learner import StableLearner
from userdp.stability.lists import ListLearner
from userdp.stability.parameters import Method
from userdp.users.table import UserTable

MAX_RUNS = 2_000_000
"""Samples times seeds; each is one run of the learner."""
MAX_EXAMPLES = 2**26
"""Samples times their examples, which are held together."""
SYMMETRY_SAMPLES = 16

Atoms: TypeAlias = "Mapping[Any, Fraction]"
Member: TypeAlias = "tuple[int, ...]"
"""A sample, as the numbers of its examples in the distribution."""


@dataclass(frozen=True)
class Outcome:
    """A distribution of items in lowest terms, or a list of items."""

    weights: frozenset[tuple[Hashable, int]]  # Positive weights; 1 for every item of a list
    is_list: bool = False

    @property
    def total(self) -> int:
        """What a weight is divided by: 1 for a list."""
        return 1 if self.is_list else sum(weight for _, weight in self.weights)


def read_masses(value: Any, name: str) -> dict[Any, Fraction]:
    """Read a mapping to exact probabilities with the sum 1, or a sequence of things that are equally likely."""
    if is_listed(value, Sequence):
        things = list(value)
        value = {thing: Fraction(1, len(things)) for thing in things}
        if len(value) != len(things):
            raise ValueError(f"{name} has the same entry twice")
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping to probabilities; got {short_repr(value)}")
    masses = {}
    for thing, entry in value.items():
        try:
            mass = exact_number(entry)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: the probability {short_repr(entry)}: {error}") from None
        if mass is None or mass < 0:
            raise ValueError(f"{name}: the probability {short_repr(entry)} is not a finite number >= 0")
        masses[thing] = mass
    total = sum(masses.values(), Fraction(0))
    if total != 1:
        raise ValueError(
            f"{name} must sum to exactly 1; got {float(total):.17g}. Fractions and strings such as '1/3' are exact"
        )
    return {thing: mass for thing, mass in masses.items() if mass}


def read_pmf(value: Any, name: str) -> Outcome:
    """Read what a learner returned."""
    if isinstance(value, Pmf):
        pairs = list(zip(value.outputs, value.weights, strict=True))
    elif isinstance(value, (set, frozenset)):
        return Outcome(frozenset((item, 1) for item in value), is_list=True)
    elif isinstance(value, Mapping):
        masses = read_masses(value, name)
        common = math.lcm(*(mass.denominator for mass in masses.values()))
        pairs = [(item, mass.numerator * (common // mass.denominator)) for item, mass in masses.items()]
    elif isinstance(value, Hashable):
        pairs = [(value, 1)]
    else:
        raise TypeError(f"{name} must be a Pmf, a mapping to probabilities, a set or an item; got {short_repr(value)}")
    divisor = math.gcd(*(weight for _, weight in pairs))
    return Outcome(frozenset((item, weight // divisor) for item, weight in pairs if weight))


class Samples:
    """All samples of m independent examples, with their probabilities."""

    def __init__(self, atoms: Atoms, m: int, *, symmetric: bool, runs: int) -> None:
        self.examples, self.m, self.symmetric = tuple(atoms), m, symmetric
        common = math.lcm(*(mass.denominator for mass in atoms.values()))
        self.weights = [mass.numerator * (common // mass.denominator) for mass in atoms.values()]
        size = len(atoms)
        self.count = capped_binomial(m + size - 1, size - 1, MAX_RUNS) if symmetric else capped_power(size, m, MAX_RUNS)
        if self.count * runs > MAX_RUNS:
            kind = "count vectors" if symmetric else "sequences"
            raise BudgetError(
                f"{self.count:,}{' or more' if self.count > MAX_RUNS else ''} {kind} of {m} among {size} examples, for "
                f"{runs:,} seeds; at most {MAX_RUNS:,} runs are made. Cheaper: fewer examples or seeds, a smaller m, "
                "or measure_agreement"
            )
        if self.count * m > MAX_EXAMPLES:
            raise BudgetError(
                f"{self.count:,} samples of m={short_repr(m)} have more than {MAX_EXAMPLES:,} examples, which are held "
                "together. Cheaper: a smaller m, or measure_agreement"
            )
        self.total = common**m
        """The sum of the weights of all samples."""

    def members(self) -> Iterator[Member]:
        """The samples, in order."""
        numbers = range(len(self.examples))
        if self.symmetric:
            return itertools.combinations_with_replacement(numbers, self.m)
        return itertools.product(numbers, repeat=self.m)

    def weight(self, member: Member) -> int:
        """The probability of a sample times the total; a multiset has that of all its orders."""
        weight = math.prod(self.weights[number] for number in member)
        if self.symmetric:
            weight *= math.factorial(self.m) // math.prod(map(math.factorial, Counter(member).values()))
        return weight

    def outcomes(self, run: Run, seed: Any, callback: ProgressCallback) -> dict[Outcome, int]:
        """The distinct outcomes with the weights of their samples."""
        members = list(self.members())
        weights: dict[Outcome, int] = {}
        spread = set(np.linspace(0, len(members) - 1, SYMMETRY_SAMPLES, dtype=np.int64).tolist())
        outcomes = run(members, seed, callback)
        for place, (member, outcome) in enumerate(zip(members, outcomes, strict=True)):
            weights[outcome] = weights.get(outcome, 0) + self.weight(member)
            if (
                self.symmetric
                and place in spread
                and any(other != outcome for other in run(_orders(member), seed, lambda done, total: None))
            ):
                sample = tuple(self.examples[number] for number in member)
                raise ValueError(
                    f"learner: the outcome changes when the sample {short_repr(sample)} is listed in another order; "
                    "use symmetric=False"
                )
        return weights


Run: TypeAlias = Callable[[Sequence[Member], Any, ProgressCallback], "list[Outcome]"]


def _orders(member: Member) -> list[Member]:
    """A sample in other orders: reversed, and the odd places before the even ones."""
    return [member[::-1], member[1::2] + member[::2]]


def runner(learner: Any, atoms: Atoms, seeds: Collection[Any]) -> Run:
    """How to run a learner on samples: objects by their methods, callables by calling them."""
    if seeds and isinstance(learner, StableLearner):
        for seed in seeds:
            check_kind(seed, PublicSeed, "seeds of a StableLearner", "PublicSeed objects")
        rows = _Rows(atoms)

        def together(members: Sequence[Member], seed: Any, callback: ProgressCallback) -> list[Outcome]:
            return [Outcome(frozenset([(item, 1)])) for item in learner.items(rows.users(members), seed)]

        return together
    has_pmf = hasattr(learner, "pmf") and (isinstance(learner, StableLearner) or not callable(learner))
    if has_pmf or isinstance(learner, ListLearner):
        if seeds:
            raise TypeError(f"seeds are for a StableLearner or a callable; got {short_repr(learner)}")
        rows = _Rows(atoms)
        lists = isinstance(learner, ListLearner)

        def outcome(member: Member, seed: Any) -> Any:
            X, labels = rows.sample(member)
            # What counts of a list: without what goes beyond the size of lists.
            return set(learner.frequencies(X, labels, 1)) if lists else learner.pmf(X, labels)

    elif isinstance(learner, StableLearner):
        raise TypeError(f"{type(learner).__name__} has no pmf; give seeds, or use measure_agreement")
    elif callable(learner):
        examples = tuple(atoms)

        def outcome(member: Member, seed: Any) -> Any:
            sample = tuple(examples[number] for number in member)
            return learner(sample, seed) if seeds else learner(sample)

    else:
        raise TypeError(f"learner must be a learner of userdp.stability or a callable; got {short_repr(learner)}")

    def one_by_one(members: Sequence[Member], seed: Any, callback: ProgressCallback) -> list[Outcome]:
        outcomes = []
        for done, member in enumerate(members):
            outcomes.append(read_pmf(outcome(member, seed), f"learner: the outcome for sample {done}"))
            callback(done + 1, len(members))
        return outcomes

    return one_by_one


class _Rows:
    """Examples (x, y) as rows of features and labels."""

    def __init__(self, atoms: Atoms) -> None:
        try:
            self.X = np.array([np.atleast_1d(x) for x, _ in atoms])
            labels = [y for _, y in atoms]
        except (TypeError, ValueError):
            raise ValueError("distribution must have examples (x, y) with rows x of one length") from None
        if self.X.ndim != 2 or any(y not in (0, 1) for y in labels):
            raise ValueError("distribution must have examples (x, y) with x a number or a row and y 0 or 1")
        self.labels = np.array(labels, dtype=np.uint8)

    def sample(self, member: Member) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """Features and labels of a sample."""
        numbers = np.array(member)
        return self.X[numbers], self.labels[numbers]

    def users(self, members: Sequence[Member]) -> UserTable:
        """One user for each sample."""
        numbers, m = np.array(members), len(members[0])
        owners = np.repeat(np.arange(len(members), dtype=np.uint32), m)
        return UserTable(self.X[numbers.ravel()], self.labels[numbers.ravel()], owners, len(members), m)


class Errors:
    """The exact errors of items under a distribution."""

    def __init__(
        self,
        learner: Any,
        atoms: Atoms,
        errors: Callable[[Any], Any] | None,
        concepts: ConceptClass | None,
        alpha: Fraction,
    ) -> None:
        self.errors, self.learner, self.atoms, self.alpha = errors, learner, atoms, alpha
        self.rows = None if errors is not None or not hasattr(learner, "predict") else _Rows(atoms)
        if alpha == 1:
            return
        if errors is None and self.rows is None:
            self._unknown()
        check_kind(concepts, (ConceptClass, type(None)), "concepts", "a ConceptClass or None")
        fitting = getattr(learner, "hypotheses", None) if concepts is None else concepts
        if fitting is not None:
            rows = _Rows(atoms)
            right = fitting.predict(fitting.points(rows.X)) == rows.labels.astype(np.bool_)[:, None]
            if not right.all(axis=0).any():
                raise ValueError(
                    f"distribution is not realizable: every concept of {short_repr(fitting)} has an error, and alpha "
                    "asks for accuracy; give the class as concepts, or alpha=1"
                )

    def __call__(self, item: Any) -> Fraction | None:
        """The error of an item, None where it is not known."""
        if self.errors is not None:
            error = exact_number(self.errors(item))
            if error is None or not 0 <= error <= 1:
                raise ValueError(f"errors: the error of {short_repr(item)} must be in [0, 1]; got {short_repr(error)}")
            return error
        if self.rows is None:
            self._unknown()
            return None
        X = self.rows.X
        try:
            listed = isinstance(self.learner, ListLearner)
            said = self.learner.predict(item, self.learner.hypotheses.points(X) if listed else X)
        except NotImplementedError:
            self._unknown()
            return None
        wrong = np.asarray(said) != self.rows.labels.astype(np.bool_)
        return sum((mass for mass, bad in zip(self.atoms.values(), wrong, strict=True) if bad), Fraction(0))

    def _unknown(self) -> None:
        if self.alpha < 1:
            raise TypeError("alpha: accuracy needs errors, a function from item to error, for this learner")

    def accurate(self, error: Fraction | None) -> bool:
        """Whether an error counts as accurate."""
        return self.alpha == 1 or (error is not None and error <= self.alpha)


WholeInterval: TypeAlias = tuple[int, int]
"""Integers around a number times 2**PRECISION."""

PRECISION = 256


def pair_agreement(p: Sequence[int], q: Sequence[int], method: Method) -> WholeInterval:
    """The probability that draws from two distributions by the same randomness are equal."""
    if method == "race":
        terms = race_terms(p, q)
    else:
        agreement = 1 - disagreement_of_darts(p, q)
        terms = [(agreement.numerator, agreement.denominator)]
    low = high = 0
    for top, bottom in terms:
        whole, rest = divmod(top << PRECISION, bottom)
        low, high = low + whole, high + whole + (rest > 0)
    return low, high


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
      Likeliest accurate item                0.4722
      Two users agree                        0.8249
      A user misses the canonical draw       0.131
      Stable and accurate public randomness  between 0 and 0.5247
      Samples                                3 of m = 2 from 2 examples
      Distinct outcomes                      3
      Accurate is an error of at most        0 exactly
      Stable is a probability of at least    0.9
      Public randomness is used by           race
      Items
        item  probability  error
        1     0.472222     0
        0     0.263888     1/2
        2     0.263888     1/2
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
        outcomes = {seed: samples.outcomes(run, seed, callback) for seed in public}
    distinct = {outcome for weighted in outcomes.values() for outcome in weighted}
    if len({outcome.is_list for outcome in distinct}) > 1:
        raise TypeError("learner must return distributions or items for all samples, or sets for all samples")
    is_list = next(iter(distinct)).is_list
    if is_list and seeds is not None:
        raise TypeError("learner must not return sets where there are seeds")
    per_seed = {seed: _probabilities(weighted, samples.total) for seed, weighted in outcomes.items()}
    items = _rated(_mean(per_seed, public), errors_of)
    report = partial(
        StabilityReport,
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
        return report(list_size=max(len(outcome.weights) for outcome in distinct))
    if seeds is not None:
        rated = {seed: _rated(probabilities, errors_of) for seed, probabilities in per_seed.items()}
        rows = tuple(_seed(seed, public[seed], ranked, errors_of, stable) for seed, ranked in rated.items())
        return report(nu=_joint(rows), seeds=rows)
    (weighted,) = outcomes.values()
    with progress_bar(progress, "comparing distributions") as callback:
        agreement, distance = _agreements(weighted, samples.total, center, method, limit, callback)
    nu = _implied(agreement, distance, items, errors_of, stable)
    return report(method=method, agreement=agreement, distance=distance, nu=nu)


def _probabilities(weighted: Mapping[Outcome, int], total: int) -> dict[Hashable, Interval]:
    """The probability of every item, over samples; of being listed, for lists."""
    low: dict[Hashable, int] = {}
    high: dict[Hashable, int] = {}
    for outcome, weight in weighted.items():
        below = outcome.total
        for item, share in outcome.weights:
            # Certain items, and those of lists, are exact: share / below is 1.
            low[item] = low.get(item, 0) + weight * ((share << PRECISION) // below)
            high[item] = high.get(item, 0) - weight * (-(share << PRECISION) // below)
    scale = total << PRECISION
    return {item: Interval(Fraction(low[item], scale), Fraction(high[item], scale)) for item in low}


def _mean(
    per_seed: Mapping[Any, Mapping[Hashable, Interval]], public: Mapping[Any, Fraction]
) -> dict[Hashable, Interval]:
    """Probabilities over public randomness too."""
    if len(per_seed) == 1:
        return dict(next(iter(per_seed.values())))
    mean: dict[Hashable, Interval] = {}
    for seed, probabilities in per_seed.items():
        for item, probability in probabilities.items():
            so_far = mean.get(item, _ZERO)
            mean[item] = Interval(
                so_far.lower + public[seed] * probability.lower, so_far.upper + public[seed] * probability.upper
            )
    return mean


def _rated(probabilities: Mapping[Hashable, Interval], errors_of: Errors) -> tuple[ItemStability, ...]:
    """Items with their errors, the likeliest first."""
    rated = [ItemStability(item, probability, errors_of(item)) for item, probability in probabilities.items()]
    return tuple(sorted(rated, key=lambda item: (-item.probability.lower, len(repr(item.item)), repr(item.item))))


def _best(items: Sequence[ItemStability], errors_of: Errors) -> Interval:
    """The largest probability of an accurate item."""
    fine = [item.probability for item in items if errors_of.accurate(item.error)]
    return Interval(max(item.lower for item in fine), max(item.upper for item in fine)) if fine else _ZERO


def _seed(
    seed: Any, weight: Fraction, items: Sequence[ItemStability], errors_of: Errors, eta: Fraction
) -> SeedStability:
    """What happens for one value of the public randomness."""
    best = max(items, key=lambda item: (item.probability.lower, errors_of.accurate(item.error)))
    fine = [item for item in items if errors_of.accurate(item.error)]
    return SeedStability(seed, weight, best, _reaches(items, eta), _reaches(fine, eta))


def _reaches(items: Sequence[ItemStability], eta: Fraction) -> bool | None:
    """Whether the likeliest item has probability at least eta; None where the enclosure leaves it open."""
    if any(item.probability.lower >= eta for item in items):
        return True
    return None if any(item.probability.upper >= eta for item in items) else False


def _joint(seeds: Sequence[SeedStability]) -> Interval:
    """The weight of seeds with a stable and accurate item."""
    return Interval(
        sum((seed.weight for seed in seeds if seed.accurate), Fraction(0)),
        sum((seed.weight for seed in seeds if seed.accurate is not False), Fraction(0)),
    )


def _agreements(
    weighted: Mapping[Outcome, int],
    total: int,
    center: Outcome | None,
    method: Method,
    limit: int,
    callback: ProgressCallback,
) -> tuple[Interval, Interval]:
    """How often two users agree, and how often one does not agree with the canonical distribution."""
    pmfs = [(_short(dict(outcome.weights)), weight) for outcome, weight in weighted.items()]
    pairs, width = len(pmfs) * (len(pmfs) + 1) // 2, max(len(outcome.weights) for outcome in weighted)
    if pairs * width > limit:
        raise BudgetError(
            f"{pairs:,} pairs of {len(pmfs):,} distinct distributions on up to {width:,} items; budget {limit:,} "
            "pairs times items. Cheaper: a smaller m, fewer examples or hypotheses, or measure_agreement"
        )
    common = _short(_mixture(weighted) if center is None else dict(center.weights))
    low = high = near_low = near_high = 0
    for done, (pmf, weight) in enumerate(pmfs):
        low, high = low + weight * weight * ONE, high + weight * weight * ONE
        for other, others in pmfs[done + 1 :]:
            least, most = _pair(pmf, other, method)
            low, high = low + 2 * weight * others * least, high + 2 * weight * others * most
        least, most = _pair(pmf, common, method)
        near_low, near_high = near_low + weight * least, near_high + weight * most
        callback(done + 1, len(pmfs))
    scale, of_distance = total * total * ONE, total * ONE
    return (
        Interval(max(Fraction(0), Fraction(low, scale)), min(Fraction(1), Fraction(high, scale))),
        Interval(
            max(Fraction(0), 1 - Fraction(near_high, of_distance)),
            min(Fraction(1), 1 - Fraction(near_low, of_distance)),
        ),
    )


def _short(pmf: Mapping[Hashable, int]) -> tuple[dict[Hashable, int], int]:
    """A pmf with short weights, and by how much this moves agreements at most, in 2**-PRECISION."""
    # Rounding moves a distribution of k items by at most d = k * 2**-DISTRIBUTION_BITS in total variation, and draws
    # from it differ from those from the original with probability at most 2 d.
    total = sum(pmf.values())
    if total.bit_length() <= DISTRIBUTION_BITS:
        return dict(pmf), 0
    return {item: (weight << DISTRIBUTION_BITS) // total for item, weight in pmf.items()}, 1


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
        for item, share in outcome.weights:
            mixed[item] = mixed.get(item, 0) + weight * ((share << PRECISION) // outcome.total)
    return mixed


def _implied(
    agreement: Interval, distance: Interval, items: Sequence[ItemStability], errors_of: Errors, eta: Fraction
) -> Interval:
    """What is known of the public randomness for which an accurate item is eta-stable; docs/proofs/stability.md."""
    missed = Fraction(int(distance.upper > 0)) if eta == 1 else distance.upper / (1 - eta)
    stable = max(stability_from_agreement(agreement.lower, eta), 1 - missed)
    fine = [item.probability for item in items if errors_of.accurate(item.error)]
    low, high = sum((item.lower for item in fine), Fraction(0)), sum((item.upper for item in fine), Fraction(0))
    inaccurate = Fraction(0) if len(fine) == len(items) else 1 - low
    return Interval(max(Fraction(0), stable - inaccurate / eta), min(Fraction(1), agreement.upper / eta**2, high / eta))


_ZERO = Interval(Fraction(0), Fraction(0))
