"""What is refused by the types of columns, and what rows with odd ids, keys and errors do not show."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from userdp import tables
from userdp.tables import Query, Schema, Session, category, col, count_users, key, mean, number, timestamp
from userdp.tables.compiled import compiled
from userdp.tables.reading import Table, table_of
from userdp.tables.rows import UserColumns, add_up

X = Schema(x=number(0, 1))


def users_of(parts: list[Any]) -> int:
    """How many users there are, without noise."""
    query = compiled(Query().agg(people=count_users()), X)
    sums = add_up(query, table_of(parts), UserColumns(("who",)), X, memory=2**26, directory=None)
    return int(sums.columns[query.statistics[0]][0])


def ids(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"who": values, "x": 0.5})


def test_an_id_is_the_same_user_in_all_batches() -> None:
    """The largest uint64 is neither -1, nor another user where it is held as an object."""
    largest = ids(np.array([2**64 - 1, 5], dtype=np.uint64))
    assert users_of([largest, ids([-1, 5])]) == 3
    assert users_of([largest, ids(np.array([2**64 - 1, 5], dtype=object))]) == 2
    assert users_of([largest, largest, ids([2**63 - 1])]) == 3


def test_batches_are_checked_by_their_types_before_anything_is_charged() -> None:
    good, texts, floats = ids([1, 2]), ids(["1", "2"]), ids([1.0, np.nan])
    assert users_of([good, texts, floats]) == 2
    first = pl.DataFrame({"who": [1], "x": [0.5]})
    Session([first, pl.DataFrame({"who": [1], "x": ["a"]})], user="who", schema=X, epsilon=1)
    with pytest.raises(TypeError, match="the column 'x' is of type List"):
        Session([first, pl.DataFrame({"who": [1], "x": [[0.5]]})], user="who", schema=X, epsilon=1)


@pytest.mark.parametrize("dtype", [pl.Struct({"a": pl.Int64}), pl.List(pl.Int64), pl.Duration("us")])
def test_ids_of_types_that_would_all_be_left_out(dtype: Any) -> None:
    """Not a row would have an id, and all answers would be noise around 0."""
    frame = pl.DataFrame({"who": pl.Series([], dtype=dtype), "x": pl.Series([], dtype=pl.Float64)})
    with pytest.raises(TypeError, match="ids can be read of none of its values"):
        Session(frame, user="who", schema=X, epsilon=1)


def test_times_are_read_or_refused_by_their_type() -> None:
    """Of what is refused not a row would have a time; the times of pandas in Arrow and objects are times."""
    schema = Schema(at=timestamp(datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)))
    plain = pd.date_range("2020-01-01", periods=3)
    aware = plain.tz_localize("UTC")
    for frame in (
        pl.DataFrame({"who": [1, 2, 3], "at": [1, 2, 3]}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series([1, 2, 3]).cast(pl.Time)}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series([1, 2, 3]).cast(pl.Duration("us"))}),
    ):
        with pytest.raises(TypeError, match="'at' is of type"):
            Session(frame, user="who", schema=schema, epsilon=1)
    for frame in (
        pd.DataFrame({"who": [1, 2, 3], "at": aware}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series(plain).dt.replace_time_zone("Asia/Tokyo")}).with_columns(
            pl.col("at").dt.offset_by("1d")
        ),
        pl.DataFrame({"who": [1, 2, 3], "at": ["2020-01-01"] * 3}),
        pd.DataFrame({"who": [1, 2, 3], "at": aware}).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame({"who": [1, 2, 3], "at": aware}).to_arrow(),
        pd.DataFrame({"who": [1, 2, 3], "at": plain}),
        pd.DataFrame({"who": [1, 2, 3], "at": plain}).convert_dtypes(dtype_backend="pyarrow"),
        pd.DataFrame({"who": [1, 2, 3, 4], "at": np.array([*plain, pd.NaT], dtype=object)}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series(plain)}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series(plain).cast(pl.Date)}),
        pl.DataFrame({"who": [1, 2, 3], "at": pl.Series(plain).cast(pl.Date)}).to_arrow(),
    ):
        people = Session(frame, user="who", schema=schema, epsilon=400)
        query = Query().filter(col("at") >= datetime.datetime(2020, 1, 1)).agg(people=count_users())
        assert people.release(query).column("people")[0] == 3  # off with probability 2 exp(-400)


def test_keys_of_integers_and_texts_have_an_order() -> None:
    """Whether both kinds occur is private: sorting them must not fail."""
    frame = pd.DataFrame({"who": range(400), "a": ["x", 1] * 200, "b": ["p", "q", "p", "p"] * 100})
    schema = Schema(a=category([1, "x"]), b=key(str))
    for some in (frame, frame[frame["a"] == 1]):
        people = Session(some, user="who", schema=schema, epsilon=20, delta="1e-6")
        release = people.release(Query().group_by("a", "b", max_keys=1).agg(people=count_users()))
        wanted = {(a, b) for a, b in zip(some["a"], some["b"], strict=True)}
        assert list(release.keys) == sorted(wanted, key=lambda pair: (isinstance(pair[0], str), pair))


def test_dates_are_keys() -> None:
    days = [datetime.date(1969, 12, 31), datetime.date(2020, 2, 29)]
    frame = pl.DataFrame({"who": range(400), "day": days * 200})
    people = Session(frame, user="who", schema=Schema(day=key(datetime.date)), epsilon=20, delta="1e-6")
    release = people.release(Query().group_by("day", max_keys=1).agg(people=count_users()))
    assert release.keys == ((days[0],), (days[1],))
    assert release.to_frame("polars")["day"].to_list() == days
    assert "2020-02-29" in release.to_json()


class Breaks(Table):
    """A frame that fails where it is read, with a row in the message."""

    def __init__(self, frame: Any) -> None:
        self.inner = table_of(frame)
        self.names = self.inner.names

    def heads(self, columns: Any) -> Any:
        return self.inner.heads(columns)

    def batches(self, columns: Any) -> Any:
        raise ValueError("cannot read the row of Ada Lovelace")


def test_a_failure_keeps_no_other_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    people = Session(ids([1, 2]), user="who", schema=X, epsilon=1)
    monkeypatch.setattr(people, "_table", Breaks(ids([1, 2])))
    with pytest.raises(RuntimeError, match="could not be read to its end") as caught:
        people.release(Query().agg(people=count_users()))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


class NoError(BaseException):
    """As polars' panics, which are no `Exception`."""


