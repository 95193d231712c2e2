"""Scores and distributions of the classifiers over finite classes, against counting by definition."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from oracle import hypotheses as oracle
from oracle import permute_and_flip as flips
from userdp.concepts import DecisionStumps, FiniteClass, HashedPointFunctions, Intervals, PointFunctions, Thresholds
from userdp.concepts import errors as class_errors
from userdp.concepts.errors import ClassErrors, surrogate_scores
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier, ThresholdClassifier, clipped_pairwise_scores
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip
from userdp.users import UserTable

DATA = Path(__file__).parents[1] / "data"
SCORE_CASES = json.loads((DATA / "hypothesis_score_cases.json").read_text())["cases"]
THRESHOLD_CASES = json.loads((DATA / "agnostic_threshold_cases.json").read_text())["cases"]

Users = Sequence[oracle.User]


def of_kind(cases: list[Any], kind: str) -> Any:
    found = [case for case in cases if case["kind"] == kind]
    assert found
    return pytest.mark.parametrize("case", found, ids=lambda case: case["id"])


def user_data(users: Users, m: int) -> UserTable:
    """Rows of all users, one user after the other."""
    rows = [(number, x, y) for number, user in enumerate(users) for x, y in user]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return UserTable(table[:, 1:2], table[:, 2].astype(np.uint8), table[:, 0].astype(np.uint32), len(users), m)


def as_dicts(table: Sequence[Sequence[int]], first: int = 0) -> list[oracle.Hypothesis]:
    return [dict(enumerate(row, first)) for row in table]


def random_users(rng: random.Random, n: int, m: int, points: Sequence[int]) -> list[list[tuple[int, int]]]:
    """With all numbers of rows from none to m."""
    return [[(rng.choice(points), rng.randrange(2)) for _ in range(rng.randrange(m + 1))] for _ in range(n)]


# --- against cases


@of_kind(SCORE_CASES, "realizable_scores")
def test_realizable_cases(case: Any) -> None:
    names, table = zip(*((name, [h["0"], h["1"]]) for name, h in case["input"]["hypotheses"].items()), strict=True)
    users = case["input"]["users"]
    scores = ClassErrors(FiniteClass(table), user_data(users, 2)).above(0)
    assert dict(zip(names, scores.tolist(), strict=True)) == case["expected"]["scores"]
    assert [oracle.any_error(h, users, 2) for h in as_dicts(table)] == scores.tolist()


@of_kind([case for case in SCORE_CASES if case["kind"] == "clipped_pairwise"], "clipped_pairwise")
def test_clipped_pairwise_cases(case: Any) -> None:
    names, table = zip(*((name, [h["0"], h["1"]]) for name, h in case["input"]["hypotheses"].items()), strict=True)
    users, tau = case["input"]["users"], int(case["input"]["tau"])
    scores = clipped_pairwise_scores(ClassErrors(FiniteClass(table), user_data(users, 2)).mistakes(), tau).tolist()
    assert {name: str(score) for name, score in zip(names, scores, strict=True)} == case["expected"]["scores"]
    assert oracle.clipped_pairwise(as_dicts(table), users, tau) == scores


@of_kind(THRESHOLD_CASES, "surrogate_user")
def test_surrogate_cases(case: Any) -> None:
    given, expected = case["input"], case["expect"]
    concepts, h = as_dicts(given["C_tables"], 1), as_dicts([given["h_table"]], 1)[0]
    errors, disagreements = oracle.surrogate(concepts, h, given["users"], given["t"], given["s"], 2)
    assert (errors, disagreements) == (expected["errK_by_c"], expected["disK_by_c"])
    if given["s"] == 0:
        # A second hypothesis, since there is nothing to choose from one.
        other = [1 - value for value in given["h_table"]]
        shifted = [[(x - 1, y) for x, y in user] for user in given["users"]]
        scores = surrogate_scores(
            FiniteClass(given["C_tables"]), FiniteClass([given["h_table"], other]), user_data(shifted, 2), given["t"]
        )
        assert scores[0] == expected["nq"]


@of_kind(THRESHOLD_CASES, "em_minsum_tight")
def test_the_surrogate_score_needs_its_sensitivity_of_two(case: Any) -> None:
    """Ideal weights a**K on the scores, on two neighbors: above a**-2, what a sensitivity of 1 would allow."""
    given, base = case["input"], Fraction(case["input"]["em_base"])
    concepts, scored = FiniteClass(given["C_tables"]), FiniteClass(given["H_tables"])

    def chance(users: Users) -> Fraction:
        shifted = [[(x - 1, y) for x, y in user] for user in users]
        weights = [base ** int(k) for k in surrogate_scores(concepts, scored, user_data(shifted, 1), 0)]
        return Fraction(weights[0]) / sum(weights)

    first, second = chance(given["z"]), chance(given["z_prime"])
    assert (str(first), str(second)) == (case["expect"]["P_h1_z"], case["expect"]["P_h1_z_prime"])
    assert base**-2 < first / second < base**-4


# --- against the reference


@pytest.mark.parametrize("seed", range(20))
def test_counts_of_random_classes(seed: int) -> None:
    rng = random.Random(seed)
    points, m, n = rng.randint(2, 5), rng.randint(1, 6), rng.randint(2, 9)
    tables = rng.sample(list(itertools.product((0, 1), repeat=points)), min(2**points, rng.randint(2, 12)))
    users = random_users(rng, n, m, range(points))
    hypotheses, data = as_dicts(tables), user_data(users, m)
    errors = ClassErrors(FiniteClass(tables), data)
    above = [[oracle.errors_above(h, users, t, m) for h in hypotheses] for t in range(m)]
    for t in range(m):
        assert errors.above(t).tolist() == above[t]
    assert errors.least().tolist() == [min(counts) for counts in above]
    assert errors.mistakes().tolist() == [[oracle.mistakes(h, user) for user in users] for h in hypotheses]
    for tau in range(1, m + 2):
        assert clipped_pairwise_scores(errors.mistakes(), tau).tolist() == oracle.clipped_pairwise(
            hypotheses, users, tau
        )
    others = rng.sample(list(itertools.product((0, 1), repeat=points)), 3)
    for t in range(m):
        scores = surrogate_scores(FiniteClass(others), FiniteClass(tables), data, t)
        assert scores.tolist() == [oracle.surrogate_score(as_dicts(others), h, users, t, m) for h in hypotheses]
        # With h in the class and s = 0 the score is that of h itself.
        proper = surrogate_scores(FiniteClass(tables), FiniteClass(tables), data, t)
        assert proper.tolist() == above[t]


def test_stumps_of_one_feature_are_compared_with_other_classes() -> None:
    """Their points are rows of one number, those of other classes numbers."""
    rng = random.Random(5)
    users = random_users(rng, 12, 3, range(1, 5))
    data, stumps = user_data(users, 3), DecisionStumps([[0.5, 1.5, 2.5, 3.5, 4.5]])
    thresholds = [2 * u for u in range(5)]
    expected = surrogate_scores(PointFunctions(4), Thresholds(4), data, 1)
    assert surrogate_scores(PointFunctions(4), stumps, data, 1)[thresholds].tolist() == expected.tolist()
    of_stumps = surrogate_scores(stumps, stumps, data, 1)
    assert of_stumps.tolist() == ClassErrors(stumps, data).above(1).tolist()


def test_parts_of_a_long_list_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    users = random_users(rng, 30, 4, range(1, 41))
    data, kind = user_data(users, 4), Intervals(40)
    representation = HashedPointFunctions(40, alpha=0.005, beta=0.4, seed=bytes(32))
    whole, scores = ClassErrors(kind, data), surrogate_scores(PointFunctions(40), representation, data, 1)
    assert len(list(whole._tables())) == 1
    found = whole.above(1), whole.least(), whole.mistakes()
    monkeypatch.setattr(class_errors, "CELLS", 1)
    assert len(list(whole._tables())) == 4
    for once, in_parts in zip(found, (whole.above(1), whole.least(), whole.mistakes()), strict=True):
        assert np.array_equal(once, in_parts)
    assert representation.size > 512
    assert np.array_equal(surrogate_scores(PointFunctions(40), representation, data, 1), scores)


def distribution(learner: Any, users: Users) -> Any:
    data = user_data(users, 1)
    learner.set_params(enrolled=tuple(range(len(users))))
    return learner.output_distribution(data.X, data.labels, groups=data.users)


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("seed", range(6))
def test_pmfs_are_those_of_the_scores(seed: int, mechanism: str) -> None:
    """Each learner's exact distribution is that of its mechanism on the scores by definition."""
    rng = random.Random(seed)
    m, alpha = 3, 0.4
    concepts = FiniteClass(list(itertools.product((0, 1), repeat=3))[1:7])
    hypotheses = as_dicts(concepts.matrix.tolist())
    users = [*random_users(rng, 5, m + 2, range(3)), [(0, 1)]]
    first = [user[:m] for user in users]

    def em(scores: list[int], sensitivity: int = 1, epsilon: Any = 2) -> Any:
        kind = ExponentialMechanism if mechanism == "exponential" else PermuteAndFlip
        found = kind(epsilon=epsilon, sensitivity=sensitivity).pmf(scores)
        if mechanism == "permute-and-flip":
            # By all orders of the candidates; integer weights and the rate are within 1e-9 of the ideal ones.
            coins = [Fraction(math.exp(-epsilon * (score - min(scores)) / (2 * sensitivity))) for score in scores]
            for mass, ideal in zip(found.fractions(), flips.by_orders(coins), strict=True):
                assert abs(mass - ideal) < Fraction(1, 10**9)
        return found

    # floor(1 / 0.4) = 2 rows count
    realizable = RealizablePACClassifier(
        epsilon=2, mechanism=mechanism, concepts=concepts, m=m, alpha=alpha, classes=(0, 1)
    )
    assert (
        distribution(realizable, users).fractions()
        == em([oracle.any_error(h, users, 2) for h in hypotheses]).fractions()
    )
    by_score = AgnosticPACClassifier(epsilon=2, mechanism=mechanism, concepts=concepts, m=m, classes=(0, 1))
    wanted = em([oracle.errors_above(h, first, 0, m) for h in hypotheses])
    assert distribution(by_score, users).fractions() == wanted.fractions()
    for tau in (1, 2, 9):
        by_pairs = AgnosticPACClassifier(
            epsilon=2, mechanism=mechanism, concepts=concepts, m=m, method="pairwise", tau=tau, classes=(0, 1)
        )
        wanted = em(oracle.clipped_pairwise(hypotheses, first, tau), 2 * min(tau, m))
        assert distribution(by_pairs, users).fractions() == wanted.fractions()
    unclipped = AgnosticPACClassifier(
        epsilon=2, mechanism=mechanism, concepts=concepts, m=m, method="pairwise", classes=(0, 1)
    )
    wanted = em([sum(oracle.mistakes(h, user) for user in first) for h in hypotheses], m)
    assert distribution(unclipped, users).fractions() == wanted.fractions()
    one = [user[:1] for user in users]
    item = AgnosticPACClassifier(
        epsilon=2, mechanism=mechanism, concepts=concepts, m=1, method="surrogate", classes=(0, 1)
    )
    wanted = em([oracle.errors_above(h, one, 0, 1) for h in hypotheses])
    assert distribution(item, users).fractions() == wanted.fractions()
    few = FiniteClass([[0, 0, 1], [0, 1, 1]])
    improper = AgnosticPACClassifier(
        epsilon=2, mechanism=mechanism, concepts=few, representation=concepts, m=1, method="surrogate", classes=(0, 1)
    )
    table = as_dicts(few.matrix.tolist())
    wanted = em([oracle.surrogate_score(table, h, one, 0, 1) for h in hypotheses], 2)
    assert distribution(improper, users).fractions() == wanted.fractions()


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_pmf_with_a_private_t_mixes_over_t(mechanism: str) -> None:
    """For m = 4 the candidates are t = 0 and t = 2 at most, from first-crossing scores of the least errors."""
    from userdp.learners.tolerance import candidates_for_t, first_crossing_scores

    m, rng = 8, random.Random(4)
    concepts = Thresholds(3)
    hypotheses = [{x: int(x > u) for x in (1, 2, 3)} for u in range(4)]
    users = random_users(rng, 6, m, (1, 2, 3))
    learner = AgnosticPACClassifier(epsilon=3, concepts=concepts, m=m, mechanism=mechanism, classes=(0, 1))
    candidates = candidates_for_t(m)
    assert len(candidates) > 1
    counts = {t: [oracle.errors_above(h, users, t, m) for h in hypotheses] for t in candidates}
    least = np.array([min(counts[t]) for t in candidates])
    choice = ExponentialMechanism(epsilon=Fraction(9, 10), sensitivity=1).pmf(first_crossing_scores(least, 6))
    kind = ExponentialMechanism if mechanism == "exponential" else PermuteAndFlip
    selection = kind(epsilon=Fraction(21, 10), sensitivity=1)
    wanted = [Fraction(0)] * 4
    for t, chance in zip(candidates, choice.fractions(), strict=True):
        for u, mass in enumerate(selection.pmf(counts[t]).fractions()):
            wanted[u] += chance * mass
    assert distribution(learner, users).fractions() == wanted


