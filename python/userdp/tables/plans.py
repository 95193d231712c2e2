"""What a release would cost and how wrong it would be, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from userdp.accounting import PrivacyCost
from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import rounded
from userdp.exact.numbers import Neighbors, check_count, open_unit_interval
from userdp.means.accuracy import NoiseTerm
from userdp.tables.aggregates import Histogram, Mean, Quantile
from userdp.tables.compiled import USERS, Answer, Compiled, Statistic
from userdp.tables.noise import Allotment, off_by
from userdp.tables.ratios import ratio_margin, shown_margin
from userdp.tables.release import IN_COMMON, cost_facts, finder_facts, noise_rows

SIZES = (10, 100, 1000, 10_000)
"""Of groups whose means a plan speaks of."""


@dataclass(frozen=True)
class Plan(Shown):
    """What a release would cost and how wrong it would be, from public numbers alone.

    Attributes
    ----------
    cost : PrivacyCost
        What the ledger is charged, exactly.
    n_users : int or None
        The number of users that predictions assume.
    threshold : int or None
        Where keys are unknown: from which noisy count of users on a key is shown.
    """

    query: Compiled
    noise: Allotment
    n_users: int | None
    neighbors: Neighbors
    reads: Mapping[str, str] = field(default_factory=dict)

    @property
    def cost(self) -> PrivacyCost:
        """What the release costs."""
        return self.noise.cost

    @property
    def threshold(self) -> int | None:
        """From which noisy count on a key is shown."""
        keyed = self.noise.keyed
        return None if keyed is None or keyed.sparse is None else keyed.sparse.threshold

    def standard_error(self, name: str, n_users: int | None = None) -> float:
        """The standard deviation of the noise of an answer.

        Parameters
        ----------
        name : str
            One of agg's counts, sums and means.
        n_users : int, optional
            Of means: how many users have the key; by default the plan's.
        """
        answer = self._number(name)
        assert answer.total is not None
        assert self.noise.keyed is not None
        unit = 1.0 if answer.total.value is None else answer.total.value.unit
        own = self.noise.keyed.spread(answer.total) * unit
        if answer.count is None:
            return own
        users = self.n_users if n_users is None else check_count(n_users, "n_users")
        if users is None:
            raise ValueError("the error of a mean needs n_users, the number of users with the key")
        # The noise of the count moves a mean that is half way from the middle to an end of its range.
        off = answer.total.largest * unit / 2 * self.noise.keyed.spread(answer.count)
        return math.hypot(own, off) / users

    def margin(self, name: str, level: float = 0.95, n_users: int | None = None) -> float:
        """How far a number is from what it would be without noise at most, at a level: half of an interval's width.

        Parameters
        ----------
        name : str
            One of agg's counts, sums, means and histograms (of each bin).
        level : float
            In (0, 1): so often, over the noise, the number is that near, wherever a mean is in its range, and where
            groups are unknown among the times that the group is shown.
        n_users : int, optional
            How many users have a value in the group, for means, and for counts of groups that nobody listed. By default
            the plan's where there are no groups; counts are then of a group that is shown for sure.

        Returns
        -------
        float
            In the units of the number; of means at most their range, which says nothing, and there may then be no mean.

        Raises
        ------
        ValueError
            For a name of other numbers, and where a mean lacks n_users.

        Notes
        -----
        With ``weighting="rows"`` a group of so many users has as many rows or more, and is as good or better.

        Examples
        --------
        >>> from userdp.tables import Schema, Session, category, mean, number
        >>> rows = {"who": [1, 2], "town": ["Ulm", "Bonn"], "pay": [20, 30]}
        >>> schema = Schema(town=category(["Bonn", "Ulm"]), pay=number(0, 100))
        >>> people = Session(rows, user="who", schema=schema, epsilon=1)
        >>> plan = people.plan(people.query().group_by("town", max_keys=1).agg(pay=mean("pay")))
        >>> [round(plan.margin("pay", 0.95, n_users=size)) for size in (10, 50, 500)]
        [44, 9, 1]
        """
        failure = 1 - open_unit_interval(level, "level")
        users = None if n_users is None else check_count(n_users, "n_users")
        if users is None and not self.query.group:
            users = self.n_users
        for part in self.noise.binned:
            if part.answer.name == name and isinstance(part.answer.aggregate, Histogram):
                return part.margin(failure)
        answer = self._number(name)
        total, keyed = answer.total, self.noise.keyed
        assert total is not None
        assert keyed is not None
        unit = 1.0 if total.value is None else total.value.unit
        if answer.count is None:
            return self._off(total, failure, users) * unit
        if users is None:
            raise ValueError("the margin of a mean needs n_users, the number of users with the key")
        assert total.value is not None
        most = max(total.shift, total.value.high - total.shift)
        if keyed.sparse is None:
            steps = keyed.step(total), keyed.step(answer.count)
            off = ratio_margin(keyed.of(total), keyed.of(answer.count), failure, users, most, steps)
        else:
            fewer = self._off(answer.count, failure / 2, users)
            sums = self._off(total, failure / 2, users)
            off = (sums + most * fewer) / (users - fewer) if users > fewer else math.inf
        # A step of the grid for the rounding of rows and of users' means, as in intervals.
        return min(off + 1, float(total.value.high)) * unit

    def _number(self, name: str) -> Answer:
        for answer in self.query.answers:
            if answer.name == name and answer.total is not None and self.noise.keyed is not None:
                return answer
        raise ValueError(f"{name!r} is no count, sum or mean of the query")

    def _off(self, statistic: Statistic, failure: float, users: int | None) -> float:
        """How far a total is off at most, but for this probability, in its units."""
        keyed = self.noise.keyed
        assert keyed is not None
        if keyed.correlated is not None:
            return float(keyed.correlated.error(Fraction(1 - failure)))
        step = keyed.step(statistic)
        always = NoiseTerm.of(keyed.of(statistic), step).quantile(failure) + off_by(step)
        if keyed.sparse is None or statistic != USERS or users is None:
            return always
        shown = float(shown_margin(keyed.of(statistic), keyed.sparse.threshold, users, failure))
        return max(shown, always) if self.query.listed else shown

    def _sizes(self) -> list[int]:
        """Of which sizes of groups the errors of means are told."""
        if not self.query.group:
            return [] if self.n_users is None else [self.n_users]
        equal = () if self.n_users is None or self.query.n_keys is None else (self.n_users // self.query.n_keys,)
        most = SIZES[-1] if self.n_users is None else self.n_users
        return sorted({size for size in (*SIZES, *equal) if 0 < size <= most})

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"number": what, "per_user": user, "noise": noise, "typical_error": error}
            for what, user, noise, error in noise_rows(self.query, self.noise)
        ]

    def _sections(self) -> Sequence[Section]:
        facts = cost_facts(self.cost)
        if self.query.group:
            known = "unknown" if self.query.n_keys is None else f"{self.query.n_keys}, all of them are in the answer"
            if self.query.listed:
                known = f"{self.query.listed}, which are in the answer, and others that are unknown"
            facts += [Fact("Keys", known), Fact("Keys of a user", f"at most {self.query.max_keys}")]
        tables = [
            Table(
                "Noise",
                ("number", "one user changes it by", "noise", "typical error"),
                noise_rows(self.query, self.noise),
            )
        ]
        keyed = self.noise.keyed
        if self.noise.finder is not None:
            facts += finder_facts(self.noise.finder)
        if keyed is not None and keyed.sparse is not None:
            sparse = keyed.sparse
            group = "an unknown group" if self.query.listed else "a group"
            facts.append(Fact("Threshold", f"{group} is shown from a noisy count of {sparse.threshold} users on"))
            facts.append(Fact("Shown with 95 %", f"groups of {sparse.users_for('0.95')} users or more"))
        errors = []
        for answer in self.query.answers:
            if answer.total is None:
                continue
            group = "in a group " if self.query.group else ""
            for size in self._sizes() if answer.count is not None else (None,):
                note = "" if size is None else f", {group}of {size} users"
                numbers = self.standard_error(answer.name, size), self.margin(answer.name, 0.95, size)
                errors.append((answer.name + note, *map(rounded, numbers)))
        if errors:
            tables.append(Table("Errors by noise", ("answer", "standard error", "95 % are within +-"), errors))
        notes = self._hopeless()
        if keyed is not None and keyed.correlated is not None:
            notes.append(IN_COMMON)
        if any(isinstance(answer.aggregate, Mean) for answer in self.query.answers) and not self._sizes():
            notes.append("With n_users= the plan says how wrong means are.")
        if any(isinstance(answer.aggregate, Quantile) for answer in self.query.answers):
            notes.append(
                "The error of a quantile is one in its share of users, about 4 ln(candidates) / (epsilon users)."
            )
        if self.query.bounding:
            facts.append(Fact("Numbers are of", self.query.bounding))
        apart = {one.of.column for one in self.query.statistics if one.of is not None}
        if apart:
            notes.append(
                f"Each answer is of the rows with a value in its own column: users with {' or '.join(sorted(apart))} "
                "are counted by numbers of their own, each with noise. That is spared where all answers are of one "
                "column, as count_users(column) beside its mean, and where the schema says a default=."
            )
        facts += [Fact(name, text) for name, text in self.reads.items()]
        return [Section("Plan of a release", facts=[("", facts)], tables=tables, notes=notes, headline=facts[:2])]

    def _hopeless(self) -> list[str]:
        """Which answers will be little else than noise, as far as public numbers say so."""
        notes = []
        for answer in self.query.answers:
            if answer.total is None or self.n_users is None:
                continue
            # How far apart two answers of so many users may be.
            span = answer.total.high - answer.total.low if answer.count is not None else answer.total.largest
            unit = 1.0 if answer.total.value is None else answer.total.value.unit
            if answer.count is not None and answer.total.max_rows is not None:
                span //= answer.total.max_rows
            widest = float(span) * unit * (1 if answer.count is not None else self.n_users)
            if 2 * self.standard_error(answer.name) >= widest:
                notes.append(
                    f"{answer.name} will be little else than noise: its error is "
                    f"{rounded(self.standard_error(answer.name))}, and all that it could be of {self.n_users} users is "
                    f"within {rounded(widest)}. Take a larger epsilon, fewer groups of a user (max_keys), or narrower "
                    "bounds."
                )
        return notes

    def __str__(self) -> str:
        return self._sections()[0].text()
