"""What every learner shares: who a user is, total maps, programs, budgets, and what a fitted estimator holds."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import uuid
import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.concepts import DecisionStumps, HashedPointFunctions, PointFunctions, Thresholds
from userdp.estimators import plan
from userdp.exceptions import InsecureRandomnessWarning
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier, ThresholdClassifier
from userdp.means import WinsorizedMean
from userdp.mechanisms.composed import run

STUMPS = DecisionStumps(thresholds=[[1.5, 2.5], [0.0]])
LEARNERS = [
    RealizablePACClassifier(epsilon=1, concepts=STUMPS, m=3, alpha=0.3, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=STUMPS, m=3, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=5, classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=3, method="pairwise", classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=3, method="surrogate", alpha=0.9, classes=(0, 1)),
    AgnosticPACClassifier(
        epsilon=1,
        concepts=PointFunctions(3),
        representation=HashedPointFunctions(3, alpha=0.9, beta=0.4, seed=bytes(32)),
        m=1,
        method="surrogate",
        classes=(0, 1),
    ),
]
LEARNERS += [
    ThresholdClassifier(epsilon=1, domain_size=3, m=5, classes=(0, 1)),
    ThresholdClassifier(epsilon=1, domain_size=3, m=3, method="median", alpha=0.9, classes=(0, 1)),
]
every = pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: f"{type(learner).__name__}-{getattr(learner, 'method', 'any')}-{learner.m}"
)

# Five users with 4, 3, 2, 1 and 2 rows, mixed up.
USERS = np.array([0, 1, 0, 2, 1, 0, 3, 4, 0, 1, 2, 4])
X = np.array([[1, 0], [2, 1], [3, -1], [1, 1], [2, 0], [3, 1], [1, -1], [2, 1], [1, 1], [3, 0], [2, 0], [1, 1]])
Y = np.array([0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0])


def pmf(learner: Any, x: Any = X, y: Any = Y, groups: Any = USERS) -> list[Fraction]:
    fractions: list[Fraction] = learner.output_distribution(x, y, groups=groups).fractions()
    return fractions


# --- who a user is


@every
def test_the_kind_of_user_ids_does_not_matter(learner: Any) -> None:
    names = ["zoe", "ann", "bob", "éva", "yan"]
    wanted = pmf(learner)
    ids: list[Any] = [
        [names[user] for user in USERS],
        np.array([names[user] for user in USERS]),
        [uuid.uuid5(uuid.NAMESPACE_DNS, names[user]) for user in USERS],
        USERS.astype(np.uint8),
        (USERS * 2**40 - 2**50).astype(np.int64),
        USERS.astype(np.uint64) * np.uint64(2**40) + np.uint64(2**63),
        USERS + 0.5,
        USERS.astype("datetime64[D]"),
        USERS.astype(float),
        np.array([names[user].encode() for user in USERS]),
    ]
    for groups in ids:
        assert pmf(learner, groups=groups) == wanted


@every
def test_pmfs_depend_on_users_as_a_multiset(learner: Any) -> None:
    """Neither the order of users nor their names matter; within a user the first rows count."""
    wanted = pmf(learner)
    for order in list(itertools.permutations(range(5)))[::20]:
        rows = np.concatenate([np.flatnonzero(user == USERS) for user in order])
        assert pmf(learner, X[rows], Y[rows], np.array(order)[USERS[rows]]) == wanted


def test_only_the_first_m_rows_count() -> None:
    learner = LEARNERS[0]
    changed = Y.copy()
    changed[8] = 1 - changed[8]  # the fourth row of user 0, where m = 3
    assert pmf(learner, y=changed) == pmf(learner)
    changed = Y.copy()
    changed[5] = 1 - changed[5]  # the third
    assert pmf(learner, y=changed) != pmf(learner)


@every
def test_enrolled_users_without_rows_count(learner: Any) -> None:
    listed = type(learner)(**{**learner.get_params(deep=False), "enrolled": (4, 3, 2, 1, 0)})
    assert pmf(listed) == pmf(learner)
    more = type(learner)(**{**learner.get_params(deep=False), "enrolled": range(9)})
    fitted = more.fit(X, Y, groups=USERS)
    assert fitted.n_users_ == 9
    # Nobody needs to have a row.
    nobody = more.output_distribution(np.zeros((0, 2)), [], groups=[])
    assert sum(nobody.fractions()) == 1


@pytest.mark.parametrize(
    ("groups", "options", "error", "message"),
    [
        (None, {}, ValueError, "groups is missing"),
        (USERS, {"m": None}, ValueError, "^m, the public number of rows .* must be given"),
        (USERS[:-1], {}, ValueError, "groups has 11 user ids for 12 rows"),
        (USERS[:, None], {}, ValueError, r"one user id for each row; got the shape \(12, 1\)"),
        (np.zeros(12, dtype=int), {}, ValueError, "at least 2 users are needed .*; got 1"),
        ([[user] if user else {} for user in USERS], {}, ValueError, "at least 2 users are needed .*; got 0"),
        (np.ma.masked_array(USERS, mask=USERS > 0), {}, ValueError, "at least 2 users are needed .*; got 1"),
        (USERS.astype("timedelta64[s]"), {}, ValueError, "at least 2 users are needed .*; got 0"),
        (USERS, {"enrolled": [0, 1, 2, 3]}, ValueError, "row 7 is not among those enrolled"),
        (USERS, {"enrolled": [0, 1, 2, 3, 4, 4]}, ValueError, "enrolled lists a user twice"),
        (USERS, {"enrolled": "01234"}, TypeError, "enrolled must be a sequence"),
        (USERS, {"m": 0}, ValueError, "m must be at least 1"),
        (USERS, {"on_invalid": "ignore"}, ValueError, "on_invalid must be"),
        (USERS, {"require_groups": "no"}, TypeError, "require_groups must be a bool"),
        (USERS, {"classes": (1,)}, ValueError, "classes must be two distinct labels"),
        (USERS, {"classes": (1, 1)}, ValueError, "classes: 1 and 1 read alike"),
        (USERS, {"exact_ids": 1}, TypeError, "exact_ids must be a bool"),
        (USERS, {"written_ids": "no"}, TypeError, "written_ids must be a bool"),
        (USERS, {"classes": "01"}, ValueError, "classes must be two distinct labels"),
        (USERS, {"epsilon": None}, TypeError, "epsilon must be"),
        (USERS, {"random_state": -1}, ValueError, "random_state must be"),
    ],
)
def test_public_mistakes_are_refused(groups: Any, options: Any, error: Any, message: str) -> None:
    learner = RealizablePACClassifier(**{**LEARNERS[0].get_params(deep=False), **options})
    with pytest.raises(error, match=message):
        learner.fit(X, Y, groups=groups)


@every
def test_rows_without_an_id_are_left_out(learner: Any) -> None:
    """In front, between and behind the others, whatever stands in them."""
    wanted = pmf(learner)
    for missing in (None, math.nan, "", " ", {}, [1], (1, None)):
        groups = [missing, *USERS[:5].tolist(), missing, *USERS[5:].tolist(), missing]
        rows = np.insert(X.astype(float), [0, 5, 12], [[math.nan, 1], [3, -1], [2, 1]], axis=0)
        assert pmf(learner, rows, np.insert(Y, [0, 5, 12], 1), groups) == wanted


@pytest.mark.parametrize("bad", [X[:-1], X[:, 0], np.zeros((12, 0))])
def test_shapes_and_types_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        LEARNERS[0].fit(bad, Y, groups=USERS)


def planned(learner: Any, values: Any = X) -> Any:
    """The program that a fit runs."""
    table, _ = learner._read(values, Y, USERS)
    return learner._plan(table.n_users, table.n_columns).program(table)


# --- private values never raise


def without(learner: Any, rows: Any) -> list[Fraction]:
    """The distribution where some rows were never given."""
    listed = type(learner)(**{**learner.get_params(deep=False), "enrolled": range(5)})
    return pmf(listed, *(np.delete(each, rows, axis=0) for each in (X, Y, USERS)))


def replaced(values: Any, rows: Any, bad: Any) -> Any:
    array = np.array(values, dtype=object if isinstance(bad, (str, type(None))) else float)
    array[rows] = bad
    return array


@every
def test_rows_with_labels_outside_the_classes_do_not_count(learner: Any) -> None:
    rows = np.flatnonzero(USERS == 1)
    wanted = without(learner, rows)
    for bad in (math.nan, 7, -1, 0.5, math.inf, "yes", None):
        assert pmf(learner, y=replaced(Y, rows, bad)) == wanted, bad


@every
def test_rows_with_labels_of_another_kind_do_not_count(learner: Any) -> None:
    words = np.array(["no", "yes"])[Y]
    nobody = without(learner, np.arange(12))
    assert pmf(learner, y=words.tolist()) == pmf(learner, y=words.astype(object)) == pmf(learner, y=words) == nobody
    assert pmf(learner, y=Y.astype(str)) == pmf(learner, y=Y + 0j) == pmf(learner)


@pytest.mark.parametrize("learner", LEARNERS[:4], ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(
    ("bad", "like"), [(math.nan, -math.inf), (math.inf, 1e9), (-math.inf, -1e9), (1e300, 3.0), (-1e300, 1.0)]
)
def test_points_outside_the_domain_are_clamped(learner: Any, bad: float, like: float) -> None:
    rows = np.flatnonzero(USERS == 2)
    first, second = X.astype(float), X.astype(float)
    first[rows, 0], second[rows, 0] = bad, like
    assert pmf(learner, first) == pmf(learner, second)


class Incomparable:
    """As missing values of pandas are: neither a number, nor equal or unequal to anything."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value is ambiguous")

    def __repr__(self) -> str:
        return "Incomparable()"

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("learner", LEARNERS[:4], ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("bad", ["text", "", None, 1j, {}, Incomparable()], ids=repr)
def test_what_is_no_number_is_as_a_missing_value(learner: Any, bad: Any) -> None:
    row = int(np.flatnonzero(USERS == 4)[0])
    missing, first = X.astype(float), X.astype(object)
    missing[row], first[row] = math.nan, bad
    wanted = pmf(learner, missing)
    assert pmf(learner, first) == wanted
    if isinstance(bad, str):
        # NumPy makes texts of all numbers then.
        assert pmf(learner, np.array(first.tolist())) == wanted
    if isinstance(bad, complex):
        assert pmf(learner, np.array(first.tolist())) == wanted
    labels = Y.astype(object)
    labels[row] = bad
    assert pmf(learner, y=labels) == without(learner, [row])
    fitted = type(learner)(**learner.get_params(deep=False)).fit(first, labels, groups=USERS)
    assert np.array_equal(fitted.predict(first), fitted.predict(missing))


def test_no_warnings_tell_of_values() -> None:
    """Long doubles beyond doubles, arrays and complex numbers among objects; warnings are errors here."""
    row = int(np.flatnonzero(USERS == 4)[0])
    long, infinite, odd, missing = X.astype(np.longdouble), X.astype(float), X.astype(object), X.astype(float)
    long[row, 0], infinite[row, 0] = np.longdouble("1e400"), math.inf
    odd[row, 0], odd[row, 1] = np.zeros(2), np.datetime64("2020-01-01")
    missing[row] = math.nan
    assert pmf(LEARNERS[0], long) == pmf(LEARNERS[0], infinite)
    assert pmf(LEARNERS[0], odd) == pmf(LEARNERS[0], missing)
    odd[row, 0] = np.complex128(2 + 1j)
    pmf(LEARNERS[0], odd)
    labels = Y.astype(object)
    labels[row] = np.ones((2, 2))
    assert pmf(LEARNERS[0], y=labels) == without(LEARNERS[0], [row])


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_a_bad_row_changes_its_users_contribution_only(bad: float) -> None:
    """Scores move by at most 1, as for any other change of one user."""
    learner, scores = LEARNERS[0], []
    for values in (X.astype(float), replaced(X, USERS == 4, bad)):
        program = planned(learner, values)
        program(lambda mechanism, found: scores.append(found) or 0)
    assert np.abs(scores[0] - scores[1]).max() == 1


def test_missing_values_are_refused_on_request() -> None:
    learner = RealizablePACClassifier(**{**LEARNERS[0].get_params(deep=False), "on_invalid": "raise"})
    with pytest.raises(ValueError, match="NaN"):
        learner.fit(replaced(X, 2, math.nan), Y, groups=USERS)
    with pytest.raises(ValueError, match="NaN"):
        learner.fit(X, replaced(Y, 2, math.nan), groups=USERS)
    with pytest.raises(ValueError, match="labels outside classes"):
        learner.fit(X, Y + 1, groups=USERS)


# --- what a fitted estimator holds


def fitted_with(learner: Any, outcome: int, monkeypatch: pytest.MonkeyPatch, x: Any, y: Any, groups: Any) -> Any:
    """Fit, with the same outcome whatever the data are."""

    def forced(program: Any, source: Any) -> int:
        run(program, source)
        return outcome

    monkeypatch.setattr(plan, "run", forced)
    return type(learner)(**learner.get_params(deep=False)).fit(x, y, groups=groups)


def described(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else repr(value)


@every
def test_nothing_but_what_is_released_depends_on_the_data(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = type(learner)(**{**learner.get_params(deep=False), "enrolled": range(5)})
    neighbors = [
        (X, Y, USERS),
        (X, 1 - Y, USERS),
        (X * math.nan, Y, USERS),
        (X[USERS != 2], Y[USERS != 2], USERS[USERS != 2]),
    ]
    held = [
        {name: described(value) for name, value in vars(fitted_with(wide, 1, monkeypatch, *data)).items()}
        for data in neighbors
    ]
    assert all(attributes == held[0] for attributes in held[1:])
    other = {name: described(value) for name, value in vars(fitted_with(wide, 2, monkeypatch, X, Y, USERS)).items()}
    differing = {name for name in other if other[name] != held[0][name]}
    assert differing == set(learner.released)
    assert len(differing) == 1


@every
def test_saved_without_data(learner: Any) -> None:
    rows = np.tile(X, (50, 1))
    fitted = type(learner)(**learner.get_params(deep=False))
    fitted.fit(rows, np.tile(Y, 50), groups=np.arange(600) // 3)
    for again in (pickle.loads(pickle.dumps(fitted)), type(learner).from_json(fitted.to_json())):
        assert np.array_equal(again.predict(rows), fitted.predict(rows))
        assert again.privacy_ == fitted.privacy_
        assert {name: described(value) for name, value in vars(again).items()} == {
            name: described(value) for name, value in vars(fitted).items()
        }
    for value in vars(fitted).values():
        assert np.size(np.asarray(value, dtype=object)) < 600
    assert len(fitted.to_json()) < 3000


@pytest.mark.parametrize("damage", ["{}", "[]", "no", '{"userdp": "estimator", "schema_version": 99}'])
def test_other_texts_are_no_estimators(damage: str) -> None:
    with pytest.raises(ValueError, match="not a RealizablePACClassifier as to_json writes it"):
        RealizablePACClassifier.from_json(damage)
    fitted = LEARNERS[1].fit(X, Y, groups=USERS)
    with pytest.raises(ValueError, match="it is a AgnosticPACClassifier"):
        RealizablePACClassifier.from_json(fitted.to_json())
    content = json.loads(fitted.to_json())
    content["fitted"]["fit"] = 1
    with pytest.raises(ValueError, match="'fit' is not a fitted attribute"):
        AgnosticPACClassifier.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("options", "groups", "caveat"),
    [
        ({}, USERS, None),
        ({"require_groups": False}, USERS, None),
        ({"require_groups": False, "m": None}, None, None),
        ({"classes": None}, USERS, "classes=None"),
        ({"on_invalid": "raise"}, USERS, "on_invalid='raise'"),
        ({"random_state": 3}, USERS, "random_state"),
    ],
)
def test_what_is_promised(options: Any, groups: Any, caveat: str | None) -> None:
    learner = AgnosticPACClassifier(**{**LEARNERS[2].get_params(deep=False), **options})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = learner.fit(X, Y, groups=groups)
    assert [warning.category for warning in caught] == [InsecureRandomnessWarning] * ("random_state" in options)
    assert all(warning.filename == __file__ for warning in caught)
    record = fitted.privacy_
    assert (record.epsilon, record.delta, record.neighbors) == (1, 0, "replace")
    assert fitted.is_private_ is record.is_private is (caveat is None)
    assert len(record.caveats) == (caveat is not None)
    assert caveat is None or caveat in record.caveats[0]
    assert fitted.unit_ == record.unit == ("record" if groups is None else "user")
    assert fitted.n_users_ == (12 if groups is None else 5)
    assert sum(record.budget.values()) == 1
    assert fitted.classes_.tolist() == [0, 1]


def test_a_seed_repeats_a_fit_and_its_absence_does_not() -> None:
    learner = RealizablePACClassifier(epsilon="0.001", concepts=Thresholds(2**12), m=3, classes=(0, 1))
    with pytest.warns(InsecureRandomnessWarning):
        seeded = {learner.set_params(random_state=5).fit(X, Y, groups=USERS).concept_ for _ in range(3)}
    assert len(seeded) == 1
    # Nearly uniform on 4,097: eight draws are all alike with probability below 1e-25.
    free = {learner.set_params(random_state=None).fit(X, Y, groups=USERS).concept_ for _ in range(8)}
    assert len(free) > 1


# --- what is drawn


@pytest.mark.parametrize("learner", LEARNERS[:-1], ids=lambda learner: type(learner).__name__)
def test_the_parts_are_what_mechanisms_are_given(learner: Any) -> None:
    """The certified epsilons of all mechanisms on a path sum to at most epsilon, and to nearly all of it."""
    spent: list[float] = []

    def draw(mechanism: Any, *arguments: Any) -> int:
        inner = getattr(mechanism, "_noise", mechanism)  # a comparison draws one noise
        spent.append(float(inner.certified_epsilon))
        return 0

    planned(learner)(draw)
    assert 1 - 2**-20 < sum(spent) <= 1


def test_a_fit_draws_from_the_pmf() -> None:
    """4,000 fits of one learner: each frequency within 0.045 of its exact mass.

    Fails by chance with probability at most 4 * 2 exp(-2 * 4000 * 0.045**2) < 1e-6 (Hoeffding).
    """
    learner = AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=5, classes=(0, 1))
    exact = pmf(learner)
    counts = Counter(draws(learner, 4000))
    assert all(abs(counts[u] / 4000 - float(exact[u])) < 0.045 for u in range(4))


def draws(learner: Any, number: int) -> Sequence[int]:
    """Outcomes of the program that fit runs, from the operating system's source."""
    from userdp.runtime import source_of

    program, source = planned(learner), source_of(None)
    return [run(program, source) for _ in range(number)]


def test_costs_are_those_of_the_sizes_that_there_are() -> None:
    # "auto" spends no delta where few users are better off without.
    learner = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=16)
    assert learner.privacy_cost(n_users=2, n_features=1).delta == 0
    assert learner.privacy_cost(n_users=10_000, n_features=64).delta == Fraction(1, 10**6)
    with pytest.raises(TypeError, match="n_users"):
        learner.privacy_cost()  # type: ignore[call-arg]


def test_costs_are_known_before_there_are_data() -> None:
    learner = ThresholdClassifier(epsilon="1/3", domain_size=8, m=2, classes=(0, 1))
    cost = learner.privacy_cost(n_users=3, n_features=1)
    assert (cost.epsilon, cost.delta, cost.rho) == (Fraction(1, 3), 0, None)
    fitted = learner.fit([[1], [2], [3]], [0, 1, 0], groups=[1, 2, 3])
    assert fitted.privacy_.cost == cost
    with pytest.raises(ValueError, match="epsilon"):
        ThresholdClassifier(epsilon=0, domain_size=8, m=2, classes=(0, 1)).privacy_cost(n_users=3, n_features=1)
