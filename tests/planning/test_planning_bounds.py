"""Lower bounds, the bound for users who differ, and radii, beside published cases, exact attainment and exact tails."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from userdp import LogRatio
from userdp.means import concentration_radius
from userdp.planning import heterogeneity_bound, lower_bound
from userdp.planning.hard_tasks import CLIPPED

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "mean_erm_sco" / "planning.json").read_text())["cases"]
}


def test_published_few_users() -> None:
    case = CASES["few-users"]
    found = lower_bound("testing", **case["input"])
    for name, expected in zip(("as printed", "group"), case["expected"], strict=True):
        value = Fraction(found.terms[f"few users, {name}"])
        assert Fraction(expected) * (1 - Fraction(1, 2**51)) <= value <= Fraction(expected)
    assert found.value == found.terms["few users, sharper"]


def test_published_finite_class() -> None:
    case = CASES["finite-class"]
    given = {"max_loss" if name == "bound" else name: value for name, value in case["input"].items()}
    assert lower_bound("finite-class", **given).value == pytest.approx(float(case["expected"]), rel=1e-13)


def test_published_heterogeneity() -> None:
    case = CASES["heterogeneity"]
    given = {"max_loss" if name == "bound" else name: value for name, value in case["input"].items()}
    found = heterogeneity_bound(**given)
    assert [found.paper, found.sharper] == pytest.approx(list(map(float, case["expected"])), rel=1e-13)


def test_few_users_in_decimals() -> None:
    with localcontext() as context:
        context.prec = 60
        for n, epsilon, delta in itertools.product((1, 3, 40), ("0.01", "0.3", "2"), ("0", "1e-9", "1e-4", "0.5")):
            e, d = Decimal(epsilon), Decimal(delta)
            whole = (n * e).exp()
            group = min(Decimal(1), d * (whole - 1) / (e.exp() - 1))
            expected = {
                "as printed": max(Decimal(0), (1 - n * d * whole) / (4 * (1 + whole))),
                "group": (1 - group) / (4 * (1 + whole)),
                "sharper": (1 - group) * whole / (1 + whole) ** 2,
            }
            found = lower_bound("testing", n_users=n, epsilon=epsilon, delta=delta)
            for name, value in expected.items():
                term = Decimal(found.terms[f"few users, {name}"])
                assert term <= value
                assert term >= value * (1 - Decimal("1e-14")) - Decimal("1e-30")


def least_error(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """The least mean squared error of telling p (truth 1) from q (truth 0), both as likely: the larger is no less."""
    return sum((a * b / (a + b) for a, b in zip(p, q, strict=True) if a + b), Fraction(0)) / 2


def test_many_users_at_a_long_level_are_as_at_its_number() -> None:
    step = 10**6
    long = lower_bound("testing", n_users=10 * step, epsilon=LogRatio(step + 1, step)).value
    shifted = math.exp(10 * step * math.log1p(1 / step))
    assert long == pytest.approx(shifted / (1 + shifted) ** 2, rel=1e-9)


def test_numbers_beyond_floats() -> None:
    tiny = lower_bound("finite-class", n_users=3, epsilon="1e-400", n_hypotheses=2**100)
    assert list(tiny.terms) == ["statistical"]
    assert lower_bound("testing", n_users=3, epsilon="1e400").value == 0
    with pytest.raises(ValueError, match="n_users must be at most"):
        lower_bound("mean", n_users=10**400, epsilon=1)
    with pytest.raises(ValueError, match="max_norm must be at most"):
        lower_bound("mean", n_users=1, epsilon=1, max_norm="1e400")
    with pytest.raises(ValueError, match="n_users"):
        heterogeneity_bound(0.1, n_users=10**400, m=1, distance="1e-6")


def test_few_users_is_attained() -> None:
    # One user whose answer is told with probability delta, and goes through randomized response otherwise.
    for ratio, delta in itertools.product((2, 3, 17), (Fraction(0), Fraction(1, 100), Fraction(1, 3))):
        truth = (1 - delta) * Fraction(ratio, 1 + ratio)
        p = [delta, Fraction(0), truth, 1 - delta - truth]
        q = [Fraction(0), delta, 1 - delta - truth, truth]
        bound = Fraction(lower_bound("testing", n_users=1, epsilon=LogRatio(ratio), delta=delta).value)
        assert bound <= least_error(p, q)
        assert bound >= least_error(p, q) * (1 - Fraction(1, 2**50))


def test_few_users_holds_for_any_pair() -> None:
    rng = random.Random(5)
    for _ in range(300):
        size, ratio = rng.randint(2, 5), Fraction(rng.randint(1, 5) + 1)
        weights = [[rng.randint(0, 6) for _ in range(size)] for _ in range(2)]
        if not all(map(any, weights)):
            continue
        p, q = ([Fraction(w, sum(row)) for w in row] for row in weights)
        delta = max(
            sum((max(Fraction(0), a - ratio * b) for a, b in zip(x, y, strict=True)), Fraction(0))
            for x, y in ((p, q), (q, p))
        )
        bound = lower_bound("testing", n_users=1, epsilon=LogRatio(ratio.numerator), delta=delta)
        assert Fraction(bound.value) <= least_error(p, q)
    # A smaller epsilon than the pair has gives a bound that is wrong for it.
    p, q = [Fraction(5, 6), Fraction(1, 6)], [Fraction(1, 6), Fraction(5, 6)]
    assert Fraction(lower_bound("testing", n_users=1, epsilon=LogRatio(2)).value) > least_error(p, q)


def test_tasks_scale_with_their_units() -> None:
    test = lower_bound("testing", n_users=4, epsilon=0.25, delta=1e-6).value
    assert lower_bound("mean", n_users=4, epsilon=0.25, delta=1e-6, max_norm=3).value == pytest.approx(36 * test)
    descent = lower_bound("sco", n_users=4, epsilon=0.25, delta=1e-6, lipschitz=3, radius=2)
    assert descent.value == pytest.approx(12 * test)
    assert all(name.startswith("few users") for name in descent.terms)
    # More rows of few users do not help.
    assert lower_bound("mean", n_users=4, epsilon=0.25, delta=1e-6, max_norm=3, m=10**9).value == pytest.approx(
        36 * test
    )
    assert lower_bound("testing", n_users=10**9, epsilon=1).value == 0


@pytest.mark.parametrize("k", [2**23, 2**32, 2**200 + 1])
@pytest.mark.parametrize(("n", "m", "epsilon"), [(1000, 1, 1.0), (100, 16, 0.1), (10**6, 256, 4.0)])
def test_finite_class_meets_its_conditions(k: int, n: int, m: int, epsilon: float) -> None:
    """Each gap makes its side of the inequality at least 1/2, on the packing of the proof."""
    d = math.floor(math.log2(k))
    found = lower_bound("finite-class", n_hypotheses=k, n_users=n, m=m, epsilon=epsilon)
    for name, value in found.terms.items():
        gap = 64 * value
        assert gap * math.log((1 + gap) / (1 - gap)) <= 3 * gap * gap
        if name == "statistical":
            assert 1 - (3 * n * m * gap**2 + math.log(2)) / (d / 8) >= 0.5 - 1e-12
        else:
            assert d / 8 - 10 * n * epsilon * math.sqrt(1.5 * m) * gap >= -math.log(2)
    assert set(found.terms) == {
        name
        for name, gap in (("statistical", d / (96 * m * n)), ("private", (d / (192 * n * epsilon)) ** 2 / m))
        if d > 22 and math.sqrt(gap) <= 0.85
    }


def test_linear_losses() -> None:
    given: dict[str, Any] = {"n_users": 10_000, "epsilon": 1, "delta": 1e-9, "m": 16, "sigma": 0.001, "radius": 2}
    found = lower_bound("sco", dimension=64, **given)
    assert found.terms["private, cited"] == pytest.approx(2 * 0.001 * 64 / (20480 * 10_000 * 4))
    assert found.value == found.terms["few users, sharper"] == 0
    # Wider gradients than the Lipschitz constant allows for count as narrower ones, and a large delta ends the proof.
    wide = lower_bound("sco", dimension=64, **(given | {"sigma": 1.0}))
    assert wide.terms["private, cited"] == pytest.approx(2 * 8 / 20 / (20480 * 10_000 * 4))
    assert "private, cited" not in lower_bound("sco", dimension=64, **(given | {"epsilon": 0.01, "delta": 0.01})).terms
    assert "private, cited" in lower_bound("sco", dimension=64, **(given | {"epsilon": 0.01})).terms
    assert "private, cited" not in lower_bound("sco", dimension=8, **given).terms


def clipped_mean(mean: float, sigma: float, bound: float) -> float:
    """E clip(mean + sigma g, -bound, bound) less the mean, in closed form, and by a sum where that is accurate."""

    def over(x: float) -> float:
        """E(g - x)_+."""
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * math.erfc(x / math.sqrt(2)) / 2

    return sigma * (over((bound + mean) / sigma) - over((bound - mean) / sigma))


def test_clipping_columns_moves_means_along_one_axis() -> None:
    """Lemma 3 of the paper promises O(sigma e^(-10 d)): off by 40 in 10."""
    d, size, sigma = 100, 100.0, 0.4
    mean = [50.0] + [0.0] * (d - 1)
    assert math.hypot(*mean) + 10 * math.sqrt(d) * sigma < size
    moved = math.hypot(*(clipped_mean(each, sigma, size / math.sqrt(d)) for each in mean))
    assert moved == pytest.approx(40)
    assert sigma * math.exp(-10 * d) == 0  # in floats
    # Drawn, as the paper's (20) says, for the same finding without a closed form.
    source = random.Random(4)
    bound = size / math.sqrt(d)
    assert {max(-bound, min(bound, source.gauss(50, sigma))) for _ in range(10_000)} == {bound}


def test_what_clipping_moves_with_ten_to_spare() -> None:
    """The repaired lemma, with the constant that lower_bound takes off, by an integral in decimals."""
    with localcontext() as context:
        context.prec = 40
        step = Decimal("0.001")
        heights = [(-((10 + step * k) ** 2) / 2).exp() * step * k for k in range(6000)]
        spare = sum(heights) * step / (2 * Decimal(math.pi)).sqrt()
    assert spare == pytest.approx(Decimal("7.47e-25"), rel=Decimal("0.01"))
    assert 2 * spare < Decimal(repr(CLIPPED)) < 3 * spare
    for mean, sigma in itertools.product((0.0, 0.3, 5.0), (0.1, 1.0)):
        bound = mean + 4 * sigma  # with four, floats still see it
        assert abs(clipped_mean(mean, sigma, bound)) <= sigma * 7.15e-6
    # e^-50 and not e^(-10 d), so that the order in the paper is wrong for small means too.
    assert spare > Decimal(10) ** -25 > (Decimal(-10) * 100).exp()


def test_the_cited_term_asks_for_short_means() -> None:
    """Means of ten standard deviations of a record at most, in any direction: the sizes are those of the condition."""
    source = random.Random(9)
    shown = 0
    for _ in range(400):
        d, m, n = 2 ** source.randint(0, 20), 4 ** source.randint(0, 5), 10 ** source.randint(0, 4)
        epsilon, sigma = 10 ** source.uniform(-4, 1), 10 ** source.uniform(-3, 1)
        found = lower_bound("sco", n_users=n, epsilon=epsilon, m=m, dimension=d, sigma=sigma, lipschitz=1).terms
        width = min(sigma, 1 / (20 * math.sqrt(d)))
        length = d * width / (512 * n * math.sqrt(m) * epsilon)
        if "private, cited" in found:
            shown += 1
            assert length <= 10 * width * (1 + 1e-9)
            assert length + 10 * width <= (1 + 1e-9) / math.sqrt(d)
            assert found["private, cited"] == pytest.approx(length / 40)
        else:
            assert length > 10 * width * (1 - 1e-9) or 100 * d / (512 * epsilon) <= math.sqrt(d) * (1 + 1e-9)
    assert 50 < shown < 350
    # So many users that what clipping moves is more than the term.
    far: dict[str, Any] = {"n_users": 10**25, "epsilon": 1e-2, "dimension": 64, "sigma": 1, "lipschitz": 1e3}
    assert "private, cited" not in lower_bound("sco", **far).terms
    assert "private, cited" in lower_bound("sco", **(far | {"n_users": 10**18})).terms


def test_users_who_differ() -> None:
    """The distance of all rows is attained: the common distribution never has a value that users have now and then."""
    for n, m, shift in itertools.product((1, 2), (1, 2), (Fraction(1, 10), Fraction(1, 2))):
        rows = list(itertools.product((0, 1), repeat=n * m))
        common = {row: Fraction(not any(row)) for row in rows}
        users = {row: math.prod(shift if value else 1 - shift for value in row) for row in rows}
        apart = sum(abs(common[row] - users[row]) for row in rows) / 2
        assert apart == 1 - (1 - shift) ** (n * m)
        found = heterogeneity_bound(0, n_users=n, m=m, distance=shift, max_loss=2)
        assert found.sharper == pytest.approx(float(2 * (apart + 2 * shift)))
        assert found.sharper <= found.paper
    assert heterogeneity_bound(0, n_users=10**6, m=10**6, distance=1).sharper == 3


def tail(m: int, distance: float) -> float:
    """P(|mean of m fair signs| > distance), exactly but for the last float."""
    low = math.ceil(m * (1 - distance) / 2) - 1  # fewer than m (1 - distance) / 2 of one sign
    while low >= 0 and not abs(m - 2 * low) / m > distance:
        low -= 1
    return float(Fraction(2 * sum(math.comb(m, k) for k in range(low + 1)), 2**m))


@pytest.mark.parametrize("m", [1, 16, 400])
@pytest.mark.parametrize("n", [1, 100])
def test_radii_of_fair_signs(m: int, n: int) -> None:
    """On fair signs: no user is outside but for probability gamma, and half of the radius is too small."""
    gamma = 0.01
    for kind in ("scalar", "ball"):
        radius = concentration_radius(kind, m=m, n_users=n, gamma=gamma, max_norm=1)
        assert 1 - (1 - tail(m, radius)) ** n <= gamma
        if m > 1:
            assert 1 - (1 - tail(m, radius / 2)) ** n > gamma
    # What is printed for losses in [-1, 1] is 2 sqrt(2) times too small.
    printed = 0.5 * math.sqrt((math.log(n) + math.log(2 / gamma)) / m)
    assert 1 - (1 - tail(400, printed)) ** n > gamma if m == 400 else True


def test_radii_of_normal_vectors() -> None:
    """In one dimension the tail is an error function; in two it is an exponential."""
    for n, gamma, m in itertools.product((1, 1000), (0.3, 1e-6), (1, 100)):
        one = concentration_radius("sub-gaussian", m=m, n_users=n, gamma=gamma, sigma=2, dimension=1)
        assert n * math.erfc(one * math.sqrt(m) / 2 / math.sqrt(2)) <= gamma
        two = concentration_radius("sub-gaussian", m=m, n_users=n, gamma=gamma, sigma=2, dimension=2)
        assert n * math.exp(-((two * math.sqrt(m) / 2) ** 2) / 2) <= gamma
        assert concentration_radius("sub-gaussian", m=m, n_users=n, gamma=gamma, sigma=2, dimension=8, queries=3) > two


def test_radii_of_gradients() -> None:
    """The cover and the tail of the proof, term by term."""
    given: dict[str, Any] = {"m": 64, "n_users": 500, "sigma": 0.5, "dimension": 3, "smoothness": 2.0}
    t = concentration_radius("gradients", gamma=0.01, parameter_radius=4.0, **given)
    mesh = min(1.0, math.sqrt(2) * 0.5 / (4 * 2) * math.sqrt(3 / 64))
    assert 2.0 * mesh < t / 4
    points, directions = (1 + 2 * 4.0 / mesh) ** 3, 5**3
    assert 500 * points * directions * math.exp(-64 * (t / 4) ** 2 / (2 * 0.5**2)) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lower_bound("median", n_users=1, epsilon=1), "task must be one of"),
        (lambda: lower_bound("mean", n_users=0, epsilon=1), "n_users must be at least 1"),
        (lambda: lower_bound("mean", n_users=1, epsilon=0), "epsilon must be > 0"),
        (lambda: lower_bound("mean", n_users=1, epsilon=1, delta=2), "delta"),
        (lambda: lower_bound("mean", n_users=1, epsilon=1, max_norm=0), "max_norm must be > 0"),
        (lambda: lower_bound("finite-class", n_users=1, epsilon=1), "n_hypotheses must be given"),
        (lambda: lower_bound("finite-class", n_users=1, epsilon=1, n_hypotheses=99, delta=0.1), "delta must be 0"),
        (lambda: lower_bound("sco", n_users=1, epsilon=1, sigma=0), "sigma must be > 0"),
        (lambda: lower_bound("sco", n_users=1, epsilon=1, radius=-1), "radius must be > 0"),
        (lambda: heterogeneity_bound(-1, n_users=1, m=1, distance=0.1), "excess must be a finite number >= 0"),
        (lambda: heterogeneity_bound(math.nan, n_users=1, m=1, distance=0.1), "excess must be a finite number >= 0"),
        (lambda: heterogeneity_bound(0, n_users=1, m=1, distance=2), "distance"),
        (lambda: heterogeneity_bound(0, n_users=1, m=0, distance=0), "m must be at least 1"),
        (lambda: concentration_radius("box", m=1, n_users=1), "kind must be one of"),
        (lambda: concentration_radius("ball", m=1, n_users=1), "max_norm must be given for 'ball'"),
        (lambda: concentration_radius("ball", m=1, n_users=1, max_norm=1, gamma=1), "gamma must be strictly between"),
        (lambda: concentration_radius("sub-gaussian", m=1, n_users=1, dimension=2), "sigma must be given"),
        (lambda: concentration_radius("gradients", m=1, n_users=1, sigma=1, dimension=2), "smoothness must be given"),
    ],
)
def test_bad_numbers(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
