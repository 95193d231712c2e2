"""The exponential mechanism against the reference's integers, exact ratios, a supremum, and the auditor."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import exponential as oracle
from oracle.divergence import exp_bounds
from userdp import LogRatio, _core
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_pair, audit_user_level
from userdp.exact.epsilon import level_of
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import ExponentialMechanism

F = Fraction
WHOLE = 2**128
# Written by data/make_exponential_cases.py from a reference implementation.
CASES = json.loads((Path(__file__).parents[1] / "data" / "exponential_mechanism_cases.json").read_text())
Scores = npt.NDArray[np.int64]
exp_of = functools.cache(exp_bounds)


def epsilon_of(text: str) -> Fraction:
    return F(text) if "/" in text else F(float.fromhex(text))


@functools.cache
def core_rate(index: int) -> _core.ExponentialRate:
    text, sensitivity, factor = CASES["rates"][index][:3]
    return _core.ExponentialRate(level_of(epsilon_of(text)), int(sensitivity, 16), factor == 1)


def listed(bits: list[int]) -> _core.Source:
    return _core.Source.listed(b"".join(u.to_bytes(16, "little") for u in bits))


# --- the reference's integers


def test_rates_are_the_references() -> None:
    compared = 0
    for index, (text, sensitivity, factor, *expected) in enumerate(CASES["rates"]):
        rate = core_rate(index)
        multiplier, shift, gap = int(expected[0], 16), expected[1], int(expected[2], 16)
        assert (rate.multiplier, rate.shift, rate.largest_gap) == (multiplier, shift, gap)
        found = oracle.rate(epsilon_of(text), int(sensitivity, 16), factor)
        assert found == (multiplier, shift)
        bits = oracle.bits_per_unit(found)
        assert rate.bits_per_unit == bits
        assert oracle.largest_gap(bits) == gap
        compared += 1
    print(f"{compared} rates compared")
    assert compared >= 5000


def test_weights_are_the_references() -> None:
    compared = 0
    for index, gaps, weights in CASES["weights"]:
        bits = core_rate(index).bits_per_unit
        for gap, expected in zip(gaps, weights, strict=True):
            d, weight = int(gap, 16), int(expected, 16)
            scores = np.array([-(2**63), d - 2**63])
            found = core_rate(index).weights(scores, False)
            assert found == [2**103, weight]
            assert core_rate(index).weights(~scores, True) == found
            assert oracle.weight(d, bits) == weight
            compared += 1
    print(f"{compared} weights compared")
    assert compared >= 8000


def test_pmfs_and_draws_are_the_references() -> None:
    masses = draws = 0
    for pmf in CASES["pmfs"]:
        rate, long = core_rate(pmf["rate"]), isinstance(pmf["scores"], int)
        values = [(i * i * 7919 + 13) % 1009 for i in range(pmf["scores"])] if long else pmf["scores"]
        scores = np.array(values, dtype=np.int64)
        numerators = rate.numerators(scores, False)
        assert sum(numerators) == WHOLE
        assert oracle.pmf(values, rate.bits_per_unit) == numerators if len(values) <= 1000 else True
        expected = [int(n, 16) for n in pmf["pmf"]]
        assert [numerators[0], numerators[-1]] == expected if long else numerators == expected
        masses += len(expected)

        bits = [int(u, 16) for u, _ in pmf["draws"]]
        indices = [index for _, index in pmf["draws"]]
        assert rate.sample_many(scores, listed(bits), len(bits), False).tolist() == indices
        assert rate.sample_many(~scores, listed(bits), len(bits), True).tolist() == indices
        singles = listed(bits)
        assert [rate.sample(scores, singles, False) for _ in bits] == indices
        for u, index in zip(bits[:: 8 if long else 1], indices[:: 8 if long else 1], strict=True):
            assert oracle.draw(values, rate.bits_per_unit, u) == index
        draws += len(bits)
    sizes = [pmf["scores"] for pmf in CASES["pmfs"] if isinstance(pmf["scores"], int)]
    assert min(sizes) < 4096 < max(sizes)  # both ways to compute a draw
    print(f"{masses} numerators and {draws} draws compared")
    assert masses >= 1500
    assert draws >= 7000


def test_pmf_and_the_drawn_bits_are_compared() -> None:
    """At the first and the last value of the bits that select each candidate."""
    scores = np.array([0, 1, 3, 0, 2])
    pmf = ExponentialMechanism(epsilon=1, sensitivity=1).pmf(scores)
    ends = list(itertools.accumulate(pmf.weights, initial=0))
    assert ends[-1] == WHOLE
    bits = [bit for start, end in itertools.pairwise(ends) for bit in (start, end - 1)]
    rate = _core.ExponentialRate(level_of(F(1)), 1, False)
    assert rate.sample_many(scores, listed(bits), len(bits), False).tolist() == np.repeat(range(5), 2).tolist()


# --- what is certified


def test_certified_epsilon_covers_the_loss_and_is_below_what_was_asked() -> None:
    digits = F(1, 10**100)
    for index, (text, sensitivity, factor, *_) in enumerate(CASES["rates"]):
        rate, asked = core_rate(index), epsilon_of(text)
        multiplier, shift = oracle.rate(asked, int(sensitivity, 16), factor)
        rho = oracle.bits_per_unit((multiplier, shift))
        loss = factor * int(sensitivity, 16) * rho * F(oracle.LN_TWO) + oracle.slack(2**24)
        assert loss - digits <= rate.certified_epsilon_exact <= F(rate.certified_epsilon) <= asked
    assert len(CASES["rates"]) >= 5000


@pytest.mark.parametrize(("a", "b"), [(2, 1), (3, 2), (1001, 1000), (8000, 1), (10**38, 1)])
def test_certified_epsilon_of_a_logarithm(a: int, b: int) -> None:
    choice = ExponentialMechanism(epsilon=LogRatio(a, b), sensitivity=3)
    asked = oracle.logarithm(F(a, b))
    assert asked - F(1, 2**35) < F(choice.certified_epsilon) < asked


def test_the_reserve_of_a_rate_is_little_more_than_needed() -> None:
    assert F(9, 10**12) < oracle.slack(2**24) < F(1, 2**36)
    for epsilon in (2.0**-34, 0.1, 1.0, 44.0, 87.9):
        certified = F(ExponentialMechanism(epsilon=epsilon, sensitivity=1).certified_epsilon)
        assert F(epsilon) - F(6, 10**12) < certified < F(epsilon) - F(5, 10**12)


def all_weights(rate: _core.ExponentialRate, sensitivity: int) -> list[int]:
    return rate.weights(np.arange(rate.largest_gap + 2 * sensitivity + 2), False)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(F(1), 1), (F(1, 2), 2), (F(1, 10), 1), (F(3), 4)])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_worst_ratio_over_all_scores_is_within_epsilon(epsilon: F, sensitivity: int, monotone: bool) -> None:
    rate = _core.ExponentialRate(level_of(epsilon), sensitivity, monotone)
    worst = oracle.worst_ratio(all_weights(rate, sensitivity), sensitivity, 2**24, monotone)
    limit = exp_of(epsilon)[0]
    assert limit * (1 - F(15, 10**12)) < worst <= limit
    # The promise of one direction is needed, and half the noise is found out.
    half = _core.ExponentialRate(level_of(2 * epsilon), sensitivity, monotone)
    assert oracle.worst_ratio(all_weights(half, sensitivity), sensitivity, 2**24, monotone) > limit
    if monotone:
        assert oracle.worst_ratio(all_weights(rate, sensitivity), sensitivity, 2**24) > limit


# --- exact ratios of neighbors


def largest_excess(source: random.Random, *, halved: bool, monotone: bool, instances: int) -> tuple[F, int]:
    """The largest N_i / (e^epsilon N'_i) over random neighbors, and how many ratios that is over."""
    worst, compared = F(0), 0
    while compared < instances:
        epsilon = source.choice((F(1, 100), F(1, 10), F(1), F(5, 2), F(8), F(40)))
        sensitivity = source.choice((1, 2, 3, 17, 10**6))
        choice = ExponentialMechanism(
            epsilon=2 * epsilon if halved else epsilon,
            sensitivity=sensitivity,
            monotone=monotone,
            maximize=source.random() < 0.5,
        )
        count = source.randrange(2, 8)
        spread = source.choice((1, 2 * sensitivity, choice._rate.largest_gap + sensitivity))
        scores = np.array([source.randrange(-spread, spread + 1) for _ in range(count)])
        steps = [0 if monotone else -sensitivity, 0, sensitivity]
        moves = np.array([source.choice(steps) for _ in range(count)])
        p, q = choice.pmf(scores).weights, choice.pmf(scores + moves).weights
        for a, b in itertools.chain(zip(p, q, strict=True), zip(q, p, strict=True)):
            worst = max(worst, F(a, b) / exp_of(epsilon)[0])
            compared += 1
    return worst, compared


@pytest.mark.parametrize("monotone", [False, True])
def test_neighbors_are_within_epsilon_and_half_the_noise_is_not(monotone: bool) -> None:
    worst, compared = largest_excess(random.Random(5), halved=False, monotone=monotone, instances=12_000)
    print(f"{compared} exact ratios, the largest {float(worst - 1):.3g} above e^epsilon")
    assert compared >= 10_000
    assert 1 - F(1, 10**3) < worst <= 1
    assert largest_excess(random.Random(5), halved=True, monotone=monotone, instances=1000)[0] > 1


def test_monotone_is_for_changes_in_one_direction_only() -> None:
    # One candidate loses what another gains, as counts do when a user is replaced: nearly 2 epsilon.
    k = 2000
    scores, moved = np.ones(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    scores[0], moved[0] = 0, 1
    monotone = ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)
    ratio = F(monotone.pmf(scores).weights[0], monotone.pmf(moved).weights[0])
    assert exp_of(F(19988, 10**4))[1] < ratio < exp_of(F(19989, 10**4))[0]
    general = ExponentialMechanism(epsilon=1, sensitivity=1)
    assert F(general.pmf(scores).weights[0], general.pmf(moved).weights[0]) < exp_of(F(1))[0]


def test_replacing_a_group_costs_its_size() -> None:
    choice = ExponentialMechanism(epsilon="0.5", sensitivity=1)
    scores = np.array([80] + [0] * 30)
    for g in range(1, 6):
        moved = scores + np.array([g] + [-g] * 30)
        ratio = F(choice.pmf(scores).weights[0], choice.pmf(moved).weights[0])
        assert 1 - F(1, 10**6) < ratio / exp_of(F(g, 2))[0] <= 1


# --- through the auditor


def winner_of_counts(choice: ExponentialMechanism, universe: int) -> SymmetricAlgorithm:
    """Each user has one value; the candidates are the values, and their scores how many users have them."""

    def pmf(dataset: Any) -> Any:
        return choice.pmf(np.bincount([value for (value,) in dataset], minlength=universe))

    return SymmetricAlgorithm(range(universe), pmf)


def audit(choice: ExponentialMechanism, epsilon: Any) -> Any:
    return audit_user_level(
        winner_of_counts(choice, 2), universe=(0, 1), n_users=10, n_examples=1, epsilon=epsilon, delta=0
    )


def test_audits_of_the_most_frequent_value() -> None:
    choice = ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True)
    report = audit(choice, choice.certified_epsilon)
    assert report.holds
    assert 0.98 < report.epsilon.lower <= report.epsilon.upper <= 1
    assert audit(choice, "0.98").holds is False
    assert audit(ExponentialMechanism(epsilon=2, sensitivity=1, maximize=True), 1).holds is False
    assert audit(ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True, monotone=True), 1).holds is False


