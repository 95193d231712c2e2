"""Decision stumps: one feature compared with one public cut."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import Bits, ConceptClass, Points, check_size, column_of
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import exact_number, short_repr


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
    TypeError, ValueError
        For cuts that are not finite numbers, equal cuts of a feature, and no cuts at all.
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
        if isinstance(thresholds, (str, bytes)) or not isinstance(thresholds, Iterable):
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

    @property
    def vc_dimension(self) -> int:
        """A bound: a class that shatters k points has at least 2**k hypotheses."""
        return self.size.bit_length() - 1

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
        predictions: Bits = (points[:, self._feature_of_cut[cut]] > self._place_of_cut[cut]) ^ at_most
        return predictions

    def describe(self, index: int) -> str:
        """``feature f > c`` or ``feature f <= c``."""
        cut, at_most = divmod(self._known(index), 2)
        feature = int(self._feature_of_cut[cut])
        return f"feature {feature} {'<=' if at_most else '>'} {self._cuts[feature][self._place_of_cut[cut]]}"

    def _arguments(self) -> dict[str, Any]:
        return {"thresholds": self.thresholds}


def _cuts(feature: int, cuts: Any) -> npt.NDArray[np.float64]:
    """The cuts of a feature, sorted."""
    name = f"thresholds[{feature}]"
    if isinstance(cuts, (str, bytes)) or not isinstance(cuts, Iterable):
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
    listed = np.sort(np.array(numbers, dtype=np.float64))
    if np.any(listed[1:] == listed[:-1]):
        raise ValueError(f"{name} has equal cuts; give every cut once")
    return listed
