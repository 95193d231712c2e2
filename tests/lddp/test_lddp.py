"""LDDP checks against all pairs of deletions in fractions, engine by engine and against each other."""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import pickle
import random
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import lddp as oracle
from oracle.audit import multiplier
from userdp import LogRatio, Pmf
from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError
from userdp.lddp import LDDPResult, check_lddp
from userdp.lddp.deletions import engine_for

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "lddp_cases.json").read_text())["cases"]
LEVELS = [
    (LogRatio(2, 1), F(2), F(0)),
    (LogRatio(7, 6), F(7, 6), F(0)),
    (0, F(1), F(0)),
    ("1/2", F(1), F(1, 2)),
    (0.03125, F(1), F(1, 32)),
]


def random_pmf(source: random.Random, size: int) -> list[F]:
    weights = [source.choice((0, 1, 2, 3, 7)) for _ in range(size)]
    weights[source.randrange(size)] += 1
    return [F(weight, sum(weights)) for weight in weights]


class Distributions:
    """A distribution for each key, made by the key alone: the same in every process."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed, self.size = seed, size

    def __call__(self, key: Any) -> list[F]:
        return random_pmf(random.Random(f"{self.seed} {key!r}"), self.size)

    def of_sorted(self, dataset: Any) -> list[F]:
        return self(tuple(sorted(dataset)))

    def of_total(self, total: int, n_users: int) -> list[F]:
        return self((total, n_users))


def statistic(user: Any) -> int:
    value: int = 2 * user[0] - 1
    return value


def scores(user: Any) -> Any:
    return [(user[0] * (o + 2) + o) % 4 for o in range(3)]


def general(seed: int, size: int) -> Any:
    return finite_algorithm(range(size))(Distributions(seed, size))


def symmetric(seed: int, size: int) -> Any:
    return SymmetricAlgorithm(range(size), Distributions(seed, size).of_sorted)


def additive(seed: int, size: int) -> Any:
    return AdditiveAlgorithm(range(size), statistic, Distributions(seed, size).of_total, statistic_range=(-1, 4))


def score(seed: int, size: int) -> Any:
    return SummedScoreEM(range(3), scores, epsilon=(seed % 40 + 1) / 8, sensitivity=2)


MAKERS = {"general": general, "symmetric": symmetric, "additive": additive, "score": score}


def exact_pmfs(algorithm: Any) -> Any:
    def pmf(dataset: Any) -> list[F]:
        distribution = algorithm.pmf(dataset)
        return distribution.fractions() if isinstance(distribution, Pmf) else list(distribution)

    return pmf


def agrees(result: LDDPResult, algorithm: Any, dataset: Any, factor: F, delta: F) -> None:
    """The result against brute force: the verdict, the bounds, and the witness."""
    pmf = exact_pmfs(algorithm)
    worst = oracle.worst(pmf, dataset, result.r, factor)
    tiny = F(1, 10**300)  # irrational multipliers are exact to 800 digits only
    assert result.holds == (worst <= delta)
    assert F(result.lower) - tiny <= worst <= F(result.upper) + tiny
    assert result.upper <= math.nextafter(result.lower, 2.0)
    assert result.subsets == math.comb(len(dataset), result.r)
    assert result.pairs == result.subsets * (result.subsets - 1) // 2
    found = result.verify(algorithm, dataset)
    assert (found.finding, found.refuted) == ("established", result.holds is False), found
    if result.witness is None:
        assert worst == 0
        return
    first, second, event = result.witness
    for deleted in (first, second):
        assert list(deleted) == sorted(set(deleted))
        assert len(deleted) == result.r
    p, q = (pmf(oracle.kept(dataset, deleted)) for deleted in (first, second))
    value = sum((p[o] - factor * q[o] for o in range(len(p)) if algorithm.outputs[o] in event), F(0))
    assert abs(value - worst) <= tiny


@pytest.mark.parametrize("engine", MAKERS)
def test_engines_agree_with_brute_force(engine: str) -> None:
    source = random.Random(engine)
    for round_ in range(300):
        algorithm = MAKERS[engine](round_, source.randrange(1, 5))
        n = source.randrange(0, 6)
        dataset = [(source.randrange(3),) for _ in range(n)]
        r = source.randrange(0, n + 1)
        epsilon, ratio, exponent = LEVELS[round_ % len(LEVELS)]
        delta = source.choice([F(0), F(1, 100), F(1, 10), F(1, 2), F(1)])
        result = check_lddp(algorithm, dataset, r=r, epsilon=epsilon, delta=delta)
        assert (result.engine, result.r, result.n_users) == (engine, r, n)
        agrees(result, algorithm, dataset, multiplier(ratio, exponent), delta)


def test_verdicts_at_the_worst_divergence_itself() -> None:
    source = random.Random(5)
    decided = set()
    for round_ in range(200):
        algorithm = symmetric(round_, 3)
        dataset = [(source.randrange(3),) for _ in range(4)]
        worst = oracle.worst(exact_pmfs(algorithm), dataset, 2, F(7, 6))
        for delta in (worst, worst - F(1, 10**30), worst + F(1, 10**30)):
            if 0 <= delta <= 1:
                result = check_lddp(algorithm, dataset, r=2, epsilon=LogRatio(7, 6), delta=delta)
                assert result.holds == (worst <= delta)
                decided.add(result.holds)
    assert decided == {True, False}


@pytest.mark.parametrize("engine", ["symmetric", "additive", "score"])
def test_engines_agree_with_each_other(engine: str) -> None:
    source = random.Random(f"each other {engine}")
    for round_ in range(150):
        algorithm = MAKERS[engine](round_, 3)
        n = source.randrange(1, 8)
        dataset = [(source.randrange(3),) for _ in range(n)]
        question = {"r": source.randrange(0, n + 1), "epsilon": "1/5", "delta": "1/10"}
        plain = finite_algorithm(algorithm.outputs)(algorithm.pmf)
        as_symmetric = SymmetricAlgorithm(algorithm.outputs, algorithm.pmf)
        results = [check_lddp(each, dataset, **question) for each in (algorithm, plain, as_symmetric)]  # type: ignore[arg-type]
        assert [result.engine for result in results] == [engine, "general", "symmetric"]
        assert len({(result.holds, result.lower, result.upper, result.pairs) for result in results}) == 1
        for result in results:
            assert result.verify(plain, dataset).finding == "established"


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_published_cases(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]

    @finite_algorithm(outputs=(0, 1))
    def response(dataset: Any) -> list[F]:
        return [F(1, 10), F(9, 10)] if dataset[0][0] else [F(9, 10), F(1, 10)]

    @finite_algorithm(outputs=(0, 1, 2))
    def count(dataset: Any) -> list[F]:
        return [F(int(o == sum(user[0] for user in dataset))) for o in range(3)]

    algorithm = response if "response" in given.get("alg", "") else count
    dataset = [(x,) for x in given["x"]]
    epsilon = LogRatio(int(given["exp_eps"]), 1)
    if expected.get("error"):
        with pytest.raises(ValueError, match="r must be"):
            check_lddp(algorithm, dataset, r=given["r"], epsilon=epsilon, delta=given["delta"])
        return
    result = check_lddp(algorithm, dataset, r=given["r"], epsilon=epsilon, delta=given["delta"])
    assert result.holds == expected["verdict"]
    assert F(result.lower) <= F(expected["worst"]) <= F(result.upper)
    assert bool(result) == result.holds
    first, second = (tuple(deleted) for deleted in expected["witness_S_S2"])
    if result.witness is not None:
        worst = oracle.worst(exact_pmfs(algorithm), dataset, result.r, F(given["exp_eps"]))
        pmfs = [exact_pmfs(algorithm)(oracle.kept(dataset, deleted)) for deleted in (first, second)]
        assert (
            worst
            == F(expected["worst"])
            == max(oracle.hockey_stick(*pair, F(given["exp_eps"])) for pair in itertools.permutations(pmfs))
        )


@pytest.fixture(scope="module")
def processes() -> Any:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.mark.parametrize("engine", ["symmetric", "additive", "score"])
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_give_the_same_answer(engine: str, kind: str, request: pytest.FixtureRequest) -> None:
    def compare(executor: Executor) -> None:
        source = random.Random(engine)
        for round_ in range(6):
            n = (1, 2, 7, 7, 8, 9)[round_]
            algorithm = MAKERS[engine](round_, 3)
            dataset = [(source.randrange(4),) for _ in range(n)]
            question = {"r": n // 2, "epsilon": "1/5", "delta": "1/10"}
            alone = check_lddp(algorithm, dataset, **question)  # type: ignore[arg-type]
            shared = check_lddp(algorithm, dataset, **question, executor=executor)  # type: ignore[arg-type]
            assert (shared.holds, shared.lower, shared.upper) == (alone.holds, alone.lower, alone.upper)
            agrees(shared, algorithm, dataset, multiplier(F(1), F(1, 5)), F(1, 10))

    if kind == "processes":
        compare(request.getfixturevalue("processes"))
    else:
        with ThreadPoolExecutor(3) as executor:
            compare(executor)


def test_executor_with_a_general_algorithm_and_one_that_fails() -> None:
    dataset = [(i,) for i in range(6)]
    with ThreadPoolExecutor(2) as executor:
        result = check_lddp(general(3, 3), dataset, r=2, epsilon=0, delta="1/10", executor=executor)
        agrees(result, general(3, 3), dataset, F(1), F(1, 10))

        @finite_algorithm(outputs=(0, 1))
        def fails(users: Any) -> list[F]:
            return [F(1, 2), F(1, 2 + int((5,) not in users and (4,) not in users))]

        with pytest.raises(ValueError, match=r"positions \(4, 5\)"):
            check_lddp(fails, dataset, r=2, epsilon=0, delta=0, executor=executor)


def test_users_are_told_apart_by_type_and_sign() -> None:
    seen: list[Any] = []

    def pmf(dataset: Any) -> list[float]:
        seen.append(dataset)
        return [1.0, 0.0] if any(type(user[0]) is bool for user in dataset) else [0.0, 1.0]

    result = check_lddp(SymmetricAlgorithm((0, 1), pmf), [(True,), (1,)], r=1, epsilon=0, delta=0)
    assert result.upper == 1.0
    signs = SymmetricAlgorithm((0, 1), lambda x: [1.0, 0.0] if math.copysign(1, x[0][0]) > 0 else [0.0, 1.0])
    assert check_lddp(signs, [(0.0,), (-0.0,)], r=1, epsilon=0, delta=0).upper == 1.0


def test_symmetric_order_depends_on_the_kept_users_only() -> None:
    def lists(dataset: Any, r: int) -> dict[Any, Any]:
        """The order in which each multiset of kept users is listed."""
        seen = {}
        engine = engine_for(symmetric(0, 2), tuple(dataset), r, (0, 1))
        for deleted in itertools.combinations(range(len(dataset)), r):
            users = engine.kept(deleted)  # type: ignore[attr-defined]
            assert Counter(users) == Counter(oracle.kept(dataset, deleted))
            assert seen.setdefault(frozenset(Counter(users).items()), users) == users
        return seen

    values = [("b",), (3,), (0.5,), ("a",), (3,)]
    expected = lists(values, 2)
    assert all(lists(order, 2) == expected for order in itertools.permutations(values))
    for extra in [("zz",), (-1,), (None,), (0.25,)]:
        larger = lists([*values, extra], 3)
        assert all(larger[users] == listed for users, listed in expected.items())
    asked = set()

    def pmf(users: Any) -> list[float]:
        asked.add(users)
        return [1.0]

    check_lddp(SymmetricAlgorithm((0,), pmf), values, r=2, epsilon=0, delta=0)
    assert set(expected.values()) <= asked <= set(expected.values()) | {users[::-1] for users in expected.values()}


def test_lists_are_tuples_and_other_types_are_refused() -> None:
    for algorithm in (symmetric(0, 2), finite_algorithm(outputs=(0, 1))(lambda dataset: [1, 0])):
        check_lddp(algorithm, [(1,), [2]], r=1, epsilon=0, delta=1)
        with pytest.raises(TypeError, match="dataset: the user at position 1 is of the type set; accepted are"):
            check_lddp(algorithm, [(1,), ({2},)], r=1, epsilon=0, delta=0)


def test_general_algorithms_see_users_in_index_order() -> None:
    seen = []

    @finite_algorithm(outputs=(0,))
    def watch(dataset: Any) -> list[int]:
        seen.append(dataset)
        return [1]

    check_lddp(watch, [("c",), ("a",), ("b",)], r=1, epsilon=0, delta=0)
    assert set(seen) == {(("c",), ("a",)), (("c",), ("b",)), (("a",), ("b",))}


def test_batches_are_used() -> None:
    class Batched:
        outputs = (0, 1)

        def pmf(self, dataset: Any) -> Any:
            raise AssertionError("batches were offered")

        def pmf_batch(self, datasets: Any) -> Any:
            return np.array([[0.25, 0.75] if dataset[0][0] else [0.75, 0.25] for dataset in datasets])

    result = check_lddp(Batched(), [(0,), (1,), (1,)], r=1, epsilon=0, delta="1/2")
    assert (result.holds, result.lower, result.upper) == (True, 0.5, 0.5)


def test_large_symmetric_structure() -> None:
    share = SymmetricAlgorithm((0, 1), lambda x: [F(sum(u[0] for u in x), len(x)), 1 - F(sum(u[0] for u in x), len(x))])
    dataset = [(1,)] * 150 + [(0,)] * 150
    result = check_lddp(share, dataset, r=100, epsilon=0, delta="1/2")
    # Between 50 and 150 of the 200 that are left have a one.
    assert (result.holds, result.lower, result.upper, result.engine) == (True, 0.5, 0.5, "symmetric")
    assert result.subsets == math.comb(300, 100)
    assert not check_lddp(share, dataset, r=100, epsilon=0, delta="0.4999").holds


def test_additive_totals_with_gaps_and_their_witness() -> None:
    source = random.Random(9)
    for _ in range(60):
        n = source.randrange(1, 9)
        r = source.randrange(0, n + 1)
        values = [source.choice((-7, 0, 3, 10, 11)) for _ in range(n)]
        dataset = [(value,) for value in values]
        asked: set[int] = set()

        def pmf_of_total(total: int, kept: int, asked: set[int] = asked) -> list[F]:
            asked.add(total)
            return [F(1, 2) + F(total, 1000), F(1, 2) - F(total, 1000)]

        algorithm = AdditiveAlgorithm((0, 1), lambda user: user[0], pmf_of_total, statistic_range=(-20, 20))
        result = check_lddp(algorithm, dataset, r=r, epsilon=0, delta=0)
        totals = {sum(oracle.kept(values, deleted)) for deleted in itertools.combinations(range(n), r)}
        assert asked == totals
        assert F(result.lower) <= F(max(totals) - min(totals), 1000) <= F(result.upper)
        assert result.verify(algorithm, dataset).finding in ("established", "spot-checked")


def test_score_engine_at_size() -> None:
    generator = np.random.default_rng(0)
    rows = generator.integers(0, 3, (16, 5)).tolist()
    chosen = SummedScoreEM(range(5), lambda user: rows[user[0]], epsilon=1, sensitivity=2)
    dataset = [(i,) for i in range(16)]
    result = check_lddp(chosen, dataset, r=5, epsilon="1/2", delta="1/10")
    totals = [np.array(rows)[list(kept)].sum(axis=0) for kept in itertools.combinations(range(16), 11)]
    logits = -np.array(totals) / 4
    pmfs = np.exp(logits - logits.max(axis=1, keepdims=True))
    pmfs /= pmfs.sum(axis=1, keepdims=True)
    worst = max(float(np.maximum(pmf - math.exp(0.5) * pmfs, 0).sum(axis=1).max()) for pmf in pmfs)
    assert abs(worst - result.lower) < 1e-8
    assert result.upper <= math.nextafter(result.lower, 2)
    assert result.verify(chosen, dataset).finding == "spot-checked"  # 4368 deletion sets with pmfs of their own


def test_declared_pmf_errors_leave_a_band_undecided() -> None:
    def checked(delta: str, error: str) -> LDDPResult:
        rounded = finite_algorithm(outputs=(0, 1), pmf_error=error)(lambda x: [0.25, 0.75] if x[0][0] else [0.75, 0.25])
        result = check_lddp(rounded, [(0,), (1,)], r=1, epsilon=0, delta=delta)
        assert result.verify(rounded, [(0,), (1,)]).finding == "established"
        assert result.lower < 0.5 < result.upper
        return result

    undecided = checked("1/2", "1e-6")
    assert undecided.holds is None
    assert "UNDETERMINED" in str(undecided)
    with pytest.raises(ValueError, match="undetermined"):
        bool(undecided)
    assert checked("0.501", "1e-6").holds is True
    assert checked("0.499", "1e-6").holds is False
    # Equal stated pmfs may still differ in truth.
    constant = finite_algorithm(outputs=(0, 1), pmf_error="0.1")(lambda x: [0.5, 0.5])
    result = check_lddp(constant, [(0,), (1,)], r=1, epsilon=0, delta=0)
    assert result.holds is None
    assert result.upper > 0.0
    assert check_lddp(constant, [(0,), (1,)], r=0, epsilon=0, delta=0).holds is True


def test_declared_pmf_errors_in_shards_and_against_the_worst_true_pmfs() -> None:
    source = random.Random(11)
    verdicts = set()
    for round_ in range(60):
        pmfs = Distributions(round_, 2)
        algorithm = finite_algorithm(range(2), pmf_error="1/50")(pmfs)
        dataset = [(source.randrange(3),) for _ in range(5)]
        delta = source.choice([F(1, 10), F(1, 3), F(1, 2)])
        worst = oracle.worst(exact_pmfs(algorithm), dataset, 2, F(7, 6))
        if source.random() < 0.3:
            delta = min(worst, F(1))
        question: dict[str, Any] = {"r": 2, "epsilon": LogRatio(7, 6), "delta": delta}
        alone = check_lddp(algorithm, dataset, **question)
        with ThreadPoolExecutor(2) as executor:
            shared = check_lddp(algorithm, dataset, **question, executor=executor)
        assert (shared.holds, shared.lower, shared.upper) == (alone.holds, alone.lower, alone.upper)
        # Scaling one distribution up and the other down by the declared error reaches the ends of what may be true.
        widest = max(
            sum((max(F(0), F(51, 50) * a - F(7, 6) * F(49, 50) * b) for a, b in zip(p, q, strict=True)), F(0))
            for p, q in itertools.permutations(
                [pmfs(oracle.kept(dataset, deleted)) for deleted in itertools.combinations(range(5), 2)], 2
            )
        )
        assert alone.lower <= worst <= alone.upper
        assert F(alone.lower) < worst or worst == 0
        assert F(alone.upper) >= widest
        assert alone.holds == (None if alone.lower <= delta < alone.upper else delta >= alone.upper)
        verdicts.add(alone.holds)
    assert verdicts == {True, False, None}


def test_float_pmfs_are_exact_dyadic_numbers() -> None:
    source = random.Random(12)
    for round_ in range(200):
        pmfs: dict[Any, list[float]] = {}

        def pmf(x: Any, pmfs: dict[Any, list[float]] = pmfs) -> list[float]:
            first = source.random()
            return pmfs.setdefault(x, [first, 1.0 - first])

        algorithm = finite_algorithm((0, 1))(pmf)
        dataset = [(place,) for place in range(4)]
        result = check_lddp(algorithm, dataset, r=2, epsilon=(0, "1/2")[round_ % 2], delta="1/4")
        exact = finite_algorithm((0, 1))(lambda x, pmfs=pmfs: [F(mass) for mass in pmfs[x]])
        agrees(result, exact, dataset, multiplier(F(1), F(round_ % 2, 2)), F(1, 4))


@pytest.mark.parametrize("r", [-1, 4, 10**30])
def test_sizes_out_of_range(r: int) -> None:
    with pytest.raises(ValueError, match="r must be"):
        check_lddp(general(0, 2), [(0,)] * 3, r=r, epsilon=0, delta=0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"r": True}, TypeError, "r must be"),
        ({"r": 1.0}, TypeError, "r must be"),
        ({"epsilon": -1}, ValueError, "epsilon"),
        ({"delta": 2}, ValueError, "delta"),
        ({"dataset": "abc"}, TypeError, "dataset"),
        ({"dataset": [1, 2]}, TypeError, "position 0"),
        ({"budget": 0.5}, TypeError, "budget"),
        ({"executor": 3}, TypeError, "executor"),
        ({"progress": 3}, TypeError, "progress"),
        ({"algorithm": len}, TypeError, "FiniteAlgorithm"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], words: str) -> None:
    given: dict[str, Any] = {"algorithm": general(0, 2), "dataset": [(0,), (1,)], "r": 1, "epsilon": 0, "delta": 0}
    given |= change
    with pytest.raises(error, match=words):
        check_lddp(given.pop("algorithm"), given.pop("dataset"), **given)


def test_failures_name_the_deleted_users() -> None:
    dataset = [(0,), (1,), (2,)]

    @finite_algorithm(outputs=(0, 1))
    def raises(users: Any) -> list[float]:
        raise KeyError("lost")

    with pytest.raises(RuntimeError, match=r"raised KeyError.*positions \(0,\)"):
        check_lddp(raises, dataset, r=1, epsilon=0, delta=0)

    @finite_algorithm(outputs=(0, 1))
    def bad(users: Any) -> list[float]:
        return [0.5, 0.5] if users[0][0] == 0 else [0.5, 0.6]

    with pytest.raises(ValueError, match=r"positions \(0,\).*sums to 1.1"):
        check_lddp(bad, dataset, r=1, epsilon=0, delta=0)

    calls = itertools.count()

    @finite_algorithm(outputs=(0, 1))
    def fickle(users: Any) -> list[F]:
        part = F(1, 2 + next(calls))
        return [part, 1 - part]

    with pytest.raises(ValueError, match=r"two different pmfs.*positions \(0,\)"):
        check_lddp(fickle, dataset, r=1, epsilon=0, delta=0)
    ordered = SymmetricAlgorithm((0, 1), lambda x: [1.0, 0.0] if x[0][0] < x[-1][0] else [0.0, 1.0])
    with pytest.raises(ValueError, match="reverse order"):
        check_lddp(ordered, dataset, r=1, epsilon=0, delta=0)


def test_budgets() -> None:
    dataset = [(i,) for i in range(40)]
    with pytest.raises(BudgetError, match=r"137,846,528,820 pmfs .*SymmetricAlgorithm"):
        check_lddp(general(0, 2), dataset, r=20, epsilon=0, delta=0)
    with pytest.raises(BudgetError, match=r"symmetric engine.*AdditiveAlgorithm"):
        check_lddp(symmetric(0, 2), dataset, r=20, epsilon=0, delta=0)
    with pytest.raises(BudgetError, match="budget 10"):
        check_lddp(general(0, 2), dataset, r=1, epsilon=0, delta=0, budget=10)
    with pytest.raises(BudgetError, match=r"about 10\^149 deletion sets: more pmfs than the general engine"):
        check_lddp(general(0, 2), [(i,) for i in range(500)], r=250, epsilon=0, delta=0)
    distinct = SummedScoreEM(range(3), lambda user: [user[0], 40 - user[0], user[0] % 7], epsilon=1, sensitivity=50)
    with pytest.raises(BudgetError, match="score engine"):
        check_lddp(distinct, dataset, r=20, epsilon=0, delta=0)
    wide = AdditiveAlgorithm((0, 1), lambda user: user[0], lambda t, n: [1, 0], statistic_range=(0, 10**15))
    with pytest.raises(BudgetError, match="statistic_range"):
        check_lddp(wide, [(10**15 * (i % 2),) for i in range(40)], r=20, epsilon=0, delta=0)


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    check_lddp(general(0, 2), [(0,), (1,), (2,)], r=1, epsilon=0, delta=0, progress=lambda *step: calls.append(step))
    assert (3, 3) in calls


def test_results_are_frozen_and_pickle_and_verification_notices_changes() -> None:
    dataset = [(0,), (1,), (2,), (2,)]
    result = check_lddp(additive(1, 3), dataset, r=2, epsilon=0, delta=0)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(AttributeError):
        result.holds = True  # type: ignore[misc]
    assert result.holds is False
    assert "VIOLATED" in str(result)
    assert result.verify(additive(1, 3), dataset).refuted
    assert result.verify(additive(2, 3), dataset).finding == "wrong"
    assert result.verify(additive(1, 3), dataset[:3]).finding == "wrong"
    constant = AdditiveAlgorithm(range(3), statistic, lambda total, n: [1, 0, 0], statistic_range=(-1, 4))
    assert result.verify(constant, dataset).finding == "wrong"


@pytest.mark.parametrize("engine", ["symmetric", "additive"])
def test_one_pmf_of_several_deletion_sets_may_be_several_within_an_error(engine: str) -> None:
    half = [F(1, 2), F(1, 2)]
    algorithm: Any = (
        SymmetricAlgorithm((0, 1), lambda x: half, pmf_error="0.1")
        if engine == "symmetric"
        else AdditiveAlgorithm((0, 1), lambda user: 0, lambda t, n: half, statistic_range=(0, 0), pmf_error="0.1")
    )
    dataset = [(0,), (0,)]
    result = check_lddp(algorithm, dataset, r=1, epsilon=0, delta=0)
    assert (result.engine, result.holds, result.lower) == (engine, None, 0.0)
    # Of true masses within a tenth of 1/2, 11/20 and 9/20.
    assert 0.1 <= result.upper <= 0.2 + 1e-12
    assert result.verify(algorithm, dataset).finding == "established"
    assert check_lddp(algorithm, dataset, r=2, epsilon=0, delta=0).holds is True


def test_the_witness_of_shards_is_the_worst_of_all() -> None:
    little = F(1, 2**200)
    pmfs = [[F(1, 2), F(1, 2)]] * 8
    pmfs[0] = [F(3, 4), F(1, 4)]
    pmfs[6] = [F(3, 4) + little, F(1, 4) - little]
    algorithm = finite_algorithm((0, 1))(lambda kept: pmfs[28 - sum(user[0] for user in kept)])
    with ThreadPoolExecutor(1) as executor:
        # Two shards are above this delta, and their worst divergences are one float.
        result = check_lddp(algorithm, [(i,) for i in range(8)], r=1, epsilon=0, delta=F(1, 5), executor=executor)
    assert result.holds is False
    assert result.witness is not None
    (first,), (second,), event = result.witness
    assert sum(pmfs[first][o] - pmfs[second][o] for o in event) == F(1, 4) + little


def test_totals_list_no_users_and_may_have_any_size() -> None:
    share = AdditiveAlgorithm((0, 1), lambda user: user[0], lambda t, n: [F(t, n), F(n - t, n)], statistic_range=(0, 1))
    # Of 15,000 users who are left 5,000 to 10,000 are ones.
    many = check_lddp(share, [(i % 2,) for i in range(20_000)], r=5000, epsilon=0, delta=1)
    assert many.lower <= F(1, 3) <= many.upper
    huge = 10**5000
    far = AdditiveAlgorithm((0, 1), lambda user: huge, lambda t, n: [1, 0], statistic_range=(huge, huge))
    assert check_lddp(far, [(0,), (1,)], r=1, epsilon=0, delta=0).holds is True
    report = audit_user_level(far, universe=[0, 1], n_users=2, n_examples=1, epsilon=0, delta=0)
    assert report.holds is True
