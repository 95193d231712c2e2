"""Every rounding of the accounting is toward less privacy claimed: enclosures made wide only raise what is claimed.

Real enclosures are too narrow for a wrong end to show. So here they are a thousandth wide, and whatever should be an
upper bound must be one still, by visibly more than before, and whatever should be a lower bound likewise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from oracle.divergence import exp_bounds
from userdp import LogRatio
from userdp.accounting import calibration as _inverse
from userdp.accounting import (
    compose_advanced,
    compose_optimal,
    dimension_epsilon,
    group_privacy,
    largest_epsilon_each,
    largest_rho,
    optimal_delta,
    optimal_delta_of_groups,
    pure_to_zcdp,
    subsampling_amplification,
    subsampling_population,
    triangle_inequality,
    zcdp_delta,
    zcdp_epsilon,
)
from userdp.accounting import composition as _composition
from userdp.accounting import ledger as _ledger
from userdp.accounting import zcdp as _zcdp
from userdp.exact import epsilon as _exponentials

F = Fraction
WIDTH = F(1, 1000)
# The package has a function of the same name.
_groups = importlib.import_module("userdp.accounting.group_privacy")
MODULES = (_composition, _exponentials, _groups, _inverse, _ledger, _zcdp)

RAISED: dict[str, Callable[[], Any]] = {
    "zcdp_delta": lambda: zcdp_delta("1/50", 1),
    "zcdp_delta with a distance": lambda: zcdp_delta("1/50", 1, distance="1e-6"),
    "zcdp_delta of a logarithm": lambda: zcdp_delta("1/10", LogRatio(3)),
    "zcdp_epsilon": lambda: zcdp_epsilon("1/50", "1e-6"),
    "pure_to_zcdp": lambda: pure_to_zcdp(LogRatio(3)),
    "optimal_delta": lambda: optimal_delta("1/10", 30, 1),
    "optimal_delta at an irrational multiplier": lambda: optimal_delta(LogRatio(11, 10), 30, "1/2"),
    "optimal_delta, long": lambda: optimal_delta("1/100", 900, 1),
    "optimal_delta_of_groups": lambda: optimal_delta_of_groups([("1/10", 30), ("1/20", 300)], 1),
    "compose_optimal": lambda: compose_optimal("1/100", 900, "1e-6"),
    "compose_advanced": lambda: compose_advanced("1/100", 900, "1e-6").epsilon,
    "group_privacy": lambda: F(group_privacy("1/10", "1e-9", 30).delta),
    "triangle_inequality": lambda: F(triangle_inequality("1/2", "1e-6", "1/20", "1e-5").delta),
    "triangle_inequality, the other way": lambda: F(triangle_inequality("1/20", "1e-5", "1/2", "1e-6").delta),
    "triangle_inequality of a logarithm and a number": lambda: F(triangle_inequality(LogRatio(2), 0, 1, 0).epsilon),
    "subsampling_amplification": lambda: F(subsampling_amplification(1, 0, n_sampled=1, n_total=10).epsilon),
    "subsampling_population": lambda: F(subsampling_population(1, n_sampled=10**7, target="1/10")),
    "subsampling_population of a logarithm": lambda: F(subsampling_population(1, n_sampled=10**7, target="ln(2)")),
    "subsampling_population, searched, of a logarithm": lambda: F(
        subsampling_population(1, n_sampled=10**7, target=lambda _: "ln(2)")
    ),
    "subsampling_population, searched": lambda: F(subsampling_population(1, n_sampled=10**7, target=lambda _: "1/10")),
}
LOWERED: dict[str, Callable[[], Any]] = {
    "largest_rho": lambda: largest_rho(1, "1e-6"),
    "largest_rho of a logarithm": lambda: largest_rho(LogRatio(3), "1e-6", distance="1e-8"),
    "largest_epsilon_each": lambda: largest_epsilon_each(900, 1, "1e-6"),
    "dimension_epsilon": lambda: dimension_epsilon(1, "1e-6", 64),
}


@pytest.fixture
def widened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make enclosures wide when called, all or those of these names, in all modules that use them."""

    def wide(enclosing: Callable[..., tuple[Fraction, Fraction]], least: Fraction) -> Callable[..., Any]:
        def enclose(*given: Any) -> tuple[Fraction, Fraction]:
            low, high = enclosing(*given)
            # What is a fraction or 0 is exact and stays so.
            return (low, high) if low == high else (max(least, low * (1 - WIDTH)), high * (1 + WIDTH))

        return enclose

    def apply(*only: str) -> None:
        ends = {
            "enclosure": wide(_exponentials.enclosure, F(1)),
            "ln_enclosure": wide(_exponentials.ln_enclosure, F(-(10**9))),
        }
        ends["upper"] = lambda level, name="epsilon": ends["enclosure"](level, name)[1]

        def value(level: Any) -> tuple[Fraction, Fraction]:
            low, high = ends["ln_enclosure"](level.ratio)
            return low + level.exponent, high + level.exponent

        ends["value_enclosure"] = value
        for module in MODULES:
            for name, function in ends.items():
                if hasattr(module, name) and (name in only or not only):
                    monkeypatch.setattr(module, name, function)

    return apply


@pytest.mark.parametrize("name", RAISED)
def test_claims_only_rise(name: str, widened: Callable[..., None]) -> None:
    narrow = RAISED[name]()
    widened()
    assert RAISED[name]() > narrow * (1 + F(1, 10**5))


@pytest.mark.parametrize("name", LOWERED)
def test_allowances_only_fall(name: str, widened: Callable[..., None]) -> None:
    narrow = LOWERED[name]()
    widened()
    assert LOWERED[name]() < narrow * (1 - F(1, 10**5))


@pytest.mark.parametrize("only", ["enclosure", "ln_enclosure", "upper", "value_enclosure"])
@pytest.mark.parametrize("name", [*RAISED, *LOWERED])
def test_no_enclosure_is_used_at_the_wrong_end(name: str, only: str, widened: Callable[..., None]) -> None:
    call, sign = (RAISED[name], 1) if name in RAISED else (LOWERED[name], -1)
    narrow = call()
    widened(only)
    # Searches may end a little elsewhere.
    assert sign * (call() - narrow) >= -narrow * F(1, 10**9)


@pytest.mark.parametrize("exponent", ["1/3", "1", "100", "2800"])
def test_exponentials_are_rounded_up(exponent: str) -> None:
    bound = _exponentials.exp_above(-F(exponent))
    low, high = exp_bounds(F(exponent))
    assert 1 / low < bound < (1 + F(1, 2**60)) / high
