"""How many draws refute a wrong claim, and how often right mechanisms are accused: figures of docs/audit_anything.md.

`python benches/guess_audits.py` takes some minutes and prints a table. The counts do not depend on the machine.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from userdp.audit import audit_estimator, audit_samples
from userdp.optimization import UserLevelLogisticRegression

PAIR = (((0,),), ((1,),))
NEVER = 10**9


def float_noise(dataset: Any, rng: random.Random) -> float:
    """Laplace noise of scale 10 by the inverse transform in doubles, which claims 0.1 for a change of 1."""
    size = -math.log(rng.random() or 0.5) * 10
    return float(dataset[0][0]) + (size if rng.getrandbits(1) else -size)


def integer_noise(dataset: Any, rng: random.Random) -> int:
    """Two-sided geometric noise of ratio 9/10: ln(10/9) for a change of 1."""
    sides = [0, 0]
    for side in (0, 1):
        while rng.randrange(10):
            sides[side] += 1
    return int(dataset[0][0]) + sides[0] - sides[1]


def response(dataset: Any, rng: random.Random) -> int:
    """Randomized response of ratio 3/2."""
    return int(dataset[0][0]) ^ (rng.randrange(5) < 2)


def short_float(output: float) -> bool | None:
    """A multiple of 2^-53 near 0 is more likely around 1."""
    return False if abs(output) < 0.25 and output.as_integer_ratio()[1] <= 2**53 else None


def draws_until(alpha: str, event: Callable[[float], bool | None] | None, seeds: int) -> list[int]:
    """Draws, with those of training, until "at most 0.25" is refuted."""
    found = []
    for seed in range(seeds):
        training = 4000 if event is None else 0
        report = audit_samples(
            float_noise,
            [PAIR],
            epsilon="0.25",
            alpha=alpha,
            estimate_alpha="0.05",
            training=training,
            draws=150_000,
            event=event,
            rng="random",
            random_state=seed,
            progress=False,
        )
        spent = report.verdict.right + report.verdict.wrong + report.verdict.none + training
        found.append(spent if report.holds is False else NEVER)
    return sorted(found)


def accused(mechanism: Any, epsilon: str, alpha: str, seeds: int) -> tuple[int, int]:
    """Verdicts against a right claim, and bounds above the truth at 95 %."""
    reports = [
        audit_samples(
            mechanism,
            [PAIR],
            epsilon=epsilon,
            alpha=alpha,
            estimate_alpha="0.05",
            training=400,
            draws=1500,
            rng="random",
            random_state=seed,
            progress=False,
        )
        for seed in range(seeds)
    ]
    truth = reports[0].epsilon_level.ratio
    return sum(report.holds is False for report in reports), sum(report.lower.ratio > truth for report in reports)


def logistic(seeds: int) -> list[float]:
    """Bounds at 95 % for the package's logistic regression at epsilon 1, delta 1e-6, 128 users of 8 rows."""
    warnings.simplefilter("ignore")
    found = []
    for seed in range(seeds):
        model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), m=8, classes=(0, 1))
        report = audit_estimator(model, n_canaries=128, n_rows=8, epsilon=1, delta=1e-6, random_state=seed)
        found.append(float(report.lower))
    return sorted(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="right mechanisms are audited so often")
    seeds = parser.parse_args().seeds
    for alpha in ("0.05", "1e-9"):
        for event in (short_float, None):
            found = draws_until(alpha, event, 20)
            how = "found by training" if event is None else "given"
            print(f"alpha {alpha}, event {how}: median {statistics.median(found):,}, most {found[-1]:,}", flush=True)
    for mechanism, epsilon in ((response, "ln(3/2)"), (integer_noise, "ln(10/9)")):
        for alpha in ("0.05", "1e-9"):
            wrong, above = accused(mechanism, epsilon, alpha, seeds)
            print(f"{mechanism.__name__}, alpha {alpha}: {wrong} of {seeds} accused, {above} bounds above", flush=True)
    bounds = logistic(200)
    above = int(np.sum(np.array(bounds) > 1))
    print(f"logistic regression: median {statistics.median(bounds):.3f}, most {bounds[-1]:.3f}, {above} of 200 above 1")


if __name__ == "__main__":
    main()
