"""Check an audit report again, with nothing but the standard library.

The modules of this folder share no code with the rest of the package, compiled or not, so that a
mistake there cannot hide here. They follow docs/report-format.md; every decision is exact.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.checker import limits
from userdp.checker.divergences import Level, Pmf, Value, both_ways, ratio_cap, worst_divergence
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
from userdp.checker.verification import Finding, Verification

FORMAT = "userdp-audit/2"
_FIELDS = {"format", "userdp_version", "mechanism", "question", "assumptions", "outputs", "pmfs", "pmf_of"} | {
    *("datasets", "pairs", "pmf_pairs", "result", "verification", "digest")
}
_ASSUMPTIONS = {"labeled": [], "symmetric": ["symmetry"], "additive": ["additivity"]}
_QUESTION = {"kind", "neighbors", "engine", "epsilon", "delta", "pmf_error", "structure"}
OBJECTS = ("universe", "dataset", "records", "x", "x2")
_RESULT = {"holds", "worst_delta", "epsilon", "exp_epsilon", "witness"}
_DIGESTS = ("pmfs_digest", "pmf_of_digest", "pmf_pairs_digest")
_MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)

Mechanism = Callable[[tuple[Any, ...]], Sequence[Fraction]]


@dataclass(frozen=True)
class Declared:
    """What a mechanism declares beyond its pmfs; a report's engine and pmf_error rest on it.

    With `by_construction` its class computes the pmf from what the engine assumes, so that nobody has to try it.
    """

    symmetric: bool = False
    statistic_of: Callable[[Any], int] | None = None
    pmf_error: Fraction = Fraction(0)
    by_construction: bool = False


# The evidence: distributions of datasets, and the pairs of distributions that neighbors have
# --------------------------------


@dataclass(frozen=True)
class _Evidence:
    pmfs: Mapping[int, Pmf]
    distribution_of: Mapping[int, int]
    edges: Sequence[Pair]
    complete: bool


Worst = tuple[Value, Value, Value]  # of the stated pmfs; and bounds of it for pmfs within pmf_error


def _inexact(report: Mapping[str, Any]) -> bool:
    """Whether neighbors with the same stated pmf count too, since their true ones may differ."""
    return fraction(report["question"]["pmf_error"]) > 0


def _complete(report: Mapping[str, Any], space: Space, problems: list[str]) -> _Evidence:
    pmfs = [Pmf.read(masses, len(report["outputs"])) for masses in report["pmfs"]]
    if not _all_differ(pmfs):
        problems.append("pmfs lists the same pmf twice")
    distribution_of = [count(index, "pmf_of") for index in report["pmf_of"]]
    need(
        len(distribution_of) == space.datasets,
        f"pmf_of has {len(distribution_of)} entries for {space.datasets} datasets",
    )
    if list(dict.fromkeys(distribution_of)) != list(range(len(pmfs))):
        raise Problem("pmf_of does not name the pmfs in the order of their first appearance")
    found: set[Pair] = set()
    for rank in range(space.sources):
        i = distribution_of[rank]
        found.update((min(i, j), max(i, j)) for j in (distribution_of[other] for other in space.above(rank)))
    edges = sorted((i, j) for i, j in found if i != j or _inexact(report))
    plain = all(type(index) is int for pair in report["pmf_pairs"] for index in pair)
    if not plain or report["pmf_pairs"] != [list(edge) for edge in edges]:
        problems.append("pmf_pairs is not the set of pairs of pmfs that neighboring datasets have")
    return _Evidence(dict(enumerate(pmfs)), dict(enumerate(distribution_of)), edges, True)


def _all_differ(pmfs: Collection[Pmf]) -> bool:
    return len({tuple(Fraction(w, pmf.total) for w in pmf.weights) for pmf in pmfs}) == len(pmfs)


def _sampled(report: Mapping[str, Any], space: Space, problems: list[str]) -> _Evidence:
    sample = report["sample"]
    if report["pmfs"] != [] or report["pmf_of"] != [] or report["pmf_pairs"] != []:
        problems.append("a sampled report has empty pmfs, pmf_of and pmf_pairs")
    need(set(sample) == {*_DIGESTS, "pairs", "pmfs"}, "the sample has missing or unknown fields")
    for name in _DIGESTS:
        right = isinstance(sample[name], str) and re.fullmatch("[0-9a-f]{64}", sample[name])
        need(bool(right), f"{name} is not a SHA-256 digest in lower-case hex")
    seed = sample["pmfs_digest"] + sample["pmf_of_digest"] + sample["pmf_pairs_digest"]
    witness = report["result"]["witness"]
    first = None if witness is None else (witness["ranks"][0], witness["ranks"][1])
    distribution_of: dict[int, int] = {}
    for pair in sample["pairs"]:
        a, b, i, j = (count(number, "a number of a sampled pair") for number in pair)
        if distribution_of.setdefault(a, i) != i or distribution_of.setdefault(b, j) != j:
            problems.append("the sample gives one dataset two pmfs")
    # Pmfs are numbered in the order of their first appearance by rank.
    if any(index > rank for rank, index in distribution_of.items()):
        problems.append("the sample numbers a pmf higher than its dataset, but every pmf before it is of a lower rank")
    listed = [(a, b) for a, b, _, _ in sample["pairs"]]
    # One more than listed would show that some are missing; drawing all could take long.
    if listed != sample_pairs(space, seed, first, len(listed) + 1):
        problems.append("the sampled pairs are not the ones that the digests draw")
    named = set(distribution_of.values())
    need(set(sample["pmfs"]) == set(map(str, named)), "the sample does not hold the pmfs of its pairs, and no others")
    pmfs = {index: Pmf.read(sample["pmfs"][str(index)], len(report["outputs"])) for index in named}
    need(_all_differ(pmfs.values()), "the sample gives one pmf two numbers")
    edges = {(min(i, j), max(i, j)) for _, _, i, j in sample["pairs"] if i != j or _inexact(report)}
    return _Evidence(pmfs, distribution_of, sorted(edges), False)


# The result ------------------------------------------------------------------------------------------------


def _interval(value: Any, name: str) -> tuple[float, float]:
    need(isinstance(value, list) and len(value) == 2, f"{name} must be two hexadecimal floats")
    low, high = map(hex_float, value)
    need(0 <= low <= high, f"{name} must satisfy 0 <= lower <= upper")
    return low, high


def _slack(bound: float) -> Fraction:
    """How far a bound may be from the exact number before it is vacuous."""
    return Fraction(bound) / 10**6 + Fraction(1, 10**12)


def _check_witness(result: Mapping[str, Any], evidence: _Evidence, space: Space, worst: Value) -> None:
    witness = result["witness"]
    need(
        (witness is None) == all(i == j for i, j in evidence.edges), "a witness is needed exactly when two pmfs differ"
    )
    if witness is None:
        return
    a, b = (count(rank, "a witness rank") for rank in witness["ranks"])
    need(max(a, b) in space.above(min(a, b)), "the witness datasets are not neighbors")
    p, q = evidence.pmfs[evidence.distribution_of[a]], evidence.pmfs[evidence.distribution_of[b]]
    event = [count(o, "a witness output") for o in witness["event"]]
    need(event == sorted(set(event)), "the witness event is not a sorted set of outputs")
    gap = worst.level.sign(worst.a - p.mass(event), worst.b - q.mass(event))
    need(gap == 0, "the witness event does not attain the worst divergence")


def _check_delta(result: Mapping[str, Any], least: Value, most: Value, delta: Fraction, sampled_error: bool) -> None:
    """Check the bounds and the verdict against least <= worst divergence <= most."""
    low, high = _interval(result["worst_delta"], "worst_delta")
    holds = result["holds"]
    need(
        math.isfinite(high) and most.compare(Fraction(high)) <= 0,
        "worst_delta.upper is below the worst divergence",
    )
    passes, fails = most.compare(delta) <= 0, least.compare(delta) > 0
    if sampled_error:  # the pairs that decide within pmf_error may not be in the sample
        need(
            not (fails and holds is not False) and (passes or holds is not True),
            "a sampled pair contradicts holds",
        )
        return
    need(least.compare(Fraction(low)) >= 0, "worst_delta.lower is above the worst divergence")
    tight = least.compare(Fraction(low) + _slack(low)) <= 0 and most.compare(Fraction(high) - _slack(high)) >= 0
    need(tight, "worst_delta encloses the worst divergence but is too wide to say anything")
    need(holds is (True if passes else False if fails else None), "holds is not what the pmfs decide")


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
    need(Fraction(high) - Fraction(low) <= _slack(high), "epsilon is too wide to say anything")


def objects_of(structure: Mapping[str, Any]) -> dict[str, Any]:
    """What the codes in a structure decode to: users' values, all that a mechanism is shown of them."""
    found = {name: tuple(map(decode, structure[name])) for name in OBJECTS if name in structure}
    small = all(size_of(member) <= limits.MOST_SIZE for members in found.values() for member in members)
    need(small, f"a value of users has over {limits.MOST_SIZE:,} parts and characters")
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


