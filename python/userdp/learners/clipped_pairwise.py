"""Selection by clipped pairwise scores of symbols: ClippedPairwiseEM and Scheffe tests.

ClippedPairwiseEM of GKKMMZ23, Appendix E.1. Candidate a is compared with b by psi_ab(x), a number in [-1, 1] that is
large when an example x speaks against a. A user's votes are added up and clipped to plus or minus tau; the sums over
users, maximized over b != a, are the scores of an exponential mechanism (lower is better).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.estimators.privacy import ExactEpsilon
from userdp.exact.numbers import parse_positive
from userdp.exceptions import BudgetError
from userdp.mechanisms import ExponentialMechanism
from userdp.mechanisms.composed import Sampler
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp import _core

Integers = npt.NDArray[np.int64]

LARGEST_SUM = 2**62
"""Of clipped votes over all users; below what the exponential mechanism takes."""
MAX_SYMBOLS = 1024
MAX_KINDS = 2**25


def clipping_bound(alpha: float, m: int, spread: int = 2) -> Fraction:
    """The default tau: a bound beyond which an honest user's m votes are hardly ever, at accuracy alpha.

    Votes of a pair lie in an interval of length spread, 1 or 2. By Hoeffding's inequality a sum of m of them with a
    mean of at most alpha m / 2 exceeds alpha m / 2 + s with probability at most e**(-2 (s / spread)**2 / m). For
    s = spread sqrt(m L / 2) and L = max(1/2, ln(20 / (alpha sqrt(m)))) the integral of that beyond s is at most
    sqrt(m) e**(-L) <= 0.05 alpha m: the bias of clipping to min(m, alpha m / 2 + s). Public, as it depends on
    parameters only. (GKKMMZ23 takes spread = 2 for all psi.)
    """
    logarithm = max(0.5, math.log(20 / (alpha * math.sqrt(m))))
    return Fraction(min(float(m), alpha * m / 2 + spread * math.sqrt(m * logarithm / 2)))


def users_needed(n_candidates: int, *, epsilon: ExactEpsilon, alpha: float, beta: float, m: int, tau: Fraction) -> int:
    """Users that are enough for a score of at most alpha / 2, when some candidate has alpha / 10, but with chance beta.

    Scores are means here, over users and examples. With K candidates, max(40 tau ln(3 K / beta) / (epsilon alpha m),
    800 ln(3 K / beta) / (alpha**2 m)) users suffice: events of probability beta / 3 each are that the exponential
    mechanism misses the best score by more than 0.1 alpha n m, that a pair of the good candidate exceeds 0.2 alpha n m,
    and that a witness against a bad candidate falls below 0.4 alpha n m.
    """
    logarithm = math.log(3 * n_candidates / beta)
    private = 40 * float(tau) * logarithm / (float(epsilon) * alpha * m)
    return math.ceil(max(private, 800 * logarithm / (alpha * alpha * m)))


class ClippedSelection:
    """One draw of the clipped pairwise exponential mechanism, on integer votes.

    Parameters
    ----------
    n_candidates : int
        K >= 2, public.
    epsilon : Fraction or LogRatio
        What the draw costs.
    m : int
        The most examples of a user.
    tau : float, int, Fraction or decimal string
        Bound of a user's votes for each pair, > 0; rounded down to the units of votes.
    unit : int
        Votes are integers that count 1 / unit.
    spread : int
        For every pair, the largest vote less the smallest one, 0 among them; at most 2 units.

    Notes
    -----
    *Sensitivity.* min(2 tau, spread m) in units of votes. A user's sum for a pair lies in an interval of length
    spread m, whatever the number of examples up to m, and within plus or minus tau when it is clipped, which brings no
    two sums further apart. So replacing a user moves the total of each pair by at most that. The maximum over b != a
    runs over a set of pairs that is public, and |max f - max g| <= max |f - g|.
    """

    def __init__(self, n_candidates: int, *, epsilon: ExactEpsilon, m: int, tau: Any, unit: int, spread: int) -> None:
        bound = parse_positive(tau, "tau")
        self.n_candidates = n_candidates
        self.m = m
        self.tau = min(int(bound * unit), m * unit)
        if self.tau < 1:
            raise ValueError(f"tau must be at least {Fraction(1, unit)}, the grid of votes; got {tau!r}")
        self.sensitivity = max(1, min(2 * self.tau, spread * m))
        self.mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=self.sensitivity)

    def choose(self, draw: Sampler, scores: Integers) -> int:
        """The candidate that is drawn."""
        chosen: int = draw(self.mechanism, scores)
        return chosen

    def check_size(self, n_users: int) -> None:
        """Refuse what does not fit 64 bits; depends on public numbers only."""
        if n_users * self.tau > LARGEST_SUM:
            raise BudgetError(
                f"{n_users} users with tau = {self.tau} units do not fit 64-bit scores; use a coarser granularity or a "
                "smaller tau"
            )


class PairTable(ClippedSelection):
    """Votes on Z symbols from a table: psi[a, b, z] in units.

    Parameters
    ----------
    psi : ndarray of int64 with shape (K, K, Z)
        Votes against a, compared with b, of an example z. The diagonal is not read.
    epsilon, m, tau, unit
        As for `ClippedSelection`.
    """

    def __init__(self, psi: Integers, *, epsilon: ExactEpsilon, m: int, tau: Any, unit: int) -> None:
        k = len(psi)
        others = psi[~np.eye(k, dtype=np.bool_)]
        spread = np.maximum(others.max(axis=-1), 0) - np.minimum(others.min(axis=-1), 0)
        super().__init__(k, epsilon=epsilon, m=m, tau=tau, unit=unit, spread=int(spread.max()))
        self.psi = np.ascontiguousarray(psi, dtype=np.int64)

    def scores(self, symbols: Symbols) -> Integers:
        """Scores from users' symbols."""
        self.check_size(symbols.n_users)
        rows = (symbols.values.astype(np.uint32), symbols.users, symbols.n_users, self.m)
        return _core.psi_scores(self.psi, rows, self.tau)


