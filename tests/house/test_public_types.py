"""What public functions return is said by a type: no `Any` where an array, a frame or a number is returned."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("sklearn")

import userdp

OF_ANY_KIND = {
    "OptimalMechanism.sample": "an output of an algorithm of the user's",
    "OptimalSumMechanism.sample": "an output of an algorithm of the user's",
    "PrivacyLedger.open_session": "a session of a folder that this one knows nothing of",
    "PrivateBestOf.sample": "an outcome of a mechanism of the user's",
    "StatisticalQueryAlgorithm.decode": "a hypothesis of an algorithm of the user's",
    "StatisticalQueryAlgorithm.run": "a hypothesis of an algorithm of the user's",
    "StatisticalQueryClassifier.hypothesis": "a hypothesis of an algorithm of the user's",
    "to_dp_accounting": "an object of another library, which has no types",
}
"""What may be anything, and why."""


def returned(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, but for those of other packages, and what they return by type."""
    for base in kind.__mro__:
        if not base.__module__.startswith("userdp."):
            continue
        for name, value in vars(base).items():
            function = value.fget if isinstance(value, property) else getattr(value, "func", None) or value
            function = inspect.unwrap(getattr(function, "__func__", function))
            if not name.startswith("_") and inspect.isfunction(function):
                yield f"{base.__name__}.{name}", function.__annotations__.get("return")


def public() -> dict[str, Any]:
    faces = [name for _, name, is_face in pkgutil.iter_modules(userdp.__path__, "userdp.") if is_face]
    found: dict[str, Any] = {}
    for face in map(importlib.import_module, [*faces, "userdp.divergence", "userdp.datasets"]):
        for name in getattr(face, "__all__", vars(face)):
            thing = getattr(face, name)
            if inspect.isclass(thing):
                found |= returned(thing)
            elif inspect.isfunction(thing) and not name.startswith("_") and thing.__module__.startswith("userdp"):
                found[name] = inspect.unwrap(thing).__annotations__.get("return")
    return found


def test_no_public_function_returns_anything() -> None:
    found = public()
    assert len(found) > 500
    untyped = {name for name, kind in found.items() if kind is None or "Any" in str(kind).split(" | ")}
    assert untyped == OF_ANY_KIND.keys()
