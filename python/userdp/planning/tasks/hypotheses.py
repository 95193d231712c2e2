"""Planning the choice of the distribution, of a public list, that users' records come from."""

from __future__ import annotations

from fractions import Fraction

from userdp.planning import packings
from userdp.planning.bounds import by_packings, named_count
from userdp.planning.chances import FLIPPED, of_records, rate_row, rounded_up
from userdp.planning.problem import Bound, Method, NotPlanned, Parameter, Problem, Task, counts_from


def _proved(problem: Problem) -> int:
    """The number of `HypothesisSelector.users_needed`, for scores that are clipped by default."""
    from userdp.learners.clipped_pairwise import clipping_bound, users_needed

    try:
        return users_needed(
            problem["n_hypotheses"],
            epsilon=problem.epsilon,
            alpha=problem.alpha,
            beta=problem.beta,
            m=problem.m,
            tau=Fraction(clipping_bound(problem.alpha, problem.m, 1)),
            flips=problem["n_hypotheses"] <= FLIPPED,
        )
    except ValueError as error:  # a beta that is too small for weights of 64 bits
        raise NotPlanned(str(error)) from None


THEOREM = "[GKKMMZ23, Theorem 41] with explicit constants: HypothesisSelector.users_needed"

HYPOTHESES = Task(
    name="hypothesis-selection",
    question="which distribution of a public list users' records come from, or nearly",
    measure="the total variation distance, if one of the list is within a tenth of that of the truth,",
    parameters=(Parameter("n_hypotheses", "how many distributions the list has", counts_from(2, 2**24)),),
    methods=(
        Method(
            "scores",
            "HypothesisSelector()",
            row="GKKMMZ23: Theorem 41, hypothesis selection, users",
            rate=rate_row("hypothesis-selection", n_hypotheses=lambda problem: problem["n_hypotheses"]),
            theorem=THEOREM,
            proved=_proved,
        ),
        Method(
            "one record per person",
            "HypothesisSelector() on the first record of each user",
            theorem=THEOREM,
            proved=lambda problem: _proved(problem.at(m=1)),
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            "HypothesisSelector(epsilon=epsilon / m) where each record is a user",
            theorem=THEOREM,
            proved=rounded_up(of_records(_proved)),
            baseline="group privacy",
        ),
    ),
    data="",
    bound=Bound(
        "all selections that work for every family of so many candidates, when the truth is one of them",
        by_packings(lambda asked: packings.hypotheses(asked["n_hypotheses"], asked.alpha, asked.m)),
        (named_count("n_hypotheses", "candidates", 2),),
    ),
    missing={"per-user clipping": "'scores' is that: a user's votes for each pair of distributions are clipped"},
)
