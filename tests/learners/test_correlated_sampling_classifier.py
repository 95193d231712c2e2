"""The classifier whose users vote with shared randomness: its exact pmf, audits, and what it keeps to itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp import LogRatio
from userdp.audit import audit_user_level
from userdp.concepts import FiniteClass, PointFunctions, Thresholds
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError
from userdp.learners import CorrelatedSamplingClassifier
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.protocols import local
from userdp.protocols.rounds import LocalRound
from userdp.public_randomness import PublicSeed
from userdp.stability import ListStabilityLearner, RepresentationLearner, StableLearner, TournamentLearner, VersionSpace
from userdp.testing import assert_user_private
from userdp.users import UserTable

SEED = PublicSeed(bytes(range(32)))
EXAMPLES = [(1, 0), (1, 1), (2, 0), (2, 1)]
DELTA = {"central-approx": Fraction(1, 5), "central-pure": Fraction(0), "local": Fraction(0)}
ALL = [*DELTA, "shuffle"]


def classifier(model: str, **changes: Any) -> CorrelatedSamplingClassifier:
    arguments: dict[str, Any] = {
        "epsilon": LogRatio(4),
        "concepts": Thresholds(2),
        "m": 1,
        "gamma": 3,
        "public_seed": SEED.hex,
        "classes": (0, 1),
    }
    return CorrelatedSamplingClassifier(model=model, **{"delta": DELTA.get(model, 1e-2), **arguments, **changes})


def people(n_users: int = 200, m: int = 30) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    X = rng.integers(1, 9, size=(n_users * m, 1))
    return X, (X[:, 0] > 3).astype(int), np.repeat(np.arange(n_users), m)


# --- audits: all neighboring datasets, on the distribution that fit draws from


@pytest.mark.parametrize(
    ("model", "n_users", "m"),
    [(model, n, m) for model in DELTA for n, m in ((2, 1), (2, 2), (3, 1))] + [("central-approx", 7, 1)],
)
def test_every_pair_of_neighbors_is_within_the_budget(model: str, n_users: int, m: int) -> None:
    learner = as_finite_algorithm(classifier(model, m=m))
    report = assert_user_private(
        learner, universe=EXAMPLES, n_users=n_users, n_examples=m, epsilon=LogRatio(4), delta=DELTA[model]
    )
    print(f"{model}, n={n_users}, m={m}: {report}")
    assert not audit_user_level(learner, universe=EXAMPLES, n_users=n_users, n_examples=m, epsilon=0, delta=0).holds, (
        "the votes must make a difference at all"
    )


@pytest.mark.parametrize(("model", "n_users"), [("central-approx", 7), ("central-pure", 3), ("local", 3)])
def test_half_the_noise_is_found_out(model: str, n_users: int) -> None:
    # With delta > 0 a selection of few votes is mostly none: seven users make two counts that compete.
    learner = classifier(model, epsilon=LogRatio(16))
    report = audit_user_level(
        as_finite_algorithm(learner),
        universe=EXAMPLES,
        n_users=n_users,
        n_examples=1,
        epsilon=LogRatio(4),
        delta=DELTA[model],
    )
    print(f"{model}, half the noise: worst delta {report.worst_delta}")
    assert report.holds is False


@pytest.mark.parametrize(("model", "n_users"), [("central-approx", 7), ("central-pure", 3), ("local", 3)])
def test_a_vote_that_looks_at_others_is_found_out(model: str, n_users: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def following(self: RepresentationLearner, data: UserTable, seed: PublicSeed) -> list[int]:
        # Everybody votes as most labels of all say.
        return [int(2 * data.labels.sum() > len(data.labels))] * data.n_users

    monkeypatch.setattr(RepresentationLearner, "items", following)
    report = audit_user_level(
        as_finite_algorithm(classifier(model)),
        universe=EXAMPLES,
        n_users=n_users,
        n_examples=1,
        epsilon=LogRatio(4),
        delta=DELTA[model],
    )
    assert report.holds is False


def test_without_the_margin_for_new_votes_the_central_selection_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Noise is added to the counts of votes that somebody has: without t + 1 subtracted, a new vote shows.
    whole = ApproximatePrivateMode.half_width.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(ApproximatePrivateMode, "half_width", property(lambda self: whole(self) - 1))
    monkeypatch.setattr(ApproximatePrivateMode, "pmf", _shifted(ApproximatePrivateMode.pmf))
    report = audit_user_level(
        as_finite_algorithm(classifier("central-approx")),
        universe=EXAMPLES,
        n_users=2,
        n_examples=1,
        epsilon=LogRatio(4),
        delta=DELTA["central-approx"],
    )
    assert report.holds is False


def _shifted(pmf: Callable[..., Any]) -> Callable[..., Any]:
    """The distribution when every vote that is there counts once more."""
    return lambda self, counts: pmf(self, {item: count + bool(count) for item, count in counts.items()})


# --- the distribution


@pytest.mark.parametrize("model", ["central-approx", "central-pure"])
def test_the_pmf_is_that_of_the_selection_on_the_votes(model: str) -> None:
    X, y, users = people(9, 3)
    estimator = classifier(model, concepts=Thresholds(8), m=3, gamma=30)
    learner = RepresentationLearner(Thresholds(8), gamma=30)
    votes = Counter(int(learner.item(X[users == user], y[users == user].astype(np.uint8), SEED)) for user in range(9))
    assert len(votes) > 2
    selection: Any = (
        ApproximatePrivateMode(epsilon=LogRatio(4), delta=DELTA[model])
        if model == "central-approx"
        else PurePrivateMode(epsilon=LogRatio(4), n_items=9)
    )
    expected = dict(zip(*(lambda pmf: (pmf.outputs, pmf.fractions()))(selection.pmf(votes)), strict=True))
    distribution = estimator.output_distribution(X, y, groups=users)
    found = {
        outcome: mass for outcome, mass in zip(distribution.outputs, distribution.fractions(), strict=True) if mass
    }
    assert found == {outcome: mass for outcome, mass in expected.items() if mass}


def test_the_pmf_of_a_local_round_is_that_of_all_reports() -> None:
    protocol = local.KRandomizedResponse(epsilon=1, n_items=3, n_users=2, round_id="a")
    distribution = LocalRound(protocol, range(3)).pmf([2, 1])
    first, second = (dict(zip(pmf.outputs, pmf.fractions(), strict=True)) for pmf in (protocol.pmf(2), protocol.pmf(1)))
    # Of two reports the smaller symbol is selected: one vote each.
    expected = {
        item: sum(first[a] * second[b] for a in range(3) for b in range(3) if min(a, b) == item) for item in range(3)
    }
    assert dict(zip(distribution.outputs, distribution.fractions(), strict=True)) == expected


def test_a_shuffled_round_has_no_pmf_but_says_where_the_guarantee_is() -> None:
    X, y, users = people(3, 1)
    with pytest.raises(BudgetError, match="certified_delta"):
        classifier("shuffle", concepts=Thresholds(8)).output_distribution(X, y, groups=users)


@pytest.mark.parametrize("model", ALL)
def test_people_who_agree_are_heard(model: str) -> None:
    # 200 users, each with 30 rows: almost all vote for x > 3, and selections fail with probability below 1e-8.
    X, y, users = people()
    fitted = classifier(
        model, epsilon=4, delta=1e-3 if DELTA.get(model, 1) else 0, concepts=Thresholds(8), m=30, gamma=100
    )
    fitted.fit(X, y, groups=users)
    assert fitted.describe() == "x > 3"
    assert fitted.selected_ is True
    np.testing.assert_array_equal(fitted.predict([[3], [4]]), [0, 1])


def test_nothing_is_selected_from_people_who_disagree() -> None:
    # Every user is certain of a threshold of their own: one vote each, and 1 + 2 - 2 - 1 < 1.
    X = np.repeat(np.arange(1, 9), 2)[:, None] + np.tile([0, 1], 8)[:, None]
    fitted = classifier("central-approx", concepts=Thresholds(9), gamma=10**6, m=2)
    fitted.fit(X, np.tile([0, 1], 8), groups=np.repeat(np.arange(8), 2))
    assert (fitted.selected_, fitted.concept_) == (False, 0)


# --- what is public, and what is kept


@pytest.mark.parametrize("model", ALL)
def test_what_is_kept_is_the_outcome_and_public(model: str) -> None:
    X, y, users = people(20, 3)
    fitted = classifier(model, concepts=Thresholds(8), m=3).fit(X, y, groups=users)
    kept = {name for name in vars(fitted) if name.endswith("_")}
    public = {"public_seed_", "classes_", "n_features_in_", "n_users_", "unit_", "privacy_", "is_private_"}
    assert kept == {*public, *fitted.released}
    assert fitted.privacy_.delta == fitted.privacy_.cost.delta == Fraction(str(fitted.delta))
    assert fitted.is_private_
    again = CorrelatedSamplingClassifier.from_json(fitted.to_json())
    assert (again.concept_, again.selected_, again.public_seed_) == (fitted.concept_, fitted.selected_, SEED.hex)


def test_a_seed_is_drawn_for_every_fit_and_kept() -> None:
    X, y, users = people(20, 3)
    fits = [
        classifier("central-pure", concepts=Thresholds(8), m=3, public_seed=None).fit(X, y, groups=users) for _ in "ab"
    ]
    seeds = [fit.public_seed_ for fit in fits]
    assert len(set(seeds)) == 2
    assert all(PublicSeed(seed).hex == seed for seed in seeds)
    with pytest.raises(ValueError, match="public_seed must be given for an exact distribution"):
        fits[0].output_distribution(X, y, groups=users)


def test_what_one_user_has_changes_that_users_vote_only() -> None:
    X, y, users = people(12, 4)
    X = X.astype(float)
    votes = []
    hostile = [np.nan, np.inf, -np.inf, 1e300, -5.0, 2.5]
    seen: list[Any] = []

    class Recorded(RepresentationLearner):
        def items(self, data: UserTable, seed: PublicSeed) -> Any:
            seen.append(super().items(data, seed))
            return seen[-1]

    for value in [None, *hostile]:
        rows = X.copy()
        if value is not None:
            rows[users == 5] = value
        classifier(
            "central-pure", concepts=Thresholds(8), m=4, gamma=None, stable_learner=Recorded(Thresholds(8), gamma=50)
        ).fit(rows, y, groups=users)
        votes.append(np.delete(seen[-1], 5))
    for other in votes[1:]:
        np.testing.assert_array_equal(other, votes[0])


def test_a_user_without_rows_votes_for_the_default() -> None:
    X, y, users = people(4, 5)
    estimator = classifier("central-pure", concepts=Thresholds(8), m=5, gamma=1000, enrolled=[0, 1, 2, 3, 99])
    pmf = estimator.output_distribution(X, y, groups=users)
    votes = PurePrivateMode(epsilon=LogRatio(4), n_items=9).pmf({0: 1, **_votes_of(X, y, users)})
    assert [Fraction(weight, pmf.total) for weight in pmf.weights if weight] == votes.fractions()


def _votes_of(X: Any, y: Any, users: Any) -> Counter[int]:
    learner = RepresentationLearner(Thresholds(8), gamma=1000)
    ids = np.unique(users)
    votes = Counter(int(learner.item(X[users == user], y[users == user].astype(np.uint8), SEED)) for user in ids)
    assert 0 not in votes
    return votes


def test_lists_can_be_voted_from() -> None:
    X, y, users = people()
    concepts = Thresholds(8)
    learner = ListStabilityLearner(VersionSpace(concepts), eta=1, k1=2, k2=2, gamma=50)
    fitted = classifier("central-approx", epsilon=4, concepts=concepts, m=30, gamma=None, stable_learner=learner)
    assert fitted.fit(X, y, groups=users).describe() == "x > 3"


def test_votes_for_no_hypothesis_count_as_the_default() -> None:
    class Odd(StableLearner):
        default = None

        def item(self, X: Any, labels: Any, seed: PublicSeed) -> Any:
            return [9, -1, True, 1.0, b"1", "1", None, (1,), 2**70, np.int64(9), np.nan][int(X[0, 0])]

    X = np.arange(1, 11)[:, None]
    estimator = classifier("central-pure", concepts=Thresholds(8), gamma=None, stable_learner=Odd())
    pmf = estimator.output_distribution(X, X[:, 0] > 0, groups=np.arange(10))
    expected = PurePrivateMode(epsilon=LogRatio(4), n_items=9).pmf({0: 10})
    assert [Fraction(weight, pmf.total) for weight in pmf.weights if weight] == expected.fractions()


def test_a_representation_is_voted_for_instead_of_the_class() -> None:
    X, y, users = people()
    finer = FiniteClass([[0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]])
    fitted = classifier(
        "central-pure", epsilon=4, concepts=FiniteClass(np.eye(8, dtype=int)), representation=finer, m=30
    )
    points = X - 1
    assert fitted.fit(points, y, groups=users).concept_ == 0


# --- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "trusted"}, "model must be one of"),
        ({"model": "central-approx", "delta": 0}, r"delta must be in \(0, 1\).*central-pure"),
        ({"model": "shuffle", "delta": 1}, "delta must be below 1"),
        ({"model": "central-pure", "delta": 1e-6}, "delta must be 0"),
        ({"model": "local", "delta": "1e-6"}, "delta must be 0"),
        ({"model": "local", "delta": -1}, "delta"),
        ({"gamma": 0}, "gamma"),
        ({"gamma": "many"}, "gamma"),
        ({"public_seed": b"short"}, "32"),
        ({"public_seed": "00"}, "32"),
        ({"beta": 1}, "beta"),
        ({"alpha": 0}, "alpha"),
        ({"concepts": [[0, 1]]}, "concepts"),
        ({"stable_learner": Thresholds(8), "gamma": None}, "stable_learner must be a StableLearner"),
        ({"stable_learner": RepresentationLearner(Thresholds(5), gamma=1), "gamma": None}, "its own class has 6"),
        (
            {"stable_learner": TournamentLearner(Thresholds(8), block_length=1, max_examples=9), "gamma": None},
            "are bytes, like its default",
        ),
        ({"stable_learner": RepresentationLearner(Thresholds(8), gamma=1)}, "gamma is for the default learner"),
        ({"representation": PointFunctions(5)}, "over as many points"),
        ({"m": None}, "m, the public number of rows .* must be given"),
    ],
)
def test_bad_parameters_are_named(changes: dict[str, Any], message: str) -> None:
    X, y, users = people(4, 2)
    arguments = {"model": "central-pure", "concepts": Thresholds(8), "m": 2, **changes}
    with pytest.raises((TypeError, ValueError), match=message):
        classifier(arguments.pop("model"), **arguments).fit(X, y, groups=users)
