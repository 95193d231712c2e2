"""What is run: every call that is claimed to be constant time, with the secrets and the kernels it must be seen to use.

The calls are those of users: each case is named after the public method that docs/constant-time.md claims. Their random
bits are those of the operating system, of which the harness says what they are; up to 256 bytes a call are used as they
come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import LogRatio
from userdp.algorithms import AdditiveAlgorithm
from userdp.delstab import BOTTOM, DelStab
from userdp.mechanisms import (
    BiasedCoin,
    Categorical,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    GroupedScores,
    NegativeBinomial,
    PermuteAndFlip,
    TruncatedDiscreteLaplace,
    UniformInteger,
)
from userdp.protocols import local
from userdp.protocols.local import LocalProtocol
from userdp.protocols.local.items import NumberedSymbols

__all__ = ["CASES", "DECIDES", "DISORDER", "Case", "Inputs"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Inputs:
    """The secrets of one run."""

    label: str
    values: Integers
    """Scores, or true values that noise is added to; empty where a sampler has none."""
    random: bytes

    @property
    def secret_bytes(self) -> int:
        """How many bytes of these are secret: all."""
        return self.values.nbytes + len(self.random)


def words(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """Random bytes that are all zero, all ones, and anything."""
    yield "bits 0", bytes(size)
    yield "bits 1", b"\xff" * size
    yield from seeded(size, seeds)


def small_words(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """The same with words of 128 bits that are 1 in place of 0."""
    yield "words 1", (1).to_bytes(16, "little") * (size // 16)
    yield "bits 1", b"\xff" * size
    yield from seeded(size, seeds)


def one_zero_word(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """A first word of 128 bits that is 0, and then the same."""
    for label, random in small_words(size - 16, seeds):
        yield f"0, {label}", bytes(16) + random


def seeded(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """Bytes that are as good as random."""
    for seed in seeds:
        yield f"seed {seed}", hashlib.shake_128(seed.encode()).digest(size)


def accepted_trials(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """Trials of the discrete Gaussian distribution that accept all but 0, whatever the cell is."""
    yield "trials 0", bytes(size)
    everything = b"\xff" * 13 + bytes(3) + b"\xff" * 24
    yield "trials 1", everything * (size // 40)
    for label, random in seeded(size, seeds):
        trials = [random[start : start + 40] for start in range(0, size, 40)]
        # Acceptances are certain below 2^104, and the last cells are not that of 0.
        yield label, b"".join(trial[:13] + bytes(3) + trial[16:39] + b"\xff" for trial in trials)


def one_rejected_trial(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """A first trial that is -0, and then the same."""
    for label, random in accepted_trials(size - 40, seeds):
        yield f"-0, {label}", b"\1" + bytes(39) + random


@dataclass(frozen=True)
class Case:
    """One sampler with public parameters."""

    name: str
    """The class and method of which it is claimed, and what is special in it."""
    make: Callable[[], Any]
    """The sampler, from public parameters only."""
    draw: Callable[[Any, Integers], Any]
    """The draws, from the sampler and the secret values."""
    draws: int
    random_bytes: int
    """How many bytes the operating system is asked for."""
    calls: Mapping[str, int]
    """How often each kernel is called."""
    values: Mapping[str, Integers] = field(default_factory=dict)
    """Classes of secret values."""
    random: Callable[[int, str], Iterator[tuple[str, bytes]]] = words
    """Classes of random bytes, of a size and with some seeds."""
    errors: int | None = 0
    """What memcheck reports in each run but for what is revealed. None: as much as when the interpreter makes an int of
    the same draw in the harness, and nothing else."""

    @property
    def claim(self) -> str:
        """The call of which the page claims that it is constant time."""
        return self.name.partition(",")[0]

    @property
    def revealed(self) -> int:
        """How often functions that reveal branch on what a kernel decided, in each run."""
        return sum(self.calls[DECIDES[name]] for name in self.calls if name in DECIDES)

    @property
    def secret_bytes(self) -> int:
        """Secret bytes of one run."""
        return self.random_bytes + next((values.nbytes for values in self.values.values()), 0)

    def inputs(self) -> Iterator[Inputs]:
        """All classes of secrets."""
        if not self.values:
            for label, random in self.random(self.random_bytes, "123456"):
                yield Inputs(label, np.empty(0, dtype=np.int64), random)
        for number, (name, values) in enumerate(self.values.items()):
            for label, random in self.random(self.random_bytes, str(number)):
                yield Inputs(f"{name}, {label}", values, random)


def scores(k: int) -> dict[str, Integers]:
    """Scores of k candidates: in nothing alike but their number."""
    generator = np.random.default_rng(k)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return {
        "equal": np.zeros(k, dtype=np.int64),
        "ramp": np.arange(k, dtype=np.int64),
        "small": generator.integers(-20, 20, k),
        "any": generator.integers(lowest, highest, k, endpoint=True),
        "one best": np.where(np.arange(k) == k // 3, lowest, highest),
        "steep": np.arange(k, dtype=np.int64) * 10**9,
    }


def groups(g: int, last: int) -> dict[str, Integers]:
    """Scores of g groups and, as if they were signed, their starts: empty ones at many places, or none."""
    place = np.arange(g, dtype=np.uint64)
    starts = {
        "alike": place,
        "all but the last empty": np.zeros(g, dtype=np.uint64),
        "all but the first and the last empty": np.where(place == 0, np.uint64(0), np.uint64(last)),
        "a block empty": np.where((place >= 256) & (place < 600), np.uint64(256), place),
        "any": np.sort(np.random.default_rng(g).integers(0, last, g, dtype=np.uint64, endpoint=True)),
        "pairs": place // np.uint64(2) * np.uint64(10**9),
    }
    return {
        f"{label}, {name}": np.concatenate([values, begin.view(np.int64)])
        for (label, begin), (name, values) in zip(starts.items(), scores(g).items(), strict=True)
    }


def grouped(values: Integers, last: int) -> GroupedScores:
    """Groups from what `groups` gives."""
    half = len(values) // 2
    return GroupedScores(values[half:].view(np.uint64), values[:half], last)


def true_values(low: int, high: int) -> dict[str, Integers]:
    """Values that noise is added to: at the ends of their range, inside and outside."""
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    generator = np.random.default_rng(high)
    return {
        "low": np.full(8, low, dtype=np.int64),
        "high": np.full(8, high, dtype=np.int64),
        "middle": np.full(8, (low + high) // 2, dtype=np.int64),
        "far below": np.full(8, lowest),
        "far above": np.full(8, highest),
        "inside": generator.integers(low, high, 8, endpoint=True),
        "any": generator.integers(lowest, highest, 8, endpoint=True),
    }


def items(k: int) -> dict[str, Integers]:
    """Items of 8 users: all alike, all different, and some that are none."""
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    generator = np.random.default_rng(k)
    return {
        "first": np.zeros(8, dtype=np.int64),
        "last": np.full(8, k - 1, dtype=np.int64),
        "middle": np.full(8, k // 2, dtype=np.int64),
        "none, below": np.full(8, lowest),
        "none, above": np.full(8, highest),
        "inside": generator.integers(0, k, 8),
        "any": generator.integers(-k, 2 * k, 8),
    }


def reports(protocol: str, k: int, calls: Mapping[str, int], **changes: Any) -> Case:
    """Reports of 8 users with secret items, each from two words."""
    return Case(
        f"{protocol}.report_many",
        make=lambda: made(protocol, n_items=k, default=7),
        draw=symbols,
        calls={LOCAL + "item": 8, COUNT: 8, **calls},
        values=items(k),
        **({"draws": 8, "random_bytes": 256} | changes),
    )


def made(protocol: str, **parameters: Any) -> LocalProtocol:
    """A protocol of 8 users."""
    found: type[LocalProtocol] = getattr(local, protocol)
    return found(epsilon=LogRatio(3), n_users=8, round_id="evidence", **parameters)


def symbols(protocol: LocalProtocol, values: Integers) -> npt.NDArray[Any]:
    """What is random in the messages of 8 users; before it is who reports what in which round, which is public."""
    held = values if values.size == 8 else values.reshape(8, -1)
    drawn = protocol.report_many(held)[:, -protocol.symbol_bytes :]
    numbered = np.ascontiguousarray(drawn).view("<u4") if isinstance(protocol, NumberedSymbols) else drawn
    return numbered


def rows_of_bits(width: int) -> dict[str, Integers]:
    """The bits of 8 users, one row after the other: some are no bits."""
    generator = np.random.default_rng(width)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    size, place = 8 * width, np.arange(8 * width)
    return {
        "zeros": np.zeros(size, dtype=np.int64),
        "ones": np.ones(size, dtype=np.int64),
        "any bits": generator.integers(0, 2, size),
        "no bit at the start": np.where(place % width == 0, 2, 1),
        "no bit at the end": np.where(place % width == width - 1, -1, 1),
        "any": generator.integers(lowest, highest, size, endpoint=True),
        "far below": np.full(size, lowest),
    }


PARITY = AdditiveAlgorithm(
    ("even", "odd"),
    lambda user: user[0],
    lambda total, n_users: ["0.01", "0.99"] if total % 2 else ["0.99", "0.01"],
    statistic_range=(0, 1),
)
"""Every user decides: never stable."""


def several(kernel: str, make: Callable[[], Any], name: str, **changes: Any) -> Case:
    """16 draws at once from a sampler without secret values, each from one word."""
    return Case(name, make, lambda pmf, _: pmf.sample(size=16), 16, 256, {kernel: 16}, **changes)


COUNT, COIN, UNIFORM = "userdp_ct_count", "userdp_ct_coin", "userdp_ct_uniform"
LAPLACE = "userdp_ct_discrete_laplace"
GAUSSIAN, UNACCEPTED = "userdp_ct_discrete_gaussian_", "userdp_revealed_discrete_gaussian_rejections"
TIE, REJECTION = "userdp_revealed_coin_tie", "userdp_revealed_uniform_rejection"
EXPONENTIAL = "userdp_ct_exponential_"
FLIPS = "userdp_ct_permute_flip_"
LOCAL, SUBSET = "userdp_ct_local_", "userdp_revealed_subset_rejection"
GROUPED, DISORDER = "userdp_ct_grouped_", "userdp_revealed_grouped_disorder"
DECIDES = {
    TIE: COIN,
    REJECTION: UNIFORM,
    UNACCEPTED: GAUSSIAN + "trial",
    SUBSET: LOCAL + "others",
    DISORDER: GROUPED + "disorder",
}
"""For each function that reveals, the kernel on whose results it branches: once on each."""


def of_groups(draws: int, blocks: int, parts: int = 1) -> dict[str, int]:
    """How often the kernels for groups are called. Groups are checked when they are made and when they are drawn."""
    calls = {"disorder": 2, "lowest": parts, "sums": parts, "ends": blocks + draws, "target": draws}
    calls |= {"search": 2 * draws, "gather": parts * draws, "point": draws}
    return {DISORDER: 2} | {GROUPED + kernel: number for kernel, number in calls.items()}


def of_flips(draws: int, weights: int, coins: int) -> dict[str, int]:
    """How often the kernels of permute-and-flip are called, and that of the lowest score, which it shares."""
    calls = {"weights": weights, "coins": coins, "chosen": draws}
    return {EXPONENTIAL + "lowest": 1} | {FLIPS + kernel: number for kernel, number in calls.items()}


CASES = [
    several(COUNT, lambda: TruncatedDiscreteLaplace(epsilon=1, delta="1e-6"), "TruncatedDiscreteLaplace.sample"),
    several(
        COUNT,
        lambda: TruncatedDiscreteLaplace(epsilon=0.1, delta="1e-6", half_width="tight"),
        "TruncatedDiscreteLaplace.sample, kappa tight",
    ),
    Case(
        "TruncatedDiscreteLaplace.sample, one draw",
        make=lambda: TruncatedDiscreteLaplace(epsilon=1, delta="1e-6"),
        draw=lambda noise, _: noise.sample(),
        draws=1,
        random_bytes=16,
        calls={COUNT: 1},
        errors=None,
    ),
    Case(
        "TruncatedDiscreteLaplace.sample, a key for many draws",
        make=lambda: TruncatedDiscreteLaplace(epsilon=1, delta="1e-6"),
        draw=lambda noise, _: noise.sample(size=(20, 10)),
        draws=200,
        # Of a key, which ChaCha20 expands.
        random_bytes=32,
        calls={COUNT: 200},
    ),
    Case(
        "TruncatedDiscreteLaplace.sample, on a worker thread",
        # Above 2^20 steps in one call.
        make=lambda: TruncatedDiscreteLaplace(epsilon=0.01, delta="1e-6"),
        draw=lambda noise, _: noise.sample(size=400),
        draws=400,
        random_bytes=32,
        calls={COUNT: 400},
    ),
    Case(
        "DelStab.release",
        make=lambda: DelStab(PARITY, epsilon=8, delta="0.01", compatibility="exact"),
        # A refusal is sure, so that nothing else is drawn.
        draw=lambda mechanism, _: int(mechanism.release(((1,), (0,)) * 5) is BOTTOM),
        draws=1,
        random_bytes=16,
        calls={COUNT: 1},
        # Whether a release is refused is released: the choice of True or False is the one report.
        errors=1,
    ),
    Case(
        "ExponentialMechanism.sample, stored",
        make=lambda: ExponentialMechanism(epsilon=1, sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(values, size=4),
        draws=4,
        random_bytes=64,
        calls={EXPONENTIAL + "lowest": 1, EXPONENTIAL + "sums": 1, EXPONENTIAL + "stored": 4, COUNT: 4},
        values=scores(1003),
    ),
    Case(
        "ExponentialMechanism.sample, blocked, maximize",
        make=lambda: ExponentialMechanism(epsilon="0.01", sensitivity=1, maximize=True),
        draw=lambda mechanism, values: mechanism.sample(values, size=2),
        draws=2,
        random_bytes=32,
        calls={
            EXPONENTIAL + "lowest": 1,
            EXPONENTIAL + "block_sums": 1,
            EXPONENTIAL + "blocked": 2,
            EXPONENTIAL + "sums": 2,
            COUNT: 4,
        },
        values=scores(4999),
    ),
    Case(
        "ExponentialMechanism.sample, one draw",
        make=lambda: ExponentialMechanism(epsilon=1, sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(values),
        draws=1,
        random_bytes=16,
        calls={EXPONENTIAL + "lowest": 1, EXPONENTIAL + "sums": 1, EXPONENTIAL + "stored": 1, COUNT: 1},
        values=scores(10),
        errors=None,
    ),
    Case(
        "PermuteAndFlip.sample, weights kept",
        make=lambda: PermuteAndFlip(epsilon=1, sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(values, size=3),
        draws=3,
        # Of a key; a draw is of two parts.
        random_bytes=32,
        calls=of_flips(draws=3, weights=1, coins=6),
        values=scores(1003),
    ),
    Case(
        "PermuteAndFlip.sample, many draws among few",
        make=lambda: PermuteAndFlip(epsilon="0.01", sensitivity=1, maximize=True),
        draw=lambda mechanism, values: mechanism.sample(values, size=50),
        draws=50,
        random_bytes=32,
        calls=of_flips(draws=50, weights=1, coins=50),
        values=scores(10),
    ),
    Case(
        "PermuteAndFlip.sample, one draw, several parts",
        make=lambda: PermuteAndFlip(epsilon="0.01", sensitivity=1, maximize=True),
        draw=lambda mechanism, values: mechanism.sample(values),
        draws=1,
        random_bytes=32,
        # Weights of 128 candidates at a time, and of the 107 at the end.
        calls=of_flips(draws=1, weights=8, coins=8),
        values=scores(1003),
        errors=None,
    ),
    Case(
        "PermuteAndFlip.sample, one draw",
        make=lambda: PermuteAndFlip(epsilon=1, sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(values),
        draws=1,
        random_bytes=160,
        calls=of_flips(draws=1, weights=1, coins=1),
        values=scores(10),
        errors=None,
    ),
    Case(
        "GroupedExponentialMechanism.sample",
        make=lambda: GroupedExponentialMechanism(epsilon=1, sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(grouped(values, 2**64 - 1), size=2),
        draws=2,
        random_bytes=96,
        calls=of_groups(2, 4),
        values=groups(1003, 2**64 - 1),
    ),
    Case(
        "GroupedExponentialMechanism.sample, one draw",
        make=lambda: GroupedExponentialMechanism(epsilon="0.01", sensitivity=1),
        draw=lambda mechanism, values: mechanism.sample(grouped(values, 2**62)),
        draws=1,
        random_bytes=48,
        calls=of_groups(1, 3),
        values=groups(700, 2**62),
        errors=None,
    ),
    Case(
        "DiscreteLaplace.sample, small range",
        make=lambda: DiscreteLaplace(scale=1, bounds=(0, 10)),
        draw=lambda noise, values: noise.sample(values),
        draws=8,
        random_bytes=16 * 8,
        calls={LAPLACE: 8, COUNT: 16},
        values=true_values(0, 10),
    ),
    Case(
        "DiscreteLaplace.sample",
        make=lambda: DiscreteLaplace(scale=1000, bounds=(-(10**6), 10**6)),
        draw=lambda noise, values: noise.sample(values),
        draws=8,
        random_bytes=32 * 8,
        calls={LAPLACE: 8, COUNT: 16},
        values=true_values(-(10**6), 10**6),
    ),
    Case(
        "DiscreteGaussian.sample, cells of one integer",
        make=lambda: DiscreteGaussian(sigma_squared=1),
        draw=lambda noise, values: noise.sample(values),
        draws=6,
        random_bytes=40 * 6,
        calls={GAUSSIAN + "trial": 6, GAUSSIAN + "sum": 6, COUNT: 6, UNACCEPTED: 1},
        values={name: values[:6] for name, values in true_values(0, 10).items()},
        random=accepted_trials,
    ),
    Case(
        "DiscreteGaussian.sample, a trial rejected",
        make=lambda: DiscreteGaussian(sigma_squared=10**9),
        draw=lambda noise, values: noise.sample(values),
        draws=5,
        random_bytes=40 * 6,
        calls={GAUSSIAN + "trial": 6, GAUSSIAN + "sum": 5, COUNT: 6, UNACCEPTED: 2},
        values={name: values[:5] for name, values in true_values(-(2**62), 2**62).items()},
        random=one_rejected_trial,
    ),
    Case(
        "BiasedCoin.sample",
        make=lambda: BiasedCoin(log_probability=-1),
        draw=lambda coin, _: coin.sample(size=16),
        draws=16,
        random_bytes=256,
        calls={COIN: 16, TIE: 16},
    ),
    Case(
        "UniformInteger.sample",
        make=lambda: UniformInteger(low=-3, high=10**12),
        draw=lambda pmf, _: pmf.sample(size=16),
        draws=16,
        random_bytes=256,
        calls={UNIFORM: 16, REJECTION: 16},
        random=small_words,
    ),
    Case(
        "UniformInteger.sample, a word rejected",
        make=lambda: UniformInteger(low=-3, high=10**12),
        draw=lambda pmf, _: pmf.sample(size=8),
        draws=8,
        random_bytes=144,
        calls={UNIFORM: 9, REJECTION: 8},
        random=one_zero_word,
    ),
    Case(
        "Categorical.sample",
        make=lambda: Categorical(weights=range(100)),
        draw=lambda pmf, _: pmf.sample(size=16),
        draws=16,
        random_bytes=256,
        calls={UNIFORM: 16, REJECTION: 16, COUNT: 16},
        random=small_words,
    ),
    several(COUNT, lambda: NegativeBinomial(r="1/3", p="1/2"), "NegativeBinomial.sample"),
    reports("KRandomizedResponse", 1000, {LOCAL + "other": 8, UNIFORM: 8, REJECTION: 8}, random=small_words),
    reports("HadamardResponse", 1000, {LOCAL + "column": 8}),
    reports(
        "SubsetSelection",
        # Sets of three words, in 19 bytes of a message; their random words come from a key.
        150,
        {LOCAL + "others": 8, LOCAL + "insert": 8, SUBSET: 8},
        draws=8 * 19,
        random_bytes=32,
    ),
    Case(
        "BitwiseMajority.report_many",
        make=lambda: made("BitwiseMajority", n_bits=5),
        draw=symbols,
        draws=8,
        random_bytes=256,
        calls={LOCAL + "bit": 8, LOCAL + "item": 8, COUNT: 8, LOCAL + "other": 8, UNIFORM: 8, REJECTION: 8},
        values=rows_of_bits(5),
    ),
]