def test_audit_of_three_values_with_every_dataset() -> None:
    for epsilon, claimed, holds in [
        (1, 1, True),
        (2, 1, False),
        (F(1, 10), F(1, 10), True),
        (F(1, 5), F(1, 10), False),
    ]:
        algorithm = winner_of_counts(ExponentialMechanism(epsilon=epsilon, sensitivity=1, maximize=True), 3)
        arguments: dict[str, Any] = {"universe": (0, 1, 2), "n_users": 5, "n_examples": 1, "delta": 0}
        assert audit_user_level(algorithm, **arguments, epsilon=claimed).holds is holds


def test_audit_of_one_pair() -> None:
    algorithm = winner_of_counts(ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True), 3)
    x, y = ((0,), (1,), (2,)), ((0,), (0,), (2,))
    assert audit_pair(algorithm, x, y, epsilon=1, delta=0).holds
    assert audit_pair(algorithm, x, y, epsilon="0.3", delta=0).holds is False


def test_scores_far_above_the_best_are_as_unlikely_as_promised() -> None:
    choice = ExponentialMechanism(epsilon=1, sensitivity=1)
    scores = np.repeat(np.arange(60), 5)
    masses = choice.pmf(scores).weights
    for alpha in range(60):
        beyond = F(sum(mass for mass, score in zip(masses, scores, strict=True) if score > alpha), WHOLE)
        allowed = F(1001, 1000) * len(scores) / exp_of((1 - F(1, 2**36)) * alpha / 2)[1]
        assert beyond <= allowed
        assert math.isclose(
            float(choice.pmf([0, alpha]).weights[1] / WHOLE), 1 / (1 + math.exp(alpha / 2)), rel_tol=1e-9
        )


def test_seeded_draws_stay_what_they_are() -> None:
    # The first 128-bit words of ChaCha20 with the key 1, put through the reference's draw.
    scores = (np.arange(1000) ** 2 * 7919 + 13) % 1009
    mechanism = ExponentialMechanism(epsilon=0.1, sensitivity=3)
    expected = [537, 733, 934, 742, 616, 542, 318, 675]
    with pytest.warns(InsecureRandomnessWarning):
        assert mechanism.sample(scores, size=8, random_state=1).tolist() == expected
