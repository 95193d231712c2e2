"""Certificates of compositions: what the checker shows is true, near what the core says, and no forgery is accepted."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oracle.composition import composed_delta
from userdp import BudgetError, LogRatio
from userdp.accounting import PrivacyLossDistribution
from userdp.checker import check as checker
from userdp.checker import compositions, enclosures, values
from userdp.checker import releases as kinds
from userdp.checker.enclosures import Near, exponential
from userdp.checker.releases import Grid, Level, Levels, Work
from userdp.cli import main
from userdp.report import CompositionCertificate, Report

REPLACE: Any = {"neighbors": "replace"}

F = Fraction
PLD = PrivacyLossDistribution
CASES = json.loads((Path(__file__).parents[1] / "data" / "composition_cases.json").read_text())["cases"]

PAIR = PLD.from_pmfs(["1/2", "1/3", "1/6"], ["1/3", "1/2", "1/6"])
MIXED = PLD.composed(
    [(PLD.discrete_gaussian(20), 9), (PLD.pure("0.1", "1e-8"), 7), (PLD.bounded_range("0.2"), 2), (PAIR, 2)]
)
MAKERS: dict[str, Callable[[], str]] = {
    "randomized response": lambda: PLD.pure("0.1").self_compose(1000).certificate(delta="1e-6"),
    "its delta": lambda: PLD.pure("0.1").self_compose(1000).certificate(epsilon=19),
    "no delta": lambda: PLD.pure("0.1").self_compose(100).certificate(epsilon=10),
    "pure and delta": lambda: PLD.pure("ln(3/2)", "1e-9").self_compose(20).certificate(epsilon="ln(5/2)"),
    "deep": lambda: PLD.pure("1/5").self_compose(100).certificate(delta="1e-200"),
    "discrete Laplace": lambda: PLD.discrete_laplace("1/10", shift=3).self_compose(50).certificate(delta="1e-9"),
    "discrete Gaussian": lambda: PLD.discrete_gaussian(9).self_compose(10).certificate(delta="1e-9"),
    "bounded range": lambda: PLD.bounded_range("0.3").self_compose(20).certificate(delta="1e-6"),
    "pair": lambda: PAIR.self_compose(30).certificate(delta="1e-5"),
    "pair with zeros": lambda: PLD.from_pmfs(["2/3", "1/3", "0"], ["1/2", "1/4", "1/4"]).certificate(epsilon="1/10"),
    "largest pair": lambda: (
        PLD.from_pairs([(["3/4", "1/4"], ["1/2", "1/2"]), (["1/2", "1/2"], ["2/5", "3/5"])])
        .self_compose(9)
        .certificate(epsilon=1, delta="1/2")
    ),
    "sampled": lambda: (
        PLD.from_pmfs(["3/4", "1/4"], ["1/2", "1/2"], neighbors="add-remove")
        .poisson("1/100")
        .self_compose(3000)
        .certificate(delta="1e-7")
    ),
    "Gaussian": lambda: PLD.gaussian(3, 2).certificate(delta="1e-6"),
    "sampled Gaussian": lambda: (
        PLD.gaussian("0.8", neighbors="add-remove").poisson("0.01").self_compose(100).certificate(delta="1e-6")
    ),
    "sampled Gaussian beside a pair": lambda: PLD.composed(
        [
            (PLD.gaussian(2, neighbors="add-remove").poisson("1/2"), 3),
            (PLD.from_pmfs(["1/2", "1/2"], ["2/5", "3/5"], neighbors="add-remove"), 2),
        ]
    ).certificate(epsilon=2),
    "sample of a fixed size": lambda: (
        PLD.gaussian("0.8", **REPLACE).without_replacement(1, 100).self_compose(20).certificate(delta="1e-6")
    ),
    "largest loss": lambda: (
        PLD.from_pmfs(["44/111", "41/111", "14/111", "12/111"], ["12/111", "14/111", "41/111", "44/111"])
        .self_compose(12)
        .certificate(delta="1e-13")
    ),
    "Gaussian beside a pair": lambda: PLD.composed([(PLD.gaussian(5), 2), (PAIR, 3)]).certificate(epsilon=2),
    "mixed": lambda: MIXED.certificate(delta="1e-5"),
    "disjoint": lambda: PLD.from_pmfs([1, 0], [0, 1]).certificate(epsilon=3),
}
MAKERS = {name: cache(make) for name, make in MAKERS.items()}


def ends(value: Any) -> tuple[Fraction, Fraction]:
    """An exact number, or what encloses it."""
    return (F(value["lower"]), F(value["upper"])) if isinstance(value, dict) else (F(value), F(value))


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in content.items() if name != "digest"}
    return kept | {"digest": "sha256:" + values.canonical_digest(kept)}


def composition_of(content: dict[str, Any]) -> PrivacyLossDistribution:
    """What a certificate lists, for the core."""

    def level(code: dict[str, str]) -> Any:
        ratio, exponent = F(code["ratio"]), F(code["exponent"])
        assert ratio == 1 or exponent == 0
        return LogRatio(ratio.numerator, ratio.denominator) if ratio != 1 else exponent

    def release(code: dict[str, Any]) -> PrivacyLossDistribution:
        if code["kind"] == "pair":
            p, q = ([int(weight) for weight in code[side]] for side in "pq")
            return PLD.from_pmfs([F(x, sum(p)) for x in p], [F(y, sum(q)) for y in q], neighbors=content["neighbors"])
        if code["kind"] == "pure":
            return PLD.pure(level(code["epsilon"]), F(code["delta"]))
        if code["kind"] == "discrete-laplace":
            return PLD.discrete_laplace(level(code["epsilon_per_unit"]), code["shift"])
        if code["kind"] == "discrete-gaussian":
            return PLD.discrete_gaussian(F(code["sigma_squared"]), code["shift"])
        if code["kind"] == "gaussian":
            return PLD.gaussian(mu2=F(code["mu_squared"]))
        if code["kind"] == "sampled-gaussian":
            return PLD.gaussian(mu2=F(code["mu_squared"]), neighbors="add-remove").poisson(F(code["rate"]))
        if code["kind"] == "fixed-sample-gaussian":
            rate = F(code["rate"])
            return PLD.gaussian(mu2=F(code["mu_squared"]), **REPLACE).without_replacement(
                rate.numerator, rate.denominator
            )
        return PLD.bounded_range(level(code["range"]))

    return PLD.composed((release(code), code["count"]) for code in content["releases"])


@pytest.mark.parametrize("name", MAKERS)
def test_certificates_are_established(name: str) -> None:
    text = MAKERS[name]()
    certificate = Report.from_json(text)
    assert isinstance(certificate, CompositionCertificate)
    assert certificate.verify().finding == "established"
    assert certificate.holds
    assert certificate.to_json() == text
    assert "CLAIMED" in certificate.summary()
    content = json.loads(text)
    bound = compositions.bound_of(content)
    assert bound <= certificate.delta


def test_the_bound_is_that_of_the_core() -> None:
    for name in MAKERS:
        content = json.loads(MAKERS[name]())
        epsilon = content["epsilon"]
        asked = F(epsilon["exponent"]) if epsilon["ratio"] == "1" else f"ln({epsilon['ratio']})"
        bounds = composition_of(content).delta(asked, relative=0.01)
        bound = compositions.bound_of(content)
        assert F(bounds.lower) <= bound + F(1, 2**100)
        assert bound <= F(bounds.upper) * F(101, 100) + F(1, 2**100), name


# --- soundness against exact numbers


@pytest.mark.parametrize("seed", range(40))
def test_no_rounding_makes_a_bound_false(seed: int) -> None:
    """However coarse grid, masses and cuts are, the bound is above the exact delta."""
    rng = random.Random(seed)

    def weights(outcomes: int) -> tuple[int, ...]:
        found = [rng.choice([0, 1, 2, 3, rng.randrange(1, 50)]) for _ in range(outcomes)]
        found[rng.randrange(outcomes)] += 1
        return tuple(found)

    releases: list[tuple[Any, int]] = []
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.3:
            ratio = 1 + F(rng.randint(0, 20), rng.randint(5, 20))
            releases.append((kinds.Pure(Level(ratio, F(0)), F(rng.randint(0, 3), 30)), rng.randint(1, 3)))
        else:
            outcomes = rng.randint(1, 3)
            releases.append((kinds.Pair(weights(outcomes), weights(outcomes)), rng.randint(1, 3)))

    def law(release: Any) -> list[tuple[Fraction, Fraction]]:
        if isinstance(release, kinds.Pair):
            return [(F(x, sum(release.p)), F(y, sum(release.q))) for x, y in zip(release.p, release.q, strict=True)]
        e, delta = release.epsilon.ratio, release.delta
        high, low = (1 - delta) * e / (1 + e), (1 - delta) / (1 + e)
        return [(delta, F(0)), (high, low), (low, high), (F(0), delta)]

    flat = [law(release) for release, count in releases for _ in range(count)]
    back = [[(q, p) for p, q in pair] for pair in flat]
    for level in (F(1), F(rng.randint(10, 40), 10), F(rng.randint(10, 2000), 10)):
        exact = max(composed_delta(flat, level), composed_delta(back, level))
        for bits in (8, 16, rng.randint(8, 60), 120):
            cut = rng.choice([0, 1, rng.randrange(1 << bits - 4)])
            resolution = F(1, rng.choice([1, 2, 7, 100, 1000]))
            bound = compositions.composed_delta(releases, Grid(bits, resolution, cut, Work()), Level(level, F(0)))
            assert exact <= bound <= 1
        fine = compositions.composed_delta(releases, Grid(120, F(1, 1000), 0, Work()), Level(level, F(0)))
        assert fine - exact <= F(1, 100)


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == kind]


@pytest.mark.parametrize("case", cases("pure"))
def test_randomized_response(case: Any) -> None:
    release = kinds.Pure(Level(F(1), F(case["epsilon"])), F(0))
    for asked in case["delta"]:
        least, most = ends(asked["value"])
        bits = 300 + max(least.denominator.bit_length() - least.numerator.bit_length(), 0)
        epsilon = Level(F(1), F(asked["epsilon"]))
        bound = compositions.composed_delta([(release, case["count"])], Grid(bits, None, 1 << 100, Work()), epsilon)
        assert least <= bound <= most * (1 + F(1, 10**30))


@pytest.mark.parametrize("resolution", [None, F(1, 1000)])
@pytest.mark.parametrize("case", cases("discrete-gaussian"))
def test_discrete_gaussian(case: Any, resolution: Fraction | None) -> None:
    noise = kinds.DiscreteGaussian(F(case["sigma2"]), case["shift"])
    grid = Grid(120, resolution, 0, Work())
    bound = compositions.composed_delta([(noise, case["count"])], grid, Level(F(1), F(case["epsilon"])))
    least, most = ends(case["value"])
    assert least <= bound <= most + (F(1, 2**100) if resolution is None else most / 100)


@pytest.mark.parametrize("case", cases("bounded-range"))
def test_bounded_range(case: Any) -> None:
    release = kinds.BoundedRange(Level(F(case["R"]), F(0)))
    for asked in case["delta"]:
        if F(asked["E"]) >= 1:
            grid = Grid(120, F(1, 2000), 0, Work())
            bound = compositions.composed_delta([(release, 1)], grid, Level(F(asked["E"]), F(0)))
            least, most = ends(asked["value"])
            assert least <= bound <= most + F(1, 10**6)


@pytest.mark.parametrize("rate", ["1/100", "1/2", "1"])
def test_sampled_gaussian(rate: str) -> None:
    """The curve of one release has a formula, and a grid raises it by little."""
    q, mu, context = F(rate), F(5, 4), Context(prec=120)

    def decimal_of(x: Fraction) -> Decimal:
        return context.divide(Decimal(x.numerator), Decimal(x.denominator))

    def gaussian_curve(level: Decimal) -> Decimal:
        loss = context.divide(context.ln(level), decimal_of(mu))
        ends_of = [context.subtract(sign * decimal_of(mu / 2), loss) for sign in (1, -1)]
        first, second = (context.add(normal(x, context), Decimal("0.5")) for x in ends_of)
        return context.subtract(first, context.multiply(level, second))

    def removed(level: Decimal) -> Decimal:
        inner = context.add(context.divide(context.subtract(level, Decimal(1)), decimal_of(q)), Decimal(1))
        if inner <= 0:
            return context.subtract(Decimal(1), level)
        return context.multiply(decimal_of(q), gaussian_curve(inner))

    def added(level: Decimal) -> Decimal:
        # 1 - E + E h(1 / E)
        inverse = removed(context.divide(Decimal(1), level))
        return context.add(context.subtract(Decimal(1), level), context.multiply(level, inverse))

    for release, curve in (
        (kinds.SampledGaussian(mu**2, q), removed),
        (kinds.SampledGaussian(mu**2, q, added=True), added),
        (kinds.FixedSampleGaussian(mu**2, q), removed),
    ):
        for cut in (0, 1 << 70):
            grid = Grid(120, F(1, 100), cut, Work())
            masses, levels = release.masses(grid, Levels(Level(F(1), F(1, 100))))
            assert sum(masses.finite) + masses.infinity == 1 << 120
            for epsilon in (F(0), F(1, 20), F(1), F(3)):
                exact = curve(context.exp(decimal_of(epsilon)))
                bound = compositions.delta_above(masses, levels, Level(F(1), epsilon), 120)
                assert F(exact) <= bound + F(1, 10**100)
                assert bound <= F(exact) * F(101, 100) + F(1, 10**9)


@pytest.mark.parametrize("case", cases("gaussian"))
def test_gaussian(case: Any) -> None:
    noise = kinds.Gaussian(F(case["mu2"]))
    least, most = ends(case["value"])
    # Cells of a twenty-fourth of the noise's standard deviation, as losses are multiples of mu.
    resolution = F(1, math.ceil(24 / math.sqrt(F(case["mu2"]))))
    for cut in (0, 1 << 70):
        bound = compositions.composed_delta(
            [(noise, 1)], Grid(120, resolution, cut, Work()), Level(F(1), F(case["epsilon"]))
        )
        assert least <= bound <= most * F(101, 100)


def normal(x: Decimal, context: Context) -> Decimal:
    """Phi(x) - 1/2 by the alternating series of its integral, in many digits."""
    total, power, n = Decimal(0), x, 0
    square = context.multiply(x, x)
    while abs(power) > Decimal("1e-140"):
        total = context.add(total, context.divide(power, Decimal(2 * n + 1)))
        n += 1
        power = context.divide(context.minus(context.multiply(power, square)), Decimal(2 * n))
    return context.divide(total, context.sqrt(context.multiply(Decimal(2), PI)))


PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
)


@pytest.mark.parametrize("seed", range(20))
def test_the_normal_distribution(seed: int) -> None:
    rng, context = random.Random(seed), Context(prec=200)
    bits = rng.choice([150, 300])
    x = F(rng.randint(-12 * 10**6, 12 * 10**6), 10**6)
    scaled = x.numerator * (1 << bits) // x.denominator
    low, high = enclosures.Normal(bits).below(scaled, scaled + 1)
    known = normal(context.divide(Decimal(x.numerator), Decimal(x.denominator)), context)
    error = Decimal("1e-100")
    ends_of = [context.divide(Decimal(2 * end - (1 << bits)), Decimal(1 << bits + 1)) for end in (low, high)]
    assert ends_of[0] <= context.add(known, error)
    assert context.subtract(known, error) <= ends_of[1]
    assert high - low <= 4


@pytest.mark.parametrize("seed", range(20))
def test_logarithms(seed: int) -> None:
    rng, context = random.Random(seed), Context(prec=200)
    bits = rng.choice([20, 150, 300])
    y = rng.randrange(1, 1 << rng.randint(1, 2 * bits))
    width = rng.choice([0, 1, 7])
    low, high = enclosures.Logarithm(bits).of(y, y + width)
    first, last = (context.ln(context.divide(Decimal(end), Decimal(1 << bits))) for end in (y, y + width))
    scaled = [context.divide(Decimal(end), Decimal(1 << bits)) for end in (low, high)]
    assert scaled[0] <= context.add(first, Decimal("1e-150"))
    assert context.subtract(last, Decimal("1e-150")) <= scaled[1]
    assert high - low <= 4 + (-(-(width << bits) // y))


@pytest.mark.parametrize("seed", range(40))
def test_enclosures(seed: int) -> None:
    rng = random.Random(seed)
    context = Context(prec=200)
    less, more = Decimal("0." + "9" * 150), Decimal("1." + "0" * 149 + "1")
    x = F(rng.randint(-(10**6), 10**6), rng.choice([1, 7, 10**4, 10**9]))
    near = exponential(x, rng.choice([60, 200, 500]))
    scaled = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    if abs(x) < 5000:
        known = context.exp(scaled)
        low, high = (
            context.multiply(Decimal(end), context.power(Decimal(2), -near.places)) for end in (near.low, near.high)
        )
        assert context.multiply(low, less) <= known <= context.multiply(high, more)
    assert near.high - near.low <= near.low >> 50
    # e^x e^-x = 1, and e^(2 x) is the square.
    one = near.times(exponential(-x, 300), 300)
    assert one.units(300)[0] <= 1 << 300 <= one.units(300)[1]
    y = F(rng.randint(1, 10**9), rng.randint(1, 10**9))
    seen = Near.of(y, 80)
    assert F(seen.low) / F(2) ** seen.places <= y <= F(seen.high) / F(2) ** seen.places
    power = rng.randint(-300, 300)
    raised = seen.power(power, 90)
    assert F(raised.low) / F(2) ** raised.places <= y**power <= F(raised.high) / F(2) ** raised.places
    other = Near.of(y + F(rng.randint(-1, 1), 10**6), 80)
    if seen.at_most(other):
        assert F(seen.low) / F(2) ** seen.places <= F(other.high) / F(2) ** other.places
    assert Levels(Level(F(3, 2), F(1, 7))).near(-4, 90).at_most(Levels(Level(F(3, 2), F(1, 7))).near(-3, 90))


# --- forgeries


def stronger(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Claims that are certainly false: the core's lower bound is above them."""
    found = []
    composition = composition_of(content)
    lower = F(composition.delta(F(content["epsilon"]["exponent"]), relative=0.01).lower)
    if lower > 0:
        found.append(content | {"delta": values.fraction_text(lower * F(999, 1000))})
    less = composition.epsilon(F(content["delta"]), width=0.01).lower
    if less > 0:
        exponent = values.fraction_text(F(less) * F(999, 1000))
        found.append(content | {"epsilon": {"ratio": "1", "exponent": exponent}})
    return found


