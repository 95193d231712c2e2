"""How votes for hypotheses that are bytes become one: there are too many hypotheses to count a vote for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp._pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.learners._privacy import ExactEpsilon
from userdp.learners._selection_models import IN_PROCESS, LocalRound, SelectionModel
from userdp.protocols.local import BitwiseMajority
from userdp.selection import ApproximateSelection, PureSelection

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["hypothesis_votes", "listed_votes"]

PURE_BITS = 64
"""The most bits of a hypothesis among all of which `PureSelection` chooses."""
PMF_BITS = 12
PMF_USERS = 2**10
"""Limits of the exact law of a majority of every bit."""

Bits = npt.NDArray[np.uint8]


def hypothesis_votes(
    model: str, *, epsilon: ExactEpsilon, delta: Fraction, n_bits: int, n_users: int, default: bytes
) -> SelectionModel:
    """The selection of a model, for votes that are numbers of so many bits, as big-endian bytes.

    Raises
    ------
    ValueError
        For the shuffle model, and where n_users are too few to report every bit.
    BudgetError
        For more than 64 bits in the model "central-pure".
    """
    width = len(default)

    def bytes_of(number: int) -> bytes:
        return int(number).to_bytes(width, "big")

    if model == "central-approx":
        approximate = ApproximateSelection(epsilon=epsilon, delta=delta, default=default)
        return SelectionModel(approximate, approximate.tally)
    if model == "central-pure":
        if n_bits > PURE_BITS:
            raise BudgetError(
                f"hypothesis_bits={n_bits} is above {PURE_BITS}, the most for model='central-pure': it gives every "
                "possible hypothesis its chance. Use model='central-approx', which takes any number of bits, or an "
                "algorithm with shorter hypotheses"
            )
        pure = PureSelection(epsilon=epsilon, n_items=2**n_bits, default=_number(default))
        return SelectionModel(pure, lambda votes: pure.tally(map(_number, votes)), bytes_of)
    if model == "local":
        if n_users < n_bits:
            raise ValueError(
                f"model='local' needs a user for every bit of a hypothesis at least, {n_bits}; got {n_users} users"
            )
        protocol = BitwiseMajority(epsilon=epsilon, n_bits=n_bits, n_users=n_users, round_id=IN_PROCESS)
        return SelectionModel(ReportedBits(protocol), lambda votes: _bits(votes, n_bits), bytes_of)
    raise ValueError(
        "model='shuffle' is not for statistical queries: every user would send messages for each possible hypothesis, "
        f"2**{n_bits} of them. Use model='local', in which every user sends one message, or "
        "CorrelatedSamplingClassifier(model='shuffle') with a small class"
    )


class ReportedBits(LocalRound):
    """What the server of `BitwiseMajority` selects, as a number, when every user has reported once."""

    protocol: BitwiseMajority

    def __init__(self, protocol: BitwiseMajority) -> None:
        super().__init__(protocol, range(2**protocol.n_bits))

    def _draw(self, source: _core.Source, items: Any) -> int:
        return int("".join(map(str, super()._draw(source, items).tolist())), 2)

    def pmf(self, items: Any) -> Pmf:
        """The law of a draw, in which bits are independent, since every user reports one.

        Raises
        ------
        BudgetError
            For more than 12 bits or 1,024 users.
        """
        n_bits, n_users = self.protocol.n_bits, self.protocol.n_users
        if n_bits > PMF_BITS or n_users > PMF_USERS:
            raise BudgetError(
                f"the exact law of a majority of {n_bits} bits among {n_users} users is not listed (limits {PMF_BITS} "
                f"and {PMF_USERS}); audit a smaller algorithm"
            )
        weights = [1]
        for place in range(n_bits):
            one, zero = self._bit(items[place::n_bits, place])
            weights = [weight * side for weight in weights for side in (zero, one)]
        return Pmf(tuple(self.outputs), tuple(weights))

    def _bit(self, votes: Bits) -> tuple[int, int]:
        """In proportion to the probabilities that a bit is selected as 1 and as 0: a tie is a 0."""
        keep = self.protocol.keep_probability
        law = np.array([1], dtype=object)
        for vote in votes.tolist():
            p = keep.numerator if vote else keep.denominator - keep.numerator
            law = np.convolve(law, np.array([keep.denominator - p, p], dtype=object))
        most_zeros = len(votes) // 2
        zero, one = (sum(map(int, part)) for part in (law[: most_zeros + 1], law[most_zeros + 1 :]))
        common = math.gcd(zero, one)
        return one // common, zero // common


def _number(vote: bytes) -> int:
    return int.from_bytes(vote, "big")


def _bits(votes: Sequence[bytes], n_bits: int) -> Bits:
    """A row of bits for every vote, the highest bit first."""
    table = np.frombuffer(b"".join(votes), dtype=np.uint8).reshape(len(votes), -1)
    return np.unpackbits(table, axis=1)[:, -n_bits:]


def listed_votes(n_bits: int, width: int) -> list[Any]:
    """All votes.

    Raises
    ------
    BudgetError
        For more than 12 bits.
    """
    if n_bits > PMF_BITS:
        raise BudgetError(
            f"the law over 2**{n_bits} hypotheses is not listed (limit 2**{PMF_BITS}); audit a smaller algorithm"
        )
    return [number.to_bytes(width, "big") for number in range(2**n_bits)]
