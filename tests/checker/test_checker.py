"""The checker against reports of the brute-force auditor: honest ones verify, and no tampered one does."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import random
import runpy
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from userdp.checker import check as _checker
from userdp.checker import divergences as _exact
from userdp.checker import spaces as _spaces

F = Fraction
Report = dict[str, Any]
_oracle = runpy.run_path(str(Path(__file__).parents[1] / "oracle" / "audit.py"))


def check(report: Any, *given: Any, **named: Any) -> list[str]:
    """The problems that the checker finds."""
    return list(_checker.check(report, *given, **named).problems)


audit, seal, multiplier, hockey_stick = (_oracle[name] for name in ("audit", "seal", "multiplier", "hockey_stick"))


def randomized_response(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Report one user's bit, right with probability 3/4."""
    return [F(1, 4), F(3, 4)] if dataset[0][0] else [F(3, 4), F(1, 4)]


def ordered(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Three outputs; depends on who is who and on the order of examples."""
    code = sum((place + 1) * (3 * i + 1) * x for i, user in enumerate(dataset) for place, x in enumerate(user))
    return [F(code + 1, 2 * code + 9), F(5, 2 * code + 9), F(code + 3, 2 * code + 9)]


def counting(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Four outputs; depends on the multiset of users."""
    ones = sum(sum(user) for user in dataset)
    return [F(1 + ones, 20 + ones), F(3, 20 + ones), F(10, 20 + ones), F(6, 20 + ones)]


def revealing(dataset: tuple[Any, ...]) -> list[Fraction]:
    """No finite epsilon reaches delta below 1/10."""
    return [F(1, 10), F(9, 10)] if any(sum(user) for user in dataset) else [F(0), F(1)]


def population(n: int, m: int = 1, universe: tuple[Any, ...] = (0, 1)) -> dict[str, Any]:
    return {"universe": universe, "n_users": n, "n_examples": m}


def summed(n: int, m: int = 1, universe: tuple[Any, ...] = (0, 1)) -> dict[str, Any]:
    statistics = tuple(sum(value) for value in itertools.product(universe, repeat=m))
    return population(n, m, universe) | {"statistics": statistics}


ONE = {"dataset": ((0,), (1,), (1,), (0,)), "records": ((0,), (1,), (2,))}
CASES: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "pair": (
        randomized_response,
        {"kind": "pair", "structure": {"x": ((0,),), "x2": ((1,),)}, "ratio": F(2), "delta": F(1, 4)},
    ),
    "response": (randomized_response, {"kind": "user-level", "structure": population(2), "ratio": F(3)}),
    "ordered": (
        ordered,
        {"kind": "user-level", "structure": population(2, 2), "exponent": F(1, 5), "delta": F(1, 8)},
    ),
    "item": (
        ordered,
        {"kind": "item-level", "structure": population(2, 2), "exponent": F(1, 10), "delta": F(1, 20)},
    ),
    "symmetric": (
        counting,
        {
            "kind": "user-level",
            "structure": population(3, 1, (0, 1, 2)),
            "engine": "symmetric",
            "exponent": F(1, 20),
            "delta": F(1, 100),
        },
    ),
    "symmetric-item": (
        counting,
        {"kind": "item-level", "structure": population(2, 2), "engine": "symmetric", "ratio": F(21, 20)},
    ),
    "additive": (
        counting,
        {
            "kind": "user-level",
            "structure": summed(3, 1, (0, 1, 3)),
            "engine": "additive",
            "ratio": F(11, 10),
            "delta": F(1, 100),
        },
    ),
    "additive-item": (
        counting,
        {"kind": "item-level", "structure": summed(2, 2, (0, 2, 5)), "engine": "additive", "delta": F(1, 50)},
    ),
    "dataset": (
        ordered,
        {"kind": "dataset", "structure": ONE | {"replaceable": (0, 1, 2, 3)}, "delta": F(1, 9)},
    ),
    "dataset-symmetric": (
        counting,
        {
            "kind": "dataset",
            "structure": ONE | {"replaceable": (0, 1)},
            "engine": "symmetric",
            "delta": F(1, 30),
        },
    ),
    "dataset-additive": (
        counting,
        {
            "kind": "dataset",
            "structure": ONE | {"replaceable": (0, 1), "statistics": (0, 1, 1, 0)},
            "engine": "additive",
            "ratio": F(3, 2),
        },
    ),
    **{
        f"add-remove-{engine}": (
            counting,
            {
                "kind": "user-level",
                "structure": (summed if engine == "additive" else population)(3, 1, (0, 1, 2)),
                "engine": engine,
                "neighbors": "add-remove",
                "exponent": F(1, 30),
                "delta": F(1, 60),
            },
        )
        for engine in ("labeled", "symmetric", "additive")
    },
    "infinite": (
        revealing,
        {"kind": "user-level", "structure": population(2), "exponent": F(1, 2), "delta": F(1, 20)},
    ),
    **{
        f"error-{name}": (
            counting,
            {
                "kind": "user-level",
                "structure": population(2),
                "engine": "symmetric",
                "exponent": F(1, 100),
                "delta": delta,
                "pmf_error": F(1, 1000),
            },
        )
        for name, delta in (("holds", F(1, 10)), ("open", F(447, 10**4)), ("fails", F(1, 100)))
    },
}


