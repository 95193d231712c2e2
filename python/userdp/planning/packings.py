"""Hard distributions for each task: many of them that nobody tells apart easily, and no answer is good for two.

Each function lists packings for an accuracy; the best of them is the lower bound. Statements and proofs:
docs/proofs/lower_bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from userdp import _core
from userdp.planning.fano import MARGIN, log_affinity_of_coins, tv_of_coins, tv_of_user

WIDER = 1 + MARGIN
"""What must be above a number is above it by this factor."""
NORMAL = NormalDist()
TWO = math.log(2) * (1 - 1e-13)
ROUNDED = 1e-15
"""More than sums of numbers below 1 are rounded."""
MOST_LENGTH = 1024
"""Of words whose number is bounded in integers; for longer ones by the entropy."""
SHARES = (0.01, 0.03, 0.06, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.34, 0.38, 0.42)
"""Distances of codes that are tried, as parts of their length."""
LOST = (0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
"""Parts of places that an accurate answer may be wrong about, that are tried."""
SIMPLEX = 0.5005
"""The part of places in which two words of a simplex code of length 2^10 - 1 or more differ, rounded up."""
RADII = (0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6, 1e9, 1e12, 1e20, 1e40, 1e80)
"""Radii of packings of balls that are tried, in units of the distance of their points."""


@dataclass(frozen=True)
class Packing:
    """Distributions of a user's m records, no two of which have a good answer in common.

    The total variations and divergences are upper bounds. `kl` is of every one of them from a common center,
    `log_affinity` minus the logarithm of the affinity of two, for packings of two.

    With `lost`, the two are what a single place of a long word makes of it, and an accurate answer may be wrong about
    that part of the places: Assouad's cube.
    """

    name: str
    log_size: float
    pair: float = 1.0
    center: float = 1.0
    kl: float = math.inf
    log_affinity: float = math.inf
    lost: float = 0.0

    @property
    def is_pair(self) -> bool:
        """Whether there are two distributions only."""
        return self.log_size < 0.7

    def failure(self, beta: float) -> float:
        """How often a place may be wrong, if an answer is accurate but with probability beta."""
        return (1 - beta) * self.lost + beta


def coin_kl(bias: float) -> float:
    """The divergence of a coin of probability (1 + bias) / 2 from a fair one, rounded up."""
    if bias >= 1:
        return math.log(2) * WIDER
    if bias < 1e-3:  # bias^2 / 2 + bias^4 / 12 + ..., of which the rest is below bias^6 / 20
        return (bias**2 / 2 + bias**4 / 12 + bias**6 / 20) * WIDER
    return ((1 + bias) * math.log1p(bias) + (1 - bias) * math.log1p(-bias)) / 2 * WIDER


def coins_kl(bias: float) -> float:
    """The divergence of a coin of probability (1 + bias) / 2 from one of (1 - bias) / 2, rounded up."""
    return bias * 2 * math.atanh(bias) * WIDER if bias < 1 else math.inf


def coins_log_affinity(bias: float) -> float:
    """Minus ln of the affinity of these two coins, rounded up."""
    return -math.log1p(-bias * bias) / 2 * WIDER if bias < 1 else math.inf


# --- codes


@lru_cache(maxsize=256)
def codes(length: int) -> tuple[tuple[float, int], ...]:
    """Binary codes: logarithms of their sizes, rounded down, and least distances.

    By Gilbert and Varshamov, with words of even weight, two opposite words, and the simplex code.
    """
    found = {length: math.log(2), 1: length * math.log(2)}
    if length >= 2:
        found[2] = max(found.get(2, 0.0), (length - 1) * math.log(2))
    wanted = {math.ceil(share * length) for share in SHARES} | {3, 5, 7}
    wanted = {distance for distance in wanted if 2 < distance <= length // 2}
    if length > MOST_LENGTH:
        for distance in wanted:
            found[distance] = max(found.get(distance, 0.0), _entropy_size(length, distance))
    else:
        for distance in wanted:
            found[distance] = max(found.get(distance, 0.0), _gilbert_varshamov(length, distance))
    order = (length + 1).bit_length() - 1
    if order >= 2:  # 2^r words of length 2^r - 1, any two of which differ in 2^(r - 1) places; the others are 0
        distance = 2 ** (order - 1)
        found[distance] = max(found.get(distance, 0.0), order * math.log(2))
    return tuple((size * (1 - 1e-13), distance) for distance, size in sorted(found.items()))


def _gilbert_varshamov(length: int, distance: int) -> float:
    """Ln of the size of a code that exists: by a maximal code, and by a parity check matrix."""
    ball, term = 0, 1
    for weight in range(distance):
        ball += term
        term = term * (length - weight) // (weight + 1)
    checks, term = 0, 1
    for weight in range(distance - 1):
        checks += term
        term = term * (length - 1 - weight) // (weight + 1)
    maximal = -(-(2**length) // ball)
    return max(math.log(maximal), (length - checks.bit_length()) * math.log(2), math.log(2))


def _entropy_size(length: int, distance: int) -> float:
    """Ln of 2^length / sum_(i < distance) C(length, i), from below, for distances up to half of the length."""
    share = (distance - 1) / length
    entropy = -share * math.log(share) - (1 - share) * math.log1p(-share) if share > 0 else 0.0
    return max(length * (math.log(2) - entropy) * (1 - 1e-12), math.log(2))


# --- errors of hypotheses, masses of symbols


def signs(length: int, target: float, m: int, *, whole: bool = False, name: str = "code") -> Iterator[Packing]:
    """Words u of a code: a place of `length`, evenly, and a fair coin that leans to u there.

    Two words at distance D are bias D / length apart, which must be above `target`, in what an answer can be near to;
    with `whole`, where an answer is a word itself, 2 ceil(D / 2) / length.
    """
    for log_size, distance in codes(length):
        apart = 2 * ((distance + 1) // 2) if whole else distance
        bias = target * length / apart * WIDER
        if bias <= 1:
            yield sign_packing(log_size, bias, m, f"{name} of length {length}, distance {distance}")


def sign_packing(log_size: float, bias: float, m: int, name: str, *, columns: int = 1, part: float = 1.0) -> Packing:
    """Words of a code as biases of coins, of which a record has one, or one in each of several columns.

    Two of them differ in at most a part of their places.
    """
    if columns == 1 and log_size < 0.7:
        return coin_pair(bias, m, name)
    # 1 - sqrt(1 - b^2), without cancellation: the affinity of two opposite coins is 1 less this, and that of one with a
    # fair coin the square root of 1 less half of this.
    lost = bias * bias / (1 + math.sqrt((1 - bias) * (1 + bias)))
    between = -math.log1p(-part * lost) * WIDER if part * lost < 1 else math.inf
    kl = columns * coin_kl(bias)
    return Packing(
        name,
        log_size,
        pair=tv_of_user(m, kl=columns * part * coins_kl(bias), log_affinity=columns * between),
        center=tv_of_user(m, kl=kl, log_affinity=-columns * math.log1p(-lost / 2) / 2 * WIDER),
        kl=m * kl,
        log_affinity=m * columns * between,
    )


def coin_pair(bias: float, m: int, name: str) -> Packing:
    """Two coins of probability (1 + bias) / 2 and (1 - bias) / 2, with their exact total variation."""
    wider = bias * WIDER + ROUNDED  # as floats, the coins are no closer than this bias says
    if wider >= 1:
        return Packing(name, TWO)
    tv = tv_of_coins(m, (1 - wider) / 2, (1 + wider) / 2)
    return Packing(name, TWO, pair=tv, log_affinity=m * coins_log_affinity(wider))


def rare(length: int, target: float, m: int, *, whole: bool = False, name: str = "code") -> Iterator[Packing]:
    """Words u of a code: with probability b a place of `length` and what u has there, otherwise nothing."""
    for log_size, distance in codes(length):
        apart = 2 * ((distance + 1) // 2) if whole else distance
        share = target * length / apart * WIDER
        if share < 1:
            yield Packing(
                f"rare {name} of length {length}, distance {distance}",
                log_size,
                pair=tv_of_user(m, tv=share),
                # The center has a fair coin there.
                center=tv_of_user(m, kl=share * math.log(2) * WIDER, tv=share / 2),
                kl=m * share * math.log(2) * WIDER,
                log_affinity=_log_miss(share, m),
            )


def spikes(log_size: float, share: float, m: int, name: str) -> Packing:
    """With probability `share`, each distribution has a value of its own; otherwise all have the same."""
    distance = tv_of_user(m, tv=min(1.0, share * WIDER))
    return Packing(name, log_size, pair=distance, center=distance, log_affinity=_log_miss(share * WIDER, m))


def _log_miss(share: float, m: int) -> float:
    """Minus ln of the affinity of two distributions that agree on all but a share."""
    return -m * math.log1p(-share) * WIDER if share < 1 else math.inf


def places(length: int, target: float, m: int, name: str) -> Iterator[Packing]:
    """Single places of words of leaning coins, or of coins that show rarely: Assouad's cube.

    An accurate answer is wrong about at most the part target / bias of the places, or target / share.
    """
    for lost in LOST if length > 1 else ():
        bias = target / lost * WIDER
        if bias <= 1:
            yield leaning_place(length, bias, m, lost, name)
        if bias < 1:  # what is shown with this probability, and does not lean but says all
            yield Packing(
                f"one of {length} rare {name}, {lost:.0%} of them wrong",
                TWO,
                pair=tv_of_user(m, tv=bias / length * WIDER),
                log_affinity=_log_miss(bias / length, m),
                lost=lost,
            )


def leaning_place(length: int, bias: float, m: int, lost: float, name: str) -> Packing:
    """What one of so many leaning coins, of which a record shows any, makes of a user's records."""
    near = _shown(bias, length)
    return Packing(
        f"one of {length} {name}, {lost:.0%} of them wrong",
        TWO,
        pair=tv_of_user(m, kl=coins_kl(bias) / length * WIDER, tv=bias / length * WIDER, log_affinity=near),
        log_affinity=m * near,
        lost=lost,
    )


