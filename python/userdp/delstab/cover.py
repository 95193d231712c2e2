"""Stability when few sets of users are kept, however many users there are: r* as a smallest hitting set.

S is stable exactly when it meets J | J' for every incompatible pair of kept sets J, J'. S is then one smallest hitting
set, whatever larger size was drawn: the privacy proof needs |S| <= R1 only, and no rule for choosing S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp import _core
from userdp.delstab.compatibility import InnerLaws
from userdp.delstab.kept import Law
from userdp.exact.pmf_input import ExactMasses, distinct_masses


@dataclass(frozen=True)
class CoverStability:
    """A smallest stable set of one dataset, by the kept sets that it leaves.

    Attributes
    ----------
    smallest : int or None
        Its size; None if it exceeds the limit.
    laws : list
        The inner laws on the kept sets that it leaves.
    """

    smallest: int | None
    laws: list[ExactMasses]

    def law(self, mixture: Sequence[int], total: int) -> Law:
        """The law of the release, when |S| = r with probability mixture[r] / total."""
        released = Fraction(sum(mixture), total) / len(self.laws)
        sums = [sum((Fraction(w[o], t) for w, t in self.laws), Fraction(0)) for o in range(len(self.laws[0][0]))]
        scaled = [released * mass for mass in sums]
        scale = math.lcm(*(mass.denominator for mass in scaled))
        return [int(mass * scale) for mass in scaled], scale

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw one of the kept sets that are left; its law."""
        weights, total = self.laws[int(source.below(len(self.laws)))]
        return [Fraction(weight, total) for weight in weights]


def covering(laws: list[ExactMasses | None], n_users: int, kept: int, limit: int, inner: InnerLaws) -> CoverStability:
    """Find a smallest stable set.

    Parameters
    ----------
    laws : list
        The inner laws on all sets of `kept` of the users, in lexicographic order; None where the algorithm fails.
    n_users, kept, limit : int
        n, n - D, and the largest size of a stable set that matters.
    inner : InnerLaws
        The relation.
    """
    sets = [sum(1 << user for user in chosen) for chosen in itertools.combinations(range(n_users), kept)]
    edges = {mask for mask, law in zip(sets, laws, strict=True) if law is None}
    groups: dict[Any, list[int]] = {}
    examples: dict[Any, ExactMasses] = {}
    for mask, law in zip(sets, laws, strict=True):
        if law is not None:
            key = distinct_masses(law)
            groups.setdefault(key, []).append(mask)
            examples[key] = law
    # With itself too: a declared pmf_error may leave even equal masses apart.
    for a, b in itertools.combinations_with_replacement(groups, 2):
        if not _core.is_indistinguishable(examples[a], examples[b], inner.level, inner.delta)[0]:
            edges.update(x | y for x in groups[a] for y in groups[b])
    removed = _core.minimum_hitting_set(sorted(edges), limit)
    if removed is None:
        return CoverStability(None, [])
    left = [law for mask, law in zip(sets, laws, strict=True) if not mask & removed and law is not None]
    return CoverStability(removed.bit_count(), left)
