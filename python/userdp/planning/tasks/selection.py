"""Planning the selection of the item that most users have, in four trust models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from userdp.exact.numbers import open_unit_fraction, parse_delta, short_repr
from userdp.mechanisms import ApproximatePrivateMode, PlannedPrivateMode, PurePrivateMode
from userdp.planning import packings
from userdp.planning.bounds import known_for, named_count
from userdp.planning.chances import (
    agreement,
    bits_of,
    least_enough,
    term,
    users_of_bits,
    users_of_reports,
    users_of_shuffling,
    users_of_threshold,
)
from userdp.planning.hard_tasks import Term, larger, packed, two_items_users
from userdp.planning.problem import (
    MOST_USERS,
    Asked,
    Bound,
    Method,
    NotPlanned,
    Parameter,
    Problem,
    Task,
    Terms,
    counts_from,
    flag,
)
from userdp.planning.rates import rate
from userdp.planning.selections import selection_users
from userdp.protocols import local, shuffle

MOST_ITEMS = 2**24
MOST_PLANNED = 512
"""Users up to which tables are planned here: larger ones take a minute."""
THIRD = 3
"""`users_needed` of selections is for a third of its beta, as learners have two other ways to fail."""


LEAST_LEAD = 1e-4
"""Smaller leads take hundreds of millions of users, and long to plan."""


def _needed(problem: Problem, find: Callable[[], int]) -> int:
    """The number found, or why there is none."""
    if problem.alpha < LEAST_LEAD:
        raise NotPlanned(f"leads below {LEAST_LEAD:g} are not planned")
    try:
        users = find()
    except ValueError as error:  # too many users, or numbers that are out of the method's range
        raise NotPlanned(str(error)) from None
    if users > MOST_USERS:
        raise NotPlanned(f"{users} users would be needed, more than {MOST_USERS}")
    return users


def _failure(problem: Problem) -> Fraction:
    failure = Fraction(problem.beta) * THIRD
    if failure >= 1:
        raise NotPlanned(f"beta must be below 1/3 for it; got {problem.beta:g}")
    return failure


@lru_cache(maxsize=1024)
def _by_weights(mechanism: Any, problem: Problem) -> int:
    failure = _failure(problem)

    def find() -> int:
        selection = PurePrivateMode(epsilon=problem.epsilon, n_items=problem["n_items"], mechanism=mechanism)
        return selection.users_needed(agreement=agreement(problem), beta=failure)

    return _needed(problem, find)


@lru_cache(maxsize=1024)
def _by_threshold(problem: Problem) -> int:
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    failure = _failure(problem)

    def find() -> int:
        selection = ApproximatePrivateMode(epsilon=problem.epsilon, delta=problem.delta)
        return selection.users_needed(agreement=agreement(problem), beta=failure)

    return _needed(problem, find)


@lru_cache(maxsize=1024)
def _by_planned_table(problem: Problem) -> int:
    about = _by_weights("permute-and-flip", problem)
    if about > MOST_PLANNED:
        raise NotPlanned(f"tables are planned here for up to {MOST_PLANNED} users; permute-and-flip needs {about}")
    failure = _failure(problem)
    return _needed(
        problem,
        lambda: PlannedPrivateMode.users_needed(
            epsilon=problem.epsilon, n_items=problem["n_items"], agreement=agreement(problem), beta=failure
        ),
    )


@lru_cache(maxsize=1024)
def _misses_by_table(problem: Problem, n_users: int) -> bool:
    """Whether the table for just so many users fails too often: one table in place of a search among tables."""
    if n_users > MOST_PLANNED:
        return False
    try:
        table = PlannedPrivateMode(
            epsilon=problem.epsilon, n_items=problem["n_items"], n_users=n_users, agreement=agreement(problem)
        )
    except ValueError:
        return False
    return table.failure > problem.beta


@lru_cache(maxsize=1024)
def _by_reports(protocol: Any, problem: Problem) -> int:
    given = {"agreement": agreement(problem), "beta": Fraction(problem.beta), "epsilon": problem.epsilon}
    return _needed(problem, lambda: protocol.users_needed(**given, n_items=problem["n_items"]))


@lru_cache(maxsize=1024)
def _by_bits(problem: Problem) -> int:
    bits = bits_of(problem["n_items"])
    return _needed(
        problem,
        lambda: local.BitwiseMajority.users_needed(
            agreement=agreement(problem), beta=Fraction(problem.beta), epsilon=problem.epsilon, n_bits=bits
        ),
    )


@lru_cache(maxsize=256)
def _by_shuffling(problem: Problem) -> int:
    """Half of beta for the noise, half for who the users are: the lead must be above the noise."""
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for it")
    half = Fraction(problem.beta) / 2

    def enough(n: int) -> bool:
        protocol = shuffle.Mode(
            epsilon=problem.epsilon, delta=problem.delta, n_items=problem["n_items"], n_users=n, round_id="planning"
        )
        # The common item is selected when its lead 2 K - n, K binomial, is above the bound of the error.
        most = math.floor((n + protocol.error_bound(half)) / 2)
        return _lower_tail(n, float(agreement(problem)), most) <= float(half)

    return _needed(problem, lambda: least_enough(enough, 2, 1000))


def _lower_tail(n: int, p: float, most: int) -> float:
    """Pr[Bin(n, p) <= most], from above, by the Chernoff bound: exp(-n KL(most / n, p)) below the mean."""
    share = most / n
    if share >= p:
        return 1.0
    first = share * math.log(share / p) if share > 0 else 0.0
    return math.exp(-n * (first + (1 - share) * math.log((1 - share) / (1 - p)))) if p < 1 else 0.0


def _one_record(problem: Problem) -> int:
    return min(_by_weights(name, problem.at(m=1)) for name in ("exponential", "permute-and-flip"))


def _check(problem: Problem) -> None:
    if agreement(problem) <= Fraction(1, 2):
        raise ValueError(f"alpha is too small to be told from 0; got {short_repr(problem.alpha)}")


def _rate(row: str, problem: Problem) -> Mapping[str, float]:
    """The paper's formula, which is for users who nearly all have one item."""
    sizes = {"epsilon": problem.rate, "beta": problem.beta, "n_choices": problem["n_items"]}
    if problem.delta:
        sizes["delta"] = float(problem.delta)
    return dict(rate("selection", row=row, model=MODELS[row], **sizes).terms)


