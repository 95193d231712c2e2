"""Checking what is said of a sampler from the masses that were found of its output distributions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from userdp.checker import values, work
from userdp.checker.divergences import Level, Pmf, Value, positive_part, ratio_cap
from userdp.checker.running import Checked, check_bounds, checks, distinct
from userdp.checker.spaces import Pair, Space, space_of
from userdp.checker.values import Problem, count, decode, fraction, hex_float, need, size_of

_RANDOMNESS = ("bits", "lazy-bits", "random", "secrets", "numpy")


@checks(
    "law",
    "holds worst_delta witness mechanism randomness monotone neighbors epsilon delta universe n_users n_examples "
    "outputs laws law_of runs memory",
)
def check_law(report: Mapping[str, Any]) -> Checked:
    """Decide from the masses again: bounds of all divergences, the verdict, and the witness."""
    _check_words(report)
    outputs = report["outputs"]
    need(isinstance(outputs, list), "outputs is not a list")
    distinct(outputs, "outputs")
    for output in outputs:
        decode(output, str)
    space = _space(report)
    laws = Pmf.read_all(_listed(report["laws"], "laws"), len(outputs) + 1)
    for law in laws:
        need(sum(law.weights) == law.total, "the masses of a law and what is unexplored do not sum to 1")
    distinct(report["laws"], "laws")
    found = {place for law in laws for place, weight in enumerate(law.weights) if weight}
    need(found >= set(range(len(outputs))), "outputs lists what was not found")
    law_of = [count(index, "law_of") for index in _listed(report["law_of"], "law_of")]
    need(len(law_of) == space.datasets, f"law_of has {len(law_of)} entries for {space.datasets} datasets")
    first_seen = list(dict.fromkeys(law_of))
    need(first_seen == list(range(len(laws))), "law_of does not name the laws in the order of their first appearance")
    need(count(report["runs"], "runs") >= space.datasets, "there are fewer runs than datasets")
    ratio, exponent = _level(report["epsilon"])
    level = Level(ratio, exponent, ratio_cap(laws))
    delta = fraction(report["delta"])
    need(0 <= delta <= 1, "delta must be in [0, 1]")
    least, most = _worst(laws, _edges(space, law_of), level)
    ends = _listed(report["worst_delta"], "worst_delta")
    need(len(ends) == 2, "worst_delta is not a list of 2")
    check_bounds((hex_float(ends[0]), hex_float(ends[1])), report["holds"], least, most, delta)
    _check_witness(report["witness"], space, laws, law_of, level, least)
    return Checked("consistent", pairs=space.pairs)


def _check_words(report: Mapping[str, Any]) -> None:
    need(isinstance(report["mechanism"], str), "the mechanism must have a name")
    memory = report["memory"]
    need(isinstance(memory, str) and memory.startswith(("none on ", "assumed")), "memory is none, or assumed")
    need(report["randomness"] in _RANDOMNESS, "unknown randomness")
    need(type(report["monotone"]) is bool, "monotone must be true or false")
    need(report["holds"] is None or type(report["holds"]) is bool, "holds must be true, false or null")


def _space(report: Mapping[str, Any]) -> Space:
    universe = _listed(report["universe"], "universe")
    distinct(universe, "universe")
    small = all(size_of(decode(example)) <= values.MOST_SIZE for example in universe)
    work.afford(small, f"a value of users has over {values.MOST_SIZE:,} parts and characters")
    structure = {name: report[name] for name in ("universe", "n_users", "n_examples")}
    question = {"kind": "user-level", "neighbors": report["neighbors"], "engine": "labeled", "structure": structure}
    return space_of(question, len(_listed(report["law_of"], "law_of")))


def _listed(value: Any, name: str) -> list[Any]:
    need(isinstance(value, list), f"{name} is not a list")
    return list(value)


def _level(stated: Any) -> tuple[Fraction, Fraction]:
    need(isinstance(stated, dict) and set(stated) == {"ratio", "exponent"}, "epsilon has missing or unknown fields")
    ratio, exponent = fraction(stated["ratio"]), fraction(stated["exponent"])
    need(ratio >= 1 and exponent >= 0, "epsilon must be >= 0")
    return ratio, exponent


def _edges(space: Space, law_of: list[int]) -> list[Pair]:
    """Laws of neighbors; one law twice too, since what is not explored may differ."""
    found = set[Pair]()
    work.spend(space.sources * space.effort)
    for rank in range(space.sources):
        found.update((law_of[rank], law_of[other]) for other in space.above(rank))
    return sorted({pair for i, j in found for pair in ((i, j), (j, i))})


def _sides(p: Pmf, q: Pmf, level: Level) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """P(S), Q(S) of the event S where p > E q among the outputs found, and what is unexplored of both."""
    above, below = positive_part(Pmf(p.weights[:-1], p.total), Pmf(q.weights[:-1], q.total), level)
    return above, below, Fraction(p.weights[-1], p.total), Fraction(q.weights[-1], q.total)


def _worst(laws: list[Pmf], edges: list[Pair], level: Level) -> tuple[Value, Value]:
    """The largest lower bound and the largest upper bound of a divergence: docs/proofs/sampler_laws.md, Theorem 1."""
    zero = Fraction(0)
    work.spend(len(edges) * 20_000, "fewer laws or datasets take less")
    least = most = Value(zero, zero, level)
    for i, j in edges:
        above, below, own, other = _sides(laws[i], laws[j], level)
        least = _larger(least, Value(above, below + other, level))
        most = _larger(most, Value(above + own, below, level))
    return least, most


def _larger(one: Value, other: Value) -> Value:
    return other if one.level.sign(other.a - one.a, other.b - one.b) > 0 else one


def _check_witness(witness: Any, space: Space, laws: list[Pmf], law_of: list[int], level: Level, least: Value) -> None:
    need(
        (witness is None) == (least.compare(Fraction(0)) <= 0), "there is a witness exactly if a divergence is certain"
    )
    if witness is None:
        return
    need(isinstance(witness, dict) and set(witness) == {"ranks", "event"}, "witness has missing or unknown fields")
    ranks = [count(rank, "a rank") for rank in _listed(witness["ranks"], "ranks")]
    need(len(ranks) == 2 and max(ranks) < space.datasets, "the ranks of the witness are not two datasets")
    low, high = sorted(ranks)
    need(low < space.sources and high in space.above(low), "the datasets of the witness are not neighbors")
    p, q = (laws[law_of[rank]] for rank in ranks)
    above, below, _, other = _sides(p, q, level)
    same = level.sign(above - least.a, below + other - least.b) == 0
    need(same, "the datasets of the witness do not have the largest divergence that is certain")
    pairs = zip(p.weights[:-1], q.weights[:-1], strict=True)
    event = [o for o, (a, b) in enumerate(pairs) if level.sign(Fraction(a, p.total), Fraction(b, q.total)) > 0]
    if witness["event"] != event or any(type(o) is not int for o in witness["event"]):
        raise Problem("the event of the witness is not where the first law is above e^epsilon times the second")
