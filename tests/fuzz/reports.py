"""Reports and certificates that were altered: whatever is accepted is decided again here, slowly."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any
from zlib import crc32

from fuzz.mutations import altered, as_text, refused, sealed
from oracle.audit import audit, multiplier, population
from oracle.composition import composed_delta, response
from oracle.optimal import optimum
from userdp.checker import check as checker
from userdp.checker import work
from userdp.report import Certificate, Report

F = Fraction
DIGITS = Context(prec=60)
BEST = {"composition": "established", "optimality": "established", "certificate": "established"}


@lru_cache(maxsize=4096)
def around(ratio: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Two numbers around ratio e^exponent, where that is no huge one."""
    if exponent == 0:
        return ratio, ratio
    power = F(DIGITS.exp(DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))) * ratio
    return power * (1 - F(1, 10**50)), power * (1 + F(1, 10**50))


def of_level(level: dict[str, str]) -> tuple[Fraction, Fraction]:
    ratio, exponent = F(level["ratio"]), F(level["exponent"])
    return around(ratio, min(exponent, F(10**4)))


def excess(p: Sequence[Fraction | int], q: Sequence[Fraction | int], level: Fraction) -> Fraction:
    """The larger of the two divergences."""
    return max(sum((max(F(0), a - level * b) for a, b in zip(x, y, strict=True)), F(0)) for x, y in ((p, q), (q, p)))


# --- one decision for each kind


def _texts(codes: Any) -> Any:
    return tuple(json.dumps(code, sort_keys=True) for code in codes) if isinstance(codes, list) else codes


@lru_cache(maxsize=1024)
def _audited(core: str) -> dict[str, Any] | None:
    question, pmfs, pmf_of = json.loads(core)
    structure = {name: _texts(part) for name, part in question["structure"].items()}
    for name in ("statistics", "replaceable"):
        if name in structure:
            structure[name] = question["structure"][name]
    examples, users = structure.get("n_examples", 1), structure.get("n_users", 1)
    if max(examples, users) > 4 or len(structure.get("universe", ())) ** (examples * users) > 81:
        return None
    if any(len(pmf) > 5 for pmf in pmfs):
        return None
    masses = iter([[F(mass) for mass in pmfs[index]] for index in pmf_of])
    numbers = {name: F(question[name]) for name in ("delta", "pmf_error")}
    level = {name: F(question["epsilon"][name]) for name in ("ratio", "exponent")}
    words = {name: question[name] for name in ("kind", "neighbors", "engine")}
    return audit(lambda _: next(masses), (), structure=structure, **words, **numbers, **level)


def decide_audit(report: dict[str, Any]) -> None:
    """Every field is what brute force finds, and the witness is one."""
    question, result = report["question"], report["result"]
    if report["verification"] != "complete":
        return
    mine = _audited(json.dumps([question, report["pmfs"], report["pmf_of"]]))
    if mine is None:
        return
    for name in ("datasets", "pairs", "pmfs", "pmf_of", "pmf_pairs", "assumptions"):
        assert report[name] == mine[name], name
    assert all(abs(sum(map(F, pmf)) - 1) < F(1, 10**8) and len(pmf) == len(report["outputs"]) for pmf in report["pmfs"])
    for name in ("holds", "exp_epsilon"):
        assert result[name] == mine["result"][name], name
    for name in ("worst_delta", "epsilon"):
        (low, high), (least, most) = (map(float.fromhex, part[name]) for part in (result, mine["result"]))
        assert low <= math.nextafter(least, math.inf), name
        assert high >= math.nextafter(most, -math.inf), name
    structure = question["structure"]
    if "replaceable" in structure and question["engine"] != "additive":
        users = _texts(structure["dataset"])
        kept = structure["replaceable"]
        assert {users[place] for place in kept} == set(users)
        assert question["engine"] != "labeled" or sorted(set(kept)) == list(range(len(users)))
    if result["witness"] is not None:
        (a, b), event = result["witness"]["ranks"], result["witness"]["event"]
        coded = {
            name: structure[name] if name in ("statistics", "replaceable") else _texts(structure[name])
            for name in structure
        }
        assert (min(a, b), max(a, b)) in population(question["kind"], question["neighbors"], question["engine"], coded)[
            1
        ]
        p, q = ([F(mass) for mass in report["pmfs"][report["pmf_of"][rank]]] for rank in (a, b))
        level = multiplier(*(F(question["epsilon"][name]) for name in ("ratio", "exponent")))
        far = max(excess(*([F(m) for m in report["pmfs"][i]] for i in pair), level) for pair in report["pmf_pairs"])
        assert abs(sum((p[o] - level * q[o] for o in event), F(0)) - far) * 10**300 <= 1


