"""Sparse histograms: copied cases, all small worlds in exact numbers, intervals from the distribution, and draws."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.distribution_draws import fits
from userdp import LogRatio
from userdp.accounting import PrivacyCost, PrivacyLedger, compose_basic, zcdp_delta
from userdp.exact.numbers import PrivacyLevel, parse_level
from userdp.mechanisms import KeySum, SparseHistogram, keyed_rho, keyed_sensitivity
from userdp.mechanisms.vanishing_keys import Keys, Shift, hockey_stick

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "keyed_release_cases.json").read_text())


def cases(kind: str) -> list[Any]:
    found = [pytest.param(case["given"], case["want"]) for case in CASES if case["kind"] == kind]
    assert found
    return found


def log(ratio: str | Fraction) -> LogRatio:
    exact = F(ratio)
    return LogRatio(exact.numerator, exact.denominator)


def near(found: Fraction, wanted: Fraction, relative: float = 1e-12) -> bool:
    """At or above what is right, and by so little."""
    return wanted * (1 - F(1, 10**15)) <= found <= wanted * (1 + F(relative))


# --- what one user changes


@pytest.mark.parametrize(("given", "want"), cases("sensitivity"))
def test_sensitivities_are_those_of_the_cases(given: dict[str, Any], want: list[int]) -> None:
    found = keyed_sensitivity(
        n_keys=given["n_keys"], max_keys=given["k"], low=given["lo"], high=given["hi"], neighbors=given["neighbors"]
    )
    assert [found.l1, found.l2_squared, found.linf] == want


def vectors(n_keys: int, max_keys: int, low: int, high: int) -> list[dict[int, int]]:
    """All that a user may have, with the ends and zero as values."""
    values = sorted({low, high, min(max(0, low), high)})
    return [
        dict(zip(keys, chosen, strict=True))
        for size in range(min(max_keys, n_keys) + 1)
        for keys in itertools.combinations(range(n_keys), size)
        for chosen in itertools.product(values, repeat=size)
    ]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 1), (-1, 1), (-1, 2), (1, 2), (-3, -1), (0, 0)])
def test_sensitivities_are_those_of_all_users(low: int, high: int, neighbors: Any) -> None:
    for n_keys, max_keys in itertools.product((1, 2, 3, 4), (1, 2, 3)):
        users = vectors(n_keys, max_keys, low, high)
        largest = [0, 0, 0]
        weighted = F(0)
        for one, other in itertools.product(users, users if neighbors == "replace" else [{}]):
            keys = one.keys() | other.keys()
            moves = [abs(one.get(key, 0) - other.get(key, 0)) for key in keys]
            norms = (sum(moves), sum(x * x for x in moves), max(moves, default=0))
            largest = [max(pair) for pair in zip(largest, norms, strict=True)]
            counts = sum((key in one) != (key in other) for key in keys)
            weighted = max(weighted, F(norms[1], 2 * 7) + F(counts, 2 * 5))
        found = keyed_sensitivity(n_keys=n_keys, max_keys=max_keys, low=low, high=high, neighbors=neighbors)
        assert [found.l1, found.l2_squared, found.linf] == largest
        both = [(1, 1, F(5)), (low, high, F(7))]
        assert keyed_rho(both, n_keys=n_keys, max_keys=max_keys, neighbors=neighbors) == weighted
    unknown = keyed_sensitivity(max_keys=2, low=low, high=high, neighbors=neighbors)
    assert unknown == keyed_sensitivity(n_keys=100, max_keys=2, low=low, high=high, neighbors=neighbors)


# --- delta


@pytest.mark.parametrize(("given", "want"), cases("sparse_delta_laplace"))
def test_delta_with_laplace_noise(given: dict[str, Any], want: str) -> None:
    mechanism = SparseHistogram(
        max_keys=given["k"],
        threshold=given["T"],
        epsilon=log(given["E"]),
        neighbors=given["neighbors"],
        epsilon_per_unit=log(given["E0"]),
    )
    assert near(mechanism.certified_delta, F(want))
    assert mechanism.is_private(log(given["E"]), F(want) * F(1001, 1000))
    assert not mechanism.is_private(log(given["E"]), F(want) * F(999, 1000))


@pytest.mark.parametrize(("given", "want"), cases("sparse_delta_gauss"))
def test_delta_with_gaussian_noise(given: dict[str, Any], want: str) -> None:
    mechanism = SparseHistogram(
        max_keys=given["k"],
        threshold=given["T"],
        epsilon=given["eps"],
        neighbors=given["neighbors"],
        sigma_squared=given["s2"],
    )
    assert near(mechanism.certified_delta * (1 + F(1, 10**15)), F(want))


@pytest.mark.parametrize(("given", "want"), cases("least_threshold_laplace"))
def test_least_thresholds(given: dict[str, Any], want: int) -> None:
    def private(threshold: int) -> bool:
        return SparseHistogram(
            max_keys=given["k"], threshold=threshold, epsilon=log(given["E"]), epsilon_per_unit=log(given["E0"])
        ).is_private(log(given["E"]), given["delta"])

    if want is None:
        assert not private(1000)
    else:
        assert private(want)
        assert not private(want - 1)


@pytest.mark.parametrize(("given", "want"), cases("group_by_delta"))
def test_delta_with_sums(given: dict[str, Any], want: str) -> None:
    low, high, replace = given["lo"], given["hi"], given["neighbors"] == "replace"
    counted, summed = parse_level(log(given["E0"])), parse_level(log(given["Ec"]))
    hidden = F(1)
    if given["T"] is not None:
        hidden = 1 - SparseHistogram(
            max_keys=1, threshold=given["T"], epsilon=1, epsilon_per_unit=log(given["E0"])
        ).release_probability(1)
    keys = Keys(
        given["k"],
        given["neighbors"],
        hidden,
        (Shift.laplace(counted, 1), Shift.laplace(summed, max(abs(low), abs(high)))),
        (Shift.laplace(summed, high - low),) if replace else (),
    )
    level = PrivacyLevel(F(given["E"]), F(0))
    # Rates without a common lattice are compared on a grid.
    assert near(keys.delta(level), F(want), 1e-12 if given["E0"] == given["Ec"] else 0.01)
    if given["T"] is None:
        return
    mechanism = SparseHistogram(
        max_keys=given["k"],
        threshold=given["T"],
        epsilon=log(given["E"]),
        neighbors=given["neighbors"],
        epsilon_per_unit=log(given["E0"]),
        sums=[KeySum(low, high, epsilon_per_unit=log(given["Ec"]))],
    )
    assert mechanism.certified_delta >= F(want)


def responses(ratio: Fraction, times: int, level: Fraction) -> Fraction:
    """The sum of [P - level Q]_+ for randomized responses."""
    return (
        sum(
            (math.comb(times, i) * max(F(0), ratio ** (times - i) - level * ratio**i) for i in range(times + 1)),
            F(0),
        )
        / (1 + ratio) ** times
    )


@pytest.mark.parametrize("level", [F(1, 50), F(1, 3), F(99, 100), F(1), F(3, 2), F(40)])
def test_levels_below_one_are_not_cut(level: Fraction) -> None:
    shift = Shift.laplace(parse_level(log("3/2")), 1)
    for times in (0, 1, 4):
        assert near(hockey_stick([(shift, times)], level), responses(F(3, 2), times, level), 1e-14)


@pytest.mark.parametrize(("sigma_squared", "amount", "epsilon"), [(2**10, 30, "1/2"), (2**12, 100, 1)])
def test_wide_discrete_noise_is_nearly_as_continuous_noise(sigma_squared: int, amount: int, epsilon: Any) -> None:
    wide = Shift.gaussian(F(sigma_squared), amount, listed=False)
    exact = Shift.gaussian(F(sigma_squared), amount)
    for level in (F(math.exp(float(F(epsilon)))), F(1, 3)):
        smooth, listed = hockey_stick([(wide, 1)], level), hockey_stick([(exact, 1)], level)
        assert listed <= smooth * (1 + F(1, 10**12)) + wide.distance * (1 + level)
        assert smooth <= listed * F(103, 100)


@pytest.mark.parametrize(("given", "want"), cases("random_subset_delta"))
def test_known_keys_chosen_by_secret_coins(given: dict[str, Any], want: dict[str, str]) -> None:
    """The bound holds for every choice of keys; the mixture has less, which is not what is claimed."""
    ratio, level, keys = F(given["E0"]), F(given["E"]), given["n_keys"]
    one = {True: ratio / (1 + ratio), False: 1 / (1 + ratio)}  # P[1 + Z >= 1] and P[Z >= 1]

    def law(mine: tuple[int, ...]) -> list[Fraction]:
        masses = [[one[key in mine], 1 - one[key in mine]] for key in range(keys)]
        return [math.prod(row, start=F(1)) for row in itertools.product(*masses)]

    subsets = list(itertools.combinations(range(keys), given["k"]))
    mixed = [sum(column, F(0)) / len(subsets) for column in zip(*map(law, subsets), strict=True)]
    without = law(())
    exact = max(
        sum((max(F(0), p - level * q) for p, q in zip(*pair, strict=True)), F(0))
        for pair in ((mixed, without), (without, mixed))
    )
    assert exact == F(want["exact"])
    bound = hockey_stick([(Shift.laplace(parse_level(log(ratio)), 1), given["k"])], level)
    assert near(bound, F(want["bound"]), 1e-14)
    assert exact < bound


# --- calibration


@pytest.mark.parametrize(
    ("max_keys", "neighbors", "most"),
    [
        (1, "add-remove", 13),
        (2, "add-remove", 25),
        (4, "add-remove", 36),
        (10, "add-remove", 58),
        (30, "add-remove", 104),
        (100, "add-remove", 196),
        (1, "replace", 24),
        (2, "replace", 35),
        (4, "replace", 50),
        (10, "replace", 81),
    ],
)
def test_thresholds_are_those_of_the_plan(max_keys: int, neighbors: Any, most: int) -> None:
    mechanism = SparseHistogram.calibrated(1, "1e-5", max_keys, neighbors=neighbors)
    assert mechanism.users_for("1/2") <= most
    assert mechanism.certified_delta <= F(1, 10**5)
    assert mechanism.is_private(1, "1e-5")


def test_targets_methods_and_weights() -> None:
    certain = SparseHistogram.calibrated(1, "1e-5", 4, target="0.999")
    assert certain.users_for("0.999") <= SparseHistogram.calibrated(1, "1e-5", 4).users_for("0.999")
    laplace = SparseHistogram.calibrated(1, "1e-5", 4, method="laplace")
    assert laplace.threshold == 51
    assert laplace.rho is None
    light = SparseHistogram.calibrated(1, "1e-5", 1, method="gaussian", sums=[(0, 2**20)], weights=[3, 1])
    assert light.certified_delta <= F(1, 10**5)
    # Three quarters of the budget: sigma is larger by a factor of 1.15.
    assert 17 < light.threshold <= 22
    assert pickle.loads(pickle.dumps(light)).certified_delta == light.certified_delta


# --- all small worlds: users who have keys, in exact numbers


def people(max_keys: int, n_keys: int = 3) -> list[tuple[int, ...]]:
    return [keys for size in range(max_keys + 1) for keys in itertools.combinations(range(n_keys), size)]


def worst_delta(
    mechanism: SparseHistogram, level: Fraction, neighbors: str, *, max_keys: int, each: int = 1, users: int = 4
) -> Fraction:
    """The largest delta of all neighbors; outcomes above what users reach are one, which loses nothing for Laplace."""
    top = max(mechanism.threshold, users * each) + (8 if mechanism.rho is not None else 0)
    kinds = people(max_keys)

    @cache
    def cells(count: int) -> tuple[int, ...]:
        """Of a key of so many users, over one total."""
        pmf = mechanism.pmf([count], largest=top)
        masses = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
        hidden = masses.get((), F(0))
        shown = [masses.get(((0, number),), F(0)) for number in range(mechanism.threshold, top + 1)]
        return tuple(math.floor(mass * 2**200) for mass in (hidden, *shown))

    @cache
    def law(counts: tuple[int, ...]) -> list[int]:
        return [math.prod(cell) for cell in itertools.product(*(cells(count) for count in counts))]

    def counted(world: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        return tuple(each * sum(key in user for user in world) for key in range(3))

    def delta(p: list[int], q: list[int]) -> Fraction:
        a, b = level.numerator, level.denominator
        return F(sum(max(0, b * x - a * y) for x, y in zip(p, q, strict=True)), b * 2**600)

    pairs = set()
    for rest in itertools.combinations_with_replacement(kinds, users - 1):
        for one, other in (
            itertools.combinations(kinds, 2) if neighbors == "replace" else ((kind, None) for kind in kinds)
        ):
            pair = counted((*rest, one)), counted(rest if other is None else (*rest, other))
            # Keys have no names: one order of them is all.
            pairs.add(tuple(sorted(zip(*pair, strict=True))))
    worlds = [tuple(zip(*pair, strict=True)) for pair in pairs]
    return max(max(delta(law(p), law(q)), delta(law(q), law(p))) for p, q in worlds)


def parameters() -> Iterator[tuple[dict[str, Any], Fraction]]:
    for ratio, threshold, keys, neighbors in itertools.product(
        ("3/2", "2", "3"), (2, 3, 4), (1, 2), ("add-remove", "replace")
    ):
        # Where noise is small, levels at which the threshold counts.
        level = {"3/2": F(2), "2": F(2 if neighbors == "add-remove" else 4), "3": F(9 if keys == 1 else 81)}[ratio]
        arguments = {"threshold": threshold, "max_keys": keys, "neighbors": neighbors}
        yield {"epsilon_per_unit": log(ratio), **arguments}, level
    for threshold, keys, neighbors in (
        (2, 1, "add-remove"),
        (3, 2, "add-remove"),
        (2, 1, "replace"),
        (2, 2, "replace"),
    ):
        yield {"sigma_squared": 2, "threshold": threshold, "max_keys": keys, "neighbors": neighbors}, F(2)


WORLDS = list(parameters())


@pytest.mark.parametrize("place", range(len(WORLDS)))
def test_small_worlds_hold_and_fail_when_a_constant_is_spoilt(place: int) -> None:
    arguments, level = WORLDS[place]
    neighbors, keys = arguments["neighbors"], arguments["max_keys"]
    mechanism = SparseHistogram(epsilon=log(level), **arguments)
    claim = mechanism.certified_delta
    assert worst_delta(mechanism, level, neighbors, max_keys=keys) <= claim + F(1, 2**190)
    lower = SparseHistogram(epsilon=log(level), **{**arguments, "threshold": arguments["threshold"] - 1})
    spoilt = {
        "threshold": worst_delta(lower, level, neighbors, max_keys=keys),
        "shift": worst_delta(mechanism, level, neighbors, max_keys=keys, each=2),
        "keys": worst_delta(mechanism, level, neighbors, max_keys=keys + 1),
    }
    print({name: float(found / claim) for name, found in spoilt.items()})
    assert min(spoilt.values()) > claim


@pytest.mark.parametrize(
    ("low", "high", "threshold", "neighbors", "ratio"),
    [
        (-1, 1, 2, "add-remove", "2"),
        (-2, 1, 2, "add-remove", "2"),
        (-1, 1, 2, "replace", "3/2"),
    ],
)
def test_small_worlds_with_sums(low: int, high: int, threshold: int, neighbors: Any, ratio: str) -> None:
    """All pairs of neighbors of two users with two keys, one each, and the ends as values."""
    level, users = F(6, 5), 2
    rate = parse_level(log(ratio))
    made = SparseHistogram(
        max_keys=1,
        threshold=threshold,
        epsilon=log(level),
        neighbors=neighbors,
        epsilon_per_unit=log(ratio),
        sums=[KeySum(low, high, epsilon_per_unit=log(ratio))],
    )
    shifts = Shift.laplace(rate, 1), Shift.laplace(rate, max(-low, high))
    common = (Shift.laplace(rate, high - low),) if neighbors == "replace" else ()
    claim = Keys(1, neighbors, 1 - made.release_probability(1), shifts, common).delta(PrivacyLevel(level, F(0)))
    # One pure loss for the numbers of a key is a bound of that.
    assert claim <= made.certified_delta

    def worst(times: int) -> Fraction:
        kinds: list[dict[int, int]] = [{}, *({key: value} for key in (0, 1) for value in (low, high))]
        top, most = max(threshold, users), 4 * users * max(-low, high)

        @cache
        def law(*world: tuple[int, int]) -> dict[Any, Fraction]:
            counts, totals = zip(*world, strict=True)
            pmf = made.pmf(list(counts), [list(totals)], largest=top, largest_sum=most)
            return dict(zip(pmf.outputs, pmf.fractions(), strict=True))

        def numbers(world: list[dict[int, int]]) -> tuple[tuple[int, int], ...]:
            return tuple(
                (sum(key in user for user in world), times * sum(user.get(key, 0) for user in world)) for key in (0, 1)
            )

        found = F(0)
        for rest, one in itertools.product(kinds, repeat=2):
            for other in kinds if neighbors == "replace" else [{}]:
                p, q = law(*numbers([rest, one])), law(*numbers([rest, other]))
                for a, b in ((p, q), (q, p)):
                    found = max(
                        found, sum((max(F(0), mass - level * b.get(out, F(0))) for out, mass in a.items()), F(0))
                    )
        return found

    print(float(worst(1) / claim), float(worst(4) / claim))
    assert worst(1) <= claim + F(1, 2**60)
    assert worst(4) > claim


@pytest.mark.parametrize(("given", "want"), cases("small_world_delta"))
def test_small_worlds_of_the_cases(given: dict[str, Any], want: dict[str, Any]) -> None:
    mechanism = SparseHistogram(
        max_keys=given["k"],
        threshold=given["T"],
        epsilon=log(given["E"]),
        neighbors=given["neighbors"],
        epsilon_per_unit=log(given["E0"]),
    )
    assert mechanism.certified_delta >= F(want["delta"])


# --- the distribution


@pytest.mark.parametrize(("given", "want"), cases("group_by_law"))
def test_distributions_of_the_cases(given: dict[str, Any], want: list[Any]) -> None:
    mechanism = SparseHistogram(max_keys=given["k"], threshold=given["T"], epsilon=1, epsilon_per_unit=log(given["E0"]))
    counts: dict[str, int] = {}
    for user in given["users"]:
        for key in sorted({row[0] for row in user})[: given["k"]]:
            counts[key] = counts.get(key, 0) + 1
    pmf = mechanism.pmf(counts, largest=max(given["top"], given["T"]))
    found = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
    wanted = {tuple((key, value) for key, value in outcome): F(mass) for outcome, mass in want}
    assert found.keys() == wanted.keys()
    assert all(abs(found[outcome] - mass) < F(1, 10**15) for outcome, mass in wanted.items())


def test_the_example_that_is_computed_by_hand() -> None:
    mechanism = SparseHistogram(max_keys=2, threshold=2, epsilon=log("3"), epsilon_per_unit=LogRatio(2))
    assert abs(mechanism.release_probability(1) - F(1, 3)) < F(1, 2**60)
    assert abs(mechanism.release_probability(2) - F(2, 3)) < F(1, 2**60)
    assert mechanism.release_probability(0) == 0
    assert near(mechanism.certified_delta, F(5, 9), 1e-15)
    pmf = mechanism.pmf({"a": 2, "b": 1}, largest=2)
    shown = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
    assert abs(shown[("a", 2), ("b", 2)] - F(2, 9)) < F(1, 2**60)
    alone = mechanism.pmf({"a": 1, "b": 0}, largest=2)
    assert alone.outputs == ((), (("a", 2),))


SHOWN = [
    SparseHistogram(max_keys=1, threshold=13, epsilon=1, scale=1),
    SparseHistogram(max_keys=10, threshold=58, epsilon=1, sigma_squared=140),
]


@pytest.mark.parametrize("mechanism", SHOWN, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("level", ["0.95", "1/2"])
def test_intervals_cover_among_the_times_that_a_key_is_shown(mechanism: SparseHistogram, level: str) -> None:
    threshold = mechanism.threshold
    reach = range(threshold, threshold + 150)
    intervals = {count: mechanism.interval(count, level) for count in reach}
    for users in [1, 3, *range(threshold - 5, threshold + 6), threshold + 40]:
        shown = mechanism.release_probability(users)
        tails = {count: mechanism.noise.tail(count - users) for count in (*reach, reach.stop)}
        covered = sum(
            tails[count] - tails[count + 1] for count in reach if intervals[count][0] <= users <= intervals[count][1]
        )
        assert covered / shown >= F(level) - F(1, 10**6)  # of what lies beyond
    # The interval that forgets the threshold does not cover.
    assert intervals[threshold][0] == 1
    if level == "0.95" and mechanism is SHOWN[1]:
        tails = {count: mechanism.noise.tail(count - 35) for count in (*reach, reach.stop)}
        naive = sum(tails[count] - tails[count + 1] for count in reach if abs(count - 35) <= 1.96 * math.sqrt(140))
        assert naive / mechanism.release_probability(35) < F(1, 2)


def test_intervals_have_no_users_that_cannot_be_shown() -> None:
    made = SparseHistogram(max_keys=1, threshold=200, epsilon=1, sigma_squared=1)
    for count in (200, 203, 250):
        low, high = made.interval(count)
        assert count - 12 <= low <= count <= high <= count + 12
        assert made.release_probability(low)
    far = SparseHistogram(max_keys=1, threshold=2**31, epsilon=1, sigma_squared=100)
    assert far.interval(2**31)[0] >= 2**31 - 120


@pytest.mark.parametrize("below", [0, 3, 60])
def test_intervals_of_counts_that_are_clamped_end(below: int) -> None:
    made = SparseHistogram(max_keys=1, threshold=10, epsilon=1, scale=2)
    low, high = made.interval(2**32 - below)
    assert 2**32 - below - 20 < low <= 2**32 - below <= high <= 2**32


def test_users_for_a_probability() -> None:
    for mechanism in SHOWN:
        for wanted in ("0.001", "1/2", "0.95", "0.999999"):
            users = mechanism.users_for(wanted)
            assert mechanism.release_probability(users) >= F(wanted)
            assert users == 1 or mechanism.release_probability(users - 1) < F(wanted)


# --- draws


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("noise", "wrong"),
    [
        ({"epsilon_per_unit": LogRatio(2)}, {"epsilon_per_unit": LogRatio(7, 4)}),
        ({"sigma_squared": 3}, {"sigma_squared": "3.5"}),
    ],
    ids=["laplace", "gaussian"],
)
def test_draws_are_of_the_distribution(noise: Any, wrong: Any) -> None:
    number, top = 10**6, 14
    made = SparseHistogram(max_keys=1, threshold=3, epsilon=1, **noise)
    places, released = made.sample(np.full(number, 4))
    assert places.size == released.size <= number
    seen = [number - released.size, *np.bincount(np.minimum(released, top), minlength=top + 1)[3:].tolist()]

    def fitting(mechanism: SparseHistogram) -> bool:
        pmf = mechanism.pmf([4], largest=top)
        masses = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
        return fits(seen, [masses[()], *(masses[((0, count),)] for count in range(3, top + 1))], number)

    assert fitting(made)
    assert not fitting(SparseHistogram(max_keys=1, threshold=3, epsilon=1, **wrong))


@pytest.mark.filterwarnings("ignore::userdp.exceptions.InsecureRandomnessWarning")
def test_releases_are_in_canonical_order_and_of_shown_keys() -> None:
    mechanism = SparseHistogram(
        max_keys=3, threshold=20, epsilon=1, sigma_squared=4, sums=[KeySum(-2, 2, sigma_squared=1)]
    )
    counts = {"z": 500, 10: 600, 9: 700, ("a", 2): 800, "never": 0, "less": -3, b"x": 1}
    totals = {"z": 50, 10: 60, 9: -70}
    released = mechanism.sample(counts, [totals], random_state=3)
    assert list(released) == [9, 10, "z", ("a", 2)]
    for key, (count, total) in released.items():
        assert abs(count - counts[key]) < 40
        assert abs(total - totals.get(key, 0)) < 20
    places, numbers, sums = mechanism.sample([500, 0, 700], [[5, 6, 7]], random_state=3)
    assert places.tolist() == [0, 2]
    assert numbers.shape == sums.shape == (2,)
    pmf = SparseHistogram(max_keys=1, threshold=2, epsilon=1, scale=1, sums=[KeySum(0, 1, scale=1)]).pmf(
        {"a": 1}, [{"a": 1}], largest=3, largest_sum=2
    )
    assert sum(pmf.fractions()) == 1
    assert len(pmf.outputs) == 1 + 2 * 5


# --- what it costs


def test_cost_states_a_delta_beside_rho() -> None:
    mechanism = SparseHistogram(max_keys=10, threshold=58, epsilon=1, sigma_squared=140)
    cost = mechanism.cost
    assert cost.epsilon == 1
    assert cost.delta == mechanism.certified_delta
    assert cost.rho == F(10, 280)
    hidden = 1 - mechanism.release_probability(1)
    assert near(cost.added_delta, 1 - hidden**10, 1e-60)
    assert cost.added_delta >= 1 - hidden**10
    assert cost.distance == 10 * mechanism.noise.distance
    assert cost.zcdp() == (cost.rho, cost.added_delta, cost.distance)
    # The joint account is below the account in two parts.
    for epsilon in ("1/2", 1, 2):
        two = cost.added_delta + (1 - cost.added_delta) * zcdp_delta(cost.rho, epsilon, distance=cost.distance)
        assert mechanism.delta(epsilon) <= two
    ledger = PrivacyLedger(epsilon=2, delta="1e-4", composition="zcdp", neighbors="add-remove", added_delta="5e-5")
    ledger.spend(mechanism, "users by key")
    assert ledger.spent["delta"] == cost.added_delta
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.entries[0].cost == cost
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert "added_delta" in repr(cost)
    twice = compose_basic(PrivacyCost(rho=cost.rho, added_delta=cost.added_delta), cost, PrivacyCost("1/10"))
    assert twice.rho == 2 * cost.rho + F(1, 200)
    assert twice.added_delta == 2 * cost.added_delta
    assert twice.epsilon is None
    replaced = SparseHistogram(max_keys=10, threshold=81, epsilon=1, neighbors="replace", sigma_squared=279)
    assert replaced.rho == F(10, 279)
    assert replaced.distance == 20 * replaced.noise.distance
    with pytest.raises(ValueError, match="needs epsilon"):
        PrivacyCost(added_delta="1/10")
    with pytest.raises(ValueError, match="added_delta belongs to a rho or a mu2"):
        PrivacyCost(1, "1/10", added_delta="1/10")


# --- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SparseHistogram(max_keys=0, threshold=1, epsilon=1, scale=1), "max_keys"),
        (lambda: SparseHistogram(max_keys=5000, threshold=1, epsilon=1, scale=1), "max_keys"),
        (lambda: SparseHistogram(max_keys=1, threshold=0, epsilon=1, scale=1), "threshold"),
        (lambda: SparseHistogram(max_keys=1, threshold=1, epsilon=0, scale=1), "epsilon"),
        (lambda: SparseHistogram(max_keys=1, threshold=1, epsilon=1), "exactly one of scale"),
        (lambda: SparseHistogram(max_keys=1, threshold=1, epsilon=1, scale=1, sigma_squared=1), "exactly one of"),
        (lambda: SparseHistogram(max_keys=1, threshold=1, epsilon=1, scale=1, neighbors="both"), "neighbors"),  # type: ignore[arg-type]
        (lambda: SparseHistogram(max_keys=1, threshold=1, epsilon=1, scale=1, sums=[(0, 1)]), "sums"),  # type: ignore[list-item]
        (lambda: KeySum(0, 0, scale=1), "low and high"),
        (lambda: KeySum(1, 0, scale=1), "low and high"),
        (lambda: SparseHistogram.calibrated(1, 0, 1), "delta"),
        (lambda: SparseHistogram.calibrated(1, "1e-5", 1, method="none"), "method"),  # type: ignore[arg-type]
        (lambda: SparseHistogram.calibrated(1, "1e-5", 1, weights=[1, 2]), "weights"),
        (lambda: SHOWN[0].interval(12), "threshold=13"),
        (lambda: SHOWN[0].sample("abc"), "mappings or arrays"),  # type: ignore[arg-type]
        (lambda: SHOWN[0].sample({None: 3}), "keys of counts"),
        (lambda: SHOWN[0].sample({"a": 1.5}), "must be ints"),  # type: ignore[dict-item]
        (lambda: SHOWN[0].sample([1, 2], [[1, 2]]), "sums must be 0"),
        (lambda: SHOWN[0].pmf([1, 2]), "outputs"),
        (lambda: SHOWN[0].users_for(1), "probability"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call()


@pytest.mark.parametrize("max_keys", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_listed_keys_are_within_the_same_account(max_keys: int, neighbors: Any) -> None:
    """All neighbors of up to two users with three keys, of which "z" is always shown; half of the noise fails."""
    keys, largest = ("a", "b", "z"), 4
    users = [user for size in range(max_keys + 1) for user in itertools.combinations(keys, size)]

    laws: dict[Any, dict[Any, Fraction]] = {}

    def law(made: SparseHistogram, world: tuple[tuple[str, ...], ...]) -> dict[Any, Fraction]:
        counts = {one: sum(one in user for user in world) for one in keys}
        name = (repr(made), *counts.values())
        if name not in laws:
            pmf = made.pmf(counts, largest=largest, least=0, listed=["z"])
            laws[name] = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
        return laws[name]

    def worst(made: SparseHistogram, level: Fraction) -> Fraction:
        found = Fraction(0)
        for rest in [(), *((user,) for user in users)]:
            pairs = (
                [((*rest, user), rest) for user in users]
                if neighbors == "add-remove"
                else [((*rest, one), (*rest, two)) for one, two in itertools.combinations(users, 2)]
            )
            for first, second in pairs:
                p, q = law(made, first), law(made, second)
                assert all(any(key == "z" for key, _ in shown) for shown in p)
                for one, two in ((p, q), (q, p)):
                    loss = sum(
                        (max(m - level * two.get(o, Fraction(0)), Fraction(0)) for o, m in one.items()), Fraction(0)
                    )
                    found = max(found, loss)
        return found

    def made(rate: LogRatio) -> SparseHistogram:
        return SparseHistogram(
            max_keys=max_keys, threshold=3, epsilon=LogRatio(2), epsilon_per_unit=rate, neighbors=neighbors
        )

    claim = made(LogRatio(2)).certified_delta
    assert worst(made(LogRatio(2)), Fraction(2)) <= claim
    assert worst(made(LogRatio(4)), Fraction(2)) > claim


def test_listed_keys_are_always_shown() -> None:
    made = SparseHistogram(max_keys=1, threshold=2**20, epsilon=1, sigma_squared=4, sums=[KeySum(-1, 1, scale=2)])
    shown = made.sample({"x": 3}, [{"x": 1}], listed=["y", "x"])
    assert list(shown) == ["x", "y"]
    places, counts, totals = made.sample(np.array([0, 5, 7]), [np.array([0, 1, 2])], listed=[2, 0])
    assert places.tolist() == [0, 2]
    assert len(counts) == len(totals) == 2
    with pytest.raises(ValueError, match="listed must be places"):
        made.sample(np.array([1]), [np.array([1])], listed=[1])
    with pytest.raises(TypeError, match="listed must be a sequence"):
        made.sample({"x": 3}, [{}], listed="x")
    with pytest.raises(ValueError, match="least <= largest"):
        SparseHistogram(max_keys=1, threshold=2, epsilon=1, scale=1).pmf({"x": 1}, listed=["x"])


@pytest.mark.parametrize("method", ["auto", "laplace", "gaussian"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-40", "1e-30"])
def test_what_is_advised_for_a_tiny_delta_helps(delta: str, method: str) -> None:
    with pytest.raises(ValueError, match="take a larger delta, such as 1e-19: at any epsilon"):
        SparseHistogram.calibrated(1, delta, max_keys=3, method=method)
    assert SparseHistogram.calibrated(1, "1e-19", max_keys=3, method=method).certified_delta <= Fraction(1, 10**19)
