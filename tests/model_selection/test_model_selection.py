"""Folds of users: nobody moves anybody else, where scikit-learn's own splitters and encoders let them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
    cross_val_score,
    cross_validate,
)

from userdp.learners import ThresholdClassifier
from userdp.model_selection import UserKFold, UserShuffleSplit
from userdp.users import UserTable

DOCS = Path(__file__).parents[2] / "docs" / "model-selection.md"
SAFE = [UserKFold(3), UserKFold(4, random_state=2**200), UserShuffleSplit(4), UserShuffleSplit(3, train_size=0.5)]

Rows: TypeAlias = "list[tuple[Any, int]]"
"""Whose row it is, and its label."""


def people() -> Rows:
    rng = np.random.default_rng(5)
    return [(int(user), int(rng.integers(2))) for user in range(60) for _ in range(4)]


def replaced(rows: Rows, user: int, labels: list[int]) -> Rows:
    """Another set of rows of one user, at the same place."""
    first = next(number for number, row in enumerate(rows) if row[0] == user)
    others = [row for row in rows if row[0] != user]
    return others[:first] + [(user, label) for label in labels] + others[first:]


def folds_of_others(cv: Any, rows: Rows, user: Any) -> list[list[tuple[str, Any, int]]]:
    """What each split does with the rows of all users but one."""
    groups, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    given = groups if re.search("Group|User", repr(cv)) else None
    numbers: list[tuple[Any, int]] = []  # whose row it is and its number among that user's, wherever it is
    for number, row in enumerate(rows):
        numbers.append((row[0], sum(other[0] == row[0] for other in rows[:number])))
    found = []
    for train, test in cv.split(np.zeros((len(rows), 1)), y, given):
        parts = [("train", row) for row in train] + [("test", row) for row in test]
        found.append([(part, *numbers[row]) for part, row in parts if groups[row] != user])
    return found


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "labels": lambda rows: replaced(rows, 0, [1 - label for user, label in rows if user == 0]),
    "more rows": lambda rows: replaced(rows, 0, [1] * 40),
    "fewer rows": lambda rows: replaced(rows, 0, [0]),
    "nobody": lambda rows: replaced(rows, 0, []),
}

LEAKS = [
    (KFold(3), "more rows"),
    (StratifiedKFold(3), "labels"),
    (StratifiedShuffleSplit(3, random_state=0), "labels"),
    (check_cv(3, [0, 1], classifier=True), "labels"),
    (GroupKFold(3), "more rows"),
    (StratifiedGroupKFold(3), "labels"),
    (StratifiedGroupKFold(3), "more rows"),
    (GroupKFold(3, shuffle=True, random_state=0), "nobody"),
    (GroupShuffleSplit(3, random_state=0), "nobody"),
]


@pytest.mark.parametrize(("cv", "change"), LEAKS, ids=lambda value: str(value).partition("(")[0])
def test_one_user_moves_others_between_the_folds_of_scikit_learn(cv: Any, change: str) -> None:
    rows = people()
    assert folds_of_others(cv, rows, 0) == folds_of_others(cv, rows, 0)
    assert folds_of_others(cv, rows, 0) != folds_of_others(cv, CHANGES[change](rows), 0)


@pytest.mark.parametrize("change", ["labels", "more rows", "fewer rows"])
@pytest.mark.parametrize("cv", [GroupKFold(3, shuffle=True, random_state=0), GroupShuffleSplit(3, random_state=0)])
def test_shuffled_groups_stay_where_the_users_stay(cv: Any, change: str) -> None:
    rows = people()
    assert folds_of_others(cv, rows, 0) == folds_of_others(cv, CHANGES[change](rows), 0)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cv", SAFE, ids=str)
def test_nobody_moves_others_between_folds_by_ids(cv: Any, change: str) -> None:
    rows = people()
    assert folds_of_others(cv, rows, 0) == folds_of_others(cv, CHANGES[change](rows), 0)
    backwards = [sorted(split) for split in folds_of_others(cv, rows[::-1], 0)]
    assert len(backwards) == cv.get_n_splits()
    # Where rows are in the table moves nobody, nor does what else there is.
    test_users = [{user for part, user, _ in split if part == "test"} for split in folds_of_others(cv, rows, 0)]
    assert test_users == [{user for part, user, _ in split if part == "test"} for split in backwards]


# --- encoders of labels


class Seen(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps the labels that it was fitted with."""

    def fit(self, X: Any, y: Any) -> Seen:
        self.labels_, self.classes_ = np.asarray(y), np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


