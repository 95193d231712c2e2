"""Telling distributions apart privately: exact sums, attained bounds, tables of codes, and the distributions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pytest

from userdp import LogRatio
from userdp.dimensions import users_implied
from userdp.planning import fano_users, packings, users_from_item_level
from userdp.planning.fano import (
    Level,
    log_affinity_of_coins,
    log_least_mass,
    tv_of_coins,
    two_point_error,
    users_to_tell_apart,
)
from userdp.planning.hard_tasks import packed, two_items_error


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, h) * p**h * (1 - p) ** (n - h) for h in range(n + 1)]


def least_mass(n: int, tv: Fraction, ratio: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
    """The best of all lower bounds by a coupling, in fractions; ratio is e^epsilon."""
    masses, best, total, below = binomial(n, tv), Fraction(0), Fraction(0), Fraction(0)
    for h, mass in enumerate(masses):
        good = min(mass, max(Fraction(0), below + mass - beta))
        below += mass
        group = delta * (ratio**h - 1) / (ratio - 1)
        total += good / ratio**h - mass * min(group, Fraction(1)) / ratio**h
        best = max(best, total)
    return best


@pytest.mark.parametrize("delta", ["0", "1/1000000", "1/100"])
def test_least_masses_in_fractions(delta: str) -> None:
    for n, tv, ratio, beta in itertools.product(
        (1, 3, 40), ("1/100", "1/3", "1"), ("3/2", "5"), ("1/10", "1/3", "2/3")
    ):
        exact = least_mass(n, Fraction(tv), Fraction(ratio), Fraction(delta), Fraction(beta))
        level = Level.of(LogRatio(*Fraction(ratio).as_integer_ratio()), delta)
        found = math.exp(log_least_mass(n, float(Fraction(tv)), level, float(Fraction(beta))))
        assert found <= exact * (1 + Fraction(1, 10**14))
        assert found >= exact * (1 - Fraction(1, 10**6)) - Fraction(1, 10**11)


def test_two_points_in_fractions() -> None:
    for n, tv, ratio, delta in itertools.product((1, 4, 30), ("1/50", "1/2", "1"), ("3/2", "9"), ("0", "1/1000")):
        e, d = Fraction(ratio), Fraction(delta)
        exact = Fraction(0)
        for h, mass in enumerate(binomial(n, Fraction(tv))):
            exact += mass * (1 - min(Fraction(1), d * (e**h - 1) / (e - 1))) / (1 + e**h)
        found = two_point_error(n, float(Fraction(tv)), Level.of(LogRatio(*e.as_integer_ratio()), delta))
        assert exact * (1 - Fraction(1, 10**8)) <= found <= exact * (1 + Fraction(1, 10**14))


def test_randomized_response_attains_few_users() -> None:
    """All n users say which of W it is, and a majority that is unanimous gets e^(n epsilon) : 1 against each other."""
    for w, n, ratio in itertools.product((2, 3, 50), (1, 2, 7), (2, 5)):
        success = Fraction(ratio**n, ratio**n + w - 1)
        just, more = 1 - success + Fraction(1, 10**9), 1 - success - Fraction(1, 10**9)
        assert fano_users(w, epsilon=LogRatio(ratio), beta=just) <= n
        assert fano_users(w, epsilon=LogRatio(ratio), beta=more) == n + 1


def test_the_spikes_of_one_user_are_attained() -> None:
    """One user, whose record says which of W it is with probability tv: answered by response, or by chance."""
    w, ratio, tv = 10, 9, Fraction(1, 2)
    # A blank is answered evenly.
    success = tv * Fraction(ratio, ratio + w - 1) + (1 - tv) / w
    assert fano_users(w, epsilon=LogRatio(ratio), beta=1 - success + Fraction(1, 10**6), tv=0.5) == 1


def test_closed_forms_are_not_above() -> None:
    rng = random.Random(22)
    for _ in range(100):
        w, epsilon = rng.choice([2, 5, 100, 2**30, 2**300]), rng.choice([0.01, 0.3, 1.0, 4.0])
        m, kl, beta = rng.choice([1, 7, 10**4]), 10 ** rng.uniform(-7, 0), rng.choice([0.01, 0.1, 0.3, 0.49])
        users, success = fano_users(w, epsilon=epsilon, beta=beta, m=m, kl=kl), 1 - beta
        gamma = min(1, math.sqrt(m * kl / 2))
        odds = math.log(w - 1) - math.log(beta)
        assert users >= (odds + math.log(success)) / epsilon * (1 - 1e-6)
        assert users >= ((odds + math.log(success - 0.5)) / epsilon - 1) / gamma * (1 - 1e-6)
        assert users >= (success * math.log(w) - math.log(2)) / (m * kl) * (1 - 1e-6)


def test_delta_and_m_only_help() -> None:
    for kl in (None, 0.01):
        users = [
            fano_users(2**200, epsilon=0.5, delta=delta, beta=0.1, kl=kl) for delta in (0, 1e-200, 1e-30, 1e-6, 0.3)
        ]
        assert users == sorted(users, reverse=True)
    # With delta > 0 a logarithm of 1 / delta is all there is, whatever the number of distributions.
    assert fano_users(2**1000, epsilon=1, delta=1e-6, beta=0.1) <= math.log(1e6) + 3
    assert fano_users(2**1000, epsilon=1, beta=0.1) > 690
    many = [fano_users(1000, epsilon=1, beta=0.1, m=m, kl=0.001) for m in (1, 10, 100, 10**4, 10**9, 10**299)]
    assert many == sorted(many, reverse=True)
    assert many[-1] == fano_users(1000, epsilon=1, beta=0.1)


def test_items_to_users() -> None:
    assert [users_from_item_level(n, m=16) for n in (0, 1, 16, 17, 1000)] == [0, 1, 1, 2, 63]


def test_representations_with_delta() -> None:
    """The least n that is not excluded by the inequality of the proof, tried one by one."""
    for size, delta, ratio in itertools.product((2, 50, 10**6), (Fraction(0), Fraction(1, 10**5)), (2, 5)):
        beta = Fraction(1, 4)
        n = 0
        while True:
            power = Fraction(ratio) ** n
            chance = (1 - beta - delta * (power - 1) / (ratio - 1)) / power
            if chance <= 0 or math.log(4) / chance > size - 1:
                break
            n += 1
        assert users_implied(size, epsilon=LogRatio(ratio), delta=delta, beta=beta, failure=beta) == n


def test_two_items_by_all_mechanisms() -> None:
    """The least failure against the certified optimum of all mechanisms."""
    pytest.importorskip("highspy")
    from userdp.optimal import agreement_certificate

    for n, share, ratio in itertools.product((1, 2, 3, 6, 7), ("3/5", "9/10", "1"), (2, 4)):
        certificate = agreement_certificate(n, 2, Fraction(share), LogRatio(ratio), 0, 10**5)
        found = two_items_error(n, float(Fraction(share)), Level.of(LogRatio(ratio), 0))
        assert found == pytest.approx(float(certificate.value), rel=1e-9)


def test_close_coins_do_not_look_equal() -> None:
    """Where 1 - affinity is below what floats tell from 1: (q - p)^2 / (8 p (1 - p)), and many records add up."""
    for apart in (1e-3, 1e-6, 1e-9):
        exact = apart**2 / 8 / 0.25
        assert exact <= log_affinity_of_coins(0.5 - apart / 2, 0.5 + apart / 2) <= exact * (1 + 1e-5)
    assert 0.3 < tv_of_coins(2**41, 0.5, 0.5 + 1e-6) <= 1
    packing = next(found for found in packings.quantiles(9, 0.5, 1e-9, 10**15) if found.name == "two values")
    assert packing.log_affinity >= 10**15 * (2e-9) ** 2 / 2
    scale = next(found for found in packings.gaussians(1, 1.0, 1.5, 1e-8, 1) if found.name == "2 scales")
    # ln of the ratio is about 2 alpha / .484, the largest density of |z| times |z| being .484 / 2 on either side.
    assert scale.kl >= (2e-8 / 0.485) ** 2


# --- all mechanisms of small worlds


def best_worst_success(laws: Sequence[Sequence[float]], n: int, ratio: float) -> float:
    """The largest probability, over all mechanisms and for the worst distribution, of the right answer."""
    optimize = pytest.importorskip("scipy.optimize")
    types, size = len(laws[0]), len(laws)
    states = [state for state in itertools.product(range(n + 1), repeat=types) if sum(state) == n]
    place = {state: index * size for index, state in enumerate(states)}
    columns = len(states) * size + 1
    rows = []
    for state in states:
        for one, other in itertools.permutations(range(types), 2):
            if state[one]:
                moved = list(state)
                moved[one] -= 1
                moved[other] += 1
                for answer in range(size):
                    row = [0.0] * columns
                    row[place[state] + answer], row[place[tuple(moved)] + answer] = 1.0, -ratio
                    rows.append(row)
    for answer, law in enumerate(laws):
        row = [0.0] * columns
        for state in states:
            ways = math.factorial(n) / math.prod(map(math.factorial, state))
            row[place[state] + answer] = -ways * math.prod(p**k for p, k in zip(law, state, strict=True))
        row[-1] = 1.0
        rows.append(row)
    sums = [[float(index // size == state) for index in range(columns - 1)] + [0.0] for state in range(len(states))]
    objective = [0.0] * (columns - 1) + [-1.0]
    found = optimize.linprog(
        objective, rows, [0.0] * len(rows), sums, [1.0] * len(states), bounds=[(0, 1)] * columns, method="highs"
    )
    return -float(found.fun)


def test_no_mechanism_beats_the_bound() -> None:
    """The best success over all mechanisms, by linear programs: at its failure the number of users is not excluded."""
    rng = random.Random(38)
    attained = 0
    for _ in range(32):
        ratio, n, kind = (
            rng.choice([1.5, 3.0, 9.0]),
            rng.choice([1, 2, 3]),
            rng.choice(["spikes", "coins", "items", "cube"]),
        )
        w = 2 if kind == "coins" else rng.choice([2, 3])
        p = rng.uniform(0.55, 0.95)
        if kind == "spikes":
            laws = [[1 - p, *(p if i == j else 0.0 for j in range(w))] for i in range(w)]
            listed = [packings.spikes(math.log(w), p, 1, kind)]
        elif kind == "items":
            laws = [[p if i == j else (1 - p) / (w - 1) for j in range(w)] for i in range(w)]
            listed = list(packings.common_items(w, p))
        elif kind == "cube":  # all labels of two points, of which an accurate answer has both right
            n, bias = min(n, 2), 2 * p - 1
            laws = [[(1 + (bias if y == bit(u, i) else -bias)) / 4 for i in range(2) for y in (0, 1)] for u in range(4)]
            # As if less than half of the places may be wrong, which is none of them.
            listed = list(packings.places(2, 0.45 * bias, 1, kind))
            listed = [found for found in listed if "rare" not in found.name and found.lost == 0.45]
            assert listed
        else:
            bias = 2 * p - 1
            laws = [[math.comb(3, k) * (a**k) * (1 - a) ** (3 - k) for k in range(4)] for a in (p, 1 - p)]
            listed = [packings.coin_pair(bias, 3, kind)]
        level = Level.of(LogRatio(*Fraction(ratio).as_integer_ratio()), 0)
        failure = 1 - best_worst_success(laws, n, ratio)
        assert max((term.users for term in packed(listed, level, failure + 1e-7).values()), default=1) <= n
        attained += max((term.users for term in packed(listed, level, failure * 0.95).values()), default=1) > n
    assert attained >= 3


# --- packings: the distributions themselves

A = {
    (6, 3): 8, (7, 3): 16, (8, 3): 20, (9, 3): 40, (10, 3): 72, (11, 3): 144,
    (8, 4): 16, (9, 4): 20, (10, 4): 40, (12, 4): 144, (10, 5): 12, (11, 5): 24, (12, 5): 32, (13, 5): 64,
    (12, 6): 24, (15, 7): 32, (15, 8): 32, (20, 7): 2560, (20, 9): 40,
}  # fmt: skip
"""The largest binary codes, or the best known upper bound, by length and distance: Brouwer's table."""