def decide_composition(report: dict[str, Any]) -> None:
    """The delta is not below that of the releases whose outcomes can be listed, nor that of all Gaussian noise."""
    (_, level), delta = of_level(report["epsilon"]), F(report["delta"])
    if level > 10**6:
        return
    pairs: list[Any] = []
    gauss = 0.0
    for part in report["releases"]:
        found: Any = None
        if part["kind"] == "pair":
            p, q = ([F(int(w)) for w in part[name]] for name in "pq")
            found = list(zip([a / sum(p) for a in p], [b / sum(q) for b in q], strict=True))
        elif part["kind"] == "pure":
            found = response(of_level(part["epsilon"])[0], F(part["delta"]))
        elif part["kind"] == "gaussian":
            gauss += float(F(part["mu_squared"])) * part["count"]
        pairs += [found] * min(part["count"], 12) if found else []
    if sum(map(len, pairs)) <= 60:
        assert composed_delta(pairs, level) <= delta
        assert composed_delta([[(b, a) for a, b in pair] for pair in pairs], level) <= delta
    if gauss and level < 10**6:
        mu, epsilon, cdf = math.sqrt(gauss), math.log(level), NormalDist().cdf
        assert cdf(mu / 2 - epsilon / mu) - float(level) * cdf(-mu / 2 - epsilon / mu) <= float(delta) + 1e-9


@lru_cache(maxsize=512)
def _optimum(core: str, ratio: Fraction, delta: Fraction) -> Fraction | None:
    world, prior = json.loads(core)
    losses = [[F(loss) for loss in row] for row in world.get("losses", [])]
    if world["kind"] == "sum":
        near = [(i, j) for j in range(len(losses)) for i in range(max(0, j - world["reach"]), j)]
    elif world["kind"] == "users" and (world["n_users"], world["n_examples"]) == (1, 1):
        near = [(i, j) for j in range(len(losses)) for i in range(j)]
    else:
        return None
    if len(losses) * len(losses[0]) > 9 or ratio > 10**9:
        return None
    return optimum(losses, near, ratio, delta, None if prior is None else [F(weight) for weight in prior])


def decide_optimality(report: dict[str, Any]) -> None:
    """The least loss of all tables is between the two that are claimed."""
    low, high = of_level(report["epsilon"])
    if report["prior"] is not None and report["world"].get("symmetries"):
        return
    core = json.dumps([report["world"], report["prior"]])
    least, most = (_optimum(core, ratio, F(report["delta"])) for ratio in (high, low))
    if least is not None and most is not None:
        assert F(report["lower_bound"]) <= most
        assert F(report["value"]) >= least


def decide_lddp(report: dict[str, Any]) -> None:
    """The verdict is one that the bounds allow."""
    low, high = (F(float.fromhex(report[name])) for name in ("lower", "upper"))
    assert 0 <= low <= high
    assert report["holds"] is not True or low <= F(report["delta"])
    assert report["holds"] is not False or high > F(report["delta"])


