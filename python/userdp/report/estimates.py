"""Results that establish nothing, and so are no reports: why DelStab refuses, predicted errors, measured agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from userdp.checker.claims import stable_share
from userdp.display import Fact, Section, Table, axes_or_new
from userdp.display.numbers import bounds_text, number_text
from userdp.exact.numbers import Bounds, Delta, parse_delta
from userdp.report.base import ReadOnly
from userdp.report.fields import (
    BOUNDS,
    COUNT,
    FLOAT,
    SHARE,
    SIZE,
    TEXT,
    VALUE,
    Codec,
    Result,
    many,
    named,
    of,
    one_of,
    optional,
    part,
    result,
    row,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@result
class Explanation(Result):
    """Why a dataset is refused or not; **not private**. Its ``str`` is meant to be read."""

    n_users: int = written(COUNT)
    deletions: int = written(COUNT, "n and D.")
    engine: str = written(TEXT)
    compatibility: str = written(TEXT, "What ran: see `DelStab.plan`.")
    smallest_stable_size: int | None = written(optional(COUNT), "r*; None if no set of at most D users will do.")
    largest_size: int = written(COUNT, "Sizes above this one are refused surely.")
    refusal_probability: Fraction = written(SHARE, "Of `BOTTOM`, exactly.")
    worst: str | None = written(optional(TEXT), "The pair of kept sets that the algorithm tells apart best, in words.")
    worst_divergence: Bounds | None = written(
        optional(BOUNDS), "Their divergence at the inner level, larger direction; comparable with `allowed_divergence`."
    )
    allowed_divergence: Fraction = written(SHARE, "The inner delta_L.")
    spread: int | None = written(optional(COUNT))
    distance: int | None = written(
        optional(COUNT),
        'For the "additive" engine: how far the totals of kept sets are apart, and how far they may be.',
    )
    advice: tuple[str, ...] = written(many(TEXT), "What would lower the probability of a refusal.")

    def _sections(self) -> Sequence[Section]:
        smallest = self.smallest_stable_size
        refusal = Fact("Probability of a refusal", *number_text(self.refusal_probability))
        found = [
            refusal,
            Fact("Smallest stable set", f"none of at most {self.deletions}" if smallest is None else f"{smallest:,}"),
            Fact("Refused surely above", f"{self.largest_size:,}"),
        ]
        if self.spread is not None:
            found.append(Fact("Totals of kept sets", f"up to {self.spread} apart; {self.distance} is tolerated"))
        if self.worst is not None and self.worst_divergence is not None:
            found += [
                Fact("Most different kept sets", self.worst),
                Fact("Their divergence", *bounds_text(self.worst_divergence)),
                Fact("Tolerated", *number_text(self.allowed_divergence, "down")),
            ]
        asked = [
            Fact("Users", f"{self.n_users:,}, of whom {self.deletions:,} are left out"),
            Fact("Engine", f"{self.engine}, compatibility {self.compatibility}"),
        ]
        notes = [
            "Not private: this shows the data.",
            *(f"To be refused less often: {advice}." for advice in self.advice),
        ]
        return [
            Section(
                "DelStab on this dataset",
                facts=[("Result", found), ("Question", asked)],
                notes=notes,
                headline=[refusal],
            )
        ]


@part
class Prediction:
    """What is predicted of one method."""

    method: str = written(TEXT, "As in the parameter of the estimator that has it, or what it is.")
    protects: str = written(
        one_of("user", "record"),
        "Whose data the guarantee is for. One for records is no guarantee for users, and is there for comparison.",
    )
    noise: float | None = written(
        optional(FLOAT),
        "Root mean square of the L2 length of the noise. For descents: in the gradient of one step. For counts by "
        "group: of one count.",
    )
    worst_error: float | None = written(
        optional(FLOAT),
        "The same with the most that clipping can move under what the method needs: the error against the mean of the "
        "users at hand. For descents: the bound of the excess of the loss, where nobody's gradient is clipped. None "
        "where nothing is proved.",
    )
    needs: str = written(TEXT, 'What somebody must vouch for, or "nothing".', default="nothing")
    note: str = written(TEXT, "Among others why there is no number.", default="")
    rate: float | None = written(optional(FLOAT), default=None)
    proved: int | None = written(optional(COUNT), default=None)
    calibrated: int | None = written(
        optional(COUNT),
        "Numbers of users that an accuracy needs: the paper's formula without its constants, what is proved with "
        "constants, and what simulations say.",
        default=None,
    )
    users: int | None = written(optional(COUNT), "The number of users to take, of these.", default=None)
    expected: float | None = written(
        optional(FLOAT),
        "Of descents: the excess of the expected loss that users like the reference ones lead to, by runs with the "
        "plan's noise and clipping, and by what so many records leave open without privacy.",
        default=None,
    )


_SIZES = Codec(
    lambda sizes: [[name, VALUE.write(value)] for name, value in sizes.items()],
    lambda code: ReadOnly(named(many(row(TEXT, VALUE)).read(code))),
    many(row(TEXT, VALUE)).schema,
)


@result
class Comparison(Result):
    """Methods side by side; made by `compare_methods`. It prints as a table."""

    task: str = written(TEXT)
    sizes: Mapping[str, Any] = written(_SIZES, "The public numbers that it is for.")
    rows: tuple[Prediction, ...] = written(
        many(of(Prediction)),
        "With increasing error, or number of users, among those that protect users; the others come last.",
    )
    best: str = written(TEXT, "The method that is recommended.")
    reason: str = written(TEXT, "Why.")
    least: int | None = written(
        optional(COUNT),
        "A number of users with which no method keeps the accuracy for all users that `bound` is about. The "
        "calibrated number of a row is for users of one kind, and may be below it; its ``users`` never is.",
        default=None,
    )
    bound: str = written(TEXT, "What the least number is about, or why there is none.", default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(sorted(self.rows, key=_order)))
        object.__setattr__(self, "sizes", ReadOnly(self.sizes))

    def __getitem__(self, method: str) -> Prediction:
        """The row of a method."""
        for line in self.rows:
            if line.method == method:
                return line
        raise KeyError(f"{method!r}; there are {', '.join(repr(line.method) for line in self.rows)}")

    def __repr__(self) -> str:
        return self.summary()

    def _has_errors(self) -> bool:
        return any(line.noise is not None for line in self.rows)

    def _columns(self) -> Sequence[tuple[str, Callable[[Prediction], float | None]]]:
        """What the numbers of a row are called: errors, or users."""
        if self._has_errors():
            errors: list[tuple[str, Callable[[Prediction], float | None]]] = [
                ("noise", lambda line: line.noise),
                ("worst error", lambda line: line.worst_error),
            ]
            if any(line.expected is not None for line in self.rows):
                errors.append(("expected", lambda line: line.expected))
            return errors
        return (
            ("users", lambda line: line.users),
            ("times bound", self._gap),
            ("calibrated", lambda line: line.calibrated),
            ("proved", lambda line: line.proved),
            ("rate", lambda line: line.rate),
        )

    def _gap(self, line: Prediction) -> float | None:
        """How many times the least number of users a method needs: for all users, as both are proved."""
        proved = line.users is not None and line.users == line.proved
        return line.users / self.least if proved and line.users is not None and self.least else None

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [asdict(line) | {"times_bound": self._gap(line)} for line in self.rows]

    def _sections(self) -> Sequence[Section]:
        columns = self._columns()
        rows = [
            (
                line.method,
                line.protects,
                *("–" if (value := of(line)) is None else short(value) for _, of in columns),
                line.needs,
                line.note,
            )
            for line in self.rows
        ]
        title = "Predicted errors" if self._has_errors() else "Users needed"
        table = Table(title, ("method", "protects", *(name for name, _ in columns), "needs", "note"), rows)
        asked = [Fact(name, str(value)) for name, value in self.sizes.items()]
        best = Fact("Recommended", f"{self.best} ({self.reason})")
        known = [best]
        if not self._has_errors():
            least = "none is known" if self.least is None else f"at least {self.least:,}"
            known.append(Fact("Lower bound", f"{least}: {self.bound}" if self.bound else least))
        return [
            Section(
                f"Methods for: {self.task}", facts=[("", known), ("Question", asked)], tables=[table], headline=[best]
            )
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Worst errors or numbers of users as bars; needs matplotlib (``pip install 'userdp[plot]'``).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_or_new(ax)
        errors = self._has_errors()
        sizes = [(line, line.worst_error if errors else line.users) for line in self.rows]
        rows = [(line, size) for line, size in sizes if size is not None]
        colors = ["C1" if line.protects == "record" else "C0" for line, _ in rows]
        ax.barh([line.method for line, _ in rows], [size for _, size in rows], color=colors)
        ax.invert_yaxis()
        ax.set_xscale("log")
        what = "worst error" if errors else "users needed"
        ax.set_xlabel(f"{what} (orange: protects records, not users)")
        return ax


def _order(line: Prediction) -> tuple[bool, float]:
    error = line.worst_error if line.expected is None else line.expected
    size = line.users if line.noise is None else error
    return line.protects != "user", math.inf if size is None else size


def short(number: float) -> str:
    """A number of users in full, and an error to three digits."""
    return f"{number:,}" if isinstance(number, int) else f"{number:.3g}"


@result
class AgreementEstimate(Result):
    """How often two users agreed."""

    agreed: int = written(COUNT)
    trials: int = written(COUNT, "Pairs of independent samples, and those on which both users got the same item.")
    defaults: int = written(
        COUNT,
        "Of the 2 trials users, those whose item was the learner's default: where this is large, users agree because "
        "they learn nothing.",
    )
    probability: Bounds = written(BOUNDS, "Clopper-Pearson interval for the probability of agreement.")
    confidence: float = written(SIZE, "Of the interval.")

    def nu(self, eta: Delta) -> Fraction:
        """For how much of the public randomness some item has probability at least eta, by the interval's lower end.

        Only for fresh seeds in every trial; see `userdp.stability.stability_from_agreement`.
        """
        return stable_share(Fraction(self.probability.lower), parse_delta(eta, "eta"))

    def _sections(self) -> Sequence[Section]:
        found = [
            Fact("Probability of agreement", *bounds_text(self.probability)),
            Fact("Confidence", f"{self.confidence:g}"),
            Fact("Pairs that agreed", f"{self.agreed:,} of {self.trials:,}"),
            Fact("Users with the default", f"{self.defaults:,} of {2 * self.trials:,}"),
        ]
        return [Section("Measured agreement", facts=[("", found)], headline=found[:1])]
