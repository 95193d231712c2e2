"""Gradients and clipped sums by the book: fractions throughout, one number at a time, but for roots and e^x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[Fraction]


def slope(loss: str, parameter: Fraction, prediction: Fraction, target: Fraction) -> Fraction:
    """The derivative of the loss in the prediction."""
    if loss == "squared":
        residual = prediction - target
        return max(-parameter, min(parameter, residual))
    sign = 1 if target > 0 else -1
    margin = sign * prediction
    if loss == "hinge":
        if margin >= 1:
            return Fraction(0)
        return -sign * min(Fraction(1), (1 - margin) / parameter)
    if loss == "logistic":
        return Fraction(-sign / (1 + math.exp(margin)))
    raise ValueError(loss)


def mean_gradient(
    loss: str,
    parameter: Fraction,
    theta: Row,
    rows: Sequence[Row],
    targets: Sequence[Fraction],
    bound: Fraction,
    intercept: bool,
) -> list[Fraction]:
    """The mean over one user's rows; rows beyond the bound are scaled to it."""
    total = [Fraction(0)] * len(theta)
    for row, target in zip(rows, targets, strict=True):
        norm = Fraction(math.sqrt(sum(x * x for x in row)))
        scaled = [x * bound / norm if norm > bound else x for x in row] + [Fraction(1)] * intercept
        weight = slope(loss, parameter, sum((x * t for x, t in zip(scaled, theta, strict=True)), Fraction(0)), target)
        total = [before + weight * x for before, x in zip(total, scaled, strict=True)]
    return [entry / len(rows) for entry in total]
