"""Private second moments: integers of users, noise, exact audits with planted bugs, and what models make of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.accounting import gaussian_delta, zcdp_delta
from userdp.exceptions import BudgetError, InsecureRandomnessWarning, TooFewUsersWarning
from userdp.means.gaussian_account import GaussianAccount, GaussianUnit
from userdp.mechanisms import DiscreteGaussian, ExponentialMechanism
from userdp.optimization import UserLevelLinearRegression, UserLevelLogisticRegression, least_squares
from userdp.optimization import moments as module
from userdp.optimization.least_squares import MomentRegression
from userdp.optimization.moments import MatrixRelease, MomentProblem, QuantileSearch, needed_users
from userdp.optimization.preconditioned import PreconditionedRegression
from userdp.users.table import UserTable
from userdp.users.vectors import JointRows


def table(n: int, m: int, columns: int, seed: int = 0) -> UserTable:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, size=(n * m, columns))
    return UserTable(X, rng.uniform(-1, 1, n * m), np.repeat(np.arange(n, dtype=np.uint32), m), n, m)


def in_units(data: UserTable) -> JointRows:
    columns = data.n_columns
    return JointRows(data, "max", True).in_units(
        np.linspace(-0.3, 0.3, columns), np.linspace(0.1, 0.6, columns), constant=True, target=0.25
    )


# --- the integers of users


def rows_in_units(data: UserTable) -> list[list[Fraction]]:
    """Rows in units, with the constant and the target behind them: shrunk whole, in fractions of rounded numbers."""
    columns = data.n_columns
    scaled = (np.clip(data.X, -1, 1) - np.linspace(-0.3, 0.3, columns)) * (1 / np.linspace(0.1, 0.6, columns))
    whole = np.column_stack([scaled, np.ones(len(scaled)), data.labels - 0.25])
    shrunk = whole * (4 / np.maximum(np.abs(scaled).max(axis=1), 4))[:, None]
    assert np.any(shrunk[:, -2] < 1)
    steps = np.rint(shrunk[:, :-1] * 4096).astype(int).tolist()
    return [
        [*(Fraction(z, 4096) for z in row), Fraction(y)] for row, y in zip(steps, shrunk[:, -1].tolist(), strict=True)
    ]


def moments_of(data: UserTable, columns: int) -> list[list[list[Fraction]]]:
    """Every user's mean of z z^T, of the first columns."""
    rows, found = rows_in_units(data), []
    for user in range(data.n_users):
        own = [rows[row] for row in np.flatnonzero(data.users == user)]
        found.append(
            [
                [sum((z[k] * z[other] for z in own), Fraction(0)) / max(1, len(own)) for other in range(columns)]
                for k in range(columns)
            ]
        )
    return found


def squared(matrix: list[list[Fraction]]) -> Fraction:
    return sum((entry**2 for row in matrix for entry in row), Fraction(0))


def root(number: Fraction) -> Fraction:
    """From above, to 2^-60 of itself."""
    return Fraction(math.isqrt(math.floor(number * 2**120)) + 1, 2**60)


@pytest.mark.parametrize(("radius", "places"), [(2**28, -22), (2**20, -18), (3000, -7), (5, 0), (1, 2)])
def test_sums_beside_fractions(radius: int, places: int) -> None:
    data, grid = table(30, 3, 4), Fraction(2) ** places
    found = in_units(data).moment_sum(radius, 2.0**places).tolist()
    sums, norms = np.zeros((5, 5), dtype=object), []
    for matrix in moments_of(data, 5):
        norms.append(squared(matrix))
        factor = min(1 / grid, radius / root(norms[-1]))
        sums = sums + np.array([[math.trunc(entry * factor) for entry in row] for row in matrix], dtype=object)
    # The factor has 31 bits: at most one step and R 2^-30 for each user.
    slack = 30 * (1 + radius / 2**29)
    assert max(abs(a - b) for a, b in zip(found, sums[np.triu_indices(5)], strict=True)) <= slack
    radii = np.array([0.5, 1.0, 3.0, 8.0])
    counts = in_units(data).norm_counts(radii).tolist()
    assert counts == [sum(norm <= Fraction(r) ** 2 for norm in norms) for r in radii.tolist()]


