"""How many mistakes a user may make: the best separating number, and its private choice."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Epsilon, check_count, is_integer, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.mechanisms import ExponentialMechanism
from userdp.mechanisms.base import Mechanism
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler, output_distribution, run
from userdp.runtime import source_of
from userdp.users.table import LARGEST_M

Counts = npt.NDArray[np.int64]

MOST_ROWS = 2**40


class ComposedMechanism(Mechanism):
    """A mechanism that makes several draws, whose ``sample`` and ``pmf`` end in `_sample` and `_pmf`."""

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    @abstractmethod
    def _program(self, *data: Any) -> tuple[AdaptiveMechanism, Callable[[], Sequence[Hashable]]]:
        """The draws, and how to list all that they can return."""

    def _draw(self, source: _core.Source, *data: Any) -> Any:
        return run(self._program(*data)[0], source)

    def _sample(self, random_state: int | None, *data: Any) -> Any:
        program, _ = self._program(*data)
        return run(program, source_of(random_state))

    def _pmf(self, *data: Any) -> Pmf:
        program, outcomes = self._program(*data)
        return output_distribution(program, outcomes())


def best_separating_threshold(
    m: int, p: float | int | Fraction | str, q: float | int | Fraction | str
) -> tuple[int, float]:
    r"""Return where the numbers of mistakes of two hypotheses are told apart best.

    Of m independent rows a hypothesis of error p gets Bin(m, p) wrong, one of error q Bin(m, q). Counting the users for
    whom a hypothesis gets *more than t* rows wrong separates the two by

    .. math:: \Pr[\mathrm{Bin}(m, q) > t] - \Pr[\mathrm{Bin}(m, p) > t],

    and the t that makes this largest makes it the total variation distance of the two distributions. It grows with
    sqrt(m), which is what several rows per user are good for.

    Parameters
    ----------
    m : int
        Rows per user, 1 <= m <= 2**40.
    p, q : float, int, Fraction or decimal string
        Error probabilities, 0 <= p < q <= 1. Both are rounded to floats, and must differ as such.

    Returns
    -------
    t : int
        The smallest best number of mistakes, 0 <= t < m.
    gap : float
        The difference of the two probabilities at t, in (0, 1]; absolute error below 1e-12 for m <= 10**6.

    Notes
    -----
    A function of public numbers: t and gap choose parameters, no privacy rests on them.

    The likelihood ratio of k mistakes, (q / p)^k ((1 - q) / (1 - p))^(m - k), increases with k and crosses 1 at
    k* = m A / (A + ln(q / p)), A = ln((1 - p) / (1 - q)). All k > k* are likelier under q, which makes t = ceil(k*) - 1
    best; an integer k* is as likely under both, and then t = k* is as good.

    References
    ----------
    Li, Wang, Ye (2024): [LWY24, Lemma 4.1] and [LWY24, Corollary D.1], which bound this gap from below.

    Examples
    --------
    >>> best_separating_threshold(1, 0.25, 0.75)
    (0, 0.5)
    >>> t, gap = best_separating_threshold(100, 0.2, 0.3)
    >>> t, round(gap, 6)
    (24, 0.755077)
    """
    rows = check_count(m, "m")
    if rows > MOST_ROWS:
        raise ValueError(f"m must be at most 2**40; got {short_repr(m)}")
    low, high = float(parse_delta(p, "p")), float(parse_delta(q, "q"))
    if low >= high:
        raise ValueError(f"p < q is needed, as floats; got p={short_repr(p)}, q={short_repr(q)}")
    threshold, gap, _ = separation(rows, low, high)
    return threshold, gap


@lru_cache(maxsize=2**12)
def separation(m: int, p: float, q: float) -> tuple[int, float, float]:
    """Return t, the gap at t, and Pr[Bin(m, p) > t]; each path of an output distribution asks for the same numbers."""
    return _core.separating_threshold(m, p, q)


# The practical default: chosen by simulation, one for all tasks. See docs/performance.md, "How the default was chosen".
T_SHARE = Fraction(3, 10)
"""The share of epsilon that the choice of t takes, where there is a choice."""

LEFT_OVER = Fraction(2, 5)
"""The least t is wanted at which the best hypothesis fails at most this part of the users."""

SPACING = 1.5
"""Candidates for t are so many standard deviations of a user's mistakes apart."""


def candidates_for_t(m: int) -> tuple[int, ...]:
    """Return the candidates for t: 0 and up to m / 2, at about equal distances in standard deviations of Bin(m, t / m).

    Parameters
    ----------
    m : int
        The most examples of a user, >= 1; public.

    Returns
    -------
    tuple of int
        Increasing from 0; just 0 for m < 4, and about sqrt(m) of them for large m.

    Notes
    -----
    The arcsine of sqrt(Bin(m, p) / m) has a standard deviation of nearly 1 / (2 sqrt(m)) whatever p is, so that equal
    steps of the arcsine are equal steps in standard deviations.

    Examples
    --------
    >>> candidates_for_t(3), candidates_for_t(16), candidates_for_t(64)
    ((0,), (0, 2, 4, 7), (0, 2, 4, 8, 13, 18, 23, 29))
    """
    check_count(m, "m", most=LARGEST_M)
    step = SPACING / (2 * math.sqrt(m))
    angles = (index * step for index in range(int(math.pi / 4 / step) + 1))
    return tuple(sorted({int(m * math.sin(angle) ** 2) for angle in angles}))


