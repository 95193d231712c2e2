"""What several records lose together: iterates of power curves against chains of distributions and closed forms."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.power_curves import power_curve, value
from userdp import BudgetError, LogRatio, _core
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.accounting import group_privacy, user_epsilon
from userdp.accounting.losses import weights_of

REPLACE: Any = {"neighbors": "replace"}

CASES = json.loads((Path(__file__).parents[1] / "data" / "composition_cases.json").read_text())["cases"]
Masses = list[Fraction]


def hockey_stick(p: Masses, q: Masses, level: Fraction) -> Fraction:
    return sum((max(x - level * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def power_of_test(p: Masses, q: Masses, alpha: Fraction) -> Fraction:
    """The largest mass under P of a test with this mass under Q: outcomes in the order of their ratios."""
    order = sorted(range(len(p)), key=lambda x: (0, Fraction(0)) if q[x] == 0 else (1, -p[x] / q[x]))
    left, got = alpha, Fraction(0)
    for outcome in order:
        share = Fraction(1) if q[outcome] <= left else left / q[outcome]
        got, left = got + share * p[outcome], left - share * q[outcome]
    return got


def random_masses(rng: random.Random, outcomes: int) -> Masses:
    weights = [rng.choice([0, *[rng.randint(1, 30)] * 6]) for _ in range(outcomes)]
    weights[rng.randrange(outcomes)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == "group"])
def test_cases(case: Any) -> None:
    p, q = (weights_of([pair[side] for pair in case["pair"]], "p") for side in (0, 1))
    curve = power_curve(*_core.grouped_pair(p, q, case["size"]))
    for asked in case["power"]:
        assert value(curve, Fraction(asked["alpha"])) == Fraction(asked["value"])
    group = PLD.from_pmfs([x for x, _ in case["pair"]], [y for _, y in case["pair"]]).group(case["size"])
    # delta at E is the largest of power - E alpha: at least at these alphas.
    for asked in case["power"]:
        for level in (Fraction(1), Fraction(3)):
            least = Fraction(asked["value"]) - level * Fraction(asked["alpha"])
            assert Fraction(group.delta(LogRatio(level.numerator, level.denominator)).upper) >= least


@pytest.mark.parametrize("seed", range(40))
def test_iterates_of_random_curves(seed: int) -> None:
    rng = random.Random(seed)
    p, q = random_masses(rng, 4), random_masses(rng, 4)
    weights = weights_of(p, "p"), weights_of(q, "q")
    pair = _core.grouped_pair(*weights, 3)
    curve = power_curve(*pair)
    back = [[Fraction(x, sum(side)) for x in side] for side in pair]
    for step in range(31):
        alpha = Fraction(step, 30)
        exact = power_of_test(p, q, power_of_test(p, q, power_of_test(p, q, alpha)))
        assert value(curve, alpha) == exact
        assert power_of_test(*back, alpha) == exact


@pytest.mark.parametrize("seed", range(30))
def test_chains_of_neighbors(seed: int) -> None:
    # Four distributions, each a neighbor of the next: what the first and the last have is within the group's.
    rng = random.Random(100 + seed)
    laws = [random_masses(rng, 3) for _ in range(4)]
    steps = list(itertools.pairwise(laws))
    group = PLD.from_pairs(steps).group(3)
    assert not group.attained
    for level in (Fraction(1), Fraction(3, 2), Fraction(4), Fraction(50)):
        bounds = group.delta(LogRatio(level.numerator, level.denominator))
        for p, q in ((laws[0], laws[3]), (laws[3], laws[0])):
            assert hockey_stick(p, q, level) <= Fraction(bounds.upper)


def test_one_sided_chains_keep_their_order() -> None:
    # With a record, (9/10, 1/10), without, (1/2, 1/2): added ones only make the first outcome likelier.
    pair = (["9/10", "1/10"], ["1/2", "1/2"])
    one_sided = PLD.from_pmfs(*pair, neighbors="add-remove").group(2)
    # The best tests: all of the first outcome under the iterate.
    p, q = [Fraction(9, 10), Fraction(1, 10)], [Fraction(1, 2), Fraction(1, 2)]
    exact = max(power_of_test(p, q, power_of_test(p, q, Fraction(step, 90))) - Fraction(step, 90) for step in range(91))
    assert Fraction(one_sided.delta(0).lower) <= exact <= Fraction(one_sided.delta(0).upper)
    either = PLD.from_pmfs(*pair).group(2)
    assert either.delta(0).lower >= one_sided.delta(0).upper


@pytest.mark.parametrize("size", [2, 3, 7])
def test_randomized_response_iterated_is_discrete_laplace_noise(size: int) -> None:
    a = Fraction(1, 3)
    noise = [a**size / (1 + a), *((1 - a) / (1 + a) * a ** (size - x) for x in range(1, size)), 1 / (1 + a)]
    p, q = ([Fraction(x, sum(side)) for x in side] for side in _core.grouped_pair((3, 1), (1, 3), size))
    assert [x for x in p if x] == noise[::-1]
    assert [x for x in q if x] == noise
    group = PLD.pure(LogRatio(3, 1)).group(size)
    assert group == PLD.discrete_laplace(LogRatio(3, 1), size)
    for level in (Fraction(1), Fraction(3), Fraction(20)):
        exact = hockey_stick(noise, noise[::-1], level)
        bounds = group.delta(LogRatio(level.numerator, level.denominator))
        assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)


def test_with_a_delta_the_known_bound_is_attained() -> None:
    for size in (2, 5):
        known = group_privacy(LogRatio(2, 1), "1/1000", size)
        bounds = PLD.pure(LogRatio(2, 1), "1/1000").group(size).delta(known.epsilon)
        assert Fraction(bounds.lower) <= known.delta <= Fraction(bounds.upper)
    # An irrational level is rounded up, by far less than anybody sees.
    known = group_privacy(1, "1e-6", 4)
    bounds = PLD.pure(1, "1e-6").group(4).delta(4)
    assert bounds.upper == pytest.approx(float(known.delta), rel=1e-12)


def test_noise_is_shifted_further() -> None:
    assert PLD.discrete_laplace("1/10", 2).group(3) == PLD.discrete_laplace("1/10", 6)
    assert PLD.discrete_gaussian(100, 2).group(3) == PLD.discrete_gaussian(100, 6)
    assert PLD.gaussian(10, 2).group(3) == PLD.gaussian(10, 6)
    assert PLD.bounded_range("1/10").group(3) == PLD.bounded_range("3/10")
    whole = PLD.gaussian(10).compose(PLD.pure("1/10"))
    assert whole.group(2) == PLD.gaussian(5).compose(PLD.discrete_laplace("1/10", 2))
    near = PLD.gaussian(10).within("1e-9").group(4)
    assert near.distance == Fraction(1, 10**9)
    assert PLD.pure(1).group(1) == PLD.pure(1)


def test_reports_of_records_composed_are_no_answer_for_a_central_mechanism() -> None:
    # Five records of a count with noise against five reports: the count may lose more.
    once = PLD.pure("ln(3)")
    central, local = once.group(5), once.self_compose(5)
    assert central.delta("ln(9)").lower > local.delta("ln(9)").upper


def test_corners_with_long_denominators_are_rounded_upwards() -> None:
    # 36 steps of 128-bit masses have denominators of more than 4096 bits.
    rng = random.Random(7)
    p, q = ([Fraction(rng.randrange(1, 2**126), 2**128) for _ in range(2)] for _ in range(2))
    p, q = [*p, 1 - sum(p)], [*q, 1 - sum(q)]
    found = power_curve(*_core.grouped_pair(weights_of(p, "p"), weights_of(q, "q"), 36))
    assert max(max(a.denominator, b.denominator).bit_length() for a, b in found) <= 4096
    alpha = exact = Fraction(5, 10**6)
    for _ in range(36):
        exact = power_of_test(p, q, exact)
    assert exact.denominator.bit_length() > 4096
    assert exact < value(found, alpha) <= exact + Fraction(1, 2**1000)


def test_epsilon_of_a_user() -> None:
    item = PLD.pure("1/10")
    assert user_epsilon(item, 20, 0).upper == pytest.approx(2)
    bounds = user_epsilon(item, 20, "0.01")
    assert bounds.lower <= bounds.upper < 2
    noise = PLD.gaussian(100)
    assert user_epsilon(noise, 10, "1e-6") == PLD.gaussian(10).epsilon("1e-6")
    with pytest.raises(TypeError, match="release must be a PrivacyLossDistribution"):
        user_epsilon(1, 10, "1e-6")  # type: ignore[arg-type]


def test_large_groups_are_refused_up_front() -> None:
    with pytest.raises(BudgetError, match="a group of 100000 has up to 400000 outcomes"):
        PLD.pure(1, "1e-6").group(10**5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PLD.pure(1).group(0), "size must be at least 1"),
        (
            lambda: PLD.gaussian(1, **REPLACE).without_replacement(1, 2).group(2),
            "size=2: nothing is known about groups for",
        ),
        (lambda: PLD.pure(1).group(2**20), "shift must be at most"),
        (lambda: PLD.gaussian(1).group(100), "Gaussian releases together"),
        (lambda: PLD.bounded_range("ln(3)").group(10**9), "LogRatio of too many digits"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_large_group_has_few_corners() -> None:
    # It is 1 beyond what three outcomes leave, and nothing rises above it.
    p, q = _core.grouped_pair([5, 3, 2], [2, 3, 5], 500)
    assert len(p) == len(q) <= 3 * 500


@pytest.mark.parametrize("seed", range(12))
def test_iterates_by_doubling_are_the_curve_applied_so_often(seed: int) -> None:
    draw = random.Random(seed)
    p, q = ([draw.randint(0, 9) for _ in range(4)] + [1] for _ in range(2))
    curve, size = power_curve(p, q), draw.randint(1, 9)
    found = power_curve(*_core.grouped_pair(p, q, size))
    for _ in range(50):
        alpha = Fraction(draw.randint(0, 10**6), 10**6) ** draw.randint(1, 9)
        wanted = alpha
        for _ in range(size):
            wanted = value(curve, wanted)
        assert value(found, alpha) == wanted