@pytest.mark.parametrize("norm", [1e6, 2.0])
def test_weighted_sums_with_targets_beside_fractions(norm: float) -> None:
    """The target has steps of its own, and users with large features count less, their targets with them."""
    data, factor, radius = table(30, 3, 4), 1.5, 2**30
    joint = in_units(data)
    found = joint.weighted_moment_sum(radius, 2.0**-20, norm=norm, factor=factor, longest=2.0)
    sums, of_products = np.zeros((6, 6), dtype=object), np.zeros(5)
    for matrix in moments_of(data, 6):
        features = squared([row[:5] for row in matrix[:5]])
        weight = min(Fraction(1), Fraction(norm) / root(features))
        product = [weight * row[5] for row in matrix[:5]]
        of_products = of_products + np.array([float(entry) for entry in product])
        # No product is longer than the root of the norm times the longest target.
        assert sum(entry**2 for entry in product) <= Fraction(norm) * Fraction(5, 4) ** 2
        scales = np.array([Fraction(1)] * 5 + [Fraction(factor)], dtype=object)
        whole = np.array(matrix, dtype=object) * np.outer(scales, scales) * weight * 2**20
        sums = sums + np.vectorize(math.trunc, otypes=[object])(whole)
    slack = 30 * (1 + radius / 2**29)
    assert max(abs(a - b) for a, b in zip(found.tolist(), sums[np.triu_indices(6)], strict=True)) <= slack
    products = joint.products(norm).clipped_sum(0.0, 4.0, 2.0**-28)
    assert np.allclose(products * 2.0**-28, of_products, atol=30 * 2.0**-27)


def test_targets_that_differ_by_little_are_told_apart() -> None:
    """Two values 2e-6 of half a range apart: their products with features differ, which steps of 1/4096 do not show."""
    X = np.tile([[-1.0], [1.0]], (50, 1))
    data = UserTable(X, 0.3 + 1e-6 * X[:, 0], np.arange(100, dtype=np.uint32), 100, 1)
    joint = JointRows(data, "max", True).in_units(np.zeros(1), np.full(1, 0.5), constant=True, target=0.1)
    triangle = joint.weighted_moment_sum(2**30, 2.0**-24, norm=100.0, factor=1.0, longest=2.0)
    assert triangle[2] * 2.0**-24 / 100 == pytest.approx(2e-6, rel=0.05)


def test_users_without_rows_are_within_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of nine: they count at the least scale, radius and length, where nobody else does."""
    data = table(6, 2, 2)
    wider = UserTable(data.X, data.labels, data.users, 9, 2)
    radii = np.array([1e-9, 1.0, 4.0])
    assert (in_units(wider).norm_counts(radii) - in_units(data).norm_counts(radii)).tolist() == [3, 3, 3]
    monkeypatch.setattr(module, "ENOUGH", 1)  # all scales are candidates
    scores: list[list[int]] = []

    def draw(mechanism: Any, values: Any) -> Any:
        if not isinstance(mechanism, ExponentialMechanism):
            return values
        scores.append(values.tolist())
        return 0

    plan = MomentRegression(problem(n_users=9, n_features=2, epsilon=5, fit_intercept=True))
    for given in (data, wider):
        plan.program(JointRows(given, "max", True))(draw)
    half = len(scores) // 2
    assert half == 4  # two scales, a radius and a length
    assert [with_none[0] - with_rows[0] for with_none, with_rows in zip(scores[:half], scores[half:], strict=True)] == [
        3
    ] * 4


@pytest.mark.parametrize("type", [np.float64, np.float32, np.int16])
def test_users_are_alone_to_the_last_bit(type: Any) -> None:
    """The sum is that of users by themselves, whatever their order, the order of their rows, and their neighbors."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)).astype(type)
    y, users = rng.uniform(-1, 1, 60), rng.integers(0, 7, 60).astype(np.uint32)

    def total(rows: Any, codes: Any, n: int) -> Any:
        joint = in_units(UserTable(X[rows], y[rows], codes, n, 1))
        return joint.weighted_moment_sum(2**20, 2.0**-18, norm=2.0, factor=0.7, longest=1.0)

    together = total(np.arange(60), users, 8)
    alone = [total(rows := np.flatnonzero(users == user), np.zeros(len(rows), np.uint32), 1) for user in range(7)]
    assert np.array_equal(together, sum(alone))
    order = rng.permutation(60)
    assert np.array_equal(together, total(order, (7 - users[order]).astype(np.uint32), 8))


