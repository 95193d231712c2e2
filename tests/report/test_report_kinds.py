"""Every kind of report: read back, checked again, shown; what is damaged or made up is refused or found."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

pytest.importorskip("highspy")

from support.every_report import EVERY_REPORT as MAKERS
from support.every_report import NOISY, OTHER_RESULTS, PEOPLE, SHARE, answer, order
from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp.algorithms import SymmetricAlgorithm, finite_algorithm
from userdp.checker import check as checker
from userdp.checker import values
from userdp.checker.running import KINDS
from userdp.estimators.plan import Budget, PrivacyRecord
from userdp.lddp import check_lddp
from userdp.planning import user_complexity
from userdp.report import Report

F = Fraction
ROOT = Path(__file__).parents[2]
STORED = (ROOT / "docs" / "report.schema.json").read_text()
SCHEMA = Report.schema()
VALID = jsonschema.Draft202012Validator(SCHEMA)


MANY = {"alpha": "1/2", "right": 200_001, "wrong": 0, "none": 0, "epsilon": {"ratio": "1", "exponent": "0"}}


def sealed(report: dict[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in report.items() if name != "digest"}
    return content | {"digest": "sha256:" + values.canonical_digest(content)}


def loaded(content: dict[str, Any]) -> Report:
    return Report.from_json(json.dumps(content))


def test_every_kind_is_here() -> None:
    made = {type(make()).KIND for make in MAKERS.values()}
    assert made == set(Report._kinds) == {entry["$ref"].rpartition("/")[2] for entry in SCHEMA["oneOf"]}


@pytest.mark.parametrize("name", MAKERS)
def test_round_trip(name: str) -> None:
    report = MAKERS[name]()
    text = report.to_json()
    for kind in (Report, type(report)):
        again = kind.from_json(text)
        assert type(again) is type(report)
        assert again == report
        assert again.to_json() == text
        assert again.summary() == report.summary() == str(report)
        assert again.verify() == report.verify()
        assert report.verify().finding == ("established" if KINDS[report.KIND].certain else "consistent")
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.digest == json.loads(text)["digest"]
    assert json.loads(report.to_json(indent=1)) == json.loads(text) == report.to_dict()


@pytest.mark.parametrize("name", MAKERS)
def test_a_kind_reads_no_other(name: str) -> None:
    text = MAKERS[name]().to_json()
    for kind in Report._kinds.values():
        if kind is not type(MAKERS[name]()):
            with pytest.raises(ValueError, match=f"not a userdp-{kind.KIND}/3 report"):
                kind.from_json(text)


@pytest.mark.parametrize("name", MAKERS)
def test_the_schema_describes_every_report(name: str) -> None:
    VALID.validate(MAKERS[name]().to_dict())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(STORED) == SCHEMA, "make schema writes it anew"


JUNK: list[Any] = [None, "x", -7, [], {}, True, "1/7", 0, "0x1.8p+0"]


def damages(content: Any, source: random.Random) -> Iterator[None]:
    """Put other things in every place, one at a time, three of them in each."""
    keys = list(content) if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        kept = content[key]
        for junk in source.sample(JUNK, 3):
            if junk != kept or type(junk) is not type(kept):
                content[key] = junk
                yield
        content[key] = kept
        yield from damages(kept, source)
    if isinstance(content, dict):
        content["more"] = 1
        yield
        del content["more"]


@pytest.mark.parametrize("name", MAKERS)
def test_damage_is_refused_or_found(name: str) -> None:
    """Without its digest too, nothing raises; with the old digest, everything is found."""
    content, report_kind = MAKERS[name]().to_dict(), MAKERS[name]().KIND
    refused, source = 0, random.Random(name)
    for _ in damages(content, source):
        if report_kind == "audit" and source.random() < 0.4:  # tests/report/test_report.py damages audits everywhere
            continue
        for forged in (content, sealed(content)):
            found = checker.check(json.loads(json.dumps(forged)))
            assert forged is not content or found.finding == "wrong"
            try:
                report = loaded(forged)
            except ValueError:
                refused += 1
                continue
            assert report.verify() == found
            assert VALID.is_valid(forged) or found.finding == "wrong"
            report.summary()
    assert refused > 20
    assert loaded(content).verify().finding != "wrong"


def forge(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda report: report.update(changes)


def at(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(report: Any) -> None:
        for key in path[:-1]:
            report = report[key]
        report[path[-1]] = to

    return change


FORGERIES: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("violated lddp", forge(holds=True), "holds is not what the bounds allow"),
    ("lddp of no difference", forge(holds=False), "holds is not what the bounds allow"),
    ("lddp", forge(holds=None), "holds is not what the bounds allow"),
    ("lddp", forge(witness=None), "a witness is needed exactly"),
    ("lddp", forge(upper="0x0.0p+0", lower="0x0.0p+0"), "a witness is needed exactly"),
    ("lddp", forge(upper="inf"), "finite"),
    ("lddp", lambda report: at("witness", 1, to=report["witness"][0])(report), "compares one deletion set with itself"),
    ("lddp", at("witness", 0, to=[4]), "no set of positions"),
    ("lddp", at("witness", 2, to=["maybe"]), "no set of outputs"),
    ("lddp", forge(outputs=["no", "no"]), "twice"),
    ("lddp", forge(r=5), "more users are deleted than there are"),
    ("lddp", forge(n_users=10**12), "too many users"),
    ("generalization", forge(beta="0"), "beta is not the largest"),
    ("generalization", forge(holds=True), "holds is not what beta and the claim say"),
    ("generalization", forge(scope="listed", holds=None), "holds is not what beta and the claim say"),
    ("generalization", forge(worst=1), "worst is not the first"),
    ("generalization", forge(witness=None), "a witness is needed exactly"),
    ("generalization", forge(datasets=3), "datasets is 3"),
    ("generalization", forge(pmfs=5), "more pmfs than datasets"),
    ("generalization", forge(distributions=[["1/2", "1/3"], ["1/3", "2/3"]]), "does not sum to 1"),
    ("generalization", forge(n_users=10**9), "too many"),
    ("generalization", at("witness", "x", to=[[0], [2]]), "the witness is no sample"),
    ("generalization", at("witness", "divergence", to=["0x0.0p+0", "0x0.0p+0"]), "no divergence above delta"),
    ("stability", at("distribution", 0, 1, to="1/3"), "sum 1"),
    ("stability", forge(samples=5), "there are 4 samples as multisets and 8 as sequences"),
    ("stability", forge(global_stability=["1", "1"]), "global_stability is not"),
    ("stability", forge(nu=["0", "1"]), "nu is not what"),
    ("stability", forge(agreement=["0", "1"]), "agreement is too wide"),
    ("stability", forge(items=[]), "there is no item"),
    ("stability", forge(m=10**30), "samples"),
    ("stability", forge(method=None), "the method is unknown"),
    ("violated lddp", forge(lower="0x0.0p+0", upper="0x1.0000000000000p+0", holds=True), "too far apart"),
    ("violated lddp", forge(lower=(2.0).hex(), upper=(2.0).hex()), "at most 1"),
    ("generalization", at("witness", "divergence", to=["0x0.0p+0", "0x1.0000000000000p+0"]), "too wide"),
    ("stability", forge(m=10**6, samples=2_000_001), "too many samples"),
    (
        "stability",
        lambda report: (
            report["items"].append(report["items"][-1] | {"item": "reprisal"})
            or report["items"].append(report["items"][-1])
        ),
        "twice",
    ),
    ("stability of lists", forge(list_size=0), "more often than lists have places"),
    ("stability of lists", forge(nu=["0", "1"]), "lists have no method"),
    ("stability of seeds", at("seeds", 0, "weight", to="1/2"), "probabilities with the sum 1"),
    ("stability of seeds", at("seeds", 1, "stable", to=True), "stable is not what"),
    ("stability of seeds", forge(nu=["1", "1"]), "nu is not the weight"),
    ("composition", forge(delta="1/2000000"), "not shown to have this delta"),
    ("composition", forge(epsilon={"ratio": "1", "exponent": "1"}), "not shown to have this delta"),
    ("composition", at("releases", 0, "count", to=8), "not shown to have this delta"),
    ("composition", forge(resolution=None), "several kinds of releases need a resolution"),
    ("composition on a lattice", forge(resolution="1/10"), "not shown to have this delta"),
    ("composition on a lattice", forge(bits=20, cut="0"), "not shown to have this delta"),
    ("guesses", forge(holds=None), "holds is not what the counts say"),
    ("guesses by time", forge(holds=False), "holds is not what the counts say"),
    ("guesses", forge(holds=True), "guesses acquit nobody"),
    ("guesses", at("estimate", "epsilon", to={"ratio": "10000", "exponent": "0"}), "the counts do not refute"),
    ("guesses by time", at("estimate", "epsilon", to={"ratio": "5", "exponent": "0"}), "the counts do not refute"),
    ("guesses", at("verdict", "epsilon", to={"ratio": "1", "exponent": "1"}), "the logarithm of a short fraction"),
    ("guesses", at("verdict", "alpha", to="1/1000000000"), "alpha is used up by delta"),
    ("guesses", at("verdict", "alpha", to="1/3"), "at least as sure as the estimate"),
    ("guesses", at("estimate", "alpha", to="2/3"), "alpha must be at most 1/2"),
    ("guesses", at("verdict", "right", to=101), "more guesses than canaries"),
    ("guesses", at("verdict", "none", to=1), "more guesses than canaries"),
    ("guesses", forge(canaries=0), "canaries are users of one run"),
    ("guesses", forge(runs=1, raised=1), "a mechanism that only raises is not audited"),
    ("guesses", forge(runs=9, raised=1), "runs that raise are counted for samples"),
    ("guesses", forge(runs=2), "more guesses than runs"),
    ("guesses by time", forge(runs=29), "more guesses than runs"),
    ("guesses", forge(access="samples"), "canaries are users of one run"),
    ("guesses by time", forge(test="fixed"), "only in one run"),
    ("guesses by time", forge(neighbors="replace"), "inputs are what is timed"),
    ("guesses by time", forge(delta="1/2"), "no delta"),
    ("guesses by time", at("verdict", "right", to=10**10), "too many guesses"),
    ("guesses", forge(canaries=10**6, verdict=MANY, estimate=MANY), "too many guesses"),
    ("violated sensitivity", forge(holds=True), "holds is not what was found"),
    ("sensitivity", forge(holds=None), "holds is not what was found"),
    ("sensitivity", forge(claim=["1", "1", "1", "1"]), "holds is not what was found"),
    ("sensitivity", forge(claim=[None] * 4), "holds is not what was found"),
    ("sensitivity", forge(form_dependent=True), "holds is not what was found"),
    ("sensitivity", forge(complete=False), "holds is not what was found"),
    ("sensitivity", forge(tables=3), "do not add up"),
    ("sensitivity", forge(all_tables=3), "tables"),
    ("sensitivity", forge(total_rows=4), "tables"),
    ("sensitivity", forge(max_users=65), "too large"),
    ("sensitivity", forge(witness=None), "a witness is needed exactly"),
    ("sensitivity", forge(worst=["1", "1", "1", "1"]), "the witness is worse than the worst"),
    ("sensitivity", forge(worst=["1", "2", "2", "1"]), "norms do not agree"),
    ("sensitivity", forge(worst=["infinite", "1", "1", "1"]), "infinite in some norms alone"),
    ("sensitivity", at("witness", "change", to=["1", "1", "1", "1"]), "change is not what the outputs say"),
    ("sensitivity", at("witness", "user", to=7), "who changes has no name"),
    ("sensitivity", at("witness", "first", to=[[0, "c"]]), "no letter"),
    ("sensitivity", at("witness", "first", to=[[9, "a"]]), "of nobody"),
    ("sensitivity", at("witness", "first", to=[[0, "a"], [1, "a"]]), "differ in more than one user"),
    ("sensitivity", at("witness", "first", to=[[0, "a"]] * 3), "larger than is said"),
    ("sensitivity", at("ids", 1, to=0), "twice"),
    ("sensitivity", at("columns", 0, 0, to="who"), "two columns have one name"),
    ("sensitivity", at("columns", 0, 2, to=[]), "no letters"),
    ("violated sensitivity", forge(claim=[None, "1", None, None]), "holds is not what was found"),
    ("violated sensitivity", forge(slack="100"), "holds is not what was found"),
    ("violated sensitivity", at("witness", "first", to=[["0x1.0p+0"]]), "value"),
    ("optimality", forge(value="1/2"), "value is not what the table loses"),
    ("optimality", forge(lower_bound="1"), "lower_bound is not what mu and y prove"),
    ("optimality", forge(delta="1/11"), "the table is not private"),
    ("optimality", forge(epsilon={"ratio": "3", "exponent": "0"}), "below and above are not e^epsilon"),
    ("optimality of a sum", forge(epsilon={"ratio": "1", "exponent": "2"}), "not certainly between below and above"),
    ("optimality", forge(objective="bayes"), "mu is the prior where there is one"),
    ("optimality of a mean", forge(objective="worst"), "a prior goes with the objective 'bayes'"),
    ("optimality of a mean", at("prior", 0, to="1/3"), "prior must be >= 0 and sum to 1"),
    ("optimality", at("y", 0, 0, to=10**6), "y must be of constraints of the world"),
    ("optimality", at("world", "kind", to="all"), "unknown world"),
    ("optimality", at("world", "losses", 0, 0, to="1"), "the loss does not have a stated symmetry"),
    ("optimality of a sum", at("world", "reach", to=2), "the table is not private"),
    ("certificate", forge(delta="1/101"), "the deltas are more than delta"),
    ("certificate", forge(epsilon={"ratio": "1", "exponent": "7"}), "the levels are more than epsilon together"),
    ("certificate", at("parts", "deletions", to="3"), "too few users are left out"),
    ("certificate", at("parts", "inner_ratio", to="1/2"), "a factor is below 1"),
    ("certificate", at("parts", "noise_delta", to="1/300"), "more than the level allows"),
    ("certificate", at("table", 1, to="0"), "more than the level allows"),
    ("certificate", at("table", -1, to="1"), "refusals"),
    ("certificate", forge(subject="tight"), "too few users"),
    ("certificate", forge(terms=1), "the levels are more than epsilon together"),
    ("certificate", forge(second=["1"]), "a second table goes with a pair"),
    ("certificate of tight noise", at("table", 0, to="0"), "differ by more"),
    ("certificate of tight noise", forge(total="1"), "an end is more likely"),
    ("certificate of a selection", forge(delta="1/2"), "a selection has no delta"),
    ("certificate of a selection", at("parts", "candidates", to="99999999999999"), "theta is too small"),
    ("certificate of a selection", at("parts", "sensitivity", to="2"), "the weights fall by more"),
    ("certificate of a selection", at("parts", "sensitivity", to="1/2"), "a part that counts is no integer"),
    ("certificate of a selection", at("parts", to={}), "parts are missing"),
    ("certificate of a selection", forge(factor="3000"), "the factor is not certainly at most"),
    ("certificate of a pair", forge(delta="0"), "the divergence is above delta"),
    ("certificate of a pair", forge(delta="1"), "delta must be in"),
    ("certificate of a pair", forge(delta="-1/3"), "delta is negative"),
    ("certificate of a pair", forge(second=["1", "1", "1"]), "different numbers of outputs"),
]


LIMITS = {"too many", "too many users", "too many samples", "too many guesses", "too large"}
"""Problems of size, which say nothing about whether the report is right."""


@pytest.mark.parametrize(("name", "change", "problem"), FORGERIES)
def test_forgeries_are_found(name: str, change: Callable[[dict[str, Any]], None], problem: str) -> None:
    report = MAKERS[name]().to_dict()
    change(report)
    forged = sealed(report)
    found = checker.check(forged)
    assert found.finding == ("refused" if problem in LIMITS else "wrong")
    assert any(problem in said for said in found.problems), found.problems
    with contextlib.suppress(ValueError):
        assert loaded(forged).verify().finding == found.finding


HUGE = "1" + "0" * 5000
EXTREME: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("lddp", forge(n_users=10**4000)),
    ("lddp", forge(n_users=10**4000, r=10**3999)),
    ("lddp", forge(n_users=3, r=10**4000)),
    ("lddp", forge(epsilon={"ratio": HUGE, "exponent": HUGE})),
    ("lddp", forge(delta=f"1/{HUGE}", pmf_error=f"1/{HUGE}", holds=None)),
    ("generalization", forge(beta=HUGE, claimed_beta=f"1/{HUGE}")),
    ("stability", forge(alpha=f"1/{HUGE}", eta=f"1/{HUGE}", global_stability=["0", HUGE])),
    ("audit", at("question", "delta", to=f"1/{HUGE}")),
    ("composition", forge(bits=10**4000, cut=HUGE, delta=f"1/{HUGE}")),
    ("composition", at("releases", 0, "epsilon", to={"ratio": HUGE, "exponent": HUGE})),
    ("composition", at("releases", 0, "count", to=10**4000)),
    ("sensitivity", forge(max_users=10**4000)),
    ("sensitivity", forge(total_rows=10**4000, max_rows=10**4000)),
    ("sensitivity", forge(tables=10**4000, slack=f"1/{HUGE}")),
    ("violated sensitivity", forge(worst=[HUGE, HUGE, HUGE, HUGE], claim=[None, HUGE, None, None])),
    ("certificate", forge(terms=10**4000)),
    ("certificate", forge(terms=10**5, epsilon={"ratio": "1", "exponent": "0"})),
    ("certificate", forge(epsilon={"ratio": "1", "exponent": "1" + "0" * 2000})),
    ("certificate", forge(epsilon={"ratio": HUGE, "exponent": HUGE})),
    ("certificate", forge(total=HUGE, factor=HUGE)),
    ("certificate", forge(table=[HUGE])),
    ("certificate of a selection", at("parts", "sensitivity", to="1" + "0" * 2000)),
    ("certificate of a selection", at("parts", "beta", to="1/1" + "0" * 2000)),
    ("optimality", at("world", "n_users", to=10**4000)),
    ("optimality", at("world", "n_examples", to=10**9)),
    ("optimality", forge(total=HUGE, scale=HUGE)),
    ("optimality", forge(epsilon={"ratio": HUGE, "exponent": HUGE}, below=HUGE, above=HUGE)),
    ("optimality of a sum", at("world", "reach", to=10**4000)),
    ("optimality of a sum", at("world", "lowest", to=10**4000)),
    (
        "optimality",
        at("world", to={"kind": "selection", "n_users": 1000, "n_items": 2**64, "loss": "regret", "agreement": None}),
    ),
]


@pytest.mark.parametrize(("name", "change"), EXTREME)
def test_extreme_numbers_are_shown(name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """A result on the screen is not hidden by an exception, whatever is in the file."""
    content = MAKERS[name]().to_dict()
    change(content)
    report = loaded(sealed(content))
    for show in (str, repr, type(report)._repr_html_, type(report).to_html, type(report).to_json):
        assert isinstance(show(report), str)
    assert len(report.to_frame("pyarrow")) > 0
    report.verify()


def test_small_texts_do_not_fill_the_memory() -> None:
    """Masses without common factors, over one denominator, would have thousands of times the length of the text."""
    source, size = random.Random(0), 4000
    shares = [F(d // size, d) for d in (source.getrandbits(200) | 1 for _ in range(size))]
    texts = [values.fraction_text(share) for share in shares]
    audit = MAKERS["audit"]().to_dict()
    audit["outputs"], audit["pmfs"] = list(range(size)), [texts for _ in audit["pmfs"]]
    stability, general = (MAKERS[name]().to_dict() for name in ("stability", "generalization"))
    stability["distribution"] = [[place, text] for place, text in enumerate(texts)]
    general["universe"], general["distributions"] = list(range(size)), [texts]
    general |= {"sample_perfect": ["0"], "perfect": ["0"], "beta": "0", "worst": 0, "holds": None}
    for content in (audit, stability, general):
        found = checker.check(sealed(content))
        assert found.finding == "refused"
        assert "too long to check" in found.problems[0]


def test_a_sample_has_its_form() -> None:
    audit = MAKERS["audit"]().to_dict()
    deep = json.loads("[" * 600 + "]" * 600)
    for place in ("pmf_of", "pmf_pairs"):
        with pytest.raises(ValueError, match="not a userdp report"):
            loaded(sealed(audit | {place: [deep]}))
    digest = "0" * 64
    sample = {"pmfs_digest": digest, "pmf_of_digest": digest, "pmf_pairs_digest": digest, "pairs": [], "pmfs": {}}
    empty = {"verification": "sampled", "pmfs": [], "pmf_of": [], "pmf_pairs": []}
    loaded(sealed(audit | empty | {"sample": sample}))
    for wrong in (deep, sample | {"pairs": deep}, sample | {"pmfs": {"0": deep}}, sample | {"pmfs_digest": 1}):
        with pytest.raises(ValueError, match="not a userdp report"):
            loaded(sealed(audit | empty | {"sample": wrong}))


# With what the report is about -------------------------------------------------------------------------------


def spelled_anew(content: Any) -> Iterator[Any]:
    """The report with one list in another order or with an entry twice, or with a float that equals nothing."""
    nodes = [content]
    for node in nodes:
        for key, part in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(part, (dict, list)):
                nodes.append(part)
            elif isinstance(part, str) and part.startswith("0x"):
                node[key] = "nan"
                yield content
                node[key] = part
        if isinstance(node, list) and node:
            whole = list(node)
            for other in (whole[::-1], [*whole, whole[-1]], [whole[0], *whole]):
                if other != whole:
                    node[:] = other
                    yield content
            node[:] = whole


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_read_has_one_spelling(kind: str) -> None:
    """A report that is loaded says what its text says: no other spelling of it is read, and then taken for a change."""
    for changed in spelled_anew(json.loads(MAKERS[kind]().to_json())):
        try:
            report = Report.from_json(json.dumps(sealed(changed)))
        except ValueError:
            continue
        assert report.verify().problems[:1] != ("the report was changed after it was loaded",)


def test_generalization_is_established_from_the_mechanism() -> None:
    multisets = SymmetricAlgorithm(SHARE.outputs, SHARE.pmf)
    for name, mechanism, refuted in (
        ("generalization", order, True),
        ("generalization from a simulator", order, False),
        ("generalization of multisets", multisets, False),
        ("generalization of multisets", SHARE, False),
    ):
        report: Any = MAKERS[name]()
        found = Report.from_json(report.to_json()).verify(mechanism)
        assert (found.finding, found.refuted) == ("established", refuted and report.holds is False), found
        assert found.datasets >= report.datasets
    holds: Any = MAKERS["generalization from a simulator"]()
    assert holds.holds is True


def test_generalization_of_another_mechanism() -> None:
    @finite_algorithm(outputs=tuple("abc"))
    def other(dataset: tuple[Any, ...]) -> list[int]:
        return [0, 1, 0] if dataset == ((1,), (0,)) else order.pmf(dataset)  # type: ignore[return-value]

    report: Any = MAKERS["generalization"]()
    assert "another sample_perfect" in report.verify(other).problems[0]
    plain = MAKERS["generalization of multisets"]()
    assert "the order of users" in plain.verify(finite_algorithm(SHARE.outputs)(SHARE.pmf)).problems[0]
    rounded = finite_algorithm(outputs=tuple("abc"), pmf_error="1e-9")(order.pmf)
    assert "pmf_error" in report.verify(rounded).problems[0]
    renamed = finite_algorithm(outputs=tuple("abd"))(order.pmf)
    assert report.verify(renamed).problems == ("the mechanism has other outputs than the report states",)


def test_generalization_forged_to_be_consistent() -> None:
    """Numbers that agree with each other, and with no mechanism."""
    report = MAKERS["generalization"]().to_dict()
    report |= {"sample_perfect": ["1/4", "1/9"], "beta": "1/4", "holds": None}
    made_up = loaded(sealed(report))
    assert made_up.verify().finding == "consistent"
    assert made_up.verify(order).finding == "wrong"


def test_generalization_of_many_datasets_is_spot_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "ALL_DATASETS", 3)
    report: Any = MAKERS["generalization"]()
    assert report.verify(order).finding == "spot-checked"
    monkeypatch.undo()
    monkeypatch.setattr(values, "COMPLETE_PAIRS", 1)
    assert report.verify(order).finding == "spot-checked"
    monkeypatch.undo()
    monkeypatch.setattr(values, "ALL_ORDERS", 1)
    multisets: Any = MAKERS["generalization of multisets"]()
    assert multisets.verify(SymmetricAlgorithm(SHARE.outputs, SHARE.pmf)).finding == "spot-checked"
    assert multisets.verify(SHARE).finding == "established"  # its class makes it so


def test_deletions_are_established_from_the_algorithm_and_the_data() -> None:
    for name, dataset in (("lddp", PEOPLE), ("violated lddp", PEOPLE), ("lddp of no difference", PEOPLE[1:])):
        report: Any = MAKERS[name]()
        found = Report.from_json(report.to_json()).verify(SHARE, dataset)  # type: ignore[call-arg]
        assert (found.finding, found.datasets, found.pairs) == ("established", report.subsets, report.pairs), found
        assert found.refuted is (report.holds is False)


@pytest.mark.parametrize("delta", ["0", "1/10", "1/5", "1/2"])
@pytest.mark.parametrize("users", [1, 2, 3])
def test_deletions_within_a_declared_error(delta: str, users: int) -> None:
    """Equal stated pmfs may differ in truth, and have no witness."""
    dataset = [(place,) for place in range(users)]
    for masses in ([F(1, 2), F(1, 2)], [F(1, 3), F(2, 3)]):

        def pmf(x: tuple[Any, ...], masses: list[Fraction] = masses) -> list[Fraction]:
            return masses if (0,) in x else [F(1, 2), F(1, 2)]

        rounded = finite_algorithm(outputs=(0, 1), pmf_error="0.1")(pmf)
        report = check_lddp(rounded, dataset, r=1, epsilon=0, delta=delta)
        found = report.verify(rounded, dataset)
        assert found.finding == "established", found
        assert report.verify().finding == "consistent"
        VALID.validate(report.to_dict())


def test_deletions_of_another_algorithm_or_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    report: Any = MAKERS["lddp"]()
    assert report.verify(SHARE, PEOPLE[:3]).problems == ("the dataset has 3 users, and the report is about 4",)
    assert "another divergence" in report.verify(NOISY, PEOPLE).problems[0]
    # A pair that is worse than the witness, which is still right.
    worse = finite_algorithm(SHARE.outputs)(
        lambda x: [1, 0] if x == ((0,), (1,), (1,)) and x.index((1,)) == 1 and False else SHARE.pmf(x)
    )
    assert report.verify(worse, PEOPLE).finding == "established"
    # Of three deletion sets the witness compares two; the third one is the bad one.
    quiet = {**report.to_dict(), "upper": report.lower.hex()}
    assert loaded(sealed(quiet)).verify(SHARE, PEOPLE).finding in ("established", "wrong")  # type: ignore[call-arg]
    monkeypatch.setattr(values, "ALL_DATASETS", 3)
    found = report.verify(SHARE, PEOPLE)
    assert (found.finding, found.datasets, found.pairs, found.refuted) == ("spot-checked", 2, 1, False)
    violated: Any = MAKERS["violated lddp"]()
    assert violated.verify(SHARE, PEOPLE).refuted is True
    with pytest.raises(TypeError, match="or neither"):
        report.verify(SHARE)
    with pytest.raises(TypeError, match="or neither"):
        report.verify(dataset=PEOPLE)


def test_what_is_undetermined_within_the_error_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forged verdict between the bounds: the stated pmfs violate it, and the true ones may not."""
    report = check_lddp(SHARE, PEOPLE, r=1, epsilon=0, delta="1/4").to_dict()
    report |= {"pmf_error": "1/2", "lower": "0x0.0p+0", "upper": (1.0).hex()}
    monkeypatch.setattr(values, "ALL_DATASETS", 1)
    forged: Any = loaded(sealed(report))
    assert forged.holds is False
    found = forged.verify(SHARE, PEOPLE)
    assert found.finding == "spot-checked"
    assert not found.refuted