def voting() -> Any:
    return VotingClassifier([("seen", Seen())])


def stacking() -> Any:
    return StackingClassifier([("seen", Seen())], final_estimator=Seen(), cv=KFold(2))


@pytest.mark.parametrize("ensemble", [voting, stacking])
def test_one_user_gives_all_others_other_labels_in_an_ensemble(ensemble: Callable[[], Any]) -> None:
    X, y = np.zeros((6, 1)), np.array(["no", "no", "yes", "yes", "no", "yes"])
    odd = y.copy()
    odd[0] = "later"  # the first row is one user's
    seen = [ensemble().fit(X, labels).estimators_[0].labels_[1:] for labels in (y, odd)]
    assert not np.array_equal(*seen)


def test_public_classes_give_everybody_their_own_label() -> None:
    X, y = np.zeros((6, 1)), np.array(["no", "no", "yes", "yes", "no", "yes"], dtype=object)
    read = []
    for label in ("no", "yes", "later", None, 7):
        y[0] = label
        table = UserTable.read(X, y, groups=range(6), m=1, classes=("no", "yes"))
        read.append(table.labels[table.users > 0].tolist())
    assert read == [[0, 1, 1, 0, 1]] * 5


def test_the_programs_of_the_page() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    # The vote is over the members that were fitted, and public rows have changed none of them.
    assert [one.estimator for one in names["vote"].estimators_] == [one.estimator for _, one in names["members"]]


# --- the splitters


def split_independently(ids: list[bytes], name: str, seed: int, split: int) -> list[int]:
    """The places of docs/model-selection.md, byte by byte."""
    found = []
    for written in ids:
        digest = hashlib.sha256()
        digest.update(name.encode("ascii"))
        digest.update(bytes(1))
        digest.update(bytes.fromhex(f"{seed:064x}"))
        digest.update(bytes.fromhex(f"{split:016x}"))
        digest.update(written)
        found.append(int(digest.hexdigest()[:32], 16))
    return found


@pytest.mark.parametrize("seed", [0, 7, 2**256 - 1])
def test_the_formula_of_the_page(seed: int) -> None:
    numbers, texts = list(range(-20, 300)), [f"ä{number}" for number in range(320)]
    written = [b"1:s%d:%d" % (len(str(number)), number) for number in numbers]
    spelled = [b"1:s%d:%s" % (len(text.encode()), text.encode()) for text in texts]
    for users, ids in ((numbers, written), (texts, spelled)):
        rows = np.zeros((len(users), 1))
        places = split_independently(ids, "UserKFold", seed, 0)
        for fold, (train, test) in enumerate(UserKFold(7, random_state=seed).split(rows, groups=users)):
            mine = [place * 7 >> 128 == fold for place in places]
            assert np.flatnonzero(mine).tolist() == test.tolist()
            assert sorted([*train, *test]) == list(range(len(users)))
        chosen = UserShuffleSplit(3, test_size=0.25, train_size=0.5, random_state=seed).split(rows, groups=users)
        for split, (train, test) in enumerate(chosen):
            places = split_independently(ids, "UserShuffleSplit", seed, split)
            assert test.tolist() == [row for row, place in enumerate(places) if place < 2**126]
            assert train.tolist() == [row for row, place in enumerate(places) if place >= 2**127]


def test_pinned_folds() -> None:
    """So that folds are the same in every version."""
    test = [test.tolist() for _, test in UserKFold(3).split(range(12), groups=list(range(12)))]
    assert test == [[0, 5, 7, 10], [1, 2, 3, 11], [4, 6, 8, 9]]


def containers(ids: np.ndarray) -> Iterator[Any]:
    yield ids
    yield ids.tolist()
    yield ids.astype(np.int16)
    yield ids.astype(float)
    yield ids.astype(str)
    yield [str(user) if row % 2 else user for row, user in enumerate(ids.tolist())]
    pandas = pytest.importorskip("pandas")
    yield pandas.Series(ids)
    yield pandas.array(ids, dtype="Int64")


def test_the_same_user_in_every_container_is_in_the_same_fold() -> None:
    ids = np.repeat(np.arange(30), 3)
    X = np.zeros((90, 1))
    folds = [[test.tolist() for _, test in UserKFold(3).split(X, groups=groups)] for groups in containers(ids)]
    assert all(fold == folds[0] for fold in folds)