@pytest.mark.parametrize("target", [False, True])
def test_no_two_users_are_farther_apart_than_stated(target: bool) -> None:
    """Norms of at most R, and distances of at most sqrt(2) (R + 2D), 1 more with targets, for radii of a few steps."""
    size = 2 + target
    for radius in (1, 2, 3, 5):
        matrices = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            X = rng.choice([-1.0, -0.4, -0.1, 0.1, 0.7, 1.0], size=(2, 2))
            data = UserTable(X, rng.choice([-1.0, -0.2, 0.3], size=2), np.zeros(2, dtype=np.uint32), 1, 2)
            joint = JointRows(data, "max", True).in_units(np.zeros(2), np.full(2, 0.2), constant=False)
            full = np.zeros((size, size), dtype=int)
            given = {"norm": 8.0, "factor": 2.0, "longest": 2.0}
            found = joint.weighted_moment_sum(radius, 0.25, **given) if target else joint.moment_sum(radius, 0.25)
            full[np.triu_indices(size)] = found
            matrices.append(full + full.T - np.diag(np.diag(full)))
            assert np.sum(matrices[-1] ** 2) <= radius**2
        for one, other in itertools.combinations(matrices, 2):
            assert np.sum((one - other) ** 2) <= 2 * (radius + 2 * size + target) ** 2


# --- noise


def problem(**given: Any) -> MomentProblem:
    public = {"n_users": 3, "n_features": 1, "with_targets": True, "fit_intercept": False, "norm": "max"}
    return MomentProblem(**{**public, "epsilon": 1, "delta": Fraction(1, 10**6), **given})


@pytest.mark.parametrize(("unit", "amount", "more"), [("rho", Fraction(1, 50), 0), ("mu2", Fraction(1, 25), 4)])
def test_noise_of_one_account(unit: GaussianUnit, amount: Fraction, more: int) -> None:
    """Variances for D = 3, R = 100, rho = 1/50: 106^2 50 on the diagonal, and half of it elsewhere, by hand.

    With targets behind features 109, for D + 1 columns and rounding once more.

    By the exact curve 4 more, for mu^2 = 1/25.
    """
    given = problem(fit_intercept=True, n_features=2, grid_resolution=64)
    for size, more_steps in ((3, 6), (4, 9)):
        release = MatrixRelease.of(given, size, 100.0, GaussianAccount(unit, amount))
        assert release.reach == release.steps + more_steps
        scaled = Fraction(release.reach, 106) ** 2
        assert 561_800 <= (release.diagonal.sigma_squared - more) / scaled < 561_801
        assert 280_900 <= (release.others.sigma_squared - more) / scaled < 280_901


