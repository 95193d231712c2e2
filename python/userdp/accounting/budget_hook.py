"""How a fit asks a ledger for leave, after its data are read and before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Charge: TypeAlias = Callable[[Any], None]
"""Is given the record of a release before it is drawn, and raises what a ledger raises."""

_CHARGES: ContextVar[tuple[Charge, ...]] = ContextVar("_CHARGES", default=())
ATTRIBUTE = "_charges"
"""An estimator that is fitted through a ledger has its charges here, so that they reach whatever thread fits it."""


def charges_of(estimator: Any) -> tuple[Charge, ...]:
    """Who is to be asked before this estimator draws, each once: by the estimator itself, and by this thread."""
    own: tuple[Charge, ...] = vars(estimator).get(ATTRIBUTE, ())
    return tuple(dict.fromkeys((*own, *_CHARGES.get())))


def counted_in_rho(estimator: Any) -> bool:
    """Whether a ledger of zero-concentration is asked, for which noise is best planned in rho."""
    return any(getattr(charge, "counts", "") == "zcdp" for charge in charges_of(estimator))


def counted_beyond_epsilon(estimator: Any) -> bool:
    """Whether a ledger is asked that counts more than epsilons: rho, or exact composition."""
    return any(getattr(charge, "counts", "") in ("zcdp", "exact") for charge in charges_of(estimator))


class _Asking:
    """A charge for what is fitted in a block. Copies are charged too; what is unpickled is refused, and not free."""

    def __init__(self, charge: Charge, counts: str) -> None:
        self.charge = charge
        self.counts = counts
        self.asked = False
        self.over = False

    def __call__(self, record: Any) -> None:
        if self.over:
            raise RuntimeError("this is fitted by a ledger whose fit has ended, so that nobody would be charged for it")
        self.charge(record)
        self.asked = True

    def __copy__(self) -> _Asking:
        return self

    def __deepcopy__(self, memo: Any) -> _Asking:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, ()


def _elsewhere() -> Charge:
    return _refuse


def _refuse(record: Any) -> None:
    raise RuntimeError(
        "this was pickled while a ledger fitted it, as for another process, and nobody would be charged for its fit: "
        "use threads within a ledger's fit, and after it an estimator that is made anew"
    )


@contextmanager
def charging(estimator: Any, charge: Charge, counts: str = "") -> Iterator[None]:
    """Have what is fitted ask first, a ledger of this composition."""
    # This estimator, its clones and its copies ask in whatever thread they are fitted, and so does all that is
    # fitted in this thread. A fit in another process, or after the block, is refused: nobody would be charged for it.
    ask = _Asking(charge, counts)
    before = dict(vars(estimator))
    token = _CHARGES.set((*_CHARGES.get(), ask))
    setattr(estimator, ATTRIBUTE, (*before.get(ATTRIBUTE, ()), ask))
    try:
        yield
        if not ask.asked:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise RuntimeError(
                f"{type(estimator).__name__} ended without asking the ledger: nothing is charged, and the estimator is "
                "as it was. A subclass must fit by the fit of its base class, in this process"
            )
    finally:
        ask.over = True
        _CHARGES.reset(token)
        left = tuple(other for other in vars(estimator).get(ATTRIBUTE, ()) if not getattr(other, "over", False))
        if left:
            setattr(estimator, ATTRIBUTE, left)
        else:
            vars(estimator).pop(ATTRIBUTE, None)
