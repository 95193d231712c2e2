"""Optimal mechanisms against an exact simplex without symmetries, closed forms, cases of a reference, and audits."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("highspy")

from oracle import optimal as oracle
from userdp.audit import audit_user_level
from userdp.exact import LogRatio
from userdp.exceptions import BudgetError
from userdp.optimal import OptimalMechanism, OptimalSumMechanism, optimal_mechanism, optimal_sum_mechanism
from userdp.optimal import worlds as worlds_module
from userdp.optimal.certified import read_level, solved
from userdp.optimal.worlds import SelectionWorld
from userdp.report import OptimalityCertificate
from userdp.testing import assert_user_private

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "optimal_cases.json").read_text())["cases"]
OPTIMA = [case for case in CASES if case["kind"] == "optimum"]


def log(ratio: Any) -> LogRatio:
    exact = F(ratio)
    return LogRatio(exact.numerator, exact.denominator)


def selection(n: int, k: int, epsilon: Any, delta: Any = 0, loss: str = "regret") -> OptimalityCertificate:
    return solved(SelectionWorld(n, k, loss), read_level(epsilon), F(delta), None, 10**6)


def wrong(dataset: Any, output: Any) -> int:
    return int(dataset[0][0] != output)


def distance(dataset: Any, output: int) -> int:
    return abs(sum(user[0] for user in dataset) - output)


def answer_of(given: dict[str, Any]) -> OptimalityCertificate:
    """The optimum of a case, by the public call that it is about."""
    epsilon, delta = log(given["ratio"]), F(given.get("delta", 0))
    if given["world"] == "plurality":
        loss = {"regret": "regret", "zero-one": "error"}[given.get("loss", "regret")]
        return selection(given["n"], given["k"], epsilon, delta, loss)
    if given["world"] == "local":
        items = range(given["k"])
        return optimal_mechanism(wrong, universe=items, n_users=1, epsilon=epsilon, delta=delta).certificate
    n, prior = given["n"], [F(weight) for weight in given.get("prior", ())]
    return optimal_mechanism(
        distance,
        universe=(0, 1),
        outputs=range(n + 1),
        n_users=n,
        epsilon=epsilon,
        objective="bayes" if prior else "worst",
        prior=(lambda dataset: prior[sum(user[0] for user in dataset)]) if prior else None,
    ).certificate


@pytest.mark.parametrize("case", OPTIMA, ids=lambda case: case["id"])
def test_cases(case: dict[str, Any]) -> None:
    certificate = answer_of(case["input"])
    assert certificate.value == certificate.lower_bound == F(case["expect"]["value"])
    assert certificate.verify().finding == "established"
    if case["input"]["world"] == "plurality":
        assert len(certificate.table) == case["expect"]["variables"]
        assert len(certificate.mu or ()) == case["expect"]["states"]


def test_a_sum_is_not_always_enough() -> None:
    """Two users with 0 to 4, and a loss that depends on the sum only: who sees the users does better."""
    (case,) = (case for case in CASES if case["kind"] == "statistic")
    table, expect = case["input"]["statistic"]["losses"], case["expect"]
    epsilon = log(case["input"]["ratio"])
    everybody = optimal_mechanism(
        lambda dataset, o: table[sum(user[0] for user in dataset)][o],
        universe=range(5),
        outputs=range(9),
        n_users=2,
        epsilon=epsilon,
    )
    sums = optimal_sum_mechanism(
        lambda total, o: table[total][o], statistic_range=(0, 4), outputs=range(9), n_users=2, epsilon=epsilon
    )
    assert float(everybody.value) == pytest.approx(expect["optimum_of_all_at_most"], rel=1e-9)
    assert float(sums.lower_bound) == pytest.approx(expect["optimum_of_statistic_at_least"], rel=1e-9)
    assert everybody.value < sums.lower_bound
    assert everybody.verify().finding == sums.verify().finding == "established"


# --- published and closed forms


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("ratio", ["3/2", "2", "7/3", "10"])
def test_randomized_response(k: int, ratio: str) -> None:
    found = optimal_mechanism(wrong, universe=range(k), n_users=1, epsilon=log(ratio))
    assert found.value == found.lower_bound == oracle.randomized_response(k, F(ratio))
    right = F(ratio) / (F(ratio) + k - 1)
    assert found.pmf(((0,),)).fractions() == [right] + [(1 - right) / (k - 1)] * (k - 1)


def test_randomized_response_with_delta() -> None:
    found = optimal_mechanism(wrong, universe=range(3), n_users=1, epsilon=LogRatio(2), delta="1/10")
    assert found.value == found.lower_bound == oracle.randomized_response(3, F(2), F(1, 10)) == F(9, 20)


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("root", [2, F(3, 2)])
def test_plurality_of_two_items(n: int, root: Any) -> None:
    found = selection(n, 2, log(F(root) ** 2))
    assert found.value == found.lower_bound == oracle.two_items(n, F(root))


@pytest.mark.parametrize("n", [20, 51])
def test_plurality_of_two_items_and_more_users(n: int) -> None:
    found = selection(n, 2, LogRatio(9, 4))
    assert found.lower_bound <= oracle.two_items(n, F(3, 2)) <= found.value
    assert found.gap <= 1e-12


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_no_count_beats_the_geometric_mechanism(power: int, seed: int) -> None:
    """The Bayes optimum is a remap of the clamped geometric mechanism, whatever the prior is (Ghosh and others)."""
    source = random.Random(f"{power} {seed}")
    n, ratio = source.choice((2, 3, 4)), F(source.choice(("2", "3/2", "3")))
    weights = [F(source.randrange(1, 9)) for _ in range(n + 1)]
    found = optimal_mechanism(
        lambda dataset, output: distance(dataset, output) ** power,
        universe=(0, 1),
        outputs=range(n + 1),
        n_users=n,
        epsilon=log(ratio),
        objective="bayes",
        prior=lambda dataset: weights[sum(user[0] for user in dataset)],
    )
    prior = [weight / sum(weights) for weight in weights]
    assert found.value == found.lower_bound == oracle.best_remap(n, ratio, prior, power)
    assert found.certificate.prior == tuple(prior)


def test_the_least_worst_error_of_a_count() -> None:
    found = optimal_mechanism(distance, universe=(0, 1), outputs=range(5), n_users=4, epsilon=LogRatio(2))
    assert found.value == found.lower_bound == F(36, 43)
    raw = oracle.clamped_geometric(4, F(2))
    assert max(sum(mass * abs(s - o) for o, mass in enumerate(row)) for s, row in enumerate(raw)) == 1


def test_sums_that_a_user_moves_by_two() -> None:
    found = optimal_sum_mechanism(
        lambda total, o: abs(total - o), statistic_range=(0, 2), outputs=range(7), n_users=3, epsilon=LogRatio(3)
    )
    assert found.value == found.lower_bound == F(413, 386)


OPTIMA_AT_ONE = {
    (30, 3): 0.514671298,
    (15, 4): 0.679337724,
    (40, 3): 0.531433123,
    (100, 3): 0.531433123,
    (40, 4): 0.672358895,
    (30, 5): 0.770920567,
    (60, 4): 0.672358895,
}


@pytest.mark.parametrize("size", OPTIMA_AT_ONE)
def test_plurality_at_epsilon_one(size: tuple[int, int]) -> None:
    found = selection(*size, 1)
    assert found.gap <= 1e-9
    assert float(found.value) == pytest.approx(OPTIMA_AT_ONE[size], abs=1e-9)
    assert found.verify().finding == "established"


def test_plurality_with_delta() -> None:
    found = selection(30, 3, LogRatio(3), F(1, 10**6))
    assert found.gap <= 1e-9
    assert float(found.value) == pytest.approx(0.444443611, abs=1e-9)
    assert found.verify().finding == "established"
    # A delta helps, and by less than it is worth.
    without = selection(30, 3, LogRatio(3))
    assert found.value < without.lower_bound


# --- against an exact simplex on all datasets in order


def random_losses(source: random.Random, n_users: int, n_examples: int) -> Callable[[Any, Any], int]:
    """A loss that depends on multisets only."""
    known: dict[Any, int] = {}

    def loss(dataset: Any, output: Any) -> int:
        key = tuple(sorted(tuple(sorted(user)) for user in dataset)), output
        return known.setdefault(key, source.randrange(6))

    return loss


WORLDS = [(2, 1, 2, 1), (3, 1, 2, 1), (2, 2, 2, 1), (2, 1, 3, 1), (2, 2, 3, 1), (2, 3, 2, 1), (2, 1, 2, 2)]


@pytest.mark.parametrize(
    ("world", "delta"), [*itertools.product(WORLDS, ["0"]), *itertools.product(WORLDS[:3], ["1/100", "1/10"])]
)
def test_random_losses(world: tuple[int, int, int, int], delta: str) -> None:
    size, n_users, k, n_examples = world
    source = random.Random(f"{world} {delta}")
    ratio = F(source.choice(("3/2", "2", "3", "5")))
    loss = random_losses(source, n_users, n_examples)
    found = optimal_mechanism(
        loss,
        universe=range(size),
        outputs=range(k),
        n_users=n_users,
        n_examples=n_examples,
        epsilon=log(ratio),
        delta=delta,
    )
    expected = oracle.of_users(loss, range(size), range(k), n_users, n_examples, ratio, F(delta))
    assert found.lower_bound <= expected <= found.value
    assert found.gap <= 1e-9
    assert found.verify().finding == "established"
    assert_user_private(
        found, universe=range(size), n_users=n_users, n_examples=n_examples, epsilon=log(ratio), delta=delta
    )


def test_the_oracle() -> None:
    assert oracle.of_users(wrong, range(3), range(3), 1, 1, F(4)) == oracle.randomized_response(3, F(4))
    assert oracle.of_users(oracle.regret, range(2), range(2), 3, 1, F(4)) == oracle.two_items(3, F(2))
    assert oracle.of_users(wrong, range(3), range(3), 1, 1, F(2), F(1, 10)) == F(9, 20)


# --- symmetries


def test_symmetries_change_no_optimum_but_the_size() -> None:
    known = {"universe": "abc", "n_users": 5, "epsilon": LogRatio(3)}
    known["universe"] = tuple("abc")
    whole = optimal_mechanism(oracle.regret, **known, symmetries=())
    found = optimal_mechanism(oracle.regret, **known)
    told = optimal_mechanism(oracle.regret, **known, symmetries=[{"a": "b", "b": "c", "c": "a"}, {"a": "b", "b": "a"}])
    sorted_counts = selection(5, 3, LogRatio(3))
    values = {whole.value, found.value, told.value, sorted_counts.value}
    assert max(values) - min(values) < F(1, 10**12)
    assert whole.lower_bound <= min(values)
    assert len(whole.certificate.table) == math.comb(7, 2) * 3
    assert len(found.certificate.table) == len(told.certificate.table) == len(sorted_counts.table)
    for dataset in itertools.product("abc", repeat=5):
        masses = dict(zip("abc", told.pmf([(item,) for item in dataset]).weights, strict=True))
        renamed = dict(zip("abc", told.pmf([("bca"["abc".index(item)],) for item in dataset]).weights, strict=True))
        assert all(masses[item] == renamed["bca"["abc".index(item)]] for item in "abc")


def test_symmetries_of_outputs_of_other_names() -> None:
    sign = {"universe": (-1, 1), "outputs": ("less", "more"), "n_users": 3, "epsilon": LogRatio(2)}

    def loss(dataset: Any, output: str) -> int:
        return int((sum(user[0] for user in dataset) > 0) != (output == "more"))

    whole = optimal_mechanism(loss, **sign)
    half = optimal_mechanism(loss, **sign, symmetries=[({-1: 1, 1: -1}, {"less": "more", "more": "less"})])
    assert whole.value == half.value == oracle.of_users(loss, (-1, 1), ("less", "more"), 3, 1, F(2))
    assert len(half.certificate.table) * 2 == len(whole.certificate.table)


def test_symmetries_that_the_loss_does_not_have() -> None:
    """Averaging over them would be far from the optimum: 10/13 in place of 5/2."""
    table = {(0, 0): 0, (0, 1): 10, (1, 0): 1, (1, 1): 0}
    known = {"universe": (0, 1), "n_users": 1, "epsilon": LogRatio(3)}

    def loss(dataset: Any, output: int) -> int:
        return table[dataset[0][0], output]

    assert optimal_mechanism(loss, **known).value == F(10, 13)
    assert optimal_mechanism(loss, **known).certificate.world["symmetries"] == []
    with pytest.raises(ValueError, match=r"symmetries: .* changes the loss of the dataset"):
        optimal_mechanism(loss, **known, symmetries=[{0: 1, 1: 0}])
    # Nor may the prior change.
    with pytest.raises(ValueError, match=r"symmetries: .* changes the prior of the dataset"):
        optimal_mechanism(
            wrong,
            **known,
            symmetries=[{0: 1, 1: 0}],
            objective="bayes",
            prior=lambda dataset: 1 + dataset[0][0],
        )


# --- drawing, reading, pickling


@cache
def majority() -> OptimalMechanism:
    return optimal_mechanism(oracle.regret, universe=("a", "b"), n_users=3, epsilon=LogRatio(3))


def test_what_is_no_user_counts_as_the_first_example() -> None:
    mechanism = majority()
    first = mechanism.pmf([("a",), ("a",), ("b",)])
    for odd in (("c",), (), ("a", "b"), (1.0,), (float("nan"),), ([],), object(), None, 7, "a", {"a": 1}):
        assert mechanism.pmf([odd, ("a",), ("b",)]) == first
        assert mechanism.sample([odd, ["a"], ("b",)]) in ("a", "b")
    for dataset in ([("a",)] * 2, [("a",)] * 4, []):
        with pytest.raises(ValueError, match="dataset must have 3 users"):
            mechanism.sample(dataset)
        with pytest.raises(ValueError, match="dataset must have 3 users"):
            mechanism.pmf(dataset)


@pytest.mark.statistical
def test_draws_have_the_stated_distribution() -> None:
    """A chi-squared test with a false-alarm rate of 1e-6 (one degree of freedom: 23.93)."""
    mechanism, draws = majority(), 4000
    dataset = [("a",), ("b",), ("b",)]
    expected = mechanism.pmf(dataset).probabilities * draws
    seen = [0, 0]
    for _ in range(draws):
        seen["ab".index(mechanism.sample(dataset))] += 1
    assert sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True)) < 23.93


def test_the_level_is_attained_and_no_smaller_one_holds() -> None:
    known = {"universe": ("a", "b"), "n_users": 3, "n_examples": 1, "delta": 0}
    report = audit_user_level(majority(), **known, epsilon=LogRatio(3))
    assert report.holds is True
    assert report.engine == "symmetric"
    assert audit_user_level(majority(), **known, epsilon=LogRatio(2)).holds is False
    assert majority().cost.epsilon == LogRatio(3)


def test_half_the_noise_fails_its_audit() -> None:
    """The mechanism for twice the epsilon has half the noise."""
    eager = optimal_mechanism(oracle.regret, universe=("a", "b"), n_users=3, epsilon=LogRatio(9))
    report = audit_user_level(eager, universe=("a", "b"), n_users=3, n_examples=1, epsilon=LogRatio(3), delta=0)
    assert report.holds is False


def test_copies_draw_from_the_same_table() -> None:
    mechanism = majority()
    text = mechanism.certificate.to_json()
    copies = [pickle.loads(pickle.dumps(mechanism)), OptimalMechanism.from_certificate(text)]
    copies.append(OptimalMechanism.from_certificate(mechanism.certificate))
    for copy in copies:
        for dataset in itertools.product("ab", repeat=3):
            assert copy.pmf([(item,) for item in dataset]) == mechanism.pmf([(item,) for item in dataset])
        assert (copy.value, copy.epsilon, copy.delta) == (mechanism.value, LogRatio(3), 0)


def test_a_wrong_certificate_makes_no_mechanism() -> None:
    content = json.loads(majority().certificate.to_json())
    content["value"] = "1/1000"
    with pytest.raises(ValueError, match="certificate is wrong: the digest does not match"):
        OptimalMechanism.from_certificate(json.dumps(content))
    with pytest.raises(ValueError, match="certificate is wrong"):
        OptimalMechanism(OptimalityCertificate.from_json(json.dumps(content)))
    with pytest.raises(ValueError, match="certificate is about the world 'users'"):
        OptimalSumMechanism.from_certificate(majority().certificate)
    with pytest.raises(TypeError, match="certificate must be an OptimalityCertificate"):
        OptimalMechanism.from_certificate(3)  # type: ignore[arg-type]


def test_sums_read_users_as_their_statistic_says() -> None:
    mechanism = optimal_sum_mechanism(
        lambda total, o: abs(total - o), statistic_range=(-1, 1), outputs=range(-2, 3), n_users=2, epsilon=1
    )
    report = audit_user_level(mechanism, universe=(-1, 0, 1), n_users=2, n_examples=1, epsilon=1, delta=0)
    assert (report.holds, report.engine) == (True, "additive")
    lowest = mechanism.pmf(((-1,), (1,)))
    assert mechanism.pmf((("x",), (9,))) == lowest
    assert mechanism.sample([["x"], None]) in range(-2, 3)
    assert pickle.loads(pickle.dumps(mechanism)).pmf(((-1,), (1,))) == lowest
    assert OptimalSumMechanism.from_certificate(mechanism.certificate.to_json()).pmf(((-1,), (1,))) == lowest
    with pytest.raises(ValueError, match="dataset must have 2 users"):
        mechanism.sample([[1]])


# --- levels


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, "1/10", 0.5, 3, 10, 20])
def test_levels_of_all_sizes(epsilon: Any) -> None:
    mechanism = optimal_mechanism(oracle.regret, universe=tuple("abc"), n_users=4, epsilon=epsilon)
    assert mechanism.gap <= 1e-6
    assert mechanism.verify().finding == "established"
    report = audit_user_level(mechanism, universe=tuple("abc"), n_users=4, n_examples=1, epsilon=epsilon, delta=0)
    assert report.holds is True


@pytest.mark.parametrize("delta", [1e-8, "1e-6", 0.5, "0.999"])
def test_deltas_of_all_sizes(delta: Any) -> None:
    mechanism = optimal_mechanism(oracle.regret, universe=tuple("abc"), n_users=4, epsilon=1, delta=delta)
    assert mechanism.gap <= 1e-6
    assert mechanism.verify().finding == "established"
    report = audit_user_level(mechanism, universe=tuple("abc"), n_users=4, n_examples=1, epsilon=1, delta=delta)
    assert report.holds is True


def test_a_loss_that_can_be_avoided() -> None:
    free = optimal_mechanism(lambda dataset, o: 0 if o == 2 else 1, universe=range(3), n_users=2, epsilon=1)
    assert free.value == free.lower_bound == 0
    assert free.gap == 0
    sure = optimal_mechanism(
        oracle.regret,
        universe=range(3),
        n_users=3,
        epsilon=1,
        objective="bayes",
        prior=lambda dataset: int(dataset == ((2,),) * 3),
    )
    assert sure.lower_bound == 0 <= sure.value < 1e-12
    assert sure.pmf(((2,), (2,), (2,))).fractions()[2] > 1 - F(1, 10**12)
    assert sure.verify().finding == "established"
    single = optimal_mechanism(lambda dataset, o: 5, universe=(7,), n_users=3, epsilon=1)
    assert single.value == single.lower_bound == 5
    assert single.sample([[7]] * 3) == 7


@pytest.mark.parametrize("scale", [F(1, 10**9), F(10**9), F(1e-300), F(1e300)], ids=["1e-9", "1e9", "1e-300", "1e300"])
def test_losses_of_all_sizes(scale: Fraction) -> None:
    plain = optimal_mechanism(oracle.regret, universe=tuple("abc"), n_users=4, epsilon=LogRatio(3))
    scaled = optimal_mechanism(
        lambda dataset, o: scale * oracle.regret(dataset, o), universe=tuple("abc"), n_users=4, epsilon=LogRatio(3)
    )
    assert scaled.value == scale * plain.value
    assert scaled.verify().finding == "established"


# --- what is refused


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"loss": 3}, TypeError, "loss must be a function"),
    ({"loss": lambda dataset, o: float("nan")}, ValueError, "loss of the output 'a' on the dataset .* must be finite"),
    ({"loss": lambda dataset, o: float("inf")}, ValueError, "loss of the output 'a' .* must be finite; got inf"),
    ({"loss": lambda dataset, o: -1}, ValueError, "loss of the output 'a' .* must be >= 0; got -1"),
    ({"loss": lambda dataset, o: None}, TypeError, "loss of the output 'a' .* must be a finite number >= 0"),
    ({"loss": lambda dataset, o: True}, TypeError, "loss of the output 'a'"),
    ({"loss": lambda dataset, o: F(1, 3**2000)}, ValueError, "has over 2048 bits"),
    ({"loss": lambda dataset, o: int(dataset[0][0] != o)}, ValueError, "loss depends on the order of users"),
    ({"universe": "ab"}, TypeError, "universe must be a sequence of distinct values; got 'ab'"),
    ({"universe": ()}, ValueError, "universe is empty"),
    ({"universe": (1, 1)}, ValueError, "universe must be distinct"),
    ({"universe": (object(),)}, TypeError, "universe"),
    ({"outputs": (1, 1.0)}, ValueError, "outputs must be distinct"),
    ({"n_users": 0}, ValueError, "n_users must be at least 1; got 0"),
    ({"n_users": 2.0}, TypeError, "n_users must be an int"),
    ({"n_examples": 0}, ValueError, "n_examples must be at least 1"),
    ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
    ({"epsilon": -1}, ValueError, "epsilon must be >= 0; got -1"),
    ({"epsilon": 1e-9}, ValueError, r"epsilon must be from 2\*\*-20 to 24"),
    ({"epsilon": 25}, ValueError, r"epsilon must be from 2\*\*-20 to 24"),
    ({"epsilon": LogRatio(10**40)}, ValueError, r"epsilon must be from 2\*\*-20 to 24"),
    ({"epsilon": 10**400}, ValueError, r"epsilon must be from 2\*\*-20 to 24"),
    ({"epsilon": float("nan")}, ValueError, "epsilon must be finite"),
    ({"epsilon": None}, TypeError, "epsilon"),
    ({"delta": "1e-9"}, ValueError, "delta must be 0 or at least 1e-8; got '1e-9': the solver works with floats"),
    ({"delta": 1}, ValueError, "delta must be below 1"),
    ({"delta": -0.1}, ValueError, r"delta must be in \[0, 1\]"),
    ({"objective": "best"}, ValueError, "objective must be 'worst' or 'bayes'; got 'best'"),
    ({"objective": None}, ValueError, "objective must be 'worst' or 'bayes'"),
    ({"prior": lambda dataset: 1}, ValueError, "prior goes with objective='bayes'"),
    ({"objective": "bayes", "prior": [1, 2]}, TypeError, "prior must be a function of a dataset"),
    ({"objective": "bayes", "prior": lambda dataset: 0}, ValueError, "prior is 0 on every dataset"),
    ({"objective": "bayes", "prior": lambda dataset: -1}, ValueError, "prior on the dataset .* must be >= 0"),
    ({"symmetries": "all"}, ValueError, "symmetries must be 'auto' or a sequence of relabelings; got 'all'"),
    ({"symmetries": {"a": "b", "b": "a"}}, TypeError, "symmetries must be 'auto' or a sequence of relabelings"),
    ({"symmetries": [3]}, TypeError, "symmetries must have mappings"),
    ({"symmetries": [{"a": "z"}]}, ValueError, "'z' is none of the examples"),
    ({"symmetries": [{"a": "b"}]}, ValueError, "gives two of the examples one name"),
    ({"max_constraints": 0}, ValueError, "max_constraints must be at least 1"),
    ({"n_users": 10**9}, BudgetError, "have more than 200,000 datasets up to order"),
    ({"n_examples": 10**9}, BudgetError, "datasets up to order"),
    ({"n_users": 300}, BudgetError, "n_users=300, n_examples=1 and a universe of 3 examples have 45,451 datasets|more"),
    ({"n_users": 6, "max_constraints": 10}, BudgetError, "7 orbits of datasets, 16 unknowns and 60 constraints"),
    ({"n_users": 20, "symmetries": (), "max_constraints": 100}, BudgetError, "231 orbits of datasets and up to"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments = {"loss": oracle.regret, "universe": tuple("abc"), "n_users": 2, "epsilon": 1} | change
    if change == {"n_users": 300}:
        arguments["outputs"] = range(5)
    with pytest.raises(kind, match=message):
        optimal_mechanism(arguments.pop("loss"), **arguments)


BAD_SUMS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"statistic_range": (1, 1)}, ValueError, "lo < hi"),
    ({"statistic_range": 3}, TypeError, "statistic_range must be"),
    ({"statistic_range": (0, 0.5)}, TypeError, "statistic_range must be an integer"),
    ({"statistic": 3}, TypeError, "statistic must be a function of a user"),
    ({"loss": None}, TypeError, "loss must be a function of a total and an output"),
    ({"loss": lambda total, o: -1}, ValueError, "loss of the output 0 on the total 0 must be >= 0"),
    ({"n_users": 10**6}, BudgetError, "at most max_constraints"),
    ({"statistic_range": (0, 10**30)}, BudgetError, "at most max_constraints"),
    ({"objective": "bayes", "prior": lambda total: 0}, ValueError, "prior is 0"),
    ({"n_users": 0}, ValueError, "n_users must be at least 1"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD_SUMS, ids=[str(place) for place in range(len(BAD_SUMS))])
def test_bad_input_of_sums(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {
        "loss": lambda total, o: abs(total - o),
        "statistic_range": (0, 1),
        "outputs": range(3),
    }
    arguments |= {"n_users": 2, "epsilon": 1} | change
    with pytest.raises(kind, match=message):
        optimal_sum_mechanism(arguments.pop("loss"), **arguments)


def test_without_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solving says what to install; certificates are read and verified all the same."""
    text = majority().certificate.to_json()
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(ImportError, match=r"pip install 'userdp\[optimal\]'"):
        optimal_mechanism(oracle.regret, universe=("a", "b"), n_users=1, epsilon=1)
    assert OptimalMechanism.from_certificate(text).verify().finding == "established"


def test_the_solver_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert optimal_mechanism(wrong, universe=range(3), n_users=1, epsilon=1).gap < 1e-9
    assert capfd.readouterr() == ("", "")


def test_partitions_are_counted_as_they_are_listed() -> None:
    for n, k in itertools.product(range(1, 13), (1, 2, 3, 7, 100)):
        listed = list(worlds_module.partitions(n, k, n))
        assert len(listed) == len(set(listed)) == worlds_module.number_of_partitions(n, k)
        assert all(sum(parts) == n and len(parts) <= k for parts in listed)