def report_of(name: str) -> Report:
    mechanism, arguments = CASES[name]
    report: Report = audit(mechanism, tuple(range(len(mechanism(((0,),) * 4)))), **arguments)
    return report


@pytest.mark.parametrize("name", CASES)
def test_honest_reports_verify(name: str) -> None:
    report = report_of(name)
    assert check(report) == []
    assert check(report, CASES[name][0]) == []
    assert check(json.loads(json.dumps(report))) == []


def test_cases_cover_every_verdict() -> None:
    verdicts = {name: report_of(name)["result"]["holds"] for name in CASES}
    assert set(verdicts.values()) == {True, False, None}
    assert [verdicts[f"error-{name}"] for name in ("holds", "open", "fails")] == [True, None, False]
    assert report_of("infinite")["result"]["exp_epsilon"] is None


def scaled(text: str, factor: float) -> str:
    return (float.fromhex(text) * factor).hex()


def _shift(report: Report) -> None:
    """Move a third of the smallest mass of the witness's first distribution to another output."""
    distribution = report["pmfs"][report["pmf_of"][report["result"]["witness"]["ranks"][0]]]
    masses = [F(mass) for mass in distribution]
    low = masses.index(min(mass for mass in masses if mass > 0))
    other = (low + 1) % len(masses)
    moved = masses[low] / 3
    distribution[low], distribution[other] = str(masses[low] - moved), str(masses[other] + moved)


def _swap_witness(report: Report) -> None:
    report["result"]["witness"]["ranks"].reverse()


def _both(*tamperings: Callable[[Report], None]) -> Callable[[Report], None]:
    def tamper(report: Report) -> None:
        for tampering in tamperings:
            tampering(report)

    return tamper


def _set(*path: Any, to: Any) -> Callable[[Report], None]:
    def tamper(report: Report) -> None:
        *parents, last = path
        node: Any = report
        for key in parents:
            node = node[key]
        node[last] = to(node[last]) if callable(to) else to

    return tamper


