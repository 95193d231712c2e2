"""Numbers of users for an accuracy: shipped methods on the hard distributions themselves, which they must miss.

At one user less than the bound, the exact probability of success of a shipped method on the packing's distributions is
below 1 - beta for one of them. And at 500 random points no proved number of users is below the bound.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.mechanisms import ApproximatePrivateMode, PlannedPrivateMode, PurePrivateMode, UnboundedDiscreteLaplace
from userdp.planning import lower_bound, selection_users, user_complexity

pytest.importorskip("sklearn")

from userdp.concepts import FiniteClass
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.learners import AgnosticPACClassifier, HypothesisSelector, RealizablePACClassifier, ThresholdClassifier


def binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


# --- exact probabilities on the hard distributions


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("agreement", ["0.6", "0.7", "0.9", "1"])
def test_selections_miss_the_common_item(agreement: str, mechanism: Any) -> None:
    """Two items, of which users have the common one with a probability; and many items with unanimous users."""
    share = float(agreement)
    for epsilon, beta in itertools.product((0.5, 1, 2), (0.2, 0.05)):
        found = lower_bound("selection", n_items=2, agreement=agreement, epsilon=epsilon, beta=beta)
        assert found.n_users is not None
        selection = PurePrivateMode(epsilon=epsilon, n_items=2, mechanism=mechanism)
        n = found.n_users - 1
        right = [float(selection.probability(0, {0: k, 1: n - k})) for k in range(n + 1)]
        assert sum(mass * p for mass, p in zip(binomial(n, share), right, strict=True)) < 1 - beta
        if agreement == "1":
            for items in (3, 1000, 2**20):
                found = lower_bound("selection", n_items=items, agreement=1, epsilon=epsilon, beta=beta)
                many = PurePrivateMode(epsilon=epsilon, n_items=items)
                assert found.n_users is not None
                n = found.n_users - 1
                assert float(many.probability(1, {1: n})) < 1 - beta


def test_permute_and_flip_attains_the_bound_of_two_items() -> None:
    """Where the bound is met: one user more is enough, for the number that the mechanisms' own plans say."""
    found = lower_bound("selection", n_items=2, agreement="0.9", epsilon=1, beta="1/30")
    assert found.n_users == 8
    selection = PurePrivateMode(epsilon=1, n_items=2, mechanism="permute-and-flip")
    for n, enough in ((7, False), (8, True)):
        right = [float(selection.probability(0, {0: k, 1: n - k})) for k in range(n + 1)]
        assert (sum(mass * p for mass, p in zip(binomial(n, 0.9), right, strict=True)) >= 1 - 1 / 30) is enough


def successes(draw: Callable[[tuple[int, ...]], float], masses: list[float], n: int) -> float:
    """The expectation of a probability over how many of n users are of each type."""
    total = 0.0
    for counts in itertools.product(range(n + 1), repeat=len(masses)):
        if sum(counts) == n:
            ways, left = 1.0, n
            for count, mass in zip(counts, masses, strict=True):
                ways *= math.comb(left, count) * mass**count
                left -= count
            total += ways * draw(counts)
    return total


@pytest.mark.parametrize(("m", "alpha"), [(1, 0.3), (2, 0.45)])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_hypothesis_selection_misses(m: int, alpha: float, mechanism: Any) -> None:
    """Two coins, more than alpha apart; users are of m + 1 types."""
    epsilon, beta = 2.0, 0.1
    found = lower_bound("hypothesis-selection", n_hypotheses=2, alpha=alpha, beta=beta, m=m, epsilon=epsilon)
    assert found.n_users is not None
    n = found.n_users - 1
    assert 2 <= n <= 12
    coins = [[(1 + alpha) / 2, (1 - alpha) / 2], [(1 - alpha) / 2, (1 + alpha) / 2]]
    selector = HypothesisSelector(candidates=coins, epsilon=epsilon, m=m, alpha=alpha, mechanism=mechanism)

    def right(which: int) -> float:
        def draw(counts: tuple[int, ...]) -> float:
            rows = [
                [int(place < ones)] for ones, count in enumerate(counts) for _ in range(count) for place in range(m)
            ]
            pmf = selector.output_distribution(rows, groups=np.repeat(np.arange(n), m))
            return float(pmf.probabilities[list(pmf.outputs).index(which)])

        return successes(draw, binomial(m, coins[which][1]), n)

    assert min(right(0), right(1)) < 1 - beta


