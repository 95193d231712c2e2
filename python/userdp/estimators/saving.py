"""Fitted estimators as JSON: parameters and releases, never data."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable
from uuid import UUID

import numpy as np

from userdp.accounting.cost import PrivacyCost
from userdp.estimators.plan import PrivacyRecord
from userdp.exact.encoding import decode, encode, fraction_text
from userdp.exact.numbers import LogRatio, short_repr

SCHEMA_VERSION = 3

Kind = TypeVar("Kind")

_SAVED: dict[str, type[Any]] = {}
"""Classes whose objects are parameters, by name."""

_PRIVACY = {PrivacyRecord: "privacy", PrivacyCost: "cost"}

_ARRAYS = "biufSUO"
"""Kinds of arrays that are written."""
_DTYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|[SU][0-9]{1,9}|O)")


def saved_as_parameter(kind: type[Kind]) -> type[Kind]:
    """Let objects of a class be written (decorator), by their `arguments_of`."""
    _SAVED[kind.__name__] = kind
    return kind


@runtime_checkable
class Told(Protocol):
    """What says itself which keyword arguments make it again."""

    def _arguments(self) -> dict[str, Any]:
        """The keyword arguments."""
        ...


def arguments_of(made: Any) -> dict[str, Any]:
    """Keyword arguments that make an object again: its attributes of their names, or what its ``_arguments()`` says."""
    if isinstance(made, Told):
        return made._arguments()
    return {name: getattr(made, name) for name in inspect.signature(type(made)).parameters}


def repr_of(made: Any) -> str:
    """The call that makes an object again."""
    arguments = (f"{name}={short_repr(value)}" for name, value in arguments_of(made).items() if value is not None)
    return f"{type(made).__name__}({', '.join(arguments)})"


def to_json(estimator: Any) -> str:
    """The estimator's parameters and fitted attributes as JSON."""
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}
    content = {
        "userdp": "estimator",
        "schema_version": SCHEMA_VERSION,
        "estimator": type(estimator).__name__,
        "parameters": {name: _written(value) for name, value in estimator.get_params(deep=False).items()},
        "fitted": {name: _written(value) for name, value in fitted.items()},
    }
    return json.dumps(content, allow_nan=False)


def from_json(kind: type[Any], text: str) -> Any:
    """The estimator of this class that `to_json` wrote."""
    try:
        content = json.loads(text)
        if content["userdp"] != "estimator" or content["schema_version"] != SCHEMA_VERSION:
            raise ValueError("not an estimator of this version")
        if content["estimator"] != kind.__name__:
            raise ValueError(f"it is a {content['estimator']}")
        estimator = kind(**{name: _read(value) for name, value in content["parameters"].items()})
        for name, value in content["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name!r} is not a fitted attribute")
            setattr(estimator, name, _read(value))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the text is not a {kind.__name__} as to_json writes it: {error}") from None
    return estimator


def _written(value: Any) -> Any:
    """A value as JSON: what JSON lacks is an object with one key that names its kind."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.bool_):
        # Readers other than Python's round long integers.
        return int(value) if abs(int(value)) < 2**53 else {"int": str(int(value))}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Fraction):
        return {"fraction": fraction_text(value)}
    if isinstance(value, (float, np.floating, UUID, bytes)):
        return encode(float(value) if isinstance(value, np.floating) else value)
    if isinstance(value, LogRatio):
        return {"log_ratio": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, range):
        return {"range": [_written(number) for number in (value.start, value.stop, value.step)]}
    if isinstance(value, tuple):
        return {"tuple": [_written(entry) for entry in value]}
    if isinstance(value, list):
        return [_written(entry) for entry in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_written(key), _written(entry)] for key, entry in value.items()]}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _ARRAYS:
            raise TypeError(f"an array of dtype {value.dtype} cannot be saved as JSON; use pickle")
        return {
            "array": {"dtype": value.dtype.str, "shape": list(value.shape), "entries": _written(value.ravel().tolist())}
        }
    if isinstance(value, (PrivacyRecord, PrivacyCost)):
        _, arguments = value.__reduce__()
        return {_PRIVACY[type(value)]: [_written(argument) for argument in arguments]}
    if _SAVED.get(type(value).__name__) is type(value):
        arguments = {name: _written(argument) for name, argument in arguments_of(value).items()}
        return {"object": [type(value).__name__, arguments]}
    raise TypeError(f"a {type(value).__name__} cannot be saved as JSON; use pickle")


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "int":
        return int(content)
    if kind in ("float", "fraction", "uuid", "bytes"):
        return decode(value)
    if kind == "log_ratio":
        return LogRatio(*map(int, content))
    if kind == "range":
        return range(*map(_read, content))
    if kind == "tuple":
        return tuple(_read(entry) for entry in content)
    if kind == "mapping":
        return {_read(key): _read(entry) for key, entry in content}
    if kind == "array":
        return _read_array(**content)
    if kind in ("privacy", "cost"):
        made = PrivacyRecord if kind == "privacy" else PrivacyCost
        return made(*(_read(argument) for argument in content))
    if kind == "object":
        name, arguments = content
        return _SAVED[name](**{key: _read(argument) for key, argument in arguments.items()})
    raise ValueError(f"unknown kind {kind!r}")


def _read_array(dtype: str, shape: list[int], entries: list[Any]) -> np.ndarray[Any, Any]:
    # NumPy reads some texts as programs, and raises what those raise.
    if not (isinstance(dtype, str) and _DTYPE.fullmatch(dtype)):
        raise ValueError(f"unknown dtype {dtype!r:.40}")
    kind = np.dtype(dtype)
    # Strings are as long as the longest: a text of a few bytes must not ask for all memory.
    return np.array(_read(entries), dtype=kind.kind if kind.kind in "SU" else kind).reshape(shape)
