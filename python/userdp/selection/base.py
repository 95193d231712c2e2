"""What private selections have in common: arguments, counting, and one draw for a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from userdp.exact.numbers import defensive_copy, short_repr
from userdp.exact.pmf import Pmf
from userdp.runtime import source_of
from userdp.selection.items import Counts, Item, ItemT, present, tally

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting.cost import PrivacyCost

Neighbors: TypeAlias = Literal["replace", "add-remove"]
Outcome = TypeVar("Outcome")


class Selection(ABC, Generic[ItemT, Outcome]):
    """Choose an item that many users have, from keyword arguments that say everything."""

    def __init__(self, *, neighbors: Neighbors, default: Item | None, **arguments: Any) -> None:
        if neighbors not in ("replace", "add-remove"):
            raise ValueError(f"neighbors must be 'replace' or 'add-remove'; got {short_repr(neighbors)}")
        self._neighbors = neighbors
        self._default = None if default is None else self._accepted(default)
        if default is not None and self._default is None:
            raise ValueError(f"default must be None or an item of this selection; got {short_repr(default)}")
        self._arguments = {
            **{name: defensive_copy(value) for name, value in arguments.items()},
            "neighbors": neighbors,
            "default": self._default,
        }

    def __repr__(self) -> str:
        arguments = {name: value for name, value in self._arguments.items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={short_repr(value)}' for name, value in arguments.items())})"

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        # What the arguments lead to is made again where it is needed.
        return partial(type(self), **self._arguments), ()

    @property
    def neighbors(self) -> Neighbors:
        """What the promise is for: "replace" or "add-remove"."""
        return self._neighbors

    @property
    def cost(self) -> PrivacyCost:
        """What every release costs, where an item is all that a user gives."""
        from userdp.accounting.cost import PrivacyCost

        return PrivacyCost(self._arguments["epsilon"], self._arguments.get("delta", 0))

    @property
    def default(self) -> ItemT | None:
        """What anything that is no item counts as; None: it counts for nothing."""
        return self._default

    _largest: int | None = None
    """The largest integer that is an item, if there is one."""

    @abstractmethod
    def _accepted(self, item: object) -> ItemT | None:
        """The item in its one form, or None for what is no item of this selection; never raises."""

    @abstractmethod
    def _draw(self, source: _core.Source, counts: Counts) -> Outcome:
        """One draw from ``pmf(counts)``."""

    @abstractmethod
    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of a draw."""

    def tally(self, items: Any, *, exact_integers: bool = False) -> Counter[ItemT | None]:
        """Count the items, as `release` does. Not private: for programs that draw, and for audits.

        Parameters
        ----------
        items, exact_integers
            As for `release`.

        Returns
        -------
        Counter
            How many users have each item, in the items' one form. Users whose item counts for nothing are counted
            under None, so that the total is the number of users.

        Raises
        ------
        TypeError
            As for `release`.
        """
        return tally(items, self._item, largest=self._largest, exact_integers=exact_integers)

    def _item(self, item: object) -> ItemT | None:
        accepted = self._accepted(item)
        return self._default if accepted is None else accepted

    def _present(self, counts: Counts) -> list[tuple[ItemT, int]]:
        return present(counts, self._accepted)

    def release(self, items: Any, random_state: int | None = None, *, exact_integers: bool = False) -> Outcome:
        """Choose an item, once, with the whole of the budget.

        Parameters
        ----------
        items : array, sequence, or series with shape (n,)
            One item for each of the n users. Whatever is no item counts as `default`, and nothing about it is raised
            or warned about. A user who has nothing to say keeps an entry, such as None: with ``neighbors="replace"``,
            n is public.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible,
            for tests only, and warns.
        exact_integers : bool
            True promises that the type of `items` is public. Otherwise NumPy's integers beyond 2**53 - 1 are no items,
            because one missing value would make doubles of them; in lists, and in nullable and Arrow columns, they are.

        Returns
        -------
        item
            In its plain form; for an `ApproximatePrivateMode` possibly `userdp.BOTTOM`.

        Raises
        ------
        TypeError, ValueError
            When `items` is not a sequence; for other values of random_state.
        OSError
            When the operating system gives no random bits.

        Warns
        -----
        InsecureRandomnessWarning
            When random_state is an integer.

        Notes
        -----
        Every call spends the budget again, also a call after `userdp.BOTTOM`, or with new public randomness for the
        same users. The counts themselves, or how many users fell back to `default`, are not private.
        """
        return self._draw(source_of(random_state), self.tally(items, exact_integers=exact_integers))
