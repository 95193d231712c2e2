"""What mechanisms that choose by a score have in common: how their arguments become a rate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from userdp._numbers import Epsilon, parse_level, parse_positive, shown, unshared

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["PMF_CANDIDATES", "ChoiceByScore"]

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
        from userdp._levels import core_level

        flags = {**flags, "monotone": monotone}
        for name, flag in flags.items():
            if not isinstance(flag, (bool, np.bool_)):
                raise TypeError(f"{name} must be a bool; got {shown(flag)}")
        level = core_level(parse_level(epsilon))
        largest_change = parse_positive(sensitivity, "sensitivity")
        step = None if granularity is None else parse_positive(granularity, "granularity")
        try:
            self._grid = _core.Granularity(step)
        except ValueError as error:
            raise ValueError(f"{error}; got {shown(granularity)}") from None
        try:
            steps = self._grid.sensitivity(largest_change)
        except ValueError as error:
            of_grid = "" if granularity is None else f" with granularity {shown(granularity)}"
            raise ValueError(f"{error}; got {shown(sensitivity)}{of_grid}") from None
        try:
            self._rate = self._rate_of(level, steps, bool(monotone))
        except ValueError as error:
            raise ValueError(f"{error}; got {shown(epsilon)}") from None
        self._arguments: dict[str, Any] = {
            "epsilon": unshared(epsilon),
            "sensitivity": unshared(sensitivity),
            "granularity": unshared(granularity),
            **{name: bool(flag) for name, flag in flags.items()},
        }

    @abstractmethod
    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> Rate:
        """The largest rate at which integer scores of this sensitivity are drawn with this privacy level."""

    def __repr__(self) -> str:
        given = {name: value for name, value in self._arguments.items() if value is not None and value is not False}
        return f"{type(self).__name__}({', '.join(f'{name}={shown(value)}' for name, value in given.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        # Whatever arguments the constructor of a subclass takes.
        ChoiceByScore.__init__(self, **arguments)
