"""Exact audits of whole releases of private tables: each holds, and fails with any one constant spoilt, as markdown.

    python evidence/table_audits.py

The audit computes what a release would draw, in fractions, on all tables of a few users, and compares all neighbors at
the promised epsilon and delta. Spoilt are three constants, one at a time: k, in how many groups a user counts, of which
the noise knows one less; ids, of which each person has two; and the noise, which is halved, or, where groups are
unknown, the threshold, which is one lower. (Half of the noise at the same threshold hides new groups better. It shows
in groups that many users have, of which these tables have none.) The program ends with an error where an audit does not
say what it should.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from userdp import LogRatio
from userdp.algorithms import Dataset
from userdp.audit import audit_user_level
from userdp.exact.pmf import Pmf
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables import Query, Schema, category, count_rows, count_users, integer, key, mean, number
from userdp.tables import sum as total_of
from userdp.tables.audits import TableAlgorithm
from userdp.tables.compiled import compiled
from userdp.tables.noise import Allotment, Budget, Noise, allot

ASKED: Mapping[str, Mapping[str, Any]] = {
    "users": {"people": count_users()},
    "rows": {"rows": count_rows(2)},
    "users, rows": {"people": count_users(), "rows": count_rows(2)},
    "mean": {"x": mean("x")},
    "sum": {"total": total_of("n", max_total=1)},
}
VALUES = {"x": (0.0, 1.0), "n": (-1, 1)}
SPOILT = ("half of the noise", "k + 1 groups", "two ids of a person", "threshold - 1")
LARGEST = 2


@dataclass(frozen=True)
class Audit:
    """A question, the promise, and the tables that are compared."""

    asked: str
    unknown: bool
    max_keys: int
    neighbors: Any
    epsilon: Fraction | LogRatio
    delta: Fraction
    n_keys: int
    n_users: int
    rows: int  # of a user
    reach: int = 1  # noisy numbers are told apart within what so many users add

    @property
    def title(self) -> tuple[str, ...]:
        """What is asked and promised."""
        groups = "unknown" if self.unknown else f"{self.n_keys} known"
        level = f"ln {self.epsilon.ratio}" if isinstance(self.epsilon, LogRatio) else str(self.epsilon)
        return self.asked, groups, str(self.max_keys), self.neighbors, level, str(self.delta)

    def verdicts(self) -> list[bool | None]:
        """Whether the audit holds, and whether it does with each constant spoilt; None where there is no such one."""
        towns = "abcdef"[: self.n_keys]
        kinds = {
            "town": key(str) if self.unknown else category(list(towns)),
            "x": number(0, 1, steps=2),
            "n": integer(-1, 1),
        }
        schema = Schema(**kinds)
        query = Query().group_by("town", max_keys=self.max_keys).agg(**ASKED[self.asked])
        meant = compiled(query, schema, largest=LARGEST)
        noise = allot(meant, self.neighbors, Budget("basic", self.epsilon, self.delta))
        assert noise.keyed is not None
        keys = [(town,) for town in towns] if self.unknown else None
        more = replace(meant, max_keys=self.max_keys + 1)
        given: Any = {"schema": schema, "n_users": self.reach, "keys": keys}
        algorithms: list[TableAlgorithm | None] = [
            TableAlgorithm(meant, noise, **given),
            None if self.unknown else TableAlgorithm(meant, halved(noise), **given),
            TableAlgorithm(more, noise, **given),
            Twice(meant, noise, **given),
            TableAlgorithm(meant, lowered(noise), **given) if self.unknown else None,
        ]
        return [None if one is None else self._holds(one, towns) for one in algorithms]

    def _holds(self, algorithm: TableAlgorithm, towns: str) -> bool:
        values = {"town": tuple(towns), **VALUES}
        report = audit_user_level(
            algorithm,
            universe=[None, *itertools.product(*(values[name] for name in algorithm.columns))],
            n_users=self.n_users,
            n_examples=self.rows,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbors=self.neighbors,
        )
        assert report.holds is not None
        return report.holds


class Twice(TableAlgorithm):
    """The release of a table in which each person has two ids."""

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The probabilities of the outputs where all users are there twice."""
        return super().pmf((*dataset, *dataset))


