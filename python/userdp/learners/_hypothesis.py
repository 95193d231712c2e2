"""Selection of a distribution from public candidates."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp._numbers import Epsilon, exact_number, shown
from userdp.learners._clipped import Scheffe
from userdp.learners._pairwise import SymbolSelector, grid_unit

__all__ = ["HypothesisSelector", "on_grid"]


class HypothesisSelector(SymbolSelector):
    """Choose the one of K public distributions that people's examples come from.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The budget, all spent on one draw.
    candidates : array-like with shape (K, Z)
        Distinct distributions on the symbols 0, ..., Z - 1, K >= 2. Floats may miss the sum 1 by 1e-9.
    m : int
        The most examples of a user that count: the first m.
    alpha : float in (0, 1)
        The accuracy in total variation, which the default of tau depends on.
    beta : float in (0, 1)
        The failure probability in `users_needed`.
    tau : float, int, Fraction or decimal string, optional
        Where a user's sum for a pair is clipped, in (0, m]; by default `clipping_bound(alpha, m, 1)`, which is public.
    granularity : float, int or Fraction
        A power of two at most 1: the masses of candidates are rounded to its multiples, publicly, and the sets of
        symbols that compare candidates are decided on these.
    on_invalid, require_groups, enrolled, random_state
        As for `PairwiseScoreSelector`.

    Attributes
    ----------
    selected_ : int
        The candidate, from 0 to K - 1. Released.
    distribution_ : ndarray with shape (Z,)
        Its masses, as given. Released.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Score* of a: the maximum over b != a of the sum over users of clip(P_a(W) k - #{examples in W}, +-tau), with k the
    number of the user's examples and W the symbols that are likelier under a than under b, strictly. *Sensitivity* when
    one user is replaced: min(2 tau, m); see docs/proofs/user_level_scores.md. (For every pair psi takes two values that
    differ by 1.) All of epsilon goes to one exponential mechanism.

    *Utility.* If some candidate is within alpha / 10 of the truth in total variation, the one selected is within
    0.7 alpha, with probability 1 - beta, for `users_needed()` users of m independent examples each: its score is at
    most alpha / 2, so it gives W less than alpha / 2 more than the truth does, and the truth is within alpha / 10 of
    the candidate nearby. Rounding of masses adds at most Z granularity / 2 to the distances.

    References
    ----------
    GKKMMZ23, Appendix E, Theorem 41: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy
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

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        candidates: npt.ArrayLike,
        m: int | None = None,
        alpha: float = 0.1,
        beta: float = 0.1,
        tau: float | Fraction | str | None = None,
        granularity: float | Fraction = 2**-20,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.candidates = candidates
        self.m = m
        self.alpha = alpha
        self.beta = beta
        self.tau = tau
        self.granularity = granularity
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _check_parameters(self) -> None:
        self._masses = _candidate_masses(self.candidates, grid_unit(self.granularity))
        super()._check_parameters()

    def _shape(self) -> tuple[int, int]:
        k, n_symbols = self._masses.shape
        return k, n_symbols

    def _selection(self, m: int) -> Scheffe:
        return Scheffe(
            self._masses,
            epsilon=self._budget()["selection"],
            m=m,
            tau=self._tau(m),
            unit=grid_unit(self.granularity),
        )

    def _accept(self, outcome: int) -> None:
        super()._accept(outcome)
        self.distribution_ = np.array([float(mass) for mass in np.asarray(self.candidates)[outcome]])


def _candidate_masses(candidates: npt.ArrayLike, unit: int) -> npt.NDArray[np.int64]:
    """Distinct distributions in units, each of total unit."""
    try:
        given = np.asarray(candidates)
    except ValueError:
        raise ValueError("candidates must have the shape (K, Z)") from None
    if given.ndim != 2 or given.shape[1] == 0:
        raise ValueError(f"candidates must have the shape (K, Z); got {given.shape}")
    if len(given) < 2:
        raise ValueError(f"candidates must be at least two, as one leaves no choice; got {len(given)}")
    masses = np.array([on_grid(row, unit, f"candidates[{index}]") for index, row in enumerate(given)])
    first_at: dict[bytes, int] = {}
    for index, row in enumerate(masses):
        first = first_at.setdefault(row.tobytes(), index)
        if first != index:
            raise ValueError(f"candidates {first} and {index} are the same distribution (on the grid of granularity)")
    return masses


def on_grid(row: Iterable[Any], unit: int, name: str) -> npt.NDArray[np.int64]:
    """A distribution in units: rounded down, and the missing units go to the largest remainders.

    Raises
    ------
    TypeError, ValueError
        For negative masses and a sum that is not 1.
    """
    masses = []
    for entry in row:
        try:
            number = exact_number(entry)
        except TypeError:
            raise TypeError(f"{name} must be a list of masses; got {shown(entry)}") from None
        except ValueError as error:
            raise ValueError(f"{name} has the mass {shown(entry)}, {error}") from None
        if number is None or number < 0:
            raise ValueError(f"{name} has the mass {shown(entry)}; masses must be numbers >= 0")
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
