"""Drawn numbers that are known as far as a program has asked: for samplers that compare what they draw.

A stand-in for a drawn float or integer keeps the interval of its source and the operations since. A comparison finds
where its truth changes by halving, with the very operations, so that their rounding is in it; then the run goes on on
either side with exact probabilities (docs/proofs/sampler_laws.md, Theorem 4). Whatever else is asked of the number has
it drawn in full: that is right for every program, and slow for some.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from userdp.audit.exhaustion import Source

RESOLUTION = 53
"""Bits of what generators call a uniform float: multiples of 2^-53 below 1."""

Operation = Callable[[Any], Any]

_CONSTANTS = (int, float, np.float64)
"""Numbers by which a float can be moved and scaled, without wrapping around."""
_COMPARED = (int, float, bool, Fraction, Decimal, np.integer, np.floating, np.bool_)
_NO_NUMBERS = (str, bytes, type(None), tuple, list, dict, set)


def uniform_float(source: Source) -> Any:
    """The stand-in for source / 2^53; the float itself where the integer is given."""
    if source.given is not None:
        return source.given * 2.0**-RESOLUTION
    return LazyFloat(source, (lambda k: k * 2.0**-RESOLUTION,))


def uniform_integer(source: Source) -> Any:
    """The stand-in for the source itself, or the integer."""
    return LazyInt(source, ()) if source.given is None else source.given


def settled(output: Any) -> Any:
    """An output without stand-ins."""
    if isinstance(output, LazyNumber):
        return output._value()
    if type(output) in (tuple, list, frozenset):
        return type(output)(map(settled, output))
    if type(output) is np.ndarray and output.dtype == object:
        return settled(output.tolist())
    return output


def _finite(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


class LazyNumber:
    """A number that depends monotonely on one source, while it is only moved, scaled and compared."""

    __slots__ = ("_operations", "_source")

    def __init__(self, source: Source, operations: tuple[Operation, ...]) -> None:
        self._source, self._operations = source, operations

    # --- what is known

    def _at(self, k: int) -> Any:
        value: Any = k
        for operation in self._operations:
            value = operation(value)
        return value

    def _value(self) -> Any:
        """The number, drawn in full."""
        return self._at(self._source.settle())

    def _ends(self) -> tuple[Any, Any]:
        return self._at(self._source.low), self._at(self._source.high - 1)

    def _then(self, operation: Operation) -> Any:
        """What a monotone operation makes of the number; drawn in full where it is not known to be monotone."""
        try:
            ends = [operation(end) for end in self._ends()]
        except Exception:
            return operation(self._value())
        if not all(map(_finite, ends)) or type(ends[0]) is not type(ends[1]):
            return operation(self._value())
        made = LazyInt if isinstance(ends[0], int) else LazyFloat
        return made(self._source, (*self._operations, operation))

    def _cut(self, tell: Callable[[int], Any], beyond: Callable[[Any], bool]) -> None:
        """Branch where `beyond` of what `tell` says, false at the low end, is true for the first time."""
        source = self._source

        def find() -> int:
            low, high = source.low, source.high - 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if beyond(tell(middle)) else (middle, high)
            return high

        source.cut(find, lambda cut: not beyond(tell(cut - 1)) and beyond(tell(cut)))

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """The truth of a comparison that is monotone in the number."""

        def tell(k: int) -> Any:
            return compare(self._at(k), other)

        last = bool(tell(self._source.high - 1))
        if bool(tell(self._source.low)) is not last:
            self._cut(tell, lambda truth: bool(truth) is last)
        return tell(self._source.low)

    def _whole(self, operation: Operation) -> Any:
        """What an operation to integers makes of the number, branching value by value."""
        while True:
            low, high = self._source.low, self._source.high

            def tell(k: int) -> Any:
                return operation(self._at(k))

            first, last = tell(low), tell(high - 1)
            if first == last:
                return first
            middle = tell((low + high) // 2)
            beyond = partial(operator.ne, first)
            if middle != first:
                beyond = partial(operator.le if last > first else operator.ge, middle)
            self._cut(tell, beyond)

    # --- comparisons

    def _answer(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return _by_element(self, compare, other)
        if isinstance(other, LazyNumber) or not isinstance(other, (*_COMPARED, *_NO_NUMBERS)):
            return compare(self._value(), other)
        if isinstance(other, _NO_NUMBERS):
            return compare(self._at(self._source.low), other)
        if compare in (operator.eq, operator.ne):
            # Equal on an interval: two cuts. A NaN equals nothing.
            if other == other and not self._compared(operator.lt, other):
                self._compared(operator.gt, other)
            return compare(self._at(self._source.low), other)
        return self._compared(compare, other)

    def __lt__(self, other: Any) -> Any:
        return self._answer(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._answer(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._answer(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._answer(operator.ge, other)

    def __eq__(self, other: object) -> Any:
        return self._answer(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._answer(operator.ne, other)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(self._value())

    # --- arithmetic

    def _linear(self, operation: Callable[[Any, Any], Any], other: Any, swapped: bool = False) -> Any:
        """A sum, a difference, a product or a quotient with a constant."""
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy asks __array_ufunc__
        if not self._is_constant(other):
            value = self._value()
            return operation(other, value) if swapped else operation(value, other)
        return self._then((lambda v: operation(other, v)) if swapped else (lambda v: operation(v, other)))

    def _is_constant(self, other: Any) -> bool:
        """Whether the sum, product or quotient with another number is monotone; NumPy's integers may wrap around."""
        return type(other) in _CONSTANTS or (isinstance(self, LazyFloat) and isinstance(other, np.integer))

    def __add__(self, other: Any) -> Any:
        return self._linear(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._linear(operator.add, other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._linear(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._linear(operator.sub, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._linear(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._linear(operator.mul, other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        if type(other) in (int, float) and other == 0:
            return self._at(self._source.low) / other  # raises, whatever this number is
        return self._linear(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._under(operator.truediv, other)

    def _under(self, divide: Callable[[Any, Any], Any], other: Any) -> Any:
        """A constant over this number: monotone on either side of 0."""
        if self._is_constant(other) and not self > 0 and not self < 0:
            return divide(other, self._value())
        return self._linear(divide, other, swapped=True)

    def __neg__(self) -> Any:
        return self._then(operator.neg)

    def __pos__(self) -> Any:
        return self._then(operator.pos)

    def __abs__(self) -> Any:
        self < 0  # noqa: B015  # branches: monotone on either side
        return self._then(abs)

    # --- integers

    def __int__(self) -> int:
        return int(self._whole(int))

    def __trunc__(self) -> Any:
        return self._whole(math.trunc)

    def __floor__(self) -> Any:
        return self._whole(math.floor)

    def __ceil__(self) -> Any:
        return self._whole(math.ceil)

    def __round__(self, digits: Any = None) -> Any:
        return self._whole(round) if digits is None else self._then(lambda value: round(value, digits))

    # --- everything else has the number drawn in full

    def __float__(self) -> float:
        return float(self._value())

    def __complex__(self) -> complex:
        return complex(self._value())

    def __repr__(self) -> str:
        return repr(self._value())

    def __str__(self) -> str:
        return str(self._value())

    def __format__(self, form: str) -> str:
        return format(self._value(), form)

    def __copy__(self) -> LazyNumber:
        return self

    def __deepcopy__(self, memo: Any) -> LazyNumber:
        return self

    def __reduce__(self) -> Any:
        return _itself, (self._value(),)

    def __getattr__(self, name: str) -> Any:
        kind = type(self._at(self._source.low))
        if not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return getattr(self._value(), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._at(self._source.low))

    # --- NumPy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._value(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options and all(_is_scalar(other) for other in inputs):
            if ufunc in _UNARY and isinstance(self, LazyFloat):
                if ufunc is np.absolute:
                    self < 0  # noqa: B015  # branches
                return self._then(ufunc)
            if ufunc in _OF_FINITE and isinstance(self, LazyFloat):
                return ufunc(self._at(self._source.low))
            if len(inputs) == 2 and not all(isinstance(other, LazyNumber) for other in inputs):
                return self._binary(ufunc, *inputs)
        if method == "__call__" and not options and ufunc in _ORDERS and len(inputs) == 2:
            first, second = inputs
            if isinstance(first, LazyNumber) and isinstance(second, np.ndarray):
                return _by_element(first, ufunc, second)
            if isinstance(second, LazyNumber) and isinstance(first, np.ndarray):
                return _by_element(second, lambda value, other: ufunc(other, value), first)
        return getattr(ufunc, method)(*map(_number, inputs), **options)

    def _binary(self, ufunc: Any, first: Any, second: Any) -> Any:
        """What NumPy makes of this number and a constant."""
        other, swapped = (second, False) if isinstance(first, LazyNumber) else (first, True)
        if isinstance(other, np.ndarray):
            other = other[()]

        def apply(value: Any, constant: Any) -> Any:
            return ufunc(constant, value) if swapped else ufunc(value, constant)

        if ufunc in _ORDERS and isinstance(other, _COMPARED):
            return self._compared(apply, other)
        if ufunc in _LINEAR and isinstance(self, LazyFloat) and self._is_constant(other):
            if ufunc is np.true_divide and swapped:
                return self._under(ufunc, other)
            return self._then(lambda value: apply(value, other))
        return apply(self._value(), other)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        if function is np.searchsorted and len(inputs) == 2 and inputs[1] is self and not options.get("sorter"):
            return self._whole(lambda value: function(inputs[0], value, **options))
        return function(*_deep(inputs), **{name: _deep(value) for name, value in options.items()})


def _opaque(name: str) -> Any:
    """A method of two numbers that has this one drawn in full."""
    operation = getattr(operator, name, None) or divmod

    def forward(self: LazyNumber, *others: Any) -> Any:
        return pow(self._value(), *others) if name == "pow" else operation(self._value(), *others)

    return forward


def _opaque_swapped(name: str) -> Any:
    operation = getattr(operator, name, None) or divmod

    def backward(self: LazyNumber, other: Any) -> Any:
        return operation(other, self._value())

    return backward


for _name in ("mod", "divmod", "pow", "floordiv"):
    setattr(LazyNumber, f"__{_name}__", _opaque(_name))
    setattr(LazyNumber, f"__r{_name}__", _opaque_swapped(_name))


class LazyFloat(LazyNumber):
    """A stand-in for a float."""

    __slots__ = ()


class LazyInt(LazyNumber):
    """A stand-in for an integer."""

    __slots__ = ()

    def __index__(self) -> int:
        return operator.index(self._value())

    def __rshift__(self, other: Any) -> Any:
        return self._stepwise(operator.rshift, other)

    def __lshift__(self, other: Any) -> Any:
        return self._stepwise(operator.lshift, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._stepwise(operator.floordiv, other)

    def _stepwise(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        if type(other) is not int:
            return operation(self._value(), other)
        return self._then(lambda value: operation(value, other))

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self._value(), digits)

    def __invert__(self) -> Any:
        return self._then(operator.invert)


for _name in ("and_", "or_", "xor"):
    setattr(LazyInt, f"__{_name.strip('_')}__", _opaque(_name))
    setattr(LazyInt, f"__r{_name.strip('_')}__", _opaque_swapped(_name))
for _name in ("rshift", "lshift"):
    setattr(LazyInt, f"__r{_name}__", _opaque_swapped(_name))


_ORDERS = {np.less, np.less_equal, np.greater, np.greater_equal}
_LINEAR = {np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum}
_UNARY = {np.negative, np.positive, np.absolute, np.floor, np.ceil, np.rint, np.trunc}
_OF_FINITE = {np.isnan, np.isinf, np.isfinite}


def _itself(value: Any) -> Any:
    return value


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or value.ndim == 0


def _number(value: Any) -> Any:
    return value._value() if isinstance(value, LazyNumber) else value


def _deep(value: Any) -> Any:
    if isinstance(value, LazyNumber):
        return value._value()
    return type(value)(map(_deep, value)) if type(value) in (tuple, list) else value


def _by_element(number: LazyNumber, compare: Callable[[Any, Any], Any], array: Any) -> Any:
    """A comparison with each element of an array."""
    if array.dtype.kind not in "biuf":
        return compare(number._value(), array)
    truths: Iterable[Any] = (bool(number._answer(compare, element)) for element in array.ravel())
    return np.array(list(truths), dtype=bool).reshape(array.shape)[()]
