"""DelStab as users meet it: parameters, releases, diagnostics, refusals."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio, Pmf
from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, SymmetricAlgorithm, finite_algorithm
from userdp.delstab import BOTTOM, DelStab, PmfBounds
from userdp.exceptions import BudgetError, InsecureRandomnessWarning

F = Fraction
CALIBRATIONS: tuple[Any, ...] = ("paper", "tight", "optimal")


def users(values: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple((value,) for value in values)


def noisy(kept: Any) -> list[Fraction]:
    ones = sum(user[0] for user in kept)
    weights = [F(1, 4 ** abs(output - ones)) for output in range(3)]
    return [weight / sum(weights) for weight in weights]


LABELED = finite_algorithm(range(3))(noisy)
SYMMETRIC = SymmetricAlgorithm(range(3), noisy)
ADDITIVE = AdditiveAlgorithm(
    range(3), lambda user: user[0], lambda total, n_users: noisy(((total,),)), statistic_range=(0, 1)
)
SMALL: dict[str, Any] = {"epsilon": LogRatio(8000, 1), "delta": "0.06"}
"""Four deletions."""


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": LogRatio(5, 5)}, ValueError, "epsilon must be > 0"),
        ({"epsilon": -1}, ValueError, "epsilon must be >= 0"),
        ({"epsilon": float("nan")}, ValueError, "epsilon"),
        ({"delta": 0}, ValueError, "delta must be > 0"),
        ({"delta": 1}, ValueError, "delta must be < 1"),
        ({"delta": 2}, ValueError, "delta must be in"),
        ({"delta": "1e-60"}, ValueError, "delta"),
        ({"delta": None}, TypeError, "delta"),
        (
            {"epsilon": LogRatio(10**40, 7), "calibration": "paper"},
            ValueError,
            "a third of epsilon.*what works is.*optimal",
        ),
        ({"epsilon": 3000}, ValueError, "limited to 256"),
        ({"calibration": "best"}, ValueError, "calibration must be"),
        ({"compatibility": "near"}, ValueError, "compatibility must be"),
        ({"compatibility": "distance"}, TypeError, "AdditiveAlgorithm"),
        ({"max_distinct_users": 0}, ValueError, "max_distinct_users"),
        ({"max_distinct_users": 1.5}, TypeError, "max_distinct_users"),
        ({"max_distinct_users": True}, TypeError, "max_distinct_users"),
    ],
    ids=str,
)
def test_refused_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        DelStab(SYMMETRIC, **{**SMALL, **arguments})


def test_refused_algorithms() -> None:
    with pytest.raises(TypeError, match="FiniteAlgorithm"):
        DelStab(lambda dataset: [1], **SMALL)
    with pytest.raises(ValueError, match="BOTTOM is among its outputs"):
        DelStab(SymmetricAlgorithm((0, BOTTOM), lambda kept: [1, 0]), **SMALL)


def test_bottom() -> None:
    assert repr(BOTTOM) == "BOTTOM"
    assert pickle.loads(pickle.dumps(BOTTOM)) is BOTTOM
    assert copy.deepcopy((BOTTOM,))[0] is copy.copy(BOTTOM) is type(BOTTOM)() is BOTTOM
    assert len({BOTTOM, "BOTTOM", None, 0, "⊥"}) == 5
    assert not any(other == BOTTOM for other in ("BOTTOM", None, 0, False, "⊥", object()))


def named(kept: Any) -> list[str]:
    return ["1/4", "3/4"]


def test_pickles() -> None:
    delstab = DelStab(SymmetricAlgorithm((0, 1), named), **SMALL)
    again = pickle.loads(pickle.dumps(delstab))
    assert repr(again) == repr(delstab)
    assert again.pmf(users((0,) * 6)) == delstab.pmf(users((0,) * 6))


# ------------------------------------------------------------------ distributions and releases


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("algorithm", [LABELED, SYMMETRIC, ADDITIVE], ids=["labeled", "multiset", "additive"])
def test_releases_follow_the_pmf(calibration: Any, algorithm: Any) -> None:
    delstab = DelStab(algorithm, **SMALL, calibration=calibration, compatibility="exact")
    people = users((0,) * (delstab.deletions - 1) + (1, 1))
    pmf = delstab.pmf(people)
    assert delstab.refusal_probability(people) == pmf.fractions()[-1]
    draws = 600
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        counts = Counter(delstab.release(people, random_state=seed) for seed in range(draws))
    assert set(counts) <= set(delstab.outputs)
    for output, mass in zip(pmf.outputs, pmf.probabilities.tolist(), strict=True):
        assert abs(counts[output] - draws * mass) <= 5 * (draws * mass * (1 - mass)) ** 0.5 + 3


def test_windows_release_what_they_state() -> None:
    delstab = DelStab(ADDITIVE, **SMALL)
    people = users((0, 0, 0, 0, 0, 1, 1))
    pmf = delstab.pmf(people)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        counts = Counter(delstab.release(people, random_state=seed) for seed in range(2000))
    for output, mass in zip(pmf.outputs, pmf.probabilities.tolist(), strict=True):
        assert abs(counts[output] - 2000 * mass) <= 5 * (2000 * mass * (1 - mass)) ** 0.5 + 3
    assert delstab.plan(7).engine == "additive"
    assert delstab.plan(7).compatibility == "distance"


def test_seeds_warn_and_entropy_does_not() -> None:
    delstab = DelStab(SYMMETRIC, **SMALL)
    people = users((0,) * 6)
    with pytest.warns(InsecureRandomnessWarning):
        delstab.release(people, random_state=7)
    assert delstab.release(people) in delstab.outputs


def test_engines_agree_on_one_algorithm() -> None:
    source = random.Random(11)
    scores = SummedScoreEM(("a", "b"), lambda user: (user[0], 1 - user[0]), epsilon=6, sensitivity=1)
    plain = SymmetricAlgorithm(("a", "b"), scores.pmf)
    ordered = finite_algorithm(("a", "b"))(scores.pmf)
    additive = AdditiveAlgorithm(
        ("a", "b"),
        lambda user: user[0],
        lambda total, n: scores.pmf(users((1,) * total + (0,) * (n - total))),
        statistic_range=(0, 1),
    )
    for _ in range(20):
        people = users(source.choices((0, 1), k=source.randint(4, 9)))
        made = [DelStab(algorithm, **SMALL, compatibility="exact") for algorithm in (scores, plain, ordered, additive)]
        pmfs = [delstab.pmf(people).fractions() for delstab in made]
        assert pmfs[0] == pmfs[1] == pmfs[2] == pmfs[3]
        assert len({delstab.smallest_stable_size(people) for delstab in made}) == 1
    assert [delstab.plan(8).engine for delstab in made] == ["multiset", "multiset", "labeled", "multiset"]


def test_float_masses_are_divided_by_their_sum() -> None:
    third = 1.0 / 3.0 * (1 + 1e-12)
    delstab = DelStab(SymmetricAlgorithm((0, 1, 2), lambda kept: [third, third, third]), **SMALL)
    assert delstab.pmf(users(range(8))).fractions() == [F(1, 3)] * 3 + [F(0)]


@pytest.mark.parametrize("extra", [0, 1])
def test_as_many_users_as_deletions(extra: int) -> None:
    """With n = D the algorithm runs on nobody, whoever is there."""
    for algorithm in (
        SymmetricAlgorithm((0, 1), lambda kept: [F(1, 2 + len(kept)), F(1 + len(kept), 2 + len(kept))]),
        finite_algorithm((0, 1))(lambda kept: [F(1, 2 + len(kept)), F(1 + len(kept), 2 + len(kept))]),
        AdditiveAlgorithm(
            (0, 1), lambda user: 0, lambda total, n: [F(1, 2 + n), F(1 + n, 2 + n)], statistic_range=(0, 3)
        ),
    ):
        delstab = DelStab(algorithm, **SMALL)
        expected = [F(1, 2), F(1, 2), F(0)] if extra == 0 else [F(1, 3), F(2, 3), F(0)]
        assert delstab.pmf(users(range(4 + extra))).fractions() == expected


def test_sizes_depend_on_public_numbers() -> None:
    with pytest.raises(ValueError, match=r"n_users=3; .* 4 users are left out"):
        DelStab(SYMMETRIC, **SMALL).release(users((0, 1, 1)))
    with pytest.raises(ValueError, match=r"n_users=15; .* 16 users are left out"):
        DelStab(SYMMETRIC, **SMALL, calibration="paper").release(users((0,) * 15))
    with pytest.raises(BudgetError, match=r"SymmetricAlgorithm .* AdditiveAlgorithm"):
        DelStab(LABELED, **SMALL).release(users((0,) * 200))
    with pytest.raises(BudgetError, match="max_distinct_users=40"):
        DelStab(SYMMETRIC, **SMALL, max_distinct_users=40).release(users((0,) * 200))
    wide = AdditiveAlgorithm((0,), lambda user: 0, lambda total, n: [1], statistic_range=(0, 10**6))
    with pytest.raises(BudgetError, match="narrower statistic_range"):
        DelStab(wide, **SMALL).release(users((0,) * 9))


def test_few_kept_sets_of_many_labeled_users() -> None:
    """Too many users for a grid of subsets, and one kept: a smallest vertex cover decides."""
    reveal = finite_algorithm((0, 1))(lambda kept: [1 - kept[0][0], kept[0][0]])
    delstab = DelStab(reveal, epsilon=1, delta="1e-2", calibration="tight")
    n = delstab.min_users
    assert n > 30
    assert delstab.plan(n).covered
    people = users((0,) * (n - 3) + (1,) * 3)
    assert delstab.smallest_stable_size(people) == 3
    assert delstab.pmf(people).fractions()[1] == 0


# ------------------------------------------------------------------ diagnostics


def test_bounds_enclose_the_exact_pmf() -> None:
    source = random.Random(3)
    for calibration in CALIBRATIONS:
        delstab = DelStab(SYMMETRIC, **SMALL, calibration=calibration)
        for _ in range(10):
            people = users(source.choices((0, 0, 0, 1), k=delstab.deletions + source.randint(1, 4)))
            exact, bounds = delstab.pmf(people), delstab.output_distribution(people, exact=False)
            if not isinstance(bounds, PmfBounds):
                assert exact.fractions()[-1] == 1  # refused surely
                continue
            assert bounds.outputs == exact.outputs
            for low, mass, high in zip(bounds.lower, exact.fractions(), bounds.upper, strict=True):
                assert F(float(low)) <= mass <= F(float(high))
            assert sum(bounds.upper - bounds.lower) <= 1e-12
            assert (bounds.engine, bounds.compatibility) == ("multiset", "exact")
            assert bounds.smallest_stable_size == delstab.smallest_stable_size(people)
            assert next(size for size, sets in enumerate(bounds.layer_sizes) if sets) == bounds.smallest_stable_size


def test_large_pmfs_come_as_bounds() -> None:
    outputs = range(4)
    wide = AdditiveAlgorithm(
        outputs,
        lambda user: user[0],
        lambda total, n: Pmf.from_weights([1 + abs(total - o) for o in outputs], outputs),
        statistic_range=(0, 3),
    )
    delstab = DelStab(wide, epsilon=1, delta="1e-2", compatibility="exact")
    people = users([0] * 30 + [1] * 20 + [2] * 20 + [3] * 20)
    bounds = delstab.output_distribution(people)
    assert isinstance(bounds, PmfBounds)
    assert sum(bounds.upper - bounds.lower) <= 1e-12
    with pytest.raises(ValueError, match="exact must be"):
        delstab.output_distribution(people, exact="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_explanations(calibration: Any) -> None:
    delstab = DelStab(SYMMETRIC, **SMALL, calibration=calibration)
    people = users((0,) * (delstab.deletions + 2) + (1,) * 4)
    found = delstab.explain(people)
    text = str(found)
    assert found.n_users == len(people)
    assert found.refusal_probability == delstab.refusal_probability(people)
    assert f"{delstab.deletions} are left out" in text
    assert found.worst_divergence is not None
    assert found.worst is not None
    if found.refusal_probability:
        assert "more users" in text
    else:
        assert found.advice == ()
    assert ("calibration='optimal'" in text) <= (calibration != "optimal")


def test_explanations_of_windows_and_failures() -> None:
    windows = DelStab(ADDITIVE, **SMALL).explain(users((0, 0, 0, 1, 1, 1)))
    assert (windows.spread, windows.engine, windows.compatibility) == (2, "additive", "distance")
    assert windows.distance is not None
    assert f"up to 2 apart; {windows.distance} is tolerated" in str(windows)
    broken = DelStab(SymmetricAlgorithm((0, 1), lambda kept: 1 / 0), **SMALL).explain(users((0,) * 6))
    assert broken.smallest_stable_size is None
    assert broken.refusal_probability == 1
    labeled = DelStab(LABELED, **SMALL).explain(users((0, 1, 1, 0, 1)))
    assert "positions" in str(labeled)


def test_shifted_ranges_and_clamped_statistics() -> None:
    """Only differences of totals matter, however far from zero they are."""
    far = 10**30
    near = AdditiveAlgorithm(range(3), lambda u: u[0], lambda total, n: noisy(((total,),)), statistic_range=(0, 1))
    shifted = AdditiveAlgorithm(
        range(3), lambda u: far + u[0], lambda total, n: noisy(((total - n * far,),)), statistic_range=(far, far + 1)
    )
    clamped = AdditiveAlgorithm(
        range(3), lambda u: 100 * u[0] - 5, lambda total, n: noisy(((total,),)), statistic_range=(0, 1)
    )
    people = users((0, 0, 1, 0, 1, 1, 0))
    pmfs = [DelStab(algorithm, **SMALL).pmf(people) for algorithm in (near, shifted, clamped)]
    assert pmfs[0] == pmfs[1] == pmfs[2]
