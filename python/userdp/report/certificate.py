"""The certificate of a table: numbers from which a theorem that Coq has checked proves privacy.

Calibrations of DelStab, noise, the exponential mechanism and `Certificate.of_pair` make them.
docs/certificates.md says what they say, and how to check one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from userdp.checker import values, work
from userdp.checker.certificates import MOST_ENTRIES, PARTS, WHOLE_PARTS, check_certificate, read_numbers
from userdp.checker.coq import CLAIMS, SUBJECTS, coq_text
from userdp.display import Fact, Section
from userdp.display.numbers import in_digits, number_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import Delta, Epsilon, PrivacyLevel, parse_delta, parse_level, short_repr
from userdp.exact.pmf import PmfLike, fractions_of, masses_of, whole_multiples
from userdp.exceptions import BudgetError
from userdp.report.base import Report, level_facts, report
from userdp.report.fields import COUNT, LEVEL, SHARE, WHOLE, Codec, many, object_of, one_of, optional, written

PAIR_BITS = 256
"""Binary places of a factor below e^epsilon."""
TABLE_BITS = 128
"""Those of the one that tables are made with, whose denominator is 2^128 too."""
FIRST_TERMS, MOST_TERMS = 32, 4096
"""Of the power series of e^x."""


PART_NAMES = {
    "noise_delta": "Share of delta for the noise",
    "inner_delta": "Delta at which kept sets are compared",
    "deletions": "Users left out",
    "sensitivity": "Sensitivity, in steps of the scores",
    "candidates": "Candidates, at most",
}
WITNESSES = ("beta", "low", "high", "theta", "precision", "inner_ratio", "inner_exponent")


def _parts(code: Any) -> dict[str, Fraction]:
    values.need(isinstance(code, dict) and set(code) <= {*PART_NAMES, *WITNESSES}, f"{code!r:.60} are no parts")
    return {name: values.fraction(code[name]) for name in (*PART_NAMES, *WITNESSES) if name in code}


_PARTS = Codec(
    lambda parts: {name: fraction_text(value) for name, value in parts.items()},
    _parts,
    object_of({}, {name: (WHOLE if name in WHOLE_PARTS else SHARE).schema for name in (*PART_NAMES, *WITNESSES)}),
)


@report("certificate")
class Certificate(Report):
    """Numbers from which a machine-checked theorem proves that what is drawn from a table is private.

    `verify` computes everything again in pure Python, and `to_coq` writes a file that Coq checks: the same numbers,
    and the theorem about privacy that follows from them.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> found = Certificate.of_pair(["2/3", "1/3"], ["1/3", "2/3"], epsilon=LogRatio(2), delta=0)
    >>> found.verify().finding
    'established'
    >>> "Theorem indistinguishable" in found.to_coq()
    True
    """

    subject: str = written(
        one_of(*PARTS),
        "A calibration of DelStab; truncated discrete Laplace noise; the exponential mechanism; two distributions.",
    )
    epsilon: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(
        SHARE, "What is proved, for the replacement of one user; of a pair: that they are indistinguishable, both ways."
    )
    factor: Fraction = written(
        SHARE, "At most e^epsilon, or of a calibration at most its share: what the table is checked with."
    )
    terms: int = written(COUNT, "How many terms of the power series of e^x show this.")
    total: int = written(WHOLE, "The denominator of the table.")
    table: tuple[int, ...] = written(
        many(WHOLE, 1),
        'Refusals by size of "optimal"; the pmf of R1 or of the noise; weights by gap; the first pmf of a pair.',
    )
    second: tuple[int, ...] | None = written(optional(many(WHOLE, 1)), "The second pmf of a pair.")
    parts: Mapping[str, Fraction] = written(
        _PARTS, "What else the theorem about the subject speaks of, or needs as a witness."
    )

    @classmethod
    def of_pair(cls, p: PmfLike, q: PmfLike, *, epsilon: Epsilon, delta: Delta) -> Certificate:
        """The certificate that two distributions are (epsilon, delta)-indistinguishable, both ways.

        Parameters
        ----------
        p, q : array-like of shape (k,), or Pmf
            Probability mass functions over the same outputs, whose masses sum to exactly 1.
        epsilon : float, int, Fraction, decimal string or LogRatio
            Privacy parameter, >= 0, taken exactly.
        delta : float, int, Fraction or decimal string
            Probability in [0, 1), taken exactly.

        Raises
        ------
        ValueError
            When they are not indistinguishable, and for masses that do not sum to exactly 1.
        BudgetError
            For numbers that are too long to be checked.
        """
        from userdp.divergence import is_indistinguishable

        level, probability = parse_level(epsilon), parse_delta(delta)
        if probability == 1:
            raise ValueError("delta must be < 1 here: at delta = 1 any two distributions are indistinguishable")
        masses = [fractions_of(masses_of(values, name)) for values, name in ((p, "p"), (q, "q"))]
        for name, fractions in zip("pq", masses, strict=True):
            if sum(fractions) != 1:
                raise ValueError(f"{name} must sum to exactly 1 for a certificate; give fractions or decimal texts")
        if len(masses[0]) != len(masses[1]):
            raise ValueError(f"p and q must have the same outputs; got {len(masses[0])} and {len(masses[1])} masses")
        if len(masses[0]) > MOST_ENTRIES:
            raise BudgetError(f"p and q have {len(masses[0])} masses, and certificates at most {MOST_ENTRIES}")
        if not is_indistinguishable(p, q, epsilon=epsilon, delta=delta):
            raise ValueError(f"p and q are not indistinguishable at epsilon={short_repr(epsilon)} and this delta")
        weights = whole_multiples([*masses[0], *masses[1]])
        k = len(masses[0])
        return certified(
            subject="pair",
            epsilon=level,
            delta=probability,
            factor=level_below(level, PAIR_BITS),
            total=sum(weights[:k]),
            table=tuple(weights[:k]),
            second=tuple(weights[k:]),
            parts={},
        )

    @property
    def holds(self) -> bool:
        """That the claim holds is what a certificate says; whether it does, `verify` finds."""
        return True

    def to_coq(self) -> str:
        """Return a file that Coq checks next to the theorems of ``proofs``: see docs/certificates.md.

        It ends in the theorem about privacy. It is made of the numbers of the certificate and of no other text of it.
        A file of wrong numbers can be written; Coq refuses it.
        """
        return coq_text(self.subject, read_numbers(self._content()))

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("subject", "epsilon", "delta", "factor", "total")
        return [{name: getattr(self, name) for name in names} | {"entries": len(self.table)}]

    def _sections(self) -> Sequence[Section]:
        claim = level_facts(self.epsilon, self.delta)
        asked = [
            Fact("Subject", SUBJECTS[self.subject]),
            Fact("Entries of the table", in_digits(len(self.table))),
            *(_fact(name, self.parts[name]) for name in PART_NAMES if name in self.parts),
        ]
        return [
            Section(
                "Certificate of a table",
                "CLAIMED",
                f"By a theorem that Coq has checked, {CLAIMS[self.subject]}.",
                facts=[("Claim", claim), ("Numbers", asked)],
                headline=claim,
            )
        ]


def _fact(name: str, value: Fraction) -> Fact:
    """One of the parts, in words."""
    if value.denominator == 1 and name in WHOLE_PARTS:
        return Fact(PART_NAMES[name], in_digits(value.numerator))
    return Fact(PART_NAMES[name], *number_text(value))


def level_below(level: PrivacyLevel, bits: int) -> Fraction:
    """E itself where it is a fraction, and otherwise a number below it with so many binary places."""
    if not level.exponent:
        return level.ratio
    from userdp import _core
    from userdp.exact.epsilon import core_level

    low, _ = _core.exp_bounds(core_level(level), 2 * bits)
    return Fraction(low * 2**bits // 1, 2**bits)


def table_factor(level: PrivacyLevel) -> Fraction:
    """The number below E that the core makes and checks tables with: 128 binary places, and at most 2^64."""
    low = level_below(level, TABLE_BITS)
    return Fraction(min(low * 2**TABLE_BITS // 1, 2 ** (TABLE_BITS + 64)), 2**TABLE_BITS)


def certified(**numbers: Any) -> Certificate:
    """The certificate of these numbers, with as many terms as it takes.

    BudgetError where they are too long to be checked, and ArithmeticError where they do not prove the claim.
    """
    terms = FIRST_TERMS
    while True:
        made = Certificate(terms=terms, **numbers)
        try:
            with work.at_most():
                check_certificate(made._content())
        except values.Problem as problem:
            if "too long" in str(problem):
                raise BudgetError(f"no certificate of this is written: {problem}; try a shorter epsilon") from None
            if terms >= MOST_TERMS:
                raise ArithmeticError(f"no certificate of this is found, please report it: {problem}") from None
            terms *= 2
            continue
        return made
