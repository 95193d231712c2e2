"""A ledger is a filter: no adversary who chooses the next mechanism by what came out so far exceeds its promise.

All adaptive strategies over small menus are enumerated exactly, to a depth of several mechanisms. Each has a twin in
which the filter is planted wrong, and is exceeded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction

import pytest

from oracle import composition as oracle
from userdp import LogRatio
from userdp.accounting import PrivacyCost, PrivacyLedger, optimal_delta_of_groups

F = Fraction
Menu = dict[Hashable, oracle.Pair]


def ratio(level: Fraction | int) -> LogRatio:
    return LogRatio(*F(level).as_integer_ratio())


def moved(pair: oracle.Pair, distance: Fraction) -> oracle.Pair:
    """A mechanism of two outcomes and another within that distance of it on either neighbor, the other way."""
    (a, b), (c, d) = pair
    return (a + distance, b - distance), (c - distance, d + distance)


def asks(make: Callable[[], PrivacyLedger], costs: dict[Hashable, PrivacyCost]) -> Callable[..., bool]:
    """Whether a new ledger allows all of these, one after the other."""

    def allowed(names: tuple[Hashable, ...]) -> bool:
        ledger = make()
        for name in names:
            if not ledger.can_spend(costs[name]):
                return False
            ledger.spend(costs[name])
        return True

    return allowed


LEAK = F(1, 20)
BASIC: Menu = {"2": oracle.response(F(2)), "3": oracle.response(F(3)), "leaky": oracle.response(F(2), LEAK)}
BASIC_COSTS = {"2": PrivacyCost(ratio(2)), "3": PrivacyCost(ratio(3)), "leaky": PrivacyCost(ratio(2), LEAK)}


@pytest.mark.parametrize("delta", [F(0), F(1, 20), F(1, 10)], ids=str)
@pytest.mark.parametrize("level", [F(3), F(6), F(12)], ids=str)
def test_basic_is_a_filter(level: Fraction, delta: Fraction) -> None:
    allowed = asks(lambda: PrivacyLedger(ratio(level), delta), BASIC_COSTS)
    reached = oracle.worst_strategy(BASIC, allowed, level, depth=5)
    assert reached <= delta
    # So the promise is not met by refusing everything: each leak that is allowed counts almost in full.
    leaks = min(delta / LEAK, int(math.log2(level)))
    assert reached >= (1 - (1 - LEAK) ** int(leaks))


def test_a_filter_that_forgets_deltas_is_exceeded() -> None:
    forgetful = {name: PrivacyCost(cost.epsilon) for name, cost in BASIC_COSTS.items()}
    allowed = asks(lambda: PrivacyLedger(ratio(6), LEAK), forgetful)
    assert oracle.worst_strategy(BASIC, allowed, F(6), depth=5) > F(3, 2) * LEAK


CONCENTRATED: Menu = {str(level): oracle.response(level) for level in (F(3, 2), F(2), F(5, 4))}
CONCENTRATED_COSTS = {name: PrivacyCost(ratio(F(str(name)))) for name in CONCENTRATED}


@pytest.mark.parametrize(("level", "delta"), [(F(2), F(1, 5)), (F(3), F(1, 10)), (F(2), F(2, 5)), (F(3), F(1, 5))])
def test_zcdp_is_a_filter(level: Fraction, delta: Fraction) -> None:
    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), delta, "zcdp")

    reached = oracle.worst_strategy(CONCENTRATED, asks(ledger, CONCENTRATED_COSTS), level, depth=6)
    assert delta / 4 < reached <= delta
    # Charged as if it had half the range that it has, randomized response exceeds the promise.
    planted = {name: PrivacyCost(rho=cost.zcdp()[0] / 4) for name, cost in CONCENTRATED_COSTS.items()}
    assert oracle.worst_strategy(CONCENTRATED, asks(ledger, planted), level, depth=6) > delta


def test_zcdp_with_deltas_and_distances_is_a_filter() -> None:
    far, level, delta = F(1, 100), F(2), F(3, 10)
    menu: Menu = {
        "2": oracle.response(F(2)),
        "leaky": oracle.response(F(3, 2), LEAK),
        "moved": moved(oracle.response(F(3, 2)), far),
    }
    rho = PrivacyCost(ratio(F(3, 2))).zcdp()[0]
    costs: dict[Hashable, PrivacyCost] = {
        "2": PrivacyCost(ratio(2)),
        "leaky": PrivacyCost(ratio(F(3, 2)), LEAK),
        "moved": PrivacyCost(rho=rho, distance=far),
    }

    def ledger() -> PrivacyLedger:
        return PrivacyLedger(ratio(level), delta, "zcdp", added_delta=LEAK, distance=2 * far)

    reached = oracle.worst_strategy(menu, asks(ledger, costs), level, depth=5)
    assert delta / 4 < reached <= delta
    # Without their distances and deltas there is no end to what they reach.
    planted = {name: PrivacyCost(rho=0) for name in menu}
    assert oracle.worst_strategy(menu, asks(ledger, planted), level, depth=5) > delta


def test_optimal_composition_is_no_filter() -> None:
    """Why no ledger offers it; the adversary of docs/proofs/composition.md."""
    menu: Menu = {2: oracle.response(F(2)), 4: oracle.response(F(4))}
    delta = F(2, 5)

    def allowed(names: tuple[Hashable, ...]) -> bool:
        return (
            optimal_delta_of_groups([(LogRatio(int(str(n))), k) for n, k in Counter(names).items()], ratio(2)) <= delta
        )

    # Whatever is fixed in advance keeps the promise.
    for spent in [(2, 4), (2, 2, 2, 2), (4,), (2, 2)]:
        assert allowed(spent)
        assert oracle.composed_delta([menu[name] for name in spent], F(2)) <= delta
    assert oracle.worst_strategy(menu, allowed, F(2), depth=4) == F(182, 405)
    # After a truth about the first neighbor the adversary asks once more at ln 4, after a lie three times at ln 2.
    assert F(182, 405) == F(2, 5) + F(4, 81) > delta
