"""Every number that the planner prints says what it is, and is that: proved, exact, or simulated with its range."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benches.reproduce.simulation import failure, points, stream
from benches.reproduce.simulations import SIMULATIONS

from userdp.cli import main
from userdp.mechanisms import PurePrivateMode, UnboundedDiscreteLaplace
from userdp.planning import compare_methods, lower_bound, plan, rate, regime_map, user_complexity
from userdp.planning.tasks import ALL_TASKS, TASKS

KINDS = ("proved", "exact", "simulated", "extrapolated")
GIVEN: dict[str, dict[str, Any]] = {
    "mean": {"alpha": 0.1, "homogeneous": True, "n_users": 300},
    "selection": {"alpha": 0.5, "n_items": 8},
    "finite": {"n_records": 100, "item_epsilon": "0.5"},
    "threshold": {"alpha": 0.2, "n_points": 64},
    "pac": {"alpha": 0.2, "n_hypotheses": 8},
    "agnostic": {"alpha": 0.2, "n_hypotheses": 8},
    "sum": {"alpha": 0.1, "n_users": 100},
    "group_by": {"alpha": 0.1, "n_keys": 3},
    "quantile": {"alpha": 0.1, "n_points": 16, "n_users": 500},
    "discrete": {"alpha": 0.2, "n_symbols": 3},
    "product": {"alpha": 0.2, "n_symbols": 2, "n_columns": 2},
    "gaussian-mean": {"alpha": 0.2, "mean_bound": 4.0},
    "gaussian": {"alpha": 0.2, "mean_bound": 4.0},
    "hypothesis-selection": {"alpha": 0.2, "n_hypotheses": 4},
    "logistic-regression": {"alpha": 0.05, "dimension": 2},
    "linear-regression": {"alpha": 0.05, "dimension": 2},
    "sco": {"alpha": 0.5, "dimension": 2},
}
COMMON: dict[str, Any] = {"m": 4, "epsilon": 1, "delta": "1e-6"}


def said(text: str) -> list[str]:
    """The kinds that a text names."""
    return re.findall("|".join(KINDS), text)


def unlabeled(code: dict[str, Any]) -> list[str]:
    """The numbers of a plan's JSON without a kind; inputs have none."""
    found = []

    def need(number: Any, kind: str, where: str) -> None:
        if number is not None and not said(kind):
            found.append(where)

    need(code["needed"], code["basis"] or "", "needed")
    need(code["reached"], code["reached_kind"], "reached")
    need(code["lower_bound"], code["lower_bound_kind"], "lower_bound")
    for way in code["ways"]:
        need(way["users"], way["note"], way["method"])
        # These two are called what they are; how far a simulation may be off stands in the note of what is taken.
        assert way["calibrated"] is None or way["users"] is not None
    for change in code["halves"]:
        need(change["users"], change["kind"], change["what"])
    for name, line in code["by_records"].items():
        for _, users, kind in line:
            need(users, kind, name)
    known = {"schema_version", "task", "question", "measure", "sizes", "n_users", "enough", "reached", "reached_kind"}
    known |= {"needed", "method", "basis", "lower_bound", "lower_bound_kind", "ways", "halves", "by_records"}
    assert set(code) == known, "a new entry: which kind is it?"
    return found


def words(task: str) -> list[str]:
    """The same question on the command line."""
    given = {**COMMON, **GIVEN[task]}
    options = {name: given.pop(name) for name in ("m", "epsilon", "delta", "alpha", "n_users") if name in given}
    asked = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return ["plan", task, *asked, *(f"{name}={value}" for name, value in given.items())]


def test_every_task_is_here() -> None:
    assert set(GIVEN) == set(TASKS)


