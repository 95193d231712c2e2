"""Masses go with their outputs: by label where outputs are given, by place where none are."""

from __future__ import annotations

import pickle
from fractions import Fraction as F
from typing import Any

import pytest

from userdp.algorithms import finite_algorithm
from userdp.audit import audit_pair
from userdp.exact import Pmf
from userdp.exact.pmf import aligned
from userdp.lddp import check_lddp
from userdp.mechanisms import ExponentialMechanism, exact_pmf

ALIKE = [(True, False), (1, 0), (1.0, 0.0), (False, True), (F(1), F(0)), ("b", "a"), (1, 2)]
"""Outputs that equal the places 0 and 1 in another order, and others."""


@pytest.mark.parametrize("outputs", ALIKE)
def test_masses_without_outputs_are_in_the_order_of_the_algorithms(outputs: tuple[Any, ...]) -> None:
    for pmf in (exact_pmf(weights=[3, 1]), exact_pmf(counts=[3, 1]), Pmf.from_weights([3, 1])):
        own = aligned(pmf, outputs)
        assert own.weights == (3, 1)
        assert own.outputs == outputs
        assert list(map(type, own.outputs)) == list(map(type, outputs))

    @finite_algorithm(outputs)
    def algorithm(dataset: Any) -> Pmf:
        return exact_pmf(weights=[3, 1]) if dataset[0][0] else exact_pmf(weights=[1, 1])

    report = audit_pair(algorithm, [(1,)], [(0,)], epsilon=0, delta=0)
    assert report.pmfs == ((F(3, 4), F(1, 4)), (F(1, 2), F(1, 2)))
    assert report.witness is not None
    assert (report.witness.event_indices, report.witness.x) == ((0,), ((1,),))
    assert report.verify(mechanism=algorithm).finding == "established"
    checked = check_lddp(algorithm, [(1,), (0,)], r=1, epsilon=0, delta=0)
    assert checked.lower == 0.25
    assert checked.verify(algorithm, [(1,), (0,)]).finding == "established"


@pytest.mark.parametrize("outputs", ALIKE)
def test_masses_with_outputs_go_by_label(outputs: tuple[Any, ...]) -> None:
    named = exact_pmf(weights=[3, 1], outputs=outputs)
    assert (named.outputs, named.weights) == (outputs, (3, 1))
    assert list(map(type, named.outputs)) == list(map(type, outputs))
    assert aligned(named, outputs).weights == (3, 1)
    assert aligned(named, outputs[::-1]).weights == (1, 3)
    assert pickle.loads(pickle.dumps(named)) == named


def test_integers_that_were_given_are_labels() -> None:
    assert aligned(Pmf((0, 1), (3, 1)), (1, 0)).weights == (1, 3)
    for outputs in (("a", "b"), (1, 2), (0, 1, 2)):
        with pytest.raises(ValueError, match=r"has the outputs \(0, 1\)"):
            aligned(Pmf((0, 1), (3, 1)), outputs)
    with pytest.raises(ValueError, match="has the outputs"):
        aligned(exact_pmf(weights=[3, 1]), (0, 1, 2))


def test_candidates_by_number_are_places() -> None:
    pmf = ExponentialMechanism(epsilon=1, sensitivity=1).pmf([0, 5])
    assert aligned(pmf, (1, 0)).weights == pmf.weights
