"""What an engine takes for granted about an algorithm, and for which algorithms it may.

`AdditiveAlgorithm` and `SummedScoreEM` compute their pmf from statistics or scores, and a `SymmetricAlgorithm` claims
that the order of users does not matter. An engine relies on that only while the pmf is still the one of the class that
says so. Who overrides `pmf`, or what it is made from, has said nothing about the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

ASSUMPTIONS = MappingProxyType(
    {
        "pmf-as-stated": "the algorithm's outputs have the probabilities that its pmf states",
        "canonical-users": "the algorithm sees of every user the canonical values, and nothing else",
        "symmetry": "the pmf depends on the multiset of users, not on their order",
        "additivity": "the pmf depends on the number of users and the sum of their statistics",
        "score-form": "the pmf is the exponential mechanism on the sums of the users' scores",
    }
)
"""What a verdict rests on and no engine checks in full, by name."""
_OF_ENGINE = {
    "symmetric": ("symmetry",),
    "multiset": ("symmetry",),
    "additive": ("additivity",),
    "score": ("score-form",),
}


@dataclass(frozen=True)
class Form:
    """What a class says of the pmf that it defines, and the methods by which it computes it."""

    name: str
    methods: tuple[str, ...]


def assumptions_of(engine: str) -> tuple[str, ...]:
    """What a verdict of an engine rests on.

    Parameters
    ----------
    engine : str
        As audits, `userdp.lddp.check_lddp` and DelStab name it.

    Returns
    -------
    tuple of str
        Keys of `ASSUMPTIONS`, in its order.

    Examples
    --------
    >>> assumptions_of("labeled")
    ('pmf-as-stated', 'canonical-users')
    >>> assumptions_of("symmetric")
    ('pmf-as-stated', 'canonical-users', 'symmetry')
    """
    return ("pmf-as-stated", "canonical-users", *_OF_ENGINE.get(engine, ()))


def form_of(algorithm: Any) -> str:
    """What an engine may take for granted about an algorithm's own pmf.

    Parameters
    ----------
    algorithm : FiniteAlgorithm

    Returns
    -------
    {"score", "additive", "symmetric", "labeled"}
        "labeled" is nothing. The others are what a class says of the pmf that it defines itself or inherits. A
        subclass, an earlier base or the object itself with a pmf of its own has to say anew that it is
        ``symmetric = True``, in the same place.

    Examples
    --------
    >>> from userdp.algorithms import SymmetricAlgorithm
    >>> form_of(SymmetricAlgorithm((0, 1), lambda dataset: [0.5, 0.5]))
    'symmetric'
    >>> class First(SymmetricAlgorithm):
    ...     def pmf(self, dataset):
    ...         return [1, 0] if dataset[0][0] else [0, 1]
    >>> form_of(First((0, 1), None))
    'labeled'
    """
    if _owner(algorithm, "__getattribute__") is not object:
        return "labeled"
    for kind in type(algorithm).__mro__:
        form = vars(kind).get("_form")
        if isinstance(form, Form) and all(_knows(kind, _owner(algorithm, method)) for method in form.methods):
            return form.name
    claimed = getattr(algorithm, "symmetric", False) is True
    return "symmetric" if claimed and goes_with(algorithm, "symmetric", "pmf") else "labeled"


def is_symmetric(algorithm: Any) -> bool:
    """Whether an algorithm claims that its own pmf depends on the multiset of users only."""
    return form_of(algorithm) != "labeled"


def goes_with(algorithm: Any, name: str, method: str) -> bool:
    """Whether an attribute was given where the method was defined, or by a class that knew the method."""
    giver, author = _owner(algorithm, name), _owner(algorithm, method)
    if giver is algorithm or author is algorithm:
        return giver is author
    return giver is not None and _knows(giver, author)


def _knows(kind: type, author: Any) -> bool:
    """Whether a class is the author or inherits from it."""
    return any(author is base for base in kind.__mro__)


def _owner(algorithm: Any, name: str) -> Any:
    """Where an attribute comes from: the object itself, the first class that has it, or nowhere (None)."""
    try:
        if name in object.__getattribute__(algorithm, "__dict__"):
            return algorithm
    except AttributeError:
        pass
    return next((kind for kind in type(algorithm).__mro__ if name in vars(kind)), None)
