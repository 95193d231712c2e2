"""Audits of samplers by all of their randomness: exact masses of what was run, and a bound for the rest."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.distributions import read_universe
from userdp.algorithms.finite import mechanism_name
from userdp.algorithms.processes import PROCESSES, Fresh, NotAsked, check_processes
from userdp.audit.datasets import Labeled, Moves, user_values
from userdp.audit.exhaustion import Draws, Exhaustion, Outputs, Path
from userdp.audit.fresh import remade
from userdp.audit.lazy import settled
from userdp.audit.stand_ins import STAND_INS, Randomness
from userdp.display.numbers import in_digits, plural
from userdp.exact.epsilon import MAX_BITS, core_level, enclosure, is_rational
from userdp.exact.numbers import (
    Bounds,
    Delta,
    Epsilon,
    PrivacyLevel,
    capped_power,
    check_count,
    check_neighbors,
    parse_delta,
    parse_level,
    round_down,
    round_up,
    short_repr,
)
from userdp.exceptions import BudgetError
from userdp.report import LawWitness, SamplerLawReport
from userdp.runtime import Progress, ProgressCallback, progress_bar

MAX_PAIRS = 1_000_000
MAX_CELLS = 5_000_000
"""Masses of all distinct laws, in a report."""
FIRST_BITS = 256
"""Of the first enclosure of e^epsilon."""
NEXT = Fraction(3, 4)
"""How much less is left unexplored before the laws are compared again."""
MOST_REPEATED = 128
"""Datasets on which a run is repeated in fresh processes."""
MOST_SECONDS = 240.0
"""For all of these in one process."""
FIRST_RUNS, ENDLESS = 2**12, 16
"""Where so many runs, or this part of all, have no output, no others are made: 2^53 values are drawn in full."""
REPORTED = 1 << 10
"""Runs between two calls for progress."""


def audit_sampler_law(
    mechanism: Callable[..., Any],
    *,
    universe: Iterable[Any],
    n_users: int,
    n_examples: int,
    epsilon: Epsilon,
    delta: Delta,
    neighbors: Literal["replace", "add-remove"] = "replace",
    randomness: Randomness = "bits",
    monotone: bool = False,
    complete: bool = False,
    max_runs: int = 1_000_000,
    processes: int | None = None,
    progress: Progress = None,
) -> SamplerLawReport:
    """Audit a program that draws its answer, by running it on its random bits, the most probable first.

    Parameters
    ----------
    mechanism : callable
        ``(dataset, bits) -> output``, or another source of randomness than ``bits``. A dataset is a tuple of users, a
        user a tuple of examples; ``bits(k)`` is a uniform integer of k bits, and all of the mechanism's randomness. An
        output is of plain types, see `userdp.exact.encoding`; what the mechanism raises is an output too.
        ``bits.restart()`` may be called where all state is as at the start, by loops that draw again what they reject:
        it makes their laws exact sooner.
    universe : iterable
        The possible values of one example, distinct, of plain types.
    n_users, n_examples : int
        Number of users n >= 1, and of examples m >= 1 of every user, fixed.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.
    neighbors : {"replace", "add-remove"}
        Replace one user's whole data (n stays), or remove one user from the n.
    randomness : {"bits", "lazy-bits", "random", "secrets", "numpy"}
        What the mechanism is given as its second argument: ``bits``; the same, with integers that are drawn as far as
        the mechanism asks for them; a stand-in for a `random.Random`, for the module `secrets`, or for a NumPy
        generator. Single uniform floats are multiples of 2^-53 that are drawn as far as the mechanism asks, too: where
        it compares them, with its own arithmetic, every threshold is found exactly. docs/sampler_laws.md has the rest.
    monotone : bool
        Take on trust that the output only rises, or only falls, with each drawn number when all else stays: a drawn
        number is then known by the outputs at the ends of intervals, and not value by value.
    complete : bool
        Go on after the verdict is certain, until all is explored or `max_runs` is reached.
    max_runs : int
        Runs of the mechanism, on all datasets together; at least two for each dataset.
    processes : int, optional
        Fresh processes, 2 by default, in which a run on each of up to 128 datasets is repeated, in an order of its own;
        0 assumes that runs leave nothing behind.
    progress : bool, callable or None
        None shows a bar on a terminal for work over two seconds (with tqdm); a callable gets (runs, max_runs).

    Returns
    -------
    SamplerLawReport
        ``holds`` is True when every divergence is certainly at most delta, False when one is certainly above it, and
        None when `max_runs` ends before. A claim with delta = 0 cannot be confirmed while anything is unexplored;
        ``worst_delta.upper`` is the delta that is. With laws that are known in full,
        ``audit_user_level(report.algorithm(), ...)`` tells the smallest epsilon, too.

    Raises
    ------
    ValueError
        When the mechanism is no function of the dataset and its bits, or goes on after a run was interrupted.
    RuntimeError
        When the mechanism raises in all runs.
    BudgetError
        When there are too many datasets or pairs for `max_runs`, or too many outputs for a report.

    Notes
    -----
    User-level (epsilon, delta)-DP of [GKKMMZ23, Definition 2], on this universe, for these n and m. Why the bounds
    are right: docs/proofs/sampler_laws.md.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> def respond(dataset, bits):
    ...     return bits(2) > 0 if dataset[0][0] else bits(2) == 0
    >>> report = audit_sampler_law(respond, universe=(0, 1), n_users=1, n_examples=1, epsilon=LogRatio(3), delta=0)
    >>> report.holds, report.law([(1,)])
    (True, ((True, Fraction(3, 4)), (False, Fraction(1, 4))))
    """
    if not callable(mechanism):
        raise TypeError(f"mechanism must be a function of a dataset and its random bits; got {short_repr(mechanism)}")
    examples = read_universe(universe)
    n, m = check_count(n_users, "n_users"), check_count(n_examples, "n_examples")
    level, threshold = parse_level(epsilon), parse_delta(delta)
    enclosure(level, "epsilon")  # refuses what cannot be written out
    check_neighbors(neighbors)
    if randomness not in STAND_INS:
        raise ValueError(f"randomness must be one of {', '.join(STAND_INS)}; got {short_repr(randomness)}")
    for name, flag in (("monotone", monotone), ("complete", complete)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be a bool; got {short_repr(flag)}")
    most = check_count(max_runs, "max_runs")
    number = check_processes(processes, PROCESSES)
    fresh = Fresh(number, _Again(mechanism, randomness), mechanism)
    space = _space(examples, n, m, neighbors, most)
    outputs, at_first = Outputs(), remade(mechanism)
    laws = [_exhaustion(mechanism, dataset, randomness, outputs, monotone) for dataset in space.members()]
    search = _Search(laws, space, level, threshold, most - len(laws), complete)
    with progress_bar(progress, "running the mechanism") as callback:
        search.run(callback, most)
    for law, dataset in zip(laws, space.members(), strict=True):
        law.check_again(_run_of(remade(at_first), dataset, randomness))
    _refuse_errors(laws, outputs)
    return _report(
        search,
        outputs,
        memory=_memory(laws, space, search.witness(), fresh),
        mechanism=mechanism_name(mechanism),
        randomness=randomness,
        monotone=monotone,
        neighbors=neighbors,
        universe=examples,
        n_users=n,
        n_examples=m,
    )


def _space(examples: Sequence[Any], n: int, m: int, neighbors: str, most: int) -> Labeled:
    """The datasets; what is too large is refused before it is enumerated."""
    values = capped_power(len(examples), m, most)
    removal = neighbors == "add-remove"
    datasets = capped_power(values, n, most) + (capped_power(values, n - 1, most) if removal else 0)
    size = max(values * m, datasets * max(n, 2))
    if size > most and (values * m > most or datasets * 2 > most or datasets * n > 20 * most):
        raise BudgetError(
            f"there are {in_digits(datasets)} datasets or more, and each is run at least twice (max_runs "
            f"{in_digits(most)}). Cheaper: fewer users or examples, or a coarser universe"
        )
    space = Labeled(user_values(examples, m), n, Moves(len(examples), m, item_level=False), add_remove=removal)
    if space.pairs > MAX_PAIRS:
        raise BudgetError(
            f"{in_digits(space.pairs)} pairs of neighbors (limit {in_digits(MAX_PAIRS)}). Cheaper: fewer users or "
            "examples, or a coarser universe"
        )
    return space


def _exhaustion(
    mechanism: Callable[..., Any], dataset: Dataset, randomness: str, outputs: Outputs, monotone: bool
) -> Exhaustion:
    return Exhaustion(_run_of(mechanism, dataset, randomness), outputs, monotone=monotone)


def _run_of(mechanism: Callable[..., Any], dataset: Dataset, randomness: str) -> Callable[[Draws], Any]:
    make = STAND_INS[randomness]
    return lambda draws: settled(mechanism(dataset, make(draws)))


class _Again:
    """Repeats a run in another process: the code of its output."""

    def __init__(self, mechanism: Callable[..., Any], randomness: str) -> None:
        self._mechanism, self._randomness = mechanism, randomness

    def __call__(self, question: tuple[Dataset, Path]) -> str:
        run = _run_of(self._mechanism, question[0], self._randomness)
        return Exhaustion(run, Outputs()).along(question[1])


def _memory(laws: Sequence[Exhaustion], space: Labeled, witness: LawWitness | None, fresh: Fresh) -> str:
    """What is known of memory between runs: on some datasets the first finished run is repeated elsewhere."""
    ranks = {*random.Random(1).sample(range(len(laws)), min(len(laws), MOST_REPEATED))}
    ranks.update(witness.ranks if witness is not None else ())
    first = {data: laws[rank].first for rank, data in enumerate(space.members()) if rank in ranks}
    here = {(data, known[0]): known[1] for data, known in first.items() if known is not None}
    try:
        found = fresh.answers(list(here), MOST_SECONDS)
    except NotAsked as error:
        return f"assumed ({error})"
    for question, code in (one for order in found for one in order):
        if code != here[question]:
            raise ValueError(
                f"the mechanism is no function of the dataset and its random bits: on {short_repr(question[0])} it "
                f"gave {short_repr(here[question])} and, with the same bits in a fresh process where its folders are "
                f"empty and other datasets came before, {short_repr(code)}. It keeps something between calls"
            )
    return f"none on {plural(len(here), 'dataset')} in {fresh}"


def _refuse_errors(laws: Iterable[Exhaustion], outputs: Outputs) -> None:
    found = {output for law in laws for output in law.masses}
    if found and found <= set(outputs.errors):
        error = outputs.errors[min(found)]
        raise RuntimeError(f"the mechanism raises in all runs: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _Law:
    """Integer masses over one total; `left` is unexplored."""

    weights: Mapping[int, int]
    left: int
    total: int

    @classmethod
    def of(cls, law: Exhaustion) -> _Law:
        masses, left = law.law(), law.unexplored
        total = math.lcm(left.denominator, *(mass.denominator for mass in masses.values()))
        weights = {output: mass.numerator * (total // mass.denominator) for output, mass in sorted(masses.items())}
        return cls(weights, left.numerator * (total // left.denominator), total)

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(self.weights.items()), self.left, self.total


@dataclass(frozen=True)
class _Ends:
    """Bounds of the divergence of one law from another: docs/proofs/sampler_laws.md, Theorem 1."""

    lower: Fraction
    upper: Fraction


def _ends(p: _Law, q: _Law, level: tuple[int, int, int]) -> _Ends:
    """The lower end at a level above e^epsilon, and the upper end at one below it."""
    low, high, scale = level
    left, up, down = scale * q.total, high * p.total, low * p.total
    sure = possible = 0
    for output, weight in p.weights.items():
        mass, other = weight * left, q.weights.get(output, 0)
        sure += max(0, mass - up * other)
        possible += max(0, mass - down * other)
    whole = left * p.total
    return _Ends(
        Fraction(max(0, sure - up * q.left), whole),
        Fraction(min(whole, possible + p.left * left), whole),
    )


def _enclosed(level: PrivacyLevel, bits: int) -> tuple[int, int, int]:
    """Integers low, high, scale with low / scale <= e^epsilon <= high / scale."""
    if is_rational(level):
        return level.ratio.numerator, level.ratio.numerator, level.ratio.denominator
    below, above = _core.exp_bounds(core_level(level), bits)
    below = max(below, Fraction(1))
    scale = math.lcm(below.denominator, above.denominator)
    return int(below * scale), int(above * scale), scale


Code = tuple[int, int]


class _Search:
    """Laws that are explored until every pair of neighbors is decided, or the runs are used up."""

    def __init__(
        self, laws: list[Exhaustion], space: Labeled, level: PrivacyLevel, delta: Fraction, most: int, complete: bool
    ) -> None:
        self._complete = complete
        self.laws, self.space, self.level, self.delta = laws, space, level, delta
        self._left = self._shown = most
        self.bits = FIRST_BITS
        self.holds: bool | None = None
        self.found: list[_Law] = []
        self.law_of: list[int] = []
        self.ends: dict[Code, _Ends] = {}

    def run(self, callback: ProgressCallback, most: int) -> None:
        active: Sequence[int] = range(len(self.laws))
        leftover = Fraction(1, 4)
        while True:
            spent = self._explore(active, leftover, callback, most)
            self._judge()
            wanted = range(len(self.laws)) if self._complete else self._open_ranks()
            active = [rank for rank in wanted if not self.laws[rank].finished]
            if (self.holds is not None and not self._complete) or spent or not active:
                break
            # Where all is wanted, rounds serve to show progress alone.
            leftover *= NEXT if not self._complete else NEXT**8
        while self._is_close():
            self.bits *= 2
            self._judge()

    def _explore(self, active: Iterable[int], leftover: Fraction, callback: ProgressCallback, most: int) -> bool:
        """Run until at most so much of each law is unexplored; whether the runs are used up."""
        for rank in active:
            law = self.laws[rank]
            while not law.finished and law.left > leftover * (1 - law.again):
                if self._left < law.most_runs or (
                    law.runs >= max(FIRST_RUNS, most // ENDLESS) and not law.masses and not law.again
                ):
                    return True
                before = law.runs
                law.step()
                self._left -= law.runs - before
                if self._shown - self._left >= REPORTED:
                    self._shown = self._left
                    callback(most - self._left, most)
        return False

    def _judge(self) -> None:
        """Compare all laws that neighbors have, in both directions, as they are known now."""
        numbers: dict[tuple[Any, ...], int] = {}
        self.found, self.law_of = [], []
        for exhaustion in self.laws:
            law = _Law.of(exhaustion)
            number = numbers.setdefault(law.key, len(numbers))
            if number == len(self.found):
                self.found.append(law)
            self.law_of.append(number)
        level = _enclosed(self.level, self.bits)
        codes = self._codes()
        self.ends = {(i, j): _ends(self.found[i], self.found[j], level) for i, j in codes}
        if any(ends.lower > self.delta for ends in self.ends.values()):
            self.holds = False
        elif all(ends.upper <= self.delta for ends in self.ends.values()):
            self.holds = True
        else:
            self.holds = None

    def _codes(self) -> list[Code]:
        """Ordered pairs of laws that neighbors have; one law twice too, since what is unexplored may differ."""
        law_of, count = np.array(self.law_of, dtype=np.int64), len(self.found)
        blocks = [np.unique(law_of[a] * count + law_of[b]) for a, b in self.space.rank_pairs()]
        pairs = {divmod(code, count) for code in np.unique(np.concatenate(blocks)).tolist()} if blocks else set()
        return sorted({pair for i, j in pairs for pair in ((i, j), (j, i))})

    def _open_ranks(self) -> list[int]:
        """Datasets with a neighbor from which they are not yet known to be close."""
        law_of, count = np.array(self.law_of, dtype=np.int64), len(self.found)
        wide = [i * count + j for (i, j), ends in self.ends.items() if ends.upper > self.delta]
        found: set[int] = set()
        for a, b in self.space.rank_pairs():
            for one, two in ((a, b), (b, a)):
                hit = np.isin(law_of[one] * count + law_of[two], wide)
                found.update(one[hit].tolist(), two[hit].tolist())
        return sorted(found)

    def _is_close(self) -> bool:
        """Whether only the enclosure of e^epsilon leaves the verdict open; it ends, as e^epsilon is transcendental."""
        if self.holds is not None or is_rational(self.level) or 2 * self.bits > MAX_BITS:
            return False
        low, high, scale = _enclosed(self.level, self.bits)
        turned = {pair: _ends(self.found[pair[0]], self.found[pair[1]], (high, low, scale)) for pair in self.ends}
        violated = any(ends.lower > self.delta for ends in turned.values())
        return violated or all(ends.upper <= self.delta for ends in turned.values())

    def witness(self) -> LawWitness | None:
        """The first neighbors with the largest lower bound, and the event that shows it."""
        worst = max((ends.lower for ends in self.ends.values()), default=Fraction(0))
        if not worst:
            return None
        i, j = min(pair for pair, ends in self.ends.items() if ends.lower == worst)
        law_of = np.array(self.law_of, dtype=np.int64)
        ranks: list[tuple[int, int]] = []
        for a, b in self.space.rank_pairs():
            for one, two in ((a, b), (b, a)):
                hit = np.flatnonzero((law_of[one] == i) & (law_of[two] == j))
                ranks += zip(one[hit[:1]].tolist(), two[hit[:1]].tolist(), strict=True)
        return LawWitness(min(ranks), self._event(self.found[i], self.found[j]))

    def _event(self, p: _Law, q: _Law) -> tuple[int, ...]:
        """The outputs with p > e^epsilon q."""
        bits = self.bits
        while True:
            low, high, scale = _enclosed(self.level, bits)
            inner, outer = (
                tuple(o for o, w in p.weights.items() if w * scale * q.total > end * p.total * q.weights.get(o, 0))
                for end in (high, low)
            )
            if inner == outer:
                return inner
            bits *= 2


def _report(search: _Search, outputs: Outputs, **asked: Any) -> SamplerLawReport:
    cells = (len(outputs.values) + 1) * len(search.found)
    if cells > MAX_CELLS:
        raise BudgetError(
            f"{in_digits(len(search.found))} laws of {in_digits(len(outputs.values))} outputs, {in_digits(cells)} "
            f"masses, are more than a report can hold (limit {in_digits(MAX_CELLS)}). Cheaper: fewer datasets, a "
            "smaller max_runs, or a mechanism that rounds its output"
        )
    ends = search.ends.values()
    return SamplerLawReport(
        **asked,
        holds=search.holds,
        worst_delta=Bounds(
            round_down(max((end.lower for end in ends), default=Fraction(0))),
            round_up(max((end.upper for end in ends), default=Fraction(0))),
        ),
        witness=search.witness(),
        epsilon=search.level,
        delta=search.delta,
        outputs=tuple(outputs.values),
        laws=tuple(
            (
                *(Fraction(law.weights.get(o, 0), law.total) for o in range(len(outputs.values))),
                Fraction(law.left, law.total),
            )
            for law in search.found
        ),
        law_of=tuple(search.law_of),
        runs=sum(law.runs for law in search.laws),
    )
