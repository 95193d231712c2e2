"""The exponential mechanism: one of k candidates by its score, with integer weights, drawn in constant time."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Epsilon, Neighbors, check_count, parse_level, parse_positive, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import PMF_CANDIDATES, ChoiceByScore
from userdp.report import Certificate
from userdp.report.certificate import certified, table_factor
from userdp.runtime import number_of

Scores: TypeAlias = npt.ArrayLike

INT64 = np.dtype(np.int64)
TOTAL = 1 << 128
CERTIFIED_GAPS = 1 << 12
WITNESS_UNIT = 1 << 256
EXACT_INTEGERS = 2**53
"""NumPy turns sequences that mix ints and floats into floats, which changes ints beyond this."""

ListedRate = TypeVar("ListedRate", "_core.ExponentialRate", "_core.PermuteAndFlipRate")


class ListedChoice(ChoiceByScore[ListedRate, Scores, np.int64], Generic[ListedRate]):
    """Choose one of k candidates by a vector of their scores, on a grid or integers, lower or higher ones better."""

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        sensitivity: float | Fraction | str,
        granularity: float | Fraction | None = None,
        maximize: bool = False,
        monotone: bool = False,
        neighbors: Neighbors | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            granularity=granularity,
            maximize=maximize,
            monotone=monotone,
            neighbors=neighbors,
        )

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss for up to 2**24 candidates, all roundings included; at most epsilon."""
        return self._rate.certified_epsilon

    def _draw(self, source: _core.Source, scores: Scores) -> int:
        integers, maximize = self._on_grid(scores)
        return self._rate.sample(integers, source, maximize)

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...], scores: Scores) -> npt.NDArray[np.int64]:
        integers, maximize = self._on_grid(scores)
        return self._rate.sample_many(integers, source, number_of(shape), maximize).reshape(shape)

    def _on_grid(self, scores: Any) -> tuple[npt.NDArray[np.int64], bool]:
        """The scores as integers, and whether these are to be maximized."""
        if (
            type(scores) is not np.ndarray
            or scores.dtype != INT64
            or scores.ndim != 1
            or not scores.flags.forc
            or not scores.flags.aligned
        ):
            scores = _vector(scores)
        maximize, integers = self._arguments["maximize"], "granularity" not in self._arguments
        if scores.dtype != INT64:
            # Integral floats may be complemented like ints; others are negated before they are rounded down.
            return self._grid.of_floats(scores, maximize and not integers), maximize and integers
        if integers:
            return scores, maximize
        return self._grid.of_integers(scores, maximize), False


