"""Arguments of the samplers are what they were when they were given."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from userdp.mechanisms import BiasedCoin, DiscreteLaplace, ExponentialMechanism, TruncatedDiscreteLaplace


@pytest.mark.parametrize(
    "make",
    [
        lambda number: ExponentialMechanism(epsilon=number, sensitivity=1),
        lambda number: DiscreteLaplace(epsilon=number, sensitivity=1, bounds=(0, 9)),
        lambda number: DiscreteLaplace(scale=number, bounds=(0, 9)),
        lambda number: TruncatedDiscreteLaplace(epsilon=number, delta="1e-6"),
        lambda number: BiasedCoin(probability=number),
    ],
)
def test_a_changed_array_changes_nothing(make: Callable[[Any], Any]) -> None:
    number = np.array(0.5)
    sampler = make(number)
    shown = repr(sampler)
    number[...] = 0.75
    again = pickle.loads(pickle.dumps(sampler))
    assert repr(sampler) == repr(again) == shown
    assert "0.5" in shown
    if hasattr(sampler, "certified_epsilon_per_unit"):
        assert again.certified_epsilon_per_unit == sampler.certified_epsilon_per_unit
    elif hasattr(sampler, "certified_epsilon"):
        assert again.certified_epsilon == sampler.certified_epsilon <= 0.5
