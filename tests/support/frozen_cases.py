"""Seeded draws of every mechanism, fit and release: what a change of plumbing must leave bit for bit as it was.

Each case is a function without arguments; its result is turned into plain JSON, floats in hexadecimal. The results that
were frozen are in tests/data/frozen_draws.json; ``python tests/support/frozen_cases.py`` prints which cases differ, and
with ``--freeze NAME ...`` writes these anew. A case that is meant to change is named in the commit that changes it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import io
import json
import math
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from support.every_report import EVERY_REPORT
from userdp import BOTTOM, AdditiveAlgorithm, DelStab, LogRatio, Pmf, SummedScoreEM, SymmetricAlgorithm, algorithms
from userdp.audit import audit_dataset, audit_item_level, audit_user_level
from userdp.cli import _parser as parser_of
from userdp.cli import main as run_command
from userdp.concepts import DecisionStumps, Intervals, Parities, PointFunctions, Thresholds
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.estimators import as_finite_algorithm
from userdp.estimators.saving import _SAVED, arguments_of
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    CorrelatedSamplingClassifier,
    HypothesisSelector,
    PrivateCompare,
    PrivateMedian,
    PrivateMinError,
    PrivateMistakeTolerance,
    RealizablePACClassifier,
    StatisticalQueryClassifier,
    ThresholdClassifier,
    clipped_pairwise_scores,
    user_level_errors,
)
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.means.methods import NEED_A_PROMISE
from userdp.mechanisms import (
    ApproximatePrivateMode,
    BiasedCoin,
    Categorical,
    CorrelatedCounts,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Geometric,
    GroupedExponentialMechanism,
    GroupedScores,
    KeySum,
    NegativeBinomial,
    PartitionSelection,
    PermuteAndFlip,
    PrivateBestOf,
    PrivateRange,
    PurePrivateMode,
    RandomSubset,
    SetUnion,
    SparseHistogram,
    TruncatedDiscreteLaplace,
    UnboundedDiscreteLaplace,
    UniformInteger,
)
from userdp.optimal import optimal_mechanism, optimal_sum_mechanism
from userdp.optimization import (
    Box,
    ClippedGradientDescent,
    CustomLoss,
    FiniteMinimizer,
    L2Ball,
    LogisticLoss,
    PhasedERM,
    SmoothedHingeLoss,
    SquaredLoss,
    UserLevelLinearRegression,
    UserLevelLogisticRegression,
    WinsorizedGradientDescent,
)
from userdp.protocols import local, shuffle
from userdp.public_randomness import CorrelatedSampler, SharedOffsetRounding
from userdp.stability import (
    DecisionListQueries,
    ListStabilityLearner,
    LittlestoneLists,
    MarginPerceptronQueries,
    RepresentationLearner,
    TournamentLearner,
    VersionSpace,
)
from userdp.tables import (
    Schema,
    Session,
    category,
    col,
    count_rows,
    count_users,
    histogram,
    key,
    mean,
    number,
    quantile,
)
from userdp.tables import sum as total

FROZEN = Path(__file__).parents[1] / "data" / "frozen_draws.json"
CASES: dict[str, Callable[[], Any]] = {}
SEED = bytes(range(32))
DAY = datetime.date(2026, 1, 1)
"""Of pages, which are of today otherwise."""


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """A result as JSON; large arrays by their digest."""
    if value is BOTTOM:
        return "BOTTOM"
    if isinstance(value, Pmf):
        return {"outputs": plain(list(value.outputs)), "weights": digest(list(value.weights))}
    if isinstance(value, np.ndarray):
        if value.size > 64:
            return {
                "dtype": value.dtype.str,
                "shape": list(value.shape),
                "digest": digest(plain(value.ravel().tolist())),
            }
        return {"dtype": value.dtype.str, "values": plain(value.tolist())}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (Fraction, LogRatio)):
        return str(value)
    if type(value) in _SAVED.values():
        return plain(arguments_of(value))
    if isinstance(value, bytes):
        return value.hex() if len(value) < 100 else digest(value.hex())
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(plain(value)).encode()).hexdigest()


def result_of(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(CASES[name]())


# --- mechanisms


@case
def laws() -> Any:
    made: list[Any] = [
        TruncatedDiscreteLaplace(epsilon=1, delta="1e-6"),
        TruncatedDiscreteLaplace(epsilon="1/2", delta="1e-3", half_width="tight"),
        UnboundedDiscreteLaplace(epsilon="0.5", sensitivity=2),
        NegativeBinomial(r="23.7233", p="0.8187"),
        Geometric(p="1/3"),
        UniformInteger(low=-5, high=2**62),
        RandomSubset(population=52, subset_size=5),
        Categorical(weights=["1/2", "1/3", "1/6"]),
        BiasedCoin(probability="1/3"),
        BiasedCoin(log_probability=-1),
    ]
    return [[pmf.sample(random_state=7), np.asarray(pmf.sample(40, random_state=8))] for pmf in made]


@case
def noise_on_values() -> Any:
    bounded = DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 1000))
    gaussian = DiscreteGaussian(rho="1/50", sensitivity=3)
    values = np.array([[3, 5], [0, 1000]])
    return [[noise.sample(17, random_state=3), noise.sample(values, random_state=4)] for noise in (bounded, gaussian)]


@case
def counts_by_key() -> Any:
    counts, sums = {"tea": 90, "milk": 20, "gin": 1, 7: 15}, {"tea": 70, 7: -9}
    plain = SparseHistogram(max_keys=2, threshold=17, epsilon=1, scale=2)
    summed = SparseHistogram(
        max_keys=2, threshold=12, epsilon=1, sigma_squared=20, sums=[KeySum(-1, 1, sigma_squared=9)]
    )
    chosen = PartitionSelection(epsilon=1, delta="1e-5", neighbors="replace")
    common = CorrelatedCounts(n_keys=4, max_keys=4, rho="1/50")
    return [
        [[key, number] for key, number in plain.sample(counts, random_state=1).items()],
        [[key, *numbers] for key, numbers in summed.sample(counts, [sums], random_state=2).items()],
        chosen.sample({**counts, "milk": 25}, random_state=3),
        list(common.sample([90, 20, 1, 15], 100, random_state=4)),
    ]


@case
def keys_by_weights() -> Any:
    users = [["tea", "gin"]] * 9 + [["tea"], ["milk", "gin", 7], []]
    two = SetUnion(max_keys=2, rounds=[(100, 40), (64, 30)], epsilon=1, weight=12)
    policy = SetUnion(max_keys=2, rounds=[(100, 40)], epsilon=1, weight=12, cap=80)
    return [two.sample(users, random_state=1), policy.sample(users, random_state=2)]


@case
def selections_by_score() -> Any:
    plain_choice = ExponentialMechanism(epsilon=LogRatio(3), sensitivity=1)
    real = ExponentialMechanism(epsilon=1, sensitivity="0.5", granularity=0.25, maximize=True, monotone=True)
    groups = GroupedScores([0, 1000, 1001], [7, 2, 40], 2**64 - 1)
    grouped = GroupedExponentialMechanism(epsilon=5, sensitivity=1)
    return [
        plain_choice.sample([3, 1, 2, 1], size=50, random_state=1),
        real.sample([0.1, 3.3, 2.5], size=50, random_state=2),
        grouped.sample(groups, size=50, random_state=3),
        plain_choice.pmf([3, 1, 2, 1]),
        real.pmf([0.1, 3.3, 2.5]),
    ]


@case
def selections_by_coins() -> Any:
    choice = PermuteAndFlip(epsilon=LogRatio(3), sensitivity=1)
    upward = PermuteAndFlip(epsilon=1, sensitivity="0.5", granularity=0.25, maximize=True, monotone=True)
    return [
        choice.sample([3, 1, 2, 1], size=50, random_state=1),
        upward.sample([0.1, 3.3, 2.5], size=50, random_state=2),
        choice.sample(np.arange(1000) % 17, size=50, random_state=3),
        choice.sample(np.arange(70_000) % 17, size=2, random_state=4),
        choice.pmf([3, 1, 2, 1]),
        upward.pmf([0.1, 3.3, 2.5]),
    ]


@case
def ranges_and_repetitions() -> Any:
    values = np.linspace(-3, 9, 40)
    found = PrivateRange(epsilon=1, bound=10, width="0.5")
    range_ = found.sample(values, present=values < 8, random_state=5)
    repeated = PrivateBestOf(ExponentialMechanism(epsilon=1, sensitivity=1), stopping_probability="1/10")
    return [
        range_.bin,
        range_.low,
        range_.high,
        found.pmf(values),
        repeated.sample([3, 1, 2], random_state=6),
        PrivateBestOf(
            ExponentialMechanism(epsilon=1, sensitivity=1), stopping_probability="1/10", most_runs=7, hide_time=True
        ).sample([3, 1, 2], random_state=6),
    ]


# --- finite algorithms: DelStab and audits

PEOPLE = tuple((0, 1, 1) if i % 7 else (0, 0, 0) for i in range(40))


def majority() -> AdditiveAlgorithm:
    return AdditiveAlgorithm(
        ("no", "yes"), lambda user: int(any(user)), lambda t, n: [0, 1] if 2 * t > n else [1, 0], statistic_range=(0, 1)
    )


def noisy_majority() -> SymmetricAlgorithm:
    def pmf(dataset: Any) -> Any:
        ones = sum(any(user) for user in dataset)
        return [Fraction(len(dataset) + 1 - ones, len(dataset) + 2), Fraction(ones + 1, len(dataset) + 2)]

    return SymmetricAlgorithm(("no", "yes"), pmf)


def few_scores() -> SummedScoreEM:
    return SummedScoreEM(("a", "b", "c"), lambda user: [user[0], 1 - user[0], user[-1]], epsilon="0.1", sensitivity=1)


def labeled() -> Any:
    @algorithms.finite_algorithm(("no", "yes"))
    def second(dataset: Any) -> Any:
        votes = sum(any(user) for user in dataset)
        return [1, 0] if 2 * votes <= len(dataset) else [0, 1]

    return second


@case
def delstab() -> Any:
    found: list[Any] = []
    for calibration in ("optimal", "tight", "paper"):
        for relation in ("exact", "distance"):
            private = DelStab(majority(), epsilon=8, delta="0.01", calibration=calibration, compatibility=relation)
            found.append([private.release(PEOPLE, random_state=s) for s in range(8)])
            found.append(private.output_distribution(PEOPLE, exact=True))
    for algorithm, people in ((noisy_majority(), PEOPLE), (few_scores(), PEOPLE), (labeled(), PEOPLE[:12])):
        private = DelStab(algorithm, epsilon=8, delta="0.01")
        found.append([private.release(people, random_state=s) for s in range(8)])
        found.append(private.output_distribution(people, exact=True))
        found.append(private.smallest_stable_size(people))
    return found


def decided(report: Any) -> Any:
    """What an audit says, without the wrapping of its certificate."""
    witness = report.witness
    return [
        report.holds,
        [report.lower, report.upper],
        [report.epsilon.lower, report.epsilon.upper],
        report.exp_epsilon,
        digest([list(pmf) for pmf in report.pmfs]),
        digest(list(report.pmf_of)),
        digest([list(pair) for pair in report.pmf_pairs]),
        None if witness is None else [list(witness.ranks), list(witness.event_indices)],
    ]


@case
def audits() -> Any:
    found = []
    for algorithm in (majority(), noisy_majority(), few_scores(), labeled()):
        for neighbors in ("replace", "add-remove"):
            found.append(
                decided(
                    audit_user_level(
                        algorithm,
                        universe=(0, 1),
                        n_users=4,
                        n_examples=2,
                        epsilon=1,
                        delta="0.01",
                        neighbors=neighbors,
                    )
                )
            )
        found.append(decided(audit_item_level(algorithm, universe=(0, 1), n_users=3, n_examples=2, epsilon=1, delta=0)))
        found.append(decided(audit_dataset(algorithm, PEOPLE[:9], records=[(0,), (1,)], epsilon=1, delta="0.2")))
        private = DelStab(algorithm, epsilon=8, delta="0.01")
        found.append(
            decided(audit_user_level(private, universe=(0, 1), n_users=6, n_examples=1, epsilon=8, delta="0.01"))
        )
    return found


@case
def audits_of_learners() -> Any:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=2, mechanism="exponential", classes=(0, 1))
    mean = WinsorizedMean(epsilon=1, max_norm=1, m=1, method="laplace", grid_resolution=4)
    algorithm = as_finite_algorithm(learner)
    values = [(x, y) for x in (1, 3) for y in (0, 1)]
    pmfs = [
        learner.output_distribution(np.array([[1], [2], [3], [3]]), [0, 1, 1, 0], groups=[1, 1, 2, 2]),
        mean.output_distribution(np.array([[0.5], [-0.5]]), groups=[1, 2]),
    ]
    return [decided(audit_user_level(algorithm, universe=values, n_users=2, n_examples=2, epsilon=1, delta=0)), pmfs]


# --- learners

RNG = np.random.default_rng(0)
USERS = np.repeat(np.arange(60), 8)
RAGGED = np.concatenate([np.repeat(np.arange(60), 7), RNG.integers(0, 60, size=60)])
POINTS = RNG.integers(1, 11, size=(480, 1))
LABELS = (POINTS[:, 0] > 4) ^ (RNG.random(480) < 0.1)
WORDS = np.array(["no", "yes"])[LABELS.astype(int)]


def forms() -> list[tuple[str, Any, Any, Any]]:
    """The same rows in the forms in which users bring them, some of them ragged and with values that are missing."""
    frame = pd.DataFrame({"x": POINTS[:, 0]})
    nullable = pd.DataFrame({"x": pd.array(POINTS[:, 0], dtype="Int64")})
    nullable.loc[3, "x"] = None
    with_nan = POINTS.astype(np.float64)
    with_nan[5] = np.nan
    with_nan[17] = np.inf
    mixed: list[Any] = POINTS.tolist()
    mixed[9] = [None]
    mixed[10] = ["seven"]
    names = np.array([f"user {code:03}" for code in RAGGED])
    return [
        ("arrays", POINTS, LABELS.astype(int), USERS),
        ("ragged", POINTS, LABELS.astype(int), RAGGED),
        ("frame", frame, LABELS.astype(int), names),
        ("nullable", nullable, LABELS.astype(int), USERS.tolist()),
        ("missing", with_nan, LABELS.astype(float), USERS),
        ("lists", mixed, LABELS.astype(int).tolist(), [str(code) for code in RAGGED]),
        ("objects", POINTS.astype(object), LABELS.astype(int).astype(object), USERS.astype(np.uint64)),
    ]


def classifiers() -> dict[str, Any]:
    drawn_by: Any = {"mechanism": "exponential"}
    lists = DecisionListQueries(1, alpha=0.3, length=1, tolerance=0.1)
    return {
        "threshold": ThresholdClassifier(epsilon=1, domain_size=10, m=8, **drawn_by, classes=(0, 1)),
        "threshold median": ThresholdClassifier(epsilon=4, domain_size=2**64 - 1, m=8, method="median", classes=(0, 1)),
        "realizable": RealizablePACClassifier(epsilon=1, concepts=Thresholds(10), m=8, **drawn_by, classes=(0, 1)),
        "agnostic": AgnosticPACClassifier(epsilon=1, concepts=Thresholds(10), m=8, **drawn_by, classes=(0, 1)),
        "agnostic pairwise": AgnosticPACClassifier(
            epsilon=1, concepts=Intervals(10), m=8, method="pairwise", tau=8, **drawn_by, classes=(0, 1)
        ),
        "agnostic surrogate": AgnosticPACClassifier(
            epsilon=1,
            concepts=PointFunctions(10),
            representation=Thresholds(10),
            method="surrogate",
            m=8,
            **drawn_by,
            classes=(0, 1),
        ),
        "stumps": AgnosticPACClassifier(
            epsilon=1, concepts=DecisionStumps(thresholds=[[2.5, 4.5, 7.5]]), m=8, **drawn_by, classes=(0, 1)
        ),
        "voting": CorrelatedSamplingClassifier(
            epsilon=2, delta=1e-3, concepts=Thresholds(10), public_seed=SEED, gamma=30, m=8, classes=(0, 1)
        ),
        "voting pure": CorrelatedSamplingClassifier(
            epsilon=2, concepts=Thresholds(10), model="central-pure", public_seed=SEED, gamma=30, m=8, classes=(0, 1)
        ),
        "voting local": CorrelatedSamplingClassifier(
            epsilon=2, concepts=Thresholds(10), model="local", public_seed=SEED, gamma=30, m=8, classes=(0, 1)
        ),
        "voting shuffle": CorrelatedSamplingClassifier(
            epsilon=2,
            delta=1e-2,
            concepts=Thresholds(10),
            model="shuffle",
            public_seed=SEED,
            gamma=30,
            m=8,
            classes=(0, 1),
        ),
        "queries": StatisticalQueryClassifier(
            epsilon=2, delta=1e-3, algorithm=lists, public_seed=SEED, m=8, classes=(0, 1)
        ),
        "perceptron": StatisticalQueryClassifier(
            epsilon=2,
            algorithm=MarginPerceptronQueries(1, margin=0.3, alpha=0.3, max_rounds=2),
            model="local",
            public_seed=SEED,
            m=8,
            classes=(0, 1),
        ),
        "logistic": UserLevelLogisticRegression(
            epsilon=4, delta=1e-3, max_feature_norm=10, m=8, public_seed=SEED, classes=(0, 1)
        ),
        "logistic bounds": UserLevelLogisticRegression(
            epsilon=4, delta=1e-3, feature_bounds=(0, 11), m=8, public_seed=SEED, solver="phased", classes=(0, 1)
        ),
    }


def flipping() -> dict[str, Any]:
    """Classifiers whose last draw is by permute-and-flip."""
    return {
        "threshold, flips": ThresholdClassifier(epsilon=1, domain_size=10, m=8, classes=(0, 1)),
        "realizable, flips": RealizablePACClassifier(epsilon=1, concepts=Thresholds(10), m=8, classes=(0, 1)),
        "agnostic, flips": AgnosticPACClassifier(epsilon=1, concepts=Thresholds(10), m=8, classes=(0, 1)),
        "agnostic totals": AgnosticPACClassifier(
            epsilon=1, concepts=Intervals(10), m=8, method="pairwise", classes=(0, 1)
        ),
        "agnostic surrogate, flips": AgnosticPACClassifier(
            epsilon=1,
            concepts=PointFunctions(10),
            representation=Thresholds(10),
            method="surrogate",
            m=8,
            classes=(0, 1),
        ),
    }


def fitted(learner: Any, X: Any, y: Any, groups: Any, seed: int = 11) -> Any:
    learner.set_params(random_state=seed, n_features=1 if isinstance(X, list) else None)
    if y is None:
        learner.fit(X, groups=groups)
    else:
        learner.fit(X, y, groups=groups)
    found = {name: getattr(learner, name) for name in learner.released if name not in ("concept_", "selected_")}
    for name in ("concept_", "selected_"):
        if name in learner.released:
            found[name] = repr(getattr(learner, name))
    if not found:
        found["index"] = repr(sorted(vars(learner).keys()))
    if hasattr(learner, "hypothesis_"):
        found["hypothesis_"] = learner.hypothesis_
    if hasattr(learner, "predict"):
        found["predicted"] = learner.predict(np.arange(1, 11)[:, None] if learner.n_features_in_ == 1 else X[:50])
    return found


@case
def fits_of_classifiers() -> Any:
    found = {}
    for name in classifiers():
        for form, X, y, groups in forms():
            found[f"{name} / {form}"] = fitted(classifiers()[name], X, y, groups)
    return found


@case
def fits_by_permute_and_flip() -> Any:
    psi = [[[0, 0, 0], [1, -1, 0.5]], [[-1, 1, -0.5], [0, 0, 0]]]
    found = {}
    for name, learner in flipping().items():
        found[name] = [
            fitted(learner, POINTS, LABELS.astype(int), groups, seed) for groups in (USERS, RAGGED) for seed in range(4)
        ]
    selectors = {
        "pairwise": (ClippedPairwiseEM(epsilon=1, psi=psi, m=8), RNG_SYMBOLS[:, :1] % 3),
        "Scheffe": (HypothesisSelector(epsilon=1, candidates=[[0.5, 0.5], [0.9, 0.1]], m=8), RNG_SYMBOLS[:, :1] % 2),
    }
    for name, (selector, symbols) in selectors.items():
        found[name] = [fitted(selector, symbols, None, USERS, seed) for seed in range(8)]
    return found


@case
def labels_of_other_kinds() -> Any:
    found = []
    for classes, y in (
        ((False, True), LABELS),
        (("no", "yes"), WORDS),
        (("no", "yes"), WORDS.tolist()),
        (("yes", "no"), pd.Series(WORDS)),
        ((1.5, 2.5), np.where(LABELS, 2.5, 1.5)),
        ((0, 1), [bool(label) for label in LABELS]),
    ):
        for groups in (USERS, RAGGED):
            learner = ThresholdClassifier(epsilon=1, domain_size=10, m=4, classes=classes, mechanism="exponential")
            found.append(fitted(learner, POINTS, y, groups))
    learner = ThresholdClassifier(
        epsilon=1, domain_size=10, m=8, enrolled=range(100), mechanism="exponential", classes=(0, 1)
    )
    found.append(fitted(learner, POINTS, LABELS.astype(int), USERS))
    learner = ThresholdClassifier(
        epsilon=1, domain_size=10, require_groups=False, mechanism="exponential", classes=(0, 1)
    )
    found.append(fitted(learner, POINTS, LABELS.astype(int), None))
    return found


@case
def fits_of_selectors_and_distributions() -> Any:
    psi = [[[0, 0, 0], [1, -1, 0.5]], [[-1, 1, -0.5], [0, 0, 0]]]
    dice = [[1 / 6] * 6, [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]]
    symbols = RNG_SYMBOLS[:, :1]
    found = []
    for groups in (USERS, RAGGED):
        for learner, X in (
            (ClippedPairwiseEM(epsilon=1, psi=psi, m=8, mechanism="exponential"), symbols % 3),
            (HypothesisSelector(epsilon=1, candidates=dice, m=8, mechanism="exponential"), symbols),
            (DiscreteDistribution(epsilon=2, n_symbols=3, m=8, alpha=0.4), symbols % 3),
            (DiscreteDistribution(epsilon=2, n_symbols=3, m=8, alpha=0.4, method="coarse-to-fine"), symbols % 3),
            (DiscreteDistribution(epsilon=2, n_symbols=3, m=8, alpha=0.4, method="symbols"), symbols % 3),
            (ProductDistribution(epsilon=2, n_symbols=2, n_columns=2, m=8, alpha=0.5), RNG_SYMBOLS[:, :2] % 2),
            (GaussianMean(epsilon=1, mean_bound=10, n_columns=2, m=8), NUMBERS),
            (GaussianDistribution(epsilon=4, mean_bound=2, kappa=3, n_columns=2, m=8, alpha=0.5), NUMBERS),
        ):
            found.append(fitted(learner, X, None, groups))
    return found


RNG_SYMBOLS = RNG.integers(0, 6, size=(480, 2))
NUMBERS = RNG.normal(0.2, 1.0, size=(480, 2))
WIDE = RNG.uniform(-0.2, 0.6, size=(480, 5))


@case
def private_functions() -> Any:
    points = np.repeat([10, 20, 30], 40)
    errors = [590, 180, 27, 2]
    return [
        PrivateMedian(epsilon=1, m=2, domain_size=2**20).sample(points, np.arange(120) // 2, random_state=1),
        PrivateCompare(n_users=1000, epsilon=1, alpha=0.1).sample(errors, 0.1, random_state=2),
        PrivateMinError(n_users=100_000, epsilon=1, alpha=0.1).sample([59000, 18000, 2700, 200], random_state=3),
        PrivateMistakeTolerance(n_users=1000, epsilon=1).sample([900, 700, 360, 120], random_state=4),
        user_level_errors([[0, 1, 1], [0, 0, 0]], [0, 0, 0], groups=["ann", "ann", "bob"], m=2),
        clipped_pairwise_scores([[0, 3, 1], [2, 2, 2]], tau=1),
    ]


# --- means and models


@case
def fits_of_means() -> Any:
    found = []
    wide = WIDE
    for groups in (USERS, RAGGED):
        for method in ("auto", "iterated", "gaussian", "practical", "paper", "laplace"):
            for X in (wide[:, :1], wide):
                alone = X.shape[1] == 1
                delta = 0 if method == "laplace" or (alone and method in ("paper", "practical")) else "1e-3"
                # What was the default, a promise now, is made.
                given = {"user_std": 8**-0.5} if method in NEED_A_PROMISE else {}
                learner = WinsorizedMean(
                    epsilon=4, delta=delta, max_norm=1, m=8, method=method, public_seed=SEED, **given
                )
                try:
                    found.append(fitted(learner, X, None, groups))
                except ValueError as error:
                    found.append(type(error).__name__)
    learner = WinsorizedMean(epsilon=4, delta="1e-3", bounds=(-1.9, 2.1), m=8, homogeneous=True, public_seed=SEED)
    found.append(fitted(learner, wide, None, RAGGED))
    return found


@case
def queries() -> Any:
    found = []
    for dimension in (1, 3):
        about = WinsorizedQueries(
            epsilon=2, delta=1e-3, n_queries=2, dimension=dimension, max_norm=2, m=8, public_seed=SEED, random_state=5
        )
        with about.open(np.column_stack([NUMBERS, NUMBERS[:, 0]]), NUMBERS[:, 1], groups=RAGGED) as session:
            for power in (1, 2):

                def question(rows: Any, y: Any, d: int = dimension, p: int = power) -> Any:
                    return (rows[:, :d] ** p).mean(axis=0) / 4 + y.mean() / 9

                found.append(session.release(question))
    return found


@case
def fits_of_models() -> Any:
    y = NUMBERS @ [1.0, -0.5] + 0.1
    signs = np.where(y > 0, 1.0, -1.0)
    found = []
    for groups in (USERS, RAGGED):
        for learner, target in (
            (
                ClippedGradientDescent(
                    epsilon=4,
                    delta=1e-3,
                    loss=LogisticLoss(),
                    constraint=L2Ball(5.0),
                    max_norm=2.0,
                    m=8,
                    target_bounds=(-1, 1),
                ),
                signs,
            ),
            (
                ClippedGradientDescent(
                    epsilon=4,
                    delta=1e-3,
                    loss=SmoothedHingeLoss(),
                    constraint=Box(-1, 1),
                    max_norm=2.0,
                    m=8,
                    n_iterations=4,
                    batch_users=20,
                    fit_intercept=True,
                    target_bounds=(-1, 1),
                ),
                signs,
            ),
            (
                WinsorizedGradientDescent(
                    epsilon=4,
                    delta=1e-3,
                    loss=SquaredLoss(),
                    constraint=L2Ball(3.0),
                    max_norm=2.0,
                    m=8,
                    public_seed=SEED,
                    target_bounds=(-1, 1),
                ),
                y,
            ),
            (
                PhasedERM(
                    epsilon=4,
                    delta=1e-3,
                    loss=SquaredLoss(),
                    constraint=L2Ball(1.0),
                    m=8,
                    max_iterations=5,
                    public_seed=SEED,
                    target_bounds=(-1, 1),
                    max_norm=1.0,
                ),
                y,
            ),
            (
                UserLevelLinearRegression(
                    epsilon=4, delta=1e-3, target_bounds=(-3, 3), feature_bounds=(-3, 3), m=8, public_seed=SEED
                ),
                y,
            ),
            (FiniteMinimizer(epsilon=2, m=8, alpha=0.3, loss_bounds=(0, 1)), None),
        ):
            X = (RNG_SYMBOLS < 3).astype(float) if target is None else NUMBERS
            found.append(fitted(learner, X, target, groups))
    return found


@case
def fit_of_a_custom_loss() -> Any:
    loss = CustomLoss(lambda theta, X, y: (X @ theta - y)[:, None] * X, lipschitz=6.0, smoothness=4.0)
    learner = ClippedGradientDescent(
        epsilon=4,
        delta=1e-3,
        loss=loss,
        constraint=L2Ball(2.0),
        max_norm=2.0,
        m=8,
        n_iterations=5,
        target_bounds=(-1, 1),
    )
    return fitted(learner, NUMBERS, NUMBERS[:, 0], RAGGED)


@case
def costs() -> Any:
    found = []
    learners: list[Any] = [*classifiers().values(), WinsorizedMean(epsilon=1, delta="1e-5", max_norm=1, m=8)]
    learners.append(
        ClippedGradientDescent(
            epsilon=1, delta=1e-6, loss=LogisticLoss(), constraint=L2Ball(5.0), m=8, target_bounds=(-1, 1), max_norm=1.0
        )
    )
    learners.append(WinsorizedQueries(epsilon=2, delta=1e-3, n_queries=2, dimension=3, max_norm=2, m=8))
    learners.append(FiniteMinimizer(epsilon=2, m=8, loss_bounds=(0, 1)))
    for learner in learners:
        cost = learner.privacy_cost(n_users=1000, n_features=1)
        found.append(
            [
                str(cost.epsilon),
                str(cost.delta),
                str(cost.rho),
                str(cost.distance),
                str(cost.bounded_range),
                str(cost.mu2),
            ]
        )
    return found


# --- selections and protocols


@case
def selections() -> Any:
    items = ["tea"] * 90 + ["milk"] * 10 + [None, 7, b"x"]
    found: list[Any] = []
    for neighbors in ("replace", "add-remove"):
        approximate = ApproximatePrivateMode(epsilon=1, delta="1e-6", neighbors=neighbors, default="tea")
        pure = PurePrivateMode(epsilon=1, n_items=2**64, neighbors=neighbors)
        found.append([approximate.release(items, random_state=s) for s in range(4)])
        found.append(
            [pure.release([2**63] * 30 + list(range(100)), random_state=s, exact_integers=True) for s in range(4)]
        )
        found.append(approximate.pmf({"tea": 40, "milk": 38}))
    return found


@case
def local_protocols() -> Any:
    found: list[Any] = []
    common = {"epsilon": 1, "n_users": 64, "round_id": "frozen"}
    for protocol in (
        local.KRandomizedResponse(n_items=5, **common),
        local.SubsetSelection(n_items=12, **common),
        local.HadamardResponse(n_items=13, **common),
    ):
        found.append([protocol.client(slot).report(slot % 5, random_state=slot) for slot in range(8)])
        messages = protocol.report_many([slot % 5 for slot in range(64)], random_state=3)
        server = protocol.server()
        server.receive_many(messages)
        found.extend([messages, server.histogram(), server.select()])
    bits = local.BitwiseMajority(n_bits=4, **common)
    found.append(bits.report_many(np.tile([[0, 1, 1, 0]], (64, 1)), random_state=3))
    found.append(bits.report_many([[0, 1, 1, 0]] * 64, random_state=3))
    return found


@case
def shuffle_protocols() -> Any:
    total = shuffle.NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=100, round_id="frozen")
    counts = shuffle.Histogram(epsilon=1, delta=1e-3, n_items=4, n_users=100, round_id="frozen")
    chosen = shuffle.Mode(epsilon=1, delta=1e-3, n_items=8, n_users=100, round_id="frozen")
    items = [user % 3 for user in range(100)]
    mixed = total.shuffler()
    for user in range(100):
        mixed.collect(total.client().report(user < 30, random_state=user))
    return [
        total.release([user < 30 for user in range(100)], random_state=1),
        counts.release(items, random_state=2),
        chosen.release(items, random_state=3),
        mixed.release(random_state=4),
        counts.client().report(2, random_state=5),
    ]


# --- public randomness and stable learners


@case
def public_randomness() -> Any:
    rounding = SharedOffsetRounding(SEED, intervals=10)
    found: list[Any] = [rounding.round(0.537)]
    for method in ("race", "darts"):
        sampler = CorrelatedSampler(SEED, method=method)
        found.append([sampler.sample([0.25, 0.3, 0.45], query=query) for query in range(20)])
    return found


@case
def stable_learners() -> Any:
    from userdp.public_randomness import PublicSeed

    X, y = POINTS[:40], LABELS[:40].astype(np.uint8)
    learners: list[Any] = [
        RepresentationLearner(Thresholds(10), gamma=20),
        ListStabilityLearner(VersionSpace(Thresholds(10)), eta=1, k1=2, k2=4, gamma=30),
        ListStabilityLearner(LittlestoneLists(Thresholds(3)), eta=1, k1=2, k2=4, gamma=30),
        TournamentLearner(Thresholds(3), block_length=2, max_examples=9),
    ]
    found: list[Any] = []
    for learner in learners:
        points = np.minimum(X, 3) if "Thresholds(3)" in repr(learner) else X
        found.append([repr(learner.item(points, y, PublicSeed(bytes([s]) * 32))) for s in range(5)])
    found.append(Parities(3).size)
    return found


# --- tables, optima, reports and commands


@case
def tables() -> Any:
    """Every aggregate, by listed groups, by unknown ones and of all rows, in both relations."""
    found = []
    rows = pd.DataFrame(
        {"who": np.repeat(np.arange(60), 4), "town": list("abcd") * 60, "hours": np.tile(NUMBERS[:24, 0], 10) * 9}
    )
    schema = Schema(town=category(list("abc")), hours=number(0, 20))
    for neighbors in ("add-remove", "replace"):
        for composition in ("zcdp", "exact"):
            session = Session(
                rows, user="who", schema=schema, epsilon=8, delta="1e-3", neighbors=neighbors, composition=composition
            )
            query = session.query()
            every = {
                "n": count_rows(max_rows=4),
                "people": count_users(),
                "sum": total("hours", max_total=40),
                "mean": mean("hours"),
            }
            asked = [
                query.agg(**every, half=quantile("hours", "1/2")),
                query.group_by("town", max_keys=2).agg(**every),
                query.filter(col("hours") > 1).agg(shape=histogram("hours", [0, 5, 10, 20])),
            ]
            for place, one in enumerate(asked):
                release = session.release(one, epsilon=2, random_state=place)
                found.append(plain(release.frame.to_dict("list")))
    unknown = Session(rows, user="who", schema=Schema(town=key(str)), epsilon=8, delta="1e-3")
    by_town = unknown.query().group_by("town", max_keys=2).agg(people=count_users())
    found.append(plain(unknown.release(by_town, epsilon=4, delta="1e-4", random_state=9).frame.to_dict("list")))
    return found


@case
def optima() -> Any:
    best = optimal_mechanism(lambda users, guess: 3 - users.count((guess,)), universe=(0, 1), n_users=3, epsilon=1)
    sums = optimal_sum_mechanism(
        lambda number, output: abs(number - output), statistic_range=(-1, 0), outputs=(-2, -1, 0), n_users=2, epsilon=1
    )
    return [
        [best.sample(((0,), (1,), (1,)), random_state=seed) for seed in range(40)],
        [sums.sample(((-1,), (0,)), random_state=seed) for seed in range(40)],
    ]


@case
def reports() -> Any:
    """The digest of every kind, and of its text and page."""
    found = {}
    for name, make in EVERY_REPORT.items():
        report = make()
        content = report.to_dict()
        del content["digest"], content["userdp_version"]
        shown = [report.summary(), report.to_html(date=DAY)]
        found[name] = [digest(part) for part in (content, *(text.replace(report.digest, "") for text in shown))]
    return found


@case
def commands() -> Any:
    """What every command says of itself, as far as it is ours: argparse lays it out in its own ways."""

    def said(parser: argparse.ArgumentParser) -> Any:
        actions = [one for one in parser._actions if not isinstance(one, argparse._SubParsersAction)]
        return [
            parser.description,
            parser.epilog,
            [
                (
                    one.option_strings,
                    one.dest,
                    one.metavar,
                    one.help,
                    one.required,
                    str([one.default, one.nargs, one.choices]),
                )
                for one in actions
            ],
        ]

    parser = parser_of("")
    nested = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return {"userdp": digest(said(parser))} | {name: digest(said(one)) for name, one in nested.choices.items()}


@case
def exits() -> Any:
    """Exit codes and what is printed, of commands that need no file of their own, and of reports that are verified."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("audit", "violated lddp", "certificate", "composition", "stability", "guesses"):
            Path(folder, f"{name}.json").write_text(EVERY_REPORT[name]().to_json())
        Path(folder, "broken.json").write_text(EVERY_REPORT["certificate"]().to_json().replace("certificate", "lddp"))
        for line in RUN:
            words = shlex.split(line.replace("FOLDER", folder))
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_command(words)
            found[line] = [code, digest(_VERSION.sub("", out.getvalue().replace(folder, ""))), err.getvalue() != ""]
    return found


