"""User-level audits of DelStab over all datasets and neighbors, against the brute-force reference; and mutants."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import delstab as reference
from userdp import LogRatio
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_user_level
from userdp.delstab import BOTTOM, DelStab
from userdp.report import AuditReport

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "delstab_cases.json").read_text(encoding="utf-8"))["cases"]
EPSILON, E, DELTA = LogRatio(8000, 1), F(8000), F(3, 50)
CALIBRATIONS: tuple[Any, ...] = ("paper", "tight", "optimal")
INNER_BUDGETS: tuple[Any, ...] = (("1/4", "1/4"), ("1/12", "3/4"), ("2/5", "1/100"))


def chain(delstab: DelStab) -> list[Fraction]:
    """Probabilities of a refusal at r* = 0, 1, ..., from the table that is drawn from."""
    return [F(numerator, 2**128) for numerator in delstab.calibration.refusal]


def sizes(delstab: DelStab) -> list[Fraction]:
    refusal = chain(delstab)
    return [after - before for before, after in itertools.pairwise(refusal)]


def inner_multiplier(delstab: DelStab) -> Fraction:
    epsilon = delstab.epsilon_bar
    assert isinstance(epsilon, LogRatio)
    return epsilon.ratio


def response(n_types: int) -> Callable[[tuple[int, ...]], list[Fraction]]:
    """Randomized response of the most frequent type among the kept, by count vector."""

    def pmf(counts: tuple[int, ...]) -> list[Fraction]:
        winner = counts.index(max(counts))
        return [1 - F(n_types - 1, 1000) if output == winner else F(1, 1000) for output in range(n_types)]

    return pmf


def ladder(counts: tuple[int, ...]) -> list[Fraction]:
    """The least popular pmfs: outcome 1 with probability 21 d, d and 0 for the types, d the paper's delta-bar."""
    low = F(3, 21100)
    steps = (21 * low, low, F(0))
    mass = sum((F(count, sum(counts)) * step for count, step in zip(counts, steps, strict=True)), F(0))
    return [1 - mass, mass]


def noisy_count(counts: tuple[int, ...]) -> list[Fraction]:
    weights = [F(1, 25 ** abs(output - counts[1])) for output in range(3)]
    return [weight / sum(weights) for weight in weights]


def audited(delstab: DelStab, n_types: int, n_users: int, epsilon: Any = EPSILON, delta: Any = DELTA) -> AuditReport:
    return audit_user_level(
        delstab, universe=range(n_types), n_users=n_users, n_examples=1, epsilon=epsilon, delta=delta, progress=False
    )


def worst_of_types(delstab: DelStab, pmf: Any, n_types: int, n_users: int) -> tuple[Fraction, Any]:
    def as_dict(counts: tuple[int, ...]) -> reference.Distribution:
        return dict(enumerate(pmf(counts)))

    compatible = reference.relation(as_dict, inner_multiplier(delstab), delstab.delta_bar)
    typed = reference.Typed(as_dict, n_users, delstab.deletions, compatible, sizes(delstab))
    pmfs = {
        counts: typed.algorithm_1(counts) if delstab.kappa else typed.optimal(counts, chain(delstab))
        for counts in reference.vectors(n_users, (n_users,) * n_types)
    }
    return reference.worst(pmfs, reference.typed_neighbors(n_types, n_users), E)


def of_types(distribution: Any, n_types: int) -> SymmetricAlgorithm:
    def pmf(kept: Any) -> Any:
        values = [user[0] for user in kept]
        return distribution(tuple(map(values.count, range(n_types))))

    return SymmetricAlgorithm(range(len(distribution((1,) + (0,) * (n_types - 1)))), pmf)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize(
    ("pmf", "n_types", "extra"),
    [
        (response(2), 2, (1, 2, 3, 4)),
        (response(3), 3, (1, 2)),
        (ladder, 3, (1, 2)),
        (noisy_count, 2, (1, 2, 3, 4)),
    ],
    ids=["response-2", "response-3", "ladder", "noisy-count"],
)
def test_worst_delta_of_types(calibration: Any, pmf: Any, n_types: int, extra: tuple[int, ...]) -> None:
    delstab = DelStab(of_types(pmf, n_types), epsilon=EPSILON, delta=DELTA, calibration=calibration)
    for more in extra:
        n_users = delstab.deletions + more
        report = audited(delstab, n_types, n_users)
        expected, _ = worst_of_types(delstab, pmf, n_types, n_users)
        assert report.holds
        assert report.engine == "symmetric"
        assert 0 < F(report.worst_delta.lower) <= expected <= F(report.worst_delta.upper) <= DELTA
        assert report.worst_delta.upper - report.worst_delta.lower <= 1e-15
        print(f"{calibration} K={n_types} n={n_users}: worst delta {float(expected):.4g}, claimed {float(DELTA)}")


