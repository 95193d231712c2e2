"""Representations: small random classes that contain a good hypothesis for most distributions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import Bits, ConceptClass, DomainClass, Points, check_size
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, check_kind, open_unit_fraction, open_unit_interval, short_repr

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
    [GKKMMZ23, Definition 20] and [LWY24, Definition 2.3].

    Examples
    --------
    >>> hashed = HashedPointFunctions(10**15, alpha=0.1, beta=0.1, seed=bytes(32))
    >>> hashed.size, hashed.describe(21)
    (80, 'hash 1 of x is 1')
    """

    def __init__(self, domain_size: int, *, alpha: float, beta: float, seed: bytes, feature: int = 0) -> None:
        self.domain_size = check_count(domain_size, "domain_size", least=2)
        if self.domain_size > PRIME - 1:
            raise ValueError(f"domain_size must be at most 2**61 - 2; got {self.domain_size}")
        self.alpha, self.beta = open_unit_interval(alpha, "alpha"), open_unit_interval(beta, "beta")
        self.seed = _seed(seed)
        self.feature = check_count(feature, "feature", least=0)
        self._values = math.ceil(2 / self.alpha)
        hashes = math.ceil(math.log2(1 / self.beta))
        check_size(hashes * self._values, "HashedPointFunctions", "raise alpha or beta")
        self._hashes = tuple(_coefficients(self.seed, number) for number in range(hashes))

    @property
    def size(self) -> int:
        """R k."""
        return len(self._hashes) * self._values

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
        raise TypeError(f"seed must be 32 bytes; got {short_repr(seed)}")
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
    return product % prime


@dataclass(frozen=True)
class BoostedSize:
    """What boosting a representation takes; see `boosted_size`.

    Attributes
    ----------
    rounds : int
        T, odd: a hypothesis of the boosted class is a majority vote of T hypotheses of the base.
    copies : int
        R: each of them is from the union of R independent draws of the base.
    log_size : float
        T (base_log_size + ln R), the natural logarithm of the number of hypotheses.
    """

    rounds: int
    copies: int
    log_size: float


def boosted_size(alpha: float, beta: float, base_log_size: float) -> BoostedSize:
    """How large an (alpha, beta)-representation is that is boosted from a (1/4, 1/4)-representation.

    Parameters
    ----------
    alpha, beta : float, Fraction or decimal string
        Accuracy and failure probability that are wanted, in (0, 1).
    base_log_size : float
        The natural logarithm of the number of hypotheses of one draw of the base, >= 0.

    Notes
    -----
    T is the least odd number with (sqrt(3) / 2)**T <= alpha and R the least with 4**-R <= beta / T; both are found in
    exact arithmetic.

    *Proof.* Boosting with the fixed weight ln(3) / 2 multiplies the potential by at most sqrt(3) / 2 in every round
    whose weak hypothesis errs at most 1/4. The union of R draws for round i is independent of the distribution that the
    first i - 1 hypotheses make, so it lacks such a hypothesis with probability at most 4**-R <= beta / T; a union bound
    over rounds remains.

    The classes are astronomical at the accuracies that theorems ask for, and then these numbers are all that there is;
    `MajorityVotes` enumerates small ones.

    References
    ----------
    [GKKMMZ23, Lemma 21].

    Examples
    --------
    >>> size = boosted_size(0.01, 0.25, base_log_size=2.5)
    >>> size.rounds, size.copies, round(size.log_size)  # e**128 hypotheses
    (33, 4, 128)
    """
    accuracy, failure = open_unit_fraction(alpha, "alpha"), open_unit_fraction(beta, "beta")
    try:
        base = float(base_log_size)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"base_log_size must be a number; got {short_repr(base_log_size)}") from None
    if not 0 <= base < math.inf:
        raise ValueError(f"base_log_size must be finite and >= 0; got {short_repr(base_log_size)}")
    rounds = 1
    while 3**rounds > accuracy**2 * 4**rounds:
        rounds += 2
    copies = 1
    while 4**copies * failure < rounds:
        copies += 1
    return BoostedSize(rounds, copies, rounds * (base + math.log(copies)))


@saved_as_parameter
class MajorityVotes(ConceptClass):
    """The majority votes of T hypotheses, one from each of T classes: a boosted representation that is enumerated.

    Parameters
    ----------
    classes : sequence of ConceptClass
        An odd number T of classes over the same points, which all read from the same columns. For boosting the i-th is
        the union of the draws for round i.

    Raises
    ------
    BudgetError
        For more than 2**24 votes.

    Notes
    -----
    Several votes may be the same function; each counts as a hypothesis, which is as private and weighs that function
    more. `vc_dimension` is the bound log2(size).

    References
    ----------
    [LWY24, Lemma 2.4].

    Examples
    --------
    >>> from userdp.concepts import Thresholds
    >>> votes = MajorityVotes([Thresholds(2)] * 3)
    >>> votes.size, votes.describe(5)
    (27, 'most of: x > 0; x > 1; x > 2')
    """

    def __init__(self, classes: Iterable[ConceptClass]) -> None:
        self.classes = tuple(classes)
        for member in self.classes:
            check_kind(member, ConceptClass, "classes", "concept classes")
        if len(self.classes) % 2 == 0:
            raise ValueError(f"classes must be an odd number of concept classes; got {len(self.classes)}")
        if len({member.reading for member in self.classes}) > 1:
            raise ValueError(
                "classes must be over the same points, read from the same columns (and for stumps with the same cuts); "
                "they have different domains"
            )
        self.domain_size = self.classes[0].domain_size
        check_size(self.size, "MajorityVotes", "boosted_size gives sizes only; take fewer rounds or smaller classes")

    @property
    def size(self) -> int:
        """The product of the sizes."""
        return math.prod(member.size for member in self.classes)

    def points(self, X: npt.NDArray[Any]) -> Points:
        """The points of rows, as the first class reads them."""
        return self.classes[0].points(X)

    @property
    def n_columns(self) -> int:
        """So many of the first columns of X are read."""
        return self.classes[0].n_columns

    @property
    def largest_point(self) -> int:
        """That of all members."""
        return self.classes[0].largest_point

    @property
    def reading(self) -> Hashable:
        """That of all members."""
        return self.classes[0].reading

    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What votes say about points; see `ConceptClass.predict`."""
        hypotheses = self._range(start, stop)
        votes = np.zeros((len(points), len(hypotheses)), dtype=np.int32)
        for member, digits in zip(self.classes, self._digits(hypotheses), strict=True):
            votes += member.predict(points)[:, digits]
        return 2 * votes > len(self.classes)

    def describe(self, index: int) -> str:
        """What is voted on."""
        known = np.array([self._known(index)])
        members = (
            member.describe(int(digit[0])) for member, digit in zip(self.classes, self._digits(known), strict=True)
        )
        return f"most of: {'; '.join(members)}"

    def _digits(self, hypotheses: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """The hypothesis of each class; the last class varies fastest."""
        digits = []
        rest = hypotheses
        for member in reversed(self.classes):
            rest, digit = np.divmod(rest, member.size)
            digits.append(digit)
        return digits[::-1]
