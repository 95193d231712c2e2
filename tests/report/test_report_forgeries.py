"""Reports that somebody made up: sampled ones above all, of which a reader sees a part only."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from userdp.algorithms import SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_dataset, audit_user_level
from userdp.checker import check as checker
from userdp.checker import spaces, values
from userdp.report import AuditReport

F = Fraction
Report = dict[str, Any]


@finite_algorithm(outputs=("no", "maybe", "yes"))
def honest(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Depends on every user and on the positions."""
    code = sum((place + 1) * user[0] for place, user in enumerate(dataset))
    return [F(10 + code, 90), F(30, 90), F(50 - code, 90)]


@finite_algorithm(outputs=("no", "yes"))
def deaf(dataset: tuple[Any, ...]) -> list[Fraction]:
    """Does not depend on anybody."""
    return [F(1, 3), F(2, 3)]


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of ordinary size are samples, of a few pairs."""
    monkeypatch.setattr(values, "COMPLETE_PAIRS", 20)
    monkeypatch.setattr(values, "SAMPLE_SIZE", 12)


def sampled(mechanism: Any = honest, delta: str = "1/5", universe: tuple[Any, ...] = (0, 1)) -> Report:
    report = audit_user_level(mechanism, universe=universe, n_users=5, n_examples=1, epsilon="1/10", delta=delta)
    assert report.verification == "sampled"
    return report.to_dict()


def sealed(report: Report) -> Report:
    content = {name: value for name, value in report.items() if name != "digest"}
    return content | {"digest": "sha256:" + values.canonical_digest(content)}


def drawn_again(report: Report, pmf_of: Callable[[int], int], pmfs: list[list[str]]) -> Report:
    """The sample that the digests draw, with the pmfs that the forger wants."""
    sample, witness = report["sample"], report["result"]["witness"]
    seed = "".join(sample[f"{name}_digest"] for name in ("pmfs", "pmf_of", "pmf_pairs"))
    first = None if witness is None else tuple(witness["ranks"])
    pairs = spaces.sample_pairs(spaces.space_of(report["question"]), seed, first)
    sample["pairs"] = [[a, b, pmf_of(a), pmf_of(b)] for a, b in pairs]
    named = sorted({index for pair in sample["pairs"] for index in pair[2:]})
    sample["pmfs"] = {str(index): pmfs[index] for index in named}
    return report


def a_pmf_of_no_dataset(report: Report) -> None:
    report["sample"]["pmfs"]["999"] = ["1/2", "1/2", "0"]


def a_pmf_that_is_none(report: Report) -> None:
    report["sample"]["pmfs"]["999"] = "anything"


def one_pmf_twice(report: Report) -> None:
    """The second dataset with some pmf gets a number of its own for it."""
    pairs, pmfs = report["sample"]["pairs"], report["sample"]["pmfs"]
    index = next(i for i in map(int, pmfs) if len({r for p in pairs for r, j in (p[::2], p[1::2]) if j == i}) > 1)
    rank = max(r for p in pairs for r, j in (p[::2], p[1::2]) if j == index)
    free = next(i for i in range(rank + 1) if str(i) not in pmfs)
    pmfs[str(free)] = pmfs[str(index)]
    for pair in pairs:
        pair[2:] = [free if r == rank else j for r, j in (pair[::2], pair[1::2])]


def a_number_beyond_its_dataset(report: Report) -> None:
    pairs, pmfs = report["sample"]["pairs"], report["sample"]["pmfs"]
    index = max(map(int, pmfs))
    pmfs["31"] = pmfs.pop(str(index))
    for pair in pairs:
        pair[2:] = [31 if j == index else j for j in pair[2:]]


def numbers_of_another_type(report: Report) -> None:
    for pair in report["sample"]["pairs"]:
        pair[2:] = map(str, pair[2:])


def another_spelling_of_a_mass(report: Report) -> None:
    pmf = next(iter(report["sample"]["pmfs"].values()))
    pmf[1] = "30/90"


def an_infinite_epsilon(report: Report) -> None:
    assert report["result"]["holds"] is True
    report["result"] |= {"exp_epsilon": None, "epsilon": ["inf", "inf"]}


def an_epsilon_beyond_the_claim(report: Report) -> None:
    assert report["result"]["holds"] is True
    report["result"] |= {"exp_epsilon": "9", "epsilon": ["0x1.193ea7aad030ap+1", "0x1.193ea7aad030bp+1"]}


def fewer_pairs(report: Report) -> None:
    report["sample"]["pairs"].pop()


def other_pairs(report: Report) -> None:
    report["sample"]["pairs"][-1] = report["sample"]["pairs"][-2]


def fewer_datasets(report: Report) -> None:
    report["datasets"] -= 1


def fewer_users(report: Report) -> None:
    report["question"]["structure"]["n_users"] -= 1


def strangers_as_witness(report: Report) -> None:
    report["result"]["witness"]["ranks"] = [0, 31]


def no_witness(report: Report) -> None:
    report["result"]["witness"] = None


def digests_of_nothing(report: Report) -> None:
    """Chosen until the drawn pairs please the forger; everything else is right."""
    numbers = {str(place): pmf for place, pmf in enumerate(all_pmfs())}
    for nonce in itertools.count():
        report["sample"]["pmf_pairs_digest"] = values.canonical_digest(nonce)
        report["sample"]["pmfs_digest"] = values.canonical_digest([nonce])
        drawn_again(report, ranks_to_pmfs().__getitem__, list(numbers.values()))
        if nonce >= 3:
            return


def a_narrower_universe(report: Report) -> None:
    report["question"]["structure"]["universe"] = [0, 2]


def no_assumptions(report: Report) -> None:
    report["assumptions"] = []


def all_pmfs() -> list[list[str]]:
    """The distinct pmfs in the order of their first appearance."""
    every = [honest.pmf(tuple((bit,) for bit in bits)) for bits in itertools.product((0, 1), repeat=5)]
    return list(map(list, dict.fromkeys(tuple(map(str, pmf)) for pmf in every)))  # type: ignore[arg-type]


def ranks_to_pmfs() -> list[int]:
    known = all_pmfs()
    every = itertools.product((0, 1), repeat=5)
    return [known.index(list(map(str, honest.pmf(tuple((bit,) for bit in bits))))) for bits in every]  # type: ignore[arg-type]


FORGERIES = [
    *(a_pmf_of_no_dataset, a_pmf_that_is_none, one_pmf_twice, a_number_beyond_its_dataset, numbers_of_another_type),
    *(another_spelling_of_a_mass, an_infinite_epsilon, an_epsilon_beyond_the_claim, fewer_pairs, other_pairs),
    *(fewer_datasets, fewer_users, strangers_as_witness, no_witness, digests_of_nothing, a_narrower_universe),
    no_assumptions,
]


def test_the_honest_one_is_spot_checked() -> None:
    report = AuditReport.from_json(json.dumps(sampled()))
    assert report.holds is True
    assert report.verify().finding == "consistent"
    found = report.verify(mechanism=honest)
    assert (found.finding, found.problems, found.refuted) == ("spot-checked", (), False)
    assert drawn_again(report.to_dict(), ranks_to_pmfs().__getitem__, all_pmfs()) == report.to_dict()


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_forged_samples_are_refused(forge: Callable[[Report], None]) -> None:
    report = sampled()
    forge(report)
    assert checker.check(sealed(report), honest.pmf).finding == "wrong"
    try:
        loaded = AuditReport.from_json(json.dumps(sealed(report)))
    except ValueError:
        return
    assert loaded.verify(mechanism=honest).finding == "wrong"


def test_values_that_are_one_value_are_no_universe() -> None:
    """Ten ways to write 1.0 are not ten values: the audit would be about nobody's change."""
    spellings = ["0x1p0", "0x1p+0", "0x1.0p+0", "0x1.0000000000000p+0", "0X1P0", "1.0", "1", "0x2p-1", "+1", " 1"]
    report = sampled(deaf, "0", universe=tuple(map(float, range(10))))
    report["question"]["structure"]["universe"] = [{"float": spelling} for spelling in spellings]
    forged = sealed(report)
    assert checker.check(forged, deaf.pmf).finding == "wrong"
    with pytest.raises(ValueError, match=r"not a float as float\.hex\(\) writes it"):
        AuditReport.from_json(json.dumps(forged))


