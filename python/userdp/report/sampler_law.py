"""What is known of the output distributions of a sampler: `userdp.audit.audit_sampler_law` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from userdp.algorithms import Dataset
from userdp.algorithms.finite import FunctionAlgorithm, read_users
from userdp.display import Fact, Section
from userdp.display.numbers import Toward, bounds_text, in_digits, number_text
from userdp.exact.encoding import key_of
from userdp.exact.numbers import Bounds, PrivacyLevel, short_repr
from userdp.report.base import Report, exact_text, level_facts, report, universe_text, verdict
from userdp.report.fields import (
    BOUNDS,
    COUNT,
    FLAG,
    LEVEL,
    MEMORY,
    PMF,
    POSITIVE,
    SHARE,
    TEXT,
    VALUE,
    many,
    of,
    one_of,
    optional,
    part,
    row,
    written,
)

PRACTICAL = Fraction(1, 10**9)
"""A violation by at least so much can be seen in practice."""
MOST_SHOWN = 1000
"""Examples of a dataset that is shown."""
RANDOMNESS = ("bits", "lazy-bits", "random", "secrets", "numpy")


@part
class LawWitness:
    """Two neighboring datasets, and the outputs that tell them apart."""

    ranks: tuple[int, int] = written(row(COUNT, COUNT), "The datasets' places in the order of the report.")
    event: tuple[int, ...] = written(
        many(COUNT, 1, unique=True),
        "Positions in ``outputs``: those that are found more often on the first dataset than e^epsilon times as often "
        "as on the second.",
    )


@report("law")
class SamplerLawReport(Report):
    """What is known of a sampler's output distributions, and whether it is (epsilon, delta)-DP by that."""

    holds: bool | None = written(
        optional(FLAG),
        "The verdict on this universe; None when what is unexplored leaves it open. ``bool(report)`` is this, and "
        "raises for None.",
    )
    worst_delta: Bounds = written(
        BOUNDS,
        "Enclose the worst divergence over all neighbors, in both directions: ``upper`` is a delta that is confirmed.",
    )
    witness: LawWitness | None = written(
        optional(of(LawWitness)), "Where the lower bound is attained; None when it is 0."
    )
    mechanism: str = written(TEXT, "Its name.")
    randomness: str = written(
        one_of(*RANDOMNESS), 'What the mechanism was given: "bits", "lazy-bits", "random", "secrets" or "numpy".'
    )
    monotone: bool = written(
        FLAG, "Whether it was taken on trust that the output only rises, or only falls, with each drawn number."
    )
    neighbors: str = written(one_of("replace", "add-remove"))
    epsilon: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE, "The question, exactly.")
    universe: tuple[Any, ...] = written(many(VALUE, 1))
    n_users: int = written(POSITIVE)
    n_examples: int = written(POSITIVE)
    outputs: tuple[Any, ...] = written(
        many(VALUE),
        "The k outputs that were found, in the order of their first appearance. One that stands for an exception "
        'reads "raises ...".',
    )
    laws: tuple[tuple[Fraction, ...], ...] = written(
        many(PMF, 1),
        "The distinct laws: the masses that the k outputs have at least, and last what is not explored; the sum is 1.",
    )
    law_of: tuple[int, ...] = written(
        many(COUNT, 1),
        "For each dataset its law. Datasets of n users come in the order of `itertools.product` over the values of a "
        'user, with "add-remove" followed by those of n - 1 users.',
    )
    runs: int = written(COUNT, "How often the mechanism was run.")
    memory: str = written(MEMORY, 'What is known of memory between runs: "none on ...", or "assumed", and why.')

    @property
    def unexplored(self) -> Fraction:
        """The largest mass that is not explored, of any dataset; 0 when all laws are known in full."""
        return max((law[-1] for law in self.laws if law), default=Fraction(1))

    @property
    def severity(self) -> str | None:
        """The size of a violation: "practical" from 1e-9 on, else "numerical"; "open" between. None without one."""
        if self.holds is not False:
            return None
        if Fraction(self.worst_delta.lower) >= PRACTICAL:
            return "practical"
        return "numerical" if self.worst_delta.upper < PRACTICAL else "open"

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError(f"undetermined: {self._open()}")
        return self.holds

    def law(self, dataset: Sequence[Any]) -> tuple[tuple[Any, Fraction], ...]:
        """The masses that outputs have at least on a dataset of the universe; what is missing to 1 is not explored.

        Parameters
        ----------
        dataset : sequence of users
            Each a tuple of ``n_examples`` examples of the universe.

        Returns
        -------
        tuple of (output, Fraction)
            The outputs that were found on it, in the order of ``outputs``, with their masses.
        """
        masses = self.laws[self.law_of[self._rank(read_users(dataset, "dataset"))]]
        return tuple((output, mass) for output, mass in zip(self.outputs, masses[:-1], strict=True) if mass)

    def algorithm(self) -> FunctionAlgorithm:
        """The finite algorithm with these laws, for `userdp.audit.audit_user_level` and all that takes one.

        Returns
        -------
        FunctionAlgorithm
            On datasets of this universe, with exact pmfs.

        Raises
        ------
        ValueError
            When a law is not known in full.
        """
        if self.unexplored:
            share = exact_text(self.unexplored)
            raise ValueError(f"up to {share} of a law's mass is not explored, so there is no pmf; raise max_runs")

        def pmf(dataset: Dataset) -> list[Fraction]:
            return list(self.laws[self.law_of[self._rank(dataset)]][:-1])

        return FunctionAlgorithm(self.outputs, pmf, name=self.mechanism)

    def _rank(self, users: Dataset) -> int:
        """The place of a dataset in the order of the report."""
        place = {key_of(example): position for position, example in enumerate(self.universe)}
        fewer = self.neighbors == "add-remove" and len(users) == self.n_users - 1
        if len(users) != self.n_users and not fewer:
            raise ValueError(f"dataset must have {self.n_users} users; got {len(users)}")
        rank: int = 0
        for user in users:
            if len(user) != self.n_examples:
                raise ValueError(
                    f"dataset: a user has {len(user)} examples; the report is about {self.n_examples} each"
                )
            for example in user:
                digit = place.get(key_of(example))
                if digit is None:
                    raise ValueError(f"dataset: {short_repr(example)} is not in the universe of the report")
                rank = rank * len(self.universe) + digit
        return rank + (len(self.universe) ** (self.n_examples * self.n_users) if fewer else 0)

    def _dataset(self, rank: int) -> Dataset:
        """The dataset of a rank."""
        size, n = len(self.universe), self.n_users
        full = size ** (self.n_examples * n)
        if rank >= full:
            rank, n = rank - full, n - 1
        examples = []
        for _ in range(n * self.n_examples):
            rank, digit = divmod(rank, size)
            examples.append(self.universe[digit])
        examples.reverse()
        return tuple(tuple(examples[at : at + self.n_examples]) for at in range(0, len(examples), self.n_examples))

    def _dataset_text(self, rank: int) -> str:
        """The dataset of a rank, or its number where a report that is wrong has no such dataset."""
        small = 1 <= self.n_users * self.n_examples <= MOST_SHOWN and self.universe
        if not small or rank >= len(self.law_of):
            return f"the dataset number {in_digits(rank)}"
        return short_repr(self._dataset(rank))

    def _open(self) -> str:
        """Why there is no verdict."""
        text = (
            f"up to {exact_text(self.unexplored)} of a law's mass is not explored. Confirmed is delta = "
            f"{self.worst_delta.upper!r} at this epsilon, and a divergence of {self.worst_delta.lower!r} is certain"
        )
        if not self.delta and self.unexplored:
            text += ". A claim without a delta cannot be confirmed while anything is unexplored"
        if not self.outputs:
            text += (
                ". No run ended, since numbers of very many values are drawn in full, such as arrays of floats. Draw "
                "single floats, as in [rng.random() < p for _ in range(n)], or use audit_samples"
            )
        return text

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{**super()._rows()[0], "unexplored": self.unexplored}]

    def _sections(self) -> Sequence[Section]:
        worst = Fact("Worst delta at epsilon", *bounds_text(self.worst_delta))
        found = [worst, Fact("Not explored", *number_text(self.unexplored))]
        if self.severity is not None:
            found.append(Fact("Size", self.severity))
        if self.witness is not None:
            first, second = map(self._dataset_text, self.witness.ranks)
            event = tuple(self.outputs[place] for place in self.witness.event if place < len(self.outputs))
            found += [Fact("Attained by", f"{first} against {second}"), Fact("On the event", short_repr(event))]
        toward: Toward = "down" if self.holds is False else "up"
        sizes = map(in_digits, (self.n_users, self.n_examples))
        users = "users: {}, examples of each: {}, from {}".format(*sizes, universe_text(self.universe))
        removed = f"removing one user from the {in_digits(self.n_users)}"
        asked = [
            *level_facts(self.epsilon, self.delta, toward),
            Fact("Datasets", f"{in_digits(len(self.law_of))}: {users}"),
            Fact("Neighbors by", "replacing one user" if self.neighbors == "replace" else removed),
            Fact("Randomness", f"{self.randomness}; {in_digits(self.runs)} runs, {len(self.outputs)} outputs found"),
            Fact("Assumed", "the output follows from the dataset and the random bits alone"),
        ]
        fixed = "; what is kept at a fixed path elsewhere is assumed to change nothing" * self.memory.startswith("none")
        asked.append(Fact("Memory between calls", self.memory + fixed))
        if len(self.outputs) == 1 and not self.unexplored:
            asked.append(Fact("The output", "one constant on all datasets, which one should expect"))
        if self.randomness != "bits":
            asked.append(Fact("Assumed", "a stand-in for a drawn number is treated as the number"))
        if self.monotone:
            asked.append(Fact("Assumed", "the output only rises, or only falls, with each drawn number"))
        said = {
            True: "On all neighbors of this universe the outputs are indistinguishable at (epsilon, delta)."
            + " Memory between calls: assumed." * self.memory.startswith("assumed"),
            False: "Some neighbors can be told apart at (epsilon, delta).",
            None: f"{self._open()[0].upper()}{self._open()[1:]}.",
        }
        return [
            Section(
                f"Law of {self.mechanism}",
                **verdict(self.holds, said),
                facts=[("Result", found), ("Question", asked)],
                headline=[worst],
            )
        ]
