"""Audit reports: certificates that say what was audited, what was decided, and how to decide it again.

This module needs no compiled core: a report can be loaded, checked, printed and drawn without it.
"""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.algorithms.finite import assumptions_of
from userdp.checker import check as checker
from userdp.checker import divergences, limits, spaces, values
from userdp.checker.verification import Verification
from userdp.exact.encoding import Unreadable, code_of, encode, fraction_text
from userdp.exact.numbers import Bounds, Epsilon, PrivacyLevel, parse_level, split_text
from userdp.report.presentation import render_html, summarize
from userdp.report.witness import Structure, Witness, confirmed_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENCODED = ("structure", "outputs", "witness")  # fields with objects
_MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The result of an audit, and its certificate.

    Attributes
    ----------
    mechanism : str
        The mechanism's name.
    kind, neighbors, engine : str
        What was audited, and how; see the report format.
    epsilon_level : PrivacyLevel
        The claimed epsilon, exactly.
    delta, pmf_error : Fraction
        The claimed delta, and the declared relative error of the pmfs.
    structure : mapping
        The audited structure, holding the objects themselves; read-only.
    outputs : tuple
    pmfs : tuple of tuples of Fraction
        The distinct pmfs in order of first appearance; ``pmf_of`` gives the one of each dataset rank.
    pmf_of : tuple of int
    datasets, pairs : int
        How many datasets and unordered pairs of neighbors were audited.
    pmf_pairs : tuple of pairs of int
        The distinct pairs of pmfs that neighbors have.
    holds : bool or None
        The verdict; None when undetermined within ``pmf_error``.
    worst_delta : Bounds
        Encloses the worst divergence at the claimed epsilon, over all pairs and both directions.
    epsilon : Bounds
        Encloses the smallest epsilon that reaches delta.
    exp_epsilon : Fraction or None
        e to that epsilon, exactly; None when no finite epsilon reaches delta.
    witness : Witness or None
        Where the worst divergence is attained; None when all neighbors have equal pmfs.
    """

    mechanism: str
    kind: str
    neighbors: str
    engine: str
    epsilon_level: PrivacyLevel
    delta: Fraction
    pmf_error: Fraction
    structure: Mapping[str, Any]
    outputs: tuple[Any, ...]
    pmfs: tuple[tuple[Fraction, ...], ...] = field(repr=False)
    pmf_of: tuple[int, ...] = field(repr=False)
    datasets: int
    pairs: int
    pmf_pairs: tuple[tuple[int, int], ...] = field(repr=False)
    holds: bool | None
    worst_delta: Bounds
    epsilon: Bounds
    exp_epsilon: Fraction | None
    witness: Witness | None
    # The JSON object that a loaded report came from: `verify` must check that, not a tidied copy.
    _source: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "structure", Structure(self.structure))

    @property
    def lower(self) -> float:
        """Lower bound of the worst divergence."""
        return self.worst_delta.lower

    @property
    def upper(self) -> float:
        """Upper bound of the worst divergence."""
        return self.worst_delta.upper

    @property
    def verification(self) -> str:
        """How much a written report lets others check: ``"complete"`` or ``"sampled"``."""
        return "complete" if self.pairs <= limits.COMPLETE_PAIRS else "sampled"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the verdict rests on besides the numbers: keys of `userdp.algorithms.finite.ASSUMPTIONS`."""
        return assumptions_of(self.engine)

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError(
                f"undetermined within pmf_error={self.pmf_error}: the worst delta is between {self.lower!r} "
                f"and {self.upper!r}, which does not decide about the claimed delta {float(self.delta)!r}; "
                "a smaller pmf_error, or pmfs given exactly, would settle it"
            )
        return self.holds

    def __repr__(self) -> str:
        bounds = f"worst_delta=[{self.lower!r}, {self.upper!r}]"
        return f"<AuditReport {self.mechanism!r}: holds={self.holds}, {bounds}, pairs={self.pairs}>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Describe the audit in a few lines of plain text."""
        return summarize(self)

    def question(self) -> dict[str, Any]:
        """Return the encoded question of the report format."""
        structure = {
            name: list(map(code_of, part)) if name in checker.OBJECTS else _plain(part)
            for name, part in self.structure.items()
        }
        level = self.epsilon_level
        return {
            "kind": self.kind,
            "neighbors": self.neighbors,
            "engine": self.engine,
            "epsilon": {"ratio": fraction_text(level.ratio), "exponent": fraction_text(level.exponent)},
            "delta": fraction_text(self.delta),
            "pmf_error": fraction_text(self.pmf_error),
            "structure": structure,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as the JSON object of docs/report-format.md, digest included."""
        if self._source is not None:
            return copy.deepcopy(self._source)
        witness = self.witness
        lists: dict[str, list[Any]] = {
            "pmfs": [[fraction_text(mass) for mass in pmf] for pmf in self.pmfs],
            "pmf_of": [int(index) for index in self.pmf_of],
            "pmf_pairs": [[int(i), int(j)] for i, j in self.pmf_pairs],
        }
        report: dict[str, Any] = {
            "format": checker.FORMAT,
            "userdp_version": _version(),
            "mechanism": self.mechanism,
            "question": self.question(),
            "assumptions": list(self.assumptions),
            "outputs": encode(tuple(self.outputs)),
            "datasets": int(self.datasets),
            "pairs": int(self.pairs),
            "result": {
                "holds": self.holds,
                "worst_delta": [self.lower.hex(), self.upper.hex()],
                "epsilon": [self.epsilon.lower.hex(), self.epsilon.upper.hex()],
                "exp_epsilon": None if self.exp_epsilon is None else fraction_text(self.exp_epsilon),
                "witness": None
                if witness is None
                else {"ranks": list(witness.ranks), "event": list(witness.event_indices)},
            },
            "verification": self.verification,
        }
        if self.verification == "complete":
            report |= lists
        else:
            report |= {name: [] for name in lists} | {"sample": self._sample(report["question"], lists)}
        report["digest"] = "sha256:" + values.canonical_digest(report)
        return report

    def _sample(self, question: dict[str, Any], lists: dict[str, list[Any]]) -> dict[str, Any]:
        digests = {f"{name}_digest": values.canonical_digest(lists[name]) for name in lists}
        seed = digests["pmfs_digest"] + digests["pmf_of_digest"] + digests["pmf_pairs_digest"]
        first = None if self.witness is None else self.witness.ranks
        drawn = spaces.sample_pairs(spaces.space_of(question), seed, first)
        pmf_of = lists["pmf_of"]
        pairs = [[a, b, pmf_of[a], pmf_of[b]] for a, b in drawn]
        named = sorted({index for pair in pairs for index in pair[2:]})
        return {**digests, "pairs": pairs, "pmfs": {str(index): lists["pmfs"][index] for index in named}}

    def to_json(self, indent: int | None = None) -> str:
        """Return the certificate as JSON; ``AuditReport.from_json(text).verify()`` checks it."""
        return json.dumps(self.to_dict(), indent=indent, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> AuditReport:
        """Load a report; loading is not checking, `verify` is.

        Raises
        ------
        ValueError
            When the text is not an audit report, and for reports of format 1, which do not say what they rest on.
        """
        try:
            source = values.parsed(text)
            if source["format"] == "userdp-audit/1":
                raise ValueError("it is of format 1, which does not say what it rests on; audit the mechanism again")
            if source["format"] != checker.FORMAT:
                raise ValueError(f"unknown format {source['format']!r:.40}")
            checker.read_form(source)
            return cls._from_source(source)
        except _MALFORMED as error:
            raise ValueError(f"not a {checker.FORMAT} report: {type(error).__name__}: {error}") from error

    @classmethod
    def _from_source(cls, source: dict[str, Any]) -> AuditReport:
        question, result, read = source["question"], source["result"], values.fraction
        structure = {
            name: tuple(part) if isinstance(part, list) else part for name, part in question["structure"].items()
        } | checker.objects_of(question["structure"])
        outputs, stored = values.decode(source["outputs"], Unreadable), result["witness"]
        witness = None
        if stored is not None:
            a, b = stored["ranks"]
            held = len(source["pmf_of"]) if source["verification"] == "complete" else None
            witness = Witness.from_ranks(question, structure, outputs, (a, b), stored["event"], held)
        least = result["exp_epsilon"]
        return cls(
            mechanism=source["mechanism"],
            kind=question["kind"],
            neighbors=question["neighbors"],
            engine=question["engine"],
            epsilon_level=PrivacyLevel(*(read(question["epsilon"][part]) for part in ("ratio", "exponent"))),
            delta=read(question["delta"]),
            pmf_error=read(question["pmf_error"]),
            structure=structure,
            outputs=outputs,
            pmfs=tuple(tuple(read(mass) for mass in pmf) for pmf in source["pmfs"]),
            pmf_of=tuple(source["pmf_of"]),
            datasets=values.count(source["datasets"], "datasets"),
            pairs=values.count(source["pairs"], "pairs"),
            pmf_pairs=tuple((i, j) for i, j in source["pmf_pairs"]),
            holds=result["holds"],
            worst_delta=Bounds(*map(values.hex_float, result["worst_delta"])),
            epsilon=Bounds(*map(values.hex_float, result["epsilon"])),
            exp_epsilon=None if least is None else read(least),
            witness=witness,
            _source=source,
        )

    def verify(self, mechanism: Any = None) -> Verification:
        """Decide the verdict again in exact arithmetic, without the compiled core.

        Parameters
        ----------
        mechanism : finite algorithm or callable, optional
            Also give the audited datasets to it again, for a sampled report only those of the drawn pairs and of
            further pairs drawn now, and compare the pmfs exactly; and check that it declares what the engine needs.
            Only this ties the pmfs to a mechanism.

        Returns
        -------
        Verification
            Whose ``finding`` is "consistent" without a mechanism, and with one "established" when the pmfs of all
            datasets that the claim is about were computed again. It is "spot-checked" when those of some were: for
            sampled reports, and where a mechanism only declares that the order of users does not matter and there are
            too many orders to try. A report that contradicts itself or the mechanism is "wrong".
        """
        report = self.to_dict() if self._source is None else self._source
        problems, pmf_of, declared = [], None, None
        if self._source is not None and not self._is_what_was_loaded():
            problems.append("the report was changed after it was loaded")
        if mechanism is not None:
            pmf_of, declared, found = confirmed_by(mechanism, self.outputs)
            problems += found
        verification = checker.check(report, pmf_of, declared=declared)
        return Verification("wrong", (*problems, *verification.problems)) if problems else verification

    def _is_what_was_loaded(self) -> bool:
        """Whether every field still is what the stored certificate says."""

        def content(report: AuditReport) -> list[Any]:
            # By their encodings, since decoded objects need not be equal to themselves (NaN).
            found = [getattr(report, f.name) for f in fields(report) if f.compare and f.name not in _ENCODED]
            witness = report.witness
            if witness is not None:
                events = {json.dumps(encode(output), sort_keys=True) for output in witness.event}
                found += [encode(witness.x), encode(witness.x2), events]
                found += [witness.ranks, witness.event_indices, witness.changed_user]
            return [*found, report.question(), encode(report.outputs)]

        try:
            return content(self) == content(self._from_source(self._source or {}))
        except _MALFORMED:
            return False

    def profile(self, epsilons: Iterable[Epsilon]) -> npt.NDArray[np.float64]:
        """Certified upper bounds of the worst divergence at each epsilon.

        The maximum is over both directions of all audited pairs, not only the witness's, and covers every
        pmf within ``pmf_error`` of the stated ones.

        Parameters
        ----------
        epsilons : iterable of float, int, Fraction, decimal string or LogRatio

        Returns
        -------
        ndarray of float64

        Raises
        ------
        ValueError
            For a report loaded from a sampled certificate, which does not hold all pmfs.
        """
        if self._source is not None and self.verification == "sampled":
            raise ValueError("profile: this report holds only a sample of the audited pairs")
        spread = (1 + self.pmf_error) / (1 - self.pmf_error)
        parsed = [parse_level(epsilon, "epsilons") for epsilon in split_text(epsilons)]
        levels = [(level.ratio / spread, level.exponent) for level in parsed]
        return np.array([_times_up(d, 1 + self.pmf_error) for d in self._family_profile(levels)], dtype=np.float64)

    def _family_profile(self, levels: list[tuple[Fraction, Fraction]]) -> list[float]:
        weights = []
        for pmf in self.pmfs:
            total = math.lcm(*(mass.denominator for mass in pmf))
            weights.append(([mass.numerator * (total // mass.denominator) for mass in pmf], total))
        pairs = list(self.pmf_pairs)
        # Float pmfs may miss a total of 1 by rounding, and the core takes those as floats only.
        masses = [
            pair if sum(pair[0]) == pair[1] else np.array([float(mass) for mass in pmf])
            for pair, pmf in zip(weights, self.pmfs, strict=True)
        ]
        floats = all(sum(pmf) == 1 or all(Fraction(float(mass)) == mass for mass in pmf) for pmf in self.pmfs)
        try:
            core = importlib.import_module("userdp._core")
        except ImportError:
            core = None
        if core is None or not floats:
            return divergences.profile_upper(weights, pairs, levels)
        return list(core.family_profile(masses, pairs, [core.Level(*level) for level in levels]))

    def plot_epsilons(self) -> npt.NDArray[np.float64]:
        """Return the grid of epsilons that plots use: from 0 to beyond the claim and the epsilon at delta."""
        marks = [_float(self.epsilon_level), self.epsilon.upper]
        reach = max([mark for mark in marks if mark < 1e300], default=0.0)
        return np.linspace(0.0, 1.25 * reach if reach > 1e-300 else 1.0, 101)

    def plot(self, ax: Axes | None = None, epsilons: Iterable[float] | None = None, **kwargs: Any) -> Axes:
        """Draw the privacy profile and the claimed (epsilon, delta).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        epsilons : iterable of float, optional
            Where to evaluate the profile; `plot_epsilons` by default.
        **kwargs
            Passed to ``Axes.plot`` for the curve.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("plot needs matplotlib: pip install 'userdp[plot]'") from error
            ax = plt.figure().add_subplot()
        grid = self.plot_epsilons() if epsilons is None else np.array(list(epsilons), dtype=np.float64)
        curve = self.profile(grid)
        ax.plot(grid, np.where(curve > 0, curve, np.nan), **({"label": self.mechanism} | kwargs))
        if (curve > 0).any():  # a claimed delta of 0 stays visible below the smallest positive value
            smallest = float(curve[curve > 0].min())
            ax.set_yscale("symlog", linthresh=smallest) if self.delta == 0 else ax.set_yscale("log")
        ax.plot([_float(self.epsilon_level)], [float(self.delta)], "o", label="claimed (epsilon, delta)")
        ax.set_xlabel("epsilon")
        ax.set_ylabel("worst delta over all audited pairs")
        ax.legend()
        return ax

    def to_html(self) -> str:
        """Return a self-contained page: verdict, parameters, witness and profile."""
        return render_html([self], f"Privacy audit of {self.mechanism}")


def _version() -> str:
    try:
        return importlib.metadata.version("userdp")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _plain(part: Any) -> Any:
    """Integers, and sequences of them, as JSON."""
    return [int(member) for member in part] if isinstance(part, (tuple, list, np.ndarray)) else int(part)


def _float(level: PrivacyLevel) -> float:
    try:
        return float(level)
    except OverflowError:
        return math.inf


def _times_up(value: float, factor: Fraction) -> float:
    """Round the product up."""
    product = Fraction(value) * factor
    nearest = float(product)
    return nearest if nearest >= product else math.nextafter(nearest, math.inf)