def test_samples_have_their_neighbors() -> None:
    for name, other in (("sampled Gaussian", "replace"), ("sample of a fixed size", "add-remove")):
        found = checker.check(sealed(json.loads(MAKERS[name]()) | {"neighbors": other}))
        assert found.finding == "wrong"
        assert "other neighbors" in found.problems[0]


@pytest.mark.parametrize(
    "name", ["randomized response", "discrete Laplace", "bounded range", "pair", "mixed", "sampled Gaussian"]
)
def test_stronger_claims_are_wrong(name: str) -> None:
    forged = stronger(json.loads(MAKERS[name]()))
    assert forged
    for content in forged:
        found = checker.check(sealed(content))
        assert found.finding == "wrong"
        assert "not shown" in found.problems[0]


def mutated(value: Any, rng: random.Random) -> Any:
    """One change of one number or word somewhere."""
    if isinstance(value, dict):
        name = rng.choice(sorted(value))
        return value | {name: mutated(value[name], rng)}
    if isinstance(value, list):
        if not value or rng.random() < 0.1:
            return value[:-1] if rng.random() < 0.5 else [*value, *value[:1]]
        place = rng.randrange(len(value))
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, value * 2, value // 2, -value, 0])
    if isinstance(value, str) and value[:1].isdigit():
        top, _, bottom = value.partition("/")
        number = F(int(top), int(bottom or 1))
        changed = rng.choice(
            [
                number + 1,
                number * F(9, 10),
                number * F(11, 10),
                number / 2,
                number * 2,
                F(0),
                number * F(10**6 - 1, 10**6),
            ]
        )
        return values.fraction_text(max(changed, F(0)))
    return rng.choice(["replace", "add-remove", "pure", "pair", None, 7])


