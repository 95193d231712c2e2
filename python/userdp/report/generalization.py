"""The report of an audit of perfect generalization: `userdp.item_to_user.audit_perfect_generalization` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from userdp.checker import values
from userdp.checker.check import Verification
from userdp.display import Fact, Section
from userdp.display.numbers import bounded, bounds_text, number_text, plural
from userdp.exact.numbers import Bounds, PrivacyLevel, short_repr
from userdp.report.base import VERDICTS, Report, confirmed_by, exact_text, level_facts, report, verdict
from userdp.report.fields import (
    BOUNDS,
    COUNT,
    FLAG,
    LEVEL,
    OUTPUT_SET,
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
    written,
)

Notion = Literal["sample", "simulator"]


@part
class GeneralizationWitness:
    """The most likely pair of different output distributions, under the worst distribution."""

    x: tuple[Any, ...] = written(many(VALUE))
    x2: tuple[Any, ...] | None = written(optional(many(VALUE)), "None when x is compared with the simulator.")
    event: frozenset[Any] = written(
        OUTPUT_SET, "Outputs whose probabilities differ by more than (epsilon, delta) allows."
    )
    divergence: Bounds = written(
        BOUNDS,
        "Around the divergence of the output distribution on x from the other one; or of the other one from it, when "
        "``reversed``.",
    )
    reversed: bool = written(FLAG, "For the simulator only: it is the one with more mass on the event.", default=False)


@report("generalization")
class GeneralizationReport(Report):
    """The result of `audit_perfect_generalization`."""

    mechanism: str = written(TEXT)
    engine: str = written(one_of("labeled", "symmetric"))
    notion: Notion = written(
        one_of("sample", "simulator"), "Two independent samples compared, or one with the simulator."
    )
    epsilon_level: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE)
    claimed_beta: Fraction | None = written(optional(SHARE))
    scope: Literal["all", "listed"] = written(
        one_of("all", "listed"), "Whether the claim is about every distribution, or about the listed ones."
    )
    holds: bool | None = written(
        optional(FLAG),
        "False: some listed distribution has a larger beta, a certified violation. True: the claim is about the "
        "listed distributions and none has. None: no claim, or none of the listed distributions refutes a claim about "
        "all.",
    )
    beta: Fraction = written(SHARE, "The largest beta of the notion over the listed distributions.")
    worst: int = written(COUNT, "The position of the first distribution that has it.")
    sample_perfect: tuple[Fraction, ...] = written(many(SHARE, 1))
    perfect: tuple[Fraction, ...] = written(
        many(SHARE, 1),
        "For every listed distribution the exact probability that A(x) and A(x') (x, x' independent), respectively "
        "A(x) and the simulator, are not (epsilon, delta)-indistinguishable.",
    )
    universe: tuple[Any, ...] = written(many(VALUE, 1))
    distributions: tuple[tuple[Fraction, ...], ...] = written(
        many(PMF, 1), "The probabilities, in the order of the universe."
    )
    outputs: tuple[Any, ...] = written(many(VALUE, 1))
    simulator: tuple[Fraction, ...] | None = written(
        optional(PMF), "The simulator that was given; None for the mixture of the output distributions over samples."
    )
    n_users: int = written(POSITIVE)
    n_examples: int = written(POSITIVE)
    datasets: int = written(COUNT)
    pmfs: int = written(COUNT, "How many datasets, and how many distinct output distributions, there are.")
    witness: GeneralizationWitness | None = written(optional(of(GeneralizationWitness)), "None when beta is 0.")

    @classmethod
    def _read(cls, source: Mapping[str, Any]) -> GeneralizationReport:
        report = super()._read(source)
        listed = len(report.distributions)
        fits = {len(report.universe)} == {len(masses) for masses in report.distributions}
        fits = fits and listed == len(report.sample_perfect) == len(report.perfect) and report.worst < listed
        values.need(fits, "there is not one probability for each example, or one beta for each distribution")
        return report

    @property
    def distribution(self) -> tuple[tuple[Any, Fraction], ...]:
        """The worst of the listed distributions, as (example, probability)."""
        return tuple(zip(self.universe, self.distributions[self.worst], strict=True))

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError("undetermined: no beta was claimed, or the claim is about all distributions; see .beta")
        return self.holds

    def verify(self, mechanism: Any = None) -> Verification:
        """Check the numbers again, in exact arithmetic and without the compiled core.

        Parameters
        ----------
        mechanism : FiniteAlgorithm, optional
            Also run it on every dataset again, and compute every beta from its pmfs.

        Returns
        -------
        Verification
            "established" when every beta was computed again, and "spot-checked" when there are more than 100,000
            datasets or too many distinct pmfs, and only the witness was looked at.
        """
        if mechanism is None:
            return self._checked()
        run, declared, problems = confirmed_by(mechanism, self.outputs)
        return self._checked(mechanism_pmf=run, declared=declared, problems=problems)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"distribution": place, "sample_perfect": sample, "perfect": simulator}
            for place, (sample, simulator) in enumerate(zip(self.sample_perfect, self.perfect, strict=True))
        ]

    def _sections(self) -> Sequence[Section]:
        pair = "two samples" if self.notion == "sample" else "a sample and the simulator"
        beta = Fact("Beta", *number_text(self.beta))
        weights = ", ".join(f"{short_repr(example)}: {exact_text(mass)}" for example, mass in self.distribution if mass)
        found = [
            beta,
            Fact("Largest under", f"{{{weights}}}, of {plural(len(self.distributions), 'listed distribution')}"),
        ]
        if self.claimed_beta is not None:
            found.insert(1, Fact("Claimed beta", *number_text(self.claimed_beta)))
        if self.witness is not None:
            other = "the simulator" if self.witness.x2 is None else short_repr(self.witness.x2)
            event = ", ".join(sorted(map(short_repr, self.witness.event)))
            found += [
                Fact("For example", f"{short_repr(self.witness.x)} against {other}, on {{{event}}}"),
                Fact("Their divergence", *bounds_text(self.witness.divergence)),
            ]
        asked = [
            *level_facts(self.epsilon_level, self.delta),
            Fact("Samples", f"{plural(self.n_users, 'user')} with {plural(self.n_examples, 'example')} each"),
            Fact("Datasets", f"{self.datasets:,} ({self.engine}), {self.pmfs:,} distinct output distributions"),
        ]
        words: dict[bool | None, str] = {None: "NO CLAIM" if self.claimed_beta is None else "NOT REFUTED"}
        said = (
            f"Output distributions on {pair} differ by more than (epsilon, delta) with probability beta = "
            f"{exact_text(self.beta)} ({bounded(self.beta, digits=6)})."
        )
        note = "The listed distributions bound the worst one from below only." if self.scope == "all" else ""
        return [
            Section(
                f"Perfect generalization of {self.mechanism}",
                **verdict(self.holds, dict.fromkeys(VERDICTS, said), words),
                facts=[("Result", found), ("Question", asked)],
                notes=[note] if note else [],
                headline=[beta],
            )
        ]