BOUND, EPSILON = ("result", "worst_delta"), ("result", "epsilon")
# On the reports "ordered" and "symmetric": delta > 0, a positive worst divergence, and finite epsilon.
TAMPERINGS: dict[str, Callable[[Report], None]] = {
    "raise lower": _set(*BOUND, 0, to=lambda low: math.nextafter(math.nextafter(float.fromhex(low), 1), 1).hex()),
    "reduce upper": _set(*BOUND, 1, to=lambda up: math.nextafter(math.nextafter(float.fromhex(up), 0), 0).hex()),
    "widen lower": _set(*BOUND, 0, to=(0.0).hex()),
    "widen upper": _set(*BOUND, 1, to=lambda up: scaled(up, 1.00001)),
    "bounds down": _set(*BOUND, to=lambda bounds: [scaled(bound, 1 - 1e-12) for bound in bounds]),
    "bounds up": _set(*BOUND, to=lambda bounds: [scaled(bound, 1 + 1e-12) for bound in bounds]),
    "reverse bounds": _set(*BOUND, to=lambda bounds: bounds[::-1]),
    "flip verdict": _set("result", "holds", to=lambda holds: not holds),
    "withdraw verdict": _set("result", "holds", to=None),
    "epsilon up": _set("question", "epsilon", "exponent", to=lambda text: str(F(text) * 2)),
    "epsilon down": _set("question", "epsilon", "exponent", to="0"),
    "epsilon ratio": _set("question", "epsilon", "ratio", to="1000001/1000000"),
    "epsilon negative": _set("question", "epsilon", "exponent", to="-1"),
    "delta up": _set("question", "delta", to=lambda text: str(F(text) + F(1, 10**9))),
    "delta down": _set("question", "delta", to=lambda text: str(F(text) - F(1, 10**9))),
    "delta above 1": _set("question", "delta", to="2"),
    "declare error": _set("question", "pmf_error", to="1/1000"),
    "shift mass": _shift,
    "negative mass": _set("pmfs", 0, to=lambda distribution: ["-1", *distribution[1:-1], "2"]),
    "sum above 1": _set("pmfs", 0, 0, to=lambda text: str(F(text) + F(1, 10**6))),
    "drop pmf": _set("pmfs", to=lambda pmfs: pmfs[:-1]),
    "repeat pmf": _set("pmfs", to=lambda pmfs: [*pmfs, pmfs[-1]]),
    "drop pmf pair": _set("pmf_pairs", to=lambda pairs: pairs[1:]),
    "add pmf pair": _set("pmf_pairs", to=lambda pairs: [*pairs, [0, 0]]),
    "drop dataset": _set("pmf_of", to=lambda pmf_of: pmf_of[:-1]),
    "drop dataset, recount": _both(_set("pmf_of", to=lambda pmf_of: pmf_of[:-1]), _set("datasets", to=lambda n: n - 1)),
    "other pmf": _set("pmf_of", -1, to=0),
    "count datasets": _set("datasets", to=lambda n: n + 1),
    "count pairs": _set("pairs", to=lambda n: n - 1),
    "drop from event": _set("result", "witness", "event", to=lambda event: event[1:]),
    "add to event": _set("result", "witness", "event", to=lambda event: [0, 1, 2]),
    "repeat in event": _set("result", "witness", "event", to=lambda event: event * 2),
    "drop witness": _set("result", "witness", to=None),
    "reverse witness": _swap_witness,
    "strange witness": _set("result", "witness", "ranks", to=[0, 10**6]),
    "unrelated witness": _set("result", "witness", "ranks", to=lambda ranks: [ranks[0], ranks[0]]),
    "exp_epsilon up": _set("result", "exp_epsilon", to=lambda text: str(F(text) + F(1, 10**20))),
    "exp_epsilon down": _set("result", "exp_epsilon", to=lambda text: str(F(text) - F(1, 10**20))),
    "exp_epsilon null": _set("result", "exp_epsilon", to=None),
    "exp_epsilon null, infinite": _both(_set("result", "exp_epsilon", to=None), _set(*EPSILON, to=["inf", "inf"])),
    "epsilon lower": _set(*EPSILON, 0, to=lambda low: math.nextafter(math.nextafter(float.fromhex(low), 9), 9).hex()),
    "epsilon upper": _set(*EPSILON, 1, to=lambda up: math.nextafter(math.nextafter(float.fromhex(up), 0), 0).hex()),
    "epsilon bounds down": _set(*EPSILON, to=lambda bounds: [scaled(bound, 1 - 1e-12) for bound in bounds]),
    "epsilon bounds up": _set(*EPSILON, to=lambda bounds: [scaled(bound, 1 + 1e-12) for bound in bounds]),
    "epsilon wide": _set(*EPSILON, 1, to=lambda up: scaled(up, 1.00001)),
    "epsilon infinite": _set(*EPSILON, 1, to="inf"),
    "sampled": _set("verification", to="sampled"),
    "kind": _set("question", "kind", to="item-level"),
    "engine": _set("question", "engine", to="additive"),
    "neighbors": _set("question", "neighbors", to="add-remove"),
    "fewer users": _set("question", "structure", "n_users", to=lambda n: n - 1),
    "more users": _set("question", "structure", "n_users", to=lambda n: n + 1),
    "smaller universe": _set("question", "structure", "universe", to=lambda universe: universe[:-1]),
    "format": _set("format", to="userdp-audit/1"),
    "drop field": lambda report: report.pop("pairs"),
    "add field": lambda report: report.update(note="trust me"),
    "name": _set("mechanism", to=3),
    "outputs": _set("outputs", to=lambda outputs: outputs[:-1]),
    "outputs twice": _set("outputs", to=lambda outputs: [outputs[0], *outputs[:-1]]),
    "universe twice": _set("question", "structure", "universe", to=lambda universe: [universe[0], *universe[:-1]]),
    "question note": _set("question", "note", to=1),
    "structure note": _set("question", "structure", "statistics", to=[0, 1, 2]),
    "result note": _set("result", "note", to=1),
    "witness note": _set("result", "witness", "note", to=1),
    "float pmf pairs": _set("pmf_pairs", to=lambda pairs: [[float(i), j] for i, j in pairs]),
    "bool pmf pairs": _set("pmf_pairs", to=lambda pairs: [[i if i > 1 else bool(i), j] for i, j in pairs]),
}


