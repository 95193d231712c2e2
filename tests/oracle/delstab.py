"""DelStab by its definition: sets, count vectors and windows enumerated, all in fractions. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

F = Fraction
BOTTOM = "⊥"
Distribution = dict[Hashable, Fraction]
Algorithm = Callable[[tuple[Any, ...]], "Distribution | None"]
"""From the kept users to a distribution; None for a dataset on which the algorithm fails."""
Compatible = Callable[[Any, Any], bool]


def divergence(p: Distribution, q: Distribution, multiplier: Fraction) -> Fraction:
    """Sum of max(0, p - E q)."""
    return sum((max(F(0), mass - multiplier * q.get(output, F(0))) for output, mass in p.items()), F(0))


def close(p: Distribution | None, q: Distribution | None, multiplier: Fraction, delta: Fraction) -> bool:
    """Both divergences at most delta; failures are close to nothing, not even to themselves."""
    if p is None or q is None:
        return False
    return divergence(p, q, multiplier) <= delta and divergence(q, p, multiplier) <= delta


def relation(algorithm: Algorithm, multiplier: Fraction, delta: Fraction) -> Compatible:
    """The exact relation, each pair decided once. Datasets are remembered under their repr, which tells 1 from True."""
    pmfs: dict[str, Distribution | None] = {}
    known: dict[tuple[str, str], bool] = {}

    def distribution_of(kept: Any) -> Distribution | None:
        name = repr(kept)
        if name not in pmfs:
            pmfs[name] = algorithm(kept)
        return pmfs[name]

    def compatible(a: Any, b: Any) -> bool:
        names = (repr(a), repr(b))
        if names not in known:
            known[names] = known[names[::-1]] = close(distribution_of(a), distribution_of(b), multiplier, delta)
        return known[names]

    return compatible


# ------------------------------------------------------------------ parameters


def kappa(multiplier: Fraction, delta: Fraction) -> int:
    """1 + least c with E^c >= 1/delta."""
    power, exponent = F(1), 0
    while power * delta < 1:
        power *= multiplier
        exponent += 1
    return 1 + exponent


def laplace(multiplier: Fraction, half_width: int) -> list[Fraction]:
    """Masses proportional to E^-|x - kappa| on 0, ..., 2 kappa."""
    weights = [1 / F(multiplier) ** abs(x - half_width) for x in range(2 * half_width + 1)]
    return [weight / sum(weights) for weight in weights]


def paper_parameters(inner: Fraction, delta: Fraction) -> tuple[Fraction, int, list[Fraction]]:
    """delta-bar, kappa and the distribution of R1, from e^(epsilon/3)."""
    inner_delta = F(delta) / (inner * inner + inner + 2)
    half_width = kappa(inner, inner_delta)
    return inner_delta, half_width, laplace(inner, half_width)


def refusal_probabilities(multiplier: Fraction, delta: Fraction) -> list[Fraction]:
    """q_0 = 0 and then as fast upwards as privacy of the refusal alone allows, up to the first 1."""
    chain = [F(0)]
    while chain[-1] < 1:
        last = chain[-1]
        chain.append(min(multiplier * last + delta, 1 - (1 - last - delta) / multiplier, F(1)))
    return chain


# ------------------------------------------------------------------ labeled users


def is_stable(dataset: Sequence[Any], removed: Iterable[int], size: int, compatible: Compatible) -> bool:
    """Whether all datasets of `size` users outside `removed` are compatible, each with itself too."""
    rest = [i for i in range(len(dataset)) if i not in set(removed)]
    kept = [tuple(dataset[i] for i in chosen) for chosen in itertools.combinations(rest, size)]
    return all(compatible(a, b) for a, b in itertools.combinations_with_replacement(kept, 2))


def stable_sets(dataset: Sequence[Any], size: int, deletions: int, compatible: Compatible) -> list[tuple[int, ...]]:
    n = len(dataset)
    return [s for s in itertools.combinations(range(n), size) if is_stable(dataset, s, n - deletions, compatible)]


def smallest_stable_size(dataset: Sequence[Any], deletions: int, compatible: Compatible) -> int | None:
    for size in range(deletions + 1):
        if stable_sets(dataset, size, deletions, compatible):
            return size
    return None


def _mixed(parts: Iterable[tuple[Fraction, Distribution]]) -> Distribution:
    mixed: Distribution = {}
    for weight, pmf in parts:
        for output, mass in pmf.items():
            mixed[output] = mixed.get(output, F(0)) + weight * mass
    return mixed


def released(
    dataset: Sequence[Any],
    algorithm: Algorithm,
    sizes: Mapping[int, Fraction],
    deletions: int,
    compatible: Compatible,
    pick: str = "uniform",
) -> Distribution:
    """Pmf of the release when |S| has the given pmf: S by `pick` among the stable sets, T uniform; else BOTTOM."""
    n = len(dataset)
    parts: list[tuple[Fraction, Distribution]] = [(1 - sum(sizes.values(), F(0)), {BOTTOM: F(1)})]
    for size, probability in sizes.items():
        found = stable_sets(dataset, size, deletions, compatible)
        if not found:
            parts.append((probability, {BOTTOM: F(1)}))
            continue
        found = {"uniform": found, "first": found[:1], "last": found[-1:]}[pick]
        for removed in found:
            rest = [i for i in range(n) if i not in removed]
            kept = list(itertools.combinations(rest, n - deletions))
            for chosen in kept:
                pmf = algorithm(tuple(dataset[i] for i in chosen))
                assert pmf is not None
                parts.append((probability / len(found) / len(kept), pmf))
    pmf = _mixed(parts)
    pmf.setdefault(BOTTOM, F(0))
    assert sum(pmf.values()) == 1
    return pmf


def algorithm_1(
    dataset: Sequence[Any],
    algorithm: Algorithm,
    size_pmf: Sequence[Fraction],
    deletions: int,
    compatible: Compatible,
    pick: str = "uniform",
) -> Distribution:
    """|S| = R1 with the given distribution."""
    return released(dataset, algorithm, dict(enumerate(size_pmf)), deletions, compatible, pick)


def optimal(
    dataset: Sequence[Any],
    algorithm: Algorithm,
    refusal: Sequence[Fraction],
    deletions: int,
    compatible: Compatible,
) -> Distribution:
    """Refused with probability q at the smallest stable size, and |S| is that size."""
    size = smallest_stable_size(dataset, deletions, compatible)
    if size is None or size >= len(refusal):
        return {BOTTOM: F(1)}
    return released(dataset, algorithm, {size: 1 - refusal[size]}, deletions, compatible)


# ------------------------------------------------------------------ users by type


def vectors(total: int, bounds: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Vectors of non-negative integers below the bounds, with the given sum."""
    if not bounds:
        if total == 0:
            yield ()
        return
    for first in range(min(total, bounds[0]) + 1):
        for rest in vectors(total - first, bounds[1:]):
            yield (first, *rest)


