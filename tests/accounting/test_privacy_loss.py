"""Bounds of delta and epsilon of compositions against exact fractions, sums of binomials, and closed forms."""

from __future__ import annotations

import json
import math
import random
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.composition import composed_delta
from userdp import BudgetError, LogRatio, _core
from userdp.accounting import PrivacyLossDistribution, optimal_delta
from userdp.accounting.losses import largest_pair, weights_of
from userdp.exact.numbers import parse_level

CASES = json.loads((Path(__file__).parents[1] / "data" / "composition_cases.json").read_text())["cases"]
CONTEXT = Context(prec=60)
Pair = list[tuple[Fraction, Fraction]]


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] in kinds]


def ends(value: Any) -> tuple[Fraction, Fraction]:
    """An exact number, or what encloses it."""
    if isinstance(value, dict):
        return Fraction(value["lower"]), Fraction(value["upper"])
    return Fraction(value), Fraction(value)


def log(x: Fraction) -> Decimal:
    return CONTEXT.ln(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator)))


def release_of(part: Any) -> PrivacyLossDistribution:
    return PrivacyLossDistribution.from_pmfs([p for p, _ in part["pair"]], [q for _, q in part["pair"]])


def assert_encloses(bounds: Any, *values: Any) -> None:
    """The bounds are around the largest of the values."""
    least, most = (max(side) for side in zip(*map(ends, values), strict=True))
    assert Fraction(bounds.lower) <= most
    assert least <= Fraction(bounds.upper)


@pytest.mark.parametrize("case", of_kind("pairs"))
def test_pairs(case: Any) -> None:
    whole = PrivacyLossDistribution.composed((release_of(part), part["count"]) for part in case["parts"])
    for asked in case["delta"]:
        level = Fraction(asked["E"])
        if level >= 1:
            bounds = whole.delta(LogRatio(level.numerator, level.denominator))
            assert_encloses(bounds, asked["forward"], asked["backward"])
            assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper
    for asked in case["level"]:
        bounds = whole.epsilon(asked["delta"])
        if None in (asked["forward"], asked["backward"]):
            assert bounds.upper == math.inf
            continue
        least = max(log(ends(asked[side])[0]) for side in ("forward", "backward"))
        most = max(log(ends(asked[side])[1]) for side in ("forward", "backward"))
        assert Decimal(bounds.lower) <= most
        assert least <= Decimal(bounds.upper)
        assert bounds.upper - bounds.lower <= 1e-4


@pytest.mark.parametrize("case", of_kind("pure"))
def test_randomized_response(case: Any) -> None:
    whole = PrivacyLossDistribution.pure(case["epsilon"]).self_compose(case["count"])
    for asked in case["delta"]:
        bounds = whole.delta(asked["epsilon"])
        assert_encloses(bounds, asked["value"])
        assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper


@pytest.mark.parametrize("case", of_kind("gaussian"))
def test_gaussian(case: Any) -> None:
    # The squares of several releases add up.
    squares = {"0.056": ["1/5", "3/25", "1/25"], "1": ["1"], "9": ["3"]}[case["mu2"]]
    assert sum(Fraction(root) ** 2 for root in squares) == Fraction(case["mu2"])
    whole = PrivacyLossDistribution.composed((PrivacyLossDistribution.gaussian(1, root), 1) for root in squares)
    bounds = whole.delta(case["epsilon"])
    assert_encloses(bounds, case["value"])
    assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper


@pytest.mark.parametrize("case", of_kind("gaussian-and-pairs"))
def test_gaussian_beside_pairs(case: Any) -> None:
    assert case["mu2"] == "0.5"
    parts = [(release_of(part), part["count"]) for part in case["parts"]]
    whole = PrivacyLossDistribution.composed([*parts, (PrivacyLossDistribution.gaussian(2), 2)])
    for asked in case["delta"]:
        assert_encloses(whole.delta(asked["epsilon"], relative=0.01), asked["value"])


@pytest.mark.parametrize("case", of_kind("discrete-gaussian"))
def test_discrete_gaussian(case: Any) -> None:
    once = PrivacyLossDistribution.discrete_gaussian(case["sigma2"], case["shift"])
    bounds = once.self_compose(case["count"]).delta(case["epsilon"])
    assert_encloses(bounds, case["value"])
    assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper


