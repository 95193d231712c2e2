"""Splitters that place each user by a hash of the user's public id and a public seed, and of nothing else.

scikit-learn's own look at all labels, or count everybody's rows, so that one user moves others from fold to fold:
docs/model-selection.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable

from userdp.exact.numbers import check_count, is_integer, short_repr
from userdp.users.table import read_ids

Rows: TypeAlias = npt.NDArray[np.intp]

WHOLE = 2**128
"""Places are integers in [0, WHOLE)."""


def place_of(user: bytes, seed: int, purpose: str, split: int) -> int:
    """Return where a user stands in a split, uniform in [0, 2**128): a hash of the id and of public numbers."""
    address = purpose.encode() + b"\0" + seed.to_bytes(32, "big") + split.to_bytes(8, "big")
    return int.from_bytes(sha256(address + user).digest()[:16], "big")


class PublicSplitter(BaseCrossValidator):  # type: ignore[misc]
    """What both splitters share: parameters, and rows by user."""

    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(self, n_splits: int, random_state: int, least: int) -> None:
        check_count(n_splits, "n_splits", least=least)
        if not is_integer(random_state):
            kind = type(random_state).__name__
            raise TypeError(
                f"random_state must be a public int in [0, 2**256); got {short_repr(random_state)} of type {kind}"
            )
        if not 0 <= random_state < 2**256:
            raise ValueError(f"random_state must be a public int in [0, 2**256); got {short_repr(random_state)}")
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits; the arguments are ignored."""
        return int(self.n_splits)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield rows to learn from and rows to test on, as numbers of rows; all rows of a user are in the same part.

        Parameters
        ----------
        X, y : array-like with n rows, y optional
            Only their lengths are looked at.
        groups : array-like with n rows
            Whose row it is: public ids, as `userdp.users` reads them. Rows without one are in no part.

        Yields
        ------
        train, test : ndarray
        """
        if groups is None:
            raise ValueError(f"{type(self).__name__} places users by their ids: groups must be given")
        X, y, groups = indexable(X, y, groups)
        owners, users = read_ids(groups, X.shape[0] if hasattr(X, "shape") else len(X))
        rows = np.arange(len(owners.codes)) if owners.owned is None else np.flatnonzero(owners.owned)
        for number, (train, test) in enumerate(self._parts(users)):
            for part, members in (("train", train), ("test", test)):
                if not members.any():
                    raise ValueError(
                        f"groups: none of the {len(users)} users is in the {part} part of split {number}, as sizes are "
                        "random; use fewer or larger parts, or another random_state"
                    )
            yield rows[train[owners.codes]], rows[test[owners.codes]]

    def _places(self, users: list[bytes], split: int) -> list[int]:
        return [place_of(user, int(self.random_state), type(self).__name__, split) for user in users]

    @abstractmethod
    def _parts(self, users: list[bytes]) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        """Which users each split learns from and tests on."""


class UserKFold(PublicSplitter):
    """K folds of users, each of whom is placed by a hash of their own public id.

    A user's fold depends on that id, `n_splits` and `random_state` alone: adding, removing or changing a user moves
    nobody else. The price is that the sizes of folds are random: of n users about n / `n_splits` are in each fold, give
    or take the root of that.

    The scores of a cross-validation are not private, whatever makes its folds.

    Parameters
    ----------
    n_splits : int, default 5
        The number of folds, at least 2.
    random_state : int, default 0
        In [0, 2**256). Public, and to be fixed before data are looked at; it protects nobody.

    See Also
    --------
    UserShuffleSplit : Any number of splits, with test parts of any size.

    Notes
    -----
    The formula is in docs/model-selection.md, so that anybody can tell who is in which fold.

    Examples
    --------
    >>> import numpy as np
    >>> users = np.repeat(["ann", "bob", "cem", "dora"], 2)
    >>> for train, test in UserKFold(2).split(np.zeros((8, 1)), groups=users):
    ...     print(*np.unique(users[train]), "|", *np.unique(users[test]))
    dora | ann bob cem
    ann bob cem | dora
    """

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        super().__init__(n_splits, random_state, least=2)

    def _parts(self, users: list[bytes]) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        n_splits = int(self.n_splits)
        folds = np.array([place * n_splits // WHOLE for place in self._places(users, 0)])
        for fold in range(n_splits):
            yield folds != fold, folds == fold


class UserShuffleSplit(PublicSplitter):
    """Random splits of users, each of whom is placed by a hash of their own public id and the number of the split.

    As in `UserKFold`, nobody moves anybody else, and sizes are random: `test_size` is the probability with which a user
    is in the test part.

    Parameters
    ----------
    n_splits : int, default 5
        The number of splits.
    test_size : float, default 0.2
        The expected share of users in test parts, in (0, 1). Numbers of users are refused: who they are would depend on
        everybody.
    train_size : float, optional
        The expected share of users to learn from, in (0, 1 - `test_size`]; by default all others.
    random_state : int, default 0
        In [0, 2**256). Public, and to be fixed before data are looked at; it protects nobody.

    See Also
    --------
    UserKFold : Every user is in one test part.

    Examples
    --------
    >>> import numpy as np
    >>> users = np.arange(1000)
    >>> [len(test) for _, test in UserShuffleSplit(3, test_size=0.1).split(users, groups=users)]
    [110, 95, 104]
    """

    def __init__(
        self, n_splits: int = 5, *, test_size: float = 0.2, train_size: float | None = None, random_state: int = 0
    ) -> None:
        super().__init__(n_splits, random_state, least=1)
        _share(test_size, "test_size")
        if train_size is not None:
            _share(train_size, "train_size")
            if test_size + train_size > 1:
                raise ValueError(
                    f"test_size and train_size must add up to at most 1; got {short_repr(test_size)} and "
                    f"{short_repr(train_size)}"
                )
        self.test_size = test_size
        self.train_size = train_size

    def _parts(self, users: list[bytes]) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        below = int(Fraction(float(self.test_size)) * WHOLE)
        least = below if self.train_size is None else max(below, WHOLE - int(Fraction(float(self.train_size)) * WHOLE))
        for split in range(int(self.n_splits)):
            places = self._places(users, split)
            yield np.array([place >= least for place in places]), np.array([place < below for place in places])


def _share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or is_integer(value):
        raise TypeError(f"{name} must be a float in (0, 1), the expected share of users; got {short_repr(value)}")
    if not 0 < float(value) < 1:
        raise ValueError(f"{name} must be in (0, 1), the expected share of users; got {short_repr(value)}")
