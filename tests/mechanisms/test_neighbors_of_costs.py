"""Every mechanism that states a cost, by exact audits over all small datasets: what it says is true of whom it says.

A mechanism that takes a sensitivity says nothing of neighbors unless it is told; what is monotone, or knows keys, is
about a user who comes or goes. What it costs to replace a user is then `PrivacyCost.for_neighbors`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution, compose_basic
from userdp.mechanisms import (
    ApproximatePrivateMode,
    CorrelatedCounts,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    PartitionSelection,
    PermuteAndFlip,
    PrivateRange,
    PurePrivateMode,
    SetUnion,
    SparseHistogram,
    TruncatedDiscreteLaplace,
    UnboundedDiscreteLaplace,
)
from userdp.tables import Query, Schema, Session, category, count_users

F = Fraction
Dataset = tuple[int, ...]
Law = dict[Any, Fraction]
ITEMS = (0, 1, 2)
MOST = 3
RELATIONS = ("replace", "add-remove")


def pairs(relation: str) -> list[tuple[Dataset, Dataset]]:
    """All neighbors, in both orders."""
    found = []
    for n in range(1, MOST + 1):
        for one in itertools.product(ITEMS, repeat=n):
            if relation == "add-remove":
                found += [(one, one[1:]), (one[1:], one)]
            else:
                found += [(one, (other, *one[1:])) for other in ITEMS if other != one[0]]
    return found


def table(pmf: Any) -> Law:
    return dict(zip(pmf.outputs, pmf.fractions(), strict=True))


def shifted(mechanism: Any, data: Dataset) -> Law:
    return {x + data.count(0): mass for x, mass in table(mechanism.pmf()).items()}


def counts(data: Dataset) -> list[int]:
    return [data.count(item) for item in ITEMS]


SELECTIONS = {
    "exponential": (ExponentialMechanism, lambda m, d: table(m.pmf(counts(d))), {"sensitivity": 1, "maximize": True}),
    "permute and flip": (PermuteAndFlip, lambda m, d: table(m.pmf(counts(d))), {"sensitivity": 1, "maximize": True}),
    "grouped": (
        GroupedExponentialMechanism,
        lambda m, d: table(m.pmf([(item, item, MOST - d.count(item)) for item in ITEMS])),
        {"sensitivity": 1},
    ),
}
Case = tuple[Callable[..., Any], Callable[[Any, Dataset], Law], dict[str, Any]]
CASES: dict[str, Case] = {
    "laplace": (DiscreteLaplace, lambda m, d: table(m.pmf(d.count(0))), {"sensitivity": 1, "bounds": (0, MOST)}),
    "truncated": (TruncatedDiscreteLaplace, shifted, {"delta": "1/50"}),
    **SELECTIONS,
    **{f"monotone {name}": (kind, law, {**given, "monotone": True}) for name, (kind, law, given) in SELECTIONS.items()},
    **{
        f"mode, {how}": (PurePrivateMode, lambda m, d: table(m.pmf(Counter(d))), {"n_items": 3, "mechanism": how})
        for how in ("exponential", "permute-and-flip")
    },
    "approximate mode": (ApproximatePrivateMode, lambda m, d: table(m.pmf(Counter(d))), {"delta": "1/5"}),
    "partitions": (PartitionSelection, lambda m, d: table(m.pmf(counts(d))), {"delta": "1/50"}),
    "histogram": (
        SparseHistogram,
        lambda m, d: table(m.pmf(counts(d), largest=6)),
        {"max_keys": 1, "threshold": 3},
    ),
    "union": (SetUnion, lambda m, d: table(m.pmf([(item,) for item in d])), {"max_keys": 1}),
    "range": (PrivateRange, lambda m, d: table(m.pmf([item - 1.0 for item in d])), {"bound": "3/2", "width": 1}),
}
"""What makes a mechanism from an epsilon, its distribution on a dataset, and the other arguments."""


def made(name: str, relation: str | None, ratio: int = 3) -> Any:
    kind, _, given = CASES[name]
    arguments = {**given, "epsilon": LogRatio(ratio)}
    if name == "histogram":
        arguments["scale"] = F(10, 11) if ratio == 3 else F(10, 44)  # 1 / ln 3 is .9102
    if name == "union":
        # Weights of 16, and noise of sigma^2 = 160 or a sixteenth of it.
        arguments |= {"rounds": [(F(160) if ratio == 3 else F(10), 40)], "weight": 16}
    if relation is not None and name != "range":
        arguments["neighbors"] = relation
    return kind(**arguments)


def excess(law: Callable[[Dataset], Law], cost: PrivacyCost, relation: str) -> Fraction:
    """How far the worst pair of neighbors is above the delta of a cost at its epsilon, exactly."""
    pair = cost.pair()
    assert pair is not None
    epsilon, delta = pair
    assert isinstance(epsilon, LogRatio), "a level that is rational"
    laws = {data: law(data) for data in {data for pair in pairs(relation) for data in pair}}
    worst = F(0)
    for one, other in pairs(relation):
        p, q = laws[one], laws[other]
        worst = max(worst, sum((max(mass - epsilon.ratio * q.get(x, F(0)), F(0)) for x, mass in p.items()), F(0)))
    return worst - delta


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CASES)
def test_a_charge_is_true_of_the_neighbors_that_it_states(name: str, relation: str) -> None:
    if (name.startswith("monotone") and relation == "replace") or (name == "range" and relation == "add-remove"):
        pytest.skip("the mechanism is for the other relation alone")
    mechanism, law = made(name, relation), CASES[name][1]
    assert mechanism.cost.neighbors == mechanism.neighbors == relation
    assert PrivacyLossDistribution.from_mechanism(mechanism).neighbors == relation
    assert excess(lambda data: law(mechanism, data), mechanism.cost, relation) <= 0
    # With less noise the same audit fails: a quarter, as of scores that move in one direction only little is used.
    little = made(name, relation, ratio=81)
    assert excess(lambda data: law(little, data), mechanism.cost, relation) > 0
    other = PrivacyLedger(9, 1, neighbors=RELATIONS[relation == "replace"])
    with pytest.raises(ValueError, match="they do not add up"):
        other.spend(mechanism)
    with pytest.raises(ValueError, match="they do not add up"):
        other.spend(mechanism.cost)
    assert not other.entries
    if relation == "add-remove":
        replaced = mechanism.cost.for_neighbors("replace")
        assert excess(lambda data: law(mechanism, data), replaced, "replace") <= 0
        other.spend(replaced)
    else:
        with pytest.raises(ValueError, match="says nothing of adding or removing"):
            mechanism.cost.for_neighbors("add-remove")


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("monotone")])
def test_replacing_a_user_costs_more_than_a_monotone_selection_says(name: str) -> None:
    """One epsilon where an exact audit finds up to two is what a ledger for "replace" must not take."""
    mechanism, law = made(name, None), CASES[name][1]
    assert mechanism.neighbors == "add-remove"
    assert excess(lambda data: law(mechanism, data), mechanism.cost, "replace") > 0
    with pytest.raises(ValueError, match=r"for_neighbors\('replace'\), which adds up: epsilon 2\.19722, delta 0"):
        PrivacyLedger(9).spend(mechanism)
    with pytest.raises(ValueError, match="monotone=True is for neighbors='add-remove'"):
        made(name, "replace")


def test_no_relation_is_assumed() -> None:
    silent = [
        DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 9)),
        UnboundedDiscreteLaplace(epsilon=1),
        TruncatedDiscreteLaplace(epsilon=1, delta="1e-3"),
        ExponentialMechanism(epsilon=1, sensitivity=1),
        PermuteAndFlip(epsilon=1, sensitivity=1),
        GroupedExponentialMechanism(epsilon=1, sensitivity=1),
        DiscreteGaussian(rho="1/8", sensitivity=1),
    ]
    for mechanism in silent:
        assert mechanism.neighbors is None
        assert mechanism.privacy_loss().neighbors is None
        for relation in RELATIONS:
            told = type(mechanism)(**mechanism._arguments, neighbors=relation)
            assert told.neighbors == told.privacy_loss().neighbors == relation
            assert f"neighbors={relation!r}" in repr(told)
        with pytest.raises(ValueError, match="neighbors must be"):
            type(mechanism)(**mechanism._arguments, neighbors="swap")
    for relation in RELATIONS:
        # Whoever spends what does not say it says that it is about the ledger's neighbors.
        ledger = PrivacyLedger(9, "1/2", neighbors=relation)
        ledger.spend(silent[0])
        ledger.spend(PrivacyCost(1), neighbors=relation)
        assert [entry.cost.neighbors for entry in ledger.entries] == [None, relation]
        assert [entry.cost for entry in PrivacyLedger.from_json(ledger.to_json()).entries] == [
            entry.cost for entry in ledger.entries
        ]
    for made_by_hand in (PrivacyLossDistribution.pure(1), PrivacyLossDistribution.gaussian(2)):
        assert made_by_hand.neighbors is None
    assert PartitionSelection(epsilon=1, delta="1e-5").cost.neighbors == "add-remove"
    assert CorrelatedCounts(n_keys=2, max_keys=2, epsilon=1, delta="1e-5").cost.neighbors == "add-remove"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
def test_tables_say_for_whom_they_cost(relation: Any, composition: Any) -> None:
    session = Session(
        {"u": [1, 2], "c": ["a", "b"]},
        user="u",
        schema=Schema(c=category(["a", "b"])),
        epsilon=1,
        delta="1e-6",
        composition=composition,
        neighbors=relation,
    )
    plan = session.plan(Query().group_by("c").agg(n=count_users()))
    assert plan.cost.neighbors == relation
    assert session.release(plan.query.query if hasattr(plan.query, "query") else plan.query).cost.neighbors == relation
    assert [entry.cost.neighbors for entry in session.ledger.entries] == [relation]


def test_relations_that_differ_do_not_compose() -> None:
    one, other = (PrivacyCost(1, neighbors=relation) for relation in RELATIONS)
    with pytest.raises(ValueError, match="same neighbors"):
        compose_basic(one, other)
    assert compose_basic(one, PrivacyCost(1)).neighbors == "replace"
    mixed = [PrivacyLossDistribution.pure(1, neighbors=relation) for relation in RELATIONS]
    with pytest.raises(ValueError, match="same neighbors"):
        mixed[0].compose(mixed[1])
    assert mixed[1].compose(PrivacyLossDistribution.pure(1)).neighbors == "add-remove"
    # A pair whose orders differ is taken in both where nothing is stated.
    lopsided = PrivacyLossDistribution.from_pmfs(["1/2", "1/2", 0], ["1/4", "1/2", "1/4"])
    ledger = PrivacyLedger(5, "1/2", "exact", neighbors="add-remove", slots=[(lopsided, 1)], gaussian=0)
    assert ledger.slots[0].loss._parts[0][0].symmetric


def test_costs_for_a_replaced_user() -> None:
    cost = PrivacyCost("ln(3)", "1/100", rho="1/8", bounded_range="ln(3)", mu2="1/4", neighbors="add-remove")
    replaced = cost.for_neighbors("replace")
    assert replaced == PrivacyCost("ln(9)", "4/100", rho="1/2", bounded_range="ln(9)", mu2=1, neighbors="replace")
    assert cost.for_neighbors("add-remove") is cost
    # (1 + e) delta, rounded up.
    delta = PrivacyCost(1, "1e-6", neighbors="add-remove").for_neighbors("replace").delta
    assert F("3.718281828459045e-6") < delta < F("3.718281828459046e-6")
    assert PrivacyCost(2**30, "1e-6", neighbors="add-remove").for_neighbors("replace").delta == 1
    beside = PrivacyCost(1, rho=1, added_delta="1e-9", neighbors="add-remove").for_neighbors("replace")
    assert beside == PrivacyCost(2, neighbors="replace")
    near = PrivacyCost(mu2=1, rho=1, distance="1e-9", neighbors="add-remove").for_neighbors("replace")
    assert near == PrivacyCost(mu2=4, distance="1e-9", neighbors="replace")
    for nothing in (PrivacyCost(rho=1, distance="1e-9", neighbors="add-remove"), PrivacyCost(1)):
        with pytest.raises(ValueError, match=r"says nothing of replacing|does not say for which"):
            nothing.for_neighbors("replace")