@pytest.mark.parametrize("m", [1, 3, 6])
def test_thresholds_one_by_one_and_in_groups_have_the_same_pmf(m: int) -> None:
    """Two ways to the same selection; their weights are rounded in different ways, by less than 2**-30."""
    users = random_users(random.Random(m), 9, m + 1, range(1, 8))
    one_by_one = distribution(AgnosticPACClassifier(epsilon=2, concepts=Thresholds(7), m=m, classes=(0, 1)), users)
    grouped = distribution(ThresholdClassifier(epsilon=2, domain_size=7, m=m, classes=(0, 1)), users)
    assert one_by_one.outputs == grouped.outputs
    for p, q in zip(one_by_one.fractions(), grouped.fractions(), strict=True):
        assert abs(p - q) <= p / 2**30


# --- sensitivities


def test_sensitivities_hold_and_are_attained() -> None:
    """All pairs of users with up to two rows at two points, and all replacements of the first of them."""
    m, all_functions = 2, FiniteClass(list(itertools.product((0, 1), repeat=2)))
    concepts, improper = FiniteClass([[0, 0], [1, 1]]), FiniteClass([[0, 0], [0, 1]])
    examples = list(itertools.product((0, 1), repeat=2))
    users = [user for rows in range(m + 1) for user in itertools.combinations_with_replacement(examples, rows)]

    def scores(dataset: Users) -> dict[str, Any]:
        data = user_data(dataset, m)
        errors = ClassErrors(all_functions, data)
        return {
            "any error": ClassErrors(all_functions, data.first(1)).above(0),
            "more than 0": errors.above(0),
            "more than 1": errors.above(1),
            "least": errors.least(),
            "pairs, tau = 1": clipped_pairwise_scores(errors.mistakes(), 1),
            "pairs, tau = 5": clipped_pairwise_scores(errors.mistakes(), 5),
            "surrogate": surrogate_scores(concepts, improper, data, 0),
            "surrogate, proper": surrogate_scores(all_functions, all_functions, data, 0),
        }

    found = {dataset: scores(dataset) for dataset in itertools.product(users, repeat=2)}
    worst = dict.fromkeys(next(iter(found.values())), 0)
    for other in users:
        for first, second in itertools.combinations(users, 2):
            for name, values in found[first, other].items():
                worst[name] = max(worst[name], int(np.abs(values - found[second, other][name]).max()))
    assert worst == {
        "any error": 1,
        "more than 0": 1,
        "more than 1": 1,
        "least": 1,
        "pairs, tau = 1": 2,
        "pairs, tau = 5": 4,
        "surrogate": 2,
        "surrogate, proper": 1,
    }


