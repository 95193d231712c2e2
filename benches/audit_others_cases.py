"""The cases of audit_others.py: code of other libraries, and one-liners, each with the audit that goes with it.

A library's cases are made by a function of its own, which imports it. Nothing here says what an audit will find. Where
an issue is named, the plan is a small one of the kind that the issue is about.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.audit import audit_one_run, audit_sampler_law, audit_samples, audit_sensitivity

DISTRIBUTIONS = {
    "OpenDP": (("opendp", "OpenDP"), ("polars", "Polars")),
    "diffprivlib": (("diffprivlib", "diffprivlib"),),
    "dp_accounting": (("dp-accounting", "dp_accounting"), ("numpy", "NumPy"), ("scipy", "SciPy")),
    "PipelineDP": (("pipeline-dp", "PipelineDP"), ("python-dp", "PyDP")),
    "NumPy": (("numpy", "NumPy"),),
}
MODULES = {
    "OpenDP": "opendp.prelude",
    "diffprivlib": "diffprivlib",
    "dp_accounting": "dp_accounting.pld.privacy_loss_distribution",
    "PipelineDP": "pipeline_dp",
    "NumPy": "numpy",
}


@dataclass(frozen=True)
class Case:
    """One audit."""

    library: str
    what: str
    run: Callable[[], Any]
    issue: str = ""


def version_of(library: str) -> str:
    """The names and versions of what is audited; ImportError where it is not installed."""
    importlib.import_module(MODULES[library])
    return ", ".join(f"{name} {importlib.metadata.version(one)}" for one, name in DISTRIBUTIONS[library])


# --- OpenDP


def of_opendp() -> Iterator[Case]:
    """Plans without their noise, transformations, and samplers."""
    yield from _plans_of_rows()
    yield from _plans_of_groups()
    yield from _transformations()
    yield from _samplers_of_opendp()


def _plans_of_rows() -> Iterator[Case]:
    import opendp.prelude as dp
    import polars as pl

    from userdp.audit.adapters import from_opendp_builder

    dp.enable_features("contrib", "honest-but-curious")
    x, y = pl.col("x"), pl.col("y")
    kinds = {float: (float, pl.Float64), int: ("i64", pl.Int64)}

    def holes(kind: Any = float, **of: Any) -> Any:
        return dp.option_domain(dp.atom_domain(T=kinds[kind][0], **of))

    plain = {float: dp.atom_domain(T=float, nan=False), int: dp.atom_domain(T="i64")}

    def plan(
        query: Callable[[float], Any], columns: dict[str, tuple[type, Any]], measure: Any = None, **margin: Any
    ) -> Callable[[float], Any]:
        schema = {name: kinds[kind][1] for name, (kind, _) in columns.items()}

        def build(scale: float) -> Any:
            domain = dp.with_margin(
                dp.lazyframe_domain([dp.series_domain(name, cells) for name, (_, cells) in columns.items()]),
                dp.polars.Margin(**{"max_length": 8, **margin}),
            )
            asked = query(scale)
            rows = pl.LazyFrame(schema=schema)
            asked = asked(rows) if callable(asked) else rows.select(asked)
            distance = dp.frame_distance(dp.symmetric_distance())
            made = measure or dp.max_divergence()
            return dp.m.make_private_lazyframe(domain, distance, made, asked, global_scale=scale)

        return build

    def case(
        what: str,
        query: Callable[[float], Any],
        columns: dict[str, tuple[type, Any]],
        issue: str = "",
        *,
        lengths: bool = False,
        measure: Any = None,
        null: bool = False,
        **asked: Any,
    ) -> Case:
        margin = {"invariant": "lengths"} if lengths else {}
        schema = {name: kind for name, (kind, _) in columns.items()}
        how: dict[str, Any] = {"neighbors": "add-remove", "null": null, "nan": False, "letters": 6}
        if lengths:
            how = {"neighbors": "replace", "invariant": len, "letters": 6}

        def run() -> Any:
            program = from_opendp_builder(
                plan(query, columns, measure, **margin), [dp.polars.Bound(per_group=2 if lengths else 1)]
            )
            return program.audit(schema=schema, **{**how, **asked})

        return Case("OpenDP", what, run, issue)

    floats, missing = {"x": (float, plain[float])}, {"x": (float, holes())}
    whole = {"x": (int, plain[int])}
    two = {"x": (int, holes(int)), "y": (int, holes(int))}
    free = {"lengths": True}
    yield case(
        "cast to integers, then count; lengths public",
        lambda s: x.fill_null(0.0).cast(pl.Int64, strict=False).count().dp.noise(), missing, "opendp#2938", **free,
    )  # fmt: skip
    yield case(
        "cut, then count; lengths public",
        lambda s: x.fill_null(0.0).cut([1.5]).count().dp.noise(), missing, "opendp#2939", **free,
    )  # fmt: skip
    yield case(
        "remainder of a division, then count; lengths public",
        lambda s: (x.fill_null(0) % y.fill_null(0)).count().dp.noise(), two, "opendp#2940", letters=4, **free,
    )  # fmt: skip
    yield case(
        "sum of the codes of cut", lambda s: x.cut([1.0]).to_physical().dp.sum((0, 1), scale=s), floats, "opendp#2944"
    )
    yield case(
        "fill null with NaN, clip, sum",
        lambda s: x.fill_null(math.nan).clip(0.0, 1.0).sum().dp.noise(scale=s),
        {"x": (float, holes(nan=False))}, "opendp#2936", null=True,
    )  # fmt: skip
    yield case("fill null, then count; lengths public", lambda s: x.fill_null(0.0).count().dp.noise(), missing, **free)
    yield case("number of rows", lambda s: dp.len(scale=s, signed=True), floats)
    yield case("number of nulls", lambda s: x.null_count().dp.noise(scale=s), missing, null=True, nan=True)
    yield case("number of filled cells", lambda s: x.count().dp.noise(scale=s), missing, null=True, nan=True)
    yield case("number of distinct integers", lambda s: x.n_unique().dp.noise(scale=s), whole)
    yield case("sum of clipped floats", lambda s: x.dp.sum((0.0, 1.0), scale=s), floats)
    yield case("sum of clipped integers", lambda s: x.dp.sum((-2, 5), scale=s), whole)
    yield case(
        "fill null and NaN, clip, sum",
        lambda s: x.fill_nan(0.0).fill_null(0.0).dp.sum((-1.0, 2.0), scale=s), missing, null=True, nan=True,
    )  # fmt: skip
    yield case(
        "sum of clipped integers, Gaussian noise", lambda s: x.dp.sum((-2, 5), scale=s), whole,
        measure=dp.zero_concentrated_divergence(),
    )  # fmt: skip
    yield case(
        "two sums", lambda s: [x.dp.sum((0, 1), scale=s), y.dp.sum((-3, 2), scale=s)],
        {"x": (int, plain[int]), "y": (int, plain[int])}, letters=4,
    )  # fmt: skip
    yield case(
        "rows that a filter keeps", lambda s: lambda rows: rows.filter(x > 1).select(dp.len(scale=s, signed=True)),
        whole,
    )  # fmt: skip
    yield case(
        "sum of a new column", lambda s: lambda rows: rows.with_columns(x=x.fill_null(7)).select(
            x.dp.sum((0, 4), scale=s)
        ), {"x": (int, holes(int))}, null=True,
    )  # fmt: skip
    yield case(
        "sum of clipped integers; lengths public", lambda s: x.dp.sum((0, 4), scale=s), whole, null=False, **free
    )


def _plans_of_groups() -> Iterator[Case]:
    import opendp.prelude as dp
    import polars as pl

    from userdp.audit.adapters import from_opendp_builder

    ids = {"id": pl.Int64, "g": pl.Int64}

    def of_users(prepare: Callable[[Any], Any], keys: list[int]) -> Callable[[float], Any]:
        """Counts by group with a list of keys, of users who are bounded first."""

        def build(scale: float) -> Any:
            rows = prepare(pl.LazyFrame(schema=ids))
            counts = rows.group_by("g").agg(dp.len(scale=scale, signed=True))
            query = pl.LazyFrame({"g": keys}).join(counts, on="g", how="left")
            domain = dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in ids])
            distance = dp.symmetric_id_distance(identifier=pl.col("id"))
            return dp.m.make_private_lazyframe(domain, distance, dp.zero_concentrated_divergence(), query)

        return build

    def bounded(rows: Any, most: int = 1) -> Any:
        rows = rows.filter(pl.int_range(pl.len()).over("id", "g") < most)
        return rows.filter(pl.struct("g").rank("dense").over("id") < 4)

    def case(what: str, build: Callable[[float], Any], issue: str = "", **asked: Any) -> Case:
        how: dict[str, Any] = {
            "schema": {"g": int}, "user": "id", "neighbors": "add-remove", "null": False, "keys": "g", "letters": 3,
            "max_users": 2, "total_rows": 3,
        }  # fmt: skip
        return Case("OpenDP", what, lambda: from_opendp_builder(build, 1).audit(**{**how, **asked}), issue)

    yield case(
        "rows of users bounded by group, groups merged, rows counted; by users",
        of_users(lambda rows: bounded(rows).with_columns(g=pl.lit(0, dtype=pl.Int64)), [0]),
        "opendp#2949",
        total_rows=2,
    )
    yield case("one row of a user in a group, rows counted; by users", of_users(bounded, [0, 1, 2]))
    yield case(
        "two rows of a user in a group, rows counted; by users", of_users(lambda rows: bounded(rows, 2), [0, 1, 2])
    )

    def sums(max_length: int) -> Callable[[float], Any]:
        def build(scale: float) -> Any:
            schema = {"town": pl.String, "y": pl.Int64}
            query = pl.LazyFrame(schema=schema).group_by("town").agg(pl.col("y").dp.sum((-7, 7), scale=scale))
            columns = [dp.series_domain("town", dp.atom_domain(T=str)), dp.series_domain("y", dp.atom_domain(T="i64"))]
            margin = dp.polars.Margin(by=["town"], max_length=max_length, max_groups=1, invariant="keys")
            domain = dp.with_margin(dp.lazyframe_domain(columns), margin)
            return dp.m.make_private_lazyframe(domain, dp.symmetric_distance(), dp.max_divergence(), query)

        return build

    for max_length in (2, 8):
        plan = sums(max_length)
        yield Case(
            "OpenDP",
            f"sum in groups of at most {max_length} rows; a user of two rows replaced",
            lambda plan=plan: from_opendp_builder(plan, 4, drop=["who"]).audit(
                schema={"town": ("a",), "y": int},
                user="who", keys="town", null=False, bounds={"y": (-7, 7)}, alphabets={"town": ["a"]}, constants=(),
                letters=6, max_users=1, max_rows=2, domain=lambda rows: 0 < len(rows) <= 2,
            ),
            "opendp#2945" if max_length == 2 else "",
        )  # fmt: skip


def _transformations() -> Iterator[Case]:
    """Stable transformations of vectors: nothing has to be turned off, and `map` is the claim."""
    import opendp.prelude as dp

    integers = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()

    def case(what: str, make: Callable[[], Any], kind: type, *, size: int | None = None, norm: str = "l1") -> Case:
        def run() -> Any:
            made = make()
            claim = made.map(1 if size is None else 2)

            def statistic(rows: list[tuple[Any]]) -> Any:
                return made([row[0] for row in rows])

            return audit_sensitivity(
                statistic,
                schema={"x": kind},
                frame="tuples",
                neighbors="add-remove" if size is None else "replace",
                domain=None if size is None else (lambda rows: len(rows) == size),
                null=False,
                nan=False,
                bounds={"x": (0, 5)},
                **{norm: claim},
            )

        return Case("OpenDP", what, run)

    yield case(
        "clamp and sum of integers (transformation)",
        lambda: integers >> dp.t.then_clamp((-2, 5)) >> dp.t.then_sum(), int,
    )  # fmt: skip
    yield case("count (transformation)", lambda: integers >> dp.t.then_count(), int)
    yield case("count of distinct integers (transformation)", lambda: integers >> dp.t.then_count_distinct(), int)
    yield case(
        "counts by category (transformation)",
        lambda: integers >> dp.t.then_count_by_categories(categories=[0, 1, 2]), int,
    )  # fmt: skip
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 5.0), nan=False), size=3), dp.symmetric_distance()
    yield case(
        "mean of three clamped floats (transformation)",
        lambda: dp.t.make_clamp(
            dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3), dp.symmetric_distance(), (0.0, 5.0)
        ) >> dp.t.make_mean(*sized), float, size=3,
    )  # fmt: skip

    def of_tree() -> Any:
        vectors = dp.vector_domain(dp.atom_domain(T=int), size=4), dp.l2_distance(T=int)
        tree = dp.t.make_b_ary_tree(*vectors, leaf_count=4, branching_factor=4)

        def users_by_leaf(rows: list[tuple[int, int]]) -> Any:
            return tree([len({who for who, leaf in rows if leaf == one}) for one in range(4)])

        # One user counts once in each of four leaves, so that the counts move by 2 in L2.
        return audit_sensitivity(
            users_by_leaf, schema={"leaf": (0, 1, 2, 3)}, user="user", frame="tuples", neighbors="add-remove",
            null=False, max_users=2, max_rows=4, total_rows=4, l2_squared=tree.map(2) ** 2,
        )  # fmt: skip

    yield Case("OpenDP", "users counted in a b-ary tree of four leaves, L2; by users", of_tree, "opendp#2924")


def _samplers_of_opendp() -> Iterator[Case]:
    """Whole mechanisms, by draws."""
    import opendp.prelude as dp

    def case(
        what: str, make: Callable[[], Any], pair: tuple[Any, Any], epsilon: Callable[[Any], Any], **asked: Any
    ) -> Case:
        def run() -> Any:
            made = make()
            options: dict[str, Any] = {"draws": 30_000, "training": 10_000, "random_state": 11, "name": what}
            return audit_samples(made, [pair], epsilon=epsilon(made), **options | asked)

        return Case("OpenDP", what, run, "")

    scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    yield case(
        "make_laplace on 0.0 and 1.0", lambda: dp.m.make_laplace(*scalar, scale=10.0), (0.0, 1.0), lambda m: m.map(1.0)
    )
    yield case("make_laplace on 0 and 1", lambda: dp.m.make_laplace(*whole, scale=2.0), (0, 1), lambda m: m.map(1))
    yield case(
        "make_randomized_response_bool", lambda: dp.m.make_randomized_response_bool(prob=0.75), (False, True),
        lambda m: m.map(1),
    )  # fmt: skip
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    yield case(
        "make_noisy_max, pure", lambda: dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=1.0),
        ([0, 0, 0], [1, -1, -1]), lambda m: m.map(1),
    )  # fmt: skip
    concentrated = dp.zero_concentrated_divergence()
    yield Case(
        "OpenDP",
        "make_noisy_max, zCDP; ε of the bounded range that has its ρ, (8ρ)^½",
        lambda: audit_samples(
            dp.m.make_noisy_max(*scores, concentrated, scale=1.0), [([0, 0, 0], [1, -1, -1])],
            epsilon=math.sqrt(8 * dp.m.make_noisy_max(*scores, concentrated, scale=1.0).map(1)),
            draws=30_000, training=10_000, random_state=11, name="make_noisy_max",
        ),
        "opendp#2911",
    )  # fmt: skip


# --- diffprivlib


LAW: dict[str, Any] = {
    "universe": (0, 1), "n_users": 1, "n_examples": 1, "randomness": "random", "delta": 0, "complete": True
}  # fmt: skip


def of_diffprivlib() -> Iterator[Case]:
    """Laws of mechanisms whose draws are known, draws of others, and statistics of tools before their noise."""
    from diffprivlib import mechanisms

    def drawn(make: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any, Any], Any]:
        def mechanism(dataset: Any, rng: Any) -> Any:
            made, value = make(dataset[0][0])
            made._rng = rng
            found = made.randomise(value)
            return found if isinstance(found, str) else int(found)

        return mechanism

    def law(what: str, make: Callable[[Any], tuple[Any, Any]], epsilon: Any = 1, **asked: Any) -> Case:
        return Case("diffprivlib", what, lambda: audit_sampler_law(drawn(make), **{**LAW, "epsilon": epsilon, **asked}))

    def selection(name: str, gap: int) -> Callable[[Any], tuple[Any, Any]]:
        made = getattr(mechanisms, name)
        return lambda value: (
            _Selecting(made(epsilon=1.0, sensitivity=1.0, utility=[0, value - gap, 0, 0])), None
        )  # fmt: skip

    for gap in (36, 75):
        yield law(f"Exponential, one of four candidates behind by {gap} or {gap - 1}", selection("Exponential", gap))
    yield law("PermuteAndFlip, one of four candidates behind by 3 or 2", selection("PermuteAndFlip", 3), max_runs=6000)
    yield law("Binary", lambda value: (mechanisms.Binary(epsilon=1.0, value0="0", value1="1"), str(value)))
    for epsilon in ("1", "0.1"):
        yield law(
            f"Geometric, ε = {epsilon}", lambda value, e=epsilon: (mechanisms.Geometric(epsilon=float(e)), value),
            float(epsilon), monotone=True,
        )  # fmt: skip
    # What folds numbers back neither rises nor falls with them, so that GeometricFolded is not for monotone=True.
    yield law(
        "GeometricTruncated on 0 to 5",
        lambda value: (mechanisms.GeometricTruncated(epsilon=1.0, lower=0, upper=5), value),
        monotone=True,
    )

    def samples(what: str, make: Callable[[], Any], epsilon: Any, issue: str = "", **asked: Any) -> Case:
        def run() -> Any:
            made = make()
            options: dict[str, Any] = {"draws": 60_000, "training": 10_000, "random_state": 11, "name": what}
            return audit_samples(made.randomise, [(0.0, 1.0)], epsilon=epsilon, **options | asked)

        return Case("diffprivlib", what, run, issue)

    known = "diffprivlib#94"
    yield samples(
        "Laplace on 0.0 and 1.0", lambda: mechanisms.Laplace(epsilon=0.1, sensitivity=1.0), Fraction(1, 10), known
    )
    yield samples(
        "GaussianAnalytic on 0.0 and 1.0",
        lambda: mechanisms.GaussianAnalytic(epsilon=0.5, delta=0.01, sensitivity=1.0),
        Fraction(1, 2),
        known,
        delta="0.01",
    )
    yield samples(
        "Staircase on 0.0 and 1.0", lambda: mechanisms.Staircase(epsilon=0.5, sensitivity=1.0), Fraction(1, 2), known
    )
    yield samples(
        "Snapping on 0.0 and 1.0",
        lambda: mechanisms.Snapping(epsilon=0.5, sensitivity=1.0, lower=0.0, upper=2.0),
        Fraction(1, 2),
    )
    yield from _tools_of_diffprivlib(mechanisms)


class _Selecting:
    """A selection mechanism, whose randomise takes nothing."""

    def __init__(self, made: Any) -> None:
        self._made = made

    @property
    def _rng(self) -> Any:
        return self._made._rng

    @_rng.setter
    def _rng(self, rng: Any) -> None:
        self._made._rng = rng

    def randomise(self, _: Any) -> Any:
        return self._made.randomise()


def _tools_of_diffprivlib(mechanisms: Any) -> Iterator[Case]:
    """What tools give to their mechanism, and the sensitivity that they say it has."""
    from diffprivlib import tools

    seen: list[tuple[Any, Any, Any]] = []

    def record(self: Any, value: Any) -> Any:
        seen.append((value, self.sensitivity, self.epsilon))
        return value

    recorded = [mechanisms.GeometricTruncated, mechanisms.LaplaceTruncated, mechanisms.LaplaceBoundedDomain]

    def before_noise(call: Callable[[Any], Any], values: Any) -> list[Any]:
        kept = [one.randomise for one in recorded]
        seen.clear()
        for one in recorded:
            one.randomise = record
        try:
            call(np.array(values, dtype=float))
        finally:
            for one, was in zip(recorded, kept, strict=True):
                one.randomise = was
        return list(seen)

    def case(what: str, call: Callable[[Any], Any], *, size: int | None = 3, issue: str = "", **asked: Any) -> Case:
        def run() -> Any:
            (claimed,) = {float(one[1]) for one in before_noise(call, [0.25] * (size or 2))}

            def statistic(rows: Any) -> Any:
                return [float(one[0]) for one in before_noise(call, [row[0] for row in rows])] or 0

            how: dict[str, Any] = {
                "schema": {"x": float}, "frame": "tuples", "null": False, "l1": claimed, "letters": 6, "constants": (),
                "float_slack": Fraction(1, 10**12), "order": "kept" if size is None else "any",
                "neighbors": "add-remove" if size is None else "replace",
                "domain": None if size is None else (lambda rows: len(rows) == size),
            }  # fmt: skip
            return audit_sensitivity(statistic, **{**how, **asked})

        return Case("diffprivlib", what, run, issue)

    unit, far = {"epsilon": 1.0, "bounds": (0.0, 1.0)}, {"epsilon": 1.0, "bounds": (1.0, 2.0)}
    known = "diffprivlib#80"
    yield case("tools.mean in [0, 1], NaN among the values", lambda a: tools.mean(a, **unit), issue=known)
    yield case("tools.sum in [0, 1], NaN among the values", lambda a: tools.sum(a, **unit), issue=known)
    yield case("tools.nanmean in [0, 1]", lambda a: tools.nanmean(a, **unit))
    yield case("tools.nansum in [1, 2]", lambda a: tools.nansum(a, **far))
    yield case("tools.mean in [0, 1]", lambda a: tools.mean(a, **unit), nan=False)
    yield case("tools.sum in [1, 2]", lambda a: tools.sum(a, **far), nan=False)
    yield case("tools.var in [0, 1]", lambda a: tools.var(a, **unit), nan=False)
    yield case("tools.count_nonzero", lambda a: tools.count_nonzero(a, epsilon=1.0))
    yield case(
        "tools.histogram of two bins", lambda a: tools.histogram(a, epsilon=1.0, bins=2, range=(0, 1)), size=None,
        nan=False, order="any",
    )  # fmt: skip


# --- dp_accounting


def of_dp_accounting() -> Iterator[Case]:
    """Claims of its accountant beside exact composition."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as theirs

    from userdp.accounting import PrivacyLossDistribution, check_claims

    def pure(epsilon: str, k: int, delta: str) -> Case:
        def run() -> Any:
            parameters = common.DifferentialPrivacyParameters(float(epsilon), 0)
            composed = theirs.from_privacy_parameters(parameters).self_compose(k)
            whole = PrivacyLossDistribution.pure(epsilon).self_compose(k)
            return check_claims(whole, [(composed.get_epsilon_for_delta(float(delta)), delta)])[0]

        return Case("dp_accounting", f"{k:,} releases of {epsilon}-DP, default grid", run)

    yield pure("0.1", 1000, "1e-14")
    yield pure("0.2", 1000, "1e-13")
    yield pure("0.2", 1000, "1e-14")
    yield pure("0.01", 1000, "1e-15")
    yield pure("0.1", 1000, "1e-6")
    yield pure("0.2", 1000, "1e-12")
    yield pure("0.01", 10_000, "1e-6")

    p, q = (0.9, 0.09, 0.01), (0.5, 0.1, 0.4)

    def pair(**options: Any) -> Callable[[], Any]:
        def run() -> Any:
            lower, upper = ({place: math.log(mass) for place, mass in enumerate(one)} for one in (q, p))
            made = theirs.from_two_probability_mass_functions(lower, upper, **options)
            texts = ([str(mass) for mass in one] for one in (p, q))
            exact = PrivacyLossDistribution.from_pmfs(*([Fraction(mass) for mass in one] for one in texts))
            return check_claims(exact, [("0.5", made.get_delta_for_epsilon(0.5))])[0]

        return run

    yield Case("dp_accounting", "a pair of pmfs that is not symmetric, by the default symmetric=True", pair())
    yield Case("dp_accounting", "the same pair, symmetric=False", pair(symmetric=False))

    def gaussian() -> Any:
        made = theirs.from_gaussian_mechanism(4.0).self_compose(100)
        whole = PrivacyLossDistribution.gaussian("4", neighbors="add-remove").self_compose(100)
        return check_claims(whole, [(made.get_epsilon_for_delta(1e-6), "1e-6")])[0]

    yield Case("dp_accounting", "100 releases with Gaussian noise of 4", gaussian)


