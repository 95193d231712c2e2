"""Concept classes: what a class of hypotheses is, and the common classes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.points import points_of
from userdp.estimators.saving import arguments_of, repr_of, saved_as_parameter
from userdp.exact.numbers import check_count, exact_number, is_integer, is_listed, short_repr
from userdp.exceptions import BudgetError

Points = npt.NDArray[np.integer[Any]]
Bits = npt.NDArray[np.bool_]

MAX_SIZE = 2**24
"""The most hypotheses that the exponential mechanism weighs one by one."""


class ConceptClass(ABC):
    """A public, finite list of hypotheses, each a function from points to False (the first class) or True (the second).

    The list is fixed without a look at the data: learners weigh every hypothesis on it, whatever the data are.

    Attributes
    ----------
    size : int
        The number of hypotheses, at least 2 and at most 2**24.
    log_size : float
        Its natural logarithm, the "size" of LWY24 and GKKMMZ23.
    vc_dimension : int
        The Vapnik-Chervonenkis dimension, or a bound on it where a class says so.
    domain_size : int or None
        The number of points there are, or None where that is not known to matter.

    Notes
    -----
    Rows of features become points by `points`, which is a total map: whatever a row holds (NaN, infinities, numbers
    outside the domain), it becomes some point and nothing is raised. A bad row of one user therefore changes what this
    user contributes, and nothing else.
    """

    domain_size: int | None = None

    @property
    def largest_point(self) -> int:
        """No whole number that is read from X is larger; 0 where none is."""
        return 0

    @property
    def n_columns(self) -> int:
        """So many of the first columns of X are read: up to that of `feature`, for classes that read one."""
        return int(getattr(self, "feature", 0)) + 1

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of hypotheses."""

    @property
    def log_size(self) -> float:
        """The natural logarithm of the number of hypotheses."""
        return math.log(self.size)

    @property
    def vc_dimension(self) -> int:
        """The Vapnik-Chervonenkis dimension, or a bound: a class that shatters k points has 2**k hypotheses or more."""
        return self.size.bit_length() - 1

    @abstractmethod
    def points(self, X: npt.NDArray[Any]) -> Points:
        """The points that rows of numbers stand for.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
            Any numbers, NaN and infinities included.

        Returns
        -------
        ndarray of int with shape (rows,) or (rows, k)
        """

    @property
    def reading(self) -> Hashable:
        """What `points` depends on: classes of equal readings are over the same points and read them alike."""
        return repr(self)

    @abstractmethod
    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What the hypotheses start, ..., stop - 1 say about points.

        Parameters
        ----------
        points : ndarray
            As `points` gives them.
        start, stop : int
            A range of hypotheses; all by default.

        Returns
        -------
        ndarray of bool with shape (len(points), stop - start)
        """

    @abstractmethod
    def describe(self, index: int) -> str:
        """When the hypothesis with this index says True, in words."""

    def __repr__(self) -> str:
        return repr_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **arguments_of(self)), ()

    def _range(self, start: int, stop: int | None) -> npt.NDArray[np.int64]:
        """Return the numbers of the hypotheses from start up to stop."""
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ValueError(f"start and stop must be in order and in 0, ..., {self.size}; got {start} and {end}")
        return np.arange(start, end)

    def _known(self, index: Any) -> int:
        """Read the index of a hypothesis."""
        if not is_integer(index):
            raise TypeError(f"index must be an int; got {short_repr(index)}")
        if not 0 <= index < self.size:
            raise ValueError(f"index must be in 0, ..., {self.size - 1}; got {index}")
        return int(index)


def check_size(size: int, what: str, cheaper: str) -> None:
    """Refuse classes that cannot be enumerated, and those with nothing to choose."""
    if size < 2:
        raise ValueError(f"{what} has {size} hypotheses; at least 2 are needed to choose one")
    if size > MAX_SIZE:
        raise BudgetError(
            f"{what} has {short_repr(size)} hypotheses, and at most 2**24 are weighed one by one; {cheaper}"
        )


def column_of(X: npt.NDArray[Any], feature: int) -> npt.NDArray[Any]:
    """Return one column of a table; refused by its shape alone."""
    if X.ndim != 2 or X.shape[1] <= feature:
        raise ValueError(f"X must have a column {feature}; got the shape {X.shape}")
    return X[:, feature]


MAX_PARITY_BITS = 22


class DomainClass(ConceptClass):
    """Hypotheses on the integers first, ..., first + domain_size - 1, which are read from the column `feature` of X."""

    # Numbers outside the domain are clamped to it, NaN becomes the first point, and fractions are rounded up.

    first = 1
    domain_size: int
    feature: int

    def points(self, X: npt.NDArray[Any]) -> Points:
        """The points of rows: one integer each; see `ConceptClass.points`."""
        column, last = column_of(X, self.feature), self.first + self.domain_size - 1
        positive_points = points_of(column, max(last, 1)).astype(np.int64)
        return np.clip(np.where(column > 0, positive_points, 0), self.first, last)

    @property
    def reading(self) -> Hashable:
        """The domain and the column."""
        return self.first, self.domain_size, self.feature

    @property
    def largest_point(self) -> int:
        """The last point of the domain."""
        return self.first + self.domain_size - 1

    @abstractmethod
    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        """Points of shape (n, 1) and hypotheses of shape (k,) to shape (n, k)."""

    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What hypotheses say about points; see `ConceptClass.predict`."""
        return self._predict(np.asarray(points, dtype=np.int64)[:, None], self._range(start, stop))