OTHER_SPELLINGS = [
    *({"float": text} for text in ("0x1p0", "0x1.0p+0", "1.0", "inf ", "Infinity", "-nan", "+nan", "NaN", "0x0p0", 1)),
    *({"float": text} for text in ("0x1.00000000000001p+0", "-0x0p+0", "", None, ["0x0.0p+0"])),
    *({"fraction": text} for text in ("2/2", "1/1", "01", "1/02", "-0", "0/3", "2/4", "+1", "1.0", " 1", "1/-2", 1)),
    *({"fraction": text} for text in ("٣", "1/0", "", None)),
    *({"set": content} for content in (None, "ab", {"a": 1}, [2, 1], [1, 1], [1, True], [1, {"fraction": "1"}])),
    *({"decimal": text} for text in ("1", "1.0E0", "01E0", "1E+0", "1e0", "-NaN", "sNaN", "inf", "", 1, "1E٣")),
    *({"decimal": "1E999999999999999999999"}, {"bytes": "A1"}, {"bytes": "a"}, {"bytes": "a1 a2"}, {"bytes": [97]}),
    *({"text": "61"}, {"text": "eda080 "}, {"text": "ff"}, "\ud800", "a\udfff", {"list": [1]}),
    *({"date": text} for text in ("20260101", "2026-1-1", "2026-13-01", "2026-W01-1", "2026-01-01T00:00:00", 1)),
    *({"datetime": text} for text in ("2026-01-01", "2026-01-01 00:00:00", "2026-01-01T00", "2026-01-01T00:00:00Z")),
    *({"datetime": "2026-01-01T00:00:00.000000"}, {"datetime": "2026-01-01T00:00:00+00:00"}),
    *({"uuid": text} for text in ("0" * 31, "0" * 33, "A" * 32, "-" + "0" * 31, "{" + "0" * 32 + "}")),
    *({"float": "0x1.0000000000000p+0", "x": 1}, {}, {"tuple": []}, {"int": 1}, {"repr": 5}),
    1.0,
    -0.0,
    1e400,
]