# --- PipelineDP


def of_pipelinedp() -> Iterator[Case]:
    """Aggregates without their noise on the local backend, its exponential mechanism, and PyDP's noise."""
    import pipeline_dp
    from pipeline_dp import dp_computations

    metrics = pipeline_dp.Metrics

    def aggregate(metric: Any, rows: list[dict[str, Any]], **bounds: Any) -> tuple[dict[str, Any], set[float]]:
        """What is given to the noise of each group of a public list, and the sensitivity that it is made for."""
        seen: list[float] = []

        def record(self: Any, value: Any) -> Any:
            seen.append(float(self.sensitivity))
            return value

        kept, dp_computations.LaplaceMechanism.add_noise = dp_computations.LaplaceMechanism.add_noise, record
        try:
            budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
            engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
            parameters = pipeline_dp.AggregateParams(
                noise_kind=pipeline_dp.NoiseKind.LAPLACE, metrics=[metric], max_partitions_contributed=2,
                max_contributions_per_partition=2, **bounds,
            )  # fmt: skip
            extractors = pipeline_dp.DataExtractors(
                privacy_id_extractor=lambda row: row["user"],
                partition_extractor=lambda row: row["town"],
                value_extractor=lambda row: row["x"],
            )
            result = engine.aggregate(rows, parameters, extractors, public_partitions=["a", "b"])
            budget.compute_budgets()
            return {town: float(found[0]) for town, found in result}, set(seen)
        finally:
            dp_computations.LaplaceMechanism.add_noise = kept

    def case(what: str, metric: Any, *, nan: bool = False, **bounds: Any) -> Case:
        def run() -> Any:
            (claimed,) = aggregate(metric, [{"user": 0, "town": "a", "x": 0.5}], **bounds)[1]
            return audit_sensitivity(
                lambda rows: aggregate(metric, rows, **bounds)[0],
                schema={"town": ("a", "b"), "x": float}, user="user", neighbors="add-remove", l1=claimed, null=False,
                nan=nan, letters=5, max_users=2, max_rows=2, total_rows=3, constants=(),
                bounds={"x": (0, 3)}, domain=bool,
            )  # fmt: skip

        return Case("PipelineDP", f"{what}; not of an empty table", run)

    values: dict[str, Any] = {"min_value": 0, "max_value": 3}
    yield case("DPEngine.aggregate, rows by group", metrics.COUNT)
    yield case("DPEngine.aggregate, users by group", metrics.PRIVACY_ID_COUNT)
    yield case("DPEngine.aggregate, sum by group", metrics.SUM, **values)
    yield case("DPEngine.aggregate, sum by group, NaN among the values", metrics.SUM, nan=True, **values)

    class Votes(dp_computations.ExponentialMechanism.ScoringFunction):  # type: ignore[misc]
        global_sensitivity, is_monotonic = 1, True

        def __init__(self, scores: list[float]) -> None:
            self.scores = scores

        def score(self, k: int) -> float:
            return self.scores[k]

    def selection(lead: int) -> Callable[[], Any]:
        def mechanism(dataset: Any, rng: Any) -> int:
            kept = np.random.default_rng
            np.random.default_rng = lambda *seed: kept(*seed) if seed else rng
            try:
                scores = [float(lead + dataset[0][0]), 0.0]
                return int(dp_computations.ExponentialMechanism(Votes(scores)).apply(1.0, [0, 1]))
            finally:
                np.random.default_rng = kept

        return lambda: audit_sampler_law(mechanism, **LAW | {"randomness": "numpy", "epsilon": 1})

    yield Case("PipelineDP", "ExponentialMechanism, scores 5 or 6, and 0", selection(5))
    yield Case("PipelineDP", "ExponentialMechanism, scores 709 or 710, and 0", selection(709))

    def laplace() -> Any:
        made = dp_computations.LaplaceMechanism.create_from_epsilon(0.1, 1.0)
        return audit_samples(
            made.add_noise, [(0.0, 1.0)], epsilon="0.1", draws=60_000, training=10_000, random_state=11, name="Laplace"
        )

    yield Case("PipelineDP", "LaplaceMechanism on 0.0 and 1.0", laplace)


