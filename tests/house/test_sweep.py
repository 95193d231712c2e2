"""Numbers at the ends of what is accepted: refused before any work, or answered by numbers that are near."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest

from userdp.accounting import gaussian_delta
from userdp.exceptions import BudgetError
from userdp.means import WinsorizedMean
from userdp.mechanisms import SetUnion, SparseHistogram


def nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("work was done")


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), 10**400])
def test_epsilons_that_no_float_holds_are_refused(epsilon: Any) -> None:
    for made in (
        lambda: SparseHistogram.calibrated(epsilon, "1e-5", 3),
        lambda: SetUnion.calibrated(epsilon, "1e-5", 3),
        lambda: SetUnion.within(epsilon, "1e-5", 3),
    ):
        with pytest.raises(ValueError, match=r"(epsilon|rho) must be from|too large to be written out"):
            made()


def test_columns_beyond_memory_are_refused() -> None:
    with pytest.raises(BudgetError, match=r"n_features must be at most 2\*\*27"):
        WinsorizedMean(epsilon=1, delta="1e-6", max_norm=1, m=3).privacy_cost(n_users=9, n_features=2**31)


@pytest.mark.parametrize("mu2", ["1e-4", 1, "1e-30", "1e-300", 256, 10**9])
@pytest.mark.parametrize("epsilon", [0, "1e-300", "1e-9", 1, 30, 1000])
def test_the_gaussian_curve_is_near_from_above_at_any_end(mu2: Any, epsilon: Any) -> None:
    found = gaussian_delta(mu2, epsilon)
    with mpmath.workdps(1000):
        mu, loss = mpmath.sqrt(mpmath.mpf(mu2)), mpmath.mpf(epsilon)
        half = mpmath.erfc((loss / mu - mu / 2) / mpmath.sqrt(2)) / 2
        exact = half - mpmath.exp(loss) * mpmath.erfc((loss / mu + mu / 2) / mpmath.sqrt(2)) / 2
        value = mpmath.mpf(found.numerator) / found.denominator
        assert exact <= value <= max(exact * (1 + mpmath.mpf(2) ** -150), mpmath.mpf(2) ** -4096)
        assert value <= 1
