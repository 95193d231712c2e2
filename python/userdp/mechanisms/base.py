"""What exact mechanisms have in common: keyword arguments that say everything, draws, a cost, and integers as input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import (
    Epsilon,
    Neighbors,
    check_flag,
    defensive_copy,
    is_integer,
    parse_level,
    parse_positive,
    short_repr,
    stated_neighbors,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.runtime import number_of, shape_of, source_of

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting import PrivacyLossDistribution
    from userdp.accounting.cost import PrivacyCost

Value = TypeVar("Value")
Data = TypeVar("Data")
Entry = TypeVar("Entry", bound=np.generic)
Rate = TypeVar("Rate")
Size: TypeAlias = "int | tuple[int, ...]"

DRAWS_LIMIT = 2**27
"""The most draws of one call, as in the core."""
PMF_CANDIDATES = 2**22
"""The pmf of more candidates than this is refused: it would fill gigabytes."""


class SupportsDraw(Protocol):
    """What can be drawn from: it draws, and says from which distribution."""

    def _draw(self, source: _core.Source, /, *data: Any) -> Any:
        """One draw from ``pmf(*data)``."""
        ...

    def pmf(self, *data: Any) -> Pmf:
        """The distribution of a draw."""
        ...


class Mechanism(ABC):
    """A mechanism that is known exactly, made from keyword arguments that say everything."""

    _cost_from: ClassVar[dict[str, str]] = {}
    """Which argument is which parameter of the cost; none where a draw by itself promises nothing."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = {name: defensive_copy(value) for name, value in arguments.items() if value is not None}

    def __repr__(self) -> str:
        shown = (f"{name}={short_repr(value)}" for name, value in self._arguments.items() if value is not False)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # The tables that the arguments lead to are made again where they are needed.
        kind = type(self)
        own = next(base for base in kind.__mro__ if base.__module__.startswith("userdp."))
        if own is kind:
            return partial(kind, **self._arguments), ()
        same = vars(_made_again(own, own, self._arguments))
        added = {
            name: value
            for name, value in vars(self).items()
            if name not in same and not isinstance(getattr(kind, name, None), cached_property)
        }
        return _made_again, (kind, own, self._arguments, added)

    @abstractmethod
    def _draw(self, source: _core.Source, *args: Any, **kwargs: Any) -> Any:
        """One draw, from a source that several mechanisms may share."""

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs, for data that a neighbor changes by the sensitivity at most."""
        from userdp.accounting.cost import PrivacyCost

        if not self._cost_from:
            raise AttributeError(f"the arguments of {type(self).__name__} say no cost of a draw")
        if "epsilon" not in self._arguments:
            raise ValueError("the cost of a draw needs a sensitivity: make the noise with epsilon and sensitivity")
        given = {name: self._arguments[argument] for name, argument in self._cost_from.items()}
        return PrivacyCost(**given, neighbors=self.neighbors)

    @property
    def neighbors(self) -> Neighbors | None:
        """For which neighboring datasets `cost` is; None where that was not said with the sensitivity."""
        return self._arguments.get("neighbors")

    def privacy_loss(self) -> PrivacyLossDistribution:
        """The privacy loss of one draw, to be composed with others.

        Returns
        -------
        PrivacyLossDistribution
            Of what `cost` says, or of more that is known of the mechanism, for its `neighbors`.
        """
        from userdp.accounting.privacy_loss import loss_of_cost

        return loss_of_cost(self.cost)


def draw_from(mechanism: Mechanism, source: _core.Source, *arguments: Any) -> Any:
    """One draw of a mechanism from a source that others share."""
    return mechanism._draw(source, *arguments)


def _made_again(
    kind: type[Mechanism], own: type[Mechanism], arguments: dict[str, Any], added: dict[str, Any] | None = None
) -> Mechanism:
    """Make a copy by this package's constructor: a user's own may take other arguments, or change these once more."""
    made = kind.__new__(kind)
    own.__init__(made, **arguments)
    vars(made).update(added or {})
    return made


class Distribution(Mechanism, Generic[Value, Entry]):
    """A distribution that depends on no data."""

    @abstractmethod
    def _draw(self, source: _core.Source) -> Value: ...

    @abstractmethod
    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[Entry]: ...

    @overload
    def sample(self, size: None = None, random_state: int | None = None) -> Value: ...
    @overload
    def sample(self, size: Size, random_state: int | None = None) -> npt.NDArray[Entry]: ...
    def sample(self, size: Size | None = None, random_state: int | None = None) -> Value | npt.NDArray[Entry]:
        """Draw from the distribution.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape of an array of independent draws; None for one draw. At most 2**27 draws a call.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        one draw, or an ndarray of independent ones with shape ``size``
            Booleans for coins, sorted subsets for subsets (along a last axis of their own), int64 otherwise.
        """
        shape = None if size is None else shape_of(size)
        source = source_of(random_state)
        return self._draw(source) if shape is None else self._draw_many(source, shape)


class IntegerDistribution(Distribution[int, np.int64]):
    """A distribution on integers of 64 bits, drawn by the compiled core."""

    _core_sampler: Any
    """An object of the core with ``sample`` and ``sample_many``."""

    def _draw(self, source: _core.Source) -> int:
        return self._core_sampler.sample(source)

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        draws: npt.NDArray[np.int64] = self._core_sampler.sample_many(source, number_of(shape))
        return draws.reshape(shape)


class TableDistribution(IntegerDistribution):
    """A certified table of integers over 2**128, of which every draw reads all."""

    def pmf(self) -> Pmf:
        """The distribution that is drawn from: outputs 0, 1, ... and integer weights of total 2**128."""
        numerators = self._core_sampler.numerators
        return Pmf(tuple(range(len(numerators))), tuple(numerators))


class AdditiveNoise(Mechanism):
    """Noise that is added to integers, which are clamped to a public range before."""

    _range: tuple[int, int]
    """What values are clamped to, within int64."""
    _core_noise: Any
    """An object of the core with ``release`` and ``release_many``."""

    @overload
    def sample(self, value: int, size: None = None, random_state: int | None = None) -> int: ...
    @overload
    def sample(
        self, value: npt.NDArray[Any], size: None = None, random_state: int | None = None
    ) -> npt.NDArray[np.int64]: ...
    @overload
    def sample(self, value: int, size: Size, random_state: int | None = None) -> npt.NDArray[np.int64]: ...
    def sample(
        self, value: int | npt.NDArray[Any], size: Size | None = None, random_state: int | None = None
    ) -> int | npt.NDArray[np.int64]:
        """Release a value, or each value of an array with noise of its own.

        Parameters
        ----------
        value : int or ndarray of an integer type
            What to release: one number, or an array of any shape of int64 or a smaller type. It is clamped to the
            public range silently and by design: an error would tell something about a private value.
        size : int or tuple of int, optional
            With one number: the shape of an array of independent releases of it, each of which spends the budget. At
            most 2**27 draws a call.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        int, or ndarray of int64
            The shape is that of ``value``, or ``size``.

        Raises
        ------
        TypeError
            For floats, bools, lists and unsigned 64-bit arrays, by their type and never by their values.
        """
        if isinstance(value, np.ndarray):
            values = self._int64(value)
            if size is not None:
                raise ValueError("size goes with one number; an array is released with its own shape")
            return self._release_many(values, source_of(random_state))
        clamped = self._clamped(value)
        if size is None:
            return self._draw(source_of(random_state), clamped)
        shape = shape_of(size)
        source = source_of(random_state)
        _refuse_above_limit(number_of(shape), "size")
        return self._release_many(np.full(shape, clamped, dtype=np.int64), source)

    def _draw(self, source: _core.Source, value: Any) -> Any:
        return self._core_noise.release(self._clamped(value), source)

    def _release_many(self, values: npt.NDArray[np.int64], source: _core.Source) -> npt.NDArray[np.int64]:
        """`sample` of an array of int64, from a source that several mechanisms share."""
        flat = np.require(values.reshape(-1), requirements=["C", "A"])
        released: npt.NDArray[np.int64] = self._core_noise.release_many(flat, source)
        return released.reshape(values.shape)

    def _clamped(self, value: Any) -> int:
        if not is_integer(value):
            raise TypeError(f"value must be an int or an array of ints; got a {type(value).__name__}")
        low, high = self._range
        return min(max(int(value), low), high)

    @staticmethod
    def _int64(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The values as native int64, refused by their type and number alone."""
        if isinstance(values, np.ma.MaskedArray):
            raise TypeError("value is a masked array; pass plain integers with every entry present")
        if not np.issubdtype(values.dtype, np.integer) or not np.can_cast(values.dtype, np.int64):
            raise TypeError(f"value must be an int or an array of int64 or a smaller integer type; got {values.dtype}")
        _refuse_above_limit(values.size, "value")
        return np.asarray(values).astype(np.int64, copy=False)


