"""The result of a check of local deletion DP: `userdp.lddp.check_lddp` makes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from userdp.algorithms.finite import ASSUMPTIONS, assumptions_of, read_users
from userdp.checker.check import Verification
from userdp.display import Fact, Section
from userdp.display.numbers import Toward, bounds_text, in_digits, level_text, number_text
from userdp.exact.numbers import Bounds, PrivacyLevel, short_repr
from userdp.report.base import (
    COUNT,
    FLAG,
    FLOAT,
    FRACTION,
    LEVEL,
    OUTPUT_SET,
    TEXT,
    VALUE,
    Codec,
    Report,
    confirmed_by,
    many,
    one_of,
    optional,
    row,
    undetermined,
)

LDDPWitness = tuple[tuple[int, ...], tuple[int, ...], frozenset[Any]]


@dataclass(frozen=True, kw_only=True, repr=False)
class LDDPResult(Report):
    """Whether an algorithm is (r, epsilon, delta)-LDDP at a dataset, decided.

    Attributes
    ----------
    holds : bool or None
        The verdict; None when undetermined within the algorithm's declared ``pmf_error``. ``bool(result)`` is this,
        and raises for None.
    lower, upper : float
        Enclose the worst divergence over all ordered pairs of deletion sets.
    witness : (S, S2, event) or None
        Where the worst divergence is attained: P(event) - e^epsilon P2(event) for the output distribution P after
        deleting S and P2 after deleting S2. Deletion sets are sorted tuples of 0-based positions, the event is a
        frozenset of outputs. None when all output distributions are so close that the worst divergence is 0.
    pairs_evaluated : int
        Ordered pairs of pmfs whose divergence was computed; all others were bounded or stand for the same pmfs.
    engine : {"general", "symmetric", "additive", "score"}
        What was enumerated: deletion sets, count vectors of distinct users, reachable totals, or count vectors of
        users with distinct scores, inside the core.
    algorithm : str
        The algorithm's name.
    outputs : tuple
    epsilon : PrivacyLevel
    delta, pmf_error : Fraction
        The question, exactly.
    r, n_users : int
    """

    holds: bool | None
    lower: float
    upper: float
    witness: LDDPWitness | None
    pairs_evaluated: int
    engine: str
    algorithm: str
    outputs: tuple[Any, ...]
    epsilon: PrivacyLevel
    delta: Fraction
    pmf_error: Fraction
    r: int
    n_users: int

    KIND: ClassVar[str] = "lddp"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "holds": optional(FLAG),
        "lower": FLOAT,
        "upper": FLOAT,
        "witness": optional(row(many(COUNT), many(COUNT), OUTPUT_SET)),
        "pairs_evaluated": COUNT,
        "engine": one_of("general", "symmetric", "additive", "score"),
        "algorithm": TEXT,
        "outputs": many(VALUE),
        "epsilon": LEVEL,
        "delta": FRACTION,
        "pmf_error": FRACTION,
        "r": COUNT,
        "n_users": COUNT,
    }

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

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("holds", "lower", "upper", "pairs_evaluated", "engine", "r", "n_users")
        return [
            {"algorithm": self.algorithm, "epsilon": self.epsilon, "delta": self.delta}
            | {name: getattr(self, name) for name in names}
        ]

    def _sections(self) -> Sequence[Section]:
        word, tone = {True: ("HOLDS", "good"), False: ("VIOLATED", "bad"), None: ("UNDETERMINED", "open")}[self.holds]
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
            Fact("Epsilon", *level_text(self.epsilon, toward)),
            Fact("Delta", *number_text(self.delta, toward)),
            Fact("Deleted users", f"{self.r} of {self.n_users}: {_ways(self.n_users, self.r)} ways"),
            Fact("Engine", f"{self.engine}; {in_digits(self.pairs_evaluated)} pairs of pmfs computed"),
            *(Fact("Assumed", ASSUMPTIONS[name]) for name in self.assumptions),
        ]
        if self.pmf_error:
            asked.insert(2, Fact("Relative error of the pmfs", *number_text(self.pmf_error)))
        sentence = {
            True: "Whichever users are deleted, the output distributions are indistinguishable at (epsilon, delta).",
            False: "Some deletions can be told apart at (epsilon, delta).",
            None: "The pmfs are known too roughly to decide.",
        }[self.holds]
        return [
            Section(
                f"LDDP of {self.algorithm}",
                word,
                sentence,
                tone,  # type: ignore[arg-type]
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
