"""Finite algorithms: the things that can be audited exactly.

A *dataset* is a tuple of users, a *user* is a tuple of examples. A finite algorithm has finitely many outputs and can
state its output distribution on every dataset. Anything with ``.outputs`` and ``.pmf(dataset)`` will do (see
`FiniteAlgorithm`); the classes here say more about the algorithm and so make larger audits affordable.

Last comes how an algorithm is asked for its pmf on many datasets: what it answers is validated, and equal pmfs are
stored once.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, TypeAlias, final, runtime_checkable

import numpy as np

from userdp.exact.encoding import canonical, has_codes
from userdp.exact.numbers import parse_exact, short_repr
from userdp.exact.pmf import Masses, Pmf, PmfLike, aligned, distinct_masses, masses_of
from userdp.runtime import ProgressCallback

User: TypeAlias = tuple[Any, ...]
Dataset: TypeAlias = tuple[User, ...]


@final
class Bottom:
    """The type of `BOTTOM`, which has one instance: equal to itself alone, in every process."""

    _instance: Bottom | None = None

    def __new__(cls) -> Bottom:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "BOTTOM"

    def __reduce__(self) -> str:
        return "BOTTOM"


BOTTOM: Final = Bottom()
"""What DelStab returns when it refuses to answer."""


# --- what an engine takes for granted about an algorithm, and for which algorithms it may
#
# `AdditiveAlgorithm` and `SummedScoreEM` compute their pmf from statistics or scores, and a `SymmetricAlgorithm` claims
# that the order of users does not matter. An engine relies on that only while the pmf is still that of the class that
# says so. Who overrides `pmf`, or what it is made from, has said nothing about the new one.

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
MOST_REORDERED = 1024
"""Datasets, spread over all, of which an audit tries a claimed symmetry in another order."""
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
    """What a verdict of an engine rests on: keys of `ASSUMPTIONS`, in its order."""
    return ("pmf-as-stated", "canonical-users", *_OF_ENGINE.get(engine, ()))


def form_of(algorithm: Any) -> str:
    """What an engine may take for granted about an algorithm's own pmf: score, additive, symmetric or labeled form."""
    # "labeled" is nothing. A subclass, an earlier base or the object itself with a pmf of its own has to say anew that
    # it is symmetric, in the same place.
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


# --- algorithms


