"""Selection by clipped pairwise scores: ClippedPairwiseEM, its Scheffe scores, and the selectors that draw by them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ExactEpsilon, ReleasePlan
from userdp.estimators.selection import ScoreSelector, check_likely_enough, choice_by_scores, drawn_by
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import check_count, exact_number, parse_positive, short_repr
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import Grid
from userdp.users.table import UserTable

if TYPE_CHECKING:
    from userdp import _core

Integers = npt.NDArray[np.int64]

LARGEST_SUM = 2**62
"""Of clipped votes over all users; below what the exponential mechanism takes."""
MAX_SYMBOLS = 1024
MAX_KINDS = 2**25


def clipping_bound(alpha: float, m: int, spread: int = 2) -> Fraction:
    """Return the default tau: a bound beyond which an honest user's m votes are hardly ever, at accuracy alpha."""
    # Votes of a pair lie in an interval of length spread, 1 or 2. By Hoeffding's inequality a sum of m of them with a
    # mean of at most alpha m / 2 exceeds alpha m / 2 + s with probability at most e**(-2 (s / spread)**2 / m). For s =
    # spread sqrt(m L / 2) and L = max(1/2, ln(20 / (alpha sqrt(m)))) the integral of that beyond s is at most sqrt(m)
    # e**(-L) <= 0.05 alpha m: the bias of clipping to min(m, alpha m / 2 + s). Public, as it depends on parameters
    # only. (GKKMMZ23 takes spread = 2 for all psi.)
    logarithm = max(0.5, math.log(20 / (alpha * math.sqrt(m))))
    return Fraction(min(float(m), alpha * m / 2 + spread * math.sqrt(m * logarithm / 2)))


def users_needed(
    n_candidates: int, *, epsilon: ExactEpsilon, alpha: float, beta: float, m: int, tau: Fraction, flips: bool = False
) -> int:
    """Return how many users are enough for a score of at most alpha / 2, except with probability beta."""
    # Some candidate has a score of at most alpha / 10.
    # Scores are means here, over users and examples. With K candidates, max(40 tau ln(3 K / beta) / (epsilon alpha m),
    # 800 ln(3 K / beta) / (alpha**2 m)) users suffice: events of probability beta / 3 each are that the exponential
    # mechanism misses the best score by more than 0.1 alpha n m, that a pair of the good candidate exceeds 0.2 alpha n
    # m, and that a witness against a bad candidate falls below 0.4 alpha n m. Permute-and-flip misses by so much with
    # half of the probability, which has 3 K / (2 beta) in the first place (docs/proofs/permute_and_flip.md).
    check_likely_enough(beta, n_candidates, epsilon)
    logarithm = math.log(3 * n_candidates / beta)
    tail = logarithm - math.log(2) if flips else logarithm
    private = 40 * float(tau) * tail / (float(epsilon) * alpha * m)
    return math.ceil(max(private, 800 * logarithm / (alpha * alpha * m)))


class ClippedScoreEM:
    """Draw once by clipped pairwise scores: a user's votes, integers that count 1 / unit, are clipped to tau."""

    # Sensitivity min(2 tau, spread m) in units, with spread the largest vote of a pair less its smallest one, 0 among
    # them. A user's sum for a pair lies in an interval of length spread m, whatever the number of examples up to m, and
    # within plus or minus tau when it is clipped, which brings no two sums further apart. So replacing a user moves the
    # total of each pair by at most that. The maximum over b != a runs over a set of pairs that is public, and |max f -
    # max g| <= max |f - g|.

    def __init__(
        self,
        n_candidates: int,
        *,
        epsilon: ExactEpsilon,
        m: int,
        tau: Any,
        unit: int,
        spread: int,
        flips: bool = False,
    ) -> None:
        bound = parse_positive(tau, "tau")
        self.n_candidates = n_candidates
        self.m = m
        self.tau = min(int(bound * unit), m * unit)
        if self.tau < 1:
            raise ValueError(f"tau must be at least {Fraction(1, unit)}, the grid of votes; got {tau!r}")
        self.sensitivity = max(1, min(2 * self.tau, spread * m))
        self.mechanism = choice_by_scores(epsilon=epsilon, sensitivity=self.sensitivity, flips=flips)

    def choose(self, draw: Sampler, scores: Integers) -> int:
        """The candidate that is drawn."""
        return draw(self.mechanism, scores)

    def check_size(self, n_users: int) -> None:
        """Refuse what does not fit 64 bits; depends on public numbers only."""
        if n_users * self.tau > LARGEST_SUM:
            raise BudgetError(
                f"{n_users} users with tau = {self.tau} units do not fit 64-bit scores; use a coarser granularity or a "
                "smaller tau"
            )


