"""An item-level algorithm run on a uniform subset of everybody's items: its exact distribution on users' data."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from userdp.algorithms import Dataset, SymmetricAlgorithm
from userdp.algorithms.distributions import read_universe
from userdp.algorithms.finite import (
    DistinctPmfs,
    FunctionAlgorithm,
    call_on,
    is_symmetric,
    mechanism_name,
    outputs_of,
    pmf_error_of,
    read_users,
)
from userdp.exact.encoding import key_of
from userdp.exact.numbers import capped_binomial, check_count, short_repr
from userdp.exact.pmf import Pmf, fractions_of
from userdp.exceptions import BudgetError

MAX_ITEM_PMFS = 200_000
MAX_DENOMINATOR_BITS = 2**20
"""Of the common denominator of the item pmfs, which every mass of the mixture is written over."""


class SubsampledAlgorithm(FunctionAlgorithm):
    """Pool the items of all users, draw n_items of them without replacement, and run an item-level algorithm.

    The result is a finite algorithm on datasets (tuples of users, tuples of items). It is a `SymmetricAlgorithm` when
    the item algorithm is one, and then works with multisets of items instead of subsets of positions.

    Parameters
    ----------
    item_algorithm : FiniteAlgorithm
        With ``.outputs`` and ``.pmf(items)`` on a tuple of exactly n_items items. A `SymmetricAlgorithm` declares that
        the order of the items is irrelevant. Float masses are the dyadic numbers they are, divided by their exact sum.
    n_items : int
        Size n1 >= 1 of the subset.
    universe : sequence, optional
        The possible items, distinct and public. With it, other items are refused and whether the work is affordable
        depends on public quantities only; without it, on the number of distinct items in the data.
    budget : int
        The largest number of item pmfs evaluated for one dataset.

    Raises
    ------
    BudgetError
        From ``pmf``, before the item algorithm is called, when there are too many subsets; and when the denominators of
        the item pmfs have too many digits in common.

    Notes
    -----
    Proofs of [GKKMMZ23, Theorem 10] and [GKKMMZ23, Theorem 11]. If the item algorithm is (epsilon, delta)-DP, replacing
    one item of N changes the distribution within `userdp.accounting.subsampling_amplification`, if it is symmetric. One
    that depends on the order of its items gets a subset in the order of the whole, and may change by more: for it the
    formula says nothing. What `userdp.delstab.DelStab` makes of either is private all the same. The distribution is the
    average of ``item_algorithm.pmf`` over the C(N, n1) subsets; for a symmetric item algorithm a mixture over count
    vectors k with weights prod_j C(c_j, k_j) (multivariate hypergeometric), c_j being the number of items of type j.
    Items are told apart by a fixed encoding in which True is not 1 and 0.0 is not -0.0, and a symmetric item algorithm
    gets them in the order of that encoding, so that equal multisets give equal calls. Neighbors: replace one user; by
    itself this says nothing about users, see `userdp.item_to_user.user_level_algorithm`.

    Examples
    --------
    >>> from userdp.algorithms import SymmetricAlgorithm
    >>> both = SymmetricAlgorithm((0, 1), lambda items: ["1/4", "3/4"] if sum(items) == 2 else ["3/4", "1/4"])
    >>> pooled = SubsampledAlgorithm(both, 2)
    >>> pooled.pmf(((1, 1), (1, 0))).fractions()  # 3 of the 6 pairs of items are (1, 1)
    [Fraction(1, 2), Fraction(1, 2)]
    """

    def __new__(cls, item_algorithm: Any = None, *arguments: Any, **named: Any) -> SubsampledAlgorithm:
        """Make the symmetric kind for a symmetric item algorithm."""
        symmetric = cls is SubsampledAlgorithm and is_symmetric(item_algorithm)
        return object.__new__(_SymmetricSubsampledAlgorithm if symmetric else cls)

    def __init__(
        self,
        item_algorithm: Any,
        n_items: int,
        *,
        universe: Iterable[Any] | None = None,
        budget: int = MAX_ITEM_PMFS,
    ) -> None:
        outputs = outputs_of(item_algorithm)
        if pmf_error_of(item_algorithm) > 0:
            raise ValueError(
                "item_algorithm declares a pmf_error; the exact distribution of a subsample needs exact masses"
            )
        self.item_algorithm = item_algorithm
        self.n_items = check_count(n_items, "n_items")
        self.budget = check_count(budget, "budget")
        self.universe = None if universe is None else frozenset(map(key_of, read_universe(universe)))
        super().__init__(outputs, self._distribution, name=f"{mechanism_name(item_algorithm)} on {self.n_items} items")

    def _distribution(self, dataset: Dataset) -> Pmf:
        items = [item for user in read_users(dataset, "dataset") for item in user]
        keys = list(map(key_of, items))
        if len(items) < self.n_items:
            raise ValueError(f"the dataset has {len(items)} items; a subset of n_items={self.n_items} was asked for")
        if self.universe is not None and not self.universe.issuperset(keys):
            strange = next(item for item, key in zip(items, keys, strict=True) if key not in self.universe)
            raise ValueError(f"the item {short_repr(strange)} is not in the universe")
        self._check_size(len(items), len(self.universe or set(keys)))
        values = dict(zip(keys, items, strict=True))
        pmfs = DistinctPmfs(self.outputs)
        weights: list[int] = []
        for sample, weight in self._samples(keys):
            drawn = tuple(values[key] for key in sample)
            pmfs.add(call_on(self.item_algorithm.pmf, drawn, drawn), drawn)
            index = pmfs.index_of[-1]
            if index == len(weights):
                weights.append(0)
            weights[index] += weight
        return mixture(self.outputs, [fractions_of(masses) for masses in pmfs.masses], weights)

    def _samples(self, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
        """The samples that can be drawn, with their numbers of subsets."""
        return iter(Counter(itertools.combinations(keys, self.n_items)).items())

    def _check_size(self, total: int, types: int) -> None:
        self._refuse_above(
            capped_binomial(total, self.n_items, self.budget), total, "declare the item algorithm symmetric"
        )

    def _refuse_above(self, samples: int, total: int, advice: str) -> None:
        if samples > self.budget:
            raise BudgetError(
                f"the distribution needs over {self.budget:,} item pmfs (n_items={self.n_items} of {total} items; "
                f"budget {self.budget:,}). Cheaper: {advice}; or fewer items"
            )


class _SymmetricSubsampledAlgorithm(SubsampledAlgorithm, SymmetricAlgorithm):
    """By multisets of items."""

    def _samples(self, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
        return count_vectors(sorted(Counter(keys).items()), self.n_items)

    def _check_size(self, total: int, types: int) -> None:
        multisets = capped_binomial(self.n_items + types - 1, types - 1, self.budget)
        samples = min(multisets, capped_binomial(total, self.n_items, self.budget))
        self._refuse_above(samples, total, "a coarser universe, with fewer distinct items")


def count_vectors(counts: Sequence[tuple[str, int]], size: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """The multisets of a size within the given counts, as sorted tuples, each with its number of subsets."""
    rest = list(itertools.accumulate((count for _, count in reversed(counts)), initial=0))[::-1]

    def extend(position: int, missing: int) -> Iterator[tuple[tuple[str, ...], int]]:
        if position == len(counts):
            yield (), 1
            return
        key, count = counts[position]
        for taken in range(max(0, missing - rest[position + 1]), min(count, missing) + 1):
            ways = math.comb(count, taken)
            for sample, weight in extend(position + 1, missing - taken):
                yield (key,) * taken + sample, ways * weight

    return extend(0, size)


def mixture(outputs: tuple[Any, ...], pmfs: Sequence[Sequence[Fraction]], weights: Sequence[int]) -> Pmf:
    """The mixture of the distributions, each divided by its exact sum, over one common denominator."""
    scaled: list[tuple[list[int], int]] = []
    for distribution in pmfs:
        common = math.lcm(*(mass.denominator for mass in distribution))
        numerators = [mass.numerator * (common // mass.denominator) for mass in distribution]
        divisor = math.gcd(*numerators)
        scaled.append(([number // divisor for number in numerators], sum(numerators) // divisor))
    totals = {total for _, total in scaled}
    if sum(total.bit_length() for total in totals) > MAX_DENOMINATOR_BITS:
        raise BudgetError(
            f"the item pmfs have {len(totals):,} different denominators, over {MAX_DENOMINATOR_BITS:,} bits together. "
            "Cheaper: item pmfs over one denominator, such as Fractions with a common one"
        )
    common = math.lcm(*totals)
    mixed = [0] * len(outputs)
    for (numerators, total), weight in zip(scaled, weights, strict=True):
        factor = weight * (common // total)
        for index, number in enumerate(numerators):
            mixed[index] += factor * number
    divisor = math.gcd(*mixed)
    return Pmf(outputs, tuple(number // divisor for number in mixed))
