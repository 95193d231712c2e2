"""Composition against enumeration in fractions, published numbers, and another accountant."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import composition as oracle
from userdp import LogRatio
from userdp.accounting import (
    PrivacyCost,
    compose_advanced,
    compose_basic,
    compose_optimal,
    dimension_epsilon,
    largest_epsilon_each,
    largest_rho,
    optimal_delta,
    optimal_delta_of_groups,
)
from userdp.exceptions import BudgetError

F = Fraction
DATA: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "mean_erm_sco" / "accounting.json").read_text())
NEARLY = F(1, 10**11)
GRID = 1e-5
"""To which dp_accounting rounded the privacy loss of each mechanism, upwards."""


def read(value: Any) -> Any:
    """ln(3) is a LogRatio; everything else is as it is."""
    return LogRatio(int(value[3:-1])) if isinstance(value, str) and value.startswith("ln(") else value


def case(number: int) -> tuple[dict[str, Any], Fraction]:
    (found,) = (case for case in DATA["cases"] if case["id"] == number)
    return {name: read(value) for name, value in found["input"].items()}, F(found["expected"])


def logs(value: LogRatio | Fraction) -> Fraction:
    """e^epsilon of an exact result."""
    assert isinstance(value, LogRatio)
    return value.ratio


def as_digits(value: Fraction | float, digits: str) -> str:
    """The value rounded to as many digits as the text has."""
    return f"{float(value):.{len(Decimal(digits).as_tuple().digits) - 1}e}"


def same_digits(value: Fraction | float, digits: str) -> bool:
    return as_digits(value, digits) == as_digits(float(digits), digits)


@pytest.mark.parametrize("number", [21, 22])
def test_closed_form_of_dimensions(number: int) -> None:
    given, expected = case(number)
    assert 0 <= expected - dimension_epsilon(**given) < expected * NEARLY


def test_published_advanced() -> None:
    given, expected = case(24)
    result = compose_advanced(**given)
    assert 0 <= result.epsilon - expected < expected * NEARLY
    assert result.delta == F(1, 10**6)


def test_published_optimal() -> None:
    given, expected = case(25)
    assert 0 <= compose_optimal(**given) - expected < expected * NEARLY


@pytest.mark.parametrize("number", [28, 29])
def test_published_optimal_deltas(number: int) -> None:
    given, expected = case(number)
    assert optimal_delta(**given) == expected


@pytest.mark.parametrize("found", DATA["largest_each"]["cases"], ids=str)
def test_published_shares(found: dict[str, Any]) -> None:
    each = largest_epsilon_each(found["k"], 1, "1e-6") * found.get("times", 1)
    assert same_digits(each, found["expected"])
    assert optimal_delta(each / found.get("times", 1), found["k"], 1) <= F("1e-6")


@pytest.mark.parametrize("found", DATA["unequal_groups"]["cases"], ids=str)
def test_unequal_parts_cost_more_than_equal_ones(found: dict[str, Any]) -> None:
    whole, share = F("0.04227"), F(found["share"])
    delta = optimal_delta_of_groups([(share * whole, 64), ((1 - share) * whole, 64)], 1)
    assert same_digits(delta, found["expected"])
    assert delta > F("7e-6") > optimal_delta(whole / 2, 128, 1)


def test_accounts_of_one_descent() -> None:
    published = DATA["one_descent"]
    queries, dimension, delta = 100, 8, F("1e-6")
    k = queries * dimension

    def advanced(count: int) -> Fraction:
        """The largest by advanced composition, by bisection."""
        low, high = F(0), F(1)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if compose_advanced(middle, count, delta).epsilon <= 1 else (low, middle)
        return low

    per_query = 1 / (2 * math.sqrt(2 * queries * math.log(2 / delta)))
    nested = per_query / math.sqrt(8 * dimension * math.log(2 * queries / delta))
    # k pairs of a range of epsilon/2, which is of bounded range, and a sum of epsilon/2.
    rho = largest_rho(1, delta)
    concentrated = 2 * math.sqrt(rho / k / (F(1, 8) + F(1, 2)))
    found = {
        "nested": nested,
        "closed_form": dimension_epsilon(1, delta, k),
        "advanced": advanced(k),
        "advanced_halves": 2 * advanced(2 * k),
        "optimal": largest_epsilon_each(k, 1, delta),
        "optimal_halves": 2 * largest_epsilon_each(2 * k, 1, delta),
        "zcdp_bounded_range": concentrated,
    }
    for name, value in found.items():
        assert same_digits(value, published[name]), name
    # Even these are all beaten where the two stages get unequal parts; and each is better than the one before.
    assert nested < float(found["closed_form"]) < found["advanced"] < found["optimal"] < concentrated


@pytest.mark.parametrize("found", DATA["limits_of_the_closed_form"]["advanced"], ids=str)
def test_where_advanced_composition_ends(found: dict[str, Any]) -> None:
    delta, d = F(found["delta"]), found["dimension"]

    def proved(epsilon: float) -> bool:
        each = epsilon / math.sqrt(8 * d * math.log(1 / delta))
        return compose_advanced(each, d, delta).epsilon <= epsilon

    assert proved(found["expected"] - 0.1)
    assert not proved(found["expected"] + 0.1)


@pytest.mark.parametrize("found", DATA["limits_of_the_closed_form"]["optimal"], ids=str)
def test_the_closed_form_is_refused_where_it_is_not_proved(found: dict[str, Any]) -> None:
    limit = F(str(found["expected"]))
    given = {"delta": found["delta"], "dimension": found["dimension"]}
    each = dimension_epsilon(limit - F("0.02"), **given)
    assert optimal_delta(each, found["dimension"], limit - F("0.02")) <= F(found["delta"])
    with pytest.raises(ValueError, match="largest_epsilon_each"):
        dimension_epsilon(limit + F("0.02"), **given)


def test_the_closed_form_is_refused_where_sums_are_too_long() -> None:
    assert dimension_epsilon(1, "1e-6", 10**9) > 0  # by advanced composition
    with pytest.raises(ValueError, match="not proved"):
        dimension_epsilon(1000, "1e-6", 10**9)


@pytest.mark.parametrize("level", [F(2), F(3), F(7, 4), F(101, 100)], ids=str)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("leak", [F(0), F(1, 50)], ids=str)
def test_optimal_composition_is_that_of_responses(level: Fraction, k: int, leak: Fraction) -> None:
    pairs = [oracle.response(level, leak)] * k
    ratio = LogRatio(*level.as_integer_ratio())
    for multiplier in [F(1), F(3, 2), level, level ** (k - 1), level**k * F(99, 100), level**k, 2 * level**k]:
        if multiplier >= 1:
            expected = oracle.composed_delta(pairs, multiplier)
            assert optimal_delta(ratio, k, LogRatio(*multiplier.as_integer_ratio()), leak) == expected


@pytest.mark.parametrize("seed", range(8))
def test_optimal_composition_of_groups_is_that_of_responses(seed: int) -> None:
    rng = random.Random(seed)
    levels = [F(rng.randint(5, 12), rng.randint(2, 5)) for _ in range(rng.randint(1, 3))]
    groups = [(level, rng.randint(1, 2), rng.choice([F(0), F(1, 20)])) for level in levels]
    pairs = [oracle.response(level, leak) for level, k, leak in groups for _ in range(k)]
    for _ in range(4):
        multiplier = F(rng.randint(10, 120), 10)
        expected = oracle.composed_delta(pairs, multiplier)
        given = [(LogRatio(*level.as_integer_ratio()), k, leak) for level, k, leak in groups]
        assert optimal_delta_of_groups(given, LogRatio(*multiplier.as_integer_ratio())) == expected


@pytest.mark.parametrize(("level", "k"), [(F(2), 3), (F(3), 3), (F(5, 2), 4), (F(4), 2)])
def test_optimal_epsilon_is_the_least(level: Fraction, k: int) -> None:
    pairs = [oracle.response(level)] * k
    ratio = LogRatio(*level.as_integer_ratio())
    for delta in [F(0), F(1, 1000), F(1, 20), F(9, 32), F(1, 3), F(99, 100), F(1)]:
        result = compose_optimal(ratio, k, delta)
        least = F(1) if result == 0 else logs(result)
        assert oracle.composed_delta(pairs, least) <= delta
        assert least == 1 or oracle.composed_delta(pairs, least * F(999999, 1000000)) > delta


def test_optimal_epsilon_pays_for_the_deltas_of_the_mechanisms() -> None:
    pairs = [oracle.response(F(3), F(1, 100))] * 3
    result = logs(compose_optimal(LogRatio(3), 3, "1/10", "1/100"))
    assert oracle.composed_delta(pairs, result) == F(1, 10)
    with pytest.raises(ValueError, match="take a larger delta"):
        compose_optimal(LogRatio(3), 3, "1/50", "1/100")
    with pytest.raises(ValueError, match="take a larger delta"):
        largest_epsilon_each(3, 1, "1/50", delta_each="1/100")


@pytest.mark.parametrize(("k", "multiplier"), [(300, F(3)), (700, F(2))])
def test_long_sums_are_rounded_upwards_by_next_to_nothing(k: int, multiplier: Fraction) -> None:
    level = F(1025, 1000)
    exact = oracle.optimal_delta([(level, k)], multiplier)
    rounded = optimal_delta(LogRatio(41, 40), k, LogRatio(*multiplier.as_integer_ratio()))
    assert exact <= rounded <= exact * (1 + F(1, 10**60))
    several = oracle.optimal_delta([(level, k), (F(6, 5), 2)], multiplier)
    rounded = optimal_delta_of_groups([(LogRatio(41, 40), k), (LogRatio(6, 5), 2)], LogRatio(multiplier.numerator))
    assert several <= rounded <= several * (1 + F(1, 10**60))
    epsilon = compose_optimal(LogRatio(41, 40), k, exact)
    assert 0 <= float(epsilon) - math.log(multiplier) < 1e-12


def test_epsilons_of_irrational_exponentials_are_enclosed_from_above() -> None:
    # Between ln of the fractions just below and just above e^(1/10).
    below, above = F("1.1051709180"), F("1.1051709181")
    low = oracle.optimal_delta([(below, 20)], F("2.7182818285"))
    high = oracle.optimal_delta([(above, 20)], F("2.7182818284"))
    assert low < optimal_delta("1/10", 20, 1) < high


@pytest.mark.parametrize("k", [1, 2, 5, 64, 800])
@pytest.mark.parametrize("delta", ["1e-9", "1e-2", "0.7"])
def test_inverse_is_certified_and_nearly_the_largest(k: int, delta: str) -> None:
    each = largest_epsilon_each(k, LogRatio(2), delta)
    assert optimal_delta(each, k, LogRatio(2)) <= F(delta)
    assert optimal_delta(each * (1 + F(1, 2**37)), k, LogRatio(2)) > F(delta)


def test_inverse_of_exact_cases() -> None:
    each = largest_epsilon_each(3, LogRatio(9), F(9, 32))
    assert 0 <= math.log(3) - each < 1e-11
    assert 0 <= F(2, 3) - largest_epsilon_each(3, 2, 0) < F(1, 10**11)
    shares = [("1/4", 64), ("3/4", 64)]
    whole = largest_epsilon_each(shares, 1, "1e-6")
    assert optimal_delta_of_groups([(whole / 4, 64), (whole * 3 / 4, 64)], 1) <= F("1e-6")
    assert F("0.03019") < whole < F("0.04227")  # between 64 whole ones, and 128 halves


def test_inverse_at_extremes() -> None:
    # As optimal composition at epsilon = 0 does: the total variation of 64 responses.
    tiny = largest_epsilon_each(64, "1e-30", "1e-6")
    assert 0 <= largest_epsilon_each(64, "1e-12", "1e-6") - tiny < F(1, 10**12)
    assert 0 <= F(1, 64) - largest_epsilon_each(64, 1, "1e-5000") < F(1, 10**12)
    assert largest_epsilon_each(1, 1, "0.9999") > 9  # ln of e + 9999
    assert largest_epsilon_each(64, "1e5", "1/2") >= F(10**5, 64)
    with pytest.raises(ValueError, match="too large to be written out"):
        largest_epsilon_each(64, "1e5000", "1/2")
    assert largest_epsilon_each(np.int64(3), 1, "1e-6") == largest_epsilon_each(3, 1, "1e-6")
    # So close to 1 that floats do not tell the logarithm of e^epsilon from 0.
    assert 0 < optimal_delta("1e-5000", 50, 0) < F("1e-140")


def test_advanced_is_never_better_than_optimal() -> None:
    for epsilon, k, delta in [("0.01", 64, "1e-6"), ("0.3", 30, "1e-3"), (1, 5, "1e-2"), (2, 200, "1/2")]:
        advanced = compose_advanced(epsilon, k, delta).epsilon
        assert float(compose_optimal(epsilon, k, delta)) <= advanced
    with_each = compose_advanced("0.1", 10, "1e-6", delta_each="1e-7")
    assert with_each.delta == F("2e-6")


@pytest.mark.parametrize("row", DATA["dp_accounting"]["optimal_delta"], ids=str)
def test_agreement_on_optimal_composition(row: list[float]) -> None:
    each, k, epsilon, theirs = row
    ours = float(optimal_delta(each, int(k), epsilon))
    assert ours <= theirs * (1 + 1e-9)
    assert theirs <= float(optimal_delta(each, int(k), epsilon - k * GRID))


@pytest.mark.parametrize("row", DATA["dp_accounting"]["optimal_delta_of_groups"], ids=str)
def test_agreement_on_unequal_groups(row: list[Any]) -> None:
    groups, epsilon, theirs = row
    assert float(optimal_delta_of_groups([tuple(group) for group in groups], epsilon)) <= theirs * (1 + 1e-9)
    rounded = epsilon - GRID * sum(k for _, k in groups)
    assert theirs <= float(optimal_delta_of_groups([tuple(group) for group in groups], rounded))


def test_basic_composition() -> None:
    assert compose_basic(PrivacyCost("1/2", "1e-3"), PrivacyCost(1, "1e-4")) == PrivacyCost("3/2", "0.0011")
    assert compose_basic(PrivacyCost(LogRatio(2)), PrivacyCost(LogRatio(3))).epsilon == LogRatio(6)
    mixed = compose_basic(PrivacyCost(LogRatio(2)), PrivacyCost(1))
    assert 0 <= float(mixed.epsilon) - math.log(2) - 1 < 1e-15
    both = compose_basic(PrivacyCost(rho="1/10", distance="1e-20"), PrivacyCost(bounded_range=1), PrivacyCost(1))
    assert (both.epsilon, both.rho, both.distance) == (None, F(1, 10) + F(1, 8) + F(1, 2), F("1e-20"))
    # A range is no range of the sum under adaptive choices.
    assert compose_basic(PrivacyCost(bounded_range=1), PrivacyCost(bounded_range=1)) == PrivacyCost(2, rho="1/4")
    noise = PrivacyCost(mu2="1/50", distance="1e-20")
    assert compose_basic(noise, noise, noise) == PrivacyCost(rho="3/100", mu2="3/50", distance="3e-20")
    # What has no mu2 has none together with what has one, and the distance of a mu2 counts where the mu2 does.
    assert compose_basic(noise, PrivacyCost(1)) == PrivacyCost(rho="51/100", distance="1e-20")
    ranged = PrivacyCost(bounded_range="1/10", mu2="1/50", distance="1e-20")
    assert compose_basic(ranged, noise).distance == F("2e-20")
    with pytest.raises(ValueError, match="nothing holds for all"):
        compose_basic(PrivacyCost(rho=1), PrivacyCost(1, "1e-6"))
    with pytest.raises(ValueError, match="costs"):
        compose_basic()
    with pytest.raises(TypeError, match="costs"):
        compose_basic(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: optimal_delta("0.0001", 10**7, 1),
        lambda: compose_optimal(1000, 10**5, "1e-6"),
        lambda: largest_epsilon_each(10**7, 1, "1e-6"),
        lambda: optimal_delta_of_groups([("0.1", 1000), ("0.2", 1000), ("0.3", 1000)], 1),
    ],
)
def test_work_that_is_too_large_is_refused(call: Any) -> None:
    with pytest.raises(BudgetError, match=r"(?i)zcdp"):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: compose_advanced(1, 0, "1e-6"), "k"),
        (lambda: compose_advanced(1, 3, 0), "delta_slack"),
        (lambda: compose_advanced(2**21, 3, "1e-6"), "epsilon"),
        (lambda: compose_optimal(-1, 3, "1e-6"), "epsilon"),
        (lambda: compose_optimal(1, 2.5, "1e-6"), "k"),  # type: ignore[arg-type]
        (lambda: optimal_delta(1, 3, -1), "epsilon"),
        (lambda: optimal_delta(1, 3, 1, delta_each=2), "delta_each"),
        (lambda: optimal_delta_of_groups([3], 1), "groups"),  # type: ignore[list-item]
        (lambda: largest_epsilon_each(3, 0, "1e-6"), "epsilon"),
        (lambda: largest_epsilon_each(3, 1, 1), "delta"),
        (lambda: largest_epsilon_each([], 1, "1e-6"), "k"),
        (lambda: largest_epsilon_each([(0, 3)], 1, "1e-6"), "share"),
        (lambda: largest_epsilon_each([3], 1, "1e-6"), "k"),  # type: ignore[list-item]
        (lambda: dimension_epsilon(1, 0, 3), "delta"),
        (lambda: dimension_epsilon(0, "1e-6", 3), "epsilon"),
        (lambda: dimension_epsilon(1, "1e-6", 0), "dimension"),
    ],
)
def test_bad_parameters_are_named(call: Any, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        call()


def test_no_mechanisms_cost_nothing() -> None:
    assert optimal_delta_of_groups([], 0) == 0
    assert optimal_delta_of_groups([(0, 5), (1, 0)], 0) == 0
    assert optimal_delta_of_groups([(0, 5, "1/2")], 0) == 1 - F(1, 2) ** 5
    assert optimal_delta(LogRatio(3), 2, LogRatio(9)) == 0
    assert compose_optimal(0, 5, 0) == 0


@pytest.mark.parametrize("slack", [0, 1])
def test_a_slack_is_between_0_and_1(slack: int) -> None:
    with pytest.raises(ValueError, match="delta_slack"):
        compose_advanced(1, 2, slack)