def test_sizes_are_those_of_independent_users() -> None:
    """Chi-squared over 10 folds of 20,000 users: above 52 with probability less than 1e-7; and no two splits alike."""
    users = np.arange(20_000)
    sizes = np.array([len(test) for _, test in UserKFold(10).split(users, groups=users)])
    assert sizes.sum() == 20_000
    assert 0 < ((sizes - 2000) ** 2 / 2000).sum() < 52
    tests = [set(test.tolist()) for _, test in UserShuffleSplit(4, test_size=0.5).split(users, groups=users)]
    for one in range(4):
        for other in range(one):
            assert abs(len(tests[one] & tests[other]) - 5000) < 6 * 62  # 62 is the root of 20,000 * 3/16


def test_scikit_learn_hands_the_ids_on() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(1, 9, size=(360, 1))
    y, users = (X[:, 0] > 4).astype(int), np.repeat(np.arange(60), 6)
    learner = ThresholdClassifier(epsilon=1, domain_size=8, m=6, classes=(0, 1))
    assert len(cross_val_score(Seen(), X, y, groups=users, cv=UserKFold(3))) == 3
    assert (
        len(GridSearchCV(Seen(), {}, cv=UserShuffleSplit(2)).fit(X, y, groups=users).cv_results_["mean_test_score"])
        == 1
    )
    with config_context(enable_metadata_routing=True):
        for cv in (UserKFold(3), UserShuffleSplit(3)):
            found = cross_validate(
                learner, X, y, params={"groups": users}, cv=cv, return_estimator=True, return_indices=True
            )
            sizes = [len(np.unique(users[train])) for train in found["indices"]["train"]]
            assert [fitted.n_users_ for fitted in found["estimator"]] == sizes
            assert {fitted.unit_ for fitted in found["estimator"]} == {"user"}
        search = GridSearchCV(learner, {"epsilon": [1, 2]}, cv=UserKFold(3)).fit(X, y, groups=users)
    assert search.best_estimator_.n_users_ == 60
    assert check_cv(UserKFold(4)).get_n_splits(X, y, users) == 4
    assert repr(UserKFold()) == "UserKFold(n_splits=5, random_state=0)"
    assert repr(UserShuffleSplit()) == "UserShuffleSplit(n_splits=5, random_state=0, test_size=0.2, train_size=None)"


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: UserKFold(1), ValueError, "n_splits must be at least 2; got 1"),
        (lambda: UserKFold(2.0), TypeError, "n_splits must be an int >= 2; got 2.0"),
        (lambda: UserShuffleSplit(0), ValueError, "n_splits must be at least 1; got 0"),
        (lambda: UserKFold(random_state=None), TypeError, "random_state must be a public int"),
        (lambda: UserKFold(random_state=-1), ValueError, r"in \[0, 2\*\*256\); got -1"),
        (lambda: UserShuffleSplit(test_size=3), TypeError, "test_size must be a float .* got 3"),
        (lambda: UserShuffleSplit(test_size=1.5), ValueError, "test_size must be in .* got 1.5"),
        (lambda: UserShuffleSplit(train_size=float("nan")), ValueError, "train_size must be in .* got nan"),
        (lambda: UserShuffleSplit(train_size=0.9), ValueError, "add up to at most 1; got 0.2 and 0.9"),
    ],
)
def test_bad_parameters(make: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_bad_ids() -> None:
    X = np.zeros((4, 1))
    with pytest.raises(ValueError, match="groups must be given"):
        next(UserKFold(2).split(X))
    with pytest.raises(ValueError, match=r"none of the 1 users is in the t[a-z]+ part of split"):
        list(UserKFold(2).split(X, groups=[1, 1, 1, 1]))


@pytest.mark.parametrize("cv", SAFE, ids=str)
def test_rows_without_an_id_are_in_no_part(cv: Any) -> None:
    ids: list[Any] = np.repeat(np.arange(40), 3).tolist()
    whole = list(cv.split(np.zeros((120, 1)), groups=ids))
    odd: list[Any] = [None, float("nan"), "", {}, [1]]
    held = [*odd, *ids, *odd]
    for (train, test), (others, tested) in zip(whole, cv.split(np.zeros((130, 1)), groups=held), strict=True):
        assert (others - 5).tolist() == train.tolist()
        assert (tested - 5).tolist() == test.tolist()
