"""What is run: every constant-time sampler, with the secrets and the kernels it must be seen to use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core

__all__ = ["CASES", "Case", "Inputs"]

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


@dataclass(frozen=True)
class Case:
    """One sampler with public parameters."""

    name: str
    make: Callable[[], Any]
    """The sampler, from public parameters only."""
    draw: Callable[[Any, _core.Source, Integers], Integers]
    """The draws, from the sampler, the random bytes and the secret values."""
    draws: int
    random_bytes: int
    """Random bytes of all draws together. They must be used up."""
    calls: Mapping[str, int]
    """How often each kernel is called."""
    values: Mapping[str, Integers] = field(default_factory=dict)
    """Classes of secret values: the time must be the same for all."""
    errors: int | None = 0
    """What memcheck reports in each run. None: the interpreter, which makes an object of the released draw, may be
    reported, and the library may not."""
    system: bool = False
    """Whether the random bytes come through the operating system's generator and not as a list."""

    @property
    def secret_bytes(self) -> int:
        """Secret bytes of one run."""
        return self.random_bytes + next((values.nbytes for values in self.values.values()), 0)

    def inputs(self) -> Iterator[Inputs]:
        """All classes of secrets."""
        if not self.values:
            for label, random in patterns(self.random_bytes, "123456"):
                yield Inputs(label, np.empty(0, dtype=np.int64), random)
        for number, (name, values) in enumerate(self.values.items()):
            for label, random in patterns(self.random_bytes, str(number)):
                yield Inputs(f"{name}, {label}", values, random)


def patterns(size: int, seeds: str) -> Iterator[tuple[str, bytes]]:
    """Bytes that are all zero, all ones, and random."""
    yield "bits 0", bytes(size)
    yield "bits 1", b"\xff" * size
    for seed in seeds:
        yield f"seed {seed}", hashlib.shake_128(seed.encode()).digest(size)


# --- the samplers

ONE = _core.Level(Fraction(1), Fraction(1))
"""epsilon = 1."""


def noise(delta: Fraction, tight: bool) -> _core.TruncatedDiscreteLaplaceTable:
    """Truncated discrete Laplace noise at epsilon = 1."""
    return _core.TruncatedDiscreteLaplaceTable(ONE, delta, tight)


def array(draw: int) -> Integers:
    """One draw as an array."""
    return np.array([draw], dtype=np.int64)


CASES = [
    Case(
        "TruncatedDiscreteLaplace",
        make=lambda: noise(Fraction(1, 10**6), tight=False),
        draw=lambda table, source, _: table.sample_many(source, 200),
        draws=200,
        random_bytes=16 * 200,
        calls={"userdp_ct_count": 200},
    ),
    Case(
        "TruncatedDiscreteLaplace, kappa tight",
        make=lambda: noise(Fraction(1, 10**9), tight=True),
        draw=lambda table, source, _: table.sample_many(source, 10),
        draws=10,
        random_bytes=16 * 10,
        calls={"userdp_ct_count": 10},
    ),
    # More bits than the system is asked for directly: 32 bytes of a key, which ChaCha20 expands.
    Case(
        "TruncatedDiscreteLaplace, bits of the system",
        make=lambda: noise(Fraction(1, 10**6), tight=False),
        draw=lambda table, source, _: table.sample_many(source, 200),
        draws=200,
        random_bytes=32,
        calls={"userdp_ct_count": 200},
        system=True,
    ),
    Case(
        "TruncatedDiscreteLaplace, one draw",
        make=lambda: noise(Fraction(1, 10**6), tight=False),
        draw=lambda table, source, _: array(table.sample(source)),
        draws=1,
        random_bytes=16,
        calls={"userdp_ct_count": 1},
        errors=None,
    ),
    Case(
        "RefusalTable",
        make=lambda: _core.RefusalTable(ONE, Fraction(1, 10**6)),
        draw=lambda table, source, _: array(table.refuses(3, source)),
        draws=1,
        random_bytes=16,
        calls={"userdp_ct_count": 1},
        # Whether a release is refused is released: the choice of True or False is the one report.
        errors=1,
    ),
]
