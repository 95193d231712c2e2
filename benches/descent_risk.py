"""Excess risk of private descents for logistic regression, as markdown.

    python benches/descent_risk.py [--quick] [--seeds 20] [--seed SEED] [--cells 1000x1,10000x256]

Rows are uniform on the unit sphere in d = 8, labels logistic with a theta of norm 3, m rows from each of n users, all
from one distribution; epsilon = 1, delta = 1e-6, theta in the ball of radius 6. Excess risk is the expected loss on 2e5
fresh rows, with the labels averaged out, above that of the best theta for these rows.

Equal effort of tuning: every method has the same number of settings. Each setting is run on separate tuning seeds, the
one with the least mean excess risk is then run on fresh seeds, and only those count. Choosing is on fresh data of the
same distribution, so that it costs no privacy here; with real data it would cost some, the same for all methods. "Equal
T" is the clipped descent with as many steps, without clipping or noise.

Users come from NumPy's generator, noise from the operating system.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.optimization import ClippedGradientDescent, L2Ball, LogisticLoss, PhasedERM, WinsorizedGradientDescent
from userdp.optimization.losses import GradientRows
from userdp.optimization.schedules import ProjectedDescent
from userdp.users.table import UserTable

Floats = npt.NDArray[np.float64]

D, NORM, RADIUS = 8, 3.0, 6.0
EPSILON, DELTA = 1, 1e-6
TRUTH = np.full(D, NORM / np.sqrt(D))
SHARED: dict[str, Any] = {
    "epsilon": EPSILON,
    "delta": DELTA,
    "loss": LogisticLoss(),
    "constraint": L2Ball(RADIUS),
    "max_norm": 1.0,
    "target_bounds": (-1, 1),
}


def rows_of(count: int, rng: np.random.Generator) -> Floats:
    X = rng.standard_normal((count, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def sample(n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    X = rows_of(n * m, rng)
    y = np.where(rng.random(n * m) < 1 / (1 + np.exp(-X @ TRUTH)), 1.0, -1.0)
    return X, y, np.repeat(np.arange(n), m)


class Risk:
    """Expected logistic loss above the least, on fresh rows with the labels averaged out."""

    def __init__(self, rows: int, rng: np.random.Generator) -> None:
        self.X = rows_of(rows, rng)
        self.p = 1 / (1 + np.exp(-self.X @ TRUTH))
        self.least = self.loss(self.best())

    def loss(self, theta: Floats) -> float:
        """Of theta."""
        s = self.X @ theta
        return float(np.mean(np.logaddexp(0, s) - self.p * s))

    def best(self) -> Floats:
        """Newton's method from the truth, which is next to it."""
        theta = TRUTH.copy()
        for _ in range(5):
            q = 1 / (1 + np.exp(-self.X @ theta))
            hessian = (self.X * (q * (1 - q))[:, None]).T @ self.X
            theta = theta - np.linalg.solve(hessian, self.X.T @ (q - self.p))
        return theta

    def excess(self, theta: Floats) -> float:
        """Of theta, above the least."""
        return self.loss(theta) - self.least


def without_noise(data: tuple[Any, Any, Any], m: int, steps: int) -> Floats:
    """The clipped descent's own code with neither clipping nor noise."""
    X, y, groups = data
    table = UserTable.read(X, y, groups=groups, m=m, capped=False)
    rows = GradientRows(table, loss=SHARED["loss"], max_norm=1.0, fit_intercept=False)
    tail = [float(2 * (t + 1) > steps) for t in range(steps)]
    descent = ProjectedDescent((0.0,) * D, SHARED["constraint"], [4.0] * steps, tail)
    state = descent.begin()
    for _ in range(steps):
        total = rows.at(state.theta).clipped_sum(np.zeros(D), 1.0, 2.0**-28)
        state = descent.update(state, total * (2.0**-28 / rows.n_users))
    return descent.aggregate(state)


Maker = Callable[..., Any]


