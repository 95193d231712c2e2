"""What a release spends, and what a fitted estimator promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from userdp.accounting.cost import PrivacyCost
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import Epsilon, LogRatio, short_repr

Unit: TypeAlias = Literal["user", "record"]
ExactEpsilon: TypeAlias = "Fraction | LogRatio"
Parts: TypeAlias = Mapping[str, ExactEpsilon]
"""What a budget is spent on."""
BudgetUnit: TypeAlias = Literal["epsilon", "rho"]


def split_budget(epsilon: Epsilon, shares: Mapping[str, Fraction | int]) -> Parts:
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
    whole = positive_epsilon(epsilon)
    for name, share in shares.items():
        if share < 0:
            raise ValueError(
                f"shares must be >= 0, or the others get more than epsilon; got {short_repr(share)} for {name!r}"
            )
    parts = {name: Fraction(share) for name, share in shares.items() if share}
    if not parts:
        raise ValueError(f"shares must have a positive one; got {short_repr(dict(shares))}")
    if len(parts) == 1:
        return MappingProxyType(dict.fromkeys(parts, whole))
    total = sum(parts.values())
    rational = rational_below(whole)
    split = {name: rational * share / total for name, share in parts.items()}
    return MappingProxyType(split)


def equal_part(epsilon: Epsilon, parts: int) -> ExactEpsilon:
    """One of equal parts of epsilon, which together cost epsilon at most."""
    return split_budget(epsilon, {"one": 1, "others": parts - 1})["one"]


@dataclass(frozen=True)
class Budget:
    """What a release costs, and what that is spent on.

    Attributes
    ----------
    cost : PrivacyCost
        Of the whole release.
    parts : mapping from str to Fraction or LogRatio
        In units of `unit`.
    unit : {"epsilon", "rho"}
    """

    cost: PrivacyCost
    parts: Parts
    unit: BudgetUnit = "epsilon"

    @classmethod
    def of(cls, epsilon: Epsilon, shares: Mapping[str, Fraction | int], delta: Fraction | int = 0) -> Budget:
        """A budget of (epsilon, delta) in parts of epsilon: see `split_budget`."""
        return cls(PrivacyCost(positive_epsilon(epsilon), delta), split_budget(epsilon, shares))

    def __getitem__(self, name: str) -> ExactEpsilon:
        return self.parts[name]


@dataclass(frozen=True)
class PrivacyRecord:
    """The guarantee of a fitted estimator: the attribute ``privacy_``.

    Attributes
    ----------
    cost : PrivacyCost
        Every guarantee that is known of the release, exactly, as `userdp.accounting` composes them.
    unit : {"user", "record"}
        Whose data is protected: all the rows of one user, or, without user ids, one row.
    budget : mapping from str to Fraction or LogRatio
        What was spent, in units of `budget_unit`. Parts in epsilon compose to epsilon, parts in rho sum to rho.
    released : tuple of str
        The fitted attributes that are outputs of the mechanism. Everything else on the estimator is public or a
        parameter.
    caveats : tuple of str
        Why the guarantee does not hold: reproducible draws, classes taken from the labels, errors about private values.
    budget_unit : {"epsilon", "rho"}
    neighbors : str
        "replace": datasets in which one unit's whole data is replaced; the list of units is public.

    Examples
    --------
    >>> from userdp.accounting import PrivacyCost
    >>> record = PrivacyRecord(PrivacyCost(1), "user", {"selection": Fraction(1)}, ("threshold_",))
    >>> record.is_private, float(record.epsilon)
    (True, 1.0)
    """

    cost: PrivacyCost
    unit: Unit
    budget: Parts
    released: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    budget_unit: BudgetUnit = "epsilon"
    neighbors: str = "replace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", MappingProxyType(dict(self.budget)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self), (*(values | {"budget": dict(self.budget)}).values(),)

    @property
    def epsilon(self) -> ExactEpsilon:
        """The epsilon of the guarantee, exactly."""
        assert self.cost.epsilon is not None, "every fit states one"
        return self.cost.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta of the guarantee; 0 for pure differential privacy."""
        return self.cost.delta

    @property
    def rho(self) -> Fraction | None:
        """The zero-concentrated guarantee of all draws together, up to `distance`; None where none is stated."""
        return self.cost.rho

    @property
    def distance(self) -> Fraction:
        """How far the draws are in total variation from ones that are rho-zCDP. Delta counts it already."""
        return self.cost.distance

    @property
    def is_private(self) -> bool:
        """Whether no setting voids the guarantee."""
        return not self.caveats
