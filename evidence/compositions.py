"""Evidence that bounds of exact composition are true: many random compositions beside independent truths.

    python evidence/compositions.py lattices --cases 100000 --results FILE
    python evidence/compositions.py pairs --cases 2000 --results FILE
    python evidence/compositions.py certificates --cases 10000 --results FILE

Cases are made in chunks, each from its own seed. FILE gets a line of JSON for each chunk, and chunks that it has
already are left out, so that a run can be stopped and started again. At the end the totals of all chunks are printed.

What is compared with:

* **lattices**: powers of polynomials in exact integers, for deltas from 1e-6 to 1e-300, and logarithms in 60 digits.
* **pairs**: all outcomes one by one, where these are few. Else delta(e) = 1 / (2 pi i) times the integral of
  M(s) e^(-s e) / (s (s + 1)) over Re s = a > 0, for M(s) = E e^(s L): 1 - e^-x has the Laplace transform
  1 / (s (s + 1)). M of a composition is a product, so that neither convolutions nor grids enter. The trapezoidal rule
  in complex doubles is good to about 1e-9 of delta. Where it does not converge, and for fewer than 24 outcomes,
  another case is drawn.
* **certificates**: claims that were made stronger than what was certified. All are rejected.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from userdp.accounting import PrivacyLossDistribution
from userdp.divergence import LogRatio
from userdp.exceptions import BudgetError

DIGITS = Context(prec=60)
FEWEST = 24
"""Outcomes for which the transform is used: with fewer it may come back to its first size, however far out."""
QUIET = 8
"""Blocks of small terms after which the rest of the integral is left out."""
MOST_WAYS = 10**6
"""Outcomes of a composition that are enumerated."""
NEAR = 1e-7
"""What the trapezoidal rule may be off, as a share of delta: a hundred times what it is."""


def power(coefficients: list[int], exponent: int) -> list[int]:
    """The coefficients of a power of a polynomial, by one product of integers for each squaring."""
    width = (exponent * max(sum(coefficients).bit_length(), 1) + 8) // 8 * 8
    packed = sum(value << (width * place) for place, value in enumerate(coefficients)) ** exponent
    length = (len(coefficients) - 1) * exponent + 1
    data = packed.to_bytes(length * width // 8 + 1, "little")
    step = width // 8
    return [int.from_bytes(data[place * step : (place + 1) * step], "little") for place in range(length)]


class Lattice:
    """The curve of a composition whose losses are ln(offset ratio^i), in integers."""

    def __init__(self, weights: list[int], offset: Fraction, ratio: Fraction, count: int) -> None:
        self.masses, self.total = power(weights, count), sum(weights) ** count
        self.offset, self.ratio = offset**count, ratio

    def level(self, place: int) -> Fraction:
        return self.offset * self.ratio**place

    def lines(self) -> Iterator[tuple[int, int, Fraction]]:
        """From the top: a place, the mass from there on, and the mass of Q there, both as shares of `total`."""
        above, weighted = 0, Fraction(0)
        numerator, denominator = 0, 1
        a, b = self.ratio.numerator, self.ratio.denominator
        # Q's mass at place i is masses[i] / level(i); in units of 1 / (offset a^top) these are integers.
        top = len(self.masses) - 1
        for place in range(top, -1, -1):
            above += self.masses[place]
            numerator += self.masses[place] * b**place * a ** (top - place)
            denominator = a**top
            weighted = Fraction(numerator, denominator) / self.offset
            yield place, above, weighted

    def crossing(self, delta: Fraction) -> Fraction | None:
        """E with delta(E) = delta, or None where it is below 1."""
        units = delta * self.total
        for place, above, weighted in self.lines():
            lower = self.level(place - 1)
            if above - lower * weighted > units or place == 0:
                crossing = (above - units) / weighted
                return crossing if crossing >= 1 else None
        return None

    def delta(self, level: Fraction) -> Fraction:
        found = Fraction(0)
        for place, mass in enumerate(self.masses):
            at = self.level(place)
            if at > level:
                found += mass * (1 - level / at)
        return found / self.total


def logarithm(x: Fraction) -> Decimal:
    return DIGITS.subtract(DIGITS.ln(Decimal(x.numerator)), DIGITS.ln(Decimal(x.denominator)))


def lattice_pair(rng: random.Random) -> tuple[list[int], Fraction, Fraction, int]:
    """Random weights of P on a lattice of losses, with Q's weights P / (offset ratio^i) of the same total."""
    ratio = 1 + Fraction(1, rng.choice([1, 2, 3, 7, 10, 20]))
    weights = [rng.randrange(1, 100) for _ in range(rng.choice([2, 2, 2, 3, 4, 6]))]
    # Q's masses sum to 1 for this offset.
    offset = sum(Fraction(weight) / ratio**place for place, weight in enumerate(weights)) / sum(weights)
    most = 400 // (len(weights) - 1) if ratio.denominator < 5 else 160 // (len(weights) - 1)
    return weights, offset, ratio, rng.randrange(1, max(most, 2))


