"""Privacy losses from and for dp_accounting, and verdicts on claims: with that package where it is, and without."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import BudgetError, LogRatio
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.accounting import check_claims, from_dp_accounting, to_dp_accounting

# --- recorded: what dp_accounting 0.6.0 claimed, and an object as it makes them


class Pmf:
    """A dense mass function, as that package holds it."""

    def __init__(self, low: int, masses: list[float], infinity: float, step: float = 0.5, upper: bool = True) -> None:
        self._lower_loss, self._probs, self._infinity_mass = low, np.array(masses), infinity
        self._discretization, self._pessimistic_estimate = step, upper

    def to_dense_pmf(self) -> Pmf:
        return self


class Theirs:
    def __init__(self, remove: Pmf, add: Pmf | None = None) -> None:
        self._pmf_remove, self._pmf_add, self._symmetric = remove, add or remove, add is None


def delta_of(low: int, masses: list[Fraction], infinity: Fraction, step: Fraction, epsilon: float) -> float:
    """E[1 - e^(epsilon - L)]_+ of a table, in doubles."""
    losses = [float((low + index) * step) for index in range(len(masses))]
    finite = sum(float(m) * max(-math.expm1(epsilon - loss), 0) for m, loss in zip(masses, losses, strict=True))
    return finite + float(infinity)


RECORDED = [
    # epsilon_0, releases, delta, what was claimed, whether it is true: see docs/composition.md
    ("0.1", 1000, "1e-14", "28.2003", False),
    ("0.1", 1000, "1e-12", "26.52481", False),
    ("0.1", 1000, "1e-10", "24.40663", False),
    ("0.1", 1000, "1e-6", "19.4045", True),
    ("0.01", 10**4, "1e-6", "4.9329832", True),
]


@pytest.mark.parametrize(("epsilon", "count", "delta", "claimed", "holds"), RECORDED)
def test_recorded_claims(epsilon: str, count: int, delta: str, claimed: str, holds: bool) -> None:
    (found,) = check_claims(PLD.pure(epsilon).self_compose(count), [(claimed, delta)])
    assert found.holds is holds
    assert (found.least_epsilon.lower > float(claimed)) is not holds
    assert (found.delta_there.lower > float(delta)) is not holds
    assert ("is below the truth" in str(found)) is not holds


def test_a_claim_below_the_truth_says_by_how_much() -> None:
    # Exactly: 28.447532 at 1e-14.
    (found,) = check_claims(PLD.pure("0.1").self_compose(1000), [("28.2003", "1e-14")])
    assert str(found).startswith("epsilon 28.2003 at delta 1e-14 is below the truth, where delta is at least 1.8 times")
    assert (found.epsilon, found.delta) == (Fraction(282003, 10000), Fraction(1, 10**14))


def test_ties_and_infinite_claims() -> None:
    three = PLD.pure(LogRatio(3, 1)).self_compose(3)
    tie, given_up = check_claims(three, [(LogRatio(3, 1), Fraction(3, 8)), (math.inf, 0)])
    assert tie.holds is None
    assert "is undecided" in str(tie)
    assert given_up.holds is True


def test_an_accountant_is_asked() -> None:
    class Accountant:
        def get_epsilon_for_delta(self, delta: float) -> float:
            return 1.0 if delta > 0.1 else 3.3

    once = PLD.pure(1).self_compose(3)
    found = check_claims(once, Accountant(), ["1/5", 0])
    assert [claim.holds for claim in found] == [once.is_private(1, "1/5"), True]
    with pytest.raises(ValueError, match="deltas: an accountant"):
        check_claims(once, Accountant())
    with pytest.raises(TypeError, match="deltas go with"):
        check_claims(once, [(1, 0)], ["1e-6"])
    with pytest.raises(TypeError, match="claims must be pairs"):
        check_claims(once, [1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="losses must be"):
        check_claims(1, [(1, 0)])  # type: ignore[arg-type]


def test_a_table_is_composed_as_it_is() -> None:
    step, masses, infinity = (
        Fraction(1, 2),
        [Fraction(1, 8), Fraction(1, 4), Fraction(0), Fraction(1, 2)],
        Fraction(1, 8),
    )
    table = from_dp_accounting(Theirs(Pmf(-1, [float(mass) for mass in masses], float(infinity))))
    assert table.neighbors == "add-remove"
    assert not table.attained
    # Its square, by its masses.
    square = [Fraction(0)] * 7
    for i, a in enumerate(masses):
        for j, b in enumerate(masses):
            square[i + j] += a * b
    for epsilon in (0.0, 0.3, 0.5, 1.7, 3.0):
        once, twice = table.delta(epsilon), table.self_compose(2).delta(epsilon)
        assert once.upper == pytest.approx(delta_of(-1, masses, infinity, step, epsilon), rel=1e-12)
        known = delta_of(-2, square, 1 - (1 - infinity) ** 2, step, epsilon)
        assert twice.lower == pytest.approx(known, rel=1e-12)
        assert twice.upper == pytest.approx(known, rel=1e-12)


def test_both_orders_are_read() -> None:
    remove, add = Pmf(0, [0.5, 0.5], 0.0), Pmf(-1, [0.5, 0.5], 0.0)
    table = from_dp_accounting(Theirs(remove, add))
    worse = from_dp_accounting(Theirs(remove))
    better = from_dp_accounting(Theirs(add))
    assert table.delta("0.1") == worse.delta("0.1")
    assert better.delta("0.1").upper < worse.delta("0.1").lower
    assert from_dp_accounting(Theirs(add, remove)).delta("0.1") == worse.delta("0.1")
    with pytest.raises(ValueError, match="neighbors='replace' has no sides"):
        from_dp_accounting(Theirs(remove, add), neighbors="replace")


def test_floats_are_divided_by_their_sum() -> None:
    rough = [0.1, 0.2, 0.7000001, -1e-18]
    table = from_dp_accounting(Theirs(Pmf(0, rough, 0.0)))
    whole = sum(map(Fraction, rough[:3]))
    exact = [Fraction(mass) / whole for mass in rough[:3]]
    known = delta_of(0, exact, Fraction(0), Fraction(1, 2), 0.25)
    assert table.delta(0.25).upper == pytest.approx(known, rel=1e-14)


@pytest.mark.parametrize(
    ("pld", "error", "message"),
    [
        (3, TypeError, "pld must be a PrivacyLossDistribution of dp_accounting; got a int"),
        (Theirs(Pmf(0, [1.0], 0.0, upper=False)), ValueError, "optimistic"),
        (Theirs(Pmf(0, [0.5], 0.0)), ValueError, "must sum to 1"),
        (Theirs(Pmf(0, [math.nan], 0.0)), ValueError, "finite numbers"),
        (Theirs(Pmf(0, [1.5, -0.5], 0.0)), ValueError, "finite numbers >= 0"),
        (Theirs(Pmf(0, [1.0], 0.0, step=0.0)), ValueError, "discretization must be > 0"),
        (Theirs(Pmf(0, [1.0], 0.0), Pmf(0, [1.0], 0.0, step=1.0)), ValueError, "the same discretization"),
        (Theirs(Pmf(2**40, [1.0], 0.0)), ValueError, "step"),
    ],
)
def test_what_is_not_read(pld: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_dp_accounting(pld)


def test_what_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    once = PLD.pure(1)
    with pytest.raises(TypeError, match="losses must be"):
        to_dp_accounting(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a distance has no place"):
        to_dp_accounting(once.within("1e-9"))
    with pytest.raises(ValueError, match="tail must be > 0"):
        to_dp_accounting(once, tail=0)
    with pytest.raises(ValueError, match="discretization must be > 0"):
        to_dp_accounting(once, discretization=0)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(ImportError):
        to_dp_accounting(once)


# --- with the package


@pytest.fixture
def theirs() -> Any:
    return pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def test_their_releases_composed_here(theirs: Any) -> None:
    common = pytest.importorskip("dp_accounting.pld.common")
    response = theirs.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.5, 0), value_discretization_interval=0.25
    )
    table = from_dp_accounting(response, neighbors="replace")
    # Losses of 1/2 are on its grid: the same composition.
    exact = PLD.pure("1/2").self_compose(100).epsilon("1e-6")
    assert table.self_compose(100).epsilon("1e-6").upper == pytest.approx(exact.upper, rel=1e-9)
    noise = theirs.from_gaussian_mechanism(5, value_discretization_interval=1e-3)
    ours = PLD.gaussian(5).self_compose(50).epsilon("1e-6", width=0.01)
    upper = from_dp_accounting(noise).self_compose(50).epsilon("1e-6").upper
    assert ours.lower <= upper <= ours.upper + 0.01


def test_releases_exported_are_above(theirs: Any) -> None:
    for losses in (
        PLD.pure("1/10"),
        PLD.pure("1/10", "1/100000"),
        PLD.from_pmfs([0.9, 0.1, 0.0], [0.5, 0.3, 0.2]),
        PLD.discrete_laplace("1/20", 3).compose(PLD.pure("1/9")),
    ):
        made = to_dp_accounting(losses, discretization=0.01)
        for epsilon in (0.0, 0.05, 0.2, 1.0):
            bounds = losses.delta(epsilon, relative=1e-2)
            assert made.get_delta_for_epsilon(epsilon) >= bounds.lower * (1 - 1e-9) - 1e-12
            assert made.get_delta_for_epsilon(epsilon) <= bounds.upper + 3e-3
        # And back.
        again = from_dp_accounting(made)
        assert again.delta(0.2).upper == pytest.approx(made.get_delta_for_epsilon(0.2), abs=1e-12)
    with pytest.raises(BudgetError, match="take a coarser one"):
        to_dp_accounting(PLD.pure(50), discretization=1e-4)


def test_their_claims_at_small_deltas(theirs: Any) -> None:
    # Which ones are too small depends on the version; that verdicts agree with exact numbers does not.
    common = pytest.importorskip("dp_accounting.pld.common")
    response = theirs.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.1, 0), value_discretization_interval=1e-3
    )
    exact = {"1e-6": 19.3446714479930437, "1e-14": 28.4475320}
    for found in check_claims(PLD.pure("0.1").self_compose(1000), response.self_compose(1000), list(exact)):
        least = exact[f"{float(found.delta):.0e}".replace("e-0", "e-")]
        assert found.holds is (float(found.epsilon) >= least)