# --- one-liners


def of_numpy() -> Iterator[Case]:
    """What is written without a library, and what repairs it."""
    yield from _one_liners_before_noise()
    yield from _one_liners_that_draw()


def _one_liners_before_noise() -> Iterator[Case]:
    def case(what: str, statistic: Callable[[Any], Any], kinds: dict[str, Any], **asked: Any) -> Case:
        how: dict[str, Any] = {"schema": kinds, "neighbors": "add-remove", "letters": 6}
        return Case("NumPy", what, lambda: audit_sensitivity(statistic, **{**how, **asked}))

    users: dict[str, Any] = {"user": "who", "l1": 1, "max_users": 2, "total_rows": 3}
    rows = {"frame": "tuples", "null": False, "l1": 1}
    yield case(
        "rows counted for users: np.unique(town, return_counts=True)",
        lambda table: dict(zip(*np.unique([row["town"] for row in table], return_counts=True), strict=True)),
        {"town": ("a", "b")}, missing=0, **users,
    )  # fmt: skip
    yield case(
        "users counted: len(set(who))", lambda table: len({row["who"] for row in table}), {"town": ("a", "b")}, **users
    )
    yield case(
        "np.clip(x, 0, 1).sum()",
        lambda table: np.clip([row[0] for row in table] or [0.0], 0, 1).sum(),
        {"x": float},
        **rows,
    )
    yield case(
        "np.clip(np.nan_to_num(x), 0, 1).sum()",
        lambda table: np.clip(np.nan_to_num([row[0] for row in table] or [0.0]), 0, 1).sum(), {"x": float}, **rows,
    )  # fmt: skip
    yield case(
        "each record clipped: np.clip(x, 0, 1).sum() of a user's rows",
        lambda table: float(np.clip([row["x"] for row in table] or [0.0], 0, 1).sum()), {"x": float}, null=False,
        nan=False, **users,
    )  # fmt: skip

    def per_user(table: Any) -> float:
        totals: dict[Any, float] = {}
        for row in table:
            totals[row["who"]] = totals.get(row["who"], 0.0) + min(max(row["x"], 0.0), 1.0)
        return float(np.clip(list(totals.values()) or [0.0], 0, 1).sum())

    yield case(
        "each user clipped", per_user, {"x": float}, null=False, nan=False, float_slack=Fraction(1, 2**50), **users
    )
    mean = {"neighbors": "replace", "null": False, "nan": False, "frame": "tuples"}
    yield case(
        "a mean divided by today's number of rows, for a public 3", lambda table: np.clip(
            [row[0] for row in table] or [0.0], 0, 1
        ).mean(), {"x": float}, l1=Fraction(1, 3), float_slack=Fraction(1, 2**50), **mean,
    )  # fmt: skip
    yield case(
        "a sum divided by a public 3", lambda table: np.clip([row[0] for row in table] or [0.0], 0, 1).sum() / 3,
        {"x": float}, l1=Fraction(1, 3), float_slack=Fraction(1, 2**50), **mean,
    )  # fmt: skip


