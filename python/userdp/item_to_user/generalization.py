"""Perfect generalization, decided exactly: audits over stated distributions, and their report."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.distributions import DistributionLike, ExampleDistribution, read_distribution, read_universe
from userdp.algorithms.finite import (
    DistinctPmfs,
    evaluate_datasets,
    is_symmetric,
    mechanism_name,
    outputs_of,
    pmf_error_of,
)
from userdp.audit.engine import DEFAULT_BUDGET, MAX_DATASETS, MAX_USERS, check_symmetry
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    PrivacyLevel,
    capped_binomial,
    capped_power,
    check_count,
    is_listed,
    parse_delta,
    parse_level,
)
from userdp.exact.pmf import Masses, PmfLike, fractions_of
from userdp.exceptions import BudgetError
from userdp.item_to_user.subsampled import mixture
from userdp.report import GeneralizationReport, GeneralizationWitness
from userdp.report.generalization import Notion
from userdp.runtime import Progress, progress_bar

MAX_PMFS = 4000
"""Distinct distributions: all their pairs are decided, and kept as a matrix."""
MAX_TERMS = 500_000_000
"""Weights of datasets, or products of weights of distributions, over all distributions."""
BLOCK = 1 << 20


def audit_perfect_generalization(
    mechanism: Any,
    *,
    universe: Sequence[Any],
    distributions: DistributionLike | Sequence[DistributionLike],
    n_users: int,
    n_examples: int = 1,
    epsilon: Epsilon,
    delta: Delta,
    beta: Delta | None = None,
    notion: Notion = "sample",
    scope: Literal["all", "listed"] = "all",
    simulator: PmfLike | None = None,
    engine: Literal["auto", "labeled", "symmetric"] = "auto",
    budget: int | None = None,
    progress: Progress = None,
) -> GeneralizationReport:
    """The exact probability that a mechanism's output distribution depends on which sample of a distribution it got.

    Parameters
    ----------
    mechanism : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)`` on n_users users of n_examples examples.
    universe : sequence
        The possible values of one example, distinct.
    distributions : mapping, sequence of weights, or a sequence of these
        D over the universe: from example to weight, or weights in the order of the universe; exact, divided by their
        sum. Several are audited at the cost of one; see `simplex_grid`.
    n_users, n_examples : int
        Users n >= 1 and examples of each m >= 1; all n m examples are independent draws of D. Item level is m = 1.
    epsilon, delta : privacy parameters
        Two distributions are alike when they are (epsilon, delta)-indistinguishable.
    beta : number in [0, 1], optional
        The claim to be decided.
    notion : {"sample", "simulator"}
        Which of the two the claim is about: sample perfect generalization (two independent samples) or perfect
        generalization (one sample and a simulator). Both are computed.
    scope : {"all", "listed"}
        A claim about all distributions, as in the definitions, can be refuted here but not proved: then ``holds`` is
        False or None. A claim about the listed distributions is decided.
    simulator : pmf, optional
        SIM, the same for every listed distribution. Default: for each distribution D the mixture E A(x), x from D.
    engine : {"auto", "labeled", "symmetric"}
        Go over sequences of users or (for a `SymmetricAlgorithm`) over multisets with multinomial weights.
    budget : int, optional
        Refuse when pairs of datasets times outputs exceed this; 10**13 by default.
    progress : bool, callable or None
        See `audit_user_level`.

    Returns
    -------
    GeneralizationReport
        ``beta``, ``sample_perfect`` and ``perfect`` are exact fractions.

    Raises
    ------
    BudgetError
        For too many datasets, distinct output distributions, or distributions of the examples.

    Notes
    -----
    [GKKMMZ23, Definition 12] and [GKKMMZ23, Definition 29]. With W_i the probability of the i-th distinct distribution,
    the numbers are the sum of W_i W_j over ordered pairs that are not indistinguishable, and the sum of W_i over
    distributions that are not indistinguishable from SIM. Every pair is decided exactly, once for all distributions.

    References
    ----------
    [GKKMMZ23, Lemma 30].

    Examples
    --------
    The output is b on (0, 1), c on (1, 0), else a: half of all samples differ from a, five eighths of all pairs
    differ.

    >>> from userdp.algorithms import finite_algorithm
    >>> @finite_algorithm(outputs="a b c".split())
    ... def order(dataset):
    ...     return {((0,), (1,)): [0, 1, 0], ((1,), (0,)): [0, 0, 1]}.get(dataset, [1, 0, 0])
    >>> report = audit_perfect_generalization(
    ...     order, universe=(0, 1), distributions=[1, 1], n_users=2, epsilon="0.1", delta="0.03",
    ...     simulator=[1, 0, 0], beta="1/2",
    ... )
    >>> report.perfect, report.sample_perfect, report.holds
    ((Fraction(1, 2),), (Fraction(5, 8),), False)
    """
    examples, level, threshold = read_universe(universe), parse_level(epsilon), parse_delta(delta)
    users, per_user = check_count(n_users, "n_users"), check_count(n_examples, "n_examples")
    claimed = None if beta is None else parse_delta(beta, "beta")
    for name, value, accepted in (
        ("notion", notion, ("sample", "simulator")),
        ("scope", scope, ("all", "listed")),
        ("engine", engine, ("auto", "labeled", "symmetric")),
    ):
        if value not in accepted:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {value!r}")
    listed = _read_distributions(distributions, examples)
    outputs = outputs_of(mechanism)
    if pmf_error_of(mechanism) > 0:
        raise ValueError("mechanism declares a pmf_error; perfect generalization is audited on exact masses")
    symmetric = is_symmetric(mechanism)
    if engine == "symmetric" and not symmetric:
        raise TypeError("engine='symmetric' needs a SymmetricAlgorithm")
    engine_name = "symmetric" if symmetric and engine != "labeled" else "labeled"
    space = _Samples(examples, users, per_user, symmetric=engine_name == "symmetric")
    space.check(len(outputs), len(listed), budget)
    stated_simulator = None if simulator is None else _distribution(outputs, simulator)
    with progress_bar(progress, "evaluating the mechanism") as callback:
        evaluated = evaluate_datasets(mechanism, outputs, space.members(), space.datasets, callback)
    if engine_name == "symmetric":
        check_symmetry(mechanism, space, evaluated)
    pmfs = _Pmfs(evaluated, level, threshold, len(listed), progress)
    weights = [pmfs.weights(space.weights(distribution)) for distribution in listed]
    sample_perfect, perfect, far = [], [], []
    for pmf_weights in weights:
        total = sum(pmf_weights)
        sample_perfect.append(Fraction(pmfs.clashing(pmf_weights), total * total))
        far.append(pmfs.far_from(stated_simulator or pmfs.mixture(pmf_weights)))
        perfect.append(Fraction(sum(pmf_weights[pmf] for pmf in far[-1]), total))
    betas = sample_perfect if notion == "sample" else perfect
    worst = betas.index(max(betas))
    witness = None
    if betas[worst] > 0:
        masses = space.weights(listed[worst])
        if notion == "sample":
            witness = pmfs.clashing_witness(space, masses, weights[worst])
        else:
            witness = pmfs.far_witness(space, masses, far[worst], stated_simulator or pmfs.mixture(weights[worst]))
    return GeneralizationReport(
        mechanism=mechanism_name(mechanism),
        engine=engine_name,
        notion=notion,
        epsilon_level=level,
        delta=threshold,
        claimed_beta=claimed,
        scope=scope,
        holds=_verdict(betas[worst], claimed, scope),
        beta=betas[worst],
        worst=worst,
        sample_perfect=tuple(sample_perfect),
        perfect=tuple(perfect),
        universe=examples,
        distributions=tuple(distribution.fractions() for distribution in listed),
        outputs=tuple(outputs),
        simulator=None if stated_simulator is None else tuple(fractions_of(stated_simulator)),
        n_users=users,
        n_examples=per_user,
        datasets=space.datasets,
        pmfs=len(pmfs.masses),
        witness=witness,
    )


def _verdict(beta: Fraction, claimed: Fraction | None, scope: str) -> bool | None:
    if claimed is None:
        return None
    if beta > claimed:
        return False
    return True if scope == "listed" else None


def _read_distributions(distributions: Any, universe: tuple[Any, ...]) -> list[ExampleDistribution]:
    """One distribution or several."""
    if not is_listed(distributions, (Mapping, Sequence, np.ndarray)):
        raise TypeError("distributions must be a mapping, a sequence of weights, or a sequence of these")
    several = not isinstance(distributions, Mapping) and all(
        isinstance(member, (Mapping, list, tuple, np.ndarray)) for member in distributions
    )
    members = list(distributions) if several else [distributions]
    if not members:
        raise ValueError("distributions is empty; it needs at least one")
    return [
        read_distribution(member, universe, f"distributions[{index}]" if several else "distributions")
        for index, member in enumerate(members)
    ]


def _distribution(outputs: tuple[Any, ...], simulator: Any) -> Masses:
    pmfs = DistinctPmfs(outputs)
    try:
        pmfs.add(simulator, "simulator")
    except (TypeError, ValueError) as error:
        raise type(error)(f"simulator: {error}") from None
    return _normalized(outputs, pmfs.masses[0])


def _normalized(outputs: tuple[Any, ...], masses: Masses) -> Masses:
    """Float masses that do not sum to exactly 1 are divided by their sum, so that mixtures of equal pmfs are equal."""
    if not isinstance(masses, np.ndarray) or sum(fractions_of(masses)) == 1:
        return masses
    pmf = mixture(outputs, [fractions_of(masses)], [1])
    return list(pmf.weights), pmf.total


class _Samples:
    """The datasets that a sample can be, and their probabilities."""

    def __init__(self, universe: tuple[Any, ...], n_users: int, n_examples: int, *, symmetric: bool) -> None:
        self.universe, self.n_users, self.n_examples, self.symmetric = universe, n_users, n_examples, symmetric

    def check(self, outputs: int, distributions: int, budget: int | None) -> None:
        """Refuse what is too large before anything is enumerated; and count the datasets."""
        limit = DEFAULT_BUDGET if budget is None else check_count(budget, "budget")
        largest = max(MAX_DATASETS, limit)
        values = capped_power(len(self.universe), self.n_examples, largest)
        if self.symmetric:
            count = capped_binomial(self.n_users + values - 1, values - 1, largest)
        else:
            count = capped_power(values, self.n_users, largest)
        pairs = min(count, MAX_PMFS) ** 2 // 2
        # What a checker enumerates too: see `userdp.checker.spaces`.
        users = max(count * self.n_users, values * self.n_examples * MAX_USERS // MAX_DATASETS)
        too_many = count > MAX_DATASETS or users > MAX_USERS
        if too_many or count * distributions > MAX_TERMS or pairs * outputs > limit:
            raise BudgetError(
                f"{'over ' if count > largest else ''}{min(count, largest):,} datasets (limit {MAX_DATASETS:,}) under "
                f"{distributions:,} distributions (together at most {MAX_TERMS:,}), up to {pairs * outputs:,} "
                f"pmf-pair-outputs (budget {limit:,}). Cheaper: a SymmetricAlgorithm, a coarser universe, fewer users"
            )
        self.datasets = count
        self.values = list(itertools.product(range(len(self.universe)), repeat=self.n_examples))

    def _members(self) -> Iterator[tuple[int, ...]]:
        values = range(len(self.values))
        if self.symmetric:
            return itertools.combinations_with_replacement(values, self.n_users)
        return itertools.product(values, repeat=self.n_users)

    def members(self) -> Iterator[Dataset]:
        """The datasets, in order."""
        return map(self._dataset, self._members())

    def _dataset(self, member: tuple[int, ...]) -> Dataset:
        return tuple(tuple(self.universe[index] for index in self.values[value]) for value in member)

    def dataset(self, rank: int) -> Dataset:
        """The dataset at a position."""
        return self._dataset(next(itertools.islice(self._members(), rank, None)))

    def weights(self, distribution: ExampleDistribution) -> list[int]:
        """Integers proportional to the datasets' probabilities; a multiset has that of all its orders."""
        of_value = [math.prod(distribution.weights[index] for index in value) for value in self.values]
        orders = math.factorial(self.n_users)
        weights = []
        for member in self._members():
            weight = math.prod(of_value[value] for value in member)
            if self.symmetric and weight:
                weight *= orders // math.prod(map(math.factorial, Counter(member).values()))
            weights.append(weight)
        return weights


