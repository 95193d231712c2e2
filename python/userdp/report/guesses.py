"""What guesses proved about code that was only run: samples, one run with canary users, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from userdp.checker.divergences import Level
from userdp.checker.guesses import refuted_by
from userdp.display import Fact, Section
from userdp.display.numbers import bounded, level_text, number_text, plural
from userdp.exact.numbers import PrivacyLevel, least
from userdp.report.base import VERDICTS, Report, level_facts, report, verdict
from userdp.report.fields import COUNT, FLAG, LEVEL, POSITIVE, SHARE, TEXT, of, one_of, optional, part, written

Access = Literal["samples", "one-run", "time"]
ACCESSES: tuple[Access, ...] = ("samples", "one-run", "time")
NEIGHBORS = ("replace", "add-remove", "inputs")


@part
class Guesses:
    """Counts of guesses, and the epsilon that they refute."""

    alpha: Fraction = written(SHARE, "The probability of an error.")
    right: int = written(COUNT)
    wrong: int = written(COUNT)
    none: int = written(COUNT, "Guesses that were right and wrong, and draws without a guess.")
    epsilon: PrivacyLevel = written(
        LEVEL, "At a smaller epsilon, such counts have a probability of at most alpha; 0 if they prove nothing."
    )


_COUNTED = of(Guesses, "counted")


@report("guesses")
class GuessReport(Report):
    """What guesses of fair coins prove about a mechanism that was only run.

    They can convict it, and never acquit it.
    """

    mechanism: str = written(TEXT)
    access: str = written(
        one_of(*ACCESSES), "How it was run: often on two datasets, once with canary users, or with a clock."
    )
    neighbors: str = written(
        one_of(*NEIGHBORS),
        "What a coin chose: one of two users in a place, whether a user is there, or one of two inputs of a function.",
    )
    test: str = written(
        one_of("fixed", "anytime"),
        '"fixed": the number of guesses was fixed before. "anytime": the counts may be those of any moment.',
    )
    epsilon_level: PrivacyLevel = written(LEVEL)
    delta: Fraction = written(SHARE, "The claim, exactly.")
    canaries: int = written(COUNT, "For one run: of how many users coins were tossed. 0 otherwise.")
    sides: int = written(
        COUNT.within(minimum=1, maximum=2),
        "For samples: 1 when only one of the datasets was ever guessed, otherwise 2.",
    )
    runs: int = written(POSITIVE)
    raised: int = written(COUNT, "How often it was run, for training too, and in how many of these runs it raised.")
    holds: bool | None = written(
        optional(FLAG).within(enum=[False, None]),
        "False when the claim is refuted, and None otherwise: draws never show that a claim holds.",
    )
    verdict: Guesses = written(_COUNTED, "What the verdict rests on; its alpha is the probability of a wrong verdict.")
    estimate: Guesses = written(
        _COUNTED, "The same for the printed bound of epsilon, at a larger probability of an error."
    )
    about: str = written(TEXT, "What was guessed by, in words.")

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
            *level_facts(self.epsilon_level, self.delta, claimed="Claimed"),
            Fact("How it was run", how),
            *([Fact("Runs that raised", f"{self.raised:,} of {self.runs:,}")] if self.raised else []),
            Fact("A coin chose", what),
            Fact("Guessed by", self.about),
        ]
        surely, likely = number_text(self.verdict.alpha)[0], number_text(self.estimate.alpha)[0]
        word = ""
        if self.holds is False:
            sentence = (
                "If the claim held, coins would be guessed right that often with a probability of at most "
                f"{bounded(self.verdict.alpha)}."
            )
        elif self.doubtful:
            word = f"REFUTED AT AN ERROR OF {likely} ONLY"
            sentence = (
                f"The counts contradict the claim at an error of {likely}: so often a right mechanism looks like "
                f"this one. They do not at {surely}, the error of a verdict. More draws would tell."
            )
        else:
            word = "NO VIOLATION SHOWN"
            sentence = (
                f"The counts do not refute the claim, neither at an error of {surely} (for a verdict) nor at one of "
                f"{likely} (for the bound of epsilon). That does not show that the claim holds: other data, other "
                "guesses or more draws may refute it."
            )
        return [
            Section(
                f"Guesses about {self.mechanism}",
                **verdict(self.holds, dict.fromkeys(VERDICTS, sentence), {None: word}),
                facts=[("Shown", found), ("For the verdict", decided), ("Question", asked)],
                notes=["The draws cannot be repeated; the counts can be checked, and the audit can be run again."],
                headline=[shown],
            )
        ]
