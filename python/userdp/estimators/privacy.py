"""What a fitted estimator promises, and how its budget was split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from userdp.exact.epsilon import rational_below
from userdp.exact.numbers import Epsilon, LogRatio, parse_level, shown

if TYPE_CHECKING:
    from userdp.accounting import PrivacyCost

Unit: TypeAlias = Literal["user", "record"]
ExactEpsilon: TypeAlias = "Fraction | LogRatio"
Budget: TypeAlias = Mapping[str, ExactEpsilon]
BudgetUnit: TypeAlias = Literal["epsilon", "rho"]


def split_budget(epsilon: Epsilon, shares: Mapping[str, Fraction | int]) -> Budget:
    """Split epsilon into parts in the ratio of public shares, exactly.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, > 0.
    shares : mapping from str to Fraction or int
        What the parts are for, and their non-negative shares. Parts without a share are left out.

    Returns
    -------
    mapping from str to Fraction or LogRatio
        The parts sum to epsilon exactly, by basic composition what the whole costs. A LogRatio is kept where it is the
        only part; several parts sum to a float below it that is within a part in 2**51.

    Raises
    ------
    TypeError, ValueError
        For an epsilon that is not a positive number, and for shares that are negative or all 0.

    Examples
    --------
    >>> dict(split_budget(1, {"threshold": Fraction(2, 5), "selection": Fraction(3, 5)}))
    {'threshold': Fraction(2, 5), 'selection': Fraction(3, 5)}
    """
    whole = exact_epsilon(epsilon)
    for name, share in shares.items():
        if share < 0:
            raise ValueError(
                f"shares must be >= 0, or the others get more than epsilon; got {shown(share)} for {name!r}"
            )
    parts = {name: Fraction(share) for name, share in shares.items() if share}
    if not parts:
        raise ValueError(f"shares must have a positive one; got {shown(dict(shares))}")
    if len(parts) == 1:
        return MappingProxyType(dict.fromkeys(parts, whole))
    total = sum(parts.values())
    rational = rational_below(whole)
    split = {name: rational * share / total for name, share in parts.items()}
    return MappingProxyType(split)


def equal_part(epsilon: Epsilon, parts: int) -> ExactEpsilon:
    """One of equal parts of epsilon, which together cost epsilon at most."""
    return split_budget(epsilon, {"one": 1, "others": parts - 1})["one"]


def exact_epsilon(epsilon: Epsilon) -> ExactEpsilon:
    """Read a positive epsilon, as the exact number that it is.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    level = parse_level(epsilon)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError("epsilon must be > 0: an output at epsilon = 0 cannot depend on the data")
    return level.exponent if level.ratio == 1 else LogRatio(level.ratio.numerator, level.ratio.denominator)


def planned_epsilon(epsilon: Epsilon) -> ExactEpsilon:
    """As `exact_epsilon`, for plans that compute with floats which epsilon to spend where.

    Raises
    ------
    TypeError, ValueError
        Also for an epsilon that is not from 2**-300 to 2**300.
    """
    exact = exact_epsilon(epsilon)
    if not 2.0**-300 <= float(parse_level(exact)) <= 2.0**300:
        raise ValueError(f"epsilon must be from 2**-300 to 2**300; got {shown(epsilon)}")
    return exact


@dataclass(frozen=True)
class Spending:
    """What a fit spends, from parameters, the number of users and the number of columns only.

    Attributes
    ----------
    budget : mapping from str to Fraction or LogRatio
        The parts, in units of `budget_unit`.
    delta : Fraction
        The delta of the guarantee.
    rho : Fraction or None
        Zero-concentrated differential privacy of all that is drawn, where that is how it was accounted for.
    distance : Fraction
        With rho: how far in total variation the draws are from ones that are exactly rho-zCDP.
    budget_unit : {"epsilon", "rho"}
    """

    budget: Budget
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    distance: Fraction = Fraction(0)
    budget_unit: BudgetUnit = "epsilon"


@dataclass(frozen=True)
class PrivacyRecord:
    """The guarantee of a fitted estimator: the attribute ``privacy_``.

    Attributes
    ----------
    epsilon : Fraction or LogRatio
        The guarantee, exactly.
    delta : Fraction
        0 for pure differential privacy.
    neighbours : str
        "replace": datasets in which one unit's whole data is replaced; the list of units is public.
    unit : {"user", "record"}
        Whose data is protected: all the rows of one user, or, without user ids, one row.
    budget : mapping from str to Fraction or LogRatio
        What was spent, in units of `budget_unit`. Parts in epsilon compose to epsilon, parts in rho sum to rho.
    released : tuple of str
        The fitted attributes that are outputs of the mechanism. Everything else on the estimator is public or a
        parameter.
    is_private : bool
        False when a setting voids the guarantee; `caveats` says which.
    caveats : tuple of str
        Why the guarantee does not hold: reproducible draws, classes taken from the labels, errors about private values.
    rho : Fraction or None
        All draws together are within `distance` in total variation of ones that are rho-zero-concentrated
        differentially private; None where that is not known to be better than what epsilon says.
    distance : Fraction
        See `rho`. What it costs in delta is part of `delta` already.
    budget_unit : {"epsilon", "rho"}

    Examples
    --------
    >>> record = PrivacyRecord(Fraction(1), Fraction(0), "replace", "user", {"selection": Fraction(1)}, ("threshold_",))
    >>> record.is_private, float(record.epsilon)
    (True, 1.0)
    """

    epsilon: ExactEpsilon
    delta: Fraction
    neighbours: str
    unit: Unit
    budget: Budget
    released: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    rho: Fraction | None = None
    distance: Fraction = Fraction(0)
    budget_unit: BudgetUnit = "epsilon"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", MappingProxyType(dict(self.budget)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self), (*(values | {"budget": dict(self.budget)}).values(),)

    @property
    def is_private(self) -> bool:
        """Whether no setting voids the guarantee."""
        return not self.caveats

    @property
    def cost(self) -> PrivacyCost:
        """All guarantees together, as `userdp.accounting` composes them."""
        from userdp.accounting import PrivacyCost

        return PrivacyCost(self.epsilon, self.delta, rho=self.rho, distance=self.distance)
