"""What the comparison measures beside userdp: data, an exact reference, and the peers' ways to do the job."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Call = Callable[..., Any]
EPSILON = 0.5
TARGET_DELTA = 0.01
E_FLOAT = math.exp(EPSILON)

Array = npt.NDArray[np.float64]
Pair = tuple[Array, Array]


# --- data -----------------------------------------------------------------------------------------


def make_pairs(k: int, count: int) -> list[Pair]:
    """`count` different pairs of pmfs on k outputs whose masses differ by factors up to about e."""
    rng = np.random.default_rng([k, 20230921])
    pairs = []
    for _ in range(count):
        p = rng.dirichlet(np.ones(k))
        q = p * np.exp(rng.uniform(-1.0, 1.0, k))
        pairs.append((p, q / q.sum()))
    return pairs


def pairs_for(task: str, k: int) -> int:
    """How many pairs the candidates go round."""
    if k > 100_000:
        return 8
    return 256 if task.startswith("hockey_stick") else 64


def make_epsilons(k: int, count: int) -> list[float]:
    """`count` different epsilons at which the pairs on k outputs have a divergence above 0."""
    return [float(x) for x in np.random.default_rng([k, 20231201]).uniform(0.1, 0.6, count)]


# --- an exact reference, sharing no code with the package -----------------------------------------


def exp_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers (lo, hi) with lo <= 2**bits * e**x <= hi, for 0 <= x < 8, from the Taylor series."""
    total, term, n = Fraction(1), Fraction(1), 0
    while n < 16 or term * 2 ** (bits + 1) > 1:
        n += 1
        term = term * x / n
        total += term
    # From here on every term is less than half of the one before, so what is left is less than `term`.
    return math.floor(total * 2**bits), math.ceil((total + term) * 2**bits)


def on_common_grid(p: Sequence[float], q: Sequence[float]) -> tuple[list[int], list[int], int]:
    """Integers a, b and t with p = a / 2**t and q = b / 2**t, exactly."""
    ratios = [[x.as_integer_ratio() for x in map(float, values)] for values in (p, q)]
    t = max(d.bit_length() - 1 for values in ratios for _, d in values)
    a, b = ([n << (t - d.bit_length() + 1) for n, d in values] for values in ratios)
    return a, b, t


class Exact:
    """The exact hockey-stick divergences of one pair, as enclosures that can be narrowed."""

    def __init__(self, p: Array, q: Array) -> None:
        self.a, self.b, self.t = on_common_grid(p.tolist(), q.tolist())

    def enclose(self, epsilon: Fraction, bits: int, *, both: bool) -> tuple[Fraction, Fraction]:
        """Enclose HS(p, q), or the larger of the two directions."""
        lo, hi = exp_enclosure(epsilon, bits)
        scale = 2 ** (self.t + bits)
        directions = [(self.a, self.b), (self.b, self.a)] if both else [(self.a, self.b)]
        ends = []
        for e in (hi, lo):
            sums = [sum(max(0, (x << bits) - e * y) for x, y in zip(*d, strict=True)) for d in directions]
            ends.append(Fraction(max(sums), scale))
        return ends[0], ends[1]

    def nearest(self, epsilon: float, *, both: bool = False) -> float:
        """Round the exact value to the nearest float."""
        bits = 128
        while True:
            lo, hi = self.enclose(Fraction(epsilon), bits, both=both)
            if float(lo) == float(hi):
                return float(lo)
            bits *= 2

    def at_most(self, epsilon: float, delta: float) -> bool:
        """Whether both directions are <= delta. Needs epsilon != 0, so that it ends."""
        bits = 128
        while True:
            lo, hi = self.enclose(Fraction(epsilon), bits, both=True)
            if hi <= Fraction(delta):
                return True
            if lo > Fraction(delta):
                return False
            bits *= 2


# --- the ways to do the job -----------------------------------------------------------------------


def numpy_one_liner(p: Array, q: Array) -> float:
    return np.maximum(p - E_FLOAT * q, 0.0).sum()


def numpy_new_epsilon(p: Array, q: Array, epsilon: float) -> Any:
    return np.maximum(p - np.exp(epsilon) * q, 0).sum()


def numpy_verdict(p: Array, q: Array, delta: float) -> bool:
    return bool(max(numpy_one_liner(p, q), numpy_one_liner(q, p)) <= delta)


def numpy_bisection(p: Array, q: Array) -> float:
    lo, hi = 0.0, 64.0
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        e = math.exp(mid)
        if max(np.maximum(p - e * q, 0.0).sum(), np.maximum(q - e * p, 0.0).sum()) <= TARGET_DELTA:
            hi = mid
        else:
            lo = mid
    return hi


def fraction_sum(p: list[Fraction], q: list[Fraction], e: Fraction) -> Fraction:
    return sum((x - e * y for x, y in zip(p, q, strict=True) if x > e * y), Fraction(0))


class Peers:
    """The other libraries that are installed."""

    def __init__(self) -> None:
        self.numba: tuple[Call, Call] | None = None
        self.flint: Any = None
        self.pld: Any = None
        with contextlib.suppress(ImportError):
            import numba

            @numba.njit(fastmath=True)  # type: ignore[untyped-decorator,unused-ignore]
            def fast(p, q, e):  # type: ignore[no-untyped-def]
                total = 0.0
                for i in range(p.size):
                    total += max(p[i] - e * q[i], 0.0)
                return total

            @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
            def in_order(p, q, e):  # type: ignore[no-untyped-def]
                total = 0.0
                for i in range(p.size):
                    difference = p[i] - e * q[i]
                    if difference > 0.0:
                        total += difference
                return total

            self.numba = (fast, in_order)
        with contextlib.suppress(ImportError):
            import flint

            self.flint = flint
        with contextlib.suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from dp_accounting.pld import privacy_loss_distribution

            self.pld = privacy_loss_distribution

    def arb_sum(self, p: list[Any], q: list[Any], e: Any) -> Any:
        """Sum with balls that enclose the exact value."""
        zero = self.flint.arb(0)
        total = zero
        for x, y in zip(p, q, strict=True):
            difference = x - e * y
            if difference > 0:
                total += difference
            elif not difference < 0:
                total += difference.union(zero)
        return total

    def distribution(self, p: dict[int, float], q: dict[int, float], *, one_direction: bool) -> Any:
        """Build the privacy loss distribution of (p, q), or of both directions."""
        return self.pld.from_two_probability_mass_functions(
            q, p, value_discretization_interval=1e-4, symmetric=one_direction
        )


def logs(p: Array) -> dict[int, float]:
    return dict(enumerate(np.log(p).tolist()))
