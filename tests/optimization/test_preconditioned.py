"""Logistic regression in whitened units: what a user moves, exact audits, classes, and models with rare classes."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.accounting import zcdp_delta
from userdp.exceptions import (
    InsecureRandomnessWarning,
    LabelsOutsideClassesWarning,
    NoisyFitWarning,
)
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount, _noise
from userdp.mechanisms import DiscreteGaussian, ExponentialMechanism
from userdp.mechanisms.composed import PathEnumerator, _Path
from userdp.optimization import (
    ClippedGradientDescent,
    L2Ball,
    LogisticLoss,
    PhasedERM,
    SmoothedHingeLoss,
    UserLevelLogisticRegression,
    WinsorizedGradientDescent,
)
from userdp.optimization import cutting as cutting_module
from userdp.optimization.moments import MomentProblem, QuantileSearch
from userdp.optimization.preconditioned import PAIR, Phase, PreconditionedRegression
from userdp.users.table import UserTable
from userdp.users.vectors import GivenVectors, JointRows


def table(users: list[int], X: Any, labels: Any, n_users: int, outside: list[int] | None = None) -> UserTable:
    given = None if outside is None else np.array(outside, dtype=np.uint32)
    codes = np.array(users, dtype=np.uint32)
    return UserTable(
        np.asarray(X, float).reshape(len(users), np.shape(X)[-1] if np.ndim(X) > 1 else 1),
        np.array(labels, np.uint8),
        codes,
        n_users,
        1,
        given,
    )


def problem(**given: Any) -> MomentProblem:
    public = {"n_users": 2, "n_features": 1, "with_targets": False, "fit_intercept": False, "norm": "max"}
    return MomentProblem(**{**public, "epsilon": 50, "delta": Fraction(1, 20), **given})


# --- the integers of users


def whitened_by_hand(X: Any, center: Any, scale: Any, matrix: Any, users: Any, radius: float) -> tuple[Any, Any, Any]:
    z = np.column_stack([(np.clip(X, -1, 1) - center) / scale, np.ones(len(X))])
    weight = np.minimum(1, 4 / np.abs(z[:, :-1]).max(axis=1))
    for user in np.unique(users):
        own = users == user
        shrunk = z[own] * weight[own, None]
        weight[own] *= min(1, radius / float(np.linalg.norm(shrunk.T @ shrunk / own.sum())))
    return z @ matrix, weight, weight * np.linalg.norm(z @ matrix, axis=1)


def test_gradients_by_hand() -> None:
    """Rows of three users, one of them without rows; some far out, and some longer than the longest."""
    rng = np.random.default_rng(0)
    X, users = rng.uniform(-1.2, 1.2, size=(40, 2)), [0] * 25 + [2] * 15
    labels = rng.integers(0, 2, 40)
    center, scale, matrix = np.array([0.1, -0.2]), np.array([0.1, 0.4]), rng.normal(size=(3, 3))
    order = rng.permutation(40)
    data = table([users[row] for row in order], X[order], labels[order], 3)
    white = JointRows(data, "max", False).whitened(center, scale, matrix, constant=True, radius=10.0)
    x, weight, length = whitened_by_hand(X, center, scale, matrix, np.array(users), 10.0)
    assert (weight < 1).sum() > 5
    assert weight[:25].max() < 1
    theta, longest = rng.normal(size=3), float(np.median(length))
    p = 1 / (1 + np.exp(-x @ theta))
    rows = ((p - labels) * weight * np.minimum(1, longest / length))[:, None] * x
    assert np.linalg.norm(rows, axis=1).max() <= longest + 1e-12
    gradients = white.gradients(theta, longest)
    for user, part in ((0, rows[:25]), (2, rows[25:])):
        found = gradients.subset([user]).clipped_sum(np.zeros(3), 100.0, 2.0**-20) * 2.0**-20
        assert np.allclose(found, part.mean(axis=0), atol=1e-5)
    assert not gradients.subset([1]).clipped_sum(np.zeros(3), 100.0, 2.0**-20).any()
    lengths = np.quantile(length, [0.1, 0.5, 0.9])
    shares = [
        1024 + sum(math.floor(1024 * np.mean(part <= limit)) for part in (length[:25], length[25:]))
        for limit in lengths
    ]
    assert white.shares_within(lengths).tolist() == shares


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_users_are_alone_to_the_last_bit(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(60, 3)).astype(dtype), rng.integers(0, 2, 60)
    users, matrix = rng.integers(0, 7, 60), rng.normal(size=(4, 4))

    def total(rows: Any, codes: Any, n: int) -> Any:
        data = UserTable(X[rows], labels[rows].astype(np.uint8), np.asarray(codes, np.uint32), n, 1)
        units = np.full(3, 0.01), np.full(3, 0.1)
        white = JointRows(data, "l2", False).whitened(*units, matrix, constant=True, radius=3.0)
        return white.gradients(np.array([0.3, -0.1, 0.2, 0.5]), 1.5).clipped_sum(np.zeros(4), 1.0, 2.0**-24)

    together = total(np.arange(60), users, 7)
    alone = [total(np.flatnonzero(users == user), np.zeros(np.sum(users == user)), 1) for user in range(7)]
    assert np.array_equal(together, sum(alone))


def test_the_pair_of_shares_moves_as_stated() -> None:
    """All users of up to 16 rows, of three kinds: the farthest two pairs, squared, are 2 x 1024^2, below 1449^2."""
    pairs = set()
    for rows in range(17):
        for second, outside in itertools.product(range(rows + 1), repeat=2):
            if second + outside <= rows:
                labels = [1] * second + [0] * (rows - second - outside)
                data = table([0] * len(labels), np.zeros((len(labels), 1)), labels, 1, [0] * outside)
                pairs.add(tuple(JointRows(data, "max", False).class_shares().tolist()))
                expected = (1024 * second // max(rows, 1), 1024 * outside // max(rows, 1))
                assert expected in pairs
    farthest = max((a - c) ** 2 + (b - d) ** 2 for (a, b), (c, d) in itertools.combinations(pairs, 2))
    assert farthest == 2 * 1024**2
    assert (PAIR - 1) ** 2 < farthest <= PAIR**2


def test_scores_of_profiles_that_cross_move_in_an_interval() -> None:
    """All profiles of two users of up to four steps of four: changes of scores, whatever the others are, within one."""
    profiles = [p for p in itertools.product(range(5), repeat=4) if list(p) == sorted(p)]
    for one, other in itertools.product(profiles, repeat=2):
        for needed, others in ((4, (0, 0, 0, 0)), (5, (0, 1, 2, 4)), (9, (1, 1, 6, 6))):
            scores = [np.maximum(needed - np.array(others) - np.array(profile), 0) for profile in (one, other)]
            assert np.ptp(scores[1] - scores[0]) <= 4


def test_choices_of_profiles_that_cross_are_private() -> None:
    """The exact pmf for shares of rows that cross: the loss is at most epsilon, and not at twice the rate."""
    epsilon = Fraction(1)
    search = QuantileSearch(3, np.arange(3.0), 3, epsilon, 0.0, per_user=1024)
    profiles = [(0, 1024, 1024), (512, 512, 512), (0, 0, 1024), (1024, 1024, 1024), (0, 0, 0)]
    worst = {1: 0.0, 2: 0.0}
    for others in ((0, 0, 0), (1024, 1500, 2048)):
        for one, other in itertools.permutations(profiles, 2):
            for times in worst:
                choice = ExponentialMechanism(epsilon=times * epsilon, sensitivity=1024, monotone=True)
                p, q = (
                    choice.pmf(np.maximum(search.needed - np.array(others) - np.array(profile), 0)).probabilities
                    for profile in (one, other)
                )
                losses = np.log(p / q)
                worst[times] = max(worst[times], float(np.abs(losses).max()))
                assert times == 2 or np.ptp(losses) <= 1
    assert 0.5 < worst[1] <= 1 < worst[2]


# --- exact audits


class Worst:
    """Users whose gradients are as long as they may be, whatever theta is."""

    def __init__(self, signs: tuple[float, ...]) -> None:
        self.signs = signs

    def gradients(self, theta: Any, longest: float) -> GivenVectors:
        return GivenVectors(np.array(self.signs)[:, None] * longest, np.ones(len(self.signs), dtype=bool))


def steps_of(plan: PreconditionedRegression, signs: tuple[float, ...]) -> dict[Any, Fraction]:
    """The exact distribution of what is drawn of gradients, by following all paths."""
    prefixes, found = [_Path((), 1, 1)], {}
    while prefixes:
        path = prefixes.pop()
        branches: list[Any] = []
        draw = PathEnumerator(path, branches, 0, 10**7)
        descent = _Still()
        outcome = plan.descended(Worst(signs), descent, 0, draw)  # type: ignore[arg-type]
        prefixes.extend(branches)
        found[outcome] = found.get(outcome, 0) + Fraction(path.weight, path.total)
    return found


class _Still:
    """A descent of which only what is drawn matters."""

    theta = np.zeros(1)

    def walk(self, phase: Any, total: Any) -> Any:
        for done in range(phase.rounds):
            total(done, self.theta)
        return np.zeros((phase.rounds, 1))


def divergence(p: dict[Any, Fraction], q: dict[Any, Fraction], epsilon: float) -> float:
    """The hockey-stick divergence, from exact weights."""
    level = math.exp(epsilon)
    return math.fsum(max(0.0, float(weight) - level * float(q.get(key, 0))) for key, weight in p.items())


@pytest.mark.parametrize("mutant", [1, 2])
@pytest.mark.parametrize("branch", ["never", "not asked or one look", "refused", "two looks"])
def test_search_looks_and_steps_audited(branch: str, mutant: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch, with users at both ends: delta is what the parts promise together, and not with half the noise.

    The first solution is left out: its steps are those of the last, and all that is drawn here may depend on them.
    """
    if branch == "refused":
        monkeypatch.setattr(cutting_module, "ACCEPTED", -10.0)
    given = problem(grid_resolution=2, in_rho=True)
    plan = PreconditionedRegression(given, 1, True, branch != "never")
    parts = plan.shares["gradients"]
    if branch != "never":
        ladder = [0.25] if branch == "two looks" else [0.5, 1.0]
        plan.test.search.candidates = np.array(ladder)
        plan.test.search.costs = plan.test.search.costs[: len(ladder)]
        nothing = Phase(0, 1.0, 1.0, DiscreteGaussian(sigma_squared=4), 2)
        monkeypatch.setattr(plan, "first", lambda longest: nothing)
        parts += plan.shares["search"]
    account = plan.account.part(parts)
    monkeypatch.setattr(GaussianAccount, "noise", lambda self, reach: _noise(self.part(mutant**2), reach))
    plan.phase.cache_clear()
    epsilon = float(account.amount) + 2 * math.sqrt(float(account.amount) * 7)
    promised = float(zcdp_delta(account.amount, Fraction(epsilon), distance=8 * NOISE_DISTANCE))
    found = {signs: steps_of(plan, signs) for signs in ((1.0, 1.0), (-1.0, 1.0), (0.1, 1.0))}
    worst = max(divergence(p, q, epsilon) for p, q in itertools.permutations(found.values(), 2))
    print(f"{branch}, noise / {mutant}: {worst:.3g} of {promised:.3g}, {len(found[1.0, 1.0])} transcripts")
    assert promised > 1e-9
    assert (worst <= promised) is (mutant == 1)


