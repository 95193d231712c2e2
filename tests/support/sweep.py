"""Every public function and method that takes numbers, with each number in turn at the ends of what is accepted.

``python -m support.sweep [PART OF A NAME ...]`` prints processor seconds, worst first, and what was no answer and
no refusal. Each call has a process of its own, with 4 GiB of addresses and `SECONDS` of processor.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import userdp
from userdp import (
    accounting,
    concepts,
    delstab,
    dimensions,
    distributions,
    divergence,
    exact,
    item_to_user,
    learners,
    means,
    mechanisms,
    model_selection,
    optimal,
    optimization,
    planning,
    public_randomness,
    stability,
    tables,
)

SECONDS = int(os.environ.get("SWEEP_SECONDS", 10))
ENDS: tuple[Any, ...] = (
    *("1e-300", 1e-300, "1e-9", "0.5", 0, 1, 1000, 10**5, 1e9, 10**9, 2**63, 10**30, 1e300),
    *(Fraction(1, 10**30), 1 - Fraction(1, 10**12), 10**400, Fraction(1, 10**400), -1),
)
PAIRS = ("1e-300", "1e-9", "0.1", 1, 100, 1000, 10**9)
Arguments = dict[str, Any]
PLD = accounting.PrivacyLossDistribution
P, Q = ["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"]
COLUMNS = tables.Schema(shop=tables.key(str), price=tables.number(0, 100), age=tables.integer(0, 120))
FRAME = {"id": [1, 2, 3], "shop": ["a", "b", "a"], "price": [1.0, 2.0, 3.0], "age": [1, 2, 3]}
BITS = [[0, 1, 0], [1, 1, 0], [0, 0, 1]]


class Case(NamedTuple):
    call: Callable[..., Any]
    arguments: Arguments


def on(make: Callable[[], Any], method: str) -> Callable[..., Any]:
    """A method of an object that is made in the process of the call."""
    return lambda **arguments: getattr(make(), method)(**arguments)


def methods(name: str, make: Callable[[], Any], listed: Mapping[str, Arguments]) -> dict[str, Case]:
    return {f"{name}.{method}": Case(on(make, method), arguments) for method, arguments in listed.items()}


def session(epsilon: Any = 1, delta: Any = "1e-6", composition: Any = None, added_delta: Any = None) -> tables.Session:
    options = {} if composition is None else {"composition": composition, "added_delta": added_delta}
    return tables.Session(FRAME, user="id", schema=COLUMNS, epsilon=epsilon, delta=delta, **options)


def planned(max_keys: Any, epsilon: Any, delta: Any, composition: Any = None) -> Any:
    added = None if composition is None else Fraction(delta) / 2 if not isinstance(delta, float) else delta / 2
    query = tables.Query().group_by("shop", max_keys=max_keys).agg(n=tables.count_users())
    return session(epsilon, delta, composition, added).plan(query)


def keys_planned(max_keys: Any, epsilon: Any, delta: Any) -> Any:
    return session(epsilon, delta).plan(tables.Query().group_by("shop", max_keys=max_keys).keys_only())


def released(n_edges: Any, max_rows: Any, max_total: Any, epsilon: Any, delta: Any, composition: Any = None) -> Any:
    cut = np.linspace(0, 100, n_edges).tolist()
    query = tables.Query().agg(
        rows=tables.count_rows(max_rows),
        total=tables.sum("price", max_total=max_total),
        h=tables.histogram("price", cut),
    )
    return session(epsilon, delta, composition).release(query, random_state=0)


def quantiled(share: Any, epsilon: Any, steps: Any, high: Any) -> Any:
    schema = tables.Schema(price=tables.number(0, high, steps=steps))
    made = tables.Session(FRAME, user="id", schema=schema, epsilon=epsilon)
    return made.release(tables.Query().agg(q=tables.quantile("price", share)), random_state=0)


def slotted(count: Any, loss: Any, epsilon: Any, delta: Any) -> Any:
    return accounting.PrivacyLedger(epsilon, delta, composition="exact", slots=[(PLD.pure(loss), count)])


def ledger() -> accounting.PrivacyLedger:
    return accounting.PrivacyLedger(1, "1e-6", composition="zcdp", added_delta="1e-7")


def spent(**cost: Any) -> Any:
    return ledger().can_spend(accounting.PrivacyCost(**cost))


def certified(**arguments: Any) -> Any:
    made = mechanisms.SparseHistogram(**arguments)
    return made.certified_delta, made.cost


def fit(make: Callable[..., Any], labels: bool = False) -> Callable[..., Any]:
    """Plan and fit on ten users of two rows."""

    def run(**arguments: Any) -> Any:
        made = make(**arguments, random_state=0)
        x = np.linspace(0, 1, 20).reshape(-1, 1)
        groups = np.repeat(np.arange(10), 2)
        y = (np.arange(20) % 2) if labels else None
        return made.fit(x, y, groups=groups) if y is not None else made.fit(x, groups=groups)

    return run


E1: Arguments = {"epsilon": 1}
ED: Arguments = {"epsilon": 1, "delta": "1e-6"}
SUBSETS: Arguments = {"epsilon": 1, "delta": "1e-6", "m": 4, "beta": "0.01"}
LOSSES = {
    "pure": lambda: PLD.pure("0.1", "1e-7", neighbors="replace"),
    "pairs": lambda: PLD.from_pmfs(P, Q, neighbors="replace"),
    "laplace": lambda: PLD.discrete_laplace("0.1", 2, neighbors="replace"),
    "normal": lambda: PLD.gaussian(10, neighbors="replace"),
    "discrete normal": lambda: PLD.discrete_gaussian(100, neighbors="replace"),
    "sampled": lambda: PLD.gaussian(2, neighbors="add-remove").poisson("0.01"),
}
SQUARED = optimization.SquaredLoss()
BALL = optimization.L2Ball(2.0)


def _cases() -> Iterator[tuple[str, Case]]:
    a, m, i = accounting, mechanisms, item_to_user
    functions: dict[Callable[..., Any], Arguments] = {
        a.gaussian_delta: {"mu2": 1, "epsilon": 1, "distance": 0},
        a.largest_mu2: {**ED, "distance": 0, "added_delta": 0},
        a.largest_rho: {**ED, "distance": 0},
        a.zcdp_delta: {"rho": "0.1", "epsilon": 1, "distance": 0},
        a.zcdp_epsilon: {"rho": "0.1", "delta": "1e-6", "distance": 0},
        a.zcdp_group_privacy: {"rho": "0.1", "k": 3},
        a.pure_to_zcdp: E1,
        a.bounded_range_to_zcdp: E1,
        a.bounded_range_to_mu2: E1,
        a.compose_advanced: {"epsilon": "0.1", "k": 10, "delta_slack": "1e-6", "delta_each": 0},
        a.compose_optimal: {"epsilon": "0.1", "k": 10, "delta": "1e-6", "delta_each": 0},
        a.optimal_delta: {"epsilon_each": "0.1", "k": 10, "epsilon": "0.5", "delta_each": 0},
        a.largest_epsilon_each: {"k": 10, **ED, "delta_each": 0},
        a.dimension_epsilon: {**ED, "dimension": 10},
        a.group_privacy: {**ED, "k": 3},
        a.triangle_inequality: {"epsilon1": 1, "delta1": "1e-6", "epsilon2": "0.5", "delta2": "1e-6"},
        a.subsampling_amplification: {**ED, "n_sampled": 10, "n_total": 100},
        a.subsampling_population: {"epsilon": 1, "n_sampled": 10, "target": "0.1", "multiple_of": 1},
        a.PrivacyCost: {**ED, "rho": "0.1", "distance": 0, "bounded_range": 1, "mu2": "0.1", "added_delta": 0},
        i.deletion_level: {"epsilon": "0.1", "delta": "1e-9", "n_users": 100, "deletions": 3, "m": 4, "beta": "0.01"},
        i.generalization_level: {"epsilon": "0.1", "delta": "1e-9", "n_items": 100, "beta": "0.01"},
        i.largest_item_epsilon: {**SUBSETS, "item_delta": 0, "n_users": 100, "deletions": 3},
        i.plan_user_level: {**SUBSETS, "n_items": 100, "item_epsilon": "0.1", "item_delta": "1e-9"},
        i.simplex_grid: {"size": 3, "resolution": 4},
        i.suggested_item_level: {"epsilon": 1.0, "delta": 1e-6, "m": 4},
        m.tdlap_half_width: ED,
        m.keyed_sensitivity: {"n_keys": 10, "max_keys": 3, "low": 0, "high": 5, "neighbors": "replace"},
        m.SetUnion.calibrated: {**ED, "max_keys": 3, "first_share": "0.1"},
        m.SetUnion.within: {"rho": "0.02", "added_delta": "1e-6", "max_keys": 3, "first_share": "0.1"},
        m.SparseHistogram.calibrated: {**ED, "max_keys": 3, "target": "0.5"},
        m.PlannedPrivateMode.users_needed: {"epsilon": 1, "n_items": 5, "agreement": "0.9", "beta": "0.01"},
        stability.agreement_from_stability: {"eta": "0.9", "nu": "0.9"},
        stability.stability_from_agreement: {"agreement": "0.95", "eta": "0.9"},
        stability.filter_examples: {"list_size": 5, "alpha": "0.1", "zeta": "0.1"},
        stability.version_space_examples: {"size": 5, "alpha": "0.1"},
        stability.list_parameters: {"list_size": 5, "list_eta": "0.1", "eta": "0.9", "nu": "0.9"},
        stability.representation_parameters: {"size": 5, "alpha": "0.1", "beta": "0.1", "eta": "0.9", "nu": "0.9"},
        concepts.boosted_size: {"alpha": 0.1, "beta": 0.1, "base_log_size": 3.0},
        concepts.HashedPointFunctions: {"domain_size": 100, "alpha": 0.1, "beta": 0.1, "seed": bytes(32)},
        dimensions.representation_runs: {"n_users": 10, **ED, "beta": "0.1", "failure": "0.1"},
        dimensions.users_implied: {"size": 10, **ED, "beta": "0.1", "failure": "0.1"},
        learners.candidates_for_t: {"m": 8},
        learners.best_separating_threshold: {"m": 8, "p": "0.3", "q": "0.6"},
        learners.uniform_convergence_users: {"vc_dimension": 3, "m": 4, "alpha": 0.1, "beta": 0.1},
        learners.PrivateCompare: {"epsilon": 1, "n_users": 10, "alpha": "0.1"},
        learners.PrivateMinError: {"epsilon": 1, "n_users": 10, "alpha": "0.1"},
        learners.PrivateMistakeTolerance: {"epsilon": 1, "n_users": 10},
        learners.PrivateMedian: {"epsilon": 1, "m": 2, "domain_size": 10},
        planning.users_from_item_level: {"item_users": 100, "m": 4},
        planning.fano_users: {"n_distributions": 10, **ED, "beta": "0.1", "m": 2, "tv": "0.1"},
        planning.heterogeneity_bound: {"excess": 0.1, "n_users": 10, "m": 2, "distance": "0.1", "max_loss": 1.0},
        planning.selection_users: {"n_items": 3, "agreement": "0.9", **ED, "beta": "0.1"},
        optimal.OptimalSelection: {"n_items": 2, "n_users": 3, "epsilon": 1, "delta": 0},
        optimal.agreement_certificate: {"n_users": 3, "n_items": 2, "agreement": Fraction(9, 10), "epsilon": 1},
        optimization.SmoothedHingeLoss: {"width": 0.5},
        optimization.L2Ball: {"radius": 1.0},
        model_selection.UserKFold: {"n_splits": 3},
        model_selection.UserShuffleSplit: {"n_splits": 3, "test_size": 0.2},
        exact.LogRatio: {"numerator": 3, "denominator": 2},
        userdp.audit.one_run_epsilon: {"n_canaries": 100, "n_guesses": 50, "n_right": 40, "delta": 0, "alpha": "0.05"},
        tables.integer: {"low": 0, "high": 10},
        tables.number: {"low": 0.0, "high": 10.0, "steps": 1024},
        tables.count_rows: {"max_rows": 3},
    }
    for function, arguments in functions.items():
        package = function.__module__.split(".")[1]
        yield f"{package}.{function.__qualname__}", Case(function, dict(arguments))
    yield (
        "means.concentration_radius",
        Case(
            lambda **k: means.concentration_radius("ball", **k), {"m": 4, "n_users": 10, "gamma": 0.01, "max_norm": 1.0}
        ),
    )
    divergences = (divergence.hockey_stick, divergence.hockey_stick_bounds)
    for pair in divergences:
        yield f"divergence.{pair.__name__}", Case(lambda f=pair, **k: f(P, Q, **k), E1)
    yield "divergence.is_indistinguishable", Case(lambda **k: divergence.is_indistinguishable(P, Q, **k), ED)
    yield "divergence.epsilon_at_delta", Case(lambda **k: divergence.epsilon_at_delta(P, Q, **k), {"delta": "0.1"})
    yield "divergence.renyi_divergence", Case(lambda **k: divergence.renyi_divergence(P, Q, **k), {"order": 2})
    yield "divergence.privacy_profile", Case(lambda e: divergence.privacy_profile(P, Q, [0, e]), {"e": 1})
    yield "lddp.pairwise_indistinguishable", Case(lambda **k: userdp.pairwise_indistinguishable([P, Q], **k), ED)
    yield "exact.exact_pmf", Case(lambda x, bits: exact.exact_pmf(logits=[0.0, x], bits=bits), {"x": 1.0, "bits": 64})
    # --- privacy losses
    constructors: dict[str, Arguments] = {
        "pure": ED,
        "discrete_laplace": {"epsilon_per_unit": "0.1", "shift": 1},
        "discrete_gaussian": {"sigma_squared": 100, "shift": 1},
        "bounded_range": {"range": 1},
        "gaussian": {"sigma": 10, "sensitivity": 1},
    }
    for kind, arguments in constructors.items():
        yield (
            f"accounting.PLD.{kind}, delta at 1",
            Case(lambda kind=kind, **k: getattr(PLD, kind)(**k).self_compose(3).delta(1), arguments),
        )
    for kind, make in LOSSES.items():
        listed: dict[str, Arguments] = {
            "delta": E1,
            "epsilon": {"delta": "1e-6"},
            "is_private": ED,
            "within": {"distance": "1e-9"},
        }
        yield from methods(f"accounting.PLD({kind})", make, listed).items()
        yield (
            f"accounting.PLD({kind}).self_compose",
            Case(
                lambda count, delta, make=make: make().self_compose(count).epsilon(delta),
                {"count": 10, "delta": "1e-5"},
            ),
        )
        if kind not in ("sampled", "discrete normal"):
            yield (
                f"accounting.user_epsilon({kind})",
                Case(
                    lambda records, delta, make=make: a.user_epsilon(make(), records, delta),
                    {"records": 3, "delta": "1e-3"},
                ),
            )
            yield (
                f"accounting.PLD({kind}).poisson",
                Case(
                    lambda rate, make=make: PLD._of(make()._parts, "add-remove").poisson(rate).epsilon("1e-5"),
                    {"rate": "0.01"},
                ),
            )
            yield (
                f"accounting.PLD({kind}).without_replacement",
                Case(
                    lambda make=make, **k: make().without_replacement(**k).epsilon("1e-5"),
                    {"sampled": 10, "total": 1000},
                ),
            )
    # --- ledgers
    yield "accounting.PrivacyLedger", Case(lambda **k: a.PrivacyLedger(**k), ED)
    for composition in ("zcdp", "exact"):
        yield (
            f"accounting.PrivacyLedger({composition})",
            Case(
                lambda composition=composition, **k: a.PrivacyLedger(composition=composition, **k),
                {**ED, "added_delta": 0},
            ),
        )
    yield "accounting.PrivacyLedger, slots", Case(slotted, {"count": 10, "loss": "0.01", **ED})
    yield "accounting.PrivacyLedger.can_spend", Case(spent, {"epsilon": "0.01", "delta": "1e-9"})
    yield "accounting.PrivacyLedger.can_spend, rho", Case(spent, {"rho": "0.01", "distance": 0, "added_delta": 0})
    # --- mechanisms
    noises: dict[str, tuple[Callable[[], Any], dict[str, Arguments]]] = {
        "DiscreteGaussian": (
            lambda: m.DiscreteGaussian(sigma_squared=100),
            {"rho": {"sensitivity": 1}, "privacy_loss": {"sensitivity": 1, "dimension": 1}, "tail": {"x": 3}},
        ),
        "DiscreteLaplace": (
            lambda: m.DiscreteLaplace(scale=10, bounds=(0, 100)),
            {"privacy_loss": {"sensitivity": 1}, "tail": {"x": 3}, "pmf": {"value": 3}},
        ),
        "UnboundedDiscreteLaplace": (
            lambda: m.UnboundedDiscreteLaplace(scale=10),
            {"privacy_loss": {"sensitivity": 1}, "probability": {"x": 3}},
        ),
        "TruncatedDiscreteLaplace": (
            lambda: m.TruncatedDiscreteLaplace(epsilon=1, delta="1e-3"),
            {"privacy_loss": {"sensitivity": 1}},
        ),
        "ExponentialMechanism": (
            lambda: m.ExponentialMechanism(epsilon=1, sensitivity=1),
            {"certificate": {"n_candidates": 100}},
        ),
        "Geometric": (lambda: m.Geometric(p="0.1"), {"probability": {"x": 3}}),
        "PartitionSelection": (
            lambda: m.PartitionSelection(epsilon=1, delta="1e-5"),
            {"release_probability": {"count": 3}, "users_for": {"probability": "0.5"}},
        ),
        "SparseHistogram": (
            lambda: m.SparseHistogram(max_keys=2, threshold=50, epsilon=1, sigma_squared=40),
            {
                "delta": E1,
                "is_private": ED,
                "release_probability": {"count": 3},
                "users_for": {"probability": "0.5"},
                "interval": {"count": 60, "level": "0.95"},
            },
        ),
        "SetUnion": (
            lambda: m.SetUnion(max_keys=2, rounds=[(2**45, 2**25)], epsilon=1),
            {"delta": E1, "is_private": ED, "users_for": {"probability": "0.5", "keys": 2}},
        ),
        "CorrelatedCounts": (
            lambda: m.CorrelatedCounts(n_keys=10, max_keys=2, rho="0.1"),
            {"error": {"probability": "0.95"}},
        ),
        "PurePrivateMode": (
            lambda: m.PurePrivateMode(epsilon=1, n_items=5),
            {"accuracy": {"beta": "0.01"}, "users_needed": {"agreement": "0.9", "beta": "0.01"}},
        ),
        "ApproximatePrivateMode": (
            lambda: m.ApproximatePrivateMode(epsilon=1, delta="1e-6"),
            {"users_needed": {"agreement": "0.9", "beta": "0.01"}},
        ),
        "PrivateRange": (
            lambda: m.PrivateRange(epsilon=1, bound=10, width=1),
            {"interval": {"chosen": 3}, "steps": {"grid": "0.01"}},
        ),
    }
    for name, (make, listed) in noises.items():
        yield from methods(f"mechanisms.{name}", make, listed).items()
    draws: dict[str, tuple[Callable[..., Any], Arguments, tuple[Any, ...]]] = {
        "DiscreteGaussian": (m.DiscreteGaussian, {"sigma_squared": 100}, (5,)),
        "DiscreteGaussian, rho": (m.DiscreteGaussian, {"rho": "0.1", "sensitivity": 1}, (5,)),
        "DiscreteLaplace": (
            lambda **k: m.DiscreteLaplace(bounds=(0, 100), **k),
            {"epsilon": 1, "sensitivity": 1},
            (5,),
        ),
        "DiscreteLaplace, scale": (lambda **k: m.DiscreteLaplace(bounds=(0, 100), **k), {"scale": 10}, (5,)),
        "UnboundedDiscreteLaplace": (m.UnboundedDiscreteLaplace, {"epsilon": 1, "sensitivity": 1}, (5,)),
        "TruncatedDiscreteLaplace": (m.TruncatedDiscreteLaplace, {"epsilon": 1, "delta": "1e-3"}, (5,)),
        "ExponentialMechanism": (m.ExponentialMechanism, {"epsilon": 1, "sensitivity": 1}, ([1, 2, 3],)),
        "PermuteAndFlip": (m.PermuteAndFlip, {"epsilon": 1, "sensitivity": 1}, ([1, 2, 3],)),
        "BiasedCoin": (m.BiasedCoin, {"probability": "0.1"}, ()),
        "Geometric": (m.Geometric, {"p": "0.1"}, ()),
        "NegativeBinomial": (m.NegativeBinomial, {"r": "0.5", "p": "0.1"}, ()),
        "UniformInteger": (m.UniformInteger, {"low": 0, "high": 10}, ()),
        "RandomSubset": (m.RandomSubset, {"population": 10, "subset_size": 3}, ()),
        "PartitionSelection": (m.PartitionSelection, {"epsilon": 1, "delta": "1e-5"}, ({"a": 3},)),
        "CorrelatedCounts": (
            lambda n_keys, **k: m.CorrelatedCounts(n_keys=n_keys, **k),
            {"n_keys": 2, "max_keys": 1, "rho": "0.1"},
            ([3, 4], 5),
        ),
    }
    for name, (make_one, arguments, data) in draws.items():
        yield (
            f"mechanisms.{name}.sample",
            Case(lambda make_one=make_one, data=data, **k: make_one(**k).sample(*data, random_state=0), arguments),
        )
    yield "mechanisms.KeySum", Case(m.KeySum, {"low": 0, "high": 5, "scale": 3})
    yield (
        "mechanisms.PlannedPrivateMode",
        Case(m.PlannedPrivateMode, {"epsilon": 1, "n_items": 3, "n_users": 10, "agreement": "0.9"}),
    )
    yield (
        "mechanisms.SparseHistogram.certified_delta",
        Case(certified, {"max_keys": 3, "threshold": 50, "epsilon": 1, "sigma_squared": 40}),
    )
    yield (
        "mechanisms.SparseHistogram.certified_delta, laplace",
        Case(certified, {"max_keys": 3, "threshold": 50, "epsilon": 1, "scale": 3}),
    )
    yield (
        "mechanisms.SetUnion.certified_delta",
        Case(
            lambda variance, threshold, **k: m.SetUnion(rounds=[(variance, threshold)], **k).certified_delta,
            {"variance": 2**45, "threshold": 2**25, "max_keys": 3, "epsilon": 1, "weight": 2**20},
        ),
    )
    yield (
        "mechanisms.PurePrivateMode.release",
        Case(lambda **k: m.PurePrivateMode(**k).release([0, 1, 1], random_state=0), {"epsilon": 1, "n_items": 3}),
    )
    yield (
        "mechanisms.ApproximatePrivateMode.release",
        Case(lambda **k: m.ApproximatePrivateMode(**k).release([0, 1, 1], random_state=0), ED),
    )
    # --- plans
    need = {"n_users": 100, "m": 4, **ED}
    task = {"n_symbols": 5}
    yield "planning.accuracy_reached", Case(lambda **k: planning.accuracy_reached("discrete", **k), {**need, **task})
    yield (
        "planning.user_complexity",
        Case(lambda **k: planning.user_complexity("discrete", **k), {"m": 4, **ED, "alpha": 0.1, **task}),
    )
    yield (
        "planning.compare_methods",
        Case(lambda **k: planning.compare_methods("mean", **k), {**need, "dimension": 3, "max_norm": 1.0}),
    )
    yield "planning.plan", Case(lambda **k: planning.plan("discrete", **k), {"m": 4, **ED, "alpha": 0.1, **task})
    yield (
        "planning.epsilon_needed",
        Case(lambda **k: planning.epsilon_needed("discrete", **k), {"n_users": 1000, "m": 4, "alpha": 0.1, **task}),
    )
    yield (
        "planning.records_needed",
        Case(lambda **k: planning.records_needed("discrete", **k), {"n_users": 1000, **ED, "alpha": 0.1, **task}),
    )
    yield (
        "planning.lower_bound",
        Case(lambda **k: planning.lower_bound("mean", **k), {"n_users": 100, **ED, "m": 2, "dimension": 3}),
    )
    # --- tables
    for composition in (None, "zcdp", "exact"):
        words = composition or "basic"
        yield (
            f"tables.Session.plan({words}, groups)",
            Case(lambda composition=composition, **k: planned(composition=composition, **k), {"max_keys": 3, **ED}),
        )
        yield (
            f"tables.Session.release({words})",
            Case(
                lambda composition=composition, **k: released(composition=composition, **k),
                {"n_edges": 5, "max_rows": 3, "max_total": 100, **ED},
            ),
        )
    yield "tables.Session.plan(keys only)", Case(keys_planned, {"max_keys": 3, **ED})
    yield "tables.Session.release(quantile)", Case(quantiled, {"share": "0.5", "epsilon": 1, "steps": 128, "high": 100})
    yield (
        "tables.Session.suggest_bound",
        Case(
            lambda **k: session().suggest_bound(tables.Query().agg(n=tables.count_rows(8)), **k, random_state=0),
            {"epsilon": "0.1", "then": "0.5"},
        ),
    )
    # --- public randomness, dimensions
    seed = public_randomness.PublicSeed(bytes(32))
    yield from methods(
        "public_randomness.PublicSeed",
        lambda: seed,
        {"race_keys": {"label": "a", "i": 0, "count": 10}, "offset": {"label": "a", "i": 0}},
    ).items()
    yield (
        "public_randomness.SharedOffsetRounding.round",
        Case(
            lambda intervals, value: public_randomness.SharedOffsetRounding(seed, intervals=intervals).round(value),
            {"intervals": 4, "value": "0.3"},
        ),
    )
    yield "dimensions.growth_function", Case(lambda **k: dimensions.growth_function(BITS, **k), {"k": 2})
    yield (
        "dimensions.representation_dimension",
        Case(lambda **k: dimensions.representation_dimension(BITS, **k), {"alpha": "0.1", "beta": "0.1"}),
    )
    for kind in (concepts.Thresholds, concepts.Intervals, concepts.PointFunctions):
        yield f"concepts.{kind.__name__}", Case(lambda kind=kind, **k: kind(**k), {"domain_size": 10})
    yield "concepts.Parities", Case(lambda **k: concepts.Parities(**k), {"n_bits": 4})
    vote = userdp.finite_algorithm([0, 1])(lambda dataset: [1, 1 + sum(map(sum, dataset))])
    yield (
        "delstab.DelStab.plan",
        Case(
            lambda n_users, **k: delstab.DelStab(vote, **k).plan(n_users),
            {"epsilon": 8, "delta": "0.1", "n_users": 12},
        ),
    )
    # --- estimators
    given = {"epsilon": 4, "m": 2}
    estimators: dict[Callable[..., Any], tuple[Arguments, bool]] = {
        means.WinsorizedMean: ({**given, "delta": "1e-3", "max_norm": 1.0}, False),
        distributions.DiscreteDistribution: ({**given, "n_symbols": 3, "alpha": 0.4}, False),
        distributions.ProductDistribution: ({**given, "n_symbols": 3, "n_columns": 1, "alpha": 0.5}, False),
        distributions.GaussianMean: ({**given, "mean_bound": 10}, False),
        learners.ThresholdClassifier: ({**given, "domain_size": 8}, True),
        optimization.UserLevelLinearRegression: (
            {**given, "delta": "1e-3", "max_feature_norm": 2.0, "target_bounds": (0, 1)},
            True,
        ),
        optimization.ClippedGradientDescent: (
            {**given, "delta": "1e-3", "loss": SQUARED, "constraint": BALL, "max_norm": 2.0, "target_bounds": (0, 1)},
            True,
        ),
    }
    for estimator, (arguments, labels) in estimators.items():
        package = estimator.__module__.split(".")[1]
        yield f"{package}.{estimator.__name__}.fit", Case(fit(estimator, labels), arguments)


CASES = dict(_cases())


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            return bool(Fraction(value) or True)
        return False
    return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)


def variants(case: Case) -> Iterator[Arguments]:
    """The arguments, each number in turn at an end, and epsilon and delta at ends together."""
    yield case.arguments
    numbers = [name for name, value in case.arguments.items() if is_number(value)]
    for name in numbers:
        yield from ({**case.arguments, name: end} for end in ENDS)
    if {"epsilon", "delta"} <= set(numbers):
        for epsilon, delta in itertools.product(PAIRS, ("1e-300", "1e-30", "0.5", 1 - Fraction(1, 10**9))):
            yield {**case.arguments, "epsilon": epsilon, "delta": delta}


class Outcome(NamedTuple):
    seconds: float
    kind: str
    call: str


def described(name: str, arguments: Arguments, base: Arguments) -> str:
    changed = {key: value for key, value in arguments.items() if value is not base[key]} or {"": "as it is"}
    texts = (f"{key}={value!r}" for key, value in changed.items())
    return f"{name}: {', '.join(text if len(text) < 60 else text[:50] + '...' for text in texts)}"


def outcome(name: str, arguments: Arguments, seconds: int = SECONDS) -> Outcome:
    """What one call comes to, in a process of its own."""
    case = CASES[name]
    words = described(name, arguments, case.arguments)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        kind = "?"
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os.dup2(sys.stderr.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        warnings.simplefilter("ignore")
        before = os.times()
        try:
            case.call(**arguments)
            kind = "value"
        except BaseException as error:
            kind = "refused" if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: {error}"[:90]
        after = os.times()
        used = after.user - before.user + after.system - before.system
        os.write(writer, json.dumps([used, kind]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if answer:
        return Outcome(*json.loads(answer), words)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    timed_out = ended in (signal.SIGXCPU, signal.SIGKILL)
    return Outcome(float(seconds), "timed out" if timed_out else f"ended by signal {ended}", words)


def main(wanted: list[str], most: int = 60) -> None:
    found = []
    for name, case in CASES.items():
        if wanted and not any(part in name for part in wanted):
            continue
        for arguments in variants(case):
            found.append(outcome(name, arguments))
            if found[-1].kind not in ("value", "refused"):
                print(f"{found[-1].seconds:8.2f}  {found[-1].kind:20}  {found[-1].call}", file=sys.stderr, flush=True)
    print("  seconds  outcome     call")
    for seconds, kind, call in sorted(found, reverse=True)[:most]:
        print(f"{seconds:9.2f}  {kind:10}  {call}")
    kinds = Counter(one.kind.split(":")[0] for one in found)
    names = len({one.call.split(":")[0] for one in found})
    total = sum(one.seconds for one in found)
    print(f"{len(found)} calls of {names} functions in {total:.0f} s of processor: {dict(kinds.most_common())}")


if __name__ == "__main__":
    main(sys.argv[1:])
