"""One release, planned from public numbers: the object that is charged for is the one that draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from userdp.accounting.budget_hook import Charge
from userdp.estimators.privacy import Budget, PrivacyRecord, Unit
from userdp.exact.numbers import COUNTED
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import AdaptiveMechanism, output_distribution, run
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting.cost import PrivacyCost


Self = TypeVar("Self", bound="Promise")

MAX_OUTCOMES = 2**18
"""The most outcomes of an exact output distribution."""


MOST_READ = 2**35
"""The most numbers that are read again and again for an exact output distribution: some minutes."""


def listed(outcomes: Callable[[], Iterable[Hashable]], size: int, cheaper: str) -> Sequence[Hashable]:
    """All outcomes, if they are few enough: they are counted before anything is made of them.

    Raises
    ------
    BudgetError
        Otherwise.
    """
    check_listed(size, cheaper)
    return tuple(outcomes())


def check_listed(size: int, cheaper: str) -> None:
    """Refuse to list more outcomes than `MAX_OUTCOMES`; a count above `COUNTED` stands for any such."""
    if size > MAX_OUTCOMES:
        count = "more than 10**300" if size > COUNTED else str(size) if size < 10**15 else f"about {Decimal(size):.1e}"
        raise BudgetError(f"there are {count} outcomes, too many to list (limit {MAX_OUTCOMES}); {cheaper}")


def exact_distribution(
    program: Callable[[UserTable], AdaptiveMechanism], outcomes: Sequence[Hashable], table: UserTable
) -> Pmf:
    """The distribution of a program on a table, which is read anew on every path: there are about as many as outcomes.

    Raises
    ------
    BudgetError
        When that is too much to read, or there are too many paths.
    """
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
class Promise:
    """What a release costs and promises, fixed before it is drawn.

    Attributes
    ----------
    budget : Budget
        What the release costs, and what that is spent on.
    warnings : tuple of str
        What should be known before relying on the release, from public numbers.
    record : PrivacyRecord or None
        What the release promises; None before it is known for whom it is.
    """

    budget: Budget
    warnings: tuple[str, ...] = field(default=(), kw_only=True)
    record: PrivacyRecord | None = field(default=None, kw_only=True)

    @property
    def cost(self) -> PrivacyCost:
        """What the release costs, in every currency that is known of it."""
        return self.budget.cost

    def promised(self: Self, unit: Unit, released: tuple[str, ...], caveats: Sequence[str] = ()) -> Self:
        """The same, with the record of what it promises to whom."""
        budget = self.budget
        record = PrivacyRecord(budget.cost, unit, budget.parts, released, tuple(caveats), budget.unit)
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

    Attributes
    ----------
    budget, warnings, record
        See `Promise`.
    program : callable
        From users' rows to the program that draws (decision 0013).
    outcomes : callable
        All that the program can return, in order. Raises a BudgetError where that is too much to list.
    fitted : callable
        From what was drawn to the fitted attributes, by name: a function of the outcome and of public numbers.
    """

    program: Callable[[UserTable], AdaptiveMechanism] = field(repr=False)
    outcomes: Callable[[], Sequence[Hashable]] = field(repr=False)
    fitted: Callable[[Any], Mapping[str, Any]] = field(repr=False)

    def draw(self, table: UserTable, source: _core.Source, charges: Sequence[Charge] = ()) -> Any:
        """Charge what this release costs, then draw it once.

        Parameters
        ----------
        table : UserTable
        source : _core.Source
            Of random bits.
        charges : sequence of callables
            Each is given the record.
        """
        # Arithmetic on users' rows must not warn or raise, whatever the caller has asked of NumPy.
        with np.errstate(all="ignore"):
            program = self.program(table)
        self.charge(charges)
        with np.errstate(all="ignore"):
            return run(program, source)

    def output_distribution(self, table: UserTable) -> Pmf:
        """The exact distribution of what `draw` returns. **Not private**: for audits."""
        return exact_distribution(self.program, self.outcomes(), table)
