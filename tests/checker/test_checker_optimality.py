"""The checker of optimal mechanisms: cases of a reference, an oracle without symmetries, tampering, and no imports."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("highspy")

from oracle import optimal as oracle
from userdp.checker import check as checker
from userdp.checker import optimality, values
from userdp.exact import LogRatio
from userdp.optimal import optimal_mechanism, optimal_sum_mechanism
from userdp.optimal.certified import read_level, solved
from userdp.optimal.worlds import SelectionWorld
from userdp.report import OptimalityCertificate

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "optimal_cases.json").read_text())["cases"]


def sealed(report: dict[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in report.items() if name != "digest"}
    return content | {"digest": "sha256:" + values.canonical_digest(content)}


def selection(n: int, k: int, epsilon: Any = 1, delta: Any = 0, **more: Any) -> OptimalityCertificate:
    world = SelectionWorld(n, k, **({"loss": "regret"} | more))
    return solved(world, read_level(epsilon), F(delta), world.prior, 10**6)


# --- cases of a reference, as certificates of this format


def scaled(numbers: Sequence[Fraction]) -> tuple[list[int], int]:
    total = math.lcm(*(number.denominator for number in numbers))
    return [int(number * total) for number in numbers], total


def certificate_of(given: dict[str, Any], value: str, bound: str) -> dict[str, Any]:
    """A case's table and multipliers, in the fields of a report."""
    world = {"kind": "selection", "n_users": given["n"], "n_items": given["k"], "loss": "regret", "agreement": None}
    groups = optimality.constraints(optimality.world_of(world))
    rows = (
        [(p, q) for group in groups for p, q, _ in group]
        if F(given["delta"])
        else sorted({(p, q) for group in groups for p, q, _ in group})
    )
    # Multiples of one probability, so that mu sums to the scale.
    mu = [F(weight) for weight in given["mu"]]
    steps = [F(units) for _, _, units in given["y"]]
    units, scale = scaled([weight / sum(mu) for weight in (*mu, *steps)])
    table, total = scaled([F(mass) for mass in given["table"]])
    y = [[rows.index((p, q)), str(number)] for (p, q, _), number in zip(given["y"], units[len(mu) :], strict=True)]
    ratio = given.get("dual_ratio", given["ratio"])
    return sealed(
        {
            "format": "userdp-optimality/3",
            "userdp_version": "0",
            "world": world,
            "epsilon": {"ratio": given["ratio"], "exponent": "0"},
            "below": given["ratio"],
            "above": ratio,
            "delta": given["delta"],
            "objective": "worst",
            "prior": None,
            "total": str(total),
            "table": list(map(str, table)),
            "scale": str(scale),
            "mu": [str(number) for number in units[: len(mu)]],
            "y": sorted(y),
            "value": value,
            "lower_bound": bound,
        }
    )


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "certificate"], ids=lambda case: case["id"])
def test_cases(case: dict[str, Any]) -> None:
    expect, given = case["expect"], case["input"]
    value, bound = expect["value"] or "1/3", expect["lower_bound"] or "1/3"
    found = checker.check(certificate_of(given, value, bound))
    if "dual_ratio" in given:
        # The multipliers at a larger ratio; e^epsilon is a fraction here, and both sides must be at it.
        assert found.problems == ("below and above are not e^epsilon, which is a fraction",)
        world = optimality.world_of(certificate_of(given, value, bound)["world"])
        report = certificate_of(given, value, bound)
        y = {row: int(units) for row, units in report["y"]}
        scale = int(report["scale"])
        weights = [F(int(weight), scale) for weight in report["mu"]]
        groups = optimality.constraints(world)
        assert optimality.proved_bound(world, groups, weights, y, scale, F(given["dual_ratio"]), F(0)) == F(bound)
    elif expect["value"] is None:
        assert found.problems == ("a pmf has another total",)
    elif expect["lower_bound"] is None:
        assert "is not" in found.problems[0] or "must be" in found.problems[0]
    else:
        assert found.finding == "established"
        for wrong in ("1/1000", "1"):
            assert checker.check(certificate_of(given, wrong, bound)).problems == ("value is not what the table loses",)
            said = checker.check(certificate_of(given, value, wrong)).problems
            assert said == ("lower_bound is not what mu and y prove",)