def _shown(bias: float, length: int) -> float:
    """Minus ln of the affinity of two leaning coins that a record shows with probability 1 / length."""
    lost = bias * bias / (1 + math.sqrt((1 - bias) * (1 + bias))) / length
    return -math.log1p(-lost) * WIDER if lost < 1 else math.inf


def realizable(vc_dimension: int, alpha: float, m: int) -> Iterator[Packing]:
    """Classes with shattered points, learned without noise: [GKKMMZ23, Lemma 39] on labels of these points."""
    # One point is always seen, and its label does not matter; or all are seen evenly.
    for length in {1, vc_dimension - 1} - {0}:
        if length < vc_dimension:
            yield from rare(length, 2 * alpha, m, whole=True, name="labels")
            yield from (found for found in places(length, alpha, m, "labels") if "rare" in found.name)
    for log_size, distance in codes(vc_dimension):
        if (distance + 1) // 2 > alpha * vc_dimension * WIDER:
            name = f"labels of {vc_dimension} points, distance {distance}"
            yield Packing(name, log_size, kl=m * math.log(2) * WIDER)


def agnostic(vc_dimension: int, alpha: float, m: int) -> Iterator[Packing]:
    """Classes with shattered points, whose labels are noisy: [GKKMMZ23, Theorem 40]."""
    yield from realizable(vc_dimension, alpha, m)
    for length in {1, vc_dimension}:
        yield from signs(length, 2 * alpha, m, whole=True, name="noisy labels")
        yield from (found for found in places(length, alpha, m, "noisy labels") if "rare" not in found.name)


