"""Public random bits and race keys as the documentation describes them, in plain Python: hmac, hashlib, integers.

The logarithm is evaluated in exact fractions to 200 bits, so that it says what the keys mean rather than how they are
rounded; `rounded_key` repeats the rounding, operation by operation, since Python's floats are IEEE 754 too.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from fractions import Fraction

MASK = 0xFFFFFFFF


def _hash(seed: bytes, kind: int, label: str, tail: bytes) -> bytes:
    name = label.encode()
    message = b"userdp/public/1" + bytes([kind]) + struct.pack("<Q", len(name)) + name + tail
    return hmac.new(seed, message, hashlib.sha256).digest()


def block(seed: bytes, label: str, i: int = 0, j: int = 0) -> bytes:
    return _hash(seed, 0, label, struct.pack("<QQ", i, j))


def item_word(seed: bytes, label: str, i: int, item: bytes) -> int:
    return int.from_bytes(_hash(seed, 2, label, struct.pack("<Q", i) + item)[:8], "little")


def _quarter(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[x] = (state[x] + state[y]) & MASK
        mixed = state[z] ^ state[x]
        state[z] = ((mixed << turn) | (mixed >> (32 - turn))) & MASK


def chacha20_block(key: bytes, counter: int) -> bytes:
    """The key stream's block at a 64-bit counter, with a zero nonce."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
    start += [counter & MASK, counter >> 32, 0, 0]
    state = list(start)
    for _ in range(10):
        for column in range(4):
            _quarter(state, column, column + 4, column + 8, column + 12)
        for diagonal in range(4):
            _quarter(state, diagonal, (diagonal + 1) % 4 + 4, (diagonal + 2) % 4 + 8, (diagonal + 3) % 4 + 12)
    return struct.pack("<16I", *((word + first) & MASK for word, first in zip(state, start, strict=True)))


def stream_word(seed: bytes, label: str, i: int, index: int) -> int:
    key = _hash(seed, 1, label, struct.pack("<Q", i))
    return struct.unpack_from("<Q", chacha20_block(key, index // 8), 8 * (index % 8))[0]


def _logarithm(x: Fraction, bits: int = 200) -> Fraction:
    """Ln x to about the given number of bits, from ln x = n ln 2 + 2 atanh((m - 1) / (m + 1))."""

    def twice_atanh(s: Fraction) -> Fraction:
        scaled = (s.numerator << bits) // s.denominator
        square, power, total, n = scaled * scaled >> bits, scaled, 0, 1
        while power:
            total, power, n = total + power // n, power * square >> bits, n + 2
        return Fraction(2 * total, 1 << bits)

    n = 0
    while x > Fraction(3, 2):
        x, n = x / 2, n + 1
    while x < Fraction(3, 4):
        x, n = x * 2, n - 1
    near = twice_atanh(abs(x - 1) / (x + 1))
    return n * twice_atanh(Fraction(1, 3)) + (near if x >= 1 else -near)


def exact_key(word: int) -> float:
    """-ln(-ln(1 - U)) for U = (word + 1/2) / 2^64, rounded at the end."""
    u = Fraction(2 * word + 1, 2**65)
    return float(-_logarithm(-_logarithm(1 - u)))


ROOT_HALF = 0x3FE6A09E667F3BCC


def _split(x: float) -> tuple[float, float]:
    pattern = struct.unpack("<Q", struct.pack("<d", x))[0]
    exponent = ((pattern + 0x3FF0000000000000 - ROOT_HALF) >> 52) - 1023
    return float(exponent), math.ldexp(x, -exponent)


def _joined(e: float, f: float) -> float:
    s = f / (2.0 + f)
    z = s * s
    tail = 1.0 / 21.0
    for n in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        tail = tail * z + 1.0 / n
    twice = s + s
    high, low = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
    return e * high + (twice + (twice * (z * tail) + e * low))


def rounded_logarithm(x: float) -> float:
    if x == 0:
        return -math.inf
    small = x < 2.0**-1022
    e, m = _split(x * 2.0**54 if small else x)
    return _joined(e - 54.0 if small else e, m - 1.0)


def rounded_exponential(word: int) -> float:
    # int / int is rounded once in Python.
    u, rest = (2 * word + 1) / 2**65, (2 * (2**64 - 1 - word) + 1) / 2**65
    e, m = _split(rest)
    return -_joined(e, -u if e == 0.0 else m - 1.0)


def rounded_key(word: int) -> float:
    return -rounded_logarithm(rounded_exponential(word))
