"""What enrolled users without rows do to the answer of every estimator, and that it is said."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from oracle.thresholds import errors
from support.every_estimator import estimators
from userdp.concepts import Thresholds
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.estimators.plan import PrivacyRecord
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    CorrelatedSamplingClassifier,
    HypothesisSelector,
    PrivateMedian,
    RealizablePACClassifier,
    StatisticalQueryClassifier,
    ThresholdClassifier,
)
from userdp.mechanisms import PurePrivateMode
from userdp.optimization import (
    ClippedGradientDescent,
    FiniteMinimizer,
    L2Ball,
    PhasedERM,
    SquaredLoss,
    WinsorizedGradientDescent,
)
from userdp.stability import DecisionListQueries

SEED = bytes(range(32))
X = np.array([[1], [2], [2], [0], [1], [1]])
Y = np.array([0, 1, 1, 0, 1, 0])
USERS = np.repeat(np.arange(3), 2)
MORE = (0, 1, 2, 3, 4)
"""Two users more than those who have rows."""

SAYING = estimators()


@pytest.mark.parametrize("name", SAYING)
def test_it_is_said_where_users_are_listed(name: str) -> None:
    learner = SAYING[name]
    assert learner.without_rows.startswith("Users without rows ")
    assert " ".join(learner.without_rows.split()) in " ".join(str(type(learner).__doc__).split())
    assert learner.release_plan(n_users=60, n_features=1).record.without_rows == ""
    record = learner.set_params(enrolled=range(60)).release_plan(n_users=60, n_features=1).record
    assert record.without_rows == learner.without_rows
    assert learner.without_rows in " ".join(str(record).split())


def test_it_is_public_and_saved() -> None:
    """It is said of a list of users, not of the data: the same whether there are users without rows."""
    learner = ThresholdClassifier(epsilon=1, domain_size=2, m=2, classes=(0, 1))
    all_have = learner.set_params(enrolled=[0, 1, 2]).fit(X, Y, groups=USERS).privacy_
    some_have_none = learner.fit(X[:4], Y[:4], groups=USERS[:4]).privacy_
    assert all_have == some_have_none
    assert all_have.without_rows == learner.without_rows
    assert ThresholdClassifier.from_json(learner.to_json()).privacy_ == all_have
    # Records that were saved before there was such a line are read.
    content = json.loads(learner.to_json())
    del content["fitted"]["privacy_"]["privacy"][-1]
    older = ThresholdClassifier.from_json(json.dumps(content)).privacy_
    assert isinstance(older, PrivacyRecord)
    assert older.without_rows == ""


FAVOR_NONE = [
    ThresholdClassifier(epsilon=1, domain_size=2, m=2, classes=(0, 1)),
    ThresholdClassifier(epsilon=1, points=(0, 1, 0.5), m=2, classes=(0, 1)),
    RealizablePACClassifier(epsilon=1, concepts=Thresholds(2), m=2, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=2, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(2), m=2, method="pairwise", classes=(0, 1)),
    ClippedPairwiseEM(epsilon=1, psi=[[[0] * 3, [1, -1, 0]], [[-1, 1, 0], [0] * 3]], m=2),
    HypothesisSelector(epsilon=1, candidates=[[0.5, 0.4, 0.1], [0.2, 0.2, 0.6]], m=2),
    *(DiscreteDistribution(epsilon=1, n_symbols=3, m=2, alpha=0.9, method=way) for way in ("joint", "symbols")),
    DiscreteDistribution(epsilon=1, n_symbols=2, m=2, alpha=0.4, method="coarse-to-fine"),
    ProductDistribution(epsilon=1, n_symbols=3, n_columns=1, m=2, alpha=0.9),
    GaussianMean(epsilon=1, mean_bound=2, m=2, alpha=0.9),
    GaussianDistribution(epsilon=1, mean_bound=1, kappa=2, m=2, alpha=0.9),
]


@pytest.mark.parametrize("learner", FAVOR_NONE, ids=lambda learner: type(learner).__name__)
def test_they_favor_none(learner: Any) -> None:
    """The distribution is that of the users with rows alone: scores are sums over users, and theirs are 0."""
    y = Y if hasattr(learner, "classes") else None
    alone = learner.set_params(enrolled=None).output_distribution(X, y, groups=USERS)
    assert learner.set_params(enrolled=MORE).output_distribution(X, y, groups=USERS) == alone


def test_they_favor_no_median() -> None:
    given: dict[str, Any] = {"epsilon": 1, "domain_size": 3, "m": 2}
    alone = PrivateMedian(**given).pmf(X[:, 0], groups=USERS)
    assert PrivateMedian(**given, enrolled=MORE).pmf(X[:, 0], groups=USERS) == alone


def test_every_threshold_fits_them() -> None:
    """Also by the definition of the scores, and with larger m, where they count in the choice of t."""
    assert {errors([()], u, t, 8) for u in range(3) for t in range(8)} == {0}


@pytest.mark.parametrize("present", [False, True])
def test_they_vote_for_the_default(present: bool) -> None:
    rows = slice(0, 2 if present else 0)
    learner = CorrelatedSamplingClassifier(
        epsilon=1,
        model="central-pure",
        concepts=Thresholds(2),
        m=2,
        public_seed=SEED,
        enrolled=(0, 1, 2),
        classes=(0, 1),
    )
    pmf = learner.output_distribution(X[rows], Y[rows], groups=USERS[rows])
    mode = PurePrivateMode(epsilon=1, n_items=3, default=0)
    # Whatever the user with rows votes for, the two others vote for 0.
    possible = [mode.pmf(mode.tally([vote, 0, 0])).fractions() for vote in (range(3) if present else (0,))]
    assert pmf.fractions()[: len(possible[0])] in [masses[:3] for masses in possible]


def test_they_vote_for_the_default_of_an_algorithm() -> None:
    lists = DecisionListQueries(1, alpha=0.4, length=1, tolerance=0.4)
    learner = StatisticalQueryClassifier(
        epsilon=1, model="central-pure", algorithm=lists, m=2, public_seed=SEED, enrolled=(0, 1, 2), classes=(0, 1)
    )
    pmf = learner.output_distribution(X[:0], Y[:0], groups=USERS[:0])
    likeliest = max(zip(pmf.fractions(), pmf.outputs, strict=True), key=lambda pair: pair[0])
    assert likeliest[1] == learner._default


DESCENT: dict[str, Any] = {
    "epsilon": 1,
    "delta": 0.1,
    "loss": SquaredLoss(),
    "constraint": L2Ball(1.0),
    "m": 2,
    "target_bounds": (-1, 1),
    "max_norm": 1.0,
}


@pytest.mark.parametrize(
    "learner",
    [
        ClippedGradientDescent(**DESCENT, n_iterations=2, random_state=1),
        WinsorizedGradientDescent(
            **DESCENT, n_iterations=2, method="tracking", concentration=0.5, public_seed=SEED, random_state=1
        ),
        PhasedERM(**DESCENT, max_iterations=1, public_seed=SEED, random_state=1, method="tracking", least_users=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_they_count_with_a_gradient_of_zero(learner: Any) -> None:
    """As users whose features are 0, for whom the gradient is 0 at every theta: the same draws, the same answer."""
    rows, targets = np.array([[1.0], [0.5], [-1.0], [0.25]]), np.array([1.0, 0.5, -0.5, 0.5])
    given = learner.set_params(enrolled=range(6)).fit(rows, targets, groups=[0, 0, 1, 1])
    theta = given.theta_.tolist()
    wide, more = np.vstack([rows, np.zeros((4, 1))]), np.append(targets, np.ones(4))
    zeros = learner.fit(wide, more, groups=[0, 0, 1, 1, 2, 3, 4, 5])
    assert zeros.theta_.tolist() == theta


@pytest.mark.filterwarnings("ignore")
def test_they_count_with_losses_in_the_middle() -> None:
    """With the Laplace-free method of one range: as users whose losses are all the middle of the bounds."""
    learner = FiniteMinimizer(epsilon=2, m=2, alpha=0.3, enrolled=range(6), random_state=1, loss_bounds=(0, 1))
    losses = np.array([[0.1, 0.9], [0.2, 0.8], [0.0, 1.0]])
    alone = learner.fit(losses, groups=[0, 1, 2])
    found = alone.index_, alone.value_
    middle = learner.fit(np.vstack([losses, np.full((3, 2), 0.5)]), groups=range(6))
    assert (middle.index_, middle.value_) == found
