"""What a ledger counts: the currencies in which costs add up whatever was chosen on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from userdp._numbers import Epsilon, PrivacyLevel, parse_level
from userdp.accounting._cost import PrivacyCost
from userdp.accounting._exponentials import at_most

__all__ = ["CURRENCIES", "Amounts", "Composition", "Currency", "added", "amount", "as_float", "within", "zero"]

Composition: TypeAlias = Literal["basic", "zcdp"]
Amounts: TypeAlias = "Mapping[str, PrivacyLevel]"
"""By name; a number x is the level e^x, so that sums with logarithms of fractions stay exact."""


@dataclass(frozen=True)
class Currency:
    """The names of what is counted, and how much of each a cost takes."""

    names: tuple[str, ...]
    charge: Callable[[PrivacyCost], Amounts]


def amount(value: Epsilon) -> PrivacyLevel:
    """A number or LogRatio as an amount."""
    return parse_level(value)


def as_float(value: Epsilon) -> float:
    """A number or LogRatio of any size for a table."""
    return float(parse_level(value))


def added(amounts: Amounts, others: Amounts) -> Amounts:
    """Sums, exactly."""
    return {
        name: PrivacyLevel(level.ratio * others[name].ratio, level.exponent + others[name].exponent)
        for name, level in amounts.items()
    }


def within(amounts: Amounts, limits: Amounts) -> bool:
    """Whether no amount is above its limit, for certain."""
    return all(at_most(level, limits[name]) for name, level in amounts.items())


def _in_epsilon(cost: PrivacyCost) -> Amounts:
    pair = cost.pair()
    if pair is None:
        raise ValueError(
            "this ledger counts epsilon and delta, and the cost is in rho only: give it an epsilon as well"
            " (PrivacyCost(zcdp_epsilon(rho, delta, distance=distance), delta)), or use composition='zcdp'"
        )
    return {"epsilon": amount(pair[0]), "delta": amount(pair[1])}


def _in_rho(cost: PrivacyCost) -> Amounts:
    rho, delta, distance = cost.zcdp()
    return {"rho": amount(rho), "delta": amount(delta), "distance": amount(distance)}


CURRENCIES: Mapping[str, Currency] = {
    "basic": Currency(("epsilon", "delta"), _in_epsilon),
    "zcdp": Currency(("rho", "delta", "distance"), _in_rho),
}


def zero(currency: Currency) -> Amounts:
    """Nothing spent."""
    return {name: PrivacyLevel(Fraction(1), Fraction(0)) for name in currency.names}
