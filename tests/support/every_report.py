"""One report of every kind, some of several shapes: what tests of all kinds begin with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from userdp import Bounds
from userdp.accounting import PrivacyLossDistribution
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_dataset, audit_one_run, audit_sampler_law, audit_sensitivity, audit_user_level
from userdp.delstab import DelStab
from userdp.delstab.delstab import calibrate
from userdp.exact.numbers import LogRatio, PrivacyLevel
from userdp.item_to_user import audit_perfect_generalization
from userdp.lddp import check_lddp
from userdp.mechanisms import ExponentialMechanism
from userdp.optimal import optimal_mechanism, optimal_sum_mechanism
from userdp.planning import compare_methods
from userdp.report import Certificate, Guesses, GuessReport, Report
from userdp.report.fields import Result
from userdp.stability import AgreementEstimate, audit_stability

F = Fraction


@finite_algorithm(outputs=("no", (1, 0.5)))
def answer(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Right with probability 3/4 about the first user."""
    return [F(1, 4), F(3, 4)] if dataset[0][0] else [F(3, 4), F(1, 4)]


@finite_algorithm(outputs=tuple("abc"))
def order(dataset: tuple[Any, ...]) -> list[int]:
    """Tells the orders (0, 1) and (1, 0) apart from everything else."""
    return {((0,), (1,)): [0, 1, 0], ((1,), (0,)): [0, 0, 1]}.get(dataset, [1, 0, 0])


def coins(dataset: tuple[Any, ...], bits: Callable[[int], int]) -> Any:
    """A count with geometric noise on one side, up to 3, and an exception in some runs."""
    noise = sum(user[0] for user in dataset)
    while not bits(1):
        noise += 1
    return min(noise, 3) if noise != 2 else [][noise]


SHARE = AdditiveAlgorithm(
    ("no", "yes"), lambda user: user[0], lambda total, n: [F(n - total, n), F(total, n)], statistic_range=(0, 1)
)
NOISY = AdditiveAlgorithm(
    ("no", "yes"),
    lambda user: user[0],
    lambda total, n: [F(n + 4 - total, n + 8), F(total + 4, n + 8)],
    statistic_range=(0, 1),
)
PEOPLE = ((0,), (1,), (1,), (1,))


def votes(sample: tuple[Any, ...]) -> dict[int, Fraction]:
    """A distribution of two items that depends on the sample."""
    ones = sum(example for example in sample)
    return {0: F(1 + len(sample) - ones, 2 + len(sample)), 1: F(1 + ones, 2 + len(sample))}


def composed(*parts: tuple[PrivacyLossDistribution, int]) -> Report:
    """The certificate of a composition."""
    return Report.from_json(PrivacyLossDistribution.composed(parts).certificate(delta="1e-6"))


def optimal(**arguments: Any) -> Report:
    """The certificate of the best guess of what a user has."""
    known = {"universe": ("a", "b"), "n_users": 1, "epsilon": LogRatio(2)}
    return optimal_mechanism(lambda users, guess: 1 - users.count((guess,)), **(known | arguments)).certificate


