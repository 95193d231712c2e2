"""Privacy loss distributions as JSON: the releases and their exact parameters, and nothing that was computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

from userdp.accounting.losses import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FixedSampleGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    LossTable,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    SampledGaussianLoss,
    TableLoss,
    same_curves,
)
from userdp.accounting.refinement import Parts
from userdp.checker import values
from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import Neighbors, short_repr
from userdp.report.base import MALFORMED
from userdp.report.fields import COUNT, FLAG, FRACTION, LEVEL, WHOLE, Codec, many

Made = TypeVar("Made")

FORMAT = "userdp-privacy-loss/1"
MOST_CHARACTERS = 2**28
LONGEST_NUMBER = 2**19
"""Digits of a fraction."""
MOST_OUTCOMES = 2**22
MOST_RELEASES = 2**16
"""Kinds of releases in a text."""


def _place(code: Any) -> int:
    values.need(type(code) is int and abs(code) < 2**62, f"{code!r:.60} is not an integer of 62 bits")
    return int(code)


def _table(code: Any) -> LossTable:
    values.need(isinstance(code, dict) and set(code) == {"low", "weights", "infinity"}, "fields of a table are missing")
    table = LossTable(_place(code["low"]), many(WHOLE).read(code["weights"]), WHOLE.read(code["infinity"]))
    values.need(0 < len(table.weights) <= MOST_OUTCOMES, "a table has no losses, or too many")
    values.need(sum(table.weights) + table.infinity > 0, "a table has no mass")
    return table


TABLE = Codec(
    lambda table: {
        "low": table.low,
        "weights": many(WHOLE).write(table.weights),
        "infinity": WHOLE.write(table.infinity),
    },
    _table,
)
KINDS: Mapping[str, tuple[type[ReleaseLoss], Mapping[str, Codec]]] = {
    "pair": (PairLoss, {"p": many(WHOLE), "q": many(WHOLE), "attained": FLAG, "symmetric": FLAG}),
    "pure": (PureLoss, {"epsilon": LEVEL, "delta": FRACTION}),
    "discrete-laplace": (DiscreteLaplaceLoss, {"rate": LEVEL, "shift": COUNT}),
    "discrete-gaussian": (DiscreteGaussianLoss, {"sigma_squared": FRACTION, "shift": COUNT}),
    "bounded-range": (BoundedRangeLoss, {"range": LEVEL}),
    "laplace": (LaplaceLoss, {"epsilon": LEVEL}),
    "gaussian": (GaussianLoss, {"mu_squared": FRACTION, "count": COUNT}),
    "gaussian-poisson": (SampledGaussianLoss, {"mu_squared": FRACTION, "rate": FRACTION}),
    "gaussian-fixed-size": (FixedSampleGaussianLoss, {"mu_squared": FRACTION, "rate": FRACTION}),
    "table": (TableLoss, {"step": FRACTION, "forward": TABLE, "backward": TABLE}),
}
NAMES = {made: name for name, (made, _) in KINDS.items()}


def text_of(parts: Parts, neighbors: Neighbors | None, distance: Fraction, only_above: bool) -> str:
    """All that a privacy loss distribution is."""
    releases = []
    for part, times in parts:
        name = NAMES[type(part)]
        written = {field: codec.write(getattr(part, field)) for field, codec in KINDS[name][1].items()}
        releases.append({"kind": name, "times": times, "release": written})
    whole = {
        "format": FORMAT,
        "neighbors": neighbors,
        "distance": FRACTION.write(distance),
        "releases": releases,
    }
    if only_above:
        whole["only_above"] = True
    return values.text_of(whole)


def read(text: Any, make: Callable[[Parts, Any, Fraction, bool], Made]) -> Made:
    """What is made of a text's releases, neighbors and distance, with every parameter checked as a caller's is."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, as to_json writes it; got {short_repr(text)}")
    try:
        values.need(len(text) <= MOST_CHARACTERS, f"it has more than {MOST_CHARACTERS} characters")
        whole = json.loads(text)
        values.need(isinstance(whole, dict) and whole.get("format") == FORMAT, f"its format is not {FORMAT}")
        only_above = FLAG.read(whole.pop("only_above", False))
        values.need(set(whole) == {"format", "neighbors", "distance", "releases"}, "fields missing or unknown")
        distance = _short(FRACTION, whole["distance"])
        values.need(0 <= distance <= 1, "its distance is not from 0 to 1")
        releases = whole["releases"]
        values.need(isinstance(releases, list) and 0 < len(releases) <= MOST_RELEASES, "it has no list of releases")
        parts = tuple(_release(release, whole["neighbors"]) for release in releases)
        values.need(len({part for part, _ in parts}) == len(parts), "a release is in its list twice")
        return make(parts, whole["neighbors"], distance, only_above)
    except MALFORMED as error:
        raise ValueError(f"the text is not a privacy loss distribution as to_json writes it: {error}") from None


