"""The result of an audit of perfect generalization."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from userdp._encoding import encode, fraction_text
from userdp._numbers import Bounds, PrivacyLevel, shown
from userdp.algorithms import Dataset

__all__ = ["GeneralizationReport", "GeneralizationWitness", "Notion"]

Notion = Literal["sample", "simulator"]


@dataclass(frozen=True)
class GeneralizationWitness:
    """The most likely pair of different laws, under the worst distribution.

    Attributes
    ----------
    x : dataset
    x2 : dataset or None
        None when x is compared with the simulator.
    event : frozenset
        Outputs whose probabilities differ by more than (epsilon, delta) allows.
    divergence : Bounds
        Around the divergence of the law on x from the other one; or of the other one from it, when ``reversed``.
    reversed : bool
        For the simulator only: it is the one with more mass on the event.
    """

    x: Dataset
    x2: Dataset | None
    event: frozenset[Any]
    divergence: Bounds
    reversed: bool = False


@dataclass(frozen=True, kw_only=True)
class GeneralizationReport:
    """The result of `audit_perfect_generalization`.

    Attributes
    ----------
    mechanism, engine : str
    notion : {"sample", "simulator"}
        Two independent samples compared, or one with the simulator.
    epsilon_level : PrivacyLevel
    delta : Fraction
    claimed_beta : Fraction or None
    scope : {"all", "listed"}
        Whether the claim is about every distribution, or about the listed ones.
    holds : bool or None
        False: some listed distribution has a larger beta, a certified violation. True: the claim is about the listed
        distributions and none has. None: no claim, or none of the listed distributions refutes a claim about all.
    beta : Fraction
        The largest beta of the notion over the listed distributions.
    worst : int
        The position of the first distribution that has it.
    sample_perfect, perfect : tuple of Fraction
        For every listed distribution the exact probability that A(x) and A(x') (x, x' independent), respectively A(x)
        and the simulator, are not (epsilon, delta)-indistinguishable.
    universe : tuple
    distributions : tuple of tuples of Fraction
        The probabilities, in the order of the universe.
    n_users, n_examples : int
    datasets, pmfs : int
        How many datasets, and how many distinct laws, there are.
    witness : GeneralizationWitness or None
        None when beta is 0.
    """

    mechanism: str
    engine: str
    notion: Notion
    epsilon_level: PrivacyLevel
    delta: Fraction
    claimed_beta: Fraction | None
    scope: Literal["all", "listed"]
    holds: bool | None
    beta: Fraction
    worst: int
    sample_perfect: tuple[Fraction, ...]
    perfect: tuple[Fraction, ...]
    universe: tuple[Any, ...]
    distributions: tuple[tuple[Fraction, ...], ...]
    n_users: int
    n_examples: int
    datasets: int
    pmfs: int
    witness: GeneralizationWitness | None

    @property
    def distribution(self) -> tuple[tuple[Any, Fraction], ...]:
        """The worst of the listed distributions, as (example, probability)."""
        return tuple(zip(self.universe, self.distributions[self.worst], strict=True))

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError("undetermined: no beta was claimed, or the claim is about all distributions; see .beta")
        return self.holds

    def __str__(self) -> str:
        kind = "two samples" if self.notion == "sample" else "a sample and the simulator"
        verdict = {
            True: "HOLDS for the listed distributions",
            False: "VIOLATED",
            None: "not refuted" if self.claimed_beta is not None else "no claim",
        }[self.holds]
        weights = ", ".join(f"{shown(example)}: {_short(mass)}" for example, mass in self.distribution if mass)
        claim = "" if self.claimed_beta is None else f", claimed at most {_short(self.claimed_beta)}"
        lines = [
            f"Perfect generalization of {self.mechanism}: {verdict}",
            f"  laws on {kind} differ by more than ({float(self.epsilon_level):.6g}, {float(self.delta):.6g}) with "
            f"probability beta = {_short(self.beta)} ({float(self.beta):.6g}){claim}",
            f"  {len(self.distributions)} listed, the largest at {{{weights}}}",
            f"  n_users={self.n_users}, n_examples={self.n_examples}: {self.datasets:,} datasets ({self.engine}), "
            f"{self.pmfs:,} distinct laws",
        ]
        if self.witness is not None:
            other = "the simulator" if self.witness.x2 is None else shown(self.witness.x2)
            event = ", ".join(sorted(map(shown, self.witness.event)))
            lines.append(f"  for example {shown(self.witness.x)} against {other}, event {{{event}}}")
        if self.scope == "all":
            lines.append("  the listed distributions bound the worst one from below only")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready content: numbers exact (fractions as text), examples and outputs as in the report format."""
        witness = None
        if self.witness is not None:
            witness = {
                "x": encode(self.witness.x),
                "x2": encode(self.witness.x2),
                "event": sorted((encode(output) for output in self.witness.event), key=json.dumps),
                "divergence": [self.witness.divergence.lower.hex(), self.witness.divergence.upper.hex()],
                "reversed": self.witness.reversed,
            }
        return {
            "kind": "perfect-generalization",
            "mechanism": self.mechanism,
            "engine": self.engine,
            "notion": self.notion,
            "epsilon": {
                "ratio": fraction_text(self.epsilon_level.ratio),
                "exponent": fraction_text(self.epsilon_level.exponent),
            },
            "delta": fraction_text(self.delta),
            "claimed_beta": None if self.claimed_beta is None else fraction_text(self.claimed_beta),
            "scope": self.scope,
            "holds": self.holds,
            "beta": fraction_text(self.beta),
            "worst": self.worst,
            "sample_perfect": [fraction_text(beta) for beta in self.sample_perfect],
            "perfect": [fraction_text(beta) for beta in self.perfect],
            "universe": [encode(example) for example in self.universe],
            "distributions": [[fraction_text(mass) for mass in masses] for masses in self.distributions],
            "n_users": self.n_users,
            "n_examples": self.n_examples,
            "datasets": self.datasets,
            "pmfs": self.pmfs,
            "witness": witness,
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, sort_keys=True)


def _short(value: Fraction) -> str:
    """A fraction, or its float when it is long."""
    text = fraction_text(value)
    return text if len(text) <= 24 else f"{float(value):.12g}"
