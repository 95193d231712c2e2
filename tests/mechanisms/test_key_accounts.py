"""Parts of the accounts of keys, against sums and powers of fractions that are written out."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest

from userdp.mechanisms.sparse_calibration import gaussian_float
from userdp.mechanisms.union_calibration import _Problem
from userdp.mechanisms.union_rounds import groups_of, most_shown, shares_of
from userdp.mechanisms.vanishing_keys import BITS, Keys, vanishing


@pytest.mark.parametrize("max_keys", [1, 2, 7, 40, 333])
def test_powers_are_rounded_against_the_claim_and_by_little(max_keys: int) -> None:
    chance = random.Random(max_keys)
    for bits in (3, 60, 300):
        hidden = 1 - Fraction(chance.getrandbits(bits) + 1, 2 ** (bits + 2) - 1) ** chance.randint(1, 4)
        keys = Keys(max_keys, "add-remove", hidden, ())
        for exponent in {0, 1, max_keys // 2, max_keys}:
            low, high = keys._power(exponent)
            exact = hidden**exponent
            assert low <= exact <= high <= exact * (1 + Fraction(1, 2 ** (BITS - 2)))
            assert low >= exact * (1 - Fraction(1, 2 ** (BITS - 2)))
        exact = 1 - hidden**max_keys
        assert exact <= vanishing(hidden, max_keys) <= exact * (1 + Fraction(1, 2 ** (BITS - 2)))


def test_ends_of_powers() -> None:
    assert vanishing(Fraction(1), 4096) == 0
    assert vanishing(Fraction(0), 3) == 1
    near = 1 - Fraction(1, 2**1000)
    assert 1 - near**3 <= vanishing(near, 3) <= 3 * Fraction(1, 2**500)


@pytest.mark.parametrize(("max_keys", "walk"), list(product([1, 5, 33, 90], [False, True])))
def test_the_most_keys_that_are_shown(max_keys: int, walk: bool) -> None:
    chance = random.Random(max_keys)
    falling = sorted(Fraction(chance.getrandbits(60) + 1, 2 ** chance.randint(61, 90)) for _ in range(max_keys))
    groups = [(last, falling[-place - 1]) for place, (_, last) in enumerate(groups_of(max_keys))]
    shares = shares_of(max_keys, walk, 24)
    for share, found in zip(shares, most_shown(groups, shares, walk), strict=True):
        if walk:
            direct = max((last * shown * share for last, shown in groups if last * share >= 1), default=Fraction(0))
        else:
            direct = max((share * last).__floor__() * shown for last, shown in groups)
        assert found == direct


@pytest.mark.parametrize("shown", [0.8, 1e-3, 1e-9, 1e-40, 1e-300, 0.0])
def test_proposed_thresholds_hide_new_keys(shown: float) -> None:
    problem = _Problem(50, "replace", False)
    for sigma in (0.2, 3.0, 500.0):
        threshold = problem.threshold(sigma, shown)
        likely = max(
            last * tail for (_, last), tail in zip(problem.groups, problem.tails(sigma, threshold), strict=True)
        )
        assert likely <= max(shown * (1 + 1e-9), 1e-300)
        if threshold > 0 and shown:
            lower = problem.tails(sigma, threshold - sigma / 100)
            assert max(last * tail for (_, last), tail in zip(problem.groups, lower, strict=True)) > shown


@pytest.mark.parametrize(("max_keys", "walk"), [(1, False), (20, False), (80, False), (6, True)])
def test_a_predicted_curve_is_the_largest_of_all_shares(max_keys: int, walk: bool) -> None:
    problem = _Problem(max_keys, "replace", walk)
    for sigma, threshold in ((2.0, 6.0), (5.0, 25.0), (1.0, 0.5)):
        mus, shown = problem.split(sigma, threshold)
        curve = problem.curve(sigma, threshold)
        for epsilon in (-1.0, 0.0, 0.3, 2.0):
            listed = (
                one + (1 - one) * gaussian_float(mu, epsilon - math.log1p(-one))
                for mu, one in zip(mus, shown, strict=True)
            )
            assert curve(epsilon) == pytest.approx(max(listed), rel=1e-12)