def _refuse_above_limit(number: int, name: str) -> None:
    """Refuse too many draws before there is an array of them."""
    if number > DRAWS_LIMIT:
        raise BudgetError(f"{name} asks for more than {DRAWS_LIMIT} draws in one call; draw in parts")


def release_from(noise: AdditiveNoise, source: _core.Source, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Values with noise, from a source that others share."""
    return noise._release_many(values, source)


class ChoiceByScore(Mechanism, Generic[Rate, Data, Entry]):
    """Choose one candidate by the scores of all: the exponential mechanism, however the scores are written down."""

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}
    _rate: Rate

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        sensitivity: float | Fraction | str,
        granularity: float | Fraction | None = None,
        monotone: bool,
        neighbors: Neighbors | None = None,
        **flags: bool,
    ) -> None:
        from userdp import _core
        from userdp.exact.epsilon import core_level

        flags = {name: check_flag(flag, name) for name, flag in {**flags, "monotone": monotone}.items()}
        relation = stated_neighbors(neighbors)
        if monotone and relation == "replace":
            raise ValueError(
                "monotone=True is for neighbors='add-remove': scores move in both directions when a user is replaced; "
                "got neighbors='replace'"
            )
        level = core_level(parse_level(epsilon))
        largest_change = parse_positive(sensitivity, "sensitivity")
        step = None if granularity is None else parse_positive(granularity, "granularity")
        try:
            self._grid = _core.Granularity(step)
        except ValueError as error:
            raise ValueError(f"{error}; got {short_repr(granularity)}") from None
        try:
            steps = self._grid.sensitivity(largest_change)
        except ValueError as error:
            of_grid = "" if granularity is None else f" with granularity {short_repr(granularity)}"
            raise ValueError(f"{error}; got {short_repr(sensitivity)}{of_grid}") from None
        try:
            self._rate = self._rate_of(level, steps, bool(monotone))
        except ValueError as error:
            raise ValueError(f"{error}; got {short_repr(epsilon)}") from None
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            granularity=granularity,
            neighbors=relation,
            **flags,
        )

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs, for data that a neighbor changes by the sensitivity at most.

        It states the bounded range, roundings included, which costs epsilon**2 / 8 where rho is counted.
        """
        from userdp.accounting.cost import PrivacyCost

        return PrivacyCost(bounded_range=self._arguments["epsilon"], neighbors=self.neighbors)

    @property
    def neighbors(self) -> Neighbors | None:
        """For which neighboring datasets `cost` is: "add-remove" if monotone; None where that was not said."""
        return "add-remove" if self._arguments["monotone"] else super().neighbors

    @abstractmethod
    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> Rate:
        """The largest rate at which integer scores of this sensitivity are drawn with this privacy level."""

    @abstractmethod
    def _draw(self, source: _core.Source, scores: Data) -> int: ...

    @abstractmethod
    def _draw_many(self, source: _core.Source, shape: tuple[int, ...], scores: Data) -> npt.NDArray[Entry]: ...

    @overload
    def sample(self, scores: Data, size: None = None, random_state: int | None = None) -> int: ...
    @overload
    def sample(self, scores: Data, size: Size, random_state: int | None = None) -> npt.NDArray[Entry]: ...
    def sample(
        self, scores: Data, size: Size | None = None, random_state: int | None = None
    ) -> int | npt.NDArray[Entry]:
        """Draw from `pmf`.

        Parameters
        ----------
        scores
            A score for each candidate, as the class says.
        size : int or tuple of int, optional
            The shape of an array of independent draws; None for one draw. At most 2**27 draws a call.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        int, or ndarray of int64 or (for groups) uint64 with shape ``size``
            A candidate: its index, or its number in the range of the groups.
        """
        if size is None:
            return self._draw(source_of(random_state), scores)
        shape = shape_of(size)
        return self._draw_many(source_of(random_state), shape, scores)
