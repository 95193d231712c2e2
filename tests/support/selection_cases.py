"""What the tests of the private selections share: shared cases, selections of a given half-width, and audits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from oracle.selection import truncated_laplace
from userdp import BOTTOM, LogRatio, Pmf
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.mechanisms import ApproximatePrivateMode

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/selection.json").read_text())["cases"]


def cases(kind: str) -> list[Any]:
    found = [case for case in CASES if case["kind"] == kind]
    assert found
    return found


def approximate(q: Fraction, t: int, neighbors: Any = "add-remove") -> ApproximatePrivateMode:
    """Noise next to P[x] = q^|x| / Z on -t, ..., t, calibrated at ln(1 / q) for each item that may change."""
    items = 2 if neighbors == "replace" else 1
    ends, wider = (truncated_laplace(q, width)[0] if width else F(1, 3) for width in (t, t - 1))
    level = (1 / q) ** items
    selection = ApproximatePrivateMode(
        epsilon=LogRatio(level.numerator, level.denominator), delta=items * (ends + wider) / 2, neighbors=neighbors
    )
    assert selection.half_width == t
    return selection


def noise_of(selection: ApproximatePrivateMode) -> list[Fraction]:
    return selection._noise.pmf().fractions()


def audited(
    selection: Any, items: Sequence[Any], n: int, epsilon: Any, delta: Any, neighbors: str, distribution: Any = None
) -> Any:
    """All data of n users with these items, against all neighbors; `pmf` from counts, in place of the selection's."""
    outputs = (*items, BOTTOM)

    def pmf(dataset: Any) -> Pmf:
        counts = selection.tally([user[0] for user in dataset])
        if distribution is not None:
            return Pmf.from_weights(distribution([counts[item] for item in items]), outputs)
        found = selection.pmf(counts)
        weight_of = dict(zip(found.outputs, found.weights, strict=True))
        return Pmf(outputs, tuple(weight_of.get(output, 0) for output in outputs))

    return audit_user_level(
        SymmetricAlgorithm(outputs, pmf),
        universe=tuple(items),
        n_users=n,
        n_examples=1,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,  # type: ignore[arg-type]
    )
