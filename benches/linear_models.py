"""How good linear models are on fresh users, with bounds that are much too wide, as markdown.

    python benches/linear_models.py [--quick] [--rare] [--targets] [--classes] [--speed]

Features are uniform within 1 of 1/2, the first three coefficients 1, -1/2, 3/10 and the others 0; targets have noise
for a best R2 of .920, labels are logistic with coefficients four times as large. Users have 4 rows, delta is 1e-6.
Bounds of features and targets are -w to w, w = 10 unless said: about ten times the data. `--rare` has rare marks and
heavy tails instead: y = 20 + 3 a + 5 (marks) + noise, a uniform on 0 to 10, and y = b + noise, b lognormal. `--targets`
has the grid by which the default linear regression is judged: 35 laws, most with rare or skewed targets, in 4 cells,
and its predictions beside least squares and beside clip="never"; `--classes` the same for logistic regression, by
probabilities beside those of the likeliest model. `--speed` times the second moments of 1e5 users of 16
rows and 50 columns beside NumPy's einsum instead.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import class_laws
import numpy as np
from rounds import described, environment, human
from target_laws import LAWS, Law

from userdp.exceptions import NoisyFitWarning, TooFewUsersWarning
from userdp.optimization import UserLevelLinearRegression, UserLevelLogisticRegression
from userdp.users.table import UserTable
from userdp.users.vectors import JointRows

ROWS = 4
BEST = 0.92


def drawn(users: int, rows: int, columns: int, rng: Any, labels: bool) -> tuple[Any, Any, Any]:
    """Rows, targets or labels, and the best predictions."""
    X = rng.uniform(-0.5, 1.5, size=(users * rows, columns))
    coefficients = np.zeros(columns)
    coefficients[:3] = (1, -0.5, 0.3)[: min(3, columns)]
    best = (X - 0.5) @ coefficients
    if labels:
        return X, (4 * best + rng.logistic(size=len(X)) > 0) * 1, best > 0
    noise = np.sqrt(coefficients @ coefficients / 3 * (1 - BEST) / BEST)
    return X, best + rng.normal(size=len(X)) * noise, best


def scores(
    columns: int, users: int, epsilon: float, wide: float, labels: bool, repeats: int
) -> tuple[list[float], str]:
    """Of one cell: R2, or accuracy less the best, on fresh users; and whether the fit was warned of."""
    found, warned = [], ""
    for repeat in range(repeats):
        rng = np.random.default_rng([7, columns, users, int(epsilon), int(wide), labels, repeat])
        X, y, _ = drawn(users, ROWS, columns, rng, labels)
        kind: Any = UserLevelLogisticRegression if labels else UserLevelLinearRegression
        bounds = {} if labels else {"target_bounds": (-wide, wide)}
        model = kind(epsilon=epsilon, delta="1e-6", m=ROWS, feature_bounds=(-wide, wide), **bounds)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TooFewUsersWarning)
            model.fit(X, y, groups=np.repeat(np.arange(users), ROWS))
        too_few = (str(w.message) for w in caught if issubclass(w.category, TooFewUsersWarning))
        warned = "".join(text.split("about ")[1].split(" users")[0] for text in too_few)
        X, y, best = drawn(20_000, 1, columns, rng, labels)
        found.append(model.score(X, y) - (float(np.mean(best == (y > 0))) if labels else 0.0))
    return found, warned


def table(labels: bool, wide: float, sizes: list[int], repeats: int) -> None:
    """One table: a row for each number of columns."""
    cells = [(users, epsilon) for users in sizes for epsilon in (1, 10)]
    print(f"| columns | {' | '.join(f'n = {users}, ε = {epsilon}' for users, epsilon in cells)} |")
    print("|---" * (len(cells) + 1) + "|")
    for columns in (2, 8, 20, 50):
        texts = []
        for users, epsilon in cells:
            found, warned = scores(columns, users, epsilon, wide, labels, repeats)
            text = f"{statistics.mean(found):.3f} ({min(found):.3f})"
            texts.append(text + (f", {warned} needed" if warned else ""))
        print(f"| {columns} | {' | '.join(texts)} |", flush=True)
    print()


def rare(repeats: int) -> None:
    """R2, median (least), and the coefficient of the first mark or of b, median (largest)."""

    def marked(rng: Any, users: int, share: float, marks: int, wide: float) -> tuple[Any, Any, Any, Any]:
        X = np.column_stack([rng.uniform(0, 10, users * ROWS), rng.random((users * ROWS, marks)) < share])
        bounds = ([10 - 10 * wide] + [1 - wide] * marks, [10 * wide] + [wide] * marks)
        return X, 20 + 3 * X[:, 0] + 5 * X[:, 1:].sum(axis=1) + rng.normal(size=len(X)), bounds, (0, 100 * wide)

    def heavy(rng: Any, users: int, _: float, __: int, wide: float) -> tuple[Any, Any, Any, Any]:
        X = np.column_stack([rng.uniform(size=users * ROWS), rng.lognormal(size=users * ROWS)])
        return X, X[:, 1] + rng.normal(size=len(X)), ([0, 0], [1, 10 * wide]), (-5, 10 * wide)

    cells = [(3000, 1.0), (10_000, 1.0), (1000, 10.0)]
    print(f"| data | {' | '.join(f'n = {users}, ε = {epsilon:g}' for users, epsilon in cells)} |")
    print("|---" * (len(cells) + 1) + "|")
    for name, make, share, marks, wide in (
        ("a mark of 3 % of the rows", marked, 0.03, 1, 1),
        ("a mark of 3 %, bounds ten times too wide", marked, 0.03, 1, 10),
        ("a mark of 1 %, bounds ten times too wide", marked, 0.01, 1, 10),
        ("eight marks of 3 %", marked, 0.03, 8, 1),
        ("lognormal, bounds to 100", heavy, 0.0, 0, 10),
        ("lognormal, bounds to 1000", heavy, 0.0, 0, 100),
    ):
        texts = []
        for users, epsilon in cells:
            found, slopes = [], []
            for repeat in range(repeats):
                rng = np.random.default_rng([11, users, repeat])
                X, y, bounds, targets = make(rng, users, share, marks, wide)
                model = UserLevelLinearRegression(
                    epsilon=epsilon, delta="1e-6", m=ROWS, feature_bounds=bounds, target_bounds=targets
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", TooFewUsersWarning)
                    model.fit(X, y, groups=np.repeat(np.arange(users), ROWS))
                X, y, _, _ = make(rng, 20_000, share, marks, wide)
                found.append(model.score(X, y))
                slopes.append(model.coef_[1])
            median = statistics.median(slopes)
            texts.append(f"{statistics.median(found):.3f} ({min(found):.3g}), {median:.3g} ({max(slopes):.3g})")
        print(f"| {name} | {' | '.join(texts)} |", flush=True)


CELLS = [(20_000, 1, 2, 1.0), (1000, 1, 2, 10.0), (3000, 16, 4, 1.0), (8000, 4, 9, 2.0)]
"""Users, rows of each, columns and epsilon, of the grid of laws of targets."""
NEAR, WORSE = 0.1, 1.8
"""Predictions so near least squares, in deviations of targets, are right; and errors so many times those of never
cutting are bad unless warned of."""


def judged(law: Law, cell: tuple[int, int, int, float], repeats: int) -> tuple[float, float, float, int, int]:
    """Errors over the deviation of targets with and without cutting, their ratio; fits that warned, and that cut."""
    users, rows, columns, epsilon = cell
    rng = np.random.default_rng([13, users, rows, columns])
    fits: dict[str, Any] = {
        clip: UserLevelLinearRegression(
            epsilon=epsilon, delta="1e-6", m=rows, feature_bounds=(-1, 1), target_bounds=(-1, 1), clip=clip
        )
        for clip in ("tested", "never")
    }
    mu2 = fits["tested"].privacy_cost(n_users=users, n_features=columns).mu2
    X, y = law(users, rows, columns, float(mu2) ** 0.5, rng)
    design = np.column_stack([X, np.ones(len(X))])
    size = np.abs(design).max(axis=0)
    best = design / size @ np.linalg.lstsq(design / size, y, rcond=None)[0]
    squares, warned, cut = dict.fromkeys(fits, 0.0), 0, 0
    for clip, model in fits.items():
        for _ in range(repeats):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X, y, groups=np.repeat(np.arange(users), rows))
            squares[clip] += float(np.mean((model.predict(X) - best) ** 2))
            if clip == "tested":
                warned += any(issubclass(each.category, NoisyFitWarning) for each in caught)
                cut += model.clipping_ is not None
    tested, never = (np.sqrt(squares[clip] / repeats) / y.std() for clip in ("tested", "never"))
    return tested, never, tested / never, warned, cut


def targets(repeats: int) -> None:
    """Error over the deviation of targets, ratio to never cutting, fits warned of (!) and cut (c); then the verdict."""
    print(f"| law | {' | '.join(f'n = {n}, m = {m}, d = {d}, ε = {e:g}' for n, m, d, e in CELLS)} |")
    print("|---" * (len(CELLS) + 1) + "|")
    near = quiet = bad = silent = cells = 0
    for name, law in LAWS.items():
        texts = []
        for cell in CELLS:
            tested, _, ratio, warned, cut = judged(law, cell, repeats)
            marks = (f" {warned}!" if warned else "") + (f" {cut}c" if cut else "")
            texts.append(f"{tested:.3g} ({ratio:.2f}){marks}")
            usually = 2 * warned > repeats
            cells, near, quiet = cells + 1, near + (tested < NEAR), quiet + (tested < NEAR and not usually)
            bad, silent = bad + (ratio > WORSE), silent + (ratio > WORSE and not usually)
        print(f"| {name} | {' | '.join(texts)} |", flush=True)
    print(f"\n{cells} cells of {repeats} runs: {bad} with more than {WORSE} times the error of never cutting,")
    print(
        f"{silent} of these without a warning in most runs; {near} within {NEAR}, {quiet} of these without a warning."
    )


CLASS_CELLS = [(20_000, 1, 2, 1.0), (60_000, 1, 2, 1.0), (3000, 16, 4, 1.0), (8000, 4, 12, 2.0)]
"""Users, rows of each, columns and epsilon, of the grid of laws of labels."""


def judged_classes(law: class_laws.Law, cell: tuple[int, int, int, float], repeats: int) -> tuple[float, ...]:
    """Error over the deviation of probabilities; over that of never clipping; mean over share; warned of; clipped."""
    users, rows, columns, epsilon = cell
    X, y = law(users, rows, columns, np.random.default_rng([17, users, rows, columns]))
    best = class_laws.likeliest(X, y)
    squares, means, warned, cut = {}, [], 0, 0
    # For users of one row there is nothing to clip, and the two are one program.
    for clip in ("tested", "never") if rows > 1 else ("tested",):
        squares[clip] = 0.0
        for _ in range(repeats):
            model = UserLevelLogisticRegression(
                epsilon=epsilon, delta="1e-6", m=rows, feature_bounds=(-1, 1), classes=(0, 1), clip=clip
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X, y, groups=np.repeat(np.arange(users), rows))
            p = model.predict_proba(X)[:, 1]
            squares[clip] += float(np.mean((p - best) ** 2))
            if clip == "tested":
                means.append(float(p.mean() / y.mean()))
                warned += any(issubclass(each.category, NoisyFitWarning) for each in caught)
                cut += model.clipping_ is not None
    tested, never = (
        np.sqrt(squares.get(clip, squares["tested"]) / repeats) / best.std() for clip in ("tested", "never")
    )
    return tested, tested / never, statistics.median(means), warned, cut


def classes(repeats: int) -> None:
    """Error (over never clipping), mean over share, fits warned of (!) and cut (c); then the verdict."""
    print(f"| law | {' | '.join(f'n = {n}, m = {m}, d = {d}, ε = {e:g}' for n, m, d, e in CLASS_CELLS)} |")
    print("|---" * (len(CLASS_CELLS) + 1) + "|")
    cells = bad = silent = off = quiet = 0
    for name, law in class_laws.LAWS.items():
        texts = []
        for cell in CLASS_CELLS:
            error, ratio, mean, warned, cut = judged_classes(law, cell, repeats)
            marks = (f" {warned}!" if warned else "") + (f" {cut}c" if cut else "")
            texts.append(f"{error:.3g} ({ratio:.2f}), {mean:.2f}{marks}")
            usually = 2 * warned > repeats
            cells, bad, silent = cells + 1, bad + (ratio > WORSE), silent + (ratio > WORSE and not usually)
            wrong = error > 0.3 or abs(mean - 1) > NEAR
            off, quiet = off + wrong, quiet + (wrong and not usually)
        print(f"| {name} | {' | '.join(texts)} |", flush=True)
    print(f"\n{cells} cells of {repeats} runs: {bad} with more than {WORSE} times the error of never clipping,")
    print(
        f"{silent} of these without a warning in most runs; {off} with an error above .3 deviations or a mean off by "
        f"more than {NEAR}, {quiet} of these without a warning in most runs."
    )


def speed() -> None:
    """Times of second moments, one run of each in turn."""
    users, rows, columns = 100_000, 16, 50
    X = np.random.default_rng(0).uniform(-1, 1, size=(users * rows, columns))
    codes = np.repeat(np.arange(users, dtype=np.uint32), rows)
    joint = JointRows(UserTable(X, np.zeros(len(X)), codes, users, rows), "max", False)
    joint = joint.in_units(np.zeros(columns), np.full(columns, 0.5), constant=False)
    Z = np.clip(X / 0.5, -4, 4).reshape(users, rows, columns)
    ones = np.ones(users)

    def pooled() -> Any:
        return np.einsum("u,urk,url->kl", ones, Z, Z, optimize=True)

    def of_users() -> None:
        for part in np.array_split(Z, 20):
            np.einsum("urk,url->ukl", part, part, optimize=True)

    def ours() -> Any:
        return joint.moment_sum(2**28, 2.0**-22)

    candidates: dict[str, Callable[[], Any]] = {
        "userdp: units, moments of users, clipped, in integers": ours,
        "numpy, einsum of the moments of users, in blocks": of_users,
        "numpy, einsum of the moments of all, with weights known": pooled,
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    processor: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(5):
        for name, call in candidates.items():
            start, used = time.perf_counter(), time.process_time()
            call()
            times[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - used)
    base = min(list(processor.values())[1])
    print("| 10⁵ users of 16 rows, 50 columns | seconds | processor seconds | over those of einsum of users |")
    print("|---|---|---|---|")
    for name, taken in times.items():
        least = min(processor[name])
        print(f"| {name} | {human(min(taken))} | {human(least)} | {least / base:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--classes", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        print(described(environment(["numpy"])))
        print()
        speed()
        return
    if options.targets:
        targets(1 if options.quick else 12)
        return
    if options.classes:
        classes(1 if options.quick else 4)
        return
    repeats = 2 if options.quick else 10
    if options.rare:
        rare(repeats)
        return
    for labels, name in ((False, "R², the best is .920"), (True, "accuracy less the best")):
        print(f"{name}, mean (least) of {repeats} runs:\n")
        table(labels, 10.0, [1000, 10_000], repeats)
        for wide in (1.5, 100.0):
            print(f"the same, bounds of {wide:g}:\n")
            table(labels, wide, [10_000], repeats)


if __name__ == "__main__":
    main()
