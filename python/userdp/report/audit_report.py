"""Audit reports: certificates that say what was audited, what was decided, and how to decide it again."""

from __future__ import annotations

import importlib
import json
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.algorithms.finite import ASSUMPTIONS, MOST_REORDERED, assumptions_of
from userdp.checker import audits, divergences, spaces, values
from userdp.checker.check import Verification
from userdp.display import Curve, Fact, Section, axes_or_new
from userdp.display.numbers import Toward, as_float, bounds_text, level_text, number_text, plural
from userdp.exact.encoding import code_of, encode, fraction_text
from userdp.exact.numbers import Bounds, Epsilon, PrivacyLevel, parse_level, split_text
from userdp.report.base import (
    MALFORMED,
    ReadOnly,
    Report,
    confirmed_by,
    envelope,
    level_facts,
    report,
    undetermined,
    universe_text,
    verdict,
)
from userdp.report.fields import (
    BOUNDS,
    COUNT,
    FLAG,
    LEVEL,
    PMF,
    POSITIVE,
    SHARE,
    TEXT,
    VALUE,
    Codec,
    Schema,
    many,
    object_of,
    one_of,
    optional,
    row,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENCODED = ("structure", "outputs", "witness")  # fields with objects
MANY_USERS = 6
"""Datasets with more users are not written out."""

_short = reprlib.Repr()
_short.maxtuple = _short.maxlist = _short.maxset = _short.maxfrozenset = 12
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 4


@dataclass(frozen=True)
class Witness:
    """Neighboring datasets and an event that attain the worst divergence; unpacks as ``x, x2, event``.

    Attributes
    ----------
    x, x2 : tuple
        The datasets: P(event) - e^epsilon P2(event) is the worst divergence.
    event : frozenset
        Outputs.
    ranks : tuple of int
        Ranks of x and x2 among the audited datasets.
    event_indices : tuple of int
        Positions of the event's outputs, sorted.
    changed_user : int or None
        Position of the user whose record differs, when users have positions.
    """

    x: tuple[Any, ...]
    x2: tuple[Any, ...]
    event: frozenset[Any]
    ranks: tuple[int, int]
    event_indices: tuple[int, ...]
    changed_user: int | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.x2, self.event))

    @classmethod
    def from_ranks(
        cls,
        question: Mapping[str, Any],
        structure: Mapping[str, Any],
        outputs: tuple[Any, ...],
        ranks: tuple[int, int],
        event_indices: Iterable[int],
        held: int | None = None,
    ) -> Witness:
        """Build the datasets of two ranks; a report that holds pmfs of `held` datasets enumerates no more."""
        space = spaces.space_of(question, held)
        a, b = (values.count(rank, "a witness rank") for rank in ranks)
        if max(b, a) not in space.above(min(a, b)):
            raise ValueError(f"witness ranks {ranks} are not neighbors among the {space.datasets} datasets")
        x, x2 = space.witness(a, b, structure)
        indices = tuple(sorted(event_indices))
        if indices and not 0 <= indices[0] <= indices[-1] < len(outputs):
            raise ValueError(f"witness event {indices} is not a set of output positions")
        changed = None
        if question["kind"] == "dataset":
            changed = structure["replaceable"][(max(ranks) - 1) // len(structure["records"])]
        elif len(x) == len(x2):
            both = enumerate(zip(x, x2, strict=True))
            differ = [place for place, (user, user2) in both if encode(user) != encode(user2)]
            changed = differ[0] if len(differ) == 1 else None
        return cls(x, x2, frozenset(outputs[o] for o in indices), ranks, indices, changed)


def _plain(part: Any) -> Any:
    """Integers, and sequences of them, as JSON."""
    return [int(member) for member in part] if isinstance(part, (tuple, list, np.ndarray)) else int(part)


def _read_structure(code: Mapping[str, Any]) -> dict[str, Any]:
    parts = {name: tuple(part) if isinstance(part, list) else part for name, part in code.items()}
    return parts | audits.objects_of(code)


_VALUES, _STATISTICS = many(VALUE, 1).schema, {"statistics": {"type": "array", "items": {"type": "integer"}}}
_PLACES = {"dataset": _VALUES, "records": _VALUES, "replaceable": many(COUNT).schema}
_SIZES = {"universe": _VALUES, "n_users": POSITIVE.schema, "n_examples": POSITIVE.schema}
_STRUCTURE = Codec(
    lambda structure: {
        name: list(map(code_of, part)) if name in audits.OBJECTS else _plain(part) for name, part in structure.items()
    },
    _read_structure,
    {
        "anyOf": [
            {"title": "pair"} | object_of({"x": many(VALUE).schema, "x2": many(VALUE).schema}),
            {"title": "dataset"} | object_of(_PLACES, _STATISTICS),
            {"title": "universe"} | object_of(_SIZES, _STATISTICS),
        ]
    },
).named("structure")
_RANKS, _EVENT = row(COUNT, COUNT), many(COUNT, unique=True)
_WITNESS = Codec(
    lambda witness: {"ranks": list(witness.ranks), "event": list(witness.event_indices)},
    lambda code: (_RANKS.read(code["ranks"]), _EVENT.read(code["event"])),  # the rest follows from other fields
    object_of({"ranks": _RANKS.schema, "event": _EVENT.schema}),
)
_QUESTION = {
    "kind": "kind",
    "neighbors": "neighbors",
    "engine": "engine",
    "epsilon": "epsilon_level",
    "delta": "delta",
    "pmf_error": "pmf_error",
    "structure": "structure",
}
_RESULT = {name: name for name in ("holds", "worst_delta", "epsilon", "exp_epsilon", "witness")}
_GROUPS = {"question": _QUESTION, "result": _RESULT}
"""Members of the JSON, each with its members, and the fields that these are."""
_LISTS = ("pmfs", "pmf_of", "pmf_pairs")
"""What a sampled report does not hold."""
_MEMBERS = ("mechanism", "question", "assumptions", "outputs", "datasets", "pairs", "result", "verification", *_LISTS)
_HEX: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SAMPLE = object_of(
    {f"{name}_digest": _HEX for name in _LISTS}
    | {
        "pairs": many(row(COUNT, COUNT, COUNT, COUNT)).schema,
        "pmfs": {
            "type": "object",
            "patternProperties": {"^(0|[1-9][0-9]*)$": PMF.schema},
            "additionalProperties": False,
        },
    }
)


def _grouped(parts: Mapping[str, Any], made: Callable[[dict[str, Any]], Any] = dict) -> dict[str, Any]:
    """What belongs to the fields, with what belongs to the groups of them."""
    groups = {group: made({key: parts[name] for key, name in names.items()}) for group, names in _GROUPS.items()}
    return {**parts, **groups}


@report("audit")
class AuditReport(Report):
    """The result of an audit, and its certificate."""

    mechanism: str = written(TEXT, "The mechanism's name.")
    kind: str = written(one_of("pair", "dataset", "user-level", "item-level"))
    neighbors: str = written(one_of("replace", "add-remove"))
    engine: str = written(
        one_of("labeled", "symmetric", "additive"), "What was audited, and how; see the report format."
    )
    epsilon_level: PrivacyLevel = written(LEVEL, "The claimed epsilon, exactly.")
    delta: Fraction = written(SHARE)
    pmf_error: Fraction = written(SHARE, "The claimed delta, and the declared relative error of the pmfs.")
    structure: Mapping[str, Any] = written(
        _STRUCTURE, "The audited structure, holding the objects themselves; read-only."
    )
    outputs: tuple[Any, ...] = written(many(VALUE, 1))
    pmfs: tuple[tuple[Fraction, ...], ...] = written(
        many(PMF), "The distinct pmfs in order of first appearance; ``pmf_of`` gives the one of each dataset rank."
    )
    pmf_of: tuple[int, ...] = written(many(COUNT))
    datasets: int = written(COUNT)
    pairs: int = written(COUNT, "How many datasets and unordered pairs of neighbors were audited.")
    pmf_pairs: tuple[tuple[int, int], ...] = written(
        many(row(COUNT, COUNT)), "The distinct pairs of pmfs that neighbors have."
    )
    holds: bool | None = written(optional(FLAG), "The verdict; None when undetermined within ``pmf_error``.")
    worst_delta: Bounds = written(
        BOUNDS, "Encloses the worst divergence at the claimed epsilon, over all pairs and both directions."
    )
    epsilon: Bounds = written(BOUNDS, "Encloses the smallest epsilon that reaches delta.")
    exp_epsilon: Fraction | None = written(
        optional(SHARE), "e to that epsilon, exactly; None when no finite epsilon reaches delta."
    )
    witness: Witness | None = written(
        optional(_WITNESS), "Where the worst divergence is attained; None when all neighbors have equal pmfs."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "structure", ReadOnly(self.structure))

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
        return "complete" if self.pairs <= values.COMPLETE_PAIRS else "sampled"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the verdict rests on besides the numbers: keys of `userdp.algorithms.finite.ASSUMPTIONS`."""
        return assumptions_of(self.engine)

    def __bool__(self) -> bool:
        if self.holds is None:
            raise ValueError(undetermined(self.pmf_error, self.worst_delta, self.delta))
        return self.holds

    def __repr__(self) -> str:
        bounds = f"worst_delta=[{self.lower!r}, {self.upper!r}]"
        return f"<AuditReport {self.mechanism!r}: holds={self.holds}, {bounds}, pairs={self.pairs}>"

    def question(self) -> dict[str, Any]:
        """Return the encoded question of the report format."""
        return {key: self.WRITTEN[name].write(getattr(self, name)) for key, name in _QUESTION.items()}

    def _content(self) -> dict[str, Any]:
        parts = _grouped(super()._content())
        parts |= {"assumptions": list(self.assumptions), "verification": self.verification}
        content = {name: parts[name] for name in _MEMBERS}
        if self.verification == "complete":
            return content
        lists = {name: content[name] for name in _LISTS}
        return content | {name: [] for name in lists} | {"sample": self._sample(content["question"], lists)}

    @classmethod
    def _schema(cls) -> Schema:
        engines: list[str] = cls.WRITTEN["engine"].schema["enum"]
        names = dict.fromkeys(name for engine in engines for name in assumptions_of(engine))
        fields = {name: codec.schema for name, codec in cls.WRITTEN.items()}
        parts = _grouped(fields, object_of) | {
            "assumptions": many(one_of(*names), unique=True).schema,
            "verification": one_of("complete", "sampled").schema,
        }
        kept = envelope(cls.KIND) | {name: parts[name] for name in _MEMBERS}
        return {
            **object_of(kept, {"sample": _SAMPLE}),
            "if": {"properties": {"verification": {"const": "sampled"}}},
            "then": {"required": ["sample"]},
            "else": {"not": {"required": ["sample"]}},
        }

    def _sample(self, question: dict[str, Any], lists: dict[str, list[Any]]) -> dict[str, Any]:
        digests = {f"{name}_digest": values.canonical_digest(lists[name]) for name in lists}
        seed = digests["pmfs_digest"] + digests["pmf_of_digest"] + digests["pmf_pairs_digest"]
        first = None if self.witness is None else self.witness.ranks
        drawn = spaces.sample_pairs(spaces.space_of(question), seed, first)
        pmf_of = lists["pmf_of"]
        pairs = [[a, b, pmf_of[a], pmf_of[b]] for a, b in drawn]
        named = sorted({index for pair in pairs for index in pair[2:]})
        return {**digests, "pairs": pairs, "pmfs": {str(index): lists["pmfs"][index] for index in named}}

    @classmethod
    def _read(cls, source: Mapping[str, Any]) -> AuditReport:
        question = source["question"]
        codes = {name: source[name] for name in _MEMBERS if name in cls.WRITTEN}
        for group, members in _GROUPS.items():
            codes |= {name: source[group][key] for key, name in members.items()}
        found = {name: codec.read(codes[name]) for name, codec in cls.WRITTEN.items()}
        if found["witness"] is not None:
            held = len(source["pmf_of"]) if source["verification"] == "complete" else None
            ranks, event = found["witness"]
            found["witness"] = Witness.from_ranks(question, found["structure"], found["outputs"], ranks, event, held)
        return cls(**found, _source=dict(source))

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
        if mechanism is None:
            return self._checked()
        run, declared, problems = confirmed_by(mechanism, self.outputs)
        return self._checked(mechanism_pmf=run, declared=declared, problems=problems)

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
            return content(self) == content(self._read(self._source or {}))
        except MALFORMED:
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
        marks = [as_float(self.epsilon_level), self.epsilon.upper]
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
        ax = axes_or_new(ax)
        grid = self.plot_epsilons() if epsilons is None else np.array(list(epsilons), dtype=np.float64)
        curve = self.profile(grid)
        ax.plot(grid, np.where(curve > 0, curve, np.nan), **({"label": self.mechanism} | kwargs))
        if (curve > 0).any():  # a claimed delta of 0 stays visible below the smallest positive value
            smallest = float(curve[curve > 0].min())
            ax.set_yscale("symlog", linthresh=smallest) if self.delta == 0 else ax.set_yscale("log")
        ax.plot([as_float(self.epsilon_level)], [float(self.delta)], "o", label="claimed (epsilon, delta)")
        ax.set_xlabel("epsilon")
        ax.set_ylabel("worst delta over all audited pairs")
        ax.legend()
        return ax

    def _sections(self) -> Sequence[Section]:
        return [section_of(self)]


def _times_up(value: float, factor: Fraction) -> float:
    """Round the product up."""
    product = Fraction(value) * factor
    nearest = float(product)
    return nearest if nearest >= product else math.nextafter(nearest, math.inf)


# In words ----------------------------------------------------------------------------------------------------


def section_of(report: AuditReport) -> Section:
    """The report as a page shows it."""
    # A claim that fails at the digits shown must be no stronger than they are.
    toward: Toward = "down" if report.holds is False else "up"
    level, delta = level_text(report.epsilon_level, toward)[0], number_text(report.delta, toward)[0]
    claim = f"epsilon = {level}, delta = {delta}"
    said = {
        True: f"Every audited pair of neighbors is indistinguishable at {claim}.",
        False: f"Some audited neighbors can be told apart at {claim}.",
        None: f"The pmfs are known only within {number_text(report.pmf_error)[0]}, too little to decide at {claim}.",
    }
    least = report.exp_epsilon
    if least is None:
        epsilon = Fact("Epsilon at delta", "infinite: no epsilon reaches this delta")
    else:
        epsilon = Fact(
            "Epsilon at delta", bounds_text(report.epsilon)[0], f"ln({fraction_text(least)})" if least > 1 else ""
        )
    worst = Fact("Worst delta at epsilon", *bounds_text(report.worst_delta))
    result = [epsilon, worst]
    question = [
        Fact("Audited", _scope(report)),
        *level_facts(report.epsilon_level, report.delta, toward, "Claimed"),
        Fact("Datasets", f"{report.datasets:,}"),
        Fact("Pairs of neighbors", f"{report.pairs:,} ({plural(len(report.pmf_pairs), 'distinct pair')} of pmfs)"),
        Fact("Engine", report.engine),
    ]
    if report.verification == "sampled":
        question[4] = Fact(
            "Pairs of neighbors",
            f"{report.pairs:,} (a written report holds a drawn sample of them, which cannot establish the claim)",
        )
    if report.pmf_error:
        question.append(Fact("Relative error of the pmfs", *number_text(report.pmf_error)))
    question += [Fact("Assumed", ASSUMPTIONS[name]) for name in report.assumptions]
    if report.engine == "symmetric":
        share = f"{min(report.datasets, MOST_REORDERED):,} of {plural(report.datasets, 'dataset')}"
        question.append(Fact("Tried", f"other orders of the users, drawn ones, on {share}"))
    how = (
        "holds every output distribution as exact fractions, so that all pairs can be decided again"
        if report.verification == "complete"
        else "holds a sample of the pairs, drawn by hashing from its own digests. It shows what it shows on them, and "
        "cannot establish that the claim holds. The drawn pairs can be decided again"
    )
    return Section(
        report.mechanism,
        **verdict(report.holds, said),
        facts=[("Result", result), ("Witness", _witness_facts(report)), ("Question", question)],
        curve=lambda: _curve(report, f"Worst delta against epsilon; claimed {claim}"),
        curve_note="Delta that the mechanism needs at every epsilon: the worst over all audited pairs.",
        how=f"The certificate {how}, in pure Python. Without the mechanism this shows only that the numbers are "
        "consistent; with it the distributions are computed again.",
        commands=["userdp verify report.json --mechanism module:name"],
        headline=[epsilon, worst],
    )


def _scope(report: AuditReport) -> str:
    structure = report.structure
    if report.kind == "pair":
        return "one pair of datasets"
    if report.kind == "dataset":
        users, records = plural(len(structure["dataset"]), "user"), universe_text(structure["records"])
        return f"one dataset of {users}, against every replacement of a user by one of {records}"
    users, examples = plural(structure["n_users"], "user"), plural(structure["n_examples"], "example")
    change = "one example of one user" if report.kind == "item-level" else "one user"
    change = f"replacing {change}" if report.neighbors == "replace" else "removing one user from these"
    values_text = universe_text(structure["universe"])
    return f"all datasets of {users} with {examples} each from {values_text}; neighbors by {change}"


def _witness_facts(report: AuditReport) -> list[Fact]:
    """The witness; for large datasets only the user who changes."""
    witness = report.witness
    if witness is None:
        return [Fact("Witness", "none: all neighbors have equal output distributions")]
    if report.worst_delta.upper == 0:
        return [Fact("Witness", "none: no event is more than e^epsilon times as likely on any neighbor")]
    event = ", ".join(_short.repr(report.outputs[o]) for o in witness.event_indices) or "(empty)"
    found, x, x2 = [Fact("Event", event)], witness.x, witness.x2
    if witness.changed_user is not None and len(x) == len(x2):
        position = witness.changed_user
        found.append(Fact("Changed user", f"position {position} of {len(x)}"))
        if report.kind == "dataset" or len(x) > MANY_USERS:
            more, less = _short.repr(x[position]), _short.repr(x2[position])
            return [*found, Fact("More likely with", more), Fact("Less likely with", less)]
    return [*found, Fact("More likely on", _short.repr(x)), Fact("Less likely on", _short.repr(x2))]


def _curve(report: AuditReport, label: str) -> Curve:
    """The profile on a grid, and where it comes to 0."""
    grid = report.plot_epsilons()
    curve = report.profile(grid)
    zeros, end = np.flatnonzero(curve == 0), None
    if len(zeros) > 0 and curve[0] > 0:
        low, high = float(grid[zeros[0] - 1]), float(grid[zeros[0]])
        for _ in range(2):  # to a thousandth of a step of the grid
            finer = np.linspace(low, high, 33)
            first = int(np.flatnonzero(report.profile(finer) == 0)[0])
            low, high = float(finer[max(0, first - 1)]), float(finer[first])
        end = high
    points = [(float(epsilon), float(delta)) for epsilon, delta in zip(grid, curve, strict=True)]
    if end is not None:
        points = [*(point for point in points if point[1] > 0), (low, float(report.profile([low])[0])), points[-1]]
    return Curve(points, (as_float(report.epsilon_level), float(report.delta)), end, label)
