"""Audit reports: what they say, how they travel, and that nothing is lost or hidden on the way."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import html.parser
import itertools
import json
import math
import os
import pickle
import random
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.algorithms.finite import ASSUMPTIONS
from userdp.audit import audit_dataset, audit_item_level, audit_pair, audit_user_level
from userdp.checker import check as _checker
from userdp.checker import spaces as _spaces
from userdp.checker.check import EXPLANATIONS
from userdp.display.numbers import bounded, bounds_text, enclosed_text, level_text, number_text
from userdp.exact import Bounds, LogRatio, Pmf
from userdp.exact.encoding import Unreadable, decode, encode, fraction_text
from userdp.exact.numbers import PrivacyLevel
from userdp.report import AuditReport, Verification, Witness, render_html

F = Fraction
_oracle = runpy.run_path(str(Path(__file__).parents[1] / "oracle" / "audit.py"))
audit, seal, multiplier, hockey_stick = (_oracle[name] for name in ("audit", "seal", "multiplier", "hockey_stick"))


class Response:
    """Randomized response of the first user's first example, right with probability 3/4."""

    outputs = ("no", "yes")

    def pmf(self, dataset: tuple[Any, ...]) -> list[Fraction]:
        return [F(1, 4), F(3, 4)] if dataset[0][0] else [F(3, 4), F(1, 4)]


class Noisy:
    """A float pmf on three outputs that depends on every user."""

    outputs = ("low", None, (1, 2.5))

    def pmf(self, dataset: tuple[Any, ...]) -> Any:
        total = sum(sum(user) for user in dataset)
        return np.array([0.3 + 0.01 * total, 0.3, 0.4 - 0.01 * total])


def declared(mechanism: Any, report: AuditReport) -> Any:
    """The mechanism, declaring what the report's engine and pmf_error rest on."""
    error = report.pmf_error
    if report.engine == "additive":
        return AdditiveAlgorithm(
            mechanism.outputs, sum, lambda total, n: mechanism.pmf(((total,),)), statistic_range=(0, 1), pmf_error=error
        )
    return SymmetricAlgorithm(mechanism.outputs, mechanism.pmf, pmf_error=error)


def report_from(mechanism: Any, structure: dict[str, Any], **arguments: Any) -> AuditReport:
    """Build a report from objects with the numbers of the brute-force auditor."""
    stored = audit(mechanism.pmf, mechanism.outputs, structure=structure, mechanism="m<1> & co", **arguments)
    question, result = stored["question"], stored["result"]
    witness = result["witness"] and Witness.from_ranks(
        question, structure, mechanism.outputs, tuple(result["witness"]["ranks"]), result["witness"]["event"]
    )
    return AuditReport(
        mechanism=stored["mechanism"],
        kind=question["kind"],
        neighbors=question["neighbors"],
        engine=question["engine"],
        epsilon_level=PrivacyLevel(arguments.get("ratio", F(1)), arguments.get("exponent", F(0))),
        delta=arguments.get("delta", F(0)),
        pmf_error=arguments.get("pmf_error", F(0)),
        structure=structure,
        outputs=mechanism.outputs,
        pmfs=tuple(tuple(F(mass) for mass in pmf) for pmf in stored["pmfs"]),
        pmf_of=tuple(stored["pmf_of"]),
        datasets=stored["datasets"],
        pairs=stored["pairs"],
        pmf_pairs=tuple((i, j) for i, j in stored["pmf_pairs"]),
        holds=result["holds"],
        worst_delta=Bounds(*map(float.fromhex, result["worst_delta"])),
        epsilon=Bounds(*map(float.fromhex, result["epsilon"])),
        exp_epsilon=None if result["exp_epsilon"] is None else F(result["exp_epsilon"]),
        witness=witness,
    )


def users(n: int, m: int = 1) -> dict[str, Any]:
    return {"universe": (0, 1), "n_users": n, "n_examples": m}


PANEL = {
    "dataset": tuple((i % 3, i % 2) for i in range(9)),
    "records": ((0, 0), (5, 5)),
    "replaceable": tuple(range(9)),
}


def response(**arguments: Any) -> AuditReport:
    return report_from(Response(), users(2), **({"kind": "user-level", "ratio": F(2), "delta": F(1, 10)} | arguments))


def panel(**arguments: Any) -> AuditReport:
    return report_from(Noisy(), PANEL, **({"kind": "dataset", "exponent": F(0.1), "delta": F(1e-6)} | arguments))