@pytest.mark.parametrize("kind", [ValueError, NoError, SystemExit, RecursionError])
def test_what_a_lazy_frame_raises_shows_no_row(kind: type[BaseException]) -> None:
    def fails(column: Any) -> Any:
        raise kind(f"cannot read {column.to_list()}")

    frame = pl.DataFrame({"who": [1, 2], "x": [0.25, 0.5]}).lazy()
    frame = frame.with_columns(pl.col("x").map_batches(fails, return_dtype=pl.Float64))
    people = Session(frame, user="who", schema=X, epsilon=1)
    with pytest.raises(RuntimeError, match="could not be read to its end") as caught:
        people.release(Query().agg(level=mean("x")))
    assert caught.value.__context__ is None
    assert people.remaining()["epsilon"] == 0


def test_whoever_stops_a_release_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    people = Session(ids([1, 2]), user="who", schema=X, epsilon=1)

    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(people._table), "batches", stopped)
    with pytest.raises(KeyboardInterrupt):
        people.release(Query().agg(people=count_users()))
    assert people.remaining()["epsilon"] == 0


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_categories_of_numbers_and_texts_come_in_frames(backend: str) -> None:
    """Columns of polars and Arrow have one type: there numbers are texts."""
    pytest.importorskip(backend)
    people = Session(
        ids([1, 2]).assign(size=["s", None]), user="who", schema=Schema(size=category([3, "s"])), epsilon=9
    )
    release = people.release(Query().group_by("size").agg(people=count_users()))
    wanted = [3, "s"] if backend == "pandas" else ["3", "s"]
    for frame in (release.to_frame(backend), release.intervals(backend=backend)):
        column = frame["size"]
        assert (column.to_pylist() if backend == "pyarrow" else column.to_list()) == wanted


def test_columns_of_intervals_have_names_of_their_own() -> None:
    people = Session(ids([1, 2]), user="who", schema=X, epsilon=1)
    with pytest.raises(ValueError, match="'x_low' is a column of the answer's intervals"):
        people.plan(Query().agg(x=mean("x"), x_low=tables.sum("x", max_total=1)))


def test_a_plan_says_what_is_hopeless() -> None:
    people = Session(ids(range(2)), user="who", schema=X, epsilon=1, n_users=1000)
    query = Query().agg(people=count_users(), level=mean("x"), total=tables.sum("x", max_total=1))
    assert "little else than noise" not in str(people.plan(query))
    text = str(people.plan(query, epsilon="1/1000"))
    assert all(f"{name} will be little else than noise" in text for name in ("people", "level", "total"))