def settings(m: int) -> dict[str, list[tuple[str, Maker]]]:
    """The settings of each method, as many for one as for another.

    Users' mean gradients are about 0.4 / sqrt(m) from that of all.
    """

    def clipped(share: float, average: str, steps: int) -> tuple[str, Maker]:
        given = {"clip": share / np.sqrt(m), "average": average, "n_iterations": steps}
        name = f"C = {given['clip']:.3g}, average of {average}, T = {steps}"
        return name, lambda: ClippedGradientDescent(**SHARED, m=m, **given)

    def winsorized(method: str, share: float, average: str, steps: int) -> tuple[str, Maker]:
        variant = "convex" if average == "all" else "convex-tail"
        given = {"method": method, "concentration": share / np.sqrt(m), "variant": variant, "n_iterations": steps}
        name = f"{method}, u = {given['concentration']:.3g}, average of {average}, T = {steps}"
        return name, lambda: WinsorizedGradientDescent(**SHARED, m=m, **given)

    def phased(method: str, sigma: float, steps: int) -> tuple[str, Maker]:
        given = {"method": method, "concentration": 0.4 / np.sqrt(m), "sub_gaussian": sigma, "n_iterations": steps}
        return f"{method}, sigma = {sigma:g}, T = {steps}", lambda: PhasedERM(**SHARED, m=m, **given)

    paths = (("all", 40), ("tail", 40), ("tail", 160))
    balls = (("tracking", 0.4), ("tracking", 0.8))
    rounds = (("auto", 0.35), ("tracking", 0.35), ("tracking", 0.1))
    return {
        "clipped": [clipped(share, average, T) for share in (0.4, 0.8) for average, T in paths],
        "winsorized": [winsorized(method, share, average, T) for method, share in balls for average, T in paths],
        "phased": [phased(method, sigma, T) for method, sigma in rounds for T in (40, 160)],
    }


def run(make: Maker, data: tuple[Any, Any, Any]) -> Floats:
    X, y, people = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about too few users for a method: that is what is measured
        theta: Floats = make().fit(X, y, groups=people).theta_
    return theta


def shown(values: Sequence[float]) -> str:
    """Mean and standard error, times 1000."""
    mean, error = np.mean(values) * 1e3, np.std(values, ddof=1) / np.sqrt(len(values)) * 1e3
    return f"{mean:.3g} ({error:.2g})"


def cell(n: int, m: int, risk: Risk, seeds: int, tuning: int, rng: np.random.Generator) -> dict[str, list[float]]:
    """Tune on some samples, then measure on others; methods share them."""
    table = settings(m)
    tried: dict[str, Floats] = {name: np.zeros(len(makers)) for name, makers in table.items()}
    for _ in range(tuning):
        data = sample(n, m, rng)
        for name, makers in table.items():
            tried[name] += [risk.excess(run(make, data)) for _, make in makers]
    print(n, m, {name: np.round(values / tuning * 1e3, 4).tolist() for name, values in tried.items()}, file=sys.stderr)
    chosen = {name: table[name][int(np.argmin(tried[name]))] for name in table}
    steps = max(int(name.rpartition("T = ")[2]) for name, _ in [chosen["clipped"]])
    found: dict[str, list[float]] = {"without privacy, equal T": [], **{name: [] for name in table}}
    for _ in range(seeds):
        data = sample(n, m, rng)
        found["without privacy, equal T"].append(risk.excess(without_noise(data, m, steps)))
        for name, (_, make) in chosen.items():
            found[name].append(risk.excess(run(make, data)))
        print(n, m, *(f"{values[-1]:.4g}" for values in found.values()), file=sys.stderr, flush=True)
    names = [f"without privacy: T = {steps}", *(f"{name}: {setting}" for name, (setting, _) in chosen.items())]
    print(f"| {n} | {m} | " + " | ".join(map(shown, found.values())) + " | " + "; ".join(names) + " |", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small cells and few seeds")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tuning", type=int, default=3)
    parser.add_argument("--cells", default="1000x1,1000x16,1000x256,10000x1,10000x16,10000x256")
    parser.add_argument("--seed", type=int, default=secrets.randbits(63))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.tuning, arguments.cells = 2, 1, "1000x1,1000x16"
    rng, began = np.random.default_rng(arguments.seed), time.perf_counter()
    risk = Risk(20_000 if arguments.quick else 200_000, rng)
    print(f"Excess risk x 1000, mean of {arguments.seeds} seeds and its standard error; {arguments.tuning} other seeds")
    print("for the choice among 6 settings of each method.\n")
    print("| n | m | without privacy, equal T | " + " | ".join(settings(1)) + " | chosen settings |\n|" + "---|" * 7)
    for size in arguments.cells.split(","):
        n, m = map(int, size.split("x"))
        cell(n, m, risk, arguments.seeds, arguments.tuning, rng)
    print(f"\nSeed of the users {arguments.seed}, {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
