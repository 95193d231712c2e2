"""What fuzzing kept is run again, and so are changes of it that are drawn at random: no coverage, in seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from fuzz.corpus import TARGETS, read

CHANGED = 600


def inputs(name: str) -> Iterator[bytes]:
    """Changes of kept inputs, the same ones in every run."""
    source, kept = random.Random(name), read(name)
    while True:
        try:
            yield TARGETS[name].alter(source.choice(kept), source)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):  # no JSON, after earlier changes
            continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    kept = read(name)
    assert len(kept) >= 10
    assert 10 * sum(map(TARGETS[name].run, kept)) >= 3 * len(kept)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name: str) -> None:
    past = sum(map(TARGETS[name].run, itertools.islice(inputs(name), CHANGED)))
    assert 10 * past >= 2 * CHANGED
