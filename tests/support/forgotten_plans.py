"""Plans are kept by their problem: tests that plant something behind a problem forget them before and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

from userdp.means.gaussian_account import GaussianAccount
from userdp.means.methods import plan_answers, planned_method
from userdp.optimization import clipped as module
from userdp.optimization.clipped import clipped_descent
from userdp.optimization.winsorized import winsorized_descent


@contextmanager
def forgotten_plans() -> Iterator[None]:
    """Plans are made anew within, and once for each problem."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cache in (planned_method, plan_answers, clipped_descent, winsorized_descent):
        cache.cache_clear()


LOUD = GaussianAccount("rho", Fraction(10**12))


@contextmanager
def little_noise() -> Iterator[None]:
    """Noise of 400 steps of a grid that divides the clipping radius by 2**28."""
    fair = module._noise_of_rounds
    quiet = patch.object(module, "_noise_of_rounds", lambda *a: replace(fair(*a), part=LOUD))
    with forgotten_plans(), quiet:
        yield
