"""Decision lists by statistical queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, defensive_copy, open_unit_fraction
from userdp.exceptions import BudgetError
from userdp.stability.statistical_queries import (
    Oracle,
    StatisticalQuery,
    StatisticalQueryAlgorithm,
    bits_of_digits,
    bytes_of_digits,
    digits_of_bytes,
    first_columns,
)

MAX_TERMS = 2**12

Rules = tuple[int, ...]
"""For every term 0 if it is not in the list, else 1 + 2 round + label: the order is by round, then by term."""


@saved_as_parameter
class DecisionListQueries(StatisticalQueryAlgorithm):
    """Learn decision lists over yes-no features: "if a then 0, else if b and not c then 1, ..., else 0".

    Parameters
    ----------
    n_features : int
        d: the first d columns are read. A feature is on where its value is above 1/2; NaN is off.
    alpha : float, Fraction or decimal string
        The error that is aimed at, in (0, 1).
    width : int
        The most features in a condition (k-decision lists of Rivest), 1 by default. There are
        N = sum_{i <= width} C(d, i) 2^i conditions ("terms"), the one that always holds included.
    length : int, optional
        The rounds, 1 to N; public. Lists of at most so many rules, the last one ("else") included, are learned. N by
        default, which any decision list of this width needs no more than.
    tolerance : float, Fraction or decimal string, optional
        By default alpha / (2N). A larger one takes fewer rows and keeps no promise about the error.

    Notes
    -----
    *Algorithm.* Each round asks of every unused term and both labels which part of all rows the list so far leaves to
    the term with the other label. Where that is at most `tolerance`, the rule joins the list, in the public order of
    the terms. "always" is asked first, and ends the list. After the last round, or if nothing joins, the list ends with
    the label that more of the rest have.

    *Error.* On a distribution that some list of at most `length` rules labels without error, and with answers within
    `tolerance`, the error is at most 2 N tolerance = alpha: rule j of the target errs nowhere once those before it have
    joined, so that it joins in round j; and every rule that joins errs on at most 2 tolerance of all rows.

    *Queries.* At most 2 (N + (N - 1) + ... + (N - length + 2)) + 3.

    *Stability.* Only whether an answer is at most `tolerance` is learned. Users part only on queries whose mean is near
    that, and so `variance` is 2 tolerance, on the distributions above. Proofs: docs/proofs/statistical_queries.md.

    References
    ----------
    Rivest, "Learning Decision Lists" (Machine Learning 2, 1987); Kearns, "Efficient Noise-Tolerant Learning from
    Statistical Queries" (J. ACM 45, 1998). GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated
    Sampling" (NeurIPS 2021): [GKM21, Corollary 33].

    Examples
    --------
    >>> algorithm = DecisionListQueries(3, alpha="0.1", length=2)
    >>> algorithm.terms[:4], algorithm.max_queries, algorithm.tolerance, algorithm.hypothesis_bits
    (('x0', 'not x0', 'x1', 'not x1'), 17, Fraction(1, 140), 17)

    What it does with exact answers:

    >>> import numpy as np
    >>> X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    >>> labels = np.where(X[:, 1] == 1, 0, X[:, 2]).astype(np.uint8)
    >>> class Exactly:
    ...     def __call__(self, phi):
    ...         return Fraction(np.mean(phi(algorithm.points(X), labels)))
    ...
    ...     def at_most(self, phi, bound):
    ...         return self(phi) <= bound
    >>> hypothesis = algorithm.run(Exactly())
    >>> algorithm.describe(hypothesis)
    'if x1: 0; else if not x2: 0; else 1'
    >>> bool((algorithm.predict(hypothesis, X) == labels).all())
    True
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self, n_features: int, *, alpha: Any, width: int = 1, length: int | None = None, tolerance: Any = None
    ) -> None:
        self._parameters = {
            "n_features": n_features,
            "alpha": defensive_copy(alpha),
            "width": width,
            "length": length,
            "tolerance": defensive_copy(tolerance),
        }
        self.n_features = check_count(n_features, "n_features")
        self.alpha = open_unit_fraction(alpha, "alpha")
        self.width = check_count(width, "width")
        size = _number_of_terms(self.n_features, self.width)
        self._literals = tuple(_terms(self.n_features, self.width))
        self.length = size if length is None else check_count(length, "length")
        if self.length > size:
            raise ValueError(f"length must be at most {size}, the number of terms; got {length}")
        self.tolerance = self.alpha / (2 * size) if tolerance is None else open_unit_fraction(tolerance, "tolerance")
        self.variance = 2 * self.tolerance
        self.max_queries = 2 * sum(size - number for number in range(self.length - 1)) + 3
        self._base = 2 * self.length + 1
        self.hypothesis_bits = bits_of_digits(size, self._base)
        self.default: Rules = (0,) * (size - 1) + (1,)

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms in the public order of the rules of one round; the last one always holds."""
        return tuple(
            " and ".join(f"x{feature}" if on else f"not x{feature}" for feature, on in literals) or "always"
            for literals in self._literals
        )

    def points(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Which terms hold for which rows."""
        on = first_columns(X, self.n_features) > 0.5
        held = np.ones((len(X), len(self._literals)), dtype=np.bool_, order="F")
        for place, literals in enumerate(self._literals):
            for feature, wanted in literals:
                held[:, place] &= on[:, feature] == wanted
        return held

    def run(self, ask: Oracle) -> Rules:
        """Build a list, round by round."""
        always = len(self._literals) - 1
        rules = [0] * len(self._literals)
        for number in range(self.length):
            if self._join(ask, rules, [always], number):
                return tuple(rules)
            unused = [place for place in range(always) if not rules[place]]
            if number + 1 == self.length or not self._join(ask, rules, unused, number):
                break
        more_zeros = ask.at_most(_ones_minus_zeros(_used(rules)), Fraction(0))
        rules[always] = _digit(number, 0 if more_zeros else 1)
        return tuple(rules)

    def _join(self, ask: Oracle, rules: list[int], candidates: list[int], number: int) -> bool:
        """Let those candidates join the list that hardly err; whether any did."""
        used, joined = _used(rules), False
        for term in candidates:
            for label in (0, 1):
                if ask.at_most(_mistakes(used, term, label), self.tolerance):
                    rules[term], joined = _digit(number, label), True
                    break
        return joined

    def predict(self, hypothesis: Rules, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What a list says; False where no rule holds."""
        held = self.points(X)
        left = np.ones(len(X), dtype=np.bool_)
        second = np.zeros(len(X), dtype=np.bool_)
        for term, label in _in_order(hypothesis):
            here = left & held[:, term]
            second[here] = bool(label)
            left &= ~here
        return second

    def encode(self, hypothesis: Rules) -> bytes:
        """A list as one number, with a digit for every term."""
        return bytes_of_digits(hypothesis, self._base)

    def decode(self, item: bytes) -> Rules:
        """The list of some bytes; "always 0" for bytes that stand for none."""
        rules = digits_of_bytes(item, len(self._literals), self._base)
        return self.default if rules is None else rules

    def describe(self, hypothesis: Rules) -> str:
        """A list in words, up to the rule that always holds."""
        words = []
        for term, label in _in_order(hypothesis):
            if term == len(self._literals) - 1:
                words.append(str(label))
                break
            words.append(f"if {self.terms[term]}: {label}")
        else:
            words.append("0")
        return "; else ".join(words)

    def _arguments(self) -> dict[str, Any]:
        return dict(self._parameters)


def _terms(n_features: int, width: int) -> Iterator[tuple[tuple[int, bool], ...]]:
    """Conditions on few features, short ones first, but for the one that always holds, which is the last."""
    for count in range(1, width + 1):
        for features in combinations(range(n_features), count):
            for wanted in product((True, False), repeat=count):
                yield tuple(zip(features, wanted, strict=True))
    yield ()


def _number_of_terms(n_features: int, width: int) -> int:
    """How many there are."""
    if width > n_features:
        raise ValueError(f"width must be at most n_features = {n_features}; got {width}")
    size = 0
    for count in range(width + 1):
        size += math.comb(n_features, count) << count
        if size > MAX_TERMS:
            raise BudgetError(
                f"n_features={n_features} and width={width} make more than 2**12 terms, each of which is asked of in "
                "every round; give a smaller width or fewer features"
            )
    return size


def _digit(number: int, label: int) -> int:
    return 1 + 2 * number + label


def _used(rules: list[int]) -> list[int]:
    return [term for term, digit in enumerate(rules) if digit]


def _in_order(rules: Rules) -> list[tuple[int, int]]:
    """Terms and labels, from the first rule of the list to its last."""
    used = sorted(((digit - 1) // 2, term, (digit - 1) % 2) for term, digit in enumerate(rules) if digit)
    return [(term, label) for _, term, label in used]


def _left(held: npt.NDArray[Any], used: list[int]) -> npt.NDArray[np.bool_]:
    """The rows that no rule of a list holds for."""
    left = np.ones(len(held), dtype=np.bool_)
    for term in used:
        left &= ~held[:, term]
    return left


def _mistakes(used: list[int], term: int, label: int) -> StatisticalQuery:
    """The rows that the list leaves to a term, with another label than this."""
    return lambda held, labels: _left(held, used) & held[:, term] & (labels != label)


def _ones_minus_zeros(used: list[int]) -> StatisticalQuery:
    """1 and -1 for the rows with label 1 and 0 that the list leaves."""
    return lambda held, labels: _left(held, used) * (2.0 * labels - 1.0)