@pytest.mark.parametrize("in_rho", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [MomentRegression, PreconditionedRegression])
def test_the_parts_sum_to_the_account(kind: Any, intercept: bool, in_rho: bool) -> None:
    given = problem(
        fit_intercept=intercept, with_targets=kind is MomentRegression, n_features=5, n_users=1000, in_rho=in_rho
    )
    plan = kind(given) if kind is MomentRegression else kind(given, 7)
    cost = plan.budget().cost
    amount = cost.rho if in_rho else cost.mu2
    assert plan.budget().unit == ("rho" if in_rho else "mu2")
    assert sum(part.amount for part in plan.parts.values()) == amount == sum(plan.budget().parts.values())

    def spent(shift: int | Fraction, noise: DiscreteGaussian) -> Fraction:
        return Fraction(shift) / (2 * noise.sigma_squared if in_rho else noise.sigma_squared - 4)

    def searched(search: Any) -> Fraction:
        return Fraction(search.choice._arguments["epsilon"]) ** 2 * (
            Fraction(1, 8) if in_rho else Fraction(math.pi) / 8
        )

    units = sum(
        spent((math.isqrt(this.steps**2 * given.columns - 1) + 1) ** 2, this.noise) for this in plan.search.rounds
    )
    units += given.n_features * searched(plan.search.scales)
    reaches = plan.search.reaches[5]
    assert len(reaches.distances) > 1
    shift = 1024**2 * len(reaches.distances)  # by 1024 in each sum
    units += given.n_features * spent(shift, reaches.noise)
    units += searched(plan.moments.radius)

    def of_matrix(release: MatrixRelease, more: int) -> Fraction:
        shift = 2 * (release.steps + 2 * release.size + more) ** 2  # all of it on the diagonal, or all off it
        return max(spent(shift, release.diagonal), spent(Fraction(shift, 2), release.others))

    paths = []
    if kind is PreconditionedRegression:
        units += spent(1449**2, plan.class_noise) + searched(plan.long_rows) + searched(plan.test.search)
        units += of_matrix(plan.moments.release(11), 0)

        def of_steps(phase: Any) -> Fraction:
            return phase.rounds * spent((2 * math.floor(phase.radius / phase.grid)) ** 2, phase.noise)

        units += of_steps(plan.first(1.0))
        looks = plan.test.looks(1.0, 60)
        assert len(looks) == 2
        for taken in range(3):
            refused = tuple(look.threshold + 1 for look in looks[:taken])
            tests = sum(spent(look.half**2, look.noise) for look in looks[:taken])
            paths.append(units + tests + of_steps(plan.last(1.0, plan.test.verdict(1.0, (60, refused)))))
    else:
        place, n = 60, given.n_users
        far = tuple((n * this.steps // 2,) * given.columns for this in plan.search.rounds)
        transcript = (far, (), ())
        longest = plan.longest(transcript, 20)
        looks = plan.test.looks(longest, place)
        assert len(looks) == 2
        yes, no = (tuple(look.threshold + more for look in looks) for more in (0, 1))
        for released in ((yes[0],), (no[0], yes[1]), no):
            verdict = plan.verdict(transcript, 20, (place, released))
            matrix, products = plan.last(20, verdict)
            path = units + searched(plan.test.search) + of_matrix(matrix, products is None)
            path += sum(spent(look.half**2, look.noise) for look in looks[: len(released)])
            path += spent(4 * products.steps**2, products.noise) if products else 0
            paths.append(path)
            assert verdict.refused == (products is None) == (released == no)
        never = MomentRegression(given, cut=False)
        paths.append(units + of_matrix(never.last(20, never.verdict(transcript, 20, None))[0], 1))
    for path in paths:
        assert amount * Fraction(998, 1000) < path <= amount


def shares_of(data: UserTable, norm: str, center: float, distance: float) -> int:
    """The sum of users' shares in the first column, user by user, in fractions."""
    total = 0
    for user in range(data.n_users):
        own = np.nan_to_num(data.X[data.users == user], nan=0.0, posinf=1e9, neginf=-1e9)
        if norm == "l2":
            own = own / np.maximum(np.linalg.norm(own, axis=1), 1.0)[:, None]
        away = np.abs(np.clip(own[:, 0], -1, 1) - center) > distance
        total += math.floor(Fraction(1024 * int(away.sum()), max(1, len(own))))
    return total


@pytest.mark.parametrize("norm", ["max", "l2"])
def test_shares_of_rows_beyond(norm: str) -> None:
    data = table(30, 5, 3)
    data.X[:4, 0] = [np.nan, np.inf, -np.inf, 0.5]
    users = np.where(data.users == 7, 9, data.users).astype(np.uint32)  # one without rows, one with ten
    data = UserTable(data.X, data.labels, users, 31, 5)
    rows, distances = JointRows(data, norm, True), (0.1, 0.4, 0.9, 1.5)
    found = rows.shares_beyond(0, 0.2, distances)
    assert found.tolist() == [shares_of(data, norm, 0.2, distance) for distance in distances]
    assert found[0] > found[2] > 0
    order = np.random.default_rng(0).permutation(len(users))
    moved = UserTable(data.X[order], data.labels[order], users[order], 31, 5)
    assert np.array_equal(JointRows(moved, norm, True).shares_beyond(0, 0.2, distances), found)


def test_a_reach_is_raised_until_little_is_beyond() -> None:
    plan = MomentRegression(problem(n_users=100_000, epsilon=20, fit_intercept=True))
    reaches = plan.search.reaches[10]
    length, sigma = len(reaches.distances), math.sqrt(reaches.noise.sigma_squared)
    assert reaches.distances[0] == 4 * plan.search.scales.candidates[10]
    assert np.all(np.diff(reaches.distances) > 0)
    assert reaches.distances[-1] == 1
    assert reaches.few == 1024_000 > 2 * sigma
    much = 3 * 1024_000
    for place in range(length + 1):
        beyond = [much] * place + [0] * (length - place)
        assert reaches.place(beyond) == place
        assert reaches.distance(beyond) == (*reaches.distances, 2.0)[place]
        assert reaches.doubt(beyond) == (reaches.least if length - place > 4 else 0)
    assert reaches.least == 1024 * 100_000 / 160
    assert reaches.place([much, much, -much, *[0] * (length - 3)]) == 2
    deviation = sigma / math.sqrt(length)
    assert reaches.doubt([reaches.few - 1] * length) == pytest.approx(
        2 * (reaches.few - 1 - deviation) + (length - 1) / 4 * deviation
    )
    widest = plan.search.reaches[-1]
    assert (widest.distances, widest.noise, widest.distance(()), widest.doubt(())) == ((), None, 2.0, 0.0)


def test_a_search_finds_the_quantile() -> None:
    search = QuantileSearch(1000, np.arange(10.0), 900, Fraction(2), 3.0)
    counts = np.array([0, 100, 500, 890, 900, 950, 999, 1000, 1000, 1000])
    scores: list[Any] = []
    index = search.drawn(counts, lambda mechanism, values: scores.append(values) or int(np.argmin(values)))
    assert index == 4
    # A step costs 3 / epsilon, unless that is much for so few users.
    assert scores[0].tolist() == [900, 802, 403, 14, 6, 8, 9, 10, 12, 14]
    assert QuantileSearch(100, np.arange(10.0), 90, Fraction(1, 100), 3.0).costs[-1] == 72
    assert [needed_users(1000, cut) for cut in (0.3, 7, 7.5, 500)] == [1000, 993, 993, 900]
    # One user more is worth e^epsilon, not its root: all counts of a user move one way.
    law = search.choice.pmf(np.array([0, 1])).probabilities
    assert law[0] / law[1] == pytest.approx(math.exp(2))


# --- exact audits


@pytest.fixture(autouse=True)
def _forget_plans() -> Iterator[None]:
    least_squares.moment_regression.cache_clear()
    yield
    least_squares.moment_regression.cache_clear()


SCALE = 0.25
"""The ends of the range are then where numbers are clamped, and second moments as long as the radius."""


def diagonal_distribution(points: tuple[tuple[float, float], ...], account: GaussianAccount, mutant: int) -> Any:
    """The exact weights of the noisy diagonal, a user at each point; off it there are zeros whoever is there."""
    # The radius is the norm of who is at the end of a column.
    noise = MatrixRelease.of(problem(n_users=len(points), n_features=2, grid_resolution=16), 2, 16.0, account)
    X = np.array(points)
    data = UserTable(X, np.zeros(len(X)), np.arange(len(X), dtype=np.uint32), len(X), 1)
    joint = JointRows(data, "max", True).in_units(np.zeros(2), np.full(2, SCALE), constant=False)
    first, other, second = joint.moment_sum(noise.steps, noise.grid).tolist()
    assert other == 0
    drawn = type(noise.diagonal)(sigma_squared=noise.diagonal.sigma_squared / mutant**2)
    half = drawn._core_noise.weights()
    weights = half[:0:-1] + half
    length = len(weights) + len(points) * noise.steps
    columns = np.zeros((2, length), dtype=object)
    for column, shift in zip(columns, (first, second), strict=True):
        column[shift : shift + len(weights)] = weights
    return np.outer(*columns), sum(weights) ** 2


LOUD = [GaussianAccount("rho", Fraction(25)), GaussianAccount("mu2", Fraction(50))]


def promise_of(account: GaussianAccount, epsilon: int) -> Fraction:
    distance = Fraction(1, 2**80)
    if account.unit == "rho":
        return zcdp_delta(account.amount, epsilon, distance=distance)
    return gaussian_delta(account.amount, epsilon, distance=distance)


@pytest.mark.parametrize(
    "account", [GaussianAccount("rho", Fraction(25)), GaussianAccount("mu2", Fraction(50))], ids=str
)
@pytest.mark.parametrize("users", [2, 3])
@pytest.mark.parametrize("mutant", [1, 2])
def test_second_moments_audited(users: int, mutant: int, account: GaussianAccount) -> None:
    """All neighbors of users in one column or the other: delta is as promised, and not with half the noise."""
    epsilon = 46
    promised = promise_of(account, epsilon)
    level = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**40))
    universe = [(1.0, 0.0), (0.0, 1.0), (-0.5, 0.0)][: 5 - users]
    datasets = list(itertools.combinations_with_replacement(universe, users))
    found = {data: diagonal_distribution(data, account, mutant) for data in datasets}
    worst = Fraction(0)
    for one, other in itertools.permutations(datasets, 2):
        if sum((Counter(one) - Counter(other)).values()) == 1:
            (p, whole), (q, _) = found[one], found[other]
            excess = level.denominator * p - level.numerator * q
            worst = max(worst, Fraction(excess[excess > 0].sum(), level.denominator * whole))
    print(f"n={users} noise / {mutant}: worst delta {float(worst):.4g} of {float(promised):.4g}")
    assert 0 < promised < 0.1
    assert (worst <= promised) is (mutant == 1)