def test_codes_exist() -> None:
    for (length, distance), size in A.items():
        found = {d: log_size for log_size, d in packings.codes(length)}
        if distance in found:
            assert math.exp(found[distance]) <= size * (1 + 1e-9)
    for length in (1, 2, 3, 7, 31, 100, 1023, 5000, 10**6):
        for log_size, distance in packings.codes(length):
            assert 1 <= distance <= length
            # Plotkin and Hamming: no code is larger.
            if 2 * distance > length:
                assert math.exp(log_size) <= 2 * distance / (2 * distance - length) * (1 + 1e-9) + (distance == 1)
            radius = (distance - 1) // 2
            if length <= 1100:
                ball = sum(math.comb(length, weight) for weight in range(radius + 1))
                assert log_size <= length * math.log(2) - math.log(ball) + 1e-9


def greedy(length: int, distance: int) -> list[int]:
    words: list[int] = []
    for word in range(2**length):
        if all((word ^ other).bit_count() >= distance for other in words):
            words.append(word)
    return words


Law = dict[Any, float]


def of_user(law: Law, m: int) -> Law:
    found: Law = {}
    for records in itertools.product(law.items(), repeat=m):
        key = tuple(sorted(value for value, _ in records))
        found[key] = found.get(key, 0.0) + math.prod(mass for _, mass in records)
    return found


