"""Draws that users share: the exponential race and darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import check_count, exact_number, is_integer, is_listed, short_repr
from userdp.exact.pmf import Pmf, masses_of
from userdp.public_randomness.seed import PublicSeed, parse_label

LARGEST_TOTAL = 2**63
MOST_DARTS = 2**62
"""More darts than anybody throws."""


class CorrelatedSampler:
    """Draws from a finite distribution by public randomness, so that users with similar distributions agree.

    Each draw has the distribution asked for, over the seed; two users with the same seed and query, whose distributions
    have total variation distance d, draw different items with probability at most 2d / (1 + d), and
    `disagreement_probability` gives it exactly. Privacy does not depend on any of this: an item is a function of one
    user's data and of the public seed, whatever the distribution, and only what is done with the items afterwards
    protects anybody.

    Parameters
    ----------
    public_seed : PublicSeed, bytes of length 32 or str of 64 hexadecimal digits
        Drawn before data are read, the same for all users.
    method : {"race", "darts"}
        "race": every item x has an exponential variable E_x that all users share, and the item with the least
        E_x / weight_x is drawn. Takes weights of any total, and logarithms of weights; time O(k); agrees at least as
        often as darts. "darts": the first of a shared sequence of uniform cells (item, height) with a height below the
        item's probability. Exact integers; k darts on average, whatever the distribution, but the run time of one draw
        depends on the weights, so that who can time it learns about them.
    label : str
        What is drawn; samplers with different labels share no bits.
    total : int
        For darts: the sum of all integer weights, from 1 to 2**63, the same for all users. Probabilities are rounded to
        multiples of 1 / total.
    max_darts : int or None
        For darts: after so many the public item `default` is the answer, which happens with probability about
        (1 - 1 / k) ** max_darts. None for no limit.
    default : int
        Index of the public item for that case.

    Notes
    -----
    [GKM21, Definition 7] and [GKM21, Theorem 8]. The race computes ln weight_x - ln E_x with a logarithm made of IEEE
    additions, multiplications and divisions, hence the same bits on every platform; 64 random bits an item and rounding
    cost less than k * 2**-58 + 2**-38 in agreement, for log_weights from -1000 to 1000. Distributions and proofs:
    docs/proofs/correlated_sampling.md.

    Examples
    --------
    >>> sampler = CorrelatedSampler(bytes(32))
    >>> [sampler.sample([0.2, 0.3, 0.5], query=query) for query in range(8)]
    [2, 0, 2, 2, 1, 1, 2, 1]
    >>> [sampler.sample([0.25, 0.3, 0.45], query=query) for query in range(8)]
    [2, 0, 2, 2, 1, 0, 2, 1]
    """

    def __init__(
        self,
        public_seed: PublicSeed | bytes | str,
        *,
        method: Literal["race", "darts"] = "race",
        label: str = "sample",
        total: int = 2**62,
        max_darts: int | None = None,
        default: int = 0,
    ) -> None:
        self.public_seed = PublicSeed(public_seed)
        if method not in ("race", "darts"):
            raise ValueError(f"method must be 'race' or 'darts'; got {short_repr(method)}")
        self.method = method
        self.label = parse_label(label)
        self.total = check_count(total, "total")
        if self.total > LARGEST_TOTAL:
            raise ValueError(f"total must be at most 2**63; got {short_repr(total)}")
        self.max_darts = None if max_darts is None else check_count(max_darts, "max_darts")
        self.default = check_count(default, "default", least=0)

    def sample(
        self,
        weights: Any = None,
        *,
        log_weights: Any = None,
        items: Sequence[bytes] | None = None,
        query: int = 0,
    ) -> int:
        """Draw one item.

        Parameters
        ----------
        weights : array-like of shape (k,), or Pmf
            Race: finite numbers >= 0, not all zero, of any total, read as float64; an item of weight 0 is never drawn.
            Darts: probabilities as in `userdp.divergence` (floats that sum to 1 within 1e-9, or exact numbers), or
            ints that sum to `total`.
        log_weights : array-like of shape (k,)
            Race only, instead of weights: natural logarithms, up to a constant; -inf for weight 0.
        items : sequence of k distinct bytes, optional
            Race only: what the items are, written canonically, for lists that differ between users. Without it items
            are known by their place in a list that all users share.
        query : int
            Which draw, in [0, 2**64): different queries are independent.

        Returns
        -------
        int
            The index of the item in the list.

        Raises
        ------
        TypeError, ValueError
            Naming the argument: negative, NaN or infinite weights, all of them zero, probabilities that are not
            normalized, integers of another total, items that are not distinct.
        """
        if (weights is None) == (log_weights is None):
            raise TypeError("exactly one of weights and log_weights must be given")
        if not is_integer(query) or not 0 <= query < 2**64:
            raise ValueError(f"query must be an int in [0, 2**64); got {short_repr(query)}")
        if self.method == "darts":
            if log_weights is not None or items is not None:
                raise ValueError("darts take weights over one public list; log_weights and items need method='race'")
            return self._darts(weights, int(query))
        name, values = ("weights", weights) if log_weights is None else ("log_weights", log_weights)
        numbers = _floats(values, name)
        keys = None if items is None else _items(items, len(numbers))
        core = self.public_seed._core
        return core.race(self.label, int(query), numbers, log_weights is not None, keys)

    def _darts(self, weights: Any, query: int) -> int:
        integers = _raw_integers(weights)
        if integers is None:
            integers = _core.quantized_masses(masses_of(weights, "weights"), self.total)
        elif sum(integers) != self.total:
            raise ValueError(
                f"weights: ints must sum to the total of {self.total} that all users share; they sum to "
                f"{short_repr(sum(integers))}"
            )
        if self.default >= len(integers):
            raise ValueError(f"default is the index {self.default}, where there are {len(integers)} weights")
        most = None if self.max_darts is None else min(self.max_darts, MOST_DARTS)
        item = self.public_seed._core.darts(self.label, query, integers, self.total, most)
        return self.default if item is None else item


def _floats(values: Any, name: str) -> npt.NDArray[np.float64]:
    """A contiguous vector; what is in it is checked by the core."""
    if isinstance(values, Pmf):
        return values.probabilities
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; pass plain numbers with every item present")
    try:
        array = values if isinstance(values, np.ndarray) else np.asarray(_entries(values, name))
    except ValueError:
        raise ValueError(f"{name} must have 1 dimension; got sequences of different lengths") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension; got {array.ndim}")
    if array.size == 0:
        raise ValueError(f"{name} is empty; there must be at least one item")
    if array.dtype.kind == "O":
        return np.array([_float(entry, index, name) for index, entry in enumerate(array.tolist())])
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers; got dtype {array.dtype}")
    return np.require(array, dtype=np.float64, requirements=["C", "A"])


def _entries(values: Any, name: str) -> Any:
    if isinstance(values, (dict, set, frozenset)) or not is_listed(values):
        raise TypeError(f"{name} must be an array-like of numbers; got {short_repr(values)}")
    return values if hasattr(values, "__array__") else list(values)


def _float(entry: Any, index: int, name: str) -> float:
    try:
        exact = exact_number(entry)
        return float(entry) if exact is None else float(exact)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: entry {short_repr(entry)} at index {index}: {error}") from None


def _items(items: Any, count: int) -> list[bytes]:
    if not is_listed(items):
        raise TypeError(f"items must be a sequence of bytes; got {short_repr(items)}")
    keys = list(items)
    if not all(isinstance(key, bytes) for key in keys):
        raise TypeError("items must all be bytes: write each item canonically, so that equal items have equal bytes")
    if len(keys) != count:
        raise ValueError(f"items has {len(keys)} entries where there are {count} weights")
    if len(set(keys)) != count:
        raise ValueError("items must be distinct")
    return keys


def _raw_integers(weights: Any) -> list[int] | None:
    """Integer weights of darts; None for anything else, and for the ints 0 and 1 as probabilities."""
    if isinstance(weights, Pmf):
        return None
    if isinstance(weights, np.ndarray):
        if weights.ndim != 1 or weights.dtype.kind not in "iu":
            return None
        entries = weights.tolist()
    elif isinstance(weights, (list, tuple)) and weights and all(map(is_integer, weights)):
        entries = [int(weight) for weight in weights]
    else:
        return None
    if min(entries, default=0) < 0:
        raise ValueError(f"weights: entry {min(entries)} is negative")
    return None if sum(entries) == 1 else entries