@pytest.mark.parametrize(
    ("name", "tampering"),
    # With one example per user, as in "symmetric", the two kinds ask the same question.
    [pair for pair in itertools.product(["ordered", "symmetric"], TAMPERINGS) if pair != ("symmetric", "kind")],
)
def test_tampering_is_found(name: str, tampering: str) -> None:
    honest = report_of(name)
    report = copy.deepcopy(honest)
    TAMPERINGS[tampering](report)
    assert json.dumps(report) != json.dumps(honest)  # 1 == 1.0 == True
    assert check(report) != []
    assert check(seal(report)) != [], "found by the digest alone"


@pytest.mark.parametrize("name", ["dataset", "dataset-symmetric", "dataset-additive"])
def test_a_user_cannot_be_left_out(name: str) -> None:
    """The forger drops the last replaceable user and everything that depends on it, consistently."""
    mechanism, arguments = CASES[name]
    structure = arguments["structure"] | {"replaceable": arguments["structure"]["replaceable"][:-1]}
    forged = audit(mechanism, tuple(range(len(mechanism(ONE["dataset"])))), **(arguments | {"structure": structure}))
    assert check(forged) == ["replaceable leaves out a user who must be replaced"]


def test_equal_stated_pmfs_may_differ_in_truth() -> None:
    """A constant pmf known within 10 percent is not certified at epsilon = 0, though nothing stated differs."""
    arguments = {"kind": "user-level", "structure": population(1), "pmf_error": F(1, 10)}
    report = audit(lambda _: [F(1, 2), F(1, 2)], ("a", "b"), **arguments)
    assert (report["pmf_pairs"], report["result"]["witness"]) == ([[0, 0]], None)
    assert report["result"]["holds"] is None
    assert check(report) == []
    report["result"] |= {"holds": True, "worst_delta": [(0.0).hex()] * 2}
    assert check(seal(report)) == ["worst_delta.upper is below the worst divergence"]
    report["pmf_pairs"] = []
    assert check(seal(report))[0].startswith("pmf_pairs is not the set")