def test_multiplicities_count_in_the_bound() -> None:
    """Six users, three items, e^epsilon = 4: without them the multipliers "prove" more than the optimum, 7/20."""
    certificate = selection(6, 3, LogRatio(4))
    assert certificate.lower_bound == certificate.value == F(7, 20)
    real = optimality.world_of(certificate.world)
    flat = optimality.World([[(1, loss) for _, loss in classes] for classes in real.states], (), 0)
    groups = optimality.constraints(optimality.world_of(certificate.world))
    weights = [F(weight, certificate.scale) for weight in certificate.mu or ()]
    arguments = (groups, weights, dict(certificate.y), certificate.scale, F(4), F(0))
    assert optimality.proved_bound(real, *arguments) == F(7, 20)
    assert optimality.proved_bound(flat, *arguments) > F(7, 20)


def test_multipliers_of_another_scale_prove_the_same() -> None:
    report = selection(6, 3, LogRatio(4)).to_dict()
    report["scale"] = str(2 * int(report["scale"]))
    report["mu"] = [str(2 * int(weight)) for weight in report["mu"]]
    report["y"] = [[row, str(2 * int(units))] for row, units in report["y"]]
    assert checker.check(sealed(report)).finding == "established"
    # Larger ones without their scale prove nothing.
    report["scale"] = str(int(report["scale"]) // 2)
    assert checker.check(sealed(report)).problems == ("mu must sum to the scale",)


# --- an oracle on the tables and bounds of certificates, without symmetries


def losses_of(certificate: OptimalityCertificate) -> tuple[Fraction, bool]:
    """The worst loss of a selection's table on all datasets in order, and whether it is private."""
    world, total = certificate.world, certificate.total
    n, k = world["n_users"], world["n_items"]
    states = [s for s in itertools.product(range(n, -1, -1), repeat=k) if sum(s) == n and list(s) == sorted(s)[::-1]]
    at, place = {}, 0
    for state in sorted(states, reverse=True):
        for count in sorted(set(state), reverse=True):
            at[state, count] = place
            place += 1
    assert place == len(certificate.table)
    datasets, near = oracle.sequences(range(k), n, 1)
    pmfs = []
    for dataset in datasets:
        counts = [dataset.count((item,)) for item in range(k)]
        state = tuple(sorted(counts, reverse=True))
        pmfs.append([F(certificate.table[at[state, count]], total) for count in counts])
    assert all(sum(pmf) == 1 for pmf in pmfs)
    worst = max(
        sum(mass * oracle.regret(dataset, item) for item, mass in enumerate(pmf))
        for dataset, pmf in zip(datasets, pmfs, strict=True)
    )
    private = all(
        sum(max(F(0), p - certificate.below * q) for p, q in zip(pmfs[a], pmfs[b], strict=True)) <= certificate.delta
        for one, two in near
        for a, b in ((one, two), (two, one))
    )
    return worst, private


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("delta", ["0", "1/100"])
def test_tables_on_all_datasets(n: int, k: int, delta: str) -> None:
    certificate = selection(n, k, "1/2", delta)
    assert losses_of(certificate) == (certificate.value, True)
    assert certificate.verify().finding == "established"


@pytest.mark.parametrize(("n", "k"), [(1, 3), (3, 2), (1, 4)])
def test_bounds_beside_an_exact_optimum(n: int, k: int) -> None:
    certificate = selection(n, k, LogRatio(3))
    assert (
        certificate.lower_bound <= oracle.of_users(oracle.regret, range(k), range(k), n, 1, F(3)) <= certificate.value
    )


def agreement_by_drawing(n: int, k: int, p: Fraction) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
    """How likely counts are, and how likely an item is the common one with them: by listing all that can be drawn."""
    weight: dict[Any, Fraction] = {}
    right: dict[Any, Fraction] = {}
    for common, other in itertools.permutations(range(k), 2):
        for has in range(n + 1):
            counts = tuple(has * (i == common) + (n - has) * (i == other) for i in range(k))
            chance = math.comb(n, has) * p**has * (1 - p) ** (n - has) / (k * (k - 1))
            weight[counts] = weight.get(counts, F(0)) + chance
            right[counts, common] = right.get((counts, common), F(0)) + chance
    return weight, right


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 2), (3, 2), (4, 3), (3, 4), (2, 5)])
def test_worlds_of_agreement(n: int, k: int) -> None:
    """The prior and the losses of both sides, from all that can be drawn."""
    p = F(3, 5)
    weight, right = agreement_by_drawing(n, k, p)
    mine = SelectionWorld(n, k, "agreement", p)
    built = optimality.world_of(mine.described())
    assert built.prior == mine.prior
    assert sum(mine.prior or ()) == 1
    for place, state in enumerate(mine.states):
        everywhere = [counts for counts in weight if tuple(sorted(filter(None, counts), reverse=True)) == state]
        assert (mine.prior or ())[place] == sum(weight[counts] for counts in everywhere)
        assert built.states[place] == [tuple(outputs) for outputs in mine.classes[place]]
        for counts in everywhere:
            for (size, loss), count in zip(built.states[place], sorted(set(counts), reverse=True), strict=True):
                assert size == counts.count(count)
                item = counts.index(count)
                assert loss == 1 - right.get((counts, item), F(0)) / weight[counts]


