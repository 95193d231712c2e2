"""Everything that reads JSON, on texts that nobody wrote: a ValueError or TypeError with a message, or an object."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import pkgutil
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("highspy")
pytest.importorskip("sklearn")

import userdp
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution
from userdp.algorithms import AdditiveAlgorithm, finite_algorithm
from userdp.audit import audit_dataset, audit_one_run, audit_sensitivity, audit_user_level
from userdp.concepts import Thresholds
from userdp.exact import LogRatio
from userdp.item_to_user import audit_perfect_generalization
from userdp.lddp import check_lddp
from userdp.learners import CorrelatedSamplingClassifier, RealizablePACClassifier, ThresholdClassifier
from userdp.means import WinsorizedMean
from userdp.mechanisms import ExponentialMechanism
from userdp.optimal import optimal_mechanism
from userdp.protocols import local, shuffle
from userdp.public_randomness import PublicSeed
from userdp.report import AuditReport, Certificate, Report
from userdp.stability import audit_stability

X, Y, GROUPS = np.array([[1], [2], [3], [0]] * 3), [0, 1, 1, 0] * 3, list(range(12))


@finite_algorithm(outputs=("no", (1, 0.5)))
def answer(dataset: tuple[Any, ...]) -> list[Fraction]:
    return [Fraction(1, 4), Fraction(3, 4)] if dataset[0][0] else [Fraction(3, 4), Fraction(1, 4)]


def report() -> str:
    universe = (0.5, Fraction(1, 3))
    return audit_user_level(answer, universe=universe, n_users=2, n_examples=1, epsilon="1/2", delta=0).to_json()


def report_of_one_dataset() -> str:
    count = AdditiveAlgorithm(
        (0, 1), sum, lambda total, n: [Fraction(total + 1, 9), Fraction(8 - total, 9)], statistic_range=(0, 1)
    )
    return audit_dataset(count, [(1,), (0,)], records=[(0,), (1,)], epsilon=LogRatio(3, 2), delta="1/9").to_json()


def sampled_report() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("userdp.checker.values.COMPLETE_PAIRS", 3)
        return report()


@finite_algorithm(outputs=tuple("abc"))
def order(dataset: tuple[Any, ...]) -> list[int]:
    return {((0,), (1,)): [0, 1, 0], ((1,), (0,)): [0, 0, 1]}.get(dataset, [1, 0, 0])


def votes(sample: tuple[Any, ...]) -> dict[int, Fraction]:
    return {0: Fraction(4 - sum(sample), 5), 1: Fraction(1 + sum(sample), 5)}


EVEN = {0: "1/2", 1: "1/2"}
MAKERS: dict[str, Callable[[], str]] = {
    "check of deletions": lambda: check_lddp(answer, [(0,), (1,)], r=1, epsilon="1/4", delta=0).to_json(),
    "generalization": lambda: audit_perfect_generalization(
        order, universe=(0, 1), distributions=EVEN, n_users=2, epsilon="1/10", delta="3/100", beta="1/2"
    ).to_json(),
    "stability": lambda: audit_stability(votes, EVEN, m=3, eta="1/3").to_json(),
    "stability of seeds": lambda: audit_stability(
        lambda sample, seed: max(sample) if seed else 1, EVEN, m=2, seeds={0: "1/4", 1: "3/4"}
    ).to_json(),
    "sensitivity": lambda: audit_sensitivity(
        lambda rows: {row["x"]: 1 for row in rows}, schema={"x": (None, 1.5)}, user="who", l1=1, max_users=2
    ).to_json(),
    "composition": lambda: (
        PrivacyLossDistribution.pure("0.1")
        .self_compose(9)
        .compose(PrivacyLossDistribution.from_pmfs(["2/3", "1/3"], ["1/3", "2/3"]))
        .certificate(delta="1e-6")
    ),
    "guesses": lambda: audit_one_run(
        lambda users: [len(user) for user in users],
        canaries=[(1,)] * 40,
        others=[()] * 40,
        score=lambda output: output,
        epsilon="1/2",
        random_state=0,
    ).to_json(),
    "certificate": lambda: ExponentialMechanism(epsilon=8, sensitivity=1).certificate(3).to_json(),
    "certificate of a pair": lambda: Certificate.of_pair(
        ["2/3", "1/3"], ["1/3", "2/3"], epsilon="1/2", delta="1/3"
    ).to_json(),
    "optimality": lambda: optimal_mechanism(
        lambda users, guess: 1 - users.count((guess,)), universe=("a", "b"), n_users=1, epsilon=1
    ).certificate.to_json(),
}


def ledger(composition: Any) -> str:
    made = PrivacyLedger(4, "1/10", composition=composition)
    made.spend(PrivacyCost("1/2", "1/1000" if composition == "basic" else 0), "first")
    made.spend(PrivacyCost(bounded_range="1/4"))
    return made.to_json()


ROUND: dict[str, Any] = {"epsilon": "1/2", "n_users": 50, "round_id": "a"}
SEED = PublicSeed(bytes(range(32)))
WRITTEN: dict[str, tuple[Callable[[str], Any], Callable[[], str]]] = {
    "report": (AuditReport.from_json, report),
    "report of one dataset": (AuditReport.from_json, report_of_one_dataset),
    "sampled report": (AuditReport.from_json, sampled_report),
    **{name: (Report.from_json, MAKERS[name]) for name in MAKERS},
    "privacy losses": (
        PrivacyLossDistribution.from_json,
        lambda: (
            PrivacyLossDistribution.composed(
                [
                    (PrivacyLossDistribution.from_pmfs(["2/3", "1/3"], ["1/3", "2/3"]), 2),
                    (PrivacyLossDistribution.discrete_laplace("ln(3/2)", 3), 7),
                    (PrivacyLossDistribution.gaussian(4, neighbors="replace").without_replacement(1, 9), 3),
                ]
            )
            .within("1e-9")
            .to_json()
        ),
    ),
    "ledger": (PrivacyLedger.from_json, lambda: ledger("basic")),
    "zCDP ledger": (PrivacyLedger.from_json, lambda: ledger("zcdp")),
    "randomized response": (
        local.LocalProtocol.from_json,
        lambda: local.KRandomizedResponse(n_items=4, **ROUND).to_json(),
    ),
    "subset selection": (local.LocalProtocol.from_json, lambda: local.SubsetSelection(n_items=4, **ROUND).to_json()),
    "Hadamard response": (local.LocalProtocol.from_json, lambda: local.HadamardResponse(n_items=4, **ROUND).to_json()),
    "majority of bits": (local.LocalProtocol.from_json, lambda: local.BitwiseMajority(n_bits=8, **ROUND).to_json()),
    "shuffled sum": (
        shuffle.NegativeBinomialSum.from_json,
        lambda: shuffle.NegativeBinomialSum(delta="1/1000", **ROUND).to_json(),
    ),
    "shuffled histogram": (
        shuffle.Histogram.from_json,
        lambda: shuffle.Histogram(n_items=3, delta="1/1000", default=0, **ROUND).to_json(),
    ),
    "shuffled selection": (
        shuffle.Mode.from_json,
        lambda: shuffle.Mode(n_items=3, delta="1/1000", default=0, **ROUND).to_json(),
    ),
    "thresholds": (
        ThresholdClassifier.from_json,
        lambda: ThresholdClassifier(epsilon=1, m=2, domain_size=5, classes=(0, 1)).fit(X, Y, groups=GROUPS).to_json(),
    ),
    "concepts": (
        RealizablePACClassifier.from_json,
        lambda: (
            RealizablePACClassifier(concepts=Thresholds(4), epsilon=1, m=2, classes=(0, 1))
            .fit(X, Y, groups=GROUPS)
            .to_json()
        ),
    ),
    "learner by agreement": (
        CorrelatedSamplingClassifier.from_json,
        lambda: (
            CorrelatedSamplingClassifier(
                concepts=Thresholds(2), gamma=3, public_seed=SEED, model="local", epsilon=4, m=1, classes=(0, 1)
            )
            .fit(X, Y, groups=GROUPS)
            .to_json()
        ),
    ),
    "mean": (
        WinsorizedMean.from_json,
        lambda: WinsorizedMean(epsilon=8, max_norm=4, m=2).fit(X, groups=GROUPS).to_json(),
    ),
}
WRITTEN = {name: (read, cache(write)) for name, (read, write) in WRITTEN.items()}

RAW = "a place for text that json.dumps would not write"
DEEP = "[" * 50_000 + "]" * 50_000
JUNK: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        10**30,
        2**64,
        "",
        "x",
        "\ud800",
        "nan",
        "inf",
        "1/0",
        "-1",
        "1e99999",
        "1e-99999",
        "9" * 6000,
    ),
    *("0x1p99999", "ln(9/0)", "ln(1e999999)", "٣", "\0", [], {}, [[]], {"a": 1}, [None] * 3, {"float": "nan"}),
    *({"int": "8" * 5000}, {"fraction": "1/0"}, {"fraction": "9" * 5000}, {"tuple": 3}, {"mapping": [[[], 1]]}),
    *({"object": ["Thresholds", {}]}, {"object": ["PublicSeed", {"value": "0"}]}, {"range": [0, 1, 0]}),
    {"array": {"dtype": "<f8", "shape": [-1], "entries": ["x"]}},
    {"array": {"dtype": ",,", "shape": [1], "entries": [1]}},
    {"array": {"dtype": "<U9", "shape": [10**9], "entries": []}},
    *(
        (RAW, text)
        for text in ("NaN", "-Infinity", "1e400", "-0", "0.1", "1" * 5000, DEEP, '{"a": 1, "a": 2}', "", "}")
    ),
]
WHOLE: list[Any] = [
    *("", "nul", "[]", "{}", "null", "3", "NaN", "1" * 5000, "[" * 100_000, '{"a":' * 100_000, '"\ud800"', "\ufeff{}"),
    *(None, 3, b"\xff", b"{}", ["{}"], {"format": "userdp-audit/3"}),
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is in a parsed text."""
    if path:
        yield path
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def put(content: Any, path: tuple[Any, ...], junk: Any) -> str:
    """The text with something else in one place."""
    changed = copy.deepcopy(content)
    node = changed
    for key in path[:-1]:
        node = node[key]
    raw = isinstance(junk, tuple)
    node[path[-1]] = RAW if raw else junk
    text = json.dumps(changed)
    return text.replace(json.dumps(RAW), junk[1]) if raw else text