def of_lattices(rng: random.Random, cases: int) -> dict[str, Any]:
    """Questions about random lattices, whose answers are known in integers."""
    asked = violations = 0
    widest = 0.0
    while asked < cases:
        weights, offset, ratio, count = lattice_pair(rng)
        q = [Fraction(weight) / (offset * ratio**place) for place, weight in enumerate(weights)]
        p = [Fraction(weight, sum(weights)) for weight in weights]
        q = [x / sum(weights) for x in q]
        once = PrivacyLossDistribution.from_pmfs(p, q)
        both = [Lattice(weights, offset, ratio, count)]
        # The reverse: Q's masses, at the inverse levels, from the least to the largest.
        shared = math.lcm(*(x.denominator for x in q))
        turned = [int(x * shared) for x in reversed(q)]
        both.append(Lattice(turned, 1 / (offset * ratio ** (len(weights) - 1)), ratio, count))
        whole = once.self_compose(count)
        for _ in range(min(10, cases - asked)):
            delta = Fraction(1, 10 ** rng.randrange(6, 301)) * rng.randrange(10, 100) / 10
            delta = max(delta, Fraction(1, 10**300))
            crossings = [one.crossing(delta) for one in both]
            largest = max((crossing for crossing in crossings if crossing is not None), default=Fraction(1))
            exact = logarithm(largest)
            bounds = whole.epsilon(delta)
            asked += 1
            violations += not Decimal(bounds.lower) <= exact <= Decimal(bounds.upper)
            widest = max(widest, bounds.upper - bounds.lower)
            # Not a number of the lattice itself, and not where delta is known beforehand.
            level = largest * (1 + Fraction(rng.randrange(-50, 50), 1000))
            if level > 1 and asked < cases:
                truth = max(one.delta(level) for one in both)
                found = whole.delta(LogRatio(level.numerator, level.denominator))
                asked += 1
                violations += not Fraction(found.lower) <= truth <= Fraction(found.upper)
    return {"cases": asked, "violations": violations, "widest": widest}


Complex = NDArray[np.complex128]


Parts = list[tuple[NDArray[np.float64], NDArray[np.float64], int]]