def test_generalization_with_another_number_of_pmfs() -> None:
    report = MAKERS["generalization"]().to_dict()
    found = loaded(sealed(report | {"pmfs": 4})).verify(order)
    assert found.problems == ("the mechanism has 3 distinct pmfs, and the report states 4",)


def test_a_worse_pair_than_the_witness_is_found() -> None:
    """The report of an algorithm that is worse on one deletion set than the one that is shown."""
    users = tuple((place,) for place in range(5))

    def pmf(dataset: tuple[Any, ...], odd: Fraction) -> list[Fraction]:
        p = F(1, 2) if (0,) in dataset else F(3, 5)
        return [odd, 1 - odd] if (3,) not in dataset else [p, 1 - p]

    mild = finite_algorithm((0, 1))(lambda x: pmf(x, F(11, 20)))
    harsh = finite_algorithm((0, 1))(lambda x: pmf(x, F(1, 1)))
    report = check_lddp(mild, users, r=1, epsilon=0, delta="1/5")
    assert report.verify(mild, users).finding == "established"
    found = report.verify(harsh, users)
    assert found.finding == "wrong"
    assert "worst divergence" in found.problems[0]


@pytest.mark.parametrize("name", ["stability", "composition", "optimality"])
def test_what_is_not_computed_again_says_so(name: str) -> None:
    with pytest.raises(TypeError, match="computes nothing again from a mechanism"):
        MAKERS[name]().verify(answer)


