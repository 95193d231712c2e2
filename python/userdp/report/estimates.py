"""Reports of which nothing can be computed again: why DelStab refuses, predicted errors, measured agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from userdp.checker.claims import stable_share
from userdp.display import Fact, Section, Table, axes_or_new
from userdp.display.numbers import bounded, bounds_text, number_text
from userdp.exact.numbers import Bounds, Delta, parse_delta
from userdp.report.base import (
    BOUNDS,
    COUNT,
    FLOAT,
    FRACTION,
    TEXT,
    VALUE,
    Codec,
    ReadOnly,
    Report,
    many,
    members,
    named,
    one_of,
    optional,
    row,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Explanation(Report):
    """Why a dataset is refused or not; **not private**. Its ``str`` is meant to be read.

    Attributes
    ----------
    n_users, deletions : int
        n and D.
    engine, compatibility : str
        What ran: see `DelStab.plan`.
    smallest_stable_size : int or None
        r*; None if no set of at most D users will do.
    largest_size : int
        Sizes above this one are refused surely.
    refusal_probability : Fraction
        Of `BOTTOM`, exactly.
    worst : str or None
        The pair of kept sets that the algorithm tells apart best, in words.
    worst_divergence : Bounds or None
        Their divergence at the inner level, larger direction; comparable with `allowed_divergence`.
    allowed_divergence : Fraction
        The inner delta_L.
    spread, distance : int or None
        For the "additive" engine: how far the totals of kept sets are apart, and how far they may be.
    advice : tuple of str
        What would lower the probability of a refusal.
    """

    n_users: int
    deletions: int
    engine: str
    compatibility: str
    smallest_stable_size: int | None
    largest_size: int
    refusal_probability: Fraction
    worst: str | None
    worst_divergence: Bounds | None
    allowed_divergence: Fraction
    spread: int | None
    distance: int | None
    advice: tuple[str, ...]

    KIND: ClassVar[str] = "explanation"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "n_users": COUNT,
        "deletions": COUNT,
        "engine": TEXT,
        "compatibility": TEXT,
        "smallest_stable_size": optional(COUNT),
        "largest_size": COUNT,
        "refusal_probability": FRACTION,
        "worst": optional(TEXT),
        "worst_divergence": optional(BOUNDS),
        "allowed_divergence": FRACTION,
        "spread": optional(COUNT),
        "distance": optional(COUNT),
        "advice": many(TEXT),
    }

    def summary(self) -> str:
        """Describe the result in a few lines of plain text."""
        smallest = self.smallest_stable_size
        size = "none of at most that many users" if smallest is None else str(smallest)
        lines = [
            f"{self.n_users} users, {self.deletions} left out, {self.n_users - self.deletions} kept "
            f"(engine {self.engine!r}, compatibility {self.compatibility!r})",
            f"smallest stable set: {size}; above {self.largest_size} a refusal is sure",
            f"probability of a refusal: {bounded(self.refusal_probability, digits=6)}",
        ]
        if self.spread is not None:
            lines.append(f"totals of kept sets are up to {self.spread} apart, and {self.distance} is tolerated")
        if self.worst is not None and self.worst_divergence is not None:
            lines.append(
                f"most different kept sets: {self.worst}, divergence {bounded(self.worst_divergence.upper, digits=6)} "
                f"where {bounded(self.allowed_divergence, 'down', 6)} is tolerated"
            )
        lines.extend(f"to be refused less often: {advice}" for advice in self.advice)
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        plain = {name: getattr(self, name) for name in self.WRITTEN if name not in ("worst_divergence", "advice")}
        bounds = self.worst_divergence
        return [plain | {"worst_divergence": None if bounds is None else bounds.upper}]

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


@dataclass(frozen=True)
class Prediction:
    """What is predicted of one method.

    Attributes
    ----------
    method : str
        As in the parameter of the estimator that has it, or what it is.
    protects : {"user", "record"}
        Whose data the guarantee is for. One for records is no guarantee for users, and is there for comparison.
    noise : float
        Root mean square of the L2 length of the noise. For descents: in the gradient of one step. For counts by group:
        of one count.
    worst_error : float or None
        The same with the most that clipping can move under what the method needs: the error against the mean of the
        users at hand. For descents: the bound of the excess of the loss, where nobody's gradient is clipped. None where
        nothing is proved.
    needs : str
        What somebody must vouch for, or "nothing".
    note : str
        Among others why there is no number.
    rate, proved, calibrated : float or int or None
        Numbers of users that an accuracy needs: the paper's formula without its constants, what is proved with
        constants, and what simulations say.
    users : int or None
        The number of users to take, of these.
    expected : float or None
        Of descents: the excess of the expected loss that users like the reference ones lead to, by runs with the plan's
        noise and clipping, and by what so many records leave open without privacy.
    """

    method: str
    protects: str
    noise: float | None
    worst_error: float | None
    needs: str = "nothing"
    note: str = ""
    rate: float | None = None
    proved: int | None = None
    calibrated: int | None = None
    users: int | None = None
    expected: float | None = None


_PREDICTION = members(
    Prediction,
    method=TEXT,
    protects=one_of("user", "record"),
    noise=optional(FLOAT),
    worst_error=optional(FLOAT),
    needs=TEXT,
    note=TEXT,
    rate=optional(FLOAT),
    proved=optional(COUNT),
    calibrated=optional(COUNT),
    users=optional(COUNT),
    expected=optional(FLOAT),
)
_SIZES = Codec(
    lambda sizes: [[name, VALUE.write(value)] for name, value in sizes.items()],
    lambda code: ReadOnly(named(many(row(TEXT, VALUE)).read(code))),
)


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """Methods side by side; made by `compare_methods`. It prints as a table.

    Attributes
    ----------
    task : str
    sizes : mapping
        The public numbers that it is for.
    rows : tuple of Prediction
        With increasing error, or number of users, among those that protect users; the others come last.
    best : str
        The method that is recommended.
    reason : str
        Why.
    least : int or None
        A number of users with which no method keeps the accuracy for all users that `bound` is about. The calibrated
        number of a row is for users of one kind, and may be below it; its ``users`` never is.
    bound : str
        What the least number is about, or why there is none.
    """

    task: str
    sizes: Mapping[str, Any]
    rows: tuple[Prediction, ...]
    best: str
    reason: str
    least: int | None = None
    bound: str = ""

    KIND: ClassVar[str] = "comparison"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "task": TEXT,
        "sizes": _SIZES,
        "rows": many(_PREDICTION),
        "best": TEXT,
        "reason": TEXT,
        "least": optional(COUNT),
        "bound": TEXT,
    }

    def __post_init__(self) -> None:
        if self._source is None:
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

    def summary(self) -> str:
        """The table as plain text."""
        sizes = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        width = max((len(line.method) for line in self.rows), default=0)
        head = "  ".join(f"{name:>11}" for name, _ in self._columns())
        lines = [f"{self.task}: {sizes}", f"{'method':<{width}}  protects  {head}  needs"]
        for line in self.rows:
            found = [of(line) for _, of in self._columns()]
            numbers = "  ".join(f"{'-' if value is None else short(value):>11}" for value in found)
            text = f"{line.method:<{width}}  {line.protects:<8}  {numbers}  {line.needs}"
            lines.append(text + (f" ({line.note})" if line.note else ""))
        lines.append(f"best: {self.best} ({self.reason})")
        if not self._has_errors():
            least = f"at least {self.least:,} users" if self.least is not None else "none"
            lines.append(f"lower bound: {least}" + (f" ({self.bound})" if self.bound else ""))
        return "\n".join(lines)

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


@dataclass(frozen=True, kw_only=True, repr=False)
class AgreementEstimate(Report):
    """How often two users agreed.

    Attributes
    ----------
    agreed, trials : int
        Pairs of independent samples, and those on which both users got the same item.
    defaults : int
        Of the 2 trials users, those whose item was the learner's default: where this is large, users agree because they
        learn nothing.
    probability : Bounds
        Clopper-Pearson interval for the probability of agreement.
    confidence : float
        Of the interval.
    """

    agreed: int
    trials: int
    defaults: int
    probability: Bounds
    confidence: float

    KIND: ClassVar[str] = "agreement"
    WRITTEN: ClassVar[Mapping[str, Codec]] = {
        "agreed": COUNT,
        "trials": COUNT,
        "defaults": COUNT,
        "probability": BOUNDS,
        "confidence": FLOAT,
    }

    def nu(self, eta: Delta) -> Fraction:
        """For how much of the public randomness some item has probability at least eta, by the interval's lower end.

        Only for fresh seeds in every trial; see `userdp.stability.stability_from_agreement`.
        """
        return stable_share(Fraction(self.probability.lower), parse_delta(eta, "eta"))

    def summary(self) -> str:
        """Describe the result in a line of plain text."""
        return (
            f"agreed in {self.agreed} of {self.trials} pairs: probability between "
            f"{bounded(self.probability.lower, 'down')} and {bounded(self.probability.upper)} "
            f"(confidence {self.confidence:g}); {self.defaults} of {2 * self.trials} users got the default"
        )

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "agreed": self.agreed,
                "trials": self.trials,
                "defaults": self.defaults,
                "probability_lower": self.probability.lower,
                "probability_upper": self.probability.upper,
                "confidence": self.confidence,
            }
        ]

    def _sections(self) -> Sequence[Section]:
        found = [
            Fact("Probability of agreement", *bounds_text(self.probability)),
            Fact("Confidence", f"{self.confidence:g}"),
            Fact("Pairs that agreed", f"{self.agreed:,} of {self.trials:,}"),
            Fact("Users with the default", f"{self.defaults:,} of {2 * self.trials:,}"),
        ]
        return [Section("Measured agreement", facts=[("", found)], headline=found[:1])]
