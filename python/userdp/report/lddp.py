"""The result of a check of local deletion DP: `userdp.lddp.check_lddp` makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from userdp.algorithms.finite import ASSUMPTIONS, assumptions_of, read_users
from userdp.checker.check import Verification
from userdp.display import Fact, Section
from userdp.display.numbers import Toward, bounds_text, in_digits, number_text
from userdp.exact.numbers import Bounds, PrivacyLevel, short_repr
from userdp.report.base import Report, confirmed_by, level_facts, report, undetermined, verdict
from userdp.report.fields import (
    COUNT,
    FLAG,
    LEVEL,
    OUTPUT_SET,
    SHARE,
    SIZE,
    TEXT,
    VALUE,
    many,
    one_of,
    optional,
    row,
    written,
)

LDDPWitness = tuple[tuple[int, ...], tuple[int, ...], frozenset[Any]]


@report("lddp")
class LDDPResult(Report):
    """Whether an algorithm is (r, epsilon, delta)-LDDP at a dataset, decided."""

    holds: bool | None = written(
        optional(FLAG),
        "The verdict; None when undetermined within the algorithm's declared ``pmf_error``. ``bool(result)`` is this, "
        "and raises for None.",
    )
    lower: float = written(SIZE)
    upper: float = written(SIZE, "Both enclose the worst divergence over all ordered pairs of deletion sets.")
    witness: LDDPWitness | None = written(
        optional(row(many(COUNT, unique=True), many(COUNT, unique=True), OUTPUT_SET)),
        "Where the worst divergence is attained: P(event) - e^epsilon P2(event) for the output distribution P after "
        "deleting S and P2 after deleting S2. Deletion sets are sorted tuples of 0-based positions, the event is a "
        "frozenset of outputs. None when all output distributions are so close that the worst divergence is 0.",
    )
    pairs_evaluated: int = written(
        COUNT,
        "Ordered pairs of pmfs whose divergence was computed; all others were bounded or stand for the same pmfs.",
    )
    engine: str = written(
        one_of("general", "symmetric", "additive", "score"),
        "What was enumerated: deletion sets, count vectors of distinct users, reachable totals, or count vectors of "
        "users with distinct scores, inside the core.",
    )
    algorithm: str = written(TEXT, "The algorithm's name.")
    outputs: tuple[Any, ...] = written(many(VALUE, 1))
    epsilon: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE)
    pmf_error: Fraction = written(SHARE, "The question, exactly.")
    r: int = written(COUNT)
    n_users: int = written(COUNT)

    @property
    def subsets(self) -> int:
        """The number of deletion sets, n choose r."""
        return math.comb(self.n_users, self.r)

    @property
    def pairs(self) -> int:
        """The number of unordered pairs of deletion sets, each looked at in both directions."""
        return self.subsets * (self.subsets - 1) // 2

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the verdict rests on, as `userdp.algorithms.finite.ASSUMPTIONS` explains it."""
        return assumptions_of(self.engine)

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError(undetermined(self.pmf_error, Bounds(self.lower, self.upper), self.delta))
        return self.holds

    def verify(self, mechanism: Any = None, dataset: Sequence[Any] | None = None) -> Verification:
        """Check the result again, in exact arithmetic and without the compiled core.

        Parameters
        ----------
        mechanism : FiniteAlgorithm, optional
            The algorithm, to be run again on what deletions leave of `dataset`.
        dataset : sequence of users, optional
            That of the check, which the result does not hold. Both or neither.

        Returns
        -------
        Verification
            Without them, whether the numbers agree. With them "established" when every deletion set was looked at:
            up to 100,000 of them, with up to 1,000,000 pairs of distinct pmfs. Beyond that the witness is decided
            again, which refutes a claim and establishes none, and the finding is "spot-checked".
        """
        if (mechanism is None) != (dataset is None):
            raise TypeError("verify needs the algorithm and the dataset, or neither: the result does not hold the data")
        if mechanism is None or dataset is None:
            return self._checked()
        run, declared, problems = confirmed_by(mechanism, self.outputs)
        users = read_users(dataset, "dataset")
        return self._checked(mechanism_pmf=run, declared=declared, problems=problems, dataset=users)

    def _sections(self) -> Sequence[Section]:
        worst = Fact("Worst delta at epsilon", *bounds_text(Bounds(self.lower, self.upper)))
        found = [worst]
        if self.witness is not None:
            first, second, event = self.witness
            found += [
                Fact("Attained by deleting", f"the users at {first} against those at {second}"),
                Fact("On the event", short_repr(event)),
            ]
        toward: Toward = "down" if self.holds is False else "up"
        asked = [
            *level_facts(self.epsilon, self.delta, toward),
            Fact("Deleted users", f"{self.r} of {self.n_users}: {_ways(self.n_users, self.r)} ways"),
            Fact("Engine", f"{self.engine}; {in_digits(self.pairs_evaluated)} pairs of pmfs computed"),
            *(Fact("Assumed", ASSUMPTIONS[name]) for name in self.assumptions),
        ]
        if self.pmf_error:
            asked.insert(2, Fact("Relative error of the pmfs", *number_text(self.pmf_error)))
        said = {
            True: "Whichever users are deleted, the output distributions are indistinguishable at (epsilon, delta).",
            False: "Some deletions can be told apart at (epsilon, delta).",
            None: "The pmfs are known too roughly to decide.",
        }
        return [
            Section(
                f"LDDP of {self.algorithm}",
                **verdict(self.holds, said),
                facts=[("Result", found), ("Question", asked)],
                headline=[worst],
            )
        ]


def _ways(n: int, r: int) -> str:
    """How many ways there are to delete r of n, without making a number that nobody reads."""
    few = min(r, n - r)
    if few * n.bit_length() < 4000:
        return in_digits(math.comb(n, r))
    if n.bit_length() > 1000 or few < 0:  # of a report that is wrong
        return "an unknown number of"
    return f"over 10^{int((math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1)) / math.log(10)) - 1}"