class Transformed:
    """E e^(s L) of a composition, for losses L = ln(p / q) under P."""

    def __init__(self, parts: Parts) -> None:
        self.parts = [(np.log(p), np.log(p) - np.log(q), count) for p, q, count in parts]
        self.outcomes = sum(len(p) for p, _, _ in parts)
        self.largest = sum(count * float(losses.max()) for _, losses, count in self.parts)

    def logarithm(self, s: Complex) -> Complex:
        found = np.zeros(s.shape, dtype=complex)
        for masses, losses, count in self.parts:
            for start in range(0, len(s), 256):
                exponents = masses + s[start : start + 256, None] * losses
                most = exponents.real.max(axis=1)
                found[start : start + 256] += count * (most + np.log(np.exp(exponents - most[:, None]).sum(axis=1)))
        return found

    def exponent(self, a: float, epsilon: float) -> float:
        return float(self.logarithm(np.array([complex(a)]))[0].real) - a * epsilon - math.log(a * (a + 1))

    def delta(self, epsilon: float) -> float | None:
        """By the trapezoidal rule on a line near the saddle point; None where it does not converge."""
        if epsilon >= self.largest:
            return 0.0
        if self.outcomes < FEWEST:
            return None
        low, high = 1e-6, 1.0
        while self.exponent(high * 2, epsilon) < self.exponent(high, epsilon):
            high *= 2
            if high > 1e6:
                return None
        high *= 2
        for _ in range(50):
            left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
            low, high = (low, right) if self.exponent(left, epsilon) < self.exponent(right, epsilon) else (left, high)
        a = (low + high) / 2
        size = self.exponent(a, epsilon)
        # Aliases are a period away: e^(-a x) below, and the tail of the law above.
        period = max((35 - min(size, 0.0)) / a, 2 * (self.largest - epsilon) if self.largest < 30 else 60.0)
        step, total, block, quiet = 2 * math.pi / period, 0.0, 512, 0
        for place in range(0, 30_000_000 // self.outcomes, block):
            s = a + 1j * step * np.arange(place, place + block)
            values = np.exp(self.logarithm(s) - s * epsilon - np.log(s * (s + 1)) - size)
            if place == 0:
                values[0] /= 2
            total += float(values.real.sum())
            quiet = quiet + 1 if np.abs(values).max() < 1e-13 * abs(total) else 0
            if quiet == QUIET:
                return total * step / math.pi * math.exp(size)
        return None


def enumerated(parts: Parts, epsilon: float) -> float | None:
    """The delta of all outcomes, equal ones together; None where there are too many."""
    ways = math.prod(math.comb(len(p) + count - 1, count) for p, _, count in parts)
    if ways > MOST_WAYS or len(parts) > 1:
        return None
    ((p, q, count),) = parts
    factorial = math.lgamma(count + 1)
    losses, ways_of = np.zeros(1), np.zeros(1)
    used = np.zeros(1, dtype=int)
    for place, (x, y) in enumerate(zip(p, q, strict=True)):
        last = place == len(p) - 1
        times = [np.arange(left, left + 1) if last else np.arange(left + 1) for left in count - used]
        repeats = [len(n) for n in times]
        n = np.concatenate(times)
        losses = np.repeat(losses, repeats) + n * (math.log(x) - math.log(y))
        ways_of = np.repeat(ways_of, repeats) + n * math.log(x) - np.array([math.lgamma(i + 1) for i in n.tolist()])
        used = np.repeat(used, repeats) + n
    masses = np.exp(ways_of + factorial)
    return float((masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum())


def largest_delta(parts: Parts, epsilon: float) -> float | None:
    """The larger delta of both orders."""
    found = []
    for order in (parts, [(q, p, count) for p, q, count in parts]):
        delta = enumerated(order, epsilon)
        if delta is None:
            delta = Transformed(order).delta(epsilon)
        if delta is None:
            return None
        found.append(delta)
    return max(found)


def random_pair(rng: np.random.Generator, outcomes: int, spread: float) -> tuple[NDArray[Any], NDArray[Any]]:
    p = rng.dirichlet(np.ones(outcomes)) + 1e-9
    q = p * np.exp(rng.uniform(-spread, spread, outcomes))
    return p / p.sum(), q / q.sum()


def random_parts(rng: random.Random) -> Parts:
    """One pair up to 10^4 times, or a list of a hundred; losses have standard deviations up to about 2 together."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    mixed = rng.random() < 0.1
    kinds, parts = 100 if mixed else 1, []
    for _ in range(kinds):
        outcomes = int(2 ** rng.uniform(1, 5 if mixed else 12.01))
        count = rng.randrange(1, 4) if mixed else int(10 ** rng.uniform(0, 4))
        spread = min(rng.uniform(0.2, 3) / math.sqrt(count * kinds), 1.5)
        parts.append((*random_pair(numbers, min(outcomes, 4096), spread), count))
    return parts


def of_pairs(rng: random.Random, cases: int) -> dict[str, Any]:
    """Epsilons of random pmfs, up to 4,096 outcomes and 10^4 releases, and of lists of 100."""
    done = violations = refused = lists = unsettled = 0
    widest = 0.0
    while done < cases:
        parts, delta = random_parts(rng), 10 ** rng.uniform(-12, -3)
        if largest_delta(parts, 0.5) is None:
            unsettled += 1
            continue
        done += 1
        lists += len(parts) > 1
        releases = [(PrivacyLossDistribution.from_pmfs(p, q), count) for p, q, count in parts]
        try:
            bounds = PrivacyLossDistribution.composed(releases).epsilon(delta)
        except BudgetError:
            refused += 1
            continue
        widest = max(widest, bounds.upper - bounds.lower)
        above = largest_delta(parts, bounds.upper)
        below = largest_delta(parts, bounds.lower) if bounds.lower > 0 else 1.0
        if above is None or below is None:
            unsettled += 1
        else:
            violations += above > delta * (1 + NEAR) or below < delta * (1 - NEAR)
    return {
        "cases": done,
        "violations": violations,
        "widest": widest,
        "refused": refused,
        "lists": lists,
        "unsettled": unsettled,
    }


def of_certificates(rng: random.Random, cases: int) -> dict[str, Any]:
    """Claims that were made stronger than what is certified: all are rejected."""
    from userdp.report import Report

    accepted = done = 0
    while done < cases:
        epsilon, count = Fraction(rng.randrange(1, 40), 100), rng.randrange(2, 60)
        kind = rng.randrange(3)
        if kind == 0:
            release = PrivacyLossDistribution.pure(epsilon)
        elif kind == 1:
            release = PrivacyLossDistribution.discrete_laplace(epsilon, shift=rng.randrange(1, 4))
        else:
            weights = [rng.randrange(1, 50) for _ in range(4)]
            p, q = weights, weights[::-1] if weights != weights[::-1] else [5, 1, 1, 1]
            masses = [[Fraction(x, sum(list_)) for x in list_] for list_ in (p, q)]
            release = PrivacyLossDistribution.from_pmfs(*masses)
        whole = release.self_compose(count if kind < 2 else min(count, 12))
        delta = Fraction(1, 10 ** rng.randrange(2, 12))
        try:
            original = json.loads(whole.certificate(delta=delta))
        except BudgetError:
            continue
        for _ in range(min(20, cases - done)):
            content = stronger(json.loads(json.dumps(original)), rng)
            done += 1
            with suppress(ValueError):  # it is not read at all
                accepted += Report.from_json(json.dumps(content)).verify().finding == "established"
    return {"cases": done, "violations": accepted}


def stronger(content: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The content with one field changed so that it claims more than was certified, or says nothing."""
    release = content["releases"][0]
    choice = rng.randrange(7)
    if choice == 0:
        content["delta"] = str(Fraction(content["delta"]) * Fraction(rng.randrange(1, 999), 1000))
    elif choice == 1:
        exponent = Fraction(content["epsilon"]["exponent"])
        content["epsilon"]["exponent"] = str(exponent * Fraction(rng.randrange(0, 999), 1000))
    elif choice == 2:
        release["count"] += rng.randrange(1, 10)
    elif choice == 3:
        for field in ("epsilon", "epsilon_per_unit"):
            if field in release:
                release[field]["exponent"] = str(Fraction(release[field]["exponent"]) * Fraction(101, 100))
                return content
        release["count"] += 1
    elif choice == 4:
        content["releases"].append(dict(release))
    elif choice == 5:
        content["cut"] = str(2 ** (content["bits"] - 9))
        content["delta"] = str(Fraction(content["delta"]) * Fraction(rng.randrange(1, 999), 1000))
    else:
        field = rng.choice(["epsilon", "delta", "releases", "bits", "cut"])
        content[field] = rng.choice([None, -1, [], {}, "x", 10**400])
    return content


PARTS: dict[str, tuple[Callable[[random.Random, int], dict[str, Any]], int]] = {
    "lattices": (of_lattices, 1000),
    "pairs": (of_pairs, 20),
    "certificates": (of_certificates, 500),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--results", type=Path, required=True)
    arguments = parser.parse_args()
    run, chunk = PARTS[arguments.part]
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    done = {line["chunk"]: line for line in map(json.loads, lines) if line["part"] == arguments.part}
    for index in range(-(-arguments.cases // chunk)):
        if index not in done:
            found = run(random.Random(f"{arguments.part} {index}"), chunk)
            done[index] = {"part": arguments.part, "chunk": index, **found}
            with arguments.results.open("a") as file:
                file.write(json.dumps(done[index]) + "\n")
    totals = {
        key: (max if key == "widest" else sum)(line[key] for line in done.values())
        for key in next(iter(done.values()))
        if key not in ("part", "chunk")
    }
    print(arguments.part, *(f"{key}: {value:g}" for key, value in totals.items()))
    sys.exit(totals["violations"] > 0)


if __name__ == "__main__":
    main()
