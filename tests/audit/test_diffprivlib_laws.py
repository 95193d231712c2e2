"""What diffprivlib 0.6.6 really draws: the laws of its mechanisms by `audit_sampler_law`, against counts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from secrets import SystemRandom
from typing import Any

import pytest

from userdp.audit import audit_sampler_law, audit_user_level

try:
    from diffprivlib.mechanisms import Binary, Exponential, Geometric
except ImportError:
    pytest.skip("needs diffprivlib, and a scikit-learn that it works with", allow_module_level=True)

F = Fraction
GRID = 2**53
WORLD: dict[str, Any] = {"universe": (0, 1), "n_users": 1, "n_examples": 1, "randomness": "random", "delta": 0}


class Fixed(SystemRandom):
    """Gives one number, for ever."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def random(self) -> float:
        return self.number


def counts(report: Any, value: int) -> dict[Any, int]:
    return {output: int(part * GRID) for output, part in report.law([(value,)])}


def exponential(gap: int) -> Callable[[Any, Any], int]:
    """Four candidates, of which one lags behind by the gap, or one less."""

    def mechanism(dataset: Any, rng: Any) -> int:
        made = Exponential(epsilon=1.0, sensitivity=1.0, utility=[0, dataset[0][0] - gap, 0, 0])
        made._rng = rng
        return int(made.randomise())

    return mechanism


@pytest.mark.parametrize("gap", [36, 60, 75])
def test_the_exponential_mechanism_draws_its_float_table(gap: int) -> None:
    """The multiples u of 2^-53 with u <= c_i first; what is left above the last sum falls to the last candidate."""
    report = audit_sampler_law(exponential(gap), **WORLD, epsilon=1, complete=True)
    assert report.unexplored == 0
    for value in (0, 1):
        sums = Exponential(epsilon=1.0, sensitivity=1.0, utility=[0, value - gap, 0, 0])._probabilities
        ends = [min(GRID, math.floor(F(float(edge)) * GRID) + 1) for edge in sums]
        ends[-1] = GRID
        cells = [max(0, end - start) for start, end in zip([0, *ends], ends, strict=False)]
        assert counts(report, value) == {place: cell for place, cell in enumerate(cells) if cell}
    if gap == 36:
        assert (counts(report, 0)[1], counts(report, 1)[1]) == (45_726_487, 75_390_232)
        assert report.runs <= 20
    if gap == 75:
        assert report.holds is False
        assert report.severity == "numerical"
        assert 1 not in counts(report, 0)
        assert counts(report, 1)[1] == 1


def test_the_binary_mechanism_exceeds_its_epsilon() -> None:
    def mechanism(dataset: Any, rng: Any) -> str:
        made = Binary(epsilon=1.0, value0="0", value1="1")
        made._rng = rng
        return str(made.randomise(str(dataset[0][0])))

    report = audit_sampler_law(mechanism, **WORLD, epsilon=1, complete=True)
    assert counts(report, 0) == {"0": 6_584_790_284_608_190, "1": 2_422_408_970_132_802}
    assert report.holds is False
    assert report.severity == "numerical"
    whole = audit_user_level(report.algorithm(), universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0)
    assert whole.exp_epsilon == F(6_584_790_284_608_190, 2_422_408_970_132_802)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_the_geometric_mechanism_is_not_pure() -> None:
    """The output falls or rises with u on either side of 1/2, where the logarithm is infinite."""

    def mechanism(dataset: Any, rng: Any) -> int:
        made = Geometric(epsilon=1.0)
        made._rng = rng
        return int(made.randomise(dataset[0][0]))

    report = audit_sampler_law(mechanism, **WORLD, epsilon=1, complete=True, monotone=True)
    assert report.unexplored == 0
    found = counts(report, 0)
    (raised,) = (output for output in found if not isinstance(output, int))
    assert str(raised).startswith("raises OverflowError")
    assert found.pop(raised) == 1
    assert (min(found), max(found)) == (-36, 36)
    assert abs(math.log2(report.worst_delta.upper) + 48.3) < 0.1
    assert report.severity == "numerical"
    # From u = 1/2 on, in both directions, the size of the output falls.
    source, half = random.Random(3), GRID // 2
    for _ in range(400):
        near = source.choice([source.randrange(1, half), 2 ** source.randrange(1, 50)])
        sign = source.choice([-1, 1])
        made = Geometric(epsilon=1.0)
        made._rng = Fixed((half + sign * near) * 2.0**-53)
        size = abs(made.randomise(0))
        larger = sum(found.get(sign * other, 0) for other in range(size + 1, 37))
        assert larger < near
        assert size == 0 or near <= larger + found[sign * size]
    assert sum(found.values()) + 1 == GRID
