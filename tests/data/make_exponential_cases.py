"""Write exponential_mechanism_cases.json from a reference implementation: make_exponential_cases.py REFERENCE.py.

The reference is any module with em_rate(epsilon, sensitivity, factor) -> (multiplier, shift, largest gap),
em_weight(gap, rate), em_pmf(scores, rate) -> numerators over 2^128, and em_draw(scores, rate, bits) -> index.
Numbers are hexadecimal, but for scores, indices and shifts.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

RATES = 5200
WEIGHTS = 8400
LAWS = 240
DRAWS_OF_A_LAW = 28
# k, and the scores (i i 7919 + 13) mod 1009.
LONG_LAWS = [255, 256, 257, 1000, 4096, 4097, 5000]


def load(path: str) -> Any:
    specification = importlib.util.spec_from_file_location("reference", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def level(source: random.Random) -> tuple[str, Fraction]:
    """An epsilon in (2^-35, 88), as a hexadecimal float or as a fraction."""
    while True:
        if source.random() < 0.7:
            value = source.uniform(1, 2) * 2.0 ** source.randrange(-35, 7)
            text, exact = value.hex(), Fraction(value)
        else:
            exact = Fraction(source.randrange(1, 10**4), 10 ** source.randrange(2, 9))
            text = f"{exact.numerator}/{exact.denominator}"
        if Fraction(1, 2**35) < exact < 88:
            return text, exact


def main() -> None:
    reference = load(sys.argv[1])
    source = random.Random(20240229)
    fixed = [("0x1.999999999999ap-4", Fraction(0.1), 3, 2), ("1/1", Fraction(1), 1, 2), ("1/1", Fraction(1), 1, 1)]
    for text in ("222/5", "443/10", "45/2", "30/1", "87/1"):  # on both sides of the cap at 64 bits
        fixed += [(text, Fraction(text), 1, factor) for factor in (1, 2)]
    parameters = list(fixed)
    while len(parameters) < RATES:
        text, epsilon = level(source)
        sensitivity = source.randrange(1, 2 ** source.choice((1, 1, 2, 4, 10, 20, 40, 62)))
        parameters.append((text, epsilon, sensitivity, source.choice((1, 2))))
    rates, found = [], []
    for text, epsilon, sensitivity, factor in parameters:
        rate = reference.em_rate(epsilon, sensitivity, factor)
        found.append(rate)
        rates.append([text, f"{sensitivity:x}", factor, f"{rate[0]:x}", rate[1], f"{rate[2]:x}"])

    weights: list[Any] = []
    for index in itertools.cycle(range(0, RATES, 13)):
        largest = found[index][2]
        gaps = [0, 1, max(largest - 1, 0), largest, min(largest + 1, 2**64 - 1), 2**64 - 1]
        gaps += [source.randrange(largest + 1) for _ in range(15)]
        weights.append(
            [index, [f"{gap:x}" for gap in gaps], [f"{reference.em_weight(gap, found[index]):x}" for gap in gaps]]
        )
        if 21 * len(weights) >= WEIGHTS:
            break

    def law(index: int, scores: list[int], draws: int, *, listed: bool) -> dict[str, Any]:
        rate = found[index]
        pmf = reference.em_pmf(scores, rate)
        ends = list(itertools.accumulate(pmf))
        bits = [0, 2**128 - 1]
        for end in source.sample(ends[:-1], min(len(ends) - 1, draws // 4)):
            bits += [end - 1, end, end + 1]
        bits += [source.randrange(2**128) for _ in range(draws - len(bits))]
        bits = [u for u in bits if u < 2**128][: max(draws, 1)]
        return {
            "rate": index,
            "scores": scores if listed else len(scores),
            "pmf": [f"{n:x}" for n in pmf] if listed else [f"{pmf[0]:x}", f"{pmf[-1]:x}"],
            "draws": [[f"{u:x}", reference.em_draw(scores, rate, u)] for u in bits],
        }

    laws = []
    for number in range(LAWS):
        index = number if number < len(fixed) else source.randrange(RATES)
        largest = found[index][2]
        count = source.choice((1, 2, 3, 5, 8, 13, 20))
        spread = source.choice((1, 3, largest // 8 + 1, largest, 2**63))
        scores = [max(min(source.randrange(-spread, spread + 1), 2**63 - 1), -(2**63)) for _ in range(count)]
        laws.append(law(index, scores, DRAWS_OF_A_LAW, listed=True))
    for number, count in enumerate(LONG_LAWS):
        scores = [(i * i * 7919 + 13) % 1009 for i in range(count)]
        laws.append(law(number % 3, scores, 40, listed=False))

    content = {
        "command": "python tests/data/make_exponential_cases.py REFERENCE.py",
        "rates": rates,
        "weights": weights,
        "laws": laws,
    }
    target = Path(__file__).parent / "exponential_mechanism_cases.json"
    target.write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
