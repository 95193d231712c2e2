"""The samples of a small distribution, and what a learner makes of each."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass
from userdp.exact.numbers import capped_binomial, capped_power, exact_number, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.public_randomness.seed import PublicSeed
from userdp.runtime import ProgressCallback
from userdp.stability.learner import StableLearner
from userdp.stability.lists import ListLearner
from userdp.users.table import UserTable

MAX_RUNS = 2_000_000
"""Samples times seeds; each is one run of the learner."""
MAX_EXAMPLES = 2**26
"""Samples times their examples, which are held together."""
SYMMETRY_SAMPLES = 16

Atoms: TypeAlias = "Mapping[Any, Fraction]"
Member: TypeAlias = "tuple[int, ...]"
"""A sample, as the numbers of its examples in the distribution."""


@dataclass(frozen=True)
class Outcome:
    """A distribution of items in lowest terms, or a list of items."""

    weights: frozenset[tuple[Hashable, int]]  # Positive weights; 1 for every item of a list
    is_list: bool = False

    @property
    def total(self) -> int:
        """What a weight is divided by: 1 for a list."""
        return 1 if self.is_list else sum(weight for _, weight in self.weights)


def read_masses(value: Any, name: str) -> dict[Any, Fraction]:
    """Read a mapping to exact probabilities with the sum 1, or a sequence of things that are equally likely."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        things = list(value)
        value = {thing: Fraction(1, len(things)) for thing in things}
        if len(value) != len(things):
            raise ValueError(f"{name} has the same entry twice")
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping to probabilities; got {short_repr(value)}")
    masses = {}
    for thing, entry in value.items():
        try:
            mass = exact_number(entry)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: the probability {short_repr(entry)}: {error}") from None
        if mass is None or mass < 0:
            raise ValueError(f"{name}: the probability {short_repr(entry)} is not a finite number >= 0")
        masses[thing] = mass
    total = sum(masses.values(), Fraction(0))
    if total != 1:
        raise ValueError(
            f"{name} must sum to exactly 1; got {float(total):.17g}. Fractions and strings such as '1/3' are exact"
        )
    return {thing: mass for thing, mass in masses.items() if mass}