def test_hypothesis_selection_misses_among_many() -> None:
    """Disjoint candidates, and users who all say which one it is: whatever m, here 1 and 5."""
    epsilon, beta, k = 1.0, 0.1, 12
    found = lower_bound("hypothesis-selection", n_hypotheses=k, alpha=0.9, beta=beta, m=5, epsilon=epsilon)
    assert found.n_users is not None
    assert found.obstacle == "few users"
    n = found.n_users - 1
    for m in (1, 5):
        selector = HypothesisSelector(candidates=np.eye(k), epsilon=epsilon, m=m, alpha=0.9)
        pmf = selector.output_distribution(np.full((n * m, 1), 3), groups=np.repeat(np.arange(n), m))
        assert pmf.probabilities[list(pmf.outputs).index(3)] < 1 - beta


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_hypothesis_selection_misses_what_is_rare(mechanism: Any) -> None:
    """Candidates with a symbol of their own, which a user shows with probability alpha."""
    epsilon, beta, k, alpha = 1.0, 0.2, 6, 0.3
    found = lower_bound("hypothesis-selection", n_hypotheses=k, alpha=alpha, beta=beta, epsilon=epsilon)
    assert found.n_users is not None
    assert found.obstacle == "private"
    n = found.n_users - 1
    assert n > int(found.terms["few users"])
    masses = np.hstack([np.full((k, 1), 1 - alpha), np.eye(k) * alpha])
    selector = HypothesisSelector(candidates=masses, epsilon=epsilon, m=1, alpha=alpha, mechanism=mechanism)
    chances = []
    for which in range(k):
        total = 0.0
        for shown, mass in enumerate(binomial(n, alpha)):
            rows = [[which + 1]] * shown + [[0]] * (n - shown)
            pmf = selector.output_distribution(rows, groups=np.arange(n))
            total += mass * float(pmf.probabilities[list(pmf.outputs).index(which)])
        chances.append(total)
    assert min(chances) < 1 - beta


def test_thresholds_miss_what_is_rare() -> None:
    """Points beside the threshold that a user shows with a small probability, and otherwise the first point."""
    epsilon, beta, size, alpha = 1.0, 0.3, 8, 0.2
    found = lower_bound("threshold", domain_size=size, alpha=alpha, beta=beta, epsilon=epsilon)
    n = int(found.terms["private"]) - 1
    assert n > int(found.terms["few users"])
    learner = ThresholdClassifier(domain_size=size, epsilon=epsilon, m=1, classes=(0, 1))

    def right(u: int) -> float:
        def draw(counts: tuple[int, ...]) -> float:
            _, below, above = counts
            X = [[1]] * counts[0] + [[u]] * below + [[u + 1]] * above
            pmf = learner.output_distribution(X, [0] * (n - above) + [1] * above, groups=np.arange(n))
            return float(pmf.probabilities[list(pmf.outputs).index(u)])

        return successes(draw, [1 - 2 * alpha, alpha, alpha], n)

    assert min(right(u) for u in range(1, size)) < 1 - beta


def test_thresholds_miss() -> None:
    """All points beside the threshold: a user has the one or the other."""
    epsilon, beta, size = 1.0, 0.2, 9
    found = lower_bound("threshold", domain_size=size, alpha=0.45, beta=beta, epsilon=epsilon)
    assert found.n_users is not None
    n = int(found.terms["few users"]) - 1
    assert n >= 2
    learner = ThresholdClassifier(domain_size=size, epsilon=epsilon, m=1, classes=(0, 1))

    def right(u: int) -> float:
        total = 0.0
        for above, mass in enumerate(binomial(n, 0.5)):
            X = [[u + 1]] * above + [[u]] * (n - above)
            y = [1] * above + [0] * (n - above)
            pmf = learner.output_distribution(X, y, groups=np.arange(n))
            total += mass * float(pmf.probabilities[list(pmf.outputs).index(u)])
        return total

    assert min(right(u) for u in range(1, size)) < 1 - beta