def _one_liners_that_draw() -> Iterator[Case]:
    def samples(what: str, mechanism: Callable[[Any, Any], Any], epsilon: Any, **asked: Any) -> Case:
        options: dict[str, Any] = {"draws": 100_000, "training": 10_000, "random_state": 11, "name": what}
        return Case(
            "NumPy",
            what,
            lambda: audit_samples(mechanism, [(0.0, 1.0)], epsilon=epsilon, rng="numpy", **options | asked),
        )

    yield samples("x + rng.laplace(scale=10), x = 0.0 or 1.0", lambda x, rng: x + rng.laplace(scale=10), "0.1")
    yield samples(
        "x + rng.geometric(0.1) - rng.geometric(0.1), x = 0 or 1",
        lambda x, rng: int(x) + int(rng.geometric(0.1)) - int(rng.geometric(0.1)), "ln(10/9)",
    )  # fmt: skip

    def law(what: str, mechanism: Callable[[Any, Any], Any], epsilon: Any = 1) -> Case:
        return Case(
            "NumPy", what, lambda: audit_sampler_law(mechanism, **LAW | {"randomness": "numpy", "epsilon": epsilon})
        )

    def selection(gap: int) -> Callable[[Any, Any], int]:
        def mechanism(dataset: Any, rng: Any) -> int:
            weights = np.exp(np.array([0.0, dataset[0][0] - gap, 0.0, 0.0]) / 2)
            return int(rng.choice(4, p=weights / weights.sum()))

        return mechanism

    for gap in (36, 72):
        yield law(f"rng.choice(4, p=exp(s / 2)), one score behind by {gap} or {gap - 1}", selection(gap))
    yield law(
        "randomized response by rng.random() < e / (1 + e)",
        lambda dataset, rng: dataset[0][0] if rng.random() < math.e / (1 + math.e) else 1 - dataset[0][0],
    )
    yield law(
        "randomized response by rng.integers(4) > 0, ε = ln 3",
        lambda dataset, rng: dataset[0][0] if rng.integers(4) > 0 else 1 - dataset[0][0], "ln(3)",
    )  # fmt: skip

    def totals(clip_users: bool) -> Callable[[list[Any]], Any]:
        def run(users: list[Any]) -> Any:
            rng = np.random.default_rng(17)
            found = np.zeros(128, dtype=np.int64)
            for place, rows in users:
                found[place] += min(rows, 1) if clip_users else sum(min(1, 1) for _ in range(rows))
            return found + rng.geometric(0.63, size=128) - rng.geometric(0.63, size=128)

        return run

    for clip_users in (False, True):
        released = totals(clip_users)
        yield Case(
            "NumPy",
            f"each {'user' if clip_users else 'record'} clipped: 128 sums in one run, canary users of 8 rows",
            lambda run=released: audit_one_run(
                run, canaries=[(place, 8) for place in range(128)], others=[(place, 0) for place in range(128)],
                score=lambda found: found, epsilon=1, random_state=5, name="sums",
            ),
        )  # fmt: skip


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "OpenDP": of_opendp,
    "diffprivlib": of_diffprivlib,
    "dp_accounting": of_dp_accounting,
    "PipelineDP": of_pipelinedp,
    "NumPy": of_numpy,
}
