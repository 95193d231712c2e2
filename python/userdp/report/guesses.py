"""What guesses proved about code that was only run: samples, one run with canary users, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from userdp.checker.divergences import Level
from userdp.checker.guesses import refuted_by
from userdp.display import Fact, Section
from userdp.display.numbers import bounded, level_text, number_text, plural
from userdp.exact.numbers import PrivacyLevel, least
from userdp.report.base import COUNT, FLAG, FRACTION, LEVEL, TEXT, Codec, Report, members, one_of, optional

Access = Literal["samples", "one-run", "time"]
ACCESSES: tuple[Access, ...] = ("samples", "one-run", "time")
NEIGHBORS = ("replace", "add-remove", "inputs")


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Counts of guesses, and the epsilon that they refute.

    Attributes
    ----------
    alpha : Fraction
        The probability of an error.
    right, wrong, none : int
        Guesses that were right and wrong, and draws without a guess.
    epsilon : PrivacyLevel
        At a smaller epsilon, such counts have a probability of at most alpha; 0 if they prove nothing.
    """

    alpha: Fraction
    right: int
    wrong: int
    none: int
    epsilon: PrivacyLevel


_GUESSES = members(Guesses, alpha=FRACTION, right=COUNT, wrong=COUNT, none=COUNT, epsilon=LEVEL)


