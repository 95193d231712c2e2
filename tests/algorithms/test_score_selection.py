"""The exponential mechanism on sums of scores against integers, fractions and the ideal weights."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import exponential as oracle
from oracle.divergence import exp_bounds
from userdp import LogRatio, Pmf, _core
from userdp.algorithms import SummedScoreEM, SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.testing import assert_user_private

F = Fraction


def first_example(user: Any) -> Any:
    return user[0]


def selection(epsilon: Any = 1, sensitivity: int = 1, outputs: int = 3) -> SummedScoreEM:
    return SummedScoreEM(range(outputs), first_example, epsilon=epsilon, sensitivity=sensitivity)


def test_rates_are_rounded_down_from_the_ideal_by_less_than_the_reserve_and_a_little() -> None:
    source = random.Random(0)
    for _ in range(2000):
        epsilon = F(source.uniform(1, 2)) * F(2) ** source.randrange(-30, 6)
        sensitivity = source.randrange(1, 2 ** source.randrange(1, 40))
        if epsilon >= 88:
            continue
        found = selection(epsilon, sensitivity).core()
        ideal = oracle.ideal_bits(epsilon, sensitivity)
        reserved = oracle.ideal_bits(epsilon - F(1, 2**36), sensitivity)
        assert found.bits_per_unit <= reserved < ideal
        assert found.bits_per_unit >= reserved * (1 - F(1, 2**60))
        assert found.largest_gap == oracle.largest_gap(found.bits_per_unit)


def test_published_rate() -> None:
    found = selection(F(0.1), 3).core()
    assert (found.bits_per_unit, found.largest_gap) == (F(14193613968968502106, 2**69), 2661)


def test_logarithmic_epsilon_is_close_to_its_decimal() -> None:
    exact, decimal = (selection(epsilon).core().bits_per_unit for epsilon in (LogRatio(3, 1), math.log(3)))
    assert abs(exact / decimal - 1) < F(1, 2**50)


def test_pmfs_are_the_integers_of_the_definition() -> None:
    source = random.Random(1)
    for _ in range(1500):
        sensitivity = source.choice((1, 2, 5, 1000))
        chosen = selection(source.choice((1, "1/10", 7, LogRatio(5, 2), 80)), sensitivity, source.randrange(1, 6))
        k = len(chosen.outputs)
        users = [([source.randrange(-1, sensitivity + 2) for _ in range(k)],) for _ in range(source.randrange(0, 9))]
        dataset = tuple((tuple(scores),) for (scores,) in users)
        totals = [sum(min(max(scores[o], 0), sensitivity) for (scores,) in users) for o in range(k)]
        pmf = chosen.pmf(dataset)
        assert isinstance(pmf, Pmf)
        assert list(pmf.weights) == oracle.pmf(totals, chosen.core().bits_per_unit)
        assert pmf.total == 2**128
        assert min(pmf.weights) > 0


def test_pmfs_are_near_the_ideal_ones() -> None:
    for epsilon in (F(1, 10), F(1), F(3)):
        chosen = selection(epsilon, 2, 3)
        pmfs = chosen.pmf((((0, 1, 2),), ((0, 2, 2),)))
        ideal = [exp_bounds(epsilon * (4 - total) / 4)[0] for total in (0, 3, 4)]
        for mass, weight in zip(pmfs.fractions(), ideal, strict=True):
            assert abs(mass / (weight / sum(ideal)) - 1) < F(1, 10**9)


def test_the_polynomial_is_within_its_proved_bound() -> None:
    # Around each of 256 centers c, with |t| <= h: both 2^c P(c + t) and 2^-t as series in t, compared term by term.
    half_width = F(1, 512)
    digits = F(1, 10**100)  # the decimals below are correctly rounded to 120 digits
    ln_two = F(oracle.LN_TWO)
    coefficients = [F((-1) ** j * c, 2**63) for j, c in enumerate(oracle.COEFFICIENTS)]
    assert all(a > b for a, b in itertools.pairwise(oracle.COEFFICIENTS))  # no term of the evaluation is negative
    worst = F(0)
    for piece in range(256):
        center = F(2 * piece + 1, 512)
        power = F(oracle.CONTEXT.exp(oracle.CONTEXT.multiply(oracle.LN_TWO, oracle.Decimal(float(center)))))
        difference = F(0)
        for j in range(len(coefficients)):
            shifted = sum(coefficients[i] * math.comb(i, j) * center ** (i - j) for i in range(j, len(coefficients)))
            difference += abs(power * shifted - (-ln_two) ** j / math.factorial(j)) * half_width**j + digits
        # The series of 2^-t alternates or has falling terms: its rest is below twice its next term.
        difference += 2 * (ln_two * half_width) ** 11 / math.factorial(11)
        # Relative to 2^-t >= 2^(-1/512), and ten truncations of less than 2^-63 relative to 2^-x >= 1/2.
        worst = max(worst, difference * F(1002, 1000) + 10 * F(1, 2**62))
    assert F(1, 2**50) < worst < F(1, 2**49)


def test_the_reserve_covers_all_roundings() -> None:
    high = (1 + F(1, 2**49)) * (1 + F(1, 2**57))
    low = 1 - F(1, 2**49) - F(1, 2**38)
    theta = F(2**24, 2**64) * high / low
    slack = 2 * (high / low - 1) + ((1 + theta) / (1 - theta) - 1)  # ln x <= x - 1
    assert F("9e-12") < slack < F("9.2e-12") < F(1, 2**36)


def ratio_is_within(p: Pmf, q: Pmf, epsilon: F) -> bool:
    low, high = exp_bounds(epsilon)
    pairs = list(zip(p.weights, q.weights, strict=True))
    assert not any(low < F(a, b) < high for a, b in pairs)
    return all(F(a, b) <= low for a, b in pairs)


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_replacing_a_user_stays_within_epsilon_and_half_the_noise_does_not(epsilon: str) -> None:
    values = [(scores,) for scores in itertools.product((0, 1, 2), repeat=3)]
    chosen, doubled = selection(epsilon, 2), selection(2 * F(epsilon), 2)
    rest = ((0, 2, 1),)
    ratios = {}
    for name, mechanism in (("chosen", chosen), ("doubled", doubled)):
        pmfs = [mechanism.pmf((value, rest)) for value in values]
        ratios[name] = all(ratio_is_within(p, q, F(epsilon)) for p, q in itertools.permutations(pmfs, 2))
    assert ratios == {"chosen": True, "doubled": False}


def test_scores_outside_the_range_are_clamped() -> None:
    wild = selection(1, 2).pmf((((10**30, -5, 1),), ((0, 0, 10**30),)))
    tame = selection(1, 2).pmf((((2, 0, 1),), ((0, 0, 2),)))
    assert wild == tame


def test_audits_take_it_as_symmetric() -> None:
    chosen = selection(1, 1, 2)
    assert isinstance(chosen, SymmetricAlgorithm)
    common = {"universe": [(0, 1), (1, 0), (1, 1)], "n_users": 3, "n_examples": 1}
    assert_user_private(chosen, **common, epsilon=1, delta=0)  # type: ignore[arg-type]
    assert not audit_user_level(chosen, **common, epsilon="0.7", delta=0).holds  # type: ignore[arg-type]


def test_order_of_users_and_empty_datasets() -> None:
    chosen = selection()
    users = (((0, 1, 1),), ((1, 0, 0),), ((0, 0, 1),))
    assert {chosen.pmf(order) for order in itertools.permutations(users)} == {chosen.pmf(users)}
    assert max(chosen.pmf(()).weights) - min(chosen.pmf(()).weights) <= 1


def test_pickling() -> None:
    chosen = selection(LogRatio(3, 1), 2)
    again = pickle.loads(pickle.dumps(chosen))
    dataset = (((0, 1, 2),),)
    assert again.pmf(dataset) == chosen.pmf(dataset)
    assert (again.epsilon, again.sensitivity, again.outputs) == (chosen.epsilon, chosen.sensitivity, chosen.outputs)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": 88}, ValueError, "epsilon"),
        ({"epsilon": F(1, 2**35)}, ValueError, "epsilon"),
        ({"epsilon": -1}, ValueError, "epsilon"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"sensitivity": 0}, ValueError, "sensitivity"),
        ({"sensitivity": 2**61}, ValueError, "sensitivity"),
        ({"sensitivity": 1.0}, TypeError, "sensitivity"),
        ({"outputs": 0}, ValueError, "outputs"),
    ],
)
def test_bad_parameters(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        selection(**change)


@pytest.mark.parametrize(
    ("scores", "error"),
    [
        ((0, 1), ValueError),
        ((0.0, 1.0, 2.0), TypeError),
        ("012", TypeError),
        (3, TypeError),
        (np.array([0.5, 1, 2]), TypeError),
        (None, TypeError),
    ],
)
def test_bad_scores_name_the_user(scores: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="scores of the user"):
        selection().pmf(((scores,),))


def test_scores_that_raise_and_totals_that_overflow() -> None:
    with pytest.raises(RuntimeError, match="scores raised IndexError"):
        selection().pmf(((),))
    with pytest.raises(ValueError, match="totals beyond"):
        selection(1, 2**60).pmf((((0, 0, 0),),) * 3)
    assert selection().scores_of((np.array([0, 1, 5], dtype=np.uint64),)).tolist() == [0, 1, 1]


def test_core_refuses_what_does_not_fit() -> None:
    core = selection().core()
    scores = np.zeros((2, 3), dtype=np.int64)
    deleted = np.zeros((1, 2), dtype=np.uint16)
    with pytest.raises(ValueError, match="r:"):
        core.matrix_of_subsets(scores, 3)
    with pytest.raises(ValueError, match="type_scores"):
        core.matrix_of_vectors(scores[:1], [1, 1], deleted)
    with pytest.raises(ValueError, match="deleted"):
        core.matrix_of_vectors(scores, [1, 1], deleted + np.uint16(2))
    with pytest.raises(ValueError, match="deleted"):
        core.matrix_of_vectors(scores, [1, 1, 1], deleted)
    with pytest.raises(ValueError, match="outputs"):
        core.matrix_of_totals(np.zeros((1, 0), dtype=np.int64))
    with pytest.raises(ValueError, match="start, stop"):
        _core.subsets(4, 2, 0, 7)
    with pytest.raises(ValueError, match="start, stop"):
        _core.count_vectors([2, 2], 2, 2, 1)
    assert _core.count_subsets(200, 100) is None
    assert _core.count_vectors_number([1] * 200, 100) is None
