"""What a program is given in place of its source of random numbers, so that all of them are known.

Each stand-in answers by the rule of what it stands for: which integers are drawn, and what is made of them. A method
whose rule is not here ends the audit, with its name.
"""

from __future__ import annotations

import hmac
import random
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

import numpy as np

from userdp.audit.exhaustion import MOST_SIZE_BITS, Bits, Draws, Stopped
from userdp.audit.lazy import RESOLUTION, uniform_float, uniform_integer
from userdp.exact.numbers import is_integer
from userdp.runtime import shape_of

_NUMPY = np.random.default_rng(0)
"""Says what NumPy raises; what it draws is thrown away."""
OTHERWISE = "Audit what is computed before the noise by audit_sensitivity, or all of it by its draws: audit_samples"
Randomness = Literal["bits", "lazy-bits", "random", "secrets", "numpy"]


class LazyBits(Bits):
    """As `Bits`, but an integer is drawn as far as the program asks for it."""

    def __call__(self, k: int) -> Any:
        """A stand-in for a uniform integer in [0, 2^k)."""
        size = self._size(k)
        return 0 if size == 1 else uniform_integer(self._draws.source(size))


class RandomStandIn(random.SystemRandom):
    """Stands for `random.Random` and `random.SystemRandom`, which libraries tell by their class.

    All methods of `random.Random` are Python's own, on top of those here.
    """

    gauss_next: float | None

    def __init__(self, draws: Any = None) -> None:
        if not isinstance(draws, Draws):
            raise Stopped  # the program makes a generator of this class, whose randomness would not be known
        self._draws, self.gauss_next = draws, None

    def _refused(self, *given: Any, **options: Any) -> NoReturn:
        self._draws.refuse(
            "the mechanism seeds or copies its generator, or asks for the generator's state; what is drawn then is not "
            "known here"
        )

    seed = getstate = setstate = _refused

    def random(self) -> Any:
        """A stand-in for a multiple of 2^-53 in [0, 1)."""
        return uniform_float(self._draws.source(1 << RESOLUTION))

    def getrandbits(self, k: int, /) -> int:
        """A uniform integer of k bits."""
        if not is_integer(k) or k < 0:
            raise ValueError("number of bits must be non-negative")
        return self._draws.integer(1 << min(int(k), MOST_SIZE_BITS + 1))

    def randbytes(self, n: int) -> bytes:
        """Uniform bytes, n of them."""
        return self.getrandbits(8 * n).to_bytes(n, "big")

    def _randbelow(self, n: int) -> int:
        # `random` draws bits again until they are below n: uniform.
        return self._draws.integer(n)

    def restart(self) -> NoReturn:
        """As `userdp.audit.exhaustion.Bits.restart`."""
        self._draws.restart()


class SecretsStandIn:
    """Stands for the module `secrets`."""

    compare_digest = staticmethod(hmac.compare_digest)

    def __init__(self, draws: Draws) -> None:
        self._draws, self._random = draws, RandomStandIn(draws)
        self.randbits, self.choice = self._random.getrandbits, self._random.choice
        self.restart = draws.restart

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._draws.refuse(
            f"the mechanism asks secrets for {name!r}, whose draws are not known here; known are randbits, randbelow, "
            f"choice, token_bytes, token_hex and SystemRandom. {OTHERWISE}"
        )

    def SystemRandom(self) -> RandomStandIn:  # the name of the class it stands for
        """The generator behind the functions."""
        return self._random

    def randbelow(self, exclusive_upper_bound: int) -> int:
        """A uniform integer in [0, n)."""
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return self._draws.integer(exclusive_upper_bound)

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        """Uniform bytes."""
        return self._random.randbytes(secrets.DEFAULT_ENTROPY if nbytes is None else nbytes)

    def token_hex(self, nbytes: int | None = None) -> str:
        """Uniform bytes as text."""
        return self.token_bytes(nbytes).hex()


class NumPyStandIn:
    """Stands for a `numpy.random.Generator`, for the methods whose rules are simple.

    A single uniform float is a stand-in; arrays of them are drawn in full.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.restart = draws.restart

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._draws.refuse(
            f"the mechanism asks NumPy's generator for {name!r}, whose draws are not known here; known are random, "
            f"random_sample, uniform, integers, choice and bytes. {OTHERWISE}"
        )

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Multiples of 2^-53 in [0, 1)."""
        if out is not None or np.dtype(dtype) != np.float64:
            self._draws.refuse("the mechanism asks NumPy's generator for 'random' of another dtype, or with out=")
        if size is None:
            return uniform_float(self._draws.source(1 << RESOLUTION))
        shape = shape_of(size)
        draws = [self._draws.integer(1 << RESOLUTION) * 2.0**-RESOLUTION for _ in range(int(np.prod(shape)))]
        return np.array(draws, dtype=np.float64).reshape(shape)

    random_sample = random

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """``low + (high - low) * random()``, rounded twice, as NumPy is compiled for x86-64."""
        if np.ndim(low) or np.ndim(high):
            self._draws.refuse("the mechanism asks NumPy's generator for 'uniform' with arrays as bounds")
        return float(low) + (float(high) - float(low)) * self.random(size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Uniform integers: NumPy draws again what would not be uniform."""
        least, beyond = (0, low) if high is None else (low, high)
        if not is_integer(least) or not is_integer(beyond):
            self._draws.refuse("the mechanism asks NumPy's generator for 'integers' with bounds that are not integers")
        _NUMPY.integers(low, high, None, dtype, endpoint)  # raises what NumPy raises
        choices = int(beyond) - int(least) + int(endpoint)
        if size is None:
            return np.dtype(dtype).type(int(least) + self._draws.integer(choices))
        shape = shape_of(size)
        drawn = [int(least) + self._draws.integer(choices) for _ in range(int(np.prod(shape)))]
        return np.array(drawn, dtype=dtype).reshape(shape)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Elements by NumPy's rule: the first place where a uniform float is below the cumulative sums."""
        if size is not None and not replace:
            self._draws.refuse("the mechanism asks NumPy's generator for 'choice' without replacement")
        if axis != 0:
            self._draws.refuse("the mechanism asks NumPy's generator for 'choice' along another axis")
        _NUMPY.choice(a, size, replace, p)  # raises what NumPy raises
        count = int(a) if np.ndim(a) == 0 else len(a)
        shape = () if size is None else shape_of(size)
        places = np.array([self._place(count, p) for _ in range(int(np.prod(shape)))], dtype=np.int64).reshape(shape)
        if np.ndim(a) == 0:
            return int(places) if size is None else places
        return np.asarray(a)[int(places)] if size is None else np.asarray(a)[places]

    def _place(self, count: int, p: Any) -> int:
        if p is None:
            return self._draws.integer(count)
        sums = np.cumsum(np.asarray(p, dtype=np.float64))
        sums /= sums[-1]
        drawn = self.random()
        return next((place for place, edge in enumerate(sums) if drawn < edge), count)

    def bytes(self, length: int) -> bytes:
        """Uniform bytes."""
        return self._draws.integer(1 << 8 * length).to_bytes(length, "big")


STAND_INS: Mapping[str, Callable[[Draws], Any]] = {
    "bits": Bits,
    "lazy-bits": LazyBits,
    "random": RandomStandIn,
    "secrets": SecretsStandIn,
    "numpy": NumPyStandIn,
}
"""What a mechanism is given, by the word for its randomness."""