def visits(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Rows of each town, of two towns."""
    return {town: sum(row["town"] == town for row in rows) for town in ("a", "b")}


def mean_of_today(rows: list[tuple[float]]) -> float:
    """A sum over a number that nobody made public."""
    return sum(row[0] for row in rows) / len(rows) if rows else 0.0


EVEN = {0: "1/2", 1: "1/2"}
EVERY_REPORT: dict[str, Callable[[], Report]] = {
    "audit": lambda: audit_user_level(answer, universe=(0, 1), n_users=2, n_examples=1, epsilon="1/2", delta=0),
    "audit of one dataset": lambda: audit_dataset(
        SHARE, PEOPLE, records=[(0,), (1,)], epsilon=LogRatio(3, 2), delta="1/9"
    ),
    "lddp": lambda: check_lddp(SHARE, PEOPLE, r=1, epsilon=0, delta="1/3"),
    "violated lddp": lambda: check_lddp(SHARE, PEOPLE, r=2, epsilon="0.1", delta="1/10"),
    "lddp of no difference": lambda: check_lddp(SHARE, PEOPLE[1:], r=1, epsilon=0, delta=0),
    "generalization": lambda: audit_perfect_generalization(
        order, universe=(0, 1), distributions=[[1, 1], [1, 2]], n_users=2, epsilon="0.1", delta="0.03", beta="1/2"
    ),
    "generalization from a simulator": lambda: audit_perfect_generalization(
        order,
        universe=(0, 1),
        distributions={0: 1, 1: 1},
        n_users=2,
        epsilon="0.1",
        delta="0.03",
        beta="3/4",
        notion="simulator",
        scope="listed",
        simulator=[1, 0, 0],
    ),
    "generalization of multisets": lambda: audit_perfect_generalization(
        SymmetricAlgorithm(SHARE.outputs, SHARE.pmf),
        universe=(0, 1),
        distributions=[1, 2],
        n_users=3,
        epsilon=1,
        delta=0,
    ),
    "stability": lambda: audit_stability(votes, EVEN, m=3, eta="1/3", alpha="1/2", errors=lambda item: F(item, 2)),
    "stability of lists": lambda: audit_stability(lambda sample: set(sample), EVEN, m=2),
    "stability of seeds": lambda: audit_stability(
        lambda sample, seed: max(sample) if seed else 1, EVEN, m=2, eta="4/5", seeds={0: "1/4", 1: "3/4"}
    ),
    "law": lambda: audit_sampler_law(
        coins, universe=(0, 1), n_users=2, n_examples=1, epsilon=LogRatio(2), delta="1/10", processes=0
    ),
    "law of an undecided sampler": lambda: audit_sampler_law(
        coins,
        universe=(0, 1),
        n_users=1,
        n_examples=1,
        epsilon=1,
        delta=0,
        neighbors="add-remove",
        max_runs=20,
        processes=0,
    ),
    "guesses": lambda: audit_one_run(
        lambda users: [len(user) for user in users],
        canaries=[(1,)] * 100,
        others=[()] * 100,
        score=lambda output: output,
        epsilon="1/2",
        delta="1e-7",
        random_state=0,
    ),
    "guesses by time": lambda: GuessReport(
        mechanism="waiting",
        access="time",
        neighbors="inputs",
        test="anytime",
        epsilon_level=PrivacyLevel(F(1), F(0)),
        delta=F(0),
        canaries=0,
        sides=1,
        runs=40,
        raised=0,
        holds=None,
        verdict=Guesses(alpha=F(1, 10**9), right=20, wrong=3, none=7, epsilon=PrivacyLevel(F(1), F(0))),
        estimate=Guesses(alpha=F(1, 20), right=20, wrong=3, none=7, epsilon=PrivacyLevel(F(5, 4), F(0))),
        about="the number",
    ),
    "composition": lambda: composed(
        (PrivacyLossDistribution.pure("0.1", "1e-8"), 7),
        (PrivacyLossDistribution.from_pmfs(["2/3", "1/3"], ["1/3", "2/3"]), 2),
        (PrivacyLossDistribution.discrete_laplace("1/10", 3), 2),
        (PrivacyLossDistribution.discrete_gaussian(20), 1),
        (PrivacyLossDistribution.bounded_range("0.2"), 1),
        (PrivacyLossDistribution.gaussian(5), 1),
    ),
    "composition on a lattice": lambda: composed((PrivacyLossDistribution.pure("ln(3/2)"), 20)),
    "sensitivity": lambda: audit_sensitivity(
        visits,
        schema={"town": ("a", "b")},
        user="who",
        l1=4,
        linf=2,
        l2_squared=9,
        max_users=2,
        total_rows=3,
        processes=0,
    ),
    "violated sensitivity": lambda: audit_sensitivity(
        mean_of_today,
        schema={"x": float},
        frame="tuples",
        alphabets={"x": [0.5, 1.0]},
        l0=1,
        l1="1/3",
        max_users=2,
        processes=0,
    ),
    "certificate": lambda: calibrate("optimal", 8, "0.01").certificate(),
    "certificate of tight noise": lambda: calibrate("tight", 8, "0.01").certificate(),
    "certificate of a selection": lambda: ExponentialMechanism(epsilon=8, sensitivity=1).certificate(3),
    "certificate of a pair": lambda: Certificate.of_pair(["2/3", "1/3"], ["1/3", "2/3"], epsilon="1/2", delta="1/3"),
    "optimality": lambda: optimal(delta="1/10"),
    "optimality of a mean": lambda: optimal(objective="bayes", symmetries=()),
    "optimality of a sum": lambda: (
        optimal_sum_mechanism(
            lambda total, output: abs(total - output),
            statistic_range=(-1, 0),
            outputs=(-2, -1, F(1, 2)),
            n_users=2,
            epsilon=1,
        ).certificate
    ),
}
EVERY_REPORT = {name: cache(make) for name, make in EVERY_REPORT.items()}
OTHER_RESULTS: dict[str, Callable[[], Result]] = {
    "explanation": lambda: DelStab(NOISY, epsilon=1, delta="1e-3").explain([(1,)] * 40),
    "comparison": lambda: compare_methods("mean", n_users=1000, m=64, epsilon=1),
    "agreement": lambda: AgreementEstimate(
        agreed=90, trials=100, defaults=3, probability=Bounds(0.8, 0.96), confidence=0.99
    ),
}
"""Results that establish nothing, and so are no reports."""
