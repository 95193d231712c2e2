"""What exact mechanisms have in common: keyword arguments that say everything, and draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Epsilon, defensive_copy, parse_level, parse_positive, short_repr
from userdp.runtime import number_of, shape_of, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from userdp import _core
    from userdp.accounting.cost import PrivacyCost

Value = TypeVar("Value")
Entry = TypeVar("Entry", bound=np.generic)


class Distribution(ABC, Generic[Value, Entry]):
    """A distribution that is known exactly, made from keyword arguments."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = {name: defensive_copy(value) for name, value in arguments.items() if value is not None}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={short_repr(value)}" for name, value in self._arguments.items())
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        # What the arguments lead to is made again where it is needed.
        return partial(type(self), **self._arguments), ()

    @abstractmethod
    def _draw(self, source: _core.Source) -> Value: ...

    @abstractmethod
    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[Entry]: ...

    @overload
    def sample(self, size: None = None, random_state: int | None = None) -> Value: ...
    @overload
    def sample(self, size: int | tuple[int, ...], random_state: int | None = None) -> npt.NDArray[Entry]: ...
    def sample(
        self, size: int | tuple[int, ...] | None = None, random_state: int | None = None
    ) -> Value | npt.NDArray[Entry]:
        """Draw from the distribution.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape of an array of independent draws; None for one draw. At most 2**27 draws a call.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns.

        Returns
        -------
        one draw, or an ndarray of independent ones with shape ``size``
            Booleans for coins, sorted subsets for subsets (along a last axis of their own), int64 otherwise.

        Raises
        ------
        TypeError, ValueError
            For sizes that are not non-negative integers, and other values of random_state.
        BudgetError
            For more than 2**27 draws.

        Warns
        -----
        InsecureRandomnessWarning
            When random_state is an integer.
        """
        shape = None if size is None else shape_of(size)
        source = source_of(random_state)
        return self._draw(source) if shape is None else self._draw_many(source, shape)


class IntegerDistribution(Distribution[int, np.int64]):
    """A distribution on integers of 64 bits, drawn by the compiled core."""

    _core_pmf: Any
    """An object of the core with ``sample`` and ``sample_many``."""

    def _draw(self, source: _core.Source) -> int:
        draw: int = self._core_pmf.sample(source)
        return draw

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        draws: npt.NDArray[np.int64] = self._core_pmf.sample_many(source, number_of(shape))
        return draws.reshape(shape)


Rate = TypeVar("Rate")

PMF_CANDIDATES = 2**22
"""The pmf of more candidates than this is refused: it would fill gigabytes."""


class ChoiceByScore(ABC, Generic[Rate]):
    """Choose one candidate by the scores of all, at a rate made from keyword arguments that say everything."""

    _rate: Rate

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        sensitivity: float | Fraction | str,
        granularity: float | Fraction | None = None,
        monotone: bool,
        **flags: bool,
    ) -> None:
        from userdp import _core
        from userdp.exact.epsilon import core_level

        flags = {**flags, "monotone": monotone}
        for name, flag in flags.items():
            if not isinstance(flag, (bool, np.bool_)):
                raise TypeError(f"{name} must be a bool; got {short_repr(flag)}")
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
        self._arguments: dict[str, Any] = {
            "epsilon": defensive_copy(epsilon),
            "sensitivity": defensive_copy(sensitivity),
            "granularity": defensive_copy(granularity),
            **{name: bool(flag) for name, flag in flags.items()},
        }

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs, for scores that a neighbor changes by the sensitivity at most."""
        from userdp.accounting.cost import PrivacyCost

        return PrivacyCost(self._arguments["epsilon"])

    @abstractmethod
    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> Rate:
        """The largest rate at which integer scores of this sensitivity are drawn with this privacy level."""

    def __repr__(self) -> str:
        given = {name: value for name, value in self._arguments.items() if value is not None and value is not False}
        return f"{type(self).__name__}({', '.join(f'{name}={short_repr(value)}' for name, value in given.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        # Whatever arguments the constructor of a subclass takes.
        ChoiceByScore.__init__(self, **arguments)
