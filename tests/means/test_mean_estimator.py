"""WinsorizedMean as an estimator: scikit-learn's checks, tables of all kinds, and copies."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from support.forgotten_plans import forgotten_plans
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import InsecureRandomnessWarning, TooFewUsersWarning
from userdp.means import WinsorizedMean
from userdp.means import winsorized as winsorized_module
from userdp.means.iterated import GaussianRounds
from userdp.mechanisms import DiscreteGaussian
from userdp.users import MeanVectors

pytestmark = pytest.mark.filterwarnings("ignore::userdp.exceptions.TooFewUsersWarning")

F = Fraction

SETTINGS: list[dict[str, Any]] = [
    {},
    {"delta": 1e-6},
    {"method": "practical", "user_std": 0.5},
    {"method": "gaussian", "delta": 1e-6},
    {"method": "laplace"},
    {"homogeneous": True, "m": 1},
    {"delta": 1e-6, "user_std": 0.1, "method": "iterated"},
]


@pytest.mark.parametrize("given", SETTINGS[:-1], ids=str)
def test_all_checks_pass_without_privacy_settings(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        warnings.simplefilter("ignore", TooFewUsersWarning)
        bounds = {"max_norm": 1} if given.get("delta") else {"bounds": (-1, 1)}
        learner = WinsorizedMean(**{"epsilon": 1, "require_groups": False, "on_invalid": "raise", **bounds, **given})
        results = list(check_estimator(learner, on_fail=None, on_skip=None))
    assert [result for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 35


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 1}, "delta must be below 1"),
        ({"method": ["auto"]}, "method must be one of"),
        ({"center": 2.0**301}, "center must be finite"),
        ({"grid_resolution": 2**31}, "grid_resolution must be at most"),
        ({"max_norm": 1e200}, "max_norm must be from"),
    ],
)
def test_bad_parameters_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WinsorizedMean(**{"epsilon": 1, "m": 1, "max_norm": 1, **given}).fit(np.array([[1.0], [2.0]]), groups=[1, 2])


def test_an_epsilon_in_an_array_is_a_number() -> None:
    learner = WinsorizedMean(epsilon=np.array(1.0), max_norm=1, m=1).fit(np.array([[1.0], [2.0]]), groups=[1, 2])
    assert learner.privacy_.epsilon == 1


PEOPLE = np.repeat(np.arange(30), 2)
ROWS = np.random.default_rng(0).integers(-(2**20), 2**20, size=(60, 3)) / 2**21


def bits(X: Any, groups: Any = PEOPLE, **given: Any) -> list[list[int]]:
    """Every user's integers, as `fit` sums them."""
    learner = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=2, n_features=3, **given)
    assert np.all(np.isfinite(learner.fit(X, groups=groups).mean_))
    data, _ = learner._read(X, None, groups)
    vectors = MeanVectors(data, 1.0)
    return [vectors.subset([user]).clipped_sum(0.0, 1.0, 2.0**-30).tolist() for user in range(data.n_users)]


def read_only(rows: Any) -> Any:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


