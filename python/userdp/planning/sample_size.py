"""How many users a method needs for an accuracy, by its own predicted error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from userdp.display import Fact, Section, Shown
from userdp.display.numbers import rounded
from userdp.exact.numbers import Delta, Epsilon, parse_positive, short_repr
from userdp.exceptions import BudgetError
from userdp.means.methods import METHODS
from userdp.planning.comparison import MOST_USERS, mean_problem, noise_of


@dataclass(frozen=True)
class SampleSize(Shown):
    """How many users reach an accuracy; made by `user_complexity`.

    Attributes
    ----------
    task, method : str
    n_users : int
        At least 2. With these, the accuracy is reached; with one less it is not, unless that is 1.
    noise : float
        Root mean square of the L2 error by privacy, with so many users.
    error : float
        The same with sampling: at most alpha.
    without_privacy : int
        How many users are enough for sampling alone.
    """

    task: str
    method: str
    n_users: int
    noise: float
    error: float
    without_privacy: int

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [asdict(self)]

    def _sections(self) -> Sequence[Section]:
        users = Fact("Users", f"{self.n_users:,}")
        facts = [
            users,
            Fact("Enough for sampling alone", f"{self.without_privacy:,}"),
            Fact("Root mean square error by privacy", rounded(self.noise)),
            Fact("With sampling", rounded(self.error)),
        ]
        return [Section(f"Users needed: {self.task}, by {self.method}", facts=[("", facts)], headline=[users])]


def user_complexity(
    task: str,
    *,
    method: str = "auto",
    m: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: float,
    dimension: int = 1,
    max_norm: float = 1.0,
    concentration: float | None = None,
    norm: str = "l2",
    beta: float = 0.01,
    private_concentration: bool = False,
) -> SampleSize:
    """The number of users with which the predicted error of a method reaches alpha.

    Parameters
    ----------
    task : {"mean"}
        Estimators with proved sample sizes have ``users_needed()`` themselves.
    method : str
        As for `userdp.means.WinsorizedMean`.
    m : int
        Records of each user.
    epsilon, delta : privacy parameters
    alpha : float
        > 0: the root mean square of the L2 error against the mean that users are drawn from.
    dimension : int
        Columns.
    max_norm, concentration, norm, beta, private_concentration
        As for `userdp.means.WinsorizedMean`.

    Returns
    -------
    SampleSize

    Raises
    ------
    BudgetError
        When 2**32 users are not enough.

    Notes
    -----
    The error is predicted by the plan by which the method runs: exact for the noise, an approximation for what clipping
    loses, and a promise where the concentration is one. No failure probability goes with it.

    Examples
    --------
    >>> plan = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01)
    >>> plan.n_users, plan.without_privacy
    (734, 625)
    """
    if task != "mean":
        raise ValueError(f"task must be 'mean'; got {short_repr(task)}; learners and distributions have users_needed()")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {short_repr(method)}")
    accuracy = float(parse_positive(alpha, "alpha"))
    problem = mean_problem(
        n_users=2,
        m=m,
        dimension=dimension,
        max_norm=max_norm,
        epsilon=epsilon,
        delta=delta,
        concentration=concentration,
        norm=norm,
        beta=beta,
        private_concentration=private_concentration,
    )

    def noise(n: int) -> float:
        return noise_of(method, replace(problem, n_users=n))

    def error(n: int) -> float:
        return math.hypot(noise(n), problem.concentration / math.sqrt(n))

    needed = problem.concentration / accuracy
    if needed > MOST_USERS**0.5:
        raise _too_many()
    without = max(1, math.ceil(needed**2))
    n = _least(lambda n: error(n) / accuracy, start=max(2, without))
    return SampleSize(task, method, n, noise(n), error(n), without)


def _least(ratio: Callable[[int], float], start: int) -> int:
    """The n at which a falling ratio comes to 1 or below, from the start: few evaluations, as it is nearly a power."""
    low, high = start, start
    above = below = ratio(start)
    while below > 1:
        if high >= MOST_USERS:
            raise _too_many()
        low, above = high, below
        # It falls like 1 / n where noise dominates.
        high = min(max(math.ceil(high * 1.01 * min(below, 2.0**20)), high + 1), MOST_USERS)
        below = ratio(high)
    while high - low > 1:
        middle, margin = (low + high) // 2, (high - low) // 16
        if margin and below < above < math.inf:
            guess = low * (high / low) ** (math.log(above) / math.log(above / below))
            middle = min(max(round(guess), low + margin), high - margin)
        at = ratio(middle)
        if at > 1:
            low, above = middle, at
        else:
            high, below = middle, at
    return high


def _too_many() -> BudgetError:
    return BudgetError(f"more than 2**{MOST_USERS.bit_length() - 1} users would be needed; raise alpha or epsilon")