_VERSION = re.compile(r"sha256:[0-9a-f]{64}|[0-9]+\.[0-9]+\.[0-9]+(dev[0-9]+)?")
RUN = (
    "divergence 3/4,1/4 1/4,3/4 --epsilon 'ln(2)' --delta 1/4",
    "divergence 2/3,1/3 1/3,2/3 --epsilon 1/2 --json",
    "divergence 2/3,1/3 1/3 --epsilon 1",
    "compose --pure '0.1*200' --laplace '1/20:3*50' --delta 1e-6",
    "compose --pmf 3/4,1/4 1/4,3/4 --steps 10 --epsilon 'ln(9)' --delta 1e-3 --json",
    "compose --steps 10",
    "optimal --n-users 4 --n-items 2 --epsilon 1",
    "plan",
    "plan nothing",
    "completion bash",
    "audit-one-run --canaries 256 --guesses 128 --right 128 --epsilon 1",
    "audit-one-run --canaries 256 --guesses 128 --right 70 --epsilon 1",
    "certificate pair --p 2/3,1/3 --q 1/3,2/3 --epsilon 1/2 --delta 0 --output FOLDER/no.json",
    "certificate pair --p 2/3,1/3 --q 1/3,2/3 --epsilon 'ln(2)' --delta 0 --output FOLDER/pair.json",
    "verify FOLDER/audit.json",
    "verify 'FOLDER/violated lddp.json'",
    "verify FOLDER/certificate.json --json",
    "verify FOLDER/composition.json",
    "verify FOLDER/stability.json",
    "verify FOLDER/guesses.json",
    "verify FOLDER/broken.json",
    "verify FOLDER/nothing.json",
    "nothing",
)


