"""Privacy losses of mechanisms against the exact distributions that they draw from, on all shifts and neighbors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from userdp import BudgetError, LogRatio
from userdp.accounting import PrivacyCost
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.algorithms import AdditiveAlgorithm, finite_algorithm
from userdp.audit import audit_item_level, audit_user_level
from userdp.mechanisms import (
    ApproximatePrivateMode,
    BiasedCoin,
    CorrelatedCounts,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    PartitionSelection,
    SparseHistogram,
    TruncatedDiscreteLaplace,
    UnboundedDiscreteLaplace,
)
from userdp.report import Report

LEVELS = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(5, 2), Fraction(9)]


def hockey_stick(p: list[Fraction], q: list[Fraction], level: Fraction) -> Fraction:
    return sum((max(x - level * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def assert_covers(loss: PLD, pairs: list[tuple[list[Fraction], list[Fraction]]], rounds: int = 1) -> None:
    """The loss of so many rounds is at least that of each pair, in both orders, at several levels."""
    whole = loss.self_compose(rounds)
    for level in LEVELS:
        upper = Fraction(whole.delta(LogRatio(level.numerator, level.denominator), relative=0.01).upper)
        for p, q in pairs:
            if rounds == 2:
                p, q = ([a * b for a in masses for b in masses] for masses in (p, q))
            assert hockey_stick(p, q, level) <= upper
            assert hockey_stick(q, p, level) <= upper


@pytest.mark.parametrize("arguments", [{"epsilon": 1, "sensitivity": 2}, {"epsilon": "ln(3)", "sensitivity": 3}])
def test_discrete_laplace(arguments: dict[str, Any]) -> None:
    noise = DiscreteLaplace(bounds=(0, 6), **arguments)
    loss = PLD.from_mechanism(noise)
    laws = [noise.pmf(value).fractions() for value in range(7)]
    near = [
        (p, q) for (a, p), (b, q) in itertools.combinations(enumerate(laws), 2) if b - a <= arguments["sensitivity"]
    ]
    assert_covers(loss, near)
    assert_covers(loss, near, rounds=2)
    # At the ends of a narrow range, all of epsilon is used, and no more is said.
    assert loss.epsilon(0).upper == pytest.approx(math.log(3) if arguments["epsilon"] == "ln(3)" else 1, rel=1e-12)
    assert noise.privacy_loss(1).epsilon(0).upper < loss.epsilon(0).upper
    assert not PLD.from_mechanism(DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 6))).distance


def test_discrete_laplace_by_scale_and_of_long_shifts() -> None:
    noise = DiscreteLaplace(scale=5, bounds=(0, 100))
    assert PLD.from_mechanism(noise, sensitivity=3) == PLD.discrete_laplace("1/5", 3)
    assert PLD.from_mechanism(noise, sensitivity=2**20) == PLD.discrete_laplace("1/5", 100)  # the width of the bounds
    with pytest.raises(TypeError, match="sensitivity is missing"):
        PLD.from_mechanism(noise)


def test_unbounded_discrete_laplace() -> None:
    noise = UnboundedDiscreteLaplace(epsilon="1/2", sensitivity=2)
    loss = PLD.from_mechanism(noise)
    assert loss == PLD.discrete_laplace("1/4", 2).within(Fraction(1, 2**2953))
    assert "within 1e-300" in repr(loss)
    assert PLD.from_mechanism(UnboundedDiscreteLaplace(scale=4), sensitivity=2) == loss


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_truncated_discrete_laplace(sensitivity: int) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=LogRatio(2, 1), delta="1/20")
    table, zeros = noise.pmf().fractions(), [Fraction(0)] * sensitivity
    pairs = [([*table, *zeros], [*zeros, *table])]
    loss = noise.privacy_loss(sensitivity)
    assert_covers(loss, pairs)
    assert_covers(loss, pairs, rounds=2)
    assert loss.epsilon("1/1000000").upper == math.inf  # the ends have more mass than that


@pytest.mark.parametrize("shift", [1, 2])
def test_discrete_gaussian_on_one_integer(shift: int) -> None:
    noise = DiscreteGaussian(sigma_squared="1/2")
    loss = PLD.from_mechanism(noise, sensitivity=shift)
    assert loss.distance == noise.distance
    table, zeros = noise.pmf(0).fractions(), [Fraction(0)] * shift
    pairs = [([*table, *zeros], [*zeros, *table])]
    assert_covers(loss, pairs)
    # And it is tight: the drawn noise has nearly that delta.
    exact = hockey_stick(*pairs[0], Fraction(3, 2))
    assert Fraction(loss.delta(LogRatio(3, 2)).upper) <= exact + Fraction(1, 10**12)


def test_discrete_gaussian_on_several_integers() -> None:
    # Two integers of sigma^2 = 6: a user moves one by 1, or both.
    noise = DiscreteGaussian(sigma_squared=6)
    loss = PLD.from_mechanism(noise, sensitivity=2, dimension=2)
    assert loss.distance == 2 * (noise.distance + Fraction(1, 2**112))
    ratio = 4.0 / (6 - 4)
    assert repr(loss).startswith(f"PrivacyLossDistribution(Gaussian noise (mu^2 = {ratio:.6g}), within")
    # One integer that moves by 2 is among the cases, exactly.
    table, zeros = noise.pmf(0).fractions(), [Fraction(0)] * 2
    assert_covers(loss, [([*table, *zeros], [*zeros, *table])])
    made_with = DiscreteGaussian(rho="1/50", sensitivity=3)
    assert made_with.privacy_loss() == PLD.discrete_gaussian(made_with.sigma_squared, 3).within(made_with.distance)
    with pytest.raises(ValueError, match="dimension=2: several integers need a sigma_squared above 4"):
        DiscreteGaussian(sigma_squared=2).privacy_loss(1, dimension=2)
    with pytest.raises(TypeError, match="sensitivity is missing"):
        PLD.from_mechanism(noise)


def test_exponential_mechanisms_are_of_bounded_range_with_their_roundings() -> None:
    # Losses of what is drawn differ from those of the exact rate, so that a lattice of these would be below them.
    choice = ExponentialMechanism(epsilon=1, sensitivity=1)
    loss = PLD.from_mechanism(choice)
    assert loss == PLD.bounded_range(1)
    p, q = (choice.pmf(scores).fractions() for scores in ([0, 1, 2, 5], [1, 0, 2, 4]))
    ratios = [x / y for x, y in zip(p, q, strict=True)]
    ideal = math.exp(0.5)
    assert any(
        abs(float(ratio) / float(ratios[0]) - ideal ** round(2 * math.log(ratio / ratios[0]))) > 1e-14
        for ratio in ratios
    )
    pairs = [
        (choice.pmf(list(x)).fractions(), choice.pmf(list(y)).fractions())
        for x, y in itertools.combinations(itertools.product(range(3), repeat=3), 2)
        if all(abs(a - b) <= 1 for a, b in zip(x, y, strict=True))
    ]
    assert_covers(loss, [(p, q), *pairs])
    assert_covers(loss, [(p, q)], rounds=2)
    monotone = ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)
    assert PLD.from_mechanism(monotone) == PLD.bounded_range(1, neighbors="add-remove")
    assert PLD.from_mechanism(GroupedExponentialMechanism(epsilon="1/2", sensitivity=3)) == PLD.bounded_range("1/2")


def test_what_has_a_cost() -> None:
    assert PLD.from_mechanism(PrivacyCost(bounded_range="1/2")) == PLD.bounded_range("1/2")
    assert PLD.from_mechanism(PrivacyCost(1, "1e-6")) == PLD.pure(1, "1e-6")
    assert PLD.from_mechanism(PrivacyCost(mu2="1/4", distance="1e-9")) == PLD.gaussian(2).within("1e-9")
    assert PLD.from_mechanism(PrivacyCost(1)) == PLD.pure(1)
    assert PLD.from_mechanism(PrivacyCost(mu2=0)) == PLD.gaussian(mu2=Fraction(1, 2**40))
    with pytest.raises(ValueError, match="rho alone"):
        PLD.from_mechanism(PrivacyCost(rho="1/10"))
    with pytest.raises(TypeError, match="takes no sensitivity"):
        PLD.from_mechanism(PrivacyCost(1), sensitivity=1)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_losses_are_for_the_neighbors_of_the_mechanism(neighbors: Any) -> None:
    made = [
        SparseHistogram(max_keys=2, threshold=20, epsilon=1, scale=2, neighbors=neighbors),
        PartitionSelection(epsilon=1, delta="1e-5", neighbors=neighbors),
        ApproximatePrivateMode(epsilon=1, delta="1e-5", neighbors=neighbors),
    ]
    for mechanism in made:
        loss = PLD.from_mechanism(mechanism)
        assert loss.neighbors == neighbors == mechanism.privacy_loss().neighbors
        pair = mechanism.cost.pair()
        assert pair is not None
        assert loss.delta(1).upper >= pair[1]
    counts = CorrelatedCounts(n_keys=2, max_keys=2, epsilon=1, delta="1e-5")
    assert PLD.from_mechanism(counts).neighbors == "add-remove"


def test_what_promises_nothing_has_no_loss() -> None:
    with pytest.raises(AttributeError, match="say no cost"):
        PLD.from_mechanism(BiasedCoin(probability="1/2"))
    with pytest.raises(TypeError, match="from_audit"):
        PLD.from_mechanism(finite_algorithm(outputs=(0, 1))(lambda dataset: ["1/2", "1/2"]))


# --- audited algorithms


def vote(users: int) -> AdditiveAlgorithm:
    def pmf(total: int, n: int) -> list[Fraction]:
        share = Fraction(1 + 2 * total, 2 + 2 * n)
        return [1 - share, share]

    return AdditiveAlgorithm((0, 1), sum, pmf, statistic_range=(0, 1))


def test_audited_algorithms_are_the_maximum_of_all_neighbors() -> None:
    report = audit_user_level(vote(3), universe=(0, 1), n_users=3, n_examples=1, epsilon=1, delta=0)
    loss = PLD.from_audit(report)
    laws = [vote(3).pmf(tuple((int(x < total),) for x in range(3))) for total in range(4)]
    pairs = list(itertools.pairwise(laws))
    for level in LEVELS:
        exact = max(max(hockey_stick(p, q, level), hockey_stick(q, p, level)) for p, q in pairs)
        bounds = loss.delta(LogRatio(level.numerator, level.denominator))
        assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    # Two rounds whose data differ: (law 0, law 1) and then (law 3, law 2).
    p = [a * b for a in laws[0] for b in laws[3]]
    q = [a * b for a in laws[1] for b in laws[2]]
    twice = loss.self_compose(2)
    for level in LEVELS:
        assert hockey_stick(p, q, level) <= Fraction(twice.delta(LogRatio(level.numerator, level.denominator)).upper)
    assert PLD.from_audit(Report.from_json(report.to_json())) == loss


def test_records_audited_and_users_grouped() -> None:
    # Two examples of each user: the user's loss is at most that of two records, and here it is exactly.
    algorithm = AdditiveAlgorithm(
        (0, 1), sum, lambda total, n: [Fraction(5 - total, 6), Fraction(1 + total, 6)], statistic_range=(0, 2)
    )
    common = {"universe": (0, 1), "n_users": 2, "n_examples": 2, "epsilon": 1, "delta": 0}
    item = PLD.from_audit(audit_item_level(algorithm, **common))
    user = PLD.from_audit(audit_user_level(algorithm, **common))
    for level in LEVELS:
        asked = LogRatio(level.numerator, level.denominator)
        assert user.delta(asked).lower <= item.group(2).delta(asked).upper


def test_a_constant_algorithm_loses_nothing() -> None:
    constant = finite_algorithm(outputs=(0, 1))(lambda dataset: ["1/2", "1/2"])
    report = audit_user_level(constant, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=0)
    assert PLD.from_audit(report).epsilon(0).upper == 0


def test_reports_that_do_not_do() -> None:
    rough = finite_algorithm(outputs=(0, 1), pmf_error="1/100")(lambda dataset: ["1/2", "1/2"])
    report = audit_user_level(rough, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0)
    with pytest.raises(ValueError, match="pmf_error"):
        PLD.from_audit(report)
    with pytest.raises(TypeError, match="AuditReport"):
        PLD.from_audit("report")  # type: ignore[arg-type]
    rest = [Fraction(1, 2000)] * 1999
    wide = AdditiveAlgorithm(
        range(2001),
        sum,
        lambda total, n: [Fraction(total, 10**6), *rest, Fraction(1, 2000) - Fraction(total, 10**6)],
        statistic_range=(0, 1),
    )
    report = audit_user_level(wide, universe=(0, 1), n_users=100, n_examples=1, epsilon=1, delta=1)
    with pytest.raises(BudgetError, match="100 different pairs have 400400 pieces of curves"):
        PLD.from_audit(report)