def test_witness_must_be_neighbors() -> None:
    """Ranks 0 and 3 differ in both users; rank 3 has the pmf of a neighbor, so the divergence is right."""
    report = report_of("response")
    assert report["pmf_of"][2] == report["pmf_of"][3]
    report["result"]["witness"]["ranks"] = [0, 3]
    assert check(seal(report)) == ["the witness datasets are not neighbors"]


def test_negative_masses_are_refused() -> None:
    with pytest.raises(ValueError, match="negative mass"):
        _exact.Pmf.read(["-1/2", "3/2"], 2)


@pytest.mark.parametrize("share", [F(4, 10), F(6, 10)])
def test_decisions_beyond_the_first_precision(share: Fraction) -> None:
    """p/q = 1 + x + share x^2 against e^x = 1 + x + x^2/2 + ..., with x = 10^-40: the sides differ by 10^-81."""
    x = F(1, 10**40)
    q = [F(1, 4), F(3, 4)]
    p = [q[0] * (1 + x + share * x**2), 1 - q[0] * (1 + x + share * x**2)]
    distributions = {((0,),): p, ((1,),): q}
    arguments = {"kind": "pair", "structure": {"x": ((0,),), "x2": ((1,),)}, "exponent": x}
    report = audit(distributions.__getitem__, (0, 1), **arguments)
    assert report["result"]["holds"] is (share < F(1, 2))
    assert check(report) == []
    report["result"]["holds"] = share > F(1, 2)
    assert check(seal(report)) == ["holds is not what the pmfs decide"]


def test_tampered_error_and_infinite_reports() -> None:
    for name in ("error-holds", "error-open", "error-fails"):
        report = report_of(name)
        for holds in {True, False, None} - {report["result"]["holds"]}:
            report["result"]["holds"] = holds
            assert check(seal(report)) == ["holds is not what the pmfs decide"]
    report = report_of("infinite")
    report["result"] |= {"exp_epsilon": "10", "epsilon": [math.log(10).hex()] * 2}
    assert check(seal(report)) == ["the divergence exceeds delta at exp_epsilon"]


def test_flat_profile_needs_the_least_epsilon() -> None:
    """With delta = P(q = 0) the divergence equals delta from some E on; only the first such E is right."""
    distributions = {((0,),): [F(1, 2), F(1, 4), F(1, 4)], ((1,),): [F(0), F(1, 2), F(1, 2)]}
    report = audit(
        distributions.__getitem__, (0, 1, 2), kind="pair", structure={"x": ((0,),), "x2": ((1,),)}, delta=F(1, 2)
    )
    assert report["result"]["exp_epsilon"] == "1"
    assert check(report) == []
    report["result"] |= {"exp_epsilon": "3/2", "epsilon": [math.log(1.5).hex()] * 2}
    report["result"]["epsilon"][1] = math.nextafter(math.log(1.5), 1).hex()
    assert check(seal(report)) == ["a smaller epsilon than exp_epsilon reaches delta"]


def test_consistent_forgery_needs_the_mechanism() -> None:
    """Another mechanism's honest report is consistent; only running the mechanism tells them apart."""

    def other(dataset: tuple[Any, ...]) -> list[Fraction]:
        masses = counting(dataset)
        return [masses[0], masses[1] + masses[2] / 1000, masses[2] * F(999, 1000), masses[3]]

    arguments = CASES["symmetric"][1]
    forged = audit(other, (0, 1, 2, 3), **arguments)
    assert check(forged) == []
    assert check(forged, other) == []
    assert check(forged, counting) == ["the mechanism gives dataset 0 another pmf than the report states"]


def test_mechanism_sees_the_datasets_and_its_failure_is_a_problem() -> None:
    seen = []

    def spy(dataset: tuple[Any, ...]) -> list[Fraction]:
        seen.append(dataset)
        return counting(dataset)

    assert check(report_of("additive"), spy) == []
    by_total = {sum(sum(user) for user in dataset): dataset for dataset in seen}
    assert list(by_total) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert by_total[3] == ((0,), (0,), (3,))
    assert by_total[5] == ((1,), (1,), (3,))

    def broken(dataset: tuple[Any, ...]) -> list[Fraction]:
        raise OSError("no luck")

    assert check(report_of("additive"), broken) == ["the mechanism fails on dataset 0: OSError: no luck"]


