"""Proofs beside lower bounds: for the very problem that is planned no proof is below its bound, with any promise."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from userdp.cli import main
from userdp.exceptions import BudgetError
from userdp.planning import compare_methods, lower_bound, plan, sample_size, user_complexity
from userdp.planning.bounds import HARD_ANYWAY
from userdp.planning.lower_bounds import bound_of
from userdp.planning.problem import NotPlanned, Problem
from userdp.planning.tasks import ALL_TASKS, TASKS

Source = random.Random
COUNTS: dict[str, tuple[int, ...]] = {
    "n_items": (2, 10, 1000),
    "n_points": (64, 1000, 2**20),
    "n_hypotheses": (2, 8, 2**12, 2**30),
    "n_symbols": (2, 3, 8),
    "n_columns": (1, 3),
    "n_keys": (1, 3, 1000),
    "max_keys": (1, 2, 50),
    "vc_dimension": (1, 2, 8, 20),
    "queries": (1, 2),
    "intervals": (1, 2),
    "kinds": (1, 3),
    "n_records": (10, 100),
}
LENGTHS = ("max_norm", "radius", "user_std", "lipschitz", "smoothness", "mean_bound", "max_value", "target_bound")


def value(source: Source, name: str, m: int, made: dict[str, Any]) -> Any:
    """A value of any parameter of any task."""
    if name in COUNTS:
        return source.choice(COUNTS[name])
    if name in LENGTHS:
        return round(10 ** source.uniform(-2.5, 1.5), 4)
    if name == "max_total":
        return made.get("max_value", 1.0) * m * source.choice([1, 0.5, 0.05, 0.003])
    choices: dict[str, tuple[Any, ...]] = {
        "norm": ("l2", "max"),
        "neighbors": ("replace", "add-remove"),
        "homogeneous": (True, False),
        "tight_bounds": (True, False),
        "dimension": (1, 2, 7),
        "share": (0.5, 0.1, 0.01),
        "eta": (0, 0.1, 0.3),
        "kappa": (1.5, 4.0, 30.0),
        "query_variance": (0.01, 1.0),
        "item_epsilon": (0.1, 1),
        "item_delta": (0, "1e-9"),
    }
    return source.choice(choices[name])


def drawn(source: Source, task: str) -> Problem | None:
    """A problem of a task, with any of its promises; None where they contradict each other."""
    kind, m = TASKS[task], source.choice([1, 1, 4, 64, 4096])
    made: dict[str, Any] = {}
    for parameter in kind.parameters:
        if parameter.default is None and source.random() < 0.5:
            continue
        made[parameter.name] = value(source, parameter.name, m, made)
    scale = made.get("max_norm", 1.0) if task == "mean" else 1.0
    alpha = min(scale * 10 ** source.uniform(-2.5, -0.2), 0.99 * kind.largest_alpha)
    try:
        return kind.problem(
            m=m,
            epsilon=round(10 ** source.uniform(-1, 0.8), 3),
            delta=source.choice(["1e-6", 0, "0.01"]),
            alpha=alpha if kind.has_alpha else None,
            beta=None if kind.accuracy != "probability" else source.choice([None, 0.02, 0.3]),
            values=made,
        )
    except ValueError:
        return None


def proofs(problem: Problem) -> dict[str, int]:
    """What is proved for each method, before it is compared with anything."""
    found = {}
    for method in TASKS[problem.task].methods:
        if method.proved is not None and method.protects == "user":
            with suppress(NotPlanned, BudgetError):
                found[method.name] = max(2, method.proved(problem))
    return found


PROBLEMS = {"mean": 16, "sum": 25, "group_by": 8, "selection": 4, "threshold": 6, "quantile": 40}


@pytest.mark.parametrize("task", TASKS)
def test_no_proof_is_below_the_bound_of_the_same_problem(task: str) -> None:
    source, compared = random.Random(f"proofs of {task}"), 0
    for _ in range(PROBLEMS.get(task, 12)):
        problem = drawn(source, task)
        if problem is None:
            continue
        least = bound_of(problem)[0]
        for name, users in proofs(problem).items():
            assert least is None or users >= least, (name, users, least, problem)
            compared += least is not None
    assert compared or task in ("finite", "logistic-regression", "linear-regression")


@pytest.mark.parametrize("task", ["mean", "sum", "group_by", "pac"])
def test_a_number_that_a_promise_lowers_names_a_promise(task: str) -> None:
    """Without what is optional the number is larger, or there is none: then somebody has to vouch for something."""
    source, lowered = random.Random(f"promises of {task}"), 0
    optional = [each.name for each in TASKS[task].parameters if each.default is None or each.default is False]
    for _ in range({"mean": 12, "sum": 12, "group_by": 8, "pac": 60}.get(task, 40)):
        problem = drawn(source, task)
        if problem is None:
            continue
        numbers = proofs(problem)
        for name in optional:
            if problem[name] is None or problem[name] is False:
                continue
            bare = problem.at(**{name: False if isinstance(problem[name], bool) else None})
            try:
                TASKS[task].check(bare)
            except ValueError:
                continue
            without = proofs(bare)
            for method, users in numbers.items():
                if users < without.get(method, math.inf):
                    assert TASKS[task].method(method).promise(problem) != "nothing", (method, name, problem)
                    lowered += 1
    assert lowered > 3


def test_promises_that_are_made_change_the_bound_of_means() -> None:
    """As printed once: 142 people proved, and "no method can do with fewer than 9,801"."""
    given: dict[str, Any] = {"m": 1, "epsilon": 2, "alpha": 0.01}
    near = plan("mean", user_std=0.01, **given)
    assert near.best is not None
    assert near.best.n_users == 52
    assert near.least is not None
    assert near.least <= 52
    assert "within user_std" in near.least_for
    assert {row.needs for row in near.ways.rows} == {"user_std"}
    # Users at one point each: that few people are too few holds whatever is promised.
    anywhere = lower_bound("mean", **given)
    assert near.least == anywhere.terms["few users"]
    assert plan("mean", **given).least == anywhere.n_users == 9801
    # A promise that is none: users are never farther than 1 from their mean.
    assert plan("mean", user_std=1.5, **given).least == pytest.approx(9801, rel=1e-6)
    # Records may all be equal: more of them are no more users.
    several = [plan("mean", user_std=0.1, **(given | {"m": m})).least for m in (1, 16, 4096)]
    # (s / alpha - 1)^2, of the sampling of users at plus or minus s: Hodges and Lehmann.
    assert several == [several[0]] * 3
    assert several[0] is not None
    assert 81 <= several[0] <= 100


def test_kinds_are_a_promise_where_the_number_rests_on_them() -> None:
    asked: dict[str, Any] = {"m": 10**6, "epsilon": 4, "delta": "1e-3", "n_records": 10**5, "item_epsilon": "0.5"}
    row = compare_methods("finite", kinds=3, **asked)["DelStab, tight"]
    assert row.users is not None
    assert row.needs == "at most 3 distinct people"


@pytest.mark.parametrize("norm", ["l2", "max"])
def test_hard_users_keep_to_the_promise(norm: str) -> None:
    """In the box of every promise: the bound is no larger than that of a ball whose radius is the promise."""
    source = random.Random(norm)
    for _ in range(8):
        d, size, near = source.choice([1, 3, 50]), 10 ** source.uniform(-1, 1), 10 ** source.uniform(-2, 1.5)
        given: dict[str, Any] = {"m": 16, "epsilon": 1, "delta": "1e-6", "alpha": size * 0.02, "dimension": d}
        values = {"dimension": d, "max_norm": size, "norm": norm, "user_std": near}
        asked = {name: number for name, number in given.items() if name != "dimension"}
        least = bound_of(TASKS["mean"].problem(beta=None, values=values, **asked))[0] or 1
        cube = {"norm": "max", "max_norm": min(size, near)} if norm == "max" else {"max_norm": min(size, near)}
        wide = lower_bound("mean", **(given | {"m": 1} | cube))
        whole = lower_bound("mean", max_norm=size, norm=norm, **given)
        assert least <= max(wide.n_users or 1, int(whole.terms.get("few users", 1)))


def test_sums_are_bounded_in_units_of_what_a_user_may_add() -> None:
    """As printed once: 15 people proved, and a bound of 50."""
    given: dict[str, Any] = {"m": 16, "epsilon": 0.5, "alpha": 0.01, "max_value": 100}
    cut = plan("sum", max_total=5, **given)
    assert cut.best is not None
    assert (cut.best.n_users, cut.best.basis) == (15, "exact")
    # alpha of max_value is 0.2 of max_total; and 1/1600 of all that 16 records can be.
    for total, share in ((5, 0.2), (None, 0.01 / 16)):
        found = plan("sum", max_total=total, **given)
        least = lower_bound("sum", alpha=2 * share, beta="1/4", epsilon=0.5, neighbors="add-remove").n_users
        assert found.least is not None
        assert least is not None
        assert least * (1 - 1e-6) - 1 <= found.least <= least
    rows = {row.method: row.needs for row in cut.ways.rows}
    assert rows["laplace"] == "max_total, above which a user's total is cut"
    assert rows["group privacy"] == "totals of max_total at most, as single records are not cut"
    with pytest.raises(TypeError, match="needs a promise of how users are: totals of max_total at most"):
        user_complexity("sum", method="group privacy", max_total=5, **given)
    assert compare_methods("sum", **given)["group privacy"].needs == "nothing"


def test_one_record_is_not_as_near_as_the_mean_of_all() -> None:
    """16 records of plus or minus 1 have a mean within 1/4; one of them is a distance of 1 away."""
    given: dict[str, Any] = {"epsilon": 1, "alpha": 0.05, "method": "one record per person"}
    anywhere = user_complexity("mean", m=16, **given).n_users
    assert anywhere > 400  # (1 / 0.05)^2 for sampling alone
    assert user_complexity("mean", m=16, user_std=0.25, **given).proved.value == anywhere
    assert compare_methods("mean", m=16, epsilon=1, alpha=0.05, user_std=0.25)["one record per person"].needs == (
        "nothing"
    )
    one = compare_methods("mean", m=1, epsilon=1, alpha=0.05, user_std=0.25)["one record per person"]
    assert one.users is not None
    assert one.users < anywhere
    assert one.needs == "user_std"


@pytest.mark.parametrize(
    ("task", "given", "promise"),
    [
        ("logistic-regression", {"m": 4, "delta": "1e-6", "alpha": 0.02}, {"tight_bounds": True}),
        ("pac", {"m": 4096, "delta": "1e-6", "alpha": 0.1, "n_hypotheses": 2**30}, {"queries": 1, "intervals": 1}),
    ],
)
def test_where_a_promise_breaks_the_hard_distributions_none_is_known(
    task: str, given: dict[str, Any], promise: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(task, epsilon=0.5, **given).least is not None
    made = plan(task, epsilon=0.5, **given, **promise)
    name = next(iter(promise))
    assert made.least is None
    assert f"does not hold under {name}={promise[name]}, a promise" in made.no_bound
    assert "a promise" in compare_methods(task, epsilon=0.5, **given, **promise).bound
    words = [f"{key}={value}".replace("True", "yes") for key, value in ({**given, **promise}).items()]
    options = [word for word in words if word.split("=")[0] not in ("m", "delta", "alpha")]
    asked = ["--m", str(given["m"]), "--epsilon", "0.5", "--delta", "1e-6", "--alpha", str(given["alpha"])]
    assert main(["plan", task, *asked, *options]) == 0
    assert "no method can do with fewer than: not known (the bound" in capsys.readouterr().out


def test_parameters_that_no_bound_knows_are_decided_one_by_one() -> None:
    """A new parameter of a task has to be looked at: what it promises may break what is hard."""
    known = {each.name for task in ALL_TASKS.values() if task.bound for each in task.bound.parameters} | {"m"}
    beside = {
        each.name
        for task in TASKS.values()
        for each in task.parameters
        if (each.called or each.name) not in known and task.name not in ("finite", "sum", "group_by")
    }
    assert beside == {*HARD_ANYWAY, "user_std", "tight_bounds", "queries", "intervals", "query_variance"}


def test_classes_have_hypotheses_for_their_dimension() -> None:
    given: dict[str, Any] = {"m": 1, "epsilon": 1, "alpha": 0.1, "n_hypotheses": 8}
    assert plan("agnostic", vc_dimension=3, **given).least is not None
    with pytest.raises(ValueError, match=r"vc_dimension must be at most log2 n_hypotheses, here 3, .*; got 20"):
        plan("agnostic", vc_dimension=20, **given)


def test_a_proof_that_contradicts_a_bound_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_size, "bound_of", lambda problem: (5000, "", "all"))
    table = compare_methods("mean", m=16, epsilon=1, alpha=0.01)
    assert table["laplace"].users is not None
    assert table["laplace"].users > 5000
    monkeypatch.setattr(sample_size, "bound_of", lambda problem: (50000, "", "all"))
    table = compare_methods("mean", m=16, epsilon=1, alpha=0.01)
    assert table["laplace"].proved is None
    assert "contradicts the bound of 50,000: please report this" in table["laplace"].note


@pytest.mark.parametrize(
    ("users", "words"), [(100, "just as many"), (101, "1 more"), (104, "4 more"), (106, "1.06 times as many")]
)
def test_words_for_a_number_beside_the_bound(users: int, words: str) -> None:
    made = plan("mean", m=16, epsilon=1, alpha=0.05)
    assert made.best is not None
    assert f"needs {words}." in replace(made, least=100, best=replace(made.best, n_users=users)).to_html()