def without(content: Any, path: tuple[Any, ...]) -> str:
    """The text without what is in one place."""
    changed = copy.deepcopy(content)
    node = changed
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    return json.dumps(changed)


def scrambled(text: str, source: random.Random) -> str:
    """The text with a few characters lost, repeated or replaced."""
    letters = list(text)
    for _ in range(source.choice((1, 1, 2, 5))):
        place = source.randrange(len(letters))
        what = source.randrange(4)
        if what == 0:
            del letters[place]
        elif what == 1:
            letters.insert(place, source.choice('"[]{},:0123456789-+eE./\\u \x00\ud800é'))
        elif what == 2:
            letters[place] = source.choice('"[]{},:0123456789abcdefx')
        else:
            letters[place:] = letters[place + source.randrange(30) :]
        letters = letters or [" "]
    return "".join(letters)


def try_to_read(read: Callable[[Any], Any], text: Any) -> None:
    """An object, or an error that says something; nothing else may come out."""
    said, made = "", None
    try:
        made = read(text)
    except (ValueError, TypeError) as error:
        said = str(error)
    assert made is not None or len(said) > 10
    if isinstance(made, Report):
        best = "established" if made.KIND in ("composition", "optimality", "certificate") else "consistent"
        assert made.verify().finding in (best, "wrong")
        made.summary()


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_is_read(name: str) -> None:
    read, write = WRITTEN[name]
    assert read(write()).to_json() == write()