def thresholds(domain_size: int, alpha: float, m: int) -> Iterator[Packing]:
    """Thresholds on points 1, ..., N, where the answer is a threshold."""
    share = 2 * alpha * WIDER
    if share >= 1:
        return
    if domain_size >= 3:
        log_size = math.log(domain_size - 1) * (1 - 1e-13)
        yield spikes(log_size, share, m, f"{domain_size - 1} thresholds")
        yield Packing(f"{domain_size - 1} thresholds, no other examples", log_size)
    yield Packing("two thresholds", TWO)
    yield from signs(1, 2 * alpha, m, whole=True, name="noisy labels")


def quantiles(domain_size: int, share: float, alpha: float, m: int) -> Iterator[Packing]:
    """Values of which each is the only quantile of a distribution, on a grid of N values."""
    low, high = share - alpha * WIDER - ROUNDED, share + alpha * WIDER + ROUNDED
    if low <= 0 or high >= 1 or domain_size < 2:
        return
    log_size = math.log(domain_size) * (1 - 1e-13)
    if domain_size >= 3:
        yield spikes(log_size, (high - low) * WIDER, m, f"{domain_size} values")
    yield Packing(f"{domain_size} values, nothing else", log_size)
    yield Packing(
        "two values",
        TWO,
        pair=tv_of_coins(m, low, high),
        log_affinity=m * (ROUNDED**2 + log_affinity_of_coins(low, high)),
    )


