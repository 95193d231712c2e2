"""Accounts of keys against slow ones: every split, every share and every step of a first round, in many digits."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from userdp import _core

F = Fraction
BITS = 256


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mpmath.workdps(60):
        yield


def number(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def curve(mu2: Fraction, level: Any) -> Any:
    """The sum of [P - E Q]_+ for N(mu, 1) and N(0, 1)."""
    if mu2 <= 0:
        return max(mpf(0), 1 - level)
    mu, loss = mpmath.sqrt(number(mu2)), mpmath.log(level)
    return mpmath.ncdf(mu / 2 - loss / mu) - level * mpmath.ncdf(-mu / 2 - loss / mu)


# --- what vanishes


@pytest.mark.parametrize("max_keys", [1, 2, 7, 40, 333])
def test_powers_are_rounded_against_the_claim_and_by_little(max_keys: int) -> None:
    chance = random.Random(max_keys)
    for bits in (3, 60, 300):
        hidden = 1 - F(chance.getrandbits(bits) + 1, 2 ** (bits + 2) - 1) ** chance.randint(1, 4)
        exact = 1 - hidden**max_keys
        assert exact <= _core.vanishing_delta(hidden, max_keys) <= exact * (1 + F(1, 2 ** (BITS - 2)))


def test_ends_of_powers() -> None:
    assert _core.vanishing_delta(F(1), 4096) == 0
    assert _core.vanishing_delta(F(0), 3) == 1
    near = 1 - F(1, 2**1000)
    assert 1 - near**3 <= _core.vanishing_delta(near, 3) <= 3 * F(1, 2**500)
    for hidden, keys in ((F(-1, 9), 3), (F(10, 9), 3), (F(1, 2), 0)):
        with pytest.raises(ValueError, match=r"hidden|max_keys"):
            _core.vanishing_delta(hidden, keys)


# --- counts and sums by key


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_worst_split_is_that_of_all_splits(seed: int, replace: bool) -> None:
    chance = random.Random(seed)
    keys = chance.choice([1, 2, 3, 5, 9])
    shown = F(chance.randint(1, 99), 10 ** chance.randint(3, 9))
    own, common = F(chance.randint(1, 400), 100), F(chance.randint(0, 400), 100)
    level, distance = F(chance.randint(100, 900), 100), F(chance.randint(0, 1), 10**12)
    sums = replace and chance.random() < 0.6
    best = mpf(0)
    for both in range(keys + 1 if sums else 1):
        whole = 2 * (keys - both) if replace else keys
        for a in range(keys - both + 1):
            for b in range(keys - both + 1 if replace else (1 if a else keys + 1)):
                q = number(1 - shown)
                moved = curve((whole - a - b) * own + both * (common if sums else 0), number(level) * q ** (b - a))
                best = max(best, 1 - q**a + q**a * moved)
    asked: dict[str, Any] = {
        "max_keys": keys,
        "replace": replace,
        "hidden": 1 - shown,
        "distance": distance,
        "low": level,
        "high": level,
        "own": own,
        "common": common if sums else None,
    }
    moved_keys = 2 * keys if replace else keys
    exact = min(best + number((1 + level) * moved_keys * distance), mpf(1))
    found = _core.keys_delta(**asked)
    assert exact <= number(found) <= exact * (1 + mpf(10) ** -40)
    for limit in (found, found * F(999, 1000), found * F(1001, 1000)):
        assert (_core.keys_delta(**asked, limit=limit) <= limit) == (found <= limit)
    # The same with the caller's own curve.
    asked_of: list[tuple[int, int]] = []

    def own_curve(single: int, both: int, level: Fraction, negligible: Fraction) -> Fraction:
        asked_of.append((single, both))
        assert negligible > 0
        return _core.gaussian_hockey_stick(single * own + both * (common if sums else 0), level)

    assert abs(_core.keys_delta(**asked, curve=own_curve) / found - 1) < F(1, 10**40)
    assert all(single + 2 * both <= moved_keys for single, both in asked_of) or sums


@pytest.mark.parametrize("keys", [17, 40])
def test_more_keys_are_within_a_part_in_a_million(keys: int) -> None:
    shown, own, level = F(1, 10**6), F(1, 40), F(3)
    q = number(1 - shown)
    best = max(
        1 - q**a + q**a * curve((2 * keys - a - b) * own, number(level) * q ** (b - a))
        for a in range(keys + 1)
        for b in {0, 1, keys // 2, keys}
    )
    found = _core.keys_delta(
        max_keys=keys, replace=True, hidden=1 - shown, distance=F(0), low=level, high=level, own=own
    )
    assert best <= number(found) <= best * (1 + mpf(10) ** -6)


def test_errors_of_a_curve_come_through_and_wrong_ones_are_refused() -> None:
    asked: dict[str, Any] = {"max_keys": 2, "replace": False, "hidden": F(1, 2), "distance": F(0)}
    asked |= {"low": F(2), "high": F(2), "own": F(1)}

    def broken(*_: Any) -> Fraction:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        _core.keys_delta(**asked, curve=broken)
    for wrong in (F(-1, 3), F(4, 3)):
        with pytest.raises(ValueError, match="curve must return a number from 0 to 1"):
            _core.keys_delta(**asked, curve=lambda *_, wrong=wrong: wrong)


# --- rounds of weights


@pytest.mark.parametrize("max_keys", [1, 2, 31, 32, 33, 90, 4096, 2**20])
def test_groups_have_every_number_of_keys_once(max_keys: int) -> None:
    groups = _core.key_groups(max_keys)
    assert groups[0][0] == 1
    assert groups[-1][1] == max_keys
    assert all(after == last + 1 for (_, last), (after, _) in itertools.pairwise(groups))
    assert all(first == last for first, last in groups if first < 32)
    assert all(first <= last <= first * 1.02 + 1 for first, last in groups)


@pytest.mark.parametrize("max_keys", [1, 2, 33, 4096, 2**20])
def test_weights_between_those_of_whole_keys_are_near_each_other(max_keys: int) -> None:
    places = _core.key_groups_between(max_keys)
    assert places[0] == 64
    assert places[-1] >= 64 * max_keys > (places[-2] if len(places) > 1 else 0)
    assert all(low < high <= max(low * 1.02, low + 1) for low, high in itertools.pairwise(places))


def test_new_keys_of_a_walk_may_weigh_anything_between() -> None:
    """A share of .6 on one new key, which is shown by half: whole numbers of keys have no such weight."""
    steep = [F(1, 2) if place < 107 else F(0) for place in _core.key_groups_between(2)[:-1]]
    account = _core.UnionRounds(
        [(F(2**80) / 64 + 4, F(0), [F(1, 2), F(0)], steep)],
        weight=2**40,
        max_keys=2,
        replace=False,
        walk=True,
        slack=0,
        moved=0,
    )
    level = mpmath.exp(34)
    exact = mpf(1) / 2 + curve(F(4, 10) * 64, 2 * level) / 2
    e = F(int(mpmath.floor(level * 2**200)), 2**200)
    assert exact > mpf("0.5000019")
    assert exact <= number(account.delta(e, e)) <= mpf("0.51")


def tails(max_keys: int, sigma: Any, threshold: Any) -> list[Fraction]:
    """How likely a key of the largest weight of each group is shown, rounded up."""
    found = []
    for first, _ in _core.key_groups(max_keys):
        tail = mpmath.ncdf(-(threshold - 1 / mpmath.sqrt(first)) / sigma)
        found.append(F(int(mpmath.ceil(tail * 2**160)), 2**160))
    return found


def between(max_keys: int, sigma: Any, threshold: Any) -> list[Fraction]:
    """The same for weights of a walk, but for the last."""
    found = []
    for place in _core.key_groups_between(max_keys)[:-1]:
        tail = mpmath.ncdf(-(threshold - 1 / mpmath.sqrt(mpf(place) / 64)) / sigma)
        found.append(F(int(mpmath.ceil(tail * 2**160)), 2**160))
    return found


def most_shown(max_keys: int, shown: list[Fraction], share: Fraction) -> Fraction:
    """The expected number of new keys that are shown, by each number of keys."""
    groups = zip(_core.key_groups(max_keys), shown, strict=True)
    return max(math.floor(last * share) * tail for (_, last), tail in groups)


def most_walked(max_keys: int, sigma: Any, threshold: Any, share: Fraction) -> Any:
    """The same with a walk, where any number of new keys that a user may have weighs as much as the share is worth."""
    # No other key weighs more than a new one, so that t new keys have a share of t / max_keys at least.
    most = math.floor(share * max_keys)
    tails = (t * mpmath.ncdf(-(threshold - mpmath.sqrt(number(share) / t)) / sigma) for t in range(1, most + 1))
    return max(tails, default=mpf(0))


def shares(max_keys: int, walk: bool) -> list[Fraction]:
    if max_keys <= 32 and not walk:
        return sorted({F(t, d) for d in range(1, max_keys + 1) for t in range(d + 1)})
    return [F(t, 512) for t in range(513)]


def one_round(lengths: Fraction, variance: Any, hidden: list[tuple[Fraction, Any]], replace: bool, level: Any) -> Any:
    """The worst share in both orders; a range of shares has the ends of both."""
    least = hidden[-1][1]
    other = level * least if replace else level
    mu2 = [F(lengths - share) / variance for share, _ in hidden]
    best = curve(mu2[0], level * least)
    for place, (_, q) in enumerate(hidden):
        best = max(best, 1 - q + q * curve(mu2[place], other / q))
    return best


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("max_keys", "walk"), [(1, False), (2, False), (7, False), (32, False), (50, False), (5, True)]
)
@pytest.mark.parametrize(("variance", "threshold"), [(F(4), F(9)), (F(9), F(20)), (F(1, 4), F(3, 2)), (F(100), F(180))])
def test_a_round_is_as_all_shares(
    max_keys: int, walk: bool, replace: bool, variance: Fraction, threshold: Fraction
) -> None:
    weight, level, sigma = 2**20, F(5, 2), mpmath.sqrt(number(variance))
    shown = tails(max_keys, sigma, number(threshold))
    more = between(max_keys, sigma, number(threshold)) if walk else []
    account = _core.UnionRounds(
        [(variance * weight**2 + 4, F(0), shown, more)],
        weight=weight,
        max_keys=max_keys,
        replace=replace,
        walk=walk,
        slack=0,
        moved=0,
    )
    if walk:
        hidden = [
            (share, 1 - most_walked(max_keys, sigma, number(threshold), share)) for share in shares(max_keys, walk)
        ]
    else:
        hidden = [(share, number(1 - most_shown(max_keys, shown, share))) for share in shares(max_keys, walk)]
    assert abs(number(account.hidden) - max(hidden[-1][1], 0)) <= mpf(2) ** -120
    assert account.mu2 == [F(2 if replace else 1) / variance]
    if hidden[-1][1] <= 0:
        assert account.delta(level, level) == 1
        return
    exact = one_round(F(2 if replace else 1), variance, hidden, replace, number(level))
    found = number(account.delta(level, level))
    # Where all shares are looked at, up to the tolerance of ranges; a grid has a step more.
    assert exact <= found <= exact * mpf("1.0031" if max_keys <= 32 and not walk else "1.08")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("first", "second"), [((9, 40), (4, 17)), ((16, 60), (1, 6)), ((1, 7), (25, 100))])
def test_two_rounds_are_as_all_steps(first: tuple[int, int], second: tuple[int, int], replace: bool) -> None:
    weight, level, keys = 2**20, F(3), 3
    lengths = F(2 if replace else 1)
    listed, hidden = [], []
    for sigma, threshold in (first, second):
        shown = tails(keys, mpf(sigma), mpf(threshold))
        listed.append((F(sigma**2) * weight**2 + 4, F(0), shown, []))
        hidden.append([(share, number(1 - most_shown(keys, shown, share))) for share in shares(keys, False)])
    account = _core.UnionRounds(listed, weight=weight, max_keys=keys, replace=replace, walk=False, slack=0, moved=0)
    found = float(account.delta(level, level))
    least, best = float(hidden[0][-1][1]), 0.0

    def second_round(left: float) -> float:
        q_least = float(hidden[1][-1][1])
        other = left * q_least if replace else left
        pairs = [(math.sqrt(float(lengths - share)) / second[0], float(q)) for share, q in hidden[1]]
        kept = (1 - q + q * float_curve(mu, other / q) for mu, q in pairs)
        return max(float_curve(pairs[0][0], left * q_least), *kept)

    steps = np.linspace(-9, 9, 2001)
    masses = np.exp(-(steps**2) / 2)
    masses /= masses.sum()
    for share, q in hidden[0]:
        mu = math.sqrt(float(lengths - share)) / first[0]
        lefts = float(level) * least * np.exp(-mu * steps - mu * mu / 2)
        total = float(masses @ [second_round(left) for left in lefts.tolist()])
        best = max(best, 1 - float(q) + float(q) * total)
    assert best * 0.9999 <= found <= best * 1.05


def float_curve(mu: float, level: float) -> float:
    if mu <= 0:
        return max(0.0, 1 - level)
    loss = math.log(level)
    tail = lambda x: 0.5 * math.erfc(x / math.sqrt(2))  # noqa: E731
    return tail(loss / mu - mu / 2) - level * tail(loss / mu + mu / 2)


def test_a_slack_and_a_distance_are_paid_for() -> None:
    weight, shown, more = 2**20, tails(2, mpf(5), mpf(25)), between(2, mpf(5), mpf(25))
    asked: dict[str, Any] = {"weight": weight, "max_keys": 2, "replace": True, "walk": True}
    rounds = [(F(25) * weight**2 + 4, F(0), shown, more)]
    plain = _core.UnionRounds(rounds, **asked, slack=0, moved=0)
    slack = _core.UnionRounds(rounds, **asked, slack=weight // 8, moved=0)
    assert plain.mu2 == [F(2, 25)]
    assert slack.mu2 == [(2 + F(3, 8) + F(1, 64)) / 25]
    far = _core.UnionRounds([(rounds[0][0], F(1, 10**9), shown, more)], **asked, slack=0, moved=7)
    level = F(3)
    further = far.delta(level, level) - plain.delta(level, level)
    assert abs(further - 7 * (F(1, 10**9) + F(1, 2**112)) * 4) <= F(1, 2**130)
    assert plain.delta(level, level) < slack.delta(level, level)
    assert far.delta(level, F(10**9)) == 1


@pytest.mark.parametrize("shown", [0.8, 1e-3, 1e-9, 1e-40, 1e-300, 0.0])
def test_proposed_thresholds_hide_new_keys(shown: float) -> None:
    groups = _core.key_groups(50)
    for sigma in (0.2, 3.0, 500.0):
        threshold = _core.union_threshold(50, sigma=sigma, shown=shown)

        def likely(height: float, sigma: float = sigma) -> Any:
            return max(last * mpmath.ncdf(-(mpf(height) - 1 / mpmath.sqrt(first)) / sigma) for first, last in groups)

        assert likely(threshold) <= max(shown * (1 + 1e-9), 1e-300)
        if threshold > 0 and shown:
            assert likely(threshold - sigma / 100) > shown


def test_levels_below_one_and_ends_of_curves() -> None:
    for mu2, level in itertools.product((F(1, 100), F(1), F(30)), (F(1, 1000), F(1, 3), F(1), F(7, 2), F(40))):
        exact = curve(mu2, number(level))
        assert exact <= number(_core.gaussian_hockey_stick(mu2, level)) <= exact * (1 + mpf(10) ** -40)
    assert _core.gaussian_hockey_stick(F(0), F(1, 4)) == F(3, 4)
    assert _core.gaussian_hockey_stick(F(0), F(4)) == 0
    assert _core.gaussian_hockey_stick(F(1), F(0)) == _core.gaussian_hockey_stick(F(1), F(-1)) == 1
    for level in (F(2**1024), F(2**5000)):
        assert 0 < _core.gaussian_hockey_stick(F(1), level) <= F(1, 2**4096)
        assert 1 - 1 / level <= _core.gaussian_hockey_stick(F(1), 1 / level) <= 1
