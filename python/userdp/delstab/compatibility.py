"""When two kept datasets count as alike: the inner algorithm's exact pmfs on them, and how they are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp import _core
from userdp.algorithms.evaluation import checked_masses, outputs_of, pmf_error_of
from userdp.delstab.calibration import Calibration
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import PrivacyLevel
from userdp.exact.pmf import ExactMasses, Masses, distinct_masses

DETERMINISM_SAMPLES = 16
LARGEST_EPSILON = 256
"""Bad pairs are searched with float64 first, which holds e^epsilon up to here with room to spare."""


def normalized(masses: Masses) -> ExactMasses:
    """The masses over their exact sum, in lowest terms."""
    if isinstance(masses, np.ndarray):
        ratios = [mass.as_integer_ratio() for mass in masses.tolist()]
        scale = max(denominator for _, denominator in ratios)  # powers of two
        weights = [numerator * (scale // denominator) for numerator, denominator in ratios]
    else:
        weights = masses[0]
    divisor = math.gcd(*weights)
    reduced = [weight // divisor for weight in weights]
    return reduced, sum(reduced)


@dataclass(frozen=True)
class Distributions:
    """The inner distributions on all kept sets of some types, in the order of the deletion vectors."""

    matrix: _core.PmfMatrix
    incompatible: list[int]  # rows for kept sets on which the algorithm fails


@dataclass
class InnerPmfs:
    """The distributions of an algorithm on kept datasets, as they are compared and as they are drawn from."""

    outputs: tuple[Any, ...]  # The algorithm's k outputs
    # Two distributions are compatible when they are indistinguishable at this level, which is the
    # calibration's unless the algorithm declares a `pmf_error`, and then one at which no distributions within that
    # error are farther apart.
    level: _core.Level
    delta: Fraction
    strict: bool = False  # True in diagnostics: the first answers are asked for twice, and must not differ

    @classmethod
    def of(cls, algorithm: Any, calibration: Calibration, *, strict: bool = False) -> InnerPmfs:
        """What the calibration asks of the algorithm's distributions."""
        level, delta, error = calibration.inner_level, calibration.inner_delta, pmf_error_of(algorithm)
        if error:
            level = PrivacyLevel(level.ratio * (1 - error) / (1 + error), level.exponent)
            delta /= 1 + error
        epsilon = float(level.exponent) + math.log(level.ratio.numerator) - math.log(level.ratio.denominator)
        if abs(epsilon) > LARGEST_EPSILON:
            raise ValueError(
                f"epsilon: kept sets would have to be compared at the level {epsilon:.4g}, and levels are limited to "
                f"{LARGEST_EPSILON} (a pmf_error near 1 makes them negative)"
            )
        return cls(outputs_of(algorithm), core_level(level), delta, strict)

    def evaluate(self, questions: Sequence[Callable[[], Any]]) -> list[Masses | None]:
        """Ask for one distribution after the other; None where the algorithm raises or answers with what is no pmf."""
        answers = [self._answer(question) for question in questions]
        if self.strict:
            for question, answer in list(zip(questions, answers, strict=True))[:DETERMINISM_SAMPLES]:
                again = self._answer(question)
                if (again is None) != (answer is None) or (
                    again is not None and answer is not None and distinct_masses(again) != distinct_masses(answer)
                ):
                    raise ValueError(
                        "the algorithm returned two different pmfs on the same kept users; pmf must be deterministic"
                    )
        return answers

    def _answer(self, question: Callable[[], Any]) -> Masses | None:
        # Whatever goes wrong on a dataset is a property of that dataset, and as private as the data; SystemExit too.
        try:
            masses = checked_masses(question(), self.outputs, "the pmf")
            # The algorithm may use its own array again.
            return masses.copy() if isinstance(masses, np.ndarray) else masses
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None

    def distributions(self, questions: Sequence[Callable[[], Any]]) -> Distributions:
        """The answers to some questions as a matrix."""
        return self.table(self.evaluate(questions))

    def table(self, pmfs: Sequence[Masses | None]) -> Distributions:
        """The pmfs as a matrix; where there is none, another one stands in its place."""
        filler: Masses = np.eye(1, len(self.outputs))[0]
        rows = [filler if pmf is None else pmf for pmf in pmfs]
        return Distributions(matrix_of(rows), [row for row, pmf in enumerate(pmfs) if pmf is None])


def matrix_of(pmfs: Sequence[Masses]) -> _core.PmfMatrix:
    """Checked distributions over their exact sums; without a fraction where all of them are floats."""
    if all(isinstance(pmf, np.ndarray) for pmf in pmfs):
        return _core.PmfMatrix.from_normalized(np.array(pmfs))
    return _core.PmfMatrix.from_masses([normalized(pmf) for pmf in pmfs])