@dataclass(frozen=True, kw_only=True, repr=False)
class GuessReport(Report):
    """What guesses of fair coins prove about a mechanism that was only run; they can convict it, and never acquit it.

    Attributes
    ----------
    mechanism : str
    access : {"samples", "one-run", "time"}
        How it was run: often on two datasets, once with canary users, or with a clock.
    neighbors : {"replace", "add-remove", "inputs"}
        What a coin chose: one of two users in a place, whether a user is there, or one of two inputs of a function.
    test : {"fixed", "anytime"}
        "fixed": the number of guesses was fixed before. "anytime": the counts may be those of any moment.
    epsilon_level : PrivacyLevel
    delta : Fraction
        The claim, exactly.
    canaries : int
        For one run: of how many users coins were tossed. 0 otherwise.
    sides : int
        For samples: 1 when only one of the datasets was ever guessed, otherwise 2.
    runs, raised : int
        How often it was run, for training too, and in how many of these runs it raised.
    holds : bool or None
        False when the claim is refuted, and None otherwise: draws never show that a claim holds.
    verdict : Guesses
        What the verdict rests on; its alpha is the probability of a wrong verdict.
    estimate : Guesses
        The same for the printed bound of epsilon, at a larger probability of an error.
    about : str
        What was guessed by, in words.
    """

    mechanism: str
    access: str
    neighbors: str
    test: str
    epsilon_level: PrivacyLevel
    delta: Fraction
    canaries: int
    sides: int
    runs: int
    raised: int
    holds: bool | None
    verdict: Guesses
    estimate: Guesses
    about: str

    KIND: ClassVar[str] = "guesses"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "mechanism": TEXT,
        "access": one_of(*ACCESSES),
        "neighbors": one_of(*NEIGHBORS),
        "test": one_of("fixed", "anytime"),
        "epsilon_level": LEVEL,
        "delta": FRACTION,
        "canaries": COUNT,
        "sides": COUNT,
        "runs": COUNT,
        "raised": COUNT,
        "holds": optional(FLAG),
        "verdict": _GUESSES,
        "estimate": _GUESSES,
        "about": TEXT,
    }

    @property
    def lower(self) -> PrivacyLevel:
        """The epsilon that is exceeded, but for the probability ``estimate.alpha`` of an error."""
        return self.estimate.epsilon

    @property
    def advantage(self) -> Fraction | None:
        """A lower bound of the total variation distance of what the two datasets or inputs lead to; None for one run.

        That is the most by which a guess can be right more often than wrong. It has the error of `estimate`, and is a
        multiple of 1/1024.
        """
        if self.access == "one-run":
            return None
        found = self.estimate
        counts = [found.right, found.wrong, found.none]

        def stands(place: int) -> bool:
            return not refuted_by(False, counts, Fraction(1), found.alpha, self.sides * Fraction(place, 1024))

        return Fraction(least(stands, 0, 1024) - 1, 1024)  # the larger the margin, the less is refuted

    @property
    def doubtful(self) -> bool:
        """Whether the claim is refuted at the error of the estimate, and not at that of the verdict."""
        claim, found = self.epsilon_level, self.estimate.epsilon  # which is the logarithm of a fraction
        cap = found.ratio.numerator.bit_length() + 2
        return self.holds is None and Level(claim.ratio, claim.exponent, cap).sign(found.ratio, Fraction(1)) > 0

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError("no verdict, which does not show that the claim holds; look at .holds and .lower")
        return self.holds

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "kind": kind,
                "alpha": found.alpha,
                "right": found.right,
                "wrong": found.wrong,
                "none": found.none,
                "epsilon_above": float(found.epsilon),
            }
            for kind, found in (("verdict", self.verdict), ("estimate", self.estimate))
        ]

    def _sections(self) -> Sequence[Section]:
        how = {
            "samples": "many draws on two neighboring datasets",
            "one-run": f"one run with {plural(self.canaries, 'canary user')}",
            "time": "the time of many runs on two inputs",
        }[self.access]
        what = {
            "replace": "which of two users is in a place",
            "add-remove": "whether a user is there, or removed",
            "inputs": "which of the two inputs",
        }[self.neighbors]
        shown = Fact("Epsilon is more than", *level_text(self.estimate.epsilon, "down"))
        found = [
            shown,
            Fact("But for an error of probability", *number_text(self.estimate.alpha)),
            Fact("Guesses", f"{self.estimate.right:,} right and {self.estimate.wrong:,} wrong"),
        ]
        if self.access == "time":
            found.insert(
                1, Fact("Guesses are right more often than wrong by", bounded(self.advantage or Fraction(0), "down"))
            )
        decided = [
            Fact("Epsilon is more than", *level_text(self.verdict.epsilon, "down")),
            Fact("But for an error of probability", *number_text(self.verdict.alpha)),
            Fact("Guesses", f"{self.verdict.right:,} right and {self.verdict.wrong:,} wrong"),
        ]
        asked = [
            Fact("Claimed epsilon", *level_text(self.epsilon_level)),
            Fact("Claimed delta", *number_text(self.delta)),
            Fact("How it was run", how),
            *([Fact("Runs that raised", f"{self.raised:,} of {self.runs:,}")] if self.raised else []),
            Fact("A coin chose", what),
            Fact("Guessed by", self.about),
        ]
        verdict, estimate = number_text(self.verdict.alpha)[0], number_text(self.estimate.alpha)[0]
        if self.holds is False:
            word, tone = "VIOLATED", "bad"
            sentence = (
                "If the claim held, coins would be guessed right that often with a probability of at most "
                f"{bounded(self.verdict.alpha)}."
            )
        elif self.doubtful:
            word, tone = f"REFUTED AT AN ERROR OF {estimate} ONLY", "open"
            sentence = (
                f"The counts contradict the claim at an error of {estimate}: so often a right mechanism looks like "
                f"this one. They do not at {verdict}, the error of a verdict. More draws would tell."
            )
        else:
            word, tone = "NO VIOLATION SHOWN", "open"
            sentence = (
                f"The counts do not refute the claim, neither at an error of {verdict} (for a verdict) nor at one of "
                f"{estimate} (for the bound of epsilon). That does not show that the claim holds: other data, other "
                "guesses or more draws may refute it."
            )
        return [
            Section(
                f"Guesses about {self.mechanism}",
                word,
                sentence,
                tone,  # type: ignore[arg-type]
                facts=[("Shown", found), ("For the verdict", decided), ("Question", asked)],
                notes=["The draws cannot be repeated; the counts can be checked, and the audit can be run again."],
                headline=[shown],
            )
        ]