def _exact(find: Callable[[Problem], int]) -> Callable[[Problem], Terms]:
    """The proved number as the one term: simulations say how far it is above what users of one kind need."""
    return lambda problem: {"proved": float(find(problem))}


def _one_vote(problem: Problem) -> Problem:
    """The same with one record: a user has one vote, whatever m is."""
    return problem.at(m=1)


def _agreement(value: Any, name: str) -> Fraction:
    share = parse_delta(value, name)
    if not Fraction(1, 2) < share <= 1:
        raise ValueError(f"{name} must be in (1/2, 1]; got {short_repr(value)}")
    return share


def _bound(asked: Asked) -> dict[str, Term]:
    agreement, beta = asked["agreement"], asked.failure
    share = float(agreement)
    terms = packed(packings.common_items(asked["n_items"], share), asked.level, beta)
    if not asked.level.delta:
        users = two_items_users(min(1.0, share + packings.ROUNDED), beta, asked.level)
        larger(terms, "private", Term(users, "two items, with the least failure of every mechanism"))
    if asked["certified"] and 3 * beta < 1:
        # It counts a third of its beta.
        accepted = 3 * open_unit_fraction(asked["beta"], "beta")
        given: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "beta": accepted}
        found = selection_users(n_items=asked["n_items"], agreement=agreement, **given)
        larger(terms, "certified optimum", Term(found.n_users, "userdp.planning.selection_users"))
    return terms


PURE = "GKM21: Theorem 30, one item that nearly all users hold, users"
APPROXIMATE = "GKM21: Theorem 25, one item that nearly all users hold, users"
LOCAL = "GKM21: Theorem 29, one item that nearly all users hold, users"
SHUFFLED = "GKM21: Theorem 35, one item that nearly all users hold, users"
MODELS = {PURE: "central", APPROXIMATE: "central", LOCAL: "local", SHUFFLED: "shuffle"}
EXACT = "the probability of the failure, computed for the worst rest of the users"
CHERNOFF = "a Chernoff bound for every other item"