TABLES: dict[str, Any] = {
    "Fortran": np.asfortranarray(ROWS),
    "strided": np.repeat(ROWS, 2, axis=1)[:, ::2],
    "backwards": ROWS[:, ::-1].copy()[:, ::-1],
    "read-only": read_only(ROWS),
    "misaligned": np.frombuffer(b"x" + ROWS.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(ROWS.shape),
    "big-endian": ROWS.astype(">f8"),
    "long double": ROWS.astype(np.longdouble),
    "single": ROWS.astype(np.float32),
    "objects": ROWS.astype(object),
    "texts": ROWS.astype(str).astype(object),
    "lists": ROWS.tolist(),
    "fractions": [[Fraction(x) for x in row] for row in ROWS.tolist()],
    "decimals": np.array([[Decimal(x) for x in row] for row in ROWS.tolist()], dtype=object),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_read_the_same_whatever_holds_it(kind: str) -> None:
    assert bits(TABLES[kind]) == bits(ROWS)


@pytest.mark.parametrize("kind", ["float16", "uint8", "uint64", "int64", "bool"])
def test_narrow_and_wide_numbers(kind: str) -> None:
    X = (np.abs(ROWS) * 32).astype(kind)
    assert bits(X) == bits(X.astype(np.float64))


class Rude:
    def __float__(self) -> float:
        raise SystemError("of a user")


@pytest.mark.parametrize(
    "value", [np.nan, np.inf, -np.inf, 1e308, None, "x", 1j, 10**400, [1], Rude(), Decimal("sNaN")]
)
def test_no_value_raises_or_moves_anybody_else(value: Any) -> None:
    X = ROWS.astype(object)
    X[0, 0] = value
    assert bits(X)[1:] == bits(ROWS)[1:]


def test_users_with_very_different_numbers_of_rows() -> None:
    X = np.concatenate([ROWS, np.tile(ROWS[:1], (5000, 1))])
    groups = np.concatenate([PEOPLE, np.full(5000, 7)])
    assert [user for user, pair in enumerate(zip(bits(X, groups), bits(ROWS), strict=True)) if pair[0] != pair[1]] == [
        7
    ]
    assert bits(ROWS, enrolled=[99, *range(30)])[1:] == bits(ROWS)
    assert bits(ROWS, enrolled=[99, *range(30)])[0] == [0, 0, 0]


@pytest.mark.parametrize(
    "given",
    [
        *SETTINGS,
        {"center": [0.1, 0.2, 0.3], "user_std": "0.1"},
        {"max_norm": None, "bounds": ([-1, -2, 0], (1.0, "2", 4)), "user_std": [0.1, 0.2, 0.3]},
        {"max_norm": None, "bounds": {"a": (-1, 1), "b": (-2, 2.5), "c": (0, 4)}},
    ],
    ids=str,
)
def test_copies_and_json(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewUsersWarning)
        learner = WinsorizedMean(**{"epsilon": "0.5", "max_norm": 1, **given, "m": 2}).fit(ROWS, groups=PEOPLE)
    for copied in (pickle.loads(pickle.dumps(learner)), WinsorizedMean.from_json(learner.to_json())):
        assert copied.get_params() == learner.get_params()
        assert copied.mean_.tolist() == learner.mean_.tolist()
        assert copied.privacy_ == learner.privacy_
        assert copied.public_seed_ == learner.public_seed_
        assert copied.accuracy_ == learner.accuracy_
        if not learner.accuracy_.mixed:
            assert copied.interval(0.9).tolist() == learner.interval(0.9).tolist()
    assert clone(learner).get_params() == learner.get_params()
    assert not hasattr(clone(learner), "mean_")


def test_frames_have_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    for table in (frame, frame.astype(object), frame.astype("Float64")):
        assert bits(table) == bits(ROWS)
    ids = pandas.Series(PEOPLE, index=np.arange(100, 160))
    learner = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=2).fit(frame, groups=ids)
    assert learner.feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_rule_leaves_out_methods_that_do_not_reach_the_epsilon() -> None:
    sizes = {"n_users": 100, "n_features": 3}
    with pytest.raises(ValueError, match="epsilon"):
        WinsorizedMean(epsilon="1e-6", max_norm=1, m=4, user_std=0.5, method="practical").privacy_cost(**sizes)
    assert WinsorizedMean(epsilon="1e-6", max_norm=1, m=4, user_std=0.5).privacy_cost(**sizes).epsilon == Fraction(
        1, 10**6
    )


# --- bounds


def fitted(X: Any, **given: Any) -> WinsorizedMean:
    """A fit of users of one row each, with so large an epsilon that noise is negligible."""
    return WinsorizedMean(**{"epsilon": 500, "m": 1, **given}).fit(X, groups=np.arange(len(X)))


PANEL = np.column_stack([np.linspace(0, 5, 400), np.linspace(5000, 0, 400), np.linspace(-3, 1, 400)])
BY_NAME = {"wage": (0, 5), "hours": (0, 5000), "gain": (-3, 1)}


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_columns_of_unlike_units_are_measured_in_their_own(delta: Any) -> None:
    expected = PANEL.mean(axis=0)
    for bounds in (([0, 0, -3], [5, 5000, 1]), (np.array([0, 0, -3]), np.array([5, 5000, 1.0])), BY_NAME):
        made = fitted(PANEL, bounds=bounds, delta=delta)
        assert np.all(np.abs(made.mean_ - expected) < [0.005, 5, 0.004])
        # Every column has the same noise in half-ranges.
        np.testing.assert_allclose(made.noise_ / [2.5, 2500, 2], made.noise_[0] / 2.5, rtol=1e-12)
        low, high = made.interval(1 - 1e-9).T  # 18 of them: one is missed with a probability below 2e-8
        assert np.all((low <= expected) & (expected <= high))
        assert not made.clipped_


def test_bounds_by_name_are_those_of_the_columns_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PANEL, columns=["wage", "hours", "gain"])
    shuffled = {name: BY_NAME[name] for name in ("gain", "wage", "hours")}
    for table in (frame, frame[["hours", "gain", "wage"]]):
        made = fitted(table, bounds=shuffled)
        assert np.all(np.abs(made.mean_ - table.mean().to_numpy()) < 1e-3 * np.ptp(table.to_numpy(), axis=0))
        assert list(made.to_frame()["column"]) == list(table.columns)
    for wrong, message in (
        ({"wage": (0, 5), "hours": (0, 5000)}, "has nothing for 'gain'"),
        (BY_NAME | {"age": (0, 99)}, "names 'age', which is no column"),
        ({"wage": (0, 5), "hours": (0, 5000), "Gain": (-3, 1)}, "has nothing for 'gain'"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(frame, bounds=wrong)


def test_user_std_may_be_given_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PANEL, columns=["wage", "hours", "gain"])
    by_name = {"gain": 0.5, "hours": 900.0, "wage": 1.0}
    problems = []
    for given in (by_name, [1.0, 900.0, 0.5]):
        made = WinsorizedMean(epsilon=1, delta="1e-6", m=1, bounds=BY_NAME, user_std=given)
        made.fit(frame, groups=np.arange(len(frame)))
        problems.append(made._problem(len(frame), np.array([2.5, 2500.0, 2.0]))[0])
    assert problems[0] == problems[1]
    for wrong in (by_name | {"age": 1.0}, {"wage": 1.0}, by_name | {"gain": -1.0}):
        with pytest.raises(ValueError, match="user_std"):
            fitted(frame, bounds=BY_NAME, user_std=wrong)


def test_one_pair_is_for_all_columns_and_asymmetric_bounds_are_clamped_to() -> None:
    rows = np.array([[-10.0, 2.0], [3.0, 10.0]] * 100)
    made = fitted(rows, bounds=(-1, 3))
    np.testing.assert_allclose(made.mean_, [1.0, 2.5], atol=0.01)
    assert np.all(made.interval(0.99) >= -1)
    assert np.all(made.interval(0.99) <= 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_values_that_are_none_count_as_the_nearest_or_as_the_middle(value: float) -> None:
    rows = np.full((400, 2), [1.0, 100.0])
    rows[:200, 1] = value
    made = fitted(rows, bounds=((0, 0), (2, 400)))
    counted = {True: 200.0, False: 400.0 if value > 0 else 0.0}[bool(np.isnan(value))]
    np.testing.assert_allclose(made.mean_, [1.0, (counted + 100) / 2], atol=0.5)


@pytest.mark.parametrize(("given", "middle"), [({"bounds": (0, 10)}, 5.0), ({"max_norm": 4, "center": 1}, 1.0)])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_users_who_are_only_enrolled_count_as_the_middle(given: dict[str, Any], middle: float, delta: Any) -> None:
    for d in (1, 2):
        rows = np.full((300, d), middle + 1)
        made = WinsorizedMean(epsilon=500, delta=delta, m=1, enrolled=range(400), **given)
        made.fit(rows, groups=np.arange(300))
        np.testing.assert_allclose(made.mean_, middle + 0.75, atol=0.02)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "^bounds or max_norm, .* must be given"),
        ({"bounds": (0, 1), "max_norm": 1}, TypeError, "only one of bounds.* and max_norm"),
        ({"bounds": 1}, TypeError, "bounds must be a pair"),
        ({"bounds": {}}, TypeError, "bounds must be a pair"),
        ({"bounds": {1: (0, 1)}}, TypeError, "bounds must be a pair"),
        ({"bounds": (1, 1)}, ValueError, "bounds must be finite.*low < high"),
        ({"bounds": (0, math.inf)}, ValueError, "bounds must be finite"),
        ({"bounds": (0, math.nan)}, ValueError, "bounds must be finite"),
        ({"bounds": (0, 2.0**301)}, ValueError, "bounds must be finite"),
        ({"bounds": ([0, 0], [1, 1])}, ValueError, "bounds must have one number or 1 for each end"),
        ({"bounds": {"a": (0, 1), "b": (0, 1)}}, ValueError, "bounds must name as many columns as there are, 1"),
        ({"bounds": (0, 1), "user_std": 1, "homogeneous": True}, ValueError, "promise the same thing"),
        (
            {"bounds": (0, 1), "homogeneous": True, "m": None},
            ValueError,
            "^m, .* homogeneous=True is about, must be given",
        ),
        ({"bounds": (0, 1), "user_std": 0}, ValueError, "user_std must be a positive number"),
        ({"bounds": (0, 1), "user_std": [1, 2]}, ValueError, "user_std must be a positive number"),
        ({"bounds": (0, 1), "user_std": math.nan}, ValueError, "user_std must be a positive number"),
        ({"max_norm": 1, "user_std": [1]}, ValueError, "user_std must be a positive number"),
        ({"bounds": (0, 1), "method": "iterated"}, TypeError, "'iterated' clips users, and needs a promise"),
        ({"bounds": (0, 1), "method": "practical"}, TypeError, "'practical' clips users, and needs a promise"),
        ({"bounds": (0, 1), "method": "paper"}, TypeError, "'paper' clips users, and needs a promise"),
    ],
)
def test_what_is_missing_or_wrong_is_named(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        WinsorizedMean(**{"epsilon": 1, "m": 1, **given}).fit(np.array([[1.0], [2.0]]), groups=[1, 2])


# --- nothing but what is released depends on values


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, 1)},
        {"bounds": (0, 1), "delta": "1e-6"},
        {"bounds": (0, 1), "user_std": 0.01},
        {"max_norm": 1, "user_std": 0.01, "delta": "1e-3"},
    ],
)
@pytest.mark.parametrize("n", [3, 30, 3000])
def test_warnings_methods_and_shapes_do_not_depend_on_values(given: dict[str, Any], n: int) -> None:
    said = []
    rng = np.random.default_rng(0)
    for X in (np.zeros((n, 2)), rng.random((n, 2)), np.full((n, 2), np.nan), np.full((n, 2), 1e300)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = WinsorizedMean(epsilon=1, m=1, **given).fit(X, groups=np.arange(n))
            made.interval()
        kept = (made.noise_.tolist(), made.worst_error_.tolist(), made.clipped_, made.promises_, made.accuracy_)
        said.append(([str(warning.message) for warning in caught], made.method_, made.mean_.shape, kept))
    assert all(one == said[0] for one in said)


def test_too_few_users_are_told_how_many_are_enough() -> None:
    rows = np.zeros((10, 1))
    with pytest.warns(TooFewUsersWarning, match="the released number is noise; about") as caught:
        WinsorizedMean(epsilon="1/4", bounds=(0, 8), m=1).fit(rows, groups=np.arange(10))
    needed = int(str(caught[0].message).split("about ")[1].split(" users")[0].replace(",", ""))
    # Laplace noise of scale 8 / (n epsilon) has a standard deviation of .4, a tenth of half the range.
    assert needed == pytest.approx(math.sqrt(2) * 8 * 4 / 0.4, rel=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TooFewUsersWarning)
        WinsorizedMean(epsilon="1/4", bounds=(0, 8), m=1).fit(np.zeros((needed + 1, 1)), groups=np.arange(needed + 1))


# --- errors and intervals


def test_noise_is_that_of_the_whole_range_without_a_promise() -> None:
    made = WinsorizedMean(epsilon=2, bounds=(0, 10), m=16).fit(np.ones((1000, 1)), groups=np.arange(1000))
    assert made.noise_[0] == pytest.approx(math.sqrt(2) * 10 / (1000 * 2), rel=1e-3)
    assert made.worst_error_.tolist() == made.noise_.tolist()
    assert (made.method_, made.clipped_, made.promises_) == ("laplace", False, ())
    table = made.to_frame(0.9)
    assert [float(table[name][0]) for name in ("mean", "noise", "worst_error")] == [
        float(values[0]) for values in (made.mean_, made.noise_, made.worst_error_)
    ]
    assert [[float(table["low"][0]), float(table["high"][0])]] == made.interval(0.9).tolist()


def test_promises_are_told_and_pay() -> None:
    rng = np.random.default_rng(0)
    rows = 0.3 + 0.01 * rng.choice([-1, 1], size=(4000, 1))
    plain, told = (
        WinsorizedMean(epsilon=1, bounds=(0, 1), m=1, **promise).fit(rows, groups=np.arange(4000))
        for promise in ({}, {"user_std": 0.01})
    )
    assert told.promises_ == ("user_std=0.01",)
    assert (told.method_, told.clipped_) == ("iterated", True)
    assert plain.noise_[0] > told.worst_error_[0] > told.noise_[0]
    users, clipped = told.interval(0.9, covers="users")[0], told.interval(0.9, covers="clipped")[0]
    assert users[0] < clipped[0] < clipped[1] < users[1]
    # 18 scales of Laplace noise: a probability below 1e-7.
    assert abs(told.mean_[0] - rows.mean()) < 10 * told.worst_error_[0]
    alike = WinsorizedMean(epsilon=1, bounds=(0, 1), m=10_000, homogeneous=True)
    assert alike.fit(rows, groups=np.arange(4000)).promises_ == ("homogeneous=True with m=10000",)


def test_what_nothing_bounds_has_intervals_for_clipped_users_only() -> None:
    rows = np.full((3000, 1), 0.25)
    made = WinsorizedMean(epsilon=1, bounds=(0, 1), m=1, user_std=0.01, method="practical")
    made.fit(rows, groups=np.arange(3000))
    assert made.worst_error_.tolist() == [math.inf]
    assert made.interval().tolist() == [[0.0, 1.0]]
    assert np.ptp(made.interval(covers="clipped")) < 0.1
    columns = np.full((3000, 2), 0.25)
    mixed = WinsorizedMean(epsilon=4, bounds=(0, 1), m=1, user_std=0.01, method="practical")
    mixed.fit(columns, groups=np.arange(3000))
    with pytest.raises(ValueError, match="rotates columns"):
        mixed.interval()
    assert mixed.to_frame()["low"].tolist() == [None, None]


@pytest.mark.parametrize("level", [0, 1, 2, "x", math.nan])
def test_levels_are_between_0_and_1(level: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="level"):
        fitted(PANEL, bounds=BY_NAME).interval(level)
    with pytest.raises(ValueError, match="covers must be one of"):
        fitted(PANEL, bounds=BY_NAME).interval(covers="population")


def test_intervals_of_vectors_are_around_the_mean_before_it_is_moved() -> None:
    """A truth of (1, 0) and a release of (1, 5): the second column moves the first one by .8 when it is pulled in."""
    made = WinsorizedMean(epsilon=10, delta="1e-6", max_norm=1, m=1, method="gaussian")
    made.fit(np.tile([1.0, 0.0], (100, 1)), groups=np.arange(100))
    made.unmoved_ = np.array([1.0, 5.0])
    made.mean_ = made.unmoved_ / np.linalg.norm(made.unmoved_)
    (low, high), (second_low, second_high) = made.interval(0.99)
    assert low <= 1 <= high
    assert second_low <= second_high <= 1


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_intervals_cover_the_mean_as_often_as_they_say(delta: Any) -> None:
    covered, runs = 0, 8
    cells = list(itertools.product((0.01, 0.1, 0.5), (100, 1000), (0.5, 1, 2)))
    for share, n, epsilon in cells:
        rows = (np.arange(n) < share * n).astype(float)[:, None]
        made = WinsorizedMean(epsilon=epsilon, delta=delta, bounds=(0, 1), m=1)
        for _ in range(runs):
            low, high = made.fit(rows, groups=np.arange(n)).interval(0.95)[0]
            covered += low <= share <= high
        # In one column the width is that of Laplace noise of scale 1 / (n epsilon), which 5 % exceed by b ln 20.
        assert made.method_ == "laplace"
        term = made.accuracy_.terms[0]
        width = made.accuracy_.half_width(0.05)
        assert math.log(20) / (n * epsilon) <= width <= 1.1 * math.log(20) / (n * epsilon)
        # 0 and 1 are on the grid: how often the mean is covered, by the pmf of the noise.
        a, h = math.exp(-1 / term.scale), math.floor(made.accuracy_.half_width(0.05) / term.step)
        assert 0.95 <= 1 - 2 * a ** (h + 1) / (1 + a) < 0.96
    # Of 144 intervals fewer than 119 cover with a probability below 1e-7.
    assert binom.cdf(118, runs * len(cells), 0.95) < 1e-7
    assert covered >= 119


# --- exact audits of the default


TINY_NOISE: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 1, "grid_resolution": 2},
    "gaussian": {"epsilon": 4, "delta": F(1, 10), "method": "gaussian", "grid_resolution": 1},
    # Noise by its exact curve, which sums of so many steps are worth.
    "exact": {"epsilon": 4, "delta": F(1, 10), "method": "gaussian", "grid_resolution": 8},
}


