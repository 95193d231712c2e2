"""Audits against a brute-force auditor in fractions, known mechanisms, and refusals."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import audit as oracle
from oracle import divergence as exact
from userdp import LogRatio, Pmf, exact_pmf
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_dataset, audit_item_level, audit_pair, audit_user_level
from userdp.exceptions import BudgetError
from userdp.report import AuditReport

F = Fraction
Dataset = tuple[tuple[int, ...], ...]


def random_pmf(source: random.Random, size: int) -> list[F]:
    weights = [source.choice((0, 1, 2, 3, 7)) for _ in range(size)]
    weights[source.randrange(size)] += 1
    return [F(weight, sum(weights)) for weight in weights]


def labeled(source: random.Random, size: int) -> Any:
    pmfs: dict[Dataset, list[F]] = {}
    return finite_algorithm(range(size))(lambda x: pmfs.setdefault(x, random_pmf(source, size)))


def symmetric(source: random.Random, size: int) -> Any:
    pmfs: dict[Dataset, list[F]] = {}
    return SymmetricAlgorithm(range(size), lambda x: pmfs.setdefault(tuple(sorted(x)), random_pmf(source, size)))


def additive(source: random.Random, size: int) -> Any:
    pmfs: dict[tuple[int, int], list[F]] = {}
    return AdditiveAlgorithm(
        range(size),
        statistic=lambda user: 2 * sum(user) - 1,
        pmf_of_total=lambda total, n: pmfs.setdefault((total, n), random_pmf(source, size)),
        statistic_range=(0, 3),
    )


MAKERS = {"labeled": labeled, "symmetric": symmetric, "additive": additive}
LEVELS = [
    (LogRatio(2, 1), F(2), F(0)),
    (LogRatio(7, 3), F(7, 3), F(0)),
    (0, F(1), F(0)),
    ("1/2", F(1), F(1, 2)),
    (1.25, F(1), F(5, 4)),
]


def same_findings(report: AuditReport, expected: dict[str, Any]) -> None:
    found = report.to_dict()
    for field in ("outputs", "pmfs", "pmf_of", "datasets", "pairs", "pmf_pairs", "verification"):
        assert found[field] == expected[field], field
    assert found["question"] == expected["question"]
    for field in ("holds", "epsilon", "exp_epsilon"):
        assert found["result"][field] == expected["result"][field], field
    mine, theirs = ([float.fromhex(bound) for bound in part["result"]["worst_delta"]] for part in (found, expected))
    # The oracle's multiplier has 800 digits, so its bounds may be a float wider than the tightest.
    assert theirs[0] <= mine[0] <= mine[1] <= theirs[1]
    assert theirs[1] <= math.nextafter(math.nextafter(mine[0], 2.0), 2.0)


@pytest.mark.parametrize("engine", MAKERS)
@pytest.mark.parametrize("kind", ["user-level", "item-level", "add-remove"])
def test_universe_audits_agree_with_brute_force(engine: str, kind: str) -> None:
    source = random.Random(f"{engine} {kind}")
    for round_ in range(25):
        n_users, n_examples = source.choice([(1, 1), (2, 1), (3, 1), (2, 2), (1, 3)])
        mechanism = MAKERS[engine](source, source.randrange(2, 4))
        epsilon, ratio, exponent = LEVELS[round_ % len(LEVELS)]
        delta = source.choice([F(0), F(1, 10), F(1, 2), F(1)])
        common = {"universe": (0, 1), "n_users": n_users, "n_examples": n_examples, "epsilon": epsilon, "delta": delta}
        if kind == "item-level":
            report = audit_item_level(mechanism, **common)
        else:
            report = audit_user_level(mechanism, **common, neighbors="replace" if kind == "user-level" else kind)
        structure = dict(report.structure)
        expected = oracle.audit(
            lambda x, mechanism=mechanism: mechanism.pmf(x),
            mechanism.outputs,
            kind="item-level" if kind == "item-level" else "user-level",
            neighbors="add-remove" if kind == "add-remove" else "replace",
            engine=engine,
            structure=structure,
            ratio=ratio,
            exponent=exponent,
            delta=delta,
            mechanism=mechanism.name,
        )
        same_findings(report, expected)
        verification = report.verify(mechanism=mechanism)
        assert verification.finding == "established", verification.problems
        assert AuditReport.from_json(report.to_json()).verify().finding == "consistent"
        witness_attains_the_worst(report, mechanism, ratio, exponent)


def witness_attains_the_worst(report: AuditReport, mechanism: Any, ratio: F, exponent: F) -> None:
    if report.witness is None:
        assert report.worst_delta.upper == 0
        return
    x, x2, event = report.witness
    if len(x) == len(x2):
        assert sum(a != b for a, b in zip(x, x2, strict=True)) == 1
        assert x[report.witness.changed_user] != x2[report.witness.changed_user]
    else:
        longer, shorter = sorted((x, x2), key=len, reverse=True)
        assert any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    multiplier = oracle.multiplier(ratio, exponent)
    p, q = mechanism.pmf(x), mechanism.pmf(x2)
    gap = sum((p[o] - multiplier * q[o] for o in range(len(p)) if mechanism.outputs[o] in event), F(0))
    assert abs(gap - F(report.worst_delta.lower)) <= F(1, 10**15)


@pytest.mark.parametrize("engine", MAKERS)
def test_dataset_audits_agree_with_brute_force(engine: str) -> None:
    source = random.Random(engine)
    records = list(itertools.product((0, 1), repeat=2))
    for _ in range(20):
        mechanism = MAKERS[engine](source, 3)
        dataset = tuple(source.choice(records) for _ in range(source.randrange(1, 5)))
        report = audit_dataset(mechanism, dataset, records=records, epsilon=LogRatio(3, 2), delta="1/10")
        expected = oracle.audit(
            lambda x, mechanism=mechanism: mechanism.pmf(x),
            mechanism.outputs,
            kind="dataset",
            engine=engine,
            structure=dict(report.structure),
            ratio=F(3, 2),
            delta=F(1, 10),
            mechanism=mechanism.name,
        )
        same_findings(report, expected)
        assert report.verify(mechanism=mechanism).finding == "established"
        # Leaving out users of the same kind loses nothing: the worst over all positions is the same.
        whole = audit_dataset(
            mechanism, dataset, records=records, epsilon=LogRatio(3, 2), delta="1/10", engine="labeled"
        )
        assert whole.worst_delta == report.worst_delta
        assert whole.exp_epsilon == report.exp_epsilon


def test_engines_agree_on_one_mechanism() -> None:
    mechanism = additive(random.Random(3), 3)
    reports = [
        audit_user_level(mechanism, universe=(0, 1), n_users=3, n_examples=2, epsilon="0.3", delta="0.2", engine=engine)
        for engine in ("labeled", "symmetric", "additive")
    ]
    assert len({(report.holds, report.worst_delta, report.exp_epsilon) for report in reports}) == 1
    assert [report.datasets for report in reports] == [64, 20, 9]


def randomized_response(ratio: F) -> Any:
    truth = ratio / (1 + ratio)

    @finite_algorithm(outputs=(0, 1))
    def respond(dataset: Dataset) -> list[F]:
        bit = dataset[0][0]
        return [truth, 1 - truth] if bit == 0 else [1 - truth, truth]

    return respond


@pytest.mark.parametrize("ratio", [F(2), F(3), F(10), F(101, 100), F(10**12 + 1, 10**12)])
def test_randomized_response_has_exactly_its_epsilon(ratio: F) -> None:
    epsilon = LogRatio(ratio.numerator, ratio.denominator)
    report = audit_user_level(
        randomized_response(ratio), universe=(0, 1), n_users=2, n_examples=2, epsilon=epsilon, delta=0
    )
    print(f"worst delta at ln({ratio}): {report.worst_delta}")
    assert report.holds
    assert report.exp_epsilon == ratio
    assert report.worst_delta.upper == 0
    below = LogRatio(*(ratio - (ratio - 1) / 10**9).as_integer_ratio())
    refuted = audit_user_level(
        randomized_response(ratio), universe=(0, 1), n_users=2, n_examples=2, epsilon=below, delta=0
    )
    assert refuted.holds is False


def test_half_the_noise_fails_the_same_audit() -> None:
    claim = LogRatio(3, 1)
    arguments: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 2, "epsilon": claim, "delta": 0}
    assert audit_user_level(randomized_response(F(3)), **arguments).holds
    assert not audit_user_level(randomized_response(F(9)), **arguments).holds  # half the noise: twice the epsilon


def test_wrong_by_one_part_in_a_trillion_is_refuted() -> None:
    @finite_algorithm(outputs=(0, 1))
    def nearly(dataset: Dataset) -> list[F]:
        tilt = F(1, 4) * (1 - F(1, 10**12))
        return [F(3, 4), F(1, 4)] if dataset[0][0] == 0 else [tilt, 1 - tilt]

    report = audit_user_level(nearly, universe=(0, 1), n_users=2, n_examples=1, epsilon=LogRatio(3, 1), delta=0)
    assert report.holds is False
    assert report.exp_epsilon == 3 / (1 - F(1, 10**12))
    assert report.verify(mechanism=nearly).finding == "established"


def test_a_float_softmax_misses_its_epsilon_by_rounding_and_is_told_so() -> None:
    # Logistic noise with exactly e^(1/2) between the two distributions, computed in floats as users do.
    def floats(dataset: Dataset) -> Any:
        weights = np.exp(np.array([0.5 if dataset[0][0] == 0 else 0.0, 0.0 if dataset[0][0] == 0 else 0.5]))
        return weights / weights.sum()

    mechanism = finite_algorithm((0, 1))(floats)
    common: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1}
    report = audit_user_level(mechanism, epsilon=0.5, delta=0, **common)
    p, q = (list(map(F, floats(((bit,),)).tolist())) for bit in (0, 1))
    low, high = exact.exp_bounds(F(1, 2))
    truth = [max(exact.hockey_stick(x, y, level) for x, y in ((p, q), (q, p))) for level in (high, low)]
    assert truth[0] > 0, "on this platform the floats happen to be private; choose another epsilon"
    assert report.holds is False
    assert F(report.worst_delta.lower) <= truth[1]
    assert truth[0] <= F(report.worst_delta.upper)
    assert audit_user_level(mechanism, epsilon=0.5, delta=1e-15, **common).holds is True


def test_exact_pmf_of_logits_can_be_audited() -> None:
    mechanism = finite_algorithm((0, 1))(
        lambda dataset: exact_pmf(logits=["1/2" if dataset[0][0] == 0 else "-1/2", 0], bits=80)
    )
    common: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "delta": 0}
    report = audit_user_level(mechanism, epsilon=1, **common)
    assert report.holds is True
    # ln of (e^(1/2) / (1 + e^(1/2))) / (e^(-1/2) / (1 + e^(-1/2))) = 1/2, up to the resolution of 2^-80
    assert report.epsilon.lower == pytest.approx(0.5, abs=1e-15)


def test_declared_pmf_error_leaves_a_band_undetermined() -> None:
    pmfs = {0: [0.75, 0.25], 1: [0.25, 0.75]}
    mechanism = finite_algorithm((0, 1), pmf_error="1e-9")(lambda dataset: pmfs[dataset[0][0]])
    common: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "epsilon": 0}
    verdicts = {delta: audit_user_level(mechanism, delta=delta, **common) for delta in (0.4, 0.5, 0.6)}
    assert [report.holds for report in verdicts.values()] == [False, None, True]
    band = verdicts[0.5].worst_delta
    # (1 - r) p - (1 + r) q and (1 + r) p - (1 - r) q
    assert band.lower == pytest.approx(0.5 - 1e-9, abs=1e-15)
    assert band.upper == pytest.approx(0.5 + 1e-9, abs=1e-15)
    with pytest.raises(ValueError, match="pmf_error"):
        bool(verdicts[0.5])
    for report in verdicts.values():
        assert report.verify().finding == "consistent"


def test_equal_stated_pmfs_may_differ_within_their_error() -> None:
    mechanism = finite_algorithm((0, 1), pmf_error="1/100")(lambda dataset: [0.5, 0.5])
    report = audit_user_level(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=0)
    assert report.holds is None
    assert report.worst_delta.upper == pytest.approx(0.02, abs=1e-15)
    assert report.verify().finding == "consistent"


def test_profile_is_the_maximum_over_all_pairs() -> None:
    mechanism = labeled(random.Random(9), 3)
    report = audit_user_level(mechanism, universe=(0, 1), n_users=2, n_examples=1, epsilon=0, delta=0)
    for ratio, value in zip((F(1), F(3, 2), F(4)), report.profile([0, LogRatio(3, 2), LogRatio(4, 1)]), strict=True):
        worst = max(
            oracle.hockey_stick(report.pmfs[a], report.pmfs[b], ratio)
            for i, j in report.pmf_pairs
            for a, b in ((i, j), (j, i))
        )
        assert F(value) >= worst
        assert F(value) - worst <= F(1, 10**14)


def test_pair_audit() -> None:
    mechanism = randomized_response(F(3))
    report = audit_pair(mechanism, [(0,)], [[1]], epsilon=LogRatio(2, 1), delta="1/5")
    assert report.holds is False  # 3/4 - 2/4 = 1/4
    assert report.worst_delta.lower == report.worst_delta.upper == 0.25
    assert (report.datasets, report.pairs, report.witness.changed_user) == (2, 1, 0)
    assert report.verify(mechanism=mechanism).finding == "established"


def test_batches_are_used_and_checked() -> None:
    class Batched:
        outputs = (0, 1)
        calls = 0

        def pmf(self, dataset: Dataset) -> Any:
            raise AssertionError("the batch should have been used")

        def pmf_batch(self, datasets: list[Dataset]) -> Any:
            self.calls += 1
            return np.array([[0.25, 0.75] if dataset[0][0] else [0.75, 0.25] for dataset in datasets])

    mechanism = Batched()
    report = audit_user_level(mechanism, universe=(0, 1), n_users=3, n_examples=1, epsilon=LogRatio(3, 1), delta=0)
    assert report.exp_epsilon == 3
    assert mechanism.calls == 2  # one block of eight, and once more to see that answers repeat
    Batched.pmf_batch = lambda self, datasets: np.full((1, 2), 0.5)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="rows"):
        audit_user_level(Batched(), universe=(0, 1), n_users=3, n_examples=1, epsilon=1, delta=0)


BAD_DISTRIBUTIONS: dict[str, Any] = {
    "nan": [math.nan, 1.0],
    "negative": [-0.1, 1.1],
    "sum": [0.5, 0.6],
    "exact sum": [F(1, 2), F(1, 3)],
    "length": [1.0],
    "none": None,
    "text": "ab",
    "other outputs": Pmf.from_weights([1, 1], outputs=("a", "b")),
    "table": [[0.5, 0.5], [0.5, 0.5]],
}


@pytest.mark.parametrize("pmf", BAD_DISTRIBUTIONS.values(), ids=BAD_DISTRIBUTIONS.keys())
def test_a_bad_pmf_names_the_dataset(pmf: Any) -> None:
    mechanism = finite_algorithm((0, 1))(lambda dataset: pmf if dataset == ((1,), (0,)) else [0.5, 0.5])
    with pytest.raises((ValueError, TypeError), match=r"\(\(1,\), \(0,\)\)"):
        audit_user_level(mechanism, universe=(0, 1), n_users=2, n_examples=1, epsilon=1, delta=0)


@pytest.mark.parametrize("maker", [finite_algorithm, lambda outputs: lambda f: SymmetricAlgorithm(outputs, f)])
def test_a_mechanism_that_raises_names_the_dataset(maker: Any) -> None:
    mechanism = maker((0, 1))(lambda dataset: [1 / dataset[1][0], 0.5])
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError.*\(\(0,\), \(0,\)\)"):
        audit_user_level(mechanism, universe=(0, 1), n_users=2, n_examples=1, epsilon=1, delta=0)


def test_a_mechanism_that_changes_its_mind_is_refused() -> None:
    source = random.Random(1)
    mechanism = finite_algorithm((0, 1))(lambda dataset: random_pmf(source, 2))
    with pytest.raises(ValueError, match="deterministic"):
        audit_user_level(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0)


def test_a_false_claim_of_symmetry_is_refused() -> None:
    mechanism = SymmetricAlgorithm((0, 1), lambda dataset: [0.25, 0.75] if dataset[0][0] else [0.75, 0.25])
    with pytest.raises(ValueError, match="symmetric"):
        audit_user_level(mechanism, universe=(0, 1), n_users=2, n_examples=1, epsilon=1, delta=0)


COMMON: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 1, "epsilon": 1, "delta": 0}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"universe": ()}, "universe"),
        ({"universe": (0, 0)}, "universe"),
        ({"universe": "01"}, "universe"),
        ({"universe": 3}, "universe"),
        ({"n_users": 0}, "n_users"),
        ({"n_users": 2.0}, "n_users"),
        ({"n_users": True}, "n_users"),
        ({"n_examples": 0}, "n_examples"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"neighbors": "swap"}, "neighbors"),
        ({"engine": "fast"}, "engine"),
        ({"engine": "additive"}, "engine"),
        ({"engine": "symmetric"}, "engine"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        audit_user_level(randomized_response(F(3)), **{**COMMON, **changes})


@pytest.mark.parametrize("mechanism", [None, lambda dataset: [1.0], 3])
def test_not_a_finite_algorithm(mechanism: Any) -> None:
    with pytest.raises(TypeError, match="FiniteAlgorithm"):
        audit_user_level(mechanism, **COMMON)


HUGE: list[dict[str, Any]] = [
    {"n_users": 10**9},
    {"n_users": 10**400},
    {"n_examples": 10**9},
    {"n_examples": 10**400},
    {"universe": (0,), "n_users": 10**9},
]
TOO_LARGE_LABELED: list[dict[str, Any]] = [
    {"n_users": 64},
    {"universe": range(10**4), "n_users": 10**6},
    {"universe": range(30_000)},
    {"n_users": 12, "budget": 1000},
]


@pytest.mark.parametrize("changes", HUGE)
@pytest.mark.parametrize("maker", MAKERS)
def test_huge_audits_are_refused_up_front(changes: dict[str, Any], maker: str) -> None:
    with pytest.raises(BudgetError, match=r"datasets .* Cheaper: "):
        audit_user_level(MAKERS[maker](random.Random(0), 2), **{**COMMON, **changes})


@pytest.mark.parametrize("changes", TOO_LARGE_LABELED)
def test_too_large_for_the_labeled_engine(changes: dict[str, Any]) -> None:
    with pytest.raises(BudgetError, match=r"datasets .* Cheaper: .*SymmetricAlgorithm"):
        audit_user_level(randomized_response(F(3)), **{**COMMON, **changes})


@pytest.mark.parametrize(
    ("maker", "changes"),
    [
        ("symmetric", {"universe": range(1000), "n_users": 1000}),
        ("symmetric", {"n_users": 20_000}),
        ("additive", {"n_users": 10**5}),
        ("additive", {"n_examples": 40}),
    ],
)
def test_too_large_for_the_cheaper_engines(maker: str, changes: dict[str, Any]) -> None:
    with pytest.raises(BudgetError, match=r"datasets .* Cheaper: "):
        audit_user_level(MAKERS[maker](random.Random(0), 2), **{**COMMON, **changes})


def test_many_people_with_an_additive_statistic() -> None:
    # 545 users with 256 possible histories each: totals, not datasets, are what is enumerated.
    mechanism = AdditiveAlgorithm(
        ("low", "high"),
        sum,
        lambda total, n: [F(8 * n - total + 1, 8 * n + 2), F(total + 1, 8 * n + 2)],
        statistic_range=(0, 8),
    )
    report = audit_user_level(mechanism, universe=(0, 1), n_users=545, n_examples=8, epsilon=0, delta="1/100")
    assert report.datasets == 8 * 545 + 1
    # Replacing a user moves the total by at most 8: delta = 8 / (8 * 545 + 2).
    assert F(report.worst_delta.lower) <= F(8, 8 * 545 + 2) <= F(report.worst_delta.upper)
    x, x2, _ = report.witness
    assert abs(sum(map(sum, x)) - sum(map(sum, x2))) == 8


def test_budget_and_range_arguments() -> None:
    for budget in ("x", math.nan, 1.5, True):
        with pytest.raises(TypeError, match="budget"):
            audit_user_level(randomized_response(F(3)), **COMMON, budget=budget)
    for bad in (3, (0, 1, 2), (0.5, 1)):
        with pytest.raises(TypeError, match="statistic_range"):
            AdditiveAlgorithm((0, 1), sum, lambda total, n: [1.0, 0.0], statistic_range=bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="outputs"):
        finite_algorithm(([1], [2]))
    for universe in ({0: 1}, {0, 1}):
        with pytest.raises(TypeError, match="universe"):
            audit_user_level(randomized_response(F(3)), **{**COMMON, "universe": universe})


def test_outputs_of_a_pmf_are_matched_by_name() -> None:
    # The same distribution, written in either order, is the same distribution.
    mechanism = finite_algorithm((1, 0))(lambda d: Pmf((0, 1), (3, 1)) if d[0][0] else Pmf((1, 0), (1, 3)))
    report = audit_user_level(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=0)
    assert report.holds
    assert report.pmfs == ((F(1, 4), F(3, 4)),)
    named = finite_algorithm(("a", "b"))(lambda d: exact_pmf(weights=[1, 1 + d[0][0]]))
    assert not audit_user_level(named, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=0).holds


def test_one_pmf_written_in_floats_and_in_fractions_is_one_pmf() -> None:
    pmfs: list[Any] = [[0.5, 0.5], [F(1, 2), F(1, 2)], np.array([0.5, 0.5]), Pmf.from_weights([7, 7])]
    mechanism = finite_algorithm((0, 1))(lambda dataset: pmfs[dataset[0][0]])
    report = audit_user_level(mechanism, universe=range(4), n_users=1, n_examples=1, epsilon=0, delta=0)
    assert len(report.pmfs) == 1
    assert report.verify(mechanism=mechanism).finding == "established"


def test_equal_records_of_different_types_stay_apart() -> None:
    mechanism = SymmetricAlgorithm((0, 1), lambda dataset: [0.5, 0.5])
    report = audit_dataset(mechanism, [(1,), (True,), (1.0,)], records=[(0,)], epsilon=0, delta=0)
    assert report.structure["replaceable"] == (0, 1, 2)
    assert report.verify(mechanism=mechanism).finding == "established"


def test_pairs_that_differ_in_several_users_name_none() -> None:
    report = audit_pair(randomized_response(F(3)), [(0,)] * 3, [(1,)] * 3, epsilon=0, delta=0)
    assert report.witness.changed_user is None


def test_dataset_arguments() -> None:
    mechanism = randomized_response(F(3))
    good: dict[str, Any] = {"records": [(0,)], "epsilon": 1, "delta": 0}
    for bad in (3, "ab", [1, 2], [None]):
        with pytest.raises((ValueError, TypeError), match="dataset"):
            audit_dataset(mechanism, bad, **good)
        with pytest.raises((ValueError, TypeError), match="records"):
            audit_dataset(mechanism, [(0,)], **{**good, "records": bad})
    with pytest.raises(ValueError, match="empty"):
        audit_dataset(mechanism, [], **good)


def test_algorithm_arguments() -> None:
    with pytest.raises(ValueError, match="outputs"):
        finite_algorithm(())
    with pytest.raises(ValueError, match="outputs"):
        finite_algorithm((1, 1))
    with pytest.raises(TypeError, match="outputs"):
        finite_algorithm("ab")
    with pytest.raises(ValueError, match="pmf_error"):
        finite_algorithm((0, 1), pmf_error=1)
    with pytest.raises(ValueError, match="statistic_range"):
        AdditiveAlgorithm((0, 1), sum, lambda total, n: [1.0, 0.0], statistic_range=(1, 0))
    fractional = AdditiveAlgorithm((0, 1), lambda user: 0.5, lambda total, n: [1.0, 0.0], statistic_range=(0, 1))
    with pytest.raises(TypeError, match="statistic"):
        audit_user_level(fractional, **COMMON)


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    audit_user_level(randomized_response(F(3)), **COMMON, progress=lambda done, total: seen.append((done, total)))
    assert (4, 4) in seen
    with pytest.raises(TypeError, match="progress"):
        audit_user_level(randomized_response(F(3)), **COMMON, progress="yes")  # type: ignore[arg-type]
