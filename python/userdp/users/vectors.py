"""One vector for each user, never stored, and integer sums of them that one user changes by little.

Neighbors: all rows of one user are replaced; the number of users is public. A user's integers are a function of that
user's rows and of public numbers alone, to the last bit: they do not depend on other users, on where rows are, on
threads or on the machine's vector instructions. Their range, or norm, is enforced in integers. So the sensitivities
below hold whatever the rows are, and whatever floating-point arithmetic does (docs/proofs/user_vectors.md).

The sums are private inputs of mechanisms: none may be released without noise.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import short_repr
from userdp.runtime import progress_bar
from userdp.users.table import UserTable

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ALIGNMENT = 64
"""Bytes. NumPy's sums and products may round otherwise at other addresses."""

LARGEST = 2.0**400
"""What infinities count as, as in the core."""

SHARE_STEPS = 1024
"""What all rows of a user are as a share of them."""

NUMBERS_AT_ONCE = 2**22
"""Bins of users that may be listed at once, unless the users' own vectors are far more numbers."""


class UserVectors(ABC):
    """One vector for each user.

    Attributes
    ----------
    n_users : int
        Public. Users may be without rows, and then have no vector.
    dimension : int
        The length of vectors: of rotated ones, a power of two.
    """

    n_users: int
    dimension: int
    _vectors: _core.UserVectors

    def clipped_sum(self, center: npt.ArrayLike, radius: float, grid: float) -> Integers:
        """The sum of vectors clipped to a ball, in steps of a grid; L2 sensitivity 2R, R = floor(radius / grid).

        A user's integers are trunc((x - center) s / grid), where s <= 1 takes x - center into the ball, and their sum
        of squares is at most R^2, by a check in integers. Users without rows have zeros.

        Parameters
        ----------
        center : float or array-like with shape (dimension,)
            Public.
        radius, grid : float
            Public; the grid is a power of two, and R is from 1 to 2^31 - 1.

        Returns
        -------
        ndarray of int64 with shape (dimension,)
        """
        with progress_bar(None, "clipped sum") as progress:
            return self._vectors.clipped_sum(self._point(center), radius, grid, progress)

    def clipped_moments(self, center: npt.ArrayLike, radius: float, grid: float, squares: int) -> tuple[Integers, int]:
        """The `clipped_sum`, and the sum of squared distances from the center, cut at twice the radius.

        A user adds floor(min(|x - center|^2 / (2 R grid)^2, 1) squares) to the second, clamped to 0..squares in
        integers: its sensitivity is `squares`. Users without rows add 0 to both.

        Parameters
        ----------
        center, radius, grid
            As for `clipped_sum`.
        squares : int
            How many steps (2 R grid)^2 has, from 1 to 2^31 - 1; public.

        Returns
        -------
        ndarray of int64 with shape (dimension,)
        int
        """
        with progress_bar(None, "clipped sum") as progress:
            return self._vectors.clipped_moments(self._point(center), radius, grid, squares, progress)

    def clipping_excess(
        self, center: npt.ArrayLike, radius: float, reach: float, grid: float, rungs: int
    ) -> tuple[Integers, Integers]:
        """What clipping to a ball of R = floor(radius / grid) steps leaves out, in one pass over users.

        With y a user's vector as in `clipped_sum` with the radius `reach`, and q its length in steps, rounded up, the
        user adds trunc(y s / q), s = min(max(q - R, 0), R), to the first sum, whose L2 sensitivity is 2R; and
        floor(min(max(q - 2^i R, 0), 2^i R) / 2^i) to entry i - 1 of the second, whose entries have a sensitivity of R.
        Users without rows add 0.

        Parameters
        ----------
        center : float or array-like with shape (dimension,)
            Public.
        radius, reach, grid : float
            Public; the grid is a power of two, and the others are from 1 to 2^31 - 1 steps of it.
        rungs : int
            The length of the second, from 0 to 30.

        Returns
        -------
        ndarray of int64 with shape (dimension,)
        ndarray of int64 with shape (rungs,)
        """
        with progress_bar(None, "clipping excess") as progress:
            return self._vectors.clipping_excess(self._point(center), radius, reach, grid, rungs, progress)

    def winsorized_sum(self, low: npt.ArrayLike, steps: int, grid: float) -> Integers:
        """The sum of coordinates clamped to intervals, in steps of a grid; sensitivity `steps` in each coordinate.

        A user's integers are floor((x - low) / grid + 1/2), clamped to 0..steps. Users without rows have steps // 2.

        Parameters
        ----------
        low : float or array-like with shape (dimension,)
            The intervals' lower ends, public.
        steps : int
            How long the intervals are, from 1 to 2^31 - 1, public.
        grid : float
            A power of two, public.

        Returns
        -------
        ndarray of int64 with shape (dimension,)
        """
        with progress_bar(None, "winsorized sum") as progress:
            return self._vectors.winsorized_sum(self._point(low), steps, grid, progress)

    def bin_counts(self, bins: int, bound: float) -> npt.NDArray[np.uint32]:
        """How many users each bin of each coordinate has; one user is in at most one bin of a coordinate.

        The bins divide [-bound, bound] evenly, x is in bin floor((x + bound) bins / (2 bound)), and what is outside is
        in the first bin or in the last. Users without rows are in none.

        Returns
        -------
        ndarray of uint32 with shape (dimension, bins)

        Raises
        ------
        BudgetError
            For more than 2^23 bins in all coordinates together; `occupied_bins` takes any number.
        """
        with progress_bar(None, "bins") as progress:
            return self._vectors.bin_counts(bins, bound, progress)

    def occupied_bins(self, bins: int, bound: float) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]]:
        """The bins with users in them, in increasing order, and how many are in each, coordinate after coordinate.

        Like `bin_counts`, for up to 2^62 bins. Vectors are made anew for every few coordinates.

        Yields
        ------
        bins : ndarray of uint64
        counts : ndarray of uint32
        """
        at_once = max(1, self.dimension // 32, NUMBERS_AT_ONCE // max(1, self.n_users))
        for start in range(0, self.dimension, at_once):
            end = min(self.dimension, start + at_once)
            with progress_bar(None, "bins") as progress:
                occupied = self._vectors.occupied_bins(start, end, bins, bound, progress)
            yield from occupied

    def counts_within(self, center: npt.ArrayLike, radii: npt.ArrayLike) -> Integers:
        """How many users are at most at each distance from a public center; sensitivity 1 in each count.

        Users without rows count in none.

        Returns
        -------
        ndarray of int64 with the shape of radii, which is (k,)
        """
        distances = np.ascontiguousarray(radii, dtype=np.float64)
        with progress_bar(None, "distances") as progress:
            return self._vectors.counts_within(self._point(center), distances, progress)

    def counts_at_most(self, levels: npt.ArrayLike) -> Integers:
        """How many users have an entry of at most each level; sensitivity 1 in each count.

        Users without rows count in none.

        Parameters
        ----------
        levels : array-like with shape (dimension, k)
            Public: as many for each entry.

        Returns
        -------
        ndarray of int64 with shape (dimension, k)
        """
        with progress_bar(None, "levels") as progress:
            return self._vectors.counts_at_most(np.ascontiguousarray(levels, dtype=np.float64), progress)

    def subset(self, users: Sequence[int] | npt.NDArray[np.integer]) -> UserVectors:
        """The vectors of some users only, each listed once: a public choice, never one by what is in rows.

        Of one user, the sums are that user's integers: for tests.
        """
        return _Derived(self._vectors.subset([int(user) for user in users]), len(users), self.dimension)

    def filled(self) -> UserVectors:
        """The same vectors, and the origin for users without rows, who then count in all sums."""
        return _Derived(self._vectors.filled(), self.n_users, self.dimension)

    def rotated(self, signs: npt.NDArray[np.int8]) -> UserVectors:
        """The same vectors padded with zeros, multiplied by signs and by the Walsh-Hadamard matrix over sqrt(D)."""
        return _Derived(self._vectors.rotated(signs.tolist()), self.n_users, len(signs))

    def _point(self, values: npt.ArrayLike) -> Floats:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), (self.dimension,)))