def tv(p: Law, q: Law) -> float:
    return sum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in p.keys() | q.keys()) / 2


def kl(p: Law, q: Law) -> float:
    return sum(mass * math.log(mass / q[key]) for key, mass in p.items() if mass)


def affinity(p: Law, q: Law) -> float:
    return sum(math.sqrt(p[key] * q.get(key, 0.0)) for key in p)


def check(packing: packings.Packing, laws: Sequence[Law], center: Law | None, m: int) -> None:
    users = [of_user(law, m) for law in laws]
    assert len(laws) >= math.exp(packing.log_size) * (1 - 1e-9)
    for p, q in itertools.permutations(users, 2):
        assert tv(p, q) <= packing.pair * (1 + 1e-12)
        if packing.is_pair:
            assert -math.log(affinity(p, q)) <= packing.log_affinity
    if center is not None:
        middle = of_user(center, m)
        assert all(tv(p, middle) <= packing.center for p in users)
        assert all(kl(p, middle) <= packing.kl for p in users)


def bit(word: int, place: int) -> int:
    return word >> place & 1


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 3, 4])
def test_words_as_leaning_coins(length: int, m: int) -> None:
    target = 0.2
    checked = 0
    for packing in packings.signs(length, target, m):
        distance = int(packing.name.rsplit(" ", 1)[1])
        bias = target * length / distance
        words = greedy(length, distance)
        laws = [
            {(i, y): (1 + (bias if y == bit(u, i) else -bias)) / 2 / length for i in range(length) for y in (0, 1)}
            for u in words
        ]
        center = dict.fromkeys(laws[0], 1 / 2 / length)
        check(packing, laws, None if packing.is_pair else center, m)
        assert all(tv(p, q) >= target * (1 - 1e-12) for p, q in itertools.combinations(laws, 2))
        checked += 1
    assert checked


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 3])
def test_words_that_show_rarely(length: int, m: int) -> None:
    target, checked = 0.2, 0
    for packing in packings.rare(length, target, m):
        distance = int(packing.name.rsplit(" ", 1)[1])
        share = target * length / distance
        words = greedy(length, distance)
        laws = [{"none": 1 - share} | {f"{i}{bit(u, i)}": share / length for i in range(length)} for u in words]
        center = {"none": 1 - share} | {f"{i}{y}": share / length / 2 for i in range(length) for y in (0, 1)}
        check(packing, laws, center, m)
        assert all(tv(p, q) >= target * (1 - 1e-12) for p, q in itertools.combinations(laws, 2))
        checked += 1
    assert checked