def test_concepts_miss() -> None:
    """Both points of the cube evenly, without noise: every concept is the truth once."""
    epsilon, beta = 1.0, 0.1
    cube = FiniteClass([[0, 0], [0, 1], [1, 0], [1, 1]])
    for task, learner in (
        ("pac", RealizablePACClassifier(concepts=cube, epsilon=epsilon, m=1, alpha=0.2, classes=(0, 1))),
        ("agnostic", AgnosticPACClassifier(concepts=cube, epsilon=epsilon, m=1, alpha=0.2, classes=(0, 1))),
    ):
        found = lower_bound(task, vc_dimension=2, alpha=0.2, beta=beta, epsilon=epsilon)
        n = int(found.terms["few users"]) - 1
        assert n >= 2
        chances = []
        for concept in range(4):
            labels = (concept >> 1, concept & 1)
            total = 0.0
            for second, mass in enumerate(binomial(n, 0.5)):
                X = [[1]] * second + [[0]] * (n - second)
                pmf = learner.output_distribution(X, [labels[x] for (x,) in X], groups=np.arange(n))
                total += mass * float(pmf.probabilities[list(pmf.outputs).index(concept)])
            chances.append(total)
        assert min(chances) < 1 - beta


def test_distributions_of_one_symbol_miss() -> None:
    """All users have one symbol: an answer within alpha of it."""
    epsilon, beta, k, alpha = 1.0, 0.1, 3, 0.3
    found = lower_bound("discrete", n_symbols=k, alpha=alpha, beta=beta, epsilon=epsilon, m=10**6)
    n = int(found.terms["few users"]) - 1
    assert n >= 2
    for m in (1, 4):
        learner = DiscreteDistribution(n_symbols=k, epsilon=epsilon, alpha=alpha, m=m, method="joint")
        chances = []
        for symbol in range(k):
            rows = np.full((n * m, 1), symbol)
            pmf = learner.output_distribution(rows, groups=np.repeat(np.arange(n), m))
            near = [1 - masses[symbol] / sum(masses) <= alpha for masses in pmf.outputs]
            chances.append(float(pmf.probabilities[np.array(near)].sum()))
        assert min(chances) < 1 - beta


def test_counts_miss() -> None:
    """Noise of one count, in closed form: 2 a^(k + 1) / (1 + a) beyond k, and what is drawn from."""
    rng = random.Random(7)
    for _ in range(100):
        epsilon, alpha = rng.choice([0.1, 0.5, 1, 2]), rng.choice([0.001, 0.01, 0.1])
        beta = rng.choice([0.5, 0.1, 0.01, 1e-4])
        found = lower_bound("count", alpha=alpha, beta=beta, epsilon=epsilon)
        assert found.n_users is not None
        n, a = found.n_users - 1, math.exp(-epsilon)
        if n:
            assert 2 * a ** (math.floor(alpha * n) + 1) / (1 + a) > beta
    noise = UnboundedDiscreteLaplace(epsilon=1, sensitivity=1)
    found = lower_bound("count", alpha="0.02", beta="0.05", epsilon=1)
    assert found.n_users is not None
    most = math.floor(0.02 * (found.n_users - 1))
    assert 1 - sum(noise.probability(z).upper for z in range(-most, most + 1)) > 0.05


def test_theorem_8_is_the_bound_at_n_users() -> None:
    """The number of users for a root mean square error is the inverse of the error at a number of users."""
    for epsilon, delta, alpha in itertools.product((0.3, 1), (0, 1e-6), (0.4, 0.02)):
        found = lower_bound("mean", alpha=alpha, epsilon=epsilon, delta=delta, m=10**15)
        n = int(found.terms["few users"])
        errors = [lower_bound("mean", n_users=users, epsilon=epsilon, delta=delta).value for users in (n - 1, n)]
        assert errors[0] > alpha**2 >= errors[1] * (1 - 1e-5)


def test_theorem_7_is_the_bound_at_n_users() -> None:
    given: dict[str, Any] = {"n_hypotheses": 2**64, "m": 9, "epsilon": 0.5}
    found = lower_bound("finite-class", alpha=1e-4, **given)
    at = lower_bound("finite-class", n_users=found.n_users, **given)
    # The code of the two is not the same, and the newer one is never worse.
    assert at.value < 1e-4
    for name, old in {"statistical": "sampling", "private": "private"}.items():
        n = found.terms[old]
        assert lower_bound("finite-class", n_users=int(n), **given).terms[name] <= 1e-4


# --- 500 points