@pytest.mark.parametrize(("unit", "amount"), [("rho", Fraction(25)), ("mu2", Fraction(50))])
@pytest.mark.parametrize("mutant", [1, 2])
def test_shares_beyond_audited(mutant: int, unit: GaussianUnit, amount: Fraction) -> None:
    """All neighbors among two users who are near, beyond one distance, or beyond both: not with half the noise."""
    epsilon, account = 46, GaussianAccount(unit, amount)
    promised = promise_of(account, epsilon)
    level = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**40))
    given = problem(n_users=2, n_features=1, with_targets=False)
    parts = {"centers": account.part(0), "scales": account.part(Fraction(1, 25)), "reaches": account}
    plan = module.UnitSearch(given, parts)
    plan.reaches = (plan._reaches(0.5),)
    noise = type(plan.reaches[0].noise)(sigma_squared=plan.reaches[0].noise.sigma_squared / mutant**2)
    assert plan.reaches[0].distances == (0.5, 1.0)
    half = noise._core_noise.weights()
    # What is left out is below e**-46 of anything that counts.
    half = [weight for weight in half if float(weight) > 1e-40 * float(half[0])]
    weights = [float(weight) for weight in half[:0:-1] + half]
    whole = sum(weights)

    def distribution(X: list[float]) -> Any:
        data = UserTable(np.array(X)[:, None], np.zeros(2), np.arange(2, dtype=np.uint32), 2, 1)
        columns = np.zeros((2, len(weights) + 2048))
        sums = JointRows(data, "max", False).shares_beyond(0, -0.25, plan.reaches[0].distances)
        for column, shift in zip(columns, sums.tolist(), strict=True):
            column[shift : shift + len(weights)] = weights
        return columns / whole

    def delta(p: Any, q: Any) -> float:
        rows = zip(p[0], float(level) * q[0], strict=True)
        return float(sum(np.maximum(a * p[1] - b * q[1], 0).sum() for a, b in rows if a))

    # The other user moves both distributions alike, and the noise is symmetric.
    found = {x: distribution([x, 0.0]) for x in (0.0, 0.5, 1.0)}
    worst = max(delta(found[x], found[other]) for x, other in itertools.combinations(found, 2))
    print(f"noise / {mutant}: worst delta {worst:.4g} of {float(promised):.4g}")
    assert 0 < promised < 0.1
    assert (worst <= promised) is (mutant == 1)


