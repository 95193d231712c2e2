"""Exact probability mass functions: made from weights, counts or logits, and read from what callers pass as a pmf.

Reading changes no value silently: floats are the dyadic numbers they are, and all else is exact.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import exact_number, short_repr


@dataclass(frozen=True, slots=True)
class Pmf:
    """A finite distribution with integer weights: output i has probability weights[i] / total, exactly.

    Parameters
    ----------
    outputs : tuple
        The k distinct outputs, hashable.
    weights : tuple of int
        Their k weights, non-negative, not all zero.
    positional : bool
        Whether the outputs are 0, ..., k-1 because none were given: they stand for the places of an algorithm's own
        outputs then, whatever those are.

    Attributes
    ----------
    total : int
        The sum of the weights.

    Examples
    --------
    >>> coin = Pmf.from_weights([3, 1], outputs=("heads", "tails"))
    >>> coin.fractions()
    [Fraction(3, 4), Fraction(1, 4)]
    >>> coin.probabilities
    array([0.75, 0.25])
    """

    outputs: tuple[Hashable, ...]
    weights: tuple[int, ...]
    positional: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.weights:
            raise ValueError("weights is empty; a pmf needs at least one output")
        if len(self.outputs) != len(self.weights):
            raise ValueError(f"outputs has {len(self.outputs)} entries where weights has {len(self.weights)}")
        if len(set(self.outputs)) != len(self.outputs):
            raise ValueError("outputs must be distinct")
        for index, weight in enumerate(self.weights):
            if isinstance(weight, bool) or not isinstance(weight, int):
                raise TypeError(f"weights: the weight at index {index} must be an int; got {weight!r}")
            if weight < 0:
                raise ValueError(f"weights: the weight {weight} at index {index} is negative")
        if not any(self.weights):
            raise ValueError("weights are all zero; at least one must be positive")

    @classmethod
    def from_weights(
        cls, weights: Iterable[int | Fraction | str | Decimal], outputs: Iterable[Hashable] | None = None
    ) -> Pmf:
        """Make the pmf proportional to exact non-negative weights.

        Parameters
        ----------
        weights : iterable of int, Fraction, Decimal or decimal string
            Any positive total. Floats are refused, since scaling them exactly is seldom what is meant: see
            `exact_pmf`.
        outputs : iterable, optional
            The outputs; 0, 1, ..., k-1 by default.
        """
        exact = [_exact_weight(weight, index) for index, weight in enumerate(weights)]
        integers = tuple(whole_multiples(exact))
        if outputs is None:
            return cls(tuple(range(len(integers))), integers, positional=True)
        return cls(tuple(outputs), integers)

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probabilities as floats, each the nearest to its exact value, shape (k,)."""
        total = self.total
        return np.array([weight / total for weight in self.weights])  # int / int is correctly rounded

    def fractions(self) -> list[Fraction]:
        """The exact probabilities."""
        total = self.total
        return [Fraction(weight, total) for weight in self.weights]

    def __len__(self) -> int:
        return len(self.weights)


def aligned(pmf: Pmf, outputs: tuple[Hashable, ...]) -> Pmf:
    """The pmf in the order of the given outputs."""
    if pmf.positional and len(pmf) == len(outputs):
        return Pmf(outputs, pmf.weights)
    weight_of = dict(zip(pmf.outputs, pmf.weights, strict=True))
    if len(outputs) == len(pmf) and weight_of.keys() == set(outputs) and not pmf.positional:
        return Pmf(outputs, tuple(weight_of[output] for output in outputs))
    raise ValueError(f"has the outputs {short_repr(pmf.outputs)}, not the mechanism's {short_repr(outputs)}")