@pytest.mark.parametrize("task", GIVEN)
def test_every_number_of_a_plan_says_what_it_is(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*words(task), "--json"])
    code = json.loads(capsys.readouterr().out)
    assert unlabeled(code) == []
    made = plan(task, **COMMON, **GIVEN[task])
    assert made.best is not None
    for row in made._rows():  # of a frame
        if row["users"] is not None:
            kind = said(row["note"])[0]
            assert row["note"].startswith(kind)
            assert kind in ("proved", "exact") or " from " in row["note"]
    # Text: a line with a number that was found.
    main(words(task))
    lines = capsys.readouterr().out.splitlines()
    ways = {row.method for row in made.ways.rows if row.users is not None}
    for line in lines:
        found = re.match("people needed: |accuracy that|no method can do with fewer than: [0-9]", line)
        way = any(re.match(rf"  {re.escape(name)}  +[0-9]", line) for name in ways)
        halved = line.startswith("  ") and any(
            line.strip() == change.text and change.n_users for change in made.changes
        )
        if found or way or halved:
            assert said(line), line
    # A page.
    page = made.to_html()
    for change in made.changes:
        assert change.n_users is None or change.kind in KINDS
    assert said(page)
    best = made.best
    for figure in (best.proved, best.calibrated):
        if figure.value is None:
            continue
        assert figure.kind in KINDS
        assert (figure.range is not None) is (figure.kind in ("simulated", "extrapolated"))
        if figure.range is not None:
            assert figure.range[0] <= figure.value <= figure.range[1]
            assert best.basis in ("proved", "exact") or best.n_users >= figure.range[1]
    assert best._rows()[0]["basis"] in KINDS


def test_a_number_without_its_kind_is_found() -> None:
    code = {
        "needed": 3,
        "basis": "proved",
        "reached": None,
        "reached_kind": "",
        "lower_bound": 2,
        "lower_bound_kind": "proved",
        "ways": [{"method": "a", "users": 3, "calibrated": None, "note": ""}],
        "halves": [{"what": "m", "users": 1, "kind": ""}],
        "by_records": {"a": [[1, 3, "proved"], [3, 2, ""]]},
    }
    names = ("schema_version", "task", "question", "measure", "sizes", "n_users", "enough", "method")
    assert unlabeled(code | dict.fromkeys(names)) == ["a", "m", "a"]


def test_errors_bounds_maps_and_rates_say_what_they_are() -> None:
    for task, given in (("mean", {"dimension": 3}), ("group_by", {"n_keys": 4}), ("descent", {})):
        asked = COMMON | ({} if task != "group_by" else {"m": None})
        for row in compare_methods(task, n_users=500, **asked, **given).rows:
            assert row.noise is None or said(row.note), (task, row.method)
            assert row.expected is None or "simulated" in row.note
    assert {task for task, each in ALL_TASKS.items() if each.errors is not None} == {"mean", "group_by", "descent"}
    found = lower_bound("sco", n_users=10**18, epsilon="1e-9", delta=0, m=10**9, sigma=0.01, dimension=10**6)
    assert set(found.kinds.values()) <= {"proved", "cited"}
    assert all(row["kind"] == found.kinds[row["term"]] for row in found._rows())
    assert "proved" in lower_bound("count", alpha=0.01, beta=0.1, epsilon=1).summary()
    regime = regime_map("selection", m=(1, 16), epsilon=1, alpha=0.5, n_items=8)
    assert all(row["kind"] in KINDS for row in regime._rows() if row["users"] is not None)
    assert rate("mean", m=4, epsilon=1, delta="1e-6", alpha=0.1, dimension=1, max_norm=1).label == "rate: shape only"


# --- exact numbers are exact


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize(("items", "epsilon", "alpha"), [(2, 1, 0.8), (3, "1/2", 0.9), (20, 2, 0.5), (5, 1, 1 - 1e-9)])
def test_exact_selections_miss_with_one_user_fewer(items: int, epsilon: Any, alpha: float, mechanism: Any) -> None:
    """By the stated distribution of the release, in fractions; all who do not have the common item share another."""
    found = user_complexity(
        "selection", method=f"central, {mechanism}", m=1, epsilon=epsilon, alpha=alpha, n_items=items
    )
    assert (found.proved.kind, found.basis) == ("exact", "exact")
    share = (1 + Fraction(alpha)) / 2
    selection = PurePrivateMode(epsilon=epsilon, n_items=items, mechanism=mechanism)
    failures = []
    for n in (int(found.proved.value or 0), int(found.proved.value or 0) - 1):
        missed = Fraction(0)
        for k in range(n + 1):
            # The item that many ties are decided against: the last one.
            right = selection.probability(1, {1: k, 0: n - k})
            missed += math.comb(n, k) * share**k * (1 - share) ** (n - k) * (1 - Fraction(right))
        failures.append(missed)
    assert failures[0] <= Fraction(0.1) < failures[1]