@pytest.mark.parametrize("inner_budget", INNER_BUDGETS)
@pytest.mark.parametrize(("pmf", "n_types"), [(response(2), 2), (ladder, 3), (noisy_count, 2)])
def test_other_inner_budgets(inner_budget: Any, pmf: Any, n_types: int) -> None:
    """They keep the promise too, and one made for twice the epsilon breaks it."""
    delstab = DelStab(of_types(pmf, n_types), epsilon=EPSILON, delta=DELTA, inner_budget=inner_budget)
    n_users = delstab.deletions + 1
    report = audited(delstab, n_types, n_users)
    expected, _ = worst_of_types(delstab, pmf, n_types, n_users)
    assert report.holds
    assert F(report.worst_delta.lower) <= expected <= F(report.worst_delta.upper) <= DELTA


@pytest.mark.parametrize(("inner_budget", "power"), list(zip(INNER_BUDGETS, (4, 3, 10), strict=True)))
def test_faster_refusals_break_the_promise(inner_budget: Any, power: int) -> None:
    """Refusals alone may rise at epsilon, so (1 - 2 share) times this power of e^epsilon must be above 1 to be seen."""
    delstab = DelStab(of_types(response(2), 2), epsilon=LogRatio(20), delta="1e-4", inner_budget=inner_budget)
    spoilt = DelStab(of_types(response(2), 2), epsilon=LogRatio(20), delta="1e-4", inner_budget=inner_budget)
    spoilt.calibration = DelStab(
        spoilt.algorithm, epsilon=LogRatio(20**power), delta="1e-4", inner_budget=inner_budget
    ).calibration
    for made, holds in ((delstab, True), (spoilt, False)):
        assert audited(made, 2, made.deletions + 1, LogRatio(20), "1e-4").holds is holds


@pytest.mark.parametrize("case", [c for c in CASES if c["kind"] == "delstab_audit"], ids=lambda case: case["id"])
def test_published_audits(case: dict[str, Any]) -> None:
    """The table over 2^128 differs from the ideal noise in the last places; nothing else differs."""
    given = case["input"]
    pmf = response(2) if given["K"] == 2 else ladder
    delstab = DelStab(of_types(pmf, given["K"]), epsilon=EPSILON, delta=F(given["delta"]), calibration="paper")
    report = audited(delstab, given["K"], given["n"])
    assert report.holds
    published = F(case["expected"]["worst_delta"])
    assert abs(F(report.worst_delta.upper) / published - 1) < F(1, 10**8)


@pytest.mark.parametrize("more", [1, 2])
def test_worst_delta_of_labeled_users(more: int) -> None:
    """An algorithm that looks at the order."""

    def pmf(kept: Any) -> list[Fraction]:
        return [F(1, 50), F(49, 50)] if kept[0] == (0,) else [F(49, 50), F(1, 50)]

    delstab = DelStab(finite_algorithm((0, 1))(pmf), epsilon=EPSILON, delta=DELTA)
    n_users = delstab.deletions + more
    report = audited(delstab, 2, n_users)

    def as_dict(kept: Any) -> reference.Distribution:
        return dict(enumerate(pmf(kept)))

    compatible = reference.relation(as_dict, inner_multiplier(delstab), delstab.delta_bar)
    datasets = itertools.product([(0,), (1,)], repeat=n_users)
    pmfs = {x: reference.optimal(x, as_dict, chain(delstab), delstab.deletions, compatible) for x in datasets}
    expected, _ = reference.worst(pmfs, reference.labeled_neighbors([(0,), (1,)], n_users), E)
    assert report.engine == "labeled"
    assert report.holds
    assert F(report.worst_delta.lower) <= expected <= F(report.worst_delta.upper) <= DELTA
    print(f"optimal, labeled, n={n_users}: worst delta {float(expected):.4g}, claimed {float(DELTA)}")


@pytest.mark.parametrize("calibration", ["tight", "optimal"])
def test_worst_delta_of_windows(calibration: Any) -> None:
    """The distance relation, under which S is a window whatever R1 is."""

    def pmf_of_total(total: int, n_users: int) -> list[Fraction]:
        weights = [F(1, 5 ** abs(output - total)) for output in range(2 * n_users + 1)]
        return [weight / sum(weights) for weight in weights] + [F(0)] * (8 - 2 * n_users)

    algorithm = AdditiveAlgorithm(range(9), lambda user: user[0], pmf_of_total, statistic_range=(0, 2))
    delstab = DelStab(algorithm, epsilon=EPSILON, delta=DELTA, calibration=calibration)
    for more in (1, 3):
        n_users = delstab.deletions + more
        report = audited(delstab, 3, n_users)
        distance = delstab._totals[n_users].distance
        pmfs = {}
        for counts in reference.vectors(n_users, (n_users,) * 3):
            values = [value for value, count in enumerate(counts) for _ in range(count)]
            pmfs[counts] = reference.window_pmf(
                values,
                lambda total: dict(enumerate(pmf_of_total(total, more))),  # noqa: B023
                chain(delstab),
                delstab.deletions,
                distance,
            )
        expected, _ = reference.worst(pmfs, reference.typed_neighbors(3, n_users), E)
        assert report.engine == "symmetric"
        assert report.holds
        assert F(report.worst_delta.lower) <= expected <= F(report.worst_delta.upper) <= DELTA
        assert expected > 0
        print(f"{calibration}, windows, n={n_users}, t={distance}: worst delta {float(expected):.4g}")