class _SizedDomainClass(DomainClass):
    """Made from the number of points."""

    def __init__(self, domain_size: int, *, feature: int = 0) -> None:
        self.domain_size = check_count(domain_size, "domain_size")
        self.feature = check_count(feature, "feature", least=0)
        if self.domain_size > 2**61 - 2:
            raise ValueError(f"domain_size must be at most 2**61 - 2; got {self.domain_size}")
        check_size(self.size, f"{type(self).__name__}(domain_size={self.domain_size})", self._cheaper)

    _cheaper = "use a coarser domain"


@saved_as_parameter
class FiniteClass(DomainClass):
    """Any hypotheses on the points 0, ..., d - 1, given as a table.

    Parameters
    ----------
    matrix : array-like of 0 and 1 with shape (hypotheses, d)
        One row for each hypothesis: what it says about each point. At least two rows, no two alike.
    feature : int
        The column of X that has the point. Numbers outside 0, ..., d - 1 are clamped, NaN is point 0, and fractions are
        rounded up.

    Notes
    -----
    `vc_dimension` is the bound log2 of the number of hypotheses.

    Examples
    --------
    >>> both = FiniteClass([[0, 0, 1], [0, 1, 1]])
    >>> both.size, both.describe(1), both.predict(np.array([1, 2])).tolist()
    (2, 'x in {1, 2}', [[False, True], [True, True]])
    """

    first = 0

    def __init__(self, matrix: npt.ArrayLike, *, feature: int = 0) -> None:
        table = read_table(matrix, "hypotheses, points")
        check_size(len(table), "matrix", "give fewer")
        self.matrix: Bits = table
        self.matrix.flags.writeable = False
        # Bytes of rows, so that equal rows meet.
        packed = np.packbits(self.matrix, axis=1)
        _, where = np.unique(packed, axis=0, return_inverse=True)
        seen: dict[int, int] = {}
        for row, kind in enumerate(where.ravel().tolist()):
            if seen.setdefault(kind, row) != row:
                raise ValueError(f"matrix has equal rows {seen[kind]} and {row}; give every hypothesis once")
        self.domain_size = self.matrix.shape[1]
        self.feature = check_count(feature, "feature", least=0)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.matrix)

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        return self.matrix[hypotheses, points]

    def describe(self, index: int) -> str:
        """The points that it says True about."""
        points = np.flatnonzero(self.matrix[self._known(index)])
        return f"x in {{{', '.join(map(str, points))}}}"


@saved_as_parameter
class Thresholds(_SizedDomainClass):
    """The functions [x > u] for u = 0, ..., N on the points 1, ..., N.

    Parameters
    ----------
    domain_size : int
        N, public. Up to 2**24 - 1; `ThresholdClassifier` takes up to 2**64 - 1 and does not enumerate.
    feature : int
        The column of X that has the point; see `FiniteClass`, with the points 1, ..., N.

    Examples
    --------
    >>> Thresholds(100).size, Thresholds(100).describe(99)
    (101, 'x > 99')
    """

    _cheaper = "use ThresholdClassifier, which groups them"

    @property
    def size(self) -> int:
        """N + 1."""
        return self.domain_size + 1

    @property
    def vc_dimension(self) -> int:
        """1."""
        return 1

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        return points > hypotheses

    def describe(self, index: int) -> str:
        """``x > u``."""
        return f"x > {self._known(index)}"