def ways(counts: Sequence[int], chosen: Sequence[int]) -> int:
    return math.prod(math.comb(a, b) for a, b in zip(counts, chosen, strict=True))


class Typed:
    """DelStab of a symmetric algorithm given on count vectors; pools and their distributions are kept for audits."""

    def __init__(
        self, algorithm: Algorithm, n_users: int, deletions: int, compatible: Compatible, size_pmf: Sequence[Fraction]
    ) -> None:
        self.algorithm, self.n_users, self.deletions = algorithm, n_users, deletions
        self.compatible, self.size_pmf = compatible, list(size_pmf)
        self.size = n_users - deletions
        self._stable: dict[tuple[int, ...], bool] = {}
        self._distribution: dict[tuple[int, ...], Distribution] = {}

    def stable(self, pool: tuple[int, ...]) -> bool:
        if pool not in self._stable:
            kept = list(vectors(self.size, pool))
            self._stable[pool] = all(self.compatible(a, b) for a, b in itertools.combinations_with_replacement(kept, 2))
        return self._stable[pool]

    def pool_pmf(self, pool: tuple[int, ...]) -> Distribution:
        if pool not in self._distribution:
            total = math.comb(sum(pool), self.size)
            parts = [(F(ways(pool, kept), total), self.algorithm(kept)) for kept in vectors(self.size, pool)]
            self._distribution[pool] = _mixed((weight, pmf) for weight, pmf in parts if pmf is not None)
        return self._distribution[pool]

    def stable_pools(self, counts: tuple[int, ...], size: int) -> list[tuple[int, tuple[int, ...]]]:
        """Number of sets S and what they leave, for the stable deletion vectors of a size."""
        pools = [
            (ways(counts, removed), tuple(a - b for a, b in zip(counts, removed, strict=True)))
            for removed in vectors(size, counts)
        ]
        return [(weight, pool) for weight, pool in pools if self.stable(pool)]

    def layer_sizes(self, counts: tuple[int, ...]) -> list[int]:
        sizes = range(self.deletions + 1)
        return [sum(weight for weight, _ in self.stable_pools(counts, size)) for size in sizes]

    def smallest_stable_size(self, counts: tuple[int, ...]) -> int | None:
        return next((r for r in range(self.deletions + 1) if self.stable_pools(counts, r)), None)

    def released(self, counts: tuple[int, ...], sizes: Mapping[int, Fraction]) -> Distribution:
        parts: list[tuple[Fraction, Distribution]] = [(1 - sum(sizes.values(), F(0)), {BOTTOM: F(1)})]
        for size, probability in sizes.items():
            pools = self.stable_pools(counts, size)
            total = sum(weight for weight, _ in pools)
            if total == 0:
                parts.append((probability, {BOTTOM: F(1)}))
            parts.extend((probability * F(weight, total), self.pool_pmf(pool)) for weight, pool in pools)
        pmf = _mixed(parts)
        pmf.setdefault(BOTTOM, F(0))
        assert sum(pmf.values()) == 1
        return pmf

    def algorithm_1(self, counts: tuple[int, ...]) -> Distribution:
        return self.released(counts, dict(enumerate(self.size_pmf)))

    def optimal(self, counts: tuple[int, ...], refusal: Sequence[Fraction]) -> Distribution:
        size = self.smallest_stable_size(counts)
        if size is None or size >= len(refusal):
            return {BOTTOM: F(1)}
        return self.released(counts, {size: 1 - refusal[size]})


