from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Level",
    "PmfMatrix",
    "__version__",
    "chi2_divergence",
    "epsilon_at_delta",
    "exp_bounds",
    "exp_weights",
    "family_epsilon",
    "family_exceeding",
    "family_profile",
    "family_worst",
    "hockey_stick",
    "hockey_stick_bounds",
    "hockey_stick_float64",
    "is_indistinguishable",
    "is_indistinguishable_float64",
    "kl_divergence",
    "ln_bounds",
    "max_divergence",
    "privacy_profile",
    "renyi_divergence",
    "total_variation",
]

__version__: str

_Masses: TypeAlias = npt.NDArray[np.float64] | tuple[list[int], int]
_Progress: TypeAlias = Callable[[int, int], object] | None

@final
class Level:
    def __new__(cls, ratio: Fraction, exponent: Fraction) -> Level: ...

@final
class PmfMatrix:
    @staticmethod
    def from_floats(masses: npt.NDArray[np.float64]) -> PmfMatrix: ...
    @staticmethod
    def from_masses(masses: Sequence[_Masses]) -> PmfMatrix: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def row(self, row: int) -> list[Fraction]: ...

def hockey_stick_float64(p: Any, q: Any, epsilon: Any) -> float | None: ...
def is_indistinguishable_float64(
    p: Any, q: Any, epsilon: Any, delta: Any
) -> tuple[bool, float, float, list[int] | None, bool, bool] | None: ...
def hockey_stick(p: _Masses, q: _Masses, epsilon: Level) -> float: ...
def hockey_stick_bounds(p: _Masses, q: _Masses, epsilon: Level) -> tuple[float, float]: ...
def is_indistinguishable(
    p: _Masses, q: _Masses, epsilon: Level, delta: Fraction
) -> tuple[bool, float, float, list[int] | None, bool, bool]: ...
def privacy_profile(p: _Masses, q: _Masses, epsilons: Sequence[Level]) -> list[float]: ...
def epsilon_at_delta(p: _Masses, q: _Masses, delta: Fraction) -> tuple[float, float, Fraction | None]: ...
def max_divergence(p: _Masses, q: _Masses) -> float: ...
def total_variation(p: _Masses, q: _Masses) -> float: ...
def kl_divergence(p: _Masses, q: _Masses) -> float: ...
def chi2_divergence(p: _Masses, q: _Masses) -> float: ...
def renyi_divergence(p: _Masses, q: _Masses, order: Fraction) -> float: ...
def exp_bounds(epsilon: Level, bits: int) -> tuple[Fraction, Fraction]: ...
def ln_bounds(x: Fraction) -> tuple[float, float]: ...
def exp_weights(exponents: Sequence[Fraction], bits: int) -> list[int]: ...
def family_worst(
    pmfs: Sequence[_Masses],
    pairs: Sequence[tuple[int, int]],
    epsilon: Level,
    delta: Fraction,
    progress: _Progress = None,
) -> tuple[int, int, list[int], float, float, bool] | None: ...
def family_exceeding(
    pmfs: Sequence[_Masses],
    pairs: Sequence[tuple[int, int]],
    epsilon: Level,
    delta: Fraction,
    progress: _Progress = None,
) -> list[bool]: ...
def family_epsilon(
    pmfs: Sequence[_Masses], pairs: Sequence[tuple[int, int]], delta: Fraction, progress: _Progress = None
) -> tuple[float, float, Fraction | None]: ...
def family_profile(
    pmfs: Sequence[_Masses],
    pairs: Sequence[tuple[int, int]],
    epsilons: Sequence[Level],
    progress: _Progress = None,
) -> list[float]: ...
