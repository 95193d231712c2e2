"""Parameters of estimators, declared once: default, check and documentation are one field of a dataclass.

``domain_size: int = count(doc="N: points are 1, ..., N.")`` makes a keyword argument of the constructor, refuses what
is no integer >= 1 when the estimator is used, and is the entry of the class's documentation. As scikit-learn wants,
the constructor itself checks nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import (
    check_count,
    check_flag,
    open_unit_interval,
    parse_delta,
    parse_positive,
    short_repr,
    within_floats,
)

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """What type checkers need."""
        return lambda decorator: decorator


Check = Callable[[Any, str], object]
Kind = TypeVar("Kind")

_SECTION = re.compile(r"\n(?=    \w[\w ]*\n    -{3,}\n)")


def parameter(*, default: Any = MISSING, check: Check | None = None, kind: str, doc: str, fact: str = "") -> Any:
    """Make a parameter: its default, a check of (value, name), what is accepted, lines of numpydoc, and its short name.

    `fact` is for the error that lists what is missing.
    """
    return field(default=default, metadata={"check": check, "kind": kind, "doc": doc, "fact": fact})


def or_none(check: Check) -> Check:
    """Accept None too."""
    return lambda value, name: None if value is None else check(value, name)


def epsilon(*, doc: str = "The whole budget.") -> Any:
    """A positive privacy parameter."""
    accepted = "float, int, Fraction, decimal string or LogRatio"
    return parameter(check=lambda value, name: positive_epsilon(value), kind=accepted, doc=doc, fact="the budget")


def delta(*, default: Any = MISSING, doc: str) -> Any:
    """A delta below 1."""
    return parameter(default=default, check=_below_one, kind="float, int, Fraction or decimal string", doc=doc)


def _below_one(value: Any, name: str) -> None:
    if parse_delta(value, name) == 1:
        raise ValueError(f"{name} must be below 1; got {short_repr(value)}")


def count(*, default: Any = MISSING, least: int = 1, most: int | None = None, doc: str) -> Any:
    """An integer; None too where that is the default."""

    def check(value: Any, name: str) -> None:
        number = check_count(value, name, least)
        if most is not None and number > most:
            raise ValueError(f"{name} must be at most {short_repr(most)}; got {short_repr(value)}")

    return parameter(
        default=default,
        check=or_none(check) if default is None else check,
        kind="int, optional" if default is None else "int",
        doc=doc,
    )


def positive_number(*, default: Any = MISSING, doc: str) -> Any:
    """A number above 0; None too where that is the default."""
    kind = "float, optional" if default is None else "float"
    return parameter(default=default, check=or_none(_positive) if default is None else _positive, kind=kind, doc=doc)


def _positive(value: Any, name: str) -> None:
    within_floats(parse_positive(value, name), name)


def open_unit(*, default: Any = MISSING, doc: str) -> Any:
    """A number strictly between 0 and 1."""
    return parameter(default=default, check=open_unit_interval, kind="float", doc=doc)


def choice(options: Any, *, default: str, doc: str) -> Any:
    """One of several words."""
    words = tuple(options)

    def check(value: Any, name: str) -> None:
        if not (isinstance(value, str) and value in words):
            raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}; got {short_repr(value)}")

    return parameter(default=default, check=check, kind="{" + ", ".join(f'"{word}"' for word in words) + "}", doc=doc)


def power_of_two(value: Any, name: str) -> None:
    """Refuse integers that are no powers of two; None is accepted."""
    if value is not None and (number := check_count(value, name)) & (number - 1):
        raise ValueError(f"{name} must be a power of two; got {short_repr(value)}")


def flag(*, default: bool, doc: str) -> Any:
    """True or False."""
    return parameter(default=default, check=check_flag, kind="bool", doc=doc)


def must_be_given(facts: Mapping[str, str]) -> str:
    """Say, in one sentence, which public facts are missing: names, and what each of them is."""
    each = [f"{name}, {what}" if what else name for name, what in facts.items()]
    return f"{'; '.join(each)}, must be given: what is public is never taken from the data"


def check_parameters(estimator: Any) -> None:
    """Check the value of every parameter."""
    for each in dataclasses.fields(estimator):
        check = each.metadata.get("check")
        if check is not None:
            check(getattr(estimator, each.name), each.name)


@dataclass_transform(
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(parameter, epsilon, delta, count, positive_number, open_unit, choice, flag),
)
def estimator(kind: type[Kind]) -> type[Kind]:
    """Make an estimator of a class (decorator): a dataclass whose documentation lists its parameters."""
    made = dataclass(kw_only=True, eq=False, repr=False)(kind)
    if "__doc__" in vars(kind) and kind.__doc__:
        text = _with_fitted(kind.__doc__, getattr(kind, "_fitted_doc", {}))
        more = {"enrolled": getattr(kind, "without_rows", "")}
        made.__doc__ = _documented(text, dataclasses.fields(made), more)  # type: ignore[arg-type]
    made.__init__ = _naming_all(made)  # type: ignore[method-assign]
    return made


def _naming_all(kind: Any) -> Callable[..., None]:
    """A constructor that names at once all that must be given, and all that a fit will need as well."""
    made, known = kind.__init__, {each.name: each for each in dataclasses.fields(kind)}

    @functools.wraps(made)
    def constructor(self: Any, *values: Any, **given: Any) -> None:
        needed = [name for name, each in known.items() if each.default is MISSING and name not in given]
        if needed and not values and given.keys() <= known.keys():
            for name, each in known.items():
                setattr(self, name, given.get(name, None if name in needed else each.default))
            facts = {name: known[name].metadata.get("fact", "") for name in needed}
            raise TypeError(must_be_given(facts | self._lacking(bool(self.require_groups))))
        made(self, *values, **given)

    return constructor


def _with_fitted(text: str, fitted: dict[str, tuple[str, str]]) -> str:
    """A docstring whose section of attributes, where it has one, ends in those that all estimators have."""
    before, heading, after = text.partition("    Attributes\n    ----------\n")
    attributes, _, others = after.partition("\n\n")
    if not heading:
        return text
    for name, (kind, doc) in fitted.items():
        if f"    {name} : " not in attributes:
            attributes += f"\n    {name} : {kind}\n        {doc}"
    return f"{before}{heading}{attributes}\n\n{others}"


def _documented(text: str, fields: tuple[dataclasses.Field[Any], ...], more: Mapping[str, str]) -> str:
    """A docstring with its section of parameters, before the first of its sections; `more` is the class's own."""
    lines = ["", "    Parameters", "    ----------"]
    for each in sorted(fields, key=lambda one: one.default is not MISSING):
        if "doc" in each.metadata:
            default = "" if each.default is MISSING or each.default is None else f", default={each.default!r}"
            lines.append(f"    {each.name} : {each.metadata['kind']}{default}")
            doc = inspect.cleandoc(each.metadata["doc"]).split("\n") + textwrap.wrap(more.get(each.name, ""), 112)
            lines.extend(f"        {line}".rstrip() for line in doc)
    section = "\n".join(lines) + "\n"
    first = _SECTION.search(text)
    if first is None:
        return text.rstrip() + "\n" + section + "    "
    return text[: first.start()] + section + text[first.start() :]