def _run(mechanism: Mechanism, rank: int, dataset: tuple[Any, ...], outputs: int) -> Pmf:
    try:
        masses = [Fraction(mass) for mass in mechanism(dataset)]
        total = math.lcm(*(mass.denominator for mass in masses))
        pmf = Pmf(tuple(mass.numerator * (total // mass.denominator) for mass in masses), total)
    except Exception as error:  # whatever the mechanism raises, the report stays unconfirmed
        raise Problem(f"the mechanism fails on dataset {rank}: {type(error).__name__}: {error}") from error
    need(len(pmf.weights) == outputs and pmf.is_pmf(), f"the mechanism gives dataset {rank} no pmf")
    return pmf


def _check_mechanism(
    report: Mapping[str, Any], space: Space, evidence: _Evidence, mechanism: Mechanism, real: Mapping[str, Any]
) -> None:
    for rank, index in evidence.distribution_of.items():
        pmf = _run(mechanism, rank, space.dataset(rank, real), len(report["outputs"]))
        need(pmf.equals(evidence.pmfs[index]), f"the mechanism gives dataset {rank} another pmf than the report states")


def _check_orders(
    report: Mapping[str, Any], space: Space, evidence: _Evidence, mechanism: Mechanism, real: Mapping[str, Any]
) -> tuple[bool, int]:
    """Run the mechanism on datasets in other orders than the listed ones; whether these are all, and how many."""
    every = evidence.complete and space.all_orders() <= limits.ALL_ORDERS
    draw = random.SystemRandom().randrange
    some = (space.in_some_order(real, draw) for _ in range(limits.SAMPLE_SIZE))
    outputs, tried, known = len(report["outputs"]), 0, dict[int, Pmf]()
    for rank, dataset in space.in_every_order(real) if every else some:
        pmf = _run(mechanism, rank, dataset, outputs)
        if rank in evidence.distribution_of:
            stated = evidence.pmfs[evidence.distribution_of[rank]]
        else:
            if rank not in known:
                known[rank] = _run(mechanism, rank, space.dataset(rank, real), outputs)
            stated = known[rank]
        need(pmf.equals(stated), f"the mechanism's pmf changes with the order of users, on those of dataset {rank}")
        tried += 1
    return every, tried


def _draw(report: Mapping[str, Any], space: Space, mechanism: Mechanism, real: Mapping[str, Any]) -> _Evidence:
    """The pmfs of up to 2,000 pairs that nobody could foresee: the report's own sample may have been sought."""
    source, pmfs, edges = random.SystemRandom(), dict[int, Pmf](), set[Pair]()
    for _ in range(limits.SAMPLE_SIZE):
        rank = source.randrange(space.sources)
        higher = space.above(rank)
        if higher:
            edges.add((rank, source.choice(higher)))
    for rank in {rank for edge in edges for rank in edge}:
        pmfs[rank] = _run(mechanism, rank, space.dataset(rank, real), len(report["outputs"]))
    return _Evidence(pmfs, {rank: rank for rank in pmfs}, sorted(edges), False)


def _check_digests(
    report: Mapping[str, Any], space: Space, evidence: _Evidence, mechanism: Mechanism, real: Mapping[str, Any]
) -> None:
    """The digests from which the pairs are drawn are those of the mechanism's pmfs, so that nobody chose them."""
    numbers, of = dict[tuple[str, ...], int](), list[int]()
    for rank in range(space.datasets):
        pmf = _run(mechanism, rank, space.dataset(rank, real), len(report["outputs"]))
        masses = tuple(fraction_text(Fraction(weight, pmf.total)) for weight in pmf.weights)
        of.append(numbers.setdefault(masses, len(numbers)))
    for name, content in (("pmfs_digest", list(map(list, numbers))), ("pmf_of_digest", of)):
        need(report["sample"][name] == canonical_digest(content), f"{name} is not that of the mechanism's pmfs")
    same = all(of[rank] == index for rank, index in evidence.distribution_of.items())
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


def _distinct(encoded: Sequence[Any], name: str) -> None:
    need(len(set(map(canonical_digest, encoded))) == len(encoded), f"{name} names the same object twice")


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
        _distinct(structure["universe"], "universe")
    witness = result["witness"] or {}
    lists = [*witness.values(), structure.get("replaceable", [])]
    need(all(isinstance(part, list) for part in lists), "ranks, event and replaceable must be lists")


def read_form(report: Any) -> Space:
    """Refuse what has not the form of a report: fields, types, encodings, a question that makes sense.

    Raises
    ------
    ValueError
        For anything else; whether the numbers are right is not looked at.
    """
    need(isinstance(report, dict) and report.get("format") == FORMAT, f"not a {FORMAT} report")
    extra = {"sample"} if report.get("verification") == "sampled" else set()
    need(set(report) == _FIELDS | extra, f"fields missing or unknown: {sorted(set(report) ^ _FIELDS ^ extra)}")
    need(all(isinstance(report[name], str) for name in ("mechanism", "userdp_version")), "names must be strings")
    need(isinstance(report["outputs"], list) and len(report["outputs"]) > 0, "outputs must be a non-empty list")
    _distinct(report["outputs"], "outputs")
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
    ratio, exponent = (fraction(question["epsilon"][part]) for part in ("ratio", "exponent"))
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    delta, error = fraction(question["delta"]), fraction(question["pmf_error"])
    need(0 <= delta <= 1 and 0 <= error < 1, "delta must be in [0, 1] and pmf_error in [0, 1)")
    space = space_of(question, len(report["pmf_of"]) if report["verification"] == "complete" else None)
    expected = ["pmf-as-stated", "canonical-users", *_ASSUMPTIONS[question["engine"]]]
    need(report["assumptions"] == expected, f"the assumptions must be {expected}")
    return space


def _check(
    report: Any,
    mechanism: Mechanism | None,
    declared: Declared | None,
    problems: list[str],
) -> Verification:
    space = read_form(report)
    content = {name: value for name, value in report.items() if name != "digest"}
    if report["digest"] != "sha256:" + canonical_digest(content):
        problems.append("the digest does not match the content")
    question, result = report["question"], report["result"]
    ratio, exponent = (fraction(question["epsilon"][part]) for part in ("ratio", "exponent"))
    delta, error = fraction(question["delta"]), fraction(question["pmf_error"])
    for name, expected in (("datasets", space.datasets), ("pairs", space.pairs)):
        if report[name] != expected:
            problems.append(f"{name} is {report[name]}, but the structure has {expected}")
    complete = space.pairs <= limits.COMPLETE_PAIRS
    need(
        report["verification"] == ("complete" if complete else "sampled"),
        "verification is not what pairs calls for",
    )
    evidence = (_complete if complete else _sampled)(report, space, problems)
    need(len(evidence.edges) <= limits.MAX_PMF_PAIRS, "more distinct pairs of pmfs than a report can hold")

    spread = (1 + error) / (1 - error)

    def worst_of(known: _Evidence) -> Worst:
        cap = ratio_cap(known.pmfs.values())

        def worst_at(factor: Fraction) -> Value:
            return worst_divergence(known.pmfs, known.edges, Level(ratio * factor, exponent, cap))

        worst = worst_at(Fraction(1))
        if not error:
            return worst, worst, worst
        # Masses within the relative error eta move E by (1 + eta)/(1 - eta) and the value by 1 +- eta.
        at_most, at_least = worst_at(1 / spread), worst_at(spread)
        most = Value(at_most.a, at_most.b, at_most.level, 1 + error)
        return worst, Value(at_least.a, at_least.b, at_least.level, 1 - error), most

    worst, least, most = worst_of(evidence)
    steps: list[Callable[[], None]] = [
        lambda: _check_witness(result, evidence, space, worst),
        lambda: _check_delta(result, least, most, delta, bool(error) and not complete),
        lambda: _check_epsilon(result, evidence, delta),
    ]
    if not complete:
        steps.append(lambda: _check_agreement(result, ratio, exponent))
    found: Finding = "consistent"
    datasets, pairs = 0, space.pairs if complete else len(report["sample"]["pairs"])
    if mechanism is not None:
        run, real = mechanism, objects_of(question["structure"])
        ordered = question["engine"] == "labeled" or declared is None or declared.by_construction
        found, datasets = "established" if complete and ordered else "spot-checked", len(evidence.distribution_of)
        if declared is not None:
            problems += _check_declared(report, declared, real)
        steps.append(lambda: _check_mechanism(report, space, evidence, run, real))
        if not complete:
            steps.append(lambda: _check_drawn(report, _draw(report, space, run, real), worst_of))
        if not complete and space.datasets <= limits.ALL_DATASETS:
            steps.append(lambda: _check_digests(report, space, evidence, run, real))
            datasets += space.datasets
    for step in steps:  # each goes its own way, so that one defect does not hide another
        try:
            step()
        except Problem as problem:
            problems.append(str(problem))
    if mechanism is not None and not problems and not ordered:
        every, tried = _check_orders(report, space, evidence, mechanism, real)
        found, datasets = "established" if every else "spot-checked", datasets + tried
    refuted = mechanism is not None and result["holds"] is False and least.compare(delta) > 0
    return Verification(found, (), datasets, pairs, refuted)


def check(
    report: Any,
    mechanism_pmf: Mechanism | None = None,
    declared: Declared | None = None,
) -> Verification:
    """Check a report as docs/report-format.md says, and say how much that establishes.

    Parameters
    ----------
    report : dict
        The parsed JSON. Anything else, or anything malformed, is a problem and never an exception.
    mechanism_pmf : callable, optional
        Gives the exact pmf of a dataset; every audited dataset is then given to it again.
    declared : Declared, optional
        What the mechanism declares; the report's engine and pmf_error must not claim more. Without it the
        mechanism is taken to be what the engine assumes.

    Returns
    -------
    Verification
        "wrong" with the problems that were found, and otherwise how much was recomputed.
    """
    problems: list[str] = []
    found = Verification("wrong")
    try:
        found = _check(report, mechanism_pmf, declared, problems)
    except Problem as problem:
        problems.append(str(problem))
    except _MALFORMED as error:
        problems.append(f"the report is malformed: {type(error).__name__}: {error}")
    return Verification("wrong", tuple(problems)) if problems else found