@pytest.mark.parametrize("case", of_kind("bounded-range"))
def test_bounded_range(case: Any) -> None:
    ratio = Fraction(case["R"])
    release = PrivacyLossDistribution.bounded_range(LogRatio(ratio.numerator, ratio.denominator))
    for asked in case["delta"]:
        level = Fraction(asked["E"])
        if level >= 1:
            assert_encloses(release.delta(LogRatio(level.numerator, level.denominator)), asked["value"])


@pytest.mark.parametrize("case", of_kind("maximum"))
def test_maximum_of_curves(case: Any) -> None:
    pairs = [([p for p, _ in pair], [q for _, q in pair]) for pair in case["pairs"]]
    p, q = largest_pair([(weights_of(p, "p"), weights_of(q, "q")) for p, q in pairs])
    found = {(Fraction(x, sum(p)), Fraction(y, sum(q))) for x, y in zip(p, q, strict=True)}
    wanted = {(Fraction(x), Fraction(y)) for x, y in case["pair"]}
    assert found - {(0, 0)} == wanted - {(0, 0)}
    thrice = PrivacyLossDistribution.from_pmfs([str(x) for x, _ in wanted], [str(y) for _, y in wanted]).self_compose(3)
    for asked in case["threefold"]:
        least, most = ends(asked["E"])
        assert least == most
        forward = thrice.delta(LogRatio(least.numerator, least.denominator))
        assert Fraction(forward.upper) >= ends(asked["value"])[0]


# --- exact references


