"""Public sets of parameters: nearest points, and bad ones refused; and bad losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.estimators.saving import _read, _written
from userdp.optimization import Box, CustomLoss, L2Ball, LogisticLoss, SmoothedHingeLoss, SquaredLoss

SETS = [L2Ball(1.5), L2Ball(0.5, (1.0, -1.0, 0.0)), Box(-1, 2), Box((-1, 0, 1), (0, 0, 3)), Box(-1, (0, 1, 2))]


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_projection_is_the_nearest_point(constraint: Any) -> None:
    rng = np.random.default_rng(0)
    inside = [constraint.project(point) for point in rng.normal(size=(300, 3)) * 3]
    for point in rng.normal(size=(50, 3)) * 4:
        nearest = constraint.project(point)
        assert np.allclose(constraint.project(nearest), nearest, rtol=1e-15)
        assert np.linalg.norm(nearest - constraint.middle(3)) <= constraint.reach(3) * (1 + 1e-15)
        # The angle at a projection is obtuse for every point of the set, and for no other point.
        assert all((point - nearest) @ (other - nearest) < 1e-12 for other in inside)


def test_points_of_the_set_stay() -> None:
    point = np.array([0.1, 0.2, 0.3])
    for constraint in (L2Ball(1.0), Box(-1.0, 1.0)):
        projected = constraint.project(point)
        assert projected.tolist() == point.tolist()
        assert projected is not point


@pytest.mark.parametrize("constraint", [*SETS, SquaredLoss(), SquaredLoss(2.0), SmoothedHingeLoss(0.3), LogisticLoss()])
def test_saved_as_json(constraint: Any) -> None:
    again = _read(_written(constraint))
    assert again == constraint
    assert hash(again) == hash(constraint)
    assert repr(again) == repr(constraint)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: L2Ball(0), ValueError, "radius must be > 0"),
        (lambda: L2Ball(float("inf")), ValueError, "radius"),
        (lambda: L2Ball("a"), ValueError, "radius"),
        (lambda: L2Ball(1, (np.nan,)), ValueError, "center"),
        (lambda: L2Ball(1, (0, 0)).project([1.0]), ValueError, "center must have 1 entries"),
        (lambda: Box(1, 0), ValueError, "low must be <= high"),
        (lambda: Box((0, 1), (1, 2, 3)), ValueError, "as many"),
        (lambda: Box(0, (1, 2)).project([0.0]), ValueError, "high must have 1 entries"),
        (lambda: Box(np.zeros((2, 2)), 1), ValueError, "low"),
        (lambda: SquaredLoss(0), ValueError, "residual must be > 0"),
        (lambda: SmoothedHingeLoss(-1.0), ValueError, "width must be > 0"),
        (lambda: CustomLoss(3, lipschitz=1, smoothness=1), TypeError, "gradient must be a callable"),  # type: ignore
        (lambda: CustomLoss(abs, lipschitz=0, smoothness=1), ValueError, "lipschitz"),  # type: ignore[arg-type]
        (lambda: CustomLoss(abs, lipschitz=1, smoothness=None), TypeError, "smoothness"),  # type: ignore
    ],
)
def test_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
