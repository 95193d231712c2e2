"""Checking an audit report again: enumeration of its datasets, and every pair decided; see `check`."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.checker import values, work
from userdp.checker.divergences import Level, Pmf, Value, both_ways, ratio_cap, steps_of, worst_divergence
from userdp.checker.running import (
    Asked,
    Checked,
    Declared,
    Mechanism,
    Worst,
    check_bounds,
    check_orders,
    check_upper,
    checks,
    distinct,
    run,
    slack,
    within_error,
)
from userdp.checker.spaces import Pair, Space, sample_pairs, space_of
from userdp.checker.values import (
    Problem,
    canonical_digest,
    count,
    decode,
    fraction,
    fraction_text,
    hex_float,
    need,
    size_of,
)

_ASSUMPTIONS = {"labeled": [], "symmetric": ["symmetry"], "additive": ["additivity"]}
_QUESTION = {"kind", "neighbors", "engine", "epsilon", "delta", "pmf_error", "structure"}
OBJECTS = ("universe", "dataset", "records", "x", "x2")
_RESULT = {"holds", "worst_delta", "epsilon", "exp_epsilon", "witness"}
_DIGESTS = ("pmfs_digest", "pmf_of_digest", "pmf_pairs_digest")


# The evidence: pmfs of datasets, and the pairs of pmfs that neighbors have -----------------------------------


@dataclass(frozen=True)
class _Evidence:
    pmfs: Mapping[int, Pmf]
    index_of: Mapping[int, int]
    edges: Sequence[Pair]
    complete: bool


def _inexact(report: Mapping[str, Any]) -> bool:
    """Whether neighbors with the same stated pmf count too, since their true ones may differ."""
    return fraction(report["question"]["pmf_error"]) > 0


def _complete(report: Mapping[str, Any], space: Space, problems: list[str]) -> _Evidence:
    pmfs = Pmf.read_all(report["pmfs"], len(report["outputs"]))
    if not _all_differ(pmfs):
        problems.append("pmfs lists the same pmf twice")
    index_of = [count(index, "pmf_of") for index in report["pmf_of"]]
    need(
        len(index_of) == space.datasets,
        f"pmf_of has {len(index_of)} entries for {space.datasets} datasets",
    )
    if list(dict.fromkeys(index_of)) != list(range(len(pmfs))):
        raise Problem("pmf_of does not name the pmfs in the order of their first appearance")
    found: set[Pair] = set()
    work.spend(space.sources * space.effort)
    for rank in range(space.sources):
        i = index_of[rank]
        found.update((min(i, j), max(i, j)) for j in (index_of[other] for other in space.above(rank)))
    edges = sorted((i, j) for i, j in found if i != j or _inexact(report))
    plain = all(type(index) is int for pair in report["pmf_pairs"] for index in pair)
    if not plain or report["pmf_pairs"] != [list(edge) for edge in edges]:
        problems.append("pmf_pairs is not the set of pairs of pmfs that neighboring datasets have")
    return _Evidence(dict(enumerate(pmfs)), dict(enumerate(index_of)), edges, True)


def _all_differ(pmfs: Collection[Pmf]) -> bool:
    return len({tuple(Fraction(w, pmf.total) for w in pmf.weights) for pmf in pmfs}) == len(pmfs)


def _row(value: Any, length: int, name: str) -> list[Any]:
    need(isinstance(value, list) and len(value) == length, f"a part of {name} is not a list of {length}")
    return list(value)


def _read_sample(sample: Any) -> None:
    """Refuse what has not the form of a sample."""
    known = isinstance(sample, dict) and set(sample) == {*_DIGESTS, "pairs", "pmfs"}
    need(known, "the sample has missing or unknown fields")
    for name in _DIGESTS:
        right = isinstance(sample[name], str) and re.fullmatch("[0-9a-f]{64}", sample[name])
        need(bool(right), f"{name} is not a SHA-256 digest in lower-case hex")
    need(isinstance(sample["pairs"], list) and isinstance(sample["pmfs"], dict), "the sample holds no pairs or no pmfs")
    for number in itertools.chain(*(_row(pair, 4, "the sampled pairs") for pair in sample["pairs"])):
        count(number, "a number of a sampled pair")
    for masses in sample["pmfs"].values():
        need(
            isinstance(masses, list) and all(isinstance(mass, str) for mass in masses), "a pmf is not a list of masses"
        )


def _sampled(report: Mapping[str, Any], space: Space, problems: list[str]) -> _Evidence:
    sample = report["sample"]
    _read_sample(sample)
    if report["pmfs"] != [] or report["pmf_of"] != [] or report["pmf_pairs"] != []:
        problems.append("a sampled report has empty pmfs, pmf_of and pmf_pairs")
    seed = sample["pmfs_digest"] + sample["pmf_of_digest"] + sample["pmf_pairs_digest"]
    witness = report["result"]["witness"]
    first = None if witness is None else (witness["ranks"][0], witness["ranks"][1])
    index_of: dict[int, int] = {}
    for pair in sample["pairs"]:
        a, b, i, j = (count(number, "a number of a sampled pair") for number in pair)
        if index_of.setdefault(a, i) != i or index_of.setdefault(b, j) != j:
            problems.append("the sample gives one dataset two pmfs")
    # Pmfs are numbered in the order of their first appearance by rank.
    if any(index > rank for rank, index in index_of.items()):
        problems.append("the sample numbers a pmf higher than its dataset, but every pmf before it is of a lower rank")
    listed = [(a, b) for a, b, _, _ in sample["pairs"]]
    # One more than listed would show that some are missing; drawing all could take long.
    if listed != sample_pairs(space, seed, first, len(listed) + 1):
        problems.append("the sampled pairs are not the ones that the digests draw")
    named = set(index_of.values())
    need(set(sample["pmfs"]) == set(map(str, named)), "the sample does not hold the pmfs of its pairs, and no others")
    stated = [sample["pmfs"][str(index)] for index in named]
    pmfs = dict(zip(named, Pmf.read_all(stated, len(report["outputs"])), strict=True))
    need(_all_differ(pmfs.values()), "the sample gives one pmf two numbers")
    edges = {(min(i, j), max(i, j)) for _, _, i, j in sample["pairs"] if i != j or _inexact(report)}
    return _Evidence(pmfs, index_of, sorted(edges), False)


# The result ------------------------------------------------------------------------------------------------


def _interval(value: Any, name: str) -> tuple[float, float]:
    need(isinstance(value, list) and len(value) == 2, f"{name} must be two hexadecimal floats")
    low, high = map(hex_float, value)
    need(0 <= low <= high, f"{name} must satisfy 0 <= lower <= upper")
    return low, high


def _check_witness(result: Mapping[str, Any], evidence: _Evidence, space: Space, worst: Value) -> None:
    witness = result["witness"]
    need(
        (witness is None) == all(i == j for i, j in evidence.edges), "a witness is needed exactly when two pmfs differ"
    )
    if witness is None:
        return
    a, b = (count(rank, "a witness rank") for rank in witness["ranks"])
    need(max(a, b) in space.above(min(a, b)), "the witness datasets are not neighbors")
    p, q = evidence.pmfs[evidence.index_of[a]], evidence.pmfs[evidence.index_of[b]]
    event = [count(o, "a witness output") for o in witness["event"]]
    need(values.rising(event), "the witness event is not a sorted set of outputs")
    gap = worst.level.sign(worst.a - p.mass(event), worst.b - q.mass(event))
    need(gap == 0, "the witness event does not attain the worst divergence")


def _check_delta(result: Mapping[str, Any], least: Value, most: Value, delta: Fraction, sampled_error: bool) -> None:
    """Check the bounds and the verdict against least <= worst divergence <= most."""
    bounds, holds = _interval(result["worst_delta"], "worst_delta"), result["holds"]
    if not sampled_error:
        check_bounds(bounds, holds, least, most, delta)
        return
    # The pairs that decide within pmf_error may not be in the sample.
    check_upper(bounds[1], most)
    passes, fails = most.compare(delta) <= 0, least.compare(delta) > 0
    need(not (fails and holds is not False) and (passes or holds is not True), "a sampled pair contradicts holds")


def _check_epsilon(result: Mapping[str, Any], evidence: _Evidence, delta: Fraction) -> None:
    low, high = _interval(result["epsilon"], "epsilon")
    pairs = both_ways(evidence.pmfs, evidence.edges)
    if result["exp_epsilon"] is None:
        need(low == math.inf, "epsilon must be infinite when exp_epsilon is null")
        lost = (p.mass(o for o, b in enumerate(q.weights) if b == 0) > delta for p, q in pairs)
        need(not evidence.complete or any(lost), "some finite epsilon reaches delta, but exp_epsilon is null")
        return
    least = fraction(result["exp_epsilon"])
    need(least >= 1 and math.isfinite(high), "exp_epsilon must be at least 1, with finite epsilon")
    # At E the divergence of every pair is <= delta, and it exceeds delta to the left of E. The divergence is
    # convex and non-increasing with left slope -Q(P >= E Q), so this needs a pair that has the value delta
    # with a negative slope, unless E = 1, below which epsilon does not go.
    minimal = least == 1
    length = sum(map(int.bit_length, (*least.as_integer_ratio(), *delta.as_integer_ratio())))
    work.spend(steps_of(evidence.pmfs, evidence.edges, length))
    for p, q in pairs:
        left, right = least.denominator * q.total, least.numerator * p.total
        terms = [(a * left - b * right, b) for a, b in zip(p.weights, q.weights, strict=True)]
        excess = sum(t for t, _ in terms if t > 0) * delta.denominator - delta.numerator * left * p.total
        need(excess <= 0, "the divergence exceeds delta at exp_epsilon")
        minimal = minimal or (excess == 0 and any(t >= 0 and b > 0 for t, b in terms))
    need(minimal or not evidence.complete, "a smaller epsilon than exp_epsilon reaches delta")
    cap = least.numerator.bit_length() + 1
    for bound, side in ((low, 1), (high, -1)):
        beyond = Level(Fraction(1), Fraction(bound), cap).sign(least, Fraction(1))
        need(beyond * side >= 0, "epsilon does not enclose the logarithm of exp_epsilon")
    need(Fraction(high) - Fraction(low) <= slack(high), "epsilon is too wide to say anything")


def objects_of(structure: Mapping[str, Any]) -> dict[str, Any]:
    """What the codes in a structure decode to: users' values, all that a mechanism is shown of them."""
    found = {name: tuple(map(decode, structure[name])) for name in OBJECTS if name in structure}
    small = all(size_of(member) <= values.MOST_SIZE for members in found.values() for member in members)
    work.afford(small, f"a value of users has over {values.MOST_SIZE:,} parts and characters")
    return found


