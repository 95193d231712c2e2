"""Distributions on symbols, and of independent symbols: selections from covers, and the estimators.

How accurate each is: docs/proofs/distributions.md, section "Symbols".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.distributions.covers import (
    LARGEST_LINE,
    LARGEST_WHOLE,
    DistributionEstimator,
    Masses,
    Selections,
    grid_of,
    grid_size,
    members,
    near,
    near_size,
    refuse_beyond,
    users_of_selection,
)
from userdp.distributions.line_selection import ProportionSelection
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ExactEpsilon, Parts
from userdp.exact.numbers import check_count, counted, short_repr
from userdp.learners.clipped_pairwise import ScheffeEM, Symbols, clipping_bound, read_symbols
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import Grid, places_of, read_names
from userdp.users.table import LARGEST_M, UserTable

Floats = npt.NDArray[np.float64]
DISCRETE_METHODS = ("auto", "joint", "coarse-to-fine", "symbols")


class DiscreteSelections(Selections, Protocol):
    """A way to learn a distribution on symbols."""

    size: int
    """Candidates of the largest selection, or of all that are held at once."""

    def probabilities(self, outcome: Any) -> Floats:
        """The distribution that an outcome stands for."""


def selections_of(method: str, n_symbols: int, alpha: Fraction, max_candidates: int) -> DiscreteSelections:
    """The selections of a method; "auto" takes the first of joint, coarse-to-fine and symbols that is small enough."""
    if method not in DISCRETE_METHODS:
        raise ValueError(f"method must be one of {', '.join(DISCRETE_METHODS)}; got {short_repr(method)}")
    if method in ("joint", "auto"):
        joint = JointCover(n_symbols, alpha)
        if method == "joint":
            refuse_beyond(joint.size, max_candidates, "the cover", "method='symbols' learns one symbol at a time")
        if joint.size <= max_candidates:
            return joint
    if method in ("coarse-to-fine", "auto"):
        rounds = CoarseToFine(n_symbols, alpha)
        if method == "coarse-to-fine":
            refuse_beyond(rounds.size, max_candidates, "a round", "method='symbols' learns one symbol at a time")
        if rounds.size <= max_candidates:
            return rounds
    return SymbolBySymbol(n_symbols, alpha)


class JointCover:
    """One selection from a cover of all distributions ([GKKMMZ23, Theorem 43]): within 0.7 alpha."""

    def __init__(self, n_symbols: int, alpha: Fraction, n_columns: int = 1) -> None:
        self.n_symbols, self.alpha, self.n_columns = n_symbols, alpha, n_columns
        self.unit = grid_of(n_symbols, alpha / n_columns)
        self.size = counted((grid_size(self.unit, n_symbols), n_columns))
        self.shares = {"selection": Fraction(1)}

    def program(self, budget: Parts, symbols: Any) -> AdaptiveMechanism:
        cover = list(members(self.unit, self.n_symbols))
        return _selection(cover, self.unit, self.alpha, budget["selection"], symbols)

    def outcomes(self) -> Iterable[Any]:
        return members(self.unit, self.n_symbols)

    def n_outcomes(self) -> int:
        return self.size

    def probabilities(self, outcome: Any) -> Floats:
        return in_units(outcome, self.unit)

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return users_of_selection(self.size, self.alpha, budget["selection"], beta, m)


class CoarseToFine:
    """Rounds of selection at accuracies alpha 2**J, ..., 2 alpha, alpha, each near what the one before selected."""

    # After a round at accuracy a the truth is within 0.7 a of the selected member, so that candidates of the next
    # round, at a / 2, are those within 0.75 a of it. A round's share of the budget is 2/3 of the next's.

    def __init__(self, n_symbols: int, alpha: Fraction) -> None:
        self.n_symbols = n_symbols
        # The most doublings of alpha below 1.
        doublings = (math.ceil(1 / alpha) - 1).bit_length() - 1
        first = grid_of(n_symbols, alpha * (1 << doublings))
        self.rounds = [(alpha * (1 << (doublings - r)), first << r) for r in range(doublings + 1)]
        self.shares = {f"round {r}": Fraction(3, 2) ** r for r in range(doublings + 1)}
        sizes = [near_size(n_symbols, self._radius(r)) for r in range(1, doublings + 1)]
        self.size = max([grid_size(first, n_symbols), *sizes])

    def _radius(self, r: int) -> int:
        """Units of round r within 0.75 of the accuracy before."""
        return math.floor(Fraction(3, 4) * self.rounds[r - 1][0] * self.rounds[r][1])

    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        def selection(r: int, cover: Iterable[Masses]) -> Callable[[Sampler], Masses]:
            alpha, unit = self.rounds[r]
            return _selection(list(cover), unit, alpha, budget[f"round {r}"], symbols)

        first = selection(0, members(self.rounds[0][1], self.n_symbols))

        def refined(draw: Sampler) -> Masses:
            selected = first(draw)
            for r in range(1, len(self.rounds)):
                center = tuple(2 * mass for mass in selected)
                selected = selection(r, near(center, self._radius(r)))(draw)
            return selected

        return refined

    def outcomes(self) -> Iterable[Masses]:
        return members(self.rounds[-1][1], self.n_symbols)

    def n_outcomes(self) -> int:
        _, unit = self.rounds[-1]
        return grid_size(unit, self.n_symbols)

    def probabilities(self, outcome: Masses) -> Floats:
        return in_units(outcome, self.rounds[-1][1])

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        beta /= len(self.rounds)
        parts = [(alpha, budget[f"round {r}"]) for r, (alpha, _) in enumerate(self.rounds)]
        return max(users_of_selection(self.size, alpha, epsilon, beta, m) for alpha, epsilon in parts)


class SymbolBySymbol:
    """The probability of each symbol on its own, then the nearest distribution."""

    # Each of k proportions is selected at accuracy 2 alpha / k, so within 1.4 alpha / k; the projection is within 0.7
    # alpha.

    def __init__(self, n_symbols: int, alpha: Fraction) -> None:
        self.n_symbols = n_symbols
        self.alpha = min(2 * alpha / n_symbols, alpha)
        self.unit = grid_of(2, self.alpha)
        refuse_beyond(self.unit + 1, LARGEST_LINE, "the cover of a probability", "use a larger alpha")
        self.size = n_symbols * (self.unit + 1)
        refuse_beyond(self.size, LARGEST_WHOLE, "the list of covers", "use a larger alpha or fewer symbols")
        self.shares = {f"symbol {z}": Fraction(1) for z in range(n_symbols)}

    def program(self, budget: Parts, symbols: Symbols) -> AdaptiveMechanism:
        tau, histograms = clipping_bound(float(self.alpha), symbols.m, 1), symbols.histograms.astype(np.int64)
        sizes = histograms.sum(axis=1)
        steps = [ProportionSelection(self.unit, epsilon=budget[name], m=symbols.m, tau=tau) for name in self.shares]
        scores = [step.scores(counts, sizes) for step, counts in zip(steps, histograms.T, strict=True)]
        return lambda draw: tuple(step.choose(draw, part) for step, part in zip(steps, scores, strict=True))

    def outcomes(self) -> Iterable[Masses]:
        return product(range(self.unit + 1), repeat=self.n_symbols)

    def n_outcomes(self) -> int:
        return counted((self.unit + 1, self.n_symbols))

    def probabilities(self, outcome: Masses) -> Floats:
        return _projected(in_units(outcome, self.unit))

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return users_of_selection(self.unit + 1, self.alpha, budget["symbol 0"], beta / self.n_symbols, m)


def _selection(
    cover: list[Masses], unit: int, alpha: Fraction, epsilon: ExactEpsilon, symbols: Symbols
) -> Callable[[Sampler], Masses]:
    tau = clipping_bound(float(alpha), symbols.m, 1)
    selection = ScheffeEM(np.array(cover, dtype=np.int64), epsilon=epsilon, m=symbols.m, tau=tau, unit=unit)
    scores = selection.scores(symbols)
    return lambda draw: cover[selection.choose(draw, scores)]


def in_units(masses: npt.ArrayLike, unit: int) -> Floats:
    """Integer masses as probabilities."""
    return np.asarray(masses, dtype=np.float64) / unit


def _projected(vector: Floats) -> Floats:
    """The nearest distribution: the same number is taken from all entries, and none is left below 0."""
    descending = np.sort(vector)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(vector) + 1)
    shift = excess[np.flatnonzero(descending > excess)[-1]]
    projected: Floats = np.maximum(vector - shift, 0)
    projected /= projected.sum()
    return projected


@estimator
class SymbolDistribution(DistributionEstimator):
    """An estimator of distributions on public symbols: numbers 0, ..., k - 1, or names."""

    released: ClassVar[tuple[str, ...]] = ("probabilities_",)

    n_symbols: int | None = fields.count(
        default=None,
        least=2,
        most=LARGEST_M,
        doc="k >= 2, public: the symbols are 0, ..., k - 1. All else, missing values too, counts as the symbol 0.",
    )
    symbols: Sequence[Any] | None = fields.parameter(
        default=None,
        check=fields.or_none(read_names),
        kind="sequence of texts, bytes, bools or numbers, optional",
        doc="""
        In place of `n_symbols`: the symbols by name, public, distinct, all texts, all bytes or all numbers, such as
        ("no", "yes"). The one text of each value is compared with theirs, so that 1, 1.0, True and "1" are one symbol;
        categories are what they stand for. All that is no symbol, missing values too, counts as the first: put one such
        as "none" there if that is not meant.
        """,
    )
    max_candidates: int = fields.count(
        default=4096,
        least=2,
        most=2**14,
        doc="Larger covers are refused; 16,384 at most. Work grows as its square times the number of users.",
    )

    def _lacking(self, grouped: bool) -> dict[str, str]:
        facts = super()._lacking(grouped)
        if self.n_symbols is None and self.symbols is None:
            facts["n_symbols or symbols"] = "the number of symbols 0, ..., k - 1 or their names"
        return facts

    def _check_parameters(self) -> None:
        if self.n_symbols is not None and self.symbols is not None:
            raise ValueError(
                "only one of n_symbols (symbols 0, ..., k - 1) and symbols (their names) is taken; got "
                f"n_symbols={short_repr(self.n_symbols)} and symbols={short_repr(self.symbols)}"
            )
        super()._check_parameters()

    def _has_names(self) -> bool:
        return self.symbols is not None

    def _k(self) -> int:
        """The number of symbols."""
        if self.symbols is not None:
            return len(read_names(self.symbols, "symbols"))
        return check_count(self.n_symbols, "n_symbols", 2)

    def _read_X(self, grid: Grid) -> npt.NDArray[np.int64]:
        columns = self._columns() or 1
        if self.symbols is None:
            return read_symbols(super()._read_X(grid), self._k(), columns, self.on_invalid)
        names = read_names(self.symbols, "symbols")
        if grid.shape[1] != columns:
            raise ValueError(f"X must have {columns} columns of symbols; got the shape {grid.shape}")
        places = np.column_stack([places_of(column, names) for column in grid.vectors()])
        if self.on_invalid == "raise" and np.any(places < 0):
            raise ValueError(f"X has values that are not in symbols={short_repr(self.symbols)}")
        return np.maximum(places, 0)

    def _fitted(self, selections: Any, outcome: Any) -> dict[str, Any]:
        named = np.arange(self._k()) if self.symbols is None else read_names(self.symbols, "symbols").labels
        return {"probabilities_": np.array(selections.probabilities(outcome)), "symbols_": named}

    def _named(self, probabilities: Floats) -> dict[Any, float]:
        """Probabilities by symbol."""
        return dict(zip(self.symbols_.tolist(), probabilities.tolist(), strict=True))


@estimator
class DiscreteDistribution(SymbolDistribution):
    """The distribution of users' examples on k public symbols, with pure privacy for users.

    The symbols are the numbers 0, ..., k - 1 (`n_symbols`) or names (`symbols`). Exactly one of the two is needed.

    Attributes
    ----------
    probabilities_ : ndarray with shape (k,)
        In the order of the symbols. Released.
    symbols_ : ndarray with shape (k,)
        The symbols, public.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For a cover with more than max_candidates members, with its size and what to do instead.

    Notes
    -----
    *Privacy.* Every selection is an exponential mechanism on clipped Scheffe scores, with sensitivity min(2 tau, m)
    when one user is replaced (see `HypothesisSelector`); their parts of epsilon sum to epsilon, exactly.

    *Utility.* Whatever the method, the result is within 0.7 alpha of the truth in total variation with probability
    1 - beta, for `users_needed()` users of m independent examples each. The methods differ in this number: as a
    function of epsilon it grows as k / (epsilon alpha sqrt(m)) for "joint", up to logarithms, 2 to 7 times
    that for "coarse-to-fine", and k**2 / (epsilon alpha sqrt(m)) for "symbols".

    References
    ----------
    [GKKMMZ23, Theorem 41] and [GKKMMZ23, Theorem 43].

    Examples
    --------
    >>> import numpy as np
    >>> visits = np.array([[0], [0], [1], [2]] * 3000)
    >>> users = np.repeat(np.arange(3000), 4)
    >>> learner = DiscreteDistribution(epsilon=2, n_symbols=3, m=4, alpha=0.4).fit(visits, groups=users)
    >>> bool(np.abs(learner.probabilities_ - [0.5, 0.25, 0.25]).max() < 0.3)
    True
    >>> answers = np.array([["no"], ["yes"], ["yes"], ["yes"]] * 3000)
    >>> learner = DiscreteDistribution(epsilon=2, symbols=("no", "yes"), m=4, alpha=0.4).fit(answers, groups=users)
    >>> 0.5 < learner.named_probabilities["yes"] < 1
    True
    """

    method: str = fields.choice(
        DISCRETE_METHODS,
        default="auto",
        doc="""
        "joint" selects from a cover of all distributions, with C(N + k - 1, k - 1) members, N = 2.5 k / alpha rounded
        up. "coarse-to-fine" refines the selection in rounds at half the accuracy each. "symbols" selects the
        probability of each symbol and projects the vector. "auto" takes the first of these whose covers have at most
        `max_candidates` members; it depends on k, alpha and that number only.
        """,
    )

    @property
    def named_probabilities(self) -> dict[Any, float]:
        """The probability of each symbol, in their order."""
        check_is_fitted(self)
        return self._named(self.probabilities_)

    def _selections(self) -> DiscreteSelections:
        return selections_of(self.method, self._k(), self._accuracy(), int(self.max_candidates))

    def _columns(self) -> int:
        return 1

    def _examples(self, table: UserTable) -> Symbols:
        return Symbols.of(table, table.X[:, 0], self._k())


@estimator
class ProductDistribution(SymbolDistribution):
    """The distribution of d independent symbols of users' examples, with pure privacy for users.

    Every column has the same symbols: the numbers 0, ..., k - 1 (`n_symbols`) or names (`symbols`). Exactly one of the
    two is needed.

    Attributes
    ----------
    probabilities_ : ndarray with shape (d, k)
        A distribution for each column, in the order of the symbols. Released.
    symbols_ : ndarray with shape (k,)
        The symbols, public.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Privacy.* As for `DiscreteDistribution`. The parts of epsilon of all coordinates sum to epsilon, exactly.

    *Utility.* The total variation of products is at most the sum over coordinates. So with either method the result is
    within 0.7 alpha of the truth with probability 1 - beta, for `users_needed()` users, if coordinates are independent.
    As a function of epsilon that number grows as d k / (epsilon alpha sqrt(m)) for "joint", up to logarithms. A
    coordinate has alpha / d and epsilon / d, so for "coordinate" it is d times larger, and so is the
    part without epsilon, d k / (alpha**2 m).

    References
    ----------
    [GKKMMZ23, Theorem 41] and [GKKMMZ23, Theorem 44].

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[0, 1], [1, 1]] * 4000)
    >>> users = np.repeat(np.arange(4000), 2)
    >>> learner = ProductDistribution(epsilon=2, n_symbols=2, n_columns=2, m=2, alpha=0.5).fit(answers, groups=users)
    >>> bool(np.abs(learner.probabilities_ - [[0.5, 0.5], [0, 1]]).max() < 0.3)
    True
    """

    n_columns: int = fields.count(doc="d >= 1, public.")
    method: str = fields.choice(
        ("auto", "joint", "coordinate"),
        default="auto",
        doc="""
        "joint" selects from the products of covers of the coordinates, C(N + k - 1, k - 1)**d members with
        N = 2.5 k d / alpha rounded up. "coordinate" learns each coordinate at alpha / d with epsilon / d, by the method
        that `DiscreteDistribution` takes by itself. "auto" is "joint" up to `max_candidates` members.
        """,
    )

    @property
    def named_probabilities(self) -> list[dict[Any, float]]:
        """For each column the probability of each symbol, in their order."""
        check_is_fitted(self)
        return [self._named(column) for column in self.probabilities_]

    def _selections(self) -> _JointProduct | _Columns:
        k, d, limit = self._k(), int(self.n_columns), int(self.max_candidates)
        accuracy = self._accuracy()
        if self.method != "coordinate":
            joint = _JointProduct(k, accuracy, d)
            if self.method == "joint":
                refuse_beyond(joint.size, limit, "the cover", "method='coordinate' learns one column at a time")
            if joint.size <= limit:
                return joint
        return _Columns(selections_of("auto", k, accuracy / d, limit), d)

    def _columns(self) -> int:
        return int(self.n_columns)

    def _examples(self, table: UserTable) -> list[Symbols]:
        return [Symbols.of(table, column, self._k()) for column in table.X.T]


class _JointProduct(JointCover):
    """One selection from all products of members of the coordinates' covers."""

    def program(self, budget: Parts, columns: list[Symbols]) -> AdaptiveMechanism:
        first = columns[0]
        cells = np.zeros_like(first.values)
        for column in columns:
            cells = cells * self.n_symbols + column.values
        cover = list(self.outcomes())
        masses = np.ones((len(cover), 1), dtype=np.int64)
        for part in np.moveaxis(np.array(cover, dtype=np.int64), 1, 0):
            masses = (masses[:, :, None] * part[:, None, :]).reshape(len(cover), -1)
        selection = ScheffeEM(
            masses,
            epsilon=budget["selection"],
            m=first.m,
            tau=clipping_bound(float(self.alpha), first.m, 1),
            unit=self.unit**self.n_columns,
        )
        scores = selection.scores(replace(first, values=cells, n_symbols=self.n_symbols**self.n_columns))
        return lambda draw: cover[selection.choose(draw, scores)]

    def outcomes(self) -> Iterable[tuple[Masses, ...]]:
        return product(members(self.unit, self.n_symbols), repeat=self.n_columns)


class _Columns:
    """The same selections for each column."""

    def __init__(self, each: DiscreteSelections, d: int) -> None:
        self.each, self.d = each, d
        refuse_beyond(d * each.size, LARGEST_WHOLE, "the list of covers", "use a larger alpha or fewer columns")
        self.shares: Mapping[str, Fraction] = {
            f"column {j}, {part}": share for j in range(d) for part, share in each.shares.items()
        }

    def _part(self, budget: Parts, j: int) -> Parts:
        return {part: budget[f"column {j}, {part}"] for part in self.each.shares}

    def program(self, budget: Parts, columns: list[Symbols]) -> AdaptiveMechanism:
        programs = [self.each.program(self._part(budget, j), column) for j, column in enumerate(columns)]
        return lambda draw: tuple(program(draw) for program in programs)

    def outcomes(self) -> Iterable[tuple[Hashable, ...]]:
        return product(self.each.outcomes(), repeat=self.d)

    def n_outcomes(self) -> int:
        return counted((self.each.n_outcomes(), self.d))

    def probabilities(self, outcome: tuple[Any, ...]) -> list[Floats]:
        return [self.each.probabilities(column) for column in outcome]

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return self.each.users_needed(self._part(budget, 0), beta / self.d, m)
