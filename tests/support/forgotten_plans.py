"""Plans are kept by their problem: tests that plant something behind a problem forget them before and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from userdp.means.answers import plan_answers
from userdp.means.methods import planned_method
from userdp.optimization.clipped import clipped_plan
from userdp.optimization.winsorized import winsorized_plan


@contextmanager
def forgotten_plans() -> Iterator[None]:
    """Plans are made anew within, and once for each problem."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cache in (planned_method, plan_answers, clipped_plan, winsorized_plan):
        cache.cache_clear()
