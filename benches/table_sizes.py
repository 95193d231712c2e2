"""A whole release with unknown groups from parquet files of 10^5 to 10^8 rows: time and memory by size, as markdown.

    python benches/table_sizes.py [--rows 100000 1000000] [--folder FOLDER] [--memory BYTES]

Rows have a user (a tenth as many users as rows), a group by Zipf's law (100,000 groups) and a value. They are written
in row groups to a folder that is removed afterwards. Each release is a process of its own, from the dataset on disk:
users and mean values of the groups that are shown, ten groups of a user, epsilon 1, delta 1e-5. The peak is that of
the whole process, with Python, pyarrow and what they load.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KEYS = 100_000
PART = 2_000_000


def write_rows(rows: int, folder: Path) -> float:
    """Write so many rows as parquet files; return how many MiB they have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    weights = np.cumsum(1.0 / np.arange(1, KEYS + 1))
    for part, start in enumerate(range(0, rows, PART)):
        count = min(PART, rows - start)
        random = np.random.default_rng([rows, part])
        table = pa.table(
            {
                "who": random.integers(0, rows // 10, count),
                "group": np.searchsorted(weights, random.random(count) * weights[-1]),
                "x": random.random(count),
            }
        )
        pq.write_table(table, folder / f"{part:05}.parquet", row_group_size=500_000, use_dictionary=False)
    return sum(path.stat().st_size for path in folder.iterdir()) / 2**20


def release(folder: str, memory: int, directory: str) -> dict[str, float]:
    """One release from the files."""
    import pyarrow.dataset as ds

    from userdp.tables import Schema, Session, count_users, key, mean, number

    schema = Schema(group=key(int), x=number(0, 1))
    session = Session(
        ds.dataset(folder),
        user="who",
        schema=schema,
        epsilon=1,
        delta="1e-5",
        composition="basic",
        memory=memory,
        directory=directory,
    )
    query = session.query().group_by("group", max_keys=10).agg(users=count_users("x"), x=mean("x"))
    session.plan(query)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, processor = time.perf_counter(), time.process_time()
    shown = len(session.release(query).keys)
    return {
        "clock": time.perf_counter() - clock,
        "processor": time.process_time() - processor,
        "before": before / 1024,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "shown": shown,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[10**5, 10**6, 10**7, 10**8])
    parser.add_argument("--folder", help="where files are written; by default that of temporary files")
    parser.add_argument("--memory", type=int, default=2**30, help="of the session")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(release(options.one, options.memory, options.folder)))
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; memory={options.memory}\n")
    print("| rows | users | files | seconds | processor seconds | peak | of it before | groups shown |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for rows in options.rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as made:
            size = write_rows(rows, Path(made))
            arguments = [f"--memory={options.memory}", f"--folder={Path(made).parent}"]
            done = subprocess.run(
                [sys.executable, __file__, "--one", made, *arguments], capture_output=True, text=True, check=True
            )
        found = json.loads(done.stdout)
        print(
            f"| {rows:,} | {rows // 10:,} | {size:,.0f} MiB | {found['clock']:.1f} | {found['processor']:.1f} "
            f"| {found['peak']:,.0f} MiB | {found['before']:,.0f} MiB | {found['shown']:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
