"""What a stable learner is: every user runs it alone, on their own rows, with the same public seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass
from userdp.exact.numbers import check_kind, is_integer, short_repr
from userdp.public_randomness.seed import PublicSeed
from userdp.users.table import UserTable
from userdp.users.vectors import aligned

Labels = npt.NDArray[np.uint8]


class StableLearner(ABC):
    """Turns one user's rows and a public seed into one item: the hypothesis that the user votes for.

    Users of one distribution should mostly get the same item ([GKM21, Definition 15]); a private selection then finds
    it from the votes.

    Attributes
    ----------
    default : hashable
        The item of users from whom nothing is learned: those without rows, those whose rows make `item` fail. Public
        and fixed: not a function of anybody's rows.

    Notes
    -----
    Replacing a user changes that user's item and no other. This is what the privacy of everything after it rests on, so
    a subclass must make `item` a function of its arguments alone: public randomness is asked of the seed by address
    (``seed.block(label, i, j)``), never drawn from a stream whose position depends on how much another user drew, and
    nothing may be kept from user to user: no warm start, no cache or list of what was seen before, no global generator.
    `items` cannot check it; docs/proofs/stability.md says what goes wrong.
    """

    default: Hashable

    @abstractmethod
    def item(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> Hashable:
        """The item that one user votes for.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
            The rows of one user, at least one, in the user's order. They may hold anything: NaN, infinities.
        labels : ndarray of uint8 with shape (rows,)
            0 or 1.
        seed : PublicSeed
            The same for all users, and fixed before there are data.

        Returns
        -------
        hashable
            An exception counts as `default` in `items`.
        """

    def predict(self, item: Any, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What the hypothesis that an item stands for says about rows, True for label 1.

        Raises
        ------
        NotImplementedError
            For learners whose items are not hypotheses.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its items predict")

    def items(self, data: UserTable, seed: PublicSeed) -> Sequence[Hashable]:
        """One item for every user slot 0, ..., n_users - 1, each from that user's rows alone.

        Parameters
        ----------
        data : UserTable
            Rows by user.
        seed : PublicSeed

        Returns
        -------
        sequence of length n_users
            `default` for users without rows, and for those on whom `item` raises or returns what has no hash: an error
            about a user's rows would be an output that no privacy budget pays for. So would a warning: NumPy's are
            off, and `item` must not give any of its own.
        """
        public = PublicSeed(seed)
        return [
            self._total(aligned(data.X[rows]), aligned(data.labels[rows]), public) if len(rows) else self.default
            for rows in rows_by_user(data)
        ]

    def _total(self, X: npt.NDArray[Any], labels: Labels, seed: PublicSeed) -> Hashable:
        try:
            with np.errstate(all="ignore"):
                item = self.item(X, labels, seed)
            hash(item)
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a user's rows lead to, `sys.exit` included
            return self.default
        return item


class ClassLearner(StableLearner):
    """A stable learner whose items are the hypotheses of a public class, by index.

    Attributes
    ----------
    hypotheses : ConceptClass
    default : int
        An index.
    """

    hypotheses: ConceptClass
    default: int

    def __init__(self, hypotheses: ConceptClass, default: int = 0) -> None:
        check_kind(hypotheses, ConceptClass, "hypotheses")
        if not is_integer(default):
            raise TypeError(f"default must be the index of a hypothesis; got {short_repr(default)}")
        if not 0 <= default < hypotheses.size:
            raise ValueError(f"default must be an index in 0, ..., {hypotheses.size - 1}; got {short_repr(default)}")
        self.hypotheses = hypotheses
        self.default = int(default)

    def predict(self, item: int, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a hypothesis says about rows; see `StableLearner.predict`."""
        return self.hypotheses.predict(self.hypotheses.points(X), item, item + 1)[:, 0]


def rows_by_user(data: UserTable) -> Iterator[npt.NDArray[np.intp]]:
    """For every user slot, the numbers of its rows in their order."""
    order = np.argsort(data.users, kind="stable")
    ends = np.searchsorted(data.users[order], np.arange(data.n_users + 1))
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield order[start:stop]