class ExponentialMechanism(ListedChoice["_core.ExponentialRate"]):
    """Choose one of k candidates, the better its score the likelier: the exponential mechanism.

    The ideal distribution has P[i] proportional to e**(-epsilon scores[i] / (2 sensitivity)). What is drawn here, and
    what `pmf` returns, are exact integers over 2**128 next to it, which are epsilon-DP themselves.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88. A float is the decimal it prints as.
    sensitivity : int, float, Fraction or decimal string
        The most that any one candidate's score changes between neighbors, in units of the scores. Positive; without
        a granularity an integer below 2**62.
    granularity : float, int or Fraction, optional
        None takes integer scores only. A public power of two g takes any scores and rounds them down to multiples of
        g; the sensitivity is then rounded up to one. At most 2**62 of its steps may make up the sensitivity, and
        2**63 a score.
    maximize : bool
        False: lower scores are better. True: higher ones.
    monotone : bool
        True promises that between neighbors all scores change in the same direction, and gives the ideal distribution
        P[i] proportional to e**(-epsilon scores[i] / sensitivity). Counts do so when one user is added or removed.
        They do not when a user is *replaced*: the loss would then be up to 2 epsilon.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that the cost is about. None does not say; with
        `monotone` it is "add-remove".

    Notes
    -----
    *Neighbors and sensitivity.* If no candidate's score changes by more than the sensitivity between neighbors,
    the draw is epsilon-DP (delta = 0) for a user. This concerns all that the user contributes: clamp or average within
    a user first. The proof covers the integers that are drawn from, with every rounding:
    docs/proofs/exponential_mechanism.md. Replacing g users costs g epsilon.

    *Budget.* All of epsilon is spent on one draw; n draws cost n epsilon. `pmf` is for audits: showing it for private
    data is not private.

    *Utility.* With c = 2 (1 if monotone), and scores and sensitivity on the grid, P[score > lowest + alpha] is at most
    1.001 k e**(-(epsilon - 2**-36) alpha / (c sensitivity)) for alpha below about 44 c sensitivity / epsilon, which is
    worth 64 bits of weight; a candidate that is worse than that counts as just that much worse. Where one step of score
    would be worth 64 bits or more (monotone, a sensitivity of one step and epsilon above 44.3), it counts as 32 bits,
    more private than asked.

    *Time.* For integer scores, the instructions of a draw and the addresses that they touch depend on the number of
    candidates and draws and on the parameters, not on scores, random bits or the result. Computing the scores,
    converting arrays of other types or with a granularity, and Python's int for the result are not constant time.

    *Errors.* An error about a score (NaN, say) tells something about the data. What computes scores from private
    data must map bad ones to a public value first, so that nothing is raised.

    References
    ----------
    McSherry, Talwar (FOCS 2007). [LWY24, Lemma 2.6].

    Examples
    --------
    >>> votes = [12, 30, 29]
    >>> choice = ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True)
    >>> choice.sample(votes) in (0, 1, 2)
    True
    >>> choice.pmf(votes).probabilities.round(4).tolist()
    [0.0001, 0.6224, 0.3775]
    >>> choice.pmf(votes).total == 2**128
    True
    >>> choice.certified_epsilon <= 1
    True
    >>> loss = ExponentialMechanism(epsilon="0.5", sensitivity=0.1, granularity=2**-20)
    >>> loss.sample([0.25, 0.375, 0.1], size=5).shape
    (5,)
    """

    def _rate_of(self, level: _core.Level, sensitivity: int, monotone: bool) -> _core.ExponentialRate:

        return _core.ExponentialRate(level, sensitivity, monotone)

    def certificate(self, n_candidates: int = 2**24) -> Certificate:
        """The weights of all gaps and their claim as a certificate, which `verify` and Coq check.

        Its theorem is about the integers that are drawn: docs/certificates.md.

        Parameters
        ----------
        n_candidates : int
            The most candidates that the claim is about, from 1 to 2**24.

        Raises
        ------
        ValueError
            With ``monotone=True``, which is no promise about the replacement of a user.
        BudgetError
            When more than 4096 gaps have different weights: for a large sensitivity in steps, or a small epsilon.
        """
        if self._arguments["monotone"]:
            raise ValueError("monotone: a certificate is about replacing a user, where scores move in both directions")
        if check_count(n_candidates, "n_candidates") > 2**24:
            raise ValueError(f"n_candidates must be at most 2**24; got {short_repr(n_candidates)}")
        multiplier, shift = self._rate.multiplier, self._rate.shift
        largest_gap = min((2 ** (63 + shift) - 1) // multiplier, 2**64 - 1)
        if largest_gap >= CERTIFIED_GAPS:
            raise BudgetError(f"{largest_gap + 1} gaps have weights of their own (limit {CERTIFIED_GAPS}); use pmf()")
        steps = self._grid.sensitivity(parse_positive(self._arguments["sensitivity"], "sensitivity"))
        weights = self._rate.weights(np.arange(largest_gap + 1), False)
        return certified(
            subject="selection",
            epsilon=parse_level(self._arguments["epsilon"]),
            delta=Fraction(0),
            factor=table_factor(parse_level(self._arguments["epsilon"])),
            total=TOTAL,
            table=tuple(weights),
            second=None,
            parts=_witness(weights, Fraction(multiplier, 2 ** (57 + shift)), steps, n_candidates),
        )

    def pmf(self, scores: Scores) -> Pmf:
        """The distribution that is drawn from: outputs 0, ..., k-1 and integer weights of total 2**128.

        Not constant time, and not private: for audits.

        Parameters
        ----------
        scores : array-like with shape (k,)
            As for `sample`.

        Raises
        ------
        BudgetError
            For more than 2**22 candidates.
        """
        integers, maximize = self._on_grid(scores)
        if len(integers) > PMF_CANDIDATES:
            raise BudgetError(
                f"the pmf of {len(integers)} candidates would fill gigabytes (limit {PMF_CANDIDATES}); sample() takes "
                "up to 2**24"
            )
        numerators = self._rate.numerators(integers, maximize)
        return Pmf(tuple(range(len(numerators))), tuple(numerators), positional=True)


def _witness(weights: list[int], rate: Fraction, sensitivity: int, n_candidates: int) -> dict[str, Fraction]:
    """Numbers that show how the weights fall: between `low` and `high` times powers of `beta`, near 2^-rate.

    Nothing is proved of them here, as the checker compares them with every weight.
    """
    context = Context(prec=60)
    exponent = context.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    beta = Fraction(context.power(Decimal(2), context.minus(exponent))) * TOTAL // 1  # a plain minus rounds elsewhere
    below = above = WITNESS_UNIT
    lows, highs = [], []
    for weight in weights:
        lows.append(weight * WITNESS_UNIT // above)
        highs.append(-(-weight * WITNESS_UNIT // below))
        below, above = below * beta // TOTAL, above * beta // TOTAL + 1
    high = max(highs)
    theta = -(-n_candidates * high // min(weights))  # W / (T w) at most, in units of 1 / T
    found = {
        "sensitivity": sensitivity,
        "candidates": n_candidates,
        "low": min(lows),
        "high": high,
        "precision": WITNESS_UNIT,
    }
    return {name: Fraction(value) for name, value in found.items()} | {
        "beta": Fraction(beta, TOTAL),
        "theta": Fraction(theta, TOTAL),
    }


def _vector(scores: Any) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Scores as a contiguous, aligned vector of int64 or float64, exactly."""
    if isinstance(scores, np.ma.MaskedArray):
        raise TypeError("scores is a masked array; fill in the masked scores first")
    try:
        array = np.asarray(scores)
    except (ValueError, TypeError):
        raise TypeError(f"scores must be a vector of numbers; got a {type(scores).__name__}") from None
    if array.ndim != 1:
        raise ValueError(f"scores must be a vector, one score for each candidate; got the shape {array.shape}")
    kind = array.dtype.kind
    if kind == "u" and array.dtype.itemsize == 8:
        beyond = np.flatnonzero(array > np.uint64(2**63 - 1))
        if beyond.size:
            index = beyond[0]
            raise ValueError(f"scores: the score at index {index} must be at most 2**63 - 1")
    if kind in "iu":
        return np.require(array, np.int64, ["C", "A"])
    if kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(
            "scores must be integers of 64 bits or floats, in one array; got "
            f"a {type(scores).__name__} of dtype {array.dtype}" + (" (ints beyond 64 bits?)" if kind == "O" else "")
        )
    if getattr(scores, "dtype", None) is None and isinstance(scores, Iterable):
        for index, score in enumerate(scores):
            if np.asarray(score).dtype.kind in "iu" and abs(int(score)) > EXACT_INTEGERS:
                raise ValueError(f"scores: the score at index {index} would be rounded beside floats")
    return np.require(array, np.float64, ["C", "A"])