class _Pmfs:
    """The distinct distributions, and which of them are not indistinguishable."""

    def __init__(
        self, evaluated: DistinctPmfs, level: PrivacyLevel, delta: Fraction, distributions: int, progress: Progress
    ) -> None:
        count = len(evaluated.masses)
        if count > MAX_PMFS or count * count * distributions > MAX_TERMS:
            raise BudgetError(
                f"{count:,} distinct distributions (limit {MAX_PMFS:,}) under {distributions:,} distributions. "
                "Cheaper: fewer users, examples or distributions"
            )
        self.outputs, self.pmf_of = evaluated.outputs, evaluated.index_of
        self.masses = [_normalized(evaluated.outputs, masses) for masses in evaluated.masses]
        self.level, self.delta = core_level(level), delta
        self.clash: npt.NDArray[np.bool_] = np.zeros((count, count), dtype=np.bool_)
        pairs = itertools.combinations(range(count), 2)
        with progress_bar(progress, "comparing distributions") as callback:
            while block := list(itertools.islice(pairs, BLOCK)):
                decided = _core.family_exceeding(self.masses, block, self.level, delta, callback)
                rows, columns = np.array(block).T
                self.clash[rows, columns] = self.clash[columns, rows] = decided

    def weights(self, dataset_weights: Sequence[int]) -> list[int]:
        """The distributions' weights from the datasets'."""
        weights = [0] * len(self.masses)
        for pmf, weight in zip(self.pmf_of, dataset_weights, strict=True):
            weights[pmf] += weight
        return weights

    def clashing(self, weights: Sequence[int]) -> int:
        """The weight of all ordered pairs of distributions that are not indistinguishable."""
        return sum(
            weight * sum(weights[other] for other in np.flatnonzero(self.clash[pmf]).tolist())
            for pmf, weight in enumerate(weights)
            if weight
        )

    def mixture(self, weights: Sequence[int]) -> Masses:
        """The distribution of the output, sample and coins together."""
        pmf = mixture(self.outputs, [fractions_of(masses) for masses in self.masses], weights)
        return list(pmf.weights), pmf.total

    def far_from(self, simulator: Masses) -> list[int]:
        """The distributions that are not indistinguishable from the simulator."""
        count = len(self.masses)
        pairs = [(pmf, count) for pmf in range(count)]
        decided = _core.family_exceeding([*self.masses, simulator], pairs, self.level, self.delta)
        return [pmf for pmf, exceeds in enumerate(decided) if exceeds]

    def _likeliest(self, pmf: int, dataset_weights: Sequence[int]) -> int:
        return max((rank for rank, other in enumerate(self.pmf_of) if other == pmf), key=dataset_weights.__getitem__)

    def _described(self, p: Masses, q: Masses) -> tuple[frozenset[Any], Bounds, bool]:
        _, lower, upper, event, is_reversed, _ = _core.is_indistinguishable(p, q, self.level, self.delta)
        return frozenset(self.outputs[index] for index in event or ()), Bounds(lower, upper), is_reversed

    def clashing_witness(
        self, space: _Samples, dataset_weights: Sequence[int], weights: Sequence[int]
    ) -> GeneralizationWitness:
        """The heaviest pair of distributions that are not indistinguishable."""
        pairs = ((i, j) for i, j in np.argwhere(np.triu(self.clash)).tolist())
        i, j = max(pairs, key=lambda pair: weights[pair[0]] * weights[pair[1]])
        event, bounds, is_reversed = self._described(self.masses[i], self.masses[j])
        first, second = (space.dataset(self._likeliest(pmf, dataset_weights)) for pmf in (i, j))
        return GeneralizationWitness(*((second, first) if is_reversed else (first, second)), event, bounds)

    def far_witness(
        self, space: _Samples, dataset_weights: Sequence[int], far: Sequence[int], simulator: Masses
    ) -> GeneralizationWitness:
        """The likeliest dataset among those whose distribution is not the simulator's."""
        candidates = set(far)
        rank = max((rank for rank, pmf in enumerate(self.pmf_of) if pmf in candidates), key=dataset_weights.__getitem__)
        event, bounds, is_reversed = self._described(self.masses[self.pmf_of[rank]], simulator)
        return GeneralizationWitness(space.dataset(rank), None, event, bounds, is_reversed)
