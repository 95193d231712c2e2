"""Planning the user-level version of any record-level algorithm of finitely many outputs, by DelStab."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import nonzero_level, parse_delta, short_repr
from userdp.item_to_user import plan_user_level, trivial_users
from userdp.planning.bounds import anything, named_count
from userdp.planning.fano import MOST_USERS as MOST_BOUNDED
from userdp.planning.fano import fano_users, users_from_item_level
from userdp.planning.hard_tasks import FANO, Term, few_users, larger
from userdp.planning.problem import (
    MOST_USERS,
    Asked,
    AskedError,
    Bound,
    Method,
    NotPlanned,
    Parameter,
    Problem,
    Task,
    counts_from,
)


def _item_epsilon(value: Any, name: str) -> Any:
    return as_epsilon(nonzero_level(value, name))


def _item_delta(value: Any, name: str) -> Fraction:
    return parse_delta(value, name)


def _counted(find: Callable[[], int]) -> int:
    try:
        users = find()
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    if users > MOST_USERS:
        raise NotPlanned(f"{short_repr(users)} users would be needed, more than {MOST_USERS}")
    return users


@lru_cache(maxsize=1024)
def _by_deletions(calibration: Any, problem: Problem) -> int:
    if not problem.delta:
        raise NotPlanned("delta must be > 0 for DelStab")
    made = []

    def find() -> int:
        made.append(plan_user_level(**_asked(problem), calibration=calibration, beta=Fraction(problem.beta)))
        return made[0].n_users

    users = _counted(find)
    decided = made[0].kinds or 0
    if decided < (users if problem["kinds"] is None else min(users, problem["kinds"])):
        refusal = ", and is sure to refuse users who all differ" * made[0].sure_to_refuse
        raise NotPlanned(
            f"of the {users:,} users that would be enough, DelStab decides for {decided:,} kinds{refusal}; kinds= is "
            "how many there can be"
        )
    return users


def _rests(calibration: Any, problem: Problem) -> str:
    """On how many distinct people its number rests: on no number where all may differ."""
    try:
        _by_deletions(calibration, problem.at(kinds=None))
    except NotPlanned:
        return "nothing" if problem["kinds"] is None else f"at most {problem['kinds']:,} distinct people"
    return "nothing"


def _asked(problem: Problem) -> dict[str, Any]:
    return {
        "n_items": problem["n_records"],
        "item_epsilon": problem["item_epsilon"],
        "item_delta": problem["item_delta"],
        "m": problem.m,
        "epsilon": problem.epsilon,
        "delta": problem.delta,
    }


@lru_cache(maxsize=1024)
def _by_groups(problem: Problem) -> int:
    """A random subset of so many records that each has epsilon / m, and the group of a user's records epsilon."""
    return _counted(lambda: trivial_users(**_asked(problem)))


def _one_record(problem: Problem) -> int:
    return _by_groups(problem.at(m=1))


def _bound(asked: Asked) -> dict[str, Term]:
    terms: dict[str, Term] = {}
    count, kl, tv = asked["n_told_apart"], asked["kl"], asked["tv"]
    if count is None and asked["item_users"] is None:
        raise TypeError("n_told_apart or item_users is needed for task='finite'")
    given: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "beta": asked["beta"]}
    if count is not None:
        source = f"{FANO}: {short_repr(count)} distributions"
        larger(terms, "few users", Term(fano_users(count, **given), source))
        if kl is not None or tv is not None:
            larger(terms, "private", Term(fano_users(count, **given, m=asked.m, kl=kl, tv=tv), source))
    elif kl is not None or tv is not None:
        raise TypeError("kl and tv go with n_told_apart")
    if asked["item_users"] is not None:
        users = users_from_item_level(asked["item_users"], m=asked.m)
        larger(terms, "one record each", Term(min(users, MOST_BOUNDED), "[GKKMMZ23, Observation 28]"))
    return terms


def _test(asked: AskedError) -> tuple[str, dict[str, float]]:
    return "mean squared error", few_users(asked.n, asked.level, asked.delta, Fraction(1))


TESTING = Task(
    name="testing",
    question="which of two distributions, which one record tells apart, users' records come from",
    bound=Bound(error=_test),
)

PROOF = "the proof of DelStab, and the stability that follows from privacy for records"
FINITE = Task(
    name="finite",
    question="what any record-level private algorithm of finitely many outputs answers",
    measure="what the algorithm itself keeps to on n_records records, and a refusal,",
    parameters=(
        Parameter("n_records", "how many records the record-level algorithm runs on", counts_from(1, 2**40)),
        Parameter("item_epsilon", "its epsilon, for one record", _item_epsilon),
        Parameter("item_delta", "its delta, for one record", _item_delta, Fraction(0)),
        Parameter("kinds", "how many distinct people there can be; None where all may differ", counts_from(1), None),
    ),
    methods=(
        *(
            Method(
                f"DelStab, {calibration}",
                f"user_level_algorithm(algorithm, plan_user_level(calibration={calibration!r}, ...))",
                rests=partial(_rests, calibration),
                theorem=f"[GKKMMZ23, Theorem 10]: {PROOF}",
                proved=partial(_by_deletions, calibration),
            )
            for calibration in ("optimal", "tight", "paper")
        ),
        Method(
            "one record per person",
            "the algorithm on a random subset of the first records of the users",
            theorem="[GKKMMZ23, Theorem 7]",
            proved=_one_record,
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            "the algorithm on a random subset of all records, each with epsilon / m",
            theorem="[GKKMMZ23, Theorem 7] and [GKKMMZ23, Lemma 6]",
            proved=_by_groups,
            baseline="group privacy",
        ),
    ),
    data="any data: what is proved does not depend on them",
    has_alpha=False,
    bound=Bound(
        "all algorithms that solve the task for all the distributions that are told apart",
        _bound,
        (
            named_count("n_told_apart", "distributions for which no answer is good twice", 2, 2**4096, default=None),
            Parameter("kl", "the largest Kullback-Leibler divergence of two of them", anything, None),
            Parameter("tv", "the largest total variation of two of them", anything, None),
            Parameter("item_users", "users who are needed with one record each", anything, None),
        ),
        has_alpha=False,
    ),
    hard=lambda problem: (None, "it depends on what the algorithm is to find out", ""),
    missing={"per-user clipping": "an algorithm of which nothing is known has nothing to clip"},
)