def _check_declared(report: Mapping[str, Any], declared: Declared, real: Mapping[str, Any]) -> list[str]:
    """The engine and pmf_error of the report must be what the mechanism declares."""
    question, problems = report["question"], []
    if declared.pmf_error > fraction(question["pmf_error"]):
        problems.append("the mechanism declares a larger pmf_error than the report states")
    if question["engine"] == "symmetric" and not declared.symmetric:
        problems.append("cannot confirm that the order of users does not matter: the mechanism does not declare it")
    if question["engine"] != "additive":
        return problems
    if declared.statistic_of is None:
        return [*problems, "cannot confirm the statistics: the mechanism does not declare any (statistic_of)"]
    listed = question["kind"] == "dataset"
    structure = question["structure"]
    users = real["dataset"] if listed else itertools.product(real["universe"], repeat=structure["n_examples"])
    for place, (user, stated) in enumerate(zip(users, structure["statistics"], strict=True)):
        try:
            found = declared.statistic_of(user)
        except Exception as error:
            return [*problems, f"the mechanism's statistic fails on user {place}: {type(error).__name__}: {error}"]
        if found != stated:
            where = "the user at position" if listed else "the user value of rank"
            return [*problems, f"the mechanism gives {where} {place} another statistic than the report states"]
    return problems


