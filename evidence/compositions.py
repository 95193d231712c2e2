"""Evidence that bounds of exact composition are true: many random compositions beside independent truths.

    python evidence/compositions.py lattices --cases 100000 --results FILE
    python evidence/compositions.py pairs --cases 2000 --results FILE
    python evidence/compositions.py certificates --cases 10000 --results FILE

Matrix products of NumPy should not use threads (OPENBLAS_NUM_THREADS=1): they are small.

Cases are made in chunks, each from its own seed. FILE gets a line of JSON for each chunk, and chunks that it has
already are left out, so that a run can be stopped and started again. At the end the totals of all chunks are printed.

What is compared with:

* **lattices**: powers of polynomials in exact integers, for deltas from 1e-6 to 1e-300, and logarithms in 60 digits.
* **pairs**: all outcomes one by one, where these are few, in 60 digits where doubles cannot tell. Else
  delta(e) = 1 / (2 pi i) times the integral of M(s) e^(-s e) / (s (s + 1)) over Re s = a > 0, for M(s) = E e^(s L):
  1 - e^-x has the Laplace transform 1 / (s (s + 1)). M of a composition is a product, so that neither convolutions nor
  grids enter. The trapezoidal rule in complex doubles is good to about 1e-9 of delta. Where it does not converge, and
  for fewer than 24 outcomes, another case is drawn. One line serves both bounds, and turns e^(i t L) at neighboring
  places t are products of a few.
* **certificates**: claims that were made stronger than what was certified, with digests that fit. All are rejected.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from userdp.accounting import PrivacyLossDistribution
from userdp.checker.compositions import bound_of
from userdp.checker.values import canonical_digest
from userdp.divergence import LogRatio
from userdp.exceptions import BudgetError

DIGITS = Context(prec=60)
FEWEST = 24
"""Outcomes for which the transform is used: with fewer it may come back to its first size, however far out."""
QUIET = 8
"""Blocks of small terms after which the rest of the integral is left out."""
CLOSE, BLOCK = 64, 512
"""Neighboring places on the line, whose turns are taken once, and places that are computed together."""
LEAST_WORK, MOST_WORK = 3 * 10**7, 4 * 10**8
"""Places times outcomes after which the integral is given up: of a case to be drawn, and of one that was drawn."""
MOST_PLACES = 4 * 10**6
MOST_WAYS = 10**6
"""Outcomes of a composition that are enumerated, equal ones together."""
MOST_DECIDED = 10**5
"""Outcomes that are enumerated in decimals, where doubles do not decide."""
MOST_TUPLES = 10**7
"""Outcomes in order that are enumerated one by one."""
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
        self.outcomes = sum(len(p) for p, _, _ in parts)
        # A row for each part, filled up with outcomes of no mass.
        shape = len(parts), max(len(p) for p, _, _ in parts)
        self.masses, self.losses = np.full(shape, -np.inf), np.zeros(shape)
        self.counts = np.array([count for _, _, count in parts])
        for row, (p, q, _) in enumerate(parts):
            self.masses[row, : len(p)] = np.log(p)
            self.losses[row, : len(p)] = np.log(p) - np.log(q)
        self.largest = sum(count * float(np.log(p / q).max()) for p, q, count in parts)

    def exponent(self, a: float, epsilon: float) -> float:
        """The logarithm of |M(a)| and of what M is multiplied by, on the real line."""
        exponents = self.masses + a * self.losses
        most = exponents.max(axis=1)
        sums = most + np.log(np.exp(exponents - most[:, None]).sum(axis=1))
        return float(self.counts @ sums) - a * epsilon - math.log(a * (a + 1))

    def saddle(self, epsilon: float) -> float | None:
        """Where the exponent is least, for Re s; None where that is too far out."""
        low, high = 1e-6, 1.0
        while self.exponent(high * 2, epsilon) < self.exponent(high, epsilon):
            high *= 2
            if high > 1e6:
                return None
        high *= 2
        inner = high - 0.618 * (high - low), low + 0.618 * (high - low)
        values = [self.exponent(x, epsilon) for x in inner]
        for _ in range(50):
            if values[0] < values[1]:
                high, inner = inner[1], (inner[1] - 0.618 * (inner[1] - low), inner[0])
                values = [self.exponent(inner[0], epsilon), values[0]]
            else:
                low, inner = inner[0], (inner[1], inner[0] + 0.618 * (high - inner[0]))
                values = [values[1], self.exponent(inner[1], epsilon)]
        return (low + high) / 2

    def along(self, a: float, step: float) -> Iterator[Complex]:
        """Values of ln M at a, a + i step, ... in blocks: all turns of a block are products of two short lists."""
        exponents = self.masses + a * self.losses
        most = exponents.max(axis=1)
        turns = np.exp(1j * step * np.arange(CLOSE)[:, None] * self.losses[:, None, :])
        for first in itertools.count(0, BLOCK // CLOSE):
            far = CLOSE * step * np.arange(first, first + BLOCK // CLOSE)
            starts = np.exp((exponents - most[:, None])[:, :, None] + 1j * self.losses[:, :, None] * far)
            sums = (turns @ starts).transpose(0, 2, 1).reshape(len(self.counts), BLOCK)
            yield float(self.counts @ most) + self.counts @ np.log(sums)

    def deltas(self, epsilons: Sequence[float], work: int = LEAST_WORK) -> list[float] | None:
        """At epsilons that are near each other; None where the trapezoidal rule does not converge."""
        inside = [epsilon for epsilon in epsilons if epsilon < self.largest]
        if not inside:
            return [0.0] * len(epsilons)
        if self.outcomes < FEWEST or (a := self.saddle(inside[0])) is None:
            return None
        found = self._on_line(a, inside, work)
        return found and [found.pop(0) if epsilon < self.largest else 0.0 for epsilon in epsilons]

    def _on_line(self, a: float, epsilons: Sequence[float], work: int) -> list[float] | None:
        """By the trapezoidal rule, for Re s = a."""
        sizes = np.array([self.exponent(a, epsilon) for epsilon in epsilons])
        # Aliases are a period away: e^(-a x) below, and the tail of the law above.
        beyond = 2 * (self.largest - min(epsilons)) if self.largest < 30 else 60.0
        period = max((35 - min(*sizes, 0.0)) / a, beyond)
        step, quiet = 2 * math.pi / period, 0
        totals, places = np.zeros(len(epsilons)), min(work // self.outcomes, MOST_PLACES)
        for place, logarithms in zip(range(0, places, BLOCK), self.along(a, step), strict=False):
            s = a + 1j * step * np.arange(place, place + BLOCK)
            shared = logarithms - np.log(s * (s + 1))
            values = np.exp(shared - s * np.array(epsilons)[:, None] - sizes[:, None])
            if place == 0:
                values[:, 0] /= 2
            totals += values.real.sum(axis=1)
            quiet = quiet + 1 if np.all(np.abs(values).max(axis=1) < 1e-13 * np.abs(totals)) else 0
            if quiet == QUIET:
                return [float(x) for x in totals * step / math.pi * np.exp(sizes)]
        return None


def enumerated(parts: Parts, epsilon: float) -> float | None:
    """The delta of all outcomes one by one, or of equal ones together; None where there are too many."""
    ways = math.prod(math.comb(len(p) + count - 1, count) for p, _, count in parts)
    if ways > MOST_WAYS or len(parts) > 1:
        return None
    ((p, q, count),) = parts
    own, ratio = np.log(p), np.log(p) - np.log(q)
    masses, losses = np.zeros(1), np.zeros(1)
    if len(p) ** count <= MOST_TUPLES:
        for _ in range(count):
            masses, losses = np.add.outer(masses, own).ravel(), np.add.outer(losses, ratio).ravel()
    else:
        # How often each outcome comes, one outcome after the other.
        factorials = np.array([math.lgamma(n + 1) for n in range(count + 1)])
        masses, left = masses + factorials[count], np.full(1, count)
        for place in range(len(p)):
            last = place == len(p) - 1
            repeats = np.ones_like(left) if last else left + 1
            starts = np.cumsum(repeats) - repeats
            times = np.repeat(left, repeats) if last else np.arange(repeats.sum()) - np.repeat(starts, repeats)
            losses = np.repeat(losses, repeats) + times * ratio[place]
            masses = np.repeat(masses, repeats) + times * own[place] - factorials[times]
            left = np.repeat(left, repeats) - times
    return float((np.exp(masses) * np.maximum(-np.expm1(epsilon - losses), 0)).sum())


def decided(parts: Parts, epsilon: float) -> Decimal | None:
    """The larger delta of both orders in 60 digits, of outcomes that can be enumerated; None where they cannot.

    In doubles a delta of d is off by a share of 1e-16 / d where epsilon is near the largest loss.
    """
    ways = math.prod(math.comb(len(p) + count - 1, count) for p, _, count in parts)
    if ways > MOST_DECIDED or len(parts) > 1:
        return None
    ((first, second, count),) = parts
    with localcontext(Context(prec=60)):
        own = []
        for masses in (first, second):
            exact = [Fraction(float(x)) for x in masses]
            total = sum(exact)
            own.append([Decimal((x / total).numerator) / (x / total).denominator for x in exact])
        grown, deltas = Decimal(epsilon).exp(), [Decimal(0), Decimal(0)]
        for times in _ways(len(first), count):
            number = Decimal(math.factorial(count) // math.prod(map(math.factorial, times)))
            one, other = (number * math.prod(map(pow, masses, times)) for masses in own)
            deltas[0] += max(one - grown * other, Decimal(0))
            deltas[1] += max(other - grown * one, Decimal(0))
    return max(deltas)


def _ways(outcomes: int, count: int) -> Iterator[tuple[int, ...]]:
    """How often each outcome can come."""
    if outcomes == 1:
        yield (count,)
        return
    for first in range(count + 1):
        yield from ((first, *rest) for rest in _ways(outcomes - 1, count - first))


def largest_deltas(parts: Parts, epsilons: Sequence[float], work: int = LEAST_WORK) -> list[float] | None:
    """The larger delta of both orders at every epsilon, which are near each other."""
    found = []
    for order in (parts, [(q, p, count) for p, q, count in parts]):
        deltas: list[float] | None = []
        for epsilon in epsilons:
            delta = enumerated(order, epsilon)
            deltas = None if delta is None or deltas is None else [*deltas, delta]
        if deltas is None:
            deltas = Transformed(order).deltas(epsilons, work)
        if deltas is None:
            return None
        found.append(deltas)
    return [max(pair) for pair in zip(*found, strict=True)]


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
    done = violations = refused = lists = redrawn = unsettled = 0
    widest = 0.0
    while done < cases:
        parts, delta = random_parts(rng), 10 ** rng.uniform(-12, -3)
        if largest_deltas(parts, [0.5]) is None:
            redrawn += 1
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
        found = largest_deltas(parts, [bounds.upper, bounds.lower], MOST_WORK)
        if found is None:
            unsettled += 1
        else:
            above, below = found
            if above > delta * (1 + NEAR) and (exact := decided(parts, bounds.upper)) is not None:
                above = delta if exact <= Decimal(delta) else math.inf
            if below < delta * (1 - NEAR) and (exact := decided(parts, bounds.lower)) is not None:
                below = delta if exact >= Decimal(delta) else 0.0
            low = bounds.lower > 0 and below < delta * (1 - NEAR)
            violations += above > delta * (1 + NEAR) or low
    return {
        "cases": done,
        "violations": violations,
        "widest": widest,
        "refused": refused,
        "lists": lists,
        "redrawn": redrawn,
        "unsettled": unsettled,
    }


def random_releases(rng: random.Random) -> PrivacyLossDistribution:
    """Releases of all kinds that have certificates, few enough for a check in a fraction of a second."""
    made, epsilon, count = PrivacyLossDistribution, Fraction(rng.randrange(1, 40), 100), rng.randrange(2, 12)
    kind = rng.randrange(8)
    if kind == 0:
        return made.pure(epsilon).self_compose(rng.randrange(2, 60))
    if kind == 1:
        return made.discrete_laplace(epsilon, shift=rng.randrange(1, 4)).self_compose(rng.randrange(2, 60))
    weights = [rng.randrange(1, 50) for _ in range(4)]
    p, q = weights, weights[::-1] if weights != weights[::-1] else [5, 1, 1, 1]
    pair = made.from_pmfs(*([Fraction(x, sum(list_)) for x in list_] for list_ in (p, q)))
    noise = made.gaussian(rng.randrange(1, 9), neighbors=rng.choice(["replace", "add-remove"]))
    if kind == 2:
        return pair.self_compose(count)
    if kind == 3:
        return noise.self_compose(count)
    if kind == 4:
        return made.discrete_gaussian(rng.randrange(1, 20)).self_compose(count)
    if kind == 5:
        return made.bounded_range(epsilon).self_compose(count)
    if kind == 6:
        return made.composed([(made.pure(epsilon), count), (pair, rng.randrange(1, 4))])
    sampled = made.gaussian(rng.randrange(1, 4), neighbors="add-remove").poisson(Fraction(rng.randrange(1, 50), 100))
    return sampled.self_compose(count)


def of_certificates(rng: random.Random, cases: int) -> dict[str, Any]:
    """Claims that were made stronger than what is certified, with a digest that fits: all are rejected."""
    from userdp.report import Report

    accepted = done = 0
    while done < cases:
        whole, delta = random_releases(rng), Fraction(1, 10 ** rng.randrange(2, 12))
        try:
            original = json.loads(whole.certificate(delta=delta))
        except BudgetError:
            continue
        # At the largest loss, and where epsilon is 0, more may be true than what is claimed.
        if original["epsilon"]["exponent"] == "0" or bound_of(original) < delta * Fraction(999, 1000):
            continue
        for _ in range(min(20, cases - done)):
            content = stronger(json.loads(json.dumps(original)), rng)
            kept = {name: value for name, value in content.items() if name != "digest"}
            content["digest"] = "sha256:" + canonical_digest(kept)
            done += 1
            with suppress(ValueError):  # it is not read at all
                accepted += Report.from_json(json.dumps(content)).verify().finding == "established"
    return {"cases": done, "violations": accepted}


def stronger(content: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The content with one field changed so that it claims more than was certified, or says nothing."""
    release = rng.choice(content["releases"])
    choice = rng.randrange(7)
    if choice == 0:
        content["delta"] = str(Fraction(content["delta"]) * Fraction(rng.randrange(1, 999), 1000))
    elif choice == 1:
        exponent = Fraction(content["epsilon"]["exponent"])
        content["epsilon"]["exponent"] = str(exponent * Fraction(rng.randrange(0, 999), 1000))
    elif choice == 2:
        release["count"] += rng.randrange(1, 10)
    elif choice == 3:
        field = rng.choice([name for name in sorted(release) if name in LOSING] or ["count"])
        if field == "count":
            release["count"] += 1
        elif isinstance(release[field], dict):
            release[field]["exponent"] = str(Fraction(release[field]["exponent"]) * LOSING[field])
        else:
            release[field] = str(Fraction(release[field]) * LOSING[field])
    elif choice == 4:
        content["releases"].append(dict(release))
    elif choice == 5:
        content["cut"] = str(2 ** (content["bits"] - 9))
        content["delta"] = str(Fraction(content["delta"]) * Fraction(rng.randrange(1, 999), 1000))
    else:
        field = rng.choice(["epsilon", "delta", "releases", "bits", "cut", "resolution", "neighbors", "format"])
        content[field] = rng.choice([-1, [], {}, "x", 10**400])
    return content


LOSING = {
    "epsilon": Fraction(101, 100),
    "epsilon_per_unit": Fraction(101, 100),
    "range": Fraction(101, 100),
    "mu_squared": Fraction(101, 100),
    "rate": Fraction(101, 100),
    "sigma_squared": Fraction(99, 100),
}
"""Parameters of releases, and by what they are multiplied so that a release loses more."""


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
