"""A ledger as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from userdp._numbers import LogRatio
from userdp.accounting._cost import PrivacyCost
from userdp.accounting._currency import as_float

if TYPE_CHECKING:
    from userdp.accounting._ledger import LedgerEntry, PrivacyLedger

__all__ = ["LedgerContent", "read_ledger", "table", "written_ledger"]

SCHEMA_VERSION = 1
WIDTH = 11
LONG_BITS = 10_000
_COST = ("epsilon", "delta", "rho", "distance", "bounded_range")
_PROMISE = ("epsilon", "delta", "composition", "unit", "neighbours")

Amount: TypeAlias = "Fraction | LogRatio"


@dataclass(frozen=True)
class LedgerContent:
    """What JSON says of a ledger."""

    arguments: dict[str, Any]
    limits: dict[str, Amount]
    entries: list[tuple[str, PrivacyCost]]


def table(ledger: PrivacyLedger, rows: Sequence[tuple[str, Mapping[str, Amount]]]) -> str:
    """The promise, then a line for each row."""
    head = (
        f"{type(ledger).__name__}(epsilon={as_float(ledger.epsilon):.6g}, delta={float(ledger.delta):.6g},"
        f" composition={ledger.composition!r}, unit={ledger.unit!r}, neighbours={ledger.neighbours!r})"
    )
    names = list(rows[-1][1])
    width = max(len(name) for name in ["release", *(row[0] for row in rows)])
    lines = [f"  {'release':<{width}}" + "".join(f"{name:>{WIDTH}}" for name in names)]
    for name, amounts in rows:
        lines.append(f"  {name:<{width}}" + "".join(f"{as_float(amounts[key]):>{WIDTH}.4g}" for key in names))
    return "\n".join([head, *lines])


def written_ledger(ledger: PrivacyLedger, limits: Mapping[str, Amount], entries: Sequence[LedgerEntry]) -> str:
    """JSON; exact numbers are text."""
    content = {
        "userdp": "privacy ledger",
        "schema_version": SCHEMA_VERSION,
        **{name: _written(getattr(ledger, name)) for name in _PROMISE},
        "limits": {name: _written(value) for name, value in limits.items()},
        "entries": [
            {"name": entry.name, "cost": {name: _written(getattr(entry.cost, name)) for name in _COST}}
            for entry in entries
        ],
    }
    return json.dumps(content, allow_nan=False, indent=1)


def read_ledger(text: str) -> LedgerContent:
    """What `written_ledger` wrote.

    Raises
    ------
    ValueError
        For anything else.
    """
    try:
        content = json.loads(text)
        if content["userdp"] != "privacy ledger" or content["schema_version"] != SCHEMA_VERSION:
            raise ValueError("not a ledger of this version")
        arguments = {name: content[name] for name in _PROMISE}
        arguments |= {"epsilon": _amount(content["epsilon"]), "delta": _amount(content["delta"])}
        limits = {name: _amount(value) for name, value in content["limits"].items()}
        if content["composition"] == "zcdp":
            arguments |= {"added_delta": limits["delta"], "distance": limits["distance"]}
        entries = [(str(entry["name"]), _cost(entry["cost"])) for entry in content["entries"]]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the text is not a ledger as to_json writes it: {error}") from None
    return LedgerContent(arguments, limits, entries)


def _cost(content: Mapping[str, Any]) -> PrivacyCost:
    given = {name: None if content[name] is None else _amount(content[name]) for name in _COST}
    if given["epsilon"] == given["bounded_range"]:
        del given["epsilon"]
    return PrivacyCost(**given)  # type: ignore[arg-type]


def _written(value: Amount | str | None) -> str | None:
    if isinstance(value, LogRatio):
        return f"ln({_fraction_text(value.ratio)})"
    return _fraction_text(value) if isinstance(value, Fraction) else value


def _fraction_text(value: Fraction) -> str:
    # Hexadecimal for numbers that Python refuses to write in decimal.
    return "/".join(format(n, "d" if n.bit_length() < LONG_BITS else "#x") for n in value.as_integer_ratio())


def _amount(text: str) -> Amount:
    """A fraction, or the logarithm of one.

    Raises
    ------
    ValueError
        For anything else: decimals too, as those of a large exponent would fill the memory.
    """
    logarithm = text.startswith("ln(") and text.endswith(")")
    top, bottom = (int(number, 0) for number in (text[3:-1] if logarithm else text).split("/"))
    return LogRatio(top, bottom) if logarithm else Fraction(top, bottom)