def whole_multiples(fractions: Sequence[Fraction]) -> list[int]:
    """The fractions times their least common denominator."""
    scale = math.lcm(*{fraction.denominator for fraction in fractions})
    return [fraction.numerator * (scale // fraction.denominator) for fraction in fractions]


def _exact_weight(weight: Any, index: int) -> Fraction:
    if isinstance(weight, (float, np.floating)):
        raise TypeError(
            f"weights: the weight {weight!r} at index {index} is a {type(weight).__name__}; exact weights are ints, "
            "Fractions or decimal strings (exact_pmf takes float weights)"
        )
    return _finite(_real(weight, index, "weights"), index, "weights")


def exact_pmf(
    *,
    weights: Sequence[Any] | npt.ArrayLike | None = None,
    counts: Sequence[int] | npt.ArrayLike | None = None,
    logits: Sequence[Any] | npt.ArrayLike | None = None,
    outputs: Iterable[Hashable] | None = None,
    bits: int = 64,
) -> Pmf:
    """Make an exact pmf from weights, counts or logits.

    A float softmax sums to 1 only up to rounding and depends on the order of its additions. The result of this
    function is an exact, reproducible distribution, close to it. Audit it, and draw from it.

    Parameters
    ----------
    weights : array-like of shape (k,), optional
        Non-negative weights: ints, Fractions and decimal strings exactly, floats as the dyadic numbers they are. The
        pmf is exactly proportional to them.
    counts : array-like of int, shape (k,), optional
        Non-negative counts; the empirical distribution.
    logits : array-like of shape (k,), optional
        Natural logarithms of weights: ints, floats, Fractions or decimal strings; -inf gives weight 0. The largest
        logit gets the weight 2**bits and every other one the integer nearest to e**(logit - largest) * 2**bits, from
        a certified enclosure of the exponential.
    outputs : iterable, optional
        The k outputs; 0, 1, ..., k-1 by default.
    bits : int
        Resolution for logits, from 1 to 4096: each weight is off by at most half a unit of 2**-bits.

    Notes
    -----
    Rounding changes ratios: weights made from logits are a factor 1 +- 2**-bits / probability off, and a mechanism that
    is epsilon-DP with ideal weights need not be exactly epsilon-DP with rounded ones (a rounded 0 makes the ratio
    infinite). An audit of the result tells.

    Examples
    --------
    >>> exact_pmf(logits=[0.0, 0.0]).fractions()
    [Fraction(1, 2), Fraction(1, 2)]
    >>> exact_pmf(weights=[0.5, 0.25]).fractions()
    [Fraction(2, 3), Fraction(1, 3)]
    """
    given = [
        (name, value)
        for name, value in (("weights", weights), ("counts", counts), ("logits", logits))
        if value is not None
    ]
    if len(given) != 1:
        names = ", ".join(name for name, _ in given) or "none"
        raise TypeError(f"exact_pmf takes exactly one of weights, counts and logits; got {names}")
    name, values = given[0]
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; pass plain numbers with every output present")
    if isinstance(values, (str, bytes)) or np.ndim(np.asarray(values, dtype=object)) != 1:
        raise ValueError(f"{name} must be one-dimensional")
    entries = list(values)  # type: ignore[arg-type]
    numbers_ = [_real(entry, index, name) for index, entry in enumerate(entries)]
    if name == "logits":
        return Pmf.from_weights(_weights_of_logits(numbers_, bits), outputs)
    finite = [_finite(number, index, name) for index, number in enumerate(numbers_)]
    if name == "counts" and any(number.denominator != 1 for number in finite):
        raise ValueError("counts must be integers")
    return Pmf.from_weights(finite, outputs)


def _real(entry: Any, index: int, name: str) -> Fraction | float:
    """An exact number, or an infinite float."""
    where = f"{name}: entry {short_repr(entry)} at index {index}"
    try:
        number = exact_number(entry)
    except TypeError:
        raise TypeError(f"{where} is not a real number") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if number is not None:
        return number
    if entry != entry or (isinstance(entry, Decimal) and entry.is_nan()):
        raise ValueError(f"{where} is NaN")
    return math.inf if entry > 0 else -math.inf


def _finite(number: Fraction | float, index: int, name: str) -> Fraction:
    if isinstance(number, float) or number < 0:
        raise ValueError(f"{name}: entry {short_repr(number)} at index {index} is not a finite number >= 0")
    return number


def _weights_of_logits(logits: Sequence[Fraction | float], bits: int) -> list[int]:
    from userdp import _core

    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 4096:
        raise ValueError(f"bits must be an int from 1 to 4096; got {bits!r}")
    if math.inf in logits:
        raise ValueError("logits: +inf is not accepted; give the sure output a weight instead")
    exact = [logit for logit in logits if isinstance(logit, Fraction)]
    if not exact:
        raise ValueError("logits: at least one must be finite")
    largest = max(exact)
    weights = iter(_core.exp_weights([logit - largest for logit in exact], bits))
    return [next(weights) if isinstance(logit, Fraction) else 0 for logit in logits]


# --- reading pmfs for the compiled core

PmfLike: TypeAlias = "npt.ArrayLike | Sequence[Fraction | str | int | float] | Pmf"
ExactMasses: TypeAlias = "tuple[list[int], int]"
Masses: TypeAlias = "npt.NDArray[np.float64] | ExactMasses"
"""A contiguous native float64 vector (taken as exact dyadic numbers), or (integer weights, total)."""

_ACCEPTED = "a 1-D array-like of floats, ints, Fractions or decimal strings, or a Pmf"


def masses_of(values: Any, name: str) -> Masses:
    """Read one pmf for the compiled core, which checks signs and totals, except those of exact sequences."""
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
    weights = whole_multiples(fractions)
    return weights, sum(weights)


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