class _Derived(UserVectors):
    def __init__(self, vectors: _core.UserVectors, n_users: int, dimension: int) -> None:
        self.n_users, self.dimension, self._vectors = n_users, dimension, vectors


class MeanVectors(UserVectors):
    """The mean of each user's rows, every row clipped first.

    A row less the center, in units of columns, is clipped to the ball (norm="l2") or cube (norm="max") of radius
    `bound`; NaN counts as the center, infinities as the largest numbers. The rows of a user are summed in their order.
    Vectors are thus relative to the center.

    Parameters
    ----------
    data : UserTable
        Tables of C-contiguous doubles, and of other floats and integers in any layout, are read where they are.
    bound : float
        From 2^-400 to 2^400; public, like all that follows.
    norm : {"l2", "max"}
    center : array-like with shape (columns,), optional
        The origin by default.
    signs : array of -1 and 1, optional
        Of the length of rows padded with zeros to a power of two, D: vectors are multiplied by the signs, and by the
        Walsh-Hadamard matrix over sqrt(D), a rotation.
    rows : RowsOfUsers, optional
        Those of data, where several tables have the same.
    units : array-like with shape (columns,), optional
        What the numbers of every column are divided by after the center is subtracted, before they are clipped.
    """

    def __init__(
        self,
        data: UserTable,
        bound: float,
        norm: str = "l2",
        center: npt.ArrayLike | None = None,
        signs: npt.NDArray[np.int8] | None = None,
        rows: _core.RowsOfUsers | None = None,
        units: npt.ArrayLike | None = None,
    ) -> None:
        if norm not in ("l2", "max"):
            raise ValueError(f"norm must be 'l2' or 'max'; got {short_repr(norm)}")
        rows = rows_of_users(data.users, data.n_users) if rows is None else rows
        self.n_users = data.n_users
        self.dimension = data.X.shape[1] if signs is None else len(signs)
        origin, scales = (
            None if numbers is None else np.asarray(numbers, dtype=np.float64).tolist() for numbers in (center, units)
        )
        turned = None if signs is None else signs.tolist()
        self._vectors = _core.UserVectors.means(readable(data.X), rows, norm, float(bound), origin, turned, scales)