@pytest.mark.parametrize(
    ("noise", "d"), [("laplace", 1), ("laplace", 2), ("gaussian", 1), ("gaussian", 2), ("exact", 1)]
)
@pytest.mark.parametrize("halved", [False, True])
def test_exact_audit_of_the_default(noise: str, d: int, halved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given = TINY_NOISE[noise] | {"bounds": ([0] * d, [1, 50][:d]), "m": 1}
    if noise == "gaussian" and d == 2:
        given |= {"epsilon": 5, "delta": F(3, 10)}  # so that distributions are short
    if halved and noise == "laplace":
        whole = winsorized_module.laplace_noise
        monkeypatch.setattr(winsorized_module, "laplace_noise", lambda epsilon, *more: whole(2 * F(epsilon), *more))
    elif halved:
        monkeypatch.setattr(
            GaussianRounds,
            "mechanism",
            lambda self, share, reach: DiscreteGaussian(
                sigma_squared=self.account.part(share).sigma_squared(2 * reach) / 4
            ),
        )
    universe: list[Any] = [0.0, 1.0, math.nan]
    if d == 2:
        universe = [(0.0, 0.0), (1.0, 50.0), (1.0, 0.0)] if noise == "laplace" else [(0.0, 25.0), (1.0, 25.0)]
    with forgotten_plans():
        made = WinsorizedMean(**given)
        report = audit_user_level(
            as_finite_algorithm(made, n_users=2, n_features=d),
            universe=universe,
            n_users=2,
            n_examples=1,
            epsilon=given["epsilon"],
            delta=given.get("delta", 0),
        )
        unit = made.release_plan(n_users=2, n_features=d).budget.unit
    assert unit == {"laplace": "epsilon", "gaussian": "rho", "exact": "mu2"}[noise]
    print(f"{noise}, {d} columns, halved {halved}: worst delta {report.worst_delta}, epsilon {report.epsilon}")
    assert report.holds is not halved


def test_intervals_are_those_of_the_fit() -> None:
    rows, users = np.full((40, 2), [1.0, 2000.0]), np.repeat(np.arange(20), 2)
    learner = WinsorizedMean(epsilon=5, bounds=([0, 0], [5, 5000]), m=2).fit(rows, groups=users)
    before = learner.interval(0.9).tolist()
    learner.set_params(bounds=(0, 1), m=7, epsilon=100)
    assert learner.interval(0.9).tolist() == before
    assert WinsorizedMean.from_json(learner.to_json()).interval(0.9).tolist() == before