@pytest.mark.parametrize("encoded", OTHER_SPELLINGS, ids=str)
def test_every_value_has_one_encoding(encoded: Any) -> None:
    """In a universe, inside a tuple, among the outputs, and of one dataset."""
    report = sampled()
    places: list[list[Any]] = [["question", "structure", "universe", 0], ["outputs", 0]]
    for path, wrapped in itertools.product(places, (encoded, [encoded], {"set": [encoded]})):
        forged = copy.deepcopy(report)
        *parents, last = path
        node: Any = forged
        for key in parents:
            node = node[key]
        node[last] = wrapped
        with pytest.raises(ValueError, match="not a userdp-audit/3 report"):
            AuditReport.from_json(json.dumps(forged))
        try:
            assert checker.check(sealed(forged)).finding == "wrong"
        except ValueError:  # an infinite number cannot even be sealed
            assert encoded == 1e400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"datasets": 32', '"datasets": 32, "datasets": 32'),
        ('"datasets": 32', '"datasets": 32.0'),
        ('"datasets": 32', '"datasets": 3.2e1'),
        ('"datasets": 32', '"datasets": -0'),
        ('"datasets": 32', '"datasets": NaN'),
        ('"datasets": 32', '"datasets": 32, "note": -Infinity'),
        ('"n_users": 5', '"n_users": 5, "n_users": 5'),
        ('"universe": [0,', '"universe": [-0,'),
    ],
)
def test_json_has_one_meaning(old: str, new: str) -> None:
    text = json.dumps(sampled())
    assert old in text
    with pytest.raises(ValueError, match="not a userdp-audit/3 report"):
        AuditReport.from_json(text.replace(old, new, 1))