def _check_mechanism(
    report: Mapping[str, Any], space: Space, evidence: _Evidence, mechanism: Mechanism, real: Mapping[str, Any]
) -> None:
    for rank, index in evidence.index_of.items():
        pmf = run(mechanism, f"dataset {rank}", space.dataset(rank, real), len(report["outputs"]))
        need(pmf == evidence.pmfs[index], f"the mechanism gives dataset {rank} another pmf than the report states")


def _draw(report: Mapping[str, Any], space: Space, mechanism: Mechanism, real: Mapping[str, Any]) -> _Evidence:
    """The pmfs of up to 2,000 pairs that nobody could foresee: the report's own sample may have been sought."""
    source, pmfs, edges = random.SystemRandom(), dict[int, Pmf](), set[Pair]()
    for _ in range(values.SAMPLE_SIZE):
        rank = source.randrange(space.sources)
        higher = space.above(rank)
        if higher:
            edges.add((rank, source.choice(higher)))
    for rank in {rank for edge in edges for rank in edge}:
        pmfs[rank] = run(mechanism, f"dataset {rank}", space.dataset(rank, real), len(report["outputs"]))
    return _Evidence(pmfs, {rank: rank for rank in pmfs}, sorted(edges), False)


def _check_digests(
    report: Mapping[str, Any], space: Space, evidence: _Evidence, mechanism: Mechanism, real: Mapping[str, Any]
) -> None:
    """The digests from which the pairs are drawn are those of the mechanism's pmfs, so that nobody chose them."""
    numbers, of = dict[tuple[str, ...], int](), list[int]()
    for rank in range(space.datasets):
        pmf = run(mechanism, f"dataset {rank}", space.dataset(rank, real), len(report["outputs"]))
        masses = tuple(fraction_text(Fraction(weight, pmf.total)) for weight in pmf.weights)
        of.append(numbers.setdefault(masses, len(numbers)))
    for name, content in (("pmfs_digest", list(map(list, numbers))), ("pmf_of_digest", of)):
        need(report["sample"][name] == canonical_digest(content), f"{name} is not that of the mechanism's pmfs")
    same = all(of[rank] == index for rank, index in evidence.index_of.items())
    need(same, "the sample does not number the pmfs in the order of their first appearance")