def points() -> Iterator[tuple[str, int, int]]:
    """A method, its proved number of users, and the bound, at random parameters."""
    rng = random.Random(20261123)

    def pick(*values: Any) -> Any:
        return rng.choice(values)

    for _ in range(50):
        epsilon, alpha, beta, m = (
            pick(0.1, 0.5, 1.0, 3.0),
            pick(0.05, 0.1, 0.2, 0.4),
            pick(0.02, 0.1, 0.3),
            pick(1, 4, 64),
        )
        shared: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "beta": beta, "m": m}

        def bound(task: str, shared: dict[str, Any] = shared, **sizes: Any) -> int:
            users = lower_bound(task, **shared, **sizes).n_users
            assert users is not None
            return users

        d = pick(1, 2, 3)
        cube = FiniteClass([list(map(int, f"{i:0{d}b}")) for i in range(2**d)])
        yield (
            "realizable",
            RealizablePACClassifier(concepts=cube, **shared, classes=(0, 1)).users_needed(),
            bound("pac", vc_dimension=d),
        )
        wide: dict[str, Any] = {"dimension": pick(2, 16), "delta": "1e-6", "epsilon": epsilon, "m": m, "alpha": 0.1}
        users = lower_bound("mean", **wide).n_users
        assert users is not None
        yield "mean of columns", user_complexity("mean", method="gaussian", homogeneous=True, **wide).n_users, users
        k = pick(2, 5, 30)
        masses = np.eye(k)
        yield (
            "hypothesis selection",
            HypothesisSelector(candidates=masses, **shared).users_needed(),
            bound("hypothesis-selection", n_hypotheses=k),
        )
        k = pick(2, 3, 8)
        yield "discrete", DiscreteDistribution(n_symbols=k, **shared).users_needed(), bound("discrete", n_symbols=k)
        columns = pick(1, 3)
        yield (
            "product",
            ProductDistribution(n_symbols=k, n_columns=columns, **shared).users_needed(),
            bound("product", n_symbols=k, dimension=columns),
        )
        size = pick(1.0, 20.0)
        yield (
            "normal mean",
            GaussianMean(mean_bound=size, n_columns=columns, **shared).users_needed(),
            bound("gaussian-mean", mean_bound=size, dimension=columns),
        )
        kappa = pick(1.5, 30.0)
        yield (
            "normal",
            GaussianDistribution(mean_bound=size, kappa=kappa, **shared).users_needed(),
            bound("gaussian", mean_bound=size, kappa=kappa),
        )
        items, agreement, delta = pick(2, 3, 20), pick("0.6", "0.75", "0.9"), pick("1e-3", "1e-6")
        third = Fraction(str(beta)) / 3
        selection: dict[str, Any] = {"n_items": items, "agreement": agreement, "epsilon": epsilon, "beta": third}
        mode = PurePrivateMode(epsilon=epsilon, n_items=items, mechanism=pick("exponential", "permute-and-flip"))
        yield "pure mode", mode.users_needed(agreement=agreement, beta=beta), users_of(**selection)
        approximate = ApproximatePrivateMode(epsilon=epsilon, delta=delta)
        yield (
            "approximate mode",
            approximate.users_needed(agreement=agreement, beta=beta),
            users_of(delta=delta, **selection),
        )
        accuracy = pick(0.003, 0.03, 0.3)
        error: dict[str, Any] = {"m": m, "epsilon": epsilon, "alpha": accuracy, "homogeneous": True}
        users = lower_bound("mean", alpha=accuracy, m=m, epsilon=epsilon).n_users
        assert users is not None
        yield "mean", user_complexity("mean", method="laplace", **error).n_users, users


def users_of(**given: Any) -> int:
    users = lower_bound("selection", **given).n_users
    assert users is not None
    return users


def test_no_proved_number_is_below_the_bound() -> None:
    found = list(points())
    assert len(found) == 500
    assert not [point for point in found if point[1] < point[2]]
    # It is about something: most bounds say more than a user.
    assert sum(bound > 1 for _, _, bound in found) > 400


def test_planned_selections_are_not_below_the_bound() -> None:
    for items, agreement, beta in ((2, "0.9", "0.1"), (16, "0.9", "0.1"), (1024, "0.9", "0.1")):
        planned = PlannedPrivateMode.users_needed(epsilon=1, n_items=items, agreement=agreement, beta=beta)
        assert users_of(n_items=items, agreement=agreement, epsilon=1, beta=Fraction(beta) / 3) <= planned


