"""What one user gives, in whatever container, changes nothing that is read of anybody else, and raises nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from support.every_estimator import LABELS, estimators, labels_for
from support.frozen_cases import SEED
from support.hostile_values import CATEGORIES, IN_LISTS, NUMBERS, TABLES, TEXTS, VALUES, VECTORS, brought, no_texts
from userdp.distributions import GaussianMean
from userdp.estimators.base import UserLevelMechanism
from userdp.exceptions import InsecureRandomnessWarning, LabelsOutsideClassesWarning, NoisyFitWarning
from userdp.learners import PrivateMedian, ThresholdClassifier
from userdp.means import WinsorizedQueries
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.optimization import (
    UserLevelLinearRegression,
)
from userdp.protocols import local, shuffle
from userdp.public_randomness import PublicSeed
from userdp.stability import StableLearner
from userdp.users import MeanVectors, UserTable, bound_contributions

POINTS = [1, 9, 3, 2, 5, 8, 10, 4]
USERS = ["ann", "ben", "ann", "cem", "ben", "cem", "ann", "cem"]
OWN = [place for place, user in enumerate(USERS) if user == "ben"]
OTHERS = [place for place in range(len(USERS)) if place not in OWN]
PLACES = (OWN[:1], OWN)
"""One odd value, or nothing else of this user."""


def read(learner: UserLevelMechanism, X: Any, y: Any, groups: Any = USERS) -> UserTable:
    """What a fit reads, with every warning an error."""
    learner._check_parameters()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What depends on parameters and on the container.
        warnings.filterwarnings("ignore", "(X may have whole numbers|A column-vector y)", UserWarning)
        return learner._frozen()._read(X, y, groups)[0]


def same(table: UserTable, other: UserTable, users: tuple[int, ...] = (0, 2)) -> None:
    """Whether two tables have the same rows of these users, bit for bit."""
    assert (table.n_users, table.m) == (other.n_users, other.m)
    assert (table.X.dtype, table.labels.dtype) == (other.X.dtype, other.labels.dtype)
    for user in users:
        mine, theirs = (each.X[each.users == user] for each in (table, other))
        assert mine.tobytes() == theirs.tobytes()
        assert table.labels[table.users == user].tobytes() == other.labels[other.users == user].tobytes()


def replaced(values: list[Any], places: list[int], value: Any) -> list[Any]:
    return [value if place in places else other for place, other in enumerate(values)]


def taken(containers: dict[str, Any], values: list[Any], places: list[int]) -> dict[str, list[str]]:
    """For each container the values that its library takes."""
    return {
        kind: [name for name, value in VALUES.items() if brought(make, replaced(values, places, value)) is not None]
        for kind, make in containers.items()
    }


def test_there_are_many_containers_and_values() -> None:
    assert len(TABLES) >= 25
    assert len(VALUES) >= 40
    counts = {kind: len(names) for kind, names in taken(TABLES, POINTS, OWN[:1]).items()}
    # Those that hold objects hold anything; a typed one holds what is missing at least.
    assert sum(count == len(VALUES) for count in counts.values()) >= 11
    assert min(counts.values()) >= 1, counts
    assert len(VECTORS | NUMBERS) >= 20
    assert len(VECTORS | TEXTS) >= 20


LEARNERS = list(estimators())


@pytest.mark.parametrize("kind", TABLES)
def test_a_value_in_X_moves_nobody(kind: str) -> None:
    """Every value in every container, in one row or in all rows of a user."""
    make = TABLES[kind]
    for learner in (
        ThresholdClassifier(epsilon=1, domain_size=10, m=8, n_features=1, classes=(0, 1)),
        ThresholdClassifier(epsilon=1, domain_size=2**64 - 1, m=8, n_features=1, exact_integers=True, classes=(0, 1)),
        GaussianMean(epsilon=1, mean_bound=10, n_columns=1, m=8),
    ):
        y = labels_for(learner)
        plain = read(learner, make(POINTS), y)
        same(plain, read(learner, [[point] for point in POINTS], y), (0, 1, 2))
        for places in PLACES:
            for value in VALUES.values():
                X = brought(make, replaced(POINTS, places, value))
                if X is not None:
                    same(read(learner, X, y), plain)


def test_rows_of_one_length_have_no_more_columns_than_are_public() -> None:
    """NumPy makes two dimensions of rows of objects of one length, and one of others."""
    rows: list[Any] = [[point, 0, 0] for point in POINTS]
    odd = replaced(rows, OWN[:1], [3])
    assert [np.array(X, dtype=object).ndim for X in (rows, odd)] == [2, 1]
    assert UserTable.read(np.array(odd, dtype=object), groups=USERS, m=8, n_features=2).X.shape == (len(rows), 2)
    learner = ThresholdClassifier(epsilon=1, domain_size=10, m=8, n_features=2, classes=(0, 1))
    for X in (np.array(rows, dtype=object), np.array(rows), pd.DataFrame(rows)):
        with pytest.raises(ValueError, match="n_features is 2, and X has 3 columns"):
            UserTable.read(X, groups=USERS, m=8, n_features=2)
        with pytest.raises(ValueError, match="n_features is 2, and X has 3 columns"):
            read(learner, X, LABELS)


def test_values_of_a_type_that_is_refused_are_not_looked_at() -> None:
    """A date beyond those of Python would raise another error than others do; of pandas it is a missing value."""
    dates = [pa.array([0, last], type=pa.timestamp("s")) for last in (0, 2**60)]
    for date in dates:
        with pytest.raises(TypeError, match="y is of type timestamp"):
            UserTable.read(np.ones((2, 1)), date, groups=[1, 2], m=1)
        with pytest.raises(TypeError, match="'x' is of type timestamp"):
            UserTable.read(pa.table({"x": date}), groups=[1, 2], m=1)
        series = pd.Series(date, dtype="timestamp[s][pyarrow]")
        assert len(UserTable.read(np.ones((2, 1)), series, groups=[1, 2], m=1).labels) == 0
        assert np.isnan(UserTable.read(pd.DataFrame({"x": series}), groups=[1, 2], m=1).X).all()
        labels = UserTable.read(np.ones((2, 1)), date, groups=[1, 2], m=1, classes=("no", "1970-01-01")).labels
        assert labels.tolist() == [1] * (2 if date is dates[0] else 1)


@pytest.mark.parametrize("value", IN_LISTS.values(), ids=list(IN_LISTS))
def test_a_value_in_a_list_moves_nobody(value: Any) -> None:
    """In rows, and in the place of rows, of one column and of two."""
    for row in (value, [value], [value, value], (value, value)):
        for width in (1, 2):
            rows: list[Any] = [[point] * width for point in POINTS]
            odd = replaced(rows, OWN, row)
            same(*(UserTable.read(X, groups=USERS, m=8, n_features=width) for X in (odd, rows)))
            for labels in (LABELS, [[label] for label in LABELS]):
                y = replaced(labels, OWN, row)
                for classes in ((0, 1), None):
                    tables = (
                        UserTable.read(rows, each, groups=USERS, m=8, n_features=width, classes=classes)
                        for each in (y, labels)
                    )
                    same(*tables)


def test_texts_of_characters_that_are_none_are_no_values() -> None:
    """NumPy and Arrow hold them, and raise when they are looked at."""
    ends = pa.py_buffer(np.arange(4, dtype=np.int32).tobytes())
    arrow = pa.StringArray.from_buffers(3, ends, pa.py_buffer(b"ab\xff"))
    array = np.concatenate([np.array(["a", "b"]), no_texts(1)])
    rows, classes, selection = np.eye(3), ("b", "a"), ApproximatePrivateMode(epsilon=1, delta=1e-6)
    for odd in (array, arrow, pd.Series(arrow, dtype=pd.ArrowDtype(pa.string()))):
        assert UserTable.read(rows, odd, groups=[1, 2, 3], m=1, classes=classes).labels.tolist() == [1, 0]
        assert selection.tally(odd) == {"a": 1, "b": 1, None: 1}
        # Bytes that are no text are somebody; what NumPy cannot show is nobody.
        assert UserTable.read(rows, groups=odd, m=1).n_users == (2 if odd is array else 3)
    for odd in ([["a"], ["b"], no_texts(1)], ["a", "b", no_texts(1)]):
        assert UserTable.read(rows, odd, groups=[1, 2, 3], m=1, classes=classes).labels.tolist() == [1, 0]
    protocol = local.BitwiseMajority(epsilon=1, n_bits=2, n_users=4, round_id="x")
    assert len(protocol.client(slot=1).report(no_texts(2))) == len(protocol.client(slot=2).report([0, 0]))


@pytest.mark.parametrize("kind", TABLES)
def test_all_values_together_move_nobody(kind: str) -> None:
    """The same for every learner, where every value has a user: all that the container takes, at once if it can."""
    make = TABLES[kind]
    odd = [value for value in VALUES.values() if brought(make, [*POINTS, value]) is not None]
    if brought(make, [*POINTS, *odd]) is None:
        odd = [None]  # typed columns refuse most of the others
    groups = [*USERS, *(f"odd {place:03}" for place in range(len(odd)))]
    X, others = brought(make, [*POINTS, *odd]), make([*POINTS, *(3 for _ in odd)])
    for learner in estimators().values():
        learner.set_params(n_features=1)
        y = labels_for(learner)
        labels = None if y is None else [*y, *(0 for _ in odd)]
        same(read(learner, X, labels, groups), read(learner, others, labels, groups), (0, 1, 2))
        if labels is not None:
            same(read(learner, others, [*LABELS, *odd], groups), read(learner, others, labels, groups), (0, 1, 2))


@pytest.mark.parametrize("kind", {**VECTORS, **NUMBERS})
def test_a_value_in_y_moves_nobody(kind: str) -> None:
    """Labels that are numbers, and targets."""
    make = {**VECTORS, **NUMBERS}[kind]
    X = np.array(POINTS)[:, None]
    for learner in (
        ThresholdClassifier(epsilon=1, domain_size=10, m=8, classes=(0, 1)),
        UserLevelLinearRegression(epsilon=4, delta=1e-3, max_feature_norm=10, m=8, target_bounds=(0, 1)),
    ):
        plain = read(learner, X, make(LABELS))
        same(plain, read(learner, X, LABELS), (0, 1, 2))
        for places in PLACES:
            for value in VALUES.values():
                y = brought(make, replaced(LABELS, places, value))
                if y is not None:
                    same(read(learner, X, y), plain)


IDS = {kind: make for kind, make in {**VECTORS, **TEXTS}.items() if "column of" not in kind and "Enum" not in kind}
IDS = {kind: make for kind, make in IDS.items() if "row" not in kind and "category" not in kind}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("names", [USERS, ["11", "12", "11", "13", "12", "13", "11", "13"]], ids=["names", "digits"])
def test_a_value_among_ids_moves_nobody(kind: str, names: list[str]) -> None:
    """Whoever has an odd id, or none, leaves the rows of all others to the others, and raises and warns of nothing."""
    make, X = IDS[kind], np.array(POINTS)[:, None]
    learner = ThresholdClassifier(epsilon=1, domain_size=10, m=8, classes=(0, 1))
    others = [read(learner, X, LABELS, names).X[[place for place in OTHERS if names[place] == name]] for name in names]
    for places in PLACES:
        for name, value in VALUES.items():
            ids = brought(make, replaced(names, places, value))
            if ids is None:
                continue
            table = read(learner, X, LABELS, ids)
            assert 2 <= table.n_users <= 4, name
            found = [table.X[table.users == user].tobytes() for user in range(table.n_users)]
            for place in OTHERS:
                assert others[place].tobytes() in found, name
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                kept, _, groups = bound_contributions(X, None, ids, m=8)
            assert len(kept) == len(groups) == len(table.users)
            assert set(X[OTHERS, 0]) <= set(kept[:, 0])


@pytest.mark.parametrize("kind", CATEGORIES)
def test_a_value_among_categories_moves_nobody(kind: str) -> None:
    """pandas makes categories of objects of categories of numbers for one text."""
    X, learner = np.array(POINTS)[:, None], ThresholdClassifier(epsilon=1, domain_size=10, m=8, classes=(0, 1))
    plain = read(learner, X, CATEGORIES[kind](LABELS))
    same(plain, read(learner, X, LABELS), (0, 1, 2))
    for places in PLACES:
        for value in VALUES.values():
            y = brought(CATEGORIES[kind], replaced(LABELS, places, value))
            if y is not None:
                same(read(learner, X, y), plain)


@pytest.mark.parametrize("kind", {**VECTORS, **TEXTS})
def test_a_value_among_texts_moves_nobody(kind: str) -> None:
    make = {**VECTORS, **TEXTS}[kind]
    X, words = np.array(POINTS)[:, None], ["yes" if label else "no" for label in LABELS]
    learner = ThresholdClassifier(epsilon=1, domain_size=10, m=8, classes=("no", "yes"))
    plain = read(learner, X, make(words))
    assert plain.labels.tolist() == LABELS
    for places in PLACES:
        for value in (*VALUES.values(), "maybe", b"yes"):
            y = brought(make, replaced(words, places, value))
            if y is not None:
                same(read(learner, X, y), plain)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_value_stops_a_fit(name: str) -> None:
    """Whole fits, with every value in one container of objects and in every container with one value."""
    made = estimators()[name].set_params(n_features=1, enrolled=["ann", "ben", "cem", *map(str, range(9))])
    y = labels_for(made)
    forms = [(TABLES["array of objects"], value) for value in VALUES.values()]
    forms += [(make, None) for make in TABLES.values()]
    for make, value in forms:
        X = brought(make, replaced(POINTS, OWN, value))
        if X is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # What public numbers say, of too few users or too long integers, is said in any case.
            warnings.filterwarnings("ignore", "(X may have whole numbers|.*users)", UserWarning)
            for kind in (NoisyFitWarning, LabelsOutsideClassesWarning):  # of what was released
                warnings.simplefilter("ignore", kind)
            if isinstance(made, WinsorizedQueries):
                with made.open(X, groups=USERS) as session:
                    session.release(lambda rows: rows.mean(axis=0))
            elif y is None:
                made.fit(X, groups=USERS)
            else:
                made.fit(X, y, groups=USERS)


@pytest.mark.parametrize("kind", [kind for kind in {**VECTORS, **NUMBERS, **TEXTS} if "list of rows" not in kind])
def test_an_item_moves_nobody(kind: str) -> None:
    """Selections: the counts of what the others have, and the number of users."""
    texts = kind in TEXTS
    items: list[Any] = ["no", "yes", "no", "maybe"] if texts else [1, 2, 1, 3]
    make = {**VECTORS, **NUMBERS, **TEXTS}[kind]
    selections: list[Any] = [ApproximatePrivateMode(epsilon=1, delta=1e-3)]
    if not texts:
        selections.append(PurePrivateMode(epsilon=1, n_items=4))
    for selection in selections:
        for place in range(len(items)):
            counted = selection.tally(items[:place] + items[place + 1 :])
            for value in VALUES.values():
                given = brought(make, replaced(items, [place], value))
                if given is not None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        added = selection.tally(given)
                    assert added.total() == len(items)
                    assert (added - counted).total() == 1
                    assert not counted - added


ROUND: dict[str, Any] = {"epsilon": 20, "n_users": 4, "round_id": "hostile"}
CLIENTS: dict[str, Any] = {
    "randomized response": local.KRandomizedResponse(**ROUND, n_items=5, default=4),
    "subsets": local.SubsetSelection(**ROUND, n_items=12, default=4),
    "Hadamard": local.HadamardResponse(**ROUND, n_items=5, default=4),
    "sum": shuffle.NegativeBinomialSum(**ROUND, delta=1e-2),
    "histogram": shuffle.Histogram(**ROUND, delta=1e-2, n_items=5, default=4),
    "selection": shuffle.Mode(**ROUND, delta=1e-2, n_items=5, default=4),
}
"""Protocols whose users have one number each."""
ITEMS = {
    **dict.fromkeys(("True", "NumPy's True"), 1),
    **dict.fromkeys(("an odd float", "an odd int"), 3),
    "a number as a text": 7,
}
"""The values that are an item, where there are so many. All others count as the default."""


def reported(protocol: Any, items: Any) -> bytes:
    """All messages, of the same random bits and with every warning an error but that about these."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        messages: bytes = protocol.report_many(items, random_state=3).tobytes()
    return messages