def _check_drawn(report: Mapping[str, Any], drawn: _Evidence, worst_of: Callable[[_Evidence], Worst]) -> None:
    """No pair may exceed what the report claims for all of them."""
    result, (_, least, most) = report["result"], worst_of(drawn)
    delta = fraction(report["question"]["delta"])
    _, high = _interval(result["worst_delta"], "worst_delta")
    problem = "a pair drawn by this check exceeds what the report claims: "
    need(most.compare(Fraction(high)) <= 0, problem + "worst_delta.upper")
    need(result["holds"] is not True or most.compare(delta) <= 0, problem + "holds")
    need(result["holds"] is not None or least.compare(delta) <= 0, problem + "holds")
    if result["exp_epsilon"] is not None:
        cap = ratio_cap(drawn.pmfs.values())
        at_least = worst_divergence(drawn.pmfs, drawn.edges, Level(fraction(result["exp_epsilon"]), Fraction(0), cap))
        need(at_least.compare(delta) <= 0, problem + "exp_epsilon")


def _check_agreement(result: Mapping[str, Any], ratio: Fraction, exponent: Fraction) -> None:
    """The verdict at E and the least e^epsilon that reaches delta say the same; a sample alone would not show it."""
    least, holds, reached = result["exp_epsilon"], result["holds"], False
    if least is not None:
        # From the least multiplier on, the divergence of the stated pmfs is at most delta, and before it, above delta.
        least = fraction(least)
        reached = Level(ratio, exponent, least.numerator.bit_length() + 1).sign(least, Fraction(1)) <= 0
    need(holds is not True or reached, "holds is true, but exp_epsilon is beyond the claimed epsilon")
    need(holds is not False or not reached, "holds is false, but exp_epsilon is within the claimed epsilon")


