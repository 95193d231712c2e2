"""A private vote on real users: refused on 545 of them, answered on 2,725.

545 men told in each of eight years whether a union had set their wage (Vella and Verbeek 1998). The question is
whether most of them have ever been in a union. The answer is a plain majority, without any noise, so by itself it
protects nobody: DelStab makes it private for every man and all of his eight answers at once, or refuses.

Run with ``python examples/private_vote.py``; it needs the wage panel: ``pip install 'userdp[demo]'``. Every number
that is printed is computed. Only what `release` returns is private; everything else is here to explain.
"""

from __future__ import annotations

from typing import Literal

from userdp import BOTTOM, AuditReport, DelStab, FiniteAlgorithm, audit_user_level
from userdp.algorithms import AdditiveAlgorithm, Dataset
from userdp.datasets import load_wage_panel

EPSILON, DELTA = 1, "1e-6"
Calibration = Literal["optimal", "tight", "paper"]
CALIBRATIONS: tuple[Calibration, ...] = ("optimal", "tight", "paper")
COPIES = (1, 3, 5, 10, 20)


def ever_member(person: tuple[int, ...]) -> int:
    """One vote per user, however many years he answered."""
    return int(any(person))


def majority_pmf(members: int, n_people: int) -> list[int]:
    """The probabilities of "no" and "yes": this is no noisy count, but the truth."""
    return [0, 1] if 2 * members > n_people else [1, 0]


majority = AdditiveAlgorithm(
    ("no", "yes"), ever_member, majority_pmf, statistic_range=(0, 1), name="majority of ever members"
)


def delstab(calibration: Calibration = "optimal") -> DelStab:
    """(1, 10^-6)-DP for the replacement of a user. compatibility="exact" compares only the totals that can occur."""
    return DelStab(majority, epsilon=EPSILON, delta=DELTA, calibration=calibration, compatibility="exact")


def tell(people: Dataset, many: Dataset) -> None:
    """The story, in the order in which somebody would meet it."""
    print(f"{sum(map(ever_member, people))} of {len(people)} men have ever been in a union.\n")

    # The majority is decided by eight men. DelStab leaves out a public number of them and asks whether it matters whom.
    # Here it does, so it refuses almost surely, and says why.
    private = delstab()
    print(f"A vote at epsilon = {EPSILON}, delta = {DELTA}, explained (this is not private):")
    print(private.explain(people), end="\n\n")

    # The advice is "more users". The same proportions with more users are a wider margin, and the number left out
    # stays: here the panel is repeated, every copy a user of his own. How soon that helps is a matter of the
    # calibration: all three are proved, they differ in the constants.
    print(f"{'people':>8}  {'calibration':<12} {'left out':>8} {'r*':>4}  probability of a refusal")
    for copies in COPIES:
        for calibration in CALIBRATIONS:
            vote, crowd = delstab(calibration), people * copies
            smallest, refusal = vote.smallest_stable_size(crowd), vote.refusal_probability(crowd)
            print(f"{len(crowd):>8,}  {calibration:<12} {vote.deletions:>8} {smallest:>4}  {float(refusal):.6g}")

    # What would be published. Random bits come from the operating system, and a refusal is an answer like any other:
    # it may be published too. Asking twice would cost epsilon and delta twice.
    print()
    for crowd in (people, many):
        released = private.release(crowd)
        print(f"Release for {len(crowd):,} users: {'refused' if released is BOTTOM else released}")

    # On the larger crowd the answer is certain, although one man more or less could never be told from it.
    pmf = private.pmf(many)
    print(
        "Its distribution there: "
        + ", ".join(f"{o} {p}" for o, p in zip(private.outputs, pmf.fractions(), strict=True))
    )


def check() -> bool:
    """Decide the promise on a world that is small enough: seven users, two answers each, every history, exactly."""

    def audited(mechanism: FiniteAlgorithm) -> AuditReport:
        return audit_user_level(mechanism, universe=(0, 1), n_users=7, n_examples=2, epsilon=8, delta="0.01")

    bare = audited(majority)
    private = audited(DelStab(majority, epsilon=8, delta="0.01", compatibility="exact"))
    print(f"\nAll {private.datasets} datasets of 7 users with two answers, {private.pairs} neighboring pairs:")
    for name, report in (("the bare majority", bare), ("DelStab of it", private)):
        verdict = "holds" if report.holds else "violated"
        print(f"  {name}: {verdict}, worst delta {report.worst_delta.upper:.3g}")
    return private.holds is True and bare.holds is False and private.verify().finding == "consistent"


def main() -> None:
    """Tell the story and check the promise."""
    people = load_wage_panel().users("union")
    tell(people, many=people * 5)
    if not check():
        raise SystemExit("the promise does not hold")


if __name__ == "__main__":
    main()
