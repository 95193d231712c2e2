"""Descent along winsorized mean gradients, by schedules with proved bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from userdp._numbers import Delta, Epsilon, positive, shown
from userdp.estimation._methods import METHODS
from userdp.learners._ranges import open_unit_interval
from userdp.optimization._constraints import Constraint, length
from userdp.optimization._descent import DescentPlan, DescentProblem, number_of_rounds
from userdp.optimization._estimators import Descent, PublicRandomEstimator
from userdp.optimization._gradient_plans import VARIANTS, GradientOptions, winsorized_plan
from userdp.optimization._losses import Loss
from userdp.stability import PublicSeed

__all__ = ["WinsorizedGradientDescent", "check_gradient_parameters", "gradient_options"]

MOST_GRID_STEPS = 2**28
"""So that a user's integers fit into 32 bits."""


class WinsorizedGradientDescent(PublicRandomEstimator, Descent):
    """Gradient descent on mean gradients that are estimated privately where people's gradients concentrate.

    When people have many rows, their mean gradients are close to each other. The noise then follows from how close they
    are, not from how long a gradient could be.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, > 0.
    delta : float, int, Fraction or decimal string
        In [0, 1). With 0 each step spends epsilon / T; a positive one is far better.
    loss : LogisticLoss, SquaredLoss, SmoothedHingeLoss or CustomLoss
        Of a row. What is minimised is the mean over users of the mean loss of their rows.
    constraint : L2Ball or Box
        Where theta may be. Public.
    bound : float
        Rows of X that are longer in L2 are scaled to this norm. Public.
    target_bounds : tuple of two float
        Targets are clipped to it. Public.
    variant : {"convex", "convex-tail", "strongly-convex", "nonconvex"}
        The schedule, and what is proved of it; see Notes.
    method : {"auto", "iterated", "gaussian", "practical", "paper", "laplace", "tracking"}
        How a mean gradient is estimated: as in `userdp.estimation.WinsorizedMean`, or, "tracking", by clipping to a
        ball around the gradient that was released before, which pays when there are many rows of each user.
    steps : int, optional
        T. By default the power of two up to 256 whose bound is least.
    radius : float, optional
        The expected distance of a user's mean gradient from that of all users, public. By default sub_gaussian
        sqrt(d / m); for "paper" the tau of Proposition 1, put right (docs/errata.md).
    sub_gaussian : float, optional
        sigma: gradients of one row are sigma-sub-Gaussian. By default G / sqrt(d). Public.
    strong_convexity : float, optional
        mu > 0; by default `regularization`.
    gap : float, optional
        For "nonconvex": how far the loss at the start may be above its least value.
    gamma : float in (0, 1)
        How likely a range may be missed, in any of the steps.
    kappa : float
        For "tracking": the radius over what is expected.
    regularization : float
        lambda >= 0 of the term lambda |theta|^2 / 2, whose gradient is public and is added after the noise.
    fit_intercept : bool
    start : sequence of float, optional
        By default the centre of the constraint. Public.
    public_seed : PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional
        For public rotations and the public choice of a point in "nonconvex". None draws a fresh one in each fit.
    grid_steps : int, optional
        Steps of the public grid that a radius has, a power of two.
    m : int
        How many rows a user is expected to have; public. All rows of a user count.
    on_invalid : {"clamp", "raise"}
    require_groups : bool
    enrolled : sequence, optional
        The public list of all users.
    random_state : None or int
        None draws from the operating system; an int is for tests and voids privacy.

    Attributes
    ----------
    theta_ : ndarray with shape (d,)
        Released.
    public_seed_ : str
        Public.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbours differ in all the rows of one user. *Proof.* The points where
    gradients are asked for, the steps and the average are functions of public numbers and of what was released. Each
    round is one mean of users' vectors with its part of one account (docs/proofs/adaptive_queries.md).

    *Utility.* With nu the root mean square of the noise of a round, H the smoothness, R the largest distance from the
    start (docs/proofs/descent_schedules.md): "convex", the average of T points: excess at most
    H R^2 / (2 T) + sqrt(2) R nu / sqrt(T); "convex-tail", the average of the last half of them: at most twice that, and
    often far less; "strongly-convex", two phases:
    (H R^2 / T) (1 - mu / H)^(T/2) + 10 nu^2 / (mu T) for even T; "nonconvex", a random one of the points: the squared
    gradient mapping is at most 12 (H Delta / T + nu sqrt(H Delta / T)). They hold for unbiased noise, that is where
    nobody is clipped.

    References
    ----------
    LSAKKMS21, Algorithms 3 and 7, Theorem 3 and Proposition 4.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.optimization import L2Ball, LogisticLoss, WinsorizedGradientDescent
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(1000), 64)
    >>> X = rng.normal(size=(64_000, 2)) / 2
    >>> y = rng.random(64_000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> descent = WinsorizedGradientDescent(
    ...     epsilon=1, delta=1e-6, loss=LogisticLoss(), constraint=L2Ball(3.0), bound=1.5, target_bounds=(0, 1), m=64
    ... )
    >>> theta = descent.fit(X, y, groups=people).theta_
    >>> bool(theta[0] > 0.5), bool(abs(theta[1]) < 0.5)
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        loss: Loss,
        constraint: Constraint,
        delta: Delta = 0,
        bound: float = 1.0,
        target_bounds: tuple[float, float] = (-1.0, 1.0),
        variant: str = "convex",
        method: str = "auto",
        steps: int | None = None,
        radius: float | None = None,
        sub_gaussian: float | None = None,
        strong_convexity: float | None = None,
        gap: float | None = None,
        gamma: float = 0.01,
        kappa: float = 1.05,
        regularization: float = 0.0,
        fit_intercept: bool = False,
        start: Any = None,
        public_seed: PublicSeed | bytes | str | None = None,
        grid_steps: int | None = None,
        m: int | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.constraint = constraint
        self.delta = delta
        self.bound = bound
        self.target_bounds = target_bounds
        self.variant = variant
        self.method = method
        self.steps = steps
        self.radius = radius
        self.sub_gaussian = sub_gaussian
        self.strong_convexity = strong_convexity
        self.gap = gap
        self.gamma = gamma
        self.kappa = kappa
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.start = start
        self.public_seed = public_seed
        self.grid_steps = grid_steps
        self.m = m
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(map(repr, VARIANTS))}; got {shown(self.variant)}")
        check_gradient_parameters(self)

    def _plan_of(self, problem: DescentProblem) -> DescentPlan:
        return winsorized_plan(problem, gradient_options(self, variant=self.variant), self._seed())


def check_gradient_parameters(estimator: Any) -> None:
    """Refuse bad values of the parameters that descents along private mean gradients share."""
    methods = (*METHODS, "tracking")
    if estimator.method not in methods:
        raise ValueError(f"method must be one of {', '.join(map(repr, methods))}; got {shown(estimator.method)}")
    for name in ("radius", "sub_gaussian", "strong_convexity", "gap", "kappa"):
        value = getattr(estimator, name, None)
        if value is not None:
            length(value, name)
    open_unit_interval(estimator.gamma, "gamma")
    if estimator.steps is not None:
        number_of_rounds(estimator.steps, "steps")
    grid = 1 if estimator.grid_steps is None else positive(estimator.grid_steps, "grid_steps")
    if grid & (grid - 1) or grid > MOST_GRID_STEPS:
        raise ValueError(f"grid_steps must be a power of two up to 2**28; got {shown(estimator.grid_steps)}")


def gradient_options(estimator: Any, *, variant: str) -> GradientOptions:
    """The options that an estimator's parameters say."""

    def number(name: str) -> float | None:
        value = getattr(estimator, name, None)
        return None if value is None else float(value)

    return GradientOptions(
        variant=variant,
        method=estimator.method,
        steps=None if estimator.steps is None else int(estimator.steps),
        spread=number("radius"),
        sub_gaussian=number("sub_gaussian"),
        strong_convexity=number("strong_convexity"),
        gap=number("gap"),
        gamma=float(estimator.gamma),
        kappa=float(estimator.kappa),
        grid_steps=None if estimator.grid_steps is None else int(estimator.grid_steps),
    )