def test_no_hypothesis_is_good_for_two_words() -> None:
    """All hypotheses on the shattered points, at the accuracy of each packing of noisy labels."""
    alpha = 0.06
    for length in (1, 3, 4):
        for packing in packings.signs(length, 2 * alpha, 1, whole=True):
            distance = int(packing.name.rsplit(" ", 1)[1])
            bias = 2 * alpha * length / (2 * ((distance + 1) // 2)) * (1 + 1e-9)
            words = greedy(length, distance)
            for h in range(2**length):
                good = [u for u in words if bias * (h ^ u).bit_count() / length <= alpha]
                assert len(good) <= 1


@pytest.mark.parametrize("m", [1, 2, 4])
def test_candidates_of_a_family(m: int) -> None:
    alpha, k = 0.15, 4
    found = {packing.name.split(" ", 1)[1]: packing for packing in packings.hypotheses(k, alpha, m)}
    # The simplex code of length 7, of which 4 words are used: any two differ in 4 places of 7.
    words = [sum((((u & (i + 1)).bit_count()) & 1) << i for i in range(7)) for u in range(8)]
    assert all((u ^ v).bit_count() == 4 for u, v in itertools.combinations(words, 2))
    bias = 2 * alpha
    laws = [
        {(i, y): (1 + (bias if y == bit(u, i) else -bias)) / 14 for i in range(7) for y in (0, 1)} for u in words[:k]
    ]
    assert all(tv(p, q) > alpha for p, q in itertools.combinations(laws, 2))
    packing = found["words of a simplex code"]
    middle = of_user(dict.fromkeys(laws[0], 1 / 14), m) if m <= 2 else None
    if middle is not None:
        for law in laws:
            user = of_user(law, m)
            assert tv(user, middle) <= packing.center
            assert kl(user, middle) <= packing.kl
    spiked = [{"none": 1 - alpha, i: alpha} for i in range(k)]
    for p, q in itertools.permutations(
        [of_user({str(key): mass for key, mass in law.items()}, m) for law in spiked], 2
    ):
        assert tv(p, q) <= found["distributions with a symbol of their own"].pair


@pytest.mark.parametrize(("n_symbols", "dimension"), [(2, 3), (4, 2), (5, 2)])
def test_products_are_apart(n_symbols: int, dimension: int) -> None:
    alpha, checked = 0.04, 0
    for packing in packings.product(n_symbols, dimension, alpha, 1):
        if " x " not in packing.name:
            continue
        pairs, distance = int(packing.name.split()[3]), int(packing.name.rsplit(" ", 1)[1])
        # The bias is in the divergence from the center, dimension * coin_kl(bias).
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if dimension * packings.coin_kl(middle) < packing.kl else (low, middle)
        bias = high
        words = greedy(pairs * dimension, distance)[:9]
        laws: list[Law] = []
        for u in words:
            law: Law = {}
            for cells in itertools.product(range(pairs), (0, 1), repeat=dimension):
                mass = 1.0
                for column in range(dimension):
                    pair, y = cells[2 * column], cells[2 * column + 1]
                    mass *= (1 + (bias if y == bit(u, column * pairs + pair) else -bias)) / 2 / pairs
                law[cells] = mass
            laws.append(law)
        center = {cells: 1 / len(laws[0]) for cells in laws[0]}
        for p, q in itertools.combinations(laws, 2):
            assert tv(p, q) > 2 * alpha
            assert tv(p, q) <= packing.pair
        assert all(tv(p, center) <= packing.center for p in laws)
        checked += 1
    assert checked


def test_coins_exactly() -> None:
    for m, p, q in itertools.product((1, 2, 5, 30), (0.1, 0.45), (0.5, 0.55, 0.9)):
        exact = sum(
            abs(math.comb(m, j) * (p**j * (1 - p) ** (m - j) - q**j * (1 - q) ** (m - j))) for j in range(m + 1)
        )
        assert exact / 2 <= tv_of_coins(m, p, q) <= exact / 2 * (1 + 1e-8)


def test_normal_distributions_numerically() -> None:
    """Total variations of means and of scales, by sums over a fine grid."""
    normal = NormalDist()
    alpha = 0.1
    found = {packing.name: packing for packing in packings.gaussians(1, 5.0, 9.0, alpha, 1)}

    def apart(p: NormalDist, q: NormalDist) -> float:
        return 1 - p.overlap(q)

    # Two means: as far apart as said, and no closer than 2 alpha.
    shift = 2 * normal.inv_cdf(0.5 + alpha)
    assert apart(normal, NormalDist(shift, 1)) == pytest.approx(2 * alpha, rel=1e-6)
    assert apart(normal, NormalDist(shift, 1)) <= found["two means"].pair <= 2 * alpha * 1.001
    ratio = packings._least_scale(2 * alpha)
    assert apart(normal, NormalDist(0, ratio)) > 2 * alpha > apart(normal, NormalDist(0, ratio * 0.9999))
    steps = math.floor(math.log(3) / math.log(ratio))
    name = f"{steps + 1} scales"
    assert apart(normal, NormalDist(0, ratio**steps)) <= found[name].pair


def test_means_are_apart() -> None:
    alpha, radius = 0.2, 1.0
    for dimension in (1, 3, 4):
        for packing in packings.means(dimension, radius, alpha, 1):
            if not packing.name.startswith("code"):
                continue
            used, distance = int(packing.name.split()[3].rstrip(",")), int(packing.name.rsplit(" ", 1)[1])
            bias = alpha / radius / math.sqrt(distance / used) * (1 + 1e-9)
            words = greedy(used, distance)
            assert len(words) >= math.exp(packing.log_size) * (1 - 1e-9)
            laws: list[Law] = []
            for u in words:
                law = {
                    x: math.prod((1 + (bias if y == bit(u, i) else -bias)) / 2 for i, y in enumerate(x))
                    for x in itertools.product((0, 1), repeat=used)
                }
                laws.append(law)
            corner = radius / math.sqrt(used)
            centers = [
                [sum(mass * (2 * x[i] - 1) * corner for x, mass in law.items()) for i in range(used)] for law in laws
            ]
            assert all(math.dist(a, b) > 2 * alpha for a, b in itertools.combinations(centers, 2))
            middle = dict.fromkeys(laws[0], 2.0 ** (-used))
            for law in laws:
                assert tv(law, middle) <= packing.center
                assert kl(law, middle) <= packing.kl
            assert all(tv(p, q) <= packing.pair for p, q in itertools.combinations(laws, 2))


@pytest.mark.parametrize(("model", "reach"), [("linear", 0.3), ("linear", 4.0), ("logistic", 1.0), ("logistic", 9.0)])
def test_no_prediction_is_good_for_two_targets(model: str, reach: float) -> None:
    """One feature: the bias at which every prediction loses more than alpha to the best, for one sign or the other."""
    alpha = 0.02
    (packing,) = packings.regressions(model, 1, alpha, reach, 1.0, 1)
    bias = packing.pair / (1 + 1e-9)  # two coins of probability (1 +- bias) / 2

    def loss(s: float, b: float) -> float:
        if model == "linear":
            return ((1 + b) / 2 * (s - 1) ** 2 + (1 - b) / 2 * (s + 1) ** 2) / 2
        return (1 + b) / 2 * math.log1p(math.exp(-s)) + (1 - b) / 2 * math.log1p(math.exp(s))

    grid = [reach * step / 2000 for step in range(-2000, 2001)]
    best = {sign: min(loss(s, sign * bias) for s in grid) for sign in (1, -1)}
    worst = min(max(loss(s, sign * bias) - best[sign] for sign in (1, -1)) for s in grid)
    assert alpha * 0.999 < worst < alpha * 1.01


def test_single_places_exactly() -> None:
    """One of the coins of a word, whatever the others are: total variation and affinity of a user's records."""
    length, target = 3, 0.1
    listed = list(packings.places(length, target, 2, "coins"))
    assert {found.lost for found in listed} >= {0.15, 0.2, 0.45}
    for found in listed:
        part = target / found.lost
        if "rare" in found.name:
            laws = [{"none": 1 - part, "a": part / length, "b": part / length, u: part / length} for u in "xy"]
        else:
            lean = [(1 + part) / 2 / length, (1 - part) / 2 / length]
            laws = [dict(zip("abcdxy", (*lean, *lean, *order), strict=True)) for order in (lean, lean[::-1])]
        users = [of_user(law, 2) for law in laws]
        assert tv(*users) <= found.pair
        assert -math.log(affinity(*users)) <= found.log_affinity


def test_coordinates_of_means() -> None:
    """Where the sign of a coordinate is wrong, at least its square is lost: alpha is that of the accepted part."""
    alpha, radius, dimension = 0.1, 1.0, 8
    for cube in (False, True):
        for found in packings.mean_coordinates(dimension, radius, alpha, 1, cube=cube):
            used = int(found.name.split()[2])
            single = "single" in found.name
            assert not (cube and single)
            # Of one record: the bias of the coin, that of one of `used` coordinates being shown that rarely.
            bias = found.pair * (used if single else 1)
            size = radius * bias / (used if single else math.sqrt(used))
            assert math.sqrt(found.lost * used) * size == pytest.approx(alpha, rel=1e-6)


def test_corners_of_a_cube_are_in_it() -> None:
    """In a cube, a code of fewer columns would have corners outside of it."""
    names = [found.name for found in packings.means(64, 8.0, 0.5, 1, cube=True)]
    assert all("length 64," in name for name in names if "code" in name or "corners" in name)
    assert any("length 16," in found.name for found in packings.means(64, 8.0, 0.5, 1))


def test_linear_losses_are_apart() -> None:
    """No parameter of the ball is good for two corners: the best is in the middle of both."""
    alpha, radius, used = 0.1, 1.0, 4
    for distance in (1, 2, 4):
        length = alpha / radius / (1 - math.sqrt(1 - distance / used))
        u = [length / 2] * used
        v = [-length / 2] * distance + [length / 2] * (used - distance)
        both = [a + b for a, b in zip(u, v, strict=True)]
        lost = 2 * radius * length - radius * math.hypot(*both)
        assert lost == pytest.approx(2 * alpha)


def test_sizes_of_many_distributions_without_overflow() -> None:
    level = Level.of(1, 0)
    for size in (1e3, 1e6):
        pair, center = users_to_tell_apart(size, level, 0.1, pair=1e-3, center=1e-3)
        assert min(pair, center) > 900 * size


Call = Callable[[], Any]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fano_users(1, epsilon=1, beta=0.1), ValueError, "n_distributions must be at least 2"),
        (lambda: fano_users(2, epsilon=0, beta=0.1), ValueError, "epsilon must be > 0"),
        (lambda: fano_users(2, epsilon=1, beta=1), ValueError, "beta must be strictly between 0 and 1"),
        (lambda: fano_users(2, epsilon=1, beta=0.1, m=0), ValueError, "m must be at least 1"),
        (lambda: fano_users(2, epsilon=1, beta=0.1, kl=-1), ValueError, "kl must be >= 0"),
        (lambda: fano_users(2, epsilon=1, beta=0.1, tv=2), ValueError, "tv must be in"),
        (lambda: fano_users(2, epsilon=1, delta=-1, beta=0.1), ValueError, "delta must be in"),
        (lambda: fano_users(2.5, epsilon=1, beta=0.1), TypeError, "n_distributions must be an int"),
        (lambda: users_from_item_level(-1, m=1), ValueError, "item_users must be at least 0"),
        (lambda: users_from_item_level(1, m=0), ValueError, "m must be at least 1"),
    ],
)
def test_bad_numbers(call: Call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
