"""Numbers far beyond others are answered or refused by name."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from support import sweep

FAR: tuple[Any, ...] = (10**400, Fraction(1, 10**400), 10**30, 10**9, 10**5, "1e-300")
CALLS = [
    ("accounting.gaussian_delta", "epsilon"),
    ("accounting.largest_mu2", "epsilon"),
    ("accounting.PLD(normal).self_compose", "count"),
    ("accounting.PrivacyLedger(exact)", "epsilon"),
    ("concepts.boosted_size", "base_log_size"),
    ("dimensions.representation_runs", "n_users"),
    ("distributions.DiscreteDistribution.fit", "n_symbols"),
    ("distributions.GaussianMean.fit", "mean_bound"),
    ("distributions.ProductDistribution.fit", "n_columns"),
    ("distributions.ProductDistribution.fit", "n_symbols"),
    ("item_to_user.suggested_item_level", "m"),
    ("learners.PrivateMedian", "m"),
    ("learners.candidates_for_t", "m"),
    ("learners.uniform_convergence_users", "alpha"),
    ("learners.uniform_convergence_users", "vc_dimension"),
    ("means.concentration_radius", "m"),
    ("means.WinsorizedMean.fit", "max_norm"),
    ("means.concentration_radius", "max_norm"),
    ("mechanisms.SetUnion.certified_delta", "variance"),
    ("planning.compare_methods", "delta"),
    ("planning.compare_methods", "dimension"),
    ("planning.compare_methods", "epsilon"),
    ("planning.heterogeneity_bound", "max_loss"),
    ("planning.user_complexity", "alpha"),
    ("stability.filter_examples", "alpha"),
    ("stability.filter_examples", "list_size"),
    ("stability.list_parameters", "list_eta"),
    ("stability.list_parameters", "list_size"),
    ("stability.representation_parameters", "alpha"),
    ("stability.representation_parameters", "size"),
    ("stability.version_space_examples", "size"),
    ("tables.Session.release(basic)", "max_total"),
]


@pytest.mark.parametrize(("name", "argument"), CALLS)
def test_far_numbers_are_answered_or_refused(name: str, argument: str) -> None:
    case = sweep.CASES[name]
    for number in FAR:
        found = sweep.outcome(name, {**case.arguments, argument: number})
        assert found.kind in ("value", "refused"), found


def test_the_sweep_begins_with_calls_that_are_answered() -> None:
    for name in list(sweep.CASES)[::9]:
        found = sweep.outcome(name, sweep.CASES[name].arguments)
        assert found.kind == "value", found