def test_a_changed_report_is_noticed() -> None:
    for make in MAKERS.values():
        report = loaded(make().to_dict())
        field = "mechanism" if hasattr(report, "mechanism") else next(iter(type(report).WRITTEN))
        object.__setattr__(report, field, "better" if isinstance(getattr(report, field), str) else 7)
        found = report.verify()
        assert found.finding == "wrong"
        assert "the report was changed after it was loaded" in found.problems


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"format": "userdp-poem/3"}', '{"format": "userdp-audit/4"}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a userdp report"):
        Report.from_json(text)
    assert checker.check(json.loads(text or "null")).finding == "wrong"


@pytest.mark.parametrize("version", [1, 2])
def test_earlier_formats_are_refused_with_a_reason(version: int) -> None:
    with pytest.raises(ValueError, match=f"format {version}.*audit the mechanism again"):
        Report.from_json(json.dumps({"format": f"userdp-audit/{version}"}))


def test_reports_are_read_without_the_core(tmp_path: Path) -> None:
    for name, make in MAKERS.items():
        (tmp_path / f"{name}.json").write_text(make().to_json())
    program = f"""
import sys
sys.modules["userdp._core"] = None
from pathlib import Path
from userdp.report import Report
for path in sorted(Path({str(tmp_path)!r}).iterdir()):
    report = Report.from_json(path.read_text())
    assert report.verify().finding in ("consistent", "established")
    print(report.summary())
    report.to_html()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "NOT REFUTED" in done.stdout or "VIOLATED" in done.stdout


# How they are shown ------------------------------------------------------------------------------------------


def shown_things() -> dict[str, Any]:
    ledger = PrivacyLedger(1, "1e-6", composition="zcdp")
    ledger.spend(PrivacyCost(rho="1/50"), "<mean> of all")
    budget = Budget.of("1/2", {"threshold": 1, "selection": 2})
    record = PrivacyRecord(budget.cost, "user", budget.parts, ("threshold_",), ("<caveat>",))
    plan = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01)
    return {name: make() for name, make in (MAKERS | OTHER_RESULTS).items()} | {
        "ledger": ledger,
        "record": record,
        "plan": plan,
    }


@pytest.mark.parametrize("name", [*MAKERS, *OTHER_RESULTS, "ledger", "record", "plan"])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(name: str, backend: str) -> None:
    pytest.importorskip(backend)
    frame = shown_things()[name].to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    assert min(frame.shape) >= 1


def test_frames_hold_the_numbers() -> None:
    frame = MAKERS["audit"]().to_frame()
    assert type(frame).__module__.split(".")[0] == "pandas"
    (row,) = frame.to_dict("records")
    assert (row["holds"], row["datasets"], row["pairs"]) == (False, 4, 4)
    assert math.isclose(row["epsilon_upper"], math.log(3))
    stable = MAKERS["stability"]().to_frame("polars")
    assert stable["probability_lower"].to_list() == pytest.approx([0.5, 0.5])
    ledger = shown_things()["ledger"].to_frame()
    assert ledger["name"].tolist() == ["<mean> of all", "spent", "limit"]
    assert ledger["rho"].tolist()[0] == 0.02
    with pytest.raises(ValueError, match="backend must be one of pandas, polars, pyarrow"):
        MAKERS["audit"]().to_frame("excel")


@pytest.mark.parametrize("name", [*MAKERS, *OTHER_RESULTS, "ledger", "record", "plan"])
def test_notebooks_show_html(name: str) -> None:
    page = shown_things()[name]._repr_html_()
    assert page.startswith("<div")
    assert page.rstrip().endswith("</div>")
    assert not [text for text in ("<mean>", "<caveat>", "<script") if text in page]


def test_without_jinja_pages_name_the_extra_and_notebooks_show_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from userdp.display import pages

    pages._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    try:
        with pytest.raises(ImportError, match=r"pip install 'userdp\[report\]'"):
            MAKERS["audit"]().to_html()
        text = shown_things()["ledger"]._repr_html_()
        assert text.startswith("<pre>PrivacyLedger(")
        assert "&lt;mean&gt;" in text
    finally:
        pages._environment.cache_clear()


def test_without_data_frames_the_extra_is_named() -> None:
    program = """
import sys
for name in ("pandas", "polars", "pyarrow"):
    sys.modules[name] = None
from userdp.planning import user_complexity
user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01).to_frame()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: to_frame needs a library of data frames" in done.stderr
    assert "pip install 'userdp[frame]'" in done.stderr


@pytest.mark.parametrize("name", [*MAKERS, *OTHER_RESULTS])
def test_pages_have_their_own_date_and_reports_have_none(name: str) -> None:
    report = (MAKERS | OTHER_RESULTS)[name]()
    date = datetime.date(2031, 2, 3)
    page = report.to_html(date=date)
    assert "2031-02-03" in page
    assert page == report.to_html(date=date)
    assert "2031" not in report.to_json()
    assert np.char.count(page, "<section") == 1