def hypotheses(n_hypotheses: int, alpha: float, m: int) -> Iterator[Packing]:
    """The candidates themselves, where the answer is one of them: [GKKMMZ23, Theorem 41]."""
    log_size = math.log(n_hypotheses) * (1 - 1e-13)
    yield Packing(f"{n_hypotheses} disjoint distributions", log_size)
    if alpha * WIDER < 1:
        yield coin_pair(alpha * WIDER, m, "two coins")
        yield spikes(log_size, alpha * WIDER, m, f"{n_hypotheses} distributions with a symbol of their own")
    if 2 * alpha * WIDER <= 1:
        # Words of the simplex code, any two of which differ in more than half of their places.
        yield sign_packing(log_size, 2 * alpha * WIDER, m, f"{n_hypotheses} words of a simplex code", part=SIMPLEX)


def finite_losses(n_hypotheses: int, alpha: float, max_loss: float, m: int) -> Iterator[Packing]:
    """Losses in [-B, B] of K hypotheses, of which the answer is one: [LSAKKMS21, Theorem 7] by a simplex code."""
    bias = alpha / max_loss * WIDER
    log_size = math.log(n_hypotheses) * (1 - 1e-13)
    if bias <= 1:
        yield sign_packing(log_size, bias, m, f"{n_hypotheses} words of a simplex code", part=SIMPLEX)
        # With two opposite words the excess is 2 B bias.
        yield coin_pair(bias / 2 * WIDER, m, "two opposite hypotheses")
        yield Packing(f"{n_hypotheses} words, all of them right or wrong", log_size)


def common_items(n_items: int, agreement: float) -> Iterator[Packing]:
    """Each user has the common item with a probability, and otherwise any other, evenly."""
    size, others = float(n_items), (1 - agreement) / (n_items - 1)
    kl = agreement * math.log(agreement * size)
    if others > 0:
        kl += (1 - agreement) * math.log(others * size)
    yield Packing(
        f"{n_items} items",
        math.log(n_items) * (1 - 1e-13),
        pair=min(1.0, (agreement - others) * WIDER + ROUNDED),
        center=min(1.0, (agreement - 1 / size) * WIDER + ROUNDED),
        kl=kl * WIDER + ROUNDED * math.log(size),
    )
    affinity = 2 * math.sqrt(agreement * (1 - agreement))
    yield Packing(
        "two items",
        TWO,
        pair=min(1.0, (2 * agreement - 1) * WIDER + ROUNDED),
        log_affinity=-math.log(affinity) * WIDER + ROUNDED if affinity > 0 else math.inf,
    )


# --- distributions, within alpha in total variation