def halved(noise: Allotment) -> Allotment:
    """Half of the noise, at the same threshold."""
    assert noise.keyed is not None
    return replace(noise, keyed=replace(noise.keyed, noise=tuple((one, half(each)) for one, each in noise.keyed.noise)))


def half(noise: Noise) -> Noise:
    """Noise of half the width."""
    if isinstance(noise, DiscreteGaussian):
        return DiscreteGaussian(sigma_squared=noise.sigma_squared / 4)
    return DiscreteLaplace(scale=Fraction(noise.scale) / 2, bounds=(-(2**61), 2**61))


def lowered(noise: Allotment) -> Allotment:
    """The same with a threshold that is one lower."""
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    sparse = noise.keyed.sparse
    lower = SparseHistogram(**{**sparse._arguments, "threshold": sparse.threshold - 1})
    return replace(noise, keyed=replace(noise.keyed, sparse=lower))


def audits() -> list[Audit]:
    """Forty of them."""
    found = []
    both: tuple[Any, Any] = ("add-remove", "replace")
    # Three groups, so that a user of two may leave both for the third.
    for asked, neighbors in itertools.product(ASKED, both):
        rows = 4 if asked == "rows" else 2
        found.append(Audit(asked, False, 1, neighbors, LogRatio(2), Fraction(0), n_keys=3, n_users=1, rows=rows))
    for neighbors in both:
        found.append(Audit("users", False, 2, neighbors, Fraction(1), Fraction(0), n_keys=5, n_users=1, rows=3))
    for asked, epsilon in (("users", LogRatio(3)), ("sum", Fraction(1))):
        found.append(Audit(asked, False, 2, "add-remove", epsilon, Fraction(0), n_keys=3, n_users=1, rows=3))
    for asked, neighbors in itertools.product(("users", "users, rows", "mean", "sum"), both):
        found.append(Audit(asked, False, 1, neighbors, Fraction(1, 2), Fraction(0), n_keys=3, n_users=1, rows=2))
    for neighbors in both:
        found.append(
            Audit("users, rows", True, 1, neighbors, Fraction(1), Fraction(1, 10), n_keys=2, n_users=2, rows=2, reach=2)
        )
    for (asked, users), neighbors, (epsilon, delta) in itertools.product(
        (("users", 3), ("sum", 2), ("mean", 2)),
        both,
        ((Fraction(1), Fraction(1, 10)), (LogRatio(4), Fraction(1, 50))),
    ):
        found.append(Audit(asked, True, 1, neighbors, epsilon, delta, n_keys=2, n_users=users, rows=2, reach=users))
    # Thresholds are whole numbers: these have so little to spare that a third group is too much.
    for neighbors, epsilon, delta in (
        ("add-remove", Fraction(1), Fraction(1, 30)),
        ("add-remove", Fraction(2), Fraction(1, 8)),
        ("replace", Fraction(1), Fraction(1, 30)),
        ("replace", LogRatio(4), Fraction(1, 20)),
    ):
        found.append(Audit("users", True, 2, neighbors, epsilon, delta, n_keys=3, n_users=2, rows=3, reach=2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, nargs=2, default=[0, 40], help="from this one to before that one")
    first, end = parser.parse_args().audits
    names = ("number", "groups", "of a user", "neighbors", "epsilon", "delta", "as it is", *SPOILT)
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names), flush=True)
    wrong = 0
    for audit in audits()[first:end]:
        began = time.process_time()
        verdicts = audit.verdicts()
        words = ["–" if one is None else "holds" if one else "fails" for one in verdicts]
        print(f"| {' | '.join((*audit.title, *words))} |", flush=True)
        print(f"{time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
        wrong += verdicts[0] is not True or any(verdicts[1:])
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