@pytest.mark.parametrize("share", [1, 4])
def test_the_pair_of_shares_audited(share: int) -> None:
    """Users of the second class and of neither: the farthest pair; four times the account fails."""
    account = GaussianAccount("rho", Fraction(25))
    noise = account.part(share).noise(PAIR)
    weights = np.array([float(Fraction(w)) for w in noise._core_noise.weights()])
    weights = np.concatenate([weights[:0:-1], weights])
    weights /= weights.sum()
    epsilon = 46
    promised = float(zcdp_delta(account.amount, epsilon, distance=2 * NOISE_DISTANCE))
    shift = [table([0, 0], [[0], [0]], [1, 1], 1), table([], [], [], 1, [0, 0])]
    (a, b), (c, d) = (JointRows(data, "max", False).class_shares().tolist() for data in shift)
    assert (a, b, c, d) == (1024, 0, 0, 1024)
    # Two coordinates move by 1024 each: the sum of two independent losses, binned upwards and downwards by nothing.
    size = len(weights) + 1024
    p, q = np.zeros(size), np.zeros(size)
    p[1024:], q[: len(weights)] = weights, weights
    worst = sum(float(np.maximum(x * q - math.exp(epsilon) * y * p, 0).sum()) for x, y in zip(p, q, strict=True) if x)
    print(f"{share} x: {worst:.3g} of {promised:.3g}")
    assert (worst <= promised) is (share == 1)