# ------------------------------------------------------------------ integer values, totals within a distance


def spread(pool: Sequence[int], size: int) -> int:
    """Largest minus smallest total of `size` members."""
    ordered = sorted(pool)
    return sum(ordered[len(ordered) - size :]) - sum(ordered[:size])


def smallest_window(values: Sequence[int], deletions: int, distance: int) -> tuple[int, int] | None:
    """Fewest deletions, and the lowest window of what is left, whose totals lie within the distance."""
    ordered, size = sorted(values), len(values) - deletions
    for removed in range(deletions + 1):
        for start in range(removed + 1):
            if spread(ordered[start : start + len(values) - removed], size) <= distance:
                return removed, start
    return None


def window_pmf(
    values: Sequence[int],
    algorithm: Callable[[int], Distribution],
    refusal: Sequence[Fraction],
    deletions: int,
    distance: int,
) -> Distribution:
    """Refused with probability q at r*; else a uniform choice of users within the lowest smallest window."""
    found = smallest_window(values, deletions, distance)
    if found is None or found[0] >= len(refusal):
        return {BOTTOM: F(1)}
    removed, start = found
    window = sorted(values)[start : start + len(values) - removed]
    kept = list(itertools.combinations(window, len(values) - deletions))
    parts = [((1 - refusal[removed]) / len(kept), algorithm(sum(chosen))) for chosen in kept]
    return _mixed([*parts, (refusal[removed], {BOTTOM: F(1)})])


def smallest_stable_size_of_totals(
    values: Sequence[int], deletions: int, compatible: Callable[[int, int], bool]
) -> int | None:
    """The definition, for a relation on totals."""
    kept_size = len(values) - deletions
    for removed in range(deletions + 1):
        for rest in itertools.combinations(values, len(values) - removed):
            totals = {sum(chosen) for chosen in itertools.combinations(rest, kept_size)}
            if all(compatible(a, b) for a in totals for b in totals):
                return removed
    return None


# ------------------------------------------------------------------ audits


def worst(
    pmfs: Mapping[Any, Distribution], neighbors: Iterable[tuple[Any, Any]], multiplier: Fraction
) -> tuple[Fraction, Any]:
    """Largest divergence over ordered pairs, with a pair that has it."""
    return max(((divergence(pmfs[x], pmfs[y], multiplier), (x, y)) for x, y in neighbors), key=lambda found: found[0])


def labeled_neighbors(universe: Sequence[Any], n_users: int) -> Iterator[tuple[Any, Any]]:
    for x in itertools.product(universe, repeat=n_users):
        for i, value in itertools.product(range(n_users), universe):
            if value != x[i]:
                yield x, (*x[:i], value, *x[i + 1 :])


def typed_neighbors(n_types: int, n_users: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for counts in vectors(n_users, (n_users,) * n_types):
        for a, b in itertools.permutations(range(n_types), 2):
            if counts[a]:
                yield counts, tuple(count - (t == a) + (t == b) for t, count in enumerate(counts))