@pytest.mark.parametrize("name", CLIENTS)
def test_what_a_client_is_given_raises_nothing(name: str) -> None:
    """One client for each value: its messages are those of the default, or of the item that the value is."""
    protocol = CLIENTS[name]

    def report(item: Any) -> Any:
        client = protocol.client(0) if isinstance(protocol, local.LocalProtocol) else protocol.client()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", InsecureRandomnessWarning)
            return client.report(item, random_state=3)

    assert report(protocol.default) != report(1)
    for value, item in VALUES.items():
        assert report(item) == report(ITEMS.get(value, protocol.default)), value


@pytest.mark.parametrize("kind", [kind for kind in {**VECTORS, **NUMBERS} if "list of rows" not in kind])
def test_an_item_moves_no_message_of_others(kind: str) -> None:
    """Whatever one user has, the messages of all are those where this user has the default, or another item."""
    make = {**VECTORS, **NUMBERS}[kind]
    items = [1, 0, 1, 0]
    for place in (0, 2):
        given = {value: brought(make, replaced(items, [place], odd)) for value, odd in VALUES.items()}
        for protocol in CLIENTS.values():
            plain = [reported(protocol, replaced(items, [place], code)) for code in range(12)]
            assert reported(protocol, make(items)) == plain[1] != plain[protocol.default]
            for value, container in given.items():
                if container is not None and kind in VECTORS:
                    assert reported(protocol, container) == plain[ITEMS.get(value, protocol.default)], value
                elif container is not None:
                    # NumPy makes numbers of some values when they are put into an array of numbers.
                    assert reported(protocol, container) in plain, value