@runtime_checkable
class FiniteAlgorithm(Protocol):
    """What an algorithm must have to be audited.

    Attributes
    ----------
    outputs : tuple
        The k distinct outputs, hashable.

    Notes
    -----
    Two optional attributes are used when present. ``pmf_batch(datasets) -> array of shape (N, k)`` lets audits ask
    for blocks. ``pmf_error`` is a public bound r < 1 on the relative error of the stated masses: every true mass lies
    in [(1 - r) p, (1 + r) p]; a verdict inside that band is then reported as undetermined. Without it a float pmf is
    taken as exact.
    """

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The k distinct outputs."""
        ...

    def pmf(self, dataset: Dataset, /) -> PmfLike:
        """The probabilities of the outputs on a dataset, in their order, shape (k,)."""
        ...


class FunctionAlgorithm:
    """A finite algorithm given by a function from datasets to pmfs."""

    def __init__(
        self,
        outputs: Iterable[Hashable],
        function: Callable[[Dataset], PmfLike],
        *,
        pmf_error: float | Fraction | str = 0,
        name: str | None = None,
    ) -> None:
        self.outputs = _distinct_outputs(outputs)
        self.function = function
        self.pmf_error = relative_error(pmf_error)
        self.name = name or getattr(function, "__name__", type(self).__name__)
        self.__doc__ = getattr(function, "__doc__", None)

    def pmf(self, dataset: Dataset, /) -> PmfLike:
        """The probabilities of the outputs on a dataset."""
        return self.function(dataset)

    def __call__(self, dataset: Dataset, /) -> PmfLike:
        return self.pmf(dataset)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} with {len(self.outputs)} outputs>"


def _distinct_outputs(outputs: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(outputs, (str, bytes)) or not isinstance(outputs, Iterable):
        raise TypeError(f"outputs must be a sequence of hashable outputs; got {outputs!r}")
    fixed = tuple(outputs)
    if not fixed:
        raise ValueError("outputs is empty; an algorithm needs at least one output")
    if not all(isinstance(output, Hashable) for output in fixed):
        raise TypeError("outputs must be hashable")
    if len(set(fixed)) != len(fixed):
        raise ValueError("outputs must be distinct")
    return fixed


def relative_error(pmf_error: Any) -> Fraction:
    error = parse_exact(pmf_error, "pmf_error", "a number in [0, 1)")
    if not 0 <= error < 1:
        raise ValueError(f"pmf_error must be in [0, 1); got {pmf_error!r}")
    return error


def finite_algorithm(
    outputs: Iterable[Hashable], *, pmf_error: float | Fraction | str = 0
) -> Callable[[Callable[[Dataset], PmfLike]], FunctionAlgorithm]:
    """Make a finite algorithm of a function from datasets to pmfs (decorator).

    Parameters
    ----------
    outputs : iterable of hashable
        The k distinct outputs.
    pmf_error : float, Fraction or decimal string
        Public bound on the relative error of the returned masses; 0 takes them as exact.

    Returns
    -------
    callable
        Turns a function ``dataset -> pmf`` into a `FiniteAlgorithm`. The function gets a tuple of users, each a tuple
        of examples, in index order, and returns k masses.

    Examples
    --------
    >>> @finite_algorithm(outputs=("no", "yes"))
    ... def first_answer(dataset):
    ...     return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]
    >>> first_answer.pmf(((1,), (0,)))
    ['1/4', '3/4']
    """
    fixed, error = _distinct_outputs(outputs), relative_error(pmf_error)
    return lambda function: FunctionAlgorithm(fixed, function, pmf_error=error)


class SymmetricAlgorithm(FunctionAlgorithm):
    """A finite algorithm whose pmf depends on the multiset of users only, not on their order.

    Audits then go over multisets instead of sequences. The claim is the caller's; audits check it on samples. A
    subclass with a ``pmf`` of its own makes no claim about it, unless it says ``symmetric = True`` too.

    Parameters
    ----------
    outputs : iterable of hashable
        The k distinct outputs.
    function : callable
        ``dataset -> pmf``, the same for every order of the users.
    pmf_error : float, Fraction or decimal string
        Public bound on the relative error of the returned masses; 0 takes them as exact.
    name : str, optional
        For reports.

    Examples
    --------
    >>> majority = SymmetricAlgorithm(
    ...     outputs=(0, 1),
    ...     function=lambda dataset: [0.25, 0.75] if sum(user[0] for user in dataset) > 1 else [0.75, 0.25],
    ... )
    >>> majority.pmf(((1,), (1,), (0,)))
    [0.25, 0.75]
    """

    _form: ClassVar[Form] = Form("symmetric", ("pmf",))


class AdditiveAlgorithm(SymmetricAlgorithm):
    """A finite algorithm that sees only the number of users and the sum of an integer statistic of each.

    A subclass that overrides ``pmf``, ``total_of`` or ``statistic_of`` is audited like any other algorithm.

    Parameters
    ----------
    outputs : iterable of hashable
        The k distinct outputs.
    statistic : callable
        ``user -> int``; the value is clamped to `statistic_range`.
    pmf_of_total : callable
        ``(total, n_users) -> pmf`` of shape (k,).
    statistic_range : (int, int)
        The public range (lo, hi), lo <= hi, that each user's statistic is clamped to.
    pmf_error : float, Fraction or decimal string
        Public bound on the relative error of the returned masses; 0 takes them as exact.
    name : str, optional
        For reports.

    Examples
    --------
    >>> total_of_ones = AdditiveAlgorithm(
    ...     outputs=("low", "high"),
    ...     statistic=sum,
    ...     pmf_of_total=lambda total, n_users: ["1/3", "2/3"] if total > n_users else ["2/3", "1/3"],
    ...     statistic_range=(0, 2),
    ... )
    >>> total_of_ones.pmf(((1, 1, 1), (0, 1, 0)))
    ['1/3', '2/3']
    """

    _form: ClassVar[Form] = Form("additive", ("pmf", "total_of", "statistic_of"))

    def __init__(
        self,
        outputs: Iterable[Hashable],
        statistic: Callable[[User], int],
        pmf_of_total: Callable[[int, int], PmfLike],
        *,
        statistic_range: Sequence[int],
        pmf_error: float | Fraction | str = 0,
        name: str | None = None,
    ) -> None:
        label = name or getattr(pmf_of_total, "__name__", "additive algorithm")
        super().__init__(outputs, self.pmf, pmf_error=pmf_error, name=label)
        self.__doc__ = getattr(pmf_of_total, "__doc__", None)
        if not isinstance(statistic_range, (tuple, list, np.ndarray)) or len(statistic_range) != 2:
            raise TypeError(f"statistic_range must be (lo, hi); got {short_repr(statistic_range)}")
        low, high = (integer_of(bound, "statistic_range") for bound in statistic_range)
        if low > high:
            raise ValueError(f"statistic_range must be (lo, hi) with lo <= hi; got {statistic_range!r}")
        self.statistic = statistic
        self.pmf_of_total = pmf_of_total
        self.statistic_range = (low, high)

    def statistic_of(self, user: User) -> int:
        """The user's statistic, clamped to the public range.

        Raises
        ------
        RuntimeError
            Naming the user, from whatever the statistic raised.
        """
        low, high = self.statistic_range
        try:
            value = self.statistic(user)
        except Exception as error:
            raise RuntimeError(
                f"statistic raised {type(error).__name__} ({error}) on the user {short_repr(user)}"
            ) from error
        if type(value) is not int:
            value = integer_of(value, f"statistic of the user {short_repr(user)}")
        return min(max(value, low), high)

    def total_of(self, dataset: Dataset) -> int:
        """The sum of the users' clamped statistics."""
        return sum(map(self.statistic_of, dataset))

    def pmf(self, dataset: Dataset, /) -> PmfLike:
        """The probabilities of the outputs on a dataset, those of its total."""
        return self.pmf_of_total(self.total_of(dataset), len(dataset))