# --- models


def people(n: int, labels: bool = False) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(4 * n, 3)) * [1, 100, 0.01] + [3, -50, 0]
    best = (X - [3, -50, 0]) @ [1.0, 0.02, -100.0]
    y = (3 * best + rng.logistic(size=4 * n) > 0) * 1 if labels else 7 + best + rng.normal(size=4 * n) / 2
    return X, y, np.repeat(np.arange(n), 4)


BOUNDS = ([-100, -1000, -1], [100, 1000, 1])


def drawn_once(model: Any, X: Any, y: Any, users: Any) -> Any:
    """A fit with fixed draws."""
    with pytest.warns(InsecureRandomnessWarning):
        return model.set_params(random_state=1).fit(X, y, groups=users)


@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_in_the_units_of_the_data(intercept: bool) -> None:
    """With fixed draws, which decide whether a fit says that it converged. Coefficients are far from what fails."""
    X, y, users = people(20_000)
    X, y = (X, y) if intercept else (X - [3, -50, 0], y - 7)
    model = UserLevelLinearRegression(
        epsilon=10, m=4, feature_bounds=BOUNDS, target_bounds=(-200, 200), fit_intercept=intercept
    )
    model = drawn_once(model, X, y, users)
    assert np.allclose(model.coef_ * [1, 50, -0.01], 1, atol=0.05)
    assert abs(model.predict(np.array([[3.0, -50.0, 0.0]]) * intercept)[0] - 7 * intercept) < 0.2
    assert model.converged_
    assert 0 < model.noise_ratio_ < 0.1
    assert (model.intercept_ != 0) == intercept
    assert "moments" in model.privacy_.budget
    assert ("centers" in model.privacy_.budget) == intercept


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_coefficients_in_the_units_of_the_data(intercept: bool) -> None:
    """With fixed draws: of free ones, about one fit in fifty says that it did not converge."""
    X, y, users = people(20_000, labels=True)
    X = X if intercept else X - [3, -50, 0]
    model = UserLevelLogisticRegression(epsilon=10, m=4, feature_bounds=BOUNDS, fit_intercept=intercept, classes=(0, 1))
    model = drawn_once(model, X, y, users)
    assert np.allclose(model.coef_[0] * [1, 50, -0.01], 3, atol=0.4)
    assert model.converged_
    assert np.allclose(model.predict_proba(X[:5])[:, 1], 1 / (1 + np.exp(-model.decision_function(X[:5]))))