class GivenVectors(UserVectors):
    """Vectors that a caller computed for each user, from that user's rows and public numbers alone.

    Parameters
    ----------
    vectors : array with shape (n_users, d)
        NaN counts as 0, and numbers beyond 2^400 as that.
    present : array of bool with shape (n_users,)
        Whether users have rows.
    signs : array of -1 and 1, optional
        As for `MeanVectors`.
    """

    def __init__(
        self,
        vectors: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        signs: npt.NDArray[np.int8] | None = None,
    ) -> None:
        self.n_users = len(vectors)
        self.dimension = vectors.shape[1] if signs is None else len(signs)
        users = np.flatnonzero(present).astype(np.uint32)
        table = readable(vectors if len(users) == len(vectors) else vectors[users])
        self._vectors = _core.UserVectors.means(
            table, rows_of_users(users, self.n_users), "l2", None, None, None if signs is None else signs.tolist()
        )


class JointRows:
    """Users' rows as linear models see them: features, a target behind them, in public units.

    Features are in the cube or ball of radius 1, targets in [-1, 1]; NaN counts as 0. In units a feature x is
    z = (x - center) / scale, there may be a constant 1 behind features, and a target is y - target. A row with a z
    beyond 4 is multiplied by 4 over its largest z, all of it: the constant and the target, too. Nothing is stored: rows
    are read anew for every sum.

    Parameters
    ----------
    data : UserTable
        Its labels are the targets.
    norm : {"l2", "max"}
        Rows outside the ball, or the cube, are moved into it.
    with_targets : bool
        Whether there are targets.
    center, scale : ndarray with shape (features,), optional
        Public; scales are positive.
    constant : bool
        Whether rows in units have a constant.
    target : float
        What targets in units are measured from, public.
    """

    def __init__(
        self,
        data: UserTable,
        norm: str,
        with_targets: bool,
        center: Floats | None = None,
        scale: Floats | None = None,
        constant: bool = False,
        target: float = 0.0,
        rows: _core.RowsOfUsers | None = None,
    ) -> None:
        self.n_users = data.n_users
        self.dimension = data.n_columns + (constant if center is not None else with_targets)
        self._rows = rows_of_users(data.users, data.n_users) if rows is None else rows
        self._labels = np.ascontiguousarray(data.labels, dtype=np.float64)
        self._arguments = data, norm, with_targets
        self._joint = _core.JointRows(
            readable(data.X),
            self._labels if with_targets else None,
            self._rows,
            norm,
            None if center is None else center.tolist(),
            None if scale is None else (1 / scale).tolist(),
            constant,
            target,
        )

    def in_units(self, center: Floats, scale: Floats, *, constant: bool, target: float = 0.0) -> JointRows:
        """The same rows in units."""
        return JointRows(*self._arguments, center, scale, constant, target, self._rows)

    def means(self) -> UserVectors:
        """The mean of each user's rows, with targets."""
        return _Derived(self._joint.means(), self.n_users, self.dimension)

    def spreads(self, center: Floats) -> UserVectors:
        """The root mean square of each feature about a public center, over the rows of each user."""
        return _Derived(self._joint.spreads(center.tolist()), self.n_users, len(center))

    def shares_beyond(self, column: int, center: float, distances: Sequence[float]) -> Integers:
        """The shares of users' rows in which a feature is farther from a center than each distance, summed over users.

        A share is an integer, rounded down, from 0 to 1024, so that one user moves each sum by 1024 at most. The center
        and the distances, which rise, are public. Rows are as they are before units.
        """
        # Every operation is rounded number by number: where a row is, and beside which others, changes nothing.
        data = self._arguments[0]
        away = np.abs(np.clip(_numbers(data.X[:, column]) * self._factors, -1.0, 1.0) - center)
        sums, users, rows = [], data.users, self._rows_of_each
        for distance in distances:
            away, users = away[away > distance], users[away > distance]
            sums.append(np.sum(SHARE_STEPS * np.bincount(users, minlength=self.n_users) // rows))
        return np.array(sums, dtype=np.int64)

    @cached_property
    def _rows_of_each(self) -> Integers:
        """How many rows each user has; 1 for none, to divide by."""
        return np.maximum(np.bincount(self._arguments[0].users, minlength=self.n_users), 1)

    @cached_property
    def _factors(self) -> Floats | float:
        """What takes rows into the ball; 1 in the cube, where numbers are cut by themselves."""
        data, norm, _ = self._arguments
        if norm != "l2":
            return 1.0
        squares = np.zeros(len(data.X))
        for column in data.X.T:
            squares += _numbers(column) ** 2
        factors: Floats = 1 / np.maximum(np.sqrt(squares), 1.0)
        return factors

    def class_shares(self) -> Integers:
        """The shares of users' rows of the second class, and of those whose label is neither, summed over users.

        Shares are integers, rounded down, from 0 to 1024, and so is their sum: replacing one user moves the pair by at
        most 1024 sqrt(2) in Euclidean length. Rows of neither class are in this sum only. Users without rows add 0.

        Returns
        -------
        ndarray of int64 with shape (2,)
        """
        data = self._arguments[0]
        outside = np.zeros(0, dtype=np.uint32) if data.outside is None else data.outside
        counts = [np.bincount(users, minlength=self.n_users) for users in (data.users[self._labels > 0], outside)]
        rows = np.maximum(np.bincount(data.users, minlength=self.n_users) + counts[1], 1)
        return np.array([np.sum(SHARE_STEPS * count // rows) for count in counts], dtype=np.int64)

    def whitened(self, center: Floats, scale: Floats, matrix: Floats, *, constant: bool, radius: float) -> WhitenedRows:
        """These rows, which are without units, in units, with the constant behind them, times a matrix.

        Users whose second moments in units have a Frobenius norm beyond the radius count less, as they do in these.
        """
        with progress_bar(None, "rows") as progress:
            rows = self._joint.whitened(
                self._labels,
                center.tolist(),
                (1 / scale).tolist(),
                np.ascontiguousarray(matrix.T),
                constant,
                radius,
                progress,
            )
        return WhitenedRows(rows, self.n_users, len(matrix))

    def norm_counts(self, radii: Floats) -> Integers:
        """How many users' second moments of features have at most each Frobenius norm; sensitivity 1 in each count.

        The second moments of a user are A, the mean over the user's rows of z z^T, z the features of a row in units
        with the constant. Users without rows count in all.
        """
        with progress_bar(None, "moments") as progress:
            return self._joint.norm_counts(radii, progress)

    def moment_sum(self, radius: int, grid: float) -> Integers:
        """The sum over users of their second moments, each clipped to a Frobenius norm of `radius` steps of a grid.

        Replacing one user moves it by at most sqrt(2) (radius + 2 D) in Frobenius norm, for D columns with the
        constant, both halves of the symmetric matrix counted (docs/proofs/moments.md). Users without rows add 0.

        Parameters
        ----------
        radius : int
            From 1 to 2^31 - 1.
        grid : float
            A power of two from 2^-40 to 2^40.

        Returns
        -------
        ndarray of int64 with shape (D (D + 1) / 2,)
            The upper triangle, row after row.
        """
        with progress_bar(None, "moments") as progress:
            return self._joint.moment_sum(radius, grid, None, progress)

    def weighted_moment_sum(self, radius: int, grid: float, *, norm: float, factor: float, longest: float) -> Integers:
        """The same of rows with the target times a factor behind them, users weighted by their features.

        A user's weight is min(1, norm / |A|). Replacing one user moves the sum by at most sqrt(2) (radius + 2 D + 1),
        for D columns with the constant and the target.

        Parameters
        ----------
        radius, grid
            As for `moment_sum`.
        norm, factor : float
            Positive and public.
        longest : float
            What a target times the factor is at most, up to 256; it has 2^29 steps of that or more.

        Returns
        -------
        ndarray of int64 with shape (D (D + 1) / 2,)
        """
        with progress_bar(None, "moments") as progress:
            return self._joint.moment_sum(radius, grid, (factor, longest, norm), progress)

    def products(self, norm: float) -> UserVectors:
        """The mean of z times the target over the rows of each user, times min(1, norm / |A|).

        No longer than sqrt(norm) times the largest target. Users without rows have none.
        """
        return _Derived(self._joint.products(norm), self.n_users, self.dimension)


class WhitenedRows:
    """Users' rows x of features in whitened units, read once: for the gradients of a logistic regression.

    A row z in units counts with the weight w = min(1, 4 / max |z_k|), a function of features alone.
    """

    def __init__(self, rows: _core.WhitenedRows, n_users: int, dimension: int) -> None:
        self._rows, self.n_users, self.dimension = rows, n_users, dimension

    def shares_within(self, lengths: Floats) -> Integers:
        """The shares of users' rows with w |x| up to each length, summed over users.

        Shares are integers, rounded down, from 0 to 1024, which is that of users without rows. Lengths rise, and so do
        a user's shares: of two users they differ by numbers in an interval of width 1024.
        """
        with progress_bar(None, "lengths") as progress:
            return self._rows.shares_within(np.ascontiguousarray(lengths, dtype=np.float64), progress)

    def gradients(self, theta: Floats, longest: float) -> UserVectors:
        """The mean over each user's rows of w (p - y) x, p the probability at theta; all shortened as w |x| must be.

        A row's factor is min(1, longest / (w |x|)): whatever y is, and no gradient is longer than that.
        """
        return _Derived(self._rows.gradients(theta.tolist(), longest), self.n_users, self.dimension)


def _numbers(column: npt.NDArray[np.generic]) -> Floats:
    """A column as doubles, 0 for NaN, within what the core takes infinities for."""
    with np.errstate(all="ignore"):
        numbers = column.astype(np.float64)
    return np.clip(np.where(np.isnan(numbers), 0.0, numbers), -LARGEST, LARGEST)


def rows_of_users(users: npt.NDArray[np.uint32], n_users: int) -> _core.RowsOfUsers:
    """Which rows each user has."""
    return _core.RowsOfUsers(np.ascontiguousarray(users, dtype=np.uint32), n_users)


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy for a callback, at an address that is a multiple of 64: what it returns must not depend on an address."""
    room = np.empty(array.nbytes + ALIGNMENT, dtype=np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    copy: npt.NDArray[Any] = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def readable(table: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """A matrix of numbers as the core reads them: where it is, unless its type is none that the machine has."""
    machine = table.dtype.isnative and table.flags.aligned and table.dtype.char not in "eg"
    if machine:
        return table
    with np.errstate(all="ignore"):
        return table.astype(np.float64)