# --- what is drawn, and what it stands for


@pytest.mark.parametrize("in_rho", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_parts_sum_to_the_account_on_all_paths(intercept: bool, in_rho: bool) -> None:
    given = problem(
        n_users=1000, n_features=5, fit_intercept=intercept, in_rho=in_rho, epsilon=1, delta=Fraction(1, 10**6)
    )
    for tested in (False, True):
        plan = PreconditionedRegression(given, 7, True, tested)
        assert sum(plan.shares.values()) == 1
        assert sum(plan.budget().parts.values()) == plan.account.amount
        before = sum(share for name, share in plan.shares.items() if name != "gradients")
        if not tested:
            continue
        assert plan.test.left == plan.shares["gradients"]
        for index in (0, 50, 96):
            looks = plan.test.looks(1.0, index)
            for taken in range(len(looks) + 1):
                refused = tuple(look.threshold + 1 for look in looks[:taken])
                verdict = plan.test.verdict(1.0, (index, refused))
                phase = plan.last(1.0, verdict)
                spent = before + taken * plan.test.look + verdict.left
                assert spent == 1
                step = plan.account.part(verdict.left / 7).noise(2 * math.floor(phase.radius / phase.grid))
                assert step.sigma_squared == phase.noise.sigma_squared


def test_the_share_of_the_second_class_is_post_processing() -> None:
    plan = PreconditionedRegression(problem(n_users=10_000, epsilon=1, delta=Fraction(1, 10**6)))
    whole = 1024 * 10_000
    noise = math.sqrt(plan.class_noise.sigma_squared) / whole
    assert plan.classes((whole // 4, whole // 2))[0] == pytest.approx(1 / 2)
    assert plan.classes((whole // 10, 0))[:2] == pytest.approx((0.1, 0))
    assert plan.classes((-whole, 0))[0] == pytest.approx(2 * noise)
    assert plan.classes((2 * whole, 0))[0] == pytest.approx(1 - 2 * noise)
    # Nearly all labels are outside: t is four deviations, and nothing is known of classes.
    assert plan.classes((0, whole))[0] == 1 / 2


def people(n: int, m: int, share: float, seed: int, outside: float = 0.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n * m, 2))
    s = 1.5 * X[:, 0] - X[:, 1]
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.mean(1 / (1 + np.exp(-s - middle))) < share else (low, middle)
    y = (rng.uniform(size=n * m) < 1 / (1 + np.exp(-s - low))).astype(float)
    y[rng.uniform(size=n * m) < outside] = 7
    return X, y, np.repeat(np.arange(n), m)


def drawn_once(model: Any, X: Any, y: Any, users: Any) -> tuple[Any, list[Any]]:
    """A fit with fixed draws, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(random_state=1).fit(X, y, groups=users)
    return model, [w for w in caught if w.category is not InsecureRandomnessWarning]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.5])
@pytest.mark.parametrize("wide", [1, 10])
def test_rare_classes_are_not_lost(share: float, wide: int) -> None:
    """The mean probability over the share, with fixed draws: within a tenth, for users of one row."""
    X, y, users = people(60_000, 1, share, 0)
    model, said = drawn_once(
        UserLevelLogisticRegression(epsilon=1, m=1, feature_bounds=(-wide, wide), classes=(0, 1)), X, y, users
    )
    assert abs(model.predict_proba(X)[:, 1].mean() / y.mean() - 1) < (0.1 if wide == 1 else 0.2)
    assert not said
    assert model.looks_ == 0
    assert model.clipping_ is None
    assert abs(model.outside_) < 4 * model.outside_deviation_


def test_rows_far_out_do_not_move_a_slope() -> None:
    """Labels follow a feature far beyond four scales, too: slopes are as where they are near."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(60_000, 2)) * [0.05, 1]
    X[rng.uniform(size=60_000) < 0.005, 0] *= 15
    y = rng.uniform(size=60_000) < 1 / (1 + np.exp(-20 * X[:, 0] - X[:, 1]))
    model, _ = drawn_once(
        UserLevelLogisticRegression(epsilon=2, m=1, feature_bounds=(-1, 1), classes=(0, 1)), X, y, np.arange(60_000)
    )
    assert model.coef_[0] == pytest.approx([20, 1], rel=0.15)


def test_users_of_many_rows_are_clipped_where_a_look_accepts() -> None:
    X, y, users = people(3000, 16, 0.3, 3)
    given = {"epsilon": 1, "m": 16, "feature_bounds": (-1, 1), "classes": (0, 1)}
    tested, _ = drawn_once(UserLevelLogisticRegression(**given), X, y, users)
    never, _ = drawn_once(UserLevelLogisticRegression(clip="never", **given), X, y, users)
    assert tested.looks_ >= 1
    assert tested.clipping_ is not None
    assert tested.clipping_.radius <= tested.clipping_.longest / 2
    assert not tested.refused_
    assert tested.coef_[0] == pytest.approx([1.5, -1], abs=0.3)
    assert (never.looks_, never.clipping_) == (0, None)
    assert UserLevelLogisticRegression.from_json(tested.to_json()).clipping_ == tested.clipping_


def test_noise_is_told_after_the_fit() -> None:
    """A class of fewer users than noise is worth; and labels that features say nothing of."""
    X, y, users = people(5000, 1, 0.004, 4)
    given = {"m": 1, "feature_bounds": (-1, 1), "classes": (0, 1)}
    model, said = drawn_once(UserLevelLogisticRegression(epsilon=0.5, **given), X, y, users)
    assert any("the rarer class is hardly known" in str(w.message) for w in said if w.category is NoisyFitWarning)
    assert not model.converged_
    assert model.notes_
    y = np.random.default_rng(5).integers(0, 2, 5000)
    _, said = drawn_once(UserLevelLogisticRegression(epsilon=1, **given), X, y, users)
    assert any("may be far off" in str(w.message) for w in said if w.category is NoisyFitWarning)


@pytest.mark.parametrize(
    ("labels", "classes", "warned"),
    [((1, 2), (0, 1), True), ((-1, 1), (0, 1), True), ((0, 1), (0, 1), False), ((-1, 1), (-1, 1), False)],
)
def test_labels_outside_the_classes_are_told(labels: Any, classes: Any, warned: bool) -> None:
    X, y, users = people(3000, 1, 0.4, 6)
    y = np.array(labels)[y.astype(int)]
    model, said = drawn_once(
        UserLevelLogisticRegression(epsilon=1, m=1, feature_bounds=(-1, 1), classes=classes), X, y, users
    )
    assert any(w.category is LabelsOutsideClassesWarning for w in said) is warned
    expected = np.mean(~np.isin(y, classes))
    assert abs(model.outside_ - expected) < 5 * model.outside_deviation_
    if not warned:
        assert model.coef_[0, 0] > 0.5


def test_rows_without_a_class_do_not_count() -> None:
    """A fifth of the labels is NaN, and the model is that of the others."""
    X, y, users = people(20_000, 4, 0.3, 7, outside=0.2)
    y[y == 7] = np.nan
    model, said = drawn_once(
        UserLevelLogisticRegression(epsilon=4, m=4, feature_bounds=(-1, 1), classes=(0, 1)), X, y, users
    )
    assert [w.category for w in said] == [LabelsOutsideClassesWarning]
    assert model.outside_ == pytest.approx(0.2, abs=0.01)
    assert model.coef_[0] == pytest.approx([1.5, -1], abs=0.15)


def test_equal_transcripts_say_the_same() -> None:
    plan = PreconditionedRegression(problem(n_users=100, epsilon=1, delta=Fraction(1, 10**6)), 4, True, True)
    zeros = (0, ((0,), ())), (0, (1000,), ())
    units = ((), (len(plan.search.reaches) - 1,), ((),))
    outcome = (100, 100), units, zeros[1], 20, ((5,), (5,)), (96, ()), ((3,), (2,), (1,), (0,))
    one, other = plan.fit(outcome), plan.fit(outcome)
    assert one.notes == other.notes
    assert one.intercept == other.intercept == 0


# --- descents


def test_descents_clip_nobody_unless_asked() -> None:
    given: dict[str, Any] = {
        "epsilon": 1, "delta": 1e-6, "loss": LogisticLoss(), "constraint": L2Ball(5.0), "max_norm": 2.0,
        "target_bounds": (0, 1),
    }  # fmt: skip

    def clip(**more: Any) -> float:
        model = ClippedGradientDescent(**given, **more)
        return float(model._descent(model._problem(1000, 2), None).step.clip)

    assert clip() == clip(clip="range") == clip(m=16) == 2.0
    assert clip(clip="small", m=16) < 0.5
    assert clip(clip=0.7) == 0.7
    for bad, error in (("whole", ValueError), (None, (TypeError, ValueError)), (0, ValueError)):
        with pytest.raises(error, match="clip"):
            ClippedGradientDescent(**given, clip=bad).release_plan(n_users=1000, n_features=2)
    for method in ("tracking", "iterated", "practical", "paper"):
        learner = WinsorizedGradientDescent(**given, method=method)
        with pytest.raises(TypeError, match="concentration"):
            learner.release_plan(n_users=1000, n_features=2)
        learner.set_params(concentration=0.1).release_plan(n_users=1000, n_features=2)


@pytest.mark.parametrize("m", [None, 1, 64])
def test_winsorized_descent_without_a_promise_has_noise_for_the_range(m: int | None) -> None:
    given: dict[str, Any] = {
        "epsilon": 1, "delta": 1e-6, "loss": LogisticLoss(), "constraint": L2Ball(5.0), "max_norm": 2.0,
        "target_bounds": (0, 1), "n_iterations": 4,
    }  # fmt: skip
    model = WinsorizedGradientDescent(**given, m=m)
    method = model._descent(model._problem(1000, 2), model._fixed_seed()).step.means.method
    assert method.predicted_error() > 2 * 2.0 * math.sqrt(2) / 1000
    promised = WinsorizedGradientDescent(**given, m=64, concentration=0.01)
    near = promised._descent(promised._problem(1000, 2), promised._fixed_seed()).step.means.method
    assert near.predicted_error() < method.predicted_error() / 4


@pytest.mark.parametrize(("n_users", "epsilon", "share"), [(2000, 10, 0.03), (5000, 1, 0.1)])
def test_marks_of_few_rows_do_not_leap(n_users: int, epsilon: float, share: float) -> None:
    """Slopes of 2, which were 4 to 17 where the mark counted more in gradients than in what whitens them."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.uniform(-1, 1, n_users), rng.random(n_users) < share])
        y = rng.random(n_users) < 1 / (1 + np.exp(0.5 - X @ [1, 2]))
        model = UserLevelLogisticRegression(
            epsilon=epsilon,
            delta=1e-6,
            classes=(False, True),
            feature_bounds=([-1, 0], [1, 1]),
            m=1,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            slope = model.fit(X, y, groups=np.arange(n_users)).coef_[0, 1]
        assert 1 < slope < 4


def test_rows_without_a_class_make_a_constant_model_that_says_so() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (2000, 2))
    model = UserLevelLogisticRegression(
        epsilon=4, delta=1e-6, classes=("a", "b"), feature_bounds=(0, 1), m=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(X, np.full(2000, "c"), groups=np.arange(2000))
    assert any("the model is a constant" in note for note in fitted.notes_)
    assert np.abs(fitted.coef_).max() < 1e-9
    assert not fitted.converged_


def test_users_without_rows_make_a_constant_model() -> None:
    """Nobody who is enrolled has a row: steps would follow noise to odds of e^100."""
    for seed in range(4):
        model = UserLevelLogisticRegression(
            epsilon=2, m=4, classes=(0, 1), feature_bounds=(-1, 1), enrolled=range(3000), random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(np.zeros((0, 2)), np.zeros(0), groups=np.zeros(0))
        assert len(model.notes_) == 1
        assert "the model is a constant" in model.notes_[0]
        assert np.abs(model.coef_).max() < 1e-9


def test_shares_of_labels_are_of_users() -> None:
    """One row of 3,000 users is of no class, and 1,000 rows of 300 others are: nine tenths of the users, each alike."""
    users = np.concatenate([np.arange(3000), np.repeat(np.arange(3000, 3300), 1000)])
    y = np.concatenate([np.full(3000, 7), np.arange(300_000) % 2])
    X = np.random.default_rng(0).uniform(-1, 1, size=(len(y), 1))
    model = UserLevelLogisticRegression(epsilon=2, m=1000, feature_bounds=(-1, 1), classes=(0, 1))
    _, said = drawn_once(model, X, y, users)
    (warning,) = [str(w.message) for w in said if w.category is LabelsOutsideClassesWarning]
    assert "in about 91 % of users' rows, each user counting alike" in warning


@pytest.mark.parametrize("steps", [100, 400])
def test_good_fits_with_steep_slopes_do_not_say_that_steps_moved(steps: int) -> None:
    rng = np.random.default_rng(21)
    for seed in range(4):
        X = rng.uniform(-1, 1, size=(12_000, 2))
        y = (rng.logistic(size=12_000) < 4 * X[:, 0]) * 1
        model = UserLevelLogisticRegression(
            epsilon=2, m=4, feature_bounds=(-1, 1), classes=(0, 1), n_iterations=steps, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, groups=np.repeat(np.arange(3000), 4))
        assert not any("still moved" in note for note in model.notes_)
        assert model.coef_[0, 0] == pytest.approx(4, abs=1.5)


def test_steps_that_are_too_few_are_told() -> None:
    rng = np.random.default_rng(22)
    X = rng.uniform(-1, 1, size=(60_000, 2))
    y = (rng.logistic(size=60_000) < 8 * X[:, 0]) * 1
    model, said = drawn_once(
        UserLevelLogisticRegression(epsilon=1, m=1, feature_bounds=(-1, 1), classes=(0, 1), n_iterations=10),
        X, y, np.arange(60_000),
    )  # fmt: skip
    assert model.coef_[0, 0] < 6
    assert any("still moved" in str(w.message) for w in said)


@pytest.mark.parametrize("bounds", [(1, 2), (-2, -1), (-1, 0), (0.5, 1)])
@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(width=0.5)], ids=str)
def test_bounds_of_targets_that_are_one_class(loss: Any, bounds: tuple[float, float]) -> None:
    """Labels {1, 2} are all above 0, and nothing is learned from them."""
    public: dict[str, Any] = {"loss": loss, "constraint": L2Ball(2.0), "max_norm": 1.0, "target_bounds": bounds}
    X, y, users = people(100, 1, 0.5, 0)
    for kind in (ClippedGradientDescent, WinsorizedGradientDescent, PhasedERM):
        with pytest.raises(ValueError, match="target_bounds must have 0 inside"):
            kind(epsilon=1, delta="1e-6", m=1, **public).fit(X, y + 1, groups=users)