def random_pair(rng: random.Random, outcomes: int) -> Pair:
    """Masses with zeros on either side now and then, and repeated ratios."""

    def masses() -> list[Fraction]:
        weights = [rng.choice([0, 1, 2, 3, rng.randrange(1, 50)]) for _ in range(outcomes)]
        weights[rng.randrange(outcomes)] += 1
        return [Fraction(weight, sum(weights)) for weight in weights]

    return list(zip(masses(), masses(), strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_products_by_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    parts = [(random_pair(rng, rng.randint(1, 4)), rng.randint(1, 2)) for _ in range(rng.randint(1, 3))]
    flat = [pair for pair, count in parts for _ in range(count)]
    backward = [[(q, p) for p, q in pair] for pair in flat]
    whole = PrivacyLossDistribution.composed(
        (PrivacyLossDistribution.from_pmfs([p for p, _ in pair], [q for _, q in pair]), count) for pair, count in parts
    )
    for level in (Fraction(1), Fraction(rng.randint(10, 40), 10), Fraction(rng.randint(10, 2000), 10)):
        exact = max(composed_delta(flat, level), composed_delta(backward, level))
        bounds = whole.delta(LogRatio(level.numerator, level.denominator), relative=0.01)
        assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
        assert bounds.upper - bounds.lower <= 0.01 * bounds.upper
        epsilon = whole.epsilon(Fraction(bounds.upper), width=0.01)
        assert epsilon.lower <= math.log(level) + 1e-12
        inside = whole.epsilon(exact, width=0.01) if exact else None
        if inside and math.isfinite(inside.upper):
            # At the upper bound of epsilon delta is certainly no more.
            multiplier = Fraction(math.exp(inside.upper)) * (1 + Fraction(1, 10**9))
            assert max(composed_delta(flat, multiplier), composed_delta(backward, multiplier)) <= exact


def binomial_sum(count: int, level: Fraction, multiplier: Fraction) -> Fraction:
    """delta of so many randomized responses, by the number of lies."""
    total = Fraction(0)
    for lies in range(count + 1):
        p, q = level ** (count - lies), level**lies
        total += math.comb(count, lies) * max(p - multiplier * q, Fraction(0))
    return total / (1 + level) ** count


@pytest.mark.parametrize("seed", range(40))
def test_lattices_by_sums_of_binomials(seed: int) -> None:
    rng = random.Random(1000 + seed)
    level = 1 + Fraction(rng.randint(1, 60), rng.randint(20, 100))
    count = rng.randint(1, 120)
    power = rng.randint(0, count)
    multiplier = level**power * Fraction(rng.randint(90, 110), 100)
    if multiplier < 1:
        return
    exact = binomial_sum(count, level, multiplier)
    whole = PrivacyLossDistribution.pure(LogRatio(level.numerator, level.denominator)).self_compose(count)
    bounds = whole.delta(LogRatio(multiplier.numerator, multiplier.denominator))
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
    if exact > 0:
        epsilon = whole.epsilon(exact)
        assert Decimal(epsilon.lower) <= log(multiplier) <= Decimal(epsilon.upper)
        assert epsilon.upper - epsilon.lower <= 1e-6


def test_deep_tails() -> None:
    # The largest loss but one unit of the lattice: one lie at most.
    level, count = Fraction(11, 10), 1000
    multiplier = level ** (count - 1)
    exact = binomial_sum(count, level, multiplier)
    assert exact < Fraction(1, 10**280)
    whole = PrivacyLossDistribution.pure(LogRatio(11, 10)).self_compose(count)
    bounds = whole.delta(LogRatio(multiplier.numerator, multiplier.denominator))
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    assert bounds.upper <= 1.001 * bounds.lower


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"), [("ln(3/2)", "1/100", 5), ("ln(5/4)", 0, 40), ("1/3", "1e-6", 30)]
)
def test_optimal_composition_says_the_same(epsilon: str, delta: Any, count: int) -> None:
    whole = PrivacyLossDistribution.pure(epsilon, delta).self_compose(count)
    for asked in ("ln(2)", "ln(4)", "1"):
        known = optimal_delta(epsilon, count, asked, delta)
        bounds = whole.delta(asked)
        assert bounds.lower <= float(known) * (1 + 1e-15)
        assert float(known) <= bounds.upper * (1 + 1e-9)


def test_discrete_laplace_is_its_pmfs() -> None:
    # a = 1/2: masses beyond the shift have the two extreme losses.
    named = PrivacyLossDistribution.discrete_laplace(LogRatio(2, 1), shift=2).self_compose(7)
    p = ["2/3", "1/6", "1/6"]
    listed = PrivacyLossDistribution.from_pmfs(p, p[::-1]).self_compose(7)
    for level in (LogRatio(1, 1), LogRatio(3, 1), LogRatio(100, 1)):
        assert named.delta(level) == listed.delta(level)


def test_discrete_gaussian_is_its_pmf() -> None:
    # sigma^2 = 1 / (2 ln 2): masses 2^-(x^2), cut where they are below 2^-120.
    weights = [Fraction(1, 2 ** (x * x)) for x in range(-12, 13)]
    total = sum(weights)
    p = [*(weight / total for weight in weights), Fraction(0), Fraction(0)]
    listed = PrivacyLossDistribution.from_pmfs(p, [*p[-2:], *p[:-2]]).self_compose(3)
    near = PrivacyLossDistribution.discrete_gaussian(Fraction(1 / (2 * math.log(2))), 2).self_compose(3)
    for epsilon in (0, 1, 4):
        assert near.delta(epsilon).upper == pytest.approx(listed.delta(epsilon).upper, rel=1e-9)


def test_poisson_is_the_mixture() -> None:
    p, q, rate = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], Fraction(1, 10)
    sampled = PrivacyLossDistribution.from_pmfs(p, q, neighbors="add-remove").poisson(rate).self_compose(4)
    mixed = [rate * x + (1 - rate) * y for x, y in zip(p, q, strict=True)]
    pairs = [list(zip(mixed, q, strict=True))] * 4
    backward = [list(zip(q, mixed, strict=True))] * 4
    exact = max(composed_delta(pairs, Fraction(6, 5)), composed_delta(backward, Fraction(6, 5)))
    assert_encloses(sampled.delta(LogRatio(6, 5)), exact)
    assert not sampled.attained
    with pytest.raises(ValueError, match="add-remove"):
        PrivacyLossDistribution.from_pmfs(p, q).poisson(rate)