REPORTS: dict[str, Callable[[], AuditReport]] = {
    "response": response,
    "response, exact": lambda: response(ratio=F(3), delta=F(0)),
    "panel": panel,
    "pair": lambda: report_from(Response(), {"x": ((0,),), "x2": ((1,),)}, kind="pair"),
    "symmetric": lambda: report_from(Noisy(), users(3, 2), kind="item-level", engine="symmetric", delta=F(1, 9)),
    "add-remove": lambda: report_from(Noisy(), users(2), kind="user-level", neighbors="add-remove"),
    "additive": lambda: report_from(
        Noisy(), users(3) | {"statistics": (0, 1)}, kind="user-level", engine="additive", exponent=F(1, 50)
    ),
    "open": lambda: panel(delta=F(1, 10), exponent=F(0.1), pmf_error=F(1, 10)),
}


@pytest.mark.parametrize("name", REPORTS)
def test_round_trip(name: str) -> None:
    report = REPORTS[name]()
    loaded = AuditReport.from_json(report.to_json())
    assert loaded == report
    assert loaded.to_dict() == report.to_dict()
    assert loaded.to_json(indent=2) == report.to_json(indent=2)
    assert loaded.verify() == Verification("consistent", pairs=report.pairs)
    mechanism = declared(Noisy() if "low" in report.outputs else Response(), report)
    outcome = loaded.verify(mechanism)
    assert (outcome.finding, outcome.problems, outcome.pairs) == ("established", (), report.pairs)
    assert outcome.refuted is (report.holds is False)
    assert outcome.datasets >= report.datasets
    assert report.verify(mechanism if report.engine != "labeled" else mechanism.pmf).finding == "established"
    assert loaded.summary() == report.summary() == str(report)
    assert loaded.to_html() == report.to_html()


def test_certificate_is_the_documented_object() -> None:
    arguments: dict[str, Any] = {"kind": "user-level", "ratio": F(2), "delta": F(1, 10)}
    report = report_from(Response(), users(2), **arguments)
    stored = audit(Response().pmf, Response.outputs, structure=users(2), mechanism="m<1> & co", **arguments)
    written = report.to_dict()
    assert seal(written | {"userdp_version": "oracle"}) == stored
    assert seal(written)["digest"] == written["digest"]


def test_attributes() -> None:
    report = response()
    assert (report.lower, report.upper) == (0.25, 0.25)
    assert report.holds is False
    assert not report
    assert report.exp_epsilon == F(13, 5)  # (3/4 - 1/10) / (1/4)
    assert report.epsilon.lower <= math.log(2.6) <= report.epsilon.upper
    assert report.verification == "complete"
    assert report.witness is not None
    x, x2, event = report.witness
    assert hockey_stick(Response().pmf(x), Response().pmf(x2), F(2)) == F(1, 4)
    assert event == {Response.outputs[Response().pmf(x).index(F(3, 4))]}
    assert report.witness.changed_user == 0
    assert x[1] == x2[1]
    assert repr(report) == "<AuditReport 'm<1> & co': holds=False, worst_delta=[0.25, 0.25], pairs=4>"
    assert bool(response(ratio=F(3))) is True
    with pytest.raises(AttributeError):
        report.holds = True  # type: ignore[misc]


def test_undetermined_has_no_truth_value() -> None:
    report = REPORTS["open"]()
    assert report.holds is None
    with pytest.raises(ValueError, match=r"undetermined within pmf_error=1/10.*a smaller pmf_error"):
        bool(report)
    assert "UNDETERMINED" in report.summary()
    assert "UNDETERMINED" in report.to_html()


def test_no_witness_when_all_pmfs_agree() -> None:
    class Constant:
        outputs = ("only",)

        def pmf(self, dataset: tuple[Any, ...]) -> list[Fraction]:
            return [F(1)]

    report = report_from(Constant(), users(3), kind="user-level")
    assert report.witness is None
    assert report.holds is True
    assert AuditReport.from_json(report.to_json()).verify(Constant()).finding == "established"
    assert report.profile([0.0, 1.0]).tolist() == [0.0, 0.0]
    assert "no" in report.summary()
    assert "The divergence is 0 at every epsilon" in report.to_html()


def test_verify_notices_another_mechanism() -> None:
    class Sharper(Response):
        def pmf(self, dataset: tuple[Any, ...]) -> list[Fraction]:
            return [F(1, 5), F(4, 5)] if dataset == ((1,), (1,)) else super().pmf(dataset)

    class Renamed(Response):
        outputs = ("yes", "no")

    outcome = response().verify(Sharper())
    assert outcome.finding == "wrong"
    assert outcome.problems == ("the mechanism gives dataset 3 another pmf than the report states",)
    assert str(outcome).startswith(
        "wrong: the report contradicts itself, the mechanism or the file for Coq\n  - the mechanism"
    )
    assert response().verify(Renamed()).problems == ("the mechanism has other outputs than the report states",)
    assert str(response().verify()).startswith("consistent: the numbers of the report agree with each other.")


