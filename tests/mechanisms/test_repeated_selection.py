"""The best of a hidden number of private runs: its exact distribution, what it costs, and what a cap would cost."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import repeated_selection as oracle
from support.drawing import assert_follows, follows
from userdp import InsecureRandomnessWarning
from userdp.exceptions import BudgetError
from userdp.mechanisms import Categorical, DiscreteLaplace, Pmf, PrivateBestOf

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "mean_erm_sco" / "optimization.json").read_text())["cases"]

P = [F(1, 10), F(3, 10), F(1, 5), F(2, 5)]


def selection(gamma: Any, most: int | None = None, **options: Any) -> PrivateBestOf:
    return PrivateBestOf(Categorical(weights=P), stopping_probability=gamma, most_runs=most, **options)


def distribution(one_run: list[Fraction], gamma: Fraction, most: int | None = None) -> list[Fraction]:
    return selection(gamma, most).pmf_from(Pmf.from_weights(one_run)).fractions()


def test_known_pmf() -> None:
    (case,) = [case for case in CASES if case["name"] == "repeated_selection"]
    one_run = [F(mass) for mass in case["input"]["best_to_worst"]]
    got = distribution(one_run, F(case["input"]["stopping_probability"]))
    assert got == [F(mass) for mass in case["expected"]]


@pytest.mark.parametrize("gamma", [F(1, 2), F(2, 3), F(1)])
def test_closed_form_is_the_limit_of_the_sum_over_runs(gamma: Fraction) -> None:
    exact, most = distribution(P, gamma), 120
    truncated = oracle.least_outcome(P, oracle.geometric(gamma, most))
    assert sum(abs(a - b) for a, b in zip(exact, truncated, strict=True)) <= 4 * (1 - gamma) ** most
    assert sum(exact) == 1


@pytest.mark.parametrize("gamma", [F(1, 2), F(1, 7), F(1)])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_truncated_pmf_is_exact(gamma: Fraction, most: int) -> None:
    runs = oracle.geometric(gamma, most)
    assert distribution(P, gamma, most) == oracle.least_outcome(P, runs) == oracle.by_listing(P, runs)


def test_outcomes_are_sorted_and_zeros_stay() -> None:
    best = selection("1/3").pmf_from(Pmf(((2, 0), (1, 5), (1, 4)), (1, 0, 3)))
    assert best.outputs == ((1, 4), (1, 5), (2, 0))
    assert best.fractions()[1] == 0 < best.fractions()[2]


# --- privacy


@pytest.mark.parametrize("most", [None, 1, 4, 30])
def test_three_times_the_loss_of_one_run(most: int | None) -> None:
    ratio, worst = F(2), F(1)
    for p, q in oracle.private_pairs(3, 10, ratio):
        for gamma in (F(1, 2), F(1, 30)):
            worst = max(worst, oracle.largest_ratio(distribution(p, gamma, most), distribution(q, gamma, most)))
    print(f"most_runs={most}: worst loss {math.log(worst) / math.log(2):.3f} epsilon")
    assert worst <= ratio**3


def test_three_is_tight() -> None:
    ratio, gamma, q, tiny = F(2), F(1, 10**7), F(1, 10**3), F(1, 10**6)
    p, other = [q, tiny, 1 - q - tiny], [q / ratio, tiny * ratio, 1 - q / ratio - tiny * ratio]
    assert oracle.largest_ratio(p, other) == ratio
    loss = math.log(oracle.largest_ratio(distribution(p, gamma), distribution(other, gamma))) / math.log(2)
    print(f"loss {loss:.4f} epsilon")
    assert 2.9 < loss <= 3
    # Drawing K again until it is at most N keeps nearly all of it.
    loss = math.log(
        oracle.largest_ratio(distribution(p, F(1, 3000), 8000), distribution(other, F(1, 3000), 8000))
    ) / math.log(2)
    print(f"loss {loss:.4f} epsilon with most_runs")
    assert 2 < loss <= 3


def test_a_cap_in_place_of_drawing_again_would_cost_more() -> None:
    ratio, gamma, most = F(2), F(1, 10**9), 10
    p, q = [F(1, 3), F(2, 3)], [F(2, 3), F(1, 3)]
    with_cap, again = (
        oracle.largest_ratio(oracle.least_outcome(p, runs), oracle.least_outcome(q, runs))
        for runs in (oracle.capped(gamma, most), oracle.geometric(gamma, most))
    )
    print(
        f"a cap loses {math.log(with_cap) / math.log(2):.2f} epsilon, drawing again {math.log(again) / math.log(2):.2f}"
    )
    assert with_cap > ratio**8 > ratio**3 >= again


def test_the_number_of_runs_must_be_secret() -> None:
    # The pair of K and the outcome loses K epsilon: at K = 5 the worst outcome has probability p ** 5.
    p, q = [F(1, 3), F(2, 3)], [F(2, 3), F(1, 3)]
    assert (p[1] / q[1]) ** 5 == 2**5 > 2**3


# --- drawing


@pytest.mark.statistical
@pytest.mark.parametrize(("gamma", "most", "hidden"), [("1/2", None, False), ("1/4", 6, False), ("1/4", 6, True)])
def test_draws_follow_the_pmf(gamma: str, most: int | None, hidden: bool) -> None:
    mechanism = selection(gamma, most, hide_time=hidden)
    from userdp import _core

    source = _core.Source(7)
    draws = np.bincount([mechanism._draw(source) for _ in range(100_000)], minlength=4).tolist()
    assert_follows(draws, mechanism.pmf().fractions())
    # One run less, or the distribution without most_runs, would be noticed.
    assert not follows(draws, P)
    assert not follows(draws, selection("1/8", most).pmf().fractions())


def test_hidden_time_makes_all_runs() -> None:
    class Counting:
        runs = 0

        def _draw(self, source: Any) -> int:
            self.runs += 1
            return 0

        def pmf(self) -> Pmf:
            return Pmf((0,), (1,))

    for hidden, expected in ((True, {50}), (False, set(range(1, 51)))):
        numbers = set()
        for _ in range(20):
            one = Counting()
            PrivateBestOf(one, stopping_probability="1/2", most_runs=50, hide_time=hidden).sample()
            numbers.add(one.runs)
        assert numbers <= expected


def test_nothing_about_the_runs_is_kept() -> None:
    mechanism = selection("1/100", 1000)
    before = dict(vars(mechanism))
    mechanism.sample()
    assert vars(mechanism) == before
    assert pickle.loads(pickle.dumps(mechanism)).pmf() == mechanism.pmf()


def test_arguments_reach_the_mechanism() -> None:
    noisy = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 6))
    best = PrivateBestOf(noisy, stopping_probability="1/4")
    assert best.pmf(2).outputs == tuple(range(7))
    assert best.pmf(2) != best.pmf(3)
    with pytest.warns(InsecureRandomnessWarning):
        assert best.sample(3, random_state=1) in range(7)


# --- bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stopping_probability": 0}, ValueError, "stopping_probability"),
        ({"stopping_probability": 1.5}, ValueError, "stopping_probability"),
        ({"stopping_probability": float("nan")}, ValueError, "stopping_probability"),
        ({"stopping_probability": None}, TypeError, "stopping_probability"),
        ({"most_runs": 0}, ValueError, "most_runs"),
        ({"most_runs": 2.0}, TypeError, "most_runs"),
        ({"hide_time": True}, ValueError, "most_runs"),
        ({"hide_time": 1}, TypeError, "hide_time"),
    ],
)
def test_bad_parameters(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PrivateBestOf(Categorical(weights=P), **{"stopping_probability": "1/2", **options})


def test_long_pmfs_are_refused() -> None:
    with pytest.raises(BudgetError, match="bits"):
        selection("1/3", 2**40).pmf()
