"""The certificate of a composition: `PrivacyLossDistribution.certificate` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from userdp.checker import values
from userdp.display import Fact, Section, Table
from userdp.display.numbers import in_digits, level_text, number_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import PrivacyLevel
from userdp.report.base import COUNT, FRACTION, LEVEL, Codec, Report, many, one_of, optional


def _whole(code: Any) -> int:
    number = values.fraction(code)
    values.need(number.denominator == 1 and number >= 0, f"{code!r:.60} is not an integer >= 0")
    return number.numerator


WHOLE = Codec(lambda number: fraction_text(Fraction(number)), _whole)
"""An integer of any length, as text."""


@dataclass(frozen=True, kw_only=True)
class PairRelease:
    """A release on two given datasets, or below one: two distributions by integer weights."""

    KIND: ClassVar[str] = "pair"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "p": many(WHOLE), "q": many(WHOLE)}

    count: int
    p: tuple[int, ...]
    q: tuple[int, ...]

    def __str__(self) -> str:
        return f"a pair of distributions on {in_digits(len(self.p))} outcomes"


@dataclass(frozen=True, kw_only=True)
class PureRelease:
    """Any (epsilon, delta)-DP release."""

    KIND: ClassVar[str] = "pure"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "epsilon": LEVEL, "delta": FRACTION}

    count: int
    epsilon: PrivacyLevel
    delta: Fraction

    def __str__(self) -> str:
        return f"({level_text(self.epsilon)[0]}, {number_text(self.delta)[0]})-DP"


@dataclass(frozen=True, kw_only=True)
class LaplaceRelease:
    """Discrete Laplace noise on integers that are at most `shift` apart."""

    KIND: ClassVar[str] = "discrete-laplace"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "epsilon_per_unit": LEVEL, "shift": COUNT}

    count: int
    epsilon_per_unit: PrivacyLevel
    shift: int

    def __str__(self) -> str:
        return f"discrete Laplace noise, {level_text(self.epsilon_per_unit)[0]} a unit, sensitivity {self.shift}"


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianRelease:
    """Discrete Gaussian noise on integers that are at most `shift` apart."""

    KIND: ClassVar[str] = "discrete-gaussian"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "sigma_squared": FRACTION, "shift": COUNT}

    count: int
    sigma_squared: Fraction
    shift: int

    def __str__(self) -> str:
        variance = number_text(self.sigma_squared)[0]
        return f"discrete Gaussian noise, sigma^2 = {variance}, sensitivity {self.shift}"


@dataclass(frozen=True, kw_only=True)
class RangeRelease:
    """Any release whose losses lie in an interval of a width."""

    KIND: ClassVar[str] = "bounded-range"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "range": LEVEL}

    count: int
    range: PrivacyLevel

    def __str__(self) -> str:
        return f"losses in an interval of width {level_text(self.range)[0]}"


@dataclass(frozen=True, kw_only=True)
class ContinuousLaplaceRelease:
    """Continuous Laplace noise, by sensitivity / scale."""

    KIND: ClassVar[str] = "laplace"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "epsilon": LEVEL}

    count: int
    epsilon: PrivacyLevel

    def __str__(self) -> str:
        return f"Laplace noise, sensitivity / scale = {level_text(self.epsilon)[0]}"


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """Continuous Gaussian noise, by (sensitivity / sigma)^2."""

    KIND: ClassVar[str] = "gaussian"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "mu_squared": FRACTION}

    count: int
    mu_squared: Fraction

    def __str__(self) -> str:
        return f"Gaussian noise, (sensitivity / sigma)^2 = {number_text(self.mu_squared)[0]}"


@dataclass(frozen=True, kw_only=True)
class SampledGaussianRelease:
    """Continuous Gaussian noise on a Poisson sample of users: (sensitivity / sigma)^2, and the rate."""

    KIND: ClassVar[str] = "sampled-gaussian"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {"count": COUNT, "mu_squared": FRACTION, "rate": FRACTION}

    count: int
    mu_squared: Fraction
    rate: Fraction

    def __str__(self) -> str:
        mu_squared, rate = (number_text(number)[0] for number in (self.mu_squared, self.rate))
        return f"Gaussian noise, (sensitivity / sigma)^2 = {mu_squared}, on a sample at rate {rate}"


@dataclass(frozen=True, kw_only=True)
class FixedSampleGaussianRelease(SampledGaussianRelease):
    """Continuous Gaussian noise on a sample of a fixed share of all users, of whom one is replaced."""

    KIND: ClassVar[str] = "fixed-sample-gaussian"

    def __str__(self) -> str:
        mu_squared, rate = (number_text(number)[0] for number in (self.mu_squared, self.rate))
        return f"Gaussian noise, (sensitivity / sigma)^2 = {mu_squared}, on a fixed share {rate} of all"


CertifiedRelease: TypeAlias = (
    PairRelease
    | PureRelease
    | LaplaceRelease
    | DiscreteGaussianRelease
    | RangeRelease
    | ContinuousLaplaceRelease
    | GaussianRelease
    | SampledGaussianRelease
    | FixedSampleGaussianRelease
)
_KINDS: dict[str, type[CertifiedRelease]] = {
    kind.KIND: kind
    for kind in (
        PairRelease,
        PureRelease,
        LaplaceRelease,
        DiscreteGaussianRelease,
        RangeRelease,
        ContinuousLaplaceRelease,
        GaussianRelease,
        SampledGaussianRelease,
        FixedSampleGaussianRelease,
    )
}


def _write(release: CertifiedRelease) -> dict[str, Any]:
    written = {name: codec.write(getattr(release, name)) for name, codec in release.WRITTEN.items()}
    return {"kind": release.KIND, **written}


def _read(code: Any) -> CertifiedRelease:
    kind = code.get("kind") if isinstance(code, dict) else None
    values.need(isinstance(kind, str) and kind in _KINDS, f"{code!r:.60} is not a release of a known kind")
    made = _KINDS[str(kind)]
    values.need(set(code) == {"kind", *made.WRITTEN}, f"fields missing or unknown in {code!r:.60}")
    return made(**{name: codec.read(code[name]) for name, codec in made.WRITTEN.items()})


RELATIONS = {"replace": "replace a user", "add-remove": "add or remove a user", None: "not stated"}


@dataclass(frozen=True, kw_only=True, repr=False)
class CompositionCertificate(Report):
    """The claim that releases, composed, are (epsilon, delta)-DP, and how to compute it again.

    Attributes
    ----------
    neighbors : {"replace", "add-remove"} or None
        Which datasets are neighbors; None is not stated.
    releases : tuple
        What is composed: each has a `count`, and either the two distributions `p` and `q` by integer weights, or
        `epsilon` and `delta`, or `epsilon` alone, or `epsilon_per_unit` and `shift`, or `sigma_squared` and `shift`, or
        `range`, or `mu_squared`, or `mu_squared` and `rate`.
    epsilon : PrivacyLevel
    delta : Fraction
        The claim, exactly.
    bits, cut : int
        How the check rounds: masses over 2^bits, and at most so many units are moved from each end of a product.
    resolution : Fraction or None
        The width of a cell of its grid, in loss; None where all losses are on one lattice, and none is moved.

    Notes
    -----
    The claim is about any releases that are dominated by those listed, made one after the other. A pair of
    distributions stands for two given datasets in the same order every time, unless it dominates both orders.
    """

    neighbors: str | None
    releases: tuple[CertifiedRelease, ...]
    epsilon: PrivacyLevel
    delta: Fraction
    bits: int
    resolution: Fraction | None
    cut: int

    KIND: ClassVar[str] = "composition"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "neighbors": optional(one_of("replace", "add-remove")),
        "releases": many(Codec(_write, _read)),
        "epsilon": LEVEL,
        "delta": FRACTION,
        "bits": COUNT,
        "resolution": optional(FRACTION),
        "cut": WHOLE,
    }

    @property
    def holds(self) -> bool:
        """That the claim holds is what a certificate says; whether it does, `verify` finds."""
        return True

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("epsilon", "delta", "bits", "resolution", "cut")
        return [{"releases": str(self._total())} | {name: getattr(self, name) for name in names}]

    def _total(self) -> int:
        return sum(release.count for release in self.releases)

    def _sections(self) -> Sequence[Section]:
        claim = [Fact("Epsilon", *level_text(self.epsilon)), Fact("Delta", *number_text(self.delta))]
        asked = [
            Fact("Releases", in_digits(self._total())),
            Fact("Neighbors", RELATIONS[self.neighbors]),
        ]
        grid = "none: all losses are on one lattice"
        if self.resolution is not None:
            grid = f"cells of {number_text(self.resolution)[0]}"
        how = [Fact("Grid of losses", grid), Fact("Masses over", f"2^{in_digits(self.bits)}")]
        rows = [(in_digits(release.count), str(release)) for release in self.releases]
        return [
            Section(
                "Composed releases",
                "CLAIMED",
                "Made one after the other, the listed releases are (epsilon, delta)-DP together.",
                facts=[("Claim", claim), ("Question", asked), ("Check", how)],
                tables=[Table("Releases", ("Times", "What bounds each"), rows)],
                headline=claim,
            )
        ]