@pytest.mark.parametrize("name", WRITTEN)
def test_texts_that_are_something_else(name: str) -> None:
    read, _ = WRITTEN[name]
    for text in WHOLE:
        with pytest.raises((ValueError, TypeError), match=r"\S.*\S"):
            read(text)
    for _, other in WRITTEN.values():
        try_to_read(read, other())


@pytest.mark.parametrize("name", WRITTEN)
def test_junk_in_every_place(name: str) -> None:
    read, write = WRITTEN[name]
    content, source = json.loads(write()), random.Random(name)
    everywhere = list(places(content))
    for path in everywhere:
        try_to_read(read, without(content, path))
        for junk in source.sample(JUNK, 3):
            try_to_read(read, put(content, path, junk))
    for junk in JUNK:
        for path in source.sample(everywhere, min(len(everywhere), 4)):
            try_to_read(read, put(content, path, junk))


@pytest.mark.parametrize("name", WRITTEN)
def test_scrambled_texts(name: str) -> None:
    read, write = WRITTEN[name]
    source = random.Random(name)
    for _ in range(60):
        try_to_read(read, scrambled(write(), source))


@pytest.mark.parametrize("junk", [*JUNK, *WHOLE, "0" * 63, "٣" * 64, " " * 64, b"", bytes(31)], ids=lambda _: "")
def test_public_seeds(junk: Any) -> None:
    try_to_read(PublicSeed, junk)


def test_every_reader_of_the_package_is_here() -> None:
    known = {read.__func__ for read, _ in WRITTEN.values()}  # type: ignore[attr-defined]
    found = set()
    for module in pkgutil.walk_packages(userdp.__path__, "userdp."):
        if module.name in ("userdp.__main__", "userdp._core"):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__.startswith("userdp."):
                for method in ("from_json", "from_dict", "load", "loads"):
                    own = vars(kind).get(method)
                    if own is not None:
                        found.add(getattr(own, "__func__", own))
    assert found == known