def with_rare(n: int, m: int, of_users: bool) -> tuple[Any, Any, Any]:
    """A column of marks in 3 % of the rows, or in all rows of 3 % of the users, beside one of numbers."""
    rng = np.random.default_rng(4)
    marks = np.repeat(rng.random(n) < 0.03, m) if of_users else rng.random(n * m) < 0.03
    X = np.column_stack([rng.uniform(0, 10, n * m), marks])
    return X, 20 + X @ [3.0, 5.0] + rng.normal(size=n * m), np.repeat(np.arange(n), m)


@pytest.mark.parametrize("wide", [1, 10])
@pytest.mark.parametrize("of_users", [False, True])
def test_rare_marks_have_coefficients_in_units_of_the_data(of_users: bool, wide: int) -> None:
    """With fixed draws: the noise of the second coefficient is a fifth of what is allowed."""
    X, y, users = with_rare(20_000, 4, of_users)
    bounds = ([10 - 10 * wide, 1 - wide], [10 * wide, wide])
    model = UserLevelLinearRegression(epsilon=10, m=4, feature_bounds=bounds, target_bounds=(0, 100 * wide))
    model = drawn_once(model, X, y, users)
    assert np.allclose(model.coef_, [3, 5], rtol=0.1)
    assert model.score(X, y) > 0.98
    labels = X @ [0.6, 2.0] - 3 + np.random.default_rng(5).logistic(size=len(X)) > 0
    logistic = UserLevelLogisticRegression(epsilon=10, m=4, feature_bounds=bounds, classes=(False, True))
    coefficients = drawn_once(logistic, X, labels, users).coef_[0]
    assert np.allclose(coefficients, [0.6, 2.0], rtol=0.6)