class Scheffe(ClippedSelection):
    """Choose among distributions on Z symbols by their Scheffe sets.

    The votes are psi_ab(z) = P_a(W) - [z in W] with W = {z : P_a(z) > P_b(z)}, so a score far above 0 says that the
    examples have less of W than a promises ([GKKMMZ23, Theorem 41]).

    Parameters
    ----------
    masses : ndarray of int64 with shape (K, Z)
        The candidates in units of 1 / unit; every row sums to unit. Sets are decided on these integers.
    epsilon, m, tau, unit
        As for `ClippedSelection`.
    """

    def __init__(self, masses: Integers, *, epsilon: ExactEpsilon, m: int, tau: Any, unit: int) -> None:
        if masses.shape[1] > MAX_SYMBOLS:
            raise BudgetError(f"{masses.shape[1]} symbols are more than the limit {MAX_SYMBOLS}; merge symbols")
        super().__init__(len(masses), epsilon=epsilon, m=m, tau=tau, unit=unit, spread=unit)
        self.masses = np.ascontiguousarray(masses, dtype=np.int64)

    def scores(self, symbols: Symbols) -> Integers:
        """Scores from users' symbols."""
        self.check_size(symbols.n_users)
        # Users are counted by their number of examples and how many of these are in a set.
        kinds = min(symbols.n_users, self.m + 1) * (self.m + 1)
        if kinds > MAX_KINDS:
            raise BudgetError(
                f"{symbols.n_users} users with up to m = {self.m} examples may be of {kinds} kinds (limit "
                f"{MAX_KINDS}); use a smaller m"
            )
        return _core.scheffe_scores(self.masses, symbols.histograms, self.tau)


LARGEST_HISTOGRAMS = 2**28
"""Users times symbols."""


def read_symbols(rows: npt.NDArray[Any], n_symbols: int, n_columns: int, on_invalid: str) -> npt.NDArray[np.int64]:
    """Columns of symbols; what is not one of 0, ..., n_symbols - 1 becomes 0, the public default.

    Raises
    ------
    ValueError
        For another number of columns; for bad symbols if on_invalid is "raise", which is not private.
    """
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(f"X must have {n_columns} columns of symbols below {n_symbols}; got the shape {rows.shape}")
    with np.errstate(invalid="ignore"):
        # Comparisons with NaN are false.
        valid = (rows >= 0) & (rows < n_symbols) & (rows == np.floor(rows))
    if on_invalid == "raise" and not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(f"X: {rows[row, column]} in row {row} is not one of the symbols 0, ..., {n_symbols - 1}")
    symbols: npt.NDArray[np.int64] = np.where(valid, rows, 0).astype(np.int64)
    return symbols


@dataclass(frozen=True)
class Symbols:
    """Users' symbols.

    Attributes
    ----------
    values : ndarray of int64 with shape (rows,)
        From 0 to n_symbols - 1.
    n_symbols : int
    users : ndarray of uint32 with shape (rows,)
        Whose row it is, from 0 to n_users - 1.
    n_users, m : int
        Public: the number of users, and the most rows of one.
    """

    values: npt.NDArray[np.int64]
    n_symbols: int
    users: npt.NDArray[np.uint32]
    n_users: int
    m: int

    @classmethod
    def of(cls, data: UserTable, values: npt.NDArray[np.int64], n_symbols: int) -> Symbols:
        """A symbol for each row of the data."""
        return cls(values, n_symbols, data.users, data.n_users, data.m)

    @cached_property
    def histograms(self) -> npt.NDArray[np.uint32]:
        """How often each user has each symbol, with shape (n_users, n_symbols).

        Raises
        ------
        BudgetError
            For a table that would fill gigabytes.
        """
        size = self.n_users * self.n_symbols
        if size > LARGEST_HISTOGRAMS:
            raise BudgetError(
                f"a table of {self.n_users} users and {self.n_symbols} symbols is too large (limit "
                f"{LARGEST_HISTOGRAMS} entries); merge symbols"
            )
        places = self.users.astype(np.int64) * self.n_symbols + self.values
        return np.bincount(places, minlength=size).astype(np.uint32).reshape(self.n_users, self.n_symbols)
