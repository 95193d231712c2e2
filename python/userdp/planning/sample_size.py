"""How many users a method needs for an accuracy, by its worst error under what is promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from userdp.display import Fact, Section, Shown
from userdp.display.numbers import rounded
from userdp.exact.numbers import Delta, Epsilon, parse_positive, short_repr
from userdp.exceptions import BudgetError
from userdp.means.methods import METHODS, NEED_A_PROMISE
from userdp.planning.comparison import MOST_USERS, errors_of, mean_problem


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
    user_std: float | None = None,
    homogeneous: bool = False,
    norm: str = "l2",
    beta: float = 0.01,
) -> SampleSize:
    """The number of users with which the worst error of a method reaches alpha.

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
    max_norm, user_std, homogeneous, norm, beta
        As for `compare_methods`. Without a promise users may be anywhere within the bounds.

    Returns
    -------
    SampleSize

    Raises
    ------
    BudgetError
        When 2**32 users are not enough.

    Notes
    -----
    The error is that of the plan by which the method runs: its noise, of exact distribution, the most that clipping
    can move under the promise, and the most that sampling can. No failure probability goes with it.

    Examples
    --------
    >>> plan = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01, homogeneous=True)
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
        user_std=user_std,
        homogeneous=homogeneous,
        norm=norm,
        beta=beta,
    )
    if method in NEED_A_PROMISE and problem.promise == "none":
        raise TypeError(f"method={method!r} needs a promise of how near users are: user_std or homogeneous=True")

    def errors(n: int) -> tuple[float, float]:
        return errors_of(method, replace(problem, n_users=n))

    def error(n: int) -> float:
        return math.hypot(errors(n)[1], problem.possible_concentration / math.sqrt(n))

    needed = problem.possible_concentration / accuracy
    if needed > MOST_USERS**0.5:
        raise _too_many()
    without = max(1, math.ceil(needed**2))
    n = _least(lambda n: error(n) / accuracy, start=max(2, without))
    return SampleSize(task, method, n, errors(n)[0], error(n), without)


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