@pytest.mark.parametrize("name", ["randomized response", "pure and delta", "discrete Laplace", "pair", "no delta"])
def test_mutations_are_rejected_or_true(name: str) -> None:
    """What is accepted is true: the core's lower bound of what is then listed is not above what is then claimed."""
    rng, rejected, accepted = random.Random(name), 0, 0
    original = json.loads(MAKERS[name]())
    for _ in range(300):
        content = {key: value for key, value in original.items() if key not in ("digest", "format", "userdp_version")}
        for _ in range(rng.randint(1, 2)):
            content = mutated(content, rng)
        content = original | content
        found = checker.check(sealed(content))
        if found.finding == "wrong":
            assert found.problems
            rejected += 1
            continue
        accepted += 1
        report = Report.from_json(json.dumps(sealed(content)))
        assert report.verify() == found
        level, delta = content["epsilon"], F(content["delta"])
        asked = F(level["exponent"]) if F(level["ratio"]) == 1 else f"ln({level['ratio']})"
        if F(level["ratio"]) != 1 and F(level["exponent"]):
            asked = F(math.log(F(level["ratio"]))) + F(level["exponent"]) + F(1, 10**9)
        assert F(composition_of(content).delta(asked, relative=0.5).lower) <= delta
    assert rejected > 60
    assert accepted > 10


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "no releases": ("mixed", {"releases": []}),
    "too many": ("mixed", {"releases": [{"kind": "bounded-range"}] * 5000}),
    "unknown kind": ("mixed", {"releases": [{"kind": "magic", "count": 1}]}),
    "kind of another type": ("mixed", {"releases": [{"kind": ["pair"], "count": 1}]}),
    "no object": ("mixed", {"releases": ["pair"]}),
    "missing fields": ("mixed", {"releases": [{"kind": "pure", "count": 1}]}),
    "huge count": ("randomized response", {"count": 10**30}),
    "count of nothing": ("randomized response", {"count": 0}),
    "count of true": ("randomized response", {"count": True}),
    "long composition": ("randomized response", {"count": 2**40, "cut": "0"}),
    "huge epsilon": ("randomized response", {"epsilon": {"ratio": "1", "exponent": "1" + "0" * 4000}}),
    "too long ratio": ("randomized response", {"epsilon": {"ratio": "1" + "0" * 10**5, "exponent": "0"}}),
    "largest shift": ("discrete Laplace", {"shift": 2**16, "resolution": "1/100000"}),
    "larger shift": ("discrete Laplace", {"shift": 2**16 + 1}),
    "fine grid": ("bounded range", {"resolution": "1/1000000000"}),
    "too fine a grid": ("bounded range", {"resolution": "1/1" + "0" * 1000}),
    "no grid": ("mixed", {"resolution": None}),
    "no lattice": ("bounded range", {"resolution": None}),
    "negative grid": ("bounded range", {"resolution": "-1"}),
    "largest range": ("bounded range", {"range": {"ratio": "1", "exponent": "524000"}, "resolution": "1"}),
    "wide masses": ("randomized response", {"bits": 10**9}),
    "no masses": ("randomized response", {"bits": 1}),
    "whole cut": ("randomized response", {"cut": "1" + "0" * 36}),
    "half a cut": ("randomized response", {"cut": "1/2"}),
    "delta of 2": ("randomized response", {"delta": "2"}),
    "float": ("randomized response", {"delta": 1e-6}),
    "other neighbors": ("randomized response", {"neighbors": "same"}),
    "pair of two lengths": ("pair", {"p": ["1", "2"]}),
    "pair of nothing": ("pair", {"p": ["0", "0", "0"]}),
    "negative weights": ("pair", {"p": ["-1", "1", "1"]}),
    "weights that are numbers": ("pair", {"p": [1, 2, 3]}),
    "long weights": ("pair", {"p": ["1" + "0" * 20000, "1", "1"], "resolution": "1/100"}),
    "largest Gaussian": ("Gaussian", {"mu_squared": "1024", "resolution": "1/50"}),
    "least Gaussian": ("Gaussian", {"mu_squared": "1/1099511627776", "delta": "0", "resolution": "1/100000000000"}),
    "no Gaussian": ("Gaussian", {"mu_squared": "0"}),
    "far losses": ("pair", {"p": ["1" + "0" * 15000, "1", "1"], "resolution": "1/100000", "cut": "0"}),
    "near losses": (
        "pair",
        {
            "p": ["1" + "0" * 15000, "1" + "0" * 14999 + "1"],
            "q": ["1", "1"],
            "resolution": None,
            "count": 2**40,
            "epsilon": {"ratio": "1", "exponent": "0"},
        },
    ),
    "many outcomes": (
        "pair",
        {
            "p": [str(10**30 + i * i) for i in range(12_500)],
            "q": ["1"] * 12_500,
            "resolution": "1/1000",
            "epsilon": {"ratio": "1", "exponent": "0"},
        },
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with a reason or checked, in seconds. An eighth of the work is allowed, and so an eighth of a minute."""
    monkeypatch.setattr(kinds, "MOST_WORK", kinds.MOST_WORK // 8)
    made, changes = HOSTILE[name]
    content = json.loads(MAKERS[made]())
    for field, value in changes.items():
        inside = field in content["releases"][0] and field not in ("epsilon", "delta")
        (content["releases"][0] if inside else content)[field] = value
    content, start = sealed(content), time.process_time()
    found = checker.check(content)
    assert time.process_time() - start < 8
    assert found.finding in ("wrong", "refused")
    assert all(problem and "malformed" not in problem for problem in found.problems), found.problems
    try:
        report = Report.from_json(json.dumps(content))
    except ValueError as error:
        said = str(error)
    else:
        said = str(report)
    assert said


def test_the_work_of_a_check_is_bounded() -> None:
    """Nothing of these is done; they are refused when their work is known."""
    with pytest.raises(values.Problem, match="too large to be checked"):
        Work().spend(kinds.MOST_WORK + 1)


def test_without_the_compiled_decimal_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compositions, "_COMPILED", False)
    content = json.loads(MAKERS["randomized response"]())
    assert checker.check(content).finding == "established"
    content = sealed(content | {"resolution": "1/30000"})
    assert "compiled decimal module" in checker.check(content).problems[0]


def test_the_check_needs_the_standard_library_alone(tmp_path: Path) -> None:
    """Not even another module of the package, and neither NumPy nor the compiled core."""
    path = tmp_path / "certificate.json"
    path.write_text(MAKERS["mixed"]())
    folder = Path(compositions.__file__).parents[2]
    code = f"""
import sys
for name in ("numpy", "userdp._core"):
    sys.modules[name] = None
sys.path.insert(0, {str(folder)!r})
from userdp.checker import check, values
found = check.check(values.parsed(open({str(path)!r}).read()))
loaded = {{name.partition(".")[0] for name in sys.modules if sys.modules[name] is not None}}
outside = loaded - set(sys.stdlib_module_names) - {{"userdp", "__main__"}}
outside = {{name for name in outside if getattr(sys.modules[name], "__file__", None)}}
print(found.finding, sorted(outside))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "established []"


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(MAKERS["mixed"]())
    assert main(["verify", str(path)]) == 0
    said = capsys.readouterr().out
    assert "established" in said
    assert "epsilon: " in said
    path.write_text(json.dumps(sealed(json.loads(MAKERS["mixed"]()) | {"delta": "1/10000000000"})))
    assert main(["verify", str(path)]) == 6
    assert "not shown" in capsys.readouterr().out
    path.write_text("{")
    assert main(["verify", str(path)]) == 2


# --- asking


def test_what_is_not_certified() -> None:
    once = PLD.pure("0.1", "1e-4")
    with pytest.raises(ValueError, match="give epsilon, delta, or both"):
        once.certificate()
    with pytest.raises(ValueError, match="no finite epsilon"):
        once.certificate(delta="1e-6")
    with pytest.raises(ValueError, match="at least"):
        MIXED.certificate(epsilon=1, delta="1e-6")
    with pytest.raises(BudgetError, match="max_terms"):
        MIXED.certificate(delta="1e-6", max_terms=100)
    with pytest.raises(BudgetError, match="too large to be checked"):
        once.certificate(epsilon=10**30)


def test_a_claim_near_the_bound_takes_a_finer_grid() -> None:
    noise = PLD.bounded_range("0.3").self_compose(20)
    epsilon = noise.epsilon("1e-6", width=1e-3).upper
    certificate = Report.from_json(noise.certificate(epsilon=epsilon, delta="1e-6"))
    coarse = Report.from_json(MAKERS["bounded range"]())
    assert isinstance(certificate, CompositionCertificate)
    assert isinstance(coarse, CompositionCertificate)
    assert certificate.resolution is not None
    assert coarse.resolution is not None
    assert certificate.resolution <= coarse.resolution
    assert certificate.verify().finding == "established"


def test_both_orders_are_composed() -> None:
    """(P, Q) is worse than (Q, P) here, and either order of the certificate says the larger."""
    p, q = ["30/31", "1/31"], ["14/41", "27/41"]
    first = Report.from_json(PLD.from_pmfs(p, q).self_compose(3).certificate(epsilon=1))
    second = Report.from_json(PLD.from_pmfs(q, p).self_compose(3).certificate(epsilon=1))
    assert isinstance(first, CompositionCertificate)
    assert isinstance(second, CompositionCertificate)
    assert first.delta == second.delta
    assert not kinds.Pair((30, 1), (14, 27)).is_symmetric()
    assert kinds.Pair((3, 1, 2), (1, 3, 2)).is_symmetric()


def test_many_outcomes() -> None:
    """128 outcomes, 300 times, in seconds."""
    rng = random.Random(0)
    p = [rng.randrange(10**6, 2 * 10**6) for _ in range(128)]
    q = [int(x * math.exp(rng.uniform(-0.2, 0.2))) for x in p]
    whole = PLD.from_pmfs([F(x, sum(p)) for x in p], [F(x, sum(q)) for x in q]).self_compose(300)
    certificate = Report.from_json(whole.certificate(delta="1e-6"))
    assert isinstance(certificate, CompositionCertificate)
    start = time.process_time()
    assert certificate.verify().finding == "established"
    assert time.process_time() - start < 20
    # Losses are uniform on an interval of 0.4: a mean of 300 * 0.4^2 / 24, and 4.8 standard deviations of 2.
    assert 10.5 < float(certificate.epsilon) < 12.5