# --- utility, and mistakes that would lose it


def clear_people(n: int, m: int, noise: float = 0.15) -> Users:
    """Labels [x > 3] on random points 1, ..., 8, some of them wrong."""
    rng = random.Random(8)
    rows = [[(rng.randint(1, 8), rng.random() < noise) for _ in range(m)] for _ in range(n)]
    return [[(x, int((x > 3) ^ wrong)) for x, wrong in user] for user in rows]


@pytest.mark.parametrize("method", ["score", "pairwise", "surrogate"])
def test_the_best_hypothesis_is_chosen(method: str) -> None:
    learner = AgnosticPACClassifier(epsilon=4, concepts=Thresholds(8), m=8, method=method, classes=(0, 1))
    pmf = distribution(learner, clear_people(400, 8))
    assert pmf.fractions()[3] > Fraction(99, 100)


def test_the_realizable_learner_chooses_what_is_right() -> None:
    learner = RealizablePACClassifier(epsilon=1, concepts=Thresholds(8), m=8, classes=(0, 1))
    assert distribution(learner, clear_people(100, 8, noise=0)).fractions()[3] > Fraction(99, 100)


def test_with_the_sign_as_printed_the_worst_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """GKKMMZ23 prints psi with the opposite sign: then the mistakes speak for a hypothesis."""
    people = clear_people(400, 8)
    learner = AgnosticPACClassifier(epsilon=4, concepts=Thresholds(8), m=8, method="pairwise", classes=(0, 1))
    right = distribution(learner, people).fractions()
    mistakes = ClassErrors.mistakes
    monkeypatch.setattr(ClassErrors, "mistakes", lambda self: 8 - mistakes(self))
    reversed_sign = distribution(learner, people).fractions()
    assert right[3] > Fraction(99, 100)
    assert reversed_sign[3] < Fraction(1, 100)
    assert reversed_sign[8] > Fraction(99, 100)  # x > 8 errs the most


