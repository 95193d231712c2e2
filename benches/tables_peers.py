"""Private tables beside OpenDP, Polars and noise by textbook formulas, in one run, as markdown.

    python benches/tables_peers.py [--opendp FOLDER ...] [--rows 1000000 10000000] [--rounds 3] [--patience 420]

Three tables: from how many users on a group that nobody listed is shown, how wrong counts of listed groups are, and
what a whole release costs in time and memory. OpenDP wants a Polars of its own: --opendp names folders that are put in
front of the module path of its processes. Without OpenDP its columns say so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

EPSILON, DELTA = 1, 1e-5
MAX_KEYS = (1, 2, 4, 10, 30, 100)
KNOWN = ((10, 10), (64, 64), (1000, 10))
KEYS = 100_000


# --- noise by formulas, in doubles


def gaussian_delta(mu: float) -> float:
    """The delta at EPSILON of Gaussian noise whose shift is mu standard deviations."""
    from scipy.special import ndtr

    return float(ndtr(mu / 2 - EPSILON / mu) - math.exp(EPSILON) * ndtr(-mu / 2 - EPSILON / mu))


def gaussian_sigma(length: float, delta: float) -> float:
    """The least standard deviation for a shift of this length [Balle and Wang 2018]."""
    from scipy.optimize import brentq

    return length / float(brentq(lambda mu: gaussian_delta(mu) - delta, 1e-3, 20))


def split_threshold(max_keys: int) -> float:
    """From how many users on a group is shown in half of the cases: a part of delta for noise, the rest for keys."""
    from scipy.special import ndtri

    best = math.inf
    for share in np.linspace(0.02, 0.98, 97):
        sigma = gaussian_sigma(math.sqrt(max_keys), share * DELTA)
        hidden = -math.expm1(math.log1p(-(1 - share) * DELTA) / max_keys)
        best = min(best, 1 - sigma * float(ndtri(hidden)))
    return best


# --- OpenDP, as its user guide has it


def opendp_query(frame: Any, max_keys: int, gaussian: bool, known: Any = None) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    loss = dp.loss_of(epsilon=float(EPSILON), delta=DELTA)
    if gaussian:
        # The largest rho for epsilon at half of delta; the other half is for groups.
        from userdp.accounting import largest_rho

        loss = dp.loss_of(rho=float(largest_rho(EPSILON, DELTA / 2)), delta=DELTA / 2)
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier="who"),
        privacy_loss=loss,
        split_evenly_over=1,
    )
    # The default, keep="sample", stops with an error about duplicate fields where groups have one column.
    query = (
        context.query().truncate_per_group(1, by=["group"]).truncate_num_groups(max_keys, by=["group"], keep="first")
    )
    counts = query.group_by("group").agg(dp.len())
    return counts if known is None else counts.with_keys(known)


def opendp_numbers() -> dict[str, Any]:
    """Thresholds and scales, which do not depend on the rows."""
    import polars as pl

    frame = pl.LazyFrame({"who": [0, 1, 2], "group": [0, 1, 2]})
    found: dict[str, Any] = {}

    def ask(name: str, column: str, *arguments: Any) -> None:
        try:
            found[name] = opendp_query(frame, *arguments).summarize().to_dicts()[0][column]
        except Exception as error:  # what is missing shows as a dash
            print(name, repr(error)[:300], file=sys.stderr)

    for gaussian in (False, True):
        for most in MAX_KEYS:
            ask(f"threshold {gaussian} {most}", "threshold", most, gaussian)
        for count, most in KNOWN:
            known = pl.LazyFrame({"group": list(range(count))})
            ask(f"scale {gaussian} {count} {most}", "scale", most, gaussian, known)
    return found


# --- whole releases, each in a process of its own


def make_rows(rows: int) -> Any:
    """A tenth as many users as rows, and groups by Zipf's law."""
    import polars as pl

    random = np.random.default_rng(rows)
    weights = np.cumsum(1.0 / np.arange(1, KEYS + 1))
    groups = np.searchsorted(weights, random.random(rows) * weights[-1])
    return pl.DataFrame({"who": random.integers(0, rows // 10, rows), "group": groups})


def userdp_release(frame: Any) -> int:
    from userdp.tables import Schema, Session, count_users, key

    session = Session(
        frame, user="who", schema=Schema(group=key(int)), epsilon=EPSILON, delta=DELTA, composition="basic"
    )
    return len(session.release(session.query().group_by("group", max_keys=10).agg(users=count_users())).keys)


def polars_users(frame: Any) -> int:
    """Users of each group, without privacy and without bounds: two group_by."""
    import polars as pl

    pairs = frame.lazy().group_by("who", "group").agg()
    return len(pairs.group_by("group").agg(pl.len()).sort("group").collect(engine="streaming"))


def polars_bounded(frame: Any) -> int:
    """The same with at most ten groups of each user, by a hash."""
    import polars as pl

    pairs = frame.lazy().group_by("who", "group").agg().with_columns(pl.struct("who", "group").hash(1).alias("coin"))
    kept = pairs.filter(pl.col("coin").rank("ordinal").over("who") <= 10)
    return len(kept.group_by("group").agg(pl.len()).sort("group").collect(engine="streaming"))


def numpy_bounded(frame: Any) -> int:
    """The same by two sorts of numpy, in one thread."""
    who, group = frame["who"].to_numpy(), frame["group"].to_numpy()
    pairs = np.unique(who.astype(np.int64) * KEYS + group)
    users = pairs // KEYS
    order = np.lexsort((np.random.default_rng(1).random(len(pairs)), users))
    first = np.searchsorted(users, users)  # users stay where they are in this order
    kept = order[np.arange(len(pairs)) - first < 10]
    return int(np.count_nonzero(np.bincount(pairs[kept] % KEYS, minlength=KEYS)))


def opendp_release(frame: Any) -> int:
    return len(opendp_query(frame.lazy(), 10, gaussian=False).release().collect())


RELEASES = {
    "polars, users of each group, no privacy": polars_users,
    "polars, at most 10 groups of a user, no privacy": polars_bounded,
    "numpy, at most 10 groups of a user, no privacy": numpy_bounded,
    "userdp, release": userdp_release,
    "opendp, release (Laplace)": opendp_release,
}


def one_release(name: str, rows: int) -> dict[str, float]:
    frame = make_rows(rows)
    RELEASES[name](make_rows(1000))  # imports, and tables that are made once
    before = peak(again=True)
    clock, processor = time.perf_counter(), time.process_time()
    shown = RELEASES[name](frame)
    spent = {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}
    return spent | {"groups": shown, "peak": peak() - before}


def peak(*, again: bool = False) -> float:
    """The most memory so far in MiB; with `again` what is used now, from which Linux counts anew."""
    if again:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_process(arguments: list[str], folders: list[str], patience: int) -> Any:
    """What a process prints, or None where it fails or takes too long."""
    path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=patience,
            env=os.environ | {"PYTHONPATH": path},
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{' '.join(arguments)}: {type(error).__name__}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def thresholds(opendp: dict[str, Any]) -> None:
    from userdp.tables import Query, Schema, Session, count_users, key

    print("\n### Users for an even chance to be shown, by groups of a user\n")
    print("| k | userdp | OpenDP, Laplace | OpenDP, zCDP | delta split | userdp over OpenDP | over split |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    import pandas as pd

    empty = pd.DataFrame({"who": pd.Series(dtype=int), "group": pd.Series(dtype=int)})
    for most in MAX_KEYS:
        session = Session(
            empty, user="who", schema=Schema(group=key(int)), epsilon=EPSILON, delta=str(DELTA), composition="basic"
        )
        plan = session.plan(Query().group_by("group", max_keys=most).agg(users=count_users()))
        keyed = plan.noise.keyed
        assert keyed is not None
        assert keyed.sparse is not None
        ours = keyed.sparse.users_for("0.5")
        split = split_threshold(most)
        theirs = [opendp.get(f"threshold {gaussian} {most}") for gaussian in (False, True)]
        least = min((x for x in theirs if x is not None), default=math.nan)
        print(
            f"| {most} | {ours} | {theirs[0] or '–'} | {theirs[1] or '–'} | {split:.1f} "
            f"| {ours / least:.2f} | {ours / split:.2f} |",
            flush=True,
        )


def standard_errors(opendp: dict[str, Any]) -> None:
    import pandas as pd

    from userdp.accounting import largest_rho
    from userdp.mechanisms import CorrelatedCounts
    from userdp.tables import Query, Schema, Session, category, count_users

    rho = largest_rho(EPSILON, DELTA)
    print("\n### Standard errors of counts of listed groups\n")
    print(
        "The last column is the variance of noise in common over that of independent noise, k / (2 rho), at one rho.\n"
    )
    print(
        "| groups | of a user | Session, basic | Session, zcdp | OpenDP, Laplace | OpenDP, zCDP | independent "
        "| variance |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    empty = pd.DataFrame({"who": pd.Series(dtype=int), "group": pd.Series(dtype=int)})
    for count, most in KNOWN:
        schema = Schema(group=category(range(count)))
        asked = Query().group_by("group", max_keys=most).agg(users=count_users())
        ours = [
            Session(empty, user="who", schema=schema, epsilon=EPSILON, delta=str(DELTA), composition=composition)
            .plan(asked)
            .standard_error("users")
            for composition in ("basic", "zcdp")
        ]
        at_rho = CorrelatedCounts(n_keys=count, max_keys=most, rho=rho).variance / (most / (2 * float(rho)))
        laplace, gaussian = (opendp.get(f"scale {kind} {count} {most}") for kind in (False, True))
        # Of discrete Laplace noise, whose scale is 10 and more: sqrt 2 times the scale but for a thousandth.
        first = "–" if laplace is None else f"{math.sqrt(2) * laplace:.2f}"
        second = "–" if gaussian is None else f"{gaussian:.2f}"
        plain = gaussian_sigma(math.sqrt(most), DELTA)
        print(
            f"| {count} | {most} | {ours[0]:.2f} | {ours[1]:.2f} | {first} | {second} | {plain:.2f} | {at_rho:.4f} |",
            flush=True,
        )


def times(rows: list[int], rounds: int, folders: list[str], patience: int) -> None:
    for count in rows:
        print(f"\n### {count:,} rows, {count // 10:,} users, {KEYS:,} groups by Zipf's law, at most 10 of a user\n")
        print("| | processor seconds | over Polars | seconds | peak above the rows | groups |")
        print("|---|--:|--:|--:|--:|--:|")
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in RELEASES}
        for _ in range(rounds):
            for name in RELEASES:
                found = in_process(["--one", name, "--rows", str(count)], folders if "opendp" in name else [], patience)
                runs[name] += [found] if found else []
        anchor = 0.0
        for name, found in runs.items():
            if not found:
                print(f"| {name} | – | – | – | – | – |")
                continue
            best = min(found, key=lambda run: run["processor"])
            anchor = anchor or best["processor"]
            print(
                f"| {name} | {best['processor']:.2f} | {best['processor'] / anchor:.2f} | {best['clock']:.2f} "
                f"| {best['peak']:.0f} MiB | {best['groups']:.0f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opendp", nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--rows", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=int, default=420, help="seconds of a process that is then given up")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        found = opendp_numbers() if options.one == "opendp" else one_release(options.one, options.rows[0])
        print(json.dumps(found))
        return
    load = os.getloadavg()[0]
    print(f"epsilon = {EPSILON}, delta = {DELTA:g}, neighbors add-remove; {os.cpu_count()} processors, load {load:.1f}")
    opendp = in_process(["--one", "opendp"], options.opendp, options.patience) or {}
    thresholds(opendp)
    standard_errors(opendp)
    times(options.rows, options.rounds, options.opendp, options.patience)


if __name__ == "__main__":
    main()
