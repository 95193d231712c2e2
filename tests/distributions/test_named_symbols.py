"""Distributions on symbols that are named: compared with public names by their one text, in every container."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from userdp.audit import audit_user_level
from userdp.distributions import DiscreteDistribution, ProductDistribution
from userdp.estimators import as_finite_algorithm

USERS = np.repeat(np.arange(4), 3)
CODES = np.array([0, 1, 2, 1, 1, 0, 2, 2, 2, 0, 1, 1])
GIVEN: dict[str, Any] = {"epsilon": 1, "m": 3, "alpha": 0.9}
BY_NUMBER = DiscreteDistribution(n_symbols=3, **GIVEN).output_distribution(CODES[:, None], groups=USERS)


def pmf(symbols: Any, X: Any, **options: Any) -> Any:
    return DiscreteDistribution(symbols=symbols, **GIVEN, **options).output_distribution(X, groups=USERS)


SYMBOLS = [
    ("none", "bus", "train"),
    (b"none", b"bus", b"train"),
    (7, 3, -1),
    (0.5, math.inf, -2.25),
    np.array(["none", "bus", "train"]),
    pd.Index([10, 30, 20]),
]


@pytest.mark.parametrize("symbols", SYMBOLS, ids=str)
@pytest.mark.parametrize("method", ["joint", "symbols"])
def test_names_are_the_numbers_of_their_places(symbols: Any, method: str) -> None:
    X = np.array(symbols)[CODES][:, None]
    wanted = DiscreteDistribution(n_symbols=3, method=method, **GIVEN)
    assert pmf(symbols, X, method=method) == wanted.output_distribution(CODES[:, None], groups=USERS)


def frames(names: list[str]) -> dict[str, Any]:
    column = pd.Series(names)
    return {
        "array": np.array(names)[:, None],
        "array of objects": np.array(names, dtype=object)[:, None],
        "list of rows": [[name] for name in names],
        "list": names,
        "pandas": pd.DataFrame({"way": column}),
        "pandas, objects": pd.DataFrame({"way": column.astype(object)}),
        "pandas, string": pd.DataFrame({"way": column.astype("string")}),
        "pandas, category": pd.DataFrame({"way": column.astype("category")}),
        # Categories in another order, and one that no value has.
        "pandas, other categories": pd.DataFrame({"way": pd.Categorical(names, ["train", "car", "none", "bus"])}),
        "polars": pl.DataFrame({"way": names}),
        "polars, category": pl.DataFrame({"way": names}, schema={"way": pl.Categorical}),
        "polars, enum": pl.DataFrame({"way": names}, schema={"way": pl.Enum(["bus", "train", "car", "none"])}),
        "polars, lazy": pl.LazyFrame({"way": names}),
        "pyarrow": pa.table({"way": names}),
        "pyarrow, dictionary": pa.table({"way": pa.array(names).dictionary_encode()}),
    }


WORDS = ("none", "bus", "train")


@pytest.mark.parametrize("kind", list(frames(["bus"])))
def test_frames_are_read_by_their_texts(kind: str) -> None:
    assert pmf(WORDS, frames([WORDS[code] for code in CODES])[kind]) == BY_NUMBER


def test_ids_may_be_a_column() -> None:
    frame = pd.DataFrame({"user": USERS, "way": [WORDS[code] for code in CODES]})
    learner = DiscreteDistribution(symbols=WORDS, **GIVEN)
    assert learner.output_distribution(frame, groups="user") == BY_NUMBER
    strict = learner.set_params(on_invalid="raise")
    assert strict.output_distribution(frame, groups="user") == BY_NUMBER


@pytest.mark.parametrize("odd", ["Bus", "", "b us", None, math.nan, 0, 1, b"BUS", ("bus", "bus"), object()])
def test_what_is_no_symbol_is_the_first(odd: Any) -> None:
    names: list[Any] = [WORDS[code] if code else odd for code in CODES]
    assert pmf(WORDS, [[name] for name in names]) == BY_NUMBER
    with pytest.raises(ValueError, match="values that are not in symbols"):
        pmf(WORDS, [[name] for name in names], on_invalid="raise")


@pytest.mark.parametrize("odd", [0, 4, 2.5, math.nan, None, "bus", math.inf])
def test_what_is_no_number_of_a_symbol_is_0(odd: Any) -> None:
    learner = DiscreteDistribution(n_symbols=3, **GIVEN)
    values = [[code or odd] for code in CODES.tolist()]
    assert learner.output_distribution(values, groups=USERS) == BY_NUMBER


def test_missing_values_of_typed_columns_are_the_first() -> None:
    names = [WORDS[code] if code else None for code in CODES]
    for kind in ("pandas", "pandas, string", "pandas, category", "polars", "polars, category", "pyarrow"):
        assert pmf(WORDS, frames(names)[kind]) == BY_NUMBER, kind
    numbers = pd.DataFrame({"way": pd.array([code or None for code in CODES.tolist()], dtype="Int64")})
    assert pmf((9, 1, 2), numbers) == BY_NUMBER


def test_bools_are_numbers() -> None:
    learner = DiscreteDistribution(symbols=(False, True), **GIVEN)
    wanted = DiscreteDistribution(n_symbols=2, **GIVEN).output_distribution(CODES[:, None] == 1, groups=USERS)
    for X in (CODES[:, None] == 1, (CODES[:, None] == 1).astype(float), pl.DataFrame({"a": CODES == 1})):
        assert learner.output_distribution(X, groups=USERS) == wanted


def test_spellings_of_a_symbol_are_one() -> None:
    spellings: list[list[Any]] = [[1, "1", 1.0], [2, "02", b"2"], [True, "bus ", b"bus"]]
    for names in ((9, 1, 2), ("9", "01", "2.0"), (9.0, 1.0, 2.0)):
        for one, two, _ in zip(*spellings, strict=True):
            assert pmf(names, [[[None, one, two][code]] for code in CODES]) == BY_NUMBER
    for bus in ("bus", "bus ", " bus", b"bus", np.str_("bus")):
        assert pmf(WORDS, [[["none", bus, "train"][code]] for code in CODES]) == BY_NUMBER
    assert pmf((b"none", b"bus", b"train"), frames([WORDS[code] for code in CODES])["polars"]) == BY_NUMBER


def test_declared_types_that_hold_no_symbol_are_refused() -> None:
    for frame in (
        pa.table({"way": pa.array(CODES, type=pa.duration("s"))}),
        pl.DataFrame({"way": [[code] for code in CODES.tolist()]}),
    ):
        with pytest.raises(TypeError, match=r"X: the column 'way' is of type .*, and labels or items can"):
            pmf(WORDS, frame)
    nothing = pmf(WORDS, [["none"]] * 12)
    for X in (
        CODES[:, None],
        CODES[:, None] * 1.5,
        pd.DataFrame({"day": pd.to_datetime(CODES)}),
        CODES.astype("m8[s]")[:, None],
    ):
        assert pmf(WORDS, X) == nothing


@pytest.mark.parametrize(
    "symbols", ["yes", ("yes",), ("yes", 1), ("yes", b"yes"), (0, math.nan), (0, 2**60), 5, {"a"}], ids=str
)
def test_what_are_no_symbols(symbols: Any) -> None:
    with pytest.raises(ValueError, match="symbols must be a sequence of two or more distinct labels of one type"):
        pmf(symbols, CODES[:, None])


@pytest.mark.parametrize("symbols", [("yes", "yes"), (1, True), ("a", "5", "05"), (0.5, 1, 1)], ids=str)
def test_symbols_that_read_alike(symbols: Any) -> None:
    with pytest.raises(ValueError, match=r"^symbols: .* read alike"):
        pmf(symbols, CODES[:, None])


@pytest.mark.parametrize("kind", [DiscreteDistribution, ProductDistribution])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"n_symbols or symbols, .*, must be given"),
        ({"n_symbols": 2, "symbols": ("no", "yes")}, r"only one of n_symbols .* and symbols .* is taken"),
    ],
)
def test_one_of_the_two_is_needed(kind: Any, given: dict[str, Any], message: str) -> None:
    columns = {"n_columns": 1} if kind is ProductDistribution else {}
    with pytest.raises(ValueError, match=message):
        kind(epsilon=1, m=1, **columns, **given).fit([[0], [1]], groups=[0, 1])


def test_results_keep_the_order_and_have_names() -> None:
    users, X = np.repeat(np.arange(2000), 2), np.array([["yes"], ["maybe"]] * 2000)
    learner = DiscreteDistribution(epsilon=4, symbols=("no", "yes", "maybe"), m=2, alpha=0.4).fit(X, groups=users)
    assert learner.symbols_.tolist() == ["no", "yes", "maybe"]
    assert list(learner.named_probabilities) == ["no", "yes", "maybe"]
    assert list(learner.named_probabilities.values()) == learner.probabilities_.tolist()
    assert learner.named_probabilities["no"] < 0.2
    again = DiscreteDistribution.from_json(learner.to_json())
    assert again.named_probabilities == learner.named_probabilities
    numbered = DiscreteDistribution(epsilon=4, n_symbols=2, m=2, alpha=0.4).fit(np.zeros((4000, 1)), groups=users)
    assert list(numbered.named_probabilities) == [0, 1]


def test_symbols_of_bytes_are_saved() -> None:
    X = np.array([[b"yes"], [b"no"]] * 2000)
    learner = DiscreteDistribution(epsilon=4, symbols=(b"no", b"yes"), m=2, alpha=0.4)
    learner.fit(X, groups=np.repeat(np.arange(2000), 2))
    again = DiscreteDistribution.from_json(learner.to_json())
    assert again.named_probabilities == learner.named_probabilities
    assert list(again.named_probabilities) == [b"no", b"yes"]


def test_products_have_the_same_symbols_in_every_column() -> None:
    X = np.column_stack([CODES, CODES[::-1]]) % 2
    given: dict[str, Any] = {"epsilon": 1, "m": 3, "alpha": 0.9, "n_columns": 2}
    wanted = ProductDistribution(n_symbols=2, **given).output_distribution(X, groups=USERS)
    named = ProductDistribution(symbols=("no", "yes"), **given)
    words = np.array(["no", "yes"])[X]
    assert named.output_distribution(words, groups=USERS) == wanted
    assert named.output_distribution(pl.DataFrame(words), groups=USERS) == wanted
    fitted = named.fit(words, groups=USERS)
    assert [list(column) for column in fitted.named_probabilities] == [["no", "yes"]] * 2
    with pytest.raises(ValueError, match="2 columns"):
        named.fit(words[:, :1], groups=USERS)


def test_audited() -> None:
    """All neighbors over two names and what is none; with half the noise the same is refused."""
    names = ("no", "yes", "perhaps")

    def report(epsilon: float) -> Any:
        learner = DiscreteDistribution(epsilon=epsilon, symbols=("no", "yes"), m=1, alpha=0.9)
        return audit_user_level(
            as_finite_algorithm(learner), universe=list(names), n_users=3, n_examples=1, epsilon=1, delta=0
        )

    assert report(1).holds
    assert not report(2).holds
    assert len(list(product(names, repeat=3))) == 27