class PairwiseEM(ClippedScoreEM):
    """Votes from a table: psi[a, b, z] units against a, compared with b, of an example z; no diagonal is read."""

    def __init__(
        self, psi: Integers, *, epsilon: ExactEpsilon, m: int, tau: Any, unit: int, flips: bool = False
    ) -> None:
        k = len(psi)
        others = psi[~np.eye(k, dtype=np.bool_)]
        spread = np.maximum(others.max(axis=-1), 0) - np.minimum(others.min(axis=-1), 0)
        super().__init__(k, epsilon=epsilon, m=m, tau=tau, unit=unit, spread=int(spread.max()), flips=flips)
        self.psi = np.ascontiguousarray(psi, dtype=np.int64)

    def scores(self, symbols: Symbols) -> Integers:
        """Scores from users' symbols."""
        self.check_size(symbols.n_users)
        rows = (symbols.values.astype(np.uint32), symbols.users, symbols.n_users, self.m)
        return _core.psi_scores(self.psi, rows, self.tau)


class ScheffeEM(ClippedScoreEM):
    """Choose among distributions on Z symbols, with masses in units that sum to unit, by their Scheffe sets."""

    # The votes are psi_ab(z) = P_a(W) - [z in W] with W = {z : P_a(z) > P_b(z)}, decided on integers. So a score far
    # above 0 says that the examples have less of W than a promises: [GKKMMZ23, Theorem 41].

    def __init__(
        self, masses: Integers, *, epsilon: ExactEpsilon, m: int, tau: Any, unit: int, flips: bool = False
    ) -> None:
        if masses.shape[1] > MAX_SYMBOLS:
            raise BudgetError(f"{masses.shape[1]} symbols are more than the limit {MAX_SYMBOLS}; merge symbols")
        super().__init__(len(masses), epsilon=epsilon, m=m, tau=tau, unit=unit, spread=unit, flips=flips)
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
    """Read columns of symbols; what is not one of 0, ..., n_symbols - 1 becomes 0, the public default."""
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(f"X must have {n_columns} columns of symbols below {n_symbols}; got the shape {rows.shape}")
    with np.errstate(invalid="ignore"):
        # Comparisons with NaN are false.
        valid = (rows >= 0) & (rows < n_symbols) & (rows == np.floor(rows))
    if on_invalid == "raise" and not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(f"X: {rows[row, column]} in row {row} is not one of the symbols 0, ..., {n_symbols - 1}")
    return np.where(valid, rows, 0).astype(np.int64)


@dataclass(frozen=True)
class Symbols:
    """Users' symbols."""

    values: npt.NDArray[np.int64]  # with shape (rows,), from 0 to n_symbols - 1
    n_symbols: int
    users: npt.NDArray[np.uint32]  # whose row it is, from 0 to n_users - 1
    n_users: int  # public, like the most rows of one, m
    m: int

    @classmethod
    def of(cls, data: UserTable, values: npt.NDArray[np.int64], n_symbols: int) -> Symbols:
        """A symbol for each row of the data."""
        return cls(values, n_symbols, data.users, data.n_users, data.m)

    @cached_property
    def histograms(self) -> npt.NDArray[np.uint32]:
        """How often each user has each symbol, with shape (n_users, n_symbols)."""
        size = self.n_users * self.n_symbols
        if size > LARGEST_HISTOGRAMS:
            raise BudgetError(
                f"a table of {self.n_users} users and {self.n_symbols} symbols is too large (limit "
                f"{LARGEST_HISTOGRAMS} entries); merge symbols"
            )
        places = self.users.astype(np.int64) * self.n_symbols + self.values
        return np.bincount(places, minlength=size).astype(np.uint32).reshape(self.n_users, self.n_symbols)


Psi: TypeAlias = "npt.ArrayLike | Callable[[int, int], npt.ArrayLike]"

LARGEST_TABLE = 2**25
"""Entries psi(a, b, z)."""


