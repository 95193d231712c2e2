"""What a release costs, promises and draws: budgets, the record of a fit, and the one plan of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from userdp.accounting.budget_hook import Charge
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.zcdp import bounded_range_to_zcdp, pure_to_zcdp
from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import level_text, number_text, plural
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import COUNTED, Epsilon, LogRatio, parse_level, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import AdaptiveMechanism, output_distribution, run
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting.cost import PrivacyCost

Unit: TypeAlias = Literal["user", "record"]
ExactEpsilon: TypeAlias = "Fraction | LogRatio"
Parts: TypeAlias = Mapping[str, ExactEpsilon]
"""What a budget is spent on."""
BudgetUnit: TypeAlias = Literal["epsilon", "rho", "mu2"]


def split_budget(epsilon: Epsilon, shares: Mapping[str, Fraction | int]) -> Parts:
    """Split epsilon into parts in the ratio of public shares, exactly; parts without a share are left out."""
    # The parts sum to epsilon exactly, by basic composition what the whole costs. A LogRatio is kept where it is the
    # only part; several parts sum to a float below it that is within a part in 2**51.
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
    """What a release costs, and what that is spent on."""

    cost: PrivacyCost  # of the whole release
    parts: Parts  # in units of `unit`
    unit: BudgetUnit = "epsilon"

    def __post_init__(self) -> None:
        # Estimators protect who is replaced: the list of users, or the number of rows, is public.
        object.__setattr__(self, "cost", replace(self.cost, neighbors="replace"))

    @classmethod
    def of(cls, epsilon: Epsilon, shares: Mapping[str, Fraction | int], delta: Fraction | int = 0) -> Budget:
        """A budget of (epsilon, delta) in parts of epsilon: see `split_budget`."""
        return cls(PrivacyCost(positive_epsilon(epsilon), delta), split_budget(epsilon, shares))

    @classmethod
    def of_choices(cls, epsilon: Epsilon, shares: Mapping[str, Fraction | int], others: Collection[str] = ()) -> Budget:
        """A budget whose parts, but for the others, are each one draw of an exponential mechanism for replaced users.

        One such draw has bounded range, and draws with the parts eta_i together are (sum of eta_i**2 / 8)-zCDP; the
        others are pure.
        """
        whole, parts = positive_epsilon(epsilon), split_budget(epsilon, shares)
        if len(parts) == 1:
            return cls(PrivacyCost(whole) if parts.keys() <= set(others) else PrivacyCost(bounded_range=whole), parts)
        rho = sum(
            (pure_to_zcdp(part) if name in others else bounded_range_to_zcdp(part) for name, part in parts.items()),
            Fraction(0),
        )
        return cls(PrivacyCost(whole, rho=rho), parts)

    def __getitem__(self, name: str) -> ExactEpsilon:
        return self.parts[name]


@dataclass(frozen=True)
class PrivacyRecord(Shown):
    """The guarantee of a fitted estimator: the attribute ``privacy_``.

    Attributes
    ----------
    cost : PrivacyCost
        Every guarantee that is known of the release, exactly, as `userdp.accounting` composes them.
    unit : {"user", "record"}
        Whose data is protected: all the rows of one user, or, without user ids, one row.
    budget : mapping from str to Fraction or LogRatio
        What was spent, in units of `budget_unit`. Parts in epsilon compose to epsilon; parts in rho or in
        mu2 sum to it.
    released : tuple of str
        The fitted attributes that are outputs of the mechanism. Everything else on the estimator is public or a
        parameter.
    caveats : tuple of str
        Why the guarantee does not hold: reproducible draws, classes taken from the labels, errors about private values.
    budget_unit : {"epsilon", "rho", "mu2"}
    neighbors : str
        "replace": datasets in which one unit's whole data is replaced; the list of units is public.
    without_rows : str
        Where `enrolled` lists the users: what those of them without rows do to the answer. It is the same whether there
        are any: how many there are is private.

    Examples
    --------
    >>> from userdp.accounting import PrivacyCost
    >>> record = PrivacyRecord(PrivacyCost(1), "user", {"selection": Fraction(1)}, ("threshold_",))
    >>> record.is_private, float(record.epsilon)
    (True, 1.0)
    >>> print(record)
    Privacy of this fit
      Epsilon   1
      Delta     0 exactly
      Protects  a user's records, whatever they are replaced by
      Released  threshold_
      Spent, in epsilon
        part       amount  exactly
        selection  1
    """

    cost: PrivacyCost
    unit: Unit
    budget: Parts
    released: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    budget_unit: BudgetUnit = "epsilon"
    neighbors: str = "replace"
    without_rows: str = ""

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
    def mu2(self) -> Fraction | None:
        """The Gaussian noise that dominates all draws together, up to `distance`; None where none is stated."""
        return self.cost.mu2

    @property
    def distance(self) -> Fraction:
        """How far the draws are in total variation from ones of which rho and mu2 hold. Delta counts it already."""
        return self.cost.distance

    @property
    def is_private(self) -> bool:
        """Whether no setting voids the guarantee."""
        return not self.caveats

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{"part": name, self.budget_unit: amount} for name, amount in self.budget.items()]

    def _sections(self) -> Sequence[Section]:
        return [_section(self, "Privacy of this fit")]

    def __str__(self) -> str:
        return self._sections()[0].text()


def _section(record: PrivacyRecord, title: str, notes: Sequence[str] = ()) -> Section:
    """What a release promises, for a notebook."""
    whose = "a user's records" if record.unit == "user" else "one record"
    promise = [
        Fact("Epsilon", *level_text(parse_level(record.epsilon))),
        Fact("Delta", *number_text(record.delta)),
        Fact("Protects", f"{whose}, whatever they are replaced by" if record.neighbors == "replace" else whose),
        Fact("Released", ", ".join(record.released) or "nothing yet"),
    ]
    if record.without_rows:
        promise.append(Fact("Users without rows", record.without_rows))
    if record.rho is not None:
        promise.insert(2, Fact("Rho (zero-concentrated)", *number_text(record.rho)))
    if record.mu2 is not None:
        promise.insert(2, Fact("Mu^2 (Gaussian)", *number_text(record.mu2)))
        promise += _beside_zcdp(record)
    parts = [(name, *level_text(parse_level(amount))) for name, amount in record.budget.items()]
    return Section(
        title,
        word="NOT PRIVATE" if record.caveats else "",
        sentence=f"The guarantee does not hold, for {plural(len(record.caveats), 'reason')}." if record.caveats else "",
        tone="bad" if record.caveats else "plain",
        facts=[("", promise)],
        tables=[Table(f"Spent, in {record.budget_unit}", ("part", "amount", "exactly"), parts)] if parts else [],
        notes=[*record.caveats, *notes],
        headline=promise[:2],
    )


def _beside_zcdp(record: PrivacyRecord) -> list[Fact]:
    """How much noise the exact curve asks for, beside what zero-concentration does for the same claim."""
    from userdp.accounting import largest_rho

    with suppress(ValueError):
        rho = largest_rho(record.epsilon, record.delta, distance=record.distance)
        ratio = math.sqrt(2 * rho / record.cost.mu2) if record.cost.mu2 else 1.0
        return [Fact("Noise", f"{ratio:.3f} times that under zero-concentrated DP")]
    return []


Self = TypeVar("Self", bound="Promise")

MAX_OUTCOMES = 2**18
"""The most outcomes of an exact output distribution."""


MOST_READ = 2**35
"""The most numbers that are read again and again for an exact output distribution: some minutes."""


def listed(outcomes: Callable[[], Iterable[Hashable]], size: int, cheaper: str) -> Sequence[Hashable]:
    """Return all outcomes, if they are few enough: they are counted before anything is made of them."""
    check_listed(size, cheaper)
    return tuple(outcomes())


def check_listed(size: int, cheaper: str, limit: int = MAX_OUTCOMES) -> None:
    """Refuse to list more outcomes than a limit; a count above `COUNTED` stands for any such."""
    if size > limit:
        count = "more than 10**300" if size > COUNTED else str(size) if size < 10**15 else f"about {Decimal(size):.1e}"
        raise BudgetError(f"there are {count} outcomes, too many to list (limit {limit}); {cheaper}")


def exact_distribution(
    program: Callable[[UserTable], AdaptiveMechanism], outcomes: Sequence[Hashable], table: UserTable
) -> Pmf:
    """Return the distribution of a program on a table."""
    # The table is read anew on every path, of which there are about as many as outcomes.
    read = len(outcomes) * max(1, table.X.size)
    if read > MOST_READ:
        raise BudgetError(
            f"the exact distribution reads the table about {len(outcomes)} times, {Decimal(read):.1e} "
            "numbers in all (limit "
            f"{Decimal(MOST_READ):.1e}); audit fewer rows, fewer users or a coarser grid"
        )
    with np.errstate(all="ignore"):
        return output_distribution(program(table), outcomes)


@dataclass(frozen=True)
class Promise(Shown):
    """What a release costs and promises, fixed before it is drawn; all that an interactive one plans."""

    budget: Budget
    warnings: tuple[str, ...] = field(default=(), kw_only=True)
    """What should be known before relying on the release, from public numbers."""
    record: PrivacyRecord | None = field(default=None, kw_only=True)
    """What the release promises; None before it is known for whom it is."""

    @property
    def cost(self) -> PrivacyCost:
        """What the release costs, in every currency that is known of it."""
        return self.budget.cost

    def _record(self) -> PrivacyRecord:
        """The record, or what it will say for users."""
        if self.record is not None:
            return self.record
        return PrivacyRecord(self.budget.cost, "user", self.budget.parts, (), (), self.budget.unit)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self._record()._rows()

    def _sections(self) -> Sequence[Section]:
        return [_section(self._record(), "Plan of a release", self.warnings)]

    def promised(
        self: Self, unit: Unit, released: tuple[str, ...], caveats: Sequence[str] = (), without_rows: str = ""
    ) -> Self:
        """The same, with the record of what it promises to whom."""
        budget, reasons = self.budget, tuple(caveats)
        record = PrivacyRecord(
            budget.cost, unit, budget.parts, released, reasons, budget.unit, without_rows=without_rows
        )
        return replace(self, record=record)

    def charge(self, charges: Sequence[Charge]) -> PrivacyRecord:
        """Have the release charged for; a ledger that refuses raises, and nothing has been drawn."""
        assert self.record is not None, "a release promises something to somebody"
        for charge in charges:
            charge(self.record)
        return self.record


@dataclass(frozen=True)
class ReleasePlan(Promise):
    """What a fit will draw and cost, from parameters, the number of users and the number of columns only.

    An estimator makes one for every fit, and reads its parameters no more after that. So what is charged, what is drawn
    and what is released are one thing, whatever happens to the estimator in the meantime.
    """

    program: Callable[[UserTable], AdaptiveMechanism] = field(repr=False)
    """From users' rows to the program that draws (decision 0013)."""
    outcomes: Callable[[], Sequence[Hashable]] = field(repr=False)
    """All that the program can return, in order. Raises a BudgetError where that is too much to list."""
    fitted: Callable[[Any], Mapping[str, Any]] = field(repr=False)
    """From what was drawn to the fitted attributes, by name: a function of the outcome and of public numbers."""

    def draw(self, table: UserTable, source: _core.Source, charges: Sequence[Charge] = ()) -> Any:
        """Charge what this release costs, then draw it once."""
        # Arithmetic on users' rows must not warn or raise, whatever the caller has asked of NumPy.
        with np.errstate(all="ignore"):
            program = self.program(table)
        self.charge(charges)
        with np.errstate(all="ignore"):
            return run(program, source)

    def output_distribution(self, table: UserTable) -> Pmf:
        """The exact distribution of what `draw` returns. **Not private**: for audits."""
        return exact_distribution(self.program, self.outcomes(), table)
