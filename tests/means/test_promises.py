"""Hints and promises: false alarms, plans where a promise is true, hints that are wrong, warnings."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import _core
from userdp.exceptions import TooFewUsersWarning
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.means import combined as module
from userdp.means.combined import CombinedMean, false_alarm, share_of_test
from userdp.means.iterated import IteratedMean
from userdp.means.methods import choose, whole_range
from userdp.means.problem import MeanProblem
from userdp.mechanisms.composed import run
from userdp.optimization import FiniteMinimizer
from userdp.users import GivenVectors

F = Fraction
ALARMS = {1: 0.1357, 2: 0.1007, 4: 0.0629, 8: 0.0292, 16: 0.0080, 32: 0.0008}


def problem(n: int, d: int, spread: float | None, **more: Any) -> MeanProblem:
    given: Any = {"epsilon": 1, "delta": F(1, 10**6), "norm": "max", "max_norm": 1.0, "beta": 0.01} | more
    return MeanProblem(n_users=n, dimension=d, concentration=spread, **given)


def upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def alarm(d: int) -> float:
    """Noise of A / (2 sqrt(d f)) above .5 A and .47 A, with f of .07 and .1 of 64 / d, at most .12."""
    shares = [min(part * 64 / d, 0.12) for part in (0.07, 0.10)]
    return math.prod(upper_tail(2 * tau * math.sqrt(d * share)) for tau, share in zip((0.5, 0.47), shares, strict=True))


def test_false_alarms() -> None:
    for d, chance in ALARMS.items():
        assert false_alarm(d) == pytest.approx(alarm(d), rel=1e-9)
        assert abs(alarm(d) - chance) < 5e-5
    assert max(share_of_test(number, d) for number in (0, 1) for d in range(1, 200)) == F(12, 100)


def test_alarms_are_those_of_the_noise_that_is_drawn() -> None:
    """Tests of users at one point: 2,000 draws of each, wrong by chance with less than 1e-6."""
    method, source = CombinedMean.of(problem(4000, 4, 0.1)), _core.Source(3)
    users = GivenVectors(np.zeros((4000, 4)), np.ones(4000, dtype=bool))
    for number, tau in enumerate((0.5, 0.47)):
        look = method.look(number, np.zeros(4), 0.2)
        assert look.statistic(users) == 0
        refused = sum(not look.passed((source_draw(look, source),)) for _ in range(2000)) / 2000
        wanted = upper_tail(2 * tau * math.sqrt(4 * 0.12))
        assert abs(refused - wanted) < 5 * math.sqrt(wanted / 2000)


def source_draw(look: Any, source: Any) -> int:
    return int(look.noise._draw(source, 0))


# --- plans under a promise that is true


def to_expect(method: Any, d: int) -> float:
    """The error of users as near as was said, by how the method ends."""
    if not isinstance(method, CombinedMean):
        return float(method.predicted_error())
    hinted = replace(method, hint=module._hint(method.problem))
    whole = 2 * math.sqrt(d / (2 * float(method.noise.rho))) * method.problem.ball / method.problem.n_users
    return math.sqrt((1 - alarm(d)) * hinted.planned[0] ** 2 + alarm(d) * whole**2)


def test_a_true_promise_never_costs() -> None:
    """Of 300 random problems: the error to expect is never above that of the same problem without a promise.

    Nor is what clipping may do, which the promise bounds, worse than noise for the whole range.
    """
    rng, names = np.random.default_rng(5), dict[str, int]()
    for _ in range(300):
        d, n = int(2 ** rng.uniform(0, 8)), int(10 ** rng.uniform(2, 5))
        spread = math.sqrt(d) * float(10 ** rng.uniform(-3, 0))
        promised = problem(
            n,
            d,
            spread,
            epsilon=F(round(2 ** rng.uniform(-2, 3) * 64), 64),
            delta=F(1, 10**6) * bool(rng.random() < 0.8),
            promise=["at most", "independent"][int(rng.integers(2))],
        )
        chosen, without = choose(promised), choose(replace(promised, promise="none"))
        assert to_expect(chosen, d) <= to_expect(without, d) * (1 + 1e-9)
        if isinstance(chosen, IteratedMean) and chosen.name == "iterated":
            assert chosen.accuracy().worst(d) <= whole_range(promised).accuracy().worst(d) * (1 + 1e-9)
        names[chosen.name] = names.get(chosen.name, 0) + 1
    assert {"iterated", "tested", "laplace", "gaussian"} <= set(names)
    assert min(names.values()) >= 10


@pytest.mark.parametrize(
    ("promise", "measured"),
    [({"user_std": 0.02}, 0.00031), ({"user_std": 0.01}, 0.000094), ({"homogeneous": True, "m": 100}, 0.00042)],
)
def test_one_column_of_2000_users(promise: Any, measured: float) -> None:
    """Beside .00141 for the whole range; `measured` is of 80 runs elsewhere."""
    made = {}
    for objective in ("expected", "worst"):
        learner = WinsorizedMean(epsilon="1/2", bounds=(0, 1), objective=objective, **promise)
        given, _ = learner._problem(2000, np.array([0.5]))
        made[objective] = choose(given)
    assert made["expected"].name == "iterated"
    assert made["expected"].predicted_error() == pytest.approx(measured, rel=0.25)
    assert made["expected"].accuracy().worst() <= 0.001415
    assert made["worst"].accuracy().worst() <= made["expected"].accuracy().worst()
    assert made["worst"].predicted_error() > 1.1 * made["expected"].predicted_error()


# --- hints that are wrong


def test_a_hint_that_predicts_no_gain_is_forgotten() -> None:
    for m in (1, 2):
        method = CombinedMean.of(problem(10**4, 64, 8 / math.sqrt(m)))
        assert method.hint is None
        assert method.worth_it
    assert CombinedMean.of(problem(10**4, 64, 0.5)).hint == 0.5


def test_few_rows_are_no_reason_for_noise_in_the_whole_range() -> None:
    """10 fits of users who are alike, with two rows each, are within a half of the error of no clipping, all ten."""
    rng, source, n, d = np.random.default_rng(2), _core.Source(2), 10**4, 64
    method = choose(problem(n, d, 8 / math.sqrt(2), promise="none"))
    whole = whole_range(problem(n, d, None)).predicted_error()
    for _ in range(10):
        users = np.clip(0.3 + 0.02 * rng.normal(size=(n, d)), -1, 1)
        outcome = run(method.program(GivenVectors(users, np.ones(n, dtype=bool))), source)
        assert np.linalg.norm(method.mean(outcome) - users.mean(axis=0)) < whole / 2


def test_a_hint_that_is_too_large_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n, d = np.random.default_rng(4), 10**4, 64
    users = GivenVectors(0.02 * rng.normal(size=(n, d)), np.ones(n, dtype=bool))
    method = CombinedMean.of(problem(n, d, 1.0))
    assert method.hint == 1.0
    radii = []
    for lowest in (module.LOWEST_HINT, 1.0):
        monkeypatch.setattr(module, "LOWEST_HINT", lowest)
        ball = method.clipped_to(run(method.program(users), _core.Source(4)))
        assert ball is not None
        radii.append(ball[1])
    assert radii[0] < 0.5 * radii[1]


# --- what is optional, and what is warned of


def test_m_is_a_hint() -> None:
    X, users = np.full((400, 2), 0.5), np.arange(400) // 2
    for m in (None, 2):
        fitted = WinsorizedMean(epsilon=4, bounds=(0, 1), m=m).fit(X, groups=users)
        assert (fitted.unit_, fitted.n_users_) == ("user", 200)
    with pytest.raises(ValueError, match=r"^m, the number of rows of a user that homogeneous=True is about, must"):
        WinsorizedMean(epsilon=4, bounds=(0, 1), homogeneous=True).fit(X, groups=users)
    with pytest.raises(ValueError, match=r"^bounds or max_norm, .*; m, the number of rows .* must be given"):
        WinsorizedMean(epsilon=4, homogeneous=True).fit(X, groups=users)


def test_noise_in_all_columns_together_is_warned_of() -> None:
    """Of a vector in a ball, its length counts: a tenth of the norm in each of 64 columns is .8 of it.

    With more users the tests are paid for, whose fallback has a little more noise.
    """
    for learner in (
        WinsorizedMean(epsilon=1, delta="1e-6", max_norm=1),
        WinsorizedQueries(epsilon=1, delta="1e-6", max_norm=1, dimension=64, n_queries=1),
    ):
        (warning,) = learner.release_plan(n_users=500, n_features=64).warnings
        needed = int(warning.split("about ")[1].split(" users")[0].replace(",", ""))
        noise = float(warning.split("noise of ")[1].split(" ")[0])
        assert noise == pytest.approx(needed / 5000, rel=0.05)
        assert 0.1 < noise < 1
        assert "times max_norm" in warning
        assert learner.release_plan(n_users=2 * needed, n_features=64).warnings == ()
    (warning,) = WinsorizedMean(epsilon="1/10", bounds=(0, 1)).release_plan(n_users=100, n_features=1).warnings
    assert "times half the range" in warning
    with pytest.warns(TooFewUsersWarning, match=r"times max_norm|is noise"):
        WinsorizedQueries(epsilon=1, max_norm=1, dimension=64, n_queries=1).open(
            np.zeros((50, 1)), groups=np.arange(50)
        ).close()


def test_candidates_of_too_few_users_are_warned_of() -> None:
    """60 users and 50 candidates need 30 ln(5000) = 256."""
    learner = FiniteMinimizer(epsilon=1, loss_bounds=(0, 1), alpha=0.05)
    (warning,) = learner.release_plan(n_users=60, n_features=50).warnings
    assert "about 256 users" in warning
    assert learner.release_plan(n_users=256, n_features=50).warnings == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FiniteMinimizer(epsilon=1, loss_bounds=(0, 1), alpha=0.5).fit(np.zeros((300, 2)), groups=np.arange(300))
