"""An engine is used only where the algorithm's own pmf is the one that the engine assumes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from userdp.algorithms import AdditiveAlgorithm, FiniteAlgorithm, SummedScoreEM, SymmetricAlgorithm
from userdp.algorithms.finite import ASSUMPTIONS, assumptions_of, form_of, goes_with, is_symmetric
from userdp.audit import audit_dataset, audit_user_level
from userdp.delstab import DelStab
from userdp.exact import Pmf
from userdp.lddp import check_lddp

SURE = {0: [1, 0], 1: [0, 1]}


def fair(*_: Any) -> list[str]:
    return ["1/2", "1/2"]


def first(dataset: Any) -> list[int]:
    """What the first user says: neither symmetric nor private."""
    return SURE[dataset[0][0]] if dataset else [1, 0]


def shouting(self: Any, dataset: Any, /) -> list[int]:
    return first(dataset)


class Shouter:
    """A mixin that comes before the base."""

    pmf = shouting


class Additive(AdditiveAlgorithm):
    def __init__(self) -> None:
        super().__init__((0, 1), lambda user: user[0], fair, statistic_range=(0, 1))


class Score(SummedScoreEM):
    def __init__(self) -> None:
        super().__init__((0, 1), lambda user: (user[0], 1 - user[0]), epsilon="0.01", sensitivity=1)


class Symmetric(SymmetricAlgorithm):
    def __init__(self) -> None:
        super().__init__((0, 1), fair)


BASES = (Additive, Score, Symmetric)


def with_instance_pmf(base: type[Any]) -> Any:
    algorithm = base()
    algorithm.pmf = first
    return algorithm


def with_lookup(base: type[Any]) -> Any:
    def lookup(self: Any, name: str) -> Any:
        return first if name == "pmf" else object.__getattribute__(self, name)

    return type("Lookup", (base,), {"__getattribute__": lookup})()


LIARS = {
    "subclass": lambda base: type("Own", (base,), {"pmf": shouting})(),
    "below a subclass": lambda base: type("Below", (type("Own", (base,), {"pmf": shouting}),), {})(),
    "property": lambda base: type("Own", (base,), {"pmf": property(lambda self: first)})(),
    "mixin before the base": lambda base: type("Mixed", (Shouter, base), {})(),
    "instance attribute": with_instance_pmf,
    "attribute lookup": with_lookup,
    "flag of a class below": lambda base: type(
        "Own", (type("Flag", (base,), {"symmetric": True}),), {"pmf": shouting}
    )(),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("liar", LIARS)
def test_an_overridden_pmf_is_audited_itself(base: type[Any], liar: str) -> None:
    algorithm = LIARS[liar](base)
    assert isinstance(algorithm, FiniteAlgorithm)
    assert form_of(algorithm) == "labeled"
    report = audit_user_level(algorithm, universe=(0, 1), n_users=2, n_examples=1, epsilon="0.01", delta=0)
    assert (report.engine, report.holds, report.lower) == ("labeled", False, 1.0)
    one = audit_dataset(algorithm, [(0,), (1,)], records=[(1,)], epsilon="0.01", delta=0)
    assert (one.engine, one.lower) == ("labeled", 1.0)
    lddp = check_lddp(algorithm, [(0,), (1,), (1,)], r=1, epsilon="0.01", delta=0)
    assert (lddp.engine, lddp.lower) == ("general", 1.0)
    for engine in ("symmetric", "additive"):
        with pytest.raises(TypeError, match=f"engine='{engine}' needs"):
            audit_user_level(algorithm, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0, engine=engine)
    release = DelStab(algorithm, epsilon=8, delta="0.01")
    assert release.plan(release.min_users).engine == "labeled"
    assert not release.symmetric
    with pytest.raises(TypeError, match="compatibility='distance' needs an AdditiveAlgorithm"):
        DelStab(algorithm, epsilon=8, delta="0.01", compatibility="distance")


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (Additive, "total_of"),
        (Additive, "statistic_of"),
        (Score, "scores_of"),
        (Score, "score_table"),
        (Score, "core"),
    ],
)
def test_what_the_pmf_is_made_from_counts_too(base: type[Any], name: str) -> None:
    own = getattr(base, name)
    assert form_of(type("Own", (base,), {name: lambda self, *given: own(self, *given)})()) == "labeled"
    algorithm = base()
    setattr(algorithm, name, getattr(algorithm, name))
    assert form_of(algorithm) == "labeled"


@pytest.mark.parametrize(("base", "form"), [(Additive, "additive"), (Score, "score"), (Symmetric, "symmetric")])
def test_subclasses_and_copies_with_the_pmf_of_the_base_keep_its_engine(base: type[Any], form: str) -> None:
    named = type("Named", (base,), {"label": "another", "__call__": None})
    behind = type("Behind", (base, Shouter), {})  # the base's pmf wins
    for algorithm in (base(), named(), behind(), copy.copy(base())):
        assert form_of(algorithm) == form
        assert is_symmetric(algorithm)
    assert form_of(pickle.loads(pickle.dumps(Symmetric()))) == "symmetric"


def test_symmetry_is_claimed_where_the_pmf_is_defined() -> None:
    assert form_of(type("Own", (Additive,), {"pmf": shouting, "symmetric": True})()) == "symmetric"
    assert form_of(type("Plain", (), {"outputs": (0, 1), "pmf": shouting, "symmetric": True})()) == "symmetric"
    assert form_of(type("Plain", (), {"outputs": (0, 1), "pmf": shouting})()) == "labeled"
    bare = type("Bare", (), {})()
    vars(bare).update(outputs=(0, 1), pmf=first, symmetric=True)
    assert form_of(bare) == "symmetric"
    bare.symmetric = 1
    assert form_of(bare) == "labeled"
    release = DelStab(Additive(), epsilon=8, delta="0.01")
    assert form_of(release) == "symmetric"
    assert form_of(type("Own", (DelStab,), {"pmf": shouting})(Additive(), epsilon=8, delta="0.01")) == "labeled"


def test_blocks_go_with_the_pmf_that_they_were_written_for() -> None:
    class Blocks(SymmetricAlgorithm):
        def pmf_batch(self, datasets: Any) -> Any:
            return [fair() for _ in datasets]

    assert goes_with(Blocks((0, 1), fair), "pmf_batch", "pmf")
    own = type("Own", (Blocks,), {"pmf": shouting})((0, 1), fair)
    assert not goes_with(own, "pmf_batch", "pmf")
    report = audit_user_level(own, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0)
    assert report.lower == 1.0


def test_a_report_of_the_additive_engine_is_not_confirmed_by_an_overridden_pmf() -> None:
    def run(algorithm: Any) -> Any:
        return audit_user_level(algorithm, universe=(0, 1), n_users=2, n_examples=1, epsilon=1, delta=0)

    report = run(Additive())
    assert report.verify(mechanism=Additive()).finding == "established"
    mute = type("Mute", (Additive,), {"pmf": lambda self, dataset, /: fair()})()
    assert report.verify(mechanism=mute).finding == "wrong"


def test_assumptions_name_what_each_engine_takes_for_granted() -> None:
    assert [assumptions_of(engine)[2:] for engine in ("labeled", "general", "symmetric", "multiset")] == [
        *((), ()),
        *(("symmetry",), ("symmetry",)),
    ]
    assert assumptions_of("additive")[2:] == ("additivity",)
    assert assumptions_of("score")[2:] == ("score-form",)
    for engine in ("labeled", "symmetric", "additive", "score"):
        assert set(assumptions_of(engine)) <= set(ASSUMPTIONS)
    result = check_lddp(Score(), [(0,), (1,)], r=1, epsilon=1, delta=0)
    assert result.assumptions == assumptions_of("score")


def test_diagnostics_of_a_subclass_do_not_change_the_pmf_and_its_own_computation_is_not_symmetric() -> None:
    class Diagnosed(DelStab):
        def output_distribution(self, dataset: Any, **given: Any) -> Any:
            return Pmf(self.outputs, (1, 0, 0) if dataset[0] == (0,) else (0, 1, 0))

    class Computed(DelStab):
        def _stability(self, users: Any, *given: Any, **options: Any) -> Any:
            return super()._stability(users, *given, **options)

    class Vouched(Computed):
        symmetric = True

    made = [kind(Symmetric(), epsilon=8, delta="0.01") for kind in (DelStab, Diagnosed, Computed, Vouched)]
    assert [form_of(private) for private in made] == ["symmetric", "symmetric", "labeled", "symmetric"]
    for dataset in ((((0,),) * 8 + ((1,),)), (((1,),) * 8 + ((0,),))):
        assert made[1].pmf(dataset) == made[0].pmf(dataset)
