"""Perfect generalization against brute force over all samples, known instances, and refusals."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import generalization as oracle
from userdp import LogRatio
from userdp.algorithms import SymmetricAlgorithm, finite_algorithm
from userdp.exceptions import BudgetError
from userdp.item_to_user import GeneralizationReport, audit_perfect_generalization, simplex_grid

F = Fraction


def random_pmf(source: random.Random, size: int) -> list[F]:
    weights = [source.choice((0, 1, 2, 3, 7)) for _ in range(size)]
    weights[source.randrange(size)] += 1
    return [F(weight, sum(weights)) for weight in weights]


@finite_algorithm(outputs=("a", "b", "c"))
def order(dataset: Any) -> list[int]:
    return {((0,), (1,)): [0, 1, 0], ((1,), (0,)): [0, 0, 1]}.get(dataset, [1, 0, 0])


def audit(mechanism: Any, **changes: Any) -> GeneralizationReport:
    arguments: dict[str, Any] = {
        "universe": (0, 1),
        "distributions": [1, 1],
        "n_users": 2,
        "epsilon": LogRatio(2),
        "delta": 0,
    }
    return audit_perfect_generalization(mechanism, **{**arguments, **changes})


@pytest.mark.parametrize("symmetric", [False, True])
def test_against_all_samples(symmetric: bool) -> None:
    source = random.Random(40 + symmetric)
    nonzero = 0
    for _ in range(120):
        pmfs: dict[Any, list[F]] = {}
        outputs = source.randrange(1, 4)

        def pmf(x: Any, pmfs: Any = pmfs, outputs: int = outputs) -> list[F]:
            key = tuple(sorted(x)) if symmetric else x
            if key not in pmfs:
                pmfs[key] = source.choice([*pmfs.values(), random_pmf(source, outputs), random_pmf(source, outputs)])
            return pmfs[key]  # type: ignore[no-any-return]

        mechanism = (SymmetricAlgorithm if symmetric else lambda o, f: finite_algorithm(o)(f))(range(outputs), pmf)
        universe = "xyz"[: source.randrange(1, 4)]
        n_users, n_examples = source.choice([(1, 1), (2, 1), (3, 1), (1, 2), (2, 2) if len(universe) < 3 else (2, 1)])
        multiplier, delta = 1 + F(source.randrange(0, 8), 4), F(source.randrange(0, 4), 8)
        weights = [[source.randrange(0, 4) for _ in universe] for _ in range(2)]
        for row in weights:
            row[source.randrange(len(row))] += 1
        simulator = source.choice([None, random_pmf(source, outputs)])
        report = audit_perfect_generalization(
            mechanism,
            universe=tuple(universe),
            distributions=weights,
            n_users=n_users,
            n_examples=n_examples,
            epsilon=LogRatio(multiplier.numerator, multiplier.denominator),
            delta=delta,
            simulator=simulator,
        )
        assert report.engine == ("symmetric" if symmetric else "labeled")
        for position, row in enumerate(weights):
            distribution = {example: F(weight, sum(row)) for example, weight in zip(universe, row, strict=True)}
            weighted = oracle.samples(distribution, n_users, n_examples)
            expected = oracle.sample_perfect(pmf, weighted, multiplier, delta)
            assert report.sample_perfect[position] == expected
            sim = simulator or oracle.mixture(pmf, weighted)
            assert report.perfect[position] == oracle.perfect(pmf, weighted, sim, multiplier, delta)
            nonzero += expected > 0
        assert report.beta == max(report.sample_perfect)
        if report.witness is not None:
            assert report.witness.x2 is not None
            p, q = pmf(report.witness.x), pmf(report.witness.x2)
            gap = sum(p[o] - multiplier * q[o] for o in range(outputs) if o in report.witness.event)
            assert gap > delta
            assert report.witness.divergence.lower <= gap <= report.witness.divergence.upper
            flat = [z for user in (*report.witness.x, *report.witness.x2) for z in user]
            worst = dict(report.distribution)
            assert all(worst[z] > 0 for z in flat)
        assert (report.witness is None) == (report.beta == 0)
    assert nonzero > 30


def test_perfect_generalization_does_not_give_the_sample_kind_at_the_same_beta() -> None:
    # (0,1) -> b, (1,0) -> c, else a: one half against the simulator "always a", five eighths between samples.
    report = audit(order, epsilon="0.1", delta="0.03", simulator=[1, 0, 0], distributions={0: 1, 1: 1})
    assert report.perfect == (F(1, 2),)
    assert report.sample_perfect == (F(5, 8),)
    # Over all Bernoulli distributions one half is the largest for the simulator: 2 p (1 - p).
    grid = [[weight, 12 - weight] for weight in range(13)]
    swept = audit(
        order, epsilon="0.1", delta="0.03", simulator=[1, 0, 0], distributions=grid, beta="1/2", notion="simulator"
    )
    assert swept.perfect == tuple(F(2 * p * (12 - p), 144) for p in range(13))
    assert swept.holds is None  # not refuted; a sweep proves nothing about all distributions
    assert swept.worst == 6
    assert swept.witness is not None
    assert swept.witness.x2 is None
    sample = audit(order, epsilon="0.1", delta="0.03", simulator=[1, 0, 0], distributions=grid, beta="1/2")
    assert sample.holds is False


def test_randomized_response_by_hand() -> None:
    # One bit kept with probability 3/4: distributions (3/4, 1/4) and (1/4, 3/4) are alike from e^epsilon = 3 on.
    @finite_algorithm(outputs=(0, 1))
    def respond(dataset: Any) -> list[str]:
        return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]

    far = audit(respond, n_users=1, distributions=["1/3", "2/3"])
    assert far.sample_perfect == (F(4, 9),)
    assert audit(respond, n_users=1, epsilon=LogRatio(3)).beta == 0
    # The mixture at 1/2 is uniform: 3/4 = (3/2) 1/2, and 1/2 = 2 * 1/4.
    assert audit(respond, n_users=1).perfect == (F(0),)
    assert audit(respond, n_users=1, epsilon=LogRatio(3, 2)).perfect == (F(1),)
    # A decision at the tie, with an irrational e^epsilon on either side of 3.
    assert audit(respond, n_users=1, epsilon=math.log(3) - 1e-15).beta == F(1, 2)
    assert audit(respond, n_users=1, epsilon=math.log(3) + 1e-15).beta == 0


def test_constant_float_pmfs_are_perfect_at_zero() -> None:
    pmf = np.random.default_rng(1).dirichlet(np.ones(7))
    assert sum(map(F, pmf.tolist())) != 1
    constant = SymmetricAlgorithm(range(7), lambda dataset: pmf)
    report = audit(constant, n_users=5, distributions=["1/3", "2/3"], epsilon=0, delta=0)
    assert report.perfect == report.sample_perfect == (F(0),)
    assert report.pmfs == 1


def test_multisets_weigh_what_their_orders_do() -> None:
    def pmf(dataset: Any) -> list[F]:
        total = sum(map(sum, dataset))
        return [F(1 + total, 12), F(11 - total, 12)]

    mechanism = SymmetricAlgorithm((0, 1), pmf)
    options: dict[str, Any] = {"n_users": 3, "n_examples": 2, "distributions": [[1, 2], [5, 1]], "delta": "0.01"}
    fast, slow = audit(mechanism, **options), audit(mechanism, engine="labeled", **options)
    assert fast.datasets == 20
    assert slow.datasets == 64
    assert (fast.sample_perfect, fast.perfect) == (slow.sample_perfect, slow.perfect)
    assert fast.sample_perfect[0] > 0
    total = sum(math.comb(6, ones) * 2**ones for ones in range(7))
    assert total == 3**6


def test_verdicts() -> None:
    claims: list[tuple[Any, str, bool | None]] = [
        (None, "all", None),
        ("5/8", "all", None),
        ("5/8", "listed", True),
        ("0.6249999", "all", False),
        ("0.6249999", "listed", False),
    ]
    for beta, scope, expected in claims:
        report = audit(order, beta=beta, scope=scope)
        assert report.beta == F(5, 8)
        assert report.holds is expected
        if expected is None:
            with pytest.raises(ValueError, match="undetermined"):
                bool(report)
        else:
            assert bool(report) is expected


def test_a_refuted_symmetry_is_an_error() -> None:
    with pytest.raises(ValueError, match="declared symmetric"):
        audit(SymmetricAlgorithm(("a", "b", "c"), order.pmf))


def test_report_is_json_and_text() -> None:
    report = audit(order, beta="1/2", distributions=[[1, 1], [1, 3]])
    content = json.loads(report.to_json())
    assert content == report.to_dict()
    assert content["beta"] == "5/8"
    assert content["holds"] is False
    assert content["distributions"] == [["1/2", "1/2"], ["1/4", "3/4"]]
    assert content["epsilon_level"] == {"ratio": "2", "exponent": "0"}
    assert content["witness"]["event"] in (["a"], ["b"], ["c"])
    text = str(report)
    for part in ("VIOLATED", "0.625", "5/8", "0: 1/2, 1: 1/2", "from below only"):
        assert part in text
    assert "the simulator" in str(audit(order, notion="simulator", simulator=[1, 0, 0]))


def test_grid_covers_the_simplex() -> None:
    grid = simplex_grid(3, 5)
    assert len(grid) == len(set(grid)) == math.comb(7, 2)
    assert all(sum(weights) == 5 and min(weights) >= 0 for weights in grid)
    assert simplex_grid(1, 4) == [(4,)]
    found = audit(order, universe=(0, 1, 2), distributions=simplex_grid(3, 4), beta="0.6")
    assert found.holds is False
    assert found.distributions[found.worst] == (F(1, 2), F(1, 2), F(0))
    with pytest.raises(BudgetError, match="grid"):
        simplex_grid(10, 100)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"universe": ()}, ValueError, "universe"),
        ({"universe": (0, 0)}, ValueError, "distinct"),
        ({"universe": {0, 1}}, TypeError, "universe"),
        ({"distributions": [1, 1, 1]}, ValueError, "3 weights for 2"),
        ({"distributions": []}, ValueError, "distributions"),
        ({"distributions": [0, 0]}, ValueError, "zero"),
        ({"distributions": [[1, 1], [1, -1]]}, ValueError, r"distributions\[1\]"),
        ({"distributions": [1, float("nan")]}, ValueError, "finite"),
        ({"distributions": [1, "x"]}, ValueError, "weight"),
        ({"distributions": [True, 1]}, TypeError, "weight"),
        ({"distributions": {0: 1, 5: 1}}, ValueError, "universe"),
        ({"distributions": "ab"}, TypeError, "distributions"),
        ({"distributions": 3}, TypeError, "distributions"),
        ({"n_users": 0}, ValueError, "n_users"),
        ({"n_examples": 1.0}, TypeError, "n_examples"),
        ({"epsilon": -1}, ValueError, "epsilon"),
        ({"delta": 2}, ValueError, "delta"),
        ({"beta": -1}, ValueError, "beta"),
        ({"notion": "both"}, ValueError, "notion"),
        ({"scope": "some"}, ValueError, "scope"),
        ({"engine": "fast"}, ValueError, "engine"),
        ({"engine": "symmetric"}, TypeError, "SymmetricAlgorithm"),
        ({"simulator": [1, 0]}, ValueError, "simulator"),
        ({"simulator": ["1/2", "1/2", "1/2"]}, ValueError, "simulator"),
        ({"budget": 0}, ValueError, "budget"),
    ],
)
def test_bad_input(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        audit(order, **changes)


def test_refusals_come_before_the_work() -> None:
    calls: list[Any] = []

    @finite_algorithm(outputs=(0, 1))
    def mechanism(dataset: Any) -> list[int]:
        calls.append(dataset)
        return [1, 0]

    for changes in (
        {"n_users": 40},
        {"n_users": 10**9},
        {"n_users": 2, "n_examples": 10**9},
        {"n_users": 12, "budget": 1000},
        {"n_users": 20, "distributions": [[1, 1]] * 1000},
    ):
        with pytest.raises(BudgetError, match="Cheaper"):
            audit(mechanism, **changes)
    assert not calls
    with pytest.raises(ValueError, match="pmf_error"):
        audit(SymmetricAlgorithm((0,), lambda dataset: [1], pmf_error=0.1))

    @finite_algorithm(outputs=(0, 1))
    def reveal(dataset: Any) -> list[F]:
        number = sum(2**place for place, user in enumerate(dataset) if user[0])
        return [F(number, 2**13), 1 - F(number, 2**13)]

    with pytest.raises(BudgetError, match="distinct distributions"):
        audit(reveal, n_users=13)
