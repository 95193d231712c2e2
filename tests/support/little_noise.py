"""Clipped descents with next to no noise: where they go is then known. Not what their privacy records say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

from support.forgotten_plans import forgotten_plans
from userdp.optimization import clipped as module


@contextmanager
def little_noise() -> Iterator[None]:
    """Noise of 400 steps of a grid that divides the clipping radius by 2**28."""
    fair = module._noise_of_rounds
    quiet = patch.object(module, "_noise_of_rounds", lambda *a: replace(fair(*a), rho=Fraction(10**12)))
    with forgotten_plans(), quiet:
        yield