@pytest.mark.parametrize(("epsilon", "alpha"), list(itertools.product(("1/4", 1, 3), (0.3, 0.02))))
def test_exact_counts_are_too_noisy_with_one_user_fewer(epsilon: Any, alpha: float) -> None:
    found = user_complexity("group_by", method="laplace", m=1, epsilon=epsilon, alpha=alpha, n_keys=1)
    assert found.proved.kind == "exact"
    noise = UnboundedDiscreteLaplace(epsilon=epsilon, sensitivity=1)
    square = 2 * sum(z**2 * float(noise.probability(z).upper) for z in range(1, 600))
    n = int(found.proved.value or 0)
    assert math.sqrt(square) / n <= alpha * (1 + 1e-9)
    assert n == 1 or math.sqrt(square) / (n - 1) > alpha * (1 - 1e-9)


# --- proved numbers are enough


@pytest.mark.parametrize(("epsilon", "alpha"), list(itertools.product((0.5, 1, 4), (0.25, 0.6, 0.9, 1.3))))
def test_proved_means_keep_the_accuracy_at_the_border_too(epsilon: float, alpha: float) -> None:
    """One column, one record: users at two points anywhere in [-1, 1], Laplace noise, and a release cut at 1."""
    for method in ("laplace", "per-user clipping", "one record per person"):
        found = user_complexity("mean", method=method, m=1, epsilon=epsilon, alpha=alpha)
        n = int(found.proved.value or 0)
        scale = 2 / (n * epsilon)
        z = np.concatenate([-np.geomspace(60, 1e-6, 4000), np.geomspace(1e-6, 60, 4000)]) * scale
        mass = np.diff(np.where(z < 0, np.exp(np.minimum(z, 0) / scale) / 2, 1 - np.exp(-np.maximum(z, 0) / scale) / 2))
        at = (z[1:] + z[:-1]) / 2
        worst = 0.0
        for low, high in ((-1, 1), (-1, -1), (0, 1), (0.5, 1), (-0.3, 1)):
            for p in (0.0, 0.05, 0.2, 0.5):
                truth, square = p * low + (1 - p) * high, 0.0
                for k in range(n + 1):
                    mean = (k * low + (n - k) * high) / n
                    chance = math.comb(n, k) * p**k * (1 - p) ** (n - k)
                    square += chance * float(mass @ (np.clip(mean + at, -1, 1) - truth) ** 2)
                worst = max(worst, square)
        assert math.sqrt(worst) <= alpha * 1.002, (method, n)


def test_rounding_counts_in_what_is_proved() -> None:
    """At a huge epsilon there is nearly no noise, and users are still rounded to a grid."""
    row = compare_methods("mean", n_users=1000, m=1, epsilon=1e8)["laplace"]
    assert row.noise is not None
    assert row.worst_error is not None
    assert row.noise < 1e-10 < 1e-9 < row.worst_error


# --- ranges of simulations cover what other seeds need

FAST = {
    "mean gaussian",
    "mean per-user clipping",
    "quantile weights",
    "quantile group privacy",
    "discrete per-user clipping",
    "gaussian-mean per-user clipping",
    "selection local, subset selection",
    "selection central, threshold",
    "selection central, permute-and-flip",
    "pac realizable",
    "pac one record per person",
}


@pytest.mark.parametrize("name", sorted(FAST))
def test_ranges_cover_the_needs_of_other_seeds(name: str) -> None:
    """At a point that nobody fitted or looked at: the high end is enough, and the low end is no more than is needed."""
    (simulation,) = (each for each in SIMULATIONS if f"{each.task} {each.method}" == name)
    (point,) = points(simulation, "coverage", 1)
    found = user_complexity(simulation.task, method=simulation.method, **point).calibrated
    assert found.range is not None
    low, high = found.range
    runs = 200
    ratio, error = failure(simulation, point, high, runs, stream(name, "coverage, high"))
    assert ratio <= 1 + 4 * error
    if low > 1:
        ratio, error = failure(simulation, point, low, runs, stream(name, "coverage, low"))
        assert ratio >= 1 - 4 * max(error, 0.05)
