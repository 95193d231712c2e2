"""What a ledger may count up to, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from userdp._numbers import Delta, LogRatio, PrivacyLevel, parse_delta
from userdp.accounting._currency import Amounts, amount, within
from userdp.accounting._exponentials import enclosure, epsilon_above, exact_epsilon, shortened, value_enclosure
from userdp.accounting._zcdp import largest_rho, zcdp_delta

if TYPE_CHECKING:
    from userdp.accounting._ledger import PrivacyLedger

__all__ = ["Amount", "difference", "keeps_promise", "shown_amounts", "zcdp_limits"]

Amount: TypeAlias = "Fraction | LogRatio"

DISTANCE_PART = 1000
LARGEST_EPSILON = 2**20


def zcdp_limits(level: PrivacyLevel, delta: Fraction, beside: Fraction, distance: Delta | None) -> Amounts:
    """Limits that keep the promise: as much rho as certified beside what is set aside for deltas and distances."""
    noise = delta - beside
    if noise <= 0:
        raise ValueError(
            "delta must be above added_delta for composition='zcdp', which has no pure guarantee; 'basic' has"
        )
    if distance is not None:
        far = parse_delta(distance, "distance")
    elif level.exponent >= LARGEST_EPSILON:
        far = Fraction(0)
    else:
        far = shortened(noise / (DISTANCE_PART * (1 + enclosure(level, "epsilon")[1])), up=False)
    rho = largest_rho(exact_epsilon(level), noise, distance=far)
    return {"rho": amount(rho), "delta": amount(beside), "distance": amount(far)}


def keeps_promise(ledger: PrivacyLedger, limits: Amounts) -> bool:
    """Whether spending up to the limits is within the promise."""
    if ledger.composition == "basic":
        return within(limits, {"epsilon": amount(ledger.epsilon), "delta": amount(ledger.delta)})
    if any(level.ratio != 1 for level in limits.values()):
        return False
    rho, beside, distance = (limits[name].exponent for name in ("rho", "delta", "distance"))
    return zcdp_delta(rho, ledger.epsilon, distance=distance) + beside <= ledger.delta


def shown_amounts(amounts: Amounts) -> Mapping[str, Amount]:
    return MappingProxyType({name: epsilon_above(level) for name, level in amounts.items()})


def difference(limit: PrivacyLevel, spent: PrivacyLevel) -> Amount:
    """What is left, rounded down where it is not a fraction or the logarithm of one."""
    left = PrivacyLevel(limit.ratio / spent.ratio, limit.exponent - spent.exponent)
    if left.ratio == 1:
        return max(left.exponent, Fraction(0))
    if left.exponent == 0 and left.ratio > 1:
        return exact_epsilon(left)
    return max(value_enclosure(left)[0], Fraction(0))
