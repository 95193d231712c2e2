"""A tiny auditor by brute force, independent of userdp, writing reports as docs/report-format.md defines.

Engines are quotients: whatever the engine, neighbors are found among all labeled datasets, by comparing
every two of them, and then mapped to the engine's datasets. Least epsilons come from trying all events.
"""

from __future__ import annotations

import decimal
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Pmf = Callable[[tuple[Any, ...]], Sequence[Fraction]]
ASSUMED = {"labeled": [], "symmetric": ["symmetry"], "additive": ["additivity"]}
CONTEXT = decimal.Context(prec=800, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def multiplier(ratio: Fraction, exponent: Fraction) -> Fraction:
    """Return e^epsilon, exactly or to 800 digits; beyond e^10000 any number beyond all ratios will do."""
    if exponent == 0:
        return ratio
    if exponent > 10**4:
        return Fraction(10**4000)
    power = CONTEXT.exp(CONTEXT.divide(decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator)))
    return ratio * Fraction(power)


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], level: Fraction) -> Fraction:
    return sum((max(Fraction(0), a - level * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def outward(low: Fraction, high: Fraction) -> list[float]:
    """Round outwards to floats."""
    below, above = float(low), float(high)
    below = below if Fraction(below) <= low else math.nextafter(below, -math.inf)
    return [below, above if Fraction(above) >= high else math.nextafter(above, math.inf)]


def least_multiplier(pmfs: Sequence[Sequence[Fraction]], pairs: Iterable[tuple[int, int]], delta: Fraction) -> Any:
    """Return the smallest E >= 1 with P(S) - E Q(S) <= delta for all events and pairs; None if none."""
    least = Fraction(1)
    for i, j in pairs:
        for p, q in ((pmfs[i], pmfs[j]), (pmfs[j], pmfs[i])):
            for event in itertools.product((0, 1), repeat=len(p)):
                mass_p = sum((m for m, inside in zip(p, event, strict=True) if inside), Fraction(0))
                mass_q = sum((m for m, inside in zip(q, event, strict=True) if inside), Fraction(0))
                if mass_q:
                    least = max(least, (mass_p - delta) / mass_q)
                elif mass_p > delta:
                    return None
    return least


def encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [encode(member) for member in value]
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    return value if value is None or isinstance(value, (bool, int, str)) else {"repr": repr(value)}


def seal(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report with its digest computed again."""
    content = {name: value for name, value in report.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}


def population(
    kind: str, neighbors: str, engine: str, structure: dict[str, Any]
) -> tuple[list[tuple[Any, ...]], set[tuple[int, int]], int]:
    """Return a labeled dataset for each rank, the pairs of ranks, and how many pairs count."""
    if kind == "pair":
        return [structure["x"], structure["x2"]], {(0, 1)}, 1
    if kind == "dataset":
        base = structure["dataset"]
        changed = [
            (*base[:place], record, *base[place + 1 :])
            for place in structure["replaceable"]
            for record in structure["records"]
        ]
        return [base, *changed], {(0, rank + 1) for rank in range(len(changed))}, len(changed)

    n, values = (
        structure["n_users"],
        list(itertools.product(structure["universe"], repeat=structure["n_examples"])),
    )
    sizes = [n] if neighbors == "replace" else [n, n - 1]
    labeled = [x for size in sizes for x in itertools.product(range(len(values)), repeat=size)]

    def key(x: tuple[int, ...]) -> Any:
        if engine == "additive":
            return len(x) < n, sum(structure["statistics"][v] for v in x)
        return len(x) < n, (x if engine == "labeled" else tuple(sorted(x)))

    def adjacent(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
        if neighbors == "add-remove":
            return len(x) == len(y) + 1 and any(x[:i] + x[i + 1 :] == y for i in range(len(x)))
        differ = [(v, w) for v, w in zip(x, y, strict=True) if v != w]
        if kind == "item-level" and len(differ) == 1:
            v, w = differ[0]
            return [a != b for a, b in zip(values[v], values[w], strict=True)].count(True) == 1
        return len(differ) == 1

    # Universe members may be equal only by mistake, so value ranks stand for values.
    keys = sorted({key(x) for x in labeled})
    rank_of = {found: rank for rank, found in enumerate(keys)}
    first = {rank_of[key(x)]: x for x in reversed(labeled)}
    pairs = set()
    for x, y in itertools.product(labeled, repeat=2):
        if adjacent(x, y) and key(x) != key(y):
            a, b = rank_of[key(x)], rank_of[key(y)]
            pairs.add((min(a, b), max(a, b)))
    datasets = [tuple(values[v] for v in first[rank]) for rank in range(len(keys))]
    return datasets, pairs, len(pairs)


def audit(
    pmf: Pmf,
    outputs: tuple[Any, ...],
    *,
    kind: str,
    structure: dict[str, Any],
    neighbors: str = "replace",
    engine: str = "labeled",
    ratio: Fraction = Fraction(1),
    exponent: Fraction = Fraction(0),
    delta: Fraction = Fraction(0),
    pmf_error: Fraction = Fraction(0),
    mechanism: str = "mechanism",
) -> dict[str, Any]:
    """Audit by brute force and return the report."""
    datasets, pairs, counted = population(kind, neighbors, engine, structure)
    distributions = [tuple(Fraction(mass) for mass in pmf(x)) for x in datasets]
    pmfs = list(dict.fromkeys(distributions))
    pmf_of = [pmfs.index(distribution) for distribution in distributions]
    # Where masses are inexact, neighbors with the same stated pmf may differ in truth.
    named = {(pmf_of[a], pmf_of[b]) for a, b in pairs if pmf_of[a] != pmf_of[b] or pmf_error}
    pmf_pairs = sorted({(min(pair), max(pair)) for pair in named})

    level = multiplier(ratio, exponent)
    everyone = [pair for a, b in sorted(pairs) for pair in ((a, b), (b, a))]
    ordered = [pair for a, b in sorted(pairs) if pmf_of[a] != pmf_of[b] for pair in ((a, b), (b, a))]
    spread = (1 + pmf_error) / (1 - pmf_error)

    def worst(at: Fraction) -> Fraction:
        counted = everyone if pmf_error else ordered
        return max((hockey_stick(distributions[a], distributions[b], at) for a, b in counted), default=Fraction(0))

    least, most = (1 - pmf_error) * worst(level * spread), (1 + pmf_error) * worst(level / spread)
    witness = None
    if ordered:
        a, b = max(ordered, key=lambda pair: hockey_stick(distributions[pair[0]], distributions[pair[1]], level))
        event = [o for o, (p, q) in enumerate(zip(distributions[a], distributions[b], strict=True)) if p > level * q]
        witness = {"ranks": [a, b], "event": event}
    reached = least_multiplier(pmfs, pmf_pairs, delta)
    if reached is None:
        epsilon = [math.inf, math.inf]
    elif reached == 1:
        epsilon = [0.0, 0.0]
    else:
        log = CONTEXT.ln(CONTEXT.divide(decimal.Decimal(reached.numerator), decimal.Decimal(reached.denominator)))
        tiny = Fraction(log) / 10**700
        epsilon = outward(Fraction(log) - tiny, Fraction(log) + tiny)
    tiny = Fraction(0) if exponent == 0 or most == 0 else Fraction(1, 10**450)  # the multiplier has 800 digits
    return seal(
        {
            "format": "userdp-audit/3",
            "userdp_version": "oracle",
            "mechanism": mechanism,
            "question": {
                "kind": kind,
                "neighbors": neighbors,
                "engine": engine,
                "epsilon": {"ratio": str(ratio), "exponent": str(exponent)},
                "delta": str(delta),
                "pmf_error": str(pmf_error),
                "structure": {name: encode(part) for name, part in structure.items()},
            },
            "assumptions": ["pmf-as-stated", "canonical-users", *ASSUMED[engine]],
            "outputs": encode(outputs),
            "pmfs": [[str(mass) for mass in distribution] for distribution in pmfs],
            "pmf_of": pmf_of,
            "datasets": len(datasets),
            "pairs": counted,
            "pmf_pairs": [list(pair) for pair in pmf_pairs],
            "result": {
                "holds": True if most <= delta else False if least > delta else None,
                "worst_delta": [bound.hex() for bound in outward(max(least - tiny, Fraction(0)), most + tiny)],
                "epsilon": [bound.hex() for bound in epsilon],
                "exp_epsilon": None if reached is None else str(reached),
                "witness": witness,
            },
            "verification": "complete",
        }
    )
