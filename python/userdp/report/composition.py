"""The certificate of a composition: `PrivacyLossDistribution.certificate` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from userdp.checker import values
from userdp.display import Fact, Section, Table
from userdp.display.numbers import in_digits, level_text, number_text
from userdp.exact.numbers import PrivacyLevel
from userdp.report.base import Report, level_facts, report
from userdp.report.fields import (
    COUNT,
    LEVEL,
    POSITIVE,
    SHARE,
    WHOLE,
    Codec,
    Schema,
    codecs_of,
    many,
    object_of,
    of,
    one_of,
    optional,
    part,
    written,
)

_TIMES, _SHIFT = POSITIVE.within(maximum=2**40), POSITIVE.within(maximum=2**16)


@part
class PairRelease:
    """A release on two given datasets, or below one: two distributions by integer weights."""

    KIND: ClassVar[str] = "pair"

    count: int = written(_TIMES)
    p: tuple[int, ...] = written(many(WHOLE, 1))
    q: tuple[int, ...] = written(many(WHOLE, 1))

    def __str__(self) -> str:
        return f"a pair of distributions on {in_digits(len(self.p))} outcomes"


@part
class PureRelease:
    """Any (epsilon, delta)-DP release."""

    KIND: ClassVar[str] = "pure"

    count: int = written(_TIMES)
    epsilon: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE)

    def __str__(self) -> str:
        return f"({level_text(self.epsilon)[0]}, {number_text(self.delta)[0]})-DP"


@part
class LaplaceRelease:
    """Discrete Laplace noise on integers that are at most `shift` apart."""

    KIND: ClassVar[str] = "discrete-laplace"

    count: int = written(_TIMES)
    epsilon_per_unit: PrivacyLevel = written(LEVEL)
    shift: int = written(_SHIFT)

    def __str__(self) -> str:
        return f"discrete Laplace noise, {level_text(self.epsilon_per_unit)[0]} a unit, sensitivity {self.shift}"


@part
class DiscreteGaussianRelease:
    """Discrete Gaussian noise on integers that are at most `shift` apart."""

    KIND: ClassVar[str] = "discrete-gaussian"

    count: int = written(_TIMES)
    sigma_squared: Fraction = written(SHARE)
    shift: int = written(_SHIFT)

    def __str__(self) -> str:
        variance = number_text(self.sigma_squared)[0]
        return f"discrete Gaussian noise, sigma^2 = {variance}, sensitivity {self.shift}"


@part
class RangeRelease:
    """Any release whose losses lie in an interval of a width."""

    KIND: ClassVar[str] = "bounded-range"

    count: int = written(_TIMES)
    range: PrivacyLevel = written(LEVEL)

    def __str__(self) -> str:
        return f"losses in an interval of width {level_text(self.range)[0]}"


@part
class ContinuousLaplaceRelease:
    """Continuous Laplace noise, by sensitivity / scale."""

    KIND: ClassVar[str] = "laplace"

    count: int = written(_TIMES)
    epsilon: PrivacyLevel = written(LEVEL)

    def __str__(self) -> str:
        return f"Laplace noise, sensitivity / scale = {level_text(self.epsilon)[0]}"


@part
class GaussianRelease:
    """Continuous Gaussian noise, by (sensitivity / sigma)^2."""

    KIND: ClassVar[str] = "gaussian"

    count: int = written(_TIMES)
    mu_squared: Fraction = written(SHARE)

    def __str__(self) -> str:
        return f"Gaussian noise, (sensitivity / sigma)^2 = {number_text(self.mu_squared)[0]}"


@part
class SampledGaussianRelease:
    """Continuous Gaussian noise on a Poisson sample of users: (sensitivity / sigma)^2, and the rate."""

    KIND: ClassVar[str] = "sampled-gaussian"

    count: int = written(_TIMES)
    mu_squared: Fraction = written(SHARE)
    rate: Fraction = written(SHARE)

    def __str__(self) -> str:
        mu_squared, rate = (number_text(number)[0] for number in (self.mu_squared, self.rate))
        return f"Gaussian noise, (sensitivity / sigma)^2 = {mu_squared}, on a sample at rate {rate}"


@part
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


def _read(code: Any) -> CertifiedRelease:
    kind = code.get("kind") if isinstance(code, dict) else None
    values.need(isinstance(kind, str) and kind in _KINDS, f"{code!r:.60} is not a release of a known kind")
    found: CertifiedRelease = of(_KINDS[str(kind)]).read({name: part for name, part in code.items() if name != "kind"})
    return found


def _release_schema(kind: type[CertifiedRelease]) -> Schema:
    return object_of({"kind": {"const": kind.KIND}, **{name: codec.schema for name, codec in codecs_of(kind).items()}})


_RELEASE = Codec(
    lambda release: {"kind": release.KIND, **of(type(release)).write(release)},
    _read,
    {"oneOf": list(map(_release_schema, _KINDS.values()))},
).named("release", "One kind of release of a composition, and how often it is made.")


RELATIONS = {"replace": "replace a user", "add-remove": "add or remove a user", None: "not stated"}


@report("composition")
class CompositionCertificate(Report):
    """The claim that releases, composed, are (epsilon, delta)-DP, and how to compute it again.

    Notes
    -----
    The claim is about any releases that are dominated by those listed, made one after the other. A pair of
    distributions stands for two given datasets in the same order every time, unless it dominates both orders.
    """

    neighbors: str | None = written(
        optional(one_of("replace", "add-remove")), "Which datasets are neighbors; None is not stated."
    )
    releases: tuple[CertifiedRelease, ...] = written(
        many(_RELEASE, 1).within(maxItems=4096),
        "What is composed: each has a `count`, and either the two distributions `p` and `q` by integer weights, or "
        "`epsilon` and `delta`, or `epsilon` alone, or `epsilon_per_unit` and `shift`, or `sigma_squared` and "
        "`shift`, or `range`, or `mu_squared`, or `mu_squared` and `rate`.",
    )
    epsilon: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE, "The claim, exactly.")
    bits: int = written(COUNT.within(minimum=8, maximum=2048))
    resolution: Fraction | None = written(
        optional(SHARE),
        "The width of a cell of its grid, in loss; None where all losses are on one lattice, and none is moved.",
    )
    cut: int = written(
        WHOLE,
        "How the check rounds: masses over 2^bits, and at most so many units are moved from each end of a product.",
    )

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
        claim = level_facts(self.epsilon, self.delta)
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
