"""Users needed for the common item to be chosen, planned and simulated, as markdown.

    python benches/selection_users.py [--trials 4000] [--seed SEED]

Each of n users has the common item with probability p. The plan, `users_needed`, is the least n such that for n and all
larger numbers the common item *surely* wins but for probability beta / 3. In the simulation every trial draws the users
and calls `ApproximatePrivateMode.release`; its failure rate is looked at along even and along odd n by bisection.

* *sure*: what the plan counts: 2 K > n + 2 t and K >= 2 t + 2 for the K users who have the common item. This one has
  to agree with the plan up to sampling error.
* *one rival*: a failure is another outcome. All others have one other item, which comes first in ties: the worst case.
* *all differ*: the others have an item each. Then nothing but the threshold is in the way.

Users come from NumPy's generator, noise from the operating system.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable

import numpy as np

from userdp.mechanisms import ApproximatePrivateMode
from userdp.mechanisms.mode import least_from_which_on, lower_tail

COMMON = 10**6
AGREEMENTS = ("0.9", "0.8", "0.7", "0.6")
BETA = 0.1


def trials_of(n: int, p: float, trials: int, rng: np.random.Generator) -> list[int]:
    return rng.binomial(n, p, trials).tolist()


def sure(selection: ApproximatePrivateMode, n: int, k: int) -> bool:
    t = selection.half_width
    return 2 * k > n + 2 * t and k >= 2 * t + 2


def one_rival(selection: ApproximatePrivateMode, n: int, k: int) -> bool:
    return selection.release([0] * (n - k) + [COMMON] * k) == COMMON


def all_differ(selection: ApproximatePrivateMode, n: int, k: int) -> bool:
    return selection.release([*range(n - k), *[COMMON] * k]) == COMMON


def simulated(
    wins: Callable[[ApproximatePrivateMode, int, int], bool],
    selection: ApproximatePrivateMode,
    p: float,
    trials: int,
    rng: np.random.Generator,
) -> int:
    """The least n from which on the rate of failures is at most beta / 3."""
    rates: dict[int, float] = {}

    def holds(n: int) -> bool:
        if n not in rates:
            rates[n] = sum(not wins(selection, n, k) for k in trials_of(n, p, trials, rng)) / trials
        return rates[n] <= BETA / 3

    return least_from_which_on(holds, start=2)


def planned_at(selection: ApproximatePrivateMode, p: float, failure: float) -> int:
    t = selection.half_width
    return least_from_which_on(lambda n: lower_tail(n, 1 - p, n // 2 + t) <= failure, start=2 * t + 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(63))
    arguments = parser.parse_args()
    rng, began = np.random.default_rng(arguments.seed), time.perf_counter()
    error = 3 * (BETA / 3 * (1 - BETA / 3) / arguments.trials) ** 0.5
    print(
        f"epsilon 1, delta 1e-6, beta {BETA}; {arguments.trials} trials at each n, so that three standard errors of a"
    )
    print(f"rate of beta / 3 are {error:.4f}; *range* has the exact n of rates that are off by so much\n")
    print("| neighbors | t | agreement | planned | range | sure | one rival | all differ |\n" + "|---" * 8 + "|")
    for neighbors in ("add-remove", "replace"):
        selection = ApproximatePrivateMode(epsilon=1, delta="1e-6", neighbors=neighbors)
        for agreement in AGREEMENTS:
            p = float(agreement)
            plan = selection.users_needed(agreement=agreement, beta=BETA)
            low, high = (planned_at(selection, p, BETA / 3 + sign * error) for sign in (1, -1))
            found = [simulated(wins, selection, p, arguments.trials, rng) for wins in (sure, one_rival, all_differ)]
            cells = [neighbors, selection.half_width, agreement, plan, f"{low} to {high}", *found]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(f"\nSeed of the users {arguments.seed}, {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
