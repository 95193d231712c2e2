"""The public random rotation that spreads a vector evenly over its coordinates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from userdp.public_randomness import PublicSeed

LABEL = "userdp mean rotation"


def padded(dimension: int) -> int:
    """The least power of two that is at least the dimension: a Walsh-Hadamard matrix has such a size."""
    return 1 << (dimension - 1).bit_length()


def signs_of(seed: PublicSeed, dimension: int) -> npt.NDArray[np.int8]:
    """One public random sign for each coordinate of the padded vector."""
    size = padded(dimension)
    blocks = b"".join(seed.block(LABEL, i) for i in range(-(-size // 256)))
    bits = np.unpackbits(np.frombuffer(blocks, dtype=np.uint8), count=size)
    return (1 - 2 * bits.astype(np.int8)).astype(np.int8)


def rotated_back(
    vector: npt.NDArray[np.float64], signs: npt.NDArray[np.int8], dimension: int
) -> npt.NDArray[np.float64]:
    """The vector whose rotation this is: post-processing of something released."""
    values, size = vector.copy(), len(vector)
    half = 1
    while half < size:
        pairs = values.reshape(-1, 2, half)
        values = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).ravel()
        half *= 2
    back: npt.NDArray[np.float64] = (signs * values)[:dimension] / np.sqrt(size)
    return back
