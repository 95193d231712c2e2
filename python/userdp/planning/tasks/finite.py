"""Planning the user-level version of any record-level algorithm of finitely many outputs, by DelStab."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from userdp.accounting import group_privacy, subsampling_population
from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import nonzero_level, parse_delta, short_repr
from userdp.item_to_user import plan_user_level
from userdp.planning.problem import MOST_USERS, Method, NotPlanned, Parameter, Problem, Task, counts_from


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
    return _counted(
        lambda: (
            plan_user_level(
                n_items=problem["n_records"],
                item_epsilon=problem["item_epsilon"],
                item_delta=problem["item_delta"],
                m=problem.m,
                epsilon=problem.epsilon,
                delta=problem.delta,
                calibration=calibration,
                beta=Fraction(problem.beta),
            ).n_users
        )
    )


@lru_cache(maxsize=1024)
def _by_groups(problem: Problem) -> int:
    """A random subset of so many records that each has epsilon / m, and the group of a user's records epsilon."""
    level = problem.epsilon if problem.m == 1 else Fraction(problem.rate) / problem.m
    drawn = problem["n_records"]

    def find() -> int:
        return subsampling_population(problem["item_epsilon"], n_sampled=drawn, target=level, multiple_of=problem.m)

    records = _counted(lambda: -(-find() // problem.m)) * problem.m
    each = problem["item_delta"] * Fraction(drawn, records)
    of_user = Fraction(group_privacy(level, each, problem.m).delta)
    if of_user > problem.delta:
        raise NotPlanned(f"the delta of a user would be {float(of_user):.3g}, above {float(problem.delta):.3g}")
    return records // problem.m


def _one_record(problem: Problem) -> int:
    return _by_groups(problem.at(m=1))


PROOF = "the proof of DelStab, and the stability that follows from privacy for records"
FINITE = Task(
    name="finite",
    question="what any record-level private algorithm of finitely many outputs answers",
    measure="what the algorithm itself keeps to on n_records records, and a refusal,",
    parameters=(
        Parameter("n_records", "how many records the record-level algorithm runs on", counts_from(1, 2**40)),
        Parameter("item_epsilon", "its epsilon, for one record", _item_epsilon),
        Parameter("item_delta", "its delta, for one record", _item_delta, Fraction(0)),
    ),
    methods=(
        *(
            Method(
                f"DelStab, {calibration}",
                f"user_level_algorithm(algorithm, plan_user_level(calibration={calibration!r}, ...))",
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
    missing={"per-user clipping": "an algorithm of which nothing is known has nothing to clip"},
)