def integer_of(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    raise TypeError(f"{name} must be an integer; got {value!r} of type {type(value).__name__}")


# --- datasets: users as the canonical values of what they gave

USERS = "a sequence of users, each a tuple, list or array of examples"


def listed_users(dataset: Any, name: str) -> list[Any]:
    """The users of a dataset one by one, as they are."""
    # Sets and dicts hold users who gave the same only once. What is iterated over once, such as a generator, will do.
    if isinstance(dataset, (Set, Mapping)):
        raise TypeError(
            f"{name} must be {USERS}; a {type(dataset).__name__} keeps one of several users who gave the same"
        )
    if isinstance(dataset, (str, bytes)) or not isinstance(dataset, Iterable):
        raise TypeError(f"{name} must be {USERS}; got {type(dataset).__name__}")
    if (
        isinstance(dataset, np.ndarray)
        and dataset.dtype != object
        and (dataset.ndim < 2 or not has_codes(dataset.dtype))
    ):
        # Types and shapes are public, and no row of this array is a user.
        raise TypeError(f"{name} must be {USERS}; got an array of shape {dataset.shape} and dtype {dataset.dtype}")
    return list(dataset)


def read_users(dataset: Any, name: str) -> Dataset:
    """The canonical users of a dataset, for an audit or a diagnostic."""
    return tuple(
        _user(user, f"{name}: the user at position {position}")
        for position, user in enumerate(listed_users(dataset, name))
    )


def private_users(dataset: Any, name: str) -> tuple[User | None, ...]:
    """The canonical users of a private dataset: None for whoever has none, since no value of a user may raise."""
    return tuple(map(_private, listed_users(dataset, name)))


def _user(user: Any, name: str) -> User:
    found = canonical(user, name)
    if type(found) is not tuple:
        raise TypeError(f"{name} must be a tuple, list or array of examples; got {type(user).__name__}")
    return found


def _private(user: Any) -> User | None:
    try:
        return _user(user, "")
    except Exception:
        return None


# --- asking an algorithm: validated pmfs on many datasets, the equal ones stored once

BATCH = 1024
FLOAT_TOTAL_TOLERANCE = 1e-9


def _declared(mechanism: Any, name: str, default: Any) -> Any:
    """What a mechanism says of itself, before any dataset is looked at; a property that raises is bad input."""
    try:
        return getattr(mechanism, name, default)
    except Exception as error:
        raise ValueError(f"mechanism.{name} cannot be read: {type(error).__name__}: {error}") from error


def outputs_of(mechanism: Any) -> tuple[Any, ...]:
    """The mechanism's outputs, checked."""
    declared = _declared(mechanism, "outputs", None)
    if declared is None or not isinstance(mechanism, FiniteAlgorithm):
        raise TypeError(
            f"mechanism must be a FiniteAlgorithm, with .outputs and .pmf(dataset); got {type(mechanism).__name__}. "
            "userdp.algorithms.finite_algorithm makes one of a function"
        )
    if isinstance(declared, (str, bytes)):
        raise TypeError("mechanism.outputs must be a tuple of outputs; got a string")
    try:
        outputs = tuple(declared)
        distinct = len(set(outputs))
    except TypeError:
        raise TypeError(f"mechanism.outputs must be a tuple of hashable outputs; got {short_repr(declared)}") from None
    except Exception as error:
        raise ValueError(f"mechanism.outputs cannot be listed: {type(error).__name__}: {error}") from error
    if not outputs or distinct != len(outputs):
        raise ValueError("mechanism.outputs must be a non-empty tuple of distinct outputs")
    return outputs


def pmf_error_of(mechanism: Any) -> Fraction:
    """The mechanism's declared relative pmf error, 0 by default."""
    return relative_error(_declared(mechanism, "pmf_error", 0))


def mechanism_name(mechanism: Any) -> str:
    """A name for reports."""
    name = _declared(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    return name if isinstance(name, str) else type(mechanism).__name__


class Totals(str):
    """Where an additive mechanism was asked, in words."""

    __repr__ = str.__str__


@dataclass
class DistinctPmfs:
    """Pmfs in order of first appearance, and for every dataset the index of its own."""

    outputs: tuple[Any, ...]
    masses: list[Masses] = field(default_factory=list)
    index_of: list[int] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)

    def add(self, returned: Any, dataset: Any) -> None:
        """Validate what a mechanism returned on a dataset and record it."""
        where = f"the pmf that the mechanism returned on the dataset {short_repr(dataset)}"
        masses = checked_masses(returned, self.outputs, where)
        key = distinct_masses(masses)
        index = self._known.setdefault(key, len(self.masses))
        if index == len(self.masses):
            self.masses.append(masses)
        self.index_of.append(index)


def checked_masses(returned: Any, outputs: tuple[Any, ...], where: str) -> Masses:
    """Validate what a mechanism returned as a pmf over its outputs."""
    if isinstance(returned, Pmf):
        try:
            returned = aligned(returned, outputs)
        except ValueError as error:
            raise ValueError(f"{where} {error}") from None
    masses = masses_of(returned, where)
    size = len(masses) if isinstance(masses, np.ndarray) else len(masses[0])
    if size != len(outputs):
        raise ValueError(f"{where} has {size} masses for {len(outputs)} outputs")
    if isinstance(masses, np.ndarray):
        entries = masses.tolist()
        if not all(0.0 <= mass < math.inf for mass in entries):
            raise ValueError(f"{where} has a mass that is not a finite number >= 0: {short_repr(entries)}")
        if abs(math.fsum(entries) - 1.0) > FLOAT_TOTAL_TOLERANCE:
            raise ValueError(f"{where} sums to {math.fsum(entries)!r}; float masses must sum to 1 within 1e-9")
    return masses


def evaluate_datasets(
    mechanism: Any,
    outputs: tuple[Any, ...],
    datasets: Iterable[Dataset],
    count: int,
    progress: ProgressCallback,
    name_of: Callable[[int], Any] | None = None,
) -> DistinctPmfs:
    """Evaluate the mechanism on every dataset, in order."""
    found = DistinctPmfs(outputs)
    # A subclass with another pmf does not inherit the blocks of the old one.
    known = goes_with(mechanism, "pmf_batch", "pmf")
    batch: Callable[[list[Dataset]], Any] | None = mechanism.pmf_batch if known else None
    source = iter(datasets)
    done = 0
    while block := list(itertools.islice(source, BATCH)):
        names: Sequence[Any] = block if name_of is None else [name_of(done + index) for index in range(len(block))]
        for name, pmf in zip(names, _ask(mechanism, batch, block, names), strict=True):
            found.add(pmf, name)
        if done == 0:
            again = DistinctPmfs(outputs)
            again.add(_ask(mechanism, batch, block[:1], names)[0], names[0])
            if distinct_masses(again.masses[0]) != distinct_masses(found.masses[0]):
                raise ValueError(
                    f"the mechanism returned two different pmfs on the dataset {short_repr(names[0])}; "
                    "pmf must be deterministic"
                )
        done += len(block)
        progress(done, count)
    return found


def _ask(
    mechanism: Any, batch: Callable[[list[Dataset]], Any] | None, block: list[Dataset], names: Sequence[Any]
) -> list[Any]:
    """What the mechanism returns on each dataset of a block."""
    if batch is None:
        return [call_on(mechanism.pmf, dataset, name) for dataset, name in zip(block, names, strict=False)]
    rows = list(call_on(batch, block, names[0]))
    if len(rows) != len(block):
        raise ValueError(f"mechanism.pmf_batch returned {len(rows)} rows for {len(block)} datasets")
    return rows


def call_on(function: Callable[..., Any], argument: Any, dataset: Any) -> Any:
    """Call the mechanism; an exception of its own is reported with the dataset."""
    try:
        return function(argument)
    except Exception as error:
        raise RuntimeError(
            f"the mechanism raised {type(error).__name__} ({error}) on the dataset {short_repr(dataset)}"
        ) from error
