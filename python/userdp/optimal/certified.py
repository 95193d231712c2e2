"""What optimal mechanisms have in common: a solved world, its certificate, and a table to draw from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.exact.epsilon import as_epsilon, enclosure, shortened
from userdp.exact.numbers import Delta, Epsilon, LogRatio, PrivacyLevel, nonzero_level, parse_delta, short_repr
from userdp.optimal.exactly import NotRepaired, proved_optimum
from userdp.optimal.worlds import World
from userdp.report import OptimalityCertificate, Verification

BITS = 160
"""Of the fractions around an irrational e^epsilon."""
LEAST_EPSILON, MOST_EPSILON = 2.0**-20, 24.0
"""Between these the solver's floats are precise enough."""
LEAST_DELTA = Fraction(1, 10**8)
LARGEST_GAP, LEAST_LOSS = 1e-6, Fraction(1, 10**12)
"""A certified relative gap above the first is refused: what was found is no optimum. What is lost beyond the bound may
be so much of the largest loss all the same: then the optimum is 0, or next to it."""


def read_level(epsilon: Epsilon) -> PrivacyLevel:
    """Read epsilon, in the range for which programs are solved."""
    level = nonzero_level(epsilon)
    if not LEAST_EPSILON <= float(level) <= MOST_EPSILON:
        raise ValueError(
            f"epsilon must be from 2**-20 to {MOST_EPSILON:g}, where the solver's floats are precise enough; got "
            f"{short_repr(epsilon)}"
        )
    return level


def read_delta(delta: Delta) -> Fraction:
    """Read delta: 0, or large enough for the solver to see."""
    exact = parse_delta(delta)
    if exact == 1:
        raise ValueError("delta must be below 1, where every mechanism is private; got 1")
    if 0 < exact < LEAST_DELTA:
        raise ValueError(
            f"delta must be 0 or at least 1e-8; got {short_repr(delta)}: the solver works with floats, whose rounding "
            "would take up a smaller delta. A mechanism for delta=0 is valid for every delta, and hardly worse"
        )
    return exact


def solved(
    world: World,
    level: PrivacyLevel,
    delta: Fraction,
    prior: Sequence[Fraction] | None,
    max_constraints: int,
    largest_gap: float = LARGEST_GAP,
) -> OptimalityCertificate:
    """The certificate of an optimal mechanism of a world, or of one that is nearly so."""
    world.refuse_too_large(max_constraints)
    below, above = enclosure(level, "epsilon")
    if level.exponent:
        below, above = shortened(below, up=False, bits=BITS), shortened(above, up=True, bits=BITS)
    try:
        found = proved_optimum(world, below, above, delta, prior)
    except NotRepaired as error:
        raise ValueError(
            f"epsilon={short_repr(as_epsilon(level))}: {error}; floats are too coarse for it. A larger epsilon, or "
            "losses of more equal sizes, would do"
        ) from None
    certificate = OptimalityCertificate(
        world=world.described(),
        epsilon=level,
        below=below,
        above=above,
        delta=delta,
        objective="worst" if prior is None else "bayes",
        prior=None if prior is None else tuple(prior),
        total=found.total,
        table=tuple(found.table),
        scale=found.scale,
        mu=None if found.mu is None else tuple(found.mu),
        y=tuple(found.y),
        value=found.value,
        lower_bound=found.lower_bound,
    )
    if certificate.gap > largest_gap and found.value - found.lower_bound > LEAST_LOSS * world.largest:
        raise ValueError(
            f"epsilon={short_repr(as_epsilon(level))}: the best that is proved loses {float(found.value):.9g} where "
            f"{float(found.lower_bound):.9g} is the bound; floats are too coarse for these losses and this epsilon"
        )
    return certificate


class Certified:
    """A mechanism whose table is that of a certificate."""

    def __init__(self, certificate: OptimalityCertificate) -> None:
        self._certificate = certificate

    @property
    def certificate(self) -> OptimalityCertificate:
        """The proof of privacy, of the loss, and of the bound; ``to_json()`` of it is a file for ``userdp verify``."""
        return self._certificate

    @property
    def epsilon(self) -> Fraction | LogRatio:
        """The privacy level, exactly as given."""
        return as_epsilon(self._certificate.epsilon)

    @property
    def delta(self) -> Fraction:
        """The delta of the privacy level, exactly as given."""
        return self._certificate.delta

    @property
    def value(self) -> Fraction:
        """What the mechanism loses, exactly: on the worst dataset, or on average under the prior."""
        return self._certificate.value

    @property
    def lower_bound(self) -> Fraction:
        """What every mechanism with this privacy loses at least, proved by `certificate`."""
        return self._certificate.lower_bound

    @property
    def gap(self) -> float:
        """How far `value` may be above the optimum, relative to `lower_bound`."""
        return self._certificate.gap

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs."""
        return PrivacyCost(self.epsilon, self.delta, neighbors="replace")

    def verify(self) -> Verification:
        """Check the certificate again, in the standard library alone: "established", or "wrong" with the problems."""
        return self._certificate.verify()

    @cached_property
    def _first(self) -> list[int]:
        """The first unknown of each state."""
        return self._world.first

    _world: World

    def _drawn(self, weights: Sequence[int], random_state: int | None) -> int:
        """The place of an output, from one draw that reads the whole row."""
        from userdp.runtime import source_of

        return _core.Categorical(list(weights)).sample(source_of(random_state))


def loaded(certificate: Any, kinds: tuple[str, ...]) -> OptimalityCertificate:
    """The certificate of a text or object, checked again; a mechanism is made of nothing else."""
    if isinstance(certificate, (str, bytes)):
        certificate = OptimalityCertificate.from_json(certificate)  # type: ignore[arg-type]
    if not isinstance(certificate, OptimalityCertificate):
        raise TypeError(
            f"certificate must be an OptimalityCertificate or its JSON text; got {type(certificate).__name__}"
        )
    found = certificate.verify()
    if found.finding != "established":
        raise ValueError(f"certificate is wrong: {'; '.join(found.problems):.200}")
    if certificate.world["kind"] not in kinds:
        raise ValueError(
            f"certificate is about the world {certificate.world['kind']!r}; accepted: {', '.join(map(repr, kinds))}"
        )
    return certificate