@estimator
class SymbolSelector(ScoreSelector):
    """What selectors on symbols share: one draw by clipped pairwise scores."""

    released: ClassVar[tuple[str, ...]] = ("selected_",)
    without_rows: ClassVar[str] = "Users without rows add nothing to any score, and so favor none."

    _spread: ClassVar[int] = 2
    """How far apart psi may be for a pair."""

    alpha: float = fields.open_unit(
        default=0.1, doc="The accuracy that is aimed at, in (0, 1), which the default of tau depends on."
    )
    beta: float = fields.open_unit(default=0.1, doc="The failure probability in `users_needed`, in (0, 1).")
    tau: float | Fraction | str | None = fields.positive_number(
        default=None,
        doc="""
        Where a user's sum for a pair is clipped, in (0, m]; by default a function of alpha and m, `clipping_bound`.
        Float, int, Fraction or decimal string.
        """,
    )
    granularity: float | Fraction = fields.parameter(
        default=2**-20,
        check=lambda value, name: grid_unit(value),
        kind="float, int or Fraction",
        doc="A power of two from 2**-30 to 1: scores are rounded down to its multiples, candidates to nearby ones.",
    )

    _scored_by: ClassVar[type[PairwiseEM] | type[ScheffeEM]]

    @abstractmethod
    def _read_table(self, unit: int) -> npt.NDArray[np.int64]:
        """The public table in units of the granularity; computed once for a fit."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        # A row for each candidate and, on the last axis, an entry for each symbol.
        self._table: npt.NDArray[np.int64] = self._read_table(grid_unit(self.granularity))

    def _tau(self, m: int) -> Any:
        return clipping_bound(float(self.alpha), m, self._spread) if self.tau is None else self.tau

    def _n_candidates(self) -> int:
        return len(self._table)

    def _columns(self) -> int:
        return 1

    def _read_X(self, grid: Grid) -> npt.NDArray[np.int64]:
        return read_symbols(super()._read_X(grid), self._table.shape[-1], 1, self.on_invalid)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        flips, public, unit = self._flips(), self._table, grid_unit(self.granularity)
        budget = self._budget_of({"selection": 1}, "selection", flips)

        def program(table: UserTable) -> AdaptiveMechanism:
            tau = self._tau(table.m)
            selection = self._scored_by(public, epsilon=budget["selection"], m=table.m, tau=tau, unit=unit, flips=flips)
            scores = selection.scores(Symbols.of(table, table.X[:, 0], public.shape[-1]))
            return lambda draw: selection.choose(draw, scores)

        outcomes = self._listed_if(flips, lambda: range(len(public)))
        return ReleasePlan(budget, program, outcomes, lambda drawn: self._fitted(drawn) | drawn_by(flips))

    def _fitted(self, drawn: int) -> dict[str, Any]:
        return {"selected_": drawn}

    def users_needed(self) -> int:
        """Return for how many users the guarantee of the class is proved; practice needs far fewer. Needs `m`.

        Raises
        ------
        ValueError
            For a beta that is too small for weights of 64 bits, however many users there are.
        """
        frozen = self._frozen()
        frozen._check_parameters()
        m = check_count(frozen.m, "m")
        return users_needed(
            len(frozen._table),
            epsilon=positive_epsilon(frozen.epsilon),
            alpha=float(frozen.alpha),
            beta=float(frozen.beta),
            m=m,
            tau=Fraction(exact_number(frozen._tau(m)) or 0),
            flips=frozen._flips(),
        )


@estimator
class ClippedPairwiseEM(SymbolSelector):
    """Choose one of K hypotheses by how examples compare them: ClippedPairwiseEM.

    Attributes
    ----------
    selected_ : int
        The hypothesis, from 0 to K - 1. Released.

    Notes
    -----
    *Score* of a: the maximum over b != a of the sum over users of clip(sum of psi[a, b, z] over the user's z, +-tau).
    *Sensitivity* when one user is replaced: min(2 tau, s m), with s the largest spread of psi over examples (and 0) for
    a pair, at most 2; see docs/proofs/user_level_scores.md. All of epsilon goes to one draw by it, see `mechanism`.

    *Utility.* Let the score of a distribution D be the maximum over b of the mean of psi[a, b] under D. If some
    hypothesis has a score of at most alpha / 10, the one selected has at most alpha / 2, with probability 1 - beta, for
    `users_needed()` users of m independent examples each.

    References
    ----------
    [GKKMMZ23, Theorem 37]: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy
    With Few Examples Per User" (NeurIPS 2023).

    Examples
    --------
    Which of two labels is rarer in users' examples? Each vote for one label is a vote against the other.

    >>> import numpy as np
    >>> psi = lambda a, b: [1 if z == a else -1 for z in range(2)]
    >>> selector = ClippedPairwiseEM(epsilon=1, psi=psi, n_hypotheses=2, m=3)
    >>> X, users = np.array([[0], [0], [1]] * 100), np.repeat(np.arange(100), 3)
    >>> selector.fit(X, groups=users).selected_
    1
    """

    psi: Psi = fields.parameter(
        kind="array-like with shape (K, K, Z), or callable",
        doc="""
        psi[a, b, z] in [-1, 1] says how much the example z speaks against hypothesis a, compared with b; psi[a, a] is
        not read. A callable psi(a, b) gives the Z numbers of a pair, and is called once for each. Rounded down to the
        granularity, publicly.
        """,
    )
    n_hypotheses: int | None = fields.count(default=None, doc="K, needed if psi is a callable.")

    _scored_by = PairwiseEM

    def _read_table(self, unit: int) -> npt.NDArray[np.int64]:
        return _table(self.psi, self.n_hypotheses, unit)


def grid_unit(granularity: Any) -> int:
    """How many steps of a public power of two make 1."""
    step = parse_positive(granularity, "granularity")
    unit = step.denominator
    if step.numerator != 1 or unit & (unit - 1) or unit > 2**30:
        raise ValueError(f"granularity must be a power of two from 2**-30 to 1; got {short_repr(granularity)}")
    return unit


def _table(psi: Psi, n_hypotheses: Any, unit: int) -> npt.NDArray[np.int64]:
    """Psi for all pairs, in units; 0 on the diagonal."""
    if callable(psi):
        if n_hypotheses is None:
            raise ValueError("n_hypotheses must be the number of hypotheses when psi is a callable; got None")
        k = check_count(n_hypotheses, "n_hypotheses", 2)
        nobody = np.zeros_like(psi(0, 1))
        rows: Any = [[nobody if a == b else psi(a, b) for b in range(k)] for a in range(k)]
    else:
        rows = psi
    try:
        table = np.asarray(rows)
    except ValueError:
        raise ValueError("psi must give the same number of numbers for every pair") from None
    if table.ndim != 3 or table.shape[0] != table.shape[1] or table.size == 0:
        raise ValueError(f"psi must have the shape (K, K, Z), a vector for every pair; got {table.shape}")
    k = len(table)
    if k < 2:
        raise ValueError(f"psi must compare at least two hypotheses, as one leaves no choice; got {k}")
    if n_hypotheses is not None and n_hypotheses != k:
        raise ValueError(f"n_hypotheses must be {k}, the length of psi; got {short_repr(n_hypotheses)}")
    if table.size > LARGEST_TABLE:
        raise BudgetError(f"psi has {table.size} numbers (limit {LARGEST_TABLE}); merge symbols or hypotheses")
    return _on_grid(table, unit)


def _on_grid(table: npt.NDArray[Any], unit: int) -> npt.NDArray[np.int64]:
    """Numbers in [-1, 1], rounded down to the grid; 0 on the diagonal."""
    others = ~np.eye(len(table), dtype=np.bool_)
    votes = np.zeros(table.shape, dtype=np.int64)
    if table.dtype.kind in "biuf":
        numbers = table[others].astype(np.float64)
        valid = np.abs(numbers) <= 1
        # A product with a power of two is exact.
        votes[others] = np.floor(np.where(valid, numbers, 0) * unit).astype(np.int64)
    elif table.dtype.kind == "O":
        try:
            exact = [exact_number(entry) for entry in table[others].ravel()]
        except (TypeError, ValueError) as error:
            raise type(error)(f"psi must be numbers in [-1, 1]; an entry is {error}") from None
        valid = np.array([entry is not None and abs(entry) <= 1 for entry in exact])
        floors = [int((entry or 0) * unit // 1) if fits else 0 for entry, fits in zip(exact, valid, strict=True)]
        votes[others] = np.array(floors).reshape(votes[others].shape)
    else:
        raise TypeError(f"psi must be numbers in [-1, 1]; got dtype {table.dtype}")
    if not valid.all():
        pair = np.argwhere(others)[np.argwhere(~valid.reshape(-1, table.shape[2]))[0, 0]]
        raise ValueError(f"psi[{pair[0]}, {pair[1]}] must be numbers in [-1, 1]; got {short_repr(table[tuple(pair)])}")
    return votes


@estimator
class HypothesisSelector(SymbolSelector):
    """Choose the one of K public distributions that users' examples come from.

    Attributes
    ----------
    selected_ : int
        The candidate, from 0 to K - 1. Released.
    distribution_ : ndarray with shape (Z,)
        Its masses, as given. Released.

    Notes
    -----
    *Score* of a: the maximum over b != a of the sum over users of clip(P_a(W) k - #{examples in W}, +-tau), with k the
    number of the user's examples and W the symbols that are likelier under a than under b, strictly. *Sensitivity* when
    one user is replaced: min(2 tau, m); see docs/proofs/user_level_scores.md. (For every pair psi takes two values that
    differ by 1.) All of epsilon goes to one draw by it, see `mechanism`.

    *Utility.* If some candidate is within alpha / 10 of the truth in total variation, the one selected is within
    0.7 alpha, with probability 1 - beta, for `users_needed()` users of m independent examples each: its score is at
    most alpha / 2, so it gives W less than alpha / 2 more than the truth does, and the truth is within alpha / 10 of
    the candidate nearby. Rounding of masses adds at most Z granularity / 2 to the distances.

    References
    ----------
    [GKKMMZ23, Theorem 41]: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy
    With Few Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> import numpy as np
    >>> dice = [[1 / 6] * 6, [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]]
    >>> selector = HypothesisSelector(epsilon=1, candidates=dice, m=4)
    >>> throws = np.array([[5], [5], [0], [3]] * 200)
    >>> selector.fit(throws, groups=np.repeat(np.arange(200), 4)).distribution_
    array([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
    """

    released: ClassVar[tuple[str, ...]] = ("selected_", "distribution_")
    _spread: ClassVar[int] = 1

    candidates: npt.ArrayLike = fields.parameter(
        kind="array-like with shape (K, Z)",
        doc="""
        Distinct distributions on the symbols 0, ..., Z - 1, K >= 2. Floats may miss the sum 1 by 1e-9. They are moved
        to multiples of `granularity`.
        """,
    )

    _scored_by = ScheffeEM

    def _read_table(self, unit: int) -> npt.NDArray[np.int64]:
        return _candidate_masses(self.candidates, unit)

    def _fitted(self, drawn: int) -> dict[str, Any]:
        distribution = np.array([float(mass) for mass in np.asarray(self.candidates)[drawn]])
        return {"selected_": drawn, "distribution_": distribution}


def _candidate_masses(candidates: npt.ArrayLike, unit: int) -> npt.NDArray[np.int64]:
    """Distinct distributions in units, each of total unit."""
    try:
        table = np.asarray(candidates)
    except ValueError:
        raise ValueError("candidates must have the shape (K, Z)") from None
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"candidates must have the shape (K, Z); got {table.shape}")
    if len(table) < 2:
        raise ValueError(f"candidates must be at least two, as one leaves no choice; got {len(table)}")
    masses = np.array([on_grid(row, unit, f"candidates[{index}]") for index, row in enumerate(table)])
    first_at: dict[bytes, int] = {}
    for index, row in enumerate(masses):
        first = first_at.setdefault(row.tobytes(), index)
        if first != index:
            raise ValueError(f"candidates {first} and {index} are the same distribution (on the grid of granularity)")
    return masses


def on_grid(row: Iterable[Any], unit: int, name: str) -> npt.NDArray[np.int64]:
    """Return a distribution in units: rounded down, and the missing units go to the largest remainders."""
    masses = []
    for entry in row:
        try:
            number = exact_number(entry)
        except TypeError:
            raise TypeError(f"{name} must be a list of masses; got {short_repr(entry)}") from None
        except ValueError as error:
            raise ValueError(f"{name} has the mass {short_repr(entry)}, {error}") from None
        if number is None or number < 0:
            raise ValueError(f"{name} has the mass {short_repr(entry)}; masses must be numbers >= 0")
        masses.append(number)
    total = sum(masses, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError(f"{name} must have masses of sum 1; they sum to {float(total)}")
    shares = [mass / total * unit for mass in masses]
    units = [share.numerator // share.denominator for share in shares]
    by_remainder = sorted(range(len(units)), key=lambda z: units[z] - shares[z])
    for z in by_remainder[: unit - sum(units)]:
        units[z] += 1
    return np.array(units, dtype=np.int64)