def test_certified_optima() -> None:
    pytest.importorskip("highspy")
    given: dict[str, Any] = {"n_items": 16, "agreement": "0.9", "epsilon": 1}
    found = lower_bound("selection", **given, beta="1/30", certified=True)
    # The published number: every selection among 16 items needs 11 users.
    assert found.terms["certified optimum"] == found.n_users == 11 == selection_users(**given, beta="0.1").n_users
    assert found.obstacle == "certified optimum"
    assert max(value for name, value in found.terms.items() if name != "certified optimum") < 11


# --- the face


def test_what_is_vacuous_says_so() -> None:
    found = lower_bound("pac", alpha=0.05, beta="0.1", epsilon=8, vc_dimension=1)
    assert found.vacuous
    assert (found.obstacle, found.n_users) == (None, 1)
    assert "vacuous" in found.summary()
    assert lower_bound("testing", n_users=10**9, epsilon=1).vacuous
    full = lower_bound("agnostic", alpha=0.05, beta="0.1", m=16, epsilon=0.5, vc_dimension=10)
    assert not full.vacuous
    assert full.value == full.n_users == max(full.terms.values()) == full.terms[full.obstacle or ""]
    assert set(full.sources) == set(full.terms)
    assert "(the obstacle)" in full.summary()
    assert "Lemma 39" in full.summary()
    assert "all learners" in full.holds_for


def test_classes_by_their_size() -> None:
    """Some class of 2^d hypotheses shatters d points; what is known of the class goes first."""
    given: dict[str, Any] = {"alpha": 0.05, "beta": 0.1, "m": 4, "epsilon": 0.2}
    for task in ("pac", "agnostic"):
        by_points = [lower_bound(task, vc_dimension=d, **given).n_users for d in (1, 5, 9)]
        assert [lower_bound(task, n_hypotheses=k, **given).n_users for k in (3, 32, 1000)] == by_points
        assert lower_bound(task, n_hypotheses=1000, vc_dimension=5, **given).n_users == by_points[1]


def test_rows_and_pages() -> None:
    pytest.importorskip("pandas")
    full = lower_bound("agnostic", alpha=0.05, beta="0.1", m=16, epsilon=0.5, vc_dimension=10)
    assert list(full.to_frame("pandas")["value"]) == list(full.terms.values())
    assert "few users" in full._repr_html_()


@pytest.mark.parametrize("task", ["mean", "quantile", "agnostic", "hypothesis-selection", "discrete", "gaussian-mean"])
def test_more_of_anything_needs_fewer_users(task: str) -> None:
    sizes: dict[str, Any] = {
        "mean": {"dimension": 8},
        "quantile": {"domain_size": 100},
        "agnostic": {"vc_dimension": 12},
        "hypothesis-selection": {"n_hypotheses": 40},
        "discrete": {"n_symbols": 12},
        "gaussian-mean": {"dimension": 6, "mean_bound": 4},
    }[task]

    def users(**given: Any) -> int:
        found = lower_bound(task, **({"alpha": 0.1, "beta": 0.1, "m": 4, "epsilon": 0.5} | given), **sizes).n_users
        assert found is not None
        return found

    for name, values in {
        "alpha": (0.02, 0.05, 0.1, 0.2, 0.3),
        "beta": (0.01, 0.1, 0.3, 0.45),
        "m": (1, 2, 16, 1000, 10**12),
        "epsilon": (0.01, 0.1, 1, 10, 1e6),
        "delta": (0, 1e-12, 1e-6, 1e-2, 0.5),
    }.items():
        found = [users(**{name: value}) for value in values]
        assert found == sorted(found, reverse=True), name


def test_what_floats_say_of_levels() -> None:
    """Rational levels, tiny and huge ones."""
    assert users_of(n_items=5, agreement=1, epsilon=LogRatio(2), beta=0.1) == users_of(
        n_items=5, agreement=1, epsilon="ln(2)", beta=0.1
    )
    assert users_of(n_items=5, agreement=1, epsilon="1e-290", beta=0.1) == 2**60
    assert lower_bound("selection", n_items=5, agreement=1, epsilon=1e300, beta=0.1).n_users == 1