def test_people_are_no_texts_of_objects() -> None:
    report = report_of("response")
    report["question"]["structure"]["universe"] = [{"repr": "<cat>"}, {"repr": "<dog>"}]
    (problem,) = check(seal(report))
    assert "<cat>" in problem
    report = report_of("response")
    report["outputs"][0] = {"repr": "<cat>"}
    assert check(seal(report), randomized_response) == []


def _leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, member in items:
        yield from _leaves(member, (*path, key))


@pytest.mark.parametrize("name", ["item", "dataset-additive", "add-remove-additive"])
def test_malformed_reports_are_problems_and_never_exceptions(name: str) -> None:
    honest = report_of(name)
    junk: list[Any] = [
        None,
        True,
        -1,
        10**30,
        0.5,
        "",
        "x",
        "1/0",
        "inf",
        "nan",
        "1e999999999",
        [],
        [[]],
        {},
        {"a": 1},
    ]
    copies = pickle.dumps(honest)  # read back many times faster than it is copied
    source = random.Random(name)
    leaves = [path for path in _leaves(honest) if path]
    for path, value in [(path, value) for path in leaves for value in source.sample(junk, 6)]:
        report = pickle.loads(copies)
        _set(*path, to=value)(report)
        if report == honest:
            continue
        assert check(report) != [], (path, value)
        check(seal(report))  # may be another true report, but must not raise
    for nonsense in junk:
        assert check(nonsense) != []


@pytest.mark.parametrize("epsilon", [F(0), F(1e-9), F(5e-324), F(7, 10), F(700), F(1000), F(1e300)])
@pytest.mark.parametrize("delta", [F(0), F(1, 10**300), F(1, 10)])
def test_extreme_levels_and_masses(epsilon: Fraction, delta: Fraction) -> None:
    tiny = F(1, 10**300)
    distributions = {
        ((0,),): [tiny, 1 - 2 * tiny, tiny],
        ((1,),): [tiny * (1 + F(1, 10**12)), 1 - 3 * tiny, tiny * (2 - F(1, 10**12))],
        ((2,),): [F(1, 3), F(2, 3), F(0)],
    }
    for x, y in itertools.combinations(distributions, 2):
        arguments = {"kind": "pair", "structure": {"x": x, "x2": y}, "exponent": epsilon, "delta": delta}
        report = audit(distributions.__getitem__, ("a", "b", "c"), **arguments)
        assert check(report) == []
        assert check(report, distributions.__getitem__) == []
        report["result"]["holds"] = not report["result"]["holds"]
        assert check(seal(report)) == ["holds is not what the pmfs decide"]


@pytest.mark.parametrize("x", [F(0), F(5e-324), F(1e-9), F(1, 2), F(1), F(22, 7), F(700), F(1500)])
@pytest.mark.parametrize("bits", [16, 64, 1200])
def test_enclosures_of_exp(x: Fraction, bits: int) -> None:
    low, high, scale = _exact._exp(x, bits)
    exact = multiplier(F(1), x)
    # The oracle's value is good to a relative 1e-799, and the enclosure is never that tight for x != 0.
    slop = exact / 10**790 if x else F(0)
    assert F(low, scale) - slop <= exact <= F(high, scale) + slop
    assert F(high - low, scale) <= exact / 2 ** (bits - 8)