@pytest.mark.parametrize(
    "world",
    [
        *(SelectionWorld(n, k, loss) for n, k in ((1, 1), (4, 3), (6, 4), (3, 100)) for loss in ("regret", "error")),
        SelectionWorld(7, 5, "agreement", F(7, 10)),
    ],
    ids=lambda world: str(world.described()),
)
def test_two_programs_list_the_same_world(world: SelectionWorld) -> None:
    built = optimality.world_of(world.described())
    assert built.states == [[tuple(outputs) for outputs in classes] for classes in world.classes]
    assert optimality.constraints(built) == [list(group) for group in world.groups]


# --- tampering


@cache
def written() -> tuple[dict[str, Any], ...]:
    users = optimal_mechanism(oracle.regret, universe=tuple("abc"), n_users=3, epsilon=1)
    mean = optimal_mechanism(oracle.regret, universe=tuple("ab"), n_users=3, epsilon=LogRatio(3), objective="bayes")
    sums = optimal_sum_mechanism(
        lambda total, output: abs(total - output), statistic_range=(0, 2), outputs=range(5), n_users=2, epsilon=1
    )
    return (
        selection(5, 3).to_dict(),
        selection(4, 3, LogRatio(3), "1/50").to_dict(),
        selection(4, 3, 1, loss="agreement", agreement=F(4, 5)).to_dict(),
        users.certificate.to_dict(),
        mean.certificate.to_dict(),
        sums.certificate.to_dict(),
    )