def read_pmf(value: Any, name: str) -> Outcome:
    """Read what a learner returned."""
    if isinstance(value, Pmf):
        pairs = list(zip(value.outputs, value.weights, strict=True))
    elif isinstance(value, (set, frozenset)):
        return Outcome(frozenset((item, 1) for item in value), is_list=True)
    elif isinstance(value, Mapping):
        masses = read_masses(value, name)
        common = math.lcm(*(mass.denominator for mass in masses.values()))
        pairs = [(item, mass.numerator * (common // mass.denominator)) for item, mass in masses.items()]
    elif isinstance(value, Hashable):
        pairs = [(value, 1)]
    else:
        raise TypeError(f"{name} must be a Pmf, a mapping to probabilities, a set or an item; got {short_repr(value)}")
    divisor = math.gcd(*(weight for _, weight in pairs))
    return Outcome(frozenset((item, weight // divisor) for item, weight in pairs if weight))


class Samples:
    """All samples of m independent examples, with their probabilities."""

    def __init__(self, atoms: Atoms, m: int, *, symmetric: bool, runs: int) -> None:
        self.examples, self.m, self.symmetric = tuple(atoms), m, symmetric
        common = math.lcm(*(mass.denominator for mass in atoms.values()))
        self.weights = [mass.numerator * (common // mass.denominator) for mass in atoms.values()]
        size = len(atoms)
        self.count = capped_binomial(m + size - 1, size - 1, MAX_RUNS) if symmetric else capped_power(size, m, MAX_RUNS)
        if self.count * runs > MAX_RUNS:
            kind = "count vectors" if symmetric else "sequences"
            raise BudgetError(
                f"{self.count:,}{' or more' if self.count > MAX_RUNS else ''} {kind} of {m} among {size} examples, for "
                f"{runs:,} seeds; at most {MAX_RUNS:,} runs are made. Cheaper: fewer examples or seeds, a smaller m, "
                "or measure_agreement"
            )
        if self.count * m > MAX_EXAMPLES:
            raise BudgetError(
                f"{self.count:,} samples of m={short_repr(m)} have more than {MAX_EXAMPLES:,} examples, which are held "
                "together. Cheaper: a smaller m, or measure_agreement"
            )
        self.total = common**m
        """The sum of the weights of all samples."""

    def members(self) -> Iterator[Member]:
        """The samples, in order."""
        numbers = range(len(self.examples))
        if self.symmetric:
            return itertools.combinations_with_replacement(numbers, self.m)
        return itertools.product(numbers, repeat=self.m)

    def weight(self, member: Member) -> int:
        """The probability of a sample times the total; a multiset has that of all its orders."""
        weight = math.prod(self.weights[number] for number in member)
        if self.symmetric:
            weight *= math.factorial(self.m) // math.prod(map(math.factorial, Counter(member).values()))
        return weight

    def outcomes(self, run: Run, seed: Any, callback: ProgressCallback) -> dict[Outcome, int]:
        """The distinct outcomes with the weights of their samples."""
        members = list(self.members())
        found: dict[Outcome, int] = {}
        spread = set(np.linspace(0, len(members) - 1, SYMMETRY_SAMPLES, dtype=np.int64).tolist())
        outcomes = run(members, seed, callback)
        for place, (member, outcome) in enumerate(zip(members, outcomes, strict=True)):
            found[outcome] = found.get(outcome, 0) + self.weight(member)
            if (
                self.symmetric
                and place in spread
                and any(own != outcome for own in run(_orders(member), seed, _silent))
            ):
                sample = tuple(self.examples[number] for number in member)
                raise ValueError(
                    f"learner: the outcome changes when the sample {short_repr(sample)} is listed in another order; "
                    "use "
                    "symmetric=False"
                )
        return found


Run: TypeAlias = Callable[[Sequence[Member], Any, ProgressCallback], "list[Outcome]"]


def _orders(member: Member) -> list[Member]:
    """A sample in other orders: reversed, and the odd places before the even ones."""
    return [member[::-1], member[1::2] + member[::2]]


def _silent(done: int, total: int) -> None:
    """No progress to show."""


def runner(learner: Any, atoms: Atoms, seeds: Collection[Any]) -> Run:
    """How to run a learner on samples: objects by their methods, callables by calling them."""
    if seeds and isinstance(learner, StableLearner):
        for seed in seeds:
            if not isinstance(seed, PublicSeed):
                raise TypeError(f"seeds of a StableLearner must be PublicSeed objects; got {short_repr(seed)}")
        rows = _Rows(atoms)

        def together(members: Sequence[Member], seed: Any, callback: ProgressCallback) -> list[Outcome]:
            return [Outcome(frozenset([(item, 1)])) for item in learner.items(rows.users(members), seed)]

        return together
    if hasattr(learner, "distribution") or isinstance(learner, ListLearner):
        if seeds:
            raise TypeError(f"seeds are for a StableLearner or a callable; got {short_repr(learner)}")
        rows = _Rows(atoms)
        lists = isinstance(learner, ListLearner)

        def outcome(member: Member, seed: Any) -> Any:
            X, labels = rows.sample(member)
            return set(_cut(learner, X, labels)) if lists else learner.distribution(X, labels)

    elif isinstance(learner, StableLearner):
        raise TypeError(f"{type(learner).__name__} has no distribution; give seeds, or use measure_agreement")
    elif callable(learner):
        examples = tuple(atoms)

        def outcome(member: Member, seed: Any) -> Any:
            sample = tuple(examples[number] for number in member)
            return learner(sample, seed) if seeds else learner(sample)

    else:
        raise TypeError(f"learner must be a learner of userdp.stability or a callable; got {short_repr(learner)}")

    def one_by_one(members: Sequence[Member], seed: Any, callback: ProgressCallback) -> list[Outcome]:
        found = []
        for done, member in enumerate(members):
            found.append(read_pmf(outcome(member, seed), f"learner: the outcome for sample {done}"))
            callback(done + 1, len(members))
        return found

    return one_by_one


def _cut(learner: ListLearner, X: npt.NDArray[Any], labels: npt.NDArray[np.uint8]) -> Iterator[Hashable]:
    """The list that counts: without what goes beyond the size of lists."""
    return iter(learner.frequencies(X, labels, 1))


class _Rows:
    """Examples (x, y) as rows of features and labels."""

    def __init__(self, atoms: Atoms) -> None:
        try:
            self.X = np.array([np.atleast_1d(x) for x, _ in atoms])
            labels = [y for _, y in atoms]
        except (TypeError, ValueError):
            raise ValueError("distribution must have examples (x, y) with rows x of one length") from None
        if self.X.ndim != 2 or any(y not in (0, 1) for y in labels):
            raise ValueError("distribution must have examples (x, y) with x a number or a row and y 0 or 1")
        self.labels = np.array(labels, dtype=np.uint8)

    def sample(self, member: Member) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """Features and labels of a sample."""
        numbers = np.array(member)
        return self.X[numbers], self.labels[numbers]

    def users(self, members: Sequence[Member]) -> UserTable:
        """One user for each sample."""
        numbers, m = np.array(members), len(members[0])
        owners = np.repeat(np.arange(len(members), dtype=np.uint32), m)
        return UserTable(self.X[numbers.ravel()], self.labels[numbers.ravel()], owners, len(members), m)


class Errors:
    """The exact errors of items under a distribution."""

    def __init__(
        self,
        learner: Any,
        atoms: Atoms,
        given: Callable[[Any], Any] | None,
        concepts: ConceptClass | None,
        alpha: Fraction,
    ) -> None:
        self.given, self.learner, self.atoms, self.alpha = given, learner, atoms, alpha
        self.rows = None if given is not None or not hasattr(learner, "predict") else _Rows(atoms)
        if alpha == 1:
            return
        if given is None and self.rows is None:
            self._unknown()
        if not isinstance(concepts, (ConceptClass, type(None))):
            raise TypeError(f"concepts must be a ConceptClass or None; got {short_repr(concepts)}")
        fitting = getattr(learner, "hypotheses", None) if concepts is None else concepts
        if fitting is not None:
            rows = _Rows(atoms)
            right = fitting.predict(fitting.points(rows.X)) == rows.labels.astype(np.bool_)[:, None]
            if not right.all(axis=0).any():
                raise ValueError(
                    f"distribution is not realizable: every concept of {short_repr(fitting)} has an error, and "
                    "alpha asks "
                    "for accuracy; give the class as concepts, or alpha=1"
                )

    def __call__(self, item: Any) -> Fraction | None:
        """The error of an item, None where it is not known."""
        if self.given is not None:
            error = exact_number(self.given(item))
            if error is None or not 0 <= error <= 1:
                raise ValueError(f"errors: the error of {short_repr(item)} must be in [0, 1]; got {short_repr(error)}")
            return error
        if self.rows is None:
            self._unknown()
            return None
        X = self.rows.X
        try:
            listed = isinstance(self.learner, ListLearner)
            said = self.learner.predict(item, self.learner.hypotheses.points(X) if listed else X)
        except NotImplementedError:
            self._unknown()
            return None
        wrong = np.asarray(said) != self.rows.labels.astype(np.bool_)
        return sum((mass for mass, bad in zip(self.atoms.values(), wrong, strict=True) if bad), Fraction(0))

    def _unknown(self) -> None:
        if self.alpha < 1:
            raise TypeError("alpha: accuracy needs errors, a function from item to error, for this learner")

    def accurate(self, error: Fraction | None) -> bool:
        """Whether an error counts as accurate."""
        return self.alpha == 1 or (error is not None and error <= self.alpha)