SELECTION: Task = Task(
    name="selection",
    question="the item that most users have, one item of each user",
    measure="how far the most common item leads all others, as a share of the users, where it is to be found,",
    parameters=(Parameter("n_items", "how many items there are", counts_from(2, MOST_ITEMS)),),
    methods=(
        Method(
            "central, permute-and-flip",
            "PurePrivateMode(mechanism='permute-and-flip')",
            row=PURE,
            rate=partial(_rate, PURE),
            standard=_one_vote,
            theorem=EXACT,
            exact=True,
            proved=partial(_by_weights, "permute-and-flip"),
            terms=_exact(partial(_by_weights, "permute-and-flip")),
        ),
        Method(
            "central, exponential",
            "PurePrivateMode()",
            row=PURE,
            rate=partial(_rate, PURE),
            standard=_one_vote,
            theorem=EXACT,
            exact=True,
            proved=partial(_by_weights, "exponential"),
            terms=_exact(partial(_by_weights, "exponential")),
        ),
        Method(
            "central, planned table",
            "PlannedPrivateMode",
            row=PURE,
            rate=partial(_rate, PURE),
            standard=_one_vote,
            theorem=EXACT,
            exact=True,
            proved=_by_planned_table,
            too_few=_misses_by_table,
            terms=_exact(_by_planned_table),
        ),
        Method(
            "central, threshold",
            "ApproximatePrivateMode",
            row=APPROXIMATE,
            rate=partial(_rate, APPROXIMATE),
            standard=_one_vote,
            theorem=EXACT,
            exact=True,
            proved=_by_threshold,
            terms=term(users_of_threshold),
        ),
        Method(
            "shuffled, histogram",
            "protocols.shuffle.Mode",
            row=SHUFFLED,
            rate=partial(_rate, SHUFFLED),
            standard=_one_vote,
            theorem=CHERNOFF,
            proved=_by_shuffling,
            terms=term(users_of_shuffling),
        ),
        Method(
            "local, subset selection",
            "protocols.local.SubsetSelection",
            row=LOCAL,
            rate=partial(_rate, LOCAL),
            standard=_one_vote,
            theorem=CHERNOFF,
            proved=partial(_by_reports, local.SubsetSelection),
            terms=term(partial(users_of_reports, local.SubsetSelection)),
        ),
        Method(
            "local, Hadamard response",
            "protocols.local.HadamardResponse",
            row=LOCAL,
            rate=partial(_rate, LOCAL),
            standard=_one_vote,
            theorem=CHERNOFF,
            proved=partial(_by_reports, local.HadamardResponse),
            terms=term(partial(users_of_reports, local.HadamardResponse)),
        ),
        Method(
            "local, randomized response",
            "protocols.local.KRandomizedResponse",
            row=LOCAL,
            rate=partial(_rate, LOCAL),
            standard=_one_vote,
            theorem=CHERNOFF,
            proved=partial(_by_reports, local.KRandomizedResponse),
            terms=term(partial(users_of_reports, local.KRandomizedResponse)),
        ),
        Method(
            "local, bit by bit",
            "protocols.local.BitwiseMajority",
            row=LOCAL,
            rate=partial(_rate, LOCAL),
            standard=_one_vote,
            theorem=CHERNOFF,
            proved=_by_bits,
            terms=term(users_of_bits),
        ),
        Method(
            "one record per person",
            "PurePrivateMode on the first record of each user",
            row=PURE,
            rate=partial(_rate, PURE),
            standard=_one_vote,
            theorem=EXACT,
            exact=True,
            proved=_one_record,
            terms=_exact(_one_record),
            baseline="one record per person",
        ),
    ),
    data=(
        "users who have the common item independently, while all others have one other item; the items are numbered in "
        "any order, which decides between equal counts of reports"
    ),
    missing={
        "group privacy": "a user has one vote, whatever m is: there is no group of records",
        "per-user clipping": "a user has one vote, which is what clipping to one record is",
    },
    check=_check,
    bound=Bound(
        "all selections, whatever items those who do not have the common one have",
        _bound,
        (
            named_count("n_items", "items", 2),
            Parameter("agreement", "the probability in (1/2, 1] with which a user has the common item", _agreement),
            Parameter("certified", "whether to solve for certified optima of small worlds, too", flag, False),
        ),
        has_alpha=False,
    ),
    hard=lambda problem: known_for(SELECTION, problem, agreement=agreement(problem)),
)