AFTER_LINEAR_ALGEBRA = {"fits_of_classifiers", "fits_of_means", "fits_of_models", "tables"}
"""Cases in which norms, products and eigenvectors are taken of what was drawn: the last bits are the machine's."""


def alike(name: str, now: Any, known: Any) -> bool:
    """Whether a result is what was frozen, bit for bit, or within 1e-9 after linear algebra in floats."""
    if now == known:
        return True
    if name not in AFTER_LINEAR_ALGEBRA or type(now) is not type(known):
        return False
    if isinstance(now, dict):
        return now.keys() == known.keys() and all(alike(name, now[key], known[key]) for key in now)
    if isinstance(now, list):
        return len(now) == len(known) and all(alike(name, *both) for both in zip(now, known, strict=True))
    if not (isinstance(now, str) and _HEXADECIMAL.fullmatch(now) and _HEXADECIMAL.fullmatch(known)):
        return False
    return math.isclose(float.fromhex(now), float.fromhex(known), rel_tol=1e-9, abs_tol=1e-12)


_HEXADECIMAL = re.compile(r"-?0x[01]\.[0-9a-f]+p[+-][0-9]+")


def main() -> None:
    frozen = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    if "--freeze" in sys.argv:
        names = sys.argv[sys.argv.index("--freeze") + 1 :] or list(CASES)
        frozen |= {name: result_of(name) for name in names}
        FROZEN.write_text(json.dumps(frozen, indent=1, sort_keys=True) + "\n")
        return
    for name in CASES:
        now = result_of(name)
        if not alike(name, now, frozen.get(name)):
            print("differs:", name)
            if isinstance(now, dict) and isinstance(frozen.get(name), dict):
                for key in sorted(now.keys() | frozen[name].keys()):
                    if not alike(name, now.get(key), frozen[name].get(key)):
                        print("   ", key)


if __name__ == "__main__":
    main()