def test_numbers_beyond_floats() -> None:
    """Far beyond all floats: capped at 2**60 users, and refused or read like any other number."""
    assert lower_bound("pac", alpha=0.1, beta=0.1, epsilon="1e-320", prdim=9.5).n_users == 2**60
    assert lower_bound("finite", beta=0.1, epsilon=1, item_users=10**400).n_users == 2**60
    assert lower_bound("finite", beta=0.1, epsilon=1, n_told_apart=5, kl=10**400).n_users == 4
    assert lower_bound("finite", beta=0.1, epsilon=1, n_told_apart=5, kl="1e-320").n_users == 2**60
    assert lower_bound("mean", beta=0.1, epsilon=1, alpha=0.1, m=10**400).n_users == 3
    for name in ("norm", "neighbors", "model"):
        task = {"norm": "mean", "neighbors": "count", "model": "regression"}[name]
        with pytest.raises(ValueError, match=f"{name} must be"):
            lower_bound(task, alpha=0.1, beta=0.1, epsilon=1, **{name: np.array(["l2", "max"])})


Call = Callable[[], Any]
GIVEN: dict[str, Any] = {"alpha": 0.1, "beta": 0.1, "epsilon": 1}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lower_bound("median", **GIVEN), ValueError, "'mean', .*'agnostic'.*; got 'median'"),
        (lambda: lower_bound("mean", n_users=5, **GIVEN), TypeError, "n_users and alpha are both given"),
        (lambda: lower_bound("mean", epsilon=1), TypeError, "n_users or alpha is needed"),
        (lambda: lower_bound("mean", epsilon=1, beta=0.1, n_users=3), TypeError, "beta goes with alpha"),
        (lambda: lower_bound("agnostic", n_users=5, epsilon=1), ValueError, "alpha asks for the number of users"),
        (lambda: lower_bound("testing", **GIVEN), ValueError, "n_users asks for the error"),
        (lambda: lower_bound("agnostic", **GIVEN), TypeError, "vc_dimension, n_hypotheses or prdim is needed"),
        (lambda: lower_bound("discrete", **GIVEN), TypeError, "n_symbols is needed for task='discrete'"),
        (
            lambda: lower_bound("discrete", n_symbols=4, vc_dimension=3, **GIVEN),
            TypeError,
            "vc_dimension is of 'pac', ",
        ),
        (lambda: lower_bound("mean", n_users=5, epsilon=1, n_symbols=3), TypeError, "n_symbols goes with alpha"),
        (
            lambda: lower_bound("agnostic", alpha=1, beta=0.1, epsilon=1, vc_dimension=3),
            ValueError,
            "alpha must be below",
        ),
        (lambda: lower_bound("agnostic", alpha=0.1, epsilon=1, vc_dimension=3), TypeError, "beta is needed"),
        (lambda: lower_bound("mean", m=0, **GIVEN), ValueError, "m must be at least 1"),
        (lambda: lower_bound("mean", alpha=0, beta=0.1, epsilon=1), ValueError, "alpha must be > 0"),
        (lambda: lower_bound("mean", alpha=1e-10, beta=0.1, epsilon=1), ValueError, "alpha must be at least 1e-09"),
        (lambda: lower_bound("mean", alpha=0.1, beta=1, epsilon=1), ValueError, "beta must be strictly between"),
        (lambda: lower_bound("mean", norm="l1", **GIVEN), ValueError, "norm must be one of 'l2', 'max'"),
        (lambda: lower_bound("selection", n_items=2, agreement=0.9, **GIVEN), TypeError, "alpha is not of"),
        (
            lambda: lower_bound("selection", n_items=2, agreement=0.5, beta=0.1, epsilon=1),
            ValueError,
            "agreement must be",
        ),
        (lambda: lower_bound("finite", beta=0.1, epsilon=1), TypeError, "n_told_apart or item_users"),
        (lambda: lower_bound("finite", beta=0.1, epsilon=1, item_users=9, kl=1), TypeError, "kl and tv go with"),
        (lambda: lower_bound("regression", model="cubic", **GIVEN), ValueError, "model must be"),
        (lambda: lower_bound("gaussian", mean_bound=1, kappa=0.5, **GIVEN), ValueError, "kappa must be at least 1"),
        (lambda: lower_bound("pac", prdim=-1, **GIVEN), ValueError, "prdim must be from 0"),
        (lambda: lower_bound("product", n_symbols=2**20, dimension=2, **GIVEN), ValueError, "at most 1048576"),
        (lambda: lower_bound("quantile", domain_size=9, share=1, **GIVEN), ValueError, "share must be strictly"),
    ],
)
def test_bad_numbers(call: Call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