BITS = local.BitwiseMajority(**ROUND, n_bits=3)


@pytest.mark.parametrize("kind", ["list", "tuple", "deque", "UserList", "a sequence of its own", "vector of objects"])
def test_a_row_of_bits_moves_no_message_of_others(kind: str) -> None:
    """Odd values in place of a user's row, and of one of its bits."""
    make = VECTORS[kind]
    rows = [[1, 1, 1]] * 4
    plain = reported(BITS, make(replaced(rows, [2], [0, 0, 0])))
    assert plain != reported(BITS, rows) == reported(BITS, np.array(rows)) == reported(BITS, pd.DataFrame(rows))
    for value, odd in VALUES.items():
        assert reported(BITS, make(replaced(rows, [2], odd))) == plain, value
        with_bit = reported(BITS, make(replaced(rows, [2], [odd, 1, 1])))
        assert with_bit == (reported(BITS, rows) if ITEMS.get(value) == 1 else plain), value


@pytest.mark.parametrize("kind", {**VECTORS, **NUMBERS})
def test_a_point_moves_nobody(kind: str) -> None:
    """`PrivateMedian`, in the limit of a large epsilon: the median of three users of whom two agree."""
    make = {**VECTORS, **NUMBERS}[kind]
    for value in VALUES.values():
        given = brought(make, [5, 5, value, 5, 5, 5, 5])
        if given is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert PrivateMedian(epsilon=80, m=1, domain_size=16).sample(given, range(7)) == 5