def discrete(n_symbols: int, alpha: float, m: int) -> Iterator[Packing]:
    """Distributions on k symbols: [GKKMMZ23, Theorem 43] by pairs of symbols."""
    if 2 * alpha * WIDER >= 1 or n_symbols < 2:
        return
    yield Packing(f"{n_symbols} symbols, one each", math.log(n_symbols) * (1 - 1e-13))
    for length in {1, n_symbols // 2}:
        yield from signs(length, 2 * alpha, m, name="pairs of symbols")
        # The nearest word to an answer is within 2 alpha of the truth.
        yield from (found for found in places(length, 2 * alpha, m, "pairs of symbols") if "rare" not in found.name)
    for length in {1, (n_symbols - 1) // 2} - {0}:
        if 2 * length < n_symbols:
            yield from rare(length, 2 * alpha, m, name="pairs of symbols")
            yield from (found for found in places(length, 2 * alpha, m, "pairs of symbols") if "rare" in found.name)


def product(n_symbols: int, dimension: int, alpha: float, m: int) -> Iterator[Packing]:
    """Products on [k]^d: [GKKMMZ23, Theorem 44] by pairs of symbols in all columns, and by one column."""
    yield from discrete(n_symbols, alpha, m)
    if 2 * alpha * WIDER >= 1 or n_symbols < 2:
        return
    log_size = dimension * math.log(n_symbols) * (1 - 1e-13)
    yield Packing(f"{n_symbols} symbols in each of {dimension} columns", log_size)
    for pairs in {1, n_symbols // 2}:
        for log_size, distance in codes(pairs * dimension):
            bias = _least_bias(distance, pairs, dimension, 2 * alpha * WIDER)
            if bias < 1:
                name = f"code of length {pairs} x {dimension}, distance {distance}"
                yield sign_packing(log_size, bias * WIDER, m, name, columns=dimension)


@lru_cache(maxsize=4096)
def _least_bias(distance: int, pairs: int, dimension: int, target: float) -> float:
    """The bias at which products that differ in so many pairs of symbols are further apart than the target."""
    # A column shows a pair that differs with probability (its number of them) / pairs; coins that are shown tell.
    shown, likely = distance, 1.0
    if pairs > 1:
        shown, likely = _pairs_shown(distance, pairs, dimension)
    if likely * (1 - MARGIN) <= target or shown < 1:
        return 2.0

    def apart(bias: float) -> float:
        return likely * tv_of_coins(shown, (1 - bias) / 2, (1 + bias) / 2) * (1 - 4 * MARGIN) - 2e-12

    low, high = 0.0, 1.0 - 1e-12
    if apart(high) <= target:
        return 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 0 and apart(middle) > target else (middle, high)
    return high + ROUNDED  # as floats, the coins are no further apart than this says


def _pairs_shown(distance: int, pairs: int, dimension: int) -> tuple[int, float]:
    """How many pairs that differ are shown at least, and with which probability, from below: the best such numbers."""
    # Sums of independent 0/1 variables of mean lambda exceed c - 1 at least as often as Bin(d, lambda / d), for c at
    # most lambda: Hoeffding (1956). An odd number tells as much as the even one above it.
    share = distance / pairs / dimension * (1 - 1e-12)
    best, most = (0, 0.0), 0.0
    mean = dimension * share
    tried = {math.floor(mean * part / 10) for part in range(1, 11)} | {1}
    for shown in sorted(number - (number % 2 == 0) for number in tried if 1 <= number <= mean):
        likely = _core.binomial_tail(dimension, share, shown - 1) * (1 - MARGIN)
        # What is gained from a small bias: the mean of the distance of coins, about sqrt(shown).
        if likely * math.sqrt(shown) > most:
            best, most = (shown, likely), likely * math.sqrt(shown)
    return best


def gaussian_means(dimension: int, bound: float, alpha: float, m: int) -> Iterator[Packing]:
    """Normal distributions of covariance 1, with means in a ball of radius R: [GKKMMZ23, Theorem 45]."""
    if alpha * WIDER + ROUNDED >= 0.5:
        return
    apart = 2 * NORMAL.inv_cdf(0.5 + alpha * WIDER + ROUNDED) * WIDER
    if 2 * bound < apart:
        return
    two = normal_tv(math.sqrt(m) * apart)
    yield Packing("two means", TWO, pair=two, log_affinity=m * apart**2 / 8 * WIDER)
    for lost in LOST if dimension > 1 else ():
        # 2 rho sqrt(D / d) is at most the distance of two that an answer is good for.
        length = apart / (2 * math.sqrt(lost)) * WIDER
        if length <= bound:
            shift = 2 * length / math.sqrt(dimension) * WIDER
            tv, affinity = normal_tv(math.sqrt(m) * shift), m * shift**2 / 8 * WIDER
            name = f"one of {dimension} coordinates, {lost:.0%} of them wrong"
            yield Packing(name, TWO, pair=tv, log_affinity=affinity, lost=lost)
    for radius in {*(r for r in RADII if r * apart < bound), bound / apart}:
        # A maximal packing of the ball covers it: (R / s)^d points. On a line, 1 + floor(2 R / s).
        log_size = max(dimension * math.log(radius) * (1 - 1e-12), math.log(1 + math.floor(2 * radius * (1 - 1e-12))))
        length = radius * apart * WIDER
        if log_size >= 0.69:
            yield Packing(
                f"means in a ball of radius {length:.3g}",
                log_size * (1 - 1e-13),
                pair=normal_tv(2 * math.sqrt(m) * length),
                center=normal_tv(math.sqrt(m) * length),
                kl=m * length**2 / 2 * WIDER,
            )


def gaussians(dimension: int, bound: float, kappa: float, alpha: float, m: int) -> Iterator[Packing]:
    """Normal distributions of covariances from I to kappa I: means, or scales of one direction."""
    yield from gaussian_means(dimension, bound, alpha, m)
    if 2 * alpha * WIDER >= 1 or kappa <= 1:
        return
    step = _least_scale(2 * alpha * WIDER)
    steps = math.floor(math.log(kappa) / 2 / math.log(step) * (1 - 1e-12)) if step < math.inf else 0
    for used in {1, 2, 4, 8, 16, 64, 256, steps}:
        if 1 <= used <= steps:
            # Of a ratio e^x: (e^(2 x) - 1) / 2 - x, which is at most x^2 (1 + x) for x <= 1/2.
            spread = used * math.log(step) * WIDER
            kl = math.inf
            if spread < 200:
                kl = spread**2 * (1 + spread) if spread < 0.01 else math.expm1(2 * spread) / 2 - spread
            tv = tv_of_user(m, kl=kl * WIDER)
            yield Packing(f"{used + 1} scales", math.log(used + 1) * (1 - 1e-13), pair=tv, kl=m * kl * WIDER)


def _least_scale(target: float) -> float:
    """The ratio of standard deviations at which centered normal distributions are further apart than the target."""

    def apart(ratio: float) -> float:
        # Any set of values shows a part of the distance, less what floats lose.
        crossing = ratio * math.sqrt(2 * math.log(ratio) / (ratio * ratio - 1))
        return 2 * (NORMAL.cdf(crossing) - NORMAL.cdf(crossing / ratio)) - 10 * ROUNDED

    low, high = 1.0, 2.0
    while apart(high) <= target:
        low, high = high, high * high
        if high > 1e60:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 1 + 1e-9 and apart(middle) > target else (middle, high)
    return high * WIDER


def normal_tv(distance: float) -> float:
    """The total variation of normal distributions of variance 1 at a distance, rounded up."""
    return min(1.0, math.erf(distance / math.sqrt(8)) * WIDER)


# --- means and losses


def means(dimension: int, norm: float, alpha: float, m: int, *, cube: bool = False) -> Iterator[Packing]:
    """Records in a ball of radius B, or in the cube whose corners it goes through, with means over 2 alpha apart."""
    ratio = alpha / norm * WIDER
    if ratio > 1:
        return
    yield coin_pair(ratio, m, "two opposite directions")
    yield from mean_coordinates(dimension, norm, alpha, m, cube=cube)
    # Corners of a smaller number of columns are longer than the cube is wide.
    for used in {dimension, *(size for size in (4, 16, 64, 256, 1024) if size < dimension and not cube)}:
        for log_size, distance in codes(used) if used > 1 else ():
            # Corners of a cube of side 2 B / sqrt(d), two of which are 2 B sqrt(D / d) apart.
            bias = ratio / math.sqrt(distance / used) * WIDER
            if bias <= 1:
                name = f"code of length {used}, distance {distance}"
                yield sign_packing(log_size, bias, m, name, columns=used)
            if bias < 1:
                yield spikes(log_size, bias, m, f"rare corners of length {used}, distance {distance}")


def mean_coordinates(dimension: int, norm: float, alpha: float, m: int, *, cube: bool) -> Iterator[Packing]:
    """The sign of one coordinate of a mean, of which all lean: where it is wrong, the square of it is lost."""
    for lost in LOST if dimension > 1 else ():
        part = alpha / norm / math.sqrt(lost) * WIDER
        name = f"coordinates, {lost:.0%} of them wrong"
        if part < 1:  # all coordinates +-B / sqrt(d) at once
            pair = coin_pair(part, m, "")
            yield Packing(f"one of {dimension} {name}", TWO, pair=pair.pair, log_affinity=pair.log_affinity, lost=lost)
        used = min(dimension, math.floor(1 / part**2)) if not cube else 0
        if used > 1:  # one of the coordinates, +-B: the bias grows with their root
            yield leaning_place(used, min(1.0, part * math.sqrt(used)), m, lost, "single coordinates")


def linear_losses(dimension: int, alpha: float, scale: float, m: int) -> Iterator[Packing]:
    """Losses -G <theta, z> on a ball of radius R, with scale = G R: the losses of [LSAKKMS21, Theorem 5]."""
    bias = alpha / scale * WIDER
    if bias > 1:
        return
    yield coin_pair(min(1.0, bias), m, "two opposite directions")
    for used in {dimension, *(size for size in (4, 16, 64, 256, 1024) if size < dimension)}:
        for log_size, distance in codes(used) if used > 1 else ():
            # |u + v| = 2 rho sqrt(1 - D / d) for two corners of length rho.
            lost = -math.expm1(math.log1p(-distance / used) / 2) if distance < used else 1.0
            length = bias / lost * WIDER
            if length <= 1:
                name = f"code of length {used}, distance {distance}"
                yield sign_packing(log_size, length, m, name, columns=used)
            if length < 1:
                yield spikes(log_size, length, m, f"rare corners of length {used}, distance {distance}")


def regressions(model: str, dimension: int, alpha: float, reach: float, target: float, m: int) -> Iterator[Packing]:
    """Squared or logistic loss with features along axes; reach = B R bounds a prediction, and target the targets."""
    for used in {1, dimension, *(size for size in (4, 16, 64, 256, 1024) if size < dimension)}:
        for log_size, distance in codes(used):
            gap = alpha * used / distance * WIDER
            bias = _regression_bias(model, gap, reach / math.sqrt(used), target, ends=used == 1)
            if bias <= 1:
                name = f"targets of {used} features, distance {distance}"
                yield sign_packing(log_size, bias, m, name)
        for lost in LOST if used > 1 else ():
            # On the wrong side of 0 a prediction loses more than 0 does.
            bias = _regression_bias(model, alpha / lost * WIDER, reach / math.sqrt(used), target, ends=False)
            if bias <= 1:
                yield leaning_place(used, bias, m, lost, "features' targets")


def _regression_bias(model: str, gap: float, reach: float, target: float, *, ends: bool) -> float:
    """The bias of targets at which the prediction 0 loses more than the gap to the best prediction within reach.

    Without `ends` the best of all predictions must be within reach.
    """

    def lost(bias: float) -> float:
        if model == "linear":  # (s - y)^2 / 2 with y = +-Y, and its least at bias Y
            best = min(bias * target, reach)
            return best * bias * target - best * best / 2
        best = 2 * math.atanh(bias)
        if best <= reach:  # ln 2 less the entropy: the divergence from a fair coin
            return coin_kl(bias) * (1 - 3 * MARGIN)
        return math.log(2) - math.log1p(math.exp(-reach)) - (1 - bias) / 2 * reach

    low, high = 0.0, 1.0 - 1e-12
    if lost(high) * (1 - 8 * MARGIN) <= gap:
        return 2.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if lost(middle) * (1 - 8 * MARGIN) > gap else (middle, high)
    best = high * target if model == "linear" else 2 * math.atanh(high)
    return high if ends or best * WIDER <= reach else 2.0
