"""How fast columns are read: `python benches/reading.py`; run it on two builds one after the other for ratios."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from userdp import _core
from userdp.tables import boolean, category, key, number
from userdp.users.values import of_native

ROWS = 10**6


def best(call: Callable[[], Any]) -> float:
    """The least of three times, in milliseconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def columns() -> dict[str, tuple[Any, Any]]:
    """Columns and the types that read them; None for ids."""
    rng = np.random.default_rng(0)
    ids, values, codes = rng.integers(0, 200_000, ROWS), rng.random(ROWS) * 50, rng.integers(0, 1000, ROWS)
    texts, words = [f"user{one}" for one in ids], [f"k{one}" for one in codes]
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(one)) for one in codes % 300]
    times = [datetime.datetime(2024, 1, 1, 9, 30) + datetime.timedelta(days=int(one)) for one in codes % 300]
    listed = category([f"k{one}" for one in range(1000)])
    return {
        "id int64": (pd.Series(ids), None),
        "id text, objects": (pd.Series(texts, dtype=object), None),
        "id text, pandas str": (pd.Series(texts, dtype="str"), None),
        "id text, polars": (pl.Series(texts), None),
        "id int, objects": (pd.Series(ids, dtype=object), None),
        "number float64": (pd.Series(values), number(0, 50)),
        "number text, objects": (pd.Series([f"{one:.3f}" for one in values], dtype=object), number(0, 50)),
        "number float, objects": (pd.Series(values, dtype=object), number(0, 50)),
        "key(int) int64": (pd.Series(codes), key(int)),
        "key(int) int, objects": (pd.Series(codes, dtype=object), key(int)),
        "key(str) objects": (pd.Series(words, dtype=object), key(str)),
        "key(str) polars": (pl.Series(words), key(str)),
        "key(date) objects": (pd.Series(days, dtype=object), key(datetime.date)),
        "key(date) polars": (pl.Series(days), key(datetime.date)),
        "key(datetime) objects": (pd.Series(times, dtype=object), key(datetime.datetime)),
        "boolean": (pd.Series(codes < 500), boolean()),
        "category objects": (pd.Series(words, dtype=object), listed),
        "category int64": (pd.Series(codes), category(list(range(1000)))),
    }


def main() -> None:
    print("| a column of 10^6 rows | ms |\n|---|--:|")
    for name, (column, kind) in columns().items():

        def read(column: Any = column, kind: Any = kind) -> None:
            if kind is None:
                _core.owner_codes(_core.TableIndex(), [of_native(column).cells], ["doubles"])
            else:
                kind.read(of_native(column), "x")

        print(f"| {name} | {best(read):.1f} |", flush=True)


if __name__ == "__main__":
    main()
