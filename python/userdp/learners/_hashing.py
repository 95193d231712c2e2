"""Point functions represented by hashing: a class whose size does not depend on the number of points."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp._numbers import positive, shown
from userdp.learners._concept_class import Bits, check_size
from userdp.learners._domain_classes import DomainClass
from userdp.learners._ranges import open_unit_interval
from userdp.learners._saving import saved_as_parameter

__all__ = ["HashedPointFunctions"]

PRIME = 2**61 - 1
LABEL = b"userdp hashed point functions, version 1"


@saved_as_parameter
class HashedPointFunctions(DomainClass):
    """A representation of `PointFunctions` by hashing: the functions [g_r(x) = j] for a few hash functions g_r.

    For every point function, and every distribution of points, one of these hypotheses is within alpha of it with
    probability at least 1 - beta over the seed. There are R k of them, however many points there are.

    Parameters
    ----------
    domain_size : int
        N, the points are 1, ..., N; up to 2**61 - 2.
    alpha, beta : float
        Accuracy and failure probability, in (0, 1): k = ceil(2 / alpha) values and R = ceil(log2(1 / beta)) hashes.
    seed : bytes
        32 bytes, public: drawn once, without looking at the data, for example by ``os.urandom(32)`` or from a
        published beacon. It may be known to everybody, and must not be the key of any noise.
    feature : int
        The column of X that has the point; see `PointFunctions`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    g_r(x) = ((A_r x + B_r) mod p) mod k with p = 2**61 - 1, A_r in 1, ..., p - 1 and B_r in 0, ..., p - 1. The pair of
    hash r is SHA-512 of a label, the seed and r: it is found by its number r, and so cannot depend on what was drawn
    before, nor on data.

    *Accuracy.* For x != v the values before the last mod are a pair of distinct numbers below p, each pair equally
    likely, so Pr[g_r(x) = g_r(v)] <= 1 / k. The expected disagreement of [x = v] with [g_r(x) = g_r(v)] is then at most
    1 / k <= alpha / 2, and above alpha with probability at most 1 / 2 (Markov); for all R hashes with probability at
    most beta. The zero function is within 1 / k of the rarest value of any hash.

    *Privacy.* The list of hypotheses depends on the seed and on public numbers only. The exponential mechanism is
    private for every list, and so on average over seeds.

    References
    ----------
    Beimel, Nissim, Stemmer, "Characterizing the Sample Complexity of Pure Private Learners" (JMLR 2019); LWY24.

    Examples
    --------
    >>> hashed = HashedPointFunctions(10**15, alpha=0.1, beta=0.1, seed=bytes(32))
    >>> hashed.size, hashed.describe(21)
    (80, 'hash 1 of x is 1')
    """

    def __init__(self, domain_size: int, *, alpha: float, beta: float, seed: bytes, feature: int = 0) -> None:
        self.domain_size = positive(domain_size, "domain_size", least=2)
        if self.domain_size > PRIME - 1:
            raise ValueError(f"domain_size must be at most 2**61 - 2; got {self.domain_size}")
        self.alpha, self.beta = open_unit_interval(alpha, "alpha"), open_unit_interval(beta, "beta")
        self.seed = _seed(seed)
        self.feature = positive(feature, "feature", least=0)
        self._values = math.ceil(2 / self.alpha)
        hashes = math.ceil(math.log2(1 / self.beta))
        check_size(hashes * self._values, "HashedPointFunctions", "raise alpha or beta")
        self._hashes = tuple(_coefficients(self.seed, number) for number in range(hashes))

    @property
    def size(self) -> int:
        """R k."""
        return len(self._hashes) * self._values

    @property
    def vc_dimension(self) -> int:
        """A bound: a class that shatters k points has at least 2**k hypotheses."""
        return self.size.bit_length() - 1

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        predictions = np.empty((len(points), len(hypotheses)), dtype=np.bool_)
        hash_of, value = np.divmod(hypotheses, self._values)
        for number in np.unique(hash_of):
            multiplier, shift = self._hashes[number]
            hashed = _multiply(multiplier, points[:, 0].astype(np.uint64)) + np.uint64(shift)
            hashed = hashed % np.uint64(PRIME) % np.uint64(self._values)
            here = hash_of == number
            predictions[:, here] = hashed[:, None] == value[here].astype(np.uint64)
        return predictions

    def describe(self, index: int) -> str:
        """Which hash has which value."""
        number, value = divmod(self._known(index), self._values)
        return f"hash {number} of x is {value}"

    def _arguments(self) -> dict[str, Any]:
        return {
            "domain_size": self.domain_size,
            "alpha": self.alpha,
            "beta": self.beta,
            "seed": self.seed.hex(),
            "feature": self.feature,
        }


def _seed(seed: Any) -> bytes:
    """Read a seed; its hexadecimal form is how it is saved."""
    if isinstance(seed, str):
        try:
            seed = bytes.fromhex(seed)
        except ValueError:
            raise ValueError("seed must be 32 bytes, or these in hexadecimal") from None
    if not isinstance(seed, bytes):
        raise TypeError(f"seed must be 32 bytes; got {shown(seed)}")
    if len(seed) != 32:
        raise ValueError(f"seed must be 32 bytes; got {len(seed)}")
    return seed


def _coefficients(seed: bytes, number: int) -> tuple[int, int]:
    """Multiplier and shift of a hash."""
    block = hashlib.sha512(LABEL + seed + number.to_bytes(8, "little")).digest()
    # 256 bits each, so that the remainders are uniform up to 2**-195.
    first, second = int.from_bytes(block[:32], "little"), int.from_bytes(block[32:], "little")
    return 1 + first % (PRIME - 1), second % PRIME


def _multiply(multiplier: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Products with numbers below p = 2**61 - 1, modulo p; all steps fit 64 bits."""
    prime, low_half = np.uint64(PRIME), np.uint64(2**32 - 1)
    high, low = np.uint64(multiplier >> 32), np.uint64(multiplier & (2**32 - 1))
    above, below = numbers >> np.uint64(32), numbers & low_half
    # 2**64 = 8 and 2**61 = 1 modulo p. The middle sum is below 2**62.
    middle = high * below + low * above
    shifted = (middle >> np.uint64(29)) + ((middle & np.uint64(2**29 - 1)) << np.uint64(32))
    last = low * below
    product = (high * above << np.uint64(3)) + shifted + (last & prime) + (last >> np.uint64(61))
    reduced: npt.NDArray[np.uint64] = product % prime
    return reduced