def test_slopes_by_too_few_rows_reach_to_the_bounds() -> None:
    """A column that varies no more than rare rows would make it: as if these were at the farther bound."""
    given = problem(n_users=100_000, n_features=1, epsilon=20, fit_intercept=True)
    search = MomentRegression(given).search
    reaches = search.reaches[8]
    at_center = tuple((100_000 * this.steps // 2,) * 2 for this in search.rounds)
    scale = search.scales.candidates[8]
    for share, varied, unsure in ((0.008, 0.2, True), (0.008, 0.3, False), (0.0, 0.09, True), (0.0, 0.12, False)):
        drawn = at_center, (8,), ((round(1024 * share * 100_000),) * len(reaches.distances),)
        # A fifth of the users have no rows: the mean is that of those who have.
        matrix = np.array([[varied + 0.008, 0.08], [0.08, 0.8]])
        assert search.unsure(drawn, matrix).tolist() == [unsure]
        coefficients, intercept = search.line(drawn, matrix, np.array([2.0, 7.0]))
        assert coefficients == pytest.approx([2 / (0.25 if unsure else scale)], rel=1e-3)
        # At the mean the line is where it was.
        assert intercept + coefficients[0] * 0.1 * scale == pytest.approx(7.2, abs=1e-3)


def test_regularization_shrinks() -> None:
    X, y, users = people(20_000)
    given = {"epsilon": 10, "m": 4, "feature_bounds": (-100, 100), "target_bounds": (-200, 200)}
    free, held = (
        UserLevelLinearRegression(regularization=strength, **given).fit(X[:, :1], y, groups=users)
        for strength in (0.0, (1 / math.sqrt(3) / 100) ** 2)
    )
    # lambda is the variance of the feature in units of its bounds: half of the coefficient is left. The noise of the
    # quotient is normal, a sixteenth of what is allowed.
    assert abs(held.coef_[0] / free.coef_[0] - 0.5) < 0.05


def test_bounds_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, users = people(300)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = {"c": (-1, 1), "a": (-100, 100), "b": (-1000, 1000)}
    models = []
    for data, bounds in ((frame, named), (X, BOUNDS)):
        with pytest.warns(InsecureRandomnessWarning):
            model = UserLevelLinearRegression(
                epsilon=5, m=4, feature_bounds=bounds, target_bounds=(-200, 200), random_state=1
            ).fit(data, y, groups=users)
        models.append(model)
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].predict(frame), models[1].predict(X))
    with pytest.raises(ValueError, match="'b'"):
        UserLevelLinearRegression(epsilon=5, m=4, feature_bounds={"a": (0, 1), "c": (0, 1)}, target_bounds=(0, 1)).fit(
            frame, y, groups=users
        )


@pytest.mark.parametrize("kind", [UserLevelLinearRegression, UserLevelLogisticRegression])
def test_too_few_users_are_warned_of_with_a_number_that_does(kind: Any) -> None:
    bounds = {"target_bounds": (0, 1)} if kind is UserLevelLinearRegression else {"classes": (0, 1)}
    model = kind(epsilon=1, m=4, feature_bounds=(0, 1), **bounds)
    for columns in (1, 20, 50):
        (warning,) = model.release_plan(n_users=100, n_features=columns).warnings
        needed = int(str(warning).split("about ")[1].split(" ")[0])
        assert model.release_plan(n_users=needed + 2, n_features=columns).warnings == ()
        assert model.release_plan(n_users=needed * 19 // 20, n_features=columns).warnings != ()
    X, y, users = people(10, labels=True)
    with pytest.warns(TooFewUsersWarning, match="10 users are too few for 3 columns"):
        model.fit(X, y, groups=users)


@pytest.mark.parametrize("kind", [UserLevelLinearRegression, UserLevelLogisticRegression])
def test_too_many_columns_are_refused_before_memory_is_asked_for(kind: Any) -> None:
    bounds = {"target_bounds": (0, 1)} if kind is UserLevelLinearRegression else {"classes": (0, 1)}
    model = kind(epsilon=1, m=4, feature_bounds=(0, 1), **bounds)
    with pytest.raises(BudgetError, match="X has 100000 columns, and second moments of more than 4095"):
        model.release_plan(n_users=1000, n_features=100_000)


def test_every_scale_of_values_is_one_release() -> None:
    """What is no number, infinite or tiny raises nothing and leaves coefficients finite."""
    for value in (np.nan, np.inf, -np.inf, 1e308, 5e-324):
        X, y, users = people(50, labels=True)
        X[:8], y = value, np.where(np.arange(200) < 3, value, y)
        for kind, bounds in (
            (UserLevelLinearRegression, {"target_bounds": (0, 1)}),
            (UserLevelLogisticRegression, {"classes": (0, 1)}),
        ):
            for given in ({"feature_bounds": BOUNDS}, {"max_feature_norm": 1e-3}):
                model = kind(epsilon=1, m=4, **given, **bounds).fit(X, y, groups=users)
                assert np.all(np.isfinite(model.coef_))
                assert np.all(np.isfinite(model.intercept_))
                assert isinstance(model.converged_, bool)
    read = [
        kind(epsilon=1, m=4, feature_bounds=(0, 1), **bounds)._read(form, y, users)[0].X for form in (X, X.astype(str))
    ]
    assert np.array_equal(*read)
