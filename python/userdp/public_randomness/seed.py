"""Public randomness by address, from 32 bytes that everybody knows."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, check_kind, is_integer, short_repr

SEED_BYTES = 32
BLOCK_VALUES = 2**256
ADDRESSES = 2**64


@saved_as_parameter
class PublicSeed:
    """Public random bits that every party finds at the same address, from 32 published bytes.

    Draw it once, publish it, and only then look at data. It is not a secret and protects nobody: privacy holds for
    every seed that was fixed before the data, known to an attacker or not, and noise never comes from it. A seed that
    depends on the data, such as a hash of them, voids every proof.

    Bits are found by an address, a label and numbers; there is no position that one draw moves for the next. What a
    user draws is therefore a function of the seed and of what is passed, never of what others drew before.

    Parameters
    ----------
    value : bytes of length 32, str of 64 hexadecimal digits, or PublicSeed
        The public bytes.

    Attributes
    ----------
    hex : str
        The 32 bytes as 64 hexadecimal digits, for publishing.

    Notes
    -----
    Blocks are HMAC-SHA256 of length-prefixed addresses and streams are ChaCha20, so that the bits are as good as random
    to everybody who has not chosen the seed. How to compute them without this package:
    `docs/proofs/correlated_sampling.md`.

    Examples
    --------
    >>> seed = PublicSeed(bytes(range(32)))
    >>> seed == PublicSeed(seed.hex)
    True
    >>> seed.block("example").hex()[:16]
    'e5d6b1573b8d3bf2'
    """

    __slots__ = ("_bytes", "_core")

    _bytes: bytes
    _core: _core.PublicSeed

    def __init__(self, value: bytes | bytearray | str | PublicSeed) -> None:
        self._bytes = _seed_bytes(value)
        self._core = _core.PublicSeed(self._bytes)

    @classmethod
    def random(cls) -> PublicSeed:
        """A fresh seed from the operating system, to be published before data are read."""
        return cls(os.urandom(SEED_BYTES))

    @property
    def hex(self) -> str:
        """The 32 bytes as 64 hexadecimal digits."""
        return self._bytes.hex()

    def block(self, label: str, i: int = 0, j: int = 0) -> bytes:
        """The 32 random bytes at an address.

        Parameters
        ----------
        label : str
            What the bytes are for.
        i, j : int
            Numbers in [0, 2**64).
        """
        return self._core.block(parse_label(label), _address(i, "i"), _address(j, "j"))

    def race_keys(self, label: str, i: int, count: int) -> npt.NDArray[np.float64]:
        """The keys -ln E_x of a shared exponential race, for independent E_x of the exponential pmf with mean 1.

        ``argmax(log_weights + keys)``, the lowest index at ties, is a draw with probabilities proportional to the
        weights, and users with similar weights draw the same: see `CorrelatedSampler`. The same bits on every
        platform, and for every count the same first keys.

        Parameters
        ----------
        label : str
            What the race is for.
        i : int
            Which race, in [0, 2**64).
        count : int
            Number of keys, from 0 to 2**28.

        Raises
        ------
        BudgetError
            For more than 2**28 keys.
        """
        size = min(check_count(count, "count", least=0), ADDRESSES - 1)
        return self._core.race_keys(parse_label(label), _address(i, "i"), size)

    def offset(self, label: str, i: int = 0) -> Fraction:
        """A uniform multiple of 2**-256 in [0, 1).

        Parameters
        ----------
        label : str
            What the offset is for.
        i : int
            Which offset, in [0, 2**64).

        Returns
        -------
        Fraction
            The block at (label, i, 0) as a little-endian integer, over 2**256.
        """
        return Fraction(int.from_bytes(self.block(label, i), "little"), BLOCK_VALUES)

    def generator(self, label: str, i: int = 0) -> np.random.Generator:
        """A fresh NumPy generator with public coins, for code that wants one.

        Parameters
        ----------
        label : str
            What the coins are for.
        i : int
            Which generator, in [0, 2**64).

        Returns
        -------
        numpy.random.Generator
            PCG64 seeded with the block at (label, i, 0). Its bits are the same everywhere; what NumPy's methods make of
            them may change between versions of NumPy, so that all parties need the same one.
        """
        return np.random.Generator(np.random.PCG64(int.from_bytes(self.block(label, i), "little")))

    def __bytes__(self) -> bytes:
        return self._bytes

    def __eq__(self, other: object) -> bool:
        return self._bytes == other._bytes if isinstance(other, PublicSeed) else NotImplemented

    def __hash__(self) -> int:
        return hash((PublicSeed, self._bytes))

    def __reduce__(self) -> tuple[Any, ...]:
        return PublicSeed, (self.hex,)

    def _arguments(self) -> dict[str, Any]:
        return {"value": self.hex}

    def __repr__(self) -> str:
        return f"PublicSeed({self.hex!r})"


def _seed_bytes(value: Any) -> bytes:
    if isinstance(value, PublicSeed):
        return bytes(value)
    if value is None:
        raise TypeError("public_seed is None; draw one with PublicSeed.random() before data are read, and share it")
    if isinstance(value, str):
        try:
            data = bytes.fromhex(value)
        except ValueError:
            raise ValueError(f"public_seed must be 64 hexadecimal digits; got {short_repr(value)}") from None
    elif isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    else:
        kind = type(value).__name__
        raise TypeError(f"public_seed must be 32 bytes, 64 hexadecimal digits or a PublicSeed; got a {kind}")
    if len(data) != SEED_BYTES:
        raise ValueError(f"public_seed must be {SEED_BYTES} bytes; got {len(data)}")
    return data


def parse_label(label: Any) -> str:
    """Read a label, whose bytes are its UTF-8."""
    check_kind(label, str, "label")
    try:
        label.encode()
    except UnicodeEncodeError:
        raise ValueError(f"label must have no surrogates, which UTF-8 cannot write; got {short_repr(label)}") from None
    return label


def _address(value: Any, name: str) -> int:
    if not is_integer(value):
        raise TypeError(f"{name} must be an int in [0, 2**64); got {short_repr(value)}")
    if not 0 <= value < ADDRESSES:
        raise ValueError(f"{name} must be in [0, 2**64); got {short_repr(value)}")
    return int(value)
