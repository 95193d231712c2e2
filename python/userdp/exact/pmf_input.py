"""Reading pmfs: what users pass, converted without a silent change of value, for the compiled core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import exact_number, short_repr
from userdp.exact.pmf import Pmf

PmfLike: TypeAlias = "npt.ArrayLike | Sequence[Fraction | str | int | float] | Pmf"
ExactMasses: TypeAlias = "tuple[list[int], int]"
Masses: TypeAlias = "npt.NDArray[np.float64] | ExactMasses"
"""A contiguous native float64 vector (taken as exact dyadic numbers), or (integer weights, total)."""

_ACCEPTED = "a 1-D array-like of floats, ints, Fractions or decimal strings, or a Pmf"


def masses_of(values: Any, name: str) -> Masses:
    """Read one pmf.

    Parameters
    ----------
    values : array-like of shape (k,), or Pmf
        Floats are taken as the exact dyadic numbers they are and must sum to 1 within 1e-9; Fractions, ints,
        Decimals and decimal strings are exact and must sum to exactly 1. A sequence with both kinds is exact.
    name : str
        The argument's name, for messages.

    Returns
    -------
    ndarray of float64 or (list of int, int)
        In the compiled core's form. Signs and totals are checked by the core, except those of exact sequences.

    Raises
    ------
    TypeError
        For complex, bool or date-like arrays, and for entries that are not numbers.
    ValueError
        For anything that is not one-dimensional, is empty, has a negative, NaN or infinite mass, or (exact masses)
        does not sum to exactly 1.
    """
    if isinstance(values, Pmf):
        return list(values.weights), values.total
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; pass plain masses with every output present")
    if isinstance(values, np.ndarray):
        return _from_array(values, name)
    if isinstance(values, (str, bytes, bytearray, memoryview)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {_ACCEPTED}; got {type(values).__name__}")
    if isinstance(values, (set, frozenset, dict)):
        raise TypeError(f"{name} must be {_ACCEPTED}, in the order of the outputs; got a {type(values).__name__}")
    if hasattr(values, "__array__"):
        return _from_array(np.asarray(values), name)
    entries = list(values)
    if any(isinstance(entry, (list, tuple, np.ndarray)) and np.ndim(entry) > 0 for entry in entries):
        raise ValueError(f"{name} must be one-dimensional here; got a sequence of sequences")
    if entries and all(isinstance(entry, (float, np.floating)) for entry in entries):
        return _from_array(np.array(entries, dtype=np.float64 if _fit_float64(entries) else object), name)
    return _exact_masses(entries, name)


def _fit_float64(entries: Sequence[Any]) -> bool:
    return not any(isinstance(entry, np.longdouble) and np.longdouble is not np.float64 for entry in entries)


def _from_array(array: npt.NDArray[Any], name: str) -> Masses:
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension; got {array.ndim} (shape {array.shape})")
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 8:
        # Exact, in native byte order, contiguous and aligned.
        return np.require(array, dtype=np.float64, requirements=["C", "A"])
    if kind in "iu":
        return _exact_masses(array.tolist(), name)
    if kind in "OU":
        return _exact_masses(array.tolist(), name)
    if kind == "f":
        raise TypeError(f"{name} has dtype {array.dtype}, which float64 cannot hold exactly; convert it yourself")
    raise TypeError(f"{name} has dtype {array.dtype}; masses must be real numbers: {_ACCEPTED}")


def _exact_mass(entry: Any, index: int, name: str) -> Fraction:
    where = f"{name}: mass {short_repr(entry)} at index {index}"
    try:
        mass = exact_number(entry)
    except TypeError:
        raise TypeError(f"{where} is a {type(entry).__name__}; masses must be real numbers") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if mass is None or mass < 0:
        raise ValueError(f"{where} is not a finite number >= 0")
    return mass


def _exact_masses(entries: Sequence[Any], name: str) -> ExactMasses:
    if not entries:
        raise ValueError(f"{name} is empty; a pmf needs at least one mass")
    fractions = [_exact_mass(entry, index, name) for index, entry in enumerate(entries)]
    total = sum(fractions)
    if total != 1:
        hint = "; Pmf.from_weights takes weights of any total" if total > 1 else ""
        raise ValueError(f"{name}: exact masses must sum to exactly 1; they sum to {_short(total)}{hint}")
    return _over_common_denominator(fractions)


def _short(value: Fraction | int) -> str:
    exact = Fraction(value)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) <= 100:
        return str(exact)
    gap = exact - 1
    sign, size = ("+", gap) if gap > 0 else ("-", -gap)
    try:
        return f"1 {sign} {size.numerator / size.denominator:.3g}"
    except OverflowError:
        return "more than any float"


def _over_common_denominator(fractions: Sequence[Fraction]) -> ExactMasses:
    total = math.lcm(*{fraction.denominator for fraction in fractions})
    return [fraction.numerator * (total // fraction.denominator) for fraction in fractions], total


def fractions_of(masses: Masses) -> tuple[Fraction, ...]:
    """The exact masses."""
    if isinstance(masses, np.ndarray):
        return tuple(Fraction(mass) for mass in masses.tolist())
    weights, total = masses
    return tuple(Fraction(weight, total) for weight in weights)


def distinct_masses(masses: Masses) -> Any:
    """A hashable key, equal for equal masses, whichever way they are written."""
    if isinstance(masses, np.ndarray):
        return (masses + 0.0).tobytes()  # -0.0 and 0.0 are the same mass
    weights, total = masses
    nearest = np.array([weight / total for weight in weights])
    if all(Fraction(mass) * total == weight for mass, weight in zip(nearest.tolist(), weights, strict=True)):
        return nearest.tobytes()
    divisor = math.gcd(total, *weights)
    return tuple(weight // divisor for weight in weights), total // divisor


def is_table(values: Any) -> bool:
    """True for a 2-D array or a sequence of rows."""
    if isinstance(values, (Pmf, str, bytes)):
        return False
    if isinstance(values, np.ndarray):
        return values.ndim >= 2
    if isinstance(values, (list, tuple)) and values:
        return all(isinstance(row, (list, tuple, np.ndarray, Pmf)) for row in values)
    return bool(hasattr(values, "__array__") and np.ndim(values) >= 2)


def rows_of(values: Any, name: str) -> list[Any]:
    """The rows of a 2-D table of pmfs, each still to be read by `masses_of`."""
    if not isinstance(values, (list, tuple)):
        values = np.asanyarray(values)
        if values.ndim != 2:
            raise ValueError(f"{name} must have 1 or 2 dimensions; got {values.ndim} (shape {values.shape})")
    return list(values)