def test_samples_are_taken_before_releases_are_composed() -> None:
    # One sample in all releases is another question than one for each.
    steps = PrivacyLossDistribution.gaussian(1, neighbors="add-remove").self_compose(10)
    with pytest.raises(ValueError, match=r"sample first, then compose: poisson\(rate\)\.self_compose\(count\)"):
        steps.poisson("0.01")


def test_near_ties_of_lattices_are_decided() -> None:
    # Three releases at ln 3 have a delta of 3/8 at ln 3: a part in 10^60 more or less tells.
    whole = PrivacyLossDistribution.pure(LogRatio(3, 1)).self_compose(3)
    off = Fraction(1, 10**60)
    assert whole.is_private(LogRatio(3, 1), Fraction(3, 8) + off) is True
    assert whole.is_private(LogRatio(3, 1), Fraction(3, 8) - off) is False
    assert whole.is_private(LogRatio(3, 1), Fraction(3, 8)) is None


def test_mixed_orders_need_the_maximum() -> None:
    # One release in each order is above two in either: `from_pairs` covers it, `from_pmfs` is about two datasets.
    p, q = ["30/31", "1/31"], ["14/41", "27/41"]
    level = Fraction(60543, 8405)
    asked = LogRatio(level.numerator, level.denominator)
    mixed = composed_delta(
        [[(Fraction(30, 31), Fraction(14, 41)), (Fraction(1, 31), Fraction(27, 41))],
         [(Fraction(14, 41), Fraction(30, 31)), (Fraction(27, 41), Fraction(1, 31))]], level
    )  # fmt: skip
    assert mixed == Fraction(5960448, 10682755)
    assert PrivacyLossDistribution.from_pmfs(p, q).self_compose(2).delta(asked).upper < mixed
    assert PrivacyLossDistribution.from_pairs([(p, q)]).self_compose(2).delta(asked).upper >= mixed


@pytest.mark.parametrize("epsilon", [0, 0.5, 1, 4])
def test_gaussian_is_its_closed_form(epsilon: float) -> None:
    from math import erfc, exp, sqrt

    mu = 0.5
    below = 0.5 * erfc((epsilon / mu - mu / 2) / sqrt(2))
    above = 0.5 * erfc((epsilon / mu + mu / 2) / sqrt(2))
    known = below - exp(epsilon) * above
    bounds = PrivacyLossDistribution.gaussian(2).delta(epsilon, relative=0.01)
    assert bounds.lower <= known * (1 + 1e-9) + 1e-15
    assert known * (1 - 1e-9) - 1e-15 <= bounds.upper


# By mpmath with 60 digits: (sigma, rate, epsilon), and delta of removing a user and of adding one.
SAMPLED = [
    ("0.8", "0.01", "0", "0.0046802894190259893537931893163", "0.0046802894190259893537931893163"),
    ("0.8", "0.01", "0.5", "0.00000897058882580888171273638213976", "0"),
    ("2", "0.5", "0.5", "0.00739445066329022620226453175526", "0.0000508692997010944970687937934497"),
    ("2", "0.5", "3", "2.20143522172888434700853603709e-14", "0"),
    ("0.5", "0.001", "0.5", "0.00000528428041555625382904233358534", "0"),
    ("1", "1", "3", "0.00153718536940095484694386966632", "0.00153718536940095484694386966632"),
]


@pytest.mark.parametrize(("sigma", "rate", "epsilon", "removal", "addition"), SAMPLED)
def test_gaussian_on_samples(sigma: str, rate: str, epsilon: str, removal: str, addition: str) -> None:
    once = PrivacyLossDistribution.gaussian(sigma, neighbors="add-remove").poisson(rate)
    unit = Fraction(1, 10**29)
    level = parse_level(epsilon)
    for backwards, text in ((False, removal), (True, addition)):
        lower, upper = once._delta(level, backwards, Fraction(1, 4), 2**22)
        known = Fraction(text)
        assert lower <= known * (1 + unit)
        assert known * (1 - unit) <= upper
        assert upper - lower <= upper / 4
    both = once.delta(epsilon, relative=0.25)
    assert both.lower <= float(removal) * (1 + 1e-15)
    assert float(removal) * (1 - 1e-15) <= both.upper