def test_pmf_objects_with_fractions_are_read_exactly() -> None:
    class Exact:
        def __init__(self, masses: Sequence[Fraction]) -> None:
            self.masses = masses

        def fractions(self) -> list[Fraction]:
            return list(self.masses)

    assert response().verify(lambda dataset: Exact(Response().pmf(dataset))).finding == "established"


@pytest.mark.parametrize(
    "returned",
    [{0: F(1, 2), 1: F(1, 2)}, {0, 1}, "01", b"\x00\x01", [False, True]],
    ids=["dict", "set", "text", "bytes", "bools"],
)
def test_verify_reads_no_pmf_where_audits_read_none(returned: Any) -> None:
    """What yields 0 and 1 when it is iterated over is not the pmf of a constant answer."""

    @finite_algorithm(outputs=(0, 1))
    def constant(dataset: tuple[Any, ...]) -> list[int]:
        return [0, 1]

    report = audit_user_level(constant, universe=(0, 1), n_users=1, n_examples=1, epsilon=0, delta=0)
    assert report.verify(constant).finding == "established"
    outcome = report.verify(lambda dataset: returned)
    assert outcome.finding == "wrong"
    assert outcome.problems[0].startswith("the mechanism fails on dataset 0: ")


class Silent:
    @property
    def outputs(self) -> tuple[Any, ...]:
        raise RuntimeError("no outputs today")

    def pmf(self, dataset: tuple[Any, ...]) -> list[int]:
        return [0, 1]


class Unlistable:
    outputs = 5

    def pmf(self, dataset: tuple[Any, ...]) -> list[int]:
        return [0, 1]


@pytest.mark.parametrize("mechanism", ["respond", 5, [0.5, 0.5], Response, Silent(), Unlistable()])
def test_verify_says_what_is_no_mechanism(mechanism: Any) -> None:
    """It is no defect of the report."""
    with pytest.raises(TypeError, match="mechanism"):
        response().verify(mechanism)


