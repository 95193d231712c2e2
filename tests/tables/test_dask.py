"""Dask frames on a real cluster of two local workers: a user over all partitions, and a worker that dies midway."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp.tables import Query, Schema, category, count_users, key, mean, number
from userdp.tables.compiled import compiled
from userdp.tables.reading import table_of
from userdp.tables.rows import Sums, UserColumns, add_up

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

SCHEMA = Schema(shop=key(int), spent=number(0, 100), kind=category(["a", "b"]))
QUERY = Query().group_by("shop", max_keys=2, rule="first").agg(n=count_users(), spent=mean("spent"))


def rows() -> pd.DataFrame:
    """User 0 has a row in every part of the table."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, 200, 2000)
    who[::20] = 0
    return pd.DataFrame(
        {"who": who, "shop": rng.integers(0, 30, 2000), "spent": rng.random(2000) * 120, "kind": ["a", "b"] * 1000}
    )


def added(frame: Any) -> Sums:
    return add_up(compiled(QUERY, SCHEMA), table_of(frame), UserColumns(("who",)), SCHEMA, memory=2**26, directory=None)


def plain(sums: Sums) -> Any:
    return sums.keys, [column.tolist() for column in sums.columns.values()]


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_partitions_do_not_matter(partitions: int) -> None:
    frame = rows()
    assert plain(added(dd.from_pandas(frame, npartitions=partitions))) == plain(added(frame))


@pytest.mark.serial
def test_a_worker_that_dies_changes_nothing(tmp_path: Any) -> None:
    frame = rows()
    mark = tmp_path / "died"

    def dies_once(part: pd.DataFrame) -> pd.DataFrame:
        """Kill the process of the first worker that comes here, in the middle of a task."""
        if len(part):
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                time.sleep(0.01)
            else:
                os._exit(1)
        return part

    # A busy machine may take long to start the next worker.
    patient = {"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster),
    ):
        partitioned = dd.from_pandas(frame, npartitions=8).map_partitions(dies_once, meta=frame.iloc[:0])
        sums = added(partitioned)
    assert mark.exists()
    assert plain(sums) == plain(added(frame))