@pytest.mark.parametrize(("sigma", "epsilon", "known"), [("0.5", "40", "8.08286637329429883580891076096e-82")])
def test_gaussian_far_out(sigma: str, epsilon: str, known: str) -> None:
    bounds = PrivacyLossDistribution.gaussian(sigma).delta(epsilon, relative=0.5)
    assert_encloses(bounds, {"lower": Fraction(known) * (1 - Fraction(1, 10**29)), "upper": known})


def test_a_sample_at_rate_one_is_everybody() -> None:
    once = PrivacyLossDistribution.gaussian(2, neighbors="add-remove")
    for epsilon in (0, 1):
        whole, sample = once.delta(epsilon), once.poisson(1).delta(epsilon)
        assert sample.lower <= whole.upper
        assert whole.lower <= sample.upper


def test_many_steps_on_samples() -> None:
    # What dp_accounting 0.6 and an interval of this project's first prototype say: 11.1832, and 11.18066 to 11.18339.
    once = PrivacyLossDistribution.gaussian("0.8", neighbors="add-remove").poisson("0.01")
    bounds = once.self_compose(10**4).epsilon("1e-6", width=0.02)
    assert bounds.lower <= 11.18339
    assert bounds.upper >= 11.18066
    assert bounds.upper - bounds.lower <= 0.02


@pytest.mark.parametrize("seed", range(12))
def test_coarse_grids_are_above_and_lower_bounds_below(seed: int) -> None:
    # On a grid of 1/8 the masses' curve is visibly above the true one: without Theorem 5 lower bounds would be false.
    rng = random.Random(2000 + seed)
    weights = [[rng.randint(20, 90) for _ in range(4)] for _ in range(2)]
    pair = [(Fraction(x, sum(weights[0])), Fraction(y, sum(weights[1]))) for x, y in zip(*weights, strict=True)]
    release = _core.Release.from_weights(weights[0], weights[1], 2)
    options = {"limbs": 2, "resolution": Fraction(1, 8), "cut": 0, "max_terms": 2**12, "reach": 20.0}
    # A second release keeps the first from being answered on a lattice of its own.
    other = _core.Release.from_weights([7, 11], [10, 9], 2)
    composed = _core.Composed([release, other], [3, 1], **options)
    flat = [pair, pair, pair, [(Fraction(7, 18), Fraction(10, 19)), (Fraction(11, 18), Fraction(9, 19))]]
    above = []
    for tenths in range(10, 40, 3):
        level = Fraction(tenths, 10)
        exact = composed_delta(flat, level)
        lower, upper = composed.delta(_core.Level(level, Fraction(0)))
        assert lower <= exact <= upper
        above.append(upper - composed.charge > exact)
    assert any(above)


# --- questions, and what they refuse


def test_decisions() -> None:
    whole = PrivacyLossDistribution.pure("0.1").self_compose(1000)
    assert whole.is_private("19.34467144799305", "1e-6") is True
    assert whole.is_private("19.34467144799303", "1e-6") is False
    assert whole.is_private(100, 0) is True
    assert whole.is_private("99.9", 0) is False
    assert whole.epsilon(0).upper == pytest.approx(100)
    assert whole.epsilon(1) == whole.epsilon(1.0)
    assert whole.epsilon(1).upper == 0


def test_edges() -> None:
    same = PrivacyLossDistribution.from_pmfs([0.5, 0.5], [0.5, 0.5]).self_compose(1000)
    assert same.delta(0).upper <= 1e-30
    assert same.epsilon("1e-6").upper == 0
    disjoint = PrivacyLossDistribution.from_pmfs([1, 0], [0, 1])
    assert disjoint.delta(5).lower >= 1 - 1e-15
    assert disjoint.epsilon("1/2").lower == math.inf
    assert PrivacyLossDistribution.pure(0).self_compose(10).delta(0).upper <= 1e-30
    assert PrivacyLossDistribution.pure(0, "0.1").delta(3).upper == 0.1
    one = PrivacyLossDistribution.from_pmfs([1], [1])
    assert one.compose(one, one).epsilon("1e-9").upper == 0
    partly = PrivacyLossDistribution.from_pmfs(["1/2", "1/2"], ["1", "0"])
    assert partly.epsilon("1/4").upper == math.inf
    assert partly.epsilon("3/4").upper < math.inf
    tiny = PrivacyLossDistribution.from_pmfs([1 - 1e-300, 1e-300], [1.0, 0.0])
    assert 0 < tiny.delta(1).upper < 1e-290
    assert PrivacyLossDistribution.pure(1).delta(10**30).upper == 0
    assert PrivacyLossDistribution.gaussian(1).delta(10**30).upper < 1e-250
    assert PrivacyLossDistribution.pure("1e-9").self_compose(10**9).epsilon("1e-6").upper < 1e-3