def test_a_representation_is_chosen_from() -> None:
    """Point functions on 10**12 points by hashing, with every method that takes a representation."""
    n, secret = 10**12, 123_456_789_012
    representation = HashedPointFunctions(n, alpha=0.1, beta=0.01, seed=bytes(range(32)))
    # Half of the rows are the secret point.
    users = [[(secret if j % 2 else (7919 * (i + j)) % n + 1, j % 2) for j in range(4)] for i in range(300)]
    data = user_data(users, 4)
    for learner in (
        RealizablePACClassifier(epsilon=2, concepts=representation, m=4, alpha=0.3, classes=(0, 1)),
        AgnosticPACClassifier(epsilon=2, concepts=representation, m=4, classes=(0, 1)),
    ):
        fitted = learner.fit(data.X, data.labels, groups=data.users)
        assert 0 <= fitted.concept_ < representation.size
        chosen = fitted.predict(data.X)
        assert np.mean(chosen != data.labels) < 0.25


def test_where_all_are_good_enough_a_fixed_hypothesis_is_taken() -> None:
    """The estimate of the least error is then nearly 1; the best of the two would be the second."""
    kind = FiniteClass([[0, 0], [0, 1]])
    users = [[(0, 1), (0, 1), (0, 1), (1, 1)]] * 9 + [[(0, 1)] * 4] * 200
    learner = AgnosticPACClassifier(epsilon=80, concepts=kind, m=4, alpha=0.9, method="surrogate", classes=(0, 1))
    assert distribution(learner, users).fractions()[0] > Fraction(99, 100)
    assert ClassErrors(kind, user_data(users, 4)).above(3).tolist() == [209, 200]