def _check_keys(question: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """No part may say more than the format knows."""
    kind, structure = question["kind"], question["structure"]
    known = {"pair": {"x", "x2"}, "dataset": {"dataset", "records", "replaceable"}}
    names = known.get(kind, {"universe", "n_users", "n_examples"})
    parts: list[tuple[str, Any, set[str]]] = [
        ("question", question, _QUESTION),
        ("structure", structure, names | ({"statistics"} if question["engine"] == "additive" else set())),
        ("epsilon", question["epsilon"], {"ratio", "exponent"}),
        ("result", result, _RESULT),
        ("witness", result["witness"] or dict.fromkeys(("ranks", "event")), {"ranks", "event"}),
    ]
    for name, part, expected in parts:
        need(isinstance(part, dict) and set(part) == expected, f"{name} has missing or unknown fields")
    if "universe" in structure:
        distinct(structure["universe"], "universe")
    witness = result["witness"] or {}
    lists = [*witness.values(), structure.get("replaceable", [])]
    need(all(isinstance(part, list) for part in lists), "ranks, event and replaceable must be lists")


def read_form(report: Mapping[str, Any]) -> Space:
    """Refuse what has not the form of an audit report: fields, types, encodings, a question that makes sense."""
    need((report["verification"] == "sampled") == ("sample" in report), "a sample belongs to sampled reports only")
    need(isinstance(report["mechanism"], str), "names must be strings")
    need(isinstance(report["outputs"], list) and len(report["outputs"]) > 0, "outputs must be a non-empty list")
    distinct(report["outputs"], "outputs")
    lists = ("pmfs", "pmf_of", "pmf_pairs")
    need(all(isinstance(report[name], list) for name in lists), "pmfs, pmf_of and pmf_pairs must be lists")
    question, result = report["question"], report["result"]
    _check_keys(question, result)
    decode(report["outputs"], str)  # which may be objects of which only a text is left
    objects_of(question["structure"])
    holds = result["holds"]
    need(holds is None or isinstance(holds, bool), "holds must be true, false or null")
    for name in ("datasets", "pairs"):
        count(report[name], name)
    for index in itertools.chain(report["pmf_of"], *(_row(pair, 2, "pmf_pairs") for pair in report["pmf_pairs"])):
        count(index, "the number of a pmf")
    if report["verification"] == "sampled":
        _read_sample(report["sample"])
    ratio, exponent = (fraction(question["epsilon"][part]) for part in ("ratio", "exponent"))
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    delta, error = fraction(question["delta"]), fraction(question["pmf_error"])
    need(0 <= delta <= 1 and 0 <= error < 1, "delta must be in [0, 1] and pmf_error in [0, 1)")
    space = space_of(question, len(report["pmf_of"]) if report["verification"] == "complete" else None)
    expected = ["pmf-as-stated", "canonical-users", *_ASSUMPTIONS[question["engine"]]]
    need(report["assumptions"] == expected, f"the assumptions must be {expected}")
    return space


@checks(
    "audit",
    "mechanism question assumptions outputs pmfs pmf_of datasets pairs pmf_pairs result verification",  # and `sample`
    alone=False,
)
def check_audit(report: Mapping[str, Any], asked: Asked) -> Checked:
    """Decide every pair again; with the mechanism, compute every pmf again."""
    mechanism, declared, problems = asked.mechanism, asked.declared, asked.problems
    space = read_form(report)
    question, result = report["question"], report["result"]
    ratio, exponent = (fraction(question["epsilon"][part]) for part in ("ratio", "exponent"))
    delta, error = fraction(question["delta"]), fraction(question["pmf_error"])
    for name, expected in (("datasets", space.datasets), ("pairs", space.pairs)):
        if report[name] != expected:
            problems.append(f"{name} is {report[name]}, but the structure has {expected}")
    complete = space.pairs <= values.COMPLETE_PAIRS
    need(report["verification"] == ("complete" if complete else "sampled"), "verification is not what pairs calls for")
    evidence = (_complete if complete else _sampled)(report, space, problems)
    work.afford(len(evidence.edges) <= values.MAX_PMF_PAIRS, "more distinct pairs of pmfs than a report can hold")

    def worst_of(known: _Evidence) -> Worst:
        return within_error(known.pmfs, known.edges, (ratio, exponent), error)

    worst, least, most = worst_of(evidence)
    steps: list[Callable[[], None]] = [
        lambda: _check_witness(result, evidence, space, worst),
        lambda: _check_delta(result, least, most, delta, bool(error) and not complete),
        lambda: _check_epsilon(result, evidence, delta),
    ]
    if not complete:
        steps.append(lambda: _check_agreement(result, ratio, exponent))
    found = Checked("consistent", pairs=space.pairs if complete else len(report["sample"]["pairs"]))
    ordered = question["engine"] == "labeled" or declared is None or declared.by_construction
    if mechanism is not None:
        run_again, real = mechanism, objects_of(question["structure"])
        finding, datasets = "established" if complete and ordered else "spot-checked", len(evidence.index_of)
        if declared is not None:
            problems += _check_declared(report, declared, real)
        steps.append(lambda: _check_mechanism(report, space, evidence, run_again, real))
        if not complete:
            steps.append(lambda: _check_drawn(report, _draw(report, space, run_again, real), worst_of))
        if not complete and space.datasets <= values.ALL_DATASETS:
            steps.append(lambda: _check_digests(report, space, evidence, run_again, real))
            datasets += space.datasets
        refuted = result["holds"] is False and least.compare(delta) > 0
        found = Checked(finding, datasets, found.pairs, refuted)  # type: ignore[arg-type]
    for step in steps:  # each goes its own way, so that one defect does not hide another
        try:
            step()
        except work.TooMuch:
            raise
        except Problem as problem:
            problems.append(str(problem))
    if mechanism is not None and not problems and not ordered:

        def stated(rank: int) -> Pmf | None:
            return evidence.pmfs[evidence.index_of[rank]] if rank in evidence.index_of else None

        every, tried = check_orders(mechanism, len(report["outputs"]), space, real, stated, complete=complete)
        found = Checked("established" if every else "spot-checked", found.datasets + tried, found.pairs, found.refuted)
    return found