@saved_as_parameter
class Intervals(_SizedDomainClass):
    """The functions [a <= x <= b] for 1 <= a <= b <= N, and the one that is always False, on the points 1, ..., N.

    Parameters
    ----------
    domain_size : int
        N, public; N (N + 1) / 2 + 1 hypotheses, and so at most 5792.
    feature : int
        The column of X that has the point; see `FiniteClass`, with the points 1, ..., N.

    Examples
    --------
    >>> intervals = Intervals(3)
    >>> [intervals.describe(index) for index in range(4)]
    ['never', '1 <= x <= 1', '1 <= x <= 2', '2 <= x <= 2']
    """

    @property
    def size(self) -> int:
        """N (N + 1) / 2 + 1."""
        return self.domain_size * (self.domain_size + 1) // 2 + 1

    @property
    def vc_dimension(self) -> int:
        """2, or 1 with one point."""
        return min(2, self.domain_size)

    def _ends(self, hypotheses: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and last points: b's intervals have the numbers b (b - 1) / 2 + 1, ..., b (b + 1) / 2."""
        ends = np.arange(self.domain_size + 1)
        last = np.searchsorted(ends * (ends + 1) // 2, hypotheses)
        # Hypothesis 0 is (1, 0), which is empty.
        return np.where(last == 0, 1, hypotheses - last * (last - 1) // 2), last

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        first, last = self._ends(hypotheses)
        return (first <= points) & (points <= last)

    def describe(self, index: int) -> str:
        """``a <= x <= b``, or ``never``."""
        known = self._known(index)
        first, last = self._ends(np.array([known]))
        return f"{first[0]} <= x <= {last[0]}" if known else "never"


@saved_as_parameter
class PointFunctions(_SizedDomainClass):
    """The functions [x = v] for v = 1, ..., N, and the one that is always False (number 0), on the points 1, ..., N.

    Parameters
    ----------
    domain_size : int
        N, public. Up to 2**24 - 1; `HashedPointFunctions` represents them with a number that does not depend on N.
    feature : int
        The column of X that has the point; see `FiniteClass`, with the points 1, ..., N.

    Examples
    --------
    >>> PointFunctions(10).size, PointFunctions(10).describe(0), PointFunctions(10).describe(7)
    (11, 'never', 'x = 7')
    """

    _cheaper = "use HashedPointFunctions, which represents them with fewer"

    @property
    def size(self) -> int:
        """N + 1."""
        return self.domain_size + 1

    @property
    def vc_dimension(self) -> int:
        """1."""
        return 1

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        return points == hypotheses

    def describe(self, index: int) -> str:
        """``x = v``, or ``never``."""
        known = self._known(index)
        return f"x = {known}" if known else "never"


@saved_as_parameter
class Parities(DomainClass):
    """The parities of some of d bits: hypothesis a says whether x & a has an odd number of ones.

    Parameters
    ----------
    n_bits : int
        d, from 1 to 22, public; 2**d hypotheses.
    feature : int
        The column of X that has the point: an integer 0, ..., 2**d - 1 with the bits; see `FiniteClass`. Make it from
        columns of zeros and ones by ``bits @ (1 << np.arange(d))``.

    Examples
    --------
    >>> Parities(3).describe(5), Parities(3).predict(np.array([1, 5]), 5, 6).tolist()
    ('odd number of ones among the bits 0, 2', [[True], [False]])
    """

    first = 0

    def __init__(self, n_bits: int, *, feature: int = 0) -> None:
        self.n_bits = check_count(n_bits, "n_bits")
        self.feature = check_count(feature, "feature", least=0)
        if self.n_bits > MAX_PARITY_BITS:
            raise BudgetError(
                f"Parities(n_bits={self.n_bits}) has 2**{self.n_bits} hypotheses; at most {MAX_PARITY_BITS} bits are "
                "enumerated: choose the bits that matter beforehand"
            )
        self.domain_size = 2**self.n_bits

    @property
    def size(self) -> int:
        """2**d."""
        return int(2**self.n_bits)

    @property
    def vc_dimension(self) -> int:
        """The number of bits: the points with one bit are shattered."""
        return self.n_bits

    def _predict(self, points: npt.NDArray[np.int64], hypotheses: npt.NDArray[np.int64]) -> Bits:
        both = points & hypotheses
        for shift in (16, 8, 4, 2, 1):
            both ^= both >> shift
        return (both & 1).astype(np.bool_)

    def describe(self, index: int) -> str:
        """Which bits count."""
        known = self._known(index)
        bits = [str(bit) for bit in range(self.n_bits) if known >> bit & 1]
        return f"odd number of ones among the bits {', '.join(bits)}" if bits else "never"


def read_table(matrix: Any, shape: str) -> npt.NDArray[np.bool_]:
    """Read a 0/1 matrix of any numeric dtype as a copy; `shape` says what its two axes are, for messages."""
    try:
        table = np.array(matrix)
    except ValueError:
        raise ValueError("matrix must have rows of one length") from None
    if table.ndim != 2 or not table.size:
        raise ValueError(f"matrix must have the shape ({shape}), neither of them 0; got the shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"matrix must have entries 0 and 1; got dtype {table.dtype}")
    if not np.all((table == 0) | (table == 1)):
        raise ValueError("matrix must have entries 0 and 1 only")
    return table.astype(np.bool_)


@saved_as_parameter
class DecisionStumps(ConceptClass):
    """The functions [x_f > c] and [x_f <= c] for every feature f and every public cut c of it.

    Parameters
    ----------
    thresholds : sequence of sequences of float
        For each feature its cuts: finite, distinct, in any order, chosen without looking at the data. A feature with no
        cuts is not used. X needs at least so many columns.

    Raises
    ------
    BudgetError
        For more than 2**24 stumps.

    Notes
    -----
    Hypotheses are listed by feature, then by cut, then "above" before "at most". A cut below all values that a feature
    takes gives the constant functions. A NaN counts as below every cut. `vc_dimension` is the bound log2(size).

    Examples
    --------
    >>> stumps = DecisionStumps(thresholds=[[10, 12.5], [], [0]])
    >>> stumps.size, stumps.describe(3), stumps.describe(4)
    (6, 'feature 0 <= 12.5', 'feature 2 > 0.0')
    """

    def __init__(self, thresholds: Sequence[Sequence[float]]) -> None:
        if not is_listed(thresholds):
            raise TypeError(f"thresholds must have a sequence of cuts for each feature; got {short_repr(thresholds)}")
        self._cuts = tuple(_cuts(feature, cuts) for feature, cuts in enumerate(thresholds))
        lengths = [len(cuts) for cuts in self._cuts]
        check_size(2 * sum(lengths), "thresholds", "give fewer cuts")
        self._feature_of_cut = np.repeat(np.arange(len(lengths)), lengths)
        self._place_of_cut = np.concatenate([np.arange(length) for length in lengths])

    @property
    def thresholds(self) -> tuple[tuple[float, ...], ...]:
        """The cuts of each feature, in increasing order."""
        return tuple(tuple(cuts.tolist()) for cuts in self._cuts)

    @property
    def n_columns(self) -> int:
        """So many of the first columns of X are read."""
        return len(self._cuts)

    @property
    def size(self) -> int:
        """Twice the number of cuts."""
        return 2 * len(self._feature_of_cut)

    def points(self, X: npt.NDArray[Any]) -> Points:
        """For each feature how many of its cuts a row is above: all that stumps see of it."""
        above = np.empty((len(X), len(self._cuts)), dtype=np.int32)
        for feature, cuts in enumerate(self._cuts):
            values = column_of(X, feature).astype(np.float64)
            values[np.isnan(values)] = -np.inf
            above[:, feature] = np.searchsorted(cuts, values)
        return above

    @property
    def reading(self) -> Hashable:
        """All cuts."""
        return self.thresholds

    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What stumps say about points; see `ConceptClass.predict`."""
        hypotheses = self._range(start, stop)
        cut, at_most = hypotheses // 2, hypotheses % 2 == 1
        return (points[:, self._feature_of_cut[cut]] > self._place_of_cut[cut]) ^ at_most

    def describe(self, index: int) -> str:
        """``feature f > c`` or ``feature f <= c``."""
        cut, at_most = divmod(self._known(index), 2)
        feature = int(self._feature_of_cut[cut])
        return f"feature {feature} {'<=' if at_most else '>'} {self._cuts[feature][self._place_of_cut[cut]]}"


def _cuts(feature: int, cuts: Any) -> npt.NDArray[np.float64]:
    """The cuts of a feature, sorted."""
    name = f"thresholds[{feature}]"
    if not is_listed(cuts):
        raise TypeError(f"{name} must be a sequence of numbers; got {short_repr(cuts)}")
    numbers = []
    for cut in cuts:
        try:
            number = exact_number(cut)
            numbers.append(float("inf") if number is None else float(number))
        except OverflowError:
            numbers.append(float("inf"))
        except TypeError:
            raise TypeError(f"{name} must be numbers; got {short_repr(cut)}") from None
        except ValueError as error:
            raise ValueError(f"{name}: {short_repr(cut)} is {error}") from None
        if numbers[-1] == float("inf"):
            raise ValueError(f"{name} must be finite; got {short_repr(cut)}")
    ordered = np.sort(np.array(numbers, dtype=np.float64))
    if np.any(ordered[1:] == ordered[:-1]):
        raise ValueError(f"{name} has equal cuts; give every cut once")
    return ordered