@pytest.mark.parametrize("empty", ["dataset", "records"])
def test_a_claim_about_nothing_is_no_report(empty: str) -> None:
    """Without pairs every mechanism would be found private; audits refuse it."""
    report = audit_dataset(deaf, ((0,),), records=((1,),), epsilon=0, delta=0).to_dict()
    structure = report["question"]["structure"]
    structure |= {empty: [], "replaceable": [] if empty == "dataset" else [0]}
    report |= {"datasets": 1, "pairs": 0, "pmf_of": [0]}
    with pytest.raises(ValueError, match="dataset and records must not be empty"):
        AuditReport.from_json(json.dumps(sealed(report)))
    assert checker.check(sealed(report), honest.pmf).finding == "wrong"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("pmf_of",), {}),
        (("pmfs",), {}),
        (("pmf_pairs",), ""),
        (("result", "witness", "event"), {}),
        (("result", "witness", "event"), ""),
        (("result", "witness", "ranks"), {"a": 0, "b": 1}),
    ],
)
def test_lists_are_lists(path: tuple[str, ...], value: Any) -> None:
    """An empty object or text is not another way to write the empty event."""
    report = audit_user_level(honest, universe=(0, 1), n_users=2, n_examples=1, epsilon=9, delta=0).to_dict()
    assert checker.check(report, honest.pmf).finding == "established"
    part = report
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    with pytest.raises(ValueError, match="must be lists"):
        AuditReport.from_json(json.dumps(sealed(report)))


def test_reports_of_format_1_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="format 1, which does not say what it rests on; audit the mechanism again"):
        AuditReport.from_json('{"format": "userdp-audit/1"}')


def test_a_declared_symmetry_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of the symmetric engine, for a mechanism whose pmf in other orders is another one."""
    monkeypatch.setattr(values, "COMPLETE_PAIRS", 10**6)

    def pmf(dataset: tuple[Any, ...]) -> list[Fraction]:
        return [F(1, 3), F(2, 3)] if sorted(dataset) == list(dataset) else [F(1), F(0)]

    def even(dataset: tuple[Any, ...]) -> list[Fraction]:
        return [F(1, 3), F(2, 3)]

    claim: dict[str, Any] = {"universe": (0, 1, 2), "n_users": 4, "n_examples": 1, "epsilon": 0, "delta": 0}
    report = audit_user_level(SymmetricAlgorithm((0, 1), even), **claim)
    assert (report.holds, report.datasets) == (True, 15)
    assert report.verify(SymmetricAlgorithm((0, 1), even)).finding == "established"
    assert report.verify(SymmetricAlgorithm((0, 1), even)).datasets == 15 + 81
    (problem,) = report.verify(SymmetricAlgorithm((0, 1), pmf)).problems
    assert "changes with the order of users" in problem
    # With more orders than can be tried, drawn ones are, and nothing is established.
    monkeypatch.setattr(values, "ALL_ORDERS", 80)
    monkeypatch.setattr(values, "SAMPLE_SIZE", 60)
    found = report.verify(SymmetricAlgorithm((0, 1), even))
    assert (found.finding, found.datasets) == ("spot-checked", 15 + 60)
    assert report.verify(SymmetricAlgorithm((0, 1), pmf)).finding == "wrong"  # missed with probability below 1e-40


def test_a_rare_violation_is_never_called_established(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is of `honest`; the mechanism is another one on a dataset that no drawn pair has."""
    report = AuditReport.from_json(json.dumps(sampled()))
    space = spaces.space_of(report.question())
    seen = {rank for pair in report.to_dict()["sample"]["pairs"] for rank in pair[:2]}
    odd = space.dataset(min(set(range(32)) - seen), report.structure)
    rare = finite_algorithm(("no", "maybe", "yes"))(lambda x: [F(0), F(0), F(1)] if x == odd else honest.pmf(x))
    assert report.verify(rare).finding == "wrong"  # the digests are not the mechanism's
    monkeypatch.setattr(values, "ALL_DATASETS", 31)
    assert report.verify(rare).finding in ("spot-checked", "wrong")
    assert report.verify(honest).finding == "spot-checked"