def test_huge_levels_do_not_need_their_value() -> None:
    half, third = F(1, 2), F(1, 3)
    weights: list[tuple[Sequence[int], int]] = [((1, 1, 0), 2), ((1, 1, 1), 3)]
    levels = [(F(1), F(10) ** 300), (F(1, 7), F(10) ** 9), (F(1), F(0)), (F(1, 2), F(0))]
    assert F(1, 3) <= F(_exact.profile_upper(weights, [(0, 1)], levels)[0]) <= F(1, 3) + F(1, 10**16)
    curve = _exact.profile_upper(weights, [(0, 1)], levels)
    p, q = [half, half, F(0)], [third, third, third]
    for bound, level in zip(curve, (F(10) ** 99, F(10) ** 99, F(1), F(1, 2)), strict=True):
        exact = max(hockey_stick(p, q, level), hockey_stick(q, p, level))
        assert exact <= F(bound) <= exact + F(1, 10**15)


@pytest.mark.parametrize("seed", range(60))
def test_random_structures(seed: int) -> None:
    """Counts, pairs and verdicts of random small audits agree with brute force."""
    source = random.Random(seed)
    engine = source.choice(["labeled", "symmetric", "additive"])
    kind, neighbors = source.choice(
        [("user-level", "replace"), ("item-level", "replace"), ("user-level", "add-remove")]
    )
    size, m, n = source.choice([(1, 1, 3), (2, 1, 1), (2, 1, 4), (3, 1, 3), (2, 2, 2), (3, 2, 1), (4, 1, 2)])
    structure = population(n, m, tuple(range(size)))
    if engine == "additive":
        structure["statistics"] = tuple(source.randrange(-2, 4) for _ in range(size**m))
    values = list(itertools.product(range(size), repeat=m))
    distributions: dict[Any, list[Fraction]] = {}

    def pmf(dataset: tuple[Any, ...]) -> list[Fraction]:
        key: Any = dataset if engine == "labeled" else (len(dataset), tuple(sorted(dataset)))
        if engine == "additive":
            key = len(dataset), sum(structure["statistics"][values.index(user)] for user in dataset)
        if key not in distributions:
            weights = [source.choice([0, 1, 1, 2, 5]) for _ in range(3)]
            weights[0] += not any(weights)
            distributions[key] = [F(weight, sum(weights)) for weight in weights]
        return distributions[key]

    arguments = {
        "kind": kind,
        "neighbors": neighbors,
        "engine": engine,
        "structure": structure,
        "exponent": source.choice([F(0), F(1, 3), F(2)]),
        "ratio": source.choice([F(1), F(3, 2)]),
        "delta": source.choice([F(0), F(1, 5), F(1)]),
        "pmf_error": source.choice([F(0), F(0), F(1, 50)]),
    }
    report = audit(pmf, ("a", "b", "c"), **arguments)
    assert check(report, pmf) == []
    space = _spaces.space_of(report["question"])
    edges = [(rank, other) for rank in range(space.sources) for other in space.above(rank)]
    assert len(edges) == len(set(edges)) == space.pairs == report["pairs"]
    assert all(a < b < space.datasets for a, b in edges)


def test_drawn_pairs_are_neighbors_and_reproducible() -> None:
    question = report_of("symmetric")["question"]
    question["structure"]["n_users"] = 40
    space = _spaces.space_of(question)
    drawn = _spaces.sample_pairs(space, "seed", (3, 2))
    assert drawn[0] == (3, 2)
    assert drawn == _spaces.sample_pairs(space, "seed", (3, 2))
    assert drawn != _spaces.sample_pairs(space, "seeds", (3, 2))
    assert len({(min(pair), max(pair)) for pair in drawn}) == len(drawn) > 1000
    assert all(b in space.above(a) for a, b in drawn[1:])


def test_the_checker_is_independent() -> None:
    """The modules of the checker import the standard library and each other, nothing else."""
    folder = Path(_checker.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    for name in modules:
        lines = (folder / f"{name}.py").read_text().splitlines()
        imported = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
        assert {module for module in imported if module.startswith("userdp")} <= {
            "userdp.checker",
            *(f"userdp.checker.{module}" for module in modules),
        }
        assert not imported & {"numpy", "userdp"}