def test_verify_checks_the_text_that_was_loaded() -> None:
    """Loading keeps what it read: an unknown field, or one changed byte, does not disappear on the way."""
    text = response().to_json()
    for old, new in (
        ('"holds": false', '"holds": true'),
        ('"3/4"', '"4/5"'),
        ("m<1>", "m<2>"),
        ('"datasets": 4', '"datasets": 5'),
    ):
        assert old in text
        assert AuditReport.from_json(text.replace(old, new, 1)).verify().finding == "wrong"
    # Cosmetic differences of the JSON are none.
    assert AuditReport.from_json(json.dumps(json.loads(text), indent=3)).verify().finding == "consistent"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", "null", "{}", '{"format": "userdp-audit/4"}', '{"format": "userdp-audit/3"}', "[" * 10**5],
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a userdp-audit/3 report"):
        AuditReport.from_json(text)


def test_every_damaged_leaf_is_refused_or_found() -> None:
    stored = panel().to_dict()

    def damage(node: Any) -> Iterator[None]:
        junk: Any
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            kept = node[key]
            for junk in (None, "x", -7, [], {}):
                if junk != kept:
                    node[key] = junk
                    yield
            node[key] = kept
            yield from damage(kept)

    found = 0
    for _ in damage(stored):
        try:
            report = AuditReport.from_json(json.dumps(stored))
        except ValueError:
            continue
        assert report.verify().finding == "wrong"
        found += 1
    assert found > 50


def test_profile_bounds_the_maximum_over_all_pairs() -> None:
    report = REPORTS["symmetric"]()
    epsilons: list[Any] = [0, 1e-9, F(1, 50), "0.05", LogRatio(11, 10), np.float64(0.5), 1e300]
    levels = [
        F(1),
        *(multiplier(F(1), F(e)) for e in (1e-9, F(1, 50), "0.05")),
        F(11, 10),
        multiplier(F(1), F(0.5)),
        F(10**99),
    ]
    curve = report.profile(epsilons)
    assert curve.dtype == np.float64
    for bound, level in zip(curve, levels, strict=True):
        exact = max(
            hockey_stick(report.pmfs[i], report.pmfs[j], level)
            for a, b in report.pmf_pairs
            for i, j in ((a, b), (b, a))
        )
        assert exact <= F(float(bound)) <= exact + F(1, 10**14)
    with pytest.raises(ValueError, match="epsilons must be >= 0"):
        report.profile([-1])


def test_profile_without_the_core_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.linspace(0, 0.3, 7)
    for name in ("response", "panel", "open"):
        report = REPORTS[name]()
        with_core = report.profile(grid)
        monkeypatch.setitem(sys.modules, "userdp._core", None)
        without = report.profile(grid)
        monkeypatch.undo()
        np.testing.assert_allclose(with_core, without, rtol=0, atol=1e-14)


def test_profile_covers_the_declared_error() -> None:
    report, plain = REPORTS["open"](), panel()
    assert report.upper <= report.profile([F(0.1)])[0] <= report.upper * (1 + 1e-12)
    assert (report.profile([0.0, 0.1]) > plain.profile([0.0, 0.1])).all()


def test_core_is_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(panel().to_json())
    program = f"""
import sys
sys.modules["userdp._core"] = None
from pathlib import Path
from userdp.report import AuditReport
report = AuditReport.from_json(Path({str(path)!r}).read_text())
outcome = report.verify()
assert outcome.finding == "consistent", outcome
assert "VIOLATED" in report.to_html()
print(report.summary())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    assert done.stdout == panel().summary() + "\n"


def test_sampled_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit lowered, the same audit is written as a sample, checked as one, and guarded as one."""
    monkeypatch.setattr("userdp.checker.values.COMPLETE_PAIRS", 20)
    monkeypatch.setattr("userdp.checker.values.SAMPLE_SIZE", 30)
    report = report_from(Noisy(), users(5), kind="user-level", exponent=F(1, 90), delta=F(1, 1000))
    assert report.pairs == 80
    assert report.verification == "sampled"
    assert report.witness is not None
    stored = report.to_dict()
    assert (stored["pmfs"], stored["pmf_of"], stored["pmf_pairs"]) == ([], [], [])
    assert len(stored["sample"]["pairs"]) == 30
    assert tuple(stored["sample"]["pairs"][0][:2]) == report.witness.ranks
    assert report.verify(Noisy()).finding == "spot-checked"
    loaded = AuditReport.from_json(report.to_json())
    assert loaded.verify() == Verification("consistent", pairs=30)
    outcome = loaded.verify(Noisy())
    assert (outcome.finding, outcome.pairs, outcome.refuted) == ("spot-checked", 30, True)
    assert "establishes no claim" in str(outcome)
    assert loaded.to_dict() == stored
    assert loaded.witness == report.witness
    assert "only a sample" in loaded.to_html()
    assert "cannot establish" in loaded.to_html()
    with pytest.raises(ValueError, match="only a sample"):
        loaded.profile([1.0])

    def forged(change: Any) -> tuple[str, ...]:
        changed = json.loads(json.dumps(stored))
        change(changed)
        return AuditReport.from_json(json.dumps(seal(changed))).verify().problems

    with pytest.raises(ValueError, match="pmfs_digest is not a SHA-256 digest in lower-case hex"):
        forged(lambda r: r["sample"].update(pmfs_digest="ground"))
    assert forged(lambda r: r["sample"]["pairs"].pop()) == ("the sampled pairs are not the ones that the digests draw",)
    assert forged(lambda r: r["sample"].update(pmfs_digest="0" * 64)) != ()
    assert "holds is not what the pmfs decide" in forged(lambda r: r["result"].update(holds=not report.holds))
    assert "the divergence exceeds delta at exp_epsilon" in forged(
        lambda r: r["result"].update(exp_epsilon="1", epsilon=[(0.0).hex()] * 2)
    )
    assert forged(lambda r: r["sample"]["pairs"][3].__setitem__(2, 0)) != ()
    assert forged(lambda r: r.update(pairs=79)) != ()
    with pytest.raises(ValueError, match="more datasets than the report holds"):
        forged(lambda r: (r.update(verification="complete"), r.pop("sample")))
    # A draw that was sought until it missed the bad pairs: the verifier's own draw finds them.
    ground = report_from(Response(), users(5), kind="user-level", ratio=F(3))
    assert ground.verify(Response()).finding == "spot-checked"

    class Worse(Response):
        def pmf(self, dataset: tuple[Any, ...]) -> list[Fraction]:
            return [F(0), F(1)] if stated_otherwise(dataset) else super().pmf(dataset)

    written = ground.to_dict()["sample"]["pairs"]
    space = _spaces.space_of(ground.question())
    seen = {space.dataset(rank, ground.structure) for pair in written for rank in pair[:2]}
    assert len(seen) < space.datasets

    def stated_otherwise(dataset: tuple[Any, ...]) -> bool:
        return dataset not in seen

    monkeypatch.setattr("random.SystemRandom", lambda: random.Random(1))  # of few pairs, a draw may miss them
    drawn, digest = ground.verify(Worse()).problems
    assert drawn.startswith("a pair drawn by this check exceeds what the report claims")
    assert digest == "pmfs_digest is not that of the mechanism's pmfs"


def test_encoding() -> None:
    thing = object()
    values: list[Any] = [None, True, 3, "é", -0.0, 5e-324, math.inf, F(-1, 3), (1, (2.5, "x")), (1, (F(1, 7),)), ()]
    for value in values:
        encoded = json.loads(json.dumps(encode(value)))
        assert decode(encoded) == value
        assert repr(decode(encoded)) == repr(value)
    assert encode(np.int64(3)) == 3
    assert encode(np.float32(0.5)) == {"float": (0.5).hex()}
    assert encode(np.bool_(True)) is True
    assert encode(thing) == {"repr": repr(thing)}
    stand_in = decode(encode(thing))
    assert isinstance(stand_in, Unreadable)
    assert repr(stand_in) == repr(thing)
    assert encode((stand_in,)) == [{"repr": repr(thing)}]
    with pytest.raises(ValueError, match="unknown tag"):
        decode({"list": []})


def test_people_have_plain_values() -> None:
    """A report is about what codes decode to, so one on other objects cannot be written or verified."""

    class Animal(str):
        secret = "purr"

    report = report_from(Response(), users(2) | {"universe": (Animal("cat"), "dog")}, kind="user-level", ratio=F(2))
    for use in (report.to_json, report.verify, lambda: report.verify(Response())):
        with pytest.raises(TypeError, match="Animal"):
            use()


def test_masses_longer_than_pythons_limit() -> None:
    denominator = 7**6000  # more than 4300 digits

    class Long:
        outputs = (0, 1)

        def pmf(self, dataset: tuple[Any, ...]) -> list[Fraction]:
            return [F(1, denominator), F(denominator - 1, denominator)] if dataset[0][0] else [F(1, 2), F(1, 2)]

    distributions = tuple(tuple(Long().pmf(((bit,),))) for bit in (0, 1))
    exact = F(1, 2) - F(1, denominator)
    upper = 0.5
    report = AuditReport(
        mechanism="long", kind="pair", neighbors="replace", engine="labeled",
        epsilon_level=PrivacyLevel(F(1), F(0)), delta=F(1, 2), pmf_error=F(0),
        structure={"x": ((0,),), "x2": ((1,),)}, outputs=(0, 1), pmfs=distributions, pmf_of=(0, 1), datasets=2, pairs=1,
        pmf_pairs=((0, 1),), holds=True, worst_delta=Bounds(math.nextafter(upper, 0), upper),
        epsilon=Bounds(0.0, 0.0), exp_epsilon=F(1),
        witness=Witness(((0,),), ((1,),), frozenset([0]), (0, 1), (0,), None),
    )  # fmt: skip
    assert exact < F(upper)
    assert len(fraction_text(distributions[1][0])) > 4300
    loaded = AuditReport.from_json(report.to_json())
    assert loaded.pmfs == distributions
    assert loaded.verify(Long()).problems == ()


def test_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    ax: Any
    curve: Any
    claim: Any
    for name, scale in (("response", "log"), ("response, exact", "symlog")):
        report = REPORTS[name]()
        ax = report.plot(color="black")
        curve, claim = ax.get_lines()
        assert curve.get_color() == "black"
        assert ax.get_yscale() == scale
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("epsilon", "worst delta over all audited pairs")
        level = math.log(report.epsilon_level.ratio)
        assert claim.get_xydata().tolist() == [[pytest.approx(level, rel=1e-15), float(report.delta)]]
        assert curve.get_xdata()[-1] > level
        plt.close(ax.figure)
    figure = plt.figure()
    own = figure.add_subplot()
    assert response().plot(ax=own, epsilons=[0.0, 0.5]) is own
    drawn = np.asarray(own.get_lines()[0].get_xydata())
    np.testing.assert_array_equal(drawn, np.column_stack([[0.0, 0.5], response().profile([0.0, 0.5])]))
    plt.close(figure)


def test_plot_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'userdp\[plot\]'"):
        response().plot()


class _Page(html.parser.HTMLParser):
    """Records tags and text, and insists that tags nest."""

    VOID = frozenset({"meta", "br", "line", "circle", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> _Page:
    parser = _Page()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("name", REPORTS)
def test_html_is_whole_and_self_contained(name: str) -> None:
    page = parsed(REPORTS[name]().to_html())
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href"} & {attribute for attribute, _ in page.attributes}
    assert page.tags.count("svg") == 1
    text = " ".join(page.text)
    assert "m<1> & co" in text
    assert "prefers-color-scheme: dark" in text
    assert "url(" not in text
    assert "@import" not in text


def test_html_shows_only_the_changed_user() -> None:
    report = panel()
    assert report.witness is not None
    position = report.witness.changed_user
    assert position is not None
    text = " ".join(parsed(report.to_html()).text)
    assert f"position {position} of 9" in text
    assert repr(report.witness.x[position]) in text
    assert repr(report.witness.x2[position]) in text
    assert repr(report.witness.x) not in text


def test_html_escapes_everything() -> None:
    evil = "</td><script>alert(1)</script>"

    class Evil(Response):
        outputs = (evil, "yes")

    structure = {"universe": (0, evil), "n_users": 1, "n_examples": 1}
    report = report_from(Evil(), structure, kind="user-level")
    page = render_html([report, response()], title=evil, introduction=evil)
    assert "<script" not in page
    assert parsed(page).tags.count("section") == 2
    assert evil in parsed(page).text


def test_html_of_extreme_claims() -> None:
    for exponent, delta in itertools.product((F(0), F(5e-324), F(1e300), F(10) ** 400), (F(0), F(1, 10**320), F(1))):
        report = response(ratio=F(1), exponent=exponent, delta=delta)
        parsed(report.to_html())
        assert "epsilon" in report.summary()


def test_numbers_in_words() -> None:
    texts = {
        F(3): ("3", ""),
        F(1, 10): ("0.1", ""),
        F(0.1): ("0.1", "0.1 (a float)"),
        F(1, 3): ("0.3334", "1/3"),
        F(0): ("0 exactly", ""),
    }
    assert {value: number_text(value) for value in texts} == texts
    assert number_text(F(10) ** 400) == ("more than any float", "1" + "0" * 400)
    assert number_text(F(1, 3**60))[0] == "2.359e-29"
    assert level_text(PrivacyLevel(F(3), F(0))) == ("1.099", "ln(3)")
    assert level_text(PrivacyLevel(F(1), F(1, 2))) == ("0.5", "")
    assert level_text(PrivacyLevel(F(3), F(1))) == ("2.099", "ln(3) + 1")
    assert level_text(PrivacyLevel(F(1), F(0))) == ("0", "")
    assert bounds_text(Bounds(0.0, 0.0)) == ("0 exactly", "")
    assert bounds_text(Bounds(0.25, 0.25)) == ("0.25", "")
    assert bounds_text(Bounds(3.7551, 3.7552)) == ("3.756", "between 3.7551 and 3.7552")
    assert bounds_text(Bounds(0.0, 0.1)) == ("between 0 and 0.1", "between 0.0 and 0.1")


@pytest.mark.parametrize("seed", range(20))
def test_few_digits_are_on_the_safe_side(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(50):
        value = F(source.getrandbits(200) + 1, source.getrandbits(200) + 1) * F(10) ** source.randrange(-400, 300)
        up, down = (F(bounded(value, toward)) for toward in ("up", "down"))
        assert down <= value <= up
        assert 0 < down <= up <= down * F(1002, 1000)
        if math.isfinite(float(value)) and float(value) > 1e-300:
            low = float(value) * 0.9999
            high = math.nextafter(low, math.inf)
            shown = bounds_text(Bounds(low, high))[0].removeprefix("between ").split(" and ")[-1]
            assert F(high) <= F(shown) <= F(high) * F(1002, 1000)
        level = PrivacyLevel(1 + abs(value) % 5, F(0))
        assert float(level) <= float(level_text(level)[0])
        assert float(level_text(level, "down")[0]) <= float(level)


def test_zero_is_zero_alone() -> None:
    assert number_text(F(1, 10**400)) == ("1e-400", f"1/1{'0' * 400}")
    assert bounded(F(1, 3 * 10**400)) == "3.334e-401"
    assert bounded(5e-324) == "4.941e-324"
    assert bounded(0.0) == bounded(F(0)) == "0"
    assert number_text(F(0.1)) == ("0.1", "0.1 (a float)")
    assert bounded(math.inf) == "inf"
    assert enclosed_text(F(1, 3), F(1, 3) + F(1, 10**9), "down") == "0.3333"
    assert enclosed_text(0.12346, 0.2) == "between 0.1234 and 0.2"


def test_a_refuted_claim_is_not_shown_stronger_than_it_is() -> None:
    told = audit_user_level(
        finite_algorithm(outputs=(0, 1))(lambda data: [1, 0] if data[0][0] else [0, 1]),
        universe=(0, 1),
        n_users=1,
        n_examples=1,
        epsilon=F(1, 3),
        delta=F(2, 7),
    )
    assert "epsilon = 0.3333, delta = 0.2857." in told.summary()


def test_a_verification_is_no_yes_or_no() -> None:
    assert Verification("consistent", pairs=3) == Verification("consistent", pairs=3)
    for finding in EXPLANATIONS:
        with pytest.raises(TypeError, match=r"\.finding"):
            bool(Verification(finding))


def additive_count(**arguments: Any) -> AdditiveAlgorithm:
    """The number of ones, with a little noise: worst delta 1/2 at epsilon 0."""

    def distribution(total: int, n_users: int) -> list[Fraction]:
        return [F(n_users - total, n_users), F(total, n_users)]

    return AdditiveAlgorithm(("no", "yes"), sum, distribution, statistic_range=(0, 1), **arguments)


def test_an_additive_report_needs_the_mechanisms_statistics() -> None:
    """Forgeries that hide every neighbor by claiming that all statistics are equal."""
    everyone = {"universe": (0, 1), "n_users": 2, "n_examples": 1, "statistics": (0, 0)}
    one = {"dataset": ((0,), (1,), (1,)), "records": ((0,),), "statistics": (1, 1, 1), "replaceable": (0,)}
    mechanism = additive_count()
    for kind, structure in (("user-level", everyone), ("dataset", one)):
        forged = report_from(mechanism, structure, kind=kind, engine="additive")
        assert forged.holds
        assert forged.witness is None
        assert forged.verify().finding == "consistent"  # of another mechanism
        loaded = AuditReport.from_json(forged.to_json())
        for report in (forged, loaded):
            (problem,) = report.verify(mechanism).problems
            assert "another statistic than the report states" in problem
            assert "cannot confirm the statistics" in report.verify(mechanism.pmf).problems[0]


def test_a_symmetric_report_needs_a_symmetric_mechanism() -> None:
    report = REPORTS["symmetric"]()
    assert report.verify(declared(Noisy(), report)).finding == "established"
    assert "the order of users" in report.verify(Noisy()).problems[0]


def test_the_mechanisms_error_must_not_exceed_the_reports() -> None:
    problem = "the mechanism declares a larger pmf_error than the report states"
    assert response().verify(SymmetricAlgorithm(Response.outputs, Response().pmf, pmf_error="1e-9")).problems == (
        problem,
    )
    report = REPORTS["open"]()
    assert report.verify(SymmetricAlgorithm(Noisy.outputs, Noisy().pmf, pmf_error="0.1")).finding == "established"
    assert report.verify(SymmetricAlgorithm(Noisy.outputs, Noisy().pmf, pmf_error=0.1)).problems == (problem,)


def test_pmf_objects_are_aligned_by_output() -> None:
    def swapped(dataset: tuple[Any, ...]) -> Pmf:
        no, yes = Response().pmf(dataset)
        return Pmf.from_weights([yes, no], ("yes", "no"))

    assert response().verify(SymmetricAlgorithm(Response.outputs, swapped)).finding == "established"
    assert response().verify(swapped).finding == "established"
    assert response().verify(lambda dataset: Pmf(("x", "y"), (1, 3))).finding == "wrong"


def test_a_loaded_report_cannot_be_changed_unnoticed() -> None:
    report = response()
    loaded = AuditReport.from_json(report.to_json())
    changes: list[dict[str, Any]] = [
        {"holds": True},
        {"mechanism": "better"},
        {"structure": dict(loaded.structure) | {"n_users": 99}},
        {"outputs": ("yes", "no")},
        {"witness": None},
        {"delta": F(1)},
        {"structure": {}},
    ]
    for change in changes:
        outcome = dataclasses.replace(loaded, **change).verify()
        assert outcome.problems == ("the report was changed after it was loaded",)
    for each in (report, loaded):
        with pytest.raises(TypeError):
            each.structure["n_users"] = 99  # type: ignore[index]
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == each


@pytest.mark.parametrize("junk", [5, {}, {"pairs": 5}, None])
def test_a_stray_sample_is_a_problem(junk: Any) -> None:
    stored = seal(response().to_dict() | {"sample": junk})
    assert "fields missing or unknown" in _checker.check(stored).problems[0]
    with pytest.raises(ValueError, match="fields missing or unknown"):
        AuditReport.from_json(json.dumps(stored))


def test_terminal_escapes_are_shown_and_not_obeyed() -> None:
    stored = response().to_dict()
    stored["mechanism"] = "name\x1b[2K\nHOLDS"
    stored["outputs"][0] = {"repr": "\x1b]0;title\x07"}
    stored["question"]["structure"]["universe"] = ["\u202e", "\r\n"]
    report = AuditReport.from_json(json.dumps(seal(stored)))
    assert report.verify().finding == "consistent"
    assert all(line.isprintable() for line in report.summary().split("\n"))
    assert not any(character in report.to_html() for character in "\x1b\x07\r\u202e")
    assert "name\\x1b[2K\\nHOLDS: " in report.summary()
    assert str(Verification("wrong", ("\x1b",))).endswith("\n  - \\x1b")


def test_ambiguous_json_is_refused() -> None:
    text = response().to_json()
    for damaged in (
        text.replace('"datasets": 4', '"datasets": 4, "datasets": 4'),
        text.replace('"datasets": 4', '"datasets": NaN'),
        text.replace('"datasets": 4', '"datasets": 4, "x": Infinity'),
    ):
        assert damaged != text
        with pytest.raises(ValueError, match="not a userdp-audit/3 report"):
            AuditReport.from_json(damaged)


@pytest.mark.parametrize("engine", ["labeled", "symmetric", "additive"])
def test_a_loaded_witness_is_the_audits(engine: Any) -> None:
    def distribution(total: int, n_users: int) -> list[Fraction]:
        return [F(99 - total - n_users, 99), F(total + n_users, 99)]

    values: dict[str, Any] = {"epsilon": 0, "delta": 0, "engine": engine}
    for step in (1, 3):
        mechanism = AdditiveAlgorithm(
            ("no", "yes"), lambda user, s=step: s * sum(user), distribution, statistic_range=(0, 9)
        )
        reports = [
            audit_user_level(mechanism, universe=(0, 1, 3), n_users=n, n_examples=m, neighbors=neighbors, **values)
            for (n, m), neighbors in itertools.product(((1, 1), (3, 1), (2, 2)), ("replace", "add-remove"))
        ]
        reports += [audit_item_level(mechanism, universe=(3, 1), n_users=2, n_examples=2, **values)]
        reports += [audit_dataset(mechanism, [(1,), (0,), (1,), (2,)], records=[(3,), (0,)], **values)]
        for report in reports:
            loaded = AuditReport.from_json(report.to_json())
            assert loaded.witness == report.witness
            assert loaded.verify(mechanism).problems == ()
            assert report.verify(mechanism).problems == ()
    pair = audit_pair(Response(), [(0,), (1,)], [(1,), (0,)], epsilon=0, delta=0)
    assert AuditReport.from_json(pair.to_json()).witness == pair.witness


@pytest.mark.parametrize(
    ("name", "structure", "universe"),
    [
        ("response", {"n_examples": 10**9}, [0]),
        ("response", {"n_users": 5 * 10**6}, [0, 1]),
        ("response", {"n_users": 10**9}, [0]),
        ("response", {"n_users": 3}, [{"fraction": "1e1000000000"}, 1]),
        ("symmetric", {"n_users": 10**5, "n_examples": 5}, [0, 1]),
        ("additive", {"n_users": 10**6}, [0, 1]),
        ("additive", {"n_users": 10**6, "statistics": [0, 10**9]}, [0, 1]),
        ("additive", {"n_users": 10**5, "statistics": [0, 1, 10**9]}, [0, 1, 2]),
    ],
)
@pytest.mark.timeout(20)
def test_small_text_does_not_make_long_work(name: str, structure: dict[str, Any], universe: list[Any]) -> None:
    stored = REPORTS[name]().to_dict()
    stored["question"]["structure"] |= structure | {"universe": universe}
    for witness in (stored["result"]["witness"], None):
        stored["result"]["witness"] = witness
        assert _checker.check(seal(stored)).finding in ("wrong", "refused")
        with contextlib.suppress(ValueError):
            assert AuditReport.from_json(json.dumps(seal(stored))).verify().finding in ("wrong", "refused")


@pytest.mark.parametrize("name", REPORTS)
def test_assumptions_are_in_every_form_of_a_report(name: str) -> None:
    report = REPORTS[name]()
    stated = {"symmetric": ["symmetry"], "additive": ["additivity"]}.get(report.engine, [])
    assert report.to_dict()["assumptions"] == ["pmf-as-stated", "canonical-users", *stated]
    assert list(AuditReport.from_json(report.to_json()).assumptions) == report.to_dict()["assumptions"]
    page = " ".join(parsed(report.to_html()).text)
    for assumption, sentence in ASSUMPTIONS.items():
        assert (sentence in report.summary()) is (sentence in page) is (assumption in report.assumptions)
    hidden = seal(report.to_dict() | {"assumptions": ["pmf-as-stated"]})
    with pytest.raises(ValueError, match="the assumptions must be"):
        AuditReport.from_json(json.dumps(hidden))