def _short(codec: Codec, code: Any) -> Any:
    """What a code stands for, where no number in it takes long to read."""
    longest = max((len(part) for part in _texts(code)), default=0)
    values.need(longest <= LONGEST_NUMBER, f"it has a number of {longest} characters")
    return codec.read(code)


def _texts(code: Any) -> list[str]:
    if isinstance(code, dict):
        return [text for part in code.values() for text in _texts(part)]
    if isinstance(code, list):
        return [text for part in code for text in _texts(part)]
    return [code] if isinstance(code, str) else []


def _release(code: Any, neighbors: Any) -> tuple[ReleaseLoss, int]:
    values.need(isinstance(code, dict) and set(code) == {"kind", "times", "release"}, f"{code!r:.60} is no release")
    kind, times, release = code["kind"], values.count(code["times"], "times", 1), code["release"]
    values.need(isinstance(kind, str) and kind in KINDS, f"{kind!r:.60} is no kind of release")
    made, written = KINDS[kind]
    values.need(isinstance(release, dict) and set(release) == set(written), f"fields missing or unknown in {kind}")
    part = made(**{name: _short(codec, release[name]) for name, codec in written.items()})
    _check(part, neighbors)
    return part, times


def _check(part: ReleaseLoss, neighbors: Any) -> None:
    """Refuse what no constructor makes."""
    for field in fields(part):  # type: ignore[arg-type]
        level = getattr(part, field.name)
        mixed = field.name in ("epsilon", "rate", "range") and not isinstance(level, Fraction)
        values.need(
            not mixed or level.ratio == 1 or not level.exponent, "an epsilon is a number, or a logarithm of one"
        )
    if isinstance(part, PairLoss):
        values.need(0 < len(part.p) == len(part.q) <= MOST_OUTCOMES, "a pair has lists of different lengths, or none")
        values.need(sum(part.p) > 0 < sum(part.q), "a distribution of a pair has no mass")
        values.need(not part.symmetric or same_curves(part.p, part.q), "a pair is not symmetric, as it says")
    elif isinstance(part, PureLoss):
        PureLoss.checked(as_epsilon(part.epsilon), part.delta)
    elif isinstance(part, DiscreteLaplaceLoss):
        DiscreteLaplaceLoss.checked(as_epsilon(part.rate), part.shift)
    elif isinstance(part, DiscreteGaussianLoss):
        DiscreteGaussianLoss.checked(part.sigma_squared, part.shift)
    elif isinstance(part, BoundedRangeLoss):
        BoundedRangeLoss.checked(as_epsilon(part.range))
    elif isinstance(part, LaplaceLoss):
        LaplaceLoss.checked(as_epsilon(part.epsilon))
    elif isinstance(part, GaussianLoss):
        GaussianLoss.checked(part.mu_squared)
        values.need(part.count >= 1, "a Gaussian release is made at least once")
    elif isinstance(part, (SampledGaussianLoss, FixedSampleGaussianLoss)):
        GaussianLoss.checked(part.mu_squared)
        values.need(Fraction(1, 2**30) <= part.rate <= 1, "a rate is from 2**-30 to 1")
        wanted = "add-remove" if isinstance(part, SampledGaussianLoss) else "replace"
        values.need(neighbors == wanted, f"such samples are for neighbors={wanted!r}")
    elif isinstance(part, TableLoss):
        values.need(
            neighbors == "add-remove" or part.symmetric, "a table for 'replace' has the same losses in both orders"
        )
        part.release(2, False), part.release(2, True)  # refuses a step that is out of range