def _law(weights: Sequence[int], total: int) -> list[int]:
    """How many of the values of the random bits choose each candidate."""
    whole, before, found = sum(weights), 0, []
    for weight in weights:
        found.append(-(-(before + weight) * total // whole) - -(-before * total // whole))
        before += weight
    return found


def decide_certificate(report: dict[str, Any]) -> None:
    """The mechanism of the table is as private as is claimed, on all neighbors that are tried."""
    (_, level), delta, factor = of_level(report["epsilon"]), F(report["delta"]), F(report["factor"])
    subject, total = report["subject"], int(report["total"])
    table, parts = list(map(int, report["table"])), {name: F(value) for name, value in report["parts"].items()}
    law = [F(entry, total) for entry in table]
    if subject == "pair":
        second = [F(int(entry), total) for entry in report["second"]]
        assert sum(law) == 1 == sum(second)
        assert excess(law, second, level) <= delta
    elif subject == "noise":
        assert sum(law) == 1
        assert excess([*law, F(0)], [F(0), *law], level) <= delta
    elif subject == "selection":
        sensitivity, last = int(parts["sensitivity"]), len(table) - 1
        candidates = min(int(parts["candidates"]), 3)
        if candidates < 2 or sensitivity > 50:
            return
        for gap in {0, 1, last // 2, max(last - 1, 0), last, last + 1}:
            scores = [gap + sensitivity, *[sensitivity] * (candidates - 1)]
            for move in (-sensitivity, sensitivity):
                moved = [scores[0] + move, *(score - move for score in scores[1:])]
                first, other = (
                    _law([table[min(score - min(given), last)] for score in given], total) for given in (scores, moved)
                )
                assert sum(first) == total
                assert all(a <= level * b and b <= level * a for a, b in zip(first, other, strict=True))
    else:
        inner = around(parts["inner_ratio"], min(parts["inner_exponent"], F(10**4)))[0]
        assert factor * inner**2 <= level
        assert parts["noise_delta"] + (1 + inner) * parts["inner_delta"] <= delta
        assert 2 * (len(table) - 1) <= parts["deletions"] + 2 * (subject == "optimal")
        if subject == "optimal":
            assert law[-1] == 1
            assert all(0 <= q <= 1 for q in law)
            steps = itertools.pairwise(law)
            assert all(excess([a, 1 - a], [b, 1 - b], factor) <= parts["noise_delta"] for a, b in steps)
        else:
            assert sum(law) == 1
            assert excess([*law, F(0)], [F(0), *law], factor) <= parts["noise_delta"]


DECIDE = {
    "audit": decide_audit,
    "composition": decide_composition,
    "optimality": decide_optimality,
    "certificate": decide_certificate,
    "lddp": decide_lddp,
}


def run(data: bytes) -> bool:
    """Read and verify one text, by count within a tenth of a second; whether it was a report."""
    with work.at_most(0.1):
        return _run(data)


def _run(data: bytes) -> bool:
    text = as_text(data)
    try:
        report = Report.from_json(text)
    except ValueError as error:
        return refused(error)
    content = json.loads(text)
    found = report.verify()
    assert found.problems[:1] != ("the report was changed after it was loaded",)
    if crc32(data) % 8 == 0:
        assert json.loads(report.to_json()) == content == checker.read(text)
        str(found), report.summary(), checker.said_by(content)
    assert found.finding in ("wrong", "refused", "consistent", BEST.get(report.KIND))
    assert (found.finding in ("wrong", "refused")) == bool(found.problems)
    if found.problems:
        return True
    assert sealed(content) == content
    if report.KIND in DECIDE:
        DECIDE[report.KIND](content)
    if report.KIND in ("generalization", "law", "sensitivity", "guesses"):
        for other in {True, False, None} - {content["holds"]}:
            assert checker.check(sealed(content | {"holds": other})).finding in ("wrong", "refused")
    if isinstance(report, Certificate) and crc32(data) % 8 == 0:
        assert report.to_coq().isascii()
    return True


def alter(data: bytes, source: random.Random) -> bytes:
    """A report with changes, mostly with a digest that fits; of some audits the result is that of brute force."""

    def finish(document: Any, source: random.Random) -> Any:
        if not isinstance(document, dict) or source.random() < 0.05:
            return document
        if "pmf_of" in document and source.random() < 0.15:
            try:
                mine = _audited(json.dumps([document["question"], document["pmfs"], document["pmf_of"]]))
            except Exception:  # of whatever the changes have made
                mine = None
            document |= (
                {name: mine[name] for name in ("datasets", "pairs", "pmfs", "pmf_of", "pmf_pairs", "result")}
                if mine
                else {}
            )
        try:
            return sealed(document)
        except (TypeError, ValueError):
            return document

    return altered(data, source, finish)