@pytest.mark.parametrize("kind", TABLES)
def test_a_value_moves_no_vector(kind: str) -> None:
    """The vectors of users that third parties write mechanisms on."""
    make = TABLES[kind]

    def vectors(X: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = UserTable.read(X, groups=USERS, m=4, n_features=1)
            made = MeanVectors(table, bound=20)
            sums = [made.subset([user]).clipped_sum([0.0], 20.0, 0.5) for user in range(3)]
            return table, [each.tobytes() for each in sums]

    plain, sums = vectors(make(POINTS))
    for places in PLACES:
        for value in VALUES.values():
            X = brought(make, replaced(POINTS, places, value))
            if X is not None:
                table, others = vectors(X)
                same(table, plain)
                assert (sums[0], sums[2]) == (others[0], others[2])


class Verbatim(StableLearner):
    """Votes for what its rows are, to the type: in machine integers a power of them would be another number."""

    default = None

    def item(self, X: Any, labels: Any, seed: Any) -> Any:
        if np.isnan(X).any():
            raise SystemExit("a user's rows end the process")
        return X.dtype.str, X.tobytes(), (X**20).tobytes()


@pytest.mark.parametrize("kind", TABLES)
def test_a_value_moves_no_vote(kind: str) -> None:
    """A learner of somebody else sees each user's rows in doubles, whatever the others gave."""
    votes = []
    for places in ([], *PLACES):
        X = brought(TABLES[kind], replaced(POINTS, places, None))
        table = UserTable.read(TABLES[kind](POINTS) if X is None else X, groups=USERS, m=8, n_features=1)
        votes.append(Verbatim().items(table, PublicSeed(SEED)))
    assert votes[0] == Verbatim().items(UserTable.read(np.array(POINTS)[:, None], groups=USERS, m=8), PublicSeed(SEED))
    for others in votes[1:]:
        assert others[0] == votes[0][0]
        assert others[2] == votes[0][2]
        assert others[1] in (votes[0][1], None)


def test_no_callback_sees_where_rows_are() -> None:
    """NumPy's sums may round by the address, which depends on what the others gave."""
    found: set[int] = set()

    class Addresses(Verbatim):
        def item(self, X: Any, labels: Any, seed: Any) -> Any:
            found.update(part.ctypes.data % 64 for part in (X, labels))

    def asked(rows: Any, targets: Any) -> float:
        if rows.any():  # the row of zeros on which questions are tried is public
            found.update(part.ctypes.data % 64 for part in (rows, targets))
        return 1.0

    for n_users in range(2, 20):
        users = [user for user in range(n_users) for _ in range(1 + user % 5)]
        X, y = np.ones((len(users), 3)), np.ones(len(users))
        Addresses().items(UserTable.read(X, y, groups=users, m=9, classes=(0, 1)), PublicSeed(SEED))
        with WinsorizedQueries(epsilon=2, n_queries=1, max_norm=2, m=9).open(X, y, groups=users) as session:
            session.release(asked)
    assert found == {0}


@pytest.mark.parametrize("kind", {**VECTORS, **NUMBERS, **TEXTS})
def test_bounding_contributions_moves_nobody(kind: str) -> None:
    """Which rows are kept depends on ids only, and what is kept is as it was given."""
    make = {**VECTORS, **NUMBERS, **TEXTS}[kind]
    labels: list[Any] = ["yes" if label else "no" for label in LABELS] if kind in TEXTS else list(LABELS)
    values = (None, "seven", 1j, Ellipsis)
    first = list(VECTORS | NUMBERS | TEXTS).index(kind)
    for place, table in enumerate(TABLES.values()):
        # In another order for every kind of labels, so that each container of points meets all values.
        for value in (values[(first + place) % 4], values[(first + place + 1) % 4]):
            X, y = brought(table, replaced(POINTS, OWN, value)), brought(make, replaced(labels, OWN, value))
            if X is None or y is None:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rows, kept, groups = bound_contributions(X, y, USERS, m=2)
            assert list(groups) == ["ann", "ben", "ann", "cem", "ben", "cem"]
            assert type(rows) is type(X) or isinstance(rows, list)
            assert kept is not None
            learner = ThresholdClassifier(epsilon=1, domain_size=10, m=2, n_features=1, classes=(0, 1))
            learner.set_params(classes=("no", "yes") if kind in TEXTS else (0, 1))
            whole, bounded = read(learner, X, y), read(learner, rows, kept, groups)
            same(bounded, whole, (0, 1, 2))