def t_shares(m: int, selection: str) -> dict[str, Fraction]:
    """Return the shares of epsilon for choosing t, and for the `selection` after it, with up to m examples."""
    if len(candidates_for_t(m)) == 1:
        return {selection: Fraction(1)}
    return {"choice of t": T_SHARE, selection: 1 - T_SHARE}


def first_crossing_scores(minimal_errors: Counts, n_users: int) -> Counts:
    """Return how far each entry is from being the first that is at most a fixed part of n: 0 for that one, else more.

    These are max(T - K_{j-1}, K_j - T, 0) with K_0 = n and T = floor(2 n / 5), for K_1, ..., K_k in 0, ..., n.
    """
    # Sensitivity 1: T is public, one user changes each K_j by at most 1, and so their maximum. Both sides are needed:
    # |K_j - T| would be the same for all j at which the best hypothesis fails nobody, and its least value may belong to
    # a j where it fails everybody.
    target = math.floor(n_users * LEFT_OVER)
    before = np.concatenate(([n_users], minimal_errors[:-1]))
    return np.maximum(np.maximum(target - before, minimal_errors - target), 0)


class PrivateMistakeTolerance(ComposedMechanism):
    """Choose how many mistakes of a user to tolerate, so that hypotheses are told apart well: epsilon-DP.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88.
    n_users : int
        The number of users n, from 1 to 2**62 - 1; public.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave. *Proof.* Replacing one user changes
    each K(h; t) by at most 1, and so their minimum over h, if it is exact: a minimum over hypotheses found by a search
    in the data may change by more. The scores max(T - K(t_{j-1}), K(t_j) - T, 0) then have sensitivity 1 (T is public),
    and t is drawn by `ExponentialMechanism` with all of epsilon. Where there is one candidate nothing is drawn.

    *Use.* Give it 3/10 of the budget and draw the hypothesis with the rest, as `ThresholdClassifier` does. It costs a
    number of users that grows with ln(sqrt(m)) / epsilon, whereas bisection for the error (`PrivateMinError`) splits
    its budget over all its steps.

    Examples
    --------
    >>> tolerance = PrivateMistakeTolerance(epsilon=1, n_users=1000)
    >>> tolerance.sample([900, 700, 360, 120]) in (0, 1)
    True
    >>> tolerance.pmf([900, 700, 360, 120]).probabilities.round(3).tolist()
    [0.0, 1.0]
    """

    def __init__(self, *, epsilon: Epsilon, n_users: int) -> None:
        super().__init__(epsilon=epsilon, n_users=n_users)
        self.n_users = check_n_users(n_users)
        self._mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=1)

    def sample(self, minimal_errors: npt.ArrayLike, random_state: int | None = None) -> int:
        """Draw one of `candidates_for_t(m)`.

        Parameters
        ----------
        minimal_errors : array-like of int with shape (m,)
            For t = 0, ..., m - 1 the exact minimum over all hypotheses h of the number of users on whom h makes more
            than t mistakes. Private. Values outside 0, ..., n_users are clamped.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible, for
            tests only, and warns.
        """
        return int(self._sample(random_state, minimal_errors))

    def pmf(self, minimal_errors: npt.ArrayLike) -> Pmf:
        """Return the exact distribution of `sample` over the candidates. **Not private**: for audits."""
        return self._pmf(minimal_errors)

    def _program(self, minimal_errors: npt.ArrayLike) -> tuple[AdaptiveMechanism, Callable[[], Sequence[int]]]:
        errors = read_minimal_errors(minimal_errors, self.n_users)
        return lambda draw: self.choose(draw, len(errors), lambda: errors), lambda: candidates_for_t(len(errors))

    def choose(self, draw: Sampler, m: int, minimal_errors: Callable[[], Counts]) -> int:
        """Choose t as a part of a program. One candidate is chosen without a look at the data."""
        candidates = candidates_for_t(m)
        if len(candidates) == 1:
            return candidates[0]
        place: int = draw(self._mechanism, first_crossing_scores(minimal_errors()[list(candidates)], self.n_users))
        return candidates[place]


def check_n_users(n_users: Any) -> int:
    """Read the number of users."""
    number = check_count(n_users, "n_users")
    if number >= 2**62:
        raise ValueError(f"n_users must be below 2**62; got {short_repr(n_users)}")
    return number


def read_minimal_errors(minimal_errors: Any, n_users: int) -> Counts:
    """Return the minimal errors clamped to 0, ..., n_users; refused by shape and type only, as values are private."""
    if isinstance(minimal_errors, (list, tuple)) and all(map(is_integer, minimal_errors)):
        # Beyond 64 bits NumPy would choose a type by the values.
        minimal_errors = np.array([min(max(int(error), 0), n_users) for error in minimal_errors], dtype=np.int64)
    try:
        errors = np.asarray(minimal_errors)
    except ValueError:
        raise TypeError("minimal_errors must be a vector of integers, one for each t = 0, ..., m - 1") from None
    if errors.ndim != 1 or not errors.size:
        raise ValueError(
            f"minimal_errors must be a vector of integers, one for each t = 0, ..., m - 1; got the shape {errors.shape}"
        )
    if errors.dtype.kind not in "iu":
        raise TypeError(f"minimal_errors must be integers of at most 64 bits; got dtype {errors.dtype}")
    if errors.dtype.kind == "u":
        errors = np.minimum(errors.astype(np.uint64), np.uint64(n_users))
    return np.clip(errors.astype(np.int64), 0, n_users)
