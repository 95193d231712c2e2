"""How many users the user-level version of an item-level algorithm asks for, and that version."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from userdp.accounting import group_privacy, subsampling_amplification, subsampling_population
from userdp.algorithms import SymmetricAlgorithm
from userdp.delstab import DelStab
from userdp.delstab.delstab import CalibrationName, QuietDelStab
from userdp.exact.numbers import (
    COUNTED,
    Delta,
    Epsilon,
    LogRatio,
    check_count,
    least,
    nonzero_level,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.exceptions import BudgetError
from userdp.item_to_user.deletion_stability import (
    largest_item_epsilon,
    positive_probability,
)
from userdp.item_to_user.subsampled import SubsampledAlgorithm

MOST_USERS = 10**30
TOO_LARGE = "item_epsilon is too large to be lowered by a subset"


@dataclass(frozen=True, kw_only=True)
class UserLevelPlan:
    """How many users the user-level version of an item-level algorithm asks for.

    Attributes
    ----------
    n_items : int
        Items that the item-level algorithm runs on.
    item_epsilon, item_delta
        Its item-level privacy parameters, as given.
    m : int
        Items of every user.
    epsilon, delta
        The user-level privacy parameters, as given.
    calibration : str
        Of DelStab.
    deletions : int
        Users that DelStab deletes.
    stability_epsilon, stability_delta
        The level at which DelStab asks the kept data to agree.
    beta : Fraction
        The probability, over the data, that the plan's stability fails.
    stability : str
        Where the item epsilon that is stable enough comes from: "explicit" or "given".
    n_kept_items : int
        N: items of the users that are kept; a subset of n_items is drawn of them.
    n_users : int
        Users needed: N / m + deletions.
    subsampled_epsilon, subsampled_delta
        Item-level parameters of the algorithm on a subset of N items.
    target_epsilon : float, int, Fraction, str or LogRatio
        The item epsilon that was to be reached at this number of users.
    kinds : int or None
        For how many kinds of users DelStab decides; None where it has no engine for so many deletions.
    sure_to_refuse : bool
        Whether it is sure to refuse users who all differ: see `DelStab.is_sure_to_refuse`.
    one_record_users, group_users : int or None
        Users needed without DelStab: by one item of each, and by group privacy; see `trivial_users`. None where no
        number of users will do.
    """

    n_items: int
    item_epsilon: Epsilon
    item_delta: Delta
    m: int
    epsilon: Epsilon
    delta: Delta
    calibration: CalibrationName
    deletions: int
    stability_epsilon: Epsilon
    stability_delta: Delta
    beta: Fraction
    stability: str
    n_kept_items: int
    n_users: int
    subsampled_epsilon: Fraction | LogRatio | float
    subsampled_delta: Fraction | float
    target_epsilon: Epsilon
    kinds: int | None
    sure_to_refuse: bool
    one_record_users: int | None
    group_users: int | None

    def __str__(self) -> str:
        kept = self.n_users - self.deletions
        few = (
            "has no engine for so many deletions"
            if self.kinds is None
            else f"decides for {self.kinds:,} kinds of users"
        )
        ways = ((self.one_record_users, "one item of each"), (self.group_users, "group privacy"))
        known = " or ".join(f"{users:,} users by {way}" for users, way in ways if users is not None)
        return "\n".join(
            [
                f"{self.n_users:,} users with {self.m:,} items each: {self.deletions:,} deleted by DelStab "
                f"({self.calibration}), {kept:,} kept, {self.n_kept_items:,} items",
                f"  {self.n_items:,} of these items are drawn; item-level epsilon {_short(self.item_epsilon)} "
                f"becomes {_short(self.subsampled_epsilon)}, delta {_short(self.item_delta)} becomes "
                f"{_short(self.subsampled_delta)}",
                f"  stable at ({_short(self.stability_epsilon)}, {_short(self.stability_delta)}) up to item epsilon "
                f"{_short(self.target_epsilon)} with probability {_short(1 - self.beta)} ({self.stability} bound)",
                f"  user-level ({_short(self.epsilon)}, {_short(self.delta)})-DP, whatever the data",
                f"  DelStab {few}" + ", and is sure to refuse users who all differ" * self.sure_to_refuse,
                f"  without DelStab: {known or 'delta allows for neither one item of each nor group privacy'}",
            ]
        )


def _short(value: Any) -> str:
    return f"{float(Fraction(value) if isinstance(value, str) else value):.4g}"


def plan_user_level(
    *,
    n_items: int,
    item_epsilon: Epsilon,
    item_delta: Delta = 0,
    m: int,
    epsilon: Epsilon,
    delta: Delta,
    calibration: CalibrationName = "optimal",
    beta: Delta = 0.01,
    stability: Literal["explicit"] | Callable[[int], Epsilon] = "explicit",
    deletions: int | None = None,
    stability_epsilon: Epsilon | None = None,
    stability_delta: Delta | None = None,
) -> UserLevelPlan:
    """Plan the user-level version of an item-level algorithm: how many users it asks for.

    Parameters
    ----------
    n_items : int
        Items n1 that the item-level algorithm runs on, >= 1.
    item_epsilon, item_delta : privacy parameters
        Of the item-level algorithm.
    m : int
        Items of every user, >= 1.
    epsilon, delta : privacy parameters
        The user-level guarantee wanted.
    calibration : {"optimal", "tight", "paper"}
        Of DelStab.
    beta : number in (0, 1]
        Probability, over the data, with which the stability may fail; then DelStab may refuse.
    stability : "explicit" or callable
        A callable takes the number of users and returns the item-level epsilon at which the algorithm is stable enough,
        for instance one found with `empirical_stability`. "explicit" is `largest_item_epsilon`.
    deletions : int, optional
        Users that DelStab deletes, >= 1; by default those of the calibration.
    stability_epsilon, stability_delta : optional
        The level at which DelStab compares kept data; by default the calibration's. Give all three or none.

    Notes
    -----
    [GKKMMZ23, Theorem 10]: N, a multiple of m, is such that the item-level epsilon of a random n1 of N items, ln(1 +
    (n1/N)(e^item_epsilon - 1)), is at most what is stable enough for N/m + deletions users. [GKKMMZ23, Theorem 11]'s
    first step, a subsample of N' items that lowers item_epsilon to a smaller one, is the same thing: a uniform n1 of a
    uniform N' of N items are a uniform n1 of N. A plan with too few users costs usefulness (DelStab refuses more
    often), never privacy. Compare the calibrations: "optimal" leaves out fewer users than the others, which decides for
    small n1, but asks for more stability, and N grows in proportion; for large n1 "tight" needs fewer users in all.
    Look at `trivial_users` first, which the plan has too: with private items DelStab needs fewer users only where each
    has very many, and it decides for few kinds of users.

    Examples
    --------
    >>> plan = plan_user_level(
    ...     n_items=1000, item_epsilon=0.1, m=100, epsilon=1, delta=1e-6,
    ...     deletions=192, stability_epsilon="1/3", stability_delta=1.8e-7, calibration="paper",
    ... )
    >>> plan.n_users, plan.n_kept_items
    (32200, 3200800)
    >>> print(plan)
    32,200 users with 100 items each: 192 deleted by DelStab (paper), 32,008 kept, 3,200,800 items
      1,000 of these items are drawn; item-level epsilon 0.1 becomes 3.286e-05, delta 0 becomes 0
      stable at (0.3333, 1.8e-07) up to item epsilon 3.286e-05 with probability 0.99 (explicit bound)
      user-level (1, 1e-06)-DP, whatever the data
      DelStab decides for 2 kinds of users, and is sure to refuse users who all differ
      without DelStab: 1,000 users by one item of each or 105 users by group privacy
    """
    drawn, per_user = check_count(n_items, "n_items"), check_count(m, "m")
    item_threshold, failure = parse_delta(item_delta, "item_delta"), positive_probability(beta, "beta")
    parse_level(item_epsilon, "item_epsilon"), parse_level(epsilon), parse_delta(delta)
    made = _delstab(epsilon, delta, calibration)
    if deletions is None or stability_epsilon is None or stability_delta is None:
        if not (deletions is stability_epsilon is stability_delta is None):
            raise TypeError("give all of deletions, stability_epsilon and stability_delta, or none of them")
        deletions, stability_epsilon, stability_delta = made.deletions, made.epsilon_bar, made.delta_bar
    removed = check_count(deletions, "deletions")
    parse_level(stability_epsilon, "stability_epsilon"), parse_delta(stability_delta, "stability_delta")
    if stability != "explicit" and not callable(stability):
        raise TypeError(f"stability must be 'explicit' or a callable from n_users to epsilon; got {stability!r}")

    def target(kept_items: int) -> Epsilon:
        n_users = kept_items // per_user + removed
        if callable(stability):
            return stability(n_users)
        return largest_item_epsilon(
            epsilon=stability_epsilon,
            delta=stability_delta,
            item_delta=item_threshold * Fraction(drawn, kept_items),
            n_users=n_users,
            deletions=removed,
            m=per_user,
            beta=failure,
        )

    population = _named(
        lambda: subsampling_population(item_epsilon, n_sampled=drawn, target=target, multiple_of=per_user),
        "stability asks for more than any subset leaves" if callable(stability) else TOO_LARGE,
    )
    subsampled = subsampling_amplification(item_epsilon, item_delta, n_sampled=drawn, n_total=population)
    n_users = population // per_user + removed
    item: dict[str, Any] = {"n_items": drawn, "item_epsilon": item_epsilon, "item_delta": item_delta}
    try:
        size = max(n_users, made.min_users)  # for deletions that are not its own
        kinds, refuses = made.plan(size).max_distinct_users, made.is_sure_to_refuse(size)
    except BudgetError:
        kinds, refuses = None, True
    return UserLevelPlan(
        n_items=drawn,
        item_epsilon=item_epsilon,
        item_delta=item_delta,
        m=per_user,
        epsilon=epsilon,
        delta=delta,
        calibration=calibration,
        deletions=removed,
        stability_epsilon=stability_epsilon,
        stability_delta=stability_delta,
        beta=failure,
        stability="given" if callable(stability) else "explicit",
        n_kept_items=population,
        n_users=n_users,
        subsampled_epsilon=subsampled.epsilon,
        subsampled_delta=subsampled.delta,
        target_epsilon=target(population),
        kinds=kinds,
        sure_to_refuse=refuses,
        one_record_users=_trivial(**item, m=1, epsilon=epsilon, delta=delta),
        group_users=_trivial(**item, m=per_user, epsilon=epsilon, delta=delta),
    )


def _delstab(epsilon: Epsilon, delta: Delta, calibration: CalibrationName) -> DelStab:
    """DelStab of an algorithm whose outputs are few, for its numbers."""
    constant = SymmetricAlgorithm((0,), lambda dataset: [1])
    return QuietDelStab(constant, epsilon=epsilon, delta=delta, calibration=calibration)


def _trivial(**given: Any) -> int | None:
    try:
        return trivial_users(**given)
    except ValueError:
        return None


def trivial_users(
    *, n_items: int, item_epsilon: Epsilon, item_delta: Delta = 0, m: int, epsilon: Epsilon, delta: Delta = 0
) -> int:
    """How many users an item-level algorithm needs without DelStab: on a random subset of their items.

    Parameters
    ----------
    n_items, item_epsilon, item_delta
        As for `plan_user_level`.
    m : int
        Items of every user, >= 1. With 1: one item of each user is taken, and the others are left out.
    epsilon, delta : privacy parameters
        The user-level guarantee wanted.

    Returns
    -------
    int
        The least number with which a random subset leaves so little epsilon and delta to each item that group privacy
        gives the m items of a user epsilon and delta.

    Raises
    ------
    ValueError
        For bad numbers, and where no number of users will do: of a positive item_delta at delta = 0.

    References
    ----------
    [GKKMMZ23, Theorem 7] and [GKKMMZ23, Lemma 6].

    Examples
    --------
    >>> [trivial_users(n_items=1000, item_epsilon=0.1, m=m, epsilon=1) for m in (1, 100)]
    [1000, 105]
    >>> asked = {"n_items": 1000, "item_epsilon": 0.1, "item_delta": "1e-5", "epsilon": 1, "delta": "1e-6"}
    >>> trivial_users(m=1, **asked)  # a tenth of the users are drawn, and a tenth of the delta is left
    10000
    """
    per_user, drawn, level = check_count(m, "m"), check_count(n_items, "n_items"), nonzero_level(epsilon, "epsilon")
    of_item, left = parse_delta(item_delta, "item_delta"), parse_delta(delta)
    each: Any = epsilon
    if per_user > 1:
        each = level.exponent if level.ratio == 1 else Fraction(math.nextafter(float(level), 0))
        each /= per_user
    items = _named(
        lambda: subsampling_population(item_epsilon, n_sampled=drawn, target=each, multiple_of=per_user), TOO_LARGE
    )
    if of_item > 0 == left:
        raise ValueError(f"delta must be > 0, as item_delta is and a subset leaves some of it; got {short_repr(delta)}")

    def enough(users: int) -> bool:
        item = subsampling_amplification(item_epsilon, of_item, n_sampled=drawn, n_total=users * per_user)
        # What is left of epsilon, rounded up for groups; `each` is no less.
        above = Fraction(math.nextafter(float(parse_level(item.epsilon)), math.inf))
        smallest: Any = each if per_user == 1 else min(each, above)
        return Fraction(group_privacy(smallest, item.delta, per_user).delta) <= left

    # The least by epsilon; and a user of n has m items, each with n_items / (n m) of item_delta.
    users = max(items // per_user, math.ceil(of_item * drawn / left) if of_item else 0)
    if not of_item or enough(users):
        return users
    refusal = ValueError(f"delta={short_repr(delta)} would take more than {MOST_USERS / 2:.0e} users")
    return least(enough, users, 2 * users, MOST_USERS, refusal)


def _named(find: Callable[[], int], fault: str) -> int:
    """What is found, or an error that names the argument as it is called here."""
    try:
        return find()
    except ValueError as error:
        of, _, reason = str(error).partition(": ")
        if of not in ("epsilon", "target"):
            raise
        raise ValueError(f"{fault}: {reason}") from None


def user_level_algorithm(item_algorithm: Any, plan: UserLevelPlan, **options: Any) -> DelStab:
    """The user-level version of an item-level algorithm.

    Parameters
    ----------
    item_algorithm : FiniteAlgorithm
        With ``.pmf(items)`` on plan.n_items items; see `SubsampledAlgorithm`.
    plan : UserLevelPlan
        From `plan_user_level`.
    **options
        ``universe`` and ``budget``, as for `SubsampledAlgorithm`.

    Returns
    -------
    DelStab
        User-level (plan.epsilon, plan.delta)-DP, neighbors replace one user, whatever the item algorithm does: that it
        is private for items, and the plan's numbers, only make it useful. The proof is DelStab's.

    References
    ----------
    [GKKMMZ23, Lemma 19].

    Examples
    --------
    An item-level answer about 20 items, made private for users. Its probabilities are from 1/22 to 21/22 in steps of
    1/22, so that one item changes them by a factor of 2 at most:

    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> share = AdditiveAlgorithm(
    ...     ("no", "yes"),
    ...     lambda item: item,
    ...     lambda total, n: [Fraction(1 + n - total, n + 2), Fraction(1 + total, n + 2)],
    ...     statistic_range=(0, 1),
    ... )
    >>> two = LogRatio(2, 1)
    >>> plan = plan_user_level(n_items=20, item_epsilon=two, m=3, epsilon=8, delta=0.01, beta=0.1)
    >>> plan.n_users
    101
    >>> private = user_level_algorithm(share, plan)
    >>> private.deletions == plan.deletions, private.outputs
    (True, ('no', 'yes', BOTTOM))
    >>> users = [(0, 1, 1)] * 12  # a plan is for any users: fewer who are alike may do, and cannot harm
    >>> private.output_distribution(users, exact=True).fractions()
    [Fraction(23, 66), Fraction(43, 66), Fraction(0, 1)]

    The mean of 20 of the kept items is 2/3 on average, and (1 + 20 * 2/3) / 22 = 43/66.
    """
    if not isinstance(plan, UserLevelPlan):
        raise TypeError(f"plan must be a UserLevelPlan; got {type(plan).__name__}")
    subsampled = SubsampledAlgorithm(item_algorithm, plan.n_items, **options)
    algorithm = DelStab(subsampled, epsilon=plan.epsilon, delta=plan.delta, calibration=plan.calibration)
    if algorithm.deletions != plan.deletions:
        raise ValueError(
            f"plan was made for {plan.deletions} deletions; calibration {plan.calibration!r} has {algorithm.deletions}"
        )
    return algorithm


def suggested_item_level(epsilon: float, delta: float, m: int) -> tuple[float, float]:
    """A first guess of the item-level (epsilon'', delta') to choose for a user-level (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        User-level epsilon, > 0.
    delta : float
        User-level delta, in (0, 1).
    m : int
        Items of every user, >= 1.

    Returns
    -------
    (float, float)
        epsilon^2 / (ln(1/delta) sqrt(m ln(m/delta))) and delta epsilon / (m ln(1/delta)).

    Notes
    -----
    [GKKMMZ23, Theorem 10], with 1 for its hidden constants: a starting point for `plan_user_level`, not a guarantee.

    Examples
    --------
    >>> [float(f"{value:.3g}") for value in suggested_item_level(1, 1e-6, 100)]
    [0.00169, 7.24e-10]
    """
    size, e, d = check_count(m, "m", most=COUNTED), float(parse_level(epsilon)), float(parse_delta(delta))
    if e <= 0 or not 0 < d < 1:
        raise ValueError(f"needs epsilon > 0 and delta in (0, 1); got epsilon={epsilon!r}, delta={delta!r}")
    log = math.log(1 / d)
    return e * e / (log * math.sqrt(size * math.log(size / d))), d * e / (size * log)