@pytest.mark.parametrize("calibration", ["tight", "optimal"])
def test_pools_of_few_types_keep_the_promise(calibration: Any) -> None:
    """More distinct users than admitted: S removes all but the best of them, and neighbors cannot tell."""
    delstab = DelStab(
        of_types(noisy_count, 3), epsilon=EPSILON, delta=DELTA, calibration=calibration, max_distinct_users=2
    )
    n_users = delstab.deletions + 2
    report = audited(delstab, 3, n_users)

    def as_dict(counts: tuple[int, ...]) -> reference.Distribution:
        return dict(enumerate(noisy_count(counts)))

    class FewTypes(reference.Typed):
        def stable(self, pool: tuple[int, ...]) -> bool:
            return sum(map(bool, pool)) <= 2 and super().stable(pool)

    compatible = reference.relation(as_dict, inner_multiplier(delstab), delstab.delta_bar)
    typed = FewTypes(as_dict, n_users, delstab.deletions, compatible, sizes(delstab))
    for counts in reference.vectors(n_users, (n_users,) * 3):
        people = tuple((value,) for value, count in enumerate(counts) for _ in range(count))
        smallest = typed.smallest_stable_size(counts)
        refusal = chain(delstab)
        expected = refusal[-1] if smallest is None else refusal[min(smallest, len(refusal) - 1)]
        assert delstab.refusal_probability(people) == expected
    assert report.holds
    assert 0 < report.worst_delta.upper <= DELTA


def test_certificates_check_themselves() -> None:
    delstab = DelStab(of_types(noisy_count, 2), epsilon=EPSILON, delta=DELTA)
    report = audited(delstab, 2, delstab.min_users)
    assert report.verify(mechanism=delstab).finding == "established"
    assert BOTTOM in report.outputs


# ------------------------------------------------------------------ mutants that the audits must flag


def reveal(kept: Any) -> reference.Distribution:
    return {kept[0][0]: F(1)}


def half(kept: Any) -> reference.Distribution:
    return {0: F(1)} if kept[0] == (0,) else {0: F(1, 2), 1: F(1, 2)}


def mutant(algorithm: Any, deletions: int, compatible: Any, pick: str) -> Any:
    """Algorithm 1 with noise at e^eps = 20 on {0, 1, 2} and any deletions, relation and rule for S."""
    noise = reference.laplace(F(20), 1)

    @finite_algorithm((0, 1, BOTTOM))
    def released(dataset: Any) -> list[Fraction]:
        pmf = reference.algorithm_1(dataset, algorithm, noise, deletions, compatible, pick)
        return [pmf.get(output, F(0)) for output in (0, 1, reference.BOTTOM)]

    return released


NOISE_DELTA = F(1, 10**6)
BOUND = F(1, 22) + 21 * NOISE_DELTA


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["kind"] == "delstab_audit_labeled"], ids=lambda case: case["id"]
)
def test_half_the_deletions_are_flagged(case: dict[str, Any]) -> None:
    """With 2 kappa deletions and the first stable set the promise is broken outright; with 4 kappa it is kept."""
    given = case["input"]
    compatible = reference.relation(reveal, F(20), NOISE_DELTA)
    mechanism = mutant(reveal, given["deletions"], compatible, "first")
    report = audit_user_level(
        mechanism, universe=(0, 1), n_users=given["n"], n_examples=1, epsilon=EPSILON, delta=BOUND, progress=False
    )
    published = F(case["expected"]["worst_delta"])
    assert F(report.worst_delta.lower) <= published <= F(report.worst_delta.upper)
    assert report.holds is (given["deletions"] == 4)


def test_a_one_sided_relation_is_flagged() -> None:
    def one_sided(a: Any, b: Any) -> bool:
        first, second = sorted((a, b))
        return reference.divergence(half(first), half(second), F(20)) <= NOISE_DELTA

    two_sided = reference.relation(half, F(20), NOISE_DELTA)
    verdicts = {}
    for name, compatible in (("one-sided", one_sided), ("two-sided", two_sided)):
        mechanism = mutant(half, 4, compatible, "last")
        report = audit_user_level(
            mechanism, universe=(0, 1), n_users=5, n_examples=1, epsilon=EPSILON, delta=BOUND, progress=False
        )
        verdicts[name] = report.holds
    assert verdicts == {"one-sided": False, "two-sided": True}