def leaves(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    return [path] if members is None else [leaf for key, member in members for leaf in leaves(member, (*path, key))]


def replaced(report: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(report)
    node: Any = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


def another(value: Any, source: random.Random) -> Any:
    """A value of the same kind that is near to this one, or far from it."""
    if value is None or isinstance(value, bool):
        return source.choice((0, "1", []))
    if isinstance(value, int):
        return value + source.choice((-1, 1, 2, 10**6))
    try:
        number = F(value)
    except ValueError:
        return value + "x"
    other = source.choice(
        (number + 1, number * 2 + 1, number * F(1001, 1000) + F(1, 10**6), abs(number - 1) / 3, -number - 1)
    )
    return (
        str(round(other))
        if number.denominator == 1 and source.random() < 0.8 and round(other) != number
        else str(other)
    )


def test_no_field_can_be_changed() -> None:
    """2,000 changed fields: with the old digest all are refused, and with a new one what is left is still true."""
    source, true_still = random.Random(7), 0
    for round_ in range(2000):
        report = source.choice(written())
        path = source.choice([leaf for leaf in leaves(report) if leaf[0] not in ("digest", "format", "userdp_version")])
        value: Any = report
        for key in path:
            value = value[key]
        changed = replaced(report, path, another(value, source))
        if changed == report:
            continue
        assert checker.check(changed).finding == "wrong", (round_, path)
        if checker.check(sealed(changed)).finding in ("wrong", "refused"):
            continue
        # Names of examples and outputs, and multipliers that do not matter, may be others: the claim is the same.
        true_still += 1
        assert path[0] in ("y", "world")
        assert path[0] == "y" or path[1] in ("universe", "outputs", "lowest"), path
        for name in ("epsilon", "delta", "objective", "prior", "value", "lower_bound", "table", "total"):
            assert changed[name] == report[name]
    assert true_still < 100


def test_masses_that_are_moved() -> None:
    """From an output to another of the same dataset: the sum stays, and the loss or the privacy does not."""
    source = random.Random(8)
    for report in written():
        world, certificate = optimality.world_of(report["world"]), OptimalityCertificate.from_json(json.dumps(report))
        place, refused = 0, 0
        for classes in world.states:
            for (one, (m, _)), (other, (k, _)) in itertools.permutations(enumerate(classes, place), 2):
                table = list(certificate.table)
                units = source.choice((1, certificate.total // 10**6))
                table[one] += units * k
                table[other] -= units * m
                if table[other] < 0:
                    continue
                moved = sealed(report | {"table": list(map(str, table))})
                found = checker.check(moved)
                if found.finding == "wrong":
                    refused += 1
                    assert found.problems[0].startswith(("the table is not private", "value is not"))
            place += len(classes)
        assert refused


def test_fields_that_are_exchanged() -> None:
    for report in written():
        if report["below"] != report["above"]:
            swapped = sealed(report | {"below": report["above"], "above": report["below"]})
            assert checker.check(swapped).problems == ("below and above must be at least 1, and in this order",)
            # The upper end on the side of the table, or the lower one on that of the bound.
            for change in ({"below": report["above"]}, {"above": report["below"]}):
                assert checker.check(sealed(report | change)).problems == (
                    "e^epsilon is not certainly between below and above",
                )
        if report["mu"] is not None:
            nothing = sealed(report | {"mu": ["0"] * len(report["mu"])})
            assert checker.check(nothing).problems == ("mu must sum to the scale",)
        negative = copy.deepcopy(report)
        negative["y"][0][1] = "-" + negative["y"][0][1]
        assert checker.check(sealed(negative)).problems == ("a weight of y must be an integer >= 0",)
        doubled = copy.deepcopy(report)
        doubled["y"].insert(0, doubled["y"][0])
        assert "y must be of constraints of the world, in order" in checker.check(sealed(doubled)).problems[0]


def test_worlds_that_are_too_large() -> None:
    report = selection(3, 3).to_dict()
    base = {"kind": "selection", "loss": "regret", "agreement": None}
    users = {"kind": "users", "universe": [0, 1], "outputs": [0], "losses": [["0"]], "symmetries": []}
    for world in (
        base | {"n_users": 200, "n_items": 200},
        base | {"n_users": 10**30, "n_items": 3},
        base | {"n_users": 3, "n_items": 10**30},
        users | {"n_users": 900, "n_examples": 900},
        users | {"n_users": 10**9, "n_examples": 1},
        {"kind": "sum", "lowest": 0, "reach": 10**9, "outputs": [0], "losses": [["0"]] * 3000},
        # Powers of 18 million bits: hours, for a file of some kilobytes.
        base | {"n_users": 1000, "n_items": 2, "loss": "agreement", "agreement": "1/" + "9" * 5400},
        # 501,501 multisets of 1,000 examples: gigabytes.
        users | {"universe": [0, 1, 2], "n_users": 1, "n_examples": 1000, "losses": [["0"]] * 501_501},
    ):
        problems = checker.check(sealed(report | {"world": world})).problems
        assert "to be checked" in problems[0] or "too large" in problems[0] or "must have" in problems[0], problems


def test_symmetries_that_are_repeated() -> None:
    """Each takes as long as all datasets do, and a few bytes of a file."""
    exchanged = {"examples": [1, 0], "outputs": [0]}
    world = {"kind": "users", "universe": [0, 1], "n_users": 900, "n_examples": 1, "outputs": [0]}
    world |= {"losses": [["0"]] * 901, "symmetries": [exchanged] * 1400}
    problems = checker.check(sealed(selection(3, 3).to_dict() | {"world": world})).problems
    assert problems == ("there are too many symmetries to be checked",)


def test_long_numbers_for_many_unknowns() -> None:
    """A sum of fractions for each unknown: hours, for numbers of 5,400 digits."""
    long, n = "9" * 5400, 70_000
    world = {"kind": "sum", "lowest": 0, "reach": 1, "outputs": list(range(n)), "losses": [["0"] * n]}
    stated = {"world": world, "epsilon": {"ratio": long, "exponent": "0"}, "below": long, "above": long}
    problems = checker.check(sealed(selection(3, 3).to_dict() | stated | {"scale": long, "table": ["0"] * n})).problems
    assert problems == ("scale and above are too long for so many unknowns to be checked",)


# --- alone


def test_the_checker_needs_neither_the_core_nor_the_solver() -> None:
    """In a process in which nothing but the standard library can be imported."""
    program = """
import json, sys
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in ("numpy", "scipy", "highspy", "narwhals") or name == "userdp._core":
            raise ImportError(name)
sys.meta_path.insert(0, Only())
from userdp.checker import check
report = json.loads(sys.stdin.read())
print(check.check(report).finding)
print(sorted(name for name in sys.modules if name.startswith("userdp") and not name.startswith("userdp.checker")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(written()[0]), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["established", "['userdp']"]