def test_large_work_is_refused_with_what_was_found() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(30))
    whole = PrivacyLossDistribution.from_pmfs(p, q).self_compose(10**6)
    with pytest.raises(BudgetError, match=r"max_terms: .* coarser .*found so far: epsilon from .* to "):
        whole.epsilon("1e-6", max_terms=2**12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrivacyLossDistribution.from_pmfs([0.5, 0.6], [0.5, 0.5]), "p: masses must sum to 1 within 1e-9"),
        (lambda: PrivacyLossDistribution.from_pmfs([0.5, 0.5], [math.nan, 0.5]), "q: mass nan at index 0"),
        (lambda: PrivacyLossDistribution.from_pmfs([1.5, -0.5], [0.5, 0.5]), "p: mass -0.5 at index 1 is negative"),
        (lambda: PrivacyLossDistribution.from_pmfs([1.0], [0.5, 0.5]), "q has 2 masses where p has 1"),
        (lambda: PrivacyLossDistribution.from_pairs([]), "pairs must have at least one"),
        (lambda: PrivacyLossDistribution.pure(-1), "epsilon must be >= 0"),
        (lambda: PrivacyLossDistribution.pure(1, 1), "delta must be below 1"),
        (lambda: PrivacyLossDistribution.gaussian(0), "sigma must be > 0"),
        (lambda: PrivacyLossDistribution.discrete_gaussian("1e-9"), "sigma_squared must be from 1/100 to 2"),
        (lambda: PrivacyLossDistribution.gaussian(10**9), "sensitivity / sigma must be from 2.*to 16"),
        (lambda: PrivacyLossDistribution.gaussian(1).poisson("0.1"), "neighbors='add-remove'"),
        (lambda: PrivacyLossDistribution.gaussian(1, neighbors="add-remove").poisson(0), "rate must be from"),
        (lambda: PrivacyLossDistribution.discrete_laplace(0), "epsilon_per_unit must be > 0"),
        (lambda: PrivacyLossDistribution.discrete_laplace(1, 10**9), "shift must be at most"),
        (lambda: PrivacyLossDistribution.pure(1, neighbors="swap"), "neighbors must be 'replace' or 'add-remove'"),  # type: ignore[arg-type]
        (lambda: PrivacyLossDistribution.pure(1).self_compose(0), "count must be at least 1"),
        (lambda: PrivacyLossDistribution.pure(1).delta(-1), "epsilon must be >= 0"),
        (lambda: PrivacyLossDistribution.pure(1).delta(1, relative=0), "relative must be > 0"),
        (lambda: PrivacyLossDistribution.pure(1).epsilon(2), r"delta must be in \[0, 1\]"),
        (lambda: PrivacyLossDistribution.pure(1).epsilon("1e-400"), "delta must be 0 or at least 1e-300"),
        (lambda: PrivacyLossDistribution.pure(1).epsilon("1e-6", max_terms=1), "max_terms must be at least 2"),
        (lambda: PrivacyLossDistribution.composed([]), "parts must have at least one"),
        (
            lambda: PrivacyLossDistribution.pure(1, neighbors="replace").compose(
                PrivacyLossDistribution.pure(1, neighbors="add-remove")
            ),
            "same neighbors",
        ),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_objects_are_made_by_their_constructors() -> None:
    with pytest.raises(TypeError, match="from_pmfs"):
        PrivacyLossDistribution()
    with pytest.raises(TypeError, match="PrivacyLossDistribution"):
        PrivacyLossDistribution.composed([("1", 2)])  # type: ignore[list-item]
